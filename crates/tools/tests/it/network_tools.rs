//! `list_nodes`, `locate` and `test_network` over nodes in memory.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::datatypes::Schema;
use async_trait::async_trait;
use serde_json::{Value, json};
use tidegate_core::{AllowedNames, CallTarget, DatabaseTenants, Error, ErrorKind, Grants, Principal};
use tidegate_query::{
    Catalog, ColumnEntry, Database, DatabaseKind, Databases, Executor, Network, NodeCheck, NodeDatabase,
    NodeObservation, NodeTable, NodeTables, PartRange, Plan, QueryRows, TablePart,
};
use tidegate_runtime::{Job, Registry, event::EventDispatcher};
use tidegate_sql::{SqlDialect, Statement};
use tidegate_tools::{NodeIdentity, ToolServices, snapshot};

use crate::fake::{call, call_tool, collect_answer, owner, shop};
use crate::tool_list::listed;

/// The tokens that the tools may cost in the list.
const NETWORK_TOKENS_MAX: usize = 400;
const NAMES: [&str; 3] = ["list_nodes", "locate", "test_network"];

/// How a node behaves.
#[derive(Clone)]
pub(crate) enum Behaviour {
    Answers { version: &'static str, clock_offset_ms: i64, tables: usize, one: i64 },
    Fails(ErrorKind, &'static str),
    NeverAnswers,
}

pub(crate) const SOUND: Behaviour = Behaviour::Answers { version: "1.2.3", clock_offset_ms: -2, tables: 2, one: 1 };

struct FakeNode {
    name: &'static str,
    behaviour: Behaviour,
}

impl FakeNode {
    async fn behave(&self) -> Result<(), Error> {
        match self.behaviour {
            Behaviour::Answers { .. } => Ok(()),
            Behaviour::Fails(kind, message) => Err(Error::new(kind, message)),
            Behaviour::NeverAnswers => std::future::pending().await,
        }
    }
}

#[async_trait]
impl Database for FakeNode {
    fn name(&self) -> &str {
        self.name
    }

    fn kind(&self) -> DatabaseKind {
        DatabaseKind::FlightSql
    }

    fn dialect(&self) -> SqlDialect {
        SqlDialect::DataFusion
    }

    async fn catalog(&self, _: &Principal) -> Result<Arc<Catalog>, Error> {
        panic!("the tools use the tables of the node")
    }

    async fn columns(&self, _: &str, _: &Principal) -> Result<Vec<ColumnEntry>, Error> {
        panic!("the tools read no columns")
    }

    async fn plan(&self, _: &Statement, _: &Principal) -> Result<Box<dyn Plan>, Error> {
        panic!("a node runs statements without a plan")
    }
}

#[async_trait]
impl NodeDatabase for FakeNode {
    fn url(&self) -> String {
        format!("grpc+tls://{}:7071", self.name)
    }

    async fn tables(&self, _: &Principal) -> Result<Arc<NodeTables>, Error> {
        self.behave().await?;
        let Behaviour::Answers { tables, .. } = self.behaviour else { panic!("it answers") };
        let table = |name: &str| NodeTable {
            name: name.to_owned(),
            schema: Arc::new(Schema::empty()),
            rows: None,
            comment: None,
            unreadable: None,
        };
        let tables = ["orders", "people"].into_iter().take(tables).map(table).collect();
        Ok(Arc::new(NodeTables { tables, known_since: SystemTime::UNIX_EPOCH }))
    }

    async fn check(&self, principal: &Principal) -> Result<NodeCheck, Error> {
        self.behave().await?;
        let Behaviour::Answers { version, clock_offset_ms, .. } = self.behaviour else { panic!("it answers") };
        let subject = format!("{} at {}", principal.subject, self.name);
        let (url, latency) = (format!("grpc+tls://{}-replica:7071", self.name), Duration::from_millis(3));
        Ok(NodeCheck { version: version.to_owned(), url, latency, clock_offset_ms, running_calls: 4, subject })
    }

    async fn run(&self, statement: &Statement, _: &Principal, _: &Arc<Job>) -> Result<QueryRows, Error> {
        self.behave().await?;
        let Behaviour::Answers { one, .. } = self.behaviour else { panic!("it answers") };
        assert_eq!(statement.tables(), &[] as &[String]);
        let one: ArrayRef = Arc::new(Int64Array::from(vec![one]));
        Ok(QueryRows::from_batch(RecordBatch::try_from_iter([("one", one)]).unwrap()))
    }

    fn observed(&self) -> NodeObservation {
        NodeObservation {
            last_seen: Some(SystemTime::UNIX_EPOCH + Duration::from_secs(1_790_000_000)),
            failure: Some("a failure of another caller".to_owned()),
            version: Some("1.2.0".to_owned()),
            latency: Some(Duration::from_millis(9)),
        }
    }
}

struct FakeNetwork {
    name: &'static str,
    nodes: Vec<Arc<dyn NodeDatabase>>,
}

#[async_trait]
impl Database for FakeNetwork {
    fn name(&self) -> &str {
        self.name
    }

    fn kind(&self) -> DatabaseKind {
        DatabaseKind::Network
    }

    fn dialect(&self) -> SqlDialect {
        SqlDialect::DataFusion
    }

    async fn catalog(&self, _: &Principal) -> Result<Arc<Catalog>, Error> {
        Ok(Arc::default())
    }

    async fn columns(&self, _: &str, _: &Principal) -> Result<Vec<ColumnEntry>, Error> {
        Ok(Vec::new())
    }

    async fn plan(&self, _: &Statement, _: &Principal) -> Result<Box<dyn Plan>, Error> {
        panic!("no query is planned")
    }

    fn network(&self) -> Option<&dyn Network> {
        Some(self)
    }
}

#[async_trait]
impl Network for FakeNetwork {
    fn nodes(&self) -> &[Arc<dyn NodeDatabase>] {
        &self.nodes
    }

    async fn locate(&self, table: &str, _: &Arc<Job>) -> Result<Vec<TablePart>, Error> {
        if table != "orders" {
            let choices = vec!["orders".to_owned()];
            return Err(Error::new(ErrorKind::NotFound, format!("no node has {table:?}")).with_choices(choices));
        }
        let known_since = Some(SystemTime::UNIX_EPOCH + Duration::from_secs(1_790_000_000));
        let range = |column: &str, smallest: &str, largest: &str| PartRange {
            column: column.to_owned(),
            smallest: smallest.to_owned(),
            largest: largest.to_owned(),
        };
        let part = |(node, rows): (&str, u64)| TablePart {
            node: node.to_owned(),
            rows: Some(rows),
            bytes: (node == "oslo").then_some(4096),
            ranges: match node {
                "oslo" => vec![range("day", "2026-01-01", "2026-03-31"), range("site", "bergen", "oslo")],
                _ => Vec::new(),
            },
            known_since,
            holds: (node == "oslo").then(|| "site IN ('oslo')".to_owned()),
            notes: if node == "rome" { vec!["no column b".to_owned(), "c is text".to_owned()] } else { Vec::new() },
        };
        Ok([("oslo", 2), ("rome", 1)].map(part).to_vec())
    }
}

pub(crate) fn network(name: &'static str, nodes: &[(&'static str, Behaviour)]) -> Arc<dyn Database> {
    let node = |(name, behaviour): &(&'static str, Behaviour)| {
        Arc::new(FakeNode { name, behaviour: behaviour.clone() }) as Arc<dyn NodeDatabase>
    };
    Arc::new(FakeNetwork { name, nodes: nodes.iter().map(node).collect() })
}

