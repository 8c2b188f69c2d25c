//! Aggregation of launches (El Hajj 2018, §3.1): what the rewrites `aggregate-warp`, `aggregate-block`, `aggregate-multiblock` and
//! `aggregate-grid` have in common.

use gridfuse_analysis::db::Db;
use gridfuse_analysis::hir::{ExprId, ExprKind, Literal, Name, StmtId, StmtKind, Storage};
use gridfuse_analysis::launch::{LaunchId, Stream, constant_value, launches};
use gridfuse_analysis::span::{FileRange, TextRange};
use gridfuse_analysis::summary::summary;
use gridfuse_analysis::uniformity::Level;

use crate::arena::Parent;
use crate::child::Child;
use crate::ctype;
use crate::edit::{EditBuilder, SourceEdit};
use crate::effects::{Effects, effects};
use crate::handlers::finish;
use crate::include::Header;
use crate::lex;
use crate::names::{Names, plural};
use crate::order::{self, CreatedStream};
use crate::outline::{self, Behind, Form, Worker};
use crate::pure;
use crate::rewrite::{Ineligible, Reason};
use crate::site::{Refusals, Site, refuse};
use crate::split::Split;
use crate::style;
use crate::target;

/// Whose launches become one launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Granularity {
    /// Of the threads of a warp.
    Warp,
    /// Of the threads of a block.
    Block,
    /// Of so many neighbouring blocks.
    MultiBlock(u64),
    /// Of the whole parent grid.
    Grid,
}

impl Granularity {
    /// The type in `gridfuse.cuh`.
    fn type_name(self) -> String {
        match self {
            Granularity::Warp => "gridfuse::PerWarp".to_owned(),
            Granularity::Block => "gridfuse::PerBlock".to_owned(),
            Granularity::MultiBlock(blocks) => format!("gridfuse::PerMultiBlock<{blocks}>"),
            Granularity::Grid => "gridfuse::PerGrid".to_owned(),
        }
    }

    /// For a comment and a message: the launches of what.
    fn noun(self) -> &'static str {
        match self {
            Granularity::Warp => "warp",
            Granularity::Block => "block",
            Granularity::MultiBlock(_) => "group of blocks",
            Granularity::Grid => "grid",
        }
    }

    /// What has to be uniform at this level is the same for all launches that are collected together.
    fn level(self) -> Level {
        match self {
            Granularity::Warp | Granularity::Block => Level::Block,
            Granularity::MultiBlock(_) | Granularity::Grid => Level::Grid,
        }
    }

    /// Shared memory that the aggregator takes, in bytes.
    fn shared_bytes(self) -> u32 {
        match self {
            Granularity::Warp => 32 * 48,
            Granularity::Block => 48,
            Granularity::MultiBlock(_) | Granularity::Grid => 16,
        }
    }
}

/// The launches of a parent that one aggregator collects: of one child, with the same template arguments.
struct Group<'a> {
    /// Index of the child.
    child: usize,
    /// Of each launch, its index and how its arguments are passed. Which are uniform is the same for all.
    launches: Vec<(usize, Split<'a>)>,
}

impl Group<'_> {
    /// The first launch's: says which parameters are uniform, and what their values are.
    fn split(&self) -> Option<&Split<'_>> {
        self.launches.first().map(|(_, split)| split)
    }
}

