//! A follower of the feed: reads on, is cut off in the middle of a frame, and comes back where it
//! was.

use tenure_coordinator::{Feed, Followed, Follower, Position};
use tenure_log::Log;
use tenure_record::id::Lsn;
use tenure_wal::Reader;
use tenure_wal::disk::model::ModelDisk;

use crate::check::{Broken, FeedEvent, Laws};
use crate::process::Life;
use crate::random::Random;

/// A follower.
#[derive(Debug)]
pub(crate) struct FollowerActor {
    connection: Option<Follower<Reader<ModelDisk>>>,
    /// The last transition that it took.
    last: Position,
    /// How many it took.
    pub(crate) seen: usize,
}

/// What a follower found when it looked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// Something new.
    More,
    /// Nothing new.
    Nothing,
    /// The connection is gone.
    Cut,
}

impl FollowerActor {
    pub(crate) fn new() -> Self {
        Self { connection: None, last: Position::START, seen: 0 }
    }

    /// The coordinator is gone, or the line is.
    pub(crate) fn cut(&mut self) {
        self.connection = None;
    }

    /// Takes what the next frame has, or a part of it.
    pub(crate) fn look(
        &mut self,
        laws: &Laws,
        life: &Life,
        random: &mut Random,
        cut_permille: u64,
    ) -> Result<Look, Broken> {
        let feed: &Feed = life.coordinator.feed();
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => feed.follow(life.coordinator.log().reader(), self.last),
        };
        let takes = match random.chance(cut_permille) {
            true => random.below(4) as usize,
            false => usize::MAX,
        };
        let mut shown = Vec::new();
        let followed = connection.next(|record, step| shown.push(FeedEvent::of(record, step)));
        for event in shown.iter().take(takes) {
            laws.feed.shown(self.seen, event)?;
            self.seen += 1;
            self.last = Position { lsn: event.lsn, index: Some(event.index) };
        }
        match followed {
            Ok(Followed::Frame) if shown.len() <= takes => {
                self.connection = Some(connection);
                Ok(Look::More)
            }
            Ok(Followed::UpToDate) => {
                self.connection = Some(connection);
                Ok(Look::Nothing)
            }
            Ok(Followed::Trimmed(oldest)) => {
                let trimmed = laws.feed.before(oldest);
                // Of the record where it was cut off, there may be more that it has not seen.
                let seen_up_to = match self.last.index {
                    Some(_) => self.last.lsn.0,
                    None => self.last.lsn.0 + 1,
                };
                if trimmed < self.seen || oldest.0 <= seen_up_to {
                    return Err(Broken {
                        law: "only what is gone is called trimmed",
                        what: format!(
                            "{:?} is called gone, from {oldest} on all is there",
                            self.last
                        ),
                    });
                }
                // It goes on with what is there, as one who asks for the state would.
                self.seen = trimmed;
                self.last = Position::after(Lsn(oldest.0 - 1));
                Ok(Look::More)
            }
            // Cut off, or the disk could not be read.
            Ok(Followed::Frame | Followed::Closed) | Err(_) => Ok(Look::Cut),
        }
    }
}
