//! A function as rewrites look at it, and which one stands around a place.

use std::sync::Arc;

use gridfuse_analysis::base::db::{Db, SourceFile};
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::Span;
use gridfuse_analysis::hir::extents::functions_near;
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::names::unqualified;
use gridfuse_analysis::hir::{Body, ExprId, body};

/// A function with what is asked of its text.
pub struct Function<'db> {
    /// The database.
    pub db: &'db dyn Db,
    /// The function.
    pub item: FunctionItem<'db>,
    /// Its file.
    pub file: SourceFile,
    /// The file's text.
    pub text: Arc<str>,
    /// Its offset in it.
    pub start: u32,
    /// Its body.
    pub body: Arc<Body>,
}

impl<'db> Function<'db> {
    /// Looks at a function.
    pub fn new(db: &'db dyn Db, item: FunctionItem<'db>) -> Function<'db> {
        let file = item.file(db);
        Function {
            db,
            item,
            file,
            text: file.text(db),
            start: item.start(db),
            body: body(db, item),
        }
    }

    /// Its name without namespaces.
    pub fn name(&self) -> &'db str {
        unqualified(self.item.name(self.db))
    }

    /// A span of it as a place.
    pub fn place(&self, span: Span) -> FileRange {
        FileRange {
            file: self.file,
            range: span.shift(self.start),
        }
    }

    /// Where its name stands.
    pub fn name_place(&self) -> FileRange {
        self.place(self.item.signature(self.db).name_span)
    }

    /// The source of an expression.
    pub fn source(&self, expr: ExprId) -> &str {
        self.body.expr(expr).span.shift(self.start).text(&self.text)
    }

    /// It is a kernel.
    pub fn is_kernel(&self) -> bool {
        self.item.signature(self.db).kernel
    }

    /// The name of its batch, where it is a kernel that an aggregator launches.
    pub fn batch(&self) -> Option<&str> {
        let first = self.body.binding(*self.body.params.first()?);
        let base = first.ty.base.trim_start_matches("::");
        let is_batch = is_batch(base) && first.ty.is_value();
        (self.is_kernel() && is_batch).then_some(first.name.as_str())
    }

    /// Index and name of its arena, where it has one.
    pub fn arena(&self) -> Option<(usize, String)> {
        let index = self.body.params.iter().position(|p| {
            let ty = &self.body.binding(*p).ty;
            ty.base.trim_start_matches("::") == ARENA && ty.is_value()
        })?;
        Some((index, self.body.binding(self.body.params[index]).name.clone()))
    }
}

/// The type of the parameter.
pub const ARENA: &str = "gridfuse::Arena";

/// The type of an aggregated kernel's first parameter, without its argument.
pub const BATCH: &str = "gridfuse::Batch";

/// The same for a kernel that launches in its turn, or that such a kernel launches.
pub const NESTED_BATCH: &str = "gridfuse::NestedBatch";

/// The type is one of these.
pub fn is_batch(ty: &str) -> bool {
    let name = ty.split_once('<').map(|(name, _)| name.trim_end());
    name.is_some_and(|name| name == BATCH || name == NESTED_BATCH)
}

/// The function around a place.
pub fn function_around(db: &dyn Db, place: FileRange) -> Option<FunctionItem<'_>> {
    let functions = functions_near(db, place.file, place.range);
    functions
        .into_iter()
        .filter(|f| {
            let start = f.start(db);
            f.has_body(db) && start <= place.range.start && place.range.end <= start + f.text(db).len() as u32
        })
        .min_by_key(|f| f.text(db).len())
}
