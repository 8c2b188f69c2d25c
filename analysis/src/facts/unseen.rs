//! Names of which nothing is in sight: of a header that isn't found, most often. What isn't seen may do anything: a class may wait in its
//! destructor, a macro may be a barrier or leave the function. One rule for all of them.

use std::collections::HashSet;
use std::sync::Arc;

use crate::base::db::Db;
use crate::base::db::SourceFile;
use crate::base::include::including_files;
use crate::base::include::resolve_include;
use crate::base::preprocess::IncludeItem;
use crate::base::span::Span;
use crate::base::words::words;
use crate::facts::uniformity::memory::Places;
use crate::hir::ExprId;
use crate::hir::ExprKind;
use crate::hir::Name;
use crate::hir::StmtKind;
use crate::hir::Storage;
use crate::hir::body;
use crate::hir::flow::operands;
use crate::hir::included::included_files;
use crate::hir::items::FunctionItem;
use crate::hir::items::items;
use crate::hir::library::known;
use crate::hir::names::unqualified;
use crate::hir::resolve::{Meaning, meaning};
use crate::hir::scope::hides;
use crate::hir::visible::visible;
use crate::hir::visible::visible_names;
use crate::hir::word::Word;

/// What a name would be whose definition isn't in sight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, salsa::SalsaValue)]
pub enum Role {
    /// A macro that stands for statements.
    Statement,
    /// A class of which there is an object.
    Class,
    /// A value: a constant, or a macro that computes one.
    Value,
}

/// A name of which nothing is in sight.
#[derive(Clone, Debug, PartialEq, Eq, Hash, salsa::SalsaValue)]
pub struct Unseen {
    /// The name as it is written.
    pub name: String,
    /// What it is used for.
    pub role: Role,
    /// Where, relative to the function.
    pub span: Span,
}

/// Includers of a header that are asked for headers that aren't found.
const MAX_INCLUDERS: usize = 64;

/// The names in a function's body of which nothing is in sight, but for those of functions that it calls.
#[salsa::tracked(returns(clone))]
pub fn unseen<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Arc<Vec<Unseen>> {
    let file = function.file(db);
    let body = &*body(db, function);
    let mut found = Vec::new();
    let mut statements: HashSet<ExprId> = HashSet::new();
    for stmt in &body.stmts {
        let StmtKind::Expr(expr) = &stmt.kind else { continue };
        if let ExprKind::Name(Name::Other(name)) = &body.expr(*expr).kind {
            statements.insert(*expr);
            // Standing alone, it is no value that anybody wants.
            if meaning(db, file, name) == Meaning::Unknown && !is_ambiguous(db, file, name) && known(name).is_none() {
                found.push(Unseen {
                    name: name.clone(),
                    role: Role::Statement,
                    span: body.expr(*expr).span,
                });
            }
        }
    }
    if !misses_header(db, file) {
        return Arc::new(found);
    }
    let signature = function.signature(db);
    let own = |name: &str| hides(db, function, name);
    for binding in body.bindings.iter().filter(|b| b.storage != Storage::Param) {
        let ty = &binding.ty;
        if ty.pointers == 0 && !ty.reference && !own(last_word(&ty.base)) && is_unseen_type(db, file, &ty.base) {
            found.push(Unseen {
                name: ty.base.clone(),
                role: Role::Class,
                span: binding.decl_span,
            });
        }
    }
    let places = Places { db, function, body };
    for expr in &body.exprs {
        let unseen = |ty: &str| !ty.contains(['*', '&']) && !own(last_word(ty)) && is_unseen_type(db, file, ty);
        let name = match &expr.kind {
            ExprKind::Construct { ty, .. } | ExprKind::Cast { ty, .. } if unseen(ty) => ty.clone(),
            // What may be an operator of a class, on an object that was made elsewhere.
            kind if may_be_operator(kind) => {
                let of_class = operands(kind).into_iter().find_map(|operand| {
                    let shape = places.shape(operand)?;
                    (shape.pointers == 0 && shape.dims == 0 && unseen(&shape.base)).then_some(shape.base)
                });
                let Some(name) = of_class else { continue };
                name
            }
            _ => continue,
        };
        found.push(Unseen {
            name,
            role: Role::Class,
            span: expr.span,
        });
    }
    // A member's names may be those of fields, which its class may inherit.
    if !signature.member {
        for (index, expr) in body.exprs.iter().enumerate() {
            let ExprKind::Name(Name::Other(name)) = &expr.kind else {
                continue;
            };
            let callee = || {
                let called = |e: &ExprKind| matches!(e, ExprKind::Call { callee, .. } if callee.0 as usize == index);
                body.exprs.iter().any(|e| called(&e.kind))
            };
            let plain = name == "nullptr" || is_of_standard(name) || own(unqualified(name));
            if !plain
                && !statements.contains(&ExprId(index as u32))
                && meaning(db, file, name) == Meaning::Unknown
                && !is_ambiguous(db, file, name)
                && !callee()
            {
                found.push(Unseen {
                    name: name.clone(),
                    role: Role::Value,
                    span: expr.span,
                });
            }
        }
    }
    Arc::new(found)
}

