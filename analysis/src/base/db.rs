//! The incremental database and its inputs. [`crate::host`] changes them.
#![allow(
    missing_docs,
    reason = "the functions that salsa's macros generate carry no documentation; the fields do"
)]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::base::command::CompileCommand;
use crate::base::mask::{Directive, Masked};
use crate::base::parsed::LastTrees;
use crate::base::preprocess::IncludeItem;
use crate::base::preprocess::Line;
use crate::base::preprocess::{Branch, SpecifierMacros};
use crate::base::settings::Settings;

/// One source file: from disk, or as it stands unsaved in an editor.
#[salsa::input(debug)]
pub struct SourceFile {
    /// Absolute path (or a made-up one in tests).
    #[returns(deref)]
    pub path: PathBuf,
    /// The text.
    #[returns(clone)]
    pub text: Arc<str>,
    /// Every `#include` in the text, whatever `#if` it stands under. What other files mean hangs on these, and they hardly ever
    /// change: so they are kept apart from the text, which does with every edit.
    #[returns(clone)]
    pub includes: Arc<Vec<IncludeItem>>,
    /// What the text says, where that is known without reading it.
    #[returns(ref)]
    pub(crate) patched: Option<Arc<PatchedText>>,
    /// For incremental parsing, where it is being edited.
    #[returns(ref)]
    pub(crate) last_trees: Option<LastTrees>,
    /// What its directives say; `None`: the text is asked. See [`crate::host`].
    #[returns(ref)]
    pub(crate) settled_lines: Option<Arc<Vec<Line>>>,
}

/// What a text says, where it differs from an earlier one inside one body alone.
#[derive(Clone, Debug, PartialEq, salsa::SalsaValue)]
pub struct PatchedText {
    /// Its directives.
    pub(crate) directives: Arc<Vec<Directive>>,
    /// What these say.
    pub(crate) lines: Arc<Vec<Line>>,
    /// The text masked.
    pub(crate) masked: Arc<Masked>,
    /// What it was masked with: all of this holds as long as nobody says anything else.
    pub(crate) branches: Vec<Branch>,
    /// The same.
    pub(crate) macros: SpecifierMacros,
}

/// The files of the workspace and the settings that analyses read.
#[salsa::input(singleton, debug)]
pub struct Workspace {
    /// All known files by path.
    #[returns(clone)]
    pub files: Arc<BTreeMap<PathBuf, SourceFile>>,
    /// Directories in which `#include` looks after the including file's own.
    #[returns(clone)]
    pub include_dirs: Arc<Vec<PathBuf>>,
    /// What the project says about itself, by the directory that it is said of: the nearest one above a file counts.
    #[returns(clone)]
    pub settings: Arc<BTreeMap<PathBuf, Arc<Settings>>>,
    /// The commands that compile each file, by the file's path.
    #[returns(clone)]
    pub commands: Arc<BTreeMap<PathBuf, Vec<Arc<CompileCommand>>>>,
}

/// What the queries see.
#[salsa::db]
pub trait Db: salsa::Database {}

/// The database. A clone is a snapshot that another thread may read.
#[salsa::db]
#[derive(Clone)]
pub struct Database {
    storage: salsa::Storage<Self>,
    pub(crate) executions: Arc<Mutex<Option<Vec<String>>>>,
    pub(crate) validations: Arc<AtomicUsize>,
}

#[salsa::db]
impl salsa::Database for Database {}

#[salsa::db]
impl Db for Database {}

impl Database {
    /// A database; one that is `observed` can tell which queries execute, and is slower.
    pub(crate) fn new(observed: bool) -> Self {
        let executions: Arc<Mutex<Option<Vec<String>>>> = Arc::default();
        let validations: Arc<AtomicUsize> = Arc::default();
        let (log, validated) = (executions.clone(), validations.clone());
        let observer = move |event: salsa::Event| match event.kind {
            salsa::EventKind::WillExecute { database_key } => {
                if let Ok(mut log) = log.lock()
                    && let Some(log) = log.as_mut()
                {
                    log.push(format!("{database_key:?}"));
                }
            }
            salsa::EventKind::DidValidateMemoizedValue { .. } => {
                validated.fetch_add(1, Ordering::Relaxed);
            }
            _ => {}
        };
        let observer = observed.then(|| Box::new(observer) as Box<dyn Fn(salsa::Event) + Send + Sync>);
        Database {
            storage: salsa::Storage::new(observer),
            executions,
            validations,
        }
    }
}
