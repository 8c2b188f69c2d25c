//! What a launch has to do with the work around it, as rows of a table.

use gridfuse_analysis::base::span::Span;
use gridfuse_analysis::facts::dependence;
use gridfuse_analysis::facts::launch::{self, grid_stride_limit};
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::{StmtId, body};

use super::Describe;
use crate::launches::{LaunchSite, place_in};
use crate::schema;

/// What people call a loop of whose iterations each thread of the grid takes its share, before what it goes over.
const GRID_STRIDE: &str = "grid-stride loop over";

impl Describe<'_> {
    fn touch(&self, touch: &dependence::Touch<'_>) -> schema::Note {
        let place = place_in(self.db, touch.function, touch.span);
        schema::Note {
            text: format!("{} `{}`", touch.kind.verb(), self.text(place)),
            place: Some(self.place(place)),
            assumption: None,
        }
    }

    fn dependence(&self, of: &dependence::Dependence<'_>) -> schema::Dependence {
        use dependence::{Dependence, Independence};
        match of {
            Dependence::None(why) => schema::Dependence {
                verdict: "none",
                because: match why {
                    Independence::Single => "there is only one",
                    Independence::ReadOnly => "both only read what they share",
                    Independence::Disjoint => "neither writes what the other uses",
                    Independence::Commuting => "the order of their writes makes no difference",
                }
                .to_string(),
                places: Vec::new(),
            },
            Dependence::Conflict(a, b) => {
                let mut places = vec![self.touch(a), self.touch(b)];
                // Both may be the same access.
                places.dedup();
                schema::Dependence {
                    verdict: "conflict",
                    because: "they may use the same memory".to_string(),
                    places,
                }
            }
            Dependence::Unknown(doubt) => self.doubt(doubt),
        }
    }

    /// A statement in the middle of a sentence: its head, or what people call it.
    fn statement(&self, function: FunctionItem<'_>, span: Span) -> String {
        let body = body(self.db, function);
        let statement = body.stmts.iter().position(|stmt| stmt.span == span);
        let limit = statement.and_then(|at| grid_stride_limit(self.db, function, StmtId(at as u32)));
        match limit {
            Some(limit) => {
                let limit = place_in(self.db, function, body.expr(limit).span);
                format!("{GRID_STRIDE} `{}`", head(&self.text(limit)))
            }
            None => format!("`{}`", head(&self.text(place_in(self.db, function, span)))),
        }
    }

    fn doubt(&self, doubt: &dependence::Doubt<'_>) -> schema::Dependence {
        let mut places = Vec::new();
        if let Some((function, span)) = doubt.place {
            let place = place_in(self.db, function, span);
            places.push(schema::Note {
                text: self.statement(function, span),
                place: Some(self.place(place)),
                assumption: None,
            });
        }
        if let Some((a, b)) = &doubt.pair {
            places.extend([self.touch(a), self.touch(b)]);
            places.dedup();
        }
        schema::Dependence {
            verdict: "unknown",
            because: doubt.reason.clone(),
            places,
        }
    }

    fn iterations(&self, site: &LaunchSite<'_>, of: &dependence::LoopDependence<'_>) -> schema::LoopIterations {
        use dependence::{Iterations, Operation};
        let word = |operation: Operation| match operation {
            Operation::Add => "+",
            Operation::Multiply => "*",
            Operation::Minimum => "min",
            Operation::Maximum => "max",
            Operation::And => "&",
            Operation::Or => "|",
            Operation::Xor => "^",
        };
        let (kind, because, places) = match &of.iterations {
            Iterations::Parallel => (
                "parallel",
                "its iterations don't depend on each other".to_string(),
                Vec::new(),
            ),
            Iterations::Reduction(operation, touch) => (
                "reduction",
                format!("its iterations collect a result with {}", word(*operation)),
                vec![self.touch(touch)],
            ),
            Iterations::Scan(operation, touch) => (
                "scan",
                format!("each iteration uses what {} has collected so far", word(*operation)),
                vec![self.touch(touch)],
            ),
            Iterations::Carried(a, b) => (
                "carried",
                "an iteration depends on an earlier one".to_string(),
                vec![self.touch(a), self.touch(b)],
            ),
            Iterations::Ends(span) => {
                let place = site.at(self.db, *span);
                let note = schema::Note {
                    text: self.statement(site.id.function, *span),
                    place: Some(self.place(place)),
                    assumption: None,
                };
                (
                    "carried",
                    "an iteration decides whether there is another".to_string(),
                    vec![note],
                )
            }
            Iterations::Unknown(doubt) => {
                let doubt = self.doubt(doubt);
                ("unknown", doubt.because, doubt.places)
            }
        };
        schema::LoopIterations {
            place: self.place(site.at(self.db, of.span)),
            grid_stride: of.grid_stride.map(|limit| head(&self.text(site.at(self.db, limit)))),
            kind,
            because,
            places,
        }
    }

    pub(super) fn dependences(&self, site: &LaunchSite<'_>) -> schema::Dependences {
        let (function, index) = (site.id.function, site.id.index as usize);
        let order = &dependence::order(self.db, function)[index];
        let all = launch::launches(self.db, function);
        let other = |(index, how): &(u32, dependence::Dependence<'_>)| schema::OtherLaunch {
            place: self.place(site.at(self.db, all[*index as usize].span)),
            dependence: self.dependence(how),
        };
        let head_start = dependence::prefixes(self.db, function)[index].as_ref().map(|prefix| {
            let note = |(span, how): &(Span, dependence::Dependence<'_>)| {
                let how = self.dependence(how);
                schema::Note {
                    text: how.because,
                    place: Some(self.place(place_in(self.db, prefix.child, *span))),
                    assumption: None,
                }
            };
            schema::HeadStart {
                place: prefix
                    .span
                    .map(|span| self.place(place_in(self.db, prefix.child, span))),
                stop: prefix.stop.as_ref().map(note),
            }
        });
        schema::Dependences {
            behind: self.dependence(&dependence::after(self.db, function)[index].dependence),
            threads: self.dependence(&order.threads),
            iterations: order.iterations.as_ref().map(|d| self.dependence(d)),
            others: order.others.iter().map(other).collect(),
            loops: dependence::loops(self.db, function)[index]
                .iter()
                .map(|l| self.iterations(site, l))
                .collect(),
            head_start,
        }
    }
}

