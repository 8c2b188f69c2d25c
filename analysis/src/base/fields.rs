//! The grammar's fields by number: comparing their names with all others, each time a child is asked for, took a tenth of the time.

use std::sync::LazyLock;

/// A field of nodes.
pub(crate) struct Field(LazyLock<u16>);

impl Field {
    /// Its number.
    pub fn id(&self) -> u16 {
        *self.0
    }
}

fn number(name: &str) -> u16 {
    let language: tree_sitter::Language = tree_sitter_cuda::LANGUAGE.into();
    // No node has the field 0.
    language.field_id_for_name(name).map_or(0, u16::from)
}

pub(crate) static ALTERNATIVE: Field = Field(LazyLock::new(|| number("alternative")));
pub(crate) static ARGUMENT: Field = Field(LazyLock::new(|| number("argument")));
pub(crate) static ARGUMENTS: Field = Field(LazyLock::new(|| number("arguments")));
pub(crate) static BODY: Field = Field(LazyLock::new(|| number("body")));
pub(crate) static CONDITION: Field = Field(LazyLock::new(|| number("condition")));
pub(crate) static CONSEQUENCE: Field = Field(LazyLock::new(|| number("consequence")));
pub(crate) static DECLARATOR: Field = Field(LazyLock::new(|| number("declarator")));
pub(crate) static DEFAULT_VALUE: Field = Field(LazyLock::new(|| number("default_value")));
pub(crate) static FIELD: Field = Field(LazyLock::new(|| number("field")));
pub(crate) static FUNCTION: Field = Field(LazyLock::new(|| number("function")));
pub(crate) static INDICES: Field = Field(LazyLock::new(|| number("indices")));
pub(crate) static INITIALIZER: Field = Field(LazyLock::new(|| number("initializer")));
pub(crate) static LEFT: Field = Field(LazyLock::new(|| number("left")));
pub(crate) static NAME: Field = Field(LazyLock::new(|| number("name")));
pub(crate) static OPERATOR: Field = Field(LazyLock::new(|| number("operator")));
pub(crate) static PARAMETERS: Field = Field(LazyLock::new(|| number("parameters")));
pub(crate) static PATH: Field = Field(LazyLock::new(|| number("path")));
pub(crate) static RIGHT: Field = Field(LazyLock::new(|| number("right")));
pub(crate) static SIZE: Field = Field(LazyLock::new(|| number("size")));
pub(crate) static TYPE: Field = Field(LazyLock::new(|| number("type")));
pub(crate) static VALUE: Field = Field(LazyLock::new(|| number("value")));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grammar_has_them() {
        let all = [
            &ALTERNATIVE,
            &ARGUMENT,
            &ARGUMENTS,
            &BODY,
            &CONDITION,
            &CONSEQUENCE,
            &DECLARATOR,
            &DEFAULT_VALUE,
            &FIELD,
            &FUNCTION,
            &INDICES,
            &INITIALIZER,
            &LEFT,
            &NAME,
            &OPERATOR,
            &PARAMETERS,
            &PATH,
            &RIGHT,
            &SIZE,
            &TYPE,
            &VALUE,
        ];
        assert!(all.iter().all(|field| field.id() > 0));
    }
}
