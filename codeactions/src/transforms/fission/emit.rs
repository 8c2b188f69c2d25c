//! Writes the serial function.

use std::collections::BTreeSet;

use gridfuse_analysis::base::span::Span;
use gridfuse_analysis::hir::walk::{all_in_expr, all_stmts, parts};
use gridfuse_analysis::hir::{Binding, BindingId, Body, ExprKind, Name, StmtId, StmtKind, Storage};

use super::Fission;
use super::copies::{Copy, given, renamed};
use super::layout::{names_of, returns};
use super::memory::Dynamic;
use super::structure::{Branch, Item};
use super::text::{Slice, Text, comments_only, slices};
use crate::edit::lex;
use crate::facts::builtin_objects::Objects;
use crate::facts::child::Child;
use crate::facts::uses::{named, variables};

/// Names in the generated function.
pub struct SerialNames {
    /// Parameter: the child's grid size.
    pub grid: String,
    /// Parameter: the child's block size.
    pub block: String,
    /// How many elements the arrays have.
    pub threads: String,
    /// The constant below which grids run in one thread.
    pub threshold: String,
}

/// State of the output.
struct Out<'a, 'db> {
    text: Text<'a, 'db>,
    lines: String,
    /// Number of a thread in its block.
    thread: String,
    /// The threads that have not left.
    running: String,
    /// How the lambdas' parameters are declared that stand for built-in variables.
    objects: Objects,
    last: Option<usize>,
}

impl Fission<'_, '_> {
    fn body(&self) -> &Body {
        &self.child.body
    }

    /// A name that the child's body doesn't use.
    pub fn local(&self, wanted: &str) -> String {
        self.child.local_around_body(wanted)
    }

    /// Whether arrays are needed that have an element for each thread.
    pub fn constant_threads(&self) -> Option<u64> {
        self.sizes.threads.constant.then_some(self.sizes.threads.most)
    }

    /// The statements of the serial function, with tabs.
    pub fn code(&self, names: &SerialNames) -> String {
        let mut out = Out {
            text: Text::new(self.child),
            lines: String::new(),
            thread: self.local("thread"),
            running: self.local("threads"),
            objects: Objects::of(
                self.child.db,
                self.child.file,
                self.child.source(self.child.item.body_span(self.child.db)),
            ),
            last: None,
        };
        self.replace_names(names, &mut out);
        let (grid, block) = (&names.grid, &names.block);
        let of_block = out.objects.parameters(["blockIdx", "gridDim", "blockDim"]);
        out.line(
            1,
            &format!("gridfuse::for_each_block({grid}, {block}, [&]({of_block}) {{"),
        );
        if self.layout.exits {
            let (threads, running) = (&names.threads, &out.running);
            let line = format!("gridfuse::BlockThreads<{threads}> {running}(blockDim);");
            out.line(2, &line);
        }
        self.copy_parameters(names, &mut out);
        if let Some(root) = self.body().root {
            let whole = self.body().stmt(root).span;
            let within = Span::new(whole.start + 1, whole.end.saturating_sub(1).max(whole.start + 1));
            let last = self.layout.items.len().checked_sub(1);
            for (item, row) in self.rows(&self.layout.items, within) {
                out.last = (Some(item) == last).then_some(item);
                self.item(&self.layout.items[item], &row, 2, names, &mut out);
            }
        }
        out.lines.push_str("\t});");
        out.lines
    }

    /// The items in a row, with the slices of their statements.
    fn rows(&self, items: &[Item], within: Span) -> Vec<(usize, Vec<Slice>)> {
        let mut stmts = Vec::new();
        for item in items {
            match item {
                Item::Region(all) => stmts.extend(all),
                Item::Barrier(s) | Item::Shared(s) | Item::Once(s) | Item::Control { stmt: s, .. } => stmts.push(*s),
            }
        }
        let mut all = slices(self.child, &stmts, within).into_iter();
        let row = |item: &Item, all: &mut dyn Iterator<Item = Slice>| {
            let count = match item {
                Item::Region(stmts) => stmts.len(),
                _ => 1,
            };
            all.take(count).collect()
        };
        items
            .iter()
            .enumerate()
            .map(|(i, item)| (i, row(item, &mut all)))
            .collect()
    }

