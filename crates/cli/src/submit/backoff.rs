//! How a task waits between failures, as people write it: `exponential,initial=1s,max=5m,jitter=0.2`.

use tenure_sdk::{Backoff, BackoffKind};

use super::ms;
use crate::ui::span;

pub(super) fn parse(text: &str) -> Result<Backoff, String> {
    let mut backoff = Backoff::default();
    for part in text.split(',') {
        let (name, value) = part.split_once('=').unwrap_or(("kind", part));
        let span = || span::parse(value).map(ms).map_err(|why| format!("{name}: {why}"));
        match name {
            "kind" => backoff.kind = Some(known(value.into())?),
            "initial" => backoff.initial_ms = Some(span()?),
            "max" => backoff.max_ms = Some(span()?),
            "jitter" => {
                let jitter = value.parse().ok().filter(|jitter| (0.0..=1.0).contains(jitter));
                backoff.jitter = Some(jitter.ok_or("jitter is a number from 0 to 1")?);
            }
            other => {
                return Err(format!("there is no {other:?}; there are kind, initial, max, jitter"));
            }
        }
    }
    Ok(backoff)
}

/// A kind that this version knows.
pub(super) fn known(kind: BackoffKind) -> Result<BackoffKind, String> {
    if let BackoffKind::Other(other) = &kind {
        return Err(format!("the kind is {other:?}; it must be fixed, linear or exponential"));
    }
    Ok(kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_no_sense_is_refused() {
        for text in ["", "cubic", "initial=5", "jitter=2", "jitter=NaN", "fixed,first=1s"] {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn every_part_is_optional() {
        let all = parse("linear,initial=1s,max=5m,jitter=0.5").unwrap();
        let kind = Some(BackoffKind::Linear);
        let (initial_ms, max_ms) = (Some(1_000), Some(300_000));
        assert_eq!(all, Backoff { kind, initial_ms, max_ms, jitter: Some(0.5) });
        assert_eq!(
            parse("max=1m").unwrap(),
            Backoff { max_ms: Some(60_000), ..Backoff::default() }
        );
        assert_eq!(parse("kind=linear"), parse("linear"));
    }
}
