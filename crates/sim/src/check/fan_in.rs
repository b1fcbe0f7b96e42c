//! What branches bring: only what counts goes on, a join fires once, and a signal is given once.

use std::collections::{BTreeMap, BTreeSet};

use tenure_record::event::{BranchOutcome, Record, Step};
use tenure_record::id::{GroupId, RunId};

use super::{LawResult, hold};
use crate::item::Item;

const ONCE: &str = "a join fires once";
const LOSER: &str = "what a loser brings does not go on";
const SIGNAL: &str = "a signal is given once";

/// What is known of groups and signals of runs that are not over.
#[derive(Debug, Default)]
pub(crate) struct FanInLaw {
    runs: BTreeMap<RunId, Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// How branches ended that are not simply open.
    settled: BTreeMap<(GroupId, u32), BranchOutcome>,
    /// The branch of each group that arrived first.
    first: BTreeMap<GroupId, u32>,
    fired: BTreeSet<GroupId>,
    signals: BTreeSet<u32>,
}

impl FanInLaw {
    pub(super) fn item(&mut self, record: &Record<'_>, item: Item<'_>) -> LawResult {
        let lsn = record.lsn;
        let (id, step) = match item {
            Item::Decided(id, Some(step)) => (id, step),
            Item::Finished(id, _) => {
                self.runs.remove(&id);
                return Ok(());
            }
            Item::Decided(_, None)
            | Item::Created(_)
            | Item::Copied { .. }
            | Item::Granted { .. }
            | Item::Extended(_)
            | Item::Checkpoint(..)
            | Item::Ended { .. }
            | Item::Stale { .. }
            | Item::AskedToStop { .. }
            | Item::EndedWaiting { .. }
            | Item::Retried { .. }
            | Item::Stopped(_)
            | Item::Purged(_)
            | Item::Registered { .. }
            | Item::Began(_)
            | Item::PurgedRun(_)
            | Item::Configured => return Ok(()),
        };
        let run = self.runs.entry(id).or_default();
        match step {
            Step::SettleBranch(step) if !step.rest => {
                for index in step.index..step.index + step.count {
                    run.settled.insert((step.group, index), step.outcome);
                }
                if step.outcome == BranchOutcome::Arrived {
                    run.first.entry(step.group).or_insert(step.index);
                }
                Ok(())
            }
            Step::ActivateFanInToken(step) => hold(ONCE, run.fired.insert(step.group), || {
                format!("record {lsn}: group {} of run {id}", step.group)
            }),
            Step::TakeSignal(step) => hold(SIGNAL, run.signals.insert(step.signal), || {
                format!("record {lsn}: signal {} of run {id}", step.signal)
            }),
            Step::MergeBranches(step) => {
                let first = run.first.get(&step.group).copied();
                hold(LOSER, step.promote.is_none_or(|winner| Some(winner) == first), || {
                    format!(
                        "record {lsn}: branch {:?} of group {} of run {id} goes on, and {first:?} \
                         came first",
                        step.promote, step.group
                    )
                })
            }
            Step::PromoteArtifacts(step) => {
                let counts = |index: &&u32| {
                    let outcome = run.settled.get(&(step.group, **index)).copied();
                    !matches!(outcome, Some(BranchOutcome::Arrived | BranchOutcome::Ended))
                };
                let loser = step.branches.iter().find(counts);
                hold(LOSER, loser.is_none(), || {
                    format!("record {lsn}: artifacts of {loser:?} of {} of run {id}", step.group)
                })
            }
            Step::SettleBranch(_)
            | Step::CreateTokens(_)
            | Step::OpenGroup(_)
            | Step::CreateFanInToken(_)
            | Step::UpdateTokenStates(_)
            | Step::ApplyNodeOutput(_)
            | Step::SetContext(_)
            | Step::MarkForDispatch(_)
            | Step::CancelTokens(_)
            | Step::StartChild(_)
            | Step::FinishRun(_)
            | Step::DropBranches(_)
            | Step::SetTimer(_)
            | Step::StageArtifact(_)
            | Step::EndScope(_)
            | Step::CloseScope(_) => Ok(()),
        }
    }
}
