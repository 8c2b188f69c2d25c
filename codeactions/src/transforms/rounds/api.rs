//! The calls of CUDA's runtime that a host's loop makes between its kernels.

use gridfuse_analysis::base::db::SourceFile;
use gridfuse_analysis::hir::included::included_files;
use gridfuse_analysis::hir::resolve::{Meaning, functions_in, meaning_in};
use gridfuse_analysis::hir::{BindingId, ExprId, ExprKind, Literal, Name};

use crate::edit::lex;
use crate::facts::calls::VECTORS;
use crate::facts::cluster::Function;

/// What a call is to the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// It waits for what is done before, or asks for errors of it: nothing, where all is done in order.
    Waits {
        /// For all streams.
        everything: bool,
    },
    /// `cudaMemset(place, value, bytes)`; the argument that names the stream.
    Set(Option<usize>),
    /// `cudaMemcpy(to, from, bytes, kind)`; the argument that names the stream.
    Copy(Option<usize>),
    /// `cudaMemcpyFromSymbol(to, symbol, bytes, offset, kind)`
    FromSymbol(Option<usize>),
    /// `cudaMemcpyToSymbol(symbol, from, bytes, offset, kind)`
    ToSymbol(Option<usize>),
    /// `std::swap(a, b)`
    Swap,
}

/// What is called by this name, if the program doesn't define it itself.
pub fn named(function: &Function<'_>, name: &str) -> Option<Call> {
    let call = match name.trim_start_matches("::") {
        "cudaDeviceSynchronize" | "cudaThreadSynchronize" => Call::Waits { everything: true },
        "cudaStreamSynchronize" | "cudaGetLastError" | "cudaPeekAtLastError" => Call::Waits { everything: false },
        "cudaMemset" => Call::Set(None),
        "cudaMemsetAsync" => Call::Set(Some(3)),
        "cudaMemcpy" => Call::Copy(None),
        "cudaMemcpyAsync" => Call::Copy(Some(4)),
        "cudaMemcpyFromSymbol" => Call::FromSymbol(None),
        "cudaMemcpyFromSymbolAsync" => Call::FromSymbol(Some(5)),
        "cudaMemcpyToSymbol" => Call::ToSymbol(None),
        "cudaMemcpyToSymbolAsync" => Call::ToSymbol(Some(5)),
        "std::swap" | "swap" => Call::Swap,
        _ => return None,
    };
    is_the_librarys(function, name, call).then_some(call)
}

/// Whether nothing of the program has the name of a function of the library: no function, no object with a call operator, no name that a
/// using-declaration brings in.
fn is_the_librarys(function: &Function<'_>, name: &str, call: Call) -> bool {
    let Function {
        db, item, file, body, ..
    } = function;
    if !functions_in(*db, *item, name).is_empty() || body.declared.contains(name) {
        return false;
    }
    if matches!(meaning_in(*db, *item, name), Meaning::Global(_) | Meaning::Type) {
        return false;
    }
    let brought_in = |file: &SourceFile| {
        let text = file.text(*db);
        let words: Vec<&str> = lex::code_words(&text);
        words
            .windows(4)
            .any(|w| w[0] == "using" && w[1] != "namespace" && w[1] != "std" && w.contains(&"swap"))
    };
    !(call == Call::Swap && name == "swap" && included_files(*db, *file).iter().any(brought_in))
}

/// Whether the host waits in a call of CUDA's runtime until the device has done what comes before.
pub fn waits(function: &Function<'_>, call: ExprId) -> bool {
    let ExprKind::Call {
        name: Some(name), args, ..
    } = &function.body.expr(call).kind
    else {
        return false;
    };
    let waits = match name.trim_start_matches("::") {
        "cudaDeviceSynchronize" | "cudaThreadSynchronize" | "cudaStreamSynchronize" | "cudaMemcpyFromSymbol" => true,
        // A copy within the device's memory is only begun.
        "cudaMemcpy" => {
            let direction = args.get(3).and_then(|kind| direction(function, *kind));
            direction.is_some_and(|to| to == Direction::ToHost || to == Direction::ToDevice)
        }
        _ => false,
    };
    waits && named(function, name).is_some()
}

/// Where a copy goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the device's memory into the host's.
    ToHost,
    /// From the host's memory into the device's.
    ToDevice,
    /// Within the device's memory.
    Within,
    /// CUDA finds out by the addresses.
    ByAddress,
}

/// The direction that an argument names.
pub fn direction(function: &Function<'_>, kind: ExprId) -> Option<Direction> {
    let body = &function.body;
    match &body.expr(body.strip_parens(kind)).kind {
        ExprKind::Name(Name::Other(name)) => match name.trim_start_matches("::") {
            "cudaMemcpyDeviceToHost" => Some(Direction::ToHost),
            "cudaMemcpyHostToDevice" => Some(Direction::ToDevice),
            "cudaMemcpyDeviceToDevice" => Some(Direction::Within),
            "cudaMemcpyDefault" => Some(Direction::ByAddress),
            _ => None,
        },
        _ => None,
    }
}

/// Whether an expression is a variable of one of CUDA's classes, for which the program may have operators of its own.
pub fn is_vector(function: &Function<'_>, expr: ExprId) -> bool {
    let body = &function.body;
    match body.expr(body.strip_parens(expr)).kind {
        ExprKind::Name(Name::Local(binding)) => {
            let ty = &body.binding(binding).ty;
            ty.pointers == 0 && (ty.base == "dim3" || VECTORS.contains(&ty.base.as_str()))
        }
        _ => false,
    }
}

/// Whether a variable holds an error of CUDA's.
pub fn is_error(function: &Function<'_>, binding: BindingId) -> bool {
    let ty = &function.body.binding(binding).ty;
    let base = ty.base.trim_start_matches("enum ");
    let generic = function.item.signature(function.db).template_types.contains(&ty.base);
    ty.pointers == 0 && (generic || matches!(base, "cudaError_t" | "cudaError" | "::cudaError_t"))
}

/// Whether an expression is 0 without looking: the stream that is no stream, an offset.
pub fn is_zero(function: &Function<'_>, expr: ExprId) -> bool {
    let body = &function.body;
    match &body.expr(body.strip_parens(expr)).kind {
        ExprKind::Literal(Literal::Int(0) | Literal::Null) => true,
        ExprKind::Cast { operand, .. } => is_zero(function, *operand),
        _ => false,
    }
}
