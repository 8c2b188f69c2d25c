//! The launch graph as a self-contained SVG: no script, no font and no style from elsewhere, colours for light and dark.
//!
//! Functions stand in a box for their file. What launches connect within a file is laid out together; such parts, and the boxes, are put
//! side by side as in the lines of a text, so that the picture is as wide as a page and not as a street.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};

use gridfuse_analysis::base::severity::Severity;
use layout::core::base::Orientation;
use layout::core::color::Color;
use layout::core::format::{ClipHandle, RenderBackend};
use layout::core::geometry::Point;
use layout::core::style::{LineStyleKind, StyleAttr};
use layout::std_shapes::shapes::{Arrow, Element, LineEndKind, ShapeKind};
use layout::topo::layout::VisualGraph;

/// What a node stands for: how it looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// A kernel.
    Kernel,
    /// A device function.
    Device,
    /// A host function.
    Host,
    /// Something that isn't known.
    Unknown,
}

/// A function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub label: String,
    /// What it is, which its shape shows.
    pub look: Look,
    /// Its file: an index in the files' titles.
    pub file: usize,
    /// The worst that is found in it, which its colour shows.
    pub worst: Option<Severity>,
    /// The same in words, for those who see no colours: `2 warnings`; empty: nothing is found.
    pub findings: String,
}

/// An edge from one node to another, by index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Where from.
    pub from: usize,
    /// Where to.
    pub to: usize,
    /// What is written at it.
    pub label: String,
    /// It is drawn dashed.
    pub dashed: bool,
}

/// More nodes or edges are no picture any more, and the layout would take minutes.
const MAX_ELEMENTS: usize = 400;

/// A part that is wider grows downwards instead.
const WIDEST: f64 = 1600.0;

const NODE_FONT: usize = 13;
/// The layout takes a character to be as wide as the font is high, a monospaced one is 0.6 times that: with this number the
/// labels of [`LABEL_FONT`] get the room that they need.
const LABEL_LAYOUT: usize = 7;
const LABEL_FONT: usize = 11;
/// Width of a character of a node's label.
const NODE_CHARACTER: f64 = 8.0;
/// Height of a node, and of one with a line about what is found in it.
const NODE_HEIGHT: f64 = 34.0;
const FOUND_HEIGHT: f64 = 46.0;
const MARGIN: f64 = 10.0;
/// Between parts that stand side by side, and between files.
const GAP: f64 = 28.0;
/// Around what stands in a file's box, and above it for the file's name.
const PADDING: f64 = 14.0;
const TITLE: f64 = 20.0;
/// A row is at least so wide before the next one begins.
const ROW: f64 = 760.0;

