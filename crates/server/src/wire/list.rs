//! What every list takes: how many, where to go on, and with which tag.

use std::sync::Arc;

use tenure_api::PageQuery;
use tenure_code::Echo;
use tenure_coordinator::NameRange;
use tenure_core::limits::LIST_ITEMS_MAX;

use crate::limits::LIST_LIMIT_DEFAULT;
use crate::problem::Problem;

/// How many there may be on a page.
pub(crate) fn limit(limit: Option<u32>) -> Result<usize, Problem> {
    let limit = limit.map_or(LIST_LIMIT_DEFAULT, |limit| limit as usize);
    match (1..=LIST_ITEMS_MAX).contains(&limit) {
        true => Ok(limit),
        false => {
            let detail = format!("limit is {limit}; it must be from 1 to {LIST_ITEMS_MAX}");
            Err(Problem::invalid(detail))
        }
    }
}

/// A page of a list that goes by name.
pub(crate) fn names(page: PageQuery) -> Result<NameRange, Problem> {
    Ok(NameRange { after: page.cursor.map(Arc::from), limit: limit(page.limit)? })
}

/// Where to go on, in a list that goes by number.
pub(crate) fn cursor<N: TryFrom<u64>>(cursor: Option<&str>) -> Result<Option<N>, Problem> {
    let wrong = |text| {
        let text = Echo(text);
        Problem::invalid(format!("cursor is {text}; use the next_cursor of a page"))
    };
    let parse = |text| decimal(text).and_then(|number| N::try_from(number).ok());
    cursor.map(|text| parse(text).ok_or_else(|| wrong(text))).transpose()
}

/// A whole number in its one spelling: no sign, no leading zeros.
pub(crate) fn decimal(text: &str) -> Option<u64> {
    let is_plain = text == "0" || text.starts_with(|first: char| ('1'..='9').contains(&first));
    text.parse().ok().filter(|_| is_plain)
}

/// A tag as it is asked for: `key:value`.
pub(crate) fn tag(tag: Option<&str>) -> Result<Option<(String, String)>, Problem> {
    let wrong =
        |tag: &str| Problem::invalid(format!("tag is {}; it must be like key:value", Echo(tag)));
    let split = |tag: &str| match tag.split_once(':') {
        Some((key, value)) => Ok((key.to_owned(), value.to_owned())),
        None => Err(wrong(tag)),
    };
    tag.map(split).transpose()
}
