//! What rewrites add to a program: the runtime's names, and the functions, types and numbers made for a kernel.

use gridfuse_analysis::base::db::SourceFile;
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::TextRange;
use gridfuse_analysis::hir::included::included_files;
use gridfuse_analysis::hir::items::{FunctionItem, items};
use gridfuse_analysis::hir::resolve::{Meaning, meaning};
use gridfuse_codeactions::runtime::HEADER;

use super::super::markdown::{code, describe, fenced, link};
use super::super::state::Snapshot;
use super::{collected, named_at, word};
use crate::collected::collectors;
use crate::launches::{function_at, place_in};

/// The namespace of the runtime.
const NAMESPACE: &str = "gridfuse::";

/// The namespace in it with the atomic operations that a warp does together.
const WARP_AGGREGATED: &str = "warp_aggregated";

/// The text about the name at `offset`, if it comes from a rewrite.
pub fn at(snapshot: &Snapshot, file: SourceFile, offset: u32) -> Option<(String, FileRange)> {
    let db = &snapshot.db;
    let text = file.text(db);
    let range = word(&text, offset)?;
    let name = range.text(&text);
    let before = text.get(..range.start as usize)?.trim_end();
    let place = FileRange { file, range };
    if before.ends_with(NAMESPACE) {
        return Some((runtime(name)?, place));
    }
    // One of the operations by the names of CUDA's.
    if before.ends_with(&format!("{NAMESPACE}{WARP_AGGREGATED}::")) {
        return Some((runtime(WARP_AGGREGATED)?, place));
    }
    if format!("{name}::") == NAMESPACE {
        let rest = text.get(range.end as usize..)?.strip_prefix("::")?;
        let member: String = rest
            .chars()
            .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
            .collect();
        return Some((runtime(&member)?, place));
    }
    // No other name is taken for a rewrite's where the runtime isn't used.
    if !uses_runtime(snapshot, file) {
        return None;
    }
    if let Some(function) = function_at(db, file, offset) {
        let object = match before.strip_suffix('.') {
            Some(before) if name == "launch" => last_word(before),
            _ => name,
        };
        let about = aggregator(snapshot, function, object);
        let launch = collected::hover(snapshot, file, offset);
        if let Some((launch, place)) = launch {
            let all: Vec<String> = std::iter::once(launch).chain(about).collect();
            return Some((all.join("\n\n---\n\n"), place));
        }
        if let Some(about) = about {
            return Some((about, place));
        }
    }
    if let Some((function, place)) = named_at(snapshot, file, offset) {
        // Kernels have a text of their own, which says the same.
        return match function.signature(db).kernel {
            true => None,
            false => Some((format!("**`{name}`**\n\n{}\n", role(snapshot, function)?), place)),
        };
    }
    match meaning(db, file, name) {
        Meaning::Global(global) if global.constant => {
            Some((knob(snapshot, file, name, global.init.as_deref()?)?, place))
        }
        Meaning::Type => Some((record(snapshot, file, name)?, place)),
        _ => None,
    }
}

fn uses_runtime(snapshot: &Snapshot, file: SourceFile) -> bool {
    file.text(&snapshot.db).contains(NAMESPACE)
}

fn last_word(text: &str) -> &str {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let start = text.trim_end_matches(part).len();
    &text[start..]
}