/// The edit that collects the launches of `launch`'s parent: all of them. Threads that write down a launch meet others of their
/// warp again, while the device runtime of CUDA 13.0 may let threads that launch at that time wait for ever (measured:
/// `tests/gpu/runtime_test.cu`, and see `put_aside` in `gridfuse.cuh`); so a parent either collects all its launches or none.
///
/// # Errors
/// The reasons why it can't be done.
pub fn aggregate<'db>(
    db: &'db dyn Db,
    launch: LaunchId<'db>,
    granularity: Granularity,
) -> Result<SourceEdit, Ineligible> {
    let site = Site::new(db, launch)?;
    let mut refusals = Refusals::default();
    let mut edit = EditBuilder::new(db);
    let mut names = Names::default();
    names.add_file(db, site.file);
    let mut sites = Vec::new();
    for index in 0..launches(db, site.parent).len() {
        let function = launch.function;
        let index = index as u32;
        sites.push(Site::new(db, LaunchId { function, index })?);
    }
    let mut streams = Vec::new();
    let mut children: Vec<Child<'db>> = Vec::new();
    let mut child_of = Vec::new();
    for site in &sites {
        site.refuse_common(&mut refusals);
        target::refuse_place(site, &mut refusals);
        target::refuse_operands(site, &mut refusals);
        streams.push(understand_stream(site, &mut refusals, &mut edit));
        refuse_blocks(site, granularity, &mut refusals);
        let Some(item) = site.child(&mut refusals) else {
            continue;
        };
        let known = children.iter().position(|c| c.item == item);
        let child = known.or_else(|| {
            names.add_file(db, item.file(db));
            children.push(Child::read(db, item, &mut names, &mut refusals)?);
            Some(children.len() - 1)
        });
        if let Some(index) = child {
            refuse_child(site, &children[index], &mut refusals);
            child_of.push(index);
        }
    }
    let parent_effects = effects(db, site.parent);
    let parent = Parent::find(&site, &parent_effects, &mut refusals);
    parent.add_names(&site, &mut names);
    for found in parent_effects
        .syncs
        .iter()
        .chain(&parent_effects.errors)
        .chain(&parent_effects.events)
    {
        if refusals.is_empty() {
            let what = format!("`{}` or a function it calls uses {}", site.parent_name(), found.what);
            refusals.add(what, Some(found.place));
        }
    }
    refuse_launches_of_callees(&site, &sites, &parent_effects, &mut refusals);
    let header = Header::for_file(db, site.file)
        .map_err(|r| refusals.add(r.text, r.place))
        .ok();
    let groups = if child_of.len() == sites.len() {
        group(&sites, &child_of, &children, granularity, &mut refusals)
    } else {
        Vec::new()
    };
    refusals.check()?;
    let Some(header) = header.filter(|_| !groups.is_empty()) else {
        return Err(refuse("the launch is not understood", Some(site.here())));
    };
    let bytes = granularity.shared_bytes() * groups.len() as u32;
    if let Some(reason) = shared_memory(&site, bytes, parent_effects.shared.first().map(|s| s.place)) {
        edit.assume(reason);
    }

    for child in &children {
        header.include_in(db, &mut edit, child.file);
    }
    let arena = parent.add_arena(&site, &header, groups.len(), &mut names, &mut edit);
    let mut kernels = vec![String::new(); groups.len()];
    for (index, child) in children.iter().enumerate() {
        let own = groups.iter().zip(&mut kernels).filter(|(g, _)| g.child == index);
        aggregated_kernels(&site, child, granularity, own, &mut names, &mut edit);
    }
    let mut declarations = Vec::new();
    for (group, kernel) in groups.iter().zip(&kernels) {
        let child = &children[group.child];
        let aggregator = names.fresh(&plural(&child.name));
        for (index, split) in &group.launches {
            replace_launch(&sites[*index], split, &aggregator, &mut edit);
        }
        let declaration = Declaration {
            granularity,
            kernel,
            name: &aggregator,
            arena: &arena,
        };
        let first = group.launches.first().map(|(index, split)| (&sites[*index], split));
        declarations.extend(first.map(|(site, split)| declaration.code(site, child, split, &mut edit)));
    }
    declare(&site, &declarations, &mut edit);
    for (site, stream) in sites.iter().zip(streams) {
        let Some(stream) = stream else { continue };
        for stmt in stream.declaration.iter().chain(&stream.create).chain(&stream.destroy) {
            edit.delete_lines(site.place(site.body.stmt(*stmt).span));
        }
    }
    finish(edit)
}

/// Puts the launches together that one aggregator can collect: those of one child with the same template arguments and, for
/// blocks of several dimensions, the same block.
fn group<'a, 'db>(
    sites: &'a [Site<'db>],
    child_of: &[usize],
    children: &'a [Child<'db>],
    granularity: Granularity,
    refusals: &mut Refusals,
) -> Vec<Group<'a>> {
    let mut members: Vec<Vec<usize>> = Vec::new();
    for (index, site) in sites.iter().enumerate() {
        let fits = |m: &&mut Vec<usize>| {
            m.first()
                .is_some_and(|first| child_of[*first] == child_of[index] && alike(&sites[*first], site))
        };
        match members.iter_mut().find(fits) {
            Some(group) => group.push(index),
            None => members.push(vec![index]),
        }
    }
    let level = granularity.level();
    members
        .into_iter()
        .filter_map(|members| {
            let child_index = child_of[*members.first()?];
            let child = &children[child_index];
            // What is uniform for every launch, and the same.
            let mut varying = vec![false; child.params.len()];
            let mut scratch = Refusals::default();
            let splits: Vec<Split<'_>> = members
                .iter()
                .map(|m| Split::of(&sites[*m], child, level, &varying, &mut scratch))
                .collect();
            for (index, varies) in varying.iter_mut().enumerate() {
                let mut parts = splits.iter().map(|s| s.parts.get(index));
                let first = parts.next().flatten()?;
                *varies =
                    !first.uniform || parts.any(|p| p.is_none_or(|p| !p.uniform || p.initialiser != first.initialiser));
            }
            let launches = members
                .iter()
                .map(|m| (*m, Split::of(&sites[*m], child, level, &varying, refusals)))
                .collect();
            Some(Group {
                child: child_index,
                launches,
            })
        })
        .collect()
}

