//! The binary, verb by verb.

mod access;
mod addresses;
mod audit;
mod authentication_challenges;
mod authorization_matrix;
mod caching;
mod call;
mod client;
mod completions;
mod config;
mod csv_options;
mod data;
mod declared;
mod declared_inserts;
mod demo;
mod doctor;
mod documentation_commands;
mod documentation_configurations;
mod elicitation;
mod examples;
mod export;
mod federated;
mod file_advice;
mod folders;
mod handler_requests;
mod handlers_tutorial;
mod help;
mod http_tools;
mod identity;
mod import;
mod import_rows;
mod includes;
mod ingest_upkeep;
mod ingest_writers;
mod ingested_tables;
mod init;
mod irregular_files;
mod journals;
mod knowledge;
mod knowledge_tutorial;
mod large_events;
mod log_advice;
mod log_masks;
mod log_messages;
mod logs;
mod logs_tutorial;
mod metric_samples;
mod metric_sources;
mod moving_pages;
mod mqtt;
mod mysql;
mod network_tutorial;
mod networks;
mod operation;
mod pg_handlers;
mod pg_test_and_new;
mod postgres;
mod preset_tools;
mod profiles;
mod prometheus;
mod proxy;
mod query;
mod reload;
mod rest_formats;
mod results;
mod rmcp_client;
mod serve;
pub(crate) mod server;
mod several_databases;
mod signals;
mod spilling;
mod stdio;
mod subscriptions;
mod system_tables;
mod tasks;
mod telemetry_paths;
mod telemetry_receivers;
mod tenant_isolation;
mod terminal;
mod tls;
mod token_server;
mod tokens;
mod tool_schemas;
mod tools;

use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// The binary, without the environment of the test run.
pub(crate) fn tidegate() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("TIDEGATE_") || name.to_string_lossy().starts_with("PG") {
            command.env_remove(name);
        }
    }
    command.env("COLUMNS", "100").env("NO_COLOR", "1").stdin(Stdio::null());
    // What a server stores is none of the user's cache.
    command.env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"));
    command
}

/// What a run printed and how it ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CommandOutput {
    code: Option<i32>,
    pub(crate) stdout: String,
    stderr: String,
}

impl From<Output> for CommandOutput {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("the output is UTF-8");
        Self { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

/// A folder with a configuration and the shop's data.
struct ConfiguredFolder(Shop);

impl ConfiguredFolder {
    fn new(configuration: &str) -> Self {
        let configured = Self(Shop::new());
        configured.write(configuration);
        configured
    }

    fn folder(&self) -> &Path {
        self.0.0.path()
    }

    /// Replaces the file. A server that watches it could load a file that is being written, because a part may be valid.
    fn write(&self, configuration: &str) {
        let new = self.folder().join("tidegate.yaml.new");
        std::fs::write(&new, configuration).unwrap();
        std::fs::rename(new, self.folder().join("tidegate.yaml")).unwrap();
    }

    fn run(&self, arguments: &[&str]) -> CommandOutput {
        run_in(self.folder(), arguments)
    }

    /// What a run said on standard error, without the folder's own name.
    fn usage_error(&self, arguments: &[&str]) -> String {
        let ran = self.run(arguments);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
        ran.stderr.replace(&format!("{}/", self.folder().canonicalize().unwrap().display()), "")
    }
}

impl CommandOutput {
    /// The lines of standard output.
    fn lines(&self) -> Vec<&str> {
        self.stdout.lines().collect()
    }
}

pub(crate) fn run(arguments: &[&str]) -> CommandOutput {
    tidegate().args(arguments).output().expect("the binary runs").into()
}

/// Runs with `folder` as the current one.
fn run_in(folder: &Path, arguments: &[&str]) -> CommandOutput {
    tidegate().current_dir(folder).args(arguments).output().expect("the binary runs").into()
}

/// A folder `shop` with two small tables.
struct Shop(TempDir);

impl Shop {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let shop = folder.path().join("shop");
        std::fs::create_dir(&shop).unwrap();
        std::fs::write(shop.join("orders.csv"), "id,customer,amount\n1,Ann,12.5\n2,Bob,7\n3,Ann,\n").unwrap();
        std::fs::write(shop.join("2024.csv"), "name\nAnn\n").unwrap();
        Self(folder)
    }

    fn path(&self) -> std::path::PathBuf {
        self.0.path().join("shop")
    }

    fn argument(&self) -> String {
        self.path().display().to_string()
    }
}
