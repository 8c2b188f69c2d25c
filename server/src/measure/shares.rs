//! A measurement in parts: several machines measure a share of the rewrites each, and their reports are put together.

use std::collections::BTreeSet;

use super::report::{Outcome, Report, median};

/// Of each so many rewrites one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Which one: from 1 to `of`.
    number: usize,
    /// Of how many shares: at least 1.
    of: usize,
}

impl Share {
    /// Reads `2/4`, the second of four.
    ///
    /// # Errors
    /// A sentence where it's no share.
    pub fn parse(text: &str) -> Result<Share, String> {
        let parts = text.split_once('/');
        let numbers = parts.and_then(|(number, of)| Some((number.trim().parse().ok()?, of.trim().parse().ok()?)));
        match numbers {
            Some((number, of)) if (1..=of).contains(&number) => Ok(Share { number, of }),
            _ => Err("write it like 2/4, the second of four shares".to_owned()),
        }
    }

    /// Whether it has the rewritten program of this number, from 0.
    pub fn has(self, number: usize) -> bool {
        number % self.of == self.number - 1
    }
}

/// Puts the reports of all shares together. Each has measured the program as it is: the times of all of them count.
///
/// # Errors
/// A sentence where they aren't shares of one measurement.
pub fn join(reports: Vec<(String, Report)>) -> Result<Report, String> {
    let mut reports = reports.into_iter();
    let Some((first_name, mut joined)) = reports.next() else {
        return Err("name the reports of all shares".to_owned());
    };
    let mut variants = vec![std::mem::take(&mut joined.variants)];
    for (name, mut report) in reports {
        for (what, are_same) in [
            ("files", joined.file == report.file),
            ("arguments", joined.args == report.args),
            ("GPUs", joined.machine == report.machine),
            (
                "measured launches",
                joined.sites == report.sites && joined.kernel == report.kernel,
            ),
        ] {
            if !are_same {
                return Err(format!(
                    "{name} and {first_name} can't be compared: their {what} differ"
                ));
            }
        }
        joined.original = both(joined.original, report.original);
        joined.deterministic = match (joined.deterministic, report.deterministic) {
            (Some(one), Some(other)) => Some(one && other),
            _ => None,
        };
        joined.gpus += report.gpus;
        variants.push(std::mem::take(&mut report.variants));
    }
    // A share has each so-and-so-many-th.
    let mut shares: Vec<_> = variants.into_iter().map(Vec::into_iter).collect();
    let mut names = BTreeSet::new();
    loop {
        let round: Vec<_> = shares.iter_mut().filter_map(Iterator::next).collect();
        if round.is_empty() {
            return Ok(joined);
        }
        for variant in round {
            if !names.insert(variant.rewrites.clone()) {
                let rewrites = variant.rewrites;
                return Err(format!(
                    "{rewrites} is in two of the reports: name the report of each share once"
                ));
            }
            joined.variants.push(variant);
        }
    }
}

/// The program as it is, measured twice: what went wrong once counts.
fn both(one: Outcome, other: Outcome) -> Outcome {
    match (one, other) {
        (Outcome::Ran(mut one), Outcome::Ran(other)) => {
            one.times_ms.extend(other.times_ms);
            if one.kernels.is_empty() {
                one.kernels = other.kernels;
            }
            one.median_ms = median(&one.times_ms).unwrap_or_default();
            for error in other.errors {
                if one
                    .errors
                    .iter()
                    .all(|known| (&known.during, &known.name) != (&error.during, &error.name))
                {
                    one.errors.push(error);
                }
            }
            Outcome::Ran(one)
        }
        (Outcome::Ran(_), other) => other,
        (one, _) => one,
    }
}

#[cfg(test)]
mod tests {
    use super::Share;

    #[test]
    fn shares_have_everything_once() {
        let share = |text: &str| Share::parse(text).map(|share| (0..5).filter(|number| share.has(*number)).collect());
        assert_eq!(share("1/2"), Ok(vec![0, 2, 4]));
        assert_eq!(share(" 2 / 2 "), Ok(vec![1, 3]));
        assert_eq!(share("7/9"), Ok(Vec::new()));
        for wrong in ["", "2", "0/2", "3/2", "1/0", "-1/2", "a/b", "1/2/3"] {
            assert!(share(wrong).is_err(), "{wrong}");
        }
    }
}
