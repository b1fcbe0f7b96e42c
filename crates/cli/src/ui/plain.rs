//! Text from outside, made safe to show. A name or a payload can hold what a terminal takes for a
//! command; it is shown as text.

use std::fmt::Write;

pub(crate) use tenure_code::escape_line as line;
use tenure_code::is_printable;

/// Text with its line breaks, and everything else that a terminal would act on written out.
pub(crate) fn lines(text: &str) -> String {
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// JSON text with the same meaning, and nothing in it that a terminal would act on. Outside of
/// strings there is nothing to mend: there only blanks may stand, which are kept.
pub(crate) fn json(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut units = [0; 2];
    for c in text.chars() {
        match c {
            c if is_printable(c) || c.is_ascii_whitespace() => shown.push(c),
            c => {
                for unit in c.encode_utf16(&mut units) {
                    // Writing to a string cannot fail.
                    let _ = write!(shown, "\\u{unit:04x}");
                }
            }
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_breaks_stay_where_they_are_wanted() {
        assert_eq!(lines("one\ntwo\r"), "one\ntwo\\r");
    }

    #[test]
    fn json_keeps_its_meaning() {
        let raw = "{\n\t\"a\u{9b}\": \"\u{202e}\u{7f}é\u{1f600}\"}";
        let safe = json(raw);
        assert_eq!(safe, "{\n\t\"a\\u009b\": \"\\u202e\\u007fé\u{1f600}\"}");
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(value(&safe), value(raw));
    }
}
