//! What `aggregate-grid-stream` needs besides what all aggregation does: the host launches the children's grid right after the
//! parent, before anything has run. So it has to know the block, the arguments that all launches share, and how many launches a
//! thread has at most; and the blocks of that grid run one block of a child after the other, as when coarsened.

use std::collections::BTreeMap;

use gridfuse_analysis::facts::effects::effects;
use gridfuse_analysis::facts::launch::{Bound, launch_counts};
use gridfuse_analysis::hir::{ExprId, ExprKind, Literal, Type};

use crate::api::assumption::{self, Assumed};
use crate::api::refusal::Ineligible;
use crate::api::refusal::Reason;
use crate::api::refusal::Refusals;
use crate::edit::builder::EditBuilder;
use crate::edit::lex;
use crate::edit::names::untaken;
use crate::edit::names::words_with_macros;
use crate::edit::one_line::flat;
use crate::edit::style;
use crate::edit::style::Style;
use crate::emit::arena::Parent;
use crate::emit::launchpad::Listed;
use crate::emit::split::Split;
use crate::facts::barriers;
use crate::facts::child::Child;
use crate::facts::child::Param;
use crate::facts::cluster::Cluster;
use crate::facts::cluster::Function;
use crate::facts::ctype;
use crate::facts::guard::Guard;
use crate::facts::instance;
use crate::facts::movable;
use crate::facts::movable::Form;
use crate::facts::moved;
use crate::facts::moved::Spot;
use crate::facts::pure;
use crate::facts::site::Site;
use crate::transforms::in_launcher;

/// The type of the parent's parameter.
pub const STREAM_ARENA: &str = "gridfuse::StreamArena";

/// What makes it at a launch by the host.
pub const FOLLOWED_BY: &str = "gridfuse::followed_by";

/// The same where it may be that nothing follows.
pub const FOLLOWED_AT_NEED: &str = "gridfuse::followed_at_need";

/// The type of the aggregated kernel's first parameter, without its arguments.
pub const STREAM_BATCH: &str = "gridfuse::StreamBatch";

/// More launches of a thread than this aren't given memory before it is known whether there are any.
const MOST_LAUNCHES: u64 = 32;

/// The most launches that a thread comes to at a site; `repeated`: its function is called more than once.
pub fn launches_of_a_thread(site: &Site<'_>, repeated: bool) -> Option<u64> {
    let counts = launch_counts(site.db, site.parent);
    match counts.get(site.id.index as usize).map(|c| &c.per_thread.at_most) {
        Some(Bound::Constant(n)) if !repeated && *n <= MOST_LAUNCHES => Some((*n).max(1)),
        _ => None,
    }
}

/// Refuses a launch of which the host would have to know what only the device does.
pub fn refuse_launch(site: &Site<'_>, refusals: &mut Refusals) {
    let block = &site.facts.block;
    match block.constant {
        None => refusals.add(
            format!(
                "the host can't know the child's block size before the parent runs: it is `{}`",
                flat(site.source(block.operand.span))
            ),
            Some(site.place(block.operand.span)),
        ),
        Some([x, y, z]) if !(1..=1024).contains(&x.saturating_mul(y).saturating_mul(z)) || z > 64 => {
            refusals.add("CUDA refuses such a block", Some(site.place(block.operand.span)));
        }
        Some(_) => {}
    }
    if let Some(shared) = &site.facts.shared {
        let literal = &site.body.expr(site.body.strip_parens(shared.expr)).kind;
        if !matches!(literal, ExprKind::Literal(Literal::Int(0))) {
            refusals.add(
                "the child has dynamic shared memory; the host has to know its size before the parent runs",
                Some(site.place(shared.span)),
            );
        }
    }
}

/// Refuses a launch of which nobody knows how often a thread comes there, where what finds no room can't run in that thread instead; what
/// that takes for granted.
pub fn refuse_without_room(site: &Site<'_>, child: &Child<'_>, refusals: &mut Refusals) -> Option<Assumed> {
    let mut reasons = Refusals::default();
    let assumed = in_launcher::refuse_serial(site, child, &mut reasons);
    if let Err(Ineligible(reasons)) = reasons.check() {
        refusals.add(
            "a thread may launch any number of grids: those that find no room can be neither launched one by one nor run in that thread",
            Some(site.here()),
        );
        for reason in reasons {
            refusals.add(reason.text, reason.place);
        }
    }
    assumed
}

