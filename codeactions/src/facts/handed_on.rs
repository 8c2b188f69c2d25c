//! What one launch writes for another one of the same function: nothing proves that the places are the same, but both are given the same
//! memory and the same sizes, and who launches them into one stream means their order.

use std::sync::Arc;

use gridfuse_analysis::base::span::Span;
use gridfuse_analysis::facts::dependence::{
    Access, Dependence, Footprint, Kind, Root, Symbol, Touch, child_footprint, own_footprint,
};
use gridfuse_analysis::facts::launch::{Child, LaunchFacts, Operand, launches};
use gridfuse_analysis::hir::flow::{Flow, control_flow};
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::names::unqualified;
use gridfuse_analysis::hir::walk::all_in_expr;
use gridfuse_analysis::hir::{BindingId, Body, ExprId, ExprKind, Name, StmtKind, body};

use crate::edit::lex;
use crate::facts::pure::keeps_first_value;
use crate::facts::site::Site;

/// The accesses by which the grids of a launch and those of another one, by index, hand something on: one writes and the other one reads
/// through the same pointer. `None` where the arguments may say that they work on different parts of the memory (`begin` of one and
/// `middle` of the other), or where no thread comes to both launches. So do a grid that leads a pointer of the file elsewhere and one that
/// works through it.
pub fn handed_on<'db>(site: &Site<'db>, other: u32) -> Option<Dependence<'db>> {
    let (db, function) = (site.db, site.parent);
    let theirs = launches(db, function).get(other as usize)?;
    let flow = control_flow(db, function);
    let (own, args) = (
        args_of_all(site, &flow, site.facts, theirs),
        args_of_all(site, &flow, theirs, site.facts),
    );
    let (a, b) = (
        *flow.expr_block.get(&site.facts.expr)?,
        *flow.expr_block.get(&theirs.expr)?,
    );
    if a != b && !flow.leads(a, b) && !flow.leads(b, a) {
        return None;
    }
    // Where a pointer leads, no argument says.
    if let Some(led) = led_elsewhere(site, theirs) {
        return Some(led);
    }
    let between = between(site, theirs);
    let covered = covers(site, &site.facts.args, &args, between) || covers(site, &theirs.args, &own, between);
    // Two grids that begin at the same element work on the same ones. The halves of a sort don't.
    let ordered = waits(site, between) || covered;
    let two_kernels = site.facts.child != theirs.child;
    // What one kernel looks up, it may look up elsewhere for another launch.
    let looks_up = |access: &Access<'db>| {
        let offset = access.offset.as_ref();
        offset.is_none_or(|offset| {
            offset
                .polynomial
                .symbols()
                .any(|symbol| matches!(symbol, Symbol::Fresh(_)))
        })
    };
    let mut all_args = site.facts.args.iter().chain(&theirs.args);
    let args_stay = all_args.all(|arg| settled(site, arg.expr, between));
    // What a recursive kernel does by itself is said in its own terms, not in those of its launches.
    let own_terms = site.facts.recursive || theirs.recursive;
    let alike = |mine: &Access<'db>, other: &Access<'db>| {
        // What is named by its argument only is that as long as the argument doesn't change.
        let followed = mine.root != Root::Unknown && other.root != Root::Unknown;
        let compared = !own_terms && (followed || args_stay);
        let same_ones = two_kernels || !looks_up(mine) && !looks_up(other);
        ordered || compared && same_ones && starts_alike(site, (mine, site.facts), (other, theirs))
    };
    conflict(site, theirs, other, &alike)
}

