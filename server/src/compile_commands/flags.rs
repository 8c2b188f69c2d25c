//! The flags of a compile command: nvcc's, and those of clang and gcc that mean the same.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use gridfuse_analysis::base::command::CompileCommand;
use gridfuse_analysis::base::command::DefaultStream;
use gridfuse_analysis::base::command::MacroFlag;

use crate::files::{self, MAX_FOUND_BYTES, normalize};

/// Files of options may name others, so deep.
const MAX_OPTION_FILES: usize = 32;

/// Flags that matter and have a value, by all their names.
const WITH_VALUE: &[(Flag, &[&str])] = &[
    (
        Flag::Include,
        &["-I", "--include-path", "--include-directory", "-iquote"],
    ),
    (Flag::SystemInclude, &["-isystem", "--system-include", "-idirafter"]),
    (Flag::Define, &["-D", "--define-macro"]),
    (Flag::Undefine, &["-U", "--undefine-macro"]),
    (Flag::ForcedInclude, &["-include", "--pre-include"]),
    (
        Flag::Arch,
        &["-arch", "--gpu-architecture", "--cuda-gpu-arch", "--offload-arch"],
    ),
    (Flag::Gencode, &["-gencode", "--generate-code"]),
    (Flag::Relocatable, &["-rdc", "--relocatable-device-code"]),
    (
        Flag::DefaultStream,
        &["-default-stream", "--default-stream", "-fgpu-default-stream"],
    ),
    (Flag::DeviceRuntime, &["-cudadevrt", "--cudadevrt"]),
    (Flag::OptionsFile, &["-optf", "--options-file"]),
];

/// Flags whose value is the next word and concerns other tools or nothing that is analysed: the value must not be read as a flag.
const SKIPPED_WITH_VALUE: &[&str] = &[
    "-o",
    "--output-file",
    "-x",
    "--x",
    "-MF",
    "-MT",
    "-MQ",
    "-Xcompiler",
    "--compiler-options",
    "-Xptxas",
    "--ptxas-options",
    "-Xlinker",
    "--linker-options",
    "-Xnvlink",
    "--nvlink-options",
    "-Xarchive",
    "-Xfatbin",
    "-Xcudafe",
    "-Xclang",
    "-Xpreprocessor",
    "-Xcuda-ptxas",
    "-Xcuda-fatbinary",
    "-mllvm",
    "-ccbin",
    "--compiler-bindir",
    "-code",
    "--gpu-code",
    "-L",
    "-l",
    "-std",
    "--std",
    "-maxrregcount",
    "--maxrregcount",
    "-odir",
    "--output-directory",
    "-keep-dir",
    "-t",
    "--threads",
    "-target",
    "-arch-list",
    "-diag-suppress",
    "-diag-error",
    "-diag-warn",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flag {
    Include,
    SystemInclude,
    Define,
    Undefine,
    ForcedInclude,
    Arch,
    Gencode,
    Relocatable,
    DefaultStream,
    DeviceRuntime,
    OptionsFile,
}

/// Understands a command line that is run in `directory`; a problem is a sentence about a flag that was left out of account.
pub fn parse(directory: &Path, words: Vec<String>) -> (CompileCommand, Vec<String>) {
    let mut reader = Reader {
        directory,
        words: words.into(),
        option_files: 0,
        command: CompileCommand::default(),
        system: Vec::new(),
        compiles_only: false,
        cuda_runtime_left_out: false,
        unknown_arch: false,
        problems: Vec::new(),
    };
    if let Some(compiler) = reader.words.pop_front() {
        reader.command.cuda = toolkit_version(&compiler);
    }
    reader.read();
    let mut command = reader.command;
    command.include_dirs.append(&mut reader.system);
    command.without_device_runtime = reader.cuda_runtime_left_out && !reader.compiles_only;
    if reader.unknown_arch {
        command.archs.clear();
    }
    command.archs.sort_unstable();
    command.archs.dedup();
    (command, reader.problems)
}

/// `/usr/local/cuda-12.4/bin/nvcc` → 12.4
fn toolkit_version(compiler: &str) -> Option<(u32, u32)> {
    Path::new(compiler).components().find_map(|part| {
        let version = part.as_os_str().to_str()?.strip_prefix("cuda-")?;
        let (major, minor) = version.split_once('.')?;
        let minor = minor.split('.').next()?;
        major.parse().ok().zip(minor.parse().ok())
    })
}

struct Reader<'a> {
    directory: &'a Path,
    words: VecDeque<String>,
    option_files: usize,
    command: CompileCommand,
    system: Vec<PathBuf>,
    compiles_only: bool,
    cuda_runtime_left_out: bool,
    unknown_arch: bool,
    problems: Vec<String>,
}

