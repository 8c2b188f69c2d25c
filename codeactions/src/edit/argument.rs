//! Arguments of generated calls with the names of the parameters that they are for.

/// An argument with the name of the parameter in front of it, where it is a number, which says nothing by itself.
pub fn named(parameter: &str, argument: &str) -> String {
    match argument.parse::<u64>() {
        Ok(_) => format!("/*{parameter}=*/{argument}"),
        Err(_) => argument.to_owned(),
    }
}

/// The size of a grid and that of its blocks. Of two numbers nobody knows which is which; one number below what is computed from it is clear.
pub fn named_sizes(grid: &str, block: &str) -> [String; 2] {
    let is_number = |size: &str| size.parse::<u64>().is_ok();
    match is_number(grid) && is_number(block) {
        true => [named("grid", grid), named("block", block)],
        false => [grid.to_owned(), block.to_owned()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_get_names() {
        assert_eq!(named("stream", "0"), "/*stream=*/0");
        assert_eq!(named("stream", "stream"), "stream");
        assert_eq!(named_sizes("1", "32"), ["/*grid=*/1", "/*block=*/32"]);
        assert_eq!(named_sizes("(n + 31) / 32", "32"), ["(n + 31) / 32", "32"]);
    }
}
