//! Whether a loop can do without the thread that runs it: what its iterations do to each other, what follows it, what it asks of the
//! thread.

use gridfuse_analysis::base::compile::compilation;
use gridfuse_analysis::base::db::Db;
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::Span;
use gridfuse_analysis::facts::dependence::{Clash, CountedLoop, LoopMemory, Sort, Touch};
use gridfuse_analysis::facts::effects::{BUILTINS, Effects, Found, direct, effects, runs};
use gridfuse_analysis::facts::hidden::hidden;
use gridfuse_analysis::facts::launch::{Launchers, in_recursion, launches, who_gets_to};
use gridfuse_analysis::facts::left_behind::{may_leave, may_take};
use gridfuse_analysis::hir::items::items;
use gridfuse_analysis::hir::resolve::{is_made_by_macros, launch_sites_of};
use gridfuse_analysis::hir::walk::{all_exprs, all_in_expr};
use gridfuse_analysis::hir::{Builtin, ExprId, ExprKind, Name, StmtId, StmtKind};

use super::SerialLoop;
use crate::api::assumption;
use crate::api::refusal::{Reason, Refusals};
use crate::edit::builder::EditBuilder;
use crate::edit::lex;
use crate::edit::one_line::has_long_literal;
use crate::facts::child::Child;
use crate::facts::cuda_types;
use crate::facts::movable::refuse_friend;
use crate::facts::pending::most_pending;

/// Refuses a loop that can't become a kernel, and assumes what isn't known.
pub(super) fn check<'db>(
    serial: &SerialLoop<'db>,
    head: &CountedLoop,
    kernel: &Child<'db>,
    refusals: &mut Refusals,
    edit: &mut EditBuilder<'db>,
) {
    refuse_unclear(serial, head, kernel, refusals);
    refuse_friend(kernel, refusals);
    cuda_types::refuse_others(serial.db, serial.function.file, kernel.place(), refusals);
    refuse_of_the_thread(serial, head, refusals);
    refuse_in_callees(serial, refusals);
    refuse_around(serial, refusals);
    let memory = LoopMemory::of(serial.db, serial.function.item, serial.stmt);
    if let Some(span) = memory.leaves() {
        refusals.add(
            "the loop may end here before its counter says so: an iteration decides whether there is another one",
            Some(serial.function.place(span)),
        );
    }
    if let Some(gap) = memory.gap() {
        let place = FileRange {
            file: gap.function.file(serial.db),
            range: gap.span.shift(gap.function.start(serial.db)),
        };
        let text = format!("what an iteration does to memory isn't known: {}", gap.reason);
        refusals.add(text, Some(place));
    }
    between(serial, &memory, refusals, edit);
    after(serial, &memory, refusals, edit);
    assume_pending(serial, head, kernel, edit);
    linking(serial, kernel, refusals, edit);
    assume_nothing_left(serial, kernel, edit);
}

