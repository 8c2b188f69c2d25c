//! `__shared__` variables, and the lambdas that use them.

use std::fmt::Write as _;
use std::ops::Range;

use gridfuse_codeactions::edit::lex::TokenKind;

use super::Unsupported;
use super::declaration::{Declaration, Declarator};
use super::edits::Edits;
use super::stream::{Scope, Stream};

/// A variable that was in static memory and is a local name now.
struct Local {
    name: String,
    by_reference: bool,
    /// The tokens that can mean it.
    visible: Range<usize>,
}

/// Translates the declarations of shared variables in a stream. `number` counts what is made up, across files.
pub fn translate(stream: &Stream<'_>, file: &str, number: &mut usize, edits: &mut Edits) -> Result<(), Unsupported> {
    let mut locals = Vec::new();
    let mut done = 0;
    for at in 0..stream.len() {
        if stream.word(at) != "__shared__" || at < done {
            continue;
        }
        let unsupported = |what: &str| Unsupported::at(file, stream.line(at), what);
        if stream.scope(at) == Scope::Namespace {
            return Err(unsupported("a `__shared__` variable outside of functions"));
        }
        if stream.scope(at) == Scope::Class {
            return Err(unsupported("a `__shared__` member"));
        }
        let (start, _) = stream.declaration_start(at);
        let declaration = Declaration::parse(stream, start)
            .ok_or_else(|| unsupported("a declaration with `__shared__` that isn't understood"))?;
        let text = variables(stream, &declaration, number).map_err(unsupported)?;
        let whole = declaration.tokens.start..declaration.tokens.end + 1;
        edits.replace_tokens(stream, whole.clone(), text);
        done = whole.end;
        let block_end = end_of_block(stream, at);
        let dynamic = declaration.has(stream, "extern");
        locals.extend(declaration.declarators.iter().map(|declarator| Local {
            name: stream.word(declarator.name).to_owned(),
            by_reference: !dynamic,
            visible: whole.end..block_end,
        }));
    }
    captures(stream, &locals, edits);
    Ok(())
}

