//! YAML 1.2 to values, by its core schema: `no` is a text, `null` is null, `0o17` is a number.
//!
//! The parser gives events, so nothing here calls itself. What YAML can say and JSON cannot (keys
//! that are no texts, tags of one's own, infinity, several documents) is refused.

use std::collections::BTreeMap;
use std::sync::Arc;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Span, StrInput, Tag};
use tenure_value::limits::VALUE_DEPTH_MAX;
use tenure_value::pointer::escaped;
use tenure_value::{Value, exact};

use crate::fault::{Fault, FaultCode, TextPosition};
use crate::limits::{DEFINITION_BYTES_MAX, YAML_ALIASED_VALUES_MAX, YAML_VALUES_MAX};
use tenure_code::Echo;

/// Where in a text each value stands, by its JSON pointer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places(BTreeMap<String, TextPosition>);

impl Places {
    /// The place of a value, or of the nearest one around it that is there.
    #[must_use]
    pub fn find(&self, pointer: &str) -> Option<TextPosition> {
        let mut pointer = pointer;
        loop {
            if let Some(place) = self.0.get(pointer) {
                return Some(*place);
            }
            pointer = &pointer[..pointer.rfind('/')?];
        }
    }
}

/// Reads YAML text.
pub fn parse(text: &str) -> Result<Value, Fault> {
    parse_placed(text).map(|(value, _)| value)
}

/// Reads YAML text, and remembers where everything stands.
pub fn parse_placed(text: &str) -> Result<(Value, Places), Fault> {
    if text.len() > DEFINITION_BYTES_MAX {
        let len = text.len();
        return Err(Fault::new(
            "",
            FaultCode::Syntax,
            format!("the text has {len} bytes; at most {DEFINITION_BYTES_MAX} are allowed"),
        ));
    }
    let mut reader = Reader::default();
    let mut parser: Parser<'_, StrInput<'_>> = Parser::new_from_str(text);
    while let Some(event) = parser.next_event() {
        let (event, span) = event.map_err(|error| unreadable(&error))?;
        reader.take(event, span)?;
    }
    let value = reader.root.ok_or_else(|| {
        Fault::new("", FaultCode::Syntax, "the text is empty; write a definition")
    })?;
    Ok((value, reader.places))
}

fn unreadable(error: &ScanError) -> Fault {
    fault(*error.marker(), format!("this is no YAML: {}", error.info()))
}

fn place(marker: Marker) -> TextPosition {
    TextPosition { line: marker.line(), column: marker.col() + 1 }
}

fn fault(marker: Marker, message: impl Into<String>) -> Fault {
    Fault { place: Some(place(marker)), ..Fault::new("", FaultCode::Syntax, message) }
}

/// A list or object that has begun and not ended.
struct Open {
    pointer: String,
    anchor: usize,
    parts: Parts,
}

enum Parts {
    List(Vec<Value>),
    Map { entries: BTreeMap<Arc<str>, Value>, key: Option<Arc<str>> },
}

#[derive(Default)]
struct Reader {
    open: Vec<Open>,
    root: Option<Value>,
    anchors: BTreeMap<usize, (Value, usize)>,
    places: Places,
    values: usize,
    aliased: usize,
}

