//! Lines about what happened, for people who read logs: one for each transition, each result that
//! came too late and each refusal. One thread writes them, from what is durable and within a
//! budget; what is beyond it is counted, not kept. So a busy server pays nothing for them.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::task::{Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use tenure_code::Code;
use tenure_coordinator::{Followed, Follower, ReadLog, Refusal};
use tenure_core::Rejection;
use tenure_record::event::{Record, RunState};
use tenure_record::id::{Lsn, TaskId};
use tenure_record::progress::Progress;
use tenure_record::state::TaskState;
use tenure_record::transition::{RunTransition, Told, Transition};

use crate::fetch::Shows;
use crate::limits::{LOG_LINES_PER_S, LOG_LINES_WAITING_MAX};
use crate::show::time;

/// Which lines are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lines {
    /// One for each transition, late result and refusal, within the budget.
    #[default]
    Transitions,
    /// Only what the server has to say about itself.
    Quiet,
}

/// After it was woken it sleeps on for so long, so that a busy log does not wake it all the time.
const NAP: Duration = Duration::from_millis(20);
const SECOND: Duration = Duration::from_secs(1);
/// Letters of a worker's message that are written.
const TEXT_CHARS_MAX: usize = 200;
/// The lines that are left when the server stops get so long.
const LAST_LINES_TIMEOUT: Duration = Duration::from_secs(2);

/// The one who writes lines, as the doors know it. Telling it something never waits.
#[derive(Debug, Default)]
pub(crate) struct Scribe {
    desk: Option<Desk>,
}

#[derive(Debug)]
struct Desk {
    said: SyncSender<Said>,
    left_out: Arc<AtomicU64>,
    writer: Arc<Bell>,
    ended: std::sync::Mutex<Receiver<()>>,
}

