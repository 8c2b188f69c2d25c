//! Whether the body of a kernel can move into a function in which other values stand for the built-in variables.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use gridfuse_analysis::base::db::{Db, SourceFile};
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::TextRange;
use gridfuse_analysis::facts::effects::{Assembly, BUILTINS, Effects, Found};
use gridfuse_analysis::hir::included::included_files;
use gridfuse_analysis::hir::items::{FunctionItem, items};
use gridfuse_analysis::hir::mentions::gaps;
use gridfuse_analysis::hir::parameters;

use crate::api::refusal::Refusals;
use crate::edit::lex::{self, Token, TokenKind};
use crate::edit::names::{is_macro, words_with_macros};
use crate::edit::style;
use crate::facts::child::Child;
use crate::facts::copied;
use crate::facts::cuda_types;
use crate::facts::own_name;
use crate::facts::site::function_around;
use crate::facts::surroundings::waits_for_children;
use crate::runtime::is_header;

/// Which built-in variables become parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `blockIdx`, `gridDim`, `blockDim`: the body runs as a block.
    Block,
    /// These and `threadIdx`: the body runs as a single thread.
    Thread,
    /// None: the body runs as the thread that it is.
    Own,
}

/// A block of the child is a block: which of its threads a thread is remains as it was.
pub const KEPT_THREADS: &[&str] = &["threadIdx"];

/// The same, and it has as many threads.
pub const KEPT_BLOCK: &[&str] = &["threadIdx", "blockDim"];

/// Refuses a child whose body can't run under other built-in variables. `effects` are those of the child's worker. `kept`: the built-in
/// variables of which the body's parameters are no others than the GPU's, so that functions which it calls may read them themselves.
pub fn refuse_to_outline(child: &Child<'_>, form: Form, kept: &[&str], effects: &Effects, refusals: &mut Refusals) {
    if names_itself(child) {
        refusals.add(is_recursive(&child.name), Some(child.place()));
    }
    refuse_to_outline_collecting(child, form, kept, effects, refusals);
}

/// Whether the body of a child has its name.
pub fn names_itself(child: &Child<'_>) -> bool {
    let body = child.item.body_span(child.db);
    lex::identifiers(child.source(body)).any(|word| word == child.name)
}

/// That a function launches or calls itself, or one that launches it again: all rewrites have the same words for it.
pub fn is_recursive(name: &str) -> String {
    format!("`{name}` is recursive")
}

/// The same for a child that may launch itself, as all its launches become something else.
pub fn refuse_to_outline_collecting(
    child: &Child<'_>,
    form: Form,
    kept: &[&str],
    effects: &Effects,
    refusals: &mut Refusals,
) {
    let name = &child.name;
    for not_copied in copied::copies(child, form, kept, effects).err().into_iter().flatten() {
        let copied::NotCopied {
            callee, reads, place, ..
        } = &not_copied;
        let reads: Vec<String> = reads.iter().map(|b| format!("`{b}`")).collect();
        let how = if not_copied.itself {
            "itself"
        } else {
            "by what it calls"
        };
        let why = not_copied
            .why
            .as_ref()
            .map_or(String::new(), |why| format!(", and {why}"));
        let moved = if moved_by_a_rewrite(child, *place) {
            "; apply `threshold` first"
        } else {
            ""
        };
        refusals.add(
            format!(
                "`{name}` calls `{callee}`, which reads {} {how}{why}{moved}",
                reads.join(", ")
            ),
            Some(*place),
        );
    }
    // A body that runs as the thread that it is may read what it likes.
    let reads_others = form != Form::Own;
    for unknown in effects.unknown.iter().filter(|_| reads_others) {
        refusals.add(
            format!("`{name}` uses {}, so it may read `blockIdx`", unknown.what),
            Some(unknown.place),
        );
    }
    let plain_alone = |a: &&Assembly| form == Form::Thread || form == Form::Block && !is_plain_asm(a);
    for asm in effects.asm.iter().filter(plain_alone) {
        refusals.add(format!("`{name}` holds inline assembly"), Some(asm.place));
    }
    // What moves it says that it takes for granted that no call fails.
    let tells = |name: &&Found| !own_name::is_told_of_errors_alone(child, name);
    for own_name in effects.own_name.iter().filter(tells) {
        refusals.add(format!("`{name}` uses {}", own_name.what), Some(own_name.place));
    }
    for sync in &effects.syncs {
        let who = format!("`{name}`");
        refusals.add(waits_for_children(&who, &sync.what), Some(sync.place));
    }
    if let Some(place) = implicit_read(child).filter(|_| reads_others) {
        refusals.add(
            format!("`{name}` may run an operator, a constructor or an initialiser that reads the built-in variables"),
            Some(place),
        );
    }
    if child.outlined.is_none() {
        cuda_types::refuse_others(child.db, child.file, child.place(), refusals);
        refuse_shut_out(child, form, refusals);
        refuse_friend(child, refusals);
    }
    for builtin in ["threadIdx", "blockIdx", "gridDim", "blockDim"] {
        if child.body.bindings.iter().any(|b| b.name == builtin) {
            refusals.add(
                format!("`{name}` has a variable named `{builtin}`"),
                Some(child.place()),
            );
        }
    }
    if let Some(outlined) = &child.outlined
        && form == Form::Thread
        && !outlined.takes_thread
    {
        refusals.add(
            format!(
                "the body of `{name}` has been moved to `{}`, which doesn't take `threadIdx`; apply `threshold` first",
                outlined.name
            ),
            Some(function_place(child, outlined.function)),
        );
    }
}

