//! All entries of a registry with a call of each, and the points that cannot apply to some.

use serde_json::{Value, json};

use super::super::ingest_endpoints::{self, TRACE};
use super::SECRET;

/// What holds for an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Point {
    Fence,
    Budget,
    Rows,
    Bytes,
    Rights,
    /// Metadata and audit line name the nodes whose rows are missing.
    MissingNodes,
    /// The texts of the answer name them.
    MissingNodesNote,
}

/// The points that cannot apply, with the reason and the entries.
const EXEMPTIONS: &[(&[Point], &str, &[&str])] = {
    use Point::{Budget, Bytes, Fence, MissingNodes, MissingNodesNote, Rights, Rows};
    &[
        (
            &[Fence, Budget, Rows],
            "a text that a person sends, without rows",
            &["explore", "ask", "explain_slow_query", "investigate"],
        ),
        (&[Budget, Rows], "a text that a person sends, with examples", &["summarise_table"]),
        (&[Fence, Budget, Rows, Bytes], "names, at most 100 of them", &["completion"]),
        (
            &[Fence, Budget, Rows],
            "describes a statement, tables, columns or tools, without rows",
            &["explain", "find_tool", "tidegate://databases/{database}/notes", "tidegate://logs/{source}"],
        ),
        (&[Budget, Rows], "describes tables, at most some of them", &["tidegate://databases/{database}"]),
        (
            &[Fence, Budget, Rows],
            "a document for programs, which its transport bounds",
            &["tidegate://results/{id}", "tidegate://results/{id}/blocks/{block}"],
        ),
        (
            &[Budget],
            "is there only where results are stored, and then its transport bounds it",
            &["export", "tidegate://results/{id}/data"],
        ),
        (
            &[Fence, Budget, Rights],
            "a response to a sender of telemetry, which is refused by its endpoint",
            &["receive_otlp", "receive_prometheus", "receive_bulk"],
        ),
        (&[Rights], "is refused by the endpoint of its toolset", &["find_tool", "call_tool"]),
        (&[Rows], "its rows count for the call that it makes", &["call_tool", "badge_review"]),
        (&[Rows], "a page of a file", &["read_file"]),
        (&[Fence, Rows], "a file that the owner declared, as it is", &["badges://file"]),
        (&[MissingNodesNote], "its schema names them", &["tidegate://results/{id}/blocks/{block}"]),
        (
            &[MissingNodes, MissingNodesNote],
            "describes the server, databases, tables, columns, tools or jobs, without rows",
            &[
                "completion",
                "list_databases",
                "list_tables",
                "explain",
                "list_jobs",
                "cancel_job",
                "node_status",
                "server_info",
                "ingest_status",
                "list_functions",
                "find_tool",
                "tidegate://databases/{database}",
                "tidegate://databases/{database}/notes",
                "tidegate://jobs/{id}",
                "tidegate://logs/{source}",
                "explore",
                "ask",
                "explain_slow_query",
                "investigate",
            ],
        ),
        (
            &[MissingNodes, MissingNodesNote],
            "reads files, the machine or a table that takes rows, which are on no other node",
            &["list_files", "read_file", "badges://file", "execute_function", "get_trace"],
        ),
        (
            &[MissingNodes, MissingNodesNote],
            "only writes",
            &[
                "receive_otlp",
                "receive_prometheus",
                "receive_bulk",
                "append_rows",
                "replace_rows",
                "drop_table",
                "maintain_ingest",
                "readings_add",
            ],
        ),
        (
            &[MissingNodes, MissingNodesNote],
            "has a row for each node, also for those that do not answer",
            &["list_nodes", "locate", "test_network"],
        ),
        (
            &[Rows],
            "one object",
            &[
                "list_logs_fields_values",
                "list_metrics",
                "query_metrics",
                "compare_metrics",
                "drop_table",
                "ingest_status",
                "maintain_ingest",
            ],
        ),
    ]
};

