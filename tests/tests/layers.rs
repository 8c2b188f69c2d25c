//! The layers of `analysis` and `codeactions`: each folder uses only those before it, and within one no circle has more than five files.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use gridfuse_tests::workspace;
use syn::visit::{Visit, visit_item_mod, visit_path};
use syn::{Attribute, Item, ItemMod, ItemUse, UseTree};

/// The layers of a crate: its folders and files beside `lib.rs`, from the one that uses no other to the one that none uses.
struct Layers {
    krate: &'static str,
    order: &'static [&'static str],
}

const ANALYSIS: Layers = Layers {
    krate: "analysis",
    order: &["base", "hir", "facts", "diagnostics", "host"],
};

const CODEACTIONS: Layers = Layers {
    krate: "codeactions",
    order: &[
        "runtime",
        "api",
        "edit",
        "facts",
        "emit",
        "draft",
        "transforms",
        "model",
        "undo",
        "handlers",
    ],
};

/// The most files of a circle.
const CIRCLE: usize = 5;

/// Where a module or an item is: `["facts", "launch", "Launchers"]`.
type Name = Vec<String>;

/// The paths that a file uses.
#[derive(Default)]
struct Uses {
    /// Its module.
    module: Name,
    /// What it uses, by full names.
    used: BTreeSet<Name>,
    /// What it makes known under another name: that, and what it means.
    exports: BTreeMap<Name, Name>,
    /// The modules within it.
    children: BTreeSet<String>,
    /// What it defines itself.
    defined: BTreeSet<String>,
}

impl Uses {
    fn of(module: Name, text: &str) -> Uses {
        let file = syn::parse_file(text).expect("Rust");
        let mut found = Uses {
            module,
            ..Uses::default()
        };
        for item in &file.items {
            let name = match item {
                Item::Const(item) => &item.ident,
                Item::Enum(item) => &item.ident,
                Item::Fn(item) => &item.sig.ident,
                Item::Static(item) => &item.ident,
                Item::Struct(item) => &item.ident,
                Item::Trait(item) => &item.ident,
                Item::Type(item) => &item.ident,
                Item::Mod(child) => {
                    found.children.insert(child.ident.to_string());
                    continue;
                }
                _ => continue,
            };
            found.defined.insert(name.to_string());
        }
        found.visit_file(&file);
        found
    }

    /// The full name of what is written as `path`; `None` when it belongs to another crate, or is a name of the file's own.
    fn full(&self, path: &[String]) -> Option<Name> {
        let first = path.first()?.as_str();
        let supers = path.iter().take_while(|part| *part == "super").count();
        let (mut name, rest) = match first {
            "crate" => (Vec::new(), &path[1..]),
            "self" => (self.module.clone(), &path[1..]),
            "super" => (
                self.module[..self.module.len().checked_sub(supers)?].to_vec(),
                &path[supers..],
            ),
            _ if self.children.contains(first) => (self.module.clone(), path),
            _ => return None,
        };
        name.extend_from_slice(rest);
        Some(name)
    }

    fn note_use(&mut self, prefix: &mut Vec<String>, tree: &UseTree, exported: bool) {
        let (last, known_as) = match tree {
            UseTree::Path(path) => {
                prefix.push(path.ident.to_string());
                self.note_use(prefix, &path.tree, exported);
                prefix.pop();
                return;
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.note_use(prefix, tree, exported);
                }
                return;
            }
            UseTree::Name(name) => (name.ident.to_string(), name.ident.to_string()),
            UseTree::Rename(rename) => (rename.ident.to_string(), rename.rename.to_string()),
            // The module itself is what is meant.
            UseTree::Glob(_) => ("self".to_owned(), "*".to_owned()),
        };
        let mut path = prefix.clone();
        if last != "self" {
            path.push(last);
        }
        let Some(target) = self.full(&path) else { return };
        if exported {
            let mut known = self.module.clone();
            known.push(known_as);
            self.exports.insert(known, target);
        } else {
            self.used.insert(target);
        }
    }
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let mut test = false;
        if attribute.path().is_ident("cfg") {
            let _ = attribute.parse_nested_meta(|meta| {
                test |= meta.path.is_ident("test");
                Ok(())
            });
        }
        test
    })
}

