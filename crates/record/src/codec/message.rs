//! Messages whose Rust type is their wire format: one declaration gives the struct, its encoder
//! and its borrowing decoder, with the field numbers in plain sight.

use std::borrow::Cow;
use std::sync::Arc;

use super::wire::{Malformed, Reader, Wire, put_bytes, put_nested, put_varint};
use crate::id::{GroupId, LeaseId, Lsn, RunId, TaskId, TokenId};
use crate::name::Text;
use crate::time::Timestamp;

/// One value in a message. As in proto3, a value that equals its default is left out.
pub(crate) trait Field<'a>: Default {
    fn is_default(&self) -> bool;
    /// Writes key and value, default or not.
    fn put(&self, tag: u32, out: &mut Vec<u8>);
    fn take(&mut self, wire: Wire, from: &mut Reader<'a>) -> Result<(), Malformed>;

    /// Reads a value that has none before it.
    #[inline]
    fn read(wire: Wire, from: &mut Reader<'a>) -> Result<Self, Malformed> {
        let mut value = Self::default();
        value.take(wire, from)?;
        Ok(value)
    }

    #[inline]
    fn put_unless_default(&self, tag: u32, out: &mut Vec<u8>) {
        if !self.is_default() {
            self.put(tag, out);
        }
    }
}

/// Names in a declaration, with their numbers on the wire.
pub(crate) type Numbers = &'static [(&'static str, u32)];

/// The number under which a name was declared; zero if there is none.
pub(crate) const fn number_of(numbers: Numbers, name: &str) -> u32 {
    let mut at = 0;
    while at < numbers.len() {
        let (declared, number) = numbers[at];
        if is_equal(declared.as_bytes(), name.as_bytes()) {
            return number;
        }
        at += 1;
    }
    0
}

pub(crate) const fn is_equal(a: &[u8], b: &[u8]) -> bool {
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}

/// One variant of a declared enum.
#[derive(Clone, Copy)]
pub(crate) struct Variant {
    pub name: &'static str,
    pub number: u32,
    /// The fields of its message.
    pub fields: Numbers,
}

/// A message: fields in the order of their numbers.
pub(crate) trait Message<'a>: Default {
    const NAME: &'static str;
    /// The fields and their numbers.
    const FIELDS: Numbers;
    fn put_fields(&self, out: &mut Vec<u8>);
    fn take_field(&mut self, tag: u32, wire: Wire, from: &mut Reader<'a>) -> Result<(), Malformed>;

    #[inline]
    fn decode(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut message = Self::default();
        let mut from = Reader::new(bytes);
        while let Some((tag, wire)) = from.key()? {
            message.take_field(tag, wire, &mut from)?;
        }
        Ok(message)
    }
}

/// A message that is seldom and long is kept elsewhere, so that the others are moved at little cost.
impl<'a, M: Message<'a>> Message<'a> for Box<M> {
    const NAME: &'static str = M::NAME;
    const FIELDS: Numbers = M::FIELDS;

    fn put_fields(&self, out: &mut Vec<u8>) {
        (**self).put_fields(out);
    }

    fn take_field(&mut self, tag: u32, wire: Wire, from: &mut Reader<'a>) -> Result<(), Malformed> {
        (**self).take_field(tag, wire, from)
    }
}

