//! Text from outside, made safe to show. A name or a payload can hold what a terminal takes for a
//! command; it is shown as text.

use std::fmt::Write;

/// Text on one line, with everything that a terminal would act on written out.
pub(crate) fn line(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if is_safe(c) => shown.push(c),
            c => shown.extend(c.escape_default()),
        }
    }
    shown
}

/// The same, with its line breaks.
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
            c if is_safe(c) || c.is_ascii_whitespace() => shown.push(c),
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

/// Whether a terminal only draws it: no control character, no bidirectional control, and no other
/// format character that is drawn as nothing.
fn is_safe(c: char) -> bool {
    let is_format = matches!(
        c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}'
    );
    !c.is_control() && !is_format
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_act_on_is_shown_as_text() {
        assert_eq!(line("a\u{1b}[31mb\n\t\u{9b}2J\u{7f}"), r"a\u{1b}[31mb\n\t\u{9b}2J\u{7f}");
        assert_eq!(line("gpj.\u{202e}exe"), r"gpj.\u{202e}exe");
        for c in ['\u{61c}', '\u{200e}', '\u{2066}', '\u{2069}', '\u{ad}', '\u{e0041}'] {
            assert_eq!(line(&c.to_string()), format!("\\u{{{:x}}}", u32::from(c)));
        }
        assert_eq!(line(r#"Käse "日本" \ 'x'"#), r#"Käse "日本" \ 'x'"#);
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
