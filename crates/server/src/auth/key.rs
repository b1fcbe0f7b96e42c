//! The API key of a server: what may be one, and whether a request shows it.

use std::fmt;
use std::sync::Arc;

use axum::http::{HeaderMap, header};
use tenure_code::Code;

use crate::limits::{API_KEY_BYTES_MAX, API_KEY_BYTES_MIN};
use crate::problem::Problem;

/// A key that is long enough and can be sent in a header.
#[derive(Clone)]
pub(crate) struct ApiKey(Arc<str>);

/// Why a text cannot be the API key of a server. The text itself is never shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadKey {
    /// There is nothing in it, or only white space: most likely a variable that was not set.
    Blank,
    /// It has so few bytes that it could be guessed.
    Short {
        /// How many it has.
        bytes: usize,
    },
    /// It has more bytes than a key may have.
    Long {
        /// How many it has.
        bytes: usize,
    },
    /// It has a character that a client could not send.
    Unsendable,
}

impl fmt::Display for BadKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadKey::Blank => f.write_str("the API key is empty"),
            BadKey::Short { bytes } => {
                write!(f, "the API key has {bytes} bytes, and needs at least {API_KEY_BYTES_MIN}")
            }
            BadKey::Long { bytes } => {
                write!(f, "the API key has {bytes} bytes; at most {API_KEY_BYTES_MAX} are allowed")
            }
            BadKey::Unsendable => f.write_str(
                "the API key has a space, a line break or another character that is not printable \
                 ASCII, and no client could send it",
            ),
        }?;
        f.write_str(
            "; make one with `openssl rand -hex 32` and give it with --api-key or TENURE_API_KEY, \
             or give none and unset the variable to serve this machine only",
        )
    }
}

impl ApiKey {
    pub(crate) fn parse(text: &str) -> Result<Self, BadKey> {
        let bytes = text.len();
        if text.trim().is_empty() {
            return Err(BadKey::Blank);
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(BadKey::Unsendable);
        }
        match bytes {
            ..API_KEY_BYTES_MIN => Err(BadKey::Short { bytes }),
            API_KEY_BYTES_MIN..=API_KEY_BYTES_MAX => Ok(Self(text.into())),
            _ => Err(BadKey::Long { bytes }),
        }
    }

    /// Whether the headers of a request show it.
    pub(crate) fn check(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let given = given.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default();
        // Takes as long for a wrong key as for a right one.
        let differs = given.len() != self.0.len()
            || given.bytes().zip(self.0.bytes()).fold(0, |bits, (a, b)| bits | (a ^ b)) != 0;
        match differs {
            false => Ok(()),
            true => Err(Problem::new(
                Code::Unauthorized,
                "this server needs its API key; send it as `Authorization: Bearer KEY`",
            )),
        }
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_is_blank_short_long_or_unsendable_is_refused() {
        for text in ["", " ", "\t\n", &" ".repeat(20)] {
            assert_eq!(ApiKey::parse(text).unwrap_err(), BadKey::Blank, "{text:?}");
        }
        let short = "k".repeat(API_KEY_BYTES_MIN - 1);
        assert_eq!(ApiKey::parse(&short).unwrap_err(), BadKey::Short { bytes: short.len() });
        let long = "k".repeat(API_KEY_BYTES_MAX + 1);
        assert_eq!(ApiKey::parse(&long).unwrap_err(), BadKey::Long { bytes: long.len() });
        for text in ["0123456789abcdef\n", "0123456789 abcdef", "0123456789abcdefé"] {
            assert_eq!(ApiKey::parse(text).unwrap_err(), BadKey::Unsendable, "{text:?}");
        }
        let said = BadKey::Short { bytes: 3 }.to_string();
        assert!(said.contains("openssl rand") && said.contains("TENURE_API_KEY"), "{said}");
    }

    #[test]
    fn only_the_whole_key_opens() {
        let text = "k".repeat(API_KEY_BYTES_MIN);
        let key = ApiKey::parse(&text).unwrap();
        let shows = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, value.parse().unwrap());
            key.check(&headers).is_ok()
        };
        assert!(key.check(&HeaderMap::new()).is_err());
        for value in ["", "Bearer", "Bearer ", &text, &format!("Bearer {}", &text[1..])] {
            assert!(!shows(value), "{value:?}");
        }
        assert!(shows(&format!("Bearer {text}")));
        assert!(!format!("{key:?}").contains(&text), "it is not written to a log");
    }
}
