//! Writes a long log to try the tools on: tasks that are submitted, leased, heartbeaten and completed, a
//! few of which fail, expire, are canceled or purged.
//!
//! ```sh
//! cargo run --release -p tenure-cli --example long_log -- /tmp/long 10000000
//! time cargo run --release -p tenure-cli -- wal verify --data /tmp/long
//! ```
#![allow(clippy::expect_used, reason = "an example may end where it stands")]

use std::num::NonZeroU32;

use tenure_core::command::{
    CancelTask, Command, CompleteTask, FailTask, LeaseRef, LeaseTasks, Leased, NewTask, Reply,
    Retention, Retry, SubmitTasks,
};
use tenure_core::{Draft, State, Verdict, apply, decide};
use tenure_log::Batch;
use tenure_record::codec;
use tenure_record::event::Record;
use tenure_record::name::{QueueName, Reason, TaskKey, WorkerName};
use tenure_record::terms::Payload;
use tenure_record::time::{Now, Timestamp};
use tenure_wal::disk::real::RealDisk;
use tenure_wal::{Durability, Options, Spares, Wal};

/// Records in one frame.
const FRAME_RECORDS: u64 = 200;
/// Finished tasks beyond this many are purged.
const KEPT_TASKS: u64 = 1_000_000;

fn main() {
    let mut args = std::env::args().skip(1);
    let folder = args.next().expect("the folder comes first");
    let records = args.next().and_then(|text| text.parse().ok()).expect("then how many records");
    std::fs::create_dir_all(&folder).expect("a folder can be made there");
    let disk = RealDisk::open(&folder).expect("the folder is not in use");
    let options = Options { durability: Durability::Os, spares: Spares::Caller, ..Options::new(1) };
    let (wal, _) = Wal::open(&disk, options, None, |_| {}).expect("a new log");
    let mut writer = Writer { wal, state: State::new(0), batch: Batch::default(), held: 0, now: 1 };
    let mut task = 0;
    while writer.state.last_lsn().0 < records {
        writer.live_one(task);
        task += 1;
    }
    writer.write();
    writer.wal.sync().expect("it is synced");
    println!("{} records, state {}", writer.state.last_lsn(), writer.state.facts().hash());
}

struct Writer {
    wal: Wal<RealDisk>,
    state: State,
    batch: Batch,
    held: u64,
    now: u64,
}

impl Writer {
    /// One task's life; what becomes of it depends on its number.
    fn live_one(&mut self, nth: u64) {
        self.now += 1;
        let queue = QueueName::parse(&format!("queue-{}", nth % 16)).expect("a name");
        let payload = Payload::parse("payload", vec![b'1'; 100]).expect("a payload");
        let mut task = NewTask::new(queue.clone(), payload.clone());
        if nth.is_multiple_of(10) {
            task.key = Some(TaskKey::parse(&format!("key-{nth}")).expect("a key"));
        }
        self.play(&Command::SubmitTasks(SubmitTasks { tasks: vec![task] }));
        let Some(lease) = self.lease(queue, nth) else { return };
        match nth % 100 {
            0 => self.now += 30_000,
            1 => {
                let retry = Retry::Never;
                let reason = Reason::keep_end("it broke");
                self.play(&Command::FailTask(FailTask {
                    lease,
                    reason,
                    code: None,
                    retry,
                    checkpoint: None,
                    worker: None,
                }));
            }
            2 => {
                let (task_id, grace_ms) = (lease.task_id, None);
                self.play(&Command::CancelTask(CancelTask { task_id, grace_ms }));
                self.play(&Command::ReleaseTask(lease.into()));
            }
            _ => {
                if nth % 100 < 30 {
                    self.now += 1;
                    self.play(&Command::Heartbeat(lease.into()));
                }
                self.play(&Command::CompleteTask(CompleteTask {
                    lease,
                    output: payload,
                    artifacts: Vec::new(),
                    worker: None,
                }));
            }
        }
        if nth.is_multiple_of(100) {
            self.play(&Command::FireTimers);
        }
        if nth.is_multiple_of(1_000) {
            let retention =
                Retention { age_ms: u64::MAX, tasks_max: KEPT_TASKS, ..Retention::default() };
            self.play(&Command::PurgeTasks(retention));
        }
    }

    fn lease(&mut self, queue: QueueName, nth: u64) -> Option<LeaseRef> {
        let worker = WorkerName::parse(&format!("worker-{}", nth % 100)).expect("a name");
        let (queues, tasks_max) = (vec![queue], NonZeroU32::MIN);
        let ask = Command::LeaseTasks(LeaseTasks { worker, queues, tasks_max, lease_ms: None });
        let Some(Reply::Leased(leases)) = self.play(&ask) else { return None };
        leases.first().map(|Leased { task_id, lease_id, .. }| LeaseRef {
            task_id: *task_id,
            lease_id: *lease_id,
        })
    }

    fn play(&mut self, command: &Command) -> Option<Reply> {
        let now = Now::both(Timestamp(1_700_000_000_000 + self.now));
        self.state.advance(now);
        let verdict = decide(&mut Draft::new(&self.state), command, now, self.now).ok()?;
        let Verdict::Append(event, reply) = verdict else { return None };
        let record =
            Record { lsn: self.state.last_lsn().next(), at: now.log, wall: now.wall, event };
        self.batch.push(|out| codec::encode(&record, out));
        apply(&mut self.state, &record);
        self.held += 1;
        if self.held == FRAME_RECORDS {
            self.write();
        }
        Some(reply)
    }

    fn write(&mut self) {
        let at_ms = 1_700_000_000_000 + self.now;
        self.wal.append(&mut self.batch, at_ms).expect("the log can be written");
        self.batch.clear();
        self.held = 0;
    }
}
