//! What of a link can run before the link is launched, and how to tell without waiting that it will be.

use std::collections::BTreeSet;

use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::Span;
use gridfuse_analysis::facts::uniformity::{Level, uniformity};
use gridfuse_analysis::hir::walk::{all_exprs, all_stmts};
use gridfuse_analysis::hir::{BinOp, BindingId, Builtin, ExprId, ExprKind, Literal, Name, StmtId, StmtKind, UnOp};

use super::chain::{Chain, Passed};
use super::marker::{assumption, contradiction, marker_of};
use super::memory::{accesses_in, gaps_in, writes_before};
use crate::api::assumption::Assumed;
use crate::api::refusal::Reason;
use crate::api::refusal::Refusals;
use crate::facts::calls::is_plain_type;
use crate::facts::explicit::casts_as_it_converts;
use crate::facts::of_macro::is_part_of_macro;
use crate::facts::pure;
use crate::facts::unlowered::named_unlowered;

/// A split of the kernel.
pub struct Overlap {
    /// The first statement that waits for the launch.
    pub waits: StmtId,
    /// The statement that holds the launch comes directly behind what needn't wait.
    pub directly: bool,
    /// The condition under which there is a next link, as source, of the parameters that are known.
    pub goes_on: String,
    /// The parameters that occur in it.
    pub asks: BTreeSet<usize>,
    /// What has to be taken for granted, as the programmer says it.
    pub assumes: Vec<Assumed>,
}

impl Overlap {
    /// Finds it; says why there is none.
    pub fn find(chain: &Chain<'_>, refusals: &mut Refusals) -> Option<Overlap> {
        let site = &chain.site;
        let root = site.body.root?;
        let StmtKind::Block(stmts) = &site.body.stmt(root).kind else {
            return None;
        };
        let path: Vec<StmtId> = site.places.around(site.facts.expr).collect();
        let launching = stmts.iter().position(|s| path.contains(s))?;
        let mut guard = Guard::default();
        guard.around(chain, &path);
        let mut early = 0;
        let mut why = None;
        let mut assumes = Vec::new();
        let mut reads_early = false;
        let mut marked: Vec<Span> = Vec::new();
        for stmt in stmts.iter().take(launching) {
            if guard.returns(chain, *stmt) {
                early += 1;
                continue;
            }
            let span = site.body.stmt(*stmt).span;
            let found = must_wait(chain, *stmt);
            let reads = !accesses_in(site, span).is_empty() || !gaps_in(site, span).is_empty();
            match (found, marker_of(chain, *stmt)) {
                (Some(Wait { reason, memory: false }), Some(_)) => {
                    refusals.add(
                        format!("this is marked as independent of the other links: {}", reason.text),
                        reason.place,
                    );
                    why = Some(reason);
                    break;
                }
                (found, Some(marker)) => {
                    if let Some(reason) = contradiction(chain, *stmt) {
                        refusals.add(reason.text, reason.place);
                    }
                    if found.is_some() || reads {
                        assumes.push((found.is_some(), assumption(chain, *stmt, &marker)));
                    }
                    marked.push(span);
                }
                (Some(found), None) => {
                    why = Some(found.reason);
                    break;
                }
                (None, None) => reads_early |= reads,
            }
            early += 1;
        }
        // A write before the launch is there when the next link begins; what would read it early must not.
        let written = writes_before(site)
            .into_iter()
            .find(|write| !marked.iter().any(|span| span.contains(*write)));
        if let Some(span) = written.filter(|_| reads_early) {
            refusals.add(
                format!(
                    "`{}` writes memory before the launch, which the next link may read before it is launched",
                    site.parent_name()
                ),
                Some(chain.place(span)),
            );
        }
        // Of statements that only read, nothing has to be believed where nothing is written before the launch.
        assumes.retain(|(always, _)| *always || written.is_some());
        // Whoever has returned doesn't launch.
        let late = stmts.get(early..=launching).unwrap_or(&[]);
        let returns = late.iter().flat_map(|s| all_stmts(&site.body, *s)).find(|s| {
            let stmt = site.body.stmt(*s);
            matches!(stmt.kind, StmtKind::Return(_)) && stmt.span.start < site.facts.span.start
        });
        if let Some(returns) = returns {
            guard.unknown.get_or_insert(site.body.stmt(returns).span);
        }
        if early == 0 {
            let why = why.unwrap_or_else(|| Reason {
                text: format!("`{}` does nothing before the launch", site.parent_name()),
                place: Some(site.here()),
            });
            refusals.add(format!("nothing can run before the launch: {}", why.text), why.place);
        }
        if let Some(span) = guard.unknown {
            refusals.add(
                "whether there is a next link is known only when this one has run: the condition must be made of parameters that stay the same, or change by a constant step",
                Some(chain.place(span)),
            );
        } else if guard.conditions.is_empty() {
            refusals.add("nothing says where the chain ends", Some(site.here()));
        }
        let waits = *stmts.get(early)?;
        if !is_met_by_all(chain, waits) {
            refusals.add(
                "not all threads of the block come to where they would have to wait",
                Some(chain.place(site.body.stmt(waits).span)),
            );
        }
        if !refusals.is_empty() {
            return None;
        }
        Some(Overlap {
            waits,
            directly: early == launching,
            goes_on: guard.conditions.join(" && "),
            asks: guard.asks,
            assumes: assumes.into_iter().map(|(_, assumed)| assumed).collect(),
        })
    }
}

