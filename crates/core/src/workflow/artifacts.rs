//! What becomes of artifacts: those of a completion are staged in the scope of its token, those of
//! branches that have met go to the scope around them, and a run that ends commits what is at its
//! root, each under a name of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use tenure_flow::definition::{CommitOn, OnArtifactConflict};
use tenure_record::artifact::Artifact;
use tenure_record::event::{
    ArtifactItem, BranchOutcome, Committed, PromoteArtifacts, RunState, StageArtifact, Step,
};
use tenure_record::id::{GroupId, RunId};
use tenure_record::name::Text;

use super::cascade::{At, Cascade};
use super::error::RunFault;
use crate::limits::ARTIFACTS_PER_RUN_MAX;
use crate::planted::{self, Bug};
use crate::state::{Runs, ScopeRef, Staged};

/// Numbers and field keys of one artifact in a record, at the most.
const ITEM_BYTES: usize = 80;

impl Cascade<'_, '_> {
    /// Refuses more artifacts than a run may have, before anything is decided.
    pub(super) fn check_artifacts(&self, run: RunId) -> Result<(), RunFault> {
        let staged = self.run(run).staged as usize + self.artifacts.len();
        if staged > ARTIFACTS_PER_RUN_MAX {
            let message = format!(
                "the run would have {staged} artifacts; at most {ARTIFACTS_PER_RUN_MAX} are allowed"
            );
            return Err(RunFault::new("LIMIT_ARTIFACTS", message));
        }
        self.check_record(self.artifacts.iter().map(bytes_of).sum())
    }

    /// What the completion handed in is staged in its token's scope.
    pub(super) fn stage_artifacts(&mut self, at: At) {
        for Artifact { name, media_type, bytes, sha256 } in std::mem::take(&mut self.artifacts) {
            let artifact = ArtifactItem {
                name: Text::Shared(name.shared()),
                media_type: Text::Shared(media_type.shared()),
                bytes,
                sha256,
            };
            self.emit(at.run, Step::StageArtifact(StageArtifact { token: at.token, artifact }));
        }
    }

    /// Those of branches that count go to the scope around their group.
    pub(super) fn promote_artifacts(&mut self, run: RunId, group: GroupId, which: Promoted) {
        let started = self.group(run, group).started;
        let branches = (0..started).filter(|index| {
            let branch = Runs::branch(self.draft, run, ScopeRef { group, index: *index });
            branch.is_some_and(|branch| {
                let counts = match which {
                    Promoted::First => branch.arrived_as == 1,
                    Promoted::Arrived => branch.outcome == BranchOutcome::Arrived,
                    Promoted::Ended => branch.outcome == BranchOutcome::Ended,
                };
                let result = branch.result.as_ref();
                let counts = counts || planted::has(Bug::ArtifactOfALoserKept);
                counts && result.is_some_and(|result| !result.artifacts.is_empty())
            })
        });
        let branches: Vec<u32> = branches.collect();
        if !branches.is_empty() {
            self.emit(run, Step::PromoteArtifacts(PromoteArtifacts { group, branches }));
        }
    }

    /// What a run that ends so commits.
    pub(super) fn manifest(
        &self,
        run: RunId,
        state: RunState,
    ) -> Result<Vec<Committed<'static>>, RunFault> {
        let rule = self.definition(run).artifacts;
        let commits = state == RunState::Completed || rule.commit_on == CommitOn::Always;
        let staged = &self.run(run).root.artifacts;
        if !commits || staged.is_empty() {
            return Ok(Vec::new());
        }
        // A run that has failed for another reason loses nothing for a name.
        let on_conflict = match state {
            RunState::Completed => rule.on_conflict,
            RunState::Running | RunState::Failed | RunState::Canceled | RunState::TimedOut => {
                OnArtifactConflict::Qualify
            }
        };
        let paths = |staged: &Staged| self.path_of(run, staged);
        let named = named(staged, on_conflict, &paths)?;
        self.check_record(named.iter().map(|(name, it)| name.len() + staged_bytes(it)).sum())?;
        let committed = named.into_iter().map(|(name, staged)| Committed {
            name: Text::Shared(name),
            token: staged.token,
            artifact: ArtifactItem {
                name: Text::Shared(Arc::clone(&staged.name)),
                media_type: Text::Shared(Arc::clone(&staged.media_type)),
                bytes: staged.bytes,
                sha256: staged.sha256,
            },
        });
        Ok(committed.collect())
    }

    /// The branch of a token as a path of folders; empty at the root.
    fn path_of(&self, run: RunId, staged: &Staged) -> String {
        let token = Runs::token(self.draft, run, staged.token);
        let mut at = token.map_or(ScopeRef::ROOT, |token| token.scope);
        let mut path = String::new();
        while !at.is_root() {
            let group = self.group(run, at.group);
            let name: String = group.name.chars().take(FOLDER_CHARS_MAX).collect();
            let name = name.replace(['/', '\\', '@'], "_");
            path = format!("{name}#{}[{}]/{path}", at.group, at.index);
            at = group.scope;
        }
        path
    }
}

/// Characters of a group's name in a folder's name.
const FOLDER_CHARS_MAX: usize = 40;

/// Whose artifacts a group that closes promotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Promoted {
    /// Those of the branch that came first.
    First,
    /// Those of all branches that arrived.
    Arrived,
    /// Those of all branches that came to an end, where nothing joins them.
    Ended,
}

