//! Lists that come page by page: how many, and from where.

use clap::Args;
use tenure_sdk::Error;

use crate::failure::Failure;
use crate::ui::output;

/// What a server puts on one page at most.
const PAGE_ITEMS_MAX: u64 = 1_000;

/// Which part of a list.
#[derive(Clone, Debug, Args)]
pub(crate) struct Range {
    /// At most so many.
    #[arg(long, value_name = "N", default_value_t = 100)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    limit: u64,

    /// All of them, however many there are.
    #[arg(long, conflicts_with = "limit")]
    all: bool,

    /// Where to go on: the next_cursor of an earlier list.
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
}

/// A page, and where to go on; empty at the end.
pub(crate) type Page<T> = (Vec<T>, String);

/// What was found, and where to go on if there is more.
#[derive(Debug)]
pub(crate) struct Found<T> {
    pub(crate) items: Vec<T>,
    pub(crate) next_cursor: Option<String>,
}

impl Range {
    /// All of a list.
    pub(crate) fn whole() -> Self {
        Self { limit: u64::MAX, all: true, cursor: None }
    }

    /// Asks for page after page, until there are no more or there were enough.
    pub(crate) async fn fetch<T>(
        &self,
        mut page: impl AsyncFnMut(u32, String) -> Result<Page<T>, Error>,
    ) -> Result<Found<T>, Failure> {
        let mut left = if self.all { u64::MAX } else { self.limit };
        let mut items = Vec::new();
        let mut cursor = self.cursor.clone().unwrap_or_default();
        while left > 0 {
            let limit = u32::try_from(left.min(PAGE_ITEMS_MAX)).unwrap_or(u32::MAX);
            let (found, next) = page(limit, cursor).await?;
            left = left.saturating_sub(found.len() as u64);
            items.extend(found);
            cursor = next;
            if cursor.is_empty() {
                break;
            }
        }
        let next_cursor = Some(cursor).filter(|cursor| !cursor.is_empty());
        Ok(Found { items, next_cursor })
    }
}

impl<T> Found<T> {
    /// Says on stderr that a table was cut short.
    pub(crate) fn tell_rest(&self) {
        if let Some(cursor) = &self.next_cursor {
            output::complain(&format!(
                "there are more: --all lists them, --cursor {cursor} goes on"
            ));
        }
    }
}
