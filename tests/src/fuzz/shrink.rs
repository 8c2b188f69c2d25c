//! Makes a failing program smaller, on its tree, as long as it fails in the same way (delta debugging: Zeller, Hildebrandt 2002).

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::ast::{Expr, Function, Item, Launch, LaunchForm, Layout, Program, Stmt, int};

/// Shrinks a program; `fails` says whether a candidate still fails in the same way. Ends when nothing can be taken away any
/// more, or when the time is over. Returns the number of candidates that were tried as well.
pub fn shrink(program: &Program, limit: Duration, mut fails: impl FnMut(&Program) -> bool) -> (Program, u32) {
    let end = Instant::now() + limit;
    let mut best = program.clone();
    let mut tried = 0;
    let plain = Program {
        layout: Layout {
            indent: "    ",
            allman: false,
            crlf: false,
            header_suffix: ".cuh",
        },
        cuts: Vec::new(),
        ..best.clone()
    };
    tried += 1;
    if fails(&plain) {
        best = plain;
    }
    let passes: [fn(&mut Program, usize) -> bool; 7] = [
        remove_item,
        remove_statements,
        unwrap_statement,
        remove_parameter,
        shorten_launch,
        simplify_expression,
        shrink_number,
    ];
    loop {
        let before = size(&best);
        for pass in passes {
            let mut at = 0;
            loop {
                if Instant::now() > end {
                    return (best, tried);
                }
                let mut candidate = best.clone();
                if !pass(&mut candidate, at) {
                    break;
                }
                sweep(&mut candidate);
                if size(&candidate) >= size(&best) {
                    at += 1;
                    continue;
                }
                tried += 1;
                if fails(&candidate) {
                    best = candidate;
                } else {
                    at += 1;
                }
            }
        }
        if size(&best) >= before {
            return (best, tried);
        }
    }
}

/// Something that every step makes smaller.
fn size(program: &Program) -> usize {
    let mut size = 0;
    for item in &program.items {
        size += 20;
        match item {
            Item::Text(text) => size += text.len(),
            Item::Function(function) => {
                size += function.params.len() * 10 + function.head.len();
                size += statements_size(&function.body);
            }
        }
    }
    size
}

fn statements_size(stmts: &[Stmt]) -> usize {
    let mut size = 0;
    for stmt in stmts {
        size += 5;
        let mut copy = stmt.clone();
        for list in lists(&mut copy) {
            size += statements_size(list);
        }
        for expr in expressions(&mut copy) {
            size += expression_size(expr);
        }
        if let Stmt::Text(text) = stmt {
            size += text.len();
        }
    }
    size
}

fn expression_size(expr: &Expr) -> usize {
    let children = |exprs: &[Expr]| exprs.iter().map(expression_size).sum::<usize>();
    2 + match expr {
        Expr::Atom(text) => text
            .parse::<u64>()
            .map_or(2, |n| n.to_string().len() + n.min(20) as usize / 4),
        Expr::Unary(_, x) | Expr::Postfix(_, x) | Expr::Cast(_, x) | Expr::Member(x, _) => expression_size(x),
        Expr::Binary(_, x, y) | Expr::Index(x, y) => expression_size(x) + expression_size(y),
        Expr::Conditional(c, x, y) => expression_size(c) + expression_size(x) + expression_size(y),
        Expr::Call(_, args) | Expr::Braces(_, args) => 3 + children(args),
        Expr::Launch(launch) => launch_size(launch),
    }
}

fn launch_size(launch: &Launch) -> usize {
    let form = usize::from(launch.form != LaunchForm::Plain);
    let exprs = launch.config.iter().chain(&launch.args);
    10 + form + exprs.map(expression_size).sum::<usize>()
}

