//! Payloads that lie on the shelf, brought into memory before an answer is made of them. It is done
//! on a thread that may wait for the disk, so that those who serve others need not.

use std::borrow::Cow;
use std::io;

use tenure_coordinator::request::{SignaledRun, StartedRun, SubmittedTask};
use tenure_coordinator::{
    ArtifactInfo, DueItems, Explained, Grant, NamePage, RunInfo, RunPage, RunTasks, SnapshotInfo,
    Status, TaskInfo, TaskPage, TokenPage, WorkflowInfo, WorkflowPage,
};
use tenure_core::Rejection;
use tenure_core::command::{Extended, Registered, Reported, Signaled, Started, Submitted, Swept};
use tenure_core::state::{Facts, QueueView, SharedBytes};
use tenure_record::id::RunId;
use tenure_value::Value;

use crate::admission::response_budget;
use crate::limits::PAGE_BYTES;
use crate::problem::Problem;

/// The exit code of a server that cannot read its spill file.
const SPILL_EXIT_CODE: i32 = 74;
/// What an item of a list takes as JSON text, about.
const ITEM_BYTES: usize = 512;

/// A response as it is shown: how long its text is, and which payloads are in it. A page of tasks has
/// none: it is cut first.
pub(crate) trait Shows: Send + Sized + 'static {
    /// Visits each payload.
    fn each(&mut self, _visit: &mut dyn FnMut(&mut SharedBytes)) {}

    /// Bytes of the checkpoints that it shows, which are in memory.
    fn checkpoint_bytes(&self) -> usize {
        0
    }

    /// Bytes of its text without the payloads of tasks, about.
    fn text_bytes(&self) -> usize {
        0
    }

    /// Visits each rejection in it.
    fn each_rejection(&self, _visit: &mut dyn FnMut(&Rejection)) {}
}

/// Responses whose text is short, and those whose text is estimated.
macro_rules! shows {
    ($($short:ty),*; $($long:ty: |$it:ident| $bytes:expr;)*) => {
        $(impl Shows for $short {})*
        $(impl Shows for $long {
            fn text_bytes(&self) -> usize {
                let $it = self;
                $bytes
            }
        })*
    };
}

shows! {
    (), usize, RunId, Extended, Swept, Registered, Signaled, SignaledRun, SnapshotInfo, Submitted,
    Started, TaskPage, RunTasks, DueItems, Explained, Status, Facts, Option<Box<QueueView>>;
    ArtifactInfo: |_it| ITEM_BYTES;
    RunInfo: |it| {
        let values = [it.output.as_ref(), it.error.as_ref()].into_iter().flatten();
        ITEM_BYTES + it.input.bytes() + it.context.bytes() + values.map(Value::bytes).sum::<usize>()
    };
    StartedRun: |it| it.run.text_bytes();
    WorkflowInfo: |it| it.definition.source.bytes();
    TokenPage: |it| it.tokens.len() * ITEM_BYTES;
    // A page is cut at its size, after the item that passes it.
    RunPage: |it| it.runs.iter().map(Shows::text_bytes).sum::<usize>().min(2 * PAGE_BYTES);
    WorkflowPage: |it| {
        it.workflows.iter().map(Shows::text_bytes).sum::<usize>().min(2 * PAGE_BYTES)
    };
}

impl<T: Send + 'static> Shows for NamePage<T> {
    fn text_bytes(&self) -> usize {
        self.items.len() * ITEM_BYTES
    }
}

impl Shows for Reported {
    fn each_rejection(&self, visit: &mut dyn FnMut(&Rejection)) {
        self.result.as_ref().err().into_iter().for_each(visit);
    }
}

impl Shows for SubmittedTask {
    fn each(&mut self, visit: &mut dyn FnMut(&mut SharedBytes)) {
        self.task.each(visit);
    }

    fn checkpoint_bytes(&self) -> usize {
        self.task.checkpoint_bytes()
    }
}

impl<T: Shows> Shows for Box<T> {
    fn each(&mut self, visit: &mut dyn FnMut(&mut SharedBytes)) {
        (**self).each(visit);
    }

    fn checkpoint_bytes(&self) -> usize {
        (**self).checkpoint_bytes()
    }

    fn text_bytes(&self) -> usize {
        (**self).text_bytes()
    }

    fn each_rejection(&self, visit: &mut dyn FnMut(&Rejection)) {
        (**self).each_rejection(visit);
    }
}

impl Shows for TaskInfo {
    fn each(&mut self, visit: &mut dyn FnMut(&mut SharedBytes)) {
        visit(&mut self.payload);
        visit(&mut self.output);
    }

    fn checkpoint_bytes(&self) -> usize {
        self.checkpoint.as_ref().map_or(0, |bytes| bytes.len())
    }
}

impl Shows for Grant {
    fn each(&mut self, visit: &mut dyn FnMut(&mut SharedBytes)) {
        visit(&mut self.payload);
    }

    fn checkpoint_bytes(&self) -> usize {
        self.checkpoint.as_ref().map_or(0, |bytes| bytes.len())
    }
}

impl<T: Shows> Shows for Vec<T> {
    fn each(&mut self, visit: &mut dyn FnMut(&mut SharedBytes)) {
        self.iter_mut().for_each(|shown| shown.each(visit));
    }

    fn checkpoint_bytes(&self) -> usize {
        self.iter().map(Shows::checkpoint_bytes).sum()
    }

    fn text_bytes(&self) -> usize {
        self.iter().map(Shows::text_bytes).sum()
    }

    fn each_rejection(&self, visit: &mut dyn FnMut(&Rejection)) {
        self.iter().for_each(|shown| shown.each_rejection(visit));
    }
}

/// The bytes of a payload or an output.
pub(crate) fn bytes_of(payload: &SharedBytes) -> Cow<'_, [u8]> {
    payload.read().unwrap_or_else(|cause| end_without(&cause))
}

/// Ends the server because its spill file cannot be read: no state is better than a wrong one, and the
/// next start recovers a right one from the log.
pub(crate) fn end_without(cause: &io::Error) -> ! {
    eprintln!("tenure: {cause}");
    std::process::exit(SPILL_EXIT_CODE);
}

/// An answer with all payloads in memory, once there is room for it. Cut a page before: what is not
/// shown need not be read.
pub(crate) async fn fetched<T: Shows>(mut shown: T) -> Result<T, Problem> {
    let (mut is_shelved, mut bytes) = (false, shown.checkpoint_bytes());
    shown.each(&mut |payload| {
        is_shelved |= payload.is_shelved();
        bytes += payload.len();
    });
    // A payload is there twice while its text is made.
    response_budget::reserve(2 * bytes).await?;
    if !is_shelved {
        return Ok(shown);
    }
    let fetch = move || {
        shown.each(&mut |payload| payload.fetch().unwrap_or_else(|cause| end_without(&cause)));
        shown
    };
    let fetched = tokio::task::spawn_blocking(fetch).await;
    fetched.map_err(|_| Problem::stopping())
}
