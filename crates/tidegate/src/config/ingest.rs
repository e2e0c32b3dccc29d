//! Tables that take rows: their columns, partitions, transforms and stamps.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::datatypes::{Field, Schema};
use tidegate_core::{AllowedNames, DatabaseTenants};
use tidegate_engines::{Engine, RowSelect};
use tidegate_ingest::delta::PartitionBy;
use tidegate_ingest::{SchemaEvolution, TableDeclaration};
use tidegate_query::{
    ColumnStamp, DeclaredTable, DeclaredType, IngestMaintenance, IngestTable, IngestTarget, NodeMemory, RowTransform,
};
use tidegate_tools::{IngestToolOptions, register_ingest_maintenance, register_ingest_tools};

use super::LoadedConfig;
use super::databases::TABLES_MESSAGE;
use super::problem::ConfigProblem;
use super::problems::Problems;
use super::quantities::OneOrMany;
use super::types::{Config, DatabaseConfig, EvolveConfig, TableConfig};
use crate::ingest::{IngestFolders, OpenedTables};
use crate::node::NodeState;

const NOT_NULL: &str = "not null";
const ATTRIBUTES: &str = "tenant, subject, or claims. and the name of a claim";

/// Opens the ingest folders of `loaded`, by the names of their databases.
pub(super) async fn open_folders(
    loaded: &LoadedConfig,
    folders: &IngestFolders,
    engine: &Engine,
    problems: &Problems,
) -> BTreeMap<String, OpenedTables> {
    let mut opened = BTreeMap::new();
    for (index, entry) in loaded.config.databases.iter().enumerate() {
        let Some(folder) = ingest_folder(entry) else { continue };
        let path = format!("databases[{index}]");
        let Some(tables) = problems.accept(build_declarations(entry, &path, engine)) else { continue };
        let folder = loaded.resolve(folder.clone());
        match folders.open(&entry.name, &folder, tables, entry.create_tables.unwrap_or(true)).await {
            Ok(tables) => {
                opened.insert(entry.name.clone(), tables);
            }
            Err(error) => problems.add(format_args!("{path}.ingest"), error.to_string()),
        }
    }
    opened
}

/// The folders of tables that take rows, by the names of their databases.
pub(crate) fn ingest_folders(loaded: &LoadedConfig) -> Vec<(String, PathBuf)> {
    let entries = loaded.config.databases.iter();
    entries.filter_map(|entry| Some((entry.name.clone(), loaded.resolve(ingest_folder(entry)?)))).collect()
}

/// The folder of an entry whose tables are kept in one.
pub(super) fn ingest_folder(entry: &DatabaseConfig) -> Option<&String> {
    match &entry.ingest {
        Some(OneOrMany::One(folder)) if !has_engine(entry) && entry.network.is_none() => Some(folder),
        _ => None,
    }
}

/// The tables of a database of PostgreSQL or SQLite at `path` that take rows, if `ingest` names any.
pub(super) fn engine_tables(
    ingest: Option<&OneOrMany>,
    options: &BTreeMap<String, TableConfig>,
    path: &str,
) -> Result<Option<Vec<DeclaredTable>>, Vec<ConfigProblem>> {
    let problems = Problems::at_path(path);
    let Some(names) = ingest.cloned().map(OneOrMany::into_vec) else {
        if !options.is_empty() {
            problems.add("tables", TABLES_MESSAGE);
        }
        return problems.checked(None);
    };
    let of_table = |name: &String| problems.at(format_args!("tables.{name}"));
    for (name, table) in options {
        if !names.contains(name) {
            of_table(name).add("", "is not among the tables of ingest");
        }
        if *table != (TableConfig { stamp: table.stamp.clone(), ..TableConfig::default() }) {
            of_table(name).add("", "has keys other than stamp; the database itself has the columns");
        }
    }
    let declare = |name: String| {
        let stamps = options.get(&name).map(|table| build_stamps(table, &of_table(&name))).unwrap_or_default();
        DeclaredTable { name, stamps }
    };
    let tables = names.into_iter().map(declare).collect();
    problems.checked(Some(tables))
}

/// Adds the tools that write rows, and those of operators for `folders`.
pub(super) fn add_tools(
    state: NodeState,
    config: &Config,
    targets: Vec<Arc<dyn IngestTarget>>,
    folders: Vec<Arc<dyn IngestMaintenance>>,
    (tenancy, memory): (DatabaseTenants, &Arc<NodeMemory>),
    built_in: &AllowedNames,
) -> NodeState {
    let (is_advanced, memory) = (config.advanced, memory.clone());
    let options = IngestToolOptions { tenancy, is_advanced, memory, ..IngestToolOptions::default() };
    let state = state.entries(|entries| register_ingest_tools(entries, targets, options.clone(), built_in));
    state.entries(|entries| register_ingest_maintenance(entries, folders, options, built_in))
}

fn has_engine(entry: &DatabaseConfig) -> bool {
    entry.postgres.is_some() || entry.sqlite.is_some()
}

/// The tables that the entry of an ingest folder declares.
fn build_declarations(
    entry: &DatabaseConfig,
    path: &str,
    engine: &Engine,
) -> Result<BTreeMap<String, TableDeclaration>, Vec<ConfigProblem>> {
    let problems = Problems::at_path(path);
    let mut tables = BTreeMap::new();
    for (name, table) in &entry.tables {
        let problems = problems.at(format_args!("tables.{name}"));
        check_keys(table, &problems);
        tables.insert(name.clone(), build_declaration(table, engine, &problems));
    }
    problems.checked(tables)
}

