//! Moves a kernel's body, verbatim, into a device function whose parameters shadow the built-in variables, so that the body
//! can run as any block (or any thread) of any grid. The kernel becomes a call of it.

use gridfuse_analysis::db::{Db, SourceFile};
use gridfuse_analysis::hir::parameters;
use gridfuse_analysis::items::{FunctionItem, items};
use gridfuse_analysis::mentions::gaps;
use gridfuse_analysis::resolve::included_files;
use gridfuse_analysis::span::{FileRange, TextRange};

use crate::child::Child;
use crate::edit::EditBuilder;
use crate::effects::{Assembly, BUILTINS, Effects};
use crate::lex::{self, TokenKind};
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

/// A block of the child is a block: which of its threads a thread is remains as it was.
pub const KEPT_THREADS: &[&str] = &["threadIdx"];

/// The same, and it has as many threads.
pub const KEPT_BLOCK: &[&str] = &["threadIdx", "blockDim"];

/// The function with the body.
#[derive(Clone, Debug)]
pub struct Worker {
    /// Its name.
    pub name: String,
    /// `threadIdx` is a parameter, too.
    pub takes_thread: bool,
    /// Arguments in front of the others: the aggregators for its launches.
    pub first: Vec<String>,
}

impl Worker {
    /// The built-in variables that it takes, in order.
    pub fn builtins(&self) -> &'static [&'static str] {
        let all = &["threadIdx", "blockIdx", "gridDim", "blockDim"];
        if self.takes_thread { all } else { &all[1..] }
    }

    /// The call that runs it, `arguments` for the child's parameters: prefix, items and suffix of a list.
    pub fn call(&self, child: &Child<'_>, arguments: impl IntoIterator<Item = String>) -> (String, Vec<String>) {
        let builtins = self.builtins().iter().map(|b| (*b).to_owned());
        let items = self.first.iter().cloned().chain(builtins);
        (
            format!("{}{}(", self.name, child.template_args),
            items.chain(arguments).collect(),
        )
    }
}

/// Refuses a child whose body can't run under other built-in variables. `effects` are those of the child's worker. `kept`: the built-in
/// variables of which the body's parameters are no others than the GPU's, so that functions which it calls may read them themselves.
pub fn refuse_to_outline(child: &Child<'_>, form: Form, kept: &[&str], effects: &Effects, refusals: &mut Refusals) {
    let body = child.item.body_span(child.db);
    if lex::identifiers(child.source(body)).any(|w| w == child.name) {
        refusals.add(format!("`{}` mentions itself", child.name), Some(child.place()));
    }
    refuse_to_outline_collecting(child, form, kept, effects, refusals);
}