/// What the runtime header says about a name in its namespace, and how to change what the name decides.
fn runtime(name: &str) -> Option<String> {
    let mut out = format!("**`{NAMESPACE}{name}`**\n\n{}\n", documented(name)?);
    let change = match name {
        "PerGridFromHost" => {
            "The granularity is this one word: with `PerGrid` the device launches, with a finer one it launches more often and earlier. \
             `arena_for` in place of `launchpad_for` spares the host waiting then."
        }
        "launchpad_for" => {
            "The host waits here until the parent is done. The template arguments are the kernels that it may launch; one that isn't \
             listed is launched by the device."
        }
        "PerGridInStream" => {
            "Another granularity takes more than this word: `retune-grid`, `retune-block` and so on change all of it."
        }
        "followed_by" | "StreamArena" | "StreamBatch" | "kNotKnown" => {
            "If a thread can launch more often than `followed_by` says (the number after its kernel, or 1), the parent is stopped: \
             nothing is lost in silence. Where `launch` is told what to do with what finds no room, the number (`kNotKnown`: some) is how \
             much room there is; `gridfuse::direct_launches()` counts what found none."
        }
        "PerWarp" | "PerBlock" | "PerMultiBlock" | "PerGrid" => {
            "The granularity is this one word: `PerWarp`, `PerBlock`, `PerMultiBlock<8>` or `PerGrid`. A coarser one makes fewer and \
             larger launches, later. What the Aggregator's constructor takes must be the same for all threads of the group: always so for \
             a finer granularity; for a coarser one, what differs has to move into the braces of `launch`."
        }
        "ByWarp" | "ByBlock" | "BySize" => {
            "The assignment is this one word: who runs child grids, the warp's threads, the block's, or, by their sizes, both."
        }
        "followed_at_need" => {
            "The grid that follows is there for the first launches, and for those after one that had much to run: the result doesn't depend \
             on it. `followed_by` in its place is always there."
        }
        "Arena" | "arena_for" => {
            "A launch that finds no room goes out by itself: slow, not wrong. `bytes_per_thread`, the fourth argument of \
             `arena_for`, decides how much room there is."
        }
        "Aggregator" => {
            "It has to stay where all threads of the block pass. The first template argument is the granularity, the second the \
             kernel that runs the collected launches."
        }
        "InOrder" => "It has to stand right after the two aggregators: it is destroyed first, and launches for both.",
        _ => return Some(out),
    };
    out.push_str(&format!("\n{change}\n"));
    Some(out)
}

/// The comment above the declaration of a name in the runtime header.
fn documented(name: &str) -> Option<String> {
    let declares = |line: &str| {
        let known = [
            "struct ",
            "class ",
            "using ",
            "namespace ",
            "inline ",
            "constexpr ",
            "__device__ ",
            "__host__ ",
        ];
        known.iter().any(|start| line.starts_with(start))
            && line.match_indices(name).any(|(at, _)| {
                let after = line[at + name.len()..].trim_start();
                // `detail::` in front of a base class declares nothing.
                line[..at].ends_with(' ')
                    && (after.is_empty() || after.starts_with(['{', '(', ':', '=']))
                    && !after.starts_with("::")
            })
    };
    let mut comment: Vec<&str> = Vec::new();
    for line in HEADER.lines() {
        if let Some(text) = line.strip_prefix("///") {
            comment.push(text.strip_prefix(' ').unwrap_or(text));
        } else if !comment.is_empty() && declares(line) {
            return Some(comment.join("\n"));
        } else if !line.starts_with("template") {
            comment.clear();
        }
    }
    None
}

/// The declaration `gridfuse::Aggregator<granularity, kernel> name(` in a function, without the parenthesis.
fn declaration<'t>(text: &'t str, name: &str) -> Option<(u32, &'t str)> {
    let start = "gridfuse::Aggregator<";
    text.match_indices(start).find_map(|(at, _)| {
        let rest = &text[at..];
        let end = rest.find(['(', ';', '{'])?;
        let declared = rest[..end].trim_end();
        (last_word(declared) == name).then_some((at as u32, declared))
    })
}