const STYLE: &str = "
  svg { color-scheme: light dark; --ink: #1f2328; --soft: #59636e; --plain: #f6f8fa; --paper: #ffffff; --frame: #d1d9e0;
    --error: #ffebe9; --error-ink: #cf222e; --warning: #fff8c5; --warning-ink: #9a6700; --note: #ddf4ff; --note-ink: #0969da }
  @media (prefers-color-scheme: dark) {
    svg { --ink: #e6edf3; --soft: #9198a1; --plain: #21262d; --paper: #0d1117; --frame: #3d444d;
      --error: #490b0e; --error-ink: #ff7b72; --warning: #3a2a00; --warning-ink: #d29922; --note: #0c2d6b; --note-ink: #58a6ff }
  }
  .paper, .behind { fill: var(--paper) }
  .file { fill: none; stroke: var(--frame); stroke-width: 1.5 }
  .kernel, .device, .host, .unknown { fill: var(--plain); stroke: var(--ink); stroke-width: 1.5 }
  .unknown { fill: none; stroke-dasharray: 5 4 }
  .error { fill: var(--error); stroke: var(--error-ink); stroke-width: 3 }
  .warning { fill: var(--warning); stroke: var(--warning-ink); stroke-width: 2.5 }
  .note { fill: var(--note); stroke: var(--note-ink) }
  .launch { fill: none; stroke: var(--soft); stroke-width: 1.5 }
  .dashed { stroke-dasharray: 5 4 }
  .head { fill: var(--soft) }
  text { font-family: ui-monospace, Menlo, Consolas, monospace; text-anchor: middle; dominant-baseline: central; fill: var(--ink); pointer-events: none }
  .label, .title { fill: var(--soft) }
  .title { text-anchor: start }
";

/// Draws a graph; `files` are the titles of the files. `Err`: why it can't.
pub fn draw(nodes: &[Node], files: &[String], edges: &[Edge]) -> Result<String, String> {
    let hint = "draw it with --format dot and Graphviz, or --format mermaid";
    if nodes.len() + edges.len() > MAX_ELEMENTS {
        let (nodes, edges) = (nodes.len(), edges.len());
        return Err(format!(
            "{nodes} functions and {edges} launches are too many for one picture; name fewer files, or {hint}"
        ));
    }
    let edges = merged(edges);
    // The layout checks itself by assertions; a wrong one must not end in a wrong picture, nor in a crash.
    let drawn = catch_unwind(AssertUnwindSafe(|| picture(nodes, files, &edges)));
    drawn.map_err(|_| format!("the graph can't be laid out; {hint}"))
}

fn picture(nodes: &[Node], files: &[String], edges: &[Edge]) -> String {
    let framed = files.len() > 1;
    let boxes: Vec<Canvas> = (0..files.len())
        .map(|file| {
            let own: Vec<usize> = (0..nodes.len()).filter(|node| nodes[*node].file == file).collect();
            let parts = connected(&own, edges)
                .into_iter()
                .map(|part| lay_out(nodes, &part, edges))
                .collect();
            let mut canvas = in_rows(parts);
            if framed {
                canvas.frame(&files[file]);
            }
            canvas
        })
        .collect();
    let mut canvas = in_rows(boxes);
    for edge in edges {
        let file = |node: usize| nodes.get(node).map(|node| node.file);
        if file(edge.from) != file(edge.to) {
            canvas.between_files(edge);
        }
    }
    canvas.finish()
}

/// The parts of some nodes which edges connect, each in the order of the nodes.
fn connected(nodes: &[usize], edges: &[Edge]) -> Vec<Vec<usize>> {
    let mut part: BTreeMap<usize, usize> = nodes.iter().map(|node| (*node, *node)).collect();
    for edge in edges {
        if let (Some(from), Some(to)) = (part.get(&edge.from).copied(), part.get(&edge.to).copied()) {
            let (kept, gone) = (from.min(to), from.max(to));
            for other in part.values_mut().filter(|other| **other == gone) {
                *other = kept;
            }
        }
    }
    let mut parts: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (node, first) in part {
        parts.entry(first).or_default().push(node);
    }
    parts.into_values().collect()
}

/// Puts drawings side by side, in rows of about the same width, in their order.
fn in_rows(drawings: Vec<Canvas>) -> Canvas {
    let sizes: Vec<Point> = drawings.iter().map(Canvas::size).collect();
    let area: f64 = sizes.iter().map(|size| (size.x + GAP) * (size.y + GAP)).sum();
    let widest = sizes.iter().map(|size| size.x).fold(0.0, f64::max);
    // Half as wide again as it is high.
    let width = widest.max(ROW).max((area * 1.5).sqrt());
    let mut all = Canvas::default();
    let (mut x, mut y, mut height) = (0.0, 0.0, 0.0_f64);
    for (drawing, size) in drawings.into_iter().zip(sizes) {
        if x > 0.0 && x + size.x > width {
            (x, y, height) = (0.0, y + height + GAP, 0.0);
        }
        all.place(drawing, Point::new(x, y));
        x += size.x + GAP;
        height = height.max(size.y);
    }
    all
}

/// Edges between the same nodes become one, with all their labels that differ.
fn merged(edges: &[Edge]) -> Vec<Edge> {
    let mut merged: Vec<Edge> = Vec::new();
    for edge in edges {
        let same = |known: &&mut Edge| (known.from, known.to) == (edge.from, edge.to);
        match merged.iter_mut().find(same) {
            Some(known) => {
                known.dashed &= edge.dashed;
                if known.label.is_empty() {
                    known.label.clone_from(&edge.label);
                } else if !edge.label.is_empty() && !known.label.split("; ").any(|label| label == edge.label) {
                    known.label = format!("{}; {}", known.label, edge.label);
                }
            }
            None => merged.push(edge.clone()),
        }
    }
    merged
}

fn style(font: usize) -> StyleAttr {
    // Colours come from the classes.
    StyleAttr::new(Color::fast("black"), 1, None, 0, font)
}

/// Draws some nodes, and the edges between them: callers above, or at the left where many callees would stand side by side.
fn lay_out(nodes: &[Node], part: &[usize], edges: &[Edge]) -> Canvas {
    let down = lay_out_in(Orientation::TopToBottom, nodes, part, edges);
    if down.size().x <= WIDEST {
        return down;
    }
    let across = lay_out_in(Orientation::LeftToRight, nodes, part, edges);
    if across.size().x < down.size().x { across } else { down }
}

fn lay_out_in(orientation: Orientation, nodes: &[Node], part: &[usize], edges: &[Edge]) -> Canvas {
    let mut graph = VisualGraph::new(orientation);
    let mut handles = BTreeMap::new();
    let mut canvas = Canvas::default();
    for index in part {
        let Node {
            label,
            look,
            worst,
            findings,
            ..
        } = &nodes[*index];
        let (shape, class) = match look {
            Look::Kernel => (ShapeKind::new_box(label), "kernel"),
            Look::Device => (ShapeKind::new_box(label), "device"),
            Look::Host => (ShapeKind::new_circle(label), "host"),
            Look::Unknown => (ShapeKind::new_box(label), "unknown"),
        };
        let found = match worst {
            None => "",
            Some(Severity::Info) => " note",
            Some(Severity::Warning) => " warning",
            Some(Severity::Error) => " error",
        };
        let around = if *look == Look::Host { 40.0 } else { 24.0 };
        let name = label.chars().count() as f64 * NODE_CHARACTER;
        let words = findings.chars().count() as f64 * LABEL_FONT as f64 * 0.6;
        let height = if findings.is_empty() { NODE_HEIGHT } else { FOUND_HEIGHT };
        let element = Element::create_with_properties(
            shape,
            style(NODE_FONT),
            orientation,
            Point::new(name.max(words) + around, height),
            format!("{index} {class}{found}"),
        );
        if !findings.is_empty() {
            canvas.findings.insert(*index, findings.clone());
        }
        handles.insert(*index, graph.add_node(element));
    }
    for edge in edges {
        let line = if edge.dashed {
            LineStyleKind::Dashed
        } else {
            LineStyleKind::Normal
        };
        let look = style(LABEL_LAYOUT);
        let arrow = Arrow::new(
            LineEndKind::None,
            LineEndKind::Arrow,
            line,
            &edge.label,
            &look,
            &None,
            &None,
        );
        if let (Some(from), Some(to)) = (handles.get(&edge.from), handles.get(&edge.to)) {
            graph.add_edge(arrow, *from, *to);
        }
    }
    graph.do_it(false, false, false, &mut canvas);
    canvas
}

/// Which node a shape is, by which viewers lead from it to its source, and its classes.
fn node_and_class(properties: Option<&str>) -> (&str, &str) {
    properties.unwrap_or_default().split_once(' ').unwrap_or_default()
}

/// Collects what is drawn, and how far it reaches.
#[derive(Default)]
struct Canvas {
    /// What lies below all shapes.
    below: String,
    shapes: String,
    texts: String,
    least: Option<Point>,
    most: Option<Point>,
    /// What is found in nodes, in words.
    findings: BTreeMap<usize, String>,
    /// The node that was drawn last: the next text is its name.
    last: Option<usize>,
    /// Where nodes are: their corners.
    nodes: BTreeMap<usize, (Point, Point)>,
}

// Writing into a string cannot fail.
impl Canvas {
    fn size(&self) -> Point {
        let least = self.least.unwrap_or(Point::zero());
        let most = self.most.unwrap_or(Point::zero());
        Point::new(most.x - least.x, most.y - least.y)
    }

    /// Takes another drawing in, with its corner at a point.
    fn place(&mut self, other: Canvas, at: Point) {
        let size = other.size();
        let least = other.least.unwrap_or(Point::zero());
        let (dx, dy) = (at.x - least.x, at.y - least.y);
        let moved = |point: Point| Point::new(point.x + dx, point.y + dy);
        for (drawn, own) in [
            (&mut self.below, &other.below),
            (&mut self.shapes, &other.shapes),
            (&mut self.texts, &other.texts),
        ] {
            if !own.is_empty() {
                let _ = writeln!(drawn, "<g transform=\"translate({dx:.1} {dy:.1})\">\n{own}</g>");
            }
        }
        let nodes = other.nodes.into_iter();
        self.nodes
            .extend(nodes.map(|(node, (a, b))| (node, (moved(a), moved(b)))));
        self.reach(at, Point::new(at.x + size.x, at.y + size.y));
    }

    /// Draws the box of a file around all.
    fn frame(&mut self, title: &str) {
        let (least, size) = (self.least.unwrap_or(Point::zero()), self.size());
        let (x, y) = (least.x - PADDING, least.y - PADDING - TITLE);
        let name = title.chars().count() as f64 * LABEL_FONT as f64 * 0.6;
        let width = size.x.max(name) + 2.0 * PADDING;
        let height = size.y + 2.0 * PADDING + TITLE;
        self.reach(Point::new(x, y), Point::new(x + width, y + height));
        let _ = writeln!(
            self.below,
            "<rect class=\"file\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"6\"/>"
        );
        let _ = writeln!(
            self.texts,
            "<text class=\"title\" x=\"{:.1}\" y=\"{:.1}\" font-size=\"{LABEL_FONT}\">{}</text>",
            x + PADDING,
            y + PADDING,
            escaped(title)
        );
    }

    /// Draws an edge between nodes that are drawn.
    fn between_files(&mut self, edge: &Edge) {
        let (Some(from), Some(to)) = (self.nodes.get(&edge.from), self.nodes.get(&edge.to)) else {
            return;
        };
        let middle = |(a, b): &(Point, Point)| Point::new((a.x + b.x) / 2.0, (a.y + b.y) / 2.0);
        let (start, end) = (middle(from), middle(to));
        let beside = from.1.y > to.0.y && to.1.y > from.0.y;
        // From the sides that face each other, and straight out of them.
        let (start, end, out) = if beside {
            let right = start.x < end.x;
            let (a, b) = if right { (from.1.x, to.0.x) } else { (from.0.x, to.1.x) };
            (
                Point::new(a, start.y),
                Point::new(b, end.y),
                Point::new((b - a) / 2.0, 0.0),
            )
        } else {
            let down = start.y < end.y;
            let (a, b) = if down { (from.1.y, to.0.y) } else { (from.0.y, to.1.y) };
            (
                Point::new(start.x, a),
                Point::new(end.x, b),
                Point::new(0.0, (b - a) / 2.0),
            )
        };
        let class = if edge.dashed { "launch dashed" } else { "launch" };
        let _ = writeln!(
            self.below,
            "<path class=\"{class}\" d=\"M{:.1} {:.1} C{:.1} {:.1} {:.1} {:.1} {:.1} {:.1}\" marker-end=\"url(#head)\"/>",
            start.x,
            start.y,
            start.x + out.x,
            start.y + out.y,
            end.x - out.x,
            end.y - out.y,
            end.x,
            end.y
        );
        if !edge.label.is_empty() {
            let at = Point::new((start.x + end.x) / 2.0, (start.y + end.y) / 2.0);
            self.draw_text(at, &edge.label, &style(LABEL_LAYOUT));
        }
    }

    /// Notes where a node is. Returns what its shape has inside.
    fn node(&mut self, number: &str, from: Point, to: Point) -> String {
        self.reach(from, to);
        self.last = number.parse().ok();
        let Some(node) = self.last else {
            return String::new();
        };
        self.nodes.insert(node, (from, to));
        let findings = self.findings.get(&node);
        findings.map_or_else(String::new, |words| format!("<title>{}</title>", escaped(words)))
    }

    fn reach(&mut self, from: Point, to: Point) {
        let least = self.least.unwrap_or(from);
        let most = self.most.unwrap_or(to);
        self.least = Some(Point::new(least.x.min(from.x), least.y.min(from.y)));
        self.most = Some(Point::new(most.x.max(to.x), most.y.max(to.y)));
    }

    fn finish(self) -> String {
        let least = self.least.unwrap_or(Point::zero());
        let most = self.most.unwrap_or(Point::zero());
        let (x, y) = (least.x - MARGIN, least.y - MARGIN);
        let (width, height) = (most.x - x + MARGIN, most.y - y + MARGIN);
        let (below, shapes, texts) = (self.below, self.shapes, self.texts);
        format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0}" height="{height:.0}" viewBox="{x:.1} {y:.1} {width:.1} {height:.1}" role="img" aria-label="launch graph">
<style>{STYLE}</style>
<defs><marker id="head" class="head" markerWidth="9" markerHeight="8" refX="8" refY="4" orient="auto-start-reverse"><path d="M0 0 9 4 0 8z"/></marker></defs>
<rect class="paper" x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}"/>
{below}{shapes}{texts}</svg>
"#
        )
    }
}

