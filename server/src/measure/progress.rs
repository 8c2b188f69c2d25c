//! How far something is, told to whoever waits for it. Programs are built and run side by side, so that several threads report: here
//! their reports come into one order, in which the percentage never falls.

use std::sync::{Mutex, PoisonError};

/// Whoever is told.
type Tell<'a> = Box<dyn Fn(u8, &str) + Send + Sync + 'a>;

/// How reports are passed on; see [`Progress`].
pub struct Reports<'a> {
    /// The highest percentage that was told.
    furthest: Mutex<u8>,
    tell: Tell<'a>,
}

/// Is told how many percent are done, and what goes on.
pub type Progress<'a> = &'a Reports<'a>;

impl<'a> Reports<'a> {
    /// Passes reports on to `tell`, one at a time.
    pub fn new(tell: impl Fn(u8, &str) + Send + Sync + 'a) -> Self {
        Reports {
            furthest: Mutex::new(0),
            tell: Box::new(tell),
        }
    }

    /// Tells what goes on. A percentage below one that was told before is lifted to that.
    pub fn tell(&self, percent: u8, what: &str) {
        // Held until it was told: else another thread's report could come between.
        let mut furthest = self.furthest.lock().unwrap_or_else(PoisonError::into_inner);
        *furthest = percent.max(*furthest);
        (self.tell)(*furthest, what);
    }

    /// Tells of `all` equal steps between two percentages; `say` puts the number of those that are done into words.
    pub fn steps<S: Fn(usize) -> String>(&'a self, from: u8, to: u8, all: usize, say: S) -> Steps<'a, S> {
        Steps {
            progress: self,
            from,
            to,
            all,
            done: Mutex::new(0),
            say,
        }
    }
}

/// Steps that several threads do.
pub struct Steps<'a, S> {
    progress: Progress<'a>,
    from: u8,
    to: u8,
    all: usize,
    done: Mutex<usize>,
    say: S,
}

impl<S: Fn(usize) -> String> Steps<'_, S> {
    /// Tells that work on them begins.
    pub fn begin(&self) {
        self.tell(0);
    }

    /// Tells of one more that is done.
    pub fn one_done(&self) {
        self.tell(1);
    }

    fn tell(&self, more: usize) {
        // Counted and told under one lock: the words follow each other as the numbers do.
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        *done += more;
        let percent = percent(self.from, self.to, *done, self.all);
        self.progress.tell(percent, &(self.say)(*done));
    }
}

/// The percentage after `done` of `all` equal steps between two percentages.
pub fn percent(from: u8, to: u8, done: usize, all: usize) -> u8 {
    let part = usize::from(to.saturating_sub(from)) * done.min(all) / all.max(1);
    from.saturating_add(u8::try_from(part).unwrap_or(u8::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_that_end_at_once_are_told_in_order() {
        const THREADS: usize = 8;
        const EACH: usize = 64;
        let told: Mutex<Vec<(u8, usize)>> = Mutex::default();
        let reports = Reports::new(|percent, what: &str| {
            // Whoever was counted first may well be the last one here.
            std::thread::yield_now();
            let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
            told.push((percent, what.parse().unwrap_or(usize::MAX)));
        });
        let steps = reports.steps(5, 60, THREADS * EACH, |done| done.to_string());
        steps.begin();
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    for _ in 0..EACH {
                        steps.one_done();
                    }
                });
            }
        });
        let told = told.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(told.iter().map(|(_, done)| *done).eq(0..=THREADS * EACH), "{told:?}");
        assert!(
            told.is_sorted() && told.last().is_some_and(|(percent, _)| *percent == 60),
            "{told:?}"
        );
    }

    #[test]
    fn no_percentage_falls() {
        let told: Mutex<Vec<u8>> = Mutex::default();
        let reports = Reports::new(|percent, _: &str| {
            told.lock().unwrap_or_else(PoisonError::into_inner).push(percent);
        });
        for percent in [0, 32, 60, 46, 60, 0, 99] {
            reports.tell(percent, "");
        }
        let told = told.lock().unwrap_or_else(PoisonError::into_inner);
        assert_eq!(*told, [0, 32, 60, 60, 60, 60, 99]);
    }
}