/// What is shown of a statement in the middle of a sentence: its head, without its body, and no more than a line holds.
fn head(text: &str) -> String {
    const SHOWN: usize = 80;
    let mut depth = 0i32;
    let body = text.char_indices().find(|(_, c)| {
        depth += i32::from(*c == '(') - i32::from(*c == ')');
        *c == '{' && depth == 0
    });
    let (head, more) = match body {
        Some((at, _)) if at > 0 => (text[..at].trim_end(), true),
        _ => (text, false),
    };
    match head.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", head[..at].trim_end()),
        None if more => format!("{head} …"),
        None => head.to_owned(),
    }
}

/// A row of a launch's table of dependences.
pub struct DependenceRow<'a> {
    /// Between what.
    pub of: String,
    /// The verdict.
    pub verdict: &'static str,
    /// Why.
    pub because: &'a str,
    /// Where.
    pub places: Vec<&'a schema::Note>,
}

/// The rows of a launch's table of dependences.
pub fn dependence_rows(launch: &schema::Launch) -> Vec<DependenceRow<'_>> {
    fn row<'a>(of: String, dependence: &'a schema::Dependence) -> DependenceRow<'a> {
        DependenceRow {
            of,
            verdict: dependence.verdict,
            because: &dependence.because,
            places: dependence.places.iter().collect(),
        }
    }
    let Some(all) = &launch.dependences else {
        return Vec::new();
    };
    let mut rows = vec![
        row("parent after the launch".to_string(), &all.behind),
        row("children of different threads".to_string(), &all.threads),
    ];
    rows.extend(
        all.iterations
            .as_ref()
            .map(|d| row("children of one thread".to_string(), d)),
    );
    for other in &all.others {
        let of = format!("children of line {}", other.place.start.line);
        rows.push(row(of, &other.dependence));
    }
    for l in &all.loops {
        rows.push(DependenceRow {
            of: match &l.grid_stride {
                Some(limit) => format!("{GRID_STRIDE} `{limit}` (line {})", l.place.start.line),
                None => format!("loop of line {}", l.place.start.line),
            },
            verdict: l.kind,
            because: &l.because,
            places: l.places.iter().collect(),
        });
    }
    if let Some(start) = &all.head_start
        && let Some(place) = &start.place
    {
        let (first, last) = (place.start.line, place.end.line);
        let lines = if first == last {
            format!("line {first}")
        } else {
            format!("lines {first} to {last}")
        };
        rows.push(DependenceRow {
            of: format!("child's {lines}"),
            verdict: "none",
            because: match &start.stop {
                Some(_) => "they don't depend on the parent's work before the launch",
                None => "the whole child doesn't depend on the parent's work before the launch",
            },
            places: Vec::new(),
        });
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::head;

    #[test]
    fn a_statement_is_named_by_its_head() {
        assert_eq!(
            head("for (int i = 0; i < n; ++i) { out[i] = 1; }"),
            "for (int i = 0; i < n; ++i) …"
        );
        assert_eq!(head("f([] { return 1; })"), "f([] { return 1; })");
        assert_eq!(head("out[i] += 1"), "out[i] += 1");
        assert_eq!(head("{ a(); }"), "{ a(); }");
        assert_eq!(head(&"ä".repeat(100)), format!("{}…", "ä".repeat(80)));
    }
}
