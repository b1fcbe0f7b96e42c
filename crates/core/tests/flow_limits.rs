//! A definition without faults makes tasks that are accepted: `flow` does not know `record`, so its
//! bounds are compared with those of records here.

use tenure_flow::limits as flow;
use tenure_record::limits;

#[test]
fn the_bounds_of_a_definition_are_those_of_tasks() {
    assert_eq!(flow::TASK_PRIORITY_MIN, i64::from(limits::PRIORITY_MIN));
    assert_eq!(flow::TASK_PRIORITY_MAX, i64::from(limits::PRIORITY_MAX));
    assert_eq!(flow::LEASE_MS_MIN, i64::from(limits::LEASE_MS_MIN));
    assert_eq!(flow::LEASE_MS_MAX, i64::from(limits::LEASE_MS_MAX));
    assert_eq!(flow::BUDGET_MAX, i64::from(limits::BUDGET_MAX));
    assert_eq!(flow::SPAN_MS_MAX as u64, limits::DELAY_MS_MAX);
    assert_eq!(flow::TAGS_MAX, limits::TAGS_MAX);
    assert_eq!(flow::TAG_BYTES_MAX, limits::TAG_BYTES_MAX);
    assert_eq!(flow::CODE_BYTES_MAX, limits::CODE_BYTES_MAX);
    assert_eq!(flow::NAME_BYTES_MAX, limits::NAME_BYTES_MAX);
}
