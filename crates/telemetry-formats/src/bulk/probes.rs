//! Answers to the requests that shippers send before they send documents.

use serde_json::{Value, json};

/// The version of Elasticsearch whose bulk API is implemented. Shippers compare it with theirs.
pub const ELASTIC_VERSION: &str = "8.17.0";

/// The identifier of a cluster or a license, which nothing refers to.
const NO_IDENTIFIER: &str = "00000000-0000-0000-0000-000000000000";

/// `GET /`: the name and the version.
#[must_use]
pub fn cluster_info(node_name: &str) -> Value {
    json!({
        "name": node_name,
        "cluster_name": node_name,
        "cluster_uuid": NO_IDENTIFIER,
        "version": {
            "number": ELASTIC_VERSION,
            "build_flavor": "default",
            "build_type": "tar",
            "build_hash": "unknown",
            "build_date": "2024-12-11T12:08:05.663969764Z",
            "build_snapshot": false,
            "lucene_version": "9.12.0",
            "minimum_wire_compatibility_version": "7.17.0",
            "minimum_index_compatibility_version": "7.0.0",
        },
        "tagline": "You Know, for Search",
    })
}

/// `GET /_license`: a basic license, without which Beats do not send.
#[must_use]
pub fn cluster_license() -> Value {
    json!({
        "license": {
            "status": "active",
            "uid": NO_IDENTIFIER,
            "type": "basic",
            "mode": "basic",
            "issue_date": "1970-01-01T00:00:00.000Z",
            "issue_date_in_millis": 0,
            "max_nodes": null,
            "max_resource_units": null,
            "issued_to": "tidegate",
            "issuer": "tidegate",
            "start_date_in_millis": -1,
        }
    })
}

/// `GET /_cluster/health`: one node that accepts documents.
#[must_use]
pub fn cluster_health(node_name: &str) -> Value {
    json!({
        "cluster_name": node_name,
        "status": "green",
        "timed_out": false,
        "number_of_nodes": 1,
        "number_of_data_nodes": 1,
        "active_primary_shards": 1,
        "active_shards": 1,
        "relocating_shards": 0,
        "initializing_shards": 0,
        "unassigned_shards": 0,
        "delayed_unassigned_shards": 0,
        "number_of_pending_tasks": 0,
        "number_of_in_flight_fetch": 0,
        "task_max_waiting_in_queue_millis": 0,
        "active_shards_percent_as_number": 100.0,
    })
}
