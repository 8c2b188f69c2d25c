//! Takes rules of soundness out, one at a time, and sees which tests notice.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use gridfuse_tests::rule_mutants::{Copy, Killers, Record, Rules, VARIABLE, Verdict, records, write_records};
use gridfuse_tests::workspace;

/// Take the rules of tests/rule-mutants/rules.toml out, one at a time, and write down in results.json which tests notice
#[derive(Debug, Parser)]
struct Args {
    /// Only the rule of this name; may be given several times
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Only rules of which results.json doesn't say yet that they are killed
    #[arg(long)]
    missing: bool,
    /// Where the sources are copied to and built; the directory is kept, so that the next time is quicker
    #[arg(long, value_name = "DIR")]
    work: Option<PathBuf>,
    /// Build the fuzzer as well, and put it there, with a script for each rule that runs it without the rule
    #[arg(long, value_name = "DIR")]
    fuzzer: Option<PathBuf>,
    /// Don't see first that the tests are green with all rules in place
    #[arg(long)]
    unchecked: bool,
}

fn main() -> Result<ExitCode> {
    let args = Args::parse();
    let rules = Rules::read()?;
    let mut numbers = Vec::new();
    for name in &args.only {
        numbers.push(rules.number(name)?);
    }
    if numbers.is_empty() {
        numbers.extend(1..=rules.rule.len());
    }
    if args.missing {
        let known = records()?;
        numbers.retain(|number| {
            let rule = number.checked_sub(1).and_then(|index| rules.rule.get(index));
            let record = rule.and_then(|rule| Some((rule, known.get(&rule.name)?)));
            !record.is_some_and(|(rule, record)| record.killed && record.fingerprint == rule.fingerprint())
        });
    }
    let work = args
        .work
        .unwrap_or_else(|| workspace::target_dir().join("rule-mutants"));
    let copy = Copy::make(&work, &rules)?;
    if let Some(to) = &args.fuzzer {
        keep_fuzzer(&copy, &rules, to)?;
    }
    let killers = Killers::new(&copy)?;
    if !args.unchecked {
        killers.check_crates(&rules.rule)?;
    }
    let commit = commit()?;
    let mut survivors = Vec::new();
    for number in numbers {
        let Some(rule) = rules.rule.get(number - 1) else {
            continue;
        };
        let begin = Instant::now();
        let verdict = killers.ask(number, rule)?;
        let seconds = (begin.elapsed().as_secs_f64() * 10.0).round() / 10.0;
        let by = match verdict {
            Verdict::Killed(by) => {
                println!("{number:3} killed in {seconds} s by {by}: {}", rule.name);
                Some(by)
            }
            Verdict::Survives => {
                println!("{number:3} survives: {}", rule.name);
                survivors.push(rule.name.as_str());
                None
            }
        };
        // After each: whoever interrupts keeps what was found out.
        let mut all = records()?;
        all.retain(|name, _| rules.number(name).is_ok());
        let record = Record {
            killed: by.is_some(),
            by,
            seconds,
            commit: commit.clone(),
            fingerprint: rule.fingerprint(),
        };
        all.insert(rule.name.clone(), record);
        write_records(&all)?;
    }
    if survivors.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!(
        "No test notices that these rules are taken out; add a program to tests/fixtures/once_wrong that is rewritten wrongly without them, \
         or a unit test:"
    );
    for name in survivors {
        eprintln!("  {name}");
    }
    Ok(ExitCode::FAILURE)
}

/// The commit of the sources.
fn commit() -> Result<String> {
    let output = Command::new("git")
        .current_dir(workspace::root())
        .args(["rev-parse", "--short=12", "HEAD"])
        .stdin(Stdio::null())
        .output()
        .context("git can't be started")?;
    ensure!(output.status.success(), "git doesn't say which commit this is");
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The fuzzer with all rules as choices, and scripts `07_name` that run it without one of them; `00_base` takes out none.
fn keep_fuzzer(copy: &Copy, rules: &Rules, to: &Path) -> Result<()> {
    copy.build(&[
        "build",
        "--locked",
        "--quiet",
        "-p",
        "gridfuse-tests",
        "--all-features",
        "--bin",
        "fuzz",
    ])?;
    fs::create_dir_all(to).with_context(|| format!("{} can't be made", to.display()))?;
    let fuzz = to.join("fuzz");
    fs::copy(copy.program("fuzz"), &fuzz).with_context(|| format!("{} can't be written", fuzz.display()))?;
    let script = |number: usize, name: &str| -> Result<()> {
        let word = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        let name: String = name.chars().map(word).collect();
        let path = to.join(format!("{number:02}_{name}"));
        let text = format!("#!/bin/sh\n{VARIABLE}={number} exec \"$(dirname \"$0\")/fuzz\" \"$@\"\n");
        fs::write(&path, text).with_context(|| format!("{} can't be written", path.display()))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))
            .with_context(|| format!("{} can't be made a program", path.display()))
    };
    script(0, "base")?;
    for (number, rule) in (1..).zip(&rules.rule) {
        script(number, &rule.name)?;
    }
    Ok(())
}
