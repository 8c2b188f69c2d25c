//! The edits that make a program measure itself.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use gridfuse_analysis::base::db::{Database, SourceFile};
use gridfuse_analysis::base::span::TextRange;
use gridfuse_analysis::hir::items::{FunctionItem, items};
use gridfuse_analysis::hir::names::unqualified;
use gridfuse_analysis::hir::runtime_header::is_runtime_header;
use gridfuse_codeactions::api::source_edit::TextEdit;
use gridfuse_codeactions::edit::lex::{code_words, identifiers};

use crate::collected::{launches_others, started};
use crate::launches::{LaunchSite, in_file, place_in};
use crate::line_index::line_index;
use crate::measure::Request;
use crate::measure::report::{self, LeftOut};

/// A host launch of a measured kernel: the same in all variants of a program.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostSite {
    /// The kernel's name without namespaces and template arguments.
    pub kernel: String,
    /// Which of the kernel's launches, in the order of the files and in them, from 0.
    pub nth: u32,
}

/// Host launches that are measured, with the numbers that the programs report them by.
#[derive(Clone, Debug, Default)]
pub struct Sites {
    numbers: BTreeMap<HostSite, u32>,
    /// For each number, where the launch is in the original: file and line, from 1.
    pub places: Vec<(HostSite, PathBuf, u32)>,
    /// For each number, the stream and the arguments as the original hands them to what measures: `stream, a, b, 0`. The host names
    /// them where one grid has taken the place of a loop or a recursion of grids, too, so that their memory is compared with the
    /// original's, argument by argument.
    handed: Vec<String>,
    /// Launches of measured kernels that can't be measured: file, line, why.
    pub left_out: Vec<(PathBuf, u32, &'static str)>,
}

impl Sites {
    /// The measured launches, with paths as they are shown.
    pub fn shown(&self, request: &Request, show: &dyn Fn(&Path) -> String) -> Vec<report::Site> {
        let places = self.places.iter();
        places
            .map(|(site, path, line)| {
                let (path, line) = request.place(path, *line);
                report::Site {
                    kernel: site.kernel.clone(),
                    path: show(path),
                    line,
                }
            })
            .collect()
    }

