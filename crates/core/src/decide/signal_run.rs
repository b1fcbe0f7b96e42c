//! News from outside for a run: for exactly one token, the oldest that waits for it, or kept for
//! the next.

use tenure_flow::Schema;
use tenure_flow::definition::{NodeKind, SignalNode};
use tenure_record::event::{Event, Json, SignalReceived};
use tenure_record::id::TokenId;
use tenure_record::limits::PAYLOAD_BYTES_MAX;
use tenure_record::name::Text;
use tenure_record::time::Now;

use super::{Verdict, request_hash, stamp};
use crate::apply;
use crate::apply::precomputed::Recall;
use crate::command::{Reply, SignalRun, Signaled};
use crate::limits::{CASCADE_WORK_MAX, SIGNAL_IDS_MAX, SIGNALS_KEPT_BYTES_MAX, SIGNALS_KEPT_MAX};
use crate::rejection::Rejection;
use crate::state::{Draft, Run, Runs};
use crate::workflow::{self, At, Cascade};

pub(super) fn decide(
    draft: &mut Draft<'_>,
    command: &SignalRun,
    now: Now,
) -> Result<Verdict<'static>, Rejection> {
    let run_id = command.run_id;
    let stored = draft.base().stored_run(run_id).ok_or(Rejection::RunNotFound { run_id })?;
    let signal_hash = command.signal_id.as_ref().map(|_| request_hash::of_signal(command));
    if let Some((signal_id, hash)) = command.signal_id.as_ref().zip(signal_hash)
        && let Some(known) = stored.signal_ids.get(signal_id.as_str())
    {
        return match request_hash::repeats(*known, hash) {
            true => Ok(Verdict::Answer(Reply::Signaled(Signaled::Known))),
            false => Err(Rejection::SignalConflict { run_id, signal_id: signal_id.clone() }),
        };
    }
    if stored.head.state.is_terminal() {
        return Err(Rejection::RunOver { run_id, state: stored.head.state });
    }
    if let Some(root) = stored.head.ending_root() {
        return Err(Rejection::RunEnding { run_id, state: root.state });
    }
    if stored.head.stands_still() {
        return Err(Rejection::RunParked { run_id });
    }
    check_size(command)?;
    if command.signal_id.is_some() && stored.signal_ids.len() >= SIGNAL_IDS_MAX {
        return Err(Rejection::SignalsFull { run_id });
    }
    let correlation = command.correlation.as_str();
    let mut waiting = draft.base().live().runs.waiting(run_id, &command.name, correlation);
    let token = waiting
        .find(|id| stored.token(*id).is_some_and(|token| !draft.is_ending(run_id, token.scope)));
    check_payload(
        draft,
        &stored.head,
        command,
        token.and_then(|id| stored.token(id)).map(|t| t.node),
    )?;
    let mut item = SignalReceived {
        run_id,
        name: Text::Shared(std::sync::Arc::clone(&command.name)),
        correlation: command.correlation.share(),
        signal_id: command.signal_id.as_ref().map(|id| id.share()),
        payload: Json(command.payload.clone()),
        token: token.unwrap_or(TokenId::NONE),
        previous: stored.head.last_lsn,
        cascade: Vec::new(),
        signal_hash,
    };
    if token.is_none() {
        check_room(&stored.head, command)?;
    }
    apply::run::signal_received(draft, stamp(draft, now), &item, &mut Recall::none());
    let signaled = match token {
        Some(token) => {
            let mut cascade = Cascade::new(draft, now);
            cascade.accept_item(At { run: run_id, token }, command.payload.clone());
            item.cascade = cascade.finish();
            Signaled::Given(token)
        }
        None => Signaled::Kept,
    };
    Ok(Verdict::Append(Event::SignalReceived(Box::new(item)), Reply::Signaled(signaled)))
}

/// A run that does not wait yet keeps a bounded number of signals, and a bounded number of bytes.
fn check_room(run: &Run, command: &SignalRun) -> Result<(), Rejection> {
    let Some(rare) = &run.rare else { return Ok(()) };
    if rare.signals.len() >= SIGNALS_KEPT_MAX {
        return Err(Rejection::SignalsFull { run_id: command.run_id });
    }
    let bytes = rare.signals.payload_bytes() + command.payload.bytes();
    match bytes > SIGNALS_KEPT_BYTES_MAX {
        true => Err(Rejection::SignalBytesFull { run_id: command.run_id, bytes }),
        false => Ok(()),
    }
}

pub(super) fn check_size(command: &SignalRun) -> Result<(), Rejection> {
    let (what, bytes, bytes_max) = ("the payload", command.payload.bytes(), PAYLOAD_BYTES_MAX);
    match bytes > bytes_max {
        true => Err(Rejection::ValueTooLarge { what, bytes, bytes_max }),
        false => Ok(()),
    }
}

/// The payload must suit the node that waits for it, or one that may.
pub(super) fn check_payload(
    draft: &Draft<'_>,
    run: &Run,
    command: &SignalRun,
    node: Option<u32>,
) -> Result<(), Rejection> {
    let nodes = &run.workflow.definition().nodes;
    let schemas: Vec<Option<&Schema>> = nodes
        .iter()
        .zip(0..)
        .filter(|(_, place)| node.is_none_or(|node| node == *place))
        .filter_map(|(node, _)| match &node.kind {
            NodeKind::Signal(SignalNode { signal, schema, .. }) if *signal == command.name => {
                Some(schema.as_ref())
            }
            NodeKind::Signal(_)
            | NodeKind::Task(_)
            | NodeKind::Pass
            | NodeKind::Workflow(_)
            | NodeKind::Timer(_) => None,
        })
        .collect();
    let mut refused = None;
    for schema in &schemas {
        // Each of many nodes may have a schema of its own that costs as much as one may.
        if draft.work() > CASCADE_WORK_MAX {
            break;
        }
        match schema.map_or(Ok(()), |schema| draft.check(schema, &command.payload)) {
            Ok(()) => return Ok(()),
            Err(complaints) => refused = Some(workflow::sentence("the payload", &complaints)),
        }
    }
    Err(match refused {
        Some(message) => Rejection::InputInvalid { message },
        None => Rejection::SignalUnknown {
            run_id: command.run_id,
            name: std::sync::Arc::clone(&command.name),
        },
    })
}
