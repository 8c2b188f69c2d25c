//! Member functions that can be given another parameter: all of their calls are seen, and what the parameter's type names means in the
//! class what it means at namespace scope.

use gridfuse_analysis::base::db::{SourceFile, Workspace};
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::TextRange;
use gridfuse_analysis::hir::included::included_files;
use gridfuse_analysis::hir::items::items;
use gridfuse_analysis::hir::names::unqualified;
use gridfuse_analysis::hir::resolve::other_mentions;
use gridfuse_analysis::hir::visible::visible;
use gridfuse_analysis::hir::{ExprId, ExprKind, Name};

use crate::edit::lex;
use crate::facts::cluster::Function;

/// The class of a member function, without what is around it.
fn class_of<'a>(function: &Function<'a>) -> Option<&'a str> {
    let (scope, _) = function.item.name(function.db).rsplit_once("::")?;
    Some(unqualified(scope))
}

/// Whether a member function is defined in its class, is no other's by any name, and stands in no template.
pub fn can_be_given(function: &Function<'_>) -> bool {
    let db = function.db;
    let signature = function.item.signature(db);
    let name = function.name();
    let Some(class) = class_of(function) else { return false };
    let written = signature.name_span.shift(function.start).text(&function.text);
    let plain = signature.member && is_plain_name(written, name, class);
    let in_template = signature.template_params.is_some() || !signature.scope_names.is_empty();
    // Nobody calls it by another class's name for it.
    let body = function.item.body_span(db);
    let text = function.item.text(db);
    let head = text.get(..body.start as usize).unwrap_or("");
    let bound = lex::identifiers(head).any(|word| matches!(word, "virtual" | "override" | "final" | "friend"));
    let alone = visible(db, function.file)
        .functions
        .get(name)
        .is_none_or(|all| all.len() == 1);
    let files = included_files(db, function.file).iter();
    let mut classes = files
        .flat_map(|file| &items(db, *file).types)
        .filter(|ty| ty.name == class);
    let one = classes
        .next()
        .is_some_and(|ty| ty.bases.trim().is_empty() && ty.template_names.is_empty());
    plain && !in_template && !bound && alone && one && classes.next().is_none()
}

fn is_plain_name(written: &str, name: &str, class: &str) -> bool {
    written == name && name != class && !name.contains("operator") && !name.starts_with('~')
}

/// Where a function is mentioned beside its declarations and launches: also as a member, if it is one that can be given a parameter.
pub fn all_mentions(function: &Function<'_>) -> Vec<FileRange> {
    match function.item.signature(function.db).member && can_be_given(function) {
        true => mentions(function),
        false => other_mentions(function.db, function.item),
    }
}

/// Where the name of a member function stands in the code of the workspace, but for its definition: whatever is called so.
fn mentions(function: &Function<'_>) -> Vec<FileRange> {
    let db = function.db;
    let (name, own) = (function.name(), function.name_place());
    let Some(workspace) = Workspace::try_get(db) else {
        return Vec::new();
    };
    let all = workspace.files(db);
    // Whoever sees the class, and what is included beside it.
    let seeing = all
        .values()
        .filter(|file| included_files(db, **file).contains(&function.file));
    let mut files: Vec<SourceFile> = Vec::new();
    for file in seeing.flat_map(|file| included_files(db, *file).iter()).copied() {
        if !files.contains(&file) {
            files.push(file);
        }
    }
    let mut found = Vec::new();
    for file in files {
        let text = file.text(db);
        if !text.contains(name) {
            continue;
        }
        for token in lex::code_tokens_of(db, file)
            .iter()
            .filter(|token| token.text(&text) == name)
        {
            let place = FileRange {
                file,
                range: TextRange::new(token.start as u32, token.end as u32),
            };
            found.extend((place != own).then_some(place));
        }
    }
    found
}

/// Whether a callee is this member function of an object of its class: `detector.run`, `this->run`.
pub fn is_called(function: &Function<'_>, caller: &Function<'_>, callee: ExprId) -> bool {
    let body = &caller.body;
    let ExprKind::Field { base, field, arrow } = &body.expr(body.strip_parens(callee)).kind else {
        return false;
    };
    let Some(class) = class_of(function).filter(|_| field == function.name()) else {
        return false;
    };
    match &body.expr(body.strip_parens(*base)).kind {
        ExprKind::Name(Name::Local(object)) => {
            let ty = &body.binding(*object).ty;
            let base = ty.base.trim().trim_start_matches("const ");
            let base = base.trim_start_matches("struct ").trim_start_matches("class ");
            let own = caller.item.signature(caller.db);
            let known = !own.scope_names.iter().any(|name| name == base) && !body.own_types.contains_key(base);
            !ty.complex
                && ty.array.is_empty()
                && ty.pointers == u8::from(*arrow)
                && known
                && unqualified(base.trim()) == class
        }
        _ => false,
    }
}