// Writing into a string cannot fail.
impl RenderBackend for Canvas {
    fn draw_rect(&mut self, xy: Point, size: Point, _: &StyleAttr, class: Option<String>, _: Option<ClipHandle>) {
        let (node, class) = node_and_class(class.as_deref());
        let inside = self.node(node, xy, Point::new(xy.x + size.x, xy.y + size.y));
        let round = if class.starts_with("device") { size.y / 2.0 } else { 3.0 };
        let _ = writeln!(
            self.shapes,
            "<rect class=\"{class}\" data-node=\"{node}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"{round:.1}\">{inside}</rect>",
            xy.x, xy.y, size.x, size.y
        );
    }

    fn draw_line(&mut self, start: Point, stop: Point, _: &StyleAttr, _: Option<String>) {
        self.reach(start, start);
        self.reach(stop, stop);
        let _ = writeln!(
            self.shapes,
            "<path class=\"launch\" d=\"M{:.1} {:.1} {:.1} {:.1}\"/>",
            start.x, start.y, stop.x, stop.y
        );
    }

    fn draw_circle(&mut self, xy: Point, size: Point, _: &StyleAttr, class: Option<String>) {
        let (node, class) = node_and_class(class.as_deref());
        let (rx, ry) = (size.x / 2.0, size.y / 2.0);
        let inside = self.node(node, Point::new(xy.x - rx, xy.y - ry), Point::new(xy.x + rx, xy.y + ry));
        let _ = writeln!(
            self.shapes,
            "<ellipse class=\"{class}\" data-node=\"{node}\" cx=\"{:.1}\" cy=\"{:.1}\" rx=\"{rx:.1}\" ry=\"{ry:.1}\">{inside}</ellipse>",
            xy.x, xy.y
        );
    }

