//! `list_tables`: tables, including those that cannot be read. A pattern is a glob of their names, or words of names,
//! comments and columns.
//!
//! Models read this answer before they query, so it has to be short: without the database where there is only one,
//! without members that are null, and with one line for each family of tables. A program that sets a format may rely on
//! every column and every table. A family are tables whose names differ only in their digits, such as one for each
//! month. Its line has the pattern that lists them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use serde::Deserialize;
use serde_json::json;
use tidegate_core::{Content, Error, Format, NamePattern, Principal};
use tidegate_query::{ColumnEntry, DatabaseKind, QueryRows, TableEntry, TableStatus};
use tidegate_runtime::{AdapterDetail, Answer, AnswerMeta, ReplySender, RunningCall, Tool};
use tokio::time::{Instant, timeout_at};

use super::{DatabaseListing, report_errors};
use crate::arguments::{OutputArguments, parse_arguments};
use crate::table_names::strip_database;
use crate::tool_definition::{InputSchemaBuilder, context_handler, read_only_tool};
use crate::tool_services::ToolServices;
use crate::typed_rows::{TableBuilder, count_column, text_column};

pub(crate) fn tool(services: &Arc<ToolServices>) -> Tool {
    read_only_tool(
        "list_tables",
        "List tables",
        "Tables of one database or of all, with row counts where known. Use before get_schema.",
        InputSchemaBuilder::new()
            .with_database()
            .with(
                "pattern",
                json!({"type": "string", "description": "Words of name, comment or columns; or a glob: ord*"}),
            )
            .with_output_arguments(),
        context_handler(services, handle),
    )
}

#[derive(Deserialize)]
struct Arguments {
    database: Option<String>,
    pattern: Option<String>,
    #[serde(flatten)]
    shape: OutputArguments,
}

async fn handle(services: Arc<ToolServices>, call: RunningCall) -> Result<Answer, Error> {
    let Arguments { database, pattern, shape } = parse_arguments(&call)?;
    let named = database.is_some();
    let found = services.list_databases(database.as_deref(), &call).await?;
    if let (true, Some(DatabaseListing { catalog: Err(error), .. })) = (named, found.first()) {
        // A call for one database reports its error as an error.
        return Err(error.clone());
    }
    report_errors(&found, &call);
    // Programs that set a format expect only rows, all of them.
    let is_default_shape = shape.is_default();
    let is_for_model = is_default_shape && call.format().is_none();
    let output_options = shape.output_options("Narrow the list with pattern or database.")?;
    let pattern = pattern.as_deref().map(TablePattern::parse);
    let (mut tables, unsearched) = requested_tables(&found, pattern.as_ref(), call.principal()).await;
    if is_for_model && pattern.is_none() {
        tables = group_families(tables);
    }
    let with_database = !(is_default_shape && found.len() == 1);
    let rows = match is_for_model {
        true => into_rows(&tables, with_database, true)?.without_nulls(),
        false => into_rows(&tables, with_database, false)?,
    };
    let answer = services.executor.answer_rows(rows, output_options);
    let notes = if is_for_model { notes(&found, pattern.is_some(), unsearched) } else { Vec::new() };
    // Other nodes need to know the dialect of the statements that they send.
    let is_for_node = call.format() == Some(Format::Arrow) && found.len() == 1;
    let adapter = found.first().filter(|_| is_for_node).map(|only| {
        let (name, dialect) = (only.database.name().to_owned(), only.database.dialect().key());
        Box::new(AdapterDetail::Database { name, dialect })
    });
    Ok(answer.followed_by(|reply, meta| async move {
        send_notes(&notes, &reply).await?;
        Ok(AnswerMeta { adapter, ..meta })
    }))
}

/// Notes on merged and skipped files, unless the call searches; then on what was not searched.
fn notes(found: &[DatabaseListing], is_search: bool, unsearched: UnsearchedTables) -> Vec<String> {
    let UnsearchedTables { further, unread } = unsearched;
    let too_many = (further > 0).then(|| {
        let searched = "only their names and comments, because there are too many";
        format!("The columns of {further} more tables were not searched, {searched}.")
    });
    let too_slow = (unread > 0).then(|| {
        let seconds = COLUMNS_READ_TIME.as_secs();
        format!(
            "The columns of {unread} tables were not read within {seconds} seconds, and only their names and comments were \
             searched. What was read of files is kept: repeat the call, or use a glob of the name."
        )
    });
    if too_many.is_some() || too_slow.is_some() {
        return too_many.into_iter().chain(too_slow).collect();
    }
    let catalogs = found.iter().filter_map(|listing| listing.catalog.as_ref().ok()).filter(|_| !is_search);
    catalogs.flat_map(|catalog| catalog.notes.iter().cloned()).collect()
}

