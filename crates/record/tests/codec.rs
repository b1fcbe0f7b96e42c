//! The format, held to `proto/tenure/log/v1/record.proto`: what we write by hand is, byte for
//! byte, what prost writes from that file, and we read back what prost wrote.
#![allow(clippy::unwrap_used)]

#[allow(unreachable_pub, missing_docs, clippy::doc_markdown)]
mod oracle {
    include!("oracle/tenure.log.v1.rs");
}

#[path = "codec_runs/mod.rs"]
mod runs;

use oracle::record::Event as Wire;
use oracle::report::Report as WireReport;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use prost::Message;
use tenure_record::codec::{self, FORMAT_VERSION};
use tenure_record::event::*;
use tenure_record::id::{LeaseId, Lsn, RunId, TaskId};
use tenure_record::limits::BUDGET_MAX;
use tenure_record::name::Text;
use tenure_record::state::TaskState;
use tenure_record::terms::{Backoff, BackoffKind, Budget, Priority};
use tenure_record::time::{Clock, Timestamp};

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn our_bytes_are_those_of_prost(record in record()) {
        let expected = record.encode_to_vec();
        let ours = from_wire(&record);
        // A frame has other records in it already.
        let mut frame = b"before".to_vec();
        codec::encode(&ours, &mut frame);
        prop_assert_eq!(&frame[6..], expected.as_slice());
        prop_assert_eq!(codec::decode(&expected).unwrap(), ours);
    }

    #[test]
    fn a_cut_record_is_never_the_whole_one(record in record()) {
        let whole = record.encode_to_vec();
        let ours = codec::decode(&whole).unwrap();
        for end in 0..whole.len() {
            prop_assert_ne!(codec::decode(&whole[..end]).ok(), Some(ours.clone()));
        }
    }

    #[test]
    fn what_may_stop_a_task_is_told_without_decoding(record in record()) {
        let bytes = record.encode_to_vec();
        let event = codec::decode(&bytes).unwrap().event;
        let mut stops = matches!(
            event,
            Event::LeaseExpired(_)
                | Event::CancelRequested(_)
                | Event::TimerFired(_)
                | Event::SignalReceived(_)
                | Event::RunCancelRequested(_)
        );
        event.each_cascade(|cascade| {
            stops |= cascade.iter().any(|decision| {
                matches!(&decision.step, Step::CancelTokens(step) if !step.tasks.is_empty())
            });
        });
        prop_assert_eq!(codec::may_stop_a_task(&bytes), stops);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in vec(any::<u8>(), 0..200)) {
        let _ = codec::decode(&bytes);
        let _ = codec::may_stop_a_task(&bytes);
    }

    #[test]
    fn changed_bytes_are_read_or_refused(
        record in record(), at in any::<prop::sample::Index>(), by in 1..=255_u8,
    ) {
        let mut bytes = record.encode_to_vec();
        let at = at.index(bytes.len());
        bytes[at] ^= by;
        let _ = codec::decode(&bytes);
    }
}

#[test]
fn a_newer_version_is_refused_with_both_versions() {
    let newer = oracle::Record { version: FORMAT_VERSION + 1, ..oracle::Record::default() };
    let refusal = codec::decode(&newer.encode_to_vec()).unwrap_err().to_string();
    assert_eq!(refusal, "a record has format version 2; this binary reads up to 1");
}

#[test]
fn what_is_not_known_is_refused_and_not_dropped() {
    let cases: [(&str, &[u8]); 8] = [
        ("a record does not begin with its version", &[]),
        ("a record does not begin with its version", &[2 << 3, 1]),
        ("a record has no event", &[8, 1]),
        ("Event has field 99, which this version does not know", &[8, 1, 0x9a, 6, 0]),
        ("LeaseGranted has field 4, which this version does not know", &[8, 1, 50, 2, 32, 1]),
        ("a field is longer than its message", &[8, 1, 50, 3, 8, 1]),
        ("wire type 5 is not used here", &[8, 1, 5, 0, 0, 0, 0]),
        ("a record has more than one event", &[8, 1, 50, 0, 50, 0]),
    ];
    for (refusal, bytes) in cases {
        assert_eq!(codec::decode(bytes).unwrap_err().to_string(), refusal, "{bytes:?}");
    }
}

