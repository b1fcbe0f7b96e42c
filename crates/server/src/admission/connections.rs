//! Connection tracking: idle timeouts, and eviction of idle connections when the limit is reached.
//!
//! Connections cost a descriptor before any key can be asked for. So a connection that sends no
//! request, or none that passes the guard, is closed soon, and at the limit it makes room for the
//! next one. A connection with a request of an admitted client under way is never closed here.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::limits::{EVICTION_TIMEOUT, FIRST_REQUEST_TIMEOUT, IDLE_TIMEOUT};

/// Candidates that one scan of all connections finds. The next connections use the same list, so
/// that a flood of connections does not cost a scan each.
const CANDIDATES_MAX: usize = 128;

/// All connections of a listener.
#[derive(Debug)]
pub(crate) struct Connections {
    places: Arc<Semaphore>,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    /// The open ones; a free slot is `None`.
    slots: Vec<Option<Arc<Connection>>>,
    free: Vec<usize>,
    /// With the rank that each had when it was found. All are of one trust.
    candidates: VecDeque<(Rank, Arc<Connection>)>,
}

/// What comes first is evicted first.
type Rank = (Trust, Instant);

/// One connection, as the listener, its task and its requests see it.
#[derive(Debug)]
pub(crate) struct Connection {
    state: Mutex<State>,
    evicted: Notify,
}

#[derive(Clone, Copy, Debug)]
struct State {
    trust: Trust,
    /// Requests that have no complete answer yet.
    requests: usize,
    /// When the last request ended; before that, when the connection was accepted.
    quiet_since: Instant,
    /// It is being closed, or is closed: nothing is begun on it any more.
    is_closing: bool,
}

/// Whether a request of the connection has passed the guard. Strangers are evicted first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Trust {
    Stranger,
    Admitted,
}

/// A place in the table, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    connections: Arc<Connections>,
    slot: usize,
    pub(crate) connection: Arc<Connection>,
    // Given back after the slot is free.
    _permit: OwnedSemaphorePermit,
}

/// What became of a request for a place.
#[derive(Debug)]
pub(crate) enum Admission {
    Place(Place),
    /// The same, and another connection was closed for it.
    Evicted(Place),
    /// All connections are at work.
    Full,
}

impl Connections {
    pub(crate) fn new(connections_max: usize) -> Arc<Self> {
        let places = Arc::new(Semaphore::new(connections_max));
        Arc::new(Self { places, table: Mutex::default() })
    }

    /// A place for a new connection; at the limit, that of an idle one.
    pub(crate) async fn admit(self: &Arc<Self>) -> Admission {
        if let Ok(permit) = Arc::clone(&self.places).try_acquire_owned() {
            return Admission::Place(self.enter(permit));
        }
        if !self.evict() {
            return Admission::Full;
        }
        // The evicted one gives its place back as soon as its task is polled.
        let permit = Arc::clone(&self.places).acquire_owned();
        match tokio::time::timeout(EVICTION_TIMEOUT, permit).await {
            Ok(Ok(permit)) => Admission::Evicted(self.enter(permit)),
            Ok(Err(_)) | Err(_) => Admission::Full,
        }
    }

    fn enter(self: &Arc<Self>, permit: OwnedSemaphorePermit) -> Place {
        let connection = Arc::new(Connection::new());
        let mut table = self.table();
        let slot = table.free.pop().unwrap_or(table.slots.len());
        match table.slots.get_mut(slot) {
            Some(free) => *free = Some(Arc::clone(&connection)),
            None => table.slots.push(Some(Arc::clone(&connection))),
        }
        drop(table);
        Place { connections: Arc::clone(self), slot, connection, _permit: permit }
    }

