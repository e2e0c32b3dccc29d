//! The tables of a database at one moment, built from a layout; immutable. With their entries in the catalog, their
//! comments, and notes about their columns.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use object_store::path::Path as Location;
use tidegate_core::{Error, ErrorKind};
use tidegate_query::{Catalog, TableEntry, TableStatus};

use super::file_kind::NamedFormat;
use super::layout::{CandidateOrigin, Layout, LayoutProblem, Partitions, TableCandidate};
use super::log_table::{LogDialect, build_log_table, describe_log, is_unrecognized, suggested_options};
use super::names::{NameRequest, assign_names, to_sql_name};
use super::path_sandbox::{FileIdentity, FilesObjectStore, FolderLink, PathSandbox, PinnedFile, is_quick};
use super::probe::{ContentFormat, FileProfile};
use super::skipped_files::SkippedFiles;
use super::table::{ColumnCorrections, FileTable, ProbedFile, build_table, count_narrow_files, to_location};
use super::table_options::{TableDeclarations, suggest_for_request};
use super::walk::{DataFile, FileLimits};

pub(crate) type ProbeResult = Result<Arc<FileProfile>, String>;

#[derive(Debug)]
pub(crate) struct FileTablesSnapshot {
    tables: HashMap<String, Result<Arc<FileTable>, String>>,
    /// For each table name, the names that the table keeps or may get when files are added or removed.
    stable_names: HashMap<String, Vec<String>>,
    /// The names of folders with one file, and those of their tables.
    folders: Vec<(String, String)>,
    pub(crate) catalog: Arc<Catalog>,
    /// The only files that queries on this snapshot can open.
    pub(crate) store: FilesObjectStore,
    /// The links through which the folders were reached.
    links: Vec<FolderLink>,
}

impl FileTablesSnapshot {
    pub(crate) fn of_source(
        tables: HashMap<String, Result<Arc<FileTable>, String>>,
        catalog: Catalog,
        store: FilesObjectStore,
    ) -> Self {
        let stable_names = tables.keys().map(|name| (name.clone(), vec![name.clone()])).collect();
        let (folders, links) = Default::default();
        Self { tables, stable_names, folders, catalog: Arc::new(catalog), store, links }
    }

    /// Whether `tables`, which are of this snapshot, are still as they were scanned. Reads only metadata.
    pub(crate) fn is_current(&self, tables: &[Arc<FileTable>]) -> bool {
        self.links.iter().all(FolderLink::is_unchanged) && tables.iter().all(|table| table.is_current())
    }

    /// Whether that can be found out on the thread of a request.
    pub(crate) fn is_quick(&self, tables: &[Arc<FileTable>]) -> bool {
        is_quick(tables.iter().flat_map(|table| &table.paths), &self.links)
    }

    /// The table called `name` exactly, or else the only one whose name differs only in case, or else the one of the folder
    /// of this name, if it has one file.
    pub(crate) fn find(&self, name: &str) -> Option<(&str, &Result<Arc<FileTable>, String>)> {
        if let Some((name, table)) = self.tables.get_key_value(name) {
            return Some((name, table));
        }
        let folded = name.to_lowercase();
        let mut alike = self.tables.iter().filter(|(other, _)| other.to_lowercase() == folded);
        match (alike.next(), alike.next()) {
            (Some((name, table)), None) => return Some((name, table)),
            (Some(_), Some(_)) => return None,
            (None, _) => {}
        }
        let mut of_folder = self.folders.iter().filter(|(folder, _)| folder.to_lowercase() == folded);
        match (of_folder.next(), of_folder.next()) {
            (Some((_, table)), None) => self.tables.get_key_value(table).map(|(name, table)| (name.as_str(), table)),
            _ => None,
        }
    }

    pub(crate) fn table(&self, name: &str, database: &str) -> Result<Arc<FileTable>, Error> {
        match self.find(name) {
            Some((_, Ok(table))) => Ok(table.clone()),
            Some((name, Err(reason))) => {
                Err(Error::new(ErrorKind::Unavailable, format!("the table {name:?} cannot be read: {reason}")))
            }
            None => Err(self.no_such_table(name, database)),
        }
    }

    /// The tables that are log files, sorted by name.
    pub(crate) fn log_tables(&self) -> Vec<(&str, &LogDialect)> {
        let logs = self.tables.iter().filter_map(|(name, table)| match &table.as_ref().ok()?.format {
            ContentFormat::Log(dialect) => Some((name.as_str(), dialect)),
            _ => None,
        });
        let mut logs: Vec<(&str, &LogDialect)> = logs.collect();
        logs.sort_unstable_by_key(|(name, _)| *name);
        logs
    }

