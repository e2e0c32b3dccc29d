//! The visibility of one table, the views that implement it, and the filter of a row policy as SQL.

use rusqlite::Connection;
use tidegate_core::{Error, ErrorKind};
use tidegate_query::{Mask, RowFilter, RowValue, TableView, UNFIT_POLICY_HINT};
use tidegate_sql::Comparator;

use super::PolicyCaller;
use crate::tables::{
    DatabaseFiles, SqliteTable, TableColumn, TableKind, policy_columns, quote_identifier, read_definition,
};

pub(crate) const MASK_PREFIX: &str = "tidegate_mask_";

pub(crate) enum TableVisibility {
    Filtered(FilteredTable),
    /// Not visible.
    Denied(Error),
}

impl TableVisibility {
    pub(super) fn security_barriers(&self) -> Vec<String> {
        match self {
            Self::Filtered(filtered) => {
                let mergeable = filtered.mergeable_view.iter().map(|view| &view.name);
                mergeable.chain([&filtered.security_barrier]).cloned().collect()
            }
            Self::Denied(_) => Vec::new(),
        }
    }
}

pub(crate) struct FilteredTable {
    pub(crate) view_name: String,
    pub(crate) masks: Vec<(String, Option<Mask>)>,
    security_barrier: String,
    /// Views by their names, in the order of creation.
    pub(super) views: Vec<ViewDefinition>,
    /// The mergeable view, which SQLite may merge with a statement. Only tables have one.
    pub(super) mergeable_view: Option<ViewDefinition>,
}

#[derive(Clone)]
pub(crate) struct ViewDefinition {
    pub(crate) name: String,
    pub(super) sql: String,
}

impl ViewDefinition {
    fn new(name: &str, definition: &str) -> Self {
        Self { name: name.to_owned(), sql: format!("CREATE TEMP VIEW {}{definition}", quote_identifier(name)) }
    }
}

/// An empty table for which SQLite estimates a million rows. Its join with itself exceeds the maximum of four billion
/// rows that SQLite counts. Added to the rows of a table, it makes the estimate of a view, and so the plan, independent
/// of the content of the table. Its column has a name that no other table uses, since an equal name would be ambiguous.
fn empty_rows_cte(token: &str) -> String {
    format!("WITH RECURSIVE none(\"{token}\") AS (SELECT 1 WHERE 0 UNION ALL SELECT \"{token}\" FROM none)")
}

/// One table, and the source columns of each of its columns.
pub(super) struct TableShape {
    pub(super) table: SqliteTable,
    pub(super) columns: Vec<TableColumn>,
    pub(super) sources: Vec<Vec<usize>>,
}

/// The names under which policies may refer to `table`; the first is the name for callers.
pub(crate) fn policy_names(files: &DatabaseFiles, table: &SqliteTable) -> [String; 3] {
    [files.display_name(&table.schema, &table.name), format!("{}.{}", table.schema, table.name), table.name.clone()]
}

/// The visibility of the table of `shape` for a caller; `None` if all of it is visible.
pub(super) fn determine_visibility(
    policy_caller: &PolicyCaller,
    files: &DatabaseFiles,
    shape: &TableShape,
    is_unique: bool,
    token: &str,
) -> Option<TableVisibility> {
    let TableShape { table, columns, sources } = shape;
    let names = policy_names(files, table);
    let names = names.each_ref().map(String::as_str);
    let view = match policy_caller.policies.view(&names, &policy_columns(columns, sources), &policy_caller.principal) {
        Ok(None) => return None,
        Ok(Some(view)) => view,
        Err(error) => return Some(TableVisibility::Denied(error)),
    };
    let filtered = build_filtered_table(table, columns, &view, files, is_unique, token);
    Some(filtered.map_or_else(TableVisibility::Denied, TableVisibility::Filtered))
}

