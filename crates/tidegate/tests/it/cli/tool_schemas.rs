//! The schemas of all tools stay within the part of JSON Schema that all clients take: `docs/reference/client-limits.md`
//! has each rule with its clients.

use rmcp::ServiceExt as _;
use rmcp::transport::StreamableHttpClientTransport;
use serde_json::{Map, Value};

use super::ConfiguredFolder;
use super::rmcp_client::serve;

/// A node with every capability, and declared tools with every kind of parameter. Lists have all arguments.
const CONFIGURATION: &str = r#"
advanced: true
databases:
  - {name: shop, files: shop}
  - {name: machine, system: {}}
  - {name: sites, network: {nodes: [{name: oslo, url: 'grpc://127.0.0.1:1'}]}}
  - {name: plant, ingest: plant, tables: {sensors: {columns: {time: timestamp not null, device: string}}}}
receivers: {otlp: plant, prometheus: plant, bulk: plant}
logs: [{name: app, table: shop.orders, time: id}]
metrics: [{name: power, table: shop.samples, time: time, columns: [power]}]
http: {allow_hosts: ['127.0.0.1:1']}
tools:
  - name: orders_of
    description: O
    database: shop
    sql: |
      SELECT id FROM orders
      WHERE customer IN (:customers) AND amount >= :least AND id < :most AND (:all OR DATE '2026-01-01' < :day)
        AND :since < TIMESTAMP '2027-01-01' AND customer = :choice ORDER BY :by
    input:
      customers: {type: list, items: string}
      least: {type: number, minimum: 0}
      most: {type: integer, required: false}
      all: {type: boolean, default: true}
      day: {type: date}
      since: {type: timestamp}
      choice: {type: string, enum: [Ann, Bob]}
      by: {type: identifier, allow: [id, amount], default: id}
  - name: report_reading
    description: R
    insert_into: plant.sensors
    input: {time: {type: timestamp}, device: {type: string, ask: Which device?}}
  - name: tickets
    description: T
    http: {url: 'http://127.0.0.1:1/tickets/{{customer}}'}
    input: {customer: {type: string}}
auth: {anonymous: [everything]}
roles: [{name: everything, toolsets: ['*'], access: ['*'], databases: ['*'], ingest: ['*']}]
"#;

/// The keywords of input schemas.
const KEYWORDS: [&str; 17] = [
    "type",
    "anyOf",
    "description",
    "default",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "minItems",
    "maxItems",
    "enum",
    "minLength",
    "maxLength",
    "pattern",
    "format",
    "minimum",
    "maximum",
];

#[tokio::test(flavor = "multi_thread")]
async fn all_schemas_are_those_that_clients_take() {
    let configured = ConfiguredFolder::new(CONFIGURATION);
    std::fs::write(configured.folder().join("shop/samples.csv"), "time,power\n2026-01-01T06:00:00Z,1.5\n").unwrap();
    let server = serve(&configured);
    let (mut names, mut problems) = (Vec::new(), Vec::new());
    for url in [server.url.clone(), format!("{}/discover", server.url)] {
        let client = ().serve(StreamableHttpClientTransport::from_uri(url.as_str())).await.unwrap();
        for tool in client.list_all_tools().await.unwrap() {
            let tool = serde_json::to_value(tool).unwrap();
            let name = tool["name"].as_str().unwrap().to_owned();
            let input = &tool["inputSchema"];
            if input["type"] != "object" {
                problems.push(format!("{name}: the schema is not one of an object"));
            }
            check_input(&name, input, &mut problems);
            if let Some(output) = tool.get("outputSchema") {
                check_output(&format!("{name} (output)"), output, &mut problems);
            }
            names.push(name);
        }
        client.cancel().await.unwrap();
    }
    for expected in [
        "sql",
        "get_schema",
        "execute_function",
        "test_network",
        "query_logs",
        "compare_metrics",
        "replace_rows",
        "maintain_ingest",
        "orders_of",
        "report_reading",
        "tickets",
        "find_tool",
        "call_tool",
    ] {
        assert!(names.iter().any(|name| name == expected), "{expected} is not among {names:?}");
    }
    assert_eq!(problems, Vec::<String>::new());
}

/// Checks a schema that a client may send to the service of its model.
fn check_input(path: &str, schema: &Value, problems: &mut Vec<String>) {
    let Some(members) = schema.as_object() else { return problems.push(format!("{path}: is not an object")) };
    let unknown = members.keys().filter(|keyword| !KEYWORDS.contains(&keyword.as_str()));
    problems.extend(unknown.map(|keyword| format!("{path}: has {keyword}")));
    match (members.get("anyOf").and_then(Value::as_array), members.get("type")) {
        (Some(alternatives), None) => {
            if members.len() > 1 {
                problems.push(format!("{path}: has more than its alternatives"));
            }
            for (index, alternative) in alternatives.iter().enumerate() {
                check_input(&format!("{path}.anyOf[{index}]"), alternative, problems);
            }
        }
        (None, Some(Value::String(kind))) => check_typed(path, kind, members, problems),
        _ => problems.push(format!("{path}: has not one type")),
    }
}

fn check_typed(path: &str, kind: &str, members: &Map<String, Value>, problems: &mut Vec<String>) {
    match members.get("items") {
        Some(items) => check_input(&format!("{path}[]"), items, problems),
        None if kind == "array" => problems.push(format!("{path}: has no items")),
        None => {}
    }
    if let Some(values) = members.get("enum").and_then(Value::as_array)
        && (kind != "string" || !values.iter().all(Value::is_string))
    {
        problems.push(format!("{path}: lists values that are not texts"));
    }
    if members.get("format").is_some_and(|format| format != "date-time") {
        problems.push(format!("{path}: has another format than date-time"));
    }
    let properties = members.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
        if name.is_empty() || name.len() > 64 || !name.chars().all(is_plain) {
            problems.push(format!("{path}: the name {name:?} has other characters, or more than 64"));
        }
        check_input(&format!("{path}.{name}"), property, problems);
    }
    for name in members.get("required").and_then(Value::as_array).into_iter().flatten() {
        if !properties.is_some_and(|properties| properties.contains_key(name.as_str().unwrap())) {
            problems.push(format!("{path}: requires {name}, which it does not describe"));
        }
    }
}

/// Checks a schema by which a client validates an answer: there, a list of types is how a value may be null.
fn check_output(path: &str, schema: &Value, problems: &mut Vec<String>) {
    match schema {
        Value::Object(members) => {
            let kind = &schema["type"];
            let is_array =
                kind == "array" || kind.as_array().is_some_and(|kinds| kinds.iter().any(|one| one == "array"));
            if is_array && !members.contains_key("items") {
                problems.push(format!("{path}: has no items"));
            }
            if members.contains_key("$ref") {
                problems.push(format!("{path}: has a reference"));
            }
            for (name, member) in members {
                check_output(&format!("{path}.{name}"), member, problems);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| check_output(path, item, problems)),
        _ => {}
    }
}
