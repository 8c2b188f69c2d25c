//! The launch graph: which function launches which kernel, and how often; and which device code calls functions that launch.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::PathBuf;

use gridfuse_analysis::base::db::{Db, SourceFile, Workspace};
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::severity::Severity;
use gridfuse_analysis::diagnostics::diagnostics;
use gridfuse_analysis::facts::effects::{direct, summary};
use gridfuse_analysis::facts::launch::{Child, Launchers, launch_counts};
use gridfuse_analysis::hir::items::{FunctionItem, items};
use gridfuse_analysis::hir::resolve::functions_named;
use gridfuse_analysis::hir::runtime_header::is_runtime_header;
use gridfuse_analysis::hir::{ExprKind, body};

use crate::collected::{collectors, in_whole_blocks, kernel_of, runs_for_a_collector, started};
use crate::graph_svg::{self, Look};
use crate::launches::{LaunchSite, by_function, function_at, in_file, place_in};

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
    /// The file that has it.
    file: Option<PathBuf>,
    /// What is found in it.
    pub findings: Findings,
}

/// How many findings a function has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    errors: usize,
    warnings: usize,
    notes: usize,
}

impl Findings {
    fn add(&mut self, severity: Severity) {
        match severity {
            Severity::Error => self.errors += 1,
            Severity::Warning => self.warnings += 1,
            Severity::Info => self.notes += 1,
        }
    }

    /// The worst of them.
    fn worst(self) -> Option<Severity> {
        match (self.errors, self.warnings, self.notes) {
            (0, 0, 0) => None,
            (0, 0, _) => Some(Severity::Info),
            (0, ..) => Some(Severity::Warning),
            _ => Some(Severity::Error),
        }
    }

    /// `1 error, 2 warnings`; empty when there are none.
    pub fn phrase(self) -> String {
        let counts = [(self.errors, "error"), (self.warnings, "warning"), (self.notes, "note")];
        let some = counts.iter().filter(|(n, _)| *n > 0);
        let words = some.map(|(n, word)| format!("{n} {word}{}", if *n == 1 { "" } else { "s" }));
        words.collect::<Vec<_>>().join(", ")
    }
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
    /// Functions whose launches and calls are in it, by their places as in `known`.
    done: BTreeSet<(PathBuf, u32)>,
    known: BTreeMap<(PathBuf, u32), usize>,
    /// What is found in functions, by their places as in `known`.
    found: BTreeMap<(PathBuf, u32), Findings>,
    /// The files whose findings are there.
    searched: BTreeSet<PathBuf>,
    unknown: BTreeMap<String, usize>,
}

