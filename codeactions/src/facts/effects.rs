//! What a device function does that matters when its body is moved into another function: looked up in the tokens of its
//! text, the macros it uses and the functions it calls. Tokens know no control flow, so every answer errs on the safe side.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use gridfuse_analysis::base::budget::MACRO_BYTES;
use gridfuse_analysis::base::db::Db;
use gridfuse_analysis::base::db::SourceFile;
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::Span;
use gridfuse_analysis::base::span::TextRange;
use gridfuse_analysis::facts::groups::{Group, decided_by, group_call, made_by};
use gridfuse_analysis::facts::hidden::hidden;
use gridfuse_analysis::facts::unseen::Role;
use gridfuse_analysis::facts::unseen::unseen;
use gridfuse_analysis::hir::assembly::assembly_may_have;
use gridfuse_analysis::hir::assembly::assembly_text;
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::library::{Does, Library, Memory, Together, library};
use gridfuse_analysis::hir::names::unqualified;
use gridfuse_analysis::hir::resolve::{declarations_of, functions_in, functions_named};
use gridfuse_analysis::hir::scope::hides;
use gridfuse_analysis::hir::stream_ordered::Operation;
use gridfuse_analysis::hir::visible::Visible;
use gridfuse_analysis::hir::visible::visible;
use gridfuse_analysis::hir::visible::visible_names;
use gridfuse_analysis::hir::{Body, ExprKind, Literal, StmtKind, Storage, body};

use crate::edit::lex::{self, Token, TokenKind};
use crate::facts::calls;
use crate::runtime::is_header;

/// A place with the words to name what stands there.
#[derive(Clone, Debug, PartialEq, Eq, salsa::SalsaValue)]
pub struct Found {
    /// `__syncthreads()`, `a call of f`.
    pub what: String,
    /// Where.
    pub place: FileRange,
}

/// Inline assembly.
#[derive(Clone, Debug, PartialEq, Eq, salsa::SalsaValue)]
pub struct Assembly {
    /// See [`assembly_text`].
    pub text: Option<String>,
    /// Where: a macro's use, when it comes out of that.
    pub place: FileRange,
}

impl Assembly {
    /// It has one of these words, or may have it.
    pub fn may_have(&self, wanted: &[&str]) -> bool {
        assembly_may_have(self.text.as_deref(), wanted)
    }

    /// What it does depends on its operands and memory alone, and not on which thread runs it or which others there are. Asks for
    /// registers of the machine by their percent sign, as operands are numbers.
    pub fn computes_alone(&self) -> bool {
        const TOGETHER: &[&str] = &[
            "activemask",
            "vote",
            "match",
            "shfl",
            "redux",
            "elect",
            "bar",
            "barrier",
            "mbarrier",
            "mma",
            "wmma",
            "wgmma",
            "ldmatrix",
            "stmatrix",
            "movmatrix",
            "tcgen05",
            "cluster",
            "multicast",
        ];
        let Some(text) = &self.text else { return false };
        let text = text.replace("%%", "%");
        let mut registers = text.split('%').skip(1);
        let only_operands = registers.all(|r| {
            let end = r.find(|c: char| !c.is_alphanumeric() && c != '_');
            let name = r.get(..end.unwrap_or(r.len())).unwrap_or("");
            let clock = matches!(name, "clock" | "clock64" | "globaltimer");
            clock || !name.is_empty() && name.bytes().all(|b| b.is_ascii_digit())
        });
        only_operands && !self.may_have(TOGETHER)
    }
}

