//! Declarations of variables, as far as the pass has to take them apart.

use std::ops::Range;

use gridfuse_codeactions::edit::lex::TokenKind;

use super::stream::Stream;

/// A declaration of one or more variables. Ranges and places are of tokens.
pub struct Declaration {
    /// All of it, without the `;`.
    pub tokens: Range<usize>,
    /// What stands before the first declarator.
    pub specifiers: Range<usize>,
    /// What is declared.
    pub declarators: Vec<Declarator>,
}

/// One declared variable.
pub struct Declarator {
    /// From its `*` to its last `[…]`.
    pub tokens: Range<usize>,
    /// Its name.
    pub name: usize,
    /// The `[…]` behind the name.
    pub extents: Vec<Range<usize>>,
    /// Its initialiser, from `=`, `{` or `(` on.
    pub initialiser: Option<Range<usize>>,
}

impl Declaration {
    /// Reads the declaration that begins at `start`; `None` if it declares a function, a class alone, or isn't understood.
    pub fn parse(stream: &Stream<'_>, start: usize) -> Option<Declaration> {
        let (mut name, mut class, mut named) = (None, false, false);
        let mut at = start;
        let (first, parenthesised) = loop {
            match stream.word(at) {
                "" if !(stream.in_macro() && name.is_some()) => return None,
                "operator" | "}" | ")" | "]" => return None,
                "template" => at = stream.angles(at + 1)?,
                _ if stream.attribute(at) => {
                    named |= stream.word(at) == "decltype";
                    at = stream.partner(at + 1)?;
                }
                "class" | "struct" | "union" | "enum" => (class, name) = (true, None),
                "{" if class && !named => {
                    named = true;
                    at = stream.partner(at)?;
                }
                "[" if stream.word(at + 1) == "[" && name.is_none() => at = stream.partner(at)?,
                "[" | "=" | ";" | "," | "{" => break (name?, None),
                "" if stream.in_macro() && name.is_some() => break (name?, None),
                "(" if matches!(stream.word(at + 1), "*" | "&") => {
                    let close = stream.partner(at)?;
                    let inner = (at + 1..close).find(|inner| stream.is_word(*inner) && !cv(stream.word(*inner)))?;
                    break (inner, Some(at..close + 1));
                }
                "(" if literal(stream, at + 1) => break (name?, None),
                "(" => return None,
                ":" if stream.scope_operator(at) => {
                    at += 1;
                    name = None;
                }
                "*" | "&" => {}
                _ if stream.is_word(at) => {
                    if stream.opens_template(at + 1) {
                        at = stream.angles(at + 1)?;
                        name = None;
                    } else {
                        name = Some(at);
                    }
                }
                // extern "C"
                _ if stream.kind(at) == Some(TokenKind::Text) && stream.before(at) == "extern" => {}
                _ => return None,
            }
            at += 1;
        };
        let mut begin = parenthesised.as_ref().map_or(first, |range| range.start);
        while begin > start && (matches!(stream.before(begin), "*" | "&") || cv(stream.before(begin))) {
            begin -= 1;
        }
        // `int const x`: the qualifiers before the first `*` belong to the type.
        while begin < first && cv(stream.word(begin)) {
            begin += 1;
        }
        if begin == start {
            return None;
        }
        let specifiers = start..begin;
        let mut declarators = Vec::new();
        let (mut name, mut parenthesised) = (first, parenthesised);
        loop {
            let mut at = parenthesised.as_ref().map_or(name + 1, |range| range.end);
            let mut extents = Vec::new();
            let function_pointer = parenthesised.is_some() && stream.word(at) == "(";
            if function_pointer {
                at = stream.partner(at)? + 1;
            }
            while stream.word(at) == "[" {
                let close = stream.partner(at)?;
                extents.push(at..close + 1);
                at = close + 1;
            }
            let tokens = begin..at;
            while stream.attribute(at) {
                at = stream.partner(at + 1)? + 1;
            }
            let initialiser = matches!(stream.word(at), "=" | "{" | "(").then_some(at);
            loop {
                match stream.word(at) {
                    "," | ";" => break,
                    // Who uses the macro writes the `;`.
                    "" if stream.in_macro() => break,
                    "(" | "[" | "{" => at = stream.partner(at)?,
                    "<" if stream.opens_template(at) => at = stream.angles(at).unwrap_or(at),
                    "" | ")" | "]" | "}" => return None,
                    _ if initialiser.is_none() => return None,
                    _ => {}
                }
                at += 1;
            }
            declarators.push(Declarator {
                tokens,
                name,
                extents,
                initialiser: initialiser.map(|from| from..at),
            });
            if matches!(stream.word(at), ";" | "") {
                return Some(Declaration {
                    tokens: start..at,
                    specifiers,
                    declarators,
                });
            }
            begin = at + 1;
            name = begin;
            while matches!(stream.word(name), "*" | "&") || cv(stream.word(name)) {
                name += 1;
            }
            parenthesised = None;
            if stream.word(name) == "(" {
                let close = stream.partner(name)?;
                parenthesised = Some(name..close + 1);
                name = (name + 1..close).find(|inner| stream.is_word(*inner) && !cv(stream.word(*inner)))?;
            }
            if !stream.is_word(name) {
                return None;
            }
        }
    }

    /// Whether a word is among the specifiers.
    pub fn has(&self, stream: &Stream<'_>, word: &str) -> bool {
        self.specifiers.clone().any(|at| stream.word(at) == word)
    }

    /// Whether it is a reference to a variable, and none itself.
    pub fn reference(&self, stream: &Stream<'_>, declarator: &Declarator) -> bool {
        (declarator.tokens.start..declarator.name).any(|at| stream.word(at) == "&")
    }

    /// Whether a type stands before the names, and not only words that say what kind of variable it is.
    pub fn typed(&self, stream: &Stream<'_>) -> bool {
        const NO_TYPE: [&str; 9] = [
            "static",
            "extern",
            "inline",
            "const",
            "constexpr",
            "volatile",
            "__forceinline__",
            "__noinline__",
            "thread_local",
        ];
        let mut words = self.specifiers.clone().map(|at| stream.word(at));
        words.any(|word| !NO_TYPE.contains(&word) && !word.starts_with("__"))
    }

    /// Whether the variable itself is constant: a constant pointer, or a constant that is no pointer.
    pub fn constant(&self, stream: &Stream<'_>, declarator: &Declarator) -> bool {
        if self.has(stream, "constexpr") {
            return true;
        }
        let own = declarator.tokens.start..declarator.name;
        match own.clone().rposition(|at| stream.word(at) == "*") {
            Some(star) => (own.start + star..own.end).any(|at| stream.word(at) == "const"),
            None => self.top_level_const(stream),
        }
    }

    /// `const` among the specifiers, and not in a template list.
    fn top_level_const(&self, stream: &Stream<'_>) -> bool {
        let mut at = self.specifiers.start;
        while at < self.specifiers.end {
            match stream.word(at) {
                "const" => return true,
                "<" => at = stream.angles(at).unwrap_or(at),
                "(" | "{" => at = stream.partner(at).unwrap_or(at),
                _ => {}
            }
            at += 1;
        }
        false
    }
}

fn cv(word: &str) -> bool {
    matches!(word, "const" | "volatile" | "__restrict__" | "__restrict" | "restrict")
}

fn literal(stream: &Stream<'_>, at: usize) -> bool {
    matches!(stream.kind(at), Some(TokenKind::Number | TokenKind::Text))
}
