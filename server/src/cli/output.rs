//! Messages on standard error, and JSON on standard output.

use std::io::Write;

use annotate_snippets::{Level, Renderer};
use serde::Serialize;

use super::CliError;
use super::fitted_snippet::fitted_text;

fn message(level: Level<'static>, text: &str) {
    let group = annotate_snippets::Group::with_title(level.primary_title(text));
    // Nothing is left to do when standard error is closed.
    let rendered = Renderer::styled().render(&[group]);
    let _ = writeln!(anstream::stderr(), "{}", fitted_text(&rendered));
}

/// Says what went wrong and what to do.
pub fn error(text: &str) {
    message(Level::ERROR, text);
}

/// Says what may not be as it was meant.
pub fn warning(text: &str) {
    message(Level::WARNING, text);
}

/// Says something worth knowing.
pub fn note(text: &str) {
    message(Level::NOTE, text);
}

/// Prints a report as JSON.
pub fn json(out: &mut dyn Write, report: &impl Serialize) -> Result<(), CliError> {
    let text = serde_json::to_string_pretty(report)
        .map_err(|error| CliError::Message(format!("cannot turn the report into JSON: {error}")))?;
    writeln!(out, "{text}")?;
    Ok(())
}

/// A command as one types it in a shell.
pub fn shell(command: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,=+@%".contains(c);
    let words: Vec<String> = command
        .iter()
        .map(|word| {
            if !word.is_empty() && word.chars().all(plain) {
                word.clone()
            } else {
                format!("'{}'", word.replace('\'', r"'\''"))
            }
        })
        .collect();
    words.join(" ")
}

/// `3 launches`, `1 launch`.
pub fn count(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_for_a_shell() {
        let words = ["gridfuse", "a b.cu", "it's", ""].map(str::to_string);
        assert_eq!(shell(&words), r"gridfuse 'a b.cu' 'it'\''s' ''");
    }
}
