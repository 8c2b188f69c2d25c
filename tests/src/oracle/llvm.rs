//! clang and LLVM's uniformity analysis.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use regex::Regex;

use super::probe::NAME;
use crate::cli::Directory;

/// What stands in for the toolkit.
const HEADER: &str = include_str!("fake_cuda.h");

/// Functions of one source that are left out at most because clang doesn't take them.
const LEFT_OUT: usize = 12;

/// Inlines everything, brings variables into registers, and gives each loop phis where values leave it.
const PREPARE: &str = "always-inline,sroa,inline,sroa,loop-simplify,lcssa,instsimplify";

/// Which threads a value is compared between.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Among {
    /// Threads of a block.
    Block,
    /// Threads of a grid.
    Grid,
}

/// What LLVM says of a source.
#[derive(Clone, Debug, Default)]
pub struct Opinion {
    /// Values that occur in kernels.
    pub seen: BTreeSet<u32>,
    /// Values that may differ.
    pub divergent: BTreeMap<Among, BTreeSet<u32>>,
    /// Functions that clang didn't take, by their lines.
    pub left_out: usize,
}

/// The tools: `clang++` and `opt` of one release.
#[derive(Clone, Debug)]
pub struct Llvm {
    clang: String,
    opt: String,
}

impl Llvm {
    /// The tools, if they are installed: release 19, whose analysis this is written for.
    pub fn get() -> Option<&'static Llvm> {
        static FOUND: OnceLock<Option<Llvm>> = OnceLock::new();
        FOUND
            .get_or_init(|| {
                let works = |name: &str, wanted: &str| {
                    let output = Command::new(name).arg("--version").output().ok()?;
                    let text = String::from_utf8_lossy(&output.stdout).into_owned();
                    text.contains(wanted).then(|| name.to_owned())
                };
                let clang = ["clang++-19", "clang++"]
                    .iter()
                    .find_map(|name| works(name, "version 19."))?;
                let opt = ["opt-19", "opt"].iter().find_map(|name| works(name, "version 19."))?;
                Some(Llvm { clang, opt })
            })
            .as_ref()
    }

    /// What LLVM says of the probed values of device code.
    ///
    /// # Errors
    /// What clang says of a source that it doesn't take even without the functions that it complains about.
    pub fn opinion(&self, device: &str) -> Result<Opinion, String> {
        let directory = Directory::new();
        directory.write("fake_cuda.h", HEADER.as_bytes());
        let mut text = device.to_owned();
        let mut opinion = Opinion::default();
        loop {
            directory.write("k.cu", text.as_bytes());
            match self.compile(directory.path()) {
                Ok(()) => break,
                Err(errors) if opinion.left_out < LEFT_OUT => {
                    text = without(&text, &errors).ok_or(errors)?;
                    opinion.left_out += 1;
                }
                Err(errors) => return Err(errors),
            }
        }
        self.opt(directory.path(), &["-passes", PREPARE, "-S", "k.ll", "-o", "flat.ll"])?;
        let flat = fs::read_to_string(directory.path().join("flat.ll")).map_err(|e| e.to_string())?;
        let kernels = kernels(&flat);
        for among in [Among::Block, Among::Grid] {
            directory.write("asked.ll", with_uniform_loads(&flat, among).as_bytes());
            let said = self.opt(
                directory.path(),
                &["-passes=print<uniformity>", "-disable-output", "asked.ll"],
            )?;
            let (seen, divergent) = probes(&said, &kernels);
            opinion.seen.extend(seen);
            opinion.divergent.insert(among, divergent);
        }
        Ok(opinion)
    }

    fn compile(&self, directory: &Path) -> Result<(), String> {
        let output = Command::new(&self.clang)
            .current_dir(directory)
            .args([
                "-x",
                "cuda",
                "--cuda-device-only",
                "-nocudainc",
                "-nocudalib",
                "--cuda-gpu-arch=sm_70",
            ])
            .args([
                "-std=c++17",
                "-O1",
                "-Xclang",
                "-disable-llvm-passes",
                "-ffp-contract=off",
                "-w",
                "-fdeclspec",
            ])
            .args([
                "-nostdinc",
                "-nostdinc++",
                "-fno-builtin",
                "-ferror-limit=0",
                "-fno-color-diagnostics",
            ])
            .args(["-include", "fake_cuda.h", "-emit-llvm", "-S", "k.cu", "-o", "k.ll"])
            .output()
            .map_err(|error| error.to_string())?;
        match output.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }

    fn opt(&self, directory: &Path, arguments: &[&str]) -> Result<String, String> {
        let output = Command::new(&self.opt).current_dir(directory).args(arguments).output();
        let output = output.map_err(|error| error.to_string())?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        match output.status.success() {
            true => Ok(said),
            false => Err(said),
        }
    }
}

