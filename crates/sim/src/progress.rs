//! How a simulation is told of: a line while it runs, and tables at the end.

use tenure_sim::runner::Summary;
use tenure_sim::{Coverage, Sample};

/// How things stand.
pub(crate) fn line(summary: &Summary) -> String {
    let Summary { seeds, events, .. } = summary;
    let hours = summary.virtual_ms as f64 / 3_600_000.0;
    let faults: Vec<String> =
        summary.coverage.of("fault").map(|(name, count)| format!("{name} {count}")).collect();
    format!("{seeds} seeds, {hours:.1} virtual hours, {events} events; {} ", faults.join(", "))
}

/// What happened how often, and what never did.
pub(crate) fn table(summary: &Summary) {
    for kind in Coverage::kinds() {
        println!("\n{kind} ({})", summary.coverage.total(kind));
        for (name, count) in summary.coverage.of(kind) {
            println!("  {count:>10}  {name}");
        }
    }
    let never = summary.coverage.never();
    match never.is_empty() {
        true => println!("\neverything that can happen did"),
        false => println!("\nnever happened: {}", never.join(", ")),
    }
}

/// How fast it went.
pub(crate) fn speed(summary: &Summary, seconds: f64) -> String {
    let hours = summary.virtual_ms as f64 / 3_600_000.0;
    let cpu = cpu_seconds().unwrap_or(seconds);
    let faults = summary.coverage.total("fault") + summary.coverage.total("network");
    format!(
        "{} seeds in {seconds:.1} s and {cpu:.1} CPU seconds: {:.1} seeds a second, {:.1} virtual \
         hours a minute, {:.0} events and {:.0} faults a CPU second, {} records",
        summary.seeds,
        summary.seeds as f64 / seconds,
        hours / seconds * 60.0,
        summary.events as f64 / cpu,
        faults as f64 / cpu,
        summary.records
    )
}

/// What was kept, from time to time.
pub(crate) fn curve(samples: &[Sample]) {
    if samples.is_empty() {
        return;
    }
    println!("{:>7} {:>12} {:>12} {:>8} {:>6}", "hour", "disk bytes", "bound", "tasks", "runs");
    for Sample { at_ms, disk_bytes, bound_bytes, tasks, runs } in samples {
        let hour = *at_ms as f64 / 3_600_000.0;
        println!("{hour:>7.1} {disk_bytes:>12} {bound_bytes:>12} {tasks:>8} {runs:>6}");
    }
}

/// Processor time that this process took, where the system tells.
fn cpu_seconds() -> Option<f64> {
    const TICKS_PER_SECOND: f64 = 100.0;
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name in parentheses may have anything in it.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some((user + system) / TICKS_PER_SECOND)
}
