//! What macros declare outside of functions: `DEFINE_WRAP(int, 3)` makes an overload, `SPECIAL_FILL(int)` a specialisation of a kernel,
//! `DEVICE_CONST(kBlock, 64)` a constant. No items are made of it; whoever asks for one of these names learns that there may be another.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::db::{Db, SourceFile};
use crate::base::parse::masked;
use crate::base::preprocess::expand::Expander;
use crate::base::preprocess::token::{Lexeme, TokenKind, glues, lex};
use crate::base::preprocess::{MacroItem, MacroState, Preprocessed, preprocessed};
use crate::base::skeleton::{Blank, skeleton};
use crate::base::words::words;
use crate::hir::items::Blanked;
use crate::hir::macros::{closing, one_use};
use crate::hir::word::{Word, WordSet};

/// Bytes that expansions may add to a file; of what comes behind, all words count.
const MAX_GROWTH: usize = 1 << 18;

/// What the macros of a file declare outside of its functions.
#[derive(Clone, Debug, Default, PartialEq, Eq, salsa::SalsaValue)]
pub struct MadeItems {
    /// The names.
    pub names: Blanked,
    /// Uses of macros that neither the file nor what it includes defines, as they are written: who includes it may.
    pub loose: Vec<String>,
}

/// What the macros of a file declare outside of its functions, as its text says now.
#[salsa::tracked]
pub(crate) fn made_items(db: &dyn Db, file: SourceFile) -> MadeItems {
    let known = preprocessed(db, file);
    let code = skeleton(&masked(db, file).text, Blank::All).text;
    let find = |name: &str| last_definition(known, name);
    made_by(&code, &find)
}

/// The macros that are defined somewhere in a file, with the words of their texts. It changes less often than the file, so that what is
/// visible in the files around it needn't be asked for at each edit.
#[salsa::tracked(returns(ref))]
fn defined_words(db: &dyn Db, file: SourceFile) -> BTreeMap<String, WordSet> {
    let mut found = BTreeMap::new();
    for (name, states) in &preprocessed(db, file).states {
        let mut own = WordSet::default();
        let mut is_defined = false;
        for (_, state) in states {
            if let MacroState::Defined(item) = state {
                is_defined = true;
                own.extend(words(&item.body).map(Word::new));
            }
        }
        if is_defined {
            found.insert(name.clone(), own);
        }
    }
    found
}

/// What uses of macros declare that a file doesn't define itself, when `files` do, of which the file is one.
pub(crate) fn made_by_includers(db: &dyn Db, files: &[SourceFile], loose: &[String]) -> Blanked {
    let mut found = Blanked::default();
    for used in loose {
        let name = words(used).next().unwrap_or("");
        let defines = |file: &&SourceFile| defined_words(db, **file).contains_key(name);
        let mut defining = files.iter().filter(defines).peekable();
        if defining.peek().is_none() {
            // A macro of a header that isn't found. Of what it is given, it may make anything.
            note_all(used, &mut found);
        }
        for file in defining {
            let known = preprocessed(db, *file);
            let find = |name: &str| last_definition(known, name);
            let made = made_by(used, &find).names;
            found.extend(&made);
        }
    }
    found
}

/// What else `names` may be that `files` declare: one of the files may define such a name as a macro and include another that declares it
/// (`#define FN fold`, `#include "make.inl"`).
pub(crate) fn renamed_by_macros<'n>(
    db: &dyn Db,
    files: &[SourceFile],
    names: impl Iterator<Item = &'n str>,
) -> WordSet {
    let mut found = WordSet::default();
    let defined: Vec<&BTreeMap<String, WordSet>> = files.iter().map(|file| defined_words(db, *file)).collect();
    for name in names {
        for of_macro in defined.iter().filter_map(|defined| defined.get(name)) {
            found.extend(of_macro);
        }
    }
    found
}

