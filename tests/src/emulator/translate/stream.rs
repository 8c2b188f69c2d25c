//! The tokens of a file as the pass sees them: code and directives apart, brackets matched, and for every token whether it
//! stands in a namespace, a class or a function.

use std::ops::Range;

use gridfuse_codeactions::edit::lex::{Token, TokenKind, tokens};

/// What kind of braces a token stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// In none, or in those of a namespace.
    Namespace,
    /// In those of a class.
    Class,
    /// In those of a function, an initialiser, an enumeration.
    Body,
}

/// A piece of a file whose tokens belong together.
pub struct Stream<'t> {
    text: &'t str,
    tokens: Vec<Token>,
    partner: Vec<Option<usize>>,
    scopes: Vec<Scope>,
    in_macro: bool,
    /// The macro whose body it is, and its parameters.
    macro_name: &'t str,
    parameters: Vec<&'t str>,
}

/// A preprocessor directive.
pub struct Directive<'t> {
    text: &'t str,
    tokens: Vec<Token>,
    /// How many tokens of code stand before it.
    before: usize,
}

/// A file's tokens.
pub struct File<'t> {
    /// Everything but the directives.
    pub code: Stream<'t>,
    /// The directives.
    pub directives: Vec<Directive<'t>>,
}

/// Words that are followed by parentheses and say nothing about what a declaration declares.
const ATTRIBUTES: [&str; 9] = [
    "alignas",
    "__align__",
    "__attribute__",
    "__declspec",
    "__launch_bounds__",
    "__cluster_dims__",
    "__maxnreg__",
    "__block_size__",
    "decltype",
];

impl<'t> File<'t> {
    /// Reads a file.
    pub fn new(text: &'t str) -> File<'t> {
        let all = tokens(text);
        let mut code = Vec::new();
        let mut directives: Vec<Directive<'t>> = Vec::new();
        let mut open = false;
        let mut previous_end = 0;
        let mut first_of_line = true;
        for token in all {
            first_of_line |= has_line_end(&text[previous_end..token.start]);
            previous_end = token.end;
            if token.kind == TokenKind::Comment {
                open &= !first_of_line;
                continue;
            }
            if first_of_line {
                open = token.text(text) == "#";
                if open {
                    directives.push(Directive {
                        text,
                        tokens: Vec::new(),
                        before: code.len(),
                    });
                }
            }
            first_of_line = false;
            match directives.last_mut() {
                Some(directive) if open => directive.tokens.push(token),
                _ => code.push(token),
            }
        }
        let code = Stream::new(text, code, &directives);
        File { code, directives }
    }
}

/// Whether a gap between tokens ends a logical line.
fn has_line_end(gap: &str) -> bool {
    let bytes = gap.as_bytes();
    bytes.iter().enumerate().any(|(at, byte)| {
        let before = match at.checked_sub(1).map(|p| bytes[p]) {
            Some(b'\r') => at.checked_sub(2).map(|p| bytes[p]),
            before => before,
        };
        *byte == b'\n' && before != Some(b'\\')
    })
}

impl<'t> Directive<'t> {
    /// `include`, `define`, …
    pub fn name(&self) -> &'t str {
        self.tokens.get(1).map_or("", |token| token.text(self.text))
    }

    /// The bytes from the `#` to the end of its last token.
    pub fn range(&self) -> Range<usize> {
        let end = self.tokens.last().map_or(0, |token| token.end);
        self.tokens.first().map_or(0, |token| token.start)..end
    }

