//! What the page is told.

use gridfuse::schema::{Finding, Launch, Note, Place};
use serde::Serialize;

/// The answer to a question.
#[derive(Debug, Serialize)]
#[serde(tag = "answer", rename_all = "lowercase")]
pub enum Answer {
    /// What is wrong, and where something is launched.
    Check {
        /// Version of gridfuse.
        version: &'static str,
        /// The findings, as `gridfuse check --format json` has them.
        findings: Vec<Finding>,
        /// The launches by device code, in source order.
        launches: Vec<LaunchPlace>,
    },
    /// What is known about a launch.
    Explain {
        /// The launch, as `gridfuse explain --format json` has it; `null`: there is none.
        launch: Option<Box<Explained>>,
    },
    /// What a rewrite makes of the program.
    Rewrite {
        /// The files that it changes or adds.
        files: Vec<Rewritten>,
        /// What it takes for granted.
        assumptions: Vec<Note>,
    },
    /// The rewrite can't be applied.
    Refused {
        /// Why.
        reasons: Vec<Note>,
    },
    /// There is no answer.
    Error {
        /// Why: a sentence.
        message: String,
    },
}

/// Where something is launched.
#[derive(Debug, Serialize)]
pub struct LaunchPlace {
    /// Where.
    pub place: Place,
    /// The launch as written, on one line.
    pub text: String,
}

/// A launch, with what a programmer wants to know of it first.
#[derive(Debug, Serialize)]
pub struct Explained {
    /// Whether something can be done, and what is best.
    pub sentence: String,
    /// What the best rewrite takes for granted, or why none fits.
    pub because: Option<String>,
    /// Who launches, as a sentence.
    pub launching: &'static str,
    /// The id of the best rewrite.
    pub best: Option<&'static str>,
    /// The ids of the rewrites that say something here, in the order of a menu.
    pub menu: Vec<MenuEntry>,
    /// Everything about it.
    pub facts: Launch,
}

/// A rewrite in a menu.
#[derive(Debug, Serialize)]
pub struct MenuEntry {
    /// Its id.
    pub rewrite: &'static str,
    /// What it does.
    pub title: String,
    /// `eligible`, `assumes`, `ineligible` or `contradicted`.
    pub verdict: &'static str,
    /// What is assumed, or why not.
    pub reasons: Vec<Note>,
}

/// A file after a rewrite.
#[derive(Debug, Serialize)]
pub struct Rewritten {
    /// Its name.
    pub name: String,
    /// It wasn't there before.
    pub created: bool,
    /// What stands in it now.
    pub text: String,
    /// The change as `gridfuse rewrite --diff` prints it.
    pub diff: String,
}
