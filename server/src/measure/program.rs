//! Which files a measured program consists of, and their texts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gridfuse_analysis::db::{SourceFile, Workspace};
use gridfuse_analysis::resolve::included_files;
use gridfuse_codeactions::edit::{TextEdit, apply_to_text};

use crate::cli::Project;
use crate::files::is_source;
use crate::manifest::ProjectBuild;

/// The files of a program: what `main` includes; where the project says how it is built, all of its sources.
pub fn files(project: &Project, main: &Path) -> Result<Vec<SourceFile>, String> {
    let db = project.host.db();
    let main = project
        .host
        .file(main)
        .ok_or_else(|| format!("cannot read {}", main.display()))?;
    let Some(build) = &project.build else {
        return Ok(included_files(db, main).to_vec());
    };
    let all = Workspace::get(db).files(db);
    let own = all.iter().filter(|(path, _)| path.starts_with(&build.root) && is_source(path));
    Ok(own.map(|(_, file)| *file).collect())
}

/// Their texts, with the edits of the instrumentation, by path in the user's tree.
pub fn texts(
    project: &Project,
    files: &[SourceFile],
    edits: &BTreeMap<PathBuf, Vec<TextEdit>>,
) -> Result<BTreeMap<PathBuf, String>, String> {
    let db = project.host.db();
    let text = |file: SourceFile| {
        let (path, text) = (file.path(db), file.text(db));
        let edits = edits.get(path).map_or(&[][..], Vec::as_slice);
        let text = apply_to_text(path, &text, edits).map_err(|error| error.to_string())?;
        Ok((path.to_path_buf(), text))
    };
    files.iter().map(|file| text(*file)).collect()
}

/// The flags with which `compile_commands.json` has a file compiled, as nvcc's; none when it isn't certain that they are its own.
/// Where it's compiled in several ways, the first one counts.
pub fn flags(project: &Project, main: &Path) -> Vec<String> {
    use gridfuse_analysis::compile::{DefaultStream, MacroFlag, compilation};
    let db = project.host.db();
    let Some(file) = project.host.file(main) else {
        return Vec::new();
    };
    let compilation = compilation(db, file);
    let Some(command) = compilation.commands.first().filter(|_| compilation.certain()) else {
        return Vec::new();
    };
    let mut flags = Vec::new();
    for flag in &command.macros {
        flags.push(match flag {
            MacroFlag::Define(line) => format!("-D{}", definition(line)),
            MacroFlag::Undefine(name) => format!("-U{name}"),
        });
    }
    if command.default_stream == DefaultStream::PerThread {
        flags.push("--default-stream=per-thread".to_owned());
    }
    flags
}

/// `F(x) x + 1`, as it stands behind `#define`, as it stands behind `-D`: `F(x)=x + 1`.
fn definition(line: &str) -> String {
    let name_end = line.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(line.len());
    let end = match line[name_end..].find(')') {
        Some(close) if line[name_end..].starts_with('(') => name_end + close + 1,
        _ => name_end,
    };
    format!("{}={}", &line[..end], line[end..].trim_start())
}

/// Include directories and files that come first, from the same place.
pub fn includes(project: &Project, main: &Path) -> (Vec<PathBuf>, Vec<PathBuf>) {
    use gridfuse_analysis::compile::compilation;
    let db = project.host.db();
    let Some(file) = project.host.file(main) else {
        return (Vec::new(), Vec::new());
    };
    let compilation = compilation(db, file);
    match compilation.commands.first().filter(|_| compilation.certain()) {
        Some(command) => (command.include_dirs.clone(), command.forced_includes.clone()),
        None => (Vec::new(), Vec::new()),
    }
}

/// Says why a project's own build can't be measured, if it can't.
pub fn fits(build: &ProjectBuild, main: &Path) -> Result<(), String> {
    if main.starts_with(&build.root) {
        Ok(())
    } else {
        Err(format!(
            "{} is outside of {}, which gridfuse.toml has the command build",
            main.display(),
            build.root.display()
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::definition;

    #[test]
    fn macros_on_the_command_line() {
        assert_eq!(definition("A 1"), "A=1");
        assert_eq!(definition("C(x) x + 1"), "C(x)=x + 1");
        assert_eq!(definition("D (1)"), "D=(1)");
        assert_eq!(definition("E "), "E=");
        assert_eq!(definition(""), "=");
    }
}
