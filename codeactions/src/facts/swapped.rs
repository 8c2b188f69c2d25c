//! Buffers that change places from one launch of a loop to the next, as in `u = v` or `k & 1 ? v : u`: what a grid writes, the next one
//! reads.

use std::collections::BTreeSet;

use gridfuse_analysis::base::span::Span;
use gridfuse_analysis::facts::dependence::{Root, own_footprint};
use gridfuse_analysis::facts::launch::Child;
use gridfuse_analysis::hir::names::unqualified;
use gridfuse_analysis::hir::resolve::functions_named;
use gridfuse_analysis::hir::walk::all_in_expr;
use gridfuse_analysis::hir::{BinOp, ExprId, ExprKind, Name, StmtKind, UnOp, body, parameters};

use crate::edit::lex;
use crate::facts::site::Site;

/// Two pointers that a launch in a loop is given and that change places in that loop, where the child's grids write through one of them;
/// as a fragment of a sentence.
pub fn swapped(site: &Site<'_>) -> Option<String> {
    let Child::Kernel(child) = site.facts.child else {
        return None;
    };
    let turns = Turns::of(site)?;
    let footprint = own_footprint(site.db, child);
    let used = |index: usize, changes: bool| {
        let mut accesses = footprint.accesses.iter();
        accesses.any(|a| a.root == Root::Parameter(index as u32) && !(changes && a.kind.reads_only()))
    };
    let args = || site.facts.args.iter().enumerate();
    for (written, to) in args().filter(|(index, _)| used(*index, true)) {
        for (other, from) in args().filter(|(index, _)| *index != written && used(*index, false)) {
            let (direct_to, direct_from) = (turns.leads(to.expr), turns.leads(from.expr));
            let moves_on = turns.moves_on(to.expr, from.expr);
            // Two parts of what one pointer leads to.
            let by_turns = |all: &BTreeSet<Buffer>| all.iter().any(|buffer| buffer.by_turns);
            if direct_to == direct_from && direct_to.len() == 1 && !by_turns(&direct_to) && !moves_on {
                continue;
            }
            let (all_to, all_from) = (turns.over_time(&direct_to), turns.over_time(&direct_from));
            let several = |all: &BTreeSet<Buffer>| all.len() > 1 || by_turns(all);
            if moves_on {
                return Some(format!(
                    "`{}` is what `{}` is in the next iteration, so that a grid works on what the one before it has written",
                    site.source(to.span),
                    site.source(from.span)
                ));
            }
            let in_turns = !all_to.is_disjoint(&all_from) && (several(&all_to) || several(&all_from));
            if !in_turns {
                continue;
            }
            // The arguments in their order.
            let (first, second) = if written < other { (to, from) } else { (from, to) };
            let code = turns.code(&direct_to, &direct_from);
            return Some(format!(
                "`{}` and `{}` change places in each iteration{}, so that a grid works on what the one before it has written",
                site.source(first.span),
                site.source(second.span),
                code.map_or(String::new(), |span| format!(" (`{}`)", site.source(span)))
            ));
        }
    }
    None
}

/// Something that points to a buffer, by its name in the launching function.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Buffer {
    /// `u`, `state.next`; of `buffers[k & 1]` it is `buffers`.
    name: String,
    /// An element of an array of pointers, another one in the next iteration, as in `buffers[k & 1]`.
    by_turns: bool,
}

/// A pointer that gets a value in the loop.
struct Given {
    name: String,
    value: ExprId,
    code: Span,
}

/// What happens to pointers in the loops around a launch.
pub(crate) struct Turns<'s, 'db> {
    site: &'s Site<'db>,
    given: Vec<Given>,
    /// Pointers that are declared in the loop, so that they have nothing from before.
    declared: BTreeSet<String>,
    /// Integers that get a value in the loop such as `1 - k`.
    toggled: BTreeSet<String>,
    /// What an iteration adds to a variable, as written, and what takes that back: `+ m` and `- m`.
    added: Vec<(String, String, String)>,
    /// Variables that have a new value in each iteration.
    changing: BTreeSet<String>,
    /// Objects whose members get each other's values in the loop, by calls, with the call.
    turned: Vec<(String, Vec<String>, Span)>,
}

