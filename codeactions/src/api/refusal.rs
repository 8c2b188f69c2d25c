//! Why a rewrite is refused, or what it takes for granted.

use gridfuse_analysis::base::place::FileRange;

/// A reason for a refusal, or something that is taken for granted, with its place where there is one.
#[derive(Clone, Debug, PartialEq, Eq, salsa::SalsaValue)]
pub struct Reason {
    /// A sentence fragment without full stop: `the child reads its result after __syncthreads()`. What stands before a colon or a
    /// parenthesis is the short form.
    pub text: String,
    /// Where.
    pub place: Option<FileRange>,
}

/// The refusal of a rewrite: never empty.
#[derive(Clone, Debug, PartialEq, Eq, salsa::SalsaValue)]
pub struct Ineligible(pub Vec<Reason>);

/// Reasons against a rewrite, collected so that all of them can be shown.
#[derive(Default)]
pub struct Refusals(Vec<Reason>);

impl Refusals {
    /// Adds a reason.
    pub fn add(&mut self, text: impl Into<String>, place: Option<FileRange>) {
        let reason = Reason {
            text: text.into(),
            place,
        };
        if !self.0.contains(&reason) {
            self.0.push(reason);
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// An error when there is any.
    pub fn check(&mut self) -> Result<(), Ineligible> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(Ineligible(std::mem::take(&mut self.0)))
        }
    }
}

/// A single reason as a refusal.
pub fn refuse(text: impl Into<String>, place: Option<FileRange>) -> Ineligible {
    Ineligible(vec![Reason {
        text: text.into(),
        place,
    }])
}
