//! Workflows and runs from a shell: what people see, what programs see, and exit codes.

use serde_json::{Value, json};

use crate::client::tenure::{Ran, command, ended, redacted, tenure, tenure_with};
use crate::server::Server;

const ORDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/workflows/order.yaml");
const INPUT: &str = r#"{"order": "A-1", "amount": 1200, "to": "Lisbon"}"#;

/// A server that knows the order, and a run that waits for its first task.
fn begun(name: &str) -> Server {
    let server = Server::start(name);
    assert_eq!(tenure(&server, &["workflow", "put", ORDER]).good(), "order is now version 1\n");
    let args = ["run", "start", "order", "--input", INPUT, "--key", "A-1", "--tag", "customer=ada"];
    assert_eq!(tenure(&server, &args).good(), "1\n");
    server
}

/// Does the next task as a worker that needs no program would.
fn work(server: &Server, output: &Value) {
    let (_, leases) = server.post("/v1/leases", &json!({"worker": "anna", "queues": ["samples"]}));
    let lease = &leases["leases"][0];
    let path = format!("/v1/tasks/{}/complete", lease["task_id"]);
    let (status, task) =
        server.post(&path, &json!({"lease_id": lease["lease_id"], "output": output}));
    assert_eq!(status, 200, "{task}");
}

