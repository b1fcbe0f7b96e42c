//! The figures that the coordinator is held to, measured on a real disk, beside the bare disk.
//! `cargo xtask bench coordinator` runs them; `TENURE_BENCH_DIR` says on which disk.

mod callers;
mod calls;
mod curve;
mod disk;
mod idle;
mod replay;
mod standstill;
mod start;
mod steps;
mod under_way;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Case = (&'static str, fn());

const CASES: [Case; 9] = [
    ("one", callers::one),
    ("threads", callers::threads),
    ("tasks", callers::tasks),
    ("steps", steps::expiry),
    ("replay", replay::replay),
    ("idle", idle::idle),
    ("start", start::start),
    ("snapshot", under_way::snapshot),
    ("curve", curve::curve),
];

fn main() {
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let wanted = |name: &str| arguments.is_empty() || arguments.iter().any(|a| a == name);
    match CASES.iter().filter(|(name, _)| wanted(name)).collect::<Vec<_>>().as_slice() {
        // It looks at memory, and warms it in its own way.
        [("start", case)] => case(),
        [(_, case)] => {
            warm_memory();
            case();
        }
        // Each in a process of its own: what one leaves in the allocator must not help the next.
        several => several.iter().for_each(|(name, _)| in_own_process(name)),
    }
}

fn in_own_process(case: &str) {
    let program = std::env::current_exe().expect("a program knows its own path");
    let ended = std::process::Command::new(program).arg(case).status();
    assert!(ended.is_ok_and(|status| status.success()), "the case {case:?} did not end well");
}

/// Touches as much memory as the largest case needs and gives it back. A virtual machine gets its
/// memory from the host on first touch, which takes longer than much that is measured here.
fn warm_memory() {
    let mut memory: Vec<u8> = Vec::with_capacity(6 << 30);
    memory.resize(memory.capacity(), 1);
    std::hint::black_box(&memory);
}
