//! Macro expansion, by the standard's rules (C++ [cpp.replace]).

use super::token::{Lexeme, Token, TokenKind, lex, tokens};
use crate::base::preprocess::MacroItem;

/// Tokens that one expansion may produce.
const MAX_TOKENS: usize = 20_000;
/// Bytes of the text of a macro that is followed.
const MAX_BODY: usize = 1 << 18;
/// Expansions of arguments within expansions.
const MAX_DEPTH: u32 = 40;

/// Macros that one token comes out of: each is remembered with the token.
const MAX_HIDDEN: usize = 200;

/// Expands macros; `find` gives the macro that a word is, where that is certain.
pub(crate) struct Expander<'a> {
    find: &'a dyn Fn(&str) -> Option<&'a MacroItem>,
    budget: std::cell::Cell<usize>,
}

/// More tokens than are worth following.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooMuch;

impl<'a> Expander<'a> {
    pub(crate) fn new(find: &'a dyn Fn(&str) -> Option<&'a MacroItem>) -> Self {
        Expander {
            find,
            budget: std::cell::Cell::new(MAX_TOKENS),
        }
    }

    /// The macro that a token is, if it is one that may be expanded here.
    pub(crate) fn macro_of(&self, token: &Token) -> Option<&'a MacroItem> {
        (token.kind == TokenKind::Word && !token.hidden.contains(&token.text))
            .then(|| (self.find)(&token.text))
            .flatten()
    }

    /// The tokens with all macros expanded. A use that can't be understood (too few arguments, a wrong `##`) stays.
    pub(crate) fn expand(&self, input: Vec<Token>) -> Result<Vec<Token>, TooMuch> {
        self.expand_at(input, 0)
    }

    fn expand_at(&self, input: Vec<Token>, depth: u32) -> Result<Vec<Token>, TooMuch> {
        if depth > MAX_DEPTH {
            return Err(TooMuch);
        }
        // The next token is the last.
        let mut rest: Vec<Token> = input;
        rest.reverse();
        let mut out = Vec::new();
        while let Some(mut token) = rest.pop() {
            let left = self.budget.get();
            if left == 0 {
                return Err(TooMuch);
            }
            self.budget.set(left - 1);
            let Some(item) = self.macro_of(&token) else {
                out.push(token);
                continue;
            };
            let replaced = match &item.params {
                None => self.replace(item, &[], &token, &token.hidden, depth)?,
                Some(_) => match arguments(&rest) {
                    Some((args, used)) => {
                        let close = &rest[rest.len() - used];
                        let both = token.hidden.iter().filter(|h| close.hidden.contains(h));
                        let hidden: Vec<String> = both.cloned().collect();
                        let replaced = self.replace(item, &args, &token, &hidden, depth)?;
                        if replaced.is_some() {
                            rest.truncate(rest.len() - used);
                        }
                        replaced
                    }
                    // Without arguments it is no use of the macro.
                    None => {
                        out.push(token);
                        continue;
                    }
                },
            };
            match replaced {
                Some(replaced) => rest.extend(replaced.into_iter().rev()),
                None => {
                    token.hidden.push(token.text.clone());
                    out.push(token);
                }
            }
        }
        Ok(out)
    }

    /// The replacement of one use. `None`: it can't be understood.
    fn replace(
        &self,
        item: &MacroItem,
        args: &[Vec<Token>],
        used: &Token,
        hidden: &[String],
        depth: u32,
    ) -> Result<Option<Vec<Token>>, TooMuch> {
        if hidden.len() > MAX_HIDDEN || item.body.len() > MAX_BODY {
            return Err(TooMuch);
        }
        let Some(arguments) = Arguments::of(item, args) else {
            return Ok(None);
        };
        let Some(body) = with_va_opt(tokens(&item.body), &arguments) else {
            return Ok(None);
        };
        let mut out: Vec<Token> = Vec::new();
        let mut at = 0;
        // The operand in front of a `##` that comes next stands at the end of `out` from here.
        while let Some(token) = body.get(at) {
            let pastes_next = body.get(at + 1).is_some_and(|t| t.text == "##");
            if token.text == "#" && item.params.is_some() {
                let Some(parameter) = body.get(at + 1).and_then(|t| arguments.get(t)) else {
                    return Ok(None);
                };
                out.push(Token {
                    kind: TokenKind::Literal,
                    text: stringized(parameter),
                    space: token.space,
                    hidden: Vec::new(),
                    origin: None,
                });
                at += 2;
                continue;
            }
            if token.text == "##" {
                let Some(right) = body.get(at + 1) else { return Ok(None) };
                let raw = match arguments.get(right) {
                    Some(raw) => raw.to_vec(),
                    None => vec![right.clone()],
                };
                // GNU: `, ## __VA_ARGS__` drops the comma when there are no arguments, and pastes nothing.
                if out.last().is_some_and(|t| t.text == ",") && arguments.is_variadic(right) {
                    if raw.is_empty() {
                        out.pop();
                    } else {
                        out.extend(self.expand_at(raw, depth + 1)?);
                    }
                } else if !paste(&mut out, raw) {
                    return Ok(None);
                }
                at += 2;
                continue;
            }
            match arguments.get(token) {
                Some(raw) => {
                    let mut value = if pastes_next {
                        raw.to_vec()
                    } else {
                        self.expand_at(raw.to_vec(), depth + 1)?
                    };
                    if value.is_empty() && pastes_next {
                        // Nothing ## x is x.
                        value.push(placemarker());
                    }
                    if let Some(first) = value.first_mut() {
                        first.space = token.space;
                    }
                    out.extend(value);
                }
                None => out.push(token.clone()),
            }
            at += 1;
        }
        out.retain(|t| !t.text.is_empty());
        for token in &mut out {
            for name in hidden.iter().chain([&item.name]) {
                if !token.hidden.contains(name) {
                    token.hidden.push(name.clone());
                }
            }
        }
        if let Some(first) = out.first_mut() {
            first.space = used.space;
        }
        Ok(Some(out))
    }
}

