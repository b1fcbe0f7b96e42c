//! The lease table against a clock that is stepped by hand.

use super::*;

const SERVER_NOW: u64 = 1_000_000;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn lease(id: u64, expires_in: u64) -> v1::Lease {
    v1::Lease {
        task_id: id,
        lease_id: id + 100,
        log_expires_at: SERVER_NOW + expires_in,
        ..Default::default()
    }
}

/// A lease table whose hello was sent `trip` before `now`.
fn connected(slots: u32, trip: u64) -> (LeaseTable, Instant) {
    let sent_at = Instant::now();
    let mut table = LeaseTable::new(slots);
    assert!(table.reconnect().is_empty());
    let welcome = v1::Welcome { now: SERVER_NOW, ..Default::default() };
    table.welcome(&welcome, &[], sent_at, sent_at + ms(trip));
    assert_eq!(table.message(sent_at + ms(trip)).unwrap().credit, slots);
    (table, sent_at + ms(trip))
}

fn good(task_id: u64, expires_in: u64) -> v1::ReportResult {
    v1::ReportResult { task_id, log_expires_at: SERVER_NOW + expires_in, ..Default::default() }
}

fn refused(code: &str) -> Option<v1::Problem> {
    Some(v1::Problem { code: code.to_owned(), ..Default::default() })
}

#[test]
fn a_lease_is_counted_from_when_the_hello_was_sent() {
    // The answer took 200 ms; of a lease of 1,000 ms only 800 are sure to be left.
    let (mut table, now) = connected(1, 200);
    let signal = table.begin(&lease(1, 1_000), now).unwrap();
    table.expire(now + ms(799));
    assert_eq!(signal.get(), LeaseStatus::Held);
    table.expire(now + ms(800));
    assert_eq!(signal.get(), LeaseStatus::Lost);
    table.finish(101, Some(Ok(Output::default())));
    let message = table.message(now + ms(801)).unwrap();
    assert!(message.reports.is_none(), "what comes of a lost lease is dropped");
    assert_eq!(message.credit, 1, "but its slot is free");
}

#[test]
fn heartbeats_come_three_times_in_a_lease_and_move_its_end() {
    let (mut table, now) = connected(1, 0);
    let signal = table.begin(&lease(1, 900), now).unwrap();
    assert!(table.message(now + ms(299)).is_none());
    let message = table.message(now + ms(300)).unwrap();
    let reports = message.reports.unwrap();
    let plain = v1::HeartbeatReport { task_id: 1, lease_id: 101, ..Default::default() };
    assert_eq!(reports.heartbeats, [plain]);
    table.pong(v1::Pong { sequence: message.ping.unwrap().sequence, now: SERVER_NOW + 300 });
    let results = vec![v1::ReportResult { cancel_requested: true, ..good(1, 1_200) }];
    let results = v1::Results { sequence: reports.sequence, results, problem: None };
    table.results(results, now + ms(310));
    assert_eq!(signal.get(), LeaseStatus::Canceled, "a heartbeat tells of a cancel");
    table.expire(now + ms(1_199));
    assert_eq!(signal.get(), LeaseStatus::Canceled);
    table.expire(now + ms(1_200));
    assert_eq!(signal.get(), LeaseStatus::Lost);
}

#[test]
fn reports_go_together_in_the_order_of_their_kinds() {
    let (mut table, now) = connected(4, 0);
    for id in 1..=4 {
        table.begin(&lease(id, 60_000), now).unwrap();
    }
    table.finish(101, Some(Err(Failure::release())));
    table.finish(102, Some(Err(Failure::new("no"))));
    table.finish(103, Some(Ok(Output::from("out"))));
    let message = table.message(now).unwrap();
    let reports = message.reports.unwrap();
    let kinds = (reports.completes.len(), reports.fails.len(), reports.releases.len());
    assert_eq!((kinds, message.credit), ((1, 1, 1), 3));
    assert!(table.message(now).is_none(), "all was said");
}

#[test]
fn what_had_no_answer_is_said_again_after_a_cut() {
    let (mut table, now) = connected(2, 0);
    table.begin(&lease(1, 60_000), now).unwrap();
    let lost = table.begin(&lease(2, 60_000), now).unwrap();
    table.finish(101, Some(Ok(Output::from("out"))));
    assert!(table.message(now).unwrap().reports.is_some());
    let mut held = table.reconnect();
    held.sort_by_key(|lease| lease.lease_id);
    assert_eq!(held.iter().map(|lease| lease.lease_id).collect::<Vec<_>>(), [101, 102]);
    let over = v1::ReportResult { code: "lease_lost".to_owned(), ..good(2, 0) };
    let welcome =
        v1::Welcome { now: SERVER_NOW, held: vec![good(1, 60_000), over], ..Default::default() };
    table.welcome(&welcome, &held, now, now);
    assert_eq!(lost.get(), LeaseStatus::Lost);
    let message = table.message(now).unwrap();
    assert_eq!(message.reports.unwrap().completes[0].output, b"out");
    assert_eq!(message.credit, 1, "a handler of a lost lease still has its slot");
}

#[test]
fn reports_wait_when_there_is_too_much_to_do() {
    let (mut table, now) = connected(1, 0);
    table.begin(&lease(1, 60_000), now).unwrap();
    table.finish(101, Some(Ok(Output::default())));
    let sequence = table.message(now).unwrap().reports.unwrap().sequence;
    let problem = refused("overloaded");
    table.results(v1::Results { sequence, problem, ..Default::default() }, now);
    assert!(table.message(now + ms(499)).is_none());
    assert_eq!(table.wake_at(), Some(now + ms(500)));
    assert_eq!(table.message(now + ms(500)).unwrap().reports.unwrap().completes.len(), 1);
}

