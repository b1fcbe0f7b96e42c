//! Which runs a list takes.

use super::RunView;

/// Which runs to list. What is not given does not matter.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunFilter<'a> {
    /// Of this workflow.
    pub workflow: Option<&'a str>,
    /// In this state, as it is written outside.
    pub state: Option<&'a str>,
    /// With this tag.
    pub tag: Option<(&'a str, &'a str)>,
    /// With this key.
    pub key: Option<&'a str>,
}

impl RunFilter<'_> {
    /// The workflow was chosen by the list already.
    pub(in crate::state) fn takes(&self, run: &RunView<'_>) -> bool {
        let tag = self.tag.is_none_or(|(key, value)| {
            run.tags().iter().any(|(k, v)| &**k == key && &**v == value)
        });
        let key = self.key.is_none_or(|key| run.key() == Some(key));
        tag && key && self.state.is_none_or(|state| run.state() == state)
    }
}
