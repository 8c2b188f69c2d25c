//! What functions of CUDA and the C++ library mean for moving code out of a kernel.

use gridfuse_analysis::hir::stream_ordered::{Operation, stream_ordered};

/// The behaviour of a library function, as far as rewrites care.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    /// Depends on its arguments alone and changes nothing.
    Pure,
    /// Changes memory or prints, but looks at nothing of the grid.
    Plain,
    /// A barrier of the block.
    Barrier,
    /// Exchanges data with the other threads of the warp, or waits for them.
    Warp,
    /// Waits for child grids.
    DeviceSync,
    /// Reads the error of a launch.
    Error,
    /// Orders streams by events.
    Event,
    /// Writes or copies memory when its turn in a stream has come, as grids run.
    StreamOrdered,
}

/// Looks up a function by its name as written.
pub fn library(name: &str) -> Option<Library> {
    let name = name.strip_prefix("::").unwrap_or(name);
    if GRIDFUSE.contains(&name) {
        return Some(Library::Pure);
    }
    let name = name
        .strip_prefix("cuda::std::")
        .or_else(|| name.strip_prefix("std::"))
        .or_else(|| name.strip_prefix(TOGETHER))
        .unwrap_or(name);
    if name.contains("::") {
        return None;
    }
    if PURE.contains(&name) || is_conversion(name) {
        return Some(Library::Pure);
    }
    if PLAIN.contains(&name)
        || name
            .strip_prefix("atomic")
            .is_some_and(|r| ATOMICS.contains(&scope_free(r)))
    {
        return Some(Library::Plain);
    }
    Some(match name {
        "__syncthreads" | "__syncthreads_or" | "__syncthreads_and" | "__syncthreads_count" => Library::Barrier,
        "__syncwarp" | "__activemask" | "__any" | "__all" | "__ballot" | "__shfl" | "__shfl_up" | "__shfl_down"
        | "__shfl_xor" => Library::Warp,
        _ if name.starts_with("__") && name.ends_with("_sync") => Library::Warp,
        "cudaDeviceSynchronize" | "cudaThreadSynchronize" | "cudaStreamSynchronize" | "cudaEventSynchronize" => {
            Library::DeviceSync
        }
        "cudaGetLastError" | "cudaPeekAtLastError" => Library::Error,
        _ => match stream_ordered(name)?.0 {
            Operation::Event => Library::Event,
            Operation::Set | Operation::Copy | Operation::CopyBox => Library::StreamOrdered,
        },
    })
}

/// Whether a library function does nothing but load, by way of a cache of its own.
pub fn only_loads(name: &str) -> bool {
    let loads = ["__ldg", "__ldcg", "__ldca", "__ldcs", "__ldlu", "__ldcv"];
    library(name).is_some() && (loads.contains(&name) || name.starts_with("tex"))
}

/// The namespace of the runtime header with atomic operations that are called as CUDA's, and do for a warp what those do for a thread.
pub const TOGETHER: &str = "gridfuse::warp_aggregated::";

/// Functions of the runtime header that work on their arguments alone.
const GRIDFUSE: &[&str] = &[
    "gridfuse::below_threshold",
    "gridfuse::coarsened",
    "gridfuse::coarsened_to",
];

fn scope_free(name: &str) -> &str {
    name.strip_suffix("_block")
        .or_else(|| name.strip_suffix("_system"))
        .unwrap_or(name)
}

const ATOMICS: &[&str] = &[
    "Add", "Sub", "Exch", "Min", "Max", "Inc", "Dec", "CAS", "And", "Or", "Xor",
];

