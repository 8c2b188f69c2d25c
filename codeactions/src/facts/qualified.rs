//! Names as they are written where a launch stands.

use crate::facts::child::Child;
use crate::facts::site::Site;
use gridfuse_analysis::hir::items::FunctionItem;

/// A name that stands beside the child, as the parent has to write it.
pub fn qualified(site: &Site<'_>, child: &Child<'_>, name: &str) -> String {
    let scope = |function: FunctionItem<'_>| {
        function
            .name(site.db)
            .rsplit_once("::")
            .map_or(String::new(), |(scope, _)| scope.to_owned())
    };
    let (own, parent) = (scope(child.item), scope(site.parent));
    // What is written may also be an alias, or a scope that a using-declaration has brought the child into.
    if let Some(written) = site.facts.kernel_name.as_deref()
        && let Some((scope, _)) = written.rsplit_once("::")
        && (own == scope.trim_start_matches("::") || own.ends_with(&format!("::{scope}")))
    {
        return format!("{scope}::{name}");
    }
    let inside = own.is_empty() || parent == own || parent.starts_with(&format!("{own}::"));
    if inside {
        name.to_owned()
    } else {
        format!("{own}::{name}")
    }
}
