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
        let mut name = wanted.to_owned();
        let mut number = 2;
        while self.used.contains(&name) || self.files.iter().any(|used| used.contains(&name)) {
            name = if wanted.ends_with(|c: char| c.is_ascii_digit()) {
                format!("{wanted}_{number}")
            } else {
                format!("{wanted}{number}")
            };
            number += 1;
        }
        self.used.insert(name.clone());
        name
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
                todo.extend(lex::identifiers(&item.body).map(str::to_owned));
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

/// English plural, for a variable that collects: `expand` gives `expands`, `relax` gives `relaxes`; so does what `coarsen` has made
/// of them. What looks like a plural already says what is in it: `count_points` gives `count_points_launches`.
pub fn plural(name: &str) -> String {
    let name = name.strip_suffix("_coarsened").unwrap_or(name);
    let ends = |suffixes: &[&str]| suffixes.iter().any(|s| name.ends_with(s));
    if ends(&["ss", "x", "z", "ch", "sh"]) {
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
    }

    #[test]
    fn words() {
        assert_eq!(plural("relax"), "relaxes");
        assert_eq!(plural("process"), "processes");
        assert_eq!(plural("count_points"), "count_points_launches");
        assert_eq!(plural("expand"), "expands");
        assert_eq!(plural("apply"), "applies");
        assert_eq!(plural("relax_coarsened"), "relaxes");
        assert_eq!(plural("process"), "processes");
        assert_eq!(plural("count_points"), "count_points_launches");
        assert_eq!(camel("expand_row"), "ExpandRow");
        assert_eq!(camel("expandRow"), "ExpandRow");
    }
}
