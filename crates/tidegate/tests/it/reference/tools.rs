//! `docs/reference/tools.md`, from the lists of a server with the demo data.

use serde_json::{Value, json};
use tidegate_core::{schema_description, schema_types};

use super::super::cli::server::Server;
use super::super::cli::tidegate;
use super::{check_page, code, plain, root, table};

const INTRODUCTION: &str = "\
# Tools, prompts and resources

A server offers these built-in entries. [Tools of your own](declared-entries.md) are declared in `tidegate.yaml`, and `built_in` selects among
the built-in entries. Descriptions are those that a model receives. [Answers](answers.md) describes `format`,
`extract` and the limits of an answer. [Stored results](stored-results.md) describes `delivery` and `cursor`.

- A server with sources of logs and metrics, such as that of the demo, has {of_sources} more tools, which [Logs](logs.md) and [Metric sources](metric-sources.md) describe.
- The list of the other {others} tools costs a model fewer than 1,450 tokens. It leaves out the parameters that are marked *unlisted*, which calls may have. With `advanced: true` in
  `tidegate.yaml`, lists have all parameters.
- A number, `true` or `false` may be written as text, a list or an object as its JSON text. A single item stands for a list of one.
- `null` counts as absent where it is no value. So do an empty `format` or `cursor`, and the text `null` where other types than text are possible, as in `where`.
- A table may have the name of its database before it, as `nycflights13.flights`, in every tool and in SQL. Then `database` can be left out. If the tables belong to several
  databases, the [federated database](federated.md) joins them.

## Common parameters

Most tools have some of these:

";

const FUNCTIONS: &str = "\
## Tools for the machine

A server with a database of [system tables](../how-to/ask-about-the-machine.md) has {count} more tools, for callers that may query this database.

";

const NETWORK: &str = "\
## Tools for networks

A server with a [network database](networks.md) has {count} more tools, for callers that may query this database.

";

/// A configuration with a network, whose node does not exist.
const NETWORK_CONFIGURATION: &str =
    "databases: [{name: sites, network: {nodes: [{name: oslo, url: 'grpc://127.0.0.1:1'}]}}]";

/// A configuration with system tables.
const SYSTEM_CONFIGURATION: &str = "databases: [{name: system, system: {}}]";

const DISCOVERY: &str = "\
## Tools of /mcp/discover

The endpoint `/mcp/discover` offers {count} tools instead, for servers with too many tools to list.

";

/// Numbers of tools, as texts write them.
const NUMBERS: [&str; 13] =
    ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];

/// Texts that most tools take, which the page describes once.
const COMMON: [&str; 3] = ["database", "extract", "format"];

/// Parameters without a description in the schemas, which are kept short for models.
const PARAMETERS: [(&str, &str); 22] = [
    ("arguments", "Arguments of the tool"),
    ("columns", "Columns of the answer; by default all that are not masked"),
    ("cursor", "Cursor of the next page"),
    ("database", "Database; optional where the caller can access only one"),
    ("delivery", "`inline`, `blocks` for a stored result with a preview, or `table` for one that is a table"),
    ("distinct", "Return equal rows once"),
    ("extract", "Return only the unique sorted values of this column"),
    ("format", "Format of the answer"),
    ("function", "Name of the function"),
    ("id", "Id of the job"),
    ("limit", "Maximum number of rows"),
    ("max_rows", "Maximum number of rows"),
    ("mode", "`streaming` sends rows as they are produced, `batch` when all are known, `auto` chooses"),
    ("name", "Name of the tool"),
    ("no_cache", "Run the query again, even if its answer is stored"),
    ("node", "Node of a network, as in list_nodes, instead of this server"),
    ("offset", "Number of rows to skip; with `order_by`, the same rows each time"),
    ("parameters", "Values of $1, $2, …; of execute_function: the parameters of the function"),
    (
        "profile",
        "Add nulls, distinct values, bounds, frequent values, patterns and lengths, over the rows that were read",
    ),
    ("save_as", "Name of the answer as a table: all rows are kept as `results.NAME`, for later queries"),
    ("sql", "SQL statement"),
    ("table", "Name of the table, as in list_tables"),
];

