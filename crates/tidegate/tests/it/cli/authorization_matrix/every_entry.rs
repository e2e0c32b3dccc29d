//! What holds for each entry of a registry, whatever its handler does: secrets are masked, data for models is fenced, answers
//! fit their budget and name the nodes whose rows they lack, each call has one audit line with its rows and bytes, and a
//! caller without rights receives nothing.

mod entries;

use reqwest::Client;
use serde_json::{Value, json};

use super::client_connection::{Attempt, ClientConnection, Transport};
use super::matrix_node::start_site;
use super::owned_resources::result_id;
use super::target::list_names;
use crate::cli::ConfiguredFolder;
use crate::cli::rmcp_client::serve;
use crate::cli::server::{Server, wait_until};
use entries::{Entry, EntryRequest, Point, Target, WITH_SECRET, entries};

const CONFIGURATION: &str = "
databases:
  - {name: shop, SHOP}
  - {name: plant, ingest: plant, tables: {readings: {columns: {id: integer}}}}
  - {name: machine, system: {tables: [memory]}}
  - {name: sites, network: {nodes: [{name: oslo, url: 'SITE'}]}}
folders: [{name: papers, path: shop}]
receivers: {otlp: plant, prometheus: plant, bulk: plant}
logs: [{name: badge_log, table: shop.badges, time: time}]
metrics: [{name: badge_power, table: shop.badges, time: time, columns: [power]}]
tools:
  - {name: badges_all, description: B, database: shop, sql: SELECT * FROM badges ORDER BY id}
  - {name: badges_first, description: B, tool: query, arguments: {database: shop, table: badges}, defaults: {limit: 9}}
  - {name: readings_add, description: B, insert_into: plant.readings, input: {id: {type: integer}}}
resources:
  - {name: badge_list, uri: 'badges://all', database: shop, sql: SELECT * FROM badges ORDER BY id}
  - {name: badge_of, uri: 'badges://of/{id}', database: shop, sql: 'SELECT note FROM badges WHERE CAST(id AS TEXT) = :id'}
  - {name: badge_file, uri: 'badges://file', file: shop/badges.csv}
prompts: [{name: badge_review, description: B, messages: [{text: Look at the badges.}, {resource: 'badges://all'}]}]
roles: [{name: everything, toolsets: ['*'], access: ['*'], databases: ['*'], ingest: ['*']}, {name: nothing}]
auth: {keys: keys.json}
secrets: {rules: [{name: badge, pattern: 'EMP-[0-9]{6}'}]}
fence: true
advanced: true
";
const SHOP_OF_FILES: &str = "files: shop";
/// The tables of the site, and a node that does not answer.
const SHOP_OF_NODES: &str =
    "network: {partial: allow, nodes: [{name: oslo, url: 'SITE'}, {name: rome, url: 'grpc://127.0.0.1:1'}]}";
const MISSING_NODE: &str = "rome";
const LARGE_BUDGET: &str = "limits: {inline_bytes: 1MB}\nresults: {folder: spool, keep_free: 0B}\n";
const SECRET: &str = "EMP-123456";
const MASK: &str = "[secret: badge]";
/// Less than any of the tables has.
const SMALL_BUDGET_BYTES: usize = 600;
/// What an answer says beside its data at most.
const NOTES_BYTES_MAX: usize = 1_000;

/// A call that was made, and its answer.
struct EntryCall<'a> {
    entry: &'a Entry,
    target: Target,
    attempt: Attempt,
}

/// A node, and principals with all rights and with none.
struct ProtectedNode {
    /// The configuration without the settings of a server.
    configuration: String,
    configured: ConfiguredFolder,
    client: Client,
    everything: String,
    nothing: String,
    /// The node of its networks, which runs as long as it does.
    _site: (Server, ConfiguredFolder),
}

/// A client of a node that runs.
struct EntryClient<'a> {
    node: &'a ProtectedNode,
    server: &'a Server,
    key: &'a str,
    job: String,
    result: String,
}

