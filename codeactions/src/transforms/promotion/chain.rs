//! Recognises a chain: a kernel of one block, one thread of which launches the same kernel again, with one block.

use gridfuse_analysis::base::db::Db;
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::Span;
use gridfuse_analysis::facts::effects::{Effects, effects, summary};
use gridfuse_analysis::facts::launch::{Child as Launched, Launchers, Stream, constant_value, who_launches};
use gridfuse_analysis::facts::uniformity::{Level, uniformity};
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::resolve::{declarations_of, functions_named, launch_sites_of, other_mentions};
use gridfuse_analysis::hir::{BinOp, BindingId, Builtin, ExprId, ExprKind, Name, StmtId, StmtKind, body};

use super::memory::write_before;
use crate::api::refusal::Ineligible;
use crate::api::refusal::Refusals;
use crate::draft::Draft;
use crate::edit::lex;
use crate::edit::names::words_with_macros;
use crate::emit::arena::refuse_to_leave_unseen;
use crate::emit::target;
use crate::facts::by_device;
use crate::facts::child::Child;
use crate::facts::cluster::Function;
use crate::facts::ctype;
use crate::facts::graphs;
use crate::facts::instance;
use crate::facts::movable;
use crate::facts::of_macro::is_part_of_macro;
use crate::facts::pure::{self, Top};
use crate::facts::read_only::all_restrict;
use crate::facts::site::Site;
use crate::facts::surroundings::waits_for_children;
use crate::runtime::is_header;
use crate::transforms::self_launch::{keeps_block_size, shared_bytes};

/// What a link passes to the next one in the place of a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Passed {
    /// What it has got itself.
    Same,
    /// That, and so much more (or less): what doesn't change from link to link.
    Step {
        /// Source of the step; `None`: 1.
        by: Option<String>,
        /// It is taken off.
        minus: bool,
    },
    /// Anything else.
    New,
}

/// A kernel that launches itself.
pub struct Chain<'db> {
    /// The launch of the next link.
    pub site: Site<'db>,
    /// The kernel.
    pub kernel: Child<'db>,
    /// The same, for questions about its text.
    pub function: Function<'db>,
    /// Where the host launches the first link.
    pub entries: Vec<Site<'db>>,
    /// Declarations of the kernel beside its definition.
    pub declarations: Vec<FunctionItem<'db>>,
    /// For each parameter.
    pub passed: Vec<Passed>,
}