/// Lists of statements directly inside a statement.
fn lists(stmt: &mut Stmt) -> Vec<&mut Vec<Stmt>> {
    match stmt {
        Stmt::If { then, otherwise, .. } => vec![then, otherwise],
        Stmt::For { body, .. } | Stmt::While { body, .. } | Stmt::DoWhile { body, .. } | Stmt::Block(body) => {
            vec![body]
        }
        Stmt::Switch { cases, .. } => cases.iter_mut().map(|(_, body)| body).collect(),
        _ => Vec::new(),
    }
}

/// Expressions directly inside a statement; those of a launch are its operands.
fn expressions(stmt: &mut Stmt) -> Vec<&mut Expr> {
    match stmt {
        Stmt::Declare { init, .. } => init.iter_mut().collect(),
        Stmt::Construct { args, .. } => args.iter_mut().collect(),
        Stmt::Expr(expr) | Stmt::Return(expr) => vec![expr],
        Stmt::If { cond, .. } | Stmt::While { cond, .. } | Stmt::DoWhile { cond, .. } => vec![cond],
        Stmt::For { init, cond, step, .. } => vec![&mut init.2, cond, step],
        Stmt::Switch { on, .. } => vec![on],
        Stmt::Launch(launch) => launch.config.iter_mut().chain(&mut launch.args).collect(),
        Stmt::Block(_) | Stmt::Text(_) => Vec::new(),
    }
}

fn functions(program: &mut Program) -> impl Iterator<Item = &mut Function> {
    program.items.iter_mut().filter_map(|item| match item {
        Item::Function(function) => Some(function),
        Item::Text(_) => None,
    })
}

/// Calls `f` for every list of statements, outer ones first, until it says that it is done.
fn each_list(stmts: &mut Vec<Stmt>, f: &mut impl FnMut(&mut Vec<Stmt>) -> bool) -> bool {
    if f(stmts) {
        return true;
    }
    stmts
        .iter_mut()
        .any(|stmt| lists(stmt).into_iter().any(|list| each_list(list, f)))
}

/// The same for every expression, outer ones first.
fn each_expression(expr: &mut Expr, f: &mut impl FnMut(&mut Expr) -> bool) -> bool {
    if f(expr) {
        return true;
    }
    match expr {
        Expr::Atom(_) => false,
        Expr::Unary(_, x) | Expr::Postfix(_, x) | Expr::Cast(_, x) | Expr::Member(x, _) => each_expression(x, f),
        Expr::Binary(_, x, y) | Expr::Index(x, y) => each_expression(x, f) || each_expression(y, f),
        Expr::Conditional(c, x, y) => each_expression(c, f) || each_expression(x, f) || each_expression(y, f),
        Expr::Call(_, args) | Expr::Braces(_, args) => args.iter_mut().any(|a| each_expression(a, f)),
        Expr::Launch(launch) => {
            let mut operands = launch.config.iter_mut().chain(&mut launch.args);
            operands.any(|e| each_expression(e, f))
        }
    }
}

fn every_expression(program: &mut Program, f: &mut impl FnMut(&mut Expr) -> bool) -> bool {
    functions(program).any(|function| {
        each_list(&mut function.body, &mut |stmts| {
            stmts
                .iter_mut()
                .any(|stmt| expressions(stmt).into_iter().any(|e| each_expression(e, f)))
        })
    })
}

fn remove_item(program: &mut Program, at: usize) -> bool {
    // From the end: what comes later uses what comes earlier.
    let Some(index) = program.items.len().checked_sub(at + 1) else {
        return false;
    };
    program.items.remove(index);
    true
}

/// Removes runs of statements, long ones first.
fn remove_statements(program: &mut Program, at: usize) -> bool {
    let mut left = at;
    for function in functions(program) {
        let done = each_list(&mut function.body, &mut |stmts| {
            let mut width = stmts.len();
            while width > 0 {
                let places = stmts.len().div_ceil(width);
                if left < places {
                    let from = left * width;
                    stmts.drain(from..(from + width).min(stmts.len()));
                    return true;
                }
                left -= places;
                width /= 2;
            }
            false
        });
        if done {
            return true;
        }
    }
    false
}

