//! The catalog: tables, views and other relations that the role of the caller may read.

use tidegate_core::{Error, ErrorKind, nearest_names};
use tidegate_query::{Catalog, ColumnEntry, TableEntry, TableStatus, TableStorage};
use tidegate_sql::{SqlDialect, Statement};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Row};

use crate::options::PostgresOptions;

const DIALECT: SqlDialect = SqlDialect::Postgres;
/// The maximum number of tables of a catalog. For more, configure `schemas`.
const TABLES_MAX: i64 = 20_000;
/// The maximum number of columns of a table that are read; the server allows 1,600.
const COLUMNS_MAX: i64 = 2_000;
const CHOICES_MAX: usize = 20;
const COLUMN_CHOICES_MAX: usize = 60;

/// Relations that the role may read; those of the search path come first. Partitions are represented by their parent,
/// and objects of extensions are excluded. Where row-level security applies to the role, the number of rows is unknown:
/// the server's estimate counts the rows of all tenants.
const TABLES_SQL: &str = "
SELECT n.nspname::text, c.relname::text, pg_catalog.pg_table_is_visible(c.oid), c.relkind::text,
       CASE WHEN pg_catalog.row_security_active(c.oid) THEN -1 ELSE c.reltuples END::float8,
       pg_catalog.obj_description(c.oid, 'pg_class'),
       (SELECT pg_catalog.count(*) FROM pg_catalog.pg_inherits i WHERE c.relkind = 'p' AND i.inhparent = c.oid)
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition
  AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%'
  AND ($1::text[] IS NULL OR n.nspname = ANY ($1))
  AND pg_catalog.has_schema_privilege(n.oid, 'USAGE') AND pg_catalog.has_any_column_privilege(c.oid, 'SELECT')
  AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_depend d
                  WHERE d.classid = 'pg_catalog.pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
ORDER BY 1, 2 LIMIT $2";

/// The columns that the role may read, of the relation with that name in the given schema or on the search path.
const COLUMNS_SQL: &str = "
WITH relation AS (
  SELECT c.oid FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND c.relname = $2
    AND CASE WHEN $1::text IS NULL THEN pg_catalog.pg_table_is_visible(c.oid) ELSE n.nspname = $1 END
    AND ($3::text[] IS NULL OR n.nspname = ANY ($3))
    AND pg_catalog.has_schema_privilege(n.oid, 'USAGE') AND pg_catalog.has_any_column_privilege(c.oid, 'SELECT')
  LIMIT 1)
SELECT a.attname::text, pg_catalog.format_type(a.atttypid, a.atttypmod), NOT a.attnotnull,
       pg_catalog.col_description(a.attrelid, a.attnum),
       EXISTS (SELECT 1 FROM pg_catalog.pg_constraint k
               WHERE k.conrelid = a.attrelid AND k.contype = 'p' AND a.attnum = ANY (k.conkey)),
       EXISTS (SELECT 1 FROM pg_catalog.pg_constraint k
               WHERE k.conrelid = a.attrelid AND k.contype = 'u' AND k.conkey = ARRAY[a.attnum]),
       (SELECT k.confrelid::regclass::text || '(' || f.attname || ')' FROM pg_catalog.pg_constraint k
        JOIN LATERAL pg_catalog.generate_subscripts(k.conkey, 1) AS ordinal ON k.conkey[ordinal] = a.attnum
        JOIN pg_catalog.pg_attribute f ON f.attrelid = k.confrelid AND f.attnum = k.confkey[ordinal]
        WHERE k.conrelid = a.attrelid AND k.contype = 'f' ORDER BY k.conname LIMIT 1),
       (SELECT pg_catalog.string_agg(e.enumlabel, ', ' ORDER BY e.enumsortorder)
        FROM (SELECT enumlabel, enumsortorder FROM pg_catalog.pg_enum WHERE enumtypid = a.atttypid
              ORDER BY enumsortorder LIMIT 20) e)
FROM relation JOIN pg_catalog.pg_attribute a ON a.attrelid = relation.oid
WHERE a.attnum > 0 AND NOT a.attisdropped AND pg_catalog.has_column_privilege(relation.oid, a.attnum, 'SELECT')
ORDER BY a.attnum LIMIT $4";

