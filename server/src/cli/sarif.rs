//! SARIF 2.1.0, which code scanning services and editors read.

use gridfuse_analysis::base::db::Database;
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::severity::Severity;
use gridfuse_analysis::diagnostics::KINDS;
use gridfuse_analysis::diagnostics::diagnostic::Diagnostic;
use serde_sarif::sarif::{
    ArtifactLocation, Location, Message, MultiformatMessageString, PhysicalLocation, Region, ReportingConfiguration,
    ReportingDescriptor, Result, ResultLevel, Run, SCHEMA_URL, Sarif, Tool, ToolComponent, Version,
};

use super::region::CharRegion;

/// Makes the log of one run; `show` gives a file's path as it's to be reported.
pub fn log(db: &Database, show: &dyn Fn(&std::path::Path) -> String, found: &[&Diagnostic]) -> Sarif {
    let rules: Vec<ReportingDescriptor> = KINDS
        .iter()
        .map(|kind| {
            let doc = kind.doc.trim();
            let summary = doc.split("\n\n").next().unwrap_or_default().replace('\n', " ");
            let level = serde_json::to_value(level(kind.severity)).unwrap_or_default();
            ReportingDescriptor::builder()
                .id(kind.id)
                .short_description(MultiformatMessageString::builder().text(summary).build())
                .help(MultiformatMessageString::builder().text(doc).markdown(doc).build())
                .default_configuration(ReportingConfiguration::builder().level(level).build())
                .build()
        })
        .collect();
    let location = |place: FileRange, message: Option<&str>| {
        let region = CharRegion::of(db, place);
        let region = Region::builder()
            .start_line(region.start.0)
            .start_column(region.start.1)
            .end_line(region.end.0)
            .end_column(region.end.1)
            .build();
        let path = show(place.file.path(db));
        let physical = PhysicalLocation::builder()
            .artifact_location(ArtifactLocation::builder().uri(uri(&path)).build())
            .region(region)
            .build();
        let mut location = Location::builder().physical_location(physical).build();
        location.message = message.map(|text| Message::builder().text(text).build());
        location
    };
    let results: Vec<Result> = found
        .iter()
        .map(|diagnostic| {
            let text = match &diagnostic.help {
                Some(help) => format!("{}. Help: {help}.", diagnostic.message),
                None => format!("{}.", diagnostic.message),
            };
            let related = diagnostic.related.iter().map(|r| location(r.place, Some(&r.message)));
            let rule = KINDS.iter().position(|kind| kind.id == diagnostic.id);
            let mut result = Result::builder()
                .rule_id(diagnostic.id)
                .level(level(diagnostic.severity))
                .message(Message::builder().text(text).build())
                .locations(vec![location(diagnostic.place, None)])
                .related_locations(related.collect::<Vec<_>>())
                .build();
            result.rule_index = rule.and_then(|index| i64::try_from(index).ok());
            result
        })
        .collect();
    let driver = ToolComponent::builder()
        .name("gridfuse")
        .version(env!("CARGO_PKG_VERSION"))
        .rules(rules)
        .build();
    let run = Run::builder()
        .tool(Tool::builder().driver(driver).build())
        .results(results)
        .column_kind("unicodeCodePoints")
        .build();
    Sarif::builder()
        .schema(SCHEMA_URL)
        .version(Version::V2_1_0.to_string())
        .runs(vec![run])
        .build()
}

fn level(severity: Severity) -> ResultLevel {
    match severity {
        Severity::Error => ResultLevel::Error,
        Severity::Warning => ResultLevel::Warning,
        Severity::Info => ResultLevel::Note,
    }
}

/// A path as a URI reference.
fn uri(path: &str) -> String {
    let mut out = String::new();
    if path.starts_with('/') {
        out.push_str("file://");
    }
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn paths_become_uris() {
        assert_eq!(super::uri("a b/ü(1).cu"), "a%20b/%C3%BC%281%29.cu");
        assert_eq!(super::uri("/x/y.cu"), "file:///x/y.cu");
    }
}
