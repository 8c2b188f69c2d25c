//! The runtime header as it stands in a project: put together from parts, and read again.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use gridfuse_analysis::base::db::{Db, SourceFile};
use gridfuse_analysis::hir::runtime_header::header_version;

use super::VERSION;
use super::parts::{PARTS, PartSet, included};

/// The header with all parts.
pub static HEADER: LazyLock<Arc<str>> = LazyLock::new(|| header(PartSet::all()));

/// Headers from this version on are written anew by later ones: what is named in them, and what code does with it, is there still.
pub const SUPPORTED_FROM: u32 = 1;

/// What stands in front of the checksum, in the last line.
const CHECKSUM: &str = "// As gridfuse wrote it: ";

const HEAD: &str = "\
// SPDX-License-Identifier: MIT OR Apache-2.0
//
// gridfuse.cuh: the runtime of code that gridfuse has rewritten.
//
// Header only, C++17, CUDA 12 or newer, compute capability 7.0 or newer; relocatable device code
// (-rdc=true) where kernels launch kernels. Any number of translation units may include it.
//
// It holds what the rewrites of this project need. gridfuse adds what others need, and replaces the
// file by a newer version, unless somebody has changed it: the last line tells.
";

/// The header with some parts. There is one text for each set of them: many edits create it.
pub fn header(parts: PartSet) -> Arc<str> {
    static TEXTS: LazyLock<Mutex<HashMap<PartSet, Arc<str>>>> = LazyLock::new(Mutex::default);
    let mut texts = TEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    texts.entry(parts).or_insert_with(|| assembled(parts).into()).clone()
}

fn assembled(parts: PartSet) -> String {
    let mut text = HEAD.to_owned();
    for part in parts.parts() {
        text.push('\n');
        let mut gap = true;
        // Without the licence, and without what stands in the same file.
        for line in part.text.lines().skip(2).filter(|line| included(line).is_none()) {
            // Where lines are left out, one empty line is enough.
            if !(gap && line.is_empty()) {
                text.push_str(line);
                text.push('\n');
            }
            gap = line.is_empty();
        }
    }
    signed(text)
}

/// The text with its checksum below.
fn signed(mut text: String) -> String {
    let sum = checksum(&text);
    let _ = writeln!(text, "\n{CHECKSUM}{sum:016x}");
    text
}

/// FNV-1a of the lines, however they end; empty ones at the end don't count.
fn checksum(text: &str) -> u64 {
    let text = text.trim_start_matches('\u{feff}').trim_end();
    let bytes = text.bytes().filter(|byte| *byte != b'\r');
    bytes.fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// A runtime header that stands in a project.
#[derive(Clone, Copy, Debug, PartialEq, Eq, salsa::SalsaValue)]
pub struct Installed {
    /// Its version; 0: from before they had one.
    pub version: u32,
    /// The parts that it has.
    pub parts: PartSet,
    /// Whether it is as it was written.
    pub is_intact: bool,
}

impl Installed {
    /// What a file says of itself; `None`: it's no runtime header.
    pub fn read(text: &str) -> Option<Installed> {
        let version = header_version(text)?;
        if version == 0 {
            return Some(Installed {
                version,
                parts: PartSet::NONE,
                is_intact: false,
            });
        }
        let guards = text.lines().filter_map(|line| line.strip_prefix("#define "));
        let guards: Vec<&str> = guards.map(str::trim).collect();
        let has = |guard: String| guards.iter().any(|defined| *defined == guard);
        // A part that is known no more may have become any other.
        let known = guards.iter().filter(|guard| is_guard(guard));
        let is_known = |guard: &&&str| PARTS.iter().any(|part| part.guard() == ***guard);
        let all_known = known.clone().all(|guard| is_known(&guard));
        Some(Installed {
            version,
            parts: match all_known {
                true => PartSet::of(|part| has(part.guard())),
                false => PartSet::all(),
            },
            is_intact: is_intact(text),
        })
    }
}

fn is_guard(defined: &str) -> bool {
    defined.starts_with("GRIDFUSE_") && defined.ends_with("_CUH")
}

/// The header with the parts of two: one that stands somewhere, as a gridfuse that isn't newer has written it, and one of this gridfuse.
/// `None` where one isn't a header, or that which stands there is newer or was changed.
pub fn together(there: &str, new: &str) -> Option<Arc<str>> {
    let (there, new) = (Installed::read(there)?, Installed::read(new)?);
    let ours = there.is_intact && (SUPPORTED_FROM..=VERSION).contains(&there.version);
    ours.then(|| header(there.parts.with(new.parts)))
}

/// Whether the checksum is right.
fn is_intact(text: &str) -> bool {
    let Some((above, below)) = text.rsplit_once(CHECKSUM) else {
        return false;
    };
    u64::from_str_radix(below.trim(), 16).is_ok_and(|sum| sum == checksum(above))
}

/// What a file says of itself.
#[salsa::tracked]
pub(crate) fn installed(db: &dyn Db, file: SourceFile) -> Option<Installed> {
    Installed::read(&file.text(db))
}