/// Refuses code of which it isn't clear what it is, or that is no code of this place.
fn refuse_unclear(serial: &SerialLoop<'_>, head: &CountedLoop, kernel: &Child<'_>, refusals: &mut Refusals) {
    let (db, function, body) = (serial.db, &serial.function, &*serial.function.body);
    let name = &kernel.name;
    let by_macro = ![head.first, head.limit].iter().all(|e| serial.is_written(*e))
        || !serial.source(serial.span).starts_with("for")
        || is_made_by_macros(db, function.file, function.item.name(db));
    if by_macro {
        refusals.add(
            "the loop, or a part of its head, comes out of a macro",
            Some(serial.here()),
        );
    }
    for stmt in &body.stmts {
        let what = match &stmt.kind {
            StmtKind::Goto(_) | StmtKind::Label(..) => "jumps to labels",
            StmtKind::Unknown { .. } => "has a statement that is not understood",
            StmtKind::Preprocessor { .. } if serial.span.contains(stmt.span) || stmt.span.contains(serial.span) => {
                "has a part under an #if here"
            }
            _ => continue,
        };
        refusals.add(format!("`{name}` {what}"), Some(function.place(stmt.span)));
    }
    let meets = |span: &&Span| span.start < serial.span.end && serial.span.start < span.end;
    if let Some(group) = function.item.decided(db).iter().find(meets) {
        refusals.add("an #if decides what the loop is", Some(function.place(*group)));
    }
    if body.cut || body.opens_namespace {
        refusals.add(
            format!(
                "`{name}` opens a namespace or is cut by an #if, so names may mean something else in another kernel"
            ),
            Some(kernel.place()),
        );
    }
    for expr in &body.exprs {
        let odd = matches!(expr.kind, ExprKind::Lambda { .. } | ExprKind::Unknown { .. });
        if odd && (serial.span.contains(expr.span) || expr.span.contains(serial.span)) {
            refusals.add(
                "a lambda, or what is not understood, can't move to another kernel",
                Some(function.place(expr.span)),
            );
        }
    }
    // What is destroyed at the end of the kernel would be before the child runs.
    if let Some(hidden) = hidden(db, function.item).first() {
        let text = format!("`{name}` may run {}, and when isn't known", hidden.what);
        refusals.add(text, Some(function.place(hidden.span)));
    }
    let text = function.item.text(db);
    let inner = function.item.body_span(db).text(&text);
    let directive = || lex::identifiers(inner).find(|word| matches!(*word, "define" | "undef"));
    if let Some(word) = lex::type_declaration(inner).or_else(directive) {
        refusals.add(
            format!("`{name}` has a declaration (`{word}`) that the loop may need"),
            Some(kernel.place()),
        );
    }
    if has_long_literal(serial.source(serial.span)) {
        refusals.add("the loop holds a string over several lines", Some(serial.here()));
    }
    if let Some(binding) = body.bindings.iter().find(|b| BUILTINS.contains(&b.name.as_str())) {
        refusals.add(
            format!("`{name}` has a variable named `{}`", binding.name),
            Some(function.place(binding.span)),
        );
    }
}

/// Refuses what means something else in another thread or grid.
fn refuse_of_the_thread(serial: &SerialLoop<'_>, head: &CountedLoop, refusals: &mut Refusals) {
    let (function, body) = (&serial.function, &*serial.function.body);
    let number = all_exprs(body, head.body).into_iter().find(
        |e| matches!(&body.expr(*e).kind, ExprKind::Name(Name::Builtin(builtin)) if *builtin != Builtin::WarpSize),
    );
    if let Some(e) = number {
        let what = function.source(e);
        refusals.add(
            format!("an iteration uses `{what}`, which is another one in a child grid; keep it in a variable in front of the loop"),
            Some(function.place(body.expr(e).span)),
        );
    }
    let pure = |e: &ExprId| {
        !matches!(
            body.expr(*e).kind,
            ExprKind::Assign { .. }
                | ExprKind::IncDec { .. }
                | ExprKind::Launch(_)
                | ExprKind::New(_)
                | ExprKind::Delete(_)
        )
    };
    if let Some(e) = all_in_expr(body, head.limit).into_iter().find(|e| !pure(e)) {
        refusals.add(
            "the loop's limit changes something",
            Some(function.place(body.expr(e).span)),
        );
    }
    let all = effects(serial.db, function.item);
    let in_loop = |place: FileRange| {
        let range = serial.here().range;
        place.file == function.file && range.contains(place.range)
    };
    let itself = |found: &&Found| all.waits.contains(*found) && found.place == serial.here();
    for found in of_a_thread(&all).filter(|found| in_loop(found.place) && !itself(found)) {
        refusals.add(format!("an iteration uses {}", found.what), Some(found.place));
    }
    for asm in all.asm.iter().filter(|asm| in_loop(asm.place)) {
        refusals.add("an iteration holds inline assembly", Some(asm.place));
    }
    for found in all.own_name.iter().filter(|found| in_loop(found.place)) {
        refusals.add(
            format!(
                "an iteration uses {}, which is another name in another kernel",
                found.what
            ),
            Some(found.place),
        );
    }
}

