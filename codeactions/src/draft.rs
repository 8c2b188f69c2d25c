//! What a rewrite of a launch begins with and ends with: the launch, the edit that is being made, the names that are taken, and what
//! rules it out so far.

use gridfuse_analysis::hir::items::FunctionItem;

use crate::api::refusal::{Ineligible, Refusals, refuse};
use crate::api::rewrite::{At, RewriteCtx};
use crate::api::source_edit::SourceEdit;
use crate::edit::builder::EditBuilder;
use crate::edit::builder::finish;
use crate::edit::include::Header;
use crate::edit::names::Names;
use crate::facts::child::Child;
use crate::facts::site::{Site, site_at};

/// A rewrite that is being worked out. Its parts are borrowed one by one: what looks at the launch adds to the refusals meanwhile.
pub struct Draft<'db> {
    /// The launch.
    pub site: Site<'db>,
    /// Names that generated code can't have.
    pub names: Names,
    /// The edit.
    pub edit: EditBuilder<'db>,
    /// What rules it out.
    pub refusals: Refusals,
}

impl<'db> Draft<'db> {
    /// Begins with the launch that the rewrite is asked for.
    ///
    /// # Errors
    /// There is none by device code at the place, or it isn't there any more.
    pub fn begin(ctx: &RewriteCtx<'_, 'db>) -> Result<Draft<'db>, Ineligible> {
        let site = match ctx.at {
            At::Launch(launch) => Site::new(ctx.db, launch)?,
            At::Place(place) => site_at(ctx.db, place)?,
        };
        Ok(Draft {
            names: Names::default(),
            edit: EditBuilder::new(ctx.db),
            refusals: Refusals::default(),
            site,
        })
    }

    /// The launched kernel, as far as it can be moved or copied; what can't be is refused.
    pub fn child(&mut self) -> Option<Child<'db>> {
        let kernel = self.site.child(&mut self.refusals);
        self.names.add_file(self.site.db, self.site.file);
        Some(self.read(kernel?))
    }

    /// The same for a kernel that isn't launched here, perhaps. Nothing that is generated gets a name of its file.
    pub fn read(&mut self, kernel: FunctionItem<'db>) -> Child<'db> {
        let db = self.site.db;
        self.names.add_file(db, kernel.file(db));
        Child::read(db, kernel, &mut self.names, &mut self.refusals)
    }

    /// The runtime header for the launch's file; that there can't be one is refused.
    pub fn header(&mut self) -> Option<Header> {
        let header = Header::for_file(self.site.db, self.site.file);
        header.map_err(|why| self.refusals.add(why.text, why.place)).ok()
    }

    /// What was found, unless something rules out the rewrite.
    ///
    /// # Errors
    /// All that does; that the launch is not understood where nothing was found and nobody has said why.
    pub fn settle<T>(&mut self, found: Option<T>) -> Result<T, Ineligible> {
        self.refusals.check()?;
        found.ok_or_else(|| self.not_understood())
    }

    /// The refusal of a launch that is unlike any that are known.
    pub fn not_understood(&self) -> Ineligible {
        refuse("the launch is not understood", Some(self.site.here()))
    }

    /// The finished edit.
    ///
    /// # Errors
    /// What rules out the rewrite, and edits that get in each other's way.
    pub fn finish(mut self) -> Result<SourceEdit, Ineligible> {
        self.refusals.check()?;
        finish(self.edit)
    }
}