    /// Closes the connection that is worth least, if there is one that may be closed.
    fn evict(&self) -> bool {
        let mut table = self.table();
        for scans in 0..2 {
            while let Some((rank, candidate)) = table.candidates.pop_front() {
                if candidate.evict(rank) {
                    return true;
                }
            }
            // Those that an earlier scan found may have gone or become busy.
            if scans == 0 {
                table.find_candidates();
            }
        }
        false
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn find_candidates(&mut self) {
        let open = self.slots.iter().flatten();
        let mut found: Vec<_> =
            open.filter_map(|connection| Some((connection.rank()?, connection))).collect();
        if found.len() > CANDIDATES_MAX {
            found.select_nth_unstable_by_key(CANDIDATES_MAX, |(rank, _)| *rank);
            found.truncate(CANDIDATES_MAX);
        }
        found.sort_unstable_by_key(|(rank, _)| *rank);
        // While there are strangers, no admitted client is a candidate: those that come until the next
        // scan are strangers too, and are evicted before it.
        let trust = found.first().map(|((trust, _), _)| *trust);
        let found = found.into_iter().take_while(|((of, _), _)| Some(*of) == trust);
        self.candidates = found.map(|(rank, connection)| (rank, Arc::clone(connection))).collect();
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // It may still be a candidate, but has no place left to give.
        self.connection.state().is_closing = true;
        let mut table = self.connections.table();
        table.slots[self.slot] = None;
        table.free.push(self.slot);
    }
}

impl Connection {
    fn new() -> Self {
        let state = State {
            trust: Trust::Stranger,
            requests: 0,
            quiet_since: Instant::now(),
            is_closing: false,
        };
        Self { state: Mutex::new(state), evicted: Notify::new() }
    }

    /// A request of it has passed the guard.
    pub(crate) fn admit(&self) {
        self.state().trust = Trust::Admitted;
    }

    /// A request begins; none if the connection is being closed, so that no request is begun whose
    /// answer could not be sent.
    pub(crate) fn begin(self: &Arc<Self>) -> Option<Exchange> {
        let mut state = self.state();
        if state.is_closing {
            return None;
        }
        state.requests += 1;
        drop(state);
        Some(Exchange(Arc::clone(self)))
    }

    /// Completes when it is to be closed at once, to make room for another.
    pub(crate) async fn evicted(&self) {
        self.evicted.notified().await;
    }

    /// Completes when it has had no request for too long.
    pub(crate) async fn idle(&self) {
        loop {
            let state = *self.state();
            let patience = state.patience();
            let now = Instant::now();
            let idle_at = if state.requests > 0 { now } else { state.quiet_since } + patience;
            if idle_at <= now {
                return;
            }
            tokio::time::sleep_until(idle_at).await;
        }
    }

    /// None if it may not be closed.
    fn rank(&self) -> Option<Rank> {
        self.state().rank()
    }

