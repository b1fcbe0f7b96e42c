//! Timers that are due: leases, tasks, runs, joins and nodes that ran out of time, and timer nodes
//! whose moment has come. They fire in the order of (moment, kind, id), so a sweep that comes late
//! leads to what sweeps at each moment would have led to. Each is decided as if those before it were
//! applied; what they have ended is left alone.

use tenure_flow::definition::{NodeKind, OnRunTimeout};
use tenure_record::event::{
    DeadlinePassed, Event, Expired, GroupState, JoinTimedOut, RunDeadlinePassed, RunState,
    TimerFired, TokenDue, TokenState,
};
use tenure_record::id::{GroupId, LeaseId, RunId, TaskId};
use tenure_record::state::TaskState;
use tenure_record::terms::{TIMEOUT_CODE, TIMEOUT_MESSAGE};
use tenure_record::time::{Now, Timestamp};
use tenure_value::Value;

use super::{Halt, Verdict, about, dead_letter, end_leases, halt, stamp};
use crate::apply;
use crate::command::{Reply, Rest, Swept};
use crate::limits::DUE_ITEMS_MAX;
use crate::state::{Draft, Ledger, Runs, TimerRef};
use crate::workflow::{self, At, Cascade, RunFault, TaskEnd};

pub(super) fn decide(draft: &mut Draft<'_>, now: Now, seed: u64) -> Verdict<'static> {
    let state = draft.base();
    let (fired, leases) = (TimerFired::default(), Vec::new());
    let mut sweep = Sweep { draft, now, seed, fired, leases, last: None, items: 0 };
    let mut passed_over = 0;
    let mut rest = Rest::Nothing;
    for due in state.live().timers.due(now) {
        let counts = sweep.counts(due.timer);
        if passed_over == DUE_ITEMS_MAX || counts && !sweep.has_room_for(due.timer) {
            rest = Rest::More;
            break;
        }
        match counts {
            true => sweep.fire(due.timer, due.at),
            false => passed_over += 1,
        }
    }
    let Sweep { fired, leases, items, .. } = sweep;
    if !leases.is_empty() {
        return end_leases::verdict(leases, rest);
    }
    let reply = Reply::Swept(Swept { items, rest });
    match items == 0 {
        true => Verdict::Answer(reply),
        false => Verdict::Append(Event::TimerFired(fired), reply),
    }
}

/// A record under way: ends of leases, or any other timers.
struct Sweep<'d, 's> {
    draft: &'d mut Draft<'s>,
    now: Now,
    seed: u64,
    fired: TimerFired<'static>,
    leases: Vec<Expired<'static>>,
    /// The list in which the last item is.
    last: Option<List>,
    items: usize,
}

/// The lists of records that timers fire in, in the order in which they are applied.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum List {
    Tasks,
    Runs,
    Joins,
    Nodes,
    Timers,
    Leases,
}

impl List {
    fn of(timer: TimerRef) -> Self {
        match timer {
            TimerRef::Task(_) => Self::Tasks,
            TimerRef::Run(_) => Self::Runs,
            TimerRef::Join(..) => Self::Joins,
            TimerRef::Node(..) => Self::Nodes,
            TimerRef::Timer(..) => Self::Timers,
            TimerRef::Lease(_) => Self::Leases,
        }
    }
}

impl Sweep<'_, '_> {
    /// Whether the record can go on with a timer. A record is applied list by list, so it ends where
    /// the next moment belongs to a list before its last one; and the ends of leases are a record of
    /// their own.
    fn has_room_for(&self, timer: TimerRef) -> bool {
        let list = List::of(timer);
        let is_in_order = self
            .last
            .is_none_or(|last| last <= list && (last == List::Leases) == (list == List::Leases));
        is_in_order && self.items < DUE_ITEMS_MAX && !self.draft.is_full()
    }

