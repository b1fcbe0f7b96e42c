//! A client brings tasks.

use tenure_code::Code;
use tenure_record::limits::{
    BUDGET_MAX, DELAY_MS_MAX, KEY_BYTES_MAX, LEASE_MS_MAX, NAME_BYTES_MAX, PAYLOAD_BYTES_MAX,
    RECORD_BYTES_MAX, TAG_BYTES_MAX, TAGS_MAX,
};
use tenure_record::name::{TagKey, TagValue};
use tenure_record::terms::{Count, LeaseMs, Priority, Tags};
use tenure_record::trace::TraceParent;

use super::dead_letters::dead_letters;
use super::*;
use crate::command::{ConfigureQueue, PauseQueue, Setting, SettingsChange};
use crate::limits::{BATCH_ITEMS_MAX, QUEUES_MAX};

fn budgets(failures: Option<u16>, expiries: Option<u16>, attempts: Option<u16>) -> Budgets {
    let number = |budget: Option<u16>| budget.map(i64::from);
    Budgets::parse(number(failures), number(expiries), number(attempts)).unwrap()
}

#[test]
fn a_key_is_held_as_long_as_its_task_exists() {
    let columns = [
        column("the same body", |situation| submit(body(situation))),
        column("another body", |situation| {
            submit(NewTask { budgets: budgets(Some(3), Some(2), None), ..body(situation) })
        }),
        column("another queue", |situation| {
            submit(NewTask { queue: queue("other"), ..body(situation) })
        }),
        column("no key", |situation| submit(NewTask { key: None, ..body(situation) })),
    ];
    assert_table(
        &columns,
        "
                    | the same body | another body | another queue          | no key
        Fresh       | = existed     | conflict     | TaskCreated -> WAITING | TaskCreated -> WAITING
        Delayed     | = existed     | conflict     | TaskCreated -> WAITING | TaskCreated -> WAITING
        Returned    | = existed     | conflict     | TaskCreated -> WAITING | TaskCreated -> WAITING
        BackingOff  | = existed     | conflict     | TaskCreated -> WAITING | TaskCreated -> WAITING
        Leased      | = existed     | conflict     | TaskCreated -> WAITING | TaskCreated -> WAITING
        Late        | = existed     | conflict     | TaskCreated -> WAITING | TaskCreated -> WAITING
        AskedToStop | = existed     | conflict     | TaskCreated -> WAITING | TaskCreated -> WAITING
        Completed   | = existed     | conflict     | TaskCreated -> WAITING | TaskCreated -> WAITING
        Failed      | = existed     | conflict     | TaskCreated -> WAITING | TaskCreated -> WAITING
        Dead        | = existed     | conflict     | TaskCreated -> WAITING | TaskCreated -> WAITING
        Canceled    | = existed     | conflict     | TaskCreated -> WAITING | TaskCreated -> WAITING
        ",
    );
}

/// Every field of a submit makes it another submit.
#[test]
fn any_other_field_under_the_same_key_is_a_conflict() {
    let base = || body(Fresh);
    let payload = |text: &str| Payload::parse("payload", text.as_bytes().to_vec()).unwrap();
    let tag = |value: &str| {
        let pair = (TagKey::parse("t").unwrap(), TagValue::parse(value).unwrap());
        Tags::parse(vec![pair]).unwrap()
    };
    let others = [
        NewTask { payload: payload("1"), ..base() },
        NewTask { priority: Priority::parse(1).unwrap(), ..base() },
        NewTask { start: Start::After(span(1)), ..base() },
        NewTask { start: Start::At(Timestamp(1)), ..base() },
        NewTask { budgets: budgets(Some(1), Some(2), None), ..base() },
        NewTask { budgets: budgets(Some(2), Some(1), None), ..base() },
        NewTask { budgets: budgets(Some(2), Some(2), Some(4)), ..base() },
        NewTask { budgets: budgets(None, None, Some(4)), ..base() },
        NewTask { backoff: None, ..base() },
        NewTask { lease_ms: LeaseMs::parse(50).unwrap(), ..base() },
        NewTask { total_timeout_ms: None, ..base() },
        NewTask { attempt_timeout_ms: Some(span(9)), ..base() },
        NewTask { key_ttl_ms: Some(span(9)), ..base() },
        NewTask { tags: tag(""), ..base() },
        NewTask { tags: tag("v"), ..base() },
    ];
    let mut world = World::with(Fresh);
    for (at, other) in others.iter().enumerate() {
        assert_eq!(world.play(&submit(other.clone())), "conflict", "{at}");
        let mut fresh = World::new();
        fresh.play(&submit(other.clone()));
        assert_eq!(fresh.play(&submit(other.clone())), "= existed", "{at}");
        assert_eq!(fresh.play(&submit(base())), "conflict", "{at}");
    }
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let same = [
        NewTask { start: Start::After(span(0)), ..base() },
        NewTask { payload: payload(" null\n"), ..base() },
        NewTask { traceparent: Some(TraceParent::parse(parent).unwrap()), ..base() },
        base().sealed(),
    ];
    for (at, same) in same.into_iter().enumerate() {
        assert_eq!(world.play(&submit(same)), "= existed", "{at}");
    }
}

