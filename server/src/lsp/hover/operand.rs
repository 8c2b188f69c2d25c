//! An argument or a part of the config of a launch, in Markdown: how uniform it is, and why.

use gridfuse_analysis::base::db::{Database, Db};
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::Span;
use gridfuse_analysis::facts::launch::{Operand, statement_places};
use gridfuse_analysis::facts::uniformity::{Cause, Level, Uniformity, changes_around, uniformity};
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::{ExprId, body};

use super::super::markdown::{code, describe, link, source_line, words};
use super::super::state::Snapshot;
use crate::collected::{CollectedCall, Collector, Found, argument_names};
use crate::describe::placed;
use crate::launches::{LaunchSite, place_in};

/// What an operand is for.
pub enum Role {
    /// Argument of the kernel.
    Argument,
    /// Grid size.
    Grid,
    /// Block size.
    Block,
    /// Dynamic shared memory.
    Shared,
    /// Stream.
    Stream,
}

/// The operands of a launch, as far as they are written.
pub fn of<'s>(site: &LaunchSite<'s>) -> Vec<(Role, &'s Operand)> {
    let facts = site.facts;
    // All of a launch that comes out of a macro has the place of the macro's use.
    if facts.from_macro {
        return Vec::new();
    }
    let config = [
        (Role::Grid, Some(&facts.grid.operand)),
        (Role::Block, Some(&facts.block.operand)),
        (Role::Shared, facts.shared.as_ref()),
        (Role::Stream, facts.stream_operand.as_ref()),
    ];
    let config = config
        .into_iter()
        .filter_map(|(role, operand)| Some((role, operand?)))
        // Stands for a part of the config that is missing.
        .filter(|(_, operand)| operand.span != facts.span);
    let arguments = facts.args.iter().map(|operand| (Role::Argument, operand));
    config.chain(arguments).collect()
}

/// The launch that an operand belongs to.
pub struct Owner<'a, 'db> {
    function: FunctionItem<'db>,
    child: &'a str,
    /// The innermost loop around the launch.
    around: Option<Span>,
    is_collected: bool,
}

impl<'a, 'db> Owner<'a, 'db> {
    /// A launch.
    pub fn of(site: &LaunchSite<'db>) -> Owner<'db, 'db> {
        Owner {
            function: site.id.function,
            child: site.facts.kernel_name.as_deref().unwrap_or("a kernel"),
            around: site.facts.loops.first().map(|around| around.span),
            is_collected: false,
        }
    }

    /// A launch that a rewrite has collected.
    pub fn of_collected(
        db: &'db Database,
        function: FunctionItem<'db>,
        collector: &Collector<'db>,
        call: &CollectedCall,
    ) -> Owner<'db, 'db> {
        let loops = statement_places(db, function).loops_around(&body(db, function), call.expr);
        Owner {
            function,
            child: collector.child.name(db),
            around: loops.first().map(|around| around.span),
            is_collected: true,
        }
    }

    /// A span of the launching function as a place in the file.
    pub fn at(&self, db: &dyn Db, span: Span) -> FileRange {
        place_in(db, self.function, span)
    }
}

/// The operands of a launch that a rewrite has collected.
pub fn of_collected(
    db: &dyn Db,
    function: FunctionItem<'_>,
    collector: &Collector<'_>,
    call: &CollectedCall,
) -> Vec<(Role, Operand)> {
    let body = body(db, function);
    let levels = uniformity(db, function);
    let loops = statement_places(db, function).loops_around(&body, call.expr);
    let names = argument_names(db, collector).into_iter().map(Some);
    let operand = |expr: ExprId, parameter: Option<String>| Operand {
        expr,
        span: body.expr(expr).span,
        uniformity: levels.exprs.get(&expr).cloned().unwrap_or(Uniformity {
            level: Level::Varying,
            ..Uniformity::default()
        }),
        changes_in_loop: loops
            .iter()
            .any(|around| changes_around(db, function, &body, expr, around.stmt)),
        parameter,
    };
    let config = [Role::Grid, Role::Block, Role::Shared].into_iter().zip(&call.config);
    let config = config.map(|(role, expr)| (role, operand(*expr, None)));
    let arguments = call.arguments.iter().zip(names.chain(std::iter::repeat(None)));
    let arguments = arguments.map(|(expr, name)| (Role::Argument, operand(*expr, name)));
    config.chain(arguments).collect()
}

/// The text about the operand at `offset`; `None` where there is none.
pub fn at(snapshot: &Snapshot, site: &LaunchSite<'_>, offset: u32) -> Option<(String, FileRange)> {
    let owner = Owner::of(site);
    let operands = of(site).into_iter().map(|(role, operand)| (role, operand.clone()));
    told_at(snapshot, &owner, operands, offset)
}

/// The same of a launch that a rewrite has collected.
pub fn at_collected(snapshot: &Snapshot, found: &Found<'_>, offset: u32) -> Option<(String, FileRange)> {
    let (db, function) = (&snapshot.db, found.function);
    let owner = Owner::of_collected(db, function, &found.collector, &found.call);
    let operands = of_collected(db, function, &found.collector, &found.call);
    told_at(snapshot, &owner, operands.into_iter(), offset)
}

