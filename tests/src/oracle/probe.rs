//! Probes: calls that hand a value over, in a source that gridfuse and clang both read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use gridfuse_analysis::base::db::Db;
use gridfuse_analysis::facts::uniformity::{FunctionUniformity, Level, Uniformity, assumed_uniformity, uniformity};
use gridfuse_analysis::hir::items::{FunctionItem, items};
use gridfuse_analysis::hir::{
    Binding, BindingId, Body, ExprId, ExprKind, Literal, Stmt, StmtId, StmtKind, Storage, body,
};
use gridfuse_analysis::host::Host;

/// What a probe is called.
pub const NAME: &str = "__probe";

/// Variables that are asked about at one place, the last declared ones.
const VARIABLES: usize = 4;

/// Probes in one function.
const PROBES: usize = 120;

/// A value that is asked about.
#[derive(Clone, Debug)]
pub struct Probe {
    /// The function it stands in.
    pub function: String,
    /// What is asked about.
    pub what: String,
    /// The line of the source without probes.
    pub line: usize,
}

/// A source with probes.
#[derive(Clone, Debug)]
pub struct Probed {
    /// The text that gridfuse reads.
    pub text: String,
    /// The text that clang reads: without host code and without launches, with as many lines.
    pub device: String,
    /// The same where no thread leaves a kernel from inside of a loop. LLVM calls what is changed in a loop divergent behind each of
    /// the loop's exits, if threads leave it at different times by any of them. With the others still there, there are only more
    /// threads that could differ.
    pub staying: String,
    /// The probes by number.
    pub probes: BTreeMap<u32, Probe>,
}

/// Who reads a text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reader {
    Gridfuse,
    Clang,
    ClangStaying,
}

/// A change of the text: bytes from, to, what stands there then, and for whom: those that come later in the list see it as well.
struct Edit {
    from: usize,
    to: usize,
    insert: String,
    reader: Reader,
}

/// Puts probes into all device code of a source.
pub fn probed(source: &str) -> Probed {
    let mut host = Host::new();
    let file = host.set_file(Path::new("/oracle/kernels.cu"), source);
    let db = host.db();
    let mut probing = Probing {
        source,
        edits: Vec::new(),
        probes: BTreeMap::new(),
    };
    for function in &items(db, file).functions {
        probing.function(db, *function);
    }
    for (at, line) in lines(source) {
        if line.trim_start().starts_with("#include") || line.trim_start().starts_with("#pragma once") {
            probing.blank(at, at + line.trim_end().len(), "");
        }
    }
    let text = probing.text(Reader::Gridfuse);
    Probed {
        text: format!("__device__ void {NAME}(int id, long long value) {{}}\n{text}"),
        device: probing.text(Reader::Clang),
        staying: probing.text(Reader::ClangStaying),
        probes: probing.probes,
    }
}

fn lines(source: &str) -> impl Iterator<Item = (usize, &str)> {
    source.split_inclusive('\n').scan(0, |at, line| {
        let start = *at;
        *at += line.len();
        Some((start, line))
    })
}

struct Probing<'a> {
    source: &'a str,
    edits: Vec<Edit>,
    probes: BTreeMap<u32, Probe>,
}

