//! The points among which `tune` searches: a threshold, a coarsening factor and a granularity each, and whether atomic operations are
//! combined.

use std::fmt;

use gridfuse_codeactions::api::rewrite::{Axis, Family, Options, Rewrite};
use gridfuse_codeactions::handlers::{of_launches, rewrite_by_id};

/// Thresholds that are tried, unless the user names others.
pub const THRESHOLDS: [u64; 8] = [8, 16, 32, 64, 128, 256, 512, 1024];

/// Coarsening factors that are tried, unless the user names others.
pub const FACTORS: [u64; 4] = [2, 4, 8, 16];

/// Granularities, from the most launches to the fewest.
pub fn granularities() -> Vec<&'static str> {
    let place = |rewrite: &&Rewrite| match rewrite.tunes {
        Some(Axis::Granularity(place)) => Some(place),
        _ => None,
    };
    let mut found: Vec<&Rewrite> = of_launches().filter(|rewrite| place(rewrite).is_some()).collect();
    found.sort_by_key(place);
    found.into_iter().map(|rewrite| rewrite.id).collect()
}

/// The child's work in the launching thread: there are no child grids left for the other axes to be about.
fn leaves_no_grids(granularity: Option<&str>) -> bool {
    let rewrite = granularity.and_then(rewrite_by_id);
    rewrite.is_some_and(|rewrite| rewrite.family == Family::InLauncher)
}

/// The rewrite by which `tune` chooses on an axis beside that of granularities.
pub fn rewrite_on(is_it: impl Fn(Axis) -> bool) -> Option<&'static Rewrite> {
    of_launches().find(|rewrite| rewrite.tunes.is_some_and(&is_it))
}

/// The rewrite that a number is chosen for, and its option.
fn numbered(option_of: impl Fn(Axis) -> Option<&'static str>) -> Option<(&'static Rewrite, &'static str)> {
    of_launches().find_map(|rewrite| Some((rewrite, option_of(rewrite.tunes?)?)))
}

fn threshold() -> Option<(&'static Rewrite, &'static str)> {
    numbered(|axis| match axis {
        Axis::Threshold(option) => Some(option),
        _ => None,
    })
}

fn factor() -> Option<(&'static Rewrite, &'static str)> {
    numbered(|axis| match axis {
        Axis::Factor(option) => Some(option),
        _ => None,
    })
}

/// Lets a warp of the child do one atomic operation for its threads.
fn combining() -> Option<&'static Rewrite> {
    rewrite_on(|axis| axis == Axis::Combination)
}

/// One way to launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Point {
    /// Atomic operations of a warp of the child become one.
    pub combined: bool,
    /// `None`: child grids of all sizes are launched.
    pub threshold: Option<u64>,
    /// `None`: blocks of the child stay as they are.
    pub factor: Option<u64>,
    /// A rewrite's id; `None`: each launch by itself.
    pub granularity: Option<&'static str>,
}

impl Point {
    /// The same at another granularity, as far as that leaves something of the same.
    fn at(self, granularity: Option<&'static str>) -> Point {
        let rest = match leaves_no_grids(granularity) {
            true => Point::default(),
            false => self,
        };
        Point { granularity, ..rest }
    }

    /// The rewrites that make it of the program without any, in order, with their options.
    pub fn steps(&self) -> Vec<(&'static Rewrite, Options)> {
        let with = |(rewrite, option): (&'static Rewrite, &str), value: u64| {
            let mut options = Options::default();
            options.0.insert(option.to_owned(), value.to_string());
            (rewrite, options)
        };
        let plain = |rewrite: &'static Rewrite| (rewrite, Options::default());
        let combined = combining().filter(|_| self.combined).map(plain);
        let threshold = threshold().zip(self.threshold).map(|(on, value)| with(on, value));
        let factor = factor().zip(self.factor).map(|(on, value)| with(on, value));
        let granularity = self.granularity.and_then(rewrite_by_id).map(plain);
        [combined, threshold, factor, granularity]
            .into_iter()
            .flatten()
            .collect()
    }

