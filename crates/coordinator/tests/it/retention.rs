//! Retention: finished tasks go by themselves when their time is over, nothing else does, and nobody
//! who waits is held up.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use tenure_coordinator::{Next, Upkeep};
use tenure_core::command::{ConfigureQueue, Retention, Setting, SettingsChange};
use tenure_log::{Log, Read};
use tenure_record::codec;
use tenure_record::event::Event;
use tenure_record::id::TaskId;
use tenure_record::terms::SpanMs;
use tenure_record::time::Timestamp;
use tenure_wal::disk::model::ModelDisk;

use crate::support::asks::{cancel, complete, lease, queue, submit};
use crate::support::{House, START_MS};

const AGE_MS: u64 = 10_000;

fn house(tasks_max: u64, items_max: usize) -> House {
    let retention = Retention { age_ms: AGE_MS, tasks_max, items_max };
    House::kept(ModelDisk::default(), START_MS, Upkeep { retention, ..Upkeep::default() })
}

/// All that exist, and when each ended.
fn tasks(house: &House) -> BTreeMap<TaskId, Option<Timestamp>> {
    house.coordinator.state().facts().tasks().map(|task| (task.id, task.finished_at())).collect()
}

/// How many tasks each record has purged.
fn purges(house: &House) -> Vec<usize> {
    let mut reader = house.coordinator.log().reader();
    let mut found = Vec::new();
    loop {
        match reader.read().unwrap() {
            Read::Frame(frame) => {
                for (_, bytes) in frame.records() {
                    if let Event::TasksPurged(event) = codec::decode(bytes).unwrap().event {
                        found.push(event.tasks.len());
                    }
                }
            }
            Read::UpToDate => return found,
            Read::Trimmed(oldest) => unreachable!("the log begins at {oldest}"),
        }
    }
}

#[test]
fn under_load_nothing_that_lives_or_is_too_young_is_forgotten() {
    let mut house = house(u64::MAX, 20);
    let mut before: BTreeMap<TaskId, Option<Timestamp>> = BTreeMap::new();
    let mut forgotten = 0;
    for round in 0..400_u64 {
        house.tell(submit(if round % 3 == 0 { "mail" } else { "other" })).answer();
        if round % 2 == 0 {
            let grants = house.tell(lease("anna", &["mail", "other"], 0)).grants();
            house.tell(complete(grants[0].lease())).answer();
        }
        if round % 11 == 0 {
            let _ = house.tell(cancel(round)).heard();
        }
        house.pass_ms(97);
        let now = house.coordinator.now(house.reading()).log;
        let after = tasks(&house);
        for (id, ended) in before.iter().filter(|(id, _)| !after.contains_key(id)) {
            let ended = ended.unwrap_or_else(|| panic!("task {id} had not ended"));
            assert!(ended.plus_ms(AGE_MS) <= now, "task {id} was {} ms old", now.0 - ended.0);
            forgotten += 1;
        }
        // What is over is gone within a second or two.
        let late = after.values().flatten().find(|ended| ended.plus_ms(AGE_MS + 2_000) < now);
        assert_eq!(late, None, "it is {now:?}");
        before = after;
    }
    assert!(forgotten > 100, "{forgotten}");
}

#[test]
fn what_is_one_too_many_goes_whatever_its_age() {
    let mut house = house(30, 1_000);
    for _ in 0..100 {
        house.tell(submit("mail")).answer();
        let grants = house.tell(lease("anna", &["mail"], 0)).grants();
        house.tell(complete(grants[0].lease())).answer();
    }
    house.pass_ms(1_100);
    let left = tasks(&house);
    assert_eq!(left.len(), 30);
    assert_eq!(left.keys().next(), Some(&TaskId(71)), "the oldest went");
}

#[test]
fn a_backlog_is_forgotten_a_little_with_each_step_and_nobody_waits_for_it() {
    let mut house = house(u64::MAX, 10);
    (0..300).for_each(|_| drop(house.tell(submit("mail")).answer()));
    (1..=300).for_each(|id| drop(house.tell(cancel(id)).answer()));
    house.now_ms += AGE_MS + 5_000;
    let probe = house.ask(submit("mail"));
    assert_eq!(house.step(), Next::WithinMs(0), "there is more to forget");
    assert!(!probe.waits(), "it was served in the same step");
    assert_eq!(tasks(&house).len(), 291);
    for _ in 0..100 {
        house.step();
    }
    assert_eq!(tasks(&house).len(), 1);
    let purges = purges(&house);
    assert!(purges.iter().all(|items| *items == 10), "{purges:?}");
    let next = house.settle();
    assert!(matches!(next, Next::WhenRung | Next::WithinMs(1..)), "it rests: {next:?}");
}

#[test]
fn a_queue_may_keep_its_tasks_for_longer_or_shorter() {
    let mut house = house(u64::MAX, 1_000);
    for (name, ms) in [("short", 2_000), ("long", 60_000)] {
        let retention_ms = Setting::Set(SpanMs::parse("retention_ms", ms).unwrap());
        let configure = ConfigureQueue {
            queue: queue(name),
            change: SettingsChange { retention_ms, ..SettingsChange::default() },
        };
        house.tell(configure).answer();
    }
    for (id, name) in [(1, "short"), (2, "usual"), (3, "long")] {
        house.tell(submit(name)).answer();
        house.tell(cancel(id)).answer();
    }
    let mut left_after = |ms: u64| {
        house.pass_ms(ms);
        tasks(&house).keys().map(|id| id.0).collect::<Vec<_>>()
    };
    assert_eq!(left_after(1_900), [1, 2, 3]);
    assert_eq!(left_after(1_200), [2, 3]);
    assert_eq!(left_after(8_000), [3]);
    assert_eq!(left_after(50_000), [0; 0]);
}