    /// The name of the table called `name`, and the names that it may have after files were added or removed.
    pub(crate) fn possible_names<'a>(&'a self, name: &'a str) -> Vec<&'a str> {
        let others = self.stable_names(name).into_iter().filter(|other| *other != name);
        std::iter::once(name).chain(others).collect()
    }

    /// As [`FileTablesSnapshot::possible_names`], without names that depend on the order of other files.
    pub(crate) fn stable_names(&self, name: &str) -> Vec<&str> {
        self.stable_names.get(name).into_iter().flatten().map(String::as_str).collect()
    }

    /// The columns that do not have the type of their first values, for the administrator.
    pub(crate) fn odd_columns(&self) -> Vec<String> {
        describe_odd_columns(&self.tables)
    }

    fn no_such_table(&self, name: &str, database: &str) -> Error {
        Error::new(ErrorKind::NotFound, format!("there is no table {name:?} in database {database:?}"))
            .with_choices(self.catalog.nearest_tables(name))
            .with_hint("Use the tool list_tables to see the tables.")
    }
}

pub(crate) struct FileSnapshotBuilder {
    pub(crate) probes: HashMap<String, ProbeResult>,
    pub(crate) corrections: Arc<ColumnCorrections>,
    pub(crate) declarations: TableDeclarations,
    pub(crate) batch_rows: usize,
}

pub(super) type FileWithProfile = (DataFile, Option<Arc<FileProfile>>);

/// A requested name with its table, or with the reason why the table cannot be read.
pub(super) type NamedTable = (NameRequest, Result<FileTable, String>, Vec<FileWithProfile>);

impl FileSnapshotBuilder {
    pub(crate) fn files_to_probe(layout: &Layout, limits: &FileLimits) -> Vec<DataFile> {
        let of_delta = layout.delta.iter().flat_map(|candidate| candidate.files_to_probe(limits.probed_files_max));
        let files = layout.candidates.iter().flat_map(|candidate| pick_files(candidate, limits.probed_files_max));
        files.chain(of_delta).cloned().collect()
    }

    /// The snapshot, or the files that must be probed first because their folder is split into separate tables.
    pub(crate) fn assemble(&self, layout: Layout, sandbox: PathSandbox) -> Result<FileTablesSnapshot, Vec<DataFile>> {
        let (mut all, mut missing, mut notes, mut skipped) = (Vec::new(), Vec::new(), Vec::new(), layout.skipped);
        for candidate in layout.candidates {
            if candidate.kind.format == NamedFormat::Log {
                self.add_log(candidate, &mut all, &mut skipped);
            } else {
                self.add_candidate(candidate, &mut all, &mut missing, &mut notes);
            }
        }
        if !missing.is_empty() {
            return Err(missing);
        }
        all.extend(layout.delta.iter().map(|candidate| candidate.build(&self.probes, self.batch_rows)));
        for LayoutProblem { name, reason } in layout.problems {
            let request = NameRequest { location: name.clone(), suffix: "folder".to_owned(), name, folder: None };
            all.push((request, Err(reason), Vec::new()));
        }
        let (mut files, mut by_name, mut stable_names) = (HashMap::new(), HashMap::new(), HashMap::new());
        let mut folders = Vec::new();
        let names = assign_names(&all.iter().map(|(request, ..)| request).collect::<Vec<_>>());
        for (name, (request, table, found)) in names.into_iter().zip(all) {
            stable_names.insert(name.clone(), request.stable_names());
            let is_contested = name != request.name && name != to_sql_name(&request.name);
            let table = if is_contested { with_exact_keys(table, &request) } else { table };
            folders.extend(request.folder.map(|folder| (folder, name.clone())));
            let table = table.map(|mut table| {
                table.name.clone_from(&name);
                let stored = |(file, probed): FileWithProfile| to_stored_file(file, probed.as_deref(), &table.format);
                files.extend(found.into_iter().filter_map(stored));
                Arc::new(table)
            });
            by_name.insert(name, table);
        }
        skipped.add_notes(&mut notes);
        Ok(FileTablesSnapshot {
            catalog: Arc::new(build_catalog(&by_name, notes)),
            tables: by_name,
            stable_names,
            folders,
            links: layout.links,
            store: FilesObjectStore { sandbox, files: Arc::new(files), leases: Arc::default() },
        })
    }

