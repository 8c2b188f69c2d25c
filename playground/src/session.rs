//! Answers questions about a program, and remembers what was found out about it.

use std::path::{Path, PathBuf};

use gridfuse::describe::{Describe, launching, told_rewrites};
use gridfuse::diff::unified;
use gridfuse::glance::{Glance, glance};
use gridfuse::launches::{LaunchSite, REPLACES_WAIT, in_file, overlapping, wait_for};
use gridfuse_analysis::base::db::SourceFile;
use gridfuse_analysis::base::span::TextRange;
use gridfuse_analysis::diagnostics::diagnostics;
use gridfuse_analysis::host::Host;
use gridfuse_codeactions::api::rewrite::Options;
use gridfuse_codeactions::api::source_edit::{SourceEdit, apply};
use gridfuse_codeactions::handlers::rewrite_by_id;

use crate::answers::{Answer, Explained, LaunchPlace, MenuEntry, Rewritten};
use crate::questions::{About, File, Question};

/// The directory that all files are in: includes are looked for in it.
const DIRECTORY: &str = "/";

/// A program that questions are asked about.
#[derive(Default)]
pub struct Session {
    host: Host,
    names: Vec<PathBuf>,
}

impl Session {
    /// Answers a question that is written as JSON, in JSON.
    pub fn answer(&mut self, question: &str) -> String {
        let answer = match serde_json::from_str::<Question>(question) {
            Ok(question) => self.answer_to(question),
            Err(error) => Answer::Error {
                message: format!("The question isn't understood: {error}."),
            },
        };
        serde_json::to_string(&answer).unwrap_or_default()
    }

    fn answer_to(&mut self, question: Question) -> Answer {
        let Some(file) = self.take(question.files) else {
            return Answer::Error {
                message: "There is no program.".to_owned(),
            };
        };
        match question.about {
            About::Check => self.check(file),
            About::Explain { offset } => self.explain(file, offset),
            About::Rewrite { offset, rewrite } => self.rewrite(file, offset, &rewrite),
            #[cfg(debug_assertions)]
            #[allow(clippy::panic, reason = "it is what is asked for")]
            About::Panic => panic!("somebody asked for a panic"),
        }
    }

    /// Takes over the texts; returns the first file.
    fn take(&mut self, files: Vec<File>) -> Option<SourceFile> {
        let path = |file: &File| Path::new(DIRECTORY).join(&file.name);
        let names: Vec<PathBuf> = files.iter().map(path).collect();
        for gone in self.names.iter().filter(|name| !names.contains(name)) {
            self.host.remove_file(gone);
        }
        for (name, file) in names.iter().zip(files) {
            self.host.set_file(name, file.text);
        }
        let first = names.first().and_then(|name| self.host.file(name));
        self.names = names;
        first
    }

    fn check(&self, file: SourceFile) -> Answer {
        let db = self.host.db();
        self.describe(|describe| Answer::Check {
            version: env!("CARGO_PKG_VERSION"),
            findings: diagnostics(db, file)
                .iter()
                .map(|diagnostic| describe.finding(diagnostic, &[]))
                .collect(),
            launches: in_file(db, file)
                .into_iter()
                .filter(LaunchSite::device_side)
                .map(|site| LaunchPlace {
                    place: describe.place(site.place),
                    text: describe.text(site.place),
                })
                .collect(),
        })
    }

    fn explain(&self, file: SourceFile, offset: u32) -> Answer {
        let launch = self.launch_at(file, offset).map(|site| {
            self.describe(|describe| {
                let facts = describe.launch(&site);
                let glance = glance(&facts);
                let because = match glance.best {
                    Some(_) => glance.assumptions(),
                    None => Glance::obstacle(&facts),
                };
                let menu = told_rewrites(&facts).map(|told| MenuEntry {
                    rewrite: told.rewrite,
                    title: told.title.to_string(),
                    verdict: told.word(),
                    reasons: told.reasons.clone(),
                });
                Box::new(Explained {
                    sentence: glance.sentence(),
                    because,
                    launching: launching(facts.who),
                    best: glance.best.map(|best| best.rewrite),
                    menu: menu.collect(),
                    facts,
                })
            })
        });
        Answer::Explain { launch }
    }

