//! Downloads one block and verifies its hash.
//!
//! After a lost connection, the next attempt requests only the missing bytes. If those were bytes of something else,
//! the hash would not match.

use reqwest::header::{ACCEPT, CONTENT_RANGE, ETAG, HeaderMap, HeaderValue, IF_RANGE, RANGE};
use reqwest::{Response, StatusCode};
use tidegate_core::Format;

use super::address::ResultAddress;
use super::client::{RequestFailure, ResultClient, RetryState};
use super::error::FetchError;
use super::manifest::{ManifestBlock, sha256};
use super::progress::{DownloadEvent, ProgressTracker};

const FETCHES_MAX: u32 = 2;
const EMPTY_BYTES_MAX: usize = 16 * 1024 * 1024;

pub(crate) struct BlockFetcher<'a> {
    pub(crate) client: &'a ResultClient,
    pub(crate) address: &'a ResultAddress,
    pub(crate) progress: &'a ProgressTracker,
}

#[derive(Default)]
struct PartialBlock {
    bytes: Vec<u8>,
    etag: Option<HeaderValue>,
}

impl BlockFetcher<'_> {
    pub(crate) async fn fetch(&self, block: &ManifestBlock) -> Result<Vec<u8>, FetchError> {
        let mut fetches = 0;
        loop {
            let bytes = self.fetch_unverified(block).await?;
            fetches += 1;
            if sha256(&bytes) == block.sha256 {
                return Ok(bytes);
            }
            self.progress.remove_bytes(bytes.len() as u64);
            if fetches == FETCHES_MAX {
                let what = format!("its bytes did not match the hash of the manifest, {FETCHES_MAX} times");
                return Err(FetchError::Damaged { block: block.index, what });
            }
            self.client.options().notify(&DownloadEvent::BlockDamaged { block: block.index });
        }
    }

    /// The bytes of a result without blocks: a stream that contains only the schema.
    pub(crate) async fn fetch_empty(&self) -> Result<Vec<u8>, FetchError> {
        let attempt = async || {
            let response = self.client.get(self.address.data_url(), accept_arrow()).await?;
            self.client.read_body(response, EMPTY_BYTES_MAX).await
        };
        self.client.retry(attempt).await
    }

    async fn fetch_unverified(&self, block: &ManifestBlock) -> Result<Vec<u8>, FetchError> {
        let mut retry_state = RetryState::new(self.client);
        let mut arrived = PartialBlock::default();
        let mut most = 0;
        loop {
            let Err(failure) = self.fetch_remaining(block, &mut arrived).await else { return Ok(arrived.bytes) };
            if arrived.bytes.len() > most {
                most = arrived.bytes.len();
                retry_state.reset();
            }
            let waited = retry_state.wait_after_failure(failure).await;
            if waited.is_err() {
                self.discard(&mut arrived);
            }
            waited?;
        }
    }

    async fn fetch_remaining(&self, block: &ManifestBlock, arrived: &mut PartialBlock) -> Result<(), RequestFailure> {
        if !arrived.bytes.is_empty() && arrived.bytes.len() as u64 == block.bytes {
            // All bytes arrived; only the end of the response was lost.
            return Ok(());
        }
        let mut headers = accept_arrow();
        if let (false, Some(tag)) = (arrived.bytes.is_empty(), &arrived.etag) {
            headers.insert(IF_RANGE, tag.clone());
            let range = HeaderValue::try_from(format!("bytes={}-", arrived.bytes.len()));
            headers.extend(range.ok().map(|range| (RANGE, range)));
        }
        let mut response = self.client.get(self.address.block_url(block.index), headers).await?;
        if !is_continuation(&response, arrived.bytes.len()) {
            self.discard(arrived);
        }
        arrived.etag = response.headers().get(ETAG).filter(|tag| !tag.as_bytes().starts_with(b"W/")).cloned();
        while let Some(chunk) = self.client.next_chunk(&mut response).await? {
            self.progress.add_bytes(chunk.len() as u64);
            arrived.bytes.extend_from_slice(&chunk);
            if arrived.bytes.len() as u64 > block.bytes {
                // The block is too long, so its hash is wrong whatever follows.
                return Ok(());
            }
        }
        Ok(())
    }

    fn discard(&self, arrived: &mut PartialBlock) {
        self.progress.remove_bytes(arrived.bytes.len() as u64);
        arrived.bytes.clear();
    }
}

fn is_continuation(response: &Response, bytes: usize) -> bool {
    let range = response.headers().get(CONTENT_RANGE).and_then(|range| range.to_str().ok());
    let first = range.and_then(|range| range.strip_prefix("bytes ")?.split_once('-')?.0.parse().ok());
    response.status() == StatusCode::PARTIAL_CONTENT && first == Some(bytes)
}

fn accept_arrow() -> HeaderMap {
    HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(Format::Arrow.media_type()))])
}
