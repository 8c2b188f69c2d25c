//! The language server: speaks the protocol on standard input and output.

mod actions;
mod answers;
mod build_errors;
mod capabilities;
mod commands;
mod config;
mod convert;
mod disk;
mod hierarchy;
mod hints;
mod hover;
mod input;
mod late;
mod lens;
mod machine;
mod markdown;
mod measure;
mod measured;
mod pages;
mod passage;
mod project;
mod publish;
mod server;
mod state;
mod steps;
mod trust;
mod tuned;

use std::future::Future;
use std::future::poll_fn;
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::task::Poll;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;
use tower_lsp_server::{LspService, Server};

use self::input::Progress;
use self::passage::Watched;
use self::server::Backend;
use self::state::State;

/// Requests that may be in flight before `$/cancelRequest` has to wait.
const CONCURRENCY: usize = 64;

/// Queries walk syntax trees recursively on the pool's threads. Only what is used is ever committed.
const STACK_BYTES: usize = 256 << 20;

/// Between reading a message and understanding it.
const PIPE_BYTES: usize = 64 << 10;

/// What a server may do beside answering.
#[derive(Clone, Copy, Debug)]
pub struct Allowed {
    /// Read files, and write pages of documentation for the client to show.
    pub disk: bool,
    /// Build and run programs where the client asks for it.
    pub run: bool,
}

/// Serves one client until it says `exit` or its input ends; `true`: it has said `shutdown` before.
pub async fn serve(input: impl AsyncRead + Unpin, output: impl AsyncWrite, allowed: Allowed) -> bool {
    serve_until(input, output, allowed, std::future::pending()).await
}

/// The same, but the input ends when `end` does, too.
async fn serve_until(
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite,
    allowed: Allowed,
    end: impl Future<Output = ()>,
) -> bool {
    let mut state = None;
    let (service, socket) = LspService::build(|client| {
        let shared = State::new(client, allowed);
        state = Some(shared.clone());
        Backend::new(shared)
    })
    .custom_method("window/workDoneProgress/cancel", Backend::cancel_progress)
    .custom_method(trust::GRANTED, Backend::trust)
    .finish();
    let (messages, passed) = tokio::io::duplex(PIPE_BYTES);
    // The service was built: there is one.
    let Some(state): Option<Arc<State>> = state else {
        return false;
    };
    let server = Server::new(passed, output, Watched::new(socket, state.progress_ends.clone()));
    let mut serve = pin!(server.concurrency_level(CONCURRENCY).serve(service));
    let mut pass = pin!(async {
        // Dropped when the end comes first: the transport sees the end of its input.
        tokio::select! {
            () = input::pass(input, messages, state.as_ref()) => {}
            () = end => {}
        }
        // The transport waits for the answers to all requests.
        measure::leave(&state);
        // The client is gone: nobody waits for what takes longer.
        tokio::time::sleep(input::PATIENCE).await;
    });
    // On one task: see `input::pass`.
    poll_fn(|context| match serve.as_mut().poll(context) {
        Poll::Pending => pass.as_mut().poll(context),
        ended => ended,
    })
    .await;
    state.is_shut_down()
}

/// Runs the server until the client says `exit` or closes the connection. Does not return while standard input is open.
pub fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_stack_size(STACK_BYTES)
        .enable_time()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("gridfuse: cannot start the server: {error}");
            return ExitCode::from(crate::cli::USAGE_OR_IO);
        }
    };
    let allowed = Allowed { disk: true, run: true };
    let asked = Arc::new(Notify::new());
    let by_signal = asked.clone();
    // Without the handler a signal ends the server, only less tidily.
    let _ = ctrlc::set_handler(move || by_signal.notify_one());
    let orderly = runtime.block_on(async {
        let end = asked.notified();
        serve_until(tokio::io::stdin(), tokio::io::stdout(), allowed, end).await
    });
    // A thread may still wait for standard input; the runtime would wait for that thread.
    runtime.shutdown_background();
    if orderly { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