fn build_filtered_table(
    table: &SqliteTable,
    columns: &[TableColumn],
    view: &TableView,
    files: &DatabaseFiles,
    is_unique: bool,
    token: &str,
) -> Result<FilteredTable, Error> {
    let display = files.display_name(&table.schema, &table.name);
    let mismatch = |reason: String| {
        let message = format!("the table {display:?} cannot be read: its row policy does not fit it");
        let error = Error::new(ErrorKind::Forbidden, message).with_detail(reason);
        error.with_hint(UNFIT_POLICY_HINT).mark_configuration_fault()
    };
    let names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
    let rows = filter_to_sql(&view.rows, &names).map_err(mismatch)?;
    let mut visible = Vec::new();
    for position in view.visible_columns() {
        let name = quote_identifier(&names[position]);
        visible.push(match view.masks[position] {
            None => name.clone(),
            Some(mask) => match mask_code(mask) {
                None => format!("NULL AS {name}"),
                Some((code, length)) => {
                    // The cast gives the result text affinity in comparisons.
                    format!("CAST({MASK_PREFIX}{token}(CAST({name} AS TEXT), {code}, {length}) AS TEXT) AS {name}")
                }
            },
        });
    }
    if visible.is_empty() {
        return Err(mismatch("no column of it is visible".to_owned()));
    }
    let visible = visible.join(", ");
    let view_name = if is_unique { table.name.clone() } else { format!("{}.{}", table.schema, table.name) };
    let (security_barrier, mergeable) = (format!("{display}#{token}"), format!("{display}##{token}"));
    // A view of the owner is replaced by a copy that reads the policy views of its tables.
    let source = match table.kind == TableKind::View && files.is_single() {
        true => format!("temp.{}", quote_identifier(&format!("{}#{token}#", table.name))),
        false => format!("{}.{}", quote_identifier(&table.schema), quote_identifier(&table.name)),
    };
    let barrier_sql = format!(
        "{none} SELECT {visible} FROM none AS a CROSS JOIN none AS b CROSS JOIN {source} \
         UNION ALL SELECT {visible} FROM {source} WHERE {rows} LIMIT -1 OFFSET 0",
        none = empty_rows_cte(token)
    );
    let view_sql = format!("SELECT * FROM temp.{}", quote_identifier(&security_barrier));
    let mergeable_sql = format!("SELECT {visible} FROM {source} WHERE {rows}");
    Ok(FilteredTable {
        masks: names.into_iter().zip(view.masks.iter().copied()).collect(),
        views: vec![
            ViewDefinition::new(&security_barrier, &format!(" AS {barrier_sql}")),
            ViewDefinition::new(&view_name, &format!(" AS {view_sql}")),
        ],
        mergeable_view: (table.kind == TableKind::Table)
            .then(|| ViewDefinition::new(&mergeable, &format!(" AS {mergeable_sql}"))),
        view_name,
        security_barrier,
    })
}

/// The code and the length of a mask of text; `None` for a mask that hides the value.
fn mask_code(mask: Mask) -> Option<(u8, u32)> {
    match mask {
        Mask::KeepFirst(length) => Some((1, length)),
        Mask::KeepLast(length) => Some((2, length)),
        Mask::Hash => Some((3, 0)),
        Mask::Deny | Mask::Null => None,
    }
}

/// A copy of the owner's view in `temp`; `None` if its definition does not have SQLite's usual form.
pub(super) fn recreate_owner_view(connection: &Connection, table: &SqliteTable, name: &str) -> Option<ViewDefinition> {
    let sql = read_definition(connection, table).ok()?;
    Some(ViewDefinition::new(name, skip_name(sql.strip_prefix("CREATE VIEW ")?.trim_start())?))
}

/// The part of `sql` after the name that it begins with.
fn skip_name(sql: &str) -> Option<&str> {
    let first = sql.chars().next()?;
    let end = match first {
        '"' | '`' | '\'' | '[' => {
            let close = if first == '[' { ']' } else { first };
            let mut at = 1;
            loop {
                at += sql[at..].find(close)? + 1;
                // A doubled quote is part of the name.
                match first != '[' && sql[at..].starts_with(close) {
                    true => at += 1,
                    false => break at,
                }
            }
        }
        _ => sql.find(|character: char| character.is_whitespace() || character == '(')?,
    };
    Some(&sql[end..])
}

/// The error for a virtual table without a policy: it is unknown which tables its module reads.
pub(super) fn virtual_table_error(files: &DatabaseFiles, table: &SqliteTable) -> Error {
    let name = files.display_name(&table.schema, &table.name);
    let message = format!("the table {name:?} cannot be read: no row policy covers this virtual table");
    Error::new(ErrorKind::Forbidden, message)
        .with_hint("Where row policies apply, a virtual table needs a policy of its own.")
        .mark_configuration_fault()
}

/// The caller does not receive the `reason`, which may contain hidden names.
pub(crate) fn unreadable_under_policy_error(files: &DatabaseFiles, table: &SqliteTable, reason: &str) -> Error {
    let name = files.display_name(&table.schema, &table.name);
    Error::new(ErrorKind::Forbidden, format!("the table {name:?} cannot be read where row policies apply"))
        .with_detail(format!("reading {name:?} through row policies: {reason}"))
        .mark_configuration_fault()
}

pub(super) fn shadow_table_error(name: &str) -> Error {
    let message =
        format!("the table {name:?} is the internal storage of a virtual table and cannot be queried directly");
    Error::new(ErrorKind::Forbidden, message).mark_configuration_fault()
}

/// The maximum length of a pattern that SQLite matches, in bytes. Longer ones fail.
const PATTERN_BYTES_MAX: usize = 100;

