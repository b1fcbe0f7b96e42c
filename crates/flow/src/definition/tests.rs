//! A definition as it is written, and every way in which one can be wrong.

use super::*;
use crate::limits::{FAULTS_MAX, NODES_MAX};

const SAMPLE: &str = include_str!("../../tests/samples/tender_review.yaml");

fn sample() -> Definition {
    Definition::from_yaml(SAMPLE).unwrap_or_else(|faults| panic!("{faults:#?}"))
}

/// Three nodes in a line with a fan-out; `$` marks what a row replaces or adds.
const BASE: &str = "
workflow: w
initial_node: a
$top
nodes:
  - {ref: a, kind: pass$a}
  - {ref: b, kind: task, task: {queue: q$task}$b}
  - {ref: c, kind: pass$c}
$nodes
transitions:
  - {ref: fan, from: a, to: b, spawn_count: 3$fan}
  - {ref: meet, from: b, to: c, synchronization: {joins_transition: fan$join}$meet}
$transitions
";

fn with(slot: &str, text: &str) -> String {
    let filled = BASE.replace(&format!("${slot}"), text);
    let slots =
        ["$top", "$nodes", "$transitions", "$task", "$fan", "$join", "$meet", "$a", "$b", "$c"];
    slots.iter().fold(filled, |text, slot| text.replace(slot, ""))
}

fn faults(text: &str) -> Vec<Fault> {
    Definition::from_yaml(text).err().unwrap_or_default()
}

