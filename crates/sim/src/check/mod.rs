//! The laws, one file each. They look at every record that may be told, at every reply, at every
//! recovery and at the end.

mod answers;
mod attempts;
mod bounds;
mod completions;
mod damage;
mod disk;
mod end_items;
mod endings;
mod fan_in;
mod feed;
mod gone;
mod history;
mod keys;
mod leases;
mod reads;
mod replay;
mod reports;
mod retention;
mod runs;
mod snapshots;
mod submits;
mod time;
mod undone;

pub(crate) use answers::{dropped, wait_ms};
pub(crate) use damage::{Noticed, read as read_damaged};
pub use disk::Sample;
pub(crate) use feed::Told as FeedEvent;
pub(crate) use retention::Asked as AskedToForget;

use std::fmt;

use disk::DiskLaw;
use endings::EndingLaw;
use fan_in::FanInLaw;
use feed::FeedLaw;
use gone::GoneLaw;
use replay::Shadow;
use tenure_coordinator::{Next, Refusal};
use tenure_core::state::Facts;
use tenure_core::{Rejection, State};
use tenure_log::{Lsn, Note};
use tenure_record::codec;
use tenure_record::event::Record;
use tenure_record::time::Timestamp;

use crate::callers::CallerId;
use crate::config::SimConfig;
use crate::item::{Item, items};
use crate::ledger::TaskLedger;
use crate::model::{Delivery, Model};
use crate::process::Life;
use crate::request::{AnyResponse, Outcome};

/// A law that was broken, and how.
#[derive(Clone, Debug)]
pub struct Broken {
    /// Which law.
    pub law: &'static str,
    /// What was seen.
    pub what: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.law, self.what)
    }
}

pub(crate) type LawResult = Result<(), Broken>;

/// Says that a law is broken unless it holds.
pub(crate) fn hold(law: &'static str, holds: bool, what: impl FnOnce() -> String) -> LawResult {
    if holds { Ok(()) } else { Err(Broken { law, what: what() }) }
}

/// All laws, and what they remember.
#[derive(Debug)]
pub(crate) struct Laws {
    pub(crate) ledger: TaskLedger,
    pub(crate) model: Model,
    pub(crate) feed: FeedLaw,
    pub(crate) gone: GoneLaw,
    pub(crate) disk: DiskLaw,
    fan_in: FanInLaw,
    endings: EndingLaw,
    /// How many items may end in one record.
    end_items_max: usize,
    shadow: Shadow,
    /// The time by which the coordinator decided last.
    pub(crate) log_now: Timestamp,
    /// Records of the tape that were looked at.
    pub(crate) read: usize,
}

impl Laws {
    pub(crate) fn new(config: &SimConfig) -> Self {
        Self {
            ledger: TaskLedger::default(),
            model: Model::default(),
            feed: FeedLaw::default(),
            gone: GoneLaw::default(),
            disk: DiskLaw::new(config),
            fan_in: FanInLaw::default(),
            endings: EndingLaw::default(),
            end_items_max: config.end_items_max,
            shadow: Shadow::new(),
            log_now: Timestamp::ZERO,
            read: 0,
        }
    }

