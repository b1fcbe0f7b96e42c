//! A folder with a log in it, and the binary that looks at it.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::num::NonZeroU32;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::Command as Process;
use std::sync::Arc;
use std::time::SystemTime;

use tenure_core::command::{
    Command, CompleteTask, LeaseRef, LeaseTasks, NewTask, ParkRun, RegisterWorkflow, Rest,
    StartRun, SubmitTasks,
};
use tenure_core::state::snapshot::Encoder;
use tenure_core::{Draft, State, Verdict, apply, decide};
use tenure_flow::Definition;
use tenure_log::Batch;
use tenure_log::SnapshotFooter;
use tenure_record::codec;
use tenure_record::event::{Event, Json, Record};
use tenure_record::id::{LeaseId, RunId, TaskId};
use tenure_record::name::{QueueName, WorkerName};
use tenure_record::terms::{Payload, Tags};
use tenure_record::time::{Now, Timestamp};
use tenure_value::Value;
use tenure_wal::disk::read_only::ReadOnlyDisk;
use tenure_wal::disk::real::RealDisk;
use tenure_wal::snapshot::SnapshotWriter;
use tenure_wal::{Beginning, Inspection, Options, Spares, Wal, inspect};

/// Small, so that a story of seven records and a mark goes over more than one segment: the mark
/// has no room in the first one, whose last page is for the word that the log goes on.
pub(crate) const SEGMENT_BYTES: u64 = 8_192 + 4_096 + 88;

/// What came of a call.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs the binary to its end.
pub(crate) fn tenure(args: &[&str]) -> Ran {
    let output = Process::new(env!("CARGO_BIN_EXE_tenure")).args(args).output().unwrap();
    Ran {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A data folder that goes away with its test.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("wal-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }

    pub(crate) fn files(&self) -> Vec<PathBuf> {
        fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().path()).collect()
    }

    /// Every file with its bytes and the time of its last change.
    pub(crate) fn contents(&self) -> BTreeMap<PathBuf, (Vec<u8>, SystemTime)> {
        let of = |path: PathBuf| {
            let changed_at = fs::metadata(&path).unwrap().modified().unwrap();
            (path.clone(), (fs::read(path).unwrap(), changed_at))
        };
        self.files().into_iter().map(of).collect()
    }

    pub(crate) fn open(&self) -> Wal<RealDisk> {
        self.open_with(SEGMENT_BYTES)
    }

    fn open_with(&self, segment_bytes: u64) -> Wal<RealDisk> {
        let disk = RealDisk::open(&self.0).unwrap();
        // Nothing but the caller may change a folder that is compared before and after.
        let options = Options { spares: Spares::Caller, segment_bytes, ..Options::new(7) };
        Wal::open(&disk, options, None, |_| {}).unwrap().0
    }

    /// Adds a record of any bytes.
    pub(crate) fn append(&self, bytes: &[u8]) {
        let mut batch = Batch::default();
        batch.push(|out| out.extend_from_slice(bytes));
        let mut wal = self.open();
        wal.append(&mut batch, 0).unwrap();
        wal.sync().unwrap();
    }

    /// The frame that was written last.
    pub(crate) fn last_frame(&self) -> Place {
        *self.inspected().1.last().unwrap()
    }

    fn inspected(&self) -> (Inspection, Vec<Place>) {
        let mut frames = Vec::new();
        let disk = ReadOnlyDisk::open(self.path()).unwrap();
        let inspection = inspect(&disk, Beginning::First, |at| {
            frames.push(Place { segment: at.segment.header.number, offset: at.offset });
        });
        (inspection.unwrap(), frames)
    }

    pub(crate) fn write(&self, segment: u64, offset: u64, bytes: &[u8]) {
        let path = self.0.join(format!("segment-{segment:016x}.wal"));
        let file = OpenOptions::new().write(true).open(path).unwrap();
        file.write_all_at(bytes, offset).unwrap();
    }

    pub(crate) fn flip_byte(&self, segment: u64, offset: u64) {
        let path = self.0.join(format!("segment-{segment:016x}.wal"));
        let byte = fs::read(path).unwrap()[offset as usize];
        self.write(segment, offset, &[byte ^ 1]);
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A place in a segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) segment: u64,
    pub(crate) offset: u64,
}

/// What a story left on the disk.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) record_bytes: u64,
    pub(crate) state_hash: String,
    pub(crate) frames: Vec<Place>,
    /// Where the next frame would go.
    pub(crate) end: Place,
}

