//! `tidegate demo`: serves sample data.

mod live_readings;

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::serve::{HttpArguments, serve};
use crate::application::Application;
use crate::command_error::CommandError;
use crate::database_argument::DatabaseArgument;
use crate::options::GlobalOptions;
use crate::startup_help::StartupHelp;

/// Serve all flights that left New York City in 2013, with weather, planes, airports and airlines, and two logs and the metrics of a web shop
#[derive(Debug, Args)]
pub(crate) struct DemoCommand {
    /// Also serve the database "live", where readings of three weather stations arrive each second, and which takes rows
    /// of your own at /data/live/TABLE
    #[arg(long)]
    live: bool,

    #[command(flatten)]
    http: HttpArguments,
}

impl DemoCommand {
    pub(crate) async fn run(self, options: &GlobalOptions) -> Result<(), CommandError> {
        let data = write_demo_data()?;
        if self.live {
            return serve_live(data.path(), &self.http, options).await;
        }
        let help = StartupHelp::ConnectionAndExampleQuestions;
        if options.config_file().is_some() {
            // A configuration of the user has its own metric sources.
            let source = DatabaseArgument::with_name(DEMO_DATABASE, data.path());
            return serve(&[source], &self.http, help, options, |_, _| {}).await;
        }
        let folder = temporary_folder()?;
        let options = options.with_config(write_configuration(folder.path(), data.path(), &[])?);
        serve(&[], &self.http, help, &options, |_, _| {}).await
    }
}

const DEMO_DATABASE: &str = "nycflights13";
/// The table with metrics, and the metric source.
const METRICS: &str = "shop_metrics";

/// Serves the data in `folder`, and a database beside it that takes rows.
async fn serve_live(data: &Path, http: &HttpArguments, options: &GlobalOptions) -> Result<(), CommandError> {
    let folder = temporary_folder()?;
    let live = json!({"name": live_readings::DATABASE, "ingest": folder.path().join("tables")});
    let options = options.with_config(write_configuration(folder.path(), data, &[live])?);
    let send_readings = |application: &Application, ended: &CancellationToken| {
        for target in application.applier.ingest_targets() {
            tokio::spawn(live_readings::send(target, ended.clone()));
        }
    };
    serve(&[], http, StartupHelp::ConnectionAndLiveQuestions, &options, send_readings).await
}

/// Writes a configuration with the demo's data, its metrics and `databases` to `folder`; its path.
fn write_configuration(folder: &Path, data: &Path, databases: &[Value]) -> anyhow::Result<PathBuf> {
    let demo = json!({"name": DEMO_DATABASE, "files": data});
    let databases: Vec<&Value> = std::iter::once(&demo).chain(databases).collect();
    let metrics = json!([{"name": METRICS, "table": format!("{DEMO_DATABASE}.{METRICS}")}]);
    let file = folder.join("tidegate.yaml");
    // JSON is YAML.
    let text = json!({"databases": databases, "metrics": metrics}).to_string();
    std::fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
    Ok(file)
}

/// `data/demo/README.md` has their source and licence.
const FILES: [(&str, &[u8]); 8] = [
    ("airlines.parquet", include_bytes!("../../../../data/demo/airlines.parquet")),
    ("airports.parquet", include_bytes!("../../../../data/demo/airports.parquet")),
    ("flights.parquet", include_bytes!("../../../../data/demo/flights.parquet")),
    ("planes.parquet", include_bytes!("../../../../data/demo/planes.parquet")),
    ("shop_access.log.gz", include_bytes!("../../../../data/demo/shop_access.log.gz")),
    ("shop_app.log.gz", include_bytes!("../../../../data/demo/shop_app.log.gz")),
    ("shop_metrics.csv.gz", include_bytes!("../../../../data/demo/shop_metrics.csv.gz")),
    ("weather.parquet", include_bytes!("../../../../data/demo/weather.parquet")),
];

/// A folder that only this user can read; dropping it removes its files.
fn temporary_folder() -> anyhow::Result<TempDir> {
    let folder = tempfile::Builder::new().prefix("tidegate-demo-").tempdir();
    folder.context("cannot make a temporary folder for the demo")
}

/// Writes the files to a temporary folder.
fn write_demo_data() -> anyhow::Result<TempDir> {
    let folder = temporary_folder()?;
    for (name, bytes) in FILES {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(folder)
}
