//! Places as other programs count them: lines and columns from 1, columns in characters.

use gridfuse_analysis::base::db::Db;
use gridfuse_analysis::base::place::FileRange;

use crate::line_index::line_index;

/// First character and the one after the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CharRegion {
    /// Line and column of the first character.
    pub start: (u32, u32),
    /// Line and column after the last character.
    pub end: (u32, u32),
}

impl CharRegion {
    /// The region of a place.
    pub fn of(db: &dyn Db, place: FileRange) -> CharRegion {
        let text = place.file.text(db);
        let position = |offset: u32| {
            let offset = text.floor_char_boundary(offset as usize);
            let (line, start) = line_index(db, place.file).line(offset as u32);
            let before = text.get(start as usize..offset).unwrap_or_default();
            (line + 1, before.chars().count() as u32 + 1)
        };
        CharRegion {
            start: position(place.range.start),
            end: position(place.range.end),
        }
    }
}