fn placemarker() -> Token {
    Token {
        kind: TokenKind::Punctuation,
        text: String::new(),
        space: false,
        hidden: Vec::new(),
        origin: None,
    }
}

/// Joins the last token and the first of `right` into one; whether that gives a token.
fn paste(out: &mut Vec<Token>, right: Vec<Token>) -> bool {
    let mut right = right.into_iter();
    let Some(first) = right.next() else {
        // Something ## nothing.
        return true;
    };
    let Some(left) = out.pop() else {
        out.push(first);
        out.extend(right);
        return true;
    };
    let text = format!("{}{}", left.text, first.text);
    let whole = |found: &[Lexeme]| matches!(found, [one] if one.start == 0 && one.end == text.len());
    let found = lex(&text, false);
    if !text.is_empty() && !whole(&found) {
        return false;
    }
    let kind = found.first().map_or(left.kind, |l| l.kind);
    let hidden = left
        .hidden
        .iter()
        .filter(|h| first.hidden.contains(h))
        .cloned()
        .collect();
    out.push(Token {
        kind,
        text,
        space: left.space,
        hidden,
        origin: None,
    });
    out.extend(right);
    true
}

/// `#x`
fn stringized(tokens: &[Token]) -> String {
    let mut out = String::from("\"");
    for (index, token) in tokens.iter().enumerate() {
        if index > 0 && token.space {
            out.push(' ');
        }
        let literal = token.kind == TokenKind::Literal;
        for c in token.text.chars() {
            if literal && matches!(c, '"' | '\\') {
                out.push('\\');
            }
            out.push(c);
        }
    }
    out.push('"');
    out
}

