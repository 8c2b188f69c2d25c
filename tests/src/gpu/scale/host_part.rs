//! The host's part of a program of the corpus, changed to read its graph, and what has to come out, from files.

use anyhow::{Result, ensure};

/// A program of the corpus whose inputs grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Program {
    /// Its name: `tests/corpus/NAME.cu`.
    pub name: &'static str,
    /// How the launch begins that is rewritten.
    pub launch: &'static str,
    /// How the loop by the host begins, where it launches in rounds.
    pub rounds: Option<&'static str>,
    /// What its graphs are called: `FAMILY-INPUT-VERTICES.graph`.
    pub family: &'static str,
    /// The function that computes on the CPU what has to come out, of the graph.
    pub reference: &'static str,
    /// Its inputs.
    pub inputs: &'static [&'static str],
    /// The variants of the peer that is written by hand.
    pub peers: &'static [&'static str],
}

/// All of them.
pub const PROGRAMS: [Program; 3] = [
    Program {
        name: "bfs",
        launch: "expand<<<",
        rounds: Some("for (int level = 0; *g.deepest_host"),
        family: "g",
        reference: "search_on_cpu",
        inputs: &["rmat", "uniform", "road", "tree"],
        peers: &["topo", "queue", "queue-coop"],
    },
    Program {
        name: "sssp",
        launch: "relax<<<",
        rounds: Some("for (int round = 0; *g.last_round_host"),
        family: "g",
        reference: "shortest_on_cpu",
        inputs: &["rmat", "uniform", "road", "tree"],
        peers: &["topo", "queue", "queue-coop"],
    },
    Program {
        name: "tc",
        launch: "close<<<",
        rounds: None,
        family: "tc",
        reference: "triangles_on_cpu",
        inputs: &["rmat", "uniform"],
        peers: &["given-1", "given-8", "given-32", "edge-1", "edge-8", "edge-32"],
    },
];

const MAKES: &str = "Graph make_graph(const std::string& input, int vertices) {";
const MAIN: &str = "int main(int argc, char** argv) {";

/// The program with functions in place of those that make the graph and compute on the CPU.
///
/// # Errors
/// When the program doesn't look as it has to.
pub fn reads_files(program: &Program, source: &str) -> Result<String> {
    let Program {
        name,
        family,
        reference,
        ..
    } = program;
    let computes = format!("std::vector<int> {reference}(const Graph& g) {{");
    let asks = format!("{reference}(graph)");
    for wanted in [MAKES, MAIN, &computes, &asks] {
        let count = source.matches(wanted).count();
        ensure!(count == 1, "{name}.cu has `{wanted}` {count} times");
    }
    let weights = if *family == "g" { "&graph.weight" } else { "nullptr" };
    let reads = format!(
        r#"#include "scale.h"

static Graph make_graph(const std::string& input, int vertices) {{
    Graph graph;
    if (!scale_load_graph("{family}", input, vertices, graph.row, graph.col, {weights})) {{
        std::fprintf(stderr, "there is no such graph\n");
        std::exit(2);
    }}
    return graph;
}}
static std::vector<int> {reference}(const Graph& graph, const std::string& input) {{
    std::vector<int> expected;
    if (!scale_load_reference("{family}", input, graph.n(), "{name}", expected)) {{
        std::fprintf(stderr, "nobody has computed what has to come out\n");
        std::exit(2);
    }}
    return expected;
}}

{MAIN}"#
    );
    Ok(source
        .replace(MAKES, &MAKES.replace("make_graph", "make_own_graph"))
        .replace(&computes, &computes.replace(reference, &format!("own_{reference}")))
        .replace(&asks, &format!("{reference}(graph, options.input)"))
        .replace(MAIN, &reads))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::workspace;

    #[test]
    fn programs_read_files() {
        for program in &PROGRAMS {
            let path = workspace::root()
                .join("tests/corpus")
                .join(format!("{}.cu", program.name));
            let source = std::fs::read_to_string(path).unwrap();
            assert_eq!(source.matches(program.launch).count(), 1, "{}", program.name);
            if let Some(rounds) = program.rounds {
                assert_eq!(source.matches(rounds).count(), 1, "{}", program.name);
            }
            let text = reads_files(program, &source).unwrap();
            assert!(text.contains("scale_load_graph") && text.contains("make_own_graph"));
            assert!(reads_files(program, &text).is_err());
        }
    }
}
