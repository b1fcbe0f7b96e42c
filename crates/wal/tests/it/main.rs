//! The log on a disk in memory that crashes, rots and fails, and on the real one, in one program,
//! because each program is a link of everything.
//!
//! What is called by name, starts itself again or mounts a disk has a program of its own.
#![allow(clippy::unwrap_used)]

#[path = "../support/mod.rs"]
mod support;

mod backups;
mod basic;
mod conformance;
mod corruption;
mod crash_points;
mod durability;
mod io_faults;
mod large_frames;
mod readers;
mod snapshots;
mod trims;