/// Whether one aggregator can collect both launches, given that they are of the same child.
fn alike(a: &Site<'_>, b: &Site<'_>) -> bool {
    template_words(a) == template_words(b) && block_words(a) == block_words(b)
}

fn template_words<'a>(site: &'a Site<'_>) -> Vec<&'a str> {
    let span = site.launch.template_args;
    span.map_or_else(Vec::new, |t| lex::code_words(site.source(t)))
}

/// Empty for a block of one dimension, whose size may differ from launch to launch.
fn block_words<'a>(site: &'a Site<'_>) -> Vec<&'a str> {
    if is_linear_block(site) {
        return Vec::new();
    }
    lex::code_words(site.source(site.facts.block.operand.span))
}

/// Launches in functions that the parent calls can't be collected.
fn refuse_launches_of_callees(site: &Site<'_>, own: &[Site<'_>], effects: &Effects, refusals: &mut Refusals) {
    if effects.launches.len() <= own.len() {
        return;
    }
    let other = effects
        .launches
        .iter()
        .find(|l| own.iter().all(|site| site.here() != l.place));
    if let Some(found) = other {
        refusals.add(
            format!(
                "`{}` calls a function that launches: a block that collects some launches and does others at once can \
                 hang (CUDA 13.0)",
                site.parent_name()
            ),
            Some(found.place),
        );
    }
}

/// Assumptions or refusals because of the stream; a created stream that is to be removed.
fn understand_stream(site: &Site<'_>, refusals: &mut Refusals, edit: &mut EditBuilder<'_>) -> Option<CreatedStream> {
    let operand = site.facts.stream_operand.as_ref();
    let place = operand.map(|o| site.place(o.span));
    match &site.facts.stream {
        Stream::FireAndForget => {}
        Stream::Null => {
            for reason in order::null_stream(site) {
                edit.assume(reason);
            }
        }
        Stream::Created(binding) => {
            let stream = order::created_stream(site, *binding);
            let name = operand.map_or("", |o| site.source(o.span)).to_owned();
            if let Some(other) = stream.other {
                let place = site.place(site.body.expr(other).span);
                refusals.add(
                    format!("the stream `{name}` is used for more than this launch"),
                    Some(place),
                );
                return None;
            }
            let removable = |s: &StmtId| matches!(site.around(*s), Some(StmtKind::Block(_)));
            let clean = stream.create.len() == 1
                && stream
                    .declaration
                    .iter()
                    .chain(&stream.create)
                    .chain(&stream.destroy)
                    .all(removable);
            if stream.declaration.is_none() || !clean {
                refusals.add(format!("the stream `{name}` can't be removed cleanly"), place);
                return None;
            }
            if stream.shared_by_iterations {
                edit.assume(order::shared_stream(site, &name));
            }
            return Some(stream);
        }
        Stream::TailLaunch => refusals.add(
            "a tail launch runs after the launching grid, an aggregated launch doesn't wait for it",
            place,
        ),
        Stream::PerThread => refusals.add(
            "launches into each thread's own stream (cudaStreamPerThread, `--default-stream per-thread`) are not supported",
            place,
        ),
        Stream::Other => refusals.add("which stream it goes into isn't known", place),
    }
    None
}

/// Blocks of different shapes fit into one launch only when they are one-dimensional.
fn refuse_blocks(site: &Site<'_>, granularity: Granularity, refusals: &mut Refusals) {
    let block = &site.facts.block;
    let linear = is_linear_block(site);
    let alike = block.operand.uniformity.level <= granularity.level() && !block.operand.changes_in_loop;
    if block.constant.is_none() && !linear && !alike {
        refusals.add(
            "the blocks of the child may have several dimensions and differ from launch to launch",
            Some(site.place(block.operand.span)),
        );
    }
}

