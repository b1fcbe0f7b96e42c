//! A page of a list, cut where it would be too large for one answer.

use std::sync::Arc;

use tenure_code::Echo;
use tenure_coordinator::{
    NamePage, RunInfo, RunPage, TaskInfo, TaskPage, TokenInfo, TokenPage, WorkerInfo,
};
use tenure_value::Value;

use super::list;
use crate::limits::PAGE_BYTES;
use crate::problem::Problem;

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

/// Keeps the workers of a page that fit an answer.
pub(crate) fn cut_workers(mut page: NamePage<WorkerInfo>) -> NamePage<WorkerInfo> {
    if let Some(fits) = fits(page.items.iter().map(bytes_of_worker)) {
        page.items.truncate(fits);
        page.next = page.items.last().map(|worker| Arc::clone(&worker.name));
    }
    page
}

/// The items of a history on one page, oldest first, and where the next page goes on. An item is
/// named by its record and its place among the items of that record.
pub(crate) fn of_history<'s, T>(
    steps: &'s [T],
    lsn: impl Fn(&T) -> u64,
    cursor: Option<&str>,
    limit: usize,
) -> Result<(&'s [T], Option<String>), Problem> {
    let wrong = |text| {
        let text = Echo(text);
        Problem::invalid(format!("cursor is {text}; use the next_cursor of a page"))
    };
    let after = |text| {
        let (lsn, nth) = str::split_once(text, '.')?;
        Some((list::decimal(lsn)?, usize::try_from(list::decimal(nth)?).ok()?))
    };
    let after = cursor.map(|text| after(text).ok_or_else(|| wrong(text))).transpose()?;
    let begin = after.map_or(0, |(last, nth)| {
        let of_record = steps.partition_point(|step| lsn(step) < last);
        let behind = steps.partition_point(|step| lsn(step) <= last);
        (of_record + nth + 1).min(behind)
    });
    let page = &steps[begin..steps.len().min(begin + limit)];
    let has_more = begin + page.len() < steps.len();
    let next = page.last().filter(|_| has_more).map(|step| {
        let last = lsn(step);
        let nth = page.len() + begin - 1 - steps.partition_point(|step| lsn(step) < last);
        format!("{last}.{nth}")
    });
    Ok((page, next))
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

fn bytes_of_worker(worker: &WorkerInfo) -> usize {
    let said = worker.registration.iter();
    let said = said.map(|said| {
        let queues = said.queues.iter().map(|queue| queue.as_str().len());
        let labels = said.labels.as_slice().iter();
        let labels = labels.map(|(key, value)| key.as_str().len() + value.as_str().len());
        queues.sum::<usize>() + labels.sum::<usize>()
    });
    ITEM_BYTES + said.sum::<usize>()
}

fn bytes_of_token(token: &TokenInfo) -> usize {
    ITEM_BYTES + token.path.len() + token.error.as_ref().map_or(0, Value::bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_a_history_give_every_item_once_and_in_order() {
        let steps = [3, 5, 5, 5, 9, 12, 12];
        for limit in 1..=8 {
            let (mut seen, mut cursor) = (Vec::new(), None::<String>);
            loop {
                let (page, next) =
                    of_history(&steps, |lsn| *lsn, cursor.as_deref(), limit).unwrap();
                assert!(page.len() <= limit && !page.is_empty());
                seen.extend_from_slice(page);
                match next {
                    Some(next) => cursor = Some(next),
                    None => break,
                }
            }
            assert_eq!(seen, steps, "limit {limit}");
        }
        for wrong in ["", "5", "5.", "x.1", "05.1", "5.1.1"] {
            assert!(of_history(&steps, |lsn| *lsn, Some(wrong), 1).is_err(), "{wrong}");
        }
        let (page, next) = of_history(&steps, |lsn| *lsn, Some("12.1"), 1).unwrap();
        assert!(page.is_empty() && next.is_none());
    }
}