    /// Element accesses for variables in arrays, plain functions for atomics on shared memory.
    fn replace_names(&self, names: &SerialNames, out: &mut Out<'_, '_>) {
        let body = self.body();
        for expr in &body.exprs {
            if let ExprKind::Name(Name::Local(b)) = expr.kind
                && self.layout.arrays.contains(&b)
                && !expr.from_macro
            {
                let end = Span::new(expr.span.end, expr.span.end);
                out.text.replace(end, format!("[{}]", out.thread));
            }
        }
        for (call, member) in &self.groups.members {
            out.text.replace(body.expr(*call).span, member.code.clone());
        }
        for span in &self.atomics {
            let name = self.child.source(*span).trim_start_matches("::");
            let name = name
                .strip_suffix("_block")
                .or(name.strip_suffix("_system"))
                .unwrap_or(name);
            out.text.replace(*span, format!("gridfuse::serial::{name}"));
        }
        for stmt in 0..body.stmts.len() {
            let stmt = StmtId(stmt as u32);
            let StmtKind::Decl(decls) = &body.stmt(stmt).kind else {
                continue;
            };
            let shared = |b: &Binding| matches!(b.storage, Storage::Shared | Storage::ExternShared);
            if decls.iter().any(|d| shared(body.binding(d.binding))) {
                self.replace_shared(stmt, names, out);
            }
        }
    }

    /// `__shared__ int a[4];` becomes `/* __shared__ */ int a[4];`.
    fn replace_shared(&self, stmt: StmtId, names: &SerialNames, out: &mut Out<'_, '_>) {
        let body = self.body();
        let span = body.stmt(stmt).span;
        let source = self.child.source(span);
        let tokens = lex::code_tokens(source);
        let at = |start: usize, end: usize| Span::new(span.start + start as u32, span.start + end as u32);
        let casts = body
            .exprs
            .iter()
            .any(|e| matches!(e.kind, ExprKind::Cast { reinterpret: true, .. }));
        let dynamic = tokens.iter().any(|t| t.text(source) == "extern");
        let aligned = if casts || dynamic { " alignas(16)" } else { "" };
        for token in &tokens {
            match token.text(source) {
                "extern" => {
                    let next = tokens
                        .iter()
                        .find(|t| t.start > token.start)
                        .map_or(token.end, |t| t.start);
                    out.text.replace(at(token.start, next), String::new());
                }
                "__shared__" => {
                    let words = if dynamic { "extern __shared__" } else { "__shared__" };
                    out.text
                        .replace(at(token.start, token.end), format!("/* {words} */{aligned}"));
                }
                "]" => {
                    // Of the array, not of an attribute.
                    let extent = |binding: BindingId| {
                        let name = body.binding(binding).span.end.saturating_sub(span.start) as usize;
                        let behind = tokens.iter().find(|t| t.start >= name && t.text(source) == "]");
                        behind.is_some_and(|first| first.start == token.start)
                    };
                    if let Some((binding, given)) = self.sizes.dynamic.filter(|(b, _)| dynamic && extent(*b)) {
                        let count = self.dynamic_count(binding, given, names);
                        out.text.replace(at(token.start, token.start), count);
                    }
                }
                // Names for the linker mean nothing for a local array.
                _ => {}
            }
        }
    }

    /// How many elements dynamic shared memory has.
    fn dynamic_count(&self, binding: BindingId, given: Dynamic, names: &SerialNames) -> String {
        let ty = &self.body().binding(binding).ty;
        let stars = "*".repeat(usize::from(ty.pointers));
        let of_element = format!("sizeof({}{stars})", if ty.pointers == 0 { &ty.base } else { &ty.text });
        match given {
            Dynamic::Bytes {
                all,
                element: Some(element),
            } => all.div_ceil(element).to_string(),
            // Other arrays may lie in what is left of it.
            Dynamic::Bytes { all, element: None } => format!("({all} + {of_element} - 1) / {of_element}"),
            Dynamic::Room { element } => {
                let room = format!("{} * gridfuse::kSharedPerThread", names.threshold);
                match element {
                    Some(1) => room,
                    // What each thread has room for is 8 bytes.
                    Some(2 | 4 | 8) => format!("{room} / {of_element}"),
                    _ => format!("({room} + {of_element} - 1) / {of_element}"),
                }
            }
        }
    }