impl<'s, 'db> Turns<'s, 'db> {
    /// Of the outermost loop around the launch: the stream keeps the order of all that one thread launches.
    pub(crate) fn of(site: &'s Site<'db>) -> Option<Self> {
        let body = &site.body;
        let around = body.stmt(site.facts.loops.last()?.stmt).span;
        // What a lambda does, it does where it is called.
        let lambdas = body.exprs.iter().filter_map(|expr| match expr.kind {
            ExprKind::Lambda { body: Some(_), .. } => Some(expr.span),
            _ => None,
        });
        let regions: Vec<Span> = lambdas.chain([around]).collect();
        let inside = |span: Span| regions.iter().any(|region| region.contains(span));
        let mut turns = Turns {
            site,
            given: Vec::new(),
            declared: BTreeSet::new(),
            toggled: BTreeSet::new(),
            added: Vec::new(),
            changing: BTreeSet::new(),
            turned: Vec::new(),
        };
        for stmt in body.stmts.iter().filter(|stmt| inside(stmt.span)) {
            let StmtKind::Decl(declared) = &stmt.kind else { continue };
            for decl in declared {
                let name = body.binding(decl.binding).name.clone();
                if let Some(value) = decl.init {
                    let code = body.expr(value).span;
                    turns.give(name.clone(), value, code);
                } else if body.binding(decl.binding).ty.pointers == 0 {
                    turns.changing.insert(name.clone());
                }
                turns.declared.insert(name);
            }
        }
        for expr in body.exprs.iter().filter(|expr| inside(expr.span)) {
            match &expr.kind {
                ExprKind::Assign { op, place, value } => turns.assignment(*op, *place, *value, expr.span),
                ExprKind::IncDec { place, increment, .. } => {
                    let Some(name) = turns.name(*place) else { continue };
                    let (more, less) = ("+ 1".to_owned(), "- 1".to_owned());
                    let (by, back) = if *increment { (more, less) } else { (less, more) };
                    turns.added.push((name.clone(), by, back));
                    turns.changing.insert(name);
                }
                ExprKind::Call { callee, name, args, .. } => {
                    turns.call(*callee, name.as_deref(), args, expr.span);
                }
                // Whoever is given the address may write there.
                ExprKind::AddrOf(place) => turns.changing.extend(turns.name(*place)),
                _ => {}
            }
        }
        turns.given.sort_by_key(|given| given.code.start);
        turns.spread();
        Some(turns)
    }

    fn assignment(&mut self, op: Option<BinOp>, place: ExprId, value: ExprId, code: Span) {
        let body = &self.site.body;
        if let (
            None,
            ExprKind::Call {
                name: Some(tie), args, ..
            },
        ) = (op, &body.expr(place).kind)
            && unqualified(tie) == "tie"
        {
            self.exchange(args, code);
            return;
        }
        let Some(name) = self.name(place) else { return };
        let words = |expr: ExprId| lex::code_words(self.site.source(body.expr(expr).span)).join(" ");
        match op {
            None => {
                if let ExprKind::Call {
                    name: Some(called),
                    args,
                    ..
                } = &body.expr(body.strip_parens(value)).kind
                    && unqualified(called) == "exchange"
                    && let Some(other) = args.first()
                {
                    self.exchange(&[place, *other], code);
                    return;
                }
                if let ExprKind::Call { name: Some(called), .. } = &body.expr(body.strip_parens(value)).kind {
                    let fields = self.fields_of(&name, called, false);
                    self.turned.push((name.clone(), fields, code));
                }
                self.give(name, value, code);
            }
            Some(BinOp::BitXor) => {
                self.toggled.insert(name);
            }
            Some(op) => {
                let by = words(value);
                let (more, less) = (format!("+ {by}"), format!("- {by}"));
                match op {
                    BinOp::Add => self.added.push((name.clone(), more, less)),
                    BinOp::Sub => self.added.push((name.clone(), less, more)),
                    _ => {}
                }
                self.changing.insert(name);
            }
        }
    }