/// The block is sure to have one dimension.
fn is_linear_block(site: &Site<'_>) -> bool {
    let block = &site.facts.block;
    matches!(block.components, Some([_, None, None])) || is_linear(site, block.operand.expr)
}

/// A number, or a local `dim3` made of one number that nothing changes.
fn is_linear(site: &Site<'_>, expr: ExprId) -> bool {
    let body = &site.body;
    match &body.expr(body.strip_parens(expr)).kind {
        ExprKind::Construct { ty, args } => ty == "dim3" && args.len() == 1,
        ExprKind::Name(Name::Local(binding)) => {
            let mut inits = body.stmts.iter().filter_map(|stmt| match &stmt.kind {
                StmtKind::Decl(decls) => decls.iter().find(|d| d.binding == *binding),
                _ => None,
            });
            let init = inits.next().and_then(|d| d.init);
            inits.next().is_none()
                && pure::keeps_first_value(site.db, site.file, body, *binding)
                && init.is_some_and(|i| matches!(body.expr(i).kind, ExprKind::Construct { .. }) && is_linear(site, i))
        }
        _ => false,
    }
}

fn refuse_child(site: &Site<'_>, child: &Child<'_>, refusals: &mut Refusals) {
    let db = site.db;
    let name = &child.name;
    let worker = child.worker();
    let effects = effects(db, worker);
    outline::refuse_to_outline(child, Form::Block, &effects, refusals);
    target::refuse_unseen(site, child, refusals);
    for (list, what) in [
        (&effects.waits, "may wait for another thread"),
        (&effects.events, "uses events"),
    ] {
        if let Some(first) = list.first() {
            refusals.add(format!("`{name}` {what}: {}", first.what), Some(first.place));
        }
    }
    if let Some(span) = summary(db, worker).may_wait.filter(|_| effects.waits.is_empty()) {
        let place = FileRange {
            file: worker.file(db),
            range: span.shift(worker.start(db)),
        };
        refusals.add(format!("`{name}` may wait for another thread"), Some(place));
    }
    let own = launches(db, worker);
    let odd = own
        .iter()
        .find(|l| !matches!(l.stream, Stream::Null | Stream::FireAndForget | Stream::Created(_)));
    if let Some(odd) = odd {
        let place = FileRange {
            file: worker.file(db),
            range: odd.span.shift(worker.start(db)),
        };
        refusals.add(
            format!("`{name}` launches into a stream that depends on which grid launches"),
            Some(place),
        );
    } else if effects.launches.len() > own.len() {
        let place = effects.launches.last().map(|l| l.place);
        refusals.add(format!("`{name}` calls functions that launch"), place);
    }
    if site.facts.recursive {
        refusals.add(
            format!("`{name}` launches itself or its parent again"),
            Some(child.place()),
        );
    }
}

/// The aggregator keeps its state in shared memory: an assumption, unless the parent is sure to leave enough.
fn shared_memory(site: &Site<'_>, needed: u32, used: Option<FileRange>) -> Option<Reason> {
    let place = used?;
    let body = &site.body;
    let mut bytes: i128 = 0;
    let mut known = place.file == site.file;
    for binding in &body.bindings {
        match binding.storage {
            Storage::Shared => {}
            Storage::ExternShared => known = false,
            _ => continue,
        }
        let size = match ctype::normalize(&binding.ty.base).as_str() {
            _ if binding.ty.pointers > 0 => 8,
            "char" | "unsigned char" | "signed char" | "bool" => 1,
            "short" | "unsigned short" => 2,
            "int" | "unsigned int" | "float" => 4,
            "long" | "unsigned long" | "long long" | "unsigned long long" | "double" | "size_t" | "int2" | "float2" => {
                8
            }
            "int4" | "uint4" | "float4" | "double2" => 16,
            _ => {
                known = false;
                0
            }
        };
        let mut count = 1;
        for extent in &binding.ty.array {
            match extent.and_then(|e| constant_value(site.db, site.parent, body, e)) {
                Some(extent) => count *= extent,
                None => known = false,
            }
        }
        bytes += size * count;
    }
    let own = body.bindings.iter().any(|b| b.storage == Storage::Shared);
    (!known || !own || bytes > 48 * 1024 - 208 - i128::from(needed)).then(|| Reason {
        text: format!(
            "a block of `{}` leaves {needed} bytes of the shared memory that it may use",
            site.parent_name()
        ),
        place: Some(place),
    })
}

