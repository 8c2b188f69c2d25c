//! `check --format sarif` and `--format github`: what services that read them ask for.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::fs;
use std::path::Path;
use std::process::Command;

use gridfuse_tests::cli::{Directory, directory, gridfuse};
use gridfuse_tests::{json_schema, workspace};
use serde_json::Value;

/// With letters of several bytes in front of what is replaced.
const PROGRAM: &str = "\
__global__ void child(int* out) { out[threadIdx.x + 32 * blockIdx.x] = threadIdx.x; }
__global__ void parent(int* out, const int* row) {
    /* \u{fc}\u{1f600} */ if (row[threadIdx.x] > 0) child<<<1, 32>>>(out + 32 * row[threadIdx.x]);
}
// gridfuse: allow(tiny-child-grid) there is none
int main() { parent<<<1, 32>>>(nullptr, nullptr); }
";

fn repository() -> Directory {
    directory(&[
        (".git/HEAD", b""),
        ("src/a b.cu", PROGRAM.as_bytes()),
        ("src/clean.cu", b""),
    ])
}

fn sarif(directory: &Path, arguments: &[&str]) -> Value {
    let all = [&["check", "--format", "sarif"], arguments].concat();
    gridfuse(directory, &all).expect_code(0).json()
}

#[test]
fn it_is_as_the_schema_says() {
    let log = sarif(repository().path(), &["."]);
    assert_eq!(json_schema::problems(&official_schema(), &log), [""; 0]);
    let corpus = sarif(&workspace::root().join("tests/corpus"), &["bfs.cu", "qs.cu"]);
    assert_eq!(json_schema::problems(&official_schema(), &corpus), [""; 0]);
}

