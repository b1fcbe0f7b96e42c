//! Admission control for submits: a byte-weighted FIFO semaphore that shrinks while workers are
//! saturated.
//!
//! A submit holds a permit from before its body is read until its response is made, so new work is
//! bounded and cannot crowd out reports from workers. While requests wait and workers leave ready
//! tasks behind, the semaphore has fewer units, and a large request holds its permit for up to
//! `NEW_WORK_REST_MAX` after its response. A request that waits too long, or finds too many waiting,
//! is rejected before its body is read.

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

/// The smallest cost of a request.
const UNIT_BYTES: u64 = 4 << 10;
const UNITS: u32 = (NEW_WORK_BYTES_AT_ONCE / UNIT_BYTES) as u32;
/// The capacity for waiting requests while workers are saturated.
const UNITS_AT_LEAST: u32 = (NEW_WORK_BYTES_AT_LEAST / UNIT_BYTES) as u32;
/// The largest cost of a request: large requests must share a group commit instead of each waiting
/// for a sync of its own.
const UNITS_EACH_MAX: u32 = UNITS / 8;

const _: () =
    assert!(UNITS_EACH_MAX <= UNITS_AT_LEAST, "the largest request fits the smallest capacity");

/// Bounds the bytes of submits that are read, decided and answered at a time.
pub(crate) struct SubmitLimiter(Arc<Shared>);

struct Shared {
    /// Whether workers leave ready tasks behind when they lease.
    supply: Box<dyn Fn() -> Supply + Send + Sync>,
    inside: Mutex<Inside>,
}

#[derive(Debug, Default)]
struct Inside {
    /// The sum of the costs of all permits that are held.
    units: u32,
    /// Waiting requests, by arrival.
    line: BTreeMap<u64, Waiter>,
    arrivals: u64,
}

#[derive(Debug)]
struct Waiter {
    units: u32,
    call: oneshot::Sender<()>,
}

/// A position in the line and then a part of the capacity, until it is dropped.
pub(crate) struct Permit {
    shared: Arc<Shared>,
    units: u32,
    /// The cost without its upper bound.
    worth: u32,
    /// When the permit was granted.
    since: Instant,
    /// Its position in the line, if it had to wait.
    place: Option<u64>,
}

impl fmt::Debug for SubmitLimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubmitLimiter").field("inside", &self.0.inside).finish_non_exhaustive()
    }
}

impl SubmitLimiter {
    pub(crate) fn new(supply: impl Fn() -> Supply + Send + Sync + 'static) -> Self {
        Self(Arc::new(Shared { supply: Box::new(supply), inside: Mutex::default() }))
    }

    /// Waits for a permit, in order of arrival.
    pub(crate) async fn enter(&self, bytes: u64) -> Result<Permit, Problem> {
        self.enter_within(bytes, NEW_WORK_WAIT_MAX).await
    }

    async fn enter_within(&self, bytes: u64, patience: Duration) -> Result<Permit, Problem> {
        let worth = u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX).max(1);
        let (mut permit, call) = self.arrive(worth)?;
        let Some(call) = call else { return Ok(permit) };
        match tokio::time::timeout(patience, call).await {
            Ok(Ok(())) => {
                permit.since = Instant::now();
                Ok(permit)
            }
            // A call is never dropped while its permit waits; treat it as a timeout all the same.
            Ok(Err(_)) | Err(_) => {
                let ms = patience.as_millis();
                Err(overloaded(&format!("new work had to wait for more than {ms} ms")))
            }
        }
    }

    /// A granted permit, or a waiting one and the call that grants it.
    fn arrive(&self, worth: u32) -> Result<(Permit, Option<oneshot::Receiver<()>>), Problem> {
        let (shared, units, since) =
            (Arc::clone(&self.0), worth.min(UNITS_EACH_MAX), Instant::now());
        let mut inside = self.0.lock();
        if inside.line.is_empty() && inside.units + units <= UNITS {
            inside.units += units;
            return Ok((Permit { shared, units, worth, since, place: None }, None));
        }
        if inside.line.len() >= NEW_WORK_WAITING_MAX {
            let why = format!("{NEW_WORK_WAITING_MAX} requests with new work wait already");
            return Err(overloaded(&why));
        }
        let (call, called) = oneshot::channel();
        let place = inside.arrivals;
        inside.arrivals += 1;
        inside.line.insert(place, Waiter { units, call });
        // Workers may have become less saturated since the last permit was returned.
        inside.let_in((self.0.supply)());
        Ok((Permit { shared, units, worth, since, place: Some(place) }, Some(called)))
    }

    /// The number of waiting requests.
    pub(crate) fn waiting(&self) -> usize {
        self.0.lock().line.len()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the units of a permit.
    fn leave(&self, units: u32) {
        let mut inside = self.lock();
        inside.units -= units;
        inside.let_in((self.supply)());
    }
}

impl Inside {
    /// Grants permits to waiting requests while the capacity lasts.
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
            // A caller that is gone returns the units when its permit is dropped.
            let _ = call.send(());
        }
    }
}

