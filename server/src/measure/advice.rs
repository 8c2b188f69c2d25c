//! What to do about an error that CUDA reports.

/// A sentence about an error, by CUDA's name of it; `None`: the name says all.
pub fn about(error: &str) -> Option<&'static str> {
    Some(match error {
        "cudaErrorLaunchPendingCountExceeded" => {
            "more launches were pending at once than their pool holds, and the others were dropped: raise \
             cudaLimitDevRuntimePendingLaunchCount before the first kernel (the rewrite raise-pending-launch-limit does), or launch \
             less often (threshold, aggregate-*)"
        }
        "cudaErrorLaunchMaxDepthExceeded" => {
            "kernels launch each other more than 24 levels deep: turn the recursion into a loop"
        }
        "cudaErrorMemoryAllocation" => {
            "the GPU's memory is exhausted: measure with smaller input (--args), or close what else uses the GPU (`nvidia-smi` shows it)"
        }
        "cudaErrorIllegalAddress"
        | "cudaErrorMisalignedAddress"
        | "cudaErrorInvalidAddressSpace"
        | "cudaErrorInvalidPc"
        | "cudaErrorIllegalInstruction"
        | "cudaErrorHardwareStackError"
        | "cudaErrorLaunchFailure" => {
            "a kernel reaches memory that isn't its own, or worse: `compute-sanitizer PROGRAM` says which, and where"
        }
        "cudaErrorAssert" => "an assert in device code does not hold; what it printed is above",
        "cudaErrorInvalidConfiguration" => {
            "a launch has an impossible size: a grid of 0 blocks, or a block of more threads than the GPU allows"
        }
        "cudaErrorLaunchOutOfResources" => {
            "a block needs more registers or shared memory than a multiprocessor has: make blocks smaller, or add __launch_bounds__"
        }
        "cudaErrorLaunchTimeout" => {
            "the GPU also drives a display, whose watchdog ends long kernels: measure on another GPU or with smaller input"
        }
        "cudaErrorNoKernelImageForDevice" | "cudaErrorInvalidKernelImage" => {
            "the program was built for another GPU: leave --arch and `arch` in gridfuse.toml out, or name this GPU's"
        }
        "cudaErrorUnsupportedPtxVersion" | "cudaErrorInsufficientDriver" => {
            "the driver is older than the toolkit: install a newer driver, or build with an older toolkit (--nvcc)"
        }
        "cudaErrorSystemDriverMismatch" => "the driver was updated without a restart: restart the machine",
        "cudaErrorNoDevice" => {
            "the driver sees no GPU: is one there (`nvidia-smi`), and does CUDA_VISIBLE_DEVICES name it?"
        }
        "cudaErrorDevicesUnavailable" => {
            "another program has the GPU for itself (compute mode `exclusive`): wait for it, or choose another by CUDA_VISIBLE_DEVICES"
        }
        "cudaErrorCdpNotSupported" | "cudaErrorCdpVersionMismatch" => {
            "parts of the program were built for different versions of dynamic parallelism: build all of it with CUDA 12 or newer, \
             without CUDA_FORCE_CDP1_IF_SUPPORTED"
        }
        "cudaErrorECCUncorrectable" => {
            "the GPU's memory has failed: no result of it can be trusted; restart the machine"
        }
        _ => return None,
    })
}

#[cfg(unix)]
/// A sentence about how a program ended that CUDA has said nothing about; `signal`: what ended it.
pub fn about_signal(signal: i32) -> Option<&'static str> {
    match signal {
        // SIGKILL
        9 => Some("something outside has killed it; mostly that is the system, when memory runs out"),
        // SIGABRT, SIGBUS, SIGSEGV
        6 | 7 | 11 => {
            Some("host code has failed: a debugger (`cuda-gdb PROGRAM`) says where, `compute-sanitizer PROGRAM` why")
        }
        _ => None,
    }
}