/// What a door has to say.
#[derive(Debug)]
enum Said {
    Refused { asked: &'static str, step: Illegal, code: Code, reason: String },
    Progress { task: u64, progress: Option<String>, message: Option<String> },
}

#[derive(Debug)]
struct Bell(Thread);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

impl Scribe {
    /// Begins to write about what the follower finds.
    pub(crate) fn start<R: ReadLog + Send + 'static>(
        lines: Lines,
        follower: Follower<R>,
    ) -> std::io::Result<Self> {
        if lines == Lines::Quiet {
            return Ok(Self::default());
        }
        let (said, hears) = sync_channel(LOG_LINES_WAITING_MAX);
        let (end, ended) = sync_channel(1);
        let left_out = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&left_out);
        let thread = std::thread::Builder::new().name("lines".to_owned()).spawn(move || {
            let waker = Waker::from(Arc::new(Bell(std::thread::current())));
            let second = Second::begin();
            Writer { follower, hears, left_out: counted, waker, second }.run();
            // Nobody has to wait for it.
            let _ = end.try_send(());
        })?;
        let writer = Arc::new(Bell(thread.thread().clone()));
        let ended = std::sync::Mutex::new(ended);
        Ok(Self { desk: Some(Desk { said, left_out, writer, ended }) })
    }

    /// Looks at an outcome for what the rules refused.
    pub(crate) fn heard<T: Shows>(&self, asked: &'static str, outcome: &Result<T, Refusal>) {
        if self.desk.is_none() {
            return;
        }
        match outcome {
            Err(Refusal::Rejected(rejection)) => self.refused(asked, rejection),
            Ok(shown) => shown.each_rejection(&mut |rejection| self.refused(asked, rejection)),
            Err(_) => {}
        }
    }

    fn refused(&self, asked: &'static str, rejection: &Rejection) {
        if let Some(step) = illegal_step(rejection) {
            let (code, reason) = (rejection.code(), rejection.to_string());
            self.say(|| Said::Refused { asked, step, code, reason });
        }
    }

    /// A worker says how far it is.
    pub(crate) fn progress(&self, task: u64, progress: Option<&Progress>) {
        let Some(Progress { fraction, message }) = progress else { return };
        self.say(|| Said::Progress {
            task,
            progress: fraction.map(|fraction| fraction.get().to_string()),
            message: message.as_ref().map(|message| beginning(message.as_str())),
        });
    }

    fn say(&self, said: impl FnOnce() -> Said) {
        let Some(desk) = &self.desk else { return };
        match desk.said.try_send(said()) {
            Ok(()) => Arc::clone(&desk.writer).wake(),
            Err(_) => {
                desk.left_out.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Waits a little for the last lines, once the engine has ended.
    pub(crate) fn finish(&self) {
        if let Some(desk) = &self.desk
            && let Ok(ended) = desk.ended.lock()
        {
            let _ = ended.recv_timeout(LAST_LINES_TIMEOUT);
        }
    }
}

/// As much of a stranger's text as may wait for its line.
fn beginning(text: &str) -> String {
    text.chars().take(TEXT_CHARS_MAX).collect()
}

/// A step that a task or a run in its state cannot take.
#[derive(Clone, Copy, Debug)]
struct Illegal {
    task: Option<u64>,
    run: Option<u64>,
    lease: Option<u64>,
    from: Option<&'static str>,
}

#[expect(clippy::wildcard_enum_match_arm, reason = "other refusals are about no single step")]
fn illegal_step(rejection: &Rejection) -> Option<Illegal> {
    match rejection {
        Rejection::LeaseLost { task_id, lease_id } => {
            Some(Illegal { lease: Some(lease_id.0), ..of_task(*task_id, None) })
        }
        Rejection::TaskTerminal { task_id, state } | Rejection::NotRetryable { task_id, state } => {
            Some(of_task(*task_id, Some(state.as_str())))
        }
        Rejection::TaskOfRun { task_id, run_id } => {
            Some(Illegal { run: Some(run_id.0), ..of_task(*task_id, None) })
        }
        Rejection::RunOver { run_id, state } | Rejection::RunEnding { run_id, state } => {
            let (run, from) = (Some(run_id.0), Some(state.as_str()));
            Some(Illegal { task: None, run, lease: None, from })
        }
        Rejection::RunParked { run_id } => {
            Some(Illegal { task: None, run: Some(run_id.0), lease: None, from: None })
        }
        _ => None,
    }
}

fn of_task(task: TaskId, from: Option<&'static str>) -> Illegal {
    Illegal { task: Some(task.0), run: None, lease: None, from }
}

/// One second's budget, and what was left out of it.
#[derive(Debug)]
struct Second {
    start: Instant,
    lines: usize,
    left_out: u64,
    /// The records that were not even looked at: the first and the last.
    records: Option<(Lsn, Lsn)>,
}

impl Second {
    fn begin() -> Self {
        Self { start: Instant::now(), lines: 0, left_out: 0, records: None }
    }

    /// Takes a line from the budget, or counts it as left out.
    fn takes(&mut self) -> bool {
        match self.is_spent() {
            true => self.left_out += 1,
            false => self.lines += 1,
        }
        self.left_out == 0
    }

    fn is_spent(&self) -> bool {
        self.lines >= LOG_LINES_PER_S
    }

    fn left(&self) -> Option<Duration> {
        SECOND.checked_sub(self.start.elapsed()).filter(|left| !left.is_zero())
    }

    /// What was left out, as a sentence.
    fn sentence(&self) -> Option<String> {
        let mut sentence = String::from("left out ");
        // Writing to a string cannot fail.
        match (self.left_out, self.records) {
            (0, None) => return None,
            (lines, None) => {
                let _ = write!(sentence, "{} lines", grouped(lines));
            }
            (lines, Some((first, last))) => {
                if lines > 0 {
                    let _ = write!(sentence, "{} lines and ", grouped(lines));
                }
                let records = grouped(last.0 - first.0 + 1);
                let _ = write!(sentence, "all of {records} records (LSN {first} to {last})");
            }
        }
        sentence.push_str(" in the last second");
        Some(sentence)
    }
}

/// A number with commas.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

struct Writer<R> {
    follower: Follower<R>,
    hears: Receiver<Said>,
    left_out: Arc<AtomicU64>,
    waker: Waker,
    second: Second,
}

/// Whether there may be more to write about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum More {
    Yes,
    Never,
}

impl<R: ReadLog> Writer<R> {
    fn run(mut self) {
        loop {
            let doors = self.write_what_is_said();
            let log = self.write_what_happened();
            if doors == More::Never || log == More::Never {
                self.close_second();
                return;
            }
            self.rest();
        }
    }

    /// Sleeps until there is something to do.
    fn rest(&mut self) {
        if self.second.is_spent() {
            // Whatever comes now is beyond the budget: it is not even read.
            if let Some(left) = self.second.left() {
                std::thread::sleep(left);
            }
            self.second.records = self.follower.skip();
            self.close_second();
            return;
        }
        let owes = self.second.left_out > 0 || self.left_out.load(Ordering::Relaxed) > 0;
        if !self.follower.is_ready(&self.waker) {
            match self.second.left().filter(|_| owes) {
                Some(left) => std::thread::park_timeout(left),
                None if owes => {}
                None => std::thread::park(),
            }
            std::thread::sleep(NAP);
        }
        if self.second.left().is_none() {
            self.close_second();
        }
    }

    fn close_second(&mut self) {
        self.second.left_out += self.left_out.swap(0, Ordering::Relaxed);
        if let Some(sentence) = self.second.sentence() {
            tracing::warn!("{sentence}");
        }
        self.second = Second::begin();
    }

    fn write_what_is_said(&mut self) -> More {
        // Whatever the doors say meanwhile waits for the next round.
        for _ in 0..LOG_LINES_WAITING_MAX {
            match self.hears.try_recv() {
                Ok(said) if self.second.takes() => write_said(&said),
                Ok(_) => {}
                Err(TryRecvError::Empty) => return More::Yes,
                Err(TryRecvError::Disconnected) => return More::Never,
            }
        }
        More::Yes
    }

    fn write_what_happened(&mut self) -> More {
        while !self.second.is_spent() {
            let second = &mut self.second;
            let found = self.follower.next_told(|record, told| {
                if second.takes() {
                    write_told(record, told);
                }
            });
            match found {
                Ok(Followed::Frame) => {}
                Ok(Followed::UpToDate) => return More::Yes,
                Ok(Followed::Closed) => return More::Never,
                // It was overtaken. The lines are for those who look now.
                Ok(Followed::Trimmed(_)) | Err(_) => self.second.records = self.follower.skip(),
            }
        }
        More::Yes
    }
}

/// One line, with the fields that every transition has.
macro_rules! write_step {
    ($level:ident, $record:ident, $step:ident, $says:literal) => {
        tracing::$level!(
            task = $step.task_id.0,
            queue = $step.queue,
            event = $step.event,
            from = $step.from.map(TaskState::as_str),
            to = $step.to.as_str(),
            worker = $step.worker,
            attempt = $step.attempt,
            priority = $step.priority.get(),
            lease = $step.lease_id.map(|lease| lease.0),
            lsn = $record.lsn.0,
            at = time($record.wall).to_string(),
            code = $step.code.filter(|code| !code.is_empty()),
            reason = $step.reason.filter(|reason| !reason.is_empty()),
            run = $step.run_id.map(|run| run.0),
            dead_letter_of = $step.dead_letter_of.map(|id| id.0),
            $says
        )
    };
}

fn write_told(record: &Record<'_>, told: &Told<'_>) {
    match told {
        Told::Task(step) => write_step(record, step),
        Told::Run(step) => write_run(record, step),
    }
}

fn write_step(record: &Record<'_>, step: &Transition<'_>) {
    match (step.event, step.to) {
        ("StaleReportRejected", _) => write_step!(warn, record, step, "stale report rejected"),
        (_, TaskState::Failed | TaskState::Dead) => {
            write_step!(warn, record, step, "transition");
        }
        _ => write_step!(info, record, step, "transition"),
    }
}

/// One line, with the fields that every transition of a run has.
macro_rules! write_run {
    ($level:ident, $record:ident, $step:ident) => {
        tracing::$level!(
            run = $step.run_id.0,
            workflow = $step.workflow,
            event = $step.event,
            to = $step.to.map(RunState::as_str),
            parent = $step.parent.map(|run| run.0),
            signal = $step.signal,
            lsn = $record.lsn.0,
            at = time($record.wall).to_string(),
            code = $step.code,
            "transition"
        )
    };
}

fn write_run(record: &Record<'_>, step: &RunTransition<'_>) {
    match step.to {
        Some(RunState::Failed | RunState::TimedOut) => write_run!(warn, record, step),
        Some(RunState::Running | RunState::Completed | RunState::Canceled) | None => {
            write_run!(info, record, step);
        }
    }
}

fn write_said(said: &Said) {
    match said {
        Said::Refused { asked, step, code, reason } => tracing::warn!(
            task = step.task,
            run = step.run,
            event = asked,
            from = step.from,
            lease = step.lease,
            code = code.as_str(),
            reason,
            "refused"
        ),
        Said::Progress { task, progress, message } => {
            tracing::info!(
                task,
                progress = progress.as_deref(),
                says = message.as_deref(),
                "progress"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beyond_the_budget_is_counted() {
        let mut second = Second::begin();
        assert_eq!(second.sentence(), None);
        let written = (0..LOG_LINES_PER_S + 1_234).filter(|_| second.takes()).count();
        assert_eq!(written, LOG_LINES_PER_S);
        assert_eq!(second.sentence().unwrap(), "left out 1,234 lines in the last second");
        second.records = Some((Lsn(5), Lsn(1_000_004)));
        let sentence = second.sentence().unwrap();
        let says = "left out 1,234 lines and all of 1,000,000 records (LSN 5 to 1000004) in the \
                    last second";
        assert_eq!(sentence, says);
    }
}