/// Appends notes. Names of files are data, as rows are.
async fn send_notes(notes: &[String], reply: &ReplySender) -> Result<(), Error> {
    if notes.is_empty() {
        return Ok(());
    }
    let notes = format!("Notes:\n- {}", notes.join("\n- "));
    reply.end_text().await?;
    reply.send_item(Content::text(reply.job().protection().fence_data(notes))).await
}

/// A line of the answer.
struct ListedTable {
    database: String,
    name: Option<String>,
    rows: Option<u64>,
    comment: Option<String>,
    /// The columns that the pattern found.
    columns: Option<String>,
}

/// The tables that `pattern` finds, and how many tables were not searched entirely. A database that cannot be read is
/// listed with the reason.
async fn requested_tables(
    found: &[DatabaseListing],
    pattern: Option<&TablePattern>,
    principal: &Principal,
) -> (Vec<ListedTable>, UnsearchedTables) {
    let (mut listed, mut unsearched) = (Vec::new(), UnsearchedTables::default());
    let deadline = Instant::now() + COLUMNS_READ_TIME;
    for listing in found {
        let database = listing.database.name();
        if let Err(error) = &listing.catalog {
            let comment = Some(format!("the database cannot be read: {error}"));
            listed.push(ListedTable { database: database.to_owned(), name: None, rows: None, comment, columns: None });
            continue;
        }
        let found_tables = find_tables(listing, pattern, principal, deadline).await;
        unsearched.further += found_tables.unsearched.further;
        unsearched.unread += found_tables.unsearched.unread;
        // A table of a federated database is listed once, in its own database, if that is listed.
        let is_federated = listing.database.kind() == DatabaseKind::Federated;
        let is_listed = |found_table: &FoundTable<'_>| {
            let name = &found_table.table.name;
            let is_own = |other: &DatabaseListing| strip_database(name, other.database.name()).is_some();
            !(is_federated && found.iter().any(is_own))
        };
        listed.extend(found_tables.tables.into_iter().filter(is_listed).map(|FoundTable { table, columns }| {
            ListedTable {
                database: database.to_owned(),
                name: Some(table.name.clone()),
                rows: table.rows,
                comment: comment(table),
                columns,
            }
        }));
    }
    (listed, unsearched)
}

fn into_rows(tables: &[ListedTable], with_database: bool, with_found_columns: bool) -> Result<QueryRows, Error> {
    let mut table = TableBuilder::new();
    if with_database {
        table = table.with_column("database", text_column(tables.iter().map(|table| Some(table.database.clone()))));
    }
    table = table
        .with_column("name", text_column(tables.iter().map(|table| table.name.clone())))
        .with_column("rows", count_column(tables.iter().map(|table| table.rows)))
        .with_column("comment", text_column(tables.iter().map(|table| table.comment.clone())));
    if with_found_columns && tables.iter().any(|table| table.columns.is_some()) {
        table = table.with_column("columns", text_column(tables.iter().map(|table| table.columns.clone())));
    }
    table.into_rows()
}

fn comment(table: &TableEntry) -> Option<String> {
    match &table.status {
        TableStatus::Readable => table.comment.clone(),
        TableStatus::Unreadable(reason) => Some(format!("cannot be read: {reason}")),
    }
}

/// The tables of a database whose columns are searched at most. Each costs a request where columns are not kept.
const COLUMNS_SEARCHED_MAX: usize = 500;
/// How long one call reads columns. Those of a file are inferred from its rows, unless they are known.
const COLUMNS_READ_TIME: Duration = Duration::from_secs(3);
/// The tables whose columns are read at the same time.
const CONCURRENT_READS: usize = 16;
/// The columns that are named for a table.
const COLUMNS_NAMED_MAX: usize = 5;

/// What a caller searches, in any case.
enum TablePattern {
    /// A glob of the whole name.
    Glob(NamePattern),
    /// Words that must all occur.
    Words(Vec<String>),
}

/// A table that a pattern finds.
pub(super) struct FoundTable<'a> {
    pub(super) table: &'a TableEntry,
    /// The columns that have words which neither its name nor its comment has.
    pub(super) columns: Option<String>,
}

