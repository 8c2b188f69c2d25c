//! Uses of macros that launch, with what the macros say in their place, as somebody would write it by hand.

use crate::base::db::Db;
use crate::base::preprocess::expand::Expander;
use crate::base::preprocess::token::{Lexeme, TokenKind, glues, lex, spelled, tokens};
use crate::base::preprocess::{MacroItem, MacroState};
use crate::base::span::Span;
use crate::hir::items::FunctionItem;
use crate::hir::macros::{FunctionMacros, closing, function_macros, one_use, state_at};
use crate::hir::{Storage, body};

/// Macros within macros that are followed.
const MAX_LEVELS: usize = 8;
/// Bytes that a macro may stand for.
const MAX_CODE: usize = 4_000;

/// A use of a macro that launches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfolded {
    /// The use, relative to the function.
    pub span: Span,
    /// What stands for it.
    pub code: Code,
}

/// What a macro that launches stands for. Other macros that it names are still named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Code {
    /// Statements in a scope of their own: `do { … } while (0)`, `{ … }`. Lines, each level of braces indented by a tab. `closed`: a
    /// semicolon has to stand behind the use.
    Statements {
        /// The lines between the braces.
        lines: Vec<String>,
        /// A semicolon has to stand behind the use.
        closed: bool,
    },
    /// A part of a statement: `kernel<<<grid, block>>>(out)`, or what stands in front of its arguments.
    Part(String),
}

/// The uses of macros in a function's body out of which a launch comes. Those that can't be written out aren't among them: what they are
/// written as has to stand for the very same tokens.
pub fn unfolded<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<Unfolded> {
    let macros = function_macros(db, function);
    if macros.states.is_empty() {
        return Vec::new();
    }
    let text = function.text(db);
    let span = function.body_span(db);
    let (from, to) = (span.start as usize, span.end as usize);
    let Some(inner) = text.get(from..to) else {
        return Vec::new();
    };
    let own = body(db, function);
    let variable = |word: &str| {
        let mut named = own.bindings.iter().filter(|binding| binding.name == word);
        named.any(|binding| matches!(binding.storage, Storage::Param | Storage::Local))
    };
    let lexemes = lex(inner, true);
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(lexeme) = lexemes.get(at) {
        let writer = Writer {
            macros,
            offset: (from + lexeme.start) as u32,
            variable: &variable,
        };
        let find = |name: &str| writer.find(name);
        let used = match lexeme.kind {
            TokenKind::Word => one_use(&Expander::new(&find), &find, inner, &lexemes, at).flatten(),
            _ => None,
        };
        let Some((_, next)) = used else {
            at += 1;
            continue;
        };
        // Of a macro that ends with the name of another one, whose arguments come behind it, the use is longer than its own list.
        if let Some(end) = end_of_use(&find, inner, &lexemes, at)
            && writer.launches_by(inner, lexeme, end)
            && let Some(code) = inner.get(lexeme.start..end).and_then(|used| writer.code(used))
        {
            let span = Span::new((from + lexeme.start) as u32, (from + end) as u32);
            found.push(Unfolded { span, code });
        }
        at = next;
    }
    found
}

fn word<'t>(text: &'t str, lexeme: &Lexeme) -> &'t str {
    text.get(lexeme.start..lexeme.end).unwrap_or("")
}

/// Where the use of the macro at a token ends: with its name, or its arguments.
fn end_of_use<'m>(
    find: &dyn Fn(&str) -> Option<&'m MacroItem>,
    text: &str,
    lexemes: &[Lexeme],
    at: usize,
) -> Option<usize> {
    let lexeme = lexemes.get(at)?;
    let last = match find(word(text, lexeme))?.params {
        None => at,
        Some(_) => closing(text, lexemes, at + 1)?,
    };
    Some(lexemes.get(last)?.end)
}

/// Writes out macros as they are known at a place.
struct Writer<'a> {
    macros: &'a FunctionMacros,
    offset: u32,
    /// A variable of the function has this name.
    variable: &'a dyn Fn(&str) -> bool,
}

