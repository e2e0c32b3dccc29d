//! The catalog: tables and views that the account may read, their columns, keys and indexes. It is the same for all callers
//! with the same role, so it is loaded once for each role.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mysql_async::prelude::Queryable;
use mysql_async::{Column, Error as MySqlError, Params, Row, Value};
use tidegate_query::{Catalog, ColumnEntry, TableEntry, TableStatus, TableStorage};
use tidegate_sql::SqlDialect;

use crate::session::{MySqlSession, value_text};

const DIALECT: SqlDialect = SqlDialect::MySql;
/// The maximum number of tables of a catalog. For more, configure `schemas`.
const TABLES_MAX: u32 = 20_000;
/// The maximum number of columns of all tables.
const COLUMNS_MAX: u32 = 500_000;
/// The databases of the server itself.
const SYSTEM_SCHEMAS: &[&str] = &["information_schema", "mysql", "performance_schema", "sys"];

/// What the account may read.
pub(crate) struct ServerCatalog {
    pub(crate) catalog: Arc<Catalog>,
    /// By name as the catalog lists it.
    tables: BTreeMap<String, TableDetails>,
    /// The columns of MariaDB whose text is JSON: database, table, column.
    json_columns: BTreeSet<(String, String, String)>,
    /// The names of the functions of the server's databases, in lower case, and the weights of their letters. Only loaded for
    /// row policies.
    functions: BTreeSet<String>,
    default_schema: Option<String>,
}

#[derive(Default)]
pub(crate) struct TableDetails {
    pub(crate) schema: String,
    pub(crate) name: String,
    /// The name as the catalog lists it.
    pub(crate) display_name: String,
    pub(crate) is_view: bool,
    pub(crate) columns: Vec<ColumnEntry>,
    /// One for each column.
    pub(crate) rules: Vec<ColumnRule>,
    pub(crate) storage: TableStorage,
}

/// What row policies need to know of a column. Without policies, only the comment is known.
pub(crate) struct ColumnRule {
    /// What it is computed from, in SQL; empty for a stored value.
    expression: String,
    /// The positions of the columns that it is computed from.
    pub(crate) sources: Vec<usize>,
    /// Whether `*` leaves it out.
    pub(crate) is_invisible: bool,
    /// The comment without what the column refers to.
    pub(crate) comment: Option<String>,
    /// The part of that comment that the database states.
    pub(crate) facts: Option<String>,
}

impl TableDetails {
    /// The names under which a policy may refer to the table.
    pub(crate) fn policy_names(&self) -> [String; 3] {
        [self.display_name.clone(), format!("{}.{}", self.schema, self.name), self.name.clone()]
    }

    /// Sets the sources of columns that are computed from others.
    fn set_sources(&mut self) {
        if self.rules.iter().all(|rule| rule.expression.is_empty()) {
            return;
        }
        let quoted = |column: &ColumnEntry| DIALECT.quote_identifier(&column.name).to_lowercase();
        let names: Vec<String> = self.columns.iter().map(quoted).collect();
        let find = |(position, rule): (usize, &ColumnRule)| -> BTreeSet<usize> {
            let expression = rule.expression.to_lowercase();
            // The server quotes the names in it. Without any, each column may be a source.
            let is_source = |name: &str| expression.contains(name) || !expression.contains('`');
            let others = names.iter().enumerate().filter(|(other, name)| *other != position && is_source(name));
            if expression.is_empty() { BTreeSet::new() } else { others.map(|(other, _)| other).collect() }
        };
        let mut sources: Vec<BTreeSet<usize>> = self.rules.iter().enumerate().map(find).collect();
        // A column may be computed from one that is computed itself.
        loop {
            let direct = sources.clone();
            for own in &mut sources {
                let indirect: Vec<usize> = own.iter().flat_map(|source| &direct[*source]).copied().collect();
                own.extend(indirect);
            }
            if sources == direct {
                break;
            }
        }
        for (rule, sources) in self.rules.iter_mut().zip(sources) {
            rule.sources = sources.into_iter().collect();
        }
    }

    /// The name for the server.
    pub(crate) fn location(&self) -> String {
        format!("{}.{}", DIALECT.quote_identifier(&self.schema), DIALECT.quote_identifier(&self.name))
    }
}