    fn rewrite(&self, file: SourceFile, offset: u32, id: &str) -> Answer {
        let db = self.host.db();
        let error = |message: String| Answer::Error { message };
        let Some(site) = self.launch_at(file, offset) else {
            return error("No kernel launches another there.".to_owned());
        };
        let Some(rewrite) = rewrite_by_id(id) else {
            return error(format!("No rewrite is called `{id}`."));
        };
        let options = Options::default();
        let edit = match wait_for(db, &site).filter(|_| id == REPLACES_WAIT) {
            Some(wait) => rewrite.apply(db, wait, &options),
            None => rewrite.apply(db, site.id, &options),
        };
        match edit {
            Ok(edit) => self.rewritten(&edit).unwrap_or_else(error),
            Err(refusal) => self.describe(|describe| Answer::Refused {
                reasons: refusal.0.iter().map(|reason| describe.reason(reason)).collect(),
            }),
        }
    }

    /// The texts that an edit leads to, those that it adds last.
    fn rewritten(&self, edit: &SourceEdit) -> Result<Answer, String> {
        let read = |path: &Path| Some(self.host.file(path)?.text(self.host.db()).to_string());
        let texts = apply(edit, read).map_err(|error| format!("The edit doesn't fit: {error}."))?;
        let mut files: Vec<Rewritten> = texts
            .into_iter()
            .map(|(path, text)| {
                let (name, before) = (shown(&path), read(&path));
                Rewritten {
                    created: before.is_none(),
                    diff: unified(&name, before.as_deref(), &text),
                    name,
                    text,
                }
            })
            .collect();
        files.sort_by_key(|file| file.created);
        let assumptions = self.describe(|describe| edit.assumptions.iter().map(|it| describe.assumed(it)).collect());
        Ok(Answer::Rewrite { files, assumptions })
    }

    /// The launch by device code at an offset.
    fn launch_at(&self, file: SourceFile, offset: u32) -> Option<LaunchSite<'_>> {
        let mut sites = overlapping(self.host.db(), file, TextRange::empty(offset));
        sites.retain(LaunchSite::device_side);
        // Of launches within each other, the inner one.
        sites
            .into_iter()
            .min_by_key(|site| site.place.range.end - site.place.range.start)
    }

    fn describe<R>(&self, f: impl FnOnce(&Describe<'_>) -> R) -> R {
        f(&Describe {
            db: self.host.db(),
            path: &shown,
            // Nobody has kept what a program was before.
            is_untouched: &|_| false,
        })
    }
}

/// A path as the page knows it.
fn shown(path: &Path) -> String {
    path.strip_prefix(DIRECTORY).unwrap_or(path).display().to_string()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::{Value, json};

    use super::Session;

    const PROGRAM: &str = "__global__ void child(int* out) { out[threadIdx.x] = 1; }\n\
        __global__ void parent(int* out) { child<<<1, 32>>>(out + 32 * threadIdx.x); }\n\
        int main() { parent<<<1, 64>>>(nullptr); }\n";

    fn ask(session: &mut Session, question: &Value) -> Value {
        serde_json::from_str(&session.answer(&question.to_string())).unwrap()
    }

    #[test]
    fn what_cannot_be_answered_is_a_sentence() {
        let mut session = Session::default();
        let files = json!([{ "name": "a.cu", "text": PROGRAM }]);
        for (question, told) in [
            (json!({}), "The question isn't understood"),
            (json!({ "ask": "check", "files": [] }), "There is no program."),
            (
                json!({ "ask": "rewrite", "files": files, "offset": 3, "rewrite": "serialize" }),
                "No kernel launches another there.",
            ),
            (
                json!({ "ask": "rewrite", "files": files, "offset": 99, "rewrite": "faster" }),
                "No rewrite is called `faster`.",
            ),
        ] {
            let answer = ask(&mut session, &question);
            assert_eq!(answer["answer"], "error", "{answer}");
            assert!(answer["message"].as_str().unwrap().starts_with(told), "{answer}");
        }
    }

    /// A header that is gone is gone: the next rewrite adds it again.
    #[test]
    fn a_session_has_the_files_of_the_last_question() {
        let mut session = Session::default();
        let rewrite =
            |files: Value| json!({ "ask": "rewrite", "files": files, "offset": 99, "rewrite": "aggregate-block" });
        let program = json!({ "name": "a.cu", "text": PROGRAM });
        let first = ask(&mut session, &rewrite(json!([program])));
        assert_eq!(first["files"][1]["name"], "gridfuse.cuh", "{first}");
        assert_eq!(first["files"][1]["created"], true, "{first}");
        let header = json!({ "name": "gridfuse.cuh", "text": first["files"][1]["text"] });
        let second = ask(&mut session, &rewrite(json!([program, header])));
        assert!(second["files"][1]["created"] != true, "{second}");
        assert_eq!(ask(&mut session, &rewrite(json!([program]))), first);
    }
}
