//! Where each variable of the child lives when one thread runs a block.

use std::collections::{BTreeMap, BTreeSet};

use gridfuse_analysis::base::span::Span;
use gridfuse_analysis::facts::callee::library_called;
use gridfuse_analysis::facts::effects::{Effects, Found};
use gridfuse_analysis::facts::kept::kept;
use gridfuse_analysis::facts::referring::types_may_refer;
use gridfuse_analysis::hir::resolve::{Meaning, meaning_in};
use gridfuse_analysis::hir::visible::visible_names;
use gridfuse_analysis::hir::walk::{all_exprs, all_in_expr, all_stmts, operands, parts};
use gridfuse_analysis::hir::{BindingId, Body, ExprId, ExprKind, Name, StmtId, StmtKind, Storage};

use super::constants;
use super::copies::{self, Copies, Copy};
use super::directives;
use super::groups::Groups;
use super::memory::is_number;
use super::reasons::reason;
use super::structure::{Branch, Item, Setter, Structure, candidates, hidden_changes, is_barrier};
use crate::api::refusal::Reason;
use crate::edit::lex;
use crate::edit::names::words_with_macros;
use crate::facts::child::Child;
use crate::facts::ctype::is_integer;
use crate::facts::pure;
use crate::facts::unknown_use::unknown_use;
use crate::facts::unlowered::named_unlowered;
use crate::facts::uses::{named, root, variables};

/// The parts of the body and its variables.
#[derive(Debug)]
pub struct Layout {
    /// The parts.
    pub items: Vec<Item>,
    /// Variables of which each thread has its own, kept in an array.
    pub arrays: BTreeSet<BindingId>,
    /// Variables that are computed again in every region that uses them, with the initialiser.
    pub again: BTreeMap<BindingId, ExprId>,
    /// Parameters that the child changes, with where their copies live.
    pub copies: Copies,
    /// Some threads leave the kernel while others go on to a barrier.
    pub exits: bool,
}

/// What else is known of the child: its cooperative groups, and which variables the block has in common.
#[derive(Clone, Copy)]
struct Known<'a> {
    groups: &'a Groups,
    block: &'a BTreeSet<BindingId>,
}

/// What a region declares and uses.
struct Region {
    declares: BTreeSet<BindingId>,
    /// Of these, what would live on behind the barrier that ends the region.
    outlives: BTreeSet<BindingId>,
    uses: BTreeSet<BindingId>,
    /// It is in a loop around barriers.
    repeated: bool,
}

impl Layout {
    /// Decides everything, or says why it can't be done.
    pub fn of(child: &Child<'_>, groups: &Groups, effects: &Effects) -> Result<Layout, Vec<Reason>> {
        let refused = refusals(child, groups, effects);
        if !refused.is_empty() {
            return Err(refused);
        }
        Self::find(child, groups).map_err(|r| vec![r])
    }

    /// There are arrays with an element for each thread of a block.
    pub fn counts_threads(&self) -> bool {
        self.exits || !self.arrays.is_empty()
    }

