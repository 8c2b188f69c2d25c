//! The menu of code actions, for the program on every rewrite's page: what stands first, what stands once, how it reads.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::BTreeSet;
use std::path::Path;

use gridfuse_tests::cli::{Directory, gridfuse, in_parallel};
use gridfuse_tests::fixture::before_after;
use gridfuse_tests::lsp_client::{Capabilities, Client};
use gridfuse_tests::workspace;
use serde_json::Value;

/// An editor shows some 60 characters of a title.
const MAX_TITLE: usize = 60;

/// A reason why something can't be done is one short sentence.
const MAX_REASON: usize = 120;

/// Room for ` — 12 assumptions`.
const MAX_TITLE_OF_A_REWRITE: usize = 44;

fn rewrites() -> Vec<Value> {
    let listed = gridfuse(workspace::root(), &["list", "--format", "json"]).expect_code(0);
    listed.json()["rewrites"].as_array().unwrap().clone()
}

fn text_of<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().unwrap_or_else(|| panic!("no {field}: {value:#}"))
}

/// A rewrite's title says in a few words what happens, each another thing.
#[test]
fn titles_of_rewrites_are_short_imperatives() {
    let mut titles = BTreeSet::new();
    for rewrite in rewrites() {
        let title = text_of(&rewrite, "title");
        assert!(title.chars().count() <= MAX_TITLE_OF_A_REWRITE, "{title}");
        assert!(title.starts_with(|c: char| c.is_ascii_uppercase()), "{title}");
        assert!(!title.ends_with('.') && !title.contains(" — "), "{title}");
        assert!(titles.insert(title.to_owned()), "two rewrites are called `{title}`");
    }
}

/// The menus of a program: where something is found, at its launches, and where its lines begin.
fn menus(program: &str, look: impl Fn(&mut Client, &Path, &[Value], &[Value])) {
    let root = Directory::new();
    let path = root.write("a.cu", program.as_bytes());
    let mut client = Client::spawn(workspace::gridfuse_bin(), &["lsp"]);
    client.initialize(Some(root.path()), &Capabilities::default());
    client.open(&path, program);
    let found = client.diagnostics(&path);
    let launches = program.match_indices("<<<").map(|(at, _)| at);
    let findings = found.iter().map(|found| {
        let start = &found["range"]["start"];
        client
            .encoding()
            .offset(program, start)
            .expect("a position of the text")
    });
    let lines = program.lines().filter(|line| !line.trim().is_empty());
    let lines = lines.map(|line| line.trim_start().as_ptr() as usize - program.as_ptr() as usize);
    let places: BTreeSet<usize> = launches.chain(findings).chain(lines).collect();
    for at in places {
        let actions = client.code_actions(&path, at..at, &[], &[]);
        look(&mut client, &path, &found, &actions);
    }
    client.shutdown();
}

fn is_enabled(action: &&Value) -> bool {
    action["disabled"].is_null()
}