/// The result, with the places in the order in which they were met. Callees are included everywhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, salsa::SalsaValue)]
pub struct Effects {
    /// Built-in variables (`blockIdx`…) that functions other than the one asked about read, with the function's name.
    pub builtins_in_callees: Vec<(&'static str, String, FileRange)>,
    /// Barriers of the block.
    pub barriers: Vec<Found>,
    /// Exchange with other threads of the warp.
    pub warp: Vec<Found>,
    /// `__shared__`.
    pub shared: Vec<Found>,
    /// Launches.
    pub launches: Vec<Found>,
    /// Waiting for child grids.
    pub syncs: Vec<Found>,
    /// Reading of a launch's error.
    pub errors: Vec<Found>,
    /// Events.
    pub events: Vec<Found>,
    /// Memory that is set or copied in the order of a stream.
    pub operations: Vec<Found>,
    /// `asm`.
    pub asm: Vec<Assembly>,
    /// Waiting for another thread: `while (atomicCAS(…))`.
    pub waits: Vec<Found>,
    /// Calls of functions of which nothing is known.
    pub unknown: Vec<Found>,
    /// Functions that call themselves.
    pub recursion: Vec<Found>,
    /// Loads of memory that nothing may write while the kernel runs: `__ldg`, `ld.global.nc`, textures and surfaces.
    pub read_only: Vec<Found>,
    /// Fences: what was written before is seen by who sees what is written behind.
    pub fences: Vec<Found>,
    /// `__restrict__` pointers of functions that it calls, and of variables: loads through them may be of that kind, too.
    pub restricts: Vec<Found>,
    /// `__func__` and the like.
    pub own_name: Vec<Found>,
}

pub(crate) const BUILTINS: [&str; 4] = ["threadIdx", "blockIdx", "gridDim", "blockDim"];

/// The effects of `function` and all that it calls.
#[salsa::tracked(returns(clone))]
pub fn effects<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Arc<Effects> {
    let mut scan = Scan {
        db,
        root: function,
        found: Effects::default(),
        done: HashSet::new(),
        active: Vec::new(),
        replaced: 0,
    };
    scan.function(function);
    Arc::new(scan.found)
}

struct Scan<'db> {
    db: &'db dyn Db,
    root: FunctionItem<'db>,
    found: Effects,
    done: HashSet<FunctionItem<'db>>,
    active: Vec<FunctionItem<'db>>,
    /// Bytes of the macros that were followed, each as often as it was.
    replaced: usize,
}

/// What the tokens of one text may refer to.
struct Context<'a, 'db> {
    function: FunctionItem<'db>,
    /// The function whose own words these are; `None` inside of the macro replacement of something unknown.
    file: SourceFile,
    visible: &'a Visible<'db>,
    /// Local variables: whether calling one is a call of something unknown.
    locals: HashMap<String, bool>,
    /// Where local variables are declared, relative to the function.
    declared: HashSet<u32>,
    /// Where names of member functions of cooperative groups are called, relative to the function.
    groups: HashMap<u32, (Group, Library)>,
    template_names: &'a [String],
}

impl<'db> Scan<'db> {
    fn function(&mut self, function: FunctionItem<'db>) {
        if self.active.contains(&function) {
            let place = self.name_place(function);
            let what = format!("`{}` calls itself", function.name(self.db));
            self.found.recursion.push(Found { what, place });
            return;
        }
        // What the runtime header does is no effect of the program's: who uses it knows what for.
        if is_header(self.db, function.file(self.db)) || !self.done.insert(function) {
            return;
        }
        if self.active.len() > 60 {
            let place = self.name_place(function);
            let what = "calls that are nested too deeply".to_owned();
            self.found.unknown.push(Found { what, place });
            return;
        }
        self.active.push(function);
        let db = self.db;
        let lowered = body(db, function);
        let mut locals = HashMap::new();
        let mut declared = HashSet::new();
        for binding in &lowered.bindings {
            let opaque = binding.storage == Storage::Param;
            locals
                .entry(binding.name.clone())
                .and_modify(|o| *o |= opaque)
                .or_insert(opaque);
            declared.insert(binding.span.start);
        }
        for stmt in &lowered.stmts {
            if let StmtKind::Decl(decls) = &stmt.kind {
                for decl in decls {
                    let lambda = decl
                        .init
                        .is_some_and(|i| matches!(lowered.expr(i).kind, ExprKind::Lambda { .. }));
                    if !lambda && let Some(opaque) = locals.get_mut(&lowered.binding(decl.binding).name) {
                        *opaque = true;
                    }
                }
            }
        }
        let file = function.file(db);
        for binding in lowered.bindings.iter().filter(|b| b.ty.restrict) {
            let own = function == self.root && binding.storage == Storage::Param;
            if !own {
                let what = format!("`{}`, which is __restrict__", binding.name);
                let range = binding.span.shift(function.start(db));
                self.found.restricts.push(Found {
                    what,
                    place: FileRange { file, range },
                });
            }
        }
        let signature = function.signature(db);
        let context = Context {
            function,
            file,
            visible: visible(db, file),
            locals,
            declared,
            groups: group_calls(db, function, &lowered),
            template_names: &signature.template_names,
        };
        let text = function.text(db);
        let span = function.body_span(db);
        if let Some(code) = text.get(span.start as usize..span.end as usize) {
            self.tokens(code, span.start, None, &context, &mut Vec::new());
        }
        // Default arguments are evaluated where it is called; a declaration apart may have them.
        if function != self.root {
            for head in declarations_of(db, function).into_iter().chain([function]) {
                let (span, text) = (head.signature(db).params_span, head.text(db));
                let params = text.get(span.start as usize..span.end as usize);
                if let Some(code) = params.filter(|code| code.contains('=')) {
                    let file = head.file(db);
                    let context = Context {
                        function: head,
                        file,
                        visible: visible(db, file),
                        locals: context.locals.clone(),
                        declared: context.declared.clone(),
                        groups: HashMap::new(),
                        template_names: context.template_names,
                    };
                    self.tokens(code, span.start, None, &context, &mut Vec::new());
                }
            }
        }
        let mut unknown = |what: String, span: Span| {
            let range = span.shift(function.start(db));
            let place = FileRange { file, range };
            self.found.unknown.push(Found { what, place });
        };
        for (span, reason) in &lowered.problems {
            unknown(reason.clone(), *span);
        }
        for name in unseen(db, function).iter() {
            // What computes a value reads what stands beside it: in a body that moves that's given, in a function that is called it isn't.
            if name.role != Role::Value || function != self.root {
                unknown(
                    format!("`{}`, of which no definition is in sight", name.name),
                    name.span,
                );
            }
        }
        for hidden in hidden(db, function).iter() {
            unknown(format!("{}, which isn't called by its name", hidden.what), hidden.span);
        }
        self.active.pop();
    }