/// Whether a parameter's value is known for every link without running those before.
pub fn is_known(chain: &Chain<'_>, index: usize) -> bool {
    chain.passed.get(index).is_some_and(|p| *p != Passed::New)
}

/// Why a statement can't run before the link is launched.
struct Wait {
    reason: Reason,
    /// For what it may do to memory, of which the programmer may know more.
    memory: bool,
}

fn must_wait(chain: &Chain<'_>, stmt: StmtId) -> Option<Wait> {
    let site = &chain.site;
    let body = &site.body;
    let span = body.stmt(stmt).span;
    let wait = |text: String, span: Span, memory: bool| {
        let place = Some(chain.place(span));
        Some(Wait {
            reason: Reason { text, place },
            memory,
        })
    };
    let given = |binding: BindingId| chain.parameter(binding).filter(|index| !is_known(chain, *index));
    let needs = |index: usize, span: Span| {
        let name = &chain.kernel.params[index].name;
        wait(
            format!("this needs `{name}`, which the link before has to say"),
            span,
            false,
        )
    };
    for expr in all_exprs(body, stmt) {
        let at = body.expr(expr);
        match &at.kind {
            ExprKind::Name(Name::Local(binding)) => {
                if let Some(index) = given(*binding) {
                    return needs(index, at.span);
                }
            }
            ExprKind::Lambda { .. } | ExprKind::Unknown { .. } | ExprKind::New(_) | ExprKind::Delete(_) => {
                return wait("this is not understood".to_owned(), at.span, false);
            }
            // A parameter whose value in a link is computed from its number.
            ExprKind::Assign { place, .. } | ExprKind::IncDec { place, .. } => {
                if let ExprKind::Name(Name::Local(binding)) = body.expr(body.strip_parens(*place)).kind
                    && chain.parameter(binding).is_some()
                {
                    return wait("this changes a parameter".to_owned(), at.span, false);
                }
            }
            _ => {}
        }
    }
    for (binding, at) in named_unlowered(site.db, site.parent, span) {
        if let Some(index) = given(binding) {
            return needs(index, at);
        }
    }
    for inner in all_stmts(body, stmt) {
        let at = body.stmt(inner).span;
        match &body.stmt(inner).kind {
            StmtKind::Return(_) => return wait("threads leave the kernel".to_owned(), at, false),
            StmtKind::Asm { .. } => return wait("this is inline assembly".to_owned(), at, false),
            _ => {}
        }
    }
    if let Some(gap) = gaps_in(site, span).into_iter().next() {
        let place = FileRange {
            file: gap.function.file(site.db),
            range: gap.span.shift(gap.function.start(site.db)),
        };
        return Some(Wait {
            reason: Reason {
                text: gap.reason.clone(),
                place: Some(place),
            },
            memory: true,
        });
    }
    let write = accesses_in(site, span)
        .into_iter()
        .find(|access| !access.kind.reads_only())?;
    wait(
        "this writes memory that the links before may need as it was".to_owned(),
        body.expr(write.at).span,
        true,
    )
}

/// The condition of the launch.
#[derive(Default)]
struct Guard {
    conditions: Vec<String>,
    asks: BTreeSet<usize>,
    /// The first part that isn't known.
    unknown: Option<Span>,
}

