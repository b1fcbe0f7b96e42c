//! The canonical form of a JSON text: no insignificant whitespace, members in the order of their names,
//! strings unescaped, numbers as written. Two texts that mean the same have the same form.
//!
//! It is made to be hashed. It is JSON but for what JSON has no bytes for: a `\u` escape of half a
//! surrogate pair, and control characters, which stand in it as they are.

use crate::limits::CANONICAL_DEPTH_MAX;

/// The canonical form of a text; none if the text is not JSON, or nests deeper than
/// [`CANONICAL_DEPTH_MAX`].
#[must_use]
pub fn canonical(text: &[u8]) -> Option<Vec<u8>> {
    std::str::from_utf8(text).ok()?;
    let mut reader = Reader { text, at: 0 };
    let mut out = Vec::with_capacity(text.len());
    reader.skip_space();
    reader.value(&mut out, 0)?;
    reader.skip_space();
    (reader.at == text.len()).then_some(out)
}

struct Reader<'t> {
    text: &'t [u8],
    at: usize,
}

/// Where a member of an object is in the output.
struct Member {
    from: usize,
    name_end: usize,
    end: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    /// Takes that byte, if it is next.
    fn take(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn value(&mut self, out: &mut Vec<u8>, depth: usize) -> Option<()> {
        match self.peek()? {
            b'{' | b'[' if depth == CANONICAL_DEPTH_MAX => None,
            b'{' => self.object(out, depth + 1),
            b'[' => self.list(out, depth + 1),
            b'"' => self.string(out),
            b't' => self.word(b"true", out),
            b'f' => self.word(b"false", out),
            b'n' => self.word(b"null", out),
            _ => self.number(out),
        }
    }

    fn object(&mut self, out: &mut Vec<u8>, depth: usize) -> Option<()> {
        self.at += 1;
        out.push(b'{');
        let begin = out.len();
        let mut members = Vec::new();
        self.skip_space();
        if !self.take(b'}') {
            loop {
                self.skip_space();
                let from = out.len();
                if self.peek() != Some(b'"') {
                    return None;
                }
                self.string(out)?;
                let name_end = out.len();
                self.skip_space();
                if !self.take(b':') {
                    return None;
                }
                out.push(b':');
                self.skip_space();
                self.value(out, depth)?;
                members.push(Member { from, name_end, end: out.len() });
                self.skip_space();
                match self.next()? {
                    b',' => out.push(b','),
                    b'}' => break,
                    _ => return None,
                }
            }
        }
        sort(&mut members, begin, out);
        out.push(b'}');
        Some(())
    }

    fn list(&mut self, out: &mut Vec<u8>, depth: usize) -> Option<()> {
        self.at += 1;
        out.push(b'[');
        self.skip_space();
        if !self.take(b']') {
            loop {
                self.skip_space();
                self.value(out, depth)?;
                self.skip_space();
                match self.next()? {
                    b',' => out.push(b','),
                    b']' => break,
                    _ => return None,
                }
            }
        }
        out.push(b']');
        Some(())
    }

    fn string(&mut self, out: &mut Vec<u8>) -> Option<()> {
        self.at += 1;
        out.push(b'"');
        loop {
            match self.next()? {
                b'"' => break,
                b'\\' => self.escape(out)?,
                0..=0x1f => return None,
                byte => out.push(byte),
            }
        }
        out.push(b'"');
        Some(())
    }

    fn escape(&mut self, out: &mut Vec<u8>) -> Option<()> {
        let byte = match self.next()? {
            // These two would end the string, or begin an escape.
            byte @ (b'"' | b'\\') => {
                out.push(b'\\');
                byte
            }
            b'/' => b'/',
            b'b' => 0x08,
            b'f' => 0x0c,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                let unit = self.unit()?;
                let code = self.second_half(unit).unwrap_or(unit);
                put_code(code, out);
                return Some(());
            }
            _ => return None,
        };
        out.push(byte);
        Some(())
    }

    /// The four digits of a `\u`.
    fn unit(&mut self) -> Option<u32> {
        let mut unit = 0;
        for _ in 0..4 {
            unit = unit << 4 | char::from(self.next()?).to_digit(16)?;
        }
        Some(unit)
    }

