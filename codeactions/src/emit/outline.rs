//! Moves a kernel's body, verbatim, into a device function whose parameters shadow the built-in variables, so that the body
//! can run as any block (or any thread) of any grid. The kernel becomes a call of it.

use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::TextRange;
use gridfuse_analysis::facts::effects::effects;

use crate::edit::builder::EditBuilder;
use crate::edit::lex::{self};
use crate::edit::names::Names;
use crate::edit::one_line::{one_line, without_restrict};
use crate::edit::style::{self, Style};
use crate::emit::callees;
use crate::emit::described;
use crate::emit::target::default_behind;
use crate::facts::builtin_objects::Objects;
use crate::facts::child::Child;
use crate::facts::launch_errors;
use crate::facts::movable::Form;

/// The function with the body.
#[derive(Clone, Debug)]
pub struct Worker {
    /// Its name.
    pub name: String,
    /// Which built-in variables are parameters.
    pub form: Form,
    /// Arguments in front of the others: the aggregators for its launches.
    pub first: Vec<String>,
}

impl Worker {
    /// The built-in variables that it takes, in order.
    pub fn builtins(&self) -> &'static [&'static str] {
        let all = &["threadIdx", "blockIdx", "gridDim", "blockDim"];
        match self.form {
            Form::Thread => all,
            Form::Block => &all[1..],
            Form::Own => &[],
        }
    }

    /// What the kernel under its old head is for.
    fn kernel_is_for(&self, child: &Child<'_>) -> String {
        match self.form {
            Form::Thread | Form::Block => format!("What a plain launch of {} runs", child.name),
            Form::Own => format!("Runs {}, and then the launches that it has collected", self.name),
        }
    }

    /// `threadIdx` is a parameter, too.
    pub fn takes_thread(&self) -> bool {
        self.form == Form::Thread
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

    /// The comment of a function that `revert` takes back.
    pub fn taken_back(&self, what: &str) -> String {
        described::taken_back(what, &self.style, self.column())
    }

    /// The comment of a function that `revert` takes back, unless it stays.
    pub fn comment(&self, what: &str, stays: bool) -> String {
        match stays {
            true => format!("// {what}.\n"),
            false => self.taken_back(what),
        }
    }

    /// A statement that calls `name` with a lambda behind the other arguments, indented by a level. `parameters` and `body` are the
    /// lambda's; the body's lines have an indentation of their own.
    pub fn call_with_lambda(&self, name: &str, arguments: &[&str], parameters: &[&str], body: &str) -> String {
        format!("{} {{\n{body}\n\t}});", self.lambda(name, arguments, parameters))
    }

    /// The same up to the brace of the lambda's body.
    pub fn lambda(&self, name: &str, arguments: &[&str], parameters: &[&str]) -> String {
        let column = self.column() + style::columns(&self.style.unit);
        let parameters: Vec<String> = parameters.iter().map(|p| (*p).to_owned()).collect();
        let before: String = arguments.iter().map(|argument| format!("{argument}, ")).collect();
        let lambda = format!("[&]({})", parameters.join(", "));
        let wide = |start: usize| start + lambda.chars().count() + " {".len() > self.style.width;
        let open = column + name.chars().count() + 1;
        let head = if wide(open + before.chars().count()) && !wide(open) && !before.is_empty() {
            // The lambda below the other arguments.
            format!(
                "{name}({}\n{}{lambda}",
                before.trim_end(),
                " ".repeat(name.chars().count() + 1)
            )
        } else {
            let list = self
                .style
                .list(column, &format!("{name}({before}[&]("), &parameters, ") {");
            list.strip_suffix(" {").unwrap_or(&list).to_owned()
        };
        format!("\t{}", head.replace('\n', "\n\t"))
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
    /// Statements of the kernel behind the call, with the indentation of a statement.
    pub behind: Vec<String>,
    /// The parameters of the function with the body aren't `__restrict__`. It is called in a loop, where what one call has
    /// written another one reads; and where nvcc inlines it, it loads through `const T* __restrict__` as if nothing in all of the
    /// kernel wrote there (`ld.global.nc`).
    pub unrestricted: bool,
    /// Nothing takes it back.
    pub stays: bool,
}

/// Moves the child's body out, unless an earlier rewrite has done so. The kernel that calls it is the first thing in `behind`. `kept`:
/// built-in variables that functions which it calls may read themselves, as they aren't others in the moved body.
pub fn outline<'db>(
    edit: &mut EditBuilder<'db>,
    behind: &mut Behind,
    child: &Child<'db>,
    form: Form,
    kept: &[&str],
    names: &mut Names,
) -> Worker {
    outline_collecting(edit, behind, child, form, kept, &Collecting::default(), names)
}

