//! Whether two runs computed the same.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::recording::{Kind, Moment, Recording};

/// How exact floating point numbers have to agree.
#[derive(Clone, Copy, Debug)]
pub struct Tolerance {
    /// Greatest relative difference of `float`s.
    pub f32: f64,
    /// Greatest relative difference of `double`s.
    pub f64: f64,
    /// A buffer may hold its elements in any order.
    pub unordered: bool,
}

impl Default for Tolerance {
    fn default() -> Self {
        Tolerance {
            f32: 1e-5,
            f64: 1e-12,
            unordered: false,
        }
    }
}

/// The first difference between two buffers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// Launch site: an index into the report's sites.
    pub site: u32,
    /// Which launch of that site, from 0.
    pub launch: u32,
    /// Which argument of the kernel, from 0.
    pub argument: u32,
    /// Which element of the buffer that it points to, from 0; `None`: the buffers' sizes differ, or the contents weren't kept.
    pub element: Option<u64>,
    /// What the original computed.
    pub expected: String,
    /// What the rewritten program computed.
    pub found: String,
}

/// What came out of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub enum Comparison {
    /// The same, in so many captures of buffers; so many were passed over because the original disagrees with itself there.
    Same {
        /// Captures that agree.
        compared: usize,
        /// Captures that can't be compared.
        unstable: usize,
    },
    /// Not the same.
    Different(Difference),
}

/// Captures in which two runs of one program disagree: its result depends on timing there.
pub fn unstable(first: &Recording, second: &Recording, tolerance: &Tolerance) -> BTreeSet<Moment> {
    let moments = first.buffers.keys().chain(second.buffers.keys());
    moments
        .filter(|moment| difference(first, second, **moment, tolerance).is_some())
        .copied()
        .collect()
}

/// Compares the buffers of a rewritten program with the original's, in the order of the launches.
pub fn compare(
    original: &Recording,
    rewritten: &Recording,
    unstable: &BTreeSet<Moment>,
    tolerance: &Tolerance,
) -> Comparison {
    let mut compared = 0;
    for moment in original.buffers.keys() {
        if unstable.contains(moment) {
            continue;
        }
        match difference(original, rewritten, *moment, tolerance) {
            None => compared += 1,
            Some(difference) => return Comparison::Different(difference),
        }
    }
    Comparison::Same {
        compared,
        unstable: unstable.len(),
    }
}

fn difference(a: &Recording, b: &Recording, moment: Moment, tolerance: &Tolerance) -> Option<Difference> {
    let at = |element: Option<u64>, expected: String, found: String| Difference {
        site: moment.site,
        launch: moment.nth,
        argument: moment.argument,
        element,
        expected,
        found,
    };
    let describe = |recording: &Recording| match recording.buffers.get(&moment) {
        Some(buffer) => format!("{} bytes", buffer.bytes),
        None => "no such launch".to_owned(),
    };
    let (Some(first), Some(second)) = (a.buffers.get(&moment), b.buffers.get(&moment)) else {
        return Some(at(None, describe(a), describe(b)));
    };
    if first.bytes != second.bytes {
        return Some(at(None, describe(a), describe(b)));
    }
    if first.hash == second.hash {
        return None;
    }
    let (Some(left), Some(right)) = (a.bytes(first), b.bytes(second)) else {
        let hash = |hash: u64| format!("contents with hash {hash:016x}");
        return Some(at(None, hash(first.hash), hash(second.hash)));
    };
    let size = first.kind.size();
    let mut left: Vec<&[u8]> = left.chunks(size).collect();
    let mut right: Vec<&[u8]> = right.chunks(size).collect();
    if tolerance.unordered {
        left.sort_by(|a, b| order(first.kind, a, b));
        right.sort_by(|a, b| order(first.kind, a, b));
    }
    let index = left
        .iter()
        .zip(&right)
        .position(|(a, b)| !same(first.kind, a, b, tolerance))?;
    Some(at(
        Some(index as u64),
        show(first.kind, left[index]),
        show(first.kind, right[index]),
    ))
}

