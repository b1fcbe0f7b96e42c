//! What `tenure serve` keeps, and for how long.

use tenure_server::engine_limits::SNAPSHOT_LOG_BYTES;
use tenure_server::{Keep, Retention, Upkeep};

/// More hours than this are not kept by hours: a hundred years.
const HOURS_MAX: u64 = 876_000;
const HOUR_MS: u64 = 3_600_000;

/// What is kept, and for how long.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What is kept of the log beyond what the snapshots need: all, hours=N or bytes=N.
    #[arg(long, value_name = "POLICY", default_value = "bytes=4GiB", value_parser = parse_keep)]
    log_keep: Keep,

    /// How long finished tasks are kept, unless their queue says otherwise.
    #[arg(long, value_name = "SPAN", default_value = "7d", value_parser = parse_span)]
    retention: u64,

    /// How many finished tasks are kept at most; beyond that the oldest go, whatever their age.
    #[arg(long, value_name = "COUNT", default_value_t = Retention::default().tasks_max)]
    retention_tasks: u64,

    /// Take a snapshot after so much log, unless the last one was larger.
    #[arg(long, value_name = "BYTES", default_value_t = SNAPSHOT_LOG_BYTES, value_parser = parse_bytes)]
    snapshot_bytes: u64,

    /// Take a snapshot after so long, if much was written.
    #[arg(long, value_name = "SPAN", default_value = "1h", value_parser = parse_span)]
    snapshot_every: u64,
}

impl Args {
    pub(crate) fn parsed(&self) -> Upkeep {
        let usual = Upkeep::default();
        Upkeep {
            snapshot_log_bytes: self.snapshot_bytes,
            snapshot_every_ms: self.snapshot_every,
            log_keep: self.log_keep,
            retention: Retention {
                age_ms: self.retention,
                tasks_max: self.retention_tasks,
                ..usual.retention
            },
            ..usual
        }
    }
}

fn parse_keep(text: &str) -> Result<Keep, String> {
    if text == "all" {
        return Ok(Keep::All);
    }
    if let Some(hours) = text.strip_prefix("hours=") {
        let hours = hours.parse::<u64>().ok().filter(|hours| (1..=HOURS_MAX).contains(hours));
        let hours = hours.ok_or_else(|| format!("hours must be a number from 1 to {HOURS_MAX}"))?;
        return Ok(Keep::Ms(hours * HOUR_MS));
    }
    match text.strip_prefix("bytes=") {
        Some(bytes) => parse_bytes(bytes).map(Keep::Bytes),
        None => {
            Err("it must be all, hours=N or bytes=N, such as hours=24 or bytes=4GiB".to_owned())
        }
    }
}

pub(super) fn parse_bytes(text: &str) -> Result<u64, String> {
    let units = [("KiB", 1_u64 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40)];
    let unit = units.iter().find_map(|(name, unit)| Some((text.strip_suffix(name)?, *unit)));
    let (number, unit) = unit.unwrap_or((text, 1));
    let bytes = number.trim().parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
    bytes
        .filter(|bytes| *bytes > 0)
        .ok_or_else(|| "it must be a number of bytes above 0, such as 4GiB or 67108864".to_owned())
}

fn parse_span(text: &str) -> Result<u64, String> {
    let units = [("ms", 1_u64), ("s", 1_000), ("m", 60_000), ("h", HOUR_MS), ("d", 24 * HOUR_MS)];
    let found = units
        .iter()
        .find_map(|(name, unit)| text.strip_suffix(name)?.parse::<u64>().ok()?.checked_mul(*unit));
    found.filter(|ms| *ms > 0).ok_or_else(|| {
        "it must be a number above 0 and a unit: ms, s, m, h or d, such as 7d or 90m".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use tenure_server::engine_limits::SNAPSHOT_EVERY_MS;

    use super::*;

    #[test]
    fn what_is_no_policy_is_refused() {
        for text in ["", "some", "hours=", "hours=0", "hours=-1", "hours=9000000", "bytes=0"] {
            assert!(parse_keep(text).is_err(), "{text}");
        }
        for text in ["bytes=4 gigs", "bytes=99999999999GiB", "bytes", "hours=1.5"] {
            assert!(parse_keep(text).is_err(), "{text}");
        }
        for text in ["", "7", "0s", "d", "1w", "-1s"] {
            assert!(parse_span(text).is_err(), "{text}");
        }
    }

    #[test]
    fn policies_are_read() {
        assert_eq!(parse_keep("all"), Ok(Keep::All));
        assert_eq!(parse_keep("hours=24"), Ok(Keep::Ms(86_400_000)));
        assert_eq!(parse_keep("bytes=4GiB"), Ok(Keep::Bytes(4 << 30)));
        assert_eq!(parse_keep("bytes=1000"), Ok(Keep::Bytes(1_000)));
        assert_eq!(parse_span("7d"), Ok(604_800_000));
        assert_eq!(parse_span("500ms"), Ok(500));
        assert_eq!(parse_span("1h"), Ok(SNAPSHOT_EVERY_MS));
    }
}
