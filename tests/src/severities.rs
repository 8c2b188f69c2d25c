//! The severities in the manifest of the extension for Visual Studio Code: one for each diagnostic that `gridfuse list` names.

use serde_json::Value;

/// Where it is, from the root.
pub const MANIFEST: &str = "editors/vscode/package.json";

const SETTING: &str = "\"gridfuse.severity\": {";
const PROPERTIES: &str = "\n            \"properties\": {\n";
const END: &str = "\n            }";

/// The manifest `text` with the severities that belong to the report of `gridfuse list --format json`; all else stays as it is.
pub fn manifest(report: &Value, text: &str) -> Result<String, String> {
    let find = |from: usize, what: &str| {
        let found = text.get(from..).and_then(|rest| rest.find(what));
        found
            .map(|at| from + at + what.len())
            .ok_or_else(|| format!("{MANIFEST} has no {}", what.trim()))
    };
    let begin = find(find(0, SETTING)?, PROPERTIES)?;
    let end = find(begin, END)? - END.len();
    let diagnostics = report["diagnostics"]
        .as_array()
        .ok_or("the report has no diagnostics")?;
    let mut entries = Vec::new();
    for diagnostic in diagnostics {
        let field = |name: &str| {
            diagnostic[name]
                .as_str()
                .ok_or_else(|| format!("a diagnostic has no `{name}`"))
        };
        let first = field("doc")?.lines().next().unwrap_or_default();
        let description = Value::from(format!("{first} Default: `{}`.", field("severity")?));
        entries.push(format!(
            "              {}: {{\n                \"type\": \"string\",\n                \"enum\": [\n                  \"off\",\n                  \
             \"info\",\n                  \"warning\",\n                  \"error\"\n                ],\n                \
             \"markdownDescription\": {description}\n              }}",
            Value::from(field("id")?)
        ));
    }
    Ok(format!("{}{}{}", &text[..begin], entries.join(",\n"), &text[end..]))
}
