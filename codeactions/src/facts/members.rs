//! Member functions that can be given another parameter: all of their calls are seen, and what the parameter's type names means in the
//! class what it means at namespace scope.

use gridfuse_analysis::base::db::{Db, SourceFile, Workspace};
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::TextRange;
use gridfuse_analysis::hir::included::included_files;
use gridfuse_analysis::hir::items::{FunctionItem, items};
use gridfuse_analysis::hir::mentions::mentions_word;
use gridfuse_analysis::hir::names::unqualified;
use gridfuse_analysis::hir::resolve::other_mentions;
use gridfuse_analysis::hir::visible::visible;
use gridfuse_analysis::hir::{Body, ExprId, ExprKind, Name, body};

use crate::edit::lex;
use crate::facts::calls::is_plain_type;

/// The name of a function without what is around it.
fn name_of<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> &'db str {
    unqualified(function.name(db))
}

/// The class of a member function, without what is around it.
fn class_of<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Option<&'db str> {
    let (scope, _) = function.name(db).rsplit_once("::")?;
    Some(unqualified(scope))
}

/// Whether a member function is defined in its class, is no other's by any name, and stands in no template.
pub fn can_be_given(db: &dyn Db, function: FunctionItem<'_>) -> bool {
    let signature = function.signature(db);
    let name = name_of(db, function);
    let Some(class) = class_of(db, function) else {
        return false;
    };
    let text = function.text(db);
    let written = signature.name_span.text(&text);
    let plain = signature.member && is_plain_name(written, name, class);
    let in_template = signature.template_params.is_some() || !signature.scope_names.is_empty();
    // Nobody calls it by another class's name for it.
    let body = function.body_span(db);
    let head = text.get(..body.start as usize).unwrap_or("");
    let bound =
        lex::identifiers(head).any(|word| matches!(word, "virtual" | "override" | "final" | "friend" | "volatile"));
    let alone = visible(db, function.file(db))
        .functions
        .get(name)
        .is_none_or(|all| all.len() == 1);
    let files = included_files(db, function.file(db)).iter();
    let mut classes = files
        .flat_map(|file| &items(db, *file).types)
        .filter(|ty| ty.name == class);
    let one = classes
        .next()
        .is_some_and(|ty| ty.bases.trim().is_empty() && ty.template_names.is_empty());
    plain && !in_template && !bound && alone && one && classes.next().is_none() && plain_arguments(db, function)
}

/// What a launch of a member function writes as template arguments means the same outside of the class: numbers and their types.
fn plain_arguments(db: &dyn Db, function: FunctionItem<'_>) -> bool {
    let (body, text) = (body(db, function), function.text(db));
    body.launches.iter().all(|launch| match &body.expr(*launch).kind {
        ExprKind::Launch(launch) => launch.template_args.is_none_or(|written| {
            lex::identifiers(written.text(&text)).all(|word| is_plain_type(word) || matches!(word, "true" | "false"))
        }),
        _ => true,
    })
}

fn is_plain_name(written: &str, name: &str, class: &str) -> bool {
    written == name && name != class && !name.contains("operator") && !name.starts_with('~')
}

/// Where a function is mentioned beside its declarations and launches: also as a member, if it is one that can be given a parameter.
pub fn all_mentions(db: &dyn Db, function: FunctionItem<'_>) -> Vec<FileRange> {
    match function.signature(db).member && can_be_given(db, function) {
        true => mentions(db, function),
        false => other_mentions(db, function),
    }
}

/// Where the name of a member function stands in the code of the workspace, but for its definition: whatever is called so.
fn mentions(db: &dyn Db, function: FunctionItem<'_>) -> Vec<FileRange> {
    let name = name_of(db, function);
    let own = FileRange {
        file: function.file(db),
        range: function.signature(db).name_span.shift(function.start(db)),
    };
    let Some(workspace) = Workspace::try_get(db) else {
        return Vec::new();
    };
    let all = workspace.files(db);
    // Whoever sees the class, and what is included beside it.
    let seeing = all
        .values()
        .filter(|file| included_files(db, **file).contains(&own.file));
    let mut files: Vec<SourceFile> = Vec::new();
    for file in seeing.flat_map(|file| included_files(db, *file).iter()).copied() {
        if !files.contains(&file) {
            files.push(file);
        }
    }
    let mut found = Vec::new();
    for file in files {
        let text = file.text(db);
        let tokens = lex::code_tokens_of(db, file).iter();
        let named: Vec<TextRange> = tokens
            .filter(|token| token.text(&text) == name)
            .map(|token| TextRange::new(token.start as u32, token.end as u32))
            .collect();
        // A macro may name it, or put its name together.
        for function in items(db, file)
            .functions
            .iter()
            .filter(|f| mentions_word(db, **f, name))
        {
            let start = function.start(db);
            let whole = TextRange::new(start, start + function.text(db).len() as u32);
            if !named.iter().any(|range| whole.contains(*range)) {
                let range = function.signature(db).name_span.shift(start);
                found.push(FileRange { file, range });
            }
        }
        let places = named.into_iter().map(|range| FileRange { file, range });
        found.extend(places.filter(|place| *place != own));
    }
    found
}

/// Whether a callee is this member function of an object of its class: `detector.run`, `this->run`.
pub fn is_called(
    db: &dyn Db,
    function: FunctionItem<'_>,
    caller: FunctionItem<'_>,
    body: &Body,
    callee: ExprId,
) -> bool {
    let ExprKind::Field { base, field, arrow } = &body.expr(body.strip_parens(callee)).kind else {
        return false;
    };
    let Some(class) = class_of(db, function).filter(|_| field == name_of(db, function)) else {
        return false;
    };
    match &body.expr(body.strip_parens(*base)).kind {
        ExprKind::Name(Name::Local(object)) => {
            let ty = &body.binding(*object).ty;
            let base = ty.base.trim().trim_start_matches("const ");
            let base = base.trim_start_matches("struct ").trim_start_matches("class ");
            let own = caller.signature(db);
            let known = !own.scope_names.iter().any(|name| name == base) && !body.own_types.contains_key(base);
            !ty.complex
                && ty.array.is_empty()
                && ty.pointers == u8::from(*arrow)
                && known
                && (base.trim() == class
                    || function.name(db).strip_suffix(name_of(db, function)) == Some(&format!("{}::", base.trim())))
        }
        _ => false,
    }
}
