//! Finding CUDA's compiler.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// How the message begins that there is no compiler.
pub const NOT_FOUND: &str = "nvcc was not found:";

/// Where nvcc may be, in the order in which it's looked for: what the user said, `PATH`, `CUDA_HOME`, `CUDA_PATH`, the
/// usual places.
pub fn find(given: Option<&Path>) -> Result<PathBuf, String> {
    let from_env = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
    search(given, &from_env, Path::is_file)
}

/// The same where the user said nothing, with other variables than those of the environment.
pub fn find_by(variable: &dyn Fn(&str) -> Option<OsString>) -> Result<PathBuf, String> {
    search(None, variable, Path::is_file)
}

/// Whether one is at any of these places.
pub fn is_there(variable: &dyn Fn(&str) -> Option<OsString>, is_file: &dyn Fn(&Path) -> bool) -> bool {
    search(None, variable, is_file).is_ok()
}

fn search(
    given: Option<&Path>,
    variable: &dyn Fn(&str) -> Option<OsString>,
    is_file: impl Fn(&Path) -> bool,
) -> Result<PathBuf, String> {
    let program = if cfg!(windows) { "nvcc.exe" } else { "nvcc" };
    if let Some(given) = given {
        return if is_file(given) {
            Ok(given.to_path_buf())
        } else {
            Err(format!("there is no compiler at {}", given.display()))
        };
    }
    let path = variable("PATH").unwrap_or_default();
    let homes = ["CUDA_HOME", "CUDA_PATH"];
    let mut places: Vec<PathBuf> = env::split_paths(&path).map(|dir| dir.join(program)).collect();
    places.extend(
        homes
            .iter()
            .filter_map(|name| variable(name))
            .map(|home| Path::new(&home).join("bin").join(program)),
    );
    places.extend(
        ["/usr/local/cuda", "/opt/cuda"]
            .iter()
            .map(|home| Path::new(home).join("bin").join(program)),
    );
    places.into_iter().find(|place| is_file(place)).ok_or_else(|| {
        format!(
            "{NOT_FOUND} install the CUDA toolkit (12 or newer), and put nvcc on the PATH, set CUDA_HOME, or say \
             --nvcc FILE; or measure on a machine that has it and a GPU: `runner = \"ssh HOST\"` below [measure] in gridfuse.toml, \
             or --runner \"ssh HOST\" (`gridfuse doctor` says what else is missing)"
        )
    })
}

/// Directories with CUDA's libraries beside this nvcc, where nvcc itself may not look (installations from PyPI or conda).
pub fn library_dirs(nvcc: &Path) -> Vec<PathBuf> {
    let real = nvcc.canonicalize().unwrap_or_else(|_| nvcc.to_path_buf());
    let home = real.parent().and_then(Path::parent);
    let dirs = home.into_iter().flat_map(|home| [home.join("lib64"), home.join("lib")]);
    dirs.filter(|dir| dir.join("libcudadevrt.a").is_file()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_of_places() {
        let variable = |name: &str| match name {
            "PATH" => env::join_paths(["/a", "/b"]).ok(),
            "CUDA_HOME" => Some("/home/cuda".into()),
            _ => None,
        };
        let find = |exists: &[&str], given: Option<&str>| {
            let exists: Vec<PathBuf> = exists.iter().map(PathBuf::from).collect();
            search(given.map(Path::new), &variable, |path| {
                exists.contains(&path.to_path_buf())
            })
        };
        if cfg!(windows) {
            return;
        }
        let all = ["/b/nvcc", "/home/cuda/bin/nvcc", "/usr/local/cuda/bin/nvcc", "/x"];
        assert_eq!(find(&all, None), Ok("/b/nvcc".into()));
        assert_eq!(find(&all, Some("/x")), Ok("/x".into()));
        assert!(find(&all, Some("/y")).is_err_and(|message| message.contains("/y")));
        assert_eq!(find(&all[1..], None), Ok("/home/cuda/bin/nvcc".into()));
        assert_eq!(find(&all[2..], None), Ok("/usr/local/cuda/bin/nvcc".into()));
        assert!(find(&[], None).is_err_and(|message| message.contains("--nvcc")));
    }
}
