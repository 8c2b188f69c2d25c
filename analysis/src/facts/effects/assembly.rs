//! Questions about inline assembly.

use crate::base::place::FileRange;
use crate::hir::assembly::assembly_may_have;

/// Inline assembly that a function or something that it calls holds.
#[derive(Clone, Debug, PartialEq, Eq, salsa::SalsaValue)]
pub struct Assembly {
    /// See [`assembly_text`](crate::hir::assembly::assembly_text).
    pub text: Option<String>,
    /// Where: a macro's use, when it comes out of that.
    pub place: FileRange,
}

impl Assembly {
    /// It has one of these words, or may have it.
    pub fn may_have(&self, wanted: &[&str]) -> bool {
        assembly_may_have(self.text.as_deref(), wanted)
    }

    /// What it does depends on its operands and memory alone, and not on which thread runs it or which others there are. Asks for
    /// registers of the machine by their percent sign, as operands are numbers.
    pub fn computes_alone(&self) -> bool {
        const TOGETHER: &[&str] = &[
            "activemask",
            "vote",
            "match",
            "shfl",
            "redux",
            "elect",
            "bar",
            "barrier",
            "mbarrier",
            "mma",
            "wmma",
            "wgmma",
            "ldmatrix",
            "stmatrix",
            "movmatrix",
            "tcgen05",
            "cluster",
            "multicast",
        ];
        let Some(text) = &self.text else { return false };
        let text = text.replace("%%", "%");
        let mut registers = text.split('%').skip(1);
        let only_operands = registers.all(|r| {
            let end = r.find(|c: char| !c.is_alphanumeric() && c != '_');
            let name = r.get(..end.unwrap_or(r.len())).unwrap_or("");
            let clock = matches!(name, "clock" | "clock64" | "globaltimer");
            clock || !name.is_empty() && name.bytes().all(|b| b.is_ascii_digit())
        });
        only_operands && !self.may_have(TOGETHER)
    }
}
