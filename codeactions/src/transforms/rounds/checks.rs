//! How the program looks for errors in the loop, which it does behind it now.

use std::collections::BTreeSet;

use gridfuse_analysis::base::span::Span;
use gridfuse_analysis::hir::walk::all_exprs;
use gridfuse_analysis::hir::{BindingId, ExprId, ExprKind, Name, StmtId, StmtKind};

use super::api;
use super::checked;
use super::host_loop::HostLoop;
use crate::api::assumption;
use crate::api::refusal::{Reason, Refusals};
use crate::edit::builder::EditBuilder;
use crate::edit::lex;

/// How the program looks for errors of a call: what stands in front of the call, behind it, and in the statement below.
#[derive(Clone, Debug, Default)]
pub struct Check {
    /// In front of the call: `CHECK(`.
    pub before: String,
    /// Behind it: `);`.
    pub after: String,
    /// A statement below that asks what came of it.
    pub below: Option<String>,
}

impl Check {
    fn words(&self) -> impl Iterator<Item = &str> {
        let parts = [Some(&self.before), Some(&self.after), self.below.as_ref()];
        parts.into_iter().flatten().flat_map(|part| lex::identifiers(part))
    }
}

/// The checks of the loop.
#[derive(Default)]
pub struct Checks {
    /// That of the call which waits, and by how much it is the one to keep.
    waits: Option<(u8, Check)>,
    /// The statement that asks for CUDA's last error, with the one below.
    last: Option<Check>,
    /// One that can't stand behind the loop, and what hinders it.
    lost: Option<(Span, String)>,
    /// One that left the loop where there was an error.
    left: Option<Span>,
}

/// What stands behind the loop.
#[derive(Default)]
pub struct Kept {
    /// Around the call that runs the loop.
    pub check: Check,
    /// Statements below.
    pub last: Option<String>,
    /// Error variables of the loop's own that have to be declared in front.
    pub declared: Vec<String>,
    /// What is declared so has the name of another variable of the function.
    pub hides: bool,
}

impl Checks {
    /// Remembers how the program looks for errors of a call. `next`: the statement below.
    pub fn keep(&mut self, host: &HostLoop<'_>, call: ExprId, stmt: Span, next: Option<StmtId>) {
        let body = &host.function.body;
        let ExprKind::Call { name: Some(name), .. } = &body.expr(call).kind else {
            return;
        };
        let span = body.expr(call).span;
        let asks = |s: &StmtId| {
            matches!(body.stmt(*s).kind, StmtKind::If { .. })
                && checked::calls(&host.function, *s).is_some_and(|calls| calls.is_empty())
        };
        let below = next.filter(asks).map(|s| host.source(body.stmt(s).span).to_owned());
        let bare = name.trim_start_matches("::");
        let plain = host.source(span).trim_start_matches("::").starts_with(bare);
        let mut check = Check::default();
        if plain {
            check.before = host
                .source(Span::new(stmt.start, span.start.max(stmt.start)))
                .to_owned();
            check.after = host.source(Span::new(span.end.min(stmt.end), stmt.end)).to_owned();
        } else {
            // A macro that asks for the last error.
            check.before = host.source(stmt).to_owned();
        }
        check.below = below;
        let words: Vec<&str> = check.words().collect();
        // An error of before the loop is forgotten, too.
        let forgets = plain && bare == "cudaGetLastError";
        if words.iter().all(|word| *word == "void") && !forgets {
            return;
        }
        // What names a variable that is declared in the loop can't stand behind it.
        let inner = words.iter().find(|word| {
            let own = |b: &BindingId| body.binding(*b).name == ***word && !api::is_error(&host.function, *b);
            host.inner.iter().any(own)
        });
        if let Some(name) = inner {
            let why = format!("names `{name}`, which is declared in the loop: declare it in front");
            self.lost = Some((stmt, why));
            return;
        }
        let leaves = |text: &str| lex::identifiers(text).any(|word| matches!(word, "break" | "continue"));
        if leaves(&check.before) || leaves(&check.after) {
            self.lost = Some((stmt, LEAVES.to_owned()));
            return;
        }
        if check.below.as_deref().is_some_and(leaves) {
            // Behind the loop there is nothing to leave: `if (error) break;` does nothing more.
            if next.is_some_and(|s| only_leaves(host, s)) {
                check.below = None;
                self.left = Some(stmt);
            } else {
                self.lost = Some((stmt, LEAVES.to_owned()));
                return;
            }
        }
        let rank = match api::named(&host.function, name) {
            _ if !plain || matches!(bare, "cudaGetLastError" | "cudaPeekAtLastError") => {
                if plain {
                    check.before = host.source(stmt).to_owned();
                    check.after = String::new();
                }
                self.last = Some(check);
                return;
            }
            Some(api::Call::Copy(_) | api::Call::FromSymbol(_)) => 2,
            Some(api::Call::Waits { .. }) if !check.before.is_empty() => 1,
            _ => 0,
        };
        if self.waits.as_ref().is_none_or(|(known, _)| *known <= rank) {
            self.waits = Some((rank, check));
        }
    }