impl Guard {
    /// The conditions around the launch.
    fn around(&mut self, chain: &Chain<'_>, path: &[StmtId]) {
        let body = &chain.site.body;
        for (position, stmt) in path.iter().enumerate() {
            let inner = position.checked_sub(1).and_then(|p| path.get(p));
            match &body.stmt(*stmt).kind {
                StmtKind::Block(_) | StmtKind::Expr(_) => {}
                StmtKind::If {
                    init: None,
                    cond: Some(cond),
                    then,
                    ..
                } => self.condition(chain, *cond, inner == Some(then)),
                _ => {
                    self.unknown.get_or_insert(body.stmt(*stmt).span);
                }
            }
        }
    }

    /// `if (…) return;` for all threads: there the chain ends. False for other statements.
    fn returns(&mut self, chain: &Chain<'_>, stmt: StmtId) -> bool {
        let body = &chain.site.body;
        let StmtKind::If {
            init: None,
            cond: Some(cond),
            then,
            otherwise: None,
            ..
        } = &body.stmt(stmt).kind
        else {
            return false;
        };
        let only = match &body.stmt(*then).kind {
            StmtKind::Block(stmts) => match stmts.as_slice() {
                [one] => *one,
                _ => return false,
            },
            _ => *then,
        };
        let known = self.render(chain, *cond);
        if !matches!(body.stmt(only).kind, StmtKind::Return(None)) || known.is_none() {
            return false;
        }
        self.condition(chain, *cond, false);
        true
    }

    fn condition(&mut self, chain: &Chain<'_>, cond: ExprId, outcome: bool) {
        let body = &chain.site.body;
        match &body.expr(cond).kind {
            ExprKind::Paren(inner) => self.condition(chain, *inner, outcome),
            ExprKind::Logical { and, lhs, rhs } if *and == outcome => {
                self.condition(chain, *lhs, outcome);
                self.condition(chain, *rhs, outcome);
            }
            ExprKind::Unary(UnOp::Not, inner) if first_thread(chain, cond, outcome).is_none() => {
                self.condition(chain, *inner, !outcome);
            }
            // Every block has a thread 0.
            _ if first_thread(chain, cond, outcome).is_some() => {}
            _ => match self.render(chain, cond) {
                Some(text) => {
                    let simple = matches!(&body.expr(cond).kind, ExprKind::Binary(..));
                    self.conditions.push(match (outcome, simple) {
                        (true, true) => text,
                        (true, false) => format!("({text})"),
                        (false, _) => format!("!({text})"),
                    });
                }
                None => {
                    self.unknown.get_or_insert(body.expr(cond).span);
                }
            },
        }
    }

    /// The source of an expression with the values of local variables in their place; `None`: not known.
    fn render(&mut self, chain: &Chain<'_>, expr: ExprId) -> Option<String> {
        let mut asks = BTreeSet::new();
        let text = render(chain, expr, &mut asks, 0)?;
        self.asks.extend(asks);
        Some(text)
    }
}

