//! A result, a server and a folder for the file.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use arrow::ipc::reader::{FileReader, StreamReader};
use arrow::{array::RecordBatch, compute::concat_batches};
use tempfile::TempDir;
use tidegate_client::fetch::{FetchError, FetchOptions, FetchedFile, OutputFile, ResultAddress, fetch};
use tokio_util::sync::CancellationToken;

use super::stored_result::{StoredResultFixture, schema};
use super::test_server::{RecordedRequest, TestResponse, TestServer};

/// A result that a server keeps, and where it goes.
pub(super) struct DownloadFixture {
    pub(super) stored: Arc<StoredResultFixture>,
    pub(super) server: TestServer,
    pub(super) folder: TempDir,
    pub(super) stop: CancellationToken,
}

impl DownloadFixture {
    /// A server that behaves.
    pub(super) async fn new(blocks: usize) -> Self {
        Self::with(blocks, StoredResultFixture::respond).await
    }

    /// A server that answers with `respond`.
    pub(super) async fn with(
        blocks: usize,
        answer: impl Fn(&StoredResultFixture, &RecordedRequest) -> TestResponse + Send + Sync + 'static,
    ) -> Self {
        Self::with_stored(Arc::new(StoredResultFixture::new(blocks)), answer).await
    }

    /// A server that keeps `stored`.
    pub(super) async fn with_stored(
        stored: Arc<StoredResultFixture>,
        answer: impl Fn(&StoredResultFixture, &RecordedRequest) -> TestResponse + Send + Sync + 'static,
    ) -> Self {
        let kept = stored.clone();
        let server = TestServer::start(move |recorded_request| answer(&kept, recorded_request)).await;
        Self { stored, server, folder: tempfile::tempdir().unwrap(), stop: CancellationToken::new() }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/results/{}", self.server.address, self.stored.id)
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Fetches the result into the file `name`.
    pub(super) async fn fetch(&self, name: &str, options: FetchOptions) -> Result<FetchedFile, FetchError> {
        self.fetch_from(&self.url(), name, options).await
    }

    pub(super) async fn fetch_from(
        &self,
        url: &str,
        name: &str,
        options: FetchOptions,
    ) -> Result<FetchedFile, FetchError> {
        let output_file = OutputFile::new(self.file(name), None, false)?;
        fetch(&ResultAddress::parse(url).unwrap(), &output_file, options, &self.stop).await
    }

    /// The rows of the file `name`, which is one of Arrow, or a stream if it ends with `.arrows`.
    pub(super) fn read_rows(&self, name: &str) -> RecordBatch {
        let file = std::fs::File::open(self.file(name)).unwrap();
        let batches: Vec<RecordBatch> = match name.ends_with(".arrows") {
            true => StreamReader::try_new(file, None).unwrap().map(Result::unwrap).collect(),
            false => FileReader::try_new(file, None).unwrap().map(Result::unwrap).collect(),
        };
        concat_batches(&schema(), &batches).unwrap()
    }

    /// All rows of the result.
    pub(super) fn expected_rows(&self) -> RecordBatch {
        concat_batches(&schema(), &self.stored.batches).unwrap()
    }

    /// What is in the folder, hidden files too.
    pub(super) fn list_files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// `text` with placeholders for the parts that change in each run.
    pub(super) fn with_placeholders(&self, text: &str) -> String {
        let folder = self.folder.path().display().to_string();
        let (id, port) = (self.stored.id.to_string(), self.server.address.to_string());
        text.replace(&folder, "FOLDER").replace(&id, "ID").replace(&port, "HOST")
    }
}

/// Options with short delays.
pub(super) fn short_delay_options() -> FetchOptions {
    FetchOptions {
        initial_delay: Duration::from_millis(1),
        max_delay: Duration::from_millis(5),
        ..FetchOptions::default()
    }
}
