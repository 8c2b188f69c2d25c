//! Names that are written as a family: `{a,b}c` stands for `ac` and `bc`, `sin{,f}` for `sin` and `sinf`. Several braces multiply.

/// The names that a pattern stands for.
pub(super) fn expand(pattern: &str) -> Vec<String> {
    let Some((before, rest)) = pattern.split_once('{') else {
        return vec![pattern.to_owned()];
    };
    let Some((inside, behind)) = rest.split_once('}') else {
        return vec![pattern.to_owned()];
    };
    let ends = expand(behind);
    inside
        .split(',')
        .flat_map(|part| ends.iter().map(move |end| format!("{before}{part}{end}")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::expand;

    #[test]
    fn families() {
        assert_eq!(expand("sin"), ["sin"]);
        assert_eq!(expand("{sin,cos}{,f}"), ["sin", "sinf", "cos", "cosf"]);
        assert_eq!(expand("__f{add}_r{n,z}"), ["__fadd_rn", "__fadd_rz"]);
        assert_eq!(expand("{open"), ["{open"]);
    }
}