impl<'db> Chain<'db> {
    /// Looks at a launch of a kernel by itself; what can't become one grid is refused.
    ///
    /// # Errors
    /// The reasons why not.
    pub fn find(draft: &mut Draft<'db>) -> Result<Chain<'db>, Ineligible> {
        let (db, item) = (draft.site.db, draft.site.parent);
        draft.site.refuse_common(&mut draft.refusals);
        target::refuse_place(&draft.site, &mut draft.refusals);
        target::refuse_undecided(&draft.site, &mut draft.refusals);
        target::refuse_operands(&draft.site, &mut draft.refusals);
        let kernel = draft.read(item);
        let Draft {
            site,
            names,
            refusals,
            edit,
            ..
        } = draft;
        let found = effects(db, item);
        refuse_launch(site, &found, refusals);
        refuse_other_calls(db, item, refusals);
        let mut entries = Vec::new();
        for id in launch_sites_of(db, item) {
            if id.function == item {
                continue;
            }
            let entry = Site::new(db, id)?;
            names.add_file(db, entry.file);
            refuse_entry(&entry, site, item, refusals);
            graphs::keep(&entry, refusals, edit);
            entries.push(entry);
        }
        if entries.is_empty() {
            refusals.add(
                format!(
                    "no launch of `{}` by the host was found, which would have to launch more blocks",
                    site.parent_name()
                ),
                Some(site.here()),
            );
        }
        refuse_configurations(site, &entries, refusals);
        for entry in entries.iter().filter(|e| instance::arguments(e, &kernel).is_none()) {
            refusals.add(
                format!("the template arguments of `{}` are deduced", kernel.name),
                Some(entry.place(entry.launch.name_span)),
            );
        }
        refuse_body(site, &kernel, &found, refusals);
        refusals.check()?;
        let function = Function::new(db, item);
        let passed = passed(site, &function);
        Ok(Chain {
            site: site.clone(),
            kernel,
            function,
            entries,
            declarations: declarations_of(db, item),
            passed,
        })
    }

    /// The parameter whose variable this is.
    pub fn parameter(&self, binding: BindingId) -> Option<usize> {
        self.site.body.params.iter().position(|p| *p == binding)
    }

    /// An expression that has one value for all threads of a link, which is known from the parameters that `has` says.
    pub fn holds(&self, expr: ExprId, has: &dyn Fn(usize) -> bool) -> bool {
        top(&self.function, has).holds(expr)
    }

    /// A span of the kernel as a place.
    pub fn place(&self, span: Span) -> FileRange {
        self.site.place(span)
    }
}

fn top<'t, 'db>(function: &'t Function<'db>, has: &'t dyn Fn(usize) -> bool) -> Top<'t, 'db> {
    Top {
        function,
        level: Level::Grid,
        builtins: true,
        has,
    }
}

/// Who launches what, how often.
fn refuse_launch(site: &Site<'_>, effects: &Effects, refusals: &mut Refusals) {
    let (db, name, here) = (site.db, site.parent_name(), Some(site.here()));
    if let Some(around) = site.facts.loops.first() {
        refusals.add("the launch stands in a loop", Some(site.place(around.span)));
    }
    if let Some(found) = effects
        .launches
        .iter()
        .find(|f| !site.here().range.contains(f.place.range))
    {
        refusals.add(format!("`{name}` launches elsewhere, too"), Some(found.place));
    }
    match who_launches(db, site.id) {
        Launchers::OnePerBlock | Launchers::OnePerGrid => {}
        _ => refusals.add(
            "more than one thread may launch: `if (threadIdx.x == 0)` or the like around the launch isn't seen",
            here,
        ),
    }
    let stream = site
        .facts
        .stream_operand
        .as_ref()
        .map_or(here, |o| Some(site.place(o.span)));
    match site.facts.stream {
        Stream::Null | Stream::FireAndForget | Stream::PerThread => {}
        Stream::TailLaunch => refusals.add(
            "in cudaStreamTailLaunch, the next one begins when all of this one is done",
            stream,
        ),
        Stream::Created(_) | Stream::Other => refusals.add("the stream may hold other work, too", stream),
    }
}

/// Ways in which the kernel is used that aren't launches in sight.
fn refuse_other_calls(db: &dyn Db, item: FunctionItem<'_>, refusals: &mut Refusals) {
    let name = gridfuse_analysis::hir::names::unqualified(item.name(db));
    // The runtime header has locals of many names, and knows no kernel of the user's.
    let of_user = |m: &FileRange| !is_header(db, m.file);
    for mention in other_mentions(db, item).into_iter().filter(of_user).take(3) {
        refusals.add(
            format!("`{name}` is mentioned where it isn't launched: some calls may be unseen"),
            Some(mention),
        );
    }
    let file = item.file(db);
    let others = functions_named(db, file, item.name(db));
    // What is only declared is the kernel, or another function; the host's code names the kernel without its parameters.
    let counts = |f: FunctionItem<'_>| body(db, f).params.len();
    let is_other = |f: &FunctionItem<'_>| f.has_body(db) || !f.signature(db).kernel || counts(*f) != counts(item);
    if let Some(other) = others.into_iter().find(|f| *f != item && is_other(f)) {
        let place = FileRange {
            file: other.file(db),
            range: other.signature(db).name_span.shift(other.start(db)),
        };
        refusals.add(
            format!("`{name}` has several definitions (an overload or a specialisation)"),
            Some(place),
        );
    }
}

/// The first link has to be launched by the host, which gives it memory.
fn refuse_entry(entry: &Site<'_>, own: &Site<'_>, kernel: FunctionItem<'_>, refusals: &mut Refusals) {
    let name = own.parent_name();
    let here = Some(entry.here());
    if by_device::is_made_by_device(entry) {
        refusals.add(
            format!("`{}` launches `{name}` from the device", entry.parent_name()),
            here,
        );
        return;
    }
    if !matches!(entry.facts.child, Launched::Kernel(k) if k == kernel) {
        refusals.add(format!("whether this launches `{name}` isn't clear"), here);
    }
    if entry.facts.from_macro {
        refusals.add(format!("the host launches `{name}` in a macro"), here);
        return;
    }
    if entry.launch.config.len() < 2 || entry.launch.config.len() > 4 {
        refusals.add("the configuration of this host launch is not understood", here);
        return;
    }
    if entry.launch.args.len() != own.body.params.len() {
        refusals.add("this host launch leaves out arguments that have default values", here);
    }
    for (index, what) in [(1, "block size"), (2, "shared memory size"), (3, "stream")] {
        let Some(expr) = entry.launch.config.get(index) else {
            continue;
        };
        if let Some(part) = pure::not_repeatable(entry, *expr) {
            refusals.add(
                format!("the {what} of this host launch calls or changes something, so it can't be written twice"),
                Some(entry.place(entry.body.expr(part).span)),
            );
        }
    }
    entry.refuse_conditional(refusals);
    for (span, reason) in &entry.body.problems {
        if span.start < entry.facts.span.end && entry.facts.span.start < span.end {
            refusals.add(
                format!("this host launch is not understood: {reason}"),
                Some(entry.place(*span)),
            );
        }
    }
}

/// All links have one block, and the same block size and shared memory.
fn refuse_configurations(site: &Site<'_>, entries: &[Site<'_>], refusals: &mut Refusals) {
    let name = site.parent_name();
    let mut launches = entries.iter().chain([site]);
    if let Some(one) = launches.find(|one| one.facts.grid.constant != Some([1, 1, 1])) {
        let place = one.place(one.facts.grid.operand.span);
        refusals.add(format!("the grid isn't known to be one block of `{name}`"), Some(place));
    }
    for entry in entries {
        if !keeps_block_size(site, entry) {
            refusals.add(
                format!("the next `{name}` isn't known to have the block size of this one"),
                Some(site.place(site.facts.block.operand.span)),
            );
        }
        if shared_bytes(entry).is_none() || shared_bytes(entry) != shared_bytes(site) {
            let place = site.facts.shared.as_ref().map_or(site.here(), |o| site.place(o.span));
            refusals.add(
                format!("the next `{name}` isn't known to have as much dynamic shared memory as this one"),
                Some(place),
            );
        }
    }
}

