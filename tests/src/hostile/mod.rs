//! Files that are made to be hard: many, deep, large or broken. Each is written by a function of this module, always the same.
//!
//! What a server does with them is bounded by `tests/hostile.rs`.

mod bytes;
mod depth;
mod functions;
mod headers;
pub mod measure;
mod preprocessor;
mod statements;

/// Files of one hostile project, by path; the first is the one that is opened.
pub type Files = Vec<(String, Vec<u8>)>;

/// A hostile project.
pub struct Hostile {
    /// Its name, as a test or a table prints it.
    pub name: &'static str,
    /// What is hard about it, in one sentence.
    pub about: &'static str,
    /// Writes its files. The number divides how many of the hard thing there are: 1 is full size.
    pub make: fn(usize) -> Files,
}

/// All hostile projects.
pub fn all() -> Vec<Hostile> {
    [
        functions::all(),
        statements::all(),
        depth::all(),
        preprocessor::all(),
        headers::all(),
        bytes::all(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The line (from 1) of the last launch of `child` in the file that is opened; 1 when there is none.
pub fn launch_line(files: &Files) -> usize {
    let text = files.first().map(|(_, text)| text.as_slice()).unwrap_or_default();
    let launch = b"child<<<";
    let last = text.windows(launch.len()).rposition(|window| window == launch);
    text.iter()
        .take(last.unwrap_or(0))
        .filter(|byte| **byte == b'\n')
        .count()
        + 1
}

/// One file named `hostile.cu`.
fn one(text: impl Into<Vec<u8>>) -> Files {
    vec![("hostile.cu".to_owned(), text.into())]
}

/// A child kernel, and a parent that launches it behind (or around) `body`.
fn around(body: &str) -> Files {
    one(format!("{CHILD}{}", parent(body)))
}

/// A parent kernel that runs `body` and launches `child`.
fn parent(body: &str) -> String {
    format!(
        "__global__ void parent(int *out, int n) {{\n  int i = blockIdx.x * blockDim.x + threadIdx.x;\n{body}\n  if (i < n) child<<<(n + 31) / 32, 32>>>(out, n);\n}}\n{HOST}"
    )
}

/// The child that the parents launch.
const CHILD: &str = "__global__ void child(int *out, int n) {\n  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) out[i] = i;\n}\n";

/// A host function that launches the parent.
const HOST: &str = "void host(int *out, int n) { parent<<<(n + 255) / 256, 256>>>(out, n); }\n";

/// `count` pieces of text, one behind the other.
fn times(count: usize, piece: impl Fn(usize) -> String) -> String {
    (0..count).map(piece).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_files_are_always_the_same() {
        let all = all();
        let names: BTreeSet<&str> = all.iter().map(|hostile| hostile.name).collect();
        assert_eq!(names.len(), all.len());
        for hostile in &all {
            assert!(hostile.about.ends_with('.'), "{}", hostile.name);
            let files = (hostile.make)(100);
            assert!(!files.is_empty(), "{}", hostile.name);
            assert!(files == (hostile.make)(100), "{}", hostile.name);
        }
    }
}
