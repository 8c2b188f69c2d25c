//! What the server tells the client passes through here on its way out: answers and notifications come from two queues, and an
//! answer that has to follow a notification waits until that one was taken out of its queue.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use tokio::sync::Notify;
use tower_lsp_server::jsonrpc::Request;
use tower_lsp_server::{ClientSocket, Loopback};

use super::late::is_working;

/// A client that reads nothing any more doesn't care for the order.
const PATIENCE: Duration = Duration::from_secs(2);

/// Told of each end of a progress that is on its way.
#[derive(Debug, Default)]
pub struct ProgressEnds(Notify);

impl ProgressEnds {
    /// Waits until the end of a progress that was sent is on its way: what is answered from then on is behind it.
    pub async fn passed(&self) {
        let _ = tokio::time::timeout(PATIENCE, self.0.notified()).await;
    }
}

/// The client's socket, with an eye on what passes.
pub struct Watched {
    socket: ClientSocket,
    ends: Arc<ProgressEnds>,
}

impl Watched {
    /// Watches a socket.
    pub fn new(socket: ClientSocket, ends: Arc<ProgressEnds>) -> Self {
        Watched { socket, ends }
    }
}

impl Loopback for Watched {
    type RequestStream = Passage;
    type ResponseSink = <ClientSocket as Loopback>::ResponseSink;

    fn split(self) -> (Self::RequestStream, Self::ResponseSink) {
        let (messages, responses) = self.socket.split();
        let ends = self.ends;
        (Passage { messages, ends }, responses)
    }
}

/// Messages to the client, in the order in which they are written.
pub struct Passage {
    messages: <ClientSocket as Loopback>::RequestStream,
    ends: Arc<ProgressEnds>,
}

impl Stream for Passage {
    type Item = Request;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Request>> {
        let polled = Pin::new(&mut self.messages).poll_next(context);
        if let Poll::Ready(Some(message)) = &polled
            && message.method() == "$/progress"
            && message
                .params()
                .is_some_and(|params| params["value"]["kind"] == "end" && !is_working(&params["token"]))
        {
            // The transport asks for the next message when it has taken this one over.
            self.ends.0.notify_one();
        }
        polled
    }
}
