//! What people wrote about the data of databases, in the configuration and in files beside the data; and what does not
//! fit the tables, which is a warning, because the tables may change without the configuration.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use tidegate_core::{Error, ErrorKind, Principal, suggestion};
use tidegate_query::{
    ColumnEntry, ColumnKnowledge, ColumnPath, Database, DatabaseKnowledge, ExampleQuestion, Knowledge, Measure,
    Relationship, TableKnowledge,
};
use tidegate_sql::Statement;
use tokio::time::{Instant, timeout_at};

use super::LoadedConfig;
use super::about_files::AboutFiles;
use super::databases::DatabaseConfig;
use super::problems::Problems;
use super::types::{
    AboutConfig, ColumnConfig, DescribedColumnConfig, ExampleConfig, KnowledgeConfig, MeasureConfig, NotesConfig,
};

/// Bytes of notes at most; the rest is cut off.
const NOTES_BYTES_MAX: usize = 4 << 10;
/// Bytes of a file with notes that are read, to say how long it is.
const NOTES_FILE_BYTES_MAX: u64 = 64 << 10;
/// How long the knowledge of all databases is compared with their tables.
const CHECK_TIME: Duration = Duration::from_secs(10);

/// The files with notes that databases of a configuration name.
pub(super) fn notes_files(databases: &[DatabaseConfig]) -> impl Iterator<Item = &String> {
    databases.iter().filter_map(|entry| match &entry.knowledge.notes {
        Some(NotesConfig::File(notes)) => Some(&notes.file),
        Some(NotesConfig::Text(_)) | None => None,
    })
}

/// The examples of a configuration: the path of the statement, the database, and the statement.
pub(crate) fn declared_examples(loaded: &LoadedConfig) -> impl Iterator<Item = (String, &str, &str)> {
    loaded.config.databases.iter().enumerate().flat_map(|(index, entry)| {
        let examples = entry.knowledge.examples.iter().enumerate();
        examples.map(move |(position, example)| {
            let path = format!("databases[{index}].examples[{position}].sql");
            (path, entry.name.as_str(), example.sql.as_str())
        })
    })
}

/// What is known about `databases`: those of `loaded`, and others with files at the paths in `others`. What does not fit
/// them is a warning.
pub(super) async fn load_knowledge(
    loaded: &LoadedConfig,
    databases: &[Arc<dyn Database>],
    others: &BTreeMap<String, PathBuf>,
    warnings: &Problems,
) -> BTreeMap<String, DatabaseKnowledge> {
    let check = Arc::new(Check { principal: owner_principal(loaded), deadline: Instant::now() + CHECK_TIME });
    let open = |name: &str| databases.iter().find(|database| database.name() == name).cloned();
    let (mut by_database, mut checks) = (BTreeMap::new(), Vec::new());
    for (name, path) in others {
        let files = AboutFiles::new(std::iter::once(path.clone()));
        let (knowledge, problems) = ((Knowledge::default(), files.clone()), Problems::default());
        checks.push(check_database(loaded, knowledge, (open(name), false), check.clone(), problems));
        by_database.insert(name.clone(), DatabaseKnowledge::default().with_source(Arc::new(files), false));
    }
    for (index, entry) in loaded.config.databases.iter().enumerate() {
        let problems = Problems::at_path(format!("databases[{index}]"));
        let notes = read_notes(entry.knowledge.notes.as_ref(), loaded, &problems);
        let owner = build_knowledge(&entry.knowledge, notes, entry.used_keys().has_column_types, &problems);
        let (about, paths) = entry.used_keys().about.unwrap_or((AboutConfig::Ignored, Vec::new()));
        let paths = paths.into_iter().filter(|_| about != AboutConfig::Ignored).map(|path| loaded.resolve(path));
        let files = AboutFiles::new(paths);
        // Tables of a folder that takes rows may come with their first rows.
        let database = (open(&entry.name), entry.used_keys().folder.is_some());
        checks.push(check_database(loaded, (owner.clone(), files.clone()), database, check.clone(), problems));
        let known = DatabaseKnowledge::new(owner).with_source(Arc::new(files), about == AboutConfig::Trusted);
        by_database.insert(entry.name.clone(), known);
    }
    for lines in join_all(checks).await {
        warnings.warn(lines);
    }
    by_database
}

/// How knowledge is compared with tables.
struct Check {
    principal: Principal,
    deadline: Instant,
}

/// This process, as one for which the fewest policies apply: what nobody may see does not fit.
fn owner_principal(loaded: &LoadedConfig) -> Principal {
    let mut principal = (*Principal::process_user()).clone();
    for entry in &loaded.config.databases {
        let exempt = entry.used_keys().policies.iter().flat_map(|policy| policy.except_roles.iter().cloned());
        principal.roles.extend(exempt);
    }
    principal
}

