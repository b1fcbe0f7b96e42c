//! Those who wait are served in order, in time, and only if they are still there.
//!
//! Proves P7 and P17.
#![allow(clippy::unwrap_used, clippy::panic)]

use tenure_coordinator::limits::{PARKED_LEASES_MAX, PARKED_READERS_MAX, WAIT_MS_MAX};
use tenure_coordinator::request::{
    GetStatus, Lease, ListWorkers, RegisterWorker, ResumeQueue, SignOff,
};
use tenure_coordinator::{NameRange, Next, Registration};
use tenure_core::command::{PauseEnd, PauseQueue};
use tenure_record::name::WorkerName;
use tenure_record::state::TaskState;
use tenure_record::terms::SpanMs;
use tenure_wal::disk::model::ModelDisk;

use crate::support::asks::{
    cancel, complete, fail, lease, lease_ref, submit, submit_at, submit_delayed,
    submit_with_timeout, wait,
};
use crate::support::{self, House, START_MS};
use tenure_code::Code;

#[test]
fn a_submit_and_the_grant_to_a_parked_worker_are_one_frame() {
    let mut house = House::new();
    let anna = house.tell(lease("anna", &["mail"], 5_000));
    assert!(anna.waits());
    house.tell(submit("mail"));
    assert_eq!(anna.grants()[0].task_id.0, 1);
    assert_eq!(house.coordinator.log().frames, [2]);
}

#[test]
fn parked_workers_are_served_in_the_order_in_which_they_came() {
    let mut house = House::new();
    let anna = house.tell(lease("anna", &["mail", "print"], 5_000));
    let ben = house.tell(lease("ben", &["mail"], 5_000));
    let cleo = house.tell(lease("cleo", &["print", "mail"], 5_000));
    house.tell(submit("print"));
    assert!(!anna.waits() && ben.waits() && cleo.waits());
    house.tell(submit("print"));
    assert!(ben.waits() && !cleo.waits());
    let dora = house.tell(lease("dora", &["mail"], 5_000));
    house.ask(submit("mail"));
    house.ask(lease("eve", &["mail"], 0));
    house.ask(submit("mail"));
    house.settle();
    assert_eq!(ben.grants()[0].task_id.0, 3, "who waits goes before who comes");
    assert_eq!(dora.grants()[0].task_id.0, 4);
}

#[test]
fn a_worker_that_waited_long_enough_hears_that_nothing_came() {
    let mut house = House::new();
    let anna = house.ask(lease("anna", &["mail"], 2_000));
    assert_eq!(house.settle(), Next::WithinMs(2_000));
    house.pass_ms(1_999);
    assert!(anna.waits());
    assert_eq!(house.pass_ms(1), Next::WhenRung, "nothing is left to wait for");
    assert_eq!(anna.grants().len(), 0);
    let ben = house.tell(lease("ben", &["mail"], u64::MAX));
    house.pass_ms(WAIT_MS_MAX);
    assert!(!ben.waits(), "nobody waits for ever");
}

#[test]
fn nothing_is_granted_to_a_worker_that_went_away_while_parked() {
    let mut house = House::new();
    let anna = house.tell(lease("anna", &["mail"], 5_000));
    let ben = house.tell(lease("ben", &["mail"], 5_000));
    anna.leave();
    house.tell(submit("mail"));
    assert_eq!(ben.grants()[0].lease_id.0, 1, "no lease was spent on anna");
}

#[test]
fn a_grant_that_nobody_took_is_released_at_once() {
    let mut house = House::new();
    house.tell(submit("mail"));
    house.gate.shut();
    // Enough at once that the frame goes to the log's thread and anna can leave meanwhile.
    let anna = house.ask(lease("anna", &["mail"], 0));
    for _ in 0..6 {
        house.ask(submit("other"));
    }
    house.settle();
    anna.leave();
    house.gate.open();
    house.settle();
    let ben = house.tell(lease("ben", &["mail"], 0));
    assert_eq!(ben.grants()[0].task_id.0, 1);
    assert_eq!(ben.grants()[0].attempt, 2);
    let task = house.coordinator.state().task(tenure_record::id::TaskId(1)).unwrap();
    assert_eq!((task.failures(), task.expiries()), (0, 0), "it costs no budget");
}

