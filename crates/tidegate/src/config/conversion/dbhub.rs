//! DBHub: `[[sources]]` and `[[tools]]`.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use tidegate_sql::SqlDialect;

use super::super::yaml_tree::YamlNode;
use super::draft::ConfigDraft;
use super::sql_tool::SqlTool;
use super::toolbox::{database, keyword_pairs};

/// The keywords of connection strings that servers have names of their own for.
struct Keywords {
    database: &'static str,
    /// What may complete a DSN, behind the fields that it stands for.
    further: [(&'static str, &'static str); 3],
}

const POSTGRES_KEYWORDS: Keywords = Keywords {
    database: "dbname",
    further: [("sslmode", "sslmode"), ("sslrootcert", "sslrootcert"), ("connection_timeout", "connect_timeout")],
};

const MYSQL_KEYWORDS: Keywords = Keywords {
    database: "database",
    further: [("sslmode", "sslmode"), ("sslrootcert", "ssl-ca"), ("connection_timeout", "connect-timeout")],
};

/// What a source has become.
struct Source<'a> {
    dialect: SqlDialect,
    node: &'a YamlNode,
}

pub(super) fn convert(root: &YamlNode, draft: &mut ConfigDraft) {
    let items = |name: &str| root.get(name).map(YamlNode::items).unwrap_or_default();
    let mut sources: BTreeMap<String, Source<'_>> = BTreeMap::new();
    let mut unlisted: BTreeMap<String, usize> = BTreeMap::new();
    for node in items("sources") {
        let id = node.text_of("id").unwrap_or_else(|| "default".to_owned());
        match convert_source(&id, node, draft) {
            Ok(dialect) => {
                unlisted.insert(id.clone(), node.line());
                sources.insert(id, Source { dialect, node });
            }
            Err(reason) => draft.leave_out(node.line(), &format!("source {id}"), reason),
        }
    }
    for node in items("tools") {
        let source_name = node.text_of("source").unwrap_or_default();
        let name = node.text_of("name").unwrap_or_default();
        unlisted.remove(&source_name);
        match sources.get(&source_name) {
            Some(source) => convert_tool(&name, &source_name, source, node, draft),
            None => {
                let reason = format!("its source {source_name:?} is left out or does not exist");
                draft.leave_out(node.line(), &format!("tool {name}"), reason);
            }
        }
    }
    // A source without tools has execute_sql and search_objects.
    for (source, line) in unlisted {
        let subject = format!("source {source}");
        draft.note_to_check(line, &subject, "the built-in sql, which only reads, is offered instead of execute_sql");
        offer_sql(draft);
    }
}

fn offer_sql(draft: &mut ConfigDraft) {
    draft.offer_built_in("execute_sql", &["sql"]);
    draft.offer_built_in("search_objects", &["list_databases", "list_tables", "get_schema"]);
}

fn convert_source(id: &str, node: &YamlNode, draft: &mut ConfigDraft) -> Result<SqlDialect, String> {
    let subject = format!("source {id}");
    let dsn = node.text_of("dsn").unwrap_or_default();
    let scheme = dsn.split_once("://").map(|(scheme, _)| scheme.to_owned());
    let kind = scheme.or_else(|| node.text_of("type")).unwrap_or_default();
    if node.get("ssh_host").is_some() {
        return Err("SSH tunnels have no equivalent; open the tunnel yourself and name its end".to_owned());
    }
    if node.is_true("aws_iam_auth") {
        return Err("IAM authentication (aws_iam_auth) has no equivalent".to_owned());
    }
    if node.get("init_script").is_some() {
        return Err("init_script has no equivalent".to_owned());
    }
    let mut known = vec!["id", "dsn", "type", "lazy", "query_timeout"];
    let (dialect, mut entry) = match kind.as_str() {
        "sqlite" => {
            known.push("database");
            (SqlDialect::Sqlite, database(id, "sqlite", &sqlite_file(&dsn, node)?))
        }
        "postgres" | "postgresql" => {
            known.extend(["host", "port", "database", "user", "password", "sslmode", "sslrootcert"]);
            known.extend(["connection_timeout", "search_path"]);
            (SqlDialect::Postgres, database(id, "postgres", &connection_string(&dsn, node, &POSTGRES_KEYWORDS)))
        }
        "mysql" | "mariadb" => {
            known.extend(["host", "port", "database", "user", "password", "sslmode", "sslrootcert"]);
            known.push("connection_timeout");
            (SqlDialect::MySql, database(id, "mysql", &connection_string(&dsn, node, &MYSQL_KEYWORDS)))
        }
        other => return Err(format!("there is no database of the type {other}")),
    };
    if let Some(path) = node.text_of("search_path").filter(|_| known.contains(&"search_path")) {
        let schemas: Vec<&str> = path.split(',').map(str::trim).filter(|schema| !schema.is_empty()).collect();
        entry.insert("schemas".to_owned(), json!(schemas));
        draft.note_to_check(
            node.line(),
            &subject,
            "search_path is now schemas; names of other schemas are not visible",
        );
    }
    if node.get("query_timeout").is_some() {
        draft.note_to_check(
            node.line(),
            &subject,
            "query_timeout is a limit of its declared tools; for all calls set limits.timeout",
        );
    }
    for (name, position, _) in node.members() {
        if !known.contains(&name.as_str()) {
            draft.leave_out(position.line, &subject, format!("{name} has no equivalent"));
        }
    }
    draft.add_database(entry);
    Ok(dialect)
}