    fn find(child: &Child<'_>, groups: &Groups) -> Result<Layout, Reason> {
        let body: &Body = &child.body;
        let setters = setters(body);
        let changed = copies::changed(child);
        // The largest set of variables that are all set by statements that can run once for the block.
        let mut block = candidates(child, &changed);
        let heads = loop {
            let mut structure = Structure::new(child, &block, &changed, groups);
            structure.of_body()?;
            let once = structure.once;
            let heads = structure.heads;
            let bad: Vec<BindingId> = block
                .iter()
                .copied()
                .filter(|b| setters.get(b).is_none_or(|all| all.iter().any(|s| !once.contains(s))))
                .collect();
            if bad.is_empty() {
                break heads;
            }
            for b in bad {
                block.remove(&b);
            }
        };
        // Of these, the ones that control flow or shared memory needs, and those that are used in several regions.
        let mut needed = BTreeSet::new();
        let mentioned = heads.iter().flat_map(|e| all_in_expr(body, *e)).collect::<Vec<_>>();
        close(body, &setters, &block, variables(body, &mentioned), &mut needed);
        let unlowered = named_unlowered(child.db, child.item, child.item.body_span(child.db));
        loop {
            let items = Structure::new(child, &needed, &changed, groups).of_body()?;
            let mut regions = Vec::new();
            collect(body, &items, &unlowered, false, &mut regions);
            let copies = copies(&regions, &changed, &needed);
            let mut crossing = crossing(&regions);
            crossing.retain(|b| !groups.variables.contains(b));
            crossing.extend(
                { copies.iter() }
                    .filter(|(_, copy)| **copy == Copy::Threads)
                    .map(|(b, _)| *b),
            );
            let mut crossing = with_pointed_at(child, &regions, crossing)?;
            crossing.retain(|b| !groups.variables.contains(b));
            let outside = constants::named_outside(body, &items, &unlowered);
            let more: BTreeSet<BindingId> = { crossing.iter().copied() }
                .chain(outside.iter().map(|(b, _)| *b))
                .filter(|b| block.contains(b) && !needed.contains(b))
                .collect();
            if more.is_empty() {
                sizes_are_seen(child, &items, &needed)?;
                let torn = body
                    .root
                    .and_then(|root| directives::torn(child, &items, body.stmt(root).span));
                if let Some(span) = torn {
                    let text = format!(
                        "`{}` has an `#if` around a barrier and other statements; end it in front of the barrier",
                        child.name
                    );
                    return Err(reason(text, child.place_of(span)));
                }
                are_seen_outside(child, &outside, &needed, &changed)?;
                let known = Known { groups, block: &needed };
                return Self::assign(child, items, &crossing, known, &unlowered, copies);
            }
            close(body, &setters, &block, more, &mut needed);
        }
    }

