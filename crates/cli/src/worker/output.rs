//! What came out of a program or a request, as a task's output: always JSON.

use serde_json::Value;
use tenure_sdk::{Failure, Output};

/// The largest output that a server takes.
pub(super) const OUTPUT_BYTES_MAX: usize = 1 << 20;

/// JSON as it came, any other text as a JSON string without its last line end, nothing as null.
pub(super) fn of(bytes: &[u8]) -> Result<Output, Failure> {
    let text = String::from_utf8_lossy(bytes);
    let json = text.trim_matches([' ', '\t', '\r', '\n']);
    if serde_json::from_str::<Value>(json).is_ok() {
        return Ok(Output::from(json));
    }
    let line =
        text.strip_suffix('\n').map_or(&*text, |line| line.strip_suffix('\r').unwrap_or(line));
    let output = match line {
        "" => Value::Null.to_string(),
        line => Value::from(line).to_string(),
    };
    if output.len() > OUTPUT_BYTES_MAX {
        let len = output.len();
        return Err(too_large(format!(
            "as a JSON string the output has {len} bytes; at most {OUTPUT_BYTES_MAX} are allowed"
        )));
    }
    Ok(Output::from(output))
}

/// More came out than a task can keep. It would again, so it is not tried again.
pub(super) fn too_large(reason: String) -> Failure {
    Failure::permanent(reason).code("output_too_large")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(bytes: &[u8]) -> String {
        String::from_utf8(of(bytes).unwrap().as_bytes().to_vec()).unwrap()
    }

    #[test]
    fn json_stays_as_it_came() {
        assert_eq!(
            output(b" {\"b\": 1.50, \"a\": 12345678901234567890123}\n"),
            "{\"b\": 1.50, \"a\": 12345678901234567890123}"
        );
        assert_eq!(output(b"\"text\""), "\"text\"");
        assert_eq!(output(b"null\n"), "null");
    }

    #[test]
    fn text_becomes_a_string() {
        assert_eq!(output(b"two\nlines\n"), r#""two\nlines""#);
        assert_eq!(output(b"dos\r\n"), r#""dos""#);
        assert_eq!(output(b"{\"a\": 1} {\"a\": 2}"), r#""{\"a\": 1} {\"a\": 2}""#);
        assert_eq!(output(b"a\xffb"), "\"a\u{fffd}b\"");
    }

    #[test]
    fn nothing_is_null() {
        assert_eq!(output(b""), "null");
        assert_eq!(output(b"\n"), "null");
    }

    #[test]
    fn json_too_deep_to_be_read_back_is_text() {
        let deep = "[".repeat(1_000) + &"]".repeat(1_000);
        assert_eq!(output(deep.as_bytes()), format!("{deep:?}"));
    }

    #[test]
    fn text_that_grows_too_large_as_json_is_refused() {
        assert!(of(&vec![b'x'; OUTPUT_BYTES_MAX - 2]).is_ok());
        assert!(of(&vec![b'x'; OUTPUT_BYTES_MAX - 1]).is_err());
        assert!(of(&vec![0xff; OUTPUT_BYTES_MAX / 2]).is_err(), "each byte becomes three");
    }
}
