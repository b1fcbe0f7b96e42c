//! Decides commands, and reads tasks and queues from the state.

use std::sync::Arc;

use tenure_core::command::{
    Command, Extended, Heartbeat, LeaseRef, Leased, NewTask, ReleaseTask, Reply, ReportTasks,
    SubmitTasks, Submitted,
};
use tenure_core::limits::{BATCH_ITEMS_MAX, LIST_ITEMS_MAX};
use tenure_core::state::{Filter, QueueView, TaskView};
use tenure_core::{Draft, Rejection, Verdict, apply_decided, decide};
use tenure_log::Log;
use tenure_record::codec;
use tenure_record::event::{Event, Record, Report, Step};
use tenure_record::id::{RunId, TaskId};
use tenure_record::name::{QueueName, WorkerName};
use tenure_record::time::Now;

use crate::filter::TaskFilter;
use crate::info::{Explained, Grant, Status, TaskInfo, TaskOfRun, TaskPage};
use crate::limits::STEP_GRANTS_MAX;
use crate::parking::{Awaited, ParkedLease};
use crate::planted::{self, Bug};
use crate::refusal::Refusal;
use crate::report::ReportProgress;
use crate::request::{Ready, Request, Responder, SubmittedTask};
use crate::run_info::run_counts;
use crate::step::Coordinator;

impl<L: Log> Coordinator<L> {
    /// Decides a command, writes and applies what comes of it.
    pub(crate) fn run(&mut self, command: &Command, now: Now) -> Result<Reply, Refusal> {
        let seed = self.decider.draw();
        let (verdict, work, precomputed);
        {
            let mut draft = Draft::new(&self.state);
            verdict = decide(&mut draft, command, now, seed);
            work = draft.work();
            precomputed = draft.take_precomputed();
        }
        self.decider.spend(work);
        match verdict? {
            Verdict::Answer(reply) => accept(reply),
            Verdict::Append(event, reply) => {
                let record = Record {
                    lsn: self.state.last_lsn().next(),
                    at: now.log,
                    wall: now.wall,
                    event,
                };
                let encode = |out: &mut Vec<u8>| codec::encode(&planted::written(&record), out);
                // Measured before it is applied: a record that is too long never happened.
                let bytes_max = self.decider.record_bytes_max();
                if let Err(bytes) = self.commit.batch.push_within(bytes_max, encode) {
                    self.decider.note_oversized(heaviest_run(&record.event), bytes);
                    return Err(Rejection::RecordTooLarge { bytes }.into());
                }
                apply_decided(&mut self.state, &record, &precomputed);
                if !self.parking.readers.is_empty() {
                    self.tell_readers(&record.event);
                }
                accept(reply)
            }
        }
    }

    /// Serves parked workers from the queues in which something became ready, in the order in
    /// which they came.
    pub(crate) fn serve_ready_queues(&mut self, now: Now) {
        while let Some(queue) = self.state.next_woken() {
            self.parking.note_ready(queue);
        }
        let mut budget = STEP_GRANTS_MAX;
        while let Some(queue) = self.parking.ready_queues.last().map(Arc::clone) {
            if budget == 0 || !self.has_room() {
                return;
            }
            budget -= 1;
            let more = self.state.has_ready(&queue) && self.serve_first(&queue, now);
            if !more {
                self.parking.ready_queues.pop();
            }
        }
    }

    /// Serves the worker that has waited longest for this queue. False if there is none, or if
    /// it gets nothing.
    fn serve_first(&mut self, queue: &Arc<str>, now: Now) -> bool {
        let Some((ticket, parked)) = self.parking.leases.first(queue) else { return false };
        if parked.to.is_gone() && !planted::has(Bug::GrantedToTheGone) {
            self.parking.leases.remove(ticket);
            return true;
        }
        let command = Arc::clone(&parked.command);
        let outcome = self.lease_out(&command, now);
        if outcome.as_ref().is_ok_and(Vec::is_empty) {
            // All that is ready is past its deadline, and the tick that says so is near.
            return false;
        }
        let Some(ParkedLease { to, .. }) = self.parking.leases.remove(ticket) else { return false };
        self.put(to, outcome);
        true
    }

    /// Delivers an outcome once everything that it saw is durable.
    pub(crate) fn put<R: Request>(
        &mut self,
        to: Responder<R>,
        outcome: Result<R::Response, Refusal>,
    ) {
        self.put_ready(R::ready(to, outcome));
    }

    pub(crate) fn put_ready(&mut self, ready: Ready) {
        self.commit.put(self.state.last_lsn(), ready);
    }

    pub(crate) fn heartbeat(
        &mut self,
        heartbeat: Heartbeat,
        now: Now,
    ) -> Result<Extended, Refusal> {
        self.soft.saw_holder(&self.state, heartbeat.lease, now);
        let command = Command::Heartbeat(heartbeat);
        let extended = self.run_as(&command, now)?;
        if let Command::Heartbeat(heartbeat) = &command {
            self.soft.heard(heartbeat, &self.state, now);
        }
        Ok(extended)
    }

