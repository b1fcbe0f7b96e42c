//! Pages of lists and histories.

use serde::{Deserialize, Serialize};

/// One page of a list. A page may be shorter than asked for while there is a next one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Page<T> {
    /// The items of this page.
    pub items: Vec<T>,
    /// The `cursor` of the next page; `None` on the last page.
    pub next_cursor: Option<String>,
}

/// One page of the history of a task or a run, oldest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct History<T> {
    /// The steps of this page.
    pub items: Vec<T>,
    /// The `cursor` of the next page; `None` on the last page.
    pub next_cursor: Option<String>,
    /// Steps before this LSN are no longer in the log; `None` if the history is complete.
    pub truncated_before: Option<u64>,
}

/// Which page of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
#[serde(deny_unknown_fields)]
pub struct PageQuery {
    /// The maximum number of items, from 1 to 1,000; 100 if not given.
    #[cfg_attr(feature = "openapi", param(minimum = 1, maximum = 1_000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// The `next_cursor` of the previous page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// The ids of what a batch created, in the order of the request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Ids {
    /// One id for each item of the batch.
    pub ids: Vec<u64>,
}
