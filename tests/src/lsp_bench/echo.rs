//! A server that does nothing: what it takes to ask it is the client's own share of a measurement.

use std::io::{self, BufReader, Write};

use serde_json::{Value, json};

use crate::lsp_client::read_body;

/// Answers each request with null and each change of a document with no diagnostics, until standard input ends.
///
/// # Errors
/// When what comes in isn't the protocol, or nobody reads the answers.
pub fn serve() -> anyhow::Result<()> {
    let mut input = BufReader::new(io::stdin().lock());
    let mut output = io::stdout().lock();
    while let Some(body) = read_body(&mut input).map_err(anyhow::Error::msg)? {
        let message: Value = serde_json::from_slice(&body)?;
        let answer = match (message.get("id"), message["method"].as_str()) {
            (Some(id), Some("initialize")) => {
                let capabilities = json!({ "positionEncoding": "utf-8", "hoverProvider": true });
                json!({ "jsonrpc": "2.0", "id": id, "result": { "capabilities": capabilities } })
            }
            (Some(id), Some(_)) => json!({ "jsonrpc": "2.0", "id": id, "result": null }),
            (None, Some("textDocument/didOpen" | "textDocument/didChange")) => {
                let document = &message["params"]["textDocument"];
                let params = json!({ "uri": document["uri"], "version": document["version"], "diagnostics": [] });
                json!({ "jsonrpc": "2.0", "method": "textDocument/publishDiagnostics", "params": params })
            }
            (None, Some("exit")) => break,
            _ => continue,
        };
        let body = answer.to_string();
        write!(output, "Content-Length: {}\r\n\r\n{body}", body.len())?;
        output.flush()?;
    }
    Ok(())
}
