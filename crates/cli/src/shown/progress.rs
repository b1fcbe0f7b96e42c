//! How far a worker says that it is, as it is shown.

use serde::Serialize;
use tenure_sdk::wire;

use crate::ui::moment::rfc_3339;

#[derive(Debug, Serialize)]
pub(super) struct ShownProgress<'a> {
    fraction: Option<f64>,
    message: Option<&'a str>,
    at: String,
}

impl<'a> ShownProgress<'a> {
    pub(super) fn of(said: &'a wire::Progress) -> Self {
        let at = rfc_3339(said.at);
        Self { fraction: said.fraction, message: said.message.as_deref(), at }
    }
}
