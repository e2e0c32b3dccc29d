//! A stored result, and how a server that behaves answers for it.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::ipc::CompressionType;
use arrow::ipc::writer::{IpcWriteOptions, StreamWriter};
use aws_lc_rs::digest::{SHA256, digest};
use serde_json::{Value, json};
use uuid::Uuid;

use super::test_server::{RecordedRequest, TestResponse};

/// Rows of each batch, two of which make a block.
const BATCH_ROWS: i64 = 50;

/// A result whose blocks are all there.
pub(super) struct StoredResultFixture {
    pub(super) id: Uuid,
    pub(super) batches: Vec<RecordBatch>,
    pub(super) blocks: Vec<Vec<u8>>,
}

/// The state of a result in its manifest.
pub(super) struct ManifestState<'a> {
    pub(super) status: &'a str,
    /// How many of the blocks it has.
    pub(super) blocks: usize,
}

pub(super) fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("name", DataType::Utf8, true),
        Field::new("share", DataType::Float64, true),
    ]))
}

fn batch(first: i64) -> RecordBatch {
    let ids = first..first + BATCH_ROWS;
    let name = |id: i64| (id % 7 != 0).then(|| format!("row \"{id}\",\n{}", "ä".repeat((id % 13) as usize)));
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from_iter_values(ids.clone())),
        Arc::new(ids.clone().map(name).collect::<StringArray>()),
        Arc::new(ids.map(|id| (id % 5 != 0).then(|| id as f64 / 3.0)).collect::<Float64Array>()),
    ];
    RecordBatch::try_new(schema(), columns).unwrap()
}

/// One stream of Arrow with compressed bodies.
pub(super) fn block(schema: &SchemaRef, batches: &[RecordBatch]) -> Vec<u8> {
    let options = IpcWriteOptions::default().try_with_compression(Some(CompressionType::ZSTD)).unwrap();
    let mut writer = StreamWriter::try_new_with_options(Vec::new(), schema, options).unwrap();
    for batch in batches {
        writer.write(batch).unwrap();
    }
    writer.into_inner().unwrap()
}

pub(super) fn sha256(bytes: &[u8]) -> String {
    digest(&SHA256, bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

impl StoredResultFixture {
    pub(super) fn new(blocks: usize) -> Self {
        let batches: Vec<RecordBatch> = (0..2 * blocks as i64).map(|index| batch(index * BATCH_ROWS)).collect();
        let blocks = batches.chunks(2).map(|batches| block(&schema(), batches)).collect();
        Self { id: Uuid::new_v4(), batches, blocks }
    }

    pub(super) fn rows(&self) -> u64 {
        self.batches.iter().map(|batch| batch.num_rows() as u64).sum()
    }

    /// The manifest when the result is that far.
    pub(super) fn manifest(&self, manifest_state: &ManifestState<'_>) -> Value {
        let rows = 2 * BATCH_ROWS;
        let blocks = self.blocks.iter().enumerate().take(manifest_state.blocks).map(|(index, block)| {
            let sha256 = sha256(block);
            json!({"index": index, "first_row": index as i64 * rows, "rows": rows, "bytes": block.len(), "sha256": sha256})
        });
        let bytes: usize = self.blocks.iter().take(manifest_state.blocks).map(Vec::len).sum();
        let id = self.id;
        let mut manifest = json!({
            "id": id.to_string(), "uri": format!("tidegate://results/{id}"), "status": manifest_state.status,
            "created_at": "2026-11-22T12:00:00Z", "expires_at": "2026-11-22T13:00:00Z", "tool": "sql",
            "rows": rows * manifest_state.blocks as i64, "bytes": bytes,
            "columns": [{"name": "id", "type": "Int64", "nullable": false}],
            "blocks": blocks.collect::<Vec<_>>(),
        });
        if manifest_state.status == "incomplete" {
            manifest["reason"] = "the query ran longer than 10m".into();
        }
        manifest
    }

    /// The answer of a server that has all of it.
    pub(super) fn respond(&self, recorded_request: &RecordedRequest) -> TestResponse {
        self.respond_at(recorded_request, &ManifestState { status: "complete", blocks: self.blocks.len() })
    }

    /// The answer of a server that has it that far.
    pub(super) fn respond_at(
        &self,
        recorded_request: &RecordedRequest,
        manifest_state: &ManifestState<'_>,
    ) -> TestResponse {
        let absent = || TestResponse::problem("404 Not Found", "there is no such thing");
        if !recorded_request.path.starts_with(&format!("/results/{}", self.id)) {
            return absent();
        }
        match recorded_request.block() {
            Some(index) if index < manifest_state.blocks => self.respond_with_block(recorded_request, index),
            None if recorded_request.is_manifest() => TestResponse::json(&self.manifest(manifest_state).to_string()),
            None if recorded_request.path.ends_with("/data") => {
                TestResponse::new("200 OK", &[], &block(&schema(), &[]))
            }
            _ => absent(),
        }
    }

    fn respond_with_block(&self, recorded_request: &RecordedRequest, index: usize) -> TestResponse {
        let block = &self.blocks[index];
        let tag = format!("\"block-{index}\"");
        let first = recorded_request
            .header("range")
            .and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok());
        match first {
            Some(first) if recorded_request.header("if-range") == Some(&tag) => {
                let range = format!("bytes {first}-{}/{}", block.len() - 1, block.len());
                let headers = [("ETag", tag.as_str()), ("Content-Range", range.as_str())];
                TestResponse::new("206 Partial Content", &headers, &block[first..])
            }
            _ => TestResponse::new("200 OK", &[("ETag", &tag)], block),
        }
    }
}
