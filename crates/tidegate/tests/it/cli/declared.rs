//! Tools, resources and prompts that a configuration declares.

use rmcp::model::{CallToolRequestParams, ReadResourceRequestParams};
use rmcp::transport::StreamableHttpClientTransport;

use super::rmcp_client::serve;
use super::server::Server;
use super::{ConfiguredFolder, tidegate};

const CONFIGURATION: &str = r"
databases: [{name: shop, files: shop}]
built_in: [list_tables]
tools:
  - name: orders_of
    title: Orders of a customer
    description: Orders of some customers.
    sql: |
      SELECT id, customer, amount FROM orders
      WHERE customer IN (:customers) AND (:at_least IS NULL OR amount >= :at_least) ORDER BY :by
    input:
      customers: {type: list, items: string}
      at_least: {type: number, required: false}
      by: {type: identifier, allow: [id, amount], default: id}
resources:
  - {uri: 'shop://orders/{id}', name: order, sql: 'SELECT * FROM orders WHERE id = :id', input: {id: {type: integer}}, format: csv}
";

#[test]
fn declared_tool_binds_arguments() {
    let configured = ConfiguredFolder::new(CONFIGURATION);
    let ask = |arguments: &[&str]| {
        let ran = configured.run(&[&["call", "orders_of"], arguments].concat());
        format!("{}{}", ran.stdout, ran.stderr)
    };
    insta::assert_snapshot!(ask(&[r#"customers=["Ann","Bob"]"#]), @r#"[{"id":1,"customer":"Ann","amount":12.5},{"id":2,"customer":"Bob","amount":7.0},{"id":3,"customer":"Ann","amount":null}]"#);
    insta::assert_snapshot!(ask(&[r#"customers=["Ann"]"#, "at_least=10", "format=csv"]), @r"
    id,customer,amount
    1,Ann,12.5
    ");
    insta::assert_snapshot!(ask(&[r#"customers=["Ann","Bob"]"#, "by=amount", "extract=id"]), @"[1,2,3]");
    insta::assert_snapshot!(ask(&[r#"customers=["' OR 1=1 --"]"#]), @"[]");
    // Null counts as absent, and so does an empty text where only others are listed.
    insta::assert_snapshot!(ask(&[r#"customers=["Bob"]"#, "at_least=null", "by=", "format=", "cursor="]), @r#"[{"id":2,"customer":"Bob","amount":7.0}]"#);
    insta::assert_snapshot!(ask(&["customers=[]", "at_least=lots", "by=customer"]), @r#"
    error: the arguments of tool "orders_of" are wrong:
    - customers: [] has less than 1 item
    - at_least: "lots" is not of type "number"
    - by: "customer" is not one of "id" or "amount"
    "#);
}

#[test]
fn eliciting_tool_fails_without_a_terminal() {
    let configured = ConfiguredFolder::new(
        "databases: [{name: shop, files: shop}]\ntools:\n  - {name: orders_of, description: O, sql: 'SELECT id FROM orders \
         WHERE customer = :customer', input: {customer: {type: string, ask: 'Whose orders?'}}, confirm: 'Orders of \
         {{customer}}?'}\n",
    );
    let ask = |arguments: &[&str]| configured.run(&[&["call", "orders_of"], arguments].concat());
    let (missing, unconfirmed) = (ask(&[]), ask(&["customer=Ann"]));
    assert_eq!((missing.code, missing.stdout.as_str()), (Some(1), ""));
    assert_eq!((unconfirmed.code, unconfirmed.stdout.as_str()), (Some(1), ""));
    insta::assert_snapshot!(missing.stderr, @r"
    error: arguments are missing:
    - customer: is missing, and your client does not support elicitation: Whose orders?
    Pass them, or call from a client that supports elicitation.
    ");
    insta::assert_snapshot!(unconfirmed.stderr, @r"
    error: the call needs client capabilities that your client did not declare: elicitation (form)
    Nothing was done: a person has to agree first. Call from a client that supports elicitation, or with tidegate call at a terminal.
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn resource_variables_are_validated() {
    use rmcp::ServiceExt as _;
    let configured = ConfiguredFolder::new(
        "databases: [{name: shop, files: shop}]\nresources:\n  - {uri: 'shop://orders/{ids}', name: orders, format: csv, \
         sql: 'SELECT id FROM orders WHERE id IN (:ids) ORDER BY id', input: {ids: {type: list, items: integer}}}\n",
    );
    let server = Server::start(tidegate().current_dir(configured.folder()).args([
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--log",
        "error",
    ]));
    let client = ().serve(StreamableHttpClientTransport::from_uri(server.url.as_str())).await.unwrap();
    let read = async |uri: &str| {
        let read = client.read_resource(ReadResourceRequestParams::new(uri)).await;
        read.map(|read| serde_json::to_value(&read.contents[0]).unwrap()["text"].as_str().unwrap().replace("\r\n", " "))
    };
    assert_eq!(read("shop://orders/1,3").await.unwrap().trim(), "id 1 3");
    assert!(read("shop://orders/1,three").await.unwrap_err().to_string().contains("expected a whole number"));
    client.cancel().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_that_an_entry_lacks_are_those_of_all_calls() {
    use rmcp::ServiceExt as _;
    let sql = "SELECT repeat('a', 100) AS text FROM orders, generate_series(1, 40) s";
    let tools = [("by_rows", "inline_rows: 50"), ("by_bytes", "inline_bytes: 20KB")]
        .map(|(name, limits)| format!("  - {{name: {name}, description: T, sql: \"{sql}\", limits: {{{limits}}}}}\n"));
    let configured = ConfiguredFolder::new(&format!(
        "databases: [{{name: shop, files: shop}}]
limits: {{inline_rows: 30, inline_bytes: 1KB}}
tools:
{}resources:
  - {{uri: 'shop://texts', name: texts, sql: \"{sql}\", limits: {{inline_rows: 50}}}}
",
        tools.concat()
    ));
    let server = serve(&configured);
    let client = ().serve(StreamableHttpClientTransport::from_uri(server.url.as_str())).await.unwrap();
    let rows = |text: String| text.matches(&"a".repeat(100)).count();
    let of_tool = async |name: &'static str| {
        let answer = client.call_tool(CallToolRequestParams::new(name)).await.unwrap();
        let texts = answer.content.iter().filter_map(|content| content.as_text());
        rows(texts.map(|text| text.text.as_str()).collect())
    };
    // 1 kB has room for nine rows.
    assert!((1..10).contains(&of_tool("by_rows").await));
    assert_eq!(of_tool("by_bytes").await, 30);
    let read = client.read_resource(ReadResourceRequestParams::new("shop://texts")).await.unwrap();
    assert!((1..10).contains(&rows(serde_json::to_string(&read.contents).unwrap())));
    client.cancel().await.unwrap();
}

#[test]
fn built_in_entries_are_selectable() {
    let configured = ConfiguredFolder::new(CONFIGURATION);
    insta::assert_snapshot!(configured.run(&["tools"]).stdout, @r"
    list_tables(database?, pattern?, format?, extract?)
        Tables of one database or of all, with row counts where known. Use before get_schema.
    orders_of(at_least?, by?, customers, format?, extract?, cursor?)
        Orders of some customers.
    ");
    insta::assert_snapshot!(configured.run(&["tools", "--toolset", "discover"]).stdout, @r"
    find_tool(words, limit?)
        Finds tools by what you want to do, best first, with their input schemas. Use call_tool to call one.
    call_tool(name, arguments?)
        Calls a tool that find_tool found.
    ");
    let ran = configured.run(&["tools", "--toolset", "nothing"]);
    assert_eq!(
        (ran.code, ran.stderr.as_str()),
        (Some(2), "error: there is no toolset \"nothing\"; there are discover\n")
    );
}

#[test]
fn lists_are_arrays_behind_any() {
    let configured = ConfiguredFolder::new(
        "databases: [{name: shop, files: shop}]
tools:
  - name: orders_of
    description: O
    sql: SELECT id FROM orders WHERE (:customers IS NULL OR customer = ANY(:customers)) AND id <> ALL(:ids) ORDER BY id
    input:
      customers: {type: list, items: string, required: false}
      ids: {type: list, items: integer, default: [2]}
",
    );
    let call =
        |arguments: &[&str]| configured.run(&[&["call", "orders_of"], arguments].concat()).stdout.trim().to_owned();
    assert_eq!(call(&[r#"customers=["Ann","Bob"]"#]), "[{\"id\":1},{\"id\":3}]");
    assert_eq!(call(&[r#"customers=["Bob"]"#, "ids=[1]"]), "[{\"id\":2}]");
    assert_eq!(call(&["ids=[1,2]"]), "[{\"id\":3}]");
    assert_eq!(call(&[r#"customers=["a\"b\\","Ann,Bob"]"#]), "[]");
}

#[test]
fn output_options_are_fixed_by_the_definition() {
    let configured = ConfiguredFolder::new(
        "databases: [{name: shop, files: shop}]
built_in: []
tools:
  - {name: customers, description: C, sql: 'SELECT id AS n, customer FROM orders', format: csv, extract: customer, mode: batch}
  - {name: rows, description: R, sql: SELECT id FROM orders ORDER BY id, format: ndjson, delivery: inline}
",
    );
    insta::assert_snapshot!(configured.run(&["tools"]).stdout, @r"
    customers(cursor?)
        C
    rows(extract?, cursor?)
        R
    ");
    insta::assert_snapshot!(configured.run(&["call", "customers"]).stdout, @r"
    Ann
    Bob
    ");
    insta::assert_snapshot!(configured.run(&["call", "rows"]).stdout, @r#"
    {"id":1}
    {"id":2}
    {"id":3}
    "#);
    let refused = configured.run(&["call", "rows", "format=csv"]);
    assert!(refused.code == Some(1) && refused.stderr.contains("format"), "{refused:?}");
    let wrong = ConfiguredFolder::new(
        "databases: [{name: shop, files: shop}]
tools:
  - {name: a, description: A, sql: SELECT id FROM orders, format: xml, extract: idd, mode: fast, delivery: post}
  - {name: b, description: B, sql: SELECT id FROM orders, extract: idd}
  - {name: c, description: C, http: {url: 'http://127.0.0.1:1/'}, mode: batch}
",
    );
    insta::assert_snapshot!(wrong.usage_error(&["config", "check"]), @r#"
    error: the configuration cannot be used
    tidegate.yaml:3:59: tools[0].format: there is no format "xml"
        Valid choices: mcp, json, table, csv, markdown, ndjson, toon
    tidegate.yaml:3:86: tools[0].mode: there is no mode "fast"
        Valid choices: streaming, batch, auto
    tidegate.yaml:3:98: tools[0].delivery: there is no delivery "post"
        Valid choices: inline, blocks, table
    tidegate.yaml:4:59: tools[1].extract: extract: the answer has no column "idd"
        Valid choices: id
    tidegate.yaml:5:67: tools[2].mode: has no effect on a tool with http; remove it
    "#);
}
