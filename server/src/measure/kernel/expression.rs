//! The expressions of a run specification: how they are written.

/// What is wrong in a specification, and where in its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Byte offset.
    pub at: usize,
    /// What is wrong, and what to do.
    pub message: String,
}

impl Mistake {
    /// A mistake at a byte of the text.
    pub fn new(at: usize, message: impl Into<String>) -> Mistake {
        Mistake {
            at,
            message: message.into(),
        }
    }
}

/// An expression with the byte at which it begins.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// Byte offset in the specification.
    pub at: usize,
    /// What it is.
    pub kind: ExprKind,
}

/// Kinds of expressions.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// `128`, `0x80`
    Int(i64),
    /// `0.5`, `1e-6f`
    Float(f64),
    /// `"positions.npy"`
    Text(String),
    /// `n`
    Name(String),
    /// `graph.row`
    Member(Box<Expr>, String),
    /// `-n`
    Negate(Box<Expr>),
    /// `n + 255`
    Binary(Operator, Box<Expr>, Box<Expr>),
    /// `random(n, 0, 99, seed = 7)`
    Call {
        /// What is called.
        name: String,
        /// Arguments by position, then those by name.
        arguments: Vec<Argument>,
    },
    /// `code(make_float2(0, 1))`: C++ that is taken as it is.
    Code(String),
}

/// An argument of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Argument {
    /// `seed` in `seed = 7`.
    pub name: Option<String>,
    /// Its value.
    pub value: Expr,
}

/// Operators between two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`
    Remainder,
    /// `<<`
    ShiftLeft,
    /// `>>`
    ShiftRight,
}

/// Operators by how they are written, the longer ones first, with how tightly they bind.
const OPERATORS: &[(&str, Operator, u8)] = &[
    ("<<", Operator::ShiftLeft, 1),
    (">>", Operator::ShiftRight, 1),
    ("+", Operator::Add, 2),
    ("-", Operator::Subtract, 2),
    ("*", Operator::Multiply, 3),
    ("/", Operator::Divide, 3),
    ("%", Operator::Remainder, 3),
];

/// Expressions may be nested this deep: nobody writes more, and reading them is recursive.
const MOST_NESTED: usize = 64;

/// Reads a specification's text from front to back.
pub struct Reader<'a> {
    text: &'a str,
    at: usize,
    nested: usize,
}

impl<'a> Reader<'a> {
    /// Begins at the first byte.
    pub fn new(text: &'a str) -> Self {
        Reader { text, at: 0, nested: 0 }
    }

    /// Where the next token begins.
    pub fn position(&mut self) -> usize {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
        self.at
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Nothing is left.
    pub fn is_done(&mut self) -> bool {
        self.position() >= self.text.len()
    }

    /// Takes a piece of punctuation, if it stands here.
    pub fn take(&mut self, token: &str) -> bool {
        self.position();
        let here = self.rest().starts_with(token);
        if here {
            self.at += token.len();
        }
        here
    }

    /// Takes a piece of punctuation that has to stand here.
    pub fn expect(&mut self, token: &str, after: &str) -> Result<(), Mistake> {
        if self.take(token) {
            return Ok(());
        }
        let at = self.position();
        Err(Mistake::new(
            at,
            format!("expected `{token}` {after}, not {}", self.here()),
        ))
    }

    /// What stands here, for a message.
    pub fn here(&mut self) -> String {
        if self.is_done() {
            return "the end".to_owned();
        }
        let rest = self.rest();
        let word = word_at(rest);
        let shown = match word.is_empty() {
            true => rest.chars().next().map(String::from).unwrap_or_default(),
            false => word.to_owned(),
        };
        format!("`{shown}`")
    }

    /// Takes an identifier, if one stands here; `ns::name` counts as one.
    pub fn identifier(&mut self) -> Option<&'a str> {
        self.position();
        let word = word_at(self.rest());
        if word.is_empty() || word.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        self.at += word.len();
        Some(word)
    }