/// Refuses a child whose blocks can't run one after the other in the same block; what that takes for granted. That none of them waits
/// for another holds for every child whose launches are collected.
pub fn refuse_child(child: &Child<'_>, refusals: &mut Refusals) -> Vec<Assumed> {
    let effects = effects(child.db, child.worker());
    barriers::refuse_divergent(child.db, child.worker(), &child.name, &effects, false, refusals)
}

/// Refuses children that collect launches in their turn: the host doesn't know how long that goes on.
pub fn refuse_nesting(cluster: &Cluster<'_>, children: &[Child<'_>], refusals: &mut Refusals) {
    for child in children {
        if cluster.index(child.item).is_some() {
            let text = match movable::names_itself(child) {
                true => movable::is_recursive(&child.name),
                false => format!("`{}` launches grids itself: the host can't know how many", child.name),
            };
            refusals.add(text, Some(child.place()));
        }
    }
    if let Some(function) = cluster.functions.iter().find(|f| f.batch().is_some()) {
        refusals.add(
            format!(
                "`{}` is launched by an aggregator: the host can't know how often",
                function.name()
            ),
            Some(function.name_place()),
        );
    }
}

/// Refuses a parent that has an arena already: for launches that go out in another way.
pub fn refuse_parent(function: &Function<'_>, existing: Option<&str>, refusals: &mut Refusals) {
    let own = function.body.params.iter().any(|p| {
        let ty = &function.body.binding(*p).ty;
        ty.base.trim_start_matches("::") == STREAM_ARENA
    });
    if own || existing.is_some() {
        refusals.add(
            format!("`{}` has an arena for other launches", function.name()),
            Some(function.name_place()),
        );
    }
}

/// What the host passes for an argument that is called `text` in the parent, to a parameter of the child: what it passes to the
/// parent, converted in the same way. `None` where that isn't a parameter of the parent, or can't be evaluated twice.
pub fn at_host(function: &Function<'_>, host: &Site<'_>, param: &Param, text: &str) -> Option<String> {
    let index = function
        .body
        .params
        .iter()
        .position(|p| function.body.binding(*p).name == text)?;
    let own = &function.body.binding(function.body.params[index]).ty;
    let arg = *host.launch.args.get(index)?;
    if pure::not_repeatable(host, arg).is_some() || own.complex || own.reference || !own.array.is_empty() {
        return None;
    }
    // Another argument of this launch changes what is named here.
    let changed = |other: ExprId| {
        let named = || lex::identifiers(host.expr_source(arg));
        pure::assigns(&host.body, other) && lex::identifiers(host.expr_source(other)).any(|w| named().any(|n| n == w))
    };
    if host.launch.args.iter().any(|other| changed(*other)) {
        return None;
    }
    // What a template parameter stands for, in the parent or in the child, isn't known here.
    let signature = function.item.signature(function.db);
    let of_template = lex::identifiers(&own.base).any(|w| signature.template_names.iter().any(|n| n == w));
    if of_template && own.pointers == 0 {
        return None;
    }
    // Nor does the host name a type that is another one there.
    let caller = Function::new(host.db, host.parent);
    let there = Spot::within(&caller, host.launch.name_span);
    if own.pointers == 0 && moved::different(&own.base, Spot::head(function), there, &[]).is_some() {
        return None;
    }
    converted(own, &param.ty, crate::edit::one_line::flat(host.expr_source(arg)))
}

/// What the host passes for a parameter of the child of the type `wanted`, in place of the parent's of the type `own`, for which it passes
/// `source`. `None`: in the parent it isn't converted in a way that the host could do, too.
pub fn converted(own: &Type, wanted: &Type, source: String) -> Option<String> {
    let base = |ty: &Type| ctype::normalize(&ty.base);
    if own.pointers == wanted.pointers && base(own) == base(wanted) {
        return Some(source);
    }
    let plain = own.pointers == 0 && crate::facts::calls::is_plain_type(&base(own));
    plain.then(|| format!("static_cast<{}>({source})", own.base))
}

