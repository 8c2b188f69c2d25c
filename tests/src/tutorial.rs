//! The page of `docs/` that makes a breadth-first search faster step by step: commands that have been run, the code that results, and the
//! times that `gpu-bench` has written down.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use similar::TextDiff;

use crate::cli::{Directory, gridfuse};
use crate::docs::NOTE;
use crate::examples::kernels;
use crate::gpu::plan::{At, Plan, launch_line};
use crate::gpu::record::{Results, RunStatus};
use crate::gpu::tables::milliseconds;
use crate::workspace;

/// Name of the page.
pub const NAME: &str = "tutorial.md";

const PROGRAM: &str = "bfs.cu";

/// The input of all steps.
const INPUT: &str = "rmat";

/// What comes together on the page.
struct Tutorial {
    directory: Directory,
    results: Results,
    /// The line of the launch in the program as it was.
    line: String,
    page: String,
    /// What was done, and the variant that was measured.
    rows: Vec<(String, String)>,
}

/// Makes the page: runs the commands, and looks the times up.
///
/// # Panics
/// When a command fails, when a step doesn't make what was measured, or when there is no record.
pub fn page() -> String {
    let mut tutorial = Tutorial::new();
    tutorial.look();
    tutorial.without_rewriting_much();
    tutorial.without_launches();
    tutorial.collect();
    tutorial.choose();
    tutorial.finish()
}

impl Tutorial {
    fn new() -> Tutorial {
        let root = workspace::root();
        let plan = Plan::load(&root.join("tests/gpu/plan.toml")).expect("the plan");
        let program = plan.programs.iter().find(|program| program.name == "bfs").expect("bfs");
        let text = std::fs::read_to_string(root.join(&program.source)).expect("the program");
        let launch = program.launch.as_ref().and_then(|at: &At| at.lines().first().cloned());
        let line = launch_line(&text, &launch.expect("a launch"))
            .expect("its line")
            .to_string();
        let directory = Directory::new();
        directory.write(PROGRAM, text.replace("\r\n", "\n").as_bytes());
        Tutorial {
            directory,
            results: Results::load(&root.join("tests/gpu/results/bfs.json")).expect("the record of bfs"),
            line,
            page: String::new(),
            rows: Vec::new(),
        }
    }

    /// The time of a variant whose result was right.
    fn time(&self, variant: &str) -> f64 {
        let run = self
            .results
            .run(variant, INPUT)
            .filter(|run| run.status == RunStatus::Pass);
        run.and_then(|run| run.time_ms)
            .unwrap_or_else(|| panic!("no time of {variant}"))
    }

    /// The commands by which a variant was built and run, as they are where the program lies.
    fn commands(&self, variant: &str) -> String {
        let build = self
            .results
            .builds
            .iter()
            .find(|build| build.variants.iter().any(|known| known == variant));
        let run = self.results.run(variant, INPUT).expect("a run");
        let build = build
            .expect("a build")
            .commands
            .last()
            .expect("a command")
            .replace("tests/corpus/", "");
        let run = run.command.split(" --label ").next().expect("a command");
        format!("{build}\n{run}\n")
    }

    fn say(&mut self, text: &str) {
        self.page.push_str(text);
        self.page.push_str("\n\n");
    }

    fn block(&mut self, language: &str, text: &str) {
        self.page
            .push_str(&format!("```{language}\n{}\n```\n\n", text.trim_end()));
    }

    /// One line about a variant's time, which becomes a row of the last table, too.
    fn measured(&mut self, what: &str, variant: &str) {
        let (time, first) = (self.time(variant), self.time("naive"));
        let factor = match first / time {
            _ if variant == "naive" => String::new(),
            factor if factor >= 10.0 => format!(", {factor:.0} times faster than at the beginning"),
            factor => format!(", {factor:.1} times faster than at the beginning"),
        };
        self.say(&format!("It takes **{} ms**{factor}.", milliseconds(time)));
        self.rows.push((what.to_owned(), variant.to_owned()));
    }

