//! What the directives of a file say.

use std::collections::HashSet;
use std::sync::Arc;

use super::MacroState;
use super::line::{Line, line};
use crate::base::db::{Db, SourceFile};
use crate::base::mask::{Directive, directives};
use crate::base::scan::word_at;

/// All directives of a file, in order.
#[salsa::tracked(returns(clone))]
pub fn file_directives(db: &dyn Db, file: SourceFile) -> Arc<Vec<Directive>> {
    match file.patched(db) {
        Some(patched) => patched.directives.clone(),
        None => Arc::new(directives(&file.text(db))),
    }
}

/// The directives of a file, each as it is written, wherever it stands.
pub(super) fn lines(db: &dyn Db, file: SourceFile) -> &[Line] {
    match file.settled_lines(db) {
        Some(lines) => lines,
        None => lines_in_text(db, file),
    }
}

/// The same as the text says now.
#[salsa::tracked]
pub(crate) fn lines_in_text(db: &dyn Db, file: SourceFile) -> Arc<Vec<Line>> {
    if let Some(patched) = file.patched(db) {
        return patched.lines.clone();
    }
    let text = file.text(db);
    let directives = file_directives(db, file);
    let popped = popped_by_operators(&text);
    let lines = directives
        .iter()
        .map(|d| match (line(&d.name, d.rest(&text)), popped.is_empty()) {
            (read, true) => read,
            (Line::Undef(name), _) if popped.contains(&name) => Line::PopMacro(name),
            (Line::Define(state), _) => match state.as_ref() {
                MacroState::Defined(item) if popped.contains(&item.name) => Line::PopMacro(item.name.clone()),
                _ => Line::Define(state),
            },
            (read, _) => read,
        });
    Arc::new(lines.collect())
}

/// The macros that `_Pragma("pop_macro(\"X\")")` gives an earlier meaning. It may stand anywhere, also in a macro, so what they mean isn't known
/// in the whole file.
fn popped_by_operators(text: &str) -> HashSet<String> {
    if !text.contains("_Pragma") {
        return HashSet::new();
    }
    let text = text.replace("\\\r\n", "").replace("\\\n", "");
    let behind = text.split("pop_macro").skip(1);
    let names = behind.filter_map(|rest| {
        let rest = rest.trim_start().strip_prefix('(')?;
        let start = rest.find(|c: char| c == '_' || c.is_alphanumeric())?;
        word_at(rest, start)
    });
    names.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn macros_popped_by_operators() {
        let popped = |text: &str| {
            let mut names: Vec<String> = popped_by_operators(text).into_iter().collect();
            names.sort();
            names
        };
        assert_eq!(popped("#pragma pop_macro(\"X\")"), [""; 0]);
        assert_eq!(popped(r#"_Pragma("push_macro(\"X\")")"#), [""; 0]);
        assert_eq!(popped(r#"int a; _Pragma("pop_macro(\"X\")") int b;"#), ["X"]);
        assert_eq!(
            popped("#define POP _Pragma ( \"pop_\\\nmacro ( \\\"IDX\\\" )\" )"),
            ["IDX"]
        );
        assert_eq!(
            popped(r#"_Pragma(R"(pop_macro("X"))") _Pragma("pop_macro(\"Y\")")"#),
            ["X", "Y"]
        );
    }
}