fn aggregator(snapshot: &Snapshot, function: FunctionItem<'_>, name: &str) -> Option<String> {
    let db = &snapshot.db;
    let text = function.text(db);
    let (at, declared) = declaration(&text, name)?;
    let place = FileRange {
        file: function.file(db),
        range: TextRange::new(function.start(db) + at, function.start(db) + at + declared.len() as u32),
    };
    let line = describe(snapshot, |describe| {
        let place = describe.place(place);
        let home = place.path.clone();
        link(&place, &home)
    });
    let declared: Vec<&str> = declared.split_whitespace().collect();
    let declared = declared.join(" ");
    let then = if declared.contains("PerGridInStream") {
        "A grid that the host launches after the kernel runs them all. The braces hold the arguments that differ; \
         `gridfuse::followed_by`, at the launch by the host, takes the rest."
    } else {
        "When the last thread of the group leaves the kernel, one launch runs them all. The braces hold the arguments that differ \
         within the group; the constructor takes the rest."
    };
    let of_it = collectors(db, function)
        .into_iter()
        .find(|collector| collector.name == name);
    let collected = of_it.map_or(function, |collector| collector.child);
    Some(format!(
        "**`{name}`** collects launches of `{}` ({line})\n{}\n`{name}.launch(grid, block, {{arguments}})` records a launch; any thread \
         may call it. {then}\n\nThe group is the first template argument: `PerWarp`, `PerBlock`, `PerMultiBlock<8>`, \
         `PerGrid`, `PerGridFromHost` or `PerGridInStream`.\n",
        collected.name(db),
        fenced(&declared),
    ))
}

/// What a function that a rewrite made is for.
pub fn role(snapshot: &Snapshot, function: FunctionItem<'_>) -> Option<String> {
    let db = &snapshot.db;
    let text = function.text(db);
    let signature = function.signature(db);
    let parameters = signature.params_span.text(&text);
    let batch = parameters.trim_start_matches('(').trim_start();
    if signature.kernel
        && [
            "gridfuse::Batch<",
            "gridfuse::NestedBatch<",
            "gridfuse::ShapedBatch<",
            "gridfuse::StreamBatch<",
        ]
        .iter()
        .any(|ty| batch.starts_with(ty))
    {
        return Some(
            "The aggregated form of a kernel: one grid of it runs many launches, `batch.for_each_block` gives each of them its blocks, \
             or `for_each_thread` its threads, as far as they have something to do. \
             Its parameters after the batch are the arguments that all these launches share. The kernel's code stands in the \
             function that it calls."
                .to_string(),
        );
    }
    let has = |parameter: &str| {
        parameters
            .split(['(', ',', ')'])
            .any(|declared| last_word(declared.trim_end()) == parameter)
    };
    if has("blockIdx") && has("gridDim") {
        let users: Vec<String> = users(snapshot, function).iter().map(|name| code(name)).collect();
        let threads = if has("threadIdx") { "`threadIdx`, " } else { "" };
        let mut out = format!(
            "The body of a kernel as a function. {threads}`blockIdx`, `gridDim` and `blockDim` are parameters, which hide CUDA's own: the \
             code reads as in a kernel. A change here changes all forms of the kernel alike."
        );
        if !users.is_empty() {
            out.push_str(&format!("\n\nUsed by {}.", users.join(", ")));
        }
        return Some(out);
    }
    text.contains("gridfuse::for_each_thread(").then(|| {
        "Runs all threads of a child grid as a loop in the calling thread: for grids that are too small to be worth a launch."
            .to_string()
    })
}

/// The functions of a file that use another one, by the word.
fn users<'db>(snapshot: &'db Snapshot, function: FunctionItem<'db>) -> Vec<&'db str> {
    let db = &snapshot.db;
    let name = function.name(db).rsplit("::").next().unwrap_or_default();
    let functions = items(db, function.file(db)).functions.iter();
    functions
        .filter(|user| **user != function && user.has_body(db) && mentions(&user.text(db), name).next().is_some())
        .map(|user| user.name(db))
        .collect()
}

/// Where a word stands in a text.
fn mentions<'t>(text: &'t str, name: &'t str) -> impl Iterator<Item = usize> + 't {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices(name).map(|(at, _)| at).filter(move |at| {
        let (before, after) = (&text[..*at], &text[at + name.len()..]);
        !before.ends_with(part) && !after.starts_with(part)
    })
}

