//! How servers are started. Each start has directories of its own for what a server keeps, so that each is a cold one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::json;
use tempfile::TempDir;

use super::inputs::Prepared;
use super::record::Server;
use crate::editors::clangd;
use crate::nvcc::Nvcc;
use crate::workspace;

/// A program that can be started.
pub struct Program {
    /// What the tables call it.
    pub name: String,
    words: Vec<String>,
    /// What clangd has to know of CUDA.
    flags: Option<Vec<String>>,
    /// Where all starts keep what they keep.
    kept: TempDir,
}

impl Program {
    /// `gridfuse`, `clangd`, or `name=command with arguments`; `gridfuse=…` and `clangd=…` name another program for the same.
    ///
    /// # Errors
    /// When it isn't there and can't be installed.
    pub fn parse(text: &str) -> Result<Program> {
        let (name, command) = match text.split_once('=') {
            Some((name, command)) => (name, Some(command)),
            None => (text, None),
        };
        let kept = tempfile::tempdir()?;
        let mut words: Vec<String> = command
            .unwrap_or_default()
            .split_whitespace()
            .map(str::to_owned)
            .collect();
        let mut flags = None;
        match (name, words.len()) {
            ("clangd", 0 | 1) => {
                if words.is_empty() {
                    words.push(clangd().map_err(anyhow::Error::msg)?.display().to_string());
                }
                words.push("--log=error".to_owned());
                let headers = kept.path().join("headers");
                fs::create_dir(&headers)?;
                // A header that the packages of CUDA leave out.
                fs::write(headers.join("curand_mtgp32_kernel.h"), "")?;
                let cuda = Nvcc::try_get().map_err(anyhow::Error::msg)?.root();
                flags = Some(vec![
                    "-xcuda".to_owned(),
                    "-std=c++17".to_owned(),
                    format!("--cuda-path={}", cuda.display()),
                    "--cuda-gpu-arch=sm_90".to_owned(),
                    "-fgpu-rdc".to_owned(),
                    format!("-I{}", cuda.join("include/cccl").display()),
                    format!("-I{}", headers.display()),
                ]);
            }
            ("gridfuse", 0 | 1) => {
                if words.is_empty() {
                    words.push(workspace::gridfuse_bin().display().to_string());
                }
                words.push("lsp".to_owned());
            }
            (_, 0) => bail!("`{text}`: expected gridfuse, clangd or NAME=COMMAND"),
            _ => {}
        }
        Ok(Program {
            name: name.to_owned(),
            words,
            flags,
            kept,
        })
    }

    /// What starts it for an input.
    ///
    /// # Errors
    /// When its directories can't be made.
    pub fn command(&self, input: &Prepared) -> Result<Command> {
        let here = self.kept.path().join("session");
        if here.exists() {
            fs::remove_dir_all(&here)?;
        }
        fs::create_dir(&here)?;
        let (program, arguments) = self.words.split_first().context("no command")?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env("XDG_CACHE_HOME", &here)
            .env("TMPDIR", &here);
        if let Some(flags) = &self.flags {
            write_commands(&here, input, flags)?;
            command.arg(format!("--compile-commands-dir={}", here.display()));
        }
        Ok(command)
    }

    /// What a report says of it.
    pub fn record(&self) -> Server {
        let name = |word: &String| match Path::new(word).file_name() {
            Some(name) if word.starts_with('/') => name.to_string_lossy().into_owned(),
            _ => word.clone(),
        };
        let mut words: Vec<String> = self.words.iter().map(name).collect();
        if let Some(flags) = &self.flags {
            words.push("--compile-commands-dir=…".to_owned());
            words.push("with".to_owned());
            words.extend(flags.iter().filter(|flag| !flag.contains('/')).cloned());
        }
        Server {
            name: self.name.clone(),
            version: self.version(),
            command: words.join(" "),
        }
    }

    fn version(&self) -> Option<String> {
        let output = Command::new(self.words.first()?)
            .arg("--version")
            .stdin(Stdio::null())
            .output()
            .ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let first = text.lines().next()?.trim();
        output.status.success().then(|| first.to_owned())
    }
}

/// A `compile_commands.json` outside of the workspace, which the other servers don't see.
fn write_commands(directory: &Path, input: &Prepared, flags: &[String]) -> Result<PathBuf> {
    let entry = |source: &PathBuf| {
        let mut arguments = vec!["clang++".to_owned()];
        arguments.extend(flags.iter().cloned());
        arguments.push("-c".to_owned());
        arguments.push(source.display().to_string());
        json!({ "directory": input.root, "file": source, "arguments": arguments })
    };
    let commands: Vec<_> = input.compiled.iter().map(entry).collect();
    let path = directory.join("compile_commands.json");
    fs::write(&path, serde_json::to_string(&commands)?)?;
    Ok(path)
}
