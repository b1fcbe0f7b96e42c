//! Workers and their leases. Only clients read a lease from its message: the server writes the message
//! itself, with the expiry by its log clock, which the outward model does not have.

use tenure_api::{
    Encoding, Lease, LeaseRequest, Page, PageQuery, Registration, SignedOff, Timestamp, Worker,
};

use super::{all, given};
use crate::v1;

impl From<v1::Lease> for Lease {
    fn from(lease: v1::Lease) -> Self {
        let v1::Lease {
            task_id,
            lease_id,
            attempt,
            queue,
            payload,
            tags,
            expires_at,
            log_expires_at: _,
            run,
            traceparent,
            name,
            checkpoint,
        } = lease;
        Self {
            task_id,
            lease_id,
            attempt,
            queue,
            name,
            payload: payload.into(),
            payload_encoding: Encoding::Json,
            tags,
            checkpoint: checkpoint.into(),
            checkpoint_encoding: Encoding::Json,
            expires_at: Timestamp(expires_at),
            run: run.map(Into::into),
            traceparent,
        }
    }
}

impl From<LeaseRequest> for v1::LeaseRequest {
    fn from(request: LeaseRequest) -> Self {
        let LeaseRequest { worker, queues, max, wait_ms, lease_ms } = request;
        Self { worker, queues, max, wait_ms: wait_ms.unwrap_or_default(), lease_ms }
    }
}

impl From<v1::LeaseRequest> for LeaseRequest {
    fn from(request: v1::LeaseRequest) -> Self {
        let v1::LeaseRequest { worker, queues, max, wait_ms, lease_ms } = request;
        Self { worker, queues, max, wait_ms: given(wait_ms), lease_ms }
    }
}

/// With the worker's id.
impl From<(String, Registration)> for v1::RegisterRequest {
    fn from((id, registration): (String, Registration)) -> Self {
        let Registration { name, queues, slots, labels, draining } = registration;
        Self { id, queues, slots, labels, draining, name }
    }
}

impl From<v1::RegisterRequest> for (String, Registration) {
    fn from(register: v1::RegisterRequest) -> Self {
        let v1::RegisterRequest { id, queues, slots, labels, draining, name } = register;
        (id, Registration { name, queues, slots, labels, draining })
    }
}

impl From<Worker> for v1::Worker {
    fn from(worker: Worker) -> Self {
        let Worker {
            id,
            name,
            connected,
            dead,
            last_seen_at,
            active_leases,
            queues,
            slots,
            labels,
            draining,
        } = worker;
        Self {
            id,
            connected,
            last_seen_at: last_seen_at.as_ms(),
            active_leases,
            queues,
            slots,
            labels,
            draining,
            name,
            dead,
        }
    }
}

impl From<v1::Worker> for Worker {
    fn from(worker: v1::Worker) -> Self {
        let v1::Worker {
            id,
            connected,
            last_seen_at,
            active_leases,
            queues,
            slots,
            labels,
            draining,
            name,
            dead,
        } = worker;
        Self {
            id,
            name,
            connected,
            dead,
            last_seen_at: Timestamp(last_seen_at),
            active_leases,
            queues,
            slots,
            labels,
            draining,
        }
    }
}

impl From<PageQuery> for v1::ListWorkersRequest {
    fn from(PageQuery { limit, cursor }: PageQuery) -> Self {
        Self { limit, cursor: cursor.unwrap_or_default() }
    }
}

impl From<v1::ListWorkersRequest> for PageQuery {
    fn from(v1::ListWorkersRequest { limit, cursor }: v1::ListWorkersRequest) -> Self {
        Self { limit, cursor: given(cursor) }
    }
}

impl From<Page<Worker>> for v1::ListWorkersResponse {
    fn from(Page { items, next_cursor }: Page<Worker>) -> Self {
        Self { workers: all(items), next_cursor: next_cursor.unwrap_or_default() }
    }
}

impl From<v1::ListWorkersResponse> for Page<Worker> {
    fn from(v1::ListWorkersResponse { workers, next_cursor }: v1::ListWorkersResponse) -> Self {
        Self { items: all(workers), next_cursor: given(next_cursor) }
    }
}

impl From<SignedOff> for v1::SignOffResponse {
    fn from(SignedOff { released }: SignedOff) -> Self {
        Self { released }
    }
}

impl From<v1::SignOffResponse> for SignedOff {
    fn from(v1::SignOffResponse { released }: v1::SignOffResponse) -> Self {
        Self { released }
    }
}
