//! What comes with the editors: that it agrees with the server, and that it works in real editors.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::BTreeSet;
use std::fs;

use gridfuse_tests::cli::{Directory, gridfuse};
use gridfuse_tests::{expect, severities, workspace};
use serde_json::Value;

fn vscode_manifest() -> Value {
    let text = fs::read_to_string(workspace::root().join("editors/vscode/package.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// All settings of the extension, whatever page they are on.
fn vscode_settings() -> serde_json::Map<String, Value> {
    let manifest = vscode_manifest();
    let pages = manifest["contributes"]["configuration"].as_array().unwrap().clone();
    pages
        .into_iter()
        .flat_map(|page| page["properties"].as_object().unwrap().clone())
        .collect()
}

#[test]
fn every_diagnostic_has_a_severity_in_vscode() {
    let listed = gridfuse(workspace::root(), &["list", "--format", "json"])
        .expect_code(0)
        .json();
    let path = workspace::root().join(severities::MANIFEST);
    let text = fs::read_to_string(&path).unwrap().replace("\r\n", "\n");
    let wanted = severities::manifest(&listed, &text).unwrap();
    expect::file(&path, &wanted, "editors");
    let ids = listed["diagnostics"].as_array().unwrap().iter();
    let ids: BTreeSet<&str> = ids.map(|diagnostic| diagnostic["id"].as_str().unwrap()).collect();
    let settings = vscode_settings();
    let severities = settings["gridfuse.severity"]["properties"].as_object().unwrap();
    assert_eq!(severities.keys().map(String::as_str).collect::<BTreeSet<_>>(), ids);
}

#[test]
fn settings_of_vscode_have_descriptions() {
    for (name, setting) in vscode_settings() {
        let text = ["markdownDescription", "description"]
            .iter()
            .find_map(|key| setting[*key].as_str());
        let sentence = |text: &str| text.ends_with('.') && !text.contains(". ");
        assert!(text.is_some_and(sentence), "{name}: one sentence describes a setting");
        assert!(setting.get("default").is_some(), "{name}");
    }
}

/// The page of settings shows no control for other types: it sends the user to a JSON file.
#[test]
fn settings_of_vscode_can_be_changed_on_the_page_of_settings() {
    for (name, setting) in vscode_settings() {
        let types: Vec<&str> = match &setting["type"] {
            Value::Array(types) => types.iter().map(|one| one.as_str().unwrap()).collect(),
            one => vec![one.as_str().unwrap()],
        };
        let shown = match types.as_slice() {
            ["boolean" | "string" | "integer" | "number"] | ["integer" | "number", "null"] => true,
            ["array"] => setting["items"]["type"] == "string",
            ["object"] => setting["properties"].is_object() && setting["additionalProperties"] == false,
            // Anything else only as a list of its values.
            _ => setting["enum"].as_array().is_some_and(|values| {
                let told = setting["markdownEnumDescriptions"].as_array().map_or(0, Vec::len);
                values.contains(&setting["default"]) && told == values.len()
            }),
        };
        assert!(shown, "{name}: {setting}");
    }
}

/// The names that `gridfuse.toml` knows in a table: what it says when it is told of another one.
fn names_in_manifest(table: &str) -> BTreeSet<String> {
    let directory = Directory::new();
    let heading = if table.is_empty() {
        String::new()
    } else {
        format!("[{table}]\n")
    };
    directory.write("gridfuse.toml", format!("{heading}nonsense = 1\n").as_bytes());
    directory.write("empty.cu", b"");
    let refused = gridfuse(directory.path(), &["check", "empty.cu"]);
    let (_, expected) = refused
        .stderr
        .split_once("unknown field `nonsense`, expected")
        .unwrap_or_else(|| panic!("{}", refused.stderr));
    let line = expected.lines().next().unwrap_or_default();
    line.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// `tiny-grid` → `tinyGrid`
fn camel(name: &str) -> String {
    let mut words = name.split('-');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |name, word| name + &word[..1].to_uppercase() + &word[1..])
}

/// A name that is added to `gridfuse.toml` is added here, too.
#[test]
fn vscode_has_a_setting_for_all_that_stands_in_the_manifest() {
    let mut expected = BTreeSet::new();
    for name in names_in_manifest("") {
        let setting = format!("gridfuse.{}", camel(&name));
        if ["inlay-hints", "thresholds", "measure"].contains(&name.as_str()) {
            let inner = names_in_manifest(&name);
            expected.extend(inner.iter().map(|inner| format!("{setting}.{}", camel(inner))));
        } else {
            expected.insert(setting);
        }
    }
    // How a project is built and where its header stands is part of the project: it's the same for all who work on it.
    for name in [
        "measure.build",
        "measure.program",
        "measure.inputs",
        "measure.kernel",
        "headerDir",
    ] {
        assert!(expected.remove(&format!("gridfuse.{name}")), "{name}");
    }
    // What is the extension's alone.
    for name in ["enable", "server.path", "trace.server", "rewrite.confirmAssumptions"] {
        assert!(expected.insert(format!("gridfuse.{name}")), "{name}");
    }
    assert_eq!(vscode_settings().keys().cloned().collect::<BTreeSet<_>>(), expected);
}

/// What the help file of Neovim says, and what the plugin has.
#[test]
fn the_help_file_has_every_command_and_option() {
    let plugin = workspace::root().join("editors/neovim");
    let help = fs::read_to_string(plugin.join("doc/gridfuse.txt")).unwrap();
    let commands = fs::read_to_string(plugin.join("plugin/gridfuse.lua")).unwrap();
    let made: BTreeSet<&str> = commands
        .split("nvim_create_user_command('")
        .skip(1)
        .filter_map(|rest| rest.split('\'').next())
        .collect();
    let tags: BTreeSet<&str> = help
        .split('*')
        .filter_map(|tag| tag.strip_prefix(':'))
        .filter(|tag| !tag.contains(char::is_whitespace))
        .collect();
    assert!(made.len() >= 7, "{made:?}");
    assert_eq!(tags, made);
    let defaults = fs::read_to_string(plugin.join("lua/gridfuse/config.lua")).unwrap();
    let (_, defaults) = defaults.split_once("M.defaults = {").unwrap();
    let (defaults, _) = defaults.split_once("\n}").unwrap();
    let lines = defaults.lines().filter_map(|line| line.strip_prefix("  "));
    let options = lines.filter(|line| !line.starts_with([' ', '-']));
    for (name, _) in options.filter_map(|line| line.split_once(" = ")) {
        assert!(help.contains(&format!("\n    {name} ")), "{name}");
    }
}

#[test]
fn the_lock_file_names_no_registry() {
    let lock = fs::read_to_string(workspace::root().join("editors/vscode/package-lock.json")).unwrap();
    assert!(!lock.contains("\"resolved\""));
    for (name, version) in vscode_manifest()["devDependencies"].as_object().unwrap() {
        let version = version.as_str().unwrap();
        assert!(
            version.starts_with(|c: char| c.is_ascii_digit()),
            "{name} {version} is not pinned"
        );
    }
}

/// The configuration that is tried is the one that is documented.
#[test]
fn the_documented_configuration_of_helix_is_the_tested_one() {
    let editors = workspace::root().join("editors");
    let configuration = fs::read_to_string(editors.join("helix/languages.toml")).unwrap();
    let documented = fs::read_to_string(editors.join("README.md")).unwrap();
    assert!(documented.contains(&format!("```toml\n{configuration}```")));
}

/// What a line `;; NAME: VALUE` of the Emacs package says.
fn emacs_header(name: &str) -> Option<String> {
    let text = fs::read_to_string(workspace::root().join("editors/emacs/gridfuse.el")).unwrap();
    let found = text
        .lines()
        .find_map(|line| line.strip_prefix(&format!(";; {name}: ")))?;
    Some(found.to_owned())
}

/// What the workspace's manifest says of all its packages.
fn cargo(name: &str) -> Option<String> {
    let text = fs::read_to_string(workspace::root().join("Cargo.toml")).unwrap();
    let (_, section) = text.split_once("[workspace.package]\n").unwrap();
    let lines = section.lines().take_while(|line| !line.starts_with('['));
    lines
        .filter_map(|line| line.split_once(" = "))
        .find(|(key, _)| *key == name)
        .map(|(_, value)| value.trim_matches('"').to_owned())
}

#[test]
fn the_package_for_emacs_says_what_the_others_say() {
    assert_eq!(emacs_header("Version"), cargo("version"));
    assert_eq!(emacs_header("URL"), cargo("repository"));
    assert_eq!(emacs_header("SPDX-License-Identifier"), cargo("license"));
}

fn read(path: &str) -> String {
    fs::read_to_string(workspace::root().join("editors").join(path)).unwrap()
}

fn json(path: &str) -> Value {
    serde_json::from_str(&read(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// A client's settings are some that there are: those of the extension have the same names.
fn known_settings(path: &str, settings: &Value) {
    let known = vscode_settings();
    for name in settings.as_object().unwrap().keys() {
        assert!(known.contains_key(&format!("gridfuse.{name}")), "{path}: {name}");
    }
}

/// What is only configured starts the server, with settings that there are.
#[test]
fn configurations_of_other_editors_start_the_server() {
    let words = ["gridfuse", "lsp"];
    let kate = &json("kate/settings.json")["servers"]["cuda"];
    let sublime = &json("sublime/LSP.sublime-settings")["clients"]["gridfuse"];
    for (path, client) in [("kate", kate), ("sublime", sublime)] {
        assert_eq!(client["command"], serde_json::json!(words), "{path}");
        known_settings(path, &client["initializationOptions"]);
    }
    let clion = json("clion/template.json");
    assert_eq!(clion["programArgs"]["default"], words.join(" "));
    known_settings("clion", &json("clion/initializationOptions.json"));
    let kakoune = read("kakoune/gridfuse.kak");
    assert!(kakoune.contains("command = \"gridfuse\"\n        args = [\"lsp\"]\n"));
    assert!(read("visualstudio/GridfuseServer.cs").contains("new ProcessStartInfo(\"gridfuse\", \"lsp\")"));
    // All of them are about the same files.
    for (path, files) in [
        ("kate/cuda.xml", "extensions=\"*.cu;*.cuh\""),
        ("clion/template.json", "[\"*.cu\", \"*.cuh\"]"),
        ("kakoune/gridfuse.kak", ".*[.]cuh?"),
        ("visualstudio/GridfuseServer.cs", "[\".cu\", \".cuh\"]"),
    ] {
        assert!(read(path).contains(files), "{path}");
    }
    let project = format!("<Version>{}</Version>", cargo("version").unwrap());
    assert!(read("visualstudio/gridfuse.csproj").contains(&project), "{project}");
}

/// A mode of its own leads Kate to the server: settings and syntax name the same one.
#[test]
fn kate_finds_the_server_by_the_mode_of_cuda() {
    let settings = json("kate/settings.json");
    let mode = settings["servers"]["cuda"]["highlightingModeRegex"].as_str().unwrap();
    let name = mode.trim_start_matches('^').trim_end_matches('$');
    assert!(
        read("kate/cuda.xml").contains(&format!("<language name=\"{name}\"")),
        "{mode}"
    );
}

/// Nobody runs them in a pipeline: they need editors that bring much along.
#[cfg(unix)]
#[test]
fn the_scripts_that_try_editors_can_be_read_and_apply_rewrites_that_there_are() {
    let listed = gridfuse(workspace::root(), &["list", "--format", "json"])
        .expect_code(0)
        .json();
    let known: BTreeSet<&str> = listed["rewrites"]
        .as_array()
        .unwrap()
        .iter()
        .map(|rewrite| rewrite["id"].as_str().unwrap())
        .collect();
    for name in ["kakoune", "kate"] {
        let script = workspace::root().join("editors").join(name).join("try.sh");
        let read = std::process::Command::new("bash")
            .arg("-n")
            .arg(&script)
            .status()
            .unwrap();
        assert!(read.success(), "{name}");
        let text = fs::read_to_string(&script).unwrap();
        let (_, applied) = text.split_once(" --apply ").unwrap();
        let id = applied.split(' ').next().unwrap();
        assert!(known.contains(id), "{name}: {id}");
        assert!(text.contains("tests/corpus/bfs.cu"), "{name}");
    }
}

/// JSON in the pages parses, and every directory is named in the page about all of them.
#[test]
fn pages_of_editors_are_linked_and_their_json_parses() {
    let overview = read("README.md");
    let editors = fs::read_dir(workspace::root().join("editors")).unwrap();
    for editor in editors.flatten().filter(|editor| editor.path().is_dir()) {
        let name = editor.file_name().into_string().unwrap();
        assert!(overview.contains(&format!("]({name}/")), "{name}");
        let page = fs::read_to_string(editor.path().join("README.md")).unwrap_or_default();
        for block in page.split("```json\n").skip(1) {
            let block = block.split("```").next().unwrap();
            let parsed = serde_json::from_str::<Value>(block);
            parsed.unwrap_or_else(|error| panic!("{name}: {error}: {block}"));
        }
    }
}

#[cfg(feature = "editors")]
mod real {
    use std::path::{Path, PathBuf};
    use std::process::Command;

    use gridfuse_tests::editors::{Debian, clangd, code_server, neovim, node, run, system_program, vscode_extension};
    use gridfuse_tests::nvcc::Nvcc;

    use super::*;

    /// Largest size of the package: it holds no server.
    const PACKAGE_BYTES: u64 = 1 << 20;

    /// Tries once more what has failed: an editor that isn't ours may lose a key or a window on a busy machine. What fails twice, fails.
    fn at_most_twice(test: impl Fn() + std::panic::RefUnwindSafe) {
        if std::panic::catch_unwind(&test).is_err() {
            println!("once more, as it failed");
            test();
        }
    }

    fn workspace_with_bfs(directory: &Directory) {
        let source = fs::read(workspace::root().join("tests/corpus/bfs.cu")).unwrap();
        directory.write("workspace/bfs.cu", &source);
    }

    /// A program for a compiler and a GPU that are faked at the process boundary, and a directory with this compiler.
    fn fake_cuda(directory: &Directory) -> PathBuf {
        let root = workspace::root();
        let source = fs::read(root.join("tests/fixtures/measure/program.cu")).unwrap();
        directory.write("workspace/program.cu", &source);
        let fake = directory.file("fake-cuda");
        fs::create_dir(&fake).unwrap();
        std::os::unix::fs::symlink(root.join("tests/fixtures/measure/fake_nvcc.sh"), fake.join("nvcc")).unwrap();
        // By this the server sees that there is a GPU; nobody runs it.
        fs::write(fake.join("nvidia-smi"), "").unwrap();
        fake
    }

    /// What a test has left in the workspace is rewritten, and is a program.
    fn compiles(directory: &Directory, name: &str, collector: &str) {
        let source = directory.file("workspace").join(name);
        let text = fs::read_to_string(&source).unwrap();
        assert!(text.contains(&format!("gridfuse::{collector}")), "{name}: {text}");
        Nvcc::get()
            .check_compiles(&source)
            .unwrap_or_else(|failure| panic!("{failure}"));
    }

    /// A server that has measured before: see the comment in it.
    fn recording() -> (&'static str, PathBuf, PathBuf) {
        let test = workspace::root().join("editors/vscode/test");
        (
            "GRIDFUSE_TEST_RECORDING",
            test.join("recording.json"),
            test.join("recording-server.mjs"),
        )
    }

    /// Runs a script of the extension's tests, with a real VS Code server and a browser.
    fn script(name: &str, directory: &Directory, environment: &[(&str, &Path)]) {
        let extension = vscode_extension().unwrap_or_else(|error| panic!("{error}"));
        let size = fs::metadata(&extension.package).unwrap().len();
        assert!(size < PACKAGE_BYTES, "{size} bytes");
        println!("the package has {size} bytes");
        let tools = &extension.directory;
        let readme = fs::read_to_string(tools.join("dist/README.md")).unwrap();
        assert!(
            readme.matches("](data:image/png;base64,").count() >= 3,
            "the package's README has its pictures"
        );
        let mut command = Command::new("node");
        command
            .arg(tools.join("test").join(name))
            .env("GRIDFUSE_TEST_VSIX", &extension.with_program)
            .env("GRIDFUSE_TEST_EXTENSION", tools)
            .env("GRIDFUSE_TEST_HOST", tools.join("test/dist/host.js"))
            .env("GRIDFUSE_TEST_CODE_SERVER", code_server().unwrap())
            .env(
                "GRIDFUSE_TEST_CHROMIUM",
                system_program(&["chromium", "chromium-browser", "google-chrome"]).unwrap(),
            )
            .env("GRIDFUSE_TEST_DIRECTORY", directory.path())
            .env("GRIDFUSE_TEST_SERVER", workspace::gridfuse_bin())
            .envs(environment.iter().copied());
        let done = run(&mut command);
        if done.is_err() {
            let kept = workspace::target_dir().join("gridfuse-tests/vscode-failure.png");
            let _ = fs::copy(directory.file("failure.png"), kept);
        }
        let done = done
            .unwrap_or_else(|error| panic!("{error}\nsee gridfuse-tests/vscode-failure.png in the build directory"));
        println!("{}", String::from_utf8_lossy(&done.stdout));
    }

    fn browse(theme: &str, screenshots: Option<&Path>) {
        let directory = Directory::new();
        workspace_with_bfs(&directory);
        let screenshots = screenshots.unwrap_or(Path::new(""));
        // It looks as on a machine with a compiler and a GPU: nobody calls them, as what is measured is a recording.
        for tool in ["nvcc", "nvidia-smi"] {
            directory.write(&format!("cuda/{tool}"), b"");
        }
        let mut path = vec![directory.file("cuda")];
        path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
        let path = PathBuf::from(std::env::join_paths(path).unwrap());
        let environment = [
            ("PATH", path.as_path()),
            ("GRIDFUSE_TEST_THEME", Path::new(theme)),
            ("GRIDFUSE_TEST_SCREENSHOTS", screenshots),
        ];
        script("ui.mjs", &directory, &environment);
        compiles(&directory, "bfs.cu", "Aggregator<gridfuse::PerBlock");
    }

    #[test]
    fn the_extension_works_in_the_extension_host() {
        at_most_twice(|| {
            let directory = Directory::new();
            workspace_with_bfs(&directory);
            let fake = fake_cuda(&directory);
            script("host.mjs", &directory, &[("GRIDFUSE_TEST_FAKE_CUDA", &fake)]);
            // What the tests have accepted and saved.
            for (name, collector) in [
                ("accepted.cu", "Aggregator<gridfuse::PerBlock"),
                ("best.cu", "ThreadReuseInStream<"),
                ("applied.cu", "ThreadReuseInStream<"),
                ("program.cu", "Aggregator<gridfuse::PerBlock"),
            ] {
                compiles(&directory, name, collector);
            }
        });
    }

    /// With `GRIDFUSE_TEST_SCREENSHOTS=1` the pictures of docs/ are taken anew.
    #[test]
    fn the_package_works_in_visual_studio_code() {
        at_most_twice(|| {
            if std::env::var_os("GRIDFUSE_TEST_SCREENSHOTS").is_some_and(|wanted| wanted == "1") {
                let docs = workspace::root().join("docs/screenshots");
                browse("light", Some(&docs));
                browse("dark", Some(&docs));
            } else {
                browse("light", None);
            }
        });
    }

    /// A script of the plugin's tests in a Neovim.
    fn in_neovim(mut neovim: Command, script: &str, directory: &Directory) {
        // The plugin's own directory stays as it is.
        let plugin = directory.file("neovim");
        gridfuse_tests::cli::copy(&workspace::root().join("editors/neovim"), &plugin);
        neovim
            .args(["--headless", "-u", "NONE", "-i", "NONE", "-n", "-l"])
            .arg(plugin.join("test").join(script))
            .env("GRIDFUSE_TEST_WORKSPACE", directory.file("workspace"))
            .env("GRIDFUSE_TEST_SERVER", workspace::gridfuse_bin())
            .env("HOME", directory.path())
            .env("XDG_CONFIG_HOME", directory.file("config"))
            .env("XDG_DATA_HOME", directory.file("data"))
            .env("XDG_STATE_HOME", directory.file("state"))
            .env("XDG_CACHE_HOME", directory.file("cache"));
        let done = run(&mut neovim).unwrap_or_else(|error| panic!("{error}"));
        println!("{}", String::from_utf8_lossy(&done.stderr));
    }

    fn plugin_works_in(mut neovim: Command) {
        let directory = Directory::new();
        workspace_with_bfs(&directory);
        // For the recording server.
        node().unwrap();
        let (name, report, server) = recording();
        let mut path = vec![fake_cuda(&directory)];
        path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
        neovim
            .env("GRIDFUSE_TEST_COMMAND", server)
            .env(name, report)
            .env("PATH", std::env::join_paths(path).unwrap())
            .env("FAKE_TIME", "0.1 + abs(g - 3) + abs(log2(t + 1) - log2(65)) / 10");
        in_neovim(neovim, "plugin_test.lua", &directory);
        compiles(&directory, "bfs.cu", "Aggregator<gridfuse::PerBlock");
        compiles(&directory, "program.cu", "Aggregator<gridfuse::PerBlock");
    }

    #[test]
    fn the_plugin_works_in_neovim() {
        at_most_twice(|| {
            plugin_works_in(Command::new(neovim().unwrap()));
        });
    }

    /// What `vim.lsp.enable` alone starts.
    #[test]
    fn the_server_works_in_neovim_without_setup() {
        at_most_twice(|| {
            let directory = Directory::new();
            workspace_with_bfs(&directory);
            let mut path = vec![workspace::gridfuse_bin().parent().unwrap().to_path_buf()];
            path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
            let mut editor = Command::new(neovim().unwrap());
            editor.env("PATH", std::env::join_paths(path).unwrap());
            in_neovim(editor, "enable_test.lua", &directory);
            compiles(&directory, "bfs.cu", "Aggregator<gridfuse::PerBlock");
        });
    }

    /// A command of words.
    fn command(words: &[PathBuf]) -> Command {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        command
    }

    #[test]
    fn the_plugin_works_in_neovim_0_10() {
        at_most_twice(|| {
            let Some(debian) = Debian::unpack("neovim", &["neovim"]).unwrap() else {
                println!("not tried: there is no apt here");
                return;
            };
            let mut neovim = command(&debian.command("usr/bin/nvim").unwrap());
            neovim.env("VIMRUNTIME", debian.file("usr/share/nvim/runtime"));
            let version = run(command(&debian.command("usr/bin/nvim").unwrap()).arg("--version")).unwrap();
            assert!(String::from_utf8_lossy(&version.stdout).starts_with("NVIM v0.10."));
            plugin_works_in(neovim);
        });
    }

    #[test]
    fn clangd_and_gridfuse_say_nothing_twice() {
        at_most_twice(|| {
            let directory = Directory::new();
            workspace_with_bfs(&directory);
            let cuda = Nvcc::get().root();
            // A header that the packages of CUDA leave out.
            directory.write("headers/curand_mtgp32_kernel.h", b"");
            let flags = [
                "-xcuda".to_owned(),
                "-std=c++17".to_owned(),
                format!("--cuda-path={}", cuda.display()),
                "--cuda-gpu-arch=sm_90".to_owned(),
                "-fgpu-rdc".to_owned(),
                format!("-I{}", cuda.join("include/cccl").display()),
                format!("-I{}", directory.file("headers").display()),
            ];
            directory.write("workspace/compile_flags.txt", flags.join("\n").as_bytes());
            let mut editor = Command::new(neovim().unwrap());
            editor
                .env("GRIDFUSE_TEST_COMMAND", workspace::gridfuse_bin())
                .env("GRIDFUSE_TEST_CLANGD", clangd().unwrap());
            in_neovim(editor, "clangd_test.lua", &directory);
        });
    }

    #[test]
    fn helix_applies_a_rewrite() {
        at_most_twice(|| {
            let Some(debian) = Debian::unpack("helix", &["hx"]).unwrap() else {
                println!("not tried: there is no apt here");
                return;
            };
            let directory = Directory::new();
            workspace_with_bfs(&directory);
            let configuration = fs::read(workspace::root().join("editors/helix/languages.toml")).unwrap();
            directory.write("config/helix/languages.toml", &configuration);
            let helix: Vec<String> = debian
                .command("usr/lib/hx/hx")
                .unwrap()
                .iter()
                .map(|word| word.display().to_string())
                .collect();
            let mut path = vec![workspace::gridfuse_bin().parent().unwrap().to_path_buf()];
            path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
            // Neovim is the terminal.
            let mut terminal = Command::new(neovim().unwrap());
            terminal
                .args(["--headless", "-u", "NONE", "-i", "NONE", "-n", "-l"])
                .arg(workspace::root().join("editors/helix/helix_test.lua"))
                .current_dir(directory.file("workspace"))
                .env("GRIDFUSE_TEST_HELIX", helix.join("\n"))
                .env("HELIX_RUNTIME", debian.file("usr/lib/hx/runtime"))
                .env("PATH", std::env::join_paths(path).unwrap())
                .env("HOME", directory.path())
                .env("XDG_CONFIG_HOME", directory.file("config"))
                .env("XDG_STATE_HOME", directory.file("state"))
                .env("XDG_CACHE_HOME", directory.file("cache"));
            let done = run(&mut terminal).unwrap_or_else(|error| panic!("{error}"));
            println!("{}", String::from_utf8_lossy(&done.stderr));
            compiles(&directory, "bfs.cu", "Aggregator<gridfuse::PerBlock");
        });
    }

    #[test]
    fn eglot_applies_a_rewrite_in_emacs() {
        at_most_twice(|| {
            let directory = Directory::new();
            workspace_with_bfs(&directory);
            let mut command = Command::new(system_program(&["emacs"]).unwrap());
            command
                .args(["--batch", "-l"])
                .arg(workspace::root().join("editors/emacs/eglot_test.el"))
                .current_dir(directory.file("workspace"))
                .env("GRIDFUSE_TEST_SERVER", workspace::gridfuse_bin())
                .env("XDG_CACHE_HOME", directory.file("cache"))
                .env("HOME", directory.path());
            run(&mut command).unwrap_or_else(|error| panic!("{error}"));
            compiles(&directory, "bfs.cu", "Aggregator<gridfuse::PerBlock");
        });
    }

    /// What `checkdoc`, the compiler and `package-lint` say of it.
    #[test]
    fn the_package_for_emacs_is_as_archives_want_it() {
        let directory = Directory::new();
        let mut command = Command::new(system_program(&["emacs"]).unwrap());
        command
            .args(["--batch", "-l"])
            .arg(workspace::root().join("editors/emacs/package_test.el"))
            .env("HOME", directory.path());
        match Debian::unpack("package-lint", &["elpa-package-lint"]).unwrap() {
            Some(debian) => {
                let packages = fs::read_dir(debian.file("usr/share/emacs/site-lisp/elpa-src")).unwrap();
                let mut packages = packages.flatten().map(|package| package.path());
                let lint = packages.find(|path| path.join("package-lint.el").is_file());
                command.env("GRIDFUSE_TEST_PACKAGE_LINT", lint.unwrap());
            }
            None => println!("without package-lint: there is no apt here"),
        }
        let done = run(&mut command).unwrap_or_else(|error| panic!("{error}"));
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        // As long as there is no address to name.
        let missing = "package-lint: 1: Package should have a Homepage or URL header.";
        let found: Vec<&str> = said
            .lines()
            .filter(|line| cargo("repository").is_some() || *line != missing)
            .collect();
        assert!(found.is_empty(), "{found:#?}");
    }

    #[test]
    fn ale_applies_a_rewrite_in_vim() {
        at_most_twice(|| {
            let Some(debian) = Debian::unpack("vim", &["vim", "vim-ale"]).unwrap() else {
                println!("not tried: there is no apt here");
                return;
            };
            let directory = Directory::new();
            workspace_with_bfs(&directory);
            let mut path = vec![workspace::gridfuse_bin().parent().unwrap().to_path_buf()];
            path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
            let mut vim = command(&debian.command("usr/bin/vim.basic").unwrap());
            vim.args(["-u", "NONE", "-i", "NONE", "-n", "-N", "-es", "-S"])
                .arg(workspace::root().join("editors/vim/ale_test.vim"))
                .current_dir(directory.file("workspace"))
                .env("GRIDFUSE_TEST_ALE", debian.file("usr/share/vim-ale"))
                .env("VIMRUNTIME", debian.file("usr/share/vim/vim91"))
                .env("PATH", std::env::join_paths(path).unwrap())
                .env("HOME", directory.path());
            let done = run(&mut vim).unwrap_or_else(|error| panic!("{error}"));
            println!("{}", String::from_utf8_lossy(&done.stderr));
            compiles(&directory, "bfs.cu", "Aggregator<gridfuse::PerBlock");
        });
    }
}