/// What has to hold where the host launches a parent, and what is taken for granted there. `counted`: how often a thread launches is
/// known.
pub fn follows<'db>(
    host: &Site<'db>,
    follower: &Listed<'_, 'db>,
    counted: bool,
    refusals: &mut Refusals,
    edit: &mut EditBuilder<'db>,
) {
    let parent = host.child_name();
    let here = Some(host.here());
    if host.facts.statement.is_none() {
        refusals.add(
            format!(
                "this launch of `{parent}` is part of a larger expression, and the host launches the children at its end"
            ),
            here,
        );
    }
    follower.refuse_unnamed(host, refusals);
    let memory = if counted {
        format!(", and there is memory for all that the threads of `{parent}` may launch")
    } else {
        String::new()
    };
    edit.assume(assumption::ONE_HOST_THREAD.of(Reason {
        text: format!(
            "no other thread of the host launches into the stream between `{parent}` and what follows it{memory}"
        ),
        place: here,
    }));
}

/// `gridfuse::followed_by<…>(…)`, or what `by` says in its place, for a launch of the parent: `uniform` are the values of what all launches share, `launches` the
/// most that a thread has, if that is known.
pub fn followed_by(
    by: &str,
    host: &Site<'_>,
    follower: &Listed<'_, '_>,
    launches: Option<u64>,
    uniform: &[String],
) -> String {
    let stream = host.facts.stream_operand.as_ref();
    let stream = stream.map_or("/*stream=*/0".to_owned(), |s| {
        crate::edit::one_line::flat(host.source(s.span))
    });
    let mut items = vec![
        flat(host.expr_source(host.facts.grid.operand.expr)),
        flat(host.expr_source(host.facts.block.operand.expr)),
        stream,
    ];
    items.extend(uniform.iter().cloned());
    let most = match launches {
        Some(0 | 1) => String::new(),
        Some(launches) => format!(", {launches}"),
        None => ", gridfuse::kNotKnown".to_owned(),
    };
    format!("{by}<{}{most}>({})", follower.name_at(host), items.join(", "))
}

/// The last argument of a launch of which nobody knows whether it finds room: what is done if it doesn't, a function of the grid, the
/// block and the arguments that were to be written down, a `record`, that calls `serial`. It takes lines of its own.
pub fn without_room(
    site: &Site<'_>,
    child: &Child<'_>,
    split: &Split<'_>,
    serial: &str,
    record: &str,
    style: &Style,
) -> String {
    let serial = crate::facts::qualified::qualified(site, child, serial);
    // The arguments that all launches share are named in the function.
    let shared: Vec<String> = split
        .uniform()
        .filter_map(|p| Some(crate::edit::one_line::flat(site.expr_source(p.arg?))))
        .collect();
    let template_args = instance::named(site, child);
    let texts: Vec<&str> = shared
        .iter()
        .map(String::as_str)
        .chain([template_args.as_str()])
        .collect();
    let words = words_with_macros(site.db, site.file, &texts.join(" "));
    let [grid, block, args] =
        ["grid", "block", "args"].map(|wanted| untaken(site.db, site.file, wanted, |name| words.contains(name)));
    let record = crate::facts::qualified::qualified(site, child, record);
    let of_record = if split.depends_on_template(child) {
        template_args.as_str()
    } else {
        ""
    };
    let mut shared = shared.into_iter();
    let values = split.parts.iter().map(|part| match part.uniform {
        true => shared.next().unwrap_or_default(),
        false => format!("{args}.{}", part.param.name),
    });
    let items: Vec<String> = [grid.clone(), block.clone()].into_iter().chain(values).collect();
    let indent = style::indent_at(&site.text, site.place(site.facts.span).range.start as usize);
    let column = style::columns(indent) + 2 * style::columns(&style.unit);
    let call = style.list(column, &format!("{serial}{template_args}("), &items, ");");
    format!(
        "\n\t[&](dim3 {grid}, dim3 {block}, const {record}{of_record}& {args}) {{\n\t\t{}\n\t}}",
        call.replace('\n', "\n\t\t")
    )
}