    /// A call that gives variables each other's values: `swap(u, v)`, a function with two references, a member function.
    fn call(&mut self, callee: ExprId, name: Option<&str>, args: &[ExprId], code: Span) {
        let site = self.site;
        let body = &site.body;
        if let ExprKind::Field { base, field, .. } = &body.expr(callee).kind
            && let Some(object) = self.name(*base)
        {
            let fields = self.fields_of(&object, field, true);
            self.turned.push((object, fields, code));
        }
        let Some(name) = name else { return };
        if unqualified(name) == "swap" {
            self.exchange(args, code);
            return;
        }
        let by_reference = |index: usize| {
            functions_named(site.db, site.file, name).into_iter().any(|function| {
                let parameters = parameters(site.db, function);
                let ty = parameters.get(index).map(|parameter| &parameter.ty);
                ty.is_some_and(|ty| ty.reference && !(ty.const_pointer || ty.const_base && ty.pointers == 0))
            })
        };
        let changed: Vec<ExprId> = args
            .iter()
            .enumerate()
            .filter(|(i, _)| by_reference(*i))
            .map(|(_, arg)| *arg)
            .collect();
        if let [one] = changed.as_slice() {
            self.changing.extend(self.name(*one));
        }
        self.exchange(&changed, code);
    }

    /// Each of these may get the value of each other one.
    fn exchange(&mut self, places: &[ExprId], code: Span) {
        for to in places {
            let Some(name) = self.name(*to) else { continue };
            for from in places.iter().filter(|from| *from != to) {
                self.give(name.clone(), *from, code);
            }
        }
    }

    /// Those members of an object, among what the launch is given, that a function names, all of which it may change if it is a member.
    fn fields_of(&self, object: &str, function: &str, member: bool) -> Vec<String> {
        let site = self.site;
        let given = site.facts.args.iter().flat_map(|arg| self.leads(arg.expr));
        let prefix = format!("{object}.");
        let fields: BTreeSet<String> = given
            .map(|buffer| buffer.name)
            .filter(|name| name.starts_with(&prefix))
            .collect();
        let mut found = Vec::new();
        for item in functions_named(site.db, site.file, function) {
            let text = item.text(site.db);
            let words = lex::code_words(&text);
            let body = body(site.db, item);
            let changes = |field: &str| {
                body.exprs.iter().any(|expr| match &expr.kind {
                    ExprKind::Assign { place, .. } => {
                        let place = lex::code_words(body.expr(*place).span.text(&text));
                        place.last() == Some(&field)
                    }
                    ExprKind::Call { name: Some(name), .. } => unqualified(name) == "swap",
                    _ => false,
                })
            };
            found.extend(fields.iter().filter(|field| {
                let field = &field[prefix.len()..];
                words.contains(&field) && (!member || changes(field))
            }));
        }
        found.into_iter().cloned().collect()
    }

    /// Whether an expression may have another value in each iteration: not one that comes back to the same few, as `k & 1`.
    pub(crate) fn varies(&self, expr: ExprId) -> bool {
        !self.alternates(expr) && (self.reads_memory(expr) || self.mentions(expr, &self.changing))
    }

    fn reads_memory(&self, expr: ExprId) -> bool {
        let body = &self.site.body;
        all_in_expr(body, expr).into_iter().any(|part| {
            matches!(
                &body.expr(part).kind,
                ExprKind::Index { .. }
                    | ExprKind::Deref(_)
                    | ExprKind::Call { .. }
                    | ExprKind::Field { arrow: true, .. }
                    | ExprKind::Lambda { .. }
                    | ExprKind::Unknown { .. }
            )
        })
    }

