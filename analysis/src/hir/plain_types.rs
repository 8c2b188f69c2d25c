//! Types that need no definition, and words of the language that are no names.

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

/// Types that are numbers, by all their names.
pub const NUMBERS: &[&str] = &[
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
    "uint",
    "ushort",
    "ulong",
    "short int",
    "long int",
    "long long int",
    "unsigned short int",
    "unsigned long int",
    "unsigned long long int",
    "signed",
    "signed int",
];

/// Other types that are copied byte by byte and can be constructed in device code: the language's own and CUDA's.
const OTHERS: &[&str] = &[
    "intptr_t",
    "uintptr_t",
    "uchar",
    "dim3",
    "cudaStream_t",
    "cudaEvent_t",
    "cudaTextureObject_t",
    "cudaSurfaceObject_t",
    "wchar_t",
    "cudaError_t",
    "half",
    "__half",
    "__half2",
    "half2",
    "clock_t",
];

/// Whether this is the name of a type that is copied byte by byte and can be constructed in device code, and no vector.
pub fn is_plain_name(name: &str) -> bool {
    NUMBERS.contains(&name) || OTHERS.contains(&name)
}

/// Whether a type is one of the language's or CUDA's own.
pub fn is_plain_type(ty: &str) -> bool {
    let ty = ty.trim().trim_start_matches("const ").trim();
    let ty = ty.strip_prefix("std::").unwrap_or(ty);
    is_plain_name(ty) || VECTORS.contains(&ty)
}

/// Whether a type is one of CUDA's vectors.
pub fn is_vector_type(ty: &str) -> bool {
    VECTORS.contains(&ty)
}

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
