//! Where the functions of a file stand: which ones are at a place.

use crate::base::db::{Db, SourceFile};
use crate::base::span::TextRange;
use crate::hir::items::{FunctionItem, items};
use crate::hir::outline::outline_in_text;

/// Where the functions of a file stand, so that a place's are found without a look at all.
#[derive(Clone, Debug, Default, PartialEq, Eq, salsa::SalsaValue)]
struct Extents {
    /// Start, end and number of each, by their start.
    functions: Vec<(u32, u32, u32)>,
    /// How far each and those in front of it reach: functions may stand within each other.
    reach: Vec<u32>,
}

impl Extents {
    fn new(ranges: impl Iterator<Item = (u32, u32)>) -> Extents {
        let numbered = ranges.zip(0u32..).map(|((start, end), number)| (start, end, number));
        let mut functions: Vec<(u32, u32, u32)> = numbered.collect();
        functions.sort_unstable();
        let mut furthest = 0;
        let reach = functions.iter().map(|(_, end, _)| {
            furthest = furthest.max(*end);
            furthest
        });
        Extents {
            reach: reach.collect(),
            functions,
        }
    }

    /// The numbers of those that have a byte in common with `range`, or touch it, in the order of the numbers.
    fn near(&self, range: TextRange) -> Vec<u32> {
        let first = self.reach.partition_point(|reach| *reach < range.start);
        let ahead = self.functions.iter().skip(first);
        let near = ahead.take_while(|(start, _, _)| *start <= range.end);
        let near = near.filter(|(_, end, _)| *end >= range.start);
        let mut numbers: Vec<u32> = near.map(|(_, _, number)| *number).collect();
        numbers.sort_unstable();
        numbers
    }
}

#[salsa::tracked]
fn extents(db: &dyn Db, file: SourceFile) -> Extents {
    let functions = items(db, file).functions.iter();
    // Both in source order.
    let located = functions.zip(&outline_in_text(db, file).starts);
    Extents::new(located.map(|(function, start)| (*start, start + function.text(db).len() as u32)))
}

/// The functions of a file that have a byte in common with `range`, or touch it, in source order.
pub fn functions_near<'db>(db: &'db dyn Db, file: SourceFile, range: TextRange) -> Vec<FunctionItem<'db>> {
    let functions = &items(db, file).functions;
    let numbers = extents(db, file).near(range).into_iter();
    numbers
        .filter_map(|number| functions.get(number as usize).copied())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_near_a_place_are_those_that_a_look_at_all_finds() {
        // Behind each other, touching, and within each other.
        let ranges = [(0, 10), (10, 20), (12, 14), (15, 20), (30, 40), (31, 60), (50, 55)];
        let extents = Extents::new(ranges.into_iter());
        for start in 0..70u32 {
            for end in start..70 {
                let touching = |(from, to): &(u32, u32)| *from <= end && *to >= start;
                let expected: Vec<u32> = (0..)
                    .zip(&ranges)
                    .filter(|(_, r)| touching(r))
                    .map(|(n, _)| n)
                    .collect();
                assert_eq!(extents.near(TextRange::new(start, end)), expected, "{start}..{end}");
            }
        }
    }
}
