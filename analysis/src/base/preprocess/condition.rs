//! Values of `#if` conditions.

use super::MacroState;
use super::expand::Expander;
use super::token::{Token, TokenKind, tokens};
use crate::base::literal::integer_literal;
use crate::base::preprocess::MacroItem;

/// Nested parentheses and operators that are followed.
const MAX_DEPTH: u32 = 100;

/// Whether a condition holds; `None`: that isn't known. `find` gives the macro of a name where it is certain, `state` what is
/// known about a name.
pub(super) fn holds<'a>(
    text: &str,
    find: &'a dyn Fn(&str) -> Option<&'a MacroItem>,
    state: &dyn Fn(&str) -> MacroState,
) -> Option<bool> {
    let resolved = resolve_defined(tokens(text), state)?;
    let expanded = Expander::new(find).expand(resolved).ok()?;
    // No digit is a `u`.
    let is_unsigned = |t: &Token| t.kind == TokenKind::Number && t.text.contains(['u', 'U']);
    let mut parser = Parser {
        unsigned: expanded.iter().any(is_unsigned),
        tokens: &expanded,
        at: 0,
        depth: 0,
        state,
    };
    let value = parser.conditional()?;
    if parser.at != expanded.len() {
        return None;
    }
    value.map(|value| value != 0)
}

/// Replaces `defined X` and `defined(X)` by 1, 0 or a word that isn't known. `None`: it is written wrongly.
fn resolve_defined(input: Vec<Token>, state: &dyn Fn(&str) -> MacroState) -> Option<Vec<Token>> {
    let mut out = Vec::new();
    let mut input = input.into_iter().peekable();
    while let Some(token) = input.next() {
        if token.text != "defined" {
            out.push(token);
            continue;
        }
        let mut name = input.next()?;
        let parenthesised = name.text == "(";
        if parenthesised {
            name = input.next()?;
            if input.next()?.text != ")" {
                return None;
            }
        }
        let value = match state(&name.text) {
            MacroState::Defined(_) | MacroState::DefinedSomehow => "1",
            MacroState::Undefined => "0",
            MacroState::Unknown => UNKNOWN,
        };
        out.push(Token {
            kind: TokenKind::Number,
            text: value.to_owned(),
            space: token.space,
            hidden: Vec::new(),
            origin: None,
        });
    }
    Some(out)
}

/// Stands for a number that isn't known; no number is written like this.
const UNKNOWN: &str = "?";

/// Outer `None`: not understood. Inner `None`: the value isn't known.
type Value = Option<Option<i128>>;

struct Parser<'a> {
    tokens: &'a [Token],
    /// A number is unsigned: what is negative next to it is a large number.
    unsigned: bool,
    at: usize,
    depth: u32,
    state: &'a dyn Fn(&str) -> MacroState,
}

impl Parser<'_> {
    fn peek(&self) -> &str {
        self.tokens.get(self.at).map_or("", |t| t.text.as_str())
    }

    fn take(&mut self, text: &str) -> bool {
        let found = self.peek() == text;
        self.at += usize::from(found);
        found
    }

    fn conditional(&mut self) -> Value {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        let cond = self.binary(0)?;
        let value = if self.take("?") {
            let then = self.conditional()?;
            if !self.take(":") {
                return None;
            }
            let otherwise = self.conditional()?;
            match cond {
                Some(0) => otherwise,
                Some(_) => then,
                None if then == otherwise => then,
                None => None,
            }
        } else {
            cond
        };
        self.depth -= 1;
        Some(value)
    }

    fn binary(&mut self, least: u32) -> Value {
        let mut left = self.unary()?;
        loop {
            let operator = self.peek().to_owned();
            let Some(strength) = strength(&operator).filter(|s| *s >= least) else {
                return Some(left);
            };
            self.at += 1;
            let right = self.binary(strength + 1)?;
            left = self.followed(combine(&operator, left, right)?);
        }
    }

    /// The value, unless it needs unsigned arithmetic.
    fn followed(&self, value: Option<i128>) -> Option<i128> {
        value.filter(|v| *v >= 0 || !self.unsigned)
    }

    fn unary(&mut self) -> Value {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        let token = self.tokens.get(self.at)?;
        self.at += 1;
        let value = match (token.kind, token.text.as_str()) {
            (_, UNKNOWN) => None,
            (_, "(") => {
                let value = self.conditional()?;
                if !self.take(")") {
                    return None;
                }
                value
            }
            (_, "!" | "not") => self.unary()?.map(|v| i128::from(v == 0)),
            (_, "-") => self.unary()?.and_then(i128::checked_neg),
            (_, "+") => self.unary()?,
            (_, "~" | "compl") => self.unary()?.map(|v| !v),
            (_, "true") => Some(1),
            (_, "false") => Some(0),
            (TokenKind::Number, text) => {
                let value = integer_literal(text)?;
                // What needs unsigned arithmetic isn't followed.
                i64::try_from(value).ok().map(i128::from)
            }
            // `__has_include(…)`, `__has_builtin(…)` and the like.
            (TokenKind::Word, name) => {
                let state = (self.state)(name);
                if self.peek() == "(" {
                    self.skip_parentheses()?;
                    None
                } else {
                    match state {
                        MacroState::Undefined => Some(0),
                        _ => None,
                    }
                }
            }
            _ => return None,
        };
        self.depth -= 1;
        Some(self.followed(value))
    }

    fn skip_parentheses(&mut self) -> Option<()> {
        let mut depth = 0u32;
        loop {
            match self.tokens.get(self.at)?.text.as_str() {
                "(" => depth += 1,
                ")" => depth -= 1,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return Some(());
            }
        }
    }
}

