//! The plan: which programs, inputs and variants to measure. See `tests/gpu/plan.toml`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use regex::Regex;
use serde::Deserialize;

/// Everything that is to be measured.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// What holds for every program.
    #[serde(default)]
    pub defaults: Defaults,
    /// The variants of programs that name their `launch`, before their own.
    #[serde(default, rename = "variant")]
    pub variants: Vec<Variant>,
    /// The programs, in the order of the report.
    #[serde(default, rename = "program")]
    pub programs: Vec<Program>,
    /// Runs under compute-sanitizer.
    pub sanitize: Option<Sanitize>,
}

/// What holds for every program unless it says otherwise.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Defaults {
    /// Flags of every compilation, beside those of dynamic parallelism.
    pub nvcc_flags: Vec<String>,
    /// Directories for `-I`, relative to the repository.
    pub include_dirs: Vec<PathBuf>,
    /// Arguments of every run; `{repeat}`, `{variant}` and `{input}` are replaced.
    pub run_args: Vec<String>,
    /// How often a program repeats its measurement, unless `--repeat` says.
    pub repeat: u32,
    /// After how many seconds a run is given up.
    pub timeout_s: u64,
    /// After how many seconds a compilation or a rewrite is given up.
    pub build_timeout_s: u64,
}

impl Default for Defaults {
    fn default() -> Self {
        Defaults {
            nvcc_flags: Vec::new(),
            include_dirs: Vec::new(),
            run_args: Vec::new(),
            repeat: 10,
            timeout_s: 60,
            build_timeout_s: 300,
        }
    }
}

/// One program of the corpus.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// The name, which is also the name of the result file.
    pub name: String,
    /// The source, relative to the repository. What it includes with quotes goes along.
    pub source: PathBuf,
    /// Further files that a compilation needs.
    #[serde(default)]
    pub files: Vec<PathBuf>,
    /// Further compiler flags.
    #[serde(default)]
    pub nvcc_flags: Vec<String>,
    /// Instead of the default.
    pub timeout_s: Option<u64>,
    /// Whether all variants have to print the same checksum for an input.
    #[serde(default = "yes")]
    pub compare_checksums: bool,
    /// The inputs.
    #[serde(rename = "input")]
    pub inputs: Vec<Input>,
    /// Where the plan's variants are rewritten, as in [`Variant::at`]; without it the program has only its own variants.
    pub launch: Option<At>,
    /// The variants of the program's own source.
    #[serde(default, rename = "variant")]
    pub variants: Vec<Variant>,
    /// The same computation from other sources.
    #[serde(default, rename = "baseline")]
    pub baselines: Vec<Variant>,
}

fn yes() -> bool {
    true
}

/// An input of a program.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The name in tables.
    pub name: String,
    /// The arguments that select it.
    #[serde(default)]
    pub args: Vec<String>,
}

/// One way to run a program: as it is, with other flags, or rewritten.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// The name in tables.
    pub name: String,
    /// The source, for a baseline.
    pub source: Option<PathBuf>,
    /// The arguments that select it.
    #[serde(default)]
    pub args: Vec<String>,
    /// The rewrites to apply, in order.
    #[serde(default)]
    pub apply: Vec<String>,
    /// The launches to rewrite.
    pub at: Option<At>,
    /// Options of the rewrites.
    #[serde(default)]
    pub set: BTreeMap<String, toml::Value>,
    /// Further compiler flags.
    #[serde(default)]
    pub nvcc_flags: Vec<String>,
    /// The inputs to run; all of them when left out.
    pub inputs: Option<Vec<String>>,
    /// Of a variant of all programs: those in which what it applies is refused.
    #[serde(default)]
    pub except: Vec<String>,
    /// Instead of the program's.
    pub timeout_s: Option<u64>,
}

