//! Logs that never were: a sound log with one thing changed. Whoever changes it mends what gives the
//! change away cheaply (LSNs and the links of histories), so that only the laws can find it.
//!
//! A change of a field is always found. Records that are left out, swapped or written twice may
//! leave a log that could have been: a heartbeat that nobody needed, two tasks in another order.
//! Such a log is sound, and the proof is that it can be applied and keeps every law of the state.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tenure_audit::{Audit, Violation};
use tenure_core::{State, apply, invariant};
use tenure_record::codec;
use tenure_record::event::{About, Event, ExpiryCause, Record, Report};
use tenure_record::id::{LeaseId, Lsn};
use tenure_record::name::Text;
use tenure_record::state::TaskState;
use tenure_record::time::Timestamp;

use crate::snapshots;

/// Longer than any lease in the small world.
const LATE_MS: u64 = 100_000;

/// What is changed, at which record and at which of its items.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mutation {
    at: u16,
    item: u16,
    kind: Kind,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Drop,
    Swap(u8),
    Twice,
    TimeBack,
    /// From here on everything happens later, by more than any lease lasts.
    Late,
    /// One bit of one byte.
    Flip(u16, u8),
    Lease(i8),
    End(i8),
    Attempt(i8),
    Count(i8),
    Previous(i8),
    Queue,
    Worker,
    To(TaskState),
    Cause(ExpiryCause),
}

pub(crate) fn mutation() -> impl Strategy<Value = Mutation> {
    let by = || prop_oneof![Just(-1_i8), Just(1), Just(2)];
    let cause = prop_oneof![
        Just(ExpiryCause::RanOut),
        Just(ExpiryCause::Disconnected),
        Just(ExpiryCause::Revoked),
        Just(ExpiryCause::AttemptTimedOut)
    ];
    let kind = prop_oneof![
        2 => Just(Kind::Drop),
        3 => (1..6_u8).prop_map(Kind::Swap),
        2 => Just(Kind::Twice),
        1 => Just(Kind::TimeBack),
        2 => Just(Kind::Late),
        6 => (any::<u16>(), 0..8_u8).prop_map(|(byte, bit)| Kind::Flip(byte, bit)),
        2 => by().prop_map(Kind::Lease),
        2 => by().prop_map(Kind::End),
        1 => by().prop_map(Kind::Attempt),
        1 => by().prop_map(Kind::Count),
        1 => by().prop_map(Kind::Previous),
        1 => Just(Kind::Queue),
        1 => Just(Kind::Worker),
        2 => proptest::sample::select(&TaskState::ALL[..]).prop_map(Kind::To),
        1 => cause.prop_map(Kind::Cause),
    ];
    (any::<u16>(), any::<u16>(), kind).prop_map(|(at, item, kind)| Mutation { at, item, kind })
}

/// Whether a change must be found, or may lead to a log that could have been.
#[derive(PartialEq, Eq)]
enum Fate {
    Found,
    FoundOrSound,
}

/// Tries one change of a sound log.
pub(crate) fn try_one(log: &[Vec<u8>], mutation: Mutation) -> Result<(), String> {
    if log.is_empty() {
        return Ok(());
    }
    let at = usize::from(mutation.at) % log.len();
    let mut spoiled;
    let mut bytes = log.to_vec();
    if let Kind::Flip(byte, bit) = mutation.kind {
        spoiled = log[at].clone();
        let byte = usize::from(byte) % spoiled.len();
        spoiled[byte] ^= 1 << bit;
        bytes[at] = spoiled;
    }
    let Ok(mut records) = bytes.iter().map(|bytes| codec::decode(bytes)).collect::<Result<_, _>>()
    else {
        return Ok(());
    };
    let Some(fate) = change(&mut records, at, mutation) else { return Ok(()) };
    let outcome = prove(&records)?;
    match (outcome, fate) {
        (Some((lsn, violation)), _) if lsn < at => {
            Err(format!("{mutation:?} of record {at} is found before it, at {lsn}: {violation}"))
        }
        (None, Fate::Found) => Err(format!("{mutation:?} is not found in {records:#?}")),
        _ => Ok(()),
    }
}

