//! `aggregate-malloc`

mod leftovers;

use gridfuse_analysis::base::db::{Db, SourceFile};
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::Span;
use gridfuse_analysis::facts::effects::effects;
use gridfuse_analysis::facts::launch::{Launchers, Places, statement_places};
use gridfuse_analysis::facts::uniformity::{Level, uniformity};
use gridfuse_analysis::hir::included::included_files;
use gridfuse_analysis::hir::items::{FunctionItem, TypeItem, items};
use gridfuse_analysis::hir::names::unqualified;
use gridfuse_analysis::hir::resolve::{functions_named, runs_on_device};
use gridfuse_analysis::hir::special_members::Constructors;
use gridfuse_analysis::hir::visible::visible_names;
use gridfuse_analysis::hir::{Body, ExprId, ExprKind, StmtKind, body};

use crate::api::assumption;
use crate::api::refusal::Ineligible;
use crate::api::refusal::Reason;
use crate::api::refusal::Refusals;
use crate::api::refusal::refuse;
use crate::api::rewrite::{Axis, Family, Launches, Measured, OptionSpec, Rewrite, RewriteCtx, Target, Undo};
use crate::api::source_edit::SourceEdit;
use crate::draft::Draft;
use crate::edit::builder::EditBuilder;
use crate::edit::include::Header;
use crate::edit::lex::{self, TokenKind};
use crate::facts::allocations::{Allocator, Call, calls};
use crate::facts::calls::is_plain_type;
use crate::facts::program;
use crate::runtime::is_header;

pub(super) const REWRITE: Rewrite = Rewrite {
    id: "aggregate-malloc",
    title: "Allocate once for several threads",
    doc: DOC,
    options: &[OptionSpec {
        name: "granularity",
        default: "warp",
        doc: "`warp`: the threads of a warp that happen to allocate at the same time. `block`: all threads of a block, where all of them that have not returned come by together.",
    }],
    target: Target::Launch(Launches::Allocating),
    family: Family::Memory,
    measured: Measured::No,
    tunes: Some(Axis::Allocation),
    unattended: false,
    undo: Undo::Not("each call of the allocator in the program is another one, wherever it stands"),
    run: apply,
};

const DOC: &str = r#"Makes one allocation for the threads of a warp, or of a block, that allocate memory in a kernel. Each of them gets a part of
it.

The device's allocator serves one request at a time. A part of a common allocation begins with a header that says where the whole begins.
So parts can be given back one by one, in any order, by any thread of any kernel: the last one frees the whole. When there is no memory for
the whole, each thread asks for its own.

It changes all places of the program that allocate or free device memory by the same functions as the launching kernel
(`malloc`/`free`, `new`/`delete`, `new[]`/`delete[]`, `cudaMalloc`/`cudaFree` in device code), as any `free` may get any part.

## Needs
- A kernel that allocates and launches. All device code that allocates or frees is in sight: in functions that are for the device alone,
  not in lambdas, macros, default arguments or initialisers of fields.
- `new` of types without constructors, destructors and initial values.
- For `granularity=block`: allocations, in functions without `goto`, that are reached together by all threads of the block that have not
  returned.

It assumes that the heap has room: an allocation stays until its last part is given back, and each part takes 16 bytes more.

## Before
```cuda
__global__ void fill(int* list, int value, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) list[i] = value;
}

__global__ void make(int** lists, const int* counts, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    int count = counts[v];
    int* list = static_cast<int*>(malloc(count * sizeof(int)));
    lists[v] = list;
    if (list && count > 0) fill<<<(count + 127) / 128, 128>>>(list, v, count);
}

__global__ void release(int** lists, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v < n) free(lists[v]);
}

int main() {
    int** lists;
    int* counts;
    cudaMalloc(&lists, 1000 * sizeof(int*));
    cudaMalloc(&counts, 1000 * sizeof(int));
    cudaMemset(counts, 0, 1000 * sizeof(int));
    make<<<4, 250>>>(lists, counts, 1000);
    release<<<4, 250>>>(lists, 1000);
    return cudaDeviceSynchronize();
}
```

## After
```cuda
#include "gridfuse.cuh"

__global__ void fill(int* list, int value, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) list[i] = value;
}

__global__ void make(int** lists, const int* counts, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    int count = counts[v];
    int* list = static_cast<int*>(gridfuse::malloc_together(count * sizeof(int)));
    lists[v] = list;
    if (list && count > 0) fill<<<(count + 127) / 128, 128>>>(list, v, count);
}

__global__ void release(int** lists, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v < n) gridfuse::free_together(lists[v]);
}

int main() {
    int** lists;
    int* counts;
    cudaMalloc(&lists, 1000 * sizeof(int*));
    cudaMalloc(&counts, 1000 * sizeof(int));
    cudaMemset(counts, 0, 1000 * sizeof(int));
    make<<<4, 250>>>(lists, counts, 1000);
    release<<<4, 250>>>(lists, 1000);
    return cudaDeviceSynchronize();
}
```