/// The tables of one database that a pattern finds.
#[derive(Default)]
struct FoundTables<'a> {
    tables: Vec<FoundTable<'a>>,
    unsearched: UnsearchedTables,
}

/// How many tables were searched by name and comment only.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct UnsearchedTables {
    /// Because there are too many tables.
    further: usize,
    /// Because reading their columns took too long.
    unread: usize,
}

impl TablePattern {
    fn parse(text: &str) -> Self {
        let text = text.to_lowercase();
        if text.contains(['*', '?']) {
            return Self::Glob(NamePattern::new(text));
        }
        Self::Words(text.split_whitespace().map(str::to_owned).collect())
    }

    /// The words that neither the name nor the comment of `table` has; `None` if a glob does not match its name.
    fn missing_words(&self, table: &TableEntry) -> Option<Vec<&str>> {
        let name = table.name.to_lowercase();
        match self {
            Self::Glob(pattern) => pattern.matches(&name).then(Vec::new),
            Self::Words(words) => {
                let comment = table.comment.as_deref().unwrap_or_default().to_lowercase();
                let is_missing = |word: &&String| !name.contains(word.as_str()) && !comment.contains(word.as_str());
                Some(words.iter().filter(is_missing).map(String::as_str).collect())
            }
        }
    }
}

/// The tables of `listing` that `pattern` finds; all without one, and none if its catalog cannot be read. No columns are
/// read after `deadline`.
async fn find_tables<'a>(
    listing: &'a DatabaseListing,
    pattern: Option<&TablePattern>,
    principal: &Principal,
    deadline: Instant,
) -> FoundTables<'a> {
    let Ok(catalog) = &listing.catalog else { return FoundTables::default() };
    let mut found = Vec::new();
    let mut undecided = Vec::new();
    for (index, table) in catalog.tables.iter().enumerate() {
        match pattern.map_or_else(|| Some(Vec::new()), |pattern| pattern.missing_words(table)) {
            Some(words) if words.is_empty() => found.push((index, FoundTable { table, columns: None })),
            Some(words) => undecided.push((index, table, words)),
            None => {}
        }
    }
    let mut unsearched = UnsearchedTables { further: undecided.len().saturating_sub(COLUMNS_SEARCHED_MAX), unread: 0 };
    undecided.truncate(COLUMNS_SEARCHED_MAX);
    for tables in undecided.chunks(CONCURRENT_READS) {
        // Each read would begin, although there is no time for it.
        if Instant::now() >= deadline {
            unsearched.unread += tables.len();
            continue;
        }
        let reads: Vec<_> = tables
            .iter()
            .map(|(_, table, _)| timeout_at(deadline, listing.database.columns(&table.name, principal)))
            .collect();
        for ((index, table, words), read) in tables.iter().zip(join_all(reads).await) {
            let Ok(read) = read else {
                unsearched.unread += 1;
                continue;
            };
            // A table that cannot be read has no columns to find.
            let mut columns = read.unwrap_or_default();
            listing.knowledge.describe_columns(&table.name, &mut columns);
            let synonyms = |column: &ColumnEntry| listing.knowledge.column(&table.name, column).synonyms;
            let columns = find_columns(&columns, words, synonyms);
            found.extend(columns.map(|columns| (*index, FoundTable { table, columns: Some(columns) })));
        }
    }
    found.sort_by_key(|(index, _)| *index);
    FoundTables { tables: found.into_iter().map(|(_, table)| table).collect(), unsearched }
}

/// The names of the columns with `words` in their names, comments or synonyms; `None` unless each word is in one of them.
fn find_columns(
    columns: &[ColumnEntry],
    words: &[&str],
    synonyms: impl Fn(&ColumnEntry) -> Vec<String>,
) -> Option<String> {
    let has = |column: &ColumnEntry, word: &str| {
        let texts = [Some(&column.name), column.comment.as_ref()];
        let contains = |text: &String| text.to_lowercase().contains(word);
        texts.into_iter().flatten().any(contains) || synonyms(column).iter().any(contains)
    };
    let is_complete = words.iter().all(|word| columns.iter().any(|column| has(column, word)));
    let named = columns.iter().filter(|column| words.iter().any(|word| has(column, word)));
    let named: Vec<&str> = named.take(COLUMNS_NAMED_MAX).map(|column| column.name.as_str()).collect();
    is_complete.then(|| named.join(", "))
}

/// The tables of a family at least.
const MEMBERS_MIN: usize = 4;

/// What the members of a family have in common: the database, the name without its digits, and the comment.
type FamilyKey = (String, String, Option<String>);