/// What `tenure wal verify` does. A log that the audit lets pass must also apply and keep the laws
/// of the state; the first violation comes with its place otherwise.
pub(crate) fn prove(records: &[Record<'_>]) -> Result<Option<(usize, Violation)>, String> {
    let mut audit = Audit::new();
    let mut state = State::replaying(0);
    for (at, record) in records.iter().enumerate() {
        if let Err(violation) = audit.record(record) {
            return Ok(Some((at, violation)));
        }
        apply(&mut state, record);
    }
    audit.finish().map_err(|broken| format!("at the end: {broken}"))?;
    audit
        .compare(&snapshots::seeded(state.facts()))
        .map_err(|broken| format!("{broken} in {records:#?}"))?;
    let sound = invariant::check(&state);
    sound.map_err(|broken| format!("the audit let this pass: {broken}: {records:#?}"))?;
    Ok(None)
}

/// Makes the change. None if it does not fit there.
fn change(records: &mut Vec<Record<'_>>, at: usize, mutation: Mutation) -> Option<Fate> {
    let Mutation { item, kind, .. } = mutation;
    match kind {
        Kind::Flip(..) => return Some(Fate::FoundOrSound),
        Kind::Drop => {
            records.remove(at);
            renumber(records);
            return Some(Fate::FoundOrSound);
        }
        Kind::Swap(by) => {
            let other = at + usize::from(by);
            if other >= records.len() {
                return None;
            }
            let event = records[at].event.clone();
            records[at].event = std::mem::replace(&mut records[other].event, event);
            let lsn = records[at].lsn;
            records[at].lsn = std::mem::replace(&mut records[other].lsn, lsn);
            renumber(records);
            return Some(Fate::FoundOrSound);
        }
        Kind::Twice => {
            records.insert(at, records[at].clone());
            renumber(records);
            // A setting or a heartbeat that is repeated may leave everything as it is.
            let event = &records[at].event;
            let harmless = matches!(event, Event::QueueConfigured(_)) || is_repeatable(event);
            return Some(if harmless { Fate::FoundOrSound } else { Fate::Found });
        }
        Kind::TimeBack => {
            records[at].at = Timestamp(1);
            return (at > 0).then_some(Fate::Found);
        }
        Kind::Late => {
            records[at..].iter_mut().for_each(|record| record.at = record.at.plus_ms(LATE_MS));
            return is_report(&records[at].event).then_some(Fate::Found);
        }
        Kind::Lease(_)
        | Kind::End(_)
        | Kind::Attempt(_)
        | Kind::Count(_)
        | Kind::Previous(_)
        | Kind::Queue
        | Kind::Worker
        | Kind::To(_)
        | Kind::Cause(_) => {}
    }
    let fields = fields(&mut records[at].event, item.into())?;
    let moved = |number: u64, by: i8| number.wrapping_add_signed(by.into());
    match kind {
        Kind::Lease(by) => fields.lease.map(|lease| lease.0 = moved(lease.0, by))?,
        Kind::End(by) => fields.end.map(|end| end.0 = moved(end.0, by))?,
        Kind::Count(by) => {
            fields.count.map(|count| *count = count.wrapping_add_signed(by.into()))?;
        }
        Kind::Attempt(by) => fields
            .about
            .map(|about| about.attempt = about.attempt.wrapping_add_signed(by.into()))?,
        Kind::Previous(by) => {
            fields.about.map(|about| about.previous = Lsn(moved(about.previous.0, by)))?;
        }
        Kind::Queue => fields.about.map(|about| about.queue = Text::Borrowed("elsewhere"))?,
        Kind::Worker => fields.worker.map(|worker| *worker = Text::Borrowed("a stranger"))?,
        Kind::To(state) => {
            let to = fields.to.filter(|to| **to != state)?;
            *to = state;
        }
        Kind::Cause(cause) => {
            let before = fields.cause.filter(|before| **before != cause)?;
            *before = cause;
        }
        Kind::Drop | Kind::Swap(_) | Kind::Twice | Kind::TimeBack | Kind::Late | Kind::Flip(..) => {
            return None;
        }
    }
    Some(Fate::Found)
}

/// Whether all are heartbeats, and some hand in a checkpoint or move the lease's end as they like.
fn is_repeatable(event: &Event<'_>) -> bool {
    let Event::ReportsApplied(event) = event else { return false };
    let mut says_more = false;
    event.reports.iter().all(|report| match report {
        Report::LeaseExtended(item) => {
            says_more |= !item.checkpoint.is_empty() || item.lease_ms > 0;
            true
        }
        Report::TaskCompleted(_)
        | Report::TaskFailed(_)
        | Report::LeaseReleased(_)
        | Report::StaleReportRejected(_) => false,
    }) && says_more
}

/// Whether a report was accepted, so that none of it may be late.
fn is_report(event: &Event<'_>) -> bool {
    let Event::ReportsApplied(event) = event else { return false };
    event.reports.iter().any(|report| !matches!(report, Report::StaleReportRejected(_)))
}

/// Gives the records the LSNs of their places, and takes the links of histories along.
fn renumber(records: &mut [Record<'_>]) {
    let mut moved = BTreeMap::new();
    for (record, lsn) in records.iter_mut().zip(1..) {
        moved.entry(record.lsn).or_insert(Lsn(lsn));
        record.lsn = Lsn(lsn);
    }
    for record in records {
        for item in 0.. {
            let Some(fields) = fields(&mut record.event, item) else { break };
            if let Some(about) = fields.about {
                about.previous = moved.get(&about.previous).copied().unwrap_or(about.previous);
            }
            if item + 1 == fields.items {
                break;
            }
        }
    }
}

/// What can be changed in an item so that it is wrong for certain. (A grant's worker could have been
/// another, and so could the lease of a stale report.)
#[derive(Default)]
struct Fields<'m, 'a> {
    items: usize,
    about: Option<&'m mut About<'a>>,
    lease: Option<&'m mut LeaseId>,
    worker: Option<&'m mut Text<'a>>,
    end: Option<&'m mut Timestamp>,
    to: Option<&'m mut TaskState>,
    count: Option<&'m mut u16>,
    cause: Option<&'m mut ExpiryCause>,
}

/// The fields of one item; of which one, `pick` says.
fn fields<'m, 'a>(event: &'m mut Event<'a>, pick: usize) -> Option<Fields<'m, 'a>> {
    fn nth<T>(items: &mut [T], pick: usize) -> (usize, &mut T) {
        (items.len(), &mut items[pick % items.len()])
    }
    Some(match event {
        Event::LeaseGranted(event) => {
            let (items, item) = nth(&mut event.grants, pick);
            Fields {
                items,
                about: Some(&mut item.about),
                lease: Some(&mut item.lease_id),
                end: Some(&mut item.expires_at),
                ..Fields::default()
            }
        }
        Event::LeaseExpired(event) => {
            let (items, item) = nth(&mut event.leases, pick);
            Fields {
                items,
                about: Some(&mut item.about),
                lease: Some(&mut item.lease_id),
                worker: Some(&mut item.worker),
                to: Some(&mut item.to),
                count: Some(&mut item.expiries),
                cause: Some(&mut item.cause),
                ..Fields::default()
            }
        }
        Event::TimerFired(event) => {
            let (items, item) = nth(&mut event.deadlines, pick);
            Fields {
                items,
                about: Some(&mut item.about),
                lease: Some(&mut item.lease_id),
                worker: Some(&mut item.worker),
                end: Some(&mut item.deadline_at),
                to: Some(&mut item.from),
                ..Fields::default()
            }
        }
        Event::CancelRequested(item) => Fields {
            items: 1,
            about: Some(&mut item.about),
            lease: Some(&mut item.lease_id),
            worker: Some(&mut item.worker),
            end: Some(&mut item.expires_at),
            to: Some(&mut item.to),
            ..Fields::default()
        },
        Event::TaskRetried(item) => Fields {
            items: 1,
            about: Some(&mut item.about),
            end: Some(&mut item.not_before),
            to: Some(&mut item.from),
            ..Fields::default()
        },
        Event::ReportsApplied(event) => {
            let (items, item) = nth(&mut event.reports, pick);
            Fields { items, ..report(item) }
        }
        Event::TaskCreated(_)
        | Event::QueueConfigured(_)
        | Event::TasksPurged(_)
        | Event::IdsSkipped(_)
        | Event::QueueDeleted(_)
        | Event::WorkflowDeleted(_)
        | Event::RunsStarted(_)
        | Event::RunStartedBySignal(_)
        | Event::WorkflowRegistered(_)
        | Event::RunStarted(_)
        | Event::SignalReceived(_)
        | Event::RunCancelRequested(_)
        | Event::DispatchContinued(_)
        | Event::EndContinued(_)
        | Event::RunParked(_)
        | Event::RunUnparked(_) => return None,
    })
}

fn report<'m, 'a>(report: &'m mut Report<'a>) -> Fields<'m, 'a> {
    match report {
        Report::LeaseExtended(item) => Fields {
            lease: Some(&mut item.lease_id),
            end: Some(&mut item.expires_at),
            ..Fields::default()
        },
        Report::TaskCompleted(item) => completed(item),
        Report::TaskFailed(item) => failed(item),
        Report::LeaseReleased(item) => released(item),
        Report::StaleReportRejected(item) => late(item),
    }
}

fn completed<'m, 'a>(item: &'m mut tenure_record::event::TaskCompleted<'a>) -> Fields<'m, 'a> {
    Fields {
        items: 1,
        about: Some(&mut item.about),
        lease: Some(&mut item.lease_id),
        worker: Some(&mut item.worker),
        ..Fields::default()
    }
}

fn failed<'m, 'a>(item: &'m mut tenure_record::event::TaskFailed<'a>) -> Fields<'m, 'a> {
    Fields {
        items: 1,
        about: Some(&mut item.about),
        lease: Some(&mut item.lease_id),
        worker: Some(&mut item.worker),
        to: Some(&mut item.to),
        count: Some(&mut item.failures),
        ..Fields::default()
    }
}

fn released<'m, 'a>(item: &'m mut tenure_record::event::LeaseReleased<'a>) -> Fields<'m, 'a> {
    Fields {
        items: 1,
        about: Some(&mut item.about),
        lease: Some(&mut item.lease_id),
        worker: Some(&mut item.worker),
        to: Some(&mut item.to),
        ..Fields::default()
    }
}

fn late<'m, 'a>(item: &'m mut tenure_record::event::StaleReportRejected<'a>) -> Fields<'m, 'a> {
    Fields {
        items: 1,
        about: Some(&mut item.about),
        to: Some(&mut item.state),
        ..Fields::default()
    }
}
