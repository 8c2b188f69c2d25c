//! Building and running on another machine, through a command that connects its input and output with a shell there: `ssh host`,
//! `srun --gpus=1`.
//!
//! All goes through one connection, to a small driver for `sh` that is sent first ([`DRIVER`]): nothing has to be installed there. The
//! driver lives as long as its input is open: when this process ends, however it does, the programs there end and their files go.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::process::{self, Finished, MOST_PRINTED};

/// The far end.
const DRIVER: &str = include_str!("driver.sh");

/// What is kept of the memory of programs for a comparison: all of it comes over the network. Of the rest, hashes are compared.
const MOST_CAPTURED: &str = "67108864";

/// So long the driver may take to clean up.
const PATIENCE: Duration = Duration::from_secs(10);

/// A connection to another machine.
pub struct Remote {
    /// The command line that connects.
    pub line: String,
    /// Its processor cores.
    pub cores: usize,
    /// Its CUDA_VISIBLE_DEVICES.
    pub visible_devices: String,
    /// The compiler there, as soon as it's known.
    pub nvcc: Mutex<Option<PathBuf>>,
    /// The directory here whose files have counterparts there.
    here: String,
    /// That directory there.
    there: String,
    errors: PathBuf,
    wire: Mutex<Wire>,
    child: Child,
    next: AtomicU64,
}

