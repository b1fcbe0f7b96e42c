//! Payloads that lie on the shelf, brought into memory before an answer is made of them. It is done
//! on a thread that may wait for the disk, so that those who serve others need not.

use tenure_coordinator::{Answer, Grant, TaskInfo};
use tenure_core::state::SharedBytes;

use crate::answers;
use crate::problem::Problem;

/// What shows payloads.
pub(crate) trait Shows: Send + Sized + 'static {
    /// Visits each of them.
    fn each(&mut self, visit: &mut dyn FnMut(&mut SharedBytes));

    /// Bytes of the checkpoints that it shows, which are in memory.
    fn checkpoint_bytes(&self) -> usize;
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

/// What is shown as it is. A page is not: it is cut first.
impl Shows for Answer {
    fn each(&mut self, visit: &mut dyn FnMut(&mut SharedBytes)) {
        if let Answer::Task(task) | Answer::Taken(_, task) = self {
            task.each(visit);
        } else if let Answer::Leased(grants) = self {
            grants.each(visit);
        }
    }

    fn checkpoint_bytes(&self) -> usize {
        if let Answer::Task(task) | Answer::Taken(_, task) = self {
            task.checkpoint_bytes()
        } else if let Answer::Leased(grants) = self {
            grants.checkpoint_bytes()
        } else {
            0
        }
    }
}

impl<T: Shows> Shows for Vec<T> {
    fn each(&mut self, visit: &mut dyn FnMut(&mut SharedBytes)) {
        self.iter_mut().for_each(|shown| shown.each(visit));
    }

    fn checkpoint_bytes(&self) -> usize {
        self.iter().map(Shows::checkpoint_bytes).sum()
    }
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
    answers::reserve(2 * bytes).await?;
    if !is_shelved {
        return Ok(shown);
    }
    let fetch = move || {
        shown.each(&mut SharedBytes::fetch);
        shown
    };
    let fetched = tokio::task::spawn_blocking(fetch).await;
    fetched.map_err(|_| Problem::stopping())
}
