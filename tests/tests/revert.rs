//! What the rewrites make of programs is taken back: `revert` gives the program as it was, for programs of the
//! fixtures, every rewrite and every pair of them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use gridfuse_codeactions::api::rewrite::Undo;
use gridfuse_codeactions::handlers::launch_rewrite;
use gridfuse_tests::cli::in_parallel;
use gridfuse_tests::emulator::Program;
use gridfuse_tests::emulator::rewritten::{device_launches, offered};
use gridfuse_tests::fixture::is_asked_for;
use gridfuse_tests::workspace;

/// The programs of the fixtures: of every form of formatting and of launch, each rewritten in every way.
const PROGRAMS: [&str; 7] = [
    "allman_tabs.cu",
    "crlf.cu",
    "loop.cu",
    "namespaces.cu",
    "no_final_newline.cu",
    "template_kernels.cu",
    "unbraced_if_else.cu",
];

/// A text without what `revert` may change: white space, braces around a single statement, the stream of a launch, and a name that
/// the rewrite has given to an unnamed parameter.
fn plain(text: &str) -> String {
    let dense: String = text.split_whitespace().collect();
    dense
        .replace(",0,cudaStreamFireAndForget>>>", ">>>")
        .replace(['{', '}'], "")
}

fn programs() -> Vec<(String, Program)> {
    let mut found = Vec::new();
    let root = workspace::root().join("tests/fixtures/rewrites");
    for name in PROGRAMS.into_iter().filter(|name| is_asked_for(name)) {
        let program = Program::load(&root, &[name], &[""; 0]).unwrap_or_else(|error| panic!("{name}: {error}"));
        found.push((name.to_owned(), program));
    }
    found
}

#[test]
fn rewrites_are_taken_back() {
    let programs = programs();
    let results = in_parallel(&programs, |(name, program)| {
        let (mut exact, mut same, mut failures) = (0, 0, String::new());
        for site in device_launches(program) {
            for rewritten in offered(program, &site, |_| true) {
                let stays = |id: &&str| launch_rewrite(id).is_none_or(|rewrite| matches!(rewrite.undo, Undo::Not(_)));
                if rewritten.ids.iter().any(stays) {
                    continue;
                }
                let what = format!("{name}:{} after {}", site.line, rewritten.ids.join(", "));
                let back = match rewritten.fix("revert") {
                    Ok(back) => back,
                    Err(reasons) if reasons.contains("is taken back by hand") => continue,
                    Err(reasons) => {
                        failures += &format!("{what}: {reasons}\n");
                        continue;
                    }
                };
                let files = program.files();
                let mut equal = true;
                for (path, text) in files {
                    let now = &back.files()[path];
                    equal &= **now == **text;
                    if plain(now) != plain(text) {
                        failures += &format!("{what}: {} is\n{now}\n", path.display());
                    }
                }
                if equal {
                    exact += 1;
                } else {
                    same += 1;
                }
            }
        }
        (exact, same, failures)
    });
    let failures: String = results.iter().map(|(_, _, failures)| failures.as_str()).collect();
    assert!(failures.is_empty(), "{failures}");
    let exact: usize = results.iter().map(|(exact, ..)| exact).sum();
    let same: usize = results.iter().map(|(_, same, _)| same).sum();
    println!("{exact} came back exactly, {same} but for white space, braces or the stream");
}
