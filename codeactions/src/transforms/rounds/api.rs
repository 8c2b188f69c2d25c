//! The calls of CUDA's runtime that a host's loop makes between its kernels.

use gridfuse_analysis::hir::resolve::functions_in;
use gridfuse_analysis::hir::{BindingId, ExprId, ExprKind, Literal, Name};

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
    functions_in(function.db, function.item, name)
        .is_empty()
        .then_some(call)
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