/// Commands on their way into the log, each as a frame of its own.
pub(crate) struct Story {
    state: State,
    clock_ms: u64,
    wal: Wal<RealDisk>,
    record_bytes: u64,
    /// What is written instead of the source of a workflow.
    source: Option<Value>,
}

impl Story {
    fn begin(wal: Wal<RealDisk>) -> Self {
        Self {
            state: State::new(0),
            clock_ms: 1_000_000_000_000,
            wal,
            record_bytes: 0,
            source: None,
        }
    }

    /// A task is submitted with another one, its worker dies, a second one does it. Seven records,
    /// and a mark at the end.
    pub(crate) fn lifecycle(folder: &Folder) -> Written {
        let mut story = Self::begin(folder.open());
        let first = LeaseRef { task_id: TaskId(1), lease_id: LeaseId(1) };
        let second = LeaseRef { task_id: TaskId(1), lease_id: LeaseId(2) };
        let sent = Payload::parse("output", b"\"sent\"".to_vec()).unwrap();
        story.submit(&[br#"{"to": "ada@example.org", "cc": [1.50]}"#, &[0xff, 0, 0xfe]]);
        story.lease("anna");
        story.clock_ms += 20_000;
        story.play(&Command::Heartbeat(first.into()));
        story.clock_ms += 30_000;
        story.play(&Command::FireTimers);
        story.lease("ben");
        story.play(&Command::CompleteTask(CompleteTask {
            lease: first,
            output: sent.clone(),
            artifacts: Vec::new(),
            worker: None,
        }));
        story.play(&Command::CompleteTask(CompleteTask {
            lease: second,
            output: sent,
            artifacts: Vec::new(),
            worker: None,
        }));
        story.wal.mark(story.clock_ms).unwrap();
        story.end(folder)
    }

    /// Eighty submits, snapshots after the thirtieth and the sixtieth, and nothing kept that they do
    /// not need.
    pub(crate) fn trimmed(folder: &Folder) -> Written {
        let mut story = Self::begin(folder.open());
        for n in 1..=80 {
            story.submit(&[format!("\"{n:0200}\"").as_bytes()]);
            if n == 30 || n == 60 {
                story.snapshot_into(folder, n);
            }
        }
        story.wal.trim(tenure_log::Lsn(31)).unwrap();
        let state_hash = story.state.facts().hash().to_string();
        let end = Place { segment: 0, offset: 0 };
        Written { record_bytes: story.record_bytes, state_hash, frames: Vec::new(), end }
    }

    /// A run with two tasks, the first of them leased, a signal to wait for and a child run; then the
    /// run is parked. A step that does not fit 8 MiB is what parks a run otherwise.
    pub(crate) fn parked(folder: &Folder, workflows: &[&str]) {
        let mut story = Self::begin(folder.open_with(1 << 20));
        // Close to the present, so that leases of the story still hold when a server goes on with it.
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        story.clock_ms = now.as_millis() as u64;
        for workflow in workflows {
            let definition = Definition::compile(&tenure_flow::yaml::parse(workflow).unwrap());
            let definition = Arc::new(definition.unwrap());
            story.play(&Command::RegisterWorkflow(RegisterWorkflow { definition }));
        }
        story.play(&Command::StartRun(StartRun {
            workflow: "held".into(),
            version: None,
            input: Value::from_json(b"{}").unwrap(),
            key: None,
            tags: Tags::default(),
        }));
        story.lease("anna");
        let reason = "what comes next does not fit one record".to_owned();
        story.play(&Command::ParkRun(ParkRun { run_id: RunId(1), reason }));
        story.wal.mark(story.clock_ms).unwrap();
    }

    /// A run with a leased task, of a workflow that no release from now on compiles: its source in the
    /// log is another than the one that was taken.
    pub(crate) fn broken(folder: &Folder, workflow: &str, taken: &str, written: &str) {
        let mut story = Self::begin(folder.open_with(1 << 20));
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        story.clock_ms = now.as_millis() as u64;
        let definition = Definition::compile(&tenure_flow::yaml::parse(workflow).unwrap());
        let definition = Arc::new(definition.unwrap());
        let source = definition.source.to_json().replace(taken, written);
        story.source = Some(Value::from_json(source.as_bytes()).unwrap());
        story.play(&Command::RegisterWorkflow(RegisterWorkflow {
            definition: Arc::clone(&definition),
        }));
        story.play(&Command::StartRun(StartRun {
            workflow: Arc::clone(&definition.name),
            version: None,
            input: Value::empty_map(),
            key: None,
            tags: Tags::default(),
        }));
        story.lease("anna");
        story.wal.mark(story.clock_ms).unwrap();
    }

    /// Another log with as many records, which say something else.
    pub(crate) fn elsewhere() -> Self {
        let folder = Folder::new("elsewhere");
        let mut story = Self::begin(folder.open());
        (1..=60).for_each(|_| story.submit(&[b"null"]));
        story
    }

    /// Writes the state as a snapshot of a record.
    pub(crate) fn snapshot_into(&mut self, folder: &Folder, lsn: u64) {
        let facts = self.state.facts();
        let disk = RealDisk::open(folder.path()).unwrap();
        let mut writer = SnapshotWriter::create(&disk, 7, tenure_log::Lsn(lsn)).unwrap();
        let mut encoder = Encoder::new(facts.clone());
        let mut bytes = Vec::new();
        while encoder.next_block(&mut bytes).unwrap() == Rest::More {}
        writer.write(&bytes).unwrap();
        let (lsn, chain) = (tenure_log::Lsn(lsn), self.wal.chain());
        let (state_hash, items) = (facts.hash().0, facts.task_count());
        writer.finish(&SnapshotFooter { lsn, chain, state_hash, items }).unwrap();
    }

    /// More than a pipe can hold.
    pub(crate) fn flood(folder: &Folder) {
        let mut story = Self::begin(folder.open_with(1 << 20));
        let payload = format!("\"{}\"", "x".repeat(1_000));
        for _ in 0..500 {
            story.submit(&[payload.as_bytes()]);
        }
    }

    fn submit(&mut self, payloads: &[&[u8]]) {
        let task = |bytes: &&[u8]| {
            let payload = Payload::parse("payload", bytes.to_vec()).unwrap();
            NewTask::new(QueueName::parse("mail").unwrap(), payload)
        };
        let tasks = payloads.iter().map(task).collect();
        self.play(&Command::SubmitTasks(SubmitTasks { tasks }));
    }

    fn lease(&mut self, worker: &str) {
        self.play(&Command::LeaseTasks(LeaseTasks {
            worker: WorkerName::parse(worker).unwrap(),
            queues: vec![QueueName::parse("mail").unwrap()],
            tasks_max: NonZeroU32::MIN,
            lease_ms: None,
        }));
    }

    fn play(&mut self, command: &Command) {
        let now = Now::both(Timestamp(self.clock_ms));
        let verdict = decide(&mut Draft::new(&self.state), command, now, 0);
        let Ok(Verdict::Append(event, _)) = verdict else {
            unreachable!("every command of a story is written: {command:?}")
        };
        let record =
            Record { lsn: self.state.last_lsn().next(), at: now.log, wall: now.wall, event };
        let mut written = record.clone();
        if let (Event::WorkflowRegistered(item), Some(source)) = (&mut written.event, &self.source)
        {
            item.definition = Json(source.clone());
        }
        let mut batch = Batch::default();
        batch.push(|out| {
            let before = out.len();
            codec::encode(&written, out);
            self.record_bytes += (out.len() - before) as u64;
        });
        apply(&mut self.state, &record);
        self.wal.append(&mut batch, self.clock_ms).unwrap();
        self.wal.sync().unwrap();
    }

    fn end(self, folder: &Folder) -> Written {
        let (inspection, frames) = folder.inspected();
        let last = inspection.segments.last().unwrap();
        let end = Place { segment: last.header.number, offset: last.used_bytes };
        let state_hash = self.state.facts().hash().to_string();
        Written { record_bytes: self.record_bytes, state_hash, frames, end }
    }
}
