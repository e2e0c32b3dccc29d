//! The binary, verb by verb.

mod access;
mod api;
mod asked;
mod asking_who;
mod audit;
mod call;
mod client;
mod completions;
mod config;
mod declared;
mod demo;
mod dialects;
mod doctor;
mod export;
mod federated;
mod foreign;
mod guide;
mod handlers_tutorial;
mod help;
mod identity;
mod listening;
mod matrix;
mod messy;
mod neighbours;
mod pg_handlers;
mod pg_kit;
mod postgres;
mod proxy;
mod query;
mod reload;
mod results;
mod serve;
mod server;
mod signals;
mod stdio;
mod tasks;
mod tls;
mod tokens;
mod tools;

use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// The binary, deaf to the environment of whoever runs the tests.
fn tidegate() -> Command {
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
struct Ran {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("the output is UTF-8");
        Self { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

/// A folder with a configuration and the shop's data.
struct Configured(Shop);

impl Configured {
    fn new(configuration: &str) -> Self {
        let configured = Self(Shop::new());
        configured.write(configuration);
        configured
    }

    fn folder(&self) -> &Path {
        self.0.0.path()
    }

    fn write(&self, configuration: &str) {
        std::fs::write(self.folder().join("tidegate.yaml"), configuration).unwrap();
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        run_in(self.folder(), arguments)
    }

    /// What a run said on standard error, without the folder's own name.
    fn complaint(&self, arguments: &[&str]) -> String {
        let ran = self.run(arguments);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
        ran.stderr.replace(&format!("{}/", self.folder().canonicalize().unwrap().display()), "")
    }
}

impl Ran {
    /// The lines of standard output.
    fn lines(&self) -> Vec<&str> {
        self.stdout.lines().collect()
    }
}

fn run(arguments: &[&str]) -> Ran {
    tidegate().args(arguments).output().expect("the binary runs").into()
}

/// Runs with `folder` as the current one.
fn run_in(folder: &Path, arguments: &[&str]) -> Ran {
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
