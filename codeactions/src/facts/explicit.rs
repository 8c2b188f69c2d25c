//! Whether `static_cast<T>(x)` converts as passing `x` to a parameter of type `T` does: it may use explicit conversions, too.

use gridfuse_analysis::base::db::{Db, SourceFile};
use gridfuse_analysis::hir::ExprId;
use gridfuse_analysis::hir::included::included_files;
use gridfuse_analysis::hir::runtime_header::is_runtime_header;

use crate::edit::lex;
use crate::facts::calls::is_plain_type;
use crate::facts::ctype;
use crate::facts::site::Site;

/// What is `explicit` in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, salsa::SalsaValue)]
struct Explicit {
    /// A conversion function of a class, or what may be one.
    conversion: bool,
    /// Anything.
    any: bool,
}

/// Whether a cast of `expr` to `to` gives what an argument or an initialiser gives: both are numbers, or nothing in sight is explicit that
/// the cast alone would use.
pub fn casts_as_it_converts(site: &Site<'_>, expr: ExprId, to: &str) -> bool {
    let is_number = |ty: &str| is_plain_type(&ctype::normalize(ty));
    if is_number(to) && ctype::type_of(site, expr).is_some_and(|from| is_number(&from)) {
        return true;
    }
    // The file itself is among them.
    let files = included_files(site.db, site.file);
    // A class of the runtime header has no conversion but explicit ones: no launch passes one for another type.
    let theirs = files.iter().filter(|file| !is_runtime_header(site.db, **file));
    let mut seen = theirs.map(|file| in_file(site.db, *file));
    // Of a number only conversion functions make one; of another type constructors do, too.
    !seen.any(|found| if is_number(to) { found.conversion } else { found.any })
}

#[salsa::tracked]
fn in_file(db: &dyn Db, file: SourceFile) -> Explicit {
    let text = file.text(db);
    if !text.contains("explicit") {
        return Explicit::default();
    }
    let tokens = lex::code_tokens_of(db, file);
    let mut found = Explicit::default();
    for (index, token) in tokens
        .iter()
        .enumerate()
        .filter(|(_, token)| token.text(&text) == "explicit")
    {
        found.any = true;
        // In front of what a macro stands isn't known.
        found.conversion |= is_in_directive(&text, token.start);
        // A constructor has its parameters in brackets, and a body or a semicolon, before another member can come.
        let head = tokens.iter().skip(index + 1).map(|token| token.text(&text));
        let mut head = head.take_while(|word| !matches!(*word, ";" | "{" | "}"));
        found.conversion |= head.any(|word| word == "operator");
    }
    found
}

/// The line, with those that it goes on from, begins with `#`.
fn is_in_directive(text: &str, at: usize) -> bool {
    let before = text.get(..at).unwrap_or("");
    let mut lines = before.split('\n').rev();
    let mut line = lines.next().unwrap_or("");
    for earlier in lines {
        if !earlier.trim_end().ends_with('\\') {
            break;
        }
        line = earlier;
    }
    line.trim_start().starts_with('#') || line.trim_start().starts_with("%:")
}
