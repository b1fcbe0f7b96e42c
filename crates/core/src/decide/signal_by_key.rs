//! News from outside for the run that holds a key. If no run does and the signal says how to begin
//! one, the run begins in the same record, with the signal as its first news.

use std::sync::Arc;

use tenure_record::event::{Event, Json, RunStarted, RunStartedBySignal, SignalReceived, Step};
use tenure_record::id::{Lsn, TokenId};
use tenure_record::name::Text;
use tenure_record::time::Now;

use super::signal_run::{self, check_payload, check_size};
use super::start_run::{Begun, begin};
use super::{Verdict, request_hash, stamp};
use crate::apply;
use crate::apply::precomputed::Recall;
use crate::command::{Reply, SignalByKey, SignalRun, Signaled, StartRun, SubmitOutcome};
use crate::rejection::Rejection;
use crate::state::{Draft, Runs};
use crate::workflow::Cascade;

pub(super) fn decide(
    draft: &mut Draft<'_>,
    command: &SignalByKey,
    now: Now,
) -> Result<Verdict<'static>, Rejection> {
    let (workflow, key) = (&command.workflow, &command.key);
    if let Some(run_id) = draft.base().run_with_key(workflow, key.as_str()) {
        let signal = SignalRun { run_id, ..command.signal.clone() };
        let reply =
            |signaled| Reply::SignaledByKey { run_id, outcome: SubmitOutcome::Existed, signaled };
        return Ok(match signal_run::decide(draft, &signal, now)? {
            Verdict::Append(event, Reply::Signaled(signaled)) => {
                Verdict::Append(event, reply(signaled))
            }
            Verdict::Answer(Reply::Signaled(signaled)) => Verdict::Answer(reply(signaled)),
            Verdict::Append(..) | Verdict::Answer(_) => unreachable!("a signal is answered so"),
        });
    }
    let Some(terms) = &command.start else {
        let (workflow, key) = (Arc::clone(workflow), key.clone());
        return Err(Rejection::RunKeyNotFound { workflow, key });
    };
    let start = StartRun {
        workflow: Arc::clone(workflow),
        version: terms.version,
        input: terms.input.clone(),
        key: Some(key.clone()),
        tags: terms.tags.clone(),
    };
    let run = match begin(draft, &start, now)? {
        Begun::New(run) => run,
        Begun::Existed(_) => unreachable!("no run holds the key"),
    };
    let run_id = run.run_id;
    let signal = SignalRun { run_id, ..command.signal.clone() };
    check_size(&signal)?;
    let head = Runs::run(draft, run_id).expect("it was begun a line ago").clone();
    check_payload(draft, &head, &signal, None).map_err(|rejection| {
        let Rejection::SignalUnknown { name, .. } = rejection else { return rejection };
        // There is no run that could be named.
        Rejection::WorkflowSignalUnknown { workflow: Arc::clone(workflow), name }
    })?;
    // The run keeps the signal before it begins: the first token that waits for it finds it there.
    let item = SignalReceived {
        run_id,
        name: Text::Shared(Arc::clone(&signal.name)),
        correlation: signal.correlation.share(),
        signal_id: signal.signal_id.as_ref().map(|id| id.share()),
        signal_hash: signal.signal_id.as_ref().map(|_| request_hash::of_signal(&signal)),
        payload: Json(signal.payload),
        token: TokenId::NONE,
        previous: Lsn::NONE,
        cascade: Vec::new(),
    };
    apply::run::signal_received(draft, stamp(draft, now), &item, &mut Recall::none());
    let mut cascade = Cascade::new(draft, now);
    cascade.begin_run(run_id);
    let cascade = cascade.finish();
    let taken = cascade.iter().find_map(|decision| {
        let Step::TakeSignal(taken) = &decision.step else { return None };
        (decision.run_id == run_id).then_some(taken.token)
    });
    let signaled = taken.map_or(Signaled::Kept, Signaled::Given);
    let reply = Reply::SignaledByKey { run_id, outcome: SubmitOutcome::Created, signaled };
    let event = RunStartedBySignal { start: RunStarted { run, cascade }, signal: item };
    Ok(Verdict::Append(Event::RunStartedBySignal(Box::new(event)), reply))
}
