//! `flatten-recursion`

use gridfuse_analysis::db::Db;
use gridfuse_analysis::hir::{ExprId, StmtKind};
use gridfuse_analysis::launch::{Child as Launched, LaunchFacts, LaunchId, Stream, launches};
use gridfuse_analysis::resolve::{launch_sites_of, other_mentions};
use gridfuse_analysis::span::FileRange;

use super::{finish, verdict};
use crate::aggregate::{
    depends_on_template, local, refuse_child, replace_by_call, replace_launch, template_line, understand_stream,
};
use crate::barriers;
use crate::child::Child;
use crate::cluster::{Function, parameter};
use crate::edit::{EditBuilder, SourceEdit};
use crate::effects::effects;
use crate::include::{HEADER_NAME, Header};
use crate::launch_bounds;
use crate::lex;
use crate::names::{Names, plural};
use crate::order::CreatedStream;
use crate::outline::{self, Behind, Collecting, Form};
use crate::pure;
use crate::rewrite::{Ineligible, Options, Reason, Rewrite, Verdict};
use crate::room::stands_behind;
use crate::site::{Refusals, Site, refuse};
use crate::split::Split;
use crate::style;
use crate::target;

pub(super) const REWRITE: Rewrite = Rewrite {
    id: "flatten-recursion",
    title: "Flatten the recursion into one kernel",
    doc: DOC,
    options: &[],
    check,
    apply,
};

const DOC: &str = r#"Runs a kernel that launches itself as a single grid, whose blocks take from a worklist what is left to do.

The kernel's body becomes a function, `visit_body`. What was a launch of the kernel by itself writes down a record for each block of
that grid. `visit_flattened` has as many blocks as the device can run at a time; each of them takes a record, runs the body as the
block that it stands for, and takes the next one, until there is none left and nobody is at work who could add one. A block
that launches keeps one record for itself, so that a chain of single launches never waits for anybody. The depth of
the recursion has no limit any more, and no pending launches add up.

The host launches `visit_flattened`, with the arguments of the first grid in the worklist. `visit` itself stays, for launches that
the rewrite doesn't see; from there each launch goes out by itself.

A launch is never lost. One that doesn't fit is done as before: when there is no more room (for 2^18 records), when its block is of
another size than that of the first grid or has more dynamic shared memory, and when it has more than 4096 blocks.
`gridfuse::direct_launches()` counts those.

## Needs
- A kernel with launches of itself in its own body; launches in functions that it calls are refused.
- Fire-and-forget launches, launches into the NULL stream, or into streams that are created for one launch each (these are removed).
  No tail launches, by the kernel or by what it calls: they wait for the launching grid, which is now the only one.
- Every barrier is reached by all threads of a block or by none, as the blocks' threads wait for each other between two records.
- A kernel that doesn't wait for its children or for other blocks, nor use events or `cudaGetLastError`.
- A launch by the host that can be changed.

It assumes that grids that the NULL stream would run one after the other are independent of each other, unless that is proven. Where
another kernel is launched into the NULL stream behind the recursive launch (as to merge what the recursion has sorted) that is
refused.

## Why it can't hang
A block that wants work takes a ticket. The tickets, in order, stand for the blocks of the first grid and then for the records. A
block whose record isn't there yet waits for it, and looks from time to time whether everything is done. So:

- Only blocks that run have tickets. A block that hasn't begun is not waited for: it is enough that blocks that have begun go on,
  which is what CUDA promises for compute capability 7.0 and newer. With fewer resident blocks than expected (another kernel, a
  debugger, a partition of the GPU) the others begin when these are done, and find nothing to do. One block is enough.
- A record gets its place before it is written, and is written without waiting for anything but, after 2^18 records, for the
  reader of what stood there before. That one has a ticket, so it runs; it reads and leaves before it begins to work. There are
  never more records under way than places, so it isn't waiting for a record that comes later.
- The number of records that aren't done counts those that are being run. It comes to nothing only when no block can add one.
- Launches that go out by themselves are waited for by nobody.

