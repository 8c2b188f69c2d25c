//! What a function does, looked up in tokens: how far that goes.

use std::path::Path;
use std::sync::Arc;

use gridfuse_analysis::hir::items::items;
use gridfuse_analysis::host::Host;

use crate::facts::effects::{Effects, effects};

/// The effects of the function `parent` of a program.
fn of_parent(text: &str) -> Arc<Effects> {
    let mut host = Host::new();
    let path = Path::new("/p/a.cu");
    host.set_file(path, text.to_owned());
    let file = host.file(path).unwrap();
    let db = host.db();
    let functions = &items(db, file).functions;
    let parent = functions.iter().find(|f| f.name(db) == "parent").unwrap();
    effects(db, *parent)
}

/// A parent that uses the last of macros, each of which uses the one before twice.
fn doubling(count: usize) -> String {
    let macros: String = (0..count).map(|k| format!("#define M{} M{k} M{k}\n", k + 1)).collect();
    format!(
        r#"__global__ void child();
#define M0 child<<<1, 32>>>();
{macros}__global__ void parent() {{ M{count} }}
"#
    )
}

#[test]
fn macros_count_as_often_as_they_are_used() {
    let found = of_parent(&doubling(5));
    assert_eq!(found.launches.len(), 32);
    assert!(found.unknown.iter().all(|f| !f.what.contains("macro")), "{found:?}");
}

#[test]
fn macros_that_stand_for_too_much_are_unknown() {
    for text in [
        doubling(40),
        // Twice as much as is followed, at once.
        format!(
            "#define M {}\n__global__ void parent() {{ M }}\n",
            "; ".repeat(256 << 10)
        ),
        // Deeper than is followed.
        format!(
            r#"#define M0 __syncthreads();
{}__global__ void parent() {{ M100 }}
"#,
            (0..100)
                .map(|k| format!("#define M{} M{k}\n", k + 1))
                .collect::<String>()
        ),
    ] {
        let found = of_parent(&text);
        let said = found
            .unknown
            .iter()
            .filter(|f| f.what.contains("too large to be followed"));
        assert_eq!(said.count(), 1, "{:?}", found.unknown);
    }
}
