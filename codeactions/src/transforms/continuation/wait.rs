//! A wait for child grids, and how its statement goes.

use gridfuse_analysis::base::db::{Db, SourceFile};
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::preprocess::MacroState;
use gridfuse_analysis::base::span::{Span, TextRange};
use gridfuse_analysis::facts::effects::effects;
use gridfuse_analysis::facts::launch::Places;
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::macros::function_macros;
use gridfuse_analysis::hir::names::unqualified;
use gridfuse_analysis::hir::syntax_error::syntax_error;
use gridfuse_analysis::hir::{Body, ExprId, ExprKind, StmtId, StmtKind, body};

use crate::api::refusal::{Ineligible, Refusals, refuse};
use crate::edit::builder::EditBuilder;
use crate::edit::{lex, style};
use crate::emit::target;
use crate::facts::pure;
use crate::facts::site::function_around;

/// What asks for errors of launches, and waits for nothing.
pub const ASKS: &str = "cudaPeekAtLastError";

/// A wait for child grids.
pub struct Wait<'db> {
    /// The database.
    pub db: &'db dyn Db,
    /// The kernel that waits.
    pub function: FunctionItem<'db>,
    /// Its file.
    pub file: SourceFile,
    /// Its offset.
    pub start: u32,
    /// Its body.
    pub body: std::sync::Arc<Body>,
    /// Where the parts of it stand.
    pub places: Places,
    /// The call.
    pub call: ExprId,
    /// The name as written.
    pub name: String,
}

impl<'db> Wait<'db> {
    pub fn at(db: &'db dyn Db, place: FileRange) -> Result<Wait<'db>, Ineligible> {
        let nothing = || refuse("no wait for child grids stands here", Some(place));
        let function = function_around(db, place).ok_or_else(nothing)?;
        let start = function.start(db);
        let body = body(db, function);
        let found = body.exprs.iter().enumerate().find_map(|(index, expr)| {
            let range = expr.span.shift(start);
            let here = range.start <= place.range.end && place.range.start <= range.end;
            let name = waits(&expr.kind).filter(|_| here)?;
            Some((ExprId(index as u32), name.to_owned()))
        });
        let (call, name) = found.ok_or_else(nothing)?;
        Ok(Wait {
            db,
            function,
            file: function.file(db),
            start,
            places: Places::of(&body),
            body,
            call,
            name,
        })
    }

    /// Whether an expression of the kernel is a wait.
    pub fn is_one(&self, expr: ExprId) -> bool {
        waits(&self.body.expr(expr).kind).is_some()
    }

    /// A span of the kernel as a place.
    pub fn place(&self, span: Span) -> FileRange {
        FileRange {
            file: self.file,
            range: span.shift(self.start),
        }
    }

    /// The place of the call.
    pub fn here(&self) -> FileRange {
        self.place(self.body.expr(self.call).span)
    }

    /// The kernel's name without namespaces.
    pub fn kernel(&self) -> &'db str {
        unqualified(self.function.name(self.db))
    }

    /// The statement, where the wait is one of its own.
    pub fn statement(&self) -> Option<StmtId> {
        let stmt = self.places.statement_of(self.call)?;
        let alone = matches!(self.body.stmt(stmt).kind, StmtKind::Expr(e) if self.body.strip_parens(e) == self.call);
        (alone && !self.body.expr(self.call).from_macro).then_some(stmt)
    }

    /// What an assumption about failures says where a macro around the wait makes a string of it: `#define CHECK(call) check(call, #call)`.
    pub fn shown(&self) -> String {
        self.shown_by().map_or(String::new(), |name| {
            format!("; and `{name}` shows the wait's text, which is another one now, only where something fails")
        })
    }

    fn shown_by(&self) -> Option<String> {
        let around = self.places.statement_of(self.call)?;
        let text = self.file.text(self.db);
        let source = self.place(self.body.stmt(around).span).range.text(&text);
        let states = &function_macros(self.db, self.function).states;
        let makes_strings = |name: &&str| {
            let bodies = states
                .get(*name)
                .into_iter()
                .flatten()
                .filter_map(|(_, state)| match state {
                    MacroState::Defined(item) => Some(item.body.replace("##", "")),
                    _ => None,
                });
            bodies.into_iter().any(|body| body.contains('#'))
        };
        lex::identifiers(source).find(makes_strings).map(str::to_owned)
    }

    /// The word that names the wait, where it is written in the kernel and not in a macro.
    pub fn word(&self) -> Result<TextRange, Ineligible> {
        let here = self.here();
        let text = self.file.text(self.db);
        let source = here.range.text(&text);
        let words: Vec<lex::Token> = lex::code_tokens(source)
            .into_iter()
            .filter(|t| t.text(source) == unqualified(&self.name))
            .collect();
        let [word] = words.as_slice() else {
            return Err(refuse("the wait is hidden by a macro", Some(here)));
        };
        let at = here.range.start;
        Ok(TextRange::new(at + word.start as u32, at + word.end as u32))
    }