/// The meaning of a parameter.
fn meaning(tool: &str, name: &str, parameter: &Value) -> String {
    let described = schema_description(parameter);
    if !described.is_empty() {
        return plain(described);
    }
    let found = PARAMETERS.iter().find(|(listed, _)| *listed == name);
    found.unwrap_or_else(|| panic!("PARAMETERS lacks {name} of {tool}")).1.to_owned()
}

/// The items of a list of the server.
async fn list(url: &str, method: &str, member: &str) -> Vec<Value> {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": meta}});
    let request = reqwest::Client::new()
        .post(url)
        .header("Accept", "application/json, text/event-stream")
        .header("MCP-Protocol-Version", "2026-07-28")
        .header("Mcp-Method", method)
        .json(&request);
    let answer: Value = request.send().await.unwrap().json().await.unwrap();
    answer["result"][member].as_array().unwrap_or_else(|| panic!("{answer}")).clone()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The type of a parameter, as its schema has it.
fn type_name(schema: &Value) -> String {
    if let Some(values) = schema["enum"].as_array() {
        return values.iter().map(|value| code(text(value))).collect::<Vec<_>>().join(", ");
    }
    let names = schema_types(schema).join(" or ");
    match (&schema["minimum"], &schema["maximum"]) {
        (Value::Null, _) => names,
        (minimum, Value::Null) => format!("{names} from {minimum}"),
        (minimum, maximum) => format!("{names} from {minimum} to {maximum}"),
    }
}

/// The row of one of the parameters in [`COMMON`].
fn common_row(name: &str) -> Vec<String> {
    vec![code(name), "string".to_owned(), String::new(), meaning("every tool", name, &json!({}))]
}

/// `tool` as it is listed; `schema` has all its parameters.
fn render_tool(tool: &Value, schema: &Value) -> String {
    let listed = &tool["inputSchema"]["properties"];
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().map(text).collect();
    let (mut rows, mut common) = (Vec::new(), Vec::new());
    for (name, parameter) in schema["properties"].as_object().into_iter().flatten() {
        let default = match &parameter["default"] {
            _ if required.contains(&name.as_str()) => "required".to_owned(),
            Value::Null => String::new(),
            Value::String(default) => code(default),
            default => default.to_string(),
        };
        let meaning = meaning(text(&tool["name"]), name, parameter);
        let unlisted = if listed.get(name).is_none() { " (*unlisted*)" } else { "" };
        let row = vec![code(name), type_name(parameter), default, format!("{meaning}{unlisted}")];
        if COMMON.contains(&name.as_str()) && row == common_row(name) {
            common.push(code(name));
        } else {
            rows.push(row);
        }
    }
    let hint = |name: &str| tool["annotations"][name] == json!(true);
    let effect = if hint("readOnlyHint") { "" } else { " Not read-only." };
    let mut parameters = table(&["parameter", "type", "default", "meaning"], &rows);
    if !common.is_empty() {
        parameters.push_str(&format!("Common parameters: {}.\n\n", common.join(", ")));
    }
    format!("### {}\n\n{}{effect}\n\n{parameters}", text(&tool["name"]), plain(text(&tool["description"])))
}

fn render_prompt(prompt: &Value) -> String {
    let rows = prompt["arguments"].as_array().into_iter().flatten().map(|argument| {
        let default = if argument["required"] == json!(true) { "required" } else { "" };
        vec![code(text(&argument["name"])), default.to_owned(), plain(text(&argument["description"]))]
    });
    let arguments = table(&["argument", "default", "meaning"], &rows.collect::<Vec<_>>());
    format!("### {}\n\n{}\n\n{arguments}", text(&prompt["name"]), plain(text(&prompt["description"])))
}

fn render_resources(resources: &[Value], uri: &str) -> String {
    let rows = resources.iter().map(|resource| {
        let media_type = text(&resource["mimeType"]);
        let media_type = if media_type.is_empty() { String::new() } else { code(media_type) };
        vec![
            code(text(&resource[uri])),
            code(text(&resource["name"])),
            media_type,
            plain(text(&resource["description"])),
        ]
    });
    let mut rows: Vec<_> = rows.collect();
    rows.sort();
    table(&["URI", "name", "media type", "content"], &rows)
}

/// `introduction`, and `tools` with all their parameters.
fn render_further_tools(introduction: &str, tools: &[Value]) -> String {
    let rendered: String = tools.iter().map(|tool| render_tool(tool, &tool["inputSchema"])).collect();
    format!("{}{rendered}", introduction.replace("{count}", NUMBERS[tools.len()]))
}

/// The tools of a server with this configuration that are not in `known`.
async fn further_tools(configuration: &str, known: &[Value]) -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tidegate.yaml"), configuration).unwrap();
    let arguments = ["serve", "--listen", "127.0.0.1:0", "--log", "error"];
    let server = Server::start(tidegate().current_dir(folder.path()).args(arguments));
    let tools = list(&server.url, "tools/list", "tools").await.into_iter();
    tools.filter(|tool| !known.iter().any(|other| other["name"] == tool["name"])).collect()
}

