//! The bounds of a value. Each has a name, a value and a place where it is enforced.

/// Levels of lists and maps in a value.
pub const VALUE_DEPTH_MAX: usize = 64;
/// Levels of lists and objects in a JSON text that has a canonical form.
pub const CANONICAL_DEPTH_MAX: usize = 128;
/// Bytes of a JSON pointer that a refused value shows; the end of a longer one.
pub const POINTER_SHOWN_BYTES_MAX: usize = 256;
/// Segments of a path.
pub const PATH_SEGMENTS_MAX: usize = 32;
