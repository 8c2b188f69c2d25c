//! Whether the user trusts the workspace. What comes from one that isn't trusted is read and never executed: no compiler is started,
//! no program is built or run, and no command that leads to another machine is used. A client that knows of trust says so in the option
//! `workspaceTrusted` of `initialize`, and notifies of [`GRANTED`] when the user grants it later. With a client that doesn't know of it,
//! the user decides by giving the command.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use super::config::SECTION;

/// The notification that the workspace is trusted from now on.
pub const GRANTED: &str = "gridfuse/workspaceTrusted";

/// The option of `initialize`.
const OPTION: &str = "workspaceTrusted";

/// Whether the user trusts the workspace.
#[derive(Debug)]
pub struct Trust(AtomicBool);

impl Default for Trust {
    fn default() -> Self {
        Trust(AtomicBool::new(true))
    }
}

impl Trust {
    /// Takes over what a client says in `initialize`. What is neither yes nor no is taken for no.
    pub fn read(&self, options: &Value) {
        let section = options.get(SECTION);
        let said = [Some(options), section]
            .into_iter()
            .flatten()
            .filter_map(|part| part.get(OPTION));
        for said in said.filter(|said| !said.is_null()) {
            self.0.store(said.as_bool().unwrap_or(false), Ordering::Relaxed);
        }
    }

    /// The user trusts it from now on.
    pub fn grant(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// An error is a sentence for a user who wants to run something.
    pub fn require(&self) -> Result<(), String> {
        match self.0.load(Ordering::Relaxed) {
            true => Ok(()),
            false => {
                Err("the workspace isn't trusted: programs are built and run in trusted workspaces only".to_owned())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn clients_say_it() {
        let trusted = |options: Value| {
            let trust = Trust::default();
            trust.read(&options);
            trust.require().is_ok()
        };
        for yes in [
            Value::Null,
            json!({}),
            json!({ OPTION: null }),
            json!({ OPTION: true, "arch": "" }),
        ] {
            assert!(trusted(yes.clone()), "{yes}");
        }
        for no in [
            json!({ OPTION: false }),
            json!({ OPTION: "yes" }),
            json!({ SECTION: { OPTION: false } }),
        ] {
            assert!(!trusted(no.clone()), "{no}");
        }
        let trust = Trust::default();
        trust.read(&json!({ OPTION: false }));
        trust.grant();
        assert_eq!(trust.require(), Ok(()));
    }
}
