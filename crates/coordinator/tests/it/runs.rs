//! Runs, asked for: answered when durable, waited for, listed, and what their records tell.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::sync::Arc;

use tenure_code::Code;
use tenure_coordinator::request::{CancelRun, GetRun, GetStatus, ListRuns, ListTokens, UnparkRun};
use tenure_coordinator::{Position, RunFilter};
use tenure_core::command::{NewTask, RegisterWorkflow, SignalRun, StartRun};
use tenure_flow::Definition;
use tenure_log::Log;
use tenure_record::id::{RunId, TokenId};
use tenure_record::name::SignalText;
use tenure_record::terms::{Payload, Tags};
use tenure_record::transition::Told;
use tenure_value::Value;

use crate::support::asks::{complete, lease, lease_ref, submit, submit_task, task};
use crate::support::{House, Probe, START_MS};

const LINE: &str = "
workflow: line
initial_node: work
timeout_ms: 10000
nodes:
  - {ref: work, kind: task, task: {queue: q}}
output_mapping: {out: outputs.work}
";

const ASK: &str = "
workflow: ask
initial_node: ask
nodes:
  - {ref: ask, kind: signal, signal: {name: go}}
";

fn register(yaml: &str) -> RegisterWorkflow {
    let definition = Arc::new(Definition::from_yaml(yaml).unwrap());
    RegisterWorkflow { definition }
}

fn start(workflow: &str) -> StartRun {
    StartRun {
        workflow: workflow.into(),
        version: None,
        input: Value::empty_map(),
        key: None,
        tags: Tags::default(),
    }
}

fn signal(run: u64) -> SignalRun {
    SignalRun {
        run_id: RunId(run),
        name: "go".into(),
        payload: Value::Null,
        correlation: SignalText::parse("").unwrap(),
        signal_id: None,
    }
}

fn cancel(run: u64) -> CancelRun {
    CancelRun(RunId(run))
}

fn wait(run: u64, wait_ms: u64) -> GetRun {
    GetRun { run_id: RunId(run), wait_ms }
}

/// A house with both workflows.
fn house() -> House {
    let mut house = House::new();
    house.tell(register(LINE));
    house.tell(register(ASK));
    house
}

#[test]
fn nothing_about_a_run_is_told_before_it_is_durable() {
    let mut house = house();
    house.gate.shut();
    // So many at once that the frame goes to the log's thread.
    let begun: Vec<_> = (0..6).map(|_| house.ask(start("ask"))).collect();
    house.settle();
    let read = house.ask(GetRun { run_id: RunId(1), wait_ms: 0 });
    let listed = house.ask(ListRuns(RunFilter { limit: 9, ..RunFilter::default() }));
    let (signaled, canceled) = (house.ask(signal(1)), house.ask(cancel(2)));
    let ended = house.ask(wait(1, 60_000));
    house.settle();
    assert!(begun.iter().all(Probe::waits), "they saw what may be undone");
    assert!(read.waits() && listed.waits() && signaled.waits());
    assert!(canceled.waits() && ended.waits());
    house.gate.open();
    house.settle();
    assert!(begun.iter().all(|probe| !probe.waits()));
    assert_eq!((read.answer().id, listed.answer().runs.len()), (RunId(1), 6));
    assert!(!signaled.waits() && !canceled.waits());
    assert_eq!(begun[0].answer().run.state, "WAITING", "as it was when it was asked");
    assert_eq!(ended.answer().state, "COMPLETED");
}

#[test]
fn whoever_waits_for_a_run_hears_of_each_way_to_end() {
    let mut house = house();
    for workflow in ["line", "ask", "line", "line", "ask"] {
        house.tell(start(workflow));
    }
    let readers: Vec<_> = (1..=5).map(|run| house.ask(wait(run, 60_000))).collect();
    house.tell(lease("anna", &["q"], 0));
    assert!(readers.iter().all(Probe::waits));
    house.tell(complete(lease_ref(1, 1)));
    house.tell(signal(2));
    house.tell(cancel(3));
    let state = |at: usize| readers[at].answer().state;
    assert_eq!([state(0), state(1), state(2)], ["COMPLETED", "COMPLETED", "CANCELED"]);
    assert!(readers[3].waits() && readers[4].waits());
    house.pass_ms(10_000);
    assert_eq!(state(3), "TIMED_OUT", "by its deadline");
    house.pass_ms(50_000);
    assert_eq!(state(4), "WAITING", "as it is when the time is up");
    let over = house.ask(wait(1, 60_000));
    house.step();
    assert!(!over.waits(), "what is over is not waited for");
    assert_eq!(house.tell(wait(99, 60_000)).refusal().code(), Code::NotFound);
}