    /// Runs a command and shows it, without what it prints.
    fn run(&mut self, arguments: &[&str]) -> String {
        self.block("sh", &format!("gridfuse {}", arguments.join(" ")));
        // What is found isn't a failure.
        let run = gridfuse(self.directory.path(), arguments);
        assert!(matches!(run.code, Some(0 | 1)), "{}", run.story());
        run.stdout
    }

    fn text(&self) -> String {
        self.directory.read(PROGRAM)
    }

    /// A kernel of the program as it is now.
    fn kernel(&self, name: &str) -> String {
        let found = kernels(&self.text()).into_iter().find(|(known, _)| known == name);
        found.unwrap_or_else(|| panic!("no kernel {name}")).1
    }

    /// What these rewrites make of the program as it was: that is what was measured.
    fn rewritten(&self, rewrites: &[&str]) -> String {
        let other = Directory::new();
        let source =
            std::fs::read_to_string(workspace::root().join("tests/corpus").join(PROGRAM)).expect("the program");
        other.write(PROGRAM, source.as_bytes());
        let words = ["rewrite", PROGRAM, "--at", &self.line, "--in-place", "--apply"];
        gridfuse(other.path(), &[&words, rewrites].concat()).expect_code(0);
        other.read(PROGRAM)
    }

    fn look(&mut self) {
        let factor = self.time("naive-per-thread-stream") / self.time("aggregate-grid-stream-p2048");
        self.page = format!("{NOTE}\n\n# From a slow BFS to {} times faster\n\n", factor.floor());
        let vertices = self.results.run("naive", INPUT).expect("a run").report["vertices"].clone();
        let machine = &self.results.machine;
        let (gpu, cuda) = (
            machine.gpu.clone().expect("a GPU"),
            machine.cuda.clone().expect("a toolkit"),
        );
        self.say(&format!(
            "You have a breadth-first search that launches a grid from every vertex. You make it faster step by step, and see what each step \
             brings and why. Take [the program](../tests/corpus/{PROGRAM}) and type along. The rewrites need no GPU. The times are medians \
             of whole searches on an {gpu} with CUDA {cuda}, in a power-law graph of {vertices} vertices; each of these searches has found what \
             the CPU finds. `gridfuse measure` tells the times on your own GPU ([measuring](measuring.md))."
        ));
        self.say("## 1. Look at the program");
        self.say("A vertex of the current level launches `expand` over its edges, one thread for each edge.");
        let code = format!("{}\n\n{}", self.kernel("expand").trim_end(), self.kernel("bfs_level"));
        self.block("cuda", &code);
        self.say("Build it and run it, here and after each step. Launches from device code need `-rdc=true` and the library `cudadevrt`.");
        let commands = self.commands("naive");
        self.block("sh", &commands);
        self.measured("the program as it is", "naive");
        self.say("Ask what is slow:");
        let found = self.run(&["check", PROGRAM]);
        self.block("text", &found);
        self.say(
            "All threads of a block launch into the same stream, the NULL stream of their block: CUDA runs these grids in turn. And there \
             is one launch for each vertex. A launch takes longer than the work of most vertices.",
        );
    }

    fn without_rewriting_much(&mut self) {
        self.say("## 2. Let the grids run side by side");
        self.say("The compiler can give each thread a stream of its own. The code stays as it is.");
        let commands = self.commands("naive-per-thread-stream");
        self.block("sh", &commands);
        self.measured("a default stream for each thread", "naive-per-thread-stream");
        self.say("Since CUDA 12 there is something cheaper: the fire-and-forget stream. Look at the change, and leave the file as it is:");
        let line = self.line.clone();
        let diff = self.run(&[
            "rewrite",
            PROGRAM,
            "--at",
            &line,
            "--apply",
            "fire-and-forget",
            "--diff",
        ]);
        self.block("diff", &diff);
        self.measured("`fire-and-forget`", "fire-and-forget");
        self.say(
            "The grids run side by side now, but there are as many launches as before. The order of the grids was never needed; \
             [fire-and-forget](rewrites/fire-and-forget.md) says what it takes for granted.",
        );
    }

