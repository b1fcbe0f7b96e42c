//! A definition as it is written, and every way in which one can be wrong.

use super::*;
use crate::fault::FaultCode;

const SAMPLE: &str = include_str!("../../tests/samples/tender_review.yaml");

fn sample() -> Definition {
    Definition::from_yaml(SAMPLE).unwrap_or_else(|faults| panic!("{faults:#?}"))
}

#[test]
fn the_sample_compiles_as_it_is() {
    let sample = sample();
    assert_eq!(&*sample.name, "tender_review");
    assert_eq!(sample.nodes.len(), 7);
}