/// What takes the place of a declaration.
fn variables(stream: &Stream<'_>, declaration: &Declaration, number: &mut usize) -> Result<String, &'static str> {
    let dynamic = declaration.has(stream, "extern");
    let class = declaration.specifiers.clone().find(|at| stream.word(*at) == "{");
    let mut specifiers = stream.join(declaration.specifiers.clone(), |at| in_type(stream, declaration, at));
    let mut text = String::new();
    if class.is_some() {
        *number += 1;
        // A type can't be defined in a template argument.
        let _ = write!(text, "using emu_type_{number} = {specifiers}; ");
        specifiers = format!("emu_type_{number}");
    }
    for declarator in &declaration.declarators {
        if declarator.initialiser.is_some() {
            return Err("a `__shared__` variable with an initialiser");
        }
        let name = stream.word(declarator.name);
        *number += 1;
        if dynamic {
            let first = declarator
                .extents
                .first()
                .ok_or("`extern __shared__` of something that isn't an array")?;
            if first.len() != 2 {
                return Err("`extern __shared__` with a size");
            }
            let element = abstract_declarator(stream, declarator, Some(first));
            let _ = write!(
                text,
                "auto* const {name} = ::emu::dynamic_shared<{specifiers}{element}>(); "
            );
        } else {
            if declarator.extents.iter().any(|extent| extent.len() == 2) {
                return Err("a `__shared__` array without size");
            }
            let rest = abstract_declarator(stream, declarator, None);
            let _ = write!(
                text,
                "static const ::emu::SharedKey emu_key_{number}{{}}; auto& {name} = ::emu::shared<{specifiers}{rest}>(emu_key_{number}); "
            );
        }
    }
    text.truncate(text.trim_end().len());
    Ok(text)
}

/// A declarator without its name, and without one of its extents.
fn abstract_declarator(stream: &Stream<'_>, declarator: &Declarator, without: Option<&Range<usize>>) -> String {
    let text = stream.join(declarator.tokens.clone(), |at| {
        at != declarator.name && !without.is_some_and(|range| range.contains(&at))
    });
    if text.is_empty() { text } else { format!(" {text}") }
}

/// Whether a specifier is part of the variable's type.
fn in_type(stream: &Stream<'_>, declaration: &Declaration, at: usize) -> bool {
    let storage = |word: &str| {
        matches!(
            word,
            "__shared__" | "static" | "extern" | "inline" | "__device__" | "__attribute__" | "alignas" | "__align__"
        )
    };
    let in_brackets = |at: usize| {
        let mut brackets = declaration
            .specifiers
            .clone()
            .filter(|start| stream.word(*start) == "[" && stream.word(*start + 1) == "[");
        brackets.any(|start| (start..=stream.partner(start).unwrap_or(start)).contains(&at))
    };
    let in_attribute = |at: usize| {
        let mut attributes = declaration
            .specifiers
            .clone()
            .filter(|start| stream.attribute(*start) && storage(stream.word(*start)));
        attributes.any(|start| (start + 1..=stream.partner(start + 1).unwrap_or(start)).contains(&at))
    };
    let in_class = declaration
        .specifiers
        .clone()
        .find(|start| stream.word(*start) == "{")
        .is_some_and(|open| (open..stream.partner(open).unwrap_or(open)).contains(&at));
    in_class || !(storage(stream.word(at)) || in_attribute(at) || in_brackets(at))
}

/// The bracket that closes the block around a token.
fn end_of_block(stream: &Stream<'_>, at: usize) -> usize {
    let mut next = at;
    while next < stream.len() {
        match stream.word(next) {
            "(" | "[" | "{" => next = stream.partner(next).filter(|end| *end > next).unwrap_or(next),
            "}" => return next,
            _ => {}
        }
        next += 1;
    }
    stream.len()
}

/// Lambdas needn't capture static variables, but they must capture what those have become.
fn captures(stream: &Stream<'_>, locals: &[Local], edits: &mut Edits) {
    for at in 0..stream.len() {
        let Some((introducer, parameters, body)) = lambda(stream, at) else {
            continue;
        };
        let list = stream.split(introducer.start + 1..introducer.end - 1);
        let is_default = |of: &str| {
            list.first()
                .is_some_and(|first| first.len() == 1 && stream.word(first.start) == of)
        };
        if is_default("&") {
            continue;
        }
        let mut wanted: Vec<String> = Vec::new();
        for local in locals.iter().filter(|local| local.visible.contains(&at)) {
            let mentions = |at: usize| stream.word(at) == local.name && !matches!(stream.before(at), "." | ">");
            if parameters.clone().any(mentions) || !body.clone().any(mentions) {
                continue;
            }
            let capture = match (local.by_reference, is_default("=")) {
                (true, _) => format!("&{}", local.name),
                (false, true) => continue,
                (false, false) => local.name.clone(),
            };
            if !wanted.contains(&capture) {
                wanted.push(capture);
            }
        }
        if !wanted.is_empty() {
            let comma = if list.is_empty() { "" } else { ", " };
            edits.insert(
                stream.start(introducer.end - 1),
                format!("{comma}{}", wanted.join(", ")),
            );
        }
    }
}

/// The introducer, the parameters and the body of the lambda that begins at a token.
fn lambda(stream: &Stream<'_>, at: usize) -> Option<(Range<usize>, Range<usize>, Range<usize>)> {
    if stream.word(at) != "[" || stream.word(at + 1) == "[" {
        return None;
    }
    let operand_before = at > 0
        && (matches!(stream.before(at), ")" | "]" | "[")
            || stream.kind(at - 1) == Some(TokenKind::Text)
            || stream.is_word(at - 1) && !matches!(stream.before(at), "return" | "else" | "do" | "case" | "throw"));
    if operand_before {
        return None;
    }
    let close = stream.partner(at).filter(|close| *close > at)?;
    let mut next = close + 1;
    while matches!(stream.word(next), "__device__" | "__host__") {
        next += 1;
    }
    let mut parameters = next..next;
    if stream.word(next) == "(" {
        let end = stream.partner(next)?;
        parameters = next..end;
        next = end + 1;
    }
    while !matches!(stream.word(next), "{" | ";" | ")" | "]" | "}" | "," | "") {
        next += 1;
    }
    let end = stream.partner(next).filter(|_| stream.word(next) == "{")?;
    Some((at..close + 1, parameters, next..end))
}