/// The last definition of a macro in a file, whatever became of it behind that.
fn last_definition<'m>(known: &'m Preprocessed, name: &str) -> Option<&'m MacroItem> {
    let states = known.states.get(name)?;
    states.iter().rev().find_map(|(_, state)| match state {
        MacroState::Defined(item) => Some(item),
        _ => None,
    })
}

/// What the macros in a text without bodies of functions declare.
fn made_by<'m>(code: &str, find: &'m dyn Fn(&str) -> Option<&'m MacroItem>) -> MadeItems {
    let mut found = MadeItems::default();
    let lexemes = lex(code, true);
    let text = |at: usize| lexemes.get(at).and_then(|l| code.get(l.start..l.end)).unwrap_or("");
    // The text with macros expanded, and what of it comes out of them.
    let mut out = String::new();
    let mut made: Vec<(usize, usize)> = Vec::new();
    let mut classes: BTreeSet<&str> = BTreeSet::new();
    let mut scan = Scan::default();
    let mut begins = true;
    let mut at = 0;
    while let Some(lexeme) = lexemes.get(at) {
        let word = text(at);
        let used = lexeme.kind == TokenKind::Word && scan.declares() && find(word).is_some();
        if used && out.len() < code.len() + MAX_GROWTH {
            match one_use(&Expander::new(find), find, code, &lexemes, at) {
                Some(Some((tokens, next))) => {
                    let start = out.len();
                    for token in &tokens {
                        if token.space || glues(&out, &token.text) {
                            out.push(' ');
                        }
                        out.push_str(&token.text);
                    }
                    made.push((start, out.len()));
                    // What comes out is scanned as a whole, below; here, a use is a declaration of its own or a part of one.
                    begins |= text(next - 1) == ")";
                    at = next;
                    continue;
                }
                Some(None) => {}
                None => {
                    let end = closing(code, &lexemes, at + 1).map_or(at + 1, |close| close + 1);
                    let range = lexeme.start..lexemes.get(end - 1).map_or(lexeme.end, |last| last.end);
                    note_all(code.get(range).unwrap_or(""), &mut found.names);
                    note_all(find(word).map_or("", |item| &item.body), &mut found.names);
                }
            }
        } else if used {
            note_all(find(word).map_or("", |item| &item.body), &mut found.names);
        }
        if begins
            && lexeme.kind == TokenKind::Word
            && find(word).is_none()
            && !classes.contains(word)
            && let Some(end) = loose_use(code, &lexemes, at)
        {
            let written = code.get(lexeme.start..lexemes.get(end).map_or(lexeme.end, |last| last.end));
            found.loose.extend(written.map(str::to_owned));
            at = end + 1;
            // `API(int) bar(int x);` is a declaration of `bar`.
            let behind = lexemes.get(end).zip(lexemes.get(at));
            begins =
                behind.is_some_and(|(last, next)| code.get(last.end..next.start).is_some_and(|gap| gap.contains('\n')));
            continue;
        }
        if matches!(text(at.wrapping_sub(1)), "struct" | "class" | "union") {
            classes.insert(word);
        }
        if lexeme.space || glues(&out, word) {
            out.push(' ');
        }
        if lexeme.kind == TokenKind::Directive {
            // It is no part of a declaration, and begins none.
            begins = true;
        } else {
            scan.step(code, &lexemes, at);
            out.push_str(word);
            begins = matches!(word, ";" | "{" | "}");
        }
        at += 1;
    }
    if !made.is_empty() {
        declared(&out, &made, &mut found.names);
    }
    found
}

