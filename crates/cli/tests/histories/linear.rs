//! Whether the calls of one task can be put in an order that explains every answer: each takes effect
//! at one moment while it was under way, and what got no answer may have happened or not. Found by
//! trying, with a memory of what was tried (Wing and Gong).

use std::collections::HashSet;

use crate::register::{Answer, Call, Register};

/// Calls of one task, at the most.
pub(crate) const CALLS_MAX: usize = 128;

type Done = u128;

/// Says no with the calls, in the order in which they began.
pub(crate) fn check(calls: &[Call]) -> Result<(), String> {
    assert!(calls.len() <= CALLS_MAX, "{} calls of one task", calls.len());
    let mut calls = calls.to_vec();
    calls.sort_by_key(|call| call.from_us);
    let mut search = Search { calls: &calls, tried: HashSet::new() };
    if search.explains(0, &Register::absent()) {
        return Ok(());
    }
    let lines: Vec<_> = calls.iter().map(|call| format!("    {call:?}")).collect();
    Err(format!("no order explains these calls:\n{}", lines.join("\n")))
}

struct Search<'c> {
    calls: &'c [Call],
    tried: HashSet<(Done, Register)>,
}

impl Search<'_> {
    fn explains(&mut self, done: Done, register: &Register) -> bool {
        let calls = self.calls;
        let open = || calls.iter().enumerate().filter(move |(at, _)| done >> at & 1 == 0);
        let must = |call: &Call| call.answer != Answer::Nothing;
        // Whatever comes next must leave room for everything that was answered.
        let Some(last_us) = open().filter(|(_, call)| must(call)).map(|(_, c)| c.until_us).min()
        else {
            return true;
        };
        if !self.tried.insert((done, register.clone())) {
            return false;
        }
        for (at, call) in open() {
            let next = register.step(call);
            let in_time = |next: &Register| next.at_us() <= last_us.min(call.until_us);
            if let Some(next) = next.filter(in_time)
                && self.explains(done | 1 << at, &next)
            {
                return true;
            }
        }
        match register.expire() {
            Some(next) if next.at_us() <= last_us => self.explains(done, &next),
            Some(_) | None => false,
        }
    }
}