    fn name_place(&self, function: FunctionItem<'db>) -> FileRange {
        FileRange {
            file: function.file(self.db),
            range: function.signature(self.db).name_span.shift(function.start(self.db)),
        }
    }

    /// Looks at the tokens of `code`: a function's body (`shift`: its offset in the function), or a macro's replacement, which
    /// stands for the place `at`.
    fn tokens(
        &mut self,
        code: &str,
        shift: u32,
        at: Option<FileRange>,
        context: &Context<'_, 'db>,
        macros: &mut Vec<String>,
    ) {
        let tokens = lex::code_tokens(code);
        let text = |index: Option<usize>| index.and_then(|i| tokens.get(i)).map_or("", |t| t.text(code));
        let directives = lex::conditions(code);
        for (index, &token) in tokens.iter().enumerate() {
            let word = token.text(code);
            // What a condition of the preprocessor asks is no code.
            if at.is_none() && directives.iter().any(|line| line.contains(&token.start)) {
                continue;
            }
            let place = at.unwrap_or_else(|| FileRange {
                file: context.file,
                range: TextRange::new(token.start as u32 + shift, token.end as u32 + shift)
                    .moved(context.function.start(self.db)),
            });
            if token.kind == TokenKind::Punct && is_launch(code, &tokens, index) {
                let what = "a launch".to_owned();
                self.found.launches.push(Found { what, place });
            }
            if token.kind != TokenKind::Word || self.of_language(code, &tokens, index, place) {
                continue;
            }
            let before = |back: usize| text(index.checked_sub(back));
            if BUILTINS.contains(&word) {
                self.builtin(word, before(1) == ":" && before(2) == ":", place, context);
                continue;
            }
            let called = is_called(code, &tokens, index);
            if before(1) == "." || (before(1) == ">" && before(2) == "-") {
                let group = context
                    .groups
                    .get(&(token.start as u32 + shift))
                    .filter(|_| at.is_none());
                match group {
                    Some((group, known)) => self.group_member(word, *group, known, place),
                    None if called => self.method(word, place, context),
                    None => {}
                }
                continue;
            }
            // A name in the middle of a qualified one is looked at with the last part.
            if text(Some(index + 1)) == ":" && text(Some(index + 2)) == ":" {
                continue;
            }
            let qualified = qualified(code, &tokens, index);
            if at.is_none() && context.declared.contains(&(token.start as u32 + shift)) {
                continue;
            }
            if let Some(opaque) = context.locals.get(word)
                && qualified == word
            {
                if called && *opaque {
                    let what = format!("a call of `{word}`");
                    self.found.unknown.push(Found { what, place });
                }
                continue;
            }
            if calls::is_keyword(word) || qualified == word && context.template_names.iter().any(|n| n == word) {
                continue;
            }
            self.name(&qualified, called, place, context, macros);
        }
    }

