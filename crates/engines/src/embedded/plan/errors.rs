//! Converts DataFusion's errors: the error kind, a message without internals, and a hint, also for the parts of
//! PostgreSQL's `pg_catalog` that are not there.

use std::time::Duration;

use datafusion::arrow::error::ArrowError;
use datafusion::common::{Column, DataFusionError, SchemaError, TableReference};
use datafusion::execution::SessionState;
use tidegate_core::{Error, ErrorKind, misspelled_name, nearest_names};
use tidegate_sql::{SqlDialect, equivalent_function};

use super::scope::CATALOG;
use crate::embedded::files::{NumberFormat, STORE_ERROR_PREFIX};
use crate::embedded::memory::SHARED_MEMORY_USED_UP;
use crate::embedded::row_bytes::RowsTooWide;
use crate::embedded::scan::{ReadFailure, find_cause};

const COLUMNS_LISTED_MAX: usize = 60;

const DIVISION_BY_ZERO: &str = "division by zero";
const NULLIF_HINT: &str = "Use x / NULLIF(y, 0) to get NULL instead.";
const INVALID_INPUT: &str = "invalid input syntax";
const TRY_CAST_HINT: &str =
    "TRY_CAST(x AS type) gives NULL where a value does not fit; sums and averages leave these rows out.";
/// Where the differences from PostgreSQL's SQL are listed.
const SQL_REFERENCE_HINT: &str =
    "The SQL is PostgreSQL's; the page \"SQL over files\" (docs/reference/sql.md) lists the differences.";

/// The beginning of the error when a plan lacks a property that one of its operators requires.
const SANITY_CHECK_PREFIX: &str = "Plan: [";

/// The beginning of DataFusion's error for `BETWEEN` with values of different types.
const TYPES_DIFFER_PREFIX: &str = "Failed to coerce types";
const TYPES_DIFFER_HINT: &str = "Cast the values to one type: x::text.";

pub(crate) fn to_core_error(error: &DataFusionError, database: &str) -> Error {
    if let Some(error) = find_own_error(error) {
        return error;
    }
    if find_cause::<RowsTooWide>(error).is_some() {
        return Error::new(ErrorKind::TooLarge, "a join or unnest would copy a very large value into too many rows")
            .with_hint("Leave the value out, or use a part of it, such as left(x, 1000).");
    }
    let invalid = |text: &str| Error::new(ErrorKind::InvalidArguments, clean_message(text, database));
    match error.find_root() {
        DataFusionError::Plan(text) | DataFusionError::NotImplemented(text) | DataFusionError::Internal(text)
            if UNPLANNED.iter().any(|part| text.contains(part)) =>
        {
            unplanned_error(text)
        }
        DataFusionError::SchemaError(error, _) => schema_error(error, database),
        DataFusionError::Plan(text) if text.starts_with(SANITY_CHECK_PREFIX) => {
            tracing::error!(plan = text, "DataFusion's sanity check rejected a plan");
            Error::new(ErrorKind::InvalidArguments, "this combination of clauses is not supported")
                .with_hint("Move the innermost query to WITH, or remove its ORDER BY.")
        }
        DataFusionError::Plan(text) | DataFusionError::Configuration(text) => {
            let advice = ADVICE.iter().find(|(start, _)| text.starts_with(start));
            advice.into_iter().fold(invalid(text), |error, (_, advice)| error.with_hint(*advice))
        }
        DataFusionError::SQL(error, _) => invalid(&error.to_string()),
        DataFusionError::Internal(text) if text.starts_with(TYPES_DIFFER_PREFIX) => {
            invalid(text).with_hint(TYPES_DIFFER_HINT)
        }
        DataFusionError::NotImplemented(text) => {
            invalid(&format!("this is not supported: {text}")).with_hint(SQL_REFERENCE_HINT)
        }
        DataFusionError::Execution(text) if text == DIVISION_BY_ZERO => invalid(text).with_hint(NULLIF_HINT),
        DataFusionError::Execution(text) if text.starts_with(INVALID_INPUT) => {
            invalid(text).with_hint(invalid_input_hint(text))
        }
        DataFusionError::Execution(text) => invalid(text),
        DataFusionError::ResourcesExhausted(text) => too_large_error(text),
        DataFusionError::ArrowError(error, _) => arrow_error(error, database),
        DataFusionError::ParquetError(error) => {
            unavailable_error(&format!("a Parquet file cannot be read: {error}"), database)
        }
        DataFusionError::ObjectStore(error) => unavailable_error(&error.to_string(), database),
        DataFusionError::IoError(error) => unavailable_error(&crate::embedded::files::io_error_reason(error), database),
        DataFusionError::Collection(errors) => match errors.first() {
            Some(first) => to_core_error(first, database),
            None => Error::internal("an empty collection of errors"),
        },
        other => Error::internal(other.to_string()),
    }
}