/// What is put where, and the fault that it makes: its place and its code.
const ROWS: &[(&str, &str, &str, FaultCode)] = &[
    ("top", "timeout_ms: 0", "/timeout_ms", FaultCode::BadValue),
    ("top", "timeout_ms: soon", "/timeout_ms", FaultCode::WrongType),
    ("top", "on_timeout: explode", "/on_timeout", FaultCode::BadValue),
    ("top", "on_no_match: maybe", "/on_no_match", FaultCode::BadValue),
    ("top", "limits: {max_tokens: 0}", "/limits/max_tokens", FaultCode::BadValue),
    ("top", "limits: {max_token: 1}", "/limits/max_token", FaultCode::UnknownField),
    ("top", "limits: 3", "/limits", FaultCode::WrongType),
    ("top", "artifacts: {commit_on: never}", "/artifacts/commit_on", FaultCode::BadValue),
    ("top", "input_schema: {type: strange}", "/input_schema/type", FaultCode::BadSchema),
    ("top", "output_schema: [1]", "/output_schema", FaultCode::BadSchema),
    ("top", "context_schema: {$ref: other.json}", "/context_schema/$ref", FaultCode::BadSchema),
    ("top", "timout_ms: 5", "/timout_ms", FaultCode::UnknownField),
    ("top", "output_mapping: {x: 'branch.index'}", "/output_mapping/x", FaultCode::UnknownRoot),
    ("top", "output_mapping: {x: 'result.a'}", "/output_mapping/x", FaultCode::UnknownRoot),
    ("top", "output_mapping: {x: 'outputs.d'}", "/output_mapping/x", FaultCode::UnknownRef),
    ("top", "output_mapping: {x..y: context.a}", "/output_mapping/x..y", FaultCode::BadTarget),
    ("top", "output_mapping: {x: 5}", "/output_mapping/x", FaultCode::WrongType),
    ("top", "output_mapping: {x: 'now()'}", "/output_mapping/x", FaultCode::UnknownFunction),
    ("top", "output_mapping: {x: 'run.name'}", "/output_mapping/x", FaultCode::UnknownRoot),
    ("a", ", task: {queue: q}", "/nodes/0/task", FaultCode::FieldOfOtherKind),
    ("a", ", retry: {}", "/nodes/0/retry", FaultCode::FieldOfOtherKind),
    ("a", ", timeout_ms: 5", "/nodes/0/timeout_ms", FaultCode::FieldOfOtherKind),
    ("a", ", attempt_timeout_ms: 5", "/nodes/0/attempt_timeout_ms", FaultCode::FieldOfOtherKind),
    ("b", ", attempt_timeout_ms: 0", "/nodes/1/attempt_timeout_ms", FaultCode::BadValue),
    ("a", ", colour: red", "/nodes/0/colour", FaultCode::UnknownField),
    ("b", ", on_failure: catch", "/nodes/1/on_failure", FaultCode::FieldOfOtherKind),
    (
        "b",
        ", output_mapping: {input.x: result}",
        "/nodes/1/output_mapping/input.x",
        FaultCode::BadTarget,
    ),
    (
        "b",
        ", output_mapping: {context: result}",
        "/nodes/1/output_mapping/context",
        FaultCode::BadTarget,
    ),
    ("b", ", input_mapping: {x: result.y}", "/nodes/1/input_mapping/x", FaultCode::UnknownRoot),
    ("b", ", input_mapping: {x: 'a +'}", "/nodes/1/input_mapping/x", FaultCode::BadExpression),
    ("b", ", input_mapping: {x: branch.idx}", "/nodes/1/input_mapping/x", FaultCode::UnknownRoot),
    ("b", ", retry: {max_failures: 0}", "/nodes/1/retry/max_failures", FaultCode::BadValue),
    ("b", ", retry: {max_expiries: 0}", "/nodes/1/retry/max_expiries", FaultCode::BadValue),
    ("b", ", retry: {max_attempts: 10001}", "/nodes/1/retry/max_attempts", FaultCode::BadValue),
    ("b", ", retry: {backoff: {jitter: 2}}", "/nodes/1/retry/backoff/jitter", FaultCode::BadValue),
    ("b", ", retry: {retry_on: [1]}", "/nodes/1/retry/retry_on/0", FaultCode::BadValue),
    ("task", ", priority: 101", "/nodes/1/task/priority", FaultCode::BadValue),
    ("task", ", lease_ms: 1", "/nodes/1/task/lease_ms", FaultCode::BadValue),
    ("task", ", tags: {a: 1}", "/nodes/1/task/tags/a", FaultCode::WrongType),
    ("nodes", "  - {ref: b, kind: pass}", "/nodes/3/ref", FaultCode::DuplicateRef),
    ("nodes", "  - {ref: lonely, kind: pass}", "/nodes/3", FaultCode::UnreachableNode),
    ("nodes", "  - {kind: pass}", "/nodes/3", FaultCode::MissingField),
    ("nodes", "  - {ref: x}", "/nodes/3", FaultCode::MissingField),
    ("nodes", "  - {ref: a/b, kind: pass}", "/nodes/3/ref", FaultCode::BadName),
    ("nodes", "  - {ref: x, kind: taks}", "/nodes/3/kind", FaultCode::BadValue),
    ("nodes", "  - {ref: x, kind: task}", "/nodes/3", FaultCode::MissingField),
    ("nodes", "  - {ref: x, kind: task, task: {}}", "/nodes/3/task", FaultCode::MissingField),
    (
        "nodes",
        "  - {ref: x, kind: workflow, workflow: {}}",
        "/nodes/3/workflow",
        FaultCode::MissingField,
    ),
    ("nodes", "  - {ref: x, kind: signal, signal: {}}", "/nodes/3/signal", FaultCode::MissingField),
    ("nodes", "  - {ref: x, kind: timer, timer: {}}", "/nodes/3/timer", FaultCode::FieldConflict),
    (
        "nodes",
        "  - {ref: x, kind: timer, timer: {delay_ms: 1, until: input.x}}",
        "/nodes/3/timer",
        FaultCode::FieldConflict,
    ),
    ("nodes", "  - 7", "/nodes/3", FaultCode::WrongType),
    ("transitions", "  - {from: c, to: d}", "/transitions/2/to", FaultCode::UnknownRef),
    ("transitions", "  - {from: x, to: c}", "/transitions/2/from", FaultCode::UnknownRef),
    ("transitions", "  - {from: c}", "/transitions/2", FaultCode::MissingField),
    (
        "transitions",
        "  - {ref: fan, from: c, to: b}",
        "/transitions/2/ref",
        FaultCode::DuplicateRef,
    ),
    (
        "transitions",
        "  - {from: c, to: b, outcome: ok}",
        "/transitions/2/outcome",
        FaultCode::BadValue,
    ),
    (
        "transitions",
        "  - {from: c, to: b, loop: {}}",
        "/transitions/2/loop",
        FaultCode::MissingField,
    ),
    (
        "transitions",
        "  - {from: c, to: b, condition: result.x}",
        "/transitions/2/condition",
        FaultCode::UnknownRoot,
    ),
    (
        "transitions",
        "  - {from: c, to: b, condition: true}",
        "/transitions/2/condition",
        FaultCode::WrongType,
    ),
    (
        "transitions",
        "  - {from: c, to: b, condition: bid.x}",
        "/transitions/2/condition",
        FaultCode::UnknownRoot,
    ),
    ("transitions", "  - {from: c, to: c}", "/transitions/2", FaultCode::EndlessCycle),
    (
        "transitions",
        "  - {from: a, to: b, priority: 1, sibling_group: fan}",
        "/transitions/2",
        FaultCode::SplitGroup,
    ),
    (
        "transitions",
        "  - {from: c, to: b, foreach: {collection: input.x, item_var: input}}",
        "/transitions/2/foreach/item_var",
        FaultCode::BadName,
    ),
    (
        "transitions",
        "  - {from: c, to: b, foreach: {item_var: x}}",
        "/transitions/2/foreach",
        FaultCode::MissingField,
    ),
    (
        "transitions",
        "  - {from: b, to: a, synchronization: {joins_transition: fan}}",
        "/transitions/2/to",
        FaultCode::TwoJoinTargets,
    ),
    (
        "transitions",
        "  - {from: b, to: c, synchronization: {joins_transition: meet}}",
        "/transitions/2/synchronization/joins_transition",
        FaultCode::NotAGroup,
    ),
    (
        "transitions",
        "  - {from: b, to: c, synchronization: {joins_transition: fen}}",
        "/transitions/2/synchronization/joins_transition",
        FaultCode::UnknownRef,
    ),
    (
        "fan",
        ", foreach: {collection: input.x}",
        "/transitions/0/spawn_count",
        FaultCode::FieldConflict,
    ),
    ("meet", ", sibling_group: x", "/transitions/1/sibling_group", FaultCode::FieldConflict),
    ("join", ", wait_for: some", "/transitions/1/synchronization/wait_for", FaultCode::BadValue),
    (
        "join",
        ", wait_for: {m_of_n: 4}",
        "/transitions/1/synchronization/wait_for",
        FaultCode::NeedTooLarge,
    ),
    (
        "join",
        ", min_success: 4",
        "/transitions/1/synchronization/min_success",
        FaultCode::NeedTooLarge,
    ),
    (
        "join",
        ", wait_for: {m_of_n: 0}",
        "/transitions/1/synchronization/wait_for/m_of_n",
        FaultCode::BadValue,
    ),
    (
        "join",
        ", wait_for: {m_of_n: '101%'}",
        "/transitions/1/synchronization/wait_for/m_of_n",
        FaultCode::BadValue,
    ),
    ("join", ", else_to: nowhere", "/transitions/1/synchronization/else_to", FaultCode::UnknownRef),
    ("join", ", on_timeout: fail", "/transitions/1/synchronization", FaultCode::FieldConflict),
    (
        "join",
        ", merge: [{target: input.x, strategy: append}]",
        "/transitions/1/synchronization/merge/0/target",
        FaultCode::BadTarget,
    ),
    (
        "join",
        ", merge: [{target: context.x, strategy: apend}]",
        "/transitions/1/synchronization/merge/0/strategy",
        FaultCode::BadValue,
    ),
    (
        "join",
        ", merge: [{target: context.x, strategy: append, source: error.x}]",
        "/transitions/1/synchronization/merge/0/source",
        FaultCode::UnknownRoot,
    ),
    (
        "join",
        ", merge: [{target: context.x, strategy: append, on_conflict: last}]",
        "/transitions/1/synchronization/merge/0/on_conflict",
        FaultCode::FieldConflict,
    ),
];

