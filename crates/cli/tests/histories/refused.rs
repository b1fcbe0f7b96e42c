//! The test of the test: histories that no good server can give are refused, and those that one can
//! give are not.

use crate::linear::check;
use crate::register::{Answer, Call, Deed, LEASE_US, Shown};

fn call(from_us: u64, until_us: u64, deed: Deed, answer: Answer) -> Call {
    Call { from_us, until_us, deed, answer }
}

fn shown(state: &str, attempt: u64) -> Answer {
    let lease = (state == "LEASED").then_some(attempt);
    let state = state.to_owned();
    let (failures, expiries, cancel_requested) = (0, 0, false);
    Answer::Shown(Shown { state, attempt, failures, expiries, cancel_requested, lease })
}

fn expired(mut answer: Answer, count: u64) -> Answer {
    if let Answer::Shown(shown) = &mut answer {
        shown.expiries = count;
    }
    answer
}

fn lost() -> Answer {
    Answer::Refused("lease_lost".to_owned())
}

fn submit() -> Call {
    call(0, 10, Deed::Submit, shown("WAITING", 0))
}

fn grant(from_us: u64, lease: u64) -> Call {
    call(from_us, from_us + 10, Deed::Grant { lease, attempt: lease }, Answer::Granted)
}

fn read(from_us: u64, answer: Answer) -> Call {
    call(from_us, from_us + 10, Deed::Read, answer)
}

fn complete(from_us: u64, lease: u64, answer: Answer) -> Call {
    call(from_us, from_us + 10, Deed::Complete { lease }, answer)
}

/// None of them may pass.
fn check_refused(broken: Vec<(&str, Vec<Call>)>) {
    for (what, calls) in broken {
        assert!(check(&calls).is_err(), "{what} was not noticed");
    }
}

#[test]
fn histories_that_lose_or_undo_something_are_refused() {
    let done = || shown("COMPLETED", 1);
    check_refused(vec![
        (
            "P1: an acknowledged submit is gone",
            vec![submit(), read(20, Answer::Refused("not_found".to_owned()))],
        ),
        (
            "P1: an acknowledged completion is gone",
            vec![submit(), grant(20, 1), complete(40, 1, done()), read(60, shown("LEASED", 1))],
        ),
        (
            "P2: what was read is undone",
            vec![
                submit(),
                grant(20, 1),
                call(40, 50, Deed::Complete { lease: 1 }, Answer::Nothing),
                read(60, done()),
                read(80, shown("LEASED", 1)),
            ],
        ),
        (
            "P3: what got no answer happens after its server's death",
            vec![
                submit(),
                grant(20, 1),
                call(40, 50, Deed::Complete { lease: 1 }, Answer::Nothing),
                read(60, shown("LEASED", 1)),
                read(80, done()),
            ],
        ),
    ]);
}

#[test]
fn histories_that_break_a_law_of_leases_are_refused() {
    let done = || shown("COMPLETED", 1);
    let late = 20 + 2 * LEASE_US;
    check_refused(vec![
        ("P4: two hold it at once", vec![submit(), grant(20, 1), grant(40, 2)]),
        (
            "P4: a lease id is given again",
            vec![
                submit(),
                grant(20, 1),
                call(late, late + 10, Deed::Grant { lease: 1, attempt: 2 }, Answer::Granted),
            ],
        ),
        (
            "P5: a zombie completes",
            vec![
                submit(),
                grant(20, 1),
                grant(late, 2),
                complete(late + 20, 1, shown("COMPLETED", 2)),
            ],
        ),
        (
            "P5: a zombie's heartbeat",
            vec![
                submit(),
                grant(20, 1),
                grant(late, 2),
                call(
                    late + 20,
                    late + 30,
                    Deed::Heartbeat { lease: 1 },
                    Answer::Extended { cancel_requested: false },
                ),
            ],
        ),
        (
            "P5: late is lost, though nobody else has it",
            vec![submit(), grant(20, 1), complete(late, 1, done())],
        ),
        (
            "P7: a lease is over before its time",
            vec![submit(), grant(20, 1), complete(40, 1, lost())],
        ),
        (
            "P7: a lease that was extended is over before its time",
            vec![
                submit(),
                grant(20, 1),
                call(
                    LEASE_US / 2,
                    LEASE_US / 2 + 10,
                    Deed::Heartbeat { lease: 1 },
                    Answer::Extended { cancel_requested: false },
                ),
                grant(LEASE_US + 100, 2),
            ],
        ),
        (
            "P9: a read does not see what was acknowledged before",
            vec![submit(), grant(20, 1), complete(40, 1, done()), read(60, shown("WAITING", 1))],
        ),
        (
            "P6: two completions count",
            vec![submit(), grant(20, 1), complete(40, 1, done()), grant(60, 2)],
        ),
        (
            "P18: a poison task is offered again",
            vec![submit(), grant(20, 1), grant(late, 2), grant(2 * late, 3), grant(3 * late, 4)],
        ),
        (
            "a holder that was told that it is over completes after all",
            vec![
                submit(),
                grant(20, 1),
                complete(20 + LEASE_US, 1, lost()),
                complete(60 + LEASE_US, 1, done()),
            ],
        ),
        (
            "a canceled task runs",
            vec![submit(), call(20, 30, Deed::Cancel, shown("CANCELED", 0)), grant(40, 1)],
        ),
    ]);
}

#[test]
fn histories_that_keep_every_promise_are_not() {
    let late = 20 + 2 * LEASE_US;
    let unknown = |deed| call(40, 50, deed, Answer::Nothing);
    let good: Vec<(&str, Vec<Call>)> = vec![
        (
            "what got no answer did not happen",
            vec![
                submit(),
                grant(20, 1),
                unknown(Deed::Complete { lease: 1 }),
                read(60, shown("LEASED", 1)),
            ],
        ),
        (
            "what got no answer happened",
            vec![
                submit(),
                grant(20, 1),
                unknown(Deed::Complete { lease: 1 }),
                read(60, shown("COMPLETED", 1)),
            ],
        ),
        (
            "the same report again gets the same answer",
            vec![
                submit(),
                grant(20, 1),
                complete(40, 1, shown("COMPLETED", 1)),
                complete(60, 1, shown("COMPLETED", 1)),
            ],
        ),
        (
            "calls that overlap took effect the other way round",
            vec![
                submit(),
                grant(20, 1),
                call(40, 100, Deed::Complete { lease: 1 }, shown("COMPLETED", 1)),
                call(50, 90, Deed::Read, shown("LEASED", 1)),
            ],
        ),
        (
            "a lease runs out and is given again",
            vec![
                submit(),
                grant(20, 1),
                grant(late, 2),
                complete(late + 20, 1, lost()),
                read(late + 40, expired(shown("LEASED", 2), 1)),
            ],
        ),
        (
            "it was given to somebody who never heard of it",
            vec![
                submit(),
                unknown(Deed::GrantUnheard),
                read(60, shown("LEASED", 1)),
                call(late, late + 10, Deed::Grant { lease: 2, attempt: 2 }, Answer::Granted),
            ],
        ),
        (
            "it is dead after its last lease",
            vec![
                submit(),
                grant(20, 1),
                grant(late, 2),
                grant(2 * late, 3),
                read(3 * late, expired(shown("DEAD", 3), 3)),
            ],
        ),
    ];
    for (what, calls) in good {
        check(&calls).unwrap_or_else(|why| panic!("{what}: {why}"));
    }
}
