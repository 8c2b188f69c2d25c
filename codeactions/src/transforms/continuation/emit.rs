//! The code of a continuation and of its launch.

use std::collections::HashSet;

use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::{Span, TextRange};
use gridfuse_analysis::facts::effects::effects;
use gridfuse_analysis::facts::launch::{Bound, Launchers, in_recursion, launch_counts, launches, pending_launch_limit};
use gridfuse_analysis::hir::included::included_files;
use gridfuse_analysis::hir::items::items;
use gridfuse_analysis::hir::resolve::{launch_sites_of, only_known_launches};
use gridfuse_analysis::hir::{BindingId, ExprId, ExprKind, Name, StmtId, StmtKind, Storage};

use super::{Around, Given, Runs, Tail};
use crate::api::assumption::{self, Assumed};
use crate::api::refusal::Ineligible;
use crate::api::refusal::refuse;
use crate::api::source_edit::SourceEdit;
use crate::edit::builder::EditBuilder;
use crate::edit::builder::finish;
use crate::edit::lex;
use crate::edit::style;
use crate::emit::outline;
use crate::emit::target;
use crate::facts::pending::most_pending;
use crate::transforms::continuation::wait::{Wait, behind_comments, delete};

impl Tail<'_, '_> {
    pub(super) fn source(&self, span: Span) -> &str {
        self.kernel.source(span)
    }

    /// The range of what moves out of a block, in the file: from behind the line before it to its last statement or comment.
    pub(super) fn range_of(&self, level: &Around) -> Option<TextRange> {
        let Around::Block { stmt, stmts, first, .. } = level else {
            return None;
        };
        if level.rest().is_empty() {
            return None;
        }
        let text: &str = &self.kernel.text;
        let before = self
            .body()
            .stmt(*stmts.get(first.checked_sub(1)?)?)
            .span
            .shift(self.wait.start)
            .end as usize;
        let from = behind_comments(text, before);
        let block = self.body().stmt(*stmt).span.shift(self.wait.start);
        let close = block.end as usize - 1;
        let inner = text.get(from..close)?;
        let start = from + (inner.len() - inner.trim_start().len());
        let end = from + inner.trim_end().len();
        Some(TextRange::new(start as u32, end as u32))
    }

    /// Code of the kernel as it stands in the continuation, `depth` levels deep.
    pub(super) fn verbatim(&self, range: TextRange, depth: usize) -> String {
        let text: &str = &self.kernel.text;
        let indent = style::indent_at(text, range.start as usize);
        let tabs = "\t".repeat(depth);
        let code = self.without_left_out(range).replace("\r\n", "\n");
        let mut out = String::new();
        for (number, line) in code.split('\n').enumerate() {
            if number > 0 {
                out.push('\n');
            }
            match if number == 0 {
                Some(line)
            } else {
                line.strip_prefix(indent)
            } {
                Some(rest) if !rest.trim().is_empty() => {
                    out.push_str(&tabs);
                    out.push_str(rest);
                }
                _ => out.push_str(line.trim_end()),
            }
        }
        out
    }

    /// A part of the kernel without the statements that what follows doesn't do any more.
    fn without_left_out(&self, range: TextRange) -> String {
        let text: &str = &self.kernel.text;
        let mut gone: Vec<(usize, usize)> = Vec::new();
        for stmt in self.left_out() {
            let own = self.body().stmt(stmt).span.shift(self.wait.start);
            if !range.contains(own) {
                continue;
            }
            let end = behind_comments(text, own.end as usize);
            let (start, end) = (own.start as usize, end.min(range.end as usize));
            let line = style::line_start(text, start).max(range.start as usize);
            let alone = text.get(line..start).is_some_and(|before| before.trim().is_empty());
            let newline = text.get(end..).is_some_and(|behind| behind.starts_with('\n'));
            match alone {
                true if newline && end < range.end as usize => gone.push((line, end + 1)),
                true => gone.push((line, end)),
                false => gone.push((start, own.end as usize)),
            }
        }
        gone.sort_unstable();
        let mut out = String::new();
        let mut last = range.start as usize;
        for (start, end) in gone {
            out.push_str(text.get(last..start).unwrap_or(""));
            last = end;
        }
        out.push_str(text.get(last..range.end as usize).unwrap_or(""));
        out.trim_end().to_owned()
    }

