//! New work takes its turn, so that a crowd of clients cannot push workers aside: only so much of it
//! is read, decided and answered at a time, and the rest waits without costing anything. Once
//! somebody has to wait, and as long as workers find more work than they take, it is still less: new
//! work that nobody would do any sooner must not slow down those who do the old. A large request then
//! keeps its turn for a while after its answer, as if it were as many as it is worth. Whoever waits
//! too long, or finds too many waiting, is refused; its body was not read.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure_code::Code;
use tenure_coordinator::Supply;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::limits::{
    NEW_WORK_BYTES_AT_LEAST, NEW_WORK_BYTES_AT_ONCE, NEW_WORK_REST_MAX, NEW_WORK_WAIT_MAX,
    NEW_WORK_WAITING_MAX,
};
use crate::problem::Problem;

/// However little a request has, it counts as so much.
const UNIT_BYTES: u64 = 4 << 10;
const UNITS: u32 = (NEW_WORK_BYTES_AT_ONCE / UNIT_BYTES) as u32;
/// What there is for those who wait while workers have enough to do.
const UNITS_AT_LEAST: u32 = (NEW_WORK_BYTES_AT_LEAST / UNIT_BYTES) as u32;
/// However much it has, it counts as no more at a time: large ones must not go one by one, each
/// waiting for the disk alone.
const UNITS_EACH_MAX: u32 = UNITS / 8;

const _: () = assert!(UNITS_EACH_MAX <= UNITS_AT_LEAST, "the largest gets its turn too");

/// The way in for new work.
pub(crate) struct Turnstile(Arc<Way>);

struct Way {
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
pub(crate) struct Turn {
    way: Arc<Way>,
    units: u32,
    /// How many it would be if none were too many.
    worth: u32,
    /// When the turn began.
    since: Instant,
    /// Where it waits or has waited, if it had to.
    place: Option<u64>,
}

impl fmt::Debug for Turnstile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turnstile").field("inside", &self.0.inside).finish_non_exhaustive()
    }
}

impl Turnstile {
    pub(crate) fn new(supply: impl Fn() -> Supply + Send + Sync + 'static) -> Self {
        Self(Arc::new(Way { supply: Box::new(supply), inside: Mutex::default() }))
    }

    /// Waits for a turn, in order of arrival.
    pub(crate) async fn enter(&self, bytes: u64) -> Result<Turn, Problem> {
        self.enter_within(bytes, NEW_WORK_WAIT_MAX).await
    }

    async fn enter_within(&self, bytes: u64, patience: Duration) -> Result<Turn, Problem> {
        let worth = u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX).max(1);
        let (mut turn, call) = self.arrive(worth)?;
        let Some(call) = call else { return Ok(turn) };
        match tokio::time::timeout(patience, call).await {
            Ok(Ok(())) => {
                turn.since = Instant::now();
                Ok(turn)
            }
            // Nobody drops a call unheard; a turn that did not come is the same.
            Ok(Err(_)) | Err(_) => {
                let ms = patience.as_millis();
                Err(overloaded(&format!("new work had to wait for more than {ms} ms")))
            }
        }
    }

    /// A turn, or a place in the line and the call to come.
    fn arrive(&self, worth: u32) -> Result<(Turn, Option<oneshot::Receiver<()>>), Problem> {
        let (way, units, since) = (Arc::clone(&self.0), worth.min(UNITS_EACH_MAX), Instant::now());
        let mut inside = self.0.lock();
        if inside.line.is_empty() && inside.units + units <= UNITS {
            inside.units += units;
            return Ok((Turn { way, units, worth, since, place: None }, None));
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
        inside.let_in((self.0.supply)());
        Ok((Turn { way, units, worth, since, place: Some(place) }, Some(called)))
    }

    /// How many wait for their turn.
    pub(crate) fn waiting(&self) -> usize {
        self.0.lock().line.len()
    }
}