/// A number of either floating point type.
fn float(kind: Kind, bytes: &[u8]) -> Option<f64> {
    match kind {
        Kind::F32 => Some(f64::from(f32::from_le_bytes(bytes.try_into().ok()?))),
        Kind::F64 => Some(f64::from_le_bytes(bytes.try_into().ok()?)),
        Kind::Integer(..) | Kind::Bytes => None,
    }
}

fn integer(signed: bool, bytes: &[u8]) -> i128 {
    let mut value: i128 = 0;
    for byte in bytes.iter().rev() {
        value = value << 8 | i128::from(*byte);
    }
    let bits = 8 * bytes.len() as u32;
    if signed && bits > 0 && value >> (bits - 1) & 1 == 1 {
        value -= 1 << bits;
    }
    value
}

fn order(kind: Kind, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
    match (float(kind, a), float(kind, b)) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        _ => a.cmp(b),
    }
}

fn same(kind: Kind, a: &[u8], b: &[u8], tolerance: &Tolerance) -> bool {
    if a == b {
        return true;
    }
    let (Some(x), Some(y)) = (float(kind, a), float(kind, b)) else {
        return false;
    };
    let most = if kind == Kind::F32 {
        tolerance.f32
    } else {
        tolerance.f64
    };
    // The least normal number: below it, a relative difference says nothing.
    let tiny = if kind == Kind::F32 {
        f64::from(f32::MIN_POSITIVE)
    } else {
        f64::MIN_POSITIVE
    };
    (x.is_nan() && y.is_nan()) || x == y || (x - y).abs() <= most * x.abs().max(y.abs()).max(tiny)
}

fn show(kind: Kind, bytes: &[u8]) -> String {
    match (kind, float(kind, bytes)) {
        (Kind::F32, Some(value)) => (value as f32).to_string(),
        (_, Some(value)) => value.to_string(),
        (Kind::Integer(_, signed), None) => integer(signed, bytes).to_string(),
        _ => bytes.iter().map(|byte| format!("0x{byte:02x}")).collect(),
    }
}

/// The first line in which a program's output differs from the original's, both lines. Words in which two runs of the
/// original differ, such as times, are passed over.
pub fn output_difference(original: &str, again: &str, rewritten: &str) -> Option<(String, String)> {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let (first, second, found) = (lines(original), lines(again), lines(rewritten));
    if first.len() != second.len() {
        return None;
    }
    let none = || "(nothing)".to_owned();
    for index in 0..first.len().max(found.len()) {
        let (Some(expected), Some(other), Some(got)) = (first.get(index), second.get(index), found.get(index)) else {
            return Some((
                first.get(index).cloned().unwrap_or_else(none),
                found.get(index).cloned().unwrap_or_else(none),
            ));
        };
        let (a, b, c) = (words(expected), words(other), words(got));
        if a.len() != b.len() {
            continue;
        }
        let fixed_word_differs = || a.iter().zip(&b).zip(&c).any(|((a, b), c)| a == b && a != c);
        if a.len() != c.len() || fixed_word_differs() {
            return Some((expected.clone(), got.clone()));
        }
    }
    None
}