/// The rules of a menu.
fn rules(client: &mut Client, actions: &[Value]) {
    let shown = |what: &str| format!("{what}: {actions:#?}");
    let mut edits: Vec<Value> = Vec::new();
    let (mut disabled, mut refactors) = (false, false);
    for (place, action) in actions.iter().enumerate() {
        let title = text_of(action, "title");
        assert!(title.chars().count() <= MAX_TITLE, "{title}");
        if let Some((_, assumed)) = title.split_once(" — ") {
            let (number, word) = assumed.split_once(' ').expect("a number and a word");
            let wanted = if number == "1" { "assumption" } else { "assumptions" };
            let number = number.parse::<u8>();
            assert!(number.is_ok_and(|number| number > 0) && word == wanted, "{title}");
        }
        if !is_enabled(&action) {
            disabled = true;
            let reason = text_of(&action["disabled"], "reason");
            assert!((1..=MAX_REASON).contains(&reason.chars().count()), "{title}: {reason}");
            continue;
        }
        assert!(!disabled, "{}", shown("what can't be done comes last"));
        let kind = text_of(action, "kind");
        if kind == "quickfix" {
            assert!(!refactors, "{}", shown("fixes come first"));
            let mended = action["diagnostics"].as_array();
            assert!(mended.is_some_and(|mended| !mended.is_empty()), "{title}");
        } else if !kind.is_empty() {
            refactors = true;
            assert!(kind.starts_with("refactor.rewrite."), "{kind}");
        }
        if action["isPreferred"] == true {
            let is_fix = |action: &Value| action["kind"] == "quickfix";
            let mut before = actions[..place]
                .iter()
                .filter(|before| is_fix(before) == is_fix(action));
            let first = before.all(|before| before["isPreferred"] == true);
            assert!(
                first,
                "{}",
                shown("what is preferred comes first of the fixes, or of the rest")
            );
        }
        if action["command"].is_null() {
            let edit = client.resolve(action)["edit"].clone();
            assert!(!edits.contains(&edit), "{}", shown("an edit stands once"));
            edits.push(edit);
        }
    }
}

/// Each rewrite is offered where it says on its page that it fits, and the menu that has it keeps the rules.
#[test]
fn menus_keep_the_rules_for_the_program_of_every_page() {
    in_parallel(&rewrites(), |rewrite| {
        let (id, title) = (text_of(rewrite, "id"), text_of(rewrite, "title"));
        let page = workspace::root().join(format!("docs/rewrites/{id}.md"));
        let page = std::fs::read_to_string(&page).expect("a page");
        let program = before_after(&page).expect("an example").before;
        let offered = std::cell::Cell::new(false);
        menus(&program, |client, _, _, actions| {
            rules(client, actions);
            let titles = actions.iter().filter(is_enabled).map(|action| text_of(action, "title"));
            for listed in titles {
                // The best one may do what this one does: then it stands in its place.
                let twin = listed.starts_with("Best: ");
                offered.set(offered.get() || twin || listed.starts_with(title));
            }
        });
        assert!(offered.get(), "{id} is not offered for the program on its page");
    });
}

/// An error of which nothing can mend the wait says why in its menu, and one with a single way out has that as the preferred fix.
#[test]
fn the_menu_of_an_error_is_never_empty() {
    let at_the_wait = |program: &str| {
        let seen = std::cell::RefCell::new(None);
        menus(program, |client, _, found, actions| {
            rules(client, actions);
            let wait = found
                .iter()
                .find(|found| found["code"] == "device-sync")
                .expect("an error");
            let mends = |action: &&Value| {
                let mended = action["diagnostics"].as_array();
                mended.is_some_and(|mended| mended.contains(wait))
            };
            let fix = actions.iter().find(mends);
            if let Some(fix) = fix {
                *seen.borrow_mut() = Some(fix.clone());
            }
        });
        seen.into_inner().expect("what mends the wait")
    };
    let stays = "__global__ void smooth(float** fine, int i) { fine[i][threadIdx.x] *= 0.5f; }
__global__ void refine(float** fine, float* coarse, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float* own = fine[i];
    smooth<<<1, 32>>>(fine, i);
    cudaDeviceSynchronize();
    float sum = 0;
    for (int k = 0; k < 32; ++k) sum += own[k];
    coarse[i] = sum;
}
";
    let refused = at_the_wait(stays);
    assert_eq!(refused["kind"], "quickfix", "{refused:#}");
    assert!(!text_of(&refused["disabled"], "reason").is_empty());
    let one_way = "__global__ void relax(int* d, int n, int k) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < n && d[k] < d[i]) d[i] = d[k];
}
__global__ void rounds(int* d, int n) {
    for (int k = 0; k < n; ++k) {
        relax<<<(n + 63) / 64, 64>>>(d, n, k);
        cudaDeviceSynchronize();
    }
}
void host(int* d, int n) { rounds<<<1, 1>>>(d, n); }
";
    let fix = at_the_wait(one_way);
    assert!(
        is_enabled(&&fix) && text_of(&fix, "title").contains("assumption"),
        "{fix:#}"
    );
    assert_eq!(fix["isPreferred"], true, "{fix:#}");
}

