//! Declared tools that add a row to a table.

use reqwest::Client;
use serde_json::{Value, json};

use super::ConfiguredFolder;
use super::rmcp_client::serve;

const CONFIGURATION: &str = "
databases:
  - name: plant
    ingest: plant
    tables:
      sensors: {columns: {time: timestamp not null, device: string, value: double, note: string}}
tools:
  - name: report_reading
    description: Stores a reading of a sensor.
    insert_into: plant.sensors
    input:
      time: {type: timestamp}
      device: {type: string, default: unknown}
      value: {type: number, maximum: 100}
      note: {type: string, required: false}
";

#[tokio::test]
async fn a_call_adds_one_row() {
    let configured = ConfiguredFolder::new(CONFIGURATION);
    let server = serve(&configured);
    let url = server.url.replace("/mcp", "/rest/tools/report_reading/call");
    let call = async |arguments: Value| {
        let response = Client::new().post(&url).json(&arguments).send().await.unwrap();
        (response.status().as_u16(), response.json::<Value>().await.unwrap())
    };
    let (status, stored) = call(json!({"time": "2026-01-01T00:00:00Z", "value": 1.5})).await;
    assert_eq!((status, &stored["rows"], &stored["table"]), (200, &json!(1), &json!("sensors")), "{stored}");
    let (status, _) = call(json!({"time": "2026-01-02T00:00:00Z", "value": 2, "device": "a", "note": "dry"})).await;
    assert_eq!(status, 200);
    for (wrong, expected) in [
        (json!({"time": "2026-01-01T00:00:00Z", "value": 101}), "value"),
        (json!({"time": "2026-01-01T00:00:00Z", "value": 1, "other": 1}), "other"),
    ] {
        let (status, problem) = call(wrong).await;
        assert_eq!(status, 422, "{problem}");
        assert!(problem.to_string().contains(expected), "{problem}");
    }
    server.signal("TERM");
    server.wait_for_exit();
    // A process that only reads has the same configuration.
    let rows = configured.run(&["query", "SELECT device, value, note FROM sensors ORDER BY time"]);
    assert_eq!(rows.stdout.replace('\r', ""), "device,value,note\nunknown,1.5,\na,2.0,dry\n", "{rows:?}");
}

#[test]
fn mistakes_of_the_declaration_are_named() {
    let wrong = CONFIGURATION.replace("device: {type", "devise: {type");
    let check = |configuration: &str| {
        let ran = ConfiguredFolder::new(configuration).run(&["config", "check"]);
        assert_ne!(ran.code, Some(0), "{ran:?}");
        format!("{}{}", ran.stdout, ran.stderr)
    };
    let text = check(&wrong);
    assert!(text.contains("tools[0].input.devise") && text.contains("device"), "{text}");
    let text = check(&CONFIGURATION.replace("insert_into: plant.sensors", "insert_into: plan.sensors"));
    assert!(
        text.contains("tools[0].insert_into") && text.contains("there is no database \"plan\"; there are plant"),
        "{text}"
    );
    let both = CONFIGURATION.replace("    insert_into:", "    sql: SELECT 1\n    format: csv\n    insert_into:");
    let text = check(&both);
    assert!(text.contains("needs one of sql, insert_into and http"), "{text}");
    let text = check(&CONFIGURATION.replace("    insert_into:", "    format: csv\n    insert_into:"));
    assert!(text.contains("tools[0].format"), "{text}");
}

#[tokio::test]
async fn only_callers_who_may_write_to_the_table_have_the_tool() {
    let configured = ConfiguredFolder::new("");
    let key = configured.run(&["token", "key"]);
    let roles = "roles:
  - {name: sensor, toolsets: ['*'], ingest: [plant.sensors], claims: {groups: sensors}}
  - {name: other, toolsets: ['*'], ingest: [plant.others], databases: ['*'], claims: {groups: others}}
";
    configured.write(&format!("{CONFIGURATION}{roles}{}", key.stdout));
    let server = serve(&configured);
    let url = server.url.replace("/mcp", "/rest/tools/report_reading/call");
    let reading = json!({"time": "2026-01-01T00:00:00Z", "value": 1.5});
    for (group, status) in [("sensors", 200), ("others", 404)] {
        let ran = configured.run(&["token", "new", "--subject", "ann", "--claim", &format!("groups={group}")]);
        let request = Client::new().post(&url).bearer_auth(ran.stdout.trim()).json(&reading);
        assert_eq!(request.send().await.unwrap().status(), status, "{group}");
    }
}
