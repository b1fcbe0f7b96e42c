//! Backpressure for answers: the bytes that are made and sent are bounded for each connection and in
//! total, and a connection that does not read its answers is closed. An HTTP/2 client can keep its
//! flow-control window shut and ask on, so the system's time-out for readers does not see it.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes, HttpBody};
use axum::http::Version;
use hyper::body::{Frame, SizeHint};
use tenure_code::Code;
use tenure_coordinator::{Budget, Permit, RequestClass};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use crate::limits::{
    ANSWER_PIECE_BYTES, ANSWER_PIECE_BYTES_HTTP1, ANSWER_ROOM_TIMEOUT, ANSWER_SMALL_BYTES,
    ANSWER_TAKEN_BYTES_MIN, ANSWER_TIMEOUT, CONNECTION_ANSWERS_BYTES_MAX,
};
use crate::problem::Problem;

tokio::task_local! {
    /// The answer that the request of this task gets.
    static ANSWER: Arc<Pending>;
}

/// Bytes of all answers on their way.
#[derive(Clone, Debug)]
pub(crate) struct Answers {
    budget: Budget,
    /// Room for large ones; small ones only count.
    room: Arc<Semaphore>,
    room_bytes: usize,
}

/// What a connection has not read yet.
#[derive(Debug)]
pub(crate) struct InFlight {
    room: Arc<Semaphore>,
    /// Bytes of answers that it has not taken.
    unread: AtomicU64,
    /// Bytes that it has taken.
    taken: AtomicU64,
    /// How often it had taken everything.
    caught_up: AtomicU64,
    is_watched: AtomicBool,
    sent: Notify,
    /// Live updates that it follows.
    followers: AtomicUsize,
}

impl Default for InFlight {
    fn default() -> Self {
        Self {
            room: Arc::new(Semaphore::new(CONNECTION_ANSWERS_BYTES_MAX)),
            unread: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            caught_up: AtomicU64::new(0),
            is_watched: AtomicBool::new(false),
            sent: Notify::new(),
            followers: AtomicUsize::new(0),
        }
    }
}

impl InFlight {
    /// Waits until it has not read its answers for [`ANSWER_TIMEOUT`].
    pub(crate) async fn stalled(&self) {
        loop {
            self.is_watched.store(false, Ordering::SeqCst);
            while self.unread.load(Ordering::SeqCst) == 0 {
                self.sent.notified().await;
            }
            self.is_watched.store(true, Ordering::SeqCst);
            loop {
                let before = self.progress();
                tokio::time::sleep(ANSWER_TIMEOUT).await;
                let (caught_up, taken) = self.progress();
                if self.unread.load(Ordering::SeqCst) == 0 {
                    break;
                }
                if caught_up == before.0 && taken - before.1 < ANSWER_TAKEN_BYTES_MIN {
                    return;
                }
            }
        }
    }

    fn progress(&self) -> (u64, u64) {
        (self.caught_up.load(Ordering::SeqCst), self.taken.load(Ordering::SeqCst))
    }

    fn sends(&self, bytes: u64) {
        self.unread.fetch_add(bytes, Ordering::SeqCst);
        if !self.is_watched.load(Ordering::SeqCst) {
            self.sent.notify_one();
        }
    }