/// The same for grids that one thread launches in different iterations of a loop around both launches, unless each iteration begins
/// elsewhere, at the same element for both of them. `around`: the innermost loop around both.
pub fn handed_on_between_iterations<'db>(site: &Site<'db>, other: u32, around: Span) -> Option<Dependence<'db>> {
    let theirs = launches(site.db, site.parent).get(other as usize)?;
    if let Some(led) = led_elsewhere(site, theirs) {
        return Some(led);
    }
    // Each loop around both, from the innermost one on: what an inner one counts comes again in the next round of an outer one.
    let shared = site
        .facts
        .loops
        .iter()
        .filter(|l| theirs.loops.iter().any(|other| other.stmt == l.stmt));
    let spans: Vec<Span> = shared
        .map(|l| site.body.stmt(l.stmt).span)
        .filter(|span| span.contains(around))
        .collect();
    let place = |symbol: &Symbol| match symbol {
        Symbol::Opaque(expr) => Some(site.body.expr(*expr).span),
        Symbol::Variable(binding) => Some(site.body.binding(*binding).decl_span),
        _ => None,
    };
    let of_iteration = |access: &Access<'db>| {
        let symbols = start(access).into_iter().flatten().flat_map(|(symbols, _)| symbols);
        let places: Vec<Span> = symbols.filter_map(|symbol| place(&symbol)).collect();
        spans.iter().enumerate().all(|(depth, span)| {
            let inner = depth.checked_sub(1).and_then(|inner| spans.get(inner));
            places
                .iter()
                .any(|place| span.contains(*place) && !inner.is_some_and(|inner| inner.contains(*place)))
        })
    };
    conflict(site, theirs, other, &|mine, other| {
        !of_iteration(mine) || start(mine) != start(other)
    })
}

/// A write of the grids of one launch and a read of those of another one, by index, through the same pointer, of which it `may` be thought
/// that they are to the same place.
fn conflict<'db>(
    site: &Site<'db>,
    theirs: &LaunchFacts<'db>,
    other: u32,
    may: &dyn Fn(&Access<'db>, &Access<'db>) -> bool,
) -> Option<Dependence<'db>> {
    let (mine, others) = (
        child_footprint(site.db, site.parent, site.id.index),
        child_footprint(site.db, site.parent, other),
    );
    let (own, their_own) = (own_of_recursive(site, site.facts), own_of_recursive(site, theirs));
    let (mine, others) = (
        Side::new(site, site.facts, &mine, &own),
        Side::new(site, theirs, &others, &their_own),
    );
    let touch = |access: &Access<'db>| Touch {
        function: access.function,
        span: access.span,
        kind: access.kind,
        meets: true,
    };
    let found = pair(&mine, &others, may).or_else(|| pair(&others, &mine, &|w, r| may(r, w)).map(|(w, r)| (r, w)));
    found.map(|(first, second)| Dependence::Conflict(touch(first), touch(second)))
}

/// A global pointer that the kernel of one of the two launches leads elsewhere, and through which that of the other one works.
fn led_elsewhere<'db>(site: &Site<'db>, theirs: &LaunchFacts<'db>) -> Option<Dependence<'db>> {
    let led = repointed(site, site.facts, theirs).or_else(|| repointed(site, theirs, site.facts).map(|(w, r)| (r, w)));
    led.map(|(first, second)| Dependence::Conflict(first, second))
}

/// A global pointer that the kernel of one launch changes, and through which that of the other one works.
fn repointed<'db>(
    site: &Site<'db>,
    writer: &LaunchFacts<'db>,
    reader: &LaunchFacts<'db>,
) -> Option<(Touch<'db>, Touch<'db>)> {
    let (&Child::Kernel(writer), &Child::Kernel(reader)) = (&writer.child, &reader.child) else {
        return None;
    };
    let (writes, reads) = (body(site.db, writer), body(site.db, reader));
    let global = |body: &Body, expr: ExprId| match &body.expr(body.strip_parens(expr)).kind {
        ExprKind::Name(Name::Other(name)) => Some(unqualified(name).to_owned()),
        _ => None,
    };
    let touch = |function: FunctionItem<'db>, span: Span, kind: Kind| Touch {
        function,
        span,
        kind,
        meets: true,
    };
    writes.exprs.iter().find_map(|expr| {
        let ExprKind::Assign { op: None, place, .. } = expr.kind else {
            return None;
        };
        let name = global(&writes, place)?;
        // What the elements are read or written through.
        let mut through = reads.exprs.iter().filter_map(|expr| match expr.kind {
            ExprKind::Index { base, .. } | ExprKind::Deref(base) => Some((base, expr.span)),
            _ => None,
        });
        let (_, span) = through.find(|(base, _)| global(&reads, *base).as_ref() == Some(&name))?;
        let write = touch(writer, expr.span, Kind::Write(None));
        Some((write, touch(reader, span, Kind::Read)))
    })
}

/// The accesses of one launch's grids, each with a name for the memory at which it begins, where that is clear.
struct Side<'f, 'db> {
    accesses: Vec<(String, &'f Access<'db>)>,
}

