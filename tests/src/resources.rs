//! What the compiler and the linker say that kernels take: registers, memory, instructions.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Result, ensure};

use crate::nvcc::Nvcc;

/// What a kernel takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Registers of a thread, with those of the functions that it calls.
    pub registers: u32,
    /// Bytes of stack of a thread, with those of the functions that it calls.
    pub stack: u32,
    /// Bytes of static shared memory of a block.
    pub shared: u32,
    /// Bytes of registers that the kernel itself stores for want of registers.
    pub spilled: u32,
    /// Instructions of the kernel itself.
    pub instructions: usize,
}

impl Usage {
    /// The most threads that a multiprocessor of sm_90 keeps resident, with blocks of 32, 64, … 1024 threads: it has four parts with
    /// 16,384 registers each, given out to warps by 256, 228 KB of shared memory, given out by 128 bytes, of which each block takes 1 KB
    /// more than its own, 64 warps and 32 blocks.
    pub fn resident_threads(&self) -> u32 {
        let registers_of_warp = (self.registers.max(1) * 32).next_multiple_of(256);
        let shared_of_block = (self.shared + 1024).next_multiple_of(128);
        let resident = |threads: u32| {
            let warps = threads / 32;
            let fits = registers_of_warp * warps.next_multiple_of(4) <= 65_536;
            let by_registers = if fits {
                16_384 / registers_of_warp * 4 / warps
            } else {
                0
            };
            threads * by_registers.min(64 / warps).min(32).min(228 * 1024 / shared_of_block)
        };
        (5..=10).map(|power| resident(1 << power)).max().unwrap_or(0)
    }
}

/// What the kernels of a source take when it is compiled with `-O3` for sm_90 and linked, by their symbols. Needs a compiler and no GPU.
///
/// # Errors
/// When the source can't be compiled or linked.
pub fn usages(nvcc: &Nvcc, file: &Path) -> Result<Vec<(String, Usage)>> {
    let (object, linked) = (file.with_extension("cubin"), file.with_extension("linked"));
    let run = |command: &mut Command| -> Result<String> {
        let output = command.stdin(Stdio::null()).output()?;
        let printed = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
        let printed = String::from_utf8_lossy(&printed).into_owned();
        ensure!(output.status.success(), "{command:?}: {printed}");
        Ok(printed)
    };
    let compiled = run(nvcc
        .command()
        .args(["-O3", "-cubin", "-Xptxas", "-v", "-o"])
        .arg(&object)
        .arg(file))?;
    let mut link = Command::new(nvcc.executable().with_file_name("nvlink"));
    link.args(["-v", "-arch=sm_90"]).arg(&object);
    for library in ["lib", "lib64"] {
        let library = nvcc.root().join(library);
        if library.is_dir() {
            link.arg(format!("-L{}", library.display()));
        }
    }
    let printed = run(link.arg("-lcudadevrt").arg("-o").arg(&linked))?;
    let image = fs::read(&linked)?;
    let mut found = Vec::new();
    for (symbol, properties) in properties(&printed, "Function properties for '") {
        let number = |unit: &str| amount(&properties, unit).unwrap_or(0);
        let code = section(&image, &format!(".text.{symbol}"));
        let spilled = self::properties(&compiled, "Function properties for ")
            .into_iter()
            .find(|(other, _)| *other == symbol)
            .and_then(|(_, properties)| amount(&properties, "bytes spill stores"));
        found.push((
            symbol,
            Usage {
                registers: number("registers"),
                stack: number("stack"),
                shared: number("bytes smem"),
                spilled: spilled.unwrap_or(0),
                instructions: code.map_or(0, instructions),
            },
        ));
    }
    Ok(found)
}

/// Pairs of a function and the line that follows its mention.
fn properties(printed: &str, mention: &str) -> Vec<(String, String)> {
    let lines: Vec<&str> = printed.lines().collect();
    lines
        .windows(2)
        .filter_map(|pair| {
            let (_, name) = pair[0].split_once(mention)?;
            Some((name.trim_end_matches("':").trim().to_owned(), pair[1].to_owned()))
        })
        .collect()
}

/// The number in front of a unit: `52` in `used 52 registers, 264 stack`.
fn amount(line: &str, unit: &str) -> Option<u32> {
    let before = line.get(..line.find(&format!(" {unit}"))?)?;
    before.rsplit(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// Whether a mangled name is that of a function, of whatever parameters.
pub fn is_function(symbol: &str, name: &str) -> bool {
    symbol
        .strip_prefix("_Z")
        .is_some_and(|rest| rest.starts_with(&format!("{}{name}", name.len())))
}

/// The contents of a section of a 64-bit ELF image with the least significant byte first.
fn section<'a>(image: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let number = |at: usize, bytes: usize| -> Option<usize> {
        let field = image.get(at..at.checked_add(bytes)?)?;
        usize::try_from(field.iter().rev().fold(0u64, |n, byte| n << 8 | u64::from(*byte))).ok()
    };
    let (table, size, count, names) = (number(40, 8)?, number(58, 2)?, number(60, 2)?, number(62, 2)?);
    let header = |index: usize| index.checked_mul(size)?.checked_add(table);
    let contents = |header: usize| {
        let (at, length) = (number(header + 24, 8)?, number(header + 32, 8)?);
        image.get(at..at.checked_add(length)?)
    };
    let names = contents(header(names)?)?;
    (0..count).find_map(|index| {
        let header = header(index)?;
        let own = names.get(number(header, 4)?..)?;
        let own = own.split(|byte| *byte == 0).next()?;
        (own == name.as_bytes()).then(|| contents(header))?
    })
}

/// The number of instructions of sm_70 and later, each of 16 bytes, without those that do nothing.
fn instructions(code: &[u8]) -> usize {
    const NOP: u16 = 0x918;
    let opcode = |word: &[u8]| u16::from_le_bytes([word[0], word[1]]) & 0xfff;
    code.chunks_exact(16).filter(|word| opcode(word) != NOP).count()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_the_tools_print() {
        let printed = r#"nvlink info    : 8 bytes gmem
nvlink info    : Function properties for '_Z5visitPi':
nvlink info    : used 52 registers, used 1 barriers, 264 stack, 1028 bytes smem, 672 bytes cmem[0], 0 bytes lmem
"#;
        let found = properties(printed, "Function properties for '");
        assert_eq!(found.len(), 1);
        let (name, line) = &found[0];
        assert!(is_function(name, "visit") && !is_function(name, "visi") && !is_function(name, "isit"));
        assert_eq!(
            ["registers", "stack", "bytes smem", "miles"].map(|unit| amount(line, unit)),
            [Some(52), Some(264), Some(1028), None]
        );
        let compiled = "ptxas info    : Function properties for _Z5visitPi\n    32 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads\n";
        let found = properties(compiled, "Function properties for ");
        assert_eq!(amount(&found[0].1, "bytes spill stores"), Some(8));
    }

    #[test]
    fn what_is_no_image() {
        assert_eq!(section(b"\x7fELF", ".text"), None);
        assert_eq!(section(&[0xff; 64], ".text"), None);
        let nop = 0x0918u16.to_le_bytes();
        let mut code = vec![0u8; 48];
        code[16..18].copy_from_slice(&nop);
        assert_eq!(instructions(&code), 2);
    }
}
