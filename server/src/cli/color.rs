//! `--color`: whether what is printed is coloured.

use std::ffi::OsString;

use clap::ValueEnum;

/// When to colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set; everywhere if CLICOLOR_FORCE is
    #[default]
    Auto,
    /// Everywhere
    Always,
    /// Nowhere
    Never,
}

impl Color {
    /// What the arguments of the command line say. They are looked at before they are understood: also what is wrong in them is told
    /// in colour or without.
    pub fn of(arguments: impl IntoIterator<Item = OsString>) -> Color {
        let mut color = Color::Auto;
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            let word = argument.to_string_lossy();
            let value = match (word.as_ref(), word.strip_prefix("--color=")) {
                ("--", _) => break,
                ("--color", _) => arguments.next().map(|value| value.to_string_lossy().into_owned()),
                (_, value) => value.map(str::to_owned),
            };
            let understood = value.and_then(|value| Color::from_str(&value, false).ok());
            color = understood.unwrap_or(color);
        }
        color
    }

    /// From now on, everything is printed so.
    pub fn apply(self) {
        match self {
            // It asks the terminal and the environment.
            Color::Auto => anstream::ColorChoice::Auto,
            Color::Always => anstream::ColorChoice::Always,
            Color::Never => anstream::ColorChoice::Never,
        }
        .write_global();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_found_among_the_arguments() {
        let of = |line: &str| Color::of(line.split(' ').map(OsString::from));
        assert_eq!(of("gridfuse check a.cu"), Color::Auto);
        assert_eq!(of("gridfuse --color always check a.cu"), Color::Always);
        assert_eq!(of("gridfuse check --color=never --nonsense"), Color::Never);
        assert_eq!(of("gridfuse check --color"), Color::Auto);
        assert_eq!(of("gridfuse check --color loud"), Color::Auto);
        assert_eq!(of("gridfuse check -- --color=never"), Color::Auto);
    }
}
