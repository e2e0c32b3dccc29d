//! Row policies: the SQL of a restricted caller reads a query in place of each table.
//!
//! The query has the visible rows and columns of its table, and a LIMIT that removes no row. With that, the server computes it
//! on its own: it neither merges it with the statement of the caller nor moves conditions into it, so that nothing that a
//! caller writes is evaluated for a hidden row. A point query needs no LIMIT, because it only compares columns with constants
//! there; then the server can use an index.
//!
//! Views and functions of the server read their tables with the rights of those who defined them, and without policies.
//! Therefore a view needs a policy of its own, and functions are refused.

use std::sync::Arc;

use tidegate_core::{Error, ErrorKind, Principal};
use tidegate_query::{
    Catalog, ColumnEntry, Mask, PolicyColumn, PolicyProblem, PolicyTable, RowFilter, RowPolicies, RowValue,
    TableStatus, TableStorage, TableView, UNFIT_POLICY_HINT, ValueKind,
};
use tidegate_sql::{Comparator, SqlDialect, Statement};

use crate::catalog::{ServerCatalog, TableDetails};
use crate::session::byte_literal;

const DIALECT: SqlDialect = SqlDialect::MySql;
/// The maximum number of rows, which is no limit.
const BARRIER: &str = " LIMIT 18446744073709551615";

/// A caller whom a row policy restricts.
pub(crate) struct RestrictedCaller {
    policies: RowPolicies,
    principal: Principal,
}

impl RestrictedCaller {
    /// The restrictions of `principal`; `None` if no policy applies to it.
    pub(crate) fn new(policies: &RowPolicies, principal: &Principal) -> Option<Self> {
        let is_restricted = policies.fingerprint(principal) != 0;
        is_restricted.then(|| Self { policies: policies.clone(), principal: principal.clone() })
    }

    /// What is visible of `table`; `None` if it is all.
    fn view(&self, table: &TableDetails) -> Result<Option<TableView>, Error> {
        let names = table.policy_names();
        let names = names.each_ref().map(String::as_str);
        if table.is_view && !self.policies.covers(&names) {
            let message = format!("the view {:?} cannot be read: no row policy covers it", table.display_name);
            return Err(Error::new(ErrorKind::Forbidden, message)
                .with_hint(
                    "Where row policies apply, a view needs a policy of its own: it reads its tables without theirs.",
                )
                .mark_configuration_fault());
        }
        let view = self.policies.view(&names, &policy_columns(table), &self.principal)?;
        if view.as_ref().is_some_and(|view| view.masks.contains(&Some(Mask::Hash))) {
            return Err(unfit_error(table, HASH_REASON));
        }
        Ok(view)
    }

    /// The columns of `table` as the caller sees them.
    pub(crate) fn visible_columns(&self, table: &TableDetails) -> Result<Vec<ColumnEntry>, Error> {
        let Some(view) = self.view(table)? else { return Ok(table.columns.clone()) };
        let visible = view.visible_columns().filter_map(|position| {
            let mut column = table.columns.get(position)?.clone();
            // What it refers to may be hidden.
            let rule = table.rules.get(position)?;
            (column.comment, column.facts) = (rule.comment.clone(), rule.facts.clone());
            let mask = view.masks.get(position)?;
            column.is_masked = Some(mask.is_some());
            match mask {
                Some(Mask::Null) => column.nullable = true,
                Some(mask) if mask.makes_text() => "text".clone_into(&mut column.type_name),
                _ => {}
            }
            Some(column)
        });
        Ok(visible.collect())
    }

    /// How `table` is stored, without what depends on hidden rows and columns.
    pub(crate) fn visible_storage(&self, table: &TableDetails) -> Result<TableStorage, Error> {
        let Some(view) = self.view(table)? else { return Ok(table.storage.clone()) };
        let indexed = table.storage.indexed_columns.iter().filter(|name| is_unmasked(&view, table, name));
        Ok(TableStorage { bytes: None, indexed_columns: indexed.cloned().collect() })
    }