    /// Takes everything up to a piece of punctuation that stands somewhere behind.
    pub fn up_to(&mut self, token: &str) -> Option<&'a str> {
        let taken = self.rest().split_once(token)?.0;
        self.at += taken.len();
        Some(taken)
    }

    /// Reads an expression.
    pub fn expression(&mut self) -> Result<Expr, Mistake> {
        self.binary(0)
    }

    fn binary(&mut self, least: u8) -> Result<Expr, Mistake> {
        let mut left = self.unary()?;
        loop {
            self.position();
            let rest = self.rest();
            // The end of a launch's configuration is no shift.
            if rest.starts_with(">>>") || rest.starts_with("<<<") {
                return Ok(left);
            }
            let known = OPERATORS.iter().find(|(token, _, _)| rest.starts_with(token));
            let Some((token, operator, binds)) = known.filter(|(_, _, binds)| *binds > least) else {
                return Ok(left);
            };
            self.at += token.len();
            let right = self.binary(*binds)?;
            left = Expr {
                at: left.at,
                kind: ExprKind::Binary(*operator, Box::new(left), Box::new(right)),
            };
        }
    }

    fn unary(&mut self) -> Result<Expr, Mistake> {
        let at = self.position();
        self.nested += 1;
        if self.nested > MOST_NESTED {
            return Err(Mistake::new(at, "this is nested too deep"));
        }
        let found = if self.take("-") {
            self.unary().map(|inner| Expr {
                at,
                kind: ExprKind::Negate(Box::new(inner)),
            })
        } else {
            self.primary()
        };
        self.nested -= 1;
        found
    }

    fn primary(&mut self) -> Result<Expr, Mistake> {
        let at = self.position();
        if self.take("(") {
            let mut inner = self.expression()?;
            self.expect(")", "after what stands in parentheses")?;
            inner.at = at;
            return self.members(inner);
        }
        if self.take("\"") {
            let Some(text) = self.up_to("\"").filter(|text| !text.contains('\n')) else {
                return Err(Mistake::new(at, "this `\"` isn't closed"));
            };
            self.take("\"");
            let kind = ExprKind::Text(text.to_owned());
            return Ok(Expr { at, kind });
        }
        if self.rest().starts_with(|c: char| c.is_ascii_digit() || c == '.') {
            return self.number();
        }
        let Some(name) = self.identifier() else {
            let here = self.here();
            return Err(Mistake::new(at, format!("expected a value, not {here}")));
        };
        if !self.take("(") {
            let kind = ExprKind::Name(name.to_owned());
            return self.members(Expr { at, kind });
        }
        if name == "code" {
            let code = self.balanced(at)?;
            let kind = ExprKind::Code(code);
            return Ok(Expr { at, kind });
        }
        let mut arguments: Vec<Argument> = Vec::new();
        while !self.take(")") {
            if !arguments.is_empty() {
                self.expect(",", "between arguments")?;
            }
            let before = self.at;
            let named = match self.identifier() {
                Some(word) if self.take("=") => Some(word.to_owned()),
                _ => {
                    self.at = before;
                    None
                }
            };
            if named.is_none() && arguments.last().is_some_and(|last| last.name.is_some()) {
                let at = self.position();
                return Err(Mistake::new(at, "arguments by position come before those by name"));
            }
            let value = self.expression()?;
            arguments.push(Argument { name: named, value });
        }
        let kind = ExprKind::Call {
            name: name.to_owned(),
            arguments,
        };
        self.members(Expr { at, kind })
    }

    fn members(&mut self, mut of: Expr) -> Result<Expr, Mistake> {
        while self.take(".") {
            let at = self.position();
            let Some(name) = self.identifier() else {
                return Err(Mistake::new(at, "expected a name after `.`"));
            };
            of = Expr {
                at: of.at,
                kind: ExprKind::Member(Box::new(of), name.to_owned()),
            };
        }
        Ok(of)
    }

    fn number(&mut self) -> Result<Expr, Mistake> {
        let at = self.at;
        let rest = self.rest();
        let mut end = 0;
        let bytes = rest.as_bytes();
        let hex = rest.starts_with("0x") || rest.starts_with("0X");
        while let Some(byte) = bytes.get(end) {
            let exponent_sign = matches!(byte, b'+' | b'-')
                && !hex
                && end > 0
                && matches!(bytes.get(end - 1), Some(b'e' | b'E'))
                && bytes.get(end + 1).is_some_and(u8::is_ascii_digit);
            if !(byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'\'') || exponent_sign) {
                break;
            }
            end += 1;
        }
        let written = rest.get(..end).unwrap_or_default();
        self.at += end;
        let digits = written.replace(['\'', '_'], "");
        let kind = if let Some(hex) = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
            i64::from_str_radix(hex.trim_end_matches(['u', 'U', 'l', 'L']), 16)
                .ok()
                .map(ExprKind::Int)
        } else if digits.contains(['.', 'e', 'E', 'f', 'F']) {
            let number = digits.trim_end_matches(['f', 'F', 'l', 'L']).parse::<f64>();
            number.ok().filter(|number| number.is_finite()).map(ExprKind::Float)
        } else {
            digits
                .trim_end_matches(['u', 'U', 'l', 'L'])
                .parse()
                .ok()
                .map(ExprKind::Int)
        };
        match kind {
            Some(kind) => Ok(Expr { at, kind }),
            None => Err(Mistake::new(
                at,
                format!("`{written}` is no number that fits into 64 bits"),
            )),
        }
    }

    /// Takes the text up to the parenthesis that closes the one before, and that one.
    fn balanced(&mut self, from: usize) -> Result<String, Mistake> {
        let rest = self.rest();
        let mut open = 1;
        for token in gridfuse_codeactions::edit::lex::code_tokens(rest) {
            match token.text(rest) {
                "(" => open += 1,
                ")" => open -= 1,
                _ => {}
            }
            if open == 0 {
                let code = rest.get(..token.start).unwrap_or_default().trim();
                self.at += token.end;
                if code.is_empty() {
                    return Err(Mistake::new(from, "`code()` needs an expression of C++"));
                }
                return Ok(code.to_owned());
            }
        }
        Err(Mistake::new(from, "the parenthesis of `code(` isn't closed"))
    }
}