/// What the kernel may not do when one block runs several links, as one of many.
fn refuse_body(site: &Site<'_>, kernel: &Child<'_>, effects: &Effects, refusals: &mut Refusals) {
    let (db, name) = (site.db, &kernel.name);
    if !instance::is_own(site, kernel) {
        refusals.add(
            format!("`{name}` may launch another instance of the template than its own"),
            Some(site.place(site.launch.name_span)),
        );
    }
    if kernel.template.as_ref().is_some_and(|t| t.contains('=')) {
        refusals.add(
            format!("`{name}` has default template arguments, which may stand only once"),
            Some(kernel.place()),
        );
    }
    if kernel.outlined.is_some() || kernel.params.iter().any(|p| p.ty.base.contains("gridfuse::")) {
        refusals.add(format!("`{name}` has been rewritten already"), Some(kernel.place()));
    }
    refuse_grid(site, kernel, effects, refusals);
    movable::refuse_friend(kernel, refusals);
    refuse_to_leave_unseen(name, effects, refusals);
    for found in effects
        .own_name
        .iter()
        .chain(&effects.errors)
        .chain(&effects.events)
        .chain(&effects.operations)
    {
        refusals.add(format!("`{name}` uses {}", found.what), Some(found.place));
    }
    for found in &effects.syncs {
        let who = format!("`{name}`");
        refusals.add(waits_for_children(&who, &found.what), Some(found.place));
    }
    if let Some(span) = summary(db, site.parent).may_wait {
        refusals.add(
            format!("`{name}` may wait in a loop for another thread"),
            Some(site.place(span)),
        );
    }
    let mentions = lex::identifiers(kernel.source(site.parent.body_span(db)))
        .filter(|w| w == name)
        .count();
    if mentions > 1 {
        refusals.add(
            format!("`{name}` uses its own name in more places than this launch"),
            Some(kernel.place()),
        );
    }
    for stmt in &site.body.stmts {
        let what = match &stmt.kind {
            StmtKind::Goto(_) | StmtKind::Label(..) => "jumps to labels",
            StmtKind::Preprocessor { .. } => "has parts under an #if",
            StmtKind::Unknown { .. } => "has a statement that is not understood",
            _ => continue,
        };
        refusals.add(format!("`{name}` {what}"), Some(site.place(stmt.span)));
    }
    refuse_partial_return(site, name, effects, refusals);
    refuse_stale_load(site, kernel, effects, refusals);
}