/// A seal is made where the request is checked, and is what counts.
#[test]
fn a_sealed_submit_is_told_by_its_seal() {
    let mut world = World::with(Fresh);
    let other = NewTask { priority: Priority::parse(1).unwrap(), ..body(Fresh) };
    assert_eq!(world.play(&submit(other.clone().sealed())), "conflict");
    let seal = body(Fresh).sealed().seal;
    assert_eq!(world.play(&submit(NewTask { seal, ..other })), "= existed");
    assert_eq!(NewTask { key: None, ..body(Fresh) }.sealed().seal, None, "no key, no hash");
}

#[test]
fn a_conflict_says_which_task_and_with_whom() {
    let key = TaskKey::parse("k").unwrap();
    let other = || NewTask { priority: Priority::parse(9).unwrap(), ..body(Fresh) };
    let without_key = || NewTask { key: None, ..body(Fresh) };
    let batch = |tasks| Command::SubmitTasks(SubmitTasks { tasks });
    let refusal = World::with(Fresh).refusal(&batch(vec![without_key(), other()]));
    let known = Rejection::KeyConflict { index: Some(1), key: key.clone(), task_id: TASK };
    assert_eq!(refusal, Some(known));
    let refusal = World::new().refusal(&batch(vec![without_key(), body(Fresh), other()]));
    assert_eq!(refusal, Some(Rejection::KeyTwice { index: 2, key, first: 1 }));
}

#[test]
fn a_request_that_is_too_large_is_refused() {
    let world = World::new();
    let batch =
        |task: NewTask, count| Command::SubmitTasks(SubmitTasks { tasks: vec![task; count] });
    let small = || NewTask { key: None, ..body(Fresh) };
    let refusal = world.refusal(&batch(small(), BATCH_ITEMS_MAX + 1));
    let (items, items_max) = (BATCH_ITEMS_MAX + 1, BATCH_ITEMS_MAX);
    assert_eq!(refusal, Some(Rejection::BatchTooLarge { items, items_max }));
    assert!(world.bytes(&batch(small(), BATCH_ITEMS_MAX)).is_some());
    assert_eq!(world.bytes(&batch(small(), 0)), Some(0), "no tasks are no record");
    let payload = Payload::parse("payload", vec![b'x'; PAYLOAD_BYTES_MAX]).unwrap();
    let large = NewTask { payload, ..small() };
    let refusal = world.refusal(&batch(large.clone(), 8));
    assert_eq!(refusal.map(|refusal| refusal.code()), Some(Code::PayloadTooLarge));
    assert!(world.bytes(&batch(large, 7)).is_some());
}

#[test]
fn one_queue_too_many_is_refused() {
    let mut world = World::new();
    let in_queue = |at: usize| NewTask { queue: queue(&at.to_string()), key: None, ..body(Fresh) };
    for first in (0..QUEUES_MAX).step_by(BATCH_ITEMS_MAX) {
        let tasks = (first..first + BATCH_ITEMS_MAX).map(in_queue).collect();
        world.play_unchecked(&Command::SubmitTasks(SubmitTasks { tasks }));
    }
    let tasks = vec![in_queue(QUEUES_MAX - 1), in_queue(QUEUES_MAX)];
    let refusal = world.refusal(&Command::SubmitTasks(SubmitTasks { tasks }));
    assert_eq!(refusal, Some(Rejection::TooManyQueues { index: Some(1) }));
    let refusal = world.refusal(&Command::PauseQueue(PauseQueue::open_ended(queue("new"))));
    assert_eq!(refusal.map(|refusal| refusal.code()), Some(Code::TooManyQueues));
    assert_eq!(world.refusal(&Command::PauseQueue(PauseQueue::open_ended(queue("1")))), None);
    // A setting that names a queue makes it, too.
    let refusal = world.refusal(&dead_letters("1", Setting::Set(queue("new"))));
    assert_eq!(refusal.map(|refusal| refusal.code()), Some(Code::TooManyQueues));
    assert_eq!(world.refusal(&dead_letters("1", Setting::Set(queue("2")))), None);
}