    /// Closes the connection, unless it had a request since it was ranked.
    fn evict(&self, rank: Rank) -> bool {
        let mut state = self.state();
        let evicts = state.rank() == Some(rank);
        state.is_closing |= evicts;
        drop(state);
        if evicts {
            self.evicted.notify_one();
        }
        evicts
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn patience(&self) -> Duration {
        match self.trust {
            Trust::Stranger => FIRST_REQUEST_TIMEOUT,
            Trust::Admitted => IDLE_TIMEOUT,
        }
    }

    /// A request of a stranger was refused, or is one that needs no key: it holds nobody's work.
    fn rank(&self) -> Option<Rank> {
        let may_be_evicted =
            !self.is_closing && (self.trust == Trust::Stranger || self.requests == 0);
        may_be_evicted.then_some((self.trust, self.quiet_since))
    }
}

/// A request and its answer, until both are dropped.
#[derive(Debug)]
pub(crate) struct Exchange(Arc<Connection>);

impl Drop for Exchange {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.requests -= 1;
        state.quiet_since = Instant::now();
    }
}

/// The body of an answer. Its exchange is over when the connection has taken all of it.
#[derive(Debug)]
pub(crate) struct Answering {
    body: Body,
    _exchange: Exchange,
}

impl Answering {
    pub(crate) fn new(body: Body, exchange: Exchange) -> Self {
        Self { body, _exchange: exchange }
    }
}

impl HttpBody for Answering {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        HttpBody::size_hint(&self.body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn place(connections: &Arc<Connections>) -> Place {
        let Admission::Place(place) = connections.admit().await else { panic!("there is room") };
        place
    }

    /// Asks for a place at the limit, while the task of the one that has to go gives its place back.
    async fn replace(connections: &Arc<Connections>, evicted: Place) -> Place {
        let going = async {
            let told = evicted.connection.evicted();
            tokio::time::timeout(2 * EVICTION_TIMEOUT, told).await.expect("it is this one");
            drop(evicted);
        };
        let (Admission::Evicted(place), ()) = tokio::join!(connections.admit(), going) else {
            panic!("one has to go")
        };
        place
    }

    #[tokio::test(start_paused = true)]
    async fn connections_at_work_for_admitted_clients_are_never_evicted() {
        let connections = Connections::new(2);
        let (first, second) = (place(&connections).await, place(&connections).await);
        let mut exchanges = Vec::new();
        for place in [&first, &second] {
            exchanges.push(place.connection.begin().unwrap());
            place.connection.admit();
        }
        assert!(matches!(connections.admit().await, Admission::Full));
        // An answer that was sent makes its connection one that can go.
        exchanges.pop();
        replace(&connections, second).await;
        assert!(first.connection.begin().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn strangers_go_before_admitted_clients_and_the_longest_quiet_first() {
        let connections = Connections::new(4);
        let mut places = Vec::new();
        for _ in 0..4 {
            places.push(place(&connections).await);
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        let [admitted, refused, silent, newest] = places.try_into().unwrap();
        drop(admitted.connection.begin());
        admitted.connection.admit();
        // Its request was refused, so it is a stranger, but not the longest quiet one any more.
        drop(refused.connection.begin());
        // One that is being refused at the moment can go too.
        let _refusing = newest.connection.begin().unwrap();
        for next in [silent, newest, refused] {
            let evicted = Arc::clone(&next.connection);
            let last = replace(&connections, next).await;
            assert!(evicted.begin().is_none(), "nothing is begun that cannot be answered");
            last.connection.begin().unwrap();
            last.connection.admit();
            std::mem::forget(last.connection.begin());
            std::mem::forget(last);
        }
        replace(&connections, admitted).await;
    }

    /// A scan finds more than one candidate. The connections that come before the next scan are
    /// strangers, and are worth less than an admitted client that the first scan saw.
    #[tokio::test(start_paused = true)]
    async fn an_idle_client_outlives_any_number_of_strangers() {
        let connections = Connections::new(3);
        let admitted = place(&connections).await;
        drop(admitted.connection.begin());
        admitted.connection.admit();
        let mut strangers = VecDeque::new();
        for _ in 0..2 {
            strangers.push_back(place(&connections).await);
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        for _ in 0..10 {
            let oldest = strangers.pop_front().unwrap();
            strangers.push_back(replace(&connections, oldest).await);
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        // A stranger that becomes a client after a scan is not evicted by what that scan found.
        let oldest = strangers.pop_front().unwrap();
        strangers.push_back(replace(&connections, oldest).await);
        tokio::time::advance(Duration::from_millis(1)).await;
        let new_client = strangers.pop_front().unwrap();
        drop(new_client.connection.begin());
        new_client.connection.admit();
        let oldest = strangers.pop_front().unwrap();
        replace(&connections, oldest).await;
        assert!(admitted.connection.begin().is_some() && new_client.connection.begin().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_ended_by_itself_is_not_evicted_for_another() {
        let connections = Connections::new(3);
        let first = place(&connections).await;
        tokio::time::advance(Duration::from_millis(1)).await;
        let second = place(&connections).await;
        tokio::time::advance(Duration::from_millis(1)).await;
        let third = place(&connections).await;
        // From now on the second and the third are known as the next candidates.
        let _fourth = replace(&connections, first).await;
        drop(second);
        let _fifth = place(&connections).await;
        replace(&connections, third).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_without_requests_is_idle_sooner_for_strangers() {
        let connections = Connections::new(1);
        let place = place(&connections).await;
        let begun = Instant::now();
        place.connection.idle().await;
        assert_eq!(begun.elapsed(), FIRST_REQUEST_TIMEOUT);
        place.connection.admit();
        place.connection.idle().await;
        assert_eq!(begun.elapsed(), IDLE_TIMEOUT);
        // While a request is under way it is not idle, and after that the time begins anew.
        let exchange = place.connection.begin().unwrap();
        let work = async {
            tokio::time::sleep(10 * IDLE_TIMEOUT).await;
            drop(exchange);
            Instant::now()
        };
        let ((), ended) = tokio::join!(place.connection.idle(), work);
        assert!(ended.elapsed() >= IDLE_TIMEOUT && ended.elapsed() < 2 * IDLE_TIMEOUT);
    }
}