/// Refuses a kernel that may read which block of which grid it runs in: both are others in one grid of many links.
fn refuse_grid(site: &Site<'_>, kernel: &Child<'_>, effects: &Effects, refusals: &mut Refusals) {
    let name = &kernel.name;
    let body = &site.body;
    let is_grid = |b: Builtin| matches!(b, Builtin::BlockIdx | Builtin::GridDim);
    if let Some(expr) = body
        .exprs
        .iter()
        .find(|e| matches!(e.kind, ExprKind::Name(Name::Builtin(b)) if is_grid(b)))
    {
        let what = site.source(expr.span);
        refusals.add(
            format!("`{name}` reads `{what}`, which differs in a grid of many blocks"),
            Some(site.place(expr.span)),
        );
    }
    // A class that it declares has code that no name calls.
    else if let Some(word) = words_with_macros(site.db, site.file, kernel.source(site.parent.body_span(site.db)))
        .into_iter()
        .find(|word| matches!(word.as_str(), "blockIdx" | "gridDim"))
    {
        refusals.add(
            format!("`{name}` reads `{word}`, which differs in a grid of many blocks"),
            Some(kernel.place()),
        );
    }
    for (builtin, callee, place) in &effects.builtins_in_callees {
        if matches!(*builtin, "blockIdx" | "gridDim") {
            refusals.add(
                format!("`{name}` calls `{callee}`, which reads `{builtin}`"),
                Some(*place),
            );
        }
    }
    if let Some(place) = movable::implicit_read(kernel) {
        refusals.add(
            format!("`{name}` may run an operator, a constructor or an initialiser that reads the built-in variables"),
            Some(place),
        );
    }
    for unknown in &effects.unknown {
        refusals.add(
            format!("`{name}` uses {}, so it may read `blockIdx`", unknown.what),
            Some(unknown.place),
        );
    }
    for asm in effects.asm.iter().filter(|a| !movable::is_plain_asm(a)) {
        refusals.add(format!("`{name}` holds inline assembly"), Some(asm.place));
    }
}

/// Who has returned isn't waited for, neither by a barrier nor by a shuffle; between links it is waited for.
fn refuse_partial_return(site: &Site<'_>, name: &str, effects: &Effects, refusals: &mut Refusals) {
    if effects.barriers.is_empty() && effects.warp.is_empty() {
        return;
    }
    let levels = uniformity(site.db, site.parent);
    for (index, stmt) in site.body.stmts.iter().enumerate() {
        let together = levels
            .divergence
            .get(&StmtId(index as u32))
            .is_some_and(|u| u.level <= Level::Block && u.assumes.is_empty());
        if matches!(stmt.kind, StmtKind::Return(_)) && !together {
            refusals.add(
                format!("threads of `{name}` may return here while others wait for each other"),
                Some(site.place(stmt.span)),
            );
        }
    }
}

/// Within a grid nothing orders loads that take what they read for constant behind the writes of other blocks.
fn refuse_stale_load(site: &Site<'_>, kernel: &Child<'_>, effects: &Effects, refusals: &mut Refusals) {
    let (name, body) = (&kernel.name, &site.body);
    let restrict = body.params.iter().map(|p| body.binding(*p)).find(|p| p.ty.restrict);
    let load = match (effects.read_only.first().or(effects.restricts.first()), restrict) {
        (Some(load), _) => Some((load.what.clone(), load.place)),
        (None, Some(param)) => Some(("__restrict__".to_owned(), site.place(param.decl_span))),
        (None, None) => all_restrict(site.db, site.file).then(|| ("--restrict".to_owned(), kernel.place())),
    };
    if let Some((what, place)) = load
        && let Some(span) = write_before(site)
    {
        let write = crate::edit::one_line::flat(site.source(span));
        refusals.add(
            format!("`{name}` has a non-coherent load ({what}), which may miss what an earlier link of the same grid has written: `{write}`"),
            Some(place),
        );
    }
}

