//! Functions that a moved body calls and that read built-in variables themselves: each gets a copy that takes these variables as
//! parameters, as the moved body does, and the body calls the copy. The function itself stays as it is for everybody else.
//!
//! Who may be reached is told by names alone, which errs on the safe side: every mention of such a function in a body that is moved or
//! copied has to be a call that can be edited.

use std::collections::{BTreeSet, HashMap, HashSet};

use gridfuse_analysis::base::db::Db;
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::{Span, TextRange};
use gridfuse_analysis::facts::effects::{BUILTINS, Effects, effects, runs};
use gridfuse_analysis::hir::included::included_files;
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::names::unqualified;
use gridfuse_analysis::hir::resolve::{declarations_of, functions_named};
use gridfuse_analysis::hir::visible::visible;
use gridfuse_analysis::hir::{ExprId, ExprKind, Name};

use crate::edit::lex::{self, TokenKind};
use crate::edit::names::words_with_macros;
use crate::facts::child::Child;
use crate::facts::cluster::Function;
use crate::facts::grid_views::GridViews;
use crate::facts::movable::{Form, friend_declaration, shut_out};
use crate::facts::site::function_around;
use crate::runtime::is_header;

/// Functions that are looked at.
const MAX_FUNCTIONS: usize = 200;

/// A function that gets a copy.
pub struct Copied<'db> {
    /// The function.
    pub function: Function<'db>,
    /// The built-in variables that the copy takes, in the order of [`BUILTINS`].
    pub takes: Vec<&'static str>,
}

/// A call of such a function.
pub struct CopiedCall {
    /// The copied function in which it stands; `None`: the moved body.
    pub caller: Option<usize>,
    /// The copied function that it calls.
    pub callee: usize,
    /// Where the called name stands, without what qualifies it.
    pub name: TextRange,
    /// What has to stand in front of the name for it to be found: `detail::`, or nothing.
    pub scope: String,
    /// Behind the parenthesis that opens its arguments.
    pub open: u32,
    /// It has arguments.
    pub has_arguments: bool,
}

/// All that is copied along with a body.
#[derive(Default)]
pub struct Copies<'db> {
    /// The functions: who is called stands before who calls.
    pub functions: Vec<Copied<'db>>,
    /// Their calls.
    pub calls: Vec<CopiedCall>,
    /// Grids in the body whose numbers the built-in variables say, see [`GridViews`].
    pub viewed: Vec<TextRange>,
}

/// A function that would have to be copied and can't be.
pub struct NotCopied {
    /// Its name.
    pub callee: String,
    /// The built-in variables that it reads.
    pub reads: Vec<&'static str>,
    /// It reads them itself; otherwise a function that it calls does.
    pub itself: bool,
    /// What is in the way: `has several definitions`; nothing where another function is.
    pub why: Option<String>,
    /// Where.
    pub place: FileRange,
}

/// The built-in variables that are parameters of a body in this form.
pub fn taken(form: Form) -> &'static [&'static str] {
    match form {
        Form::Thread => &BUILTINS,
        Form::Block => &BUILTINS[1..],
        Form::Own => &[],
    }
}