struct Wire {
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Remote {
    /// Connects. `scratch`: the directory whose files are sent there. An error is a sentence that says what to do.
    pub fn connect(line: &str, scratch: &Path) -> Result<Remote, String> {
        let here = scratch.to_str().ok_or_else(|| {
            format!(
                "{} has a name that no other machine would understand",
                scratch.display()
            )
        })?;
        let errors = scratch.join("runner-errors.txt");
        let mut command = connecting(line)?;
        process::own_group(&mut command);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(&errors).map_err(|error| format!("cannot write {}: {error}", errors.display()))?);
        let mut child = process::start_session(&mut command)
            .map_err(|error| format!("the runner `{line}` cannot be started: {error}"))?;
        let (Some(mut input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("internal error: the runner has no input; please report it".to_owned());
        };
        // A runner that doesn't read has failed, and says why.
        let _ = input.write_all(DRIVER.as_bytes()).and_then(|()| input.flush());
        let mut output = BufReader::new(output);
        let mut said = String::new();
        while said != "gridfuse-ready" {
            match text_line(&mut output) {
                Ok(line) => said = line,
                Err(_) => {
                    drop(input);
                    process::end_session(&mut child, PATIENCE);
                    return Err(unreachable(line, &errors));
                }
            }
        }
        let mut next = || text_line(&mut output).unwrap_or_default();
        let (there, cores, visible_devices) = (next(), next(), next());
        if !there.starts_with('/') {
            process::end_session(&mut child, PATIENCE);
            return Err(unreachable(line, &errors));
        }
        process::connected(&child);
        Ok(Remote {
            line: line.to_owned(),
            cores: cores.parse().unwrap_or(1),
            visible_devices,
            nvcc: Mutex::new(None),
            here: here.to_owned(),
            there,
            errors,
            wire: Mutex::new(Wire {
                input: Some(input),
                output,
            }),
            child,
            next: AtomicU64::new(0),
        })
    }

    /// Looks for the compiler there; `given`: where the user says that it is. The second: directories with its libraries.
    pub fn find_nvcc(&self, given: Option<&Path>) -> Result<(PathBuf, Vec<PathBuf>), String> {
        let wanted = given.map_or(Ok(String::new()), |given| self.text(given.as_os_str()));
        let answer = wanted.and_then(|wanted| {
            self.ask(|wire| {
                wire.say(&format!("nvcc {wanted}"))?;
                let nvcc = wire.line()?;
                let mut libraries = Vec::new();
                loop {
                    match wire.line()? {
                        line if line == "end" => return Ok((nvcc, libraries)),
                        line => libraries.push(PathBuf::from(line)),
                    }
                }
            })
        });
        let (nvcc, libraries) = answer.map_err(|error| self.broken(&error))?;
        if nvcc.is_empty() {
            let line = &self.line;
            return Err(match given {
                Some(given) => format!("there is no compiler at {} where `{line}` leads", given.display()),
                None => format!(
                    "nvcc was not found where `{line}` leads: load its module there, put it on the PATH of shells without a terminal, \
                     or say --nvcc FILE"
                ),
            });
        }
        let nvcc = PathBuf::from(nvcc);
        *self.nvcc.lock().unwrap_or_else(PoisonError::into_inner) = Some(nvcc.clone());
        Ok((nvcc, libraries))
    }

    /// Sends a file, or a directory with all that is in it.
    pub fn send(&self, path: &Path) -> io::Result<()> {
        let mut files = Vec::new();
        collect(path, &mut files)?;
        for file in files {
            self.send_file(&file, &file)?;
        }
        Ok(())
    }

    /// Sends a file to the counterpart of `to`.
    pub fn send_file(&self, from: &Path, to: &Path) -> io::Result<()> {
        let to = self.text(to.as_os_str())?;
        if to.contains(['\n', '\\']) || to.trim() != to {
            let message = format!("{} has a name that can't be sent", from.display());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let mut file = File::open(from)?;
        let bytes = file.metadata()?.len();
        let mode = if executable(from) { "700" } else { "600" };
        self.ask(|wire| {
            wire.say(&format!("file {mode} {bytes} {to}"))?;
            wire.copy(&mut file, bytes)
        })
    }

    /// Runs a command to its end, or kills it and all that it started after `limit`. Its arguments, its environment and its directory
    /// may name files below the scratch directory; `fetch`: those come back afterwards, where they are there.
    pub fn run(&self, command: &Command, limit: Duration, fetch: &[&Path]) -> io::Result<Finished> {
        let script = self.script(command, fetch)?;
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let begin = Instant::now();
        self.ask(|wire| {
            let seconds = limit.as_secs() + 60;
            wire.say(&format!("run {number} {seconds} {}", script.len()))?;
            wire.write(script.as_bytes())?;
            wire.line()
        })?;
        let mut pause = Duration::from_millis(2);
        let mut killed = None;
        let status = loop {
            let answer = self.ask(|wire| {
                wire.say(&format!("poll {number}"))?;
                wire.line()
            })?;
            if let Some(status) = answer.strip_prefix("ended ") {
                break status.trim().parse::<i32>().map_err(io::Error::other)?;
            }
            if process::given_up() {
                return Err(io::Error::new(io::ErrorKind::Interrupted, "given up"));
            }
            let over = begin.elapsed() > limit;
            // It may not have had a process group yet.
            if over && killed.is_none_or(|at: Instant| at.elapsed() > Duration::from_secs(1)) {
                killed = Some(Instant::now());
                self.ask(|wire| {
                    wire.say(&format!("kill {number}"))?;
                    wire.line()
                })?;
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(50));
        };
        let printed = |name: &str| {
            let bytes = self.get(&format!("{}/{name}.{number}", self.there), MOST_PRINTED)?;
            let text = String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned();
            // The user knows the directory by the name that it has here.
            io::Result::Ok(text.replace(&self.there, &self.here))
        };
        let (stdout, stderr) = (printed("out")?, printed("err")?);
        for path in fetch {
            if let Some(bytes) = self.get(&self.text(path.as_os_str())?, u64::MAX >> 1)? {
                std::fs::write(path, bytes)?;
            }
        }
        Ok(Finished {
            status: killed.is_none().then(|| exit_status(status)),
            stdout,
            stderr,
        })
    }

    /// A file there exists.
    pub fn is_file(&self, path: &Path) -> bool {
        let path = self.text(path.as_os_str());
        path.and_then(|path| self.get(&path, 0))
            .is_ok_and(|bytes| bytes.is_some())
    }

    fn get(&self, path: &str, most: u64) -> io::Result<Option<Vec<u8>>> {
        self.ask(|wire| {
            wire.say(&format!("get {most} {path}"))?;
            let answer = wire.line()?;
            let bytes = answer
                .strip_prefix("data ")
                .ok_or_else(|| io::Error::other(answer.clone()))?;
            if bytes == "-" {
                return Ok(None);
            }
            let count: u64 = bytes.trim().parse().map_err(io::Error::other)?;
            let mut data = Vec::new();
            (&mut wire.output).take(count).read_to_end(&mut data)?;
            if data.len() as u64 != count {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            wire.line()?;
            Ok(Some(data))
        })
    }

    /// One request after the other.
    fn ask<T>(&self, request: impl FnOnce(&mut Wire) -> io::Result<T>) -> io::Result<T> {
        let mut wire = self.wire.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = request(&mut wire);
        if answer.is_err() {
            // What comes next would be taken for the answer to something else.
            wire.input = None;
        }
        drop(wire);
        answer.map_err(|error| match process::given_up() {
            true => io::Error::new(io::ErrorKind::Interrupted, "given up"),
            false => io::Error::new(error.kind(), self.broken(&error)),
        })
    }

    fn broken(&self, error: &io::Error) -> String {
        let said = last_words(&self.errors);
        match said.is_empty() {
            true => format!("the connection through `{}` has broken off: {error}", self.line),
            false => format!("the connection through `{}` has broken off: {said}", self.line),
        }
    }

    /// A word as it is there.
    fn text(&self, word: &OsStr) -> io::Result<String> {
        let word = word.to_str().ok_or_else(|| {
            let message = format!("{} isn't text and can't be sent", word.to_string_lossy());
            io::Error::new(io::ErrorKind::InvalidInput, message)
        })?;
        Ok(word.replace(&self.here, &self.there))
    }

    /// A command as a script for `sh`.
    fn script(&self, command: &Command, fetch: &[&Path]) -> io::Result<String> {
        let word = |word: &OsStr| Ok::<String, io::Error>(quoted(&self.text(word)?));
        let mut script = String::new();
        for path in fetch {
            if let Some(directory) = path.parent() {
                // Nothing may have been sent there.
                script += &format!("mkdir -p {}\n", word(directory.as_os_str())?);
            }
            // What an earlier program wrote must not count for one that writes nothing.
            script += &format!("rm -f {}\n", word(path.as_os_str())?);
        }
        if let Some(directory) = command.get_current_dir() {
            let directory_there = self.text(directory.as_os_str())?;
            if directory_there.starts_with(&self.there) {
                // There may be nothing in it.
                script += &format!("mkdir -p {}\n", quoted(&directory_there));
            }
            // The user's own directory, where both machines share it; what the program may want to read is there.
            script += &format!(
                "cd {} 2>/dev/null || cd {}\n",
                word(directory.as_os_str())?,
                quoted(&self.there)
            );
        } else {
            script += &format!("cd {}\n", quoted(&self.there));
        }
        let nvcc = self.nvcc.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(directory) = nvcc.as_deref().and_then(Path::parent) {
            // Commands that build projects find the same nvcc.
            script += &format!("PATH={}:$PATH\nexport PATH\n", word(directory.as_os_str())?);
        }
        script += &format!(": \"${{GRIDFUSE_MEASURE_BYTES:={MOST_CAPTURED}}}\"\nexport GRIDFUSE_MEASURE_BYTES\n");
        for (name, value) in command.get_envs() {
            if name == "PATH" {
                continue;
            }
            let name = self.text(name)?;
            match value {
                Some(value) => script += &format!("export {name}={}\n", word(value)?),
                None => script += &format!("unset {name}\n"),
            }
        }
        script += &format!("exec {}", word(command.get_program())?);
        for argument in command.get_args() {
            script.push(' ');
            script += &word(argument)?;
        }
        script.push('\n');
        Ok(script)
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        // The driver ends with its input.
        self.wire.lock().unwrap_or_else(PoisonError::into_inner).input = None;
        process::end_session(&mut self.child, PATIENCE);
    }
}

impl Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let input = self.input.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        input.write_all(bytes)
    }

    /// So many bytes of a file: the other end waits for all of them.
    fn copy(&mut self, file: &mut File, bytes: u64) -> io::Result<()> {
        let input = self.input.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        match io::copy(&mut file.take(bytes), input)? == bytes {
            true => Ok(()),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    fn say(&mut self, line: &str) -> io::Result<()> {
        self.write(format!("{line}\n").as_bytes())
    }

    fn line(&mut self) -> io::Result<String> {
        text_line(&mut self.output)
    }
}

fn text_line(output: &mut BufReader<ChildStdout>) -> io::Result<String> {
    let mut line = Vec::new();
    if output.read_until(b'\n', &mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(String::from_utf8_lossy(&line).trim_end().to_owned())
}

/// The command that connects, with the driver's beginning at its end.
fn connecting(line: &str) -> Result<Command, String> {
    let words = shlex::split(line).filter(|words| !words.is_empty());
    let Some(words) = words else {
        return Err(format!(
            "the runner `{line}` is no command: write it like `ssh host` or `srun --gpus=1`"
        ));
    };
    let Some((program, rest)) = words.split_first() else {
        return Err(format!("the runner `{line}` is no command"));
    };
    let name = Path::new(program)
        .file_stem()
        .and_then(OsStr::to_str)
        .unwrap_or_default();
    let begin = format!("eval \"$(head -c {})\"", DRIVER.len());
    let mut command = Command::new(program);
    match name {
        "ssh" => {
            // Nobody is there who could type a password.
            let options = [
                "BatchMode=yes",
                "ConnectTimeout=20",
                "ServerAliveInterval=15",
                "ServerAliveCountMax=4",
            ];
            command.arg("-T").args(options.iter().flat_map(|option| ["-o", option]));
            // The shell there, whichever it is, takes it apart again.
            command.args(rest).arg(format!("exec sh -c '{begin}'"));
        }
        "srun" => {
            command
                .args(["--ntasks=1", "--unbuffered"])
                .args(rest)
                .args(["sh", "-c", &begin]);
        }
        _ => {
            command.args(rest).args(["sh", "-c", &begin]);
        }
    }
    Ok(command)
}

/// For `sh`.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// What a runner has said before it failed.
fn last_words(errors: &Path) -> String {
    let text = std::fs::read(errors).unwrap_or_default();
    let text = String::from_utf8_lossy(&text).into_owned();
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(8)..].join("\n")
}

fn unreachable(line: &str, errors: &Path) -> String {
    let said = last_words(errors);
    let advice = [
        (
            "Permission denied",
            "it has to let you in without a password: put your key there (`ssh-copy-id`), or into an agent",
        ),
        (
            "Host key verification failed",
            "connect once by hand, and accept its key",
        ),
        (
            "REMOTE HOST IDENTIFICATION HAS CHANGED",
            "its key has changed: find out why before you accept it",
        ),
        ("Could not resolve hostname", "is its name right?"),
        ("Connection refused", "no ssh server listens there"),
        ("timed out", "it does not answer: is it up, and does a VPN have to be?"),
    ];
    let advice = advice.iter().find(|(sign, _)| said.contains(sign));
    let advice = advice.map_or(String::new(), |(_, advice)| format!("\n{advice}"));
    match said.is_empty() {
        true => format!("the runner `{line}` leads nowhere: it ended without a word"),
        false => format!("the runner `{line}` leads nowhere: {said}{advice}"),
    }
}

/// All files at or below a path.
fn collect(path: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if !path.is_dir() {
        files.push(path.to_path_buf());
        return Ok(());
    }
    for entry in std::fs::read_dir(path)? {
        collect(&entry?.path(), files)?;
    }
    Ok(())
}

#[cfg(unix)]
fn executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|data| data.permissions().mode() & 0o100 != 0)
}

#[cfg(not(unix))]
fn executable(_: &Path) -> bool {
    true
}

/// What a shell says of a program: its exit code, or 128 and the signal that ended it.
#[cfg(unix)]
fn exit_status(status: i32) -> ExitStatus {
    use std::os::unix::process::ExitStatusExt;
    match status {
        129..=192 => ExitStatus::from_raw(status - 128),
        status => ExitStatus::from_raw((status & 0xff) << 8),
    }
}

#[cfg(windows)]
fn exit_status(status: i32) -> ExitStatus {
    use std::os::windows::process::ExitStatusExt;
    ExitStatus::from_raw(status as u32)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn connected<T>(test: impl FnOnce(&Remote, &Path) -> Result<T, String>) -> Result<T, String> {
        let scratch = tempfile::tempdir().map_err(|error| error.to_string())?;
        let remote = Remote::connect("env", scratch.path())?;
        test(&remote, scratch.path())
    }

    #[test]
    fn programs_run_and_leave_nothing() -> Result<(), String> {
        let text = |error: io::Error| error.to_string();
        let there = connected(|remote, scratch| {
            let file = scratch.join("a dir/it's.sh");
            std::fs::create_dir_all(scratch.join("a dir")).map_err(text)?;
            std::fs::write(
                &file,
                "echo \"$1|$A\"; printf 'x\\000y' > \"$2\"; echo oops >&2; exit 3",
            )
            .map_err(text)?;
            remote.send(&scratch.join("a dir")).map_err(text)?;
            let out = scratch.join("out put");
            let mut command = Command::new("sh");
            command
                .arg(&file)
                .args(["a 'b'\n$c"])
                .arg(&out)
                .env("A", "b  c")
                .current_dir("/");
            let done = remote.run(&command, Duration::from_secs(300), &[&out]).map_err(text)?;
            assert_eq!(
                (done.stdout.as_str(), done.stderr.as_str()),
                ("a 'b'\n$c|b  c\n", "oops\n")
            );
            assert_eq!(done.status.and_then(|status| status.code()), Some(3));
            assert_eq!(std::fs::read(&out).map_err(text)?, b"x\0y");
            assert!(remote.is_file(&out) && !remote.is_file(&scratch.join("none")));
            let begin = Instant::now();
            let mut hangs = Command::new("sh");
            hangs.args(["-c", "sleep 600 & sleep 600"]);
            let done = remote.run(&hangs, Duration::from_millis(300), &[]).map_err(text)?;
            assert!(done.status.is_none() && begin.elapsed() < Duration::from_secs(300));
            let mut crashes = Command::new("sh");
            crashes.args(["-c", "kill -SEGV $$"]);
            let done = remote.run(&crashes, Duration::from_secs(300), &[]).map_err(text)?;
            use std::os::unix::process::ExitStatusExt;
            assert_eq!(done.status.and_then(|status| status.signal()), Some(11));
            Ok(PathBuf::from(&remote.there))
        })?;
        assert!(!there.exists(), "{} is left", there.display());
        Ok(())
    }

    #[test]
    fn what_leads_nowhere_is_said() {
        let scratch = tempfile::tempdir().map(|it| it.keep()).unwrap_or_default();
        for (line, part) in [
            ("", "is no command"),
            ("'", "is no command"),
            ("/no/such/program x", "cannot be started"),
            ("false", "ended without a word"),
            ("sh -c 'echo Permission denied >&2; exit 255'", "ssh-copy-id"),
        ] {
            let error = Remote::connect(line, &scratch).err().unwrap_or_default();
            assert!(error.contains(part), "{line}: {error}");
        }
        let _ = std::fs::remove_dir_all(scratch);
    }
}
