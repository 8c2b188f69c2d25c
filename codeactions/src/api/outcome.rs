//! What a rewrite does to a launch, remembered until something changes that it looked at: hover, menu, lens and the rewrites that are
//! made of others all ask for the same. What was found out for a few hundred launches is kept over edits.

use std::hash::{Hash, Hasher};

use gridfuse_analysis::base::db::Db;
use gridfuse_analysis::facts::launch::LaunchId;
use gridfuse_analysis::hir::items::FunctionItem;

use crate::api::refusal::Ineligible;
use crate::api::rewrite::{Options, Rewrite, Verdict};
use crate::api::source_edit::SourceEdit;

/// A rewrite as a key: its id says which.
#[derive(Clone, Copy, salsa::SalsaValue)]
struct Key(&'static Rewrite);

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.0.id == other.0.id
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.id.hash(state);
    }
}

/// The edit of a rewrite with the default options, or the refusal.
#[salsa::tracked(returns(ref), lru = 512)]
fn outcome<'db>(
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    index: u32,
    rewrite: Key,
) -> Result<SourceEdit, Ineligible> {
    rewrite.0.apply(db, LaunchId { function, index }, &Options::default())
}

impl Rewrite {
    /// The edit that the rewrite makes, or its refusal.
    ///
    /// # Errors
    /// The reasons why it can't be applied: at least one.
    pub fn edit<'db>(
        &'static self,
        db: &'db dyn Db,
        launch: LaunchId<'db>,
        options: &Options,
    ) -> Result<SourceEdit, Ineligible> {
        match self.remembered(db, launch, options) {
            Some(outcome) => outcome.clone(),
            None => self.apply(db, launch, options),
        }
    }

    /// Whether the rewrite can be applied, and what it takes for granted.
    pub fn verdict<'db>(&'static self, db: &'db dyn Db, launch: LaunchId<'db>, options: &Options) -> Verdict {
        match self.remembered(db, launch, options) {
            Some(outcome) => Verdict::of(outcome),
            None => Verdict::of(&self.apply(db, launch, options)),
        }
    }

    fn remembered<'db>(
        &'static self,
        db: &'db dyn Db,
        launch: LaunchId<'db>,
        options: &Options,
    ) -> Option<&'db Result<SourceEdit, Ineligible>> {
        let default = *options == Options::default();
        default.then(|| outcome(db, launch.function, launch.index, Key(self)))
    }
}