fn render(chain: &Chain<'_>, expr: ExprId, asks: &mut BTreeSet<usize>, depth: u32) -> Option<String> {
    let site = &chain.site;
    let body = &site.body;
    if is_part_of_macro(body, expr) {
        return None;
    }
    let mut text = site.expr_source(expr).to_owned();
    let start = body.expr(expr).span.start;
    // By their places: a macro may use its argument twice.
    let mut locals: Vec<(BindingId, (Span, String))> = Vec::new();
    let mut todo = vec![expr];
    while let Some(next) = todo.pop() {
        let at = body.expr(next);
        match &at.kind {
            // A macro that names it stands there, and nothing can take its place.
            ExprKind::Name(Name::Local(binding))
                if chain.parameter(*binding).is_none() && site.source(at.span) != body.binding(*binding).name =>
            {
                return None;
            }
            ExprKind::Name(Name::Local(binding)) => match chain.parameter(*binding) {
                Some(index) => {
                    if !is_known(chain, index) || !chain.holds(next, &|i| is_known(chain, i)) {
                        return None;
                    }
                    asks.insert(index);
                }
                None => {
                    let ty = &body.binding(*binding).ty;
                    let init = initialiser(chain, *binding)?;
                    let plain = ty.is_value() && is_plain_type(&ty.base);
                    if depth > 8 || !plain || !casts_as_it_converts(site, init, &ty.base) {
                        return None;
                    }
                    if locals.iter().any(|(_, (place, _))| *place == at.span) {
                        continue;
                    }
                    let value = render(chain, init, asks, depth + 1)?;
                    locals.push((*binding, (at.span, format!("static_cast<{}>({value})", ty.base))));
                }
            },
            ExprKind::Paren(e) | ExprKind::Unary(_, e) => todo.push(*e),
            ExprKind::Binary(op, a, b) => {
                let divides = matches!(op, BinOp::Div | BinOp::Rem);
                if divides && !chain.holds(next, &|i| is_known(chain, i)) {
                    return None;
                }
                todo.extend([*a, *b]);
            }
            ExprKind::Logical { lhs, rhs, .. } => todo.extend([*lhs, *rhs]),
            ExprKind::Conditional { cond, then, otherwise } => todo.extend([*cond, *then, *otherwise]),
            ExprKind::Cast {
                ty,
                operand,
                reinterpret: false,
            } if is_plain_type(ty) => todo.push(*operand),
            ExprKind::Field { base, .. } if chain.holds(next, &|i| is_known(chain, i)) => todo.push(*base),
            _ if chain.holds(next, &|i| is_known(chain, i)) => {}
            _ => return None,
        }
    }
    for (binding, _) in named_unlowered(site.db, site.parent, body.expr(expr).span) {
        match chain.parameter(binding) {
            Some(index) if is_known(chain, index) => {
                asks.insert(index);
            }
            // Its own name is replaced by its value.
            None if locals.iter().any(|(local, _)| *local == binding) => {}
            _ => return None,
        }
    }
    let mut locals: Vec<(Span, String)> = locals.into_iter().map(|(_, replaced)| replaced).collect();
    locals.sort_by_key(|(span, _)| std::cmp::Reverse(span.start));
    for (span, value) in locals {
        let (from, to) = ((span.start - start) as usize, (span.end - start) as usize);
        text.get(from..to)?;
        text.replace_range(from..to, &value);
    }
    Some(crate::edit::one_line::flat(&text))
}

/// What a variable is declared with and keeps.
fn initialiser(chain: &Chain<'_>, binding: BindingId) -> Option<ExprId> {
    let site = &chain.site;
    let body = &site.body;
    if !pure::keeps_first_value(site.db, site.parent, body, binding) {
        return None;
    }
    body.initialiser(binding)
}

/// Where the condition has this outcome, the thread's number in one dimension is 0: says which dimension.
pub fn first_thread(chain: &Chain<'_>, cond: ExprId, outcome: bool) -> Option<char> {
    let body = &chain.site.body;
    let is_zero = |e: ExprId| matches!(body.expr(body.strip_parens(e)).kind, ExprKind::Literal(Literal::Int(0)));
    match &body.expr(body.strip_parens(cond)).kind {
        ExprKind::Binary(op, a, b) => {
            let equal = *op == BinOp::Eq && outcome || *op == BinOp::Ne && !outcome;
            let number = if is_zero(*b) { *a } else { *b };
            (equal && (is_zero(*a) || is_zero(*b))).then(|| thread_number(chain, number))?
        }
        ExprKind::Unary(UnOp::Not, inner) if outcome => thread_number(chain, *inner),
        ExprKind::Field { .. } if !outcome => thread_number(chain, cond),
        _ => None,
    }
}

/// `threadIdx.x`, or a variable that holds it.
fn thread_number(chain: &Chain<'_>, expr: ExprId) -> Option<char> {
    let body = &chain.site.body;
    match &body.expr(body.strip_parens(expr)).kind {
        ExprKind::Field {
            base,
            field,
            arrow: false,
        } => {
            let of_thread = matches!(
                body.expr(body.strip_parens(*base)).kind,
                ExprKind::Name(Name::Builtin(Builtin::ThreadIdx))
            );
            field.chars().next().filter(|_| of_thread && field.len() == 1)
        }
        ExprKind::Name(Name::Local(binding)) if chain.parameter(*binding).is_none() => {
            thread_number(chain, initialiser(chain, *binding)?)
        }
        _ => None,
    }
}

/// All threads of a block come to a statement, or none does.
fn is_met_by_all(chain: &Chain<'_>, stmt: StmtId) -> bool {
    let levels = uniformity(chain.site.db, chain.site.parent);
    levels
        .divergence
        .get(&stmt)
        .is_some_and(|u| u.level <= Level::Block && u.assumes.is_empty())
}
