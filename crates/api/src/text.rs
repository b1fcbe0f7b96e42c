//! Enums that are text in JSON and keep a text that they do not know.

/// Declares an enum with a text for each variant, and `Other` for every other text.
macro_rules! text_enum {
    (
        $(#[$meta:meta])*
        $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal,)* }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$doc])* $variant,)*
            /// A text that this version does not know.
            Other(String),
        }

        impl $name {
            /// All values that this version knows.
            pub const ALL: [Self; [$($text),*].len()] = [$(Self::$variant),*];

            /// The value as text, as JSON has it.
            #[must_use]
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $text,)*
                    Self::Other(text) => text,
                }
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                match text {
                    $($text => Self::$variant,)*
                    other => Self::Other(other.to_owned()),
                }
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                match text.as_str() {
                    $($text => Self::$variant,)*
                    _ => Self::Other(text),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer).map(Self::from)
            }
        }

        #[cfg(feature = "openapi")]
        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                utoipa::openapi::schema::ObjectBuilder::new()
                    .schema_type(utoipa::openapi::schema::Type::String)
                    .enum_values(Some([$($text),*]))
                    .into()
            }
        }

        #[cfg(feature = "openapi")]
        impl utoipa::ToSchema for $name {}
    };
}

pub(crate) use text_enum;

#[cfg(test)]
mod tests {
    use crate::{RunState, TaskState};

    #[test]
    fn an_unknown_text_is_kept() {
        let state: TaskState = serde_json::from_str("\"PREEMPTED\"").unwrap();
        assert_eq!(state, TaskState::Other("PREEMPTED".to_owned()));
        assert_eq!(serde_json::to_string(&state).unwrap(), "\"PREEMPTED\"");
    }

    #[test]
    fn every_known_text_is_read_back() {
        for state in TaskState::ALL {
            assert_eq!(TaskState::from(state.as_str()), state);
            assert_eq!(TaskState::from(state.to_string()), state);
        }
        assert_eq!(RunState::from("TIMED_OUT"), RunState::TimedOut);
    }
}