impl Probing<'_> {
    fn function<'db>(&mut self, db: &'db dyn Db, function: FunctionItem<'db>) {
        let signature = function.signature(db);
        let start = function.start(db) as usize;
        if !signature.kernel && !signature.device {
            let end = start + function.text(db).len();
            if !signature.member && function.has_body(db) {
                self.blank(start, end, "");
            }
            return;
        }
        let body = body(db, function);
        for launch in &body.launches {
            let ExprKind::Launch(launch) = &body.expr(*launch).kind else {
                continue;
            };
            let (from, to) = (
                start + launch.name_span.start as usize,
                start + launch.args_span.end as usize,
            );
            self.blank(from, to, "((void)0)");
        }
        if signature.kernel {
            self.stay(&body, start);
        }
        let mut walk = Walk {
            probing: self,
            body: &body,
            name: function.name(db).to_owned(),
            start,
            scope: body
                .params
                .iter()
                .copied()
                .filter(|p| scalar(body.binding(*p)))
                .collect(),
            marks: Vec::new(),
            places: BTreeSet::new(),
            placed: 0,
        };
        if let Some(root) = body.root
            && !body.cut
        {
            walk.block(root, true);
        }
    }

    /// Takes `return` out of a kernel's loops.
    fn stay(&mut self, body: &Body, start: usize) {
        let repeats = |kind: &StmtKind| {
            matches!(
                kind,
                StmtKind::While { .. } | StmtKind::DoWhile { .. } | StmtKind::For { .. } | StmtKind::RangeFor { .. }
            )
        };
        let loops: Vec<_> = body
            .stmts
            .iter()
            .filter(|stmt| repeats(&stmt.kind))
            .map(|stmt| stmt.span)
            .collect();
        for stmt in body.stmts.iter().filter(|stmt| stmt.kind == StmtKind::Return(None)) {
            let (from, to) = (start + stmt.span.start as usize, start + stmt.span.end as usize);
            let inside = loops
                .iter()
                .any(|l| l.start <= stmt.span.start && stmt.span.end <= l.end);
            if inside && self.source.get(from..to).is_some_and(|text| text.starts_with("return")) {
                let insert = ";".to_owned();
                let reader = Reader::ClangStaying;
                self.edits.push(Edit {
                    from,
                    to,
                    insert,
                    reader,
                });
            }
        }
    }

    /// Blanks a part of what clang reads; lines stay.
    fn blank(&mut self, from: usize, to: usize, insert: &str) {
        let lines = self.source.get(from..to).map_or(0, |text| text.matches('\n').count());
        self.edits.push(Edit {
            from,
            to,
            insert: format!("{insert}{}", "\n".repeat(lines)),
            reader: Reader::Clang,
        });
    }

    fn text(&self, reader: Reader) -> String {
        let mut edits: Vec<&Edit> = self.edits.iter().filter(|edit| edit.reader <= reader).collect();
        edits.sort_by_key(|edit| (edit.from, edit.to));
        let mut text = String::new();
        let mut at = 0;
        for edit in edits {
            if edit.from < at {
                continue;
            }
            text.push_str(self.source.get(at..edit.from).unwrap_or_default());
            text.push_str(&edit.insert);
            at = edit.to;
        }
        text.push_str(self.source.get(at..).unwrap_or_default());
        text
    }
}

/// An arithmetic variable of the thread.
fn scalar(binding: &Binding) -> bool {
    let ty = &binding.ty;
    let words = [
        "int",
        "unsigned",
        "unsigned int",
        "long",
        "long long",
        "unsigned long",
        "unsigned long long",
        "short",
        "unsigned short",
        "char",
        "unsigned char",
        "bool",
        "float",
        "double",
        "size_t",
        "uint32_t",
        "int32_t",
        "uint64_t",
        "int64_t",
        "uint8_t",
    ];
    ty.pointers == 0
        && ty.array.is_empty()
        && !ty.complex
        && !ty.volatile
        && !binding.name.is_empty()
        && matches!(binding.storage, Storage::Param | Storage::Local)
        && words.contains(&ty.base.as_str())
}

struct Walk<'a, 'p> {
    probing: &'a mut Probing<'p>,
    body: &'a Body,
    name: String,
    start: usize,
    scope: Vec<BindingId>,
    /// Variables that say whether a block was entered.
    marks: Vec<u32>,
    /// Where probes stand: what a macro expands to stands at one place.
    places: BTreeSet<usize>,
    placed: usize,
}

impl Walk<'_, '_> {
    fn place(&self, at: u32) -> usize {
        self.start + at as usize
    }

    fn written(&self, stmt: &Stmt) -> &str {
        let (from, to) = (self.place(stmt.span.start), self.place(stmt.span.end));
        self.probing.source.get(from..to).unwrap_or_default()
    }

    /// A call that asks about a value.
    fn ask(&mut self, what: &str, at: usize) -> String {
        let id = self.probing.probes.len() as u32 + 1;
        let before = self.probing.source.get(..at).unwrap_or_default();
        self.probing.probes.insert(
            id,
            Probe {
                function: self.name.clone(),
                what: what.to_owned(),
                line: before.matches('\n').count() + 1,
            },
        );
        self.placed += 1;
        format!("{NAME}({id}, (long long)({what})); ")
    }

    fn insert(&mut self, at: usize, insert: String) {
        self.probing.edits.push(Edit {
            from: at,
            to: at,
            insert,
            reader: Reader::Gridfuse,
        });
    }