impl<'f, 'db> Side<'f, 'db> {
    /// `own`: what a recursive kernel does by itself, in its own terms.
    fn new(
        site: &Site<'db>,
        launch: &LaunchFacts<'db>,
        footprint: &'f Footprint<'db>,
        own: &'f Footprint<'db>,
    ) -> Self {
        let named = footprint.accesses.iter().filter_map(|access| {
            let name = match &access.root {
                root @ (Root::Parameter(_) | Root::Member(..) | Root::Global(_)) => format!("{root:?} {}", access.path),
                Root::Unknown => argument(site, launch, access)
                    .or_else(|| member(site, launch, access))
                    .or_else(|| global(site, launch, access))?,
                Root::Object(_) => return None,
            };
            Some((name, access))
        });
        let passed = own.accesses.iter().filter_map(|access| {
            let Root::Parameter(index) = access.root else {
                return None;
            };
            let argument = site.body.strip_parens(launch.args.get(index as usize)?.expr);
            let ExprKind::Name(Name::Local(binding)) = site.body.expr(argument).kind else {
                return None;
            };
            let parameter = site.body.params.iter().position(|p| *p == binding)?;
            let root = Root::Parameter(u32::try_from(parameter).ok()?);
            Some((format!("{root:?} {}", access.path), access))
        });
        Side {
            accesses: named.chain(passed).collect(),
        }
    }
}

/// What a recursive kernel does by itself; nothing for others, whose footprints say it.
fn own_of_recursive<'db>(site: &Site<'db>, launch: &LaunchFacts<'db>) -> Arc<Footprint<'db>> {
    match launch.child {
        Child::Kernel(kernel) if launch.recursive => own_footprint(site.db, kernel),
        _ => Arc::default(),
    }
}

/// The argument that an access of the child leads through, in words of the launching function: where that is a member of an object
/// whose function launches, say.
fn argument(site: &Site<'_>, launch: &LaunchFacts<'_>, access: &Access<'_>) -> Option<String> {
    let Child::Kernel(kernel) = launch.child else {
        return None;
    };
    let own = own_footprint(site.db, kernel);
    let mut same = own
        .accesses
        .iter()
        .filter(|own| (own.function, own.span) == (access.function, access.span));
    let Root::Parameter(index) = same.next()?.root else {
        return None;
    };
    let argument = launch.args.get(index as usize)?;
    let words = lex::code_words(site.expr_source(argument.expr)).join(" ");
    Some(format!("{words} {}", access.path))
}

/// `phase.pos` of `phase.pos[i]`, in words of the launching function: where the type of `phase` isn't followed, as that of a class
/// template isn't.
fn member(site: &Site<'_>, launch: &LaunchFacts<'_>, access: &Access<'_>) -> Option<String> {
    let Child::Kernel(kernel) = launch.child else {
        return None;
    };
    if access.function != kernel {
        return None;
    }
    let text = kernel.text(site.db);
    let code = access.span.text(&text);
    let (path, _) = code.split_once('[')?;
    let words = lex::code_words(path);
    let (first, fields) = words.split_first()?;
    let plain = fields.chunks(2).all(|pair| matches!(pair, [".", _]));
    let body = body(site.db, kernel);
    let index = body.params.iter().position(|p| body.binding(*p).name == *first)?;
    let arg = launch.args.get(index).filter(|_| plain && !fields.is_empty())?;
    let arg = lex::code_words(site.expr_source(arg.expr)).join(" ");
    Some(format!("{arg} {}", fields.concat()))
}

/// `buffer` of `buffer[i]`, where that is a pointer at namespace scope.
fn global(site: &Site<'_>, launch: &LaunchFacts<'_>, access: &Access<'_>) -> Option<String> {
    let Child::Kernel(kernel) = launch.child else {
        return None;
    };
    let body = body(site.db, kernel);
    let mut subscripts = body.exprs.iter().filter_map(|expr| match expr.kind {
        ExprKind::Index { base, .. } if expr.span == access.span => Some(base),
        _ => None,
    });
    let base = subscripts.next().filter(|_| access.function == kernel)?;
    match &body.expr(body.strip_parens(base)).kind {
        ExprKind::Name(Name::Other(name)) => Some(format!("{name} {}", access.path)),
        _ => None,
    }
}

