//! The payload of a task: JSON from the command line, a file or standard input, kept as it is.

use std::fs::File;
use std::io::{self, Read};

use serde_json::value::RawValue;

use crate::failure::Failure;

/// No payload may be larger than 1 MiB; what is far beyond is not read to its end.
const READ_BYTES_MAX: u64 = 2 << 20;

pub(super) fn read(given: &str) -> Result<Vec<u8>, Failure> {
    let text = match given.strip_prefix('@') {
        Some(path) => {
            let cannot =
                |error| Failure::Usage(format!("the payload {path:?} cannot be read: {error}"));
            bounded(File::open(path).map_err(cannot)?, path)?
        }
        None if given == "-" => bounded(io::stdin().lock(), "standard input")?,
        None => given.as_bytes().to_vec(),
    };
    check(&text)
}

fn bounded(from: impl Read, name: &str) -> Result<Vec<u8>, Failure> {
    let mut text = Vec::new();
    let read = from.take(READ_BYTES_MAX + 1).read_to_end(&mut text);
    read.map_err(|error| {
        Failure::Usage(format!("the payload cannot be read from {name}: {error}"))
    })?;
    if text.len() as u64 > READ_BYTES_MAX {
        return Err(Failure::Usage(format!(
            "the payload in {name} has more than {READ_BYTES_MAX} bytes; a task can hold 1 MiB, so \
             put it elsewhere and submit where it is"
        )));
    }
    Ok(text)
}

fn check(text: &[u8]) -> Result<Vec<u8>, Failure> {
    match serde_json::from_slice::<&RawValue>(text) {
        // Without the blanks around it, such as the last line break of a file.
        Ok(json) => Ok(json.get().as_bytes().to_vec()),
        Err(error) => Err(Failure::Usage(format!(
            "the payload is no JSON: {error}; a text must be in double quotes, such as \
             --payload '\"hello\"'"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_that_is_no_json_is_refused_with_its_place() {
        let sentence = read("{\n  \"to\": ada\n}").unwrap_err().to_string();
        assert!(sentence.contains("line 2 column 9"), "{sentence}");
        assert_eq!(read("hello").unwrap_err().exit_code(), 2);
        assert!(read("").is_err());
        assert_eq!(read("@/does/not/exist").unwrap_err().exit_code(), 2);
    }

    #[test]
    fn a_payload_is_kept_as_it_is() {
        for text in ["null", "{\"b\": 1.50, \"a\":[ ]}", "\"-\"", "123456789012345678901234567890"]
        {
            assert_eq!(read(text).unwrap(), text.as_bytes());
        }
        assert_eq!(read(" [1]\n").unwrap(), b"[1]");
    }
}