/// Where a use of a macro of which nothing is known ends, which is no part of a declaration: what is declared by `NAME(…)` alone.
fn loose_use(code: &str, lexemes: &[Lexeme], at: usize) -> Option<usize> {
    let text = |at: usize| lexemes.get(at).and_then(|l| code.get(l.start..l.end)).unwrap_or("");
    let other = [
        "static_assert",
        "_Static_assert",
        "asm",
        "__asm__",
        "decltype",
        "alignas",
        "explicit",
        "noexcept",
        "requires",
        "__pragma",
        "main",
    ];
    let word = text(at);
    if text(at + 1) != "(" || other.contains(&word) || crate::base::mask::is_masked_word(word) {
        return None;
    }
    let close = closing(code, lexemes, at + 1)?;
    // A constructor of a class, a function without a type in front of it.
    let goes_on = matches!(
        text(close + 1),
        "{" | ":" | "->" | "=" | "const" | "noexcept" | "override" | "try" | "::"
    );
    (!goes_on).then_some(close)
}

/// Notes all words of a text.
fn note_all(text: &str, found: &mut Blanked) {
    for word in words(text) {
        found.words.insert(Word::new(word));
        found.classes.insert(word.to_owned());
    }
}

/// Notes the names that a text declares in the ranges of it that macros made, which are in order.
fn declared(text: &str, made: &[(usize, usize)], found: &mut Blanked) {
    let text = &*skeleton(text, Blank::All).text;
    let lexemes = lex(text, false);
    let word = |at: usize| lexemes.get(at).and_then(|l| text.get(l.start..l.end)).unwrap_or("");
    let is_made = |at: usize| {
        let offset = made.partition_point(|(_, end)| *end <= at);
        made.get(offset).is_some_and(|(start, _)| *start <= at)
    };
    let mut scan = Scan::default();
    for (at, lexeme) in lexemes.iter().enumerate() {
        // `struct Scope GUARDED(int) { }`: a base class.
        let class = matches!(word(at.wrapping_sub(1)), "struct" | "class" | "union");
        if class && !is_made(lexeme.start) && lexemes.get(at + 1).is_some_and(|next| is_made(next.start)) {
            found.words.insert(Word::new(word(at)));
            found.classes.insert(word(at).to_owned());
        }
        let declares = scan.declares() || scan.is_name_in_parentheses(text, &lexemes, at);
        if declares && lexeme.kind == TokenKind::Word && is_made(lexeme.start) {
            let name = word(at);
            let after = word(at + 1);
            if class || word(at.wrapping_sub(1)) == "using" {
                found.classes.insert(name.to_owned());
            } else if name == "typedef" {
                let end = (at..).find(|at| matches!(word(*at), ";" | "")).unwrap_or(at);
                found.classes.insert(word(end.saturating_sub(1)).to_owned());
            }
            // What stands in front of a name is a type, a specifier, a scope.
            let next_is_word = lexemes.get(at + 1).is_some_and(|next| next.kind == TokenKind::Word);
            let of_type =
                next_is_word && !matches!(after, "final" | "operator") || matches!(after, "*" | "&" | "&&" | "::");
            let arguments = after == "<" && !ends_before_parenthesis(text, &lexemes, at + 1);
            if !of_type && !arguments || name == "operator" {
                found.words.insert(Word::new(name));
            }
        }
        scan.step(text, &lexemes, at);
    }
}

/// Whether the template arguments that open at `open` belong to the name of a function: `(` comes behind them.
fn ends_before_parenthesis(text: &str, lexemes: &[Lexeme], open: usize) -> bool {
    let word = |at: usize| lexemes.get(at).and_then(|l| text.get(l.start..l.end)).unwrap_or("");
    let close = closing_angle(text, lexemes, open);
    close.is_none_or(|close| matches!(word(close + 1), "(" | "" | ";" | "=" | "{"))
}

/// The lexeme that closes the template arguments or parameters at `open`.
fn closing_angle(text: &str, lexemes: &[Lexeme], open: usize) -> Option<usize> {
    let mut depth = 0i32;
    for (at, lexeme) in lexemes.iter().enumerate().skip(open) {
        match text.get(lexeme.start..lexeme.end).unwrap_or("") {
            "<" => depth += 1,
            ">" => depth -= 1,
            ">>" => depth -= 2,
            ">>>" => depth -= 3,
            ";" | "{" | "}" => return None,
            _ => {}
        }
        if depth <= 0 {
            return Some(at);
        }
    }
    None
}