A record is written before its place is marked as full, with a fence in between, and read behind another one: a block sees
what the thread that launched it had written or seen. This is the order that a launch gives, too.

## Before
```cuda
// The children of a node of a tree have the numbers row[node] to row[node + 1] - 1.
__global__ void visit(const int* row, int* depths, int first, int depth) {
    int node = first + blockIdx.x;
    depths[node] = depth;
    int begin = row[node], count = row[node + 1] - begin;
    if (count > 0) visit<<<count, 1, 0, cudaStreamFireAndForget>>>(row, depths, begin, depth + 1);
}

void run(const int* row, int* depths, int root, cudaStream_t stream) {
    visit<<<1, 1, 0, stream>>>(row, depths, root, 0);
}
```

## After
```cuda
#include "gridfuse.cuh"

// The arguments of visit that differ between its launches.
struct visit_args { int first; int depth; };

__global__ void visit_flattened(gridfuse::Worklist<visit_args> worklist, const int* row,
                                int* depths);

// The children of a node of a tree have the numbers row[node] to row[node + 1] - 1.
__device__ __forceinline__ void visit_body(gridfuse::Recursion<visit_flattened>& visits,
                                           uint3 blockIdx, dim3 gridDim, dim3 blockDim,
                                           const int* row, int* depths, int first, int depth) {
    int node = first + blockIdx.x;
    depths[node] = depth;
    int begin = row[node], count = row[node + 1] - begin;
    if (count > 0) visits.launch(count, 1, {begin, depth + 1});
}

__global__ void visit(const int* row, int* depths, int first, int depth) {
    // Without a worklist each launch goes out by itself.
    gridfuse::Recursion<visit_flattened> visits({}, row, depths);
    visit_body(visits, blockIdx, gridDim, blockDim, row, depths, first, depth);
}

__global__ void visit_flattened(gridfuse::Worklist<visit_args> worklist, const int* row,
                                int* depths) {
    gridfuse::Recursion<visit_flattened> visits(worklist, row, depths);
    visits.for_each_block([&](uint3 blockIdx, dim3 gridDim, dim3 blockDim, const visit_args& args) {
        visit_body(visits, blockIdx, gridDim, blockDim, row, depths, args.first, args.depth);
    });
}

void run(const int* row, int* depths, int root, cudaStream_t stream) {
    gridfuse::launch_recursion<visit_flattened>(1, 1, 0, stream, {root, 0}, row, depths);
}
```

## Source
Single-launcher recursion is what most programs with dynamic parallelism do (see El Hajj, dissertation 2018, chapter 4, for chains of
such launches). Worklists in persistent kernels: Aila and Laine, HPG 2009; Tzeng, Patney and Owens, HPG 2010; the queue with
tickets: Kerbl et al., The Broker Queue, ICS 2018.
"#;

fn check<'db>(db: &'db dyn Db, launch: LaunchId<'db>, options: &Options) -> Verdict {
    verdict(apply(db, launch, options))
}

