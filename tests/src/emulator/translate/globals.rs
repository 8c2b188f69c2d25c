//! Variables in device memory: `__device__`, `__constant__`, `__managed__`.

use std::ops::Range;

use super::Unsupported;
use super::declaration::{Declaration, Declarator};
use super::edits::Edits;
use super::launch::literal;
use super::qualifiers::Qualifiers;
use super::stream::{Scope, Stream};

/// Marks and registers the variables of a stream. `number` counts what is made up, across files.
pub fn translate(
    stream: &Stream<'_>,
    file: &str,
    qualifiers: &Qualifiers,
    number: &mut usize,
    edits: &mut Edits,
) -> Result<(), Unsupported> {
    let mut done = 0;
    for at in 0..stream.len() {
        let mut words = ["__device__", "__constant__", "__managed__"].iter();
        if at < done || !words.any(|word| qualifiers.means(stream.word(at), word)) {
            continue;
        }
        let unsupported = |what: &str| Unsupported::at(file, stream.line(at), what);
        // `[=] __device__ () {…}`
        if stream.before(at) == "]" {
            continue;
        }
        let (start, template) = stream.declaration_start(at);
        let Some(declaration) = Declaration::parse(stream, start) else {
            if matches!(stream.word(at), "__constant__" | "__managed__") {
                return Err(unsupported("a declaration in device memory that isn't understood"));
            }
            continue;
        };
        let has = |qualifier: &str| {
            let mut specifiers = declaration.specifiers.clone();
            specifiers.any(|at| qualifiers.means(stream.word(at), qualifier))
        };
        if has("__shared__") {
            continue;
        }
        done = declaration.tokens.end;
        let immutable = declaration
            .declarators
            .iter()
            .all(|one| declaration.constant(stream, one));
        match stream.scope(at) {
            Scope::Namespace => {}
            // Its definition is elsewhere, or it is a constant.
            Scope::Class if immutable || !declaration.has(stream, "inline") => continue,
            Scope::Class => return Err(unsupported("an inline member in device memory")),
            Scope::Body if immutable && !stream.in_macro() => continue,
            Scope::Body if stream.in_macro() => {
                return Err(unsupported("a macro that declares a variable in device memory"));
            }
            Scope::Body => return Err(unsupported("a local variable in device memory")),
        }
        let defined = |one: &Declarator| one.initialiser.is_some();
        if declaration.has(stream, "extern") && !declaration.declarators.iter().any(defined) {
            continue;
        }
        if declaration.has(stream, "constexpr") {
            continue;
        }
        if template.is_some() {
            return Err(unsupported("a variable template in device memory"));
        }
        let space = match () {
            () if has("__constant__") => "Constant",
            () if has("__managed__") => "Managed",
            () => "Device",
        };
        let mut registered = String::new();
        for declarator in &declaration.declarators {
            if !declaration.constant(stream, declarator) {
                // Constants and variables don't go into one section.
                let behind = stream.end(declarator.tokens.end - 1);
                edits.insert(behind, " __attribute__((section(\"emu_globals\")))");
            }
            let name = qualified(stream, declarator.name, declarator.tokens.clone(), &declaration);
            *number += 1;
            registered.push_str(&format!(
                " static const ::emu::RegisterGlobal emu_reg_{number}{{&{name}, sizeof {name}, {}, ::emu::Space::{space}}};",
                literal(&name)
            ));
        }
        edits.insert(stream.end(declaration.tokens.end), registered);
    }
    Ok(())
}

/// The name of a declared variable with the class in which it was declared: `Counters::total`.
fn qualified(stream: &Stream<'_>, name: usize, declarator: Range<usize>, declaration: &Declaration) -> String {
    let mut start = name;
    while start > declaration.tokens.start && stream.after_scope_operator(start) && stream.is_word(start - 3) {
        start -= 3;
    }
    stream.join(start..name + 1, |at| at <= name && at < declarator.end)
}
