//! The tests that have to notice a rule that is taken out, the cheapest first.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::{Copy, Rule, VARIABLE};
use crate::cli::in_parallel;
use crate::once_wrong;

/// What the tests say of a rule that is taken out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// They notice; which of them does.
    Killed(String),
    /// They don't.
    Survives,
}

/// Tests that are asked.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Killer {
    /// The offers for a program that was rewritten wrongly once, or for all of them.
    OnceWrong(Option<String>),
    /// The tests of a crate, or some of them.
    Cargo(Vec<String>),
}

impl Killer {
    fn all() -> Vec<Killer> {
        vec![Killer::OnceWrong(None), Killer::analysis(), Killer::codeactions()]
    }

    /// Those that may notice a rule in this file: the analyses know nothing of rewrites.
    fn of_file(file: &str) -> Vec<Killer> {
        let mut all = Killer::all();
        all.retain(|killer| !file.starts_with("codeactions/") || *killer != Killer::analysis());
        all
    }

    fn analysis() -> Killer {
        Killer::Cargo(
            ["-p", "gridfuse-analysis", "--lib", "--tests"]
                .map(str::to_owned)
                .to_vec(),
        )
    }

    fn codeactions() -> Killer {
        Killer::Cargo(["-p", "gridfuse-codeactions", "--lib"].map(str::to_owned).to_vec())
    }

    /// The killer that a rule names: `once_wrong bound_block`, `codeactions undo`.
    fn named(text: &str) -> Result<Killer> {
        let (tests, name) = text.split_once(' ').unwrap_or((text, ""));
        let mut killer = match tests {
            "once_wrong" => {
                let name = (!name.is_empty()).then(|| format!("{}.cu", name.trim_end_matches(".cu")));
                return Ok(Killer::OnceWrong(name));
            }
            "analysis" => Killer::analysis(),
            "codeactions" => Killer::codeactions(),
            "tests" => {
                let test = ["-p", "gridfuse-tests", "--all-features", "--test", name];
                return Ok(Killer::Cargo(test.map(str::to_owned).to_vec()));
            }
            _ => bail!(
                "a killer is `once_wrong`, `analysis`, `codeactions` or `tests`, and a name behind it, not `{text}`"
            ),
        };
        if let (Killer::Cargo(arguments), false) = (&mut killer, name.is_empty()) {
            arguments.push(name.to_owned());
        }
        Ok(killer)
    }
}

/// Asks tests of a copy.
pub struct Killers<'a> {
    copy: &'a Copy,
    /// The programs, and what is offered for each with all rules in place.
    offers: Vec<(String, String)>,
}

