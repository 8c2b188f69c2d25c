//! What a macro's use stands for, as a person would write it in its place: the macro's text with the arguments in it, where other macros
//! keep their names.

use std::collections::HashSet;

use crate::base::db::Db;
use crate::base::preprocess::expand::Expander;
use crate::base::preprocess::token::{Lexeme, Token, TokenKind, glues, lex, token, tokens};
use crate::base::preprocess::{MacroItem, MacroState};
use crate::base::span::Span;
use crate::base::words::words;
use crate::hir::items::FunctionItem;
use crate::hir::macros::{closing, function_macros, one_use, state_at};

/// Macros in macros that are written out.
const MAX_DEPTH: u32 = 8;

/// A macro's use, and what is to stand in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenOut {
    /// The use, in the function's text; with the semicolon behind it, if the text has its own.
    pub range: Span,
    /// What it stands for.
    pub text: String,
}

/// The launch that the use of a macro at `range` of a function's text stands for, with what stands around it in the macro. `None`: no macro
/// is used there, or its text can't be written in this place: it quotes or pastes an argument, the launch is one of its arguments, or the
/// macros in it would be expanded in another way. `all_in_sight`: no word may be a macro of a header that isn't found.
pub fn launch_written_out<'db>(
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    range: Span,
    all_in_sight: bool,
) -> Option<WrittenOut> {
    // As it is written: in the function's own text attributes and pragmas are blanked.
    let source = function.file(db).text(db);
    let start = function.start(db) as usize;
    let text = source.get(start..start + function.text(db).len())?;
    let used = range.text(text);
    let macros = function_macros(db, function);
    let find = |name: &str| match state_at(macros, name, range.start) {
        Some(MacroState::Defined(item)) => Some(item),
        _ => None,
    };
    let unsure = |name: &str| {
        let state = state_at(macros, name, range.start);
        matches!(state, Some(MacroState::DefinedSomehow | MacroState::Unknown))
    };
    // A comment in it would take the rest of its line along, or would get lost; a pragma in front of it is for what it begins with.
    let before = text.get(..range.start as usize).unwrap_or("");
    if used.contains("//") || used.contains("/*") || is_behind_pragma(before) {
        return None;
    }
    let mut written = used.to_owned();
    for _ in 0..MAX_DEPTH {
        if launches(&written) {
            break;
        }
        written = one_level(&written, &find, &unsure)?;
    }
    let compiled = expanded(&written, &find)?;
    if !launches(&written) || written == used || expanded(used, &find).as_ref() != Some(&compiled) {
        return None;
    }
    if asks_for_its_place(&compiled) {
        return None;
    }
    let rest = text.get(range.end as usize..).unwrap_or("");
    let semicolon = rest
        .starts_with(|c: char| c.is_whitespace() || c == ';')
        .then(|| rest.find(';'))
        .flatten()
        .filter(|at| rest.get(..*at).is_some_and(|between| between.trim().is_empty()));
    let indent = indentation(text, range.start as usize);
    // `do { … } while (0)` is there for the semicolon alone, if nothing leaves it; what leaves a loop in it counts, too.
    let leaves = compiled
        .iter()
        .any(|word| matches!(&**word, "break" | "continue") || unsure(word));
    let last = lex(before, false).last().map(|l| slice(before, *l).to_owned());
    let below_head = matches!(last.as_deref(), Some(")" | "else"));
    if let Some(at) = semicolon
        && let Some(inner) = in_do_once(&written).filter(|_| !leaves && all_in_sight)
        && let clashes = declared(&inner).is_none_or(|names| names.iter().any(|name| words(before).any(|w| w == *name)))
        // A head's names can't be declared again in the block that is its statement.
        && !(below_head && clashes)
    {
        let end = range.end + at as u32 + 1;
        // Nor in a function's own block. Else the braces around it are enough.
        let behind = text.get(end as usize..).unwrap_or("");
        let next = lex(behind, false).first().map(|l| slice(behind, *l).to_owned());
        let braced = last.as_deref() == Some("{") && next.as_deref() == Some("}") && !clashes;
        let alone = !inner.contains(['{', '}']) && inner.matches(';').count() == 1 && is_launch(&inner);
        return Some(WrittenOut {
            range: Span::new(range.start, end),
            text: match (alone, braced) {
                (true, _) => inner,
                (false, true) => in_lines(&inner, indent).trim().to_owned(),
                (false, false) => format!("{{\n{}{indent}}}", in_lines(&inner, &format!("{indent}    "))),
            },
        });
    }
    // Its own semicolon is enough.
    let end = match semicolon {
        Some(at) if written.ends_with(';') => range.end + at as u32 + 1,
        _ => range.end,
    };
    Some(WrittenOut {
        range: Span::new(range.start, end),
        text: written,
    })
}

