//! Names and texts from outside, parsed once at the door. Inside, a name is a name.

use std::fmt;
use std::sync::Arc;

use crate::limits::{
    CODE_BYTES_MAX, KEY_BYTES_MAX, NAME_BYTES_MAX, REASON_BYTES_MAX, SIGNAL_TEXT_BYTES_MAX,
    TAG_BYTES_MAX, TASK_NAME_BYTES_MAX,
};

/// A request that must be mended before it can be decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// What is wrong: the field, the value's size or range, and the bound.
    pub message: String,
}

impl Invalid {
    /// A fault with a sentence that says how to mend it.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Invalid {}

/// What a kind of text may hold.
struct Grammar {
    what: &'static str,
    bytes_max: usize,
    empty: Empty,
    usage: NameUse,
}

enum Empty {
    Allowed,
    Refused,
}

/// Where a text is used.
enum NameUse {
    /// As a segment of a URL's path. A slash would cut the name in two, clients drop `.` and `..`
    /// from paths, and a space at an end does not show.
    Path,
    /// In bodies and queries only.
    Body,
}

impl Grammar {
    fn check(&self, text: &str) -> Result<(), Invalid> {
        let what = self.what;
        if text.is_empty() && matches!(self.empty, Empty::Refused) {
            return Err(Invalid::new(format!("{what} is empty; give it at least one character")));
        }
        if text.len() > self.bytes_max {
            let (len, max) = (text.len(), self.bytes_max);
            return Err(Invalid::new(format!("{what} has {len} bytes; at most {max} are allowed")));
        }
        if let Some(c) = text.chars().find(|&c| self.refuses(c)) {
            let code = u32::from(c);
            return Err(Invalid::new(format!(
                "{what} has the character U+{code:04X}; leave it out"
            )));
        }
        match self.usage {
            NameUse::Path => self.check_segment(text),
            NameUse::Body => Ok(()),
        }
    }

    fn check_segment(&self, text: &str) -> Result<(), Invalid> {
        let what = self.what;
        if text.trim() != text {
            let message = format!("{what} begins or ends with a space; leave it out");
            return Err(Invalid::new(message));
        }
        if text == "." || text == ".." {
            return Err(Invalid::new(format!(
                "{what} is {text:?}, which clients drop from a path; use another name"
            )));
        }
        Ok(())
    }

    fn refuses(&self, c: char) -> bool {
        c.is_control() || is_invisible(c) || (c == '/' && matches!(self.usage, NameUse::Path))
    }
}

/// Format characters and bidirectional controls: they make two different names look alike, or reverse
/// the text that follows.
pub(crate) fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{00AD}' | '\u{034F}' | '\u{061C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}'
        | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}'
        | '\u{2060}'..='\u{206F}' | '\u{3164}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFA0}'
        | '\u{FFF9}'..='\u{FFFB}' | '\u{E0000}'..='\u{E0FFF}')
}