/// The schema that the crate brings along from which its types are made.
fn official_schema() -> Value {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .current_dir(workspace::root())
        .args(["metadata", "--format-version", "1", "--locked"]);
    let metadata: Value = serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let sarif = packages
        .iter()
        .find(|package| package["name"] == "serde-sarif")
        .unwrap();
    let manifest = Path::new(sarif["manifest_path"].as_str().unwrap());
    let text = fs::read_to_string(manifest.with_file_name("src").join("schema.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn every_rule_says_what_it_is() {
    let log = sarif(repository().path(), &["."]);
    let driver = &log["runs"][0]["tool"]["driver"];
    let manifest = fs::read_to_string(workspace::root().join("server/Cargo.toml")).unwrap();
    let about = driver["informationUri"].as_str().unwrap();
    assert!(manifest.contains(&format!("documentation = \"{about}\"")), "{about}");
    let rules = driver["rules"].as_array().unwrap();
    assert!(rules.len() > 20);
    for rule in rules {
        for text in ["shortDescription", "fullDescription"] {
            let text = rule[text]["text"].as_str().unwrap();
            assert!(
                text.ends_with('.') && !text.contains('\n') && !text.contains('#'),
                "{text}"
            );
        }
        let id = rule["id"].as_str().unwrap();
        let name = rule["name"].as_str().unwrap();
        assert_eq!(name.to_lowercase(), id.replace('-', ""));
        // The page is in the package, which can be read where the crate is documented.
        let uri = rule["helpUri"].as_str().unwrap();
        let (_, inside) = uri.split_once("/source/").unwrap();
        assert!(uri.starts_with("https://docs.rs/crate/gridfuse/"), "{uri}");
        let page = std::fs::read_to_string(workspace::root().join("server").join(inside)).unwrap();
        assert!(page.contains(&format!("\n# {id}\n")), "{uri}");
    }
}

#[test]
fn paths_are_those_in_the_repository() {
    let files = repository();
    for (here, named) in [
        ("", "src"),
        ("", "src/a b.cu"),
        ("src", "a b.cu"),
        ("src", "../src/a b.cu"),
    ] {
        let here = files.file(here);
        let run = &sarif(&here, &[named])["runs"][0];
        let result = &run["results"][0];
        let file = &result["locations"][0]["physicalLocation"]["artifactLocation"];
        assert_eq!(file["uri"], "src/a%20b.cu", "{named}");
        let base = &run["originalUriBaseIds"][file["uriBaseId"].as_str().unwrap()]["uri"];
        assert_eq!(*base, format!("file://{}/", files.path().display()));
        let github = gridfuse(&here, &["check", named, "--format", "github"]).expect_code(0);
        assert!(
            github.stdout.starts_with("::warning file=src/a b.cu,line=3,"),
            "{}",
            github.story()
        );
    }
}

/// What GitHub's code scanning asks for beside the schema: without it, it refuses the file or doesn't show the result.
#[test]
fn code_scanning_takes_it() {
    let log = sarif(repository().path(), &["."]);
    let run = &log["runs"][0];
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    for rule in rules {
        for text in [&rule["shortDescription"], &rule["fullDescription"]] {
            assert!(text["text"].as_str().unwrap().chars().count() <= 1024, "{rule}");
        }
        assert!(!rule["help"]["text"].as_str().unwrap().is_empty(), "{rule}");
        let level = rule["defaultConfiguration"]["level"].as_str().unwrap();
        assert!(["error", "warning", "note"].contains(&level), "{rule}");
        let shown = match level {
            "note" => "recommendation",
            other => other,
        };
        assert_eq!(rule["properties"]["problem.severity"], shown, "{rule}");
        assert!(rule["name"].as_str().unwrap().chars().count() <= 255, "{rule}");
    }
    let results = run["results"].as_array().unwrap();
    assert!(!results.is_empty());
    for result in results {
        let index = result["ruleIndex"].as_u64().unwrap() as usize;
        assert_eq!(rules[index]["id"], result["ruleId"]);
        assert!(!result["message"]["text"].as_str().unwrap().is_empty(), "{result}");
        let place = &result["locations"][0]["physicalLocation"];
        let uri = place["artifactLocation"]["uri"].as_str().unwrap();
        assert!(
            !uri.starts_with('/') && !uri.contains(':') && !uri.contains(".."),
            "{uri}"
        );
        for number in ["startLine", "startColumn", "endLine", "endColumn"] {
            assert!(place["region"][number].as_u64().unwrap() >= 1, "{result}");
        }
    }
}

/// The byte of a position in characters.
fn offset(text: &str, line: &Value, column: &Value) -> usize {
    let number = |value: &Value| value.as_u64().unwrap() as usize - 1;
    let start: usize = text.split_inclusive('\n').take(number(line)).map(str::len).sum();
    let characters = text[start..].chars().take(number(column));
    start + characters.map(char::len_utf8).sum::<usize>()
}

fn applied(fix: &Value, text: &str) -> String {
    let mut text = text.to_owned();
    let change = &fix["artifactChanges"][0];
    for replacement in change["replacements"].as_array().unwrap().iter().rev() {
        let region = &replacement["deletedRegion"];
        let start = offset(&text, &region["startLine"], &region["startColumn"]);
        let end = offset(&text, &region["endLine"], &region["endColumn"]);
        text.replace_range(start..end, replacement["insertedContent"]["text"].as_str().unwrap());
    }
    text
}

#[test]
fn fixes_do_what_the_rewrites_do() {
    let files = repository();
    let log = sarif(files.path(), &["src"]);
    let results = log["runs"][0]["results"].as_array().unwrap();
    let all = || {
        results
            .iter()
            .flat_map(|result| result["fixes"].as_array().into_iter().flatten())
    };
    let fix = |title: &str| {
        let fits = |fix: &&Value| fix["description"]["text"].as_str().unwrap().starts_with(title);
        all().find(fits).unwrap_or_else(|| panic!("no `{title}`: {log:#}"))
    };
    let stream = fix("Launch into the fire-and-forget stream");
    let rewrite = [
        "rewrite",
        "src/a b.cu",
        "--at",
        "3",
        "--apply",
        "fire-and-forget",
        "--output",
        "out",
    ];
    gridfuse(files.path(), &rewrite).expect_code(0);
    assert_eq!(applied(stream, PROGRAM), files.read("out/a b.cu"));
    let removed = applied(fix("Remove"), PROGRAM);
    assert!(!removed.contains("allow(tiny-child-grid)"), "{removed}");
    // A header can't be created this way.
    assert!(all().all(|fix| !fix.to_string().contains("gridfuse.cuh")));
}
