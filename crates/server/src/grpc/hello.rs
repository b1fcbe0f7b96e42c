//! The hello of a worker's stream.

use tenure_api as api;
use tenure_coordinator::Registration;
use tenure_core::command::LeaseRef;
use tenure_core::limits::LEASE_QUEUES_MAX;
use tenure_proto::v1;
use tenure_record::id::{LeaseId, TaskId};
use tenure_record::terms::LeaseMs;

use crate::limits::{DISCONNECT_GRACE_MS_DEFAULT, DISCONNECT_GRACE_MS_MAX};
use crate::problem::Problem;
use crate::wire::{request, terms};

/// A hello, parsed.
#[derive(Clone, Debug)]
pub(crate) struct Greeting {
    /// Who it is.
    pub(super) registration: Registration,
    /// How long its leases last, if not as each task says.
    pub(super) lease_ms: Option<LeaseMs>,
    /// How long its leases outlive a stream that is cut.
    pub(super) disconnect_grace_ms: u64,
    /// What it still has.
    pub(super) held: Vec<LeaseRef>,
}

/// A worker that begins.
pub(crate) fn hello(hello: v1::Hello) -> Result<Greeting, Problem> {
    let grace_ms = hello.disconnect_grace_ms.unwrap_or(DISCONNECT_GRACE_MS_DEFAULT);
    if grace_ms > DISCONNECT_GRACE_MS_MAX {
        let detail = format!(
            "disconnect_grace_ms is {grace_ms}; it must be from 0 to {DISCONNECT_GRACE_MS_MAX}"
        );
        return Err(Problem::invalid(detail));
    }
    let count = hello.queues.len();
    if !(1..=LEASE_QUEUES_MAX).contains(&count) {
        let detail = format!("queues has {count} names; it must have 1 to {LEASE_QUEUES_MAX}");
        return Err(Problem::invalid(detail));
    }
    let registration = api::Registration {
        name: None,
        queues: hello.queues,
        slots: Some(hello.slots),
        labels: hello.labels,
        draining: false,
    };
    Ok(Greeting {
        registration: request::registration(&hello.worker, registration)?,
        lease_ms: terms::lease_ms(hello.lease_ms)?,
        disconnect_grace_ms: grace_ms,
        held: hello.held.iter().map(lease_ref).collect(),
    })
}

fn lease_ref(lease: &v1::LeaseRef) -> LeaseRef {
    LeaseRef { task_id: TaskId(lease.task_id), lease_id: LeaseId(lease.lease_id) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hello_has_bounds() {
        let hello = |count: usize, disconnect_grace_ms| v1::Hello {
            worker: "w".to_owned(),
            queues: (0..count).map(|number| format!("q{number}")).collect(),
            disconnect_grace_ms,
            ..v1::Hello::default()
        };
        assert_eq!(super::hello(hello(1, None)).unwrap().disconnect_grace_ms, 5_000);
        assert_eq!(super::hello(hello(100, Some(0))).unwrap().disconnect_grace_ms, 0);
        assert!(super::hello(hello(0, None)).is_err());
        assert!(super::hello(hello(101, None)).is_err());
        assert!(super::hello(hello(1, Some(60_001))).is_err());
    }
}
