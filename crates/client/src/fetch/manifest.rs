//! The manifest of a result: its state and its blocks in order, which their hashes identify, also while the result is still
//! being written.

use aws_lc_rs::digest::{SHA256, digest};
use parking_lot::Mutex;
use reqwest::header::{ACCEPT, HeaderMap, HeaderValue};
use serde::Deserialize;
use tidegate_core::{Backoff, MissingNode, MissingNodes};
use tokio::time::Instant;
use uuid::Uuid;

use super::address::ResultAddress;
use super::client::ResultClient;
use super::{FetchError, ProgressTracker};
use crate::server::sanitize;

/// Maximum size of a block in bytes. A block is in memory until its hash is verified.
const BLOCK_BYTES_MAX: u64 = 1 << 30;

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct ResultManifest {
    id: String,
    pub(crate) status: ResultStatus,
    #[serde(default)]
    pub(crate) reason: Option<String>,
    /// The nodes of a network whose rows the result lacks.
    #[serde(default)]
    missing_nodes: Vec<MissingNode>,
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
    pub(crate) blocks: Vec<ManifestBlock>,
    /// The file whose bytes the rows contain; `None` for the rows of a query.
    #[serde(default)]
    pub(crate) file: Option<ManifestFile>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct ManifestFile {
    pub(crate) bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ResultStatus {
    Running,
    Complete,
    Incomplete,
}

/// One block: a complete Arrow IPC stream.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct ManifestBlock {
    /// Position, from 0 without gaps.
    pub(crate) index: u64,
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
    pub(crate) sha256: String,
}

impl ResultManifest {
    /// Parses the manifest of the result `id`. The error is the reason why it is invalid.
    pub(crate) fn parse(json: &[u8], id: Uuid) -> Result<Self, String> {
        let manifest: Self = serde_json::from_slice(json).map_err(|error| error.to_string())?;
        if Uuid::try_parse(&manifest.id) != Ok(id) {
            return Err(format!("it is the manifest of {}", manifest.id));
        }
        for (index, block) in (0..).zip(&manifest.blocks) {
            if block.index != index {
                return Err(format!("block {index} is missing"));
            }
            if !is_sha256(&block.sha256) {
                return Err(format!("the hash of block {index} is not a SHA-256"));
            }
            if block.bytes > BLOCK_BYTES_MAX {
                return Err(format!("block {index} has {} bytes, more than {BLOCK_BYTES_MAX}", block.bytes));
            }
        }
        Ok(manifest)
    }

    /// A sentence about the nodes whose rows the result lacks, if it lacks some.
    pub(crate) fn missing_note(&self) -> Option<String> {
        let missing = MissingNodes { nodes: self.missing_nodes.clone(), rows_total: None };
        (!missing.nodes.is_empty()).then(|| sanitize(&missing.to_string()))
    }

    /// Whether this manifest is `earlier` with zero or more blocks appended.
    fn extends(&self, earlier: &Self) -> bool {
        self.blocks.starts_with(&earlier.blocks)
    }
}

/// The SHA-256 of `bytes` as in a manifest: lower-case hexadecimal.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex::encode(digest(&SHA256, bytes))
}

fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const ID: Uuid = Uuid::from_u128(7);

    fn manifest() -> Value {
        let block =
            |index: u64| json!({"index": index, "first_row": 0, "rows": 2, "bytes": 9, "sha256": "a".repeat(64)});
        json!({
            "id": ID.to_string(), "uri": "tidegate://results/x", "status": "running", "rows": 4, "bytes": 18, "columns": [],
            "blocks": [block(0), block(1)],
        })
    }

    fn read(manifest: &Value) -> Result<ResultManifest, String> {
        ResultManifest::parse(manifest.to_string().as_bytes(), ID)
    }

    #[test]
    fn manifest_only_appends_blocks() {
        let earlier = read(&manifest()).unwrap();
        let mut grown = earlier.clone();
        grown.blocks.push(ManifestBlock { index: 2, ..grown.blocks[1].clone() });
        assert!(grown.extends(&earlier) && earlier.extends(&earlier));
        assert!(!earlier.extends(&grown));
        grown.blocks[0].sha256 = "b".repeat(64);
        assert!(!grown.extends(&earlier));
    }

    #[test]
    fn rejects_invalid_manifests() {
        let with = |pointer: &str, value: Value| {
            let mut changed = manifest();
            *changed.pointer_mut(pointer).unwrap() = value;
            read(&changed).unwrap_err()
        };
        assert!(with("/id", json!(Uuid::from_u128(8).to_string())).contains("it is the manifest of"));
        assert_eq!(with("/blocks/1/index", json!(2)), "block 1 is missing");
        assert_eq!(with("/blocks/0/sha256", json!("../../x")), "the hash of block 0 is not a SHA-256");
        assert!(with("/blocks/0/bytes", json!(BLOCK_BYTES_MAX + 1)).starts_with("block 0 has"));
        assert!(with("/status", json!("paused")).contains("paused"));
        assert!(ResultManifest::parse(b"<html>", ID).is_err());
    }

    #[test]
    fn missing_nodes_become_a_sentence() {
        let mut manifest = manifest();
        assert_eq!(read(&manifest).unwrap().missing_note(), None);
        manifest["partial"] = true.into();
        manifest["missing_nodes"] = json!([{"name": "oslo", "reason": "is\u{1b}away", "rows": 3}]);
        let note = read(&manifest).unwrap().missing_note().unwrap();
        assert_eq!(note, "This answer is partial: it lacks the rows of 1 node: oslo (is away).");
    }

    #[test]
    fn sha256_of_empty_input() {
        let hash = sha256(b"");
        assert_eq!(hash, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        assert!(is_sha256(&hash));
        for invalid in ["", "e3b0", &hash.to_uppercase(), &"x".repeat(64)] {
            assert!(!is_sha256(invalid), "{invalid}");
        }
    }
}