    pub(crate) fn submit_task(
        &mut self,
        task: NewTask,
        now: Now,
    ) -> Result<SubmittedTask, Refusal> {
        let submit = Command::SubmitTasks(SubmitTasks { tasks: vec![task] });
        let tasks: Vec<Submitted> = self.run_as(&submit, now)?;
        let Submitted { task_id, outcome } = tasks[0];
        Ok(SubmittedTask { outcome, task: self.task(task_id)? })
    }

    /// Changes a task, and shows it after that.
    pub(crate) fn change_task(
        &mut self,
        command: &Command,
        task_id: TaskId,
        now: Now,
    ) -> Result<Box<TaskInfo>, Refusal> {
        self.run(command, now)?;
        self.task(task_id)
    }

    /// Changes a queue, and shows it after that.
    pub(crate) fn change_queue(
        &mut self,
        command: &Command,
        queue: &QueueName,
        now: Now,
    ) -> Result<Option<Box<QueueView>>, Refusal> {
        self.run(command, now)?;
        Ok(self.queue(queue))
    }

    pub(crate) fn queue(&self, queue: &QueueName) -> Option<Box<QueueView>> {
        self.state.queue(queue.as_str()).map(Box::new)
    }

    /// Notes the worker of a batch of reports; one worker sends them all.
    pub(crate) fn saw_reporter(&mut self, report: &ReportTasks, now: Now) {
        let first = report.heartbeats.first().map(|heartbeat| heartbeat.lease);
        if let Some(lease) = first.or_else(|| report.completes.first().map(|c| c.lease)) {
            self.soft.saw_holder(&self.state, lease, now);
        }
    }

    /// Answers readers that waited for the tasks and runs that this event ended.
    fn tell_readers(&mut self, event: &Event<'_>) {
        for awaited in ended(event) {
            while let Some((ticket, _)) = self.parking.readers.first(&awaited) {
                let Some(reader) = self.parking.readers.remove(ticket) else { break };
                self.show_to(reader);
            }
        }
    }

    pub(crate) fn task(&self, task_id: TaskId) -> Result<Box<TaskInfo>, Refusal> {
        match self.state.task(task_id) {
            Some(task) => Ok(Box::new(self.info(&task))),
            None => Err(Rejection::TaskNotFound { task_id }.into()),
        }
    }

    pub(crate) fn explain(&self, task_id: TaskId, now: Now) -> Result<Box<Explained>, Refusal> {
        let Some(task) = self.state.task(task_id) else {
            return Err(Rejection::TaskNotFound { task_id }.into());
        };
        let queue = self.state.queue(task.queue());
        Ok(Box::new(Explained {
            position: self.state.queue_position(task_id),
            halted: self.state.halted(task_id),
            eligibility: queue.map(|queue| queue.eligibility).unwrap_or_default(),
            workers: self.soft.workers.connected_to(task.queue(), now.log),
            task: self.info(&task),
        }))
    }

    /// A task with what only this process knows of it.
    fn info(&self, task: &TaskView<'_>) -> TaskInfo {
        let info = TaskInfo::of(task, self.clock.offset());
        TaskInfo {
            progress: self.soft.progress.of(task),
            phase: self.state.phase(task.id),
            next_attempt_at: info.not_before.filter(|_| self.state.is_delayed(task.id)),
            ..info
        }
    }

    pub(crate) fn status(&mut self, now: Now) -> Status {
        // Requests whose callers are gone do not wait for anything.
        self.parking.sweep(now);
        Status {
            lsn: self.state.last_lsn(),
            released: self.commit.outbox.released(),
            epoch: self.commit.epoch,
            now: now.log,
            wall: now.wall,
            log_time_ahead_ms: now.log_ahead_ms(),
            tasks: self.state.counts(),
            runs: run_counts(&self.state),
            ending_runs: self.state.ending_runs(),
            parked_runs: self.state.parked_runs(),
            workflows: self.state.facts().workflow_count(),
            parked_leases: self.parking.leases.len(),
            parked_readers: self.parking.readers.len(),
            bytes: self.state.bytes(),
            work: self.decider.work,
            kept: self.snapshots.kept.clone(),
        }
    }

    pub(crate) fn tasks(&self, filter: &TaskFilter) -> TaskPage {
        let wanted = Filter {
            queue: filter.queue.as_ref().map(|queue| queue.as_str()),
            state: filter.state,
            name: filter.name.as_ref().map(|name| name.as_str()),
            tag: filter.tag.as_ref().map(|(key, value)| (key.as_str(), value.as_str())),
            worker: filter.worker.as_ref().map(|worker| worker.as_str()),
            run: filter.run,
            code: filter.code.as_deref(),
            retrying: filter.retrying,
        };
        let page = self.state.list(&wanted, filter.before, filter.limit);
        TaskPage { tasks: page.tasks.iter().map(|task| self.info(task)).collect(), next: page.next }
    }