/// The word with which a text begins; `ns::name` is one.
fn word_at(text: &str) -> &str {
    let mut end = 0;
    loop {
        let rest = text.get(end..).unwrap_or_default();
        let length = rest
            .find(|c: char| !(c.is_alphanumeric() || c == '_'))
            .unwrap_or(rest.len());
        end += length;
        let behind = text.get(end..).unwrap_or_default();
        let qualifies = length > 0
            && behind
                .strip_prefix("::")
                .is_some_and(|next| next.starts_with(|c: char| c.is_alphabetic() || c == '_'));
        if !qualifies {
            return text.get(..end).unwrap_or_default();
        }
        end += 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Expr, Mistake> {
        let mut reader = Reader::new(text);
        let found = reader.expression()?;
        match reader.is_done() {
            true => Ok(found),
            false => Err(Mistake::new(reader.position(), format!("left: {}", reader.here()))),
        }
    }

    #[test]
    fn precedence() -> Result<(), Mistake> {
        let written = read("(n + 255) / 256 - 1 << 2")?;
        let ExprKind::Binary(Operator::ShiftLeft, left, _) = written.kind else {
            unreachable!("{written:?}");
        };
        assert!(
            matches!(left.kind, ExprKind::Binary(Operator::Subtract, _, _)),
            "{left:?}"
        );
        assert!(matches!(read("-n.x")?.kind, ExprKind::Negate(_)));
        let mut reader = Reader::new("1 << 14>>> rest");
        assert!(matches!(reader.expression()?.kind, ExprKind::Binary(..)));
        assert!(reader.take(">>>"));
        Ok(())
    }

    #[test]
    fn values() -> Result<(), Mistake> {
        for (text, kind) in [
            ("0x10", ExprKind::Int(16)),
            ("16'384u", ExprKind::Int(16384)),
            ("1.5f", ExprKind::Float(1.5)),
            ("1e-3", ExprKind::Float(1e-3)),
            ("code(f(a, ')')[0])", ExprKind::Code("f(a, ')')[0]".to_owned())),
            ("app::x", ExprKind::Name("app::x".to_owned())),
        ] {
            assert_eq!(read(text)?.kind, kind, "{text}");
        }
        let call = read("csr(rmat, n, seed = 3).row")?;
        assert!(matches!(call.kind, ExprKind::Member(_, name) if name == "row"));
        Ok(())
    }

    #[test]
    fn mistakes_have_a_place() {
        for (text, at, part) in [
            ("n + ", 4, "the end"),
            ("f(1", 3, "`,`"),
            ("f(seed = 1, 2)", 12, "by position"),
            ("(1", 2, "`)`"),
            ("\"abc", 0, "closed"),
            ("99999999999999999999", 0, "64 bits"),
            ("code(x", 0, "closed"),
            ("a..b", 2, "name"),
        ] {
            match read(text) {
                Err(mistake) => {
                    assert_eq!(mistake.at, at, "{text}: {mistake:?}");
                    assert!(mistake.message.contains(part), "{text}: {mistake:?}");
                }
                Ok(found) => unreachable!("{text}: {found:?}"),
            }
        }
        assert!(read(&"(".repeat(10_000)).is_err());
        assert!(read(&"-".repeat(10_000)).is_err());
    }
}
