//! One block, fetched whole and checked.
//!
//! A connection that breaks costs what was not read from it: the next attempt asks for the rest alone. Were that to be
//! the rest of something else, the hash would tell.

use reqwest::header::{ACCEPT, CONTENT_RANGE, ETAG, HeaderMap, HeaderValue, IF_RANGE, RANGE};
use reqwest::{Response, StatusCode};

use crate::address::ResultAddress;
use crate::client::Client;
use crate::digest::sha256;
use crate::error::FetchError;
use crate::manifest::Block;
use crate::notice::Notice;
use crate::refusal::Trouble;
use crate::tally::Tally;

/// How often a block is fetched whose hash is wrong.
const FETCHES_MAX: u32 = 2;
/// A result without rows is not larger, in bytes.
const EMPTY_BYTES_MAX: usize = 16 * 1024 * 1024;

const ARROW: HeaderValue = HeaderValue::from_static("application/vnd.apache.arrow.stream");

/// Fetches blocks of one result.
pub(crate) struct Blocks<'a> {
    pub(crate) client: &'a Client,
    pub(crate) address: &'a ResultAddress,
    pub(crate) tally: &'a Tally,
}

/// What is here of a block.
#[derive(Default)]
struct Arrived {
    bytes: Vec<u8>,
    /// Names the bytes of which these are the first.
    tag: Option<HeaderValue>,
}

impl Blocks<'_> {
    /// The bytes of `block`, which have its hash.
    pub(crate) async fn fetch(&self, block: &Block) -> Result<Vec<u8>, FetchError> {
        let mut fetches = 0;
        loop {
            let bytes = self.whole(block).await?;
            fetches += 1;
            if sha256(&bytes) == block.sha256 {
                return Ok(bytes);
            }
            self.tally.dropped(bytes.len() as u64);
            if fetches == FETCHES_MAX {
                let what = format!("{FETCHES_MAX} times its bytes did not have the hash that the manifest names");
                return Err(FetchError::Damaged { block: block.index, what });
            }
            self.client.options().tell(&Notice::Damaged { block: block.index });
        }
    }

    /// The bytes of a result without blocks: its columns alone.
    pub(crate) async fn fetch_empty(&self) -> Result<Vec<u8>, FetchError> {
        let mut patience = self.client.patience();
        loop {
            let attempt = async {
                let response = self.client.get(self.address.data(), HeaderMap::from_iter([(ACCEPT, ARROW)])).await?;
                self.client.body(response, EMPTY_BYTES_MAX).await
            };
            match attempt.await {
                Ok(bytes) => return Ok(bytes),
                Err(trouble) => patience.after(trouble).await?,
            }
        }
    }

    async fn whole(&self, block: &Block) -> Result<Vec<u8>, FetchError> {
        let mut patience = self.client.patience();
        let mut arrived = Arrived::default();
        let mut most = 0;
        loop {
            let Err(trouble) = self.attempt(block, &mut arrived).await else { return Ok(arrived.bytes) };
            if arrived.bytes.len() > most {
                most = arrived.bytes.len();
                patience.restore();
            }
            let waited = patience.after(trouble).await;
            if waited.is_err() {
                self.forget(&mut arrived);
            }
            waited?;
        }
    }

    /// Reads what has not arrived, to its end.
    async fn attempt(&self, block: &Block, arrived: &mut Arrived) -> Result<(), Trouble> {
        if !arrived.bytes.is_empty() && arrived.bytes.len() as u64 == block.bytes {
            // Only the end of the answer was lost.
            return Ok(());
        }
        let mut headers = HeaderMap::from_iter([(ACCEPT, ARROW)]);
        if let (false, Some(tag)) = (arrived.bytes.is_empty(), &arrived.tag) {
            headers.insert(IF_RANGE, tag.clone());
            let range = HeaderValue::try_from(format!("bytes={}-", arrived.bytes.len()));
            headers.extend(range.ok().map(|range| (RANGE, range)));
        }
        let mut response = self.client.get(self.address.block(block.index), headers).await?;
        if !continues(&response, arrived.bytes.len()) {
            self.forget(arrived);
        }
        arrived.tag = response.headers().get(ETAG).filter(|tag| !tag.as_bytes().starts_with(b"W/")).cloned();
        while let Some(chunk) = self.client.more(&mut response).await? {
            self.tally.arrived(chunk.len() as u64);
            arrived.bytes.extend_from_slice(&chunk);
            if arrived.bytes.len() as u64 > block.bytes {
                // More than there is: its hash is wrong whatever follows.
                return Ok(());
            }
        }
        Ok(())
    }

    fn forget(&self, arrived: &mut Arrived) {
        self.tally.dropped(arrived.bytes.len() as u64);
        arrived.bytes.clear();
    }
}

/// Whether `response` goes on after `bytes`.
fn continues(response: &Response, bytes: usize) -> bool {
    let range = response.headers().get(CONTENT_RANGE).and_then(|range| range.to_str().ok());
    let first = range.and_then(|range| range.strip_prefix("bytes ")?.split_once('-')?.0.parse().ok());
    response.status() == StatusCode::PARTIAL_CONTENT && first == Some(bytes)
}