fn build_declaration(table: &TableConfig, engine: &Engine, problems: &Problems) -> TableDeclaration {
    let columns = (!table.columns.0.is_empty()).then(|| build_columns(table, problems));
    let partition_by = problems.parse_items("partition_by", &table.partition_by, |text| {
        parse_partition(text)
            .ok_or_else(|| format!("{text:?} is no partition: write a column, or hour(C), day(C) or month(C)"))
    });
    let by_time = |by: &PartitionBy| !matches!(by, PartitionBy::Column(_));
    if table.retention.is_some() && !partition_by.iter().any(by_time) {
        let message =
            "needs a partition by time, such as partition_by: [day(time)], because rows are removed with their files";
        problems.add("retention", message);
    }
    let transform = table.transform.as_ref().and_then(|sql| match RowSelect::parse(sql, engine) {
        Ok(transform) => Some(Arc::new(transform) as Arc<dyn RowTransform>),
        Err(error) => {
            problems.add("transform", error.to_string());
            None
        }
    });
    TableDeclaration {
        columns,
        partition_by,
        retention: table.retention.map(|time| time.0),
        evolve: match table.evolve {
            Some(EvolveConfig::AddColumns) => SchemaEvolution::AddColumns,
            Some(EvolveConfig::Strict) | None => SchemaEvolution::Strict,
        },
        stamps: build_stamps(table, problems),
        transform,
    }
}

/// A table of the ingest folder `entry` as its configuration declares it, for a process that does not write to the folder.
pub(super) fn declared_table(entry: &DatabaseConfig, name: &str) -> Option<IngestTable> {
    let table = entry.tables.get(name)?;
    // Opening the folder reports the problems of its declarations.
    let problems = Problems::default();
    let has_columns = !table.columns.0.is_empty() && table.transform.is_none();
    Some(IngestTable {
        name: name.to_owned(),
        schema: has_columns.then(|| build_columns(table, &problems)),
        adds_columns: table.evolve == Some(EvolveConfig::AddColumns),
        stamps: build_stamps(table, &problems),
    })
}

fn build_columns(table: &TableConfig, problems: &Problems) -> Arc<Schema> {
    let mut fields: Vec<Field> = Vec::new();
    for (name, text) in &table.columns.0 {
        let problems = problems.at(format_args!("columns.{name}"));
        if fields.iter().any(|other| other.name().eq_ignore_ascii_case(name)) {
            problems.add("", "is the name of another column, apart from its case");
        }
        let declared = DeclaredType::split_from(text).and_then(|(declared, rest)| match rest.trim() {
            "" => Some(declared.field(name, true)),
            rest => rest.eq_ignore_ascii_case(NOT_NULL).then(|| declared.field(name, false)),
        });
        match declared {
            Some(field) => fields.push(field),
            None => {
                let names = DeclaredType::ACCEPTED;
                problems.add("", format!("there is no type {text:?}; there are {names}"));
            }
        }
    }
    Arc::new(Schema::new(fields))
}

fn parse_partition(text: &str) -> Option<PartitionBy> {
    let text = text.trim();
    let Some((kind, column)) = text.strip_suffix(')').and_then(|call| call.split_once('(')) else {
        return (!text.is_empty() && !text.contains(['(', ')'])).then(|| PartitionBy::Column(text.to_owned()));
    };
    let column = column.trim().to_owned();
    match kind.trim().to_ascii_lowercase().as_str() {
        "hour" => Some(PartitionBy::Hour(column)),
        "day" => Some(PartitionBy::Day(column)),
        "month" => Some(PartitionBy::Month(column)),
        _ => None,
    }
}

fn build_stamps(table: &TableConfig, problems: &Problems) -> Vec<ColumnStamp> {
    let stamp = |(column, attribute): (&String, &String)| {
        let is_claim = attribute.strip_prefix("claims.").is_some_and(|claim| !claim.is_empty());
        if !is_claim && attribute != "tenant" && attribute != "subject" {
            let message = format!("{attribute:?} is no attribute of a caller: write {ATTRIBUTES}");
            problems.add(format_args!("stamp.{column}"), message);
        }
        ColumnStamp { column: column.clone(), attribute: attribute.clone() }
    };
    table.stamp.iter().map(stamp).collect()
}

/// Reports keys that only tables of files have.
fn check_keys(table: &TableConfig, problems: &Problems) {
    let of_ingest = TableConfig {
        columns: table.columns.clone(),
        partition_by: table.partition_by.clone(),
        retention: table.retention,
        evolve: table.evolve,
        transform: table.transform.clone(),
        stamp: table.stamp.clone(),
        ..TableConfig::default()
    };
    if *table != of_ingest {
        let message = "a table of an ingest folder has columns, partition_by, retention, evolve, transform and stamp, and no other key";
        problems.add("", message);
    }
}

/// Reports keys of a table of files that only tables of an ingest folder have.
pub(super) fn check_file_table(table: &TableConfig, problems: &Problems) {
    let keys = [
        ("partition_by", !table.partition_by.is_empty()),
        ("retention", table.retention.is_some()),
        ("evolve", table.evolve.is_some()),
        ("transform", table.transform.is_some()),
        ("stamp", !table.stamp.is_empty()),
    ];
    for (member, _) in keys.into_iter().filter(|(_, is_set)| *is_set) {
        problems.add(member, "is for tables of an ingest folder, and this database has files");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_are_parsed() {
        assert_eq!(parse_partition("day(time)"), Some(PartitionBy::Day("time".to_owned())));
        assert_eq!(parse_partition("Month( time )"), Some(PartitionBy::Month("time".to_owned())));
        assert_eq!(parse_partition("device"), Some(PartitionBy::Column("device".to_owned())));
        for text in ["", "week(time)", "day(time", "day)"] {
            assert_eq!(parse_partition(text), None, "{text}");
        }
    }
}
