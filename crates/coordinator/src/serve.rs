//! One request: decided, or answered from the state, or parked until there is something to say.

use std::sync::Arc;

use tenure_core::command::{
    Command, LeaseRef, Leased, NewTask, ReleaseTask, Reply, ReportTasks, SubmitTasks, Submitted,
};
use tenure_core::limits::{BATCH_ITEMS_MAX, LIST_ITEMS_MAX};
use tenure_core::state::{Filter, TaskView};
use tenure_core::{Draft, Rejection, Verdict, apply_decided, decide};
use tenure_log::{Log, Room};
use tenure_record::codec;
use tenure_record::event::{Event, Record, Report, Step};
use tenure_record::id::{RunId, TaskId};
use tenure_record::name::WorkerName;
use tenure_record::time::Now;

use crate::ask::{Answer, Ask, Caller, Kind, Outcome, Query, Refusal, Request};
use crate::filter::TaskFilter;
use crate::info::{Explained, Grant, Status, TaskInfo, TaskOfRun, TaskPage};
use crate::limits::STEP_GRANTS_MAX;
use crate::parking::{Awaited, ParkedLease, ParkedReader};
use crate::planted::{self, Bug};
use crate::report::{ReportProgress, UnfinishedReport};
use crate::run_info::run_counts;
use crate::step::Coordinator;

impl<L: Log, C: Caller> Coordinator<L, C> {
    /// Deals with a request.
    pub(crate) fn receive(&mut self, request: Request<C>, now: Now) {
        self.work.requests += 1;
        let Request { ask, caller } = request;
        if self.room == Room::Low && ask.kind() == Kind::Submit {
            return self.put(caller, Err(Refusal::DiskFull));
        }
        if ask.kind() == Kind::Submit {
            // Those before it in this step have made the state larger.
            self.count_memory();
            if self.memory.is_full() {
                return self.put(caller, Err(Refusal::memory_full(&self.memory)));
            }
        }
        let outcome = match ask {
            Ask::Submit(task) => self.submit_one(task, now),
            Ask::Change { command, task_id } => {
                let changed = self.command(&command, now);
                changed.and_then(|_| self.task(task_id))
            }
            Ask::StartRun(start) => self.start_run(start, now),
            Ask::ChangeRun { command, run_id } => {
                let changed = self.command(&command, now);
                changed.and_then(|_| self.run_info(run_id))
            }
            Ask::Lease { request, wait_ms } => return self.lease(request, wait_ms, caller, now),
            // The same without a wait: whoever is gone gets nothing here either.
            Ask::Command(Command::LeaseTasks(request)) => {
                return self.lease(request, 0, caller, now);
            }
            Ask::Command(Command::ReportTasks(report)) => {
                // One worker sends them all.
                let first = report.heartbeats.first().map(|heartbeat| heartbeat.lease);
                if let Some(lease) = first.or_else(|| report.completes.first().map(|c| c.lease)) {
                    self.saw_holder(lease, now);
                }
                return self.report(UnfinishedReport::new(report, caller), now);
            }
            Ask::Command(command) => self.command(&command, now),
            Ask::Query(Query::TaskEnd { task_id, wait_ms }) => {
                return self.wait_for_end(Awaited::Task(task_id), wait_ms, caller, now);
            }
            Ask::Query(Query::RunEnd { run_id, wait_ms }) => {
                return self.wait_for_end(Awaited::Run(run_id), wait_ms, caller, now);
            }
            Ask::Query(query) => self.query(&query, now),
            Ask::Register(registration) => {
                self.workers.register(registration, now.log);
                Ok(Answer::Registered)
            }
            Ask::SignOff(worker) => self.sign_off(&worker, now),
            Ask::TakeSnapshot => return self.ask_for_snapshot(caller),
        };
        self.put(caller, outcome);
    }

