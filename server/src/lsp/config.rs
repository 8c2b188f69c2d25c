//! The client's configuration.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use crate::files::normalize;
use crate::hints::WantedHints;

/// Section of the client's settings.
pub const SECTION: &str = "gridfuse";

/// Settings that the server reads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Config {
    /// Directories in which `#include` looks after the including file's own; relative ones start at the first workspace folder.
    pub include_dirs: Vec<PathBuf>,
    /// Which inlay hints are shown.
    pub inlay_hints: WantedHints,
}

impl Config {
    /// Reads settings, with or without the section around them. `Ok(None)`: there are none.
    pub fn read(settings: &Value) -> Result<Option<Config>, String> {
        let section = settings.get(SECTION).unwrap_or(settings);
        if section.is_null() {
            return Ok(None);
        }
        serde_json::from_value(section.clone())
            .map(Some)
            .map_err(|error| format!("gridfuse's settings are wrong and were ignored: {error}"))
    }

    /// The include directories as absolute paths.
    pub fn absolute_include_dirs(&self, root: Option<&Path>) -> Vec<PathBuf> {
        let absolute = |directory: &PathBuf| match root {
            Some(root) => normalize(&root.join(directory)),
            None => normalize(directory),
        };
        self.include_dirs.iter().map(absolute).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn reads_settings() {
        let config = Config {
            include_dirs: vec!["inc".into(), "/usr/include".into()],
            inlay_hints: WantedHints {
                arguments: Some(true),
                config: None,
            },
        };
        let dirs = json!({ "includeDirs": ["inc", "/usr/include"], "inlayHints": { "arguments": true }, "other": 1 });
        assert_eq!(Config::read(&dirs), Ok(Some(config.clone())));
        assert_eq!(Config::read(&json!({ "gridfuse": dirs })), Ok(Some(config.clone())));
        assert_eq!(Config::read(&Value::Null), Ok(None));
        assert_eq!(Config::read(&json!({ "gridfuse": null })), Ok(None));
        assert!(Config::read(&json!({ "includeDirs": "inc" })).is_err());
        assert_eq!(
            config.absolute_include_dirs(Some(Path::new("/w"))),
            [PathBuf::from("/w/inc"), PathBuf::from("/usr/include")]
        );
    }
}
