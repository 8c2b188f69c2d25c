//! Measuring all points: what the search is to be compared with.

use std::collections::VecDeque;

use super::cost::{Share, Stage};
use super::lab::{Checked, FINALISTS, Lab, is_wrong, times};
use super::race::{Entry, Race};
use super::report::Swept;
use super::search::ranked;
use super::space::{Point, Space};
use super::state::GivenUp;
use super::{Reference, SEARCHED, save};
use crate::measure::percent;

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
                    (self.progress)(part, &format!("all combinations, {done} of {}: {what}", all.len()));
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
            (self.progress)(
                99,
                "comparing the fastest of all combinations with the program as it is",
            );
            let checked = self.check(Stage::Sweep, &open, &reference.captured)?;
            for (point, Checked { verdict, launches }) in checked {
                let tried = self.swept.entry(point).or_default();
                tried.device_launches = launches;
                match verdict {
                    Ok(agreement) => tried.agreement = Some(agreement),
                    Err(given_up) => tried.given_up = Some(given_up),
                }
            }
            self.save()?;
        };
        let now = times(&self.swept);
        let setup = self.ledger.cost(Stage::Setup);
        let cost = self.ledger.cost(Stage::Sweep);
        let whole = setup.plus(cost);
        Ok(Swept {
            points: now.len(),
            seconds: whole.seconds,
            cost,
            share: Share::of(setup.plus(self.ledger.cost(Stage::Search)), whole),
            best: best.map(|point| point.to_string()),
            best_ms: best.and_then(|point| now.get(&point).copied()),
            found_ms: found.and_then(|point| now.get(&point).copied()),
            excess: None,
        }
        .with_excess())
    }
}