fn number() -> impl Strategy<Value = u64> {
    // Numbers of every length, and the edges.
    prop_oneof![Just(0), Just(u64::MAX), (0..64_u32).prop_flat_map(|bits| 0..=u64::MAX >> bits)]
}

/// From log time to the wall clock; nearly always nothing.
fn offset() -> impl Strategy<Value = i64> {
    prop_oneof![Just(0), number().prop_map(u64::cast_signed)]
}

fn small() -> impl Strategy<Value = u32> {
    prop_oneof![Just(0), Just(u32::MAX), (0..32_u32).prop_flat_map(|bits| 0..=u32::MAX >> bits)]
}

fn count() -> impl Strategy<Value = u32> {
    0..=u32::from(u16::MAX)
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["", "[a-z]{1,20}", "\\PC{0,100}"]
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![Just(Vec::new()), vec(any::<u8>(), 1..200), vec(any::<u8>(), 20_000..20_001)]
}

fn state() -> impl Strategy<Value = i32> {
    1..=6
}

fn about() -> impl Strategy<Value = Option<oracle::About>> {
    let parts = (number(), text(), -100..=100_i32, small(), number(), number());
    parts.prop_map(|(task_id, queue, priority, attempt, previous, run_id)| {
        Some(oracle::About { task_id, queue, priority, attempt, previous, run_id })
    })
}

fn created() -> impl Strategy<Value = oracle::Created> {
    let backoff = (0..=3, number(), number(), count()).prop_map(
        |(kind, initial_ms, max_ms, jitter_permille)| oracle::Backoff {
            kind,
            initial_ms,
            max_ms,
            jitter_permille,
        },
    );
    let tag = (text(), text()).prop_map(|(key, value)| oracle::Tag { key, value });
    let budget = || 0..=u32::from(BUDGET_MAX);
    let first = (number(), text(), -100..=100_i32, bytes(), number(), small(), budget(), budget());
    let second = (option::of(backoff), option::of(number()), option::of(text()));
    let third = (option::of(vec(any::<u8>(), 16..=16)), vec(tag, 0..4), number(), 0..=1, budget());
    let fourth = (option::of(number()), option::of(text()), number(), number(), option::of(text()));
    (first, second, third, fourth).prop_map(|(first, second, third, fourth)| {
        let (task_id, queue, priority, payload, not_before, lease_ms, failures, expiries) = first;
        let (backoff, total_timeout_ms, key) = second;
        let (submit_hash, tags, deadline_at, clock, max_attempts) = third;
        let (attempt_timeout_ms, traceparent, key_free_at, key_from, name) = fourth;
        oracle::Created {
            task_id,
            queue,
            priority,
            payload,
            not_before,
            lease_ms,
            max_failures: failures,
            max_expiries: expiries,
            backoff,
            total_timeout_ms,
            key,
            submit_hash,
            tags,
            deadline_at,
            clock,
            run: None,
            max_attempts,
            attempt_timeout_ms,
            traceparent,
            key_free_at,
            key_from,
            name,
        }
    })
}

fn granted() -> impl Strategy<Value = oracle::Granted> {
    (about(), number(), small(), number(), number()).prop_map(
        |(about, lease_id, lease_ms, expires_at, attempt_deadline_at)| oracle::Granted {
            about,
            lease_id,
            lease_ms,
            expires_at,
            attempt_deadline_at,
        },
    )
}

fn extended() -> impl Strategy<Value = oracle::LeaseExtended> {
    (number(), number(), number(), small(), bytes()).prop_map(
        |(task_id, lease_id, expires_at, lease_ms, checkpoint)| oracle::LeaseExtended {
            task_id,
            lease_id,
            expires_at,
            lease_ms,
            checkpoint,
        },
    )
}

fn dead_letter() -> impl Strategy<Value = Option<oracle::DeadLetter>> {
    let budget = || 0..=u32::from(BUDGET_MAX);
    let letter = (number(), text(), small(), budget(), budget());
    option::of(letter.prop_map(|(task_id, queue, lease_ms, max_failures, max_expiries)| {
        oracle::DeadLetter { task_id, queue, lease_ms, max_failures, max_expiries }
    }))
}

