//! What `measure` has found out, as plain data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::advice;
use super::compare::Difference;
use super::recording::CudaError;

/// Version of the JSON form; grows when a field changes its meaning.
pub const VERSION: u32 = 1;

/// A whole measurement.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// Version of this form; it grows when a field changes its meaning.
    pub version: u32,
    /// The measured file, as the user named it.
    pub file: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Where it ran.
    pub machine: Machine,
    /// GPUs that ran programs at the same time; not there: one.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub gpus: usize,
    /// Measured launches of the host.
    pub sites: Vec<Site>,
    /// The kernel that was run by itself, where no `main` runs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<KernelRun>,
    /// Launches of the host that could not be measured, and why.
    pub left_out: Vec<LeftOut>,
    /// The program as it is.
    pub original: Outcome,
    /// It computes the same each time; `None`: not known.
    pub deterministic: Option<bool>,
    /// The rewritten programs, in the order in which they were asked for.
    pub variants: Vec<Variant>,
}

/// What reports that know of no other have run on.
fn one() -> usize {
    1
}

fn is_one(count: &usize) -> bool {
    *count == 1
}

/// A GPU and what drives it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Machine {
    /// `NVIDIA H200`
    pub gpu: String,
    /// `90`
    pub compute_capability: String,
    /// Newest CUDA version that the driver knows.
    pub driver: String,
    /// CUDA version that the program was built with.
    pub runtime: String,
}

/// A measured launch of the host.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Site {
    /// The kernel.
    pub kernel: String,
    /// File.
    pub path: String,
    /// Line, from 1.
    pub line: u32,
}

/// A kernel that a generated program has launched.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KernelRun {
    /// The kernel.
    pub kernel: String,
    /// File with the run specification.
    pub path: String,
    /// Its line, from 1.
    pub line: u32,
}

/// A launch that isn't measured.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct LeftOut {
    /// File.
    pub path: String,
    /// Line, from 1.
    pub line: u32,
    /// Why.
    pub reason: String,
}

/// A rewritten program.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Variant {
    /// The rewrites, as in `threshold+aggregate-block`.
    pub rewrites: String,
    /// What they take for granted.
    pub assumptions: Vec<String>,
    /// What they change, as a unified diff.
    pub diff: String,
    /// Files that they add, which the diff leaves out.
    pub creates: Vec<String>,
    /// What became of it.
    pub outcome: Outcome,
}

/// What became of a program.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum Outcome {
    /// No launch could be rewritten.
    Refused {
        /// Why.
        reasons: Vec<String>,
    },
    /// nvcc refused it.
    NotBuilt {
        /// What nvcc said.
        message: String,
        /// The errors and warnings with their places in the user's files.
        messages: Vec<BuildMessage>,
    },
    /// It crashed, or ended otherwise than the original.
    Failed {
        /// What happened.
        message: String,
        /// What to do about it.
        advice: Option<String>,
    },
    /// It ran past the limit.
    TimedOut {
        /// The limit in seconds.
        seconds: f64,
    },
    /// It ran.
    Ran(Box<Run>),
}

/// What a compiler says about a line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BuildMessage {
    /// File.
    pub path: String,
    /// Line before the rewrite, from 1.
    pub line: u32,
    /// `error` or `warning`
    pub severity: String,
    /// What is wrong.
    pub message: String,
    /// The line that it is about, where the rewrite has changed it; `None`: it's the user's own.
    pub rewritten: Option<String>,
}

/// Times and results of a program.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// GPU time of the measured launches, until all their children were done, for each run of the program; in ms. Where a site
    /// launches several times, its first launch doesn't count.
    pub times_ms: Vec<f64>,
    /// Their median.
    pub median_ms: f64,
    /// The host's launches of measured kernels that count, in one run.
    pub host_launches: usize,
    /// Launches by device code, in one run.
    pub device_launches: Option<u64>,
    /// What CUDA complained about.
    pub errors: Vec<CudaErrorReport>,
    /// Whether it computes the same as the original; for the original itself, `Original`.
    pub agreement: Agreement,
    /// The kernels that launch others or are launched by device code, with what rewrites have made of them; not there where the driver
    /// (before CUDA 12.4) or the toolkit doesn't tell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kernels: Vec<Kernel>,
}

