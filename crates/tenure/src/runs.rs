//! The verbs of runs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tenure_code::Echo;
use tenure_coordinator::request::{
    CancelRun, FindRun, GetRun, ListArtifacts, ListRuns, ListTokens, SignaledRun, StartedRun,
    UnparkRun,
};
use tenure_coordinator::{
    ArtifactInfo, RUN_STATES, RunFilter, RunHistory, RunInfo, RunPage, TokenPage,
};
use tenure_core::command::{Signaled, StartRuns, Started};
use tenure_core::limits::LIST_ITEMS_MAX;
use tenure_record::id::{RunId, TokenId};
use tenure_record::name::TaskKey;

use crate::call::Call;
use crate::error::Error;
use crate::handle::Tenure;
use crate::new_run::{NewRun, Signal};
use crate::tasks::{PAGE_ITEMS, check_limit, time_left};
use crate::terms;

/// The runs of an open data folder; see [`Tenure::runs`].
#[derive(Clone, Copy, Debug)]
pub struct Runs<'a>(&'a Tenure);

impl<'a> Runs<'a> {
    pub(crate) fn new(tenure: &'a Tenure) -> Self {
        Self(tenure)
    }

    /// Starts a run. An equal start with the same key returns the run that exists.
    pub fn start(self, run: NewRun) -> Call<StartedRun> {
        self.0.call(run.parse(), |started| started)
    }

    /// Starts runs, all or none, in one record.
    pub fn start_batch(self, runs: impl IntoIterator<Item = NewRun>) -> Call<Vec<Started>> {
        let runs = runs.into_iter().map(NewRun::parse).collect::<Result<_, _>>();
        self.0.call(runs.map(|runs| StartRuns { runs }), |started| started)
    }

    /// A run as it is now.
    pub fn get(self, run_id: RunId) -> Call<RunInfo> {
        self.0.call(Ok(GetRun { run_id, wait_ms: 0 }), |run| *run)
    }

    /// The run of a workflow that holds a key.
    pub fn get_by_key(self, workflow: &str, key: &str) -> Call<RunInfo> {
        let key = match TaskKey::parse(key) {
            Ok(key) => key,
            Err(invalid) => return Call::failed(invalid.into()),
        };
        let engine = self.0.engine().clone();
        let found = engine.ask(FindRun { workflow: Arc::from(workflow), key });
        Call::new(async move {
            let run_id = found.await?;
            Ok(*engine.ask(GetRun { run_id, wait_ms: 0 }).await?)
        })
    }

    /// A run once it is over, or as it is after the timeout.
    pub fn wait(self, run_id: RunId, timeout: Duration) -> Call<RunInfo> {
        let (engine, until) = (self.0.engine().clone(), Instant::now().checked_add(timeout));
        let mut pending = engine.ask(GetRun { run_id, wait_ms: terms::ms(timeout) });
        Call::new(async move {
            loop {
                let run = *pending.await?;
                let left = time_left(until);
                if run.is_over() || left.is_zero() {
                    return Ok(run);
                }
                // The engine bounds one wait, so a long one is several.
                pending = engine.ask(GetRun { run_id, wait_ms: terms::ms(left).max(1) });
            }
        })
    }

    /// A page of runs, newest first.
    pub fn list(self, query: RunQuery) -> Call<RunPage> {
        self.0.call(query.parse().map(ListRuns), |page| page)
    }

    /// Cancels a run and everything that is live in it.
    pub fn cancel(self, run_id: RunId) -> Call<RunInfo> {
        self.0.call(Ok(CancelRun(run_id)), |run| *run)
    }

    /// Lets a parked run continue. A run that is not parked is left as it is.
    pub fn unpark(self, run_id: RunId) -> Call<RunInfo> {
        self.0.call(Ok(UnparkRun(run_id)), |run| *run)
    }

    /// Sends a signal to a run.
    pub fn signal(self, run_id: RunId, signal: Signal) -> Call<Signaled> {
        self.0.call(signal.parse(run_id), |signaled| signaled)
    }

    /// Sends a signal to the run of a workflow that holds a key, and starts that run if there is none
    /// and the signal says how ([`Signal::or_start`]).
    pub fn signal_by_key(self, workflow: &str, key: &str, signal: Signal) -> Call<SignaledRun> {
        self.0.call(signal.parse_by_key(workflow, key), |signaled| signaled)
    }

    /// A page of a run's tokens, by number; the first page after no token.
    pub fn tokens(self, run_id: RunId, after: Option<TokenId>) -> Call<TokenPage> {
        let after = after.unwrap_or(TokenId::NONE);
        self.0.call(Ok(ListTokens { run_id, after, limit: LIST_ITEMS_MAX }), |page| page)
    }

    /// The artifacts of a run. Workers of a server hand them in; an embedded worker has none.
    pub fn artifacts(self, run_id: RunId) -> Call<Vec<ArtifactInfo>> {
        self.0.call(Ok(ListArtifacts(run_id)), |artifacts| artifacts)
    }

    /// The decisions about a run and their causes, as far back as the log goes. The log is read on a
    /// thread.
    pub fn history(self, run_id: RunId) -> Call<RunHistory> {
        let engine = self.0.engine().clone();
        Call::on_thread(move || Ok(engine.run_history(run_id)?))
    }
}

/// Which runs to list; without a condition, all of them.
///
/// ```
/// use tenure::RunQuery;
///
/// let query = RunQuery::new().workflow("order").state("RUNNING").limit(50);
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct RunQuery {
    state: Option<String>,
    key: Option<String>,
    filter: RunFilter,
}

impl RunQuery {
    /// All runs, 100 on a page.
    pub fn new() -> Self {
        let filter = RunFilter { limit: PAGE_ITEMS, ..RunFilter::default() };
        Self { state: None, key: None, filter }
    }

    fn with(mut self, set: impl FnOnce(&mut RunFilter)) -> Self {
        set(&mut self.filter);
        self
    }

    /// Only runs of this workflow.
    pub fn workflow(self, workflow: &str) -> Self {
        self.with(|filter| filter.workflow = Some(Arc::from(workflow)))
    }

    /// Only runs in this state, one of [`RUN_STATES`].
    pub fn state(self, state: impl Into<String>) -> Self {
        Self { state: Some(state.into()), ..self }
    }

    /// Only runs with this tag.
    pub fn tag(self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.with(|filter| filter.tag = Some((key.into(), value.into())))
    }

    /// Only runs with this key.
    pub fn key(self, key: impl Into<String>) -> Self {
        Self { key: Some(key.into()), ..self }
    }

    /// Only runs that are older than this one: the `next` of the page before.
    pub fn before(self, run_id: RunId) -> Self {
        self.with(|filter| filter.before = Some(run_id))
    }

    /// The size of the page, from 1 to 1,000.
    pub fn limit(self, limit: usize) -> Self {
        self.with(|filter| filter.limit = limit)
    }

    fn parse(self) -> Result<RunFilter, Error> {
        check_limit(self.filter.limit)?;
        let state = |name: String| {
            RUN_STATES.into_iter().find(|state| *state == name).ok_or_else(|| {
                let (name, names) = (Echo(&name), RUN_STATES.join(", "));
                Error::invalid(format!("state is {name}; it must be one of {names}"))
            })
        };
        Ok(RunFilter {
            state: self.state.map(state).transpose()?,
            key: self.key.as_deref().map(TaskKey::parse).transpose()?,
            ..self.filter
        })
    }
}

impl Default for RunQuery {
    fn default() -> Self {
        Self::new()
    }
}
