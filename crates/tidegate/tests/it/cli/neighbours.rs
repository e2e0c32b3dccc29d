//! Two tenants of one node: what one of them has is for the other as if it never was, also where both go by one name.

mod quotas;
mod somebody;

use std::fs::File;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use super::Configured;
use super::foreign::serve;
use super::results::MANY;
use super::server::{Server, within_reason};
use somebody::Somebody;

/// Whoever has a token operates the node, as far as its tenant goes.
const CONFIGURATION: &str = "
databases: [{name: shop, files: shop}]
roles: [{name: clerk, toolsets: ['*'], databases: [shop], access: [operator], claims: {groups: clerks}}]
results: {folder: spool, keep_free: 0B}
limits: {task_after: 10ms}
audit: {file: audit.jsonl}
";
/// A question that has no row and no end.
const NEVER: &str =
    "SELECT g.value FROM orders a CROSS JOIN generate_series(1, 100000000000) AS g(value) WHERE a.id + g.value < 0";
/// An id that nothing has.
const ABSENT: &str = "01234567-89ab-4cde-8f01-23456789abcd";

struct Node {
    server: Server,
    configured: Configured,
}

impl Node {
    /// A node that takes tokens of a key for development, as the lines for it are printed.
    fn start(configuration: &str) -> Self {
        let configured = Configured::new("");
        // Answers from files that have just changed are not remembered.
        let orders = File::options().append(true).open(configured.folder().join("shop/orders.csv")).unwrap();
        orders.set_modified(SystemTime::now() - Duration::from_secs(60)).unwrap();
        let ran = configured.run(&["token", "key"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        configured.write(&format!("{configuration}{}", ran.stdout));
        Self { server: serve(&configured), configured }
    }

    /// The same node after an orderly end.
    fn restarted(self) -> Self {
        let Self { server, configured } = self;
        server.signal("TERM");
        assert_eq!(server.ended().0.code(), Some(0));
        Self { server: serve(&configured), configured }
    }

    /// A clerk of that name, of a tenant or of none.
    fn somebody(&self, name: &str, tenant: Option<&str>) -> Somebody {
        let tenant = tenant.map(|tenant| format!("tenant={tenant}"));
        let claims = tenant.iter().flat_map(|tenant| ["--claim", tenant.as_str()]);
        let arguments = ["token", "new", "--subject", name, "--claim", "groups=clerks"].into_iter().chain(claims);
        let ran = self.configured.run(&arguments.collect::<Vec<_>>());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        Somebody::new(&self.server.url, ran.stdout.trim())
    }

    /// Two of another tenant, one of them of the same name, and one of none.
    fn strangers(&self) -> [Somebody; 3] {
        [("ann", Some("south")), ("bob", Some("south")), ("ann", None)]
            .map(|(name, tenant)| self.somebody(name, tenant))
    }
}

/// What is done to something that has an id.
#[derive(Debug, Clone, Copy)]
enum Way {
    /// A method of tasks, in the revision of 2026-07-28.
    Task(&'static str),
    /// The same in a session of 2025-11-25, whose revision had tasks of its own.
    LegacyTask(&'static str),
    /// To hear of the changes of a task.
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

const OF_TASKS: [Way; 8] = [
    Way::Task("tasks/get"),
    Way::Task("tasks/update"),
    Way::Task("tasks/cancel"),
    Way::LegacyTask("tasks/get"),
    Way::LegacyTask("tasks/result"),
    Way::LegacyTask("tasks/list"),
    Way::LegacyTask("tasks/cancel"),
    Way::Listened,
];
const OF_CALLS: [Way; 2] = [Way::Cancelled, Way::Resource("tidegate://jobs/", "")];
const OF_RESULTS: [Way; 8] = [
    Way::Resource("tidegate://results/", ""),
    Way::Resource("tidegate://results/", "/data"),
    Way::Resource("tidegate://results/", "/blocks/0"),
    Way::Fetched("GET", ""),
    Way::Fetched("HEAD", ""),
    Way::Fetched("GET", "/data"),
    Way::Fetched("GET", "/data?format=csv"),
    Way::Fetched("GET", "/blocks/0"),
];

/// What `who` is told of `id` by that way.
async fn told(who: &Somebody, way: Way, id: &str) -> String {
    match way {
        Way::Task(method) => who.mcp(method, id, json!({"taskId": id, "inputResponses": {}})).await.to_string(),
        Way::LegacyTask(method) => {
            let message = json!({"jsonrpc": "2.0", "id": 2, "method": method, "params": {"taskId": id}});
            who.to_session("POST", &who.session().await, Some(&message)).await
        }
        Way::Listened => who.acknowledged(json!({"taskIds": [id]})).await.to_string(),
        Way::Cancelled => who.call("cancel_job", json!({"id": id})).await.to_string(),
        Way::Resource(before, behind) => {
            let uri = format!("{before}{id}{behind}");
            who.mcp("resources/read", &uri, json!({"uri": uri})).await.to_string()
        }
        Way::Fetched(method, behind) => who.fetch(method, &format!("/results/{id}{behind}")).await,
        Way::ReadOn => who.call("sql", json!({"sql": MANY, "max_rows": 100_000, "cursor": id})).await.to_string(),
    }
}

/// A task and its call that go on, and a stored result with a cursor into one.
struct Things {
    task: String,
    job: String,
    result: String,
    cursor: String,
}

impl Things {
    async fn of(who: &Somebody) -> Self {
        let task = who.begin_task("sql", json!({"sql": NEVER})).await;
        let jobs = who.rows_of("list_jobs", json!({})).await;
        let runs = jobs.as_array().unwrap().iter().find(|job| job["status"] == "running").unwrap();
        let result = exported(who, json!({"sql": MANY, "delivery": "blocks"})).await;
        let page = who.call("sql", json!({"sql": MANY, "max_rows": 100_000})).await;
        let things = Self {
            task: text(&task["taskId"]),
            job: text(&runs["id"]),
            cursor: text(&page["_meta"]["dev.tidegate/cursor"]),
            result,
        };
        is_whole(who, &things.result).await;
        things
    }

    /// Each way to each of them, and what it would be called if it were not there.
    fn ways(&self) -> Vec<(Way, &str, String)> {
        let tasks = OF_TASKS.map(|way| (way, self.task.as_str(), ABSENT.to_owned()));
        let calls = OF_CALLS.map(|way| (way, self.job.as_str(), ABSENT.to_owned()));
        let results = OF_RESULTS.map(|way| (way, self.result.as_str(), ABSENT.to_owned()));
        let forged = (Way::ReadOn, self.cursor.as_str(), self.cursor.chars().rev().collect());
        tasks.into_iter().chain(calls).chain(results).chain([forged]).collect()
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}

/// The id of the stored result of a call of `sql`.
async fn exported(who: &Somebody, arguments: Value) -> String {
    let answer = who.call("sql", arguments).await;
    let uris = answer["content"].as_array().unwrap().iter().filter_map(|block| block["uri"].as_str());
    let id = uris.filter_map(|uri| uri.strip_prefix("tidegate://results/")).next();
    id.unwrap_or_else(|| panic!("{answer}")).to_owned()
}

/// Waits until nothing is written any more of a stored result.
async fn is_whole(who: &Somebody, id: &str) {
    let manifest = format!("/results/{id}");
    within_reason(async || who.fetch("GET", &manifest).await.contains(r#""complete""#)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_tenant_has_is_for_another_as_if_it_never_was() {
    let node = Node::start(CONFIGURATION);
    let ann = node.somebody("ann", Some("north"));
    let things = Things::of(&ann).await;
    let strangers = node.strangers();
    for stranger in &strangers {
        let listed = [
            stranger.call("list_jobs", json!({})).await,
            stranger.mcp("resources/list", "", json!({})).await,
            stranger.mcp("completion/complete", "", completing("tidegate://jobs/{id}")).await,
            stranger.mcp("completion/complete", "", completing("tidegate://results/{id}")).await,
        ];
        let listed = listed.map(|list| list.to_string()).join("\n");
        for hidden in [&things.task, &things.job, &things.result] {
            assert!(!listed.contains(hidden.as_str()), "{listed}");
        }
    }
    for stranger in &strangers {
        for (way, id, absent) in things.ways() {
            let of_it = told(stranger, way, id).await.replace(id, "ID");
            let of_nothing = told(stranger, way, &absent).await.replace(&absent, "ID");
            assert_eq!(of_it, of_nothing, "{way:?}");
        }
    }
    // Who is of the tenant and operates it sees what runs there, and others count what runs with them alone.
    let colleague = node.somebody("bob", Some("north"));
    let seen = colleague.call("list_jobs", json!({})).await.to_string();
    assert!(seen.contains(&things.job), "{seen}");
    within_reason(async || colleague.open_calls().await == 2).await;
    for stranger in &strangers {
        within_reason(async || stranger.open_calls().await == 1).await;
    }

    // Nobody has ended anything, and to whom it belongs it is there.
    assert!(told(&ann, Way::Task("tasks/get"), &things.task).await.contains(r#""status":"working""#));
    let own = things
        .ways()
        .into_iter()
        .filter(|(way, ..)| matches!(way, Way::Listened | Way::Resource(..) | Way::Fetched(..) | Way::ReadOn));
    for (way, id, absent) in own {
        let of_it = told(&ann, way, id).await.replace(id, "ID");
        assert_ne!(of_it, told(&ann, way, &absent).await.replace(&absent, "ID"), "{way:?}");
    }
    told(&ann, Way::Task("tasks/cancel"), &things.task).await;
    within_reason(async || told(&ann, Way::Task("tasks/get"), &things.task).await.contains("cancelled")).await;
    audit_tells_them_apart(node);
}

fn completing(template: &str) -> Value {
    json!({"ref": {"type": "ref/resource", "uri": template}, "argument": {"name": "id", "value": ""}})
}

/// Each call has its tenant in the audit log, so that two of one name are not taken for each other.
fn audit_tells_them_apart(node: Node) {
    node.server.signal("TERM");
    assert_eq!(node.server.ended().0.code(), Some(0));
    let log = std::fs::read_to_string(node.configured.folder().join("audit.jsonl")).unwrap();
    let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let calls: Vec<Value> = lines.filter(|line| line["kind"] == "call" && line["subject"] == "ann").collect();
    for tenant in [json!("north"), json!("south"), Value::Null] {
        assert!(calls.iter().any(|call| call["tenant"] == tenant), "{tenant}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_remembered_is_given_to_no_other_tenant() {
    let node = Node::start(CONFIGURATION);
    let ann = node.somebody("ann", Some("north"));
    let question = json!({"sql": MANY, "delivery": "blocks"});
    let first = exported(&ann, question.clone()).await;
    is_whole(&ann, &first).await;
    assert_eq!(exported(&ann, question.clone()).await, first, "it is remembered");
    for stranger in node.strangers() {
        let own = exported(&stranger, question.clone()).await;
        assert_ne!(own, first, "who asks for the first time has an answer of its own");
        is_whole(&stranger, &own).await;
        assert_eq!(exported(&stranger, question.clone()).await, own);
        let anew = json!({"sql": MANY, "delivery": "blocks", "no_cache": true});
        assert_ne!(exported(&stranger, anew).await, own);
        assert_eq!(exported(&ann, question.clone()).await, first, "what others ask anew changes nothing here");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_and_what_runs_in_it_are_whose_it_is() {
    let node = Node::start(CONFIGURATION);
    let ann = node.somebody("ann", Some("north"));
    let session = ann.session().await;
    let params = json!({"name": "sql", "arguments": {"sql": NEVER}});
    let call = json!({"jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": params});
    let caller = tokio::spawn({
        let (ann, session) = (ann.clone(), session.clone());
        async move { ann.to_session("POST", &session, Some(&call)).await }
    });
    let runs = async || ann.call("list_jobs", json!({})).await.to_string().contains("running");
    within_reason(async || runs().await).await;
    let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 77}});
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}});
    for stranger in node.strangers() {
        // In a session of one's own there is no such call.
        let own = stranger.session().await;
        assert!(stranger.to_session("POST", &own, Some(&cancelled)).await.starts_with("202"));
        for (method, message) in [("POST", Some(&list)), ("POST", Some(&cancelled)), ("GET", None), ("DELETE", None)] {
            let of_it = stranger.to_session(method, &session, message).await;
            assert!(of_it.starts_with("404"), "{method}: {of_it}");
            assert_eq!(of_it, stranger.to_session(method, ABSENT, message).await, "{method}");
        }
    }
    assert!(runs().await && ann.to_session("POST", &session, Some(&list)).await.starts_with("200"));
    assert!(ann.to_session("POST", &session, Some(&cancelled)).await.starts_with("202"));
    within_reason(async || !runs().await).await;
    // A call that was cancelled has no answer.
    caller.abort();
}
