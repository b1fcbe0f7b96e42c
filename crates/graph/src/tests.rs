//! What graphs look like, for the samples: alone, in the middle of a run, and at its end.

use std::sync::Arc;

use tenure_flow::Definition;

use crate::text::Tone;
use crate::{Graph, Token, dot, svg, text};

fn sample(name: &str) -> Arc<Definition> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/workflows");
    let text = std::fs::read_to_string(format!("{folder}/{name}.yaml")).unwrap();
    compiled(&text)
}

fn compiled(yaml: &str) -> Arc<Definition> {
    Arc::new(Definition::from_yaml(yaml).unwrap_or_else(|faults| panic!("{faults:?}")))
}

fn token<'t>(id: u32, parent: u32, node: &'t str, state: &'t str) -> Token<'t> {
    let parent = Some(parent).filter(|parent| *parent > 0);
    Token { id, parent, node, state, path: "root", ..Token::default() }
}

fn title(line: &str) -> Vec<String> {
    vec![line.to_owned(), "WAITING since 12:00:03, for 4m".to_owned()]
}

/// An order that could not be shipped, on its way back.
fn order() -> Graph {
    let shipping = Token { error: Some("TASK_FAILED"), ..token(4, 3, "ship", "failed") };
    let tokens = [
        token(1, 0, "reserve", "completed"),
        token(2, 1, "approval", "completed"),
        token(3, 2, "charge", "completed"),
        shipping,
        token(5, 4, "failed", "completed"),
        token(6, 5, "refund", "executing"),
    ];
    Graph::of_run(sample("order"), title("order 1, run 12"), &tokens)
}

/// A map over five files: two are done, two are at work, one waits for its turn.
fn invoices() -> Graph {
    let mut tokens = vec![token(1, 0, "list", "completed")];
    let states = ["completed", "executing", "completed", "dispatched"];
    let paths = ["root/each#1[0]", "root/each#1[1]", "root/each#1[2]", "root/each#1[3]"];
    for ((id, state), path) in (2..).zip(states).zip(paths) {
        let branch = token(id, 1, "add_up", state);
        tokens.push(Token { via: Some("each"), path, branch_total: Some(5), ..branch });
    }
    tokens.push(token(6, 1, "total", "waiting_for_siblings"));
    Graph::of_run(sample("invoices"), title("invoices 3, run 7"), &tokens)
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
    insta::assert_snapshot!(lines(&Graph::of(sample("agent"), vec!["agent 1".to_owned()])));
    insta::assert_snapshot!(lines(&Graph::of(sample("race"), vec!["race 1".to_owned()])));
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
    keep("race", &svg::render(&Graph::of(sample("race"), vec!["race 1".to_owned()])));
    keep("agent", &svg::render(&Graph::of(sample("agent"), vec!["agent 1".to_owned()])));
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
    let graph = Graph::of(compiled(yaml), vec!["w <1>".to_owned()]);
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
    let graph = Graph::of(compiled(&yaml), vec!["w 1".to_owned()]);
    insta::assert_snapshot!(lines(&graph));
    let picture = svg::render(&graph);
    keep("loops", &picture);
    assert!(!picture.contains("NaN") && !picture.contains("inf"), "{picture}");
}

#[test]
fn a_graph_is_returned_with_positions_states_and_counts() {
    insta::assert_snapshot!(serde_json::to_string_pretty(&invoices()).unwrap());
}

/// A definition of the largest size with long edges: each node leads to the next one and to some
/// that are far below it.
#[test]
fn the_edges_of_the_largest_graph_have_few_bends() {
    let nodes = (0..tenure_flow::limits::NODES_MAX)
        .map(|node| format!("  - {{ref: n{node}, kind: pass}}\n"))
        .collect::<String>();
    let last = tenure_flow::limits::NODES_MAX - 1;
    let mut transitions = String::new();
    for node in 0..last {
        for (priority, step) in [400, 300, 200, 100, 1].into_iter().enumerate() {
            let to = (node + step).min(last);
            let condition = if step == 1 { "" } else { ", condition: 'context.x == 1'" };
            if step == 1 || node + step <= last {
                transitions.push_str(&format!(
                    "  - {{from: n{node}, to: n{to}, priority: {}{condition}}}\n",
                    priority + 1
                ));
            }
        }
    }
    let yaml = format!("workflow: w\ninitial_node: n0\nnodes:\n{nodes}transitions:\n{transitions}");
    let definition = compiled(&yaml);
    let graph = Graph::of(definition, vec!["w 1".to_owned()]);
    assert!(graph.height > 0.0 && graph.edges.iter().all(|edge| !edge.path.contains("NaN")));
    // An edge has a bend at its label alone, however many layers it crosses.
    assert!(graph.edges.iter().all(|edge| edge.path.matches(['L', 'C']).count() <= 3));
}