/// Regular expressions for the lines of launches; exactly one line has to match each. What is to be applied is applied to the
/// first launch, then to the second in what came out.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum At {
    /// One launch.
    One(String),
    /// Several launches.
    Several(Vec<String>),
}

impl At {
    /// The regular expressions, in order.
    pub fn lines(&self) -> &[String] {
        match self {
            At::One(line) => std::slice::from_ref(line),
            At::Several(lines) => lines,
        }
    }
}

/// Runs under compute-sanitizer.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sanitize {
    /// The tools: memcheck, racecheck, synccheck, initcheck.
    pub tools: Vec<String>,
    /// After how many seconds a run is given up.
    #[serde(default = "sanitize_timeout")]
    pub timeout_s: u64,
    /// What to run.
    #[serde(default, rename = "run")]
    pub runs: Vec<SanitizeRun>,
}

fn sanitize_timeout() -> u64 {
    120
}

/// Some variants of one program with one small input.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SanitizeRun {
    /// The program's name.
    pub program: String,
    /// The names of variants or baselines; one of each binary that was rewritten when left out.
    pub variants: Option<Vec<String>>,
    /// The arguments that select the input.
    #[serde(default)]
    pub args: Vec<String>,
}

impl Plan {
    /// Reads and checks a plan.
    pub fn load(path: &Path) -> Result<Plan> {
        let text = std::fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))?;
        Self::parse(&text).with_context(|| format!("{} is no valid plan", path.display()))
    }

    /// Parses and checks the text of a plan.
    pub fn parse(text: &str) -> Result<Plan> {
        let mut plan: Plan = toml::from_str(text)?;
        for variant in &plan.variants {
            let name = &variant.name;
            ensure!(
                variant.at.is_none() && variant.source.is_none() && variant.inputs.is_none(),
                "the variant `{name}` of all programs can't have `at`, `source` or `inputs`"
            );
        }
        for variant in &plan.variants {
            let mut unknown = variant.except.iter();
            if let Some(name) = unknown.find(|name| plan.programs.iter().all(|program| program.name != **name)) {
                bail!(
                    "the variant `{}` is left out of `{name}`, which is no program",
                    variant.name
                );
            }
        }
        for program in &mut plan.programs {
            program.add_variants(&plan.variants);
        }
        let mut names = BTreeSet::new();
        for program in &plan.programs {
            ensure!(
                names.insert(&program.name),
                "the program `{}` is there twice",
                program.name
            );
            program.check().with_context(|| format!("program `{}`", program.name))?;
        }
        for run in plan.sanitize.iter().flat_map(|sanitize| &sanitize.runs) {
            let program = plan
                .programs
                .iter()
                .find(|program| program.name == run.program)
                .with_context(|| format!("sanitize: there is no program `{}`", run.program))?;
            for name in run.variants.iter().flatten() {
                ensure!(
                    program.all_variants().any(|(variant, _)| variant.name == *name),
                    "sanitize: `{}` has no variant `{name}`",
                    program.name
                );
            }
        }
        Ok(plan)
    }
}

impl SanitizeRun {
    /// The variants of the program to run, in the program's order.
    pub fn selected<'p>(&self, program: &'p Program) -> Vec<&'p Variant> {
        let mut selected: Vec<&Variant> = Vec::new();
        for (variant, _) in program.all_variants() {
            let wanted = match &self.variants {
                Some(names) => names.contains(&variant.name),
                None => !variant.apply.is_empty() && !selected.iter().any(|other| other.same_binary(variant)),
            };
            if wanted {
                selected.push(variant);
            }
        }
        selected
    }
}

impl Variant {
    /// Whether two variants differ in arguments alone.
    pub fn same_binary(&self, other: &Variant) -> bool {
        (&self.source, &self.apply, &self.at) == (&other.source, &other.apply, &other.at)
            && (&self.set, &self.nvcc_flags) == (&other.set, &other.nvcc_flags)
    }
}