#[test]
fn every_fault_is_found_at_its_place() {
    for (slot, text, pointer, code) in ROWS {
        let found = faults(&with(slot, text));
        let is_there = found.iter().any(|f| f.pointer == *pointer && f.code == *code);
        assert!(is_there, "{text}: wanted {pointer} {code:?}, found {found:#?}");
        let placed = found.iter().all(|fault| fault.place.is_some() && !fault.message.is_empty());
        assert!(placed, "{found:?}");
        assert!(found.len() <= 2, "{text}: one mistake, {found:#?}");
    }
    assert_eq!(faults(&with("nothing", "")), []);
    let elsewhere = [FaultCode::Syntax, FaultCode::TooMany, FaultCode::ContradictingJoins];
    for code in FaultCode::ALL {
        let is_tested = ROWS.iter().any(|row| row.3 == *code) || elsewhere.contains(code);
        assert!(is_tested, "{code:?} has no row");
    }
}

#[test]
fn joins_of_a_group_may_not_contradict_each_other() {
    let second = |rest: &str| {
        let join = format!(
            "  - {{from: a, to: c, priority: 9, synchronization: {{joins_transition: fan{rest}}}}}"
        );
        let first = "joins_transition: fan, wait_for: any, \
                     merge: [{target: context.x, strategy: collect}]";
        let text = with("join", "").replacen("joins_transition: fan", first, 1);
        let found = faults(&format!("{}\n{join}\n", text.trim_end()));
        found.into_iter().map(|fault| (fault.pointer, fault.code)).collect::<Vec<_>>()
    };
    assert_eq!(second(", on_late: cancel"), []);
    assert_eq!(second(", wait_for: any"), []);
    let at = |field: &str| format!("/transitions/2/synchronization/{field}");
    assert_eq!(second(", wait_for: all"), [(at("wait_for"), FaultCode::ContradictingJoins)]);
    let other = ", merge: [{target: context.y, strategy: collect}]";
    assert_eq!(second(other), [(at("merge"), FaultCode::ContradictingJoins)]);
}