fn strength(operator: &str) -> Option<u32> {
    Some(match operator {
        "||" | "or" => 1,
        "&&" | "and" => 2,
        "|" => 3,
        "^" => 4,
        "&" => 5,
        "==" | "!=" => 6,
        "<" | ">" | "<=" | ">=" => 7,
        "<<" | ">>" => 8,
        "+" | "-" => 9,
        "*" | "/" | "%" => 10,
        _ => return None,
    })
}

fn combine(operator: &str, left: Option<i128>, right: Option<i128>) -> Value {
    let truth = |value: bool| Some(Some(i128::from(value)));
    match operator {
        "&&" | "and" => {
            return Some(match (left, right) {
                (Some(0), _) | (_, Some(0)) => Some(0),
                (Some(_), Some(_)) => Some(1),
                _ => None,
            });
        }
        "||" | "or" => {
            return Some(match (left, right) {
                (Some(a), _) if a != 0 => Some(1),
                (_, Some(b)) if b != 0 => Some(1),
                (Some(_), Some(_)) => Some(0),
                _ => None,
            });
        }
        _ => {}
    }
    let (Some(a), Some(b)) = (left, right) else {
        return Some(None);
    };
    let shift = u32::try_from(b).ok().filter(|b| *b < 63);
    let value = match operator {
        "|" => Some(a | b),
        "^" => Some(a ^ b),
        "&" => Some(a & b),
        "==" => return truth(a == b),
        "!=" => return truth(a != b),
        "<" => return truth(a < b),
        ">" => return truth(a > b),
        "<=" => return truth(a <= b),
        ">=" => return truth(a >= b),
        "<<" => shift.and_then(|b| a.checked_shl(b)),
        ">>" => shift.and_then(|b| a.checked_shr(b)),
        "+" => a.checked_add(b),
        "-" => a.checked_sub(b),
        "*" => a.checked_mul(b),
        // A division by zero is an error, unless it isn't evaluated.
        "/" => a.checked_div(b),
        "%" => a.checked_rem(b),
        _ => return None,
    };
    // What leaves 64 bits depends on signedness.
    Some(value.filter(|v| i64::try_from(*v).is_ok()))
}

#[cfg(test)]
mod tests {
    use super::super::line::macro_item;
    use super::*;

    fn value(text: &str) -> Option<bool> {
        let items: Vec<MacroItem> = [
            "ONE 1",
            "EMPTY",
            "BIG 0x40",
            "SUM(a, b) ((a) + (b))",
            "ARCH 900",
            "SELF SELF + 1",
            "HAS defined(ONE)",
        ]
        .iter()
        .filter_map(|line| macro_item(line))
        .collect();
        let find = |name: &str| items.iter().find(|item| item.name == name);
        let state = |name: &str| match find(name) {
            Some(item) => MacroState::Defined(item.clone()),
            None if name.starts_with("NOT") => MacroState::Undefined,
            None if name == "SOMEHOW" => MacroState::DefinedSomehow,
            None => MacroState::Unknown,
        };
        holds(text, &find, &state)
    }

    #[test]
    fn decided_conditions() {
        for text in [
            "1",
            "ONE",
            "defined ONE",
            "defined(EMPTY) && !defined NOT_THERE",
            "SUM(ONE, 2) == 3",
            "ARCH >= 700 && ARCH < 1000",
            "BIG / 2 == 32",
            "NOT_A + 1",
            "(1 ? 2 : 3) == 2",
            "1 || SOMEWHERE",
            "SOMEWHERE || 1",
            "!(0 && SOMEWHERE)",
            "-1 < 0",
            "~0 == -1",
            "1 + 2 * 3 == 7",
            "10 - 2 - 3 == 5",
            "'a' || 1 == 1 ? 1 : 0",
            "defined SOMEHOW",
            "1'000 == 1000",
            "100L == 100u",
            "ARCH - 100 >= 700u",
            "1 /* c */ // d",
        ] {
            if text.starts_with('\'') {
                assert_eq!(value(text), None, "{text}");
            } else {
                assert_eq!(value(text), Some(true), "{text}");
            }
        }
        for text in [
            "0",
            "NOT_THERE",
            "defined(NOT_THERE)",
            "!ONE",
            "ONE && NOT_THERE",
            "0 && 1 / 0",
        ] {
            assert_eq!(value(text), Some(false), "{text}");
        }
    }

    #[test]
    fn undecided_conditions() {
        for text in [
            "",
            "SOMEWHERE",
            "defined SOMEWHERE",
            "SOMEHOW",
            "EMPTY",
            "1 +",
            "(1",
            "1)",
            "1 1",
            "1 / 0",
            "SELF",
            "x(1)",
            "__has_include(<a>)",
            "\"text\"",
            "defined",
            "defined(",
            "defined(ONE",
            "1 ? 2",
            "1 ? : 2",
            "1.5 > 1",
            "18446744073709551615 > 0",
            "1 << 70",
            "-1 < 0u",
            "ONE - 2 < 0U",
            "~0u > 5",
            "1u - 2 > 0",
            "0 - 1 < 0xFul",
            "@",
            "1 = 1",
        ] {
            assert_eq!(value(text), None, "{text}");
        }
        let deep = format!("{}1{}", "(".repeat(5000), ")".repeat(5000));
        assert_eq!(value(&deep), None);
        assert_eq!(value(&"!".repeat(5000)), None);
        assert_eq!(value(&vec!["1"; 3000].join(" + ")), Some(true));
    }
}
