//! The body budget: bytes of all bodies that are being read are bounded, each body has a limit and a
//! time-out, and the rest of a refused body is drained.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes, HttpBody};
use http_body_util::BodyExt;
use hyper::body::{Frame, SizeHint};
use tenure_code::Code;
use tenure_coordinator::{Budget, Permit};
use tokio::time::Sleep;
use tonic::Status;

use crate::limits::{BODY_TIMEOUT, DRAIN_BYTES_MAX, DRAIN_TIMEOUT};
use crate::problem::Problem;

/// Bytes of all bodies that are being read.
#[derive(Clone, Debug)]
pub(crate) struct Bodies {
    budget: Budget,
}

/// One body's share of them, until it is dropped.
#[derive(Debug)]
struct Share {
    permit: Permit,
    max: u64,
}

impl Bodies {
    /// Bodies that count in this pool.
    pub(crate) fn new(budget: Budget) -> Self {
        Self { budget }
    }

    /// What is being read at the moment.
    pub(crate) fn bytes(&self) -> u64 {
        self.budget.used()
    }

    fn share(&self) -> Share {
        Share { permit: self.budget.take(0), max: self.budget.max() }
    }

    /// Reads a whole body, in time and within bounds. What is left of one that is refused is thrown
    /// away beside, so that its sender hears why.
    pub(crate) async fn read(&self, mut body: Body, limit: usize) -> Result<Bytes, Problem> {
        let whole = tokio::time::timeout(BODY_TIMEOUT, self.gather(&mut body, limit)).await;
        let whole = whole.unwrap_or_else(|_| Err(slow()));
        if whole.is_err() {
            drain(body);
        }
        whole
    }

    async fn gather(&self, body: &mut Body, limit: usize) -> Result<Bytes, Problem> {
        if HttpBody::size_hint(body).lower() > limit as u64 {
            return Err(too_large(limit));
        }
        let mut share = self.share();
        let mut whole = Vec::new();
        let mut first = Bytes::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| {
                Problem::invalid(format!("the body could not be read: {error}"))
            })?;
            let Ok(data) = frame.into_data() else { continue };
            if share.permit.bytes() as usize + data.len() > limit {
                return Err(too_large(limit));
            }
            share.add(data.len())?;
            // Most bodies come in one piece, which need not be copied.
            match first.is_empty() && whole.is_empty() {
                true => first = data,
                false => {
                    whole.extend_from_slice(&std::mem::take(&mut first));
                    whole.extend_from_slice(&data);
                }
            }
        }
        Ok(if whole.is_empty() { first } else { whole.into() })
    }

    /// The body of a gRPC request with one message: what it holds counts, and it has to come in
    /// time.
    pub(crate) fn meter(&self, body: Body) -> Body {
        let share = self.share();
        let deadline = Box::pin(tokio::time::sleep(BODY_TIMEOUT));
        Body::new(Metered { body, share, deadline })
    }

    /// The body of a gRPC stream: the message that is on its way counts.
    pub(crate) fn meter_stream(&self, body: Body) -> Body {
        let share = self.share();
        Body::new(MeteredStream { body, share, message: Message::default() })
    }
}

impl Share {
    fn add(&mut self, bytes: usize) -> Result<(), Problem> {
        if self.permit.resize(self.permit.bytes() + bytes as u64) {
            return Ok(());
        }
        let detail =
            format!("{} bytes of requests are being read already; try again in a moment", self.max);
        Err(Problem::new(Code::Overloaded, detail))
    }

    fn give_back(&mut self) {
        self.permit.resize(0);
    }
}

/// Where messages end: each begins with a byte of flags and four of its length.
#[derive(Debug, Default)]
struct Message {
    head: Vec<u8>,
    arrived: usize,
    missing: usize,
}

const HEAD_BYTES: usize = 5;

impl Message {
    /// Goes on, and says how much there is of the message that is not complete.
    fn follow(&mut self, mut data: &[u8]) -> usize {
        while !data.is_empty() {
            if self.missing == 0 {
                let some = data.len().min(HEAD_BYTES - self.head.len());
                let (head, rest) = data.split_at(some);
                self.head.extend_from_slice(head);
                data = rest;
                if let [_, a, b, c, d] = self.head[..] {
                    self.missing = u32::from_be_bytes([a, b, c, d]) as usize;
                    self.head.clear();
                }
            } else {
                let some = data.len().min(self.missing);
                data = &data[some..];
                self.missing -= some;
                self.arrived = if self.missing == 0 { 0 } else { self.arrived + some };
            }
        }
        self.arrived
    }
}

