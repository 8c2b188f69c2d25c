//! Finding pieces of generated code in a text.

use std::ops::Range;

use gridfuse_analysis::base::db::{Db, SourceFile, Workspace};
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::TextRange;
use gridfuse_analysis::hir::included::included_files;
use gridfuse_analysis::hir::items::{FunctionItem, items};
use gridfuse_analysis::hir::names::unqualified;
use gridfuse_analysis::hir::resolve::functions_named;

use super::copied;
use crate::api::refusal::Refusals;
use crate::edit::builder::EditBuilder;
use crate::edit::include::{insertion, insertion_at_head};
use crate::edit::lex::{self, Token};
use crate::edit::names::Names;
use crate::edit::style;
use crate::emit::described;
use crate::emit::target;
use crate::emit::was;
use crate::facts::child::Child;
use crate::runtime::{HEADER_NAME, is_header};

/// The items of the list that `open` (a bracket, an index into `tokens`) begins, and the index of the bracket that ends it. Commas in
/// angle brackets divide, unless the list is in angle brackets itself, or they are those of the runtime's templates.
pub fn list(text: &str, tokens: &[Token], open: usize) -> Option<(Vec<Range<usize>>, usize)> {
    let angles = tokens.get(open)?.text(text) == "<";
    let mut items = Vec::new();
    let mut depth = 0i32;
    let mut start = tokens.get(open)?.end;
    let mut index = open;
    while let Some(token) = tokens.get(index) {
        match token.text(text) {
            "(" | "[" | "{" => depth += 1,
            "<" if angles => depth += 1,
            // Elsewhere it may be a comparison.
            "<" if is_of_runtime(text, tokens, index) => {
                index = list(text, tokens, index)?.1 + 1;
                continue;
            }
            ")" | "]" | "}" => depth -= 1,
            ">" if angles => depth -= 1,
            "," if depth == 1 => {
                items.push(start..token.start);
                start = token.end;
            }
            _ => {}
        }
        if depth == 0 {
            if index > open + 1 {
                items.push(start..token.start);
            }
            let trimmed = items.into_iter().map(|item| trim(text, item)).collect();
            return Some((trimmed, index));
        }
        index += 1;
    }
    None
}

/// The angle bracket at `index` is behind a name of the runtime header, as in `gridfuse::Batch<child_args<T, Op>> batch`: none of these
/// is compared with anything.
fn is_of_runtime(text: &str, tokens: &[Token], index: usize) -> bool {
    let word = |back: usize| index.checked_sub(back).map_or("", |at| tokens[at].text(text));
    (word(4), word(3), word(2)) == ("gridfuse", ":", ":")
}

fn trim(text: &str, range: Range<usize>) -> Range<usize> {
    let code = text.get(range.clone()).unwrap_or("");
    let start = range.start + code.len() - code.trim_start().len();
    let end = start + code.trim().len();
    start..end
}

/// The source of a function, as it stands in its file.
pub fn source(db: &dyn Db, function: FunctionItem<'_>) -> String {
    place(db, function).range.text(&function.file(db).text(db)).to_owned()
}

/// Where a function stands.
pub fn place(db: &dyn Db, function: FunctionItem<'_>) -> FileRange {
    let start = function.start(db);
    FileRange {
        file: function.file(db),
        range: TextRange::new(start, start + function.text(db).len() as u32),
    }
}

/// Whether a word that is defined in `home` stands anywhere in the workspace, the runtime header, the given places and programs with
/// a definition of their own aside.
pub fn is_used_elsewhere(db: &dyn Db, home: SourceFile, word: &str, except: &[FileRange]) -> bool {
    let files = Workspace::try_get(db).map(|w| w.files(db)).unwrap_or_default();
    files.values().any(|file| {
        let text = file.text(db);
        if is_header(db, *file) || !text.contains(word) {
            return false;
        }
        if has_its_own(db, *file, home, word) {
            return false;
        }
        lex::code_tokens_of(db, *file).iter().any(|token| {
            let range = TextRange::new(token.start as u32, token.end as u32);
            token.text(&text) == word && !except.iter().any(|e| e.file == *file && e.range.contains(range))
        })
    })
}

/// A file in which a word can't mean what `home` defines: neither includes the other, and what it includes defines the word, too.
fn has_its_own(db: &dyn Db, file: SourceFile, home: SourceFile, word: &str) -> bool {
    let apart = |a: SourceFile, b: SourceFile| a != b && !included_files(db, a).contains(&b);
    apart(file, home)
        && apart(home, file)
        && std::iter::once(file)
            .chain(included_files(db, file).iter().copied())
            .any(|included| defines(db, included, word))
}