/// What several definitions of a macro may mean is said elsewhere.
fn is_ambiguous(db: &dyn Db, file: SourceFile, name: &str) -> bool {
    visible_names(db, file).ambiguous_macros.contains(unqualified(name))
}

/// A type's name without scopes and template arguments.
fn last_word(ty: &str) -> &str {
    words(ty.split('<').next().unwrap_or("")).last().unwrap_or("")
}

fn may_be_operator(kind: &ExprKind) -> bool {
    matches!(
        kind,
        ExprKind::Binary(..)
            | ExprKind::Logical { .. }
            | ExprKind::Unary(..)
            | ExprKind::Assign { .. }
            | ExprKind::IncDec { .. }
            | ExprKind::Deref(_)
            | ExprKind::Index { .. }
            | ExprKind::Comma(..)
            | ExprKind::Field { arrow: true, .. }
            | ExprKind::Call { name: None, .. }
    )
}

/// Whether an object's type is a class of which nothing is in sight, or holds objects of one.
fn is_unseen_type(db: &dyn Db, file: SourceFile, ty: &str) -> bool {
    is_unseen_within(db, file, ty, 0)
}

/// How deep classes are looked into that hold objects of others.
const MAX_DEPTH: u32 = 8;

fn is_unseen_within(db: &dyn Db, file: SourceFile, ty: &str, depth: u32) -> bool {
    let keyword = |word: &&str| {
        matches!(
            *word,
            "const" | "volatile" | "struct" | "class" | "enum" | "union" | "typename"
        )
    };
    let name: Vec<&str> = ty.split('<').next().unwrap_or("").split_whitespace().collect();
    let name = name
        .into_iter()
        .filter(|word| !keyword(word))
        .collect::<Vec<_>>()
        .join(" ");
    let name = name.trim_start_matches("::");
    let builtin = |word: &str| {
        matches!(word, "auto" | "decltype" | "void" | "extern" | "static" | "constexpr") || is_number(word)
    };
    let last = unqualified(name);
    let blanked = visible(db, file).blanked.contains(&Word::new(last));
    if words(name).all(builtin) || is_of_standard(name) {
        return false;
    }
    if blanked || !matches!(meaning(db, file, name), Meaning::Type | Meaning::Macro(_)) {
        return true;
    }
    // A base class or a field, or what the name stands for.
    let inside =
        |ty: &str| depth < MAX_DEPTH && !ty.contains(['*', '&', '(']) && is_unseen_within(db, file, ty, depth + 1);
    let plain_alias = visible_names(db, file).aliases.get(last);
    plain_alias.is_some_and(|target| target != last && inside(target))
        || included_files(db, file).iter().any(|file| {
            let mut classes = items(db, *file)
                .types
                .iter()
                .filter(|class| class.name == last && !class.is_enum);
            classes.any(|class| {
                let bases = class.bases.trim_start_matches(':').split(',');
                let access = ["public", "private", "protected", "virtual"];
                let mut bases = bases.map(|base| {
                    let words = base.split_whitespace().filter(|word| !access.contains(word));
                    words.collect::<Vec<_>>().join(" ")
                });
                let mut fields = class
                    .fields
                    .iter()
                    .filter(|(_, declarator)| !declarator.contains(['*', '&', '(']));
                bases.any(|base| inside(&base)) || fields.any(|(ty, _)| inside(ty))
            })
        })
}

fn is_number(word: &str) -> bool {
    matches!(
        word,
        "bool"
            | "char"
            | "short"
            | "int"
            | "long"
            | "signed"
            | "unsigned"
            | "float"
            | "double"
            | "wchar_t"
            | "dim3"
            | "half"
            | "half2"
            | "uint"
            | "uchar"
            | "ushort"
            | "ulong"
    ) || word.ends_with("_t")
        || word.strip_suffix(['1', '2', '3', '4']).is_some_and(|base| {
            let base = base.strip_prefix('u').unwrap_or(base);
            matches!(
                base,
                "char" | "short" | "int" | "long" | "longlong" | "float" | "double"
            )
        })
}