/// Refuses a child whose body can't move because the functions that it calls would have to be copied.
pub fn refuse_to_copy(child: &Child<'_>, kept: &[&str], effects: &Effects, refusals: &mut Refusals) {
    for (builtin, callee, place) in effects.builtins_in_callees.iter().filter(|(b, ..)| !kept.contains(b)) {
        refusals.add(
            format!("`{}` calls `{callee}`, which reads `{builtin}` itself", child.name),
            Some(*place),
        );
    }
}

/// Refuses lambdas and classes in the child's body that read a built-in variable that becomes a parameter: they can't see it.
fn refuse_shut_out(child: &Child<'_>, form: Form, refusals: &mut Refusals) {
    let body = child.item.body_span(child.db);
    for (text, range) in shut_out(child.db, child.file, child.source(body), form) {
        let at = child.start + body.start;
        refusals.add(
            format!("`{}` has {text}", child.name),
            Some(FileRange {
                file: child.file,
                range: TextRange::new(range.start + at, range.end + at),
            }),
        );
    }
}

/// Refuses a kernel to which a class opens what isn't public: another function with its body may not use that.
pub fn refuse_friend(kernel: &Child<'_>, refusals: &mut Refusals) {
    if let Some(place) = friend_declaration(kernel.db, kernel.file, &kernel.name) {
        refusals.add(
            format!(
                "`{}` is a friend of a class, and a function with its body wouldn't be: make public what it uses of it",
                kernel.name
            ),
            Some(place),
        );
    }
}

/// Where a class in sight declares functions of a name its friends.
pub fn friend_declaration(db: &dyn Db, file: SourceFile, name: &str) -> Option<FileRange> {
    included_files(db, file)
        .iter()
        .filter(|f| !is_header(db, **f))
        .find_map(|file| {
            let range = *friends_in(db, *file).get(name)?;
            Some(FileRange { file: *file, range })
        })
}

/// The functions that classes of a file declare their friends, each where that is done first. Every launch asks for them: they stay the
/// same when something else is edited.
#[salsa::tracked(returns(ref))]
fn friends_in(db: &dyn Db, file: SourceFile) -> BTreeMap<String, TextRange> {
    let mut found = BTreeMap::new();
    let text = file.text(db);
    if !text.contains("friend") {
        return found;
    }
    let tokens = lex::code_tokens_of(db, file);
    // The last `friend` of a declaration, and where words were seen last in it.
    let mut last: Option<usize> = None;
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for (index, token) in tokens.iter().enumerate() {
        let word = token.text(&text);
        if matches!(word, ";" | "{") {
            last = None;
            seen.clear();
        } else if let Some(friend) = last {
            // The word may be a part of the type that is returned: only the first one behind a `friend` is looked at.
            let is_first = seen.insert(word, index).is_none_or(|before| before < friend);
            let next = tokens.get(index + 1).map_or("", |t| t.text(&text));
            if is_first && matches!(next, "(" | "<") {
                let range = TextRange::new(token.start as u32, token.end as u32);
                found.entry(word.to_owned()).or_insert(range);
            }
        }
        if word == "friend" {
            last = Some(index);
        }
    }
    found
}

