//! A measurement in words: the same in the terminal, in reports and in editors.

use super::compare::Difference;
use super::kernels;
use super::report::{Agreement, BuildMessage, NotShown, Outcome, Report, Variant};

/// At most this many of a compiler's messages are shown.
const MAX_MESSAGES: usize = 5;

/// `0.0123`, `1.23`, `123`: three digits that say something.
pub fn milliseconds(ms: f64) -> String {
    let digits = if ms > 0.0 {
        (2.0 - ms.log10().floor()).clamp(0.0, 6.0) as usize
    } else {
        3
    };
    format!("{ms:.digits$}")
}

/// `20.0×`, `0.85×`
pub fn times(speedup: f64) -> String {
    if speedup < 1.0 {
        format!("{speedup:.2}×")
    } else if speedup < 100.0 {
        format!("{speedup:.1}×")
    } else {
        format!("{speedup:.0}×")
    }
}

/// How many times faster than the original a program is; `None`: one of them has no time.
pub fn speedup(report: &Report, outcome: &Outcome) -> Option<f64> {
    let (original, own) = (report.original.median()?, outcome.median()?);
    (own > 0.0).then(|| original / own)
}

/// The fastest rewritten program that computes the same as the original, and its speedup.
pub fn best(report: &Report) -> Option<(&Variant, f64)> {
    let right = |variant: &&Variant| match &variant.outcome {
        Outcome::Ran(run) => matches!(run.agreement, Agreement::Agrees { .. }),
        _ => false,
    };
    let variants = report.variants.iter().filter(right);
    let with_speedup = variants.filter_map(|variant| Some((variant, speedup(report, &variant.outcome)?)));
    with_speedup.max_by(|(_, a), (_, b)| a.total_cmp(b))
}

/// The fastest rewritten program, and its GPU time, where the original didn't come to its end; it ends well, and agrees with others.
pub fn fastest_alone(report: &Report) -> Option<(&Variant, f64)> {
    let right = |variant: &&Variant| match &variant.outcome {
        Outcome::Ran(run) => matches!(run.agreement, Agreement::NotShown(_)) && !variant.outcome.is_bad(),
        _ => false,
    };
    let variants = report.variants.iter().filter(right);
    let with_time = variants.filter_map(|variant| Some((variant, variant.outcome.median()?)));
    with_time.min_by(|(_, a), (_, b)| a.total_cmp(b))
}

/// What the whole measurement says, in a sentence.
pub fn summary(report: &Report) -> String {
    let gpu = &report.machine.gpu;
    let wrong: Vec<&str> = report
        .variants
        .iter()
        .filter(|variant| variant.outcome.is_bad())
        .map(|variant| variant.rewrites.as_str())
        .collect();
    let mut text = match best(report) {
        Some((variant, speedup)) if speedup > 1.0 => {
            format!(
                "{} is {} as fast as the original on {gpu}",
                variant.rewrites,
                times(speedup)
            )
        }
        Some((variant, speedup)) => format!(
            "no rewrite is faster than the original on {gpu}; the next is {} ({})",
            variant.rewrites,
            times(speedup)
        ),
        None if report.original.is_bad() => format!("the original {}", result(&report.original, report)),
        None => match (&report.original, fastest_alone(report)) {
            (Outcome::TimedOut { .. }, None) => {
                format!("the original {} on {gpu}", result(&report.original, report))
            }
            (Outcome::TimedOut { .. }, Some((variant, ms))) => format!(
                "the original {} on {gpu}, {} takes {} ms; that the two compute the same could not be shown",
                result(&report.original, report),
                variant.rewrites,
                milliseconds(ms)
            ),
            _ => format!("no rewrite could be compared on {gpu}"),
        },
    };
    if !wrong.is_empty() {
        text += &format!("; not right: {}", wrong.join(", "));
    }
    text
}