    /// Leaves a question for errors of launches in the place of the wait.
    ///
    /// # Errors
    /// It is hidden by a macro.
    pub fn ask_only(&self, edit: &mut EditBuilder<'_>) -> Result<(), Ineligible> {
        let range = self.word()?;
        edit.replace(FileRange { file: self.file, range }, ASKS);
        Ok(())
    }

    pub fn refuse_common(&self, refusals: &mut Refusals) {
        let (db, kernel) = (self.db, self.kernel());
        let signature = self.function.signature(db);
        if !signature.kernel {
            refusals.add(
                format!("`{kernel}` isn't a kernel: what its callers do after the wait isn't known"),
                Some(self.here()),
            );
        }
        if let Some(error) = syntax_error(db, self.function) {
            refusals.add(
                format!("`{kernel}` isn't understood completely: a syntax error"),
                Some(self.place(error)),
            );
        }
        for (span, reason) in &self.body.problems {
            refusals.add(
                format!("`{kernel}` isn't understood completely: {reason}"),
                Some(self.place(*span)),
            );
        }
        let call = self.body.expr(self.call).span;
        for group in self.function.decided(db) {
            if group.start < call.end && call.start < group.end {
                refusals.add("an #if decides what is compiled here", Some(self.place(*group)));
            }
        }
        if self.places.in_preprocessor(&self.body, self.call) {
            refusals.add("the wait stands under an #if", Some(self.here()));
        }
        let all = effects(db, self.function);
        let other = all.launches.iter().find(|found| {
            let own = self.body.launches.iter();
            !own.clone().any(|launch| {
                let launch = self.place(self.body.expr(*launch).span);
                launch.file == found.place.file && launch.range.contains(found.place.range)
            })
        });
        if let Some(found) = other.filter(|_| all.launches.len() > self.body.launches.len()) {
            refusals.add(
                format!("a function that `{kernel}` calls launches as well"),
                Some(found.place),
            );
        }
        for event in &all.events {
            refusals.add(
                format!("`{kernel}` orders streams by {}", event.what),
                Some(event.place),
            );
        }
    }
}

/// The name of a function that waits for child grids, where this is a call of it.
fn waits(expr: &ExprKind) -> Option<&str> {
    let ExprKind::Call { name: Some(name), .. } = expr else {
        return None;
    };
    let waits = ["cudaDeviceSynchronize", "cudaThreadSynchronize"].contains(&name.trim_start_matches("::"));
    waits.then_some(name.as_str())
}

/// Deletes the statement of a wait, with the `if` around it when nothing else is in that.
pub fn delete(wait: &Wait<'_>, stmt: StmtId, edit: &mut EditBuilder<'_>) {
    let body = &wait.body;
    let mut stmt = stmt;
    let text = edit.text(wait.file);
    let in_list = |stmt: StmtId| {
        // Behind a label a statement has to stay.
        let alone = wait.places.parent(stmt).is_some_and(|p| match &body.stmt(p).kind {
            StmtKind::Case { stmts, .. } => stmts.len() == 1,
            StmtKind::Label(..) => true,
            _ => false,
        });
        !alone && target::stands_in_list(body, &wait.places, &text, wait.start, stmt)
    };
    while let Some(parent) = wait.places.parent(stmt) {
        match &body.stmt(parent).kind {
            StmtKind::Block(all)
                if all.as_slice() == [stmt] && wait.places.parent(parent).is_some_and(|p| drops(wait, p, parent)) =>
            {
                stmt = parent;
            }
            _ if drops(wait, parent, stmt) => stmt = parent,
            _ => break,
        }
    }
    let mut place = wait.place(body.stmt(stmt).span);
    if !in_list(stmt) {
        edit.replace(place, "{}");
        return;
    }
    let start = place.range.start as usize;
    let before = text.get(style::line_start(&text, start)..start).unwrap_or("");
    // Behind other code on the line, a comment may be about that.
    if before.trim().is_empty() {
        place.range.end = behind_comments(&text, place.range.end as usize) as u32;
    }
    edit.delete_lines(place);
}

/// The end of the line on which code ends, together with the comments behind it there; `end` itself where other code follows.
pub fn behind_comments(text: &str, end: usize) -> usize {
    let behind = text.get(end..).unwrap_or("");
    let mut last = 0;
    for token in lex::tokens(behind) {
        if behind.get(last..token.start).is_none_or(|gap| gap.contains('\n')) {
            break;
        }
        if token.kind != lex::TokenKind::Comment {
            return end;
        }
        last = token.end;
    }
    style::line_end(text, end + last)
}

/// The statement is an `if` that does nothing but what `inner` does, and has no other branch.
fn drops(wait: &Wait<'_>, stmt: StmtId, inner: StmtId) -> bool {
    match &wait.body.stmt(stmt).kind {
        StmtKind::If {
            init: None,
            cond: Some(cond),
            then,
            otherwise: None,
            ..
        } => *then == inner && pure::is_plain_condition(&wait.body, *cond),
        _ => false,
    }
}