/// The database and the name of a table, in lower case.
type ListedName<'a> = (&'a str, String);

/// Replaces each family among `tables` by one line, at the place of its first table.
fn group_families(tables: Vec<ListedTable>) -> Vec<ListedTable> {
    let mut families: HashMap<FamilyKey, Vec<usize>> = HashMap::new();
    for (index, table) in tables.iter().enumerate() {
        let Some(name) = table.name.as_ref().filter(|name| name.contains(|c: char| c.is_ascii_digit())) else {
            continue;
        };
        let key = (table.database.clone(), name_without_digits(name), table.comment.clone());
        families.entry(key).or_default().push(index);
    }
    let mut names: Vec<ListedName<'_>> = tables
        .iter()
        .filter_map(|table| Some((table.database.as_str(), table.name.as_ref()?.to_lowercase())))
        .collect();
    names.sort_unstable();
    let mut lines: HashMap<usize, Option<ListedTable>> = HashMap::new();
    for members in families.into_values().filter(|members| members.len() >= MEMBERS_MIN) {
        let Some(line) = family_line(&tables, &names, &members) else { continue };
        lines.extend(members.iter().map(|index| (*index, None)));
        lines.extend(members.first().map(|first| (*first, Some(line))));
    }
    let listed = tables.into_iter().enumerate().filter_map(|(index, table)| match lines.remove(&index) {
        Some(line) => line,
        None => Some(table),
    });
    listed.collect()
}

/// The name with one `0` for each run of digits.
fn name_without_digits(name: &str) -> String {
    let mut shape = String::with_capacity(name.len());
    for character in name.chars() {
        match character {
            '0'..='9' if shape.ends_with('0') => {}
            '0'..='9' => shape.push('0'),
            other => shape.push(other),
        }
    }
    shape
}

