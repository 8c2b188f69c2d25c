//! The launches that a rewrite has yet to be tried at, while the text around them changes.

use gridfuse_analysis::base::span::TextRange;

/// Places of launches, from the last one in the text to the first: what stands in front of an edit stays where it is, mostly. Those that
/// were refused come back once another one has been rewritten: a launch may have waited for one that is gone then.
pub struct Pending {
    todo: Vec<TextRange>,
    refused: Vec<TextRange>,
    changed: bool,
}

impl Pending {
    /// Of these places.
    pub fn new(mut places: Vec<TextRange>) -> Pending {
        places.sort_unstable();
        Pending {
            todo: places,
            refused: Vec::new(),
            changed: false,
        }
    }

    /// The next one; `None` when nothing is left that could come out otherwise than before.
    pub fn next(&mut self) -> Option<TextRange> {
        if self.todo.is_empty() && std::mem::take(&mut self.changed) {
            self.todo = std::mem::take(&mut self.refused);
            self.todo.sort_unstable();
        }
        self.todo.pop()
    }

    /// The rewrite doesn't fit there now.
    pub fn refuse(&mut self, place: TextRange) {
        self.refused.push(place);
    }

    /// One was rewritten; `moved` says where a place is since.
    pub fn rewritten(&mut self, moved: impl Fn(TextRange) -> TextRange) {
        for place in self.todo.iter_mut().chain(&mut self.refused) {
            *place = moved(*place);
        }
        self.changed = true;
    }
}

#[cfg(test)]
mod tests {
    use gridfuse_analysis::base::span::TextRange;

    use super::Pending;

    #[test]
    fn what_was_refused_comes_back_after_an_edit() {
        let at = |start: u32| TextRange::new(start, start + 1);
        let mut pending = Pending::new(vec![at(30), at(10), at(20)]);
        assert_eq!(pending.next(), Some(at(30)));
        pending.refuse(at(30));
        assert_eq!(pending.next(), Some(at(20)));
        // Two bytes more in front of the last one.
        pending.rewritten(|place| if place.start > 20 { at(place.start + 2) } else { place });
        assert_eq!(pending.next(), Some(at(10)));
        pending.refuse(at(10));
        assert_eq!(pending.next(), Some(at(32)));
        pending.refuse(at(32));
        assert_eq!(pending.next(), Some(at(10)));
        pending.refuse(at(10));
        assert_eq!(pending.next(), None);
    }
}
