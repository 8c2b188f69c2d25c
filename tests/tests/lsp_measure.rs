//! Measuring from an editor, with a compiler and a GPU that are faked at the process boundary.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use gridfuse_tests::cli::{Directory, directory};
use gridfuse_tests::lsp_client::{Capabilities, Client, ResponseError, apply_workspace_edit, is_working, uri};
use gridfuse_tests::patience::{wait_for, wait_until};
use gridfuse_tests::processes;
use gridfuse_tests::workspace;
use serde_json::{Value, json};

struct Session {
    files: Directory,
    home: Directory,
    client: Client,
    path: PathBuf,
}

impl Session {
    fn new(fakes: &[(&str, &str)]) -> Session {
        let source = fs::read(workspace::root().join("tests/fixtures/measure/program.cu")).unwrap();
        Session::of(&source, &capabilities(), fakes)
    }

    fn of(source: &[u8], capabilities: &Capabilities, fakes: &[(&str, &str)]) -> Session {
        let files = directory(&[("program.cu", source)]);
        let home = Directory::new();
        fs::create_dir(home.file("bin")).unwrap();
        fs::create_dir(home.file("tmp")).unwrap();
        let fake = workspace::root().join("tests/fixtures/measure/fake_nvcc.sh");
        std::os::unix::fs::symlink(fake, home.file("bin/nvcc")).unwrap();
        // By this the server sees that there is a GPU; nobody runs it.
        fs::write(home.file("bin/nvidia-smi"), "").unwrap();
        let mut path = home.file("bin").into_os_string();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        let mut command = Command::new(workspace::gridfuse_bin());
        command
            .arg("lsp")
            .env("PATH", path)
            .env("XDG_CACHE_HOME", home.file("cache"))
            .env("XDG_STATE_HOME", home.file("state"))
            .env("TMPDIR", home.file("tmp"))
            .env("FAKE_PIDS", home.file("pids"))
            .envs(fakes.iter().copied());
        let mut client = Client::spawn_command(command);
        client.initialize(Some(files.path()), capabilities);
        let path = files.file("program.cu");
        client.open(&path, &files.read("program.cu"));
        Session {
            files,
            home,
            client,
            path,
        }
    }

    fn argument(&self) -> Value {
        json!({ "uri": uri(&self.path), "rewrites": ["aggregate-block"], "repeat": 2 })
    }

    /// Begins to measure, and waits until programs run. `FAKE_HANGS` keeps them running.
    fn begin(&mut self) -> (gridfuse_tests::lsp_client::RequestId, Value) {
        let params = json!({ "command": "gridfuse.measure", "arguments": [self.argument()] });
        let id = self.client.send_request("workspace/executeCommand", params);
        let running = self.client.wait_notification("$/progress", |progress| {
            progress["value"]["message"] == "running the original"
        });
        self.wait_for_program();
        (id, running["token"].clone())
    }

    /// A program has said that it runs.
    #[track_caller]
    fn wait_for_program(&self) {
        let pids = self.home.file("pids");
        wait_until("a program runs", || {
            fs::read_to_string(&pids).is_ok_and(|pids| pids.ends_with('\n'))
        });
    }

    /// No program that was started is left.
    #[track_caller]
    fn nothing_runs(&self) {
        let pids = fs::read_to_string(self.home.file("pids")).expect("a program has run");
        wait_until(&format!("nothing of {pids} is alive"), || {
            !pids.lines().any(processes::runs)
        });
    }

    /// No scratch file is left.
    #[track_caller]
    fn nothing_is_left(&self) {
        let left = || -> Vec<_> {
            let entries = fs::read_dir(self.home.file("tmp")).unwrap();
            entries.map(|entry| entry.unwrap().file_name()).collect()
        };
        wait_for(
            || format!("left behind: {:?}", left()),
            || left().is_empty().then_some(()),
        );
    }

    /// The server's process, or that of the measurement that it has started.
    fn process(&self, command: &str) -> u32 {
        let home = self.home.path().to_string_lossy().into_owned();
        let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
        processes
            .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
            .find(|pid| {
                let read = |name: &str| fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
                let words = read("cmdline");
                let mut words = words.split(|byte| *byte == 0);
                let is_ours = String::from_utf8_lossy(&read("environ")).contains(&home);
                is_ours && words.nth(1) == Some(command.as_bytes())
            })
            .unwrap_or_else(|| panic!("no process `gridfuse {command}`"))
    }

