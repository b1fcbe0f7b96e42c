//! A line of a story as words and `name=value` pairs. Each is taken once; what is left over is a
//! mistake in the story.

use std::collections::VecDeque;
use std::fmt::Debug;

/// The words of one command, or of one part of it.
#[derive(Debug, Default)]
pub(crate) struct Words {
    plain: VecDeque<String>,
    named: Vec<(String, String)>,
}

/// Cuts a line into parts at `;`, and each part into words. Quotes hold spaces together.
pub(crate) fn parts(line: &str) -> Result<Vec<Words>, String> {
    let mut parts = vec![Words::default()];
    let mut rest = line.trim_start();
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix(';') {
            parts.push(Words::default());
            rest = after.trim_start();
            continue;
        }
        let (word, after) = word(rest)?;
        parts.last_mut().expect("there is always a part").add(word);
        rest = after.trim_start();
    }
    Ok(parts)
}

/// The first word of a text, as (name, value) if it has both, and what follows it.
fn word(text: &str) -> Result<((Option<String>, String), &str), String> {
    let (mut name, mut value, mut in_quotes) = (None, String::new(), false);
    let mut is_raw = false;
    for (at, c) in text.char_indices() {
        match c {
            // Between single quotes everything stays as it is, JSON for one.
            '\'' if !in_quotes => is_raw = !is_raw,
            c if is_raw => value.push(c),
            '"' => in_quotes = !in_quotes,
            '=' if !in_quotes && name.is_none() => name = Some(std::mem::take(&mut value)),
            c if !in_quotes && (c.is_whitespace() || c == ';') => {
                return Ok(((name, value), &text[at..]));
            }
            c => value.push(c),
        }
    }
    if in_quotes || is_raw {
        return Err(format!("a quote is not closed: {text}"));
    }
    Ok(((name, value), ""))
}

impl Words {
    fn add(&mut self, (name, value): (Option<String>, String)) {
        match name {
            Some(name) => self.named.push((name, value)),
            None => self.plain.push_back(value),
        }
    }

    /// The next plain word, which must be there.
    pub(crate) fn next(&mut self, what: &str) -> Result<String, String> {
        self.plain.pop_front().ok_or_else(|| format!("{what} is missing"))
    }

    /// The next plain word, if there is one.
    pub(crate) fn next_if_any(&mut self) -> Option<String> {
        self.plain.pop_front()
    }

    /// The value of that name, if it was given.
    pub(crate) fn named(&mut self, name: &str) -> Option<String> {
        let at = self.named.iter().position(|(there, _)| there == name)?;
        Some(self.named.remove(at).1)
    }

    /// The number of that name, if it was given.
    pub(crate) fn number(&mut self, name: &str) -> Result<Option<i64>, String> {
        self.named(name).map(|text| number(&text)).transpose()
    }

    /// The span of that name in milliseconds, if it was given.
    pub(crate) fn span(&mut self, name: &str) -> Result<Option<i64>, String> {
        self.named(name).map(|text| span(&text)).transpose()
    }

    /// Everything must have been taken.
    pub(crate) fn finish(self) -> Result<(), String> {
        let named = self.named.into_iter().map(|(name, _)| format!("{name}="));
        match self.plain.into_iter().chain(named).next() {
            Some(left) => Err(format!("`{left}` is not known here")),
            None => Ok(()),
        }
    }
}

/// A whole number.
pub(crate) fn number(text: &str) -> Result<i64, String> {
    text.parse().map_err(|_| format!("`{text}` is no whole number"))
}

const UNITS: [(&str, i64); 5] =
    [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// A span such as `50ms`, `1m30s` or `-1h`, in milliseconds.
pub(crate) fn span(text: &str) -> Result<i64, String> {
    let wrong = || format!("`{text}` is no span of time; write 50ms, 30s, 1m30s, 1h or 7d");
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text),
    };
    if rest.is_empty() {
        return Err(wrong());
    }
    let mut ms = 0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
        let (count, after) = rest.split_at(digits);
        let unit_end = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (name, after) = after.split_at(unit_end);
        let unit = UNITS.into_iter().find(|(unit, _)| *unit == name).ok_or_else(wrong)?;
        ms += number(count)? * unit.1;
        rest = after;
    }
    Ok(sign * ms)
}

/// A span as people say it, such as `1m30s`.
pub(crate) fn span_text(ms: i64) -> String {
    let (mut text, mut rest) = (String::new(), ms.abs());
    for (name, unit) in UNITS {
        if rest >= unit {
            text += &format!("{}{name}", rest / unit);
            rest %= unit;
        }
    }
    match ms {
        0 => "0s".to_owned(),
        1.. => text,
        _ => format!("-{text}"),
    }
}

/// What the parsers at the door say, as a story's mistake.
pub(crate) fn at_the_door<T, E: Debug>(parsed: Result<T, E>) -> Result<T, String> {
    parsed.map_err(|invalid| format!("the door would refuse this: {invalid:?}"))
}
