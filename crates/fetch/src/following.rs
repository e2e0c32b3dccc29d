//! A result's blocks in order, for as long as more of them come.

use parking_lot::Mutex;
use reqwest::header::{ACCEPT, HeaderMap, HeaderValue};
use tokio::time::Instant;

use crate::address::ResultAddress;
use crate::backoff::Backoff;
use crate::client::Client;
use crate::error::FetchError;
use crate::manifest::{Block, Manifest, Status};
use crate::refusal::Trouble;
use crate::tally::Tally;

/// Larger manifests are not read, in bytes.
const MANIFEST_BYTES_MAX: usize = 64 * 1024 * 1024;
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The blocks that are known, and the way to hear of more.
pub(crate) struct Following<'a> {
    client: &'a Client,
    address: &'a ResultAddress,
    tally: &'a Tally,
    /// What is known by now; also for who wants to know how it ended.
    manifest: &'a Mutex<Manifest>,
    next: usize,
    backoff: Backoff,
    grown_at: Instant,
}

impl<'a> Following<'a> {
    pub(crate) fn new(
        client: &'a Client,
        address: &'a ResultAddress,
        tally: &'a Tally,
        manifest: &'a Mutex<Manifest>,
    ) -> Self {
        let options = client.options();
        let backoff = Backoff::new(options.delay_first, options.delay_longest);
        Self { client, address, tally, manifest, next: 0, backoff, grown_at: Instant::now() }
    }

    /// The next block, once there is one; nothing when the result has ended.
    pub(crate) async fn next(&mut self) -> Result<Option<Block>, FetchError> {
        loop {
            let (block, status) = {
                let manifest = self.manifest.lock();
                (manifest.blocks.get(self.next).cloned(), manifest.status)
            };
            if block.is_some() {
                self.next += 1;
                return Ok(block);
            }
            if status != Status::Running {
                return Ok(None);
            }
            let standstill_max = self.client.options().standstill_max;
            if self.grown_at.elapsed() >= standstill_max {
                return Err(FetchError::Standstill { minutes: standstill_max.as_secs() / 60 });
            }
            tokio::time::sleep(self.backoff.next_delay()).await;
            self.look_again().await?;
        }
    }

    async fn look_again(&mut self) -> Result<(), FetchError> {
        let manifest = read(self.client, self.address).await?;
        self.tally.knows(&manifest);
        let mut known = self.manifest.lock();
        if !manifest.continues(&known) {
            return Err(FetchError::Changed);
        }
        if manifest.blocks.len() > known.blocks.len() {
            self.backoff.reset();
            self.grown_at = Instant::now();
        }
        *known = manifest;
        Ok(())
    }
}

/// The manifest as it is now.
pub(crate) async fn read(client: &Client, address: &ResultAddress) -> Result<Manifest, FetchError> {
    let mut patience = client.patience();
    loop {
        match read_once(client, address).await {
            Ok(manifest) => return Ok(manifest),
            Err(trouble) => patience.after(trouble).await?,
        }
    }
}

/// One attempt at the manifest.
async fn read_once(client: &Client, address: &ResultAddress) -> Result<Manifest, Trouble> {
    let response = client.get(address.manifest(), HeaderMap::from_iter([(ACCEPT, JSON)])).await?;
    let body = client.body(response, MANIFEST_BYTES_MAX).await?;
    Manifest::read(&body, address.id())
        .map_err(|why| Trouble::Final(client.garbage(&format!("its manifest cannot be read: {why}"))))
}
