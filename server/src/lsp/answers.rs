//! What the editor waits for comes before what was found on disk: a workspace's files, once in the database, interrupt every query, and
//! are looked at by the next one. So they wait until the open documents have their diagnostics and requests their answers.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

/// No longer than this does anything wait: an editor that asks without a pause must not keep the workspace out.
const MOST_WAIT: Duration = Duration::from_secs(2);

/// What is still to be answered.
pub struct Answers {
    /// Queries that run.
    running: watch::Sender<usize>,
    /// The last change, by number, whose diagnostics the client has.
    published: watch::Sender<u64>,
}

/// A query runs as long as this lives.
pub struct RunningQuery<'a>(&'a Answers);

impl Drop for RunningQuery<'_> {
    fn drop(&mut self) {
        self.0
            .running
            .send_modify(|running| *running = running.saturating_sub(1));
    }
}

impl Answers {
    /// Nothing was asked, nothing published.
    pub fn new() -> Self {
        Answers {
            running: watch::Sender::new(0),
            published: watch::Sender::new(0),
        }
    }

    /// Counts a query.
    pub fn query(&self) -> RunningQuery<'_> {
        self.running.send_modify(|running| *running += 1);
        RunningQuery(self)
    }

    /// How many queries run.
    pub fn running(&self) -> watch::Receiver<usize> {
        self.running.subscribe()
    }

    /// Notes that all open documents have the diagnostics of their texts after this change, or those of one were asked for.
    pub fn published(&self, change: u64) {
        self.published.send_modify(|last| *last = change.max(*last));
    }

    /// Waits until no query runs and the diagnostics of `change` are published, or were asked for; for two seconds at most.
    pub async fn wait(&self, change: u64) {
        let (mut running, mut published) = (self.running.subscribe(), self.published.subscribe());
        let calm = async {
            // The senders live as long as `self`: there is no error.
            let _ = published.wait_for(|last| *last >= change).await;
            let _ = running.wait_for(|running| *running == 0).await;
        };
        // Late is as good as calm.
        let _ = timeout(MOST_WAIT, calm).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// Starts to wait in a paused clock, in which time passes only when nothing else can be done.
    fn waiting(answers: &Arc<Answers>, change: u64) -> (Arc<AtomicBool>, tokio::task::JoinHandle<()>) {
        let done = Arc::new(AtomicBool::new(false));
        let (answers, flag) = (answers.clone(), done.clone());
        let task = tokio::spawn(async move {
            answers.wait(change).await;
            flag.store(true, Ordering::Relaxed);
        });
        (done, task)
    }

    async fn settle() {
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_asked_is_calm() {
        let begin = tokio::time::Instant::now();
        Answers::new().wait(0).await;
        assert_eq!(begin.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn diagnostics_and_queries_come_first() {
        let answers = Arc::new(Answers::new());
        let (done, task) = waiting(&answers, 2);
        settle().await;
        answers.published(1);
        settle().await;
        assert!(!done.load(Ordering::Relaxed), "the second change isn't published");
        let query = answers.query();
        answers.published(2);
        settle().await;
        assert!(!done.load(Ordering::Relaxed), "a query runs");
        drop(query);
        let begin = tokio::time::Instant::now();
        task.await.ok();
        assert!(done.load(Ordering::Relaxed));
        assert!(begin.elapsed() < MOST_WAIT);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_ever() {
        let answers = Answers::new();
        let begin = tokio::time::Instant::now();
        let _query = answers.query();
        answers.wait(0).await;
        assert!(begin.elapsed() >= MOST_WAIT);
    }
}
