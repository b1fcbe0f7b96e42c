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
}

impl Shows for TaskInfo {
    fn each(&mut self, visit: &mut dyn FnMut(&mut SharedBytes)) {
        visit(&mut self.payload);
        visit(&mut self.output);
    }
}

impl Shows for Grant {
    fn each(&mut self, visit: &mut dyn FnMut(&mut SharedBytes)) {
        visit(&mut self.payload);
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
}

impl<T: Shows> Shows for Vec<T> {
    fn each(&mut self, visit: &mut dyn FnMut(&mut SharedBytes)) {
        self.iter_mut().for_each(|shown| shown.each(visit));
    }
}

/// An answer with all payloads in memory, once there is room for it. Cut a page before: what is not
/// shown need not be read.
pub(crate) async fn fetched<T: Shows>(mut shown: T) -> Result<T, Problem> {
    let (mut is_shelved, mut bytes) = (false, 0);
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
