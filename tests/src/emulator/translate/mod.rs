//! The source pass: turns CUDA into C++ that a host compiler accepts and the emulator's runtime executes.
//!
//! It works on tokens, so that macros' bodies are translated like other code, and it keeps lines: what the compiler says, and
//! where an access of the running program comes from, is a line of the original. What it doesn't know it refuses.

mod asm;
mod declaration;
mod edits;
mod globals;
mod include;
mod kernels;
mod launch;
mod look;
mod qualifiers;
mod shared;
mod splice;
mod statics;
mod stream;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::program::Program;
use edits::Edits;
use kernels::Kernels;
use launch::literal;
use qualifiers::Qualifiers;
use stream::{File, Stream};

pub use include::include_of_line;

/// The header that every translated unit begins with.
pub const HEADER: &str = "gridfuse_emulator.hpp";

/// Something that the pass refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// What it is.
    pub what: String,
}

impl Unsupported {
    fn at(file: &str, line: usize, what: &str) -> Unsupported {
        Unsupported {
            file: file.to_owned(),
            line,
            what: what.to_owned(),
        }
    }
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Unsupported { file, line, what } = self;
        write!(f, "{file}:{line}: the emulator doesn't support {what}")
    }
}

impl std::error::Error for Unsupported {}

/// A translated program: files of one directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Translation {
    /// Names and texts.
    pub files: Vec<(String, String)>,
    /// The names of those to compile.
    pub units: Vec<String>,
}

/// Translates a program, file by file.
pub fn separate(program: &Program) -> Result<Translation, Unsupported> {
    let program = &look::without(&splice::joined(program));
    let mut pass = Pass::new(program);
    let mut files = Vec::new();
    for path in program.files().keys() {
        let mut text = String::new();
        if program.units().contains(path) {
            let _ = writeln!(text, "#include \"{HEADER}\"");
        }
        let _ = writeln!(text, "#line 1 {}", literal(&shown(path)));
        text.push_str(&pass.file(path, &mut Includes::Mirrored)?);
        files.push((pass.mirrored(path), text));
    }
    Ok(Translation {
        files,
        units: program.units().iter().map(|unit| pass.mirrored(unit)).collect(),
    })
}

/// Translates several programs of one unit each into one unit, each in a namespace: the compiler then reads what they
/// include once. The result takes the number of the program that shall run as its first argument.
///
/// `None` if some program can't stand in a namespace; that has nothing to do with whether it can be translated.
pub fn together(programs: &[&Program]) -> Result<Option<Translation>, Unsupported> {
    let mut headers = BTreeSet::new();
    let mut runtime = String::new();
    let mut body = String::new();
    let mut calls = String::new();
    for (index, program) in programs.iter().enumerate() {
        let [unit] = program.units() else {
            return Ok(None);
        };
        let program = &look::without(&splice::joined(program));
        let mut pass = Pass::new(program);
        let mut inlined = Inlined {
            runtime,
            ..Inlined::default()
        };
        let text = pass.inlined(unit, &mut inlined)?;
        if inlined.global || !inlined.main {
            return Ok(None);
        }
        headers.append(&mut inlined.headers);
        runtime = std::mem::take(&mut inlined.runtime);
        let undefine = inlined.undefine();
        let _ = write!(body, "namespace emu_program_{index} {{\n{text}\n}}\n{undefine}");
        let _ = writeln!(
            calls,
            "    if (number == {index}) return emu_call(emu_program_{index}::emu_main, argc, argv);"
        );
    }
    let mut text = format!("#include \"{HEADER}\"\n#include <cstdlib>\n");
    for header in headers {
        // Some are for other systems, behind conditions that aren't here any more.
        let _ = write!(text, "#if __has_include({header})\n#include {header}\n#endif\n");
    }
    text.push_str(&runtime);
    text.push_str(&body);
    text.push_str(DISPATCH);
    let _ = write!(
        text,
        "int main(int argc, char** argv) {{\n    if (argc < 2) return 2;\n    const int number = std::atoi(argv[1]);\n    \
         argv[1] = argv[0];\n    ++argv;\n    --argc;\n{calls}    return 2;\n}}\n"
    );
    let name = "programs.cpp".to_owned();
    Ok(Some(Translation {
        files: vec![(name.clone(), text)],
        units: vec![name],
    }))
}