/// What a thread does with others of its block or warp, or to the grids that it launches.
fn of_a_thread(all: &Effects) -> impl Iterator<Item = &Found> {
    let with_others = all
        .barriers
        .iter()
        .chain(&all.warp)
        .chain(&all.shared)
        .chain(&all.fences);
    let grids = all
        .launches
        .iter()
        .chain(&all.syncs)
        .chain(&all.errors)
        .chain(&all.events);
    let others = all
        .operations
        .iter()
        .chain(&all.waits)
        .chain(&all.unknown)
        .chain(&all.recursion);
    with_others.chain(grids).chain(others)
}

/// Refuses the same in functions that an iteration calls.
fn refuse_in_callees(serial: &SerialLoop<'_>, refusals: &mut Refusals) {
    let (db, item) = (serial.db, serial.function.item);
    for run in runs(db, item).iter() {
        if run.function != item || !serial.span.contains(run.at) {
            continue;
        }
        for called in &run.functions {
            let all = effects(db, *called);
            let name = called.name(db);
            let reads = direct(db, *called).facts.builtins;
            let reads = [
                Builtin::ThreadIdx,
                Builtin::BlockIdx,
                Builtin::BlockDim,
                Builtin::GridDim,
            ]
            .into_iter()
            .any(|builtin| reads.contains(builtin));
            if reads || !all.builtins_in_callees.is_empty() {
                refusals.add(
                    format!(
                        "an iteration calls `{name}`, which reads the number of the thread or the size of its grid"
                    ),
                    Some(serial.function.place(run.at)),
                );
            }
            if let Some(found) = of_a_thread(&all).chain(&all.own_name).next() {
                let text = format!("an iteration calls `{name}`, which uses {}", found.what);
                refusals.add(text, Some(found.place));
            }
            if let Some(asm) = all.asm.first() {
                refusals.add(
                    format!("an iteration calls `{name}`, which holds inline assembly"),
                    Some(asm.place),
                );
            }
        }
    }
}

/// Refuses a kernel that does something about what its threads have done before, or about grids.
fn refuse_around(serial: &SerialLoop<'_>, refusals: &mut Refusals) {
    let (db, function) = (serial.db, &serial.function);
    let name = function.name();
    let all = effects(db, function.item);
    let grids = all
        .launches
        .iter()
        .chain(&all.syncs)
        .chain(&all.errors)
        .chain(&all.events);
    if let Some(found) = grids.chain(&all.operations).next() {
        refusals.add(
            format!(
                "`{name}` has to do with child grids already ({}), and their order with the loop isn't looked into",
                found.what
            ),
            Some(found.place),
        );
    }
    // The loop itself has as many iterations as its head says.
    if let Some(found) = all.waits.iter().find(|found| found.place != serial.here()) {
        refusals.add(
            format!("`{name}` has {}, which may wait for what the loop does: a child grid may begin only when its threads are done", found.what),
            Some(found.place),
        );
    }
    // What stands in front of the loop is done once when it begins, unless a loop around it comes back.
    let before = |place: FileRange| {
        place.file == function.file
            && function.start <= place.range.start
            && place.range.end <= serial.here().range.start
            && serial.outer.is_empty()
            && is_passed_by_all(serial, place)
    };
    let orders = all.barriers.iter().chain(&all.warp).chain(&all.fences);
    for found in orders.filter(|found| !before(found.place)) {
        refusals.add(
            format!(
                "after {}, threads may count on what the loop has done; a child grid may run later",
                found.what
            ),
            Some(found.place),
        );
    }
    let device = |id: &gridfuse_analysis::facts::launch::LaunchId<'_>| {
        launches(db, id.function)
            .get(id.index as usize)
            .is_none_or(|facts| facts.launchers != Launchers::Host)
    };
    if launch_sites_of(db, function.item)
        .into_iter()
        .any(|id| device(&id) && in_recursion(db, id))
    {
        refusals.add(
            format!("`{name}` is launched in a recursion, which may be as deep as CUDA allows"),
            Some(function.name_place()),
        );
    }
}

