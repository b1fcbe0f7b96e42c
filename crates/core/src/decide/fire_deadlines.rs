//! Moments that have passed: tasks, runs, joins and nodes that took too long, and timers that are
//! due. Each is decided as if those before it were applied; what they have ended is left alone.

use tenure_flow::definition::{NodeKind, OnRunTimeout};
use tenure_record::event::{
    DeadlinePassed, Event, GroupState, JoinTimedOut, RunDeadlinePassed, RunState, TimerFired,
    TokenDue, TokenState,
};
use tenure_record::id::{GroupId, LeaseId, RunId, TaskId, TokenId};
use tenure_record::state::TaskState;
use tenure_record::terms::{TIMEOUT_CODE, TIMEOUT_MESSAGE};
use tenure_record::time::{Clock, Now};
use tenure_value::Value;

use super::{Verdict, about, dead_letter, stamp};
use crate::apply;
use crate::command::{Reply, Rest, Swept};
use crate::limits::DUE_ITEMS_MAX;
use crate::state::{Draft, Ledger, Runs};
use crate::workflow::{self, At, Cascade, Fault, TaskEnd};

pub(super) fn decide(draft: &mut Draft<'_>, now: Now) -> Verdict<'static> {
    sweep(draft, now, Rest::Nothing)
}

/// A sweep under way.
struct Sweep<'d, 's> {
    draft: &'d mut Draft<'s>,
    now: Now,
    fired: TimerFired<'static>,
    items: usize,
    passed: usize,
    rest: Rest,
}

/// Fires what is due. `afterwards` says whether the caller has more to do when that is all.
pub(super) fn sweep(draft: &mut Draft<'_>, now: Now, afterwards: Rest) -> Verdict<'static> {
    let fired = TimerFired::default();
    let mut sweep = Sweep { draft, now, fired, items: 0, passed: 0, rest: afterwards };
    sweep.tasks();
    // Due together: the run first, then joins, then nodes.
    sweep.runs();
    sweep.joins();
    sweep.nodes();
    sweep.timers(Clock::Log);
    sweep.timers(Clock::Wall);
    let Sweep { fired, items, rest, .. } = sweep;
    let reply = Reply::Swept(Swept { items, rest });
    match fired == TimerFired::default() {
        true => Verdict::Answer(reply),
        false => Verdict::Append(Event::TimerFired(fired), reply),
    }
}

impl Sweep<'_, '_> {
    /// Whether there is room for one more; if not, the rest waits for the next record.
    fn has_room(&mut self) -> bool {
        if self.items < DUE_ITEMS_MAX && !self.draft.is_full() {
            self.items += 1;
            return true;
        }
        self.rest = Rest::More;
        false
    }

    /// Passes over something that is due and will not happen: what it belongs to has ended in this
    /// record, or is ending. False if too many of these were looked at.
    fn passes(&mut self) -> bool {
        self.passed += 1;
        let goes_on = self.passed < DUE_ITEMS_MAX;
        if !goes_on {
            self.rest = Rest::More;
        }
        goes_on
    }

    fn tasks(&mut self) {
        let state = self.draft.base();
        let due = state.live().deadlines.range(..=(self.now.log, TaskId(u64::MAX)));
        for &(deadline_at, task_id) in due {
            if !self.has_room() {
                return;
            }
            let task = *Ledger::task(self.draft, task_id).expect("a deadline belongs to a task");
            let to = match task.cancel_requested {
                true => TaskState::Canceled,
                false => TaskState::Failed,
            };
            let mut item = DeadlinePassed {
                about: about(self.draft, task_id, &task),
                from: task.name(),
                worker: self.draft.holder(&task),
                lease_id: match task.name() == TaskState::Leased {
                    true => task.lease_id,
                    false => LeaseId::NONE,
                },
                deadline_at,
                cascade: Vec::new(),
                to,
                dead_letter: dead_letter::of(self.draft, task_id, &task, to),
            };
            apply::task::deadline_passed(self.draft, stamp(self.draft, self.now), &item);
            if task.in_run {
                let end = match item.to == TaskState::Canceled {
                    true => TaskEnd::Canceled,
                    false => TaskEnd::Failed { code: TIMEOUT_CODE, reason: TIMEOUT_MESSAGE },
                };
                item.cascade = workflow::task_ended(self.draft, self.now, task_id, end);
            }
            self.fired.deadlines.push(item);
        }
    }

    fn runs(&mut self) {
        let state = self.draft.base();
        let due = state.live().runs.deadlines.range(..=(self.now.log, RunId(u64::MAX)));
        for &(deadline_at, run_id) in due {
            let run = Runs::run(self.draft, run_id).expect("a deadline belongs to a run");
            if run.state.is_terminal() || run.ending_root().is_some() {
                continue;
            }
            let state = match run.workflow.definition().on_timeout {
                OnRunTimeout::Fail => RunState::TimedOut,
                OnRunTimeout::Cancel => RunState::Canceled,
            };
            if !self.has_room() {
                return;
            }
            let fault = Fault::new("RUN_TIMEOUT", "the run did not end before its deadline");
            let mut cascade = Cascade::new(self.draft, self.now);
            cascade.cancel_run(run_id, state, Some(fault.at(None, 0, None)));
            let cascade = cascade.finish();
            self.fired.runs.push(RunDeadlinePassed { run_id, deadline_at, cascade });
        }
    }

    fn joins(&mut self) {
        let state = self.draft.base();
        let last = (self.now.log, RunId(u64::MAX), GroupId(u32::MAX));
        for &(deadline_at, run_id, group) in state.live().runs.joins.range(..=last) {
            let found = Runs::group(self.draft, run_id, group);
            let open = found.filter(|group| group.state == GroupState::Open);
            let Some(scope) = open.map(|group| group.scope) else { continue };
            if !Cascade::new(self.draft, self.now).goes_on(run_id, scope) {
                if self.passes() {
                    continue;
                }
                return;
            }
            if !self.has_room() {
                return;
            }
            let mut cascade = Cascade::new(self.draft, self.now);
            cascade.time_out_join(run_id, group);
            let cascade = cascade.finish();
            self.fired.joins.push(JoinTimedOut { run_id, group, deadline_at, cascade });
        }
    }

    fn nodes(&mut self) {
        let state = self.draft.base();
        let last = (self.now.log, RunId(u64::MAX), TokenId(u32::MAX));
        for &(moment, run_id, token) in state.live().runs.nodes.range(..=last) {
            let at = At { run: run_id, token };
            let live = Cascade::new(self.draft, self.now).live_token(at).map(|token| token.node);
            let Some(node) = live else {
                if self.passes() {
                    continue;
                }
                return;
            };
            if !self.has_room() {
                return;
            }
            let mut cascade = Cascade::new(self.draft, self.now);
            let attempts = cascade.attempts(at);
            cascade.stop_work(at);
            let fault = timeout_fault(&cascade.definition(run_id).nodes[node as usize].kind);
            cascade.fail_node(at, attempts, &fault, TokenState::TimedOut);
            let cascade = cascade.finish();
            self.fired.nodes.push(TokenDue { run_id, token, at: moment, cascade });
        }
    }

    fn timers(&mut self, clock: Clock) {
        let state = self.draft.base();
        let last = (self.now.on(clock), RunId(u64::MAX), TokenId(u32::MAX));
        for &(moment, run_id, token) in state.live().runs.timers(clock).range(..=last) {
            let at = At { run: run_id, token };
            if Cascade::new(self.draft, self.now).live_token(at).is_none() {
                if self.passes() {
                    continue;
                }
                return;
            }
            if !self.has_room() {
                return;
            }
            let mut cascade = Cascade::new(self.draft, self.now);
            cascade.accept_value(at, Value::empty_map());
            let cascade = cascade.finish();
            self.fired.timers.push(TokenDue { run_id, token, at: moment, cascade });
        }
    }
}

fn timeout_fault(kind: &NodeKind) -> Fault {
    match kind {
        NodeKind::Signal(node) => {
            let message = format!("no signal `{}` came before the deadline", node.signal);
            Fault::new("SIGNAL_TIMEOUT", message)
        }
        NodeKind::Task(_) | NodeKind::Pass | NodeKind::Workflow(_) | NodeKind::Timer(_) => {
            Fault::new("NODE_TIMEOUT", "the node was not done before its deadline")
        }
    }
}
