//! Launches that a rewrite has made into calls of a collector: `gridfuse::Aggregator<gridfuse::PerBlock, child_aggregated> children(arena);` at the
//! top of a function, and `children.launch(…)` where a launch stood.

use gridfuse_analysis::base::db::Db;
use gridfuse_analysis::base::span::Span;
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::resolve::functions_named;
use gridfuse_analysis::hir::{ExprKind, body};

/// How a declaration of a collector begins.
pub const AGGREGATOR: &str = "gridfuse::Aggregator<";

/// What rewrites call the kernel that runs what was collected of another one.
const AGGREGATED: &str = "_aggregated";

/// A collector that a function declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collector<'db> {
    /// The variable.
    pub name: String,
    /// The granularity as the header calls it: `PerBlock`, `PerMultiBlock<8>`.
    pub granularity: String,
    /// The kernel that was launched here before, or, where it is gone, the one that runs what is collected.
    pub child: FunctionItem<'db>,
    /// Its calls of `launch`, relative to the function.
    pub launches: Vec<Span>,
}

impl Collector<'_> {
    /// Whose launches become one, in words: `block`, `group of blocks`.
    pub fn group(&self) -> &'static str {
        let word = self.granularity.split('<').next().unwrap_or_default();
        match word {
            "PerWarp" => "warp",
            "PerBlock" => "block",
            "PerMultiBlock" => "group of blocks",
            _ => "grid",
        }
    }
}

/// The collectors of a function.
pub fn collectors<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<Collector<'db>> {
    let text = function.text(db);
    if !function.has_body(db) || !text.contains(AGGREGATOR) {
        return Vec::new();
    }
    let body = body(db, function);
    let declared = text.match_indices(AGGREGATOR).filter_map(|(at, start)| {
        let rest = &text[at + start.len()..];
        let close = closing(rest)?;
        let (granularity, kernel) = split_first(&rest[..close])?;
        // A function that a kernel's body has moved to takes the kernel's collector by reference.
        let name = rest[close + 1..].trim_start().trim_start_matches('&').trim_start();
        let name = &name[..name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')?];
        // What is only mentioned in a comment or a string is no variable.
        body.bindings.iter().any(|binding| binding.name == name).then_some(())?;
        let kernel = kernel.split('<').next()?.trim();
        let child = child_of(db, function, kernel)?;
        let launches = body.exprs.iter().filter_map(|expr| {
            let ExprKind::Call { callee, .. } = &expr.kind else {
                return None;
            };
            let ExprKind::Field { base, field, .. } = &body.expr(body.strip_parens(*callee)).kind else {
                return None;
            };
            let object = body.expr(body.strip_parens(*base)).span;
            (field == "launch" && object.text(&text) == name).then_some(expr.span)
        });
        Some(Collector {
            name: name.to_owned(),
            granularity: granularity.trim().trim_start_matches("gridfuse::").to_owned(),
            child,
            launches: launches.collect(),
        })
    });
    declared.collect()
}

/// The kernel that users know: that of which `aggregated` is the aggregated form, where it is there.
fn child_of<'db>(db: &'db dyn Db, function: FunctionItem<'db>, aggregated: &str) -> Option<FunctionItem<'db>> {
    let kernel = |name: &str| {
        let found = functions_named(db, function.file(db), name);
        let mut kernels = found.into_iter().filter(|f| f.has_body(db) && f.signature(db).kernel);
        kernels.next()
    };
    let plain = aggregated.strip_suffix(AGGREGATED).and_then(kernel);
    plain.or_else(|| kernel(aggregated))
}

/// The function is a kernel's body that a rewrite has moved, and collects.
pub fn runs_for_a_collector(db: &dyn Db, function: FunctionItem<'_>) -> bool {
    let text = function.text(db);
    let parameters = function.signature(db).params_span.text(&text);
    parameters.contains(AGGREGATOR)
}

/// The kernel whose body a function is, where a rewrite has moved it there; else the function itself.
pub fn kernel_of<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> FunctionItem<'db> {
    let moved = runs_for_a_collector(db, function).then(|| function.name(db));
    let kernel = moved.and_then(|name| name.rsplit_once('_')).and_then(|(name, _)| {
        let mut found = functions_named(db, function.file(db), name).into_iter();
        found.find(|f| f.has_body(db) && f.signature(db).kernel)
    });
    kernel.unwrap_or(function)
}

/// Where the template's arguments end.
fn closing(rest: &str) -> Option<usize> {
    let mut depth = 0u32;
    for (at, c) in rest.char_indices() {
        match c {
            '<' | '(' => depth += 1,
            '>' if depth == 0 => return Some(at),
            '>' | ')' => depth = depth.checked_sub(1)?,
            ';' | '{' => return None,
            _ => {}
        }
    }
    None
}

/// The first argument, and the rest.
fn split_first(arguments: &str) -> Option<(&str, &str)> {
    let mut depth = 0u32;
    for (at, c) in arguments.char_indices() {
        match c {
            '<' | '(' => depth += 1,
            '>' | ')' => depth = depth.checked_sub(1)?,
            ',' if depth == 0 => return Some((&arguments[..at], &arguments[at + 1..])),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use gridfuse_analysis::hir::items::items;
    use gridfuse_analysis::host::Host;

    use super::{collectors, kernel_of};

    #[test]
    fn collectors_are_seen_with_their_launches() -> Result<(), &'static str> {
        let program = r#"
__global__ void child(int* out, int n) { out[n] = 1; }
__global__ void child_aggregated(gridfuse::Batch<child_args> batch, int* out) {}
template <class T> __global__ void other_aggregated(gridfuse::Batch<other_args> batch, T* out) {}
__device__ void parent_body(gridfuse::Aggregator<gridfuse::PerGrid, child_aggregated>& parents, int n) {
    parents.launch(1, 32, {n});
}
__global__ void parent(int* out, int n, gridfuse::Arena arena) {
    // gridfuse::Aggregator<gridfuse::PerBlock, child_aggregated> no(arena);
    gridfuse::Aggregator<gridfuse::PerMultiBlock<8>, child_aggregated> children(arena, out);
    gridfuse::Aggregator<gridfuse::PerGrid, other_aggregated<int>> others(arena, out);
    if (n > 0) children.launch(1, 32, {n});
    children.launch(1, 32, {n + 1});
    others.launch(1, 32, {n});
}
"#;
        let mut host = Host::new();
        let file = host.set_file("/a.cu".as_ref(), program);
        let db = host.db();
        let functions = &items(db, file).functions;
        let parent = functions.iter().find(|f| f.name(db) == "parent").ok_or("no kernel")?;
        let found = collectors(db, *parent);
        let told: Vec<_> = found
            .iter()
            .map(|c| (c.name.as_str(), c.group(), c.child.name(db), c.launches.len()))
            .collect();
        let expected = [
            ("children", "group of blocks", "child", 2),
            ("others", "grid", "other_aggregated", 1),
        ];
        assert_eq!(told, expected);
        let child = functions.iter().find(|f| f.name(db) == "child").ok_or("no kernel")?;
        assert_eq!(collectors(db, *child), []);
        let body = functions
            .iter()
            .find(|f| f.name(db) == "parent_body")
            .ok_or("no function")?;
        assert_eq!(kernel_of(db, *body), *parent);
        assert_eq!(kernel_of(db, *child), *child);
        assert_eq!(collectors(db, *body).iter().map(|c| c.launches.len()).sum::<usize>(), 1);
        Ok(())
    }
}
