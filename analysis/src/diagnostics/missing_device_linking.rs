//! `missing-device-linking`

use crate::base::command::CompileCommand;
use crate::base::compile::compilation;
use crate::base::db::Db;
use crate::base::severity::Severity;
use crate::diagnostics::diagnostic::{Finding, Kind};
use crate::facts::launch::launches;
use crate::hir::items::FunctionItem;

pub(super) const KIND: Kind = Kind {
    id: "missing-device-linking",
    severity: Severity::Error,
    doc: DOC,
    rewrites: &[],
    find: missing_device_linking,
};

const DOC: &str = r#"Device-side launches in a file that is compiled without relocatable device code.

## What it does
Finds functions that launch kernels from device code in a file whose command in `compile_commands.json` lacks `-rdc=true` (or
`-dc`; clang: `-fgpu-rdc`), links without CUDA's device runtime (`-cudadevrt none`), or compiles for an architecture before sm_35.
Without a command for the file, or for one that includes it, nothing is reported.

## Why is this bad
A launch from device code calls the device runtime, a library that is linked with the program's device code. Without relocatable device
code there is no such step, and nvcc refuses the launch: "kernel launch from __device__ or __global__ functions requires separate
compilation mode". Before compute capability 3.5 the hardware can't do it.

## Example
```cuda
// nvcc -arch=sm_90 -c tree.cu
__global__ void child(int* out) { out[threadIdx.x] = threadIdx.x; }

__global__ void parent(int* out) {
    if (threadIdx.x == 0) child<<<1, 32>>>(out);
}
```

## Use instead
`-rdc=true` for compiling and linking (in CMake: `set_target_properties(tree PROPERTIES CUDA_SEPARABLE_COMPILATION ON)`), and
`-lcudadevrt` where the linker isn't nvcc.

```cuda
// nvcc -arch=sm_90 -rdc=true -c tree.cu
__global__ void child(int* out) { out[threadIdx.x] = threadIdx.x; }

__global__ void parent(int* out) {
    if (threadIdx.x == 0) child<<<1, 32>>>(out);
}
```
"#;

/// The first compute capability that can launch from device code, times ten.
const FIRST_ARCH: u32 = 35;

fn missing_device_linking<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<Finding<'db>> {
    let signature = function.signature(db);
    if !(signature.kernel || signature.device) {
        return Vec::new();
    }
    let compiled = compilation(db, function.file(db));
    if !compiled.certain() {
        return Vec::new();
    }
    // One launch is enough: they are all compiled by the same commands.
    let Some(first) = launches(db, function).first() else {
        return Vec::new();
    };
    let Some((message, label, help)) = compiled.commands.iter().find_map(|command| wrong(command)) else {
        return Vec::new();
    };
    vec![Finding {
        span: first.span,
        message,
        label: label.to_owned(),
        related: Vec::new(),
        help: Some(help.to_owned()),
    }]
}

/// What keeps a command's device code from launching kernels: message, label, help.
fn wrong(command: &CompileCommand) -> Option<(String, &'static str, &'static str)> {
    if !command.relocatable {
        return Some((
            "this file is compiled without `-rdc=true`: device code can't launch kernels".to_owned(),
            "does not compile",
            "compile and link with `-rdc=true` (CMake: CUDA_SEPARABLE_COMPILATION)",
        ));
    }
    if let Some(arch) = command.archs.iter().find(|arch| **arch < FIRST_ARCH) {
        return Some((
            format!(
                "this file is compiled for compute capability {}.{}: kernels can be launched from device code since 3.5",
                arch / 10,
                arch % 10
            ),
            "does not compile",
            "compile for a newer architecture",
        ));
    }
    command.without_device_runtime.then(|| {
        (
            "this program is linked with `-cudadevrt none`: without the device runtime, device code can't launch kernels".to_owned(),
            "does not link",
            "leave `-cudadevrt none` out",
        )
    })
}