    /// The tables of `catalog` as the caller sees them.
    pub(crate) fn visible_tables(&self, catalog: &ServerCatalog) -> Catalog {
        let mut visible = (*catalog.catalog).clone();
        for entry in &mut visible.tables {
            let Some(table) = catalog.details(&entry.name) else { continue };
            match self.view(table) {
                Ok(None) => continue,
                Ok(Some(_)) => {}
                Err(error) => entry.status = TableStatus::Unreadable(error.message().to_owned()),
            }
            // It counts hidden rows too.
            entry.rows = None;
        }
        visible
    }
}

const HASH_REASON: &str = "the mask hash is not for MySQL, because the server would need its key; use null, deny, keep_first \
                           or keep_last";

fn unfit_error(table: &TableDetails, reason: &str) -> Error {
    let message = format!("the table {:?} cannot be read: its row policy does not fit it", table.display_name);
    Error::new(ErrorKind::Forbidden, message)
        .with_detail(format!("the row policy of the table {:?} does not fit it: {reason}", table.display_name))
        .with_hint(UNFIT_POLICY_HINT)
        .mark_configuration_fault()
}

fn policy_columns(table: &TableDetails) -> Vec<PolicyColumn<'_>> {
    let columns = table.columns.iter().zip(&table.rules);
    columns
        .map(|(column, rule)| PolicyColumn {
            name: &column.name,
            kind: value_kind(&column.type_name),
            reveals: &rule.sources,
        })
        .collect()
}

/// The kind of the values of a type, as the catalog names it: `decimal(10,2) unsigned`.
fn value_kind(type_name: &str) -> ValueKind {
    let name = type_name.split(['(', ' ']).next().unwrap_or_default().to_ascii_lowercase();
    match name.as_str() {
        "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "year" => ValueKind::Integer,
        "decimal" | "float" | "double" => ValueKind::Number,
        "char" | "varchar" | "tinytext" | "text" | "mediumtext" | "longtext" | "enum" | "set" => ValueKind::Text,
        "date" => ValueKind::Date,
        "datetime" | "timestamp" => ValueKind::Timestamp,
        _ => ValueKind::Other,
    }
}

