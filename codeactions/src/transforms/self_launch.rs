//! A kernel that launches itself as one grid that stays: what `flatten-recursion` and `persistent-loop` have in common. Which arguments
//! the launches pass on as they are, which launches by the host begin it, and the code that is generated: a struct of the
//! other arguments, a function with the body, and a second kernel in which an object of the runtime runs it.

use gridfuse_analysis::base::db::Db;
use gridfuse_analysis::facts::launch::{
    Child as Launched, Extent, LaunchFacts, LaunchId, Launchers, constant_value, launches,
};
use gridfuse_analysis::hir::resolve::launch_sites_of;
use gridfuse_analysis::hir::{Builtin, ExprId, ExprKind, Name, Type};

use crate::api::assumption;
use crate::api::refusal::Ineligible;
use crate::api::refusal::Reason;
use crate::api::refusal::Refusals;
use crate::api::refusal::refuse;
use crate::draft::Draft;
use crate::edit::builder::EditBuilder;
use crate::edit::names::{Names, plural};
use crate::edit::style;
use crate::emit::described;
use crate::emit::launch_bounds::{self, Needed};
use crate::emit::outline::{self, Behind, Collecting};
use crate::emit::replaced_launch::replace_by_call;
use crate::emit::split::Split;
use crate::emit::target;
use crate::emit::was;
use crate::facts::by_device;
use crate::facts::child::Child;
use crate::facts::cluster::{Function, parameter};
use crate::facts::instance;
use crate::facts::movable::{Form, KEPT_BLOCK};
use crate::facts::pure;
use crate::facts::room::stands_behind;
use crate::facts::site::Site;
use crate::transforms::iteration::Threads;

/// What of the runtime takes the kernel's place.
pub struct Runtime {
    /// What the kernel becomes: `flattened`.
    pub kernel: &'static str,
    /// Type of its first parameter, without the arguments.
    pub memory: &'static str,
    /// Name of that parameter.
    pub variable: &'static str,
    /// Type of the object that runs the body.
    pub runner: &'static str,
    /// Says what is so without memory.
    pub without: &'static str,
    /// Says of the second kernel what it does with all grids of the first: "Runs all grids of".
    pub purpose: &'static str,
}

/// Refuses a launch that isn't of the kernel by itself.
///
/// # Errors
/// Why it isn't.
pub fn refuse_other_kernel(draft: &mut Draft<'_>) -> Result<(), Ineligible> {
    let Draft { site, refusals, .. } = draft;
    if site.facts.launchers == Launchers::Host {
        site.refuse_common(refusals);
        refusals.check()?;
    }
    let kernel = site.child(refusals);
    let kernel = draft.settle(kernel)?;
    let site = &draft.site;
    if kernel != site.parent {
        return Err(refuse(
            format!("`{}` launches `{}`, not itself", site.parent_name(), site.child_name()),
            Some(site.here()),
        ));
    }
    Ok(())
}

/// The launches of a kernel by itself that stand in its body.
pub fn own_launches<'db>(db: &'db dyn Db, child: &Child<'db>) -> Vec<Site<'db>> {
    let own = launches(db, child.item).iter().enumerate();
    own.filter(|(_, facts)| launches_kernel(facts, child))
        .filter_map(|(index, _)| {
            let function = child.item;
            Site::new(
                db,
                LaunchId {
                    function,
                    index: index as u32,
                },
            )
            .ok()
        })
        .collect()
}

/// Whether a launch is one of this kernel, without doubt.
pub fn launches_kernel(facts: &LaunchFacts<'_>, child: &Child<'_>) -> bool {
    matches!(facts.child, Launched::Kernel(kernel) if kernel == child.item)
}

/// Refuses a template that launches another instance of itself.
pub fn refuse_other_instance(site: &Site<'_>, child: &Child<'_>, refusals: &mut Refusals) {
    if !instance::is_own(site, child) {
        refusals.add(
            format!(
                "`{}` may launch another instance of the template than its own",
                child.name
            ),
            Some(site.place(site.launch.name_span)),
        );
    }
}