fn apply<'db>(db: &'db dyn Db, launch: LaunchId<'db>, options: &Options) -> Result<SourceEdit, Ineligible> {
    options.validate(REWRITE.options)?;
    let asked = Site::new(db, launch)?;
    let mut refusals = Refusals::default();
    asked.refuse_common(&mut refusals);
    let kernel = asked.child(&mut refusals);
    if kernel != Some(asked.parent) {
        refusals.add(
            format!("`{}` isn't a kernel that launches itself here", asked.parent_name()),
            Some(asked.here()),
        );
    }
    refusals.check()?;
    let kernel = asked.parent;
    let mut edit = EditBuilder::new(db);
    let mut names = Names::default();
    names.add_file(db, asked.file);
    let child = Child::read(db, kernel, &mut names, &mut refusals);
    let header = Header::for_file(db, asked.file)
        .map_err(|r| refusals.add(r.text, r.place))
        .ok();
    refusals.check()?;
    let (Some(child), Some(header)) = (child, header) else {
        return Err(refuse("the launch is not understood", Some(asked.here())));
    };
    let sites = own_launches(db, &child);
    let mut streams = Vec::new();
    for site in &sites {
        site.refuse_common(&mut refusals);
        target::refuse_place(site, &mut refusals);
        target::refuse_operands_but_defaults(site, true, &mut refusals);
        streams.extend(understand_stream(site, &mut refusals, &mut edit));
        refuse_other_instance(site, &child, &mut refusals);
    }
    refuse_kernel(&asked, &child, &sites, &mut refusals, &mut edit);
    let uniform = uniform(&sites, &child);
    let splits: Vec<Split<'_>> = sites
        .iter()
        .map(|site| Split::of(site, &child, &uniform, &mut refusals))
        .collect();
    let entries = entries(&child, &uniform, &mut refusals);
    refusals.check()?;
    let Some(split) = splits.first() else {
        return Err(refuse("the launch is not understood", Some(asked.here())));
    };
    for (host, _) in &entries {
        names.add_file(db, host.file);
    }
    let plan = Plan {
        child: &child,
        split,
        record: names.fresh(&format!("{}_args", child.name)),
        kernel: names.fresh(&format!("{}_flattened", child.name)),
        launches: names.fresh(&plural(&child.name)),
        bounds: bounds(&child, split, &entries, &mut refusals, &mut edit),
    };
    refusals.check()?;
    header.include_in(db, &mut edit, child.file);
    plan.generate(&mut names, &mut edit);
    for (site, split) in sites.iter().zip(&splits) {
        replace_launch(site, split, &plan.launches, &mut edit);
    }
    if let Some(site) = sites.first() {
        remove(site, &streams, &mut edit);
    }
    for (host, split) in &entries {
        header.include_in(db, &mut edit, host.file);
        plan.replace_entry(host, split, &mut edit);
    }
    finish(edit)
}

/// The launches of a kernel by itself that stand in its body.
fn own_launches<'db>(db: &'db dyn Db, child: &Child<'db>) -> Vec<Site<'db>> {
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

fn launches_kernel(facts: &LaunchFacts<'_>, child: &Child<'_>) -> bool {
    matches!(facts.child, Launched::Kernel(kernel) if kernel == child.item)
}

/// A template that launches another instance of itself.
fn refuse_other_instance(site: &Site<'_>, child: &Child<'_>, refusals: &mut Refusals) {
    let written = site.launch.template_args.map_or("", |t| site.source(t));
    if child.template.is_some() && lex::code_words(written) != lex::code_words(&child.template_args) {
        refusals.add(
            format!(
                "`{}` may launch another instance of the template than its own",
                child.name
            ),
            Some(site.place(site.launch.name_span)),
        );
    }
}

/// Refuses a kernel that can't be run block by block by a grid that stays.
fn refuse_kernel<'db>(
    asked: &Site<'db>,
    child: &Child<'db>,
    sites: &[Site<'db>],
    refusals: &mut Refusals,
    edit: &mut EditBuilder<'db>,
) {
    let db = child.db;
    let name = &child.name;
    let effects = effects(db, child.item);
    refuse_child(asked, child, true, refusals);
    for reason in barriers::refuse_divergent(db, child.item, name, &effects, refusals) {
        edit.assume(reason);
    }
    if let Some(load) = effects.read_only.first() {
        edit.assume(Reason {
            text: format!(
                "`{name}` writes nothing that it reads by {}, which may miss what the same kernel has written",
                load.what
            ),
            place: Some(load.place),
        });
    }
    if child.template.as_ref().is_some_and(|t| t.contains('=')) {
        refusals.add(
            format!("`{name}` has default template arguments, and its kernel has to be declared twice"),
            Some(child.place()),
        );
    }
    let own = launches(db, child.item);
    if effects.launches.len() > own.len() {
        let place = effects.launches.last().map(|l| l.place);
        refusals.add(format!("`{name}` calls functions that launch"), place);
    }
    for other in own.iter().filter(|facts| !launches_kernel(facts, child)) {
        let place = Some(FileRange {
            file: child.file,
            range: other.span.shift(child.start),
        });
        match other.stream {
            Stream::FireAndForget | Stream::Created(_) => {}
            Stream::Null => {
                let follows = |site: &&Site<'_>| {
                    site.facts.stream == Stream::Null
                        && (site.facts.span.end <= other.span.start || !site.facts.loops.is_empty())
                        && !excludes(site, other.expr)
                };
                if sites.iter().any(|site| follows(&site)) {
                    refusals.add(
                        format!("the NULL stream runs this behind a grid of `{name}`, with all that it launches"),
                        place,
                    );
                }
            }
            _ => refusals.add(
                format!("`{name}` launches into a stream that depends on which grid launches"),
                place,
            ),
        }
    }
    let of_user = |m: &FileRange| m.file.path(db).file_name().is_none_or(|n| n != HEADER_NAME);
    for mention in other_mentions(db, child.item).into_iter().filter(of_user).take(3) {
        refusals.add(
            format!(
                "`{name}` is mentioned where it isn't launched, and what is set for it there doesn't hold for the flattened kernel"
            ),
            Some(mention),
        );
    }
}

