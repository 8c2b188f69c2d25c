//! A rule's code becomes a choice between itself and the code without it.

use anyhow::{Result, bail, ensure};

use super::Rule;

/// The environment variable with the number of the rule that is taken out.
pub const VARIABLE: &str = "GRIDFUSE_RULE_TAKEN_OUT";

/// The module that looks at it: in the analyses, which both crates see.
pub(super) const MODULE: &str = r#"//! Which rule is taken out.

use std::sync::LazyLock;

static TAKEN_OUT: LazyLock<Option<usize>> =
    LazyLock::new(|| std::env::var("GRIDFUSE_RULE_TAKEN_OUT").ok().and_then(|number| number.parse().ok()));

/// Whether it is this one.
pub fn is_out(number: usize) -> bool {
    *TAKEN_OUT == Some(number)
}
"#;

/// The module's name.
pub(super) const MODULE_NAME: &str = "rule_taken_out";

/// A file's text in which these rules, each with its number, are choices.
pub(super) fn with_choices(file: &str, text: &str, rules: &[(usize, &Rule)]) -> Result<String> {
    let mut places: Vec<(usize, usize, &Rule)> = Vec::new();
    for (number, rule) in rules {
        let mut found = text.match_indices(&rule.find);
        let (Some((at, _)), None) = (found.next(), found.next()) else {
            bail!(
                "\"{}\": its `find` has to stand exactly once in {file}; change it in tests/rule-mutants/rules.toml",
                rule.name
            );
        };
        places.push((at, *number, rule));
    }
    places.sort_by_key(|(at, ..)| *at);
    let mut out = String::new();
    let mut copied = 0;
    for (at, number, rule) in places {
        ensure!(
            at >= copied,
            "\"{}\": another rule of {file} is a part of it; take a smaller `find`",
            rule.name
        );
        out.push_str(text.get(copied..at).unwrap_or_default());
        out.push_str(&choice(file, number, rule)?);
        copied = at + rule.find.len();
    }
    out.push_str(text.get(copied..).unwrap_or_default());
    Ok(out)
}

fn choice(file: &str, number: usize, rule: &Rule) -> Result<String> {
    let root = match file.starts_with("analysis/") {
        true => "crate",
        false => "gridfuse_analysis",
    };
    let is_out = format!("{root}::{MODULE_NAME}::is_out({number})");
    let (find, replace) = (rule.find.trim(), rule.replace.trim());
    if find.contains("=>") {
        return arm(&is_out, find, replace, &rule.name);
    }
    if find.ends_with([';', '}']) {
        return Ok(format!("if {is_out} {{ {replace} }} else {{ {find} }}"));
    }
    ensure!(
        !replace.is_empty(),
        "\"{}\": an expression has to be replaced by another one",
        rule.name
    );
    Ok(format!("(if {is_out} {{ {replace} }} else {{ {find} }})"))
}

/// The arm without the rule stands in front of the other one; where it is left out, the other one isn't taken.
fn arm(is_out: &str, find: &str, replace: &str, name: &str) -> Result<String> {
    let guarded = |arm: &str, condition: &str| {
        let (head, value) = arm.split_once("=>")?;
        let head = head.trim_end();
        Some(match head.split_once(" if ") {
            Some((pattern, guard)) => format!("{pattern} if {condition} && ({guard}) =>{value}"),
            None => format!("{head} if {condition} =>{value}"),
        })
    };
    let made = match replace.is_empty() {
        true => guarded(find, &format!("!{is_out}")),
        false => guarded(replace, is_out).map(|without| format!("{without}\n{find}")),
    };
    match made {
        Some(made) => Ok(made),
        None => bail!("\"{name}\": the arm of a match has to be replaced by another one, or by nothing"),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn made(find: &str, replace: &str) -> String {
        let rule = Rule {
            name: "a rule".to_owned(),
            class: String::new(),
            file: String::new(),
            find: find.to_owned(),
            replace: replace.to_owned(),
            killer: None,
        };
        with_choices("analysis/src/a.rs", &format!("<{find}>"), &[(7, &rule)]).unwrap()
    }

    #[test]
    fn choices() {
        let out = "crate::rule_taken_out::is_out(7)";
        assert_eq!(made("a && b", "a"), format!("<(if {out} {{ a }} else {{ a && b }})>"));
        assert_eq!(made("f();", ""), format!("<if {out} {{  }} else {{ f(); }}>"));
        assert_eq!(made("A if c => 1,", ""), format!("<A if !{out} && (c) => 1,>"));
        assert_eq!(
            made("A | B => 1,", "_ => 2,"),
            format!("<_ if {out} => 2,\nA | B => 1,>")
        );
    }

    #[test]
    fn what_does_not_stand_there_once_is_said() {
        let rule = Rule {
            name: "a rule".to_owned(),
            class: String::new(),
            file: String::new(),
            find: "x".to_owned(),
            replace: "y".to_owned(),
            killer: None,
        };
        for text in ["", "x x"] {
            assert!(with_choices("a.rs", text, &[(1, &rule)]).is_err(), "{text}");
        }
    }
}