/// A file defines a function, a structure or a constant of this name.
fn defines(db: &dyn Db, file: SourceFile, word: &str) -> bool {
    let mut functions = items(db, file).functions.iter();
    if functions.any(|function| function.has_body(db) && unqualified(function.name(db)) == word) {
        return true;
    }
    let text = file.text(db);
    let tokens = lex::code_tokens_of(db, file);
    let is = |index: usize, words: &[&str]| {
        let mut words = words.iter().enumerate();
        words.all(|(k, word)| tokens.get(index + k).is_some_and(|token| token.text(&text) == *word))
    };
    (0..tokens.len()).any(|index| is(index, &["struct", word, "{"]) || is(index, &["constexpr", "int", word, "="]))
}

/// Deletes a generated item with the comment and the empty line above it.
pub fn delete_item(edit: &mut EditBuilder<'_>, place: FileRange) {
    let text = edit.text(place.file);
    let start = target::above_comment(edit.db(), place.file, place.range.start as usize);
    let before = text.get(..start).unwrap_or("");
    let mut from = before.trim_end_matches([' ', '\t']);
    for _ in 0..2 {
        from = from
            .strip_suffix('\n')
            .map_or(from, |f| f.strip_suffix('\r').unwrap_or(f));
    }
    let range = TextRange::new(from.len() as u32, place.range.end);
    edit.replace(FileRange { range, ..place }, "");
}

/// Deletes the comment directly above a function that says what it is for, where a rewrite has put it there.
pub fn delete_description(edit: &mut EditBuilder<'_>, function: FileRange) {
    let text = edit.text(function.file);
    let end = function.range.start as usize;
    let before = text.get(..end).unwrap_or("");
    // A comment of the user's may stand directly above it.
    let from = before.rfind("\n\n").map_or(0, |at| at + 2);
    let above = before.get(from..).unwrap_or("");
    let comments = lex::comments(above);
    let Some((last, others)) = comments.split_last().filter(|(last, _)| {
        let directly = above.get(last.end..).is_some_and(|gap| gap.trim().is_empty());
        directly && described::is_taken_back(last.text(above))
    }) else {
        return;
    };
    // What it is for stands on the line above, or on several from that on which it begins.
    let begins = |line: &&Token| described::begins_body(line.text(above));
    let begun = others.iter().rev().find(begins).or(others.last());
    let begun = begun.filter(|_| described::is_second_line(last.text(above)));
    let start = from + begun.map_or(last.start, |first| first.start);
    let range = TextRange::new(start as u32, end as u32);
    edit.replace(FileRange { range, ..function }, "");
}

/// The kernel whose body a rewrite has moved to `worker`.
pub fn child_of<'db>(db: &'db dyn Db, worker: FunctionItem<'db>) -> Option<Child<'db>> {
    let file = worker.file(db);
    let kernels = items(db, file).functions.iter().copied();
    kernels
        .filter(|f| f.has_body(db) && f.signature(db).kernel)
        .map(|f| Child::read(db, f, &mut Names::default(), &mut Refusals::default()))
        .find(|child| child.outlined.as_ref().is_some_and(|o| o.function == worker))
}

/// Moves the body back into its kernel, unless something else than what is deleted uses it.
pub fn put_body_back<'db>(
    edit: &mut EditBuilder<'db>,
    db: &'db dyn Db,
    worker: FunctionItem<'db>,
    child: &Child<'db>,
    deleted: &[FileRange],
) {
    let kernel = FileRange {
        file: child.file,
        range: TextRange::new(child.front(), child.end()),
    };
    let mut own = deleted.to_vec();
    own.extend([place(db, worker), kernel]);
    let name = unqualified(worker.name(db));
    if is_used_elsewhere(db, worker.file(db), name, &own) {
        return;
    }
    let signature = worker.signature(db);
    let start = worker.start(db);
    let head = TextRange::new(signature.head_span.start + start, signature.params_span.end + start);
    let original = TextRange::new(child.head_start, child.params_range().end);
    let file = worker.file(db);
    let behind = TextRange::new(head.end, place(db, worker).range.end);
    let text = file.text(db);
    let body: Vec<&str> = lex::identifiers(behind.text(&text)).collect();
    let mut code = without_made_up_names(original.text(&child.text), child, &body);
    delete_description(edit, place(db, worker));
    let mut range = head;
    join_body(db, worker, child, &mut code, &mut range);
    edit.replace(FileRange { file, range }, code);
    delete_item(edit, kernel);
    copied::put_calls_back(edit, db, worker, deleted);
}

