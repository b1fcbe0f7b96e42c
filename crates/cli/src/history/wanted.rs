//! Which tasks or runs are wanted.

use clap::Args;
use tenure_sdk::Timestamp;

use super::item::Item;
use crate::ui::{moment, span};

/// A wall clock that was set may differ so much from the time at which something ended.
const DAY_MS: u64 = 86_400_000;
/// The ends of tasks and runs.
const STATES: [&str; 5] = ["COMPLETED", "FAILED", "DEAD", "CANCELED", "TIMED_OUT"];

/// What to look for.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct Wanted {
    /// Only of this queue.
    #[arg(long, value_name = "QUEUE", conflicts_with = "workflow")]
    queue: Option<String>,

    /// Only in this state: completed, failed, dead, canceled or timed_out.
    #[arg(long, value_name = "STATE", value_parser = parse_state)]
    state: Option<String>,

    /// Only with this key.
    #[arg(long, value_name = "KEY")]
    key: Option<String>,

    /// Only runs of this workflow.
    #[arg(long, value_name = "NAME", conflicts_with = "of_run")]
    workflow: Option<String>,

    /// Only tasks of this run.
    #[arg(long, value_name = "ID")]
    of_run: Option<u64>,

    /// Only what ended at or after this moment, such as 2026-11-15T22:40:00Z or 2d (ago).
    #[arg(long, value_name = "WHEN", value_parser = parse_when)]
    since: Option<Timestamp>,

    /// Only what ended before this moment.
    #[arg(long, value_name = "WHEN", value_parser = parse_when)]
    until: Option<Timestamp>,
}

impl Wanted {
    pub(super) fn is_about_runs(&self) -> bool {
        self.workflow.is_some()
    }

    /// Files that were begun and left before this day have nothing that is wanted.
    pub(super) fn since_day(&self) -> Option<String> {
        let day = Timestamp(self.since?.0.saturating_sub(DAY_MS)).to_string();
        day.split_once('T').map(|(day, _)| day.to_owned())
    }

    pub(super) fn takes(&self, item: &Item) -> bool {
        let same = |wanted: &Option<String>, is: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| is == Some(wanted))
        };
        let ended_at = item.finished_at.as_deref().and_then(|at| moment::parse(at).ok());
        let of_run = item.run.as_ref().map(|run| run.run_id);
        same(&self.queue, item.queue.as_deref())
            && same(&self.state, Some(&item.state))
            && same(&self.key, item.key.as_deref())
            && same(&self.workflow, item.workflow.as_deref())
            && self.of_run.is_none_or(|wanted| of_run == Some(wanted))
            && self.since.is_none_or(|since| ended_at.is_some_and(|at| at >= since))
            && self.until.is_none_or(|until| ended_at.is_some_and(|at| at < until))
    }
}

fn parse_state(text: &str) -> Result<String, String> {
    let state = text.to_ascii_uppercase().replace('-', "_");
    match STATES.contains(&state.as_str()) {
        true => Ok(state),
        false => Err("it must be completed, failed, dead, canceled or timed_out".to_owned()),
    }
}

/// A moment, or how long ago it was.
fn parse_when(text: &str) -> Result<Timestamp, String> {
    if let Ok(span) = span::parse(text) {
        return Ok(Timestamp(moment::now().0.saturating_sub(span.as_millis() as u64)));
    }
    moment::parse(text).map_err(|wrong| format!("{wrong}, or a span such as 2d, which is ago"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(text: &str) -> Item {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn what_is_no_state_or_moment_is_refused() {
        assert!(parse_state("waiting").unwrap_err().contains("completed"));
        assert!(parse_when("yesterday").unwrap_err().contains("2d"));
        assert_eq!(parse_state("timed-out").unwrap(), "TIMED_OUT");
        assert!(parse_when("1h").unwrap().0 <= moment::now().0 - 3_600_000);
        assert_eq!(parse_when("1970-01-01T00:00:01Z"), Ok(Timestamp(1_000)));
    }

    #[test]
    fn each_wish_counts() {
        let task = item(
            r#"{"id": 1, "last_lsn": 4, "state": "FAILED", "queue": "mail", "key": "k",
                "archived_at": "1970-01-01T00:00:09.000Z", "run": {"run_id": 3, "node": "a"},
                "finished_at": "1970-01-01T00:00:02.000Z", "payload": [1]}"#,
        );
        let text = |text: &str| Some(text.to_owned());
        let takes = |wanted: Wanted| wanted.takes(&task);
        assert!(takes(Wanted::default()));
        assert!(takes(Wanted { queue: text("mail"), key: text("k"), ..Wanted::default() }));
        assert!(takes(Wanted {
            since: Some(Timestamp(2_000)),
            until: Some(Timestamp(2_001)),
            ..Wanted::default()
        }));
        assert!(takes(Wanted { of_run: Some(3), state: text("FAILED"), ..Wanted::default() }));
        for wanted in [
            Wanted { queue: text("mai"), ..Wanted::default() },
            Wanted { state: text("DEAD"), ..Wanted::default() },
            Wanted { key: text("K"), ..Wanted::default() },
            Wanted { workflow: text("mail"), ..Wanted::default() },
            Wanted { of_run: Some(1), ..Wanted::default() },
            Wanted { since: Some(Timestamp(2_001)), ..Wanted::default() },
            Wanted { until: Some(Timestamp(2_000)), ..Wanted::default() },
        ] {
            assert!(!wanted.takes(&task), "{wanted:?}");
        }
    }

    #[test]
    fn a_day_before_is_looked_at_too() {
        let since = |ms| Wanted { since: Some(ms), ..Wanted::default() }.since_day();
        assert_eq!(since(Timestamp(2 * DAY_MS)).as_deref(), Some("1970-01-02"));
        assert_eq!(Wanted::default().since_day(), None);
    }
}
