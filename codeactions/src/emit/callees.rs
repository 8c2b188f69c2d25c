//! Writes the copies of functions that a moved body calls and that read built-in variables, see [`crate::facts::copied`].

use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::TextRange;
use gridfuse_analysis::facts::effects::effects;
use gridfuse_analysis::hir::names::template_arguments;

use crate::api::refusal::Reason;
use crate::edit::builder::EditBuilder;
use crate::edit::lex;
use crate::edit::names::Names;
use crate::edit::style::{self, Style};
use crate::facts::builtin_objects::Objects;
use crate::facts::child::Child;
use crate::facts::copied::{Copied, CopiedCall, Copies, copies};
use crate::facts::grid_views::VIEW;
use crate::facts::movable::Form;

/// What the comment above a copy says behind the function's name.
const COPIED: &str = ", where the built-in variables are parameters.";

/// The function's name in the comment above a copy.
pub fn copied_name(comment: &str) -> Option<&str> {
    let line = comment.rsplit('\n').next()?.trim_start();
    line.strip_prefix("// ")?.strip_suffix(COPIED)
}

/// Copies what a child's body calls, and lets the body call the copies.
pub fn copy<'db>(edit: &mut EditBuilder<'db>, child: &Child<'db>, form: Form, kept: &[&str], names: &mut Names) {
    let found = match copies(child, form, kept, &effects(child.db, child.worker())) {
        Ok(found) => found,
        Err(refused) => {
            for not_copied in refused {
                edit.refuse(Reason {
                    text: format!("`{}` can't be copied", not_copied.callee),
                    place: Some(not_copied.place),
                });
            }
            return;
        }
    };
    let mut copied = Vec::new();
    for (index, function) in found.functions.iter().enumerate() {
        let of = &function.function;
        // One copy serves all bodies that are moved by the same edit.
        let key = format!(
            "{}:{}:{}",
            of.file.path(child.db).display(),
            of.start,
            function.takes.join(",")
        );
        let wanted = format!("{}_at", of.name());
        let (name, is_new) = names.fresh_for(key, &wanted);
        if is_new {
            let style = edit.style(of.file);
            let indent = style::indent_at(&of.text, of.start as usize).to_owned();
            let mut text = text_of(function, index, &found, (&name, &copied), &style);
            if style::columns(&indent) + text.chars().count() > style.width {
                let newline = format!("{}{indent}", style.newline);
                text = on_three_lines(&text, &newline, &style.unit).unwrap_or(text);
            }
            let end = of.item.body_span(child.db).end + of.start;
            let newline = style.newline;
            let comment = format!("// {}{COPIED}", of.name());
            edit.insert(
                of.file,
                end,
                format!("{newline}{newline}{indent}{comment}{newline}{indent}{text}"),
            );
        }
        copied.push(name);
    }
    for call in found.calls.iter().filter(|call| call.caller.is_none()) {
        for (range, text) in edits(call, &found, &copied) {
            let file = child.file;
            edit.replace(FileRange { file, range }, text);
        }
    }
    for range in found.viewed {
        let code = format!(
            "{VIEW}({}, threadIdx, blockIdx, gridDim, blockDim)",
            range.text(&child.text)
        );
        let file = child.file;
        edit.replace(FileRange { file, range }, code);
    }
}

/// What becomes of a call.
fn edits(call: &CopiedCall, found: &Copies<'_>, names: &[String]) -> [(TextRange, String); 2] {
    let mut arguments = found.functions[call.callee].takes.join(", ");
    if call.has_arguments {
        arguments.push_str(", ");
    }
    [
        (call.name, format!("{}{}", call.scope, names[call.callee])),
        (TextRange::empty(call.open), arguments),
    ]
}

/// A function of one line with its body on a line of its own.
fn on_three_lines(text: &str, newline: &str, unit: &str) -> Option<String> {
    let tokens = lex::code_tokens(text);
    let open = tokens.iter().find(|token| token.text(text) == "{")?;
    let body = text.get(open.end..)?.strip_suffix('}')?.trim();
    let head = text.get(..open.end)?;
    (!text.contains('\n') && !body.is_empty()).then(|| format!("{head}{newline}{unit}{body}{newline}}}"))
}

/// The text up to the end of the parameters, one below the other where the line would get wider than those of the file. `out`: the text so
/// far, the parameters up to `at` included. `None` where the line isn't too wide, or the user has written several.
fn broken(text: &str, parameters: TextRange, at: u32, out: &str, style: &Style) -> Option<String> {
    let written = parameters.text(text);
    if written.contains('\n') || !lex::comments(written).is_empty() {
        return None;
    }
    let rest = TextRange::new(at, parameters.end).text(text);
    let line = out.rfind('\n').map_or(0, |newline| newline + 1);
    let indent = match line {
        0 => style::indent_at(text, parameters.start as usize),
        _ => style::indent_at(out, line),
    };
    let code = format!("{}{rest}", out.get(line..)?.trim_start());
    let (head, items) = code.split_once('(')?;
    let behind = text.get(parameters.end as usize..style::line_end(text, parameters.end as usize))?;
    let suffix = behind.find('{').map_or(behind, |brace| &behind[..=brace]);
    let items = template_arguments(&format!("<{items}>"));
    let list = style.list(style::columns(indent), &format!("{head}("), &items, suffix);
    let list = list
        .strip_suffix(suffix)?
        .replace('\n', &format!("{}{indent}", style.newline));
    let before = out.get(..line)?;
    let own = if line == 0 { "" } else { indent };
    list.contains('\n').then(|| format!("{before}{own}{list}"))
}

/// The copy's text, without the indentation of its first line.
fn text_of(
    function: &Copied<'_>,
    index: usize,
    found: &Copies<'_>,
    (name, names): (&str, &[String]),
    style: &Style,
) -> String {
    let of = &function.function;
    let signature = of.item.signature(of.db);
    let params = signature.params_span.shift(of.start);
    let mut all: Vec<(TextRange, String)> = vec![(signature.name_span.shift(of.start), name.to_owned())];
    let objects = Objects::of(of.db, of.file, &of.item.text(of.db));
    let builtins = objects.parameters(function.takes.iter().copied());
    let inner = TextRange::new(params.start + 1, params.end.saturating_sub(1).max(params.start + 1));
    match lex::code_words(inner.text(&of.text)).as_slice() {
        [] | ["void"] => all.push((inner, builtins)),
        _ => all.push((TextRange::empty(inner.start), format!("{builtins}, "))),
    }
    for call in found.calls.iter().filter(|call| call.caller == Some(index)) {
        all.extend(edits(call, found, names));
    }
    all.sort_by_key(|(range, _)| *range);
    let (mut out, mut at) = (String::new(), of.start);
    for (range, text) in all {
        out.push_str(TextRange::new(at, range.start.max(at)).text(&of.text));
        out.push_str(&text);
        at = range.end.max(at);
        if range.start == inner.start
            && let Some(list) = broken(&of.text, inner, at, &out, style)
        {
            out = list;
            at = inner.end;
        }
    }
    let end = of.item.body_span(of.db).end + of.start;
    out.push_str(TextRange::new(at, end.max(at)).text(&of.text));
    out
}