/// A constant that decides between ways to run: it stands in a condition of a function that launches.
fn knob(snapshot: &Snapshot, file: SourceFile, name: &str, value: &str) -> Option<String> {
    let db = &snapshot.db;
    value.trim().parse::<u64>().ok()?;
    let mut places = Vec::new();
    let mut comment = None;
    for file in included_files(db, file) {
        let text = file.text(db);
        for function in &items(db, *file).functions {
            let body = function.text(db);
            let launches = body.contains("<<") || body.contains(".launch(");
            for at in mentions(&body, name).filter(|_| launches) {
                let span = gridfuse_analysis::base::span::Span::new(at as u32, (at + name.len()) as u32);
                places.push(place_in(db, *function, span));
            }
        }
        comment = comment.or_else(|| comment_above(&text, name));
    }
    let comment = comment.filter(|_| !places.is_empty())?;
    let used = describe(snapshot, |describe| {
        let home = (describe.path)(file.path(db));
        let links: Vec<String> = places
            .iter()
            .map(|place| link(&describe.place(*place), &home))
            .collect();
        links.join(", ")
    });
    // A kernel that the host launches before anybody knows of what is made for one size of blocks.
    let is_block = included_files(db, file).iter().any(|file| {
        let text = file.text(db);
        text.contains("gridfuse::StreamBatch<") && text.contains(&format!(", {name}> "))
    });
    let change = match is_block {
        true => {
            "The launches and what runs them share it, so that they change together; what the program computes from the block size, as the \
             number of blocks, has to change with it."
        }
        false => "A number to tune: any positive one is right, the best depends on the data and the GPU.",
    };
    Some(format!(
        "**`{name}`** = {value}\n\n{comment}\n\n{change} Used at {used}.\n"
    ))
}

/// The comment lines directly above `constexpr … name =`.
fn comment_above(text: &str, name: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let at = lines.iter().position(|line| {
        let declared = line.split_once('=').map(|(declared, _)| declared.trim());
        declared.is_some_and(|d| d.starts_with("constexpr ") && last_word(d) == name)
    })?;
    let comment = lines[..at]
        .iter()
        .rev()
        .map_while(|line| line.trim().strip_prefix("//"));
    let mut comment: Vec<&str> = comment.map(str::trim).collect();
    comment.reverse();
    (!comment.is_empty()).then(|| comment.join(" "))
}

/// The type of the arguments of collected launches.
fn record(snapshot: &Snapshot, file: SourceFile, name: &str) -> Option<String> {
    let db = &snapshot.db;
    let batch = format!("Batch<{name}>");
    let kernel = included_files(db, file)
        .iter()
        .flat_map(|file| &items(db, *file).functions)
        .find(|function| function.signature(db).kernel && function.text(db).contains(&batch))?;
    Some(format!(
        "**`{name}`**: the arguments that differ between the launches that `{}` runs together, one `{name}` for each. What is the same \
         for all of them is a parameter of that kernel.\n",
        kernel.name(db)
    ))
}

#[cfg(test)]
mod tests {
    use gridfuse_codeactions::handlers::REWRITES;

    use super::*;

    #[test]
    fn every_name_in_rewritten_code_is_explained() {
        for rewrite in REWRITES {
            for (at, _) in rewrite.doc.match_indices(NAMESPACE) {
                let rest = &rewrite.doc[at + NAMESPACE.len()..];
                let name: String = rest
                    .chars()
                    .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
                    .collect();
                assert!(runtime(&name).is_some(), "{}: {name}", rewrite.id);
            }
        }
        assert_eq!(documented("detail"), None);
        assert_eq!(documented("nonsense"), None);
        assert!(documented("NestedBatch").is_some());
    }

    #[test]
    fn declarations_and_mentions() {
        let text =
            "gridfuse::Aggregator<gridfuse::PerMultiBlock<8>,\n k_aggregated<int>> ks(arena, n); ks.launch(1, 2, {3});";
        let found = declaration(text, "ks").map(|(at, text)| (at, text.ends_with("> ks")));
        assert_eq!(found, Some((0, true)));
        assert_eq!(declaration(text, "arena"), None);
        assert_eq!(mentions("ab a_b b a.b(", "b").collect::<Vec<_>>(), [7, 11]);
        assert_eq!(
            comment_above("int x;\n// One\n// two.\nconstexpr int kN = 3;", "kN").as_deref(),
            Some("One two.")
        );
        assert_eq!(comment_above("constexpr int kN = 3;", "kN"), None);
    }
}