    /// A record may be told from now on.
    pub(crate) fn record(&mut self, bytes: &[u8]) -> Result<Vec<&'static str>, Broken> {
        let record: Record<'_> = codec::decode(bytes).map_err(|malformed| Broken {
            law: undone::LAW,
            what: format!("a record cannot be read: {malformed}"),
        })?;
        time::record(&self.ledger, &record)?;
        submits::record(&self.ledger, &mut self.model, &record)?;
        retention::record(&self.ledger, &self.model, &record)?;
        let items = items(&record);
        end_items::record(&record, &items, self.end_items_max)?;
        for item in items.iter().copied() {
            runs::item(&self.ledger, &record, item)?;
            self.fan_in.item(&record, item)?;
            self.endings.item(&self.ledger, &record, item)?;
            leases::item(&self.ledger, &self.endings, &record, item)?;
            attempts::item(&self.ledger, &record, item)?;
            completions::item(&self.ledger, &self.model, &record, item)?;
            keys::item(&self.ledger, &record, item)?;
            self.ledger.note(&record, item);
        }
        self.ledger.turn(&record);
        self.endings.turn(&record);
        self.shadow.record(&record);
        runs::touched(self.shadow.facts(), &record, &items)?;
        self.feed.record(&record);
        self.read += 1;
        let mut names = replay::names(&record.event);
        if items.iter().any(|item| matches!(item, Item::Copied { .. })) {
            names.push("dead letter");
        }
        Ok(names)
    }

    /// Somebody is told something.
    pub(crate) fn told(&mut self, caller: CallerId, outcome: &Outcome) -> Result<Delivery, Broken> {
        let delivery = answers::told(&mut self.model, caller)?;
        self.model.told += 1;
        let ask = &delivery.ask;
        match outcome {
            Ok(answer) => {
                submits::told(&self.ledger, &mut self.model, ask, answer)?;
                runs::told(&self.ledger, &mut self.model, ask, answer)?;
                leases::told(&self.ledger, &mut self.model, ask, answer)?;
                completions::told(&self.ledger, ask, answer)?;
                reads::told(&self.ledger, &delivery, answer)?;
                replay::told(&self.shadow, answer)?;
                reports::told(ask, answer)?;
                self.reported(answer)?;
            }
            Err(refusal) => {
                submits::refused(&self.ledger, &mut self.model, ask, refusal)?;
                if let Refusal::Rejected(rejection) = refusal {
                    self.rejected(&delivery, rejection)?;
                }
            }
        }
        Ok(delivery)
    }

    /// Reports of a batch that were refused.
    fn reported(&self, answer: &AnyResponse) -> LawResult {
        let AnyResponse::ReportTasks(reports) = answer else { return Ok(()) };
        let refused = reports.iter().filter_map(|report| report.result.as_ref().err());
        refused.into_iter().try_for_each(|rejection| {
            leases::rejected(&self.ledger, &self.endings, rejection, self.log_now)
        })
    }

    fn rejected(&self, delivery: &Delivery, rejection: &Rejection) -> LawResult {
        leases::rejected(&self.ledger, &self.endings, rejection, self.log_now)?;
        completions::rejected(&self.ledger, &delivery.ask, rejection)?;
        keys::rejected(&self.ledger, rejection)?;
        runs::rejected(&self.ledger, &self.model, rejection)?;
        reads::rejected(&self.ledger, rejection)
    }

    /// A request is in the inbox, or was refused.
    pub(crate) fn arrived(&self, life: &Life) -> LawResult {
        bounds::arrived(&self.model, life)
    }

    /// Somebody would have been told something, and had left.
    pub(crate) fn unclaimed(
        &mut self,
        caller: CallerId,
        outcome: &Outcome,
        life: &Life,
        now: u64,
    ) -> LawResult {
        let Some(delivery) = self.model.waiting.remove(&caller) else { return Ok(()) };
        self.gone.unclaimed(&self.ledger, &mut self.model, &delivery, outcome, life, now)
    }

    /// What was recovered: the records and the state.
    pub(crate) fn recovered(&self, tape: &[Vec<u8>], after: usize, found: &[Vec<u8>]) -> LawResult {
        undone::recovered(tape, after, found)
    }

    /// After a start: which snapshot had rotted, and what was told of it.
    pub(crate) fn fell_back(&self, rotten: Option<Lsn>, notes: &[Note]) -> LawResult {
        snapshots::fell_back(rotten, notes)
    }

    /// After a recovery, once all records were looked at.
    pub(crate) fn state_after_recovery(&self, facts: &Facts) -> LawResult {
        replay::recovered(&self.shadow, facts)?;
        submits::survived(&self.ledger, &self.model, facts)?;
        runs::matches_book(&self.ledger, &self.model, facts)?;
        replay::matches_book(&self.ledger, facts)
    }

    /// When everything that was decided may be told.
    pub(crate) fn settled(&self, state: &State) -> LawResult {
        replay::settled(&self.shadow, state)?;
        submits::survived(&self.ledger, &self.model, state.facts())?;
        runs::matches_book(&self.ledger, &self.model, state.facts())?;
        replay::matches_book(&self.ledger, state.facts())
    }

    /// When everything has come to an end and was read again.
    pub(crate) fn ended(&self, life: &Life) -> LawResult {
        history::ended(self, life)
    }

    /// After a step: how much is kept.
    pub(crate) fn within_bounds(&mut self, life: &Life, now: u64, disk_bytes: u64) -> LawResult {
        self.disk.stepped(life, &self.ledger, now, disk_bytes)
    }

    /// What is over for long need not be remembered.
    pub(crate) fn forget(&mut self, now: u64) {
        self.gone.forget(now);
        for task in self.ledger.forget() {
            self.model.forget(task);
        }
    }

    /// After a step.
    pub(crate) fn stepped(&mut self, life: &Life, now: u64, next: Next) -> LawResult {
        self.endings.stepped(life, now)?;
        bounds::stepped(life)?;
        answers::stepped(&self.model, life, now, next)?;
        self.gone.stepped(life, now)?;
        time::stepped(life, now, next)
    }
}
