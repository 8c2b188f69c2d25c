//! The edits that were offered, for the case that the client applies one: then it can be taken back as long as nobody has edited what it
//! changed.

use gridfuse_analysis::base::db::Db;

use crate::steps_back::Step;

/// No more than these are remembered.
const MOST: usize = 64;

/// Nor more bytes of text.
const MOST_BYTES: usize = 16 * 1024 * 1024;

/// Steps, the last one at the end.
#[derive(Clone, Debug, Default)]
pub struct Steps {
    offered: Vec<Step>,
    /// Those that the client has taken: they outlive those that it hasn't.
    applied: Vec<Step>,
}

impl Steps {
    /// Remembers what an edit would change.
    pub fn offer(&mut self, db: &dyn Db, step: Step) {
        self.note_applied(db);
        if !self.offered.contains(&step) && !self.applied.contains(&step) {
            self.offered.push(step);
        }
        forget_the_first(&mut self.offered);
    }

    /// What of it the client has applied by now, the last one at the end.
    pub fn applied(&mut self, db: &dyn Db) -> Vec<Step> {
        self.note_applied(db);
        self.applied.clone()
    }

    fn note_applied(&mut self, db: &dyn Db) {
        let (applied, offered) = self.offered.drain(..).partition(|step| step.was_last(db));
        self.offered = offered;
        self.applied.extend::<Vec<Step>>(applied);
        forget_the_first(&mut self.applied);
    }
}

fn forget_the_first(steps: &mut Vec<Step>) {
    let mut bytes = 0;
    let kept = steps.iter().rev().take(MOST).take_while(|step| {
        bytes += step.bytes();
        bytes <= MOST_BYTES
    });
    let more = steps.len() - kept.count();
    steps.drain(..more);
}
