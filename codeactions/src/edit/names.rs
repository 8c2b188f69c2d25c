//! Fresh names: never one that occurs anywhere in the files concerned, macros included.

use std::collections::{HashMap, HashSet};

use gridfuse_analysis::base::db::{Db, SourceFile};
use gridfuse_analysis::base::preprocess::{MacroState, preprocessed};
use gridfuse_analysis::hir::included::included_files;
use gridfuse_analysis::hir::mentions::{FileWords, file_words};
use gridfuse_analysis::hir::visible::visible_names;

use crate::edit::lex;
use crate::runtime::is_header;

/// The names in use, to which picked names are added.
#[derive(Default)]
pub struct Names {
    used: HashSet<String>,
    files: Vec<FileWords>,
    given: HashMap<String, String>,
    seen: HashSet<SourceFile>,
}

impl Names {
    /// The identifiers in `file` and in everything that it includes but the runtime header, whose names are in a namespace.
    pub fn add_file(&mut self, db: &dyn Db, file: SourceFile) {
        for file in included_files(db, file) {
            let ours = is_header(db, *file);
            if !ours && self.seen.insert(*file) {
                self.files.push(file_words(db, *file));
            }
        }
    }

    /// Marks a name as used.
    pub fn add(&mut self, name: &str) {
        self.used.insert(name.to_owned());
    }

    /// The name that something has got before, by what it is; or a fresh one, and whether it is that.
    pub fn fresh_for(&mut self, what: String, wanted: &str) -> (String, bool) {
        if let Some(name) = self.given.get(&what) {
            return (name.clone(), false);
        }
        let name = self.fresh(wanted);
        self.given.insert(what, name.clone());
        (name, true)
    }

    /// `wanted`, or `wanted` with a number; from now on in use.
    pub fn fresh(&mut self, wanted: &str) -> String {
        let taken = |name: &str| self.used.contains(name) || self.files.iter().any(|used| used.contains(name));
        let name = numbered(wanted, taken);
        self.used.insert(name.clone());
        name
    }

    /// The same for a variable or parameter of some functions, which others may have as well: each by its file and its text.
    pub fn fresh_in(&mut self, db: &dyn Db, functions: &[(SourceFile, String)], wanted: &str) -> String {
        let mut words: HashSet<String> = HashSet::new();
        let mut files: HashSet<SourceFile> = HashSet::new();
        for (file, text) in functions {
            words.extend(words_with_macros(db, *file, text));
            files.insert(*file);
        }
        let is_macro = |name: &str| files.iter().any(|file| is_macro(db, *file, name));
        let name = numbered(wanted, |name| {
            self.used.contains(name) || words.contains(name) || is_macro(name)
        });
        self.used.insert(name.clone());
        name
    }
}

/// The first of `wanted`, `wanted2`, `wanted3` and so on that isn't taken.
fn numbered(wanted: &str, taken: impl Fn(&str) -> bool) -> String {
    let mut name = wanted.to_owned();
    let mut number = 2;
    while taken(&name) {
        name = with_number(wanted, number);
        number += 1;
    }
    name
}

/// The name that the second, third and so on of a kind gets.
pub fn with_number(wanted: &str, number: u32) -> String {
    if wanted.ends_with(|c: char| c.is_ascii_digit()) {
        format!("{wanted}_{number}")
    } else {
        format!("{wanted}{number}")
    }
}

/// The identifiers of a piece of code in `file`, and those of the macros that it uses, with all their definitions.
pub fn words_with_macros(db: &dyn Db, file: SourceFile, code: &str) -> HashSet<String> {
    let mut found: HashSet<String> = HashSet::new();
    let mut todo: Vec<String> = lex::identifiers(code).map(str::to_owned).collect();
    let states = &preprocessed(db, file).states;
    while let Some(word) = todo.pop() {
        if found.contains(&word) {
            continue;
        }
        for (_, state) in states.get(&word).into_iter().flatten() {
            if let MacroState::Defined(item) = state {
                // A body may be megabytes of the same few names.
                let mut last = "";
                for name in lex::identifiers(&item.body) {
                    if name != last && !found.contains(name) {
                        todo.push(name.to_owned());
                    }
                    last = name;
                }
            }
        }
        found.insert(word);
    }
    found
}

