//! Names that are followed by a parenthesis, by what rewrites ask of them: functions of the library, words of the language, types.

use gridfuse_analysis::base::db::{Db, SourceFile};
use gridfuse_analysis::base::preprocess::MacroItem;
use gridfuse_analysis::hir::included::included_files;
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::library::library;
use gridfuse_analysis::hir::resolve::{Meaning, functions_in, meaning_in};
use gridfuse_analysis::hir::scope::hides;

use crate::edit::lex;
use crate::runtime::is_header;

/// The namespace of the runtime header with atomic operations that are called as CUDA's, and do for a warp what those do for a thread.
pub use gridfuse_analysis::hir::library::TOGETHER;

/// Whether what is called by this name in `function` depends on its arguments alone and changes nothing: a function of the library, or a
/// type of CUDA's that is made.
pub fn is_pure(db: &dyn Db, function: FunctionItem<'_>, name: &str) -> bool {
    named_pure(name) && !is_of_program(db, function, name)
}

/// The same, if the program doesn't define it.
fn named_pure(name: &str) -> bool {
    library(name).is_some_and(|known| known.is_pure()) || name == "dim3" || VECTORS.contains(&name)
}

/// Whether `name`, as it is called in `function`, is something that the program defines.
fn is_of_program(db: &dyn Db, function: FunctionItem<'_>, name: &str) -> bool {
    if hides(db, function, name) {
        return true;
    }
    let seen = included_files(db, function.file(db));
    let of_runtime = |file: SourceFile| is_header(db, file);
    let functions = functions_in(db, function, name);
    let mut files = functions.iter().map(|f| f.file(db));
    files.any(|file| seen.contains(&file) && !of_runtime(file))
        || matches!(meaning_in(db, function, name), Meaning::Macro(item) if !only_computes(&item))
}

/// A macro that is made of its parameters, numbers and operators, and so does what the function does whose name it has.
fn only_computes(item: &MacroItem) -> bool {
    let params = item.params.as_deref().unwrap_or_default();
    let mut words = lex::identifiers(&item.body);
    words.all(|word| params.iter().any(|param| param == word)) && !changes(&item.body)
}

/// `=`, `++` or `--` stands there.
fn changes(code: &str) -> bool {
    let without = ["==", "!=", "<=", ">="]
        .iter()
        .fold(code.to_owned(), |code, op| code.replace(op, " "));
    without.contains('=') || without.contains("++") || without.contains("--")
}

/// Whether a library function does nothing but load, by way of a cache of its own.
pub fn only_loads(name: &str) -> bool {
    library(name).is_some_and(|known| known.only_loads())
}

/// Whether `name`, as it is called in `function`, is a function of the library that changes none of its arguments themselves.
pub fn keeps_arguments(db: &dyn Db, function: FunctionItem<'_>, name: &str) -> bool {
    let kept = named_pure(name) || library(name).is_some_and(|known| known.keeps_arguments());
    kept && !is_of_program(db, function, name)
}

/// CUDA's vector types.
pub const VECTORS: &[&str] = &[
    "char1",
    "char2",
    "char3",
    "char4",
    "uchar1",
    "uchar2",
    "uchar3",
    "uchar4",
    "short1",
    "short2",
    "short3",
    "short4",
    "ushort1",
    "ushort2",
    "ushort3",
    "ushort4",
    "int1",
    "int2",
    "int3",
    "int4",
    "uint1",
    "uint2",
    "uint3",
    "uint4",
    "long1",
    "long2",
    "long3",
    "long4",
    "ulong1",
    "ulong2",
    "ulong3",
    "ulong4",
    "longlong1",
    "longlong2",
    "longlong3",
    "longlong4",
    "ulonglong1",
    "ulonglong2",
    "ulonglong3",
    "ulonglong4",
    "float1",
    "float2",
    "float3",
    "float4",
    "double1",
    "double2",
    "double3",
    "double4",
];

/// Types that are copied byte by byte and can be constructed in device code: the language's own and CUDA's.
pub const PLAIN_TYPES: &[&str] = &[
    "bool",
    "char",
    "signed char",
    "unsigned char",
    "short",
    "unsigned short",
    "int",
    "unsigned",
    "unsigned int",
    "long",
    "unsigned long",
    "long long",
    "unsigned long long",
    "float",
    "double",
    "size_t",
    "ptrdiff_t",
    "int8_t",
    "int16_t",
    "int32_t",
    "int64_t",
    "uint8_t",
    "uint16_t",
    "uint32_t",
    "uint64_t",
    "intptr_t",
    "uintptr_t",
    "uint",
    "ushort",
    "uchar",
    "ulong",
    "dim3",
    "cudaStream_t",
    "cudaEvent_t",
    "cudaTextureObject_t",
    "cudaSurfaceObject_t",
    "short int",
    "long int",
    "long long int",
    "unsigned short int",
    "unsigned long int",
    "unsigned long long int",
    "signed",
    "signed int",
    "wchar_t",
    "cudaError_t",
    "half",
    "__half",
    "__half2",
    "half2",
    "clock_t",
];

/// Words that are followed by a parenthesis and are no calls.
pub fn is_keyword(word: &str) -> bool {
    matches!(
        word,
        "if" | "for"
            | "while"
            | "switch"
            | "return"
            | "sizeof"
            | "alignof"
            | "decltype"
            | "static_cast"
            | "const_cast"
            | "reinterpret_cast"
            | "static_assert"
            | "noexcept"
            | "catch"
            | "defined"
            | "operator"
            | "else"
            | "do"
            | "case"
            | "goto"
            | "constexpr"
            | "auto"
            | "typename"
            | "alignas"
            | "__align__"
            | "and"
            | "or"
            | "not"
            | "new"
            | "delete"
            | "const"
            | "volatile"
            | "void"
            | "__launch_bounds__"
    )
}

/// Whether a type is one of the language's or CUDA's own.
pub fn is_plain_type(ty: &str) -> bool {
    let ty = ty.trim().trim_start_matches("const ").trim();
    let ty = ty.strip_prefix("std::").unwrap_or(ty);
    PLAIN_TYPES.contains(&ty) || VECTORS.contains(&ty)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(params: &[&str], body: &str) -> MacroItem {
        MacroItem {
            name: "min".to_owned(),
            params: Some(params.iter().map(|p| (*p).to_owned()).collect()),
            body: body.to_owned(),
        }
    }

    #[test]
    fn macros_with_a_functions_name() {
        assert!(only_computes(&item(&["a", "b"], "((a) <= (b) ? (a) : (b))")));
        assert!(!only_computes(&item(&["a", "b"], "((a) = (b))")));
        assert!(!only_computes(&item(&["a", "b"], "lesser(a, b)")));
        assert!(!only_computes(&item(&["a"], "(a++)")));
    }
}