/// Calls a `main` of any signature.
const DISPATCH: &str = "#line 1 \"programs.cpp\"
static int emu_call(int (*program)(), int, char**) { return program(); }
static int emu_call(int (*program)(int, char**), int argc, char** argv) { return program(argc, argv); }
static int emu_call(int (*program)(int, const char**), int argc, char** argv) {
    return program(argc, const_cast<const char**>(argv));
}
";

fn shown(path: &Path) -> String {
    path.to_string_lossy().replace('\\', "/")
}

struct Pass<'p> {
    program: &'p Program,
    kernels: Kernels,
    qualifiers: Qualifiers,
    number: usize,
    mirrored: BTreeMap<&'p Path, String>,
    files: BTreeMap<&'p Path, Rc<File<'p>>>,
}

/// What becomes of `#include`s of the program's own files.
enum Includes<'i> {
    /// They include the translated file.
    Mirrored,
    /// The translated text takes their place.
    Inlined(&'i mut Inlined),
}

/// What was met while inlining.
#[derive(Default)]
struct Inlined {
    headers: BTreeSet<String>,
    /// The runtime header of rewritten code, if it was included. It needs nothing of the programs, so one will do.
    runtime: String,
    macros: BTreeSet<String>,
    once: BTreeSet<PathBuf>,
    open: Vec<PathBuf>,
    /// Something that means another thing in a namespace.
    global: bool,
    main: bool,
}

impl Inlined {
    /// Directives that forget all macros.
    fn undefine(&self) -> String {
        self.macros.iter().map(|name| format!("#undef {name}\n")).collect()
    }
}

impl<'p> Pass<'p> {
    fn new(program: &'p Program) -> Pass<'p> {
        let mut kernels = Kernels::default();
        let mut mirrored = BTreeMap::new();
        let mut files = BTreeMap::new();
        let mut qualifiers = Qualifiers::default();
        for (path, text) in program.files() {
            let file = File::new(include::whole(text));
            qualifiers.add(&file);
            files.insert(path.as_path(), Rc::new(file));
        }
        for (number, (path, file)) in files.iter().enumerate() {
            kernels.add(number, &file.code, &qualifiers);
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            mirrored.insert(*path, format!("{number}_{name}.hpp"));
        }
        for unit in program.units() {
            if let Some(name) = mirrored.get_mut(unit.as_path()) {
                name.replace_range(name.len() - 3.., "cpp");
            }
        }
        Pass {
            program,
            kernels,
            qualifiers,
            number: 0,
            mirrored,
            files,
        }
    }

    fn mirrored(&self, path: &Path) -> String {
        self.mirrored.get(path).cloned().unwrap_or_default()
    }

    /// Translates one file.
    fn file(&mut self, path: &Path, includes: &mut Includes<'_>) -> Result<String, Unsupported> {
        let Some(file) = self.files.get(path).cloned() else {
            return Ok(String::new());
        };
        let name = shown(path);
        let mut edits = Edits::default();
        self.stream(&file.code, &name, &mut edits)?;
        for directive in &file.directives {
            if let Some(body) = directive.body() {
                self.stream(&body, &name, &mut edits)?;
            }
        }
        if let Includes::Inlined(inlined) = includes {
            inlined.global |= words::global(&file.code);
            inlined.main |= words::rename_main(&file.code, &mut edits);
            let macros = file.directives.iter().filter_map(|one| one.macro_name());
            inlined.macros.extend(macros.map(str::to_owned));
        }
        include::translate(self, path, &file, includes, &mut edits)?;
        Ok(edits.apply(file.code.text()))
    }

    /// Translates a file, and in it what it includes.
    fn inlined(&mut self, path: &Path, inlined: &mut Inlined) -> Result<String, Unsupported> {
        if inlined.once.contains(path) {
            return Ok(String::new());
        }
        inlined.open.push(path.to_owned());
        let text = self.file(path, &mut Includes::Inlined(inlined))?;
        inlined.open.pop();
        Ok(format!("#line 1 {}\n{text}", literal(&shown(path))))
    }

    fn stream(&mut self, stream: &Stream<'_>, file: &str, edits: &mut Edits) -> Result<(), Unsupported> {
        launch::translate(stream, file, &self.kernels, edits)?;
        shared::translate(stream, file, &mut self.number, edits)?;
        globals::translate(stream, file, &self.qualifiers, &mut self.number, edits)?;
        statics::refuse(stream, file, &self.qualifiers)?;
        asm::translate(stream, file, edits)?;
        words::translate(stream, edits);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
