//! `docs/examples/`: what `optimize` makes of the programs of the corpus.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::fs;

use similar::{ChangeTag, TextDiff};

use crate::cli::gridfuse;
use crate::docs::NOTE;
use crate::gpu::plan::{At, Plan, launch_line};
use crate::workspace;

/// A program of the corpus, rewritten.
#[derive(Debug, Clone)]
pub struct Example {
    /// The program's name.
    pub name: String,
    /// Its first comment.
    pub about: String,
    /// The commands.
    pub commands: Vec<String>,
    /// The source as it is now.
    pub text: String,
    /// The source as it was.
    before: String,
}

/// A kernel with launches in its code, before and after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parent {
    /// Its name.
    pub name: String,
    /// How many of its lines are new or changed or gone: a line in place of a line counts once.
    pub changed_lines: usize,
}

/// All programs that the plan names a launch of, rewritten by `optimize`.
///
/// # Panics
/// When one can't be.
pub fn all() -> Vec<Example> {
    let plan = Plan::load(&workspace::root().join("tests/gpu/plan.toml")).expect("the plan");
    let programs = plan.programs.iter().filter_map(|p| Some((p, p.launch.as_ref()?)));
    programs
        .map(|(program, at)| example(&program.name, &program.source, at))
        .collect()
}

fn example(name: &str, source: &std::path::Path, at: &At) -> Example {
    let before = fs::read_to_string(workspace::root().join(source))
        .expect("a source")
        .replace("\r\n", "\n");
    let file = format!("{name}.cu");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join(&file);
    fs::write(&path, &before).expect("a copy");
    let mut commands = Vec::new();
    for launch in at.lines() {
        let text = fs::read_to_string(&path).expect("the copy");
        let line = launch_line(&text, launch).expect("a launch").to_string();
        let words = ["rewrite", &file, "--at", &line, "--apply", "optimize", "--in-place"];
        gridfuse(directory.path(), &words).expect_code(0);
        commands.push(format!("gridfuse {}", words.join(" ")));
    }
    let about = before.lines().take_while(|line| line.starts_with("//"));
    let about: Vec<&str> = about
        .map(|line| line.trim_start_matches('/').trim())
        .take_while(|line| !line.is_empty())
        .collect();
    Example {
        name: name.to_owned(),
        about: about.join("\n"),
        commands,
        text: fs::read_to_string(&path).expect("the result"),
        before,
    }
}

impl Example {
    /// The change as a unified diff.
    pub fn diff(&self) -> String {
        let file = format!("{}.cu", self.name);
        TextDiff::from_lines(&self.before, &self.text)
            .unified_diff()
            .context_radius(3)
            .header(&file, &file)
            .to_string()
    }

    /// The kernels that launch, with how much of each has changed.
    pub fn parents(&self) -> Vec<Parent> {
        let is_launch = |line: &str| line.contains("<<<") && line.starts_with(' ');
        kernels(&self.before)
            .into_iter()
            .filter(|(_, body)| body.lines().any(is_launch))
            .filter_map(|(name, before)| {
                let (_, after) = kernels(&self.text).into_iter().find(|(other, _)| *other == name)?;
                let changed_lines = changed_lines(&before, &after);
                (changed_lines > 0).then_some(Parent { name, changed_lines })
            })
            .collect()
    }
}

/// The kernels of a source as the corpus writes them: from a line that begins with `__global__` to the next line `}`.
pub(crate) fn kernels(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if !line.starts_with("__global__") {
            continue;
        }
        let bounds = line
            .find("__launch_bounds__")
            .and_then(|at| Some(at + line.get(at..)?.find(')')? + 1));
        let head = line.get(bounds.unwrap_or(0)..).unwrap_or(line);
        let head = head.split('(').next().unwrap_or(head);
        let name = head.split_whitespace().last().unwrap_or(head).to_owned();
        let mut body = format!("{line}\n");
        if !line.ends_with('}') {
            for line in lines.by_ref() {
                body.push_str(line);
                body.push('\n');
                if line == "}" {
                    break;
                }
            }
        }
        found.push((name, body));
    }
    found
}

fn changed_lines(before: &str, after: &str) -> usize {
    let (mut count, mut gone, mut new) = (0, 0, 0);
    let diff = TextDiff::from_lines(before, after);
    for change in diff.iter_all_changes() {
        match change.tag() {
            ChangeTag::Delete => gone += 1,
            ChangeTag::Insert => new += 1,
            ChangeTag::Equal => {
                count += usize::max(gone, new);
                (gone, new) = (0, 0);
            }
        }
    }
    count + usize::max(gone, new)
}

/// The pages, by their path under `docs/`.
pub fn pages(examples: &[Example]) -> BTreeMap<String, String> {
    let mut pages = BTreeMap::new();
    let mut index = format!(
        r#"{NOTE}

# Examples

What `optimize` makes of the programs of [the corpus](../../tests/corpus/README.md): the change, without the runtime header `gridfuse.cuh`, which it puts beside the source. How fast they are stands in [the measurements](../measurements.md).

| program | kernels that launch, and how many of their lines change |
|---|---|
"#
    );
    for example in examples {
        let parents: Vec<String> = example
            .parents()
            .iter()
            .map(|p| format!("`{}`: {}", p.name, p.changed_lines))
            .collect();
        index.push_str(&format!("| [{0}]({0}.md) | {1} |\n", example.name, parents.join(", ")));
        let page = format!(
            "{NOTE}\n\n# {}\n\n{}\n\n```sh\n{}\n```\n\n```diff\n{}```\n",
            example.name,
            example.about,
            example.commands.join("\n"),
            example.diff()
        );
        pages.insert(format!("examples/{}.md", example.name), page);
    }
    pages.insert("examples/README.md".to_owned(), index);
    pages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_kernel_that_have_changed() {
        assert_eq!(changed_lines("a\nb\nc\n", "a\nx\ny\nc\n"), 2);
        assert_eq!(changed_lines("a\nb\nc\n", "a\nc\nd\n"), 2);
        let text = "__global__ void one(int n) {}\n__global__ void __launch_bounds__(64) two(int n,\n    int m) {\n    n;\n}\nint x;\n";
        let found = kernels(text);
        assert_eq!(
            found[0],
            ("one".to_owned(), "__global__ void one(int n) {}\n".to_owned())
        );
        assert_eq!(found[1].0, "two");
        assert!(found[1].1.ends_with("    n;\n}\n"), "{found:?}");
    }
}
