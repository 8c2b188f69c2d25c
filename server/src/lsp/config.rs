//! The client's configuration.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gridfuse_analysis::base::settings::Settings;
use gridfuse_analysis::base::severity::Severity;
use serde::Deserialize;
use serde_json::Value;

use crate::files::normalize;
use crate::hints::WantedHints;
use crate::manifest;

/// Section of the client's settings.
pub const SECTION: &str = "gridfuse";

/// Settings that the server reads. They are those of `gridfuse.toml`, in the spelling of editors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// Directories in which `#include` looks after the including file's own; relative ones start at the first workspace folder.
    pub include_dirs: Vec<PathBuf>,
    /// Which inlay hints are shown.
    pub inlay_hints: WantedHints,
    /// The `compile_commands.json`, or the directory that it is in; a relative one starts at the first workspace folder.
    pub compile_commands: Option<PathBuf>,
    /// The command that leads to the machine on which programs are measured, if it isn't what the project says.
    pub runner: Option<String>,
    /// What comes before the project's settings.
    pub overrides: Overrides,
}

/// Settings for the analyses that the client makes; what it doesn't say stays as the project says it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    arch: Option<u32>,
    cuda: Option<(u32, u32)>,
    defines: Vec<String>,
    severities: BTreeMap<String, Option<Severity>>,
    tiny_grid: Option<u64>,
    pending_launches: Option<u64>,
    nesting_depth: Option<u64>,
}

impl Overrides {
    /// Changes the project's settings.
    pub fn apply(&self, settings: &mut Settings) {
        settings.arch = self.arch.or(settings.arch);
        settings.cuda = self.cuda.or(settings.cuda);
        settings.defines.extend(self.defines.clone());
        settings.severities.extend(self.severities.clone());
        settings.tiny_grid = self.tiny_grid.unwrap_or(settings.tiny_grid);
        settings.pending_launches = self.pending_launches.or(settings.pending_launches);
        settings.nesting_depth = self.nesting_depth.or(settings.nesting_depth);
    }
}

/// `null` and an empty text are what editors send for a setting that nobody has made.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
#[serde(rename_all = "camelCase", default)]
struct Written {
    arch: Option<String>,
    cuda: Option<String>,
    include_dirs: Option<Vec<PathBuf>>,
    defines: Option<Vec<String>>,
    inlay_hints: Option<WantedHints>,
    compile_commands: Option<PathBuf>,
    measure: Option<WrittenMeasure>,
    severity: Option<BTreeMap<String, String>>,
    thresholds: Option<WrittenThresholds>,
}

#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
#[serde(rename_all = "camelCase", default)]
struct WrittenMeasure {
    runner: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
#[serde(rename_all = "camelCase", default)]
struct WrittenThresholds {
    tiny_grid: Option<u64>,
    pending_launches: Option<u64>,
    nesting_depth: Option<u64>,
}

impl Config {
    /// Reads settings, with or without the section around them. `Ok(None)`: there are none.
    pub fn read(settings: &Value) -> Result<Option<Config>, String> {
        let section = settings.get(SECTION).unwrap_or(settings);
        if section.is_null() {
            return Ok(None);
        }
        let written = serde_json::from_value(section.clone()).map_err(|error| error.to_string());
        written
            .and_then(Config::understand)
            .map(Some)
            .map_err(|error| format!("gridfuse's settings are wrong and were ignored: {error}"))
    }

