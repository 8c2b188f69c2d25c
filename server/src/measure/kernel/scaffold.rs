//! A proposal for a run specification, by the names and types of a kernel's parameters. The user reads it before it's run.

use super::host_program::{Kernel, Parameter};
use super::types::{Element, Scalar, scalar};

/// Names of parameters that say how much there is.
const SIZES: &[&str] = &[
    "n",
    "count",
    "size",
    "num",
    "len",
    "length",
    "nodes",
    "vertices",
    "num_nodes",
    "num_vertices",
    "numNodes",
    "numVertices",
    "nodeCount",
    "total",
    "elements",
];

/// Names of parameters that hold where each row of a graph begins.
const ROWS: &[&str] = &[
    "row",
    "rows",
    "row_ptr",
    "rowPtr",
    "row_offsets",
    "rowOffsets",
    "offsets",
    "offset",
    "row_start",
    "first",
    "begin",
    "starts",
    "xadj",
    "indptr",
];

/// Names of parameters that hold where the edges lead.
const COLUMNS: &[&str] = &[
    "col",
    "cols",
    "col_idx",
    "colIdx",
    "columns",
    "column_indices",
    "edges",
    "edge",
    "neighbors",
    "neighbours",
    "adj",
    "adjncy",
    "adjacency",
    "indices",
    "targets",
];

fn is(parameter: &Parameter, names: &[&str]) -> bool {
    let bare = parameter.name.trim_start_matches("d_").trim_end_matches('_');
    names.iter().any(|name| name.eq_ignore_ascii_case(bare))
}

/// The comment for a kernel.
pub fn comment(kernel: &Kernel) -> String {
    let sized = kernel
        .parameters
        .iter()
        .find(|parameter| is(parameter, SIZES) && parameter.value.as_deref().and_then(scalar).is_some_and(is_integer));
    let size = sized.map_or("n", |parameter| parameter.name.as_str());
    let template: Vec<&str> = kernel
        .template
        .iter()
        .map(|parameter| parameter.name.as_str())
        .collect();
    let template = match template.as_slice() {
        [] => String::new(),
        names => format!("{}<{}>", kernel.name, names.join(", ")),
    };
    let mut text = format!("// gridfuse: run {template}<<<({size} + 255) / 256, 256>>>\n//   {size} = 16384\n");
    let integers = |parameter: &&Parameter| parameter.element.as_deref().and_then(scalar).is_some_and(is_integer);
    let pointers = || kernel.parameters.iter().filter(integers);
    let graph = pointers().any(|parameter| is(parameter, ROWS)) && pointers().any(|parameter| is(parameter, COLUMNS));
    if graph {
        text += &format!("//   graph = csr(rmat, {size})\n");
    }
    for parameter in &kernel.parameters {
        if parameter.name == size || parameter.has_default {
            continue;
        }
        let value = match () {
            () if graph && integers(&parameter) && is(parameter, ROWS) => "graph.row".to_owned(),
            () if graph && integers(&parameter) && is(parameter, COLUMNS) => "graph.col".to_owned(),
            // One more than there are rows: where the last one ends.
            () if integers(&parameter) && is(parameter, ROWS) => format!("iota({size} + 1)"),
            () => value(parameter, size),
        };
        text += &format!("//   {} = {value}\n", parameter.name);
    }
    text
}

/// A line for one parameter, as messages show it.
pub fn example(parameter: &Parameter) -> String {
    format!("`{} = {}`", parameter.name, value(parameter, "n"))
}

fn value(parameter: &Parameter, size: &str) -> String {
    match (&parameter.element, &parameter.value) {
        (Some(element), _) => match scalar(element) {
            _ if !parameter.spelled.contains("const") => format!("zeros({size})"),
            Some(kind) if is_integer(kind) => format!("random({size}, 0, 99)"),
            Some(_) => format!("random({size}, 0.0, 1.0)"),
            None => format!("zeros({size})"),
        },
        (None, Some(base)) => match scalar(base) {
            Some(kind) if is_integer(kind) => "1".to_owned(),
            Some(_) => "1.0".to_owned(),
            None => format!("code({base}{{}})"),
        },
        (None, None) => "code(…)".to_owned(),
    }
}

fn is_integer(kind: Scalar) -> bool {
    matches!(kind.element, Element::Signed | Element::Unsigned)
}
