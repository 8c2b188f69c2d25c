//! The launch graph as a self-contained SVG: no script, no font and no style from elsewhere, colours for light and dark.

use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};

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

const NODE_FONT: usize = 13;
/// The layout takes a character to be as wide as the font is high, a monospaced one is 0.6 times that: with this number the
/// labels of [`LABEL_FONT`] get the room that they need.
const LABEL_LAYOUT: usize = 7;
const LABEL_FONT: usize = 11;
/// Width of a character of a node's label.
const NODE_CHARACTER: f64 = 8.0;
const MARGIN: f64 = 10.0;

const STYLE: &str = "
  svg { color-scheme: light dark; --ink: #1f2328; --soft: #59636e; --kernel: #ddf4ff; --device: #dafbe1; --host: #f6f8fa; --paper: #ffffff }
  @media (prefers-color-scheme: dark) {
    svg { --ink: #e6edf3; --soft: #9198a1; --kernel: #0c2d6b; --device: #04260f; --host: #21262d; --paper: #0d1117 }
  }
  .paper, .behind { fill: var(--paper) }
  .kernel, .device, .host, .unknown { stroke: var(--ink); stroke-width: 1.5 }
  .kernel { fill: var(--kernel) }
  .device { fill: var(--device) }
  .host { fill: var(--host) }
  .unknown { fill: none; stroke-dasharray: 5 4 }
  .launch { fill: none; stroke: var(--soft); stroke-width: 1.5 }
  .dashed { stroke-dasharray: 5 4 }
  .head { fill: var(--soft) }
  text { font-family: ui-monospace, Menlo, Consolas, monospace; text-anchor: middle; dominant-baseline: central; fill: var(--ink) }
  .label { fill: var(--soft) }
";

/// Draws a graph. `Err`: why it can't.
pub fn draw(nodes: &[(String, Look)], edges: &[Edge]) -> Result<String, String> {
    let hint = "draw it with --format dot and Graphviz, or --format mermaid";
    if nodes.len() + edges.len() > MAX_ELEMENTS {
        let (nodes, edges) = (nodes.len(), edges.len());
        return Err(format!(
            "{nodes} functions and {edges} launches are too many for one picture; name fewer files, or {hint}"
        ));
    }
    let edges = merged(edges);
    let mut canvas = Canvas::default();
    if !nodes.is_empty() {
        // The layout checks itself by assertions; a wrong one must not end in a wrong picture, nor in a crash.
        let laid_out = catch_unwind(AssertUnwindSafe(|| {
            lay_out(nodes, &edges, &mut canvas);
        }));
        laid_out.map_err(|_| format!("the graph can't be laid out; {hint}"))?;
    }
    Ok(canvas.finish())
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

fn lay_out(nodes: &[(String, Look)], edges: &[Edge], canvas: &mut Canvas) {
    let mut graph = VisualGraph::new(Orientation::TopToBottom);
    let handles: Vec<_> = nodes
        .iter()
        .enumerate()
        .map(|(index, (label, look))| {
            let (shape, class) = match look {
                Look::Kernel => (ShapeKind::new_box(label), "kernel"),
                Look::Device => (ShapeKind::new_box(label), "device"),
                Look::Host => (ShapeKind::new_circle(label), "host"),
                Look::Unknown => (ShapeKind::new_box(label), "unknown"),
            };
            let around = if *look == Look::Host { 40.0 } else { 24.0 };
            let size = Point::new(label.chars().count() as f64 * NODE_CHARACTER + around, 34.0);
            graph.add_node(Element::create_with_properties(
                shape,
                style(NODE_FONT),
                Orientation::TopToBottom,
                size,
                format!("{class} {index}"),
            ))
        })
        .collect();
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
        if let (Some(from), Some(to)) = (handles.get(edge.from), handles.get(edge.to)) {
            graph.add_edge(arrow, *from, *to);
        }
    }
    graph.do_it(false, false, false, canvas);
}

/// A shape's class, and which node it is: viewers that lead from a node to its source go by it.
fn class_and_node(properties: Option<&str>) -> (&str, &str) {
    properties.unwrap_or_default().split_once(' ').unwrap_or_default()
}

/// Collects what is drawn, and how far it reaches.
#[derive(Default)]
struct Canvas {
    shapes: String,
    texts: String,
    least: Option<Point>,
    most: Option<Point>,
}

impl Canvas {
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
        let (shapes, texts) = (self.shapes, self.texts);
        format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0}" height="{height:.0}" viewBox="{x:.1} {y:.1} {width:.1} {height:.1}" role="img" aria-label="launch graph">
<style>{STYLE}</style>
<defs><marker id="head" class="head" markerWidth="9" markerHeight="8" refX="8" refY="4" orient="auto-start-reverse"><path d="M0 0 9 4 0 8z"/></marker></defs>
<rect class="paper" x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}"/>
{shapes}{texts}</svg>
"#
        )
    }
}

// Writing into a string cannot fail.
impl RenderBackend for Canvas {
    fn draw_rect(&mut self, xy: Point, size: Point, _: &StyleAttr, class: Option<String>, _: Option<ClipHandle>) {
        self.reach(xy, Point::new(xy.x + size.x, xy.y + size.y));
        let (class, node) = class_and_node(class.as_deref());
        let round = if class == "device" { size.y / 2.0 } else { 3.0 };
        let _ = writeln!(
            self.shapes,
            "<rect class=\"{class}\" data-node=\"{node}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"{round:.1}\"/>",
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
        let (class, node) = class_and_node(class.as_deref());
        let (rx, ry) = (size.x / 2.0, size.y / 2.0);
        self.reach(Point::new(xy.x - rx, xy.y - ry), Point::new(xy.x + rx, xy.y + ry));
        let _ = writeln!(
            self.shapes,
            "<ellipse class=\"{class}\" data-node=\"{node}\" cx=\"{:.1}\" cy=\"{:.1}\" rx=\"{rx:.1}\" ry=\"{ry:.1}\"/>",
            xy.x, xy.y
        );
    }

    fn draw_text(&mut self, xy: Point, text: &str, look: &StyleAttr) {
        let label = look.font_size == LABEL_LAYOUT;
        let font = if label { LABEL_FONT } else { NODE_FONT };
        let half = text.chars().count() as f64 * font as f64 * 0.3;
        self.reach(Point::new(xy.x - half, xy.y - 8.0), Point::new(xy.x + half, xy.y + 8.0));
        let class = if label { " class=\"label\"" } else { "" };
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
        let node = |n: usize| {
            (
                format!("k{n}<int>"),
                [Look::Kernel, Look::Device, Look::Host, Look::Unknown][n % 4],
            )
        };
        // Every graph of three nodes, with loops, cycles and edges both ways.
        let pairs: Vec<(usize, usize)> = (0..3).flat_map(|a| (0..3).map(move |b| (a, b))).collect();
        let nodes: Vec<_> = (0..3).map(node).collect();
        for set in 0..1_u32 << pairs.len() {
            let chosen = pairs.iter().enumerate().filter(|(bit, _)| set & (1 << bit) != 0);
            let edges: Vec<Edge> = chosen
                .map(|(bit, (a, b))| edge(*a, *b, if bit % 2 == 0 { "1 per grid" } else { "" }))
                .collect();
            let labels = edges.iter().filter(|edge| !edge.label.is_empty()).count();
            let svg = draw(&nodes, &edges);
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
        assert!(draw(&[], &[]).is_ok_and(|svg| svg.ends_with("</svg>\n")));
        let many: Vec<_> = (0..500).map(node).collect();
        assert!(draw(&many, &[]).is_err_and(|error| error.contains("--format dot")));
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
