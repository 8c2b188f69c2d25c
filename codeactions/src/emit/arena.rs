//! Gives a kernel an arena: the parameter, and the argument at every host launch, in every file.

use gridfuse_analysis::base::db::{Db, SourceFile};
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::{Span, TextRange};
use gridfuse_analysis::facts::effects::Effects;
use gridfuse_analysis::facts::launch::Child;
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::resolve::{declarations_of, functions_named, launch_sites_of, other_mentions};
use gridfuse_analysis::hir::{Body, ExprKind};

use crate::api::refusal::Refusals;
use crate::edit::argument::named;
use crate::edit::builder::EditBuilder;
use crate::edit::include::Header;
use crate::edit::lex;
use crate::edit::names::words_with_macros;
use crate::emit::launchpad::{self, Listed};
use crate::emit::target;
use crate::facts::by_device;
use crate::facts::calls;
use crate::facts::cluster::ARENA;
use crate::facts::cluster::{Cluster, Function, refuse_own_head};
use crate::facts::pure;
use crate::facts::room::{Collected, bytes_per_thread};
use crate::facts::site::{Site, function_around};
use crate::runtime::is_header;

/// The parent kernel and everything that has to change when it gets an arena.
pub struct Parent<'db> {
    declarations: Vec<FunctionItem<'db>>,
    launches: Vec<Site<'db>>,
    /// The arena that an earlier rewrite has added: its index among the parameters, and its name.
    existing: Option<(usize, String)>,
}

/// What a kernel's arena has to have room for.
pub struct Room<'a, 'db> {
    /// What further aggregators collect, of each.
    pub collected: &'a [Collected<'a, 'db>],
    /// Children that collect launches in their turn.
    pub nested: bool,
    /// What the host launches, where it does.
    pub listed: &'a [Listed<'a, 'db>],
}

