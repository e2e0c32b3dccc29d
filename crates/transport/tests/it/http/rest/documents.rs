//! Lists, schemas, OpenAPI and the page.

use serde_json::{Value, json};
use tidegate_runtime::{Answer, SnapshotBuilder, Tool, handler_fn};

use super::fixture::{echo, get, request, start};

async fn document(path: &str) -> Value {
    let answer = start().await.rest(&get(path)).await;
    assert_eq!((answer.head.status, answer.header("content-type")), (200, Some("application/json")));
    serde_json::from_slice(&answer.body).unwrap()
}

#[tokio::test]
async fn tools_are_listed_and_described() {
    let list = document("/rest/tools").await;
    let names: Vec<&str> =
        list["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names[..3], ["script", "decorated", "listing"]);
    let one = document("/rest/tools/decorated").await;
    assert_eq!(one, list["tools"][1]);
    assert_eq!(one["title"], "Decorated");
}

#[tokio::test]
async fn schema_etag_answers_304() {
    let server = start().await;
    let path = "/rest/tools/script/schema";
    let answer = server.rest(&get(path)).await;
    assert_eq!(answer.header("content-type"), Some("application/schema+json"));
    let schema: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(schema["properties"]["steps"]["type"], "array");
    let tag = answer.header("etag").unwrap().to_owned();
    for known in [tag.clone(), format!("\"other\", W/{tag}"), "*".to_owned()] {
        let retried = server.rest(&request("GET", path, &[("If-None-Match", &known)], "")).await;
        assert_eq!((retried.head.status, retried.header("etag"), retried.text()), (304, Some(tag.as_str()), ""));
    }
    let handler = handler_fn(|_| async { Ok(Answer::content(Vec::new())) });
    server.host.service.registry().swap(SnapshotBuilder::new().tool(Tool::new("script", "", handler)).build());
    let changed = server.rest(&request("GET", path, &[("If-None-Match", &tag)], "")).await;
    assert_eq!(changed.head.status, 200);
    assert_ne!(changed.header("etag"), Some(tag.as_str()));
}

#[tokio::test]
async fn openapi_has_a_path_for_every_tool() {
    let document = document("/rest/openapi.json").await;
    assert_eq!(document["openapi"], "3.1.0");
    let mut table = String::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let parameters = operation["parameters"].as_array().unwrap().iter();
            let parameters: Vec<&str> = parameters.map(|parameter| parameter["name"].as_str().unwrap()).collect();
            let id = operation["operationId"].as_str().unwrap();
            table.push_str(&format!("{method} {path} {id} {}\n", parameters.join(" ")));
        }
    }
    insta::assert_snapshot!(table, @r#"
    get /rest/tools list_tools 
    get /rest/tools/{name} get_tool name
    get /rest/tools/{name}/schema get_tool_schema name
    post /rest/query query format
    post /rest/sql sql database max_rows extract format
    get /rest/databases list_databases extract format
    get /rest/databases/{database}/tables list_tables database pattern extract format
    get /rest/databases/{database}/tables/{table} get_table database table samples extract format
    get /rest/databases/{database}/tables/{table}/rows get_rows database table select distinct where order_by limit offset extract format
    get /rest/jobs list_jobs extract format
    get /rest/jobs/{id} get_job id format
    delete /rest/jobs/{id} cancel_job id format
    get /rest/openapi.json get_openapi 
    post /rest/tools/script/call call_script format
    post /rest/tools/decorated/call call_decorated format
    post /rest/tools/listing/call call_listing format
    post /rest/tools/query/call call_query format
    post /rest/tools/sql/call call_sql format
    post /rest/tools/list_databases/call call_list_databases format
    post /rest/tools/list_tables/call call_list_tables format
    post /rest/tools/get_schema/call call_get_schema format
    post /rest/tools/list_jobs/call call_list_jobs format
    post /rest/tools/cancel_job/call call_cancel_job format
    "#);
    insta::assert_snapshot!(serde_json::to_string_pretty(&document["components"]["responses"]["404"]).unwrap(), @r##"
    {
      "description": "Not found. There is no such path",
      "content": {
        "application/problem+json": {
          "schema": {
            "$ref": "#/components/schemas/Problem"
          }
        }
      }
    }
    "##);
    let call = &document["paths"]["/rest/tools/decorated/call"]["post"];
    let types: Vec<&String> = call["responses"]["200"]["content"].as_object().unwrap().keys().collect();
    insta::assert_snapshot!(format!("{types:?}"), @r#"["application/json", "application/x-ndjson", "text/csv", "application/vnd.apache.arrow.stream", "application/vnd.apache.parquet", "text/plain", "text/markdown", "text/toon", "image/*", "audio/*", "application/octet-stream"]"#);
    assert!(document.get("security").is_none());
}

#[tokio::test]
async fn rebases_schema_references() {
    let server = start().await;
    let schema = json!({
        "type": "object",
        "properties": {"tree": {"$ref": "#/$defs/tree"}, "all": {"$ref": "#"}},
        "$defs": {"tree": {"type": "array", "items": {"$ref": "#/$defs/tree"}}},
    });
    let tool = echo("tree").with_input_schema(schema).unwrap();
    server.host.service.registry().swap(SnapshotBuilder::new().tool(tool).build());
    let answer = server.rest(&get("/rest/openapi.json")).await;
    let document: Value = serde_json::from_slice(&answer.body).unwrap();
    let mut references = Vec::new();
    collect(&document, &mut references);
    assert!(references.len() > 10);
    for reference in references {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference} leads nowhere");
    }
    let rewritten = "#/components/schemas/tree.input/$defs/tree";
    assert_eq!(document["components"]["schemas"]["tree.input"]["properties"]["tree"]["$ref"], rewritten);
    // The document contains no paths of hidden tools.
    let paths: Vec<&String> = document["paths"].as_object().unwrap().keys().collect();
    assert!(!paths.iter().any(|path| path.starts_with("/rest/databases")), "{paths:?}");
}

fn collect<'a>(value: &'a Value, references: &mut Vec<&'a str>) {
    match value {
        Value::Object(members) => {
            references.extend(members.get("$ref").and_then(Value::as_str));
            members.values().for_each(|member| collect(member, references));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, references)),
        _ => {}
    }
}

#[tokio::test]
async fn page_loads_nothing_external() {
    let server = start().await;
    for path in ["/rest", "/rest/", "/rest/docs"] {
        let answer = server.rest(&get(path)).await;
        assert_eq!((answer.head.status, answer.header("content-type")), (200, Some("text/html; charset=utf-8")));
        let policy = answer.header("content-security-policy").unwrap();
        let nonce = policy.split("script-src 'nonce-").nth(1).unwrap().split('\'').next().unwrap();
        assert!(policy.starts_with("default-src 'none'; "), "{policy}");
        let page = answer.text();
        assert_eq!((page.matches("<script").count(), page.matches("<style").count()), (1, 1));
        assert_eq!(page.matches(&format!("nonce=\"{nonce}\"")).count(), 2);
        assert!(!page.contains("://") && !page.contains("innerHTML") && !page.contains("{nonce}"));
    }
    let nonces: Vec<String> = [server.rest(&get("/rest")).await, server.rest(&get("/rest")).await]
        .map(|answer| answer.header("content-security-policy").unwrap().to_owned())
        .into();
    assert_ne!(nonces[0], nonces[1]);
}
