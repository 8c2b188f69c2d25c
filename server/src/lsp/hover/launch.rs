//! A launch in Markdown: what is known about it, its operands, and what every rewrite says.

use super::super::markdown::{code, link, note, table, words};
use super::super::pages::Pages;
use super::super::state::Snapshot;
use crate::describe::{dependence_rows, launching, plural, recursion, told_rewrites};
use crate::glance::{Glance, glance};
use crate::schema::{Launch, Operand, RewriteVerdict, Uniformity};

/// The text about a launch: the answer first, then what it is made of. `measured` says how much a rewrite has brought, where that is known.
pub fn markdown(launch: &Launch, measured: &str, snapshot: &Snapshot) -> String {
    let home = launch.place.path.as_str();
    let name = launch.child.name.as_deref().unwrap_or("(computed)");
    let mut out = format!("**launch of `{name}`**");
    match (launch.child.status, launch.child.definitions.first()) {
        ("known", Some(child)) => out.push_str(&format!(" ({})", link(&child.place, home))),
        ("ambiguous", _) => out.push_str(" (several definitions fit)"),
        _ => out.push_str(" (no definition found)"),
    }
    out.push_str(&format!(
        " in `{}`: {}, {} per grid\n\n",
        launch.parent.name,
        launching(launch.who),
        code(&launch.count.per_grid)
    ));
    if !launch.rewrites.is_empty() {
        out.push_str(&answer(&glance(launch), Glance::obstacle(launch), measured));
        out.push_str("---\n\n");
    }
    out.push_str(&table(&["", ""], &facts(launch, home)));
    out.push('\n');
    out.push_str(&operands(launch, home));
    let rows = dependences(launch, home);
    if !rows.is_empty() {
        out.push('\n');
        out.push_str(&table(&["dependence", "", "because"], &rows));
    }
    if !launch.rewrites.is_empty() {
        out.push('\n');
        out.push_str(&rewrites(told_rewrites(launch), home, &snapshot.pages));
    }
    out
}

/// Whether something can be done, what is best, how much it brought, and what it takes for granted; `obstacle`: why nothing can be done.
pub fn answer(glance: &Glance<'_>, obstacle: Option<String>, measured: &str) -> String {
    let mut out = format!("**{}**", words(&glance.sentence()));
    if !measured.is_empty() {
        out.push_str(&format!(" — {}", words(measured)));
    }
    out.push_str("\n\n");
    let line = match glance.best {
        Some(_) => glance
            .assumptions()
            .map(|assumptions| format!("Takes for granted: {assumptions}.")),
        None => obstacle.map(|obstacle| format!("Mostly because {obstacle}.")),
    };
    if let Some(line) = line {
        out.push_str(&format!("{}\n\n", words(&line)));
    }
    out
}

fn facts(launch: &Launch, home: &str) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    let mut row = |what: &str, text: String| rows.push(vec![format!("*{what}*"), text]);
    row("reached", reached(&launch.divergence, home));
    if let Some(first) = launch.loops.first() {
        row("in a loop", link(first, home));
    }
    let count = &launch.count;
    row(
        "launches",
        format!(
            "{} per thread, {} per block, {} per grid",
            code(&count.per_thread),
            code(&count.per_block),
            code(&count.per_grid)
        ),
    );
    let from = launch.threads.as_ref().map(|threads| match threads.text.as_str() {
        same if same == count.child_threads => String::new(),
        text => format!(", for {} items", code(text)),
    });
    let threads = plural(&count.child_threads, "thread");
    let (number, word) = threads.rsplit_once(' ').unwrap_or_default();
    row(
        "child grid",
        format!("{} {word}{}", code(number), from.unwrap_or_default()),
    );
    if launch.recursive {
        row("recursion", recursion(count));
    }
    let stream = match launch.stream {
        "null" => "NULL: grids that the threads of a block launch run one at a time".to_string(),
        "fire-and-forget" => "fire-and-forget: ordered with nothing".to_string(),
        "tail-launch" => "tail launch: after this grid and its other children".to_string(),
        other => other.to_string(),
    };
    row("stream", stream);
    if launch.conditional {
        row("conditional", "in an alternative of `#if`".to_string());
    }
    rows
}

