//! What the entries of the table say of themselves fits together.

use std::collections::BTreeSet;

use crate::api::rewrite::{Axis, Family, Layer, Measured, Undo};
use crate::handlers::{REWRITES, of_launches, of_places, place_rewrite};

#[test]
fn ids_are_unique_and_kebab_case() {
    let ids: Vec<&str> = REWRITES.iter().map(|rewrite| rewrite.id).collect();
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
    let is_threshold = |axis: &Axis| matches!(axis, Axis::Threshold(_));
    let is_factor = |axis: &Axis| matches!(axis, Axis::Factor(_));
    let is_combination = |axis: &Axis| *axis == Axis::Combination;
    let is_allocation = |axis: &Axis| *axis == Axis::Allocation;
    let axes: [&dyn Fn(&Axis) -> bool; 4] = [&is_threshold, &is_factor, &is_combination, &is_allocation];
    for is_it in axes {
        assert_eq!(
            REWRITES.iter().filter(|r| r.tunes.as_ref().is_some_and(is_it)).count(),
            1
        );
    }
    for rewrite in REWRITES {
        if let Some(Axis::Threshold(option) | Axis::Factor(option)) = rewrite.tunes {
            assert!(rewrite.options.iter().any(|spec| spec.name == option), "{}", rewrite.id);
        }
    }
}

/// What collects launches changes how a program is built up: nobody finds that done unasked.
#[test]
fn what_is_unattended_keeps_the_structure() {
    let unattended: Vec<&str> = of_launches()
        .filter(|rewrite| rewrite.unattended)
        .map(|rewrite| rewrite.id)
        .collect();
    assert_eq!(unattended, ["fire-and-forget"]);
    for rewrite in of_launches().filter(|rewrite| rewrite.family == Family::Aggregation) {
        assert_eq!(rewrite.measured, Measured::BehindThreshold, "{}", rewrite.id);
    }
}

/// `measure` and `tune` work on launches: nothing else says that they take it.
#[test]
fn what_stands_at_a_place_is_neither_measured_nor_tuned() {
    for rewrite in of_places() {
        assert_eq!(
            (rewrite.measured, rewrite.tunes),
            (Measured::No, None),
            "{}",
            rewrite.id
        );
    }
}

/// `revert` finds out by a layer's looks which rewrite puts it on again, so that is one rewrite of launches; what a place's puts on is
/// one of these layers. The page of `revert` names all of them.
#[test]
fn a_layer_is_one_rewrite_s() {
    let revert = place_rewrite("revert").expect("the rewrite");
    for rewrite in REWRITES {
        match rewrite.undo {
            Undo::Layer(layer) => {
                let on = of_launches().filter(|other| other.undo == rewrite.undo);
                assert_eq!(on.count(), 1, "{}: {layer:?}", rewrite.id);
                let named = |id: &str| revert.doc.contains(&format!("`{id}`"));
                let of_several = ["aggregate-", "promote"]
                    .iter()
                    .any(|start| rewrite.id.starts_with(start) && named(&format!("{start}*")));
                assert!(
                    !rewrite.target.is_launch() || named(rewrite.id) || of_several,
                    "{}",
                    rewrite.id
                );
                let collects = matches!(layer, Layer::Collected(_));
                assert_eq!(collects, rewrite.family == Family::Aggregation, "{}", rewrite.id);
            }
            Undo::EachStep => assert_eq!(rewrite.family, Family::Composition, "{}", rewrite.id),
            Undo::Not(why) => assert!(!why.is_empty() && !why.ends_with('.'), "{}: {why}", rewrite.id),
        }
    }
}