/// The error of planning a statement in `session`. DataFusion suggests the most similar name for an unknown function,
/// which may do something else; this suggests an equivalent or a corrected spelling.
pub(super) fn planning_error(error: &DataFusionError, database: &str, session: &SessionState) -> Error {
    let DataFusionError::Plan(text) = error.find_root() else { return to_core_error(error, database) };
    let Some((name, _)) = text.strip_prefix("Invalid function '").and_then(|rest| rest.split_once('\'')) else {
        return to_core_error(error, database);
    };
    let unknown =
        |advice: &str| Error::new(ErrorKind::InvalidArguments, format!("there is no function {name:?}{advice}"));
    if let Some(equivalent) = equivalent_function(name, SqlDialect::DataFusion) {
        return unknown("").with_hint(format!("Write {equivalent}."));
    }
    if let Some(advice) = catalog_function_advice(name) {
        return unknown("").with_hint(advice);
    }
    let scalar = session.scalar_functions().keys().chain(session.aggregate_functions().keys());
    let names = scalar.chain(session.window_functions().keys()).filter(|name| !name.ends_with('*'));
    let mut names: Vec<&str> = names.map(String::as_str).collect();
    names.sort_unstable();
    let advice = misspelled_name(name, names).map(|meant| format!("; did you mean {meant:?}?"));
    unknown(&advice.unwrap_or_default()).with_hint(FUNCTIONS_HINT)
}

const FUNCTIONS_HINT: &str = "The functions are listed on the page \"SQL over files\" (docs/reference/sql.md).";

/// The hint for an overflow. Columns of dates are compared with those of timestamps in nanoseconds.
const CAST_WIDER_HINT: &str = "Cast to a wider type: x::bigint or x::numeric. A date that is compared with a column of timestamps \
                          lies between 1677 and 2262; compare dates: x::date.";

/// Hints for DataFusion's errors, by the beginning of the message.
const ADVICE: &[(&str, &str)] = &[
    ("Field ", "Write the value itself in place of a field of a row."),
    ("Failed to unify argument types", "Cast the values to one type: x::text."),
    ("Inconsistent data type across values list", "Cast the values of a column to one type: '2013-01-01'::date."),
];

/// Parts of DataFusion's errors for expressions where it has no plan for them. The texts contain its syntax trees.
const UNPLANNED: &[&str] = &[
    "Physical plan does not support",
    "OuterReferenceColumn(",
    "Correlated scalar subquery",
    "subquery can only be used in",
    "Correlated column is not allowed",
    "undecorrelated",
    "Unnest should be rewritten",
];

fn unplanned_error(text: &str) -> Error {
    tracing::info!(reason = text, "DataFusion has no plan for an expression");
    let is_subquery = ["ubquer", "Exists(", "OuterReferenceColumn(", "SetComparison(", "Correlated", "undecorrelated"]
        .iter()
        .any(|part| text.contains(part));
    if is_subquery {
        return Error::new(ErrorKind::InvalidArguments, "a subquery is not supported at its place in the statement")
            .with_hint(
                "Put the subquery into SELECT of a query in FROM, and use its column; or join its tables in FROM.",
            );
    }
    Error::new(ErrorKind::InvalidArguments, "an expression is not supported at its place in the statement")
        .with_hint("Compute the expression in SELECT of a query in FROM, and use its column.")
}