    /// As people say it: `threshold 64, coarsening 4, multiblock`.
    pub fn in_words(&self) -> String {
        let threshold = self.threshold.map(|value| format!("threshold {value}"));
        let factor = self.factor.map(|value| format!("coarsening {value}"));
        let granularity = self
            .granularity
            .map(|id| id.trim_start_matches("aggregate-").to_owned());
        let combined = self.combined.then(|| "combined atomics".to_owned());
        let words: Vec<String> = [threshold, factor, granularity, combined]
            .into_iter()
            .flatten()
            .collect();
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
            let (id, value) = step
                .split_once('=')
                .map_or((step, None), |(id, value)| (id, Some(value)));
            match (rewrite_by_id(id)?.tunes?, value) {
                (Axis::Threshold(_), Some(value)) => point.threshold = Some(value.parse().ok()?),
                (Axis::Factor(_), Some(value)) => point.factor = Some(value.parse().ok()?),
                (Axis::Combination, None) => point.combined = true,
                (Axis::Granularity(_), None) => point.granularity = Some(granularity(id)?),
                _ => return None,
            }
        }
        Some(point)
    }
}

/// The granularity with this id.
pub fn granularity(id: &str) -> Option<&'static str> {
    granularities().into_iter().find(|known| *known == id)
}

/// The point without any rewrite.
const NOTHING: &str = "no-rewrite";

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbered = |(rewrite, _): (&Rewrite, &str), value: u64| format!("{}={value}", rewrite.id);
        let combined = combining().filter(|_| self.combined);
        let steps: Vec<String> = [
            combined.map(|rewrite| rewrite.id.to_owned()),
            threshold().zip(self.threshold).map(|(on, value)| numbered(on, value)),
            factor().zip(self.factor).map(|(on, value)| numbered(on, value)),
            self.granularity.map(str::to_owned),
        ]
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
    /// In the order of [`granularities`], `None` first.
    pub granularities: Vec<Option<&'static str>>,
    /// Without and with combined atomic operations, as far as that is to be tried.
    pub combined: Vec<bool>,
}

impl Space {
    /// The combinations of these values, and of those of the point at which the search begins.
    pub fn new(
        mut thresholds: Vec<Option<u64>>,
        mut factors: Vec<Option<u64>>,
        mut granularities: Vec<Option<&'static str>>,
        mut combined: Vec<bool>,
        guess: Point,
    ) -> Space {
        thresholds.push(guess.threshold);
        factors.push(guess.factor);
        granularities.push(guess.granularity);
        combined.push(guess.combined);
        for axis in [&mut thresholds, &mut factors] {
            axis.sort_unstable();
            axis.dedup();
        }
        let known = self::granularities();
        granularities.sort_by_key(|id| known.iter().position(|known| Some(*known) == *id));
        granularities.dedup();
        combined.sort_unstable();
        combined.dedup();
        Space {
            thresholds,
            factors,
            granularities,
            combined,
        }
    }

    /// How many points there are.
    pub fn len(&self) -> usize {
        let serial = self.granularities.iter().filter(|id| leaves_no_grids(**id)).count();
        let collected = self.granularities.len() - serial;
        collected * self.combined.len() * self.thresholds.len() * self.factors.len() + serial
    }

    /// All of them.
    pub fn points(&self) -> Vec<Point> {
        let mut points = Vec::with_capacity(self.len());
        for granularity in &self.granularities {
            if leaves_no_grids(*granularity) {
                points.push(Point::default().at(*granularity));
                continue;
            }
            for combined in &self.combined {
                for threshold in &self.thresholds {
                    for factor in &self.factors {
                        points.push(Point {
                            combined: *combined,
                            threshold: *threshold,
                            factor: *factor,
                            granularity: *granularity,
                        });
                    }
                }
            }
        }
        points
    }

