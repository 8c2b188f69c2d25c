//! The launch graph: which function launches which kernel, and how often; and which device code calls functions that launch.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::PathBuf;

use gridfuse_analysis::base::db::{Db, SourceFile};
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::facts::effects::{direct, summary};
use gridfuse_analysis::facts::launch::{Child, Launchers, launch_counts};
use gridfuse_analysis::hir::items::{FunctionItem, items};
use gridfuse_analysis::hir::resolve::functions_named;
use gridfuse_analysis::hir::runtime_header::is_runtime_header;
use gridfuse_analysis::hir::{ExprKind, body};

use crate::collected::{collectors, kernel_of, runs_for_a_collector, started};
use crate::graph_svg::{self, Look};
use crate::launches::{LaunchSite, by_function, in_file, place_in};

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

/// A launch, or a call of a function that leads to one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Who launches or calls: an index in [`Graph::nodes`].
    pub from: usize,
    /// What is launched or called: an index in [`Graph::nodes`].
    pub to: usize,
    /// How often, where that is known: `up to blockDim per grid`. Of a call: `calls`.
    pub label: String,
    /// Who launches isn't certain: one of several kernels, or in a lambda.
    pub uncertain: bool,
    /// It is a call.
    pub call: bool,
}

impl Edge {
    /// It is drawn dashed: a call, or a launch that isn't certain.
    fn dashed(&self) -> bool {
        self.call || self.uncertain
    }
}

/// A graph, that grows file by file.
#[derive(Default)]
pub struct Graph {
    /// Functions, in the order in which they were found.
    pub nodes: Vec<Node>,
    /// Launches and calls, in the order in which they were found.
    pub edges: Vec<Edge>,
    /// Nodes whose launches and calls are in it.
    done: BTreeSet<usize>,
    known: BTreeMap<(PathBuf, u32), usize>,
    unknown: BTreeMap<String, usize>,
}

// Writing into a string cannot fail.
impl Graph {
    /// Adds the launches of a file, and the calls by its device code that lead to launches.
    pub fn add_file(&mut self, db: &dyn Db, file: SourceFile) {
        if is_runtime_header(db, file) {
            return;
        }
        let sites = in_file(db, file);
        // Those that another file calls are there already.
        let mut launching: Vec<FunctionItem<'_>> = Vec::new();
        for site in &sites {
            let function = site.id.function;
            if launching.contains(&function) {
                self.launch(db, site);
                continue;
            }
            let node = self.function(db, function);
            if self.done.insert(node) {
                launching.push(function);
                self.launch(db, site);
            }
        }
        for function in &items(db, file).functions {
            self.collected(db, *function);
            self.calls(db, *function);
        }
    }

    /// Adds the launches that a rewrite has made calls of a collector: users think of them as launches still.
    fn collected(&mut self, db: &dyn Db, function: FunctionItem<'_>) {
        for kernel in started(db, function) {
            let (from, to) = (self.function(db, function), self.function(db, kernel));
            self.edges.push(Edge {
                from,
                to,
                label: String::new(),
                uncertain: false,
                call: false,
            });
        }
        for collector in collectors(db, function) {
            if collector.launches.is_empty() {
                continue;
            }
            let user = kernel_of(db, function);
            let (from, to) = (self.function(db, user), self.function(db, collector.child));
            for _ in &collector.launches {
                self.edges.push(Edge {
                    from,
                    to,
                    label: collector.label(),
                    uncertain: false,
                    call: false,
                });
            }
        }
    }

    fn launch(&mut self, db: &dyn Db, site: &LaunchSite<'_>) {
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
                call: false,
            });
        }
    }

    /// Adds the calls of device functions that lead to launches, and these functions where another file has them.
    fn calls<'db>(&mut self, db: &'db dyn Db, function: FunctionItem<'db>) {
        let mut todo = vec![function];
        while let Some(function) = todo.pop() {
            let signature = function.signature(db);
            if !function.has_body(db) || !(signature.kernel || signature.device) {
                continue;
            }
            let found = direct(db, function);
            let known = found
                .calls
                .iter()
                .map(|call| (call.candidates.clone(), call.candidates.len() == 1));
            // Whose method it is isn't known: any of that name.
            let body = body(db, function);
            let methods = body.exprs.iter().filter_map(|e| {
                let ExprKind::Call { callee, .. } = &e.kind else {
                    return None;
                };
                let ExprKind::Field { field, .. } = &body.expr(body.strip_parens(*callee)).kind else {
                    return None;
                };
                let mut named = functions_named(db, function.file(db), field);
                named.retain(|f| f.has_body(db));
                Some((named, false))
            });
            for (candidates, certain) in known.chain(methods) {
                // What the runtime launches, its users have collected: see `collected`.
                let leads = |f: &&FunctionItem<'db>| {
                    f.signature(db).device
                        && !is_runtime_header(db, f.file(db))
                        && !summary(db, **f).launches.is_empty()
                        && !runs_for_a_collector(db, **f)
                };
                for callee in candidates.iter().filter(leads) {
                    let (from, to) = (self.function(db, function), self.function(db, *callee));
                    let edge = Edge {
                        from,
                        to,
                        label: if certain { "calls" } else { "may call" }.to_owned(),
                        uncertain: !certain,
                        call: true,
                    };
                    if !self.edges.contains(&edge) {
                        self.edges.push(edge);
                    }
                    if callee.file(db) != function.file(db) && self.done.insert(to) {
                        for site in by_function(db, *callee) {
                            self.launch(db, &site);
                        }
                        todo.push(*callee);
                    }
                }
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
            let style = if edge.dashed() { ", style=dashed" } else { "" };
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
                dashed: edge.dashed(),
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
            let arrow = if edge.dashed() { "-.->" } else { "-->" };
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