impl Permit {
    /// How long the permit is held after the response: a large request costs as much as several small
    /// ones, and so uses the capacity for as long as they would.
    fn rest(&self) -> Duration {
        let too_many = f64::from(self.worth - self.units) / f64::from(self.units);
        self.since.elapsed().mul_f64(too_many).min(NEW_WORK_REST_MAX)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut inside = self.shared.lock();
        if self.place.is_some_and(|place| inside.line.remove(&place).is_some()) {
            // It was never granted; smaller requests behind it may fit now.
            return inside.let_in((self.shared.supply)());
        }
        let is_awaited = !inside.line.is_empty() && (self.shared.supply)() == Supply::Ample;
        drop(inside);
        let (shared, units, rest) = (Arc::clone(&self.shared), self.units, self.rest());
        match Handle::try_current() {
            Ok(runtime) if is_awaited && !rest.is_zero() => {
                runtime.spawn(async move {
                    tokio::time::sleep(rest).await;
                    shared.leave(units);
                });
            }
            Ok(_) | Err(_) => shared.leave(units),
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

    fn short() -> SubmitLimiter {
        SubmitLimiter::new(|| Supply::Short)
    }

    fn ample() -> SubmitLimiter {
        SubmitLimiter::new(|| Supply::Ample)
    }

    /// Takes all that is left, in small pieces.
    fn fill(submit_limiter: &SubmitLimiter) -> Vec<Permit> {
        let left = UNITS - submit_limiter.0.lock().units;
        (0..left).map(|_| submit_limiter.arrive(1).ok().unwrap().0).collect()
    }

    /// So many that wait, without the wait.
    fn line_up(submit_limiter: &SubmitLimiter, count: u32) -> Vec<(Permit, oneshot::Receiver<()>)> {
        let arrive = |_| {
            let (permit, call) = submit_limiter.arrive(1).ok().unwrap();
            (permit, call.unwrap())
        };
        (0..count).map(arrive).collect()
    }

    fn called(line: &mut [(Permit, oneshot::Receiver<()>)]) -> usize {
        line.iter_mut().filter_map(|(_, call)| call.try_recv().ok()).count()
    }

    #[tokio::test(start_paused = true)]
    async fn new_work_waits_for_its_turn_and_not_for_ever() {
        for submit_limiter in [short(), ample()] {
            let all = fill(&submit_limiter);
            let refusal = submit_limiter.enter(1).await.err().unwrap();
            assert_eq!(refusal.code, Code::Overloaded);
            assert_eq!(submit_limiter.waiting(), 0);
            let (permit, ()) = tokio::join!(submit_limiter.enter(1), async { drop(all) });
            assert!(permit.is_ok());
        }
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_is_not_joined() {
        let submit_limiter = ample();
        let _all = fill(&submit_limiter);
        let line = line_up(&submit_limiter, NEW_WORK_WAITING_MAX as u32);
        assert!(submit_limiter.enter(1).await.err().unwrap().detail.contains("wait already"));
        assert_eq!(submit_limiter.waiting(), NEW_WORK_WAITING_MAX);
        drop(line);
        assert_eq!(submit_limiter.waiting(), 0);
    }

    #[tokio::test]
    async fn small_requests_go_side_by_side_if_all_of_them_find_room() {
        for submit_limiter in [short(), ample()] {
            let mut turns = Vec::new();
            for _ in 0..UNITS {
                turns.push(submit_limiter.enter_within(100, Duration::ZERO).await.ok().unwrap());
            }
            assert!(submit_limiter.enter_within(100, Duration::ZERO).await.is_err());
        }
    }

    #[tokio::test]
    async fn a_crowd_gets_few_turns_while_workers_have_enough_to_do_but_some() {
        let (submit_limiter, few) = (ample(), UNITS_AT_LEAST as usize);
        let all = fill(&submit_limiter);
        let mut line = line_up(&submit_limiter, 2 * UNITS);
        drop(all);
        assert_eq!(called(&mut line), few);
        // Who comes later does not go before those who wait, even if there would be room for it.
        assert!(submit_limiter.arrive(1).ok().unwrap().1.is_some());
        line.drain(..few);
        assert_eq!(called(&mut line), few, "one follows for each that leaves");
    }

    #[tokio::test]
    async fn a_crowd_gets_all_turns_once_workers_take_all_that_there_is() {
        let is_ample = Arc::new(AtomicBool::new(true));
        let seen = Arc::clone(&is_ample);
        let submit_limiter = SubmitLimiter::new(move || match seen.load(Ordering::Relaxed) {
            true => Supply::Ample,
            false => Supply::Short,
        });
        let all = fill(&submit_limiter);
        let mut line = line_up(&submit_limiter, 2 * UNITS);
        drop(all);
        assert_eq!(called(&mut line), UNITS_AT_LEAST as usize);
        is_ample.store(false, Ordering::Relaxed);
        drop(line.remove(0));
        assert_eq!(called(&mut line), (UNITS - UNITS_AT_LEAST + 1) as usize);
    }

    /// How long a request keeps its permit after its answer, which took `served`, while one waits.
    async fn rest_after(submit_limiter: &SubmitLimiter, bytes: u64, served: Duration) -> Duration {
        let permit = submit_limiter.enter(bytes).await.ok().unwrap();
        let others = fill(submit_limiter);
        let mut line = line_up(submit_limiter, 1);
        tokio::time::sleep(served).await;
        drop(others);
        drop(permit);
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
        let (submit_limiter, alone) = (ample(), 3 * most);
        drop(submit_limiter.enter(alone).await);
        assert_eq!(submit_limiter.0.lock().units, 0, "nobody waits for it");
    }

    #[tokio::test]
    async fn whoever_leaves_before_or_after_the_call_takes_no_turn_along() {
        let submit_limiter = ample();
        let all = fill(&submit_limiter);
        let mut line = line_up(&submit_limiter, 2 * UNITS_AT_LEAST + 1);
        drop(line.pop());
        drop(all);
        // All of them leave: those who were called and did not hear it, and those who were not.
        drop(line);
        let inside = submit_limiter.0.lock();
        assert_eq!((inside.units, inside.line.len()), (0, 0));
    }
}