impl Way {
    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Somebody's turn is over.
    fn leave(&self, units: u32) {
        let mut inside = self.lock();
        inside.units -= units;
        inside.let_in((self.supply)());
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

impl Turn {
    /// How long it is kept after the answer: a large request costs all others as much as several
    /// small ones, and while workers have enough to do, it makes way for no more than these would.
    fn rest(&self) -> Duration {
        let too_many = f64::from(self.worth - self.units) / f64::from(self.units);
        self.since.elapsed().mul_f64(too_many).min(NEW_WORK_REST_MAX)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut inside = self.way.lock();
        if self.place.is_some_and(|place| inside.line.remove(&place).is_some()) {
            // It never had its turn; those behind it may be smaller.
            return inside.let_in((self.way.supply)());
        }
        let is_awaited = !inside.line.is_empty() && (self.way.supply)() == Supply::Ample;
        drop(inside);
        let (way, units, rest) = (Arc::clone(&self.way), self.units, self.rest());
        match Handle::try_current() {
            Ok(runtime) if is_awaited && !rest.is_zero() => {
                runtime.spawn(async move {
                    tokio::time::sleep(rest).await;
                    way.leave(units);
                });
            }
            Ok(_) | Err(_) => way.leave(units),
        }
    }
}

fn overloaded(why: &str) -> Problem {
    Problem::new(Code::Overloaded, format!("{why}; try again in a moment"))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    fn short() -> Turnstile {
        Turnstile::new(|| Supply::Short)
    }

    fn ample() -> Turnstile {
        Turnstile::new(|| Supply::Ample)
    }

    /// Takes all that is left, in small pieces.
    fn fill(turnstile: &Turnstile) -> Vec<Turn> {
        let left = UNITS - turnstile.0.lock().units;
        (0..left).map(|_| turnstile.arrive(1).ok().unwrap().0).collect()
    }

    /// So many that wait, without the wait.
    fn line_up(turnstile: &Turnstile, count: u32) -> Vec<(Turn, oneshot::Receiver<()>)> {
        let arrive = |_| {
            let (turn, call) = turnstile.arrive(1).ok().unwrap();
            (turn, call.unwrap())
        };
        (0..count).map(arrive).collect()
    }

    fn called(line: &mut [(Turn, oneshot::Receiver<()>)]) -> usize {
        line.iter_mut().filter_map(|(_, call)| call.try_recv().ok()).count()
    }

    #[tokio::test(start_paused = true)]
    async fn new_work_waits_for_its_turn_and_not_for_ever() {
        for turnstile in [short(), ample()] {
            let all = fill(&turnstile);
            let refusal = turnstile.enter(1).await.err().unwrap();
            assert_eq!(refusal.code, Code::Overloaded);
            assert_eq!(turnstile.waiting(), 0);
            let (turn, ()) = tokio::join!(turnstile.enter(1), async { drop(all) });
            assert!(turn.is_ok());
        }
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_is_not_joined() {
        let turnstile = ample();
        let _all = fill(&turnstile);
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
        let all = fill(&turnstile);
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
        let all = fill(&turnstile);
        let mut line = line_up(&turnstile, 2 * UNITS);
        drop(all);
        assert_eq!(called(&mut line), UNITS_AT_LEAST as usize);
        is_ample.store(false, Ordering::Relaxed);
        drop(line.remove(0));
        assert_eq!(called(&mut line), (UNITS - UNITS_AT_LEAST + 1) as usize);
    }

    /// How long a request keeps its turn after its answer, which took `served`, while one waits.
    async fn rest_after(turnstile: &Turnstile, bytes: u64, served: Duration) -> Duration {
        let turn = turnstile.enter(bytes).await.ok().unwrap();
        let others = fill(turnstile);
        let mut line = line_up(turnstile, 1);
        tokio::time::sleep(served).await;
        drop(others);
        drop(turn);
        let begin = Instant::now();
        while called(&mut line) == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        begin.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn while_workers_have_enough_to_do_a_large_request_keeps_its_turn_for_what_it_is_worth() {
        let most = u64::from(UNITS_EACH_MAX) * UNIT_BYTES;
        let ms = Duration::from_millis;
        assert_eq!(rest_after(&ample(), 1, ms(10)).await, ms(0));
        assert_eq!(rest_after(&ample(), most, ms(10)).await, ms(0));
        // A sleep may take a millisecond more than it should.
        let rest = rest_after(&ample(), 3 * most, ms(10)).await;
        assert!((20..=24).contains(&rest.as_millis()), "{rest:?}");
        let rest = rest_after(&ample(), u64::MAX, ms(10)).await;
        assert!((100..=102).contains(&rest.as_millis()), "{rest:?}");
        assert_eq!(rest_after(&short(), u64::MAX, ms(10)).await, ms(0));
        let (turnstile, alone) = (ample(), 3 * most);
        drop(turnstile.enter(alone).await);
        assert_eq!(turnstile.0.lock().units, 0, "nobody waits for it");
    }

    #[tokio::test]
    async fn whoever_leaves_before_or_after_the_call_takes_no_turn_along() {
        let turnstile = ample();
        let all = fill(&turnstile);
        let mut line = line_up(&turnstile, 2 * UNITS_AT_LEAST + 1);
        drop(line.pop());
        drop(all);
        // All of them leave: those who were called and did not hear it, and those who were not.
        drop(line);
        let inside = turnstile.0.lock();
        assert_eq!((inside.units, inside.line.len()), (0, 0));
    }
}
