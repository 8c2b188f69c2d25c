//! The search: successive halving that begins at the cost model's guess and looks around the best points in each round.
//!
//! It knows nothing of compilers and GPUs: it says which points have to run how often, and is told what came out. What it says
//! depends on that alone, so that a search that was interrupted goes on by being told again what is known.

use std::collections::{BTreeMap, BTreeSet};

use super::space::{Point, Space};

/// So many points stay at least.
const BEAM: usize = 3;

/// Around so many of the best points it looks in each round.
const CENTRES: usize = 2;

/// Fewer points are not worth a choice.
const LEAST_POINTS: usize = 24;

/// Of a space that is larger than this, no more than a quarter is built: programs of points, those of the finalists that are compared, and
/// that of the program as it is.
const SMALL: usize = 40;

/// Points that are that close to the best are as good, as far as one run can tell.
const NOISE: f64 = 1.03;

/// Of points that are that close to the best, it looks around those with the fewest rewrites first: times of single runs differ by as
/// much, and a coarsening factor that only seems to help leads away from the points where it isn't needed.
const ALIKE: f64 = 1.10;

/// A search that is under way.
pub struct Search<'a> {
    space: &'a Space,
    /// So often the best points run.
    repeat: usize,
    /// No more points than these.
    most: usize,
    /// Points that were asked for.
    asked: BTreeSet<Point>,
    /// In the race, the guess first.
    pool: Vec<Point>,
    round: usize,
}

/// Points that have to have run so often before the search goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// In this order: the most promising first, so that others can be stopped soon.
    pub points: Vec<(Point, usize)>,
}