## Source
El Hajj: Techniques for Optimizing Dynamic Parallelism on Graphics Processing Units, dissertation, University of Illinois 2018, §3.4.4
(memory allocation).
"#;

fn apply(ctx: &RewriteCtx<'_, '_>) -> Result<SourceEdit, Ineligible> {
    let block = match ctx.given("granularity").unwrap_or("warp") {
        "warp" => false,
        "block" => true,
        other => {
            return Err(refuse(
                format!("`granularity` is `warp` or `block`, not `{other}`"),
                None,
            ));
        }
    };
    let db = ctx.db;
    let mut draft = Draft::begin(ctx)?;
    let Draft {
        site, edit, refusals, ..
    } = &mut draft;
    if site.facts.launchers == Launchers::Host {
        return Err(refuse("the host launches it, not a kernel", Some(site.here())));
    }
    let families: Vec<Allocator> = calls(db, site.parent)
        .iter()
        .filter(|c| c.allocates)
        .map(|c| c.family)
        .collect();
    if families.is_empty() {
        return Err(refuse(
            format!("`{}` allocates no memory", site.parent_name()),
            Some(site.here()),
        ));
    }
    let files = program::files_of(db, site.file);
    let mut complete = false;
    for file in &files {
        let mut changed = false;
        for function in &items(db, *file).functions {
            complete |= function.name(db) == "main" && function.has_body(db);
            if !function.has_body(db) || !runs_on_device(db, *function) {
                continue;
            }
            let device = Device {
                db,
                function: *function,
                body: &body(db, *function),
                families: &families,
                block,
            };
            changed |= device.rewrite(edit, refusals);
        }
        if changed {
            match Header::for_file(db, *file) {
                Ok(header) => header.include_in(db, edit, *file),
                Err(reason) => refusals.add(reason.text, reason.place),
            }
        }
    }
    leftovers::refuse(db, &files, &families, refusals);
    refusals.check()?;
    edit.assume(
        assumption::HEAP_ROOM.of(Reason {
            text: "the device's heap has room for memory that stays until the last part of an allocation is given back"
                .to_owned(),
            place: None,
        }),
    );
    if !complete {
        edit.assume(assumption::FREES_IN_SIGHT.of(Reason {
            text: format!(
                "no code that isn't in sight frees what `{}` allocates",
                site.parent_name()
            ),
            place: None,
        }));
    }
    draft.finish()
}

/// Whether `word` means a function of the class or the namespace that `function` is in, which hides all others.
fn means_own(db: &dyn Db, function: FunctionItem<'_>, word: &str) -> bool {
    let named = functions_named(db, function.file(db), word);
    let mut scope = function.name(db);
    while let Some((outer, _)) = scope.rsplit_once("::") {
        if named
            .iter()
            .any(|f| f.name(db).strip_prefix(outer).and_then(|n| n.strip_prefix("::")) == Some(word))
        {
            return true;
        }
        scope = outer;
    }
    false
}

/// A function that runs on the device.
struct Device<'a, 'db> {
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    body: &'a Body,
    families: &'a [Allocator],
    block: bool,
}

impl Device<'_, '_> {
    fn place(&self, span: Span) -> Option<FileRange> {
        Some(FileRange {
            file: self.function.file(self.db),
            range: span.shift(self.function.start(self.db)),
        })
    }

    fn name(&self) -> &str {
        unqualified(self.function.name(self.db))
    }

