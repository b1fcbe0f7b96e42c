//! Runs: every order in which few branches can arrive, every error code, and random workflows with
//! random workers. After every record all laws are checked, and a second state that only reads the
//! log must be the same.

#![allow(clippy::unwrap_used, clippy::panic, clippy::wildcard_enum_match_arm)]

#[path = "runs/artifacts.rs"]
mod artifacts;
#[path = "runs/bounds.rs"]
mod bounds;
#[path = "runs/broken.rs"]
mod broken;
#[path = "runs/codes.rs"]
mod codes;
#[path = "runs/ending.rs"]
mod ending;
#[path = "runs/fan_in.rs"]
mod fan_in;
#[path = "runs/identity.rs"]
mod identity;
#[path = "runs/laws.rs"]
mod laws;
#[path = "runs/parked.rs"]
mod parked;
#[path = "runs/random.rs"]
mod random;
#[path = "runs/redecide.rs"]
mod redecide;
#[path = "runs/reports.rs"]
mod reports;
#[path = "runs/retention.rs"]
mod retention;
#[path = "runs/rows.rs"]
mod rows;
#[path = "laws/snapshots.rs"]
mod snapshots;
#[path = "runs/snapshots.rs"]
mod snapshots_of_runs;
#[path = "runs/timers.rs"]
mod timers;
#[path = "runs/workflows.rs"]
mod workflows;
#[path = "runs/world.rs"]
mod world;
