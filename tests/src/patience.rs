//! How long tests wait: for what has to come, and not for a time.

use std::time::{Duration, Instant};

/// How long a test waits for what has to come. Only a test that fails waits so long, so it is enough for a machine that does much else.
/// What tests start that would never end by itself sleeps for longer: a wait for its end that is no more than a wait fails.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// The variable by which tests in editors are told of [`PATIENCE`], in milliseconds.
pub const VARIABLE: &str = "GRIDFUSE_TEST_PATIENCE";

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(10);

/// Looks until there is something; `story` says how things stand when there never is.
///
/// # Panics
/// When there never is.
#[track_caller]
pub fn wait_for<T>(story: impl Fn() -> String, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        #[allow(clippy::panic, reason = "it's for tests")]
        if Instant::now() > deadline {
            panic!("waited in vain for {PATIENCE:?}: {}", story());
        }
        std::thread::sleep(PAUSE);
    }
}

/// Looks until the condition holds: `wait_until("the program runs", || …)`.
///
/// # Panics
/// When it never does.
#[track_caller]
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    wait_for(|| what.to_owned(), || condition().then_some(()));
}