fn registry(databases: Databases) -> Arc<Registry> {
    let identity = NodeIdentity { name: "tidegate".into(), title: "Tidegate".into(), version: "1.2.3".into() };
    let services = ToolServices::new(databases, Executor::new(EventDispatcher::default()), identity);
    let registry = Registry::new(snapshot(&services), EventDispatcher::default());
    services.attach(&registry);
    registry
}

/// The rows of a call, without those columns of `ignored`.
async fn rows(registry: &Arc<Registry>, tool: &str, arguments: Value, ignored: &[&str]) -> Vec<Value> {
    let text = call_tool(registry, tool, arguments).await;
    let mut rows: Vec<Value> = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}"));
    for row in rows.iter_mut().filter_map(Value::as_object_mut) {
        row.retain(|name, _| !ignored.contains(&name.as_str()));
    }
    rows
}

#[tokio::test]
async fn the_network_tools_stay_cheap_and_exist_only_with_a_network() {
    let tools = |databases: Vec<Arc<dyn Database>>| -> Vec<Value> {
        let snapshot = registry(Databases::new(databases)).snapshot();
        let caller = owner();
        let tools = snapshot.tools(&caller).filter(|tool| NAMES.contains(&&*tool.name));
        tools.map(|tool| listed(tool)).collect()
    };
    assert!(tools(vec![Arc::new(shop())]).is_empty());
    let tools = tools(vec![network("sites", &[("oslo", SOUND)])]);
    assert_eq!(tools.len(), 3);
    let text = Value::Array(tools).to_string();
    for tokenizer in [tiktoken_rs::o200k_base().unwrap(), tiktoken_rs::cl100k_base().unwrap()] {
        let tokens = tokenizer.encode_ordinary(&text).len();
        assert!(tokens < NETWORK_TOKENS_MAX, "{tokens} tokens");
    }
}