/// Lambdas and classes in a body that read a built-in variable that becomes a parameter, with where they begin.
pub fn shut_out(db: &dyn Db, file: SourceFile, code: &str, form: Form) -> Vec<(String, TextRange)> {
    let tokens = lex::code_tokens(code);
    // A macro may be long, and stand there often.
    let mut known: HashMap<&str, bool> = HashMap::new();
    let mut makes_class = |name| *known.entry(name).or_insert_with(|| makes_class(db, file, name));
    let mut found = Vec::new();
    for index in 0..tokens.len() {
        let (parts, text) = if let Some(lambda) = Lambda::at(code, &tokens, index) {
            let mut parts = vec![lambda.head];
            if !lambda.takes_all {
                parts.push(lambda.body);
            }
            (
                parts,
                "a lambda that reads `{}`: capture with `[=]`, or read it before, into a variable",
            )
        } else if let Some(members) =
            class_body(code, &tokens, index).or_else(|| class_of_macro(code, &tokens, index, &mut makes_class))
        {
            (
                vec![members],
                "a class that reads `{}`: give it the value of a variable that is set before",
            )
        } else {
            continue;
        };
        let source = |part: &Range<usize>| {
            let (first, last) = (tokens.get(part.start)?, tokens.get(part.end.checked_sub(1)?)?);
            code.get(first.start..last.end)
        };
        let words: HashSet<String> = parts
            .iter()
            .filter_map(source)
            .flat_map(|part| words_with_macros(db, file, part))
            .collect();
        if let Some(builtin) = copied::taken(form).iter().find(|b| words.contains(**b)) {
            let range = TextRange::new(tokens[index].start as u32, tokens[index].end as u32);
            found.push((text.replace("{}", builtin), range));
        }
    }
    found
}

/// A lambda in a list of tokens.
struct Lambda {
    /// Parameters and what else stands before its body: nothing of it sees what is captured.
    head: Range<usize>,
    /// Its body with the braces.
    body: Range<usize>,
    /// `[=]` or `[&]`
    takes_all: bool,
}

impl Lambda {
    fn at(code: &str, tokens: &[Token], index: usize) -> Option<Lambda> {
        let text = |i: usize| tokens.get(i).map_or("", |t| t.text(code));
        if text(index) != "[" || text(index + 1) == "[" {
            return None;
        }
        let before = index.checked_sub(1).and_then(|i| tokens.get(i));
        let subscript = before.is_some_and(|t| match t.kind {
            TokenKind::Word => !matches!(t.text(code), "return" | "case" | "else" | "do"),
            TokenKind::Punct => matches!(t.text(code), ")" | "]" | "["),
            _ => true,
        });
        if subscript {
            return None;
        }
        let close = lex::closing(code, tokens, index)?;
        let mut open = close + 1;
        while text(open) != "{" {
            open = match text(open) {
                "" | ";" | "," | "}" | ")" => return None,
                "(" | "[" => lex::closing(code, tokens, open)? + 1,
                _ => open + 1,
            };
        }
        let first = text(index + 1);
        let takes_all = first == "=" || first == "&" && matches!(text(index + 2), "," | "]");
        Some(Lambda {
            head: close + 1..open,
            body: open..lex::closing(code, tokens, open)? + 1,
            takes_all,
        })
    }
}

/// The members of a class that begins at a token.
fn class_body(code: &str, tokens: &[Token], index: usize) -> Option<Range<usize>> {
    let text = |i: usize| tokens.get(i).map_or("", |t| t.text(code));
    if !matches!(text(index), "struct" | "class" | "union") {
        return None;
    }
    let mut open = index + 1;
    let is_word = |i: usize| tokens.get(i).is_some_and(|t| t.kind == TokenKind::Word);
    if is_word(open) {
        open += 1;
    }
    if text(open) == "final" {
        open += 1;
    }
    if text(open) == ":" {
        while !matches!(text(open), "" | "{" | ";") {
            open += 1;
        }
    }
    (text(open) == "{").then(|| Some(open..lex::closing(code, tokens, open)? + 1))?
}

/// Whether a word is a macro that makes a class.
fn makes_class(db: &dyn Db, file: SourceFile, name: &str) -> bool {
    let is_head = |word: &String| matches!(word.as_str(), "struct" | "class" | "union");
    is_macro(db, file, name) && words_with_macros(db, file, name).iter().any(is_head)
}

/// The use of a macro that makes a class, with its arguments.
fn class_of_macro<'c>(
    code: &'c str,
    tokens: &[Token],
    index: usize,
    makes_class: &mut dyn FnMut(&'c str) -> bool,
) -> Option<Range<usize>> {
    let text = |i: usize| tokens.get(i).map_or("", |t| t.text(code));
    if !makes_class(text(index)) {
        return None;
    }
    let end = match text(index + 1) {
        "(" => lex::closing(code, tokens, index + 1)?,
        _ => index,
    };
    Some(index..end + 1)
}