#[test]
fn a_full_queue_refuses_the_whole_batch_and_names_the_task() {
    let mut world = World::new();
    let max_waiting = Setting::Set(Count::parse("max_waiting", 3).unwrap());
    let change = SettingsChange { max_waiting, ..SettingsChange::default() };
    world.play(&Command::ConfigureQueue(ConfigureQueue { queue: queue("q"), change }));
    let task = || NewTask { queue: queue("q"), key: None, ..body(Fresh) };
    let batch = |count| Command::SubmitTasks(SubmitTasks { tasks: vec![task(); count] });
    let full = |index| Rejection::QueueFull { index, name: queue("q"), max_waiting: 3 };
    assert_eq!(world.refusal(&batch(4)), Some(full(Some(3))));
    assert!(world.bytes(&batch(3)).is_some_and(|bytes| bytes > 0), "nothing of the batch was kept");
    world.play(&batch(3));
    assert_eq!(world.refusal(&batch(1)), Some(full(None)));
    assert_eq!(full(None).code(), Code::QueueFull);
}

/// Every text and number as long as it may be.
#[test]
fn tasks_that_are_taken_fit_into_a_record() {
    let long = |bytes: usize| "x".repeat(bytes);
    let tag = |at: usize, key_bytes: usize, value_bytes: usize| {
        let key = format!("{at:0key_bytes$}");
        (TagKey::parse(&key).unwrap(), TagValue::parse(&long(value_bytes)).unwrap())
    };
    let longest = |tags: Vec<(TagKey, TagValue)>, key: usize| NewTask {
        priority: Priority::parse(-100).unwrap(),
        start: Start::At(Timestamp(1 << 62)),
        budgets: budgets(Some(BUDGET_MAX), Some(BUDGET_MAX), Some(BUDGET_MAX)),
        backoff: Some(Backoff {
            kind: Some(BackoffKind::Linear),
            initial_ms: DELAY_MS_MAX,
            max_ms: DELAY_MS_MAX,
            jitter_permille: 1_000,
        }),
        lease_ms: LeaseMs::parse(LEASE_MS_MAX.into()).unwrap(),
        total_timeout_ms: Some(span(DELAY_MS_MAX)),
        attempt_timeout_ms: Some(span(DELAY_MS_MAX)),
        key_ttl_ms: Some(span(DELAY_MS_MAX)),
        traceparent: Some(
            TraceParent::parse("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").unwrap(),
        ),
        key: Some(TaskKey::parse(&format!("{key:0KEY_BYTES_MAX$}")).unwrap()),
        tags: Tags::parse(tags).unwrap(),
        ..NewTask::new(queue(&long(NAME_BYTES_MAX)), Payload::default())
    };
    let world = World::new();
    for (tags, key_bytes, value_bytes) in [(TAGS_MAX, TAG_BYTES_MAX, TAG_BYTES_MAX), (0, 0, 0)] {
        let task =
            |key| longest((0..tags).map(|at| tag(at, key_bytes, value_bytes)).collect(), key);
        let count = RECORD_BYTES_MAX / (tags * (key_bytes + value_bytes) + 512);
        let most = largest_that_is_taken(&world, count.min(BATCH_ITEMS_MAX), |count| {
            Command::SubmitTasks(SubmitTasks { tasks: (0..count).map(task).collect() })
        });
        let Command::SubmitTasks(SubmitTasks { tasks }) = &most else { unreachable!() };
        // Numbers of tasks grow to 8 bytes; here they have at most 2.
        let bytes = world.bytes(&most).unwrap() + 6 * tasks.len();
        assert!(bytes <= RECORD_BYTES_MAX, "the record has {bytes} bytes with {tags} tags");
    }
}