#[test]
fn a_report_that_cannot_be_is_found_and_does_no_harm() {
    let (mut table, now) = connected(2, 0);
    for id in 1..=2 {
        table.begin(&lease(id, 60_000), now).unwrap();
        table.finish(100 + id, Some(Ok(Output::default())));
    }
    let sequence = table.message(now).unwrap().reports.unwrap().sequence;
    let problem = refused("invalid_request");
    table.results(v1::Results { sequence, problem: problem.clone(), ..Default::default() }, now);
    let one = table.message(now).unwrap().reports.unwrap();
    let two = table.message(now).unwrap().reports.unwrap();
    assert_eq!((one.completes.len(), two.completes.len()), (1, 1), "each goes alone");
    let sequence = one.sequence;
    table.results(v1::Results { sequence, problem, ..Default::default() }, now);
    let fails = table.message(now).unwrap().reports.unwrap().fails;
    assert_eq!((fails.len(), fails[0].retryable), (1, Some(false)));
}

#[test]
fn a_drain_gives_back_what_still_comes() {
    let (mut table, now) = connected(1, 0);
    table.begin(&lease(1, 60_000), now).unwrap();
    table.drain();
    assert!(table.message(now).unwrap().drain.is_some());
    assert!(table.begin(&lease(2, 60_000), now).is_none());
    let reports = table.message(now).unwrap().reports.unwrap();
    assert_eq!(reports.releases[0].task_id, 2);
    let results = vec![good(2, 0)];
    table.results(v1::Results { sequence: reports.sequence, results, problem: None }, now);
    assert!(!table.is_done(), "one still runs");
    table.finish(101, Some(Ok(Output::default())));
    let reports = table.message(now).unwrap().reports.unwrap();
    assert!(!table.is_done(), "and must be heard");
    let results = vec![good(1, 0)];
    table.results(v1::Results { sequence: reports.sequence, results, problem: None }, now);
    assert!(table.is_done());
}

#[test]
fn a_late_welcome_does_not_make_every_lease_seem_over() {
    // The server took five seconds to start.
    let sent_at = Instant::now();
    let now = sent_at + ms(5_000);
    let mut table = LeaseTable::new(1);
    table.reconnect();
    let welcome = v1::Welcome { now: SERVER_NOW, ..Default::default() };
    table.welcome(&welcome, &[], sent_at, now);
    let first = table.message(now).unwrap();
    let ping = first.ping.expect("a better clock is asked for together with the first work");
    table.pong(v1::Pong { sequence: ping.sequence, now: SERVER_NOW });
    let signal = table.begin(&lease(1, 2_000), now).unwrap();
    table.expire(now + ms(1_999));
    assert_eq!(signal.get(), LeaseStatus::Held);
}

#[test]
fn a_lease_that_seems_over_makes_the_clock_be_asked_for() {
    let (mut table, now) = connected(1, 5_000);
    let signal = table.begin(&lease(1, 2_000), now).unwrap();
    table.expire(now);
    let later = now + ms(20);
    let message = table.message(later).unwrap();
    assert_eq!(signal.get(), LeaseStatus::Lost);
    assert!(message.ping.is_some());
}

fn update(fraction: f64, checkpoint: &str) -> ProgressUpdate {
    let (fraction, checkpoint) = (Some(fraction), checkpoint.into());
    ProgressUpdate { fraction, checkpoint, message: None }
}

#[test]
fn what_a_handler_says_goes_out_with_a_heartbeat_and_not_too_often() {
    let (mut table, now) = connected(1, 0);
    table.begin(&lease(1, 60_000), now).unwrap();
    table.progress(101, update(0.1, "1"), now);
    let first = table.message(now).unwrap().reports.unwrap();
    assert_eq!(
        (first.heartbeats[0].progress, &first.heartbeats[0].checkpoint[..]),
        (Some(0.1), &b"1"[..])
    );
    table.progress(101, update(0.2, "2"), now + ms(1));
    table.progress(101, update(0.3, ""), now + ms(2));
    assert!(table.message(now + ms(199)).is_none());
    let second = table.message(now + ms(200)).unwrap().reports.unwrap();
    assert_eq!(
        (second.heartbeats[0].progress, &second.heartbeats[0].checkpoint[..]),
        (Some(0.3), &b"2"[..])
    );
    // The stream is cut before either was answered: the newer checkpoint is said again.
    table.reconnect();
    table.progress(101, update(0.4, ""), now + ms(400));
    let again = table.message(now + ms(400)).unwrap().reports.unwrap();
    assert_eq!(again.heartbeats[0].checkpoint, b"2");
}

#[test]
fn a_failure_takes_the_checkpoint_that_was_not_sent_yet() {
    let (mut table, now) = connected(2, 0);
    table.begin(&lease(1, 60_000), now).unwrap();
    table.begin(&lease(2, 60_000), now).unwrap();
    table.progress(101, update(0.1, "1"), now);
    table.progress(102, update(0.1, "2"), now);
    table.finish(101, Some(Err(Failure::new("no"))));
    table.finish(102, Some(Err(Failure::release_for(ms(50)).checkpoint("3"))));
    let reports = table.message(now).unwrap().reports.unwrap();
    assert_eq!(reports.fails[0].checkpoint, b"1");
    assert_eq!(
        (&reports.releases[0].checkpoint[..], reports.releases[0].delay_ms),
        (&b"3"[..], Some(50))
    );
}
