//! Artifacts: named files that tasks of a run hand in with their result. Their bytes are kept
//! outside of the log under their hash; the log has the names.

use std::fmt;
use std::sync::Arc;

use tenure_code::Echo;

use crate::codec::{Field, Malformed, Reader, Wire, put_bytes};
use crate::limits::{
    ARTIFACT_LEVELS_MAX, ARTIFACT_NAME_BYTES_MAX, ARTIFACTS_MAX, MEDIA_TYPE_BYTES_MAX,
};
use crate::name::{Invalid, is_invisible};

/// A file's SHA-256.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sha256(pub [u8; 32]);

impl Sha256 {
    /// Parses 64 hexadecimal digits.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let digit = |digit: u8| char::from(digit).to_digit(16).filter(|_| digit != b'_');
        let mut hash = [0; 32];
        let bytes = text.as_bytes();
        let right = bytes.len() == 64
            && hash.iter_mut().zip(bytes.chunks(2)).all(|(byte, two)| {
                let parsed = digit(two[0]).zip(digit(two[1]));
                parsed.is_some_and(|(high, low)| {
                    *byte = (high << 4 | low) as u8;
                    true
                })
            });
        match right {
            true => Ok(Self(hash)),
            false => Err(Invalid::new(
                "a SHA-256 is 64 hexadecimal digits; `sha256sum FILE` prints one".to_owned(),
            )),
        }
    }
}

impl fmt::Display for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl Field<'_> for Sha256 {
    fn is_default(&self) -> bool {
        false
    }

    fn put(&self, tag: u32, out: &mut Vec<u8>) {
        put_bytes(tag, &self.0, out);
    }

    fn take(&mut self, wire: Wire, from: &mut Reader<'_>) -> Result<(), Malformed> {
        let mut bytes: &[u8] = &[];
        bytes.take(wire, from)?;
        self.0 = bytes.try_into().map_err(|_| Malformed::new("a SHA-256 is not 32 bytes"))?;
        Ok(())
    }
}

/// An artifact's name: a relative path that can be a file's anywhere.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArtifactName(Arc<str>);

impl ArtifactName {
    /// Parses a name.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let no = |why: &str| Err(Invalid::new(format!("the artifact's name {} {why}", Echo(text))));
        if text.is_empty() {
            return Err(Invalid::new(
                "an artifact's name is empty; give it a file name".to_owned(),
            ));
        }
        if text.len() > ARTIFACT_NAME_BYTES_MAX {
            let len = text.len();
            return Err(Invalid::new(format!(
                "an artifact's name has {len} bytes; at most {ARTIFACT_NAME_BYTES_MAX} are allowed"
            )));
        }
        if text.chars().any(char::is_control) {
            return no("has a control character; leave it out");
        }
        if let Some(c) = text.chars().find(|&c| is_invisible(c)) {
            return no(&format!("has the character U+{:04X}; leave it out", u32::from(c)));
        }
        if text.contains('\\') {
            return no("has a backslash; put `/` between folders");
        }
        if text.starts_with('/') {
            return no("is an absolute path; leave out the `/` in front");
        }
        if text.starts_with('@') {
            return no("begins with `@`, which tells artifacts of one name apart; take another");
        }
        let mut levels = 0;
        for part in text.split('/') {
            levels += 1;
            match part {
                "" => return no("has an empty part; write folders and file joined by single `/`"),
                "." | ".." => return no("goes by `.` or `..`; name the file itself"),
                _ => {}
            }
        }
        if levels > ARTIFACT_LEVELS_MAX {
            return no(&format!("has {levels} parts; at most {ARTIFACT_LEVELS_MAX} are allowed"));
        }
        Ok(Self(text.into()))
    }

    /// The name itself.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text, shared.
    #[must_use]
    pub fn shared(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }
}

impl fmt::Debug for ArtifactName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

/// What kind of file it is, as HTTP says it.
#[derive(Clone, PartialEq, Eq)]
pub struct MediaType(Arc<str>);

impl MediaType {
    /// Parses `type/subtype`, with parameters or without.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let is_token = |part: &str| {
            let allowed = |c: char| c.is_ascii_alphanumeric() || "!#$&-^_.+".contains(c);
            !part.is_empty() && part.chars().all(allowed)
        };
        let (kind, parameters) = text.split_once(';').unwrap_or((text, ""));
        let names = kind.trim_end().split_once('/');
        let right = text.len() <= MEDIA_TYPE_BYTES_MAX
            && names.is_some_and(|(kind, sort)| is_token(kind) && is_token(sort))
            && parameters.chars().all(|c| c == ' ' || c.is_ascii_graphic());
        match right {
            true => Ok(Self(text.into())),
            false => Err(Invalid::new(format!(
                "{} is no media type; write it as `text/plain` or `text/plain; charset=utf-8`, in \
                 at most {MEDIA_TYPE_BYTES_MAX} bytes",
                Echo(text)
            ))),
        }
    }

    /// The text itself.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text, shared.
    #[must_use]
    pub fn shared(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }
}

