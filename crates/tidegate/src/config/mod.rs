//! `tidegate.yaml`: what may stand in it, what is wrong with it, and the node that it makes.

mod access;
mod assemble;
#[cfg(test)]
mod corpus;
mod databases;
mod document;
mod doubles;
mod entries;
mod expand;
mod handlers;
mod identity;
mod limits;
mod policies;
mod postgres;
mod problem;
mod quantities;
mod reading;
mod safeguards;
mod seen;
mod shape;
mod tables;
mod tenants;
mod tls;
mod toolsets;
mod types;

use std::path::{Path, PathBuf};

pub(crate) use assemble::{Assembled, Assembly, inline};
use document::Document;
use expand::Variables;
pub(crate) use identity::{is_configured as callers_are_asked, token_options};
pub(crate) use limits::{of_callers, usage_file};
pub(crate) use problem::{Problem, report};
pub(crate) use reading::schema;
pub(crate) use safeguards::audit as audit_options;
pub(crate) use seen::Seen;
pub(crate) use tls::options as tls_options;
pub(crate) use types::{Config, ResultsEntry, TokensEntry};

/// The file that is read when none is named.
pub(crate) const FILE_NAME: &str = "tidegate.yaml";

/// A configuration that was read, with its file to tell places by.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) config: Config,
    document: Document,
}

/// A configuration that cannot be used, as text for people: one line for each problem.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.trim_end())]
pub(crate) struct Broken(pub(crate) String);

impl Loaded {
    /// Reads the file at `path` and checks its shape; what it says may still make no sense.
    pub(crate) fn read(path: &Path) -> Result<Self, Broken> {
        Self::read_seeing(path, &mut Seen::default())
    }

    /// Reads the file at `path` as [`Loaded::read`] does, and notes in `seen` each file that it leans on before that is
    /// read, be it now or when the configuration is entered; also those of a file that cannot be used.
    pub(crate) fn read_seeing(path: &Path, seen: &mut Seen) -> Result<Self, Broken> {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        seen.look(&path);
        let folder = path.parent().unwrap_or(Path::new("/"));
        let variables = Variables::of_environment(folder);
        let document = Document::read(&path, &variables);
        seen.add(variables.seen());
        let document = document.map_err(|problems| Broken(report(&problems, &path, None)))?;
        let config = reading::understood(&document)
            .map_err(|problems| Broken(report(&problems, &document.path, Some(&document))))?;
        let loaded = Self { config, document };
        loaded.files().iter().for_each(|file| seen.look(file));
        Ok(loaded)
    }

    /// What there is without a file: nothing is said.
    pub(crate) fn nothing() -> Self {
        let folder = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
        Self { config: Config::default(), document: Document::empty(&folder.join(FILE_NAME)) }
    }

    /// The file.
    pub(crate) fn path(&self) -> &Path {
        &self.document.path
    }

    /// The file's folder, which paths in it are relative to.
    pub(crate) fn folder(&self) -> &Path {
        self.path().parent().unwrap_or(Path::new("/"))
    }

    /// The file and those that it leans on.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let auth = self.config.auth();
        let tokens = auth.tokens.iter().flat_map(|tokens| [&tokens.jwks, &tokens.public_key]).flatten();
        let further = auth.keys.iter().chain(tokens).map(|path| self.resolve(path));
        let tls = self.config.server.tls.iter().flat_map(|tls| tls.files()).map(|path| self.resolve(path));
        std::iter::once(self.path().to_owned()).chain(further).chain(tls).collect()
    }

    /// `path` as the file means it.
    pub(crate) fn resolve(&self, path: impl AsRef<Path>) -> PathBuf {
        // Without the dots in it, which say nothing to a reader.
        self.folder().join(path).components().collect()
    }

    /// The value at `path` as a template in which braces that variables hold mean nothing, if it holds any.
    pub(crate) fn template(&self, path: &str) -> Option<&str> {
        self.document.template(path)
    }

    /// `text` as it may be told: with the names of variables for what they hold.
    pub(crate) fn told(&self, text: &str) -> String {
        self.document.told(text)
    }

    /// What the variables of the value at `path`, and of all values in it, hold.
    pub(crate) fn values_within(&self, path: &str) -> impl Iterator<Item = &str> {
        self.document.values_within(path)
    }

    /// The problems as text for people. What is said of a value that holds variables may quote them, and stays unsaid.
    pub(crate) fn broken(&self, problems: &[Problem]) -> Broken {
        let problems: Vec<Problem> = problems
            .iter()
            .map(|problem| match self.document.written_around(&problem.path) {
                Some(written) => Problem { message: unsaid(written), ..problem.clone() },
                None => problem.clone(),
            })
            .collect();
        Broken(report(&problems, self.path(), Some(&self.document)))
    }
}

/// Stands for what would quote the variables of a value that was `written` so.
fn unsaid(written: &str) -> String {
    let names = written.match_indices("${").filter(|(at, _)| !written[..*at].ends_with('$'));
    let names = names.filter_map(|(at, _)| written[at..].split_inclusive('}').next());
    let names = names.collect::<Vec<_>>().join(", ");
    format!("is wrong; why is not told, as that could tell what {names} holds: try it with the value written out")
}
