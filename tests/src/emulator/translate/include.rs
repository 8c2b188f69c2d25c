//! `#include` and `#pragma once`.

use std::path::Path;

use gridfuse_codeactions::runtime::{HEADER, Installed, header};

use super::edits::Edits;
use super::launch::literal;
use super::stream::{File, line_of};
use super::{Includes, Inlined, Pass, Unsupported, shown};

/// The name that a line includes, and whether it is quoted.
pub fn include_of_line(line: &str) -> Option<(&str, bool)> {
    let rest = line.trim_start().strip_prefix('#')?.trim_start();
    included(rest.strip_prefix("include")?)
}

/// The name in `"name"` or `<name>`.
fn included(rest: &str) -> Option<(&str, bool)> {
    let rest = rest.trim_start();
    if let Some(rest) = rest.strip_prefix('"') {
        return Some((rest.split_once('"')?.0, true));
    }
    Some((rest.strip_prefix('<')?.split_once('>')?.0, false))
}

/// The text that takes a file's place: the runtime header with all its parts, where the file is one that gridfuse wrote.
pub(super) fn whole(text: &str) -> &str {
    match Installed::read(text) {
        Some(installed) if *text == *header(installed.parts) => &HEADER,
        _ => text,
    }
}

/// The runtime header of rewritten code needs nothing of what surrounds it: it stands before all programs, once.
fn share(pass: &mut Pass<'_>, path: &Path, inlined: &mut Inlined) -> Result<(), Unsupported> {
    if inlined.runtime.is_empty() {
        let mut of_its_own = Inlined::default();
        inlined.runtime = pass.inlined(path, &mut of_its_own)?;
        inlined.runtime.push_str(&of_its_own.undefine());
        inlined.headers.extend(of_its_own.headers);
    }
    Ok(())
}

/// Translates the includes of a file.
pub fn translate(
    pass: &mut Pass<'_>,
    path: &Path,
    file: &File<'_>,
    includes: &mut Includes<'_>,
    edits: &mut Edits,
) -> Result<(), Unsupported> {
    let text = file.code.text();
    for directive in &file.directives {
        let range = directive.range();
        let line = line_of(text, range.start);
        if directive.name() == "pragma" && directive.rest().trim() == "once" {
            if let Includes::Inlined(inlined) = includes {
                inlined.once.insert(path.to_owned());
                edits.replace_exactly(range, "");
            }
            continue;
        }
        if directive.name() != "include" {
            continue;
        }
        let unsupported = |what: &str| Unsupported::at(&shown(path), line, what);
        let (name, quoted) = included(directive.rest()).ok_or_else(|| unsupported("an `#include` of a macro"))?;
        let own = pass.program.included(path, name, quoted).map(Path::to_owned);
        match (own, &mut *includes) {
            (Some(own), Includes::Mirrored) => {
                let insert = format!("#include {}", literal(&pass.mirrored(&own)));
                edits.replace(&file.code, range, insert);
            }
            (Some(own), Includes::Inlined(inlined)) => {
                if inlined.open.contains(&own) && !inlined.once.contains(&own) {
                    return Err(unsupported("a file that includes itself"));
                }
                let inner = if pass
                    .program
                    .files()
                    .get(&own)
                    .is_some_and(|text| *whole(text) == **HEADER)
                {
                    share(pass, &own, inlined)?;
                    String::new()
                } else {
                    pass.inlined(&own, inlined)?
                };
                let back = format!("{inner}\n#line {line} {}\n", literal(&shown(path)));
                edits.replace_exactly(range, back);
            }
            (None, Includes::Mirrored) => {}
            (None, Includes::Inlined(inlined)) => {
                let header = if quoted { literal(name) } else { format!("<{name}>") };
                inlined.headers.insert(header);
                edits.replace(&file.code, range, "");
            }
        }
    }
    Ok(())
}
