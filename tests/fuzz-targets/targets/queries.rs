//! Feeds bytes to [`gridfuse_fuzz_targets::queries`].
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| gridfuse_fuzz_targets::queries::run(bytes));

#[cfg(not(fuzzing))]
fn main() -> std::io::Result<()> {
    gridfuse_fuzz_targets::replay::files(gridfuse_fuzz_targets::queries::run)
}