/// Replaces a statement by what is inside it.
fn unwrap_statement(program: &mut Program, at: usize) -> bool {
    let mut left = at;
    for function in functions(program) {
        let done = each_list(&mut function.body, &mut |stmts| {
            for index in 0..stmts.len() {
                let mut copy = stmts[index].clone();
                let counter = match &copy {
                    Stmt::For {
                        init: (ty, name, first),
                        ..
                    } => Some(super::ast::declare(ty, name, first.clone())),
                    _ => None,
                };
                for list in lists(&mut copy) {
                    if list.is_empty() {
                        continue;
                    }
                    if left == 0 {
                        let mut inside: Vec<Stmt> = counter.into_iter().collect();
                        inside.extend(
                            list.drain(..)
                                .filter(|s| !matches!(s, Stmt::Text(t) if t == "break;" || t == "continue;")),
                        );
                        stmts.splice(index..=index, inside);
                        return true;
                    }
                    left -= 1;
                }
            }
            false
        });
        if done {
            return true;
        }
    }
    false
}

/// Removes a parameter with its arguments at all launches and calls.
fn remove_parameter(program: &mut Program, at: usize) -> bool {
    let mut left = at;
    let mut found = None;
    for function in functions(program) {
        if left < function.params.len() {
            function.params.remove(left);
            found = Some((function.name.clone(), left));
            break;
        }
        left -= function.params.len();
    }
    let Some((name, index)) = found else { return false };
    let same = |called: &str| called.split('<').next() == Some(name.as_str());
    for function in functions(program) {
        each_list(&mut function.body, &mut |stmts| {
            for stmt in stmts.iter_mut() {
                if let Stmt::Launch(launch) = stmt
                    && same(&launch.kernel)
                    && index < launch.args.len()
                {
                    launch.args.remove(index);
                }
            }
            false
        });
    }
    every_expression(program, &mut |expr| {
        match expr {
            Expr::Call(called, args) if same(called) && index < args.len() => {
                args.remove(index);
            }
            Expr::Launch(launch) if same(&launch.kernel) && index < launch.args.len() => {
                launch.args.remove(index);
            }
            _ => {}
        }
        false
    });
    true
}

/// Leaves out the stream, or the shared memory; writes the launch in the plain way.
fn shorten_launch(program: &mut Program, at: usize) -> bool {
    let mut left = at;
    functions(program).any(|function| {
        each_list(&mut function.body, &mut |stmts| {
            for stmt in stmts.iter_mut() {
                let Stmt::Launch(launch) = stmt else { continue };
                if launch.config.len() > 2 {
                    if left == 0 {
                        launch.config.pop();
                        return true;
                    }
                    left -= 1;
                }
                if launch.form != LaunchForm::Plain {
                    if left == 0 {
                        launch.form = LaunchForm::Plain;
                        return true;
                    }
                    left -= 1;
                }
            }
            false
        })
    })
}

/// Replaces an expression by a part of it, or by a number.
fn simplify_expression(program: &mut Program, at: usize) -> bool {
    let mut left = at;
    every_expression(program, &mut |expr| {
        let parts: Vec<Expr> = match &*expr {
            Expr::Atom(_) => return false,
            Expr::Unary("&" | "++" | "--", _) | Expr::Launch(_) => return false,
            Expr::Unary(_, x) | Expr::Cast(_, x) => vec![(**x).clone()],
            Expr::Postfix(..) | Expr::Member(..) => Vec::new(),
            Expr::Binary(op, ..) if op.ends_with('=') && !matches!(*op, "==" | "!=" | "<=" | ">=") => return false,
            Expr::Binary(_, x, y) => vec![(**x).clone(), (**y).clone(), int(0), int(1)],
            Expr::Index(..) => vec![int(1)],
            Expr::Conditional(_, x, y) => vec![(**x).clone(), (**y).clone()],
            Expr::Call(_, args) => args.iter().cloned().chain([int(1)]).collect(),
            Expr::Braces(..) => Vec::new(),
        };
        if left < parts.len() {
            *expr = parts[left].clone();
            return true;
        }
        left -= parts.len();
        false
    })
}