    /// A word of the language that has an effect of its own; `false` when it is none.
    fn of_language(&mut self, code: &str, tokens: &[Token], index: usize, place: FileRange) -> bool {
        let Some(token) = tokens.get(index) else { return false };
        let word = token.text(code);
        let found = |what: &str| Found {
            what: what.to_owned(),
            place,
        };
        match word {
            "__shared__" => self.found.shared.push(found("__shared__ memory")),
            "asm" | "__asm__" | "__asm" => {
                let assembly = Assembly {
                    text: assembly_text(code.get(token.start..).unwrap_or("")),
                    place,
                };
                // Such loads go by way of a cache that doesn't see what is written meanwhile.
                if assembly.may_have(&["nc", "tex", "tld4"]) {
                    self.found.read_only.push(found("ld.global.nc"));
                }
                self.found.asm.push(assembly);
            }
            "__func__" | "__FUNCTION__" | "__PRETTY_FUNCTION__" => self.found.own_name.push(found(word)),
            "while" => {
                if waits(code, tokens, index) {
                    self.found.waits.push(found("a loop that waits for another thread"));
                }
            }
            _ => return false,
        }
        true
    }

    /// A built-in variable; `global`: written with `::`.
    fn builtin(&mut self, word: &str, global: bool, place: FileRange, context: &Context<'_, 'db>) {
        // No parameter stands for that.
        if global {
            let what = format!("`::{word}`");
            self.found.unknown.push(Found { what, place });
            return;
        }
        // An outlined body has parameters of these names.
        let own = context.locals.contains_key(word);
        if !own && context.function != self.root {
            self.reads_itself(&[word], context.function.name(self.db), place);
        }
    }

    /// Something with a name of its own reads built-in variables.
    fn reads_itself(&mut self, words: &[&str], name: &str, place: FileRange) {
        for builtin in BUILTINS.iter().filter(|b| words.contains(b)) {
            self.found.builtins_in_callees.push((builtin, name.to_owned(), place));
        }
    }

    /// A name that isn't local.
    fn name(
        &mut self,
        name: &str,
        called: bool,
        place: FileRange,
        context: &Context<'_, 'db>,
        macros: &mut Vec<String>,
    ) {
        let db = self.db;
        let names = visible_names(db, context.file);
        let last = unqualified(name);
        // A function or class that only the template's arguments, or the function's own declarations, tell.
        if called && hides(db, context.function, name) {
            let what = format!("`{name}`, of which no definition is in sight");
            self.found.unknown.push(Found { what, place });
            return;
        }
        if names.ambiguous_macros.contains(last) {
            let what = format!("`{last}`, a macro whose definition is not certain");
            self.found.unknown.push(Found { what, place });
            return;
        }
        if let Some(item) = names.macros.get(last) {
            // Each use counts, as launches are counted; so macros that use each other may stand for any number of them.
            if macros.contains(&item.name) {
                return;
            }
            self.replaced = self.replaced.saturating_add(item.name.len() + item.body.len());
            if macros.len() >= 40 || self.replaced > MACRO_BYTES {
                let said = self.found.unknown.last().is_some_and(|f| f.place == place);
                if !said {
                    let what = format!("`{last}`, a macro that is too large to be followed");
                    self.found.unknown.push(Found { what, place });
                }
                return;
            }
            macros.push(item.name.clone());
            self.tokens(&item.body, 0, Some(place), context, macros);
            macros.pop();
            return;
        }
        let known = context.visible.functions.contains_key(last) || called;
        let functions = if known {
            functions_named(db, context.file, name)
        } else {
            Vec::new()
        };
        if !functions.is_empty() {
            let bodies: Vec<_> = functions.iter().copied().filter(|f| f.has_body(db)).collect();
            // A kernel is only ever launched: its body runs elsewhere.
            if functions.iter().all(|f| f.signature(db).kernel) {
                return;
            }
            if bodies.is_empty() {
                let what = format!("`{name}`, of which no definition is in sight");
                self.found.unknown.push(Found { what, place });
            }
            for function in bodies {
                self.function(function);
            }
            return;
        }
        if context.visible.globals.get(last).is_some_and(|g| g.shared) {
            let what = format!("`{last}`, which is __shared__");
            self.found.shared.push(Found { what, place });
        }
        if !called {
            return;
        }
        if let Some(known) = library(name) {
            if let Some(group) = made_by(name) {
                self.reads_itself(decided_by(group), name, place);
            }
            self.library(&format!("{last}()"), &known, place);
            return;
        }
        let is_type = calls::PLAIN_TYPES.contains(&last)
            || calls::VECTORS.contains(&last)
            || names.types.contains(last)
            || names.aliases.contains_key(last);
        if !is_type {
            let what = format!("`{name}`, of which no definition is in sight");
            self.found.unknown.push(Found { what, place });
        }
    }

