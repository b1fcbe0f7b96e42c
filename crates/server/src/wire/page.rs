//! A page of a list, cut where it would be too large for one answer.

use tenure_coordinator::{TaskInfo, TaskPage};

use crate::limits::PAGE_BYTES;

/// What a task needs in an answer beside its texts, about.
const TASK_BYTES: usize = 512;

/// As much of a page as fits into one answer, and where to go on. At least one task is on it.
pub(crate) fn cut(mut page: TaskPage) -> TaskPage {
    let mut bytes = 0;
    let fits = page.tasks.iter().take_while(|task| {
        let has_room = bytes < PAGE_BYTES;
        bytes += bytes_of(task);
        has_room
    });
    let fits = fits.count();
    if fits < page.tasks.len() {
        page.tasks.truncate(fits);
        page.next = page.tasks.last().map(|task| task.id);
    }
    page
}

fn bytes_of(task: &TaskInfo) -> usize {
    let tags = task.tags.iter().map(|(key, value)| key.len() + value.len());
    let errors = task.errors.iter().map(|error| error.message.len() + error.code.len());
    TASK_BYTES
        + task.payload.len()
        + task.output.len()
        + tags.sum::<usize>()
        + errors.sum::<usize>()
}