/// Whether a launch and another expression stand in different branches of an `if`.
fn excludes(site: &Site<'_>, other: ExprId) -> bool {
    let body = &site.body;
    let (own, other) = (site.facts.span, body.expr(other).span);
    body.stmts.iter().any(|stmt| {
        let StmtKind::If {
            then,
            otherwise: Some(otherwise),
            ..
        } = &stmt.kind
        else {
            return false;
        };
        let (then, otherwise) = (body.stmt(*then).span, body.stmt(*otherwise).span);
        then.contains(own) && otherwise.contains(other) || then.contains(other) && otherwise.contains(own)
    })
}

/// For each parameter whether it is the same in the whole recursion: every launch passes it on as it is.
fn uniform(sites: &[Site<'_>], child: &Child<'_>) -> Vec<bool> {
    let passed_on = |site: &Site<'_>, index: usize| {
        let arg = site.launch.args.get(index).copied();
        arg.is_some_and(|arg| {
            parameter(&site.body, arg).is_some_and(|(at, binding)| {
                at == index && pure::is_immutable_parameter(site.db, site.file, &site.body, binding)
            })
        })
    };
    (0..child.params.len())
        .map(|index| sites.iter().all(|site| passed_on(site, index)))
        .collect()
}

/// The launches by the host that become launches of the flattened kernel. The others stay as they are.
fn entries<'a, 'db>(child: &'a Child<'db>, uniform: &[bool], refusals: &mut Refusals) -> Vec<(Site<'db>, Split<'a>)> {
    let db = child.db;
    let mut found = Vec::new();
    let mut problem = None;
    for id in launch_sites_of(db, child.item) {
        if id.function == child.item {
            continue;
        }
        let Ok(host) = Site::new(db, id) else { continue };
        let mut why = Refusals::default();
        refuse_entry(&host, child, &mut why);
        let split = Split::of(&host, child, uniform, &mut why);
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
                    "no launch of `{}` by the host was found, which would have to launch the flattened kernel",
                    child.name
                ),
                Some(child.place()),
            ),
        }
    }
    found
}

