//! Programs of any length and workspaces of any number of files, the same each time.
//!
//! A program is made of groups: a device function, a child kernel, a parent kernel that launches it, a host function that launches
//! the parent. Groups come in five kinds, so that templates, structs, macros and grids of two dimensions occur.

use std::fmt::Write as _;

/// About how many lines a group has.
const LINES_OF_GROUP: usize = 40;

/// How many groups a file of a workspace has: about 12 KB.
const GROUPS_OF_FILE: usize = 9;

/// What a source begins with when no header does it.
const HEAD: &str = r#"#include <cuda_runtime.h>

#define BLOCKS(n, threads) (((n) + (threads) - 1) / (threads))

/// The edges of a vertex.
struct Edges {
    int begin;
    int count;
};
"#;

/// How the files of a workspace belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flavour {
    /// Each file is a program of its own, with the same names as all others.
    Programs,
    /// One program: each file includes a header that tells what the others have, and calls the next one.
    Shared,
}

/// A program of about so many lines, with a `main` that calls all.
pub fn program(lines: usize) -> String {
    let groups = (lines / LINES_OF_GROUP).max(1);
    let mut text = HEAD.to_owned();
    for number in 0..groups {
        text.push_str(&group(&number.to_string(), number));
    }
    text.push_str(&main((0..groups).map(|number| number.to_string())));
    text
}

/// The files of a workspace: names and texts. `files` counts those that end in `.cu`.
pub fn workspace(flavour: Flavour, files: usize) -> Vec<(String, String)> {
    match flavour {
        Flavour::Programs => (0..files).map(|file| (file_name(file), own_program(file))).collect(),
        Flavour::Shared => {
            let mut made = vec![("common.cuh".to_owned(), header(files))];
            made.extend((0..files).map(|file| (file_name(file), part(file, files))));
            made
        }
    }
}

/// The name of a file of a workspace.
pub fn file_name(file: usize) -> String {
    format!("part_{file:04}.cu")
}

fn own_program(file: usize) -> String {
    let mut text = HEAD.to_owned();
    for number in 0..GROUPS_OF_FILE {
        // The kinds differ between files, the names don't.
        text.push_str(&group(&number.to_string(), number + file));
    }
    text.push_str(&main((0..GROUPS_OF_FILE).map(|number| number.to_string())));
    text
}

fn part_name(file: usize, number: usize) -> String {
    format!("{file}_{number}")
}

fn header(files: usize) -> String {
    let mut text = format!("#pragma once\n{HEAD}\n");
    for file in 0..files {
        let _ = writeln!(
            text,
            "void run_part_{file}(const int* row, const int* col, const int* w, int* dist, int n);"
        );
    }
    text.push_str(
        "\n/// A weight that isn't negative.\n__device__ inline int positive(int weight) {\n    return weight < 0 ? -weight : weight;\n}\n",
    );
    text
}

fn part(file: usize, files: usize) -> String {
    let mut text = "#include \"common.cuh\"\n".to_owned();
    let names: Vec<String> = (0..GROUPS_OF_FILE).map(|number| part_name(file, number)).collect();
    for (number, name) in names.iter().enumerate() {
        text.push_str(&group(name, number + file).replace("x < 0 ? -x : x", "positive(x)"));
    }
    let _ = write!(
        text,
        "\nvoid run_part_{file}(const int* row, const int* col, const int* w, int* dist, int n) {{\n"
    );
    for name in &names {
        let _ = writeln!(text, "    run_{name}(row, col, w, dist, n);");
    }
    if file + 1 < files {
        let _ = writeln!(text, "    run_part_{}(row, col, w, dist, n);", file + 1);
    }
    text.push_str("}\n");
    if file == 0 {
        text.push_str("\nint main() {\n    run_part_0(nullptr, nullptr, nullptr, nullptr, 0);\n    return 0;\n}\n");
    }
    text
}

fn main(groups: impl Iterator<Item = String>) -> String {
    let mut text = "\nint main() {\n".to_owned();
    for name in groups {
        let _ = writeln!(text, "    run_{name}(nullptr, nullptr, nullptr, nullptr, 0);");
    }
    text.push_str("    return 0;\n}\n");
    text
}

