//! Where the system wants what programs remember.

use std::path::PathBuf;

/// `gridfuse/NAME` in the user's state directory. `None`: there is no such directory.
pub fn directory(name: &str) -> Option<PathBuf> {
    let variable = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let state = variable("XDG_STATE_HOME")
        .or_else(|| variable("LOCALAPPDATA"))
        .or_else(|| variable("HOME").map(|home| home.join(".local").join("state")))?;
    Some(state.join("gridfuse").join(name))
}
