//! A task that ends FAILED or DEAD leaves a copy in its queue's dead letter queue.

use super::*;
use crate::command::{ConfigureQueue, Rest, Setting, SettingsChange};
use crate::limits::{DUE_ITEMS_MAX, RECORD_WORK, SWEEP_BYTES_MAX};
use crate::rejection::Rejection;

pub(super) fn dead_letters(from: &str, to: Setting<QueueName>) -> Command {
    Command::ConfigureQueue(ConfigureQueue {
        queue: queue(from),
        change: SettingsChange { dead_letter_queue: to, ..SettingsChange::default() },
    })
}

/// So many tasks, all leased, whose leases end them.
fn crowd(count: usize, payload: usize, to: &str) -> World {
    let mut world = World::new();
    world.play(&dead_letters("q", Setting::Set(queue(to))));
    let payload = Payload::parse("payload", vec![b'x'; payload]).unwrap();
    let budgets = Budgets::parse(None, Some(1), None).unwrap();
    let task = NewTask { budgets, ..NewTask::new(queue("q"), payload) };
    for begun in (0..count).step_by(250) {
        let tasks = vec![task.clone(); (count - begun).min(250)];
        world.play_unchecked(&Command::SubmitTasks(SubmitTasks { tasks }));
    }
    while world.play_unchecked(&Command::LeaseTasks(LeaseTasks {
        worker: WorkerName::parse("w").unwrap(),
        queues: vec![queue("q")],
        tasks_max: NonZeroU32::new(1_000).unwrap(),
        lease_ms: None,
    })) != "= 0 leases"
    {}
    world.wait(30 * SECOND);
    world
}

#[test]
fn a_queue_is_not_its_own_dead_letter_queue() {
    let world = World::new();
    let refusal = world.refusal(&dead_letters("q", Setting::Set(queue("q"))));
    assert_eq!(refusal, Some(Rejection::OwnDeadLetterQueue { name: queue("q") }));
}

#[test]
fn a_dead_letter_queue_is_deleted_when_no_queue_names_it() {
    let mut world = World::new();
    world.play(&dead_letters("b", Setting::Set(queue("lost"))));
    world.play(&dead_letters("a", Setting::Set(queue("lost"))));
    let delete = Command::DeleteQueue(queue("lost"));
    let of = |name: &str| Rejection::QueueOfDeadLetters { name: queue("lost"), of: name.into() };
    assert_eq!(world.refusal(&delete), Some(of("a")));
    world.play(&dead_letters("a", Setting::Clear));
    assert_eq!(world.refusal(&delete), Some(of("b")));
    assert_eq!(world.play(&Command::DeleteQueue(queue("b"))), "QueueDeleted");
    assert_eq!(world.play(&delete), "QueueDeleted");
}

/// Copies are work of their record: many tasks, much payload or long names end a sweep early, and
/// the rest follows.
#[test]
fn a_sweep_that_makes_copies_stays_within_its_record() {
    let long = "l".repeat(200);
    for (count, payload, to, most) in [
        (DUE_ITEMS_MAX, 0, "lost", RECORD_WORK / 2),
        (1_500, 15 << 10, "lost", RECORD_WORK / 17 + 1),
        (6_000, 0, long.as_str(), SWEEP_BYTES_MAX as u64 / 232 + 1),
    ] {
        let mut world = crowd(count, payload, to);
        let swept = world.swept(&Command::FireTimers);
        assert_eq!((swept.items as u64, swept.rest), (most, Rest::More));
        let bytes = world.bytes(&Command::FireTimers).unwrap();
        assert!(bytes < 2 * SWEEP_BYTES_MAX, "{bytes} bytes for {most} items");
        let mut ended = 0;
        loop {
            ended += world.swept(&Command::FireTimers).items;
            if world.play_unchecked(&Command::FireTimers) == "= 0 done" {
                break;
            }
        }
        assert_eq!(ended, count);
        let counts = world.state.queue(to).unwrap().counts;
        assert_eq!(counts.of(TaskState::Waiting), count as u64, "each has one copy");
        invariant::check(&world.state).unwrap();
    }
}
