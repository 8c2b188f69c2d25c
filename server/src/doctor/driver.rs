//! What the driver itself says of the GPUs, without a toolkit and without another program. Its library is loaded when it's
//! there; nothing is linked to it.

use std::ffi::c_int;
use std::panic::catch_unwind;

use cudarc::driver::result::{self, device};
use cudarc::driver::sys::{self, CUdevice, CUdevice_attribute, CUresult};

use crate::schema::Gpu;

/// What a driver says.
#[derive(Debug)]
pub struct Driver {
    /// The newest CUDA that it runs programs of: 13 and 0.
    pub cuda: (u32, u32),
    /// The GPUs that a program sees.
    pub gpus: Vec<Gpu>,
}

/// Asks the driver; `None`: there is no library of it.
pub fn ask() -> Option<Result<Driver, String>> {
    // SAFETY: loading a library runs its initialisation. This one is NVIDIA's driver, which the dynamic linker finds in the directories of the
    // system, or where the user's environment says; the caller has seen that it names no directory of the project.
    if !unsafe { sys::is_culib_present() } {
        return None;
    }
    // The crate panics where the library lacks a function.
    let said = catch_unwind(query);
    Some(said.unwrap_or_else(|_| Err("its library lacks a function that every driver has".to_owned())))
}

fn query() -> Result<Driver, String> {
    let failed = |what: &str, error: CUresult| format!("its library fails: {what} gives {error:?}");
    let mut version = 0;
    // SAFETY: the pointer leads to a variable that outlives the call; the function may be called before `cuInit`.
    let said = unsafe { sys::cuDriverGetVersion(&raw mut version) };
    said.result().map_err(|error| failed("cuDriverGetVersion", error.0))?;
    let version = u32::try_from(version).unwrap_or_default();
    let cuda = (version / 1000, version % 1000 / 10);
    let gpus = match result::init() {
        Err(error) if error.0 == CUresult::CUDA_ERROR_NO_DEVICE => Vec::new(),
        Err(error) => return Err(failed("cuInit", error.0)),
        Ok(()) => {
            let count = device::get_count().map_err(|error| failed("cuDeviceGetCount", error.0))?;
            let all = (0..count).map(gpu).collect::<Result<Vec<Gpu>, _>>();
            all.map_err(|error| failed("a question about a GPU", error.0))?
        }
    };
    Ok(Driver { cuda, gpus })
}

fn gpu(ordinal: c_int) -> Result<Gpu, result::DriverError> {
    let of = device::get(ordinal)?;
    let number = |what| attribute(of, what).map(|value| u32::try_from(value).unwrap_or_default());
    let major = number(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
    let minor = number(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
    // SAFETY: `of` comes from `cuDeviceGet`, which has succeeded.
    let memory = unsafe { device::total_mem(of) }?;
    Ok(Gpu {
        name: device::get_name(of)?,
        compute_capability: format!("{major}.{minor}"),
        multiprocessors: number(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        memory_bytes: memory as u64,
    })
}

fn attribute(of: CUdevice, what: CUdevice_attribute) -> Result<c_int, result::DriverError> {
    // SAFETY: `of` comes from `cuDeviceGet`, which has succeeded.
    unsafe { device::get_attribute(of, what) }
}
