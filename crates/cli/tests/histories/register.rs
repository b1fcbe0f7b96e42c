//! What one task may do, written from the contract and not from the server's code: a register that
//! calls change, one after the other. Only time adds steps of its own: a lease can run out.

/// Tasks of these tests fail so often before they are FAILED.
pub(crate) const MAX_FAILURES: u64 = 3;
/// Leases run out so often before a task is DEAD.
pub(crate) const MAX_EXPIRIES: u64 = 3;
/// How long a lease lasts.
pub(crate) const LEASE_US: u64 = 80_000;
/// The server's clocks count whole milliseconds, and begin anew with each process.
const CLOCK_US: u64 = 5_000;

/// What somebody wanted of the task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Deed {
    Submit,
    /// It was given to somebody.
    Grant {
        lease: u64,
        attempt: u64,
    },
    /// It may have been given to somebody who never heard of it.
    GrantUnheard,
    Heartbeat {
        lease: u64,
    },
    Complete {
        lease: u64,
    },
    Fail {
        lease: u64,
    },
    Release {
        lease: u64,
    },
    Cancel,
    Retry,
    Read,
}

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The task, as it was then.
    Shown(Shown),
    /// The lease goes on.
    Extended { cancel_requested: bool },
    /// A lease.
    Granted,
    /// The code of a refusal.
    Refused(String),
    /// Nothing; it may have happened all the same.
    Nothing,
}

/// A task as it was shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) state: String,
    pub(crate) attempt: u64,
    pub(crate) failures: u64,
    pub(crate) expiries: u64,
    pub(crate) cancel_requested: bool,
    pub(crate) lease: Option<u64>,
}

/// One call: it took effect at one moment between these two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) from_us: u64,
    /// When the answer came; without one, when its server was dead.
    pub(crate) until_us: u64,
    pub(crate) deed: Deed,
    pub(crate) answer: Answer,
}

/// Whose lease it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Holder {
    Lease(u64),
    Unheard,
}

/// The lease's standing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Hold {
    Good,
    /// Its holder was told that it is over; there is no way back.
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Place {
    Absent,
    Waiting,
    /// It cannot run out before the first moment, nor hold after the second.
    Leased {
        holder: Holder,
        hold: Hold,
        first_us: u64,
        last_us: u64,
    },
    Completed,
    Failed,
    Dead,
    Canceled,
}

/// How the latest lease ended, for those who report the same again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Ended {
    Completed,
    Failed,
    Released,
    Otherwise,
}

/// One task.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Register {
    /// No call takes effect before the one before it.
    at_us: u64,
    place: Place,
    attempt: u64,
    failures: u64,
    expiries: u64,
    is_cancel_requested: bool,
    /// The largest lease that is known, and how the latest one ended.
    lease: u64,
    latest: Holder,
    ended: Ended,
}

const LOST: &str = "lease_lost";

impl Register {
    pub(crate) fn absent() -> Self {
        Self {
            at_us: 0,
            place: Place::Absent,
            attempt: 0,
            failures: 0,
            expiries: 0,
            is_cancel_requested: false,
            lease: 0,
            latest: Holder::Lease(0),
            ended: Ended::Otherwise,
        }
    }

    /// When the last call took effect: as early as possible.
    pub(crate) fn at_us(&self) -> u64 {
        self.at_us
    }

    /// What comes of a call, if its answer is right.
    pub(crate) fn step(&self, call: &Call) -> Option<Self> {
        let mut next = self.clone();
        next.at_us = self.at_us.max(call.from_us);
        let done = next.act(call);
        match (&call.answer, done) {
            (Answer::Nothing | Answer::Granted, Ok(())) => Some(next),
            (Answer::Shown(shown), Ok(())) => next.shows(shown).then_some(next),
            (Answer::Extended { cancel_requested }, Ok(())) => {
                (*cancel_requested == next.is_cancel_requested).then_some(next)
            }
            (Answer::Refused(code), Err(refusal)) => (code == refusal).then(|| {
                let mut refused = self.clone();
                refused.at_us = next.at_us;
                refused
            }),
            // The holder was told that its lease is over: then its time is up.
            (Answer::Refused(code), Ok(())) if code == LOST => self.overdue(next.at_us),
            (Answer::Refused(_), Ok(()))
            | (
                Answer::Nothing | Answer::Granted | Answer::Shown(_) | Answer::Extended { .. },
                Err(_),
            ) => None,
        }
    }

    fn overdue(&self, at_us: u64) -> Option<Self> {
        let Place::Leased { holder, first_us, last_us, .. } = self.place else { return None };
        let place = Place::Leased { holder, hold: Hold::Over, first_us, last_us };
        Some(Self { at_us: at_us.max(first_us), place, ..self.clone() })
    }

