//! Child grids that run in the thread that would have launched them: what `threshold` and `serialize` have in common.

use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::Span;
use gridfuse_analysis::facts::dependence::{Root, own_footprint};
use gridfuse_analysis::facts::effects::{BUILTINS, Effects, effects, summary};
use gridfuse_analysis::facts::launch::{Stream, is_thresholded};
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::resolve::{Meaning, launch_sites_of, meaning};
use gridfuse_analysis::hir::{self, Body, ExprId, ExprKind, Literal, Name, StmtId, StmtKind, Storage};

use crate::api::assumption::{self, Assumed};
use crate::api::refusal::Ineligible;
use crate::api::refusal::Reason;
use crate::api::refusal::Refusals;
use crate::api::source_edit::SourceEdit;
use crate::draft::Draft;
use crate::edit::builder::EditBuilder;
use crate::edit::lex;
use crate::edit::names::{Names, camel, with_number};
use crate::edit::style::{self, Style};
use crate::emit::launch_bounds;
use crate::emit::outline::{self, Behind, Collecting, Worker};
use crate::emit::replaced_launch::replace_by_call;
use crate::emit::target;
use crate::emit::was;
use crate::facts::builtin_objects::Objects;
use crate::facts::child::Child;
use crate::facts::cluster::Function;
use crate::facts::ctype;
use crate::facts::guard::Guard;
use crate::facts::instance;
use crate::facts::launch_errors;
use crate::facts::movable;
use crate::facts::movable::Form;
use crate::facts::operand::compared;
use crate::facts::order;
use crate::facts::pure;
use crate::facts::read_only::all_restrict;
use crate::facts::site::Site;
use crate::facts::surroundings::{self, Errors, callers_of_launch};
use crate::transforms::accumulate::{Accumulated, accumulated};
use crate::transforms::fission::{BlockThreads, Fission, Groups, SerialNames, Told, constant_bytes};
use crate::transforms::refused_launches;

/// Which child grids do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grids {
    /// Those of fewer threads. `given`: whether somebody asked for that number; otherwise it is the default, and a child with barriers may
    /// get another one.
    Below { threads: u64, given: bool },
    /// All of them: no launch remains.
    All,
}

impl Grids {
    /// The number of threads below which they do; `None` for all.
    fn threshold(self) -> Option<u64> {
        match self {
            Grids::Below { threads, .. } => Some(threads),
            Grids::All => None,
        }
    }
}