    fn understand(written: Written) -> Result<Config, String> {
        let said = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
        let mut severities = BTreeMap::new();
        for (id, severity) in written.severity.unwrap_or_default() {
            manifest::known_diagnostic(&id)?;
            severities.insert(id, manifest::severity(&severity)?);
        }
        let thresholds = written.thresholds.unwrap_or_default();
        Ok(Config {
            include_dirs: written.include_dirs.unwrap_or_default(),
            inlay_hints: written.inlay_hints.unwrap_or_default(),
            compile_commands: written.compile_commands.filter(|path| !path.as_os_str().is_empty()),
            runner: said(&written.measure.unwrap_or_default().runner)
                .map(|line| manifest::runner(&line).map(|()| line))
                .transpose()?,
            overrides: Overrides {
                arch: said(&written.arch)
                    .map(|text| manifest::arch(text.trim()))
                    .transpose()?,
                cuda: said(&written.cuda)
                    .map(|text| manifest::cuda(text.trim()))
                    .transpose()?,
                defines: written
                    .defines
                    .unwrap_or_default()
                    .iter()
                    .map(|text| manifest::definition(text))
                    .collect::<Result<_, _>>()?,
                severities,
                tiny_grid: thresholds.tiny_grid,
                pending_launches: thresholds.pending_launches,
                nesting_depth: thresholds.nesting_depth,
            },
        })
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
            runner: Some("ssh gpu-server".to_owned()),
            overrides: Overrides::default(),
        };
        let dirs = json!({
            "includeDirs": ["inc", "/usr/include"],
            "compileCommands": "out",
            "inlayHints": { "arguments": true },
            "measure": { "runner": "ssh gpu-server" },
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

    /// The names of all settings that the server reads: `thresholds.tinyGrid`.
    fn known() -> Vec<String> {
        let everything = Written {
            inlay_hints: Some(WantedHints::default()),
            measure: Some(WrittenMeasure::default()),
            thresholds: Some(WrittenThresholds::default()),
            ..Written::default()
        };
        let written = serde_json::to_value(everything).unwrap_or_default();
        let groups = written.as_object().into_iter().flatten();
        let names = groups.flat_map(|(name, value)| match value.as_object() {
            Some(group) => group.keys().map(|key| format!("{name}.{key}")).collect(),
            None => vec![name.clone()],
        });
        names.collect()
    }

    #[test]
    fn every_setting_can_be_made_in_vscode_and_is_documented() {
        let editors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../editors");
        let read = |name: &str| std::fs::read_to_string(editors.join(name)).unwrap_or_default();
        let manifest: Value = serde_json::from_str(&read("vscode/package.json")).unwrap_or_default();
        let pages = manifest["contributes"]["configuration"]
            .as_array()
            .into_iter()
            .flatten();
        let settings = pages.flat_map(|page| page["properties"].as_object().into_iter().flatten());
        // What the extension itself reads.
        let own = ["enable", "server.path", "trace.server", "rewrite.confirmAssumptions"];
        let mut offered: Vec<&str> = settings
            .filter_map(|(name, _)| name.strip_prefix("gridfuse."))
            .filter(|name| !own.contains(name))
            .collect();
        let mut known = known();
        known.sort();
        offered.sort_unstable();
        assert_eq!(offered, known);
        let documented = read("README.md");
        let table = documented.split("## Settings").nth(1).unwrap_or_default();
        for name in known {
            let (group, last) = name.rsplit_once('.').unwrap_or(("", name.as_str()));
            assert!(
                table.contains(group) && table.contains(last),
                "{name} is not in editors/README.md"
            );
        }
    }

    #[test]
    fn settings_come_before_those_of_the_project() {
        let overrides = |settings: Value| Config::read(&settings).map(|config| config.unwrap_or_default().overrides);
        let mut settings = Settings {
            arch: Some(70),
            pending_launches: Some(7),
            severities: BTreeMap::from([
                ("device-sync".to_owned(), None),
                ("partial-warp".to_owned(), Some(Severity::Error)),
            ]),
            ..Settings::default()
        };
        let said = overrides(json!({
            "arch": "sm_90",
            "cuda": "12.4",
            "defines": ["X=32"],
            "severity": { "device-sync": "info" },
            "thresholds": { "tinyGrid": 64, "nestingDepth": 3, "pendingLaunches": null },
        }));
        assert!(said.is_ok_and(|said| {
            said.apply(&mut settings);
            true
        }));
        assert_eq!((settings.arch, settings.cuda), (Some(90), Some((12, 4))));
        assert_eq!(settings.defines, ["X 32"]);
        assert_eq!(settings.severity("device-sync", Severity::Error), Some(Severity::Info));
        assert_eq!(settings.severity("partial-warp", Severity::Info), Some(Severity::Error));
        assert_eq!((settings.tiny_grid, settings.pending_launches), (64, Some(7)));
        assert_eq!(settings.nesting_depth, Some(3));
        // What an editor sends where nothing is set.
        let nothing = json!({
            "arch": "", "cuda": null, "includeDirs": null, "defines": null, "compileCommands": "", "severity": {},
            "inlayHints": { "config": null, "arguments": null },
            "measure": { "runner": "" },
            "thresholds": { "tinyGrid": null, "pendingLaunches": null, "nestingDepth": null },
        });
        assert_eq!(Config::read(&nothing), Ok(Some(Config::default())));
        for (wrong, part) in [
            (json!({ "arch": "90" }), "sm_90"),
            (json!({ "cuda": "new" }), "12.4"),
            (json!({ "defines": ["3=4"] }), "X=32"),
            (json!({ "severity": { "nonsense": "off" } }), "nonsense"),
            (json!({ "severity": { "device-sync": "fatal" } }), "fatal"),
            (json!({ "thresholds": { "tinyGrid": -1 } }), "-1"),
            (json!({ "measure": { "runner": "ssh 'gpu" } }), "ssh host"),
        ] {
            assert!(overrides(wrong).is_err_and(|error| error.contains(part)), "{part}");
        }
    }
}
