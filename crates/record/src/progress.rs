//! What a worker says about its work before it is done: how far it is, and where another attempt
//! goes on.

use std::fmt;
use std::sync::Arc;

use crate::limits::{CHECKPOINT_BYTES_MAX, PROGRESS_MESSAGE_BYTES_MAX};
use crate::name::Invalid;

/// Where the next attempt of a task goes on: JSON text as it came, or bytes over gRPC. Never empty.
#[derive(Clone, PartialEq, Eq)]
pub struct Checkpoint(Arc<[u8]>);

impl Checkpoint {
    /// Checks the size. No bytes are no checkpoint.
    pub fn parse(bytes: &[u8]) -> Result<Option<Self>, Invalid> {
        let len = bytes.len();
        if len > CHECKPOINT_BYTES_MAX {
            return Err(Invalid::new(format!(
                "checkpoint has {len} bytes; at most {CHECKPOINT_BYTES_MAX} are allowed"
            )));
        }
        Ok((len > 0).then(|| Self(Arc::from(bytes))))
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Checkpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", String::from_utf8_lossy(&self.0))
    }
}

/// The part of the work that is done, in billionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fraction(u32);

impl Fraction {
    const WHOLE: f64 = 1e9;

    /// Checks the range.
    pub fn parse(value: f64) -> Result<Self, Invalid> {
        match (0.0..=1.0).contains(&value) {
            true => Ok(Self((value * Self::WHOLE).round() as u32)),
            false => {
                Err(Invalid::new(format!("progress is {value}; it must be a fraction from 0 to 1")))
            }
        }
    }

    /// The number from 0 to 1.
    #[must_use]
    pub fn get(self) -> f64 {
        f64::from(self.0) / Self::WHOLE
    }
}

/// How far the work is, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgressMessage(Arc<str>);

impl ProgressMessage {
    /// Checks the size.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let len = text.len();
        match len <= PROGRESS_MESSAGE_BYTES_MAX {
            true => Ok(Self(Arc::from(text))),
            false => Err(Invalid::new(format!(
                "message has {len} bytes; at most {PROGRESS_MESSAGE_BYTES_MAX} are allowed"
            ))),
        }
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// How far a worker says that it is. It is never recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// As a number, if it says one.
    pub fraction: Option<Fraction>,
    /// In words, if it says any.
    pub message: Option<ProgressMessage>,
}

impl Progress {
    /// Checks both parts. Nothing if there is neither.
    pub fn parse(fraction: Option<f64>, message: Option<&str>) -> Result<Option<Self>, Invalid> {
        let fraction = fraction.map(Fraction::parse).transpose()?;
        let message = message.map(ProgressMessage::parse).transpose()?;
        let says_something = fraction.is_some() || message.is_some();
        Ok(says_something.then_some(Self { fraction, message }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fraction_is_from_0_to_1_and_reads_back_as_it_was_said() {
        for value in [0.0, 0.1, 0.333_333_333, 0.4, 1.0] {
            assert_eq!(Fraction::parse(value).unwrap().get(), value);
        }
        for value in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
            assert!(Fraction::parse(value).is_err(), "{value}");
        }
        let message = Fraction::parse(40.0).unwrap_err().message;
        assert_eq!(message, "progress is 40; it must be a fraction from 0 to 1");
    }

    #[test]
    fn what_is_too_long_is_refused_with_its_bound() {
        let message = Checkpoint::parse(&vec![b'1'; CHECKPOINT_BYTES_MAX + 1]).unwrap_err().message;
        assert_eq!(message, "checkpoint has 65537 bytes; at most 65536 are allowed");
        assert!(Checkpoint::parse(&vec![b'1'; CHECKPOINT_BYTES_MAX]).unwrap().is_some());
        assert_eq!(Checkpoint::parse(b"").unwrap(), None);
        let text = "x".repeat(PROGRESS_MESSAGE_BYTES_MAX + 1);
        assert!(ProgressMessage::parse(&text).is_err());
        assert_eq!(Progress::parse(None, None).unwrap(), None);
    }
}