    /// Releases all leases of a worker that leaves. Returns their number.
    pub(crate) fn sign_off(&mut self, worker: &WorkerName, now: Now) -> usize {
        self.soft.workers.sign_off(worker.as_str());
        let (mut before, mut releases) = (None, Vec::<ReleaseTask>::new());
        loop {
            let held = Filter { worker: Some(worker.as_str()), ..Filter::default() };
            let page = self.state.list(&held, before, LIST_ITEMS_MAX);
            releases.extend(
                page.tasks.iter().map(|task| {
                    LeaseRef { task_id: task.id, lease_id: task.last_lease_id() }.into()
                }),
            );
            before = page.next;
            if before.is_none() {
                break;
            }
        }
        let count = releases.len();
        for some in releases.chunks(BATCH_ITEMS_MAX) {
            let report = ReportTasks { releases: some.to_vec(), ..ReportTasks::default() };
            let mut progress = ReportProgress::new(report);
            while progress.has_more() {
                self.report_more(&mut progress, now);
            }
        }
        count
    }

    pub(crate) fn grant(&self, lease: &Leased) -> Grant {
        let task = self.state.task(lease.task_id).expect("a task that was just leased exists");
        Grant {
            task_id: lease.task_id,
            lease_id: lease.lease_id,
            attempt: task.attempt(),
            queue: Arc::clone(task.queue()),
            name: task.name().map(Arc::clone),
            payload: task.shared_payload(),
            tags: task.tags().to_vec(),
            checkpoint: task.checkpoint().map(Arc::clone),
            expires_at: lease.expires_at,
            wall_expires_at: self.clock.offset().shown(lease.expires_at),
            run: TaskOfRun::of(&task),
            traceparent: task.traceparent(),
        }
    }
}

/// A late report is on record, and its worker is told that it was late.
fn accept(reply: Reply) -> Result<Reply, Refusal> {
    if let Reply::LeaseLost(rejection) = reply { Err(rejection.into()) } else { Ok(reply) }
}

/// The run about which an event decides most, by bytes.
fn heaviest_run(event: &Event<'_>) -> Option<RunId> {
    let mut heaviest: Option<(usize, RunId)> = None;
    event.each_cascade(|cascade| {
        let bytes = tenure_core::decision_bytes(cascade);
        if heaviest.is_none_or(|(most, _)| bytes > most) {
            heaviest = cascade.first().map(|decision| (bytes, decision.run_id));
        }
    });
    heaviest.map(|(_, run_id)| run_id)
}

/// What an event ended: its tasks, those that ended with their runs' tokens, and runs.
fn ended(event: &Event<'_>) -> Vec<Awaited> {
    let mut ended: Vec<_> = ended_alone(event).into_iter().map(Awaited::Task).collect();
    event.each_cascade(|cascade| {
        for decision in cascade {
            if let Step::CancelTokens(step) = &decision.step {
                let tasks = step.tasks.iter().flat_map(|tasks| tasks.tasks.iter());
                ended.extend(tasks.map(|task| Awaited::Task(task.task_id)));
            }
            if let Step::FinishRun(_) = &decision.step {
                ended.push(Awaited::Run(decision.run_id));
            }
        }
    });
    ended
}

fn ended_alone(event: &Event<'_>) -> Vec<TaskId> {
    let by_report = |report: &Report<'_>| match report {
        Report::TaskCompleted(item) => Some(item.about.task_id),
        Report::TaskFailed(item) => item.to.is_terminal().then_some(item.about.task_id),
        Report::LeaseReleased(item) => item.to.is_terminal().then_some(item.about.task_id),
        Report::LeaseExtended(_) | Report::StaleReportRejected(_) => None,
    };
    match event {
        Event::CancelRequested(item) => {
            Vec::from_iter(item.to.is_terminal().then_some(item.about.task_id))
        }
        Event::LeaseExpired(event) => {
            let ended = event.leases.iter().filter(|item| item.to.is_terminal());
            ended.map(|item| item.about.task_id).collect()
        }
        Event::ReportsApplied(event) => event.reports.iter().filter_map(by_report).collect(),
        Event::TimerFired(event) => event.deadlines.iter().map(|item| item.about.task_id).collect(),
        Event::TaskCreated(_)
        | Event::LeaseGranted(_)
        | Event::TaskRetried(_)
        | Event::QueueConfigured(_)
        | Event::TasksPurged(_)
        | Event::IdsSkipped(_)
        | Event::WorkflowRegistered(_)
        | Event::RunStarted(_)
        | Event::RunsStarted(_)
        | Event::RunStartedBySignal(_)
        | Event::QueueDeleted(_)
        | Event::WorkflowDeleted(_)
        | Event::SignalReceived(_)
        | Event::RunCancelRequested(_)
        | Event::DispatchContinued(_)
        | Event::EndContinued(_)
        | Event::RunParked(_)
        | Event::RunUnparked(_) => Vec::new(),
    }
}