    fn act(&mut self, call: &Call) -> Result<(), &'static str> {
        match call.deed {
            Deed::Submit => {
                if self.place == Place::Absent {
                    self.place = Place::Waiting;
                }
                Ok(())
            }
            _ if self.place == Place::Absent => Err("not_found"),
            Deed::Read => Ok(()),
            Deed::Grant { lease, attempt } => {
                let fits = lease > self.lease && attempt == self.attempt + 1;
                self.grant(Holder::Lease(lease), call).filter(|()| fits).ok_or("impossible")
            }
            Deed::GrantUnheard => self.grant(Holder::Unheard, call).ok_or("impossible"),
            Deed::Heartbeat { lease } => match self.holds(lease) {
                true => {
                    self.hold(Holder::Lease(lease), call);
                    Ok(())
                }
                false => Err(LOST),
            },
            Deed::Complete { lease } => self.report(lease, Ended::Completed),
            Deed::Fail { lease } => self.report(lease, Ended::Failed),
            Deed::Release { lease } => self.report(lease, Ended::Released),
            Deed::Cancel => self.cancel(),
            Deed::Retry => self.retry(),
        }
    }

    fn holds(&self, lease: u64) -> bool {
        matches!(self.place, Place::Leased { holder, hold: Hold::Good, last_us, .. }
            if holder == Holder::Lease(lease) && self.at_us <= last_us)
    }

    fn hold(&mut self, holder: Holder, call: &Call) {
        let first_us = (call.from_us + LEASE_US).saturating_sub(CLOCK_US);
        let last_us = call.until_us + LEASE_US + CLOCK_US;
        self.place = Place::Leased { holder, hold: Hold::Good, first_us, last_us };
    }

    fn grant(&mut self, holder: Holder, call: &Call) -> Option<()> {
        if self.place != Place::Waiting {
            return None;
        }
        self.hold(holder, call);
        self.attempt += 1;
        (self.latest, self.ended) = (holder, Ended::Otherwise);
        if let Holder::Lease(lease) = holder {
            self.lease = lease;
        }
        Some(())
    }

    fn report(&mut self, lease: u64, verb: Ended) -> Result<(), &'static str> {
        let is_same = self.ended == verb && self.latest == Holder::Lease(lease);
        if is_same && !matches!(self.place, Place::Leased { .. }) {
            return Ok(());
        }
        if !self.holds(lease) {
            return Err(LOST);
        }
        self.ended = verb;
        self.failures += u64::from(verb == Ended::Failed);
        self.place = match verb {
            Ended::Completed => Place::Completed,
            _ if self.is_cancel_requested => Place::Canceled,
            Ended::Failed if self.failures >= MAX_FAILURES => Place::Failed,
            Ended::Failed | Ended::Released | Ended::Otherwise => Place::Waiting,
        };
        Ok(())
    }

    fn cancel(&mut self) -> Result<(), &'static str> {
        match self.place {
            Place::Waiting => self.place = Place::Canceled,
            Place::Leased { .. } => self.is_cancel_requested = true,
            Place::Canceled => {}
            Place::Absent | Place::Completed | Place::Failed | Place::Dead => {
                return Err("task_terminal");
            }
        }
        Ok(())
    }

    fn retry(&mut self) -> Result<(), &'static str> {
        match self.place {
            Place::Failed | Place::Dead | Place::Canceled => {
                (self.place, self.is_cancel_requested) = (Place::Waiting, false);
                (self.failures, self.expiries) = (0, 0);
                Ok(())
            }
            Place::Absent | Place::Waiting | Place::Leased { .. } | Place::Completed => {
                Err("conflict")
            }
        }
    }

    /// The lease runs out, as early as it can.
    pub(crate) fn expire(&self) -> Option<Self> {
        let Place::Leased { first_us, .. } = self.place else { return None };
        let mut next = self.clone();
        next.at_us = self.at_us.max(first_us);
        next.expiries += 1;
        next.ended = Ended::Otherwise;
        next.place = match next.is_cancel_requested {
            true => Place::Canceled,
            false if next.expiries >= MAX_EXPIRIES => Place::Dead,
            false => Place::Waiting,
        };
        Some(next)
    }

    fn shows(&self, shown: &Shown) -> bool {
        let (state, lease) = match self.place {
            Place::Absent => return false,
            Place::Waiting => ("WAITING", None),
            Place::Leased { holder, .. } => ("LEASED", Some(holder)),
            Place::Completed => ("COMPLETED", None),
            Place::Failed => ("FAILED", None),
            Place::Dead => ("DEAD", None),
            Place::Canceled => ("CANCELED", None),
        };
        let lease_fits = match (lease, shown.lease) {
            (None, None) => true,
            (Some(Holder::Lease(lease)), Some(shown)) => lease == shown,
            (Some(Holder::Unheard), Some(shown)) => shown > self.lease,
            (None, Some(_)) | (Some(_), None) => false,
        };
        let flag_fits = lease.is_none() || shown.cancel_requested == self.is_cancel_requested;
        let counts = (shown.attempt, shown.failures, shown.expiries);
        shown.state == state
            && lease_fits
            && flag_fits
            && counts == (self.attempt, self.failures, self.expiries)
    }
}
