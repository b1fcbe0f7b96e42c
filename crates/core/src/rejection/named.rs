//! Enums whose variants know their own names.

/// Declares an enum of refusals whose variants know their names.
macro_rules! named {
    (
        $(#[$meta:meta])*
        pub enum $Enum:ident {
            $(
                $(#[$doc:meta])*
                $Variant:ident $({ $($(#[$about:meta])* $field:ident: $kind:ty,)* })?,
            )*
        }
    ) => {
        $(#[$meta])*
        pub enum $Enum {
            $($(#[$doc])* $Variant $({ $($(#[$about])* $field: $kind,)* })?,)*
        }

        impl $Enum {
            /// The name of the variant, for counts and logs.
            #[must_use]
            pub fn name(&self) -> &'static str {
                match self {
                    $($Enum::$Variant { .. } => stringify!($Variant),)*
                }
            }
        }
    };
}
