//! Kernel mode: a kernel that no `main` launches is launched by a generated one, which a run specification describes. The generated
//! program is a source file like the user's: rewrites edit its launch, and all that is done with a program is done with it.

mod expression;
mod host_program;
mod npy;
mod scaffold;
mod spec;
mod types;
mod values;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gridfuse_analysis::base::db::{Database, SourceFile};
use gridfuse_analysis::base::span::TextRange;
use gridfuse_analysis::hir::included::included_files;
use gridfuse_analysis::hir::items::{FunctionItem, items};
use gridfuse_analysis::hir::names::unqualified;
use gridfuse_analysis::hir::parameters;

use self::host_program::{Kernel, Parameter, TemplateParameter};
use self::spec::{Broken, Spec};
use super::instrument::launching_kernels;
use crate::cli::Project;
use crate::launches::{LaunchSite, by_function, function_at};
use crate::manifest::KernelRuns;

/// A generated program.
#[derive(Clone, Debug)]
pub struct HostProgram {
    /// Where it would stand: beside the user's file. Nothing is written there.
    pub path: PathBuf,
    /// Its text.
    pub text: Arc<str>,
    /// The kernel.
    pub kernel: String,
    /// File and line of the specification.
    pub place: (PathBuf, u32),
    /// The launches in the kernel, where it has some of its own.
    pub within: Option<TextRange>,
}

impl HostProgram {
    /// The same for another directory than that of the user's file.
    pub fn text_elsewhere(&self, file: &Path) -> String {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let include = |path: &str| format!("#include \"{path}\"");
        self.text
            .replacen(&include(&name), &include(&file.to_string_lossy()), 1)
    }
}

/// What kernel mode has to know of a project.
pub struct Sources<'a> {
    /// The database.
    pub db: &'a Database,
    /// The user's file.
    pub file: SourceFile,
    /// The specifications of the project's `gridfuse.toml`.
    pub runs: Option<&'a KernelRuns>,
    /// How a path is shown.
    pub show: &'a dyn Fn(&Path) -> String,
}

impl<'a> Sources<'a> {
    /// Of the project of a file.
    pub fn new(project: &'a Project, path: &Path, show: &'a dyn Fn(&Path) -> String) -> Result<Self, String> {
        let file = project
            .host
            .file(path)
            .ok_or_else(|| format!("cannot read {}", path.display()))?;
        Ok(Sources {
            db: project.host.db(),
            file,
            runs: project.runs.as_ref(),
            show,
        })
    }

    fn functions(&self) -> impl Iterator<Item = FunctionItem<'a>> + use<'a> {
        let db = self.db;
        let files = included_files(db, self.file).iter();
        files.flat_map(move |file| items(db, *file).functions.iter().copied())
    }

    /// The file or what it includes has a `main`.
    pub fn has_main(&self) -> bool {
        self.functions().any(|function| {
            let signature = function.signature(self.db);
            function.has_body(self.db) && function.name(self.db) == "main" && !signature.kernel && !signature.device
        })
    }

