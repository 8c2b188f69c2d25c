//! Integer types, as far as index arithmetic depends on them.

use super::polynomial::Interval;

/// An integer type of at least 32 bits, to which operands are promoted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, salsa::SalsaValue)]
pub struct Integer {
    /// It wraps around.
    pub unsigned: bool,
    /// Bits that it has on every platform: `long` has 32 with one host compiler and 64 with another.
    pub narrow: u8,
    /// Bits that it has at most.
    pub wide: u8,
}

impl Integer {
    /// `int`
    pub const INT: Integer = Integer::of(false, 32);
    /// `unsigned`
    pub const UNSIGNED: Integer = Integer::of(true, 32);
    /// Not known which: what holds for it holds for all.
    pub const ANY: Integer = Integer {
        unsigned: true,
        narrow: 32,
        wide: 64,
    };

    const fn of(unsigned: bool, bits: u8) -> Integer {
        Integer {
            unsigned,
            narrow: bits,
            wide: bits,
        }
    }

    /// Values that it can hold on every platform.
    pub fn holds(self) -> Interval {
        bounds(self.unsigned, self.narrow)
    }

    /// Values that a variable of it may have.
    pub fn range(self) -> Interval {
        bounds(self.unsigned, self.wide)
    }

    /// The type of `a + b`.
    pub fn common(self, other: Integer) -> Integer {
        Integer {
            unsigned: (self.unsigned && self.wide >= other.narrow) || (other.unsigned && other.wide >= self.narrow),
            narrow: self.narrow.max(other.narrow),
            wide: self.wide.max(other.wide),
        }
    }
}

fn bounds(unsigned: bool, bits: u8) -> Interval {
    if unsigned {
        Interval::new(0, (1 << bits) - 1)
    } else {
        Interval::new(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    }
}

/// A type of fewer bits: promoted to `int` when it's read, and values don't survive being written to it.
fn small(name: &str) -> Option<Interval> {
    Some(match name {
        "bool" => Interval::new(0, 1),
        "char" => Interval::new(-128, 255),
        "signed char" | "int8_t" => bounds(false, 8),
        "unsigned char" | "uint8_t" | "uchar" => bounds(true, 8),
        "short" | "short int" | "signed short" | "int16_t" => bounds(false, 16),
        "unsigned short" | "unsigned short int" | "uint16_t" | "ushort" => bounds(true, 16),
        _ => return None,
    })
}

/// What a type name says: the type that values of it are promoted to, their range, and whether the type holds any value of the
/// promoted type. `None` for everything that isn't a built-in integer type.
pub(crate) fn integer(name: &str) -> Option<(Integer, Interval, bool)> {
    let name = name.trim();
    let name = name.strip_prefix("::").unwrap_or(name);
    let name = name
        .strip_prefix("cuda::std::")
        .or_else(|| name.strip_prefix("std::"))
        .unwrap_or(name);
    if let Some(range) = small(name) {
        return Some((Integer::INT, range, false));
    }
    let long = |unsigned| Integer {
        unsigned,
        narrow: 32,
        wide: 64,
    };
    let ty = match name {
        "int" | "signed" | "signed int" | "int32_t" => Integer::INT,
        "unsigned" | "unsigned int" | "uint32_t" | "uint" => Integer::UNSIGNED,
        "long" | "long int" | "signed long" | "signed long int" => long(false),
        "unsigned long" | "unsigned long int" | "ulong" => long(true),
        "long long" | "long long int" | "signed long long" | "int64_t" | "ptrdiff_t" | "ssize_t" | "intptr_t" => {
            Integer::of(false, 64)
        }
        "unsigned long long" | "unsigned long long int" | "uint64_t" | "size_t" | "uintptr_t" => Integer::of(true, 64),
        _ => return None,
    };
    Some((ty, ty.range(), true))
}

/// The unit in which pointers to this type count: its size, or its name where that isn't known.
pub(super) fn unit(base: &str) -> String {
    let size = match base {
        "float" => "4",
        "double" => "8",
        "bool" => "1",
        _ => match integer(base) {
            Some((ty, _, true)) if ty.narrow == ty.wide => {
                if ty.narrow == 32 {
                    "4"
                } else {
                    "8"
                }
            }
            Some((_, range, false)) if range.within(Interval::new(-128, 255)) => "1",
            Some((_, _, false)) => "2",
            _ => base,
        },
    };
    size.to_owned()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn conversions() {
        let of = |name: &str| integer(name).unwrap().0;
        assert!(of("int").common(of("unsigned")).unsigned);
        assert!(!of("unsigned").common(of("long long")).unsigned);
        assert!(of("int").common(of("size_t")).unsigned);
        // 32 bits with Microsoft's compiler.
        assert!(of("unsigned").common(of("long")).unsigned);
        assert_eq!(
            integer("unsigned char").unwrap(),
            (Integer::INT, Interval::new(0, 255), false)
        );
        assert!(integer("float").is_none() && integer("T").is_none());
        assert_eq!(
            (
                unit("unsigned").as_str(),
                unit("int64_t").as_str(),
                unit("long").as_str()
            ),
            ("4", "8", "long")
        );
        assert_eq!(
            (unit("short").as_str(), unit("char").as_str(), unit("Node").as_str()),
            ("2", "1", "Node")
        );
    }
}
