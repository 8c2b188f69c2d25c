//! The runtime header: its parts, and what becomes of one that stands in the project already.

use std::collections::{BTreeMap, BTreeSet};

use gridfuse_analysis::base::settings::Settings;

use super::{Rewritten, program, refuses_files, rewrite, rewrite_files, rewrite_in};
use crate::handlers::REWRITES;
use crate::runtime::{HEADER, HEADER_NAME, Installed, PARTS, Part, PartSet, VERSION, header};

const LAUNCH: &str = "child<<<(count + 31) / 32, 32>>>(out, begin, count);";

fn with_needs(name: &str) -> PartSet {
    PartSet::of(|part| part.name == name)
}

fn names(set: PartSet) -> Vec<&'static str> {
    set.parts().map(|part| part.name).collect()
}

/// The words behind `prefix` in a text.
fn words_behind<'t>(text: &'t str, prefix: &'t str) -> impl Iterator<Item = &'t str> {
    text.match_indices(prefix).map(move |(at, _)| {
        let rest = &text[at + prefix.len()..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        &rest[..end.unwrap_or(rest.len())]
    })
}

fn code_of(part: &Part) -> String {
    let lines = part.text.lines();
    lines
        .map(|line| line.split("//").next().unwrap_or("").to_owned() + "\n")
        .collect()
}

#[test]
fn every_name_is_defined_in_one_part() {
    let mut homes: BTreeMap<String, &str> = BTreeMap::new();
    for part in PARTS {
        for name in part.defines() {
            if let Some(other) = homes.insert(name.clone(), part.name) {
                panic!("{name} is defined in {other} and in {}", part.name);
            }
        }
    }
    for (name, home) in [
        ("Aggregator", "aggregate"),
        ("Aggregator<PerGridInStream", "stream"),
        ("followed_by", "stream"),
        ("kNotKnown", "stream"),
        ("launch_recursion", "recursion"),
        ("for_each_thread", "serial"),
        ("serial", "serial_atomics"),
        ("SumAt", "collect"),
        ("NestedBatch", "batch"),
        ("detail::direct_launches", "direct_launches"),
        ("detail::Front", "pool"),
    ] {
        assert_eq!(homes.get(name), Some(&home), "{name}");
    }
}

#[test]
fn parts_include_what_they_use() {
    let mut homes: BTreeMap<String, &str> = BTreeMap::new();
    for part in PARTS {
        homes.extend(part.defines().into_iter().map(|name| (name, part.name)));
    }
    let mut before: BTreeSet<&str> = BTreeSet::new();
    for part in PARTS {
        for included in part.includes() {
            assert!(
                before.contains(included),
                "{} includes {included}, which stands behind it",
                part.name
            );
        }
        before.insert(part.name);
        let there = names(with_needs(part.name));
        for word in words_behind(&code_of(part), "detail::") {
            // A template of which there are specializations alone.
            let declaration = format!("struct {word};\n");
            if with_needs(part.name).parts().any(|p| p.text.contains(&declaration)) {
                continue;
            }
            // Members of a class that has `detail` in front of it are no names of the namespace.
            let home = homes.get(&format!("detail::{word}"));
            let home = home.unwrap_or_else(|| panic!("{}: nothing defines detail::{word}", part.name));
            assert!(
                there.contains(home),
                "{} uses detail::{word} of {home}, which it doesn't include",
                part.name
            );
        }
        assert!(part.name == "version" || there.contains(&"version"), "{}", part.name);
        assert!(
            part.text
                .starts_with("// SPDX-License-Identifier: MIT OR Apache-2.0\n//\n// "),
            "{}",
            part.name
        );
        assert!(
            part.text
                .contains(&format!("\n#ifndef {0}\n#define {0}\n", part.guard())),
            "{}",
            part.name
        );
        let inline = format!("namespace gridfuse {{\ninline namespace v{VERSION} {{\n");
        assert_eq!(
            part.text.matches(&inline).count(),
            usize::from(part.name != "version"),
            "{}",
            part.name
        );
    }
    let version = format!("\n#define GRIDFUSE_VERSION {VERSION}\n");
    assert!(
        PARTS
            .iter()
            .any(|part| part.name == "version" && part.text.contains(&version))
    );
    let all = include_str!("../../runtime/gridfuse.cuh");
    for part in PARTS {
        assert!(
            all.contains(&format!("#include \"gridfuse/{}.cuh\"\n", part.name)),
            "{}",
            part.name
        );
    }
    assert_eq!(all.matches("#include").count(), PARTS.len());
}

#[test]
fn rewritten_code_names_what_the_parts_define() {
    let homes: BTreeSet<String> = PARTS.iter().flat_map(Part::defines).collect();
    for rewrite in REWRITES {
        for name in words_behind(rewrite.doc, "gridfuse::") {
            assert!(homes.contains(name), "{}: nothing defines gridfuse::{name}", rewrite.id);
        }
    }
    assert_eq!(PartSet::needed_by("gridfuse::nobody_knows(1)"), PartSet::all());
    assert_eq!(PartSet::needed_by("not_gridfuse::Batch<int>"), PartSet::NONE);
    let stream = PartSet::needed_by("gridfuse::Aggregator<gridfuse::PerGridInStream, k> ks(arena);");
    assert!(stream.holds(with_needs("stream")) && !stream.holds(with_needs("aggregate")));
    let block = PartSet::needed_by("gridfuse::Aggregator<gridfuse::PerBlock, k> ks(arena);");
    assert!(block.holds(with_needs("aggregate")) && !block.holds(with_needs("memory")));
}

#[test]
fn a_header_says_what_it_holds() {
    let some = with_needs("coarsen").with(with_needs("chain"));
    for parts in [with_needs("threshold"), some, PartSet::all()] {
        let text = header(parts);
        let intact = Installed {
            version: VERSION,
            parts,
            is_intact: true,
        };
        assert_eq!(Installed::read(&text), Some(intact));
        assert_eq!(Installed::read(&text.replace('\n', "\r\n")), Some(intact));
        let edited = text.replacen("constexpr", "inline constexpr", 1);
        let edited = Installed::read(&edited);
        assert_eq!(
            edited,
            Some(Installed {
                is_intact: false,
                ..intact
            })
        );
    }
    assert_eq!(names(with_needs("threshold")), ["version", "grid", "threshold"]);
    let unversioned = Installed::read("#ifndef GRIDFUSE_CUH\n#define GRIDFUSE_CUH\nnamespace gridfuse {\n}\n#endif\n");
    assert_eq!(unversioned.map(|there| there.version), Some(0));
    assert_eq!(Installed::read("// GRIDFUSE_CUH is somebody else's\n"), None);
    // A device's part doesn't make everybody wait for the host's headers.
    for name in [
        "serial",
        "threshold",
        "coarsen",
        "aggregate",
        "chain",
        "block_loop",
        "malloc",
        "collect",
    ] {
        let text = header(with_needs(name));
        for heavy in ["<mutex>", "<memory>", "<atomic>", "<tuple>"] {
            assert!(!text.contains(&format!("#include {heavy}")), "{name}: {heavy}");
        }
    }
}

fn rewritten(id: &str, there: &str) -> Rewritten {
    let text = program(LAUNCH);
    let files = [("a.cu", text.as_str()), (HEADER_NAME, there)];
    rewrite_files(id, &files, &[]).unwrap_or_else(|reasons| panic!("refused: {reasons:#?}"))
}

#[test]
fn a_project_gets_what_its_rewrites_need() {
    let text = program(LAUNCH);
    let first = rewrite("coarsen", &text);
    let coarsen = with_needs("coarsen");
    assert_eq!(first.files[HEADER_NAME], *header(coarsen));
    // Another one adds to it, whether the file includes it already or not.
    let both = coarsen.with(with_needs("serial"));
    let second = rewritten("threshold", &first.files[HEADER_NAME]);
    assert_eq!(second.files[HEADER_NAME], *header(both));
    let windows = header(coarsen).replace('\n', "\r\n");
    assert_eq!(
        rewritten("threshold", &windows).files[HEADER_NAME],
        header(both).replace('\n', "\r\n")
    );
    // What it has stays.
    assert_eq!(rewritten("threshold", &HEADER).files[HEADER_NAME], **HEADER);
}

#[test]
fn what_gridfuse_has_not_written_stays() {
    let text = program(LAUNCH);
    let refused = |there: &str, reason: &str| {
        refuses_files("threshold", &[("a.cu", &text), (HEADER_NAME, there)], reason);
        // Where it is included, too.
        let includes = format!("#include \"{HEADER_NAME}\"\n{text}");
        refuses_files("threshold", &[("a.cu", &includes), (HEADER_NAME, there)], reason);
    };
    let own = header(with_needs("coarsen"));
    let edited = own.replacen("constexpr", "inline constexpr", 1);
    refused(
        &edited,
        "lacks what this needs, and somebody has changed it: delete it, and it's written anew",
    );
    let enough = HEADER.replacen("constexpr", "inline constexpr", 1);
    assert_eq!(rewritten("threshold", &enough).files[HEADER_NAME], enough);
    let newer = own.replace("#define GRIDFUSE_VERSION 2\n", "#define GRIDFUSE_VERSION 3\n");
    refused(
        &newer,
        "gridfuse.cuh is of version 3, and this gridfuse writes version 2: update gridfuse",
    );
    let unversioned = "#ifndef GRIDFUSE_CUH\n#define GRIDFUSE_CUH\nnamespace gridfuse {\n}\n#endif\n";
    refused(unversioned, "revert what was rewritten with it, and delete it");
    refused("// mine: not GRIDFUSE_CUH\n", "another file named gridfuse.cuh");
}

#[test]
fn a_project_has_one_header() {
    let settings = Settings {
        header_dir: Some("/p/include".into()),
        ..Settings::default()
    };
    let in_project = |id: &str, files: &[(&str, &str)]| {
        let result = rewrite_in(&settings, id, files, &[]);
        result.unwrap_or_else(|reasons| panic!("refused: {reasons:#?}"))
    };
    let text = program(LAUNCH);
    let first = in_project("coarsen", &[("src/a.cu", &text)]);
    assert_eq!(first.files.len(), 2, "{:?}", first.files.keys());
    assert!(first.files["src/a.cu"].contains("#include \"../include/gridfuse.cuh\"\n"));
    let there = &first.files["include/gridfuse.cuh"];
    // Another directory's program uses the same file, and what the first one needs stays in it.
    let files = [("src/gpu/b.cu", text.as_str()), ("include/gridfuse.cuh", there)];
    let second = in_project("threshold", &files);
    assert_eq!(second.files.len(), 2, "{:?}", second.files.keys());
    let parts = with_needs("coarsen").with(with_needs("serial"));
    assert_eq!(second.files["include/gridfuse.cuh"], *header(parts));
    assert!(second.files["src/gpu/b.cu"].contains("#include \"../../include/gridfuse.cuh\"\n"));
}