/// A statement over `relation`, which is the relation that callers may read, and `part`, its partitions and itself.
macro_rules! over_parts {
    ($query:literal) => {
        concat!(
            "WITH relation AS (
  SELECT c.oid FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  WHERE c.relkind IN ('r', 'p', 'm') AND c.relname = $2
    AND CASE WHEN $1::text IS NULL THEN pg_catalog.pg_table_is_visible(c.oid) ELSE n.nspname = $1 END
    AND ($3::text[] IS NULL OR n.nspname = ANY ($3))
    AND pg_catalog.has_schema_privilege(n.oid, 'USAGE') AND pg_catalog.has_any_column_privilege(c.oid, 'SELECT')
  LIMIT 1),
part AS (
  SELECT oid FROM relation UNION SELECT t.relid FROM relation, pg_catalog.pg_partition_tree(relation.oid) AS t)
",
            $query
        )
    };
}

/// What the server counted of the writes to a relation and its partitions, which commits report within a second or at the
/// end of a busy session; null where row-level security applies, and for views.
const WRITTEN_ROWS_SQL: &str = over_parts!(
    "SELECT (pg_catalog.sum(pg_catalog.pg_stat_get_tuples_inserted(p.oid) + pg_catalog.pg_stat_get_tuples_updated(p.oid)
          + pg_catalog.pg_stat_get_tuples_deleted(p.oid))
        || ' ' || pg_catalog.sum(pg_catalog.pg_relation_filenode(p.oid)::bigint))::text
FROM part p WHERE NOT EXISTS (SELECT FROM relation WHERE pg_catalog.row_security_active(relation.oid))"
);

/// The size of a relation with its partitions, indexes and large values, and the first column of each of its indexes
/// that the role may read. The size is null where row-level security applies: it depends on the rows of all tenants.
const STORAGE_SQL: &str = over_parts!(
    "SELECT CASE WHEN NOT pg_catalog.row_security_active(relation.oid)
            THEN (SELECT pg_catalog.sum(pg_catalog.pg_total_relation_size(p.oid)) FROM part p)::bigint END,
       ARRAY(SELECT DISTINCT a.attname::text FROM pg_catalog.pg_index i
             JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
             WHERE i.indrelid = relation.oid AND i.indisvalid AND i.indpred IS NULL
               AND pg_catalog.has_column_privilege(relation.oid, a.attnum, 'SELECT')
             ORDER BY 1)
FROM relation"
);

/// How `table` is stored, as far as the current role may know. Views have no storage.
pub(crate) async fn table_storage(
    client: &Client,
    table: &str,
    options: &PostgresOptions,
) -> Result<TableStorage, tokio_postgres::Error> {
    let parts = DIALECT.table_parts(table);
    let (schema, name) = schema_and_name(&parts);
    let Some(row) = client.query_opt(STORAGE_SQL, &[&schema, &name, &options.schemas]).await? else {
        return Ok(TableStorage::default());
    };
    let bytes = row.try_get::<_, Option<i64>>(0)?.and_then(|bytes| u64::try_from(bytes).ok());
    Ok(TableStorage { bytes, indexed_columns: row.try_get(1)? })
}

/// A tag that changes when rows of `table` are written, if the current role may know.
pub(crate) async fn written_rows(
    client: &Client,
    table: &str,
    options: &PostgresOptions,
) -> Result<Option<String>, tokio_postgres::Error> {
    let parts = DIALECT.table_parts(table);
    let (schema, name) = schema_and_name(&parts);
    client.query_one(WRITTEN_ROWS_SQL, &[&schema, &name, &options.schemas]).await?.try_get(0)
}

/// The tables that the current role may read.
pub(crate) async fn list_tables(client: &Client, options: &PostgresOptions) -> Result<Catalog, tokio_postgres::Error> {
    let rows = client.query(TABLES_SQL, &[&options.schemas, &TABLES_MAX]).await?;
    let mut tables = rows.iter().map(entry_from_row).collect::<Result<Vec<_>, _>>()?;
    tables.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(Catalog::from_tables(tables))
}