    fn mentions(&self, expr: ExprId, names: &BTreeSet<String>) -> bool {
        let mut parts = all_in_expr(&self.site.body, expr).into_iter();
        parts.any(|part| self.name(part).is_some_and(|name| names.contains(&name)))
    }

    /// The variables that have a new value in each iteration, given those that are counted or changed by operators.
    fn spread(&mut self) {
        loop {
            let more: BTreeSet<String> = self
                .given
                .iter()
                .filter(|given| !self.changing.contains(&given.name) && !self.alternates(given.value))
                .filter(|given| {
                    let itself = BTreeSet::from([given.name.clone()]);
                    // What `u = v` gives isn't new.
                    let computed = self.name(given.value).is_none();
                    self.reads_memory(given.value)
                        || self.mentions(given.value, &self.changing)
                        || computed && self.mentions(given.value, &itself)
                })
                .map(|given| given.name.clone())
                .collect();
            if more.is_empty() {
                return;
            }
            self.changing.extend(more);
        }
    }

    /// Whether the first address of an iteration is the second one of the next: `at + m` and `at`, where `at += m`; `u + (k + 1) * n` and
    /// `u + k * n`, where `++k`.
    fn moves_on(&self, to: ExprId, from: ExprId) -> bool {
        let body = &self.site.body;
        let words = |expr: ExprId| lex::code_words(self.site.source(body.expr(expr).span)).join(" ");
        let (to, from) = (words(to), words(from));
        let moved = |text: &str, name: &str, by: &str| {
            let with = |what: &str| {
                let words = text.split(' ').map(|word| if word == name { what } else { word });
                words.collect::<Vec<_>>().join(" ")
            };
            [with(&format!("( {name} {by} )")), with(&format!("{name} {by}"))]
        };
        to != from
            && self.added.iter().any(|(name, by, back)| {
                let mentioned = |text: &str| text.split(' ').any(|word| word == name);
                mentioned(&to)
                    && mentioned(&from)
                    && (moved(&from, name, by).contains(&to) || moved(&to, name, back).contains(&from))
            })
    }

    fn give(&mut self, name: String, value: ExprId, code: Span) {
        if self.alternates(value) {
            self.toggled.insert(name.clone());
        }
        self.given.push(Given { name, value, code });
    }

    /// The name of a variable, or of a member of one.
    fn name(&self, expr: ExprId) -> Option<String> {
        let body = &self.site.body;
        let expr = body.strip_parens(expr);
        match &body.expr(expr).kind {
            ExprKind::Name(Name::Local(binding)) => Some(body.binding(*binding).name.clone()),
            ExprKind::Field { base, field, .. } => Some(format!("{}.{field}", self.name(*base)?)),
            ExprKind::Index { base, index } if matches!(body.expr(*index).kind, ExprKind::Literal(_)) => {
                let index = lex::code_words(self.site.source(body.expr(*index).span)).concat();
                Some(format!("{}[{index}]", self.name(*base)?))
            }
            _ => None,
        }
    }

    /// Whether a number is computed so that it takes few values by turns: `k & 1`, `(k + 1) % 2`, `!k`, `1 - k`.
    fn alternates(&self, expr: ExprId) -> bool {
        let body = &self.site.body;
        all_in_expr(body, expr)
            .into_iter()
            .any(|part| match &body.expr(part).kind {
                ExprKind::Binary(BinOp::BitAnd | BinOp::Rem | BinOp::BitXor, ..) | ExprKind::Unary(UnOp::Not, _) => {
                    true
                }
                ExprKind::Binary(BinOp::Sub, one, _) => {
                    matches!(body.expr(body.strip_parens(*one)).kind, ExprKind::Literal(_))
                }
                ExprKind::Name(_) => self.name(part).is_some_and(|name| self.toggled.contains(&name)),
                _ => false,
            })
    }

    /// Whether a number gets in the loop what another variable has.
    fn is_permuted(&self, name: &str) -> bool {
        let is_name = |given: &Given| self.name(given.value).is_some_and(|other| other != name);
        self.given.iter().any(|given| given.name == name && is_name(given)) && !self.declared.contains(name)
    }