/// Entries with a secret in each answer.
pub(super) const WITH_SECRET: &[&str] = &[
    "export",
    "sql",
    "query",
    "get_schema",
    "query_logs",
    "list_logs_fields_values",
    "get_trace",
    "read_file",
    "badges_all",
    "badges_first",
    "call_tool",
    "badges://all",
    "badges://of/{id}",
    "badges://file",
    "tidegate://databases/{database}/tables/{table}",
    "tidegate://results/{id}/data",
    "ask",
    "explain_slow_query",
    "summarise_table",
    "investigate",
    "badge_review",
];

/// An entry of the registry, and how it is called.
pub(super) struct Entry {
    /// The name of a tool or prompt, the URI of a resource, the text of a template; `completion` and `export` otherwise.
    pub(super) name: &'static str,
    pub(super) request: EntryRequest,
}

pub(super) enum EntryRequest {
    /// A method of MCP with its parameters, at the endpoint of a toolset or of the whole registry.
    Mcp(Option<&'static str>, &'static str, Value),
    /// A body that is sent to a path, with its media type.
    Receiver(&'static str, (&'static str, Vec<u8>)),
}

fn entry(name: &'static str, method: &'static str, params: Value) -> Entry {
    Entry { name, request: EntryRequest::Mcp(None, method, params) }
}

fn tool(name: &'static str, arguments: Value) -> Entry {
    entry(name, "tools/call", json!({"name": name, "arguments": arguments}))
}

fn discovery_tool(name: &'static str, arguments: Value) -> Entry {
    let params = json!({"name": name, "arguments": arguments});
    Entry { name, request: EntryRequest::Mcp(Some("discover"), "tools/call", params) }
}

fn resource(name: &'static str, uri: &str) -> Entry {
    entry(name, "resources/read", json!({"uri": uri}))
}

fn prompt(name: &'static str, arguments: Value) -> Entry {
    entry(name, "prompts/get", json!({"name": name, "arguments": arguments}))
}

fn completion(reference: Value, argument: &str) -> Entry {
    let params = json!({"ref": reference, "argument": {"name": argument, "value": ""}});
    entry("completion", "completion/complete", params)
}

/// All entries. `JOB_ID` and `RESULT_ID` stand for a job and a stored result of the caller.
pub(super) fn entries() -> Vec<Entry> {
    let telemetry = ingest_endpoints::telemetry().into_iter().filter(|(path, _)| *path != "/v1/traces");
    let trace = ("/v1/traces", ("application/json", ingest_endpoints::spans(SECRET).to_string().into_bytes()));
    let receivers = telemetry.chain([trace]).map(|(path, body)| {
        let name = match path {
            "/api/v1/write" => "receive_prometheus",
            "/_bulk" => "receive_bulk",
            _ => "receive_otlp",
        };
        Entry { name, request: EntryRequest::Receiver(path, body) }
    });
    // A job and a trace are needed by others.
    let jobs = [tool("list_databases", json!({})), tool("list_jobs", json!({"extract": "id"}))];
    let all = jobs.into_iter().chain(receivers).chain(tools()).chain(resources()).chain(prompts()).chain(completions());
    all.collect()
}

fn tools() -> Vec<Entry> {
    let day = json!({"source": "badge_power", "metric": "power", "after": "2026-01-01", "before": "2026-01-02"});
    let half_day = json!({"source": "badge_power", "after": "2026-01-01T12:00:00Z", "before": "2026-01-02"});
    let all = json!({"database": "shop", "sql": "SELECT note FROM badges"});
    let export = json!({"database": "shop", "sql": "SELECT id, note FROM badges", "delivery": "blocks"});
    vec![
        entry("export", "tools/call", json!({"name": "sql", "arguments": export})),
        tool("sql", all.clone()),
        tool("explain", all),
        tool("query", json!({"database": "shop", "table": "badges"})),
        tool("list_tables", json!({})),
        tool("get_schema", json!({"database": "shop", "table": "badges", "samples": 3})),
        tool("cancel_job", json!({"id": "JOB_ID"})),
        tool("node_status", json!({})),
        tool("server_info", json!({})),
        tool("list_logs_sources", json!({})),
        tool("list_logs_fields", json!({"source": "badge_log"})),
        tool("list_logs_fields_values", json!({"source": "badge_log", "fields": ["note"]})),
        tool("query_logs", json!({"source": "badge_log", "columns": ["time", "note"]})),
        tool("list_metrics", json!({"source": "badge_power"})),
        tool("query_metrics", day),
        tool("compare_metrics", half_day),
        tool("append_rows", json!({"database": "plant", "table": "readings", "rows": [{"id": 1}]})),
        tool("replace_rows", json!({"database": "plant", "table": "spare", "rows": [{"id": 1}], "create": true})),
        tool("drop_table", json!({"database": "plant", "table": "spare"})),
        tool("ingest_status", json!({})),
        tool("maintain_ingest", json!({"action": "flush"})),
        tool("get_trace", json!({"trace_id": TRACE})),
        tool("list_functions", json!({})),
        tool("execute_function", json!({"function": "memory", "columns": ["total_bytes"]})),
        tool("list_nodes", json!({})),
        tool("locate", json!({"database": "sites", "table": "orders"})),
        tool("test_network", json!({"database": "sites"})),
        tool("list_files", json!({})),
        tool("read_file", json!({"path": "badges.csv"})),
        tool("badges_all", json!({})),
        tool("badges_first", json!({})),
        tool("readings_add", json!({"id": 2})),
        discovery_tool("find_tool", json!({"words": ""})),
        discovery_tool("call_tool", json!({"name": "badges_all"})),
    ]
}