/// The edit that runs child grids of the draft's launch in the launching thread. `local_memory`: the most bytes of local memory that a child with
/// barriers may take in one thread.
///
/// # Errors
/// The reasons why it can't be done.
pub fn run_in_launcher(mut draft: Draft<'_>, grids: Grids, local_memory: u64) -> Result<SourceEdit, Ineligible> {
    let db = draft.site.db;
    let Draft {
        site, edit, refusals, ..
    } = &mut draft;
    site.refuse_common(refusals);
    surroundings::assume_nothing_else(site, Errors::Vanish, edit);
    if matches!(grids, Grids::Below { .. }) && is_thresholded(db, site.parent, site.facts) {
        let child = site.child_name();
        let text = format!("small grids of `{child}` run in the launching thread already");
        refusals.add(text, Some(site.here()));
    }
    refuse_stream(site, grids, refusals, edit);
    target::refuse_place(site, refusals);
    target::refuse_operands(site, refusals);
    target::refuse_effects_in_config(site, refusals);
    let child = draft.child();
    let Draft {
        site, edit, refusals, ..
    } = &mut draft;
    let (mut split, mut grids) = (None, grids);
    let groups = child
        .as_ref()
        .filter(|child| child.outlined.is_none())
        .and_then(Groups::of);
    let no_groups = Groups::default();
    if let Some(child) = &child {
        let effects = effects(db, child.worker());
        let without = groups.as_ref().map(|groups| groups.left_out_of(child, &effects));
        let effects = without.as_ref().unwrap_or(&effects);
        refuse_child(site, child, effects, refusals);
        launch_errors::assume_none(&child.name, effects, edit);
        refused_launches::assume_accepted(site, child, edit);
        let at_barriers = child.outlined.is_none() && (meets(effects) || groups.is_some());
        if at_barriers {
            movable::refuse_to_copy(child, &[], effects, refusals);
        }
        // Who asks for a threshold gets it, where it makes no difference to what is generated.
        let given = matches!(grids, Grids::Below { given: true, .. });
        if at_barriers || !given && Count::find(site, child).is_none() {
            grids = above_block(site, child, grids, refusals);
        }
        if at_barriers && refusals.is_empty() {
            let of = (child, groups.as_ref().unwrap_or(&no_groups));
            split = split_at_barriers(site, of, effects, grids, local_memory, refusals);
        }
    }
    let statement = site.facts.statement;
    let header = draft.header();
    let ((child, header), statement) = draft.settle(child.as_ref().zip(header).zip(statement))?;

    let Draft { site, names, edit, .. } = &mut draft;
    if let Some(reason) = reads_only(site, child, &effects(db, child.worker())) {
        edit.assume(reason);
    }
    header.include_in(db, edit, site.file);
    header.include_in(db, edit, child.file);
    let count = Count::find(site, child).filter(|_| split.is_none());
    let mut shared = None;
    if let Some((fission, _)) = &split {
        if let Some(assumed) = fission.assumed(local_memory) {
            edit.assume(assumed);
        }
        let given = site.facts.shared.as_ref().filter(|_| fission.compares_shared());
        shared = given.map(|o| crate::edit::one_line::flat(site.expr_source(o.expr)));
    }
    let generated = match &split {
        Some((fission, threshold)) => generate_split(child, fission, *threshold, names, edit),
        None => generate(site, child, count.as_ref(), grids, names, edit),
    };
    replace_launch(site, child, (count.as_ref(), shared), statement, &generated, edit);
    // The kernel that launches, or those that call the function that does.
    for item in [site.parent].into_iter().chain(callers_of_launch(site).all) {
        let parent = Function::new(db, item);
        if !parent.is_kernel() {
            continue;
        }
        let launches: Result<Vec<Site<'_>>, _> = launch_sites_of(db, item)
            .into_iter()
            .map(|id| Site::new(db, id))
            .collect();
        launch_bounds::keep_with_more_code(&parent, launches.as_deref().ok(), edit);
        let launches = launches.as_deref().unwrap_or_default();
        launch_bounds::assume_enough(&parent, launches, &[child.worker()], edit);
    }
    draft.finish()
}

/// Refuses a child of which a grid can't run in the launching thread, one thread after the other; what that takes for granted.
pub fn refuse_serial(site: &Site<'_>, child: &Child<'_>, refusals: &mut Refusals) -> Option<Assumed> {
    let effects = effects(site.db, child.worker());
    if child.outlined.is_none() && meets(&effects) {
        refusals.add(
            format!("the threads of a block of `{}` work together", child.name),
            Some(child.place()),
        );
    }
    refuse_child(site, child, &effects, refusals);
    reads_only(site, child, &effects)
}

