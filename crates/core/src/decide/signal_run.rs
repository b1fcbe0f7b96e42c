//! News from outside for a run: for exactly one token, the oldest that waits for it, or kept for
//! the next.

use tenure_flow::Schema;
use tenure_flow::definition::{NodeKind, SignalNode};

use super::{Verdict, stamp};
use crate::apply;
use crate::command::{Reply, SignalRun, Signaled};
use crate::event::{Event, Json, SignalReceived};
use crate::id::TokenId;
use crate::limits::{PAYLOAD_BYTES_MAX, SIGNAL_IDS_MAX, SIGNALS_KEPT_MAX};
use crate::name::Text;
use crate::rejection::Rejection;
use crate::state::{Draft, Run, StoredRun};
use crate::time::Now;
use crate::workflow::{self, At, Cascade};

pub(super) fn decide(
    draft: &mut Draft<'_>,
    command: &SignalRun,
    now: Now,
) -> Result<Verdict<'static>, Rejection> {
    let run_id = command.run_id;
    let stored = draft.base().stored_run(run_id).ok_or(Rejection::RunNotFound { run_id })?;
    if let Some(signal_id) = &command.signal_id
        && stored.signal_ids.contains(signal_id.as_str())
    {
        return Ok(Verdict::Answer(Reply::Signaled(Signaled::Known)));
    }
    if stored.head.state.is_terminal() {
        return Err(Rejection::RunOver { run_id, state: stored.head.state });
    }
    check_size(stored, command)?;
    let correlation = command.correlation.as_str();
    let token = draft.base().live().runs.waiting(run_id, &command.name, correlation);
    check_payload(&stored.head, command, token.and_then(|id| stored.token(id)).map(|t| t.node))?;
    let mut item = SignalReceived {
        run_id,
        name: Text::Shared(std::sync::Arc::clone(&command.name)),
        correlation: command.correlation.share(),
        signal_id: command.signal_id.as_ref().map(|id| id.share()),
        payload: Json(command.payload.clone()),
        token: token.unwrap_or(TokenId::NONE),
        previous: stored.head.last_lsn,
        cascade: Vec::new(),
    };
    if token.is_none() && kept(&stored.head) >= SIGNALS_KEPT_MAX {
        return Err(Rejection::SignalsFull { run_id });
    }
    apply::run::signal_received(draft, stamp(draft, now), &item);
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

fn kept(run: &Run) -> usize {
    run.rare.as_ref().map_or(0, |rare| rare.signals.len())
}

fn check_size(stored: &StoredRun, command: &SignalRun) -> Result<(), Rejection> {
    let bytes = command.payload.bytes();
    if bytes > PAYLOAD_BYTES_MAX {
        return Err(Rejection::RecordTooLarge { bytes });
    }
    match command.signal_id.is_some() && stored.signal_ids.len() >= SIGNAL_IDS_MAX {
        true => Err(Rejection::SignalsFull { run_id: command.run_id }),
        false => Ok(()),
    }
}

/// The payload must suit the node that waits for it, or one that may.
fn check_payload(run: &Run, command: &SignalRun, node: Option<u32>) -> Result<(), Rejection> {
    let nodes = &run.workflow.definition.nodes;
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
        match schema.map_or(Ok(()), |schema| schema.check(&command.payload)) {
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
