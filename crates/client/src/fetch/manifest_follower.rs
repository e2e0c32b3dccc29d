//! The blocks of a result in order, also while the result is still being written.

use parking_lot::Mutex;
use reqwest::header::{ACCEPT, HeaderMap, HeaderValue};
use tokio::time::Instant;

use super::address::ResultAddress;
use super::client::ResultClient;
use super::error::FetchError;
use super::manifest::{ManifestBlock, ResultManifest, ResultStatus};
use tidegate_core::Backoff;

use crate::fetch::progress::ProgressTracker;

const MANIFEST_BYTES_MAX: usize = 64 * 1024 * 1024;
const JSON: HeaderValue = HeaderValue::from_static("application/json");

pub(crate) struct ManifestFollower<'a> {
    client: &'a ResultClient,
    address: &'a ResultAddress,
    progress: &'a ProgressTracker,
    /// The latest manifest, shared with the download, which needs the final status.
    manifest: &'a Mutex<ResultManifest>,
    next: usize,
    backoff: Backoff,
    grown_at: Instant,
}

impl<'a> ManifestFollower<'a> {
    pub(crate) fn new(
        client: &'a ResultClient,
        address: &'a ResultAddress,
        progress: &'a ProgressTracker,
        manifest: &'a Mutex<ResultManifest>,
    ) -> Self {
        let options = client.options();
        let backoff = Backoff::new(options.initial_delay, options.max_delay);
        Self { client, address, progress, manifest, next: 0, backoff, grown_at: Instant::now() }
    }

    /// The next block, as soon as there is one; `None` after the last one.
    pub(crate) async fn next(&mut self) -> Result<Option<ManifestBlock>, FetchError> {
        loop {
            let (block, status) = {
                let manifest = self.manifest.lock();
                (manifest.blocks.get(self.next).cloned(), manifest.status)
            };
            if block.is_some() {
                self.next += 1;
                return Ok(block);
            }
            if status != ResultStatus::Running {
                return Ok(None);
            }
            let stall_timeout = self.client.options().stall_timeout;
            if self.grown_at.elapsed() >= stall_timeout {
                return Err(FetchError::ResultStalled { minutes: stall_timeout.as_secs() / 60 });
            }
            tokio::time::sleep(self.backoff.next_delay()).await;
            self.refresh_manifest().await?;
        }
    }

    async fn refresh_manifest(&mut self) -> Result<(), FetchError> {
        let manifest = fetch_manifest(self.client, self.address).await?;
        self.progress.update_from_manifest(&manifest);
        let mut current = self.manifest.lock();
        if !manifest.extends(&current) {
            return Err(FetchError::ResultChanged);
        }
        if manifest.blocks.len() > current.blocks.len() {
            self.backoff.reset();
            self.grown_at = Instant::now();
        }
        *current = manifest;
        Ok(())
    }
}

pub(crate) async fn fetch_manifest(
    client: &ResultClient,
    address: &ResultAddress,
) -> Result<ResultManifest, FetchError> {
    let attempt = async || {
        let response = client.get(address.manifest_url(), HeaderMap::from_iter([(ACCEPT, JSON)])).await?;
        let body = client.read_body(response, MANIFEST_BYTES_MAX).await?;
        let invalid = |reason| client.invalid_response(&format!("its manifest is invalid: {reason}"));
        ResultManifest::parse(&body, address.id()).map_err(invalid)
    };
    client.retry(attempt).await
}
