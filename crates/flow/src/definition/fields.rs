//! An object of a definition, read field by field. Whatever is wrong is noted, and reading goes on.

use std::sync::Arc;

use tenure_code::Echo;
use tenure_value::pointer::escaped;
use tenure_value::{Map, Path, Value};

use super::name::{check_len, suggestion};
use super::roots::{Site, Use};
use crate::expression::Expression;
use crate::fault::{Fault, FaultCode};
use crate::limits::{FAULTS_MAX, MAPPING_ENTRIES_MAX};
use crate::mapping::{Entry, Mapping};
use crate::schema::Schema;

/// What was found so far: faults, and the expressions whose names are looked at in the end.
#[derive(Default)]
pub(super) struct Findings {
    faults: Vec<Fault>,
    pub(super) uses: Vec<Use>,
}

impl Findings {
    pub(super) fn add(&mut self, pointer: &str, code: FaultCode, message: impl Into<String>) {
        // One thing is wrong once, however many checks stumble over it.
        let fault = Fault::new(pointer, code, message);
        if self.faults.len() < FAULTS_MAX && !self.faults.contains(&fault) {
            self.faults.push(fault);
        }
    }

    pub(super) fn has(&self, code: FaultCode) -> bool {
        self.faults.iter().any(|fault| fault.code == code)
    }

    pub(super) fn into_faults(self) -> Vec<Fault> {
        self.faults
    }
}

/// Where the targets of a mapping lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Targets {
    /// Paths in an object that is made: a payload, an output.
    Plain,
    /// `context.…` and `branch.output`.
    Scope,
}

/// An object, and which of its fields were asked for.
pub(super) struct Fields<'a> {
    pub(super) pointer: String,
    map: &'a Map,
    known: Vec<&'static str>,
}

impl<'a> Fields<'a> {
    pub(super) fn open(value: &'a Value, pointer: String, found: &mut Findings) -> Option<Self> {
        let Value::Map(map) = value else {
            let kind = value.kind();
            found.add(
                &pointer,
                FaultCode::WrongType,
                format!("this is {kind}; it must be an object"),
            );
            return None;
        };
        Some(Self { pointer, map, known: Vec::new() })
    }

    /// The pointer of a field.
    pub(super) fn at(&self, field: &str) -> String {
        format!("{}/{}", self.pointer, escaped(field))
    }

