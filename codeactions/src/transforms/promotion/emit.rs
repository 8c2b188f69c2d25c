//! Writes the grid whose blocks run the links of a chain.

use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::TextRange;
use gridfuse_analysis::hir::visible::visible_names;
use gridfuse_analysis::hir::{ExprKind, Literal};

use super::chain::{Chain, Passed};
use super::{Form, running};
use crate::edit::builder::EditBuilder;
use crate::edit::include::Header;
use crate::edit::lex;
use crate::edit::names::Names;
use crate::edit::one_line::one_line;
use crate::edit::style;
use crate::emit::described;
use crate::emit::outline::{self, Behind, verbatim, written_params};
use crate::emit::split::Split;
use crate::emit::target;
use crate::emit::was;
use crate::facts::instance;

/// The type of the kernel's new parameter.
pub const MEMORY: &str = "gridfuse::ChainMemory";

/// The function that says how many blocks run a chain.
pub const CHAIN_BLOCKS: &str = "gridfuse::chain_blocks";

/// Names of what is generated.
struct Generated {
    link: String,
    record: String,
    goes_on: String,
    chain: String,
    memory: String,
    args: String,
    number: String,
    says: String,
}

/// The whole edit.
pub fn write<'db>(
    chain: &Chain<'db>,
    form: &Form,
    split: &Split<'_>,
    header: &Header,
    names: &mut Names,
    edit: &mut EditBuilder<'db>,
) {
    let kernel = &chain.kernel;
    let db = chain.site.db;
    let generated = Generated {
        link: names.fresh(&format!("{}_link", kernel.name)),
        record: names.fresh(&format!("{}_args", kernel.name)),
        goes_on: names.fresh(&format!("{}_goes_on", kernel.name)),
        chain: names.fresh("chain"),
        memory: names.fresh("memory"),
        args: names.fresh("args"),
        number: names.fresh("link"),
        says: names.fresh("goes_on"),
    };
    let writer = Writer {
        chain,
        form,
        split,
        names: generated,
    };
    header.include_in(db, edit, kernel.file);
    for entry in &chain.entries {
        header.include_in(db, edit, entry.file);
        writer.entry(entry, edit);
    }
    for declaration in &chain.declarations {
        let file = declaration.file(db);
        header.include_in(db, edit, file);
        let memory = format!("{MEMORY} {}", writer.names.memory);
        let list = declaration.signature(db).params_span.shift(declaration.start(db));
        target::append_item(
            edit,
            file,
            list,
            &format!("{memory}{}", target::default_behind(db, *declaration, &memory)),
        );
    }
    writer.front(edit);
    writer.launch(edit);
    writer.wait(edit);
    let mut behind = outline::behind(edit, kernel);
    writer.goes_on(&mut behind);
    writer.kernel(&mut behind);
    behind.finish(edit, kernel);
}

struct Writer<'a, 'db> {
    chain: &'a Chain<'db>,
    form: &'a Form,
    split: &'a Split<'a>,
    names: Generated,
}

impl Writer<'_, '_> {
    /// The parameters that travel from link to link.
    fn travels(&self, index: usize) -> bool {
        matches!(
            (&self.form, self.chain.passed.get(index)),
            (Form::Wait, Some(Passed::Step { .. } | Passed::New)) | (Form::Overlap(_), Some(Passed::New))
        )
    }

    /// Indices of the parameters that are declared where the link waits.
    fn declared_late(&self, index: usize) -> bool {
        !matches!(self.form, Form::Wait) && self.chain.passed.get(index) == Some(&Passed::New)
    }

    fn indices(&self) -> std::ops::Range<usize> {
        0..self.chain.kernel.params.len()
    }

    fn name(&self, index: usize) -> &str {
        self.chain.kernel.params.get(index).map_or("", |p| p.name.as_str())
    }

    fn has_record(&self) -> bool {
        self.indices().any(|i| self.travels(i))
    }

    /// The type of an argument that travels depends on a template parameter of the kernel.
    fn record_is_template(&self) -> bool {
        let kernel = &self.chain.kernel;
        let names = &kernel.item.signature(kernel.db).template_names;
        self.indices()
            .filter(|i| self.travels(*i))
            .filter_map(|i| kernel.params.get(i))
            .any(|p| lex::identifiers(&p.field).any(|word| names.iter().any(|n| n == word)))
    }