#[test]
fn all_faults_are_reported_at_once_and_bounded() {
    let text = with("top", "timeout_ms: 0\nlimts: {}")
        .replace("kind: pass", "kind: paas")
        .replace("joins_transition: fan", "joins_transition: fun");
    let found = faults(&text);
    let codes: Vec<_> = found.iter().map(|fault| fault.code).collect();
    use FaultCode::*;
    assert_eq!(codes, [BadValue, BadValue, BadValue, UnknownField, UnknownRef], "{found:#?}");
    assert!(found[4].message.contains("did you mean `fan`?"), "{}", found[4].message);
    let many: String = (0..NODES_MAX + 1).map(|_| "  - {kind: x}\n").collect();
    let found = faults(&with("nodes", &many));
    assert_eq!(found.len(), FAULTS_MAX);
    assert!(found.iter().any(|fault| fault.code == TooMany));
}

#[test]
fn a_text_that_is_none_is_refused_with_its_place() {
    for (text, line) in [("workflow: [", 2), ("workflow: w\nworkflow: v", 2)] {
        let found = faults(text);
        assert_eq!(found[0].code, FaultCode::Syntax);
        assert_eq!(found[0].place.unwrap().line, line, "{found:?}");
    }
    let found = Definition::from_json(b"{\"workflow\":\n 1,}").unwrap_err();
    assert_eq!((found[0].code, found[0].place.unwrap().line), (FaultCode::Syntax, 2));
    let found = Definition::from_json(b"{\"workflow\":1,\"workflow\":1}").unwrap_err();
    assert_eq!(found[0].code, FaultCode::Syntax);
    assert_eq!(Definition::from_json(b"[]").unwrap_err()[0].code, FaultCode::WrongType);
    assert_eq!(faults("{}").len(), 3);
}