    /// Asks about what is in scope, in front of a statement.
    fn ask_scope(&mut self, at: usize, condition: Option<String>) {
        if self.placed > PROBES || !self.places.insert(at) {
            return;
        }
        let mut names = BTreeSet::new();
        let in_scope: Vec<String> = self
            .scope
            .iter()
            .rev()
            .map(|b| self.body.binding(*b).name.clone())
            .collect();
        let visible: Vec<String> = in_scope.into_iter().filter(|name| names.insert(name.clone())).collect();
        let mut calls = String::new();
        for name in visible.iter().take(VARIABLES) {
            calls += &self.ask(name, at);
        }
        if let Some(condition) = condition {
            calls += &self.ask(&condition, at);
        }
        if self.probing.source.get(at..at + 1) == Some("#") {
            calls.push('\n');
        }
        self.insert(at, calls);
    }

    /// A block that is written with braces.
    fn block(&mut self, id: StmtId, root: bool) {
        let body = self.body;
        let stmt = body.stmt(id);
        let StmtKind::Block(stmts) = &stmt.kind else {
            self.inside(id);
            return;
        };
        let written = self.written(stmt);
        if !written.starts_with('{') || !written.ends_with('}') {
            return;
        }
        let scope = self.scope.len();
        let (open, close) = (self.place(stmt.span.start) + 1, self.place(stmt.span.end) - 1);
        if !root && self.placed < PROBES {
            let mark = self.probing.probes.len() as u32 + 100_000;
            self.marks.push(mark);
            self.insert(open, format!(" __entered_{mark} = 1; "));
        }
        self.list(stmts);
        self.ask_scope(close, None);
        self.scope.truncate(scope);
        if root {
            let marks = std::mem::take(&mut self.marks);
            let declared: Vec<String> = marks.iter().map(|m| format!("int __entered_{m} = 0; ")).collect();
            self.insert(open, declared.concat());
            let asked: Vec<String> = marks
                .iter()
                .map(|m| self.ask(&format!("__entered_{m}"), close))
                .collect();
            self.insert(close, asked.concat());
        }
    }

    fn list(&mut self, stmts: &[StmtId]) {
        let body = self.body;
        for id in stmts {
            let stmt = body.stmt(*id);
            let condition = match &stmt.kind {
                StmtKind::If {
                    init: None,
                    cond: Some(cond),
                    constexpr: false,
                    ..
                } => self.pure(*cond),
                StmtKind::While {
                    init: None,
                    cond: Some(cond),
                    ..
                }
                | StmtKind::Switch { cond, .. } => self.pure(*cond),
                _ => None,
            };
            if !matches!(stmt.kind, StmtKind::Case { .. }) && self.written_here(stmt) {
                self.ask_scope(self.place(stmt.span.start), condition);
            }
            if let StmtKind::Decl(declared) = &stmt.kind {
                let new = declared.iter().map(|d| d.binding);
                // `int x = x + 1`, and what is declared without a value: nothing is known of it yet.
                self.scope.extend(new.filter(|b| scalar(body.binding(*b))));
                continue;
            }
            self.inside(*id);
        }
    }

    fn written_here(&self, stmt: &Stmt) -> bool {
        self.place(stmt.span.start) >= self.start && stmt.span.end > stmt.span.start
    }

    /// The text of an expression that can be evaluated once more.
    fn pure(&self, cond: ExprId) -> Option<String> {
        let cond = self.body.expr(cond);
        let inside = self
            .body
            .exprs
            .iter()
            .filter(|e| e.span.start >= cond.span.start && e.span.end <= cond.span.end);
        let harmless = |kind: &ExprKind| {
            matches!(
                kind,
                ExprKind::Literal(_)
                    | ExprKind::Name(_)
                    | ExprKind::Paren(_)
                    | ExprKind::Unary(..)
                    | ExprKind::Binary(..)
                    | ExprKind::Logical { .. }
                    | ExprKind::Conditional { .. }
                    | ExprKind::Field { .. }
                    | ExprKind::Index { .. }
                    | ExprKind::Cast { .. }
            )
        };
        let mut inside = inside.peekable();
        inside.peek()?;
        if !inside.all(|e| harmless(&e.kind) && !e.from_macro) {
            return None;
        }
        let (from, to) = (self.place(cond.span.start), self.place(cond.span.end));
        let text = self.probing.source.get(from..to)?;
        (!text.contains(['\n', '#'])).then(|| text.to_owned())
    }

