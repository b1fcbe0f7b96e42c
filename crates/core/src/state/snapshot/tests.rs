//! What a snapshot refuses, and that it is a stream of bounded blocks.
#![allow(clippy::unwrap_used)]

use tenure_record::event::Record;
use tenure_record::name::QueueName;
use tenure_record::snapshot::BLOCK_BYTES;
use tenure_record::terms::Payload;
use tenure_record::time::{Now, Timestamp};

use super::*;
use crate::command::{Command, NewTask, Rest, SubmitTasks};
use crate::state::{Draft, Facts, State};
use crate::{Verdict, apply, decide, invariant};

fn run(state: &mut State, command: &Command) {
    let now = Now::both(Timestamp(1_000));
    let verdict = decide(&mut Draft::new(state), command, now, 7).unwrap();
    if let Verdict::Append(event, _) = verdict {
        let record = Record { lsn: state.last_lsn().next(), at: now.log, wall: now.wall, event };
        apply(state, &record);
    }
}

fn with_tasks(count: usize, payload_bytes: usize) -> State {
    let mut state = State::new(0);
    for from in (0..count).step_by(1_000) {
        let tasks = (from..count.min(from + 1_000)).map(|n| {
            let queue = QueueName::parse(&format!("queue-{}", n % 7)).unwrap();
            NewTask::new(queue, Payload::parse("payload", vec![n as u8; payload_bytes]).unwrap())
        });
        run(&mut state, &Command::SubmitTasks(SubmitTasks { tasks: tasks.collect() }));
    }
    state
}

fn blocks(facts: &Facts) -> Vec<Vec<u8>> {
    let mut encoder = Encoder::new(facts.clone());
    let mut blocks = Vec::new();
    loop {
        let mut block = Vec::new();
        let rest = encoder.next_block(&mut block).unwrap();
        blocks.push(block);
        if rest == Rest::Nothing {
            return blocks;
        }
    }
}

fn read(bytes: &[u8]) -> Result<State, String> {
    let mut decoder = Decoder::new(3);
    decoder.feed(bytes).and_then(|()| decoder.finish()).map_err(|malformed| malformed.to_string())
}

fn block(section: u64, version: u64, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for mut number in [section, version, bytes.len() as u64] {
        while number >= 0x80 {
            out.push(number as u8 | 0x80);
            number >>= 7;
        }
        out.push(number as u8);
    }
    out.extend_from_slice(bytes);
    out
}

#[test]
fn what_a_reader_does_not_know_it_refuses() {
    let good = blocks(with_tasks(10, 20).facts());
    let with = |at: usize, other: Vec<u8>| {
        let mut blocks = good.clone();
        blocks.insert(at, other);
        read(&blocks.concat()).unwrap_err()
    };
    assert!(with(4, block(7, 1, &[])).contains("section 7"), "an unknown section");
    assert!(with(4, block(4, 2, &[])).contains("version 2"), "a newer section");
    assert!(with(4, block(2, 1, &[])).contains("out of place"), "a section that is over");
    assert!(with(0, block(2, 1, &[])).contains("out of place"), "one before the first");
    assert!(with(7, block(4, 1, &[])).contains("out of place"), "one behind the end");
    assert!(with(6, block(6, 1, &[0x12, 0])).contains("before its run"), "a part of no run");
    assert!(with(4, block(4, 1, &[0x12, 0])).contains("field 2"), "a field of a block");
    assert!(with(4, block(4, 1, &[0x0a, 2, 0xf8, 0x07])).contains("TaskItem has field 127"));
    assert!(with(4, block(4, 1, &[0x0a, 2, 8, 1])).contains("task 1 is out of place"));
}

#[test]
fn what_is_missing_is_noticed() {
    let good = blocks(with_tasks(10, 20).facts());
    assert!(read(&good.concat()).is_ok());
    for missing in 0..good.len() {
        let mut blocks = good.clone();
        blocks.remove(missing);
        read(&blocks.concat()).unwrap_err();
    }
    let whole = good.concat();
    for cut in 0..whole.len() {
        read(&whole[..cut]).unwrap_err();
    }
}

#[test]
fn a_snapshot_from_before_there_were_workflows_is_read() {
    let state = with_tasks(10, 20);
    let mut blocks = blocks(state.facts());
    let end = blocks.pop().unwrap();
    blocks.truncate(4);
    // Section 1,000 is two bytes; then comes its version.
    let old = [&end[..2], &[1], &end[3..]].concat();
    let loaded = read(&[blocks.concat(), old.clone()].concat()).unwrap();
    assert_eq!(loaded.facts().hash(), state.facts().hash());
    read(&[blocks[..3].concat(), old].concat()).unwrap_err();
    read(&[blocks.concat(), end].concat()).unwrap_err();
}

#[test]
fn no_block_is_much_larger_than_it_has_to_be() {
    let state = with_tasks(20_000, 100);
    let blocks = blocks(state.facts());
    assert!(blocks.len() > 6, "{} blocks", blocks.len());
    assert!(blocks.iter().all(|block| block.len() < BLOCK_BYTES + 1_000));
}

#[test]
fn a_stream_may_be_cut_anywhere() {
    let state = with_tasks(3_000, 100);
    let whole = blocks(state.facts()).concat();
    for piece in [1, 7, 100_000] {
        let mut decoder = Decoder::new(0);
        whole.chunks(piece).for_each(|bytes| decoder.feed(bytes).unwrap());
        let mut loaded = decoder.finish().unwrap();
        assert_eq!(loaded.facts().hash(), state.facts().hash());
        loaded.serve(Now::both(Timestamp(1_000)));
        invariant::check(&loaded).unwrap();
    }
}
