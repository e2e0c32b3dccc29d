//! Who reaches what over which transport: the authorization matrix of one configuration, as it was reviewed.
//!
//! Every cell is tried on a real node, and two laws hold in all of them: what is listed can be had and nothing else,
//! and what cannot be had is answered like a thing that there is not.

mod line;
mod owned;
mod rows;
mod target;

use std::fmt::Write as _;
use std::path::Path;

use reqwest::Client;
use serde_json::json;

use super::server::Server;
use super::{Configured, tidegate};
use line::{Answer, Line, Transport};
use target::{Lists, Target, Tried};

const CONFIGURATION: &str = r"
databases: [{name: shop, files: shop}, {name: other, files: shop}]
tools:
  - {name: orders_all, description: O, database: shop, sql: SELECT id FROM orders ORDER BY id}
  - {name: orders_other, description: O, database: other, sql: SELECT id FROM orders ORDER BY id}
  - {name: orders_secret, description: O, database: shop, sql: SELECT 1 AS one, access: [orders.read, orders.secret]}
  - {name: orders_local, description: O, database: shop, sql: SELECT 1 AS one, from: {transports: [stdio, cli]}}
  - {name: orders_http, description: O, database: shop, sql: SELECT 1 AS one, from: {transports: [http]}}
  - {name: orders_near, description: O, database: shop, sql: SELECT 1 AS one, from: {networks: [127.0.0.0/8]}}
  - {name: orders_far, description: O, database: shop, sql: SELECT 1 AS one, from: {networks: [192.0.2.0/24]}}
resources:
  - {name: report, uri: 'reports://orders', database: shop, sql: SELECT id FROM orders}
  - {name: report_secret, uri: 'reports://secret', database: shop, sql: SELECT id FROM orders, access: [orders.secret]}
  - {name: report_far, uri: 'reports://far', database: shop, sql: SELECT 1 AS one, from: {networks: [192.0.2.0/24]}}
  - {name: report_of, uri: 'reports://order/{id}', database: shop, sql: 'SELECT :id AS id'}
  - {name: report_local, uri: 'reports://local/{id}', database: shop, sql: 'SELECT :id AS id', from: {transports: [stdio]}}
prompts:
  - {name: orders_review, description: P, messages: [{text: Look at the orders.}, {resource: 'reports://orders'}]}
  - {name: orders_judge, description: P, messages: [{text: Judge.}], access: [orders.secret]}
  - {name: orders_chat, description: P, messages: [{text: Chat.}], from: {transports: [stdio]}}
toolsets:
  orders: [orders_*, report]
  reports: [report, report_of, report_local]
  front: [list_databases, sql, explore, orders_all]
  operations: [list_jobs, cancel_job, node_status]
roles:
  - {name: admin, toolsets: ['*'], access: ['*'], databases: ['*']}
  - {name: analyst, toolsets: ['*'], databases: [shop]}
  - {name: curated, toolsets: [orders, discover], access: [orders.*]}
  - {name: clerk, toolsets: [orders], access: [orders.read]}
  - {name: reader, toolsets: [reports]}
  - {name: operator, toolsets: [operations], access: [operator, metrics]}
  - {name: visitor, toolsets: [front], databases: [other]}
  - {name: nobody}
";

/// Over HTTP the visitor shows nothing.
const ROLES: [&str; 8] = ["admin", "analyst", "curated", "clerk", "reader", "operator", "visitor", "nobody"];
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
/// What the letters say, for whoever reviews the file.
const LETTERS: &str = "M: HTTP of 2026-07-28, S: HTTP in a session of 2025-11-25, E: HTTP+SSE, W: WebSocket, B: the bridge \
    over HTTP, R: REST, P: a stdio process, C: the command line, -: answered as if it were not there, .: cannot be asked there";

