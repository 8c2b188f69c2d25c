//! How files are compiled: whose commands count, and what follows from them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use gridfuse_analysis::base::command::CompileCommand;
use gridfuse_analysis::base::command::DefaultStream;
use gridfuse_analysis::base::compile::{Origin, compilation};
use gridfuse_analysis::base::file_settings::file_settings;
use gridfuse_analysis::base::settings::Settings;
use gridfuse_analysis::diagnostics::diagnostics;
use gridfuse_analysis::facts::launch::{Stream, launches};
use gridfuse_analysis::hir::included::included_files;
use gridfuse_analysis::hir::items::items;
use gridfuse_analysis::host::Host;

fn command(archs: &[u32], dirs: &[&str]) -> CompileCommand {
    CompileCommand {
        archs: archs.to_vec(),
        include_dirs: dirs.iter().map(PathBuf::from).collect(),
        relocatable: true,
        ..CompileCommand::default()
    }
}

fn set(host: &mut Host, commands: &[(&str, CompileCommand)]) {
    let mut all: BTreeMap<PathBuf, Vec<Arc<CompileCommand>>> = BTreeMap::new();
    for (path, command) in commands {
        all.entry(path.into()).or_default().push(Arc::new(command.clone()));
    }
    host.set_commands(all);
}

#[test]
fn own_commands_then_the_includers_then_the_neighbours() {
    let mut host = Host::new();
    for (path, text) in [
        (
            "/w/src/a.cu",
            r#"#include "a.cuh"
#if 0
#include <deep.cuh>
#endif
"#,
        ),
        ("/w/src/b.cu", "#include \"a.cuh\"\n"),
        ("/w/src/a.cuh", "#include <deep.cuh>\n"),
        ("/w/inc/deep.cuh", "#include \"../src/a.cuh\"\n"),
        ("/w/src/lonely.cu", ""),
        ("/w/test/other.cu", ""),
    ] {
        host.set_file(path.as_ref(), text);
    }
    set(
        &mut host,
        &[
            ("/w/src/a.cu", command(&[80], &["/w/inc"])),
            ("/w/src/b.cu", command(&[90], &["/w/inc"])),
            ("/w/test/gone.cu", command(&[70], &[])),
            ("/w/main.cpp", command(&[35], &[])),
        ],
    );
    let db = host.db();
    let of = |path: &str| {
        let file = host.file(path.as_ref()).unwrap();
        (compilation(db, file).origin, file_settings(db, file).archs.clone())
    };
    assert_eq!(of("/w/src/a.cu"), (Origin::Own, vec![80]));
    assert_eq!(of("/w/src/a.cuh"), (Origin::Includer, vec![80, 90]));
    assert_eq!(of("/w/inc/deep.cuh"), (Origin::Includer, vec![80, 90]));
    assert_eq!(of("/w/test/other.cu"), (Origin::Neighbour, vec![70]));
    assert_eq!(of("/w/src/lonely.cu").0, Origin::Neighbour);
    let a = host.file("/w/src/a.cu".as_ref()).unwrap();
    assert_eq!(included_files(db, a).len(), 3);
}

#[test]
fn forced_includes_and_include_directories() {
    let mut host = Host::new();
    let a = host.set_file("/w/a.cu".as_ref(), "#include <x.cuh>\n");
    let pre = host.set_file("/w/pre.h".as_ref(), "");
    let x = host.set_file("/w/inc/x.cuh".as_ref(), "");
    assert_eq!(included_files(host.db(), a), &[a]);
    let forced = CompileCommand {
        forced_includes: vec!["/w/pre.h".into()],
        ..command(&[], &["/w/inc"])
    };
    set(&mut host, &[("/w/a.cu", forced)]);
    assert_eq!(included_files(host.db(), a), &[a, pre, x]);
}

fn streams(commands: &[CompileCommand]) -> (Vec<Stream>, Vec<&'static str>) {
    let mut host = Host::new();
    let text = r#"__global__ void child(int* out, int n) { out[n] = 1; }
__global__ void parent(int* out) {
int i = blockIdx.x * blockDim.x + threadIdx.x;
if (out[i] > 0) child<<<1, 32>>>(out, i);
if (out[i] > 1) child<<<1, 32, 0, 0>>>(out, i);
if (out[i] > 2) child<<<1, 32, 0, cudaStreamDefault>>>(out, i);
if (out[i] > 3) child<<<1, 32, 0, cudaStreamLegacy>>>(out, i);
}
"#;
    let file = host.set_file("/w/a.cu".as_ref(), text);
    let all: Vec<(&str, CompileCommand)> = commands.iter().map(|c| ("/w/a.cu", c.clone())).collect();
    set(&mut host, &all);
    let db = host.db();
    let parent = items(db, file).functions[1];
    let found = diagnostics(db, file).iter().map(|d| d.id);
    (
        launches(db, parent).iter().map(|l| l.stream.clone()).collect(),
        found.filter(|id| *id == "serialized-launches").collect(),
    )
}

