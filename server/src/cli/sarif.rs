//! SARIF 2.1.0, which code scanning services and editors read.

use std::path::Path;

use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::severity::Severity;
use gridfuse_analysis::diagnostics::KINDS;
use gridfuse_analysis::diagnostics::diagnostic::{Diagnostic, Kind};
use serde_sarif::sarif::{
    ArtifactContent, ArtifactLocation, Location, Message, MultiformatMessageString, PhysicalLocation, PropertyBag,
    Region, ReportingConfiguration, ReportingDescriptor, Result, ResultLevel, Run, SCHEMA_URL, Sarif, Tool,
    ToolComponent, Version,
};

use super::project::Project;
use super::region::CharRegion;
use super::sarif_fixes::{Writing, fixes};
use crate::describe::clamp;
use crate::schema::Finding;

/// Where somebody reads about gridfuse.
const ABOUT: &str = "https://docs.rs/gridfuse";

/// The id of the base of all paths: the repository's root.
const ROOT: &str = "%SRCROOT%";

/// Makes the log of one run.
pub fn log(project: &Project, found: &[(Diagnostic, Finding)]) -> Sarif {
    let db = project.host.db();
    let repository = project.repository();
    let file = |path: &Path| match repository.path_of(path) {
        // It has no path that anything could be looked up by.
        _ if project.is_nameless(path) => ArtifactLocation::builder()
            .uri(uri(&project.show(path)))
            .description(Message::builder().text("standard input").build())
            .build(),
        Some(inside) => ArtifactLocation::builder().uri(uri(&inside)).uri_base_id(ROOT).build(),
        None => ArtifactLocation::builder()
            .uri(uri(&path.display().to_string()))
            .build(),
    };
    let region = |place: FileRange| {
        let region = CharRegion::of(db, place);
        Region::builder()
            .start_line(region.start.0)
            .start_column(region.start.1)
            .end_line(region.end.0)
            .end_column(region.end.1)
            .build()
    };
    let location = |place: FileRange, message: Option<&str>| {
        let physical = PhysicalLocation::builder()
            .artifact_location(file(place.file.path(db)))
            .region(region(place))
            .build();
        let mut location = Location::builder().physical_location(physical).build();
        location.message = message.map(|text| Message::builder().text(text).build());
        location
    };
    // The line before it and the one behind it, too.
    let around = |place: FileRange| {
        let lines = u32::try_from(place.file.text(db).lines().count()).unwrap_or(u32::MAX);
        let region = CharRegion::of(db, place);
        Region::builder()
            .start_line(region.start.0.saturating_sub(1).max(1))
            .end_line(region.end.0.saturating_add(1).min(lines).max(region.end.0))
            .build()
    };
    let primary = |place: FileRange| {
        let mut location = location(place, None);
        if let Some(physical) = &mut location.physical_location {
            let text = place.file.text(db);
            let snippet = text.get(clamp(&text, place.range)).unwrap_or_default();
            if let Some(region) = &mut physical.region {
                region.snippet = Some(ArtifactContent::builder().text(snippet).build());
            }
            physical.context_region = Some(around(place));
        }
        location
    };
    let writing = Writing {
        db,
        file: &file,
        region: &region,
        known: &|path| project.host.file(path),
    };
    let result = |(diagnostic, finding): &(Diagnostic, Finding)| {
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
            .locations(vec![primary(diagnostic.place)])
            .related_locations(related.collect::<Vec<_>>())
            .build();
        result.rule_index = rule.and_then(|index| i64::try_from(index).ok());
        let fixes = fixes(&writing, diagnostic, finding);
        result.fixes = (!fixes.is_empty()).then_some(fixes);
        result
    };
    let driver = ToolComponent::builder()
        .name("gridfuse")
        .version(env!("CARGO_PKG_VERSION"))
        .semantic_version(env!("CARGO_PKG_VERSION"))
        .information_uri(ABOUT)
        .rules(KINDS.iter().map(rule).collect::<Vec<_>>())
        .build();
    let mut run = Run::builder()
        .tool(Tool::builder().driver(driver).build())
        .results(found.iter().map(result).collect::<Vec<_>>())
        .column_kind("unicodeCodePoints")
        .build();
    run.original_uri_base_ids = repository.root.as_deref().map(|root| {
        let root = format!("{}/", uri(&root.display().to_string()).trim_end_matches('/'));
        [(ROOT.to_owned(), ArtifactLocation::builder().uri(root).build())].into()
    });
    Sarif::builder()
        .schema(SCHEMA_URL)
        .version(Version::V2_1_0.to_string())
        .runs(vec![run])
        .build()
}

/// What is said once of a kind of diagnostic.
fn rule(kind: &Kind) -> ReportingDescriptor {
    let doc = kind.doc.trim();
    let one_line = |text: &str| text.trim().replace('\n', " ");
    let summary = one_line(doc.split("\n\n").next().unwrap_or_default());
    let full = doc.split_once("## What it does\n").map_or("", |(_, rest)| rest);
    let full = one_line(
        full.split("\n## ")
            .next()
            .unwrap_or_default()
            .split("```")
            .next()
            .unwrap_or_default(),
    );
    let full = if full.is_empty() { summary.clone() } else { full };
    let level = serde_json::to_value(level(kind.severity)).unwrap_or_default();
    // What GitHub shows of a rule.
    let shown = match kind.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "recommendation",
    };
    ReportingDescriptor::builder()
        .id(kind.id)
        .name(pascal_case(kind.id))
        .short_description(MultiformatMessageString::builder().text(summary).build())
        .full_description(MultiformatMessageString::builder().text(full).build())
        .help(MultiformatMessageString::builder().text(doc).markdown(doc).build())
        .help_uri(format!(
            "https://docs.rs/crate/gridfuse/{}/source/docs/diagnostics/{}.md",
            env!("CARGO_PKG_VERSION"),
            kind.id
        ))
        .default_configuration(ReportingConfiguration::builder().level(level).build())
        .properties(
            PropertyBag::builder()
                .additional_properties([("problem.severity".to_owned(), shown.into())])
                .build(),
        )
        .build()
}

/// `launch-in-loop` is the rule `LaunchInLoop`.
fn pascal_case(id: &str) -> String {
    let word = |word: &str| match word.split_at_checked(1) {
        Some((first, rest)) => first.to_uppercase() + rest,
        None => String::new(),
    };
    id.split('-').map(word).collect()
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
    // `C:\x` is `file:///C:/x`.
    let path = &if cfg!(windows) {
        path.replace('\\', "/")
    } else {
        path.to_owned()
    };
    let drive = path.as_bytes().get(1) == Some(&b':') && path.as_bytes().get(2) == Some(&b'/');
    let path = match (drive, path.split_once(':')) {
        (true, Some((drive, rest))) => {
            out.push_str(&format!("file:///{drive}:"));
            rest
        }
        _ => path,
    };
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
        assert_eq!(super::uri("C:/x/y.cu"), "file:///C:/x/y.cu");
        assert_eq!(super::uri("a:b.cu"), "a%3Ab.cu");
    }

    #[test]
    fn names_of_rules() {
        assert_eq!(super::pascal_case("launch-in-loop"), "LaunchInLoop");
        assert_eq!(super::pascal_case("-"), "");
    }
}
