//! What `optimize` chooses, at the times that were measured (`tests/gpu/results/`): a change of the cost model has to stand up to
//! them without a GPU. With `--nocapture` it prints the share of the best for each input.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::fs;

use gridfuse_tests::cli::gridfuse;
use gridfuse_tests::gpu::plan::{Plan, Program, Variant, launch_line, option_text};
use gridfuse_tests::gpu::record::Results;
use gridfuse_tests::workspace;

/// The choice may take at most this many times as long as the best variant that was measured, on any input.
const MOST: f64 = 1.4;
/// And in the geometric mean over all of them.
const MOST_IN_MEAN: f64 = 1.15;

/// The suffix of variants with CUDA's own limit of pending launches, which is what rewritten programs are compared with.
const DEFAULT_LIMIT: &str = "-p2048";

/// What `optimize` would do to the first launch that the plan's variants rewrite: `threshold=32`, `aggregate-grid`.
fn chosen(program: &Program) -> Option<Vec<String>> {
    let root = workspace::root();
    let at = program.launch.as_ref().and_then(|at| at.lines().first())?;
    let text = fs::read_to_string(root.join(&program.source)).unwrap();
    let place = format!("{}:{}", program.source.display(), launch_line(&text, at).unwrap());
    let report = gridfuse(root, &["explain", "--format", "json", &place])
        .expect_code(0)
        .json();
    let rewrites = report["launches"][0]["rewrites"].as_array().expect("rewrites");
    let optimize = rewrites.iter().find(|rewrite| rewrite["rewrite"] == "optimize")?;
    let steps = optimize["plan"]["steps"].as_array()?;
    Some(
        steps
            .iter()
            .map(|step| step["rewrite"].as_str().unwrap().to_owned())
            .collect(),
    )
}

/// Whether a variant does these steps.
fn does(variant: &Variant, steps: &[String]) -> bool {
    let ids = steps.iter().map(|step| step.split('=').next().unwrap_or(step));
    let values = steps
        .iter()
        .filter_map(|step| step.split_once('=').map(|(_, value)| value));
    let mut set: Vec<String> = variant.set.values().map(|value| option_text(value).unwrap()).collect();
    let mut values: Vec<String> = values.map(str::to_owned).collect();
    set.sort();
    values.sort();
    variant.apply.iter().map(String::as_str).eq(ids) && set == values
}

#[test]
fn the_cost_model_is_near_the_best_that_was_measured() {
    let root = workspace::root();
    let plan = Plan::load(&root.join("tests/gpu/plan.toml")).unwrap();
    let mut slowdowns = Vec::new();
    let mut too_slow = Vec::new();
    for program in &plan.programs {
        let path = root.join(format!("tests/gpu/results/{}.json", program.name));
        if !path.is_file() {
            continue;
        }
        let Some(steps) = chosen(program) else { continue };
        let results = Results::load(&path).unwrap();
        let same = |variant: &&Variant| variant.name.ends_with(DEFAULT_LIMIT) && does(variant, &steps);
        let by_model = format!("optimize{DEFAULT_LIMIT}");
        // Not every plan has a variant of its own; then it stands for what `optimize` was when it was measured.
        let variant = program
            .variants
            .iter()
            .find(same)
            .map_or(&by_model, |variant| &variant.name);
        for input in &results.inputs {
            let rewritten = program.variants.iter().filter(|variant| !variant.apply.is_empty());
            let times = rewritten.filter_map(|variant| results.run(&variant.name, input)?.time_ms);
            let best = times.min_by(f64::total_cmp);
            let time = results.run(variant, input).and_then(|run| run.time_ms);
            let (Some(time), Some(best)) = (time, best) else {
                continue;
            };
            let line = format!(
                "{:10} {input:12} {:28} {time:8.4} ms, best {best:8.4}: {:.2}",
                program.name,
                steps.join(" "),
                best / time
            );
            println!("{line}");
            slowdowns.push(time / best);
            if time / best > MOST {
                too_slow.push(line);
            }
        }
    }
    assert!(
        slowdowns.len() >= 20,
        "few of the programs have been measured: {}",
        slowdowns.len()
    );
    assert!(
        too_slow.is_empty(),
        "slower than {MOST} times the best:\n{}",
        too_slow.join("\n")
    );
    let mean = (slowdowns.iter().map(|slowdown| slowdown.ln()).sum::<f64>() / slowdowns.len() as f64).exp();
    println!("mean: {:.3}", 1.0 / mean);
    assert!(mean <= MOST_IN_MEAN, "{mean:.3} times the best, in the mean");
}