#[test]
fn too_many_parked_workers_are_refused_and_those_who_left_make_room() {
    let mut house = House::new();
    let parked: Vec<_> =
        (0..PARKED_LEASES_MAX).map(|_| house.ask(lease("anna", &["mail"], 5_000))).collect();
    house.settle();
    let refused = house.tell(lease("ben", &["mail"], 5_000)).refusal();
    assert_eq!(refused.code(), Code::Overloaded);
    assert!(refused.to_string().contains("10000 lease requests parked"), "{refused}");
    parked[7].leave();
    house.pass_ms(100);
    assert!(house.tell(lease("ben", &["mail"], 5_000)).waits());
}

#[test]
fn too_many_waiting_readers_are_refused() {
    let mut house = House::new();
    house.tell(submit("mail"));
    for _ in 0..PARKED_READERS_MAX {
        house.ask(wait(1, 5_000));
    }
    house.settle();
    assert_eq!(house.tell(wait(1, 5_000)).refusal().code(), Code::Overloaded);
}

#[test]
fn whoever_waits_for_a_task_hears_of_each_way_to_end() {
    let mut house = House::new();
    for _ in 0..4 {
        house.tell(submit("mail"));
    }
    house.tell(submit_with_timeout("mail", 1_000));
    let readers: Vec<_> = (1..=5).map(|task| house.ask(wait(task, 60_000))).collect();
    for _ in 0..2 {
        house.tell(lease("anna", &["mail"], 0));
    }
    assert!(readers.iter().all(support::Probe::waits));
    house.tell(complete(lease_ref(1, 1)));
    house.tell(fail(lease_ref(2, 2)));
    house.tell(cancel(3));
    house.pass_ms(1_000);
    let ended = |at: usize| readers[at].answer().state;
    assert_eq!(ended(0), TaskState::Completed);
    assert_eq!(ended(1), TaskState::Failed);
    assert_eq!(ended(2), TaskState::Canceled);
    assert_eq!(ended(4), TaskState::Failed, "by its deadline");
    assert!(readers[3].waits());
    house.pass_ms(59_000);
    assert_eq!(ended(3), TaskState::Waiting, "as it is when the time is up");
    let over = house.ask(wait(1, 60_000));
    house.step();
    assert!(!over.waits(), "what has ended is not waited for");
}

#[test]
fn a_lease_ends_by_itself_and_the_task_goes_to_who_waits() {
    let mut house = House::new();
    house.tell(submit("mail"));
    house.tell(lease("anna", &["mail"], 0));
    let ben = house.tell(lease("ben", &["mail"], 60_000));
    assert_eq!(house.pass_ms(1_000), Next::WithinMs(29_000));
    house.pass_ms(28_999);
    assert!(ben.waits());
    house.pass_ms(1);
    assert_eq!(ben.grants()[0].lease_id.0, 2);
    assert_eq!(house.tell(complete(lease_ref(1, 1))).refusal().code(), Code::LeaseLost);
}

#[test]
fn a_delayed_task_wakes_who_waits() {
    let mut house = House::new();
    let anna = house.tell(lease("anna", &["mail"], 60_000));
    house.tell(submit_delayed("mail", 7_000));
    // A pause lets the log say that all is durable; after that only the delay is left.
    assert_eq!(house.pass_ms(1_000), Next::WithinMs(6_000));
    house.pass_ms(5_999);
    assert!(anna.waits());
    house.pass_ms(1);
    assert_eq!(anna.grants().len(), 1);
}

#[test]
fn an_appointment_is_kept_by_the_wall_clock_even_if_that_is_set() {
    let mut house = House::new();
    let anna = house.tell(lease("anna", &["mail"], 60_000));
    house.tell(submit_at("mail", START_MS + 3_600_000));
    house.pass_ms(2_000);
    assert_eq!(house.settle(), Next::WithinMs(1_000), "it may be set, so it is looked at");
    house.wall_ms += 3_600_000;
    house.pass_ms(1_000);
    assert_eq!(anna.grants().len(), 1);
    assert_eq!(house.coordinator.take_jump().map(|jump| jump.by_ms), Some(3_600_000));
}

