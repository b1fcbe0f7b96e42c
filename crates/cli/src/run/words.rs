//! Runs in words: their errors, and what their states do not say.

use tenure_sdk::{Payload, Run, Timestamp};

use crate::ui::moment::relative;
use crate::ui::plain;

/// An error of a run or a token in a sentence: `CODE at node: message`.
pub(super) fn error_words(error: &Payload) -> Option<String> {
    let error: serde_json::Value = error.parse().ok()?;
    let text = |field: &str| error.get(field).and_then(serde_json::Value::as_str);
    let mut words = plain::line(text("code")?);
    if let Some(node) = text("node") {
        words.push_str(&format!(" at {}", plain::line(node)));
    }
    if let Some(message) = text("message") {
        words.push_str(&format!(": {}", plain::line(message)));
    }
    Some(words)
}

/// What a run's state does not say, in words: how it is ending, or why it is parked.
pub(super) fn standing_words(run: &Run, now: Timestamp) -> Option<String> {
    if let Some(ending) = &run.ending {
        let state = &ending.state;
        let error = error_words(&ending.error).map(|error| format!(" ({error})"));
        return Some(format!(
            "ending as {state}{} since {}: {} tokens left",
            error.unwrap_or_default(),
            since(ending.since, now),
            grouped(run.live_tokens.into())
        ));
    }
    let parked = run.parked.as_ref()?;
    Some(format!(
        "PARKED since {}: {}; cancel it or `tenure run unpark {}`",
        since(parked.at, now),
        plain::line(&parked.reason),
        run.id
    ))
}

/// What a run's state does not say, in a few words for a list.
pub(super) fn standing_brief(run: &Run) -> Option<String> {
    if let Some(ending) = &run.ending {
        return Some(format!("ending as {}", &ending.state));
    }
    run.parked.as_ref().map(|parked| format!("PARKED: {}", plain::line(&parked.reason)))
}

/// A moment with how long ago it was.
fn since(at: Timestamp, now: Timestamp) -> String {
    format!("{at} ({})", relative(at, now))
}

/// A number with its thousands apart.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use tenure_sdk::RunState;
    use tenure_sdk::api::Ending;

    use super::*;

    #[test]
    fn large_numbers_are_read_in_groups_of_three() {
        let shown: Vec<_> = [0, 999, 1_000, 48_000, 4_000_000].map(grouped).into();
        assert_eq!(shown, ["0", "999", "1,000", "48,000", "4,000,000"]);
    }

    #[test]
    fn a_run_that_is_ending_says_how_and_how_much_is_left() {
        let error = r#"{"code": "RUN_TIMEOUT", "message": "60 s are over"}"#.into();
        let state = RunState::TimedOut;
        let ending = Some(Ending { state, error, since: Timestamp(1_794_782_400_500) });
        let run = Run { id: 7, live_tokens: 48_000, ending, ..Run::default() };
        let words = "ending as TIMED_OUT (RUN_TIMEOUT: 60 s are over) since \
                     2026-11-15T22:40:00.500Z (3s ago): 48,000 tokens left";
        assert_eq!(standing_words(&run, Timestamp(1_794_782_403_500)).unwrap(), words);
        assert_eq!(standing_brief(&run).unwrap(), "ending as TIMED_OUT");
        assert_eq!(standing_words(&Run::default(), Timestamp(0)), None);
    }
}