    fn without_launches(&mut self) {
        self.say("## 3. Compare with a loop");
        self.say("What does it cost to launch nothing? A thread can visit all its edges itself.");
        let line = self.line.clone();
        self.run(&[
            "rewrite",
            PROGRAM,
            "--at",
            &line,
            "--apply",
            "serialize",
            "--output",
            "serialized",
        ]);
        let serialized = self.directory.read(&format!("serialized/{PROGRAM}"));
        let parent = kernels(&serialized)
            .into_iter()
            .find(|(name, _)| name == "bfs_level")
            .expect("the parent");
        self.block("cuda", &parent.1);
        self.measured("`serialize`: a loop in each thread", "serialize");
        self.say(
            "That is what a program with dynamic parallelism has to beat. But in a power-law graph few vertices have most of the edges: one \
             thread works through them, and everybody waits for it. So launch the large grids only:",
        );
        let words = [
            "rewrite",
            PROGRAM,
            "--at",
            &line,
            "--apply",
            "threshold",
            "--set",
            "threshold=256",
            "--output",
            "threshold",
        ];
        self.run(&words);
        let thresholded = self.directory.read(&format!("threshold/{PROGRAM}"));
        let parent = kernels(&thresholded)
            .into_iter()
            .find(|(name, _)| name == "bfs_level")
            .expect("the parent");
        self.block("cuda", &parent.1);
        self.measured("`threshold` 256", "threshold-256");
        self.say(
            "There are few launches left, so the program needs no large pool of pending launches. It takes CUDA's default of 2048 with \
             `--pending 2048`: every launch is dearer with a larger pool.",
        );
        let commands = self.commands("threshold-256-p2048");
        self.block("sh", commands.lines().last().expect("a command"));
        self.measured("`threshold` 256, the default pool", "threshold-256-p2048");
        self.say("The number 256 fits this graph. For another one it is another number, and no compiler knows it ([tuning](tuning.md)).");
    }

    fn collect(&mut self) {
        self.say("## 4. Collect the launches of a block");
        self.say(
            "Better than not to launch: to launch once for many. The threads of a block write down what they would have launched, and the \
             last one launches a single grid for all. This change stays in the file, and so do those that follow.",
        );
        let line = self.line.clone();
        self.run(&[
            "rewrite",
            PROGRAM,
            "--at",
            &line,
            "--apply",
            "aggregate-block",
            "--in-place",
        ]);
        assert_eq!(self.text(), self.rewritten(&["aggregate-block"]));
        self.say("This is the parent now; the host passes the arena, in which the launches are written down.");
        let parent = self.kernel("bfs_level");
        self.block("cuda", &parent);
        self.measured("`aggregate-block`", "aggregate-block");
        self.say("From here on the pool is the default one:");
        let commands = self.commands("aggregate-block-p2048");
        self.block("sh", &commands);
        self.measured("`aggregate-block`, the default pool", "aggregate-block-p2048");
        self.say(
            "[aggregate-block](rewrites/aggregate-block.md) shows the whole result. It reads as if you had written it, and `gridfuse revert` \
             takes it back.",
        );

        self.say("## 5. Collect more");
        self.say("A block has 256 threads, so there are still many launches. Let neighbouring blocks launch together:");
        self.retune("retune-multiblock", "aggregate-multiblock");
        self.measured("`retune-multiblock`", "aggregate-multiblock-p2048");
        self.say("Or the whole grid, with one launch:");
        self.retune("retune-grid", "aggregate-grid");
        self.measured("`retune-grid`", "aggregate-grid-p2048");
        self.say("The granularity is one word in your code. There is nothing left to collect.");

        self.say("## 6. Launch nothing from the device");
        self.say(
            "One launch by the device is left in each level, and it waits for the parent's last thread. The host can do that launch: right \
             after the parent, before it knows what there will be to run.",
        );
        self.retune("retune-grid-stream", "aggregate-grid-stream");
        self.measured("`retune-grid-stream`", "aggregate-grid-stream-p2048");
        self.say(
            "The parent has no launch in its code any more, so it starts sooner. Its threads don't count each other. \
             [aggregate-grid-stream](rewrites/aggregate-grid-stream.md) says what that needs.",
        );
    }