/// A query of the catalog.
struct CatalogQuery<'a> {
    session: &'a mut MySqlSession,
    schemas: Option<&'a [String]>,
}

impl CatalogQuery<'_> {
    /// The rows of `columns` of the table `table` of the catalog, of the databases that are listed. `rest` follows the
    /// condition on the database, whose column is the first.
    async fn rows(&mut self, columns: &[&str], table: &str, rest: &str) -> Result<Vec<Row>, MySqlError> {
        let Some(schema) = columns.first() else { return Ok(Vec::new()) };
        let (condition, values): (&str, Vec<Value>) = match self.schemas {
            Some(schemas) => ("IN", schemas.iter().map(Value::from).collect()),
            None => ("NOT IN", SYSTEM_SCHEMAS.iter().map(|schema| Value::from(*schema)).collect()),
        };
        let marks = vec!["?"; values.len()].join(", ");
        let sql = format!(
            "SELECT {} FROM information_schema.{table} WHERE {schema} {condition} ({marks}) {rest}",
            columns.join(", ")
        );
        self.session.connection.exec(sql, Params::Positional(values)).await
    }

    /// The columns of all tables, in order; with what row policies need to know.
    async fn column_rows(&mut self, has_policies: bool) -> Result<Vec<Row>, MySqlError> {
        let mut columns = vec![
            "TABLE_SCHEMA",
            "TABLE_NAME",
            "COLUMN_NAME",
            "COLUMN_TYPE",
            "IS_NULLABLE",
            "COLUMN_KEY",
            "COLUMN_COMMENT",
        ];
        if has_policies {
            columns.extend(["GENERATION_EXPRESSION", "EXTRA"]);
        }
        let order = format!("ORDER BY TABLE_SCHEMA, TABLE_NAME, ORDINAL_POSITION LIMIT {COLUMNS_MAX}");
        self.rows(&columns, "COLUMNS", &order).await
    }
}

impl ServerCatalog {
    /// Loads the tables of `schemas`, or of all databases that are not of the server itself. Tables of `default_schema` have
    /// names without it.
    pub(crate) async fn load(
        session: &mut MySqlSession,
        schemas: Option<&[String]>,
        default_schema: Option<&str>,
        has_policies: bool,
    ) -> Result<Self, MySqlError> {
        let is_mariadb = session.is_mariadb;
        let mut query = CatalogQuery { session, schemas };
        let table_name = |row: &Row| {
            let (schema, table) = (text(row, 0), text(row, 1));
            let parts = [schema.as_str(), table.as_str()];
            DIALECT.table_name(if default_schema == Some(&*schema) { &parts[1..] } else { &parts[..] })
        };
        let (mut entries, mut tables) = (Vec::new(), BTreeMap::<String, TableDetails>::new());
        let columns =
            ["TABLE_SCHEMA", "TABLE_NAME", "TABLE_TYPE", "TABLE_ROWS", "DATA_LENGTH + INDEX_LENGTH", "TABLE_COMMENT"];
        let rest = format!("AND TABLE_TYPE <> 'SEQUENCE' ORDER BY 1, 2 LIMIT {TABLES_MAX}");
        for row in query.rows(&columns, "TABLES", &rest).await? {
            let name = table_name(&row);
            let details = TableDetails {
                schema: text(&row, 0),
                name: text(&row, 1),
                display_name: name.clone(),
                is_view: is_view(&row),
                storage: TableStorage { bytes: number(&row, 4), indexed_columns: Vec::new() },
                ..TableDetails::default()
            };
            tables.insert(name.clone(), details);
            entries.push(table_entry(name, &row));
        }
        let references = references(&mut query, &table_name).await?;
        let json_columns = if is_mariadb { json_columns(&mut query).await? } else { BTreeSet::new() };
        for row in query.column_rows(has_policies).await? {
            let (name, column) = (table_name(&row), text(&row, 2));
            let is_json = json_columns.contains(&(text(&row, 0), text(&row, 1), column.clone()));
            let target = references.get(&(name.clone(), column));
            if let Some(table) = tables.get_mut(&name) {
                table.columns.push(column_entry(&row, target, is_json));
                table.rules.push(column_rule(&row));
            }
        }
        tables.values_mut().for_each(TableDetails::set_sources);
        // With a privilege for the whole database, such as SHOW VIEW, the server lists tables that the account may not read.
        // It shows no columns of them. A view that is broken has none either, and a comment that says so.
        let is_broken =
            |entry: &TableEntry| entry.comment.as_ref().is_some_and(|comment| comment.starts_with("view; "));
        entries
            .retain(|entry| is_broken(entry) || tables.get(&entry.name).is_some_and(|table| !table.columns.is_empty()));
        let columns = ["TABLE_SCHEMA", "TABLE_NAME", "COLUMN_NAME"];
        for row in query.rows(&columns, "STATISTICS", "AND SEQ_IN_INDEX = 1 ORDER BY 1, 2, 3").await? {
            if let Some(table) = tables.get_mut(&table_name(&row)) {
                let (indexed, column) = (&mut table.storage.indexed_columns, text(&row, 2));
                if indexed.last() != Some(&column) {
                    indexed.push(column);
                }
            }
        }
        entries.sort_by(|one, other| one.name.cmp(&other.name));
        let catalog = Arc::new(Catalog::from_tables(entries));
        let functions = if has_policies { functions(query.session).await? } else { BTreeSet::new() };
        Ok(Self { catalog, tables, json_columns, functions, default_schema: default_schema.map(str::to_owned) })
    }

