//! With an archive: nothing is forgotten by itself, whatever its age or number; only what was named as
//! archived goes, and only if nothing has happened to it since.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use tenure_coordinator::request::{ListDue, ListRunTasks, PurgeArchived, RetryTask};
use tenure_coordinator::{DueItems, Keep, Purge, RunTasks, Upkeep, histories, history};
use tenure_core::command::{Archived, RegisterWorkflow, Rest, Retention, StartRun, Swept};
use tenure_flow::Definition;
use tenure_log::Log;
use tenure_record::id::{Lsn, RunId, TaskId, TokenId};
use tenure_record::terms::Tags;
use tenure_value::Value;
use tenure_wal::disk::model::ModelDisk;

use crate::support::asks::{cancel, complete, lease, submit};
use crate::support::{House, START_MS};

const AGE_MS: u64 = 10_000;

fn house(tasks_max: u64) -> House {
    let retention = Retention { age_ms: AGE_MS, tasks_max, items_max: 2_000 };
    let upkeep = Upkeep { retention, purge: Purge::AfterArchive, ..Upkeep::default() };
    House::kept(ModelDisk::default(), START_MS, upkeep)
}

fn due(house: &mut House) -> DueItems {
    *house.tell(ListDue).answer()
}

fn ids(due: &DueItems) -> Vec<u64> {
    due.tasks.iter().map(|task| task.id.0).collect()
}

fn forget(house: &mut House, tasks: &[u64], runs: &[u64], as_of: Lsn) -> usize {
    let tasks = tasks.iter().copied().map(TaskId).collect();
    let runs = runs.iter().copied().map(RunId).collect();
    let purge = PurgeArchived(Archived { tasks, runs, as_of });
    let Swept { items, rest } = house.tell(purge).answer();
    assert_eq!(rest, Rest::Nothing);
    items
}

fn left(house: &House) -> Vec<u64> {
    house.coordinator.state().facts().tasks().map(|task| task.id.0).collect()
}

fn finish(house: &mut House, count: u64) {
    for _ in 0..count {
        house.tell(submit("mail")).answer();
        let grants = house.tell(lease("anna", &["mail"], 0)).grants();
        house.tell(complete(grants[0].lease())).answer();
    }
}

#[test]
fn nothing_goes_before_it_is_named_however_old_or_many() {
    let mut house = house(3);
    finish(&mut house, 5);
    assert_eq!(ids(&due(&mut house)), [1, 2], "two are too many");
    let next = house.pass_ms(100 * AGE_MS);
    assert_eq!(left(&house), [1, 2, 3, 4, 5]);
    assert!(!matches!(next, tenure_coordinator::Next::Now), "it does not spin: {next:?}");
    // The archive could not be written meanwhile; the same is due again, and more.
    let found = due(&mut house);
    assert_eq!((ids(&found), found.rest), (vec![1, 2, 3, 4, 5], Rest::Nothing));
    assert_eq!(forget(&mut house, &[1, 3], &[], found.as_of), 2);
    assert_eq!(left(&house), [2, 4, 5], "exactly what was named");
    assert_eq!(forget(&mut house, &[1, 3], &[], found.as_of), 0, "once more is no harm");
    assert_eq!(house.coordinator.released(), house.last_lsn());
}

#[test]
fn what_lives_or_is_too_young_is_not_due_and_does_not_go() {
    let mut house = house(u64::MAX);
    finish(&mut house, 1);
    house.tell(submit("mail")).answer();
    let found = due(&mut house);
    assert_eq!(ids(&found), [0; 0]);
    assert_eq!(found.next_at.unwrap().0 - found.now.0, AGE_MS);
    assert_eq!(forget(&mut house, &[2], &[], Lsn(u64::MAX)), 0, "it waits");
}

#[test]
fn what_was_retried_after_it_was_archived_stays_and_is_archived_again() {
    let mut house = house(u64::MAX);
    house.tell(submit("mail")).answer();
    house.tell(cancel(1)).answer();
    house.pass_ms(AGE_MS);
    let found = due(&mut house);
    assert_eq!(ids(&found), [1]);
    house.tell(RetryTask(TaskId(1))).answer();
    assert_eq!(forget(&mut house, &[1], &[], found.as_of), 0);
    house.tell(cancel(1)).answer();
    assert_eq!(forget(&mut house, &[1], &[], found.as_of), 0, "its second end is not archived");
    house.pass_ms(AGE_MS);
    let again = due(&mut house);
    assert!(again.tasks[0].last_lsn > found.tasks[0].last_lsn);
    assert_eq!(forget(&mut house, &[1], &[], again.as_of), 1);
}

#[test]
fn a_run_is_due_with_its_tasks_and_goes_with_them() {
    let mut house = house(u64::MAX);
    let yaml =
        "workflow: line\ninitial_node: work\nnodes: [{ref: work, kind: task, task: {queue: q}}]\n";
    let definition = Arc::new(Definition::from_yaml(yaml).unwrap());
    house.tell(RegisterWorkflow { definition }).answer();
    let start = StartRun {
        workflow: "line".into(),
        version: None,
        input: Value::empty_map(),
        key: None,
        tags: Tags::default(),
    };
    house.tell(start).answer();
    let grants = house.tell(lease("anna", &["q"], 0)).grants();
    house.tell(complete(grants[0].lease())).answer();
    house.pass_ms(AGE_MS);
    let found = due(&mut house);
    assert_eq!((ids(&found), found.runs[0].id), (vec![], RunId(1)), "its task goes with it");
    let page = ListRunTasks { run_id: RunId(1), after: TokenId::NONE, limit: 10 };
    let RunTasks { tasks, next } = house.tell(page).answer();
    assert_eq!((tasks.len(), tasks[0].id, next), (1, TaskId(1), None));
    assert_eq!(forget(&mut house, &[1], &[], found.as_of), 0, "never without its run");
    assert_eq!(forget(&mut house, &[], &[1], found.as_of), 1);
    assert_eq!(left(&house), [0; 0]);
}

/// One reading for many gives what one reading for each gives, also where the log was trimmed.
#[test]
fn histories_that_are_read_together_are_those_that_are_read_alone() {
    for log_keep in [Keep::All, Keep::Bytes(1)] {
        let upkeep = Upkeep { snapshot_log_bytes: 3_000, log_keep, ..Upkeep::default() };
        let mut house = House::kept(ModelDisk::default(), START_MS, upkeep);
        for _ in 0..150 {
            house.tell(submit("mail")).answer();
            house.tell(submit("mail")).answer();
            let grants = house.tell(lease("anna", &["mail"], 0)).grants();
            house.tell(complete(grants[0].lease())).answer();
            house.pass_ms(100);
        }
        let tasks = house.coordinator.state().facts().tasks();
        let tasks: Vec<_> = tasks.map(|task| (task.id, task.last_lsn())).collect();
        let mut log = house.coordinator.log().reader();
        let together = histories(&mut log, &tasks, usize::MAX).unwrap().unwrap();
        let mut truncated = 0;
        for ((id, last), told) in tasks.iter().zip(&together) {
            assert_eq!(told, &history(&mut log, *id, *last).unwrap(), "task {id}");
            truncated += usize::from(told.truncated_before.is_some());
        }
        assert_eq!(truncated > 0, log_keep != Keep::All, "{truncated} of {}", tasks.len());
        assert_eq!(histories(&mut log, &tasks, 1_000).unwrap(), None, "too much for that");
    }
}