/// The child reads what the kernel, of which it becomes a part, must not have written. What says `__restrict__` of a pointer says it of
/// a kernel's or function's own accesses, which a grid's of its own weren't.
fn reads_only(site: &Site<'_>, child: &Child<'_>, effects: &Effects) -> Option<Assumed> {
    let db = site.db;
    let parent = match site.parent.signature(db).kernel {
        true => format!("`{}`", site.parent_name()),
        false => format!("no kernel that runs `{}`", site.parent_name()),
    };
    let nothing = if site.parent.signature(db).kernel {
        "nothing"
    } else {
        "anything"
    };
    let writes_nothing = |what: &str, place: FileRange| {
        assumption::READ_ONLY_LOADS.of(Reason {
            text: format!(
                "{parent} writes {nothing} that `{}` reads by {what}, which may miss what the same kernel has written",
                child.name
            ),
            place: Some(place),
        })
    };
    if let Some(load) = effects.read_only.first() {
        return Some(writes_nothing(&load.what, load.place));
    }
    let footprint = own_footprint(db, site.parent);
    let mut written = footprint.accesses.iter().filter(|access| !access.kind.reads_only());
    let writes = written.any(|access| !matches!(access.root, Root::Object(_)))
        || !footprint.gaps.iter().all(|gap| gap.prints)
        || !site.parent.signature(db).kernel;
    if !writes {
        return None;
    }
    let restrict = |what: &str| format!("`{what}`, which is __restrict__");
    let moved = child.outlined.as_ref().map(|outlined| outlined.function);
    let moved = moved.and_then(|function| {
        let body = hir::body(db, function);
        let own = body
            .bindings
            .iter()
            .find(|b| b.ty.restrict && b.storage == Storage::Param)?;
        let (file, range) = (function.file(db), own.span.shift(function.start(db)));
        Some((restrict(&own.name), FileRange { file, range }))
    });
    let called = effects.restricts.first().map(|load| (load.what.clone(), load.place));
    let compiled = all_restrict(db, site.file).then(|| ("--restrict".to_owned(), site.here()));
    if let Some((what, place)) = called.or(moved).or(compiled) {
        return Some(writes_nothing(&what, place));
    }
    let own = site.body.bindings.iter().find(|b| b.ty.restrict)?;
    Some(assumption::READ_ONLY_LOADS.of(Reason {
        text: format!(
            "{parent} writes {nothing} that `{}` reads through another pointer: `{}` is __restrict__, so that it may miss what the \
             same kernel has written",
            child.name, own.name
        ),
        place: Some(site.place(own.span)),
    }))
}

fn refuse_stream(site: &Site<'_>, grids: Grids, refusals: &mut Refusals, edit: &mut EditBuilder<'_>) {
    let tail = "a tail launch runs after the parent grid: its threads can't run it";
    // Where some grids are launched, those that aren't overtake them.
    let at_once = match grids {
        Grids::All => order::AtOnce::All,
        Grids::Below { .. } => order::AtOnce::Some,
    };
    order::other_stream(site, tail, at_once, &[], refusals, edit);
    if let Stream::Created(binding) = site.facts.stream {
        let created = order::created_stream(site, binding, &[]);
        let name = site.facts.stream_operand.as_ref().map_or("", |o| site.source(o.span));
        order::shared_stream(site, &created, name, &[], refusals, edit);
    }
}

/// The threads of a block work together.
fn meets(effects: &Effects) -> bool {
    !(effects.barriers.is_empty() && effects.warp.is_empty() && effects.shared.is_empty())
}

/// The threads of a block, where they are known and CUDA takes so many.
fn constant_block(site: &Site<'_>) -> Option<u64> {
    let block = site.facts.block.constant?;
    let threads = block.iter().fold(1u64, |n, x| n.saturating_mul(*x));
    (1..=1024).contains(&threads).then_some(threads)
}

/// With a threshold that some grid is below, where whole grids are compared with it: the one that was asked for, or one above the block
/// size. Refused where a block has too many threads for that.
fn above_block(site: &Site<'_>, child: &Child<'_>, grids: Grids, refusals: &mut Refusals) -> Grids {
    /// The largest block that is run by one thread without being asked for.
    const LARGEST: u64 = 256;
    let (Grids::Below { threads, given }, Some(block)) = (grids, constant_block(site)) else {
        return grids;
    };
    let threads = if given || block > LARGEST {
        threads
    } else {
        threads.max(block + 1)
    };
    if block >= threads {
        refusals.add(
            format!(
                "a block of `{}` has {block} threads, so that no grid is below the threshold of {threads}; ask for a threshold above {block}",
                child.name
            ),
            Some(site.place(site.facts.block.operand.span)),
        );
    }
    Grids::Below { threads, given }
}

/// What a grid may take of dynamic shared memory for each thread below the threshold, in bytes: `kSharedPerThread` of the runtime header.
const SHARED_PER_THREAD: u64 = 8;

