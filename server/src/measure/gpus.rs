//! The GPUs that programs run on side by side: those that are like the first one, each with a program of its own.

use std::path::{Path, PathBuf};

use super::place::Place;
use super::probe::Found;
use super::run::Runner;

/// GPUs of one kind, and a directory for the files of each one's programs.
pub struct Gpus {
    each: Vec<(Option<String>, PathBuf)>,
}

impl Gpus {
    /// Those that were found, with directories in `scratch`.
    ///
    /// # Errors
    /// A sentence where a directory can't be made.
    pub fn new(found: &Found, place: &Place, scratch: &Path) -> Result<Gpus, String> {
        let devices = devices(&found.alike, &place.visible_devices());
        let each = devices.into_iter().enumerate().map(|(number, device)| {
            let directory = scratch.join(format!("gpu-{number}"));
            let created = std::fs::create_dir_all(&directory);
            created.map_err(|error| format!("cannot create {}: {error}", directory.display()))?;
            Ok((device, directory))
        });
        Ok(Gpus {
            each: each.collect::<Result<_, String>>()?,
        })
    }

    /// What runs programs on each of them, otherwise as `runner` does. There is at least one.
    pub fn runners<'a>(&'a self, runner: Runner<'a>) -> Vec<Runner<'a>> {
        let each = self.each.iter().map(|(device, directory)| Runner {
            scratch: directory,
            device: device.as_deref(),
            ..runner
        });
        each.collect()
    }
}

/// What programs get as CUDA_VISIBLE_DEVICES, one for each GPU; a single one needs none.
fn devices(alike: &[usize], visible: &str) -> Vec<Option<String>> {
    if alike.len() < 2 {
        return vec![None];
    }
    let named: Vec<&str> = visible
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .collect();
    let name = |number: &usize| {
        let named = named.get(*number);
        named.map_or_else(|| number.to_string(), |name| (*name).to_owned())
    };
    alike.iter().map(|number| Some(name(number))).collect()
}

#[cfg(test)]
mod tests {
    use super::devices;

    #[test]
    fn programs_see_one_gpu_each() {
        let some = |names: &[&str]| names.iter().map(|name| Some((*name).to_owned())).collect::<Vec<_>>();
        assert_eq!(devices(&[0], "3"), [None]);
        assert_eq!(devices(&[0, 1], ""), some(&["0", "1"]));
        assert_eq!(devices(&[0, 2], "5, GPU-a,7"), some(&["5", "7"]));
    }
}
