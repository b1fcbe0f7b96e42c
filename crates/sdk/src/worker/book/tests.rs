//! What a worker believes, with a clock that is set by hand.

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

/// A book whose hello was sent `trip` before `now`.
fn book(slots: u32, trip: u64) -> (Book, Instant) {
    let sent_at = Instant::now();
    let mut book = Book::new(slots);
    assert!(book.reconnect().is_empty());
    let welcome = v1::Welcome { now: SERVER_NOW, ..Default::default() };
    book.welcome(&welcome, &[], sent_at, sent_at + ms(trip));
    assert_eq!(book.message(sent_at + ms(trip)).unwrap().credit, slots);
    (book, sent_at + ms(trip))
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
    let (mut book, now) = book(1, 200);
    let signal = book.begin(&lease(1, 1_000), now).unwrap();
    book.expire(now + ms(799));
    assert_eq!(signal.get(), Standing::Good);
    book.expire(now + ms(800));
    assert_eq!(signal.get(), Standing::Lost);
    book.finish(101, Some(Ok(Output::default())));
    let message = book.message(now + ms(801)).unwrap();
    assert!(message.reports.is_none(), "what comes of a lost lease is dropped");
    assert_eq!(message.credit, 1, "but its slot is free");
}

#[test]
fn heartbeats_come_three_times_in_a_lease_and_move_its_end() {
    let (mut book, now) = book(1, 0);
    let signal = book.begin(&lease(1, 900), now).unwrap();
    assert!(book.message(now + ms(299)).is_none());
    let message = book.message(now + ms(300)).unwrap();
    let reports = message.reports.unwrap();
    assert_eq!(reports.heartbeats, [v1::LeaseRef { task_id: 1, lease_id: 101 }]);
    book.pong(v1::Pong { sequence: message.ping.unwrap().sequence, now: SERVER_NOW + 300 });
    let results = vec![v1::ReportResult { cancel_requested: true, ..good(1, 1_200) }];
    let results = v1::Results { sequence: reports.sequence, results, problem: None };
    book.results(results, now + ms(310));
    assert_eq!(signal.get(), Standing::Canceled, "a heartbeat tells of a cancel");
    book.expire(now + ms(1_199));
    assert_eq!(signal.get(), Standing::Canceled);
    book.expire(now + ms(1_200));
    assert_eq!(signal.get(), Standing::Lost);
}

#[test]
fn reports_go_together_in_the_order_of_their_kinds() {
    let (mut book, now) = book(4, 0);
    for id in 1..=4 {
        book.begin(&lease(id, 60_000), now).unwrap();
    }
    book.finish(101, Some(Err(Failure::give_back())));
    book.finish(102, Some(Err(Failure::new("no"))));
    book.finish(103, Some(Ok(Output::from("out"))));
    let message = book.message(now).unwrap();
    let reports = message.reports.unwrap();
    let kinds = (reports.completes.len(), reports.fails.len(), reports.releases.len());
    assert_eq!((kinds, message.credit), ((1, 1, 1), 3));
    assert!(book.message(now).is_none(), "all was said");
}

#[test]
fn what_had_no_answer_is_said_again_after_a_cut() {
    let (mut book, now) = book(2, 0);
    book.begin(&lease(1, 60_000), now).unwrap();
    let lost = book.begin(&lease(2, 60_000), now).unwrap();
    book.finish(101, Some(Ok(Output::from("out"))));
    assert!(book.message(now).unwrap().reports.is_some());
    let mut held = book.reconnect();
    held.sort_by_key(|lease| lease.lease_id);
    assert_eq!(held.iter().map(|lease| lease.lease_id).collect::<Vec<_>>(), [101, 102]);
    let over = v1::ReportResult { code: "lease_lost".to_owned(), ..good(2, 0) };
    let welcome =
        v1::Welcome { now: SERVER_NOW, held: vec![good(1, 60_000), over], ..Default::default() };
    book.welcome(&welcome, &held, now, now);
    assert_eq!(lost.get(), Standing::Lost);
    let message = book.message(now).unwrap();
    assert_eq!(message.reports.unwrap().completes[0].output, b"out");
    assert_eq!(message.credit, 1, "a handler of a lost lease still has its slot");
}