/// The child's body split at its barriers, with the threshold: none where all grids run in the launcher.
fn split_at_barriers<'a, 'db>(
    site: &Site<'db>,
    (child, groups): (&'a Child<'db>, &'a Groups),
    effects: &Effects,
    grids: Grids,
    local_memory: u64,
    refusals: &mut Refusals,
) -> Option<(Fission<'a, 'db>, Option<u64>)> {
    let block = constant_block(site);
    let threshold = grids.threshold();
    let threads = BlockThreads {
        most: block.or(threshold).unwrap_or(0),
        constant: block.is_some(),
    };
    let shared = site.facts.shared.as_ref();
    let unknown_block = block.or(threshold).is_none();
    let told = Told {
        unknown_block: unknown_block.then(|| site.place(site.facts.block.operand.span)),
        shared: shared.and_then(|o| constant_bytes(site, o.expr)),
        room: shared
            .and(threshold)
            .map(|threads| threads.saturating_mul(SHARED_PER_THREAD)),
        values: instance::at_launch(site, child).unwrap_or_default(),
    };
    match Fission::of(child, groups, effects, threads, &told, local_memory) {
        Ok(fission) => Some((fission, threshold)),
        Err(reasons) => {
            for reason in reasons {
                refusals.add(reason.text, reason.place);
            }
            None
        }
    }
}

fn refuse_child(site: &Site<'_>, child: &Child<'_>, effects: &Effects, refusals: &mut Refusals) {
    let name = &child.name;
    if child.item == site.parent || site.facts.recursive {
        // That says all: its copies, its launches and where it stands are the same reason in other words.
        refusals.add(movable::is_recursive(name), Some(child.place()));
        return;
    }
    movable::refuse_to_outline(child, Form::Thread, &[], effects, refusals);
    target::refuse_unseen(site, child, refusals);
    // An earlier rewrite has moved the body.
    let none = Vec::new();
    let moved = |list| if child.outlined.is_some() { list } else { &none };
    let lists = [
        (moved(&effects.barriers), "waits at a barrier"),
        (moved(&effects.warp), "works together with its warp"),
        (moved(&effects.shared), "uses shared memory"),
        (&effects.launches, "launches grids itself"),
        (&effects.recursion, "is recursive, or calls a recursive function"),
        (&effects.events, "uses events"),
        (
            &effects.operations,
            "sets or copies memory in a stream, which would be the launcher's",
        ),
    ];
    for (list, what) in lists {
        if let Some(first) = list.first() {
            // That it launches says all there is to say.
            let what = match what.starts_with("launches") {
                true => format!("`{name}` {what}"),
                false => format!("`{name}` {what}: {}", first.what),
            };
            refusals.add(what, Some(first.place));
        }
    }
    let summary = summary(site.db, child.worker());
    let worker = child.worker();
    let place = |span: Span| {
        Some(FileRange {
            file: worker.file(site.db),
            range: span.shift(worker.start(site.db)),
        })
    };
    if let Some(wait) = effects.waits.first() {
        refusals.add(format!("`{name}` may wait for another thread"), Some(wait.place));
    }
    if let Some(span) = summary
        .barriers
        .filter(|_| effects.barriers.is_empty() && effects.warp.is_empty())
    {
        refusals.add(format!("`{name}` waits at a barrier"), place(span));
    }
}

/// The number of threads wanted, when it can be compared with the threshold and the child runs no other threads.
struct Count {
    /// The expression at the launch.
    expr: ExprId,
    /// Name of the child's parameter that receives it.
    parameter: String,
}

impl Count {
    /// The launch has the form `child<<<ceil(count / b), b>>>(…, count, …)` and all that the child does is guarded by
    /// `i < count`. Then a grid of `count` threads is as good as the whole one, also for a negative `count`.
    fn find(site: &Site<'_>, child: &Child<'_>) -> Option<Count> {
        let threads = site.facts.threads.as_ref()?;
        let [block, 1, 1] = site.facts.block.constant? else {
            return None;
        };
        let one_dimensional = matches!(site.facts.grid.components, Some([Some(_), None, None]));
        if !(1..=1024).contains(&block) || !one_dimensional || child.outlined.is_some() {
            return None;
        }
        let wanted = lex::code_words(site.source(threads.span));
        let guard = Guard::of(child).filter(|guard| guard.fits(site.facts.block.constant))?;
        let (index, guard_type) = (guard.parameter, guard.ty);
        let argument = site.launch.args.get(index)?;
        let param = child.params.get(index)?;
        let same = lex::code_words(site.expr_source(*argument)) == wanted
            && !site.body.expr(*argument).from_macro
            && pure::not_repeatable(site, *argument).is_none()
            && stands_for_itself(&site.body, *argument);
        let ty = ctype::type_of(site, *argument)?;
        let agree = ty == ctype::normalize(&param.ty.base) && ty == guard_type;
        (same && agree && matches!(ty.as_str(), "int" | "unsigned int")).then(|| Count {
            expr: *argument,
            parameter: param.name.clone(),
        })
    }
}

/// A plain variable: what it is doesn't change between the comparison and the launch.
fn stands_for_itself(body: &Body, expr: ExprId) -> bool {
    matches!(&body.expr(body.strip_parens(expr)).kind, ExprKind::Name(Name::Local(_)))
        || matches!(&body.expr(body.strip_parens(expr)).kind, ExprKind::Field { base, arrow: false, .. }
            if stands_for_itself(body, *base))
        || matches!(&body.expr(body.strip_parens(expr)).kind, ExprKind::Binary(_, a, b)
            if stands_for_itself(body, *a) && stands_for_itself(body, *b))
        || matches!(
            &body.expr(body.strip_parens(expr)).kind,
            ExprKind::Literal(Literal::Int(_))
        )
}

/// The functions that rewrites of other launches may have made of a child: those of this name, and of this name with a number.
fn known_functions<'db>(child: &Child<'db>, wanted: &str) -> Vec<(String, FunctionItem<'db>)> {
    /// So many are looked at.
    const MOST: u32 = 9;
    let names = std::iter::once(wanted.to_owned()).chain((2..=MOST).map(|number| with_number(wanted, number)));
    let known = names.filter_map(|name| match meaning(child.db, child.file, &name) {
        Meaning::Functions(found) => match found.as_slice() {
            [only] => Some((name, *only)),
            _ => None,
        },
        _ => None,
    });
    known.collect()
}

