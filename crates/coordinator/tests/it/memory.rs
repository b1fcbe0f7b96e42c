//! New work is refused before memory runs out, and what makes room goes on.
//!
//! Proves P15.
#![allow(clippy::unwrap_used)]

use tenure_coordinator::request::GetStatus;
use tenure_coordinator::{Memory, Pool, Status};
use tenure_core::command::NewTask;
use tenure_record::terms::Payload;

use crate::support::House;
use crate::support::asks::{
    cancel, complete, get, heartbeat, lease, lease_ref, submit, submit_task, task, wait,
};
use tenure_code::Code;

const MIB: u64 = 1 << 20;

fn status(house: &mut House) -> Status {
    *house.tell(GetStatus).answer()
}

#[test]
fn new_work_is_refused_while_the_pools_hold_nine_tenths_of_the_budget() {
    let memory = Memory::new(64 * MIB);
    let mut house = House::within(memory.clone());
    house.tell(submit("mail"));
    house.tell(submit("mail"));
    house.tell(lease("anna", &["mail"], 0)).grants();
    let held = memory.pool(Pool::Subscribers).take(58 * MIB);
    let refused = house.tell(submit("mail")).refusal();
    assert_eq!(refused.code(), Code::MemoryFull);
    assert!(refused.to_string().contains("of 67108864 bytes of memory are in use"), "{refused}");
    assert!(house.tell(heartbeat(lease_ref(1, 1))).heard().unwrap().is_ok());
    assert!(house.tell(complete(lease_ref(1, 1))).heard().unwrap().is_ok());
    assert_eq!(house.tell(lease("anna", &["mail"], 0)).grants().len(), 1);
    assert!(house.tell(cancel(2)).heard().unwrap().is_ok());
    assert!(house.tell(get(1)).heard().unwrap().is_ok());
    drop(held);
    assert!(house.tell(submit("mail")).heard().unwrap().is_ok(), "it is over by itself");
}

#[test]
fn a_step_takes_no_more_new_work_once_it_has_filled_the_memory() {
    let memory = Memory::new(64 * MIB);
    let mut house = House::within(memory.clone());
    house.tell(submit("mail"));
    // What waits in the inbox counts until it is decided: 60 times this and what each needs beside.
    let room = 60 * (20_000 + 256) + 600_000;
    let _held = memory.pool(Pool::Subscribers).take(memory.full_at() - memory.used() - room);
    let large = || {
        let payload = Payload::parse("payload", vec![b'1'; 20_000]).unwrap();
        submit_task(NewTask { payload, ..task("mail") })
    };
    let asked: Vec<_> = (0..60).map(|_| house.ask(large())).collect();
    house.settle();
    let taken = asked.iter().filter(|probe| probe.heard().unwrap().is_ok()).count();
    // Payloads are counted by the block that holds them, which is 256 KiB: thirteen of them.
    assert!((17..=43).contains(&taken), "{taken} of 20,000 bytes fit into 600,000");
    assert_eq!(asked.last().unwrap().refusal().code(), Code::MemoryFull);
    assert!(status(&mut house).bytes.payloads >= taken as u64 * 20_000);
}

#[test]
fn those_who_are_gone_are_not_counted_as_waiting() {
    let memory = Memory::new(64 * MIB);
    let mut house = House::within(memory.clone());
    house.tell(submit("other"));
    let waiting: Vec<_> = (0..5).map(|_| house.tell(lease("anna", &["mail"], 60_000))).collect();
    let reader = house.tell(wait(1, 60_000));
    house.pass_ms(100);
    let seen = status(&mut house);
    assert_eq!((seen.parked_leases, seen.parked_readers), (5, 1));
    let parked = memory.pool(Pool::Parked).used();
    assert!(parked > 6 * 1_000, "{parked}");
    waiting[1..].iter().for_each(|probe| probe.leave());
    reader.leave();
    house.pass_ms(100);
    let seen = status(&mut house);
    assert_eq!((seen.parked_leases, seen.parked_readers), (1, 0));
    assert!(memory.pool(Pool::Parked).used() < parked / 4);
}