    fn add_candidate(
        &self,
        candidate: TableCandidate,
        all: &mut Vec<NamedTable>,
        missing: &mut Vec<DataFile>,
        notes: &mut Vec<String>,
    ) {
        let candidate = self.apply_declaration(candidate);
        if candidate.origin == CandidateOrigin::SeparateFiles {
            return candidate.into_single_files().for_each(|alone| self.add_candidate(alone, all, missing, notes));
        }
        let (readable, unreadable) = self.probed_files(&candidate);
        if candidate.origin == CandidateOrigin::File
            && let Some((file, partitions, probed)) = readable.first()
        {
            match probed {
                None => return missing.push(file.clone()),
                Some(probed) if probed.sheets.is_empty() => {}
                Some(probed) => return self.add_sheets(&candidate, (file, partitions), &probed.sheets, all, notes),
            }
        }
        let table = build_table(&candidate, &readable, &self.corrections, self.batch_rows);
        let may_fall_apart = candidate.origin == CandidateOrigin::Folder && candidate.files.len() > 1;
        if let (Err(reason), true, true) = (&table, !readable.is_empty(), may_fall_apart) {
            let files = candidate.files.len();
            notes.push(format!("the {files} files of {} are separate tables: {reason}", candidate.name));
            return candidate.into_single_files().for_each(|alone| self.add_candidate(alone, all, missing, notes));
        }
        let is_folder = candidate.origin != CandidateOrigin::File;
        let left_out = if is_folder && table.is_ok() { unreadable.len() } else { 0 };
        let table = match (table, unreadable.first()) {
            (Err(_), Some((_, reason))) if readable.is_empty() => Err(reason.clone()),
            (table, _) => table,
        };
        if is_folder && table.is_ok() {
            for (file, reason) in unreadable {
                let name = format!("{}.{}", candidate.name, file.stem);
                let request =
                    NameRequest { name, suffix: extension(&file.location), location: file.location, folder: None };
                all.push((request, Err(reason), Vec::new()));
            }
        }
        let table = table.map(|table| with_comment(table, left_out, is_folder, &readable));
        if let Ok(FileTable { comment: Some(comment), files, .. }) = &table
            && files.len() > 1
        {
            notes.push(format!("{} is one table: {comment}", candidate.name));
        }
        let first = &candidate.files[0].0.location;
        let (suffix, location) =
            if is_folder { ("folder".to_owned(), candidate.name.clone()) } else { (extension(first), first.clone()) };
        let request = NameRequest { name: candidate.name, suffix, location, folder: candidate.folder_name };
        all.push((request, table, readable.into_iter().map(|(file, _, probed)| (file, probed)).collect()));
    }

    /// Adds the table of a log. Files in a folder that have the name of a log, but are none, are only mentioned.
    fn add_log(&self, candidate: TableCandidate, all: &mut Vec<NamedTable>, skipped: &mut SkippedFiles) {
        let (readable, unreadable) = self.probed_files(&candidate);
        let location = candidate.files.last().map(|(file, _)| file.location.clone()).unwrap_or_default();
        if candidate.origin == CandidateOrigin::RotatedLog && is_unrecognized(&readable) {
            let locations: BTreeSet<String> = candidate.files.iter().map(|(file, _)| file.location.clone()).collect();
            return skipped.add_unrecognized_log(&locations, &location, &suggested_options(&readable));
        }
        let declared = self.declarations.options_for_log(&location);
        if candidate.origin == CandidateOrigin::RotatedLog
            && readable.is_empty()
            && unreadable.is_empty()
            && declared.log.format().is_none()
        {
            // All files are empty.
            return;
        }
        let mut table = build_log_table(&candidate, &readable, &declared.log, self.batch_rows);
        if let (Err(reason), Some((_, of_file))) = (&mut table, unreadable.first())
            && readable.is_empty()
        {
            reason.clone_from(of_file);
        }
        if let Ok(table) = &mut table {
            if let ContentFormat::Log(dialect) = &table.format {
                table.comment = Some(describe_log(dialect, table.files.len(), unreadable.len()));
            }
            for (file, reason) in unreadable {
                let name = file.location.replace('/', ".");
                all.push((
                    NameRequest { name, suffix: "file".to_owned(), location: file.location, folder: None },
                    Err(reason),
                    Vec::new(),
                ));
            }
        }
        let request = NameRequest { name: candidate.name, suffix: "log".to_owned(), location, folder: None };
        all.push((request, table, readable.into_iter().map(|(file, _, probed)| (file, probed)).collect()));
    }

