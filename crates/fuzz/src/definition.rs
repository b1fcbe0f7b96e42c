//! Definitions of workflows: any text is one or has faults, and one that is none is the same
//! however it is written.

use tenure_flow::limits::FAULTS_MAX;
use tenure_flow::{Definition, yaml};
use tenure_value::Value;

pub(crate) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(value) = yaml::parse(text) {
        let again = Value::from_json(value.to_json().as_bytes()).expect("a value is always JSON");
        assert_eq!(again, value, "it reads back as something else");
    }
    match Definition::from_yaml(text) {
        Ok(definition) => check(&definition),
        Err(faults) => {
            assert!(!faults.is_empty() && faults.len() <= FAULTS_MAX, "{} faults", faults.len());
        }
    }
}

fn check(definition: &Definition) {
    let json = definition.source.to_json();
    let again = Definition::from_json(json.as_bytes()).expect("it had no fault");
    assert_eq!(again.hash, definition.hash, "the same definition has two forms");
    // Every index leads somewhere.
    for transition in &definition.transitions {
        assert!(transition.from.get() < definition.nodes.len());
        assert!(transition.to.get() < definition.nodes.len());
    }
    for group in &definition.groups {
        assert!(group.from.get() < definition.nodes.len());
        assert!(group.join.iter().all(|join| join.target.get() < definition.nodes.len()));
    }
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let small = "workflow: w\ninitial_node: a\nnodes:\n  - {ref: a, kind: pass}\n";
    let line = "  - {ref: b, kind: task, task: {queue: q}, output_mapping: {context.x: result}}\n\
                transitions:\n  - {ref: f, from: a, to: b, foreach: {collection: input.l}}\n";
    let join = "  - {from: b, to: a, loop: {max_iterations: 2}, synchronization: \
                {joins_transition: f, wait_for: {m_of_n: 50%}, merge: [{target: context.y, \
                strategy: keyed}]}}\n";
    let own = "  - {ref: b, kind: workflow, workflow: {name: w}}\nlimits: {max_runs: 12}\n\
               transitions:\n  - {from: a, to: b}\n";
    let seeds = [
        small.to_owned(),
        [small, line].concat(),
        [small, line, join].concat(),
        [small, own].concat(),
    ];
    seeds.into_iter().map(String::into_bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_bounds_the_runs_of_its_tree() {
        let texts = seeds().into_iter().filter_map(|seed| String::from_utf8(seed).ok());
        let mut sound = texts.filter_map(|text| Definition::from_yaml(&text).ok());
        assert!(sound.any(|definition| definition.limits.max_runs == 12));
    }
}
