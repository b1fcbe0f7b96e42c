//! Deciding an old record again, for both doors: on a thread of its own, one at a time.

use std::sync::Arc;

use tenure_code::Code;
use tenure_record::id::{Lsn, RunId};

use tenure_coordinator::Redecided;

use crate::app::App;
use crate::limits::REDECIDES_MAX;
use crate::problem::Problem;

pub(crate) async fn redecide(app: &Arc<App>, run: RunId, lsn: Lsn) -> Result<Redecided, Problem> {
    let permit = Arc::clone(&app.redeciding).try_acquire_owned().map_err(|_| {
        let detail = format!(
            "{REDECIDES_MAX} record is being decided again already, which takes as much memory as \
             the state; try again in a moment"
        );
        Problem::new(Code::Overloaded, detail)
    })?;
    let tenure = app.tenure.clone();
    // It reads files, and rebuilds a whole state. The permit is kept until that is over, whether or
    // not somebody still waits for it.
    let work = tokio::task::spawn_blocking(move || {
        let found = tenure.redecide(run, lsn);
        drop(permit);
        found
    });
    let found = work.await.map_err(|_| Problem::stopping())?;
    found.map_err(|error| Problem::new(error.code(), error.to_string()))
}

#[cfg(test)]
mod tests {
    use tenure_coordinator::Engine;

    use super::*;
    use crate::artifacts::blobs::Blobs;
    use crate::artifacts::publish::Store;
    use crate::observe::event_log::Scribe;

    #[tokio::test]
    async fn one_record_is_decided_again_at_a_time() {
        let folder = std::env::temp_dir().join(format!("tenure-redecide-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let tenure = Engine::open(&folder).unwrap();
        let blobs = Arc::new(Blobs::open(&folder).unwrap());
        let store = Arc::new(Store::new(&folder));
        let app = Arc::new(App::new(tenure, Scribe::default(), blobs, store, None));
        let held = Arc::clone(&app.redeciding).try_acquire_owned().unwrap();
        let refused = redecide(&app, RunId(1), Lsn(1)).await.unwrap_err();
        assert_eq!(refused.code, Code::Overloaded);
        drop(held);
        // It is looked at now; there is no such record.
        for _ in 0..2 {
            let refused = redecide(&app, RunId(1), Lsn(1)).await.unwrap_err();
            assert_eq!(refused.code, Code::NotFound, "{}", refused.detail);
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
