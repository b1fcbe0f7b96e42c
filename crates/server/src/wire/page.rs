//! A page of a list, cut where it would be too large for one answer.

use tenure_coordinator::{RunInfo, RunPage, TaskInfo, TaskPage, TokenInfo, TokenPage};
use tenure_value::Value;

use crate::limits::PAGE_BYTES;

/// What a task, a run or a token needs in an answer beside its texts, about.
const ITEM_BYTES: usize = 512;

/// As much of a page as fits into one answer, and where to go on. At least one task is on it.
pub(crate) fn cut(mut page: TaskPage) -> TaskPage {
    if let Some(fits) = fits(page.tasks.iter().map(bytes_of)) {
        page.tasks.truncate(fits);
        page.next = page.tasks.last().map(|task| task.id);
    }
    page
}

/// The same for runs.
pub(crate) fn cut_runs(mut page: RunPage) -> RunPage {
    if let Some(fits) = fits(page.runs.iter().map(bytes_of_run)) {
        page.runs.truncate(fits);
        page.next = page.runs.last().map(|run| run.id);
    }
    page
}

/// The same for tokens.
pub(crate) fn cut_tokens(mut page: TokenPage) -> TokenPage {
    if let Some(fits) = fits(page.tokens.iter().map(bytes_of_token)) {
        page.tokens.truncate(fits);
        page.next = page.tokens.last().map(|token| token.id);
    }
    page
}

/// How many items fit, if not all of them do.
fn fits(items: impl ExactSizeIterator<Item = usize>) -> Option<usize> {
    let (mut bytes, count) = (0, items.len());
    let fits = items.take_while(|item| {
        let has_room = bytes < PAGE_BYTES;
        bytes += item;
        has_room
    });
    Some(fits.count()).filter(|fits| *fits < count)
}

fn bytes_of(task: &TaskInfo) -> usize {
    let tags = task.tags.iter().map(|(key, value)| key.len() + value.len());
    let errors = task.errors.iter().map(|error| error.message.len() + error.code.len());
    ITEM_BYTES
        + task.payload.len()
        + task.output.len()
        + task.checkpoint.as_ref().map_or(0, |bytes| bytes.len())
        + tags.sum::<usize>()
        + errors.sum::<usize>()
}

fn bytes_of_run(run: &RunInfo) -> usize {
    let tags = run.tags.iter().map(|(key, value)| key.len() + value.len());
    let ending = run.ending.as_ref().and_then(|ending| ending.error.as_ref());
    let results = [run.output.as_ref(), run.error.as_ref(), ending];
    let results = results.into_iter().flatten().map(Value::bytes);
    ITEM_BYTES
        + run.parked.as_ref().map_or(0, |parked| parked.reason.len())
        + run.input.bytes()
        + run.context.bytes()
        + results.sum::<usize>()
        + tags.sum::<usize>()
}

fn bytes_of_token(token: &TokenInfo) -> usize {
    ITEM_BYTES + token.path.len() + token.error.as_ref().map_or(0, Value::bytes)
}