/// After a rewrite, what is about the collected launch stands in its menu, and in no menu of the lines between it and the head.
#[test]
fn a_collected_launch_has_its_menu_to_itself() {
    let program = "__global__ void child(int* out, int n) { if (threadIdx.x < n) atomicAdd(out, n); }
__global__ void parent(int* out, const int* sizes, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int size = sizes[i];
    child<<<1, 64>>>(out, size);
}
void host(int* out, const int* sizes, int n) { parent<<<n, 64>>>(out, sizes, n); }
";
    let root = Directory::new();
    let path = root.write("a.cu", program.as_bytes());
    let words = [
        "rewrite",
        "a.cu",
        "--at",
        "6",
        "--apply",
        "aggregate-block",
        "--in-place",
    ];
    gridfuse(root.path(), &words).expect_code(0);
    let rewritten = root.read("a.cu");
    let mut client = Client::spawn(workspace::gridfuse_bin(), &["lsp"]);
    client.initialize(Some(root.path()), &Capabilities::default());
    client.open(&path, &rewritten);
    let mut titles = |at: &str| -> Vec<String> {
        let at = client.find(&path, at);
        let actions = client.code_actions(&path, at..at, &["refactor"], &[]);
        actions
            .iter()
            .map(|action| text_of(action, "title").to_owned())
            .collect()
    };
    let at_launch = titles("children.launch(");
    assert!(at_launch.len() > 2, "{at_launch:#?}\n{rewritten}");
    for between in ["int i = blockIdx.x", "int size = sizes[i]"] {
        assert_eq!(titles(between), Vec::<String>::new(), "{between}");
    }
    // The collector and the head are about the launch, too, and their menus have the same order.
    assert_eq!(titles("Aggregator<gridfuse::PerBlock"), at_launch);
    client.shutdown();
}

/// Where a finding names what mends it, the menu there has it as a fix of this finding, and `check` names it.
#[test]
fn what_check_names_is_a_fix_in_the_menu() {
    in_parallel(&rewrites(), |rewrite| {
        let page = workspace::root().join(format!("docs/rewrites/{}.md", text_of(rewrite, "id")));
        let page = std::fs::read_to_string(&page).expect("a page");
        let program = before_after(&page).expect("an example").before;
        let root = Directory::new();
        root.write("a.cu", program.as_bytes());
        let checked = gridfuse(root.path(), &["check", "--format", "json", "a.cu"]).json();
        let findings = checked["findings"].as_array().unwrap();
        menus(&program, |_, _, found, actions| {
            for finding in findings {
                let here = found.iter().find(|found| {
                    let start = &found["range"]["start"];
                    let line = finding["place"]["start"]["line"].as_u64().unwrap();
                    found["code"] == finding["id"] && start["line"].as_u64() == Some(line - 1)
                });
                let is_shown = |action: &&Value| {
                    let mended = action["diagnostics"].as_array();
                    here.is_some() && mended.is_some_and(|mended| mended.iter().any(|d| Some(d) == here))
                };
                // Only the menu at the finding has its fixes.
                let fixes: Vec<&str> = actions
                    .iter()
                    .filter(is_shown)
                    .map(|action| text_of(action, "title"))
                    .collect();
                if fixes.is_empty() {
                    continue;
                }
                let named: Vec<&str> = finding["fixes"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|fix| text_of(fix, "title"))
                    .collect();
                if let (Some(named), Some(first)) = (named.first(), fixes.first()) {
                    assert!(first.starts_with(named), "{finding:#} is mended first by {first}");
                }
                for title in &named {
                    assert!(
                        fixes.iter().any(|fix| fix.starts_with(title)),
                        "{title} is no fix of {finding:#}: {fixes:?}"
                    );
                }
            }
        });
    });
}