/// A file of which nothing is known.
impl Default for MediaType {
    fn default() -> Self {
        Self("application/octet-stream".into())
    }
}

impl fmt::Debug for MediaType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

/// A file that a completion hands in. Its bytes are kept already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact {
    /// What it is called.
    pub name: ArtifactName,
    /// What kind of file it is.
    pub media_type: MediaType,
    /// How long it is.
    pub bytes: u64,
    /// Where its bytes are.
    pub sha256: Sha256,
}

/// Checks what one completion hands in: not too many, and no two that cannot be files side by side.
pub fn check_together<'a>(
    names: impl Iterator<Item = &'a ArtifactName> + Clone,
) -> Result<(), Invalid> {
    let count = names.clone().count();
    if count > ARTIFACTS_MAX {
        return Err(Invalid::new(format!(
            "a completion has {count} artifacts; at most {ARTIFACTS_MAX} are allowed; put more \
             into an archive"
        )));
    }
    let mut sorted: Vec<&str> = names.map(ArtifactName::as_str).collect();
    sorted.sort_unstable();
    let clash = sorted.iter().enumerate().find_map(|(at, name)| {
        sorted[at + 1..].iter().find(|other| collide(name, other)).map(|other| (*name, *other))
    });
    match clash {
        Some((name, other)) if name == other => Err(Invalid::new(format!(
            "two artifacts are called {}; name each differently",
            Echo(name)
        ))),
        Some((name, other)) => Err(Invalid::new(format!(
            "the artifacts {} and {} cannot be side by side: one is the other's folder",
            Echo(name),
            Echo(other)
        ))),
        None => Ok(()),
    }
}

/// Whether two names cannot be files side by side: they are the same, or one is the other's folder.
fn collide(a: &str, b: &str) -> bool {
    let is_folder_of = |folder: &str, file: &str| {
        file.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    is_folder_of(a, b) || is_folder_of(b, a)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_name_is_a_path_that_stays_inside() {
        for good in ["a", "report.pdf", "logs/1/out.txt", "ü ö", "..a", "a..", "a@b"] {
            assert_eq!(ArtifactName::parse(good).unwrap().as_str(), good);
        }
        for (bad, why) in [
            ("", "empty"),
            ("/etc/passwd", "absolute"),
            ("..", "goes by"),
            ("a/../b", "goes by"),
            ("./a", "goes by"),
            ("a//b", "empty part"),
            ("a/", "empty part"),
            ("a\\b", "backslash"),
            ("a\nb", "control"),
            ("a\0", "control"),
            ("a\u{9b}2J", "control"),
            ("\u{202e}x", "U+202E"),
            ("a\u{2067}b", "U+2067"),
            ("a/\u{200b}b", "U+200B"),
            ("\u{feff}a", "U+FEFF"),
            ("a\u{e0041}", "U+E0041"),
            ("@1/a", "begins with"),
        ] {
            let said = ArtifactName::parse(bad).unwrap_err().message;
            assert!(said.contains(why), "{bad:?}: {said}");
        }
        let long = "x".repeat(ARTIFACT_NAME_BYTES_MAX + 1);
        assert!(ArtifactName::parse(&long).unwrap_err().message.contains("at most"));
        assert!(ArtifactName::parse(&long[1..]).is_ok());
        assert!(ArtifactName::parse(&"a/".repeat(20)).is_err());
    }

    #[test]
    fn a_media_type_cannot_break_a_header() {
        for good in ["text/plain", "application/vnd.a+json", "text/plain; charset=utf-8"] {
            assert!(MediaType::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "text", "text/", "/a", "a/b\r\nx: y", "a/b; ü", "a b/c", &"a/".repeat(99)]
        {
            assert!(MediaType::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_hash_is_64_digits() {
        let text = "0123456789abcdef".repeat(4);
        assert_eq!(Sha256::parse(&text).unwrap().to_string(), text);
        for bad in ["", "0", &text[1..], &text.replace('a', "g"), &text.replace("01", "+1")] {
            assert!(Sha256::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_one_completion_hands_in_can_lie_side_by_side() {
        let check = |names: &[&str]| {
            let names: Vec<_> =
                names.iter().map(|name| ArtifactName::parse(name).unwrap()).collect();
            check_together(names.iter()).map_err(|invalid| invalid.message)
        };
        check(&["a", "b/c", "b/d", "ab"]).unwrap();
        assert!(check(&["a", "b", "a"]).unwrap_err().contains("two artifacts"));
        assert!(check(&["a/b", "a.x", "a"]).unwrap_err().contains("folder"));
        let many: Vec<String> = (0..=ARTIFACTS_MAX).map(|n| n.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(check(&many).unwrap_err().contains("archive"));
    }
}
