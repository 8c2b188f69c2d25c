//! Reads of shared memory that all threads of a block see alike.
//!
//! Between two barriers (a phase), a variable that no thread writes has one value. Threads of a block are in the same phase
//! but anywhere in it, so a read is settled when no phase that it can be in contains a write.

use std::collections::{HashMap, HashSet};

use super::memory::{Places, Root};
use crate::base::db::Db;
use crate::facts::callee::Callee;
use crate::facts::callee::callee;
use crate::facts::effects::MemoryEffects;
use crate::hir::flow::{BlockId, Flow, Step, operands};
use crate::hir::items::FunctionItem;
use crate::hir::library::Memory;
use crate::hir::{BindingId, ExprId, ExprKind, Name, StmtKind, Storage};

/// Which reads are settled.
#[derive(Default)]
pub(super) struct Shared {
    /// Reads that may race with a write, by the step that reads.
    racing: HashSet<(BlockId, usize, BindingId)>,
    /// Variables that can be followed.
    followed: HashSet<BindingId>,
}

#[derive(Clone, Copy, PartialEq)]
enum Event {
    Barrier,
    Read(BindingId),
    Write(BindingId),
}

impl Shared {
    /// Whether the read of `binding` by this step gets one value for the block.
    pub fn settled(&self, block: BlockId, step: usize, binding: BindingId) -> bool {
        self.followed.contains(&binding) && !self.racing.contains(&(block, step, binding))
    }

    pub fn new(
        flow: &Flow,
        db: &dyn Db,
        function: FunctionItem<'_>,
        places: Places<'_>,
        effects: &MemoryEffects,
    ) -> Shared {
        let body = places.body;
        let mut shared = Shared::default();
        let is_shared = |b: BindingId| matches!(body.binding(b).storage, Storage::Shared | Storage::ExternShared);
        let dynamic: Vec<BindingId> = (0..body.bindings.len() as u32)
            .map(BindingId)
            .filter(|b| body.binding(*b).storage == Storage::ExternShared)
            .collect();
        for i in 0..body.bindings.len() as u32 {
            let b = BindingId(i);
            if is_shared(b)
                && !body.binding(b).ty.volatile
                && !body.binding(b).ty.complex
                && !body.binding(b).ty.reference
            {
                shared.followed.insert(b);
            }
        }
        if shared.followed.is_empty() {
            return shared;
        }
        // Uses by which something else than the code that names the variable may write it.
        let mut lost: HashSet<BindingId> = HashSet::new();
        let mut events: HashMap<ExprId, Vec<Event>> = HashMap::new();
        let atomic_operands = written_alone(db, function, places);
        for (i, expr) in body.exprs.iter().enumerate() {
            let id = ExprId(i as u32);
            match &expr.kind {
                ExprKind::Lambda { mentions, .. } | ExprKind::Unknown { mentions, .. } => lost.extend(mentions),
                ExprKind::Assign { place, .. } | ExprKind::IncDec { place, .. } => match places.root(*place) {
                    Root::Object(b) if is_shared(b) => events.entry(id).or_default().push(Event::Write(b)),
                    Root::Object(_) | Root::Through(_) | Root::Global(_) => {}
                    Root::Other => lost.extend(super::objects::mentions(body, *place)),
                },
                ExprKind::Call {
                    callee: target,
                    name,
                    args,
                    ..
                } => match callee(db, function, body, *target, name.as_deref(), args) {
                    Callee::Known(library) if library.is_block_barrier() => {
                        events.entry(id).or_default().push(Event::Barrier);
                    }
                    Callee::Known(library) if writes_one(library.memory) => {
                        if let Some(pointer) = args.first()
                            && let ExprKind::AddrOf(_) = body.expr(body.strip_parens(*pointer)).kind
                            && let Root::Object(b) = places.pointee_root(*pointer)
                            && is_shared(b)
                        {
                            events.entry(id).or_default().push(Event::Write(b));
                        }
                    }
                    Callee::Known(_) => {}
                    _ => lost.extend(args.iter().flat_map(|a| super::objects::objects(places, *a))),
                },
                ExprKind::AddrOf(inner) if !atomic_operands.contains(&id) => {
                    lost.extend(super::objects::objects(places, *inner));
                }
                ExprKind::Name(Name::Local(b)) if is_shared(*b) && body.binding(*b).ty.array.is_empty() => {
                    events.entry(id).or_default().push(Event::Read(*b));
                }
                ExprKind::Index { .. } | ExprKind::Field { .. } => {
                    if let Root::Object(b) = places.root(id)
                        && is_shared(b)
                    {
                        events.entry(id).or_default().push(Event::Read(b));
                    }
                }
                _ => {}
            }
            for operand in operands(&expr.kind) {
                let element = matches!(&expr.kind, ExprKind::Index { base, .. } if *base == operand);
                if !element && !matches!(expr.kind, ExprKind::Paren(_)) {
                    lost.extend(decayed(places, operand));
                }
            }
        }
        for stmt in &body.stmts {
            match &stmt.kind {
                StmtKind::Asm { mentions, .. } | StmtKind::Unknown { mentions, .. } => lost.extend(mentions),
                StmtKind::Expr(e) | StmtKind::Return(Some(e)) => lost.extend(decayed(places, *e)),
                StmtKind::RangeFor { range, .. } => lost.extend(super::objects::objects(places, *range)),
                StmtKind::Decl(decls) => {
                    for d in decls {
                        let Some(init) = d.init else { continue };
                        lost.extend(decayed(places, init));
                        let ty = &body.binding(d.binding).ty;
                        if ty.reference || ty.complex {
                            lost.extend(super::objects::objects(places, init));
                        }
                    }
                }
                _ => {}
            }
        }
        // All `extern __shared__` arrays are the same memory.
        if effects.foreign_dynamic_shared || dynamic.iter().any(|b| lost.contains(b)) {
            lost.extend(&dynamic);
        }
        shared.followed.retain(|b| !lost.contains(b));
        let group = |b: BindingId| match dynamic.contains(&b) {
            true => dynamic.first().copied().unwrap_or(b),
            false => b,
        };
        shared.race(flow, &events, group);
        shared
    }