fn expired() -> impl Strategy<Value = oracle::Expired> {
    let after = (count(), number(), dead_letter());
    (about(), number(), text(), state(), count(), 0..=3, after).prop_map(
        |(about, lease_id, worker, to, expiries, cause, after)| oracle::Expired {
            about,
            lease_id,
            worker,
            to,
            expiries,
            cause,
            cascade: Vec::new(),
            failures: after.0,
            not_before: after.1,
            dead_letter: after.2,
        },
    )
}

fn released() -> impl Strategy<Value = oracle::LeaseReleased> {
    let given = (number(), option::of(-100..=100_i32), bytes());
    (about(), number(), text(), state(), given).prop_map(|(about, lease_id, worker, to, given)| {
        let (not_before, priority, checkpoint) = given;
        oracle::LeaseReleased {
            about,
            lease_id,
            worker,
            to,
            cascade: Vec::new(),
            not_before,
            priority,
            checkpoint,
        }
    })
}

fn completed() -> impl Strategy<Value = oracle::TaskCompleted> {
    (about(), number(), text(), bytes()).prop_map(|(about, lease_id, worker, output)| {
        oracle::TaskCompleted { about, lease_id, worker, output, cascade: Vec::new() }
    })
}

fn failed() -> impl Strategy<Value = oracle::TaskFailed> {
    let why = (text(), text(), bytes(), dead_letter());
    (about(), number(), text(), state(), count(), number(), why).prop_map(
        |(about, lease_id, worker, to, failures, not_before, why)| oracle::TaskFailed {
            about,
            lease_id,
            worker,
            to,
            failures,
            not_before,
            code: why.0,
            reason: why.1,
            cascade: Vec::new(),
            checkpoint: why.2,
            dead_letter: why.3,
        },
    )
}

fn late() -> impl Strategy<Value = oracle::StaleReportRejected> {
    (about(), number(), state(), text()).prop_map(|(about, lease_id, state, worker)| {
        oracle::StaleReportRejected { about, lease_id, state, worker }
    })
}

fn report() -> impl Strategy<Value = oracle::Report> {
    prop_oneof![
        extended().prop_map(WireReport::LeaseExtended),
        completed().prop_map(WireReport::TaskCompleted),
        failed().prop_map(WireReport::TaskFailed),
        released().prop_map(WireReport::LeaseReleased),
        late().prop_map(WireReport::StaleReportRejected),
    ]
    .prop_map(|report| oracle::Report { report: Some(report) })
}

fn cancel_requested() -> impl Strategy<Value = oracle::CancelRequested> {
    (about(), state(), state(), text(), number(), number(), number()).prop_map(
        |(about, from, to, worker, lease_id, expires_at, revoke_at)| oracle::CancelRequested {
            about,
            from,
            to,
            worker,
            lease_id,
            expires_at,
            revoke_at,
            cascade: Vec::new(),
        },
    )
}

fn deadline() -> impl Strategy<Value = oracle::DeadlinePassed> {
    (about(), state(), text(), number(), number(), state(), dead_letter()).prop_map(
        |(about, from, worker, lease_id, deadline_at, to, dead_letter)| oracle::DeadlinePassed {
            about,
            from,
            worker,
            lease_id,
            deadline_at,
            cascade: Vec::new(),
            to,
            dead_letter,
        },
    )
}

