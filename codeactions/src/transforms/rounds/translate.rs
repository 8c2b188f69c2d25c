//! The loop as the kernel has it: the host's text, in which launches and calls of CUDA's runtime have become calls of the runtime, and
//! what the host alone knows has become parameters.

mod constants;
mod macros;
mod unchanged;
mod values;

use std::collections::{BTreeSet, HashSet};

use gridfuse_analysis::base::span::Span;
use gridfuse_analysis::facts::launch::Stream;
use gridfuse_analysis::hir::included::included_files;
use gridfuse_analysis::hir::names::unqualified;
use gridfuse_analysis::hir::resolve::{Meaning, meaning_in};
use gridfuse_analysis::hir::{BinOp, Body, ExprId, ExprKind, Name, StmtId, StmtKind, Storage, UnOp};

use super::api::{self, Direction};
use super::checked;
use super::checks::{Checks, Kept};
use super::early;
use super::host_loop::HostLoop;
use super::kernels::{Kernels, Shape, varies};
use super::streams;
use super::variables::{self, Variable};
use crate::api::assumption;
use crate::api::refusal::{Reason, Refusals};
use crate::edit::builder::EditBuilder;
use crate::edit::lex;
use crate::edit::names::{is_macro, words_with_macros};
use crate::edit::style::{self, Style};
use crate::emit::outline::Worker;
use crate::facts::calls::{VECTORS, is_plain_type};
use crate::facts::child::Child;
use crate::facts::ctype;
use crate::facts::instance;
use crate::facts::qualified::qualified;
use crate::facts::site::Site;

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
    while words.contains(&rounds) || is_macro(host.function.db, host.file(), &rounds) {
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
        waits: false,
        words: own_words(host),
        unchanged: BTreeSet::new(),
        computed: BTreeSet::new(),
    };
    translation.loop_statement(host.stmt);
    let text = translation.edited(host.span(), 0);
    translation.refuse_other_meanings(&text, &variables);
    if !translation.waits {
        translation.edit.assume(assumption::HOST_MAY_WAIT.of(Reason {
            text: "the host may wait for the loop, which it only launched: what its kernels wait for doesn't come from the host later, and \
                   no graph records them"
                .to_owned(),
            place: Some(host.function.place(host.span())),
        }));
    }
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
    /// The host waits for the device in each round.
    waits: bool,
    /// The identifiers of the function that mean something by themselves, and those of the macros that it uses.
    words: HashSet<String>,
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
            StmtKind::Empty if constants::declares(self.host.source(span)) => self.refuse(self.cannot_move(span), span),
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
                    self.refuse_inconstant(decl.init, constants::is_constant_declaration(self.host.source(span)));
                }
            }
            StmtKind::If {
                init: None,
                cond: Some(cond),
                constexpr,
                then,
                otherwise,
                ..
            } => {
                self.value(*cond);
                self.refuse_inconstant(Some(*cond), *constexpr);
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
        self.refuse_parts_of_macro(stmt);
        let mut operations = Vec::new();
        let operates = |call: &ExprId| match &self.body.expr(*call).kind {
            ExprKind::Call { name: Some(name), .. } => {
                !matches!(api::named(&self.host.function, name), Some(api::Call::Waits { .. }))
            }
            _ => false,
        };
        if calls.len() > 1 && calls.iter().any(operates) {
            self.refuse(
                "several calls of CUDA's runtime stand in one statement: write one for each",
                span,
            );
        }
        let reached = early::is_reached(self.host, stmt);
        for call in &calls {
            self.waits |= reached && api::waits(&self.host.function, *call);
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
                    self.waits_for_all |= streams::may_be_others(self.host);
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
                self.assume_succeeds(call, *place);
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
                    Direction::ToHost => {
                        self.assume_succeeds(call, *from);
                        self.load(*to, *from, None, *bytes)
                    }
                    Direction::ToDevice => {
                        self.assume_succeeds(call, *to);
                        self.store(*to, None, *from, *bytes)
                    }
                    _ => {
                        self.assume_succeeds(call, *to);
                        self.assume_succeeds(call, *from);
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

    /// Takes for granted that a call works on memory of the device, unless a kernel of the loop does so, too. The host's loop would go on
    /// where the call fails; the grid can't.
    fn assume_succeeds(&mut self, call: ExprId, pointer: ExprId) {
        if self.may_be_constant(pointer) {
            let what = self.host.flat(pointer);
            self.refuse(
                format!(
                    "`{what}` is the address of a variable, which may be `__constant__`: use `cudaMemcpyToSymbol()`"
                ),
                self.span(pointer),
            );
        }
        let bare = |e: ExprId| {
            let mut e = self.body.strip_parens(e);
            while let ExprKind::Cast { operand, .. } | ExprKind::Paren(operand) = self.body.expr(e).kind {
                e = operand;
            }
            e
        };
        let is_symbol =
            |e: ExprId| matches!(&self.body.expr(e).kind, ExprKind::AddrOf(of) if self.host.local(*of).is_none());
        let own = bare(pointer);
        let text = self.host.flat(own);
        let launches = self.host.launches.iter().zip(&self.kernels.of_launch);
        let given = launches
            .flat_map(|(site, kernel)| site.launch.args.iter().enumerate().map(|(at, arg)| (*kernel, at, *arg)));
        // A kernel that asks whether it is a null pointer says nothing.
        let mut used = given.filter(|(kernel, at, _)| self.kernels.all.get(*kernel).is_some_and(|k| !asks_for(k, *at)));
        if is_symbol(own) || used.any(|(_, _, arg)| self.host.flat(bare(arg)) == text) {
            return;
        }
        self.edit.assume(assumption::NO_LAUNCH_FAILS.of(Reason {
            text: format!("no call of CUDA's runtime fails: `{text}` points to memory of the device"),
            place: Some(self.host.function.place(self.span(call))),
        }));
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
        let base = &self.body.binding(binding).ty.base;
        if self.body.binding(binding).ty.pointers == 0 && (base == "dim3" || VECTORS.contains(&base.as_str())) {
            let text = format!("the loop copies a `{base}` from the device: copy its numbers");
            self.refuse(text, self.span(to));
        }
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
            Meaning::Global(_) if self.is_volatile(&name) => {
                self.refuse(
                    format!("`{name}` is `volatile`: take that away, the grid reads it anew in each round"),
                    span,
                );
                None
            }
            Meaning::Global(global) if global.constant => {
                self.refuse(format!("`{name}` is constant: take its `const` away"), span);
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

    /// Whether a variable of the program is declared as `volatile`.
    fn is_volatile(&self, name: &str) -> bool {
        let db = self.host.function.db;
        let own = unqualified(name);
        included_files(db, self.host.file()).iter().any(|file| {
            let text = file.text(db);
            let tokens = lex::code_tokens(&text);
            let named = (0..tokens.len()).filter(|at| tokens[*at].text(&text) == own);
            named.into_iter().any(|at| {
                let before = tokens[..at].iter().rev().map(|token| token.text(&text));
                before
                    .take_while(|word| !matches!(*word, ";" | "{" | "}" | ")"))
                    .any(|word| word == "volatile")
            })
        })
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
        for operand in site.launch.config.iter().chain(&site.launch.args) {
            self.refuse_part_of_macro(*operand);
        }
        self.refuse_template_arguments(site);
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
            self.early_sizes(site);
            return self.text_of(grid);
        }
        let written = self.host.flat(grid);
        if !self.grids.contains(&written) {
            self.grids.push(written.clone());
        }
        self.early_sizes(site);
        if let Some(binding) = self.host.local(grid) {
            return self.variable(binding, self.span(grid));
        }
        if self.is_constant(grid) {
            return written;
        }
        self.outside(grid, site.facts.statement);
        self.param("dim3", "blocks", written)
    }

    /// The host computes the blocks, their shared memory and the stream in front of the loop.
    fn early_sizes(&mut self, site: &Site<'db>) {
        for operand in site.launch.config.iter().skip(1) {
            self.early(*operand, site.facts.statement);
        }
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
        // A constructor that makes the parameter may be the host's alone.
        let class = param.ty.pointers == 0
            && param.ty.base != "dim3"
            && !is_plain_type(&ctype::normalize(&param.ty.base))
            && !ctype::is_integer(self.host.function.db, kernel.file, &param.ty.base)
            && !kernel.item.signature(kernel.db).template_types.contains(&param.ty.base);
        if class && varies(self.host, arg) {
            let what = self.host.flat(arg);
            self.refuse(
                format!(
                    "`{what}` is converted to `{}`, and has another value in another round",
                    param.ty.base
                ),
                self.span(arg),
            );
        }
        if varies(self.host, arg) || !class && (self.is_constant(arg) || self.object(arg).is_some()) {
            return self.text_of(arg);
        }
        if let Some(binding) = self.host.local(arg).filter(|_| !class) {
            let own = &self.body.binding(binding).ty;
            let known = own.pointers > 0 || is_plain_type(&ctype::normalize(&own.base)) || own.base == "dim3";
            if known && !own.complex && own.array.is_empty() && own.base != "auto" {
                return self.variable(binding, self.span(arg));
            }
        }
        self.outside(arg, site.facts.statement);
        let generic = &kernel.item.signature(kernel.db).template_names;
        // Of a pointer to pointers, each may be constant.
        let written = param.field.strip_suffix(param.name.as_str()).map(str::trim_end);
        let ty = match written.filter(|_| param.ty.pointers > 1) {
            Some(written) => written.to_owned(),
            None => format!("{}{}", param.ty.text, "*".repeat(usize::from(param.ty.pointers))),
        };
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
        // The type is written as the kernel's scope has it.
        let words: Vec<&str> = lex::identifiers(&ty).collect();
        let plain = is_plain_type(&ctype::normalize(&param.ty.base)) || param.ty.base == "dim3";
        if !plain && qualified(site, kernel, &kernel.name) != unqualified(&kernel.name) {
            let what = words.join(" ");
            self.refuse(
                format!("`{value}` is of the type `{what}`, which the scope of `{}` names: copy it to a variable before the loop", kernel.name),
                self.span(arg),
            );
        }
        self.param(&ty, &wanted, value)
    }
}

/// Whether a kernel may do without the memory of a parameter: somewhere it looks at the pointer itself.
fn asks_for(kernel: &Child<'_>, parameter: usize) -> bool {
    let body = &kernel.body;
    let Some(pointer) = body.params.get(parameter) else {
        return true;
    };
    let is_it =
        |e: &ExprId| matches!(body.expr(body.strip_parens(*e)).kind, ExprKind::Name(Name::Local(b)) if b == *pointer);
    let in_expr = body.exprs.iter().any(|expr| match &expr.kind {
        ExprKind::Unary(UnOp::Not, e) => is_it(e),
        ExprKind::Logical { lhs, rhs, .. } => is_it(lhs) || is_it(rhs),
        ExprKind::Conditional { cond, .. } => is_it(cond),
        ExprKind::Binary(op, a, b) => {
            let compares = matches!(
                op,
                BinOp::Eq | BinOp::Ne | BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge
            );
            compares && (is_it(a) || is_it(b))
        }
        ExprKind::Cast { operand, .. } => is_it(operand),
        _ => false,
    });
    in_expr
        || body.stmts.iter().any(|stmt| match &stmt.kind {
            StmtKind::If { cond: Some(cond), .. } | StmtKind::While { cond: Some(cond), .. } => is_it(cond),
            _ => false,
        })
}

/// The identifiers of the host's function that mean something by themselves, not as members of what stands in front of them.
fn own_words(host: &HostLoop<'_>) -> HashSet<String> {
    let function = &host.function;
    let text = function.item.text(function.db);
    let tokens = lex::code_tokens(&text);
    let mut code = String::new();
    for (at, token) in tokens.iter().enumerate() {
        let is_member = at > 0 && matches!(tokens[at - 1].text(&text), "." | "->")
            || at > 1 && tokens[at - 1].text(&text) == ">" && tokens[at - 2].text(&text) == "-";
        if !is_member {
            code.push_str(token.text(&text));
            code.push(' ');
        }
    }
    words_with_macros(function.db, host.file(), &code)
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
