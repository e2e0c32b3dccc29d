//! Who reaches what over which transport: the authorization matrix of one configuration, as it was reviewed.
//!
//! Every cell is tried on a real node, and two laws hold in all of them: what is listed can be had and nothing else,
//! and what cannot be had is answered like a thing that there is not.

mod client_connection;
mod every_entry;
mod flight_endpoint;
mod ingest_endpoints;
mod matrix_node;
mod owned_resources;
mod row_visibility;
mod target;

use std::fmt::Write as _;
use std::ops::Range;

use serde_json::json;
use tokio::runtime::Handle;

use client_connection::{Attempt, ClientConnection, Transport};
use matrix_node::{MatrixNode, databases_of};
use row_visibility::VisibleRows;
use target::{AttemptOutcome, Lists, Target};

/// Over HTTP the visitor shows nothing, and the northern and the southern are of the tenants north and south.
const ROLES: [&str; 10] =
    ["admin", "analyst", "northern", "southern", "curated", "clerk", "reader", "operator", "visitor", "nobody"];
const TRANSPORTS: [(Transport, char); 8] = [
    (Transport::Modern, 'M'),
    (Transport::Session, 'S'),
    (Transport::EventStream, 'E'),
    (Transport::WebSocket, 'W'),
    (Transport::Bridge, 'B'),
    (Transport::Rest, 'R'),
    (Transport::Stdio, 'P'),
    (Transport::CommandLine, 'C'),
];
/// The meaning of the letters, for reviewers of the file.
const LEGEND: &str = "M: HTTP of 2026-07-28, S: HTTP in a session of 2025-11-25, E: HTTP+SSE, W: WebSocket, \
    B: the bridge over HTTP, R: REST, P: a stdio process, C: the command line, +: over HTTP, whatever the transport, \
    -: answered as if it were not there, .: cannot be asked there";

fn targets() -> Vec<Target> {
    let sql = json!({"database": "shop", "sql": "SELECT 1 AS one"});
    vec![
        Target::Tool("list_databases", json!({})),
        Target::Tool("list_tables", json!({})),
        Target::Tool("explain", sql),
        Target::Tool("list_jobs", json!({})),
        Target::Tool("node_status", json!({})),
        Target::Tool("server_info", json!({})),
        Target::Tool("list_logs_sources", json!({})),
        Target::Tool("list_logs_fields", json!({"source": "sales_log"})),
        Target::Tool("list_logs_fields_values", json!({"source": "sales_log", "fields": ["customer"]})),
        Target::Tool("query_logs", json!({"source": "sales_log"})),
        Target::Tool("list_metrics", json!({"source": "sales_metrics"})),
        Target::Tool(
            "query_metrics",
            json!({"source": "sales_metrics", "metric": "power", "after": "2026-01-01", "before": "2026-01-02"}),
        ),
        Target::Tool(
            "compare_metrics",
            json!({"source": "sales_metrics", "after": "2026-01-01T12:00:00Z", "before": "2026-01-02"}),
        ),
        Target::Tool("append_rows", json!({"database": "plant", "table": "readings", "rows": [{"id": 1}]})),
        Target::Tool("ingest_status", json!({})),
        Target::Tool("maintain_ingest", json!({"action": "flush"})),
        Target::Tool("get_trace", json!({"trace_id": ingest_endpoints::TRACE})),
        Target::Tool("list_functions", json!({})),
        Target::Tool("execute_function", json!({"function": "memory", "columns": ["total_bytes"]})),
        Target::Tool("list_nodes", json!({})),
        Target::Tool("locate", json!({"table": "orders"})),
        Target::Tool("test_network", json!({"database": "sites"})),
        Target::Tool("orders_all", json!({})),
        Target::Tool("orders_other", json!({})),
        Target::Tool("orders_sales", json!({})),
        Target::Tool("orders_vault", json!({})),
        Target::Tool("orders_secret", json!({})),
        Target::Tool("orders_local", json!({})),
        Target::Tool("orders_http", json!({})),
        Target::Tool("orders_near", json!({})),
        Target::Tool("orders_far", json!({})),
        Target::Database("shop"),
        Target::Database("other"),
        Target::Database("sales"),
        Target::Database("vault"),
        Target::Database("crm"),
        Target::Database("both"),
        Target::Database("machine"),
        Target::Database("sites"),
        Target::Database("plant"),
        Target::ExploredDatabase("shop"),
        Target::ExploredDatabase("other"),
        Target::ExploredDatabase("vault"),
        Target::ExploredDatabase("both"),
        Target::Resource("tidegate://databases/shop", "tidegate://databases/sho~"),
        Target::Resource("tidegate://databases/other", "tidegate://databases/othe~"),
        Target::Resource("tidegate://databases/other/tables/orders", "tidegate://databases/othe~/tables/orders"),
        Target::Resource("tidegate://databases/vault", "tidegate://databases/vaul~"),
        Target::Resource("tidegate://databases/sales/tables/orders", "tidegate://databases/sale~/tables/orders"),
        Target::Resource("reports://orders", "reports://order~"),
        Target::Resource("reports://secret", "reports://secre~"),
        Target::Resource("reports://vault", "reports://vaul~"),
        Target::Resource("reports://far", "reports://fa~"),
        Target::Template("reports://order/{id}", "reports://order/7", "reports://orde~/7"),
        Target::Template("reports://local/{id}", "reports://local/7", "reports://loca~/7"),
        Target::Prompt("orders_review", json!({})),
        Target::Prompt("orders_judge", json!({})),
        Target::Prompt("orders_chat", json!({})),
        Target::PromptCompletion("explore"),
        Target::PromptCompletion("orders_judge"),
        Target::TemplateCompletion("tidegate://databases/{database}", "database"),
        Target::TemplateCompletion("reports://order/{id}", "id"),
    ]
}

