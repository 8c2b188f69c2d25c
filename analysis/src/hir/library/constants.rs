//! Constants of CUDA and the C library, and the fields of CUDA's vector types.

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
pub fn vector_fields(base: &str) -> Option<&'static [&'static str]> {
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

/// A constant of the CUDA headers or the C library that every thread sees alike.
pub fn constant(name: &str) -> bool {
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
