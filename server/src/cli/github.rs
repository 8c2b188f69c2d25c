//! Annotations for GitHub Actions: commands on standard output that mark lines of a pull request.

use std::io::{self, Write};

use gridfuse_analysis::base::db::Database;
use gridfuse_analysis::base::severity::Severity;
use gridfuse_analysis::diagnostics::diagnostic::Diagnostic;

use super::region::CharRegion;

/// Writes one annotation.
pub fn annotation(db: &Database, path: &str, diagnostic: &Diagnostic, out: &mut dyn Write) -> io::Result<()> {
    let command = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "notice",
    };
    let region = CharRegion::of(db, diagnostic.place);
    let (line, end_line) = (region.start.0, region.end.0);
    let mut place = format!("file={},line={line},endLine={end_line}", property(path));
    // Columns mean something within one line only.
    if line == end_line {
        place.push_str(&format!(",col={},endColumn={}", region.start.1, region.end.1));
    }
    let mut message = diagnostic.message.clone();
    if let Some(help) = &diagnostic.help {
        message.push_str("\nhelp: ");
        message.push_str(help);
    }
    let title = property(&format!("gridfuse {}", diagnostic.id));
    writeln!(out, "::{command} {place},title={title}::{}", data(&message))
}

fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    #[test]
    fn escapes() {
        assert_eq!(super::data("100%\n:,"), "100%25%0A:,");
        assert_eq!(super::property("a:b,c%\r"), "a%3Ab%2Cc%25%0D");
    }
}
