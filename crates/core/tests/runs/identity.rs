//! What makes two starts under one key, and two signals under one id, the same request.

use tenure_audit::Audit;
use tenure_code::Code;
use tenure_core::command::{Command, Reply, SignalRun, Signaled, StartRun, SubmitOutcome};
use tenure_core::{Draft, Rejection, State, Verdict, apply, decide};
use tenure_record::codec;
use tenure_record::event::Event;
use tenure_record::id::RunId;
use tenure_record::name::{SignalText, TagKey, TagValue, TaskKey};
use tenure_record::terms::Tags;
use tenure_record::time::Now;

use super::world::{World, json};

const WORKFLOW: &str = "workflow: w
initial_node: a
nodes: [{ref: a, kind: signal, signal: {name: ok}}]
";

fn start(input: &str) -> StartRun {
    StartRun {
        workflow: "w".into(),
        version: None,
        input: json(input),
        key: Some(TaskKey::parse("order-7").unwrap()),
        tags: Tags::default(),
    }
}

fn signal(payload: &str) -> SignalRun {
    SignalRun {
        run_id: RunId(1),
        name: "ok".into(),
        payload: json(payload),
        correlation: SignalText::parse("c").unwrap(),
        signal_id: Some(SignalText::parse("s-1").unwrap()),
    }
}

fn started(world: &mut World, start: &StartRun) -> Result<(RunId, SubmitOutcome), Rejection> {
    world.play(&Command::StartRun(start.clone())).map(|reply| match reply {
        Reply::Started(started) => (started.run_id, started.outcome),
        other => panic!("{other:?}"),
    })
}

/// A run that holds the key, and a signal that it took.
fn world() -> World {
    let mut world = World::new();
    world.register(WORKFLOW);
    let begun = started(&mut world, &start(r#"{"a":1,"b":[2]}"#)).unwrap();
    assert_eq!(begun, (RunId(1), SubmitOutcome::Created));
    let kept = world.play(&Command::SignalRun(signal(r#"{"x":1,"y":2}"#))).unwrap();
    assert_eq!(kept, Reply::Signaled(Signaled::Kept));
    world
}

#[test]
fn another_start_under_a_known_key_is_a_conflict_that_names_the_run() {
    let mut world = world();
    let tag = (TagKey::parse("team").unwrap(), TagValue::parse("red").unwrap());
    let same = r#"{"a":1,"b":[2]}"#;
    let others = [
        start(r#"{"a":2,"b":[2]}"#),
        start(r#"{"a":"1","b":[2]}"#),
        start("{}"),
        StartRun { version: Some(1), ..start(same) },
        StartRun { tags: Tags::parse(vec![tag]).unwrap(), ..start(same) },
    ];
    for crashed in [false, true] {
        if crashed {
            world.crash();
        }
        for other in &others {
            let refused = started(&mut world, other).unwrap_err();
            assert_eq!(refused.code(), Code::Conflict, "{other:?}");
            assert!(refused.to_string().contains("run 1"), "{refused}");
        }
    }
    assert_eq!(world.state.facts().run_count(), 1);
    world.verify();
    world.verify_snapshots();
}

#[test]
fn a_start_said_again_is_the_known_run_however_its_input_is_written() {
    let mut world = world();
    world.register(&format!("{WORKFLOW}timeout_ms: 60000\n"));
    for input in [r#"{"a":1,"b":[2]}"#, r#"{ "b": [ 2.0 ], "a": 1.0 }"#, r#"{"a":1e0,"b":[2]}"#] {
        let known = started(&mut world, &start(input)).unwrap();
        assert_eq!(known, (RunId(1), SubmitOutcome::Existed), "{input}");
    }
    let other = StartRun { key: Some(TaskKey::parse("order-8").unwrap()), ..start("{}") };
    assert_eq!(started(&mut world, &other).unwrap(), (RunId(2), SubmitOutcome::Created));
    world.verify();
}

#[test]
fn another_signal_under_a_known_id_is_a_conflict_and_the_same_one_is_known() {
    let mut world = world();
    let same = signal(r#"{ "y": 2.0, "x": 1 }"#);
    let others = [
        signal(r#"{"x":1,"y":3}"#),
        signal("null"),
        SignalRun { name: "other".into(), ..same.clone() },
        SignalRun { correlation: SignalText::parse("d").unwrap(), ..same.clone() },
    ];
    for crashed in [false, true] {
        if crashed {
            world.crash();
        }
        let known = world.play(&Command::SignalRun(same.clone())).unwrap();
        assert_eq!(known, Reply::Signaled(Signaled::Known));
        for other in &others {
            let refused = world.play(&Command::SignalRun(other.clone())).unwrap_err();
            assert_eq!(refused.code(), Code::Conflict, "{other:?}");
            assert!(refused.to_string().contains("\"s-1\""), "{refused}");
        }
    }
    world.verify();
    world.verify_snapshots();
}

#[test]
fn a_record_that_does_not_say_what_was_asked_takes_every_repetition() {
    let world = world();
    let mut state = State::replaying(0);
    for bytes in &world.log {
        let mut record = codec::decode(bytes).unwrap();
        match &mut record.event {
            Event::RunStarted(event) => event.run.start_hash = None,
            Event::SignalReceived(event) => event.signal_hash = None,
            _ => {}
        }
        apply(&mut state, &record);
    }
    assert_ne!(state.facts().hash(), world.state.facts().hash(), "the hashes are facts");
    let now = Now::both(world.now);
    state.serve(now);
    for command in [Command::StartRun(start("{}")), Command::SignalRun(signal("7"))] {
        let verdict = decide(&mut Draft::new(&state), &command, now, 0).unwrap();
        assert!(matches!(verdict, Verdict::Answer(_)), "{command:?} gave {verdict:?}");
    }
}

#[test]
fn an_audit_refuses_the_hash_of_a_key_or_an_id_that_is_not_there() {
    let world = world();
    for event in ["RunStarted", "SignalReceived"] {
        let mut audit = Audit::new();
        let read = world.log.iter().try_for_each(|bytes| {
            let mut record = codec::decode(bytes).unwrap();
            match &mut record.event {
                Event::RunStarted(it) if event == "RunStarted" => it.run.key = None,
                Event::SignalReceived(it) if event == "SignalReceived" => it.signal_id = None,
                _ => {}
            }
            let mut changed = Vec::new();
            codec::encode(&record, &mut changed);
            audit.read(&record, &changed)
        });
        let violation = read.unwrap_err().to_string();
        assert!(violation.contains("hash"), "{event}: {violation}");
    }
}
