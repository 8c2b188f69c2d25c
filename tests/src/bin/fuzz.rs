//! `fuzz`
use gridfuse_tests::fuzz::generate::generate;
use gridfuse_tests::fuzz::print::print;
use gridfuse_tests::fuzz::rewrite::{Wish, rewrite, sequence};
use std::collections::BTreeMap;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let (from, count): (u64, u64) = (args[2].parse().unwrap(), args[3].parse().unwrap());
    let mut features: BTreeMap<&str, usize> = BTreeMap::new();
    let mut verdicts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    let (mut with, mut variants, mut bytes) = (0, 0, 0);
    for seed in from..from + count {
        let program = generate(seed);
        let printed = print(&program);
        bytes += printed.files.values().map(String::len).sum::<usize>();
        for f in &program.features {
            *features.entry(f).or_default() += 1;
        }
        let r = rewrite(&printed, &program.ordered_sites, seed, Wish { variants: 12, steps: 3 });
        for m in &r.mistakes {
            println!("seed {seed}: {} {}", sequence(&m.steps), m.what);
        }
        with += usize::from(!r.variants.is_empty());
        variants += r.variants.len();
        for s in &r.said {
            *verdicts.entry((s.id, s.verdict)).or_default() += 1;
            if s.verdict == "ineligible" {
                for reason in &s.reasons {
                    let mut short = String::new();
                    for (i, part) in reason.split('`').enumerate() {
                        short.push_str(if i % 2 == 1 { "_" } else { part });
                    }
                    *reasons.entry(format!("{}: {short}", s.id)).or_default() += 1;
                }
            }
        }
        if args[1] != "stat" {
            let dir = std::path::Path::new(&args[1]).join(seed.to_string());
            std::fs::create_dir_all(&dir).unwrap();
            for (name, text) in &printed.files {
                std::fs::write(dir.join(name), text).unwrap();
            }
            for (i, v) in r.variants.iter().enumerate() {
                let dir = dir.join(format!("v{i}"));
                std::fs::create_dir_all(&dir).unwrap();
                for (name, text) in &v.files {
                    std::fs::write(dir.join(name), text).unwrap();
                }
                std::fs::write(dir.join("steps"), sequence(&v.steps)).unwrap();
            }
        }
    }
    println!("{with} of {count} have variants, {variants} in all, {} bytes each", bytes as u64 / count);
    println!("{features:#?}\n{verdicts:#?}");
    let mut list: Vec<_> = reasons.into_iter().collect();
    list.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    for (r, n) in list.iter().take(40) {
        println!("{n:5} {r}");
    }
}