/// Writes everything behind the child: an aggregated kernel for each group, whose name is put beside it.
fn aggregated_kernels<'a, 'db>(
    site: &Site<'db>,
    child: &Child<'db>,
    granularity: Granularity,
    groups: impl Iterator<Item = (&'a Group<'a>, &'a mut String)>,
    names: &mut Names,
    edit: &mut EditBuilder<'db>,
) {
    let mut behind = outline::behind(edit, child);
    let worker = outline::outline(edit, &mut behind, child, Form::Block, names);
    for (group, kernel) in groups {
        if let Some(split) = group.split() {
            *kernel = aggregated_kernel(site, child, granularity, split, &worker, names, &mut behind);
        }
    }
    behind.finish(edit, child);
}

/// Adds one aggregated kernel and the struct of its varying arguments; gives its name.
fn aggregated_kernel(
    site: &Site<'_>,
    child: &Child<'_>,
    granularity: Granularity,
    split: &Split<'_>,
    worker: &Worker,
    names: &mut Names,
    behind: &mut Behind,
) -> String {
    let record = names.fresh(&format!("{}_args", child.name));
    let kernel = names.fresh(&format!("{}_aggregated", child.name));
    let local = |wanted: &str| {
        let mut name = wanted.to_owned();
        while child.params.iter().any(|p| p.name == name) {
            name.insert_str(0, "launch_");
        }
        name
    };
    let (batch, args) = (local("batch"), local("args"));
    let template = child
        .template
        .as_ref()
        .map_or(String::new(), |t| format!("{}\n", outline::one_line(t)));
    let template_names = &child.item.signature(site.db).template_names;
    let depends = split
        .varying()
        .any(|p| lex::identifiers(&p.param.field).any(|w| template_names.iter().any(|n| n == w)));
    let record_type = if depends {
        format!("{record}{}", child.template_args)
    } else {
        record.clone()
    };

    let fields: Vec<String> = split
        .varying()
        .map(|p| format!("{};", outline::one_line(&p.param.field)))
        .collect();
    let comment = format!(
        "// The arguments of {} that differ within a {} of {}.",
        child.name,
        granularity.noun(),
        site.parent_name()
    );
    let header = if depends { template.as_str() } else { "" };
    let line = format!("struct {record} {{ {} }};", fields.join(" "));
    let structure = if fields.is_empty() {
        format!(
            "// No argument of {} differs within a {} of {}.\nstruct {record} {{}};",
            child.name,
            granularity.noun(),
            site.parent_name()
        )
    } else if behind.column() + line.chars().count() <= behind.style().width && !behind.style().brace_on_own_line {
        format!("{comment}\n{header}{line}")
    } else {
        let open = behind.style().open_brace();
        format!(
            "{comment}\n{header}struct {record}{open}\n\t{}\n}};",
            fields.join("\n\t")
        )
    };
    behind.add(structure);

    let mut params = vec![format!("gridfuse::Batch<{record_type}> {batch}")];
    params.extend(split.uniform().map(|p| outline::one_line(&p.param.decl)));
    let values = split.parts.iter().map(|p| {
        if p.uniform {
            p.param.name.clone()
        } else {
            format!("{args}.{}", p.param.name)
        }
    });
    let (prefix, items) = worker.call(child, values);
    let call = behind.call(2, &prefix, &items, ");");
    let body = format!(
        "\t{batch}.for_each_block([&](uint3 blockIdx, dim3 gridDim, dim3 blockDim, const {record_type}& {args}) {{\n{call}\n\t}});"
    );
    let is_static = if child.is_static { "static " } else { "" };
    let bounds = child
        .launch_bounds
        .as_ref()
        .map_or(String::new(), |b| format!("{} ", outline::one_line(b)));
    let head = format!("{template}{is_static}__global__ void {bounds}{kernel}(");
    let code = behind.function(&head, &params, &body);
    behind.add(code);
    kernel
}

/// What the parent's aggregator is declared with.
struct Declaration<'a> {
    granularity: Granularity,
    /// The aggregated kernel's name.
    kernel: &'a str,
    /// The variable.
    name: &'a str,
    /// The arena's name.
    arena: &'a str,
}

