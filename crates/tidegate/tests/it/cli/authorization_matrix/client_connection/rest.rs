//! REST, which knows tools alone: its answers in the shape that MCP gives them.

use reqwest::{Client, StatusCode};
use serde_json::{Value, json};

use super::Attempt;

/// Somebody who asks paths.
pub(in super::super) struct RestClient<'a> {
    client: &'a Client,
    key: Option<&'a str>,
    /// Of the node, up to `/rest`.
    root: String,
}

impl<'a> RestClient<'a> {
    /// At the node whose MCP is at `url`.
    pub(super) fn new(client: &'a Client, url: &str, key: Option<&'a str>) -> Self {
        Self { client, key, root: url.replace("/mcp", "/rest") }
    }

    /// Lists or calls tools.
    pub(super) async fn request(&self, method: &str, params: &Value) -> Attempt {
        let (client, root) = (self.client, &self.root);
        let request = match method {
            "tools/list" => client.get(format!("{root}/tools")),
            "tools/call" => {
                let name = params["name"].as_str().unwrap();
                let arguments = params.get("arguments").cloned().unwrap_or_else(|| json!({}));
                client.post(format!("{root}/tools/{name}/call")).json(&arguments)
            }
            other => panic!("REST does not ask {other}"),
        };
        let request = self.key.into_iter().fold(request, |request, key| request.bearer_auth(key));
        let response = request.send().await.unwrap();
        let (status, text) = (response.status(), response.text().await.unwrap());
        let json: Option<Value> = serde_json::from_str(&text).ok();
        match (status, method, json) {
            (StatusCode::OK, "tools/list", Some(listed)) => Attempt::Done(listed),
            (StatusCode::OK, _, Some(answer)) => Attempt::Done(in_content(&answer)),
            // Rows in another form than JSON.
            (StatusCode::OK, _, None) => Attempt::Done(json!({"content": [{"type": "text", "text": text}]})),
            (status, _, Some(problem)) => {
                let choices: Vec<&str> =
                    problem["choices"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
                let offered = format!("\nValid choices: {}", choices.join(", "));
                let offered = if choices.is_empty() { "" } else { &offered };
                Attempt::Refused(format!("{status} {} {}{offered}", problem["type"], problem["detail"]))
            }
            (status, _, None) => Attempt::Refused(format!("{status} {text}")),
        }
    }
}

/// An answer as the result of a tool: rows as the text that they are over MCP.
fn in_content(answer: &Value) -> Value {
    match answer.get("Query") {
        Some(rows) => json!({"content": [{"type": "text", "text": rows.to_string()}]}),
        None => answer.clone(),
    }
}
