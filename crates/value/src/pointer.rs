//! JSON pointers (RFC 6901).

/// A name as one segment of a JSON pointer.
#[must_use]
pub fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
