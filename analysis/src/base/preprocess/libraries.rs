//! What the headers of libraries may define that aren't in the workspace: CUDA's, the language's and the system's.

use super::line::IncludeItem;

/// An `#include` that isn't found means a header of a library, which defines names of its own alone.
pub(super) fn is_of_a_library(item: &IncludeItem) -> bool {
    const DIRECTORIES: [&str; 9] = [
        "cub/",
        "thrust/",
        "cuda/",
        "cooperative_groups/",
        "nvtx3/",
        "nv/",
        "sys/",
        "bits/",
        "crt/",
    ];
    const QUOTED: [&str; 8] = [
        "cuda",
        "device_",
        "cooperative_groups",
        "curand",
        "cublas",
        "cusparse",
        "vector_",
        "nv",
    ];
    const STANDARD: [&str; 12] = [
        "stdio.h",
        "stdlib.h",
        "string.h",
        "math.h",
        "assert.h",
        "stdint.h",
        "time.h",
        "limits.h",
        "float.h",
        "stdbool.h",
        "stddef.h",
        "mma.h",
    ];
    let path = item.path.as_str();
    if item.system {
        return !path.contains('/') || DIRECTORIES.iter().any(|directory| path.starts_with(directory));
    }
    STANDARD.contains(&path)
        || !path.contains('/') && path.ends_with(".h") && QUOTED.iter().any(|start| path.starts_with(start))
}

/// A name that a library may define, or the compiler.
pub(super) fn may_be_of_a_library(name: &str) -> bool {
    const NAMES: [&str; 41] = [
        "NDEBUG",
        "WIN32",
        "WIN64",
        "linux",
        "unix",
        "i386",
        "EOF",
        "NULL",
        "NAN",
        "INFINITY",
        "HUGE_VAL",
        "BUFSIZ",
        "MIN",
        "MAX",
        "min",
        "max",
        "assert",
        "errno",
        "stdin",
        "stdout",
        "stderr",
        "true",
        "false",
        "bool",
        "complex",
        "I",
        "offsetof",
        "PI",
        "CLOCKS_PER_SEC",
        "BLOCK_SIZE",
        "PAGE_SIZE",
        "major",
        "minor",
        "EXIT_FAILURE",
        "TIME_UTC",
        "WNOHANG",
        "WUNTRACED",
        "CHAR_BIT",
        "WORD_BIT",
        "LONG_BIT",
        "PIPE_BUF",
    ];
    const STARTS: [&str; 26] = [
        "_", "CUDA", "CUDART", "CUDNN", "CUBLAS", "CUFFT", "CURAND", "CUSPARSE", "NCCL", "THRUST_", "CUB_", "NV_",
        "M_", "FLT_", "DBL_", "LDBL_", "FP_", "INT_", "UINT_", "EXIT_", "SIG", "CU_", "L_", "SEEK_", "FE_", "LC_",
    ];
    // `INT_MAX`, `SIZE_MAX`, `RAND_MAX`.
    const LIMITS: [&str; 28] = [
        "CHAR",
        "SCHAR",
        "UCHAR",
        "SHRT",
        "USHRT",
        "LONG",
        "ULONG",
        "LLONG",
        "ULLONG",
        "SIZE",
        "SSIZE",
        "PTRDIFF",
        "RAND",
        "PATH",
        "NAME",
        "WCHAR",
        "WINT",
        "LINE",
        "FOPEN",
        "TMP",
        "MB_LEN",
        "IOV",
        "OPEN",
        "ARG",
        "HOST_NAME",
        "LOGIN_NAME",
        "SYMLOOP",
        "NGROUPS",
    ];
    let limit = name.strip_suffix("_MAX").or_else(|| name.strip_suffix("_MIN"));
    NAMES.contains(&name)
        || STARTS.iter().any(|start| name.starts_with(start))
        || limit.is_some_and(|of| LIMITS.contains(&of) || of.starts_with("INT") || of.starts_with("UINT"))
}