    /// Decides a command, writes and applies what comes of it.
    pub(crate) fn run(&mut self, command: &Command, now: Now) -> Outcome {
        let seed = self.draw();
        let (verdict, work, precomputed);
        {
            let mut draft = Draft::new(&self.state);
            verdict = decide(&mut draft, command, now, seed);
            work = draft.work();
            precomputed = draft.take_precomputed();
        }
        self.step_work += work;
        self.work.heaviest = self.work.heaviest.max(work);
        match verdict? {
            Verdict::Answer(reply) => self.answer(reply),
            Verdict::Append(event, reply) => {
                let record = Record {
                    lsn: self.state.last_lsn().next(),
                    at: now.log,
                    wall: now.wall,
                    event,
                };
                let encode = |out: &mut Vec<u8>| codec::encode(&planted::written(&record), out);
                // Measured before it is applied: a record that is too long never happened.
                if let Err(bytes) = self.batch.push_within(self.record_bytes_max, encode) {
                    self.work.oversized += 1;
                    self.oversized = heaviest_run(&record.event).map(|run_id| (run_id, bytes));
                    return Err(Rejection::RecordTooLarge { bytes }.into());
                }
                apply_decided(&mut self.state, &record, &precomputed);
                if !self.readers.is_empty() {
                    self.tell_readers(&record.event);
                }
                self.answer(reply)
            }
        }
    }

    /// Serves parked workers from the queues in which something became ready, in the order in
    /// which they came.
    pub(crate) fn serve_woken(&mut self, now: Now) {
        while let Some(queue) = self.state.next_woken() {
            // Whoever parks later than this looks at the queue itself first.
            if self.parked.first(&queue).is_some() {
                self.woken.push(queue);
            }
        }
        let mut budget = STEP_GRANTS_MAX;
        while let Some(queue) = self.woken.last().map(Arc::clone) {
            if budget == 0 || !self.has_room() {
                return;
            }
            budget -= 1;
            let more = self.state.has_ready(&queue) && self.serve_first(&queue, now);
            if !more {
                self.woken.pop();
            }
        }
    }

    /// Serves the worker that has waited longest for this queue. False if there is none, or if
    /// it gets nothing.
    fn serve_first(&mut self, queue: &Arc<str>, now: Now) -> bool {
        let Some((ticket, parked)) = self.parked.first(queue) else { return false };
        if parked.caller.is_gone() && !planted::has(Bug::GrantedToTheGone) {
            self.parked.remove(ticket);
            return true;
        }
        let command = Arc::clone(&parked.command);
        let outcome = self.lease_out(&command, now);
        if matches!(&outcome, Ok(Answer::Leased(grants)) if grants.is_empty()) {
            // All that is ready is past its deadline, and the tick that says so is near.
            return false;
        }
        let Some(ParkedLease { caller, .. }) = self.parked.remove(ticket) else { return false };
        self.put(caller, outcome);
        true
    }

    /// Tells an outcome once everything that it saw is durable.
    pub(crate) fn put(&mut self, caller: C, outcome: Outcome) {
        self.outbox.put(self.state.last_lsn(), caller, outcome, &mut self.lost);
    }

    fn command(&mut self, command: &Command, now: Now) -> Outcome {
        match command {
            Command::Heartbeat(heartbeat) => {
                self.saw_holder(heartbeat.lease, now);
                let outcome = self.run(command, now);
                if outcome.is_ok() {
                    self.progress.heard(heartbeat, now.wall, &self.state);
                }
                return outcome;
            }
            Command::PurgeArchived(archived) => return self.purge_archived(archived, now),
            Command::SubmitTasks(_)
            | Command::LeaseTasks(_)
            | Command::CompleteTask(_)
            | Command::FailTask(_)
            | Command::ReleaseTask(_)
            | Command::ReportTasks(_)
            | Command::CancelTask(_)
            | Command::RetryTask(_)
            | Command::ExpireLeases
            | Command::DropLeases(_)
            | Command::FireDeadlines
            | Command::PauseQueue(_)
            | Command::ResumeQueue(_)
            | Command::ConfigureQueue(_)
            | Command::DeleteQueue(_)
            | Command::PurgeTasks(_)
            | Command::RegisterWorkflow(_)
            | Command::DeleteWorkflow(_)
            | Command::StartRun(_)
            | Command::StartRuns(_)
            | Command::CancelRun(_)
            | Command::SignalRun(_)
            | Command::SignalByKey(_)
            | Command::ContinueDispatch
            | Command::ContinueEnding { .. }
            | Command::ParkRun(_)
            | Command::UnparkRun(_)
            | Command::SkipIds(_) => {}
        }
        self.run(command, now)
    }