/// What has to be copied with a child's body. `kept`: built-in variables that the functions may read themselves. `effects`: of its worker.
///
/// # Errors
/// What can't be copied.
pub fn copies<'db>(
    child: &Child<'db>,
    form: Form,
    kept: &[&str],
    effects: &Effects,
) -> Result<Copies<'db>, Vec<NotCopied>> {
    let foreign: Vec<&'static str> = taken(form).iter().copied().filter(|b| !kept.contains(b)).collect();
    let mut reads: HashMap<FunctionItem<'db>, (BTreeSet<usize>, FileRange)> = HashMap::new();
    let mut lost = Vec::new();
    let mut views = None;
    for (builtin, callee, place) in &effects.builtins_in_callees {
        let index = BUILTINS.iter().position(|b| b == builtin).unwrap_or(0);
        // What a function of CUDA's reads (a cooperative group: which thread this is) no copy can be told.
        let around = function_around(child.db, *place).filter(|f| f.name(child.db) == callee);
        if around.is_none() && !foreign.contains(builtin) {
            continue;
        }
        match around {
            Some(function) => {
                reads
                    .entry(function)
                    .or_insert_with(|| (BTreeSet::new(), *place))
                    .0
                    .insert(index);
            }
            None => {
                let views = views.get_or_insert_with(|| match child.outlined {
                    None => GridViews::of(child),
                    Some(_) => GridViews::default(),
                });
                if !views.answer(child, *place) {
                    lost.push(NotCopied {
                        callee: callee.clone(),
                        reads: vec![builtin],
                        itself: true,
                        why: None,
                        place: *place,
                    });
                }
            }
        }
    }
    let viewed = views.unwrap_or_default().viewed;
    let viewed: Vec<TextRange> = viewed.into_iter().map(|span| span.shift(child.start)).collect();
    let is_foreign = |set: &BTreeSet<usize>| set.iter().any(|b| foreign.contains(&BUILTINS[*b]));
    if !reads.values().any(|(set, _)| is_foreign(set)) && lost.is_empty() {
        return Ok(Copies {
            viewed,
            ..Copies::default()
        });
    }
    let mut search = Search {
        child,
        reads: &reads,
        reached: Vec::new(),
        edges: Vec::new(),
        whys: HashMap::new(),
        calls: Vec::new(),
    };
    let complete = search.reach();
    let needed = search.needed(&is_foreign);
    let takes = search.takes(&needed, form);
    let order = search.order(&needed);
    if child.outlined.is_none() && complete && lost.is_empty() {
        search.check(&needed, form);
    }
    // A reader that names don't lead to can't be followed.
    let unmet = reads
        .iter()
        .any(|(f, (set, _))| is_foreign(set) && !search.reached.contains(f));
    let failed = unmet
        || !complete
        || !lost.is_empty()
        || order.is_none()
        || child.outlined.is_some()
        || !search.whys.is_empty();
    let Some(order) = order.filter(|_| !failed) else {
        return Err(search.refused(&needed, &foreign, &takes, lost));
    };
    let position = |of: usize| order.iter().position(|index| *index == of);
    let calls = search.calls.iter().filter_map(|(caller, callee, call)| {
        Some(CopiedCall {
            caller: if *caller == 0 { None } else { Some(position(*caller)?) },
            callee: position(*callee)?,
            name: call.name,
            scope: call.scope.clone(),
            open: call.open,
            has_arguments: call.has_arguments,
        })
    });
    let calls = calls.collect();
    let functions = order.iter().map(|index| Copied {
        function: Function::new(child.db, search.reached[*index]),
        takes: takes[*index].iter().map(|b| BUILTINS[*b]).collect(),
    });
    Ok(Copies {
        functions: functions.collect(),
        calls,
        viewed,
    })
}

/// Where a call can be edited.
struct Call {
    name: TextRange,
    scope: String,
    open: u32,
    has_arguments: bool,
}

struct Search<'a, 'db> {
    child: &'a Child<'db>,
    reads: &'a HashMap<FunctionItem<'db>, (BTreeSet<usize>, FileRange)>,
    /// The worker, and all that it may reach.
    reached: Vec<FunctionItem<'db>>,
    /// For each of them, whom it mentions.
    edges: Vec<BTreeSet<usize>>,
    /// What is in the way of copying a function.
    whys: HashMap<usize, (String, FileRange)>,
    /// Caller, callee, and where.
    calls: Vec<(usize, usize, Call)>,
}