    /// The columns of `table`, whose name may begin with the database of the connection string.
    pub(crate) fn columns(&self, table: &str) -> Option<&[ColumnEntry]> {
        self.details(table).map(|details| details.columns.as_slice())
    }

    /// Whether `name`, in lower case, may be that of a function of the server's databases. The server finds them by a
    /// collation, in which a letter with an accent is equal to the letter. Its own functions have names in ASCII.
    pub(crate) fn may_be_function(&self, name: &str) -> bool {
        !name.is_ascii() || self.functions.contains(name) || self.functions.contains(&ascii_weights(name))
    }

    pub(crate) fn all_details(&self) -> impl Iterator<Item = &TableDetails> {
        self.tables.values()
    }

    /// The table that a statement names.
    pub(crate) fn find(&self, schema: Option<&str>, name: &str) -> Option<&TableDetails> {
        let default = self.default_schema.as_deref();
        let name = match schema {
            Some(schema) if default != Some(schema) => DIALECT.table_name(&[schema, name]),
            // Without a default database, the server refuses a name alone.
            None if default.is_none() => return None,
            _ => DIALECT.table_name(&[name]),
        };
        self.tables.get(&name)
    }

    /// The table with a name as the catalog lists it, or with the database of the connection string before it.
    pub(crate) fn details(&self, table: &str) -> Option<&TableDetails> {
        let plain = || {
            let parts = DIALECT.table_parts(table);
            let [schema, name] = parts.as_slice() else { return None };
            let is_default = self.default_schema.as_ref() == Some(schema);
            is_default.then(|| self.tables.get(&DIALECT.table_name(&[name.as_str()]))).flatten()
        };
        self.tables.get(table).or_else(plain)
    }

    /// Whether the text of the column of a result is JSON.
    pub(crate) fn is_json(&self, column: &Column) -> bool {
        if self.json_columns.is_empty() {
            return false;
        }
        let owned = |text: std::borrow::Cow<'_, str>| text.into_owned();
        let key = (owned(column.schema_str()), owned(column.org_table_str()), owned(column.org_name_str()));
        self.json_columns.contains(&key)
    }
}

/// The columns that refer to others: by table and column, what they refer to.
async fn references(
    query: &mut CatalogQuery<'_>,
    table_name: &(impl Fn(&Row) -> String + Sync),
) -> Result<BTreeMap<(String, String), String>, MySqlError> {
    let columns = [
        "TABLE_SCHEMA",
        "TABLE_NAME",
        "COLUMN_NAME",
        "REFERENCED_TABLE_SCHEMA",
        "REFERENCED_TABLE_NAME",
        "REFERENCED_COLUMN_NAME",
    ];
    let rows = query.rows(&columns, "KEY_COLUMN_USAGE", "AND REFERENCED_TABLE_NAME IS NOT NULL").await?;
    let entry = |row: &Row| {
        let (schema, other_schema) = (text(row, 0), text(row, 3));
        let prefix = if schema == other_schema { String::new() } else { format!("{other_schema}.") };
        ((table_name(row), text(row, 2)), format!("{prefix}{}({})", text(row, 4), text(row, 5)))
    };
    Ok(rows.iter().map(entry).collect())
}