impl Program {
    /// Variants and then baselines, each with whether it is a baseline.
    pub fn all_variants(&self) -> impl Iterator<Item = (&Variant, bool)> {
        self.variants
            .iter()
            .map(|variant| (variant, false))
            .chain(self.baselines.iter().map(|variant| (variant, true)))
    }

    /// Puts the plan's variants before the program's own, which may replace them.
    fn add_variants(&mut self, standard: &[Variant]) {
        let Some(launch) = &self.launch else { return };
        let own = std::mem::take(&mut self.variants);
        for variant in standard {
            if own.iter().any(|own| own.name == variant.name) || variant.except.contains(&self.name) {
                continue;
            }
            let mut variant = variant.clone();
            if !variant.apply.is_empty() {
                variant.at = Some(launch.clone());
            }
            self.variants.push(variant);
        }
        self.variants.extend(own);
    }

    fn check(&self) -> Result<()> {
        check_name(&self.name)?;
        ensure!(!self.variants.is_empty(), "there is no variant");
        ensure!(!self.inputs.is_empty(), "there is no input");
        let mut inputs = BTreeSet::new();
        for input in &self.inputs {
            ensure!(
                inputs.insert(input.name.as_str()),
                "the input `{}` is there twice",
                input.name
            );
        }
        let mut names = BTreeSet::new();
        for (variant, baseline) in self.all_variants() {
            let name = &variant.name;
            check_name(name)?;
            ensure!(names.insert(name), "the variant `{name}` is there twice");
            ensure!(
                variant.source.is_some() == baseline,
                "`{name}`: baselines, and only these, have a source of their own"
            );
            match &variant.at {
                Some(at) => {
                    ensure!(!at.lines().is_empty(), "`{name}`: `at` is empty");
                    for line in at.lines() {
                        Regex::new(line).with_context(|| format!("`{name}`: at"))?;
                    }
                    ensure!(!variant.apply.is_empty(), "`{name}`: `at` without `apply`");
                }
                None => ensure!(variant.apply.is_empty(), "`{name}`: `apply` without `at`"),
            }
            ensure!(
                variant.set.is_empty() || !variant.apply.is_empty(),
                "`{name}`: `set` without `apply`"
            );
            for (key, value) in &variant.set {
                option_text(value).with_context(|| format!("`{name}`: set.{key}"))?;
            }
            for input in variant.inputs.iter().flatten() {
                ensure!(inputs.contains(input.as_str()), "`{name}`: there is no input `{input}`");
            }
        }
        Ok(())
    }
}

/// Names become names of files and directories.
fn check_name(name: &str) -> Result<()> {
    let fine = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    ensure!(
        !name.is_empty() && name.chars().all(fine) && !name.starts_with('.'),
        "`{name}` is no name: letters, digits, `-`, `_` and `.` are allowed"
    );
    Ok(())
}

/// An option's value as the command line wants it.
pub fn option_text(value: &toml::Value) -> Result<String> {
    Ok(match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Integer(number) => number.to_string(),
        toml::Value::Float(number) => number.to_string(),
        toml::Value::Boolean(flag) => flag.to_string(),
        other => bail!("{} is no option's value", other.type_str()),
    })
}