impl Reader {
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), Fault> {
        let start = span.start;
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
            Event::DocumentStart(_) if self.root.is_some() => {
                Err(fault(start, "there is a second document; keep one to a file"))
            }
            Event::DocumentStart(_) => Ok(()),
            Event::Scalar(text, style, anchor, tag) => {
                if self.awaits_key() {
                    return self.key(&text, start);
                }
                let value = scalar(&text, style, tag.as_deref()).map_err(|message| Fault {
                    pointer: self.pointer(),
                    ..fault(start, message)
                })?;
                self.mark(start);
                self.value(value, anchor, 1, start)
            }
            Event::Alias(anchor) => self.alias(anchor, start),
            Event::SequenceStart(anchor, tag) => {
                self.begin(anchor, tag.as_deref(), "seq", Parts::List(Vec::new()), start)
            }
            Event::MappingStart(anchor, tag) => {
                let parts = Parts::Map { entries: BTreeMap::new(), key: None };
                self.begin(anchor, tag.as_deref(), "map", parts, start)
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(start),
        }
    }

    fn awaits_key(&self) -> bool {
        matches!(self.open.last(), Some(Open { parts: Parts::Map { key: None, .. }, .. }))
    }

    fn key(&mut self, text: &str, at: Marker) -> Result<(), Fault> {
        if let Some(Open { pointer, parts: Parts::Map { entries, key }, .. }) = self.open.last_mut()
        {
            if entries.contains_key(text) {
                let mut fault =
                    fault(at, format!("the key {} is there twice; keep one", Echo(text)));
                fault.pointer = format!("{pointer}/{}", escaped(text));
                return Err(fault);
            }
            *key = Some(text.into());
        }
        // An entry stands where its key does.
        self.mark(at);
        Ok(())
    }

    fn begin(
        &mut self,
        anchor: usize,
        tag: Option<&Tag>,
        own: &str,
        parts: Parts,
        at: Marker,
    ) -> Result<(), Fault> {
        if self.awaits_key() {
            return Err(fault(at, "a key must be a text"));
        }
        if tag.is_some_and(|tag| !(tag.is_yaml_core_schema() && tag.suffix == own)) {
            return Err(fault(at, "tags mean nothing here; leave it out"));
        }
        if self.open.len() == VALUE_DEPTH_MAX {
            let message =
                format!("lists and objects are nested deeper than {VALUE_DEPTH_MAX} levels");
            return Err(fault(at, message));
        }
        self.mark(at);
        let pointer = self.pointer();
        self.open.push(Open { pointer, anchor, parts });
        Ok(())
    }

    fn end(&mut self, at: Marker) -> Result<(), Fault> {
        let Some(open) = self.open.pop() else { return Err(fault(at, "this ends nothing")) };
        let value = match open.parts {
            Parts::List(items) => Value::list(items),
            Parts::Map { entries, .. } => Value::map(entries.into_iter().collect()),
        };
        // Its parts were counted when they came.
        self.value(value, open.anchor, 1, at)
    }

    fn alias(&mut self, anchor: usize, at: Marker) -> Result<(), Fault> {
        if self.awaits_key() {
            return Err(fault(at, "a key must be a text"));
        }
        let Some((value, count)) = self.anchors.get(&anchor).cloned() else {
            return Err(fault(at, "an alias stands inside of what it names"));
        };
        self.aliased += count;
        if self.aliased > YAML_ALIASED_VALUES_MAX {
            return Err(fault(
                at,
                format!("aliases stand for more than {YAML_ALIASED_VALUES_MAX} values"),
            ));
        }
        if self.open.len() + value.depth() > VALUE_DEPTH_MAX {
            let message =
                format!("lists and objects are nested deeper than {VALUE_DEPTH_MAX} levels");
            return Err(fault(at, message));
        }
        self.mark(at);
        self.value(value, 0, count, at)
    }

    fn value(
        &mut self,
        value: Value,
        anchor: usize,
        count: usize,
        at: Marker,
    ) -> Result<(), Fault> {
        self.values += count;
        if self.values > YAML_VALUES_MAX {
            return Err(fault(at, format!("there are more than {YAML_VALUES_MAX} values")));
        }
        if anchor > 0 {
            self.anchors.insert(anchor, (value.clone(), count_of(&value)));
        }
        match self.open.last_mut().map(|open| &mut open.parts) {
            None => self.root = Some(value),
            Some(Parts::List(items)) => items.push(value),
            Some(Parts::Map { entries, key }) => {
                let Some(key) = key.take() else { return Err(fault(at, "a key must be a text")) };
                entries.insert(key, value);
            }
        }
        Ok(())
    }

    /// Where the next value goes.
    fn pointer(&self) -> String {
        match self.open.last() {
            None => String::new(),
            Some(Open { pointer, parts: Parts::List(items), .. }) => {
                format!("{pointer}/{}", items.len())
            }
            Some(Open { pointer, parts: Parts::Map { key, .. }, .. }) => {
                format!("{pointer}/{}", escaped(key.as_deref().unwrap_or_default()))
            }
        }
    }

    fn mark(&mut self, at: Marker) {
        let pointer = self.pointer();
        self.places.0.entry(pointer).or_insert(place(at));
    }
}

