//! Unified diffs that `patch -p1` and `git apply` understand.

use similar::{Algorithm, TextDiff};

/// The change of one file as a unified diff; empty when there is none. `old` is `None` for a file that is created.
pub fn unified(path: &str, old: Option<&str>, new: &str) -> String {
    difference(path, old, Some(new))
}

/// The deletion of a file as a unified diff.
pub fn deletion(path: &str, old: &str) -> String {
    difference(path, Some(old), None)
}

fn difference(path: &str, old: Option<&str>, new: Option<&str>) -> String {
    if old == new {
        return String::new();
    }
    let path = path.trim_start_matches('/');
    let name = |side: char, text: Option<&str>| match text {
        Some(_) => format!("{side}/{path}"),
        None => "/dev/null".to_string(),
    };
    TextDiff::configure()
        .algorithm(Algorithm::Patience)
        .diff_lines(old.unwrap_or_default(), new.unwrap_or_default())
        .unified_diff()
        .context_radius(3)
        .header(&name('a', old), &name('b', new))
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::{deletion, unified};

    #[test]
    fn change() {
        assert_eq!(
            unified("x.cu", Some("a\nb\nc\n"), "a\nB\nc\n"),
            "--- a/x.cu\n+++ b/x.cu\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"
        );
    }

    #[test]
    fn deletion_of_a_file() {
        assert_eq!(
            deletion("d/x.cuh", "a\n"),
            "--- a/d/x.cuh\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"
        );
    }

    #[test]
    fn creation_and_no_change() {
        assert_eq!(
            unified("/d/x.cuh", None, "a\n"),
            "--- /dev/null\n+++ b/d/x.cuh\n@@ -0,0 +1 @@\n+a\n"
        );
        assert_eq!(unified("x", Some("a"), "a"), "");
    }

    #[test]
    fn keeps_line_ends() {
        let diff = unified("x", Some("a\r\nb"), "a\r\nc");
        assert!(
            diff.contains(" a\r\n-b\n\\ No newline at end of file\n+c\n"),
            "{diff:?}"
        );
    }
}