/// An error of this server's readers or of other databases, at any depth of the chain of causes.
fn find_own_error(error: &DataFusionError) -> Option<Error> {
    if let Some(error) = find_cause::<Error>(error) {
        return Some(error.clone());
    }
    if let Some(failure) = find_cause::<ReadFailure>(error) {
        let error = Error::new(ErrorKind::Unavailable, failure.to_string());
        let error = failure.hint().into_iter().fold(error, Error::with_hint);
        return Some(if failure.is_retryable() { error.with_retry_after(Duration::ZERO) } else { error });
    }
    // Parquet's reader keeps only the text of errors of the object store.
    let text = error.to_string();
    let (_, reason) = text.split_once(STORE_ERROR_PREFIX)?;
    Some(Error::new(ErrorKind::Unavailable, reason))
}

fn schema_error(error: &SchemaError, database: &str) -> Error {
    match error {
        SchemaError::FieldNotFound { field, valid_fields } => unknown_column_error(field, valid_fields),
        SchemaError::AmbiguousReference { field } => Error::new(
            ErrorKind::InvalidArguments,
            format!("the column {:?} is in several tables of the query", field.name()),
        )
        .with_hint("Write the table before it: table.column."),
        other => Error::new(ErrorKind::InvalidArguments, clean_message(&other.to_string(), database)),
    }
}

fn unknown_column_error(field: &Column, valid_fields: &[Column]) -> Error {
    let relation_of = |column: &Column| column.relation.as_ref().map(|relation| relation.table().to_owned());
    let mut relations: Vec<String> = valid_fields.iter().filter_map(relation_of).collect();
    relations.dedup();
    let is_relation = |name: &str| relations.iter().any(|relation| relation == name);
    let (relation, name) = match &field.relation {
        // `table.column.key` with an unknown column.
        Some(of) if !is_relation(of.table()) && of.schema().is_some_and(is_relation) => (of.schema(), of.table()),
        of => (of.as_ref().map(|of| of.table()), field.name()),
    };
    let is_of_relation = |column: &&Column| relation.is_none_or(|name| relation_of(column).as_deref() == Some(name));
    let is_unknown = relation.is_some_and(|relation| !is_relation(relation));
    // Internal columns contain a character that no statement can contain.
    let columns = valid_fields.iter().filter(|column| is_unknown || is_of_relation(column)).map(Column::name);
    let columns: Vec<&str> = columns.filter(|name| !name.contains('\u{1}')).collect();
    let invalid = |message: String| Error::new(ErrorKind::InvalidArguments, message);
    if let (Some(relation), true, false) = (relation, is_unknown, valid_fields.is_empty()) {
        // `column.key` with an unknown column looks the same.
        let choices = misspelled_name(relation, columns).map(str::to_owned).into_iter().chain(relations.clone());
        let message = format!("there is no table, alias or column {relation:?} at {relation}.{name}");
        return invalid(message).with_choices(choices);
    }
    let mut choices = nearest_names(name, columns.iter().copied());
    for column in columns {
        if choices.len() < COLUMNS_LISTED_MAX && !choices.iter().any(|choice| choice == column) {
            choices.push(column.to_owned());
        }
    }
    let scope = relation.map(|relation| format!(" in {relation:?}")).unwrap_or_default();
    invalid(format!("there is no column {name:?}{scope}")).with_choices(choices)
}

