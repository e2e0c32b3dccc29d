//! `tidegate config`: what is wrong with a configuration, as a person reads it.

mod invalid;
mod policies;

use serde_json::Value;
use tidegate::tools::{FOLDER_TOOLS, OTLP_TOOLS, TABLE_TOOLS};

use super::{ConfiguredFolder, run, tidegate};

const SHOP: &str = "databases: [{name: shop, files: shop}]\n";

/// What `config check` says of the shop with `more`.
fn check(more: &str) -> String {
    ConfiguredFolder::new(&format!("{SHOP}{more}")).usage_error(&["config", "check"])
}

#[test]
fn valid_configuration_passes() {
    let configured = ConfiguredFolder::new(SHOP);
    let ran = configured.run(&["config", "check"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "tidegate.yaml: 1 databases and 0 tools, nothing wrong\n"));
    let ran = ConfiguredFolder::new("").run(&["config", "check"]);
    assert_eq!(ran.code, Some(0), "an empty file says nothing: {ran:?}");
}

#[test]
fn warns_where_transports_carry_less_than_inline_bytes() {
    let warnings = |more: &str| {
        let ran = ConfiguredFolder::new(&format!("{SHOP}{more}")).run(&["config", "check"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        format!("{}{}", ran.stdout, ran.stderr)
    };
    let text = warnings("limits: {inline_bytes: 1MiB}\n");
    assert!(text.contains("limits.inline_bytes is above what clients accept in one message: 460800 bytes"), "{text}");
    assert!(text.contains("the whole value over stdio"), "{text}");
    let tool = "tools: [{name: a, description: A, sql: SELECT 1 AS one, limits: {inline_bytes: 5MiB}}]\n";
    let text = warnings(tool);
    assert!(text.contains("tools[0].limits.inline_bytes is above") && text.contains("4194304 over stdio"), "{text}");
    let events = "server: {max_event: 1MiB}\nlimits: {inline_bytes: 1MiB}\n";
    for fine in ["limits: {inline_bytes: 400KB}\n", "limits: {inline_bytes: unlimited}\n", events] {
        assert!(!warnings(fine).contains("in one message"), "{fine}");
    }
}

#[test]
fn tls_files_are_checked() {
    let text = check("server:\n  tls: {certificate: cert.pem, key: key.pem, client_crl: gone.pem}\n");
    assert!(text.contains("server.tls.client_crl: has no effect without client_ca"), "{text}");
    assert!(text.contains("server.tls: ") && text.contains("cert.pem cannot be read"), "{text}");
    let text = check("server: {tls: {certificate: a, key: b, min_version: '1.1', clients: optional}}\n");
    assert!(text.contains("server.tls.min_version: "), "{text}");
    assert!(text.contains("server.tls.clients: unknown key"), "{text}");
}

#[test]
fn reports_all_schema_errors() {
    insta::assert_snapshot!(check("serve: {}\nlimits: {timeout: 60, inline_rows: lots}\ntools: {}\ntoolsets: {a: b}\nroles: [{toolset: [a]}]\n"), @r"
    error: the configuration cannot be used
    tidegate.yaml:2:1: serve: unknown key; did you mean server?
    tidegate.yaml:4:1: tools: a map where a list is expected
    tidegate.yaml:5:12: toolsets.a: b where a list is expected
    tidegate.yaml:6:9: roles[0]: name is missing
    tidegate.yaml:6:10: roles[0].toolset: unknown key; did you mean toolsets?
    ");
    insta::assert_snapshot!(check("limits: {timeout: 60}\n"), @r"
    error: the configuration cannot be used
    tidegate.yaml:2:10: limits.timeout: write it with its unit: 500ms, 60s, 5m, 1h or 90d
    ");
    insta::assert_snapshot!(check("tools:\n  - name: a\n    description: A\n    input: {x: {type: text}}\n"), @r"
    error: the configuration cannot be used
    tidegate.yaml:5:17: tools[0].input.x.type: text is none of string, integer, number, boolean, date, timestamp, list, identifier
    ");
}

#[test]
fn reports_yaml_errors_with_position() {
    insta::assert_snapshot!(check("tools: [\n"), @r"
    error: the configuration cannot be used
    tidegate.yaml:3:1: is no YAML: while parsing a node, did not find expected node content
    ");
    insta::assert_snapshot!(check("limits: {}\nlimits: {}\n"), @r#"
    error: the configuration cannot be used
    tidegate.yaml:3:1: "limits" stands here a second time; the first is in line 2
    "#);
    insta::assert_snapshot!(check("---\na: 1\n"), @r"
    error: the configuration cannot be used
    tidegate.yaml:2:1: is a second document; a configuration is one
    ");
    insta::assert_snapshot!(check("limits: {timeout: *nowhere}\n"), @r"
    error: the configuration cannot be used
    tidegate.yaml:2:19: is no YAML: while parsing node, found unknown anchor
    ");
}

#[test]
fn an_error_of_indentation_is_at_its_line_and_says_what_fits() {
    let first = |text: &str| check(text).lines().nth(1).unwrap_or_default().to_owned();
    let wrong = first("server:\n  title: T\n   listen: x\n");
    let fitting = "write 2 as for title, or 0 as for server";
    let expected = "tidegate.yaml:4:4: is no YAML: the line is indented by 3 spaces, which fits no line above it";
    assert_eq!(wrong, format!("{expected}; {fitting}"));
    let tab = first("server:\n  title: T\n\tlisten: x\n");
    assert_eq!(tab, "tidegate.yaml:4:1: is no YAML: a tab indents the line; indent with spaces");
    let word = first("server:\n  title\n  listen: x\n");
    assert!(word.starts_with("tidegate.yaml:3:3: is no YAML: the line has no colon"), "{word}");
    let outside = first("server:\n  listen: '127.0.0.1:1'\ntitle: T\n");
    assert_eq!(outside, "tidegate.yaml:4:1: title: unknown key; it is a key of server above it: indent it more");
}

#[test]
fn reports_unknown_references() {
    insta::assert_snapshot!(check("roles: [{name: clerk, toolsets: [suport]}, {name: clerk}]\ntoolsets: {support: ['*'], discover: [], sse: []}\nauth: {anonymous: [clark], local: [nobody]}\n"), @r#"
    error: the configuration cannot be used
    tidegate.yaml:2:34: roles[0].toolsets[0]: there is no toolset "suport"; the toolsets are sse, support, discover, and "*" for everything
    tidegate.yaml:2:45: roles[1].name: clerk is the name of another
    tidegate.yaml:3:28: toolsets.discover: is built in; choose another name
    tidegate.yaml:3:42: toolsets.sse: is the address of another transport; choose another name
    tidegate.yaml:4:20: auth.anonymous[0]: there is no role "clark"; the roles are clerk
    tidegate.yaml:4:36: auth.local[0]: there is no role "nobody"; the roles are clerk
    "#);
    insta::assert_snapshot!(ConfiguredFolder::new("databases: [{name: a, files: nowhere}, {name: b, files: shop}, {name: b, files: shop}]\n").usage_error(&["config", "check"]), @r"
    error: the configuration cannot be used
    tidegate.yaml:1:23: databases[0].files: nowhere: no such file or folder
    tidegate.yaml:1:65: databases[2].name: b is the name of another
    ");
}

#[test]
fn the_name_of_the_database_of_stored_results_is_reserved() {
    let configured = ConfiguredFolder::new("databases: [{name: results, files: shop}]\n");
    insta::assert_snapshot!(configured.usage_error(&["config", "check"]), @r"
    error: the configuration cannot be used
    tidegate.yaml:1:14: databases[0].name: results is the database of stored results (save_as); choose another name, such as results_db
    ");
}

#[test]
fn reports_invalid_limits() {
    insta::assert_snapshot!(check("limits: {requests_per_second: 0, burst: 5, tenant: {burst: 2}, principal: {running_calls: 0}}\nroles: [{name: clerk, limits: {requests_per_second: 5, burst: 0}}]\n"), @r"
    error: the configuration cannot be used
    tidegate.yaml:2:10: limits.requests_per_second: must be above 0; 0.5 is one in two seconds
    tidegate.yaml:2:53: limits.tenant.burst: requires requests_per_second
    tidegate.yaml:2:76: limits.principal.running_calls: must be at least 1, or no call ever runs
    tidegate.yaml:3:56: roles[0].limits.burst: must be at least 1, or every request is refused
    ");
    insta::assert_snapshot!(ConfiguredFolder::new("databases: [{name: a, files: shop, tenants: []}, {name: b, files: shop, tenants: [n]}, {name: c, files: shop, tenants: [s]}, {name: d, federated: [b, c]}]\n").usage_error(&["config", "check"]), @r"
    error: the configuration cannot be used
    tidegate.yaml:1:36: databases[0].tenants: is empty; omit it to allow all tenants, or list the tenants that may use the database
    tidegate.yaml:1:136: databases[3].federated: joins databases that no tenant may use together
    ");
}

#[test]
fn statements_are_prepared() {
    let tool = |sql: &str, input: &str| {
        check(&format!("tools:\n  - name: t\n    description: T\n    sql: {sql}\n    input: {input}\n"))
    };
    insta::assert_snapshot!(tool("SELECT amont FROM orders", "{}"), @r#"
    error: the configuration cannot be used
    tidegate.yaml:5:5: tools[0].sql: there is no column "amont"
        Valid choices: amount, id, customer
    "#);
    insta::assert_snapshot!(tool("SELECT * FROM orders WHERE id = :id", "{}"), @r"
    error: the configuration cannot be used
    tidegate.yaml:5:5: tools[0].sql: the SQL uses :id, which is not declared under input
    ");
    insta::assert_snapshot!(tool("SELECT 1", "{unused: {}}"), @r"
    error: the configuration cannot be used
    tidegate.yaml:6:13: tools[0].input.unused: the SQL does not use unused; write it as :unused, or remove it
    ");
    insta::assert_snapshot!(tool("DELETE FROM orders", "{}"), @r"
    error: the configuration cannot be used
    tidegate.yaml:5:5: tools[0].sql: DELETE is refused: it would change data, and only reading is allowed
        Only SELECT statements are allowed, including those with WITH, UNION or VALUES.
    ");
    insta::assert_snapshot!(tool("SELECT $1", "{}"), @r"
    error: the configuration cannot be used
    tidegate.yaml:5:5: tools[0].sql: the placeholder $1 in the SQL has no name
        Write parameters as :name and declare each under input.
    ");
    insta::assert_snapshot!(tool("SELECT :c FROM orders", "{c: {type: identifier}}"), @r"
    error: the configuration cannot be used
    tidegate.yaml:6:13: tools[0].input.c: an identifier needs allow: the columns or tables that it may be
    ");
    insta::assert_snapshot!(tool("SELECT :c FROM orders", "{c: {type: identifier, allow: [id, nope]}}"), @r#"
    error: the configuration cannot be used
    tidegate.yaml:5:5: tools[0].sql: there is no column "nope"
        Valid choices: id, customer, amount
    "#);
    insta::assert_snapshot!(tool("SELECT :n", "{n: {type: integer, default: one}}"), @r"
    error: the configuration cannot be used
    tidegate.yaml:6:32: tools[0].input.n.default: does not fit the parameter's type
    ");
    insta::assert_snapshot!(tool("SELECT :format", "{format: {}}"), @r"
    error: the configuration cannot be used
    tidegate.yaml:6:13: tools[0].input.format: format is reserved: every tool with a table has this argument; choose another name
    ");
}

#[test]
fn resources_prompts_and_requests_are_checked_too() {
    insta::assert_snapshot!(check("resources: [{uri: 'r://{a}{b}', name: r, sql: SELECT 1}, {uri: plain, name: p, file: x}, {uri: 'r://x', name: x}]\n"), @r#"
    error: the configuration cannot be used
    tidegate.yaml:2:14: resources[0].uri: invalid URI template "r://{a}{b}": put text between two variables
    tidegate.yaml:2:59: resources[1].uri: "plain" has no scheme; write it as reports://sales/{year}
    tidegate.yaml:2:90: resources[2]: needs either sql or file, not both
    "#);
    insta::assert_snapshot!(check("prompts: [{name: p, description: P, messages: [{text: 'Hi {{who}}'}, {}]}]\n"), @r"
    error: the configuration cannot be used
    tidegate.yaml:2:70: prompts[0].messages[1]: needs either text or resource, not both
    ");
    insta::assert_snapshot!(check("tools: [{name: t, description: T, http: {url: 'https://api.example.com/{{x}}'}, input: {x: {}}}]\n"), @r"
    error: the configuration cannot be used
    tidegate.yaml:2:42: tools[0].http.url: api.example.com is not among the hosts that http tools may reach
        add it to http.allow_hosts
    ");
}

#[test]
fn variable_values_are_redacted_in_errors() {
    let configured =
        ConfiguredFolder::new(&format!("{SHOP}limits: {{timeout: '${{HELD}}'}}\nroles: [{{name: ['${{HELD}}']}}]\n"));
    let content = |name: &str| {
        let mut command = super::tidegate();
        let output = command.current_dir(configured.folder()).env(name, "hunter2").args(["config", "check"]).output();
        let ran: super::CommandOutput = output.unwrap().into();
        assert_eq!(ran.code, Some(2));
        assert!(!ran.stderr.contains("hunter2"), "{}", ran.stderr);
        ran.stderr.replace(&format!("{}/", configured.folder().canonicalize().unwrap().display()), "")
    };
    insta::assert_snapshot!(content("HELD"), @r"
    error: the configuration cannot be used
    tidegate.yaml:3:10: roles[0].name: a list where a text is expected
    ");
    insta::assert_snapshot!(content("ANOTHER"), @r"
    error: the configuration cannot be used
    tidegate.yaml:2:19: the environment variable HELD is not set; set it, or write ${HELD:-default}
    tidegate.yaml:3:17: the environment variable HELD is not set; set it, or write ${HELD:-default}
    ");
    configured.write(&format!("{SHOP}limits: {{timeout: '${{HELD}}'}}\n"));
    insta::assert_snapshot!(content("HELD"), @r"
    error: the configuration cannot be used
    tidegate.yaml:2:10: limits.timeout: the value of ${HELD} is not valid here
    ");
    configured.write(&format!(
        "{SHOP}auth: {{tokens: {{issuer: i, audience: a, algorithms: [HS256], secret: '${{HELD}}'}}}}\n"
    ));
    insta::assert_snapshot!(content("HELD"), @r"
    error: the configuration cannot be used
    tidegate.yaml:2:1: auth: the secret is too short for HS256, which needs at least 32 bytes
    ");
}

#[test]
fn json_schema_is_valid_and_described() {
    let schema: Value = serde_json::from_str(&run(&["config", "schema"]).stdout).unwrap();
    jsonschema::meta::validate(&schema).unwrap();
    let described = |object: &Value| {
        let members = object["properties"].as_object().unwrap().iter();
        members
            .filter(|(_, member)| member.get("description").is_none())
            .map(|(name, _)| name.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(described(&schema), Vec::<String>::new());
    for (name, entry) in schema["$defs"].as_object().unwrap() {
        if entry.get("properties").is_some() {
            assert_eq!(described(entry), Vec::<String>::new(), "{name}");
            assert_eq!(entry["additionalProperties"], false, "{name}");
        }
    }
}

#[test]
fn reports_duplicates() {
    insta::assert_snapshot!(check("\
built_in: [sql]
tools:
  - {name: one, description: O, sql: SELECT 1}
  - {name: one, description: O, http: {url: 'https://api.example.com/'}}
  - {name: sql, description: O, sql: SELECT 1}
  - {name: call_tool, description: O, sql: SELECT 1}
  - {name: query, description: not offered as a built-in one, sql: SELECT 1}
  - {name: a b, description: O, http: {url: 'https://api.example.com/'}}
resources:
  - {uri: 'x://y', name: a, sql: SELECT 1}
  - {uri: 'x://y', name: b, sql: SELECT 1}
prompts:
  - {name: p, description: P, messages: [{text: a}]}
  - {name: p, description: P, messages: [{text: b}]}
http: {allow_hosts: [api.example.com]}
"), @r#"
    error: the configuration cannot be used
    tidegate.yaml:5:6: tools[1].name: one is the name of another
    tidegate.yaml:6:6: tools[2].name: sql is the name of a built-in one; choose another, or keep that one out with built_in
    tidegate.yaml:7:6: tools[3].name: call_tool is the name of a built-in one; choose another, or keep that one out with built_in
    tidegate.yaml:9:6: tools[5].name: "a b" is no name of a tool: 1 to 128 of letters, digits, _, - and .
    tidegate.yaml:12:6: resources[1].uri: x://y is the URI of another
    tidegate.yaml:15:6: prompts[1].name: p is the name of another
    "#);
}

#[test]
fn the_tools_for_rows_are_built_in_too() {
    let plant = "databases: [{name: plant, ingest: plant, tables: {sensors: {columns: {n: int64}}}}]\n\
                 receivers: {otlp: plant, prometheus: plant, bulk: plant}\n";
    let of_receivers = OTLP_TOOLS.into_iter().chain(["receive_prometheus", "receive_bulk"]);
    let names: Vec<_> = TABLE_TOOLS.into_iter().chain(FOLDER_TOOLS).chain(of_receivers).collect();
    let tools: String =
        names.iter().map(|name| format!("  - {{name: {name}, description: O, sql: SELECT 1}}\n")).collect();
    let configured = ConfiguredFolder::new(&format!("{plant}tools:\n{tools}"));
    // `config check` opens no folder for writing, and has no tools for rows.
    for arguments in [&["config", "check"][..], &["serve", "--listen", "127.0.0.1:0"]] {
        let error = configured.usage_error(arguments);
        for (index, name) in names.iter().enumerate() {
            let problem = format!("tools[{index}].name: {name} is the name of a built-in one");
            assert!(error.contains(&problem), "{problem}: {error}");
        }
    }
    let without = ConfiguredFolder::new(&format!("{plant}built_in: [sql]\ntools:\n{tools}"));
    let ran = without.run(&["config", "check"]);
    assert!(!ran.stderr.contains("is the name of a built-in one"), "{ran:?}");
    let ran = ConfiguredFolder::new(&format!("{SHOP}tools:\n{tools}")).run(&["config", "check"]);
    assert_eq!(ran.code, Some(0), "a server without these tables lacks the tools: {ran:?}");
}

#[test]
fn variable_values_are_redacted_in_every_report() {
    let configured = ConfiguredFolder::new(&format!(
        "{SHOP}tools:\n  - {{name: one, description: O, sql: 'SELECT 1 FROM ${{HELD}}'}}\n  \
         - {{name: two, description: T, http: {{url: 'https://${{HELD}}/x'}}}}\n"
    ));
    let ran: super::CommandOutput = tidegate()
        .current_dir(configured.folder())
        .env("HELD", "hunter2")
        .args(["config", "check"])
        .output()
        .unwrap()
        .into();
    assert_eq!(ran.code, Some(2), "{ran:?}");
    let text = format!("{}{}", ran.stdout, ran.stderr);
    assert!(text.contains("${HELD}") && !text.contains("hunter2"), "{text}");
    assert_eq!(text.matches("is not shown; write the value out").count(), 2, "{text}");
}

#[test]
fn check_doctor_and_explain_warn_of_unreachable_data() {
    let configured = ConfiguredFolder::new(
        "databases: [{name: shop, files: shop, tables: {ordrs: {delimiter: ';'}, nothing: {header: false}, '2024': {}}}]
toolsets: {own: [mine, quary, 'none_*', 'explo*', 'stored_result*', stored_result_block]}
roles:
  - {name: clerk, toolsets: ['*']}
  - {name: chief, toolsets: ['*'], databases: [shp, shop, 'crm_*']}
  - {name: guest, toolsets: [own]}
auth: {keys: keys.json}
tools: [{name: mine, description: M, sql: SELECT 1 AS one}]
",
    );
    let warnings = [
        r#"database shop: tables: there is no table "nothing" yet, so its options have no effect"#,
        r#"database shop: tables: there is no table "ordrs"; did you mean "orders"?"#,
        r#"roles[0]: the role "clerk" has tools such as list_tables, but no databases, so they find no tables; add databases: ['*'], or their names"#,
        r#"roles[1].databases[0]: there is no database "shp"; there are shop"#,
        r#"roles[1].databases[2]: there is no database "crm_*"; there are shop"#,
        r#"toolsets.own[1]: "quary" matches no tool, resource or prompt; did you mean "query"?"#,
        r#"toolsets.own[2]: "none_*" matches no tool, resource or prompt"#,
    ];
    let ran = configured.run(&["config", "check"]);
    assert!(ran.stdout.ends_with("no errors; 7 warnings above\n"), "{ran:?}");
    for warning in warnings {
        assert!(ran.stderr.contains(warning), "{warning}: {ran:?}");
        assert!(configured.run(&["doctor"]).stdout.contains(&format!("mind   {warning}")), "{warning}");
    }
    // Where the log hides them, the check itself prints them.
    let ran = configured.run(&["config", "check", "--log", "error"]);
    let printed: Vec<&str> = ran.lines().into_iter().filter_map(|line| line.strip_prefix("warning: ")).collect();
    assert_eq!((printed.as_slice(), ran.stderr.as_str()), (warnings.as_slice(), ""));
    let explain = |role: &str| configured.run(&["access", "explain", "--role", role, "shop"]).stdout;
    assert_eq!(
        explain("clerk"),
        "no   database shop: no role of the caller names it under databases; used for the caller by mine\n"
    );
    assert_eq!(explain("chief"), "yes  database shop\n");
}

#[test]
fn toolsets_name_the_tools_for_rows_of_the_server() {
    let names = "[append_rows, ingest_status, receive_otlp, receive_prometheus, receive_bulk, recieve_bulk]";
    let configured = ConfiguredFolder::new(&format!(
        "databases: [{{name: plant, ingest: ./plant}}]
receivers: {{otlp: plant, prometheus: plant, bulk: plant}}
toolsets: {{senders: {names}}}
"
    ));
    let unmatched = || -> Vec<String> {
        let ran = configured.run(&["config", "check", "--log", "error"]);
        let warnings = ran.lines().into_iter().filter_map(|line| line.strip_prefix("warning: toolsets."));
        warnings.filter_map(|line| Some(line.split_once(" matches no ")?.0.to_owned())).collect()
    };
    assert_eq!(unmatched(), ["senders[5]: \"recieve_bulk\""]);
    let text = std::fs::read_to_string(configured.folder().join("tidegate.yaml")).unwrap();
    configured.write(&format!("{text}built_in: ['receive_*']\n"));
    assert_eq!(
        unmatched(),
        ["senders[0]: \"append_rows\"", "senders[1]: \"ingest_status\"", "senders[5]: \"recieve_bulk\""]
    );
}

#[test]
fn empty_configuration_is_a_warning() {
    for text in ["", "# databases: []\n", "{}"] {
        let configured = ConfiguredFolder::new(text);
        let warning = "tidegate.yaml is empty: it declares neither databases nor tools";
        let ran = configured.run(&["config", "check"]);
        assert!(ran.stderr.contains(warning) && ran.stdout.contains("1 warning above"), "{text:?}: {ran:?}");
        assert!(configured.run(&["doctor"]).stdout.contains(warning), "{text:?}");
        assert!(configured.run(&["access", "explain", "--role", "local"]).stderr.contains(warning), "{text:?}");
    }
}
