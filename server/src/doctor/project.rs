//! What the project in the current directory says of itself.

use std::path::Path;

use super::{missing, note, ok};
use crate::compile_commands;
use crate::manifest::NAME;
use crate::manifests::Manifests;
use crate::schema::Check;

const COMMANDS: &str = "compile commands";

/// The checks, and the command that leads to the machine on which the project is measured.
pub fn checks(directory: &Path) -> (Vec<Check>, Option<String>) {
    let (manifests, problems) = Manifests::read([directory], &Manifests::default());
    let written = directory
        .ancestors()
        .map(|above| above.join(NAME))
        .find(|path| path.is_file());
    let manifest = match (problems.first(), &written) {
        (Some(problem), _) => missing(NAME, problem.to_string(), "fix it: it is ignored until then"),
        (None, Some(path)) => ok(NAME, path.display().to_string()),
        (None, None) => ok(NAME, "none, and none is needed"),
    };
    let counts = manifests.of(directory);
    let named = counts.and_then(|manifest| manifest.compile_commands.as_deref());
    let path = named
        .map(compile_commands::file_at)
        .or_else(|| compile_commands::find(directory));
    let commands = match path {
        None => note(
            COMMANDS,
            "no compile_commands.json here, above, or in build*/",
            "without it, macros and include directories are taken from gridfuse.toml and -I; CMake writes one with \
             -DCMAKE_EXPORT_COMPILE_COMMANDS=ON, other builds with `bear -- make`",
        ),
        Some(path) => {
            let found = compile_commands::read(&path);
            let sources = |suffix: &str| {
                let files = found.commands.keys();
                files
                    .filter(|file| file.extension().is_some_and(|own| own == suffix))
                    .count()
            };
            let text = format!(
                "{}: {} files, {} of them .cu",
                path.display(),
                found.commands.len(),
                sources("cu")
            );
            match found.problems.first() {
                None => ok(COMMANDS, text),
                Some(problem) => note(COMMANDS, text, format!("an entry is left out: {problem}")),
            }
        }
    };
    (
        vec![manifest, commands],
        counts.and_then(|manifest| manifest.runner.clone()),
    )
}