/// Whether a name looks like one of C++'s or CUDA's own headers.
pub(super) fn is_of_standard(name: &str) -> bool {
    let name = name.trim_start_matches("::");
    if let Some((scope, _)) = name.split_once("::") {
        return matches!(
            scope.trim(),
            "std" | "cuda" | "cub" | "thrust" | "cooperative_groups" | "cg" | "nvcuda" | "nv" | "gridfuse"
        );
    }
    let limits = ["_MAX", "_MIN", "_EPSILON", "_BIT", "_DIG"]
        .iter()
        .any(|end| name.ends_with(end));
    let prefixes = [
        "cuda", "CUDA", "curand", "CURAND", "cublas", "__half", "__nv", "M_", "__CUDA",
    ];
    limits
        && name
            .chars()
            .all(|c| c == '_' || c.is_ascii_uppercase() || c.is_ascii_digit())
        || prefixes.iter().any(|prefix| name.starts_with(prefix))
        || matches!(
            name,
            "NULL"
                | "INFINITY"
                | "NAN"
                | "HUGE_VAL"
                | "HUGE_VALF"
                | "this"
                | "true"
                | "false"
                | "thread_block"
                | "grid_group"
                | "thread_group"
                | "coalesced_group"
                | "cluster_group"
                | "thread_block_tile"
                | "EOF"
                | "stdout"
                | "stderr"
                | "std"
                | "__FILE__"
                | "__LINE__"
                | "__func__"
                | "__FUNCTION__"
                | "__PRETTY_FUNCTION__"
                | "__CUDA_ARCH__"
                | "warpSize"
                | "CHAR_BIT"
                | "RAND_MAX"
        )
}

/// Whether a file, or one that includes it, includes a header of a project that isn't found.
#[salsa::tracked(returns(copy))]
pub fn misses_header(db: &dyn Db, file: SourceFile) -> bool {
    let misses = |file: &SourceFile| {
        let includes = &items(db, *file).includes;
        let mut missing = includes.iter().filter(|include| !is_of_toolkit(include));
        missing.any(|include| resolve_include(db, *file, include).is_none())
    };
    let includers = including_files(db, file);
    included_files(db, file).iter().any(misses)
        || includers
            .iter()
            .take(MAX_INCLUDERS)
            .any(|includer| included_files(db, *includer).iter().any(misses))
}

/// Folders of the compiler's and of CUDA's headers.
const FOLDERS: &[&str] = &[
    "cub",
    "thrust",
    "cuda",
    "nv",
    "cooperative_groups",
    "sys",
    "bits",
    "crt",
    "nvtx3",
    "nvfunctional",
    "experimental",
    "ext",
];

/// CUDA's headers, without their endings.
const OF_CUDA: &[&str] = &[
    "cuda",
    "cuda_runtime",
    "cuda_runtime_api",
    "cuda_fp16",
    "cuda_bf16",
    "cuda_fp8",
    "cuda_pipeline",
    "cuda_awbarrier",
    "cuda_device_runtime_api",
    "cuda_profiler_api",
    "cuda_occupancy",
    "cuda_gl_interop",
    "cuda_texture_types",
    "cuda_surface_types",
    "cooperative_groups",
    "device_launch_parameters",
    "device_functions",
    "device_types",
    "device_atomic_functions",
    "device_double_functions",
    "driver_types",
    "driver_functions",
    "vector_types",
    "vector_functions",
    "math_constants",
    "math_functions",
    "curand",
    "curand_kernel",
    "curand_mtgp32_kernel",
    "cublas",
    "cublas_v2",
    "cusparse",
    "cufft",
    "cusolverDn",
    "texture_types",
    "texture_fetch_functions",
    "texture_indirect_functions",
    "surface_types",
    "surface_functions",
    "surface_indirect_functions",
    "library_types",
    "builtin_types",
    "common_functions",
    "channel_descriptor",
    "host_defines",
    "host_config",
    "mma",
    "nvToolsExt",
    "nvml",
];

/// Headers of C, of its system, and the runtime header, without their endings.
const OF_C: &[&str] = &[
    "assert",
    "complex",
    "ctype",
    "errno",
    "fenv",
    "float",
    "inttypes",
    "iso646",
    "limits",
    "locale",
    "math",
    "memory",
    "setjmp",
    "signal",
    "stdalign",
    "stdarg",
    "stdatomic",
    "stdbool",
    "stddef",
    "stdint",
    "stdio",
    "stdlib",
    "string",
    "tgmath",
    "threads",
    "time",
    "uchar",
    "unistd",
    "wchar",
    "wctype",
    "malloc",
    "omp",
    "mpi",
    "pthread",
    "getopt",
    "windows",
    "strings",
    "gridfuse",
];

/// Whether a header comes with the compiler or with CUDA: what these define is known well enough.
fn is_of_toolkit(include: &IncludeItem) -> bool {
    let path = include.path.as_str();
    let (first, rest) = path.split_once('/').unwrap_or((path, ""));
    if !rest.is_empty() {
        return include.system && FOLDERS.contains(&first) || path.ends_with("/gridfuse.cuh");
    }
    match path.rsplit_once('.') {
        // `<vector>`
        None => include.system,
        Some((stem, _)) => {
            let of_architecture =
                stem.starts_with("sm_") && (stem.ends_with("intrinsics") || stem.ends_with("functions"));
            OF_C.contains(&stem) || OF_CUDA.contains(&stem) || of_architecture
        }
    }
}
