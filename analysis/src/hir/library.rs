//! What the functions of CUDA and of the C++ library do, as far as uniformity and effects go.

use crate::hir::stream_ordered::{Operation, stream_ordered};

/// The behaviour of a library function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// The result depends on the arguments alone, and nothing is written.
    Pure,
    /// `__ldg` and its kind: reads memory that nothing writes while the grid runs.
    Ldg,
    /// Reads and writes the memory that its first argument points at; the result is whatever was there.
    Atomic,
    /// `__any_sync` and the like: one result for the threads of the mask.
    Vote,
    /// `__activemask`.
    ActiveMask,
    /// `__shfl_sync`: the value of the lane that the third argument names.
    Shuffle,
    /// `__shfl_up_sync` and the like: every lane gets another's value.
    ShuffleBy,
    /// A warp operation of which nothing is known but that it writes no memory.
    OpaqueWarp,
    /// `__syncthreads`.
    Barrier,
    /// A barrier of some group of threads.
    GroupBarrier,
    /// `__syncthreads_or` and the like: a barrier with one result for the block.
    BlockVote,
    /// `__syncwarp`.
    WarpBarrier,
    /// Anything may come out, but nothing is written that a program could see in memory: `clock`.
    Opaque,
    /// Like `Opaque`, and it prints.
    Print,
    /// A memory fence: nothing for a single thread's values.
    Fence,
    /// Waits for child grids.
    DeviceSync,
    /// A CUDA runtime function that writes only through the pointers to local variables that it's given.
    Runtime,
    /// Writes memory through its first argument, of any type.
    WritesMemory,
    /// Stores its second argument through its first, as written: `__stcg`.
    Store,
    /// A store that is also for synchronisation, or a load that other threads' stores may change: `__ldcv`, `__ldcg`.
    VolatileLoad,
}

/// Looks a function up by its name as written (a `std::` or `::` before it is dropped).
pub(crate) fn known(name: &str) -> Option<Known> {
    let name = name.strip_prefix("::").unwrap_or(name);
    let std_name = name.strip_prefix("std::").or(name.strip_prefix("cuda::std::"));
    let plain = std_name.unwrap_or(name);
    if plain.contains("::") {
        return cooperative(name);
    }
    if let Some(k) = exact(plain) {
        return Some(k);
    }
    if std_name.is_some() {
        return None;
    }
    if ATOMIC_STEMS.contains(&plain.trim_end_matches("_block").trim_end_matches("_system")) {
        return Some(Known::Atomic);
    }
    if let Some(rest) = plain.strip_prefix("__") {
        // Conversions and rounding variants: __float2int_rn, __fadd_rn, __int_as_float.
        let conversion = rest.contains('2') || rest.contains("_as_");
        let rounded = ["_rn", "_rz", "_ru", "_rd"].iter().any(|s| rest.ends_with(s));
        if conversion || rounded {
            return Some(Known::Pure);
        }
    }
    if VECTOR_STEMS
        .iter()
        .any(|t| plain.strip_prefix("make_").is_some_and(|r| vector_of(r, t)))
    {
        return Some(Known::Pure);
    }
    None
}

fn vector_of(name: &str, stem: &str) -> bool {
    matches!(name.strip_prefix(stem), Some("1" | "2" | "3" | "4"))
}

const VECTOR_STEMS: &[&str] = &[
    "char",
    "uchar",
    "short",
    "ushort",
    "int",
    "uint",
    "long",
    "ulong",
    "longlong",
    "ulonglong",
    "float",
    "double",
];

/// Whether `base` names `dim3` or one of CUDA's vector types, whose fields are x, y, z, w.
pub(crate) fn vector_fields(base: &str) -> Option<&'static [&'static str]> {
    const FIELDS: &[&str] = &["x", "y", "z", "w"];
    if base == "dim3" {
        return Some(&FIELDS[..3]);
    }
    let count = match base.chars().last() {
        Some('1') => 1,
        Some('2') => 2,
        Some('3') => 3,
        Some('4') => 4,
        _ => return None,
    };
    VECTOR_STEMS
        .iter()
        .any(|t| vector_of(base, t))
        .then(|| &FIELDS[..count])
}

