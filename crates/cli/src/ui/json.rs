//! Values as one line of JSON, for programs.

use serde::Serialize;

use crate::ui::output::Lines;
use crate::ui::plain;

/// Prints a value as one line of JSON.
pub(crate) fn print(out: &mut Lines, value: &impl Serialize) {
    out.print(text(value));
}

/// A value as JSON text.
pub(crate) fn text(value: &impl Serialize) -> String {
    // The outward model has names for keys and finite numbers, which always can be written.
    plain::json(&serde_json::to_string(value).unwrap_or_default())
}