fn refuse_entry(host: &Site<'_>, child: &Child<'_>, refusals: &mut Refusals) {
    let name = &child.name;
    let here = Some(host.here());
    let signature = host.parent.signature(host.db);
    if signature.kernel || signature.device {
        refusals.add(
            format!(
                "`{}` launches `{name}` from the device, where no worklist can be made",
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
    if child.template.is_some() && host.launch.template_args.is_none() {
        refusals.add(format!("the template arguments of `{name}` are deduced"), here);
    }
    if !stands_behind(host, child, child.start) {
        refusals.add(
            format!("the flattened kernel isn't declared before this launch of `{name}` by the host"),
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

/// The launch bounds of the flattened kernel, with a space, or nothing: those of the kernel. Where it has none, and blocks of 64
/// registers a thread may be too large, those that the host launches, so that it doesn't come to need more registers than there are.
fn bounds<'db>(
    child: &Child<'db>,
    split: &Split<'_>,
    entries: &[(Site<'db>, Split<'_>)],
    refusals: &mut Refusals,
    edit: &mut EditBuilder<'db>,
) -> String {
    let needed = launch_bounds::needed(split.varying().map(|p| &p.param.ty), false);
    if let Some(bounds) = &child.launch_bounds {
        let function = Function::new(child.db, child.item);
        launch_bounds::keep(&function, None, needed, refusals, edit);
        return format!("{} ", outline::one_line(bounds));
    }
    let sizes = entries
        .iter()
        .map(|(host, _)| launch_bounds::largest_block(std::slice::from_ref(host)));
    let largest = sizes
        .collect::<Option<Vec<u64>>>()
        .and_then(|sizes| sizes.into_iter().max());
    match (largest, needed) {
        (Some(threads), _) if threads <= 256 => String::new(),
        (threads, Some(needed)) if needed <= 64 => format!("__launch_bounds__({}) ", threads.unwrap_or(1024).min(1024)),
        _ => {
            edit.assume(Reason {
                text: format!(
                    "blocks of `{}` are small enough to have as many registers as its launches take",
                    child.name
                ),
                place: Some(child.place()),
            });
            String::new()
        }
    }
}

/// Takes away the streams that were there for one launch each.
fn remove<'db>(site: &Site<'db>, streams: &[CreatedStream], edit: &mut EditBuilder<'db>) {
    for stream in streams {
        for stmt in stream.declaration.iter().chain(&stream.create).chain(&stream.destroy) {
            edit.delete_lines(site.place(site.body.stmt(*stmt).span));
        }
    }
}

/// The names of what is generated.
struct Plan<'a, 'db> {
    child: &'a Child<'db>,
    split: &'a Split<'a>,
    /// The struct of the arguments that differ.
    record: String,
    /// The flattened kernel.
    kernel: String,
    /// The variable of type `gridfuse::Recursion`.
    launches: String,
    /// `__launch_bounds__(…) `
    bounds: String,
}

impl<'db> Plan<'_, 'db> {
    /// The struct as the flattened kernel has to name it.
    fn record_type(&self) -> String {
        let args = if depends_on_template(self.child, self.split) {
            self.child.template_args.as_str()
        } else {
            ""
        };
        format!("{}{args}", self.record)
    }

    fn recursion(&self) -> String {
        format!("gridfuse::Recursion<{}{}>", self.kernel, self.child.template_args)
    }

    /// Head and parameters of the flattened kernel. They aren't `__restrict__`: what one block has written another one of the same
    /// grid reads.
    fn head(&self, worklist: &str) -> (String, Vec<String>) {
        let is_static = if self.child.is_static { "static " } else { "" };
        let head = format!(
            "{}{is_static}__global__ void {}{}(",
            template_line(self.child),
            self.bounds,
            self.kernel
        );
        let mut params = vec![format!("gridfuse::Worklist<{}> {worklist}", self.record_type())];
        params.extend(self.split.uniform().map(|p| outline::one_line(&p.param.field)));
        (head, params)
    }

    /// The statement that declares the recursion.
    fn declaration(&self, worklist: &str, behind: &Behind) -> String {
        let mut items = vec![worklist.to_owned()];
        items.extend(self.split.uniform().map(|p| p.param.name.clone()));
        behind.call(1, &format!("{} {}(", self.recursion(), self.launches), &items, ");")
    }

    /// Writes what stands before the kernel, its new head, and what stands behind it.
    fn generate(&self, names: &mut Names, edit: &mut EditBuilder<'db>) {
        let child = self.child;
        let mut behind = outline::behind(edit, child);
        let worklist = local(child, "worklist");
        self.declare(&worklist, &behind, edit);

        let mut collecting = Collecting {
            args: vec![self.launches.clone()],
            declarations: vec![
                "// Without a worklist each launch goes out by itself.".to_owned(),
                self.declaration("{}", &behind).trim_start().to_owned(),
            ],
            ..Collecting::default()
        };
        if child.template.is_some() {
            // A template argument that names a kernel by parameters of another template isn't understood by nvcc.
            let ty = names.fresh("Launches");
            collecting.params = vec![format!("{ty}& {}", self.launches)];
            collecting.template_params = vec![format!("class {ty}")];
        } else {
            collecting.params = vec![format!("{}& {}", self.recursion(), self.launches)];
        }
        let worker = outline::outline_collecting(edit, &mut behind, child, Form::Block, &collecting, names);
        let args = local(child, "args");
        let values = self.split.parts.iter().map(|p| {
            if p.uniform {
                p.param.name.clone()
            } else {
                format!("{args}.{}", p.param.name)
            }
        });
        let (prefix, items) = worker.call(child, values);
        let call = behind.call(2, &prefix, &items, ");");
        let declaration = self.declaration(&worklist, &behind);
        let body = format!(
            "{declaration}\n\t{}.for_each_block([&](uint3 blockIdx, dim3 gridDim, dim3 blockDim, const {}& {args}) {{\n{call}\n\t}});",
            self.launches,
            self.record_type()
        );
        let (head, params) = self.head(&worklist);
        let code = behind.function(&head, &params, &body);
        behind.add(code);
        behind.finish(edit, child);
    }

    /// The struct of the arguments, and the flattened kernel's declaration, which the body needs.
    fn declare(&self, worklist: &str, behind: &Behind, edit: &mut EditBuilder<'db>) {
        let child = self.child;
        let fields: Vec<String> = self
            .split
            .varying()
            .map(|p| format!("{};", outline::one_line(&p.param.field)))
            .collect();
        let template = if depends_on_template(child, self.split) {
            template_line(child)
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
            let comment = format!("// The arguments of {} that differ between its launches.", child.name);
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
        let (head, params) = self.head(worklist);
        let (before, last) = head.rsplit_once('\n').map_or(("", head.as_str()), |(b, l)| (b, l));
        let newline = if before.is_empty() { "" } else { "\n" };
        let list = behind.style().list(behind.column(), last, &params, ");");
        let at = target::above_comment(child.db, child.file, child.front() as usize);
        let indent = style::indent_at(&child.text, at).to_owned();
        let code = format!("{structure}\n\n{before}{newline}{list}\n\n");
        let text = format!("{}{indent}", edit.style(child.file).fit(&code, &indent));
        edit.insert(child.file, at as u32, text);
    }

    /// `gridfuse::launch_recursion<…>(…)` in place of a launch by the host.
    fn replace_entry(&self, host: &Site<'db>, split: &Split<'_>, edit: &mut EditBuilder<'db>) {
        let mut kept = Vec::new();
        let mut items = Vec::new();
        for index in 0..4 {
            match host.launch.config.get(index) {
                Some(operand) => {
                    kept.push(host.body.expr(*operand).span);
                    items.push(target::flat(host.expr_source(*operand)));
                }
                None => items.push("0".to_owned()),
            }
        }
        let fields: Vec<String> = split.varying().map(|p| p.initialiser.clone()).collect();
        items.push(format!("{{{}}}", fields.join(", ")));
        for part in split.uniform() {
            items.push(part.initialiser.clone());
        }
        kept.extend(split.parts.iter().filter_map(|p| Some(host.body.expr(p.arg?).span)));
        let template_args = host.launch.template_args.map_or("", |t| host.source(t));
        let name = target::qualified(host, self.child, &self.kernel);
        let prefix = format!("gridfuse::launch_recursion<{name}{template_args}>(");
        replace_by_call(host, &prefix, &items, &kept, edit);
    }
}
