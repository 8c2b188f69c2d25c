//! A wait in a loop that one thread runs: the rest of the iteration and the iterations behind it are a kernel of their own, which
//! comes back to itself by the tail of its grid at each wait.
//!
//! The loop stands in that kernel as it was, but begins behind the wait: `for (bool resumed = true; resumed || (cond); step)`. What the
//! thread has in its variables goes along with each launch. Between two waits all is done by one grid, as between two waits before.

use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::{Span, TextRange};
use gridfuse_analysis::facts::effects::effects;
use gridfuse_analysis::facts::launch::{Launchers, who_gets_to};
use gridfuse_analysis::hir::names::unqualified;
use gridfuse_analysis::hir::walk::all_exprs;
use gridfuse_analysis::hir::{BindingId, Body, ExprId, StmtId, StmtKind, Storage};

use super::{Around, Runs, Tail, is_one_block};
use crate::api::refusal::{Ineligible, Reason, refuse};
use crate::api::source_edit::SourceEdit;
use crate::edit::builder::{EditBuilder, finish};
use crate::edit::names::words_with_macros;
use crate::edit::{lex, names, style};
use crate::facts::child::Child;
use crate::transforms::continuation::checked::Checked;
use crate::transforms::continuation::wait::{ASKS, Wait, behind_comments, delete};

/// The loop around a wait.
pub(super) struct Looped {
    /// The loop.
    pub stmt: StmtId,
    /// What `for` declares or does first.
    init: Option<StmtId>,
    cond: Option<ExprId>,
    step: Option<ExprId>,
    /// Its body, a block.
    block: StmtId,
    /// The statements in front of what follows the wait, with the wait and what looks at its error.
    before: Vec<StmtId>,
    /// What follows the wait in the body.
    rest: TextRange,
}

impl Looped {
    /// The loop whose body a wait is a statement of.
    pub(super) fn around(wait: &Wait<'_>, checked: &Checked, text: &str) -> Option<Looped> {
        let (body, stmt) = (&wait.body, checked.stmt);
        let block = wait.places.parent(stmt)?;
        let StmtKind::Block(stmts) = &body.stmt(block).kind else {
            return None;
        };
        let outer = wait.places.parent(block)?;
        let (init, cond, step) = match &body.stmt(outer).kind {
            StmtKind::While {
                cond: Some(cond),
                init: None,
                ..
            } => (None, Some(*cond), None),
            StmtKind::DoWhile { cond, .. } => (None, Some(*cond), None),
            StmtKind::For { init, cond, step, .. } => (*init, *cond, *step),
            _ => return None,
        };
        let begins = body.stmt(outer).span.shift(wait.start).text(text);
        let word = lex::identifiers(begins).next()?;
        let index = stmts.iter().position(|s| *s == stmt)?;
        let from = behind_comments(text, checked.end(wait) as usize);
        let close = body.stmt(block).span.shift(wait.start).end.checked_sub(1)?;
        let braces = body.stmt(block).span.shift(wait.start).text(text);
        let before = stmts.get(..=index + checked.behind)?.to_vec();
        let clear = begins.starts_with(word) && ["for", "while", "do"].contains(&word);
        (clear && braces.starts_with('{') && braces.ends_with('}') && from <= close as usize).then(|| Looped {
            stmt: outer,
            init,
            cond,
            step,
            block,
            before,
            rest: TextRange::new(from as u32, close),
        })
    }

    /// The declaration of a variable by the loop, in front of the wait, where it is in scope.
    pub(super) fn declaration(&self, tail: &Tail<'_, '_>, binding: BindingId) -> Option<StmtId> {
        let mut all = self.init.iter().chain(&self.before).copied();
        all.find(|stmt| match &tail.body().stmt(*stmt).kind {
            StmtKind::Decl(decls) => decls.iter().any(|d| d.binding == binding),
            _ => false,
        })
    }

    /// Whether the variable is one of the loop's that a launch of the continuation has to hand over.
    pub(super) fn hands_over(&self, tail: &Tail<'_, '_>, binding: BindingId) -> bool {
        let (wait, body) = (tail.wait, tail.body());
        let name = &body.binding(binding).name;
        // A macro may name it.
        let used = || {
            let words = words_with_macros(wait.db, wait.file, self.rest.text(&tail.kernel.text));
            words.contains(name)
        };
        self.declaration(tail, binding)
            .is_some_and(|stmt| Some(stmt) == self.init || used())
    }
}