impl Declaration<'_> {
    /// Its line, or lines, without indentation of the first.
    fn code(&self, site: &Site<'_>, child: &Child<'_>, split: &Split<'_>, edit: &mut EditBuilder<'_>) -> String {
        let style = edit.style(site.file);
        let indent = format!("{}{}", style::indent_at(&site.text, site.start as usize), style.unit);
        let template_args = site.launch.template_args.map_or("", |t| site.source(t));
        let template_args = if child.template.is_some() { template_args } else { "" };
        let prefix = format!(
            "gridfuse::Aggregator<{}, {}{template_args}> {}(",
            self.granularity.type_name(),
            target::qualified(site, child, self.kernel),
            self.name
        );
        let mut items = vec![self.arena.to_owned()];
        items.extend(split.uniform().map(|p| p.initialiser.clone()));
        let code = style.list(style::columns(&indent), &prefix, &items, ");");
        style.fit(&code, &indent)
    }
}

/// Puts the declarations in front of the parent's first statement.
fn declare(site: &Site<'_>, declarations: &[String], edit: &mut EditBuilder<'_>) {
    let style = edit.style(site.file);
    let body = site.parent.body_span(site.db).shift(site.start);
    let open = body.start as usize + 1;
    let own = style::indent_at(&site.text, site.start as usize).to_owned();
    let indent = format!("{own}{}", style.unit);
    let code: String = declarations
        .iter()
        .map(|d| format!("{}{indent}{d}", style.newline))
        .collect();
    // Behind a comment in the line of the brace; what else stands in that line goes to the next one.
    let line_end = style::line_end(&site.text, open);
    let rest = site.text.get(open..line_end).unwrap_or("");
    if lex::is_blank(rest) && lex::comments(rest).iter().all(|c| open + c.end <= line_end) {
        edit.insert(site.file, line_end as u32, code);
    } else {
        let blank = rest.len() - rest.trim_start().len();
        let range = TextRange::new(open as u32, (open + blank) as u32);
        let file = site.file;
        let text = format!("{code}{}{indent}", style.newline);
        edit.replace(FileRange { file, range }, text);
    }
}

/// Replaces the launch expression by a call of the aggregator.
fn replace_launch(site: &Site<'_>, split: &Split<'_>, aggregator: &str, edit: &mut EditBuilder<'_>) {
    let style = edit.style(site.file);
    let span = site.facts.span;
    let place = site.place(span);
    let mut kept = vec![site.facts.grid.operand.span, site.facts.block.operand.span];
    let mut items: Vec<String> = kept.iter().map(|s| target::flat(site.source(*s))).collect();
    if let Some(shared) = &site.facts.shared {
        let zero = matches!(
            site.body.expr(site.body.strip_parens(shared.expr)).kind,
            ExprKind::Literal(Literal::Int(0))
        );
        if !zero {
            kept.push(shared.span);
            items.push(target::flat(site.source(shared.span)));
        }
    }
    let fields: Vec<String> = split.varying().map(|p| p.initialiser.clone()).collect();
    kept.extend(split.varying().map(|p| site.body.expr(p.arg).span));
    items.push(format!("{{{}}}", fields.join(", ")));
    let start = place.range.start as usize;
    let line = style::line_start(&site.text, start);
    let before = site.text.get(line..start).unwrap_or("");
    let indent = style::indent_at(&site.text, start);
    let column = style::columns(indent) + before.chars().count() - indent.chars().count();
    let code = style.list(column, &format!("{aggregator}.launch("), &items, ")");
    // Aligned below the first item, wherever the statement begins in its line.
    let align = " ".repeat(before.chars().count() - indent.chars().count());
    let code = code.replace('\n', &format!("{}{indent}{align}", style.newline));
    edit.replace(place, code);

    // Comments between operands that are gone stay behind the statement.
    let source = site.source(span).to_owned();
    let lost: Vec<String> = lex::comments(&source)
        .iter()
        .filter(|c| {
            let at = span.start + c.start as u32;
            !kept.iter().any(|k| k.start <= at && at < k.end)
        })
        .map(|c| {
            c.text(&source)
                .trim_start_matches("//")
                .trim_start_matches("/*")
                .trim_end_matches("*/")
        })
        .map(outline::one_line)
        .filter(|c| !c.is_empty())
        .collect();
    if let Some(statement) = site.facts.statement.filter(|_| !lost.is_empty()) {
        let end = site.body.stmt(statement).span.shift(site.start).end;
        let rest = site
            .text
            .get(end as usize..style::line_end(&site.text, end as usize))
            .unwrap_or("");
        let text = lost.join("; ");
        let comment = if rest.trim().is_empty() {
            format!("   // {text}")
        } else {
            format!(" /* {text} */")
        };
        edit.insert(site.file, end, comment);
    }
}
