//! What a client sends: whatever it is, the server neither panics nor hangs, and ends when the client is gone.
//!
//! Either the bytes as they come, or, behind a first byte [`SESSION`], a session: `initialize`, then one message for each line. The server
//! touches no disk and runs nothing.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use gridfuse::{Allowed, serve};

/// Begins a session.
pub const SESSION: u8 = b'#';

/// Longer inputs are cut.
const MAX_BYTES: usize = 8 << 10;

/// The server is to have ended then.
const PATIENCE: Duration = Duration::from_secs(20);

/// Somebody panicked, in whatever thread.
static PANICKED: AtomicBool = AtomicBool::new(false);

/// Runs the target.
pub fn run(bytes: &[u8]) {
    crate::with_stack(check, bytes);
}

fn check(bytes: &[u8]) {
    watch_for_panics();
    let bytes = bytes.get(..MAX_BYTES).unwrap_or(bytes);
    let input = match bytes.split_first() {
        Some((&SESSION, rest)) => session(rest),
        _ => bytes.to_vec(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .thread_stack_size(crate::STACK_BYTES)
        .build();
    let Ok(runtime) = runtime else { return };
    let allowed = Allowed {
        disk: false,
        run: false,
    };
    let ended = runtime.block_on(async {
        let serving = serve(input.as_slice(), tokio::io::sink(), allowed);
        tokio::time::timeout(PATIENCE, serving).await
    });
    assert!(ended.is_ok(), "the client is gone, and the server goes on");
    assert!(!PANICKED.swap(false, Ordering::SeqCst), "the server panicked");
}

fn session(lines: &[u8]) -> Vec<u8> {
    let initialize = br#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"capabilities":{}}}"#;
    let mut all = Vec::new();
    for message in [initialize.as_slice()]
        .into_iter()
        .chain(lines.split(|byte| *byte == b'\n'))
    {
        all.extend_from_slice(format!("Content-Length: {}\r\n\r\n", message.len()).as_bytes());
        all.extend_from_slice(message);
    }
    all
}

/// The server goes on after a panic in a query, and says so to its client; here it is a finding.
fn watch_for_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            PANICKED.store(true, Ordering::SeqCst);
            before(info);
        }));
    });
}
