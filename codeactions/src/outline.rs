//! Moves a kernel's body, verbatim, into a device function whose parameters shadow the built-in variables, so that the body
//! can run as any block (or any thread) of any grid. The kernel becomes a call of it.

use gridfuse_analysis::db::{Db, SourceFile};
use gridfuse_analysis::items::{FunctionItem, items};
use gridfuse_analysis::resolve::included_files;
use gridfuse_analysis::span::{FileRange, TextRange};

use crate::child::Child;
use crate::edit::EditBuilder;
use crate::effects::{BUILTINS, Effects};
use crate::lex;
use crate::names::Names;
use crate::site::Refusals;
use crate::style::{self, Style};

/// Which built-in variables become parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `blockIdx`, `gridDim`, `blockDim`: the body runs as a block.
    Block,
    /// These and `threadIdx`: the body runs as a single thread.
    Thread,
}

/// The function with the body.
#[derive(Clone, Debug)]
pub struct Worker {
    /// Its name.
    pub name: String,
    /// `threadIdx` is a parameter, too.
    pub takes_thread: bool,
}

impl Worker {
    /// The built-in variables that it takes, in order.
    pub fn builtins(&self) -> &'static [&'static str] {
        let all = &["threadIdx", "blockIdx", "gridDim", "blockDim"];
        if self.takes_thread { all } else { &all[1..] }
    }

    /// The call that runs it, `arguments` for the child's parameters: prefix, items and suffix of a list.
    pub fn call(&self, child: &Child<'_>, arguments: impl IntoIterator<Item = String>) -> (String, Vec<String>) {
        let items = self.builtins().iter().map(|b| (*b).to_owned());
        (
            format!("{}{}(", self.name, child.template_args),
            items.chain(arguments).collect(),
        )
    }
}

/// Refuses a child whose body can't run under other built-in variables. `effects` are those of the child's worker.
pub fn refuse_to_outline(child: &Child<'_>, form: Form, effects: &Effects, refusals: &mut Refusals) {
    let name = &child.name;
    for (builtin, callee, place) in &effects.builtins_in_callees {
        if *builtin != "threadIdx" || form == Form::Thread {
            refusals.add(
                format!("`{name}` calls `{callee}`, which reads `{builtin}` itself"),
                Some(*place),
            );
        }
    }
    for unknown in &effects.unknown {
        refusals.add(
            format!("`{name}` uses {}, so it may read `blockIdx`", unknown.what),
            Some(unknown.place),
        );
    }
    for asm in &effects.asm {
        refusals.add(format!("`{name}` holds inline assembly"), Some(asm.place));
    }
    for own_name in &effects.own_name {
        refusals.add(format!("`{name}` uses {}", own_name.what), Some(own_name.place));
    }
    for error in effects.errors.iter().chain(&effects.syncs) {
        refusals.add(format!("`{name}` calls {}", error.what), Some(error.place));
    }
    if let Some(place) = implicit_read(child) {
        refusals.add(
            format!("`{name}` may run an operator, a constructor or an initialiser that reads the built-in variables"),
            Some(place),
        );
    }
    let body = child.item.body_span(child.db);
    if lex::identifiers(child.source(body)).any(|w| w == name) {
        refusals.add(format!("`{name}` mentions itself"), Some(child.place()));
    }
    for builtin in ["threadIdx", "blockIdx", "gridDim", "blockDim"] {
        if child.body.bindings.iter().any(|b| b.name == builtin) {
            refusals.add(
                format!("`{name}` has a variable named `{builtin}`"),
                Some(child.place()),
            );
        }
    }
    if let Some(outlined) = &child.outlined
        && form == Form::Thread
        && !outlined.takes_thread
    {
        refusals.add(
            format!(
                "the body of `{name}` has been moved to `{}`, which doesn't take `threadIdx`; apply `threshold` first",
                outlined.name
            ),
            Some(function_place(child, outlined.function)),
        );
    }
}

/// A built-in variable outside of all functions that are called by name, and outside of macros: what reads it may be run by
/// the child though nothing in its text says so.
fn implicit_read(child: &Child<'_>) -> Option<FileRange> {
    let db = child.db;
    included_files(db, child.file).iter().find_map(|file| {
        let range = (*implicit_read_in(db, *file))?;
        Some(FileRange { file: *file, range })
    })
}