const ATOMIC_STEMS: &[&str] = &[
    "atomicAdd",
    "atomicSub",
    "atomicExch",
    "atomicMin",
    "atomicMax",
    "atomicInc",
    "atomicDec",
    "atomicCAS",
    "atomicAnd",
    "atomicOr",
    "atomicXor",
];

fn exact(name: &str) -> Option<Known> {
    Some(match name {
        "min" | "max" | "abs" | "labs" | "llabs" | "fabs" | "fabsf" | "sqrt" | "sqrtf" | "rsqrt" | "rsqrtf"
        | "cbrt" | "cbrtf" | "ceil" | "ceilf" | "floor" | "floorf" | "round" | "roundf" | "trunc" | "truncf"
        | "rint" | "rintf" | "lrint" | "lrintf" | "lround" | "lroundf" | "nearbyint" | "nearbyintf" | "pow"
        | "powf" | "exp" | "expf" | "exp2" | "exp2f" | "exp10" | "exp10f" | "expm1" | "expm1f" | "log" | "logf"
        | "log2" | "log2f" | "log10" | "log10f" | "log1p" | "log1pf" | "sin" | "sinf" | "cos" | "cosf" | "tan"
        | "tanf" | "asin" | "asinf" | "acos" | "acosf" | "atan" | "atanf" | "atan2" | "atan2f" | "sinh" | "sinhf"
        | "cosh" | "coshf" | "tanh" | "tanhf" | "fmin" | "fminf" | "fmax" | "fmaxf" | "fmod" | "fmodf" | "fma"
        | "fmaf" | "fdim" | "fdimf" | "hypot" | "hypotf" | "erf" | "erff" | "copysign" | "copysignf" | "isnan"
        | "isinf" | "isfinite" | "signbit" | "umin" | "umax" | "llmin" | "llmax" | "ullmin" | "ullmax" | "saturate"
        | "__saturatef" | "__popc" | "__popcll" | "__clz" | "__clzll" | "__ffs" | "__ffsll" | "__fns" | "__brev"
        | "__brevll" | "__mul24" | "__umul24" | "__mulhi" | "__umulhi" | "__mul64hi" | "__umul64hi" | "__sad"
        | "__usad" | "__hadd" | "__rhadd" | "__uhadd" | "__urhadd" | "__byte_perm" | "__funnelshift_l"
        | "__funnelshift_r" | "__funnelshift_lc" | "__funnelshift_rc" | "__expf" | "__exp10f" | "__logf"
        | "__log2f" | "__log10f" | "__sinf" | "__cosf" | "__tanf" | "__powf" | "__fdividef" | "__builtin_expect"
        | "__dp4a" | "__dp2a_lo" | "__dp2a_hi" | "cudaGetErrorString" | "cudaGetErrorName" => Known::Pure,
        "assert" => Known::Opaque,
        "__ldg" => Known::Ldg,
        "__ldcg" | "__ldca" | "__ldcs" | "__ldlu" | "__ldcv" => Known::VolatileLoad,
        "__stwb" | "__stcg" | "__stcs" | "__stwt" => Known::Store,
        "__any_sync" | "__all_sync" | "__ballot_sync" => Known::Vote,
        "__reduce_add_sync" | "__reduce_min_sync" | "__reduce_max_sync" | "__reduce_and_sync" | "__reduce_or_sync"
        | "__reduce_xor_sync" => Known::Vote,
        "__match_all_sync" | "__match_any_sync" | "__any" | "__all" | "__ballot" => Known::OpaqueWarp,
        "__activemask" => Known::ActiveMask,
        "__shfl_sync" => Known::Shuffle,
        "__shfl_up_sync" | "__shfl_down_sync" | "__shfl_xor_sync" | "__shfl" | "__shfl_up" | "__shfl_down"
        | "__shfl_xor" => Known::ShuffleBy,
        "__syncthreads" => Known::Barrier,
        "__syncthreads_or" | "__syncthreads_and" | "__syncthreads_count" => Known::BlockVote,
        "__syncwarp" => Known::WarpBarrier,
        "clock" | "clock64" | "__clock" | "__clock64" | "__globaltimer" | "__nanosleep" | "rand" | "malloc"
        | "__trap" | "__brkpt" | "exit" | "abort" | "__isGlobal" | "__isShared" | "__isConstant" | "__isLocal"
        | "__isGridConstant" => Known::Opaque,
        "printf" | "puts" | "putchar" => Known::Print,
        "__threadfence" | "__threadfence_block" | "__threadfence_system" => Known::Fence,
        "cudaDeviceSynchronize" | "cudaThreadSynchronize" => Known::DeviceSync,
        "cudaGetLastError"
        | "cudaPeekAtLastError"
        | "cudaStreamCreateWithFlags"
        | "cudaStreamCreate"
        | "cudaStreamDestroy"
        | "cudaEventCreate"
        | "cudaEventCreateWithFlags"
        | "cudaEventDestroy"
        | "cudaGetDevice"
        | "cudaGetDeviceCount"
        | "cudaDeviceGetAttribute"
        | "cudaDeviceGetLimit"
        | "cudaFuncGetAttributes"
        | "cudaMalloc"
        | "cudaFree"
        | "free"
        | "cudaGetParameterBuffer" => Known::Runtime,
        "memcpy" | "memset" | "memmove" | "cudaMemcpy" | "cudaMemset" => Known::WritesMemory,
        _ => match stream_ordered(name)?.0 {
            Operation::Set | Operation::Copy | Operation::CopyBox => Known::WritesMemory,
            Operation::Event => Known::Runtime,
        },
    })
}

