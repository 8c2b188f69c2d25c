//! What macros stand for: its text is that of the use, in which no part of it can be told from the others.

use gridfuse_analysis::base::preprocess::MacroState;
use gridfuse_analysis::hir::macros::macro_at;
use gridfuse_analysis::hir::walk::all_stmts;
use gridfuse_analysis::hir::{ExprId, StmtId};

use super::Translation;
use crate::edit::lex;
use crate::facts::of_macro::is_part_of_macro;

impl Translation<'_, '_> {
    /// Refuses an expression that is a part of what a macro stands for: the text at its place says more.
    pub(super) fn refuse_part_of_macro(&mut self, expr: ExprId) {
        if is_part_of_macro(self.body, expr) {
            self.refuse_macro(expr);
        }
    }

    /// Replaces an expression; one that a macro makes can't be.
    pub(super) fn replace(&mut self, expr: ExprId, text: String) {
        let span = self.span(expr);
        let source = self.host.source(span);
        let function = &self.host.function;
        let is_macro = |word: &str| {
            let state = macro_at(function.db, function.item, span.start, word);
            state.is_some_and(|state| *state != MacroState::Undefined)
        };
        if self.body.expr(expr).from_macro && lex::identifiers(source).any(is_macro) {
            self.refuse_macro(expr);
        }
        self.edits.push((span, text));
    }

    /// Refuses a statement beside which the same macro makes others.
    pub(super) fn refuse_parts_of_macro(&mut self, stmt: StmtId) {
        let span = self.body.stmt(stmt).span;
        let inner = all_stmts(self.body, stmt);
        let around: Vec<StmtId> = std::iter::successors(Some(stmt), |s| self.host.places.parent(*s)).collect();
        let mut others = (0..self.body.stmts.len() as u32).map(StmtId);
        let beside = |other: StmtId| {
            let own = self.body.stmt(other).span;
            let apart = own.end <= span.start || span.end <= own.start;
            !apart && !around.contains(&other) && !inner.contains(&other)
        };
        if others.any(beside) {
            let what = crate::edit::one_line::one_line(self.host.source(span));
            self.refuse(
                format!("`{what}` is a macro of several statements: write them out"),
                span,
            );
        }
    }

    fn refuse_macro(&mut self, expr: ExprId) {
        let what = self.host.flat(expr);
        let span = self.span(expr);
        self.refuse(
            format!("a part of the macro `{what}` would be another one on the device: write out what it stands for"),
            span,
        );
    }
}