    fn submit_one(&mut self, task: NewTask, now: Now) -> Outcome {
        let submit = Command::SubmitTasks(SubmitTasks { tasks: vec![task] });
        let Answer::Submitted(tasks) = self.run(&submit, now)? else {
            unreachable!("a submit is answered so")
        };
        let Submitted { task_id, outcome } = tasks[0];
        let task = self.state.task(task_id).expect("a task that was just submitted exists");
        Ok(Answer::Taken(outcome, Box::new(self.info(&task))))
    }

    fn saw_holder(&mut self, lease: LeaseRef, now: Now) {
        let held = self.state.task(lease.task_id).and_then(|task| task.lease());
        if let Some(held) = held.filter(|held| held.lease_id == lease.lease_id) {
            self.workers.saw(&held.worker, now.log);
        }
    }

    /// What a reader waits for, as it is.
    pub(crate) fn look_at(&self, awaited: Awaited) -> Outcome {
        match awaited {
            Awaited::Task(task_id) => self.task(task_id),
            Awaited::Run(run_id) => self.run_info(run_id),
        }
    }

    /// Tells those who waited for the tasks and runs that this event ended.
    fn tell_readers(&mut self, event: &Event<'_>) {
        for awaited in ended(event) {
            while let Some((ticket, _)) = self.readers.first(&awaited) {
                let Some(ParkedReader { caller, .. }) = self.readers.remove(ticket) else { break };
                let outcome = self.look_at(awaited);
                self.put(caller, outcome);
            }
        }
    }

    fn query(&mut self, query: &Query, now: Now) -> Outcome {
        Ok(match query {
            Query::Task(task_id) | Query::TaskEnd { task_id, .. } => return self.task(*task_id),
            Query::Explain(task_id) => return self.explain(*task_id, now),
            Query::Tasks(filter) => Answer::Tasks(self.tasks(filter)),
            Query::Run(run_id) | Query::RunEnd { run_id, .. } => return self.run_info(*run_id),
            Query::Runs(filter) => Answer::Runs(self.runs(filter)),
            Query::Tokens { run_id, after, limit } => return self.tokens(*run_id, *after, *limit),
            Query::Artifacts(run_id) => return self.artifacts(*run_id),
            Query::Workflow { name, version } => return self.workflow(name, *version),
            Query::Workflows { after, limit } => {
                Answer::Workflows(self.workflows(after.as_ref(), *limit))
            }
            Query::Queue(name) => Answer::Queue(self.state.queue(name.as_str()).map(Box::new)),
            Query::Queues(range) => Answer::Queues(self.queues(range)),
            Query::Workers(range) => Answer::Workers(self.worker_page(range, now)),
            Query::RunWithKey { workflow, key } => return self.run_with_key(workflow, key),
            Query::Status => Answer::Status(Box::new(self.status(now))),
            Query::Facts => Answer::Facts(Box::new(self.state.facts().clone())),
            Query::Due => Answer::Due(Box::new(self.due(now))),
            Query::RunTasks { run_id, after, limit } => {
                return self.run_tasks(*run_id, *after, *limit);
            }
        })
    }

