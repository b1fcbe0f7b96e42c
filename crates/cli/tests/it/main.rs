//! The real binary as users meet it, in one program, because each program is a link of everything.
//!
//! A test that counts descriptors, sets a limit, takes a disk for itself or measures has a program
//! of its own beside this folder.
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "../evidence/mod.rs"]
mod evidence;
#[path = "../server/mod.rs"]
mod server;
mod support;

mod archive;
mod artifacts;
mod backup;
mod bad_input;
mod bench;
mod client;
mod data_folder;
mod dead_letters;
mod exec;
mod faults;
mod flows;
mod front_door;
mod grpc;
mod large;
mod memory;
mod queues;
mod refusals;
mod reports;
mod samples;
mod serve;
mod snapshot;
mod submit_terms;
mod wal;
mod workflow;
