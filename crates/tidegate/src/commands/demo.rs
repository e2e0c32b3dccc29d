//! `tidegate demo`: something real to ask at once.

use std::path::Path;

use anyhow::Context as _;
use clap::Args;
use tempfile::TempDir;

use super::serve::{HttpArguments, serve};
use crate::command_error::CommandError;
use crate::options::GlobalOptions;
use crate::source::DatabaseSource;
use crate::startup_help::StartupHelp;

/// Serve all flights that left New York City in 2013, with weather, planes, airports and airlines
#[derive(Debug, Args)]
pub(crate) struct DemoCommand {
    #[command(flatten)]
    http: HttpArguments,
}

impl DemoCommand {
    pub(crate) async fn run(self, options: &GlobalOptions) -> Result<(), CommandError> {
        let data = DemoData::write()?;
        let source = DatabaseSource::with_name(DEMO_DATABASE, data.path());
        serve(&[source], &self.http, StartupHelp::ConnectionAndExampleQuestions, options).await
    }
}

/// What the demo's database is called.
const DEMO_DATABASE: &str = "nycflights13";

/// The files, compiled in. Their source and licence: `data/demo/README.md`.
const FILES: [(&str, &[u8]); 5] = [
    ("airlines.parquet", include_bytes!("../../../../data/demo/airlines.parquet")),
    ("airports.parquet", include_bytes!("../../../../data/demo/airports.parquet")),
    ("flights.parquet", include_bytes!("../../../../data/demo/flights.parquet")),
    ("planes.parquet", include_bytes!("../../../../data/demo/planes.parquet")),
    ("weather.parquet", include_bytes!("../../../../data/demo/weather.parquet")),
];

/// The demo's files in a folder of their own that only this user can read; dropping it removes them.
struct DemoData(TempDir);

impl DemoData {
    /// Writes the files.
    fn write() -> anyhow::Result<Self> {
        // Temporary folders are made with mode 0700.
        let folder = tempfile::Builder::new().prefix("tidegate-demo-").tempdir();
        let folder = folder.context("cannot make a temporary folder for the demo's data")?;
        for (name, bytes) in FILES {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(Self(folder))
    }

    /// The folder.
    fn path(&self) -> &Path {
        self.0.path()
    }
}