    pub(crate) fn task(&self, task_id: TaskId) -> Outcome {
        match self.state.task(task_id) {
            Some(task) => Ok(Answer::Task(Box::new(self.info(&task)))),
            None => Err(Rejection::TaskNotFound { task_id }.into()),
        }
    }

    fn explain(&self, task_id: TaskId, now: Now) -> Outcome {
        let Some(task) = self.state.task(task_id) else {
            return Err(Rejection::TaskNotFound { task_id }.into());
        };
        let queue = self.state.queue(task.queue());
        Ok(Answer::Explained(Box::new(Explained {
            place: self.state.place(task_id),
            halted: self.state.halted(task_id),
            is_paused: queue.as_ref().is_some_and(|queue| queue.is_paused),
            opens_at: queue.and_then(|queue| queue.opens_at()),
            workers: self.workers.connected_to(task.queue(), now.log),
            task: self.info(&task),
        })))
    }

    /// A task with what only this process knows of it.
    fn info(&self, task: &TaskView<'_>) -> TaskInfo {
        let info = TaskInfo::of(task, self.clock.offset());
        TaskInfo {
            progress: self.progress.of(task),
            phase: self.state.phase(task.id),
            next_attempt_at: info.not_before.filter(|_| self.state.is_delayed(task.id)),
            ..info
        }
    }

    fn status(&mut self, now: Now) -> Status {
        // Requests whose callers are gone do not wait for anything.
        self.parked.sweep(now.log, |parked| parked.caller.is_gone());
        self.readers.sweep(now.log, |reader| reader.caller.is_gone());
        Status {
            lsn: self.state.last_lsn(),
            released: self.outbox.released(),
            epoch: self.epoch,
            now: now.log,
            wall: now.wall,
            log_time_ahead_ms: now.log_ahead_ms(),
            tasks: self.state.counts(),
            runs: run_counts(&self.state),
            ending_runs: self.state.ending_runs(),
            parked_runs: self.state.parked_runs(),
            workflows: self.state.facts().workflow_count(),
            parked_leases: self.parked.len(),
            parked_readers: self.readers.len(),
            bytes: self.state.bytes(),
            work: self.work,
            kept: self.snapshots.kept.clone(),
        }
    }

    fn tasks(&self, filter: &TaskFilter) -> TaskPage {
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

    /// Gives back all leases of a worker who leaves.
    fn sign_off(&mut self, worker: &WorkerName, now: Now) -> Outcome {
        self.workers.sign_off(worker.as_str());
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
        Ok(Answer::SignedOff(count))
    }

    fn answer(&self, reply: Reply) -> Outcome {
        Ok(match reply {
            Reply::Submitted(tasks) => Answer::Submitted(tasks),
            Reply::Leased(leases) => {
                Answer::Leased(leases.iter().map(|lease| self.grant(lease)).collect())
            }
            Reply::Extended(extended) => Answer::Extended(extended),
            Reply::Task(task_id, state) => Answer::State(task_id, state),
            Reply::LeaseLost(rejection) => return Err(rejection.into()),
            Reply::Reported { reports, .. } => Answer::Reported(reports),
            Reply::Swept(swept) => Answer::Swept(swept),
            Reply::Queue(settings) => Answer::Settings(settings),
            Reply::Skipped(next) => Answer::Skipped(next),
            Reply::Registered(registered) => Answer::WorkflowVersion(registered),
            Reply::Started(started) => Answer::Started(started),
            Reply::Run(run_id, state) => Answer::RunState(run_id, state),
            Reply::Signaled(signaled) => Answer::Signaled(signaled),
            Reply::StartedMany(started) => Answer::StartedMany(started),
            Reply::Deleted => Answer::Deleted,
            Reply::SignaledByKey { run_id, outcome, signaled } => {
                Answer::SignaledByKey(run_id, outcome, signaled)
            }
        })
    }

    fn grant(&self, lease: &Leased) -> Grant {
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