    /// Chooses for each variable that is used in several regions.
    fn assign(
        child: &Child<'_>,
        items: Vec<Item>,
        crossing: &BTreeSet<BindingId>,
        known: Known<'_>,
        unlowered: &[(BindingId, Span)],
        copies: Copies,
    ) -> Result<Layout, Reason> {
        let body: &Body = &child.body;
        let mut layout = Layout {
            exits: exits(body, &items),
            items,
            copies,
            arrays: BTreeSet::new(),
            again: BTreeMap::new(),
        };
        let declared = initialisers(body);
        let hidden = hidden_changes(child);
        let held = kept(child.db, child.item).while_alive(crossing.iter().copied());
        let by_compiler = constants::needed_by_compiler(child);
        for binding in crossing {
            if layout.copies.contains_key(binding) {
                layout.arrays.insert(*binding);
                continue;
            }
            let variable = body.binding(*binding);
            let refuse = |text: String| Err(reason(text, child.place_of(variable.span)));
            let is_held = held.contains(&Some(*binding));
            let where_used = match is_held {
                true => "whose address may be kept across a barrier",
                false => "which is used on both sides of a barrier",
            };
            if body
                .declaration(*binding)
                .is_some_and(|(stmt, _)| directives::divide(child, body.stmt(stmt).span))
            {
                return refuse(format!(
                    "`{}`, {where_used}, has an `#if` in its declaration; define a macro for what differs, in front of `{}`",
                    variable.name, child.name
                ));
            }
            let again = declared.get(binding).copied().flatten().filter(|init| {
                // One that is made anew in each part lies elsewhere there.
                !is_held
                    && !hidden.contains(binding)
                    && unlowered.iter().all(|(named, _)| named != binding)
                    && pure::keeps_first_value(child.db, child.item, body, *binding)
                    && layout.is_cheap(child, *init, known)
                    && means_the_same_everywhere(child, *binding, *init)
            });
            if let Some(init) = again {
                layout.again.insert(*binding, init);
                continue;
            }
            let name = &variable.name;
            let ty = &variable.ty;
            if !declared.contains_key(binding) {
                return refuse(format!("`{name}` is declared under an #if and used after a barrier"));
            }
            // The program may have a class `half`.
            let own = visible_names(child.db, child.file).types.contains(&ty.base);
            let number = !own && (is_number(&ty.base) || is_integer(child.db, child.file, &ty.base));
            let is_class = ty.pointers == 0 && !number;
            let no_array = ty.reference || ty.complex || ty.volatile || ty.base == "auto";
            if no_array || is_held && is_class || ty.text.contains("decltype") {
                return refuse(format!(
                    "`{name}`, {where_used}, has a type that can't be made an array"
                ));
            }
            if constants::is_aligned(child, *binding) {
                return refuse(format!(
                    "`{name}`, {where_used}, asks for an alignment, which an element of an array doesn't have"
                ));
            }
            if let Some(alias) = constants::qualified_by_alias(child, *binding) {
                return refuse(format!(
                    "`{name}`, {where_used}, has the type `{alias}`, which may be `const`, aligned or an array"
                ));
            }
            if by_compiler.contains(binding) {
                return refuse(format!(
                    "`{name}`, {where_used}, is a constant that the compiler needs; declare it in front of `{}`",
                    child.name
                ));
            }
            if constants::shows_const(child, *binding) {
                return refuse(format!(
                    "`{name}`, {where_used}, is `const`, which elements of an array aren't, and a function that it is passed to may see that"
                ));
            }
            if let Some(span) = unknown_use(child, *binding) {
                return Err(reason(
                    format!("`{name}`, {where_used}, is used in a way that is not understood"),
                    child.place_of(span),
                ));
            }
            let init = declared.get(binding).copied().flatten();
            let assigned = init.is_none_or(|init| {
                let between = Span::new(variable.span.end, body.expr(init).span.start);
                ty.array.is_empty() && lex::code_words(child.source(between)) == ["="]
            });
            if !assigned || ty.array.iter().any(Option::is_none) {
                return refuse(format!(
                    "`{name}`, {where_used}, has an initialiser that can't become an assignment"
                ));
            }
            layout.arrays.insert(*binding);
        }
        // Their declarations go in front, where nothing of the body is declared.
        for binding in &layout.arrays {
            let extents = body.binding(*binding).ty.array.iter().flatten();
            let named = variables(body, &extents.flat_map(|e| all_in_expr(body, *e)).collect::<Vec<_>>());
            let sizes = || body.binding(*binding).ty.array.iter().flatten();
            let unlowered = unlowered
                .iter()
                .filter(|(_, at)| sizes().any(|e| body.expr(*e).span.contains(*at)));
            let mut named = named;
            named.extend(unlowered.map(|(b, _)| *b));
            if let Some(size) = named.iter().find(|b| !body.params.contains(b)) {
                let (array, size) = (&body.binding(*binding).name, &body.binding(*size).name);
                let text = format!(
                    "`{array}`, which is used on both sides of a barrier, has a size that the kernel declares (`{size}`); declare it in front of `{}`",
                    child.name
                );
                return Err(reason(text, child.place_of(body.binding(*binding).span)));
            }
        }
        Ok(layout)
    }