/// The arguments behind a function-like macro's name, and how many tokens they take with their parentheses. The next token is
/// the last of `rest`.
fn arguments(rest: &[Token]) -> Option<(Vec<Vec<Token>>, usize)> {
    let mut coming = rest.iter().rev();
    if coming.next()?.text != "(" {
        return None;
    }
    let mut args = vec![Vec::new()];
    let mut depth = 0u32;
    let mut used = 1;
    for token in coming {
        used += 1;
        match token.text.as_str() {
            ")" if depth == 0 => return Some((args, used)),
            "," if depth == 0 => {
                args.push(Vec::new());
                continue;
            }
            "(" => depth += 1,
            ")" => depth -= 1,
            _ => {}
        }
        args.last_mut()?.push(token.clone());
    }
    None
}

/// Arguments by parameter.
struct Arguments<'a> {
    params: &'a [String],
    variadic: Option<String>,
    args: &'a [Vec<Token>],
    rest: Vec<Token>,
}

impl<'a> Arguments<'a> {
    /// `None`: there are too few or too many.
    fn of(item: &'a MacroItem, args: &'a [Vec<Token>]) -> Option<Self> {
        let params = item.params.as_deref().unwrap_or_default();
        // `...`, or GNU's `name...`.
        let (params, variadic) = match params.split_last() {
            Some((last, named)) if last.ends_with("...") => {
                let name = last.trim_end_matches("...").trim();
                let name = if name.is_empty() { "__VA_ARGS__" } else { name };
                (named, Some(name.to_owned()))
            }
            _ => (params, None),
        };
        // `f()` has one empty argument, or none.
        let args = match args {
            [only] if only.is_empty() && params.is_empty() => &[],
            args => args,
        };
        let fits = match variadic {
            None => args.len() == params.len(),
            Some(_) => args.len() >= params.len(),
        };
        if !fits {
            return None;
        }
        let mut rest = Vec::new();
        for (index, arg) in args.iter().skip(params.len()).enumerate() {
            if index > 0 {
                rest.extend(tokens(","));
            }
            rest.extend(arg.iter().cloned());
        }
        Some(Arguments {
            params,
            variadic,
            args,
            rest,
        })
    }

    fn get(&self, token: &Token) -> Option<&[Token]> {
        if self.is_variadic(token) {
            return Some(&self.rest);
        }
        let index = self.params.iter().position(|p| *p == token.text)?;
        self.args.get(index).map(Vec::as_slice)
    }

    fn is_variadic(&self, token: &Token) -> bool {
        self.variadic.as_ref().is_some_and(|name| *name == token.text)
    }
}