/// What tells a function from others: its file, and where it begins there.
fn key(db: &dyn Db, function: FunctionItem<'_>) -> (PathBuf, u32) {
    (function.file(db).path(db).to_path_buf(), function.start(db))
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
            if self.done.insert(key(db, function)) {
                launching.push(function);
                self.launch(db, site);
            }
        }
        for function in &items(db, file).functions {
            self.collected(db, *function);
            self.calls(db, *function);
        }
        self.find(db);
    }

    /// Notes what is found in the functions of the files that have not been looked at.
    fn find(&mut self, db: &dyn Db) {
        let new: BTreeSet<PathBuf> = self.nodes.iter().filter_map(|node| node.file.clone()).collect();
        for path in new {
            if !self.searched.insert(path.clone()) {
                continue;
            }
            let Some(file) = Workspace::get(db).files(db).get(&path).copied() else {
                continue;
            };
            for found in diagnostics(db, file) {
                if found.place.file == file
                    && let Some(function) = function_at(db, file, found.place.range.start)
                {
                    let counts = self.found.entry((path.clone(), function.start(db))).or_default();
                    counts.add(found.severity);
                }
            }
        }
        for (key, index) in &self.known {
            if let (Some(found), Some(node)) = (self.found.get(key), self.nodes.get_mut(*index)) {
                node.findings = *found;
            }
        }
    }

    /// Adds the launches that a rewrite has made calls of a collector: users think of them as launches still.
    fn collected(&mut self, db: &dyn Db, function: FunctionItem<'_>) {
        for kernel in started(db, function).iter().map(|start| start.kernel) {
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
        // Of a body that a rewrite has moved, users know the kernel.
        let from = self.function(db, kernel_of(db, function));
        let name = site.facts.kernel_name.as_deref().unwrap_or("(computed)");
        let (targets, certain) = match &site.facts.child {
            Child::Kernel(kernel) => (vec![self.function(db, in_whole_blocks(db, *kernel))], true),
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
                // What the runtime launches, its users have collected: see `collected`. Nobody calls a body that a rewrite has moved but
                // what the rewrite has made.
                let leads = |f: &&FunctionItem<'db>| {
                    f.signature(db).device
                        && !is_runtime_header(db, f.file(db))
                        && (!summary(db, **f).launches.is_empty() || runs_for_a_collector(db, **f))
                        && kernel_of(db, **f) == **f
                };
                let caller = kernel_of(db, function);
                for callee in candidates.iter().filter(leads) {
                    let (from, to) = (self.function(db, caller), self.function(db, *callee));
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
                    if callee.file(db) != function.file(db) && self.done.insert(key(db, *callee)) {
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
        let key = key(db, function);
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
            file: Some(key.0.clone()),
            findings: Findings::default(),
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
            file: None,
            findings: Findings::default(),
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
            // What is found in it is in its colour and in words.
            let found = match node.findings.worst().map(colour) {
                Some((_, ink, _)) => format!(", color=\"{ink}\", penwidth=2"),
                None => String::new(),
            };
            let words = match node.findings.phrase() {
                words if words.is_empty() => words,
                words => format!("\\n{words}"),
            };
            let _ = writeln!(
                out,
                "  n{index} [label=\"{}{words}\", {shape}{found}];",
                dot_text(&node.label)
            );
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
        // What isn't defined anywhere stands where it is used first.
        let file_of = |index: usize| {
            let user = || self.edges.iter().find(|edge| edge.to == index).map(|edge| edge.from);
            let own = self.nodes[index].file.as_ref();
            own.or_else(|| self.nodes.get(user()?)?.file.as_ref())
        };
        let mut files: Vec<Option<&PathBuf>> = Vec::new();
        let mut nodes: Vec<graph_svg::Node> = Vec::new();
        for (index, node) in self.nodes.iter().enumerate() {
            let file = file_of(index);
            let known = files.iter().position(|other| *other == file);
            nodes.push(graph_svg::Node {
                label: node.label.clone(),
                look: look(node.kind),
                file: known.unwrap_or(files.len()),
                worst: node.findings.worst(),
                findings: node.findings.phrase(),
            });
            if known.is_none() {
                files.push(file);
            }
        }
        let titles = titles(&files);
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
        graph_svg::draw(&nodes, &titles, &edges)
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
            let class = node.findings.worst().map(|worst| format!(":::{}", colour(worst).0));
            let _ = writeln!(out, "  n{index}{shape}{}", class.unwrap_or_default());
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
        for severity in [Severity::Error, Severity::Warning, Severity::Info] {
            if self.nodes.iter().any(|node| node.findings.worst() == Some(severity)) {
                let (class, ink, fill) = colour(severity);
                let _ = writeln!(
                    out,
                    "  classDef {class} fill:{fill},stroke:{ink},stroke-width:2px,color:#1f2328"
                );
            }
        }
        out
    }
}

/// What files are called, each by as many of its directories as tell it from the others.
fn titles(files: &[Option<&PathBuf>]) -> Vec<String> {
    let last = |path: &PathBuf, parts: usize| {
        let all: Vec<_> = path.components().collect();
        let from = all.len().saturating_sub(parts);
        all[from..].iter().collect::<PathBuf>().display().to_string()
    };
    let title = |path: &PathBuf| {
        let short = |parts: &usize| {
            let named = |other: &&PathBuf| last(other, *parts) == last(path, *parts);
            files.iter().flatten().filter(|other| named(other)).count() == 1
        };
        (1..8)
            .find(short)
            .map_or_else(|| path.display().to_string(), |parts| last(path, parts))
    };
    files.iter().map(|file| file.map(title).unwrap_or_default()).collect()
}

/// How a function is drawn in which the worst that is found is this: the name of the class, the colour of the line, and that of the area.
fn colour(worst: Severity) -> (&'static str, &'static str, &'static str) {
    match worst {
        Severity::Error => ("error", "#cf222e", "#ffebe9"),
        Severity::Warning => ("warning", "#9a6700", "#fff8c5"),
        Severity::Info => ("note", "#0969da", "#ddf4ff"),
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
    use std::path::PathBuf;

    use gridfuse_analysis::host::Host;

    #[test]
    fn files_are_called_by_what_tells_them_apart() {
        let paths = ["/p/a/x.cu", "/p/b/x.cu", "/p/b/y.cu"].map(PathBuf::from);
        let files: Vec<_> = paths.iter().map(Some).collect();
        assert_eq!(super::titles(&files), ["a/x.cu", "b/x.cu", "y.cu"]);
    }

    #[test]
    fn functions_have_the_colour_of_their_worst_finding_and_stand_in_their_file() {
        let mut host = Host::new();
        let kernels = r#"
__global__ void child(int* out, int n) { out[n] = 1; }
__global__ void parent(int* out, int n) {
    for (int i = 0; i < n; i++) child<<<1, 32>>>(out, i);
}
"#;
        let header = host.set_file("/p/kernels.cuh".as_ref(), kernels);
        let main = "#include \"kernels.cuh\"\nvoid run(int* out) { parent<<<1, 64>>>(out, 3); }\n";
        let main = host.set_file("/p/main.cu".as_ref(), main);
        let db = host.db();
        let mut graph = super::Graph::default();
        graph.add_file(db, main);
        graph.add_file(db, header);
        let parent = graph.nodes.iter().position(|node| node.label == "parent");
        let said = parent
            .map(|parent| graph.nodes[parent].findings.phrase())
            .unwrap_or_default();
        assert!(said.contains("warning"), "{said}");
        let svg = graph.svg().unwrap_or_default();
        let shape = format!("class=\"kernel warning\" data-node=\"{}\"", parent.unwrap_or(99));
        for part in [
            &shape,
            ">main.cu</text>",
            ">kernels.cuh</text>",
            &format!("<title>{said}</title>"),
        ] {
            assert!(svg.contains(part), "{part}: {svg}");
        }
        assert_eq!(svg.matches("class=\"file\"").count(), 2, "{svg}");
    }

    #[test]
    fn labels_are_quoted() {
        assert_eq!(super::dot_text(r#"a\"b"#), r#"a\\\"b"#);
        assert_eq!(super::mermaid_text("n < \"3\" #"), "n #lt; #quot;3#quot; #35;");
    }
}