fn record() -> impl Strategy<Value = oracle::Record> {
    let retried = (about(), state(), number(), number()).prop_map(
        |(about, from, not_before, deadline_at)| {
            Wire::TaskRetried(oracle::TaskRetried { about, from, not_before, deadline_at })
        },
    );
    let limit = || option::of(number());
    let settings = (any::<bool>(), limit(), number(), option::of(text()), limit()).prop_map(
        |(paused, retention_ms, paused_until, dead_letter_queue, max_waiting)| {
            oracle::QueueSettings {
                paused,
                retention_ms,
                paused_until,
                dead_letter_queue,
                max_waiting,
            }
        },
    );
    let configured = (text(), settings).prop_map(|(queue, settings)| {
        Wire::QueueConfigured(oracle::QueueConfigured { queue, settings: Some(settings) })
    });
    let deleted = text().prop_map(|queue| Wire::QueueDeleted(oracle::QueueDeleted { queue }));
    let skipped = (number(), number(), number());
    let skipped = skipped.prop_map(|(next_task_id, next_lease_id, next_run_id)| {
        Wire::IdsSkipped(oracle::IdsSkipped { next_task_id, next_lease_id, next_run_id })
    });
    let granted = (text(), vec(granted(), 0..4))
        .prop_map(|(worker, grants)| Wire::LeaseGranted(oracle::LeaseGranted { worker, grants }));
    let event = prop_oneof![
        vec(created(), 0..4).prop_map(|tasks| Wire::TaskCreated(oracle::TaskCreated { tasks })),
        granted,
        vec(expired(), 0..4).prop_map(|leases| Wire::LeaseExpired(oracle::LeaseExpired { leases })),
        vec(report(), 0..4)
            .prop_map(|reports| Wire::ReportsApplied(oracle::ReportsApplied { reports })),
        cancel_requested().prop_map(Wire::CancelRequested),
        retried,
        vec(deadline(), 0..4).prop_map(|deadlines| {
            Wire::TimerFired(oracle::TimerFired { deadlines, ..Default::default() })
        }),
        configured,
        deleted,
        (vec(number(), 0..50), vec(number(), 0..5))
            .prop_map(|(tasks, runs)| Wire::TasksPurged(oracle::TasksPurged { tasks, runs })),
        skipped,
    ];
    (number(), number(), offset(), event).prop_map(|(lsn, at, wall_offset_ms, event)| {
        oracle::Record { version: FORMAT_VERSION, lsn, at, wall_offset_ms, event: Some(event) }
    })
}

/// The same record in our types, borrowing from prost's.
fn from_wire(record: &oracle::Record) -> Record<'_> {
    let event = match record.event.as_ref().unwrap() {
        Wire::TaskCreated(e) => {
            Event::TaskCreated(TaskCreated { tasks: e.tasks.iter().map(our_created).collect() })
        }
        Wire::LeaseGranted(e) => Event::LeaseGranted(LeaseGranted {
            worker: our_text(&e.worker),
            grants: e.grants.iter().map(our_granted).collect(),
        }),
        Wire::LeaseExpired(e) => {
            Event::LeaseExpired(LeaseExpired { leases: e.leases.iter().map(our_expired).collect() })
        }
        Wire::ReportsApplied(e) => Event::ReportsApplied(ReportsApplied {
            reports: e.reports.iter().map(our_report).collect(),
        }),
        Wire::CancelRequested(e) => Event::CancelRequested(CancelRequested {
            about: our_about(e.about.as_ref()),
            from: our_state(e.from),
            to: our_state(e.to),
            worker: our_text(&e.worker),
            lease_id: LeaseId(e.lease_id),
            expires_at: Timestamp(e.expires_at),
            revoke_at: Timestamp(e.revoke_at),
            cascade: Vec::new(),
        }),
        Wire::TaskRetried(e) => Event::TaskRetried(TaskRetried {
            about: our_about(e.about.as_ref()),
            from: our_state(e.from),
            not_before: Timestamp(e.not_before),
            deadline_at: Timestamp(e.deadline_at),
        }),
        Wire::TimerFired(e) => Event::TimerFired(TimerFired {
            deadlines: e.deadlines.iter().map(our_deadline).collect(),
            ..TimerFired::default()
        }),
        Wire::QueueConfigured(e) => {
            let settings = e.settings.as_ref().unwrap();
            let (paused, retention_ms) = (settings.paused, settings.retention_ms);
            let paused_until = Timestamp(settings.paused_until);
            let dead_letter_queue = settings.dead_letter_queue.as_deref().map(Into::into);
            let max_waiting = settings.max_waiting;
            let settings = QueueSettings {
                paused,
                retention_ms,
                paused_until,
                dead_letter_queue,
                max_waiting,
            };
            Event::QueueConfigured(QueueConfigured { queue: our_text(&e.queue), settings })
        }
        Wire::QueueDeleted(e) => Event::QueueDeleted(QueueDeleted { queue: our_text(&e.queue) }),
        Wire::TasksPurged(e) => Event::TasksPurged(TasksPurged {
            tasks: e.tasks.iter().copied().map(TaskId).collect(),
            runs: e.runs.iter().copied().map(RunId).collect(),
        }),
        Wire::IdsSkipped(e) => Event::IdsSkipped(IdsSkipped {
            next_task_id: TaskId(e.next_task_id),
            next_lease_id: LeaseId(e.next_lease_id),
            next_run_id: RunId(e.next_run_id),
        }),
        Wire::WorkflowRegistered(_)
        | Wire::RunStarted(_)
        | Wire::SignalReceived(_)
        | Wire::RunCancelRequested(_)
        | Wire::DispatchContinued(_)
        | Wire::EndContinued(_)
        | Wire::RunParked(_)
        | Wire::RunUnparked(_)
        | Wire::WorkflowDeleted(_)
        | Wire::RunsStarted(_)
        | Wire::RunStartedBySignal(_) => unreachable!("runs have a strategy of their own"),
    };
    let at = Timestamp(record.at);
    let wall = Timestamp(record.at.wrapping_add_signed(record.wall_offset_ms));
    Record { lsn: Lsn(record.lsn), at, wall, event }
}