    /// Adds each sheet of a workbook as a table, called like the file if there is only one, else `file_sheet`.
    fn add_sheets(
        &self,
        candidate: &TableCandidate,
        (file, partitions): (&DataFile, &Partitions),
        sheets: &[(String, ProbeResult)],
        all: &mut Vec<NamedTable>,
        notes: &mut Vec<String>,
    ) {
        for (sheet, probed) in sheets {
            let name = if sheets.len() == 1 { candidate.name.clone() } else { format!("{}_{sheet}", candidate.name) };
            let (suffix, location) = (extension(&file.location), file.location.clone());
            let request = NameRequest { name: name.clone(), suffix, location, folder: None };
            let (table, files) = match probed {
                Ok(probed) => {
                    notes.extend(probed.note.as_ref().map(|note| format!("{name}: {note}")));
                    let files = [(file.clone(), partitions.clone(), Some(probed.clone()))];
                    let candidate = TableCandidate { name, ..candidate.clone() };
                    let table = build_table(&candidate, &files, &self.corrections, self.batch_rows);
                    (
                        table.map(|table| with_comment(table, 0, false, &files)),
                        vec![(file.clone(), Some(probed.clone()))],
                    )
                }
                Err(reason) => (Err(name_file(candidate, file, reason)), Vec::new()),
            };
            all.push((request, table, files));
        }
    }

    fn apply_declaration(&self, mut candidate: TableCandidate) -> TableCandidate {
        if candidate.origin == CandidateOrigin::Folder {
            match self.declarations.options_for_file(&candidate.files[0].0.location).one_table {
                Some(true) => candidate.origin = CandidateOrigin::Partitioned,
                Some(false) => candidate.origin = CandidateOrigin::SeparateFiles,
                // Sheets of different workbooks are unrelated in general.
                None if candidate.kind.format.is_workbook() => candidate.origin = CandidateOrigin::SeparateFiles,
                None if candidate.is_named_file() => candidate.origin = CandidateOrigin::SeparateFiles,
                None => {}
            }
        }
        candidate
    }

    /// The files that are readable or not probed, and those that are unreadable.
    fn probed_files(&self, candidate: &TableCandidate) -> (Vec<ProbedFile>, Vec<(DataFile, String)>) {
        let mut readable = Vec::new();
        let mut unreadable = Vec::new();
        for (file, partitions) in &candidate.files {
            match (self.probes.get(&file.location), &file.version) {
                // In a folder, an empty text file has no rows. As a table of its own, it would have no columns either.
                (Some(Err(_)), Ok(version))
                    if version.bytes == 0
                        && candidate.origin != CandidateOrigin::File
                        && file.kind.format.may_grow() => {}
                (Some(Err(reason)), _) | (_, Err(reason)) => {
                    unreadable.push((file.clone(), name_file(candidate, file, reason)));
                }
                (probed, Ok(_)) => {
                    let probed = probed.and_then(|probed| probed.as_ref().ok()).cloned();
                    readable.push((file.clone(), partitions.clone(), probed));
                }
            }
        }
        (readable, unreadable)
    }
}

/// The reason why `file` cannot be read, with its path if the name of its table may be that of a folder.
fn name_file(candidate: &TableCandidate, file: &DataFile, reason: &str) -> String {
    let is_in_folder = candidate.origin != CandidateOrigin::File || file.location.contains('/');
    let is_named = reason.starts_with(&format!("the file {} ", file.location));
    if is_in_folder && !is_named { format!("its file {}: {reason}", file.location) } else { reason.to_owned() }
}

/// The table, or its error, with advice about it alone.
fn with_exact_keys(table: Result<FileTable, String>, request: &NameRequest) -> Result<FileTable, String> {
    let mut table = table.map_err(|reason| suggest_for_request(&reason, request))?;
    table.type_notes.values_mut().for_each(|note| *note = suggest_for_request(note, request));
    Ok(table)
}

/// At most `max` files of the candidate, evenly spread, including the first and the last.
fn pick_files(candidate: &TableCandidate, max: usize) -> impl Iterator<Item = &DataFile> {
    let (count, max) = (candidate.files.len(), max.max(2));
    // Parquet footers are short and contain the number of rows, which the join order depends on.
    let all = count <= max || candidate.kind.format == NamedFormat::Parquet && count <= max * 16;
    let pick = move |index: usize| all || index * (max - 1) % (count - 1) < max - 1;
    candidate.files.iter().enumerate().filter(move |(index, _)| pick(*index)).map(|(_, (file, _))| file)
}