/// Whether the last line that isn't empty is, or has, a pragma.
fn is_behind_pragma(before: &str) -> bool {
    let mut lines = before.trim_end().lines().rev();
    let mut line = lines.next().unwrap_or("");
    if line.contains("_Pragma") {
        return true;
    }
    for earlier in lines.take_while(|line| line.trim_end().ends_with('\\')) {
        line = earlier;
    }
    let directive = line.trim_start().strip_prefix('#');
    directive.is_some_and(|directive| directive.trim_start().starts_with("pragma"))
}

/// Whether a text launches by itself.
fn launches(text: &str) -> bool {
    lex(text, false).iter().any(|l| slice(text, *l) == "<<<")
}

fn slice(text: &str, lexeme: Lexeme) -> &str {
    text.get(lexeme.start..lexeme.end).unwrap_or("")
}

/// The text with that use of a macro written out of which a launch comes.
fn one_level<'m>(
    text: &str,
    find: &'m dyn Fn(&str) -> Option<&'m MacroItem>,
    unsure: &dyn Fn(&str) -> bool,
) -> Option<String> {
    let lexemes = lex(text, true);
    let expander = Expander::new(find);
    let mut at = 0;
    while let Some(lexeme) = lexemes.get(at) {
        let used = match lexeme.kind {
            TokenKind::Word => one_use(&expander, find, text, &lexemes, at)?,
            _ => None,
        };
        let Some((replaced, next)) = used else {
            at += 1;
            continue;
        };
        if replaced.iter().any(|token| token.text == "<<<") {
            let item = find(slice(text, *lexeme))?;
            let end = match item.params {
                Some(_) => closing(text, &lexemes, at + 1)? + 1,
                None => at + 1,
            };
            let body = with_arguments(item, text, lexemes.get(at + 1..end)?, find, unsure)?;
            let last = lexemes.get(end - 1)?;
            let (before, behind) = (text.get(..lexeme.start)?, text.get(last.end..)?);
            return Some(format!("{before}{body}{behind}"));
        }
        at = next;
    }
    None
}

/// A macro's text with the arguments of a use in the places of its parameters. `list`: the arguments, with their parentheses.
fn with_arguments<'m>(
    item: &MacroItem,
    text: &str,
    list: &[Lexeme],
    find: &dyn Fn(&str) -> Option<&'m MacroItem>,
    unsure: &dyn Fn(&str) -> bool,
) -> Option<String> {
    let arguments = arguments_of(text, list)?;
    let named = item.params.as_deref().unwrap_or_default();
    let (variadic, named) = match named.split_last() {
        // `...`, or GNU's `name...`.
        Some((last, rest)) if last.ends_with("...") => (Some(last.trim_end_matches("...").trim()), rest),
        _ => (None, named),
    };
    let variadic = variadic.map(|name| if name.is_empty() { "__VA_ARGS__" } else { name });
    let rest = arguments.get(named.len()..).unwrap_or_default();
    let fits = match variadic {
        Some(_) => arguments.len() > named.len(),
        None => arguments.len() == named.len() || named.is_empty() && arguments == [""],
    };
    if item.params.is_some() && !fits {
        return None;
    }
    let mut out = String::new();
    // How deep the text is in the arguments of a macro that quotes or pastes them: there a macro that isn't in sight would not be expanded.
    let mut quoted = 0u32;
    let mut quotes_next = false;
    for token in tokens(&item.body) {
        match token.text.as_str() {
            "#" | "##" | "__VA_OPT__" => return None,
            "(" if quoted > 0 || quotes_next => quoted += 1,
            ")" if quoted > 0 => quoted -= 1,
            _ => {}
        }
        quotes_next = may_quote(&token.text, find, unsure);
        let known = named.iter().position(|name| *name == token.text);
        let spelled = match known.and_then(|index| arguments.get(index)) {
            Some(argument) => (*argument).to_owned(),
            None if variadic == Some(token.text.as_str()) => rest.join(", "),
            None => token.text.clone(),
        };
        if quoted > 0 && spelled != token.text && words(&spelled).next().is_some() {
            return None;
        }
        if token.space && !out.is_empty() || glues(&out, &spelled) {
            out.push(' ');
        }
        out += &spelled;
    }
    Some(out)
}