    /// The declaration of the variables that are declared again, of those that a statement declares.
    pub(super) fn declared_again(&self, stmt: StmtId) -> Vec<String> {
        let body = self.body();
        let StmtKind::Decl(decls) = &body.stmt(stmt).kind else {
            return Vec::new();
        };
        let again = |b: &BindingId| matches!(self.given.get(b), Some(Given::Declared));
        if decls.iter().all(|d| again(&d.binding)) {
            return vec![crate::edit::one_line::one_line(self.source(body.stmt(stmt).span))];
        }
        let single = decls.iter().filter(|d| again(&d.binding)).map(|d| {
            let variable = body.binding(d.binding);
            let mut code = format!("{} {}", variable.ty.spelled(), variable.name);
            for extent in &variable.ty.array {
                let size = extent.map_or("", |e| self.source(body.expr(e).span));
                code.push_str(&format!("[{size}]"));
            }
            if let Some(init) = d.init {
                code.push_str(&format!(
                    " = {}",
                    crate::edit::one_line::one_line(self.source(body.expr(init).span))
                ));
            }
            code.push(';');
            if variable.storage == Storage::Shared {
                code.insert_str(0, "__shared__ ");
            }
            code
        });
        single.collect()
    }

    /// Whether something is declared in the continuation for what stands in this block.
    pub(super) fn declares(&self, level: &Around) -> bool {
        let declaration = |s: &StmtId| matches!(self.body().stmt(*s).kind, StmtKind::Decl(_));
        level.rest().iter().any(declaration) || level.before().iter().any(|s| !self.declared_again(*s).is_empty())
    }

    /// The lines of the continuation for a block or branch and what is inside it; `braced` when they stand in braces of their own.
    fn lines(&self, level: usize, depth: usize, braced: bool, out: &mut Vec<String>) {
        let inner = |depth: usize, braced: bool, out: &mut Vec<String>| {
            if let Some(next) = level.checked_sub(1) {
                self.lines(next, depth, braced, out);
            }
        };
        let around = &self.levels[level];
        // What moves out of the blocks around may mean something else by the names.
        let braces = !braced && level < self.outermost && self.declares(around);
        if braces {
            out.push(format!("{}{{", "\t".repeat(depth)));
            self.lines(level, depth + 1, true, out);
            out.push(format!("{}}}", "\t".repeat(depth)));
            return;
        }
        let tabs = "\t".repeat(depth);
        match around {
            Around::Block { .. } => {
                for stmt in around.before() {
                    out.extend(self.declared_again(*stmt).iter().map(|code| format!("{tabs}{code}")));
                    out.extend(self.created_again(*stmt).map(|code| format!("{tabs}{code}")));
                    for (cond, negated) in self.returns.get(stmt).into_iter().flatten() {
                        let cond = self.condition(*cond, *negated);
                        out.push(format!("{tabs}if ({cond}) return;"));
                    }
                }
                inner(depth, braced && around.rest().is_empty(), out);
                if let Some(range) = self.range_of(around) {
                    out.push(self.verbatim(range, depth));
                }
            }
            Around::Guard { cond, negated, .. } if self.asks_again(level) => {
                let mut code = Vec::new();
                inner(depth + 1, true, &mut code);
                let cond = self.condition(*cond, *negated);
                out.push(format!("{tabs}if ({cond}) {{"));
                out.append(&mut code);
                out.push(format!("{tabs}}}"));
            }
            // Nothing inside moves, or whoever gets there has passed.
            Around::Guard { .. } if level < self.outermost => {}
            Around::Guard { .. } => inner(depth, braced, out),
        }
    }

    fn condition(&self, cond: ExprId, negated: bool) -> String {
        let code = crate::edit::one_line::one_line(self.source(self.body().expr(cond).span));
        if negated { format!("!({code})") } else { code }
    }