fn entry_from_row(row: &Row) -> Result<TableEntry, tokio_postgres::Error> {
    let (schema, table, is_visible): (String, String, bool) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
    let (kind, estimate): (String, f64) = (row.try_get(3)?, row.try_get(4)?);
    let (comment, partitions): (Option<String>, i64) = (row.try_get(5)?, row.try_get(6)?);
    let kind = match kind.as_str() {
        "v" => Some("view".to_owned()),
        "m" => Some("materialized view".to_owned()),
        "f" => Some("foreign table".to_owned()),
        "p" => Some(format!("{partitions} partitions")),
        _ => None,
    };
    Ok(TableEntry {
        name: if is_visible { DIALECT.table_name(&[&table]) } else { DIALECT.table_name(&[&schema, &table]) },
        // The estimate is -1 for a table that was never analyzed, and meaningless for a view.
        rows: (estimate >= 0.0 && kind.as_deref() != Some("view")).then_some(estimate as u64),
        comment: join_comments([kind.clone(), comment]),
        facts: kind,
        status: TableStatus::Readable,
    })
}

/// The columns of `table` that the current role may read; none if there is no such table.
pub(crate) async fn list_columns(
    client: &Client,
    table: &str,
    options: &PostgresOptions,
) -> Result<Vec<ColumnEntry>, tokio_postgres::Error> {
    let parts = DIALECT.table_parts(table);
    let (schema, name) = schema_and_name(&parts);
    let rows = client.query(COLUMNS_SQL, &[&schema, &name, &options.schemas, &COLUMNS_MAX]).await?;
    rows.iter().map(column_from_row).collect()
}

/// The schema, if there is one, and the name of a table with these parts.
pub(crate) fn schema_and_name(parts: &[String]) -> (Option<&String>, &str) {
    match parts {
        [schema, name] => (Some(schema), name.as_str()),
        [name] => (None, name.as_str()),
        // No name has more parts, and an empty name does not exist.
        _ => (None, ""),
    }
}

pub(crate) fn unknown_table_error(table: &str, catalog: &Catalog) -> Error {
    let error = Error::new(ErrorKind::NotFound, format!("there is no table {table:?}"));
    error.with_choices(catalog.nearest_tables(table))
}

fn column_from_row(row: &Row) -> Result<ColumnEntry, tokio_postgres::Error> {
    let (is_primary, is_unique): (bool, bool) = (row.try_get(4)?, row.try_get(5)?);
    let (references, labels): (Option<String>, Option<String>) = (row.try_get(6)?, row.try_get(7)?);
    let key = if is_primary { Some("primary key") } else { is_unique.then_some("unique") }.map(str::to_owned);
    let references = references.map(|target| format!("references {target}"));
    let labels = labels.map(|labels| format!("one of {labels}"));
    let facts = join_comments([key, references, labels]);
    Ok(ColumnEntry {
        name: row.try_get(0)?,
        type_name: row.try_get(1)?,
        nullable: row.try_get(2)?,
        comment: join_comments([facts.clone(), row.try_get(3)?]),
        facts,
        // The server masks nothing here: it returns what the login may read.
        is_masked: Some(false),
    })
}

fn join_comments<const N: usize>(parts: [Option<String>; N]) -> Option<String> {
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// The names that the statement `refused` could have used instead of an unknown table or column: similar tables, or all
/// columns of its tables, similar ones first.
pub(crate) async fn suggest_names(
    client: &Client,
    refusal: &tokio_postgres::Error,
    refused: &Statement,
    options: &PostgresOptions,
) -> Option<Vec<String>> {
    let error = refusal.as_db_error()?;
    // Only the message contains the name: relation "order" does not exist, column o.totl does not exist.
    let quoted = error.message().split('"').nth(1);
    if *error.code() == SqlState::UNDEFINED_TABLE {
        return Some(list_tables(client, options).await.ok()?.nearest_tables(quoted?));
    }
    let unquoted = error.message().split(' ').nth(1)?;
    let name = quoted.unwrap_or(unquoted.rsplit('.').next()?);
    let mut names = Vec::new();
    for table in refused.tables().iter().take(CHOICES_MAX) {
        names.extend(list_columns(client, table, options).await.ok()?.into_iter().map(|column| column.name));
    }
    let mut choices = nearest_names(name, names.iter().map(String::as_str));
    for name in names {
        if choices.len() < COLUMN_CHOICES_MAX && !choices.contains(&name) {
            choices.push(name);
        }
    }
    Some(choices)
}
