//! Requests: whatever bytes come to a door, over HTTP or gRPC, they are refused with a code and a
//! sentence, or they are a command that the rules decide on and whose record can be read back.

use tenure_core::command::Command;
use tenure_core::{Draft, State, Verdict, apply, decide};
use tenure_record::codec::{decode, encode};
use tenure_record::event::Record;
use tenure_record::time::{Now, Timestamp};
use tenure_server::fuzz::{Asked, GRPC, HTTP};

/// A sentence, not a story.
const DETAIL_BYTES_MAX: usize = 4_096;
const NOW: Now = Now { log: Timestamp(1_700_000_000_000), wall: Timestamp(1_700_000_000_000) };

/// The first byte says which door.
pub(crate) fn run(bytes: &[u8]) {
    let Some((door, body)) = bytes.split_first() else { return };
    let doors = HTTP.iter().chain(&GRPC);
    let (name, read) = doors.cycle().nth(usize::from(*door)).expect("there are doors");
    check(name, read(&body.to_vec().into()));
}

fn check(door: &str, asked: Asked) {
    match asked {
        Ok(None) => {}
        Ok(Some(command)) => play(&mut leased(), &command),
        Err(problem) => {
            let is_theirs = problem.status().is_client_error();
            assert!(is_theirs, "{door}: {} is no refusal", problem.code);
            let size = problem.detail.len();
            assert!((1..=DETAIL_BYTES_MAX).contains(&size), "{door}: {size} bytes of detail");
        }
    }
}

/// A state with one task, which has one lease.
fn leased() -> State {
    let mut state = State::new(0);
    let (submit, lease) = (&HTTP[0].1, &HTTP[2].1);
    let worker = br#"{"worker": "w", "queues": ["default"]}"#.to_vec();
    for asked in [submit(&b"{}".to_vec().into()), lease(&worker.into())] {
        let command = asked.ok().flatten().expect("these are good requests");
        play(&mut state, &command);
    }
    state
}

fn play(state: &mut State, command: &Command) {
    let verdict = decide(&mut Draft::new(state), command, NOW, 7);
    let Ok(Verdict::Append(event, _)) = verdict else { return };
    let record = Record { lsn: state.last_lsn().next(), at: NOW.log, wall: NOW.wall, event };
    let mut written = Vec::new();
    encode(&record, &mut written);
    assert_eq!(decode(&written).expect("a record can be read"), record, "it reads back otherwise");
    apply(state, &record);
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let bodies: [&[u8]; 14] = [
        br#"{"queue":"q","payload":{"a":[1,2.5e3,null]},"priority":-7,"delay_ms":5,"max_failures":2,"backoff":{"kind":"linear","initial_ms":1,"max_ms":9,"jitter":0.5},"lease_ms":50,"total_timeout_ms":9,"key":"k","tags":{"a":"b"}}"#,
        br#"{"tasks":[{},{"run_at":"2026-01-01T00:00:00.000Z"}]}"#,
        br#"{"worker":"w","queues":["default"],"max":9,"wait_ms":7,"lease_ms":60}"#,
        br#"{"lease_id":1,"progress":0.5,"message":"m"}"#,
        br#"{"lease_id":1,"output":[1],"artifacts":[{"name":"a/b.txt","media_type":"text/plain","text":"x"}]}"#,
        br#"{"lease_id":1,"reason":"r","code":"C","retryable":true,"retry_after_ms":5}"#,
        br#"{"lease_id":1}"#,
        br#"{"heartbeat":[{"task_id":1,"lease_id":1}],"complete":[{"task_id":1,"lease_id":1,"output":1}],"fail":[{"task_id":1,"lease_id":1,"reason":"r"}],"release":[{"task_id":1,"lease_id":1}]}"#,
        br#"{"grace_ms":5}"#,
        br#"{"retention_ms":null}"#,
        br#"{"name":"n","queues":["q"],"slots":2,"labels":{"a":"b"},"draining":false}"#,
        br#"{"input":{"a":1},"key":"k","version":1,"tags":{"a":"b"}}"#,
        br#"{"payload":{"a":1},"correlation":"c","signal_id":"s"}"#,
        b"17:9",
    ];
    let http = (0..).zip(bodies).map(|(door, body): (u8, _)| [&[door][..], body].concat());
    // A message with a text, numbers and a message inside it, for each door of gRPC.
    let message = [10, 1, b'q', 18, 2, b'{', b'}', 24, 2, 66, 4, 8, 1, 16, 5];
    let first = HTTP.len() as u8;
    let grpc = (0..GRPC.len() as u8).map(|door| [&[first + door][..], &message].concat());
    http.chain(grpc).collect()
}
