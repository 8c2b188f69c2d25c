//! How much of real code is rewritten: it can only become more. And what is offered compiles.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::BTreeSet;

use gridfuse_tests::cli::{Directory, gridfuse, in_parallel};
use gridfuse_tests::nvcc::Nvcc;
use gridfuse_tests::reach::{self, Launch, Offers, Record};

/// The variable that asks for every offer to be compiled; otherwise it is one in so many.
const ALL: &str = "GRIDFUSE_REACH_ALL";
const EVERY: usize = 40;

#[test]
fn no_number_falls() {
    let before = reach::recorded().expect("the record");
    let now = reach::count();
    for (half, offers) in &now {
        assert!(offers.sites >= 30, "{half} has {} launch sites only", offers.sites);
    }
    let fallen = reach::fallen(&before, &now);
    assert!(
        fallen.is_empty(),
        "{}\nIf that is meant, record it anew: {}",
        fallen.join("\n"),
        reach::COMMAND
    );
    let uncounted = reach::uncounted(&before, &now);
    assert!(
        uncounted.is_empty(),
        "{uncounted:?} has no number yet.\nIf it makes no launch faster, name it in LITTLE in tests/src/reach.rs; then write the numbers \
         down: {}",
        reach::COMMAND
    );
}

#[test]
fn a_fall_is_seen() {
    let offers = |sites, better, block| Offers {
        sites,
        better,
        rewrites: [("aggregate-block".to_owned(), block)].into(),
        ..Offers::default()
    };
    let record = |offers| Record::from([("seen".to_owned(), offers)]);
    let before = record(offers(30, 20, 10));
    assert!(reach::fallen(&before, &record(offers(31, 20, 12))).is_empty());
    assert_eq!(reach::fallen(&before, &record(offers(29, 19, 9))).len(), 3);
    assert_eq!(reach::fallen(&before, &Record::new()).len(), 3);
    assert_eq!(
        reach::uncounted(&Record::new(), &before),
        ["aggregate-block".to_owned()].into()
    );
    assert!(reach::uncounted(&before, &Record::new()).is_empty());
}

/// What `compile_commands.json` says of the programs that have one.
const CONFIGURED: [&str; 3] = ["-DTB_SIZE=64", "-DPITCH=256", "-DVARIANT=1"];

fn compile(root: &std::path::Path, file: &str) -> Result<(), String> {
    // A header is compiled with the program that includes it.
    let source = file
        .replace("expand_kernel.cuh", "app.cu")
        .replace("tsdf_blocks.cuh", "tsdf_blocks.cu")
        .replace("julia_helper.cuh", "julia_border.cu")
        .replace("raster.cuh", "soft_raster.cu")
        .replace("cell_grid.hpp", "short_range.cu")
        .replace("seedlib.cuh", "seed_extend.cu");
    let mut flags = vec!["-std=c++17", "-Xcicc", "-O0"];
    if source.starts_with("configured/") {
        flags.extend(CONFIGURED);
    }
    if source == "region_lambda.cu" {
        flags.push("-DREGION_BLOCK=128");
    }
    let compiled = Nvcc::get().check_compiles_with(&root.join(source), &flags);
    compiled.map_err(|failure| failure.to_string())
}

#[test]
fn what_is_offered_compiles() {
    let all = std::env::var_os(ALL).is_some();
    let launches: Vec<Launch> = reach::HALVES.iter().flat_map(|half| reach::launches(half)).collect();
    let mut jobs: Vec<(&Launch, Option<String>)> = Vec::new();
    let mut files = BTreeSet::new();
    let mut number = 0;
    for launch in &launches {
        if files.insert((&launch.root, &launch.file)) {
            jobs.push((launch, None));
        }
        for id in launch.offered() {
            number += 1;
            if all || number % EVERY == 0 {
                jobs.push((launch, Some(id)));
            }
        }
    }
    let failures = in_parallel(&jobs, |(launch, id)| {
        let place = format!("{}:{}", launch.file, launch.at);
        let Some(id) = id else {
            return match compile(&launch.root, &launch.file) {
                Ok(()) => String::new(),
                Err(failure) => format!("{place}: {failure}\n"),
            };
        };
        let copy = Directory::copy_of(&launch.root);
        let run = gridfuse(
            copy.path(),
            &["rewrite", &launch.file, "--at", &launch.at, "--apply", id, "--in-place"],
        );
        if run.code != Some(0) {
            return format!("{place}: {id}: {}\n", run.story());
        }
        match compile(copy.path(), &launch.file) {
            Ok(()) => String::new(),
            Err(failure) => format!("{place}: {id}: {failure}\n"),
        }
    });
    assert_eq!(failures.concat(), "");
}