/// Whether a configuration is a built-in variable as it is: `blockDim`.
pub fn is_builtin(site: &Site<'_>, expr: ExprId, builtin: Builtin) -> bool {
    let expr = site.body.expr(site.body.strip_parens(expr));
    matches!(expr.kind, ExprKind::Name(Name::Builtin(b)) if b == builtin)
}

/// Whether it is its first dimension: `blockDim.x`.
pub fn is_x_of(site: &Site<'_>, expr: ExprId, builtin: Builtin) -> bool {
    let expr = site.body.expr(site.body.strip_parens(expr));
    matches!(&expr.kind, ExprKind::Field { base, field, arrow: false } if field == "x" && is_builtin(site, *base, builtin))
}

/// Whether a grid or a block has one dimension.
pub fn is_linear(extent: &Extent) -> bool {
    let flat = extent.components.is_some_and(|c| c[1].is_none() && c[2].is_none());
    flat || extent.constant.is_some_and(|c| c[1] == 1 && c[2] == 1)
}

/// Whether a kernel's launch of itself is sure to have blocks of the same size as another launch of it.
pub fn keeps_block_size(site: &Site<'_>, other: &Site<'_>) -> bool {
    let own = site.facts.block.operand.expr;
    is_builtin(site, own, Builtin::BlockDim)
        || is_x_of(site, own, Builtin::BlockDim) && is_linear(&other.facts.block)
        || other.facts.block.constant.is_some() && other.facts.block.constant == site.facts.block.constant
}

/// The dynamic shared memory of a launch, when constant.
pub fn shared_bytes(site: &Site<'_>) -> Option<i128> {
    match &site.facts.shared {
        None => Some(0),
        Some(shared) => constant_value(site.db, site.parent, &site.body, shared.expr),
    }
}