#[test]
fn a_calendar_moment_follows_the_wall_clock_when_log_time_is_years_ahead() {
    const YEARS_MS: u64 = 30 * 365 * 86_400_000;
    let mut house = House::on(ModelDisk::default(), START_MS + YEARS_MS);
    house.tell(submit("other"));
    let mut house = house.restart(START_MS);
    let status = house.tell(GetStatus).answer();
    assert_eq!(status.log_time_ahead_ms, YEARS_MS);
    house.tell(submit_at("mail", START_MS + 3_600_000));
    house.tell(submit_delayed("delayed", 7_000));
    house.pass_ms(7_000);
    assert_eq!(house.tell(lease("ben", &["delayed"], 0)).grants().len(), 1, "on log time");
    house.pass_ms(3_592_999);
    assert!(house.tell(lease("anna", &["mail"], 0)).grants().is_empty(), "an hour by the wall");
    house.pass_ms(1);
    assert_eq!(house.tell(lease("anna", &["mail"], 0)).grants().len(), 1);
}

#[test]
fn a_wall_clock_set_back_before_a_restart_ends_no_lease_and_keeps_none_for_ever() {
    let mut house = House::new();
    house.tell(submit("mail"));
    house.pass_ms(50_000);
    house.tell(lease("anna", &["mail"], 0));
    let mut house = house.restart(START_MS - 1_000_000);
    let ben = house.tell(lease("ben", &["mail"], 60_000));
    house.pass_ms(29_999);
    assert!(ben.waits(), "log time went on from the grant");
    house.pass_ms(1);
    assert_eq!(ben.grants().len(), 1);
}

#[test]
fn what_ended_while_nobody_was_here_is_on_record_before_anybody_is_served() {
    let mut house = House::new();
    let tasks = vec![support::asks::task("mail"); 10_000];
    for _ in 0..3 {
        let submit = tenure_core::command::SubmitTasks { tasks: tasks.clone() };
        house.tell(submit);
    }
    let mut request = support::asks::request("anna", &["mail"], 1_000);
    request.tasks_max = std::num::NonZeroU32::new(1_000).unwrap();
    for _ in 0..30 {
        house.tell(Lease { request: request.clone(), wait_ms: 0 });
    }
    let mut house = house.restart(START_MS + 3_600_000);
    let read = house.tell(support::asks::get(30_000));
    let task = read.answer();
    assert_eq!((task.state, task.expiries), (TaskState::Waiting, 1));
}

#[test]
fn a_resumed_queue_wakes_who_waits() {
    let mut house = House::new();
    let mail = support::asks::queue("mail");
    house.tell(PauseQueue::open_ended(mail.clone()));
    house.tell(submit("mail"));
    let anna = house.tell(lease("anna", &["mail"], 60_000));
    assert!(anna.waits());
    house.tell(ResumeQueue(mail));
    assert_eq!(anna.grants().len(), 1);
}

#[test]
fn a_queue_opens_by_itself_and_wakes_who_waits_without_a_record() {
    let mut house = House::new();
    let queue = support::asks::queue("mail");
    let end = PauseEnd::After(SpanMs::parse("for_ms", 5_000).unwrap());
    house.tell(PauseQueue { queue, end });
    house.tell(submit("mail"));
    let anna = house.tell(lease("anna", &["mail"], 60_000));
    house.pass_ms(4_999);
    assert!(anna.waits());
    house.pass_ms(1);
    assert_eq!(anna.grants().len(), 1);
}

#[test]
fn a_worker_that_signs_off_gives_everything_back() {
    let mut house = House::new();
    let anna = WorkerName::parse("anna").unwrap();
    let registration = Registration {
        worker: anna.clone(),
        display_name: None,
        queues: Vec::new(),
        slots: 4,
        labels: Default::default(),
        draining: false,
    };
    house.tell(RegisterWorker(registration));
    for _ in 0..3 {
        house.tell(submit("mail"));
        house.tell(lease("anna", &["mail"], 0));
    }
    house.tell(lease("ben", &["mail"], 0));
    let workers = house.tell(ListWorkers(NameRange::default())).answer();
    let seen: Vec<_> = workers.items.iter().map(|worker| (&*worker.name, worker.leases)).collect();
    assert_eq!(seen, [("anna", 3), ("ben", 0)]);
    assert_eq!(house.tell(SignOff(anna)).answer(), 3);
    assert_eq!(house.tell(lease("ben", &["mail"], 0)).grants()[0].task_id.0, 1);
}