/// Numbers and names, and each other character by itself.
fn words(line: &str) -> Vec<&str> {
    let part_of_word = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_');
    let mut words = Vec::new();
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        let end = if part_of_word(c) {
            rest.find(|c| !part_of_word(c)).unwrap_or(rest.len())
        } else {
            c.len_utf8()
        };
        words.push(&rest[..end]);
        rest = &rest[end..];
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// A recording of buffers, each after one launch.
    fn recording(dir: &Path, name: &str, kind: &str, buffers: &[Vec<u8>]) -> std::io::Result<Recording> {
        let (mut text, mut bin) = (String::new(), Vec::new());
        for (nth, bytes) in buffers.iter().enumerate() {
            let hash = bytes
                .iter()
                .fold(7u64, |hash, byte| hash.wrapping_mul(31) + u64::from(*byte));
            text += &format!("data 0 {nth} 2 {kind} {} {hash:x} {}\n", bytes.len(), bin.len());
            bin.extend_from_slice(bytes);
        }
        std::fs::write(dir.join(name), text)?;
        std::fs::write(dir.join(format!("{name}.bin")), bin)?;
        Recording::read(&dir.join(name))
    }

    fn ints(values: &[i32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    fn floats(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    #[test]
    fn the_first_difference_is_found() -> std::io::Result<()> {
        let dir = tempfile::tempdir()?;
        let a = recording(dir.path(), "a", "i32", &[ints(&[1, 2, 3]), ints(&[4, -5, 6])])?;
        let b = recording(dir.path(), "b", "i32", &[ints(&[1, 2, 3]), ints(&[4, -7, 8])])?;
        let exact = Tolerance::default();
        let none = BTreeSet::new();
        assert_eq!(
            compare(&a, &a, &none, &exact),
            Comparison::Same {
                compared: 2,
                unstable: 0
            }
        );
        let expected = Difference {
            site: 0,
            launch: 1,
            argument: 2,
            element: Some(1),
            expected: "-5".into(),
            found: "-7".into(),
        };
        assert_eq!(compare(&a, &b, &none, &exact), Comparison::Different(expected));
        let differing = unstable(&a, &b, &exact);
        assert_eq!(
            compare(&a, &b, &differing, &exact),
            Comparison::Same {
                compared: 1,
                unstable: 1
            }
        );
        let short = recording(dir.path(), "short", "i32", &[ints(&[1, 2, 3])])?;
        assert!(matches!(compare(&a, &short, &none, &exact), Comparison::Different(d) if d.found == "no such launch"));
        Ok(())
    }

    #[test]
    fn floats_agree_within_the_tolerance() -> std::io::Result<()> {
        let dir = tempfile::tempdir()?;
        let none = BTreeSet::new();
        let a = recording(dir.path(), "a", "f32", &[floats(&[1.0, 0.0, f32::NAN])])?;
        let near = recording(dir.path(), "b", "f32", &[floats(&[1.000_001, -0.0, f32::NAN])])?;
        let far = recording(dir.path(), "c", "f32", &[floats(&[1.1, 0.0, f32::NAN])])?;
        let tolerance = Tolerance::default();
        assert!(matches!(compare(&a, &near, &none, &tolerance), Comparison::Same { .. }));
        let strict = Tolerance { f32: 0.0, ..tolerance };
        assert!(matches!(compare(&a, &near, &none, &strict), Comparison::Different(_)));
        assert!(matches!(compare(&a, &far, &none, &tolerance), Comparison::Different(d) if d.found == "1.1"));
        Ok(())
    }

    #[test]
    fn any_order_on_request() -> std::io::Result<()> {
        let dir = tempfile::tempdir()?;
        let none = BTreeSet::new();
        let a = recording(dir.path(), "a", "i32", &[ints(&[3, 1, 2, 2])])?;
        let b = recording(dir.path(), "b", "i32", &[ints(&[2, 1, 2, 3])])?;
        let c = recording(dir.path(), "c", "i32", &[ints(&[1, 1, 2, 3])])?;
        let unordered = Tolerance {
            unordered: true,
            ..Tolerance::default()
        };
        assert!(matches!(
            compare(&a, &b, &none, &Tolerance::default()),
            Comparison::Different(_)
        ));
        assert!(matches!(compare(&a, &b, &none, &unordered), Comparison::Same { .. }));
        assert!(matches!(compare(&a, &c, &none, &unordered), Comparison::Different(_)));
        Ok(())
    }

    #[test]
    fn output_may_hold_times() {
        let a = "n 5\ntime 1.25 ms\n";
        assert_eq!(output_difference(a, "n 5\ntime 1.31 ms\n", "n 5\ntime 0.07 ms\n"), None);
        let other = output_difference(a, "n 5\ntime 1.31 ms\n", "n 6\ntime 0.07 ms\n");
        assert_eq!(other, Some(("n 5".into(), "n 6".into())));
        assert!(output_difference(a, a, "n 5\n").is_some());
        assert!(output_difference(a, a, "n 5\ntime 1.25 ms\nmore\n").is_some());
        assert_eq!(output_difference(a, "n 5\n", "whatever"), None);
    }
}