/// A name of that kind would be replaced: a macro has it somewhere in `file`.
pub fn is_macro(db: &dyn Db, file: SourceFile, name: &str) -> bool {
    let names = visible_names(db, file);
    names.macros.contains_key(name) || names.ambiguous_macros.contains(name)
}

/// `wanted`, or that with `launch_` in front of it, so that it is none of the names that are `taken` and no macro of `file`.
pub fn untaken(db: &dyn Db, file: SourceFile, wanted: &str, taken: impl Fn(&str) -> bool) -> String {
    let mut name = wanted.to_owned();
    while taken(&name) || is_macro(db, file, &name) {
        name.insert_str(0, "launch_");
    }
    name
}

/// English plural, for a variable that collects: `expand` gives `expands`, `relax` gives `relaxes`, `child` gives `children`; so does what
/// `coarsen` has made of them. What looks like a plural already says what is in it: `count_points` gives `count_points_launches`.
pub fn plural(name: &str) -> String {
    let name = name.strip_suffix("_coarsened").unwrap_or(name);
    let ends = |suffixes: &[&str]| suffixes.iter().any(|s| name.ends_with(s));
    if ends(&["child", "Child"]) {
        format!("{name}ren")
    } else if ends(&["ss", "x", "z", "ch", "sh"]) {
        format!("{name}es")
    } else if ends(&["s"]) {
        format!("{name}_launches")
    } else if name.ends_with('y') && !ends(&["ay", "ey", "oy", "uy"]) && name.len() > 1 {
        format!("{}ies", &name[..name.len() - 1])
    } else if name.ends_with(|c: char| c.is_ascii_digit() || c == '_') {
        format!("{name}_launches")
    } else {
        format!("{name}s")
    }
}

/// `CamelCase` of a `snake_case` or `camelCase` name: `expand_row` gives `ExpandRow`.
pub fn camel(name: &str) -> String {
    name.split('_')
        .filter(|part| !part.is_empty())
        .map(|part| {
            let mut chars = part.chars();
            chars
                .next()
                .map_or(String::new(), |c| c.to_ascii_uppercase().to_string() + chars.as_str())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use gridfuse_analysis::host::Host;

    use super::*;

    #[test]
    fn fresh_names() {
        let mut host = Host::new();
        host.set_file(Path::new("/b.cuh"), "#define expand_body2(x) expand_args(x)\n");
        let file = host.set_file(Path::new("/a.cu"), "#include \"b.cuh\"\nint expand_body;\n");
        let mut names = Names::default();
        names.add_file(host.db(), file);
        assert_eq!(names.fresh("expand_body"), "expand_body3");
        assert_eq!(names.fresh("expand_args"), "expand_args2");
        assert_eq!(names.fresh("free"), "free");
        assert_eq!(names.fresh("free"), "free2");
        let function = [(file, "int f(int works) { return expand_body2(works); }".to_owned())];
        let mut local = |wanted: &str| names.fresh_in(host.db(), &function, wanted);
        assert_eq!(local("expand_body"), "expand_body");
        assert_eq!(local("works"), "works2");
        assert_eq!(local("expand_args"), "expand_args3");
    }

    #[test]
    fn words() {
        assert_eq!(plural("relax"), "relaxes");
        assert_eq!(plural("process"), "processes");
        assert_eq!(plural("count_points"), "count_points_launches");
        assert_eq!(plural("expand"), "expands");
        assert_eq!(plural("visitChild"), "visitChildren");
        assert_eq!(plural("apply"), "applies");
        assert_eq!(plural("relax_coarsened"), "relaxes");
        assert_eq!(plural("process"), "processes");
        assert_eq!(plural("count_points"), "count_points_launches");
        assert_eq!(camel("expand_row"), "ExpandRow");
        assert_eq!(camel("expandRow"), "ExpandRow");
    }
}
