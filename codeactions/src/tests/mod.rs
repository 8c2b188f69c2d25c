//! Tests of the rewrites on whole programs. With `GRIDFUSE_TEST_OUTPUT=DIR` every result is written to a directory of its own in
//! DIR, for a compiler to look at.

mod aggregate;
mod aggregate_atomics;
mod aggregate_block;
mod aggregate_grid_host;
mod aggregate_grid_stream;
mod aggregate_malloc;
mod branches;
mod by_device;
mod checked_waits;
mod coarsen;
mod compose;
mod contradicted;
mod copied;
mod created_stream;
mod deduction;
mod device_sync;
mod docs;
mod effects;
mod entries;
mod extract_launch;
mod fire_and_forget;
mod fission;
mod fission_addresses;
mod fission_parameters;
mod fixes;
mod flatten_recursion;
mod function_templates;
mod functors;
mod graphs;
mod grid_views;
mod heads;
mod hidden;
mod hidden_members;
mod hoisted_operators;
mod in_order;
mod launch_errors;
mod left_in_memory;
mod members;
mod moved;
mod nesting;
mod never_written;
mod of_the_runtime;
mod optimize;
mod outcome;
mod outline_iteration;
mod outlined_among_others;
mod outlined_wrongly;
mod persistent_chain;
mod persistent_loop;
mod promote;
mod promoted_wrongly;
mod registers;
mod reuse_threads;
mod runtime_header;
mod serialize;
mod skip_silent_stores;
mod stream_order;
mod threshold;
mod undo;
mod unknown;
mod unseen;
mod waits_in_loops;
mod written_out;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gridfuse_analysis::base::settings::Settings;
use gridfuse_analysis::facts::launch::{LaunchId, launches};
use gridfuse_analysis::hir::items::items;
use gridfuse_analysis::host::Host;

use crate::api::assumption::reasons;
use crate::api::refusal::Reason;
use crate::api::rewrite::{Options, Verdict};
use crate::api::source_edit::SourceEdit;
use crate::api::source_edit::apply;
use crate::handlers::rewrite_by_id;
use crate::runtime::{HEADER_NAME, PartSet, header};

/// What a rewrite did to a program: the new texts by file name, and the assumptions.
#[derive(Debug)]
pub struct Rewritten {
    /// All files, changed or not.
    pub files: BTreeMap<String, String>,
    /// Assumptions.
    pub assumes: Vec<String>,
}

impl Rewritten {
    /// The text of the only source file.
    pub fn text(&self) -> &str {
        self.files.get("a.cu").map_or("", String::as_str)
    }

    /// Asserts that all these pieces occur.
    #[track_caller]
    pub fn has(&self, pieces: &[&str]) -> &Self {
        let missing = pieces.iter().filter(|piece| !self.text().contains(**piece));
        let missing: Vec<&str> = missing.copied().collect();
        assert!(
            missing.is_empty(),
            "no\n{}\nin\n{}",
            missing.join("\nnor\n"),
            self.text()
        );
        self
    }
}

/// Applies a rewrite to the launch behind `$0`, or to the first launch in a kernel or device function.
pub fn rewrite_files(id: &str, files: &[(&str, &str)], options: &[(&str, &str)]) -> Result<Rewritten, Vec<String>> {
    rewrite_in(&Settings::default(), id, files, options)
}

/// The same in a project of which `settings` hold.
pub fn rewrite_in(
    settings: &Settings,
    id: &str,
    files: &[(&str, &str)],
    options: &[(&str, &str)],
) -> Result<Rewritten, Vec<String>> {
    let mut host = Host::new();
    host.set_settings(BTreeMap::from([(PathBuf::from("/p"), Arc::new(settings.clone()))]));
    let mut cursor = None;
    let mut names = Vec::new();
    for (name, text) in files {
        let path = Path::new("/p").join(name);
        if let Some(at) = text.find("$0") {
            cursor = Some((path.clone(), at as u32));
        }
        host.set_file(&path, text.replace("$0", ""));
        names.push(path);
    }
    let db = host.db();
    let mut chosen = None;
    for path in &names {
        let Some(file) = host.file(path) else { continue };
        for function in items(db, file).functions.iter().filter(|f| f.has_body(db)) {
            let signature = function.signature(db);
            for (index, facts) in launches(db, *function).iter().enumerate() {
                let fits = match &cursor {
                    Some((p, at)) => p == path && facts.span.start + function.start(db) == *at,
                    None => chosen.is_none() && (signature.kernel || signature.device),
                };
                if fits {
                    chosen = Some(LaunchId {
                        function: *function,
                        index: index as u32,
                    });
                }
            }
        }
    }
    let (Some(launch), Some(rewrite)) = (chosen, rewrite_by_id(id)) else {
        return Err(vec!["no launch, or no such rewrite".into()]);
    };
    let options = Options(options.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect());
    let texts = |reasons: &[Reason]| reasons.iter().map(|r| r.text.clone()).collect::<Vec<_>>();
    let verdict = rewrite.verdict(db, launch, &options);
    match rewrite.apply(db, launch, &options) {
        Ok(edit) => {
            assert!(
                !matches!(verdict, Verdict::Ineligible(_)),
                "check refuses what apply does"
            );
            let assumes = texts(&reasons(&edit.assumptions));
            let result = Rewritten {
                files: result(&host, &edit, &names),
                assumes,
            };
            write_output(&result);
            Ok(result)
        }
        Err(refusal) => {
            assert!(!refusal.0.is_empty());
            assert_eq!(verdict, Verdict::Ineligible(refusal.0.clone()));
            Err(texts(&refusal.0))
        }
    }
}

