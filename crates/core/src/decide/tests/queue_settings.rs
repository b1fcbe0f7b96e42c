//! An operator pauses, resumes or configures a queue.

use super::*;
use crate::command::{ConfigureQueue, Setting};

fn pause() -> Command {
    Command::PauseQueue(queue("q"))
}

fn resume() -> Command {
    Command::ResumeQueue(queue("q"))
}

fn configure(retention_ms: Setting<SpanMs>) -> Command {
    Command::ConfigureQueue(ConfigureQueue { queue: queue("q"), retention_ms })
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
