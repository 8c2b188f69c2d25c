//! The points among which `tune` searches: a threshold, a coarsening factor and a granularity each.

use std::fmt;

use gridfuse_codeactions::handlers::rewrite_by_id;
use gridfuse_codeactions::rewrite::{Options, Rewrite};

/// Thresholds that are tried, unless the user names others.
pub const THRESHOLDS: [u64; 8] = [8, 16, 32, 64, 128, 256, 512, 1024];

/// Coarsening factors that are tried, unless the user names others.
pub const FACTORS: [u64; 4] = [2, 4, 8, 16];

/// Granularities, from the most launches to the fewest.
pub const GRANULARITIES: [&str; 7] = [
    "fire-and-forget",
    "aggregate-warp",
    "aggregate-block",
    "aggregate-multiblock",
    "aggregate-grid",
    "aggregate-grid-host",
    "aggregate-grid-stream",
];

/// One way to launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Point {
    /// `None`: child grids of all sizes are launched.
    pub threshold: Option<u64>,
    /// `None`: blocks of the child stay as they are.
    pub factor: Option<u64>,
    /// A rewrite's id; `None`: each launch by itself.
    pub granularity: Option<&'static str>,
}

impl Point {
    /// The rewrites that make it of the program without any, in order, with their options.
    pub fn steps(&self) -> Vec<(&'static Rewrite, Options)> {
        let option = |name: &str, value: u64| {
            let mut options = Options::default();
            options.0.insert(name.to_owned(), value.to_string());
            options
        };
        let threshold = self.threshold.map(|value| ("threshold", option("threshold", value)));
        let factor = self.factor.map(|value| ("coarsen", option("factor", value)));
        let granularity = self.granularity.map(|id| (id, Options::default()));
        [threshold, factor, granularity]
            .into_iter()
            .flatten()
            .filter_map(|(id, options)| Some((rewrite_by_id(id)?, options)))
            .collect()
    }

    /// As people say it: `threshold 64, coarsening 4, multiblock`.
    pub fn in_words(&self) -> String {
        let threshold = self.threshold.map(|value| format!("threshold {value}"));
        let factor = self.factor.map(|value| format!("coarsening {value}"));
        let granularity = self
            .granularity
            .map(|id| id.trim_start_matches("aggregate-").to_owned());
        let words: Vec<String> = [threshold, factor, granularity].into_iter().flatten().collect();
        match words.is_empty() {
            true => "no rewrite".to_owned(),
            false => words.join(", "),
        }
    }

    /// Understands what [`Point`] is shown as.
    pub fn parse(text: &str) -> Option<Point> {
        let mut point = Point::default();
        if text == NOTHING {
            return Some(point);
        }
        for step in text.split('+') {
            match step.split_once('=') {
                Some(("threshold", value)) => point.threshold = Some(value.parse().ok()?),
                Some(("coarsen", value)) => point.factor = Some(value.parse().ok()?),
                Some(_) => return None,
                None => point.granularity = Some(granularity(step)?),
            }
        }
        Some(point)
    }
}

/// The granularity with this id.
pub fn granularity(id: &str) -> Option<&'static str> {
    GRANULARITIES.into_iter().find(|known| *known == id)
}

/// The point without any rewrite.
const NOTHING: &str = "no-rewrite";

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let threshold = self.threshold.map(|value| format!("threshold={value}"));
        let factor = self.factor.map(|value| format!("coarsen={value}"));
        let steps: Vec<String> = [threshold, factor, self.granularity.map(str::to_owned)]
            .into_iter()
            .flatten()
            .collect();
        f.write_str(if steps.is_empty() { NOTHING } else { "" })?;
        f.write_str(&steps.join("+"))
    }
}

/// All points: every combination of these values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Space {
    /// Ascending; `None` first where it is one of them.
    pub thresholds: Vec<Option<u64>>,
    /// The same.
    pub factors: Vec<Option<u64>>,
    /// In the order of [`GRANULARITIES`], `None` first.
    pub granularities: Vec<Option<&'static str>>,
}

impl Space {
    /// The combinations of these values, and of those of the point at which the search begins.
    pub fn new(
        mut thresholds: Vec<Option<u64>>,
        mut factors: Vec<Option<u64>>,
        mut granularities: Vec<Option<&'static str>>,
        guess: Point,
    ) -> Space {
        thresholds.push(guess.threshold);
        factors.push(guess.factor);
        granularities.push(guess.granularity);
        for axis in [&mut thresholds, &mut factors] {
            axis.sort_unstable();
            axis.dedup();
        }
        granularities.sort_by_key(|id| GRANULARITIES.iter().position(|known| Some(*known) == *id));
        granularities.dedup();
        Space {
            thresholds,
            factors,
            granularities,
        }
    }

    /// How many points there are.
    pub fn len(&self) -> usize {
        self.thresholds.len() * self.factors.len() * self.granularities.len()
    }