/// The place is in a function that takes built-in variables as parameters: a body that was moved before.
fn moved_by_a_rewrite(child: &Child<'_>, place: FileRange) -> bool {
    function_around(child.db, place).is_some_and(|f| {
        parameters(child.db, f)
            .iter()
            .any(|p| BUILTINS.contains(&p.name.as_str()))
    })
}

/// Inline assembly that computes, and asks for nothing that differs between a grid of its own and an aggregated one.
pub fn is_plain_asm(asm: &Assembly) -> bool {
    const INSTRUCTIONS: [&str; 37] = [
        "abs", "add", "and", "atom", "bfe", "bfi", "brev", "clz", "cvt", "cvta", "div", "dp2a", "dp4a", "fence", "fma",
        "ld", "lop3", "mad", "max", "membar", "min", "mov", "mul", "neg", "not", "or", "popc", "prmt", "red", "selp",
        "setp", "shf", "shl", "shr", "st", "sub", "xor",
    ];
    const REGISTERS: [&str; 9] = [
        "laneid",
        "lanemask_eq",
        "lanemask_ge",
        "lanemask_gt",
        "lanemask_le",
        "lanemask_lt",
        "clock",
        "clock64",
        "globaltimer",
    ];
    let Some(code) = &asm.text else { return false };
    // Operands are numbers, everything else that begins with a percent sign is a register of the machine.
    let registers = code.replace("%%", "%").split('%').skip(1).all(|r| {
        let name = r.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or("");
        REGISTERS.contains(&name) || !name.is_empty() && name.bytes().all(|b| b.is_ascii_digit())
    });
    registers
        && code
            .split(';')
            .map(str::trim)
            .filter(|i| !i.is_empty())
            .all(|instruction| {
                let name = instruction.split(|c: char| !c.is_alphanumeric()).next();
                name.is_some_and(|n| INSTRUCTIONS.contains(&n))
            })
}

/// A built-in variable outside of all functions that are called by name, and outside of macros: what reads it may be run by
/// the child though nothing in its text says so.
pub fn implicit_read(child: &Child<'_>) -> Option<FileRange> {
    let db = child.db;
    included_files(db, child.file).iter().find_map(|file| {
        let range = (*implicit_read_in(db, *file))?;
        Some(FileRange { file: *file, range })
    })
}

/// The first such place in a file.
#[salsa::tracked]
fn implicit_read_in(db: &dyn Db, file: SourceFile) -> Option<TextRange> {
    let text = file.text(db);
    if is_header(db, file) {
        return None;
    }
    let by_name = |name: &str| {
        let mut parts = name.rsplit("::");
        let last = parts.next().unwrap_or("");
        !last.starts_with("operator") && !last.starts_with('~') && parts.next() != Some(last)
    };
    let unnamed = items(db, file).functions.iter().filter(|f| !by_name(f.name(db)));
    let unnamed = unnamed.map(|f| TextRange::new(f.start(db), f.start(db) + f.text(db).len() as u32));
    let mut places: Vec<TextRange> = gaps(db, file).iter().copied().chain(unnamed).collect();
    places.retain(|place| BUILTINS.iter().any(|b| place.text(&text).contains(b)));
    places.sort_unstable();
    places.into_iter().find_map(|place| {
        let code = place.text(&text);
        lex::code_tokens(code).into_iter().find_map(|token| {
            let start = place.start + token.start as u32;
            let range = TextRange::new(start, place.start + token.end as u32);
            (BUILTINS.contains(&token.text(code)) && !in_directive(&text, start as usize)).then_some(range)
        })
    })
}

/// Whether a place lies in a preprocessor directive, which may go on over several lines.
fn in_directive(text: &str, at: usize) -> bool {
    let mut line = style::line_start(text, at);
    while line > 0 {
        let before = text.get(..line).unwrap_or("").trim_end_matches(['\r', '\n']);
        if !before.ends_with('\\') {
            break;
        }
        line = style::line_start(text, before.len());
    }
    text.get(line..at).is_some_and(|t| t.trim_start().starts_with('#'))
}

fn function_place(child: &Child<'_>, function: FunctionItem<'_>) -> FileRange {
    FileRange {
        file: function.file(child.db),
        range: function.signature(child.db).name_span.shift(function.start(child.db)),
    }
}
