//! What the entries of the table say of themselves fits together.

use std::collections::BTreeSet;

use crate::api::rewrite::{Axis, Family, Measured};
use crate::fixes::FIXES;
use crate::handlers::REWRITES;

#[test]
fn ids_are_unique_and_kebab_case() {
    let ids: Vec<&str> = REWRITES
        .iter()
        .map(|rewrite| rewrite.id)
        .chain(FIXES.iter().map(|fix| fix.id))
        .collect();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len());
    for id in ids {
        assert!(id.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{id}");
    }
}

#[test]
fn granularities_have_a_place_each() {
    let mut places: Vec<u8> = REWRITES
        .iter()
        .filter_map(|rewrite| match rewrite.tunes {
            Some(Axis::Granularity(place)) => Some(place),
            _ => None,
        })
        .collect();
    places.sort_unstable();
    let expected: Vec<u8> = (0..places.len() as u8).collect();
    assert_eq!(places, expected);
}

/// Each other axis of `tune` is one rewrite's.
#[test]
fn axes_belong_to_one_rewrite() {
    for axis in [Axis::Threshold, Axis::Factor, Axis::Combination, Axis::Allocation] {
        let on = REWRITES.iter().filter(|rewrite| rewrite.tunes == Some(axis));
        assert_eq!(on.count(), 1, "{axis:?}");
    }
}

/// What collects launches changes how a program is built up: nobody finds that done unasked.
#[test]
fn what_is_unattended_keeps_the_structure() {
    let unattended: Vec<&str> = REWRITES
        .iter()
        .filter(|rewrite| rewrite.unattended)
        .map(|rewrite| rewrite.id)
        .collect();
    assert_eq!(unattended, ["fire-and-forget"]);
    for rewrite in REWRITES.iter().filter(|rewrite| rewrite.family == Family::Aggregation) {
        assert_eq!(rewrite.measured, Measured::BehindThreshold, "{}", rewrite.id);
    }
}
