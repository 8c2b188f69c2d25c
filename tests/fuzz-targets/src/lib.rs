//! What a fuzzer feeds bytes to, and what has to hold then; a target panics where it doesn't.
//!
//! | target | what it does with the bytes |
//! |---|---|
//! | [`queries`] | a workspace of texts: every query of the analysis |
//! | [`edits`] | edits of a workspace: what is known afterwards is what is known of the same texts from scratch |
//! | [`offers`] | a workspace: what a rewrite's `check` offers `apply` does, and the result parses |
//! | [`transport`] | what a client sends: the server goes on, or ends when the client is gone |
//!
//! `README.md` beside the sources says how to run them.
#![allow(clippy::panic, reason = "a panic is how a target tells the fuzzer")]

pub mod edits;
pub mod facts;
pub mod offers;
pub mod queries;
pub mod replay;
pub mod transport;
pub mod workspace;

/// Syntax trees are walked recursively, as in the server, so that a target needs as much room as a thread of the server.
const STACK_BYTES: usize = 256 << 20;

/// Runs a target on a thread that has as much stack as one of the server's. Always the same thread: a new one for each input would cost
/// more than most inputs.
fn with_stack(run: fn(&[u8]), bytes: &[u8]) {
    use std::sync::mpsc::{Receiver, Sender, channel};
    type Job = (fn(&[u8]), Vec<u8>);
    thread_local! {
        static WORKER: (Sender<Job>, Receiver<bool>) = {
            let (jobs, todo) = channel::<Job>();
            let (done, finished) = channel();
            let worker = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(move || {
                for (run, bytes) in todo {
                    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(&bytes)));
                    if done.send(result.is_ok()).is_err() {
                        return;
                    }
                }
            });
            assert!(worker.is_ok(), "no thread can be started");
            (jobs, finished)
        };
    }
    WORKER.with(|(jobs, finished)| {
        let sent = jobs.send((run, bytes.to_vec()));
        assert!(sent.is_ok() && finished.recv() == Ok(true), "the target panicked");
    });
}
