//! Lists that come page by page: how many, and from where.

use clap::Args;
use tenure_sdk::{Error, Page, PageQuery};

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

impl Range {
    /// All of a list.
    pub(crate) fn whole() -> Self {
        Self { limit: u64::MAX, all: true, cursor: None }
    }

    /// Requests page after page, until there are no more or there were enough, as one page.
    pub(crate) async fn fetch<T>(
        &self,
        mut request: impl AsyncFnMut(PageQuery) -> Result<Page<T>, Error>,
    ) -> Result<Page<T>, Failure> {
        let mut left = if self.all { u64::MAX } else { self.limit };
        let mut all = Page { items: Vec::new(), next_cursor: self.cursor.clone() };
        while left > 0 {
            let limit = u32::try_from(left.min(PAGE_ITEMS_MAX)).ok();
            let page = request(PageQuery { limit, cursor: all.next_cursor.take() }).await?;
            left = left.saturating_sub(page.items.len() as u64);
            all.items.extend(page.items);
            all.next_cursor = page.next_cursor;
            if all.next_cursor.is_none() {
                break;
            }
        }
        Ok(all)
    }
}

/// Says on stderr that a table was cut short.
pub(crate) fn tell_rest(cursor: Option<&str>) {
    if let Some(cursor) = cursor {
        output::complain(&format!("there are more: --all lists them, --cursor {cursor} goes on"));
    }
}