    /// Whether an expression gives the same value wherever it is evaluated by the same thread, at the cost of a few
    /// instructions.
    fn is_cheap(&self, child: &Child<'_>, expr: ExprId, known: Known<'_>) -> bool {
        let body: &Body = &child.body;
        let all = |inner: Vec<ExprId>| inner.into_iter().all(|e| self.is_cheap(child, e, known));
        // What refers to memory reads it.
        let of_class = |b: BindingId| {
            let ty = &body.binding(b).ty;
            let plain = ty.pointers > 0 || is_number(&ty.base) || is_integer(child.db, child.file, &ty.base);
            !plain && types_may_refer(child.db, child.file)
        };
        if known.groups.members.contains_key(&expr) {
            return true;
        }
        match &body.expr(expr).kind {
            ExprKind::Literal(_) => true,
            ExprKind::Name(Name::Builtin(_)) => true,
            ExprKind::Name(Name::Local(b)) if of_class(*b) => false,
            ExprKind::Name(Name::Local(b)) => {
                body.params.contains(b) && !self.copies.contains_key(b)
                    || self.again.contains_key(b)
                    || known.block.contains(b) && pure::keeps_first_value(child.db, child.item, body, *b)
            }
            ExprKind::Name(Name::Other(name)) => match meaning_in(child.db, child.item, name) {
                Meaning::Enumerator(_) => true,
                Meaning::Global(global) => global.constant || global.constant_memory,
                Meaning::Unknown => child.item.signature(child.db).template_names.contains(name),
                _ => false,
            },
            ExprKind::Field { arrow: false, .. }
            | ExprKind::Paren(_)
            | ExprKind::Unary(..)
            | ExprKind::Binary(..)
            | ExprKind::Logical { .. }
            | ExprKind::Conditional { .. } => all(operands(&body.expr(expr).kind)),
            ExprKind::Cast {
                ty,
                operand,
                reinterpret: false,
            } => crate::facts::calls::is_plain_type(ty) && self.is_cheap(child, *operand, known),
            ExprKind::Call {
                name: Some(name), args, ..
            } => {
                matches!(name.as_str(), "min" | "max")
                    && library_called(child.db, child.item, name).is_some()
                    && all(args.clone())
            }
            _ => false,
        }
    }
}

/// Whether a declaration could stand anywhere in the body, and would hide nothing there: no other variable has its name, or one of the
/// names in its initialiser.
fn means_the_same_everywhere(child: &Child<'_>, binding: BindingId, init: ExprId) -> bool {
    let body: &Body = &child.body;
    let mut meant = variables(body, &all_in_expr(body, init));
    meant.insert(binding);
    let code = format!("{} {}", body.binding(binding).name, child.source(body.expr(init).span));
    let words = words_with_macros(child.db, child.file, &code);
    let mut of_those_names = body
        .bindings
        .iter()
        .enumerate()
        .filter(|(_, other)| words.contains(&other.name));
    of_those_names.all(|(index, _)| meant.contains(&BindingId(index as u32))) && distinct(body, &meant)
}

/// No two of these variables have one name.
fn distinct(body: &Body, variables: &BTreeSet<BindingId>) -> bool {
    let names: BTreeSet<&str> = variables.iter().map(|b| body.binding(*b).name.as_str()).collect();
    names.len() == variables.len()
}