impl<'a> Writer<'a> {
    fn find(&self, name: &str) -> Option<&'a MacroItem> {
        match state_at(self.macros, name, self.offset) {
            Some(MacroState::Defined(item)) => Some(item),
            _ => None,
        }
    }

    /// A launch stands in what a word is a macro for.
    fn launches(&self, word: &str, level: usize) -> bool {
        let Some(item) = self.find(word).filter(|_| level < MAX_LEVELS) else {
            return false;
        };
        item.body.contains("<<<")
            || tokens(&item.body)
                .iter()
                .any(|token| token.kind == TokenKind::Word && self.launches(&token.text, level + 1))
    }

    /// A use of the macro that stands at a token and ends there launches: by its text, or by its arguments.
    fn launches_by(&self, text: &str, lexeme: &Lexeme, end: usize) -> bool {
        let name = word(text, lexeme);
        self.launches(name, 0)
            || self.find(name).is_some() && text.get(lexeme.end..end).is_some_and(|u| u.contains("<<<"))
    }

    /// What stands for a use; `None` where that isn't the same, or can't be written in another place.
    fn code(&self, used: &str) -> Option<Code> {
        if ["//", "/*", "\\\n", "\\\r", "#", "\""]
            .iter()
            .any(|odd| used.contains(odd))
        {
            return None;
        }
        let exact = self.written_out(used, false)?;
        let find = |name: &str| self.find(name);
        let whole = |code: &str| Expander::new(&find).expand(tokens(code)).ok().map(|all| spelled(&all));
        if exact.len() > MAX_CODE || whole(used)? != whole(&exact)? {
            return None;
        }
        shaped(&self.written_out(used, true)?)
    }

    /// A use with the macros that launch written out. `bare`: an argument that is one name or number loses the parentheses around the
    /// parameter.
    fn written_out(&self, used: &str, bare: bool) -> Option<String> {
        let find = |name: &str| self.find(name);
        let mut code = used.to_owned();
        for _ in 0..MAX_LEVELS {
            let lexemes = lex(&code, false);
            let launching = |(at, lexeme): (usize, &Lexeme)| {
                let end = end_of_use(&find, &code, &lexemes, at)?;
                (lexeme.kind == TokenKind::Word && self.launches_by(&code, lexeme, end)).then_some((at, end))
            };
            let Some((at, end)) = lexemes.iter().enumerate().find_map(launching) else {
                return Some(code);
            };
            let start = lexemes[at].start;
            let item = self.find(word(&code, &lexemes[at]))?;
            let replaced = self.replaced(item, code.get(start..end)?, bare)?;
            code.replace_range(start..end, &replaced);
            if code.len() > MAX_CODE {
                return None;
            }
        }
        None
    }

    /// A macro's text with the arguments of a use in the place of its parameters.
    fn replaced(&self, item: &MacroItem, used: &str, bare: bool) -> Option<String> {
        let mut params: Vec<&str> = item.params.iter().flatten().map(String::as_str).collect();
        let mut args = arguments(used);
        if let Some(last) = params.last_mut().filter(|last| last.ends_with("...")) {
            let name = last.trim_end_matches("...").trim();
            *last = if name.is_empty() { "__VA_ARGS__" } else { name };
            let named = params.len() - 1;
            let rest: Vec<String> = args.drain(named.min(args.len())..).collect();
            args.push(rest.join(", "));
        }
        if params.is_empty() {
            args.clear();
        }
        if args.len() != params.len() {
            return None;
        }
        let lexemes = lex(&item.body, false);
        let at = |index: Option<usize>| {
            index
                .and_then(|index| lexemes.get(index))
                .map(|l| (l.kind, word(&item.body, l)))
        };
        let argument = |index: usize| {
            let (_, name) = at(Some(index))?;
            args.get(params.iter().position(|param| *param == name)?)
        };
        // The parentheses around a parameter mean nothing there, but a cast, or a call.
        let is_bare = |index: usize| {
            let plain = argument(index).is_some_and(|arg| {
                let number = !arg.is_empty() && arg.bytes().all(|byte| byte.is_ascii_digit());
                number || (self.variable)(arg)
            });
            let before = index.checked_sub(2);
            let free = match at(before) {
                None => true,
                Some((TokenKind::Punctuation, text)) => !matches!(text, ")" | "]" | ">"),
                Some((_, text)) => text == "return",
            };
            let open = index.checked_sub(1).and_then(|open| at(Some(open)));
            let closed = at(Some(index + 1)).is_some_and(|(_, text)| text == ")");
            bare && plain && free && closed && open.is_some_and(|(_, text)| text == "(")
        };
        let mut out = String::new();
        let mut skipped = false;
        for (index, lexeme) in lexemes.iter().enumerate() {
            let text = word(&item.body, lexeme);
            let odd = ["__LINE__", "__COUNTER__", "__VA_OPT__", "__FILE__"].contains(&text);
            if odd || text.starts_with('#') || lexeme.kind == TokenKind::Directive {
                return None;
            }
            let opens = is_bare(index + 1) && text == "(";
            if opens || index > 0 && is_bare(index - 1) && text == ")" {
                skipped |= opens && lexeme.space;
                continue;
            }
            let text = argument(index).map_or(text, String::as_str);
            let apart = lexeme.space || std::mem::take(&mut skipped);
            if !out.is_empty() && (apart || glues(&out, text)) {
                out.push(' ');
            }
            out.push_str(text);
        }
        Some(out)
    }
}

/// The arguments of a use, each on one line.
fn arguments(used: &str) -> Vec<String> {
    let lexemes = lex(used, false);
    let mut found: Vec<String> = Vec::new();
    let mut depth = 0u32;
    for lexeme in lexemes.iter().skip(1) {
        let text = word(used, lexeme);
        match text {
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            _ => {}
        }
        let opens = depth == 1 && text == "(" && found.is_empty();
        if opens || depth == 1 && text == "," {
            found.push(String::new());
        } else if depth > 0
            && let Some(last) = found.last_mut()
        {
            if !last.is_empty() && (lexeme.space || glues(last, text)) {
                last.push(' ');
            }
            last.push_str(text);
        }
    }
    found
}