    /// A name for each parameter that has copies: what the grid is launched with. The copies have the parameter's own name.
    pub fn given_parameters(&self, params: Vec<String>) -> Vec<String> {
        let body = self.body();
        let own = body.params.iter().zip(params);
        let renamed = |param: BindingId, written: &str| {
            let copied = self.layout.copies.contains_key(&param);
            copied.then(|| renamed(written, &body.binding(param).name, &given(self.child, param)))?
        };
        own.map(|(param, written)| renamed(*param, &written).unwrap_or(written))
            .collect()
    }

    /// Copies of the parameters that the child changes.
    fn copy_parameters(&self, names: &SerialNames, out: &mut Out<'_, '_>) {
        let of = |wanted: Copy| {
            let copies = self.layout.copies.iter();
            copies
                .filter(move |(_, copy)| **copy == wanted)
                .map(|(param, _)| *param)
        };
        for param in of(Copy::Block) {
            out.line(2, &self.copy(param));
        }
        if of(Copy::Threads).next().is_none() {
            return;
        }
        for param in of(Copy::Threads) {
            let line = self.array(param, names);
            out.line(2, &line);
        }
        let parameters = format!("{}, unsigned {}", out.objects.parameter("threadIdx"), out.thread);
        out.line(2, &format!("gridfuse::for_each_thread(blockDim, [&]({parameters}) {{"));
        for param in of(Copy::Threads) {
            let name = &self.body().binding(param).name;
            out.line(3, &format!("{name}[{}] = {};", out.thread, given(self.child, param)));
        }
        out.line(2, "});");
    }

    /// `int n = n_given;`
    fn copy(&self, param: BindingId) -> String {
        let variable = self.body().binding(param);
        let stars = "*".repeat(usize::from(variable.ty.pointers));
        format!(
            "{}{stars} {} = {};",
            variable.ty.text,
            variable.name,
            given(self.child, param)
        )
    }

    fn items(&self, branch: &Branch, level: usize, names: &SerialNames, out: &mut Out<'_, '_>) {
        let statement = self.body().stmt(branch.stmt);
        let within = match statement.kind {
            StmtKind::Block(_) => Span::new(
                statement.span.start + 1,
                statement.span.end.saturating_sub(1).max(statement.span.start + 1),
            ),
            _ => statement.span,
        };
        out.last = None;
        for (item, row) in self.rows(&branch.items, within) {
            self.item(&branch.items[item], &row, level, names, out);
        }
    }

    fn item(&self, item: &Item, row: &[Slice], level: usize, names: &SerialNames, out: &mut Out<'_, '_>) {
        let Some(first) = row.first() else { return };
        if first.blank_before {
            out.lines.push('\n');
        }
        let tabs = "\t".repeat(level);
        match item {
            Item::Region(stmts) => self.region(stmts, row, level, names, out),
            Item::Barrier(_) => {
                let source = self.child.source(first.span);
                let own = self.child.source(first.own);
                let several_lines = source.matches('\n').count() > 0 || own.contains('\n');
                if several_lines || lex::comments(source).iter().any(|c| c.text(source).starts_with("/*")) {
                    for comment in comments_only(self.child, first.span) {
                        out.line(level, &comment);
                    }
                    out.line(level, &format!("// {own}"));
                } else {
                    out.line(level, &format!("// {source}"));
                }
            }
            Item::Shared(_) | Item::Once(_) => {
                let code = out.text.indented(first.span, first.own.start, &tabs);
                out.line(level, &code);
            }
            Item::Control { stmt, bodies } => self.control(*stmt, bodies, first, level, names, out),
        }
    }