/// The suffix of the name of the table of the file at `location` if another table has this name.
pub(super) fn extension(location: &str) -> String {
    let file_name = location.rsplit('/').next().unwrap_or(location);
    let stem = super::file_kind::parse_file_name(file_name).map_or(file_name, |(stem, _)| stem);
    file_name[stem.len()..].trim_start_matches('.').to_lowercase().replace('.', "_")
}

fn to_stored_file(
    file: DataFile,
    probed: Option<&FileProfile>,
    format: &ContentFormat,
) -> Option<(Location, PinnedFile)> {
    let version = file.version.ok()?;
    let may_be_renamed = matches!(format, ContentFormat::Log(_));
    let identity = probed.and_then(|probed| probed.identity).or_else(|| match format {
        ContentFormat::Log(_) => Some(FileIdentity::growing(version)),
        format => (!format.is_text()).then(|| FileIdentity::exact(version)),
    });
    Some((to_location(&file.location), PinnedFile { path: file.path, identity, may_be_renamed }))
}

/// The tables of a snapshot, or why they cannot be read.
type TablesByName = HashMap<String, Result<Arc<FileTable>, String>>;

/// Maximum number of columns that are described one by one.
const COLUMNS_MAX: usize = 20;

fn build_catalog(tables: &TablesByName, notes: Vec<String>) -> Catalog {
    let entry = |(name, table): (&String, &Result<Arc<FileTable>, String>)| {
        let (rows, comment, status) = match table {
            Ok(table) => (table.rows, table.comment.clone(), TableStatus::Readable),
            Err(reason) => (None, None, TableStatus::Unreadable(reason.clone())),
        };
        TableEntry { name: name.clone(), rows, facts: comment.clone(), comment, status }
    };
    let mut entries: Vec<TableEntry> = tables.iter().map(entry).collect();
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Catalog { tables: entries, notes }
}

/// A line for each column that does not have the type of its first values.
fn describe_odd_columns(tables: &TablesByName) -> Vec<String> {
    let notes = tables.iter().filter_map(|(name, table)| Some((name, &table.as_ref().ok()?.type_notes)));
    let sorted: BTreeMap<&String, &BTreeMap<String, String>> = notes.collect();
    let all = sorted.iter().flat_map(|(table, notes)| notes.iter().map(move |(column, note)| (table, column, note)));
    let mut lines: Vec<String> = all.map(|(table, column, note)| format!("{table}.{column} is {note}")).collect();
    let more = lines.len().saturating_sub(COLUMNS_MAX);
    if more > 0 {
        lines.truncate(COLUMNS_MAX);
        lines.push(format!(
            "{more} more columns do not have the type of their first values; get_schema has the reasons"
        ));
    }
    lines
}

fn with_comment(mut table: FileTable, left_out: usize, is_folder: bool, read: &[ProbedFile]) -> FileTable {
    let format = match &table.format {
        ContentFormat::Csv(dialect) if dialect.characters.delimiter == b'\t' => "TSV",
        ContentFormat::Csv(_) => "CSV",
        ContentFormat::Json => "JSON",
        ContentFormat::Parquet => "Parquet",
        ContentFormat::ArrowFile | ContentFormat::ArrowStream => "Arrow",
        ContentFormat::Sheet(..) => "workbook",
        ContentFormat::Log(_) | ContentFormat::UnrecognizedLog(_) => "log",
    };
    let files = table.files.len();
    let mut comment = match (is_folder, left_out, &table.format) {
        (false, _, ContentFormat::Sheet(sheet)) => format!("sheet {:?} of a workbook", sheet.name),
        (false, ..) => format!("{format} file"),
        (true, 0, _) => format!("folder of {files} {format} files"),
        (true, ..) => format!("folder of {files} {format} files; {left_out} more cannot be read and are left out"),
    };
    let missing = count_narrow_files(&table, read);
    if missing > 0 {
        comment += &format!("; {missing} of them lack columns, which are null there");
    }
    for note in read.iter().filter_map(|(_, _, probed)| probed.as_ref()?.note.as_ref()) {
        comment += &format!("; {note}");
    }
    if let ContentFormat::Csv(dialect) = &table.format {
        if !dialect.has_header {
            comment += "; without a header line";
        }
        if let Some(note) = dialect.decoding.encoding.note() {
            comment += &format!("; {note}");
        }
    }
    table.comment = Some(comment);
    table
}