impl<'db> Parent<'db> {
    /// Finds all places; what can't be edited is refused. `effects` are those of the kernel; the launches by functions of the
    /// cluster will not launch it any more.
    pub fn find(
        cluster: &Cluster<'db>,
        function: &Function<'db>,
        effects: &Effects,
        refusals: &mut Refusals,
    ) -> Parent<'db> {
        Parent::refuse_definition(function, effects, refusals);
        let db = function.db;
        let parent = function.item;
        let name = function.name();
        let at_name = Some(function.name_place());
        // The runtime header has locals of many names, and knows no kernel of the user's.
        let of_user = |m: &FileRange| !is_header(db, m.file);
        for mention in other_mentions(db, parent).into_iter().filter(of_user).take(3) {
            refusals.add(
                format!("`{name}` is mentioned where it isn't launched: some calls may be unseen"),
                Some(mention),
            );
        }
        let mut found = Parent::launched_as_it_is(cluster, function);
        for host in &found.launches {
            refuse_host_launch(host, parent, name, &function.body, refusals);
        }
        let other_way = |f: &Function<'_>| f.batch().is_some();
        let launched = launch_sites_of(db, parent);
        if found.launches.is_empty()
            && launched.iter().all(|id| id.function == parent)
            && !cluster.functions.iter().any(other_way)
        {
            refusals.add(
                format!("no launch of `{name}` by the host was found, which would have to pass an arena"),
                at_name,
            );
        }
        found.existing = function.arena();
        if let Some((index, _)) = &found.existing {
            for host in &found.launches {
                let same = Room {
                    collected: &[],
                    nested: false,
                    listed: &[],
                };
                if arena_for(host, *index, &same).is_none() {
                    refusals.add("the arena of this launch is not understood", Some(host.here()));
                }
            }
        }
        found
    }

    /// A parent whose launches stay as they are, seen or not. Its `launches` are those that aren't made by functions of the cluster.
    pub fn launched_as_it_is(cluster: &Cluster<'db>, function: &Function<'db>) -> Parent<'db> {
        let (db, parent) = (function.db, function.item);
        let launches = launch_sites_of(db, parent).into_iter();
        let launches = launches.filter(|id| cluster.index(id.function).is_none());
        Parent {
            declarations: declarations_of(db, parent),
            launches: launches.filter_map(|id| Site::new(db, id).ok()).collect(),
            existing: None,
        }
    }

    /// Refuses a kernel whose definition can't be edited.
    pub fn refuse_definition(function: &Function<'db>, effects: &Effects, refusals: &mut Refusals) {
        let db = function.db;
        let parent = function.item;
        let name = function.name();
        let signature = parent.signature(db);
        let place = |item: FunctionItem<'_>| FileRange {
            file: item.file(db),
            range: item.signature(db).name_span.shift(item.start(db)),
        };
        let at_name = Some(place(parent));
        refuse_own_head(function, refusals);
        if signature.conditional {
            refusals.add(
                format!("`{name}` is defined under an #if, where another definition may take its place"),
                at_name,
            );
        }
        if signature.member {
            refusals.add(
                format!("`{name}` is defined with a qualified name or in a class"),
                at_name,
            );
        }
        let others = functions_named(db, function.file, parent.name(db));
        let other = others
            .into_iter()
            .find(|f| f.has_body(db) && f.name(db) == parent.name(db) && *f != parent);
        if let Some(other) = other {
            refusals.add(
                format!("`{name}` has several definitions (an overload or a specialisation)"),
                Some(place(other)),
            );
        }
        refuse_to_leave_unseen(name, effects, refusals);
    }

    /// What has to hold for the launches by the host, and what is taken for granted, when it is to launch these kernels.
    pub fn host_waits(&self, listed: &[Listed<'_, 'db>], refusals: &mut Refusals, edit: &mut EditBuilder<'db>) {
        for host in &self.launches {
            launchpad::host_waits(host, listed, refusals, edit);
        }
    }

    /// The launches by the host.
    pub fn launches(&self) -> &[Site<'db>] {
        &self.launches
    }

    /// The arena that an earlier rewrite has added.
    pub fn existing(&self) -> Option<&str> {
        self.existing.as_ref().map(|(_, name)| name.as_str())
    }

    /// The launches by the host, if nobody else launches it.
    pub fn all_launches(&self, function: &Function<'db>) -> Option<&[Site<'db>]> {
        (launch_sites_of(function.db, function.item).len() == self.launches.len()).then_some(&self.launches)
    }

    /// The files in which something changes.
    pub fn files(&self, function: &Function<'db>) -> Vec<SourceFile> {
        let mut files: Vec<SourceFile> = self.launches.iter().map(|l| l.file).collect();
        files.extend(self.declarations.iter().map(|d| d.file(function.db)));
        files.push(function.file);
        files.sort_by_key(|f| f.path(function.db).to_path_buf());
        files.dedup();
        files
    }

    /// Adds the parameter `arena`, except where the definition is `written` otherwise, and the arguments.
    pub fn add_arena(
        &self,
        function: &Function<'db>,
        header: &Header,
        room: &Room<'_, 'db>,
        arena: &str,
        written: bool,
        edit: &mut EditBuilder<'db>,
    ) {
        if let Some((index, _)) = &self.existing {
            for file in self.files(function) {
                header.include_in(function.db, edit, file);
            }
            for host in &self.launches {
                if let Some((span, code)) = arena_for(host, *index, room) {
                    target::replace_argument(edit, host.place(span), &code);
                }
            }
            return;
        }
        self.add_parameters(function, header, &[format!("{ARENA} {arena}")], written, edit);
        for host in &self.launches {
            let mut code = format!(
                "{}({}, {}",
                function_for(host, "", room.listed),
                crate::edit::one_line::flat(host.expr_source(host.facts.grid.operand.expr)),
                crate::edit::one_line::flat(host.expr_source(host.facts.block.operand.expr))
            );
            let literal = |e| matches!(host.body.expr(host.body.strip_parens(e)).kind, ExprKind::Literal(_));
            let stream = host.facts.stream_operand.as_ref().filter(|o| !literal(o.expr));
            if let Some(stream) = stream {
                code.push_str(", ");
                code.push_str(&crate::edit::one_line::flat(host.source(stream.span)));
            }
            let bytes = bytes_per_thread(host, room.collected);
            let aggregators = room.collected.len();
            let several = aggregators > 1 || room.nested;
            if several || bytes.is_some() {
                if stream.is_none() {
                    code.push_str(&format!(", {}", named("stream", "0")));
                }
                let bytes = named("bytes_per_thread", bytes.as_deref().unwrap_or("64"));
                code.push_str(&format!(", {bytes}"));
            }
            if several {
                code.push_str(&format!(", {}", named("aggregators", &aggregators.to_string())));
            }
            if room.nested {
                code.push_str(", gridfuse::kNestedBytes");
            }
            code.push(')');
            let list: TextRange = host.launch.args_span.shift(host.start);
            target::append_item(edit, host.file, list, &code);
        }
    }

    /// Adds parameters, except where the definition is `written` otherwise; the arguments remain to be added.
    pub fn add_parameters(
        &self,
        function: &Function<'db>,
        header: &Header,
        parameters: &[String],
        written: bool,
        edit: &mut EditBuilder<'db>,
    ) {
        let db = function.db;
        for file in self.files(function) {
            header.include_in(db, edit, file);
        }
        let definition = (!written).then_some(function.item);
        for item in self.declarations.iter().copied().chain(definition) {
            let list = item.signature(db).params_span.shift(item.start(db));
            let parameters: Vec<String> = parameters
                .iter()
                .map(|p| format!("{p}{}", target::default_behind(db, item, p)))
                .collect();
            target::append_items(edit, item.file(db), list, &parameters);
        }
    }
}