fn told_at(
    snapshot: &Snapshot,
    owner: &Owner<'_, '_>,
    mut operands: impl Iterator<Item = (Role, Operand)>,
    offset: u32,
) -> Option<(String, FileRange)> {
    let place = |operand: &Operand| owner.at(&snapshot.db, operand.span);
    let (role, operand) = operands.find(|(_, operand)| place(operand).range.touches(offset))?;
    Some((markdown(snapshot, owner, &role, &operand), place(&operand)))
}

/// The text about an operand.
pub fn markdown(snapshot: &Snapshot, owner: &Owner<'_, '_>, role: &Role, operand: &Operand) -> String {
    let child = owner.child;
    let mut out = match role {
        Role::Grid => format!("**grid size** of the launch of `{child}`"),
        Role::Block => format!("**block size** of the launch of `{child}`"),
        Role::Shared => format!("**dynamic shared memory** of the launch of `{child}`"),
        Role::Stream => format!("**stream** of the launch of `{child}`"),
        Role::Argument => match &operand.parameter {
            Some(parameter) => format!("**argument for `{parameter}`** of `{child}`"),
            None => format!("**argument** of the launch of `{child}`"),
        },
    };
    let text = describe(snapshot, |describe| describe.text(owner.at(&snapshot.db, operand.span)));
    out.push_str(&format!(": {}\n\n", code(&text)));
    out.push_str(&groups(operand.uniformity.level));
    out.push('\n');
    out.push_str(&reasons(snapshot, owner, &operand.uniformity));
    if operand.changes_in_loop
        && let Some(around) = owner.around
    {
        out.push_str(&format!(
            "\nA loop around the launch changes it ({}).\n",
            place_link(snapshot, owner, around)
        ));
    }
    if matches!(role, Role::Argument) {
        let handed_on = match owner.is_collected {
            true => "Collected launches store what stands in the braces for each launch.",
            false => handed_on(operand),
        };
        out.push_str(&format!("\n{handed_on}\n"));
    }
    out
}

/// Who holds the same value.
fn groups(level: Level) -> String {
    let who = match level {
        Level::Constant => "the same whenever the launch is reached",
        Level::Grid => "all threads of a grid have the same value",
        Level::Block => "all threads of a block have the same value; blocks may have different ones",
        Level::Warp => "all threads of a warp have the same value; warps may have different ones",
        Level::Varying => "each thread may have a value of its own",
    };
    format!("**{}**: {who}.\n", level.name())
}

fn reasons(snapshot: &Snapshot, owner: &Owner<'_, '_>, uniformity: &Uniformity) -> String {
    let mut out = String::new();
    if let Some(why) = &uniformity.why {
        out.push_str(&format!("{}\n", told(snapshot, owner, why)));
        if why.span != Span::default() {
            out.push_str(&source_line(snapshot, owner.at(&snapshot.db, why.span)));
        }
    }
    // Several places may need the same.
    let mut assumed: Vec<(&str, Vec<String>)> = Vec::new();
    for cause in &uniformity.assumes {
        let place = (cause.span != Span::default()).then(|| place_link(snapshot, owner, cause.span));
        match assumed.iter_mut().find(|(text, _)| *text == cause.text) {
            Some((_, places)) => places.extend(place.filter(|place| !places.contains(place))),
            None => assumed.push((&cause.text, place.into_iter().collect())),
        }
    }
    for (text, places) in assumed {
        let places = match places.is_empty() {
            true => String::new(),
            false => format!(" ({})", places.join(", ")),
        };
        out.push_str(&format!("\nassumes {}{places}\n", words(text)));
    }
    out
}

fn told(snapshot: &Snapshot, owner: &Owner<'_, '_>, cause: &Cause) -> String {
    match cause.span == Span::default() {
        true => words(&cause.text),
        false => placed(&words(&cause.text), &place_link(snapshot, owner, cause.span)),
    }
}

fn place_link(snapshot: &Snapshot, owner: &Owner<'_, '_>, span: Span) -> String {
    describe(snapshot, |describe| {
        let home = (describe.path)(owner.function.file(&snapshot.db).path(&snapshot.db));
        link(&describe.place(owner.at(&snapshot.db, span)), &home)
    })
}

/// What aggregation does with an argument.
fn handed_on(operand: &Operand) -> &'static str {
    match operand.uniformity.level {
        _ if operand.changes_in_loop => "Collected launches store it for each launch.",
        Level::Constant | Level::Grid => "Collected launches store it once, at every granularity.",
        Level::Block => {
            "Stored once where launches are collected per warp or block; for each launch where they are collected per grid or group of blocks."
        }
        Level::Warp => "Stored once where launches are collected per warp; for each launch at other granularities.",
        Level::Varying => "Collected launches store it for each launch.",
    }
}
