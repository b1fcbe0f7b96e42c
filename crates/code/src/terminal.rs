//! Escaping for terminals: control characters and invisible format characters become text.

/// Writes a text on one line, with every character that a terminal would act on escaped.
///
/// ```
/// assert_eq!(tenure_code::escape_line("a\u{1b}[31mb\n"), r"a\u{1b}[31mb\n");
/// ```
#[must_use]
pub fn escape_line(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if is_printable(c) => shown.push(c),
            c => shown.extend(c.escape_default()),
        }
    }
    shown
}

/// Whether a terminal only draws the character: it is no control character, no bidirectional
/// control, and no other format character that is drawn as nothing.
#[must_use]
pub fn is_printable(c: char) -> bool {
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
        assert_eq!(
            escape_line("a\u{1b}[31mb\n\t\u{9b}2J\u{7f}"),
            r"a\u{1b}[31mb\n\t\u{9b}2J\u{7f}"
        );
        assert_eq!(escape_line("gpj.\u{202e}exe"), r"gpj.\u{202e}exe");
        for c in ['\u{61c}', '\u{200e}', '\u{2066}', '\u{2069}', '\u{ad}', '\u{e0041}'] {
            assert_eq!(escape_line(&c.to_string()), format!("\\u{{{:x}}}", u32::from(c)));
        }
        assert_eq!(escape_line(r#"Käse "日本" \ 'x'"#), r#"Käse "日本" \ 'x'"#);
    }
}