    fn kill(&self, command: &str) {
        self.signal(command, "KILL");
    }

    fn signal(&self, command: &str, signal: &str) {
        let pid = self.process(command).to_string();
        let sent = Command::new("kill").args(["-s", signal, &pid]).status().unwrap();
        assert!(sent.success());
    }
}

fn capabilities() -> Capabilities {
    Capabilities {
        extra: json!({ "workspace": { "executeCommand": { "dynamicRegistration": false } } }),
        ..Capabilities::default()
    }
}

fn execute(client: &mut Client, argument: Value) -> Result<Value, ResponseError> {
    let params = json!({ "command": "gridfuse.measure", "arguments": [argument], "workDoneToken": "mine" });
    client.try_request("workspace/executeCommand", params)
}

/// A server that was told whether the user trusts the workspace. Whatever its compiler and its runner are, they leave a trace.
fn in_workspace(options: Value) -> (Directory, Directory, Client, PathBuf) {
    let source = fs::read(workspace::root().join("tests/fixtures/measure/program.cu")).unwrap();
    let home = Directory::new();
    fs::create_dir(home.file("bin")).unwrap();
    let trace = format!("#!/bin/sh\necho \"$0\" >> {}\nexit 1\n", home.file("ran").display());
    for name in ["bin/nvcc", "bin/ssh", "bin/make"] {
        fs::write(home.file(name), &trace).unwrap();
        fs::set_permissions(home.file(name), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    let manifest = "[measure]\nrunner = 'ssh nowhere'\nbuild = 'make'\nprogram = 'a.out'\n";
    let command = json!([{ "directory": ".", "file": "program.cu", "command": "nvcc -rdc=true program.cu" }]);
    let files = directory(&[
        ("program.cu", &source),
        ("gridfuse.toml", manifest.as_bytes()),
        ("compile_commands.json", command.to_string().as_bytes()),
    ]);
    let mut server = Command::new(workspace::gridfuse_bin());
    let others = std::env::var("PATH").unwrap_or_default();
    server
        .arg("lsp")
        .env("PATH", format!("{}:{others}", home.file("bin").display()))
        .env("XDG_CACHE_HOME", home.file("cache"))
        .env("XDG_STATE_HOME", home.file("state"));
    let mut client = Client::spawn_command(server);
    client.initialize_with(Some(files.path()), &capabilities(), options);
    let path = files.file("program.cu");
    client.open(&path, &files.read("program.cu"));
    (files, home, client, path)
}

#[test]
fn nothing_is_run_because_a_file_is_opened() {
    let (_files, home, mut client, path) = in_workspace(Value::Null);
    client.diagnostics(&path);
    let launch = client.find(&path, "<<<") + 1;
    client.hover(&path, launch);
    for action in client.code_actions(&path, launch..launch, &[], &[]) {
        let _ = client.try_request("codeAction/resolve", action);
    }
    for lens in client.code_lenses(&path) {
        let _ = client.try_request("codeLens/resolve", lens);
    }
    client.inlay_hints(&path);
    for command in ["gridfuse.explain", "gridfuse.graph", "gridfuse.rewrite"] {
        let argument = json!({ "uri": uri(&path), "position": { "line": 0, "character": 0 }, "rewrites": "threshold" });
        let _ = client.try_request(
            "workspace/executeCommand",
            json!({ "command": command, "arguments": [argument] }),
        );
    }
    client.save(&path);
    client.close(&path);
    assert!(!home.file("ran").exists(), "{}", home.read("ran"));
    // Where the user asks for it, it is: the traces are no accident.
    client.open(&path, &fs::read_to_string(&path).unwrap());
    let failed = execute(&mut client, json!({ "uri": uri(&path) })).unwrap_err();
    assert!(home.file("ran").exists(), "nothing was run: {failed:?}");
    client.shutdown();
}

#[test]
fn nothing_is_run_in_a_workspace_that_is_not_trusted() {
    let (_files, home, mut client, path) = in_workspace(json!({ "workspaceTrusted": false }));
    for command in ["gridfuse.measure", "gridfuse.tune"] {
        let params = json!({ "command": command, "arguments": [{ "uri": uri(&path) }] });
        let refused = client.try_request("workspace/executeCommand", params).unwrap_err();
        assert!(refused.message.contains("isn't trusted"), "{refused:?}");
    }
    // A setting doesn't change it.
    client.notify(
        "workspace/didChangeConfiguration",
        json!({ "settings": { "gridfuse": { "workspaceTrusted": true } } }),
    );
    let refused = execute(&mut client, json!({ "uri": uri(&path) })).unwrap_err();
    assert!(refused.message.contains("isn't trusted"), "{refused:?}");
    assert!(!home.file("ran").exists());
    client.notify("gridfuse/workspaceTrusted", Value::Null);
    let failed = execute(&mut client, json!({ "uri": uri(&path) })).unwrap_err();
    assert!(home.file("ran").exists(), "nothing was run: {failed:?}");
    client.shutdown();
}

#[test]
fn a_terminated_server_takes_its_programs_along() {
    let mut session = Session::new(&[("FAKE_HANGS", "1")]);
    session.begin();
    session.signal("lsp", "TERM");
    session.nothing_runs();
    session.nothing_is_left();
}

#[test]
fn what_the_editor_shows_is_measured() {
    let mut session = Session::new(&[]);
    let path = session.path.clone();
    let edited = session.files.read("program.cu").replace("parent", "outer");
    session.client.change_full(&path, &edited);
    let mut argument = session.argument();
    argument["line"] = json!(edited.lines().position(|line| line.contains("child<<<")));
    argument["args"] = json!("one 'two three'");
    let report = execute(&mut session.client, argument).unwrap();
    assert_eq!(report["sites"][0]["kernel"], "outer", "{report:#}");
    assert_eq!(report["args"], json!(["one", "two three"]));
    assert_eq!(report["variants"][0]["outcome"]["median_ms"], 0.5);
    assert_eq!(report["variants"][0]["creates"], json!(["gridfuse.cuh"]));
    let diff = report["variants"][0]["diff"].as_str().unwrap();
    assert!(
        diff.contains("+++ b/program.cu") && !diff.contains("gridfuse.cuh\n+++"),
        "{diff}"
    );
    assert!(!session.files.read("program.cu").contains("outer"));

    // All of it arrives in front of the answer.
    let progress: Vec<Value> = session
        .client
        .notifications()
        .into_iter()
        .filter(|(method, _)| method == "$/progress")
        .map(|(_, params)| params)
        .filter(|params| !is_working(params))
        .collect();
    assert!(progress.iter().all(|one| one["token"] == "mine"), "{progress:#?}");
    let values: Vec<&Value> = progress.iter().map(|one| &one["value"]).collect();
    assert_eq!(
        (values[0]["kind"].as_str(), &values[0]["cancellable"]),
        (Some("begin"), &json!(true))
    );
    assert_eq!(values.last().map(|end| &end["kind"]), Some(&json!("end")));
    let percents: Vec<u64> = values.iter().filter_map(|value| value["percentage"].as_u64()).collect();
    assert!(
        percents.is_sorted() && percents.iter().any(|p| *p >= 60),
        "{percents:?}"
    );
    assert!(values.iter().any(|value| value["message"] == "running aggregate-block"));
    session.client.shutdown();
}

#[test]
fn a_measurement_can_be_cancelled() {
    let mut session = Session::new(&[("FAKE_HANGS", ".*")]);
    let (id, token) = session.begin();
    assert!(
        session
            .client
            .server_requests()
            .iter()
            .any(|(method, params)| { method == "window/workDoneProgress/create" && params["token"] == token }),
        "the client gave no token"
    );
    // Two would disturb each other.
    let argument = session.argument();
    let second = execute(&mut session.client, argument).unwrap_err();
    assert!(second.message.contains("program.cu is being measured"), "{second}");

    let other = json!({ "token": "another" });
    session.client.notify("window/workDoneProgress/cancel", other);
    session
        .client
        .notify("window/workDoneProgress/cancel", json!({ "token": token }));
    let error = session.client.wait_response(id).unwrap_err();
    assert_eq!(error.code, ResponseError::REQUEST_CANCELLED, "{error}");
    session.nothing_runs();

    // The place is free again; a cancelled request ends its programs, too.
    fs::remove_file(session.home.file("pids")).unwrap();
    let params = json!({ "command": "gridfuse.measure", "arguments": [session.argument()] });
    let id = session.client.send_request("workspace/executeCommand", params);
    session.wait_for_program();
    session.client.cancel(id);
    assert_eq!(
        session.client.wait_response(id).unwrap_err().code,
        ResponseError::REQUEST_CANCELLED
    );
    session.nothing_runs();
    session.client.shutdown();
}

#[test]
fn programs_end_with_the_server() {
    let mut session = Session::new(&[("FAKE_HANGS", ".*")]);
    session.begin();
    session.client.hang_up();
    session.nothing_runs();
    session.nothing_is_left();
}

#[test]
fn nothing_is_left_of_a_killed_server() {
    let mut session = Session::new(&[("FAKE_HANGS", ".*")]);
    session.begin();
    session.kill("lsp");
    session.nothing_runs();
    session.nothing_is_left();
}

#[test]
fn nothing_is_left_of_a_server_that_is_told_to_end() {
    for (signal, number) in [("TERM", 15), ("HUP", 1), ("INT", 2)] {
        if processes::ignores(number) {
            println!("not tried: {signal} is ignored here");
            continue;
        }
        let mut session = Session::new(&[("FAKE_HANGS", ".*")]);
        session.begin();
        session.signal("lsp", signal);
        session.nothing_runs();
        session.nothing_is_left();
    }
}

#[test]
fn nothing_is_left_of_a_killed_search() {
    let mut session = Session::new(&[("FAKE_HANGS", ".*"), ("FAKE_TIME", "1")]);
    let argument = json!({ "uri": uri(&session.path) });
    let params = json!({ "command": "gridfuse.tune", "arguments": [argument] });
    session.client.send_request("workspace/executeCommand", params);
    session.wait_for_program();
    session.kill("lsp");
    session.nothing_runs();
    session.nothing_is_left();
}

#[test]
fn nothing_is_left_of_a_killed_measurement() {
    let mut session = Session::new(&[("FAKE_HANGS", ".*")]);
    let params = json!({ "command": "gridfuse.measure", "arguments": [session.argument()] });
    let id = session.client.send_request("workspace/executeCommand", params);
    session.wait_for_program();
    session.kill("measure");
    let error = session.client.wait_response(id).unwrap_err();
    assert!(error.message.contains("broke off"), "{error}");
    session.nothing_runs();
    session.nothing_is_left();
    session.client.shutdown();
}

/// The compiler's errors that the client knows of, as soon as there are some, or none.
#[track_caller]
fn build_errors(session: &mut Session, pull: bool, some: bool) -> Vec<Value> {
    let what = if some {
        "there are errors"
    } else {
        "there are no errors"
    };
    let look = || {
        let path = session.path.clone();
        let mut known = match pull {
            true => session.client.pull_diagnostics(&path, None)["items"]
                .as_array()
                .unwrap()
                .clone(),
            false => session
                .client
                .published(&path)
                .last()
                .map_or_else(Vec::new, |last| last.diagnostics.clone()),
        };
        known.retain(|one| one["source"] == "gridfuse measure");
        (known.is_empty() != some).then_some(known)
    };
    wait_for(|| what.to_owned(), look)
}

#[test]
fn compile_errors_stand_at_their_lines() {
    let source = fs::read(workspace::root().join("tests/fixtures/measure/program.cu")).unwrap();
    for pull in [false, true] {
        let capabilities = Capabilities {
            pull_diagnostics: pull,
            ..capabilities()
        };
        let mut session = Session::of(&source, &capabilities, &[("FAKE_NO_BUILD", "printf(\\|Aggregator")]);
        let path = session.path.clone();
        let text = session.files.read("program.cu");
        let argument = session.argument();
        execute(&mut session.client, argument.clone()).unwrap();
        if pull {
            session
                .client
                .wait_server_request("workspace/diagnostic/refresh", |_| true);
        }
        let found = build_errors(&mut session, pull, true);
        let printf = text.lines().position(|line| line.contains("printf(")).unwrap();
        let own = found.iter().find(|error| error["range"]["start"]["line"] == printf);
        let own = own.unwrap_or_else(|| panic!("{found:#?}"));
        assert_eq!(
            (&own["message"], &own["severity"]),
            (&json!("expected a \";\""), &json!(1))
        );
        assert_eq!(own["range"]["start"]["character"], 4, "{own}");
        // The variant's own error tells which one it is, and what is wrong.
        let rewritten = found.iter().any(|error| {
            let message = error["message"].as_str().unwrap();
            message.contains("in what aggregate-block makes of this") && message.contains("Aggregator")
        });
        assert!(rewritten, "{found:#?}");
        // An edit takes them away, and undoing it brings them back.
        session.client.change_full(&path, &format!("// Changed.\n{text}"));
        build_errors(&mut session, pull, false);
        session.client.change_full(&path, &text);
        assert_eq!(build_errors(&mut session, pull, true), found);
        // The next measurement takes them away for good, whatever comes out of it.
        let fixed = text.replace("printf(\"sum %lld\\n\", sum)", "puts(\"sum\")");
        assert_ne!(fixed, text);
        session.client.change_full(&path, &fixed);
        let mut plain = argument;
        plain["rewrites"] = json!(["threshold"]);
        execute(&mut session.client, plain).unwrap();
        session.client.change_full(&path, &text);
        build_errors(&mut session, pull, false);
        session.client.shutdown();
    }
}

#[test]
fn kernels_without_a_main() {
    let source = fs::read_to_string(workspace::root().join("tests/fixtures/measure/program.cu")).unwrap();
    let kernels = source.split("int main").next().unwrap();
    let mut session = Session::of(kernels.as_bytes(), &capabilities(), &[]);
    let path = session.path.clone();
    let mut argument = session.argument();
    argument["line"] = json!(kernels.lines().position(|line| line.contains("void parent")));
    let error = execute(&mut session.client, argument.clone()).unwrap_err();
    assert!(
        error
            .message
            .contains("nothing says how the kernel `parent` is to be run"),
        "{error}"
    );
    let title = "Insert a run specification for `parent`";
    let at = session.client.find(&path, "parent(const");
    let offered = |session: &mut Session, at: usize| {
        let actions = session.client.code_actions(&session.path.clone(), at..at, &[], &[]);
        actions.into_iter().find(|action| action["title"] == title)
    };
    let child = session.client.find(&path, "child(int");
    assert!(offered(&mut session, child).is_none());
    let action = offered(&mut session, at).expect("a proposal");
    apply_workspace_edit(session.files.path(), &action["edit"], session.client.encoding()).unwrap();
    let text = session.files.read("program.cu");
    assert!(
        text.contains("// gridfuse: run <<<(n + 255) / 256, 256>>>\n//   n = 16384\n"),
        "{text}"
    );
    session.client.change_full(&path, &text);
    let at = session.client.find(&path, "parent(const");
    assert!(offered(&mut session, at).is_none());
    argument["line"] = json!(text.lines().position(|line| line.contains("void parent")));
    let report = execute(&mut session.client, argument).unwrap();
    assert_eq!(report["kernel"]["kernel"], "parent", "{report:#}");
    assert_eq!(report["variants"][0]["outcome"]["median_ms"], 0.5, "{report:#}");
    session.client.shutdown();
}

#[test]
fn what_cannot_be_measured_is_said() {
    let mut session = Session::new(&[("FAKE_GPU", "none")]);
    let argument = session.argument();
    let error = execute(&mut session.client, argument.clone()).unwrap_err();
    assert!(error.message.contains("CUDA_VISIBLE_DEVICES"), "{error}");
    let mut wrong = argument.clone();
    wrong["rewrites"] = json!(["nonsense"]);
    let error = execute(&mut session.client, wrong).unwrap_err();
    assert!(error.message.contains("no rewrite is called `nonsense`"), "{error}");
    let mut wrong = argument.clone();
    wrong["nonsense"] = json!(1);
    assert_eq!(execute(&mut session.client, wrong).unwrap_err().code, -32602);
    let mut unsaved = argument.clone();
    unsaved["uri"] = json!(uri(&session.files.file("not-there.cu")));
    let error = execute(&mut session.client, unsaved).unwrap_err();
    assert!(error.message.contains("save the document first"), "{error}");
    let ends = session.client.notifications();
    let ends = ends
        .iter()
        .filter(|(_, params)| params["value"]["kind"] == "end" && !is_working(params))
        .count();
    assert_eq!(ends, 2, "what is refused at once shows no progress");
    session.client.shutdown();
}

#[test]
fn offered_where_it_can_be_executed() {
    let mut session = Session::new(&[]);
    let path = session.path.clone();
    let lenses = session.client.code_lenses(&path);
    assert_eq!(lenses.len(), 2, "{lenses:#?}");
    let run = session.client.request("codeLens/resolve", lenses[1].clone());
    let command = run["command"].clone();
    assert_eq!(
        (&command["title"], &command["command"]),
        (&json!("Run on GPU"), &json!("gridfuse.measure"))
    );
    for needle in ["child<<<", "parent(const"] {
        let at = session.client.find(&path, needle);
        let actions = session.client.code_actions(&path, at..at, &[], &[]);
        let action = actions.iter().find(|action| action["title"] == "Run on GPU");
        let action = action.unwrap_or_else(|| panic!("{needle}: {actions:#?}"));
        assert_eq!(action["command"]["command"], "gridfuse.measure");
        assert_eq!(session.client.resolve(action), *action);
    }
    let at = session.client.find(&path, "int main");
    let actions = session.client.code_actions(&path, at..at, &[], &[]);
    assert!(
        actions.iter().all(|action| action["title"] != "Run on GPU"),
        "{actions:#?}"
    );

    // As an editor passes the command on; nobody looks at the result, so the server shows it.
    let params = json!({ "command": command["command"], "arguments": command["arguments"] });
    session.client.request("workspace/executeCommand", params);
    let shown = session.client.wait_notification("window/showMessage", |_| true);
    let text = shown["message"].as_str().unwrap();
    assert!(text.contains("20.0× as fast as the original on Fake GPU"), "{text}");
    session
        .client
        .wait_server_request("workspace/codeLens/refresh", |_| true);
    session.client.shutdown();

    // Elsewhere nobody is asked who can't execute it.
    let mut plain = Session::new(&[]);
    plain.client = Client::spawn(workspace::gridfuse_bin(), &["lsp"]);
    plain
        .client
        .initialize(Some(plain.files.path()), &Capabilities::default());
    plain.client.open(&path, &fs::read_to_string(&plain.path).unwrap());
    assert_eq!(plain.client.code_lenses(&path).len(), 1);
    plain.client.shutdown();
}

/// Whether this machine has a driver for a GPU.
fn has_driver() -> bool {
    let driver = [
        "/proc/driver/nvidia/version",
        "/dev/nvidiactl",
        "/usr/lib/wsl/lib/nvidia-smi",
    ];
    let path = std::env::var_os("PATH").unwrap_or_default();
    driver.iter().any(|file| fs::exists(file).unwrap_or(false))
        || std::env::split_paths(&path).any(|directory| directory.join("nvidia-smi").exists())
}

#[test]
fn without_a_gpu_an_editor_is_told_what_to_do() {
    if has_driver() {
        println!("not tried: there is a GPU here");
        return;
    }
    let plain = Capabilities {
        code_action_disabled: false,
        ..capabilities()
    };
    let source = fs::read(workspace::root().join("tests/fixtures/measure/program.cu")).unwrap();
    for capabilities in [capabilities(), plain] {
        let mut session = Session::of(&source, &capabilities, &[]);
        fs::remove_file(session.home.file("bin/nvidia-smi")).unwrap();
        let path = session.path.clone();
        let lens = |session: &mut Session| {
            let lenses = session.client.code_lenses(&session.path.clone());
            let lens = session.client.request("codeLens/resolve", lenses[1].clone());
            lens["command"]["title"].as_str().unwrap().to_owned()
        };
        assert_eq!(lens(&mut session), "Run on GPU (no GPU here)");
        let at = session.client.find(&path, "child<<<");
        let actions = session.client.code_actions(&path, at..at, &[], &[]);
        let titled = |action: &&Value| action["title"].as_str().unwrap().starts_with("Run on GPU");
        let action = actions.iter().find(titled).unwrap();
        if capabilities.code_action_disabled {
            let reason = action["disabled"]["reason"].as_str().unwrap();
            assert!(reason.contains("no NVIDIA GPU on this machine"), "{reason}");
            assert_eq!(
                (&action["title"], &action["command"]),
                (&json!("Run on GPU"), &Value::Null)
            );
        } else {
            assert_eq!(action["title"], "Run on GPU (no GPU here)");
            assert_eq!(action["command"]["command"], "gridfuse.measure");
        }
        let argument = session.argument();
        for more in [json!({}), json!({ "check": true }), json!({ "show": true })] {
            let mut argument = argument.clone();
            argument
                .as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            let error = execute(&mut session.client, argument).unwrap_err();
            assert_eq!(error.data, json!({ "missing": "gpu" }), "{more}");
            assert!(error.message.contains("runner = \"ssh HOST\""), "{}", error.message);
            assert!(!error.message.contains(" --"), "{}", error.message);
        }
        // Where another machine measures, nothing is missing here.
        let settings = json!({ "gridfuse": { "measure": { "runner": "ssh gpu-server" } } });
        let changed = json!({ "settings": settings });
        session.client.notify("workspace/didChangeConfiguration", changed);
        wait_until("the lens of another machine", || lens(&mut session) == "Run on GPU");
        let check = json!({ "uri": uri(&path), "check": true });
        assert_eq!(execute(&mut session.client, check).unwrap(), Value::Null);
        session.client.shutdown();
    }
}

#[test]
fn what_was_measured_is_remembered() {
    let mut session = Session::new(&[("FAKE_RESIDENT", "g == 3 ? 1024 : 2048")]);
    let path = session.path.clone();
    let source = session.files.read("program.cu");
    let argument = session.argument();
    execute(&mut session.client, argument).unwrap();
    let shown = |session: &mut Session| {
        let lenses = session.client.code_lenses(&session.path.clone());
        let lens = session.client.request("codeLens/resolve", lenses[1].clone());
        let hovers = ["child<<<", "parent(const"].map(|needle| {
            let at = session.client.find(&session.path.clone(), needle) + 1;
            let hover = session.client.hover(&session.path.clone(), at);
            hover["contents"]["value"].as_str().unwrap().to_owned()
        });
        (lens["command"]["title"].as_str().unwrap().to_owned(), hovers)
    };
    let fresh = "aggregate-block: 20.0× on Fake GPU, just now, code unchanged since";
    // A measurement may be a minute old on a slow machine.
    let same = |text: &str| text.replace("1 minute ago", "just now").contains(fresh);
    let (lens, hovers) = shown(&mut session);
    assert!(same(&lens), "{lens}");
    assert!(hovers.iter().all(|hover| same(hover)), "{hovers:#?}");
    let occupancy = "*Occupancy* of `parent`: 32 registers, 1,024 resident threads with aggregate-block; 24 registers, 2,048 resident \
                     threads before";
    assert!(hovers.iter().all(|hover| hover.contains(occupancy)), "{hovers:#?}");
    // A comment changes nothing, code does.
    session.client.change_full(&path, &format!("// Changed.\n{source}"));
    assert!(same(&shown(&mut session).0));
    session.client.change_full(&path, &source.replace("+= 1", "+= 2"));
    let (lens, hovers) = shown(&mut session);
    assert!(lens.contains("stale: code changed since"), "{lens}");
    assert!(hovers.iter().all(|hover| hover.contains("stale")), "{hovers:#?}");

    let kept = session.home.file("state/gridfuse/measurements");
    let mut kept = fs::read_dir(kept).unwrap().map(|entry| entry.unwrap().path());
    let kept = kept
        .find(|path| path.extension().is_some_and(|it| it == "json"))
        .unwrap();
    fs::write(&kept, "{").unwrap();
    let (lens, hovers) = shown(&mut session);
    assert_eq!(lens, "Run on GPU");
    assert!(
        hovers.iter().all(|hover| hover.contains("can't be read")),
        "{hovers:#?}"
    );
    assert_eq!(
        fs::read_dir(session.files.path()).unwrap().count(),
        1,
        "nothing among the sources"
    );
    session.client.shutdown();
}

#[test]
fn what_is_fastest_is_applied_on_request() {
    let time = "1 + abs(g - 3)";
    let mut session = Session::new(&[("FAKE_TIME", time)]);
    let path = session.path.clone();
    // What the editor shows is tuned.
    let edited = session.files.read("program.cu").replace("parent", "outer");
    session.client.change_full(&path, &edited);
    // The first round holds all granularities.
    let argument = json!({ "uri": uri(&path), "repeat": 1, "budget": 1 });
    let params = json!({ "command": "gridfuse.tune", "arguments": [argument] });
    let report = session.client.request("workspace/executeCommand", params);
    assert!(
        report["search"]["best"].as_str().unwrap().ends_with("aggregate-block"),
        "{report:#}"
    );
    assert_eq!(report["texts"], Value::Null);
    let edit = report["edit"].to_string();
    assert!(
        edit.contains("gridfuse::PerBlock") && edit.contains("gridfuse.cuh"),
        "{edit}"
    );
    let begun = session.client.wait_notification("$/progress", |progress| {
        progress["value"]["kind"] == "begin" && !is_working(progress)
    });
    assert_eq!(begun["value"]["title"], "Tuning program.cu");
    assert!(
        !session.files.read("program.cu").contains("PerBlock"),
        "the client applies it"
    );
    // It's remembered, for the code as it is and as it is with the edit.
    session
        .client
        .wait_server_request("workspace/codeLens/refresh", |_| true);
    let shown = |session: &mut Session, needle: &str| {
        let lenses = session.client.code_lenses(&session.path.clone());
        let lenses = lenses.into_iter();
        let mut resolved = lenses.map(|lens| session.client.request("codeLens/resolve", lens));
        let is_run = |lens: &Value| {
            lens["command"]["title"]
                .as_str()
                .is_some_and(|title| title.starts_with("Run on"))
        };
        let lens = resolved.find(is_run).expect("a lens that measures");
        let at = session.client.find(&session.path.clone(), needle) + 1;
        let hover = session.client.hover(&session.path.clone(), at);
        let title = lens["command"]["title"].as_str().unwrap().to_owned();
        [title, hover["contents"]["value"].as_str().unwrap().to_owned()]
    };
    let fresh = |text: &String| {
        text.contains("tuned: ")
            && text.contains("block, ")
            && text.contains("× on Fake GPU")
            && text.contains("unchanged since")
    };
    let before = shown(&mut session, "outer(const");
    assert!(
        before.iter().all(fresh) && before[0].starts_with("Run on GPU"),
        "{before:#?}"
    );
    session.files.write("program.cu", edited.as_bytes());
    apply_workspace_edit(session.files.path(), &report["edit"], session.client.encoding()).unwrap();
    let rewritten = session.files.read("program.cu");
    session.client.change_full(&path, &rewritten);
    // The header beside it is read in the background; the server has the client ask again then.
    let mut after = shown(&mut session, "outer(const");
    wait_until("what was measured is of this text", || {
        let done = after.iter().all(fresh);
        after = shown(&mut session, "outer(const");
        done
    });
    assert!(
        after.iter().all(fresh) && after[0].starts_with("Run on GPU"),
        "{after:#?}"
    );
    session.client.change_full(&path, &rewritten.replace("+= 1", "+= 2"));
    let stale = shown(&mut session, "outer(const");
    assert!(stale.iter().all(|text| text.contains("stale")), "{stale:#?}");

    let wrong = json!({ "uri": uri(&path), "rewrites": ["threshold"] });
    let params = json!({ "command": "gridfuse.tune", "arguments": [wrong] });
    let error = session
        .client
        .try_request("workspace/executeCommand", params)
        .unwrap_err();
    assert_eq!(error.code, -32602);
    session.client.shutdown();
}

#[test]
fn a_search_can_be_cancelled() {
    let mut session = Session::new(&[("FAKE_HANGS", ".*"), ("FAKE_TIME", "1")]);
    let argument = json!({ "uri": uri(&session.path) });
    let params = json!({ "command": "gridfuse.tune", "arguments": [argument] });
    let id = session.client.send_request("workspace/executeCommand", params);
    session.wait_for_program();
    session.client.cancel(id);
    let error = session.client.wait_response(id).unwrap_err();
    assert_eq!(error.code, ResponseError::REQUEST_CANCELLED);
    session.nothing_runs();
    session.client.shutdown();
}

#[test]
fn the_client_may_name_the_machine_that_measures() {
    let mut session = Session::new(&[]);
    let settings = json!({ "settings": { "gridfuse": { "measure": { "runner": "no-such-runner gpu-server" } } } });
    session.client.notify("workspace/didChangeConfiguration", settings);
    let argument = session.argument();
    let error = execute(&mut session.client, argument).unwrap_err();
    assert!(error.message.contains("no-such-runner"), "{}", error.message);
    session.client.shutdown();
}