#[test]
fn reports_wait_when_there_is_too_much_to_do() {
    let (mut book, now) = book(1, 0);
    book.begin(&lease(1, 60_000), now).unwrap();
    book.finish(101, Some(Ok(Output::default())));
    let sequence = book.message(now).unwrap().reports.unwrap().sequence;
    let problem = refused("overloaded");
    book.results(v1::Results { sequence, problem, ..Default::default() }, now);
    assert!(book.message(now + ms(499)).is_none());
    assert_eq!(book.wake_at(), Some(now + ms(500)));
    assert_eq!(book.message(now + ms(500)).unwrap().reports.unwrap().completes.len(), 1);
}

#[test]
fn a_report_that_cannot_be_is_found_and_does_no_harm() {
    let (mut book, now) = book(2, 0);
    for id in 1..=2 {
        book.begin(&lease(id, 60_000), now).unwrap();
        book.finish(100 + id, Some(Ok(Output::default())));
    }
    let sequence = book.message(now).unwrap().reports.unwrap().sequence;
    let problem = refused("invalid_request");
    book.results(v1::Results { sequence, problem: problem.clone(), ..Default::default() }, now);
    let one = book.message(now).unwrap().reports.unwrap();
    let two = book.message(now).unwrap().reports.unwrap();
    assert_eq!((one.completes.len(), two.completes.len()), (1, 1), "each goes alone");
    let sequence = one.sequence;
    book.results(v1::Results { sequence, problem, ..Default::default() }, now);
    let fails = book.message(now).unwrap().reports.unwrap().fails;
    assert_eq!((fails.len(), fails[0].retryable), (1, Some(false)));
}

#[test]
fn a_drain_gives_back_what_still_comes() {
    let (mut book, now) = book(1, 0);
    book.begin(&lease(1, 60_000), now).unwrap();
    book.drain();
    assert!(book.message(now).unwrap().drain.is_some());
    assert!(book.begin(&lease(2, 60_000), now).is_none());
    let reports = book.message(now).unwrap().reports.unwrap();
    assert_eq!(reports.releases[0].task_id, 2);
    let results = vec![good(2, 0)];
    book.results(v1::Results { sequence: reports.sequence, results, problem: None }, now);
    assert!(!book.is_done(), "one still runs");
    book.finish(101, Some(Ok(Output::default())));
    let reports = book.message(now).unwrap().reports.unwrap();
    assert!(!book.is_done(), "and must be heard");
    let results = vec![good(1, 0)];
    book.results(v1::Results { sequence: reports.sequence, results, problem: None }, now);
    assert!(book.is_done());
}

#[test]
fn a_late_welcome_does_not_make_every_lease_seem_over() {
    // The server took five seconds to start.
    let sent_at = Instant::now();
    let now = sent_at + ms(5_000);
    let mut book = Book::new(1);
    book.reconnect();
    let welcome = v1::Welcome { now: SERVER_NOW, ..Default::default() };
    book.welcome(&welcome, &[], sent_at, now);
    let first = book.message(now).unwrap();
    let ping = first.ping.expect("a better clock is asked for together with the first work");
    book.pong(v1::Pong { sequence: ping.sequence, now: SERVER_NOW });
    let signal = book.begin(&lease(1, 2_000), now).unwrap();
    book.expire(now + ms(1_999));
    assert_eq!(signal.get(), Standing::Good);
}

#[test]
fn a_lease_that_seems_over_makes_the_clock_be_asked_for() {
    let (mut book, now) = book(1, 5_000);
    let signal = book.begin(&lease(1, 2_000), now).unwrap();
    book.expire(now);
    let later = now + ms(20);
    let message = book.message(later).unwrap();
    assert_eq!(signal.get(), Standing::Lost);
    assert!(message.ping.is_some());
}