/// Endpoints of toolsets, and tools called there. An endpoint lists only its toolset.
const TOOLSET_ENDPOINTS: [(&str, &[&str]); 2] =
    [("orders", &["orders_all", "orders_secret", "node_status"]), ("discover", &["find_tool", "orders_all"])];
/// Tools that are called through the two tools of the search endpoint.
const DISCOVERABLE_TOOLS: [&str; 3] = ["orders_all", "orders_secret", "node_status"];

/// The matrix as it is filled, and where it breaks a law.
#[derive(Default)]
struct Matrix {
    rows: Vec<(String, Vec<String>)>,
    violations: Vec<String>,
}

impl Matrix {
    fn add_mark(&mut self, label: &str, role: usize, mark: char) {
        self.marks_mut(label)[role].push(mark);
    }

    fn marks_mut(&mut self, label: &str) -> &mut [String] {
        let at = self.rows.iter().position(|(other, _)| other == label).unwrap_or_else(|| {
            self.rows.push((label.to_owned(), vec![String::new(); ROLES.len()]));
            self.rows.len() - 1
        });
        &mut self.rows[at].1
    }

    /// Adds another part, whose marks come after.
    fn append(&mut self, other: Self) {
        for (label, marks) in other.rows {
            for (own, marks) in self.marks_mut(&label).iter_mut().zip(marks) {
                own.push_str(&marks);
            }
        }
        self.violations.extend(other.violations);
    }

    /// Marks a cell, and holds the laws against it.
    fn record_attempt(&mut self, label: &str, role: usize, letter: char, tried: &AttemptOutcome) {
        let was_had = matches!(tried.answer, Attempt::Done(_));
        self.add_mark(label, role, if was_had { letter } else { '-' });
        let at = format!("{label} for {} over {letter}", ROLES[role]);
        if tried.is_listed != was_had {
            self.violations.push(format!("{at}: listed {}, and had: {:?}", tried.is_listed, tried.answer));
        }
        if let (Attempt::Refused(refused), Some(absent)) = (&tried.answer, &tried.absent_answer) {
            let same =
                matches!(absent, Attempt::Refused(absent) if without_choices(refused) == without_choices(absent));
            if !same {
                self.violations
                    .push(format!("{at}: refused with {refused:?}, and one that is not there with {absent:?}"));
            }
        }
    }