fn arrow_error(error: &ArrowError, database: &str) -> Error {
    let invalid = |text: &str| Error::new(ErrorKind::InvalidArguments, clean_message(text, database));
    match error {
        ArrowError::DivideByZero => invalid(DIVISION_BY_ZERO).with_hint(NULLIF_HINT),
        ArrowError::CastError(text) | ArrowError::ParseError(text) => invalid(text).with_hint(TRY_CAST_HINT),
        ArrowError::ArithmeticOverflow(text) => invalid(text).with_hint(CAST_WIDER_HINT),
        ArrowError::ComputeError(text)
        | ArrowError::InvalidArgumentError(text)
        | ArrowError::NotYetImplemented(text) => invalid(text),
        ArrowError::OffsetOverflowError(_) => too_large_error("a column of one batch holds more than 2 GiB"),
        ArrowError::MemoryError(text) => too_large_error(text),
        ArrowError::IoError(text, _)
        | ArrowError::IpcError(text)
        | ArrowError::ParquetError(text)
        | ArrowError::CsvError(text)
        | ArrowError::JsonError(text) => unavailable_error(text, database),
        other => Error::internal(other.to_string()),
    }
}

/// The hint for a text that is no value of a type. Numbers that people write, such as `1,699.52`, get the options of a table.
fn invalid_input_hint(message: &str) -> String {
    let value = message.split_once('"').and_then(|(_, rest)| rest.strip_suffix('"')).unwrap_or_default();
    let options: Vec<String> = NumberFormat::of_number(value).into_iter().map(NumberFormat::options).collect();
    if options.is_empty() {
        return TRY_CAST_HINT.to_owned();
    }
    format!(
        "A table of text files or sheets reads such numbers with {} among its options in tidegate.yaml; the tool get_schema \
         has the options for each column. {TRY_CAST_HINT}",
        options.join(" or ")
    )
}

fn unavailable_error(text: &str, database: &str) -> Error {
    if text.contains(SPILL_LIMIT) {
        return too_large_error(text);
    }
    Error::new(ErrorKind::Unavailable, clean_message(text, database))
}

/// The hint for a result that is too large.
pub(super) const VALUES_HINT: &str = "Request fewer or shorter values.";
/// The hint for a function that would take too long.
pub(super) const WORK_HINT: &str =
    "The work is the product of the lengths: use shorter values, such as left(x, 10000), or fewer elements.";

/// A part of the error when the limit for spilling to disk is reached.
const SPILL_LIMIT: &str = "max_temp_directory_size";

fn too_large_error(text: &str) -> Error {
    tracing::debug!(reason = text, "a query is too large");
    if text.contains(SHARED_MEMORY_USED_UP) {
        return Error::new(ErrorKind::TooLarge, "not enough memory is available while other queries run")
            .with_hint("Retry later, or request less: filter, aggregate, or set a smaller limit.");
    }
    if text.contains(SPILL_LIMIT) {
        return Error::new(ErrorKind::TooLarge, "the query exceeds the limit for spilling to disk")
            .with_hint("Request less: filter before sorting or joining, or aggregate.");
    }
    // The errors of PostgreSQL's functions.
    if text.contains("would make more than") {
        return Error::new(ErrorKind::TooLarge, text).with_hint(VALUES_HINT);
    }
    if text.contains(" steps, more than the ") {
        return Error::new(ErrorKind::TooLarge, text).with_hint(WORK_HINT);
    }
    Error::new(ErrorKind::TooLarge, "the query exceeds the memory limit of one query")
        .with_hint("Request less: filter before joining, join on equal columns, aggregate, or select fewer columns.")
}

/// Type names of DataFusion and Arrow, with their SQL names.
const SQL_TYPE_NAMES: &[(&str, &str)] = &[
    ("Utf8View", "text"),
    ("LargeUtf8", "text"),
    ("Utf8", "text"),
    ("Int8", "tinyint"),
    ("Int16", "smallint"),
    ("Int32", "integer"),
    ("Int64", "bigint"),
    ("UInt64", "bigint unsigned"),
    ("Float32", "real"),
    ("Float64", "double"),
    ("Date32", "date"),
    ("Boolean", "boolean"),
];

const ERROR_PREFIXES: &[&str] = &[
    "Error during planning: ",
    "Execution error: ",
    "Internal error: ",
    "Arrow error: ",
    "External error: ",
    "While expanding wildcard, ",
];