/// Whether a name may be that of a macro that quotes or pastes, itself or by another one that its text names.
fn may_quote<'m>(name: &str, find: &dyn Fn(&str) -> Option<&'m MacroItem>, unsure: &dyn Fn(&str) -> bool) -> bool {
    let mut seen = HashSet::new();
    let mut pending = vec![name];
    while let Some(name) = pending.pop() {
        if unsure(name) {
            return true;
        }
        let Some(item) = find(name).filter(|item| seen.insert(&*item.name)) else {
            continue;
        };
        if item.body.contains('#') {
            return true;
        }
        pending.extend(words(&item.body));
    }
    false
}

/// The arguments of a use, as they are written.
fn arguments_of<'t>(text: &'t str, list: &[Lexeme]) -> Option<Vec<&'t str>> {
    let (Some(open), Some(close)) = (list.first(), list.last()) else {
        return Some(Vec::new());
    };
    let mut found = Vec::new();
    let mut depth = 0u32;
    let mut from = open.end;
    for lexeme in list.get(1..list.len() - 1)? {
        match slice(text, *lexeme) {
            "(" => depth += 1,
            ")" => depth = depth.checked_sub(1)?,
            "," if depth == 0 => {
                found.push(text.get(from..lexeme.start)?.trim());
                from = lexeme.end;
            }
            _ => {}
        }
    }
    found.push(text.get(from..close.start)?.trim());
    Some(found)
}

/// What the compiler sees of a text.
fn expanded<'m>(text: &str, find: &'m dyn Fn(&str) -> Option<&'m MacroItem>) -> Option<Vec<String>> {
    let input = lex(text, false).into_iter().map(|l| token(text, l)).collect();
    let all: Vec<Token> = Expander::new(find).expand(input).ok()?;
    Some(all.into_iter().map(|token| token.text).collect())
}

/// Whether a text depends on standing in one line, or on how often the compiler reads it. Behind the launch a line may be handed to a call,
/// which tells it to the reader.
fn asks_for_its_place(compiled: &[String]) -> bool {
    let text = |index: usize| compiled.get(index).map_or("", |word| &**word);
    let launch = compiled
        .iter()
        .rposition(|word| word == "<<<")
        .unwrap_or(compiled.len());
    let behind = (launch..compiled.len())
        .find(|index| text(*index) == ";")
        .unwrap_or(compiled.len());
    (0..compiled.len()).any(|index| match text(index) {
        "__LINE__" => {
            let before = match index {
                0 => "",
                _ => text(index - 1),
            };
            index < behind || !matches!(before, "(" | ",") || !matches!(text(index + 1), ")" | ",")
        }
        // A name may be pasted out of them.
        word => word.contains("__LINE__") || word.contains("__COUNTER__"),
    })
}