/// The policies that do not fit the tables of `catalog`.
pub(crate) fn find_problems(policies: &RowPolicies, catalog: &ServerCatalog) -> Vec<PolicyProblem> {
    let tables: Vec<([String; 3], Vec<PolicyColumn<'_>>)> =
        catalog.all_details().map(|table| (table.policy_names(), policy_columns(table))).collect();
    let names: Vec<[&str; 3]> = tables.iter().map(|(names, _)| names.each_ref().map(String::as_str)).collect();
    let tables: Vec<PolicyTable<'_>> = tables
        .iter()
        .zip(&names)
        .map(|((_, columns), names)| PolicyTable { names, columns: Some(columns.as_slice()) })
        .collect();
    policies.find_problems(&tables)
}

/// A statement of a restricted caller.
pub(crate) struct RestrictedStatement {
    caller: RestrictedCaller,
    catalog: Arc<ServerCatalog>,
    /// Parsed, also if it is the owner's.
    parsed: Statement,
}

impl RestrictedStatement {
    /// Prepares `statement` for its tables to be replaced.
    pub(crate) fn new(
        statement: &Statement,
        caller: RestrictedCaller,
        catalog: Arc<ServerCatalog>,
    ) -> Result<Self, Error> {
        let parsed = match statement.ast() {
            Some(_) => statement.clone(),
            None => Statement::parse(statement.text(), DIALECT).map_err(|error| {
                Error::new(ErrorKind::Forbidden, "the SQL of this entry cannot be run where row policies apply")
                    .with_detail(format!("its tables cannot be replaced: {error}"))
                    .mark_configuration_fault()
            })?,
        };
        if let Some(name) = parsed.functions().iter().find(|name| catalog.may_be_function(name)) {
            let message = format!("the function {name} of the database is refused: it may read hidden rows");
            return Err(Error::new(ErrorKind::Forbidden, message).with_hint("Leave it out."));
        }
        Ok(Self { caller, catalog, parsed })
    }

    /// The text that runs, and the number of the value of each of its placeholders.
    pub(crate) fn text(&self) -> Result<(String, Vec<usize>), Error> {
        let compared = self.parsed.point_query().map(|query| query.filter_columns);
        self.text_over(|view, table| match &compared {
            Some(compared) => compared.iter().all(|name| is_unmasked(view, table, name)),
            None => false,
        })
    }

    /// The text whose plan is explained. Even the plan of a point query may show whether a hidden row exists.
    pub(crate) fn explained_text(&self) -> Result<String, Error> {
        Ok(self.text_over(|_, _| false)?.0)
    }

    /// The text, in which the query in place of a table is computed on its own unless `may_merge`.
    fn text_over(&self, may_merge: impl Fn(&TableView, &TableDetails) -> bool) -> Result<(String, Vec<usize>), Error> {
        let mut replacement = |schema: Option<&str>, name: &str| -> Result<String, Error> {
            let Some(table) = self.catalog.find(schema, name) else {
                let error = Error::new(ErrorKind::NotFound, format!("there is no table {name:?}"));
                return Err(error.with_choices(self.catalog.catalog.nearest_tables(name)));
            };
            match self.caller.view(table)? {
                None => Ok(table.location()),
                Some(view) => table_query(table, &view, may_merge(&view, table)),
            }
        };
        self.parsed.text_with_tables_replaced(&mut replacement)
    }

    /// The names of the visible columns of the tables of the statement.
    pub(crate) fn column_names(&self) -> Vec<String> {
        let tables = self.parsed.tables().iter().filter_map(|table| self.catalog.details(table));
        let columns = tables.filter_map(|table| self.caller.visible_columns(table).ok());
        columns.flatten().map(|column| column.name).collect()
    }
}

/// Whether the column `name` is visible as it is.
fn is_unmasked(view: &TableView, table: &TableDetails, name: &str) -> bool {
    let mut positions = (0..table.columns.len()).filter(|at| table.columns[*at].name.eq_ignore_ascii_case(name));
    match (positions.next(), positions.next()) {
        (Some(position), None) => view.masks.get(position).is_some_and(Option::is_none),
        _ => false,
    }
}

/// The query in place of `table`.
fn table_query(table: &TableDetails, view: &TableView, may_merge: bool) -> Result<String, Error> {
    let visible = view.visible_columns().filter(|position| !table.rules[*position].is_invisible);
    let columns: Vec<String> = visible.map(|position| selected(table, view, position)).collect();
    if columns.is_empty() {
        return Err(unfit_error(table, "no column of it is visible"));
    }
    let rows = filter_to_sql(&view.rows, table).map_err(|reason| unfit_error(table, &reason))?;
    let (columns, barrier) = (columns.join(", "), if may_merge { "" } else { BARRIER });
    Ok(format!("(SELECT {columns} FROM {} WHERE {rows}{barrier})", table.location()))
}

/// The column at `position`, with its mask.
fn selected(table: &TableDetails, view: &TableView, position: usize) -> String {
    let name = column_name(table, position);
    let text = as_text(&name);
    // A number of stars, and none for NULL.
    let stars = |hidden: String| format!("REPEAT('*', {hidden})");
    let partial = |side: &str, kept: u32| {
        let kept_text = format!("{side}({text}, {kept})");
        let rest = stars(format!("CHAR_LENGTH({text}) - {kept}"));
        let parts = if side == "LEFT" { format!("{kept_text}, {rest}") } else { format!("{rest}, {kept_text}") };
        let all = stars(format!("CHAR_LENGTH({text})"));
        format!("IF(CHAR_LENGTH({text}) > {kept}, CONCAT({parts}), {all}) AS {name}")
    };
    match view.masks.get(position).copied().flatten() {
        None => name,
        Some(Mask::KeepFirst(kept)) => partial("LEFT", kept),
        Some(Mask::KeepLast(kept)) => partial("RIGHT", kept),
        // Has the type of the column.
        Some(Mask::Null | Mask::Hash | Mask::Deny) => format!("CASE WHEN FALSE THEN {name} END AS {name}"),
    }
}

fn column_name(table: &TableDetails, position: usize) -> String {
    DIALECT.quote_identifier(table.columns.get(position).map_or("", |column| &column.name))
}

fn as_text(column: &str) -> String {
    format!("CONVERT({column} USING utf8mb4)")
}

/// The bytes of a text. The server compares them exactly; texts that a collation takes for equal may differ in case, in
/// accents and in spaces at their end.
fn as_bytes(column: &str) -> String {
    format!("CAST({} AS BINARY)", as_text(column))
}

/// Converts `filter` to SQL. The error says why the server cannot evaluate it.
fn filter_to_sql(filter: &RowFilter, table: &TableDetails) -> Result<String, String> {
    let name = |column: usize| column_name(table, column);
    Ok(match filter {
        RowFilter::All(filters) => join_filters(filters, " AND ", "TRUE", table)?,
        RowFilter::Any(filters) => join_filters(filters, " OR ", "FALSE", table)?,
        RowFilter::Not(filter) => format!("(NOT {})", filter_to_sql(filter, table)?),
        RowFilter::Constant(value) => if *value { "TRUE" } else { "FALSE" }.to_owned(),
        RowFilter::IsNull { column, is_negated } => format!("({} IS {}NULL)", name(*column), not_keyword(*is_negated)),
        RowFilter::IsTrue(column) => format!("({} <> 0)", name(*column)),
        RowFilter::Compare { column, comparator, value } => compare(
            &name(*column),
            operator(*comparator),
            *comparator == Comparator::Equal,
            std::slice::from_ref(value),
        )?,
        RowFilter::CompareColumns { left, comparator, right } => {
            let is_text = |column: usize| {
                table.columns.get(column).is_some_and(|column| value_kind(&column.type_name) == ValueKind::Text)
            };
            let (mut one, mut other) = (name(*left), name(*right));
            if is_text(*left) || is_text(*right) {
                (one, other) = (as_bytes(&one), as_bytes(&other));
            }
            format!("({one} {} {other})", operator(*comparator))
        }
        RowFilter::In { column, values, is_negated } => {
            let operator = if *is_negated { "NOT IN" } else { "IN" };
            compare(&name(*column), operator, !*is_negated, values)?
        }
        RowFilter::Like { column, pattern, is_negated } => {
            let (text, not) = (as_text(&name(*column)), not_keyword(*is_negated));
            format!("({text} COLLATE utf8mb4_bin {not}LIKE {})", text_literal(pattern))
        }
    })
}

/// Compares `column` with `values`. Texts are compared by their bytes. Where equal ones are searched, the comparison by the
/// collation of the column, which is true for all of them, lets the server use an index. Every character set has ASCII; for
/// other letters, that comparison may be an error.
fn compare(column: &str, operator: &str, finds_equal: bool, values: &[RowValue]) -> Result<String, String> {
    let list = |literal: &dyn Fn(&RowValue) -> Result<String, String>| {
        let literals = values.iter().map(literal).collect::<Result<Vec<_>, _>>()?.join(", ");
        Ok::<_, String>(if operator.ends_with("IN") { format!("({literals})") } else { literals })
    };
    let by_server = list(&literal)?;
    if !values.iter().any(|value| matches!(value, RowValue::Text(_))) {
        return Ok(format!("({column} {operator} {by_server})"));
    }
    let bytes = list(&|value| match value {
        RowValue::Text(text) => Ok(byte_literal(text)),
        _ => Err("texts are compared with values of another type".to_owned()),
    })?;
    let exact = format!("{} {operator} {bytes}", as_bytes(column));
    let is_ascii = values.iter().all(|value| matches!(value, RowValue::Text(text) if text.is_ascii()));
    Ok(match finds_equal && is_ascii {
        true => format!("({column} {operator} {by_server} AND {exact})"),
        false => format!("({exact})"),
    })
}

fn join_filters(filters: &[RowFilter], separator: &str, empty: &str, table: &TableDetails) -> Result<String, String> {
    let parts = filters.iter().map(|filter| filter_to_sql(filter, table)).collect::<Result<Vec<_>, _>>()?;
    Ok(if parts.is_empty() { empty.to_owned() } else { format!("({})", parts.join(separator)) })
}

fn not_keyword(is_negated: bool) -> &'static str {
    if is_negated { "NOT " } else { "" }
}

