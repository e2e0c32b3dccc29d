//! `tidegate demo`: serves sample data.

use anyhow::Context as _;
use clap::Args;
use tempfile::TempDir;

use super::serve::{HttpArguments, serve};
use crate::command_error::CommandError;
use crate::options::GlobalOptions;
use crate::source::DatabaseSource;
use crate::startup_help::StartupHelp;

/// Serve all flights that left New York City in 2013, with weather, planes, airports and airlines, and two logs of a web shop
#[derive(Debug, Args)]
pub(crate) struct DemoCommand {
    #[command(flatten)]
    http: HttpArguments,
}

impl DemoCommand {
    pub(crate) async fn run(self, options: &GlobalOptions) -> Result<(), CommandError> {
        let data = write_demo_data()?;
        let source = DatabaseSource::with_name(DEMO_DATABASE, data.path());
        serve(&[source], &self.http, StartupHelp::ConnectionAndExampleQuestions, options).await
    }
}

const DEMO_DATABASE: &str = "nycflights13";

/// `data/demo/README.md` has their source and licence.
const FILES: [(&str, &[u8]); 7] = [
    ("airlines.parquet", include_bytes!("../../../../data/demo/airlines.parquet")),
    ("airports.parquet", include_bytes!("../../../../data/demo/airports.parquet")),
    ("flights.parquet", include_bytes!("../../../../data/demo/flights.parquet")),
    ("planes.parquet", include_bytes!("../../../../data/demo/planes.parquet")),
    ("shop_access.log.gz", include_bytes!("../../../../data/demo/shop_access.log.gz")),
    ("shop_app.log.gz", include_bytes!("../../../../data/demo/shop_app.log.gz")),
    ("weather.parquet", include_bytes!("../../../../data/demo/weather.parquet")),
];

/// Writes the files to a temporary folder, which only this user can read; dropping it removes them.
fn write_demo_data() -> anyhow::Result<TempDir> {
    let folder = tempfile::Builder::new().prefix("tidegate-demo-").tempdir();
    let folder = folder.context("cannot make a temporary folder for the demo's data")?;
    for (name, bytes) in FILES {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(folder)
}
