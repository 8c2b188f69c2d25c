//! What a rewrite takes for granted about the order of child grids, given the stream that they are launched into.

use gridfuse_analysis::hir::{BindingId, Body, ExprId, ExprKind, Name, StmtId, StmtKind};
use gridfuse_analysis::launch::{Launchers, Stream, launches};

use crate::effects::{Effects, effects};
use crate::rewrite::Reason;
use crate::site::Site;

/// The assumptions under which the grids of this NULL-stream launch need no order among themselves and with others. Launches
/// of one block into the NULL stream run one after the other; blocks don't wait for each other.
pub fn null_stream(site: &Site<'_>) -> Vec<Reason> {
    let child = site.child_name();
    let parent = site.parent_name();
    let mut found = Vec::new();
    let mut assume = |text: String| {
        found.push(Reason {
            text,
            place: Some(site.here()),
        });
    };
    let kernel = site.parent.signature(site.db).kernel;
    let single = kernel && matches!(site.facts.launchers, Launchers::OnePerBlock | Launchers::OnePerGrid);
    if !single {
        assume(format!(
            "grids of `{child}` are independent of each other: those that different threads of a block launch (the NULL \
             stream runs them one after the other)"
        ));
    }
    if repeats(site) {
        assume(format!(
            "grids of `{child}` are independent of each other: those that one thread launches in successive iterations (the \
             NULL stream runs them in order)"
        ));
    }
    if others_in_null_stream(site, &effects(site.db, site.parent)) {
        assume(format!(
            "grids of `{child}` are independent of other grids: of those that `{parent}` launches into the NULL stream"
        ));
    }
    found
}

/// One thread may come to the launch more than once: by a loop, or by a jump back to a label.
fn repeats(site: &Site<'_>) -> bool {
    !site.facts.loops.is_empty() || jumps(&site.body)
}

/// The function has a `goto`.
fn jumps(body: &Body) -> bool {
    body.stmts.iter().any(|stmt| matches!(stmt.kind, StmtKind::Goto(_)))
}

fn others_in_null_stream(site: &Site<'_>, effects: &Effects) -> bool {
    let own = launches(site.db, site.parent);
    own.iter()
        .enumerate()
        .any(|(index, facts)| {
            index != site.id.index as usize && matches!(facts.stream, Stream::Null | Stream::Other)
        })
        // Functions that the kernel calls launch, too.
        || effects.launches.len() > own.len()
}

/// How a stream that the launching function has created is used.
pub struct CreatedStream {
    /// The declaration, when it declares nothing else.
    pub declaration: Option<StmtId>,
    /// `cudaStreamCreateWithFlags(&s, …);`
    pub create: Vec<StmtId>,
    /// `cudaStreamDestroy(s);`
    pub destroy: Vec<StmtId>,
    /// A use that is none of these and not the launch.
    pub other: Option<ExprId>,
    /// The launch may go into the same stream again: it is repeated, and the stream isn't created anew each time.
    pub shared_by_iterations: bool,
}

/// Looks at all uses of a created stream.
pub fn created_stream(site: &Site<'_>, binding: BindingId) -> CreatedStream {
    let body = &site.body;
    let mut found = CreatedStream {
        declaration: None,
        create: Vec::new(),
        destroy: Vec::new(),
        other: None,
        shared_by_iterations: false,
    };
    for (index, expr) in body.exprs.iter().enumerate() {
        let id = ExprId(index as u32);
        match &expr.kind {
            ExprKind::Name(Name::Local(b)) if *b == binding => {}
            ExprKind::Lambda { mentions, .. } | ExprKind::Unknown { mentions, .. } if mentions.contains(&binding) => {
                found.other = Some(id);
                continue;
            }
            _ => continue,
        }
        let stmt = site.places.statement_of(id);
        if stmt.is_some() && stmt == site.facts.statement {
            let operand = site.facts.stream_operand.as_ref().map(|o| body.strip_parens(o.expr));
            if operand == Some(id) {
                continue;
            }
        }
        let call = stmt.and_then(|s| match body.stmt(s).kind {
            StmtKind::Expr(e) => match &body.expr(body.strip_parens(e)).kind {
                ExprKind::Call {
                    name: Some(name), args, ..
                } => Some((s, name.as_str(), args)),
                _ => None,
            },
            _ => None,
        });
        let first = |args: &[ExprId]| args.first().map(|a| body.strip_parens(*a));
        match call {
            Some((stmt, name, args)) if name.starts_with("cudaStreamCreate") => {
                let whole = first(args)
                    .is_some_and(|a| matches!(body.expr(a).kind, ExprKind::AddrOf(p) if body.strip_parens(p) == id));
                if whole {
                    found.create.push(stmt);
                } else {
                    found.other = Some(id);
                }
            }
            Some((stmt, "cudaStreamDestroy", args)) if first(args) == Some(id) => found.destroy.push(stmt),
            _ => found.other = Some(id),
        }
    }
    for (index, stmt) in body.stmts.iter().enumerate() {
        if let StmtKind::Decl(decls) = &stmt.kind
            && let [only] = decls.as_slice()
            && only.binding == binding
            && only.init.is_none()
        {
            found.declaration = Some(StmtId(index as u32));
        }
    }
    found.shared_by_iterations = repeats(site) && !created_each_time(site, &found.create);
    found
}

/// Whether a stream is created again before each execution of the launch: its creation stands in the innermost loop around the
/// launch, in a block that the launch is in as well (not under a condition of its own), and nothing jumps.
fn created_each_time(site: &Site<'_>, create: &[StmtId]) -> bool {
    let body = &site.body;
    let Some(innermost) = site.facts.loops.first() else {
        return false;
    };
    let inside = body.stmt(innermost.stmt).span;
    !jumps(body)
        && create.iter().any(|stmt| {
            inside.contains(body.stmt(*stmt).span)
                && site.places.parent(*stmt).is_some_and(|block| {
                    matches!(body.stmt(block).kind, StmtKind::Block(_))
                        && body.stmt(block).span.contains(site.facts.span)
                })
        })
}

impl CreatedStream {
    /// Whether nothing but this launch goes into the stream between its creation and the next.
    pub fn one_launch(&self) -> bool {
        self.create.len() == 1 && self.other.is_none() && !self.shared_by_iterations
    }
}

/// The assumption for a stream that several launches share.
pub fn shared_stream(site: &Site<'_>, stream: &str) -> Reason {
    Reason {
        text: format!(
            "grids in `{stream}` are independent of each other: those that one thread launches (a stream runs them in order)"
        ),
        place: Some(site.here()),
    }
}