/// Callers without the right to the network, by their role or their tenant, have no tools; the answer to a call is that
/// for tools that do not exist.
#[tokio::test]
async fn callers_without_the_network_learn_nothing() {
    let tenancy = DatabaseTenants::new([("sites".to_owned(), ["north".to_owned()].into())]);
    let databases = Databases::new([Arc::new(shop()) as _, network("sites", &[("oslo", SOUND)])]);
    let registry = registry(databases.with_tenancy(tenancy));
    let everything = AllowedNames::Everything;
    let caller = |databases: AllowedNames, tenant: &str| Principal {
        grants: Arc::new(Grants { databases, entries: AllowedNames::Everything, ..Grants::default() }),
        tenant: Some(tenant.to_owned()),
        ..Principal::clone(&Principal::anonymous())
    };
    let answer = async |principal: Principal, tool: &str| {
        let mut call = call(CallTarget::Tool(tool.to_owned()), json!({"table": "orders"}));
        if tool != "locate" {
            call.arguments.clear();
        }
        call.caller.principal = Arc::new(principal);
        match registry.call(call) {
            Ok(reply) => collect_answer(reply).await.map(|answer| answer.texts.concat()),
            Err(error) => Err(error),
        }
    };
    for tool in NAMES {
        let permitted = answer(caller(everything.clone(), "north"), tool).await.unwrap();
        assert!(permitted.contains("oslo"), "{permitted}");
        let absent_name = format!("{tool}_");
        let absent = answer(caller(everything.clone(), "north"), &absent_name).await.unwrap_err();
        let absent = absent.to_string().replace(&absent_name, tool);
        for stranger in
            [caller(AllowedNames::matching(["shop".to_owned()]), "north"), caller(everything.clone(), "south")]
        {
            let refused = answer(stranger, tool).await.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::NotFound);
            let first = |text: &str| text.lines().next().unwrap_or_default().to_owned();
            assert_eq!(first(&refused.to_string()), first(&absent));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn nodes_are_listed_with_their_state() {
    let registry = registry(Databases::new([network(
        "sites",
        &[
            ("bern", Behaviour::Fails(ErrorKind::Unavailable, "connection refused")),
            ("cork", Behaviour::NeverAnswers),
            ("lund", Behaviour::Fails(ErrorKind::Forbidden, "no role")),
            ("oslo", SOUND),
        ],
    )]));
    let seen = "2026-09-21T14:13:20Z";
    let row = |node: &str, state: &str, failure: &str| {
        json!({"node": node, "url": format!("grpc+tls://{node}:7071"), "state": state, "version": "1.2.0",
            "latency_ms": 9, "last_seen": seen, "running_calls": null, "clock_offset_ms": null, "failure": failure})
    };
    let expected = [
        row("bern", "unreachable", "connection refused"),
        row("cork", "slow", "no answer within 3 seconds"),
        row("lund", "refused", "no role"),
        json!({"node": "oslo", "url": "grpc+tls://oslo-replica:7071", "state": "ok", "version": "1.2.3",
            "latency_ms": 3, "last_seen": seen, "running_calls": 4, "clock_offset_ms": -2, "failure": null}),
    ];
    let started = tokio::time::Instant::now();
    assert_eq!(rows(&registry, "list_nodes", json!({}), &[]).await, expected);
    assert_eq!(started.elapsed().as_secs(), 3, "all nodes at once");
}

#[tokio::test]
async fn several_networks_are_distinguished() {
    let networks = [network("east", &[("oslo", SOUND)]), network("west", &[("cork", SOUND)])];
    let registry = registry(Databases::new(networks.into_iter().chain([Arc::new(shop()) as Arc<dyn Database>])));
    let listed = rows(&registry, "list_nodes", json!({}), &["last_seen"]).await;
    let names: Vec<_> = listed.iter().map(|row| (row["database"].as_str(), row["node"].as_str())).collect();
    assert_eq!(names, [(Some("east"), Some("oslo")), (Some("west"), Some("cork"))]);
    let listed = rows(&registry, "test_network", json!({"database": "west"}), &[]).await;
    assert_eq!((listed.len(), &listed[0]["node"]), (1, &json!("cork")));
    insta::assert_snapshot!(call_tool(&registry, "list_nodes", json!({"database": "shop"})).await, @r#"
    invalid_arguments: the database "shop" is no network of nodes
    Valid choices: east, west
    "#);
    insta::assert_snapshot!(call_tool(&registry, "locate", json!({"table": "orders"})).await, @r#"
    invalid_arguments: name the network in the argument "database", or before the table: database.table
    Valid choices: east, west
    "#);
    let by_prefix = rows(&registry, "locate", json!({"table": "west.orders"}), &[]).await;
    assert_eq!(by_prefix.len(), 2);
    let unknown = call_tool(&registry, "test_network", json!({"database": "nowhere"})).await;
    assert!(unknown.starts_with("not_found: there is no database \"nowhere\""), "{unknown}");
}

#[tokio::test]
async fn parts_of_a_table_are_located() {
    let registry = registry(Databases::new([network("sites", &[("oslo", SOUND)]), Arc::new(shop()) as _]));
    let since = "2026-09-21T14:13:20Z";
    let expected = [
        json!({"node": "oslo", "rows": 2, "share": 0.6667, "bytes": 4096,
            "ranges": "day: 2026-01-01 to 2026-03-31; site: bergen to oslo", "known_since": since, "holds": "site IN ('oslo')",
            "notes": null}),
        json!({"node": "rome", "rows": 1, "share": 0.3333, "bytes": null, "ranges": null, "known_since": since, "holds": null,
            "notes": "no column b; c is text"}),
    ];
    for arguments in [
        json!({"table": "orders"}),
        json!({"table": "sites.orders"}),
        json!({"table": "orders", "database": "sites"}),
        json!({"table": "Sites.orders", "database": "sites"}),
    ] {
        assert_eq!(rows(&registry, "locate", arguments, &[]).await, expected);
    }
    let unknown = call_tool(&registry, "locate", json!({"table": "order"})).await;
    assert_eq!(unknown, "not_found: no node has \"order\"\nValid choices: orders");
}

#[tokio::test(start_paused = true)]
async fn a_test_says_what_is_wrong_with_each_node() {
    let answers = |version, clock_offset_ms, tables, one| Behaviour::Answers { version, clock_offset_ms, tables, one };
    let registry = registry(Databases::new([network(
        "sites",
        &[
            ("bern", Behaviour::Fails(ErrorKind::Unauthenticated, "the token is not accepted")),
            ("cork", Behaviour::NeverAnswers),
            ("kiel", answers("1.2.3", 3_600_000, 1, 1)),
            ("lund", answers("1.3.0", 0, 0, 1)),
            ("nice", answers("1.2.3", 0, 2, 7)),
            ("oslo", SOUND),
        ],
    )]));
    let ignored = ["url", "version", "clock_offset_ms", "latency_ms", "round_trip_ms", "subject", "tables"];
    let started = tokio::time::Instant::now();
    let tested = rows(&registry, "test_network", json!({}), &ignored).await;
    assert_eq!(started.elapsed().as_secs(), 5, "all nodes at once");
    let tested: Vec<String> = tested.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(tested.join("\n"), @r#"
    {"node":"bern","result":"failed","problem":"the token is not accepted. auth.tokens of the node must accept the issuer, the key and the audience of this server's tokens."}
    {"node":"cork","result":"failed","problem":"no answer within 5 seconds. The node is overloaded or stopped, or the network drops its packets."}
    {"node":"kiel","result":"warning","problem":"Its clock is 3600.0 s ahead of this server's. Synchronise both: a token is valid for a minute."}
    {"node":"lund","result":"warning","problem":"It runs version 1.3.0, and this server 1.2.3. Use one version. This subject sees no table there. A role of it at the node must include the database."}
    {"node":"nice","result":"failed","problem":"SELECT 1 AS one fails: the answer has the values 7; expected one row with the value 1."}
    {"node":"oslo","result":"ok","problem":null}
    "#);
    let tested = rows(&registry, "test_network", json!({}), &["url", "problem", "result", "latency_ms"]).await;
    let expected = json!({"node": "oslo", "subject": "owner at oslo", "version": "1.2.3",
        "clock_offset_ms": -2, "tables": 2, "round_trip_ms": 0});
    assert_eq!(tested[5], expected);
}