/// What became of a program.
pub fn result(outcome: &Outcome, report: &Report) -> String {
    match outcome {
        Outcome::Refused { reasons } => {
            format!("not applicable: {}", reasons.first().map_or("", String::as_str))
        }
        Outcome::NotBuilt { message, messages } => {
            let shown: Vec<String> = messages.iter().take(MAX_MESSAGES).map(build_message).collect();
            match (shown.as_slice(), messages.len().saturating_sub(MAX_MESSAGES)) {
                ([], _) => format!("does not compile:\n{message}"),
                (_, 0) => format!("does not compile:\n{}", shown.join("\n")),
                (_, 1) => format!("does not compile:\n{}\nand 1 more message", shown.join("\n")),
                (_, more) => format!("does not compile:\n{}\nand {more} more messages", shown.join("\n")),
            }
        }
        Outcome::Failed { message, advice } => match advice {
            Some(advice) => format!("{}\n{advice}", message.trim_end()),
            None => message.clone(),
        },
        Outcome::TimedOut { seconds } => format!("did not finish in {seconds} s"),
        Outcome::Ran(run) => agreement(&run.agreement, report),
    }
}

/// `x.cu:7: error: …`
pub fn build_message(message: &BuildMessage) -> String {
    let mut text = format!(
        "{}:{}: {}: {}",
        message.path, message.line, message.severity, message.message
    );
    if let Some(code) = &message.rewritten {
        text += &format!(" (in what the rewrite has made of it: `{code}`)");
    }
    text
}

fn agreement(agreement: &Agreement, report: &Report) -> String {
    match agreement {
        Agreement::Original => String::new(),
        Agreement::Agrees { compared: 0, .. } => "prints the same".to_owned(),
        Agreement::Agrees { compared, unstable: 0 } => format!("agrees ({compared} buffers)"),
        Agreement::Agrees { compared, unstable } => format!("agrees ({compared} buffers, {unstable} not comparable)"),
        Agreement::Differs(found) => format!("DIFFERS: {}", difference(found, report)),
        Agreement::PrintsOtherwise { expected, found } => format!("DIFFERS: prints `{found}` instead of `{expected}`"),
        Agreement::Unknown { reason } => format!("not compared: {reason}"),
        Agreement::NotShown(alone) => not_shown(alone, report),
    }
}

/// What is known of a program whose original did not come to its end.
fn not_shown(alone: &NotShown, report: &Report) -> String {
    let mut text = format!("not comparable with the original ({})", alone.reason);
    match (&alone.peer, &alone.difference, &alone.prints) {
        (None, ..) => {}
        (Some(peer), Some(found), _) => {
            text += &format!(
                "; DIFFERS from {peer}, so that one of the two is wrong: {}",
                difference(found, report)
            );
        }
        (Some(peer), None, Some((expected, found))) => {
            text += &format!(
                "; DIFFERS from {peer}, so that one of the two is wrong: prints `{found}` instead of `{expected}`"
            );
        }
        (Some(peer), None, None) => {
            let unstable = match alone.unstable {
                0 => String::new(),
                unstable => format!(", {unstable} not comparable"),
            };
            text += &format!("; agrees with {peer} ({} buffers{unstable})", alone.compared);
        }
    }
    text += &match alone.code {
        Some(code) => format!("; ends with exit code {code}"),
        None => "; ends by a signal".to_owned(),
    };
    if let Some(says) = &alone.says {
        text += &format!(", prints `{says}`");
    }
    text
}

/// `after launch 1 of parent (x.cu:23), argument 2[1] is 6 instead of 5`
pub fn difference(found: &Difference, report: &Report) -> String {
    let site = report.sites.get(found.site as usize);
    let site = site.map_or_else(String::new, |site| {
        format!(" of {} ({}:{})", site.kernel, site.path, site.line)
    });
    let element = found.element.map_or_else(String::new, |element| format!("[{element}]"));
    format!(
        "after launch {}{site}, argument {}{element} is {} instead of {}",
        found.launch + 1,
        found.argument + 1,
        found.found,
        found.expected
    )
}

/// With a capital at its start.
pub fn capital(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(chars).collect()
}