    /// The checks that stand behind the loop. A loop whose errors nobody would see any more is refused.
    pub fn finish(self, host: &HostLoop<'_>, refusals: &mut Refusals, edit: &mut EditBuilder<'_>) -> Kept {
        let body = &host.function.body;
        if let Some(span) = self.left {
            edit.assume(assumption::NO_LAUNCH_FAILS.of(Reason {
                text: "no call of the loop fails: it goes on where `break` left it".to_owned(),
                place: Some(host.function.place(span)),
            }));
        } else if self.waits.is_some() || self.last.is_some() {
            edit.assume(assumption::NO_LAUNCH_FAILS.of(Reason {
                text: "no call of CUDA's runtime fails: the program looks for errors once, after the loop".to_owned(),
                place: Some(host.function.place(host.span())),
            }));
        }
        if let (None, None, Some((span, why))) = (&self.waits, &self.last, &self.lost) {
            refusals.add(
                format!("the check for errors, which moves to after the loop, {why}"),
                Some(host.function.place(*span)),
            );
        }
        let check = self.waits.map(|(_, check)| check).unwrap_or_default();
        let words: BTreeSet<&str> = check.words().chain(self.last.iter().flat_map(Check::words)).collect();
        // Every error variable of the function's keeps what came of its call.
        for binding in assigned_errors(host).into_iter().filter(|b| !host.inner.contains(b)) {
            let own = body.binding(binding);
            if holds_an_error(host, binding) {
                refusals.add(
                    format!(
                        "`{}` holds an error by its name, which the call after the loop replaces even if no round made one: use another variable",
                        own.name
                    ),
                    Some(host.function.place(own.span)),
                );
            }
            if !words.contains(own.name.as_str()) {
                refusals.add(
                    format!(
                        "`{}` holds the error of one of several calls, and after the loop there is one: use one variable for all errors, or look at this one at once",
                        own.name
                    ),
                    Some(host.function.place(own.span)),
                );
            }
        }
        let errors = host.inner.iter().filter(|b| api::is_error(&host.function, **b));
        let own: BTreeSet<&str> = errors.map(|b| body.binding(*b).name.as_str()).collect();
        let is_declaration =
            |check: &Check| lex::identifiers(&check.before).any(|word| matches!(word, "cudaError_t" | "cudaError"));
        let needed = |check: &Check| -> Vec<String> {
            match is_declaration(check) {
                true => Vec::new(),
                false => check.words().filter(|w| own.contains(w)).map(str::to_owned).collect(),
            }
        };
        let mut declared = needed(&check);
        declared.extend(self.last.iter().flat_map(needed));
        declared.sort();
        declared.dedup();
        let mentioned = words.iter().filter(|word| own.contains(**word));
        let hides = mentioned.clone().any(|word| {
            let bindings = (0..body.bindings.len() as u32).map(BindingId);
            let mut others = bindings.filter(|b| !host.inner.contains(b));
            others.any(|b| body.binding(b).name == **word)
        });
        let last = self.last.map(|last| {
            let all = [Some(last.before.clone()), last.below.clone()];
            let text = all.into_iter().flatten().map(ended).collect::<Vec<_>>().join("\n");
            match is_declaration(&last) {
                true => format!("{{\n\t{}\n}}", text.replace('\n', "\n\t")),
                false => text,
            }
        });
        Kept {
            check,
            last,
            declared,
            hides,
        }
    }
}

const LEAVES: &str = "leaves the loop: take `break` and `continue` out of it";

fn ended(text: String) -> String {
    match text.ends_with([';', '}']) {
        true => text,
        false => format!("{text};"),
    }
}

/// Whether a condition does nothing but leave the loop.
fn only_leaves(host: &HostLoop<'_>, stmt: StmtId) -> bool {
    let body = &host.function.body;
    let StmtKind::If {
        then, otherwise: None, ..
    } = &body.stmt(stmt).kind
    else {
        return false;
    };
    match &body.stmt(*then).kind {
        StmtKind::Break => true,
        StmtKind::Block(stmts) => matches!(stmts.as_slice(), [one] if body.stmt(*one).kind == StmtKind::Break),
        _ => false,
    }
}

/// Whether an error variable is given an error by its name, as no call of CUDA's runtime does that succeeds.
fn holds_an_error(host: &HostLoop<'_>, binding: BindingId) -> bool {
    let body = &host.function.body;
    let is_error = |e: ExprId| match &body.expr(body.strip_parens(e)).kind {
        ExprKind::Name(Name::Other(name)) => name.trim_start_matches("::").starts_with("cudaError"),
        _ => false,
    };
    let assigned = body.exprs.iter().filter_map(|e| match e.kind {
        ExprKind::Assign { place, value, .. } if host.local(place) == Some(binding) => Some(value),
        _ => None,
    });
    assigned.chain(body.initialiser(binding)).any(is_error)
}

/// The error variables that the loop assigns.
fn assigned_errors(host: &HostLoop<'_>) -> BTreeSet<BindingId> {
    let body = &host.function.body;
    let assigned = all_exprs(body, host.stmt)
        .into_iter()
        .filter_map(|e| match body.expr(e).kind {
            ExprKind::Assign { place, .. } => host.local(place),
            _ => None,
        });
    assigned.filter(|b| api::is_error(&host.function, *b)).collect()
}
