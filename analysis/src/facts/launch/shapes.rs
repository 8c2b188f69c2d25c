//! Dimensions that a grid or block size has by the code that makes it, where the size isn't understood as a whole.

use super::config::constant_value;
use super::pins::numbers::{Dims, either};
use super::size_code::size_code;
use crate::base::db::Db;
use crate::base::words::words;
use crate::facts::uniformity::class_changes;
use crate::hir::included::included_files;
use crate::hir::items::FunctionItem;
use crate::hir::mentions::{files_mentioning, functions_mentioning};
use crate::hir::names::{EITHER, unqualified};
use crate::hir::resolve::{functions_named, may_mean};
use crate::hir::scope::hides;
use crate::hir::visible::{visible, visible_names};
use crate::hir::walk::operands;
use crate::hir::{BindingId, Body, ExprId, ExprKind, Name, Stmt, StmtKind, body};
use std::collections::{BTreeMap, HashSet};

/// How many definitions are read for one size. What lies behind is as unknown as code that can't be seen.
const MOST: usize = 256;

/// The dimensions beyond the first that some code in sight gives a size on the way to a launch: a `dim3` of several parts, an assignment
/// of a part. The code is what the size is written as, and what its names mean in turn: variables and what is assigned to them, what
/// callers pass, functions, classes with their members, macros, and operators, which are called by no name.
pub fn several_in_sight<'db>(db: &'db dyn Db, function: FunctionItem<'db>, body: &Body, size: ExprId) -> Dims {
    let mut search = Search::new(db, function);
    search.value(function, body, size);
    search.found()
}

/// The same for launches that name no size: calls that get the kernel and what makes a size, as `cudaLaunchKernel` does.
pub(super) fn several_where_passed<'db>(db: &'db dyn Db, kernel: FunctionItem<'db>) -> Dims {
    let name = unqualified(kernel.name(db));
    let mut found = [false; 3];
    for file in files_mentioning(db, name)
        .iter()
        .filter(|file| may_mean(db, **file, kernel))
    {
        for function in functions_mentioning(db, *file, name) {
            if !function.has_body(db) {
                continue;
            }
            let body = body(db, *function);
            let text = function.text(db);
            for expr in &body.exprs {
                let ExprKind::Call { args, .. } = &expr.kind else {
                    continue;
                };
                let passed = |arg: &ExprId| words(body.expr(*arg).span.text(&text)).any(|word| word == name);
                if !args.iter().any(passed) {
                    continue;
                }
                let mut search = Search::new(db, *function);
                for arg in args.iter().filter(|arg| !passed(arg)) {
                    search.value(*function, &body, *arg);
                }
                found = either(found, search.found());
            }
        }
    }
    found
}

struct Search<'db> {
    db: &'db dyn Db,
    /// What launches: names are looked up as it sees them.
    within: FunctionItem<'db>,
    dims: Dims,
    /// Definitions that may still be read.
    left: usize,
    names: HashSet<String>,
    functions: HashSet<FunctionItem<'db>>,
    bindings: HashSet<(FunctionItem<'db>, BindingId)>,
    /// Names that are declared as vectors in what was read.
    declared: HashSet<String>,
    /// Dimensions of `name(…)` and `name{…}` in what was read: a size if `name` is declared as a vector.
    made: BTreeMap<String, Dims>,
}

impl<'db> Search<'db> {
    fn new(db: &'db dyn Db, within: FunctionItem<'db>) -> Self {
        Search {
            db,
            within,
            dims: [false; 3],
            left: MOST,
            names: HashSet::new(),
            functions: HashSet::new(),
            bindings: HashSet::new(),
            declared: HashSet::new(),
            made: BTreeMap::new(),
        }
    }

    /// What was found, with what no name says.
    fn found(mut self) -> Dims {
        self.operators();
        for (name, dims) in &self.made {
            if self.declared.contains(name) {
                self.dims = either(self.dims, *dims);
            }
        }
        self.dims
    }

    /// Reads an expression and what its variables hold.
    fn value(&mut self, function: FunctionItem<'db>, body: &Body, expr: ExprId) {
        let text = function.text(self.db);
        self.read(body.expr(expr).span.text(&text), false);
        self.inner(function, body, expr);
    }

