//! T16: the short form of fuzzing, part of every test run: the corpus is played again, then each target
//! gets inputs made from it and from its seeds, always the same ones.
//!
//! The long form is `cargo xtask fuzz`. An input that it finds goes into `corpus/<target>.txt`
//! for ever.
#![allow(clippy::unwrap_used)]

use std::alloc::System;
use std::io::Write;
use std::time::Instant;

use cap::Cap;
use tenure_fuzz::{MEMORY_BYTES_MAX, TARGETS, target};

/// An allocation beyond this ends the process.
#[global_allocator]
static MEMORY: Cap<System> = Cap::new(System, MEMORY_BYTES_MAX);

const INPUT_BYTES_MAX: usize = 600;

/// A generator of numbers that is the same everywhere: splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, count: usize) -> usize {
        (self.next() % count.max(1) as u64) as usize
    }
}

/// Changes an input in one to eight places, with the help of another one.
fn mutate(input: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    for _ in 0..1 + random.below(8) {
        let at = random.below(input.len());
        match random.below(8) {
            0..=2 if !input.is_empty() => input[at] = random.next() as u8,
            3 if !input.is_empty() => input[at] ^= 1 << random.below(8),
            4 => input.insert(at, random.next() as u8),
            5 if !input.is_empty() => drop(input.remove(at)),
            6 => input.extend_from_slice(&random.next().to_le_bytes()[..random.below(9)]),
            _ => {
                let from = random.below(other.len());
                let until = from + random.below(other.len() - from + 1);
                input.splice(at..at, other[from..until].iter().copied());
            }
        }
        input.truncate(INPUT_BYTES_MAX);
    }
}

/// Plays what is known, and then so many inputs made from it.
fn fuzz(name: &str, inputs: u32) {
    let target = target(name).unwrap();
    let started_at = Instant::now();
    let known = target.known();
    known.iter().for_each(|input| (target.run)(input));
    let mut random = Random(name.bytes().map(u64::from).sum());
    for nth in 0..inputs {
        let mut input = known[random.below(known.len())].clone();
        let other = &known[random.below(known.len())];
        mutate(&mut input, other, &mut random);
        let ran = std::panic::catch_unwind(|| (target.run)(&input));
        assert!(ran.is_ok(), "{name}, input {nth}: {input:?}");
    }
    println!("{name}: {} known inputs, {inputs} made, {:?}", known.len(), started_at.elapsed());
    // Past the capture of test output, so that every run shows it.
    let line =
        format!("\nevidence: T16 inputs of {name} {}, broken 0\n", known.len() + inputs as usize);
    let _ = std::io::stdout().write_all(line.as_bytes());
}

#[test]
fn any_bytes_are_a_record_or_refused() {
    fuzz("record", 200_000);
}

#[test]
fn any_header_of_a_segment_is_answered() {
    fuzz("header", 20_000);
}

#[test]
fn a_damaged_log_is_refused_or_a_beginning_of_what_was_written() {
    fuzz("log", 12_000);
}

#[test]
fn a_forged_log_is_refused_or_makes_sense() {
    fuzz("forged", 12_000);
}

#[test]
fn a_damaged_snapshot_is_refused() {
    fuzz("snapshot", 100_000);
}

#[test]
fn a_changed_state_in_a_snapshot_is_refused_or_can_be_asked() {
    fuzz("state", 20_000);
}

#[test]
fn any_text_is_a_definition_or_has_faults() {
    fuzz("definition", 3_000);
}

#[test]
fn any_text_is_an_expression_or_refused() {
    fuzz("expression", 10_000);
}

#[test]
fn any_bytes_are_a_request_or_refused() {
    fuzz("request", 100_000);
}

#[test]
fn every_target_is_fuzzed_here() {
    // The nine above, by name.
    let names = TARGETS.map(|target| target.name);
    let of_disk = ["record", "header", "log", "forged", "snapshot", "state"];
    assert_eq!(names[..6], of_disk);
    assert_eq!(names[6..], ["definition", "expression", "request"]);
}
