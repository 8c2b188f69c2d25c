//! Kernels that are looked up by their names: `cuModuleGetFunction(&function, module, "walk")`. Who launches them that way needs no other
//! mention of them.

use crate::base::db::{Db, SourceFile};
use crate::base::place::FileRange;
use crate::base::preprocess::{TokenKind, lex};
use crate::base::span::TextRange;
use crate::base::words::words;
use crate::hir::items::FunctionItem;
use crate::hir::mentions::files_mentioning;
use crate::hir::names::unqualified;

/// Functions that take the name of a kernel (CUDA Driver API, "Module Management", "Library Management"; NVRTC).
pub(super) const LOOK_UP: [&str; 4] = [
    "cuModuleGetFunction",
    "cuLibraryGetKernel",
    "cudaLibraryGetKernel",
    "nvrtcAddNameExpression",
];

/// Literals that may be the name of a kernel, in files that look kernels up: `"walk"`, `"ns::walk<int>"`, `"_Z4walkPii"`.
pub(crate) fn named_in_strings(db: &dyn Db, function: FunctionItem<'_>) -> Vec<FileRange> {
    if !function.signature(db).kernel {
        return Vec::new();
    }
    let name = unqualified(function.name(db));
    let mangled = format!("{}{name}", name.len());
    let names = |literal: &str| {
        let is_mangled = literal.trim_start_matches('"').starts_with("_Z") && literal.contains(&mangled);
        literal.ends_with('"') && (is_mangled || words(literal).any(|word| word == name))
    };
    let mut found = Vec::new();
    let mut files: Vec<SourceFile> = Vec::new();
    for file in LOOK_UP.iter().flat_map(|name| files_mentioning(db, name)) {
        if !files.contains(file) {
            files.push(*file);
        }
    }
    for file in files {
        let text = file.text(db);
        let literals = lex(&text, true)
            .into_iter()
            .filter(|token| token.kind == TokenKind::Literal);
        for token in literals.filter(|token| text.get(token.start..token.end).is_some_and(names)) {
            found.push(FileRange {
                file,
                range: TextRange::new(token.start as u32, token.end as u32),
            });
        }
    }
    found
}
