//! Why a child can't be cut at its barriers, and where that stands.

use gridfuse_analysis::base::place::FileRange;

use crate::api::refusal::Reason;

/// A reason with its place.
pub fn reason(text: impl Into<String>, place: FileRange) -> Reason {
    Reason {
        text: text.into(),
        place: Some(place),
    }
}