fn our_text(text: &str) -> Text<'_> {
    Text::Borrowed(text)
}

fn our_state(number: i32) -> TaskState {
    TaskState::ALL[number as usize - 1]
}

fn our_count(number: u32) -> u16 {
    u16::try_from(number).unwrap()
}

fn our_priority(number: i32) -> Priority {
    Priority::parse(number.into()).unwrap()
}

fn our_about(about: Option<&oracle::About>) -> About<'_> {
    let about = about.unwrap();
    About {
        task_id: TaskId(about.task_id),
        queue: our_text(&about.queue),
        priority: our_priority(about.priority),
        attempt: about.attempt,
        previous: Lsn(about.previous),
        run_id: RunId(about.run_id),
    }
}

fn our_budget(number: u32) -> Option<Budget> {
    (number > 0).then(|| Budget::of(our_count(number)))
}

fn our_created(item: &oracle::Created) -> Created<'_> {
    let kinds =
        [None, Some(BackoffKind::Fixed), Some(BackoffKind::Linear), Some(BackoffKind::Exponential)];
    Created {
        task_id: TaskId(item.task_id),
        queue: our_text(&item.queue),
        priority: our_priority(item.priority),
        payload: item.payload.as_slice().into(),
        not_before: Timestamp(item.not_before),
        lease_ms: item.lease_ms,
        max_failures: our_budget(item.max_failures),
        max_expiries: our_budget(item.max_expiries),
        backoff: item.backoff.as_ref().map(|backoff| Backoff {
            kind: kinds[backoff.kind as usize],
            initial_ms: backoff.initial_ms,
            max_ms: backoff.max_ms,
            jitter_permille: our_count(backoff.jitter_permille),
        }),
        total_timeout_ms: item.total_timeout_ms,
        key: item.key.as_deref().map(our_text),
        submit_hash: item.submit_hash.as_ref().map(|h| SubmitHash(h[..].try_into().unwrap())),
        tags: item
            .tags
            .iter()
            .map(|tag| Tag { key: our_text(&tag.key), value: our_text(&tag.value) })
            .collect(),
        deadline_at: Timestamp(item.deadline_at),
        clock: [Clock::Log, Clock::Wall][item.clock as usize],
        run: None,
        max_attempts: our_budget(item.max_attempts),
        attempt_timeout_ms: item.attempt_timeout_ms,
        traceparent: item.traceparent.as_deref().map(our_text),
        key_free_at: Timestamp(item.key_free_at),
        key_from: TaskId(item.key_from),
        name: item.name.as_deref().map(our_text),
    }
}

fn our_granted(item: &oracle::Granted) -> Granted<'_> {
    Granted {
        about: our_about(item.about.as_ref()),
        lease_id: LeaseId(item.lease_id),
        lease_ms: item.lease_ms,
        expires_at: Timestamp(item.expires_at),
        attempt_deadline_at: Timestamp(item.attempt_deadline_at),
    }
}