/// Converts `filter` over `columns` to SQL. The error says why SQLite cannot evaluate it.
fn filter_to_sql(filter: &RowFilter, columns: &[String]) -> Result<String, String> {
    let name = |column: usize| {
        columns
            .get(column)
            .map(|name| quote_identifier(name))
            .ok_or_else(|| "it uses a column that does not exist".to_owned())
    };
    Ok(match filter {
        RowFilter::All(filters) => join_filters(filters, " AND ", "1", columns)?,
        RowFilter::Any(filters) => join_filters(filters, " OR ", "0", columns)?,
        RowFilter::Not(filter) => format!("(NOT {})", filter_to_sql(filter, columns)?),
        RowFilter::Constant(value) => u8::from(*value).to_string(),
        RowFilter::IsNull { column, is_negated } => {
            format!("({} IS {}NULL)", name(*column)?, not_keyword(*is_negated))
        }
        RowFilter::IsTrue(column) => format!("({} AND 1)", name(*column)?),
        RowFilter::Compare { column, comparator, value } => {
            let prefix = affinity_prefix(std::slice::from_ref(value));
            format!("({prefix}{} COLLATE BINARY {} {})", name(*column)?, operator_sql(*comparator), literal(value))
        }
        RowFilter::CompareColumns { left, comparator, right } => {
            format!("({} COLLATE BINARY {} {})", name(*left)?, operator_sql(*comparator), name(*right)?)
        }
        RowFilter::In { column, values, is_negated } => {
            let list: Vec<String> = values.iter().map(literal).collect();
            let (prefix, list) = (affinity_prefix(values), list.join(", "));
            format!("({prefix}{} COLLATE BINARY {}IN ({list}))", name(*column)?, not_keyword(*is_negated))
        }
        RowFilter::Like { column, pattern, is_negated } => {
            let pattern = like_to_glob(pattern);
            if pattern.len() > PATTERN_BYTES_MAX {
                return Err(format!("a pattern has more than {PATTERN_BYTES_MAX} bytes"));
            }
            format!("({} {}GLOB {})", name(*column)?, not_keyword(*is_negated), text_literal(&pattern))
        }
    })
}

fn join_filters(filters: &[RowFilter], separator: &str, empty: &str, columns: &[String]) -> Result<String, String> {
    let parts = filters.iter().map(|filter| filter_to_sql(filter, columns)).collect::<Result<Vec<_>, _>>()?;
    Ok(if parts.is_empty() { empty.to_owned() } else { format!("({})", parts.join(separator)) })
}

fn not_keyword(is_negated: bool) -> &'static str {
    if is_negated { "NOT " } else { "" }
}

fn operator_sql(comparator: Comparator) -> &'static str {
    match comparator {
        Comparator::Equal => "=",
        Comparator::NotEqual => "<>",
        Comparator::Less => "<",
        Comparator::LessOrEqual => "<=",
        Comparator::Greater => ">",
        Comparator::GreaterOrEqual => ">=",
    }
}

/// Prevents numeric affinity, so that `007` is not 7. Other texts can still use an index on the column.
fn affinity_prefix(values: &[RowValue]) -> &'static str {
    let is_like_a_number =
        |value: &RowValue| matches!(value, RowValue::Text(text) if text.trim().parse::<f64>().is_ok());
    if values.iter().any(is_like_a_number) { "+" } else { "" }
}

fn literal(value: &RowValue) -> String {
    match value {
        RowValue::Boolean(value) => u8::from(*value).to_string(),
        RowValue::Integer(value) => value.to_string(),
        // With a point or an exponent, so that SQLite does not read an integer.
        RowValue::Number(value) => format!("{value:?}"),
        RowValue::Text(value) => text_literal(value),
        RowValue::Date(value) => text_literal(&value.to_string()),
        RowValue::Timestamp(value) => text_literal(&value.to_string()),
    }
}

fn text_literal(value: &str) -> String {
    if !value.contains('\0') {
        return format!("'{}'", value.replace('\'', "''"));
    }
    format!("CAST(x'{}' AS TEXT)", hex::encode(value))
}

/// Converts a LIKE pattern to GLOB, which is case-sensitive.
fn like_to_glob(pattern: &str) -> String {
    let mut glob = String::with_capacity(pattern.len());
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        let (character, is_escaped) = match character {
            '\\' => (characters.next().unwrap_or('\\'), true),
            character => (character, false),
        };
        match (character, is_escaped) {
            ('%', false) => glob.push('*'),
            ('_', false) => glob.push('?'),
            ('*' | '?' | '[', _) => glob.extend(['[', character, ']']),
            (character, _) => glob.push(character),
        }
    }
    glob
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn like_patterns_become_equal_globs() {
        assert_eq!(like_to_glob(r"a%b_c\%d\_e*?[x]\\"), r"a*b?c%d_e[*][?][[]x]\");
        assert_eq!(text_literal("it's"), "'it''s'");
        assert_eq!(text_literal("a\0b"), "CAST(x'610062' AS TEXT)");
        assert_eq!(affinity_prefix(&[RowValue::Text(" 007 ".to_owned())]), "+");
        assert_eq!(affinity_prefix(&[RowValue::Text("2024-01-01".to_owned())]), "");
    }
}