/// What a compiled kernel needs, as the driver has loaded it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Kernel {
    /// Its name, with namespaces and template arguments.
    pub name: String,
    /// Registers of a thread.
    pub registers: u32,
    /// Static shared memory of a block, in bytes.
    pub shared_bytes: u64,
    /// Local memory of a thread, in bytes: its stack, and what doesn't fit into registers.
    pub local_bytes: u64,
    /// The most threads that a block of it can have.
    pub largest_block: u32,
    /// The most threads of it that are resident on a multiprocessor at the same time, with the best block size of 32, 64, … 1024. Registers
    /// and static shared memory limit them; dynamic shared memory, which each launch sets, isn't counted.
    pub resident_threads: u32,
}

/// An error that CUDA reported.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct CudaErrorReport {
    /// What was done.
    pub during: String,
    /// CUDA's name of the error.
    pub name: String,
    /// What to do about it.
    pub advice: Option<String>,
}

impl From<&CudaError> for CudaErrorReport {
    fn from(error: &CudaError) -> Self {
        CudaErrorReport {
            during: error.during.clone(),
            name: error.name.clone(),
            advice: advice::about(&error.name).map(str::to_owned),
        }
    }
}

/// Whether a program computes the same as the original.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "agreement", rename_all = "kebab-case")]
pub enum Agreement {
    /// It is the original.
    Original,
    /// It does.
    Agrees {
        /// Captures of buffers that were compared and agree.
        compared: usize,
        /// Captures that weren't compared, as the original disagrees with itself there.
        unstable: usize,
    },
    /// A buffer differs.
    Differs(Difference),
    /// What it prints differs.
    PrintsOtherwise {
        /// The original's line.
        expected: String,
        /// Its line.
        found: String,
    },
    /// There is nothing to compare with.
    Unknown {
        /// Why.
        reason: String,
    },
    /// There is nothing of the original to compare with: what can be said all the same.
    NotShown(Box<NotShown>),
}

/// What is known of a rewritten program whose original did not come to its end. That the two compute the same is not among it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NotShown {
    /// Why there is nothing of the original.
    pub reason: String,
    /// The rewritten program with which it was compared; `None`: it's the first that came to its end.
    pub peer: Option<String>,
    /// Captures of buffers in which the two agree.
    pub compared: usize,
    /// Captures that weren't compared, as that program disagrees with itself there.
    pub unstable: usize,
    /// Where the two differ first.
    pub difference: Option<Difference>,
    /// The first line that the two print otherwise: that program's, and this one's.
    pub prints: Option<(String, String)>,
    /// Its exit code, which is not 0 where it has found its own results wrong.
    pub code: Option<i32>,
    /// The last line that it has printed.
    pub says: Option<String>,
}

impl NotShown {
    /// Something is wrong with it, or with the program with which it was compared.
    pub fn is_bad(&self) -> bool {
        self.difference.is_some() || self.prints.is_some() || self.code != Some(0)
    }
}

impl Report {
    /// What it was measured on, in words.
    pub fn hardware(&self) -> String {
        self.machine.times(self.gpus)
    }
}

impl Machine {
    /// So many of its GPUs, in words.
    pub fn times(&self, gpus: usize) -> String {
        match gpus {
            1 => self.gpu.clone(),
            gpus => format!("{gpus} × {}", self.gpu),
        }
    }
}

impl Run {
    /// The least and the most of the times.
    pub fn spread(&self) -> (f64, f64) {
        let least = self.times_ms.iter().copied().fold(f64::INFINITY, f64::min);
        (least, self.times_ms.iter().copied().fold(0.0, f64::max))
    }
}

impl Outcome {
    /// Something is wrong with the program.
    pub fn is_bad(&self) -> bool {
        match self {
            Outcome::Refused { .. } | Outcome::TimedOut { .. } => false,
            Outcome::NotBuilt { .. } | Outcome::Failed { .. } => true,
            Outcome::Ran(run) => match &run.agreement {
                Agreement::Differs(_) | Agreement::PrintsOtherwise { .. } => true,
                Agreement::NotShown(alone) => alone.is_bad(),
                Agreement::Original | Agreement::Agrees { .. } | Agreement::Unknown { .. } => false,
            },
        }
    }

    /// Median GPU time in ms.
    pub fn median(&self) -> Option<f64> {
        match self {
            Outcome::Ran(run) => Some(run.median_ms),
            _ => None,
        }
    }
}

/// The middle of some numbers; of an even number of them, the mean of the two in the middle.
pub fn median(numbers: &[f64]) -> Option<f64> {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (low, high) = (
        sorted.get(sorted.len().checked_sub(1)? / 2)?,
        sorted.get(sorted.len() / 2)?,
    );
    Some((low + high) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn medians() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0]), Some(2.5));
    }
}