    /// The struct of what travels, as the kernel has to name it.
    fn record_type(&self) -> String {
        let args = if self.record_is_template() {
            self.chain.kernel.template_args.as_str()
        } else {
            ""
        };
        format!("{}{args}", self.names.record)
    }

    fn chain_type(&self) -> String {
        match &self.form {
            Form::Running(_, running) => running.chain_type.clone(),
            _ if self.has_record() => format!("gridfuse::Chain<{}>", self.record_type()),
            _ => "gridfuse::Chain<>".to_owned(),
        }
    }

    /// More blocks, and memory where they meet.
    fn entry(&self, entry: &crate::facts::site::Site<'_>, edit: &mut EditBuilder<'_>) {
        let source = |expr| crate::edit::one_line::flat(entry.expr_source(expr));
        let mut blocks = vec![source(entry.facts.block.operand.expr)];
        let zero = |e| {
            matches!(
                entry.body.expr(entry.body.strip_parens(e)).kind,
                ExprKind::Literal(Literal::Int(0))
            )
        };
        if let Some(shared) = entry.facts.shared.as_ref().filter(|s| !zero(s.expr)) {
            blocks.push(source(shared.expr));
        }
        let name = entry.source(entry.launch.name_span);
        let template_args = instance::arguments(entry, &self.chain.kernel).unwrap_or_default();
        let grid = format!("{CHAIN_BLOCKS}<{name}{template_args}>({})", blocks.join(", "));
        let before = entry.source(entry.facts.grid.operand.span).chars().count();
        let wider = grid.chars().count().saturating_sub(before);
        let deduced = entry.launch.template_args.is_none() && !template_args.is_empty();
        if entry.source(entry.facts.grid.operand.span) != "1" || deduced {
            was::note(entry, edit);
        }
        edit.replace(entry.place(entry.facts.grid.operand.span), grid);
        if deduced {
            // As in the line's other half, which can't leave them to be deduced.
            let behind_name = entry.place(entry.launch.name_span).range.end;
            edit.insert(entry.file, behind_name, template_args);
        }
        let literal = |e| matches!(entry.body.expr(entry.body.strip_parens(e)).kind, ExprKind::Literal(_));
        let stream = entry.facts.stream_operand.as_ref().filter(|o| !literal(o.expr));
        let stream = stream.map_or(String::new(), |o| crate::edit::one_line::flat(entry.source(o.span)));
        let list = entry.launch.args_span.shift(entry.start);
        let arena = format!("gridfuse::chain_for({stream})");
        target::append_items_to_wider(edit, entry.file, list, &[arena], wider);
    }

    /// The struct, and the head of the function that has the body now.
    fn front(&self, edit: &mut EditBuilder<'_>) {
        let kernel = &self.chain.kernel;
        let style = edit.style(kernel.file);
        let indent = style::indent_at(&kernel.text, kernel.start as usize).to_owned();
        if self.has_record() {
            let fields: String = self
                .indices()
                .filter(|i| self.travels(*i))
                .filter_map(|i| kernel.params.get(i))
                .map(|p| format!("{}; ", one_line(&p.field)))
                .collect();
            let template = if self.record_is_template() {
                kernel.template_line()
            } else {
                String::new()
            };
            let code = format!(
                "// What a link of the chain of {} gets from the one before.\n{template}struct {} {{ {fields}}};\n\n",
                kernel.name, self.names.record
            );
            let at = target::above_comment(self.chain.site.db, kernel.file, kernel.front() as usize);
            edit.insert(kernel.file, at as u32, format!("{}{indent}", style.fit(&code, &indent)));
        }
        let is_static = if kernel.is_static { "static " } else { "" };
        let head = format!("{is_static}__device__ __forceinline__ void {}(", self.names.link);
        let mut params = vec![format!("{}& {}", self.chain_type(), self.names.chain)];
        params.extend(
            self.indices()
                .filter(|i| !self.declared_late(*i))
                .filter_map(|i| Some(one_line(&kernel.params.get(i)?.decl))),
        );
        let brace = style.open_brace();
        let list = style.list(style::columns(&indent), &head, &params, &format!("){brace}"));
        let list = list.strip_suffix(brace).unwrap_or(&list).to_owned();
        let range = TextRange::new(kernel.head_start, kernel.params_range().end);
        edit.replace(
            FileRange {
                file: kernel.file,
                range,
            },
            style.fit(&list, &indent),
        );
        let what = format!("The body of {}, as one link of its chain", kernel.name);
        let comment = described::taken_back(&what, &style, style::columns(&indent));
        edit.insert_directly(kernel.file, kernel.front(), &comment);
    }

