//! The loop as the kernel has it: the host's text, in which launches and calls of CUDA's runtime have become calls of the runtime, and
//! what the host alone knows has become parameters.

use std::collections::BTreeSet;

use gridfuse_analysis::base::span::Span;
use gridfuse_analysis::facts::launch::Stream;
use gridfuse_analysis::hir::included::included_files;
use gridfuse_analysis::hir::items::{GlobalItem, items};
use gridfuse_analysis::hir::library::constant;
use gridfuse_analysis::hir::resolve::{Meaning, meaning_in};
use gridfuse_analysis::hir::walk::{all_exprs, all_in_expr};
use gridfuse_analysis::hir::{BinOp, BindingId, Body, ExprId, ExprKind, Literal, Name, StmtId, StmtKind, Storage};

use super::api::{self, Direction};
use super::checked;
use super::checks::{Checks, Kept};
use super::early;
use super::host_loop::HostLoop;
use super::kernels::{Kernels, Shape, varies};
use super::variables::{self, Variable};
use crate::api::assumption;
use crate::api::refusal::{Reason, Refusals};
use crate::edit::builder::EditBuilder;
use crate::edit::lex;
use crate::edit::names::words_with_macros;
use crate::edit::style::{self, Style};
use crate::emit::outline::Worker;
use crate::facts::calls::is_plain_type;
use crate::facts::child::{Child, copies_plainly};
use crate::facts::cluster::Function;
use crate::facts::ctype;
use crate::facts::instance;
use crate::facts::pure;
use crate::facts::qualified::qualified;
use crate::facts::site::Site;
use crate::runtime::is_header;

/// A parameter of the kernel that the host passes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    /// Its type.
    pub ty: String,
    /// Its name.
    pub name: String,
    /// What the host passes.
    pub value: String,
}

/// The loop as the kernel has it.
pub struct Moved {
    /// Its text, with the indentation of the host's.
    pub text: String,
    /// The variable of the kernel that stands for the rounds.
    pub rounds: String,
    /// What the host passes beside the state.
    pub params: Vec<Param>,
    /// The host's variables that change.
    pub variables: Vec<Variable>,
    /// How the host looks for errors.
    pub checks: Kept,
    /// The grids, as the host knows them.
    pub grids: Vec<String>,
    /// A grid's size is known in its round alone.
    pub any_grid: bool,
    /// The host waits for all streams, and there may be others: for what is in them when the loop begins, as it puts nothing there.
    pub waits_for_all: bool,
}

/// Moves the loop. What can't be moved is refused.
pub fn translate<'db>(
    host: &HostLoop<'db>,
    kernels: &Kernels<'db>,
    shape: &Shape,
    workers: &[Worker],
    refusals: &mut Refusals,
    edit: &mut EditBuilder<'db>,
) -> Moved {
    let words = words_with_macros(
        host.function.db,
        host.file(),
        host.source(
            host.function
                .body
                .root
                .map_or(host.span(), |root| host.function.body.stmt(root).span),
        ),
    );
    let mut rounds = "rounds".to_owned();
    while words.contains(&rounds) {
        rounds.insert_str(0, "grid_");
    }
    let variables = variables::variables(host, refusals);
    let style = edit.style(host.file());
    let mut translation = Translation {
        host,
        body: &host.function.body,
        kernels,
        shape,
        workers,
        style,
        rounds,
        refusals,
        edit,
        edits: Vec::new(),
        params: Vec::new(),
        checks: Checks::default(),
        grids: Vec::new(),
        any_grid: false,
        waits_for_all: false,
        unchanged: BTreeSet::new(),
        computed: BTreeSet::new(),
    };
    translation.loop_statement(host.stmt);
    let text = translation.edited(host.span(), 0);
    Moved {
        text,
        variables,
        rounds: translation.rounds,
        params: translation.params,
        checks: translation.checks.finish(host, translation.refusals, translation.edit),
        grids: translation.grids,
        any_grid: translation.any_grid,
        waits_for_all: translation.waits_for_all,
    }
}

struct Translation<'a, 'db> {
    host: &'a HostLoop<'db>,
    body: &'a Body,
    kernels: &'a Kernels<'db>,
    shape: &'a Shape,
    workers: &'a [Worker],
    style: Style,
    rounds: String,
    refusals: &'a mut Refusals,
    edit: &'a mut EditBuilder<'db>,
    edits: Vec<(Span, String)>,
    params: Vec<Param>,
    checks: Checks,
    grids: Vec<String>,
    any_grid: bool,
    waits_for_all: bool,
    /// What is taken not to change.
    unchanged: BTreeSet<String>,
    /// What is taken to be computed without harm where no round is.
    computed: BTreeSet<String>,
}

