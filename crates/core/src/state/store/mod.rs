//! The containers that hold the facts: paged and dense tables, blobs, chunked lists and id sets. They
//! know nothing of tasks.

mod blobs;
mod chunks;
mod dense;
mod id_set;
mod paged;

pub(crate) use self::blobs::{BlobKind, BlobRef, Blobs};
pub use self::blobs::{NearBytes, SharedBytes};
pub(crate) use self::chunks::Chunks;
pub(crate) use self::dense::{ColdRef, Dense, NameRef, QueueRef, ShelvedRef, WorkerRef};
pub(crate) use self::id_set::IdSet;
pub(crate) use self::paged::Paged;
