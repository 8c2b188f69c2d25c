//! The launch graph: which function launches which kernel, and how often.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

use gridfuse_analysis::db::{Db, SourceFile};
use gridfuse_analysis::items::FunctionItem;
use gridfuse_analysis::launch::{Child, Launchers, launch_counts};
use gridfuse_analysis::span::FileRange;

use crate::graph_svg::{self, Look};
use crate::launches::{in_file, place_in};

/// What a node stands for; decides how it's drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NodeKind {
    Kernel,
    Device,
    Host,
    /// No definition was found.
    Unknown,
}

/// A function; two of one name in different places are two nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub label: String,
    kind: NodeKind,
    /// Its name where it is defined; `None`: no definition was found.
    pub place: Option<FileRange>,
}

/// A launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Who launches: an index in [`Graph::nodes`].
    pub from: usize,
    /// What is launched: an index in [`Graph::nodes`].
    pub to: usize,
    /// How often, where that is known: `up to blockDim per grid`.
    pub label: String,
    /// Who launches isn't certain: one of several kernels, or in a lambda.
    pub uncertain: bool,
}

/// A graph, that grows file by file.
#[derive(Default)]
pub struct Graph {
    /// Functions, in the order in which they were found.
    pub nodes: Vec<Node>,
    /// Launches, in the order in which they were found.
    pub edges: Vec<Edge>,
    known: BTreeMap<(PathBuf, u32), usize>,
    unknown: BTreeMap<String, usize>,
}

// Writing into a string cannot fail.
impl Graph {
    /// Adds the launches of a file.
    pub fn add_file(&mut self, db: &dyn Db, file: SourceFile) {
        for site in in_file(db, file) {
            let function = site.id.function;
            let from = self.function(db, function);
            let name = site.facts.kernel_name.as_deref().unwrap_or("(computed)");
            let (targets, certain) = match &site.facts.child {
                Child::Kernel(kernel) => (vec![self.function(db, *kernel)], true),
                Child::Ambiguous(kernels) => (kernels.iter().map(|k| self.function(db, *k)).collect(), false),
                Child::Unknown => (vec![self.unknown(name)], true),
            };
            let mut label = String::new();
            if site.facts.launchers != Launchers::Host
                && let Some(count) = launch_counts(db, function).get(site.id.index as usize)
            {
                label = format!("{} per grid", count.per_grid);
            }
            for to in targets {
                self.edges.push(Edge {
                    from,
                    to,
                    label: label.clone(),
                    uncertain: !certain || site.facts.in_lambda,
                });
            }
        }
    }

    fn function(&mut self, db: &dyn Db, function: FunctionItem<'_>) -> usize {
        let key = (function.file(db).path(db).to_path_buf(), function.start(db));
        if let Some(index) = self.known.get(&key) {
            return *index;
        }
        let signature = function.signature(db);
        let kind = match (signature.kernel, signature.device) {
            (true, _) => NodeKind::Kernel,
            (_, true) => NodeKind::Device,
            _ => NodeKind::Host,
        };
        self.nodes.push(Node {
            label: function.name(db).to_owned(),
            kind,
            place: Some(place_in(db, function, signature.name_span)),
        });
        self.known.insert(key, self.nodes.len() - 1);
        self.nodes.len() - 1
    }

    fn unknown(&mut self, name: &str) -> usize {
        if let Some(index) = self.unknown.get(name) {
            return *index;
        }
        self.nodes.push(Node {
            label: name.to_owned(),
            kind: NodeKind::Unknown,
            place: None,
        });
        self.unknown.insert(name.to_owned(), self.nodes.len() - 1);
        self.nodes.len() - 1
    }

    /// For Graphviz.
    pub fn dot(&self) -> String {
        let mut out = "digraph launches {\n  node [fontname=\"monospace\"];\n".to_owned();
        for (index, node) in self.nodes.iter().enumerate() {
            let shape = match node.kind {
                NodeKind::Kernel => "shape=box",
                NodeKind::Device => "shape=box, style=rounded",
                NodeKind::Host => "shape=ellipse",
                NodeKind::Unknown => "shape=box, style=dashed",
            };
            let _ = writeln!(out, "  n{index} [label=\"{}\", {shape}];", dot_text(&node.label));
        }
        for edge in &self.edges {
            let style = if edge.uncertain { ", style=dashed" } else { "" };
            let (from, to) = (edge.from, edge.to);
            let _ = writeln!(out, "  n{from} -> n{to} [label=\"{}\"{style}];", dot_text(&edge.label));
        }
        out.push_str("}\n");
        out
    }

    /// As a picture. `Err`: why it can't be drawn.
    pub fn svg(&self) -> Result<String, String> {
        let look = |kind: NodeKind| match kind {
            NodeKind::Kernel => Look::Kernel,
            NodeKind::Device => Look::Device,
            NodeKind::Host => Look::Host,
            NodeKind::Unknown => Look::Unknown,
        };
        let nodes: Vec<(String, Look)> = self
            .nodes
            .iter()
            .map(|node| (node.label.clone(), look(node.kind)))
            .collect();
        let edges: Vec<graph_svg::Edge> = self
            .edges
            .iter()
            .map(|edge| graph_svg::Edge {
                from: edge.from,
                to: edge.to,
                label: edge.label.clone(),
                dashed: edge.uncertain,
            })
            .collect();
        graph_svg::draw(&nodes, &edges)
    }

    /// For Mermaid.
    pub fn mermaid(&self) -> String {
        let mut out = "flowchart TD\n".to_owned();
        for (index, node) in self.nodes.iter().enumerate() {
            let label = mermaid_text(&node.label);
            let shape = match node.kind {
                NodeKind::Kernel => format!("[\"{label}\"]"),
                NodeKind::Device => format!("(\"{label}\")"),
                NodeKind::Host => format!("([\"{label}\"])"),
                NodeKind::Unknown => format!("[/\"{label}\"/]"),
            };
            let _ = writeln!(out, "  n{index}{shape}");
        }
        for edge in &self.edges {
            let arrow = if edge.uncertain { "-.->" } else { "-->" };
            let label = if edge.label.is_empty() {
                String::new()
            } else {
                format!("|\"{}\"|", mermaid_text(&edge.label))
            };
            let _ = writeln!(out, "  n{} {arrow}{label} n{}", edge.from, edge.to);
        }
        out
    }
}

fn dot_text(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

fn mermaid_text(text: &str) -> String {
    text.replace('#', "#35;")
        .replace('"', "#quot;")
        .replace('<', "#lt;")
        .replace('>', "#gt;")
}

#[cfg(test)]
mod tests {
    #[test]
    fn labels_are_quoted() {
        assert_eq!(super::dot_text(r#"a\"b"#), r#"a\\\"b"#);
        assert_eq!(super::mermaid_text("n < \"3\" #"), "n #lt; #quot;3#quot; #35;");
    }
}