/// Free functions of cooperative groups.
fn cooperative(name: &str) -> Option<Known> {
    let rest = name
        .strip_prefix("cooperative_groups::")
        .or_else(|| name.strip_prefix("cg::"))?;
    match rest {
        "this_thread_block" | "tiled_partition" | "coalesced_threads" | "this_grid" | "this_cluster" => {
            Some(Known::Opaque)
        }
        "sync" => Some(Known::GroupBarrier),
        _ => None,
    }
}

/// A constant of the CUDA headers or the C library that every thread sees alike.
pub(crate) fn constant(name: &str) -> bool {
    const NAMES: &[&str] = &[
        "INT_MAX",
        "INT_MIN",
        "UINT_MAX",
        "LONG_MAX",
        "LONG_MIN",
        "ULONG_MAX",
        "LLONG_MAX",
        "LLONG_MIN",
        "ULLONG_MAX",
        "SHRT_MAX",
        "SHRT_MIN",
        "USHRT_MAX",
        "CHAR_BIT",
        "CHAR_MAX",
        "UCHAR_MAX",
        "INT32_MAX",
        "INT32_MIN",
        "UINT32_MAX",
        "INT64_MAX",
        "INT64_MIN",
        "UINT64_MAX",
        "SIZE_MAX",
        "FLT_MAX",
        "FLT_MIN",
        "FLT_EPSILON",
        "DBL_MAX",
        "DBL_MIN",
        "DBL_EPSILON",
        "RAND_MAX",
        "M_PI",
        "INFINITY",
        "NAN",
        "NULL",
        "nullptr",
        "true",
        "false",
        "EXIT_SUCCESS",
        "EXIT_FAILURE",
    ];
    NAMES.contains(&name)
        || matches!(
            name,
            "cudaStreamFireAndForget"
                | "cudaStreamTailLaunch"
                | "cudaStreamLegacy"
                | "cudaStreamPerThread"
                | "cudaStreamNonBlocking"
                | "cudaStreamDefault"
                | "cudaSuccess"
                | "cudaMemcpyDeviceToDevice"
                | "cudaMemcpyDeviceToHost"
                | "cudaMemcpyHostToDevice"
                | "cudaMemcpyDefault"
                | "cudaEventDisableTiming"
                | "cudaEventDefault"
        )
}
