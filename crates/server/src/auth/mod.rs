//! Checks of the head of a request, before its body is read: form, origin, API key and media type.

pub(crate) mod guard;
pub(crate) mod key;
pub(crate) mod media;
pub(crate) mod origin;
pub(crate) mod strict;