/// For each parameter whether it is the same for all launches: every one passes it on as it is.
pub fn uniform(sites: &[Site<'_>], child: &Child<'_>) -> Vec<bool> {
    (0..child.params.len())
        .map(|index| sites.iter().all(|site| passed_on(site, index) == Some(index)))
        .collect()
}

/// The parameter of the launching kernel, by its number, that is passed on as it is as the argument with this number.
pub fn passed_on(site: &Site<'_>, index: usize) -> Option<usize> {
    let arg = site.launch.args.get(index).copied()?;
    let (at, binding) = parameter(&site.body, arg)?;
    pure::is_immutable_parameter(site.db, site.parent, &site.body, binding).then_some(at)
}

/// The launches by the host that become launches of the second kernel. The others stay as they are.
pub fn entries<'a, 'db>(
    child: &'a Child<'db>,
    uniform: &[bool],
    runtime: &Runtime,
    refusals: &mut Refusals,
) -> Vec<(Site<'db>, Split<'a>)> {
    let db = child.db;
    let mut found = Vec::new();
    let mut problem = None;
    for id in launch_sites_of(db, child.item) {
        if id.function == child.item {
            continue;
        }
        let Ok(host) = Site::new(db, id) else { continue };
        let mut why = Refusals::default();
        refuse_entry(&host, child, runtime, &mut why);
        let split = Split::at_launch(&host, child, uniform, &mut why);
        match why.check() {
            Ok(()) => found.push((host, split)),
            Err(Ineligible(reasons)) => problem = problem.or(reasons.into_iter().next()),
        }
    }
    if found.is_empty() {
        match problem {
            Some(reason) => refusals.add(reason.text, reason.place),
            None => refusals.add(
                format!(
                    "no launch of `{}` by the host was found, which would have to launch the {} kernel",
                    child.name, runtime.kernel
                ),
                Some(child.place()),
            ),
        }
    }
    found
}

fn refuse_entry(host: &Site<'_>, child: &Child<'_>, runtime: &Runtime, refusals: &mut Refusals) {
    let name = &child.name;
    let here = Some(host.here());
    if by_device::is_made_by_device(host) {
        refusals.add(
            format!(
                "`{}` launches `{name}` from the device, where no memory can be had for it",
                host.parent_name()
            ),
            here,
        );
    }
    if !launches_kernel(host.facts, child) {
        refusals.add(format!("whether this launches `{name}` isn't clear"), here);
    }
    if host.facts.from_macro {
        refusals.add(format!("the host launches `{name}` in a macro"), here);
    }
    if host.launch.config.len() < 2 || host.launch.config.len() > 4 {
        refusals.add("the configuration of this host launch is not understood", here);
    }
    if host.launch.args.len() != child.params.len() {
        refusals.add("this host launch leaves out arguments that have default values", here);
    }
    if !stands_behind(host, child, child.start) {
        refusals.add(
            format!(
                "the {} kernel isn't declared before this launch of `{name}` by the host",
                runtime.kernel
            ),
            here,
        );
    }
    for operand in host.launch.config.iter().chain(&host.launch.args) {
        if let Some(part) = pure::unknown_part(&host.body, *operand) {
            let place = host.place(host.body.expr(part).span);
            refusals.add("an operand of this host launch is not understood", Some(place));
        }
    }
    for arg in host.launch.args.iter().filter(|arg| pure::assigns(&host.body, **arg)) {
        let place = host.place(host.body.expr(*arg).span);
        refusals.add("an argument of this host launch changes a variable", Some(place));
    }
    for (span, reason) in &host.body.problems {
        if span.start < host.facts.span.end && host.facts.span.start < span.end {
            refusals.add(
                format!("this host launch is not understood: {reason}"),
                Some(host.place(*span)),
            );
        }
    }
}

/// The launch bounds of the second kernel, with a space, or nothing: those of the kernel. Where it has none, and blocks of 64
/// registers a thread may be too large, those that the host launches, so that it doesn't come to need more registers than there are. `varying`: the types of the arguments that differ; `block`: the size of all blocks, where it isn't what
/// the host launches.
pub fn bounds<'a, 'db>(
    child: &Child<'db>,
    varying: impl Iterator<Item = &'a Type>,
    entries: &[(Site<'db>, Split<'_>)],
    block: Option<&Threads>,
    refusals: &mut Refusals,
    edit: &mut EditBuilder<'db>,
) -> String {
    let needed = Needed::to_launch_alone(varying);
    if let Some(bounds) = &child.launch_bounds {
        let function = Function::new(child.db, child.item);
        launch_bounds::keep(&function, None, needed, refusals, edit);
        return format!("{} ", crate::edit::one_line::one_line(bounds));
    }
    let sizes = entries
        .iter()
        .map(|(host, _)| launch_bounds::largest_block(std::slice::from_ref(host)));
    let largest = sizes
        .collect::<Option<Vec<u64>>>()
        .and_then(|sizes| sizes.into_iter().max());
    let largest = match block {
        Some(block) => block.constant().map(|block| block.iter().product()),
        None => largest,
    };
    match (largest, needed.optimized()) {
        (Some(threads), _) if threads <= 256 => String::new(),
        (threads, Some(needed)) if needed <= 64 => {
            // What a template parameter says, where that is how large all blocks are.
            let named = block.filter(|block| block.constant().is_none() && block.linear());
            let threads = match named {
                Some(block) => block.operand(&[]),
                None => threads.unwrap_or(1024).min(1024).to_string(),
            };
            format!("__launch_bounds__({threads}) ")
        }
        _ => {
            edit.assume(assumption::ENOUGH_REGISTERS.of(Reason {
                text: format!(
                    "blocks of `{}` are small enough to have as many registers as its launches take",
                    child.name
                ),
                place: Some(child.place()),
            }));
            String::new()
        }
    }
}

/// What is generated, and its names.
pub struct Plan<'a, 'db> {
    /// The kernel that launches itself.
    pub child: &'a Child<'db>,
    /// Its launch.
    pub split: &'a Split<'a>,
    /// What runs it.
    pub runtime: &'static Runtime,
    /// The struct of the arguments that differ.
    pub record: String,
    /// The second kernel.
    pub kernel: String,
    /// The variable that stands for its launches.
    pub launches: String,
    /// `__launch_bounds__(…) `
    pub bounds: String,
}

impl<'a, 'db> Plan<'a, 'db> {
    /// Chooses the names.
    pub fn new(
        child: &'a Child<'db>,
        split: &'a Split<'a>,
        runtime: &'static Runtime,
        bounds: String,
        names: &mut Names,
    ) -> Plan<'a, 'db> {
        Plan {
            child,
            split,
            runtime,
            record: names.fresh(&format!("{}_args", child.name)),
            kernel: names.fresh(&format!("{}_{}", child.name, runtime.kernel)),
            launches: names.fresh(&plural(&child.name)),
            bounds,
        }
    }

    /// The struct as the second kernel has to name it.
    fn record_type(&self) -> String {
        let args = if self.split.depends_on_template(self.child) {
            self.child.template_args.as_str()
        } else {
            ""
        };
        format!("{}{args}", self.record)
    }

    fn runner(&self) -> String {
        let runner = self.runtime.runner;
        format!("gridfuse::{runner}<{}{}>", self.kernel, self.child.template_args)
    }

    /// Head and parameters of the second kernel. They aren't `__restrict__`: what one block has written another one of the same
    /// grid reads.
    fn head(&self, memory: &str) -> (String, Vec<String>) {
        let linkage = self.child.linkage();
        let head = format!(
            "{}{linkage}__global__ void {}{}(",
            self.child.template_line(),
            self.bounds,
            self.kernel
        );
        let mut params = vec![format!(
            "gridfuse::{}<{}> {memory}",
            self.runtime.memory,
            self.record_type()
        )];
        params.extend(
            self.split
                .uniform()
                .map(|p| crate::edit::one_line::one_line(&p.param.field)),
        );
        (head, params)
    }

    /// The statement that declares the object of the runtime.
    fn declaration(&self, memory: &str, behind: &Behind) -> String {
        let mut items = vec![memory.to_owned()];
        items.extend(self.split.uniform().map(|p| p.param.name.clone()));
        behind.call(1, &format!("{} {}(", self.runner(), self.launches), &items, ");")
    }

    /// Writes what stands before the kernel, its new head, and what stands behind it.
    pub fn generate(&self, names: &mut Names, edit: &mut EditBuilder<'db>) {
        let child = self.child;
        let mut behind = outline::behind(edit, child);
        let memory = child.local(self.runtime.variable);
        self.declare(&memory, &behind, edit);

        let mut collecting = Collecting {
            args: vec![self.launches.clone()],
            declarations: vec![
                format!("// {}", self.runtime.without),
                self.declaration("{}", &behind).trim_start().to_owned(),
            ],
            unrestricted: true,
            ..Collecting::default()
        };
        if child.template.is_some() {
            // A template argument that names a kernel by parameters of another template isn't understood by nvcc.
            let ty = names.fresh("Launches");
            collecting.params = vec![format!("{ty}& {}", self.launches)];
            collecting.template_params = vec![format!("class {ty}")];
        } else {
            collecting.params = vec![format!("{}& {}", self.runner(), self.launches)];
        }
        let worker = outline::outline_collecting(edit, &mut behind, child, Form::Block, KEPT_BLOCK, &collecting, names);
        let args = child.local("args");
        let values = self.split.parts.iter().map(|p| {
            if p.uniform {
                p.param.name.clone()
            } else {
                format!("{args}.{}", p.param.name)
            }
        });
        let (prefix, items) = worker.call(child, values);
        let call = behind.call(2, &prefix, &items, ");");
        let declaration = self.declaration(&memory, &behind);
        let own = format!("const {}& {args}", self.record_type());
        let parameters = ["uint3 blockIdx", "dim3 gridDim", "dim3 blockDim", &own];
        let each = format!("{}.for_each_block", self.launches);
        let each = behind.call_with_lambda(&each, &[], &parameters, &call);
        let body = format!("{declaration}\n{each}");
        let (head, params) = self.head(&memory);
        let code = behind.function(&head, &params, &body);
        let what = behind.taken_back(&format!("{} {}", self.runtime.purpose, child.name));
        behind.add(format!("{what}{code}"));
        behind.finish(edit, child);
    }

    /// The struct of the arguments, and the second kernel's declaration, which the body needs.
    fn declare(&self, memory: &str, behind: &Behind, edit: &mut EditBuilder<'db>) {
        let child = self.child;
        let fields: Vec<String> = self
            .split
            .varying()
            .map(|p| format!("{};", crate::edit::one_line::one_line(&p.param.field)))
            .collect();
        let template = if self.split.depends_on_template(child) {
            child.template_line()
        } else {
            String::new()
        };
        let line = format!("struct {} {{ {} }};", self.record, fields.join(" "));
        let wide = behind.column() + line.chars().count() > behind.style().width;
        let structure = if fields.is_empty() {
            format!(
                "// All launches of {} have the same arguments.\nstruct {} {{}};",
                child.name, self.record
            )
        } else {
            let comment = format!("The arguments of {} that differ between its launches.", child.name);
            let comment = described::lines(&comment, behind.style(), behind.column());
            if wide || behind.style().brace_on_own_line {
                let open = behind.style().open_brace();
                format!(
                    "{comment}\n{template}struct {}{open}\n\t{}\n}};",
                    self.record,
                    fields.join("\n\t")
                )
            } else {
                format!("{comment}\n{template}{line}")
            }
        };
        let (head, params) = self.head(memory);
        let (before, last) = head.rsplit_once('\n').map_or(("", head.as_str()), |(b, l)| (b, l));
        let newline = if before.is_empty() { "" } else { "\n" };
        let list = behind.style().list(behind.column(), last, &params, ");");
        let at = target::above_comment(child.db, child.file, child.front() as usize);
        let indent = style::indent_at(&child.text, at).to_owned();
        let code = format!("{structure}\n\n{before}{newline}{list}\n\n");
        let text = format!("{}{indent}", edit.style(child.file).fit(&code, &indent));
        edit.insert(child.file, at as u32, text);
    }

    /// `gridfuse::launch_recursion<…>(…)` in place of a launch by the host; `launch`: the function's name.
    pub fn replace_entry(&self, launch: &str, host: &Site<'db>, split: &Split<'_>, edit: &mut EditBuilder<'db>) {
        let fields: Vec<String> = split.varying().map(|p| p.initialiser.clone()).collect();
        replace_entry((launch, &self.kernel, self.child), host, split, &fields, None, edit);
    }
}

/// The same by a function, for a kernel of this name that takes the place of another one, with these initialisers of the arguments that
/// differ, and blocks of so many threads.
pub fn replace_entry<'db>(
    (launch, kernel, child): (&str, &str, &Child<'db>),
    host: &Site<'db>,
    split: &Split<'_>,
    fields: &[String],
    block: Option<String>,
    edit: &mut EditBuilder<'db>,
) {
    was::note(host, edit);
    let mut items = Vec::new();
    for index in 0..4 {
        match host.launch.config.get(index) {
            Some(operand) => items.push(crate::edit::one_line::flat(host.expr_source(*operand))),
            None => items.push(match index {
                2 => "/*shared_memory=*/0".to_owned(),
                3 => "/*stream=*/0".to_owned(),
                _ => "0".to_owned(),
            }),
        }
    }
    if let (Some(block), Some(item)) = (block, items.get_mut(1)) {
        *item = block;
    }
    items.push(format!("{{{}}}", fields.join(", ")));
    for part in split.uniform() {
        items.push(part.initialiser.clone());
    }
    let template_args = instance::list(&instance::at_launch(host, child).unwrap_or_default());
    let name = crate::facts::qualified::qualified(host, child, kernel);
    let prefix = format!("gridfuse::{launch}<{name}{template_args}>(");
    replace_by_call(host, &prefix, &items, edit);
}
