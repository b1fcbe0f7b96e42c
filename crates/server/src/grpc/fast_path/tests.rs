//! The hot path says what the outward model says.

use tenure_api as api;
use tenure_coordinator::request::{Lease, SubmitTask};
use tenure_coordinator::{Engine, Pending, Request};

use super::*;
use crate::wire::{flow, request};

const FLOW: &str = "
workflow: order
initial_node: charge
nodes:
  - {ref: charge, kind: task, task: {queue: mail}}
";

fn done<R: Request>(pending: Pending<R>) -> R::Response {
    pending.wait().unwrap()
}

/// Leases everything, and checks what each lease says.
fn leased(tenure: &Engine) -> Vec<Grant> {
    let queues = vec!["mail".to_owned()];
    let wanted = api::LeaseRequest {
        worker: "anna".to_owned(),
        queues,
        max: Some(100),
        ..api::LeaseRequest::default()
    };
    let (request, wait_ms) = request::lease(&wanted).unwrap();
    let grants = done(tenure.ask(Lease { request, wait_ms }));
    for grant in &grants {
        let direct = lease(grant.clone());
        assert_eq!(direct.log_expires_at, grant.expires_at.0);
        assert_eq!(api::Lease::from(direct), show::worker::lease(grant.clone()));
    }
    grants
}

/// Hands in reports, and checks what became of each.
fn reported(tenure: &Engine, said: v1::Reports) -> Vec<api::ReportResult> {
    let (parsed, _) = reports(said, None).unwrap();
    let results = done(tenure.ask(parsed));
    let shown = |reported: &Reported| {
        let shown = show::worker::result(reported);
        assert_eq!(api::ReportResult::from(result(reported)), shown);
        shown
    };
    results.iter().map(shown).collect()
}

#[test]
fn leases_and_results_are_those_of_the_outward_model() {
    let folder = std::env::temp_dir().join(format!("tenure-fast-path-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    let tenure = Engine::open(&folder).unwrap();
    let definition = api::Definition {
        text: FLOW.into(),
        format: api::DefinitionFormat::Yaml,
        ..api::Definition::default()
    };
    done(tenure.ask(flow::definition(&definition).unwrap()));
    done(tenure.ask(flow::start("order", api::NewRun::default()).unwrap()));
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    for payload in ["", "[1]", &format!("{:?}", "x".repeat(100_000))] {
        let task = api::NewTask {
            queue: Some("mail".to_owned()),
            name: Some("send".to_owned()),
            payload: payload.into(),
            traceparent: Some(parent.to_owned()),
            tags: [("a".to_owned(), "b".to_owned())].into(),
            ..api::NewTask::default()
        };
        done(tenure.ask(SubmitTask(request::new_task(task).unwrap())));
    }
    let grants = leased(&tenure);
    assert_eq!(grants.len(), 4);
    assert!(grants.iter().any(|grant| grant.run.is_some()));
    let (task_id, lease_id) = (grants[1].task_id.0, grants[1].lease_id.0);
    let checkpoint = b"[7]".to_vec();
    let beat = v1::HeartbeatReport { task_id, lease_id, checkpoint, ..Default::default() };
    let release = v1::ReleaseReport { task_id, lease_id, ..Default::default() };
    let stale = v1::CompleteReport { task_id, lease_id: 1 << 40, ..Default::default() };
    let other = &grants[2];
    let complete = v1::CompleteReport {
        task_id: other.task_id.0,
        lease_id: other.lease_id.0,
        ..Default::default()
    };
    let results = reported(
        &tenure,
        v1::Reports {
            heartbeats: vec![beat],
            completes: vec![stale, complete],
            releases: vec![release],
            ..Default::default()
        },
    );
    let oks: Vec<_> = results.iter().map(|result| result.ok).collect();
    assert_eq!(oks, [true, false, true, true]);
    assert!(results[0].expires_at.is_some() && results[1].message.is_some());
    let again = leased(&tenure);
    assert!(again.iter().any(|grant| grant.checkpoint.is_some()));
    drop(tenure);
    std::fs::remove_dir_all(&folder).unwrap();
}
