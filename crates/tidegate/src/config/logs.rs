//! Log sources: their tables, and the columns that are recognised in them.

use std::sync::Arc;

use tidegate_core::{ErrorKind, Principal, nearest_names};
use tidegate_query::{Database, DatabaseKind};
use tidegate_tools::{LogSource, LogSources};

use super::problems::Problems;
use super::telemetry_sources::check_names;
use super::types::Config;

/// The maximum number of names in a message.
const CHOICES_MAX: usize = 20;

/// What was found out about the log sources.
#[derive(Debug, Default)]
pub(super) struct LogSourceReport {
    pub(super) sources: LogSources,
    /// What was recognised, a line for each source.
    pub(super) notes: Vec<String>,
}

/// Builds the sources of `config`, and checks their tables and columns in `databases`. A database that is unreachable is a
/// warning.
pub(super) async fn build_log_sources(
    config: &Config,
    databases: &[Arc<dyn Database>],
    problems: &Problems,
) -> LogSourceReport {
    check_names("logs", "log source", config.logs.iter().map(|entry| entry.name.as_str()), problems);
    let (mut sources, mut notes) = (Vec::new(), Vec::new());
    for (index, entry) in config.logs.iter().enumerate() {
        let problems = problems.at(format_args!("logs[{index}]"));
        let Some((database, table)) = split_table(&entry.table, databases) else {
            problems.add("table", unknown_database(&entry.table, databases));
            continue;
        };
        let source = LogSource {
            name: entry.name.clone(),
            database: database.name().to_owned(),
            table,
            time: entry.time.clone(),
            message: entry.message.clone(),
            severity: entry.severity.clone(),
            fields: entry.fields.clone(),
            access: entry.access.clone(),
            ..LogSource::default()
        };
        match source.recognize_columns(&**database, &Principal::process_user()).await {
            Ok(Ok(columns)) => notes.push(format!("log source {}: {columns}", source.name)),
            Ok(Err(found)) => found.into_iter().for_each(|found| problems.add(found.key, found.message)),
            Err(error)
                if matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::TimedOut)
                    || error.is_configuration_fault() =>
            {
                problems.warn([format!("log source {}: {error}", source.name)]);
            }
            Err(error) => problems.add("table", error.to_string()),
        }
        sources.push(source);
    }
    add_recognized(config, databases, &mut sources, &mut notes).await;
    LogSourceReport { sources: LogSources::new(sources), notes }
}

/// Adds the tables that are logs by themselves, and that no entry declares. Each has the name of its table, or that of its
/// database too if another source has this name.
async fn add_recognized(
    config: &Config,
    databases: &[Arc<dyn Database>],
    sources: &mut Vec<LogSource>,
    notes: &mut Vec<String>,
) {
    for database in databases {
        let entry = config.databases.iter().find(|entry| entry.name == database.name());
        if entry.is_some_and(|entry| entry.used_keys().log_sources == Some(false)) {
            continue;
        }
        // The database itself reports what cannot be read.
        for table in database.log_tables().await.unwrap_or_default() {
            let is_declared =
                |source: &LogSource| source.database == database.name() && source.table.eq_ignore_ascii_case(&table);
            if sources.iter().any(is_declared) {
                continue;
            }
            // A journal has one table.
            let short = if database.kind() == DatabaseKind::Journal { database.name() } else { &table };
            let is_taken = sources.iter().any(|source| source.name == *short);
            let name = if is_taken { format!("{}.{table}", database.name()) } else { short.to_owned() };
            let source = LogSource { name, database: database.name().to_owned(), table, ..LogSource::default() };
            if let Ok(Ok(columns)) = source.recognize_columns(&**database, &Principal::process_user()).await {
                notes.push(format!("log source {} (recognised): {columns}", source.name));
                sources.push(source);
            }
        }
    }
}

/// The database that the name of a table begins with, and the rest of the name.
pub(super) fn split_table<'a>(
    name: &str,
    databases: &'a [Arc<dyn Database>],
) -> Option<(&'a Arc<dyn Database>, String)> {
    let tables = databases.iter().filter_map(|database| {
        let table = name.strip_prefix(database.name())?.strip_prefix('.').filter(|table| !table.is_empty())?;
        Some((database, table.to_owned()))
    });
    tables.max_by_key(|(database, _)| database.name().len())
}

pub(super) fn unknown_database(table: &str, databases: &[Arc<dyn Database>]) -> String {
    let names = || databases.iter().map(|database| database.name());
    let Some((database, _)) = table.split_once('.') else {
        return format!("{table:?} has no database; write database.table");
    };
    let near = nearest_names(database, names());
    let advice = match near.is_empty() {
        true => format!("there are {}", names().take(CHOICES_MAX).collect::<Vec<_>>().join(", ")),
        false => format!("nearest: {}", near.join(", ")),
    };
    format!("there is no database {database:?}; {advice}")
}
