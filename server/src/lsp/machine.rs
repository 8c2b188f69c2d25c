//! Whether this machine can measure. Asked for often, so looked up anew only after a while.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::measure::lacking::Lacking;

/// So long an answer counts: who installs a driver need not start the server again.
const FRESH: Duration = Duration::from_secs(5);

/// What was found out last, and when.
#[derive(Debug, Default)]
pub struct Machine(Mutex<Option<(Instant, Option<Lacking>)>>);

impl Machine {
    /// What is missing here; a few files are looked for, nothing is started.
    pub fn lacks(&self) -> Option<Lacking> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((when, lacking)) = *known
            && when.elapsed() < FRESH
        {
            return lacking;
        }
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let lacking = Lacking::here(&variable, &|path| path.exists());
        *known = Some((Instant::now(), lacking));
        lacking
    }
}
