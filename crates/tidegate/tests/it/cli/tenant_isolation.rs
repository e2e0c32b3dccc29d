//! Two tenants of one node: what one of them has is for the other as if it never was, also where both go by one name.

mod ingested_rows;
mod quotas;
mod tenant_client;

use std::fs::File;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use super::ConfiguredFolder;
use super::results::LARGE_QUERY;
use super::rmcp_client::serve;
use super::server::{Server, wait_until};
use tenant_client::TenantClient;

/// Callers with a token are operators of the node within their tenant.
const CONFIGURATION: &str = "
databases: [{name: shop, files: shop}]
roles: [{name: clerk, toolsets: ['*'], databases: [shop], access: [operator], claims: {groups: clerks}}]
results: {folder: spool, keep_free: 0B}
limits: {task_after: 10ms}
audit: {file: audit.jsonl}
";
/// A question that has no row and no end.
const ENDLESS_QUERY: &str =
    "SELECT g.value FROM orders a CROSS JOIN generate_series(1, 100000000000) AS g(value) WHERE a.id + g.value < 0";
/// An id that nothing has.
const ABSENT: &str = "01234567-89ab-4cde-8f01-23456789abcd";

struct Node {
    server: Server,
    configured: ConfiguredFolder,
}

impl Node {
    /// A node that takes tokens of a key for development, as the lines for it are printed.
    fn start(configuration: &str) -> Self {
        let configured = ConfiguredFolder::new("");
        // Answers from files that have just changed are not remembered.
        let orders = File::options().append(true).open(configured.folder().join("shop/orders.csv")).unwrap();
        orders.set_modified(SystemTime::now() - Duration::from_secs(60)).unwrap();
        let ran = configured.run(&["token", "key"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        configured.write(&format!("{configuration}{}", ran.stdout));
        Self { server: serve(&configured), configured }
    }

    /// The same node after an orderly end.
    fn restart(self) -> Self {
        let Self { server, configured } = self;
        server.signal("TERM");
        assert_eq!(server.wait_for_exit().0.code(), Some(0));
        Self { server: serve(&configured), configured }
    }

    /// A clerk of that name, of a tenant or of none.
    fn client(&self, name: &str, tenant: Option<&str>) -> TenantClient {
        let tenant = tenant.map(|tenant| format!("tenant={tenant}"));
        let claims = tenant.iter().flat_map(|tenant| ["--claim", tenant.as_str()]);
        let arguments = ["token", "new", "--subject", name, "--claim", "groups=clerks"].into_iter().chain(claims);
        let ran = self.configured.run(&arguments.collect::<Vec<_>>());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        TenantClient::new(&self.server.url, ran.stdout.trim())
    }

    /// Two of another tenant, one of them of the same name, and one of none.
    fn clients_of_other_tenants(&self) -> [TenantClient; 3] {
        [("ann", Some("south")), ("bob", Some("south")), ("ann", None)].map(|(name, tenant)| self.client(name, tenant))
    }
}

/// What is done to something that has an id.
#[derive(Debug, Clone, Copy)]
enum Operation {
    /// A method of tasks, in the revision of 2026-07-28.
    Task(&'static str),
    /// The same in a session of 2025-11-25, whose revision had tasks of its own.
    LegacyTask(&'static str),
    /// Subscribes to the changes of a task.
    Listened,
    /// A call is cancelled.
    Cancelled,
    /// A resource is read, by what stands before and behind the id.
    Resource(&'static str, &'static str),
    /// A stored result is fetched over HTTP, by the method and what stands behind the id.
    Fetched(&'static str, &'static str),
    /// An answer is read on from a cursor.
    ReadOn,
}

const TASK_OPERATIONS: [Operation; 8] = [
    Operation::Task("tasks/get"),
    Operation::Task("tasks/update"),
    Operation::Task("tasks/cancel"),
    Operation::LegacyTask("tasks/get"),
    Operation::LegacyTask("tasks/result"),
    Operation::LegacyTask("tasks/list"),
    Operation::LegacyTask("tasks/cancel"),
    Operation::Listened,
];
const CALL_OPERATIONS: [Operation; 2] = [Operation::Cancelled, Operation::Resource("tidegate://jobs/", "")];
const RESULT_OPERATIONS: [Operation; 8] = [
    Operation::Resource("tidegate://results/", ""),
    Operation::Resource("tidegate://results/", "/data"),
    Operation::Resource("tidegate://results/", "/blocks/0"),
    Operation::Fetched("GET", ""),
    Operation::Fetched("HEAD", ""),
    Operation::Fetched("GET", "/data"),
    Operation::Fetched("GET", "/data?format=csv"),
    Operation::Fetched("GET", "/blocks/0"),
];

/// The answer to `who` about `id` over that transport.
async fn response_of(caller: &TenantClient, way: Operation, id: &str) -> String {
    match way {
        Operation::Task(method) => {
            caller.mcp(method, id, json!({"taskId": id, "inputResponses": {}})).await.to_string()
        }
        Operation::LegacyTask(method) => {
            let message = json!({"jsonrpc": "2.0", "id": 2, "method": method, "params": {"taskId": id}});
            caller.send_to_session("POST", &caller.session().await, Some(&message)).await
        }
        Operation::Listened => caller.subscribe(json!({"taskIds": [id]})).await.to_string(),
        Operation::Cancelled => caller.call("cancel_job", json!({"id": id})).await.to_string(),
        Operation::Resource(before, behind) => {
            let uri = format!("{before}{id}{behind}");
            caller.mcp("resources/read", &uri, json!({"uri": uri})).await.to_string()
        }
        Operation::Fetched(method, behind) => caller.fetch(method, &format!("/results/{id}{behind}")).await,
        Operation::ReadOn => {
            caller.call("sql", json!({"sql": LARGE_QUERY, "max_rows": 100_000, "cursor": id})).await.to_string()
        }
    }
}

/// A task and its call that go on, and a stored result with a cursor into one.
struct OwnedObjects {
    task: String,
    job: String,
    result: String,
    cursor: String,
}

impl OwnedObjects {
    async fn create_for(caller: &TenantClient) -> Self {
        let task = caller.begin_task("sql", json!({"sql": ENDLESS_QUERY})).await;
        let jobs = caller.call_rows("list_jobs", json!({})).await;
        let runs = jobs.as_array().unwrap().iter().find(|job| job["status"] == "running").unwrap();
        let result = export_id(caller, json!({"sql": LARGE_QUERY, "delivery": "blocks"})).await;
        let page = caller.call("sql", json!({"sql": LARGE_QUERY, "max_rows": 100_000})).await;
        let things = Self {
            task: text(&task["taskId"]),
            job: text(&runs["id"]),
            cursor: text(&page["_meta"]["dev.tidegate/cursor"]),
            result,
        };
        wait_until_complete(caller, &things.result).await;
        things
    }

    /// Each way to each of them, and what it would be called if it were not there.
    fn operations(&self) -> Vec<(Operation, &str, String)> {
        let tasks = TASK_OPERATIONS.map(|way| (way, self.task.as_str(), ABSENT.to_owned()));
        let calls = CALL_OPERATIONS.map(|way| (way, self.job.as_str(), ABSENT.to_owned()));
        let results = RESULT_OPERATIONS.map(|way| (way, self.result.as_str(), ABSENT.to_owned()));
        let forged = (Operation::ReadOn, self.cursor.as_str(), self.cursor.chars().rev().collect());
        tasks.into_iter().chain(calls).chain(results).chain([forged]).collect()
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}

/// The id of the stored result of a call of `sql`.
async fn export_id(caller: &TenantClient, arguments: Value) -> String {
    let answer = caller.call("sql", arguments).await;
    let uris = answer["content"].as_array().unwrap().iter().filter_map(|block| block["uri"].as_str());
    let id = uris.filter_map(|uri| uri.strip_prefix("tidegate://results/")).next();
    id.unwrap_or_else(|| panic!("{answer}")).to_owned()
}

/// Waits until nothing is written any more of a stored result.
async fn wait_until_complete(caller: &TenantClient, id: &str) {
    let manifest = format!("/results/{id}");
    wait_until(async || caller.fetch("GET", &manifest).await.contains(r#""complete""#)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tenants_cannot_see_each_others_objects() {
    let node = Node::start(CONFIGURATION);
    let ann = node.client("ann", Some("north"));
    let things = OwnedObjects::create_for(&ann).await;
    let strangers = node.clients_of_other_tenants();
    for stranger in &strangers {
        let listed = [
            stranger.call("list_jobs", json!({})).await,
            stranger.mcp("resources/list", "", json!({})).await,
            stranger.mcp("completion/complete", "", completion_request("tidegate://jobs/{id}")).await,
            stranger.mcp("completion/complete", "", completion_request("tidegate://results/{id}")).await,
        ];
        let listed = listed.map(|list| list.to_string()).join("\n");
        for hidden in [&things.task, &things.job, &things.result] {
            assert!(!listed.contains(hidden.as_str()), "{listed}");
        }
    }
    for stranger in &strangers {
        for (way, id, absent) in things.operations() {
            let of_it = response_of(stranger, way, id).await.replace(id, "ID");
            let absent_objects = response_of(stranger, way, &absent).await.replace(&absent, "ID");
            assert_eq!(of_it, absent_objects, "{way:?}");
        }
    }
    // Who is of the tenant and operates it sees what runs there, and others count what runs with them alone.
    let colleague = node.client("bob", Some("north"));
    let seen = colleague.call("list_jobs", json!({})).await.to_string();
    assert!(seen.contains(&things.job), "{seen}");
    wait_until(async || colleague.open_calls().await == 2).await;
    for stranger in &strangers {
        wait_until(async || stranger.open_calls().await == 1).await;
    }

    // Nobody has ended anything, and to whom it belongs it is there.
    assert!(response_of(&ann, Operation::Task("tasks/get"), &things.task).await.contains(r#""status":"working""#));
    let own = things.operations().into_iter().filter(|(way, ..)| {
        matches!(way, Operation::Listened | Operation::Resource(..) | Operation::Fetched(..) | Operation::ReadOn)
    });
    for (way, id, absent) in own {
        let of_it = response_of(&ann, way, id).await.replace(id, "ID");
        assert_ne!(of_it, response_of(&ann, way, &absent).await.replace(&absent, "ID"), "{way:?}");
    }
    response_of(&ann, Operation::Task("tasks/cancel"), &things.task).await;
    wait_until(async || response_of(&ann, Operation::Task("tasks/get"), &things.task).await.contains("cancelled"))
        .await;
    assert_audit_has_tenants(node);
}

fn completion_request(template: &str) -> Value {
    json!({"ref": {"type": "ref/resource", "uri": template}, "argument": {"name": "id", "value": ""}})
}

/// Each call has its tenant in the audit log, so that two of one name are not taken for each other.
fn assert_audit_has_tenants(node: Node) {
    node.server.signal("TERM");
    assert_eq!(node.server.wait_for_exit().0.code(), Some(0));
    let log = std::fs::read_to_string(node.configured.folder().join("audit.jsonl")).unwrap();
    let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let calls: Vec<Value> = lines.filter(|line| line["kind"] == "call" && line["subject"] == "ann").collect();
    for tenant in [json!("north"), json!("south"), Value::Null] {
        assert!(calls.iter().any(|call| call["tenant"] == tenant), "{tenant}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cached_answers_are_not_shared_between_tenants() {
    let node = Node::start(CONFIGURATION);
    let ann = node.client("ann", Some("north"));
    let question = json!({"sql": LARGE_QUERY, "delivery": "blocks"});
    let first = export_id(&ann, question.clone()).await;
    wait_until_complete(&ann, &first).await;
    assert_eq!(export_id(&ann, question.clone()).await, first, "it is remembered");
    for stranger in node.clients_of_other_tenants() {
        let own = export_id(&stranger, question.clone()).await;
        assert_ne!(own, first, "who asks for the first time has an answer of its own");
        wait_until_complete(&stranger, &own).await;
        assert_eq!(export_id(&stranger, question.clone()).await, own);
        let anew = json!({"sql": LARGE_QUERY, "delivery": "blocks", "no_cache": true});
        assert_ne!(export_id(&stranger, anew).await, own);
        assert_eq!(export_id(&ann, question.clone()).await, first, "what others ask anew changes nothing here");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_belong_to_their_principal() {
    let node = Node::start(CONFIGURATION);
    let ann = node.client("ann", Some("north"));
    let session = ann.session().await;
    let params = json!({"name": "sql", "arguments": {"sql": ENDLESS_QUERY}});
    let call = json!({"jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": params});
    let caller = tokio::spawn({
        let (ann, session) = (ann.clone(), session.clone());
        async move { ann.send_to_session("POST", &session, Some(&call)).await }
    });
    let runs = async || ann.call("list_jobs", json!({})).await.to_string().contains("running");
    wait_until(async || runs().await).await;
    let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 77}});
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}});
    for stranger in node.clients_of_other_tenants() {
        // In a session of one's own there is no such call.
        let own = stranger.session().await;
        assert!(stranger.send_to_session("POST", &own, Some(&cancelled)).await.starts_with("202"));
        for (method, message) in [("POST", Some(&list)), ("POST", Some(&cancelled)), ("GET", None), ("DELETE", None)] {
            let of_it = stranger.send_to_session(method, &session, message).await;
            assert!(of_it.starts_with("404"), "{method}: {of_it}");
            assert_eq!(of_it, stranger.send_to_session(method, ABSENT, message).await, "{method}");
        }
    }
    assert!(runs().await && ann.send_to_session("POST", &session, Some(&list)).await.starts_with("200"));
    assert!(ann.send_to_session("POST", &session, Some(&cancelled)).await.starts_with("202"));
    wait_until(async || !runs().await).await;
    // A call that was cancelled has no answer.
    caller.abort();
}
