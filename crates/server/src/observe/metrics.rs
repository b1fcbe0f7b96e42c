//! What is counted at the doors, for Prometheus. What the engine counts is asked of it.

use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use tenure_code::Code;
use tenure_coordinator::{Memory, RUN_STATES, Status};
use tenure_core::state::StateBytes;
use tenure_record::state::TaskState;

use crate::app::App;
use crate::archive::ArchiveNews;
use crate::system::memory::resident_bytes;

/// Counters of the doors.
#[derive(Debug)]
pub(crate) struct Metrics {
    requests: Family<RequestLabels, Counter>,
    refused: Family<CodeLabel, Counter>,
    pub(crate) seconds: Histogram,
    pub(crate) connections: Gauge,
    pub(crate) connections_refused: Counter,
    pub(crate) connections_evicted: Counter,
    pub(crate) events_sent: Counter,
    pub(crate) subscribers_dropped: Counter,
    pub(crate) refused_unread: Counter,
    pub(crate) readers_cut: Counter,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    route: String,
    status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CodeLabel {
    code: Shown,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabel {
    state: Shown,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PoolLabel {
    pool: Shown,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PartLabel {
    part: Shown,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Shown(&'static str);

impl EncodeLabelValue for Shown {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), std::fmt::Error> {
        self.0.encode(encoder)
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            requests: Family::default(),
            refused: Family::default(),
            seconds: Histogram::new(exponential_buckets(0.000_1, 2.0, 18)),
            connections: Gauge::default(),
            connections_refused: Counter::default(),
            connections_evicted: Counter::default(),
            events_sent: Counter::default(),
            subscribers_dropped: Counter::default(),
            refused_unread: Counter::default(),
            readers_cut: Counter::default(),
        }
    }
}

impl Metrics {
    /// A request was answered. The route is the pattern, so strangers cannot make up new ones.
    pub(crate) fn answered(&self, route: &str, status: u16, seconds: f64) {
        self.requests.get_or_create(&RequestLabels { route: route.to_owned(), status }).inc();
        self.seconds.observe(seconds);
    }

    /// A request was refused.
    pub(crate) fn refused(&self, code: Code) {
        self.refused.get_or_create(&CodeLabel { code: Shown(code.as_str()) }).inc();
    }

    /// What the doors count themselves.
    fn register(&self, registry: &mut Registry) {
        registry.register("http_requests", "Requests by route and status", self.requests.clone());
        registry.register("requests_refused", "Refused requests by code", self.refused.clone());
        registry.register("http_request_seconds", "Time to answer", self.seconds.clone());
        registry.register("connections", "Open connections", self.connections.clone());
        registry.register(
            "connections_refused",
            "Connections beyond the limit",
            self.connections_refused.clone(),
        );
        registry.register(
            "connections_evicted",
            "Idle connections closed to make room for new ones",
            self.connections_evicted.clone(),
        );
        registry.register("events_sent", "Live updates sent", self.events_sent.clone());
        registry.register(
            "subscribers_dropped",
            "Followers that did not read",
            self.subscribers_dropped.clone(),
        );
        registry.register(
            "requests_refused_unread",
            "Requests refused before their body was read, because there is too much to do",
            self.refused_unread.clone(),
        );
        registry.register(
            "readers_cut",
            "Connections closed because they did not read their answers",
            self.readers_cut.clone(),
        );
    }

    /// Everything, as Prometheus reads it.
    pub(crate) fn show(&self, status: &Status, uptime_s: f64, app: &App) -> String {
        let mut registry = Registry::with_prefix("tenure");
        self.register(&mut registry);
        register_memory(&mut registry, app.tenure.memory(), status);
        let tasks = Family::<StateLabel, Gauge>::default();
        for state in TaskState::ALL {
            let label = StateLabel { state: Shown(state.as_str()) };
            tasks.get_or_create(&label).set(status.tasks.of(state) as i64);
        }
        registry.register("tasks", "Tasks by state", tasks);
        register_runs(&mut registry, status);
        let uptime = Gauge::<f64, AtomicU64>::default();
        uptime.set(uptime_s);
        registry.register("uptime_seconds", "Since the start", uptime);
        let ahead = Gauge::<f64, AtomicU64>::default();
        ahead.set(status.log_time_ahead_ms as f64 / 1_000.0);
        registry.register(
            "log_time_ahead_seconds",
            "How far log time is ahead of the wall clock; 0 if it is not",
            ahead,
        );
        let load = app.tenure.load();
        let newest = status.kept.newest;
        let shelf = app.tenure.shelf_use();
        let gauges = [
            ("lsn", "The last record", status.lsn.0),
            ("durable_lsn", "The last record that was told", status.released.0),
            ("parked_leases", "Lease requests that wait", status.parked_leases as u64),
            ("parked_readers", "Readers that wait", status.parked_readers as u64),
            ("workflows", "Workflows that have a definition", status.workflows as u64),
            ("subscribers", "Followers of live updates", app.subscribers() as u64),
            ("inbox_requests", "Requests that wait to be decided", load.requests as u64),
            ("inbox_bytes", "What those requests hold, about", load.bytes as u64),
            (
                "new_work_waiting",
                "Submits that wait for their turn",
                app.submit_limiter.waiting() as u64,
            ),
            ("bodies_bytes", "Bytes of requests that are being read", app.bodies.bytes()),
            ("snapshot_lsn", "The newest snapshot", newest.map_or(0, |newest| newest.lsn.0)),
            ("snapshot_bytes", "Its size", newest.map_or(0, |newest| newest.bytes)),
            ("snapshots_bad", "Snapshots that this start could not read", status.kept.bad),
            ("shelf_strings", "Large payloads and outputs on the shelf", shelf.strings),
            ("shelf_bytes", "What those take of it", shelf.bytes),
            ("shelf_held_bytes", "What the shelf takes of the disk, about", shelf.held_bytes),
            ("log_oldest_lsn", "The oldest record in the log", status.kept.extent.oldest.0),
            ("log_size_bytes", "Bytes that the log takes on disk", status.kept.extent.bytes),
        ];
        for (name, help, value) in gauges {
            let gauge = Gauge::<i64>::default();
            gauge.set(value as i64);
            registry.register(name, help, gauge);
        }
        let counters = [
            ("engine_requests", "Requests decided", status.work.requests),
            ("log_records", "Records written", status.work.records),
            (
                "records_oversized",
                "Records that were too long and not written: a refused request, or a parked run",
                status.work.oversized,
            ),
            ("log_frames", "Frames written", status.work.frames),
            ("log_bytes", "Bytes written", status.work.bytes),
            ("tasks_purged", "Finished tasks forgotten by retention", status.work.purged),
            ("snapshots", "Snapshots taken", status.kept.taken),
            ("shelf_refused", "Large payloads and outputs kept in memory", shelf.refused),
            ("snapshots_failed", "Snapshots that could not be written", status.kept.failed),
        ];
        count(&mut registry, &counters);
        register_archive(&mut registry, app.archive.as_deref());
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = encode(&mut text, &registry);
        text
    }
}

/// Runs by state, and those of them that are ending or parked.
fn register_runs(registry: &mut Registry, status: &Status) {
    let runs = Family::<StateLabel, Gauge>::default();
    for (state, count) in RUN_STATES.into_iter().zip(status.runs) {
        runs.get_or_create(&StateLabel { state: Shown(state) }).set(signed(count));
    }
    registry.register("runs", "Runs of workflows by state", runs);
    let gauges = [
        ("runs_ending", "Runs that are ending over several records", status.ending_runs),
        ("runs_parked", "Runs that are parked until an operator decides", status.parked_runs),
    ];
    for (name, help, value) in gauges {
        let gauge = Gauge::<i64>::default();
        gauge.set(signed(value));
        registry.register(name, help, gauge);
    }
}

/// The memory budget, its pools, and what the state holds.
fn register_memory(registry: &mut Registry, memory: &Memory, status: &Status) {
    let (used, max) =
        (Family::<PoolLabel, Gauge>::default(), Family::<PoolLabel, Gauge>::default());
    for pool in memory.pools() {
        let label = PoolLabel { pool: Shown(pool.name()) };
        used.get_or_create(&label).set(signed(pool.used()));
        max.get_or_create(&label).set(signed(pool.max()));
    }
    registry.register("memory_used_bytes", "Memory that a pool holds, about", used);
    registry.register("memory_max_bytes", "Memory that a pool may hold", max);
    let parts = Family::<PartLabel, Gauge>::default();
    let StateBytes { tasks, payloads, runs, definitions } = status.bytes;
    let named =
        [("tasks", tasks), ("payloads", payloads), ("runs", runs), ("definitions", definitions)];
    for (part, bytes) in named {
        parts.get_or_create(&PartLabel { part: Shown(part) }).set(signed(bytes));
    }
    registry.register("memory_state_bytes", "Memory that a part of the state takes, about", parts);
    let gauges = [
        ("memory_budget_bytes", "The memory budget of the process", memory.max()),
        ("memory_full", "1 while new work is refused for lack of memory", memory.is_full().into()),
        ("memory_resident_bytes", "Memory that the process has", resident_bytes()),
    ];
    for (name, help, value) in gauges {
        let gauge = Gauge::<i64>::default();
        gauge.set(signed(value));
        registry.register(name, help, gauge);
    }
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Numbers that only grow, as they are now.
fn count(registry: &mut Registry, counters: &[(&'static str, &'static str, u64)]) {
    for (name, help, value) in counters {
        let counter = Counter::<u64, AtomicU64>::default();
        counter.inner().store(*value, Ordering::Relaxed);
        registry.register(*name, *help, counter);
    }
}

/// How the archive stands. Without one, nothing fails.
fn register_archive(registry: &mut Registry, archive: Option<&ArchiveNews>) {
    let failing = archive.and_then(ArchiveNews::failing);
    let failing_s = Gauge::<f64, AtomicU64>::default();
    failing_s.set(failing.map_or(0.0, |failing| failing.since.elapsed().as_secs_f64()));
    registry.register(
        "archive_failing_seconds",
        "For how long nothing could be archived, and so nothing was forgotten; 0 if all is well",
        failing_s,
    );
    let of = |count: fn(&ArchiveNews) -> &AtomicU64| {
        archive.map_or(0, |archive| count(archive).load(Ordering::Relaxed))
    };
    let counters = [
        ("archive_items", "Tasks and runs archived", of(|it| &it.archived)),
        ("archive_bytes", "Bytes written to the archive", of(|it| &it.bytes)),
        ("archive_failures", "Tries to archive that could not be written", of(|it| &it.failures)),
    ];
    count(registry, &counters);
}
