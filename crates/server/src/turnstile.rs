//! New work takes its turn, so that a crowd of clients cannot push workers aside: only so much of it
//! is read, decided and answered at a time, and the rest waits without costing anything. Once
//! somebody has to wait, and as long as workers find more work than they take, it is still less: new
//! work that nobody would do any sooner must not slow down those who do the old. Whoever waits too
//! long, or finds too many waiting, is refused; its body was not read.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure_coordinator::Supply;
use tokio::sync::oneshot;

use crate::limits::{
    NEW_WORK_BYTES_AT_LEAST, NEW_WORK_BYTES_AT_ONCE, NEW_WORK_WAIT_MAX, NEW_WORK_WAITING_MAX,
};
use crate::problem::Problem;

/// However little a request has, it counts as so much.
const UNIT_BYTES: u64 = 4 << 10;
const UNITS: u32 = (NEW_WORK_BYTES_AT_ONCE / UNIT_BYTES) as u32;
/// What there is for those who wait while workers have enough to do.
const UNITS_AT_LEAST: u32 = (NEW_WORK_BYTES_AT_LEAST / UNIT_BYTES) as u32;
/// However much it has, it counts as no more: large ones must not go one by one, each waiting for
/// the disk alone.
const UNITS_EACH_MAX: u32 = UNITS / 8;

const _: () = assert!(UNITS_EACH_MAX <= UNITS_AT_LEAST, "the largest gets its turn too");

/// The way in for new work.
pub(crate) struct Turnstile {
    /// Whether workers find more work than they take.
    supply: Box<dyn Fn() -> Supply + Send + Sync>,
    inside: Mutex<Inside>,
}

#[derive(Debug, Default)]
struct Inside {
    /// What those have who have their turn.
    units: u32,
    /// Those who wait, by their arrival.
    line: BTreeMap<u64, Waiter>,
    arrivals: u64,
}

#[derive(Debug)]
struct Waiter {
    units: u32,
    call: oneshot::Sender<()>,
}

/// A place in the line, and the turn that follows, until it is dropped.
pub(crate) struct Turn<'a> {
    turnstile: &'a Turnstile,
    units: u32,
    /// Where it waits or has waited, if it had to.
    place: Option<u64>,
}

impl fmt::Debug for Turnstile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turnstile").field("inside", &self.inside).finish_non_exhaustive()
    }
}

impl Turnstile {
    pub(crate) fn new(supply: impl Fn() -> Supply + Send + Sync + 'static) -> Self {
        Self { supply: Box::new(supply), inside: Mutex::default() }
    }