impl ProtectedNode {
    /// A node whose database `shop` is configured as `shop`.
    fn new(shop: &str) -> Self {
        let (site_folder, site) = start_site();
        let configuration = CONFIGURATION.replace("SHOP", shop).replace("SITE", &site.url);
        let configured = ConfiguredFolder::new(&configuration);
        let mut rows = "id,time,note,power\n".to_owned();
        for number in 0..200 {
            let (hour, minute) = (number * 7 / 60, number * 7 % 60);
            rows.push_str(&format!("{number},2026-01-01T{hour:02}:{minute:02}:00Z,badge {SECRET},{}.5\n", number % 9));
        }
        for folder in [&configured, &site_folder] {
            std::fs::write(folder.folder().join("shop/badges.csv"), &rows).unwrap();
        }
        let key = |role: &str| {
            let ran = configured.run(&["key", "add", &format!("of_{role}"), "--role", role]);
            assert_eq!(ran.code, Some(0), "{ran:?}");
            ran.stdout.trim().to_owned()
        };
        let (everything, nothing) = (key("everything"), key("nothing"));
        Self { configuration, configured, client: Client::new(), everything, nothing, _site: (site, site_folder) }
    }

    /// Starts a server with further settings.
    fn serve(&self, settings: &str) -> Server {
        self.configured.write(&format!("{}{settings}audit: {{file: audit.jsonl}}\n", self.configuration));
        serve(&self.configured)
    }

    /// Ends `server`, and returns the lines of all calls up to now.
    fn stop(&self, server: Server) -> Vec<Value> {
        server.signal("TERM");
        assert_eq!(server.wait_for_exit().0.code(), Some(0));
        let lines = self.audit_log();
        let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.filter(|line| line["kind"] == "call" || line["kind"] == "refused_call").collect()
    }

    fn audit_log(&self) -> String {
        std::fs::read_to_string(self.configured.folder().join("audit.jsonl")).unwrap()
    }
}

impl<'a> EntryClient<'a> {
    fn new(node: &'a ProtectedNode, server: &'a Server, key: &'a str) -> Self {
        Self { node, server, key, job: String::new(), result: String::new() }
    }

