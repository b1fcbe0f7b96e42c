//! One conformance suite for all logs: what every provider must keep.
//!
//! A provider implements [`Harness`] in its tests and calls
//! [`conformance_tests!`](crate::conformance_tests), which makes one test of each law. The laws use
//! nothing but the interface.

mod driver;
mod laws;
mod snapshots;

use crate::fault::Fault;
use crate::interface::{Log, OpenLog};
use crate::lsn::Lsn;

pub use laws::{
    a_close_and_marks_lose_nothing, a_crash_loses_nothing_that_was_released,
    a_full_log_gives_frames_back_and_takes_them_later, a_second_writer_deposes_or_waits,
    an_append_elsewhere_is_refused, outcomes_come_back_in_the_order_of_the_frames,
    readers_show_what_is_released_and_nothing_else, reopening_gives_the_same_frames_and_chain,
    trimmed_records_are_gone_and_the_rest_is_there, unknown_outcomes_are_resolved,
};
pub use snapshots::{
    a_damaged_snapshot_is_refused_and_the_older_one_is_good, opening_starts_behind_an_anchor,
    snapshots_are_listed_newest_first_and_are_whole,
};

/// How a log deals with a second writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takeover {
    /// The storage is locked: a second writer is refused while the first one lives.
    Locked,
    /// The second writer gets a later epoch, and the first one is refused from then on.
    Fenced,
}

/// Whether a harness could do what was asked of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// It is done.
    Done,
    /// The storage has no way to do this in a test; the law is not checked.
    NotSupported,
}

/// A provider under test: storage that outlives its writers.
pub trait Harness {
    /// The log before it is open.
    type Claim: OpenLog;
    /// The log as a coordinator uses it.
    type Log: Log;

    /// Prepares to open the log, which exists or is created.
    ///
    /// # Errors
    /// The provider's.
    fn claim(&mut self) -> Result<Self::Claim, Fault>;

    /// Makes an opened log ready for a coordinator, for instance by giving it a thread.
    fn start(&mut self, log: <Self::Claim as OpenLog>::Log) -> Self::Log;

    /// How a second writer is dealt with.
    fn takeover(&self) -> Takeover;

    /// Waits until a batch or a snapshot that is under way may have made progress.
    fn wait(&mut self);

    /// The machine fails after the writer is gone: what was not durable is lost.
    fn crash(&mut self) {}

    /// Takes all free room from the log.
    fn fill(&mut self) -> Support;

    /// Gives the room back.
    fn make_room(&mut self);

    /// Changes a byte of a snapshot.
    fn damage_snapshot(&mut self, lsn: Lsn);

    /// Whether the storage reports unknown outcomes, so that the law about them sees some.
    fn has_unknown_outcomes(&self) -> bool {
        false
    }
}

/// Makes a test of each law, for the harness that the expression creates.
#[macro_export]
macro_rules! conformance_tests {
    ($harness:expr) => {
        $crate::conformance_tests!($harness =>
            an_append_elsewhere_is_refused
            a_second_writer_deposes_or_waits
            outcomes_come_back_in_the_order_of_the_frames
            readers_show_what_is_released_and_nothing_else
            reopening_gives_the_same_frames_and_chain
            a_crash_loses_nothing_that_was_released
            a_full_log_gives_frames_back_and_takes_them_later
            unknown_outcomes_are_resolved
            a_close_and_marks_lose_nothing
            trimmed_records_are_gone_and_the_rest_is_there
            snapshots_are_listed_newest_first_and_are_whole
            a_damaged_snapshot_is_refused_and_the_older_one_is_good
            opening_starts_behind_an_anchor
        );
    };
    ($harness:expr => $($law:ident)*) => {
        $(
            #[test]
            fn $law() {
                $crate::conformance::$law(&mut $harness);
            }
        )*
    };
}