    fn control(
        &self,
        stmt: StmtId,
        bodies: &[Branch],
        slice: &Slice,
        level: usize,
        names: &SerialNames,
        out: &mut Out<'_, '_>,
    ) {
        let body = self.body();
        let tabs = "\t".repeat(level);
        let Some(first) = bodies.first() else { return };
        let inner = body.stmt(first.stmt).span;
        // The comments in front, and the head up to the first branch.
        let head = if matches!(body.stmt(stmt).kind, StmtKind::Block(_)) {
            Span::new(slice.span.start, slice.own.start)
        } else {
            Span::new(slice.span.start, inner.start)
        };
        let head = out.text.indented(head, slice.own.start, &tabs).trim_end().to_owned();
        let ends_in_comment = lex::comments(&head).last().is_some_and(|c| c.end == head.len());
        let open = match (head.is_empty(), ends_in_comment) {
            (true, _) => "{".to_owned(),
            (false, true) => format!("{head}\n{tabs}{{"),
            (false, false) => format!("{head} {{"),
        };
        out.line(level, &open);
        self.items(first, level + 1, names, out);
        let mut close = "}".to_owned();
        let mut end = inner.end;
        if let Some(other) = bodies.get(1) {
            let span = body.stmt(other.stmt).span;
            out.line(level, "} else {");
            for comment in comments_only(self.child, Span::new(inner.end, span.start)) {
                out.line(level + 1, &comment);
            }
            self.items(other, level + 1, names, out);
            end = span.end;
        }
        if let StmtKind::DoWhile { .. } = body.stmt(stmt).kind {
            let rest = out.text.render(Span::new(inner.end, slice.own.end));
            close = format!("}} {}", rest.trim_start());
            end = slice.own.end;
        }
        // What stands behind it on its line.
        let behind = comments_only(
            self.child,
            Span::new(end.max(slice.own.end), slice.span.end.max(slice.own.end)),
        );
        let mut behind = behind.into_iter();
        if let Some(comment) = behind.next() {
            close = format!("{close}  {comment}");
        }
        out.line(level, &close);
        for comment in behind {
            out.line(level, &comment);
        }
    }

    /// A loop over the threads of the block.
    fn region(&self, stmts: &[StmtId], row: &[Slice], level: usize, names: &SerialNames, out: &mut Out<'_, '_>) {
        let body = self.body();
        let again = self.again_in(stmts);
        let declared = declared_in(body, stmts);
        // What is needed in front of the region, with all that it is computed from.
        let mut front: BTreeSet<BindingId> = again.iter().copied().filter(|b| !declared.contains(b)).collect();
        self.with_origins(&mut front);
        self.declare_arrays(&declared, level, names, out);
        let leaves = stmts.iter().any(|s| returns(body, *s)) && out.last.is_none() && self.layout.exits;
        if leaves {
            for stmt in stmts.iter().flat_map(|s| all_stmts(body, *s)) {
                let statement = body.stmt(stmt);
                if matches!(statement.kind, StmtKind::Return(_)) {
                    let by = format!("return {}.exit({});", out.running, out.thread);
                    out.text.replace(statement.span, by);
                }
            }
        }
        let tabs = "\t".repeat(level + 1);
        let mut code = String::new();
        let used = names_of(body, stmts);
        for (param, _) in { self.layout.copies.iter() }.filter(|(b, c)| **c == Copy::Region && used.contains(b)) {
            code.push_str(&format!("{tabs}{}\n", self.copy(*param)));
        }
        for binding in &front {
            code.push_str(&format!("{tabs}{}\n", self.declaration(*binding, &out.text)));
        }
        let mut any = false;
        for slice in row {
            let replaced = self.declarations(slice.stmt, &front, &again, &out.text);
            let mut text = match replaced {
                None => out.text.indented(slice.span, slice.own.start, &tabs),
                // Each directive has its line.
                Some(by) if has_directives(self.child, slice) => {
                    let part = |from: u32, to: u32| out.text.indented(Span::new(from, to), slice.own.start, &tabs);
                    let (lead, tail) = (
                        part(slice.span.start, slice.own.start),
                        part(slice.own.end, slice.span.end),
                    );
                    let all = [
                        lead.trim().to_owned(),
                        by.join(&format!("\n{tabs}")),
                        tail.trim().to_owned(),
                    ];
                    let all: Vec<String> = all.into_iter().filter(|piece| !piece.is_empty()).collect();
                    all.join(&format!("\n{tabs}"))
                }
                Some(by) => {
                    let mut pieces = comments_only(self.child, Span::new(slice.span.start, slice.own.start));
                    let behind = comments_only(self.child, Span::new(slice.own.end, slice.span.end)).join(" ");
                    let mut by = by.join(&format!("\n{tabs}"));
                    if !behind.is_empty() {
                        let space = if by.is_empty() { "" } else { "  " };
                        by = format!("{by}{space}{behind}");
                    }
                    if !by.is_empty() {
                        pieces.push(by);
                    }
                    pieces.join(&format!("\n{tabs}"))
                }
            };
            if text.is_empty() {
                continue;
            }
            any |= !lex::is_blank(text.trim_matches(';'));
            if code.is_empty() || code.ends_with('\n') || !slice.same_line {
                if !code.is_empty() && !code.ends_with('\n') {
                    code.push('\n');
                }
                if slice.blank_before && !code.is_empty() && slice.stmt != row[0].stmt {
                    code.push('\n');
                }
                if !text.starts_with('#') {
                    text.insert_str(0, &tabs);
                }
            } else {
                code.push(' ');
            }
            code.push_str(&text);
        }
        if !any {
            for slice in row {
                for comment in comments_only(self.child, slice.span) {
                    out.line(level, &comment);
                }
            }
            return;
        }
        let by_number = lex::identifiers(&code).any(|w| w == out.thread);
        let mut parameters = out.objects.parameter("threadIdx");
        if by_number {
            parameters.push_str(&format!(", unsigned {}", out.thread));
        }
        let head = if self.layout.exits {
            format!("{}.for_each([&]({parameters}) {{", out.running)
        } else {
            format!("gridfuse::for_each_thread(blockDim, [&]({parameters}) {{")
        };
        out.line(level, &head);
        out.lines.push_str(&code);
        out.lines.push('\n');
        out.line(level, "});");
        if leaves {
            let line = format!("if ({}.none()) return;", out.running);
            out.line(level, &line);
        }
    }