/// Removes from `text` what is only useful to developers of DataFusion.
fn clean_message(text: &str, database: &str) -> String {
    let text = text.split("\n\nbacktrace:").next().unwrap_or(text);
    let text = text.split("This issue was likely caused by a bug").next().unwrap_or(text);
    let mut text = text.replace(&format!("{CATALOG}.{database}."), "");
    for noise in ERROR_PREFIXES {
        text = text.replace(noise, "");
    }
    let text = without_outer_references(&text);
    let text = extract_coercion_error(without_syntax_tree(&text));
    let text = text.trim_end_matches(['.', '\n', ' ']);
    use_sql_type_names(&without_signatures(text).unwrap_or_else(|| text.to_owned()))
}

/// Replaces `outer_ref(t.x)`, DataFusion's name of a column of an outer query, with `t.x`.
fn without_outer_references(text: &str) -> String {
    let mut parts = text.split("outer_ref(");
    let mut replaced = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (column, rest) = part.split_once(')').unwrap_or((part, ""));
        replaced.push_str(column);
        replaced.push_str(rest);
    }
    replaced
}

/// Removes a syntax tree in Rust's debug format: `Substring { expr: Identifier(Ident { …`.
fn without_syntax_tree(text: &str) -> &str {
    match text.find(" {") {
        Some(brace) if text.contains("span: Span(") => text[..brace].rsplit_once(' ').map_or("", |(before, _)| before),
        _ => text,
    }
}

/// Extracts a function's message about its arguments from between `Function 'sum' user-defined coercion failed with:`
/// and the list of signatures.
fn extract_coercion_error(text: &str) -> &str {
    match text.split_once("user-defined coercion failed with: ") {
        Some((_, output)) => output.split(". No function matches").next().unwrap_or(output),
        None => text,
    }
}

/// Converts `Function 'sum' failed to match any signature, errors: Function 'sum' requires A, but received B (DataType:
/// C).,…` to a readable message.
fn without_signatures(text: &str) -> Option<String> {
    let (start, errors) = text.split_once(" failed to match any signature, errors: ")?;
    let received = errors.split_once("(DataType: ")?.1.split(')').next()?;
    let expected: Vec<&str> =
        errors.split(" requires ").skip(1).filter_map(|error| error.split(", but received").next()).collect();
    Some(format!("{start} does not take {received}; it takes {}", expected.join(", ")))
}

/// Replaces Arrow's type names by SQL's, and literals such as `Int64(1)` by their values.
fn use_sql_type_names(text: &str) -> String {
    let mut named = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let word_end = rest.find(|character: char| !character.is_alphanumeric()).unwrap_or(rest.len());
        let (word, after) = rest.split_at(word_end);
        let name = SQL_TYPE_NAMES.iter().find(|(theirs, _)| *theirs == word);
        if let (Some(_), Some((value, behind))) =
            (name, after.strip_prefix('(').and_then(|after| after.split_once(')')))
        {
            named.push_str(value);
            rest = behind;
            continue;
        }
        named.push_str(name.map_or(word, |(_, ours)| ours));
        let next = after.chars().next().map_or(0, char::len_utf8);
        named.push_str(&after[..next]);
        rest = &after[next..];
    }
    named
}

const PG_CATALOG: &str = "pg_catalog";
const DESCRIPTIONS: &str = "Use the tools list_tables and get_schema, which return the descriptions.";

/// Names of relations or functions, and what to use in their place.
type Advice = &'static [(&'static [&'static str], &'static str)];