macro_rules! text {
    ($(#[$doc:meta])* $name:ident, $grammar:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            const GRAMMAR: Grammar = $grammar;

            /// Checks the text and keeps it.
            pub fn parse(text: &str) -> Result<Self, Invalid> {
                Self::GRAMMAR.check(text)?;
                Ok(Self(text.into()))
            }

            /// The text as it was given.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// The text for an event, without copying it.
            #[must_use]
            pub fn share(&self) -> Text<'static> {
                Text::Shared(Arc::clone(&self.0))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

text! {
    /// A queue's name.
    QueueName,
    Grammar { what: "queue", bytes_max: NAME_BYTES_MAX, empty: Empty::Refused, usage: NameUse::Path }
}
text! {
    /// A worker's name, as it gives it when it asks for work.
    WorkerName,
    Grammar { what: "worker", bytes_max: NAME_BYTES_MAX, empty: Empty::Refused, usage: NameUse::Path }
}
text! {
    /// What kind of work a task is.
    TaskName,
    Grammar { what: "name", bytes_max: TASK_NAME_BYTES_MAX, empty: Empty::Refused, usage: NameUse::Path }
}
text! {
    /// An idempotency key: while its task exists, the same submit gives the same task.
    TaskKey,
    Grammar { what: "key", bytes_max: KEY_BYTES_MAX, empty: Empty::Refused, usage: NameUse::Body }
}
text! {
    /// The left side of a tag.
    TagKey,
    Grammar { what: "tag key", bytes_max: TAG_BYTES_MAX, empty: Empty::Refused, usage: NameUse::Body }
}
text! {
    /// The right side of a tag.
    TagValue,
    Grammar { what: "tag value", bytes_max: TAG_BYTES_MAX, empty: Empty::Allowed, usage: NameUse::Body }
}
text! {
    /// A signal's id or correlation.
    SignalText,
    Grammar {
        what: "signal id or correlation",
        bytes_max: SIGNAL_TEXT_BYTES_MAX,
        empty: Empty::Allowed,
        usage: NameUse::Body,
    }
}
text! {
    /// A failure's code, for programs.
    FailureCode,
    Grammar { what: "code", bytes_max: CODE_BYTES_MAX, empty: Empty::Refused, usage: NameUse::Body }
}

/// A failure's reason, for people. Any text; what is too long loses its beginning, because the
/// end of an error's output is what says most.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reason(String);

impl Reason {
    /// Keeps the last [`REASON_BYTES_MAX`] bytes, cut at a character.
    #[must_use]
    pub fn keep_end(text: &str) -> Self {
        let mut from = text.len().saturating_sub(REASON_BYTES_MAX);
        while !text.is_char_boundary(from) {
            from += 1;
        }
        Self(text[from..].to_owned())
    }

    /// The text that was kept.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A text inside an event: borrowed from the frame or the command, or shared with the state.
#[derive(Clone)]
pub enum Text<'a> {
    /// Lives as long as the command or the frame it came from.
    Borrowed(&'a str),
    /// Lives in the state too.
    Shared(Arc<str>),
}

impl Text<'_> {
    /// The text itself.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Text::Borrowed(text) => text,
            Text::Shared(text) => text,
        }
    }
}

impl Text<'_> {
    /// The text for keeping: shared if it is already, else copied.
    #[must_use]
    pub fn to_shared(&self) -> Arc<str> {
        match self {
            Text::Borrowed(text) => Arc::from(*text),
            Text::Shared(text) => Arc::clone(text),
        }
    }
}

impl Default for Text<'_> {
    fn default() -> Self {
        Text::Borrowed("")
    }
}

impl PartialEq for Text<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Text<'_> {}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_would_confuse_is_refused() {
        for bad in ["", "a/b", "a\nb", "a\u{200B}b", "\u{202E}evil", "x\u{7f}"] {
            assert!(QueueName::parse(bad).is_err(), "{bad:?} was taken");
        }
        assert!(QueueName::parse(&"q".repeat(NAME_BYTES_MAX + 1)).is_err());
    }

    #[test]
    fn a_name_that_a_url_would_lose_is_refused() {
        for bad in [".", "..", " a", "a ", " ", "\u{a0}a"] {
            assert!(QueueName::parse(bad).is_err(), "{bad:?} was taken");
            assert!(WorkerName::parse(bad).is_err(), "{bad:?} was taken");
            assert!(TaskKey::parse(bad).is_ok(), "a key is never part of a path");
        }
        for good in ["...", ".a", "a b", "..a"] {
            assert!(QueueName::parse(good).is_ok(), "{good:?} was refused");
        }
    }

    #[test]
    fn a_refusal_names_the_bound_and_the_size() {
        let long = "q".repeat(NAME_BYTES_MAX + 1);
        let message = QueueName::parse(&long).unwrap_err().message;
        assert_eq!(message, "queue has 257 bytes; at most 256 are allowed");
    }

    #[test]
    fn ordinary_names_are_taken() {
        for good in ["mail", "größe", "a.b-c_d:e", "日本語", &"q".repeat(NAME_BYTES_MAX)] {
            assert_eq!(QueueName::parse(good).unwrap().as_str(), good);
        }
        assert!(TaskKey::parse("order/17").is_ok(), "a key never stands in a path");
        assert!(TagValue::parse("").is_ok());
    }

    #[test]
    fn a_long_reason_keeps_its_end() {
        let long = format!("{}the cause", "é".repeat(REASON_BYTES_MAX));
        let kept = Reason::keep_end(&long);
        assert!(kept.as_str().len() <= REASON_BYTES_MAX);
        assert!(kept.as_str().ends_with("the cause"));
    }
}