    /// Waits for a turn, in order of arrival.
    pub(crate) async fn enter(&self, bytes: u64) -> Result<Turn<'_>, Problem> {
        self.enter_within(bytes, NEW_WORK_WAIT_MAX).await
    }

    async fn enter_within(&self, bytes: u64, patience: Duration) -> Result<Turn<'_>, Problem> {
        let units = u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(UNITS_EACH_MAX);
        let (turn, call) = self.arrive(units.clamp(1, UNITS_EACH_MAX))?;
        let Some(call) = call else { return Ok(turn) };
        match tokio::time::timeout(patience, call).await {
            Ok(Ok(())) => Ok(turn),
            // Nobody drops a call unheard; a turn that did not come is the same.
            Ok(Err(_)) | Err(_) => {
                let ms = patience.as_millis();
                Err(overloaded(&format!("new work had to wait for more than {ms} ms")))
            }
        }
    }

    /// A turn, or a place in the line and the call to come.
    fn arrive(&self, units: u32) -> Result<(Turn<'_>, Option<oneshot::Receiver<()>>), Problem> {
        let mut inside = self.lock();
        if inside.line.is_empty() && inside.units + units <= UNITS {
            inside.units += units;
            return Ok((Turn { turnstile: self, units, place: None }, None));
        }
        if inside.line.len() >= NEW_WORK_WAITING_MAX {
            let why = format!("{NEW_WORK_WAITING_MAX} requests with new work wait already");
            return Err(overloaded(&why));
        }
        let (call, called) = oneshot::channel();
        let place = inside.arrivals;
        inside.arrivals += 1;
        inside.line.insert(place, Waiter { units, call });
        // Workers may want more than when the last one left.
        inside.let_in((self.supply)());
        Ok((Turn { turnstile: self, units, place: Some(place) }, Some(called)))
    }

    /// How many wait for their turn.
    pub(crate) fn waiting(&self) -> usize {
        self.lock().line.len()
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inside {
    /// Calls those who may come in now.
    fn let_in(&mut self, supply: Supply) {
        let width = match supply {
            Supply::Short => UNITS,
            Supply::Ample => UNITS_AT_LEAST,
        };
        while let Some(first) = self.line.first_entry()
            && self.units + first.get().units <= width
        {
            let Waiter { units, call } = first.remove();
            self.units += units;
            // Whoever went away in this moment gives the turn back.
            let _ = call.send(());
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut inside = self.turnstile.lock();
        let had_to_wait = self.place.and_then(|place| inside.line.remove(&place));
        if had_to_wait.is_none() {
            inside.units -= self.units;
        }
        if !inside.line.is_empty() {
            inside.let_in((self.turnstile.supply)());
        }
    }
}

fn overloaded(why: &str) -> Problem {
    Problem::new("overloaded", format!("{why}; try again in a moment"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    fn short() -> Turnstile {
        Turnstile::new(|| Supply::Short)
    }

    fn ample() -> Turnstile {
        Turnstile::new(|| Supply::Ample)
    }

    /// Takes all that there is, in large pieces.
    async fn fill(turnstile: &Turnstile) -> Vec<Turn<'_>> {
        let mut turns = Vec::new();
        for _ in 0..UNITS / UNITS_EACH_MAX {
            turns.push(turnstile.enter_within(u64::MAX, Duration::ZERO).await.ok().unwrap());
        }
        turns
    }

    /// So many that wait, without the wait.
    fn line_up(turnstile: &Turnstile, count: u32) -> Vec<(Turn<'_>, oneshot::Receiver<()>)> {
        let arrive = |_| {
            let (turn, call) = turnstile.arrive(1).ok().unwrap();
            (turn, call.unwrap())
        };
        (0..count).map(arrive).collect()
    }

    fn called(line: &mut [(Turn<'_>, oneshot::Receiver<()>)]) -> usize {
        line.iter_mut().filter_map(|(_, call)| call.try_recv().ok()).count()
    }

    #[tokio::test(start_paused = true)]
    async fn new_work_waits_for_its_turn_and_not_for_ever() {
        for turnstile in [short(), ample()] {
            let all = fill(&turnstile).await;
            let refusal = turnstile.enter(1).await.err().unwrap();
            assert_eq!(refusal.code, "overloaded");
            assert_eq!(turnstile.waiting(), 0);
            let (turn, ()) = tokio::join!(turnstile.enter(1), async { drop(all) });
            assert!(turn.is_ok());
        }
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_is_not_joined() {
        let turnstile = ample();
        let _all = fill(&turnstile).await;
        let line = line_up(&turnstile, NEW_WORK_WAITING_MAX as u32);
        assert!(turnstile.enter(1).await.err().unwrap().detail.contains("wait already"));
        assert_eq!(turnstile.waiting(), NEW_WORK_WAITING_MAX);
        drop(line);
        assert_eq!(turnstile.waiting(), 0);
    }

    #[tokio::test]
    async fn small_requests_go_side_by_side_if_all_of_them_find_room() {
        for turnstile in [short(), ample()] {
            let mut turns = Vec::new();
            for _ in 0..UNITS {
                turns.push(turnstile.enter_within(100, Duration::ZERO).await.ok().unwrap());
            }
            assert!(turnstile.enter_within(100, Duration::ZERO).await.is_err());
        }
    }

    #[tokio::test]
    async fn a_crowd_gets_few_turns_while_workers_have_enough_to_do_but_some() {
        let (turnstile, few) = (ample(), UNITS_AT_LEAST as usize);
        let all = fill(&turnstile).await;
        let mut line = line_up(&turnstile, 2 * UNITS);
        drop(all);
        assert_eq!(called(&mut line), few);
        // Who comes later does not go before those who wait, even if there would be room for it.
        assert!(turnstile.arrive(1).ok().unwrap().1.is_some());
        line.drain(..few);
        assert_eq!(called(&mut line), few, "one follows for each that leaves");
    }

    #[tokio::test]
    async fn a_crowd_gets_all_turns_once_workers_take_all_that_there_is() {
        let is_ample = Arc::new(AtomicBool::new(true));
        let seen = Arc::clone(&is_ample);
        let turnstile = Turnstile::new(move || match seen.load(Ordering::Relaxed) {
            true => Supply::Ample,
            false => Supply::Short,
        });
        let all = fill(&turnstile).await;
        let mut line = line_up(&turnstile, 2 * UNITS);
        drop(all);
        assert_eq!(called(&mut line), UNITS_AT_LEAST as usize);
        is_ample.store(false, Ordering::Relaxed);
        drop(line.remove(0));
        assert_eq!(called(&mut line), (UNITS - UNITS_AT_LEAST + 1) as usize);
    }

    #[tokio::test]
    async fn whoever_leaves_before_or_after_the_call_takes_no_turn_along() {
        let turnstile = ample();
        let all = fill(&turnstile).await;
        let mut line = line_up(&turnstile, 2 * UNITS_AT_LEAST + 1);
        drop(line.pop());
        drop(all);
        // All of them leave: those who were called and did not hear it, and those who were not.
        drop(line);
        let inside = turnstile.lock();
        assert_eq!((inside.units, inside.line.len()), (0, 0));
    }
}