/// `__float2int_rn`, `__int_as_float`, `__fadd_rn`, `make_float4`.
fn is_conversion(name: &str) -> bool {
    if let Some(rest) = name.strip_prefix("make_") {
        return VECTORS.contains(&rest);
    }
    let Some(rest) = name.strip_prefix("__") else {
        return false;
    };
    let rounded = ["_rn", "_rz", "_ru", "_rd"].iter().any(|s| rest.ends_with(s));
    let from = [
        "float", "double", "int", "uint", "ll", "ull", "half", "short", "ushort", "bfloat16", "hiloint",
    ];
    let converts = (rest.contains('2') || rest.contains("_as_")) && from.iter().any(|f| rest.starts_with(f));
    rounded || converts
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

const PURE: &[&str] = &[
    "min",
    "max",
    "abs",
    "labs",
    "llabs",
    "fabs",
    "fabsf",
    "sqrt",
    "sqrtf",
    "rsqrt",
    "rsqrtf",
    "cbrt",
    "cbrtf",
    "ceil",
    "ceilf",
    "floor",
    "floorf",
    "round",
    "roundf",
    "trunc",
    "truncf",
    "rint",
    "rintf",
    "lrint",
    "lrintf",
    "lround",
    "lroundf",
    "llrint",
    "llrintf",
    "llround",
    "llroundf",
    "nearbyint",
    "nearbyintf",
    "pow",
    "powf",
    "exp",
    "expf",
    "exp2",
    "exp2f",
    "exp10",
    "exp10f",
    "expm1",
    "expm1f",
    "log",
    "logf",
    "log2",
    "log2f",
    "log10",
    "log10f",
    "log1p",
    "log1pf",
    "sin",
    "sinf",
    "cos",
    "cosf",
    "tan",
    "tanf",
    "sinpi",
    "sinpif",
    "cospi",
    "cospif",
    "asin",
    "asinf",
    "acos",
    "acosf",
    "atan",
    "atanf",
    "atan2",
    "atan2f",
    "sinh",
    "sinhf",
    "cosh",
    "coshf",
    "tanh",
    "tanhf",
    "fmin",
    "fminf",
    "fmax",
    "fmaxf",
    "fmod",
    "fmodf",
    "fma",
    "fmaf",
    "fdim",
    "fdimf",
    "hypot",
    "hypotf",
    "erf",
    "erff",
    "erfc",
    "erfcf",
    "tgamma",
    "lgamma",
    "copysign",
    "copysignf",
    "isnan",
    "isinf",
    "isfinite",
    "signbit",
    "umin",
    "umax",
    "llmin",
    "llmax",
    "ullmin",
    "ullmax",
    "saturate",
    "__saturatef",
    "__popc",
    "__popcll",
    "__clz",
    "__clzll",
    "__ffs",
    "__ffsll",
    "__fns",
    "__brev",
    "__brevll",
    "__mul24",
    "__umul24",
    "__mulhi",
    "__umulhi",
    "__mul64hi",
    "__umul64hi",
    "__sad",
    "__usad",
    "__hadd",
    "__rhadd",
    "__uhadd",
    "__urhadd",
    "__byte_perm",
    "__funnelshift_l",
    "__funnelshift_r",
    "__funnelshift_lc",
    "__funnelshift_rc",
    "__expf",
    "__exp10f",
    "__logf",
    "__log2f",
    "__log10f",
    "__sinf",
    "__cosf",
    "__tanf",
    "__powf",
    "__fdividef",
    "__builtin_expect",
    "__dp4a",
    "__dp2a_lo",
    "__dp2a_hi",
    "cudaGetErrorString",
    "cudaGetErrorName",
    "numeric_limits",
    "move",
    "forward",
    "swap",
    "dim3",
    "uint3",
];

const PLAIN: &[&str] = &[
    "printf",
    "puts",
    "assert",
    "malloc",
    "free",
    "memcpy",
    "memset",
    "memmove",
    "sincos",
    "sincosf",
    "frexp",
    "modf",
    "modff",
    "__ldg",
    "__ldcg",
    "__ldca",
    "__ldcs",
    "__ldlu",
    "__ldcv",
    "__stwb",
    "__stcg",
    "__stcs",
    "__stwt",
    "__threadfence",
    "__threadfence_block",
    "__threadfence_system",
    "clock",
    "clock64",
    "__trap",
    "__brkpt",
    "__nanosleep",
    "__prof_trigger",
    "cudaStreamCreateWithFlags",
    "cudaStreamDestroy",
    "cudaMalloc",
    "cudaFree",
    "cudaGetDevice",
    "cudaDeviceGetAttribute",
    "cudaFuncGetAttributes",
    "cudaEventCreateWithFlags",
    "cudaEventDestroy",
    "tex1Dfetch",
    "tex1D",
    "tex2D",
    "tex3D",
    "surf1Dread",
    "surf1Dwrite",
    "surf2Dread",
    "surf2Dwrite",
    "isspace",
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

    #[test]
    fn lookups() {
        assert_eq!(library("std::min"), Some(Library::Pure));
        assert_eq!(library("atomicAdd_block"), Some(Library::Plain));
        assert_eq!(library("__shfl_down_sync"), Some(Library::Warp));
        assert_eq!(library("__reduce_add_sync"), Some(Library::Warp));
        assert_eq!(library("__float2int_rn"), Some(Library::Pure));
        assert_eq!(library("make_int2"), Some(Library::Pure));
        assert_eq!(library("::cudaMemset2DAsync"), Some(Library::StreamOrdered));
        assert_eq!(library("cudaEventRecord"), Some(Library::Event));
        assert_eq!(library("cub::max"), None);
        assert_eq!(library("atomicity"), None);
        assert_eq!(library("__read_tid2"), None);
    }
}
