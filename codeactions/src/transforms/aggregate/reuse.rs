//! Collected launches that nobody launches: the parent's own threads run them, when they are through with its body (Chen and Shen: Free
//! Launch, MICRO 2015). The body moves to a function, behind whose call all threads of a block are there again, wherever they have
//! returned. What is too much for a block goes to a grid right after the parent, where the host can launch one.

use std::collections::BTreeMap;

use gridfuse_analysis::facts::effects::{BUILTINS, effects};

use super::collect::Collection;
use super::emit::Plan;
use super::granularity::Granularity;
use super::group::Group;
use super::in_stream::{InStream, followers};
use super::shared_block::SharedBlock;
use super::strategy::Strategy;
use crate::api::assumption;
use crate::api::refusal::{Reason, Refusals};
use crate::edit::builder::EditBuilder;
use crate::edit::include::Header;
use crate::edit::names::{Names, untaken, words_with_macros};
use crate::emit::arena::Parent;
use crate::emit::launch_bounds;
use crate::emit::outline::{self, Collecting, Worker};
use crate::facts::barriers;
use crate::facts::child::Child;
use crate::facts::cluster::{Cluster, Function};
use crate::facts::instance;
use crate::facts::movable::Form;
use crate::facts::qualified::qualified;
use crate::facts::read_only::all_restrict;
use crate::facts::site::Site;
use crate::transforms::in_launcher;
use crate::transforms::refused_launches;
use crate::transforms::stream;

/// Which threads run what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assignment {
    /// Those of a warp what they have launched.
    Warp,
    /// Those of a block what they have launched.
    Block,
    /// Those of a warp the small grids, those of a block the large ones.
    Size,
    /// Those of a warp the small grids; a grid that the host launches right after the parent runs the large ones, where there were some lately.
    Grid,
}

/// By the parent's threads.
pub struct Reuse(pub Assignment);

/// What the parent's type is called that the threads' launches are left to.
const THREAD_REUSE: &str = "gridfuse::ThreadReuse";

/// The same where a grid may follow.
const THREAD_REUSE_IN_STREAM: &str = "gridfuse::ThreadReuseInStream";

/// Shared memory for the launches that a block takes up at a time, in bytes: 64 of them with arguments of up to 44 bytes.
const SHARED_BYTES: u32 = 4096;

impl Reuse {
    fn in_stream(&self) -> bool {
        self.0 == Assignment::Grid
    }
}

impl Strategy for Reuse {
    fn granularity(&self) -> Granularity {
        match self.0 {
            Assignment::Warp | Assignment::Block | Assignment::Size => Granularity::Block,
            Assignment::Grid => Granularity::GridInStream,
        }
    }

    fn refuse_launch(&self, site: &Site<'_>, refusals: &mut Refusals) {
        stream::refuse_launch(site, refusals);
    }

    fn refuse_children(&self, collection: &Collection<'_>, refusals: &mut Refusals, edit: &mut EditBuilder<'_>) {
        let Collection {
            cluster,
            children,
            child_of,
            ..
        } = collection;
        stream::refuse_nesting(cluster, children, refusals);
        for (site, child) in cluster
            .sites
            .iter()
            .zip(child_of)
            .map(|(site, index)| (site, &children[*index]))
        {
            if let Some(reason) = in_launcher::refuse_serial(site, child, refusals) {
                edit.assume(reason);
            }
            refused_launches::assume_accepted(site, child, edit);
        }
        for function in &cluster.functions {
            for child in children
                .iter()
                // A child that is its own parent is refused as recursive above.
                .filter(|c| c.item != function.item && !c.is_seen_from(function.file, function.start))
            {
                let text = format!(
                    "`{}` is defined below `{}`, which is to run it; move it up",
                    child.name,
                    function.name()
                );
                refusals.add(text, Some(child.place()));
            }
            if function.is_kernel() {
                refuse_parent(function, refusals, edit);
            }
        }
    }

    fn fit_together(&self, first: &Site<'_>, other: &Site<'_>) -> bool {
        InStream.fit_together(first, other)
    }

