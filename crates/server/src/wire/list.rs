//! What every list takes: how many, where to go on, and with which tag.

use tenure_core::limits::LIST_ITEMS_MAX;

use crate::limits::LIST_LIMIT_DEFAULT;
use crate::problem::Problem;

/// How many there may be on a page.
pub(crate) fn limit(limit: Option<usize>) -> Result<usize, Problem> {
    let limit = limit.unwrap_or(LIST_LIMIT_DEFAULT);
    match (1..=LIST_ITEMS_MAX).contains(&limit) {
        true => Ok(limit),
        false => {
            let detail = format!("limit is {limit}; it must be from 1 to {LIST_ITEMS_MAX}");
            Err(Problem::invalid(detail))
        }
    }
}

/// Where to go on, in a list that goes by number.
pub(crate) fn cursor<N: std::str::FromStr>(cursor: Option<&str>) -> Result<Option<N>, Problem> {
    let wrong =
        |text| Problem::invalid(format!("cursor is {text:?}; use the next_cursor of a page"));
    cursor.map(|text| text.parse().map_err(|_| wrong(text))).transpose()
}

/// A tag as it is asked for: `key:value`.
pub(crate) fn tag(tag: Option<&str>) -> Result<Option<(String, String)>, Problem> {
    let wrong = |tag| Problem::invalid(format!("tag is {tag:?}; it must be like key:value"));
    let split = |tag: &str| match tag.split_once(':') {
        Some((key, value)) => Ok((key.to_owned(), value.to_owned())),
        None => Err(wrong(tag.to_owned())),
    };
    tag.map(split).transpose()
}