    /// The condition that the first thread of the grid fulfils.
    fn first_thread(&self) -> &'static str {
        let (db, function) = (self.wait.db, self.wait.function);
        let sites = launch_sites_of(db, function);
        let flat = |id: &gridfuse_analysis::facts::launch::LaunchId<'_>| {
            let facts = launches(db, id.function).get(id.index as usize);
            facts.is_some_and(|facts| {
                [&facts.grid, &facts.block].iter().all(|extent| {
                    extent.constant.is_some_and(|[_, y, z]| (y, z) == (1, 1))
                        || matches!(extent.components, Some([_, None, None]))
                })
            })
        };
        if !sites.is_empty() && sites.iter().all(flat) && only_known_launches(db, function) {
            "threadIdx.x == 0 && blockIdx.x == 0"
        } else {
            "(threadIdx.x | threadIdx.y | threadIdx.z | blockIdx.x | blockIdx.y | blockIdx.z) == 0"
        }
    }

    /// Each parent grid that device code launches has one more grid pending, its tail, until all its children are done.
    pub(super) fn pile_up(&self) -> Option<Assumed> {
        let (db, function) = (self.wait.db, self.wait.function);
        let limit = pending_launch_limit(db, self.wait.file);
        let many = launch_sites_of(db, function).into_iter().any(|id| {
            let Some(facts) = launches(db, id.function).get(id.index as usize) else {
                return true;
            };
            let count = launch_counts(db, id.function).get(id.index as usize);
            let most = count.and_then(|c| match c.per_grid.at_most {
                Bound::Constant(n) => Some(n),
                _ => None,
            });
            let few = most
                .zip(limit)
                .is_some_and(|(most, limit)| most.saturating_mul(2) <= limit);
            facts.launchers != Launchers::Host && (in_recursion(db, id) || !few)
        });
        many.then(|| {
            assumption::PENDING_LAUNCHES.of(self.reason(
                most_pending(
                    db,
                    self.wait.file,
                    &format!("each `{}` has one more, its tail", self.kernel.name),
                ),
                self.wait.here(),
            ))
        })
    }

    /// Declarations that nothing uses that stays.
    fn unused(&self) -> Vec<StmtId> {
        let body = self.body();
        let mut gone: Vec<StmtId> = Vec::new();
        let mut before: Vec<StmtId> = self.levels.iter().flat_map(Around::before).copied().collect();
        before.sort_by_key(|s| std::cmp::Reverse(body.stmt(*s).span.start));
        for stmt in before {
            let StmtKind::Decl(decls) = &body.stmt(stmt).kind else {
                continue;
            };
            let stays = |span: Span| {
                let in_gone = gone.iter().chain([&stmt]).any(|s| {
                    let s = body.stmt(*s).span;
                    s.start <= span.start && span.end <= s.end
                });
                !in_gone && !self.moves(span)
            };
            let used = |b: BindingId| {
                body.exprs.iter().any(|e| match &e.kind {
                    ExprKind::Name(Name::Local(named)) => *named == b && stays(e.span),
                    // Operands of `sizeof` and template arguments are not lowered.
                    ExprKind::SizeOf | ExprKind::Launch(_) => {
                        stays(e.span) && lex::identifiers(self.source(e.span)).any(|w| w == body.binding(b).name)
                    }
                    _ => false,
                }) || body.stmts.iter().any(|s| {
                    matches!(&s.kind, StmtKind::Asm { mentions, .. } if mentions.contains(&b)) && stays(s.span)
                })
            };
            let again = decls
                .iter()
                .all(|d| matches!(self.given.get(&d.binding), Some(Given::Declared)));
            if again && !decls.iter().any(|d| used(d.binding)) {
                gone.push(stmt);
            }
        }
        gone
    }

    /// What is taken for granted, whatever becomes of the wait.
    pub(super) fn assume(&self, edit: &mut EditBuilder<'_>) {
        let all = [
            self.flat_blocks(),
            self.pile_up(),
            self.kept_by_callees(),
            self.left_in_memory(),
            self.no_failures(),
        ];
        all.into_iter().flatten().for_each(|reason| edit.assume(reason));
    }

    /// What the kernel does about errors finds those of launches alone, and those of the grid in which it asks.
    fn no_failures(&self) -> Option<Assumed> {
        let kernel = &self.kernel.name;
        if let Some(span) = self.checked.stays {
            let text = format!(
                "no CUDA call of `{kernel}` fails, nor does a grid that it waits for: what it does then is done before those grids are complete{}",
                self.wait.shown()
            );
            return Some(assumption::NO_LAUNCH_FAILS.of(self.reason(text, self.wait.place(span))));
        }
        let all = effects(self.wait.db, self.wait.function);
        let (what, place) = match all.errors.first() {
            Some(asks) => (asks.what.clone(), asks.place),
            None => asks_by_another_name(self.wait)?,
        };
        let text = format!("no CUDA call fails in `{kernel}`, and no launch has zero blocks: `{kernel}` checks {what}");
        Some(assumption::NO_LAUNCH_FAILS.of(self.reason(text, place)))
    }

    /// Writes the continuation and its launch.
    pub fn write(&self, name: &str) -> Result<SourceEdit, Ineligible> {
        let (wait, body) = (self.wait, self.body());
        let mut edit = EditBuilder::new(wait.db);
        self.assume(&mut edit);
        let args = self.write_continuation(name, &mut edit)?;
        let with_wait = self.write_launch(name, &args, &mut edit);
        let with_wait = with_wait.ok_or_else(|| {
            refuse(
                "where what follows begins and ends is not understood",
                Some(wait.here()),
            )
        })?;
        for (level, around) in self.levels.iter().enumerate() {
            if level != self.outermost
                && let Some(range) = self.range_of(around)
            {
                edit.delete_lines(FileRange { file: wait.file, range });
            }
        }
        match self.checked.plain {
            true if with_wait => {}
            true => delete(wait, self.checked.stmt, &mut edit),
            false => wait.ask_only(&mut edit)?,
        }
        for stmt in self.unused() {
            edit.delete_lines(wait.place(body.stmt(stmt).span));
        }
        finish(edit)
    }

    /// Writes the kernel with what follows, in front of the one that waits. The arguments that it needs.
    fn write_continuation(&self, name: &str, edit: &mut EditBuilder<'_>) -> Result<Vec<String>, Ineligible> {
        let mut lines = Vec::new();
        self.lines(self.levels.len() - 1, 1, true, &mut lines);
        let what = format!("What {} does after its wait.", self.kernel.name);
        self.write_kernel(name, &what, &lines.join("\n"), edit)?;
        Ok(self.arguments())
    }

    /// The arguments that the continuation needs.
    pub(super) fn arguments(&self) -> Vec<String> {
        let passed = self.given.iter().filter(|(_, given)| matches!(given, Given::Passed(_)));
        passed
            .map(|(binding, _)| self.body().binding(*binding).name.clone())
            .collect()
    }

    /// Writes a kernel with this code in front of the one that waits.
    pub(super) fn write_kernel(
        &self,
        name: &str,
        what: &str,
        code: &str,
        edit: &mut EditBuilder<'_>,
    ) -> Result<(), Ineligible> {
        let (wait, kernel) = (self.wait, self.kernel);
        let file_style = edit.style(wait.file);
        let params: Vec<String> = self
            .given
            .values()
            .filter_map(|given| match given {
                Given::Passed(decl) => Some(decl.clone()),
                Given::Declared => None,
            })
            .collect();
        let behind = outline::behind(edit, kernel);
        let head = format!("{}{}__global__ void ", kernel.template_line(), kernel.linkage());
        let bounds = kernel.launch_bounds.as_ref().map_or(String::new(), |b| format!("{b} "));
        let function = behind.function(&format!("{head}{bounds}{name}("), &params, code);
        let mut generated = String::new();
        if lex::identifiers(code).any(|w| w == kernel.name) {
            let defaults = kernel
                .body
                .params
                .iter()
                .any(|p| kernel.body.binding(*p).default.is_some())
                || kernel.template.as_ref().is_some_and(|line| line.contains('='));
            if defaults || wait.function.signature(wait.db).extern_c {
                return Err(refuse(
                    format!(
                        "what follows launches `{}`, which can't be declared before",
                        kernel.name
                    ),
                    Some(kernel.place()),
                ));
            }
            let all: Vec<String> = kernel
                .params
                .iter()
                .map(|p| crate::edit::one_line::one_line(&p.decl))
                .collect();
            let (before, last) = head.rsplit_once('\n').map_or(("", head.as_str()), |(b, l)| (b, l));
            let newline = if before.is_empty() { "" } else { "\n" };
            let list = file_style.list(behind.column(), &format!("{last}{}(", kernel.name), &all, ");");
            generated.push_str(&format!("{before}{newline}{list}\n\n"));
        }
        generated.push_str(&format!("// {what}\n{function}\n\n"));
        let indent = style::indent_at(&kernel.text, kernel.front() as usize).to_owned();
        let at = target::above_comment(wait.db, wait.file, kernel.front() as usize);
        let mut text = file_style.fit(&generated, &indent);
        text.push_str(&indent);
        edit.insert(wait.file, at as u32, text);
        Ok(())
    }

    /// Puts the launch of the continuation in the place of what follows. Whether the wait goes with that; `None`: where it stands isn't
    /// understood.
    fn write_launch(&self, name: &str, args: &[String], edit: &mut EditBuilder<'_>) -> Option<bool> {
        let (wait, kernel, body) = (self.wait, self.kernel, self.body());
        let file_style = edit.style(wait.file);
        let shape = if self.runs == Runs::One {
            "1, 1"
        } else {
            "gridDim, blockDim"
        };
        let prefix = format!("{name}{}<<<{shape}, 0, cudaStreamTailLaunch>>>(", kernel.template_args);
        let outermost = &self.levels[self.outermost];
        let Around::Block {
            stmts,
            index,
            last,
            first,
            ..
        } = outermost
        else {
            return None;
        };
        let whole = self.range_of(outermost)?;
        let path = body.stmt(stmts[*index]).span.shift(wait.start);
        let is_wait = stmts[*index] == self.checked.stmt && self.checked.stays.is_none();
        let launch = |indent: &str| {
            let conditional = self.runs != Runs::One;
            let unit = if conditional {
                style::columns(&file_style.unit)
            } else {
                0
            };
            let call = file_style.list(style::columns(indent) + unit, &prefix, args, ");");
            if conditional {
                format!("if ({})\n\t{}", self.first_thread(), call.replace('\n', "\n\t"))
            } else {
                call
            }
        };
        // From the first barrier that isn't needed, or the wait.
        let from = if is_wait {
            path.start
        } else if *first > *last + 1 {
            body.stmt(stmts[*last + 1]).span.shift(wait.start).start
        } else {
            whole.start
        };
        let place = FileRange {
            file: wait.file,
            range: TextRange::new(from, whole.end),
        };
        if self.runs == Runs::Some {
            // Blank lines in front of it would be left at the end of the block.
            let blank = kernel.text.get(..from as usize).map_or(from, |before| {
                let code = before.trim_end().len();
                let line = before
                    .get(code..)
                    .and_then(|gap| gap.find('\n'))
                    .map_or(from as usize, |end| code + end + 1);
                line.min(from as usize) as u32
            });
            let place = FileRange {
                file: wait.file,
                range: TextRange::new(blank, whole.end),
            };
            match self.destroyed() {
                gone if gone.is_empty() => edit.delete_lines(place),
                gone => {
                    let place = FileRange {
                        file: wait.file,
                        range: TextRange::new(from, whole.end),
                    };
                    edit.replace_code(place, &gone.join("\n"));
                }
            }
            let root = body.root.map(|r| body.stmt(r).span.shift(wait.start))?;
            let Some(Around::Block { stmts, .. }) = self.levels.last() else {
                return None;
            };
            let first = stmts.first()?;
            let indent =
                style::indent_at(&kernel.text, (body.stmt(*first).span.start + wait.start) as usize).to_owned();
            let code = file_style.fit(&launch(&indent), &indent);
            edit.insert(
                wait.file,
                root.start + 1,
                format!("{}{indent}{code}", file_style.newline),
            );
        } else {
            let indent = style::indent_at(&kernel.text, from as usize).to_owned();
            let mut code = self.destroyed();
            code.push(launch(&indent));
            edit.replace_code(place, &code.join("\n"));
        }
        Some(is_wait)
    }
}

/// Where a kernel may ask for errors without a call that says so: by a pointer to the function, or by an object of a class whose members ask.
fn asks_by_another_name(wait: &Wait<'_>) -> Option<(String, FileRange)> {
    let (db, text) = (wait.db, wait.function.text(wait.db));
    let asks = |text: &str| {
        lex::identifiers(text)
            .find(|word| ASKS_FOR_ERRORS.contains(word))
            .map(str::to_owned)
    };
    if let Some(word) = asks(&text) {
        return Some((word, wait.here()));
    }
    let members = included_files(db, wait.file)
        .iter()
        .flat_map(|file| &items(db, *file).functions);
    let classes: HashSet<&str> = members
        .filter(|f| f.has_body(db) && asks(&f.text(db)).is_some())
        .filter_map(|f| f.name(db).rsplit("::").nth(1))
        .collect();
    let class = lex::identifiers(&text).find(|word| classes.contains(word))?;
    Some((format!("errors by `{class}`"), wait.here()))
}

const ASKS_FOR_ERRORS: [&str; 2] = ["cudaGetLastError", "cudaPeekAtLastError"];