    /// Reads what a variable holds: its initialiser, what is assigned to it or to a part, what is called with it, what callers pass.
    fn variable(&mut self, function: FunctionItem<'db>, body: &Body, binding: BindingId) {
        if !self.bindings.insert((function, binding)) {
            return;
        }
        let variable = body.binding(binding);
        let (ty, name) = (variable.ty.base.clone(), variable.name.clone());
        self.read(&ty, false);
        let of_class = self.is_class(&ty);
        let vector = self.is_vector(&ty) && variable.ty.array.is_empty();
        if vector {
            self.declared.insert(name.clone());
        }
        if let Some(init) = body.initialiser(binding) {
            if let ExprKind::InitList(parts) | ExprKind::Construct { args: parts, .. } = &body.expr(init).kind {
                let one = |e: &ExprId| constant_value(self.db, function, body, *e) == Some(1);
                let dims: Vec<bool> = parts.iter().map(|e| !one(e)).collect();
                if vector {
                    self.dims = either(self.dims, beyond_the_first(&dims));
                }
            }
            let text = function.text(self.db);
            let list = of_class || vector || !variable.ty.array.is_empty();
            self.read(body.expr(init).span.text(&text), list);
            self.inner(function, body, init);
        }
        for (index, expr) in body.exprs.iter().enumerate() {
            let mentions = |e: ExprId| mentions(body, e, binding);
            let whole = ExprId(index as u32);
            match &expr.kind {
                ExprKind::Assign { place, value, .. } if mentions(*place) => {
                    let text = function.text(self.db);
                    self.read(body.expr(whole).span.text(&text), of_class);
                    self.inner(function, body, *value);
                }
                // `shapes.push_back(…)`
                ExprKind::Call { callee, .. } if mentions(*callee) => {
                    let text = function.text(self.db);
                    self.read(body.expr(whole).span.text(&text), of_class);
                }
                ExprKind::Call { args, name, .. }
                    if args
                        .iter()
                        .any(|a| mentions(*a) && self.may_set(body, *a, name.as_deref())) =>
                {
                    let text = function.text(self.db);
                    self.read(body.expr(whole).span.text(&text), of_class);
                }
                _ => {}
            }
        }
        let unread = |stmt: &Stmt| match &stmt.kind {
            StmtKind::Unknown { mentions, .. } | StmtKind::Asm { mentions, .. } => mentions.contains(&binding),
            _ => false,
        };
        if vector && body.stmts.iter().any(unread) {
            self.dims = [false, true, true];
        }
        if vector {
            let changed = class_changes(self.db, function).contains(&binding);
            self.given_away(body, binding, changed);
        }
        // References and pointers to it, or to a part.
        for (index, other) in body.bindings.iter().enumerate() {
            let alias = BindingId(index as u32);
            let pointer = other.ty.reference || other.ty.pointers > 0 || other.ty.base.contains("auto");
            // A class may keep a reference.
            let leads = pointer || self.is_class(&other.ty.base);
            let Some(init) = body.initialiser(alias).filter(|_| leads && alias != binding) else {
                continue;
            };
            if mentions(body, init, binding) {
                self.part_by(body, init, alias);
                self.variable(function, body, alias);
            }
        }
        if let Some(index) = body.params.iter().position(|p| *p == binding) {
            self.passed(function, index);
        }
    }

    /// A part that is given to what may change it, as in `widen(block.y)` or `View view{block.y}`: nobody does that to leave it at 1.
    /// `changed`: something changes the variable without assigning to it. What a method does with an argument isn't known.
    fn given_away(&mut self, body: &Body, binding: BindingId, changed: bool) {
        let mut assigned = HashSet::new();
        let mut to_others = HashSet::new();
        for expr in &body.exprs {
            match &expr.kind {
                ExprKind::Assign { place, .. } => {
                    assigned.insert(body.strip_parens(*place));
                }
                ExprKind::Call { callee, args, .. }
                    if matches!(body.expr(body.strip_parens(*callee)).kind, ExprKind::Field { .. }) =>
                {
                    to_others.extend(args.iter().map(|arg| body.strip_parens(*arg)));
                }
                // Where a header is missing another function of that name may be meant, but nobody says so.
                ExprKind::Call {
                    name: Some(name), args, ..
                } => {
                    let given = args
                        .iter()
                        .enumerate()
                        .filter(|(index, _)| self.takes_reference(name, *index));
                    to_others.extend(given.map(|(_, arg)| body.strip_parens(*arg)));
                }
                _ => {}
            }
        }
        for (index, expr) in body.exprs.iter().enumerate() {
            let ExprKind::Field { base, field, .. } = &expr.kind else {
                continue;
            };
            let axis = match field.as_str() {
                "y" => 1,
                "z" => 2,
                _ => continue,
            };
            let part = ExprId(index as u32);
            let given = changed && !assigned.contains(&part) || to_others.contains(&part);
            if given && mentions(body, *base, binding) {
                self.dims[axis] = true;
            }
        }
    }