fn operator(comparator: Comparator) -> &'static str {
    match comparator {
        Comparator::Equal => "=",
        Comparator::NotEqual => "<>",
        Comparator::Less => "<",
        Comparator::LessOrEqual => "<=",
        Comparator::Greater => ">",
        Comparator::GreaterOrEqual => ">=",
    }
}

fn literal(value: &RowValue) -> Result<String, String> {
    Ok(match value {
        RowValue::Boolean(value) => if *value { "TRUE" } else { "FALSE" }.to_owned(),
        RowValue::Integer(value) => value.to_string(),
        RowValue::Number(value) => number_literal(*value),
        RowValue::Text(value) => text_literal(value),
        RowValue::Date(value) => format!("DATE'{}'", checked_time(value.to_string(), 10)?),
        RowValue::Timestamp(value) => format!("TIMESTAMP'{}'", checked_time(value.to_string(), 26)?),
    })
}

/// A decimal number, which the server compares exactly, if it has room for its digits.
fn number_literal(value: f64) -> String {
    let plain = value.to_string();
    if plain.len() <= 30 { plain } else { format!("{value:e}") }
}

/// `text`, a date or a time with at most `characters_max` characters: the server has years of four digits and microseconds.
fn checked_time(text: String, characters_max: usize) -> Result<String, String> {
    match text.starts_with(|first: char| first.is_ascii_digit()) && text.len() <= characters_max {
        true => Ok(text),
        false => Err(format!("the server has no time {text}")),
    }
}