/// Each artifact with the name that it is committed under.
fn named<'a>(
    staged: &'a [Arc<Staged>],
    on_conflict: OnArtifactConflict,
    path: &impl Fn(&Staged) -> String,
) -> Result<Vec<(Arc<str>, &'a Staged)>, RunFault> {
    // The same file under the same name is one artifact, however often it was handed in.
    let mut seen = BTreeSet::new();
    let once = staged.iter().filter(|it| seen.insert((&it.name, &it.media_type, it.sha256)));
    let mut list: Vec<(Arc<str>, &Staged)> = once.map(|it| (Arc::clone(&it.name), &**it)).collect();
    match on_conflict {
        OnArtifactConflict::Fail => match conflicts(&list).first() {
            Some(at) => {
                let name = &list[*at].0;
                let message = format!("several artifacts of the run are called {name:?}");
                Err(RunFault::new("ARTIFACT_CONFLICT", message))
            }
            None => Ok(list),
        },
        OnArtifactConflict::LastWins => {
            let (mut taken, mut kept) = (BTreeSet::new(), Vec::new());
            for (name, it) in list.into_iter().rev() {
                if !is_taken(&taken, &name) {
                    taken.insert(Arc::clone(&name));
                    kept.push((name, it));
                }
            }
            kept.reverse();
            Ok(kept)
        }
        OnArtifactConflict::Qualify => {
            for at in conflicts(&list) {
                let (name, it) = &mut list[at];
                *name = format!("{}{name}", path(it)).into();
            }
            // In a loop, or at the root, the path does not tell them apart; the token does.
            for at in conflicts(&list) {
                let (name, it) = &mut list[at];
                *name = format!("@{}/{}", it.token, it.name).into();
            }
            Ok(list)
        }
    }
}

fn is_taken(taken: &BTreeSet<Arc<str>>, name: &str) -> bool {
    let below = format!("{name}/");
    let from = (Bound::Included(below.as_str()), Bound::Unbounded);
    let inside = taken.range::<str, _>(from).next();
    taken.contains(name)
        || inside.is_some_and(|there| there.starts_with(&below))
        || folders(name).any(|folder| taken.contains(folder))
}

/// The folders that a name is in.
fn folders(name: &str) -> impl Iterator<Item = &str> {
    name.match_indices('/').map(|(end, _)| &name[..end])
}

/// The places of those that cannot be files side by side.
fn conflicts(list: &[(Arc<str>, &Staged)]) -> Vec<usize> {
    let mut by_name: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, (name, _)) in list.iter().enumerate() {
        by_name.entry(name).or_default().push(at);
    }
    let mut found: Vec<usize> = Vec::new();
    for (name, places) in &by_name {
        if places.len() > 1 {
            found.extend(places);
        }
        for above in folders(name).filter_map(|folder| by_name.get(folder)) {
            found.extend(above.iter().chain(places));
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

fn bytes_of(artifact: &Artifact) -> usize {
    ITEM_BYTES + artifact.name.as_str().len() + artifact.media_type.as_str().len()
}

fn staged_bytes(staged: &Staged) -> usize {
    ITEM_BYTES + staged.name.len() + staged.media_type.len()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use tenure_record::artifact::Sha256;
    use tenure_record::id::TokenId;

    fn staged(list: &[(&str, u32, u8)]) -> Vec<Arc<Staged>> {
        let one = |&(name, token, hash): &(&str, u32, u8)| {
            Arc::new(Staged {
                name: name.into(),
                media_type: "a/b".into(),
                bytes: 1,
                sha256: Sha256([hash; 32]),
                token: TokenId(token),
            })
        };
        list.iter().map(one).collect()
    }

    fn names(list: &[(&str, u32, u8)], rule: OnArtifactConflict) -> Result<Vec<String>, String> {
        let path = |it: &Staged| match it.token.0 {
            0..10 => String::new(),
            token => format!("g#1[{token}]/"),
        };
        let named = named(&staged(list), rule, &path)
            .map(|list| list.iter().map(|(name, _)| name.to_string()).collect());
        named.map_err(|fault| fault.code.to_string())
    }

    #[test]
    fn what_is_called_differently_keeps_its_name() {
        for rule in
            [OnArtifactConflict::Qualify, OnArtifactConflict::LastWins, OnArtifactConflict::Fail]
        {
            assert_eq!(names(&[("a", 1, 1), ("b/c", 2, 2)], rule).unwrap(), ["a", "b/c"]);
            // The same file twice is one.
            assert_eq!(names(&[("a", 1, 1), ("a", 2, 1)], rule).unwrap(), ["a"]);
        }
    }

    #[test]
    fn what_is_called_the_same_is_told_apart_by_its_branch_then_by_its_token() {
        let rule = OnArtifactConflict::Qualify;
        let list = [("a", 11, 1), ("a", 12, 2), ("b", 13, 3)];
        assert_eq!(names(&list, rule).unwrap(), ["g#1[11]/a", "g#1[12]/a", "b"]);
        let list = [("a", 1, 1), ("a", 2, 2), ("a/b", 3, 3)];
        assert_eq!(names(&list, rule).unwrap(), ["@1/a", "@2/a", "@3/a/b"]);
    }

    #[test]
    fn the_last_wins_or_it_is_an_error() {
        let list = [("a", 1, 1), ("c", 1, 1), ("a", 2, 2)];
        assert_eq!(names(&list, OnArtifactConflict::LastWins).unwrap(), ["c", "a"]);
        assert_eq!(names(&list, OnArtifactConflict::Fail).unwrap_err(), "ARTIFACT_CONFLICT");
        let list = [("a/b", 1, 1), ("a", 2, 2)];
        assert_eq!(names(&list, OnArtifactConflict::LastWins).unwrap(), ["a"]);
        assert_eq!(names(&list, OnArtifactConflict::Fail).unwrap_err(), "ARTIFACT_CONFLICT");
    }
}
