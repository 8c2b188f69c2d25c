//! The code that aggregation writes: aggregators in the parents, the structs of the arguments that differ, the aggregated kernels
//! behind the children.

use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::TextRange;

use super::collect::Collection;
use super::collected_instances::Instances;
use super::eligibility::refuse_shapes;
use super::group::Group;
use super::strategy::Strategy;
use crate::api::refusal::Refusals;
use crate::edit::builder::EditBuilder;
use crate::edit::lex;
use crate::edit::names::Names;
use crate::edit::names::camel;
use crate::edit::style;
use crate::edit::style::Style;
use crate::emit::described;
use crate::emit::launch_bounds;
use crate::emit::launch_bounds::Needed;
use crate::emit::launchpad::Listed;
use crate::emit::outline;
use crate::emit::outline::Behind;
use crate::emit::outline::Collecting;
use crate::emit::outline::Worker;
use crate::emit::split::Split;
use crate::emit::target;
use crate::facts::child::Child;
use crate::facts::cluster::{Call, Function, SHAPED_BATCH};
use crate::facts::instance;
use crate::facts::movable::Form;
use crate::facts::moved;
use crate::facts::moved::Spot;
use crate::facts::qualified::qualified;
use crate::facts::room::Collected;
use crate::facts::room::{launches_at, most_launches_at};
use crate::facts::site::Site;
use crate::transforms::in_launcher;
use crate::transforms::stream;

/// Who gets what.
pub struct Plan<'a, 'db> {
    /// What is collected.
    pub collection: &'a Collection<'db>,
    /// What the aggregators collect.
    pub groups: &'a [Group<'a>],
    /// The instances of those whose template arguments depend on who calls.
    pub instances: Instances,
    /// How it runs.
    pub strategy: &'a dyn Strategy,
    /// Two groups whose order is kept.
    pub in_order: Option<Turns>,
    /// The parameter of kernels that have none yet.
    pub arena: String,
}

/// What collects launches in a function: of a group, or of an instance that it has there.
pub struct Collector {
    /// The group.
    pub group: usize,
    /// The variable or parameter.
    pub name: String,
    /// The template arguments of the instance; `None` where the launches say them.
    pub arguments: Option<String>,
}

/// What keeps the order of two groups' launches.
pub struct Turns {
    /// The name of the object.
    pub name: String,
    /// Whose launches come first.
    pub first: usize,
    /// Whose come after them.
    pub second: usize,
}

