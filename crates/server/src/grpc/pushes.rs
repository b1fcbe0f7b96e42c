//! Leases as they are pushed to one worker. Payloads from the shelf are read only as fast as the worker
//! takes them: what waits for it in memory is bounded.

use std::sync::Arc;

use bytes::Bytes;
use tenure_coordinator::Grant;
use tenure_proto::v1;
use tenure_record::limits::PAYLOAD_BYTES_MAX;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::fast_path;
use crate::fetch::fetched;
use crate::limits::{PUSH_BYTES, PUSH_SHELVED_BYTES};
use crate::problem::Problem;

// A message that is under way leaves room for the payload that ends it.
const _: () = assert!(PUSH_BYTES + PAYLOAD_BYTES_MAX <= PUSH_SHELVED_BYTES);

/// Room for one worker.
pub(super) struct Pushes(Arc<Semaphore>);

impl Default for Pushes {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(PUSH_SHELVED_BYTES)))
    }
}

impl Pushes {
    /// A lease with its payload in memory, as soon as there is room for it.
    pub(super) async fn show(&self, grant: Grant) -> Result<v1::Lease, Problem> {
        if !grant.payload.is_shelved() {
            return Ok(fast_path::lease(grant));
        }
        // Whoever waits here waits only for messages that are sent and that the worker can read.
        let bytes = grant.payload.len() as u32;
        let room = Arc::clone(&self.0).acquire_many_owned(bytes).await;
        let room = room.map_err(|_| Problem::stopping())?;
        let mut lease = fast_path::lease(fetched(grant).await?);
        lease.payload = Bytes::from_owner(Held { bytes: lease.payload, _room: room });
        Ok(lease)
    }
}

/// Bytes that give their room back when they were sent.
struct Held {
    bytes: Bytes,
    _room: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}