    /// Arrays for the variables that a region declares and others use.
    fn declare_arrays(&self, declared: &BTreeSet<BindingId>, level: usize, names: &SerialNames, out: &mut Out<'_, '_>) {
        for binding in declared.iter().filter(|b| self.layout.arrays.contains(b)) {
            let line = self.array(*binding, names);
            out.line(level, &line);
        }
    }

    /// The declaration of an array with an element of a variable for each thread.
    fn array(&self, binding: BindingId, names: &SerialNames) -> String {
        let variable = self.body().binding(binding);
        let ty = &variable.ty;
        let base = if ty.pointers == 0 { &ty.base } else { &ty.text };
        let stars = "*".repeat(usize::from(ty.pointers));
        let extents = self.extents(variable);
        format!("{base}{stars} {}[{}]{extents};", variable.name, names.threads)
    }

    /// `[4][2]` of an array as written.
    fn extents(&self, variable: &Binding) -> String {
        let mut out = String::new();
        for extent in variable.ty.array.iter().flatten() {
            out.push_str(&format!("[{}]", self.child.source(self.body().expr(*extent).span)));
        }
        out
    }

    /// The variables that a region uses and that are computed again, with those that they are computed from.
    fn again_in(&self, stmts: &[StmtId]) -> BTreeSet<BindingId> {
        let mut found = names_of(self.body(), stmts);
        found.retain(|b| self.layout.again.contains_key(b));
        // The initialisers of those that are declared here without being used here don't count.
        let declared = declared_in(self.body(), stmts);
        found.retain(|b| !declared.contains(b) || self.used_besides_declarations(stmts, *b));
        self.with_origins(&mut found);
        found
    }

    /// Whether some expression of the region other than an initialiser of a variable that is computed again names it.
    fn used_besides_declarations(&self, stmts: &[StmtId], binding: BindingId) -> bool {
        let body = self.body();
        let mut total = 0usize;
        let mut inside = 0usize;
        for stmt in stmts.iter().flat_map(|s| all_stmts(body, *s)) {
            let (_, exprs) = parts(body, stmt);
            let count = |e| {
                let all = all_in_expr(body, e);
                all.iter().filter(|e| named(body, **e) == Some(binding)).count()
            };
            total += exprs.iter().map(|e| count(*e)).sum::<usize>();
            if let StmtKind::Decl(decls) = &body.stmt(stmt).kind {
                let again = decls.iter().filter(|d| self.layout.again.contains_key(&d.binding));
                inside += again.filter_map(|d| d.init).map(count).sum::<usize>();
            }
        }
        total > inside
    }

