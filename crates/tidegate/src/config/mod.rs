//! `tidegate.yaml`: reading it, checking it, and building a node from it.

mod about_files;
mod authentication;
mod compose;
mod config_applier;
mod config_warnings;
mod conversion;
mod databases;
mod declarations;
mod declared_entries;
mod declared_uses;
mod document;
mod file_hashes;
mod folders;
#[cfg(test)]
mod fuzz_corpus;
mod handlers;
mod includes;
mod ingest;
mod ingest_numbers;
mod knowledge;
mod limits;
mod logs;
mod metrics;
mod mqtt;
mod named_table;
mod names;
mod parsing;
mod policies;
mod problem;
mod problems;
mod quantities;
mod safeguards;
#[cfg(test)]
mod stated_defaults;
mod telemetry_receivers;
mod telemetry_sources;
mod templates;
mod tls;
mod types;
mod variables;
mod yaml_errors;
mod yaml_tree;

use std::path::{Path, PathBuf};

pub(crate) use authentication::{token_options, unknown_role_message, verifies_callers};
pub(crate) use compose::{ComposePostgres, postgres_services};
pub(crate) use config_applier::{ApplyReport, ConfigApplier};
pub(crate) use config_warnings::optional_settings;
pub(crate) use conversion::{ForeignFormat, convert as import_config};
pub(crate) use databases::{ServerKind, server_kind_of, server_kinds};
pub(crate) use declared_uses::{declared_uses, name_entries};
use document::Document;
pub(crate) use document::render_report;
pub(crate) use file_hashes::FileHashes;
pub(crate) use ingest::ingest_folders;
pub(crate) use knowledge::declared_examples;
pub(crate) use limits::{RUNTIME_THREADS, engine_options, store_limits, usage_file};
pub(crate) use parsing::schema;
pub(crate) use problem::ConfigProblem;
pub(crate) use safeguards::audit_options;
pub(crate) use tls::to_tls_options;
pub(crate) use types::{Config, ListenConfig, ServerAddress, TokensConfig};
use variables::VariableResolver;

pub(crate) const CONFIG_FILE_NAME: &str = "tidegate.yaml";

#[derive(Debug)]
pub(crate) struct LoadedConfig {
    pub(crate) config: Config,
    pub(crate) document: Document,
}

/// The problems of a configuration as text, one line for each.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.trim_end())]
pub struct ConfigError(pub(crate) String);

impl LoadedConfig {
    /// Reads the file at `path` and checks its structure, but not yet whether its values fit together.
    pub(crate) fn read(path: &Path) -> Result<Self, ConfigError> {
        Self::read_tracking_files(path, &mut FileHashes::default())
    }

    /// As [`LoadedConfig::read`]; hashes each used file before it is read, even if the configuration is invalid.
    pub(crate) fn read_tracking_files(path: &Path, file_hashes: &mut FileHashes) -> Result<Self, ConfigError> {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        Self::read_file(&path, file_hashes).map_err(|error| foreign_format_error(&path).unwrap_or(error))
    }

    fn read_file(path: &Path, file_hashes: &mut FileHashes) -> Result<Self, ConfigError> {
        file_hashes.record(path);
        let folder = path.parent().unwrap_or(Path::new("/"));
        let variables = VariableResolver::from_environment(folder);
        let document = Document::read(path, &variables);
        file_hashes.merge(variables.files());
        let document = document.map_err(|problems| ConfigError(render_report(&problems, path, None)))?;
        let report = |problems: Vec<_>| ConfigError(render_report(&problems, path, Some(&document)));
        let mut config = parsing::parse_config(&document).map_err(report)?;
        templates::expand_variables(&mut config, &document);
        let loaded = Self { config, document };
        loaded.files().iter().for_each(|file| file_hashes.record(file));
        Ok(loaded)
    }

    pub(crate) fn empty() -> Self {
        let folder = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
        Self { config: Config::default(), document: Document::empty(&folder.join(CONFIG_FILE_NAME)) }
    }

    pub(crate) fn path(&self) -> &Path {
        self.document.path()
    }

    /// Whether the file has no keys.
    pub(crate) fn has_no_keys(&self) -> bool {
        self.document.value.as_object().is_some_and(serde_json::Map::is_empty)
    }

    /// The folder that paths in the file are relative to.
    pub(crate) fn folder(&self) -> &Path {
        self.path().parent().unwrap_or(Path::new("/"))
    }

    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let auth = self.config.auth();
        let tokens = auth.tokens.iter().flat_map(|tokens| [&tokens.jwks, &tokens.public_key]).flatten();
        let credentials = auth.keys.iter().chain(tokens).map(|path| self.resolve(path));
        let tls = self.config.server.tls_entries().into_iter();
        let tls = tls.flat_map(|(_, tls)| tls.files()).map(|path| self.resolve(path));
        let client_tls = databases::client_tls_files(&self.config.databases).map(|path| self.resolve(path));
        let patterns = self.config.include.iter().flat_map(|include| include.clone().into_vec());
        let patterns = patterns.map(|pattern| self.resolve(pattern));
        let notes = knowledge::notes_files(&self.config.databases).map(|path| self.resolve(path));
        let own = self.document.files.iter().cloned().chain(patterns).chain(credentials);
        own.chain(tls).chain(client_tls).chain(notes).collect()
    }

    pub(crate) fn resolve(&self, path: impl AsRef<Path>) -> PathBuf {
        // Removes components of a single dot.
        self.folder().join(path).components().collect()
    }

    /// The problems as warnings, a line for each.
    pub(crate) fn warning_lines(&self, problems: &[ConfigProblem]) -> Vec<String> {
        about_files::report(problems, self.path(), &self.document)
    }

    /// The problems as text. The message about a value with variables is replaced, because it may quote their values.
    pub(crate) fn to_error(&self, problems: &[ConfigProblem]) -> ConfigError {
        let problems: Vec<ConfigProblem> = problems
            .iter()
            .map(|problem| match self.document.enclosing_source_text(&problem.path) {
                Some(source_text) => ConfigProblem { message: redacted_message(source_text), ..problem.clone() },
                None => problem.clone(),
            })
            .collect();
        ConfigError(render_report(&problems, self.path(), Some(&self.document)))
    }
}

/// If the file at `path` is the configuration of another server: how to convert it.
fn foreign_format_error(path: &Path) -> Option<ConfigError> {
    let text = std::fs::read_to_string(path).ok()?;
    let format = ForeignFormat::recognize(&text)?;
    let (file, program) = (path.display(), format.program());
    let client = match format {
        ForeignFormat::McpServers => "\nTo add Tidegate to a client, use tidegate client.",
        ForeignFormat::Toolbox | ForeignFormat::Dbhub => "",
    };
    Some(ConfigError(format!(
        "{file}: is the configuration of {program}, not of Tidegate\nConvert it: tidegate config import {file} > \
         new.yaml{client}"
    )))
}

fn redacted_message(source_text: &str) -> String {
    let names = source_text.match_indices("${").filter(|(at, _)| !source_text[..*at].ends_with('$'));
    let names = names.filter_map(|(at, _)| source_text[at..].split_inclusive('}').next());
    let names = names.collect::<Vec<_>>().join(", ");
    format!("is invalid; the reason could contain the value of {names} and is not shown; write the value out to see it")
}
