//! Where gridfuse claims what LLVM denies.

use gridfuse_analysis::facts::uniformity::Level;

use super::llvm::{Among, Llvm, Opinion};
use super::probe::{Claim, Probe, claims, probed};

/// A value that gridfuse calls uniform and LLVM divergent.
#[derive(Clone, Debug)]
pub struct Contradiction {
    /// The source.
    pub source: String,
    /// The number of the value.
    pub id: u32,
    /// The value.
    pub probe: Probe,
    /// What gridfuse says.
    pub claim: Claim,
    /// Among which threads LLVM says that it differs.
    pub among: Among,
}

/// What the comparison of a source came to.
#[derive(Clone, Debug, Default)]
pub struct Compared {
    /// Values that both have an opinion about.
    pub values: usize,
    /// Of these, those that gridfuse calls uniform in the block or the grid.
    pub claimed: usize,
    /// Of these, those that LLVM calls uniform and gridfuse doesn't.
    pub only_llvm: usize,
    /// Functions that clang didn't take.
    pub left_out: usize,
    /// Where they contradict each other.
    pub contradictions: Vec<Contradiction>,
}

/// Compares both opinions on a source. GRIDFUSE_ORACLE_KEEP names a directory where what clang reads is kept.
///
/// # Errors
/// What clang says of a source that it doesn't take.
pub fn compare(llvm: &Llvm, name: &str, source: &str) -> Result<Compared, String> {
    let probed = probed(source);
    if let Some(directory) = std::env::var_os("GRIDFUSE_ORACLE_KEEP") {
        let path = std::path::Path::new(&directory).join(name.replace('/', "_"));
        std::fs::write(path, &probed.device).map_err(|error| error.to_string())?;
    }
    let opinion: Opinion = llvm.opinion(&probed.device)?;
    let mut compared = Compared {
        left_out: opinion.left_out,
        ..Compared::default()
    };
    for (id, claim) in claims(&probed) {
        let Some(probe) = probed.probes.get(&id).filter(|_| opinion.seen.contains(&id)) else {
            continue;
        };
        compared.values += 1;
        compared.claimed += usize::from(claim.level <= Level::Block);
        let differs = |among| opinion.divergent.get(&among).is_some_and(|all| all.contains(&id));
        let among = match claim.level {
            Level::Constant | Level::Grid if differs(Among::Block) => Some(Among::Block),
            Level::Constant | Level::Grid if differs(Among::Grid) => Some(Among::Grid),
            Level::Block if differs(Among::Block) => Some(Among::Block),
            _ => None,
        };
        compared.only_llvm += usize::from(claim.level > Level::Block && !differs(Among::Block));
        if let Some(among) = among {
            compared.contradictions.push(Contradiction {
                source: name.to_owned(),
                id,
                probe: probe.clone(),
                claim,
                among,
            });
        }
    }
    if !compared.contradictions.is_empty() {
        let staying = llvm.opinion(&probed.staying)?;
        let still = |one: &Contradiction| {
            staying
                .divergent
                .get(&one.among)
                .is_some_and(|all| all.contains(&one.id))
        };
        compared.contradictions.retain(still);
    }
    Ok(compared)
}