/// How many values there are in it; bounded, because it was read from a bounded text.
fn count_of(value: &Value) -> usize {
    match value {
        Value::List(list) => 1 + list.as_slice().iter().map(count_of).sum::<usize>(),
        Value::Map(map) => 1 + map.entries().iter().map(|(_, v)| count_of(v)).sum::<usize>(),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Float(_) => 1,
        Value::Text(_) => 1,
    }
}

fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Result<Value, String> {
    let Some(tag) = tag else {
        return if style == ScalarStyle::Plain { plain(text) } else { Ok(Value::text(text)) };
    };
    if !tag.is_yaml_core_schema() {
        return Err("tags of one's own mean nothing here; leave it out".to_owned());
    }
    let value = if tag.suffix == "str" { Value::text(text) } else { plain(text)? };
    let fits = match tag.suffix.as_str() {
        "str" => true,
        "null" => value.is_null(),
        "bool" => value.as_bool().is_some(),
        "int" => matches!(value, Value::Int(_) | Value::Uint(_)),
        "float" => matches!(value, Value::Int(_) | Value::Uint(_) | Value::Float(_)),
        _ => return Err(format!("the tag {} means nothing here; leave it out", Echo(&tag.suffix))),
    };
    if fits {
        Ok(value)
    } else {
        Err(format!("{} is not what the tag !!{} says", Echo(text), tag.suffix))
    }
}

/// The core schema of YAML 1.2.
fn plain(text: &str) -> Result<Value, String> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Value::Null),
        "true" | "True" | "TRUE" => return Ok(Value::Bool(true)),
        "false" | "False" | "FALSE" => return Ok(Value::Bool(false)),
        ".nan" | ".NaN" | ".NAN" => return Err(unwritable(text)),
        _ => {}
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") {
        return Err(unwritable(text));
    }
    for (prefix, radix) in [("0o", 8), ("0x", 16)] {
        if let Some(digits) = text.strip_prefix(prefix)
            && !digits.is_empty()
            && digits.chars().all(|digit| digit.is_digit(radix))
        {
            let number = u64::from_str_radix(digits, radix);
            return number.map(Value::uint).map_err(|_| format!("{text} is too large"));
        }
    }
    if !is_number(unsigned) {
        return Ok(Value::text(text));
    }
    let bare = text.strip_prefix('+').unwrap_or(text);
    if let Ok(number) = bare.parse::<i64>() {
        return Ok(Value::Int(number));
    }
    if let Ok(number) = bare.parse::<u64>() {
        return Ok(Value::uint(number));
    }
    if let Some(message) = exact::refusal(bare) {
        return Err(message);
    }
    bare.parse().ok().and_then(Value::float).ok_or_else(|| format!("{text} is too large"))
}

fn unwritable(text: &str) -> String {
    format!("{text} is no number that JSON can write; put it in quotes if it is a text")
}

/// `12`, `1.`, `.5`, `1.5e-3`: digits with at most one point, and an exponent.
fn is_number(text: &str) -> bool {
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let all_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let exponent_fits = exponent
        .is_none_or(|exponent| all_digits(exponent.strip_prefix(['-', '+']).unwrap_or(exponent)));
    let mantissa_fits = match mantissa.split_once('.') {
        None => all_digits(mantissa),
        Some(("", fraction)) => all_digits(fraction),
        Some((whole, fraction)) => {
            all_digits(whole) && (fraction.is_empty() || all_digits(fraction))
        }
    };
    mantissa_fits && exponent_fits
}

#[cfg(test)]
mod tests;
