//! The demo's files, compiled in. Their source and licence: `data/demo/README.md`.

use std::path::Path;

use anyhow::Context as _;
use tempfile::TempDir;

/// What the demo's database is called.
pub(crate) const DEMO_DATABASE: &str = "nycflights13";

const FILES: [(&str, &[u8]); 5] = [
    ("airlines.parquet", include_bytes!("../../../data/demo/airlines.parquet")),
    ("airports.parquet", include_bytes!("../../../data/demo/airports.parquet")),
    ("flights.parquet", include_bytes!("../../../data/demo/flights.parquet")),
    ("planes.parquet", include_bytes!("../../../data/demo/planes.parquet")),
    ("weather.parquet", include_bytes!("../../../data/demo/weather.parquet")),
];

/// The demo's files in a folder of their own that only this user can read; dropping it removes them.
pub(crate) struct DemoData(TempDir);

impl DemoData {
    /// Writes the files.
    pub(crate) fn write() -> anyhow::Result<Self> {
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
    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }
}