    /// Changes the calls of the families; whether there were any. What may allocate or free unseen is refused.
    fn rewrite(&self, edit: &mut EditBuilder<'_>, refusals: &mut Refusals) -> bool {
        let db = self.db;
        let name = self.name();
        let signature = self.function.signature(db);
        self.refuse_unseen(refusals);
        let all = calls(db, self.function);
        let ours: Vec<&Call> = all.iter().filter(|c| self.families.contains(&c.family)).collect();
        let Some(first) = ours.first() else {
            return false;
        };
        let here = |call: &Call| self.place(self.body.expr(call.expr).span);
        if signature.host {
            refusals.add(
                format!("`{name}` may run on the host as well, where memory is allocated in another way"),
                here(first),
            );
        }
        if signature.conditional {
            refusals.add(
                format!("`{name}` is defined under an #if, where another definition may take its place"),
                here(first),
            );
        }
        for (span, reason) in &self.body.problems {
            refusals.add(
                format!("`{name}` isn't understood completely: {reason}"),
                self.place(*span),
            );
        }
        let levels = uniformity(db, self.function);
        let places = statement_places(db, self.function);
        for call in &ours {
            let expr = self.body.expr(call.expr);
            if expr.from_macro {
                refusals.add(format!("`{name}` allocates or frees in a macro"), here(call));
                continue;
            }
            if !levels.exprs.contains_key(&call.expr) {
                refusals.add(
                    format!("`{name}` allocates or frees in a lambda or in code that is never reached"),
                    here(call),
                );
                continue;
            }
            if places.in_preprocessor(self.body, call.expr) {
                refusals.add(format!("`{name}` allocates or frees under an #if"), here(call));
            }
            if self.block && call.allocates && !self.comes_together(call.expr, &places) {
                refusals.add(
                    format!("not all threads of a block of `{name}` come to this allocation together"),
                    here(call),
                );
            }
            if let Err(reason) = self.change(call, edit) {
                refusals.add(reason, here(call));
            }
        }
        true
    }

    /// Replaces a call.
    fn change(&self, call: &Call, edit: &mut EditBuilder<'_>) -> Result<(), String> {
        let file = self.function.file(self.db);
        let start = self.function.start(self.db);
        let text = self.function.text(self.db);
        let suffix = if self.block && call.allocates { "_in_block" } else { "" };
        let mut replace = |span: Span, by: String| {
            let range = span.shift(start);
            edit.replace(FileRange { file, range }, by);
        };
        let expr = self.body.expr(call.expr);
        match &expr.kind {
            ExprKind::Call { callee, .. } => {
                let name = match (call.family, call.allocates) {
                    (Allocator::CudaMalloc, true) => "cuda_malloc_together",
                    (Allocator::CudaMalloc, false) => "cuda_free_together",
                    (_, true) => "malloc_together",
                    (_, false) => "free_together",
                };
                replace(self.body.expr(*callee).span, format!("gridfuse::{name}{suffix}"));
                Ok(())
            }
            ExprKind::Delete(operand) => {
                let operand = self.body.expr(*operand).span;
                replace(
                    Span::new(expr.span.start, operand.start),
                    "gridfuse::free_together(".to_owned(),
                );
                replace(Span::new(operand.end, operand.end), ")".to_owned());
                Ok(())
            }
            _ => {
                let source = expr.span.text(&text);
                let (ty, count) =
                    new_of(source).ok_or("this `new` is not understood: only `new T` and `new T[n]` are")?;
                self.trivial(&ty)?;
                replace(expr.span, format!("gridfuse::new_together{suffix}<{ty}>({count})"));
                Ok(())
            }
        }
    }

    /// Whether a type needs no construction and no destruction.
    fn trivial(&self, ty: &str) -> Result<(), String> {
        let ty = ty.trim().trim_start_matches("struct ").trim();
        if ty.ends_with('*') || is_plain_type(ty) && !matches!(ty, "dim3" | "half" | "__half" | "half2" | "__half2") {
            return Ok(());
        }
        let unknown = || format!("`{ty}` may have to be constructed or destroyed");
        let key = unqualified(ty);
        if self.means_something_else(key) {
            return Err(unknown());
        }
        let mut found: Vec<TypeItem> = Vec::new();
        for file in included_files(self.db, self.function.file(self.db)) {
            found.extend(items(self.db, *file).types.iter().filter(|t| t.name == key).cloned());
        }
        match found.as_slice() {
            [one] if one.is_enum => Ok(()),
            [one] if !one.nontrivial && one.constructors == Constructors::None && !one.fields.is_empty() => {
                let plain = |ty: &str, name: &str| {
                    let ty = ty.trim();
                    name.starts_with('*') || ty.ends_with('*') || is_plain_type(ty) && ty != "dim3"
                };
                let definition = Definition::of(self.db, self.function, key);
                if !one.fields.iter().all(|(ty, name)| plain(ty, name)) || definition.initialises {
                    Err(unknown())
                } else if definition.aligns {
                    Err(format!(
                        "`{ty}` asks for an alignment, which a part of a common allocation may not have"
                    ))
                } else {
                    Ok(())
                }
            }
            _ => Err(unknown()),
        }
    }