    /// Marks the reads that share a phase with a write.
    fn race(&mut self, flow: &Flow, events: &HashMap<ExprId, Vec<Event>>, group: impl Fn(BindingId) -> BindingId) {
        let at = |block: BlockId, step: usize| match flow.block(block).steps.get(step) {
            Some(Step::Expr(e)) => events.get(e).map(Vec::as_slice).unwrap_or_default(),
            _ => &[],
        };
        let mut starts = vec![(Flow::ENTRY, 0)];
        for block in &flow.order {
            for step in 0..flow.block(*block).steps.len() {
                if at(*block, step).contains(&Event::Barrier) {
                    starts.push((*block, step + 1));
                }
            }
        }
        if starts.len() > 2_000 {
            self.followed.clear();
            return;
        }
        for (block, from) in starts {
            let mut written = HashSet::new();
            let mut reads = Vec::new();
            let mut entered: HashSet<BlockId> = HashSet::new();
            let mut stack = vec![(block, from)];
            while let Some((block, from)) = stack.pop() {
                let mut open = true;
                for step in from..flow.block(block).steps.len() {
                    for event in at(block, step) {
                        match event {
                            Event::Barrier => open = false,
                            Event::Read(b) => reads.push((block, step, *b)),
                            Event::Write(b) => {
                                written.insert(group(*b));
                            }
                        }
                    }
                    if !open {
                        break;
                    }
                }
                if open {
                    for to in flow.block(block).targets() {
                        if entered.insert(*to) {
                            stack.push((*to, 0));
                        }
                    }
                }
            }
            self.racing
                .extend(reads.into_iter().filter(|(_, _, b)| written.contains(&group(*b))));
        }
    }
}

/// Shared arrays (or rows of them) that `e` turns into pointers.
fn decayed(places: Places<'_>, e: ExprId) -> Vec<BindingId> {
    let inner = places.body.strip_parens(e);
    let place = matches!(
        places.body.expr(inner).kind,
        ExprKind::Name(Name::Local(_)) | ExprKind::Index { .. } | ExprKind::Field { .. }
    );
    match place && places.shape(inner).is_none_or(|s| s.dims > 0) {
        true => super::objects::objects(places, inner),
        false => Vec::new(),
    }
}

/// A library function that writes just the value that its first argument points at.
fn writes_one(memory: Memory) -> bool {
    matches!(memory, Memory::Atomic(_) | Memory::Stores)
}

/// The pointers through which library functions write just one value.
fn written_alone(db: &dyn Db, function: FunctionItem<'_>, places: Places<'_>) -> HashSet<ExprId> {
    let body = places.body;
    let pointer = |kind: &ExprKind| match kind {
        ExprKind::Call {
            callee: target,
            name,
            args,
            ..
        } => match callee(db, function, body, *target, name.as_deref(), args) {
            Callee::Known(library) if writes_one(library.memory) => args.first().map(|e| body.strip_parens(*e)),
            _ => None,
        },
        _ => None,
    };
    body.exprs.iter().filter_map(|expr| pointer(&expr.kind)).collect()
}