    async fn call_all<'e>(&mut self, entries: impl Iterator<Item = &'e Entry>) -> Vec<EntryCall<'e>> {
        let mut calls = Vec::new();
        for entry in entries {
            let (target, attempt) = self.call(entry).await;
            if let Attempt::Done(result) = &attempt {
                self.keep_ids(entry, result).await;
            }
            calls.push(EntryCall { entry, target, attempt });
        }
        calls
    }

    async fn call(&self, entry: &Entry) -> (Target, Attempt) {
        match &entry.request {
            EntryRequest::Mcp(toolset, method, params) => {
                let params = params.to_string().replace("JOB_ID", &self.job).replace("RESULT_ID", &self.result);
                let params: Value = serde_json::from_str(&params).unwrap();
                let target = target_of(method, &params);
                match self.connect(Transport::Modern, *toolset).await {
                    Ok(mut connection) => (target, connection.request(method, params).await),
                    Err(refused) => (target, Attempt::Refused(refused)),
                }
            }
            EntryRequest::Receiver(path, body) => (("tool", entry.name.to_owned()), self.send(path, body).await),
        }
    }

    async fn connect(&self, transport: Transport, toolset: Option<&str>) -> Result<ClientConnection<'_>, String> {
        ClientConnection::over_http(&self.node.client, &self.server.url, Some(self.key), transport, toolset).await
    }

    async fn send(&self, path: &str, (media_type, body): &(&str, Vec<u8>)) -> Attempt {
        let request = self.node.client.post(self.server.url.replace("/mcp", path)).bearer_auth(self.key);
        let request = request.header("content-type", *media_type).body(body.clone());
        let request = match path {
            "/api/v1/write" => request.header("content-encoding", "snappy"),
            _ => request,
        };
        let response = request.send().await.unwrap();
        let (status, text) = (response.status().as_u16(), response.text().await.unwrap());
        // Remote write has histograms too, which are rejected with 400.
        match status {
            200..=204 | 400 => Attempt::Done(json!({"text": text})),
            _ => Attempt::Refused(format!("{status} {text}")),
        }
    }

    /// Keeps the ids that other entries need.
    async fn keep_ids(&mut self, entry: &Entry, result: &Value) {
        match entry.name {
            "list_jobs" => {
                let (ids, _) = split_fence(&texts(result)[0]);
                let ids: Vec<String> = serde_json::from_str(&ids).unwrap();
                self.job.clone_from(&ids[0]);
            }
            "export" => {
                self.result = result_id(result).unwrap();
                let node = self.node;
                // Its line is written when all rows are stored.
                wait_until(async || node.audit_log().contains(r#""name":"sql""#)).await;
            }
            _ => {}
        }
    }

    /// The names of all tools and prompts, and the declared resources and templates.
    async fn listed_names(&self) -> Vec<String> {
        let mut whole = self.connect(Transport::Modern, None).await.unwrap();
        let mut discover = self.connect(Transport::Modern, Some("discover")).await.unwrap();
        let mut rest = self.connect(Transport::Rest, None).await.unwrap();
        let mut names = Vec::new();
        for connection in [&mut whole, &mut discover, &mut rest] {
            names.extend(list_names(connection, "tools/list", "tools", "name").await);
        }
        names.extend(list_names(&mut whole, "prompts/list", "prompts", "name").await);
        names.extend(list_names(&mut whole, "resources/templates/list", "resourceTemplates", "uriTemplate").await);
        let resources = list_names(&mut whole, "resources/list", "resources", "uri").await;
        // The others are listed by their templates.
        names.extend(resources.into_iter().filter(|uri| !uri.starts_with("tidegate://")));
        names
    }
}

fn target_of(method: &str, params: &Value) -> Target {
    let (kind, name) = match method {
        "tools/call" => ("tool", &params["name"]),
        "resources/read" => ("resource", &params["uri"]),
        "prompts/get" => ("prompt", &params["name"]),
        _ => ("completion", params["ref"].get("name").unwrap_or(&params["ref"]["uri"])),
    };
    (kind, name.as_str().unwrap().to_owned())
}

/// The texts of an answer, without structured content, which is for programs and has no fence.
fn texts(result: &Value) -> Vec<String> {
    match result {
        Value::Object(members) => {
            let of_member = |(name, value): (&String, &Value)| match (name.as_str(), value) {
                ("text", Value::String(text)) => vec![text.clone()],
                ("structuredContent" | "_meta", _) => Vec::new(),
                _ => texts(value),
            };
            members.iter().flat_map(of_member).collect()
        }
        Value::Array(items) => items.iter().flat_map(texts).collect(),
        _ => Vec::new(),
    }
}

/// What is within fences, and what is not.
fn split_fence(text: &str) -> (String, String) {
    let (mut inside, mut outside, mut rest) = (String::new(), String::new(), text);
    while let Some((before, fenced)) = rest.split_once("[data ") {
        let (mark, _) = fenced.split_once(':').unwrap();
        let (_, fenced) = fenced.split_once('\n').unwrap();
        let (data, after) = fenced.split_once(&format!("[end {mark}]")).expect("a fence has an end");
        inside.push_str(data);
        outside.push_str(before);
        rest = after;
    }
    outside.push_str(rest);
    (inside, outside)
}

/// Kind of the line, kind and name of the target, and outcome.
type AuditLine = [String; 4];

/// The lines of calls, sorted: a call whose rows are still being stored ends after its answer. `refusal` is the kind of a line
/// and the outcome of a call without an answer.
fn expected_lines(calls: &[EntryCall<'_>], refusal: (&str, &str)) -> Vec<AuditLine> {
    let line = |kind: &str, target: &Target, outcome: &str| {
        [kind.to_owned(), target.0.to_owned(), target.1.clone(), outcome.to_owned()]
    };
    let mut lines = Vec::new();
    for call in calls {
        match &call.attempt {
            Attempt::Done(_) => {
                lines.extend(call.entry.inner_target().map(|inner| line("call", &inner, "done")));
                lines.push(line("call", &call.target, "done"));
            }
            Attempt::Refused(_) => lines.push(line(refusal.0, &call.target, refusal.1)),
        }
    }
    lines.sort();
    lines
}

/// What was written, sorted.
fn written_lines(lines: &[Value]) -> Vec<AuditLine> {
    let members = |line: &Value| {
        [&line["kind"], &line["target"]["kind"], &line["target"]["name"], &line["outcome"]]
            .map(|member| member.as_str().unwrap().to_owned())
    };
    let mut written: Vec<AuditLine> = lines.iter().map(members).collect();
    written.sort();
    written
}

/// Checks the answer of each call and its audit line with `check_answer`, and fails with all violations.
fn check_answers(
    calls: &[EntryCall<'_>],
    lines: &[Value],
    check_answer: impl Fn(&Entry, &Value, &Value, &mut dyn FnMut(bool, &str)),
) {
    let mut violations = Vec::new();
    let mut lines: Vec<&Value> = lines.iter().collect();
    for EntryCall { entry, target, attempt } in calls {
        let is_of_call = |line: &&Value| line["target"]["kind"] == target.0 && line["target"]["name"] == target.1;
        let line = lines.remove(lines.iter().position(is_of_call).unwrap());
        let Attempt::Done(result) = attempt else {
            violations.push(format!("{} {target:?}: {attempt:?}", entry.name));
            continue;
        };
        check_answer(entry, result, line, &mut |is_right, problem| {
            if !is_right {
                violations.push(format!("{} {target:?}: {problem}: {result}", entry.name));
            }
        });
    }
    assert_eq!(violations, Vec::<String>::new(), "\n{}", violations.join("\n"));
}

/// Redaction, fence, and charges of answers that nothing cuts.
fn check_whole_answers(calls: &[EntryCall<'_>], lines: &[Value]) {
    check_answers(calls, lines, |entry, result, line, check| {
        let answer = result.to_string();
        check(!answer.contains(SECRET), "has a secret");
        check(!WITH_SECRET.contains(&entry.name) || answer.contains(MASK), "has no mask");
        if entry.holds(Point::Fence) {
            let parts: Vec<(String, String)> = texts(result).iter().map(|text| split_fence(text)).collect();
            check(parts.iter().any(|(inside, _)| !inside.is_empty()), "has no fence");
            check(!parts.iter().any(|(_, outside)| outside.contains(MASK)), "has data outside of its fence");
        }
        check(!entry.holds(Point::Rows) || line["rows"].as_u64() > Some(0), "counts no rows");
        check(!entry.holds(Point::Bytes) || line["bytes"].as_u64() > Some(0), "counts no bytes");
    });
}

/// Metadata, texts and audit lines of answers without the rows of a node.
fn check_partial_answers(calls: &[EntryCall<'_>], lines: &[Value]) {
    check_answers(calls, lines, |entry, result, line, check| {
        if entry.holds(Point::MissingNodes) {
            let missing = &result["_meta"]["dev.tidegate/missing_nodes"];
            check(missing[0]["name"] == MISSING_NODE && missing[1].is_null(), "names no missing node in its metadata");
            check(line["missing_nodes"] == MISSING_NODE, "names no missing node in its audit line");
        }
        if entry.holds(Point::MissingNodesNote) {
            check(texts(result).iter().any(|text| text.contains(MISSING_NODE)), "names no missing node in its texts");
        }
    });
}

/// Each text fits the small budget. Those that cannot were refused, as the audit log has it.
fn check_small_answers(calls: &[EntryCall<'_>]) {
    for EntryCall { target, attempt, .. } in calls {
        let Attempt::Done(result) = attempt else { continue };
        for text in texts(result) {
            let (inside, outside) = split_fence(&text);
            let is_small = inside.trim_end().len() <= SMALL_BUDGET_BYTES && outside.len() <= NOTES_BYTES_MAX;
            assert!(is_small, "{target:?}: {text}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_entry_has_the_protection_of_the_registry() {
    let node = ProtectedNode::new(SHOP_OF_FILES);
    let entries = entries();
    let server = node.serve(LARGE_BUDGET);
    let mut owner = EntryClient::new(&node, &server, &node.everything);
    let calls = owner.call_all(entries.iter()).await;
    let listed = owner.listed_names().await;
    let untested: Vec<&String> =
        listed.iter().filter(|name| !entries.iter().any(|entry| entry.name == *name)).collect();
    assert_eq!(untested, Vec::<&String>::new());
    let mut stranger = EntryClient { key: &node.nothing, ..owner };
    let refused = stranger.call_all(entries.iter().filter(|entry| entry.holds(Point::Rights))).await;
    let lines = node.stop(server);
    let first_lines = lines.len();
    check_whole_answers(&calls, &lines);
    let mut expected = [&calls, &refused].map(|calls| expected_lines(calls, ("refused_call", "not_found"))).concat();
    expected.sort();
    assert_eq!(written_lines(&lines), expected);
    let had: Vec<&Target> =
        refused.iter().filter(|call| matches!(call.attempt, Attempt::Done(_))).map(|call| &call.target).collect();
    assert_eq!(had, Vec::<&Target>::new());

    let server = node.serve(&format!("limits: {{inline_bytes: {SMALL_BUDGET_BYTES}B}}\nresults: {{enabled: false}}\n"));
    let mut owner = EntryClient::new(&node, &server, &node.everything);
    let small = owner.call_all(entries.iter().filter(|entry| entry.holds(Point::Budget))).await;
    let lines = node.stop(server);
    check_small_answers(&small);
    assert_eq!(written_lines(&lines[first_lines..]), expected_lines(&small, ("call", "too_large")));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_entry_with_rows_names_the_nodes_that_do_not_answer() {
    let node = ProtectedNode::new(SHOP_OF_NODES);
    let entries = entries();
    let server = node.serve(LARGE_BUDGET);
    let calls = EntryClient::new(&node, &server, &node.everything).call_all(entries.iter()).await;
    check_partial_answers(&calls, &node.stop(server));
}
