//! `docs/overhead.md`: registers, memory and instructions of the corpus' kernels, as they are and rewritten. Needs a compiler and no
//! GPU: the numbers are those of the linked code.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::examples::kernels;
use crate::gpu::plan::{Plan, launch_line};
use crate::nvcc::Nvcc;
use crate::workspace;

/// What the page compares: the name, the rewrites and their options.
const VARIANTS: [(&str, &str, &[&str]); 11] = [
    ("as it is", "", &[]),
    ("threshold", "threshold", &["threshold=64"]),
    ("serialize", "serialize", &[]),
    ("coarsen", "coarsen", &["factor=4"]),
    ("aggregate-atomics", "aggregate-atomics", &[]),
    ("aggregate-warp", "aggregate-warp", &[]),
    ("aggregate-block", "aggregate-block", &[]),
    ("aggregate-multiblock", "aggregate-multiblock", &[]),
    ("aggregate-grid", "aggregate-grid", &[]),
    ("aggregate-grid-stream", "aggregate-grid-stream", &[]),
    ("optimize", "optimize", &[]),
];

/// What a kernel takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Registers of a thread, with those of the functions that it calls.
    pub registers: u32,
    /// Bytes of stack of a thread, with those of the functions that it calls.
    pub stack: u32,
    /// Bytes of static shared memory of a block.
    pub shared: u32,
    /// Bytes of registers that the kernel itself stores for want of registers.
    pub spilled: u32,
    /// Instructions of the kernel itself.
    pub instructions: usize,
}

/// Makes the page.
///
/// # Errors
/// When a program can't be rewritten for another reason than that it isn't eligible, or can't be compiled.
pub fn page(nvcc: &Nvcc) -> Result<String> {
    let mut text = format!(
        "{NOTE}\n\n# What the rewrites cost in registers, memory and code\n\nCompiled by nvcc {} with `-O3` for sm_90 and linked. \
         A kernel takes as many registers as the function that it calls with the most, so that both are counted; instructions are \
         those of the kernel itself, which are mostly never executed: the code for what doesn't fit stands behind the code \
         for what does. *Spilled*: bytes that the kernel stores for want of registers.\n",
        crate::nvcc::VERSION
    );
    let plan = Plan::load(&workspace::root().join("tests/gpu/plan.toml"))?;
    for program in &plan.programs {
        let Some(launch) = program.launch.as_ref().and_then(|at| at.lines().first()) else {
            continue;
        };
        let source = fs::read_to_string(workspace::root().join(&program.source))?;
        let line = launch_line(&source, launch)?;
        let launching = source.lines().nth(line - 1).unwrap_or_default();
        let mut found = kernels(&source).into_iter();
        let (parent, _) = found
            .find(|(_, body)| body.lines().any(|l| l == launching))
            .context("no parent")?;
        let child = launch.trim_end_matches("<<<");
        let _ = write!(
            text,
            r#"
## {}

| `{parent}` and `{child}` | registers | stack | shared | spilled | instructions | child: registers | shared | spilled | instructions |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
"#,
            program.name
        );
        for (name, rewrite, options) in VARIANTS {
            let directory = tempfile::tempdir()?;
            let file = directory.path().join(format!("{}.cu", program.name));
            fs::write(&file, &source)?;
            if !rewrite.is_empty() && !rewritten(&file, line, rewrite, options)? {
                continue;
            }
            let usages = usages(nvcc, &file)?;
            let usage = |kernel: &str| {
                usages
                    .iter()
                    .find(|(symbol, _)| is_function(symbol, kernel))
                    .map(|(_, usage)| *usage)
            };
            let of_parent = usage(&parent).with_context(|| format!("{}: no `{parent}`", program.name))?;
            let made = [
                format!("{child}_coarsened_aggregated"),
                format!("{child}_aggregated"),
                format!("{child}_coarsened"),
                child.to_owned(),
            ];
            let of_child = made
                .iter()
                .find_map(|kernel| usage(kernel))
                .with_context(|| format!("{}: no `{child}`", program.name))?;
            let _ = writeln!(
                text,
                "| {name} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
                of_parent.registers,
                of_parent.stack,
                of_parent.shared,
                of_parent.spilled,
                of_parent.instructions,
                of_child.registers,
                of_child.shared,
                of_child.spilled,
                of_child.instructions,
            );
        }
    }
    Ok(text)
}

/// What the page begins with.
const NOTE: &str =
    "<!-- Made by `cargo run -p gridfuse-tests --bin overhead` with a compiler; changes belong there. -->";

/// Rewrites a source in place; false when that isn't possible.
pub(crate) fn rewritten(file: &Path, line: usize, rewrite: &str, options: &[&str]) -> Result<bool> {
    let mut command = Command::new(workspace::gridfuse_bin());
    command
        .arg("rewrite")
        .arg(file)
        .args(["--at", &line.to_string(), "--apply", rewrite]);
    for option in options {
        command.args(["--set", option]);
    }
    let output = command.arg("--in-place").stdin(Stdio::null()).output()?;
    match output.status.code() {
        Some(0) => Ok(true),
        Some(1) => Ok(false),
        _ => bail!("{}", String::from_utf8_lossy(&output.stderr)),
    }
}