/// Names of what was generated; a constant where there is a threshold.
struct Generated {
    constant: Option<String>,
    serial: String,
}

/// In front of a grid of any size: what CUDA refuses, as a negative number of blocks, isn't run either.
fn unless_launchable(grid: &str, block: &str) -> String {
    format!("\tif (!gridfuse::is_launchable({grid}, {block})) return;\n")
}

/// The comment and the constant in front of a child, where there is a threshold.
fn put_constant<'db>(child: &Child<'db>, constant: &str, threshold: u64, edit: &mut EditBuilder<'db>) {
    let style = edit.style(child.file);
    let indent = style::indent_at(&child.text, child.start as usize).to_owned();
    let head = format!(
        "// Child grids of {} with fewer threads run in the launching thread.\nconstexpr int {constant} = {threshold};\n\n",
        child.name
    );
    let at = target::above_comment(child.db, child.file, child.front() as usize);
    let mut text = style.fit(&head, &indent);
    text.push_str(&indent);
    edit.insert(child.file, at as u32, text);
}

fn generate<'db>(
    site: &Site<'db>,
    child: &Child<'db>,
    count: Option<&Count>,
    grids: Grids,
    names: &mut Names,
    edit: &mut EditBuilder<'db>,
) -> Generated {
    let db = site.db;
    let mut behind = outline::behind(edit, child);
    let wanted_constant = format!("k{}Threshold", camel(&child.name));
    let wanted_serial = format!("{}_serial", child.name);

    // An earlier rewrite of another launch of this child has made what is needed.
    let known = known_functions(child, &wanted_serial);
    for (name, serial) in known.iter().filter(|_| count.is_none()) {
        let Some(outlined) = &child.outlined else { break };
        let constant = match (grids, meaning(db, child.file, &wanted_constant)) {
            (Grids::All, _) => Some(None),
            (Grids::Below { threads, given }, Meaning::Global(constant)) => {
                let same = constant.init.as_deref() == Some(threads.to_string().as_str());
                (constant.constant && (!given || same)).then_some(Some(wanted_constant.clone()))
            }
            _ => None,
        };
        let text = serial.text(db);
        let whole_grid = lex::code_words(&text);
        let constant = constant.filter(|_| grids != Grids::All || whole_grid.contains(&"is_launchable"));
        let expected = ["for_each_thread", "(", "grid", ",", "block", ",", "["];
        if let Some(constant) = constant
            && whole_grid.windows(expected.len()).any(|w| w == expected)
            && whole_grid.contains(&outlined.name.as_str())
        {
            return Generated {
                constant,
                serial: name.clone(),
            };
        }
    }

    if grids == Grids::All
        && let Some(accumulated) = accumulated(child)
    {
        let code = |serial: &str| accumulating_function(&behind, child, serial, count, &accumulated);
        // An earlier rewrite of another launch of this child may have made the same.
        let same = |(name, serial): &&(String, FunctionItem<'db>)| {
            lex::code_words(&serial.text(db)) == lex::code_words(&code(name))
        };
        if let Some((serial, _)) = known.iter().find(same) {
            return Generated {
                constant: None,
                serial: serial.clone(),
            };
        }
        let serial = names.fresh(&wanted_serial);
        let code = code(&serial);
        behind.add(code);
        behind.finish(edit, child);
        return Generated { constant: None, serial };
    }
    let unrestricted = Collecting {
        unrestricted: true,
        ..Collecting::default()
    };
    let worker = outline::outline_collecting(edit, &mut behind, child, Form::Thread, &[], &unrestricted, names);
    let serial = names.fresh(&wanted_serial);
    let (grid, block) = (child.local("grid"), child.local("block"));

    let constant = match grids {
        Grids::Below { threads, .. } => {
            let constant = names.fresh(&wanted_constant);
            put_constant(child, &constant, threads, edit);
            Some(constant)
        }
        Grids::All => None,
    };
    let refused = match (grids, count) {
        (Grids::All, None) => unless_launchable(&grid, &block),
        _ => String::new(),
    };
    let limit = count.map(|c| c.parameter.as_str());
    let code = serial_function(&behind, child, &worker, &serial, [&grid, &block], limit, &refused);
    behind.add(format!("{}{code}", in_one_thread(&behind, child, "")));
    behind.finish(edit, child);
    Generated { constant, serial }
}

