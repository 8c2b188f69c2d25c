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
    /// The `compile_commands.json`, or the directory that it is in; a relative one starts at the first workspace folder.
    pub compile_commands: Option<PathBuf>,
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
        self.include_dirs
            .iter()
            .map(|directory| absolute(root, directory))
            .collect()
    }

    /// The path of `compile_commands.json` as an absolute path.
    pub fn absolute_compile_commands(&self, root: Option<&Path>) -> Option<PathBuf> {
        self.compile_commands.as_ref().map(|path| absolute(root, path))
    }
}

fn absolute(root: Option<&Path>, path: &Path) -> PathBuf {
    match root {
        Some(root) => normalize(&root.join(path)),
        None => normalize(path),
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
            compile_commands: Some("out".into()),
        };
        let dirs = json!({
            "includeDirs": ["inc", "/usr/include"],
            "compileCommands": "out",
            "inlayHints": { "arguments": true },
            "other": 1,
        });
        assert_eq!(Config::read(&dirs), Ok(Some(config.clone())));
        assert_eq!(Config::read(&json!({ "gridfuse": dirs })), Ok(Some(config.clone())));
        assert_eq!(Config::read(&Value::Null), Ok(None));
        assert_eq!(Config::read(&json!({ "gridfuse": null })), Ok(None));
        assert!(Config::read(&json!({ "includeDirs": "inc" })).is_err());
        assert_eq!(
            config.absolute_include_dirs(Some(Path::new("/w"))),
            [PathBuf::from("/w/inc"), PathBuf::from("/usr/include")]
        );
        let out = config.absolute_compile_commands(Some(Path::new("/w")));
        assert_eq!(out, Some(PathBuf::from("/w/out")));
    }
}