    /// All of them.
    pub fn points(&self) -> Vec<Point> {
        let mut points = Vec::with_capacity(self.len());
        for granularity in &self.granularities {
            for threshold in &self.thresholds {
                for factor in &self.factors {
                    points.push(Point {
                        threshold: *threshold,
                        factor: *factor,
                        granularity: *granularity,
                    });
                }
            }
        }
        points
    }

    /// Where the search begins: the guess, the guess at each other granularity, and beside it on both other axes: with all thresholds,
    /// where that makes no more than `few` points, or else with some near and far.
    pub fn seeds(&self, guess: Point, few: usize) -> Vec<Point> {
        let of = |thresholds: &mut dyn Iterator<Item = Option<u64>>| {
            let mut seeds = vec![guess];
            seeds.extend(self.granularities.iter().map(|granularity| Point {
                granularity: *granularity,
                ..guess
            }));
            seeds.extend(thresholds.map(|threshold| Point { threshold, ..guess }));
            seeds.extend(every_second(&self.factors, guess.factor).map(|factor| Point { factor, ..guess }));
            let mut seen = Vec::new();
            seeds.retain(|point| {
                let new = !seen.contains(point);
                seen.push(*point);
                new
            });
            seeds
        };
        let all = of(&mut self.thresholds.iter().copied());
        match all.len() <= few {
            true => all,
            false => of(&mut every_second(&self.thresholds, guess.threshold)),
        }
    }

    /// The points one step from a point, and those that differ in the granularity alone by one step.
    pub fn neighbours(&self, point: Point) -> Vec<Point> {
        let mut neighbours = Vec::new();
        for threshold in beside(&self.thresholds, point.threshold) {
            neighbours.push(Point { threshold, ..point });
        }
        for factor in beside(&self.factors, point.factor) {
            neighbours.push(Point { factor, ..point });
        }
        for granularity in beside(&self.granularities, point.granularity) {
            neighbours.push(Point { granularity, ..point });
        }
        neighbours
    }
}

/// Every second value, counted from one of them.
fn every_second<T: Copy + PartialEq>(axis: &[T], from: T) -> impl Iterator<Item = T> {
    let start = axis.iter().position(|value| *value == from).unwrap_or(0);
    axis.iter()
        .enumerate()
        .filter(move |(index, _)| index.abs_diff(start) % 2 == 0)
        .map(|(_, value)| *value)
}

/// The values in front of and behind one.
fn beside<T: Copy + PartialEq>(axis: &[T], value: T) -> impl Iterator<Item = T> {
    let at = axis.iter().position(|known| *known == value);
    let sides = at.into_iter().flat_map(|at| [at.checked_sub(1), at.checked_add(1)]);
    sides.flatten().filter_map(|index| axis.get(index).copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_have_names() {
        let points = [
            Point::default(),
            Point {
                threshold: Some(64),
                ..Point::default()
            },
            Point {
                threshold: Some(64),
                factor: Some(4),
                granularity: Some("aggregate-grid"),
            },
        ];
        let names = points.map(|point| point.to_string());
        assert_eq!(
            names,
            ["no-rewrite", "threshold=64", "threshold=64+coarsen=4+aggregate-grid"]
        );
        for (name, point) in names.iter().zip(points) {
            assert_eq!(Point::parse(name), Some(point));
        }
        let words = points.map(|point| point.in_words());
        assert_eq!(
            words,
            ["no rewrite", "threshold 64", "threshold 64, coarsening 4, grid"]
        );
        for wrong in ["", "x", "threshold=x", "threshold", "x=3"] {
            assert_eq!(Point::parse(wrong), None, "{wrong}");
        }
        let steps: Vec<&str> = points[2].steps().iter().map(|(rewrite, _)| rewrite.id).collect();
        assert_eq!(steps, ["threshold", "coarsen", "aggregate-grid"]);
    }

    #[test]
    fn the_guess_is_one_of_the_points() {
        let guess = Point {
            threshold: Some(20),
            factor: None,
            granularity: Some("aggregate-block"),
        };
        let space = Space::new(
            vec![None, Some(16), Some(64)],
            vec![None, Some(4)],
            vec![Some("aggregate-grid"), None],
            guess,
        );
        assert_eq!(space.thresholds, [None, Some(16), Some(20), Some(64)]);
        assert_eq!(
            space.granularities,
            [None, Some("aggregate-block"), Some("aggregate-grid")]
        );
        assert_eq!((space.len(), space.points().len()), (24, 24));
        let seeds = space.seeds(guess, 5);
        assert_eq!(seeds.first(), Some(&guess));
        assert_eq!(seeds.len(), 4, "{seeds:?}");
        assert_eq!(space.seeds(guess, 6).len(), 6);
        assert!(seeds.iter().all(|seed| space.points().contains(seed)));
        let near: Vec<String> = space.neighbours(guess).iter().map(Point::to_string).collect();
        assert_eq!(
            near,
            [
                "threshold=16+aggregate-block",
                "threshold=64+aggregate-block",
                "threshold=20+coarsen=4+aggregate-block",
                "threshold=20",
                "threshold=20+aggregate-grid"
            ]
        );
    }
}
