//! Streams that device code creates, and what becomes of them.

use std::collections::HashMap;

use crate::base::db::Db;
use crate::base::span::Span;
use crate::facts::callee::is_runtime;
use crate::hir::flow::operands;
use crate::hir::items::FunctionItem;
use crate::hir::{BindingId, Body, ExprId, ExprKind, Name, StmtKind, Storage, body};

/// A local stream variable (or array of streams) that is set by `cudaStreamCreate…`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, salsa::SalsaValue)]
pub struct CreatedStream {
    /// The variable.
    pub binding: BindingId,
    /// The call that creates it, the first one.
    pub created: Span,
    /// Where something is launched into it, or it's handed to the CUDA runtime; the last one in the source.
    pub last_use: Option<Span>,
    /// `cudaStreamDestroy` is called for it.
    pub destroyed: bool,
    /// It's copied, passed on, returned, or used in a way that isn't understood: others may use and destroy it.
    pub escapes: bool,
}

impl CreatedStream {
    fn note_use(&mut self, span: Span) {
        self.last_use = self.last_use.max(Some(span));
    }
}

/// Whether a call by this name, as it is written in a function, is one of the runtime's that creates a stream.
pub fn creates_stream<'db>(db: &'db dyn Db, function: FunctionItem<'db>, name: &str) -> bool {
    let creating = matches!(
        name.trim_start_matches("::"),
        "cudaStreamCreate" | "cudaStreamCreateWithFlags" | "cudaStreamCreateWithPriority"
    );
    creating && is_runtime(db, function, name)
}

/// The streams that a device-side function creates.
#[salsa::tracked]
pub fn created_streams<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<CreatedStream> {
    let signature = function.signature(db);
    if !(signature.kernel || signature.device) || signature.host || !function.text(db).contains("cudaStreamCreate") {
        return Vec::new();
    }
    let body = body(db, function);
    let mut found: Vec<CreatedStream> = Vec::new();
    for expr in &body.exprs {
        if let ExprKind::Call {
            name: Some(name), args, ..
        } = &expr.kind
            && creates_stream(db, function, name)
            && let Some(first) = args.first()
            && let ExprKind::AddrOf(place) = body.expr(body.strip_parens(*first)).kind
            && let Some(binding) = variable(&body, place)
        {
            let ty = &body.binding(binding).ty;
            let plain = ty.pointers == 0 && !ty.reference && !ty.complex;
            let known = found.iter().any(|s| s.binding == binding);
            if !known && plain && body.binding(binding).storage == Storage::Local {
                found.push(CreatedStream {
                    binding,
                    created: expr.span,
                    last_use: None,
                    destroyed: false,
                    escapes: false,
                });
            }
        }
    }
    if found.is_empty() {
        return found;
    }
    let mut parents: HashMap<ExprId, ExprId> = HashMap::new();
    for (i, expr) in body.exprs.iter().enumerate() {
        for operand in operands(&expr.kind) {
            parents.insert(operand, ExprId(i as u32));
        }
    }
    for (i, expr) in body.exprs.iter().enumerate() {
        let id = ExprId(i as u32);
        match &expr.kind {
            ExprKind::Name(Name::Local(b)) => {
                if let Some(stream) = found.iter_mut().find(|s| s.binding == *b) {
                    note_use(db, function, &parents, id, stream);
                }
            }
            ExprKind::Lambda { mentions, .. } | ExprKind::Unknown { mentions, .. } => escape(&mut found, mentions),
            _ => {}
        }
    }
    for stmt in &body.stmts {
        if let StmtKind::Asm { mentions, .. } | StmtKind::Unknown { mentions, .. } = &stmt.kind {
            escape(&mut found, mentions);
        }
    }
    found
}

fn escape(streams: &mut [CreatedStream], mentions: &[BindingId]) {
    for stream in streams.iter_mut().filter(|s| mentions.contains(&s.binding)) {
        stream.escapes = true;
    }
}

/// `s` of `s` and `s[i]`.
fn variable(body: &Body, place: ExprId) -> Option<BindingId> {
    match &body.expr(place).kind {
        ExprKind::Name(Name::Local(b)) => Some(*b),
        ExprKind::Paren(e) => variable(body, *e),
        ExprKind::Index { base, .. } => variable(body, *base),
        _ => None,
    }
}

/// Notes what one occurrence of the variable means.
fn note_use<'db>(
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    parents: &HashMap<ExprId, ExprId>,
    name: ExprId,
    stream: &mut CreatedStream,
) {
    let body = &body(db, function);
    let mut inner = name;
    while let Some(outer) = parents.get(&inner).copied() {
        match &body.expr(outer).kind {
            ExprKind::Paren(_) | ExprKind::AddrOf(_) => inner = outer,
            ExprKind::Index { base, .. } if *base == inner => inner = outer,
            // `(void)s` says that it isn't used.
            ExprKind::Cast { ty, .. } if ty == "void" => return,
            ExprKind::Cast { .. } => inner = outer,
            ExprKind::Launch(launch) if launch.config.contains(&inner) => {
                stream.note_use(body.expr(outer).span);
                return;
            }
            ExprKind::Call { name: Some(name), .. } => {
                if !is_runtime(db, function, name) {
                    stream.escapes = true;
                } else if name.trim_start_matches("::") == "cudaStreamDestroy" {
                    stream.destroyed = true;
                } else if creates_stream(db, function, name) {
                    // Created again.
                } else {
                    stream.note_use(body.expr(outer).span);
                }
                return;
            }
            _ => break,
        }
    }
    stream.escapes = true;
}