/// What of a child a macro hides that has to be written in another way: where control leaves or waits, or several statements.
fn hidden_by_macro(child: &Child<'_>, groups: &Groups, stmt: StmtId) -> Option<&'static str> {
    let body: &Body = &child.body;
    let begins = |word: &str| child.source(body.stmt(stmt).span).trim_start().starts_with(word);
    match &body.stmt(stmt).kind {
        StmtKind::Return(_) if !begins("return") => Some("a `return`"),
        StmtKind::Break if !begins("break") => Some("a `break`"),
        StmtKind::Continue if !begins("continue") => Some("a `continue`"),
        StmtKind::Block(list) => {
            let mut pairs = list.windows(2);
            let same = pairs.any(|pair| match pair {
                [a, b] => body.stmt(*b).span.start < body.stmt(*a).span.end,
                _ => false,
            });
            same.then_some("several statements")
        }
        _ if is_barrier(body, stmt) || groups.is_sync(body, stmt) => {
            // Out of one that stands for it alone it is as good as written.
            let own = body.stmt(stmt).span;
            let all = (0..body.stmts.len() as u32).map(StmtId);
            let mut others = all.filter(|other| *other != stmt && body.stmt(*other).span.start == own.start);
            let around = others.any(|other| !matches!(body.stmt(other).kind, StmtKind::Block(_) | StmtKind::Empty));
            around.then_some("a barrier and more")
        }
        _ => None,
    }
}

/// Whether a statement is what something was found in.
type Fits<'a> = &'a dyn Fn(StmtId) -> bool;

/// What can't be split at all.
fn refusals(child: &Child<'_>, groups: &Groups, effects: &Effects) -> Vec<Reason> {
    let body: &Body = &child.body;
    let name = &child.name;
    let mut found = Vec::new();
    let mut refuse = |text: String, span: Span| found.push(reason(text, child.place_of(span)));
    let Some(root_stmt) = body.root else {
        return found;
    };
    let stmts = all_stmts(body, root_stmt);
    let top = parts(body, root_stmt).0;
    for stmt in &stmts {
        let statement = body.stmt(*stmt);
        if let Some(hidden) = hidden_by_macro(child, groups, *stmt) {
            refuse(
                format!("a macro stands for {hidden} of `{name}`; write out what it stands for"),
                statement.span,
            );
        }
        match &statement.kind {
            StmtKind::Decl(decls) if decls.len() > 1 && decls.iter().any(|d| body.binding(d.binding).ty.reference) => {
                refuse(
                    format!("`{name}` declares a reference and another variable in one statement"),
                    statement.span,
                );
            }
            StmtKind::Goto(_) | StmtKind::Label(..) => {
                refuse(format!("`{name}` jumps with `goto`"), statement.span);
            }
            StmtKind::Unknown { .. } | StmtKind::Asm { .. } => {
                refuse(format!("a statement of `{name}` is not understood"), statement.span);
            }
            StmtKind::Decl(decls) => {
                let in_shared = |b| matches!(body.binding(b).storage, Storage::Shared | Storage::ExternShared);
                if decls.iter().any(|d| in_shared(d.binding)) && !top.contains(stmt) {
                    refuse(
                        format!("`{name}` declares shared memory inside of a branch or a loop"),
                        statement.span,
                    );
                }
            }
            StmtKind::Return(Some(_)) => refuse(format!("`{name}` returns a value"), statement.span),
            StmtKind::Preprocessor { .. } if has_sync(body, groups, *stmt) => {
                refuse(format!("`{name}` waits at a barrier under an #if"), statement.span);
            }
            _ => {}
        }
    }
    for expr in all_exprs(body, root_stmt) {
        let span = body.expr(expr).span;
        match &body.expr(expr).kind {
            ExprKind::Lambda { .. } => refuse(format!("`{name}` holds a lambda beside its barriers"), span),
            ExprKind::Unknown { .. } => refuse(format!("an expression of `{name}` is not understood"), span),
            // It's another variable in each part, and gone behind it.
            ExprKind::AddrOf(place) if is_builtin(body, *place) => {
                refuse(format!("`{name}` takes the address of a built-in variable"), span);
            }
            _ => {}
        }
    }
    for binding in &body.bindings {
        let shared = matches!(binding.storage, Storage::Shared | Storage::ExternShared);
        let declared = child.source(binding.decl_span);
        let outlives = || lex::identifiers(declared).any(|word| word == "static");
        if binding.storage == Storage::Static || shared && outlives() {
            refuse(format!("`{}` of `{name}` is static", binding.name), binding.span);
        } else if shared && binding.ty.volatile {
            refuse(
                format!(
                    "`{}` of `{name}` is volatile: its threads may look at it without a barrier",
                    binding.name
                ),
                binding.span,
            );
        }
    }
    let reasons = copies::changed(child)
        .into_iter()
        .filter_map(|param| copies::refusal(child, param));
    found.extend(reasons);
    // A type would be known in one part of the body alone.
    let whole = child.source(body.stmt(root_stmt).span);
    if let Some(word) = lex::type_declaration(whole) {
        found.push(reason(
            format!("`{name}` may declare a type (`{word}`) between its barriers"),
            child.place_of(body.stmt(root_stmt).span),
        ));
    }
    if let Some((directive, span)) = directives::changes_macros(child, body.stmt(root_stmt).span) {
        let text = format!("`{name}` has a `{directive}` between its barriers, which may change what macros stand for");
        found.push(reason(text, child.place_of(span)));
    }
    // Every barrier and all shared memory must be seen in the statements, not in macros or functions that are called.
    let seen = |found: &&Found, fits: &dyn Fn(StmtId) -> bool| {
        found.place.file == child.file
            && stmts.iter().any(|s| {
                let range = body.stmt(*s).span.shift(child.start);
                fits(*s) && range.contains(found.place.range)
            })
    };
    let barrier = |s: StmtId| is_barrier(body, s) || groups.is_sync(body, s);
    let shared = |s: StmtId| match &body.stmt(s).kind {
        StmtKind::Decl(decls) => decls
            .iter()
            .any(|d| matches!(body.binding(d.binding).storage, Storage::Shared | Storage::ExternShared)),
        _ => false,
    };

    let lists: [(&[Found], Fits<'_>, &str); 3] = [
        (&effects.barriers, &barrier, "waits at a barrier"),
        (&effects.warp, &barrier, "works together with its warp"),
        (&effects.shared, &shared, "uses shared memory"),
    ];
    for (list, fits, what) in lists {
        for other in list.iter().filter(|f| !seen(f, fits)) {
            found.push(reason(
                format!(
                    "`{name}` {what} in a way that can't be run by one thread: {}",
                    other.what
                ),
                other.place,
            ));
        }
    }
    found
}

fn has_sync(body: &Body, groups: &Groups, stmt: StmtId) -> bool {
    all_stmts(body, stmt).into_iter().any(|s| {
        is_barrier(body, s)
            || groups.is_sync(body, s)
            || matches!(&body.stmt(s).kind, StmtKind::Decl(decls)
                if decls.iter().any(|d| body.binding(d.binding).storage == Storage::Shared))
    })
}

/// What sets each variable.
fn setters(body: &Body) -> BTreeMap<BindingId, Vec<Setter>> {
    let mut found: BTreeMap<BindingId, Vec<Setter>> = BTreeMap::new();
    let Some(root_stmt) = body.root else {
        return found;
    };
    for stmt in all_stmts(body, root_stmt) {
        if let StmtKind::Decl(decls) = &body.stmt(stmt).kind {
            for decl in decls {
                let setter = Setter::Declaration(decl.binding);
                found.entry(decl.binding).or_default().push(setter);
            }
        }
    }
    for expr in all_exprs(body, root_stmt) {
        if let ExprKind::Assign { place, .. } | ExprKind::IncDec { place, .. } = &body.expr(expr).kind
            && let Some(b) = root(body, *place)
        {
            found.entry(b).or_default().push(Setter::Assignment(expr));
        }
    }
    found
}

/// Adds variables to `needed`, with those of the block that their values come from.
fn close(
    body: &Body,
    setters: &BTreeMap<BindingId, Vec<Setter>>,
    block: &BTreeSet<BindingId>,
    more: BTreeSet<BindingId>,
    needed: &mut BTreeSet<BindingId>,
) {
    let declared = initialisers(body);
    let mut todo: Vec<BindingId> = more.into_iter().filter(|b| block.contains(b)).collect();
    while let Some(next) = todo.pop() {
        if !needed.insert(next) {
            continue;
        }
        let mut exprs: Vec<ExprId> = Vec::new();
        for setter in setters.get(&next).into_iter().flatten() {
            match setter {
                Setter::Declaration(b) => exprs.extend(declared.get(b).copied().flatten()),
                Setter::Assignment(e) => exprs.push(*e),
            }
        }
        let all: Vec<ExprId> = exprs.into_iter().flat_map(|e| all_in_expr(body, e)).collect();
        todo.extend(variables(body, &all).into_iter().filter(|b| block.contains(b)));
        // Declared together.
        for stmt in &body.stmts {
            if let StmtKind::Decl(decls) = &stmt.kind
                && decls.iter().any(|d| d.binding == next)
            {
                todo.extend(decls.iter().map(|d| d.binding).filter(|b| block.contains(b)));
            }
        }
    }
}

/// The variables declared by statements, with their initialisers.
fn initialisers(body: &Body) -> BTreeMap<BindingId, Option<ExprId>> {
    let mut found = BTreeMap::new();
    for stmt in &body.stmts {
        if let StmtKind::Decl(decls) = &stmt.kind {
            found.extend(decls.iter().map(|d| (d.binding, d.init)));
        }
    }
    found
}

/// `unlowered`: variables that are named in code that isn't lowered.
fn collect(body: &Body, items: &[Item], unlowered: &[(BindingId, Span)], repeated: bool, regions: &mut Vec<Region>) {
    for item in items {
        match item {
            Item::Region(stmts) => {
                let exprs: Vec<ExprId> = stmts.iter().flat_map(|s| all_exprs(body, *s)).collect();
                let mut declares = BTreeSet::new();
                for stmt in stmts.iter().flat_map(|s| all_stmts(body, *s)) {
                    if let StmtKind::Decl(decls) = &body.stmt(stmt).kind {
                        declares.extend(decls.iter().map(|d| d.binding));
                    }
                }
                let outlives = stmts.iter().flat_map(|s| match &body.stmt(*s).kind {
                    StmtKind::Decl(decls) => decls.iter().map(|d| d.binding).collect(),
                    _ => Vec::new(),
                });
                let mut uses = variables(body, &exprs);
                // `sizeof(v)`, `decltype(v)`, a `static_assert`
                let spans = stmts.iter().map(|s| body.stmt(*s).span);
                uses.extend(unlowered.iter().filter_map(|(binding, at)| {
                    let inside = spans.clone().any(|span| span.start <= at.start && at.end <= span.end);
                    inside.then_some(*binding)
                }));
                regions.push(Region {
                    declares,
                    outlives: outlives.collect(),
                    uses,
                    repeated,
                });
            }
            Item::Control { stmt, bodies } => {
                let is_loop = !matches!(body.stmt(*stmt).kind, StmtKind::If { .. } | StmtKind::Block(_));
                for Branch { items, .. } in bodies {
                    collect(body, items, unlowered, repeated || is_loop, regions);
                }
            }
            Item::Barrier(_) | Item::Shared(_) | Item::Once(_) => {}
        }
    }
}

/// Where the copies of the parameters live that the child changes. Those of the block among them are set by statements that run once.
fn copies(regions: &[Region], changed: &BTreeSet<BindingId>, block: &BTreeSet<BindingId>) -> Copies {
    let place = |param: &BindingId| {
        let mut uses = regions.iter().filter(|region| region.uses.contains(param));
        let (first, second) = (uses.next(), uses.next());
        let copy = match (first, second) {
            _ if block.contains(param) => Copy::Block,
            (Some(only), None) if !only.repeated => Copy::Region,
            _ => Copy::Threads,
        };
        (*param, copy)
    };
    changed.iter().map(place).collect()
}

/// The sizes of shared arrays are computed from what is declared where the arrays are.
fn sizes_are_seen(child: &Child<'_>, items: &[Item], block: &BTreeSet<BindingId>) -> Result<(), Reason> {
    let body: &Body = &child.body;
    let shared = items.iter().filter_map(|item| match item {
        Item::Shared(stmt) => Some(*stmt),
        _ => None,
    });
    for stmt in shared {
        let exprs: Vec<ExprId> = { parts(body, stmt).1.into_iter() }
            .flat_map(|e| all_in_expr(body, e))
            .collect();
        let unseen = variables(body, &exprs).into_iter().find(|b| !block.contains(b));
        if let Some(unseen) = unseen {
            let name = &body.binding(unseen).name;
            return Err(reason(
                format!("how large shared memory of `{}` is depends on `{name}`", child.name),
                child.place_of(body.stmt(stmt).span),
            ));
        }
    }
    Ok(())
}

/// Variables that are declared in one region and used in another.
fn crossing(regions: &[Region]) -> BTreeSet<BindingId> {
    let mut found = BTreeSet::new();
    for (index, region) in regions.iter().enumerate() {
        for binding in &region.declares {
            let elsewhere = |(other, r): (usize, &Region)| other != index && r.uses.contains(binding);
            if regions.iter().enumerate().any(elsewhere) {
                found.insert(*binding);
            }
        }
    }
    found
}

/// Adds to the variables that are used on both sides of a barrier those whose address something may keep that long, in one of them or in
/// memory: they have to live as long, though nobody names them behind it.
fn with_pointed_at(
    child: &Child<'_>,
    regions: &[Region],
    mut crossing: BTreeSet<BindingId>,
) -> Result<BTreeSet<BindingId>, Reason> {
    let held = kept(child.db, child.item).while_alive(crossing.iter().copied());
    if held.contains(&None) {
        let text = format!(
            "`{}` may keep the address of a built-in variable across a barrier",
            child.name
        );
        return Err(reason(text, child.place()));
    }
    // Behind the last one there is no barrier.
    for region in regions.split_last().map_or(&[][..], |(_, rest)| rest) {
        let kept = { region.outlives.iter() }.filter(|b| held.contains(&Some(**b)) && !only_refers(child, **b));
        crossing.extend(kept);
    }
    Ok(crossing)
}

/// A reference that keeps no value alive that it is made of: it has no address of its own.
fn only_refers(child: &Child<'_>, binding: BindingId) -> bool {
    let variable = child.body.binding(binding);
    let declared = child.source(Span::new(variable.decl_span.start, variable.span.start));
    variable.ty.reference && !variable.ty.const_base && !variable.ty.complex && !declared.contains("&&")
}

/// What is named outside of the regions, where nothing is lowered, is declared there.
fn are_seen_outside(
    child: &Child<'_>,
    outside: &[(BindingId, Span)],
    block: &BTreeSet<BindingId>,
    changed: &BTreeSet<BindingId>,
) -> Result<(), Reason> {
    let body: &Body = &child.body;
    let seen = |b: &BindingId| {
        block.contains(b) || constants::is_around(body, *b) || body.params.contains(b) && !changed.contains(b)
    };
    match outside.iter().find(|(b, _)| !seen(b)) {
        Some((unseen, at)) => {
            let text = format!(
                "`{}` names `{}`, of which each thread has its own, in code that runs once for the block",
                child.name,
                body.binding(*unseen).name
            );
            Err(reason(text, child.place_of(*at)))
        }
        None => Ok(()),
    }
}

/// Whether a place is a built-in variable, or a part of one.
fn is_builtin(body: &Body, place: ExprId) -> bool {
    match &body.expr(place).kind {
        ExprKind::Paren(inner)
        | ExprKind::Field {
            base: inner,
            arrow: false,
            ..
        } => is_builtin(body, *inner),
        ExprKind::Name(Name::Builtin(_)) => true,
        _ => false,
    }
}

/// Whether a thread may return from the kernel while others go on.
fn exits(body: &Body, items: &[Item]) -> bool {
    let last = items.len().saturating_sub(1);
    items.iter().enumerate().any(|(index, item)| match item {
        Item::Region(stmts) => index != last && stmts.iter().any(|s| returns(body, *s)),
        Item::Control { bodies, .. } => bodies.iter().any(|b| any_returns(body, &b.items)),
        _ => false,
    })
}

fn any_returns(body: &Body, items: &[Item]) -> bool {
    items.iter().any(|item| match item {
        Item::Region(stmts) => stmts.iter().any(|s| returns(body, *s)),
        Item::Control { bodies, .. } => bodies.iter().any(|b| any_returns(body, &b.items)),
        _ => false,
    })
}

/// Whether a statement holds a `return`.
pub fn returns(body: &Body, stmt: StmtId) -> bool {
    all_stmts(body, stmt)
        .into_iter()
        .any(|s| matches!(body.stmt(s).kind, StmtKind::Return(_)))
}

/// The variables that a statement or an expression in a region names.
pub fn names_of(body: &Body, stmts: &[StmtId]) -> BTreeSet<BindingId> {
    let exprs = stmts.iter().flat_map(|s| all_exprs(body, *s));
    exprs.filter_map(|e| named(body, e)).collect()
}
