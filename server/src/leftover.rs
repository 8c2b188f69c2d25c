//! The runtime header of which nothing is needed any more: the last rewrite was taken back, and the last include of it is gone.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gridfuse_analysis::base::db::{Db, Workspace};
use gridfuse_codeactions::runtime::{HEADER_NAME, together};

use crate::files::{MAX_WORKSPACE_FILES, normalize};

/// A file's text before an edit and after it.
pub struct Edited<'t> {
    /// The file.
    pub path: &'t Path,
    /// Before.
    pub before: &'t str,
    /// After.
    pub after: &'t str,
}

/// The runtime headers, with their texts, that an edit leaves behind: a file included them, none does now, and nobody has edited them.
/// Headers that are found in another way than from the directory of the file stay.
pub fn headers(db: &dyn Db, edited: &[Edited<'_>]) -> Vec<(PathBuf, Arc<str>)> {
    let mut gone: Vec<PathBuf> = Vec::new();
    for file in edited {
        let still = included(file.path, file.after);
        let lost = included(file.path, file.before).into_iter();
        gone.extend(lost.filter(|header| !still.contains(header)).flatten());
    }
    let Some(workspace) = Workspace::try_get(db).filter(|_| !gone.is_empty()) else {
        return Vec::new();
    };
    let files = workspace.files(db);
    // Nobody knows what the rest includes.
    if files.len() >= MAX_WORKSPACE_FILES {
        return Vec::new();
    }
    gone.sort_unstable();
    gone.dedup();
    let commands = workspace.commands(db);
    let forced = |header: &PathBuf| {
        let mut all = commands.values().flatten();
        all.any(|command| command.forced_includes.contains(header))
    };
    let needed = |header: &PathBuf| {
        files.iter().any(|(path, file)| {
            let now = edited.iter().find(|edited| edited.path == path);
            let text = file.text(db);
            let text = now.map_or(&*text, |edited| edited.after);
            path != header
                && (included(path, text).into_iter()).any(|included| {
                    // One that is found elsewhere may be this one.
                    included.is_none_or(|included| included == *header || !files.contains_key(&included))
                })
        })
    };
    let left = gone.into_iter().filter(|header| !forced(header) && !needed(header));
    left.filter_map(|header| {
        let text = files.get(&header)?.text(db);
        is_as_written(&text).then_some((header, text))
    })
    .collect()
}

/// The runtime headers that a file includes from its own directory or one that it names from there. `None`: it mentions one in another way.
fn included(path: &Path, text: &str) -> Vec<Option<PathBuf>> {
    let directory = path.parent().unwrap_or(Path::new(""));
    let directives = text
        .trim_start_matches('\u{feff}')
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix('#'));
    let mentions = directives.filter(|line| line.contains(HEADER_NAME));
    mentions
        .map(|line| {
            let quoted = line
                .trim_start()
                .strip_prefix("include")?
                .trim_start()
                .strip_prefix('"')?;
            let (named, _) = quoted.split_once('"')?;
            Some(normalize(&directory.join(named))).filter(|header| header.ends_with(HEADER_NAME))
        })
        .collect()
}

/// This gridfuse would write the same, line ends aside.
fn is_as_written(text: &str) -> bool {
    let lines = |text: &str| text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
    together(text, text).is_some_and(|written| lines(&written) == lines(text))
}

#[cfg(test)]
mod tests {
    use gridfuse_analysis::host::Host;
    use gridfuse_codeactions::runtime::{PartSet, header};

    use super::*;

    const BEFORE: &str = "#include \"../gridfuse.cuh\"\nint a;\n";
    const AFTER: &str = "int a;\n";

    /// The headers that are left when the include goes from `/p/s/a.cu`, in a workspace with another file and this header.
    fn left(other: &str, header: &str) -> Vec<PathBuf> {
        let mut host = Host::new();
        host.set_file("/p/s/a.cu".as_ref(), BEFORE);
        host.set_file("/p/b.cu".as_ref(), other);
        host.set_file("/p/gridfuse.cuh".as_ref(), header);
        let edited = Edited {
            path: "/p/s/a.cu".as_ref(),
            before: BEFORE,
            after: AFTER,
        };
        let left = headers(host.db(), &[edited]);
        left.into_iter().map(|(path, _)| path).collect()
    }

    #[test]
    fn the_header_goes_with_the_last_include_of_it() {
        let written = header(PartSet::all());
        let gone = [PathBuf::from("/p/gridfuse.cuh")];
        assert_eq!(left("", &written), gone);
        assert_eq!(left("", &written.replace('\n', "\r\n")), gone);
        assert_eq!(left("// gridfuse.cuh is what rewrites need\n", &written), gone);
        let none: [PathBuf; 0] = [];
        for other in [
            "#include \"gridfuse.cuh\"\n",
            "  #  include \"./gridfuse.cuh\"\n",
            "\u{feff}#include \"gridfuse.cuh\"\n",
            "#include <gridfuse.cuh>\n",
            "#define RUNTIME \"gridfuse.cuh\"\n",
            "#include \"elsewhere/gridfuse.cuh\"\n",
        ] {
            assert_eq!(left(other, &written), none, "{other}");
        }
    }

    #[test]
    fn what_somebody_edited_stays() {
        let written = header(PartSet::all());
        let none: [PathBuf; 0] = [];
        assert_eq!(
            left("", &written.replacen("namespace", "/* mine */ namespace", 1)),
            none
        );
        assert_eq!(left("", &format!("// mine\n{written}")), none);
        assert_eq!(left("", "int mine;\n"), none);
    }

    #[test]
    fn who_lost_no_include_leaves_nothing() {
        let mut host = Host::new();
        host.set_file("/p/a.cu".as_ref(), AFTER);
        host.set_file("/p/gridfuse.cuh".as_ref(), header(PartSet::all()));
        let edited = Edited {
            path: "/p/a.cu".as_ref(),
            before: AFTER,
            after: "int b;\n",
        };
        assert!(headers(host.db(), &[edited]).is_empty());
    }
}
