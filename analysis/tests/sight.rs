//! Which definitions of other files a name means: those that something in sight declares, and no others.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use gridfuse_analysis::facts::launch::{Child, launches};
use gridfuse_analysis::hir::items::items;
use gridfuse_analysis::hir::resolve::{functions_named, other_mentions};
use gridfuse_analysis::host::Host;

const CHILD: &str = "__global__ void child(int* out, int n) { out[n] = 1; }\n";
const PARENT: &str = "__global__ void parent(int* out, int n) { child<<<1, 32>>>(out, n); }\n";

fn host(files: &[(&str, &str)]) -> Host {
    let mut host = Host::new();
    for (path, text) in files {
        host.set_file(path.as_ref(), *text);
    }
    host
}

/// The file in which the kernel is defined that the launch in `file` means.
fn launched(host: &Host, file: &str) -> Option<String> {
    let db = host.db();
    let file = host.file(file.as_ref()).unwrap();
    let parent = items(db, file)
        .functions
        .iter()
        .find(|f| f.name(db) == "parent")
        .unwrap();
    match launches(db, *parent)[0].child {
        Child::Kernel(child) => Some(child.file(db).path(db).to_string_lossy().into_owned()),
        _ => None,
    }
}

#[test]
fn what_is_in_sight() {
    let declaration = "__global__ void child(int* out, int n);\n";
    let with = |before: &str| format!("{before}{PARENT}");
    for (files, expected) in [
        // Nothing declares it.
        (vec![("/w/main.cu", with("")), ("/w/child.cu", CHILD.to_owned())], None),
        (
            vec![("/w/main.cu", with(declaration)), ("/w/child.cu", CHILD.to_owned())],
            Some("/w/child.cu"),
        ),
        // Another file's `static` is its own.
        (
            vec![
                ("/w/main.cu", with(declaration)),
                ("/w/child.cu", format!("static {CHILD}")),
            ],
            None,
        ),
        (
            vec![
                ("/w/main.cu", with("#include \"child.cuh\"\n")),
                ("/w/child.cuh", declaration.to_owned()),
                ("/w/child.cu", format!("#include \"child.cuh\"\n{CHILD}")),
            ],
            Some("/w/child.cu"),
        ),
        // The directory is one that only the build knows.
        (
            vec![
                ("/w/src/main.cu", with("#include \"lib/child.cuh\"\n")),
                ("/w/include/lib/child.cuh", CHILD.to_owned()),
            ],
            Some("/w/include/lib/child.cuh"),
        ),
        (
            vec![
                ("/w/src/main.cu", with("#include <lib/child.h>\n")),
                ("/w/include/lib/child.h", "#include \"../impl.cuh\"\n".to_owned()),
                ("/w/include/impl.cuh", CHILD.to_owned()),
            ],
            Some("/w/include/impl.cuh"),
        ),
        // The toolkit's headers are no files of the project.
        (
            vec![
                ("/w/src/main.cu", with("#include <cuda_runtime.h>\n")),
                ("/w/emulator/cuda_runtime.h", CHILD.to_owned()),
            ],
            None,
        ),
        // A header that relies on its includer.
        (
            vec![
                ("/w/parent.cuh", with("")),
                ("/w/child.cuh", CHILD.to_owned()),
                (
                    "/w/main.cu",
                    "#include \"child.cuh\"\n#include \"parent.cuh\"\n".to_owned(),
                ),
            ],
            Some("/w/child.cuh"),
        ),
    ] {
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
        let host = host(&files);
        assert_eq!(launched(&host, files[0].0).as_deref(), expected, "{files:?}");
    }
}

#[test]
fn overloads_of_which_one_is_defined_elsewhere() {
    let host = host(&[
        (
            "/w/main.cu",
            r#"namespace a { int f() { return 1; } }
namespace b { int f(); }
"#,
        ),
        ("/w/b.cu", "namespace b { int f() { return 2; } }\n"),
    ]);
    let db = host.db();
    let main = host.file("/w/main.cu".as_ref()).unwrap();
    assert_eq!(functions_named(db, main, "f").len(), 3);
    assert_eq!(functions_named(db, main, "a::f").len(), 1);
    assert_eq!(functions_named(db, main, "b::f").len(), 2);
}

#[test]
fn mentions_in_files_that_do_not_see_it() {
    let mentions = |other: &str| {
        let host = host(&[("/w/main.cu", CHILD), ("/w/other.cu", other)]);
        let db = host.db();
        let child = items(db, host.file("/w/main.cu".as_ref()).unwrap()).functions[0];
        other_mentions(db, child).len()
    };
    assert_eq!(mentions("void f() { int child = 1; g(child); }\n"), 0);
    assert_eq!(mentions("void f() { g(child); }\n"), 0);
    assert_eq!(
        mentions(
            r#"__global__ void child(int* out, int n);
void f() { g(child); }
"#
        ),
        1
    );
    // Declared in a function, or where the text isn't parsed.
    assert_ne!(mentions("void f() { void child(int*, int); g(child); }\n"), 0);
    assert_ne!(
        mentions(
            r#"#if 0
void child(int*, int);
#endif
void f() { g(child); }
"#
        ),
        0
    );
}