/// Declares a message: `number => field: Type`.
macro_rules! message {
    ($(
        $(#[$doc:meta])*
        pub struct $name:ident $(<$life:lifetime>)? {
            $($(#[$field_doc:meta])* $tag:literal => $field:ident: $type:ty,)*
        }
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct $name $(<$life>)? {
            $($(#[$field_doc])* pub $field: $type,)*
        }

        $crate::codec::message!(@impl $name $(<$life>)? { $($tag => $field,)* });
    )*};
    (@impl $name:ident <$life:lifetime> { $($tag:literal => $field:ident,)* }) => {
        impl<$life> $crate::codec::Message<$life> for $name<$life> {
            $crate::codec::message!(@body $life $name { $($tag => $field,)* });
        }
    };
    (@impl $name:ident { $($tag:literal => $field:ident,)* }) => {
        impl<'a> $crate::codec::Message<'a> for $name {
            $crate::codec::message!(@body 'a $name { $($tag => $field,)* });
        }
    };
    (@body $life:lifetime $name:ident { $($tag:literal => $field:ident,)* }) => {
        const NAME: &'static str = stringify!($name);
        const FIELDS: $crate::codec::Numbers = &[$((stringify!($field), $tag),)*];

        fn put_fields(&self, out: &mut Vec<u8>) {
            $($crate::codec::Field::put_unless_default(&self.$field, $tag, out);)*
        }

        #[inline]
        fn take_field(
            &mut self,
            tag: u32,
            wire: $crate::codec::Wire,
            from: &mut $crate::codec::Reader<$life>,
        ) -> Result<(), $crate::codec::Malformed> {
            match tag {
                $($tag => $crate::codec::Field::take(&mut self.$field, wire, from),)*
                _ => Err($crate::codec::Malformed::unknown_field(Self::NAME, tag)),
            }
        }
    };
}
pub(crate) use message;

/// Declares an enum of messages, of which exactly one is written: `number => Variant(Type)`.
macro_rules! one_of {
    (
        $(#[$doc:meta])*
        pub enum $name:ident<$life:lifetime> {
            $($(#[$variant_doc:meta])* $tag:literal => $variant:ident($type:ty),)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        // Events are built and used in place; a box would cost an allocation for each.
        #[allow(clippy::large_enum_variant)]
        pub enum $name<$life> {
            $($(#[$variant_doc])* $variant($type),)*
        }

        impl<$life> $name<$life> {
            /// What may be written, with the numbers on the wire.
            #[allow(dead_code, reason = "not every enum is looked up by name")]
            pub(crate) const VARIANTS: &'static [$crate::codec::Variant] = &[$(
                $crate::codec::Variant {
                    name: stringify!($variant),
                    number: $tag,
                    fields: <$type as $crate::codec::Message<$life>>::FIELDS,
                },
            )*];

            /// What it is called, in the log and outside.
            #[must_use]
            pub fn name(&self) -> &'static str {
                match self {
                    $($name::$variant(_) => stringify!($variant),)*
                }
            }

            pub(crate) fn put_one(&self, out: &mut Vec<u8>) {
                match self {
                    $($name::$variant(value) => $crate::codec::Field::put(value, $tag, out),)*
                }
            }

            pub(crate) fn take_one(
                tag: u32,
                wire: $crate::codec::Wire,
                from: &mut $crate::codec::Reader<$life>,
            ) -> Result<Self, $crate::codec::Malformed> {
                match tag {
                    $($tag => {
                        <$type as $crate::codec::Field<$life>>::read(wire, from)
                            .map($name::$variant)
                    })*
                    _ => Err($crate::codec::Malformed::unknown_field(stringify!($name), tag)),
                }
            }
        }
    };
}
pub(crate) use one_of;

fn expect_wire(wire: Wire, want: Wire) -> Result<(), Malformed> {
    if wire == want {
        Ok(())
    } else {
        Err(Malformed::new(format!("{wire:?} where {want:?} belongs")))
    }
}

#[inline]
pub(crate) fn take_number(wire: Wire, from: &mut Reader<'_>) -> Result<u64, Malformed> {
    expect_wire(wire, Wire::Varint)?;
    from.varint()
}

/// Declares types that are one number on the wire.
macro_rules! number_field {
    ($($type:ty: $to:expr, $from:expr;)*) => {$(
        impl $crate::codec::Field<'_> for $type {
            #[inline]
            fn is_default(&self) -> bool {
                $to(*self) == 0
            }

            #[inline]
            fn put(&self, tag: u32, out: &mut Vec<u8>) {
                $crate::codec::put_number(tag, $to(*self), out);
            }

            #[inline]
            fn take(
                &mut self,
                wire: $crate::codec::Wire,
                from: &mut $crate::codec::Reader<'_>,
            ) -> Result<(), $crate::codec::Malformed> {
                let number = $crate::codec::take_number(wire, from)?;
                *self = $from(number)
                    .ok_or_else(|| $crate::codec::Malformed::no_such(number, stringify!($type)))?;
                Ok(())
            }
        }
    )*};
}
pub(crate) use number_field;

number_field! {
    u64: |n: u64| n, Some;
    u32: u64::from, |n: u64| u32::try_from(n).ok();
    u16: u64::from, |n: u64| u16::try_from(n).ok();
    bool: u64::from, |n: u64| match n { 0 => Some(false), 1 => Some(true), _ => None };
    TaskId: |id: TaskId| id.0, |n: u64| Some(TaskId(n));
    LeaseId: |id: LeaseId| id.0, |n: u64| Some(LeaseId(n));
    RunId: |id: RunId| id.0, |n: u64| Some(RunId(n));
    TokenId: |id: TokenId| u64::from(id.0), |n: u64| u32::try_from(n).ok().map(TokenId);
    GroupId: |id: GroupId| u64::from(id.0), |n: u64| u32::try_from(n).ok().map(GroupId);
    Lsn: |lsn: Lsn| lsn.0, |n: u64| Some(Lsn(n));
    Timestamp: |at: Timestamp| at.0, |n: u64| Some(Timestamp(n));
}

impl<'a> Field<'a> for Text<'a> {
    fn is_default(&self) -> bool {
        self.as_str().is_empty()
    }

    fn put(&self, tag: u32, out: &mut Vec<u8>) {
        put_bytes(tag, self.as_str().as_bytes(), out);
    }

    fn take(&mut self, wire: Wire, from: &mut Reader<'a>) -> Result<(), Malformed> {
        expect_wire(wire, Wire::Bytes)?;
        let text = std::str::from_utf8(from.bytes()?)
            .map_err(|_| Malformed::new("a text is not UTF-8"))?;
        *self = Text::Borrowed(text);
        Ok(())
    }
}

/// A text that is kept beyond the bytes that it was read from.
impl Field<'_> for Arc<str> {
    fn is_default(&self) -> bool {
        self.is_empty()
    }

    fn put(&self, tag: u32, out: &mut Vec<u8>) {
        put_bytes(tag, self.as_bytes(), out);
    }

    fn take(&mut self, wire: Wire, from: &mut Reader<'_>) -> Result<(), Malformed> {
        *self = Text::read(wire, from)?.to_shared();
        Ok(())
    }
}

impl<'a> Field<'a> for &'a [u8] {
    fn is_default(&self) -> bool {
        self.is_empty()
    }

    fn put(&self, tag: u32, out: &mut Vec<u8>) {
        put_bytes(tag, self, out);
    }

    fn take(&mut self, wire: Wire, from: &mut Reader<'a>) -> Result<(), Malformed> {
        expect_wire(wire, Wire::Bytes)?;
        *self = from.bytes()?;
        Ok(())
    }
}

/// Borrowed when it was read; owned when it was made while deciding.
impl<'a> Field<'a> for Cow<'a, [u8]> {
    fn is_default(&self) -> bool {
        self.is_empty()
    }

    fn put(&self, tag: u32, out: &mut Vec<u8>) {
        put_bytes(tag, self, out);
    }

    fn take(&mut self, wire: Wire, from: &mut Reader<'a>) -> Result<(), Malformed> {
        expect_wire(wire, Wire::Bytes)?;
        *self = Cow::Borrowed(from.bytes()?);
        Ok(())
    }
}

impl<'a, M: Message<'a>> Field<'a> for M {
    /// A message says something by being there.
    fn is_default(&self) -> bool {
        false
    }

    fn put(&self, tag: u32, out: &mut Vec<u8>) {
        put_nested(tag, out, |out| self.put_fields(out));
    }

    fn take(&mut self, wire: Wire, from: &mut Reader<'a>) -> Result<(), Malformed> {
        *self = Self::read(wire, from)?;
        Ok(())
    }

    #[inline]
    fn read(wire: Wire, from: &mut Reader<'a>) -> Result<Self, Malformed> {
        expect_wire(wire, Wire::Bytes)?;
        M::decode(from.bytes()?)
    }
}

impl<'a, F: Field<'a>> Field<'a> for Option<F> {
    fn is_default(&self) -> bool {
        self.is_none()
    }

    fn put(&self, tag: u32, out: &mut Vec<u8>) {
        if let Some(value) = self {
            value.put(tag, out);
        }
    }

    fn take(&mut self, wire: Wire, from: &mut Reader<'a>) -> Result<(), Malformed> {
        *self = Some(F::read(wire, from)?);
        Ok(())
    }
}

impl<'a, M: Message<'a>> Field<'a> for Vec<M> {
    fn is_default(&self) -> bool {
        self.is_empty()
    }

    fn put(&self, tag: u32, out: &mut Vec<u8>) {
        for item in self {
            item.put(tag, out);
        }
    }

    fn take(&mut self, wire: Wire, from: &mut Reader<'a>) -> Result<(), Malformed> {
        // A vector begins with room for four. Of long items that is more than allocators have small
        // blocks for, and most records have one.
        if size_of::<M>() > LONG_ITEM_BYTES && self.capacity() == 0 {
            self.reserve_exact(1);
        }
        self.push(M::read(wire, from)?);
        Ok(())
    }
}

/// Four items of this size fit one KiB.
const LONG_ITEM_BYTES: usize = 256;

impl<'a> Field<'a> for Vec<Text<'a>> {
    fn is_default(&self) -> bool {
        self.is_empty()
    }

    fn put(&self, tag: u32, out: &mut Vec<u8>) {
        for text in self {
            text.put(tag, out);
        }
    }

    fn take(&mut self, wire: Wire, from: &mut Reader<'a>) -> Result<(), Malformed> {
        self.push(Text::read(wire, from)?);
        Ok(())
    }
}