#[test]
fn the_sample_compiles_as_it_is() {
    let sample = sample();
    let node = |name: &str| sample.node(sample.find_node(name).unwrap());
    let names = |list: &[TransitionIndex]| -> Vec<_> {
        list.iter().map(|index| sample.transition(*index).name.clone().unwrap()).collect()
    };
    assert_eq!((&*sample.name, sample.timeout_ms), ("tender_review", Some(3_600_000)));
    assert_eq!(sample.context_defaults.to_json(), r#"{"scores":[],"verdict":{"approved":false}}"#);
    assert_eq!(sample.node(sample.initial_node).name, node("intake").name);
    assert_eq!(names(&node("score").on_success), ["scored".into()]);
    assert_eq!(names(&node("score").on_error), ["rescue".into()]);
    assert_eq!(names(&node("sign_off").on_success), ["again".into(), "finish".into()]);
    assert!(node("score").keeps_branches && !node("rank").keeps_branches);
    let NodeKind::Task(task) = &node("score").kind else { panic!() };
    assert_eq!((&*task.queue, task.priority, task.lease_ms), ("scoring", 5, Some(30_000)));
    assert_eq!(task.retry.retry_on, RetryOn::Any);
    assert_eq!(sample.groups.len(), 1);
    let group = &sample.groups[0];
    let join = group.join.as_ref().unwrap();
    assert_eq!((&*group.name, names(&group.transitions)), ("bids", vec!["fan".into()]));
    assert_eq!(names(&join.transitions), ["scored".into(), "rescued".into()]);
    assert_eq!(sample.node(join.target).name, node("rank").name);
    let how = &join.synchronization;
    assert_eq!(how.wait_for, WaitFor::Count(3));
    assert_eq!(how.else_to, sample.find_node("cool_down"));
    assert_eq!(how.timeout.unwrap().on_timeout, OnJoinTimeout::ProceedWithAvailable);
    assert_eq!(how.merge[0].strategy, Strategy::Append);
    let scored = sample.transitions.iter().find(|t| t.name.as_deref() == Some("scored")).unwrap();
    assert_eq!(scored.joins, Some(GroupIndex(0)));
}

#[test]
fn defaults_are_filled_in() {
    let plain = Definition::from_yaml(&with("nothing", "")).unwrap();
    let how = &plain.groups[0].join.as_ref().unwrap().synchronization;
    assert_eq!((how.wait_for, how.fail_fast, how.on_late), (WaitFor::All, true, OnLate::Cancel));
    assert_eq!((how.on_unreachable, how.timeout), (OnUnreachable::Fail, None));
    assert_eq!(plain.limits.max_tokens, 1_000_000);
    assert_eq!((plain.on_timeout, plain.on_no_match), (OnRunTimeout::Fail, OnNoMatch::Fail));
    let first = &plain.transitions[0];
    assert_eq!((first.priority, first.outcome), (0, Outcome::Success));
    assert!(matches!(first.fan_out.as_ref().unwrap().spawn, Spawn::Count(3)));
    assert!(plain.context_defaults.as_map().unwrap().is_empty());
}

#[test]
fn a_definition_is_one_version_however_it_is_written() {
    let sample = sample();
    let json = sample.source.to_json();
    let again = Definition::from_json(json.as_bytes()).unwrap();
    assert_eq!((again.hash, again.source.to_json()), (sample.hash, json));
    let other = Definition::from_yaml(&SAMPLE.replace("3600000", "3600001")).unwrap();
    assert_ne!(other.hash, sample.hash);
}

#[test]
fn a_cycle_needs_something_that_waits_or_counts() {
    let back = |rest: &str| {
        let found = faults(&with("transitions", &format!("  - {{from: c, to: a{rest}}}")));
        found.into_iter().map(|fault| fault.message).collect::<Vec<_>>()
    };
    assert_eq!(back(", loop: {max_iterations: 2}"), [""; 0]);
    // The task is on the way; but with three branches always, and not with a list that may be empty.
    let text = with("transitions", "  - {from: c, to: a}");
    assert_eq!(faults(&text), []);
    let text = text.replace("spawn_count: 3", "foreach: {collection: input.x}");
    let found = faults(&text);
    assert_eq!(found[0].code, FaultCode::EndlessCycle);
    assert!(found[0].message.starts_with("c → a → c goes round"), "{}", found[0].message);
    assert_eq!(faults(&text.replace("input.x}", "input.x, on_empty: skip}")), []);
    assert_eq!(
        faults(&with("transitions", "  - {from: c, to: c}"))[0].code,
        FaultCode::EndlessCycle
    );
}

#[test]
fn an_item_is_known_where_its_branches_can_be() {
    let text = |c: &str| {
        with("c", c)
            .replace("spawn_count: 3", "foreach: {collection: input.x, item_var: bid, key: bid.id}")
    };
    assert_eq!(faults(&text(", output_mapping: {context.x: bid.id}")), [], "lenient past the join");
    let text = text("").replace(
        "joins_transition: fan",
        "joins_transition: fan, merge: [{source: bid.p, target: context.x, strategy: collect}]",
    );
    assert_eq!(faults(&text), []);
    let before = text
        .replace("ref: a, kind: pass", "ref: a, kind: pass, output_mapping: {context.x: bid.id}");
    let found = faults(&before);
    assert_eq!(found[0].code, FaultCode::UnknownRoot);
    assert!(found[0].message.contains("`bid` means nothing here; there are branch, context"));
}

#[test]
fn transitions_may_share_a_group() {
    let text = with("transitions", "  - {from: a, to: b, sibling_group: fan, spawn_count: 2}");
    let shared = Definition::from_yaml(&text).unwrap();
    assert_eq!(shared.groups.len(), 1);
    assert_eq!(shared.groups[0].transitions, [TransitionIndex(0), TransitionIndex(2)]);
    assert_eq!(
        faults(
            &text.replace("joins_transition: fan", "joins_transition: fan, wait_for: {m_of_n: 5}")
        ),
        []
    );
    let alone = Definition::from_yaml(&with("transitions", "  - {from: a, to: b, spawn_count: 2}"));
    assert_eq!(&*alone.unwrap().groups[1].name, "t2");
}

const FORMAT: &str = include_str!("../../schema/workflow.schema.json");

/// Faults that no schema can see, because they are about two places, or inside of a text.
fn is_beyond_a_schema(code: FaultCode) -> bool {
    use FaultCode::*;
    match code {
        DuplicateRef | UnknownRef | UnreachableNode | SplitGroup | NotAGroup | TwoJoinTargets => {
            true
        }
        ContradictingJoins | NeedTooLarge | EndlessCycle | Syntax => true,
        BadExpression | UnknownFunction | UnknownRoot | BadSchema => true,
        WrongType | BadValue | MissingField | UnknownField | FieldOfOtherKind => false,
        FieldConflict | TooMany | BadName | BadTarget => false,
    }
}

#[test]
fn the_schema_of_the_format_agrees_with_the_code() {
    let format = Schema::compile(&Value::from_json(FORMAT.as_bytes()).unwrap()).unwrap();
    let value = |text: &str| yaml::parse(text).unwrap();
    assert_eq!(format.check(&value(SAMPLE)), Ok(()));
    assert_eq!(format.check(&value(&with("nothing", ""))), Ok(()));
    for (slot, text, pointer, code) in ROWS {
        // A timeout that is spoken of and not given may be given by another join.
        if *pointer == "/transitions/1/synchronization" {
            continue;
        }
        let checked = format.check(&value(&with(slot, text)));
        assert!(is_beyond_a_schema(*code) || checked.is_err(), "{text}: {code:?}");
    }
}

#[test]
fn an_integer_beyond_its_range_is_told_the_range_however_large_it_is() {
    for number in ["9223372036854775807", "9223372036854775808", "18446744073709551615"] {
        let timer = format!("  - {{ref: d, kind: timer, timer: {{delay_ms: {number}}}}}");
        let faults = faults(&with("nodes", &timer));
        let fault = faults.iter().find(|it| it.pointer == "/nodes/3/timer/delay_ms").unwrap();
        let wanted = format!("this is {number}; it must be from 0 to 31622400000");
        assert_eq!((fault.code, fault.message.as_str()), (FaultCode::BadValue, wanted.as_str()));
    }
}

#[test]
fn faults_quote_the_definition_briefly() {
    let long = "x".repeat(100_000);
    let nested = format!("limits: {{{long}: 1, max_spawn: {{{long}: 1}}}}\n{long}: {{{long}: 1}}");
    for (slot, text) in [
        ("top", nested.as_str()),
        ("top", &format!("on_timeout: {long}")),
        ("join", &format!(", wait_for: {{m_of_n: {long}%}}")),
        ("top", &format!("output_schema: {{$ref: {long}}}")),
        ("top", &format!("{long}: 1\n{long}: 2")),
    ] {
        let faults = faults(&with(slot, text));
        assert!(!faults.is_empty(), "{}", &text[..40]);
        for fault in faults {
            assert!(fault.to_string().len() < 1_000, "{}", fault.to_string().len());
        }
    }
}