/// For relations other than those of tables.
const RELATIONS: Advice = &[
    (&["pg_attribute", "pg_attrdef", "pg_type", "pg_enum", "pg_stats"], "Use information_schema.columns."),
    (&["pg_namespace"], "Use information_schema.schemata."),
    (
        &["pg_index", "pg_indexes", "pg_constraint", "pg_trigger", "pg_rules", "pg_policies", "pg_sequences"],
        "There are no keys, indexes, triggers, rules, policies and sequences; information_schema.tables has the tables.",
    ),
    (&["pg_description", "pg_shdescription"], DESCRIPTIONS),
    (&["pg_stat_user_tables", "pg_stat_all_tables"], "Use the tool list_tables, which returns numbers of rows."),
    (&["pg_settings"], "Use SELECT current_setting('name')."),
    (&["pg_database"], "Use SELECT current_database(), or the tool list_databases."),
    (&["pg_roles", "pg_user", "pg_authid", "pg_auth_members"], "Use SELECT current_user."),
    (&["pg_proc", "pg_operator", "pg_aggregate", "pg_cast"], FUNCTIONS_HINT),
];
const TABLES: &str = "Use information_schema.tables, or information_schema.columns for columns.";

const FUNCTIONS: Advice = &[
    (
        &[
            "has_any_column_privilege",
            "has_schema_privilege",
            "has_table_privilege",
            "pg_table_is_visible",
            "to_regclass",
        ],
        "Use information_schema.tables, which has the tables that you may read.",
    ),
    (&["has_column_privilege"], "Use information_schema.columns, which has the columns that you may read."),
    (&["format_type", "to_regtype", "pg_type_is_visible"], "Use data_type of information_schema.columns."),
    (&["to_regnamespace"], "Use information_schema.schemata."),
    (&["obj_description", "col_description", "shobj_description"], DESCRIPTIONS),
    (
        &["pg_database_size", "pg_indexes_size", "pg_relation_size", "pg_table_size", "pg_total_relation_size"],
        "The size on disk is not available; use the tool list_tables, or SELECT count(*).",
    ),
];

fn find(name: &str, all: Advice) -> Option<&'static str> {
    all.iter().find(|(names, _)| names.contains(&name)).map(|(_, advice)| *advice)
}

/// The error for `reference`, for which there is no table: `error`, or the advice for a catalog that is not there.
pub(crate) fn advise_catalog(reference: &TableReference, error: Error) -> Error {
    let name = reference.table().to_lowercase();
    let name = name.strip_prefix("pg_catalog.").unwrap_or(&name);
    let is_catalog = match reference.schema() {
        Some(schema) => schema.eq_ignore_ascii_case(PG_CATALOG),
        None => name.starts_with("pg_"),
    };
    if error.kind() != ErrorKind::NotFound || !is_catalog {
        return error;
    }
    Error::new(ErrorKind::NotFound, format!("{PG_CATALOG}.{name} is not there"))
        .with_hint(find(name, RELATIONS).unwrap_or(TABLES))
}

/// What to use in place of the function `name` of the catalogs.
fn catalog_function_advice(name: &str) -> Option<&'static str> {
    find(&name.to_lowercase(), FUNCTIONS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn internals_are_taken_out_of_texts() {
        let text = "Error during planning: Cannot coerce Utf8View + Int64 of tidegate.sales.t.\n\nbacktrace: 0: x";
        assert_eq!(clean_message(text, "sales"), "Cannot coerce text + bigint of t");
        assert_eq!(clean_message("Straße ünd Int64", "x"), "Straße ünd bigint");
        assert_eq!(clean_message("currently only count(Int64(1)) of Utf8", "x"), "currently only count(1) of text");
        assert_eq!(clean_message("abs(outer_ref(t.x)) + outer_ref(t.y)", "x"), "abs(t.x) + t.y");
        let tree = "not valid Substring { expr: Ident { span: Span(Location(1,15)) } }";
        assert_eq!(clean_message(tree, "x"), "not valid");
        let signatures = "Function 'sum' failed to match any signature, errors: Function 'sum' requires Int64, but \
                          received String (DataType: Utf8).,Function 'sum' requires Float64, but received String \
                          (DataType: Utf8).";
        assert_eq!(clean_message(signatures, "x"), "Function 'sum' does not take text; it takes bigint, double");
    }
}