fn result(host: &Host, edit: &SourceEdit, paths: &[PathBuf]) -> BTreeMap<String, String> {
    let read = |path: &Path| host.file(path).map(|f| f.text(host.db()).to_string());
    let mut texts = apply(edit, read).unwrap_or_default();
    for path in paths {
        if !texts.contains_key(path) {
            texts.insert(path.clone(), read(path).unwrap_or_default());
        }
    }
    let name = |path: PathBuf| path.strip_prefix("/p").unwrap_or(&path).to_string_lossy().into_owned();
    texts.into_iter().map(|(path, text)| (name(path), text)).collect()
}

fn write_output(result: &Rewritten) {
    let Ok(dir) = std::env::var("GRIDFUSE_TEST_OUTPUT") else {
        return;
    };
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("test").replace("::", "-");
    let mut target = PathBuf::from(&dir).join(&test);
    for number in 2.. {
        if !target.exists() {
            break;
        }
        target = PathBuf::from(&dir).join(format!("{test}-{number}"));
    }
    for (name, text) in &result.files {
        let path = target.join(name);
        let written = path
            .parent()
            .map_or(Ok(()), std::fs::create_dir_all)
            .and_then(|()| std::fs::write(&path, text));
        assert!(written.is_ok(), "{}", path.display());
    }
}

/// Applies a rewrite to a program of one file.
#[track_caller]
pub fn rewrite(id: &str, text: &str) -> Rewritten {
    match rewrite_files(id, &[("a.cu", text)], &[]) {
        Ok(result) => result,
        Err(reasons) => panic!("refused: {reasons:#?}"),
    }
}

/// Asserts that a rewrite refuses a program, and that one of the reasons contains `reason`.
#[track_caller]
pub fn refuses(id: &str, text: &str, reason: &str) {
    refuses_files(id, &[("a.cu", text)], reason);
}

/// The same for several files.
#[track_caller]
pub fn refuses_files(id: &str, files: &[(&str, &str)], reason: &str) {
    match rewrite_files(id, files, &[]) {
        Ok(result) => panic!("not refused:\n{}", result.text()),
        Err(reasons) => assert!(reasons.iter().any(|r| r.contains(reason)), "{reasons:#?}"),
    }
}

/// The program that most tests vary: a child, a parent with `launch` in a branch, a host function.
pub fn program(launch: &str) -> String {
    with_child(
        "__global__ void child(int* out, int begin, int count) {\n    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    \
         if (i < count) out[begin + i] = count;\n}\n",
        launch,
    )
}

/// The same with another child.
pub fn with_child(child: &str, launch: &str) -> String {
    format!(
        r#"// {:-<114}
{child}
__global__ void parent(int* out, const int* row, int n) {{
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    int begin = row[v], count = row[v + 1] - begin;
    {launch}
}}

void run(int* out, const int* row, int n) {{
    parent<<<(n + 127) / 128, 128>>>(out, row, n);
}}
"#,
        ""
    )
}

#[test]
fn the_header_is_created_once() {
    let result = rewrite(
        "threshold",
        &program("child<<<(count + 31) / 32, 32>>>(out, begin, count);"),
    );
    let wanted = header(PartSet::of(|part| part.name == "serial"));
    assert_eq!(result.files.get(HEADER_NAME).map(String::as_str), Some(&*wanted));
    let foreign = [
        ("a.cu", program("child<<<(count + 31) / 32, 32>>>(out, begin, count);")),
        (HEADER_NAME, "// not the runtime\n".to_owned()),
    ];
    let foreign: Vec<(&str, &str)> = foreign.iter().map(|(n, t)| (*n, t.as_str())).collect();
    refuses_files("threshold", &foreign, "another file named gridfuse.cuh");
}

#[test]
fn options_are_validated() {
    let text = program("child<<<(count + 31) / 32, 32>>>(out, begin, count);");
    let with = |id: &str, name: &str, value: &str| rewrite_files(id, &[("a.cu", &text)], &[(name, value)]);
    let first =
        |result: Result<Rewritten, Vec<String>>| result.err().and_then(|r| r.first().cloned()).unwrap_or_default();
    assert_eq!(
        first(with("threshold", "treshold", "3")),
        "there is no option `treshold`; the options are: threshold, local-memory"
    );
    assert!(first(with("fire-and-forget", "threshold", "3")).contains("there are no options"));
    for value in ["x", "0", "-1", "3000000000", ""] {
        assert!(
            first(with("threshold", "threshold", value)).contains("must be a number"),
            "{value}"
        );
    }
    let result = with("threshold", "threshold", "256");
    assert!(result.is_ok_and(|r| r.text().contains("kChildThreshold = 256;")));
}

#[test]
fn no_rewrite_panics_on_broken_text() {
    let text = program("child<<<(count + 31) / 32, 32>>>(out, begin, count);");
    for id in ["fire-and-forget", "threshold", "aggregate-block", "aggregate-grid"] {
        for cut in (0..text.len()).step_by(3) {
            let _ = rewrite_files(id, &[("a.cu", &text[..cut])], &[]);
            let _ = rewrite_files(id, &[("a.cu", &format!("{}{}", &text[..cut], &text[cut + 1..]))], &[]);
        }
    }
}