    fn with_origins(&self, found: &mut BTreeSet<BindingId>) {
        let body = self.body();
        let mut todo: Vec<BindingId> = found.iter().copied().collect();
        while let Some(next) = todo.pop() {
            let Some(init) = self.layout.again.get(&next) else {
                continue;
            };
            for origin in variables(body, &all_in_expr(body, *init)) {
                if self.layout.again.contains_key(&origin) && found.insert(origin) {
                    todo.push(origin);
                }
            }
        }
    }

    /// `const int i = …;` for a variable that is computed again.
    fn declaration(&self, binding: BindingId, text: &Text<'_, '_>) -> String {
        let variable = self.body().binding(binding);
        let ty = &variable.ty;
        let stars = "*".repeat(usize::from(ty.pointers));
        let constant = if ty.const_pointer { " const" } else { "" };
        let value = self.layout.again.get(&binding);
        let value = value.map_or(String::new(), |v| text.render(self.body().expr(*v).span));
        let value = crate::edit::one_line::flat(&value);
        format!("{}{stars}{constant} {} = {value};", ty.text, variable.name)
    }

    /// What a declaration statement in a region becomes; `None`: it stays.
    fn declarations(
        &self,
        stmt: StmtId,
        front: &BTreeSet<BindingId>,
        again: &BTreeSet<BindingId>,
        text: &Text<'_, '_>,
    ) -> Option<Vec<String>> {
        let body = self.body();
        let StmtKind::Decl(decls) = &body.stmt(stmt).kind else {
            return None;
        };
        let elsewhere = |b: &BindingId| {
            self.groups.variables.contains(b)
                || front.contains(b)
                || self.layout.again.contains_key(b) && !again.contains(b)
        };
        let changes = decls
            .iter()
            .any(|d| self.layout.arrays.contains(&d.binding) || elsewhere(&d.binding));
        if !changes {
            return None;
        }
        let mut out = Vec::new();
        for decl in decls {
            let variable = body.binding(decl.binding);
            let value = decl.init.map(|i| text.render(body.expr(i).span));
            if self.layout.arrays.contains(&decl.binding) {
                if let Some(value) = value {
                    // The element, as `replace_names` writes it.
                    out.push(format!("{}[{}] = {value};", variable.name, self.local("thread")));
                }
            } else if !elsewhere(&decl.binding) {
                let ty = &variable.ty;
                let stars = "*".repeat(usize::from(ty.pointers));
                let constant = if ty.const_pointer { " const" } else { "" };
                let value = value.map_or(String::new(), |v| format!(" = {v}"));
                let extents = self.extents(variable);
                out.push(format!(
                    "{}{stars}{constant} {}{extents}{value};",
                    ty.text, variable.name
                ));
            }
        }
        Some(out)
    }
}

impl Out<'_, '_> {
    fn line(&mut self, level: usize, text: &str) {
        self.lines.push_str(&"\t".repeat(level));
        self.lines.push_str(text);
        self.lines.push('\n');
    }
}

/// Directives stand in front of a statement, or where it ends.
fn has_directives(child: &Child<'_>, slice: &Slice) -> bool {
    let around = [
        Span::new(slice.span.start, slice.own.start),
        Span::new(slice.own.end, slice.span.end),
    ];
    around
        .iter()
        .any(|part| !lex::conditions(child.source(*part)).is_empty())
}

/// The variables that statements in a row declare.
fn declared_in(body: &Body, stmts: &[StmtId]) -> BTreeSet<BindingId> {
    let mut found = BTreeSet::new();
    for stmt in stmts {
        if let StmtKind::Decl(decls) = &body.stmt(*stmt).kind {
            found.extend(decls.iter().map(|d| d.binding));
        }
    }
    found
}