/// The number (from 1) of the one line of `text` that matches `at`.
pub fn launch_line(text: &str, at: &str) -> Result<usize> {
    let at = Regex::new(at)?;
    let lines: Vec<usize> = text
        .lines()
        .enumerate()
        .filter(|(_, line)| at.is_match(line) && !line.trim_start().starts_with("//"))
        .map(|(index, _)| index + 1)
        .collect();
    match lines.as_slice() {
        [line] => Ok(*line),
        [] => bail!("no line matches `{at}`"),
        several => bail!("`{at}` matches the lines {several:?}; make it match one"),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const PROGRAM: &str = r#"
[[program]]
name = "bfs"
source = "bfs.cu"
input = [{ name = "tree", args = ["--input", "tree"] }]
variant = [{ name = "naive" }, VARIANT]
"#;

    fn parse(variant: &str, rest: &str) -> Result<Plan> {
        Plan::parse(&(PROGRAM.replace("VARIANT", variant) + rest))
    }

    #[test]
    fn a_plan_is_read() {
        let plan = parse(
            r#"{ name = "t64", apply = ["threshold"], at = "expand<<<", set = { threshold = 64 } }"#,
            "[sanitize]\ntools = [\"memcheck\"]\nrun = [{ program = \"bfs\", variants = [\"t64\"] }]",
        )
        .unwrap();
        let variant = &plan.programs[0].variants[1];
        assert_eq!(option_text(&variant.set["threshold"]).unwrap(), "64");
        assert_eq!(plan.defaults.timeout_s, 60);
        assert!(plan.programs[0].compare_checksums);
    }

    #[test]
    fn variants_of_all_programs() {
        let text = r#"
            [[variant]]
            name = "naive"
            [[variant]]
            name = "t64"
            apply = ["threshold"]
            [[variant]]
            name = "other"
            apply = ["coarsen"]
            except = ["qt"]
            [[program]]
            name = "qt"
            source = "qt.cu"
            launch = ["count<<<", "move<<<"]
            input = [{ name = "flat" }]
            variant = [{ name = "naive", args = ["own"] }, { name = "t8", apply = ["threshold"], at = "count<<<" }]
        "#;
        let plan = Plan::parse(text).unwrap();
        let variants = &plan.programs[0].variants;
        let names: Vec<&str> = variants.iter().map(|variant| variant.name.as_str()).collect();
        assert_eq!(names, ["t64", "naive", "t8"]);
        let lines = |variant: &Variant| variant.at.as_ref().map(|at| at.lines().to_vec());
        assert_eq!(lines(&variants[0]).unwrap(), ["count<<<", "move<<<"]);
        assert_eq!(lines(&variants[1]), None);
        assert_eq!(lines(&variants[2]).unwrap(), ["count<<<"]);
        let error = Plan::parse("[[variant]]\nname = \"a\"\napply = [\"x\"]\nat = \"y\"").unwrap_err();
        assert!(format!("{error:#}").contains("`at`"));
        let error = Plan::parse(&text.replace("except = [\"qt\"]", "except = [\"tq\"]")).unwrap_err();
        assert!(format!("{error:#}").contains("left out of `tq`"));
    }

    #[test]
    fn mistakes_are_named() {
        for (variant, rest, part) in [
            ("{ name = \"naive\" }", "", "twice"),
            ("{ name = \"a/b\" }", "", "no name"),
            ("{ name = \"a\", apply = [\"x\"] }", "", "without `at`"),
            ("{ name = \"a\", at = \"x\" }", "", "without `apply`"),
            ("{ name = \"a\", apply = [\"x\"], at = \"(\" }", "", "at"),
            ("{ name = \"a\", inputs = [\"road\"] }", "", "no input `road`"),
            ("{ name = \"a\", source = \"b.cu\" }", "", "baselines"),
            ("{ name = \"a\", aply = [] }", "", "aply"),
            (
                "{ name = \"a\" }",
                "[sanitize]\ntools = []\nrun = [{ program = \"bfs\", variants = [\"b\"] }]",
                "no variant `b`",
            ),
        ] {
            let error = format!("{:#}", parse(variant, rest).unwrap_err());
            assert!(error.contains(part), "{variant}: {error}");
        }
    }

    #[test]
    fn a_launch_is_found_by_its_line() {
        let text = "// expand<<<a>>>\n  expand<<<1, 1>>>();\nother<<<1, 1>>>();\n";
        assert_eq!(launch_line(text, "expand<<<").unwrap(), 2);
        assert!(launch_line(text, "missing").is_err());
        assert!(launch_line(text, "<<<1").unwrap_err().to_string().contains("[2, 3]"));
    }
}