    fn is_read(&self, bytes: u64) {
        if self.unread.fetch_sub(bytes, Ordering::SeqCst) == bytes {
            self.caught_up.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Counts somebody who follows live updates over this connection.
    pub(crate) fn follows(self: &Arc<Self>) -> Following {
        self.followers.fetch_add(1, Ordering::SeqCst);
        Following(Arc::clone(self))
    }

    /// How many follow live updates over it.
    pub(crate) fn followers(&self) -> usize {
        self.followers.load(Ordering::SeqCst)
    }
}

/// A follower of a connection, until it is dropped.
#[derive(Debug)]
pub(crate) struct Following(Arc<InFlight>);

impl Drop for Following {
    fn drop(&mut self) {
        self.0.followers.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Answers {
    /// Answers that count in this pool.
    pub(crate) fn new(budget: Budget) -> Self {
        let most = Semaphore::MAX_PERMITS.min(u32::MAX as usize);
        let room_bytes = usize::try_from(budget.max()).unwrap_or(usize::MAX).min(most);
        Self { budget, room: Arc::new(Semaphore::new(room_bytes)), room_bytes }
    }

    /// The answer that a request will get.
    pub(crate) fn pending(&self, connection: Option<&Arc<InFlight>>) -> Arc<Pending> {
        let connection = connection.map(Arc::clone).unwrap_or_default();
        Arc::new(Pending { answers: self.clone(), connection, held: Mutex::default() })
    }
}

/// An answer that is being made.
#[derive(Debug)]
pub(crate) struct Pending {
    answers: Answers,
    connection: Arc<InFlight>,
    held: Mutex<Held>,
}

/// What an answer holds until it is read.
#[derive(Debug, Default)]
struct Held {
    counted: Option<Permit>,
    connection: Option<OwnedSemaphorePermit>,
    _total: Option<OwnedSemaphorePermit>,
}

impl Pending {
    /// Waits until the connection has read some of what it asked for. Word from workers does not
    /// wait: it has an effect, whether its answer is read or not.
    pub(crate) async fn admit(&self, class: Option<RequestClass>) -> Result<(), Problem> {
        if class == Some(RequestClass::Report) || self.connection.room.available_permits() > 0 {
            return Ok(());
        }
        let room = tokio::time::timeout(ANSWER_ROOM_TIMEOUT, self.connection.room.acquire()).await;
        room.map(drop).map_err(|_| unread())
    }

    /// Runs the handler that makes it.
    pub(crate) async fn during<F: Future>(self: &Arc<Self>, make: F) -> F::Output {
        ANSWER.scope(Arc::clone(self), make).await
    }

    /// The answer's body, which counts until it is read.
    pub(crate) fn attach(&self, body: Body, version: Version) -> Body {
        let mut held = std::mem::take(&mut *self.held());
        let reserved = held.counted.as_ref().map_or(0, Permit::bytes);
        let Some(bytes) = body.size_hint().exact().or((reserved > 0).then_some(reserved)) else {
            // A stream, which has bounds of its own.
            return body;
        };
        if bytes == 0 {
            return body;
        }
        match &mut held.counted {
            Some(counted) => {
                counted.resize(bytes);
            }
            None => held.counted = Some(self.answers.budget.take(bytes)),
        }
        // What was not known before takes what room there is, so that the next one has to wait.
        let connection = Arc::clone(&self.connection);
        let free = connection.room.available_permits();
        let wanted = usize::try_from(bytes).unwrap_or(usize::MAX).min(free);
        if held.connection.is_none() && wanted > 0 {
            let room = Arc::clone(&connection.room);
            held.connection = room.try_acquire_many_owned(wanted as u32).ok();
        }
        connection.sends(bytes);
        let piece_bytes = match version < Version::HTTP_2 {
            true => ANSWER_PIECE_BYTES_HTTP1,
            false => ANSWER_PIECE_BYTES,
        };
        let (rest, is_cut) = (Bytes::new(), false);
        Body::new(Sent { body, rest, is_cut, piece_bytes, bytes, connection, _held: held })
    }

    async fn reserve(&self, bytes: usize) -> Result<(), Problem> {
        if self.held().counted.is_some() {
            // It waited once; what it holds must not be what it waits for.
            if let Some(counted) = &mut self.held().counted {
                counted.resize(counted.bytes() + bytes as u64);
            }
            return Ok(());
        }
        let room = Arc::clone(&self.connection.room);
        let waited = tokio::time::timeout(ANSWER_ROOM_TIMEOUT, async {
            let wanted = bytes.min(CONNECTION_ANSWERS_BYTES_MAX) as u32;
            let connection = room.acquire_many_owned(wanted).await.ok();
            let total = match bytes > ANSWER_SMALL_BYTES {
                true => {
                    let wanted = bytes.min(self.answers.room_bytes) as u32;
                    Arc::clone(&self.answers.room).acquire_many_owned(wanted).await.ok()
                }
                false => None,
            };
            (connection, total)
        });
        let (connection, total) = waited.await.map_err(|_| unread())?;
        let counted = Some(self.answers.budget.take(bytes as u64));
        *self.held() = Held { counted, connection, _total: total };
        Ok(())
    }

    fn held(&self) -> std::sync::MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits until there is room for an answer of about so many bytes, before it is made. Where no
/// request is answered there is nothing to wait for.
pub(crate) async fn reserve(bytes: usize) -> Result<(), Problem> {
    match ANSWER.try_with(Arc::clone) {
        Ok(pending) if bytes > ANSWER_SMALL_BYTES => pending.reserve(bytes).await,
        Ok(_) | Err(_) => Ok(()),
    }
}

fn unread() -> Problem {
    let detail = format!(
        "answers wait to be read, and there was no room for another one within {} s; read what was \
         sent, or ask for less at a time",
        ANSWER_ROOM_TIMEOUT.as_secs()
    );
    Problem::new(Code::Overloaded, detail)
}

/// A body that goes out in pieces, so that what the reader has no window for stays here and counts.
struct Sent {
    body: Body,
    rest: Bytes,
    is_cut: bool,
    piece_bytes: usize,
    bytes: u64,
    connection: Arc<InFlight>,
    _held: Held,
}

impl HttpBody for Sent {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.rest.is_empty() {
            let frame = match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(frame)) => frame,
                ended => return Poll::Ready(ended),
            };
            match frame.into_data() {
                Ok(data) => (self.rest, self.is_cut) = (data, false),
                Err(frame) => return Poll::Ready(Some(Ok(frame))),
            }
        }
        let piece = match self.rest.len() > self.piece_bytes {
            true => {
                self.is_cut = true;
                let bytes = self.piece_bytes;
                self.rest.split_to(bytes)
            }
            false => {
                let last = std::mem::take(&mut self.rest);
                // The last piece of many must not keep all of them in memory.
                if self.is_cut { Bytes::copy_from_slice(&last) } else { last }
            }
        };
        self.connection.taken.fetch_add(piece.len() as u64, Ordering::SeqCst);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (rest, inner) = (self.rest.len() as u64, self.body.size_hint());
        let mut hint = SizeHint::new();
        hint.set_lower(inner.lower() + rest);
        if let Some(upper) = inner.upper() {
            hint.set_upper(upper + rest);
        }
        hint
    }
}

impl Drop for Sent {
    fn drop(&mut self) {
        self.connection.is_read(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    fn answers(max: u64) -> Answers {
        Answers::new(Budget::new("answers", max))
    }

    #[tokio::test]
    async fn an_answer_goes_out_in_pieces_and_counts_until_the_last_one() {
        let answers = answers(1 << 30);
        let connection = Arc::new(InFlight::default());
        let pending = answers.pending(Some(&connection));
        let text = vec![7; 3 * ANSWER_PIECE_BYTES + 1];
        let mut body = pending.attach(Body::from(text.clone()), Version::HTTP_2);
        assert_eq!(HttpBody::size_hint(&body).exact(), Some(text.len() as u64));
        assert_eq!(answers.budget.used(), text.len() as u64);
        let mut sizes = Vec::new();
        while let Some(frame) = body.frame().await {
            assert_eq!(answers.budget.used(), text.len() as u64, "it is not read yet");
            sizes.push(frame.unwrap().into_data().unwrap().len());
        }
        assert_eq!(sizes, [ANSWER_PIECE_BYTES, ANSWER_PIECE_BYTES, ANSWER_PIECE_BYTES, 1]);
        drop(body);
        assert_eq!((answers.budget.used(), connection.unread.load(Ordering::SeqCst)), (0, 0));
        assert_eq!(connection.room.available_permits(), CONNECTION_ANSWERS_BYTES_MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_waits_for_its_own_reader_and_others_do_not() {
        let answers = answers(1 << 30);
        let (slow, other) = (Arc::new(InFlight::default()), Arc::new(InFlight::default()));
        let first = answers.pending(Some(&slow));
        first.during(reserve(CONNECTION_ANSWERS_BYTES_MAX)).await.unwrap();
        let body = first.attach(Body::from(vec![0; CONNECTION_ANSWERS_BYTES_MAX]), Version::HTTP_2);
        let second = answers.pending(Some(&slow));
        assert_eq!(second.during(reserve(1 << 20)).await.unwrap_err().code, Code::Overloaded);
        assert_eq!(
            second.admit(Some(RequestClass::Other)).await.unwrap_err().code,
            Code::Overloaded
        );
        assert!(
            second.admit(Some(RequestClass::Report)).await.is_ok(),
            "word from workers is heard"
        );
        assert!(answers.pending(Some(&other)).during(reserve(1 << 20)).await.is_ok());
        drop(body);
        assert!(second.during(reserve(1 << 20)).await.is_ok(), "it was read");
    }

    #[tokio::test(start_paused = true)]
    async fn large_answers_share_the_pool_and_small_ones_always_pass() {
        let answers = answers(1 << 20);
        let hog = answers.pending(None);
        hog.during(reserve(1 << 20)).await.unwrap();
        let large = answers.pending(None);
        assert!(large.during(reserve(ANSWER_SMALL_BYTES + 1)).await.is_err());
        assert!(large.during(reserve(ANSWER_SMALL_BYTES)).await.is_ok());
        drop(hog);
        assert!(large.during(reserve(ANSWER_SMALL_BYTES + 1)).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_does_not_read_is_stalled_and_one_that_reads_is_not() {
        let answers = answers(1 << 30);
        let connection = Arc::new(InFlight::default());
        let watched = Arc::clone(&connection);
        let stalled = tokio::spawn(async move { watched.stalled().await });
        let pending = answers.pending(Some(&connection));
        let mut body = pending.attach(Body::from(vec![0; 8 << 20]), Version::HTTP_2);
        for _ in 0..4 {
            let enough = ANSWER_TAKEN_BYTES_MIN as usize / ANSWER_PIECE_BYTES + 1;
            for _ in 0..enough {
                body.frame().await.unwrap().unwrap();
            }
            tokio::time::sleep(ANSWER_TIMEOUT).await;
            assert!(!stalled.is_finished(), "it reads, if slowly");
        }
        tokio::time::timeout(3 * ANSWER_TIMEOUT, stalled).await.unwrap().unwrap();
    }
}