    /// The launch of the next link.
    fn launch(&self, edit: &mut EditBuilder<'_>) {
        let site = &self.chain.site;
        let fields: Vec<String> = self
            .split
            .parts
            .iter()
            .enumerate()
            .filter(|(i, _)| self.travels(*i))
            .map(|(_, part)| part.initialiser.clone())
            .collect();
        let args = if fields.is_empty() {
            String::new()
        } else {
            format!("{{{}}}", fields.join(", "))
        };
        let function = match self.form {
            Form::Overlap(overlap) if running::launches_at_once(self.chain, overlap) => "launch_at_once",
            _ => "launch",
        };
        was::note(site, edit);
        edit.replace(site.here(), format!("{}.{function}({args})", self.names.chain));
    }

    /// Waits in front of the first statement that has to.
    fn wait(&self, edit: &mut EditBuilder<'_>) {
        let (overlap, running) = match self.form {
            Form::Wait => return,
            Form::Overlap(overlap) => (overlap, None),
            Form::Running(overlap, running) => (overlap, Some(running)),
        };
        let site = &self.chain.site;
        let kernel = &self.chain.kernel;
        let chain = &self.names.chain;
        let late: Vec<usize> = self.indices().filter(|i| self.declared_late(*i)).collect();
        let decl = |index: usize| kernel.params.get(index).map_or(String::new(), |p| one_line(&p.decl));
        let wait = if running::launches_at_once(self.chain, overlap) {
            "wait_at_once"
        } else {
            "wait"
        };
        let code = match (running, late.as_slice()) {
            (Some(running), [one]) => format!("{} = {chain}.before({});", decl(*one), running.own),
            (Some(_), _) => format!("{chain}.before();"),
            (None, []) => format!("{chain}.{wait}();"),
            (None, [one]) => format!("{} = {chain}.{wait}().{};", decl(*one), self.name(*one)),
            (None, several) => {
                let args = &self.names.args;
                let mut code = format!("const {} {args} = {chain}.{wait}();", self.record_type());
                for index in several {
                    code.push_str(&format!("\n{} = {args}.{};", decl(*index), self.name(*index)));
                }
                code
            }
        };
        let style = edit.style(kernel.file);
        let at = site.place(site.body.stmt(overlap.waits).span).range.start as usize;
        let at = target::above_comment(site.db, site.file, at);
        let indent = style::indent_at(&site.text, at);
        edit.insert(
            site.file,
            at as u32,
            format!("{}{}{indent}", style.fit(&code, indent), style.newline),
        );
    }

    /// The function that says whether a link launches another one.
    fn goes_on(&self, behind: &mut Behind) {
        let (Form::Overlap(overlap) | Form::Running(overlap, _)) = self.form else {
            return;
        };
        let kernel = &self.chain.kernel;
        let is_static = if kernel.is_static { "static " } else { "" };
        let template = kernel.template_line();
        let head = format!(
            "{template}{is_static}__device__ __forceinline__ bool {}(",
            self.names.goes_on
        );
        let params: Vec<String> = overlap
            .asks
            .iter()
            .filter_map(|i| Some(one_line(&kernel.params.get(*i)?.decl)))
            .collect();
        let body = format!("\treturn {};", overlap.goes_on);
        behind.add(format!(
            "// Whether a link launches another one.\n{}",
            behind.function(&head, &params, &body)
        ));
    }

    /// A parameter's value in the link with this number.
    fn value(&self, index: usize, number: &str) -> String {
        let name = self.name(index);
        let Some(Passed::Step { by, minus }) = self.chain.passed.get(index) else {
            return name.to_owned();
        };
        let ty = self.chain.kernel.params.get(index).map(|p| &p.ty);
        let count = match ty {
            Some(ty) if ty.pointers > 0 => format!("static_cast<long long>({number})"),
            Some(ty) => format!("static_cast<{}>({number})", ty.base),
            None => number.to_owned(),
        };
        let sign = if *minus { '-' } else { '+' };
        match by {
            None => format!("{name} {sign} {count}"),
            Some(by) if lex::code_tokens(by).len() == 1 && !self.may_be_a_macro(by) => {
                format!("{name} {sign} {count} * {by}")
            }
            Some(by) => format!("{name} {sign} {count} * ({by})"),
        }
    }