    /// The character of a surrogate pair, if this is the first half and the second follows.
    fn second_half(&mut self, first: u32) -> Option<u32> {
        if !(0xd800..0xdc00).contains(&first) || !self.text[self.at..].starts_with(b"\\u") {
            return None;
        }
        let before = self.at;
        self.at += 2;
        match self.unit() {
            Some(second @ 0xdc00..0xe000) => {
                Some(0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00))
            }
            _ => {
                self.at = before;
                None
            }
        }
    }

    fn word(&mut self, word: &[u8], out: &mut Vec<u8>) -> Option<()> {
        if !self.text[self.at..].starts_with(word) {
            return None;
        }
        self.at += word.len();
        out.extend_from_slice(word);
        Some(())
    }

    fn number(&mut self, out: &mut Vec<u8>) -> Option<()> {
        let from = self.at;
        self.take(b'-');
        match self.next()? {
            b'0' => {}
            b'1'..=b'9' => self.skip_digits(),
            _ => return None,
        }
        if self.take(b'.') {
            self.digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            let _sign = self.take(b'+') || self.take(b'-');
            self.digits()?;
        }
        out.extend_from_slice(&self.text[from..self.at]);
        Some(())
    }

    fn digits(&mut self) -> Option<()> {
        self.peek().filter(u8::is_ascii_digit)?;
        self.skip_digits();
        Some(())
    }

    fn skip_digits(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
    }
}

/// Puts the members that were written from `begin` on into the order of their names. Those of one name
/// stay in the order in which they came.
fn sort(members: &mut [Member], begin: usize, out: &mut Vec<u8>) {
    let name = |member: &Member| &out[member.from..member.name_end];
    if members.is_sorted_by(|a, b| name(a) <= name(b)) {
        return;
    }
    members.sort_by(|a, b| name(a).cmp(name(b)));
    let mut sorted = Vec::with_capacity(out.len() - begin);
    for member in &*members {
        if !sorted.is_empty() {
            sorted.push(b',');
        }
        sorted.extend_from_slice(&out[member.from..member.end]);
    }
    out.truncate(begin);
    out.extend_from_slice(&sorted);
}

/// Writes a character in UTF-8. Half a surrogate pair is written in the same way, in three bytes that no
/// text has.
fn put_code(code: u32, out: &mut Vec<u8>) {
    match char::from_u32(code) {
        Some(c @ ('"' | '\\')) => out.extend_from_slice(&[b'\\', c as u8]),
        Some(c) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        None => out.extend_from_slice(&[
            0xe0 | (code >> 12) as u8,
            0x80 | (code >> 6 & 0x3f) as u8,
            0x80 | (code & 0x3f) as u8,
        ]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(text: &str) -> Option<String> {
        canonical(text.as_bytes()).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    #[test]
    fn texts_that_mean_the_same_have_one_form() {
        let same = [
            (r#" { "b" : [ 1 , 2.50 ] , "a" : null } "#, r#"{"a":null,"b":[1,2.50]}"#),
            (r#"{"b":1,"a":{"d":{},"c":[]}}"#, r#"{"a":{"c":[],"d":{}},"b":1}"#),
            (r#""\u0061\/\u00e9\ud83d\ude00""#, "\"a/é😀\""),
            (r#""\u0022\u005c\"\\""#, r#""\"\\\"\\""#),
            (r#"{"\u0062":1,"a":2}"#, r#"{"a":2,"b":1}"#),
            ("\t[true,\n false]\r", "[true,false]"),
            (r#"{"a":2,"a":1}"#, r#"{"a":2,"a":1}"#),
            ("-0.0e+1", "-0.0e+1"),
        ];
        for (text, expected) in same {
            assert_eq!(form(text).as_deref(), Some(expected), "{text}");
            assert_eq!(form(expected).as_deref(), Some(expected), "it is its own form: {expected}");
        }
    }

    #[test]
    fn texts_that_differ_have_two_forms() {
        let different = [
            ("1", "1.0"),
            ("1e2", "100"),
            ("[1,2]", "[2,1]"),
            (r#"{"a":1}"#, r#"{"a":"1"}"#),
            (r#"{"a":1,"a":2}"#, r#"{"a":2,"a":1}"#),
            (r#"["a","b"]"#, r#"["a\",\"b"]"#),
            (r#""\ud800""#, r#""\ud801""#),
            (r#""\\n""#, r#""\n""#),
        ];
        for (one, other) in different {
            assert!(form(one).is_some() && form(other).is_some(), "{one} {other}");
            assert_ne!(canonical(one.as_bytes()), canonical(other.as_bytes()), "{one} {other}");
        }
    }

    #[test]
    fn what_is_not_json_has_no_form() {
        let wrong = [
            "",
            " ",
            "nul",
            "01",
            "1.",
            ".5",
            "1e",
            "+1",
            "[1,]",
            "[1",
            "{\"a\"}",
            "{a:1}",
            "{,}",
            "{\"a\":1,}",
            "\"",
            "\"\n\"",
            "\"\\x\"",
            "\"\\u12\"",
            "1 2",
            "NaN",
            "'a'",
            "[1]]",
        ];
        for text in wrong {
            assert_eq!(form(text), None, "{text:?}");
        }
        assert_eq!(canonical(b"\"\xff\""), None);
    }

    #[test]
    fn nesting_is_bounded() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(form(&nested(CANONICAL_DEPTH_MAX)).is_some());
        assert_eq!(form(&nested(CANONICAL_DEPTH_MAX + 1)), None);
        assert_eq!(form(&nested(500_000)), None);
    }
}