    fn render(&self) -> String {
        let wide = self.rows.iter().map(|(label, _)| label.len()).max().unwrap_or_default();
        let mut text = format!("{:wide$}", "");
        ROLES.iter().for_each(|role| text.push_str(&format!(" {role:<8}")));
        for (label, marks) in &self.rows {
            let _ = write!(text, "\n{label:wide$}");
            marks.iter().for_each(|marks| text.push_str(&format!(" {marks:<8}")));
        }
        text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
    }
}

/// Choices are the names nearest to the one asked for, and those who ask for another are given others.
fn without_choices(text: &str) -> String {
    text.lines().filter(|line| !line.starts_with("Valid choices: ")).collect::<Vec<_>>().join("\n")
}

/// Every target at the endpoint of the whole registry.
async fn try_targets(
    line: &mut ClientConnection<'_>,
    matrix: &mut Matrix,
    role: usize,
    transport: Transport,
    letter: char,
) {
    let has_tools_alone = transport.supports_only_tools();
    let lists = if has_tools_alone { Lists::list_tools(line).await } else { Lists::list_all(line).await };
    let listed = lists.tools.iter().chain(&lists.prompts).map(String::as_str);
    let visible: Vec<&str> = listed.chain(databases_of(ROLES[role], transport).iter().copied()).collect();
    for target in targets() {
        let label = target.label();
        if !target.supports(transport) {
            matrix.add_mark(&label, role, '.');
            continue;
        }
        let tried = target.attempt(line, &lists).await;
        matrix.record_attempt(&label, role, letter, &tried);
        let choices = [Some(&tried.answer), tried.absent_answer.as_ref()].into_iter().flatten().flat_map(choices);
        let hidden = choices.filter(|choice| !visible.contains(&choice.as_str()));
        matrix.violations.extend(hidden.map(|hidden| format!("{label} for {}: offers {hidden}", ROLES[role])));
    }
}

fn choices(answer: &Attempt) -> Vec<String> {
    let Attempt::Refused(text) = answer else { return Vec::new() };
    let offered = text.lines().filter_map(|line| line.strip_prefix("Valid choices: "));
    offered.flat_map(|names| names.split(", ")).map(str::to_owned).collect()
}

/// The endpoints of toolsets, and tools called there.
async fn try_endpoints(matrix_node: &MatrixNode, matrix: &mut Matrix, role: usize, transport: Transport, letter: char) {
    if transport == Transport::Rest {
        // It has none.
        let labels = TOOLSET_ENDPOINTS.iter().flat_map(|(toolset, tools)| {
            let inside = endpoint_targets(toolset, tools)
                .into_iter()
                .map(move |target| format!("{} at /mcp/{toolset}", target.label()));
            std::iter::once(format!("door /mcp/{toolset}")).chain(inside)
        });
        return labels.for_each(|label| matrix.add_mark(&label, role, '.'));
    }
    let absent = matrix_node.connect(ROLES[role], transport, Some("absent")).await.err().unwrap();
    for (toolset, tools) in TOOLSET_ENDPOINTS {
        let label = format!("door /mcp/{toolset}");
        let mut line = match matrix_node.connect(ROLES[role], transport, Some(toolset)).await {
            Ok(line) => Some(line),
            Err(refused) if refused == absent.replace("absent", toolset) => None,
            Err(refused) => panic!("{label} for {}: {refused}, but an absent one: {absent}", ROLES[role]),
        };
        matrix.add_mark(&label, role, if line.is_some() { letter } else { '-' });
        let targets = endpoint_targets(toolset, tools);
        let labels = targets.iter().map(|target| format!("{} at /mcp/{toolset}", target.label()));
        match &mut line {
            // `tidegate call` has no endpoints.
            _ if transport == Transport::CommandLine => labels.for_each(|label| matrix.add_mark(&label, role, '.')),
            None => labels.for_each(|label| matrix.add_mark(&label, role, '-')),
            Some(line) => {
                let lists = Lists::list_tools(line).await;
                for (target, label) in targets.iter().zip(labels) {
                    matrix.record_attempt(&label, role, letter, &target.attempt(line, &lists).await);
                }
            }
        }
    }
}