    /// A function of the library.
    fn library(&mut self, what: &str, known: &Library, place: FileRange) {
        let found = || Found {
            what: what.to_owned(),
            place,
        };
        let does = |what: Does| known.does.has(what);
        if matches!(known.memory, Memory::ReadOnly | Memory::Handle { writes: false }) {
            self.found.read_only.push(found());
        }
        if does(Does::FENCE) {
            self.found.fences.push(found());
        }
        if does(Does::WAITS_FOR_CHILDREN) || does(Does::WAITS_FOR_STREAM) {
            self.found.syncs.push(found());
            return;
        }
        if does(Does::READS_ERROR) {
            self.found.errors.push(found());
        }
        match known.stream {
            Some((Operation::Event, _)) => self.found.events.push(found()),
            Some(_) => self.found.operations.push(found()),
            None => {}
        }
        // What needs threads that the arguments name, or memory of one kind, isn't followed.
        let beyond = [Does::HOST, Does::LAUNCHES, Does::ASKS_FOR_MEMORY]
            .into_iter()
            .any(does);
        match known.together {
            _ if beyond => self.found.unknown.push(found()),
            Together::Alone => {}
            Together::Warp => self.found.warp.push(found()),
            Together::Block => self.found.barriers.push(found()),
            Together::Group => {
                let what = format!("{what}, which waits for threads that aren't followed");
                self.found.unknown.push(Found { what, place });
            }
        }
    }

    /// A member function of a cooperative group.
    fn group_member(&mut self, name: &str, group: Group, known: &Library, place: FileRange) {
        // What makes the group has said what decides it; which block it is, the group tells as well.
        if group == Group::Block && name == "group_index" {
            self.reads_itself(&["blockIdx"], name, place);
        }
        self.library(&format!("{name}()"), known, place);
    }

    /// A member function: every member of that name that is in sight may be meant.
    fn method(&mut self, name: &str, place: FileRange, context: &Context<'_, 'db>) {
        let db = self.db;
        let all = functions_named(db, context.file, name);
        let members: Vec<_> = all.into_iter().filter(|f| f.signature(db).member).collect();
        let with_body = members.iter().filter(|f| f.has_body(db));
        let names: HashSet<&str> = with_body.map(|f| f.name(db)).collect();
        let defined = |f: &FunctionItem<'db>| names.contains(f.name(db));
        if members.is_empty() || !members.iter().all(defined) {
            let what = format!("`.{name}()`, of which no definition is in sight");
            self.found.unknown.push(Found { what, place });
        }
        for function in members.iter().filter(|f| f.has_body(db)) {
            self.function(*function);
        }
    }
}

/// The calls of member functions of cooperative groups, by where their names begin.
fn group_calls(db: &dyn Db, function: FunctionItem<'_>, body: &Body) -> HashMap<u32, (Group, Library)> {
    let calls = body.exprs.iter().filter_map(|expr| match &expr.kind {
        ExprKind::Call { callee, .. } => Some(*callee),
        _ => None,
    });
    let named = calls.filter_map(|callee| {
        let found = group_call(db, function, body, callee)?;
        let ExprKind::Field { field, .. } = &body.expr(callee).kind else {
            return None;
        };
        Some((body.expr(callee).span.end.checked_sub(field.len() as u32)?, found))
    });
    named.collect()
}

/// `<<<` begins at a token.
fn is_launch(code: &str, tokens: &[Token], index: usize) -> bool {
    let opens = |i: usize| tokens.get(i).is_some_and(|t| t.text(code) == "<");
    let within = index.checked_sub(1).is_some_and(opens);
    !within && (index..index + 3).all(opens)
}

