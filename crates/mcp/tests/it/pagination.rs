//! Lists page by page, with cursors that mean nothing to a client.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use tidegate_core::{Error, Principal, UriTemplate};
use tidegate_mcp::Revision;
use tidegate_runtime::{
    Answer, Handler, Prompt, Resource, ResourceLister, ResourceTemplate, SnapshotBuilder, Tool, handler_fn,
};

use crate::client::Client;
use tidegate_testkit::host::Host;

const ENTRIES: usize = 600;

fn empty_handler() -> Arc<dyn Handler> {
    handler_fn(|_| async { Ok(Answer::content(Vec::new())) })
}

/// Half of the resources are registered, half are listed by a template.
struct Lister;

#[async_trait]
impl ResourceLister for Lister {
    async fn list(&self, _: &Principal) -> Result<Vec<Resource>, Error> {
        let odd = (0..ENTRIES).filter(|number| number % 2 == 1);
        Ok(odd.map(|number| Resource::new(uri(number), "odd", empty_handler())).collect())
    }
}

fn uri(number: usize) -> String {
    format!("number://{number:04}")
}

fn host() -> Host {
    let template = |text: String| ResourceTemplate::new(UriTemplate::parse(text).unwrap(), "template", empty_handler());
    let mut entries = SnapshotBuilder::new();
    for number in 0..ENTRIES {
        entries = entries.tool(Tool::new(format!("tool_{number}"), "", empty_handler()));
        entries = entries.prompt(Prompt::new(format!("prompt_{number:04}"), "", empty_handler()));
        if number % 2 == 0 {
            entries = entries.resource(Resource::new(uri(number), "even", empty_handler()));
        }
        if number < 260 {
            entries = entries.template(template(format!("t{number}://{{x}}")));
        }
    }
    let mut listed = template("number://{number}".to_owned());
    listed.lister = Some(Arc::new(Lister));
    Host::from_entries(entries.template(listed))
}

/// All pages of a list: how long each is, and the key of every entry.
async fn pages(client: &Client, method: &str, list: &str, key: &str) -> (Vec<usize>, Vec<String>) {
    let (mut sizes, mut keys, mut params) = (Vec::new(), Vec::new(), json!({}));
    loop {
        let result = client.send_request(method, params).await.result();
        let entries = result[list].as_array().unwrap();
        sizes.push(entries.len());
        keys.extend(entries.iter().map(|entry| entry[key].as_str().unwrap().to_owned()));
        let Some(cursor) = result.get("nextCursor") else { return (sizes, keys) };
        params = json!({"cursor": cursor});
    }
}

#[tokio::test]
async fn every_entry_comes_once_and_in_order() {
    let host = host();
    for revision in [Revision::V2024_11_05, Revision::V2026_07_28] {
        let client = Client::for_host(&host, revision);
        let (sizes, names) = pages(&client, "tools/list", "tools", "name").await;
        assert_eq!(sizes, [250, 250, 100]);
        assert!((0..ENTRIES).map(|number| format!("tool_{number}")).eq(names));
        let (sizes, uris) = pages(&client, "resources/list", "resources", "uri").await;
        assert_eq!(sizes, [250, 250, 100]);
        assert!((0..ENTRIES).map(uri).eq(uris));
        let (sizes, names) = pages(&client, "prompts/list", "prompts", "name").await;
        assert_eq!(sizes, [250, 250, 100]);
        assert!(names.is_sorted());
        let (sizes, mut texts) = pages(&client, "resources/templates/list", "resourceTemplates", "uriTemplate").await;
        assert_eq!(sizes, [250, 11]);
        texts.sort();
        texts.dedup();
        assert_eq!(texts.len(), 261);
    }
}

#[tokio::test]
async fn page_continues_after_last_entry_of_changed_list() {
    let host = host();
    let client = Client::for_host(&host, Revision::V2026_07_28);
    let cursor = client.send_request("tools/list", json!({})).await.result()["nextCursor"].take();
    let after = async |first: usize, last: usize| {
        let tools = (first..last).map(|number| Tool::new(format!("tool_{number}"), "", empty_handler()));
        host.service.registry().swap(tools.fold(SnapshotBuilder::new(), SnapshotBuilder::tool).build());
        client.send_request("tools/list", json!({"cursor": cursor})).await
    };
    let result = after(200, 260).await.result();
    let names: Vec<&str> = result["tools"].as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap()).collect();
    assert_eq!((names[0], names.len()), ("tool_250", 10));
    assert_eq!(after(240, 250).await.result()["tools"], json!([]));
    assert!(after(250, 300).await.text().starts_with("error -32602: the cursor "));
}

#[tokio::test]
async fn rejects_foreign_cursor() {
    let host = host();
    for revision in Revision::ALL {
        let client = Client::for_host(&host, revision);
        let cursor_of = async |method| client.send_request(method, json!({})).await.result()["nextCursor"].take();
        let of_tools = cursor_of("tools/list").await;
        let of_another_list = cursor_of("prompts/list").await;
        let longer = json!(format!("{}A", of_tools.as_str().unwrap()));
        for cursor in [json!(""), json!("abc"), json!("!"), json!("250"), of_another_list, longer] {
            let text = client.send_request("tools/list", json!({"cursor": cursor})).await.text();
            let expected =
                format!("error -32602: the cursor {cursor} is unknown or no longer valid; begin again without one");
            assert_eq!(text, expected);
        }
        for (method, cursor) in
            [("prompts/list", &of_tools), ("resources/list", &of_tools), ("resources/templates/list", &of_tools)]
        {
            let text = client.send_request(method, json!({"cursor": cursor})).await.text();
            assert!(text.starts_with("error -32602"), "{method}: {text}");
        }
        let null: Value = client.send_request("tools/list", json!({"cursor": null})).await.result();
        assert_eq!(null["tools"].as_array().unwrap().len(), 250);
    }
}