    /// Whether a function of this name that is in sight takes its parameter of this index by a reference that isn't to a constant.
    fn takes_reference(&self, name: &str, index: usize) -> bool {
        let functions = functions_named(self.db, self.within.file(self.db), name);
        functions.into_iter().any(|function| {
            let body = body(self.db, function);
            let parameter = body.params.get(index).map(|param| &body.binding(*param).ty);
            parameter.is_some_and(|ty| ty.reference && !ty.const_base)
        })
    }

    /// What is assigned by a reference or a pointer to a part: `unsigned& y = block.y; y = 4;`.
    fn part_by(&mut self, body: &Body, to: ExprId, alias: BindingId) {
        let mut to = body.strip_parens(to);
        loop {
            to = match &body.expr(to).kind {
                ExprKind::AddrOf(place) => body.strip_parens(*place),
                ExprKind::InitList(only) if only.len() == 1 => body.strip_parens(only[0]),
                _ => break,
            };
        }
        let axes: &[usize] = match &body.expr(to).kind {
            ExprKind::Field { field, .. } if field == "y" => &[1],
            ExprKind::Field { field, .. } if field == "z" => &[2],
            // `auto& [x, y, z] = block;`
            ExprKind::Unknown { .. } if body.binding(alias).ty.reference => &[1, 2],
            _ => return,
        };
        let set = body.exprs.iter().any(|expr| match &expr.kind {
            ExprKind::Assign { place, .. } | ExprKind::IncDec { place, .. } => {
                let mut place = body.strip_parens(*place);
                while let ExprKind::Deref(pointer) = body.expr(place).kind {
                    place = body.strip_parens(pointer);
                }
                body.expr(place).kind == ExprKind::Name(Name::Local(alias))
            }
            _ => false,
        });
        for axis in axes {
            self.dims[*axis] |= set;
        }
    }