fn shrink_number(program: &mut Program, at: usize) -> bool {
    let mut left = at;
    every_expression(program, &mut |expr| {
        let Expr::Atom(text) = expr else { return false };
        let Ok(number) = text.parse::<i64>() else { return false };
        let smaller: Vec<i64> = match number {
            0 => Vec::new(),
            1 => vec![0],
            2 => vec![1],
            n => vec![1, n / 2, n - 1],
        };
        if left < smaller.len() {
            *expr = int(smaller[left]);
            return true;
        }
        left -= smaller.len();
        false
    })
}

/// Removes functions and texts that nothing mentions any more, and empty statements.
fn sweep(program: &mut Program) {
    for function in functions(program) {
        each_list(&mut function.body, &mut |stmts| {
            stmts.retain_mut(|stmt| match stmt {
                Stmt::If { then, otherwise, .. } => !then.is_empty() || !otherwise.is_empty(),
                Stmt::Block(inner) => !inner.is_empty(),
                _ => true,
            });
            false
        });
    }
    loop {
        let mentioned = words(program);
        let before = program.items.len();
        program.items.retain(|item| match item {
            Item::Function(function) => {
                function.name == "main" || mentioned.iter().filter(|w| **w == function.name).count() > 0
            }
            Item::Text(_) => true,
        });
        if program.items.len() == before {
            return;
        }
    }
}

/// Words in the bodies of functions, each function's own name aside unless another one uses it.
fn words(program: &mut Program) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let split = |text: &str| -> Vec<String> {
        text.split(|c: char| !c.is_alphanumeric() && c != '_')
            .map(str::to_owned)
            .collect()
    };
    for item in &program.items {
        if let Item::Text(text) = item {
            // A declaration or a macro that mentions a function doesn't use it.
            if !text.contains("__global__") {
                found.extend(split(text));
            }
        }
    }
    for function in functions(program) {
        let own = function.name.clone();
        let mut inside: Vec<String> = Vec::new();
        each_list(&mut function.body, &mut |stmts| {
            for stmt in stmts.iter_mut() {
                match stmt {
                    Stmt::Launch(launch) => inside.extend(split(&launch.kernel)),
                    Stmt::Text(text) => inside.extend(split(text)),
                    _ => {}
                }
                for expr in expressions(stmt) {
                    each_expression(expr, &mut |e| {
                        match e {
                            Expr::Atom(text) | Expr::Call(text, _) => inside.extend(split(text)),
                            Expr::Launch(launch) => inside.extend(split(&launch.kernel)),
                            _ => {}
                        }
                        false
                    });
                }
            }
            false
        });
        found.extend(inside.into_iter().filter(|w| *w != own));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::generate::generate;
    use super::super::print::print;
    use super::*;

    /// Shrinks the first programs that have a property that is told from their text.
    fn shrunk(property: fn(&str) -> bool) -> Vec<String> {
        let text = |program: &Program| print(program).files.into_values().collect::<String>();
        (0..40)
            .map(generate)
            .filter(|program| property(&text(program)))
            .take(4)
            .map(|program| {
                let limit = Duration::from_secs(60);
                text(&shrink(&program, limit, |candidate| property(&text(candidate))).0)
            })
            .collect()
    }

    #[test]
    fn only_what_matters_is_left() {
        for text in shrunk(|text| text.contains("atomicMax(")) {
            assert!(text.contains("atomicMax("));
            let code = text.lines().filter(|line| !line.trim().is_empty()).count();
            assert!(code < 12, "{text}");
        }
    }

    #[test]
    fn a_launch_keeps_what_it_is_in() {
        let launches = |text: &str| text.contains("cudaStreamFireAndForget>>>") && text.contains("__syncthreads");
        for text in shrunk(launches) {
            assert!(launches(&text));
            assert!(text.len() < 700, "{text}");
        }
    }
}