    /// Those that can't be measured.
    pub fn shown_left_out(&self, show: &dyn Fn(&Path) -> String) -> Vec<LeftOut> {
        let left_out = self.left_out.iter();
        left_out
            .map(|(path, line, why)| LeftOut {
                path: show(path),
                line: *line,
                reason: (*why).to_owned(),
            })
            .collect()
    }
}

/// The names of the kernels that launch others, themselves or by way of a device function, in a program's files.
pub fn launching_kernels(db: &Database, files: &[SourceFile]) -> BTreeSet<String> {
    // Of the runtime, which launches what is collected, every name would count as one of the program's.
    let files = || files.iter().filter(|file| !is_runtime_header(db, **file));
    let own = || files().flat_map(|file| items(db, *file).functions.iter().copied());
    let mut reached: BTreeSet<String> = own()
        .filter(|function| launches_others(db, *function))
        .map(|function| unqualified(function.name(db)).to_owned())
        .collect();
    // A function whose text names one of them may call it.
    loop {
        let names = |function: FunctionItem<'_>| identifiers(&function.text(db)).any(|word| reached.contains(word));
        let more: Vec<String> = own()
            .filter(|function| {
                let signature = function.signature(db);
                (signature.kernel || signature.device) && !reached.contains(unqualified(function.name(db)))
            })
            .filter(|function| names(*function))
            .map(|function| unqualified(function.name(db)).to_owned())
            .collect();
        if more.is_empty() {
            break;
        }
        reached.extend(more);
    }
    own()
        .filter(|function| function.signature(db).kernel)
        .map(|function| unqualified(function.name(db)).to_owned())
        .filter(|name| reached.contains(name))
        .collect()
}

/// The names of the kernels that launch others, `launching`, and of those that device code launches.
pub fn kernels_of_launches(db: &Database, files: &[SourceFile], launching: &BTreeSet<String>) -> BTreeSet<String> {
    let own = files.iter().filter(|file| !is_runtime_header(db, **file));
    let sites = own.flat_map(|file| launches(db, *file));
    let by_device = sites.filter(|launching| matches!(launching, Launching::Site(site) if site.device_side()));
    by_device
        .filter_map(|launching| launching.kernel(db))
        .chain(launching.iter().cloned())
        .collect()
}

/// The edits of a program's files that time the host's launches of `kernels` and, on request, count device-side launches.
/// New sites are numbered only in the original (`sites` empty); in a rewritten program, other launches stay as they are. `host`: only
/// this file's launches by the host are measured.
pub fn instrument(
    db: &Database,
    files: &[SourceFile],
    host: Option<&Path>,
    kernels: &BTreeSet<String>,
    sites: &mut Sites,
    count_launches: bool,
) -> BTreeMap<PathBuf, Vec<TextEdit>> {
    let original = sites.places.is_empty();
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    let mut edits: BTreeMap<PathBuf, Vec<TextEdit>> = BTreeMap::new();
    for file in files.iter().copied() {
        let path = file.path(db).to_path_buf();
        let mut here: Vec<TextEdit> = Vec::new();
        let mut outer_end = 0;
        for launching in launches(db, file) {
            let range = launching.range();
            let line = line_index(db, file).line(range.start).0 + 1;
            let launch = &file.text(db)[range.start as usize..range.end as usize];
            if let Launching::Site(site) = &launching
                && site.device_side()
            {
                if count_launches && site.facts.statement.is_some() && !site.facts.from_macro {
                    here.push(TextEdit {
                        range,
                        insert: format!("({launch}, ::gridfuse_measure::launched())"),
                    });
                }
                continue;
            }
            let Some(kernel) = launching.kernel(db) else { continue };
            if !kernels.contains(&kernel) || host.is_some_and(|host| host != path) {
                continue;
            }
            let nth = seen.entry(kernel.clone()).or_default();
            let key = HostSite { kernel, nth: *nth };
            *nth += 1;
            let known = sites.numbers.get(&key).copied();
            let handed = match &launching {
                Launching::Site(site) if site.facts.from_macro => Err("it comes out of a macro"),
                _ if range.start < outer_end => Err("it stands in another launch"),
                Launching::Site(site) => handed(db, site),
                Launching::Start { .. } => known
                    .and_then(|number| sites.handed.get(number as usize).cloned())
                    .ok_or("the original's launch isn't known"),
            };
            let handed = match handed {
                Ok(handed) => handed,
                Err(why) => {
                    if original {
                        sites.left_out.push((path.clone(), line, why));
                    }
                    continue;
                }
            };
            let number = if original {
                let number = sites.places.len() as u32;
                sites.numbers.insert(key.clone(), number);
                sites.places.push((key, path.clone(), line));
                sites.handed.push(handed.clone());
                number
            } else {
                let Some(number) = known else { continue };
                number
            };
            outer_end = range.end;
            here.push(TextEdit {
                range,
                insert: format!("(::gridfuse_measure::measured({number}, {handed}), {launch})"),
            });
        }
        if !here.is_empty() {
            edits.insert(path, here);
        }
    }
    edits
}

/// What starts grids of a kernel.
enum Launching<'db> {
    /// A launch.
    Site(LaunchSite<'db>),
    /// The host's call of the runtime that has taken a launch's place.
    Start {
        kernel: FunctionItem<'db>,
        range: TextRange,
    },
}

impl Launching<'_> {
    /// Where it stands in its file.
    fn range(&self) -> TextRange {
        match self {
            Launching::Site(site) => site.place.range,
            Launching::Start { range, .. } => *range,
        }
    }

    /// The kernel's name without namespaces and template arguments.
    fn kernel(&self, db: &Database) -> Option<String> {
        match self {
            Launching::Site(site) => {
                let name = site.facts.kernel_name.as_ref()?;
                Some(unqualified(name.split('<').next().unwrap_or(name)).trim().to_owned())
            }
            Launching::Start { kernel, .. } => Some(unqualified(kernel.name(db)).to_owned()),
        }
    }
}

/// What starts grids in a file, in source order.
fn launches(db: &Database, file: SourceFile) -> Vec<Launching<'_>> {
    let sites = in_file(db, file).into_iter().map(Launching::Site);
    let functions = items(db, file).functions.iter();
    let starts = functions.flat_map(|function| {
        let starts = started(db, *function).into_iter();
        starts
            .filter(|start| !start.is_loop_of_the_host)
            .map(|start| Launching::Start {
                kernel: start.kernel,
                range: place_in(db, *function, start.span).range,
            })
    });
    let mut all: Vec<Launching<'_>> = sites.chain(starts).collect();
    all.sort_by_key(Launching::range);
    all
}