/// Of a child that only collects something so many threads are under way at a time: their loads don't wait for each other.
const AT_A_TIME: u32 = 8;

/// The function `serial` of a child whose atomic operations are collected. The child stays as it is.
fn accumulating_function(
    behind: &Behind,
    child: &Child<'_>,
    serial: &str,
    count: Option<&Count>,
    accumulated: &Accumulated,
) -> String {
    let (grid, block) = (child.local_around_body("grid"), child.local_around_body("block"));
    let params = serial_params(child, &grid, &block);
    let refused = count.map_or_else(|| unless_launchable(&grid, &block), |_| String::new());
    let limit = count.map(|c| c.parameter.as_str());
    let at_a_time = count.map_or(String::new(), |_| format!("<{AT_A_TIME}>"));
    let objects = Objects::of(child.db, child.file, child.source(child.item.body_span(child.db)));
    let builtins: Vec<String> = BUILTINS.iter().map(|builtin| objects.parameter(builtin)).collect();
    let builtins: Vec<&str> = builtins.iter().map(String::as_str).collect();
    let arguments: Vec<&str> = [grid.as_str(), &block].into_iter().chain(limit).collect();
    let each = format!("gridfuse::for_each_thread{at_a_time}");
    let each = behind.lambda(&each, &arguments, &builtins);
    let body = format!("{refused}{}{each} {});", accumulated.declarations, accumulated.body);
    let comment = in_one_thread(behind, child, ", with a single atomic");
    format!(
        "{comment}{}",
        behind.function(&serial_head(child, serial), &params, &body)
    )
}

