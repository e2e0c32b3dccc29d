//! The stored results in the OpenAPI document of REST.

use std::collections::BTreeSet;

use serde_json::Value;
use tidegate_transport::http::HttpOptions;

use super::fixture::{COMPLETE, get, request, with};
use super::links::options;

async fn document(options: HttpOptions) -> Value {
    let headers = [("Authorization", "Bearer key")];
    let answer = with(options).await.download(&request("GET", "/rest/openapi.json", &headers)).await;
    serde_json::from_slice(&answer.body).unwrap()
}

#[tokio::test]
async fn openapi_has_the_paths_of_stored_results() {
    let document = document(HttpOptions::default()).await;
    let mut table = String::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        let Some(operation) = path.starts_with("/results").then(|| &methods["get"]) else { continue };
        let parameters = operation["parameters"].as_array().unwrap().iter();
        let parameters: Vec<&str> = parameters.map(|parameter| parameter["name"].as_str().unwrap()).collect();
        let statuses: BTreeSet<&str> = operation["responses"].as_object().unwrap().keys().map(String::as_str).collect();
        let statuses = Vec::from_iter(statuses).join(" ");
        let found = operation["responses"]["200"]["content"].as_object().unwrap().keys();
        let types = found.cloned().collect::<Vec<_>>().join(" ");
        table.push_str(&format!("{path}\n  {}\n  {statuses}\n  {types}\n", parameters.join(" ")));
        assert!(operation.get("security").is_none());
    }
    insta::assert_snapshot!(table, @r#"
    /results/{id}
      id format If-None-Match If-Match
      200 304 400 401 403 404 405 406 409 412 413 422 429 500 503 504
      application/json
    /results/{id}/blocks/{n}
      id n format If-None-Match If-Match Range If-Range
      200 206 304 400 401 403 404 405 406 409 412 413 416 422 429 500 503 504
      application/vnd.apache.arrow.stream application/json application/x-ndjson text/csv application/vnd.apache.parquet
    /results/{id}/data
      id partial format If-None-Match If-Match Range If-Range
      200 206 304 400 401 403 404 405 406 409 412 413 416 422 429 500 503 504
      application/vnd.apache.arrow.stream application/json application/x-ndjson text/csv application/vnd.apache.parquet */*
    "#);
    assert!(document["components"].get("securitySchemes").is_none());
    for (pointer, name) in references(&document) {
        assert!(document.pointer(&pointer).is_some(), "{name} leads nowhere");
    }
}

#[tokio::test]
async fn openapi_offers_link_or_bearer() {
    let document = document(options()).await;
    let security = document["paths"]["/results/{id}/data"]["get"]["security"].to_string();
    assert_eq!(security, r#"[{"bearer":[]},{"link":[]}]"#);
    assert_eq!(document["components"]["securitySchemes"]["link"]["in"], "query");
    assert_eq!(document["security"].to_string(), r#"[{"bearer":[]}]"#);
}

#[tokio::test]
async fn openapi_documents_every_status() {
    let document = document(HttpOptions::default()).await;
    let server = with(HttpOptions::default()).await;
    for (view, path) in
        [("/data", "/results/{id}/data"), ("/blocks/7", "/results/{id}/blocks/{n}"), ("", "/results/{id}")]
    {
        let known = document["paths"][path]["get"]["responses"].as_object().unwrap();
        let mut answered = BTreeSet::new();
        let address = format!("/results/{COMPLETE}{view}");
        for headers in [
            &[][..],
            &[("Range", "bytes=0-9")],
            &[("Range", "bytes=999999999-")],
            &[("If-None-Match", "*")],
            &[("If-Match", "\"other\"")],
            &[("Accept", "image/png")],
        ] {
            let answer = server.download(&request("GET", &address, headers)).await;
            let status = answer.head.status.to_string();
            let described = known.get(&status).unwrap_or_else(|| panic!("{path} has no {status}"));
            if answer.head.status < 300 {
                let media_type = answer.header("content-type").unwrap();
                assert!(described["content"].get(media_type).is_some(), "{path} has no {media_type}");
            }
            answered.insert(answer.head.status);
        }
        assert!(answered.len() >= 4, "{answered:?}");
    }
    let answer = server.download(&get("/results/nothing")).await;
    assert_eq!(answer.head.status, 404);
}

/// The target of each reference in the document.
fn references(value: &Value) -> Vec<(String, String)> {
    let own =
        value.get("$ref").and_then(Value::as_str).map(|to| (to.trim_start_matches('#').to_owned(), to.to_owned()));
    let below = match value {
        Value::Object(members) => members.values().flat_map(references).collect::<Vec<_>>(),
        Value::Array(items) => items.iter().flat_map(references).collect(),
        _ => Vec::new(),
    };
    own.into_iter().chain(below).collect()
}