    /// Whether a class's name may stand for another type here: it is the name of a template parameter or an alias as well.
    fn means_something_else(&self, name: &str) -> bool {
        let named = |file: &SourceFile| {
            let text = file.text(self.db);
            let tokens = lex::code_tokens_of(self.db, *file);
            let word = |at: Option<usize>| at.and_then(|at| tokens.get(at)).map_or("", |t| t.text(&text));
            let all = tokens.iter().enumerate().filter(|(_, t)| t.text(&text) == name);
            all.map(|(at, _)| at).any(|at| {
                let (before, first) = (word(at.checked_sub(1)), word(at.checked_sub(2)));
                before == "using" || matches!(before, "class" | "typename") && matches!(first, "<" | "," | ">")
            })
        };
        let file = self.function.file(self.db);
        self.function
            .signature(self.db)
            .template_names
            .iter()
            .any(|n| n == name)
            || included_files(self.db, file).iter().any(|f| {
                // `typedef struct Node { … } Node;` says the same twice.
                let other = |of: &str| lex::code_words(of).get(1) != Some(&name);
                let aliases = &items(self.db, *f).aliases;
                aliases.iter().any(|(alias, of)| alias == name && other(of)) || named(f)
            })
    }

    /// All threads of the block that have not returned come to the expression together: every condition and loop around it
    /// goes the same way for all of them, and no thread leaves such a loop before the others.
    fn comes_together(&self, expr: ExprId, places: &Places) -> bool {
        let levels = uniformity(self.db, self.function);
        let jumps = |kind: &StmtKind| matches!(kind, StmtKind::Goto(_) | StmtKind::Label(..));
        if !self.function.signature(self.db).kernel || self.body.stmts.iter().any(|s| jumps(&s.kind)) {
            return false;
        }
        let own = places.statement_of(expr);
        places.around(expr).all(|stmt| match &self.body.stmt(stmt).kind {
            StmtKind::Block(_) => true,
            StmtKind::Expr(e) if own == Some(stmt) => self.unconditional(*e, expr),
            StmtKind::Decl(decls) if own == Some(stmt) => decls
                .iter()
                .filter_map(|d| d.init)
                .any(|init| self.unconditional(init, expr)),
            StmtKind::If {
                cond: Some(cond),
                init: None,
                ..
            } => own != Some(stmt) && levels.of(*cond) <= Level::Block,
            _ => false,
        })
    }

    /// Whether evaluating `outer` always evaluates `inner`, which is in it.
    fn unconditional(&self, outer: ExprId, inner: ExprId) -> bool {
        if outer == inner {
            return true;
        }
        let any = |list: &[ExprId]| list.iter().any(|e| self.unconditional(*e, inner));
        match &self.body.expr(outer).kind {
            ExprKind::Paren(e) | ExprKind::Cast { operand: e, .. } | ExprKind::Unary(_, e) => {
                self.unconditional(*e, inner)
            }
            ExprKind::Assign { value, .. } => self.unconditional(*value, inner),
            ExprKind::Binary(_, a, b) => any(&[*a, *b]),
            ExprKind::Construct { args, .. } | ExprKind::Call { args, .. } => any(args),
            _ => false,
        }
    }

    /// What may free or allocate without being seen.
    fn refuse_unseen(&self, refusals: &mut Refusals) {
        let db = self.db;
        let name = self.name();
        let text = self.function.text(db);
        let found = effects(db, self.function);
        let runtime = |place: FileRange| is_header(db, place.file);
        let known = calls(db, self.function);
        // Not the arguments: a function's name in them is a pointer to it.
        let named = |call: &Call| match self.body.expr(call.expr).kind {
            ExprKind::Call { callee, .. } => callee,
            _ => call.expr,
        };
        let called: Vec<Span> = known.iter().map(|c| self.body.expr(named(c)).span).collect();
        // The name of a call that is seen may be that of a function elsewhere, too.
        let seen = |place: FileRange| {
            let spans = called.iter().filter_map(|span| self.place(*span));
            let mut spans = spans.filter(|all| all.file == place.file);
            spans.any(|all| all.range.contains(place.range))
        };
        for unknown in found.unknown.iter().filter(|u| !runtime(u.place) && !seen(u.place)) {
            refusals.add(
                format!("`{name}` uses {}, which may free memory", unknown.what),
                Some(unknown.place),
            );
        }
        for asm in found.asm.iter().filter(|a| !runtime(a.place)) {
            if asm.may_have(&["call"]) {
                refusals.add(
                    format!("the inline assembly of `{name}` may call functions"),
                    Some(asm.place),
                );
            }
        }
        // Every mention of the functions must be a call that is seen.
        let words: Vec<&str> = self.families.iter().flat_map(|f| f.words()).copied().collect();
        let names = visible_names(db, self.function.file(db));
        let body_span = self.function.body_span(db);
        let source = body_span.text(&text);
        let tokens = lex::code_tokens(source);
        for (index, token) in tokens.iter().enumerate().filter(|(_, t)| t.kind == TokenKind::Word) {
            let word = token.text(source);
            let span = Span::new(body_span.start + token.start as u32, body_span.start + token.end as u32);
            let meant = words.contains(&word) && leftovers::may_be_meant(source, &tokens, index);
            if meant && !means_own(db, self.function, word) && !called.iter().any(|s| s.contains(span)) {
                refusals.add(
                    format!("`{name}` uses `{word}` in a way that is not understood"),
                    self.place(span),
                );
            }
            let mut macros = vec![word];
            let mut done: Vec<&str> = Vec::new();
            while let Some(next) = macros.pop() {
                let Some(item) = names.macros.get(next).filter(|_| !done.contains(&next)) else {
                    continue;
                };
                done.push(next);
                let inside: Vec<&str> = lex::identifiers(&item.body).collect();
                if inside.iter().any(|w| words.contains(w)) {
                    refusals.add(
                        format!("the macro `{word}` allocates or frees memory"),
                        self.place(span),
                    );
                }
                macros.extend(inside);
            }
        }
    }
}

