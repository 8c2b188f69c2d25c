//! Words as they are kept in large numbers: by their hashes.

use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// A word as it is kept in large numbers. Two words may share one: whoever acts on a mention looks at its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, salsa::SalsaValue)]
pub struct Word(u64);

impl Word {
    /// The word that `text` is.
    pub fn new(text: &str) -> Word {
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        Word(hasher.finish())
    }
}

impl Hash for Word {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0);
    }
}

/// A [`Word`] is a hash already.
#[derive(Default)]
pub struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = word;
    }
}

/// A map whose keys are words.
pub type WordMap<T> = HashMap<Word, T, BuildHasherDefault<AsItIs>>;

/// A set of words.
pub type WordSet = HashSet<Word, BuildHasherDefault<AsItIs>>;

/// For each word outside of a file's functions: in how many places it stands there, and whether one of them may declare a function.
pub type CountsOutside = WordMap<(u32, bool)>;