/// Whether the grid after the parent may run the children's warps, and of these only what has something to do: the index of the
/// parameter that says how many threads have. A block of the child is whole warps, whose threads have nothing to do with each other;
/// and those from a number on that is passed at each launch do nothing. `split` are the arguments of the first of the launches.
pub fn warps_alone(launches: &[&Site<'_>], child: &Child<'_>, split: &Split<'_>) -> Option<usize> {
    let guard = Guard::of(child)?;
    let part = split.parts.get(guard.parameter)?;
    let ty = &part.param.ty;
    let counts = ty.is_value() && ctype::normalize(&ty.base) == guard.ty;
    if part.uniform || !counts || !matches!(guard.ty.as_str(), "int" | "unsigned int") {
        return None;
    }
    let effects = effects(child.db, child.worker());
    let apart = effects.barriers.is_empty() && effects.shared.is_empty() && effects.warp.is_empty();
    let fits = |site: &&Site<'_>| {
        let whole = matches!(site.facts.block.constant, Some([x, 1, 1]) if x % 32 == 0);
        whole
            && guard.fits(site.facts.block.constant)
            && matches!(site.facts.grid.components, Some([Some(_), None, None]))
    };
    // The name of the member function that says it.
    let named = split.varying().any(|part| part.param.name == THREADS);
    let mut refusals = Refusals::default();
    movable::refuse_to_outline(child, Form::Thread, &[], &effects, &mut refusals);
    (apart && !named && launches.iter().all(fits) && refusals.is_empty()).then_some(guard.parameter)
}

/// What the struct of a launch's arguments has for the runtime: how many threads of such a grid have something to do.
const THREADS: &str = "threads";

/// That member function. Another file may have a static child of that name: then it must be no function that the linker takes one of,
/// not even where nothing is inlined (`-G`).
pub fn threads(count: &Param, is_static: bool) -> String {
    let Param { ty, name, .. } = count;
    let inlined = if is_static { "__forceinline__ " } else { "" };
    format!(
        "__device__ {inlined}{} {THREADS}() const {{ return {name}; }}",
        ctype::normalize(&ty.base)
    )
}

/// The type of the aggregated kernel's first parameter: the record's type, and the block.
pub fn batch(record: &str, block: [u64; 3]) -> String {
    let [x, y, z] = block;
    let block = match (y, z) {
        (1, 1) => x.to_string(),
        (_, 1) => format!("{x}, {y}"),
        _ => format!("{x}, {y}, {z}"),
    };
    format!("{STREAM_BATCH}<{record}, {block}>")
}

/// The child's body uses shared memory, which the next block that runs in the same block uses again.
pub fn ends_with_barrier(child: &Child<'_>) -> bool {
    !effects(child.db, child.worker()).shared.is_empty()
}

/// Of the arguments that are the same for all launches, leaves out those that the host doesn't know at each launch of each parent:
/// `flags` says for each parameter whether it is one of them, `texts` what they are called in each kernel.
pub fn leave_out_unknown(
    cluster: &Cluster<'_>,
    parents: &[(usize, Parent<'_>)],
    child: &Child<'_>,
    flags: &mut [bool],
    texts: &mut BTreeMap<usize, Vec<String>>,
) {
    let uniform: Vec<usize> = (0..flags.len()).filter(|index| flags[*index]).collect();
    for (at, index) in uniform.into_iter().enumerate().rev() {
        let known = parents.iter().all(|(kernel, parent)| {
            let function = &cluster.functions[*kernel];
            let text = texts.get(kernel).and_then(|texts| texts.get(at));
            text.is_none_or(|text| {
                let mut hosts = parent.launches().iter();
                hosts.all(|host| at_host(function, host, &child.params[index], text).is_some())
            })
        });
        if !known {
            flags[index] = false;
            for texts in texts.values_mut().filter(|texts| at < texts.len()) {
                texts.remove(at);
            }
        }
    }
}