    /// A function may change what it gets as this argument.
    fn may_set(&self, body: &Body, arg: ExprId, called: Option<&str>) -> bool {
        let by_reference = |function: &FunctionItem<'db>| {
            let text = function.text(self.db);
            function.signature(self.db).params_span.text(&text).contains('&')
        };
        let address = matches!(body.expr(body.strip_parens(arg)).kind, ExprKind::AddrOf(_));
        let functions = || functions_named(self.db, self.within.file(self.db), called.unwrap_or_default());
        address || called.is_none() || functions().iter().any(by_reference)
    }

    /// Reads the variables in an expression.
    fn inner(&mut self, function: FunctionItem<'db>, body: &Body, expr: ExprId) {
        let mut todo = vec![expr];
        while let Some(next) = todo.pop() {
            let kind = &body.expr(next).kind;
            match kind {
                ExprKind::Name(Name::Local(binding)) => self.variable(function, body, *binding),
                ExprKind::Unknown { mentions, .. } | ExprKind::Lambda { mentions, .. } => {
                    for binding in mentions {
                        self.variable(function, body, *binding);
                    }
                }
                _ => {}
            }
            todo.extend(operands(kind));
        }
    }

    /// Reads what the callers of a function pass as its parameter of this index.
    fn passed(&mut self, function: FunctionItem<'db>, index: usize) {
        let db = self.db;
        let name = unqualified(function.name(db));
        for file in files_mentioning(db, name)
            .iter()
            .filter(|file| may_mean(db, **file, function))
        {
            for caller in functions_mentioning(db, *file, name) {
                if !caller.has_body(db) || !self.may_read() {
                    continue;
                }
                let body = body(db, *caller);
                for expr in &body.exprs {
                    match &expr.kind {
                        ExprKind::Call {
                            name: Some(called),
                            args,
                            ..
                        } if unqualified(called) == name => {
                            if let Some(arg) = args.get(index) {
                                self.value(*caller, &body, *arg);
                            }
                        }
                        ExprKind::Launch(launch) if launch.kernel.as_deref().map(unqualified) == Some(name) => {
                            if let Some(arg) = launch.args.get(index) {
                                self.value(*caller, &body, *arg);
                            }
                        }
                        _ => {}
                    }
                }
            }
        }
    }

    /// Reads the operators in sight: conversions, literals, the comma.
    fn operators(&mut self) {
        let db = self.db;
        for file in included_files(db, self.within.file(db)) {
            let code = size_code(db, *file);
            for ty in code.converted(db, *file) {
                if self.may_read() {
                    self.read(&ty.implicit, false);
                }
            }
            for function in code.operators() {
                self.function(function);
            }
        }
    }

    fn may_read(&mut self) -> bool {
        let more = self.left > 0;
        self.left = self.left.saturating_sub(1);
        more
    }

    fn function(&mut self, function: FunctionItem<'db>) {
        if function.has_body(self.db) && self.functions.insert(function) && self.may_read() {
            let text = function.text(self.db);
            let head = function.signature(self.db).head_span;
            let of_class = words(head.text(&text)).any(|word| self.is_class(word));
            self.read(&text, of_class);
        }
    }

    /// Reads what a name means.
    fn name(&mut self, name: &str) {
        if !self.names.insert(name.to_owned()) || hides(self.db, self.within, name) {
            return;
        }
        let (db, file) = (self.db, self.within.file(self.db));
        if let Some(item) = visible_names(db, file).macros.get(name)
            && self.may_read()
        {
            self.read(&item.body, false);
        }
        for function in functions_named(db, file, name) {
            self.function(function);
        }
        if let Some(global) = visible(db, file).globals.get(name)
            && self.may_read()
        {
            if self.is_vector(&global.base) && global.dims == 0 {
                self.declared.insert(name.to_owned());
                if let Some(init) = &global.init {
                    let parts = init
                        .trim()
                        .trim_start_matches(|c: char| c.is_alphanumeric() || c == '_' || c == ':');
                    self.group(parts.trim_start(), Some(name), false);
                }
            }
            self.read(&global.base, false);
            if let Some(init) = &global.init {
                let of_class = self.is_class(&global.base) || global.dims > 0;
                self.read(init, of_class);
            }
            self.assigned(name);
        }
        for file in included_files(db, file) {
            for declaration in size_code(db, *file).members(db, *file, name) {
                if self.may_read() {
                    self.read(declaration, false);
                }
            }
        }
        if self.is_class(name) {
            self.class(name);
        }
    }

    /// Reads assignments of a variable at namespace scope.
    fn assigned(&mut self, name: &str) {
        let db = self.db;
        for file in included_files(db, self.within.file(db)) {
            for (function, statement) in size_code(db, *file).assignments(db, *file, name) {
                if self.may_read() {
                    self.read(statement.text(&function.text(db)), false);
                }
            }
        }
    }

    /// Reads the members of a class.
    fn class(&mut self, name: &str) {
        let db = self.db;
        for file in included_files(db, self.within.file(db)) {
            let code = size_code(db, *file);
            for ty in code.types(db, *file, name) {
                self.read(&ty.bases, false);
                self.read(&ty.implicit, false);
                for (of, declarator) in &ty.fields {
                    if self.may_read() {
                        self.read(&format!("{of} {declarator}"), false);
                    }
                }
            }
            for function in code.functions_in(name) {
                self.function(function);
            }
        }
    }

    fn is_class(&self, ty: &str) -> bool {
        let file = self.within.file(self.db);
        words(ty).any(|word| word != "dim3" && visible_names(self.db, file).types.contains(word))
    }

    /// CUDA's vectors of sizes, by all names that they have here.
    fn is_vector(&self, ty: &str) -> bool {
        let ty = unqualified(ty.trim_start_matches("const ").trim().trim_end_matches(['&', ' ']));
        let names = visible_names(self.db, self.within.file(self.db));
        let mut ty = ty.to_owned();
        for _ in 0..8 {
            if ty.split(EITHER).any(|one| {
                let one = unqualified(one.trim_start_matches("const ").trim());
                let element = one.strip_prefix("make_").unwrap_or(one);
                matches!(element, "dim3" | "uint3" | "int3")
            }) {
                return true;
            }
            match names.aliases.get(unqualified(&ty)) {
                Some(to) if to.trim() != ty => ty = to.trim().to_owned(),
                _ => return false,
            }
        }
        false
    }

    /// Reads a text: the sizes that it makes, and what its names mean. `of_class`: a list that it returns or consists of makes an object
    /// of a class, or is an array.
    fn read(&mut self, text: &str, of_class: bool) {
        let bytes = text.as_bytes();
        for (at, byte) in bytes.iter().enumerate() {
            match byte {
                b'(' | b'{' => {
                    let before = text[..at].trim_end();
                    let word = last_word(before);
                    let first = word.is_none() && !before.ends_with(['{', ',', '(']);
                    if *byte == b'{' || word.is_some() {
                        self.group(&text[at..], word, first && of_class);
                    }
                }
                b'.' => self.part(&text[at + 1..]),
                b'>' if at > 0 && bytes[at - 1] == b'-' => self.part(&text[at + 1..]),
                _ => {}
            }
        }
        let mut declares = false;
        for word in words(text) {
            if declares {
                self.declared.insert(word.to_owned());
            }
            declares = self.is_vector(word);
        }
        let found: Vec<String> = words(text).map(str::to_owned).collect();
        for word in found {
            self.name(&word);
        }
    }

    /// `y = 4`, behind a dot.
    fn part(&mut self, text: &str) {
        let text = text.trim_start();
        let axis = match text.as_bytes() {
            [b'y', ..] => 1,
            [b'z', ..] => 2,
            _ => return,
        };
        let rest = text[1..].trim_start();
        let rest = rest.trim_start_matches(['+', '*', '/', '-', '|', '^', '&', '%', '<', '>']);
        let Some(value) = rest.strip_prefix('=').filter(|value| !value.starts_with('=')) else {
            return;
        };
        let value = value.split([';', ',', ')', '}']).next().unwrap_or(value);
        if !self.is_one(value) && !text[1..].starts_with(|c: char| c == '_' || c.is_alphanumeric()) {
            self.dims[axis] = true;
        }
    }

    /// A group of parts in brackets that `text` begins with, behind a word. `of_class`: without a word before it, it makes no size.
    fn group(&mut self, text: &str, word: Option<&str>, of_class: bool) {
        let Some(parts) = parts(text).filter(|parts| matches!(parts.len(), 2 | 3)) else {
            return;
        };
        let several: Vec<bool> = parts.iter().map(|part| !self.is_one(part)).collect();
        let dims = beyond_the_first(&several);
        match word {
            Some(word) if self.is_vector(word) => self.dims = either(self.dims, dims),
            Some(word) => {
                let known = self.made.entry(word.to_owned()).or_default();
                *known = either(*known, dims);
            }
            None if of_class => {}
            None => {
                // Lists of sizes or texts are no size.
                let number =
                    |part: &&str| !part.contains(['{', '"', ';', '=']) && !words(part).any(|w| self.is_vector(w));
                if parts.iter().all(number) {
                    self.dims = either(self.dims, dims);
                }
            }
        }
    }

    fn is_one(&self, part: &str) -> bool {
        let part = part.trim();
        let one = |text: &str| matches!(text.trim().trim_end_matches(['u', 'U', 'l', 'L']), "1");
        let (db, file) = (self.db, self.within.file(self.db));
        let constant = || visible(db, file).globals.get(part).filter(|global| global.constant);
        one(part)
            || constant().is_some_and(|global| global.init.as_deref().is_some_and(one))
            || visible_names(db, file)
                .macros
                .get(part)
                .is_some_and(|item| one(&item.body))
    }
}

