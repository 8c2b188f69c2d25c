//! What compiled kernels need, and how many of their threads a multiprocessor keeps: as the driver says it in the program that checks.

use std::collections::BTreeSet;

use super::report::{Agreement, Kernel, Outcome, Report};

/// Where it's told in words what `resident` means.
pub const EXPLANATION: &str =
    "registers of a thread, static shared memory of a block, most threads resident on a multiprocessor (by these two)";

/// A kernel's name from what the driver calls it: without the type that it returns and its parameters. `graph::expand<float>`
pub fn name(symbol: &str) -> String {
    if symbol.starts_with("_Z") {
        return identifier(symbol).unwrap_or(symbol).to_owned();
    }
    let text = symbol.replace("(anonymous namespace)::", "");
    let (mut depth, mut begin, mut end) = (0_u32, 0, text.len());
    for (at, c) in text.char_indices() {
        match c {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            ' ' if depth == 0 => begin = at + 1,
            '(' if depth == 0 => {
                end = at;
                break;
            }
            _ => {}
        }
    }
    text[begin..end].to_owned()
}

/// The last identifier of a mangled name, where no demangler was at hand: `_ZN5graph6expandIfEEvPT_i` is `expand`'s.
fn identifier(symbol: &str) -> Option<&str> {
    let rest = symbol.strip_prefix("_Z")?;
    let nested = rest.starts_with('N');
    let mut rest = rest.trim_start_matches(['N', 'L', 'K']);
    let mut last = None;
    while rest.starts_with(|c: char| c.is_ascii_digit()) {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let length: usize = rest[..digits].parse().ok()?;
        last = Some(rest.get(digits..digits.checked_add(length)?)?);
        rest = rest.get(digits + length..)?.trim_start_matches('L');
        if !nested {
            break;
        }
    }
    last
}

/// A kernel's name without namespaces and template arguments, as programs' texts define it.
pub fn base(name: &str) -> &str {
    let plain = name.split('<').next().unwrap_or(name);
    plain.rsplit("::").next().unwrap_or(plain)
}

/// The name among `names` of which a kernel is a form that a rewrite has made, or its own: `child` of `child_coarsened_aggregated`.
fn origin<'a>(base: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let is_form = |name: &&str| {
        base.strip_prefix(name)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
    };
    names.into_iter().filter(is_form).max_by_key(|name| name.len())
}

/// Those with these names, and what rewrites have made of them, by their names; the rest, as the runtime's own, is nobody's concern.
pub fn concerned(kernels: Vec<Kernel>, names: &BTreeSet<String>) -> Vec<Kernel> {
    let is_concerned = |kernel: &Kernel| origin(base(&kernel.name), names.iter().map(String::as_str)).is_some();
    let mut all: Vec<Kernel> = kernels.into_iter().filter(is_concerned).collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

/// Of a kernel, the instance that keeps the fewest threads resident.
pub fn of<'a>(kernels: &'a [Kernel], name: &str) -> Option<&'a Kernel> {
    let instances = kernels.iter().filter(|kernel| base(&kernel.name) == name);
    instances.min_by_key(|kernel| (kernel.resident_threads, std::cmp::Reverse(kernel.registers)))
}

/// By how many resident threads programs that are as fast are told apart: those of the kernel that keeps the fewest. `None`: it isn't
/// known.
pub fn rank(kernels: &[Kernel]) -> Option<u32> {
    kernels.iter().map(|kernel| kernel.resident_threads).min()
}

impl Kernel {
    /// `24 registers, 2,048 resident threads`
    pub fn needs(&self) -> String {
        let shared = match self.shared_bytes {
            0 => String::new(),
            bytes => format!(", {} bytes shared", grouped(bytes)),
        };
        format!(
            "{} registers{shared}, {} resident threads",
            self.registers,
            grouped(self.resident_threads.into())
        )
    }
}

/// `65,536`
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// What each kernel needs in the programs that have it, a line a kernel: programs in which it needs the same stand together.
pub fn lines(programs: &[(&str, &[Kernel])]) -> Vec<String> {
    let mut names: Vec<&str> = Vec::new();
    for kernel in programs.iter().flat_map(|(_, kernels)| *kernels) {
        if !names.contains(&base(&kernel.name)) {
            names.push(base(&kernel.name));
        }
    }
    names.sort_unstable();
    let line = |name: &str| {
        let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
        for (program, kernels) in programs {
            let Some(kernel) = of(kernels, name) else { continue };
            let needs = kernel.needs();
            match groups.iter_mut().find(|(known, _)| *known == needs) {
                Some((_, programs)) => programs.push(program),
                None => groups.push((needs, vec![program])),
            }
        }
        let groups = groups
            .iter()
            .map(|(needs, programs)| format!("{needs} ({})", programs.join(", ")));
        format!("{name}: {}", groups.collect::<Vec<_>>().join("; "))
    };
    names.into_iter().map(line).collect()
}

/// The kernels of a program that ran; none where the driver doesn't tell.
pub fn of_outcome(outcome: &Outcome) -> &[Kernel] {
    match outcome {
        Outcome::Ran(run) => &run.kernels,
        _ => &[],
    }
}

