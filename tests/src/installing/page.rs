//! The page of `docs/` about installing, with what was seen when each route was tried.

use super::cross;
use super::record::{COMMAND, Package, Record};
use crate::docs::NOTE;

/// Name of the page.
pub const NAME: &str = "installing.md";

const ROUTES: &str = "\
gridfuse is one program without dependencies: language server, command line and the runtime header of rewritten code, which it puts beside
the code when a rewrite needs it. A release has it in these forms, for Linux (x86-64 and Arm, glibc), macOS (Arm) and Windows (x86-64):

| you have | you type |
|---|---|
| Python | `pip install gridfuse` |
| Node.js | `npx gridfuse`, or `npm install --global gridfuse` |
| Rust | `cargo install gridfuse` |
| Debian, Ubuntu | `sudo dpkg -i gridfuse_*.deb`, with the file of a release: brings the manual and completions for bash, zsh and fish |
| any of these systems | `tar -xzf gridfuse-*.tar.gz`, with the archive of a release; `gridfuse` in it is the program |
| Visual Studio Code | `code --install-extension gridfuse-*.vsix`, with the file of a release: brings the program along |
| a checkout | `cargo install --path server` |
| Nix, and a checkout | `nix profile install .`, or `nix run . -- check FILE.cu` |

The first three find it once a release is in the registry; before that, and without a network, they take the files of a release:
`pip install --no-index --find-links DIRECTORY gridfuse`, `npm install --global gridfuse-*.tgz`.

After that, `gridfuse check FILE.cu` looks at a program, and `gridfuse doctor` says what is missing to measure on a GPU:
[what it says](doctor.md). [Editors](../editors/README.md) say how they find the program.

`flake.nix` has the package for Linux and macOS, with the manual and completions, an overlay `default`, and a shell with what the build
needs (`nix develop`). A test has Nix evaluate it for each platform, with something that stands for nixpkgs. Nobody has built it yet, and there is
no `flake.lock`: both need nixpkgs. It takes the newest one; Rust in it has to be as new as `rust-version` in `Cargo.toml` says.

Mason, which installs servers for Neovim, has [an entry](../editors/README.md#neovim) to install the wheel with.

## In a release

A release also has `SHA256SUMS` (`sha256sum --check --ignore-missing SHA256SUMS`), and for each program what it is made of, as CycloneDX:
`gridfuse-VERSION-PLATFORM.cdx.json`. Every package has both licences, [MIT](../LICENSE-MIT) and [Apache 2.0](../LICENSE-APACHE); the runtime
header that it puts beside your code has their names in its first line.

`.ci/package` makes all of it, on your machine as in the workflow of releases: `.ci/package wheel`, `npm`, `deb`, `crates`, `program`,
`extension`, `sbom`, `sums`.
";

const PLATFORMS: &str = "\
## Which platforms

| platform | |
|---|---|
| Linux, x86-64 | built, installed by every route above, and run; every test runs there |
| Linux, Arm | the workflow of releases builds it on a machine of its own; cross-compiled and run, as below |
| Windows, x86-64 | the same, with MSVC; cross-compiled for `x86_64-pc-windows-gnu` and run, as below |
| macOS, Arm | the workflow of releases builds it on a machine of its own; not run by anything here |
";

/// Makes the page.
pub fn page(record: &Record) -> String {
    let mut page = format!("{NOTE}\n\n# Installing\n\n{ROUTES}");
    page += &format!(
        "\n## Tried\n\n`{COMMAND}` makes the packages of version {} and installs each in an empty directory, with an empty home, and nothing of \
         the project but the package. There it looks at a program, and rewrites a launch. This is what it saw on {} ({}, {} processors). \
         `npx` asked a registry that knows nothing but the two packages; `cargo` built what the others bring along. The load is that of the machine when a route began: above the number of processors, others were at work, too.\n\n\
         | route | package | installed | load | time to install | first `check` | found |\n|---|---|---|---|---|---|---|\n",
        record.version, record.system, record.platform, record.processors
    );
    for route in &record.routes {
        let of = |name: &String| record.packages.iter().find(|package| package.file == *name);
        let packages: u64 = route.packages.iter().filter_map(of).map(|package| package.bytes).sum();
        page += &format!(
            "| {} | {} | {} | {:.1} | {:.1} s | {:.2} s | {} |\n",
            route.tool,
            megabytes(packages),
            megabytes(route.installed_bytes),
            route.load,
            route.seconds,
            route.check_seconds,
            route
                .findings
                .iter()
                .map(|id| format!("[{id}](diagnostics/{id}.md)"))
                .collect::<Vec<_>>()
                .join(", ")
        );
    }
    page += "\nThe commands:\n\n```sh\n";
    for route in &record.routes {
        page += &format!("# {}\n", route.tool_version);
        for command in route.commands.iter().chain(&route.removed) {
            page += &format!("{command}\n");
        }
    }
    page += "```\n\nThe files:\n\n| file | size |\n|---|---|\n";
    for Package { file, bytes } in &record.packages {
        page += &format!("| `{file}` | {} |\n", megabytes(*bytes));
    }
    page += "\n";
    page += PLATFORMS;
    let crossed = cross::recorded();
    if !crossed.is_empty() {
        page += &format!(
            "\n`{}` cross-compiles the program, lets an emulator run it, and writes down what it did; measuring isn't among it.\n\n\
             | platform | run by | what | what came of it |\n|---|---|---|---|\n",
            cross::COMMAND
        );
    }
    for platform in &crossed {
        for ran in &platform.runs {
            page += &format!(
                "| `{}` | {} | {} | {} |\n",
                platform.target, platform.runner, ran.what, ran.found
            );
        }
    }
    page
}

/// `4.2 MB`, and `12 kB` below a tenth of one.
#[allow(clippy::cast_precision_loss, reason = "sizes of files")]
fn megabytes(bytes: u64) -> String {
    match bytes {
        0..100_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::megabytes;

    #[test]
    fn sizes() {
        assert_eq!(megabytes(1_234), "1.2 kB");
        assert_eq!(megabytes(12_340_000), "12.3 MB");
    }
}
