//! Deciding an old record again, for both doors: on a thread of its own, one at a time.

use std::sync::Arc;

use tenure_core::id::{Lsn, RunId};

pub(crate) use tenure_coordinator::Redecided;

use crate::app::App;
use crate::limits::REDECIDES_MAX;
use crate::problem::Problem;

pub(crate) async fn redecide(app: &Arc<App>, run: RunId, lsn: Lsn) -> Result<Redecided, Problem> {
    let permit = Arc::clone(&app.redeciding).try_acquire_owned().map_err(|_| {
        let detail = format!(
            "{REDECIDES_MAX} record is being decided again already, which takes as much memory as \
             the state; try again in a moment"
        );
        Problem::new("overloaded", detail)
    })?;
    let tenure = app.tenure.clone();
    // It reads files, and rebuilds a whole state. The permit is kept until that is over, whether or
    // not somebody still waits for it.
    let work = tokio::task::spawn_blocking(move || {
        let found = tenure.redecide(run, lsn);
        drop(permit);
        found
    });
    let found = work.await.map_err(|_| Problem::new("unavailable", "the server is stopping"))?;
    found.map_err(|error| Problem::new(error.code(), error.to_string()))
}