/// The columns with a check that their text is JSON, which is all that MariaDB has of the type.
async fn json_columns(query: &mut CatalogQuery<'_>) -> Result<BTreeSet<(String, String, String)>, MySqlError> {
    let columns = ["CONSTRAINT_SCHEMA", "TABLE_NAME", "CHECK_CLAUSE"];
    let rows = query.rows(&columns, "CHECK_CONSTRAINTS", "AND CHECK_CLAUSE LIKE 'json_valid(%'").await?;
    let entry = |row: &Row| {
        let clause = text(row, 2);
        let column = clause.strip_prefix("json_valid(`")?.strip_suffix("`)")?.replace("``", "`");
        Some((text(row, 0), text(row, 1), column))
    };
    Ok(rows.iter().filter_map(entry).collect())
}

/// The names of the functions that the account may call, in lower case, and their weights.
async fn functions(session: &mut MySqlSession) -> Result<BTreeSet<String>, MySqlError> {
    let sql = "SELECT ROUTINE_NAME, HEX(WEIGHT_STRING(CONVERT(ROUTINE_NAME USING utf8mb4) COLLATE utf8mb4_general_ci)) \
               FROM information_schema.ROUTINES WHERE ROUTINE_TYPE = 'FUNCTION'";
    let rows: Vec<Row> = session.connection.query(sql).await?;
    Ok(rows.iter().flat_map(|row| [text(row, 0).to_lowercase(), text(row, 1)]).collect())
}

/// The weights of `name`, which is ASCII, as the server has them in hexadecimal digits.
fn ascii_weights(name: &str) -> String {
    name.bytes().map(|byte| format!("{:04X}", byte.to_ascii_uppercase())).collect()
}

fn is_view(row: &Row) -> bool {
    text(row, 2).ends_with("VIEW")
}

fn table_entry(name: String, row: &Row) -> TableEntry {
    let is_view = is_view(row);
    let kind = is_view.then(|| "view".to_owned());
    // In place of a comment, a view has its kind, or why it cannot be read.
    let comment = Some(text(row, 5)).filter(|comment| !comment.is_empty() && !comment.eq_ignore_ascii_case("view"));
    TableEntry {
        name,
        rows: number(row, 3).filter(|_| !is_view),
        comment: join_comments([kind.clone(), comment]),
        facts: kind,
        status: TableStatus::Readable,
    }
}

fn column_entry(row: &Row, reference: Option<&String>, is_json: bool) -> ColumnEntry {
    let (comment, facts) = column_comment(row, reference);
    ColumnEntry {
        name: text(row, 2),
        type_name: if is_json { "json".to_owned() } else { text(row, 3) },
        nullable: text(row, 4) == "YES",
        comment,
        facts,
        is_masked: Some(false),
    }
}

fn column_rule(row: &Row) -> ColumnRule {
    let (comment, facts) = column_comment(row, None);
    ColumnRule {
        expression: text(row, 7),
        sources: Vec::new(),
        is_invisible: text(row, 8).to_ascii_uppercase().contains("INVISIBLE"),
        comment,
        facts,
    }
}

/// The comment of a column, and the part of it that the database states.
fn column_comment(row: &Row, reference: Option<&String>) -> (Option<String>, Option<String>) {
    let key = match text(row, 5).as_str() {
        "PRI" => Some("primary key".to_owned()),
        "UNI" => Some("unique".to_owned()),
        _ => None,
    };
    let reference = reference.map(|target| format!("references {target}"));
    let comment = Some(text(row, 6)).filter(|comment| !comment.is_empty());
    let facts = join_comments([key, reference]);
    (join_comments([facts.clone(), comment]), facts)
}

fn join_comments<const N: usize>(parts: [Option<String>; N]) -> Option<String> {
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// The text of a value, empty for NULL.
fn text(row: &Row, index: usize) -> String {
    value_text(row, index).unwrap_or_default()
}

fn number(row: &Row, index: usize) -> Option<u64> {
    value_text(row, index)?.parse().ok()
}