/// A write of one, and what the other one reads there.
///
/// `may_meet`: whether to think that they are to the same places, given that they lead through the same pointer.
fn pair<'f, 'db>(
    writes: &Side<'f, 'db>,
    reads: &Side<'f, 'db>,
    may_meet: &dyn Fn(&Access<'db>, &Access<'db>) -> bool,
) -> Option<(&'f Access<'db>, &'f Access<'db>)> {
    let changes = |kind: Kind| matches!(kind, Kind::Write(_) | Kind::Update { .. } | Kind::Atomic { .. });
    let uses = |kind: Kind| matches!(kind, Kind::Read | Kind::Update { .. } | Kind::Atomic { .. });
    let written = writes.accesses.iter().filter(|(_, access)| changes(access.kind));
    written
        .flat_map(|(place, write)| {
            reads
                .accesses
                .iter()
                .map(move |(other, read)| (place == other, *write, *read))
        })
        .find(|(same, write, read)| {
            // Counted by one kernel, read by the next one; two that update atomically may do so at any time.
            let atomic = |kind: Kind| matches!(kind, Kind::Atomic { .. });
            *same && uses(read.kind) && !(atomic(write.kind) && atomic(read.kind)) && may_meet(write, read)
        })
        .map(|(_, write, read)| (write, read))
}

/// Whether two grids go over elements that begin at the same one, as far as the launching thread says where: `d[first + i]` of one and
/// `d[first + j]` of the other, but not `d[first + i]` and `d[middle + j]`. Each walks over its elements by thread numbers, counters and
/// what it reads.
fn starts_alike<'db>(
    site: &Site<'db>,
    (one, own): (&Access<'db>, &LaunchFacts<'db>),
    (other, theirs): (&Access<'db>, &LaunchFacts<'db>),
) -> bool {
    match (start(one), start(other)) {
        (Some(a), Some(b)) if a == b => true,
        // `d[job.first + i]`, where the other one is given `d + job.first`.
        (Some(a), Some(b)) if a.is_empty() => says_start(site, (one, own), &b),
        (Some(a), Some(b)) if b.is_empty() => says_start(site, (other, theirs), &a),
        _ => false,
    }
}

/// The part of a subscript that the launching thread gives: products of symbols, each with its factor.
fn start(access: &Access<'_>) -> Option<Vec<(Vec<Symbol>, i128)>> {
    let walks = |symbol: &Symbol| matches!(symbol, Symbol::Index(_) | Symbol::Fresh(_));
    let terms = access.offset.as_ref()?.polynomial.terms();
    let given = terms.filter(|(symbols, _)| !symbols.iter().any(walks));
    Some(given.map(|(symbols, factor)| (symbols.to_vec(), factor)).collect())
}

/// Whether the code of an access, with the launch's arguments for the kernel's parameters, names each of these values of the launching
/// function.
fn says_start<'db>(
    site: &Site<'db>,
    (access, launch): (&Access<'db>, &LaunchFacts<'db>),
    start: &[(Vec<Symbol>, i128)],
) -> bool {
    let Child::Kernel(kernel) = launch.child else {
        return false;
    };
    if access.function != kernel {
        return false;
    }
    let text = kernel.text(site.db);
    let body = body(site.db, kernel);
    let words = lex::code_words(access.span.text(&text));
    let argument = |word: &str| {
        let index = body.params.iter().position(|p| body.binding(*p).name == word)?;
        launch.args.get(index).map(|arg| site.expr_source(arg.expr))
    };
    let said: Vec<String> = words
        .iter()
        .flat_map(|word| match argument(word) {
            Some(code) => lex::code_words(code).into_iter().map(str::to_owned).collect(),
            None => vec![(*word).to_owned()],
        })
        .collect();
    start.iter().all(|(symbols, _)| {
        symbols.iter().all(|symbol| match symbol {
            Symbol::Opaque(expr) => {
                let value = lex::code_words(site.expr_source(*expr));
                said.windows(value.len().max(1)).any(|part| part == value)
            }
            _ => false,
        })
    })
}