    /// The text behind the directive's name.
    pub fn rest(&self) -> &'t str {
        let start = self.tokens.get(1).map_or(0, |token| token.end);
        self.text.get(start..self.range().end).unwrap_or("")
    }

    /// The name that a `#define` defines.
    pub fn macro_name(&self) -> Option<&'t str> {
        let name = self.tokens.get(2).filter(|_| self.name() == "define")?;
        Some(name.text(self.text))
    }

    /// The body of a `#define`.
    pub fn body(&self) -> Option<Stream<'t>> {
        let name = self.tokens.get(2).filter(|_| self.name() == "define")?;
        let mut first = 3;
        let mut parameters = Vec::new();
        if let Some(paren) = self.tokens.get(3)
            && paren.start == name.end
            && paren.text(self.text) == "("
        {
            first = 1 + self.tokens.iter().position(|token| token.text(self.text) == ")")?;
            parameters.extend(
                self.tokens
                    .get(4..first)
                    .unwrap_or_default()
                    .iter()
                    .map(|token| token.text(self.text)),
            );
        }
        let mut stream = Stream::new(self.text, self.tokens.get(first..)?.to_vec(), &[]);
        stream.in_macro = true;
        stream.macro_name = name.text(self.text);
        stream.parameters = parameters;
        stream.scopes.fill(Scope::Body);
        Some(stream)
    }
}