#[tokio::test]
async fn tools_page_is_current() {
    let server = Server::start(tidegate().args(["demo", "--listen", "127.0.0.1:0", "--log", "error"]));
    let url = server.url.clone();
    // `logs.md` and `metric-sources.md` have the tools for these sources.
    let is_of_sources = |name: &str| name.contains("_logs") || name.ends_with("_metrics");
    let known = list(&url, "tools/list", "tools").await;
    let (of_sources, others): (Vec<&Value>, Vec<&Value>) =
        known.iter().partition(|tool| is_of_sources(text(&tool["name"])));
    let [of_sources, count] = [of_sources.len(), others.len()].map(|count| NUMBERS[count]);
    let mut page = INTRODUCTION.replace("{of_sources}", of_sources).replace("{others}", count);
    page.push_str(&table(&["parameter", "type", "default", "meaning"], &COMMON.map(common_row)));
    page.push_str("## Tools\n\n");
    for tool in others {
        let address = format!("{}/rest/tools/{}/schema", url.trim_end_matches("/mcp"), text(&tool["name"]));
        let schema: Value = reqwest::get(address).await.unwrap().json().await.unwrap();
        page.push_str(&render_tool(tool, &schema));
    }
    let functions = further_tools(SYSTEM_CONFIGURATION, &known).await;
    page.push_str(&render_further_tools(FUNCTIONS, &functions));
    let of_networks = further_tools(NETWORK_CONFIGURATION, &known).await;
    page.push_str(&render_further_tools(NETWORK, &of_networks));
    page.push_str(&render_further_tools(DISCOVERY, &list(&format!("{url}/discover"), "tools/list", "tools").await));
    page.push_str("## Prompts\n\nEach prompt contains the tables and columns that the model needs for its task.\n\n");
    for prompt in list(&url, "prompts/list", "prompts").await {
        page.push_str(&render_prompt(&prompt));
    }
    let templates = list(&url, "resources/templates/list", "resourceTemplates").await;
    page.push_str(&format!("## Resource templates\n\n{}", render_resources(&templates, "uriTemplate")));
    let mut resources = list(&url, "resources/list", "resources").await;
    resources.retain(|resource| ["nycflights13", "flights", "shop_app"].contains(&text(&resource["name"])));
    page.push_str(
        "## Resources\n\nThe list has each database, table and log source that the caller can access, such as these of the demo \
         data:\n\n",
    );
    page.push_str(&render_resources(&resources, "uri"));
    check_page("tools.md", &page);
    let [functions, of_networks] = [functions.len(), of_networks.len()].map(|count| NUMBERS[count]);
    let counts = [
        ("features.md", format!("| {count}, for")),
        (
            "features.md",
            format!("system tables add {functions}, networks {of_networks}, logs and metrics {of_sources}."),
        ),
        ("networks.md", format!("have {of_networks} more tools")),
    ];
    for (page, expected) in counts {
        let page_text = std::fs::read_to_string(root().join("docs/reference").join(page)).unwrap().to_lowercase();
        assert!(page_text.contains(&expected), "docs/reference/{page} lacks: {expected}");
    }
}