/// Resolves `__VA_OPT__(…)`.
fn with_va_opt(body: Vec<Token>, arguments: &Arguments<'_>) -> Option<Vec<Token>> {
    if arguments.variadic.is_none() || body.iter().all(|t| t.text != "__VA_OPT__") {
        return Some(body);
    }
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(token) = body.get(at) {
        at += 1;
        if token.text != "__VA_OPT__" {
            out.push(token.clone());
            continue;
        }
        if body.get(at)?.text != "(" {
            return None;
        }
        let mut depth = 0;
        let from = at + 1;
        loop {
            match body.get(at)?.text.as_str() {
                "(" => depth += 1,
                ")" => depth -= 1,
                _ => {}
            }
            at += 1;
            if depth == 0 {
                break;
            }
        }
        if !arguments.rest.is_empty() {
            out.extend(body.get(from..at - 1)?.iter().cloned());
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::super::line::macro_item;
    use super::super::token::spelled;
    use super::*;

    fn expanded(macros: &[&str], text: &str) -> String {
        let items: Vec<MacroItem> = macros.iter().filter_map(|line| macro_item(line)).collect();
        let find = |name: &str| items.iter().find(|item| item.name == name);
        let found = Expander::new(&find).expand(tokens(text));
        found.map_or_else(|_| "too much".to_owned(), |found| spelled(&found))
    }

    #[test]
    fn the_standards_examples() {
        // C++ [cpp.rescan], without the redefinitions.
        let macros = [
            "x 3",
            "f(a) f(x * (a))",
            "g f",
            "z z[0]",
            "h g(~",
            "m(a) a(w)",
            "w 0,1",
            "t(a) a",
            "p() int",
            "q(x) x",
            "r(x,y) x ## y",
            "str(x) # x",
        ];
        assert_eq!(
            expanded(&macros, "f(y+1) + f(f(z)) % t(t(g)(0) + t)(1);"),
            "f(3 * (y+1)) + f(3 * (f(3 * (z[0])))) % f(3 * (0)) + t(1);"
        );
        assert_eq!(
            expanded(&macros, "g(x+(3,4)-w) | h 5) & m(f)^m(m);"),
            "f(3 * (3+(3,4)-0,1)) | f(3 * (~ 5)) & f(3 * (0,1))^m(0,1);"
        );
        assert_eq!(
            expanded(&macros, "p() i[q()] = { q(1), r(2,3), r(4,), r(,5), r(,) };"),
            "int i[] = { 1, 23, 4, 5, };"
        );
        // Another spelling of `##`.
        assert_eq!(expanded(&["d(x,y) x %:%: y"], "d(2,3)"), "23");
        assert_eq!(expanded(&macros, "str( a \"\\n\" , b )"), "str( a \"\\n\" , b )");
        assert_eq!(
            expanded(&macros, "str( a \"\\n\"  + 'b' )"),
            "\"a \\\"\\\\n\\\" + 'b'\""
        );
        let paste = [
            "hash_hash # ## #",
            "mkstr(a) # a",
            "in_between(a) mkstr(a)",
            "join(c, d) in_between(c hash_hash d)",
        ];
        assert_eq!(expanded(&paste, "join(x, y)"), "\"x ## y\"");
    }

    #[test]
    fn variadic_macros() {
        let macros = [
            "LOG(f, ...) printf(f, __VA_ARGS__)",
            "GNU(f, args...) printf(f, ## args)",
            "OPT(f, ...) printf(f __VA_OPT__(,) __VA_ARGS__)",
            "ALL(...) g(__VA_ARGS__)",
            "LAUNCH(k, g, b, ...) k<<<g, b>>>(__VA_ARGS__)",
        ];
        assert_eq!(expanded(&macros, "LOG(a, b, c)"), "printf(a, b, c)");
        assert_eq!(expanded(&macros, "GNU(a) GNU(a, b)"), "printf(a) printf(a, b)");
        assert_eq!(expanded(&macros, "OPT(a) OPT(a, b)"), "printf(a) printf(a, b)");
        assert_eq!(expanded(&macros, "ALL() ALL(1, (2, 3))"), "g() g(1, (2, 3))");
        assert_eq!(
            expanded(&macros, "LAUNCH(child, (n + 1) / 2, 32, out, n)"),
            "child<<<(n + 1) / 2, 32>>>(out, n)"
        );
    }

    #[test]
    fn what_cannot_be_understood_stays() {
        assert_eq!(
            expanded(&["F(a, b) a + b"], "F(1) F(1, 2, 3) F (1, 2) F"),
            "F(1) F(1, 2, 3) 1 + 2 F"
        );
        assert_eq!(expanded(&["P(a) a ## +"], "P(x) P(+)"), "P(x) ++");
        assert_eq!(expanded(&["A B", "B A"], "A B"), "A B");
        assert_eq!(expanded(&["F(x) x"], "F(1"), "F(1");
        assert_eq!(
            expanded(&["D(x) x x x x", "E(x) D(D(D(D(D(D(D(x)))))))"], "E(1)"),
            "too much"
        );
        assert_eq!(expanded(&["S(x) #y"], "S(1)"), "S(1)");
        assert_eq!(expanded(&["NEG -"], "-NEG x"), "- - x");
    }
}