/// One group; `i` is in its names.
fn group(i: &str, kind: usize) -> String {
    let weight = format!(
        "\n/// The weight of an edge, group {i}.\n__device__ int weight_{i}(const int* w, int e) {{\n    int x = w[e];\n    \
         if (x > 1000) {{\n        x = 1000;\n    }}\n    return x < 0 ? -x : x;\n}}\n"
    );
    // What differs: the child's head, how it finds its edge, the launch, the parent's head and the lines before the launch.
    let (head, edge, launch) = match kind % 5 {
        0 => (
            format!("__global__ void child_{i}(const int* col, const int* w, int* dist, int level, int begin, int count)"),
            "    int e = blockIdx.x * blockDim.x + threadIdx.x;\n    int begin_ = begin, count_ = count;\n".to_owned(),
            format!("child_{i}<<<(count + 127) / 128, 128>>>(col, w, dist, level, begin, count);"),
        ),
        1 => (
            format!("template <int W>\n__global__ void child_{i}(const int* col, const int* w, int* dist, int level, int begin, int count)"),
            "    int e = blockIdx.x * W + threadIdx.x;\n    int begin_ = begin, count_ = count;\n".to_owned(),
            format!("child_{i}<64><<<(count + 63) / 64, 64>>>(col, w, dist, level, begin, count);"),
        ),
        2 => (
            format!("__global__ void child_{i}(const int* col, const int* w, int* dist, int level, Edges edges)"),
            "    int e = blockIdx.x * blockDim.x + threadIdx.x;\n    int begin_ = edges.begin, count_ = edges.count;\n".to_owned(),
            format!("Edges edges = {{begin, count}};\n        child_{i}<<<(count + 127) / 128, 128>>>(col, w, dist, level, edges);"),
        ),
        3 => (
            format!("__global__ void child_{i}(const int* col, const int* w, int* dist, int level, int begin, int count)"),
            "    int e = blockIdx.x * blockDim.x + threadIdx.x;\n    int begin_ = begin, count_ = count;\n".to_owned(),
            format!("child_{i}<<<BLOCKS(count, 256), 256>>>(col, w, dist, level, begin, count);"),
        ),
        _ => (
            format!("__global__ void child_{i}(const int* col, const int* w, int* dist, int level, int begin, int count)"),
            "    int x = blockIdx.x * blockDim.x + threadIdx.x;\n    int y = blockIdx.y * blockDim.y + threadIdx.y;\n    \
             int e = y * 16 + x;\n    int begin_ = begin, count_ = count;\n"
                .to_owned(),
            format!(
                "dim3 grid(1, (count + 255) / 256);\n        dim3 block(16, 16);\n        \
                 child_{i}<<<grid, block>>>(col, w, dist, level, begin, count);"
            ),
        ),
    };
    format!(
        r#"{weight}
{head} {{
{edge}    if (e < count_) {{
        int u = col[begin_ + e];
        int d = weight_{i}(w, begin_ + e);
        if (dist[u] > level + d) {{
            dist[u] = level + d;
        }}
    }}
}}

__global__ void parent_{i}(const int* row, const int* col, const int* w, int* dist, int level, int n) {{
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    int begin = row[v];
    int count = row[v + 1] - begin;
    if (dist[v] == level && count > 0) {{
        {launch}
    }}
}}

void run_{i}(const int* row, const int* col, const int* w, int* dist, int n) {{
    for (int level = 0; level < 10; ++level) {{
        parent_{i}<<<BLOCKS(n, 256), 256>>>(row, col, w, dist, level, n);
    }}
    cudaDeviceSynchronize();
}}
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lsp_bench::launch::subject;

    #[test]
    fn programs_have_the_length_that_was_asked_for() {
        for lines in [100, 1_000, 10_000, 100_000] {
            let text = program(lines);
            let made = text.lines().count();
            assert!(made * 10 >= lines * 9 && made <= lines + lines / 5, "{lines}: {made}");
            assert!(subject(&text).is_some(), "{lines}");
            assert_eq!(text, program(lines));
        }
    }

    #[test]
    fn files_of_workspaces_have_about_12_kb() {
        for flavour in [Flavour::Programs, Flavour::Shared] {
            let files = workspace(flavour, 3);
            let sources: Vec<&(String, String)> = files.iter().filter(|(name, _)| name.ends_with(".cu")).collect();
            assert_eq!(sources.len(), 3);
            for (name, text) in sources {
                assert!((10_000..14_000).contains(&text.len()), "{name}: {}", text.len());
                assert!(subject(text).is_some(), "{name}");
            }
        }
    }
}