/// What does not fit a database, a line for each: first what is wrong with its keys, which `problems` has.
async fn check_database(
    loaded: &LoadedConfig,
    (owner, files): (Knowledge, AboutFiles),
    (database, may_come_later): (Option<Arc<dyn Database>>, bool),
    check: Arc<Check>,
    problems: Problems,
) -> Vec<String> {
    if let Some(database) = &database {
        check_knowledge(&owner, &**database, may_come_later, &check, &problems).await;
    }
    let mut lines = loaded.warning_lines(&problems.into_vec());
    let read = tokio::task::spawn_blocking(move || files.read()).await;
    let (read, of_files) = read.unwrap_or_default();
    lines.extend(of_files);
    for file in read {
        let problems = Problems::default();
        if let Some(database) = &database {
            check_knowledge(&file.knowledge, &**database, may_come_later, &check, &problems).await;
        }
        lines.extend(file.report(&problems.into_vec()));
    }
    lines
}

/// The notes of a configuration, or of the file that it names.
fn read_notes(notes: Option<&NotesConfig>, loaded: &LoadedConfig, problems: &Problems) -> Option<String> {
    match notes? {
        NotesConfig::Text(text) => Some(text.clone()),
        NotesConfig::File(notes) => read_text(&loaded.resolve(&notes.file))
            .map_err(|error| problems.add("notes.file", format!("{} cannot be read: {error}", notes.file)))
            .ok(),
    }
}

fn read_text(path: &Path) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(NOTES_FILE_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// What `config` says, with the text of its notes. `has_column_types` is true if columns can be declared.
pub(super) fn build_knowledge(
    config: &KnowledgeConfig,
    notes: Option<String>,
    has_column_types: bool,
    problems: &Problems,
) -> Knowledge {
    let tables = config.tables.iter().map(|(name, table)| {
        let problems = problems.at(format_args!("tables.{name}"));
        let columns = table.columns.iter().filter_map(|(column, config)| {
            let problems = problems.at(format_args!("columns.{column}"));
            Some((column.clone(), build_column(config, has_column_types, &problems)?))
        });
        (name.clone(), TableKnowledge { description: table.description.clone(), columns: columns.collect() })
    });
    let tables = tables.filter(|(_, table)| *table != TableKnowledge::default()).collect();
    let to_example =
        |example: &ExampleConfig| ExampleQuestion { question: example.question.clone(), sql: example.sql.clone() };
    let relationships = config.relationships.iter().enumerate().filter_map(|(index, relationship)| {
        let end = |key: &str, text: &str| {
            let path = ColumnPath::parse(text);
            if path.is_none() {
                let message = format!("{text:?} is no column of a table; write both: orders.customer_id");
                problems.add(format_args!("relationships[{index}].{key}"), message);
            }
            path
        };
        let (from, to) = (end("from", &relationship.from), end("to", &relationship.to));
        Some(Relationship { from: from?, to: to? })
    });
    Knowledge {
        notes: notes.map(|notes| cut_notes(notes, problems)),
        tables,
        examples: config.examples.iter().map(to_example).collect(),
        relationships: relationships.collect(),
        measures: build_measures(&config.measures, problems),
    }
}

/// The measures of `config`, without a second one of a name.
fn build_measures(config: &[MeasureConfig], problems: &Problems) -> Vec<Measure> {
    let mut measures: Vec<Measure> = Vec::new();
    for (index, MeasureConfig { name, table, sql, description, unit }) in config.iter().enumerate() {
        if measures.iter().any(|other| other.name == *name) {
            let message = format!("{name} is the name of another measure, which counts; choose another name");
            problems.add(format_args!("measures[{index}].name"), message);
            continue;
        }
        measures.push(Measure {
            name: name.clone(),
            table: table.clone(),
            sql: sql.clone(),
            description: description.clone(),
            unit: unit.clone(),
        });
    }
    measures
}

fn build_column(config: &ColumnConfig, has_column_types: bool, problems: &Problems) -> Option<ColumnKnowledge> {
    let message = "the database itself has the types of its columns; write what the column means: {description: …}";
    let DescribedColumnConfig { kind, description, unit, values, synonyms, example } = match config {
        ColumnConfig::Described(described) => described,
        ColumnConfig::Type(_) => {
            if !has_column_types {
                problems.add("", format!("is a type, and {message}"));
            }
            return None;
        }
    };
    if kind.is_some() && !has_column_types {
        problems.add("type", format!("has no effect: {message}"));
    }
    let known = ColumnKnowledge {
        description: description.clone(),
        unit: unit.clone(),
        values: values.iter().map(|(value, meaning)| (value.clone(), meaning.0.clone())).collect(),
        synonyms: synonyms.clone(),
        example: example.as_ref().map(|example| example.0.clone()),
    };
    (!known.is_empty()).then_some(known)
}

/// The beginning of `notes` that models receive: whole lines, if there are several.
fn cut_notes(mut notes: String, problems: &Problems) -> String {
    if notes.len() <= NOTES_BYTES_MAX {
        return notes;
    }
    let bytes = notes.len();
    let end = (0..=NOTES_BYTES_MAX).rev().find(|end| notes.is_char_boundary(*end)).unwrap_or_default();
    let end = notes[..end].rfind('\n').unwrap_or(end);
    notes.truncate(end);
    let lines = notes.lines().count();
    let message =
        format!("has {bytes} bytes; the maximum is {NOTES_BYTES_MAX}, so it is cut after its line {lines}; shorten it");
    problems.add("notes", message);
    notes
}

/// Reports what of `knowledge` does not fit the tables of `database`. A database that does not answer is reported
/// elsewhere.
async fn check_knowledge(
    knowledge: &Knowledge,
    database: &dyn Database,
    may_come_later: bool,
    check: &Check,
    problems: &Problems,
) {
    let mut tables = KnownTables { database, check, may_come_later, columns: BTreeMap::new() };
    for (name, table) in &knowledge.tables {
        let problems = problems.at(format_args!("tables.{name}"));
        let Some(columns) = tables.columns(name).await else { return };
        match columns {
            Ok(columns) => {
                for column in table.columns.keys().filter(|name| !has_column(columns, name)) {
                    problems.add(format_args!("columns.{column}"), missing_column(column, name, columns));
                }
            }
            Err(error) if error.kind() != ErrorKind::NotFound || may_come_later => {}
            Err(_) => problems.add("", missing_table(name, database, check).await),
        }
    }
    check_relationships(&knowledge.relationships, &mut tables, problems).await;
    check_examples(&knowledge.examples, &mut tables, problems).await;
    check_measures(&knowledge.measures, &mut tables, problems).await;
}

/// The columns of the tables of a database, each table read once.
struct KnownTables<'a> {
    database: &'a dyn Database,
    check: &'a Check,
    may_come_later: bool,
    columns: BTreeMap<String, Result<Vec<ColumnEntry>, Error>>,
}