    /// Whether a timer that is due still means something. If not, what it belongs to has ended in this
    /// record, or is ending.
    fn counts(&self, timer: TimerRef) -> bool {
        match timer {
            TimerRef::Task(task_id) | TimerRef::Lease(task_id) => {
                let task = Ledger::task(self.draft, task_id).expect("a timer belongs to a task");
                let is_over = match timer == TimerRef::Lease(task_id) {
                    true => task.name() != TaskState::Leased,
                    false => task.is_terminal(),
                };
                !is_over && halt(self.draft, task_id, task) != Some(Halt::Ending)
            }
            TimerRef::Run(run_id) => {
                let run = Runs::run(self.draft, run_id).expect("a timer belongs to a run");
                !run.state.is_terminal() && run.ending_root().is_none()
            }
            TimerRef::Join(run_id, group) => {
                let group = Runs::group(self.draft, run_id, group);
                let open = group.filter(|group| group.state == GroupState::Open);
                open.is_some_and(|group| self.draft.goes_on(run_id, group.scope))
            }
            TimerRef::Node(run, token) | TimerRef::Timer(run, token) => {
                let token = Runs::token(self.draft, run, token);
                let live = token.filter(|token| !token.state.is_terminal());
                live.is_some_and(|token| self.draft.goes_on(run, token.scope))
            }
        }
    }

    fn fire(&mut self, timer: TimerRef, at: Timestamp) {
        self.last = Some(List::of(timer));
        self.items += 1;
        match timer {
            TimerRef::Task(task_id) => self.task(task_id, at),
            TimerRef::Run(run_id) => self.run(run_id, at),
            TimerRef::Join(run_id, group) => self.join(run_id, group, at),
            TimerRef::Node(run, token) => self.node(At { run, token }, at),
            TimerRef::Timer(run, token) => self.timer(At { run, token }, at),
            TimerRef::Lease(task_id) => self.lease(task_id, at),
        }
    }

    fn task(&mut self, task_id: TaskId, deadline_at: Timestamp) {
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

    fn run(&mut self, run_id: RunId, deadline_at: Timestamp) {
        let run = Runs::run(self.draft, run_id).expect("a deadline belongs to a run");
        let state = match run.workflow.definition().on_timeout {
            OnRunTimeout::Fail => RunState::TimedOut,
            OnRunTimeout::Cancel => RunState::Canceled,
        };
        let fault = RunFault::new("RUN_TIMEOUT", "the run did not end before its deadline");
        let mut cascade = Cascade::new(self.draft, self.now);
        cascade.cancel_run(run_id, state, Some(fault.at(None, 0, None)));
        let cascade = cascade.finish();
        self.fired.runs.push(RunDeadlinePassed { run_id, deadline_at, cascade });
    }

    fn join(&mut self, run_id: RunId, group: GroupId, deadline_at: Timestamp) {
        let mut cascade = Cascade::new(self.draft, self.now);
        cascade.time_out_join(run_id, group);
        let cascade = cascade.finish();
        self.fired.joins.push(JoinTimedOut { run_id, group, deadline_at, cascade });
    }

    fn node(&mut self, of: At, at: Timestamp) {
        let mut cascade = Cascade::new(self.draft, self.now);
        let attempts = cascade.attempts(of);
        cascade.stop_work(of);
        let node = cascade.live_token(of).expect("a node that is out of time is live").node;
        let fault = timeout_fault(&cascade.definition(of.run).nodes[node as usize].kind);
        cascade.fail_node(of, attempts, &fault, TokenState::TimedOut);
        let cascade = cascade.finish();
        self.fired.nodes.push(TokenDue { run_id: of.run, token: of.token, at, cascade });
    }

    fn timer(&mut self, of: At, at: Timestamp) {
        let mut cascade = Cascade::new(self.draft, self.now);
        cascade.accept_value(of, Value::empty_map());
        let cascade = cascade.finish();
        self.fired.timers.push(TokenDue { run_id: of.run, token: of.token, at, cascade });
    }

    fn lease(&mut self, task_id: TaskId, expires_at: Timestamp) {
        let task = *Ledger::task(self.draft, task_id).expect("a lease belongs to a task");
        let cause = end_leases::cause(self.draft, task_id, expires_at);
        let item = end_leases::expire(self.draft, task_id, &task, cause, self.now, self.seed);
        self.leases.push(item);
    }
}

fn timeout_fault(kind: &NodeKind) -> RunFault {
    match kind {
        NodeKind::Signal(node) => {
            let message = format!("no signal `{}` came before the deadline", node.signal);
            RunFault::new("SIGNAL_TIMEOUT", message)
        }
        NodeKind::Task(_) | NodeKind::Pass | NodeKind::Workflow(_) | NodeKind::Timer(_) => {
            RunFault::new("NODE_TIMEOUT", "the node was not done before its deadline")
        }
    }
}