/// How each parameter of the next link is got.
fn passed(site: &Site<'_>, function: &Function<'_>) -> Vec<Passed> {
    let body = &site.body;
    let constant = |binding| pure::is_immutable_parameter(site.db, site.parent, body, binding);
    let is_parameter = |expr: ExprId, binding: BindingId| matches!(body.expr(body.strip_parens(expr)).kind, ExprKind::Name(Name::Local(b)) if b == binding);
    let mut all: Vec<Passed> = Vec::new();
    for (index, binding) in body.params.iter().enumerate() {
        let same = site
            .launch
            .args
            .get(index)
            .is_some_and(|arg| is_parameter(*arg, *binding))
            && constant(*binding);
        all.push(if same { Passed::Same } else { Passed::New });
    }
    let same: Vec<bool> = all.iter().map(|p| *p == Passed::Same).collect();
    let has = |index: usize| same.get(index).is_some_and(|s| *s);
    let top = top(function, &has);
    for (index, binding) in body.params.iter().enumerate() {
        let Some(arg) = site
            .launch
            .args
            .get(index)
            .filter(|_| !has(index) && constant(*binding))
        else {
            continue;
        };
        let ty = &body.binding(*binding).ty;
        let counts = ty.pointers > 0 || is_wide_integer(&ty.base);
        let by = match &body.expr(body.strip_parens(*arg)).kind {
            ExprKind::Binary(BinOp::Add, a, b) if is_parameter(*a, *binding) => Some((*b, false)),
            ExprKind::Binary(BinOp::Add, a, b) if is_parameter(*b, *binding) => Some((*a, false)),
            ExprKind::Binary(BinOp::Sub, a, b) if is_parameter(*a, *binding) => Some((*b, true)),
            _ => None,
        };
        let written = |by: ExprId| !is_part_of_macro(body, by);
        let Some((by, minus)) = by.filter(|(by, _)| counts && written(*by) && top.holds(*by) && is_integer(site, *by))
        else {
            continue;
        };
        let source = crate::edit::one_line::flat(site.expr_source(by));
        let by = (source != "1").then_some(source);
        if let Some(place) = all.get_mut(index) {
            *place = Passed::Step { by, minus };
        }
    }
    all
}

/// The type that a parameter of the kernel's template is declared with: `int` of `<class T, int N = 4>`.
fn template_parameter_type(site: &Site<'_>, name: &str) -> Option<String> {
    let span = site.parent.signature(site.db).template_params?;
    let text = site.parent.text(site.db);
    let header = text.get(span.start as usize..span.end as usize)?;
    let words: Vec<&str> = lex::code_words(header);
    let at = words.iter().position(|word| *word == name)?;
    let before = words.get(..at)?;
    let first = before.iter().rposition(|word| matches!(*word, "," | "<" | ">"))?;
    let ty = before.get(first + 1..).filter(|ty| !ty.is_empty())?;
    Some(ty.join(" "))
}

/// An integer at least as wide as `int`.
pub fn is_wide_integer(base: &str) -> bool {
    matches!(
        ctype::normalize(base).as_str(),
        "int"
            | "unsigned int"
            | "long"
            | "unsigned long"
            | "long long"
            | "unsigned long long"
            | "size_t"
            | "int32_t"
            | "uint32_t"
            | "int64_t"
            | "uint64_t"
            | "ptrdiff_t"
    )
}

/// Whether an expression is an integer without doubt: no class with operators of its own is in it, and no name that may stand for a
/// floating-point type.
fn is_integer(site: &Site<'_>, expr: ExprId) -> bool {
    let body = &site.body;
    let signature = site.parent.signature(site.db);
    let named = |ty: &str| {
        let own = |word: &str| body.declared.contains(word) || signature.template_names.iter().any(|n| n == word);
        !lex::identifiers(ty).any(own) && ctype::is_integer(site.db, site.file, ty)
    };
    match &body.expr(expr).kind {
        ExprKind::Paren(e) | ExprKind::Unary(_, e) => is_integer(site, *e),
        ExprKind::Binary(_, a, b) | ExprKind::Logical { lhs: a, rhs: b, .. } => {
            is_integer(site, *a) && is_integer(site, *b)
        }
        ExprKind::Conditional { then, otherwise, .. } => is_integer(site, *then) && is_integer(site, *otherwise),
        ExprKind::Cast {
            ty, reinterpret: false, ..
        } => named(ty),
        ExprKind::Name(Name::Other(name)) if signature.template_names.contains(name) => {
            template_parameter_type(site, name).is_some_and(|ty| named(&ty))
        }
        _ => match ctype::type_of(site, expr) {
            Some(ty) => named(&ty),
            None => constant_value(site.db, site.parent, body, expr).is_some(),
        },
    }
}