/// Where in declarations a place is.
#[derive(Default)]
struct Scan {
    /// Parentheses and brackets that are open.
    depth: u32,
    /// Braces that are open.
    braces: u32,
    /// The braces that were open where an initialiser began.
    value: Option<u32>,
    /// A list of bases stands here, or the members that a constructor initialises.
    bases: bool,
    /// Up to this lexeme a template's parameters stand, or an explicit instantiation.
    skipped: usize,
    at: usize,
}

impl Scan {
    /// Whether a name may be declared here.
    fn declares(&self) -> bool {
        self.depth == 0 && self.value.is_none() && !self.bases && self.at >= self.skipped
    }

    /// `(fold)(int& i)`, `(*fold)(int)`
    fn is_name_in_parentheses(&self, text: &str, lexemes: &[Lexeme], at: usize) -> bool {
        let word = |at: usize| lexemes.get(at).and_then(|l| text.get(l.start..l.end)).unwrap_or("");
        self.depth == 1 && self.value.is_none() && word(at + 1) == ")" && matches!(word(at + 2), "(" | "[")
    }

    /// Goes on behind lexeme `at`.
    fn step(&mut self, text: &str, lexemes: &[Lexeme], at: usize) {
        let word = |at: usize| lexemes.get(at).and_then(|l| text.get(l.start..l.end)).unwrap_or("");
        self.at = at + 1;
        if at < self.skipped {
            return;
        }
        self.bases &= !matches!(word(at), ";" | "{" | "}");
        match word(at) {
            ":" if self.depth == 0 => {
                self.bases = !matches!(word(at.wrapping_sub(1)), "public" | "private" | "protected");
            }
            "(" | "[" => self.depth += 1,
            ")" | "]" => self.depth = self.depth.saturating_sub(1),
            "{" => self.braces += 1,
            "}" => {
                self.braces = self.braces.saturating_sub(1);
                self.depth = 0;
                if self.value.is_some_and(|braces| self.braces < braces) {
                    self.value = None;
                }
            }
            ";" | "," if self.depth == 0 && self.value.is_some_and(|braces| self.braces == braces) => self.value = None,
            "=" if self.depth == 0 && word(at.wrapping_sub(1)) != "operator" => {
                self.value.get_or_insert(self.braces);
            }
            "template" if self.depth == 0 && word(at + 1) == "<" => {
                self.skipped = closing_angle(text, lexemes, at + 1).map_or(at + 2, |close| close + 1);
            }
            // An explicit instantiation declares nothing that isn't declared.
            "template" if self.depth == 0 && self.value.is_none() => {
                let end = (at..lexemes.len()).find(|at| matches!(word(*at), ";" | "{" | "}"));
                self.skipped = end.unwrap_or(at);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::hir::resolve::is_made_by_macros;
    use crate::host::Host;

    /// Those of `names` of which macros may make another one in `a.cu`.
    fn made<'n>(files: &[(&str, &str)], names: &[&'n str]) -> Vec<&'n str> {
        let mut host = Host::new();
        for (name, text) in files {
            host.set_file(&Path::new("/w").join(name), (*text).to_owned());
        }
        let Some(file) = host.file(Path::new("/w/a.cu")) else {
            return Vec::new();
        };
        let db = host.db();
        let all = names.iter().copied();
        all.filter(|name| is_made_by_macros(db, file, name)).collect()
    }

