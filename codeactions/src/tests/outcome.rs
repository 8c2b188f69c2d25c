//! What is remembered of rewrites, and for how long.

use std::path::Path;

use gridfuse_analysis::base::span::TextRange;
use gridfuse_analysis::facts::launch::LaunchId;
use gridfuse_analysis::hir::items::items;
use gridfuse_analysis::host::Host;

use crate::api::copy::Copy;
use crate::api::rewrite::{Options, Verdict};
use crate::handlers::REWRITES;
use crate::handlers::rewrite_by_id;

const PROGRAM: &str = "\
#include \"step.cuh\"
__global__ void expand(const int* col, int* dist, int begin, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) STEP(dist, col[begin + i]);
}
__global__ void visit(const int* row, const int* col, int* dist, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    int begin = row[v], count = row[v + 1] - begin;
    if (count > 0) expand<<<(count + 127) / 128, 128>>>(col, dist, begin, count);
}
void run(const int* row, const int* col, int* dist, int n) {
    visit<<<(n + 255) / 256, 256>>>(row, col, dist, n);
}
";

fn workspace() -> Host {
    let mut host = Host::observed();
    let step = r#"#define STEP(d, u) mark(d, u)
__device__ inline void mark(int* d, int u) { atomicMax(&d[u], 1); }
"#;
    host.set_files(vec![
        ("/w/a.cu".into(), PROGRAM.into()),
        ("/w/step.cuh".into(), step.into()),
        (
            "/w/other.cu".into(),
            "__global__ void other(int* p) { p[0] = 1; }\nint main() {}\n".into(),
        ),
        (
            "/w/uses.cu".into(),
            "#include \"step.cuh\"\nvoid unrelated() {}\n".into(),
        ),
    ]);
    host
}

/// All verdicts on the launch of `visit`.
fn verdicts(host: &Host) -> Vec<Verdict> {
    let db = host.db();
    let file = host.file(Path::new("/w/a.cu")).expect("the file");
    let mut functions = items(db, file).functions.iter().copied();
    let function = functions.find(|f| f.name(db) == "visit").expect("visit");
    let launch = LaunchId { function, index: 0 };
    let verdict = |rewrite: &'static crate::api::rewrite::Rewrite| rewrite.verdict(db, launch, &Options::default());
    REWRITES.iter().map(verdict).collect()
}

#[test]
fn an_edit_of_another_file_asks_no_rewrite_again() {
    let mut host = workspace();
    let before = verdicts(&host);
    assert!(before.iter().any(|v| !matches!(v, Verdict::Ineligible(_))));
    for path in ["/w/other.cu", "/w/uses.cu"] {
        // The first edit of a file tells the database that it is one that changes.
        host.edit_file(Path::new(path), TextRange::empty(0), "\n");
        verdicts(&host);
        host.record_executions();
        host.edit_file(Path::new(path), TextRange::empty(0), "// A comment.\n");
        assert_eq!(verdicts(&host), before);
        let executed = host.take_executions();
        let again = executed
            .iter()
            .filter(|e| e.starts_with("outcome(") || e.starts_with("plan("));
        assert_eq!(again.count(), 0, "{path}: {executed:?}");
    }
}

#[test]
fn an_edit_that_matters_is_seen() {
    let mut host = workspace();
    let eligible = |host: &Host| {
        let place = REWRITES
            .iter()
            .position(|r| r.id == "aggregate-block")
            .expect("the rewrite");
        !matches!(verdicts(host)[place], Verdict::Ineligible(_))
    };
    assert!(eligible(&host));
    let header = Path::new("/w/step.cuh");
    let file = host.file(header).expect("the header");
    let at = file.text(host.db()).find("atomicMax").expect("the operation") as u32;
    // A callee of the child, over a macro: it asks for the block now.
    let insert = "d += blockIdx.x; ";
    host.edit_file(header, TextRange::empty(at), insert);
    assert!(!eligible(&host));
    host.edit_file(header, TextRange::new(at, at + insert.len() as u32), "");
    assert!(eligible(&host));
    // Another file launches the parent, in a way that isn't understood.
    let other = Path::new("/w/uses.cu");
    let mention = r#"__global__ void visit(const int*, const int*, int*, int);
void* kernel = (void*)visit;
"#;
    host.edit_file(other, TextRange::empty(0), mention);
    assert!(!eligible(&host));
}

#[test]
fn a_copy_has_what_matters() {
    let host = workspace();
    let db = host.db();
    let file = host.file(Path::new("/w/a.cu")).expect("the file");
    let mut functions = items(db, file).functions.iter().copied();
    let visit = functions.find(|f| f.name(db) == "visit").expect("visit");
    let copy = Copy::around(db, visit).expect("a copy");
    let text = |path: &str| {
        let file = copy.host.file(Path::new(path))?;
        Some(file.text(copy.host.db()).to_string())
    };
    assert_eq!(text("/w/a.cu").as_deref(), Some(PROGRAM));
    assert!(text("/w/step.cuh").is_some_and(|t| t.contains("atomicMax")));
    assert_eq!(text("/w/uses.cu").as_deref(), Some("#include \"step.cuh\"\n"));
    assert_eq!(text("/w/other.cu"), None);
    assert!(copy.edits().is_empty());
    let rewrite = rewrite_by_id("threshold").expect("the rewrite");
    let launch = LaunchId {
        function: visit,
        index: 0,
    };
    let here = rewrite.verdict(db, launch, &Options::default());
    let there = {
        let db = copy.host.db();
        let file = copy.host.file(Path::new("/w/a.cu")).expect("the file");
        let mut functions = items(db, file).functions.iter().copied();
        let function = functions.find(|f| f.name(db) == "visit").expect("visit");
        rewrite.verdict(db, LaunchId { function, index: 0 }, &Options::default())
    };
    assert_eq!(format!("{here:?}").len(), format!("{there:?}").len());
}
