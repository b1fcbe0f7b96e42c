//! A run that broke a law, made small: whatever is not needed is left out, one thing at a time, as
//! long as the same law breaks. What is left is a command that repeats it.

use crate::faults::SimFault;
use crate::plan::{Length, Plan};
use crate::{Failed, Voice, run};

const MINUTE_MS: u64 = 60_000;
const HOUR_MS: u64 = 60 * MINUTE_MS;

/// The smallest run found that breaks the same law.
#[must_use]
pub fn shrink(failed: Box<Failed>) -> Box<Failed> {
    let mut least = failed;
    // What could not be left out before may be needless once something else is gone.
    loop {
        let before = least.plan.clone();
        least = in_time(least);
        least = with_fewer(least);
        for fault in SimFault::ALL {
            let without = least.plan.without.and(fault);
            if without != least.plan.without {
                let plan = Plan { without, ..least.plan.clone() };
                least = tried(least, &plan);
            }
        }
        if least.plan == before {
            return least;
        }
    }
}

/// The smaller run, if it breaks the same law.
fn tried(known: Box<Failed>, plan: &Plan) -> Box<Failed> {
    match run(plan, Voice::Quiet) {
        Err(smaller) if smaller.broken.law == known.broken.law => smaller,
        Err(_) | Ok(_) => known,
    }
}

/// No longer than up to where the law broke.
fn in_time(known: Box<Failed>) -> Box<Failed> {
    let length = match known.plan.length {
        Length::Hours(_) => Length::Hours(known.at_ms / HOUR_MS + 1),
        Length::Usual | Length::Minutes(_) => Length::Minutes(known.at_ms / MINUTE_MS + 1),
    };
    match length == known.plan.length {
        true => known,
        false => {
            let plan = Plan { length, ..known.plan.clone() };
            tried(known, &plan)
        }
    }
}

/// With fewer clients and workers.
fn with_fewer(known: Box<Failed>) -> Box<Failed> {
    let mut least = known;
    for clients in 0..least.config.clients {
        let plan = Plan { clients_max: Some(clients), ..least.plan.clone() };
        least = tried(least, &plan);
        if least.plan == plan {
            break;
        }
    }
    for workers in 0..least.config.workers {
        let plan = Plan { workers_max: Some(workers), ..least.plan.clone() };
        least = tried(least, &plan);
        if least.plan == plan {
            break;
        }
    }
    least
}