impl<'ast> Visit<'ast> for Uses {
    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        if !is_for_tests(&item.attrs) {
            visit_item_mod(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        let exported = !matches!(item.vis, syn::Visibility::Inherited);
        self.note_use(&mut Vec::new(), &item.tree, exported);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let parts: Vec<String> = path.segments.iter().map(|part| part.ident.to_string()).collect();
        if parts.len() > 1 {
            self.used.extend(self.full(&parts));
        }
        visit_path(self, path);
    }
}

/// The files of a crate by their modules, and what each uses.
struct Crate {
    files: BTreeMap<Name, Uses>,
}

impl Crate {
    /// Texts by their paths below `src`.
    fn new(texts: &[(String, String)]) -> Crate {
        let files = texts.iter().map(|(path, text)| {
            let mut module: Name = path.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
            if matches!(module.last().map(String::as_str), Some("mod" | "lib")) {
                module.pop();
            }
            (module.clone(), Uses::of(module, text))
        });
        Crate { files: files.collect() }
    }

    /// The file that a name leads to, through what others make known.
    fn file_of(&self, name: &[String], steps: usize) -> Option<&Name> {
        let (module, uses) = (0..=name.len())
            .rev()
            .find_map(|length| self.files.get_key_value(&name[..length]))?;
        let rest = &name[module.len()..];
        let next = rest.first().filter(|next| steps > 0 && !uses.defined.contains(*next));
        if let Some(next) = next {
            let known_as = |name: &str| {
                let mut known = module.clone();
                known.push(name.to_owned());
                known
            };
            if let Some(target) = uses.exports.get(&known_as(next)) {
                let target = [target, &rest[1..]].concat();
                return self.file_of(&target, steps - 1);
            }
            if let Some(target) = uses.exports.get(&known_as("*")) {
                return self.file_of(&[target, rest].concat(), steps - 1);
            }
        }
        Some(module)
    }

    /// `a -> b` for each file `a` of a layer that uses something of a later one, or makes it known.
    fn arrows_back(&self, order: &[&str]) -> Vec<String> {
        let place = |module: &[String]| {
            order
                .iter()
                .position(|layer| module.first().is_some_and(|own| own == layer))
        };
        let mut found = Vec::new();
        for (module, uses) in &self.files {
            let Some(own) = place(module) else {
                let known = module.is_empty() || module[0] == "tests";
                assert!(known, "`{}` is in no layer: see {}", module.join("::"), file!());
                continue;
            };
            for used in uses.used.iter().chain(uses.exports.values()) {
                if place(used).is_some_and(|other| other > own) {
                    found.push(format!("{} -> {}", module.join("::"), used.join("::")));
                }
            }
        }
        found
    }