fn endpoint_targets(toolset: &str, tools: &[&'static str]) -> Vec<Target> {
    let arguments = |tool: &str| if tool == "find_tool" { json!({"words": ""}) } else { json!({}) };
    let tools = tools.iter().map(|tool| Target::Tool(tool, arguments(tool)));
    let found = DISCOVERABLE_TOOLS.into_iter().filter(|_| toolset == "discover").map(Target::DiscoveredTool);
    tools.chain(found).collect()
}

/// Marks of some transports and roles, and the rows that they saw.
type Part = (Matrix, VisibleRows);

/// A role over the transports that reach the server, or over those that begin a process.
async fn try_transports(matrix_node: &MatrixNode, (matrix, rows): &mut Part, role: usize, to_server: bool) {
    let transports = TRANSPORTS.into_iter().filter(|(transport, _)| transport.reaches_the_server() == to_server);
    for (transport, letter) in transports {
        let mut line = matrix_node.connect(ROLES[role], transport, None).await.unwrap();
        try_targets(&mut line, matrix, role, transport, letter).await;
        rows.read(&mut line, matrix, role, letter).await;
        // The next process can open the folder that takes rows only when this one has ended.
        let line = to_server.then_some(line);
        try_endpoints(matrix_node, matrix, role, transport, letter).await;
        if let Some(mut line) = line {
            owned_resources::try_owned(matrix_node, &mut line, matrix, role, transport, letter).await;
        }
    }
}

/// Everything that the server has.
async fn try_server(matrix_node: &MatrixNode) -> Part {
    let mut part = Part::default();
    ingest_endpoints::store_trace(matrix_node).await;
    for (role, name) in ROLES.into_iter().enumerate() {
        try_transports(matrix_node, &mut part, role, true).await;
        let matrix = &mut part.0;
        owned_resources::try_http_results(matrix_node, matrix, role).await;
        ingest_endpoints::try_endpoints(matrix_node, matrix, role).await;
        flight_endpoint::try_databases(matrix_node, matrix, role).await;
        flight_endpoint::try_rows(matrix_node, matrix, role).await;
        // That there are metrics is no secret.
        let (status, _) = matrix_node.fetch(name, "/metrics").await;
        assert!([200, 403].contains(&status), "{status}");
        matrix.add_mark("door /metrics", role, if status == 200 { '+' } else { '-' });
    }
    part
}

/// Everything that processes of `roles` have.
async fn try_processes(matrix_node: &MatrixNode, roles: Range<usize>) -> Part {
    let mut part = Part::default();
    for role in roles {
        try_transports(matrix_node, &mut part, role, false).await;
    }
    part
}

/// Processes answer while the server does: each request of the command line is one. Waiting for them blocks a thread.
#[tokio::test(flavor = "multi_thread")]
async fn authorization_matrix_snapshot() {
    let (matrix_node, runtime) = (MatrixNode::start(), Handle::current());
    let half = ROLES.len() / 2;
    let ((mut matrix, of_server), processes) = std::thread::scope(|scope| {
        let (node, runtime) = (&matrix_node, &runtime);
        let halves = [0..half, half..ROLES.len()];
        let processes = halves.map(|roles| scope.spawn(move || runtime.block_on(try_processes(node, roles))));
        let server = scope.spawn(move || runtime.block_on(try_server(node)));
        (server.join().unwrap(), processes.map(|part| part.join().unwrap()))
    });
    let mut of_processes = VisibleRows::default();
    for (part, rows) in processes {
        matrix.append(part);
        of_processes.append(rows);
    }
    let rows = row_visibility::render(&of_server, &of_processes);
    assert_eq!(matrix.violations, Vec::<String>::new(), "\n{}", matrix.violations.join("\n"));
    insta::with_settings!({description => LEGEND}, {
        insta::assert_snapshot!("authorization", format!("{}\n\n{rows}", matrix.render()));
    });
}