impl<'a> Search<'a> {
    /// Begins at a guess.
    pub fn new(space: &'a Space, guess: Point, repeat: usize) -> Search<'a> {
        let most = match space.len() {
            0..=SMALL => LEAST_POINTS,
            all => (all / 4).saturating_sub(4).max(10),
        };
        let mut search = Search {
            space,
            repeat: repeat.max(1),
            most,
            asked: BTreeSet::new(),
            pool: space.seeds(guess, most.saturating_sub(CENTRES)),
            round: 0,
        };
        search.pool.truncate(search.most);
        search
    }

    /// The points with which it begins.
    pub fn first(&self) -> &[Point] {
        &self.pool
    }

    /// No more points than these are asked for.
    pub fn most(&self) -> usize {
        self.most
    }

    /// So many more points may be asked for.
    pub fn left(&self) -> usize {
        self.most.saturating_sub(self.asked.len())
    }

    /// What has to run next; `None`: the search is at its end. `times`: what is known of each point, the median of its runs; a
    /// point that was given up has none.
    pub fn next(&mut self, times: &BTreeMap<Point, f64>) -> Option<Batch> {
        self.round += 1;
        if self.round == 1 {
            self.asked.extend(&self.pool);
            return Some(Batch {
                points: self.pool.iter().map(|point| (*point, 1)).collect(),
            });
        }
        let ranked = ranked(&self.pool, times);
        let best = ranked.first().and_then(|point| times.get(point)).copied()?;
        // The better half stays, and what can't be told from the best.
        let half = ranked.len().div_ceil(2);
        let close = |point: &Point| times.get(point).is_some_and(|time| *time <= best * NOISE);
        let mut stays: Vec<Point> = ranked
            .iter()
            .enumerate()
            .filter(|(index, point)| *index < half.max(BEAM) || close(point))
            .map(|(_, point)| *point)
            .collect();
        let new: Vec<Point> = self.around(&centres(&stays, times));
        // At the end, a few that ran often.
        if new.is_empty() {
            stays.truncate(BEAM);
        }
        let runs = self.repeat.min(1 << (self.round - 1).min(8));
        let runs = if new.is_empty() { self.repeat } else { runs };
        let finished = new.is_empty() && self.pool == stays;
        self.asked.extend(&new);
        let points = stays
            .iter()
            .map(|point| (*point, runs))
            .chain(new.iter().map(|point| (*point, 1)))
            .collect();
        self.pool = stays.into_iter().chain(new).collect();
        (!finished).then_some(Batch { points })
    }

    /// Points that may be asked for soon, the likeliest first: two steps around the best that is known, or around the guess.
    pub fn soon(&self, times: &BTreeMap<Point, f64>) -> Vec<Point> {
        let ranked = ranked(&self.pool, times);
        let known = if ranked.is_empty() { &self.pool } else { &ranked };
        let centres = centres(known, times);
        let mut soon = Vec::new();
        let near = |point: &Point| self.space.neighbours(*point);
        let first: Vec<Point> = centres.iter().flat_map(near).collect();
        let second = first.iter().flat_map(near);
        for point in first.iter().copied().chain(second) {
            if !self.asked.contains(&point) && !soon.contains(&point) {
                soon.push(point);
            }
        }
        soon
    }

    /// What was not asked for yet around these points, as far as more may be asked for: a neighbour of each in turn.
    fn around(&self, centres: &[Point]) -> Vec<Point> {
        let near: Vec<Vec<Point>> = centres
            .iter()
            .map(|point| {
                let all = self.space.neighbours(*point).into_iter();
                all.filter(|point| !self.asked.contains(point)).collect()
            })
            .collect();
        let most = near.iter().map(Vec::len).max().unwrap_or_default();
        let mut new = Vec::new();
        for neighbour in (0..most).flat_map(|turn| near.iter().filter_map(move |near| near.get(turn))) {
            if !new.contains(neighbour) {
                new.push(*neighbour);
            }
        }
        new.truncate(self.left());
        new
    }
}

/// Around which points to look: the best ones, and of those that one run can't tell from the best, the ones with the fewest rewrites.
fn centres(ranked: &[Point], times: &BTreeMap<Point, f64>) -> Vec<Point> {
    let best = ranked.first().and_then(|point| times.get(point)).copied();
    let alike = |point: &Point| {
        let time = times.get(point).copied();
        best.zip(time).is_some_and(|(best, time)| time <= best * ALIKE)
    };
    let mut order = ranked.to_vec();
    // Stable: among equals the fastest stays first.
    order.sort_by_key(|point| match alike(point) {
        true => (0, point.steps().len()),
        false => (1, 0),
    });
    order.truncate(CENTRES);
    order
}

/// The points that have a time, the fastest first.
pub fn ranked(points: &[Point], times: &BTreeMap<Point, f64>) -> Vec<Point> {
    let mut known: Vec<(Point, f64)> = points
        .iter()
        .filter_map(|point| Some((*point, *times.get(point)?)))
        .collect();
    known.sort_by(|a, b| a.1.total_cmp(&b.1));
    known.into_iter().map(|(point, _)| point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::report::median;
    use crate::measure::tune::space::{FACTORS, THRESHOLDS, granularities};

    fn space(guess: Point) -> Space {
        let some = |values: &[u64]| std::iter::once(None).chain(values.iter().copied().map(Some)).collect();
        let granularities = std::iter::once(None)
            .chain(granularities().into_iter().map(Some))
            .collect();
        Space::new(some(&THRESHOLDS), some(&FACTORS), granularities, vec![false], guess)
    }

    /// Runs a search to its end with a made-up time function; the best point found, the points that ran, and all runs.
    fn found(space: &Space, guess: Point, time: impl Fn(Point) -> Option<f64>) -> (Option<Point>, usize, usize) {
        let mut search = Search::new(space, guess, 5);
        let mut times = BTreeMap::new();
        let mut runs: BTreeMap<Point, usize> = BTreeMap::new();
        while let Some(batch) = search.next(&times) {
            for (point, wanted) in batch.points {
                let run = runs.entry(point).or_default();
                *run = (*run).max(wanted);
                if let Some(time) = time(point) {
                    times.insert(point, time);
                }
            }
        }
        let all: Vec<Point> = times.keys().copied().collect();
        (ranked(&all, &times).first().copied(), runs.len(), runs.values().sum())
    }

    fn log(value: Option<u64>) -> f64 {
        value.map_or(0.0, |value| (value as f64).log2())
    }

    #[test]
    fn the_optimum_is_found_with_few_points() {
        let guess = Point {
            threshold: Some(32),
            granularity: Some("aggregate-grid"),
            ..Point::default()
        };
        let space = space(guess);
        assert_eq!(space.len(), 9 * 5 * 8 + 1);
        let per = |point: Point| {
            granularities()
                .iter()
                .position(|id| Some(*id) == point.granularity)
                .map_or(0.0, |index| index as f64 + 1.0)
        };
        for (threshold, factor, granularity) in [(5.0, 0.0, 5.0), (9.0, 2.0, 5.0), (0.0, 4.0, 3.0), (10.0, 3.0, 1.0)] {
            let time = |point: Point| {
                let steps = (log(point.threshold) - threshold).abs() / 3.0
                    + (log(point.factor) - factor).abs() / 2.0
                    + (per(point) - granularity).abs();
                Some(1.0 + steps)
            };
            let exhaustive = space
                .points()
                .into_iter()
                .filter_map(time)
                .fold(f64::INFINITY, f64::min);
            let (best, points, runs) = found(&space, guess, time);
            let best = best.and_then(time).unwrap_or(f64::INFINITY);
            assert!(best <= exhaustive * 1.05, "{best} instead of {exhaustive}");
            assert!(points <= space.len() / 4, "{points} of {}", space.len());
            assert!(runs <= 3 * points, "{runs} runs of {points} points");
        }
    }

    #[test]
    fn points_that_fail_are_left_out() {
        let guess = Point {
            threshold: Some(32),
            granularity: Some("aggregate-grid"),
            ..Point::default()
        };
        let space = space(guess);
        let time = |point: Point| {
            (point.granularity != Some("aggregate-grid") && point.threshold.is_some())
                .then(|| 1.0 + (log(point.threshold) - 6.0).abs())
        };
        let (best, ..) = found(&space, guess, time);
        assert_eq!(best.and_then(|best| best.threshold), Some(64));
        assert_eq!(found(&space, guess, |_| None).0, None);
    }

    #[test]
    fn small_spaces_are_searched_whole() {
        let space = Space::new(
            vec![None, Some(32)],
            vec![None],
            vec![None],
            vec![false],
            Point::default(),
        );
        let (best, points, _) = found(&space, Point::default(), |point| {
            Some(1.0 / (1.0 + log(point.threshold)))
        });
        assert_eq!((best.and_then(|best| best.threshold), points), (Some(32), 2));
    }

    /// Times vary by up to a fifth from run to run: how often the search ends within 5 % of the best median all the same.
    #[test]
    #[allow(clippy::unwrap_used)]
    fn the_optimum_is_found_in_noise() {
        const SEARCHES: u64 = 200;
        // As `tune --exhaustive` has measured them on a GPU.
        let recorded = |program: &str| -> (Point, BTreeMap<Point, Vec<f64>>) {
            let root = env!("CARGO_MANIFEST_DIR");
            let path = format!("{root}/../tests/gpu/results/tune_{program}.json");
            let report: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
            let times = report["exhaustive"]["times_ms"].as_object().unwrap();
            let numbers =
                |times: &serde_json::Value| times.as_array().unwrap().iter().filter_map(|t| t.as_f64()).collect();
            let guess = Point::parse(report["guess"].as_str().unwrap()).unwrap();
            let times = times.iter();
            (
                guess,
                times
                    .map(|(point, times)| (Point::parse(point).unwrap(), numbers(times)))
                    .collect(),
            )
        };
        for (program, least) in [("bfs", 180), ("gc", 150)] {
            let (guess, all) = recorded(program);
            let middle = |point: Point| median(&all[&point]).unwrap();
            let best = all.keys().copied().map(middle).fold(f64::INFINITY, f64::min);
            let space = Space::new(
                all.keys().map(|point| point.threshold).collect(),
                all.keys().map(|point| point.factor).collect(),
                all.keys().map(|point| point.granularity).collect(),
                vec![false],
                guess,
            );
            assert_eq!(space.len(), all.len());
            let mut good = 0;
            for seed in 1..=SEARCHES {
                // xorshift64*
                let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
                let mut random = |below: usize| {
                    state ^= state >> 12;
                    state ^= state << 25;
                    state ^= state >> 27;
                    (state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % below
                };
                let mut search = Search::new(&space, guess, 5);
                let mut runs: BTreeMap<Point, Vec<f64>> = BTreeMap::new();
                let medians = |runs: &BTreeMap<Point, Vec<f64>>| -> BTreeMap<Point, f64> {
                    runs.iter()
                        .map(|(point, times)| (*point, median(times).unwrap()))
                        .collect()
                };
                while let Some(batch) = search.next(&medians(&runs)) {
                    for (point, wanted) in batch.points {
                        let run = runs.entry(point).or_default();
                        while run.len() < wanted {
                            run.push(all[&point][random(all[&point].len())]);
                        }
                    }
                }
                let tried: Vec<Point> = runs.keys().copied().collect();
                let often = runs.iter().filter(|(_, times)| times.len() >= 5);
                let often: BTreeMap<Point, f64> = often.map(|(p, times)| (*p, median(times).unwrap())).collect();
                let found = ranked(&tried, &often)[0];
                assert!(runs.len() <= space.len() / 4);
                good += u64::from(middle(found) <= best * 1.05);
            }
            assert!(good >= least, "{program}: {good} of {SEARCHES}");
        }
    }
}