/// Type and number of `new T` or `new T[n]`.
fn new_of(source: &str) -> Option<(String, String)> {
    let rest = source.trim().trim_start_matches("::").strip_prefix("new")?;
    let rest = rest.trim();
    match rest.strip_suffix(']') {
        Some(inside) => {
            let (ty, count) = inside.split_once('[')?;
            let plain = !ty.trim().is_empty() && !ty.contains(['(', '{']) && !count.contains(['[', ']']);
            plain.then(|| (ty.trim().to_owned(), count.trim().to_owned()))
        }
        None => {
            let plain = !rest.is_empty() && !rest.contains(['(', '{', '[']);
            plain.then(|| (rest.to_owned(), "1".to_owned()))
        }
    }
}

/// What the definitions of a class by that name say besides its fields.
#[derive(Clone, Copy, Default)]
struct Definition {
    /// Fields get initial values.
    initialises: bool,
    /// It, or a field, asks for an alignment of its own.
    aligns: bool,
}

impl Definition {
    fn of(db: &dyn Db, function: FunctionItem<'_>, name: &str) -> Definition {
        let mut found = Definition::default();
        for file in included_files(db, function.file(db)) {
            let text = file.text(db);
            let tokens = lex::code_tokens(&text);
            let word = |i: usize| tokens.get(i).map_or("", |t| t.text(&text));
            for start in 0..tokens.len() {
                if !matches!(word(start), "struct" | "class" | "union") {
                    continue;
                }
                // `alignas(16)`, `__align__(16)`, attributes and `final` stand beside the name.
                let head = (start + 1..tokens.len()).find(|at| matches!(word(*at), "{" | ":" | ";" | "=" | ">" | "<"));
                let Some(open) = head.filter(|at| matches!(word(*at), "{" | ":")) else {
                    continue;
                };
                let named = |at: usize| word(at) == name && matches!(word(at + 1), "{" | ":" | "final");
                let mut own = Definition::default();
                let end = own.read(start + 1, &word);
                // `typedef struct { … } __align__(16) Node;`
                let behind = end + 1..tokens.len();
                let behind = behind.take_while(|at| word(*at) != ";").map(&word);
                let behind: Vec<&str> = behind.collect();
                if (start + 1..open).any(named) || behind.contains(&name) {
                    found.initialises |= own.initialises;
                    found.aligns |= own.aligns || behind.iter().copied().any(asks_for_alignment);
                }
            }
        }
        found
    }

    /// Reads a definition from behind its `struct` on, up to the bracket that closes it.
    fn read<'t>(&mut self, from: usize, word: &dyn Fn(usize) -> &'t str) -> usize {
        let mut depth = 0u32;
        for at in from.. {
            match word(at) {
                "{" => {
                    self.initialises |= depth > 0;
                    depth += 1;
                }
                "}" if depth <= 1 => return at,
                "}" => depth -= 1,
                "" => return at,
                "=" => self.initialises = true,
                word => self.aligns |= asks_for_alignment(word),
            }
        }
        from
    }
}

fn asks_for_alignment(word: &str) -> bool {
    matches!(word, "alignas" | "__align__" | "aligned" | "__aligned__")
}