impl Reader<'_> {
    fn read(&mut self) {
        while let Some(word) = self.words.pop_front() {
            if let Some(file) = word.strip_prefix('@') {
                self.options_file(file);
            } else if let Some((flag, value)) = self.with_value(&word) {
                self.apply(flag, value);
            } else if SKIPPED_WITH_VALUE.contains(&word.as_str()) {
                self.words.pop_front();
            } else {
                match word.as_str() {
                    "-dc" | "--device-c" | "--device-compile" => {
                        self.command.relocatable = true;
                        self.compiles_only = true;
                    }
                    "-fgpu-rdc" | "-fcuda-rdc" => self.command.relocatable = true,
                    "-restrict" | "--restrict" => self.command.restrict = true,
                    "-fno-gpu-rdc" | "-fno-cuda-rdc" => self.command.relocatable = false,
                    "-c" | "--compile" | "-E" | "--preprocess" | "-S" | "-ptx" | "--ptx" | "-cubin" | "--cubin"
                    | "-fatbin" | "--fatbin" | "-dw" | "--device-w" | "-fsyntax-only" => self.compiles_only = true,
                    _ => {}
                }
            }
        }
    }

    /// A flag with its value: `-DX`, `-D X`, `--define-macro=X`, `-arch=sm_90`, `-arch sm_90`.
    fn with_value(&mut self, word: &str) -> Option<(Flag, String)> {
        for (flag, names) in WITH_VALUE {
            for name in *names {
                let Some(rest) = word.strip_prefix(name) else { continue };
                if rest.is_empty() {
                    return Some((*flag, self.words.pop_front().unwrap_or_default()));
                }
                if let Some(value) = rest.strip_prefix('=') {
                    return Some((*flag, value.to_owned()));
                }
                // Only one-letter flags and a few others may be written together with their value.
                if name.len() == 2 || matches!(*name, "-isystem" | "-iquote" | "-idirafter") {
                    return Some((*flag, rest.to_owned()));
                }
            }
        }
        None
    }

    fn path(&self, written: &str) -> PathBuf {
        normalize(&self.directory.join(written))
    }

    fn apply(&mut self, flag: Flag, value: String) {
        // nvcc takes several values, separated by commas.
        let values = || value.split(',').filter(|v| !v.is_empty());
        match flag {
            Flag::Include => {
                let dirs: Vec<PathBuf> = values().map(|dir| self.path(dir)).collect();
                self.command.include_dirs.extend(dirs);
            }
            Flag::SystemInclude => {
                let dirs: Vec<PathBuf> = values().map(|dir| self.path(dir)).collect();
                self.system.extend(dirs);
            }
            Flag::Define => {
                let (name, text) = value.split_once('=').unwrap_or((&value, "1"));
                if !name.is_empty() {
                    if name == "CUDA_API_PER_THREAD_DEFAULT_STREAM" {
                        self.command.default_stream = DefaultStream::PerThread;
                    }
                    // A line break would end the directive.
                    let line = format!("{name} {text}").replace(['\n', '\r'], " ");
                    self.command.macros.push(MacroFlag::Define(line));
                }
            }
            Flag::Undefine => self.command.macros.push(MacroFlag::Undefine(value.trim().to_owned())),
            Flag::ForcedInclude => {
                let files: Vec<PathBuf> = values().map(|file| self.path(file)).collect();
                self.command.forced_includes.extend(files);
            }
            Flag::Arch => {
                for value in value.split(',') {
                    match architecture(value) {
                        Some(arch) => self.command.archs.push(arch),
                        None => {
                            self.unknown_arch = true;
                            if !matches!(value, "native" | "all" | "all-major") {
                                self.problems.push(format!("`{value}` is no GPU architecture"));
                            }
                        }
                    }
                }
            }
            Flag::Gencode => {
                let arch = value.split(',').find_map(|part| part.trim().strip_prefix("arch="));
                match arch.and_then(architecture) {
                    Some(arch) => self.command.archs.push(arch),
                    None => {
                        self.unknown_arch = true;
                        self.problems.push(format!("`{value}` names no GPU architecture"));
                    }
                }
            }
            Flag::Relocatable => match value.as_str() {
                "true" => self.command.relocatable = true,
                "false" => self.command.relocatable = false,
                _ => self.problems.push(format!("-rdc is `true` or `false`, not `{value}`")),
            },
            Flag::DefaultStream => match value.as_str() {
                "per-thread" => self.command.default_stream = DefaultStream::PerThread,
                "legacy" | "null" => self.command.default_stream = DefaultStream::Legacy,
                _ => self.problems.push(format!("there is no default stream `{value}`")),
            },
            Flag::DeviceRuntime => self.cuda_runtime_left_out = value == "none",
            Flag::OptionsFile => {
                for file in value.split(',') {
                    self.options_file(file);
                }
            }
        }
    }

    /// Puts the words of a file of options before those that are left.
    fn options_file(&mut self, written: &str) {
        let path = self.path(written);
        self.option_files += 1;
        if self.option_files > MAX_OPTION_FILES {
            self.problems.push("files of options are nested too deeply".to_owned());
            return;
        }
        match files::read(&path, MAX_FOUND_BYTES) {
            Ok(text) => match shlex::split(&text) {
                Some(words) => {
                    for word in words.into_iter().rev() {
                        self.words.push_front(word);
                    }
                }
                None => self
                    .problems
                    .push(format!("a quote is not closed in {}", path.display())),
            },
            Err(error) => self
                .problems
                .push(format!("cannot read the options in {}: {error}", path.display())),
        }
    }
}

