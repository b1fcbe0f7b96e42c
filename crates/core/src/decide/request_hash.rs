//! The hash of a request that came with an idempotency key or id: 128 bits of BLAKE3 over the request
//! as it was meant. A request is a repetition of an earlier one if and only if both hashes are equal.

use tenure_record::event::SubmitHash;
use tenure_record::name::TaskName;
use tenure_record::terms::{Backoff, Budget, SpanMs};

use crate::command::{NewTask, SignalRun, Start, StartRun};

/// Collects the parts of a request. Texts carry their length, so that no two lists of parts look alike.
#[derive(Default)]
pub(super) struct RequestHasher(blake3::Hasher);

impl RequestHasher {
    pub(super) fn text(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.update(bytes);
    }

    pub(super) fn number(&mut self, number: u64) {
        self.0.update(&number.to_le_bytes());
    }

    pub(super) fn finish(self) -> SubmitHash {
        let mut half = [0; 16];
        self.0.finalize_xof().fill(&mut half);
        SubmitHash(half)
    }
}

/// What makes two submits under one key the same: all that they ask for, after defaults, with payloads
/// that are JSON compared as canonical JSON. A delay counts as a delay: the request is the same a second
/// later. The trace context does not count, as each try of a request has its own.
pub(crate) fn of_submit(task: &NewTask) -> SubmitHash {
    let mut hasher = RequestHasher::default();
    match tenure_value::canonical(task.payload.as_bytes()) {
        Some(text) => {
            hasher.number(1);
            hasher.text(&text);
        }
        None => {
            hasher.number(0);
            hasher.text(task.payload.as_bytes());
        }
    }
    hasher.text(task.name.as_ref().map_or("", TaskName::as_str).as_bytes());
    hasher.number(task.tags.as_slice().len() as u64);
    for (key, value) in task.tags.as_slice() {
        hasher.text(key.as_str().as_bytes());
        hasher.text(value.as_str().as_bytes());
    }
    let backoff = task.backoff.as_ref().unwrap_or(&Backoff::STANDARD);
    let (start_kind, start) = match task.start {
        Start::AtOnce => (0, 0),
        Start::After(span) if span.get() == 0 => (0, 0),
        Start::After(span) => (1, span.get()),
        Start::At(moment) => (2, moment.0),
    };
    let budget = |budget: Option<Budget>| budget.map_or(0, |budget| budget.get().into());
    let span = |span: Option<SpanMs>| span.map_or(u64::MAX, |span| span.get());
    let numbers = [
        task.priority.get() as u64,
        start_kind,
        start,
        budget(task.budgets.max_failures),
        budget(task.budgets.max_expiries),
        budget(task.budgets.max_attempts),
        backoff.kind.unwrap_or_default() as u64,
        backoff.initial_ms,
        backoff.max_ms,
        backoff.jitter_permille.into(),
        task.lease_ms.get().into(),
        span(task.total_timeout_ms),
        span(task.attempt_timeout_ms),
        span(task.key_ttl_ms),
    ];
    numbers.into_iter().for_each(|number| hasher.number(number));
    hasher.finish()
}

/// What makes two starts under one key the same: input, version as asked for, and tags. A start that
/// asks for the newest version is the same start after a newer version was registered.
pub(super) fn of_start(start: &StartRun) -> SubmitHash {
    let mut hasher = RequestHasher::default();
    hasher.text(start.input.to_canonical_json().as_bytes());
    hasher.number(start.version.map_or(0, u64::from));
    for (key, value) in start.tags.as_slice() {
        hasher.text(key.as_str().as_bytes());
        hasher.text(value.as_str().as_bytes());
    }
    hasher.finish()
}

/// What makes two signals under one id the same: name, correlation and payload.
pub(super) fn of_signal(signal: &SignalRun) -> SubmitHash {
    let mut hasher = RequestHasher::default();
    hasher.text(signal.name.as_bytes());
    hasher.text(signal.correlation.as_str().as_bytes());
    hasher.text(signal.payload.to_canonical_json().as_bytes());
    hasher.finish()
}

/// Whether a request repeats the one whose hash is known. A record without a hash does not say what
/// its request looked like, so every request repeats it.
pub(super) fn repeats(known: Option<SubmitHash>, hash: SubmitHash) -> bool {
    known.is_none_or(|known| known == hash)
}