/// Which threads get there, and why not all.
pub fn reached(divergence: &Uniformity, home: &str) -> String {
    let cause = divergence.why.as_ref();
    let cause = cause.map(|cause| format!(": {}", note(cause, home)));
    format!("{}{}", divergence.level, cause.unwrap_or_default())
}

fn dependences(launch: &Launch, home: &str) -> Vec<Vec<String>> {
    dependence_rows(launch)
        .into_iter()
        .map(|row| {
            let places: Vec<String> = row.places.iter().map(|place| note(place, home)).collect();
            let because = match places.as_slice() {
                [] => words(row.because),
                places => format!("{}: {}", words(row.because), places.join(", ")),
            };
            vec![words(&row.of), row.verdict.to_string(), because]
        })
        .collect()
}

fn operands(launch: &Launch, home: &str) -> String {
    let mut rows = vec![
        operand("*grid*", &launch.grid.operand, home),
        operand("*block*", &launch.block.operand, home),
    ];
    if let Some(shared) = &launch.shared {
        rows.push(operand("*shared memory*", shared, home));
    }
    for (index, arg) in launch.args.iter().enumerate() {
        let name = arg.parameter.as_deref();
        let name = name.map_or_else(|| format!("{}", index + 1), code);
        rows.push(operand(&name, arg, home));
    }
    table(&["", "value", "uniformity", "why"], &rows)
}

fn operand(what: &str, operand: &Operand, home: &str) -> Vec<String> {
    let mut why = whys(&operand.uniformity, home);
    if operand.changes_in_loop {
        why.push("changes in the loop".to_string());
    }
    value(what, &operand.text, &operand.uniformity, &why)
}

/// A row about a value.
pub fn value(what: &str, text: &str, uniformity: &Uniformity, why: &[String]) -> Vec<String> {
    vec![
        what.to_string(),
        code(text),
        uniformity.level.to_string(),
        why.join("; "),
    ]
}

/// Why a value isn't more uniform, and what its level takes for granted.
pub fn whys(uniformity: &Uniformity, home: &str) -> Vec<String> {
    let mut why: Vec<String> = uniformity.why.iter().map(|cause| note(cause, home)).collect();
    for cause in &uniformity.assumes {
        let first = uniformity.assumes.iter().find(|other| other.text == cause.text);
        // Several places may need the same: it is said of the first.
        if first.is_some_and(|first| std::ptr::eq(first, cause)) {
            why.push(format!("assumes {}", note(cause, home)));
        }
    }
    why
}

/// Verdicts with numbers for the reasons, which come below, each once: several rewrites mostly share them.
pub fn rewrites<'a>(verdicts: impl Iterator<Item = &'a RewriteVerdict>, home: &str, pages: &Pages) -> String {
    let mut reasons: Vec<String> = Vec::new();
    let mut rows = Vec::new();
    for rewrite in verdicts {
        let mut numbers: Vec<String> = Vec::new();
        for reason in &rewrite.reasons {
            let text = note(reason, home);
            let known = reasons.iter().position(|known| *known == text);
            let index = known.unwrap_or_else(|| {
                reasons.push(text);
                reasons.len() - 1
            });
            let number = format!("({})", index + 1);
            // Two places in one line read the same.
            if !numbers.contains(&number) {
                numbers.push(number);
            }
        }
        let title = words(&rewrite.title);
        let title = match pages.rewrite(rewrite.rewrite) {
            Some(page) => format!("[{title}]({page})"),
            None => title,
        };
        let verdict = match rewrite.word() {
            "eligible" => "✓ fits",
            "contradicted" => "✗ the code contradicts it:",
            "assumes" => "✓ fits, if",
            _ => "✗ doesn't fit:",
        };
        rows.push(vec![title, verdict.to_string(), numbers.join(" ")]);
    }
    let mut out = table(&["rewrite", "", ""], &rows);
    for (index, reason) in reasons.iter().enumerate() {
        out.push_str(&format!("\n({}) {reason}  ", index + 1));
    }
    out
}
