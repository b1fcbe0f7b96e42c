//! A segment as a bar of characters: how full it is, where its marks are, and whether it is torn.

use tenure_wal::{SegmentState, SegmentSummary};

/// What the characters mean.
pub(super) const LEGEND: &str = "# used, m with a mark, ! torn, . free";

const WIDTH: u64 = 60;

/// The bar of a segment whose marks are at these offsets.
pub(super) fn bar(segment: &SegmentSummary, marks: &[u64]) -> String {
    let total = segment.header.file_bytes.max(1);
    let torn = segment.state == SegmentState::Torn;
    draw(segment.used_bytes, total, marks, torn.then_some(segment.used_bytes))
}

fn draw(used: u64, total: u64, marks: &[u64], torn_at: Option<u64>) -> String {
    // Whatever has a byte in a cell is seen there; in 128 bits no product is too large.
    let cell = |offset: u64| u128::from(offset) * u128::from(WIDTH) / u128::from(total);
    let last_used = cell(used.saturating_sub(1));
    let character = |at: u128| match at {
        at if torn_at.is_some_and(|torn| cell(torn.min(total - 1)) == at) => '!',
        at if marks.iter().any(|mark| cell(*mark) == at) => 'm',
        at if at <= last_used => '#',
        _ => '.',
    };
    (0..u128::from(WIDTH)).map(character).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_shows_what_is_used_where_the_marks_are_and_where_it_is_torn() {
        let halves = |left: &str, right: &str| format!("{}{}", left.repeat(30), right.repeat(30));
        assert_eq!(draw(300, 600, &[], None), halves("#", "."));
        assert_eq!(draw(600, 600, &[], None), halves("#", "#"));
        assert_eq!(draw(1, 600, &[], None), format!("#{}", ".".repeat(59)));
        assert_eq!(draw(301, 600, &[], None), format!("{}{}", "#".repeat(31), ".".repeat(29)));
        let both = format!("##m{}!{}", "#".repeat(27), ".".repeat(29));
        assert_eq!(draw(300, 600, &[25], Some(300)), both);
        assert_eq!(draw(600, 600, &[], Some(600)), format!("{}!", "#".repeat(59)));
        assert_eq!(draw(u64::MAX, u64::MAX, &[], None), halves("#", "#"));
    }
}
