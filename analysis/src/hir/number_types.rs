//! The types of numbers: one name for each, and in which of them arithmetic is done.

/// Names that [`normalize`] takes for other ones.
pub const SYNONYMS: [&str; 9] = [
    "int32_t", "uint32_t", "uint", "uint8_t", "uchar", "int8_t", "int16_t", "uint16_t", "ushort",
];

/// A type name with its synonyms made one: `unsigned` is `unsigned int`, `std::size_t` is `size_t`.
pub fn normalize(base: &str) -> String {
    let base = base.trim().trim_start_matches("::");
    let base = base.strip_prefix("std::").unwrap_or(base);
    let mut words: Vec<&str> = base
        .split_whitespace()
        .filter(|w| !matches!(*w, "const" | "volatile"))
        .collect();
    let is_number = |w: &str| matches!(w, "unsigned" | "signed" | "int" | "long" | "short" | "char");
    if words.len() > 1 && words.iter().all(|w| is_number(w)) || words == ["unsigned"] || words == ["signed"] {
        let unsigned = words.contains(&"unsigned");
        let char_type = words.contains(&"char");
        let longs = words.iter().filter(|w| **w == "long").count();
        let short = words.contains(&"short");
        if !char_type {
            words.clear();
            if unsigned {
                words.push("unsigned");
            }
            match (longs, short) {
                (0, false) => words.push("int"),
                (0, true) => words.push("short"),
                (1, _) => words.push("long"),
                _ => words.extend(["long", "long"]),
            }
        }
    }
    let joined = words.join(" ");
    match joined.as_str() {
        "int32_t" => "int".into(),
        "uint32_t" | "uint" => "unsigned int".into(),
        "uint8_t" | "uchar" => "unsigned char".into(),
        "int8_t" => "signed char".into(),
        "int16_t" => "short".into(),
        "uint16_t" | "ushort" => "unsigned short".into(),
        _ => joined,
    }
}

/// Rank of the types in which arithmetic is done.
pub fn rank(ty: &str) -> Option<u32> {
    Some(match ty {
        "bool" | "char" | "signed char" | "unsigned char" | "short" | "unsigned short" | "int" => 0,
        "unsigned int" => 1,
        "long" => 2,
        "unsigned long" => 3,
        "long long" => 4,
        "unsigned long long" => 5,
        "float" => 6,
        "double" => 7,
        _ => return None,
    })
}
