//! User interface helpers that several verbs share: arguments, paging, styled text and tables.

pub(crate) mod copying;
pub(crate) mod given;
pub(crate) mod json;
pub(crate) mod moment;
pub(crate) mod output;
pub(crate) mod pages;
pub(crate) mod plain;
pub(crate) mod span;
pub(crate) mod style;
pub(crate) mod table;