/// A thread that leaves by inline assembly isn't counted.
pub fn refuse_to_leave_unseen(name: &str, effects: &Effects, refusals: &mut Refusals) {
    for asm in effects.asm.iter().filter(|asm| asm.may_have(&["exit", "ret"])) {
        refusals.add(
            format!("`{name}` may leave by inline assembly; let its threads `return`, which is seen"),
            Some(asm.place),
        );
    }
}

/// Gives the arenas of the kernels whose aggregators launch these ones memory for nested launches. Kernels of the cluster have
/// it already.
pub fn nest<'db>(
    db: &'db dyn Db,
    cluster: &Cluster<'db>,
    batches: Vec<FunctionItem<'db>>,
    listed: &[Listed<'_, 'db>],
    refusals: &mut Refusals,
    edit: &mut EditBuilder<'db>,
) {
    let mut seen: Vec<FunctionItem<'db>> = Vec::new();
    let mut todo = batches;
    while let Some(kernel) = todo.pop() {
        if seen.contains(&kernel) {
            continue;
        }
        seen.push(kernel);
        let function = Function::new(db, kernel);
        if function.batch().is_some() {
            for mention in other_mentions(db, kernel) {
                todo.extend(function_around(db, mention).filter(|f| f.signature(db).kernel));
            }
            continue;
        }
        let Some((index, _)) = function.arena().filter(|_| cluster.index(kernel).is_none()) else {
            continue;
        };
        for id in launch_sites_of(db, kernel) {
            let Ok(host) = Site::new(db, id) else { continue };
            if by_device::is_made_by_device(&host) {
                continue;
            }
            let room = Room {
                collected: &[],
                nested: true,
                listed,
            };
            if !listed.is_empty() {
                launchpad::host_waits(&host, listed, refusals, edit);
            }
            match arena_for(&host, index, &room) {
                Some((span, code)) => {
                    if !listed.is_empty() && host.source(span).starts_with(ARENA_FOR) {
                        refusals.add(
                            format!(
                                "the launches of `{}` go out from the device: only what the host has launched can leave launches to it",
                                function.name()
                            ),
                            Some(host.here()),
                        );
                    }
                    target::replace_argument(edit, host.place(span), &code);
                }
                None => refusals.add("the arena of this launch is not understood", Some(host.here())),
            }
        }
    }
}

fn refuse_host_launch(
    host: &Site<'_>,
    parent: FunctionItem<'_>,
    name: &str,
    parent_body: &Body,
    refusals: &mut Refusals,
) {
    let here = Some(host.here());
    if by_device::is_made_by_device(host) {
        refusals.add(
            format!(
                "`{}` launches `{name}` from the device, where no arena can be made",
                host.parent_name()
            ),
            here,
        );
        return;
    }
    if !matches!(host.facts.child, Child::Kernel(kernel) if kernel == parent) {
        refusals.add(format!("whether this launches `{name}` isn't clear"), here);
    }
    if host.facts.from_macro {
        refusals.add(format!("the host launches `{name}` in a macro"), here);
        return;
    }
    if host.launch.config.len() < 2 || host.launch.config.len() > 4 {
        refusals.add("the configuration of this host launch is not understood", here);
        return;
    }
    if host.launch.args.len() != parent_body.params.len() {
        refusals.add("this host launch leaves out arguments that have default values", here);
    }
    for (index, what) in [(0, "grid size"), (1, "block size"), (3, "stream")] {
        let Some(expr) = host.launch.config.get(index) else {
            continue;
        };
        if let Some(part) = pure::not_repeatable(host, *expr) {
            let place = host.place(host.body.expr(part).span);
            refusals.add(
                format!("the {what} of this host launch calls or changes something, so it can't be written twice"),
                Some(place),
            );
        }
    }
    refuse_changed_config(host, refusals);
    host.refuse_conditional(refusals);
    for (span, reason) in &host.body.problems {
        if span.start < host.facts.span.end && host.facts.span.start < span.end {
            refusals.add(
                format!("this host launch is not understood: {reason}"),
                Some(host.place(*span)),
            );
        }
    }
}

