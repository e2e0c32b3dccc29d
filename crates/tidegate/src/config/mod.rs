//! `tidegate.yaml`: what may stand in it, what is wrong with it, and the node that it makes.

mod access;
mod authentication;
mod databases;
mod declarations;
mod document;
mod file_hashes;
#[cfg(test)]
mod fuzz_corpus;
mod handlers;
mod limits;
mod names;
mod node_assembler;
mod parsing;
mod policies;
mod postgres;
mod problem;
mod quantities;
mod renamed_keys;
mod safeguards;
mod tables;
mod tls;
mod types;
mod variables;
mod yaml_tree;

use std::path::{Path, PathBuf};

pub(crate) use authentication::{requires_authentication, token_options};
use document::Document;
pub(crate) use document::render_report;
pub(crate) use file_hashes::FileHashes;
pub(crate) use limits::{usage_file, with_caller_limits};
pub(crate) use node_assembler::{ApplyReport, NodeAssembler, inline_budget};
pub(crate) use parsing::schema;
pub(crate) use problem::ConfigProblem;
pub(crate) use safeguards::audit_options;
pub(crate) use tls::tls_options;
pub(crate) use types::{Config, ResultsEntry, TokensEntry};
use variables::VariableResolver;

/// The file that is read when none is named.
pub(crate) const CONFIG_FILE_NAME: &str = "tidegate.yaml";

/// A configuration that was read, with its file to tell places by.
#[derive(Debug)]
pub(crate) struct LoadedConfig {
    pub(crate) config: Config,
    pub(crate) document: Document,
}

/// A configuration that cannot be used, as text for people: one line for each problem.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.trim_end())]
pub struct ConfigError(pub(crate) String);

impl LoadedConfig {
    /// Reads the file at `path` and checks its shape; what it says may still make no sense.
    pub(crate) fn read(path: &Path) -> Result<Self, ConfigError> {
        Self::read_tracking_files(path, &mut FileHashes::default())
    }

    /// Reads the file at `path` as [`LoadedConfig::read`] does, and notes in `seen` each file that it leans on before that is
    /// read, be it now or when the configuration is entered; also those of a file that cannot be used.
    pub(crate) fn read_tracking_files(path: &Path, seen: &mut FileHashes) -> Result<Self, ConfigError> {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        seen.record(&path);
        let folder = path.parent().unwrap_or(Path::new("/"));
        let variables = VariableResolver::from_environment(folder);
        let document = Document::read(&path, &variables);
        seen.merge(variables.files());
        let document = document.map_err(|problems| ConfigError(render_report(&problems, &path, None)))?;
        let config = parsing::parse_config(&document)
            .map_err(|problems| ConfigError(render_report(&problems, &document.path, Some(&document))))?;
        let loaded = Self { config, document };
        loaded.files().iter().for_each(|file| seen.record(file));
        Ok(loaded)
    }

    /// What there is without a file: nothing is said.
    pub(crate) fn empty() -> Self {
        let folder = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
        Self { config: Config::default(), document: Document::empty(&folder.join(CONFIG_FILE_NAME)) }
    }

    /// The file.
    pub(crate) fn path(&self) -> &Path {
        &self.document.path
    }

    /// A line for each key that is written with its old name.
    pub(crate) fn deprecations(&self) -> Vec<String> {
        let report = render_report(&self.document.deprecations, self.path(), None);
        report.lines().map(str::to_owned).collect()
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

    /// The problems as text for people. What is said of a value that holds variables may quote them, and stays unsaid.
    pub(crate) fn to_error(&self, problems: &[ConfigProblem]) -> ConfigError {
        let problems: Vec<ConfigProblem> = problems
            .iter()
            .map(|problem| match self.document.enclosing_source_text(&problem.path) {
                Some(written) => ConfigProblem { message: redacted_message(written), ..problem.clone() },
                None => problem.clone(),
            })
            .collect();
        ConfigError(render_report(&problems, self.path(), Some(&self.document)))
    }
}

/// Stands for what would quote the variables of a value that was `written` so.
fn redacted_message(written: &str) -> String {
    let names = written.match_indices("${").filter(|(at, _)| !written[..*at].ends_with('$'));
    let names = names.filter_map(|(at, _)| written[at..].split_inclusive('}').next());
    let names = names.collect::<Vec<_>>().join(", ");
    format!("is wrong; why is not told, as that could tell what {names} holds: try it with the value written out")
}