/// Ids and other numbers are packed: one key for all of them.
macro_rules! packed_field {
    ($($type:ty: $to:expr, $from:expr;)*) => {$(
        impl Field<'_> for Vec<$type> {
            fn is_default(&self) -> bool {
                self.is_empty()
            }

            fn put(&self, tag: u32, out: &mut Vec<u8>) {
                put_nested(tag, out, |out| self.iter().for_each(|id| put_varint($to(*id), out)));
            }

            fn take(&mut self, wire: Wire, from: &mut Reader<'_>) -> Result<(), Malformed> {
                expect_wire(wire, Wire::Bytes)?;
                let mut packed = Reader::new(from.bytes()?);
                while !packed.is_empty() {
                    let number = packed.varint()?;
                    self.push(
                        $from(number)
                            .ok_or_else(|| Malformed::no_such(number, stringify!($type)))?,
                    );
                }
                Ok(())
            }
        }
    )*};
}

packed_field! {
    u32: u64::from, |n: u64| u32::try_from(n).ok();
    TaskId: |id: TaskId| id.0, |n: u64| Some(TaskId(n));
    RunId: |id: RunId| id.0, |n: u64| Some(RunId(n));
    TokenId: |id: TokenId| u64::from(id.0), |n: u64| u32::try_from(n).ok().map(TokenId);
    GroupId: |id: GroupId| u64::from(id.0), |n: u64| u32::try_from(n).ok().map(GroupId);
}
