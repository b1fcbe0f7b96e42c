//! Artifacts as a caller keeps them: copied at the moment of the answer.

use tenure_core::Rejection;
use tenure_core::state::{ArtifactState, ArtifactView};
use tenure_log::Log;
use tenure_record::artifact::Sha256;
use tenure_record::id::{RunId, TokenId};

use crate::refusal::Refusal;
use crate::step::Coordinator;

/// An artifact of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArtifactInfo {
    /// What it is called.
    pub name: String,
    /// What kind of file it is.
    pub media_type: String,
    /// How long it is.
    pub bytes: u64,
    /// Where its bytes are.
    pub sha256: Sha256,
    /// The node whose task handed it in.
    pub node: String,
    /// The token of that visit.
    pub token: TokenId,
    /// Where it stands.
    pub state: ArtifactState,
}

impl ArtifactInfo {
    fn of(view: &ArtifactView<'_>) -> Self {
        Self {
            name: view.name.to_owned(),
            media_type: view.media_type().to_owned(),
            bytes: view.bytes(),
            sha256: view.sha256(),
            node: view.node().to_owned(),
            token: view.token(),
            state: view.state,
        }
    }
}

impl<L: Log> Coordinator<L> {
    pub(crate) fn artifacts(&self, run_id: RunId) -> Result<Vec<ArtifactInfo>, Refusal> {
        let Some(run) = self.state.run(run_id) else {
            return Err(Rejection::RunNotFound { run_id }.into());
        };
        Ok(run.artifacts().iter().map(ArtifactInfo::of).collect())
    }
}