impl KnownTables<'_> {
    /// The columns of `table`; an error if it is absent or unreadable, and `None` if there is no time left.
    async fn columns(&mut self, table: &str) -> Option<Result<&[ColumnEntry], &Error>> {
        if !self.columns.contains_key(table) {
            let Check { principal, deadline } = self.check;
            let read = timeout_at(*deadline, self.database.columns(table, principal)).await.ok()?;
            self.columns.insert(table.to_owned(), read);
        }
        self.columns.get(table).map(|columns| columns.as_deref())
    }

    /// Whether `table` is absent and may come later.
    async fn is_awaited(&mut self, table: &str) -> bool {
        let is_absent = |error: &Error| error.kind() == ErrorKind::NotFound;
        self.may_come_later && matches!(self.columns(table).await, Some(Err(error)) if is_absent(error))
    }
}

fn has_column(columns: &[ColumnEntry], name: &str) -> bool {
    columns.iter().any(|column| column.name == name)
}

async fn missing_table(table: &str, database: &dyn Database, check: &Check) -> String {
    let catalog = timeout_at(check.deadline, database.catalog(&check.principal)).await.ok().and_then(Result::ok);
    let catalog = catalog.unwrap_or_default();
    let names = catalog.tables.iter().map(|table| table.name.as_str());
    format!("there is no table {table:?}{}", suggestion(table, names))
}

fn missing_column(column: &str, table: &str, columns: &[ColumnEntry]) -> String {
    let near = suggestion(column, columns.iter().map(|column| column.name.as_str()));
    format!("there is no column {column:?} in the table {table:?}{near}")
}

