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
    ColumnStamp, DeclaredTable, DeclaredType, IngestMaintenance, IngestTable, NodeMemory, RowTransform, WriteTarget,
};
use tidegate_tools::{IngestToolOptions, register_ingest_maintenance, register_ingest_tools};

use super::databases::{DatabaseConfig, FolderConfig};
use super::problem::ConfigProblem;
use super::problems::Problems;
use super::types::{Config, EvolveConfig, IngestTableConfig, StampsConfig};
use super::{ConfigError, LoadedConfig};
use crate::ingest::{IngestFolders, OpenedTables};
use crate::node::ServedState;

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
        let Some(folder) = entry.used_keys().folder else { continue };
        let Some(folder_path) = folder.path() else { continue };
        let path = format!("databases[{index}]");
        let Some(tables) = problems.accept(build_declarations(folder, &path, engine)) else { continue };
        match folders.open(&entry.name, &loaded.resolve(folder_path), tables, folder.creates_tables()).await {
            Ok(tables) => {
                opened.insert(entry.name.clone(), tables);
            }
            Err(error) => problems.add(format_args!("{path}.ingest"), error.to_string()),
        }
    }
    opened
}

/// The folders of tables that take rows, by the names of their databases.
///
/// # Errors
/// When the value of a key of a database is wrong, so that its folder is not known.
pub(crate) fn ingest_folders(loaded: &LoadedConfig) -> Result<Vec<(String, PathBuf)>, ConfigError> {
    let entries = || loaded.config.databases.iter();
    let problem = |(index, entry): (usize, &DatabaseConfig)| entry.value_problem(&format!("databases[{index}]"));
    let problems: Vec<ConfigProblem> = entries().enumerate().filter_map(problem).collect();
    if !problems.is_empty() {
        return Err(loaded.to_error(&problems));
    }
    let folder = |entry: &DatabaseConfig| Some((entry.name.clone(), loaded.resolve(entry.used_keys().folder?.path()?)));
    Ok(entries().filter_map(folder).collect())
}

/// The tables of a database at `path` that take rows, if `names` are some. The database itself has their columns.
pub(super) fn engine_tables(
    names: Option<Vec<String>>,
    options: &BTreeMap<String, StampsConfig>,
    path: &str,
) -> Result<Option<Vec<DeclaredTable>>, Vec<ConfigProblem>> {
    let problems = Problems::at_path(path);
    let is_named = |name: &String| names.as_ref().is_some_and(|names| names.contains(name));
    // Other tables may be described.
    let unnamed = options.iter().filter(|(name, table)| !is_named(name) && !table.stamp.is_empty());
    for (name, _) in unnamed {
        problems.add(format_args!("tables.{name}"), "is not among the tables of ingest");
    }
    let declare = |name: String| {
        let problems = problems.at(format_args!("tables.{name}"));
        let stamps = options.get(&name).map(|table| build_stamps(&table.stamp, &problems)).unwrap_or_default();
        DeclaredTable { name, stamps }
    };
    let tables = names.map(|names| names.into_iter().map(declare).collect());
    problems.checked(tables)
}

/// Adds the tools that write rows, and those of operators for `folders`.
pub(super) fn add_tools(
    state: ServedState,
    config: &Config,
    targets: Vec<Arc<dyn WriteTarget>>,
    folders: Vec<Arc<dyn IngestMaintenance>>,
    (tenancy, memory): (DatabaseTenants, &Arc<NodeMemory>),
    built_in: &AllowedNames,
) -> ServedState {
    let (is_advanced, memory) = (config.advanced, memory.clone());
    let options = IngestToolOptions { tenancy, is_advanced, memory, ..IngestToolOptions::default() };
    let state = state.entries(|entries| register_ingest_tools(entries, targets, options.clone(), built_in));
    state.entries(|entries| register_ingest_maintenance(entries, folders, options, built_in))
}

/// The tables that an ingest folder declares.
fn build_declarations(
    folder: &FolderConfig,
    path: &str,
    engine: &Engine,
) -> Result<BTreeMap<String, TableDeclaration>, Vec<ConfigProblem>> {
    let problems = Problems::at_path(path);
    let mut tables = BTreeMap::new();
    for (name, table) in &folder.tables {
        let problems = problems.at(format_args!("tables.{name}"));
        tables.insert(name.clone(), build_declaration(table, engine, &problems));
    }
    problems.checked(tables)
}

fn build_declaration(table: &IngestTableConfig, engine: &Engine, problems: &Problems) -> TableDeclaration {
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
        stamps: build_stamps(&table.stamp, problems),
        transform,
    }
}

/// A table of `folder` as its configuration declares it, for a process that does not write to the folder.
pub(super) fn declared_table(folder: &FolderConfig, name: &str) -> Option<IngestTable> {
    let table = folder.tables.get(name)?;
    // Opening the folder reports the problems of its declarations.
    let problems = Problems::default();
    let has_columns = !table.columns.0.is_empty() && table.transform.is_none();
    Some(IngestTable {
        name: name.to_owned(),
        schema: has_columns.then(|| build_columns(table, &problems)),
        adds_columns: table.evolve == Some(EvolveConfig::AddColumns),
        stamps: build_stamps(&table.stamp, &problems),
    })
}

fn build_columns(table: &IngestTableConfig, problems: &Problems) -> Arc<Schema> {
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

fn build_stamps(stamps: &BTreeMap<String, String>, problems: &Problems) -> Vec<ColumnStamp> {
    let stamp = |(column, attribute): (&String, &String)| {
        let is_claim = attribute.strip_prefix("claims.").is_some_and(|claim| !claim.is_empty());
        if !is_claim && attribute != "tenant" && attribute != "subject" {
            let message = format!("{attribute:?} is no attribute of a caller: write {ATTRIBUTES}");
            problems.add(format_args!("stamp.{column}"), message);
        }
        ColumnStamp { column: column.clone(), attribute: attribute.clone() }
    };
    stamps.iter().map(stamp).collect()
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