impl<'t> Stream<'t> {
    fn new(text: &'t str, tokens: Vec<Token>, directives: &[Directive<'t>]) -> Stream<'t> {
        let mut stream = Stream {
            text,
            partner: vec![None; tokens.len()],
            scopes: Vec::with_capacity(tokens.len()),
            tokens,
            in_macro: false,
            macro_name: "",
            parameters: Vec::new(),
        };
        stream.match_brackets(directives);
        stream
    }

    /// Pairs brackets and finds scopes. Every branch of an `#if` begins with the brackets that were open before it, and what
    /// is open at the end of the last one stays open.
    fn match_brackets(&mut self, directives: &[Directive<'t>]) {
        let mut open: Vec<(usize, Scope)> = Vec::new();
        let mut before_if: Vec<Vec<(usize, Scope)>> = Vec::new();
        let mut directives = directives.iter().peekable();
        for at in 0..self.tokens.len() {
            while let Some(directive) = directives.next_if(|directive| directive.before <= at) {
                match directive.name() {
                    "if" | "ifdef" | "ifndef" => before_if.push(open.clone()),
                    "else" | "elif" | "elifdef" | "elifndef" => {
                        if let Some(before) = before_if.last() {
                            open.clone_from(before);
                        }
                    }
                    "endif" => {
                        before_if.pop();
                    }
                    _ => {}
                }
            }
            let scope = open.last().map_or(Scope::Namespace, |(_, scope)| *scope);
            match self.word(at) {
                "{" => {
                    self.scopes.push(scope);
                    let inner = self.scope_of_braces(at, scope);
                    open.push((at, inner));
                }
                "(" | "[" => {
                    self.scopes.push(scope);
                    open.push((at, scope));
                }
                closing @ (")" | "]" | "}") => {
                    let opening = match closing {
                        ")" => "(",
                        "]" => "[",
                        _ => "{",
                    };
                    // A bracket without partner is somebody else's problem.
                    if let Some(depth) = open.iter().rposition(|(at, _)| self.word(*at) == opening) {
                        let partner = open[depth].0;
                        open.truncate(depth);
                        self.partner[at] = Some(partner);
                        self.partner[partner].get_or_insert(at);
                    }
                    self.scopes
                        .push(open.last().map_or(Scope::Namespace, |(_, scope)| *scope));
                }
                _ => self.scopes.push(scope),
            }
        }
    }

    /// Where the declaration begins whose body's `{` is at `brace`.
    pub fn head_start(&self, brace: usize) -> usize {
        let mut start = brace;
        while start > 0 && !matches!(self.word(start - 1), ";" | "{" | "}") {
            start = match self.word(start - 1) {
                ")" | "]" => self.partner[start - 1].unwrap_or(start - 1),
                _ => start - 1,
            };
        }
        start
    }

    fn scope_of_braces(&self, brace: usize, outer: Scope) -> Scope {
        let mut at = self.head_start(brace);
        let mut class = false;
        while at < brace {
            match self.word(at) {
                "namespace" => return Scope::Namespace,
                "extern" if self.kind(at + 1) == Some(TokenKind::Text) && at + 2 == brace => return outer,
                "=" | "enum" => return Scope::Body,
                "template" if self.word(at + 1) == "<" => {
                    at = self.angles(at + 1).unwrap_or(at + 1);
                }
                "class" | "struct" | "union" => class = true,
                word if ATTRIBUTES.contains(&word) && self.word(at + 1) == "(" => {
                    at = self.partner(at + 1).unwrap_or(at + 1);
                }
                "(" => return Scope::Body,
                _ => {}
            }
            at += 1;
        }
        if class { Scope::Class } else { Scope::Body }
    }

    /// The file's text.
    pub fn text(&self) -> &'t str {
        self.text
    }

    /// Whether this is a macro's body.
    pub fn in_macro(&self) -> bool {
        self.in_macro
    }

    /// The macro whose body it is; empty if it is none.
    pub fn macro_name(&self) -> &'t str {
        self.macro_name
    }

    /// Whether a word is a parameter of the macro whose body it is.
    pub fn is_parameter(&self, word: &str) -> bool {
        self.parameters.contains(&word)
    }

    /// Number of tokens.
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// The text of a token; empty behind the end.
    pub fn word(&self, at: usize) -> &'t str {
        self.tokens.get(at).map_or("", |token| token.text(self.text))
    }

    /// The text of the token before `at`; empty at the beginning.
    pub fn before(&self, at: usize) -> &'t str {
        at.checked_sub(1).map_or("", |at| self.word(at))
    }

    /// What a token is.
    pub fn kind(&self, at: usize) -> Option<TokenKind> {
        self.tokens.get(at).map(|token| token.kind)
    }

    /// Whether a token is an identifier or keyword.
    pub fn is_word(&self, at: usize) -> bool {
        self.kind(at) == Some(TokenKind::Word)
    }

    /// The bracket that belongs to a bracket.
    pub fn partner(&self, at: usize) -> Option<usize> {
        self.partner.get(at).copied().flatten()
    }

    /// Where a token stands.
    pub fn scope(&self, at: usize) -> Scope {
        self.scopes.get(at).copied().unwrap_or(Scope::Namespace)
    }

    /// First byte of a token; the text's end behind the last one.
    pub fn start(&self, at: usize) -> usize {
        self.tokens.get(at).map_or(self.text.len(), |token| token.start)
    }

    /// One past the last byte of a token.
    pub fn end(&self, at: usize) -> usize {
        self.tokens.get(at).map_or(self.text.len(), |token| token.end)
    }

    /// The bytes of a range of tokens.
    pub fn bytes(&self, range: &Range<usize>) -> Range<usize> {
        match range.end.checked_sub(1).filter(|last| *last >= range.start) {
            Some(last) => self.start(range.start)..self.end(last),
            None => self.start(range.start)..self.start(range.start),
        }
    }

    /// Whether two tokens touch.
    pub fn adjacent(&self, first: usize) -> bool {
        first + 1 < self.len() && self.end(first) == self.start(first + 1)
    }

    /// Whether `::` stands at `at`.
    pub fn scope_operator(&self, at: usize) -> bool {
        self.word(at) == ":" && self.word(at + 1) == ":" && self.adjacent(at)
    }

    /// Whether a `::` ends just before `at`.
    pub fn after_scope_operator(&self, at: usize) -> bool {
        at >= 2 && self.scope_operator(at - 2)
    }

    /// Whether a word is followed by parentheses and says nothing about what is declared.
    pub fn attribute(&self, at: usize) -> bool {
        ATTRIBUTES.contains(&self.word(at)) && self.word(at + 1) == "("
    }

    /// The text of tokens with one blank where there was something between them, leaving some out.
    pub fn join(&self, range: Range<usize>, keep: impl Fn(usize) -> bool) -> String {
        let mut joined = String::new();
        let mut end = None;
        for at in range.filter(|at| keep(*at)) {
            if end.is_some_and(|end| end != self.start(at)) {
                joined.push(' ');
            }
            joined.push_str(self.word(at));
            end = Some(self.end(at));
        }
        joined
    }

    /// The `>` that closes the template list whose `<` is at `at`, as if no `<` or `>` in it were an operator.
    pub fn angles(&self, at: usize) -> Option<usize> {
        let mut depth = 0;
        let mut next = at;
        while next < self.len() {
            match self.word(next) {
                "<" => depth += 1,
                ">" if self.before(next) == "-" && self.adjacent(next - 1) => {}
                ">" => {
                    depth -= 1;
                    if depth == 0 {
                        return Some(next);
                    }
                }
                "(" | "[" | "{" => next = self.partner(next).filter(|end| *end > next)?,
                ")" | "]" | "}" | ";" => return None,
                _ => {}
            }
            next += 1;
        }
        None
    }

    /// The `<` that opens the template list whose `>` is at `at`.
    pub fn angles_before(&self, at: usize) -> Option<usize> {
        let mut depth = 0;
        let mut next = at;
        loop {
            match self.word(next) {
                ">" if self.before(next) == "-" && self.adjacent(next - 1) => {}
                ">" => depth += 1,
                "<" => {
                    depth -= 1;
                    if depth == 0 {
                        return Some(next);
                    }
                }
                ")" | "]" | "}" => next = self.partner(next).filter(|start| *start < next)?,
                "(" | "[" | "{" | ";" => return None,
                _ => {}
            }
            next = next.checked_sub(1)?;
        }
    }

    /// Splits what stands between brackets at its commas. Commas in template lists don't count where the list is
    /// recognised.
    pub fn split(&self, range: Range<usize>) -> Vec<Range<usize>> {
        let mut parts = Vec::new();
        if range.is_empty() {
            return parts;
        }
        let mut start = range.start;
        let mut at = range.start;
        while at < range.end {
            match self.word(at) {
                "(" | "[" | "{" => {
                    at = self
                        .partner(at)
                        .filter(|end| *end > at && *end < range.end)
                        .unwrap_or(at)
                }
                "<" if self.opens_template(at) => {
                    at = self.angles(at).filter(|end| *end < range.end).unwrap_or(at);
                }
                "," => {
                    parts.push(start..at);
                    start = at + 1;
                }
                _ => {}
            }
            at += 1;
        }
        parts.push(start..range.end);
        parts
    }

    /// Whether a `<` may open a template list: it follows a name and isn't part of `<<` or `<=`.
    pub fn opens_template(&self, at: usize) -> bool {
        self.word(at) == "<"
            && at > 0
            && self.is_word(at - 1)
            && !(matches!(self.word(at + 1), "<" | "=") && self.adjacent(at))
    }

    /// The first token of the declaration that the specifier at `at` belongs to, and the `template` list that precedes it.
    pub fn declaration_start(&self, at: usize) -> (usize, Option<Range<usize>>) {
        let mut start = at;
        while let Some(last) = start.checked_sub(1) {
            let previous = match self.word(last) {
                ")" | "]" => {
                    let Some(open) = self.partner(last).filter(|open| *open > 0) else {
                        break;
                    };
                    if self.word(last) == "]" && self.word(open + 1) == "[" {
                        open
                    } else if self.word(last) == ")" && self.attribute(open - 1) {
                        open - 1
                    } else {
                        break;
                    }
                }
                ">" => match self.angles_before(last) {
                    Some(open) if self.before(open) == "template" => return (start, Some(open..last + 1)),
                    Some(open) if open > 0 && self.is_word(open - 1) => open - 1,
                    _ => break,
                },
                ":" if self.after_scope_operator(start) => last - 1,
                "else" | "do" | "return" | "case" | "default" => break,
                _ if self.is_word(last) => last,
                _ if self.kind(last) == Some(TokenKind::Text) && self.before(last) == "extern" => last - 1,
                _ => break,
            };
            start = previous;
        }
        (start, None)
    }

    /// The line of a token, from 1.
    pub fn line(&self, at: usize) -> usize {
        line_of(self.text, self.start(at))
    }
}

/// The line of a byte, from 1.
pub fn line_of(text: &str, offset: usize) -> usize {
    1 + text
        .as_bytes()
        .iter()
        .take(offset)
        .filter(|byte| **byte == b'\n')
        .count()
}
