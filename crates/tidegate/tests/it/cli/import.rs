//! `tidegate config import`: configurations of other servers, and what their results do.

use super::{CommandOutput, ConfiguredFolder, run_in};

const TOOLBOX_MAPS: &str = include_str!("import/toolbox_maps.yaml");
const TOOLBOX_DOCUMENTS: &str = include_str!("import/toolbox_documents.yaml");
const DBHUB: &str = include_str!("import/dbhub.toml");

/// A folder with the configuration of another server and the SQLite file that it names.
struct ForeignFolder(ConfiguredFolder);

impl ForeignFolder {
    fn new(file: &str, text: &str) -> Self {
        let configured = ConfiguredFolder::new("");
        std::fs::write(configured.folder().join(file), text).unwrap();
        let orders =
            "CREATE TABLE orders (id INTEGER, customer TEXT); INSERT INTO orders VALUES (1, 'Ann'), (2, 'Bob')";
        rusqlite::Connection::open(configured.folder().join("shop.db")).unwrap().execute_batch(orders).unwrap();
        Self(configured)
    }

    fn run(&self, arguments: &[&str]) -> CommandOutput {
        run_in(self.0.folder(), arguments)
    }

    /// Converts `file` to `tidegate.yaml`, checks it, and returns standard error and the configuration.
    fn import(&self, file: &str) -> String {
        let imported = self.run(&["config", "import", file]);
        assert_eq!(imported.code, Some(0), "{imported:?}");
        self.0.write(&imported.stdout);
        let checked = self.run(&["config", "check"]);
        assert_eq!(checked.code, Some(0), "{}\n{}", checked.stderr, imported.stdout);
        format!("{}\n---\n{}", imported.stderr, imported.stdout)
    }
}

#[test]
fn toolbox_with_maps_is_converted() {
    let folder = ForeignFolder::new("toolbox.yaml", TOOLBOX_MAPS);
    insta::assert_snapshot!("toolbox_maps", folder.import("toolbox.yaml"));
    let orders = folder.run(&["call", "orders-of", "customer=Ann"]);
    assert_eq!(orders.stdout.trim(), "[{\"id\":1}]", "{orders:?}");
    let named = folder.run(&["call", "list_values", "column=customer", "which=Bob"]);
    assert_eq!(named.stdout.trim(), "[{\"customer\":\"Bob\"}]", "{named:?}");
    let tools = folder.run(&["tools"]).stdout;
    assert!(tools.contains("sql(") && !tools.contains("query("), "only tools that replace one are offered: {tools}");
}

#[test]
fn toolbox_with_documents_is_converted() {
    let folder = ForeignFolder::new("tools.yaml", TOOLBOX_DOCUMENTS);
    insta::assert_snapshot!("toolbox_documents", folder.import("tools.yaml"));
}

#[test]
fn dbhub_is_converted() {
    let folder = ForeignFolder::new("dbhub.toml", DBHUB);
    insta::assert_snapshot!("dbhub", folder.import("dbhub.toml"));
    let orders = folder.run(&["call", "orders_of", "customer=Ann"]);
    assert_eq!(orders.stdout.trim(), "[{\"id\":1}]", "{orders:?}");
}

#[test]
fn databases_of_client_entries_are_converted() {
    let entries = r#"{"mcpServers": {
        "shop": {"command": "npx", "args": ["-y", "@bytebase/dbhub", "--dsn", "sqlite:///./shop.db"]},
        "crm": {"command": "npx", "args": ["-y", "server-postgres", "postgres://reader@127.0.0.1:1/crm?sslmode=disable"]},
        "toolbox": {"command": "toolbox", "args": ["--tools-file=tools.yaml", "--stdio"]},
        "web": {"url": "https://example.com/mcp"}
    }}"#;
    let folder = ForeignFolder::new("mcp.json", entries);
    insta::assert_snapshot!("mcp_servers", folder.import("mcp.json"));
}

#[test]
fn pasted_configurations_get_a_pointer() {
    let client = "{\"mcpServers\": {\"a\": {\"command\": \"b\"}}}";
    for (text, program) in [
        (TOOLBOX_MAPS, "MCP Toolbox for Databases"),
        (TOOLBOX_DOCUMENTS, "MCP Toolbox for Databases"),
        ("tools:\n  a:\n    kind: postgres-sql\n", "MCP Toolbox for Databases"),
        (DBHUB, "DBHub"),
        (client, "an MCP client (mcpServers)"),
    ] {
        let configured = ConfiguredFolder::new(text);
        for command in [&["config", "check"][..], &["serve", "--listen", "127.0.0.1:0"]] {
            let error = configured.usage_error(command);
            let expected = format!("tidegate.yaml: is the configuration of {program}, not of Tidegate\n");
            assert!(error.contains(&expected), "{error}");
            assert!(error.contains("Convert it: tidegate config import tidegate.yaml > new.yaml"), "{error}");
        }
    }
    let unknown = ConfiguredFolder::new("databases: []\n").usage_error(&["config", "import", "tidegate.yaml"]);
    assert!(unknown.contains("tidegate.yaml: is not the configuration of MCP Toolbox for Databases"), "{unknown}");
}