/// The arguments of a launch, and of those of the same kernel from which a thread gets to `after`: what a merge sort merges is sorted by two
/// grids, each of which has one half.
fn args_of_all(site: &Site<'_>, flow: &Flow, of: &LaunchFacts<'_>, after: &LaunchFacts<'_>) -> Vec<Operand> {
    let leads = |facts: &LaunchFacts<'_>| {
        let blocks = (flow.expr_block.get(&facts.expr), flow.expr_block.get(&after.expr));
        matches!(blocks, (Some(from), Some(to)) if from == to || flow.leads(*from, *to))
    };
    let is_other = matches!(of.child, Child::Kernel(_)) && of.child != after.child;
    let all = launches(site.db, site.parent).iter();
    let same = all.filter(|facts| facts.expr == of.expr || is_other && facts.child == of.child && leads(facts));
    same.flat_map(|facts| facts.args.iter().cloned()).collect()
}

/// Whether all of these arguments are among the others, with the same values. A pointer as it is chooses no part of the memory that
/// another one leads to.
fn covers(site: &Site<'_>, these: &[Operand], others: &[Operand], between: Option<Span>) -> bool {
    let words = |operand: &Operand| lex::code_words(site.expr_source(operand.expr));
    let is_pointer = |operand: &Operand| match site.body.expr(site.body.strip_parens(operand.expr)).kind {
        ExprKind::Name(Name::Local(binding)) => site.body.binding(binding).ty.pointers > 0,
        _ => false,
    };
    these.iter().all(|operand| {
        settled(site, operand.expr, between)
            && (is_pointer(operand) || others.iter().any(|other| words(other) == words(operand)))
    })
}

/// What stands between two launches of one list of statements or of one iteration, where a thread comes from the first one to the second.
fn between(site: &Site<'_>, other: &LaunchFacts<'_>) -> Option<Span> {
    let innermost = |facts: &LaunchFacts<'_>| facts.loops.first().map(|l| l.stmt);
    let jumps = |kind: &StmtKind| matches!(kind, StmtKind::Goto(_) | StmtKind::Label(..) | StmtKind::Unknown { .. });
    if innermost(site.facts) != innermost(other) || site.body.stmts.iter().any(|stmt| jumps(&stmt.kind)) {
        return None;
    }
    let (a, b) = (site.facts.span, other.span);
    let (first, second) = if a.start < b.start { (a, b) } else { (b, a) };
    (first.end <= second.start).then(|| Span::new(first.end, second.start))
}

/// Whether the block waits between two launches of its threads: who waits there means the order.
fn waits(site: &Site<'_>, between: Option<Span>) -> bool {
    between.is_some_and(|between| {
        site.body.exprs.iter().any(|expr| match &expr.kind {
            ExprKind::Call { name: Some(name), .. } => {
                between.contains(expr.span) && unqualified(name).starts_with("__syncthreads")
            }
            _ => false,
        })
    })
}

/// The expression has one value wherever it stands in the function, or at least at both ends of `between`.
fn settled(site: &Site<'_>, expr: ExprId, between: Option<Span>) -> bool {
    let body = &site.body;
    let stays = |binding: BindingId| {
        let is_it = |e: ExprId| body.expr(body.strip_parens(e)).kind == ExprKind::Name(Name::Local(binding));
        let free = body.exprs.iter().any(|e| match &e.kind {
            ExprKind::AddrOf(place) => is_it(*place),
            ExprKind::Lambda { mentions, .. } | ExprKind::Unknown { mentions, .. } => mentions.contains(&binding),
            _ => false,
        });
        let changed = |span: Span| {
            body.exprs
                .iter()
                .filter(|e| span.contains(e.span))
                .any(|e| match &e.kind {
                    ExprKind::Assign { place, .. } | ExprKind::IncDec { place, .. } => {
                        all_in_expr(body, *place).into_iter().any(is_it)
                    }
                    ExprKind::Call { callee, args, .. } => {
                        let mut all = args.iter().chain([callee]);
                        all.any(|arg| all_in_expr(body, *arg).into_iter().any(is_it))
                    }
                    _ => false,
                })
        };
        !free && between.is_some_and(|between| !changed(between))
    };
    all_in_expr(body, expr)
        .into_iter()
        .all(|part| match &body.expr(part).kind {
            ExprKind::Name(Name::Local(binding)) => {
                keeps_first_value(site.db, site.parent, body, *binding) || stays(*binding)
            }
            ExprKind::Literal(_)
            | ExprKind::Name(_)
            | ExprKind::Paren(_)
            | ExprKind::Unary(..)
            | ExprKind::Binary(..)
            | ExprKind::SizeOf
            | ExprKind::Cast { .. }
            | ExprKind::Field { arrow: false, .. } => true,
            _ => false,
        })
}