impl<'db> Translation<'_, 'db> {
    fn refuse(&mut self, text: impl Into<String>, span: Span) {
        self.refusals.add(text, Some(self.host.function.place(span)));
    }

    fn span(&self, expr: ExprId) -> Span {
        self.body.expr(expr).span
    }

    // Statements

    fn loop_statement(&mut self, stmt: StmtId) {
        match &self.body.stmt(stmt).kind {
            StmtKind::While {
                cond: Some(cond),
                init: None,
                body,
            }
            | StmtKind::DoWhile { cond, body } => {
                self.value(*cond);
                self.statement(*body);
            }
            StmtKind::For { init, cond, step, body } => {
                init.iter().for_each(|s| self.statement(*s));
                cond.iter().for_each(|e| self.value(*e));
                step.iter().for_each(|e| self.effect(*e));
                self.statement(*body);
            }
            _ => self.refuse("the head of the loop declares a variable", self.body.stmt(stmt).span),
        }
    }

    fn statement(&mut self, stmt: StmtId) {
        let span = self.body.stmt(stmt).span;
        match &self.body.stmt(stmt).kind {
            StmtKind::Block(stmts) if self.host.source(span).starts_with('{') => self.block(stmts),
            StmtKind::Empty | StmtKind::Break | StmtKind::Continue => {}
            _ if self.calls_of_runtime(stmt, None) => {}
            StmtKind::Expr(e) => match self.host.launches.iter().position(|s| s.facts.statement == Some(stmt)) {
                Some(launch) => self.launch(launch, span),
                None => self.effect(*e),
            },
            StmtKind::Decl(decls) => {
                for decl in decls {
                    variables::refuse_type(self.host, decl.binding, self.refusals);
                    if self.body.binding(decl.binding).storage == Storage::Static {
                        self.refuse(
                            "a static variable, which all threads would share, is declared in the loop",
                            span,
                        );
                    }
                    if self.body.binding(decl.binding).ty.reference {
                        self.refuse("a reference is declared in the loop", span);
                    }
                    decl.init.iter().for_each(|e| self.value(*e));
                }
            }
            StmtKind::If {
                init: None,
                cond: Some(cond),
                then,
                otherwise,
                ..
            } => {
                self.value(*cond);
                self.statement(*then);
                otherwise.iter().for_each(|s| self.statement(*s));
            }
            StmtKind::While { .. } | StmtKind::DoWhile { .. } | StmtKind::For { .. } => self.loop_statement(stmt),
            StmtKind::Return(_) => self.refuse("the function returns within the loop: leave it by `break`", span),
            _ => self.refuse(self.cannot_move(span), span),
        }
    }

    fn cannot_move(&self, span: Span) -> String {
        let source = crate::edit::one_line::one_line(self.host.source(span));
        let short: String = source.chars().take(40).collect();
        let dots = if short.len() < source.len() { "…" } else { "" };
        format!("`{short}{dots}` can't move to the device: take it out of the loop")
    }

    fn block(&mut self, stmts: &[StmtId]) {
        for (at, stmt) in stmts.iter().enumerate() {
            let checked = !matches!(&self.body.stmt(*stmt).kind, StmtKind::Block(_) if self.host.source(self.body.stmt(*stmt).span).starts_with('{'));
            if !(checked && self.calls_of_runtime(*stmt, stmts.get(at + 1).copied())) {
                self.statement(*stmt);
            }
        }
    }

    /// A statement that calls CUDA's runtime, with what the program does where the call fails. `next`: the statement below.
    fn calls_of_runtime(&mut self, stmt: StmtId, next: Option<StmtId>) -> bool {
        let span = self.body.stmt(stmt).span;
        let Some(calls) = checked::calls(&self.host.function, stmt) else {
            return false;
        };
        let plain = matches!(self.body.stmt(stmt).kind, StmtKind::Empty)
            || matches!(&self.body.stmt(stmt).kind, StmtKind::Block(_) if self.host.source(span).starts_with('{'));
        if plain || calls.is_empty() && matches!(self.body.stmt(stmt).kind, StmtKind::Expr(_)) {
            return false;
        }
        let mut operations = Vec::new();
        for call in &calls {
            self.checks.keep(self.host, *call, span, next);
            operations.extend(self.operation(*call));
        }
        let text = operations.join("\n");
        let ends = self.host.source(span).ends_with([';', '}']);
        let followed = self
            .host
            .function
            .text
            .get((span.end + self.host.function.start) as usize..);
        let followed = followed.is_some_and(|rest| rest.starts_with(';'));
        let listed = style::whole_lines(
            &self.host.function.text,
            (span.start + self.host.function.start) as usize,
            (span.end + self.host.function.start) as usize + usize::from(followed && !ends),
        );
        let sole = !crate::emit::target::stands_in_list(
            self.body,
            &self.host.places,
            &self.host.function.text,
            self.host.function.start,
            stmt,
        );
        if !operations.is_empty() {
            let semicolon = if followed && !ends { "" } else { ";" };
            self.edits.push((span, format!("{text}{semicolon}")));
        } else if sole {
            self.edits.push((
                span,
                if followed && !ends {
                    String::new()
                } else {
                    ";".to_owned()
                },
            ));
        } else {
            let whole = Span::new(
                listed.0 as u32 - self.host.function.start,
                listed.1 as u32 - self.host.function.start,
            );
            self.edits.push((whole, String::new()));
        }
        true
    }

    // Calls of CUDA's runtime

    /// What a call of CUDA's runtime becomes; nothing where it only waits.
    fn operation(&mut self, call: ExprId) -> Option<String> {
        let ExprKind::Call {
            name: Some(name), args, ..
        } = &self.body.expr(call).kind
        else {
            return None;
        };
        let span = self.span(call);
        let rounds = self.rounds.clone();
        match api::named(&self.host.function, name)? {
            api::Call::Waits { everything } => {
                if everything {
                    self.waits_for_all |= has_streams(self.host);
                } else if !args.is_empty() {
                    self.same_stream(args, Some(0), span);
                }
                None
            }
            api::Call::Set(stream) => {
                self.same_stream(args, stream, span);
                let [place, value, bytes, ..] = args.as_slice() else {
                    return None;
                };
                let (place, value, bytes) = (self.pointer(*place), self.text_of(*value), self.text_of(*bytes));
                Some(format!("{rounds}.fill({place}, {value}, {bytes})"))
            }
            api::Call::Copy(stream) => {
                self.same_stream(args, stream, span);
                let [to, from, bytes, kind, ..] = args.as_slice() else {
                    self.refuse("the copy doesn't say where it goes", span);
                    return None;
                };
                let direction = match api::direction(&self.host.function, *kind) {
                    Some(Direction::ByAddress) if self.host.address_of(*to).is_some() => Direction::ToHost,
                    Some(Direction::ByAddress) if self.host.address_of(*from).is_some() => Direction::ToDevice,
                    Some(direction @ (Direction::ToHost | Direction::ToDevice | Direction::Within)) => direction,
                    _ => {
                        self.refuse("where the copy goes isn't known", span);
                        return None;
                    }
                };
                match direction {
                    Direction::ToHost => self.load(*to, *from, None, *bytes),
                    Direction::ToDevice => self.store(*to, None, *from, *bytes),
                    _ => {
                        let (to, from, bytes) = (self.pointer(*to), self.pointer(*from), self.text_of(*bytes));
                        Some(format!("{rounds}.copy({to}, {from}, {bytes})"))
                    }
                }
            }
            api::Call::FromSymbol(stream) => {
                self.same_stream(args, stream, span);
                let [to, symbol, bytes, ..] = args.as_slice() else {
                    return None;
                };
                let place = self.symbol(*symbol, args.get(3).copied())?;
                self.load(*to, *symbol, Some(place), *bytes)
            }
            api::Call::ToSymbol(stream) => {
                self.same_stream(args, stream, span);
                let [symbol, from, bytes, ..] = args.as_slice() else {
                    return None;
                };
                let place = self.symbol(*symbol, args.get(3).copied())?;
                self.store(*symbol, Some(place), *from, *bytes)
            }
            api::Call::Swap => None,
        }
    }

    /// A copy into a variable of the host's.
    fn load(&mut self, to: ExprId, from: ExprId, place: Option<String>, bytes: ExprId) -> Option<String> {
        let Some(binding) = self.host.address_of(to).filter(|b| self.host.changes(*b)) else {
            let target = self.host.flat(to);
            self.refuse(
                format!("the loop copies to `{target}`, which is no variable of its own: copy to one with `&`"),
                self.span(to),
            );
            return None;
        };
        let name = self.body.binding(binding).name.clone();
        let place = match place {
            Some(place) => place,
            None => self.pointer(from),
        };
        let bytes = self.text_of(bytes);
        Some(format!("{}.load(&{name}, {place}, {bytes})", self.rounds))
    }

    /// A copy from a variable of the host's.
    fn store(&mut self, to: ExprId, place: Option<String>, from: ExprId, bytes: ExprId) -> Option<String> {
        let Some(binding) = self.host.address_of(from) else {
            let source = self.host.flat(from);
            self.refuse(
                format!("the loop copies from `{source}`, which is no variable of its own: copy from one with `&`"),
                self.span(from),
            );
            return None;
        };
        let value = self.variable(binding, self.span(from));
        let place = match place {
            Some(place) => place,
            None => self.pointer(to),
        };
        let bytes = self.text_of(bytes);
        Some(format!("{}.store({place}, &{value}, {bytes})", self.rounds))
    }

    /// The address of a device variable.
    fn symbol(&mut self, symbol: ExprId, offset: Option<ExprId>) -> Option<String> {
        let span = self.span(symbol);
        if offset.is_some_and(|offset| !api::is_zero(&self.host.function, offset)) {
            self.refuse("the copy begins within the device variable", span);
        }
        let name = match &self.body.expr(self.body.strip_parens(symbol)).kind {
            ExprKind::Name(Name::Other(name)) => name.clone(),
            _ => String::new(),
        };
        match meaning_in(self.host.function.db, self.host.function.item, &name) {
            Meaning::Global(global) if global.constant_memory => {
                self.refuse(
                    format!(
                        "`{name}` is `__constant__`, which nothing changes while a grid runs: make it `__device__`"
                    ),
                    span,
                );
                None
            }
            Meaning::Global(global) if global.device || global.managed => {
                let address = if global.dims == 0 { "&" } else { "" };
                Some(format!("{address}{name}"))
            }
            _ => {
                let written = self.host.flat(symbol);
                self.refuse(format!("`{written}` isn't known to be a device variable"), span);
                None
            }
        }
    }

    /// Refuses a call that goes into another stream than the launches.
    fn same_stream(&mut self, args: &[ExprId], stream: Option<usize>, span: Span) {
        let main = &self.host.launches[self.shape.block];
        let own = main.launch.config.get(3).filter(|_| main.facts.stream != Stream::Null);
        let given = stream
            .and_then(|at| args.get(at))
            .filter(|e| !api::is_zero(&self.host.function, **e));
        let text = |e: Option<&ExprId>| e.map(|e| self.host.flat(*e));
        if text(own) != text(given) {
            self.refuse(
                "this isn't in the stream of the launches: put all of the loop into one stream",
                span,
            );
        }
    }

    // Launches

    fn launch(&mut self, index: usize, span: Span) {
        let site = &self.host.launches[index];
        let Some((kernel, worker)) = self
            .kernels
            .of_launch
            .get(index)
            .and_then(|kernel| Some((self.kernels.all.get(*kernel)?, self.workers.get(*kernel)?)))
        else {
            return;
        };
        let grid = self.grid(site, kernel);
        let narrow = self.shape.narrow.get(index).copied().flatten();
        let block = narrow.map_or("blockDim".to_owned(), |threads| format!("dim3({threads})"));
        let mut items = vec!["blockIdx".to_owned(), "gridDim".to_owned(), block];
        for (arg, param) in site.launch.args.iter().zip(&kernel.params) {
            let text = self.argument(*arg, site, kernel, param);
            items.push(text);
        }
        let targs = instance::arguments(site, kernel).unwrap_or_default();
        let prefix = format!("{}{targs}(", qualified(site, kernel, &worker.name));
        let threads = narrow.map_or(String::new(), |threads| format!("{threads}, "));
        let indent = style::indent_at(
            &self.host.function.text,
            (span.start + self.host.function.start) as usize,
        );
        let own = style::indent_at(
            &self.host.function.text,
            (self.host.span().start + self.host.function.start) as usize,
        );
        let column = style::columns(indent).saturating_sub(style::columns(own)) + 2 * style::columns(&self.style.unit);
        let call = self.style.list(column, &prefix, &items, ");").replace('\n', "\n\t");
        let head = format!(
            "{}.run({grid}, {threads}[&](uint3 blockIdx, dim3 gridDim) {{",
            self.rounds
        );
        self.edits.push((span, format!("{head}\n\t{call}\n}});")));
    }

    fn grid(&mut self, site: &Site<'db>, kernel: &Child<'db>) -> String {
        let grid = site.launch.config[0];
        if varies(self.host, grid) || self.changes_in_memory(grid) {
            self.any_grid = true;
            self.edit.assume(assumption::NO_LAUNCH_FAILS.of(Reason {
                text: format!(
                    "no launch of `{}` fails: its grids have blocks, and no more than there can be",
                    kernel.name
                ),
                place: Some(site.place(self.span(grid))),
            }));
            return self.text_of(grid);
        }
        let written = self.host.flat(grid);
        if !self.grids.contains(&written) {
            self.grids.push(written.clone());
        }
        for operand in site.launch.config.iter().skip(1) {
            self.early(*operand, site.facts.statement);
        }
        if let Some(binding) = self.host.local(grid) {
            return self.variable(binding, self.span(grid));
        }
        if self.is_constant(grid) {
            return written;
        }
        self.outside(grid, site.facts.statement);
        self.param("dim3", "blocks", written)
    }

    /// An argument of a launch.
    fn argument(
        &mut self,
        arg: ExprId,
        site: &Site<'db>,
        kernel: &Child<'db>,
        param: &crate::facts::child::Param,
    ) -> String {
        if self.changes_in_memory(arg) || varies(self.host, arg) && self.reads_memory(arg) {
            let what = self.host.flat(arg);
            self.refuse(
                format!("`{what}` reads memory that may change in the loop: read it in a statement above, into a variable of the loop"),
                self.span(arg),
            );
            return what;
        }
        if varies(self.host, arg) || self.is_constant(arg) || self.object(arg).is_some() {
            return self.text_of(arg);
        }
        if let Some(binding) = self.host.local(arg) {
            let own = &self.body.binding(binding).ty;
            let known = own.pointers > 0 || is_plain_type(&ctype::normalize(&own.base)) || own.base == "dim3";
            if known && !own.complex && own.array.is_empty() && own.base != "auto" {
                return self.variable(binding, self.span(arg));
            }
        }
        self.outside(arg, site.facts.statement);
        let generic = &kernel.item.signature(kernel.db).template_names;
        let ty = format!("{}{}", param.ty.text, "*".repeat(usize::from(param.ty.pointers)));
        if lex::identifiers(&ty).any(|word| generic.iter().any(|name| name == word)) {
            let what = self.host.flat(arg);
            self.refuse(
                format!(
                    "the type of `{what}` is a template argument of `{}`: copy it to a variable first",
                    kernel.name
                ),
                self.span(arg),
            );
        }
        let value = self.host.flat(arg);
        let wanted = last_name(self.body, arg).unwrap_or(&param.name).to_owned();
        let ty = match param.ty.pointers {
            0 => param.ty.base.clone(),
            _ => ty,
        };
        self.param(&ty, &wanted, value)
    }

    // Values

    /// A parameter for what the host knows.
    fn param(&mut self, ty: &str, wanted: &str, value: String) -> String {
        if let Some(known) = self.params.iter().find(|p| p.value == value && p.ty == ty) {
            return known.name.clone();
        }
        let mut name = wanted.to_owned();
        let is_device_variable = |name: &str| {
            let meaning = meaning_in(self.host.function.db, self.host.function.item, name);
            matches!(meaning, Meaning::Global(global) if global.managed || global.device)
        };
        let taken = |name: &str| {
            self.params.iter().any(|p| p.name == name)
                || name == self.rounds
                || is_device_variable(name)
                || name != value && self.body.bindings.iter().any(|b| b.name == name)
                || name != value
                    && self
                        .body
                        .exprs
                        .iter()
                        .any(|e| matches!(&e.kind, ExprKind::Name(Name::Other(n)) if n == name))
        };
        let mut number = 2;
        while taken(&name) {
            name = format!("{wanted}{number}");
            number += 1;
        }
        self.params.push(Param {
            ty: ty.to_owned(),
            name: name.clone(),
            value,
        });
        name
    }

    /// A variable of the host's, as the kernel names it.
    fn variable(&mut self, binding: BindingId, span: Span) -> String {
        let name = self.body.binding(binding).name.clone();
        if self.host.changes(binding) {
            return name;
        }
        if api::is_error(&self.host.function, binding) {
            self.refuse(format!("the loop asks what `{name}` is"), span);
        }
        variables::refuse_type(self.host, binding, self.refusals);
        if self.body.binding(binding).ty.reference {
            self.assume_unchanged(&name, span);
        }
        let ty = variables::spelled(self.host, binding);
        self.param(&ty, &name, name.clone())
    }

    /// The host computes in front of the loop what only a round of it computed, at this statement.
    fn early(&mut self, expr: ExprId, stmt: Option<StmtId>) {
        let reached = stmt.is_some_and(|stmt| early::is_reached(self.host, stmt));
        if reached || !early::may_fail(self.body, expr, |e| self.is_constant(e)) {
            return;
        }
        let what = self.host.flat(expr);
        if self.computed.insert(what.clone()) {
            self.edit.assume(assumption::COMPUTED_EARLY.of(Reason {
                text: format!("the host can compute `{what}` even where no round of the loop does so"),
                place: Some(self.host.function.place(self.span(expr))),
            }));
        }
    }

    /// Whether an expression reads memory that the host shares with the device.
    fn reads_memory(&self, expr: ExprId) -> bool {
        let mut parts = all_in_expr(self.body, expr).into_iter();
        self.object(expr).is_none() && parts.any(|e| self.shared_pointer_of(e).is_some())
    }

    /// The pointer by which an expression reads memory, as it is written; the name of a managed variable.
    fn shared_pointer_of(&self, expr: ExprId) -> Option<String> {
        match &self.body.expr(expr).kind {
            ExprKind::Deref(pointer) => Some(self.host.flat(*pointer)),
            ExprKind::Index { base, .. } => Some(self.host.flat(*base)),
            ExprKind::Name(Name::Other(name)) => {
                match meaning_in(self.host.function.db, self.host.function.item, name) {
                    Meaning::Global(global) if global.managed => Some(name.clone()),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Whether an expression reads memory that the host changes in the loop, or that a kernel of it gets a pointer to, by which it may
    /// write.
    fn changes_in_memory(&self, expr: ExprId) -> bool {
        let read: Vec<String> = all_in_expr(self.body, expr)
            .into_iter()
            .filter_map(|e| self.shared_pointer_of(e))
            .collect();
        let stored = |pointer: &String| {
            all_exprs(self.body, self.host.stmt)
                .into_iter()
                .any(|e| match self.body.expr(e).kind {
                    ExprKind::Assign { place, .. } | ExprKind::IncDec { place, .. } => {
                        self.shared_pointer_of(self.body.strip_parens(place)).as_ref() == Some(pointer)
                    }
                    _ => false,
                })
        };
        let written = |pointer: &String| {
            let launches = self.host.launches.iter().zip(&self.kernels.of_launch);
            launches.into_iter().any(|(site, kernel)| {
                let params = self.kernels.all.get(*kernel).map_or(&[][..], |kernel| &kernel.params);
                let mut given = site.launch.args.iter().zip(params);
                given.any(|(arg, param)| !param.ty.const_base && self.host.flat(*arg) == *pointer)
            })
        };
        read.iter().any(|pointer| stored(pointer) || written(pointer))
    }

    /// What the host computes for every round, from what doesn't change. At this statement of the loop it was computed before.
    fn outside(&mut self, expr: ExprId, stmt: Option<StmtId>) {
        self.early(expr, stmt);
        let span = self.span(expr);
        let what = self.host.flat(expr);
        if pure::not_repeatable(&self.host.launches[self.shape.block], expr).is_some() {
            self.refuse(
                format!("`{what}` may be another value in another round: compute it before the loop"),
                span,
            );
        }
        let shared = all_in_expr(self.body, expr)
            .into_iter()
            .any(|e| match &self.body.expr(e).kind {
                ExprKind::Deref(_) | ExprKind::Index { .. } | ExprKind::Field { arrow: true, .. } => true,
                ExprKind::Name(Name::Local(b)) => self.body.binding(*b).ty.reference,
                ExprKind::Name(Name::Other(name)) => !self.is_constant_name(name),
                _ => false,
            });
        if shared {
            self.assume_unchanged(&what, span);
        }
    }

    /// Takes for granted that what the host reads isn't changed by the kernels.
    fn assume_unchanged(&mut self, what: &str, span: Span) {
        if self.unchanged.insert(what.to_owned()) {
            self.edit.assume(assumption::UNCHANGED_VALUES.of(Reason {
                text: format!("nothing in the loop changes `{what}`, which the host reads in each round"),
                place: Some(self.host.function.place(span)),
            }));
        }
    }

    /// The struct of which an expression is a field, or an element of a field that is an array, where a kernel can have a copy of it.
    fn object(&self, expr: ExprId) -> Option<BindingId> {
        let (field, indexed) = match &self.body.expr(self.body.strip_parens(expr)).kind {
            ExprKind::Index { base, .. } => (self.body.strip_parens(*base), true),
            _ => (self.body.strip_parens(expr), false),
        };
        let ExprKind::Field {
            base,
            field,
            arrow: false,
        } = &self.body.expr(field).kind
        else {
            return None;
        };
        let binding = self.host.local(*base).filter(|b| !self.host.changes(*b))?;
        let own = self.body.binding(binding);
        let db = self.host.function.db;
        let mut files = included_files(db, self.host.file()).iter();
        let class = files.find_map(|file| items(db, *file).types.iter().find(|class| class.name == own.ty.base))?;
        let declared = class
            .fields
            .iter()
            .find(|(_, name)| lex::identifiers(name).next() == Some(field))?;
        let fits = own.ty.pointers == 0
            && own.ty.array.is_empty()
            && !own.ty.complex
            && declared.1.contains('[') == indexed
            && !self.body.declared.contains(&own.ty.base)
            && copies_plainly(db, self.host.function.item, &own.ty, 0).is_ok();
        fits.then_some(binding)
    }

    /// The kernel gets a copy of a struct.
    fn copy_object(&mut self, binding: BindingId, span: Span) {
        let own = self.body.binding(binding);
        let (ty, name) = (own.ty.base.clone(), own.name.clone());
        if own.ty.reference {
            self.assume_unchanged(&name, span);
        }
        self.param(&ty, &name, name.clone());
    }

    /// Whether a name is a constant that device code may use.
    fn is_constant_name(&self, name: &str) -> bool {
        match meaning_in(self.host.function.db, self.host.function.item, name) {
            Meaning::Enumerator(_) => true,
            Meaning::Global(global) => is_constant_global(self.host, &global, 0),
            _ => constant(name),
        }
    }

    /// The type of a number of the host's that never changes, and that device code doesn't see.
    fn host_constant(&self, name: &str) -> Option<String> {
        match meaning_in(self.host.function.db, self.host.function.item, name) {
            Meaning::Global(global) => {
                let number = global.constant && !global.pointer && global.dims == 0 && is_plain_type(&global.base);
                (number && !global.constant_memory && !global.device).then(|| global.base.clone())
            }
            _ => None,
        }
    }

    /// Whether an expression is made of constants that the kernel sees as the host does.
    fn is_constant(&self, expr: ExprId) -> bool {
        match &self.body.expr(expr).kind {
            ExprKind::Literal(literal) => *literal != Literal::Str,
            ExprKind::SizeOf => self.odd_size(expr).is_none(),
            ExprKind::Name(Name::Other(name)) => self.is_constant_name(name),
            ExprKind::Paren(e) | ExprKind::Unary(_, e) => self.is_constant(*e),
            ExprKind::Binary(_, a, b) => self.is_constant(*a) && self.is_constant(*b),
            ExprKind::Cast { ty, operand, .. } => is_plain_type(ty) && self.is_constant(*operand),
            ExprKind::Construct { ty, args } => {
                (ty == "dim3" || is_plain_type(ty)) && args.iter().all(|e| self.is_constant(*e))
            }
            _ => false,
        }
    }

    /// The variable of the host's alone whose size an expression is.
    fn odd_size(&self, expr: ExprId) -> Option<String> {
        let source = self.host.source(self.span(expr));
        let known = |name: &str| {
            let named: Vec<BindingId> = (0..self.body.bindings.len() as u32)
                .map(BindingId)
                .filter(|b| self.body.binding(*b).name == name)
                .collect();
            named.is_empty() || named.iter().any(|b| self.host.changes(*b))
        };
        let own_type = |name: &str| self.body.declared.contains(name);
        lex::identifiers(source)
            .find(|name| !known(name) || own_type(name))
            .map(str::to_owned)
    }

    /// The text of an expression as the kernel has it.
    fn text_of(&mut self, expr: ExprId) -> String {
        let from = self.edits.len();
        self.value(expr);
        let text = self.edited(self.span(expr), from);
        crate::edit::one_line::one_line(&text)
    }

    /// The text of a span with the edits from one on, which it takes.
    fn edited(&mut self, span: Span, from: usize) -> String {
        let mut edits = self.edits.split_off(from);
        edits.sort_by_key(|(at, _)| (at.start, at.end));
        let (mut out, mut at) = (String::new(), span.start);
        for (place, text) in edits {
            if place.start < at || place.end > span.end {
                // Two of them want the same text.
                self.refuse("the loop is not understood", span);
                return out;
            }
            out.push_str(self.host.source(Span::new(at, place.start)));
            let start = (place.start + self.host.function.start) as usize;
            let indent = style::indent_at(&self.host.function.text, start).to_owned();
            out.push_str(&self.style.fit(&text, &indent));
            at = place.end;
        }
        out.push_str(self.host.source(Span::new(at, span.end)));
        out
    }

    /// A pointer into the device's memory.
    fn pointer(&mut self, expr: ExprId) -> String {
        match &self.body.expr(expr).kind {
            ExprKind::Paren(e) => self.pointer(*e),
            // Any pointer is one to void: what is needed of the cast is what makes one out of a number, or of a pointer to constants.
            ExprKind::Cast { operand, .. } => {
                let ty = self.host.local(*operand).map(|b| &self.body.binding(b).ty);
                if ty.is_none_or(|ty| ty.pointers > 0 && !ty.const_base) {
                    return self.pointer(*operand);
                }
                let from = self.edits.len();
                self.value(*operand);
                self.edited(self.span(expr), from)
            }
            _ => self.text_of(expr),
        }
    }

    /// Whether device code may use a pointer that the host uses itself.
    fn is_shared(&self, pointer: ExprId) -> bool {
        const SHARED: [&str; 4] = [
            "cudaMallocManaged",
            "cudaMallocHost",
            "cudaHostAlloc",
            "cudaHostGetDevicePointer",
        ];
        let text = self.host.flat(pointer);
        let passed = self.host.launches.iter().any(|site| {
            let mut args = site.launch.args.iter();
            args.any(|arg| self.host.flat(*arg) == text)
        });
        passed
            || self.body.exprs.iter().any(|e| match &e.kind {
                ExprKind::Call {
                    name: Some(name), args, ..
                } if SHARED.contains(&name.trim_start_matches("::")) => {
                    let given = args.first().and_then(|arg| self.host.address_of(*arg));
                    given.is_some() && given == self.host.local(pointer)
                }
                _ => false,
            })
    }

    /// The pointer through which the host reaches memory that it shares with the device; refused where it may be the host's alone.
    fn shared_place(&mut self, place: ExprId) -> Option<String> {
        let bare = self.body.strip_parens(place);
        let span = self.span(place);
        match &self.body.expr(bare).kind {
            ExprKind::Deref(pointer) => self.shared_pointer(*pointer, span),
            ExprKind::Index { base, index } if api::is_zero(&self.host.function, *index) => {
                self.shared_pointer(*base, span)
            }
            ExprKind::Name(Name::Other(name)) => {
                match meaning_in(self.host.function.db, self.host.function.item, name) {
                    Meaning::Global(global) if global.managed && global.dims == 0 => Some(format!("&{name}")),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn shared_pointer(&mut self, pointer: ExprId, span: Span) -> Option<String> {
        if !self.is_shared(pointer) {
            let what = self.host.flat(pointer);
            self.refuse(
                format!("`{what}` isn't known to point to memory that device code can read: pass it to a kernel of the loop, or use a variable"),
                span,
            );
        }
        if self.body.expr(pointer).from_macro {
            self.refuse("a pointer that comes out of a macro is read", span);
        }
        Some(self.text_of(pointer))
    }

    /// A value that every thread computes.
    fn value(&mut self, expr: ExprId) {
        let span = self.span(expr);
        match &self.body.expr(expr).kind {
            ExprKind::Literal(literal) if *literal != Literal::Str => {}
            ExprKind::SizeOf => {
                if let Some(name) = self.odd_size(expr) {
                    self.refuse(
                        format!("the size of `{name}` isn't known in a kernel: write its type"),
                        span,
                    );
                }
            }
            ExprKind::Paren(e) | ExprKind::Unary(_, e) => self.value(*e),
            ExprKind::Binary(op, a, b) => {
                self.refuse_rounding(expr, *op);
                self.value(*a);
                self.value(*b);
            }
            ExprKind::Logical { lhs, rhs, .. } => {
                self.value(*lhs);
                self.value(*rhs);
            }
            ExprKind::Conditional { cond, then, otherwise } => {
                self.value(*cond);
                self.value(*then);
                self.value(*otherwise);
            }
            ExprKind::Cast {
                ty,
                operand,
                reinterpret: false,
            } if is_plain_type(ty) => self.value(*operand),
            ExprKind::Construct { ty, args } if ty == "dim3" || is_plain_type(ty) => {
                args.iter().for_each(|e| self.value(*e));
            }
            ExprKind::Name(Name::Local(binding)) => {
                let name = self.variable(*binding, span);
                if name != self.body.binding(*binding).name {
                    self.edits.push((span, name));
                }
            }
            ExprKind::Name(Name::Other(name)) if self.is_constant_name(name) => {}
            ExprKind::Name(Name::Other(name)) if self.host_constant(name).is_some() => {
                let ty = self.host_constant(name).unwrap_or_default();
                let given = self.param(&ty, name.rsplit("::").next().unwrap_or(name), name.clone());
                if given != *name {
                    self.edits.push((span, given));
                }
            }
            ExprKind::Field {
                base,
                field,
                arrow: false,
            } if self
                .host
                .local(*base)
                .is_some_and(|b| self.body.binding(b).ty.base == "dim3")
                && matches!(field.as_str(), "x" | "y" | "z") =>
            {
                self.value(*base);
            }
            ExprKind::Index { index, .. } if self.object(expr).is_some() => {
                self.object(expr).into_iter().for_each(|b| self.copy_object(b, span));
                self.value(*index);
            }
            ExprKind::Field { .. } if !varies(self.host, expr) => match self.object(expr) {
                Some(binding) => self.copy_object(binding, span),
                None => self.field(expr),
            },
            _ => match self.shared_place(expr) {
                Some(place) => self.edits.push((span, format!("{}.load({place})", self.rounds))),
                None => self.refuse(self.cannot_move(span), span),
            },
        }
    }

    /// A field of an object of the host's: passed by value.
    fn field(&mut self, expr: ExprId) {
        let span = self.span(expr);
        let value = self.host.flat(expr);
        let known = self.params.iter().find(|p| p.value == value).map(|p| p.name.clone());
        let passed = known.or_else(|| {
            let sites = self.host.launches.iter().zip(&self.kernels.of_launch);
            let ty = sites
                .flat_map(|(site, kernel)| site.launch.args.iter().zip(&self.kernels.all[*kernel].params))
                .find(|(arg, _)| self.host.flat(**arg) == value)
                .map(|(_, param)| match param.ty.pointers {
                    0 => param.ty.base.clone(),
                    _ => format!("{}{}", param.ty.text, "*".repeat(usize::from(param.ty.pointers))),
                });
            let ty = ty.or_else(|| ctype::type_of(&self.host.launches[self.shape.block], expr));
            let ty = ty?;
            self.outside(expr, None);
            let wanted = last_name(self.body, expr)?.to_owned();
            Some(self.param(&ty, &wanted, value.clone()))
        });
        match passed {
            Some(name) => self.edits.push((span, name)),
            None => self.refuse(
                format!("the type of `{value}` isn't known: copy it to a variable before the loop"),
                span,
            ),
        }
    }

    /// What the device rounds otherwise, as it multiplies and adds in one step.
    fn refuse_rounding(&mut self, expr: ExprId, op: BinOp) {
        let arithmetic = matches!(op, BinOp::Add | BinOp::Sub | BinOp::Mul | BinOp::Div);
        let ty = ctype::type_of(&self.host.launches[self.shape.block], expr);
        if arithmetic && ty.is_some_and(|ty| matches!(ty.as_str(), "float" | "double")) {
            let what = self.host.flat(expr);
            self.edit.assume(assumption::ROUNDING.of(Reason {
                text: format!("`{what}` may be rounded as the device does it, which multiplies and adds in one step"),
                place: Some(self.host.function.place(self.span(expr))),
            }));
        }
    }

    /// An expression that is evaluated for what it changes.
    fn effect(&mut self, expr: ExprId) {
        let span = self.span(expr);
        match &self.body.expr(expr).kind {
            ExprKind::Paren(e) => self.effect(*e),
            ExprKind::Comma(a, b) => {
                self.effect(*a);
                self.effect(*b);
            }
            ExprKind::Assign { op, place, value } => {
                if self.host.local(*place).is_some_and(|b| self.host.changes(b)) {
                    if let Some(op) = op {
                        self.refuse_rounding(*place, *op);
                    }
                    self.value(*value);
                    return;
                }
                match self.shared_place(*place) {
                    Some(place) if op.is_none() => {
                        let value = self.text_of(*value);
                        self.edits
                            .push((span, format!("{}.store({place}, {value})", self.rounds)));
                    }
                    _ => self.refuse(self.cannot_move(span), span),
                }
            }
            ExprKind::IncDec { place, .. } if self.host.local(*place).is_some_and(|b| self.host.changes(b)) => {}
            ExprKind::Call {
                name: Some(name), args, ..
            } if api::named(&self.host.function, name) == Some(api::Call::Swap) => {
                let named: Vec<Option<BindingId>> = args.iter().map(|arg| self.host.local(*arg)).collect();
                match named.as_slice() {
                    [Some(a), Some(b)] => {
                        let (a, b) = (&self.body.binding(*a).name, &self.body.binding(*b).name);
                        self.edits.push((span, format!("{}.swap({a}, {b})", self.rounds)));
                    }
                    _ => self.refuse(self.cannot_move(span), span),
                }
            }
            ExprKind::Cast { ty, operand, .. } if ty == "void" => self.effect(*operand),
            _ => self.refuse(self.cannot_move(span), span),
        }
    }
}

/// The name that an expression ends with: `row` of `g.row`.
fn last_name(body: &Body, expr: ExprId) -> Option<&str> {
    match &body.expr(expr).kind {
        ExprKind::Paren(e) | ExprKind::Cast { operand: e, .. } => last_name(body, *e),
        ExprKind::Field { field, .. } => Some(field),
        ExprKind::Name(Name::Other(name)) => Some(name.rsplit("::").next().unwrap_or(name)),
        ExprKind::Name(Name::Local(binding)) => Some(&body.binding(*binding).name),
        _ => None,
    }
}

/// Whether the program may have streams beside that of the loop.
fn has_streams(host: &HostLoop<'_>) -> bool {
    let db = host.function.db;
    included_files(db, host.file()).iter().any(|file| {
        let text = file.text(db);
        let mut words = lex::identifiers(&text);
        !is_header(db, *file) && words.any(|word| matches!(word, "cudaStream_t" | "cudaStreamPerThread"))
    })
}

/// Whether a variable is a constant that the compiler knows, and so device code does: one whose initialiser is made of such. What a
/// function computes is none: when the program starts, the host's variable gets it.
fn is_constant_global(host: &HostLoop<'_>, global: &GlobalItem, depth: u32) -> bool {
    let Function { db, item, .. } = &host.function;
    let known = |word: &str| {
        is_plain_type(word)
            || matches!(
                word,
                "sizeof" | "static_cast" | "true" | "false" | "unsigned" | "signed" | "long" | "short"
            )
            || match meaning_in(*db, *item, word) {
                Meaning::Enumerator(_) => true,
                Meaning::Global(of) => depth < 8 && is_constant_global(host, &of, depth + 1),
                _ => constant(word),
            }
    };
    let made_of_known = |init: &String| lex::identifiers(init).all(known);
    global.constant && !global.pointer && global.dims == 0 && global.init.as_ref().is_some_and(made_of_known)
}