/// Gives a function that a kernel's body has moved to the kernel's head again, without the parameters that a rewrite has given it, and
/// deletes the kernel.
pub fn put_head_back<'db>(
    edit: &mut EditBuilder<'db>,
    db: &'db dyn Db,
    worker: FunctionItem<'db>,
    kernel: FunctionItem<'db>,
    added: &[&str],
) -> Option<()> {
    let child = Child::read(db, kernel, &mut Names::default(), &mut Refusals::default());
    let tokens = lex::code_tokens_of(db, child.file);
    let open = tokens
        .iter()
        .position(|t| t.start as u32 == child.params_range().start)?;
    let (params, _) = list(&child.text, tokens, open)?;
    let mut head = TextRange::new(child.front(), child.params_range().end)
        .text(&child.text)
        .to_owned();
    if let Some(note) = was::above(&child.text, child.front() as usize).pop() {
        head = note.launch;
    }
    let front = child.front() as usize;
    let mut positions = Vec::new();
    for added in added {
        positions.push(params.iter().position(|p| {
            let code = child.text.get(p.clone()).unwrap_or("");
            code.starts_with("gridfuse::") && lex::identifiers(code).any(|word| word == *added)
        })?);
    }
    // From the last one, so that the places of those in front of it stay.
    positions.sort_unstable();
    for at in positions.into_iter().rev() {
        let before = match at.checked_sub(1) {
            Some(before) => params[before].end,
            None => child.params_range().start as usize + 1,
        };
        head.replace_range(before - front..params[at].end - front, "");
    }
    let (file, own) = (worker.file(db), place(db, worker).range);
    let end = worker.signature(db).params_span.end + worker.start(db);
    let text = file.text(db);
    let body: Vec<&str> = lex::identifiers(TextRange::new(end, own.end).text(&text)).collect();
    let mut code = without_made_up_names(&head, &child, &body);
    delete_description(edit, place(db, worker));
    let mut range = TextRange::new(own.start, end);
    join_body(db, worker, &child, &mut code, &mut range);
    edit.replace(FileRange { file, range }, code);
    let range = TextRange::new(child.front(), child.end());
    let file = child.file;
    delete_item(edit, FileRange { file, range });
    Some(())
}

/// Has a body that begins in a line of its own, with a statement in it, follow the head again in its line, where the kernel's brace does.
fn join_body<'db>(
    db: &'db dyn Db,
    worker: FunctionItem<'db>,
    kernel: &Child<'db>,
    head: &mut String,
    range: &mut TextRange,
) {
    let text = worker.file(db).text(db);
    let body = worker.body_span(db).shift(worker.start(db));
    let own = TextRange::new(range.end, body.start).text(&text);
    let line = text.get(body.start as usize..style::line_end(&text, body.start as usize));
    let begins = line.is_some_and(|line| lex::code_tokens(line).len() > 1);
    let brace = kernel.item.body_span(db).shift(kernel.start);
    let gap = TextRange::new(kernel.params_range().end, brace.start).text(&kernel.text);
    let blank = own.trim().is_empty() && gap.trim().is_empty();
    if begins && blank && own.contains('\n') && !gap.contains('\n') {
        head.push_str(gap);
        range.end = body.start;
    }
}

/// Deletes generated items with the comment above them and the empty line below.
pub fn delete_with_gap(edit: &mut EditBuilder<'_>, place: FileRange) {
    let text = edit.text(place.file);
    let start = target::above_comment(edit.db(), place.file, place.range.start as usize);
    let end = place.range.end as usize;
    let rest = text.get(end..).unwrap_or("");
    let range = TextRange::new(start as u32, (end + rest.len() - rest.trim_start().len()) as u32);
    edit.replace(FileRange { range, ..place }, "");
}

/// The head of a kernel without the names that parameters got which had none, as the kernel that takes their place has to pass them on:
/// `arg2` for the second one, in a body that doesn't use it.
fn without_made_up_names(head: &str, child: &Child<'_>, body: &[&str]) -> String {
    let mut code = head.to_owned();
    for (index, parameter) in child.params.iter().enumerate() {
        if parameter.name != format!("arg{}", index + 1) || body.contains(&&*parameter.name) {
            continue;
        }
        let tokens = lex::code_tokens(&code);
        let own = tokens.windows(2).find(|pair| {
            let follows = matches!(pair[1].text(&code), "," | ")" | "[" | "=");
            follows && pair[0].text(&code) == parameter.name
        });
        if let Some(name) = own.map(|pair| pair[0]) {
            let kept = code.get(..name.start).unwrap_or("").trim_end().len();
            code.replace_range(kept..name.end, "");
        }
    }
    code
}

/// The function with the child's body that is called by one which runs its grids in a thread; `None` where that has the body itself.
pub fn moved_body<'db>(db: &'db dyn Db, serial: FunctionItem<'db>) -> Option<FunctionItem<'db>> {
    let (file, text) = (serial.file(db), source(db, serial));
    lex::code_words(&text).iter().find_map(|word| {
        let mut found = functions_named(db, file, word).into_iter();
        found.find(|f| f.has_body(db) && f.file(db) == file && *f != serial && child_of(db, *f).is_some())
    })
}