/// Whether all threads that come to the loop pass this place, which stands in front of it: in no branch and no loop. Threads in another branch
/// may wait there for those of the loop to leave.
fn is_passed_by_all(serial: &SerialLoop<'_>, place: FileRange) -> bool {
    let body = &*serial.function.body;
    let statements = || (0..body.stmts.len() as u32).map(StmtId);
    let mut around = statements().filter(|s| serial.function.place(body.stmt(*s).span).range.contains(place.range));
    around.all(|s| matches!(body.stmt(s).kind, StmtKind::Block(_) | StmtKind::Expr(_)))
}

/// What two iterations have to do with each other.
fn between<'db>(
    serial: &SerialLoop<'db>,
    memory: &LoopMemory<'db>,
    refusals: &mut Refusals,
    edit: &mut EditBuilder<'db>,
) {
    let mut all = memory.between();
    all.sort_by_key(|clash| std::cmp::Reverse(clash.sort));
    let Some(worst) = all.first() else { return };
    let both = both(serial.db, worst);
    match worst.sort {
        Sort::Depends => refusals.add(
            format!("an iteration depends on others: {both}; use atomic operations, or give each iteration elements of its own"),
            Some(place_of(serial.db, &worst.one)),
        ),
        Sort::Elements | Sort::Overlap | Sort::Atomics => {
            let name = serial.function.name();
            edit.assume(assumption::ITERATIONS_INDEPENDENT.of(Reason {
                text: format!("iterations of the loop in `{name}` may run in any order, and at once: {}", doubt(worst, &both)),
                place: Some(serial.here()),
            }));
        }
        Sort::Sums => {}
    }
    if let Some(sums) = all.iter().find(|clash| clash.sort == Sort::Sums) {
        edit.assume(
            assumption::ROUNDING.of(Reason {
                text:
                    "sums of floating-point numbers may be rounded in another way: iterations add to them in any order"
                        .to_owned(),
                place: Some(place_of(serial.db, &sums.one)),
            }),
        );
    }
}

/// What is done after the loop, by whatever thread.
fn after<'db>(
    serial: &SerialLoop<'db>,
    memory: &LoopMemory<'db>,
    refusals: &mut Refusals,
    edit: &mut EditBuilder<'db>,
) {
    let name = serial.function.name();
    let (all, gap) = memory.after();
    if let Some(gap) = gap {
        let place = FileRange {
            file: gap.function.file(serial.db),
            range: gap.span.shift(gap.function.start(serial.db)),
        };
        let text = format!("what `{name}` does after the loop isn't known: {}", gap.reason);
        refusals.add(text, Some(place));
    }
    let Some(worst) = all.iter().max_by_key(|clash| (clash.sort != Sort::Overlap, clash.sort)) else {
        return;
    };
    let both = both(serial.db, worst);
    match worst.sort {
        Sort::Overlap => edit.assume(assumption::ITERATIONS_INDEPENDENT.of(Reason {
            text: format!("what `{name}` does after the loop is independent of its iterations: {}", doubt(worst, &both)),
            place: Some(serial.here()),
        })),
        _ => refusals.add(
            format!("`{name}` may come to memory after the loop, or in a later round around it, that an iteration uses: {both}"),
            Some(place_of(serial.db, &worst.other)),
        ),
    }
}

/// What makes two accesses a matter of assumption.
fn doubt(clash: &Clash<'_>, both: &str) -> String {
    match clash.sort {
        Sort::Atomics => format!("who comes first doesn't matter; {both}"),
        _ if clash.reason.is_empty() => both.to_owned(),
        _ => format!("{}; {both}", clash.reason),
    }
}