    /// All kernels with a body.
    fn kernels(&self) -> Vec<FunctionItem<'a>> {
        let kernel = |function: &FunctionItem<'a>| function.signature(self.db).kernel && function.has_body(self.db);
        self.functions().filter(kernel).collect()
    }

    /// Names of kernels that launch others.
    fn launching(&self) -> Vec<FunctionItem<'a>> {
        let names = launching_kernels(self.db, included_files(self.db, self.file));
        let mut kernels = self.kernels();
        kernels.retain(|kernel| names.contains(unqualified(kernel.name(self.db))));
        kernels
    }

    fn specs(&self) -> Vec<Result<Spec, Box<Broken>>> {
        let files = included_files(self.db, self.file).iter();
        let mut specs: Vec<_> = files.flat_map(|file| spec::in_comments(self.db, *file)).collect();
        let path = self.file.path(self.db);
        for run in self.runs.iter().flat_map(|runs| &runs.runs) {
            if run.file.as_deref().is_none_or(|file| file == path)
                // What stands beside the kernel counts.
                && !specs.iter().any(|spec| is_for(spec, &run.name.text))
                && let Some(runs) = self.runs
            {
                specs.push(spec::of_manifest(runs, run));
            }
        }
        specs
    }

    /// The kernel that is meant: by its name, by a place in it, or as the only one with a specification.
    fn choose(&self, name: Option<&str>, at: Option<TextRange>) -> Result<Option<FunctionItem<'a>>, String> {
        let db = self.db;
        let launching = self.launching();
        let list = |kernels: &[FunctionItem<'_>]| {
            let mut names: Vec<&str> = kernels.iter().map(|kernel| kernel.name(db)).collect();
            names.sort_unstable();
            names.dedup();
            names.join(", ")
        };
        let file = (self.show)(self.file.path(db));
        if let Some(name) = name {
            let named: Vec<_> = self
                .kernels()
                .into_iter()
                .filter(|kernel| kernel.name(db) == name || unqualified(kernel.name(db)) == name)
                .collect();
            return match named.as_slice() {
                [kernel] => Ok(Some(*kernel)),
                [] => Err(format!(
                    "no kernel in {file} is called `{name}`; those that launch others are: {}",
                    list(&launching)
                )),
                _ => Err(format!(
                    "several kernels in {file} are called `{name}`: it isn't certain which one is meant"
                )),
            };
        }
        if let Some(at) = at
            && let Some(function) = function_at(db, self.file, at.start)
            && function.signature(db).kernel
        {
            return Ok(Some(function));
        }
        let specs = self.specs();
        let with_spec: Vec<_> = launching
            .iter()
            .copied()
            .filter(|kernel| specs.iter().any(|spec| is_for(spec, kernel.name(db))))
            .collect();
        match (with_spec.as_slice(), launching.as_slice()) {
            ([kernel], _) | ([], [kernel]) => Ok(Some(*kernel)),
            ([], []) => Ok(None),
            ([], _) => Err(format!(
                "there is no `main` in {file}, and several kernels launch others: say --kernel with one of {}",
                list(&launching)
            )),
            (several, _) => Err(format!(
                "several kernels in {file} have a run specification: say --kernel with one of {}",
                list(several)
            )),
        }
    }

    /// The kernel's specification; `None`: it has none.
    fn spec_of(&self, kernel: FunctionItem<'_>) -> Result<Option<Spec>, String> {
        let name = kernel.name(self.db);
        let mut found: Option<Spec> = None;
        for spec in self.specs().into_iter().filter(|spec| is_for(spec, name)) {
            let spec = spec.map_err(|broken| broken.source.tell(&broken.mistake, self.show))?;
            if let Some(other) = found {
                return Err(format!(
                    "{}:{}: `{name}` has another run specification at line {}: only one can be meant",
                    (self.show)(&spec.source.path),
                    spec.source.line(),
                    other.source.line()
                ));
            }
            found = Some(spec);
        }
        Ok(found)
    }

    /// A kernel as the generated program has to know it.
    fn kernel(&self, function: FunctionItem<'_>) -> Kernel {
        let db = self.db;
        let signature = function.signature(db);
        let names = signature.template_names.iter();
        let template = names.map(|name| TemplateParameter {
            name: name.clone(),
            is_type: signature.template_types.contains(name),
        });
        let parameters = parameters(db, function).iter().map(|parameter| {
            let ty = &parameter.ty;
            let pointers = usize::from(ty.pointers) + ty.array.len();
            let plain = !ty.reference && !ty.complex;
            Parameter {
                name: parameter.name.clone(),
                spelled: format!("{}{}", ty.text, "*".repeat(pointers)),
                element: (plain && pointers == 1).then(|| ty.base.clone()),
                value: (plain && pointers == 0).then(|| ty.base.clone()),
                has_default: parameter.has_default,
            }
        });
        Kernel {
            name: function.name(db).to_owned(),
            parameters: parameters.collect(),
            template: template.collect(),
            file: self.file.path(db).to_path_buf(),
        }
    }

    /// The program that runs a kernel of the file by itself; `None`: it has a `main` and nobody asks for a kernel, or there is nothing
    /// to measure. An error says what to do.
    pub fn host_program(&self, name: Option<&str>, at: Option<TextRange>) -> Result<Option<HostProgram>, String> {
        if name.is_none() && self.has_main() {
            return Ok(None);
        }
        let Some(function) = self.choose(name, at)? else {
            return Ok(None);
        };
        let db = self.db;
        let path = self.file.path(db);
        if !self.launching().contains(&function) {
            return Err(format!(
                "the kernel `{}` launches no other: there is nothing to measure",
                function.name(db)
            ));
        }
        let Some(spec) = self.spec_of(function)? else {
            let why = match name {
                Some(_) => String::new(),
                None => format!("there is no `main` in {}, and ", (self.show)(path)),
            };
            return Err(format!(
                "{why}nothing says how the kernel `{}` is to be run. Put a run specification above it, with numbers of your own:\n\n{}",
                function.name(db),
                scaffold::comment(&self.kernel(function)),
            ));
        };
        let kernel = self.kernel(function);
        let directory = spec.source.path.parent().unwrap_or(Path::new(""));
        let text =
            host_program::text(&kernel, &spec, directory).map_err(|mistake| spec.source.tell(&mistake, self.show))?;
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let start = function.start(db);
        let length = u32::try_from(function.text(db).len()).unwrap_or(u32::MAX);
        let launches = by_function(db, function).iter().any(LaunchSite::device_side);
        Ok(Some(HostProgram {
            path: path.with_file_name(format!("{stem}.gridfuse-run.cu")),
            text: text.into(),
            kernel: kernel.name,
            place: (spec.source.path.clone(), spec.source.line()),
            within: (name.is_some() && launches).then(|| TextRange::new(start, start.saturating_add(length))),
        }))
    }

    /// A proposal for the specification of a kernel.
    pub fn scaffold(&self, name: Option<&str>, at: Option<TextRange>) -> Result<String, String> {
        match self.choose(name, at)? {
            Some(function) => Ok(scaffold::comment(&self.kernel(function))),
            None => Err(format!(
                "no kernel in {} launches another",
                (self.show)(self.file.path(self.db))
            )),
        }
    }

    /// The kernel for which a proposal is made, if it launches no other: there would be nothing to rewrite and compare.
    pub fn launches_nothing(&self, name: Option<&str>, at: Option<TextRange>) -> Option<&'a str> {
        let function = self.choose(name, at).ok().flatten()?;
        (!self.launching().contains(&function)).then(|| function.name(self.db))
    }

    /// The same for a kernel that can't be run yet: it launches others, and neither a `main` nor a specification says how it's run
    /// itself.
    pub fn missing_spec(&self, function: FunctionItem<'a>) -> Option<String> {
        if self.has_main() || !self.launching().contains(&function) {
            return None;
        }
        let name = function.name(self.db);
        let has = self.specs().iter().any(|spec| is_for(spec, name));
        (!has).then(|| scaffold::comment(&self.kernel(function)))
    }
}

fn is_for(spec: &Result<Spec, Box<Broken>>, kernel: &str) -> bool {
    match spec {
        Ok(spec) => spec.is_for(kernel),
        Err(broken) => broken.is_for(kernel),
    }
}
