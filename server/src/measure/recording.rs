//! What a measured program wrote down: the records that `measure.cuh` describes.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::kernels;
use super::report::Kernel;

/// One capture of a buffer: after the `nth` launch (from 0) of `site`, reached by argument `argument` (from 0).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    /// Launch site.
    pub site: u32,
    /// Which launch of that site.
    pub nth: u32,
    /// Which argument.
    pub argument: u32,
}

/// How elements are compared and shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Integers of this many bytes, signed or not.
    Integer(usize, bool),
    /// `float`
    F32,
    /// `double`
    F64,
    /// Anything else.
    Bytes,
}

impl Kind {
    fn parse(text: &str) -> Option<Kind> {
        Some(match text {
            "f32" => Kind::F32,
            "f64" => Kind::F64,
            "bytes" => Kind::Bytes,
            _ => {
                let bits: usize = text.get(1..)?.parse().ok()?;
                match (text.as_bytes().first()?, bits) {
                    (b'i', 8 | 16 | 32 | 64) => Kind::Integer(bits / 8, true),
                    (b'u', 8 | 16 | 32 | 64) => Kind::Integer(bits / 8, false),
                    _ => return None,
                }
            }
        })
    }

    /// Size of an element in bytes.
    pub fn size(self) -> usize {
        match self {
            Kind::Integer(bytes, _) => bytes,
            Kind::F32 => 4,
            Kind::F64 => 8,
            Kind::Bytes => 1,
        }
    }
}

/// A captured buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Its elements.
    pub kind: Kind,
    /// Its size in bytes.
    pub bytes: u64,
    /// Of all its bytes.
    pub hash: u64,
    /// Where the bytes are in the file beside the recording, if they were kept.
    pub offset: Option<u64>,
}

/// An error that CUDA reported while the program ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CudaError {
    /// What was done: `launch`, `device-launch`, `after`…
    pub during: String,
    /// CUDA's name: `cudaErrorLaunchPendingCountExceeded`.
    pub name: String,
}

/// What a run has recorded.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// The file with the buffers' bytes.
    bin: PathBuf,
    /// GPU time of each launch in ms, by site, in order.
    pub times: BTreeMap<u32, Vec<f64>>,
    /// Buffers.
    pub buffers: BTreeMap<Moment, Buffer>,
    /// Launches by device code.
    pub launches: Option<u64>,
    /// The program's kernels.
    pub kernels: Vec<Kernel>,
    /// Errors, each once.
    pub errors: Vec<CudaError>,
    /// The program came to its end.
    pub complete: bool,
}

impl Recording {
    /// Reads a recording. Lines that aren't understood, as a killed program leaves them, are passed over.
    pub fn read(path: &Path) -> io::Result<Recording> {
        let mut bin = path.as_os_str().to_owned();
        bin.push(".bin");
        let mut recording = Recording {
            bin: bin.into(),
            ..Recording::default()
        };
        for line in std::fs::read_to_string(path)?.lines() {
            // A missing word makes the rest of the line meaningless.
            let _ = recording.line(line);
        }
        Ok(recording)
    }

    fn line(&mut self, line: &str) -> Option<()> {
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            ["time", site, ms] => self
                .times
                .entry(site.parse().ok()?)
                .or_default()
                .push(ms.parse().ok().filter(|ms: &f64| ms.is_finite())?),
            ["data", site, nth, argument, kind, bytes, hash, offset] => {
                let moment = Moment {
                    site: site.parse().ok()?,
                    nth: nth.parse().ok()?,
                    argument: argument.parse().ok()?,
                };
                let buffer = Buffer {
                    kind: Kind::parse(kind)?,
                    bytes: bytes.parse().ok()?,
                    hash: u64::from_str_radix(hash, 16).ok()?,
                    offset: offset.parse().ok(),
                };
                self.buffers.insert(moment, buffer);
            }
            ["kernel", registers, shared, local, block, resident, name @ ..] if !name.is_empty() => {
                self.kernels.push(Kernel {
                    name: kernels::name(&name.join(" ")),
                    registers: registers.parse().ok()?,
                    shared_bytes: shared.parse().ok()?,
                    local_bytes: local.parse().ok()?,
                    largest_block: block.parse().ok()?,
                    resident_threads: resident.parse().ok()?,
                });
            }
            ["launches", number] => self.launches = Some(number.parse().ok()?),
            ["error", during, _, name] => {
                let error = CudaError {
                    during: (*during).to_owned(),
                    name: (*name).to_owned(),
                };
                if !self.errors.contains(&error) {
                    self.errors.push(error);
                }
            }
            ["end"] => self.complete = true,
            _ => return None,
        }
        Some(())
    }

    /// Launches of measured kernels and their GPU time in ms, together. Where a site launches several times, its first launch
    /// doesn't count: it also pays for what is set up once (memory pools, the device's launch queues).
    pub fn total(&self) -> (usize, f64) {
        let steady = |times: &Vec<f64>| times[usize::from(times.len() > 1)..].to_vec();
        let steady: Vec<f64> = self.times.values().flat_map(steady).collect();
        (steady.len(), steady.iter().sum())
    }

    /// The bytes of a buffer, if they were kept and can be read.
    pub fn bytes(&self, buffer: &Buffer) -> Option<Vec<u8>> {
        let mut file = File::open(&self.bin).ok()?;
        file.seek(SeekFrom::Start(buffer.offset?)).ok()?;
        let mut bytes = Vec::new();
        file.take(buffer.bytes).read_to_end(&mut bytes).ok()?;
        (bytes.len() as u64 == buffer.bytes).then_some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_is_whole() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("out");
        std::fs::write(
            &path,
            r#"time 0 1.5
time 0 0.5
time 1 2
data 0 0 1 i32 8 00ff 4
data 0 1 1 f32 4 1 -
launches 12
kernel 32 1080 16 1024 2048 void graph::expand<float, 4>(float*, int)
kernel 32 -1 16 1024 2048 wrong(int)
kernel 32 1080 16 1024
kernel 32 1080 16 1024 2048
error device-launch 69 cudaErrorLaunchPendingCountExceeded
error device-launch 69 cudaErrorLaunchPendingCountExceeded
time 0 nan
nonsense
data 0 2 1 i7 4 1 -
time 0"#,
        )?;
        std::fs::write(dir.path().join("out.bin"), [9, 9, 9, 9, 1, 0, 0, 0, 2, 0, 0, 0])?;
        let recording = Recording::read(&path)?;
        assert_eq!(recording.total(), (2, 2.5));
        assert_eq!((recording.launches, recording.complete), (Some(12), false));
        assert_eq!(recording.errors.len(), 1);
        assert_eq!(
            recording.kernels,
            [Kernel {
                name: "graph::expand<float, 4>".to_owned(),
                registers: 32,
                shared_bytes: 1080,
                local_bytes: 16,
                largest_block: 1024,
                resident_threads: 2048,
            }]
        );
        let kept: Vec<Option<Vec<u8>>> = recording.buffers.values().map(|b| recording.bytes(b)).collect();
        assert_eq!(kept, [Some(vec![1, 0, 0, 0, 2, 0, 0, 0]), None]);
        Ok(())
    }
}
