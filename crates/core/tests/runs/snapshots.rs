//! Snapshots of runs: whatever runs there are, a snapshot and what follows it give what all records
//! give; what is damaged is refused, or is something that the laws can be asked about.

use tenure_core::command::{Command, Rest};
use tenure_core::state::Facts;
use tenure_core::state::snapshot::{Decoder, Encoder};

use super::random::played;
use super::world::{Checks, World};
use crate::snapshots::{read_damaged, whole, written_and_read};

/// Seeds that every test run plays.
const SEEDS: u64 = 120;
/// Seeds whose snapshots are damaged, and how often each is.
const DAMAGED_SEEDS: u64 = 25;
const DAMAGES: u64 = 400;
/// A block is closed at this size; only its last part may be beyond it.
const BLOCK_BYTES: usize = 512 << 10;

fn blocks(facts: &Facts) -> Vec<Vec<u8>> {
    let mut encoder = Encoder::new(facts.clone());
    let mut blocks = vec![Vec::new()];
    while encoder.next_block(blocks.last_mut().unwrap()).unwrap() == Rest::More {
        blocks.push(Vec::new());
    }
    blocks
}

#[test]
fn a_snapshot_of_runs_and_what_follows_it_give_what_the_whole_log_gives() {
    for seed in 0..SEEDS {
        let (world, _) = played(seed);
        world.verify_snapshots();
    }
}

#[test]
fn a_changed_snapshot_of_runs_never_ends_the_process() {
    let mut number = 1_u64;
    let mut next = move || {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (number >> 33) as usize
    };
    let mut refused = 0;
    for seed in 0..DAMAGED_SEEDS {
        let (world, _) = played(seed);
        // Somewhere in the middle, where much is alive.
        let log = &world.log[..world.log.len() / 2 + 1];
        let sound = whole(log).unwrap();
        for _ in 0..DAMAGES {
            let mut bytes = sound.clone();
            let at = next() % bytes.len();
            match next() % 4 {
                0 => bytes[at] = next() as u8,
                1 => bytes[at] ^= 1 << (next() % 8),
                2 => drop(bytes.remove(at)),
                _ => bytes.insert(at, next() as u8),
            }
            refused += u64::from(read_damaged(&bytes).is_none());
        }
    }
    assert!(refused > DAMAGED_SEEDS * DAMAGES / 2, "{refused} refused");
}

#[test]
fn every_block_and_every_end_that_is_missing_is_noticed() {
    let (world, _) = played(3);
    let state = written_and_read(world.state.facts()).unwrap();
    assert!(state.facts().run_count() > 0);
    let sound = whole(&world.log[..world.log.len() / 2 + 1]).unwrap();
    for cut in 0..sound.len() {
        let mut decoder = Decoder::new(0);
        assert!(decoder.feed(&sound[..cut]).and_then(|()| decoder.finish()).is_err());
    }
}

const WIDE: &str = "workflow: wide
initial_node: a
nodes:
  - {ref: a, kind: pass}
  - {ref: b, kind: task, task: {queue: q}}
  - {ref: c, kind: pass}
transitions:
  - {ref: fan, from: a, to: b, foreach: {collection: input.list, item_var: x}}
  - {from: b, to: c, synchronization: {joins_transition: fan, merge: [{target: context.r, strategy: append}]}}
context_schema: {type: object, properties: {large: {type: string, default: LARGE}}}
";

/// A run with many branches that share a context of 100 KB.
fn wide(branches: usize) -> World {
    let mut world = World::with(Checks::Touched);
    world.register(&WIDE.replace("LARGE", &"x".repeat(100_000)));
    let list: Vec<String> = (0..branches).map(|n| n.to_string()).collect();
    world.start("wide", &format!(r#"{{"list":[{}]}}"#, list.join(",")));
    for _ in 0..branches.div_ceil(1_000) {
        world.play(&Command::ContinueDispatch).unwrap();
    }
    for lease in world.lease(500) {
        world.complete(lease, r#"{"n":1}"#).unwrap();
    }
    world
}

#[test]
fn a_wide_run_is_many_small_blocks_and_shares_what_was_shared() {
    let world = wide(20_000);
    let facts = world.state.facts();
    let blocks = blocks(facts);
    let bytes: usize = blocks.iter().map(Vec::len).sum();
    // Each branch reads the context; it is written once.
    assert!(bytes < 20_000 * 300, "{bytes} bytes");
    assert!(blocks.iter().all(|block| block.len() < BLOCK_BYTES + 200_000));
    assert!(blocks.len() > 6, "{} blocks", blocks.len());
    let read = written_and_read(facts).unwrap();
    assert_eq!(read.facts().hash(), facts.hash());
    assert!(self::blocks(read.facts()) == blocks, "what is read is written the same way again");
}

#[test]
fn a_block_of_a_wide_run_that_is_missing_or_out_of_order_is_refused() {
    let world = wide(12_000);
    let blocks = blocks(world.state.facts());
    for at in 0..blocks.len() {
        let mut fewer = blocks.clone();
        fewer.remove(at);
        assert!(read_damaged(&fewer.concat()).is_none(), "without block {at}");
        let mut twice = blocks.clone();
        twice.insert(at, blocks[at].clone());
        let is_refused = read_damaged(&twice.concat()).is_none();
        // The counters may be said twice; so may what is empty.
        assert!(is_refused || blocks[at].len() < 40, "block {at} twice");
    }
}
