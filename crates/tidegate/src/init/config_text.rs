//! The text of a new configuration, with comments for the person who continues it.

use std::fmt::Write as _;

use super::proposed_database::ProposedDatabase;
use super::questions::{Audience, InitAnswers};

const HEADER: &str = "\
# Configuration of Tidegate. A running server reads this file again when it changes.
#   tidegate config check    reports errors with line and column
#   tidegate config schema   prints a JSON Schema for editors
#   tidegate doctor          checks the whole installation

# Each database is a set of tables. Access is read-only.
databases:
";

const WITHOUT_SQL: &str = "
# The built-in tools that callers have, by patterns of their names. sql and explain are missing: callers use query, whose
# conditions are JSON. Without this key, callers have all of them.
built_in: [list_*, get_schema, query, cancel_job, node_status, server_info]
";

const LOCAL: &str = "
# Only programs on this machine reach the server. To open it to others, add roles, auth and server.listen:
# roles: [{name: reader, toolsets: ['*'], databases: [NAME]}]
# auth: {keys: tidegate-keys.json}
# server: {listen: '0.0.0.0:7070', tls: {certificate: tls/cert.pem, key: tls/key.pem}}
";

const TOOLS: &str = "
# Tools of your own: SQL with parameters, which a model calls by name.
# tools:
#   - name: orders_of_customer
#     description: Orders of one customer, newest first.
#     sql: SELECT * FROM orders WHERE customer_id = :customer ORDER BY placed_at DESC
#     input: {customer: {type: integer}}
";

/// The configuration for these answers.
pub(crate) fn render_config(answers: &InitAnswers) -> String {
    let mut text = HEADER.to_owned();
    for source in &answers.sources {
        push_database(&mut text, source);
    }
    if !answers.allows_sql {
        text.push_str(WITHOUT_SQL);
    }
    match answers.audience {
        Audience::Machine => text.push_str(LOCAL),
        Audience::Network => push_network(&mut text, &answers.sources),
    }
    text.push_str(TOOLS);
    text
}

// A write to a string cannot fail.
fn push_database(text: &mut String, source: &ProposedDatabase) {
    let _ = writeln!(text, "  # {}", source.description);
    let _ = writeln!(text, "  - name: {}", source.name);
    for comment in source.comments {
        let _ = writeln!(text, "    # {comment}");
    }
    let values: Vec<String> = source.values.iter().map(|value| quoted(value)).collect();
    let _ = match values.as_slice() {
        [one] => writeln!(text, "    {}: {one}", source.key),
        several => writeln!(text, "    {}: [{}]", source.key, several.join(", ")),
    };
}

fn push_network(text: &mut String, sources: &[ProposedDatabase]) {
    let names: Vec<&str> = sources.iter().map(|source| source.name.as_str()).collect();
    let names = names.join(", ");
    let _ = write!(
        text,
        "
# Who may do what. `tidegate key add NAME --role reader` makes a key.
roles:
  - {{name: reader, toolsets: ['*'], databases: [{names}]}}

# Callers must show a key. The file contains only hashes of keys.
auth: {{keys: tidegate-keys.json}}

server:
  listen: 0.0.0.0:7070
  # The names of this server that clients use; requests with other names are refused.
  # allow_hosts: [data.example.com]
  # Without TLS, keys are readable on the network. A proxy may do this instead.
  # tls: {{certificate: tls/cert.pem, key: tls/key.pem}}

# Each caller at most.
limits: {{principal: {{requests_per_second: 50, burst: 100, running_calls: 16}}}}

# One line for each call, chained by hash.
audit: {{file: tidegate-audit.jsonl}}
"
    );
}

/// A text as YAML: in quotes, unless it is a plain path.
fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "./_-".contains(c);
    let begins_plain = text.starts_with(|c: char| c == '.' || c == '/' || c.is_ascii_alphabetic());
    if begins_plain && text.chars().all(is_plain) {
        return text.to_owned();
    }
    // JSON texts are YAML texts in double quotes.
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use tidegate_core::{AllowedNames, CallOrigin, Caller, Principal, TransportKind};

    use super::*;

    fn answers(audience: Audience, allows_sql: bool) -> InitAnswers {
        let files = vec!["./*.csv".to_owned(), "./my data".to_owned()];
        let sources = vec![
            ProposedDatabase::new("files", "files", files, "2 files"),
            ProposedDatabase::new("app", "sqlite", vec!["./app.db".to_owned()], "SQLite"),
            ProposedDatabase::new("shop", "postgres", vec!["${DATABASE_URL}".to_owned()], "PostgreSQL"),
        ];
        InitAnswers { sources, audience, allows_sql, clients: Vec::new() }
    }

    #[test]
    fn databases_are_written_with_quotes_where_yaml_needs_them() {
        let text = render_config(&answers(Audience::Machine, true));
        assert!(text.contains(r#"    files: ["./*.csv", "./my data"]"#), "{text}");
        assert!(text.contains("    sqlite: ./app.db\n"), "{text}");
        assert!(text.contains("    postgres: \"${DATABASE_URL}\"\n"), "{text}");
        assert!(!text.contains("\nbuilt_in:") && !text.contains("\nauth:"), "{text}");
    }

    #[test]
    fn network_requires_keys() {
        let text = render_config(&answers(Audience::Network, false));
        for line in ["\nauth: {keys: tidegate-keys.json}\n", "databases: [files, app, shop]", "\nbuilt_in: [list_*,"] {
            assert!(text.contains(line), "{line} is missing in {text}");
        }
    }

    #[test]
    fn the_list_without_sql_has_all_other_tools() {
        let (_, list) = WITHOUT_SQL.split_once("\nbuilt_in: [").unwrap();
        let listed = AllowedNames::matching(list.trim_end().trim_end_matches(']').split(", "));
        let caller =
            Caller::new(Principal::process_user(), CallOrigin { transport: TransportKind::CommandLine, peer: None });
        for tool in tidegate_tools::entries_of_every_server().build().tools(&caller) {
            let takes_sql = tool.call_schema().json()["properties"].get("sql").is_some();
            assert_eq!(listed.includes(&tool.name), !takes_sql, "{}", tool.name);
        }
    }
}