/// `sm_90a`, `compute_90` → 90
fn architecture(written: &str) -> Option<u32> {
    let number = written
        .strip_prefix("sm_")
        .or_else(|| written.strip_prefix("compute_"))?;
    let number = number.trim_end_matches(['a', 'f']).parse().ok()?;
    (10..1000).contains(&number).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(line: &str) -> (CompileCommand, Vec<String>) {
        let words = shlex::split(&format!("/usr/local/cuda-12.4/bin/nvcc {line}")).unwrap_or_default();
        parse(Path::new("/w/build"), words)
    }

    #[test]
    fn cmake_and_hand_written_commands() {
        let (command, problems) = flags(
            "-forward-unknown-to-host-compiler -DA -DB=2 -D 'C(x)=x + 1' --define-macro=D=\\\"s\\\" -UE -I../inc -I /abs \
             -isystem /sys -isystem=../sys2 --generate-code=arch=compute_80,code=[compute_80,sm_80] \
             -gencode arch=compute_90,code=sm_90 -Xcompiler -DNOT,-fPIC -std=c++17 -rdc=true -x cu -c /w/a.cu -o a.o",
        );
        assert!(problems.is_empty(), "{problems:?}");
        let define = |text: &str| MacroFlag::Define(text.to_owned());
        let expected = [
            define("A 1"),
            define("B 2"),
            define("C(x) x + 1"),
            define("D \"s\""),
            MacroFlag::Undefine("E".to_owned()),
        ];
        assert_eq!(command.macros, expected);
        let dirs: Vec<PathBuf> = ["/w/inc", "/abs", "/sys", "/w/sys2"].map(PathBuf::from).to_vec();
        assert_eq!(command.include_dirs, dirs);
        assert_eq!(command.archs, [80, 90]);
        assert_eq!(command.cuda, Some((12, 4)));
        assert!(command.relocatable && !command.without_device_runtime);
        assert_eq!(command.default_stream, DefaultStream::Legacy);
    }

    #[test]
    fn spellings() {
        assert!(flags("-dc a.cu").0.relocatable);
        assert!(flags("--restrict a.cu").0.restrict && !flags("-dc a.cu").0.restrict);
        assert!(flags("-rdc true a.cu").0.relocatable);
        assert!(flags("-fgpu-rdc a.cu").0.relocatable);
        assert!(!flags("-rdc=true --relocatable-device-code=false a.cu").0.relocatable);
        assert!(!flags("-c a.cu").0.relocatable);
        for per_thread in [
            "-default-stream per-thread",
            "--default-stream=per-thread",
            "-DCUDA_API_PER_THREAD_DEFAULT_STREAM",
        ] {
            let (command, _) = flags(per_thread);
            assert_eq!(command.default_stream, DefaultStream::PerThread, "{per_thread}");
        }
        assert_eq!(flags("-arch=sm_90a").0.archs, [90]);
        assert_eq!(flags("-arch compute_75 -code sm_80").0.archs, [75]);
        assert_eq!(flags("--cuda-gpu-arch=sm_70 --offload-arch=sm_80").0.archs, [70, 80]);
        assert_eq!(flags("-arch=sm_80 -arch=native").0.archs, [0; 0]);
        assert_eq!(
            flags("-include pre.h").0.forced_includes,
            [PathBuf::from("/w/build/pre.h")]
        );
        assert!(flags("a.cu -cudadevrt none -o a").0.without_device_runtime);
        assert!(!flags("a.cu -cudadevrt none -c").0.without_device_runtime);
    }

    #[test]
    fn nonsense_is_told_and_left_out() {
        for (line, problem) in [
            ("-arch=gtx", "no GPU architecture"),
            ("-rdc=maybe", "not `maybe`"),
            ("-gencode code=sm_80", "names no GPU architecture"),
            ("--default-stream=fast", "no default stream `fast`"),
            ("@/nowhere/x.rsp", "cannot read the options"),
        ] {
            let (command, problems) = flags(line);
            assert_eq!(command.archs, [0; 0], "{line}");
            assert!(problems.iter().any(|p| p.contains(problem)), "{line}: {problems:?}");
        }
        // A flag at the end without its value.
        assert!(flags("-D").0.macros.is_empty());
        flags("-arch");
        flags("-I");
        flags("-o");
        assert_eq!(parse(Path::new("/"), Vec::new()).0, CompileCommand::default());
    }

    #[test]
    fn files_of_options() -> std::io::Result<()> {
        let dir = tempfile::tempdir()?;
        std::fs::write(dir.path().join("a.rsp"), "-DA=1 -I\"with space\" @b.rsp\n-DC\n")?;
        std::fs::write(dir.path().join("b.rsp"), "-DB @b.rsp")?;
        let words = ["nvcc", "--options-file", "a.rsp", "-DD"].map(str::to_owned).to_vec();
        let (command, problems) = parse(dir.path(), words);
        let names: Vec<&str> = command
            .macros
            .iter()
            .map(|flag| match flag {
                MacroFlag::Define(line) | MacroFlag::Undefine(line) => line.as_str(),
            })
            .collect();
        assert_eq!((names.first(), names.get(1)), (Some(&"A 1"), Some(&"B 1")));
        assert_eq!(names.iter().rev().take(2).collect::<Vec<_>>(), [&"D 1", &"C 1"]);
        assert_eq!(command.include_dirs, [dir.path().join("with space")]);
        assert_eq!(problems, ["files of options are nested too deeply"]);
        Ok(())
    }
}
