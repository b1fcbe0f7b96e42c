//! What is derived, held against the facts.

use tenure_record::id::TaskId;

use crate::state::State;
use crate::state::facts::task::Cold;
use crate::state::index::Indexes;

impl State {
    /// Compares the indexes with ones built anew. Says the first difference.
    pub(crate) fn check_indexes(&self) -> Result<(), String> {
        let Some(live) = &self.indexes else { return Ok(()) };
        let anew = Indexes::build(&self.facts, self.table_seed, live.followed());
        live.compare(&anew)?;
        for (id, task) in self.facts.tasks.iter() {
            let key = self.facts.cold_of(task).and_then(Cold::held_key);
            let Some(key) = key else { continue };
            let holder = live.key_holder(&self.facts, task.queue, &key.text);
            if holder != Some(TaskId(id)) {
                return Err(format!("the key {:?} is not found at task {id}", key.text));
            }
        }
        Ok(())
    }
}