impl<'a, 'db> Tail<'a, 'db> {
    /// What moves where the wait stands in a loop.
    pub(super) fn in_loop(
        wait: &'a Wait<'db>,
        kernel: &'a Child<'db>,
        checked: &'a Checked,
        looped: Looped,
    ) -> Result<Self, Reason> {
        let mut tail = Tail::empty(wait, kernel, checked);
        tail.refuse_unclear()?;
        tail.levels = tail.around(looped.stmt)?;
        let body = tail.body();
        tail.moved.push(body.stmt(looped.stmt).span);
        for level in &tail.levels {
            if let [first, .., last] | [first @ last] = level.rest() {
                tail.moved.push(body.stmt(*first).span.cover(body.stmt(*last).span));
            }
        }
        let (stmt, span) = (looped.stmt, body.stmt(looped.stmt).span);
        tail.looped = Some(looped);
        tail.refuse_lasting()?;
        tail.refuse_other_tails()?;
        tail.runs = tail.who_runs();
        if tail.runs != Runs::One {
            return Err(tail.at(
                "the wait stands in a loop, which another kernel can only go on with if one thread of the grid runs it, and if nothing in \
                 it, nor what it calls, may ask which thread that is",
                span,
            ));
        }
        let inside = all_exprs(body, stmt);
        if let Some(other) = inside.into_iter().find(|e| *e != wait.call && wait.is_one(*e)) {
            return Err(tail.at("the loop waits here, too", body.expr(other).span));
        }
        let all = effects(wait.db, wait.function);
        if let Some(barrier) = all.barriers.first().filter(|_| !tail.has_one_thread()) {
            return Err(tail.reason(
                "a loop of one thread can't go on in another grid where the others wait for it at a barrier",
                barrier.place,
            ));
        }
        Ok(tail)
    }

    /// Whether what follows the loop stays in the kernel, too, for threads that don't run the loop.
    pub(super) fn stays_for_others(&self, span: Span) -> bool {
        if self.looped.is_none() || !self.moves(span) || self.is_looped(span) || self.has_one_thread() {
            return false;
        }
        let (db, function, body) = (self.wait.db, self.wait.function, self.body());
        let level = self.levels.iter().position(|level| {
            let mut rest = level.rest().iter().map(|stmt| body.stmt(*stmt).span);
            rest.any(|stmt| stmt.start <= span.start && span.end <= stmt.end)
        });
        // Who comes to the loop's innermost branch below that level comes to what follows it, too.
        let below = self.levels.get(..level.unwrap_or(self.levels.len())).unwrap_or(&[]);
        let branch = below.iter().rev().find_map(|around| match around {
            Around::Guard { cond, .. } => Some(*cond),
            Around::Block { .. } => None,
        });
        let alone = branch.is_none_or(|cond| match who_gets_to(db, function, cond) {
            Some(Launchers::OnePerGrid) => true,
            Some(Launchers::OnePerBlock) => self.always(&is_one_block),
            _ => false,
        });
        !alone
    }

    /// Refuses variables of the loop, and of what follows it, that keep their values longer than a grid, or for other threads.
    fn refuse_lasting(&self) -> Result<(), Reason> {
        let mut all = self.body().bindings.iter();
        let lasting = all.find(|b| {
            matches!(b.storage, Storage::Shared | Storage::ExternShared | Storage::Static) && self.moves(b.span)
        });
        lasting.map_or(Ok(()), |b| {
            Err(self.at(
                format!(
                    "`{}` keeps its value from one iteration to the next, and each grid that goes on has another one",
                    b.name
                ),
                b.span,
            ))
        })
    }

    /// Whether something stands in the loop that goes on in another grid.
    pub(super) fn is_looped(&self, span: Span) -> bool {
        self.looped.as_ref().is_some_and(|looped| {
            let all = self.body().stmt(looped.stmt).span;
            all.start <= span.start && span.end <= all.end
        })
    }

    /// Writes the kernel that goes on with the loop, and its launch in the place of the wait.
    pub(super) fn write_looped(&self, looped: &Looped, name: &str) -> Result<SourceEdit, Ineligible> {
        let unclear = || {
            refuse(
                "where what follows begins and ends is not understood",
                Some(self.wait.here()),
            )
        };
        let mut edit = EditBuilder::new(self.wait.db);
        self.assume(&mut edit);
        let args = self.arguments();
        let prefix = format!(
            "{name}{}<<<1, 1, 0, cudaStreamTailLaunch>>>(",
            self.kernel.template_args
        );
        let style = edit.style(self.wait.file);
        let launch = |depth: usize| {
            let column = (depth + 1) * style::columns(&style.unit);
            let tabs = "\t".repeat(depth);
            let call = style
                .list(column, &prefix, &args, ");")
                .replace('\n', &format!("\n{tabs}"));
            format!("{tabs}{call}\n{tabs}return;")
        };
        let mut lines = Vec::new();
        for level in self.levels.iter().rev() {
            for stmt in level.before() {
                lines.extend(self.declared_again(*stmt).iter().map(|code| format!("\t{code}")));
            }
        }
        lines.push(self.loop_again(looped, &launch(3)).ok_or_else(unclear)?);
        for level in &self.levels {
            let Some(range) = self.range_of(level) else { continue };
            // What moves out of the blocks around may mean something else by the names.
            if self.declares(level) && self.levels.len() > 1 {
                lines.push(format!("\t{{\n{}\n\t}}", self.verbatim(range, 2)));
            } else {
                lines.push(self.verbatim(range, 1));
            }
        }
        let what = format!(
            "What {} does after its wait: the rest of the loop, up to the next wait.",
            self.kernel.name
        );
        self.write_kernel(name, &what, &lines.join("\n"), &mut edit)?;
        self.launch_in_loop(looped, &launch(0), &mut edit)?;
        finish(edit)
    }

