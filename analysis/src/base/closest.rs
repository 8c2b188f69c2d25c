//! Which of the known names somebody meant who wrote one that isn't known.

/// The known name that is most like the word, if one is like it: one letter in three may be wrong, missing, too many, or in its
/// neighbour's place.
pub fn closest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.trim().to_lowercase().replace('_', "-");
    let most = (word.chars().count() / 3).max(1);
    known
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(&word, name), name))
        .filter(|(distance, name)| *distance <= most && *distance < name.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::closest;

    #[test]
    fn what_is_like_it_and_nothing_else() {
        let known = ["launch-in-loop", "aggregate-block", "aggregate-grid", "promote", "a"];
        for (word, meant) in [
            ("launch-in-loops", Some("launch-in-loop")),
            ("Launch_in_loop", Some("launch-in-loop")),
            ("agregate-blokc", Some("aggregate-block")),
            ("agregate-gird", Some("aggregate-grid")),
            ("pormote", Some("promote")),
            ("nonsense", None),
            ("b", None),
            ("", None),
        ] {
            assert_eq!(closest(word, known), meant, "{word}");
        }
    }
}
