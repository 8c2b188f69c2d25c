//! Files of NumPy arrays: what their heads say.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// What a file holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Npy {
    /// `i`, `u`, `f` or `b`, as NumPy writes it.
    pub kind: char,
    /// Bytes of an element.
    pub size: u32,
    /// Elements along each dimension.
    pub shape: Vec<u64>,
    /// Number of all elements.
    pub count: u64,
    /// First byte of the elements in the file.
    pub offset: u64,
}

impl Npy {
    /// As NumPy writes it: `int32`.
    pub fn dtype(&self) -> String {
        let name = match self.kind {
            'i' => "int",
            'u' => "uint",
            'f' => "float",
            _ => return "bool".to_owned(),
        };
        format!("{name}{}", self.size * 8)
    }

    /// Reads the head of a file. An error says what is wrong with it.
    pub fn read(path: &Path) -> Result<Npy, String> {
        let mut file = File::open(path).map_err(|error| error.to_string())?;
        let length = file.metadata().map_err(|error| error.to_string())?.len();
        let mut start = [0; 10];
        let other = || "it's no NumPy array: write it with numpy.save".to_owned();
        file.read_exact(&mut start).map_err(|_| other())?;
        if start.get(..6) != Some(b"\x93NUMPY".as_slice()) {
            return Err(other());
        }
        let (head_length, head_start) = match start {
            [.., 1, _, low, high] => (u64::from(u16::from_le_bytes([low, high])), 10),
            [.., 2 | 3, _, a, b] => {
                let mut more = [0; 2];
                file.read_exact(&mut more).map_err(|error| error.to_string())?;
                (u64::from(u32::from_le_bytes([a, b, more[0], more[1]])), 12)
            }
            [.., version, _, _, _] => return Err(format!("version {version} of NumPy's format isn't known")),
        };
        if head_length > 65_536 {
            return Err("its head is too long for an array of numbers".to_owned());
        }
        let mut head = Vec::new();
        let taken = file.take(head_length).read_to_end(&mut head);
        taken.map_err(|error| error.to_string())?;
        let found = Npy::parse(&String::from_utf8_lossy(&head), head_start + head_length)?;
        let bytes = found.count.checked_mul(u64::from(found.size));
        if bytes.and_then(|bytes| bytes.checked_add(found.offset)) != Some(length) {
            return Err(format!(
                "its length doesn't fit its shape ({} × {})",
                found.count,
                found.dtype()
            ));
        }
        Ok(found)
    }

    /// Understands `{'descr': '<i4', 'fortran_order': False, 'shape': (3, 4), }`.
    fn parse(head: &str, offset: u64) -> Result<Npy, String> {
        let field = |name: &str| {
            let (_, rest) = head.split_once(&format!("'{name}':"))?;
            Some(rest.trim_start())
        };
        let broken = || "its head can't be understood".to_owned();
        let descr = field("descr").ok_or_else(broken)?;
        let Some(descr) = descr.strip_prefix('\'').and_then(|rest| rest.split('\'').next()) else {
            return Err("it holds records, not numbers".to_owned());
        };
        let mut letters = descr.chars();
        let (order, kind) = (letters.next().ok_or_else(broken)?, letters.next().ok_or_else(broken)?);
        let size: u32 = letters.as_str().parse().map_err(|_| broken())?;
        if order == '>' {
            return Err(format!(
                "its numbers ({descr}) are big-endian: save a.astype('<{kind}{size}')"
            ));
        }
        if !matches!(kind, 'i' | 'u' | 'f' | 'b') || !matches!(size, 1 | 2 | 4 | 8) {
            return Err(format!(
                "it holds {descr}: only integers, floating point numbers and bools are known"
            ));
        }
        let shape = field("shape").and_then(|rest| rest.strip_prefix('(')?.split_once(')'));
        let (shape, _) = shape.ok_or_else(broken)?;
        let dimensions = shape.split(',').map(str::trim).filter(|part| !part.is_empty());
        let shape: Vec<u64> = dimensions
            .map(|part| part.parse().map_err(|_| broken()))
            .collect::<Result<_, _>>()?;
        if field("fortran_order").is_some_and(|rest| rest.starts_with("True")) && shape.len() > 1 {
            return Err("it is stored by columns: save numpy.ascontiguousarray(a)".to_owned());
        }
        let count = shape.iter().try_fold(1u64, |count, side| count.checked_mul(*side));
        Ok(Npy {
            kind,
            size,
            count: count.ok_or_else(broken)?,
            shape,
            offset,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Npy;

    fn file(head: &str, data: usize) -> Vec<u8> {
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend(u16::try_from(head.len()).unwrap_or(0).to_le_bytes());
        bytes.extend(head.as_bytes());
        bytes.extend(vec![0; data]);
        bytes
    }

    #[test]
    fn heads() -> std::io::Result<()> {
        let directory = tempfile::tempdir()?;
        let path = directory.path().join("a.npy");
        let read = |bytes: &[u8]| {
            std::fs::write(&path, bytes)?;
            Ok::<_, std::io::Error>(Npy::read(&path))
        };
        let head = "{'descr': '<i4', 'fortran_order': False, 'shape': (3, 4), }\n";
        let found = read(&file(head, 48))?;
        assert!(
            found.is_ok_and(|npy| npy.count == 12 && npy.dtype() == "int32" && npy.offset == 10 + head.len() as u64)
        );
        for (bytes, part) in [
            (file(head, 47), "length"),
            (b"PK\x03\x04".to_vec(), "numpy.save"),
            (file("{'descr': '>f8', 'shape': (1,)}", 8), "astype('<f8')"),
            (file("{'descr': '<c8', 'shape': (1,)}", 8), "<c8"),
            (file("{'descr': [('x', '<i4')], 'shape': (1,)}", 8), "records"),
            (
                file("{'descr': '<i4', 'fortran_order': True, 'shape': (2, 2)}", 16),
                "ascontiguousarray",
            ),
            (file("{'descr': '<i4', 'shape': (-1,)}", 16), "understood"),
            (file("{}", 0), "understood"),
            (b"\x93NUMPY\x09\x00\x00\x00".to_vec(), "version 9"),
        ] {
            let found = read(&bytes)?;
            assert!(
                found.as_ref().is_err_and(|error| error.contains(part)),
                "{part}: {found:?}"
            );
        }
        Ok(())
    }
}
