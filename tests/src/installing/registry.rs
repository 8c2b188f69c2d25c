//! A registry for npm that knows a few packages: so `npx` finds them as it would find published ones.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context, Result};
use serde_json::{Value, json};

/// A running registry.
pub struct Registry {
    /// Where it is.
    pub url: String,
}

/// A packed package.
struct Packed {
    manifest: Value,
    file: PathBuf,
}

impl Registry {
    /// Serves these packages until the process ends.
    pub fn of(packages: &[PathBuf]) -> Result<Registry> {
        let mut known = BTreeMap::new();
        for file in packages {
            let manifest = manifest(file)?;
            let name = manifest["name"].as_str().context("a package has no name")?.to_owned();
            let file = file.clone();
            known.insert(name, Packed { manifest, file });
        }
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let url = format!("http://{}", listener.local_addr()?);
        let (known, at) = (Arc::new(known), url.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (known, at) = (Arc::clone(&known), at.clone());
                // A client that goes away is nothing to talk about.
                std::thread::spawn(move || drop(answer(stream, &known, &at)));
            }
        });
        Ok(Registry { url })
    }
}

fn manifest(file: &Path) -> Result<Value> {
    let output = Command::new("tar")
        .arg("-xOzf")
        .arg(file)
        .arg("package/package.json")
        .output()?;
    serde_json::from_slice(&output.stdout).with_context(|| format!("{} has no manifest", file.display()))
}

fn answer(mut stream: TcpStream, known: &BTreeMap<String, Packed>, url: &str) -> Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let first = lines.next().context("nothing is asked")??;
    while lines.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
    let asked = first.split(' ').nth(1).unwrap_or_default().trim_start_matches('/');
    let asked = asked.replace("%2f", "/").replace("%2F", "/").replace("%40", "@");
    let file = known
        .values()
        .find(|packed| packed.file.file_name().is_some_and(|name| *name == *asked));
    let (status, kind, body) = match (known.get(&asked), file) {
        (Some(packed), _) => (
            "200 OK",
            "application/json",
            about(packed, url).to_string().into_bytes(),
        ),
        (None, Some(packed)) => ("200 OK", "application/octet-stream", std::fs::read(&packed.file)?),
        (None, None) => ("404 Not Found", "application/json", b"{}".to_vec()),
    };
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    )?;
    stream.write_all(&body)?;
    Ok(())
}

/// What a registry says of a package.
fn about(packed: &Packed, url: &str) -> Value {
    let version = packed.manifest["version"].as_str().unwrap_or_default();
    let file = packed.file.file_name().unwrap_or_default().to_string_lossy();
    let mut manifest = packed.manifest.clone();
    manifest["dist"] = json!({ "tarball": format!("{url}/{file}") });
    json!({ "name": packed.manifest["name"], "dist-tags": { "latest": version }, "versions": { version: manifest } })
}
