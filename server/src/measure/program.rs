//! Which files a measured program consists of, and their texts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gridfuse_analysis::base::command::DefaultStream;
use gridfuse_analysis::base::command::MacroFlag;
use gridfuse_analysis::base::compile::compilation;
use gridfuse_analysis::base::db::{SourceFile, Workspace};
use gridfuse_analysis::hir::included::included_files;
use gridfuse_codeactions::api::source_edit::TextEdit;
use gridfuse_codeactions::api::source_edit::apply_to_text;

use crate::cli::Project;
use crate::files::is_source;

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
    let own = all
        .iter()
        .filter(|(path, _)| path.starts_with(&build.root) && is_source(path));
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

/// How `compile_commands.json` has a file compiled.
#[derive(Debug, Default)]
pub struct Flags {
    /// As nvcc's.
    pub flags: Vec<String>,
    /// Directories in which `#include` looks.
    pub include_dirs: Vec<PathBuf>,
    /// Files that are included before the first line.
    pub forced_includes: Vec<PathBuf>,
}

/// The flags of a file; none when it isn't certain that they are its own. Where it's compiled in several ways, the first one counts.
pub fn flags(project: &Project, main: &Path) -> Flags {
    let db = project.host.db();
    let Some(file) = project.host.file(main) else {
        return Flags::default();
    };
    let compilation = compilation(db, file);
    let Some(command) = compilation.commands.first().filter(|_| compilation.certain()) else {
        return Flags::default();
    };
    let macros = command.macros.iter().map(|flag| match flag {
        MacroFlag::Define(line) => format!("-D{}", definition(line)),
        MacroFlag::Undefine(name) => format!("-U{name}"),
    });
    let per_thread = command.default_stream == DefaultStream::PerThread;
    let stream = per_thread.then(|| "--default-stream=per-thread".to_owned());
    Flags {
        flags: macros.chain(stream).collect(),
        include_dirs: command.include_dirs.clone(),
        forced_includes: command.forced_includes.clone(),
    }
}

/// `F(x) x + 1`, as it stands behind `#define`, as it stands behind `-D`: `F(x)=x + 1`.
fn definition(line: &str) -> String {
    let name_end = line
        .find(|c: char| !(c.is_alphanumeric() || c == '_'))
        .unwrap_or(line.len());
    let end = match line[name_end..].find(')') {
        Some(close) if line[name_end..].starts_with('(') => name_end + close + 1,
        _ => name_end,
    };
    format!("{}={}", &line[..end], line[end..].trim_start())
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
