//! How many threads blocks have, where the compiler knows: numbers, and template parameters, in terms of those of the first kernel.

use std::collections::BTreeSet;

use gridfuse_analysis::facts::launch::constant_value;
use gridfuse_analysis::hir::{ExprId, ExprKind, Name};

use crate::edit::one_line::one_line;
use crate::facts::site::Site;

/// How many threads in one dimension.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Count {
    /// So many.
    Number(u64),
    /// As a template parameter says.
    Parameter(String),
    /// As many as the most of these.
    Largest(Vec<Count>),
}

/// The size of a block.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Threads(pub [Count; 3]);

impl Count {
    fn fits(&self, larger: &Count) -> bool {
        match (self, larger) {
            (Count::Number(a), Count::Number(b)) => a <= b,
            // No block has none.
            (Count::Number(1), _) => true,
            (own, Count::Largest(all)) => all.contains(own),
            (a, b) => a == b,
        }
    }

    /// As it is written where the template parameters have these names or values.
    pub fn code(&self, values: &[(String, String)]) -> String {
        match self {
            Count::Number(number) => number.to_string(),
            Count::Parameter(name) => {
                let known = values.iter().find(|(own, _)| own == name);
                known.map_or_else(|| name.clone(), |(_, value)| value.clone())
            }
            Count::Largest(all) => {
                let all: Vec<String> = all.iter().map(|count| count.code(values)).collect();
                format!("gridfuse::largest({})", all.join(", "))
            }
        }
    }
}

impl Threads {
    /// So many.
    pub fn numbers(size: [u64; 3]) -> Threads {
        Threads(size.map(Count::Number))
    }

    /// The same as numbers, where they are.
    pub fn constant(&self) -> Option<[u64; 3]> {
        let number = |count: &Count| match count {
            Count::Number(number) => Some(*number),
            _ => None,
        };
        let [x, y, z] = &self.0;
        Some([number(x)?, number(y)?, number(z)?])
    }

    /// Only the first dimension has more than one.
    pub fn linear(&self) -> bool {
        self.0[1..].iter().all(|count| *count == Count::Number(1))
    }

    /// Whether a block of the other size has all of these threads.
    pub fn fits(&self, larger: &Threads) -> bool {
        self.0.iter().zip(&larger.0).all(|(a, b)| a.fits(b))
    }

    /// A block size that blocks of all of these fit into.
    pub fn largest(sizes: &[Threads]) -> Option<Threads> {
        let fit = |size: &&Threads| sizes.iter().all(|other| other.fits(size));
        if let Some(found) = sizes.iter().find(fit) {
            return Some(found.clone());
        }
        // In several dimensions together they may be more than a block can have.
        if !sizes.iter().all(Threads::linear) {
            return None;
        }
        let all = || sizes.iter().map(|size| &size.0[0]);
        let number = all().filter_map(|count| match count {
            Count::Number(number) => Some(*number),
            _ => None,
        });
        let number = number.max().filter(|number| *number > 1).map(Count::Number);
        let others: BTreeSet<&Count> = all().filter(|count| !matches!(count, Count::Number(_))).collect();
        let largest = number.into_iter().chain(others.into_iter().cloned()).collect();
        Some(Threads([Count::Largest(largest), Count::Number(1), Count::Number(1)]))
    }

    /// As an operand of a launch.
    pub fn operand(&self, values: &[(String, String)]) -> String {
        match self.linear() {
            true => self.0[0].code(values),
            false => self.dimensions(values),
        }
    }

    /// As a `dim3`.
    pub fn dimensions(&self, values: &[(String, String)]) -> String {
        let [x, y, z] = &self.0;
        let one = Count::Number(1);
        let written: Vec<String> = match (*y == one, *z == one) {
            (true, true) => vec![x.code(values)],
            (_, true) => vec![x.code(values), y.code(values)],
            _ => vec![x.code(values), y.code(values), z.code(values)],
        };
        format!("dim3({})", written.join(", "))
    }
}

/// What the block size of a launch is known to be, in terms of the first kernel's template parameters. `head`: which these are;
/// `own`: what those of the launching kernel are in these terms; `given`: the arguments of a launch of the first kernel from elsewhere.
pub fn of_launch(
    site: &Site<'_>,
    head: &[String],
    own: &[(String, String)],
    given: &[(String, String)],
) -> BTreeSet<Threads> {
    // A launch of others fails.
    let valid = |size: &[u64; 3]| size.iter().all(|n| *n >= 1) && size.iter().product::<u64>() <= 1024 && size[2] <= 64;
    let constant = site.facts.block.constant;
    let mut found: BTreeSet<Threads> = constant.filter(valid).map(Threads::numbers).into_iter().collect();
    if constant.is_some_and(|size| !valid(&size)) {
        return found;
    }
    let Some(components) = site.facts.block.components else {
        return found;
    };
    let counts = components.map(|component| match component {
        None => vec![Count::Number(1)],
        Some(expr) => counts(site, expr, head, own, given),
    });
    let [x, y, z] = &counts;
    for x in x {
        for y in y {
            found.extend(z.iter().map(|z| Threads([x.clone(), y.clone(), z.clone()])));
        }
    }
    found
}

fn counts(
    site: &Site<'_>,
    expr: ExprId,
    head: &[String],
    own: &[(String, String)],
    given: &[(String, String)],
) -> Vec<Count> {
    let mut found = Vec::new();
    let number = constant_value(site.db, site.parent, &site.body, expr).and_then(|value| u64::try_from(value).ok());
    found.extend(number.filter(|number| *number >= 1).map(Count::Number));
    let inner = site.body.strip_parens(expr);
    if let ExprKind::Name(Name::Other(name)) = &site.body.expr(inner).kind {
        let known = own
            .iter()
            .find(|(parameter, _)| parameter == name)
            .map(|(_, value)| value);
        found.extend(known.and_then(|value| match value.parse() {
            Ok(number) => Some(Count::Number(number)).filter(|_| number >= 1),
            Err(_) => head.contains(value).then(|| Count::Parameter(value.clone())),
        }));
    }
    // The same code as a template argument of the launch, at the same place.
    if site.facts.block.operand.span.contains(site.body.expr(inner).span) {
        let written = one_line(site.expr_source(inner));
        let same = given.iter().filter(|(_, value)| one_line(value) == written);
        found.extend(same.map(|(name, _)| Count::Parameter(name.clone())));
    }
    found
}