    /// Changes the granularity in place, and shows what is different.
    fn retune(&mut self, rewrite: &str, whole: &str) {
        let before = self.text();
        let at = before
            .lines()
            .position(|line| line.contains("expands.launch("))
            .expect("a launch")
            + 1;
        self.run(&[
            "rewrite",
            PROGRAM,
            "--at",
            &at.to_string(),
            "--apply",
            rewrite,
            "--in-place",
        ]);
        let after = self.text();
        assert_eq!(
            after,
            self.rewritten(&[whole]),
            "{rewrite} doesn't make what {whole} makes"
        );
        let diff = TextDiff::from_lines(&before, &after)
            .unified_diff()
            .context_radius(0)
            .header(PROGRAM, PROGRAM)
            .to_string();
        self.block("diff", &diff);
    }

    fn choose(&mut self) {
        self.say("## 7. Know when to stop");
        self.say("A threshold brought a lot in step 3. Here it brings nothing: what it saves are launches, and there are none.");
        let at = self
            .text()
            .lines()
            .position(|line| line.contains("expands.launch("))
            .expect("a launch")
            + 1;
        let at = at.to_string();
        let words = [
            "rewrite",
            PROGRAM,
            "--at",
            &at,
            "--apply",
            "add-threshold",
            "--set",
            "threshold=16",
            "--output",
            "with-threshold",
        ];
        self.run(&words);
        let directly = self.rewritten(&["threshold,aggregate-grid-stream", "--set", "threshold=16"]);
        assert_eq!(self.directory.read(&format!("with-threshold/{PROGRAM}")), directly);
        self.measured(
            "the same with a threshold of 16",
            "threshold-16.aggregate-grid-stream-p2048",
        );
        self.say("A step that doesn't help isn't taken. The file stays as it is.");

        self.say("## 8. Let it choose");
        self.say("You needn't try all that. `optimize` chooses by what it knows about the code.");
        let optimized = self.rewritten(&["optimize"]);
        assert!(optimized.contains("gridfuse::ThreadReuseInStream<"), "{optimized}");
        let words = [
            "rewrite",
            PROGRAM,
            "--at",
            &self.line,
            "--apply",
            "optimize",
            "--in-place",
        ]
        .join(" ");
        self.say("In the program as it was at the beginning:");
        self.block("sh", &format!("gridfuse {words}"));
        self.say(
            "It goes one step further: the parent's threads run small grids as soon as they are done ([reuse-threads](rewrites/reuse-threads.md)), \
             and only large ones go to the grid that follows. [The whole change](examples/bfs.md) is among the examples, and [a newcomer's \
             BFS](newcomers.md) is measured with it. Who has a GPU asks it: `gridfuse measure` compares rewrites and checks that they compute \
             the same, `gridfuse tune` searches thresholds, factors and granularities.",
        );
        self.block(
            "sh",
            &format!("gridfuse measure {PROGRAM} --args \"--input {INPUT}\"\ngridfuse tune {PROGRAM} --args \"--input {INPUT}\""),
        );
    }

    fn finish(mut self) -> String {
        self.say("## All steps");
        let mut table = "| step | time in ms | times faster than at the beginning |\n|---|---:|---:|\n".to_owned();
        let first = self.time("naive");
        for (what, variant) in &self.rows {
            let time = self.time(variant);
            let factor = first / time;
            let factor = if factor >= 10.0 {
                format!("{factor:.0}")
            } else {
                format!("{factor:.1}")
            };
            table.push_str(&format!("| {what} | {} | {factor} |\n", milliseconds(time)));
        }
        self.page.push_str(&table);
        let (per_thread, best) = (
            self.time("naive-per-thread-stream"),
            self.time("aggregate-grid-stream-p2048"),
        );
        self.page.push_str(&format!(
            "\nThe title compares with the better of the two plain programs, the one with a stream for each thread: {} ÷ {} = {:.0}. Other inputs and \
             programs are in [the measurements](measurements.md#bfs). On a road network, where no vertex has more than a few edges, \
             `serialize` is the fastest: measure with your own data.\n\nThe rewrites take for granted that the grids of one block \
             don't rely on each other's order. The preview says so before anything changes; [assumptions](assumptions.md#launches-independent) says how you \
             check it.\n",
            milliseconds(per_thread),
            milliseconds(best),
            (per_thread / best).floor(),
        ));
        self.page
    }
}
