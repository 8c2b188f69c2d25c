//! What a rewrite does to a launch, remembered until something changes that it looked at: hover, menu, lens and the rewrites that are
//! made of others all ask for the same. What was found out for a few hundred launches is kept over edits.

use gridfuse_analysis::base::db::Db;
use gridfuse_analysis::facts::launch::LaunchId;
use gridfuse_analysis::hir::items::FunctionItem;

use crate::edit::SourceEdit;
use crate::handlers::REWRITES;
use crate::handlers::optimize::Plan;
use crate::rewrite::{Ineligible, Options, Rewrite, Verdict};

/// The edit of a rewrite with the default options, or the refusal. `rewrite`: its place in [`REWRITES`].
#[salsa::tracked(returns(ref), lru = 512)]
fn outcome<'db>(
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    index: u32,
    rewrite: usize,
) -> Result<SourceEdit, Ineligible> {
    let apply = REWRITES.get(rewrite).map(|rewrite| rewrite.apply);
    let launch = LaunchId { function, index };
    apply.map_or(Err(Ineligible(Vec::new())), |apply| {
        apply(db, launch, &Options::default())
    })
}

/// What `optimize` does to a launch, or why nothing.
pub fn plan_of<'db>(db: &'db dyn Db, launch: LaunchId<'db>) -> &'db Result<Plan, Ineligible> {
    plan(db, launch.function, launch.index)
}

#[salsa::tracked(returns(ref), lru = 512)]
fn plan<'db>(db: &'db dyn Db, function: FunctionItem<'db>, index: u32) -> Result<Plan, Ineligible> {
    Plan::make(db, LaunchId { function, index })
}

impl Rewrite {
    /// The edit that the rewrite makes, or its refusal.
    ///
    /// # Errors
    /// The reasons why it can't be applied: at least one.
    pub fn edit<'db>(
        &self,
        db: &'db dyn Db,
        launch: LaunchId<'db>,
        options: &Options,
    ) -> Result<SourceEdit, Ineligible> {
        match self.remembered(db, launch, options) {
            Some(outcome) => outcome.clone(),
            None => (self.apply)(db, launch, options),
        }
    }

    /// Whether the rewrite can be applied, and what it takes for granted.
    pub fn verdict<'db>(&self, db: &'db dyn Db, launch: LaunchId<'db>, options: &Options) -> Verdict {
        match self.remembered(db, launch, options) {
            Some(outcome) => Verdict::of(outcome),
            None => Verdict::of(&(self.apply)(db, launch, options)),
        }
    }

    fn remembered<'db>(
        &self,
        db: &'db dyn Db,
        launch: LaunchId<'db>,
        options: &Options,
    ) -> Option<&'db Result<SourceEdit, Ineligible>> {
        let place = REWRITES.iter().position(|rewrite| rewrite.id == self.id)?;
        let default = *options == Options::default();
        default.then(|| outcome(db, launch.function, launch.index, place))
    }
}
