//! Puts the calls back that a moved body makes of copies of functions, which get the built-in variables as parameters, see
//! [`crate::emit::callees`].

use gridfuse_analysis::base::db::Db;
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::TextRange;
use gridfuse_analysis::facts::effects::BUILTINS;
use gridfuse_analysis::hir::body;
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::names::unqualified;
use gridfuse_analysis::hir::resolve::functions_named;

use super::collector::tokens_in;
use super::text::{delete_item, is_used_elsewhere, list, place};
use crate::edit::builder::EditBuilder;
use crate::emit::callees::copied_name;
use crate::emit::target;
use crate::facts::grid_views::VIEW;

/// How many functions a body calls so at most.
const MOST: usize = 64;

/// Lets a function call what the copies are copies of, and deletes those that nothing else uses than `deleted` and they themselves.
pub fn put_calls_back<'db>(
    edit: &mut EditBuilder<'db>,
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    deleted: &[FileRange],
) {
    let file = function.file(db);
    let text = file.text(db);
    let own = function.body_span(db).shift(function.start(db));
    let mut copies: Vec<FunctionItem<'db>> = Vec::new();
    let tokens = tokens_in(db, file, own);
    for (at, token) in tokens.iter().enumerate() {
        let name = token.text(&text);
        let word = |index: usize| tokens.get(index).map_or("", |t| t.text(&text));
        // `gridfuse::view_of(grid, threadIdx, …)`: the grid itself.
        if VIEW.rsplit("::").next() == Some(name)
            && let Some(first) = at.checked_sub(3).and_then(|at| tokens.get(at))
            && VIEW.split("::").next() == Some(first.text(&text))
            && let Some((arguments, close)) = list(&text, &tokens, at + 1)
            && let (Some(grid), Some(close)) = (arguments.first(), tokens.get(close))
        {
            for (start, end) in [(first.start, grid.start), (grid.end, close.end)] {
                let range = TextRange::new(start as u32, end as u32);
                edit.replace(FileRange { file, range }, "");
            }
            continue;
        }
        let Some((copy, original)) = copy_named(db, function, name) else {
            continue;
        };
        let open = match word(at + 1) {
            "<" => list(&text, &tokens, at + 1).map(|(_, close)| close + 1),
            _ => Some(at + 1),
        };
        let Some((arguments, _)) = open
            .filter(|open| word(*open) == "(")
            .and_then(|open| list(&text, &tokens, open))
        else {
            continue;
        };
        let code = body(db, copy);
        let builtin = |index: &usize| {
            let param = code.params.get(*index).map(|param| code.binding(*param).name.as_str());
            param.is_some_and(|name| BUILTINS.contains(&name))
        };
        let taken = (0..arguments.len()).take_while(builtin).count();
        let range = TextRange::new(token.start as u32, token.end as u32);
        edit.replace(FileRange { file, range }, original);
        let (Some(first), Some(last)) = (arguments.first(), taken.checked_sub(1).and_then(|at| arguments.get(at)))
        else {
            continue;
        };
        let end = arguments.get(taken).map_or(last.end, |next| next.start);
        let range = TextRange::new(first.start as u32, end as u32);
        edit.replace(FileRange { file, range }, "");
        if !copies.contains(&copy) {
            copies.push(copy);
        }
    }
    // A copy may call others.
    let mut next = 0;
    while let Some(copy) = copies.get(next).copied().filter(|_| copies.len() < MOST) {
        next += 1;
        let own = copy.body_span(db).shift(copy.start(db));
        let text = copy.file(db).text(db);
        for token in tokens_in(db, copy.file(db), own) {
            let called = copy_named(db, copy, token.text(&text)).map(|(called, _)| called);
            copies.extend(called.filter(|called| !copies.contains(called)));
        }
    }
    let mut except = deleted.to_vec();
    except.push(place(db, function));
    except.extend(copies.iter().map(|copy| place(db, *copy)));
    for copy in copies {
        let used = is_used_elsewhere(db, copy.file(db), unqualified(copy.name(db)), &except);
        if !used {
            delete_item(edit, place(db, copy));
        }
    }
}

/// The copy that a function calls by a name, and the name of what that is a copy of.
fn copy_named<'db>(db: &'db dyn Db, function: FunctionItem<'db>, name: &str) -> Option<(FunctionItem<'db>, String)> {
    let found = functions_named(db, function.file(db), name).into_iter();
    let mut copies = found.filter(|f| f.has_body(db)).filter_map(|copy| {
        let text = copy.file(db).text(db);
        let start = place(db, copy).range.start as usize;
        let above = target::above_comment(db, copy.file(db), start);
        let original = copied_name(text.get(above..start)?.trim_end())?;
        Some((copy, original.to_owned()))
    });
    copies.next()
}