fn resources() -> Vec<Entry> {
    vec![
        resource("badges://all", "badges://all"),
        resource("badges://of/{id}", "badges://of/7"),
        resource("badges://file", "badges://file"),
        resource("tidegate://databases/{database}", "tidegate://databases/shop"),
        resource("tidegate://databases/{database}/notes", "tidegate://databases/shop/notes"),
        resource("tidegate://databases/{database}/tables/{table}", "tidegate://databases/shop/tables/badges"),
        resource("tidegate://jobs/{id}", "tidegate://jobs/JOB_ID"),
        resource("tidegate://logs/{source}", "tidegate://logs/badge_log"),
        resource("tidegate://results/{id}", "tidegate://results/RESULT_ID"),
        resource("tidegate://results/{id}/blocks/{block}", "tidegate://results/RESULT_ID/blocks/0"),
        resource("tidegate://results/{id}/data", "tidegate://results/RESULT_ID/data"),
    ]
}

fn prompts() -> Vec<Entry> {
    let selection = format!("SELECT id FROM badges WHERE note = '{SECRET}'");
    vec![
        prompt("explore", json!({"database": "shop"})),
        prompt("ask", json!({"database": "shop", "question": format!("Where is {SECRET}?")})),
        prompt("explain_slow_query", json!({"database": "shop", "sql": selection})),
        prompt("summarise_table", json!({"database": "shop", "table": "badges"})),
        prompt("investigate", json!({"what": format!("{SECRET} was refused")})),
        prompt("badge_review", json!({})),
    ]
}

fn completions() -> Vec<Entry> {
    let of_prompt = |name: &str, argument| completion(json!({"type": "ref/prompt", "name": name}), argument);
    let of_template = |text: &str, argument| completion(json!({"type": "ref/resource", "uri": text}), argument);
    vec![
        of_prompt("explore", "database"),
        of_prompt("summarise_table", "table"),
        of_prompt("investigate", "source"),
        of_template("badges://of/{id}", "id"),
        of_template("tidegate://databases/{database}", "database"),
        of_template("tidegate://databases/{database}/notes", "database"),
        of_template("tidegate://databases/{database}/tables/{table}", "table"),
        of_template("tidegate://jobs/{id}", "id"),
        of_template("tidegate://logs/{source}", "source"),
    ]
}

impl Entry {
    /// Whether `point` applies to it.
    pub(super) fn holds(&self, point: Point) -> bool {
        !EXEMPTIONS.iter().any(|(points, _, names)| points.contains(&point) && names.contains(&self.name))
    }

    /// The resource or tool that it calls on behalf of its caller.
    pub(super) fn inner_target(&self) -> Option<Target> {
        match self.name {
            "call_tool" => Some(("tool", "badges_all".to_owned())),
            "badge_review" => Some(("resource", "badges://all".to_owned())),
            _ => None,
        }
    }
}

/// Kind and name of what was called, as the audit log has them.
pub(super) type Target = (&'static str, String);