impl<'db> Plan<'_, 'db> {
    /// The groups whose aggregators a function needs.
    pub fn needs(&self, function: usize) -> Vec<usize> {
        let reached = self.collection.cluster.reached_from(function);
        let used = |g: &Group<'_>| {
            let mut launches = g.launches.iter();
            launches.any(|(site, _)| reached.contains(&self.collection.cluster.site_of[*site]))
        };
        (0..self.groups.len()).filter(|g| used(&self.groups[*g])).collect()
    }

    /// The collectors that a function needs.
    pub fn collectors(&self, function: usize) -> Vec<Collector> {
        let mut all = Vec::new();
        for group in self.needs(function) {
            let Some(instances) = self.instances.of(function, group) else {
                let (name, arguments) = (self.groups[group].aggregator.clone(), None);
                all.push(Collector { group, name, arguments });
                continue;
            };
            for (number, arguments) in instances.iter().enumerate() {
                let (name, arguments) = (self.name(group, number).to_owned(), Some(arguments.clone()));
                all.push(Collector { group, name, arguments });
            }
        }
        all
    }

    /// The name of a collector by the number of its instance in a function.
    fn name(&self, group: usize, number: usize) -> &str {
        let own = self.instances.name(group, number);
        own.unwrap_or(&self.groups[group].aggregator)
    }

    /// The collectors that a call hands on, in the order of the callee's.
    pub fn handed_on(&self, number: usize, call: &Call) -> Vec<String> {
        let of = |group: usize| match self.instances.handed_on(number, group) {
            Some(numbers) => numbers.iter().map(|n| self.name(group, *n).to_owned()).collect(),
            None => vec![self.groups[group].aggregator.clone()],
        };
        self.needs(call.callee).into_iter().flat_map(of).collect()
    }

    /// What collects a launch of a group, where it stands.
    pub fn collector_of(&self, group: usize, site: usize) -> &str {
        let child = &self.collection.children[self.groups[group].child];
        let named = instance::named(&self.collection.cluster.sites[site], child);
        let function = self.collection.cluster.site_of[site];
        self.name(group, self.instances.number(function, group, &named))
    }

    /// The function of the cluster that a child is.
    fn member(&self, child: &Child<'db>) -> Option<usize> {
        self.collection.cluster.index(child.item)
    }

    /// Whether the child of a group collects launches, too.
    pub fn launches_in_turn(&self, group: usize) -> bool {
        self.member(&self.collection.children[self.groups[group].child])
            .is_some()
    }

    /// Some kernel that an aggregator launches has aggregators of its own.
    pub fn is_nested(&self) -> bool {
        (0..self.groups.len()).any(|group| self.launches_in_turn(group))
            || self
                .collection
                .cluster
                .functions
                .iter()
                .any(|function| function.batch().is_some())
    }

    /// What the aggregator of a group collects in a kernel.
    pub fn collected(&self, kernel: usize, group: usize) -> Collected<'_, 'db> {
        let group_of = &self.groups[group];
        let child = &self.collection.children[group_of.child];
        let split = group_of.split();
        let reached = self.collection.cluster.reached_from(kernel);
        let here = group_of
            .launches
            .iter()
            .map(|(site, _)| {
                (
                    &self.collection.cluster.sites[*site],
                    self.collection.cluster.site_of[*site],
                )
            })
            .filter(|(_, function)| reached.contains(function));
        let (mut launches, mut most) = (0, 0_u64);
        for (site, function) in here {
            let repeated = self.collection.cluster.is_repeated(function);
            launches += launches_at(site, repeated);
            most = most.saturating_add(most_launches_at(site, repeated));
        }
        Collected {
            child,
            record: (!split.is_some_and(|s| s.depends_on_template(child))).then_some(group_of.record.as_str()),
            behind: self.declared_at(group),
            fields: split.map_or_else(Vec::new, |s| s.varying().map(|p| &p.param.ty).collect()),
            launches,
            most,
        }
    }

    /// The registers that a kernel needs to launch a group's child.
    pub fn registers(&self, group: usize, nested: bool) -> Needed {
        let split = self.groups[group].split();
        let words = split.and_then(|split| launch_bounds::words(split.parts.iter().map(|p| &p.param.ty)));
        Needed::to_collect(words, nested)
    }

    /// Behind which offset of the child's file a group's kernel is declared.
    fn declared_at(&self, group: usize) -> u32 {
        let early = self
            .needed_early(group)
            .map(|f| self.collection.cluster.functions[f].start);
        early.unwrap_or(self.collection.children[self.groups[group].child].start)
    }

    /// What the host has to launch when the launches of these kernels, and of their children in their turn, are left to it.
    pub fn listed(&self, kernels: &[usize]) -> Vec<Listed<'_, 'db>> {
        if !self.strategy.lists_kernels() {
            return Vec::new();
        }
        let mut groups: Vec<usize> = Vec::new();
        let mut todo = kernels.to_vec();
        while let Some(kernel) = todo.pop() {
            for group in self.needs(kernel) {
                if !groups.contains(&group) {
                    groups.push(group);
                    todo.extend(self.member(&self.collection.children[self.groups[group].child]));
                }
            }
        }
        groups
            .into_iter()
            .filter_map(|group| self.host_launches(group))
            .collect()
    }

    /// A group's kernel as the host launches it.
    pub fn host_launches(&self, group: usize) -> Option<Listed<'_, 'db>> {
        let group_of = &self.groups[group];
        let (launch, _) = group_of.launches.first()?;
        Some(Listed {
            child: &self.collection.children[group_of.child],
            kernel: &group_of.kernel,
            launch: &self.collection.cluster.sites[*launch],
            behind: self.declared_at(group),
        })
    }

    /// What a launch does that finds no room, where nobody knows whether there is some.
    pub fn without_room(&self, group: usize, site: &Site<'_>, split: &Split<'_>, style: &Style) -> Option<String> {
        let group = &self.groups[group];
        let child = &self.collection.children[group.child];
        let serial = group.serial.as_ref()?;
        Some(stream::without_room(site, child, split, serial, &group.record, style))
    }

    /// Whether a kernel is a child whose body moves to another function.
    pub fn is_outlined_now(&self, function: usize) -> bool {
        let item = self.collection.cluster.functions[function].item;
        self.collection
            .children
            .iter()
            .any(|c| c.item == item && c.outlined.is_none())
    }

    /// The name of a group's kernel as a function has to write it, with template arguments: these, or those of the launches.
    fn kernel(&self, group: usize, arguments: Option<&str>) -> String {
        let group = &self.groups[group];
        let child = &self.collection.children[group.child];
        let Some(site) = group
            .launches
            .first()
            .map(|(site, _)| &self.collection.cluster.sites[*site])
        else {
            return group.kernel.clone();
        };
        let template_args = arguments.map_or_else(|| instance::named(site, child), str::to_owned);
        format!(
            "{}{template_args}",
            crate::facts::qualified::qualified(site, child, &group.kernel)
        )
    }

    /// Refuses names in the types of aggregators that mean something else where these are declared than where they are written.
    pub fn refuse_other_meanings(&self, refusals: &mut Refusals) {
        for (index, group) in self.groups.iter().enumerate() {
            let (kernel, child) = (self.kernel(index, None), &self.collection.children[group.child]);
            for (launch, _) in &group.launches {
                let (site, at) = (
                    &self.collection.cluster.sites[*launch],
                    self.collection.cluster.site_of[*launch],
                );
                let launching = &self.collection.cluster.functions[at];
                let from = Spot::within(launching, site.launch.name_span);
                let mut own = vec![group.kernel.clone()];
                // Their values are written there.
                if self.instances.has(index) {
                    own.extend(launching.item.signature(launching.db).template_names.iter().cloned());
                }
                let parents = self.collection.cluster.functions.iter().enumerate();
                for (_, parent) in
                    parents.filter(|(k, f)| f.is_kernel() && self.collection.cluster.reached_from(*k).contains(&at))
                {
                    if let Some(name) = moved::different(&kernel, from, Spot::top(parent), &own) {
                        // That is refused where instances are looked for.
                        if self.instances.dependent.contains(launch)
                            && launching.item.signature(launching.db).template_names.contains(&name)
                        {
                            continue;
                        }
                        let text = format!(
                            "`{name}`, which this launch of `{}` names, isn't the same at the top of `{}`; give one of them \
                             another name",
                            child.name,
                            parent.name()
                        );
                        refusals.add(text, Some(site.place(site.launch.name_span)));
                    }
                }
            }
        }
    }

    /// Kernels that nest have batches of one kind.
    pub fn refuse_nested_shapes(&self, refusals: &mut Refusals) {
        if !self.is_nested() {
            return;
        }
        for group in self.groups.iter().filter(|group| group.shaped) {
            for (site, _) in &group.launches {
                refuse_shapes(&self.collection.cluster.sites[*site], refusals);
            }
        }
    }

    /// The type of a group's aggregator, or of an instance's with these template arguments.
    fn aggregator(&self, group: usize, arguments: Option<&str>) -> String {
        let group_of = &self.groups[group];
        let child = &self.collection.children[group_of.child];
        let Some((launch, split)) = group_of.launches.first() else {
            return String::new();
        };
        let site = &self.collection.cluster.sites[*launch];
        let record = qualified(site, child, &group_of.record);
        let of_record = match split.depends_on_template(child) {
            true => arguments.map_or_else(|| instance::named(site, child), str::to_owned),
            false => String::new(),
        };
        let shared = group_of.block.as_ref().map(|block| block.sizes_at(site, child));
        self.strategy.collector(
            &self.kernel(group, arguments),
            &format!("{record}{of_record}"),
            site.facts.block.constant,
            shared.as_deref(),
        )
    }

    /// The declarations of a kernel's aggregators: of each its line, or lines, without indentation of the first. The uniform
    /// arguments are those of `function`.
    pub fn declarations(
        &self,
        index: usize,
        arena: &str,
        function: &Function<'_>,
        edit: &mut EditBuilder<'_>,
    ) -> Vec<String> {
        let style = edit.style(function.file);
        let indent = format!(
            "{}{}",
            style::indent_at(&function.text, function.start as usize),
            style.unit
        );
        let declare = |own: Collector| {
            let group = own.group;
            let prefix = format!("{} {}(", self.aggregator(group, own.arguments.as_deref()), own.name);
            let own = self.groups[group].arena.as_deref();
            let mut items = vec![own.unwrap_or(arena).to_owned()];
            if !self.strategy.has_kernel() {
                let declared = prefix.trim_end_matches('(');
                return style.declaration(style::columns(&indent), "", declared, ";");
            }
            if self.strategy.passes_shared_arguments() {
                items.extend(self.groups[group].uniform.get(&index).into_iter().flatten().cloned());
            }
            style.list(style::columns(&indent), &prefix, &items, ");")
        };
        let mut all: Vec<String> = self.collectors(index).into_iter().map(declare).collect();
        if let Some(turns) = &self.in_order {
            let items = [turns.first, turns.second].map(|group| self.groups[group].aggregator.clone());
            let prefix = format!("gridfuse::InOrder {}(", turns.name);
            all.push(style.list(style::columns(&indent), &prefix, &items, ");"));
        }
        all
    }

    /// Parameters for the aggregators that a function needs: template parameters where it is a template, and parameters.
    pub fn parameters(&self, function: usize, names: &mut Names) -> (Vec<String>, Vec<String>) {
        let item = &self.collection.cluster.functions[function];
        let is_template = item.item.signature(item.db).template_params.is_some();
        let (mut types, mut params) = (Vec::new(), Vec::new());
        for Collector { group, name, arguments } in self.collectors(function) {
            if is_template {
                // A template argument that names a kernel by parameters of another template isn't understood by nvcc.
                let ty = names.fresh(&camel(&name));
                params.push(format!("{ty}& {name}"));
                types.push(format!("class {ty}"));
            } else {
                params.push(format!("{}& {name}", self.aggregator(group, arguments.as_deref())));
            }
        }
        (types, params)
    }

    /// Gives a device function its aggregators.
    pub fn add_parameters(&self, function: usize, names: &mut Names, edit: &mut EditBuilder<'db>) {
        let (types, params) = self.parameters(function, names);
        let function = &self.collection.cluster.functions[function];
        let signature = function.item.signature(function.db);
        if let Some(list) = signature.template_params.filter(|_| !types.is_empty()) {
            let list = list.shift(function.start);
            let empty = list.text(&function.text).trim_matches(['<', '>', ' ']).is_empty();
            let comma = if empty { "" } else { ", " };
            edit.insert(function.file, list.end - 1, format!("{comma}{}", types.join(", ")));
        }
        let list = signature.params_span.shift(function.start);
        target::prepend_items(edit, function.file, list, &params);
    }

    /// The function in front of which a group's kernel has to be declared, where it is defined further down.
    fn needed_early(&self, group: usize) -> Option<usize> {
        let child = &self.collection.children[self.groups[group].child];
        // What shares the struct or the kernel needs them, too.
        let record = &self.groups[group].record;
        let needs = |index: usize| {
            let mut needed = self.needs(index).into_iter();
            needed.any(|other| other == group || self.groups[other].record == *record)
        };
        let users = self
            .collection
            .cluster
            .functions
            .iter()
            .enumerate()
            .filter(|(index, f)| f.file == child.file && f.start < child.end() && needs(*index));
        users.min_by_key(|(_, f)| f.start).map(|(index, _)| index)
    }

    /// Declares the kernels, with their arguments' structs, that are needed further up than they are defined.
    pub fn forward(&self, refusals: &mut Refusals, edit: &mut EditBuilder<'db>) {
        for (index, group) in self.groups.iter().enumerate().filter(|(_, group)| !group.shares.kernel) {
            let Some(first) = self.needed_early(index) else {
                continue;
            };
            let child = &self.collection.children[group.child];
            let function = &self.collection.cluster.functions[first];
            let scope = |name: &str| name.rsplit_once("::").map_or(String::new(), |(s, _)| s.to_owned());
            let defaults = child.template.as_ref().is_some_and(|t| t.contains('='));
            let same_scope = scope(function.item.name(function.db)) == scope(child.item.name(child.db));
            if !same_scope || defaults || function.item.signature(function.db).extern_c {
                refusals.add(
                    format!("`{}` is defined below `{}`", child.name, function.name()),
                    Some(child.place()),
                );
                continue;
            }
            let behind = outline::behind(edit, child);
            let (structure, head, params) = self.kernel_head(group, child, &behind);
            let list = behind.style().list(
                behind.column(),
                head.rsplit('\n').next().unwrap_or(&head),
                &params,
                ");",
            );
            let before = head.rsplit_once('\n').map_or(String::new(), |(b, _)| format!("{b}\n"));
            let start = (function.start as usize).min(child_front(child, function));
            let at = target::above_comment(function.db, function.file, start);
            let indent = style::indent_at(&function.text, at).to_owned();
            let gap = if structure.is_empty() { "" } else { "\n\n" };
            let code = format!("{structure}{gap}{before}{list}\n\n");
            let text = format!("{}{indent}", edit.style(function.file).fit(&code, &indent));
            edit.insert(function.file, at as u32, text);
        }
    }

    /// What a group's kernel is for.
    fn collects(&self, group: &Group<'_>, child: &Child<'db>) -> String {
        let noun = self.strategy.granularity().noun();
        let parent = self.first_parent(group).map_or("", Function::name);
        format!("Runs the launches of {} by a {noun} of {parent}", child.name)
    }

    /// The first kernel that comes to a launch of a group.
    fn first_parent(&self, group: &Group<'_>) -> Option<&Function<'db>> {
        let at = self.collection.cluster.site_of[group.launches.first()?.0];
        let mut functions = self.collection.cluster.functions.iter().enumerate();
        let reaching = functions.find(|(k, f)| f.is_kernel() && self.collection.cluster.reached_from(*k).contains(&at));
        reaching.map(|(_, function)| function)
    }

    /// The struct of a group's arguments that differ, and the kernel's head and parameters.
    fn kernel_head(&self, group: &Group<'_>, child: &Child<'db>, behind: &Behind) -> (String, String, Vec<String>) {
        let Some((split, site)) = group.split().zip(group.launches.first()) else {
            return Default::default();
        };
        let parent = self.first_parent(group).map_or("", Function::name);
        let batch = child.local("batch");
        let (record, noun) = (&group.record, self.strategy.granularity().noun());
        let template = child.template_line();
        let depends = split.depends_on_template(child);
        let mut fields: Vec<String> = split
            .varying()
            .map(|p| format!("{};", crate::edit::one_line::one_line(&p.param.field)))
            .collect();
        let lines = |text: String| described::lines(&text, behind.style(), behind.column());
        let mut comment = lines(format!(
            "The arguments of {} that differ within a {noun} of {parent}.",
            child.name
        ));
        if let Some(count) = group.threads.and_then(|index| child.params.get(index)) {
            fields.push(stream::threads(count, child.is_static));
            comment.push_str("\n// threads(): how many threads of the grid have work.");
        }
        let header = if depends { template.as_str() } else { "" };
        let line = format!("struct {record} {{ {} }};", fields.join(" "));
        let structure = if fields.is_empty() {
            let comment = lines(format!(
                "No argument of {} differs within a {noun} of {parent}.",
                child.name
            ));
            format!("{comment}\nstruct {record} {{}};")
        } else if behind.column() + line.chars().count() <= behind.style().width && !behind.style().brace_on_own_line {
            format!("{comment}\n{header}{line}")
        } else {
            let open = behind.style().open_brace();
            format!(
                "{comment}\n{header}struct {record}{open}\n\t{}\n}};",
                fields.join("\n\t")
            )
        };
        let constant = group.block.as_ref().map(|block| block.declaration(child));
        let constant = constant.unwrap_or_default();
        let structure = match group.shares.record {
            true => constant.trim_end().to_owned(),
            false => format!("{constant}{structure}"),
        };
        let record_type = if depends {
            format!("{record}{}", child.template_args)
        } else {
            record.clone()
        };
        let block = self.collection.cluster.sites[site.0].facts.block.constant;
        let batch_type = match group.shaped {
            true => format!("{SHAPED_BATCH}<{record_type}>"),
            false => self
                .strategy
                .batch_type(&record_type, block, group.block.as_ref(), self.is_nested()),
        };
        let mut params = vec![format!("{batch_type} {batch}")];
        params.extend(split.uniform().map(|p| crate::edit::one_line::one_line(&p.param.decl)));
        let linkage = child.linkage();
        let own = child.launch_bounds.as_ref().map(|b| crate::edit::one_line::one_line(b));
        let launches = group
            .launches
            .iter()
            .map(|(site, _)| &self.collection.cluster.sites[*site]);
        let bounds = own.or_else(|| launch_bounds::of_generated(launches));
        let bounds = bounds.map_or(String::new(), |b| format!("{b} "));
        let head = format!("{template}{linkage}__global__ void {bounds}{}(", group.kernel);
        (structure, head, params)
    }

    /// Writes everything behind a child: an aggregated kernel for each of its groups. What its body is a function of is returned.
    pub fn aggregated_kernels(
        &self,
        index: usize,
        child: &Child<'db>,
        names: &mut Names,
        edit: &mut EditBuilder<'db>,
    ) -> Worker {
        let mut behind = outline::behind(edit, child);
        let mut collecting = Collecting::default();
        let member = self.member(child);
        let groups: Vec<usize> = (0..self.groups.len())
            .filter(|g| self.groups[*g].child == index)
            .collect();
        if let Some(member) = member {
            let needs = self.needs(member);
            collecting.args = needs.iter().map(|g| self.groups[*g].aggregator.clone()).collect();
            if child.outlined.is_none() {
                (collecting.template_params, collecting.params) = self.parameters(member, names);
                collecting.arena = Some(format!("{} {}", crate::facts::cluster::ARENA, self.arena));
                let function = &self.collection.cluster.functions[member];
                collecting.declarations = self.declarations(member, &self.arena, function, edit);
            }
        }
        let by_warps = groups.iter().any(|number| self.groups[*number].threads.is_some());
        let in_launcher = groups.iter().any(|number| self.groups[*number].serial.is_some());
        let shaped = groups.iter().any(|number| self.groups[*number].shaped);
        let form = if by_warps || in_launcher || shaped || self.strategy.runs_in_parent() {
            Form::Thread
        } else {
            Form::Block
        };
        collecting.unrestricted |= in_launcher || self.strategy.runs_in_parent();
        let kept = match form {
            Form::Block => self.collection.kept[index],
            Form::Thread | Form::Own => &[],
        };
        let worker = outline::outline_collecting(edit, &mut behind, child, form, kept, &collecting, names);
        for number in groups {
            let group = &self.groups[number];
            let Some(split) = group.split() else { continue };
            if let Some(serial) = group.serial.as_ref().filter(|_| !group.shares.serial) {
                behind.add(in_launcher::serial_of(&behind, child, &worker, serial));
            }
            if group.shares.kernel {
                continue;
            }
            let (structure, head, params) = self.kernel_head(group, child, &behind);
            if self.needed_early(number).is_none() && !structure.is_empty() {
                behind.add(structure);
            }
            if !self.strategy.has_kernel() {
                continue;
            }
            let (batch, args) = (child.local("batch"), child.local("args"));
            let record_type = if split.depends_on_template(child) {
                format!("{}{}", group.record, child.template_args)
            } else {
                group.record.clone()
            };
            let values = split.parts.iter().map(|p| {
                if p.uniform {
                    p.param.name.clone()
                } else {
                    format!("{args}.{}", p.param.name)
                }
            });
            let (prefix, items) = worker.call(child, values);
            let mut call = behind.call(2, &prefix, &items, ");");
            if self.strategy.separates_blocks(child) {
                call.push_str("\n\t\t__syncthreads();   // the next one uses the shared memory again");
            }
            let mut body = String::new();
            if let Some(member) = member {
                let arena = format!("{batch}.arena()");
                for line in self.declarations(member, &arena, &self.collection.cluster.functions[member], edit) {
                    body.push_str(&format!("\t{}\n", line.replace('\n', "\n\t")));
                }
            }
            let mut parameters = vec!["uint3 blockIdx", "dim3 gridDim", "dim3 blockDim"];
            let each = match group.threads {
                Some(_) => "for_each_thread",
                None => "for_each_block",
            };
            if group.threads.is_some() || group.shaped {
                parameters.insert(0, "uint3 threadIdx");
            }
            let own = format!("const {record_type}& {args}");
            parameters.push(&own);
            body.push_str(&behind.call_with_lambda(&format!("{batch}.{each}"), &[], &parameters, &call));
            let code = behind.function(&head, &params, &body);
            let comment = behind.taken_back(&self.collects(group, child));
            behind.add(format!("{comment}{code}"));
        }
        behind.finish(edit, child);
        worker
    }
}

