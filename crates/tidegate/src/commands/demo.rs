//! `tidegate demo`: serves sample data.

mod live_readings;

use std::path::Path;

use anyhow::Context as _;
use clap::Args;
use serde_json::json;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::serve::{HttpArguments, serve};
use crate::command_error::CommandError;
use crate::open_node::OpenNode;
use crate::options::GlobalOptions;
use crate::source::DatabaseSource;
use crate::startup_help::StartupHelp;

/// Serve all flights that left New York City in 2013, with weather, planes, airports and airlines, and two logs of a web shop
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
        let source = DatabaseSource::with_name(DEMO_DATABASE, data.path());
        serve(&[source], &self.http, StartupHelp::ConnectionAndExampleQuestions, options, |_, _| {}).await
    }
}

const DEMO_DATABASE: &str = "nycflights13";

/// Serves the data in `folder`, and a database beside it that takes rows.
async fn serve_live(folder: &Path, http: &HttpArguments, options: &GlobalOptions) -> Result<(), CommandError> {
    let tables = tempfile::Builder::new().prefix("tidegate-demo-").tempdir();
    let tables = tables.context("cannot make a temporary folder for the demo's tables")?;
    let databases = json!([
        {"name": DEMO_DATABASE, "files": folder},
        {"name": live_readings::DATABASE, "ingest": tables.path().join("tables")},
    ]);
    // JSON is YAML.
    let file = tables.path().join("tidegate.yaml");
    let text = json!({"databases": databases}).to_string();
    std::fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
    let options = options.with_config(file);
    let send_readings = |open_node: &OpenNode, ended: &CancellationToken| {
        for target in open_node.assembly.ingest_targets() {
            tokio::spawn(live_readings::send(target, ended.clone()));
        }
    };
    serve(&[], http, StartupHelp::ConnectionAndLiveQuestions, &options, send_readings).await
}

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
