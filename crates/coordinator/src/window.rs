//! Frames that were sent to the log and are not committed yet: a bounded FIFO window.

use std::collections::VecDeque;

use tenure_log::{AppendAt, Batch};
use tenure_record::time::Timestamp;

use crate::limits::PIPELINED_FRAME_BYTES_MIN;

/// The frames under way, oldest first. The local log takes one at a time; a log behind a network
/// takes several, so that its latency is hidden.
#[derive(Debug)]
pub(crate) struct Window {
    frames: VecDeque<InFlight>,
    depth: usize,
}

#[derive(Debug)]
struct InFlight {
    sent: Sent,
    state: FrameState,
}

/// Where a frame must be appended, and its log time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) append: AppendAt,
    pub(crate) at: Timestamp,
}

#[derive(Debug)]
enum FrameState {
    /// The log has the frame and will report its outcome.
    WithLog,
    /// The log finds out what became of the frame, and will report that.
    Resolving,
    /// The log gave the frame back; it is tried again at a later moment.
    Held { batch: Batch, why: Held, retry_at: Timestamp },
}

/// Why the log gave a frame back before it was committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// There was no room, so nothing was written: the frame is sent again.
    Full,
    /// The log does not know whether the frame was committed: it must find out.
    Unknown,
}

impl Window {
    /// An empty window for a log that takes `depth` frames at once.
    pub(crate) fn new(depth: usize) -> Self {
        Self { frames: VecDeque::with_capacity(depth), depth }
    }

    /// Whether everything that was sent is committed.
    pub(crate) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// The number of frames that may be under way.
    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    /// Whether a frame of this size may be sent now. Beside one that is under way another is sent
    /// only if it is large: small ones gain more from being gathered into one frame.
    pub(crate) fn takes(&self, payload_bytes: usize) -> bool {
        let has_place = self.frames.len() < self.depth && !self.is_in_doubt();
        self.frames.is_empty() || (has_place && payload_bytes >= PIPELINED_FRAME_BYTES_MIN)
    }

    /// A frame is handed to the log.
    pub(crate) fn push(&mut self, sent: Sent) {
        assert!(self.frames.len() < self.depth, "no more frames than the depth are sent");
        self.frames.push_back(InFlight { sent, state: FrameState::WithLog });
    }

    /// Whether the log has a frame whose outcome it has not reported.
    pub(crate) fn awaits_log(&self) -> bool {
        self.frames.iter().any(InFlight::is_with_log)
    }

    /// Whether the log gave back a frame that is not committed. Nothing new is sent before it is.
    pub(crate) fn is_in_doubt(&self) -> bool {
        let is_plain = |frame: &InFlight| matches!(frame.state, FrameState::WithLog);
        !self.frames.iter().all(is_plain)
    }

    /// The oldest frame is committed.
    pub(crate) fn pop(&mut self) -> Sent {
        let oldest = self.frames.pop_front().expect("only a frame under way is committed");
        assert!(oldest.is_with_log(), "frames are committed in their order");
        oldest.sent
    }

    /// The log gave back the oldest frame that it had.
    pub(crate) fn hold(&mut self, batch: Batch, why: Held, retry_at: Timestamp) {
        let oldest = self.frames.iter_mut().find(|frame| frame.is_with_log());
        let oldest = oldest.expect("only a frame under way comes back");
        oldest.state = FrameState::Held { batch, why, retry_at };
    }

    /// When the frames that are held are due to be tried again. An unknown outcome is resolved while
    /// the frames behind it are still with the log; after a lack of room all of them come back first.
    pub(crate) fn retry(&self) -> Option<(Held, Timestamp)> {
        match self.frames.front().map(|oldest| &oldest.state)? {
            FrameState::Held { why: Held::Full, .. } if self.awaits_log() => None,
            FrameState::Held { why, retry_at, .. } => Some((*why, *retry_at)),
            FrameState::WithLog | FrameState::Resolving => None,
        }
    }

    /// Takes the oldest frame that is held: it goes to the log again.
    pub(crate) fn take_held(&mut self) -> Option<(Sent, Batch)> {
        let held = self.frames.iter_mut().find(|frame| !frame.is_with_log())?;
        match std::mem::replace(&mut held.state, FrameState::WithLog) {
            FrameState::Held { batch, why, .. } => {
                if why == Held::Unknown {
                    held.state = FrameState::Resolving;
                }
                Some((held.sent, batch))
            }
            FrameState::WithLog | FrameState::Resolving => None,
        }
    }
}

impl InFlight {
    fn is_with_log(&self) -> bool {
        matches!(self.state, FrameState::WithLog | FrameState::Resolving)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure_log::Lsn;

    fn sent(lsn: u64) -> Sent {
        Sent { append: AppendAt { lsn: Lsn(lsn), epoch: 1 }, at: Timestamp(lsn) }
    }

    fn hold(window: &mut Window, why: Held) {
        window.hold(Batch::default(), why, Timestamp(9));
    }

    #[test]
    fn the_local_log_takes_one_frame_of_any_size_at_a_time() {
        let mut window = Window::new(1);
        assert!(window.takes(1));
        window.push(sent(1));
        assert!(!window.takes(usize::MAX) && window.awaits_log());
        assert_eq!(window.pop(), sent(1));
        assert!(window.is_empty() && window.takes(1));
    }

    #[test]
    fn beside_a_frame_only_large_ones_are_sent_up_to_the_depth() {
        let mut window = Window::new(3);
        window.push(sent(1));
        assert!(!window.takes(PIPELINED_FRAME_BYTES_MIN - 1));
        assert!(window.takes(PIPELINED_FRAME_BYTES_MIN));
        window.push(sent(2));
        window.push(sent(3));
        assert!(!window.takes(usize::MAX));
        assert_eq!([window.pop(), window.pop()], [sent(1), sent(2)]);
    }

    #[test]
    fn nothing_is_sent_while_an_outcome_is_unknown_and_only_that_frame_is_resolved() {
        let mut window = Window::new(4);
        window.push(sent(1));
        window.push(sent(2));
        hold(&mut window, Held::Unknown);
        assert!(!window.takes(usize::MAX) && window.awaits_log());
        assert_eq!(window.retry(), Some((Held::Unknown, Timestamp(9))));
        assert_eq!(window.take_held().map(|(sent, _)| sent), Some(sent(1)));
        assert_eq!(window.retry(), None);
        assert!(!window.takes(usize::MAX), "it is being resolved");
        assert_eq!(window.pop(), sent(1));
        assert!(window.takes(usize::MAX));
        assert_eq!(window.pop(), sent(2));
    }

    #[test]
    fn frames_without_room_are_sent_again_in_order_once_all_came_back() {
        let mut window = Window::new(2);
        window.push(sent(1));
        window.push(sent(2));
        hold(&mut window, Held::Full);
        assert_eq!(window.retry(), None, "the second one is still with the log");
        hold(&mut window, Held::Full);
        assert_eq!(window.retry(), Some((Held::Full, Timestamp(9))));
        let again = std::iter::from_fn(|| window.take_held().map(|(sent, _)| sent));
        assert_eq!(again.collect::<Vec<_>>(), [sent(1), sent(2)]);
    }
}