/// The same for a child that may launch itself, as all its launches become something else.
pub fn refuse_to_outline_collecting(
    child: &Child<'_>,
    form: Form,
    kept: &[&str],
    effects: &Effects,
    refusals: &mut Refusals,
) {
    let name = &child.name;
    for (builtin, callee, place) in &effects.builtins_in_callees {
        if !kept.contains(builtin) {
            let moved = if moved_by_a_rewrite(child, *place) {
                "; apply `threshold` first"
            } else {
                ""
            };
            refusals.add(
                format!("`{name}` calls `{callee}`, which reads `{builtin}` itself{moved}"),
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
    for asm in effects.asm.iter().filter(|a| form == Form::Thread || !is_plain_asm(a)) {
        refusals.add(format!("`{name}` holds inline assembly"), Some(asm.place));
    }
    for own_name in &effects.own_name {
        refusals.add(format!("`{name}` uses {}", own_name.what), Some(own_name.place));
    }
    for sync in &effects.syncs {
        refusals.add(format!("`{name}` calls {}", sync.what), Some(sync.place));
    }
    if let Some(place) = implicit_read(child) {
        refusals.add(
            format!("`{name}` may run an operator, a constructor or an initialiser that reads the built-in variables"),
            Some(place),
        );
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

/// The place is in a function that takes built-in variables as parameters: a body that was moved before.
fn moved_by_a_rewrite(child: &Child<'_>, place: FileRange) -> bool {
    let functions = &items(child.db, place.file).functions;
    let around = functions.iter().find(|f| {
        let start = f.start(child.db);
        start <= place.range.start && place.range.end <= start + f.text(child.db).len() as u32
    });
    around.is_some_and(|f| {
        parameters(child.db, *f)
            .iter()
            .any(|p| BUILTINS.contains(&p.name.as_str()))
    })
}

/// Inline assembly that computes, and asks for nothing that differs between a grid of its own and an aggregated one.
pub fn is_plain_asm(asm: &Assembly) -> bool {
    const INSTRUCTIONS: [&str; 37] = [
        "abs", "add", "and", "atom", "bfe", "bfi", "brev", "clz", "cvt", "cvta", "div", "dp2a", "dp4a", "fence", "fma",
        "ld", "lop3", "mad", "max", "membar", "min", "mov", "mul", "neg", "not", "or", "popc", "prmt", "red", "selp",
        "setp", "shf", "shl", "shr", "st", "sub", "xor",
    ];
    const REGISTERS: [&str; 9] = [
        "laneid",
        "lanemask_eq",
        "lanemask_ge",
        "lanemask_gt",
        "lanemask_le",
        "lanemask_lt",
        "clock",
        "clock64",
        "globaltimer",
    ];
    let Some(code) = &asm.text else { return false };
    // Operands are numbers, everything else that begins with a percent sign is a register of the machine.
    let registers = code.replace("%%", "%").split('%').skip(1).all(|r| {
        let name = r.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or("");
        REGISTERS.contains(&name) || !name.is_empty() && name.bytes().all(|b| b.is_ascii_digit())
    });
    registers
        && code
            .split(';')
            .map(str::trim)
            .filter(|i| !i.is_empty())
            .all(|instruction| {
                let name = instruction.split(|c: char| !c.is_alphanumeric()).next();
                name.is_some_and(|n| INSTRUCTIONS.contains(&n))
            })
}

/// A built-in variable outside of all functions that are called by name, and outside of macros: what reads it may be run by
/// the child though nothing in its text says so.
pub fn implicit_read(child: &Child<'_>) -> Option<FileRange> {
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
    if file.path(db).ends_with("gridfuse.cuh") {
        return None;
    }
    let by_name = |name: &str| {
        let mut parts = name.rsplit("::");
        let last = parts.next().unwrap_or("");
        !last.starts_with("operator") && !last.starts_with('~') && parts.next() != Some(last)
    };
    let unnamed = items(db, file).functions.iter().filter(|f| !by_name(f.name(db)));
    let unnamed = unnamed.map(|f| TextRange::new(f.start(db), f.start(db) + f.text(db).len() as u32));
    let mut places: Vec<TextRange> = gaps(db, file).into_iter().chain(unnamed).collect();
    places.retain(|place| BUILTINS.iter().any(|b| place.text(&text).contains(b)));
    places.sort_unstable();
    places.into_iter().find_map(|place| {
        let code = place.text(&text);
        lex::code_tokens(code).into_iter().find_map(|token| {
            let start = place.start + token.start as u32;
            let range = TextRange::new(start, place.start + token.end as u32);
            (BUILTINS.contains(&token.text(code)) && !in_directive(&text, start as usize)).then_some(range)
        })
    })
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
pub fn verbatim(source: &str, indent: &str) -> String {
    style::reindent(&source.replace("\r\n", "\n"), indent, "")
}

/// What the function with the body and the kernel get beside what is theirs, where the body's launches are collected.
#[derive(Clone, Debug, Default)]
pub struct Collecting {
    /// Parameters of the function with the body, in front of the others.
    pub params: Vec<String>,
    /// More template parameters of it.
    pub template_params: Vec<String>,
    /// Their arguments.
    pub args: Vec<String>,
    /// A parameter of the kernel, behind the others.
    pub arena: Option<String>,
    /// Statements of the kernel, in front of the call.
    pub declarations: Vec<String>,
    /// The parameters of the function with the body aren't `__restrict__`. It is called in a loop, where what one call has
    /// written another one reads; and where nvcc inlines it, it loads through `const T* __restrict__` as if nothing in all of the
    /// kernel wrote there (`ld.global.nc`).
    pub unrestricted: bool,
}

/// Moves the child's body out, unless an earlier rewrite has done so. The kernel that calls it is the first thing in `behind`.
pub fn outline(
    edit: &mut EditBuilder<'_>,
    behind: &mut Behind,
    child: &Child<'_>,
    form: Form,
    names: &mut Names,
) -> Worker {
    outline_collecting(edit, behind, child, form, &Collecting::default(), names)
}

/// The same for a child whose launches are collected.
pub fn outline_collecting(
    edit: &mut EditBuilder<'_>,
    behind: &mut Behind,
    child: &Child<'_>,
    form: Form,
    collecting: &Collecting,
    names: &mut Names,
) -> Worker {
    if let Some(outlined) = &child.outlined {
        return Worker {
            name: outlined.name.clone(),
            takes_thread: outlined.takes_thread,
            first: collecting.args.clone(),
        };
    }
    let suffix = match form {
        Form::Block => "body",
        Form::Thread => "thread",
    };
    let worker = Worker {
        name: names.fresh(&format!("{}_{suffix}", child.name)),
        takes_thread: form == Form::Thread,
        first: collecting.args.clone(),
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
    let builtins: Vec<String> = collecting.params.iter().cloned().chain(builtins).collect();
    if let Some(list) = signature
        .template_params
        .filter(|_| !collecting.template_params.is_empty())
    {
        let more = collecting.template_params.join(", ");
        edit.insert(child.file, child.start + list.end - 1, format!(", {more}"));
    }
    let written = child.params_range().text(&child.text);
    let params = if lex::comments(written).is_empty() {
        let declarations = child.params.iter().map(|p| match collecting.unrestricted {
            true => one_line(&without_restrict(&p.decl)),
            false => one_line(&p.decl),
        });
        let all: Vec<String> = builtins.iter().cloned().chain(declarations).collect();
        let brace = behind.style.open_brace();
        let list = behind.style.list(behind.column(), &head, &all, &format!("){brace}"));
        list.strip_suffix(brace).unwrap_or(&list).to_owned()
    } else {
        let mut own = verbatim(&written_params(child, false), &indent);
        if child.params.is_empty() {
            own = ")".to_owned();
        }
        if collecting.unrestricted {
            own = without_restrict(&own);
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
    let mut params = verbatim(&written_params(child, true), &indent);
    if let (Some(arena), Some(open)) = (&collecting.arena, params.strip_suffix(')')) {
        let defaulted = child
            .body
            .params
            .last()
            .is_some_and(|p| child.body.binding(*p).default.is_some());
        let (empty, default) = (child.params.is_empty(), if defaulted { " = {}" } else { "" });
        params = if empty {
            format!("({arena}{default})")
        } else {
            format!("{open}, {arena}{default})")
        };
    }
    let (prefix, items) = worker.call(child, child.params.iter().map(|p| p.name.clone()));
    let call = behind.call(1, &prefix, &items, ");");
    let indented = |declaration: &String| format!("\t{}\n", declaration.replace('\n', "\n\t"));
    let declarations: String = collecting.declarations.iter().map(indented).collect();
    behind.add(format!(
        "{head}{params}{}\n{declarations}{call}\n}}",
        behind.style.open_brace()
    ));
    worker
}

/// The parameter list as written, parentheses included, with names for unnamed parameters, and with or without the default
/// arguments.
pub fn written_params(child: &Child<'_>, defaults: bool) -> String {
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

/// Declarations without `__restrict__`.
pub fn without_restrict(code: &str) -> String {
    let mut out = String::new();
    let mut copied = 0;
    let restricts = lex::code_tokens(code)
        .into_iter()
        .filter(|t| matches!(t.text(code), "__restrict__" | "__restrict" | "restrict"));
    for token in restricts {
        out.push_str(code.get(copied..token.start).unwrap_or(""));
        let behind = code.get(token.end..).unwrap_or("");
        copied = token.end + behind.len() - behind.trim_start_matches([' ', '\t']).len();
    }
    out.push_str(code.get(copied..).unwrap_or(""));
    out
}

/// A declaration or expression that may be broken over lines, on one line: without `//` comments, and with its literals as they are.
pub fn one_line(code: &str) -> String {
    let mut out = String::new();
    let mut end = 0;
    for token in lex::tokens(code) {
        let text = token.text(code);
        let comment = token.kind == TokenKind::Comment;
        if comment && text.starts_with("//") {
            continue;
        }
        if !out.is_empty() && separates(code.get(end..token.start).unwrap_or("")) {
            out.push(' ');
        }
        if comment {
            out.push_str(&text.split_whitespace().collect::<Vec<_>>().join(" "));
        } else {
            out.push_str(text);
        }
        end = token.end;
    }
    out
}

/// Whether what stands between two tokens keeps them apart: a line continuation alone doesn't.
pub fn separates(gap: &str) -> bool {
    !gap.replace("\\\r\n", "").replace("\\\n", "").is_empty()
}