/// Where a function begins, which may be the child itself.
fn child_front(child: &Child<'_>, function: &Function<'_>) -> usize {
    if child.item == function.item {
        child.front() as usize
    } else {
        function.start as usize
    }
}

/// Puts the declarations in front of a kernel's first statement.
pub fn declare(function: &Function<'_>, declarations: &[String], edit: &mut EditBuilder<'_>) {
    if declarations.is_empty() {
        return;
    }
    let style = edit.style(function.file);
    let body = function.item.body_span(function.db).shift(function.start);
    let open = body.start as usize + 1;
    let own = style::indent_at(&function.text, function.start as usize).to_owned();
    let indent = format!("{own}{}", style.unit);
    let code: String = declarations
        .iter()
        .map(|d| format!("{}{indent}{}", style.newline, style.fit(d, &indent)))
        .collect();
    // Behind a comment in the line of the brace; what else stands in that line goes to the next one.
    let line_end = style::line_end(&function.text, open);
    let rest = function.text.get(open..line_end).unwrap_or("");
    let inside = function.text.get(open..body.end as usize).unwrap_or("");
    let comments = lex::comments(inside).into_iter().map(|comment| lex::Token {
        start: comment.start + open,
        end: comment.end + open,
        ..comment
    });
    let mut comments = comments.filter(|comment| comment.start < line_end);
    // Not one that goes on in the next line.
    let ends = |comment: &lex::Token| {
        let beyond = function.text.get(line_end..comment.end.max(line_end));
        beyond.is_some_and(|text| text.trim().is_empty())
    };
    if lex::is_blank(rest) && comments.all(|comment| ends(&comment)) {
        edit.insert(function.file, line_end as u32, code);
    } else {
        let blank = rest.len() - rest.trim_start().len();
        let range = TextRange::new(open as u32, (open + blank) as u32);
        let file = function.file;
        let text = format!("{code}{}{indent}", style.newline);
        edit.replace(FileRange { file, range }, text);
    }
}