impl<'db> Search<'_, 'db> {
    /// Follows all names; `false`: there are too many.
    fn reach(&mut self) -> bool {
        let db = self.child.db;
        self.reached.push(self.child.worker());
        let mut at = 0;
        while let Some(item) = self.reached.get(at).copied() {
            let mut edges = BTreeSet::new();
            for name in mentioned(db, item) {
                for callee in functions_named(db, item.file(db), &name) {
                    let ours = is_header(db, callee.file(db));
                    // A declaration counts where its default arguments read something.
                    let reads = self.reads.contains_key(&callee);
                    if ours || callee.signature(db).kernel || !(callee.has_body(db) || reads) {
                        continue;
                    }
                    let known = self.reached.iter().position(|f| *f == callee);
                    edges.insert(known.unwrap_or_else(|| {
                        self.reached.push(callee);
                        self.reached.len() - 1
                    }));
                }
            }
            self.edges.push(edges);
            at += 1;
            if self.reached.len() > MAX_FUNCTIONS {
                return false;
            }
        }
        true
    }

    /// The functions that read, or reach one that reads, a variable that is another one in the moved body; without the worker.
    fn needed(&self, is_foreign: &dyn Fn(&BTreeSet<usize>) -> bool) -> BTreeSet<usize> {
        let reads = |f: &FunctionItem<'db>| self.reads.get(f).is_some_and(|(set, _)| is_foreign(set));
        let mut found: BTreeSet<usize> = (1..self.reached.len()).filter(|i| reads(&self.reached[*i])).collect();
        loop {
            let more: Vec<usize> = (1..self.edges.len())
                .filter(|i| !found.contains(i) && self.edges[*i].iter().any(|callee| found.contains(callee)))
                .collect();
            if more.is_empty() {
                return found;
            }
            found.extend(more);
        }
    }

    /// For each function, the variables that its copy takes.
    fn takes(&self, needed: &BTreeSet<usize>, form: Form) -> Vec<BTreeSet<usize>> {
        let mut takes: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); self.reached.len()];
        for index in needed {
            if let Some((set, _)) = self.reads.get(&self.reached[*index]) {
                let own = set.iter().copied().filter(|b| taken(form).contains(&BUILTINS[*b]));
                takes[*index].extend(own);
            }
        }
        loop {
            let mut changed = false;
            for index in needed {
                for callee in self
                    .edges
                    .get(*index)
                    .into_iter()
                    .flatten()
                    .filter(|c| needed.contains(c))
                {
                    let more: Vec<usize> = takes[*callee].difference(&takes[*index]).copied().collect();
                    changed |= !more.is_empty();
                    takes[*index].extend(more);
                }
            }
            if !changed {
                return takes;
            }
        }
    }

    /// The needed functions, callees first; `None` where they call each other in a circle.
    fn order(&self, needed: &BTreeSet<usize>) -> Option<Vec<usize>> {
        let mut order: Vec<usize> = Vec::new();
        while order.len() < needed.len() {
            let ready = |i: &usize| {
                let callees = self.edges.get(*i).into_iter().flatten();
                callees.filter(|c| needed.contains(c)).all(|c| order.contains(c))
            };
            let next = needed.iter().find(|i| !order.contains(i) && ready(i)).copied()?;
            order.push(next);
        }
        Some(order)
    }

    /// Looks at each needed function, and at each mention of one in a body that is moved or copied.
    fn check(&mut self, needed: &BTreeSet<usize>, form: Form) {
        let functions: Vec<Function<'db>> = self.reached.iter().map(|f| Function::new(self.child.db, *f)).collect();
        for index in needed {
            if let Some(why) = self.in_the_way(&functions, *index, form) {
                let place = functions[*index].name_place();
                self.whys.entry(*index).or_insert((why, place));
            }
        }
        for caller in std::iter::once(0).chain(needed.iter().copied()) {
            self.mentions(&functions, caller, needed);
            self.runs(caller, needed, form);
        }
    }

    /// What a body runs without naming it, `operator()` of an object say, mustn't reach a needed function: it would go on to call the
    /// original, whoever else calls the copy.
    fn runs(&mut self, caller: usize, needed: &BTreeSet<usize>, form: Form) {
        let db = self.child.db;
        for run in runs(db, self.reached[caller]).iter() {
            for callee in &run.functions {
                let known = self.reached.iter().position(|f| f == callee);
                if known.is_some_and(|index| needed.contains(&index)) {
                    continue;
                }
                let inner = effects(db, *callee);
                let read = inner
                    .builtins_in_callees
                    .iter()
                    .filter(|(builtin, ..)| taken(form).contains(builtin));
                let reader = read
                    .filter_map(|(_, _, place)| function_around(db, *place))
                    .find_map(|function| {
                        let index = self.reached.iter().position(|f| *f == function)?;
                        needed.contains(&index).then_some(index)
                    });
                let Some(reader) = reader else { continue };
                let place = FileRange {
                    file: run.function.file(db),
                    range: run.at.shift(run.function.start(db)),
                };
                let why = format!(
                    "is reached by `{}`, too, which isn't called by its name",
                    callee.name(db)
                );
                self.whys.entry(reader).or_insert((why, place));
            }
        }
    }

    /// What forbids copying a function.
    fn in_the_way(&self, functions: &[Function<'db>], index: usize, form: Form) -> Option<String> {
        let db = self.child.db;
        let Function { item, file, .. } = &functions[index];
        let signature = item.signature(db);
        let name = functions[index].name();
        let same_name = |other: &usize| functions[*other].name() == name;
        if !item.has_body(db) || (0..functions.len()).filter(|i| *i != index).any(|i| same_name(&i)) {
            return Some("has several definitions (an overload or a specialisation)".to_owned());
        }
        // A declaration of another one, whose definition isn't in sight, is one more, too.
        let known = declarations_of(db, *item);
        let all = functions_named(db, self.child.file, name);
        if all.iter().any(|f| f != item && !known.contains(f)) {
            return Some("has several definitions (an overload or a specialisation)".to_owned());
        }
        let source = functions[index].item.text(db);
        let head = source.get(..signature.params_span.start as usize).unwrap_or("");
        let body = item.body_span(db);
        let behind = source.get(signature.params_span.end as usize..body.start as usize);
        let behind = behind.unwrap_or("");
        let code = source.get(body.start as usize..body.end as usize).unwrap_or("");
        if signature
            .name_span
            .shift(functions[index].start)
            .text(&functions[index].text)
            != name
        {
            return Some("is defined with a qualified name".to_owned());
        }
        let class = unqualified(scope_of(item.name(db)));
        if name.starts_with("operator") || name.starts_with('~') || class == name {
            return Some("isn't called by its name".to_owned());
        }
        let words = lex::code_words(head);
        if words
            .iter()
            .any(|w| matches!(*w, "virtual" | "friend" | "extern" | "requires"))
        {
            return Some("is virtual, a friend, `extern`, or has requirements".to_owned());
        }
        if friend_declaration(db, *file, name).is_some() {
            return Some("is a friend of a class, which a copy wouldn't be".to_owned());
        }
        if gives_reference(&format!("{head} {behind}"), code) {
            return Some("returns a reference to it, which leads nowhere: return the value".to_owned());
        }
        if signature.conditional || signature.uncertain.is_some() {
            return Some("is defined under an #if, where another definition may take its place".to_owned());
        }
        let defaults = |f: &FunctionItem<'db>| {
            let span = f.signature(db).params_span;
            f.text(db)
                .get(span.start as usize..span.end as usize)
                .is_some_and(|t| t.contains('='))
        };
        if declarations_of(db, *item).iter().any(defaults) {
            return Some("has its default arguments in a declaration apart".to_owned());
        }
        let params = source.get(signature.params_span.start as usize..signature.params_span.end as usize);
        let words = words_with_macros(db, *file, params.unwrap_or(""));
        if BUILTINS.iter().any(|b| words.contains(*b)) {
            return Some("has a default argument that reads it".to_owned());
        }
        if !effects(db, *item).launches.is_empty() {
            return Some("launches grids".to_owned());
        }
        let tokens = lex::code_tokens(code);
        let text = |i: usize| tokens.get(i).map_or("", |t| t.text(code));
        let kept_variable = (0..tokens.len())
            .any(|i| text(i) == "static" && !matches!(text(i + 1), "const" | "constexpr" | "constinit" | "_"));
        if kept_variable
            || words_with_macros(db, *file, code).contains("static") && !lex::identifiers(code).any(|w| w == "static")
        {
            return Some("has a static variable, which a copy would have for itself".to_owned());
        }
        if code.lines().any(|line| {
            let directive = line.trim_start().strip_prefix('#').map(str::trim_start);
            directive.is_some_and(|d| {
                ["define", "undef", "include", "pragma once"]
                    .iter()
                    .any(|w| d.starts_with(w))
            })
        }) {
            return Some("holds a #define or an #include".to_owned());
        }
        if functions[index]
            .body
            .bindings
            .iter()
            .any(|b| BUILTINS.contains(&b.name.as_str()))
        {
            return Some("has a variable with the name of a built-in one".to_owned());
        }
        if !shut_out(db, *file, code, form).is_empty() {
            return Some("has a lambda or a class that reads them".to_owned());
        }
        None
    }

    /// Every mention of a needed function in a body has to be a call that can be edited.
    fn mentions(&mut self, functions: &[Function<'db>], caller: usize, needed: &BTreeSet<usize>) {
        let db = self.child.db;
        let of = &functions[caller];
        let source = of.item.text(db);
        let names: HashSet<&str> = needed.iter().map(|i| functions[*i].name()).collect();
        let index_of = |name: &str| needed.iter().copied().find(|i| functions[*i].name() == name);
        let mut edited: HashSet<u32> = HashSet::new();
        let mut refused: Vec<(usize, &'static str, Span)> = Vec::new();
        for (id, expr) in of.body.exprs.iter().enumerate() {
            let ExprKind::Call { callee, name, .. } = &expr.kind else {
                continue;
            };
            let called = match (name, &of.body.expr(*callee).kind) {
                (_, ExprKind::Name(Name::Local(_))) => continue,
                (Some(name), _) => unqualified(name),
                (None, ExprKind::Field { field, .. }) => field.as_str(),
                _ => continue,
            };
            let Some(index) = index_of(called) else { continue };
            match self.call(functions, caller, index, ExprId(id as u32)) {
                Ok(call) => {
                    edited.insert(call.name.start);
                    self.calls.push((caller, index, call));
                }
                Err(why) => refused.push((index, why, expr.span)),
            }
        }
        let tokens = lex::code_tokens(&source);
        let own_name = of.item.signature(db).name_span;
        for (index, token) in tokens.iter().enumerate().filter(|(_, t)| t.kind == TokenKind::Word) {
            let word = token.text(&source);
            let Some(callee) = index_of(word) else { continue };
            let start = token.start as u32;
            let own = own_name.start <= start && start < own_name.end;
            if own || edited.contains(&(start + of.start)) || is_variable(of, &source, &tokens, index) {
                continue;
            }
            refused.push((
                callee,
                "is mentioned where it isn't called",
                Span::new(start, token.end as u32),
            ));
        }
        let direct: HashSet<&str> = lex::identifiers(&source).collect();
        for word in words_with_macros(db, of.file, &source) {
            if names.contains(word.as_str())
                && !direct.contains(word.as_str())
                && let Some(callee) = index_of(&word)
            {
                refused.push((callee, "is called by a macro", own_name));
            }
        }
        for (callee, why, span) in refused {
            let place = of.place(span);
            self.whys.entry(callee).or_insert_with(|| (why.to_owned(), place));
        }
    }

    /// Where a call is edited, or why it can't be.
    fn call(
        &self,
        functions: &[Function<'db>],
        caller: usize,
        callee: usize,
        id: ExprId,
    ) -> Result<Call, &'static str> {
        const MACRO: &str = "is called by a macro";
        const UNKNOWN: &str = "is called in a way that isn't understood";
        let db = self.child.db;
        let (of, function) = (&functions[caller], &functions[callee]);
        let expr = of.body.expr(id);
        let ExprKind::Call {
            callee: named,
            name,
            template_args,
            args,
        } = &expr.kind
        else {
            return Err(UNKNOWN);
        };
        let named_expr = of.body.expr(*named);
        if args.len() > function.body.params.len() && !function.item.text(db).contains("...") {
            return Err(UNKNOWN);
        }
        if expr.from_macro || named_expr.from_macro {
            return Err(MACRO);
        }
        let lambda =
            |e: &gridfuse_analysis::hir::Expr| matches!(e.kind, ExprKind::Lambda { .. }) && e.span.contains(expr.span);
        if of.body.exprs.iter().any(lambda) {
            return Err("is called in a lambda");
        }
        let visible = if of.file == function.file {
            function.start + function.item.body_span(db).end <= of.start || in_same_class(of, function)
        } else {
            included_files(db, of.file).contains(&function.file)
        };
        if !visible {
            return Err("is defined below its caller");
        }
        let member = function.item.signature(db).member;
        let scope = match name {
            Some(written) if written.contains("::") => String::new(),
            Some(_) if member => match in_same_class(of, function) {
                true => String::new(),
                false => return Err(UNKNOWN),
            },
            Some(_) => {
                let own = scope_of(function.item.name(db));
                let around = scope_of(of.item.name(db));
                let inside = own.is_empty() || around == own || around.starts_with(&format!("{own}::"));
                if inside { String::new() } else { format!("{own}::") }
            }
            None => {
                let ExprKind::Field { base, .. } = &named_expr.kind else {
                    return Err(UNKNOWN);
                };
                let ExprKind::Name(Name::Local(binding)) = &of.body.expr(of.body.strip_parens(*base)).kind else {
                    return Err("is called for an object that is no variable");
                };
                let class = scope_of(function.item.name(db));
                let ty = &of.body.binding(*binding).ty;
                let base = ty.base.trim_start_matches("struct ").trim_start_matches("class ");
                let base = base.split('<').next().unwrap_or("").trim();
                if class.is_empty() || unqualified(class) != unqualified(base) {
                    return Err("is called for an object of another class");
                }
                String::new()
            }
        };
        let whole = expr.span.shift(of.start);
        let own = named_expr.span.shift(of.start);
        let cut = template_args.map_or(own.end, |t| t.shift(of.start).start.min(own.end));
        let code = TextRange::new(own.start, cut.max(own.start)).text(&of.text);
        let last = lex::code_tokens(code).into_iter().rfind(|t| t.kind == TokenKind::Word);
        let Some(last) = last.filter(|t| t.text(code) == function.name()) else {
            return Err(UNKNOWN);
        };
        let behind = template_args.map_or(own.end, |t| t.shift(of.start).end).max(own.end);
        let rest = TextRange::new(behind, whole.end.max(behind)).text(&of.text);
        if !rest.trim_start().starts_with('(') || !rest.ends_with(')') {
            return Err(UNKNOWN);
        }
        Ok(Call {
            name: TextRange::new(own.start + last.start as u32, own.start + last.end as u32),
            scope,
            open: behind + (rest.len() - rest.trim_start().len()) as u32 + 1,
            has_arguments: !args.is_empty(),
        })
    }

    /// What to tell when not everything can be copied.
    fn refused(
        &self,
        needed: &BTreeSet<usize>,
        foreign: &[&'static str],
        takes: &[BTreeSet<usize>],
        lost: Vec<NotCopied>,
    ) -> Vec<NotCopied> {
        let db = self.child.db;
        let mut found = lost;
        let names = |set: &BTreeSet<usize>| -> Vec<&'static str> {
            let all = set.iter().map(|b| BUILTINS[*b]);
            all.filter(|b| foreign.contains(b)).collect()
        };
        let mut told: HashSet<FunctionItem<'db>> = HashSet::new();
        for index in needed {
            let item = self.reached[*index];
            let why = self.whys.get(index);
            // Where something is in the way of some, the others needn't be told.
            if why.is_none() && !self.whys.is_empty() {
                continue;
            }
            told.insert(item);
            let own = self.reads.get(&item);
            let reads = names(own.map_or(&takes[*index], |(set, _)| set));
            let place = why.map(|(_, place)| *place).or(own.map(|(_, place)| *place));
            let name_place = || Function::new(db, item).name_place();
            found.push(NotCopied {
                callee: item.name(db).to_owned(),
                reads: if reads.is_empty() { names(&takes[*index]) } else { reads },
                itself: own.is_some_and(|(set, _)| !names(set).is_empty()),
                why: why.map(|(why, _)| why.clone()),
                place: place.unwrap_or_else(name_place),
            });
        }
        for (item, (set, place)) in self.reads {
            if !self.reached.contains(item) && !names(set).is_empty() && told.insert(*item) {
                found.push(NotCopied {
                    callee: item.name(db).to_owned(),
                    reads: names(set),
                    itself: true,
                    why: None,
                    place: *place,
                });
            }
        }
        found.sort_by_key(|f| (f.place.file.path(db).to_path_buf(), f.place.range.start));
        found
    }
}

/// The namespace or class that a name stands in.
fn scope_of(name: &str) -> &str {
    name.rsplit_once("::").map_or("", |(scope, _)| scope)
}

/// Two members of one class see each other wherever they stand in it.
fn in_same_class(a: &Function<'_>, b: &Function<'_>) -> bool {
    let member = |f: &Function<'_>| f.item.signature(f.db).member;
    let scope = scope_of(a.item.name(a.db));
    member(a) && member(b) && !scope.is_empty() && scope == scope_of(b.item.name(b.db))
}

/// A function, of which this is the head without the parameters and the body, returns a reference to a built-in variable. Even where it
/// isn't copied that is one to a temporary, but it may do what was meant.
fn gives_reference(head: &str, code: &str) -> bool {
    let words = lex::code_words(code);
    let alone = |at: usize| {
        let mut first = at + 1;
        while matches!(words.get(first), Some(&("(" | "{"))) {
            first += 1;
        }
        let field = usize::from(words.get(first + 1) == Some(&".")) * 2;
        let builtin = words.get(first).is_some_and(|w| BUILTINS.contains(w));
        builtin && matches!(words.get(first + 1 + field), Some(&(";" | ")" | "}")))
    };
    lex::code_words(head).iter().any(|w| matches!(*w, "&" | "decltype"))
        && words
            .iter()
            .enumerate()
            .any(|(at, word)| *word == "return" && alone(at))
}

/// The word at `index` is a variable of the function, or a field, and not a function.
fn is_variable(of: &Function<'_>, source: &str, tokens: &[lex::Token], index: usize) -> bool {
    let text = |i: Option<usize>| i.and_then(|i| tokens.get(i)).map_or("", |t| t.text(source));
    let (before, after) = (text(index.checked_sub(1)), text(Some(index + 1)));
    let member = before == "." || before == ">" && text(index.checked_sub(2)) == "-";
    if member {
        return !matches!(after, "(" | "<");
    }
    let qualified = before == ":" && text(index.checked_sub(2)) == ":";
    let word = text(Some(index));
    !qualified && after != "(" && of.body.bindings.iter().any(|b| b.name == word)
}

/// Names of functions in sight that a function mentions, also by macros, and not as a variable.
fn mentioned<'db>(db: &'db dyn Db, item: FunctionItem<'db>) -> BTreeSet<String> {
    let function = Function::new(db, item);
    let source = item.text(db);
    let functions = &visible(db, item.file(db)).functions;
    let tokens = lex::code_tokens(&source);
    let own_name = item.signature(db).name_span;
    let mut found = BTreeSet::new();
    for (index, token) in tokens.iter().enumerate().filter(|(_, t)| t.kind == TokenKind::Word) {
        let word = token.text(&source);
        let start = token.start as u32;
        if functions.contains_key(word)
            && !(own_name.start <= start && start < own_name.end)
            && !is_variable(&function, &source, &tokens, index)
        {
            found.insert(word.to_owned());
        }
    }
    let direct: HashSet<&str> = lex::identifiers(&source).collect();
    let by_macros = words_with_macros(db, item.file(db), &source);
    let more = by_macros
        .into_iter()
        .filter(|w| !direct.contains(w.as_str()) && functions.contains_key(w.as_str()));
    found.extend(more);
    found
}