    /// Puts the launch of the rest in its place, and the wait away.
    fn launch_in_loop(&self, looped: &Looped, launch: &str, edit: &mut EditBuilder<'db>) -> Result<(), Ineligible> {
        let (wait, checked) = (self.wait, self.checked);
        let text: &str = &self.kernel.text;
        let own = self.body().stmt(checked.stmt).span.shift(wait.start);
        let rest = trimmed(text, looped.rest.start, looped.rest.end);
        let at = |start: u32, end: u32| FileRange {
            file: wait.file,
            range: TextRange::new(start, end),
        };
        if checked.stays.is_none() {
            let end = rest
                .filter(|rest| rest.start < rest.end)
                .map_or(own.end, |rest| rest.end);
            edit.replace_code(at(own.start, end.max(own.end)), launch);
            return Ok(());
        }
        match checked.plain {
            true => delete(wait, checked.stmt, edit),
            false => wait.ask_only(edit)?,
        }
        match rest.filter(|rest| rest.start < rest.end) {
            Some(rest) => edit.replace_code(at(rest.start, rest.end), launch),
            None => {
                let style = edit.style(wait.file);
                let indent = style::indent_at(text, own.start as usize).to_owned();
                let code = style.fit(launch, &indent);
                edit.insert(wait.file, looped.rest.start, format!("{}{indent}{code}", style.newline));
            }
        }
        Ok(())
    }

    /// What looks at errors behind a launch, in the loop as it goes on.
    fn checks_again(&self) -> Option<String> {
        let code = self.verbatim(self.checked.range(self.wait)?, 3);
        let mut out = String::new();
        let mut last = 0;
        for token in lex::code_tokens(&code) {
            if !self.checked.plain && token.text(&code) == unqualified(&self.wait.name) {
                out.push_str(code.get(last..token.start)?);
                out.push_str(ASKS);
                last = token.end;
            }
        }
        out.push_str(code.get(last..)?);
        Some(out)
    }

    /// The loop as it goes on behind the wait.
    fn loop_again(&self, looped: &Looped, launch: &str) -> Option<String> {
        let (body, text) = (self.body(), &*self.kernel.text);
        let one_line = |e: ExprId| crate::edit::one_line::one_line(self.source(body.expr(e).span));
        let conditions = looped
            .cond
            .map(|cond| body.strip_parens(cond))
            .into_iter()
            .chain(looped.step);
        if !conditions
            .into_iter()
            .all(|e| is_written_there(body, e, self.source(body.expr(e).span)))
        {
            return None;
        }
        let words: Vec<&str> = lex::identifiers(text).collect();
        let resumed = names::untaken(self.wait.db, self.wait.file, "resumed", |name| words.contains(&name));
        let cond = looped.cond.map_or("true".to_owned(), |cond| {
            format!("({})", one_line(body.strip_parens(cond)))
        });
        let step = looped.step.map_or(String::new(), |step| format!(" {}", one_line(step)));
        let open = body.stmt(looped.block).span.shift(self.wait.start).start + 1;
        let close = body.stmt(self.checked.stmt).span.shift(self.wait.start).start;
        let before = trimmed(text, open, close)?;
        let rest = trimmed(text, looped.rest.start, looped.rest.end)?;
        let mut lines = vec![
            format!("\tfor (bool {resumed} = true; {resumed} || {cond};{step}) {{"),
            format!("\t\tif (!{resumed}) {{"),
        ];
        if before.start < before.end {
            lines.push(self.verbatim(before, 3));
        }
        lines.extend(self.checks_again());
        lines.push(launch.to_owned());
        lines.push("\t\t}".to_owned());
        lines.push(format!("\t\t{resumed} = false;"));
        if rest.start < rest.end {
            lines.push(self.verbatim(rest, 2));
        }
        lines.push("\t}".to_owned());
        Some(lines.join("\n"))
    }
}

/// Whether what stands at the place of an expression is all of it, and not the arguments of a macro that makes it: `i, n` of `LESS(i, n)`.
fn is_written_there(body: &Body, e: ExprId, source: &str) -> bool {
    let tokens = lex::code_tokens(source);
    let mut depth = 0i32;
    let balanced = tokens.iter().all(|token| {
        match token.text(source) {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        depth >= 0
    });
    let used = || match tokens.as_slice() {
        [name] => name.kind == lex::TokenKind::Word,
        [name, open, ..] => {
            let ends = open.text(source) == "(" && lex::closing(source, &tokens, 1) == Some(tokens.len() - 1);
            name.kind == lex::TokenKind::Word && ends
        }
        [] => false,
    };
    balanced && depth == 0 && (!body.expr(e).from_macro || used())
}

/// A range without the white space at its ends.
fn trimmed(text: &str, from: u32, to: u32) -> Option<TextRange> {
    let inner = text.get(from as usize..to as usize)?;
    let start = from + (inner.len() - inner.trim_start().len()) as u32;
    let end = (from + inner.trim_end().len() as u32).max(start);
    Some(TextRange::new(start, end))
}
