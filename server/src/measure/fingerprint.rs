//! Whether a program's code has changed: a number that stays the same when only comments and white space change.

use gridfuse_analysis::base::db::{Db, SourceFile};
use gridfuse_analysis::hir::included::included_files;
use gridfuse_codeactions::edit::lex::{TokenKind, tokens};

/// FNV-1a: the same on every machine and in every version.
struct Fnv(u64);

impl Fnv {
    fn new() -> Self {
        Fnv(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
}

/// A number for a text.
pub fn of_text(text: &str) -> u64 {
    let mut hash = Fnv::new();
    hash.add(text.as_bytes());
    hash.0
}

/// A number for the code of a file.
#[salsa::tracked(returns(copy))]
pub fn of_file(db: &dyn Db, file: SourceFile) -> u64 {
    of_code(&file.text(db))
}

/// A number for code.
pub fn of_code(text: &str) -> u64 {
    let mut hash = Fnv::new();
    for token in tokens(text).iter().filter(|token| token.kind != TokenKind::Comment) {
        hash.add(token.text(text).as_bytes());
        hash.add(&[0]);
    }
    hash.0
}

/// The number for the program of `file`: the file and what it includes, as far as that is known.
pub fn of_program(db: &dyn Db, file: SourceFile) -> u64 {
    let mut files: Vec<u64> = included_files(db, file).iter().map(|file| of_file(db, *file)).collect();
    files.sort_unstable();
    let mut hash = Fnv::new();
    for file in files {
        hash.add(&file.to_le_bytes());
    }
    hash.0
}