/// The beginning of a function that runs a child's grid in one thread, up to its parameters.
fn serial_head(child: &Child<'_>, serial: &str) -> String {
    let is_static = if child.is_static { "static " } else { "" };
    format!("{}{is_static}__device__ inline void {serial}(", child.template_line())
}

/// Its parameters. It becomes a part of the launching kernel, which may write what a child reads: nothing of it is `__restrict__`.
fn serial_params(child: &Child<'_>, grid: &str, block: &str) -> Vec<String> {
    let mut params = vec![format!("dim3 {grid}"), format!("dim3 {block}")];
    let own = child.params.iter();
    params.extend(own.map(|p| crate::edit::one_line::one_line(&crate::edit::one_line::without_restrict(&p.decl))));
    params
}

/// The function `serial` that runs all threads of a grid, one after the other.
pub fn serial_of(behind: &Behind, child: &Child<'_>, worker: &Worker, serial: &str) -> String {
    let (grid, block) = (child.local("grid"), child.local("block"));
    let code = serial_function(behind, child, worker, serial, [&grid, &block], None, "");
    let what = format!("Runs a grid of {} in one thread", child.name);
    format!("{}{code}", behind.taken_back(&what))
}

/// Its code, without a comment.
fn serial_function(
    behind: &Behind,
    child: &Child<'_>,
    worker: &Worker,
    serial: &str,
    [grid, block]: [&str; 2],
    limit: Option<&str>,
    refused: &str,
) -> String {
    let params = serial_params(child, grid, block);
    let (prefix, items) = worker.call(child, child.params.iter().map(|p| p.name.clone()));
    let call = behind.call(2, &prefix, &items, ");");
    let arguments: Vec<&str> = [grid, block].into_iter().chain(limit).collect();
    let builtins = ["uint3 threadIdx", "uint3 blockIdx", "dim3 gridDim", "dim3 blockDim"];
    let each = behind.call_with_lambda("gridfuse::for_each_thread", &arguments, &builtins, &call);
    behind.function(&serial_head(child, serial), &params, &format!("{refused}{each}"))
}

/// The comment of a function that runs a child's grid in one thread; `how`: in what way.
fn in_one_thread(behind: &Behind, child: &Child<'_>, how: &str) -> String {
    behind.taken_back(&format!("Runs a grid of {} in one thread{how}", child.name))
}

/// The constant and the serial function of a child that is split at its barriers; the child stays as it is.
fn generate_split<'db>(
    child: &Child<'db>,
    fission: &Fission<'_, 'db>,
    threshold: Option<u64>,
    names: &mut Names,
    edit: &mut EditBuilder<'db>,
) -> Generated {
    let db = child.db;
    let mut behind = outline::behind(edit, child);
    let function = |constant: &str, serial: &str| {
        let locals = SerialNames {
            grid: fission.local("grid"),
            block: fission.local("block"),
            threads: fission
                .constant_threads()
                .map_or(constant.to_owned(), |threads| threads.to_string()),
            threshold: constant.to_owned(),
        };
        let mut params = serial_params(child, &locals.grid, &locals.block);
        let own = params.split_off(2.min(params.len()));
        params.extend(fission.given_parameters(own));
        let refused = match threshold {
            Some(_) => String::new(),
            None => unless_launchable(&locals.grid, &locals.block),
        };
        behind.function(
            &serial_head(child, serial),
            &params,
            &format!("{refused}{}", fission.code(&locals)),
        )
    };
    let wanted_constant = format!("k{}Threshold", camel(&child.name));
    let wanted_serial = format!("{}_serial", child.name);
    // An earlier rewrite of another launch of this child may have made the same.
    for (name, serial) in known_functions(child, &wanted_serial) {
        let constant = match (threshold, meaning(db, child.file, &wanted_constant)) {
            (None, _) => Some(None),
            (Some(threshold), Meaning::Global(constant)) => {
                let same = constant.init.as_deref() == Some(threshold.to_string().as_str());
                (constant.constant && same).then_some(Some(wanted_constant.clone()))
            }
            _ => None,
        };
        if let Some(constant) = constant {
            let same = function(&wanted_constant, &name);
            if lex::code_words(&serial.text(db)) == lex::code_words(&same) {
                return Generated { constant, serial: name };
            }
        }
    }
    let constant = threshold.map(|threshold| {
        let constant = names.fresh(&wanted_constant);
        put_constant(child, &constant, threshold, edit);
        constant
    });
    let serial = names.fresh(&wanted_serial);
    let comment = in_one_thread(&behind, child, ", from barrier to barrier");
    // Without a threshold the number of threads is a constant's value, and no name.
    let code = function(constant.as_deref().unwrap_or(""), &serial);
    behind.add(format!("{comment}{code}"));
    behind.finish(edit, child);
    Generated { constant, serial }
}

