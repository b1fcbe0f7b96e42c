//! The fuzz targets under libFuzzer, which finds its way by what each input reaches in the code.
//! `cargo xtask fuzz` builds and runs it; `TENURE_FUZZ_TARGET` says which target.
#![no_main]

use std::alloc::System;
use std::sync::OnceLock;

use cap::Cap;
use tenure_fuzz::{MEMORY_BYTES_MAX, Target, target};

/// The fuzzer keeps its own corpus elsewhere: it is written in C++.
#[global_allocator]
static MEMORY: Cap<System> = Cap::new(System, MEMORY_BYTES_MAX);

static CHOSEN: OnceLock<&'static Target> = OnceLock::new();

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let chosen = CHOSEN.get_or_init(|| {
        let name = std::env::var("TENURE_FUZZ_TARGET").unwrap_or_default();
        target(&name).expect("TENURE_FUZZ_TARGET names a target")
    });
    (chosen.run)(bytes);
});
