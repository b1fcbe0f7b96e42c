//! The status of a server, and its snapshots.

use tenure_api::{ArchiveStatus, MemoryStatus, Snapshot, Status, Timestamp};

use crate::v1;

impl From<Status> for v1::ServerStatus {
    fn from(status: Status) -> Self {
        let Status {
            version,
            role,
            lsn,
            durable_lsn,
            epoch,
            state_hash,
            tasks,
            runs,
            ending_runs,
            parked_runs,
            workflows,
            parked_leases,
            parked_readers,
            snapshot_lsn,
            log_oldest_lsn,
            log_bytes,
            archive,
            log_time_ahead_ms,
            memory,
            uptime_ms,
            now,
        } = status;
        Self {
            version,
            role,
            lsn,
            durable_lsn,
            epoch,
            state_hash,
            tasks,
            parked_leases,
            parked_readers,
            uptime_ms,
            now: now.as_ms(),
            snapshot_lsn,
            log_oldest_lsn,
            log_bytes,
            runs,
            workflows,
            archive: archive.map(Into::into),
            log_time_ahead_ms,
            memory: Some(memory.into()),
            ending_runs,
            parked_runs,
        }
    }
}

impl From<v1::ServerStatus> for Status {
    fn from(status: v1::ServerStatus) -> Self {
        let v1::ServerStatus {
            version,
            role,
            lsn,
            durable_lsn,
            epoch,
            state_hash,
            tasks,
            parked_leases,
            parked_readers,
            uptime_ms,
            now,
            snapshot_lsn,
            log_oldest_lsn,
            log_bytes,
            runs,
            workflows,
            archive,
            log_time_ahead_ms,
            memory,
            ending_runs,
            parked_runs,
        } = status;
        Self {
            version,
            role,
            lsn,
            durable_lsn,
            epoch,
            state_hash,
            tasks,
            runs,
            ending_runs,
            parked_runs,
            workflows,
            parked_leases,
            parked_readers,
            snapshot_lsn,
            log_oldest_lsn,
            log_bytes,
            archive: archive.map(Into::into),
            log_time_ahead_ms,
            memory: memory.unwrap_or_default().into(),
            uptime_ms,
            now: Timestamp(now),
        }
    }
}

impl From<MemoryStatus> for v1::MemoryStatus {
    fn from(MemoryStatus { used_bytes, max_bytes, full, pools }: MemoryStatus) -> Self {
        Self { used_bytes, max_bytes, full, pools }
    }
}

impl From<v1::MemoryStatus> for MemoryStatus {
    fn from(v1::MemoryStatus { used_bytes, max_bytes, full, pools }: v1::MemoryStatus) -> Self {
        Self { used_bytes, max_bytes, full, pools }
    }
}

impl From<ArchiveStatus> for v1::ArchiveStatus {
    fn from(status: ArchiveStatus) -> Self {
        let ArchiveStatus { folder, archived, bytes, failing, failing_ms } = status;
        Self { folder, archived, bytes, failing, failing_ms }
    }
}

impl From<v1::ArchiveStatus> for ArchiveStatus {
    fn from(status: v1::ArchiveStatus) -> Self {
        let v1::ArchiveStatus { folder, archived, bytes, failing, failing_ms } = status;
        Self { folder, archived, bytes, failing, failing_ms }
    }
}

impl From<Snapshot> for v1::Snapshot {
    fn from(Snapshot { lsn, state_hash, tasks, bytes, took_ms }: Snapshot) -> Self {
        Self { lsn, state_hash, tasks, bytes, took_ms }
    }
}

impl From<v1::Snapshot> for Snapshot {
    fn from(v1::Snapshot { lsn, state_hash, tasks, bytes, took_ms }: v1::Snapshot) -> Self {
        Self { lsn, state_hash, tasks, bytes, took_ms }
    }
}
