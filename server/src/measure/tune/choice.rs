//! Which of the finalists is the best.

use super::race::Tries;
use super::report::AsFast;
use super::space::Point;
use crate::measure::kernels::rank;
use crate::measure::report::median;

/// Times that differ by no more than this can't be told apart.
const ALIKE: f64 = 1.02;

/// What was chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The best point.
    pub best: Point,
    /// Those that are as fast, but whose kernels keep fewer threads resident.
    pub as_fast: Vec<AsFast>,
}

/// The fastest of `ranked`, the fastest first; of those that can't be told from it, the one whose kernels keep the most threads
/// resident, as there is more to hide latencies with when the input is another one. The fastest one where that isn't known.
pub fn choose(ranked: &[Point], tried: &Tries) -> Option<Choice> {
    let fastest = *ranked.first()?;
    let time = |point: Point| median(&tried.get(&point)?.times_ms);
    let resident = |point: Point| rank(&tried.get(&point)?.kernels);
    let alone = Choice {
        best: fastest,
        as_fast: Vec::new(),
    };
    let (Some(least), Some(_)) = (time(fastest), resident(fastest)) else {
        return Some(alone);
    };
    let alike: Vec<(Point, f64, u32)> = ranked
        .iter()
        .filter_map(|point| Some((*point, time(*point)?, resident(*point)?)))
        .filter(|(_, time, _)| *time <= least * ALIKE)
        .collect();
    // Among equals the fastest stays the best.
    let best = alike.iter().rev().max_by_key(|(_, _, resident)| *resident);
    let Some((best, _, most)) = best else {
        return Some(alone);
    };
    let fewer = alike.iter().filter(|(_, _, resident)| *resident < *most);
    Some(Choice {
        best: *best,
        as_fast: fewer
            .map(|(point, ms, resident)| AsFast {
                point: point.to_string(),
                ms: *ms,
                resident_threads: *resident,
                best_resident_threads: *most,
            })
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::kernels::tests::kernel;
    use crate::measure::tune::state::Tried;

    #[test]
    fn occupancy_decides_what_times_do_not() {
        let points = [16, 64, 256].map(|threshold| Point {
            threshold: Some(threshold),
            ..Point::default()
        });
        let tries = |all: [(f64, &[u32]); 3]| -> Tries {
            let tried = |(ms, resident): (f64, &[u32])| Tried {
                times_ms: vec![ms],
                kernels: resident.iter().map(|threads| kernel("k", 32, *threads)).collect(),
                ..Tried::default()
            };
            points.into_iter().zip(all.map(tried)).collect()
        };
        let chosen = |all| {
            let choice = choose(&points, &tries(all));
            choice.map(|choice| (choice.best.threshold.unwrap_or_default(), choice.as_fast.len()))
        };
        // The second keeps more; the third would, but takes longer.
        assert_eq!(
            chosen([(1.0, &[1024]), (1.019, &[1536]), (1.03, &[2048])]),
            Some((64, 1))
        );
        assert_eq!(
            chosen([(1.0, &[1024]), (1.03, &[1536]), (1.04, &[2048])]),
            Some((16, 0))
        );
        // The kernel that keeps the fewest counts; among equals, the time.
        assert_eq!(
            chosen([(1.0, &[2048, 512]), (1.01, &[1024, 1024]), (1.01, &[1024, 1536])]),
            Some((64, 1))
        );
        assert_eq!(
            chosen([(1.0, &[2048]), (1.01, &[2048]), (1.01, &[2048])]),
            Some((16, 0))
        );
        // Where nothing is known, nothing is preferred.
        assert_eq!(chosen([(1.0, &[]), (1.01, &[2048]), (1.01, &[2048])]), Some((16, 0)));
        assert_eq!(chosen([(1.0, &[1024]), (1.01, &[]), (1.015, &[2048])]), Some((256, 1)));
        assert_eq!(choose(&[], &Tries::new()), None);
    }
}