fn beyond_the_first(several: &[bool]) -> Dims {
    let at = |axis: usize| several.get(axis).copied().unwrap_or(false);
    [false, at(1), at(2)]
}

/// Whether a variable is mentioned in an expression.
fn mentions(body: &Body, expr: ExprId, binding: BindingId) -> bool {
    let mut todo = vec![expr];
    while let Some(next) = todo.pop() {
        let kind = &body.expr(next).kind;
        if *kind == ExprKind::Name(Name::Local(binding)) {
            return true;
        }
        todo.extend(operands(kind));
    }
    false
}

/// The word that a text ends with, without template arguments.
fn last_word(text: &str) -> Option<&str> {
    let text = match text.ends_with('>') {
        true => text.split_once('<').map_or(text, |(before, _)| before),
        false => text,
    };
    let start = text
        .rfind(|c: char| !(c == '_' || c.is_ascii_alphanumeric()))
        .map_or(0, |at| at + 1);
    let word = &text[start..];
    let names = word.starts_with(|c: char| c == '_' || c.is_ascii_alphabetic());
    (names
        && !matches!(
            word,
            "return" | "else" | "do" | "try" | "const" | "noexcept" | "override"
        ))
    .then_some(word)
}

/// The parts between the brackets that a text begins with; `None` where they don't end.
fn parts(text: &str) -> Option<Vec<&str>> {
    let mut depth = 0usize;
    let mut found = Vec::new();
    let mut start = 1;
    for (at, c) in text.char_indices() {
        match c {
            '(' | '{' | '[' => depth += 1,
            ')' | '}' | ']' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    found.push(text.get(start..at)?);
                    return Some(found);
                }
            }
            ',' if depth == 1 => {
                found.push(text.get(start..at)?);
                start = at + 1;
            }
            _ => {}
        }
    }
    None
}