    #[test]
    fn what_macros_declare() {
        for (text, expected) in [
            ("#define F(T) void fold(T& i) { help(i); }\nF(int)\nF(long);", "fold"),
            (
                "#define F(n) __device__ int n(int i) { return help(i); }\nF(fold)",
                "fold",
            ),
            (
                "#define EACH(X) X(int) X(long)\n#define F(T) void fold(T& i) { }\nEACH(F)",
                "fold",
            ),
            (
                "#define K(T) template <> __global__ void fill<T>(T* a) { help(a); }\nK(int)",
                "fill",
            ),
            (
                "#define C(n, v) namespace device { constexpr int n = v + help; }\nC(kBlock, 64)",
                "kBlock",
            ),
            ("#define C(n, v) constexpr int n = v\nC(kBlock, help);", "kBlock"),
            (
                "#define O(n) struct n##_t { void operator()(int& i) { } }; constexpr n##_t n{}\nO(fold);",
                "fold",
            ),
            ("#define FN fold\nvoid FN(int& i) { help(i); }", "fold"),
            ("#define D(n) int (*n)(int) = help\nD(fold);", "fold"),
            ("#define D(n) void (n)(int& i) { }\nD(fold)", "fold"),
            (
                "#define M(n) static void n(int& i) { help(i); }\nstruct S { M(fold) int k; };",
                "fold",
            ),
            ("enum E {\n#define A(n) n = help,\nA(kBlock)\n};", "kBlock"),
            (
                "#define O(C) C& operator>>(C& help, int& i) { return help; }\nstruct View { };\nO(View);",
                "operator",
            ),
            ("UNSEEN(fold, 3)\nvoid f() {}", "fold"),
        ] {
            let names = ["fold", "fill", "kBlock", "help", "i", "a", expected];
            let found = made(&[("a.cu", text)], &names);
            let alone = found.iter().all(|name| *name == expected);
            assert!(!found.is_empty() && alone, "{text}: {found:?}");
        }
    }

    #[test]
    fn what_they_do_not() {
        for text in [
            // An explicit instantiation.
            "template <class T> __global__ void fill(T* a) { }\n#define I(T) template __global__ void fill<T>(T*)\nI(int);\nI(float);",
            "#define SIZE (kBlock * 2)\n__device__ int table[SIZE];\nconstexpr int kOther = SIZE;",
            "API(int) fold(int i);\nAPI(int) fold(int i) { return i; }",
            "#define HD __device__ __host__\nHD int fold(int i) { return i; }",
            "#define REAL Scalar\nREAL fold(REAL i) { return i; }\nREAL* a;",
            "#define CALL fold(3)\nvoid f() { CALL; fold(1); }\nstatic int k = CALL;",
            "struct fold { fold(int i); ~fold(); };\nstatic_assert(kBlock == 3, \"\");",
            "#define F(T) void other(T i) { fold(kBlock); }\nF(int)",
        ] {
            let names = ["fold", "fill", "kBlock", "kOther", "table", "Scalar", "i", "a"];
            assert_eq!(made(&[("a.cu", text)], &names), [""; 0], "{text}");
        }
    }

    #[test]
    fn what_other_files_have_a_part_in() {
        let names = ["fold", "kBlock", "help"];
        let list = ("types.def", "ENTRY(int, 3)\nENTRY(long, 7)\n");
        let by_list = "#define ENTRY(T, M) void fold(T& i) { i &= help(M); }\n#include \"types.def\"\n#undef ENTRY\n";
        assert_eq!(made(&[("a.cu", by_list), list], &names), ["fold"]);
        let through = ("a.cu", "#include \"b.cuh\"\nvoid f() { fold(1); }\n");
        assert_eq!(made(&[through, ("b.cuh", by_list), list], &names), ["fold"]);
        let renamed = ("a.cu", "#define FN fold\n#include \"make.inl\"\n#undef FN\n");
        assert_eq!(
            made(&[renamed, ("make.inl", "void FN(int& i) { help(i); }\n")], &names),
            ["fold"]
        );
        let inner = (
            "a.cu",
            "enum Sizes {\n#include \"sizes.inl\"\n};\nvoid f() { help(); }\n",
        );
        assert_eq!(made(&[inner, ("sizes.inl", "kBlock = 64,\n")], &names), ["kBlock"]);
    }
}
