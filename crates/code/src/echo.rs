//! How refusals quote input: bounded in length, with control characters escaped. A refusal then
//! never grows with the request that it is about, and prints safely on a terminal.

use std::fmt;

/// Characters of the input that a refusal quotes; the rest is left out.
pub const ECHO_CHARS_MAX: usize = 64;

/// Text from outside, shown in quotes: at most [`ECHO_CHARS_MAX`] characters, then `…`.
///
/// ```
/// use tenure_code::Echo;
///
/// assert_eq!(Echo("mail\u{1b}[2J").to_string(), r#""mail\u{1b}[2J""#);
/// assert!(Echo(&"9".repeat(30_000)).to_string().ends_with("9…\""));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Echo<'a>(pub &'a str);

impl fmt::Display for Echo<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((end, _)) = self.0.char_indices().nth(ECHO_CHARS_MAX) else {
            return write!(f, "{:?}", self.0);
        };
        let quoted = format!("{:?}", &self.0[..end]);
        let open = quoted.strip_suffix('"').unwrap_or(&quoted);
        write!(f, "{open}…\"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_text_is_quoted_as_debug_does() {
        for text in ["", "mail", "größe", "a\"b\\c", "it's", "line\nbreak", "\u{202e}evil"] {
            assert_eq!(Echo(text).to_string(), format!("{text:?}"));
        }
    }

    #[test]
    fn a_long_text_is_cut_at_a_character() {
        let exact = "é".repeat(ECHO_CHARS_MAX);
        assert_eq!(Echo(&exact).to_string(), format!("{exact:?}"));
        let long = Echo(&"é".repeat(100_000)).to_string();
        assert_eq!(long, format!("\"{exact}…\""));
        let escapes = Echo(&"\u{1}".repeat(100_000)).to_string();
        assert!(escapes.len() < 8 * ECHO_CHARS_MAX, "{}", escapes.len());
    }
}