/// What each kernel of a measurement needs.
pub fn of_report(report: &Report) -> Vec<String> {
    let variants = report
        .variants
        .iter()
        .map(|variant| (variant.rewrites.as_str(), of_outcome(&variant.outcome)));
    lines(
        &std::iter::once(("original", of_outcome(&report.original)))
            .chain(variants)
            .collect::<Vec<_>>(),
    )
}

/// Where a rewritten kernel keeps fewer threads resident than the original's, in sentences.
pub fn costs(report: &Report) -> Vec<String> {
    let original = of_outcome(&report.original);
    let names = || original.iter().map(|kernel| base(&kernel.name));
    let mut found: Vec<(String, Vec<&str>)> = Vec::new();
    for variant in &report.variants {
        // What computes something else is no choice.
        let is_choice = |outcome: &Outcome| match outcome {
            Outcome::Ran(run) => !matches!(run.agreement, Agreement::Differs(_) | Agreement::PrintsOtherwise { .. }),
            _ => false,
        };
        if !is_choice(&variant.outcome) {
            continue;
        }
        let kernels = of_outcome(&variant.outcome);
        let all: BTreeSet<&str> = kernels.iter().map(|kernel| base(&kernel.name)).collect();
        for name in all {
            let before = origin(name, names()).and_then(|origin| of(original, origin));
            let Some((before, after)) = before.zip(of(kernels, name)) else {
                continue;
            };
            if after.resident_threads >= before.resident_threads {
                continue;
            }
            let of_what = match base(&before.name) {
                same if same == name => "as it is".to_owned(),
                other => format!("for {other}"),
            };
            let text = format!(
                "{name} keeps {} threads resident on a multiprocessor in place of {} {of_what} ({} registers, not {}{})",
                grouped(after.resident_threads.into()),
                grouped(before.resident_threads.into()),
                after.registers,
                before.registers,
                match after.shared_bytes == before.shared_bytes {
                    true => String::new(),
                    false => format!(
                        "; {} bytes shared, not {}",
                        grouped(after.shared_bytes),
                        grouped(before.shared_bytes)
                    ),
                }
            );
            match found.iter_mut().find(|(known, _)| *known == text) {
                Some((_, programs)) => programs.push(&variant.rewrites),
                None => found.push((text, vec![&variant.rewrites])),
            }
        }
    }
    let sentence = |(text, programs): (String, Vec<&str>)| format!("{}: {text}", programs.join(", "));
    found.into_iter().map(sentence).collect()
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A kernel that needs so many registers, and keeps so many threads.
    pub fn kernel(name: &str, registers: u32, resident_threads: u32) -> Kernel {
        Kernel {
            name: name.to_owned(),
            registers,
            shared_bytes: 0,
            local_bytes: 0,
            largest_block: 1024,
            resident_threads,
        }
    }

    #[test]
    fn names_of_symbols() {
        for (symbol, short, plain) in [
            ("parent(int const*, int*, int)", "parent", "parent"),
            (
                "void graph::expand<float, (int)4>(float*, int)",
                "graph::expand<float, (int)4>",
                "expand",
            ),
            (
                "void k<std::pair<int, void (*)(int)> >(int)",
                "k<std::pair<int, void (*)(int)> >",
                "k",
            ),
            ("(anonymous namespace)::anon(int*)", "anon", "anon"),
            ("c_kernel", "c_kernel", "c_kernel"),
            ("_Z6expandPii", "expand", "expand"),
            ("_ZN5graph6expandIfEEvPT_i", "expand", "expand"),
            ("_ZL6hiddenPi", "hidden", "hidden"),
            ("_ZN41_GLOBAL__N__90d479e3_4_a_cu_c067f8a0_79234anonEPi", "anon", "anon"),
            ("_Z99short", "_Z99short", "_Z99short"),
            ("", "", ""),
        ] {
            assert_eq!((name(symbol).as_str(), base(&name(symbol))), (short, plain), "{symbol}");
        }
    }

    #[test]
    fn the_runtimes_kernels_concern_nobody() {
        let names = BTreeSet::from(["child".to_owned(), "child_b".to_owned()]);
        let all = [
            "gridfuse::run",
            "child_b_aggregated<int>",
            "x::child",
            "children",
            "other",
        ];
        let kept = concerned(all.iter().map(|name| kernel(name, 1, 1)).collect(), &names);
        let kept: Vec<&str> = kept.iter().map(|kernel| kernel.name.as_str()).collect();
        assert_eq!(kept, ["child_b_aggregated<int>", "x::child"]);
        assert_eq!(origin("child_b_aggregated", ["child", "child_b"]), Some("child_b"));
    }

    #[test]
    fn programs_that_need_the_same_stand_together() {
        let (a, b) = (
            [kernel("p", 24, 2048)],
            [kernel("p<int>", 40, 1536), kernel("p<float>", 70, 768)],
        );
        let programs: [(&str, &[Kernel]); 4] = [("original", &a), ("x", &b), ("threshold", &a), ("none", &[])];
        assert_eq!(
            lines(&programs),
            ["p: 24 registers, 2,048 resident threads (original, threshold); 70 registers, 768 resident threads (x)"]
        );
        assert_eq!((rank(&a), rank(&b), rank(&[])), (Some(2048), Some(768), None));
        assert_eq!(
            [0, 999, 1000, 1_234_567].map(grouped),
            ["0", "999", "1,000", "1,234,567"]
        );
    }
}