/// What was measured, where, and how.
pub fn about(report: &Report) -> String {
    let machine = &report.machine;
    let sites: Vec<String> = report
        .sites
        .iter()
        .map(|site| format!("{} ({}:{})", site.kernel, site.path, site.line))
        .collect();
    let runs = match &report.original {
        Outcome::Ran(run) => run.times_ms.len(),
        _ => 0,
    };
    let alone = report.kernel.as_ref().map_or_else(String::new, |run| {
        format!("{} run by itself as {}:{} says; ", run.kernel, run.path, run.line)
    });
    format!(
        "{alone}{}, driver for CUDA {}, built with CUDA {}; time of the launches of {} until all children are done, without each one's \
         first, median of {} runs",
        report.hardware(),
        machine.driver,
        machine.runtime,
        sites.join(", "),
        runs.max(1),
    )
}

/// The programs that tables have rows for: what can't be applied is one of the notes.
pub fn tried(report: &Report) -> impl Iterator<Item = &Variant> {
    let is_tried = |variant: &&Variant| !matches!(variant.outcome, Outcome::Refused { .. });
    report.variants.iter().filter(is_tried)
}

/// What can't be applied, as sentences: several rewrites are mostly refused for one reason.
fn refused(report: &Report) -> Vec<String> {
    let mut by_reason: Vec<(&str, Vec<&str>)> = Vec::new();
    for variant in &report.variants {
        let Outcome::Refused { reasons } = &variant.outcome else {
            continue;
        };
        let reason = reasons.first().map_or("", String::as_str);
        // `aggregate-block: it's too late`
        let text = match reason.split_once(": ") {
            Some((id, text)) if variant.rewrites.split('+').any(|own| own == id) => text,
            _ => reason,
        };
        match by_reason.iter_mut().find(|(known, _)| *known == text) {
            Some((_, names)) => names.push(&variant.rewrites),
            None => by_reason.push((text, vec![&variant.rewrites])),
        }
    }
    let sentence = |(reason, names): (&str, Vec<&str>)| match reason {
        "" => format!("{} can't be applied", names.join(", ")),
        reason => format!("{} can't be applied: {reason}", names.join(", ")),
    };
    by_reason.into_iter().map(sentence).collect()
}

/// What else has to be known.
pub fn notes(report: &Report) -> Vec<String> {
    let mut notes = Vec::new();
    if report.deterministic == Some(false) {
        notes.push("two runs of the original disagree: what differs between them was not compared".to_owned());
    }
    let alone = |variant: &&Variant| match &variant.outcome {
        Outcome::Ran(run) => matches!(run.agreement, Agreement::NotShown(_)),
        _ => false,
    };
    if report.variants.iter().any(|variant| alone(&variant)) {
        notes.push(
            "the original gives nothing to compare with: rewritten programs are compared with the first of them that came to its end, and \
             their own checks count; that they compute what the original would is not shown"
                .to_owned(),
        );
    }
    for left in &report.left_out {
        notes.push(format!(
            "not measured: the launch at {}:{}: {}",
            left.path, left.line, left.reason
        ));
    }
    let variants = report
        .variants
        .iter()
        .map(|variant| (variant.rewrites.as_str(), &variant.outcome));
    for (name, outcome) in std::iter::once(("the original", &report.original)).chain(variants) {
        let Outcome::Ran(run) = outcome else { continue };
        for error in &run.errors {
            let mut note = format!("{name} loses launches or fails: {} ({})", error.name, error.during);
            if let Some(advice) = &error.advice {
                note += &format!(": {advice}");
            }
            notes.push(note);
        }
    }
    notes.extend(kernels::costs(report));
    for variant in &report.variants {
        if !variant.assumptions.is_empty() {
            notes.push(format!(
                "{} assumes: {}",
                variant.rewrites,
                variant.assumptions.join("; ")
            ));
        }
    }
    notes.extend(refused(report));
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits() {
        assert_eq!(milliseconds(0.012345), "0.0123");
        assert_eq!(milliseconds(1.2345), "1.23");
        assert_eq!(milliseconds(123.45), "123");
        assert_eq!(milliseconds(0.0), "0.000");
        assert_eq!(capital("no rewrite"), "No rewrite");
        assert_eq!([times(0.854), times(20.0), times(412.3)], ["0.85×", "20.0×", "412×"]);
    }
}