/// Refuses an argument that changes what the grid, the block or the stream of the same launch is made of: these come first, but not where
/// they are written once more among the arguments.
fn refuse_changed_config(host: &Site<'_>, refusals: &mut Refusals) {
    let (db, body) = (host.db, &host.body);
    let repeated = [0, 1, 3].into_iter().filter_map(|index| host.launch.config.get(index));
    let texts: Vec<&str> = repeated.map(|e| host.expr_source(*e)).collect();
    let named = words_with_macros(db, host.file, &texts.join(" "));
    for arg in &host.launch.args {
        let span = body.expr(*arg).span;
        let inside = body.exprs.iter().filter(|e| span.contains(e.span));
        // A function may change what it gets by reference, or by its address.
        let gives_away = inside.clone().any(|e| match &e.kind {
            ExprKind::AddrOf(place) => lex::identifiers(host.expr_source(*place)).any(|w| named.contains(w)),
            ExprKind::Call { name, args, .. } => args.iter().enumerate().any(|(index, a)| {
                let known = |name: &str| {
                    calls::is_pure(db, host.parent, name) || pure::takes_by_value(db, host.parent, name, index)
                };
                named.contains(host.expr_source(*a)) && !name.as_deref().is_some_and(known)
            }),
            _ => false,
        });
        let calls = inside.clone().any(|e| matches!(e.kind, ExprKind::Call { .. }));
        let words = words_with_macros(db, host.file, host.expr_source(*arg));
        let assigns = pure::assigns(body, *arg) && words.iter().any(|w| named.contains(w));
        if assigns || calls && gives_away {
            refusals.add(
                "this argument of the host launch may change what its grid, block or stream is made of, which is to be written once more",
                Some(host.place(span)),
            );
        }
    }
}

/// The function that makes an arena.
pub const ARENA_FOR: &str = "gridfuse::arena_for";

/// The same where the host launches.
pub const LAUNCHPAD_FOR: &str = "gridfuse::launchpad_for";

/// The function that makes the arena of a launch by the host: for kernels that are `listed` there, and further ones.
fn function_for(host: &Site<'_>, listed: &str, further: &[Listed<'_, '_>]) -> String {
    let kernels = launchpad::united(listed, further.iter().map(|k| k.name_at(host)));
    if kernels.is_empty() {
        ARENA_FOR.to_owned()
    } else {
        format!("{LAUNCHPAD_FOR}<{kernels}>")
    }
}

/// The argument `arena_for(…)` or `launchpad_for<…>(…)` of a host launch, as it is with more room.
fn arena_for(host: &Site<'_>, index: usize, room: &Room<'_, '_>) -> Option<(Span, String)> {
    let arg = *host.launch.args.get(index)?;
    let ExprKind::Call {
        name: Some(name),
        args,
        template_args,
        ..
    } = &host.body.expr(arg).kind
    else {
        return None;
    };
    let listed = match (name.as_str(), template_args) {
        (ARENA_FOR, None) => "",
        (LAUNCHPAD_FOR, Some(span)) => host.source(*span).strip_prefix('<')?.strip_suffix('>')?,
        _ => return None,
    };
    if args.len() < 2 || args.len() > 6 {
        return None;
    }
    let given = |i: usize, default: &str| {
        args.get(i).map_or(default.to_owned(), |a| {
            crate::edit::one_line::flat(host.expr_source(*a))
        })
    };
    let aggregators: u64 = given(4, "1").parse().ok()?;
    let bytes = match (given(3, "64"), bytes_per_thread(host, room.collected)) {
        (before, None) => before,
        (before, Some(more)) if before == "64" => more,
        (before, Some(more)) if before == more => before,
        (before, Some(more)) => format!("{before} + {more}"),
    };
    let nested = given(5, if room.nested { "gridfuse::kNestedBytes" } else { "" });
    let code = format!(
        "{}({}, {}, {}, {}, {}{}{nested})",
        function_for(host, listed, room.listed),
        given(0, ""),
        given(1, ""),
        named("stream", &given(2, "0")),
        named("bytes_per_thread", &bytes),
        named("aggregators", &(aggregators + room.collected.len() as u64).to_string()),
        if nested.is_empty() { "" } else { ", " }
    );
    Some((host.body.expr(arg).span, code))
}