/// The source without the functions in which clang finds errors; `None` where an error is outside of functions.
fn without(text: &str, errors: &str) -> Option<String> {
    use gridfuse_analysis::hir::items::items;
    use gridfuse_analysis::host::Host;
    let wrong: Vec<usize> = errors
        .lines()
        .filter(|line| line.contains("error:"))
        .filter_map(|line| line.strip_prefix("k.cu:")?.split(':').next()?.parse().ok())
        .collect();
    let mut host = Host::new();
    let file = host.set_file(Path::new("/oracle/kernels.cu"), text);
    let db = host.db();
    let mut result = text.to_owned();
    let mut found = false;
    for function in &items(db, file).functions {
        let from = function.start(db) as usize;
        let to = from + function.text(db).len();
        let line = |at: usize| text.get(..at).map_or(0, |before| before.matches('\n').count()) + 1;
        let lines = line(from)..=line(to);
        if wrong.iter().any(|wrong| lines.contains(wrong)) && from < to {
            // The analysis doesn't take a template's head for a part of the function.
            let blank: String = text
                .get(from..to)?
                .chars()
                .map(|c| if c == '\n' { '\n' } else { ' ' })
                .collect();
            if blank.len() != to - from || !result.is_char_boundary(from) || !result.is_char_boundary(to) {
                continue;
            }
            result.replace_range(from..to, &blank);
            found = true;
        }
    }
    (found && result != text).then_some(result)
}

/// The names of a module's kernels.
fn kernels(module: &str) -> BTreeSet<String> {
    let marked = |line: &str| Some(line.split_once("!{ptr @")?.1.split_once(", !\"kernel\"")?.0.to_owned());
    module.lines().filter_map(marked).collect()
}

/// The module with what LLVM must not judge replaced by what is uniform: loads whose address is, the sizes of block and grid, and,
/// among the threads of a block, the block's index.
fn with_uniform_loads(module: &str, among: Among) -> String {
    static SREG: OnceLock<Option<Regex>> = OnceLock::new();
    static LOAD: OnceLock<Option<Regex>> = OnceLock::new();
    let sreg = SREG.get_or_init(|| {
        Regex::new(
            r"^(\s*%\S+ = )(?:tail )?call .*@llvm\.nvvm\.read\.ptx\.sreg\.(ctaid|ntid|nctaid|warpsize)[.xyz]*\(\)",
        )
        .ok()
    });
    let load = LOAD.get_or_init(|| Regex::new(r"^(\s*%\S+ = load )([^,]+), ptr (.+), align (\d+)").ok());
    let mut result = String::new();
    for (number, line) in module.lines().enumerate() {
        if let Some(found) = sreg.as_ref().and_then(|sreg| sreg.captures(line))
            && (among == Among::Block || &found[2] != "ctaid")
        {
            let _ = writeln!(result, "{}load i32, ptr addrspace(1) @gf_uniform, align 4", &found[1]);
        } else if let Some(found) = load.as_ref().and_then(|load| load.captures(line))
            && !found[2].starts_with("volatile")
            && !found[2].starts_with("atomic")
        {
            let _ = writeln!(
                result,
                "  %gf{number} = addrspacecast ptr {} to ptr addrspace(1)",
                &found[3]
            );
            let _ = writeln!(
                result,
                "{}{}, ptr addrspace(1) %gf{number}, align {}",
                &found[1], &found[2], &found[4]
            );
        } else {
            let _ = writeln!(result, "{line}");
        }
    }
    result.push_str("@gf_uniform = external addrspace(1) global i32\n");
    result
}

/// The numbers of the probes in kernels, and of those whose value is divergent.
fn probes(said: &str, kernels: &BTreeSet<String>) -> (BTreeSet<u32>, BTreeSet<u32>) {
    let (mut seen, mut divergent) = (BTreeSet::new(), BTreeSet::new());
    for function in said.split("UniformityInfo for function '").skip(1) {
        let Some((name, function)) = function.split_once('\'') else {
            continue;
        };
        if !kernels.contains(name) {
            continue;
        }
        let varying: BTreeSet<&str> = function
            .lines()
            .filter_map(|line| line.trim_start().strip_prefix("DIVERGENT:"))
            .filter_map(|line| Some(line.trim_start().split_once(" = ")?.0))
            .collect();
        let call = format!("call void @{NAME}(i32 noundef ");
        for line in function.lines() {
            let Some((_, arguments)) = line.split_once(&call) else {
                continue;
            };
            let Some((id, value)) = arguments.split_once(", i64 noundef ") else {
                continue;
            };
            let value = value.split(')').next().unwrap_or_default();
            let Ok(id) = id.parse() else { continue };
            seen.insert(id);
            if varying.contains(value) {
                divergent.insert(id);
            }
        }
    }
    (seen, divergent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_llvm_says_is_read() {
        let said = "UniformityInfo for function 'k':\nDEFINITIONS\n  DIVERGENT:   %4 = call noundef i32 @tid()\n               %5 = add i32 1, 2\n  DIVERGENT:   call void @__probe(i32 noundef 1, i64 noundef %4) #5\n  DIVERGENT:   call void @__probe(i32 noundef 2, i64 noundef %5) #5\nUniformityInfo for function 'f':\n  DIVERGENT:   call void @__probe(i32 noundef 3, i64 noundef %5)\n";
        let kernels = kernels("!0 = !{ptr @k, !\"kernel\", i32 1}");
        let (seen, divergent) = probes(said, &kernels);
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), [1, 2]);
        assert_eq!(divergent.into_iter().collect::<Vec<_>>(), [1]);
    }
}
