//! Reading: the artifacts of runs, as people and programs want to see them.

use std::collections::BTreeSet;

use tenure_record::artifact::Sha256;
use tenure_record::id::{RunId, TokenId};

use super::RunView;
use crate::state::facts::Facts;
use crate::state::facts::run::{Staged, StoredRun};

/// Where an artifact stands, as the log says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArtifactState {
    /// Its run is not over; it may still be dropped.
    Staged,
    /// Its run has left it behind.
    Committed,
}

/// An artifact of a run.
#[derive(Clone, Copy, Debug)]
pub struct ArtifactView<'a> {
    run: RunView<'a>,
    staged: &'a Staged,
    /// What it is called.
    pub name: &'a str,
    /// Where it stands.
    pub state: ArtifactState,
}

impl<'a> ArtifactView<'a> {
    /// What kind of file it is.
    #[must_use]
    pub fn media_type(&self) -> &'a str {
        &self.staged.media_type
    }

    /// How long it is.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.staged.bytes
    }

    /// Where its bytes are.
    #[must_use]
    pub fn sha256(&self) -> Sha256 {
        self.staged.sha256
    }

    /// The token whose completion handed it in.
    #[must_use]
    pub fn token(&self) -> TokenId {
        self.staged.token
    }

    /// The name of that token's node.
    #[must_use]
    pub fn node(&self) -> &'a str {
        self.run.token(self.staged.token).map_or("", |token| &**token.node())
    }
}

impl<'a> RunView<'a> {
    /// Its artifacts: those that are staged while it is live, in any branch, then those that it has
    /// left behind.
    #[must_use]
    pub fn artifacts(&self) -> Vec<ArtifactView<'a>> {
        let run = *self;
        let committed = run.stored().head.artifacts.as_deref().unwrap_or_default().iter();
        let committed = committed.map(move |it| ArtifactView {
            run,
            staged: &it.staged,
            name: &it.name,
            state: ArtifactState::Committed,
        });
        let staged = staged(run.stored()).map(move |staged| ArtifactView {
            run,
            staged,
            name: &staged.name,
            state: ArtifactState::Staged,
        });
        staged.chain(committed).collect()
    }
}

/// What is staged anywhere in a run.
fn staged(stored: &StoredRun) -> impl Iterator<Item = &Staged> {
    // Without any, nobody looks through a hundred thousand branches.
    let groups = if stored.head.staged == 0 { &[] } else { stored.groups.as_slice() };
    let branches = groups.iter().flat_map(|group| group.branches.iter());
    let inside = branches.flat_map(|branch| match (&branch.result, &branch.scope) {
        (Some(result), _) => result.artifacts.as_slice(),
        (None, Some(scope)) => scope.artifacts.as_slice(),
        (None, None) => &[],
    });
    stored.head.root.artifacts.iter().chain(inside).map(|staged| &**staged)
}

impl Facts {
    /// The runs that have left artifacts behind.
    pub fn runs_with_artifacts(&self) -> impl Iterator<Item = RunId> + '_ {
        let runs = self.runs.iter().filter(|(_, stored)| stored.head.artifacts.is_some());
        runs.map(|(id, _)| RunId(id))
    }

    /// The hashes of all files that any run names.
    #[must_use]
    pub fn named_blobs(&self) -> BTreeSet<Sha256> {
        let runs = self.runs.iter().map(|(_, stored)| &**stored);
        let runs = runs.filter(|stored| stored.head.staged > 0);
        runs.flat_map(|stored| {
            let committed = stored.head.artifacts.as_deref().unwrap_or_default().iter();
            staged(stored).chain(committed.map(|it| &*it.staged)).map(|it| it.sha256)
        })
        .collect()
    }
}