/// Whether a statement is a branch or a loop's body, alone in braces of its own.
fn in_braces(site: &Site<'_>, statement: StmtId) -> bool {
    let Some(block) = site.places.parent(statement) else {
        return false;
    };
    let alone = matches!(&site.body.stmt(block).kind, StmtKind::Block(stmts) if stmts.len() == 1);
    let braces = site.source(site.body.stmt(block).span).starts_with('{');
    let control = site.places.parent(block).map(|around| &site.body.stmt(around).kind);
    let controls = matches!(
        control,
        Some(StmtKind::If { .. } | StmtKind::For { .. } | StmtKind::While { .. } | StmtKind::RangeFor { .. })
    );
    alone && braces && controls
}

/// Puts the comparison in front of the launch, or the call in its place. `shared`: how much dynamic shared memory there is, where that is
/// compared.
fn replace_launch(
    site: &Site<'_>,
    child: &Child<'_>,
    (count, shared): (Option<&Count>, Option<String>),
    statement: StmtId,
    generated: &Generated,
    edit: &mut EditBuilder<'_>,
) {
    let style: Style = edit.style(site.file);
    let span = site.body.stmt(statement).span;
    let place = site.place(span);
    let indent = style::indent_at(&site.text, place.range.start as usize).to_owned();
    let unit = style.unit.clone();
    let qualify = |name: &str| crate::facts::qualified::qualified(site, child, name);
    let levels = if target::is_sole(site, statement) { 2 } else { 1 };
    let column = style::columns(&indent) + levels * style::columns(&unit);

    let grid = crate::edit::one_line::flat(site.expr_source(site.facts.grid.operand.expr));
    let block = crate::edit::one_line::flat(site.expr_source(site.facts.block.operand.expr));
    let template_args = site.launch.template_args.map_or("", |t| site.source(t));
    let mut items = vec![grid.clone(), block.clone()];
    items.extend(
        site.launch
            .args
            .iter()
            .map(|a| crate::edit::one_line::flat(site.expr_source(*a))),
    );
    let prefix = format!("{}{template_args}(", qualify(&generated.serial));
    let Some(constant) = &generated.constant else {
        was::note_unless_plain(site, &[grid, block], edit);
        replace_by_call(site, &prefix, &items, edit);
        return;
    };
    let call = style.list(column, &prefix, &items, ");").replace('\n', "\n\t");
    let condition = |constant: String| match count {
        Some(count) => {
            let count = compared(site, count.expr, site.expr_source(count.expr), 3);
            format!("{count} < {constant}")
        }
        None => {
            let shared = shared.map_or(String::new(), |bytes| format!("{bytes}, "));
            format!("gridfuse::below_threshold({grid}, {block}, {shared}{constant})")
        }
    };
    let condition = condition(qualify(constant));
    let launch = style::reindent(&site.source(span).replace("\r\n", "\n"), &indent, "\t");
    // As the user writes it: in braces where the launch was.
    let (open, close) = (style.open_brace(), if style.brace_on_own_line { "\n" } else { " " });
    let code = match in_braces(site, statement) {
        true => format!("if ({condition}){open}\n\t{call}\n}}{close}else{open}\n\t{launch}\n}}"),
        false => format!("if ({condition})\n\t{call}\nelse\n\t{launch}"),
    };
    target::replace_statement(site, statement, &code, edit);
}