    fn leave_out_unknown(
        &self,
        collection: &Collection<'_>,
        parents: &[(usize, Parent<'_>)],
        child: &Child<'_>,
        flags: &mut [bool],
        texts: &mut BTreeMap<usize, Vec<String>>,
    ) {
        if self.in_stream() {
            InStream.leave_out_unknown(collection, parents, child, flags, texts);
        } else {
            leave_out_builtins(&collection.cluster, flags, texts);
        }
    }

    fn complete(&self, group: &mut Group<'_>, collection: &Collection<'_>, several: bool, names: &mut Names) {
        InStream.complete(group, collection, several, names);
        if !self.in_stream() {
            group.arena = None;
        }
        // A thread keeps one launch.
        let launches = group
            .launches
            .iter()
            .map(|(site, _)| collection.launches_of_a_thread(*site));
        let all: Option<u64> = launches.sum();
        if all != Some(1) && group.serial.is_none() {
            let child = &collection.children[group.child];
            group.serial = Some(names.fresh(&format!("{}_serial", child.name)));
        }
    }

    fn collector(&self, kernel: &str, record: &str, block: Option<[u64; 3]>, shared: Option<&str>) -> String {
        let assignment = match self.0 {
            Assignment::Warp => "gridfuse::ByWarp",
            Assignment::Block => "gridfuse::ByBlock",
            Assignment::Size => "gridfuse::BySize",
            Assignment::Grid => return format!("{THREAD_REUSE_IN_STREAM}<{kernel}>"),
        };
        let sizes: Vec<String> = block.map_or_else(Vec::new, |sizes| {
            let last = sizes.iter().rposition(|size| *size != 1).unwrap_or(0);
            sizes.iter().take(last + 1).map(u64::to_string).collect()
        });
        let block = shared.map_or_else(|| sizes.join(", "), str::to_owned);
        format!("{THREAD_REUSE}<{assignment}, {record}, {block}>")
    }

    fn has_kernel(&self) -> bool {
        self.in_stream()
    }

    fn runs_in_parent(&self) -> bool {
        true
    }

    fn changes_launches(&self) -> bool {
        self.in_stream()
    }

    fn arena(&self) -> &'static str {
        stream::STREAM_ARENA
    }

    fn shared_bytes(&self) -> u32 {
        match self.0 {
            Assignment::Warp => 0,
            Assignment::Block | Assignment::Size | Assignment::Grid => SHARED_BYTES,
        }
    }

    fn passes_shared_arguments(&self) -> bool {
        false
    }

    fn batch_type(&self, record: &str, block: Option<[u64; 3]>, shared: Option<&SharedBlock>, nested: bool) -> String {
        InStream.batch_type(record, block, shared, nested)
    }

    fn equip<'db>(
        &self,
        plan: &Plan<'_, 'db>,
        index: usize,
        parent: &Parent<'db>,
        header: &Header,
        refusals: &mut Refusals,
        edit: &mut EditBuilder<'db>,
    ) {
        let function = &plan.collection.cluster.functions[index];
        launch_bounds::keep_with_more_code(function, parent.all_launches(function), edit);
        let children = plan.needs(index).into_iter();
        let children: Vec<_> = children
            .map(|group| plan.collection.children[plan.groups[group].child].worker())
            .collect();
        launch_bounds::assume_enough(function, parent.launches(), &children, edit);
        if !self.in_stream() {
            return;
        }
        for group in plan.needs(index) {
            let group = &plan.groups[group];
            let child = &plan.collection.children[group.child];
            if group.serial.is_some() {
                refusals.add(
                    format!(
                        "a thread may launch `{}` several times, and there is room for one; `aggregate-grid-stream` collects them all",
                        child.name
                    ),
                    Some(child.place()),
                );
            }
            if group.threads.is_none() {
                refusals.add(
                    format!(
                        "no argument tells how many threads of `{}` work (as in `if (i < count)`), so large grids aren't known",
                        child.name
                    ),
                    Some(child.place()),
                );
            }
        }
        stream::refuse_parent(function, parent.existing(), refusals);
        followers(
            plan,
            index,
            parent,
            header,
            stream::FOLLOWED_AT_NEED,
            true,
            refusals,
            edit,
        );
    }
}

/// Refuses a kernel whose threads aren't all there behind its body, or would be awaited too early; what it takes for granted that they are.
fn refuse_parent(function: &Function<'_>, refusals: &mut Refusals, edit: &mut EditBuilder<'_>) {
    let (db, name) = (function.db, function.name());
    let found = effects(db, function.item);
    let so = "so the barrier would wait for threads that have left";
    for reason in barriers::refuse_divergent_so(db, function.item, name, so, &found, false, refusals) {
        edit.assume(reason);
    }
    let mut params = function.body.params.iter().map(|p| function.body.binding(*p));
    let own = params.find(|binding| binding.ty.restrict);
    let own = own.map(|own| {
        (
            format!("`{}`, which is __restrict__", own.name),
            function.place(own.span),
        )
    });
    let called = found.restricts.first().map(|load| (load.what.clone(), load.place));
    let compiled = all_restrict(db, function.file).then(|| ("--restrict".to_owned(), function.name_place()));
    if let Some((what, place)) = own.or(called).or(compiled) {
        edit.assume(assumption::READ_ONLY_LOADS.of(Reason {
            text: format!("no child grid writes what `{name}` reads through {what}: they run in the same kernel"),
            place: Some(place),
        }));
    }
}