/// The line of a family; `None` if no pattern lists exactly its members. `names` are those of all tables, in order.
fn family_line(tables: &[ListedTable], names: &[ListedName<'_>], members: &[usize]) -> Option<ListedTable> {
    let members: Vec<&ListedTable> = members.iter().filter_map(|index| tables.get(*index)).collect();
    let (first, last) = (members.first()?, members.last()?);
    let own_names: Vec<&str> = members.iter().filter_map(|table| table.name.as_deref()).collect();
    let pattern = family_pattern(&own_names)?;
    let glob = NamePattern::new(pattern.to_lowercase());
    // Only names with the beginning of the pattern can match it: a database may have very many tables.
    let beginning = glob.as_str().split(['*', '?']).next().unwrap_or_default();
    let start =
        names.partition_point(|(database, name)| (*database, name.as_str()) < (first.database.as_str(), beginning));
    let similar = names
        .get(start..)?
        .iter()
        .take_while(|(database, name)| *database == first.database && name.starts_with(beginning));
    if similar.filter(|(_, name)| glob.matches(name)).count() != members.len() {
        return None;
    }
    let range =
        format!("{} tables, {} to {}; pattern lists them", members.len(), own_names.first()?, own_names.last()?);
    let comment = match &last.comment {
        Some(comment) => format!("{comment} ({range})"),
        None => range,
    };
    Some(ListedTable {
        database: first.database.clone(),
        name: Some(pattern),
        rows: members.iter().map(|table| table.rows).sum(),
        comment: Some(comment),
        columns: None,
    })
}

/// The glob of names that differ only in their digits: `?` for each digit of a number that is not the same everywhere,
/// and `*` if its length differs, too.
fn family_pattern(names: &[&str]) -> Option<String> {
    let split: Vec<Vec<&str>> = names.iter().map(|name| split_digits(name)).collect();
    let first = split.first()?;
    let mut pattern = String::new();
    for (index, part) in first.iter().enumerate() {
        let parts = || split.iter().filter_map(|parts| parts.get(index));
        if parts().all(|other| other == part) {
            pattern.push_str(part);
        } else if parts().all(|other| other.len() == part.len()) {
            pattern.extend(std::iter::repeat_n('?', part.len()));
        } else {
            pattern.push('*');
        }
    }
    // Other characters of a name cannot be written in a glob.
    let has_wildcards = names.iter().any(|name| name.contains(['*', '?']));
    (!has_wildcards && pattern.contains(['*', '?'])).then_some(pattern)
}

/// Runs of digits, and what is between them.
fn split_digits(name: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        let is_digit = first.is_ascii_digit();
        let end = rest.find(|c: char| c.is_ascii_digit() != is_digit).unwrap_or(rest.len());
        let (part, after) = rest.split_at(end);
        parts.push(part);
        rest = after;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, matching: &[&str], others: &[&str]) {
        let pattern = TablePattern::parse(pattern);
        let finds = |name: &&str| {
            let status = TableStatus::Readable;
            let table = TableEntry { name: (*name).to_owned(), rows: None, comment: None, facts: None, status };
            pattern.missing_words(&table).is_some_and(|words| words.is_empty())
        };
        assert!(matching.iter().all(finds), "{matching:?}");
        assert!(!others.iter().any(finds), "{others:?}");
    }

    #[test]
    fn plain_text_matches_substrings() {
        check("Port", &["airports", "PORT", "reports"], &["planes"]);
        check("", &["airports", ""], &[]);
        check("port AIR", &["airports", "ports_of_air"], &["ports"]);
    }

    #[test]
    fn globs_match_whole_names() {
        check("ord*", &["orders", "Order items", "ord"], &["reorder"]);
        check("*_2?24*", &["sales_2024", "x_2124_y"], &["sales_224"]);
        check("gr?ße", &["GRÖßE"], &["grße"]);
        check("*", &["", "x"], &[]);
    }

    #[test]
    fn each_word_must_be_in_a_column() {
        let column = |name: &str, comment: Option<&str>| ColumnEntry {
            name: name.to_owned(),
            type_name: "text".to_owned(),
            nullable: true,
            comment: comment.map(str::to_owned),
            ..ColumnEntry::default()
        };
        let columns = [column("Customer_ID", None), column("total", Some("Sum in euros")), column("note", None)];
        let none = |_: &ColumnEntry| Vec::new();
        assert_eq!(find_columns(&columns, &["customer"], none).as_deref(), Some("Customer_ID"));
        assert_eq!(find_columns(&columns, &["customer", "euro"], none).as_deref(), Some("Customer_ID, total"));
        assert_eq!(find_columns(&columns, &["customer", "dollar"], none), None);
        let synonyms = |column: &ColumnEntry| match column.name.as_str() {
            "total" => vec!["Revenue".to_owned()],
            _ => Vec::new(),
        };
        assert_eq!(find_columns(&columns, &["revenue"], synonyms).as_deref(), Some("total"));
    }

    fn grouped(names: &[&str]) -> Vec<(String, Option<u64>)> {
        let table = |name: &&str| ListedTable {
            database: "shop".to_owned(),
            name: Some((*name).to_owned()),
            rows: Some(10),
            comment: None,
            columns: None,
        };
        let lines = group_families(names.iter().map(table).collect());
        lines.into_iter().map(|line| (line.name.unwrap_or_default(), line.rows)).collect()
    }

    #[test]
    fn names_that_differ_in_digits_are_one_line() {
        let months: Vec<String> = (1..=12).map(|month| format!("logs_2024_{month:02}")).collect();
        let mut names: Vec<&str> = vec!["archive"];
        names.extend(months.iter().map(String::as_str));
        names.push("orders");
        let expected = [("archive", 10), ("logs_2024_??", 120), ("orders", 10)];
        assert_eq!(grouped(&names), expected.map(|(name, rows)| (name.to_owned(), Some(rows))));
        let expected = [("part*".to_owned(), Some(40))];
        assert_eq!(grouped(&["part1", "part2", "part10", "part11"]), expected);
    }

    #[test]
    fn few_tables_and_patterns_of_others_are_no_family() {
        assert_eq!(grouped(&["q1", "q2", "q3"]).len(), 3);
        // `part*` would list the notes as well.
        assert_eq!(grouped(&["part1", "part2", "part10", "part11", "partners"]).len(), 5);
    }

    #[test]
    fn a_comment_of_its_own_keeps_a_table_apart() {
        let table = |name: &str, comment: &str| ListedTable {
            database: "shop".to_owned(),
            name: Some(name.to_owned()),
            rows: None,
            comment: Some(comment.to_owned()),
            columns: None,
        };
        let tables: Vec<ListedTable> = (1..=4).map(|number| table(&format!("s{number}"), "Readings")).collect();
        let lines = group_families(tables);
        assert_eq!(lines[0].comment.as_deref(), Some("Readings (4 tables, s1 to s4; pattern lists them)"));
        let tables: Vec<ListedTable> =
            (1..=4).map(|number| table(&format!("s{number}"), &number.to_string())).collect();
        assert_eq!(group_families(tables).len(), 4);
    }
}
