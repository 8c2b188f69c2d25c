//! Which inlay hints an editor shows, as `gridfuse.toml` and the editor's settings say.

use serde::Deserialize;

/// Which hints are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hints {
    /// Of arguments. Off unless wanted: most launches have many.
    pub arguments: bool,
    /// Of grid size, block size, shared memory and stream.
    pub config: bool,
}

impl Default for Hints {
    fn default() -> Self {
        Hints {
            arguments: false,
            config: true,
        }
    }
}

/// The same as settings say it; what isn't said stays as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
#[serde(default)]
pub struct WantedHints {
    /// Of arguments.
    pub arguments: Option<bool>,
    /// Of grid size, block size, shared memory and stream.
    pub config: Option<bool>,
}

impl Hints {
    /// Changed by settings.
    pub fn with(self, wanted: WantedHints) -> Hints {
        Hints {
            arguments: wanted.arguments.unwrap_or(self.arguments),
            config: wanted.config.unwrap_or(self.config),
        }
    }
}