/// The same for a child whose launches are collected.
pub fn outline_collecting<'db>(
    edit: &mut EditBuilder<'db>,
    behind: &mut Behind,
    child: &Child<'db>,
    form: Form,
    kept: &[&str],
    collecting: &Collecting,
    names: &mut Names,
) -> Worker {
    if let Some(outlined) = &child.outlined {
        return Worker {
            name: outlined.name.clone(),
            form: match outlined.takes_thread {
                true => Form::Thread,
                false => Form::Block,
            },
            first: collecting.args.clone(),
        };
    }
    let found = effects(child.db, child.item);
    if !found.own_name.is_empty() {
        launch_errors::assume_none(&child.name, &found, edit);
    }
    let suffix = match form {
        Form::Block | Form::Own => "body",
        Form::Thread => "thread",
    };
    let worker = Worker {
        name: names.fresh(&format!("{}_{suffix}", child.name)),
        form,
        first: collecting.args.clone(),
    };
    let signature = child.item.signature(child.db);
    let indent = behind.indent.clone();

    callees::copy(edit, child, form, kept, names);
    // The body stays where it is and gets another head, perhaps with its template's in front of it in the same line.
    let is_static = if child.is_static { "static " } else { "" };
    let in_front = {
        let line = style::line_start(&child.text, child.head_start as usize);
        child
            .text
            .get(line..child.head_start as usize)
            .unwrap_or("")
            .trim_start()
    };
    let head = format!("{in_front}{is_static}__device__ __forceinline__ void {}(", worker.name);
    let objects = Objects::of(child.db, child.file, child.source(child.item.body_span(child.db)));
    let builtins = worker.builtins().iter().map(|b| objects.parameter(b));
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
        let own = own.trim_start_matches('(');
        let line = format!("{head}{}{comma}", builtins.join(", "));
        let first = own.split('\n').next().unwrap_or("");
        if comma.is_empty() || behind.column() + line.chars().count() + first.chars().count() <= behind.style.width {
            format!("{line}{own}")
        } else {
            // Below each other, as the user's are.
            let next = own.split('\n').nth(1).unwrap_or("");
            let align = next
                .get(..next.len() - next.trim_start().len())
                .filter(|align| !align.is_empty());
            let align = align.unwrap_or("\t");
            let builtins = behind.style.list(behind.column(), &head, &builtins, ",");
            format!("{builtins}\n{align}{own}")
        }
    };
    let gap = Gap::of(child);
    let breaks = gap.breaks(&params, behind);
    let params = params.strip_prefix(in_front).unwrap_or(&params);
    let (mut code, mut range) = (
        behind.style.fit(params, &indent),
        TextRange::new(child.head_start, child.params_range().end),
    );
    if breaks {
        code.push_str(behind.style.newline);
        code.push_str(&indent);
        range.end = child.item.body_span(child.db).shift(child.start).start;
    }
    let file = child.file;
    edit.replace(FileRange { file, range }, code);
    let what = match form {
        Form::Thread => format!("The body of {}, for any thread of any grid", child.name),
        Form::Block => format!("The body of {}, for any block of any grid", child.name),
        Form::Own => format!("The body of {}, whose launches the kernel runs", child.name),
    };
    let comment = behind.comment(&what, collecting.stays);
    edit.insert_directly(file, child.front(), &comment);

    // The kernel under its old head.
    let head = kernel_head(child, behind, collecting);
    let (prefix, items) = worker.call(child, child.params.iter().map(|p| p.name.clone()));
    let call = behind.call(1, &prefix, &items, ");");
    let indented = |declaration: &String| format!("\t{}\n", declaration.replace('\n', "\n\t"));
    let declarations: String = collecting.declarations.iter().map(indented).collect();
    let further: String = collecting
        .behind
        .iter()
        .map(|statement| format!("\n{statement}"))
        .collect();
    let brace = gap
        .brace(breaks)
        .unwrap_or_else(|| behind.style.open_brace().to_owned());
    let comment = behind.comment(&worker.kernel_is_for(child), collecting.stays);
    behind.add(format!("{comment}{head}{brace}\n{declarations}{call}{further}\n}}"));
    worker
}