struct MeteredStream {
    body: Body,
    share: Share,
    message: Message,
}

impl HttpBody for MeteredStream {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        let frame = frame.map(|frame| {
            let frame = frame.map_err(|error| Status::cancelled(error.to_string()))?;
            if let Some(data) = frame.data_ref() {
                let arrived = self.message.follow(data);
                self.share.give_back();
                self.share.add(arrived)?;
            }
            Ok(frame)
        });
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }
}

struct Metered {
    body: Body,
    share: Share,
    deadline: Pin<Box<Sleep>>,
}

impl HttpBody for Metered {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let frame = match Pin::new(&mut self.body).poll_frame(context) {
            Poll::Ready(frame) => frame,
            Poll::Pending => {
                ready!(self.deadline.as_mut().poll(context));
                return Poll::Ready(Some(Err(slow().into())));
            }
        };
        let frame = frame.map(|frame| {
            let frame = frame.map_err(|error| Status::cancelled(error.to_string()))?;
            self.share.add(frame.data_ref().map_or(0, Bytes::len))?;
            Ok(frame)
        });
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        HttpBody::size_hint(&self.body)
    }
}

/// Reads on for a while and throws it away. Whoever is still talking would not hear the answer
/// if the connection were closed now.
pub(crate) fn drain(mut body: Body) {
    if body.is_end_stream() {
        return;
    }
    tokio::spawn(async move {
        let _ = tokio::time::timeout(DRAIN_TIMEOUT, async {
            let mut bytes = 0;
            while let Some(Ok(frame)) = body.frame().await {
                bytes += frame.data_ref().map_or(0, Bytes::len);
                if bytes > DRAIN_BYTES_MAX {
                    return;
                }
            }
        })
        .await;
    });
}

fn too_large(limit: usize) -> Problem {
    let detail = format!("the body has more than {limit} bytes; send less, or in several requests");
    Problem::new(Code::PayloadTooLarge, detail)
}

fn slow() -> Problem {
    let detail = format!("the body did not arrive within {} s", BODY_TIMEOUT.as_secs());
    Problem::new(Code::RequestTimeout, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_on_its_way_counts_on_a_stream() {
        let message = |bytes: u32| {
            let head = [&[0][..], &bytes.to_be_bytes()].concat();
            [head, vec![7; bytes as usize]].concat()
        };
        let all = [message(10), message(0), message(300)].concat();
        for step in [1, 2, 3, 5, 7, 100, 1_000] {
            let mut follows = Message::default();
            let held: Vec<_> = all.chunks(step).map(|some| follows.follow(some)).collect();
            assert_eq!(held.last(), Some(&0), "all of it came, in steps of {step}");
            assert!(held.iter().all(|held| *held < 300), "{step}: {held:?}");
        }
        let mut follows = Message::default();
        assert_eq!(follows.follow(&all[..all.len() - 1]), 299);
    }

    #[tokio::test]
    async fn a_body_is_read_whole_or_refused_and_gives_its_share_back() {
        let bodies = Bodies::new(Budget::new("bodies", 1_000));
        let chunks = |count: usize| {
            let chunk = || Ok::<_, std::convert::Infallible>(Bytes::from_static(b"abcd"));
            Body::from_stream(futures_util::stream::iter((0..count).map(move |_| chunk())))
        };
        assert_eq!(bodies.read(chunks(1), 8).await.unwrap(), "abcd");
        assert_eq!(bodies.read(chunks(2), 8).await.unwrap(), "abcdabcd");
        assert_eq!(bodies.read(chunks(0), 8).await.unwrap(), "");
        assert_eq!(bodies.read(chunks(3), 8).await.unwrap_err().code, Code::PayloadTooLarge);
        let announced = Body::from(vec![0; 9]);
        assert_eq!(bodies.read(announced, 8).await.unwrap_err().code, Code::PayloadTooLarge);
        let mut share = bodies.share();
        share.add(1_000).unwrap();
        assert_eq!(bodies.read(chunks(1), 8).await.unwrap_err().code, Code::Overloaded);
        drop(share);
        assert_eq!(bodies.bytes(), 0);
    }
}
