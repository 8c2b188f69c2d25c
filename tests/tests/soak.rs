//! A long session: after many messages the server needs no more memory than after some. `GRIDFUSE_SOAK=10000` says how many; without
//! it there are as many as a test may take.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use gridfuse_tests::cli::{Directory, directory};
use gridfuse_tests::fuzz::random::Random;
use gridfuse_tests::lsp_client::{Capabilities, Client};
use gridfuse_tests::workspace;
use serde_json::{Value, json};

/// Messages without `GRIDFUSE_SOAK`.
const USUAL: usize = 1_500;

/// Memory is looked at after each of so many parts of the session; the first of them warm the server up.
const PARTS: usize = 10;
const WARM: usize = 2;

/// What may be added from then on: a tenth, and, where there are few messages, what an allocator keeps for later.
const GROWTH: f64 = 1.1;
const SLACK: u64 = 10 << 20;

/// The files of a long session, of those of the corpus.
const FILES: [&str; 3] = ["bfs.cu", "sssp.cu", "qs.cu"];

/// Those of a short one hold this: caches that are bounded are full before long.
const PROGRAM: &str = "\
__global__ void child(int* out, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[i] = i;
}
__global__ void parent(int* out, const int* row, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    int count = row[v + 1] - row[v];
    if (count > 0) child<<<(count + 127) / 128, 128>>>(out + row[v], count);
}
int main() { parent<<<1, 32>>>(nullptr, nullptr, 3); }
";

struct Session {
    server: Child,
    client: Client,
    files: Vec<PathBuf>,
    texts: Vec<String>,
    sent: usize,
    random: Random,
}

impl Session {
    fn start(root: &Directory) -> Session {
        let mut server = Command::new(workspace::gridfuse_bin())
            .arg("lsp")
            .env("XDG_CACHE_HOME", workspace::target_dir().join("test-cache"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut client = Client::over(server.stdout.take().unwrap(), server.stdin.take().unwrap());
        client.initialize(Some(root.path()), &Capabilities::default());
        let files: Vec<PathBuf> = FILES.iter().map(|name| root.file(name)).collect();
        let texts: Vec<String> = FILES.iter().map(|name| root.read(name)).collect();
        for (path, text) in files.iter().zip(&texts) {
            client.open(path, text);
        }
        Session {
            server,
            client,
            files,
            texts,
            sent: 0,
            random: Random::new(18),
        }
    }

    /// Memory that the server has now, in bytes.
    fn resident(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.server.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
    }

    /// What an editor sends while somebody types in a file and looks around.
    fn step(&mut self) {
        let which = self.random.below(FILES.len());
        let path = self.files[which].clone();
        let text = self.client.text(&path).to_owned();
        let launch = text.find("<<<").unwrap_or(0);
        match self.random.below(12) {
            // Something that was never there before, at the end of a line.
            0..=4 => {
                let lines = text.match_indices('\n').map(|(at, _)| at).collect::<Vec<_>>();
                let at = lines[self.random.below(lines.len())];
                let new = match self.random.below(3) {
                    0 => format!(" // note {}", self.sent),
                    1 => format!(
                        "\n__device__ int f{}(int x) {{ return x + {}; }}\n",
                        self.sent, self.sent
                    ),
                    _ => format!("\n#define M{} {}\n", self.sent, self.sent),
                };
                self.client.change(&path, &[(at..at, &new)]);
            }
            // All of it is taken back.
            5 => {
                let original = self.texts[which].clone();
                self.client.change_full(&path, &original);
            }
            6 => drop(self.client.hover(&path, launch)),
            7 => {
                let actions = self.client.code_actions(&path, launch..launch, &[], &[]);
                let open = |action: &&Value| action["disabled"].is_null() && !action["data"].is_null();
                let offered: Vec<&Value> = actions.iter().filter(open).collect();
                if !offered.is_empty() {
                    let action = offered[self.random.below(offered.len())].clone();
                    self.client.resolve(&action);
                    self.sent += 1;
                }
            }
            8 => {
                let lenses = self.client.code_lenses(&path);
                if let Some(lens) = lenses.first().filter(|lens| lens["command"].is_null()) {
                    self.client.request("codeLens/resolve", lens.clone());
                    self.sent += 1;
                }
            }
            9 => drop(self.client.inlay_hints(&path)),
            10 => {
                self.client.close(&path);
                let original = self.texts[which].clone();
                self.client.open(&path, &original);
                self.sent += 1;
            }
            _ => {
                let offset = self.random.below(text.len());
                let offset = (0..=offset).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
                self.client.hover(&path, offset);
            }
        }
        self.sent += 1;
    }

    fn run_to(&mut self, messages: usize) -> u64 {
        while self.sent < messages {
            self.step();
        }
        // Everything as it was: what differs from one time to the other is left behind by what happened between.
        for (path, text) in self.files.clone().iter().zip(self.texts.clone()) {
            self.client.change_full(path, &text);
            self.look(path);
        }
        self.resident()
    }

    /// Everything is asked once of each file: what it needs first is no growth.
    fn warm_up(&mut self) {
        for path in self.files.clone() {
            self.look(&path);
            self.client.code_lenses(&path);
            self.client.inlay_hints(&path);
            let launch = self.client.text(&path).find("<<<").unwrap_or(0);
            for action in self.client.code_actions(&path, launch..launch, &[], &[]) {
                if action["disabled"].is_null() && !action["data"].is_null() {
                    self.client.resolve(&action);
                }
            }
        }
    }

    fn look(&mut self, path: &Path) {
        let launch = self.client.text(path).find("<<<").unwrap_or(0);
        self.client.hover(path, launch);
        self.client.code_actions(path, launch..launch, &[], &[]);
        self.client.request(
            "workspace/executeCommand",
            json!({ "command": "gridfuse.graph", "arguments": [
            { "uri": gridfuse_tests::lsp_client::uri(path) }] }),
        );
    }
}

#[test]
fn memory_is_flat() {
    let all = std::env::var("GRIDFUSE_SOAK").map_or(USUAL, |number| number.parse().expect("a number of messages"));
    let root = match all > USUAL {
        true => Directory::copy_of(&workspace::root().join("tests/corpus")),
        false => directory(&FILES.map(|name| (name, PROGRAM.as_bytes()))),
    };
    let mut session = Session::start(&root);
    session.warm_up();
    let warm = session.run_to(all * WARM / PARTS);
    let mut last = warm;
    for part in WARM + 1..=PARTS {
        last = session.run_to(all * part / PARTS);
        println!(
            "after {} messages: {:.1} MiB",
            session.sent,
            last as f64 / f64::from(1 << 20)
        );
    }
    let bound = (warm as f64 * GROWTH) as u64 + SLACK;
    assert!(
        last <= bound,
        "{warm} bytes after {} messages, {last} after {all}",
        all / WARM
    );
    session.client.shutdown();
    assert_eq!(session.server.wait().unwrap().code(), Some(0));
}