/// What stands between a kernel's parameters and its body, where the body has a statement in the line of its brace: `{ out[i] = 1; }`.
struct Gap<'a> {
    /// It; `None` where the body begins in another way.
    blanks: Option<&'a str>,
    /// The columns of the body's first line.
    columns: usize,
}

impl<'a> Gap<'a> {
    fn of(child: &'a Child<'_>) -> Gap<'a> {
        let body = child.item.body_span(child.db).shift(child.start);
        let blanks = TextRange::new(child.params_range().end, body.start).text(&child.text);
        let line = child
            .text
            .get(body.start as usize..style::line_end(&child.text, body.start as usize));
        let line = line.unwrap_or("");
        let begins = blanks.trim().is_empty() && lex::code_tokens(line).len() > 1;
        Gap {
            blanks: begins.then_some(blanks),
            columns: line.trim_end().chars().count(),
        }
    }

    /// Whether the body goes to a line of its own below its new head, as both are too wide for one. The kernel's brace tells where it was.
    fn breaks(&self, head: &str, behind: &Behind) -> bool {
        let last = head.rsplit('\n').next().unwrap_or(head).chars().count();
        let in_line = |blanks: &&str| !blanks.contains('\n');
        let wide = |blanks: &str| behind.column() + last + blanks.len() + self.columns > behind.style.width;
        self.blanks.filter(in_line).is_some_and(wide)
    }

    /// What the kernel under its old head has up to its brace, where that isn't as elsewhere in the file.
    fn brace(&self, breaks: bool) -> Option<String> {
        let blanks = self.blanks?;
        match blanks.contains('\n') {
            true => Some("\n{".to_owned()),
            false => breaks.then(|| format!("{blanks}{{")),
        }
    }
}

/// The kernel's head with its parameters, as it was but for an arena.
fn kernel_head(child: &Child<'_>, behind: &Behind, collecting: &Collecting) -> String {
    let signature = child.item.signature(child.db);
    let indent = &behind.indent;
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
    let head = verbatim(&head, indent);
    let mut params = verbatim(&written_params(child, true), indent);
    if let (Some(arena), Some(open)) = (&collecting.arena, params.strip_suffix(')')) {
        let (empty, default) = (child.params.is_empty(), default_behind(child.db, child.item, arena));
        params = if empty {
            format!("({arena}{default})")
        } else {
            let last = format!("{head}{open}");
            let last = last.rsplit('\n').next().unwrap_or("");
            let brace = behind.style.open_brace();
            let used = behind.column() + last.chars().count() + arena.chars().count() + default.chars().count();
            let gap = match used + format!(", ){brace}").split('\n').next().map_or(0, str::len) > behind.style.width {
                true => {
                    let first = head.rsplit('\n').next().unwrap_or("").chars().count() + 1;
                    format!(",\n{}", " ".repeat(first))
                }
                false => ", ".to_owned(),
            };
            format!("{open}{gap}{arena}{default})")
        };
    }
    format!("{head}{params}")
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
        let array = defaults && !binding.name.is_empty() && !binding.ty.array.is_empty();
        match binding
            .default
            .map_or(declared.end, |default| default.start + child.start)
        {
            // The kernel keeps its `int a[]`, which is `int* a`.
            end if array => {
                let written = TextRange::new(declared.start, end).text(&child.text);
                out.push_str(written.trim_end().trim_end_matches('=').trim_end());
            }
            _ => out.push_str(&param.decl),
        }
        at = declared.end;
        if let Some(default) = binding.default.filter(|_| defaults) {
            out.push_str(" = ");
            out.push_str(child.source(default));
        }
    }
    out.push_str(TextRange::new(at, range.end).text(&child.text));
    out
}