impl<'a> Killers<'a> {
    /// Sees what is offered with all rules in place, which has to be what was written down.
    ///
    /// # Errors
    /// When the copy doesn't compile, or offers something else.
    pub fn new(copy: &'a Copy) -> Result<Killers<'a>> {
        copy.build(&["build", "--locked", "--quiet", "-p", "gridfuse", "--bin", "gridfuse"])?;
        let mut killers = Killers {
            copy,
            offers: Vec::new(),
        };
        let expected = once_wrong::expected();
        let expected =
            fs::read_to_string(&expected).with_context(|| format!("{} can't be read", expected.display()))?;
        let names = once_wrong::names()?;
        let offers = in_parallel(&names, |name| killers.offers_for(name, 0));
        for (name, offers) in names.into_iter().zip(offers) {
            killers.offers.push((name, offers?));
        }
        let all: String = killers.offers.iter().map(|(_, offers)| offers.as_str()).collect();
        ensure!(
            all == expected,
            "the offers for tests/fixtures/once_wrong aren't those of offers.expect; mend that first: cargo test -p gridfuse-tests --test \
             once_wrong"
        );
        Ok(killers)
    }

    /// Sees that the tests of the crates are green with all rules in place.
    ///
    /// # Errors
    /// When they aren't.
    pub fn check_crates(&self, rules: &[Rule]) -> Result<()> {
        let mut all = Killer::all();
        for rule in rules {
            if let Some(killer) = &rule.killer {
                all.push(Killer::named(killer)?);
            }
        }
        let mut asked: Vec<Vec<String>> = Vec::new();
        for killer in all {
            let Killer::Cargo(arguments) = killer else { continue };
            // What is a part of the others isn't asked for again.
            if asked.iter().any(|before| arguments.starts_with(before)) {
                continue;
            }
            if let Verdict::Killed(test) = self.cargo(&arguments, 0)? {
                bail!("{test} fails with all rules in place; mend that first");
            }
            asked.push(arguments);
        }
        Ok(())
    }

    /// Takes a rule out.
    ///
    /// # Errors
    /// When the tests can't be run.
    pub fn ask(&self, number: usize, rule: &Rule) -> Result<Verdict> {
        let killers = match &rule.killer {
            Some(text) => vec![Killer::named(text)?],
            None => Killer::of_file(&rule.file),
        };
        for killer in killers {
            let verdict = match &killer {
                Killer::OnceWrong(name) => self.once_wrong(name.as_deref(), number)?,
                Killer::Cargo(arguments) => self.cargo(arguments, number)?,
            };
            if verdict != Verdict::Survives {
                return Ok(verdict);
            }
        }
        Ok(Verdict::Survives)
    }

    fn offers_for(&self, name: &str, number: usize) -> Result<String> {
        let mut gridfuse = Command::new(self.copy.program("gridfuse"));
        gridfuse.env(VARIABLE, number.to_string());
        once_wrong::offers(&mut gridfuse, name)
    }

    fn once_wrong(&self, only: Option<&str>, number: usize) -> Result<Verdict> {
        let asked: Vec<&(String, String)> = match only {
            Some(wanted) => self.offers.iter().filter(|(name, _)| name == wanted).collect(),
            None => self.offers.iter().collect(),
        };
        ensure!(
            !asked.is_empty(),
            "there is no tests/fixtures/once_wrong/{}",
            only.unwrap_or_default()
        );
        let found = in_parallel(&asked, |(name, before)| match self.offers_for(name, number) {
            Ok(offers) if offers == *before => None,
            // A panic is noticed, too.
            Ok(_) | Err(_) => Some(name.clone()),
        });
        Ok(match found.into_iter().flatten().next() {
            Some(name) => Verdict::Killed(format!("once_wrong {}", name.trim_end_matches(".cu"))),
            None => Verdict::Survives,
        })
    }

    fn cargo(&self, arguments: &[String], number: usize) -> Result<Verdict> {
        let mut all = vec!["test", "--locked"];
        all.extend(arguments.iter().map(String::as_str));
        let mut command = self.copy.cargo(&all);
        command.env(VARIABLE, number.to_string());
        let output = command.output().context("cargo can't be started")?;
        if output.status.success() {
            return Ok(Verdict::Survives);
        }
        let said = String::from_utf8_lossy(&output.stdout);
        let mut failed = said.lines().filter_map(|line| {
            let name = line.strip_prefix("test ")?;
            name.strip_suffix(" ... FAILED")
        });
        let krate = arguments.get(1).map_or("", String::as_str);
        match failed.next() {
            Some(test) => Ok(Verdict::Killed(format!("{krate} {test}"))),
            None => bail!(
                "`cargo {}` failed without a test that does:\n{}",
                all.join(" "),
                String::from_utf8_lossy(&output.stderr)
            ),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn killers_that_are_named() {
        assert_eq!(
            Killer::named("once_wrong bound_block").unwrap(),
            Killer::OnceWrong(Some("bound_block.cu".to_owned()))
        );
        let undo = Killer::named("codeactions undo").unwrap();
        assert!(matches!(undo, Killer::Cargo(all) if all == ["-p", "gridfuse-codeactions", "--lib", "undo"]));
        assert!(Killer::named("nothing").is_err());
    }
}