    fn draw_text(&mut self, xy: Point, text: &str, look: &StyleAttr) {
        let label = look.font_size == LABEL_LAYOUT;
        let font = if label { LABEL_FONT } else { NODE_FONT };
        let half = text.chars().count() as f64 * font as f64 * 0.3;
        self.reach(Point::new(xy.x - half, xy.y - 8.0), Point::new(xy.x + half, xy.y + 8.0));
        let class = if label { " class=\"label\"" } else { "" };
        let mut xy = xy;
        let found = self
            .last
            .take()
            .filter(|_| !label)
            .and_then(|node| self.findings.get(&node));
        if let Some(words) = found {
            let _ = writeln!(
                self.texts,
                "<text x=\"{:.1}\" y=\"{:.1}\" font-size=\"{LABEL_FONT}\">{}</text>",
                xy.x,
                xy.y + 10.0,
                escaped(words)
            );
            xy.y -= 7.0;
        }
        if label {
            // The launch's line ends before the words, and begins again behind them.
            let (x, y, width) = (xy.x - half - 3.0, xy.y - 8.0, 2.0 * half + 6.0);
            let _ = writeln!(
                self.texts,
                "<rect class=\"behind\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"16\"/>"
            );
        }
        let _ = writeln!(
            self.texts,
            "<text{class} x=\"{:.1}\" y=\"{:.1}\" font-size=\"{font}\">{}</text>",
            xy.x,
            xy.y,
            escaped(text)
        );
    }