    /// What a word stands for may be more than an operand.
    fn may_be_a_macro(&self, word: &str) -> bool {
        let kernel = &self.chain.kernel;
        let names = visible_names(kernel.db, kernel.file);
        names.macros.contains_key(word) || names.ambiguous_macros.contains(word)
    }

    /// The kernel under its old head.
    fn kernel(&self, behind: &mut Behind) {
        let kernel = &self.chain.kernel;
        let names = &self.names;
        let indent = style::indent_at(&kernel.text, kernel.start as usize).to_owned();
        let name_end = kernel.item.signature(kernel.db).name_span.end + kernel.start;
        let mut head = String::new();
        if kernel.template.is_some() {
            let end = kernel.item.signature(kernel.db).head_span.start + kernel.start;
            head.push_str(TextRange::new(kernel.start, end).text(&kernel.text));
        }
        head.push_str(TextRange::new(kernel.head_start, name_end).text(&kernel.text));
        let head = verbatim(&head, &indent);
        let memory = format!("{MEMORY} {}", names.memory);
        let default = target::default_behind(kernel.db, kernel.item, &memory);
        let memory = format!("{memory}{default}");
        let params = verbatim(&written_params(kernel, true), &indent);
        let comma = if kernel.params.is_empty() { "(" } else { ", " };
        let open = if kernel.params.is_empty() {
            ""
        } else {
            params.strip_suffix(')').unwrap_or(&params)
        };
        let first_line =
            head.lines().last().unwrap_or("").chars().count() + open.lines().last().unwrap_or("").chars().count();
        let params = if open.contains('\n') || first_line + memory.chars().count() + 5 <= behind.style().width {
            format!("{open}{comma}{memory})")
        } else {
            let align = " ".repeat(head.lines().last().unwrap_or("").chars().count() + 1);
            format!("{open},\n{align}{memory})")
        };
        let mut body = String::new();
        let first: Vec<String> = match self.form {
            Form::Running(_, running) => running.parameter.into_iter().map(|i| self.name(i).to_owned()).collect(),
            _ if self.has_record() => {
                let values: Vec<&str> = self
                    .indices()
                    .filter(|i| self.travels(*i))
                    .map(|i| self.name(i))
                    .collect();
                vec![format!("{{{}}}", values.join(", "))]
            }
            _ => Vec::new(),
        };
        let given = std::iter::once(names.memory.clone()).chain(first);
        body.push_str(&format!(
            "\t{} {}({});\n",
            self.chain_type(),
            names.chain,
            given.collect::<Vec<_>>().join(", ")
        ));
        let chain = &names.chain;
        let prefix = format!("{}{}(", names.link, kernel.template_args);
        let mut items = vec![chain.clone()];
        match self.form {
            Form::Wait => {
                let by_record = |i: usize| format!("{}.{}", names.args, self.name(i));
                items.extend(self.indices().map(|i| {
                    if self.travels(i) {
                        by_record(i)
                    } else {
                        self.name(i).to_owned()
                    }
                }));
                if self.has_record() {
                    body.push_str(&format!("\twhile ({chain}.next()) {{\n"));
                    body.push_str(&format!(
                        "\t\tconst {} {} = {chain}.args();\n",
                        self.record_type(),
                        names.args
                    ));
                    body.push_str(&behind.call(2, &prefix, &items, ");"));
                    body.push_str("\n\t}");
                } else {
                    body.push_str(&format!("\twhile ({chain}.next())\n"));
                    body.push_str(&behind.call(2, &prefix, &items, ");"));
                }
            }
            Form::Overlap(overlap) | Form::Running(overlap, _) => {
                let number = format!("{chain}.number()");
                items.extend(
                    self.indices()
                        .filter(|i| !self.declared_late(*i))
                        .map(|i| self.value(i, &number)),
                );
                let asked: Vec<String> = overlap.asks.iter().map(|i| self.value(*i, &names.number)).collect();
                body.push_str(&format!(
                    "\tauto {} = [&](unsigned long long {}) {{\n",
                    names.says, names.number
                ));
                let asks = format!("return {}{}(", names.goes_on, kernel.template_args);
                body.push_str(&behind.call(2, &asks, &asked, ");"));
                body.push_str(&format!("\n\t}};\n\twhile ({chain}.next({}))\n", names.says));
                body.push_str(&behind.call(2, &prefix, &items, ");"));
            }
        }
        behind.add(format!("{head}{params}{}\n{body}\n}}", behind.style().open_brace()));
    }
}