/// `line 4 writes `out[i]`, line 5 reads `out[j]``
fn both(db: &dyn Db, clash: &Clash<'_>) -> String {
    let one = |touch: &Touch<'_>| {
        let place = place_of(db, touch);
        let text = place.file.text(db);
        let line = text
            .get(..place.range.start as usize)
            .unwrap_or("")
            .matches('\n')
            .count()
            + 1;
        let code: Vec<&str> = place.range.text(&text).split_whitespace().collect();
        format!("line {line} {} `{}`", touch.kind.verb(), code.join(" "))
    };
    match clash.one == clash.other {
        true => format!("{} in each", one(&clash.one)),
        false => format!("{}, {}", one(&clash.one), one(&clash.other)),
    }
}

fn place_of(db: &dyn Db, touch: &Touch<'_>) -> FileRange {
    FileRange {
        file: touch.function.file(db),
        range: touch.span.shift(touch.function.start(db)),
    }
}

/// Each thread that comes to the loop has a grid pending.
fn assume_pending(serial: &SerialLoop<'_>, head: &CountedLoop, kernel: &Child<'_>, edit: &mut EditBuilder<'_>) {
    let (db, function) = (serial.db, &serial.function);
    let once = serial.outer.is_empty() && who_gets_to(db, function.item, head.limit) == Some(Launchers::OnePerGrid);
    let by_host = launch_sites_of(db, function.item).into_iter().all(|id| {
        launches(db, id.function)
            .get(id.index as usize)
            .is_some_and(|facts| facts.launchers == Launchers::Host)
    });
    if once && by_host {
        return;
    }
    let why = format!(
        "each thread of `{}` that comes to the loop launches a grid",
        kernel.name
    );
    edit.assume(assumption::PENDING_LAUNCHES.of(Reason {
        text: most_pending(db, function.file, &why),
        place: Some(serial.here()),
    }));
}

/// That the program is linked so that device code may launch, or why it isn't.
fn linking(serial: &SerialLoop<'_>, kernel: &Child<'_>, refusals: &mut Refusals, edit: &mut EditBuilder<'_>) {
    let (db, file) = (serial.db, serial.function.file);
    let compiled = compilation(db, file);
    if compiled.certain() {
        let fits = |command: &gridfuse_analysis::base::command::CompileCommand| {
            command.relocatable && !command.without_device_runtime && command.archs.iter().all(|arch| *arch >= 70)
        };
        if !compiled.commands.iter().all(|command| fits(command)) {
            refusals.add(
                "this file is compiled without `-rdc=true`, or for a GPU on which device code can't launch so: compile and link \
                 it with `-rdc=true` (CMake: CUDA_SEPARABLE_COMPILATION) first",
                Some(kernel.place()),
            );
        }
        return;
    }
    let launches_already = items(db, file)
        .functions
        .iter()
        .filter(|f| f.has_body(db))
        .any(|f| launches(db, *f).iter().any(|facts| facts.launchers != Launchers::Host));
    if !launches_already {
        edit.assume(assumption::DEVICE_LINKING.of(Reason {
            text: "the program is compiled and linked with `-rdc=true`, and with `-lcudadevrt` where nvcc doesn't link it: \
                   device code launches here for the first time"
                .to_owned(),
            place: Some(serial.here()),
        }));
    }
}

/// That an iteration finds no address of the kernel's local or shared memory, where the kernel may have left it.
fn assume_nothing_left(serial: &SerialLoop<'_>, kernel: &Child<'_>, edit: &mut EditBuilder<'_>) {
    let (db, item) = (serial.db, serial.function.item);
    let all = Span::new(0, item.text(db).len() as u32);
    // A pointer may have been read in front of the loop.
    if may_take(db, item, &[all]).is_none() {
        return;
    }
    let Some(left) = may_leave(db, item) else { return };
    edit.assume(assumption::NOTHING_LEFT_IN_MEMORY.of(Reason {
        text: format!(
            "`{}` leaves no address of local or shared memory in memory that an iteration reads: another grid can't use them",
            kernel.name
        ),
        place: Some(left),
    }));
}