    /// The pointers that an address is computed from.
    fn leads(&self, expr: ExprId) -> BTreeSet<Buffer> {
        let body = &self.site.body;
        let expr = body.strip_parens(expr);
        let one = |name: String| BTreeSet::from([Buffer { name, by_turns: false }]);
        match &body.expr(expr).kind {
            ExprKind::Name(Name::Local(binding)) => {
                let ty = &body.binding(*binding).ty;
                let name = &body.binding(*binding).name;
                // An offset, as in `u + from` with `swap(from, to)`.
                let is_pointer = ty.pointers > 0 || !ty.array.is_empty() || ty.base.contains("auto");
                if is_pointer || self.is_permuted(name) {
                    one(name.clone())
                } else {
                    BTreeSet::new()
                }
            }
            ExprKind::Field { .. } => self.name(expr).map(one).unwrap_or_default(),
            ExprKind::Conditional { then, otherwise, .. } => {
                let mut both = self.leads(*then);
                both.extend(self.leads(*otherwise));
                both
            }
            ExprKind::Binary(BinOp::Add | BinOp::Sub, a, b) => {
                let mut both = self.leads(*a);
                both.extend(self.leads(*b));
                both
            }
            ExprKind::Cast { operand, .. } | ExprKind::Deref(operand) => self.leads(*operand),
            ExprKind::AddrOf(place) => match &body.expr(body.strip_parens(*place)).kind {
                ExprKind::Index { base, .. } => self.leads(*base),
                _ => self.leads(*place),
            },
            ExprKind::Index { base, index } => match self.name(expr) {
                Some(name) => one(name),
                None => {
                    let permuted = |part: ExprId| self.name(part).is_some_and(|name| self.is_permuted(&name));
                    let by_turns = self.alternates(*index) || all_in_expr(body, *index).into_iter().any(permuted);
                    let name = self.name(*base).filter(|_| by_turns);
                    name.map(|name| BTreeSet::from([Buffer { name, by_turns }]))
                        .unwrap_or_default()
                }
            },
            _ => BTreeSet::new(),
        }
    }

    /// What these pointers may point to in some iteration, by the names that it had before the loop.
    fn over_time(&self, direct: &BTreeSet<Buffer>) -> BTreeSet<Buffer> {
        let mut all = BTreeSet::new();
        let mut seen = BTreeSet::new();
        let mut todo: Vec<Buffer> = direct.iter().cloned().collect();
        while let Some(buffer) = todo.pop() {
            if !seen.insert(buffer.clone()) {
                continue;
            }
            for given in self.given.iter().filter(|given| given.name == buffer.name) {
                // Another part of the memory in each iteration: `u + k * n`.
                if self.varies(given.value) && self.name(given.value).is_none() {
                    return BTreeSet::new();
                }
                todo.extend(self.leads(given.value));
            }
            for (_, fields, _) in self
                .turned
                .iter()
                .filter(|(_, fields, _)| fields.contains(&buffer.name))
            {
                todo.extend(fields.iter().map(|name| Buffer {
                    name: name.clone(),
                    by_turns: false,
                }));
            }
            if !self.declared.contains(&buffer.name) {
                all.insert(buffer);
            }
        }
        all
    }

    /// Where these pointers get another value.
    fn code(&self, a: &BTreeSet<Buffer>, b: &BTreeSet<Buffer>) -> Option<Span> {
        let named = |given: &&Given| a.iter().chain(b).any(|buffer| buffer.name == given.name);
        let turned = |(_, fields, _): &&(String, Vec<String>, Span)| {
            a.iter().chain(b).any(|buffer| fields.contains(&buffer.name))
        };
        let given = self.given.iter().find(named).map(|given| given.code);
        given.or_else(|| self.turned.iter().find(turned).map(|(_, _, code)| *code))
    }
}