/// The first such place in a file.
#[salsa::tracked]
fn implicit_read_in(db: &dyn Db, file: SourceFile) -> Option<TextRange> {
    let text = file.text(db);
    if file.path(db).ends_with("gridfuse.cuh") || !BUILTINS.iter().any(|b| text.contains(b)) {
        return None;
    }
    let by_name = |name: &str| {
        let mut parts = name.rsplit("::");
        let last = parts.next().unwrap_or("");
        !last.starts_with("operator") && !last.starts_with('~') && parts.next() != Some(last)
    };
    // By place; none lies within another.
    let functions: Vec<TextRange> = items(db, file)
        .functions
        .iter()
        .filter(|f| by_name(f.name(db)))
        .map(|f| TextRange::new(f.start(db), f.start(db) + f.text(db).len() as u32))
        .collect();
    for token in lex::code_tokens(&text) {
        let range = TextRange::new(token.start as u32, token.end as u32);
        let before = functions.partition_point(|f| f.start <= range.start);
        let inside = before
            .checked_sub(1)
            .and_then(|last| functions.get(last))
            .is_some_and(|f| f.contains(range));
        if BUILTINS.contains(&token.text(&text)) && !inside && !in_directive(&text, token.start) {
            return Some(range);
        }
    }
    None
}

/// Whether a place lies in a preprocessor directive, which may go on over several lines.
fn in_directive(text: &str, at: usize) -> bool {
    let mut line = style::line_start(text, at);
    while line > 0 {
        let before = text.get(..line).unwrap_or("").trim_end_matches(['\r', '\n']);
        if !before.ends_with('\\') {
            break;
        }
        line = style::line_start(text, before.len());
    }
    text.get(line..at).is_some_and(|t| t.trim_start().starts_with('#'))
}

fn function_place(child: &Child<'_>, function: FunctionItem<'_>) -> FileRange {
    FileRange {
        file: function.file(child.db),
        range: function.signature(child.db).name_span.shift(function.start(child.db)),
    }
}

/// Generated code that goes behind the child, function by function.
pub struct Behind {
    style: Style,
    indent: String,
    code: Vec<String>,
}

impl Behind {
    /// The formatting habits of the child's file.
    pub fn style(&self) -> &Style {
        &self.style
    }

    /// Column at which the child's code begins.
    pub fn column(&self) -> usize {
        style::columns(&self.indent)
    }

    /// Adds a declaration; an empty line goes in front of it.
    pub fn add(&mut self, code: String) {
        self.code.push(format!("\n\n{code}"));
    }

    /// Writes everything behind the child.
    pub fn finish(self, edit: &mut EditBuilder<'_>, child: &Child<'_>) {
        let text = self.style.fit(&self.code.concat(), &self.indent);
        edit.insert(child.file, child.end(), text);
    }

    /// A function: head, parameter list, body lines (each with its own indentation).
    pub fn function(&self, head: &str, params: &[String], body: &str) -> String {
        let (before, last) = head.rsplit_once('\n').map_or(("", head), |(b, l)| (b, l));
        let newline = if before.is_empty() { "" } else { "\n" };
        let suffix = format!("){}\n{body}\n}}", self.style.open_brace());
        let list = self.style.list(self.column(), last, params, &suffix);
        format!("{before}{newline}{list}")
    }

    /// A statement that is a call, indented by `level`.
    pub fn call(&self, level: usize, prefix: &str, items: &[String], suffix: &str) -> String {
        let tabs = "\t".repeat(level);
        let column = self.column() + style::columns(&self.style.unit.repeat(level));
        let list = self.style.list(column, prefix, items, suffix);
        format!("{tabs}{}", list.replace('\n', &format!("\n{tabs}")))
    }
}

/// The code behind the child, empty so far.
pub fn behind(edit: &mut EditBuilder<'_>, child: &Child<'_>) -> Behind {
    Behind {
        style: edit.style(child.file),
        indent: style::indent_at(&child.text, child.start as usize).to_owned(),
        code: Vec::new(),
    }
}

