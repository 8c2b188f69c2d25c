//! Edits of a workspace, one after the other: what the database shows is the same as what a new one shows of the same texts.
//!
//! The bytes before [`SCRIPT`] are the workspace; those behind it say what is edited.

use std::collections::BTreeMap;
use std::path::PathBuf;

use arbitrary::{Arbitrary, Unstructured};
use gridfuse_analysis::base::span::TextRange;
use gridfuse_analysis::host::Host;

use crate::{facts, workspace};

/// Begins the edits.
pub const SCRIPT: u8 = 2;

/// More edits are left out.
const MAX_EDITS: usize = 24;

/// What is inserted, beside pieces of the text itself and text that the bytes hold.
const WORDS: &[&str] = &[
    "child<<<1, 32>>>(out);\n",
    "k<<<n, 64, 0, s>>>(p + threadIdx.x, n);\n",
    "__global__ void k(int* p, int n) {\n",
    "__device__ int f(int x) { return x + 1; }\n",
    "if (threadIdx.x == 0) {\n",
    "for (int i = 0; i < n; ++i) {\n",
    "__syncthreads();\n",
    "cudaDeviceSynchronize();\n",
    "#include \"b.cuh\"\n",
    "#include \"d.cuh\"\n",
    "#define k f\n",
    "#define N(x) x<<<1, 1>>>(0)\n",
    "#if 0\n",
    "#else\n",
    "#endif\n",
    "// gridfuse: allow(serialized-launches)\n",
    "atomicAdd(out, 1);\n",
    "return;\n",
    "template <class T>\n",
    "}\n",
    "{",
    "(",
    ")",
    "\"",
    "/*",
    "*/",
    "//",
    "\\\n",
    "<<<",
    ">>>",
    ";",
    "ü",
    "\r",
];

/// One step.
#[derive(Arbitrary, Debug)]
enum Step {
    /// A keystroke or a paste: at a place, so many bytes less, and a word more.
    Replace { file: u8, at: u16, remove: u8, word: u8 },
    /// The same with a piece of the file itself.
    Copy { file: u8, at: u16, from: u16, length: u8 },
    /// The same with any text.
    Insert {
        file: u8,
        at: u16,
        remove: u8,
        text: String,
    },
    /// A file comes to be known, or is read anew.
    Set { file: u8, word: u8 },
    /// A file is gone.
    Remove { file: u8 },
    /// The editor asks.
    Look,
}

/// Runs the target.
pub fn run(bytes: &[u8]) {
    crate::with_stack(check, bytes);
}

fn check(bytes: &[u8]) {
    let at = bytes.iter().position(|byte| *byte == SCRIPT).unwrap_or(bytes.len() / 2);
    let (text, script) = bytes.split_at(at);
    let texts = workspace::texts(text);
    let mut host = workspace::host(&texts);
    let mut mirror: BTreeMap<PathBuf, String> = (0..).map(workspace::path).zip(texts).collect();
    facts::shown(host.db());
    let mut script = Unstructured::new(script.get(1..).unwrap_or_default());
    for _ in 0..MAX_EDITS {
        if script.is_empty() {
            break;
        }
        let Ok(step) = Step::arbitrary(&mut script) else { break };
        perform(&step, &mut host, &mut mirror);
    }
    compare(&host, &mirror);
}

fn perform(step: &Step, host: &mut Host, mirror: &mut BTreeMap<PathBuf, String>) {
    let path = |file: u8| workspace::path(usize::from(file));
    let word = |word: u8| WORDS.get(usize::from(word) % WORDS.len()).copied().unwrap_or_default();
    match step {
        Step::Replace {
            file,
            at,
            remove,
            word: index,
        } => edit(host, mirror, &path(*file), *at, *remove, word(*index)),
        Step::Insert { file, at, remove, text } => edit(host, mirror, &path(*file), *at, *remove, text),
        Step::Copy { file, at, from, length } => {
            let path = path(*file);
            let Some(text) = mirror.get(&path) else { return };
            let range = range(text, *from, *length);
            let piece = range.text(text).to_owned();
            edit(host, mirror, &path, *at, 0, &piece);
        }
        Step::Set { file, word: index } => {
            let path = path(*file);
            host.set_file(&path, word(*index));
            mirror.insert(path, word(*index).to_owned());
        }
        Step::Remove { file } => {
            let path = path(*file);
            host.remove_file(&path);
            mirror.remove(&path);
        }
        Step::Look => compare(host, mirror),
    }
}

/// So many bytes from a place on, which is counted modulo the length; between characters.
fn range(text: &str, at: u16, length: u8) -> TextRange {
    let mut start = usize::from(at) % (text.len() + 1);
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    let mut end = (start + usize::from(length)).min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    TextRange::new(start as u32, end.max(start) as u32)
}

fn edit(host: &mut Host, mirror: &mut BTreeMap<PathBuf, String>, path: &PathBuf, at: u16, remove: u8, insert: &str) {
    let Some(text) = mirror.get_mut(path) else { return };
    let range = range(text, at, remove);
    host.edit_file(path, range, insert);
    text.replace_range(range.start as usize..range.end as usize, insert);
}

fn compare(host: &Host, mirror: &BTreeMap<PathBuf, String>) {
    for (path, text) in mirror {
        let known = host.file(path).map(|file| file.text(host.db()));
        assert_eq!(
            known.as_deref(),
            Some(text.as_str()),
            "{} has another text",
            path.display()
        );
    }
    let mut fresh = Host::new();
    fresh.set_files(
        mirror
            .iter()
            .map(|(path, text)| (path.clone(), text.as_str().into()))
            .collect(),
    );
    let (now, anew) = (facts::shown(host.db()), facts::shown(fresh.db()));
    if now != anew {
        let mut different = now.lines().zip(anew.lines()).filter(|(now, anew)| now != anew);
        let (now, anew) = different.next().unwrap_or((&now, &anew));
        panic!("after edits:\n{now}\nfrom scratch:\n{anew}\nof {mirror:#?}");
    }
}