/// The stream and the arguments of a launch, as they are handed to what measures it.
fn handed(db: &Database, site: &LaunchSite<'_>) -> Result<String, &'static str> {
    let text = site.id.function.text(db);
    let source = |span: gridfuse_analysis::base::span::Span| {
        let (start, end) = (span.start as usize, span.end as usize);
        text.get(start..end).unwrap_or_default().to_owned()
    };
    let stream = match &site.facts.stream_operand {
        None => "0".to_owned(),
        Some(operand) => {
            let stream = source(operand.span);
            if !repeatable(&stream) {
                return Err("its stream can't be named twice: it's more than a variable");
            }
            stream.replace(['\r', '\n'], " ")
        }
    };
    // Arguments that can't be named twice aren't looked at: calls, assignments.
    let args: Vec<String> = site
        .facts
        .args
        .iter()
        .map(|operand| source(operand.span))
        .map(|arg| if repeatable(&arg) { arg } else { "0".to_owned() })
        // The lines behind stay where they are, so that compilers speak of the right ones.
        .map(|arg| arg.replace(['\r', '\n'], " "))
        .collect();
    let args: String = args.iter().map(|arg| format!(", {arg}")).collect();
    Ok(format!("{stream}{args}"))
}

/// An expression without calls and side effects, so that it can be evaluated once more.
fn repeatable(expression: &str) -> bool {
    let assigns = |(at, _): (usize, &str)| {
        let before = expression[..at].chars().next_back();
        let after = expression[at + 1..].chars().next();
        !matches!(before, Some('=' | '!' | '<' | '>')) && after != Some('=')
    };
    let words = code_words(expression);
    let calls = words.windows(2).any(|pair| {
        pair[1] == "(" && pair[0].ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | ')' | ']' | '>'))
    });
    !words.is_empty()
        && !calls
        && !expression.contains("++")
        && !expression.contains("--")
        && !expression.contains("<<=")
        && !expression.contains(">>=")
        && !expression.match_indices('=').any(assigns)
        && !expression.contains(['{', '}', ';', '#', '\\'])
        && !expression.contains("//")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where one grid has taken the place of a loop of grids, the host's call is measured as the original's launch was: its number, its
    /// stream and its arguments in their order, so that their memory is compared argument by argument.
    #[test]
    fn the_call_in_place_of_a_launch_is_measured() -> Result<(), &'static str> {
        let original = "
__global__ void sweep(int* a, int n) { if (n > 0) sweep<<<1, 32, 0, cudaStreamTailLaunch>>>(a, n - 1); }
void run(int* a, int n, cudaStream_t stream) {
    sweep<<<1, 32>>>(a, 1);
    sweep<<<n, 32, 0, stream>>>(a, n);
}
";
        let rewritten = "
__global__ void sweep_loop(gridfuse::Iterations<sweep_args> iterations, int* a) {}
__global__ void sweep(int* a, int n) {}
void run(int* a, int n, cudaStream_t stream) {
    sweep<<<1, 32>>>(a, 1);
    // was: sweep<<<n, 32, 0, stream>>>(a, n)
    gridfuse::launch_loop<sweep_loop>(n, 32, 0, stream, {n}, a);
    gridfuse::run_rounds<sweep_rounds>(n, 32, 0, stream, {n}, a);
}
";
        let kernels = BTreeSet::from(["sweep".to_owned()]);
        let mut sites = Sites::default();
        let mut measured = Vec::new();
        for program in [original, rewritten] {
            let mut host = gridfuse_analysis::host::Host::new();
            let file = host.set_file("/a.cu".as_ref(), program);
            let edits = instrument(host.db(), &[file], None, &kernels, &mut sites, false);
            let inserted = edits.into_values().flatten().map(|edit| edit.insert);
            measured.push(inserted.collect::<Vec<_>>());
        }
        assert_eq!(measured[0].len(), 2);
        let measure = |number: u32, handed: &str, launch: &str| {
            format!("(::gridfuse_measure::measured({number}, {handed}), {launch})")
        };
        let start = "gridfuse::launch_loop<sweep_loop>(n, 32, 0, stream, {n}, a)";
        let expected = [
            measure(0, "0, a, 1", "sweep<<<1, 32>>>(a, 1)"),
            measure(1, "stream, a, n", start),
        ];
        assert_eq!(measured[1], expected);
        Ok(())
    }

    #[test]
    fn what_can_be_evaluated_twice() {
        for good in [
            "a",
            "0",
            "s.data",
            "p + 4",
            "(int*)p",
            "&a[i]",
            "graph->row",
            "streams[i % 4]",
            "a == b",
        ] {
            assert!(repeatable(good), "{good}");
        }
        for bad in [
            "",
            "i++",
            "f(x)",
            "x = 3",
            "v.data()",
            "dim3{1}",
            "a += 2",
            "g<int>(x)",
            "--n",
            "p // the buffer",
        ] {
            assert!(!repeatable(bad), "{bad}");
        }
    }
}
