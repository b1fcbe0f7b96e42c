//! JSON that somebody gives: on the command line, in a file or on standard input, kept as it is.

use std::fs::File;
use std::io::{self, Read};

use serde_json::value::RawValue;

use crate::failure::Failure;

/// No payload may be larger than 1 MiB; what is far beyond is not read to its end.
const READ_BYTES_MAX: u64 = 2 << 20;

/// Reads what was given for a flag, which is also what it is called.
pub(crate) fn read(flag: &str, given: &str) -> Result<Vec<u8>, Failure> {
    let text = match given.strip_prefix('@') {
        Some(path) => {
            let cannot =
                |error| Failure::Usage(format!("the {flag} {path:?} cannot be read: {error}"));
            bounded(flag, File::open(path).map_err(cannot)?, path)?
        }
        None if given == "-" => bounded(flag, io::stdin().lock(), "standard input")?,
        None => given.as_bytes().to_vec(),
    };
    check(flag, &text)
}

fn bounded(flag: &str, from: impl Read, name: &str) -> Result<Vec<u8>, Failure> {
    let mut text = Vec::new();
    let read = from.take(READ_BYTES_MAX + 1).read_to_end(&mut text);
    read.map_err(|error| {
        Failure::Usage(format!("the {flag} cannot be read from {name}: {error}"))
    })?;
    if text.len() as u64 > READ_BYTES_MAX {
        return Err(Failure::Usage(format!(
            "the {flag} in {name} has more than {READ_BYTES_MAX} bytes; a task can hold 1 MiB, so \
             put it elsewhere and give where it is"
        )));
    }
    Ok(text)
}

fn check(flag: &str, text: &[u8]) -> Result<Vec<u8>, Failure> {
    match serde_json::from_slice::<&RawValue>(text) {
        // Without the blanks around it, such as the last line break of a file.
        Ok(json) => Ok(json.get().as_bytes().to_vec()),
        Err(error) => Err(Failure::Usage(format!(
            "the {flag} is no JSON: {error}; a text must be in double quotes, such as \
             --{flag} '\"hello\"'"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_that_is_no_json_is_refused_with_its_place() {
        let sentence = read("payload", "{\n  \"to\": ada\n}").unwrap_err().to_string();
        assert!(sentence.contains("line 2 column 9"), "{sentence}");
        assert_eq!(read("payload", "hello").unwrap_err().exit_code(), 2);
        assert!(read("payload", "").is_err());
        assert_eq!(read("payload", "@/does/not/exist").unwrap_err().exit_code(), 2);
    }

    #[test]
    fn a_payload_is_kept_as_it_is() {
        for text in ["null", "{\"b\": 1.50, \"a\":[ ]}", "\"-\"", "123456789012345678901234567890"]
        {
            assert_eq!(read("payload", text).unwrap(), text.as_bytes());
        }
        assert_eq!(read("payload", " [1]\n").unwrap(), b"[1]");
    }
}