/// The word at `index` is followed by an argument list, perhaps behind template arguments.
fn is_called(code: &str, tokens: &[Token], index: usize) -> bool {
    let text = |i: usize| tokens.get(i).map_or("", |t| t.text(code));
    match text(index + 1) {
        "(" => true,
        "{" => false,
        "<" if text(index + 2) != "<" => {
            let mut depth = 0i32;
            for next in index + 1..(index + 200).min(tokens.len()) {
                match text(next) {
                    "<" => depth += 1,
                    ">" => {
                        depth -= 1;
                        if depth == 0 {
                            return text(next + 1) == "(";
                        }
                    }
                    "(" | ")" | "," | ":" | "*" | "&" => {}
                    ";" | "{" | "}" | "=" | "|" => return false,
                    _ => {}
                }
            }
            false
        }
        _ => false,
    }
}

/// The qualified name that ends at the word `index`.
fn qualified(code: &str, tokens: &[Token], index: usize) -> String {
    let text = |i: usize| tokens.get(i).map_or("", |t| t.text(code));
    let mut name = text(index).to_owned();
    let mut at = index;
    while at >= 3 && text(at - 1) == ":" && text(at - 2) == ":" && tokens[at - 3].kind == TokenKind::Word {
        at -= 3;
        name = format!("{}::{name}", text(at));
    }
    name
}

/// `while (…)` with an atomic exchange or a volatile load in its condition.
fn waits(code: &str, tokens: &[Token], index: usize) -> bool {
    let mut depth = 0i32;
    for token in tokens.iter().skip(index + 1) {
        match token.text(code) {
            "(" => depth += 1,
            ")" => {
                depth -= 1;
                if depth == 0 {
                    return false;
                }
            }
            "atomicCAS" | "atomicExch" | "volatile" | "__ldcv" | "atomicOr" => return true,
            _ => {}
        }
    }
    false
}

/// Whether a function changes nothing that its caller could see and reads no memory but its arguments', so that it may be
/// called twice: only its own variables are written, only pure functions are called.
pub fn is_pure<'db>(db: &'db dyn Db, function: FunctionItem<'db>, depth: u32) -> bool {
    use gridfuse_analysis::hir::{ExprId, Name};
    fn own(body: &Body, place: ExprId) -> bool {
        match &body.expr(place).kind {
            ExprKind::Name(Name::Local(b)) => {
                let binding = body.binding(*b);
                !binding.ty.reference && matches!(binding.storage, Storage::Local | Storage::Param)
            }
            ExprKind::Paren(e)
            | ExprKind::Field {
                base: e, arrow: false, ..
            } => own(body, *e),
            _ => false,
        }
    }
    if depth > 8 || !function.has_body(db) {
        return false;
    }
    let body = body(db, function);
    if !body.problems.is_empty() {
        return false;
    }
    let exprs = body.exprs.iter().all(|expr| match &expr.kind {
        ExprKind::Assign { place, .. } | ExprKind::IncDec { place, .. } => own(&body, *place),
        ExprKind::Call { name: Some(name), .. } => {
            calls::is_pure(db, function, name) || {
                let functions = functions_in(db, function, name);
                !functions.is_empty()
                    && functions
                        .iter()
                        .filter(|f| f.has_body(db))
                        .all(|f| is_pure(db, *f, depth + 1))
                    && functions.iter().any(|f| f.has_body(db))
            }
        }
        ExprKind::Literal(Literal::Str)
        | ExprKind::Call { name: None, .. }
        | ExprKind::Launch(_)
        | ExprKind::New(_)
        | ExprKind::Delete(_)
        | ExprKind::Lambda { .. }
        | ExprKind::AddrOf(_)
        | ExprKind::Unknown { .. } => false,
        _ => true,
    });
    exprs
        && body
            .stmts
            .iter()
            .all(|stmt| !matches!(stmt.kind, StmtKind::Asm { .. } | StmtKind::Unknown { .. }))
}

/// A range moved by the offset of the function that it is relative to.
trait Moved {
    fn moved(self, by: u32) -> Self;
}

impl Moved for TextRange {
    fn moved(self, by: u32) -> Self {
        TextRange::new(self.start + by, self.end + by)
    }
}