/// Leaves out arguments that name built-in variables: where the children run, these are the children's.
fn leave_out_builtins(cluster: &Cluster<'_>, flags: &mut [bool], texts: &mut BTreeMap<usize, Vec<String>>) {
    let names_one = |kernel: usize, text: &str| {
        let function = &cluster.functions[kernel];
        let words = words_with_macros(function.db, function.file, text);
        BUILTINS.iter().any(|builtin| words.contains(*builtin))
    };
    let uniform: Vec<usize> = (0..flags.len()).filter(|index| flags[*index]).collect();
    for (at, index) in uniform.into_iter().enumerate().rev() {
        let mut own = texts
            .iter()
            .filter_map(|(kernel, texts)| Some((*kernel, texts.get(at)?)));
        if own.any(|(kernel, text)| names_one(kernel, text)) {
            flags[index] = false;
            for texts in texts.values_mut().filter(|texts| at < texts.len()) {
                texts.remove(at);
            }
        }
    }
}

/// Moves the bodies of parents whose threads run what they have launched, and has the kernels run it. `workers`: of each child.
pub fn move_parents<'db>(
    plan: &Plan<'_, 'db>,
    moved: &[(usize, Child<'db>)],
    workers: &[Worker],
    names: &mut Names,
    edit: &mut EditBuilder<'db>,
) {
    for (index, parent) in moved {
        let function = &plan.collection.cluster.functions[*index];
        let needs = plan.needs(*index);
        let mut behind = outline::behind(edit, parent);
        let (template_params, params) = plan.parameters(*index, names);
        let arenas: Vec<&String> = needs
            .iter()
            .map(|group| plan.groups[*group].arena.as_ref().unwrap_or(&plan.arena))
            .collect();
        let parameters: Vec<String> = arenas
            .iter()
            .map(|arena| format!("{} {arena}", plan.strategy.arena()))
            .collect();
        let runs = needs.iter().filter_map(|group| {
            let worker = workers.get(plan.groups[*group].child)?;
            run(plan, *group, *index, function, worker, &behind)
        });
        let collecting = Collecting {
            params,
            template_params,
            args: needs
                .iter()
                .map(|group| plan.groups[*group].aggregator.clone())
                .collect(),
            arena: plan.strategy.has_kernel().then(|| parameters.join(", ")),
            declarations: plan.declarations(*index, &plan.arena, function, edit),
            behind: runs.collect(),
            unrestricted: true,
            ..Collecting::default()
        };
        outline::outline_collecting(edit, &mut behind, parent, Form::Own, &[], &collecting, names);
        behind.finish(edit, parent);
    }
}

/// The statement of a kernel that runs what a group has collected.
fn run(
    plan: &Plan<'_, '_>,
    group: usize,
    index: usize,
    function: &Function<'_>,
    worker: &Worker,
    behind: &outline::Behind,
) -> Option<String> {
    let group = &plan.groups[group];
    let child = &plan.collection.children[group.child];
    let (launch, split) = group.launches.first()?;
    let site = &plan.collection.cluster.sites[*launch];
    let template_args = instance::named(site, child);
    let uniform = group.uniform.get(&index).map_or(&[][..], Vec::as_slice);
    let params = function.body.params.iter().map(|p| &function.body.binding(*p).name);
    let texts = uniform.join(" ");
    let mut words = words_with_macros(function.db, function.file, &texts);
    words.extend(params.cloned());
    let args = untaken(function.db, function.file, "args", |name| words.contains(name));
    let mut shared = uniform.iter();
    let values = split.parts.iter().map(|part| match part.uniform {
        true => shared.next().cloned().unwrap_or_default(),
        false => format!("{args}.{}", part.param.name),
    });
    let builtins = worker.builtins().iter().map(|builtin| (*builtin).to_owned());
    let items: Vec<String> = builtins.chain(values).collect();
    let prefix = format!("{}{template_args}(", qualified(site, child, &worker.name));
    let call = behind.call(2, &prefix, &items, ");");
    let record = qualified(site, child, &group.record);
    let of_record = if split.depends_on_template(child) {
        template_args.as_str()
    } else {
        ""
    };
    let own = format!("const {record}{of_record}& {args}");
    let parameters = [
        "uint3 threadIdx",
        "uint3 blockIdx",
        "dim3 gridDim",
        "dim3 blockDim",
        &own,
    ];
    let each = format!("{}.for_each_thread", group.aggregator);
    Some(behind.call_with_lambda(&each, &[], &parameters, &call))
}
