//! The manifest of a stored result as JSON, for its readers.

use chrono::{DateTime, SecondsFormat};
use serde_json::{Value, json};
use tidegate_core::Caller;
use tidegate_results::{ResultEnd, ResultStore, StoredResult};

use crate::format::field_type_name;

/// The manifest of `result`, with links that act for `reader`. A reader that came by a link receives no further
/// links, because they would never expire.
pub fn result_manifest(store: &ResultStore, result: &StoredResult, reader: Option<&Caller>) -> Value {
    let header = result.header();
    let progress = result.progress();
    let blocks: Vec<Value> = progress
        .blocks
        .iter()
        .enumerate()
        .map(|(index, block)| {
            json!({
                "index": index, "first_row": block.first_row, "rows": block.rows, "bytes": block.bytes,
                "sha256": block.sha256,
            })
        })
        .collect();
    let columns = result.schema().fields().iter();
    let columns: Vec<Value> = columns
        .map(|field| json!({"name": field.name(), "type": field_type_name(field), "nullable": field.is_nullable()}))
        .collect();
    let mut manifest = json!({
        "id": header.id.to_string(),
        "uri": header.id.uri(),
        "status": progress.status(),
        "created_at": format_time(header.created_at_ms),
        "expires_at": format_time(header.expires_at_ms),
        "job": header.job.to_string(),
        "rows": progress.rows(),
        "bytes": progress.bytes(),
        "columns": columns,
        "blocks": blocks,
    });
    match &header.file {
        Some(file) => {
            manifest["resource"] = header.tool.as_str().into();
            manifest["file"] = json!({"name": file.name, "bytes": file.bytes});
            if let Some(media_type) = &file.media_type {
                manifest["file"]["media_type"] = media_type.as_str().into();
            }
        }
        None => {
            manifest["tool"] = header.tool.as_str().into();
            manifest["database"] = header.database.as_str().into();
        }
    }
    if let Some(reason) = progress.end.as_ref().and_then(ResultEnd::reason) {
        manifest["reason"] = reason.into();
    }
    if let (Some(missing), Some(members)) = (&header.missing_nodes, manifest.as_object_mut()) {
        members.extend(missing.to_json_members());
    }
    if let Some(rows) = result.reached_row_limit() {
        manifest["asked_for"] = rows.into();
    }
    if let Some(reader) = reader.filter(|reader| !reader.is_link_only) {
        let (link, expires_at_ms) = store.create_link(result, reader);
        manifest["links"] = json!({
            "expires_at": format_time(expires_at_ms),
            "manifest": format!("/results/{}?link={link}", header.id),
            "data": format!("/results/{}/data?link={link}", header.id),
        });
    }
    manifest
}

fn format_time(ms: u64) -> Option<String> {
    let time = DateTime::from_timestamp_millis(i64::try_from(ms).ok()?)?;
    Some(time.to_rfc3339_opts(SecondsFormat::Millis, true))
}