fn text_literal(text: &str) -> String {
    format!("_utf8mb4 {}", byte_literal(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_compared_by_their_bytes() {
        let texts = [RowValue::Text("é".to_owned()), RowValue::Text("a".to_owned())];
        assert_eq!(
            compare("`a`", "=", true, &texts[..1]).unwrap(),
            "(CAST(CONVERT(`a` USING utf8mb4) AS BINARY) = x'c3a9')"
        );
        assert_eq!(
            compare("`a`", "IN", true, &texts[1..]).unwrap(),
            "(`a` IN (_utf8mb4 x'61') AND CAST(CONVERT(`a` USING utf8mb4) AS BINARY) IN (x'61'))"
        );
        assert_eq!(
            compare("`a`", "NOT IN", false, &texts).unwrap(),
            "(CAST(CONVERT(`a` USING utf8mb4) AS BINARY) NOT IN (x'c3a9', x'61'))"
        );
        assert_eq!(compare("`a`", "<", false, &[RowValue::Integer(-7)]).unwrap(), "(`a` < -7)");
    }

    #[test]
    fn literals_are_exact() {
        assert_eq!(number_literal(0.1), "0.1");
        assert_eq!(number_literal(-1e18), "-1000000000000000000");
        assert_eq!(number_literal(1e300), "1e300");
        assert!(checked_time("2024-02-29 01:02:03.000001".to_owned(), 26).is_ok());
        for text in ["+12024-02-29", "-0001-01-01", "2024-02-29 01:02:03.000000001"] {
            assert!(checked_time(text.to_owned(), 26).is_err(), "{text}");
        }
    }

    #[test]
    fn kinds_come_from_the_names_of_types() {
        let kinds = ["int(10) unsigned", "decimal(10,2)", "enum('a','b')", "timestamp(6)", "json", "bit(1)"];
        let expected = [
            ValueKind::Integer,
            ValueKind::Number,
            ValueKind::Text,
            ValueKind::Timestamp,
            ValueKind::Other,
            ValueKind::Other,
        ];
        assert_eq!(kinds.map(value_kind), expected);
    }
}