/// Source text as generated code: the file's newline and the indentation of the child taken off.
fn verbatim(source: &str, indent: &str) -> String {
    style::reindent(&source.replace("\r\n", "\n"), indent, "")
}

/// Moves the child's body out, unless an earlier rewrite has done so. The kernel that calls it is the first thing in `behind`.
pub fn outline(
    edit: &mut EditBuilder<'_>,
    behind: &mut Behind,
    child: &Child<'_>,
    form: Form,
    names: &mut Names,
) -> Worker {
    if let Some(outlined) = &child.outlined {
        return Worker {
            name: outlined.name.clone(),
            takes_thread: outlined.takes_thread,
        };
    }
    let suffix = match form {
        Form::Block => "body",
        Form::Thread => "thread",
    };
    let worker = Worker {
        name: names.fresh(&format!("{}_{suffix}", child.name)),
        takes_thread: form == Form::Thread,
    };
    let signature = child.item.signature(child.db);
    let indent = behind.indent.clone();

    // The body stays where it is and gets another head.
    let is_static = if child.is_static { "static " } else { "" };
    let head = format!("{is_static}__device__ __forceinline__ void {}(", worker.name);
    let builtins = worker.builtins().iter().map(|b| match *b {
        "threadIdx" | "blockIdx" => format!("uint3 {b}"),
        _ => format!("dim3 {b}"),
    });
    let builtins: Vec<String> = builtins.collect();
    let written = child.params_range().text(&child.text);
    let params = if lex::comments(written).is_empty() {
        let declarations = child.params.iter().map(|p| one_line(&p.decl));
        let all: Vec<String> = builtins.iter().cloned().chain(declarations).collect();
        let brace = behind.style.open_brace();
        let list = behind.style.list(behind.column(), &head, &all, &format!("){brace}"));
        list.strip_suffix(brace).unwrap_or(&list).to_owned()
    } else {
        let mut own = verbatim(&written_params(child, false), &indent);
        if child.params.is_empty() {
            own = ")".to_owned();
        }
        let comma = if child.params.is_empty() { "" } else { ", " };
        format!("{head}{}{comma}{}", builtins.join(", "), own.trim_start_matches('('))
    };
    let range = TextRange::new(child.head_start, child.params_range().end);
    let file = child.file;
    edit.replace(FileRange { file, range }, behind.style.fit(&params, &indent));

    // The kernel under its old head.
    let start = if child.template.is_some() {
        child.start
    } else {
        child.head_start
    };
    let template_end = signature.head_span.start + child.start;
    let mut head = String::new();
    if child.template.is_some() {
        let header = TextRange::new(start, template_end).text(&child.text);
        head.push_str(header);
    }
    let words = TextRange::new(child.head_start, signature.name_span.end + child.start);
    head.push_str(words.text(&child.text));
    let head = verbatim(&head, &indent);
    let params = verbatim(&written_params(child, true), &indent);
    let (prefix, items) = worker.call(child, child.params.iter().map(|p| p.name.clone()));
    let call = behind.call(1, &prefix, &items, ");");
    behind.add(format!("{head}{params}{}\n{call}\n}}", behind.style.open_brace()));
    worker
}

/// The parameter list as written, parentheses included, with names for unnamed parameters, and with or without the default
/// arguments.
fn written_params(child: &Child<'_>, defaults: bool) -> String {
    let range = child.params_range();
    let mut out = String::new();
    let mut at = range.start;
    for (param, id) in child.params.iter().zip(&child.body.params) {
        let binding = child.body.binding(*id);
        let declared = binding.decl_span.shift(child.start);
        out.push_str(TextRange::new(at, declared.start).text(&child.text));
        out.push_str(&param.decl);
        at = declared.end;
        if let Some(default) = binding.default.filter(|_| defaults) {
            out.push_str(" = ");
            out.push_str(child.source(default));
        }
    }
    out.push_str(TextRange::new(at, range.end).text(&child.text));
    out
}

/// A declaration that may be broken over lines, on one line.
pub fn one_line(code: &str) -> String {
    code.split_whitespace().collect::<Vec<_>>().join(" ")
}
