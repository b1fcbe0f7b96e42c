//! The counters jump ahead; everything else stays as it is.

use tenure_record::id::ID_MAX;

use super::*;
use crate::command::IdJump;
use crate::limits::{ID_JUMP_RESTORE, ID_JUMP_UNCLEAN, IDS_RESERVED};
use crate::state::Filter;

const RESTORE: Command = Command::SkipIds(IdJump::Restore);
const UNCLEAN: Command = Command::SkipIds(IdJump::UncleanStart);

#[test]
fn a_jump_that_would_reach_2_to_the_43_is_refused() {
    for (command, jump) in [(RESTORE, ID_JUMP_RESTORE), (UNCLEAN, ID_JUMP_UNCLEAN)] {
        let mut world = World::new();
        world.state.facts_mut().next_lease_id = LeaseId(ID_MAX - jump + 1);
        assert_eq!(world.play(&command), "ids_exhausted");
        world.state.facts_mut().next_lease_id = LeaseId(ID_MAX - jump);
        assert_eq!(world.play(&command), "IdsSkipped");
        assert_eq!(world.play(&command), "ids_exhausted");
        world.state.facts_mut().next_lease_id = LeaseId(1);
        world.state.facts_mut().next_task_id = TaskId(ID_MAX - jump + 1);
        let refused = world.refusal(&command).unwrap();
        let (what, next) = ("task", ID_MAX - jump + 1);
        assert_eq!(refused, Rejection::IdsExhausted { what, next, wanted: jump });
        assert!(refused.to_string().contains("8796093022207"), "{refused}");
    }
}

#[test]
fn a_jump_is_as_far_as_what_may_be_lost() {
    let mut world = World::new();
    world.play(&UNCLEAN);
    assert_eq!(world.state.facts().next_task_id, TaskId(1 + (1 << 28)));
    world.play(&RESTORE);
    assert_eq!(world.state.facts().next_task_id, TaskId(1 + (1 << 28) + (1 << 36)));
}

#[test]
fn new_work_is_refused_before_the_ids_of_accepted_work_run_out() {
    let mut world = World::with(Fresh);
    let another = || submit(NewTask { key: None, ..body(Fresh) });
    for next in [ID_MAX - IDS_RESERVED, ID_MAX] {
        world.state.facts_mut().next_task_id = TaskId(next);
        assert_eq!(world.play_unchecked(&another()), "ids_exhausted");
    }
    world.state.facts_mut().next_task_id = TaskId(ID_MAX - IDS_RESERVED - 1);
    assert_eq!(world.play_unchecked(&another()), "TaskCreated -> WAITING");
    // What is there can be leased to the last id.
    world.state.facts_mut().next_lease_id = LeaseId(ID_MAX - 1);
    assert_eq!(world.play_unchecked(&another()), "ids_exhausted");
    assert!(world.play_unchecked(&lease()).starts_with("LeaseGranted"));
    assert_eq!(world.play_unchecked(&lease()), "ids_exhausted");
}

#[test]
fn ids_jump_in_every_situation() {
    assert_table(
        &[column("skip", |_| RESTORE)],
        "
                    | skip
        Fresh       | IdsSkipped
        Delayed     | IdsSkipped
        Returned    | IdsSkipped
        BackingOff  | IdsSkipped
        Leased      | IdsSkipped
        Late        | IdsSkipped
        AskedToStop | IdsSkipped
        Completed   | IdsSkipped
        Failed      | IdsSkipped
        Dead        | IdsSkipped
        Canceled    | IdsSkipped
        ",
    );
}

#[test]
fn what_was_there_before_a_jump_goes_on_after_it() {
    for situation in SITUATIONS {
        let mut world = World::with(situation);
        let before = world.state.facts().hash();
        world.play(&RESTORE);
        assert_eq!(world.state.facts().hash(), before, "{situation:?}");
    }
    let mut world = World::with(Leased);
    world.play(&RESTORE);
    assert_eq!(world.play(&complete(ITS_OWN)), "TaskCompleted -> COMPLETED");
    // A lease of the gap was given by nobody, or by a log that is lost.
    assert_eq!(world.play(&complete(ID_JUMP_RESTORE)), "lease_lost");
}

#[test]
fn the_first_ids_after_a_jump_are_those_that_it_names() {
    let mut world = World::with(Leased);
    world.play(&RESTORE);
    world.play(&submit(NewTask { key: None, ..body(Fresh) }));
    world.play(&lease());
    let task = world.state.task(TaskId(2 + ID_JUMP_RESTORE)).unwrap();
    assert_eq!(task.last_lease_id(), LeaseId(3 + ID_JUMP_RESTORE));
}

#[test]
fn lists_and_order_reach_across_the_gap_and_the_gap_takes_no_room() {
    let mut world = World::new();
    let another = || submit(NewTask { key: None, ..body(Fresh) });
    for _ in 0..100 {
        world.play_unchecked(&another());
        world.play_unchecked(&RESTORE);
    }
    invariant::check(&world.state).unwrap();
    // Each jump leads to another page, and to another part of each set; nothing lies between.
    assert_eq!(world.state.facts().tasks.pages(), 100);
    let mut listed = Vec::new();
    let mut page = world.state.list(&Filter::default(), None, 30);
    loop {
        listed.extend(page.tasks.iter().map(|task| task.id));
        let Some(next) = page.next else { break };
        page = world.state.list(&Filter::default(), Some(next), 30);
    }
    let newest_first = (0..100).rev().map(|nth| TaskId(1 + nth * (ID_JUMP_RESTORE + 1)));
    assert_eq!(listed, newest_first.collect::<Vec<_>>());
    // First in, first out, from before the first jump to after the last.
    for nth in 0..100 {
        world.play_unchecked(&lease());
        let task = world.state.task(TaskId(1 + nth * (ID_JUMP_RESTORE + 1))).unwrap();
        assert_eq!(task.state(), TaskState::Leased);
    }
}
