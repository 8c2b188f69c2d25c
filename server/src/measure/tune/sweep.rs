//! Measuring all points: what the search is to be compared with.

use std::collections::{BTreeMap, VecDeque};

use super::cost::{Cost, Share, Stage};
use super::lab::{FINALISTS, Lab, is_wrong, times};
use super::race::{Entry, Race, Tries};
use super::report::Swept;
use super::search::ranked;
use super::space::{Point, Space};
use super::state::GivenUp;
use super::{Reference, SEARCHED, save};
use crate::measure::percent;

/// The best point and the one that was found run so many times as often again as points run before.
const AGAIN: usize = 2;

impl Lab<'_> {
    /// Runs every point so often as the search runs the best ones; nothing is stopped early. Programs are built anew, beside the runs,
    /// and the fastest point that computes the same as the original is the best. What an interrupted sweep knows isn't run again.
    pub fn sweep(&mut self, space: &Space, found: Option<Point>, reference: &Reference) -> Result<Swept, String> {
        self.ledger.begin(Stage::Sweep);
        let repeat = self.tuning.request.repeat;
        let all = space.points();
        let mut queue = VecDeque::new();
        for point in &all {
            let known = self.swept.get(point);
            let done = known.map_or(0, |tried| tried.times_ms.len());
            if known.is_some_and(|tried| tried.given_up.is_some()) || done >= repeat {
                continue;
            }
            match self.order(Stage::Sweep, *point, false, false)? {
                Ok(program) => queue.push_back(Entry {
                    point: *point,
                    program,
                    runs: repeat - done,
                }),
                Err(reasons) => {
                    self.swept.entry(*point).or_default().given_up = Some(GivenUp::Refused { reasons });
                }
            }
        }
        {
            let (state, tried, ledger) = (self.state, &self.tried, self.ledger);
            let race = Race {
                runners: self.runners,
                workshop: self.workshop,
                pace: None,
                told: &|done, what| {
                    let part = percent(SEARCHED, 100, done, all.len());
                    self.progress
                        .tell(part, &format!("all combinations, {done} of {}: {what}", all.len()));
                },
                save: &|swept| save(state, tried, swept, ledger),
            };
            race.run(queue, &mut self.swept)?;
        }
        // The fastest first, until one computes the same.
        let best = loop {
            let now = times(&self.swept);
            let order = ranked(&all, &now);
            let right = order.iter().copied().filter(|point| !is_wrong(&self.swept, *point));
            let finalists: Vec<Point> = right.take(FINALISTS).collect();
            let Some(first) = finalists.first().copied() else {
                break None;
            };
            let is_open = |point: &Point| self.swept.get(point).is_some_and(|tried| tried.agreement.is_none());
            if !is_open(&first) {
                break Some(first);
            }
            let open: Vec<Point> = finalists.into_iter().filter(is_open).collect();
            if self.known(first) {
                self.save()?;
                continue;
            }
            self.progress.tell(
                99,
                "comparing the fastest of all combinations with the program as it is",
            );
            let checked = self.check(Stage::Sweep, &open, &reference.captured)?;
            for (point, checked) in checked {
                self.swept.entry(point).or_default().compared(checked);
            }
            self.save()?;
        };
        // What measuring all points takes; what follows isn't needed for that.
        let cost = self.ledger.cost(Stage::Sweep);
        let again = self.again(best, found)?;
        let now = times(&again);
        let setup = self.ledger.cost(Stage::Setup);
        let whole = setup.plus(cost);
        Ok(Swept {
            points: times(&self.swept).len(),
            seconds: whole.seconds,
            cost,
            share: Share::of(setup.plus(self.ledger.cost(Stage::Search)), whole),
            best: best.map(|point| point.to_string()),
            best_ms: best.and_then(|point| now.get(&point).copied()),
            found_ms: found.and_then(|point| now.get(&point).copied()),
            excess: None,
            times_ms: all_times(&self.swept),
        }
        .with_excess())
    }

    /// Takes over what the search has found out when it compared the point. It counts as time that this takes, too: whoever measures all
    /// points without a search has to compare the fastest.
    fn known(&mut self, point: Point) -> bool {
        let Some(tried) = self.tried.get(&point).filter(|tried| tried.agreement.is_some()) else {
            return false;
        };
        let swept = self.swept.entry(point).or_default();
        swept.agreement = tried.agreement.clone();
        swept.device_launches = tried.device_launches;
        swept.kernels = tried.kernels.clone();
        swept.compared_seconds = tried.compared_seconds;
        let run_seconds = tried.compared_seconds.unwrap_or_default();
        let cost = Cost {
            seconds: run_seconds / self.runners.len().max(1) as f64,
            runs: 1,
            run_seconds,
            ..Cost::default()
        };
        self.ledger.shared(Stage::Sweep, cost);
        true
    }

    /// Runs the best point and the one that the search has found again, in turn. Of many points whose times vary, the one that
    /// seems to be the fastest has been lucky, too: to compare another one with the times by which it was chosen would be unfair.
    fn again(&mut self, best: Option<Point>, found: Option<Point>) -> Result<Tries, String> {
        let points: Vec<Point> = best.into_iter().chain(found).collect();
        if best == found {
            let known = self.swept.iter().filter(|(point, _)| points.contains(point));
            return Ok(known.map(|(point, tried)| (*point, tried.clone())).collect());
        }
        let mut programs = Vec::new();
        for point in points {
            if let Ok(program) = self.order(Stage::Sweep, point, false, false)? {
                programs.push((point, program));
            }
        }
        let mut queue = VecDeque::new();
        for _ in 0..AGAIN * self.tuning.request.repeat {
            queue.extend(programs.iter().map(|(point, program)| Entry {
                point: *point,
                program: *program,
                runs: 1,
            }));
        }
        let race = Race {
            runners: self.runners,
            workshop: self.workshop,
            pace: None,
            told: &|_, what| {
                self.progress
                    .tell(99, &format!("the fastest and what was found, again: {what}"))
            },
            save: &|_| Ok(()),
        };
        let mut again = Tries::new();
        race.run(queue, &mut again)?;
        Ok(again)
    }
}

/// All runs of each point that is in the race.
fn all_times(swept: &Tries) -> BTreeMap<String, Vec<f64>> {
    let right = swept.iter().filter(|(_, tried)| tried.given_up.is_none());
    right
        .map(|(point, tried)| (point.to_string(), tried.times_ms.clone()))
        .collect()
}