/// Code as statements or as a part of one.
fn shaped(code: &str) -> Option<Code> {
    let lexemes = lex(code, false);
    let words: Vec<&str> = lexemes.iter().map(|lexeme| word(code, lexeme)).collect();
    let is_loop = words.first() == Some(&"do");
    let (open, close) = match words.as_slice() {
        ["do", "{", .., "}", "while", "(", "0" | "false", ")"] => (1, words.len() - 5),
        ["{", .., "}"] => (0, words.len() - 1),
        _ if words.iter().any(|word| matches!(*word, ";" | "{" | "}")) => return None,
        _ => return Some(Code::Part(code.to_owned())),
    };
    let inside = words.get(open + 1..close)?;
    // A jump would leave another loop, and a name that is declared there be another one.
    let jumps = ["break", "continue", "goto", "case", "default"];
    if is_loop && inside.iter().any(|word| jumps.contains(word)) || !balanced(inside) {
        return None;
    }
    let lines = lines(code, lexemes.get(open + 1..close)?);
    (!lines.is_empty()).then_some(Code::Statements { lines, closed: is_loop })
}

/// What opens is closed, and nothing else.
fn balanced(words: &[&str]) -> bool {
    let mut depth = 0i32;
    let inside = words.iter().all(|word| {
        depth += i32::from(*word == "{") - i32::from(*word == "}");
        depth >= 0
    });
    inside && depth == 0
}

/// Statements on lines of their own.
fn lines(code: &str, lexemes: &[Lexeme]) -> Vec<String> {
    let mut found = Vec::new();
    let mut line = String::new();
    let mut parens = 0i32;
    // Of each open brace, whether statements stand between it and its other one.
    let mut open: Vec<bool> = Vec::new();
    let mut levels = 0;
    let mut finish = |line: &mut String, levels: usize| {
        let text = std::mem::take(line);
        if !text.is_empty() {
            found.push(format!("{}{text}", "\t".repeat(levels)));
        }
    };
    for (index, lexeme) in lexemes.iter().enumerate() {
        let text = word(code, lexeme);
        let before = index.checked_sub(1).map_or(";", |before| word(code, &lexemes[before]));
        let behind = lexemes.get(index + 1).map_or("", |behind| word(code, behind));
        let block = parens == 0 && matches!(before, ")" | "else" | "do" | ";" | "{" | "}");
        let ends_block = text == "}" && open.last() == Some(&true);
        if ends_block {
            finish(&mut line, levels);
            levels -= 1;
        }
        if !line.is_empty() && (lexeme.space || glues(&line, text)) {
            line.push(' ');
        }
        line.push_str(text);
        match text {
            "(" => parens += 1,
            ")" => parens -= 1,
            "{" => {
                open.push(block);
                if block {
                    finish(&mut line, levels);
                    levels += 1;
                }
            }
            "}" => {
                open.pop();
                if ends_block && !matches!(behind, "else" | "while" | ";" | ")" | ",") {
                    finish(&mut line, levels);
                }
            }
            ";" if parens == 0 && !open.contains(&false) => finish(&mut line, levels),
            _ => {}
        }
    }
    finish(&mut line, levels);
    found
}

#[cfg(test)]
mod tests {
    use super::{Code, arguments, shaped};

    #[test]
    fn arguments_are_told_apart() {
        let all = |used: &str| arguments(used);
        assert_eq!(all("L(k, (a, b),\n  f(c))"), ["k", "(a, b)", "f(c)"]);
        assert_eq!(all("L()"), [""]);
        assert!(all("L").is_empty());
    }

    #[test]
    fn statements_get_lines() {
        let lines = |code: &str| match shaped(code) {
            Some(Code::Statements { lines, .. }) => lines,
            _ => Vec::new(),
        };
        assert_eq!(
            lines("do { int3 g{1, 2, 3}; k<<<g, 1>>>(); if (f()) { g(); } else h(); } while (0)"),
            [
                "int3 g{1, 2, 3};",
                "k<<<g, 1>>>();",
                "if (f()) {",
                "\tg();",
                "} else h();"
            ]
        );
        assert_eq!(lines("{ for (int i = 0; i < 2; ++i) k<<<1, 1>>>(i); }").len(), 1);
        assert!(lines("do { if (x) break; k<<<1, 1>>>(); } while (0)").is_empty());
        assert!(lines("do { k<<<1, 1>>>(); } while (x)").is_empty());
        assert_eq!(shaped("dim3 g(1); k<<<g, 1>>>()"), None);
        assert_eq!(shaped("k<<<g, 1>>>"), Some(Code::Part("k<<<g, 1>>>".to_owned())));
    }
}