/// The value of a constant that a rewrite may have declared, and the declaration.
pub fn constant(db: &dyn Db, file: SourceFile, name: &str) -> Option<(String, FileRange)> {
    let text = file.text(db);
    let tokens = lex::code_tokens_of(db, file);
    let words = ["constexpr", "int", name, "="];
    let word = |index: usize| tokens.get(index).map_or("", |t| t.text(&text));
    let declares = |at: &usize| words.iter().enumerate().all(|(k, w)| word(at + k) == *w);
    let at = (0..tokens.len()).find(declares)?;
    let (value, semicolon) = (tokens.get(at + 4)?, tokens.get(at + 5)?);
    let range = TextRange::new(tokens[at].start as u32, semicolon.end as u32);
    (semicolon.text(&text) == ";").then(|| (value.text(&text).to_owned(), FileRange { file, range }))
}

/// Deletes the constant of a generated comparison, its comment and the line behind it, unless something else uses it; gives its
/// value.
pub fn take_constant(
    edit: &mut EditBuilder<'_>,
    db: &dyn Db,
    file: SourceFile,
    name: &str,
    used: &[FileRange],
) -> Option<String> {
    let text = edit.text(file);
    let (value, own) = constant(db, file, name)?;
    let mut except = used.to_vec();
    except.push(own);
    if !is_used_elsewhere(db, file, name, &except) {
        let start = target::above_comment(db, file, own.range.start as usize);
        let line = style::line_start(&text, start);
        let mut end = own.range.end as usize;
        for _ in 0..2 {
            let rest = text.get(end..).unwrap_or("");
            let blank = rest.len() - rest.trim_start_matches([' ', '\t', '\r']).len();
            if rest.get(blank..).is_some_and(|r| r.starts_with('\n')) {
                end += blank + 1;
            }
        }
        let range = TextRange::new(line as u32, end as u32);
        edit.replace(FileRange { file, range }, "");
    }
    Some(value)
}

/// The text without the include of the runtime header, where nothing needs it any more and `insertion` had put it there.
pub fn without_include(text: &str) -> Option<String> {
    let words = lex::code_words(text);
    if words.iter().filter(|w| **w == "gridfuse").count() > 0 {
        return None;
    }
    let line = text.lines().find(|l| {
        let l = l.trim();
        l.starts_with("#include \"") && l.trim_end_matches('"').ends_with(HEADER_NAME)
    })?;
    let path = line.trim().trim_start_matches("#include \"").trim_end_matches('"');
    let at = text.find(line)?;
    let newline = if line.ends_with('\r') || text.get(at + line.len()..)?.starts_with("\r\n") {
        "\r\n"
    } else {
        "\n"
    };
    let end = style::line_end(text, at);
    let rest = text.get(end..)?;
    let candidates = [
        // Behind another include; at the top; behind the head of the file.
        text.get(..at)?.strip_suffix(newline).map(|b| format!("{b}{rest}")),
        rest.strip_prefix(&newline.repeat(2))
            .map(|r| format!("{}{r}", &text[..at])),
        text.get(..at)?
            .strip_suffix(&newline.repeat(2))
            .map(|b| format!("{b}{rest}")),
    ];
    candidates.into_iter().flatten().find(|candidate| {
        let places = [insertion, insertion_at_head].map(|place| place(candidate, path, newline));
        places.into_iter().flatten().any(|(at, insert)| {
            let (before, behind) = candidate.split_at(at);
            format!("{before}{insert}{behind}") == text
        })
    })
}

/// Where a struct that a rewrite has made is defined, with its template header.
pub fn struct_named(db: &dyn Db, file: SourceFile, name: &str) -> Option<FileRange> {
    let (text, tokens) = (file.text(db), lex::code_tokens_of(db, file));
    let word = |index: usize| tokens.get(index).map_or("", |t| t.text(&text));
    let at = (0..tokens.len()).find(|at| word(*at) == "struct" && word(at + 1) == name && word(at + 2) == "{")?;
    let close = lex::closing(&text, tokens, at + 2)?;
    let semicolon = tokens.get(close + 1).filter(|t| t.text(&text) == ";")?;
    // The template header stands on the line above.
    let mut first = tokens.get(at)?.start;
    let line = style::line_start(&text, first);
    let above = style::line_start(&text, line.saturating_sub(1));
    if text
        .get(above..line)
        .is_some_and(|l| l.trim_start().starts_with("template"))
    {
        first = above + style::indent_at(&text, above).len();
    }
    let range = TextRange::new(first as u32, semicolon.end as u32);
    Some(FileRange { file, range })
}