/// Text with `[clock]` in place of times of the day, and `[when]` in place of moments.
fn timeless(text: &str) -> String {
    let is_clock = |word: &str| {
        word.len() == 12
            && word.chars().zip("00:00:00.000".chars()).all(|(found, form)| {
                if form == '0' { found.is_ascii_digit() } else { found == form }
            })
    };
    let word = |word: &str| if is_clock(word) { "[clock]".to_owned() } else { word.to_owned() };
    let line = |line: &str| match line.split_once(", began ") {
        Some((state, _)) => format!("{state}, began [when]"),
        None => line.split(' ').map(word).collect::<Vec<_>>().join(" "),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// Moments of a run that lie ahead stand in the middle of a sentence.
fn without_moments(text: &str) -> String {
    let line = |line: &str| match line.split_once(" has time until ") {
        Some((token, _)) => format!("{token} has time until [moment]"),
        None => line.to_owned(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn people_see_runs() {
    let server = Server::start("runs-none");
    let show = |server: &Server, args: &[&str]| redacted(&tenure(server, args).good());
    assert_eq!(show(&server, &["run", "list"]), "no such runs");
    let none = "no workflows yet; `tenure workflow put FILE` registers one";
    assert_eq!(show(&server, &["workflow", "list"]), none);
    let server = begun("runs-tables");
    assert_eq!(show(&server, &["workflow", "put", ORDER]), "order is, as before, version 1");
    insta::assert_snapshot!("workflow-list", show(&server, &["workflow", "list"]));
    let drawn = tenure(&server, &["workflow", "get", "order"]).good();
    insta::assert_snapshot!("workflow-get", drawn);
    work(&server, &json!("reserve"));
    insta::assert_snapshot!("run-list", show(&server, &["run", "list"]));
    insta::assert_snapshot!("run-get", show(&server, &["run", "get", "1"]));
    insta::assert_snapshot!("run-tokens", show(&server, &["run", "tokens", "1"]));
    let graph = tenure(&server, &["run", "graph", "1"]).good();
    insta::assert_snapshot!("run-graph", timeless(&graph));
    let history = tenure(&server, &["run", "history", "1"]).good();
    insta::assert_snapshot!("run-history", without_moments(&timeless(&history)));
    let approve =
        ["run", "signal", "1", "approval", "--payload", r#"{"approved": true, "by": "ada"}"#];
    assert_eq!(show(&server, &approve), "token 2 of run 1 has got approval");
    assert_eq!(show(&server, &["run", "cancel", "1"]), "run 1 is CANCELED");
    assert_eq!(show(&server, &["run", "cancel", "1"]), "run 1 is CANCELED");
}

/// The lines of edges and the boxes of nodes that an SVG drawing has.
fn drawn(svg: &str, begin: &str) -> Vec<String> {
    let after = |line: &str| Some(line.strip_prefix(begin)?.split_once('"')?.0.to_owned());
    svg.lines().filter_map(after).collect()
}

#[test]
fn the_graph_over_http_is_what_the_command_draws() {
    let server = begun("runs-graph");
    work(&server, &json!("reserve"));
    let (status, graph) = server.get("/v1/runs/1/graph");
    assert_eq!((status, &graph["complete"], &graph["tokens"]), (200, &json!(true), &json!(2)));
    let (nodes, edges) = (graph["nodes"].as_array().unwrap(), graph["edges"].as_array().unwrap());
    let svg = tenure(&server, &["run", "graph", "1", "--svg"]).good();
    let paths: Vec<_> = edges.iter().map(|edge| edge["path"].as_str().unwrap()).collect();
    assert_eq!(drawn(&svg, "<path d=\""), paths);
    let text = tenure(&server, &["run", "graph", "1"]).good();
    for node in nodes {
        let name = node["name"].as_str().unwrap();
        let middle = format!("x=\"{:.1}\"", node["x"].as_f64().unwrap());
        let is_name = |line: &&str| line.contains(&format!(">{name}</text>"));
        assert!(svg.lines().find(is_name).unwrap().contains(&middle), "{node}");
        assert!(text.lines().any(|line| line.split_whitespace().nth(1) == Some(name)), "{node}");
    }
    let node = |name: &str| nodes.iter().find(|node| node["name"] == name).unwrap();
    assert_eq!(node("reserve")["counts"], json!({"completed": 1}));
    assert_eq!(node("approval")["state"], "waiting_for_signal");
    assert_eq!((&node("refund")["state"], &node("refund")["counts"]), (&Value::Null, &json!({})));
    let by_key = server.get("/v1/workflows/order/runs/by-key/A-1/graph");
    assert_eq!(by_key, (200, graph.clone()));
    assert_eq!(server.get("/v1/runs/99/graph").0, 404);
}

#[test]
fn programs_see_what_the_http_api_says() {
    let server = begun("runs-json");
    work(&server, &json!("reserve"));
    let (_, history) = server.get("/v1/runs/1/history");
    let lsn = history["items"][0]["lsn"].to_string();
    let redecide = format!("/v1/runs/1/redecide?lsn={lsn}");
    for (args, path) in [
        (&["run", "get", "1"][..], "/v1/runs/1"),
        (&["run", "list"], "/v1/runs"),
        (&["run", "list", "--state", "waiting"], "/v1/runs?state=WAITING"),
        (&["run", "list", "--state", "timed_out"], "/v1/runs?state=TIMED_OUT"),
        (&["run", "list", "--workflow", "order"], "/v1/runs?workflow=order"),
        (&["run", "list", "--tag", "customer=ada"], "/v1/runs?tag=customer:ada"),
        (&["run", "tokens", "1"], "/v1/runs/1/tokens"),
        (&["run", "tokens", "1", "--limit", "1"], "/v1/runs/1/tokens?limit=1"),
        (&["run", "history", "1"], "/v1/runs/1/history"),
        (&["run", "redecide", "1", &lsn], &redecide),
        (&["workflow", "list"], "/v1/workflows"),
        (&["workflow", "get", "order"], "/v1/workflows/order"),
        (&["workflow", "get", "order", "--version", "1"], "/v1/workflows/order?version=1"),
    ] {
        let args: Vec<_> = args.iter().copied().chain(["-o", "json"]).collect();
        let ours = tenure(&server, &args).good();
        assert_eq!(ours.trim_end(), server.text(path).trim_end(), "{args:?}");
    }
    let known = ["run", "start", "order", "--input", INPUT, "--key", "A-1", "-o", "json"];
    let known: Vec<_> = known.into_iter().chain(["--tag", "customer=ada"]).collect();
    let known: Value = serde_json::from_str(&tenure(&server, &known).good()).unwrap();
    assert_eq!(known, server.get("/v1/runs/1").1);
    let put = tenure(&server, &["workflow", "put", ORDER, "-o", "json"]).good();
    assert_eq!(put, "{\"name\":\"order\",\"version\":1,\"existed\":true}\n");
    let signal =
        ["run", "signal", "1", "approval", "--payload", "-", "--signal-id", "s", "-o", "json"];
    let payload = r#"{"approved": true, "by": "ada"}"#;
    let signaled: Value =
        serde_json::from_str(&tenure_with(&server, &signal, payload).good()).unwrap();
    let given = json!({
        "run_id": 1, "signal": "approval", "outcome": "given", "token": 2, "started": false,
    });
    assert_eq!(signaled, given);
    let again: Value =
        serde_json::from_str(&tenure_with(&server, &signal, payload).good()).unwrap();
    assert_eq!(again["outcome"], "known");
    let canceled = tenure(&server, &["run", "cancel", "1", "-o", "json"]).good();
    assert_eq!(canceled.trim_end(), server.text("/v1/runs/1").trim_end());
}

#[test]
fn what_the_server_refuses_is_exit_code_1() {
    let server = begun("runs-refused");
    for (args, word) in [
        (&["run", "get", "99"][..], "not_found"),
        (&["run", "start", "nothing"], "not_found"),
        (&["run", "start", "order", "--version", "7", "--input", INPUT], "not_found"),
        (&["run", "start", "order", "--input", "{}"], "invalid_request"),
        (&["run", "signal", "1", "nobody"], "not_found"),
        (&["run", "signal", "1", "approval", "--payload", "{}"], "invalid_request"),
        (&["workflow", "get", "nothing"], "not_found"),
        (&["run", "redecide", "1", "999999"], "not_found"),
        (&["run", "redecide", "1", "1"], "invalid_request"),
        (&["run", "redecide", "99", "2"], "not_found"),
    ] {
        let Ran { code, stderr, .. } = tenure(&server, args);
        assert_eq!(code, 1, "{args:?}: {stderr}");
        assert!(stderr.contains(word), "{args:?}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
    }
}

#[test]
fn a_faulty_definition_is_refused_with_all_its_faults() {
    let server = Server::start("runs-faulty");
    let faulty =
        "workflow: w\ninitial_node: a\nnodes:\n  - {ref: a, kind: pas}\n  - {ref: b, kind: pass}\n";
    let Ran { code, stdout, stderr } = tenure_with(&server, &["workflow", "put", "-"], faulty);
    assert_eq!((code, stdout.lines().count()), (1, 2), "{stdout}");
    assert!(stdout.starts_with("-:4:14: /nodes/0/kind: \"pas\" is none of"), "{stdout}");
    assert_eq!(stderr, "tenure: the definition has 2 faults\n");
    assert_eq!(server.get("/v1/workflows").1["items"], json!([]));
}

#[test]
fn wrong_usage_of_runs_is_2_and_asks_no_server() {
    for args in [
        &["run", "start", "order", "--input", "{"][..],
        &["run", "start", "order", "--input", "@/does/not/exist"],
        &["run", "start", "order", "--tag", "a=b", "--tag", "a=c"],
        &["run", "signal", "1", "x", "--payload", "hello"],
        &["run", "graph", "1", "--dot", "--svg"],
        &["run", "graph", "1", "-o", "json"],
        &["run", "get", "one"],
        &["workflow", "put", "/does/not/exist"],
    ] {
        let mut call = command("127.0.0.1:1", args);
        let call = call.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        let Ran { code, stderr, .. } = ended(call.spawn().unwrap());
        assert_eq!(code, 2, "{args:?}: {stderr}");
    }
}

#[test]
fn a_run_that_was_waited_for_and_failed_is_1() {
    let server = Server::start("runs-failed");
    let yaml = "workflow: w\ninitial_node: a\nnodes:\n  - {ref: a, kind: pass, output_mapping: \
                {context.x: input.missing}}\n";
    assert_eq!(tenure_with(&server, &["workflow", "put", "-"], yaml).code, 0);
    let Ran { code, stdout, stderr } = tenure(&server, &["run", "start", "w", "--wait"]);
    assert_eq!((code, stdout.as_str()), (1, ""), "{stderr}");
    assert!(stderr.starts_with("tenure: run 1 is FAILED: MAPPING_ERROR at a: "), "{stderr}");
}

#[test]
fn a_record_is_decided_again_in_the_same_way() {
    let server = begun("runs-redecide");
    work(&server, &json!("reserve"));
    let (_, history) = server.get("/v1/runs/1/history");
    for item in history["items"].as_array().unwrap() {
        let lsn = item["lsn"].to_string();
        let said = tenure(&server, &["run", "redecide", "1", &lsn]).good();
        assert!(said.contains("today's rules decide the same:"), "{said}");
        assert!(!said.contains("  - ") && !said.contains("  + "), "{said}");
        let (_, found) = server.get(&format!("/v1/runs/1/redecide?lsn={lsn}"));
        let recorded: Vec<_> = found["decisions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["recorded"].clone())
            .collect();
        assert_eq!(json!(recorded), item["decisions"], "LSN {lsn}");
    }
    // The grant of its task is no decision about the run.
    let Ran { code, stderr, .. } = tenure(&server, &["run", "redecide", "1", "3"]);
    assert!(code == 1 && stderr.contains("LeaseGranted"), "{stderr}");
    let (status, problem) = server.get("/v1/runs/1/redecide");
    assert_eq!((status, &problem["code"]), (400, &json!("invalid_request")));
}