fn targets() -> Vec<Target> {
    let sql = json!({"database": "shop", "sql": "SELECT 1 AS one"});
    vec![
        Target::Tool("list_databases", json!({})),
        Target::Tool("list_tables", json!({})),
        Target::Tool("explain", sql),
        Target::Tool("list_jobs", json!({})),
        Target::Tool("node_status", json!({})),
        Target::Tool("server_info", json!({})),
        Target::Tool("orders_all", json!({})),
        Target::Tool("orders_other", json!({})),
        Target::Tool("orders_secret", json!({})),
        Target::Tool("orders_local", json!({})),
        Target::Tool("orders_http", json!({})),
        Target::Tool("orders_near", json!({})),
        Target::Tool("orders_far", json!({})),
        Target::Database("shop"),
        Target::Database("other"),
        Target::Explored("shop"),
        Target::Explored("other"),
        Target::Resource("tidegate://databases/shop", "tidegate://databases/sho~"),
        Target::Resource("tidegate://databases/other", "tidegate://databases/othe~"),
        Target::Resource("tidegate://databases/other/tables/orders", "tidegate://databases/othe~/tables/orders"),
        Target::Resource("reports://orders", "reports://order~"),
        Target::Resource("reports://secret", "reports://secre~"),
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

/// Doors of toolsets, and tools asked for there. A door shows nothing but its toolset.
const DOORS: [(&str, &[&str]); 2] =
    [("orders", &["orders_all", "orders_secret", "node_status"]), ("discover", &["find_tool", "orders_all"])];
/// Tools behind the two of the door that finds them.
const FOUND: [&str; 3] = ["orders_all", "orders_secret", "node_status"];

/// The node, and what each role shows to it.
struct House {
    server: Server,
    configured: Configured,
    client: Client,
    /// By role; the visitor shows nothing.
    keys: Vec<(&'static str, Option<String>)>,
    /// Of another analyst, who lists no jobs but her own.
    colleague: String,
}

impl House {
    fn open() -> Self {
        let at_http = "auth: {keys: keys.json, anonymous: [visitor]}\n";
        let configured = Configured::new(&format!("{CONFIGURATION}{at_http}"));
        let key = |name: &str, role: &str| {
            let ran = configured.run(&["key", "add", name, "--role", role]);
            assert_eq!(ran.code, Some(0), "{ran:?}");
            ran.stdout.trim().to_owned()
        };
        let keys = ROLES.map(|role| (role, (role != "visitor").then(|| key(&format!("of_{role}"), role)))).to_vec();
        let colleague = key("colleague", "analyst");
        for role in ROLES {
            let local = format!("{CONFIGURATION}auth: {{local: [{role}]}}\n");
            std::fs::write(configured.folder().join(format!("{role}.yaml")), local).unwrap();
        }
        let serve = ["serve", "--listen", "127.0.0.1:0", "--log", "error"];
        let server = Server::start(tidegate().current_dir(configured.folder()).args(serve));
        Self { server, configured, client: Client::new(), keys, colleague }
    }

    fn folder(&self) -> &Path {
        self.configured.folder()
    }

    fn key(&self, role: &str) -> Option<&str> {
        self.keys.iter().find(|(name, _)| *name == role).and_then(|(_, key)| key.as_deref())
    }

    /// Whoever has `role`, at a door; what is said there if it stays shut.
    async fn line(&self, role: &str, transport: Transport, door: Option<&str>) -> Result<Line<'_>, String> {
        let configuration = format!("{role}.yaml");
        match transport {
            Transport::Stdio => Line::stdio(self.folder(), &configuration, door).await,
            Transport::CommandLine => Line::command_line(self.folder(), &configuration, door).await,
            over_http => Line::over_http(&self.client, &self.server.url, self.key(role), over_http, door).await,
        }
    }

    /// Another analyst.
    async fn colleague(&self) -> Line<'_> {
        let key = Some(self.colleague.as_str());
        Line::over_http(&self.client, &self.server.url, key, Transport::Modern, None).await.unwrap()
    }

    async fn metrics(&self, role: &str) -> u16 {
        let request = self.client.get(self.server.url.replace("/mcp", "/metrics"));
        let request = self.key(role).into_iter().fold(request, |request, key| request.bearer_auth(key));
        request.send().await.unwrap().status().as_u16()
    }
}

/// The matrix as it is filled, and where it breaks a law.
#[derive(Default)]
struct Matrix {
    rows: Vec<(String, Vec<String>)>,
    broken: Vec<String>,
}

impl Matrix {
    fn mark(&mut self, label: &str, role: usize, mark: char) {
        let at = self.rows.iter().position(|(other, _)| other == label).unwrap_or_else(|| {
            self.rows.push((label.to_owned(), vec![String::new(); ROLES.len()]));
            self.rows.len() - 1
        });
        self.rows[at].1[role].push(mark);
    }

    /// Marks a cell, and holds the laws against it.
    fn judge(&mut self, label: &str, role: usize, letter: char, tried: &Tried) {
        let was_had = matches!(tried.had, Answer::Done(_));
        self.mark(label, role, if was_had { letter } else { '-' });
        let at = format!("{label} for {} over {letter}", ROLES[role]);
        if tried.is_listed != was_had {
            self.broken.push(format!("{at}: listed {}, and had: {:?}", tried.is_listed, tried.had));
        }
        if let (Answer::Refused(refused), Some(absent)) = (&tried.had, &tried.absent) {
            let same = matches!(absent, Answer::Refused(absent) if without_choices(refused) == without_choices(absent));
            if !same {
                self.broken.push(format!("{at}: refused with {refused:?}, and one that is not there with {absent:?}"));
            }
        }
    }

    fn shown(&self) -> String {
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

/// Every target at the door of the whole.
async fn try_targets(house: &House, matrix: &mut Matrix, role: usize, transport: Transport, letter: char) {
    let mut line = house.line(ROLES[role], transport, None).await.unwrap();
    let has_tools_alone = transport.has_tools_alone();
    let lists = if has_tools_alone { Lists::of_tools(&mut line).await } else { Lists::of_everything(&mut line).await };
    let listed = lists.tools.iter().chain(&lists.prompts).map(String::as_str);
    let visible: Vec<&str> = listed.chain(databases_of(ROLES[role]).iter().copied()).collect();
    for target in targets() {
        let label = target.label();
        if !target.is_asked_over(transport) {
            matrix.mark(&label, role, '.');
            continue;
        }
        let tried = target.tried(&mut line, &lists).await;
        matrix.judge(&label, role, letter, &tried);
        let choices = [Some(&tried.had), tried.absent.as_ref()].into_iter().flatten().flat_map(choices);
        let hidden = choices.filter(|choice| !visible.contains(&choice.as_str()));
        matrix.broken.extend(hidden.map(|hidden| format!("{label} for {}: offers {hidden}", ROLES[role])));
    }
}

fn databases_of(role: &str) -> &'static [&'static str] {
    match role {
        "admin" => &["shop", "other"],
        "analyst" => &["shop"],
        "visitor" => &["other"],
        _ => &[],
    }
}

fn choices(answer: &Answer) -> Vec<String> {
    let Answer::Refused(text) = answer else { return Vec::new() };
    let offered = text.lines().filter_map(|line| line.strip_prefix("Valid choices: "));
    offered.flat_map(|names| names.split(", ")).map(str::to_owned).collect()
}

/// The doors of toolsets, and tools asked for at them.
async fn try_doors(house: &House, matrix: &mut Matrix, role: usize, transport: Transport, letter: char) {
    if transport == Transport::Rest {
        // It has none.
        let labels = DOORS.iter().flat_map(|(door, tools)| {
            let inside =
                at_door(door, tools).into_iter().map(move |target| format!("{} at /mcp/{door}", target.label()));
            std::iter::once(format!("door /mcp/{door}")).chain(inside)
        });
        return labels.for_each(|label| matrix.mark(&label, role, '.'));
    }
    let absent = house.line(ROLES[role], transport, Some("absent")).await.err().unwrap();
    for (door, tools) in DOORS {
        let label = format!("door /mcp/{door}");
        let mut line = match house.line(ROLES[role], transport, Some(door)).await {
            Ok(line) => Some(line),
            Err(refused) if refused == absent.replace("absent", door) => None,
            Err(refused) => panic!("{label} for {}: {refused}, but an absent one: {absent}", ROLES[role]),
        };
        matrix.mark(&label, role, if line.is_some() { letter } else { '-' });
        let targets = at_door(door, tools);
        let labels = targets.iter().map(|target| format!("{} at /mcp/{door}", target.label()));
        match &mut line {
            // `tidegate call` has no doors.
            _ if transport == Transport::CommandLine => labels.for_each(|label| matrix.mark(&label, role, '.')),
            None => labels.for_each(|label| matrix.mark(&label, role, '-')),
            Some(line) => {
                let lists = Lists::of_tools(line).await;
                for (target, label) in targets.iter().zip(labels) {
                    matrix.judge(&label, role, letter, &target.tried(line, &lists).await);
                }
            }
        }
    }
}

fn at_door(door: &str, tools: &[&'static str]) -> Vec<Target> {
    let arguments = |tool: &str| if tool == "find_tool" { json!({"words": ""}) } else { json!({}) };
    let tools = tools.iter().map(|tool| Target::Tool(tool, arguments(tool)));
    let found = FOUND.into_iter().filter(|_| door == "discover").map(Target::Found);
    tools.chain(found).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn who_reaches_what_is_what_was_reviewed() {
    let house = House::open();
    let mut matrix = Matrix::default();
    for (role, name) in ROLES.into_iter().enumerate() {
        for (transport, letter) in TRANSPORTS {
            try_targets(&house, &mut matrix, role, transport, letter).await;
            try_doors(&house, &mut matrix, role, transport, letter).await;
            if transport.reaches_the_server() {
                owned::try_owned(&house, &mut matrix, role, transport, letter).await;
            }
        }
        // That there are metrics is no secret.
        let status = house.metrics(name).await;
        assert!([200, 403].contains(&status), "{status}");
        matrix.mark("door /metrics", role, if status == 200 { '+' } else { '-' });
    }
    let rows = rows::seen(&house, &mut matrix).await;
    assert_eq!(matrix.broken, Vec::<String>::new(), "\n{}", matrix.broken.join("\n"));
    insta::with_settings!({description => LETTERS}, {
        insta::assert_snapshot!("authorization", format!("{}\n\n{rows}", matrix.shown()));
    });
}