    pub(super) fn get(&mut self, field: &'static str) -> Option<&'a Value> {
        self.known.push(field);
        self.map.get(field)
    }

    pub(super) fn is_there(&self, field: &str) -> bool {
        self.map.get(field).is_some()
    }

    /// The field, which must be there.
    pub(super) fn need(&mut self, field: &'static str, found: &mut Findings) -> Option<&'a Value> {
        let value = self.get(field);
        if value.is_none() {
            let message = format!("`{field}` is missing; it must be given");
            found.add(&self.pointer, FaultCode::MissingField, message);
        }
        value
    }

    /// Fields that nobody asked for are faults.
    pub(super) fn end(self, found: &mut Findings) {
        for (field, _) in self.map.entries() {
            if !self.known.contains(&&**field) {
                let near = suggestion(field, self.known.iter().copied());
                let message = format!("the field {} is unknown{near}", Echo(field));
                found.add(&self.at(field), FaultCode::UnknownField, message);
            }
        }
    }

    fn wrong_type(&self, field: &str, value: &Value, wanted: &str, found: &mut Findings) {
        let kind = value.kind();
        found.add(
            &self.at(field),
            FaultCode::WrongType,
            format!("this is {kind}; it must be {wanted}"),
        );
    }

    pub(super) fn bad(&self, field: &str, message: impl Into<String>, found: &mut Findings) {
        found.add(&self.at(field), FaultCode::BadValue, message);
    }

    pub(super) fn text(&mut self, field: &'static str, found: &mut Findings) -> Option<Arc<str>> {
        let value = self.get(field)?;
        if let Value::Text(text) = value {
            return Some(Arc::clone(text));
        }
        self.wrong_type(field, value, "a string", found);
        None
    }

    /// A text that is a name by one of the checks of [`super::name`].
    pub(super) fn name(
        &mut self,
        field: &'static str,
        check: fn(&str) -> Result<(), String>,
        found: &mut Findings,
    ) -> Option<Arc<str>> {
        let text = self.text(field, found)?;
        if let Err(message) = check(&text) {
            found.add(&self.at(field), FaultCode::BadName, message);
            return None;
        }
        Some(text)
    }

    pub(super) fn integer(
        &mut self,
        field: &'static str,
        (min, max): (i64, i64),
        found: &mut Findings,
    ) -> Option<i64> {
        let value = self.get(field)?;
        let number = match value {
            Value::Int(number) => i128::from(*number),
            Value::Uint(number) => i128::from(*number),
            Value::Null
            | Value::Bool(_)
            | Value::Float(_)
            | Value::Text(_)
            | Value::List(_)
            | Value::Map(_) => {
                self.wrong_type(field, value, "an integer", found);
                return None;
            }
        };
        let fits = i64::try_from(number).ok().filter(|number| (min..=max).contains(number));
        if fits.is_none() {
            self.bad(field, format!("this is {number}; it must be from {min} to {max}"), found);
        }
        fits
    }

    /// An integer without a sign that fits the range.
    pub(super) fn count<T: TryFrom<i64>>(
        &mut self,
        field: &'static str,
        range: (i64, i64),
        found: &mut Findings,
    ) -> Option<T> {
        self.integer(field, range, found).and_then(|number| T::try_from(number).ok())
    }

    pub(super) fn truth(&mut self, field: &'static str, found: &mut Findings) -> Option<bool> {
        let value = self.get(field)?;
        if let Value::Bool(truth) = value {
            return Some(*truth);
        }
        self.wrong_type(field, value, "true or false", found);
        None
    }

    pub(super) fn choice<T: Copy>(
        &mut self,
        field: &'static str,
        choices: &[(&str, T)],
        found: &mut Findings,
    ) -> Option<T> {
        let text = self.text(field, found)?;
        let chosen = choices.iter().find(|(name, _)| *name == &*text);
        if chosen.is_none() {
            let names = choices.iter().map(|(name, _)| format!("`{name}`")).collect::<Vec<_>>();
            let near = suggestion(&text, choices.iter().map(|(name, _)| *name));
            let message = format!("{} is none of {}{near}", Echo(&text), names.join(", "));
            self.bad(field, message, found);
        }
        chosen.map(|(_, choice)| *choice)
    }

    pub(super) fn list(
        &mut self,
        field: &'static str,
        found: &mut Findings,
    ) -> Option<&'a [Value]> {
        let value = self.get(field)?;
        if let Value::List(list) = value {
            return Some(list.as_slice());
        }
        self.wrong_type(field, value, "a list", found);
        None
    }

    /// A list of at most so many; what is beyond is not looked at.
    pub(super) fn short_list(
        &mut self,
        field: &'static str,
        count_max: usize,
        found: &mut Findings,
    ) -> Option<&'a [Value]> {
        let list = self.list(field, found)?;
        if list.len() > count_max {
            let count = list.len();
            let message = format!("there are {count}; at most {count_max} are allowed");
            found.add(&self.at(field), FaultCode::TooMany, message);
            return Some(&list[..count_max]);
        }
        Some(list)
    }

