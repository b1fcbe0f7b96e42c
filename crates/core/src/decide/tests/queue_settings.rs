//! An operator pauses, resumes or configures a queue.

use tenure_record::time::Clock;

use super::*;
use crate::command::{ConfigureQueue, PauseEnd, PauseQueue, Retention, Setting, SettingsChange};

fn pause() -> Command {
    pause_until(PauseEnd::Resumed)
}

fn pause_until(end: PauseEnd) -> Command {
    Command::PauseQueue(PauseQueue { queue: queue("q"), end })
}

fn delete() -> Command {
    Command::DeleteQueue(queue("q"))
}

fn resume() -> Command {
    Command::ResumeQueue(queue("q"))
}

fn configure(retention_ms: Setting<SpanMs>) -> Command {
    Command::ConfigureQueue(ConfigureQueue {
        queue: queue("q"),
        change: SettingsChange { retention_ms, ..SettingsChange::default() },
    })
}

#[test]
fn what_is_so_already_needs_no_record() {
    let set = || configure(Setting::Set(span(HOUR)));
    let cases: [(&str, Vec<Command>, Command, &str); 12] = [
        ("no such queue", vec![], pause(), "QueueConfigured"),
        ("no such queue", vec![], resume(), "= open"),
        ("no such queue", vec![], configure(Setting::Keep), "QueueConfigured"),
        ("never set", vec![submit(body(Fresh))], resume(), "= open"),
        ("paused", vec![pause()], pause(), "= paused"),
        ("paused", vec![pause()], resume(), "QueueConfigured"),
        ("paused", vec![pause()], configure(Setting::Keep), "= paused"),
        ("resumed", vec![pause(), resume()], resume(), "= open"),
        ("set", vec![set()], set(), "= open"),
        ("set", vec![set()], configure(Setting::Keep), "= open"),
        ("set", vec![set()], configure(Setting::Clear), "QueueConfigured"),
        ("cleared", vec![set(), configure(Setting::Clear)], configure(Setting::Clear), "= open"),
    ];
    for (situation, before, command, expected) in cases {
        let mut world = World::new();
        before.iter().for_each(|command| drop(world.play(command)));
        assert_eq!(world.play(&command), expected, "{situation}: {command:?}");
    }
}

#[test]
fn one_setting_leaves_the_others_alone() {
    let mut world = World::new();
    world.play(&configure(Setting::Set(span(HOUR))));
    world.play(&pause());
    world.play(&resume());
    world.play(&pause());
    let settings = world.state.queue("q").unwrap().settings;
    assert_eq!((settings.paused, settings.retention_ms), (true, Some(HOUR)));
}

#[test]
fn a_paused_queue_gives_no_leases_and_takes_everything_else() {
    for situation in [Fresh, Returned] {
        let mut world = World::with(situation);
        world.play(&pause());
        assert_eq!(world.play(&lease()), "= 0 leases");
        world.play(&resume());
        assert_eq!(world.play(&lease()), "LeaseGranted -> LEASED, 30 s");
        world.play(&pause());
        let lease_id = world.state.task(TASK).unwrap().last_lease_id();
        assert_eq!(world.play(&complete(lease_id.0)), "TaskCompleted -> COMPLETED");
        let another = NewTask { key: None, ..body(Fresh) };
        assert_eq!(world.play(&submit(another)), "TaskCreated -> WAITING");
    }
}

#[test]
fn a_pause_with_an_end_is_over_at_that_moment_of_the_wall_clock() {
    let mut world = World::with(Fresh);
    let at = world.now.plus_ms(5 * SECOND);
    let until = format!("= paused until {}", at.0);
    assert_eq!(world.play(&pause_until(PauseEnd::At(at))), "QueueConfigured");
    assert_eq!(world.play(&pause_until(PauseEnd::At(at))), until, "it is so already");
    assert_eq!(
        world.play(&pause_until(PauseEnd::After(span(5 * SECOND)))),
        until,
        "the same moment"
    );
    assert_eq!(world.play(&lease()), "= 0 leases");
    world.wait(5 * SECOND - 1);
    assert_eq!(world.play(&lease()), "= 0 leases");
    assert_eq!(world.state.next_moment(Clock::Wall), Some(at), "it is looked at again then");
    assert!(!world.state.has_ready("q"));
    world.wait(1);
    world.state.advance(Now::both(world.now));
    assert_eq!(world.state.next_woken().as_deref(), Some("q"), "a parked request is served");
    assert_eq!(world.state.next_moment(Clock::Wall), None);
    assert_eq!(world.play(&lease()), "LeaseGranted -> LEASED, 30 s");
}

#[test]
fn a_resume_clears_both_pauses_and_a_pause_without_an_end_takes_the_place_of_one_with() {
    let settings = |world: &World| {
        let settings = world.state.queue("q").unwrap().settings;
        (settings.paused, settings.paused_until > Timestamp::ZERO)
    };
    let mut world = World::new();
    world.play(&pause_until(PauseEnd::After(span(HOUR))));
    assert_eq!(settings(&world), (false, true));
    world.play(&pause());
    assert_eq!(settings(&world), (true, false));
    world.play(&pause_until(PauseEnd::After(span(HOUR))));
    assert_eq!(settings(&world), (false, true));
    assert_eq!(world.play(&resume()), "QueueConfigured");
    assert_eq!(settings(&world), (false, false));
    assert_eq!(world.play(&resume()), "= open");
}

#[test]
fn only_a_queue_without_tasks_is_deleted() {
    let mut world = World::new();
    let not_found = Rejection::QueueNotFound { name: queue("q") };
    assert_eq!(world.refusal(&delete()), Some(not_found.clone()));
    world.play(&configure(Setting::Set(span(HOUR))));
    world.play(&submit(body(Fresh)));
    let in_use = |ended| Rejection::QueueInUse { name: queue("q"), tasks: 1, ended };
    assert_eq!(world.refusal(&delete()), Some(in_use(0)));
    world.play(&lease());
    world.play(&complete(1));
    assert_eq!(world.refusal(&delete()), Some(in_use(1)));
    world.wait(HOUR);
    world.play(&Command::PurgeTasks(Retention::default()));
    assert_eq!(world.play(&delete()), "QueueDeleted");
    assert!(world.state.queue("q").is_none());
    assert_eq!(world.refusal(&delete()), Some(not_found));
    world.play(&submit(body(Fresh)));
    let settings = world.state.queue("q").unwrap().settings;
    assert_eq!(settings.retention_ms, None, "a queue of that name begins anew");
}