#[test]
fn what_is_counted_is_what_is_there_also_after_a_restart() {
    let mut house = house();
    for workflow in ["line", "ask", "ask", "line"] {
        house.tell(start(workflow));
    }
    house.tell(cancel(1));
    let check = |house: &mut House| {
        let status = house.tell(GetStatus).answer();
        assert_eq!((status.runs, status.workflows), ([1, 2, 0, 0, 1, 0], 2));
        let tokens = ListTokens { run_id: RunId(1), after: TokenId::NONE, limit: 5 };
        let page = house.tell(tokens).answer();
        assert_eq!((page.tokens[0].state, page.next), ("canceled", None));
    };
    check(&mut house);
    check(&mut house.restart(START_MS + 1_000));
}

#[test]
fn a_follower_is_told_of_runs_between_the_tasks_and_goes_on_anywhere() {
    let mut house = house();
    house.tell(start("line"));
    house.tell(lease("anna", &["q"], 0));
    house.tell(complete(lease_ref(1, 1)));
    let read = |after: Position| {
        let log = house.coordinator.log().reader();
        let mut follower = house.coordinator.feed().follow(log, after);
        let mut told = Vec::new();
        while follower
            .next_told(|record, it| {
                let (name, run) = match it {
                    Told::Task(step) => (step.event, step.run_id),
                    Told::Run(step) => (step.event, Some(step.run_id)),
                };
                told.push((Position { lsn: record.lsn, index: Some(it.index()) }, name, run));
            })
            .unwrap()
            == tenure_coordinator::Followed::Frame
        {}
        told
    };
    let all = read(Position::START);
    let names: Vec<_> = all.iter().map(|(_, name, _)| *name).collect();
    let expected = ["RunStarted", "TaskCreated", "LeaseGranted", "TaskCompleted", "RunFinished"];
    assert_eq!(names, expected);
    assert!(all.iter().all(|(.., run)| *run == Some(RunId(1))), "{all:?}");
    for (seen, (at, ..)) in all.iter().enumerate() {
        assert_eq!(read(*at), all[seen + 1..]);
    }
}

/// A moment after which a record follows that is too long for the bound of the test.
const BURST: &str = "
workflow: burst
initial_node: nap
nodes:
  - {ref: nap, kind: timer, timer: {delay_ms: 1000}}
  - {ref: work, kind: task, task: {queue: a-queue-with-a-long-name-that-is-in-every-record-of-its-tasks}}
transitions: [{from: nap, to: work, spawn_count: 100}]
";

/// Bytes of a record in the test, which is enough for all but the burst.
const SHORT_BYTES: usize = 2_048;

#[test]
fn a_request_whose_record_would_be_too_long_is_refused_and_nothing_happened() {
    let mut house = House::new();
    house.coordinator.limit_records(SHORT_BYTES);
    house.tell(submit("mail"));
    let before = house.coordinator.state().last_lsn();
    let payload = Payload::parse("payload", vec![b'1'; SHORT_BYTES]).unwrap();
    let refused = house.tell(submit_task(NewTask { payload, ..task("mail") })).refusal();
    assert_eq!(refused.code(), Code::PayloadTooLarge);
    assert_eq!(house.coordinator.state().last_lsn(), before);
    assert!(house.tell(submit("mail")).heard().unwrap().is_ok(), "the next one is taken");
}

#[test]
fn a_run_whose_next_step_does_not_fit_a_record_is_parked_and_others_go_on() {
    let mut house = House::new();
    house.tell(register(BURST));
    house.coordinator.limit_records(SHORT_BYTES);
    let run = house.tell(start("burst")).answer().run.id;
    house.pass_ms(1_000);
    let parked = house.tell(wait(run.0, 0)).answer();
    assert_eq!((parked.state, parked.parked.is_some()), ("RUNNING", true), "{parked:?}");
    // It is asked for once, not again and again.
    let before = house.coordinator.state().last_lsn();
    house.pass_ms(60_000);
    assert_eq!(house.coordinator.state().last_lsn(), before);
    assert!(house.tell(submit("mail")).heard().unwrap().is_ok(), "others go on");
    house.coordinator.limit_records(usize::MAX);
    assert!(house.tell(UnparkRun(run)).answer().parked.is_none());
    house.pass_ms(1);
    let grants = house.tell(lease("anna", &[LONG_QUEUE], 0)).grants();
    assert_eq!(grants.len(), 1, "it goes on where it stood");
}

const LONG_QUEUE: &str = "a-queue-with-a-long-name-that-is-in-every-record-of-its-tasks";
