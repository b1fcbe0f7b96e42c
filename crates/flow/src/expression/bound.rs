//! A look at an expression's text before the parser sees it: how deep would it be?
//!
//! The parser, the evaluator and the drop of a tree call themselves once per level. This bounds the
//! levels from the text alone. It must never see fewer than the parser does, so whatever the parser
//! could read in another way (a string that does not end, a strange escape) is refused here.

use super::ExpressionFault;
use crate::limits::{EXPRESSION_BYTES_MAX, EXPRESSION_DEPTH_MAX, EXPRESSION_NESTING_MAX};

/// Refuses what is too long, too deep, or could be read in two ways.
pub(super) fn check(text: &str) -> Result<(), ExpressionFault> {
    if text.len() > EXPRESSION_BYTES_MAX {
        let len = text.len();
        return Err(ExpressionFault::bad(format!(
            "the expression has {len} bytes; at most {EXPRESSION_BYTES_MAX} are allowed"
        )));
    }
    let mut scan = Scan { bytes: text.as_bytes(), at: 0 };
    let mut levels = Levels::new();
    while let Some(token) = scan.token()? {
        levels.take(token)?;
    }
    levels.end()
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Token {
    Open,
    Close,
    Comma,
    Question,
    Colon,
    /// `&&` and `||`: the parser puts a long row of them into a balanced tree.
    Logical,
    Minus,
    Not,
    /// Any other operator between two operands.
    Binary,
    Dot,
    Operand,
}

struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Scan<'_> {
    fn token(&mut self) -> Result<Option<Token>, ExpressionFault> {
        self.skip_blank();
        let Some(&byte) = self.bytes.get(self.at) else { return Ok(None) };
        let token = match byte {
            b'(' | b'[' | b'{' => self.take(1, Token::Open),
            b')' | b']' | b'}' => self.take(1, Token::Close),
            b',' => self.take(1, Token::Comma),
            b'?' => self.take(1, Token::Question),
            b':' => self.take(1, Token::Colon),
            b'.' => self.take(1, Token::Dot),
            b'-' => self.take(1, Token::Minus),
            b'!' if self.next_is(b'=') => self.take(2, Token::Binary),
            b'!' => self.take(1, Token::Not),
            b'&' | b'|' if self.next_is(byte) => self.take(2, Token::Logical),
            b'<' | b'>' | b'=' if self.next_is(b'=') => self.take(2, Token::Binary),
            b'+' | b'*' | b'/' | b'%' | b'<' | b'>' => self.take(1, Token::Binary),
            b'\'' | b'"' => self.string(Escapes::Read)?,
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' => self.word()?,
            _ => {
                let rest = String::from_utf8_lossy(&self.bytes[self.at..]);
                let strange = rest.chars().next().unwrap_or_default();
                return Err(ExpressionFault::bad(format!(
                    "the character {strange:?} means nothing in an expression outside of a string"
                )));
            }
        };
        Ok(Some(token))
    }

    fn take(&mut self, count: usize, token: Token) -> Token {
        self.at += count;
        token
    }

    fn next_is(&self, byte: u8) -> bool {
        self.bytes.get(self.at + 1) == Some(&byte)
    }

    fn skip_blank(&mut self) {
        loop {
            match &self.bytes[self.at..] {
                [b' ' | b'\t' | b'\n' | b'\r' | b'\x0c', ..] => self.at += 1,
                [b'/', b'/', rest @ ..] => {
                    let end = rest.iter().position(|byte| *byte == b'\n');
                    self.at += 2 + end.unwrap_or(rest.len());
                }
                _ => return,
            }
        }
    }

    fn word(&mut self) -> Result<Token, ExpressionFault> {
        let rest = &self.bytes[self.at..];
        let is_word = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
        let word = &rest[..rest.iter().take_while(is_word).count()];
        self.at += word.len();
        let is_before_quote = matches!(self.bytes.get(self.at), Some(b'\'' | b'"'));
        match word {
            b"r" | b"R" if is_before_quote => self.string(Escapes::None),
            b"b" | b"B" if is_before_quote => {
                Err(ExpressionFault::bad("there are no bytes here; use a string"))
            }
            _ if is_before_quote => Err(ExpressionFault::bad(format!(
                "a string directly after `{}`; put an operator between them",
                String::from_utf8_lossy(word)
            ))),
            b"in" => Ok(Token::Binary),
            _ => Ok(Token::Operand),
        }
    }

    fn string(&mut self, escapes: Escapes) -> Result<Token, ExpressionFault> {
        let quote = self.bytes[self.at];
        let triple = [quote; 3];
        let end: &[u8] =
            if self.bytes[self.at..].starts_with(&triple) { &triple } else { &triple[..1] };
        self.at += end.len();
        loop {
            let rest = &self.bytes[self.at..];
            match rest {
                _ if rest.starts_with(end) => {
                    self.at += end.len();
                    return Ok(Token::Operand);
                }
                [] => return Err(ExpressionFault::bad("a string does not end; close its quote")),
                [b'\n' | b'\r', ..] if end.len() == 1 => {
                    return Err(ExpressionFault::bad("a string does not end on its line"));
                }
                [b'\\', escaped @ ..] if escapes == Escapes::Read => {
                    self.at += 1 + escape_len(escaped)?;
                }
                _ => self.at += 1,
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Escapes {
    Read,
    None,
}

/// The bytes of an escape after its backslash.
fn escape_len(rest: &[u8]) -> Result<usize, ExpressionFault> {
    let hex = |count: usize| {
        let digits = rest.get(1..=count).filter(|d| d.iter().all(u8::is_ascii_hexdigit));
        digits.map(|_| 1 + count)
    };
    let len = match rest.first() {
        Some(
            b'a' | b'b' | b'f' | b'n' | b'r' | b't' | b'v' | b'\\' | b'?' | b'"' | b'\'' | b'`',
        ) => Some(1),
        Some(b'x' | b'X') => hex(2),
        Some(b'u') => hex(4),
        Some(b'U') => hex(8),
        Some(b'0'..=b'3') => {
            rest.get(1..3).filter(|d| d.iter().all(|d| (b'0'..=b'7').contains(d))).map(|_| 3)
        }
        _ => None,
    };
    len.ok_or_else(|| {
        ExpressionFault::bad("a string has an unknown escape; write \\\\ for a backslash")
    })
}

/// How deep the tree of what stands between two brackets is at most.
#[derive(Clone, Copy, Default)]
struct Level {
    /// Of the operand being read: calls, fields and signs on it, and what is in its brackets.
    steps: usize,
    inside: usize,
    /// Of the row of operators being read: how many, and its deepest operand so far.
    operators: usize,
    operand_max: usize,
    /// Of what stands between two commas.
    row_max: usize,
    conditionals: usize,
    logicals: usize,
    /// The deepest between two commas so far.
    deepest: usize,
}

impl Level {
    fn end_operand(&mut self) {
        self.operand_max = self.operand_max.max(self.steps + self.inside);
        (self.steps, self.inside) = (0, 0);
    }

    fn end_row(&mut self) {
        self.end_operand();
        self.row_max = self.row_max.max(self.operators + self.operand_max);
        (self.operators, self.operand_max) = (0, 0);
    }

    fn end_part(&mut self) {
        self.end_row();
        // A balanced tree of so many, once for `&&` and once for `||`.
        let balanced = 2 * (usize::BITS - self.logicals.leading_zeros()) as usize;
        self.deepest = self.deepest.max(self.row_max + self.conditionals + balanced);
        (self.row_max, self.conditionals, self.logicals) = (0, 0, 0);
    }
}

struct Levels {
    open: Vec<Level>,
    level: Level,
    after: Token,
}

impl Levels {
    fn new() -> Self {
        Self { open: Vec::new(), level: Level::default(), after: Token::Comma }
    }

    fn take(&mut self, token: Token) -> Result<(), ExpressionFault> {
        let is_after_operand = matches!(self.after, Token::Operand | Token::Close);
        match token {
            Token::Open => {
                self.level.steps += 1;
                self.open.push(std::mem::take(&mut self.level));
                if self.open.len() > EXPRESSION_NESTING_MAX {
                    return Err(ExpressionFault::bad(format!(
                        "brackets are nested deeper than {EXPRESSION_NESTING_MAX} levels"
                    )));
                }
            }
            Token::Close => {
                self.level.end_part();
                let inside = self.level.deepest;
                let Some(outer) = self.open.pop() else {
                    return Err(ExpressionFault::bad("a closing bracket has no opening one"));
                };
                self.level = outer;
                self.level.inside = self.level.inside.max(inside);
            }
            Token::Comma => self.level.end_part(),
            Token::Question => {
                self.level.end_row();
                self.level.conditionals += 1;
            }
            Token::Colon => self.level.end_row(),
            Token::Logical => {
                self.level.end_row();
                self.level.logicals += 1;
            }
            Token::Minus if !is_after_operand => self.level.steps += 1,
            Token::Minus | Token::Binary => {
                self.level.end_operand();
                self.level.operators += 1;
            }
            Token::Not | Token::Dot => self.level.steps += 1,
            Token::Operand => {}
        }
        self.after = token;
        Ok(())
    }

    fn end(mut self) -> Result<(), ExpressionFault> {
        if !self.open.is_empty() {
            return Err(ExpressionFault::bad("a bracket is not closed"));
        }
        self.level.end_part();
        let depth = self.level.deepest;
        if depth > EXPRESSION_DEPTH_MAX {
            return Err(ExpressionFault::bad(format!(
                "operators stand {depth} levels deep in each other; at most \
                 {EXPRESSION_DEPTH_MAX} are allowed"
            )));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_overflow_a_stack_is_refused() {
        let bad = [
            "(".repeat(33) + "1" + &")".repeat(33),
            "[".repeat(2_000),
            "!".repeat(4_000) + "true",
            "-".repeat(4_000) + "1",
            "1".to_owned() + &"+1".repeat(2_000),
            "a".to_owned() + &".a".repeat(2_000),
            "a".to_owned() + &"[0]".repeat(1_000),
            "a?b:".repeat(900) + "c",
            "a?".repeat(900) + "b" + &":c".repeat(900),
            "a.f(".repeat(500) + &")".repeat(500),
            "x".repeat(EXPRESSION_BYTES_MAX + 1),
        ];
        for text in bad {
            assert!(check(&text).is_err(), "{}", &text[..20]);
        }
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_refused() {
        for text in [
            "'a", "'a\nb'", "'\\z'", "'\\x1'", "'\\9'", "'\\u12'", "x'a'", "rb'a'", "b'a'",
            "1r'a'", "a`b`", "a # b", "a = b", "a & b", ")", "(", "'''a''", "é", "\"\\\"",
        ] {
            assert!(check(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn ordinary_expressions_pass() {
        for text in [
            "a",
            "r'\\d'",
            "'''a'b\nc'''",
            "\"it's\" + 'x\\u00e9\\101\\x41'",
            "{'a': [1, 2], 'b': -1}",
            "a in b && !(c == d) || e.f[0].g(x, 1 - 2) >= 1.5e-3",
            "a // (((((\n + b",
            "''",
        ] {
            assert!(check(text).is_ok(), "{text:?} {:?}", check(text));
        }
        let long = (0..80).map(|n| format!("input.kind == 'k{n}'")).collect::<Vec<_>>();
        assert!(check(&long.join(" || ")).is_ok());
        assert!(check(&format!("[{}]", long.join(", "))).is_ok());
    }
}
