//! The counters jump ahead; everything else stays as it is.

use super::*;
use crate::id::ID_MAX;
use crate::limits::ID_JUMP;
use crate::state::Filter;

#[test]
fn a_jump_that_would_reach_2_to_the_53_is_refused() {
    let mut world = World::new();
    let facts = world.state.facts_mut();
    facts.next_lease_id = LeaseId(ID_MAX - ID_JUMP + 1);
    assert_eq!(world.play(&Command::SkipIds), "ids_exhausted");
    world.state.facts_mut().next_lease_id = LeaseId(ID_MAX - ID_JUMP);
    assert_eq!(world.play(&Command::SkipIds), "IdsSkipped");
    assert_eq!(world.play(&Command::SkipIds), "ids_exhausted");
    world.state.facts_mut().next_lease_id = LeaseId(1);
    world.state.facts_mut().next_task_id = TaskId(ID_MAX - ID_JUMP + 1);
    assert_eq!(world.play(&Command::SkipIds), "ids_exhausted");
    assert_eq!(
        world.refusal(&Command::SkipIds),
        Some(Rejection::IdsExhausted {
            next_task_id: TaskId(ID_MAX - ID_JUMP + 1),
            next_lease_id: LeaseId(1)
        })
    );
}

#[test]
fn ids_jump_in_every_situation() {
    assert_table(
        &[column("skip", |_| Command::SkipIds)],
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
        world.play(&Command::SkipIds);
        assert_eq!(world.state.facts().hash(), before, "{situation:?}");
    }
    let mut world = World::with(Leased);
    world.play(&Command::SkipIds);
    assert_eq!(world.play(&complete(ITS_OWN)), "TaskCompleted -> COMPLETED");
    // A lease of the gap was given by nobody, or by a log that is lost.
    assert_eq!(world.play(&complete(ID_JUMP)), "lease_lost");
}

#[test]
fn the_first_ids_after_a_jump_are_those_that_it_names() {
    let mut world = World::with(Leased);
    world.play(&Command::SkipIds);
    world.play(&submit(NewTask { key: None, ..body(Fresh) }));
    world.play(&lease());
    let task = world.state.task(TaskId(2 + ID_JUMP)).unwrap();
    assert_eq!(task.last_lease_id(), LeaseId(3 + ID_JUMP));
}

#[test]
fn lists_and_order_reach_across_the_gap_and_the_gap_takes_no_room() {
    let mut world = World::new();
    let another = || submit(NewTask { key: None, ..body(Fresh) });
    for _ in 0..100 {
        world.play_unchecked(&another());
        world.play_unchecked(&Command::SkipIds);
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
    let newest_first = (0..100).rev().map(|nth| TaskId(1 + nth * (ID_JUMP + 1)));
    assert_eq!(listed, newest_first.collect::<Vec<_>>());
    // First in, first out, from before the first jump to after the last.
    for nth in 0..100 {
        world.play_unchecked(&lease());
        let task = world.state.task(TaskId(1 + nth * (ID_JUMP + 1))).unwrap();
        assert_eq!(task.state(), StateName::Leased);
    }
}
