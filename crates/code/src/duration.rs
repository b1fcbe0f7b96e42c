//! Durations as people write them: `500ms`, `5s`, `2m`, `1h30m`, `1d`.

/// The units of a duration with their milliseconds, the largest first.
pub const DURATION_UNITS: [(&str, u64); 5] =
    [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// Writes a duration in its two largest units.
///
/// ```
/// assert_eq!(tenure_code::duration_text(5_400_000), "1h30m");
/// ```
#[must_use]
pub fn duration_text(ms: u64) -> String {
    let mut left = ms;
    let mut words = Vec::new();
    for (unit, unit_ms) in DURATION_UNITS {
        let count = left / unit_ms;
        left %= unit_ms;
        if count > 0 {
            words.push(format!("{count}{unit}"));
        }
    }
    match words.as_slice() {
        [] => "0s".to_owned(),
        [first] => first.clone(),
        [first, second, ..] => format!("{first}{second}"),
    }
}