    /// The files that lead to themselves through others, circle by circle.
    fn circles(&self) -> Vec<Vec<String>> {
        let arrows: BTreeMap<&Name, BTreeSet<&Name>> = self
            .files
            .iter()
            .map(|(module, uses)| {
                let used = uses.used.iter().filter_map(|name| self.file_of(name, 8));
                (module, used.filter(|used| *used != module).collect())
            })
            .collect();
        let reached = |from: &Name| {
            let mut seen: BTreeSet<&Name> = BTreeSet::new();
            let mut pending: Vec<&Name> = arrows[from].iter().copied().collect();
            while let Some(module) = pending.pop() {
                if seen.insert(module) {
                    pending.extend(&arrows[module]);
                }
            }
            seen
        };
        let reach: BTreeMap<&Name, BTreeSet<&Name>> = arrows.keys().map(|module| (*module, reached(module))).collect();
        let mut circles: BTreeSet<Vec<String>> = BTreeSet::new();
        for (module, reached) in reach.iter().filter(|(module, reached)| reached.contains(*module)) {
            let both = reached.iter().filter(|other| reach[*other].contains(module));
            circles.insert(both.map(|module| module.join("::")).collect());
        }
        circles.into_iter().collect()
    }
}

fn sources(krate: &str) -> Vec<(String, String)> {
    fn read(folder: &Path, below: &str, found: &mut Vec<(String, String)>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = format!("{below}{}", path.file_name().unwrap().to_str().unwrap());
            if path.is_dir() {
                read(&path, &format!("{name}/"), found);
            } else if name.ends_with(".rs") {
                found.push((name, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    let mut found = Vec::new();
    read(&workspace::root().join(krate).join("src"), "", &mut found);
    assert!(found.len() > 50, "{krate}: {}", found.len());
    found
}

fn check(layers: &Layers) {
    let krate = Crate::new(&sources(layers.krate));
    let back = krate.arrows_back(layers.order);
    assert!(
        back.is_empty(),
        "a layer of `{}` uses a later one. The order is {}. Move what both need into the earlier layer:\n{}",
        layers.krate,
        layers.order.join(", "),
        back.join("\n")
    );
    for circle in krate.circles() {
        let one = circle
            .iter()
            .all(|file| file.split("::").next() == circle[0].split("::").next());
        assert!(one, "a circle between layers of `{}`: {circle:#?}", layers.krate);
        assert!(
            circle.len() <= CIRCLE,
            "`{}`: {} files use each other in a circle; {CIRCLE} may. Put what several of them need into a file of its own:\n{circle:#?}",
            layers.krate,
            circle.len()
        );
    }
}

#[test]
fn layers_of_analysis() {
    check(&ANALYSIS);
}

#[test]
fn layers_of_codeactions() {
    check(&CODEACTIONS);
}

/// Arrows and circles that are planted are found: in `use` lines, groups, paths within code, through what a module makes known.
#[test]
fn planted_arrows_are_found() {
    let text = |parts: &[(&str, &str)]| -> Vec<(String, String)> {
        parts
            .iter()
            .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()))
            .collect()
    };
    let back = |code: &str| {
        let parts = [
            ("base/mod.rs", "pub mod span;"),
            ("base/span.rs", code),
            ("hir/mod.rs", "pub fn f() {}"),
        ];
        Crate::new(&text(&parts)).arrows_back(&["base", "hir"])
    };
    for code in [
        "use crate::hir::f;",
        "use crate::{base::x, hir::f as g};",
        "pub use crate::hir::*;",
        "fn g() { crate::hir::f(); }",
        "fn g() -> Vec<super::super::hir::T> { Vec::new() }",
    ] {
        assert_eq!(back(code).len(), 1, "{code}");
    }
    for code in [
        "use std::hir::f;",
        "use super::x;",
        "#[cfg(test)] mod tests { use crate::hir::f; }",
        "/// [`crate::hir::f`]\nfn g() {}",
    ] {
        assert!(back(code).is_empty(), "{code}");
    }

    let circle = Crate::new(&text(&[
        (
            "facts/mod.rs",
            "mod a; mod b; mod c; mod d; pub use b::Of; pub use d::*; fn own() {}",
        ),
        ("facts/d.rs", "pub struct Plain;"),
        ("facts/a.rs", "use crate::facts::{Of, Plain};"),
        ("facts/b.rs", "fn f() { super::c::g() }"),
        ("facts/c.rs", "use super::a::x;"),
    ]));
    assert_eq!(circle.circles(), [["facts::a", "facts::b", "facts::c"]]);
}

#[test]
#[should_panic(expected = "is in no layer")]
fn a_file_in_no_layer_is_found() {
    let stray = [("extra.rs".to_owned(), String::new())];
    Crate::new(&stray).arrows_back(ANALYSIS.order);
}