    fn inside(&mut self, id: StmtId) {
        let body = self.body;
        match &body.stmt(id).kind {
            StmtKind::Block(_) => self.block(id, false),
            StmtKind::If {
                init, then, otherwise, ..
            } => {
                let scope = self.scope.len();
                self.declare(*init);
                self.block(*then, false);
                if let Some(otherwise) = otherwise {
                    self.block(*otherwise, false);
                }
                self.scope.truncate(scope);
            }
            StmtKind::While { init, body: inner, .. } | StmtKind::For { init, body: inner, .. } => {
                let scope = self.scope.len();
                self.declare(*init);
                self.block(*inner, false);
                self.scope.truncate(scope);
            }
            StmtKind::RangeFor { body: inner, .. } | StmtKind::DoWhile { body: inner, .. } => self.block(*inner, false),
            StmtKind::Switch { body: inner, .. } => {
                let StmtKind::Block(cases) = &body.stmt(*inner).kind else {
                    return;
                };
                let scope = self.scope.len();
                for case in cases {
                    if let StmtKind::Case { stmts, .. } = &body.stmt(*case).kind {
                        self.list(stmts);
                    }
                }
                self.scope.truncate(scope);
            }
            StmtKind::Label(_, Some(inner)) => self.inside(*inner),
            _ => {}
        }
    }

    fn declare(&mut self, init: Option<StmtId>) {
        let body = self.body;
        if let Some(StmtKind::Decl(declared)) = init.map(|init| &body.stmt(init).kind) {
            self.scope
                .extend(declared.iter().map(|d| d.binding).filter(|b| scalar(body.binding(*b))));
        }
    }
}

/// What gridfuse claims of a probed value.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The level: the best of what is proved and what is believed without an assumption.
    pub level: Level,
    /// Why it isn't more uniform.
    pub why: String,
}

/// What gridfuse claims of each probed value of a source.
pub fn claims(probed: &Probed) -> BTreeMap<u32, Claim> {
    let mut host = Host::new();
    let file = host.set_file(Path::new("/oracle/kernels.cu"), probed.text.as_str());
    let db = host.db();
    let mut claims = BTreeMap::new();
    for function in &items(db, file).functions {
        let signature = function.signature(db);
        if signature.kernel || signature.device {
            claims_of(db, *function, probed, &mut claims);
        }
    }
    claims
}

fn claims_of<'db>(db: &'db dyn Db, function: FunctionItem<'db>, probed: &Probed, claims: &mut BTreeMap<u32, Claim>) {
    let body = body(db, function);
    let proved = uniformity(db, function);
    let assumed = assumed_uniformity(db, function);
    // Where a block is entered: how uniform that is.
    let mut entered: BTreeMap<String, StmtId> = BTreeMap::new();
    for (index, stmt) in body.stmts.iter().enumerate() {
        if let StmtKind::Expr(expr) = &stmt.kind
            && let ExprKind::Assign { place, .. } = &body.expr(*expr).kind
            && let Some(name) = variable(&body, *place)
            && name.starts_with("__entered_")
        {
            entered.insert(name.to_owned(), StmtId(index as u32));
        }
    }
    for (index, expr) in body.exprs.iter().enumerate() {
        let ExprKind::Call {
            name: Some(name), args, ..
        } = &expr.kind
        else {
            continue;
        };
        let [id, value] = args.as_slice() else { continue };
        let ExprKind::Literal(Literal::Int(id)) = body.expr(*id).kind else {
            continue;
        };
        let Ok(id) = u32::try_from(id) else { continue };
        if name != NAME || index == 0 {
            continue;
        }
        let what = probed.probes.get(&id).map_or("", |probe| probe.what.as_str());
        let of = |levels: &FunctionUniformity| -> Option<Uniformity> {
            let value = levels.exprs.get(value).cloned()?;
            match entered.get(what) {
                // The variable and the statement alike.
                Some(stmt) => {
                    let reached = levels.divergence.get(stmt).cloned()?;
                    Some(if reached.level < value.level { reached } else { value })
                }
                None => Some(value),
            }
        };
        let best = [of(&proved), of(&assumed).filter(|u| u.assumes.is_empty())];
        let Some(best) = best.into_iter().flatten().min_by_key(|u| u.level) else {
            continue;
        };
        let why = best.why.map_or(String::new(), |why| why.text);
        claims.insert(id, Claim { level: best.level, why });
    }
}

fn variable(body: &Body, place: ExprId) -> Option<&str> {
    match &body.expr(place).kind {
        ExprKind::Name(gridfuse_analysis::hir::Name::Local(binding)) => Some(&body.binding(*binding).name),
        _ => None,
    }
}