/// What stands in `do { … } while (0)`, if nothing in it leaves that.
fn in_do_once(text: &str) -> Option<String> {
    let lexemes = lex(text, false);
    let words: Vec<&str> = lexemes.iter().map(|l| slice(text, *l)).collect();
    let ["do", "{", inner @ .., "}", "while", "(", "0" | "false", ")"] = &*words else {
        return None;
    };
    let mut depth = 0i32;
    let balanced = inner.iter().all(|word| {
        depth += i32::from(*word == "{") - i32::from(*word == "}");
        depth >= 0
    });
    if !balanced {
        return None;
    }
    let (from, to) = (lexemes.get(1)?.end, lexemes.get(words.len() - 5)?.start);
    Some(text.get(from..to)?.trim().to_owned())
}

/// The names that statements may declare, and some that they don't: what stands behind another word, and behind a comma in such a statement.
/// `None`: they may declare others.
fn declared(statements: &str) -> Option<Vec<&str>> {
    let lexemes = lex(statements, false);
    let text = |index: usize| lexemes.get(index).map_or("", |l| slice(statements, *l));
    let mut names = Vec::new();
    let (mut depth, mut declares) = (0i32, false);
    for (index, lexeme) in lexemes.iter().enumerate() {
        let word = text(index);
        depth += i32::from(matches!(word, "(" | "[" | "{")) - i32::from(matches!(word, ")" | "]" | "}"));
        if word == ";" {
            declares = false;
        }
        let before = match index {
            0 => "",
            _ => text(index - 1),
        };
        let behind_type = matches!(before, "*" | "&" | "&&" | ">" | "]")
            || index > 0 && lexemes.get(index - 1).is_some_and(|l| l.kind == TokenKind::Word);
        if lexeme.kind == TokenKind::Word && (behind_type || before == "," && depth == 0 && declares) {
            declares = true;
            names.push(word);
        }
        let makes = matches!(word, "enum" | "struct" | "class" | "union" | "using" | "typedef");
        // `auto [a, b]`, and a list that goes on with a pointer.
        if makes
            || word == "auto" && text(index + 1).starts_with(['[', '&'])
            || before == "," && depth == 0 && word == "*"
        {
            return None;
        }
    }
    Some(names)
}

/// Whether a statement begins with the name of the kernel that it launches: it is no declaration, and none that an `else` behind it could
/// belong to.
fn is_launch(statement: &str) -> bool {
    let lexemes = lex(statement, false);
    let head = lexemes.iter().take_while(|l| slice(statement, **l) != "<<<");
    let mut before_is_name = false;
    for lexeme in head {
        let name = lexeme.kind == TokenKind::Word;
        let part = matches!(slice(statement, *lexeme), "::" | "<" | ">" | ",") || lexeme.kind == TokenKind::Number;
        if !(part || name) || name && before_is_name {
            return false;
        }
        before_is_name = name || slice(statement, *lexeme) == ">";
    }
    true
}

/// Statements, each on a line of its own.
fn in_lines(text: &str, indent: &str) -> String {
    let mut out = String::new();
    let mut line = String::new();
    let (mut round, mut curly) = (0i32, 0i32);
    let lexemes = lex(text, false);
    for (index, lexeme) in lexemes.iter().enumerate() {
        let word = slice(text, *lexeme);
        if !line.is_empty() && lexeme.space {
            line.push(' ');
        }
        line += word;
        round += i32::from(matches!(word, "(" | "[")) - i32::from(matches!(word, ")" | "]"));
        curly += i32::from(word == "{") - i32::from(word == "}");
        if word == ";" && round == 0 && curly == 0 || index + 1 == lexemes.len() {
            out += indent;
            out += line.trim();
            out.push('\n');
            line.clear();
        }
    }
    out
}

/// The white space in front of the line in which an offset lies.
fn indentation(text: &str, at: usize) -> &str {
    let from = text
        .get(..at)
        .and_then(|before| before.rfind('\n'))
        .map_or(0, |n| n + 1);
    let line = text.get(from..at).unwrap_or("");
    line.get(..line.len() - line.trim_start().len()).unwrap_or("")
}