async fn check_relationships(relationships: &[Relationship], tables: &mut KnownTables<'_>, problems: &Problems) {
    for (index, relationship) in relationships.iter().enumerate() {
        let mut types: Vec<String> = Vec::new();
        for (key, end) in [("from", &relationship.from), ("to", &relationship.to)] {
            if tables.is_awaited(&end.table).await {
                continue;
            }
            let KnownTables { database, check, .. } = *tables;
            let Some(columns) = tables.columns(&end.table).await else { return };
            let message = match columns {
                Err(error) if error.kind() == ErrorKind::NotFound => missing_table(&end.table, database, check).await,
                // That it cannot be read is reported with the database.
                Err(_) => continue,
                Ok(columns) => match columns.iter().find(|column| column.name == end.column) {
                    Some(column) => {
                        types.push(column.type_name.clone());
                        continue;
                    }
                    None => missing_column(&end.column, &end.table, columns),
                },
            };
            problems.add(format_args!("relationships[{index}].{key}"), message);
        }
        if let [from, to] = &types[..]
            && type_family(from).zip(type_family(to)).is_some_and(|(from, to)| from != to)
        {
            let Relationship { from: first, to: second } = relationship;
            let message = format!("{first} is {from} and {second} is {to}, which have no equal values");
            problems.add(format_args!("relationships[{index}]"), message);
        }
    }
}

/// What values of a type can equal: columns of the same family can be joined. `None` if values have types of their own.
fn type_family(type_name: &str) -> Option<String> {
    let name = type_name.to_lowercase();
    let has = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
    if name.is_empty() || name == "any" {
        None
    } else if name.ends_with("[]") || has(&["struct", "map", "json", "interval", "point"]) {
        Some(name)
    } else if has(&["timestamp", "date"]) {
        Some("time".to_owned())
    } else if has(&["int", "serial", "real", "double", "float", "numeric", "decimal", "number"]) {
        Some("number".to_owned())
    } else if has(&["char", "text", "string", "clob", "utf8", "uuid"]) {
        Some("text".to_owned())
    } else {
        Some(name)
    }
}

/// Plans each example for the owner.
async fn check_examples(examples: &[ExampleQuestion], tables: &mut KnownTables<'_>, problems: &Problems) {
    let KnownTables { database, check, .. } = *tables;
    'examples: for (index, example) in examples.iter().enumerate() {
        let planned = match Statement::parse(&example.sql, database.dialect()) {
            Ok(statement) => {
                for table in statement.tables() {
                    if tables.is_awaited(table).await {
                        continue 'examples;
                    }
                }
                match timeout_at(check.deadline, database.plan(&statement, &check.principal)).await {
                    Ok(planned) => planned.map(drop),
                    Err(_) => return,
                }
            }
            Err(error) => Err(error),
        };
        if let Some(error) = planned.err().filter(is_wrong) {
            let message = format!("fails, and is left out until it is corrected: {error}");
            problems.add(format_args!("examples[{index}].sql"), message);
        }
    }
    let questions: BTreeSet<&str> = examples.iter().map(|example| example.question.as_str()).collect();
    if questions.len() < examples.len() {
        problems.add("examples", "has a question twice");
    }
}

/// Plans each measure for the owner.
async fn check_measures(measures: &[Measure], tables: &mut KnownTables<'_>, problems: &Problems) {
    let KnownTables { database, check, .. } = *tables;
    for measure in measures {
        if tables.is_awaited(&measure.table).await {
            continue;
        }
        let planning = async {
            let statement = measure.query()?.render(database, &check.principal).await?;
            database.plan(&statement, &check.principal).await.map(drop)
        };
        let Ok(planned) = timeout_at(check.deadline, planning).await else { return };
        if let Some(error) = planned.err().filter(is_wrong) {
            let message = format!("the measure {} fails, and is left out until it is corrected: {error}", measure.name);
            problems.add("measures", message);
        }
    }
}

/// Whether what was planned is wrong. Other errors are those of the database, or of what this process may read.
fn is_wrong(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::InvalidArguments | ErrorKind::NotFound)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_notes_end_with_a_whole_line() {
        let problems = Problems::default();
        let notes = cut_notes("ä line of notes\n".repeat(300), &problems);
        assert!(notes.len() <= NOTES_BYTES_MAX && notes.ends_with("of notes"), "{notes}");
        let problems: Vec<String> = problems.into_vec().iter().map(ToString::to_string).collect();
        let message =
            "notes: has 5100 bytes; the maximum is 4096, so it is cut after its line 240; shorten it".to_owned();
        assert_eq!(problems, [message]);
        let short = Problems::default();
        assert_eq!(cut_notes("short".to_owned(), &short), "short");
        assert!(short.is_empty());
    }

    #[test]
    fn types_of_a_family_join() {
        for (from, to, joins) in [
            ("integer", "bigint", true),
            ("INT64", "numeric(10,2)", true),
            ("text", "character varying", true),
            ("integer", "text", false),
            ("date", "timestamp with time zone", true),
            ("integer[]", "integer", false),
        ] {
            assert_eq!(type_family(from) == type_family(to), joins, "{from} {to}");
        }
    }
}