/// What the kernels of a source take, by their symbols.
fn usages(nvcc: &Nvcc, file: &Path) -> Result<Vec<(String, Usage)>> {
    let (object, linked) = (file.with_extension("cubin"), file.with_extension("linked"));
    let run = |command: &mut Command| -> Result<String> {
        let output = command.stdin(Stdio::null()).output()?;
        let printed = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
        let printed = String::from_utf8_lossy(&printed).into_owned();
        ensure!(output.status.success(), "{command:?}: {printed}");
        Ok(printed)
    };
    let compiled = run(nvcc
        .command()
        .args(["-O3", "-cubin", "-Xptxas", "-v", "-o"])
        .arg(&object)
        .arg(file))?;
    let mut link = Command::new(nvcc.executable().with_file_name("nvlink"));
    link.args(["-v", "-arch=sm_90"]).arg(&object);
    for library in ["lib", "lib64"] {
        let library = nvcc.root().join(library);
        if library.is_dir() {
            link.arg(format!("-L{}", library.display()));
        }
    }
    let printed = run(link.arg("-lcudadevrt").arg("-o").arg(&linked))?;
    let image = fs::read(&linked)?;
    let mut found = Vec::new();
    for (symbol, properties) in properties(&printed, "Function properties for '") {
        let number = |unit: &str| amount(&properties, unit).unwrap_or(0);
        let code = section(&image, &format!(".text.{symbol}"));
        let spilled = self::properties(&compiled, "Function properties for ")
            .into_iter()
            .find(|(other, _)| *other == symbol)
            .and_then(|(_, properties)| amount(&properties, "bytes spill stores"));
        found.push((
            symbol,
            Usage {
                registers: number("registers"),
                stack: number("stack"),
                shared: number("bytes smem"),
                spilled: spilled.unwrap_or(0),
                instructions: code.map_or(0, instructions),
            },
        ));
    }
    Ok(found)
}

/// Pairs of a function and the line that follows its mention.
fn properties(printed: &str, mention: &str) -> Vec<(String, String)> {
    let lines: Vec<&str> = printed.lines().collect();
    lines
        .windows(2)
        .filter_map(|pair| {
            let (_, name) = pair[0].split_once(mention)?;
            Some((name.trim_end_matches("':").trim().to_owned(), pair[1].to_owned()))
        })
        .collect()
}

/// The number in front of a unit: `52` in `used 52 registers, 264 stack`.
fn amount(line: &str, unit: &str) -> Option<u32> {
    let before = line.get(..line.find(&format!(" {unit}"))?)?;
    before.rsplit(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// Whether a mangled name is that of a function, of whatever parameters.
fn is_function(symbol: &str, name: &str) -> bool {
    symbol
        .strip_prefix("_Z")
        .is_some_and(|rest| rest.starts_with(&format!("{}{name}", name.len())))
}

/// The contents of a section of a 64-bit ELF image with the least significant byte first.
fn section<'a>(image: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let number = |at: usize, bytes: usize| -> Option<usize> {
        let field = image.get(at..at.checked_add(bytes)?)?;
        usize::try_from(field.iter().rev().fold(0u64, |n, byte| n << 8 | u64::from(*byte))).ok()
    };
    let (table, size, count, names) = (number(40, 8)?, number(58, 2)?, number(60, 2)?, number(62, 2)?);
    let header = |index: usize| index.checked_mul(size)?.checked_add(table);
    let contents = |header: usize| {
        let (at, length) = (number(header + 24, 8)?, number(header + 32, 8)?);
        image.get(at..at.checked_add(length)?)
    };
    let names = contents(header(names)?)?;
    (0..count).find_map(|index| {
        let header = header(index)?;
        let own = names.get(number(header, 4)?..)?;
        let own = own.split(|byte| *byte == 0).next()?;
        (own == name.as_bytes()).then(|| contents(header))?
    })
}

/// The number of instructions of sm_70 and later, each of 16 bytes, without those that do nothing.
fn instructions(code: &[u8]) -> usize {
    const NOP: u16 = 0x918;
    let opcode = |word: &[u8]| u16::from_le_bytes([word[0], word[1]]) & 0xfff;
    code.chunks_exact(16).filter(|word| opcode(word) != NOP).count()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_the_tools_print() {
        let printed = r#"nvlink info    : 8 bytes gmem
nvlink info    : Function properties for '_Z5visitPi':
nvlink info    : used 52 registers, used 1 barriers, 264 stack, 1028 bytes smem, 672 bytes cmem[0], 0 bytes lmem
"#;
        let found = properties(printed, "Function properties for '");
        assert_eq!(found.len(), 1);
        let (name, line) = &found[0];
        assert!(is_function(name, "visit") && !is_function(name, "visi") && !is_function(name, "isit"));
        assert_eq!(
            ["registers", "stack", "bytes smem", "miles"].map(|unit| amount(line, unit)),
            [Some(52), Some(264), Some(1028), None]
        );
        let compiled = "ptxas info    : Function properties for _Z5visitPi\n    32 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads\n";
        let found = properties(compiled, "Function properties for ");
        assert_eq!(amount(&found[0].1, "bytes spill stores"), Some(8));
    }

    #[test]
    fn what_is_no_image() {
        assert_eq!(section(b"\x7fELF", ".text"), None);
        assert_eq!(section(&[0xff; 64], ".text"), None);
        let nop = 0x0918u16.to_le_bytes();
        let mut code = vec![0u8; 48];
        code[16..18].copy_from_slice(&nop);
        assert_eq!(instructions(&code), 2);
    }
}
