//! What telemetry senders send.
//!
//! - `rows`: cells of record batches as JSON.
//! - `encoders`: bodies that other implementations wrote (`fixtures/make_fixtures.py`), and what they contain.
//! - `otlp_json`: OTLP in JSON as senders write it by hand.
//! - `otlp_rules`: records that are rejected, bounds, and answers.
//! - `hostile`: bodies that are cut, changed, nested or larger than they look.
//! - `remote_write`: rules and answers of Prometheus remote write.
//! - `bulk`: the bulk API of Elasticsearch, up to rows of the decoder for NDJSON.
//! - `trees`: spans as trees.

#![allow(clippy::indexing_slicing, reason = "a test that cannot go on fails")]

mod bulk;
mod encoders;
mod hostile;
mod otlp_json;
mod otlp_rules;
mod remote_write;
mod rows;
mod trees;