    fn draw_arrow(
        &mut self,
        path: &[(Point, Point)],
        dashed: bool,
        head: (bool, bool),
        _: &StyleAttr,
        _: Option<String>,
        _: &str,
    ) {
        let [first, second, rest @ ..] = path else { return };
        for (a, b) in path {
            self.reach(*a, *a);
            self.reach(*b, *b);
        }
        // The first pair is a point and how the curve leaves it, the others are how it enters a point, and that point.
        let mut d = format!("M{:.1} {:.1}", first.0.x, first.0.y);
        let _ = write!(
            d,
            " C{:.1} {:.1} {:.1} {:.1} {:.1} {:.1}",
            first.1.x, first.1.y, second.0.x, second.0.y, second.1.x, second.1.y
        );
        for (control, point) in rest {
            let _ = write!(d, " S{:.1} {:.1} {:.1} {:.1}", control.x, control.y, point.x, point.y);
        }
        let class = if dashed { "launch dashed" } else { "launch" };
        let start = if head.0 { " marker-start=\"url(#head)\"" } else { "" };
        let end = if head.1 { " marker-end=\"url(#head)\"" } else { "" };
        let _ = writeln!(self.shapes, "<path class=\"{class}\" d=\"{d}\"{start}{end}/>");
    }

    fn create_clip(&mut self, _: Point, _: Point, _: usize) -> ClipHandle {
        // Only records are clipped, and there are none.
        0
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(n: usize) -> Node {
        Node {
            label: format!("k{n}<int>"),
            look: [Look::Kernel, Look::Device, Look::Host, Look::Unknown][n % 4],
            file: 0,
            worst: None,
            findings: String::new(),
        }
    }

    fn edge(from: usize, to: usize, label: &str) -> Edge {
        Edge {
            from,
            to,
            label: label.to_string(),
            dashed: false,
        }
    }

    #[test]
    fn any_small_graph_can_be_drawn() {
        let one = ["a.cu".to_owned()];
        // Every graph of three nodes, with loops, cycles and edges both ways.
        let pairs: Vec<(usize, usize)> = (0..3).flat_map(|a| (0..3).map(move |b| (a, b))).collect();
        let nodes: Vec<_> = (0..3).map(node).collect();
        for set in 0..1_u32 << pairs.len() {
            let chosen = pairs.iter().enumerate().filter(|(bit, _)| set & (1 << bit) != 0);
            let edges: Vec<Edge> = chosen
                .map(|(bit, (a, b))| edge(*a, *b, if bit % 2 == 0 { "1 per grid" } else { "" }))
                .collect();
            let labels = edges.iter().filter(|edge| !edge.label.is_empty()).count();
            let svg = draw(&nodes, &one, &edges);
            assert!(
                svg.as_ref()
                    .is_ok_and(|svg| svg.matches("class=\"behind\"").count() == labels),
                "{set}: {svg:?}"
            );
            assert!(
                svg.as_ref().is_ok_and(|svg| svg.matches("k1&lt;int&gt;").count() == 1),
                "{set}: {svg:?}"
            );
        }
        assert!(draw(&[], &[], &[]).is_ok_and(|svg| svg.ends_with("</svg>\n")));
        let many: Vec<_> = (0..500).map(node).collect();
        assert!(draw(&many, &one, &[]).is_err_and(|error| error.contains("--format dot")));
    }

    /// The width of a picture, and its height.
    fn size(svg: &str) -> Option<(f64, f64)> {
        let number = |name: &str| svg.split_once(name)?.1.split('"').next()?.parse().ok();
        Some((number(" width=\"")?, number(" height=\"")?))
    }

    #[test]
    fn what_is_not_connected_stands_in_rows() {
        let nodes: Vec<Node> = (0..80).map(node).collect();
        let edges: Vec<Edge> = (0..40).map(|n| edge(2 * n, 2 * n + 1, "1 per grid")).collect();
        let files = ["a.cu".to_owned()];
        let (width, height) = draw(&nodes, &files, &edges)
            .ok()
            .and_then(|svg| size(&svg))
            .unwrap_or_default();
        assert!(
            width > 300.0 && width < 1600.0 && height < 2.0 * width,
            "{width} × {height}"
        );
        assert_eq!(
            connected(&[0, 1, 2, 3, 4], &[edge(3, 1, ""), edge(4, 9, "")]),
            [vec![0], vec![1, 3], vec![2], vec![4]]
        );
    }

    #[test]
    fn files_are_boxes_and_findings_are_colours_and_words() {
        let mut nodes: Vec<Node> = (0..4).map(node).collect();
        nodes[3].file = 1;
        nodes[0].worst = Some(Severity::Warning);
        nodes[0].findings = "2 warnings".to_owned();
        let files = ["a.cu", "b<c>.cuh"].map(str::to_owned);
        let svg = draw(&nodes, &files, &[edge(0, 1, "first"), edge(1, 3, "second")]).unwrap_or_default();
        for (part, times) in [
            ("class=\"file\"", 2),
            (">b&lt;c&gt;.cuh</text>", 1),
            ("class=\"kernel warning\" data-node=\"0\"", 1),
            ("<title>2 warnings</title>", 1),
            (">2 warnings</text>", 1),
            ("marker-end", 2),
            (">first</text>", 1),
            (">second</text>", 1),
            (">k0&lt;int&gt;</text>", 1),
        ] {
            assert_eq!(svg.matches(part).count(), times, "{part}: {svg}");
        }
        let alone = draw(&nodes[..3], &files[..1], &[]).unwrap_or_default();
        assert!(!alone.contains("class=\"file\""), "one file has no box");
    }

    #[test]
    fn parallel_edges_are_one() {
        let edges = [
            edge(0, 1, "a"),
            edge(0, 1, ""),
            edge(0, 1, "b"),
            edge(0, 1, "a"),
            edge(1, 0, ""),
        ];
        assert_eq!(merged(&edges), [edge(0, 1, "a; b"), edge(1, 0, "")]);
    }
}