fn our_extended(item: &oracle::LeaseExtended) -> LeaseExtended<'_> {
    LeaseExtended {
        task_id: TaskId(item.task_id),
        lease_id: LeaseId(item.lease_id),
        expires_at: Timestamp(item.expires_at),
        lease_ms: item.lease_ms,
        checkpoint: &item.checkpoint,
    }
}

fn our_expired(item: &oracle::Expired) -> Expired<'_> {
    let causes = [
        ExpiryCause::RanOut,
        ExpiryCause::Disconnected,
        ExpiryCause::Revoked,
        ExpiryCause::AttemptTimedOut,
    ];
    Expired {
        about: our_about(item.about.as_ref()),
        lease_id: LeaseId(item.lease_id),
        worker: our_text(&item.worker),
        to: our_state(item.to),
        expiries: our_count(item.expiries),
        cause: causes[item.cause as usize],
        cascade: Vec::new(),
        failures: our_count(item.failures),
        not_before: Timestamp(item.not_before),
        dead_letter: our_letter(item.dead_letter.as_ref()),
    }
}

fn our_letter(item: Option<&oracle::DeadLetter>) -> Option<Box<DeadLetter<'_>>> {
    item.map(|item| {
        Box::new(DeadLetter {
            task_id: TaskId(item.task_id),
            queue: our_text(&item.queue),
            lease_ms: item.lease_ms,
            max_failures: our_budget(item.max_failures),
            max_expiries: our_budget(item.max_expiries),
        })
    })
}

fn our_released(item: &oracle::LeaseReleased) -> LeaseReleased<'_> {
    LeaseReleased {
        about: our_about(item.about.as_ref()),
        lease_id: LeaseId(item.lease_id),
        worker: our_text(&item.worker),
        to: our_state(item.to),
        cascade: Vec::new(),
        not_before: Timestamp(item.not_before),
        priority: item.priority.map(our_priority),
        checkpoint: &item.checkpoint,
    }
}

fn our_completed(item: &oracle::TaskCompleted) -> TaskCompleted<'_> {
    TaskCompleted {
        about: our_about(item.about.as_ref()),
        lease_id: LeaseId(item.lease_id),
        worker: our_text(&item.worker),
        output: &item.output,
        cascade: Vec::new(),
    }
}

fn our_failed(item: &oracle::TaskFailed) -> TaskFailed<'_> {
    TaskFailed {
        about: our_about(item.about.as_ref()),
        lease_id: LeaseId(item.lease_id),
        worker: our_text(&item.worker),
        to: our_state(item.to),
        failures: our_count(item.failures),
        not_before: Timestamp(item.not_before),
        code: our_text(&item.code),
        reason: our_text(&item.reason),
        cascade: Vec::new(),
        checkpoint: &item.checkpoint,
        dead_letter: our_letter(item.dead_letter.as_ref()),
    }
}

fn our_late(item: &oracle::StaleReportRejected) -> StaleReportRejected<'_> {
    StaleReportRejected {
        about: our_about(item.about.as_ref()),
        lease_id: LeaseId(item.lease_id),
        state: our_state(item.state),
        worker: our_text(&item.worker),
    }
}

fn our_report(item: &oracle::Report) -> Report<'_> {
    match item.report.as_ref().unwrap() {
        WireReport::LeaseExtended(item) => Report::LeaseExtended(our_extended(item)),
        WireReport::TaskCompleted(item) => Report::TaskCompleted(our_completed(item)),
        WireReport::TaskFailed(item) => Report::TaskFailed(our_failed(item)),
        WireReport::LeaseReleased(item) => Report::LeaseReleased(our_released(item)),
        WireReport::StaleReportRejected(item) => Report::StaleReportRejected(our_late(item)),
    }
}

fn our_deadline(item: &oracle::DeadlinePassed) -> DeadlinePassed<'_> {
    DeadlinePassed {
        about: our_about(item.about.as_ref()),
        from: our_state(item.from),
        worker: our_text(&item.worker),
        lease_id: LeaseId(item.lease_id),
        deadline_at: Timestamp(item.deadline_at),
        cascade: Vec::new(),
        to: our_state(item.to),
        dead_letter: our_letter(item.dead_letter.as_ref()),
    }
}
