//! How long the analyses take, without a server: `cargo bench -p gridfuse-tests`.
#![allow(missing_docs)]

use std::path::Path;

use divan::{Bencher, black_box};
use gridfuse_analysis::base::db::SourceFile;
use gridfuse_analysis::base::span::TextRange;
use gridfuse_analysis::diagnostics::diagnostics;
use gridfuse_analysis::facts::launch::{LaunchId, launches};
use gridfuse_analysis::hir::items::items;
use gridfuse_analysis::host::Host;
use gridfuse_codeactions::api::rewrite::Options;
use gridfuse_codeactions::handlers::of_launches;
use gridfuse_tests::lsp_bench::generate::{Flavour, program, workspace};
use gridfuse_tests::lsp_bench::launch::subject;

const PATH: &str = "/bench/program.cu";

fn main() {
    divan::main();
}

/// A workspace of one program.
fn opened(lines: usize) -> (Host, SourceFile) {
    let mut host = Host::new();
    let file = host.set_file(Path::new(PATH), program(lines));
    (host, file)
}

/// Every diagnostic and every fact about a launch.
fn all_queries(host: &Host, file: SourceFile) -> usize {
    let db = host.db();
    let facts = items(db, file).functions.iter().map(|f| launches(db, *f).len());
    facts.sum::<usize>() + diagnostics(db, file).len()
}

/// What each rewrite says of the launch in the middle of a file.
fn verdicts(host: &Host, file: SourceFile) {
    let db = host.db();
    let mut found = Vec::new();
    for function in items(db, file).functions.iter().filter(|f| f.signature(db).kernel) {
        let count = u32::try_from(launches(db, *function).len()).unwrap_or_default();
        found.extend((0..count).map(|index| LaunchId {
            function: *function,
            index,
        }));
    }
    let launch = found[found.len() / 2];
    for rewrite in of_launches() {
        black_box(rewrite.verdict(db, launch, &Options::default()));
    }
}

#[divan::bench(args = [100, 1_000, 10_000], sample_count = 10)]
fn cold(bencher: Bencher<'_, '_>, lines: usize) {
    bencher
        .with_inputs(|| opened(lines))
        .bench_local_refs(|(host, file)| all_queries(host, *file));
}

#[divan::bench(args = [100, 1_000, 10_000], sample_count = 20)]
fn one_edit(bencher: Bencher<'_, '_>, lines: usize) {
    let (mut host, file) = opened(lines);
    let Some(subject) = subject(&program(lines)) else {
        return;
    };
    let at = u32::try_from(subject.same.body.start).unwrap_or_default();
    all_queries(&host, file);
    let mut inserted = 0;
    bencher.bench_local(|| {
        let new = if inserted == 0 { " int edited = 1;" } else { "" };
        let range = TextRange {
            start: at,
            end: at + inserted,
        };
        host.edit_file(Path::new(PATH), range, new);
        inserted = u32::try_from(new.len()).unwrap_or_default();
        all_queries(&host, file)
    });
}

#[divan::bench(args = [100, 1_000, 10_000], sample_count = 10)]
fn verdicts_of_all_rewrites(bencher: Bencher<'_, '_>, lines: usize) {
    bencher
        .with_inputs(|| {
            let (host, file) = opened(lines);
            all_queries(&host, file);
            (host, file)
        })
        .bench_local_refs(|(host, file)| verdicts(host, *file));
}

/// Of one launch in a workspace of programs with the same names.
#[divan::bench(args = [1, 20], sample_count = 5)]
fn verdicts_in_a_workspace(bencher: Bencher<'_, '_>, files: usize) {
    bencher
        .with_inputs(|| {
            let mut host = Host::new();
            let texts = workspace(Flavour::Programs, files).into_iter();
            let texts = texts.map(|(name, text)| (Path::new("/bench").join(name), text.into()));
            host.set_files(texts.collect());
            let file = host.set_file(Path::new(PATH), program(300));
            all_queries(&host, file);
            (host, file)
        })
        .bench_local_refs(|(host, file)| verdicts(host, *file));
}
