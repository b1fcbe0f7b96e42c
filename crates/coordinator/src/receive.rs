//! The writer's dispatch: each request is decided, read from the state, or parked.

use tenure_core::command::Command;
use tenure_log::Log;
use tenure_record::time::Now;

use crate::refusal::Refusal;
use crate::report::UnfinishedReport;
use crate::request::{Envelope, Request, RequestClass, Responder};
use crate::step::Coordinator;

impl<L: Log> Coordinator<L> {
    /// Serves a request.
    pub(crate) fn receive(&mut self, envelope: Envelope, now: Now) {
        self.decider.work.requests += 1;
        if envelope.class() == RequestClass::Submit
            && let Err(refusal) = self.admit_new_work()
        {
            return self.put_ready(envelope.refuse(refusal));
        }
        self.dispatch(envelope, now);
    }

    /// Whether the disk and the memory budget have room for new work.
    fn admit_new_work(&mut self) -> Result<(), Refusal> {
        // Requests before this one in the step have made the state larger.
        self.count_memory();
        self.housekeeping.admit_new_work()
    }

    fn dispatch(&mut self, envelope: Envelope, now: Now) {
        use Envelope as E;
        match envelope {
            E::SubmitTask(it, to) => self.reply(to, |c| c.submit_task(it.0, now)),
            E::SubmitTasks(it, to) => self.reply(to, |c| c.run_as(&Command::SubmitTasks(it), now)),
            E::Lease(it, to) => self.lease(it, to, now),
            E::Heartbeat(it, to) => self.reply(to, |c| c.heartbeat(it, now)),
            E::CompleteTask(it, to) => {
                let task_id = it.lease.task_id;
                self.reply(to, |c| c.change_task(&Command::CompleteTask(it), task_id, now));
            }
            E::FailTask(it, to) => {
                let task_id = it.lease.task_id;
                self.reply(to, |c| c.change_task(&Command::FailTask(it), task_id, now));
            }
            E::ReleaseTask(it, to) => {
                let task_id = it.lease.task_id;
                self.reply(to, |c| c.change_task(&Command::ReleaseTask(it), task_id, now));
            }
            E::ReportTasks(it, to) => {
                self.saw_reporter(&it, now);
                self.report(UnfinishedReport::new(it, to), now);
            }
            E::DropLeases(it, to) => self.reply(to, |c| c.run_as(&Command::DropLeases(it.0), now)),
            E::SignOff(it, to) => self.reply(to, |c| Ok(c.sign_off(&it.0, now))),
            E::CancelTask(it, to) => {
                self.reply(to, |c| c.change_task(&Command::CancelTask(it), it.task_id, now));
            }
            E::RetryTask(it, to) => {
                self.reply(to, |c| c.change_task(&Command::RetryTask(it.0), it.0, now));
            }
            E::GetTask(it, to) => self.wait_for_task(it, to, now),
            E::ExplainTask(it, to) => self.reply(to, |c| c.explain(it.0, now)),
            E::ListTasks(it, to) => self.reply(to, |c| Ok(c.tasks(&it.0))),
            E::GetQueue(it, to) => self.reply(to, |c| Ok(c.queue(&it.0))),
            E::ListQueues(it, to) => self.reply(to, |c| Ok(c.queues(&it.0))),
            E::PauseQueue(it, to) => {
                let queue = it.queue.clone();
                self.reply(to, |c| c.change_queue(&Command::PauseQueue(it), &queue, now));
            }
            E::ResumeQueue(it, to) => {
                let queue = it.0.clone();
                self.reply(to, |c| c.change_queue(&Command::ResumeQueue(it.0), &queue, now));
            }
            E::ConfigureQueue(it, to) => {
                let queue = it.queue.clone();
                self.reply(to, |c| c.change_queue(&Command::ConfigureQueue(it), &queue, now));
            }
            E::DeleteQueue(it, to) => {
                self.reply(to, |c| c.run(&Command::DeleteQueue(it.0), now).map(drop));
            }
            E::RegisterWorker(it, to) => {
                self.soft.workers.register(it.0, now.log);
                self.put(to, Ok(()));
            }
            E::ListWorkers(it, to) => self.reply(to, |c| Ok(c.worker_page(&it.0, now))),
            E::RegisterWorkflow(it, to) => {
                self.reply(to, |c| c.run_as(&Command::RegisterWorkflow(it), now));
            }
            E::DeleteWorkflow(it, to) => {
                self.reply(to, |c| c.run(&Command::DeleteWorkflow(it), now).map(drop));
            }
            E::GetWorkflow(it, to) => self.reply(to, |c| c.workflow(it)),
            E::ListWorkflows(it, to) => self.reply(to, |c| Ok(c.workflows(&it.0))),
            E::StartRun(it, to) => self.reply(to, |c| c.start_run(it, now)),
            E::StartRuns(it, to) => self.reply(to, |c| c.run_as(&Command::StartRuns(it), now)),
            E::CancelRun(it, to) => {
                self.reply(to, |c| c.change_run(&Command::CancelRun(it.0), it.0, now));
            }
            E::UnparkRun(it, to) => {
                self.reply(to, |c| c.change_run(&Command::UnparkRun(it.0), it.0, now));
            }
            E::SignalRun(it, to) => self.reply(to, |c| c.run_as(&Command::SignalRun(it), now)),
            E::SignalByKey(it, to) => {
                self.reply(to, |c| c.run_as(&Command::SignalByKey(it), now));
            }
            E::GetRun(it, to) => self.wait_for_run(it, to, now),
            E::FindRun(it, to) => self.reply(to, |c| c.find_run(it)),
            E::ListRuns(it, to) => self.reply(to, |c| Ok(c.runs(&it.0))),
            E::ListTokens(it, to) => self.reply(to, |c| c.tokens(it)),
            E::ListArtifacts(it, to) => self.reply(to, |c| c.artifacts(it.0)),
            E::ListDue(_, to) => self.reply(to, |c| Ok(Box::new(c.due(now)))),
            E::ListRunTasks(it, to) => self.reply(to, |c| c.run_tasks(it)),
            E::PurgeArchived(it, to) => self.reply(to, |c| c.purge_archived(it.0, now)),
            E::GetStatus(_, to) => self.reply(to, |c| Ok(Box::new(c.status(now)))),
            E::GetFacts(_, to) => self.reply(to, |c| Ok(Box::new(c.state.facts().clone()))),
            E::TakeSnapshot(_, to) => self.take_snapshot(to),
            E::Maintain(it, to) => self.reply(to, |c| c.run(&it.0, now).map(drop)),
        }
    }

    /// Serves a request whose outcome is known at once.
    fn reply<R: Request>(
        &mut self,
        to: Responder<R>,
        serve: impl FnOnce(&mut Self) -> Result<R::Response, Refusal>,
    ) {
        let outcome = serve(self);
        self.put(to, outcome);
    }
}
