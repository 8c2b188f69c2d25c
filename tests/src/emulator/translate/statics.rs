//! Static variables in functions of the device: they would lie in device memory, and nothing registers them.

use std::ops::Range;

use super::Unsupported;
use super::declaration::Declaration;
use super::qualifiers::Qualifiers;
use super::stream::{Scope, Stream};

/// Refuses a stream that has one.
pub fn refuse(stream: &Stream<'_>, file: &str, qualifiers: &Qualifiers) -> Result<(), Unsupported> {
    let mut device: Range<usize> = 0..0;
    for at in 0..stream.len() {
        match stream.word(at) {
            "{" if stream.scope(at) != Scope::Body && stream.scope(at + 1) == Scope::Body => {
                let of_device = |at: usize| {
                    qualifiers.means(stream.word(at), "__device__") || qualifiers.means(stream.word(at), "__global__")
                };
                if (stream.head_start(at)..at).any(of_device) {
                    device = at..stream.partner(at).unwrap_or(stream.len());
                }
            }
            "static" if device.contains(&at) && stream.scope(at) == Scope::Body => {
                let (start, _) = stream.declaration_start(at);
                let Some(declaration) = Declaration::parse(stream, start) else {
                    continue;
                };
                let shared = declaration
                    .specifiers
                    .clone()
                    .any(|at| qualifiers.means(stream.word(at), "__shared__"));
                let mut declarators = declaration.declarators.iter();
                if !shared && !declarators.all(|one| declaration.constant(stream, one)) {
                    return Err(Unsupported::at(
                        file,
                        stream.line(at),
                        "a static variable in device code",
                    ));
                }
            }
            _ => {}
        }
    }
    Ok(())
}
