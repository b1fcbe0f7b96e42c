//! `tenure run redecide`: what today's rules would decide, beside what was decided.

use clap::Args;
use tenure_sdk::{Payload, Redecided};

use super::history::definition;
use super::story::Story;
use crate::Format;
use crate::client::Server;
use crate::failure::Failure;
use crate::ui::json;
use crate::ui::moment::clock;
use crate::ui::output::Lines;
use crate::ui::plain;
use crate::ui::style::{self, Paint};

pub(super) const EXAMPLES: &str = "\
The server rebuilds the state just before that record from its log, reads from the record what was
asked, and decides it again by its own rules. Nothing is written, and what is recorded stays: a log
is never decided again when it is replayed. It shows what an upgrade would do.

Examples:
  tenure run history 17           which records there are
  tenure run redecide 17 42

Exit codes:
  0  the same would be decided
  1  something else would, or it was refused";

#[derive(Debug, Args)]
pub(super) struct Redecide {
    /// The run's number.
    id: u64,

    /// The LSN of a record of its history.
    lsn: u64,
}

pub(super) fn run(redecide: &Redecide, server: &Server, format: Format) -> Result<(), Failure> {
    server.with(|client| async move {
        let Redecide { id, lsn } = *redecide;
        let found = client.runs().redecide(id, lsn).await?;
        let mut out = Lines::new();
        match format {
            Format::Json => json::print(&mut out, &found),
            Format::Table => {
                // A run that is forgotten can still be decided again, with numbers for names.
                let definition = match client.runs().get(id).await {
                    Ok(run) => definition(&client, &run).await?,
                    Err(_) => None,
                };
                let mut story = Story::new(definition.as_ref());
                let lines = lines(&mut story, &found, Paint::of_stdout());
                lines.iter().for_each(|line| out.print(line));
            }
        }
        out.finish();
        match found.same {
            true => Ok(()),
            false => Err(Failure::Different { run_id: id, lsn }),
        }
    })
}

fn lines(story: &mut Story<'_>, found: &Redecided, paint: Paint) -> Vec<String> {
    let cause = paint.draw(style::heading(), &story.cause(found.cause.as_bytes()));
    let mut lines = vec![format!("LSN {}, {}: {cause}", found.lsn, clock(found.at))];
    lines.push(match (found.same, &found.refused) {
        (true, _) => "today's rules decide the same:".to_owned(),
        (false, Some(refused)) => {
            let (code, detail) = (plain::line(&refused.code), plain::line(&refused.detail));
            format!("today's rules refuse it ({code}): {detail}")
        }
        (false, None) => "today's rules decide something else (- recorded, + today):".to_owned(),
    });
    let mut told = |mark: char, decision: &Payload| {
        if decision.is_empty() {
            return;
        }
        for sentence in story.decision(decision.as_bytes()) {
            let line = format!("  {mark} {sentence}");
            lines.push(paint.draw(style::difference(mark), &line));
        }
    };
    for pair in &found.decisions {
        match pair.same {
            true => told('=', &pair.recorded),
            false => {
                told('-', &pair.recorded);
                told('+', &pair.decided);
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use tenure_sdk::Timestamp;
    use tenure_sdk::api::{DecisionPair, Refusal};

    use super::*;

    fn found(decisions: Vec<DecisionPair>) -> Redecided {
        Redecided {
            run_id: 17,
            lsn: 42,
            at: Timestamp(1_794_782_400_500),
            same: decisions.iter().all(|pair| pair.same),
            cause: r#"{"event": "TaskCompleted", "task_id": 7, "lease_id": 9}"#.into(),
            decisions,
            refused: None,
        }
    }

    fn pair(recorded: Option<&str>, decided: Option<&str>) -> DecisionPair {
        let payload = |text: Option<&str>| text.map(Payload::from).unwrap_or_default();
        let (recorded, decided) = (payload(recorded), payload(decided));
        DecisionPair { same: recorded == decided, recorded, decided }
    }

    const DONE: &str =
        r#"{"decision": "UpdateTokenStates", "tokens": [{"token": 1, "state": "completed"}]}"#;
    const THERE: &str = r#"{"decision": "CreateTokens", "tokens": [{"token": 2, "node": "approval", "why": {"input.amount": 1200}}]}"#;
    const ELSEWHERE: &str =
        r#"{"decision": "CreateTokens", "tokens": [{"token": 2, "node": "charge"}]}"#;
    const FINISHED: &str =
        r#"{"decision": "FinishRun", "state": "COMPLETED", "output": {"ok": true}}"#;

    #[test]
    fn differences_are_marked_and_the_rest_stays() {
        let pairs = vec![
            pair(Some(DONE), Some(DONE)),
            pair(Some(THERE), Some(ELSEWHERE)),
            pair(None, Some(FINISHED)),
        ];
        let lines = lines(&mut Story::new(None), &found(pairs), Paint::Plain);
        insta::assert_snapshot!(lines.join("\n"), @r#"
        LSN 42, 22:40:00.500: task 7 was completed
        today's rules decide something else (- recorded, + today):
          = token 1 is completed
          - token 2 begins at approval, where input.amount is 1200
          + token 2 begins at charge
          + the run is COMPLETED, with {"ok":true}
        "#);
    }

    #[test]
    fn a_refusal_says_why() {
        let refused = Some(Refusal { code: "not_found".into(), detail: "no such signal".into() });
        let found = Redecided { refused, same: false, ..found(vec![pair(Some(DONE), None)]) };
        let lines = lines(&mut Story::new(None), &found, Paint::Plain);
        assert_eq!(lines[1], "today's rules refuse it (not_found): no such signal");
        assert_eq!(lines[2], "  - token 1 is completed");
    }
}
