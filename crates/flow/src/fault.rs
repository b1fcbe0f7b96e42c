//! What is wrong with a definition: where, a code for programs, a sentence for people.

use std::fmt;

use tenure_value::shown_pointer;

/// One thing that is wrong with a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where: a JSON pointer (RFC 6901) into the definition; empty for the whole of it. Of a pointer
    /// that is very long, the end.
    pub pointer: String,
    /// Which kind of fault, for programs.
    pub code: FaultCode,
    /// What is wrong and what to do.
    pub message: String,
    /// Where in the text, if it was read from one and the place is known.
    pub place: Option<TextPosition>,
}

/// A place in a text, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TextPosition {
    /// The line.
    pub line: usize,
    /// The character in it.
    pub column: usize,
}

impl Fault {
    /// A fault whose place in the text is not known.
    #[must_use]
    pub fn new(pointer: &str, code: FaultCode, message: impl Into<String>) -> Self {
        let pointer = shown_pointer(pointer.to_owned());
        Self { pointer, code, message: message.into(), place: None }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(TextPosition { line, column }) = self.place {
            write!(f, "{line}:{column}: ")?;
        }
        let pointer = if self.pointer.is_empty() { "/" } else { &self.pointer };
        write!(f, "{pointer}: {} [{}]", self.message, self.code.as_str())
    }
}

impl std::error::Error for Fault {}

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// Which kind of fault it is. The texts are stable for ever.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum FaultCode {
            $($(#[$doc])* $name,)*
        }

        impl FaultCode {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The code as programs see it.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

codes! {
    /// The text is no YAML or no JSON, or is beyond a limit of it.
    Syntax = "syntax",
    /// A value of the wrong type.
    WrongType = "wrong_type",
    /// A value that is not among those allowed, or out of its range.
    BadValue = "bad_value",
    /// A field that must be there is not.
    MissingField = "missing_field",
    /// A field that nobody knows.
    UnknownField = "unknown_field",
    /// A field that does not belong to a node of this kind.
    FieldOfOtherKind = "field_of_other_kind",
    /// Fields that exclude each other, or one that needs another.
    FieldConflict = "field_conflict",
    /// More than a limit allows.
    TooMany = "too_many",
    /// A name that may not be one.
    BadName = "bad_name",
    /// Two things with one ref.
    DuplicateRef = "duplicate_ref",
    /// A ref that nothing has.
    UnknownRef = "unknown_ref",
    /// A node that no transition leads to.
    UnreachableNode = "unreachable_node",
    /// Transitions of one group that can never fire together.
    SplitGroup = "split_group",
    /// A join that names no group, or stands on a transition that is a fan-out itself.
    NotAGroup = "not_a_group",
    /// A group with two join targets.
    TwoJoinTargets = "two_join_targets",
    /// Two joins of one group that contradict each other.
    ContradictingJoins = "contradicting_joins",
    /// A join that waits for more branches than there can be.
    NeedTooLarge = "need_too_large",
    /// A cycle on which nothing waits and nothing counts.
    EndlessCycle = "endless_cycle",
    /// A merge that writes elsewhere than under `context.`, or a mapping whose target is none.
    BadTarget = "bad_target",
    /// An expression that does not parse, or is beyond a limit.
    BadExpression = "bad_expression",
    /// An expression with a function that does not exist.
    UnknownFunction = "unknown_function",
    /// An expression with a name that means nothing in its place.
    UnknownRoot = "unknown_root",
    /// A schema that is no JSON Schema, or refers to something outside of itself.
    BadSchema = "bad_schema",
}
