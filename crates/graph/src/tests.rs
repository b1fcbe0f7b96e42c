//! What graphs look like, for the samples: alone, in the middle of a run, and at its end.

use tenure_flow::Definition;

use crate::model::{Graph, Token};
use crate::text::Tone;
use crate::{dot, svg, text};

fn sample(name: &str) -> Definition {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/workflows");
    let text = std::fs::read_to_string(format!("{folder}/{name}.yaml")).unwrap();
    Definition::from_yaml(&text).unwrap_or_else(|faults| panic!("{faults:?}"))
}

fn token(id: u32, parent: u32, node: &str, state: &str) -> Token {
    Token {
        id,
        parent: Some(parent).filter(|parent| *parent > 0),
        node: node.to_owned(),
        state: state.to_owned(),
        path: "root".to_owned(),
        ..Token::default()
    }
}

fn in_branch(token: Token, via: &str, path: &str, total: u32) -> Token {
    let via = Some(via.to_owned());
    Token { via, path: path.to_owned(), branch_total: Some(total), ..token }
}

fn title(line: &str) -> Vec<String> {
    vec![line.to_owned(), "WAITING since 12:00:03, for 4m".to_owned()]
}

/// An order that could not be shipped, on its way back.
fn order() -> Graph {
    let shipping = Token { error: Some("TASK_FAILED".to_owned()), ..token(4, 3, "ship", "failed") };
    let tokens = [
        token(1, 0, "reserve", "completed"),
        token(2, 1, "approval", "completed"),
        token(3, 2, "charge", "completed"),
        shipping,
        token(5, 4, "failed", "completed"),
        token(6, 5, "refund", "executing"),
    ];
    Graph::of_run(&sample("order"), title("order 1, run 12"), &tokens)
}

/// A map over five files: two are done, two are at work, one waits for its turn.
fn invoices() -> Graph {
    let mut tokens = vec![token(1, 0, "list", "completed")];
    let states = ["completed", "executing", "completed", "dispatched"];
    for (index, state) in (0..).zip(states) {
        let branch = token(index + 2, 1, "add_up", state);
        tokens.push(in_branch(branch, "each", &format!("root/each#1[{index}]"), 5));
    }
    tokens.push(token(6, 1, "total", "waiting_for_siblings"));
    Graph::of_run(&sample("invoices"), title("invoices 3, run 7"), &tokens)
}

fn lines(graph: &Graph) -> String {
    let lines = text::render(graph, &|_, text| text.to_owned());
    for line in &lines {
        assert!(unicode_width::UnicodeWidthStr::width(line.as_str()) <= 80, "{line}");
    }
    lines.join("\n")
}

#[test]
fn a_definition_is_drawn_as_text() {
    insta::assert_snapshot!(lines(&Graph::of(&sample("agent"), vec!["agent 1".to_owned()])));
    insta::assert_snapshot!(lines(&Graph::of(&sample("race"), vec!["race 1".to_owned()])));
}

#[test]
fn a_run_is_drawn_as_text() {
    insta::assert_snapshot!(lines(&order()));
    insta::assert_snapshot!(lines(&invoices()));
}

#[test]
fn tokens_are_drawn_in_the_tone_of_their_state() {
    let tagged = |tone: Tone, text: &str| match tone {
        Tone::Standing(standing) => format!("<{standing:?} {text}>"),
        Tone::Plain | Tone::Heading | Tone::Faint => text.to_owned(),
    };
    let drawn = text::render(&order(), &tagged).join("\n");
    assert!(drawn.contains("<Failed ✗>"), "{drawn}");
    assert!(drawn.contains("<Executing ▶>"), "{drawn}");
}

#[test]
fn a_run_is_drawn_for_graphviz() {
    insta::assert_snapshot!(dot::render(&invoices()));
}

#[test]
fn a_run_is_drawn_as_a_picture() {
    for (name, graph) in [("order", order()), ("invoices", invoices())] {
        let picture = svg::render(&graph);
        keep(name, &picture);
        insta::assert_snapshot!(name, picture);
    }
    keep("race", &svg::render(&Graph::of(&sample("race"), vec!["race 1".to_owned()])));
    keep("agent", &svg::render(&Graph::of(&sample("agent"), vec!["agent 1".to_owned()])));
}

/// For people who want to look at the pictures: `TENURE_PICTURES=folder cargo test -p tenure-graph`.
fn keep(name: &str, picture: &str) {
    if let Some(folder) = std::env::var_os("TENURE_PICTURES") {
        let file = std::path::Path::new(&folder).join(format!("{name}.svg"));
        std::fs::write(file, picture).unwrap();
    }
}

#[test]
fn text_from_outside_stays_text() {
    let yaml = r#"
workflow: w
initial_node: a
nodes:
  - {ref: a, kind: task, task: {queue: '<script>&"'}}
  - {ref: b, kind: pass}
transitions:
  - {from: a, to: b, condition: "'<b>' == 'x'"}
"#;
    let graph = Graph::of(&Definition::from_yaml(yaml).unwrap(), vec!["w <1>".to_owned()]);
    let picture = svg::render(&graph);
    assert!(!picture.contains("<script>") && !picture.contains("<b>"), "{picture}");
    assert!(picture.contains("&lt;script&gt;&amp;&quot;"), "{picture}");
    assert!(dot::render(&graph).contains("<script>&\\\""), "{}", dot::render(&graph));
}

#[test]
fn loops_and_cycles_have_a_place() {
    let yaml = "workflow: w\ninitial_node: a\nnodes:\n  - {ref: a, kind: task, task: {queue: q}}\n  \
                - {ref: b, kind: task, task: {queue: q}}\n  - {ref: c, kind: pass}\ntransitions:\n  \
                - {from: a, to: a, priority: 1, condition: 'result_is', loop: {max_iterations: 3}}\n";
    let yaml = yaml.replace("'result_is'", "\"context.x == 1\"");
    let yaml = format!(
        "{yaml}  - {{from: a, to: b, priority: 2}}\n  - {{from: b, to: a, outcome: error, loop: \
         {{max_iterations: 1}}}}\n  - {{from: b, to: c}}\n"
    );
    let graph = Graph::of(&Definition::from_yaml(&yaml).unwrap(), vec!["w 1".to_owned()]);
    insta::assert_snapshot!(lines(&graph));
    let picture = svg::render(&graph);
    keep("loops", &picture);
    assert!(!picture.contains("NaN") && !picture.contains("inf"), "{picture}");
}
