//! A story told by the rules alone: a task is submitted, its worker dies, another one does it.
//! Prints each record as it would be written to the log.

use tenure_core::command::{Command, CompleteTask, LeaseRef, LeaseTasks, NewTask, SubmitTasks};
use tenure_core::{Draft, State, Verdict, apply, decide, invariant};
use tenure_record::codec;
use tenure_record::event::Record;
use tenure_record::id::{LeaseId, TaskId};
use tenure_record::name::{QueueName, WorkerName};
use tenure_record::terms::Payload;
use tenure_record::time::{Now, Timestamp};
use tenure_record::transition::transitions;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut story = Story { state: State::new(0), clock_ms: 1_000, bytes: 0 };
    let mail = QueueName::parse("mail")?;
    let lease = |worker: &str| -> Result<Command, Box<dyn std::error::Error>> {
        let worker = WorkerName::parse(worker)?;
        let queues = vec![mail.clone()];
        let tasks_max = std::num::NonZeroU32::MIN;
        Ok(Command::LeaseTasks(LeaseTasks { worker, queues, tasks_max, lease_ms: None }))
    };
    let first = LeaseRef { task_id: TaskId(1), lease_id: LeaseId(1) };
    let second = LeaseRef { task_id: TaskId(1), lease_id: LeaseId(2) };
    let sent = Payload::parse("output", b"\"sent\"".to_vec())?;

    story.tell("A client submits a task.");
    let payload = Payload::parse("payload", br#"{"to":"ada@example.org"}"#.to_vec())?;
    let tasks = vec![NewTask::new(mail.clone(), payload)];
    story.play(&Command::SubmitTasks(SubmitTasks { tasks }));

    story.tell("Worker anna gets it, and says once that it is still at it.");
    story.play(&lease("anna")?);
    story.wait_ms(20_000);
    story.play(&Command::Heartbeat(first.into()));

    story.tell("Then anna falls silent. Time takes the task back.");
    story.wait_ms(30_000);
    story.play(&Command::FireTimers);

    story.tell("Worker ben gets it, while anna wakes up and reports. She is too late.");
    story.play(&lease("ben")?);
    story.play(&Command::CompleteTask(CompleteTask {
        lease: first,
        output: sent.clone(),
        artifacts: Vec::new(),
        worker: None,
    }));

    story.tell("Ben does it. His answer gets lost, so he says it again, and hears the same.");
    let done = Command::CompleteTask(CompleteTask {
        lease: second,
        output: sent,
        artifacts: Vec::new(),
        worker: None,
    });
    story.play(&done);
    story.play(&done);

    invariant::check(&story.state)?;
    println!(
        "\n{} bytes of log. Every law holds. State hash {}",
        story.bytes,
        story.state.facts().hash()
    );
    Ok(())
}

struct Story {
    state: State,
    clock_ms: u64,
    bytes: usize,
}

impl Story {
    fn tell(&self, sentence: &str) {
        println!("\n{sentence}");
    }

    fn wait_ms(&mut self, ms: u64) {
        self.clock_ms += ms;
    }

    /// The path of every request: decide, append, apply, answer.
    fn play(&mut self, command: &Command) {
        let now = Now::both(Timestamp(self.clock_ms));
        match decide(&mut Draft::new(&self.state), command, now, 0) {
            Ok(Verdict::Append(event, reply)) => {
                let record = Record {
                    lsn: self.state.last_lsn().next(),
                    at: now.log,
                    wall: now.wall,
                    event,
                };
                let mut frame = Vec::new();
                codec::encode(&record, &mut frame);
                apply(&mut self.state, &record);
                self.bytes += frame.len();
                let (lsn, name) = (record.lsn, record.event.name());
                println!("  record {lsn} at {:?}: {name}, {} bytes", record.at, frame.len());
                for step in transitions(&record) {
                    let from = step.from.map_or("-", |state| state.as_str());
                    let worker = step.worker.unwrap_or("-");
                    println!(
                        "    task {}: {from} -> {} ({worker}, attempt {})",
                        step.task_id, step.to, step.attempt
                    );
                }
                println!("    answer: {reply:?}");
            }
            Ok(Verdict::Answer(reply)) => println!("  nothing to write; answer: {reply:?}"),
            Err(refusal) => println!("  refused with {}: {refusal}", refusal.code()),
        }
    }
}