#[test]
fn the_default_stream_is_what_the_command_says() {
    let per_thread = CompileCommand {
        default_stream: DefaultStream::PerThread,
        ..command(&[90], &[])
    };
    let (legacy, found) = streams(&[command(&[90], &[])]);
    assert_eq!(legacy, vec![Stream::Null; 4]);
    assert_eq!(found.len(), 4);
    let (streams_of_threads, found) = streams(std::slice::from_ref(&per_thread));
    assert_eq!(
        streams_of_threads,
        [Stream::PerThread, Stream::PerThread, Stream::PerThread, Stream::Null]
    );
    assert_eq!(found.len(), 1);
    // In one of two programs the launches are serialized.
    assert_eq!(streams(&[per_thread, command(&[90], &[])]).1.len(), 4);
}

#[test]
fn what_the_project_says_wins() {
    let mut host = Host::new();
    let text = "__global__ void k() { cudaDeviceSynchronize(); }\n";
    let file = host.set_file("/w/a.cu".as_ref(), text);
    let old = CompileCommand {
        cuda: Some((11, 8)),
        ..command(&[70], &[])
    };
    set(&mut host, &[("/w/a.cu", old)]);
    let message = |host: &Host| diagnostics(host.db(), file)[0].message.clone();
    assert!(message(&host).contains("deprecated"));
    let new = Settings {
        arch: Some(90),
        ..Settings::default()
    };
    // A directory elsewhere says nothing about this one; the nearest one counts, and not those above it as well.
    let say = |host: &mut Host, said: &[(&str, &Settings)]| {
        let said = said
            .iter()
            .map(|(path, settings)| (PathBuf::from(path), Arc::new((*settings).clone())));
        host.set_settings(said.collect());
    };
    say(&mut host, &[("/v", &new), ("/w/sub", &new)]);
    assert!(message(&host).contains("deprecated"));
    say(&mut host, &[("/", &new)]);
    assert!(message(&host).contains("does not exist"));
    say(&mut host, &[("/", &new), ("/w", &Settings::default())]);
    assert!(message(&host).contains("deprecated"));
}

#[test]
fn launches_need_relocatable_code_and_a_new_architecture() {
    let header = r#"__global__ void child(int* out) { *out = 1; }
__global__ void parent(int* out) { child<<<1, 1>>>(out); child<<<1, 1>>>(out); }
__device__ void helper(int* out) { child<<<1, 1>>>(out); }
void host(int* out) { parent<<<1, 1>>>(out); }
"#;
    let found = |commands: &[(&str, CompileCommand)]| -> Vec<String> {
        let mut host = Host::new();
        host.set_file("/w/a.cu".as_ref(), "#include \"k.cuh\"\n");
        let file = host.set_file("/w/k.cuh".as_ref(), header);
        set(&mut host, commands);
        let all = diagnostics(host.db(), file).iter();
        all.filter(|d| d.id == "missing-device-linking")
            .map(|d| d.message.clone())
            .collect()
    };
    let bare = CompileCommand {
        relocatable: false,
        ..command(&[90], &[])
    };
    let alone = CompileCommand {
        without_device_runtime: true,
        ..command(&[90], &[])
    };
    assert!(found(&[]).is_empty());
    assert!(found(&[("/w/a.cu", command(&[90], &[]))]).is_empty());
    assert_eq!(found(&[("/w/a.cu", bare.clone())]).len(), 2);
    // A neighbour's command says nothing certain.
    assert!(found(&[("/w/b.cu", bare.clone())]).is_empty());
    // In one of two programs.
    let both = found(&[("/w/a.cu", command(&[90], &[])), ("/w/a.cu", bare)]);
    assert!(both[0].contains("-rdc=true"), "{both:?}");
    assert!(found(&[("/w/a.cu", command(&[30, 90], &[]))])[0].contains("3.0"));
    assert!(found(&[("/w/a.cu", alone)])[0].contains("-cudadevrt none"));
}