fn sqlite_file(dsn: &str, node: &YamlNode) -> Result<String, String> {
    let file = match dsn.strip_prefix("sqlite://") {
        // A relative path may follow the slash of the URI.
        Some(path) => path.strip_prefix('/').filter(|path| path.starts_with('.')).unwrap_or(path).to_owned(),
        None => node.text_of("database").unwrap_or_default(),
    };
    if file.is_empty() || file.contains(":memory:") {
        return Err("it has no file".to_owned());
    }
    Ok(file)
}

/// The DSN, with the fields that complete it; or keywords.
fn connection_string(dsn: &str, node: &YamlNode, keywords: &Keywords) -> String {
    if dsn.is_empty() {
        return keyword_pairs(node, keywords.database, &keywords.further).join(" ");
    }
    let further = keywords.further.iter().filter_map(|(member, keyword)| Some((*keyword, node.text_of(member)?)));
    let mut target = dsn.to_owned();
    for (name, value) in further.filter(|(name, _)| !dsn.contains(&format!("{name}="))) {
        let separator = if target.contains('?') { '&' } else { '?' };
        target.push_str(&format!("{separator}{name}={}", value.replace('%', "%25").replace('&', "%26")));
    }
    target
}

fn convert_tool(name: &str, source_name: &str, source: &Source<'_>, node: &YamlNode, draft: &mut ConfigDraft) {
    let (line, subject) = (node.line(), format!("tool {name}"));
    match name {
        "execute_sql" => {
            let advice = "the built-in sql, which only reads, is offered instead";
            draft.note_to_check(line, &subject, advice);
            if let Some(rows) = node.text_of("max_rows") {
                draft.leave_out(line, &subject, format!("max_rows; set limits.inline_rows: {rows} for all calls"));
            }
            return draft.offer_built_in(name, &["sql"]);
        }
        "search_objects" => return draft.offer_built_in(name, &["list_databases", "list_tables", "get_schema"]),
        "explain_sql" => return draft.offer_built_in(name, &["explain"]),
        "health_check" => return draft.leave_out(line, &subject, "it has no equivalent"),
        _ => {}
    }
    let new_name = draft.name_tool(name, line);
    let tool = SqlTool { name, node, database: source_name, dialect: source.dialect };
    match tool.convert(&new_name, draft) {
        Ok(mut tool) => {
            let limits = limits(node, source.node);
            if !limits.is_empty() {
                tool.insert("limits".to_owned(), Value::Object(limits));
            }
            for (key, position, _) in node.members() {
                let known = ["name", "source", "description", "statement", "parameters", "max_rows", "readonly"];
                if !known.contains(&key.as_str()) {
                    draft.leave_out(position.line, &subject, format!("{key} has no equivalent"));
                }
            }
            draft.add_tool(name, tool);
        }
        Err(reason) => draft.leave_out(line, &subject, reason),
    }
}

fn limits(tool: &YamlNode, source: &YamlNode) -> Map<String, Value> {
    let mut limits = Map::new();
    if let Some(rows) = tool.value_of("max_rows").filter(Value::is_u64) {
        limits.insert("inline_rows".to_owned(), rows);
    }
    if let Some(seconds) = source.text_of("query_timeout") {
        limits.insert("timeout".to_owned(), format!("{seconds}s").into());
    }
    limits
}
