//! Keeps what is no message away from the transport, which stops reading at the first one that it doesn't understand.

use std::time::{Duration, Instant};

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream};
use tower_lsp_server::jsonrpc::{Request, Response};

/// Longer messages end the connection: no editor sends them.
const MAX_BYTES: usize = 1 << 30;

/// How often is looked whether it was.
const POLL: Duration = Duration::from_millis(10);

/// How long a message waits for the answer to the one before it, and the end for what is still to be answered.
pub const PATIENCE: Duration = Duration::from_secs(2);

/// How far the server is.
pub trait Progress {
    /// `initialize` was answered.
    fn is_initialized(&self) -> bool;
    /// `shutdown` was answered.
    fn is_shut_down(&self) -> bool;
}

/// Passes on the messages of `input` until it ends. The transport refuses what comes before `initialize` was answered, and stops at
/// `exit`, whatever is still to be answered: so what a client sends behind `initialize` and behind `shutdown` without waiting is kept
/// until these were answered. Has to run on the transport's task, which then has done all that belongs to an answer.
pub async fn pass(input: impl AsyncRead + Unpin, mut output: DuplexStream, progress: &impl Progress) {
    let mut initializing = false;
    let mut shutting_down = false;
    let mut input = BufReader::new(input);
    while let Some(length) = length(&mut input).await {
        let mut body = Vec::new();
        let read = (&mut input).take(length as u64).read_to_end(&mut body).await;
        if !read.is_ok_and(|read| read == length) {
            return;
        }
        if initializing {
            wait_for(|| progress.is_initialized()).await;
            initializing = false;
        }
        let method = serde_json::from_slice::<Request>(&body).ok();
        match method.as_ref().map(Request::method) {
            Some("initialize") => initializing = true,
            Some("shutdown") => shutting_down = true,
            Some("exit") if shutting_down => {
                wait_for(|| progress.is_shut_down()).await;
                // The answer is on its way to the client.
                tokio::time::sleep(POLL).await;
            }
            _ => {}
        }
        if !is_message(&body) {
            eprintln!("gridfuse: the client sent {length} bytes that are no JSON-RPC message");
            continue;
        }
        let header = format!("Content-Length: {length}\r\n\r\n");
        if output.write_all(header.as_bytes()).await.is_err() || output.write_all(&body).await.is_err() {
            return;
        }
    }
}

async fn wait_for(done: impl Fn() -> bool) {
    let start = Instant::now();
    while !done() && start.elapsed() < PATIENCE {
        tokio::time::sleep(POLL).await;
    }
}

/// Reads a header, and skips what is none; the length of the body, or `None` at the end.
async fn length(input: &mut (impl AsyncBufReadExt + Unpin)) -> Option<usize> {
    let mut found = None;
    let mut line = Vec::new();
    loop {
        line.clear();
        if input.read_until(b'\n', &mut line).await.ok()? == 0 {
            return None;
        }
        let text = line.trim_ascii();
        if text.is_empty() {
            match found {
                Some(length) if length <= MAX_BYTES => return Some(length),
                Some(_) => return None,
                None => continue,
            }
        }
        let text = String::from_utf8_lossy(text);
        if let Some((name, value)) = text.split_once(':')
            && name.trim().eq_ignore_ascii_case("content-length")
        {
            found = value.trim().parse().ok();
        }
    }
}

fn is_message(body: &[u8]) -> bool {
    serde_json::from_slice::<Request>(body).is_ok() || serde_json::from_slice::<Response>(body).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Done;

    impl Progress for Done {
        fn is_initialized(&self) -> bool {
            true
        }

        fn is_shut_down(&self) -> bool {
            true
        }
    }

    #[test]
    fn only_messages_pass() {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let framed = |body: &str| format!("Content-Length: {}\r\n\r\n{body}", body.len());
        let good = [
            r#"{"jsonrpc":"2.0","method":"a"}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":null}"#,
        ];
        let bad = ["{]}", "[]", "\"x\"", "", "7", r#"{"jsonrpc":"1.0"}"#];
        let mut input = "noise\r\n\r\n".to_string();
        for message in good {
            for garbage in bad {
                input += &framed(garbage);
            }
            input += &format!("content-length:{}\r\nX: y\r\n\r\n{message}", message.len());
        }
        input += "Content-Length: 99\r\n\r\ncut";
        let passed = runtime.map(|runtime| {
            runtime.block_on(async {
                let (to, mut from) = tokio::io::duplex(1 << 16);
                pass(input.as_bytes(), to, &Done).await;
                let mut passed = String::new();
                let _ = from.read_to_string(&mut passed).await;
                passed
            })
        });
        assert_eq!(passed.unwrap_or_default(), good.map(framed).concat());
    }
}