    pub(super) fn object(
        &mut self,
        field: &'static str,
        found: &mut Findings,
    ) -> Option<Fields<'a>> {
        let pointer = self.at(field);
        Fields::open(self.get(field)?, pointer, found)
    }

    pub(super) fn expression(
        &mut self,
        field: &'static str,
        site: Site,
        found: &mut Findings,
    ) -> Option<Expression> {
        let pointer = self.at(field);
        expression(self.get(field)?, pointer, site, found)
    }

    pub(super) fn schema(&mut self, field: &'static str, found: &mut Findings) -> Option<Schema> {
        let source = self.get(field)?;
        match Schema::compile(source) {
            Ok(schema) => Some(schema),
            Err(fault) => {
                let pointer = format!("{}{}", self.at(field), fault.pointer);
                found.add(&pointer, FaultCode::BadSchema, fault.message);
                None
            }
        }
    }

    pub(super) fn mapping(
        &mut self,
        field: &'static str,
        targets: Targets,
        site: &Site,
        found: &mut Findings,
    ) -> Option<Mapping> {
        let entries = self.object(field, found)?;
        if entries.map.len() > MAPPING_ENTRIES_MAX {
            let count = entries.map.len();
            let message = format!("there are {count}; at most {MAPPING_ENTRIES_MAX} are allowed");
            found.add(&entries.pointer, FaultCode::TooMany, message);
            return None;
        }
        let mut mapped = Vec::new();
        for (target, source) in entries.map.entries() {
            let pointer = entries.at(target);
            let target = target_of(target, targets, &pointer, found);
            let source = expression(source, pointer, site.clone(), found);
            if let (Some(target), Some(source)) = (target, source) {
                mapped.push(Entry { target, source });
            }
        }
        Some(Mapping::new(mapped))
    }

    /// Texts by name: tags.
    pub(super) fn texts(
        &mut self,
        field: &'static str,
        (count_max, bytes_max): (usize, usize),
        found: &mut Findings,
    ) -> Vec<(Arc<str>, Arc<str>)> {
        let Some(entries) = self.object(field, found) else { return Vec::new() };
        if entries.map.len() > count_max {
            let count = entries.map.len();
            let message = format!("there are {count}; at most {count_max} are allowed");
            found.add(&entries.pointer, FaultCode::TooMany, message);
        }
        let mut texts = Vec::new();
        for (key, value) in entries.map.entries() {
            let Value::Text(text) = value else {
                let kind = value.kind();
                let message = format!("this is {kind}; it must be a string");
                found.add(&entries.at(key), FaultCode::WrongType, message);
                continue;
            };
            let is_long = text.len() > bytes_max || text.chars().any(char::is_control);
            if check_len(key, bytes_max).is_err() || is_long {
                let message = format!(
                    "a key has 1 to {bytes_max} bytes, a value at most {bytes_max}, and neither has \
                     control characters"
                );
                entries.bad(key, message, found);
            }
            texts.push((Arc::clone(key), Arc::clone(text)));
        }
        texts
    }
}

pub(super) fn expression(
    value: &Value,
    pointer: String,
    site: Site,
    found: &mut Findings,
) -> Option<Expression> {
    let Value::Text(text) = value else {
        let kind = value.kind();
        let message = format!("this is {kind}; an expression is a string, in quotes if need be");
        found.add(&pointer, FaultCode::WrongType, message);
        return None;
    };
    match Expression::parse(text) {
        Ok(expression) => {
            found.uses.push(Use { pointer, expression: expression.clone(), site });
            Some(expression)
        }
        Err(fault) => {
            found.add(&pointer, fault.code, fault.message);
            None
        }
    }
}

fn target_of(text: &str, targets: Targets, pointer: &str, found: &mut Findings) -> Option<Path> {
    let path = match Path::parse(text) {
        Ok(path) => path,
        Err(fault) => {
            found.add(pointer, FaultCode::BadTarget, fault.message);
            return None;
        }
    };
    let segments: Vec<&str> = path.segments().iter().map(|segment| &**segment).collect();
    let fits = match targets {
        Targets::Plain => true,
        Targets::Scope => matches!(segments[..], ["context", _, ..] | ["branch", "output", ..]),
    };
    if !fits {
        let message = format!(
            "{} cannot be written to; targets are `context.<name>` and `branch.output`",
            Echo(text)
        );
        found.add(pointer, FaultCode::BadTarget, message);
        return None;
    }
    Some(path)
}
