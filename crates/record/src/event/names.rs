//! The words of runs: where a run, a token, a group or a branch stands. Their numbers are the wire
//! format's.

use std::fmt;

use crate::codec::number_field;

/// Declares an enum whose variants have numbers on the wire and names outside.
macro_rules! words {
    ($(
        $(#[$doc:meta])*
        pub enum $name:ident {
            $($(#[$variant_doc:meta])* $variant:ident = $number:literal, $text:literal;)*
        }
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$variant_doc])* $variant = $number,)*
        }

        impl $name {
            /// All of them, in the order of their numbers.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// As it is written outside.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }

            fn from_number(number: u64) -> Option<Self> {
                Self::ALL.iter().copied().find(|word| *word as u64 == number)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        number_field! {
            $name: |word: $name| word as u64, $name::from_number;
        }
    )*};
}

words! {
    /// A run's place in its life, as the log says it.
    pub enum RunState {
        /// It has tokens that are live. Outside it is called WAITING if all of them wait for a
        /// signal, a timer or a child.
        #[default]
        Running = 0, "RUNNING";
        /// It came to its end.
        Completed = 1, "COMPLETED";
        /// It cannot go on.
        Failed = 2, "FAILED";
        /// Somebody said so.
        Canceled = 3, "CANCELED";
        /// Its time was over.
        TimedOut = 4, "TIMED_OUT";
    }

    /// A token's place in its life.
    pub enum TokenState {
        /// Made, and not yet started.
        #[default]
        Pending = 0, "pending";
        /// It has a task; `executing` while that is leased.
        Dispatched = 1, "dispatched";
        /// It has a run of another workflow.
        WaitingForWorkflow = 2, "waiting_for_workflow";
        /// It waits for news from outside.
        WaitingForSignal = 3, "waiting_for_signal";
        /// It waits for a moment.
        WaitingForTimer = 4, "waiting_for_timer";
        /// It is the token on which the branches of a group meet.
        WaitingForSiblings = 5, "waiting_for_siblings";
        /// Its node is done.
        Completed = 6, "completed";
        /// Its node failed, or it could not go on.
        Failed = 7, "failed";
        /// Its time was over.
        TimedOut = 8, "timed_out";
        /// Nobody needs it any more.
        Canceled = 9, "canceled";
    }

    /// Where a group stands.
    pub enum GroupState {
        /// Its branches run, and it may still fire.
        #[default]
        Open = 0, "open";
        /// Its fan-in token went on.
        Fired = 1, "fired";
        /// It could not fire, or what is around it failed.
        Failed = 2, "failed";
        /// It has no join, and all its branches have settled.
        Drained = 3, "drained";
    }

    /// What became of a branch.
    pub enum BranchOutcome {
        /// It runs, or has not begun.
        #[default]
        Open = 0, "open";
        /// It came to the join.
        Arrived = 1, "arrived";
        /// It failed.
        Failed = 2, "failed";
        /// Nobody needed it any more.
        Canceled = 3, "canceled";
        /// The join's time was over.
        TimedOut = 4, "timed_out";
        /// It came to an end before the join.
        Ended = 5, "ended";
    }

    /// What a moment means to its owner.
    pub enum TimerKind {
        /// A token must be done by then, by log time.
        #[default]
        Node = 0, "node";
        /// A token waits until then: by log time after a delay, by the wall clock for `until`.
        Wake = 1, "wake";
        /// A group must have fired by then, by log time.
        Join = 2, "join";
    }

    /// How values of branches are put together.
    pub enum MergeStrategy {
        /// A list, flattened one level if every value is a list.
        #[default]
        Append = 0, "append";
        /// A list, never flattened.
        Collect = 1, "collect";
        /// Objects, one level; the higher index wins.
        Merge = 2, "merge";
        /// Objects, all levels.
        DeepMerge = 3, "deep_merge";
        /// An object by foreach key, else by index.
        Keyed = 4, "keyed";
        /// The value of the highest arrived index.
        LastWins = 5, "last_wins";
        /// The value of the first to arrive.
        FirstArrival = 6, "first_arrival";
    }

    /// Whether what is at the target of a merge stays.
    pub enum MergeMode {
        /// It goes.
        #[default]
        Replace = 0, "replace";
        /// It stays, and the result is added to it.
        Extend = 1, "extend";
    }

    /// What a branch without a value gives to a merge.
    pub enum MergeMissing {
        /// `null`.
        #[default]
        Null = 0, "null";
        /// Nothing.
        Skip = 1, "skip";
        /// The merge fails.
        Error = 2, "error";
    }

    /// What counts if two branches differ in a deep merge.
    pub enum MergeConflict {
        /// The higher index.
        #[default]
        Last = 0, "last";
        /// The lower index.
        First = 1, "first";
        /// The merge fails.
        Error = 2, "error";
    }
}

impl RunState {
    /// Whether nothing follows.
    #[must_use]
    pub fn is_terminal(self) -> bool {
        self != Self::Running
    }
}

impl TokenState {
    /// Whether nothing follows.
    #[must_use]
    pub fn is_terminal(self) -> bool {
        match self {
            Self::Pending
            | Self::Dispatched
            | Self::WaitingForWorkflow
            | Self::WaitingForSignal
            | Self::WaitingForTimer
            | Self::WaitingForSiblings => false,
            Self::Completed | Self::Failed | Self::TimedOut | Self::Canceled => true,
        }
    }

    /// Whether only news from outside, time or a child moves it on.
    #[must_use]
    pub fn is_waiting(self) -> bool {
        match self {
            Self::WaitingForWorkflow | Self::WaitingForSignal | Self::WaitingForTimer => true,
            Self::Pending
            | Self::Dispatched
            | Self::WaitingForSiblings
            | Self::Completed
            | Self::Failed
            | Self::TimedOut
            | Self::Canceled => false,
        }
    }
}