    /// Where the search begins: the guess, the same with atomic operations as they are or combined, at each other granularity, and beside
    /// it on both other axes: with all thresholds, where that makes no more than `few` points, or else with some near and far.
    pub fn seeds(&self, guess: Point, few: usize) -> Vec<Point> {
        let of = |thresholds: &mut dyn Iterator<Item = Option<u64>>| {
            let mut seeds = vec![guess];
            seeds.extend(self.combined.iter().map(|combined| Point {
                combined: *combined,
                ..guess
            }));
            seeds.extend(self.granularities.iter().map(|granularity| guess.at(*granularity)));
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

    /// The points that differ from a point in one thing alone, by one step.
    pub fn neighbours(&self, point: Point) -> Vec<Point> {
        let mut neighbours = Vec::new();
        if !leaves_no_grids(point.granularity) {
            for threshold in beside(&self.thresholds, point.threshold) {
                neighbours.push(Point { threshold, ..point });
            }
            for factor in beside(&self.factors, point.factor) {
                neighbours.push(Point { factor, ..point });
            }
            for combined in beside(&self.combined, point.combined) {
                neighbours.push(Point { combined, ..point });
            }
        }
        for granularity in beside(&self.granularities, point.granularity) {
            neighbours.push(point.at(granularity));
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

    const SERIALIZE: &str = "serialize";

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
                combined: false,
            },
            Point {
                granularity: Some("aggregate-grid-stream"),
                combined: true,
                ..Point::default()
            },
        ];
        let names = points.map(|point| point.to_string());
        assert_eq!(
            names,
            [
                "no-rewrite",
                "threshold=64",
                "threshold=64+coarsen=4+aggregate-grid",
                "aggregate-atomics+aggregate-grid-stream"
            ]
        );
        for (name, point) in names.iter().zip(points) {
            assert_eq!(Point::parse(name), Some(point));
        }
        let words = points.map(|point| point.in_words());
        assert_eq!(
            words,
            [
                "no rewrite",
                "threshold 64",
                "threshold 64, coarsening 4, grid",
                "grid-stream, combined atomics"
            ]
        );
        for wrong in ["", "x", "threshold=x", "threshold", "x=3"] {
            assert_eq!(Point::parse(wrong), None, "{wrong}");
        }
        let steps: Vec<&str> = points[2].steps().iter().map(|(rewrite, _)| rewrite.id).collect();
        assert_eq!(steps, ["threshold", "coarsen", "aggregate-grid"]);
        let steps: Vec<&str> = points[3].steps().iter().map(|(rewrite, _)| rewrite.id).collect();
        assert_eq!(steps, ["aggregate-atomics", "aggregate-grid-stream"]);
    }

    #[test]
    fn the_loop_in_the_launcher_is_one_point() {
        let guess = Point {
            granularity: Some("aggregate-grid-stream"),
            combined: true,
            ..Point::default()
        };
        let space = Space::new(
            vec![None, Some(16)],
            vec![None, Some(4)],
            vec![Some(SERIALIZE), None],
            vec![false],
            guess,
        );
        assert_eq!((space.len(), space.points().len()), (17, 17));
        let serial: Vec<String> = space
            .points()
            .iter()
            .map(Point::to_string)
            .filter(|point| point.contains(SERIALIZE))
            .collect();
        assert_eq!(serial, [SERIALIZE]);
        let serial = Point::default().at(Some(SERIALIZE));
        assert!(space.seeds(guess, 100).contains(&serial));
        assert!(space.seeds(guess, 0).contains(&serial));
        assert!(space.neighbours(guess).contains(&serial));
        let near: Vec<String> = space.neighbours(serial).iter().map(Point::to_string).collect();
        assert_eq!(near, ["aggregate-grid-stream"]);
        let near: Vec<String> = space.neighbours(guess).iter().map(Point::to_string).collect();
        assert_eq!(
            near,
            [
                "aggregate-atomics+threshold=16+aggregate-grid-stream",
                "aggregate-atomics+coarsen=4+aggregate-grid-stream",
                "aggregate-grid-stream",
                "aggregate-atomics",
                "serialize"
            ]
        );
    }

    #[test]
    fn the_guess_is_one_of_the_points() {
        let guess = Point {
            threshold: Some(20),
            factor: None,
            granularity: Some("aggregate-block"),
            combined: false,
        };
        let space = Space::new(
            vec![None, Some(16), Some(64)],
            vec![None, Some(4)],
            vec![Some("aggregate-grid"), None],
            vec![false],
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
