//! The tables of a database at one moment, made from what was found; immutable.

use std::collections::HashMap;
use std::sync::Arc;

use object_store::path::Path as Location;
use tidegate_core::{Error, ErrorKind, nearest};
use tidegate_query::{Catalog, TableEntry, TableStatus};

use super::identity::FileIdentity;
use super::layout::{Candidate, CandidateOrigin, Layout, Partitions, Problem};
use super::limits::FileLimits;
use super::names::{Wish, grant};
use super::notes::{apart, merged, notes_of};
use super::probe::{Probed, Shape};
use super::table::{FileTable, Learned};
use super::told::Told;
use super::unite::{ProbedFile, location_of, table_of};
use super::walk::FoundFile;
use crate::embedded::store::{CatalogStore, StoredFile};

/// What a look into a file gave.
pub(crate) type ProbeResult = Result<Arc<Probed>, String>;

/// The tables of a database at one moment.
#[derive(Debug)]
pub(crate) struct Snapshot {
    tables: HashMap<String, Result<Arc<FileTable>, String>>,
    /// By the names of tables the names that they keep while files come and go, and may have got another time.
    lasting_names: HashMap<String, Vec<String>>,
    catalog: Arc<Catalog>,
    store: Arc<CatalogStore>,
}

impl Snapshot {
    /// What callers see.
    pub(crate) fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// The only files that queries on this snapshot can open.
    pub(crate) fn store(&self) -> &Arc<CatalogStore> {
        &self.store
    }

    /// The table called `name` exactly, or else the only one that is called so but for upper and lower case.
    pub(crate) fn find(&self, name: &str) -> Option<(&str, &Result<Arc<FileTable>, String>)> {
        if let Some((name, table)) = self.tables.get_key_value(name) {
            return Some((name, table));
        }
        let folded = name.to_lowercase();
        let mut alike = self.tables.iter().filter(|(other, _)| other.to_lowercase() == folded);
        match (alike.next(), alike.next()) {
            (Some((name, table)), None) => Some((name, table)),
            _ => None,
        }
    }

    /// The table called `name`.
    pub(crate) fn table(&self, name: &str, database: &str) -> Result<Arc<FileTable>, Error> {
        match self.find(name) {
            Some((_, Ok(table))) => Ok(table.clone()),
            Some((name, Err(reason))) => {
                Err(Error::new(ErrorKind::Unavailable, format!("the table {name:?} cannot be read: {reason}")))
            }
            None => Err(self.no_such_table(name, database)),
        }
    }

    /// The name of the table called `name`, and those that it may have when other files have come or gone.
    pub(crate) fn names_of(&self, name: &str) -> Vec<String> {
        let mut names = vec![name.to_owned()];
        names.extend(self.lasting_names.get(name).into_iter().flatten().filter(|other| *other != name).cloned());
        names
    }

    /// As [`Snapshot::names_of`], without a name that depends on which files lie before its own.
    pub(crate) fn lasting_names_of(&self, name: &str) -> Vec<String> {
        self.lasting_names.get(name).cloned().unwrap_or_default()
    }

    fn no_such_table(&self, name: &str, database: &str) -> Error {
        let names = || self.catalog.tables.iter().map(|table| table.name.as_str());
        let near = nearest(name, names());
        let choices = if near.is_empty() { names().take(20).map(str::to_owned).collect() } else { near };
        Error::new(ErrorKind::NotFound, format!("there is no table {name:?} in database {database:?}"))
            .with_choices(choices)
            .with_hint("Use the tool list_tables to see the tables.")
    }
}

/// Makes snapshots from layouts.
pub(crate) struct Assembly<'a> {
    pub(crate) probes: &'a HashMap<String, ProbeResult>,
    pub(crate) learned: &'a Learned,
    pub(crate) told: &'a Told,
    pub(crate) batch_rows: usize,
}

/// A table, or why there is none, with what it wishes to be called.
struct Named {
    wish: Wish,
    table: Result<FileTable, String>,
    files: Vec<(FoundFile, Option<Arc<Probed>>)>,
}

impl Assembly<'_> {
    /// The files of `layout` that must be looked into.
    pub(crate) fn to_probe(layout: &Layout, limits: &FileLimits) -> Vec<FoundFile> {
        layout.candidates.iter().flat_map(|candidate| picked(candidate, limits.probed_files_max)).cloned().collect()
    }

    /// The snapshot, or the files that must be looked into first because their folder fell apart.
    pub(crate) fn assemble(
        &self,
        layout: Layout,
        store: impl FnOnce(HashMap<Location, StoredFile>) -> CatalogStore,
    ) -> Result<Snapshot, Vec<FoundFile>> {
        let (mut all, mut missing, mut notes) = (Vec::new(), Vec::new(), Vec::new());
        for candidate in layout.candidates {
            self.add(candidate, &mut all, &mut missing, &mut notes);
        }
        if !missing.is_empty() {
            return Err(missing);
        }
        for Problem { name, reason } in layout.problems {
            let wish = Wish { location: name.clone(), suffix: "folder".to_owned(), name };
            all.push(Named { wish, table: Err(reason), files: Vec::new() });
        }
        let (wishes, tables): (Vec<Wish>, Vec<_>) =
            all.into_iter().map(|named| (named.wish, (named.table, named.files))).unzip();
        let mut files = HashMap::new();
        let mut by_name = HashMap::new();
        let mut lasting_names = HashMap::new();
        for ((name, wish), (table, found)) in grant(&wishes).into_iter().zip(&wishes).zip(tables) {
            lasting_names.insert(name.clone(), wish.lasting_names());
            let table = table.map(|mut table| {
                table.name.clone_from(&name);
                let exact = !table.shape.is_text();
                files.extend(found.into_iter().filter_map(|(file, probed)| stored(file, probed.as_deref(), exact)));
                Arc::new(table)
            });
            by_name.insert(name, table);
        }
        Ok(Snapshot {
            catalog: Arc::new(catalog_of(&by_name, notes_of(notes, &layout.skipped))),
            tables: by_name,
            lasting_names,
            store: Arc::new(store(files)),
        })
    }

    fn add(&self, candidate: Candidate, all: &mut Vec<Named>, missing: &mut Vec<FoundFile>, notes: &mut Vec<String>) {
        let candidate = self.as_declared(candidate);
        if candidate.origin == CandidateOrigin::Apart {
            return candidate.each_alone().for_each(|alone| self.add(alone, all, missing, notes));
        }
        let (readable, unreadable) = self.probed_files(&candidate);
        if candidate.origin == CandidateOrigin::File
            && let Some((file, _, None)) = readable.first()
        {
            return missing.push(file.clone());
        }
        if candidate.origin == CandidateOrigin::File
            && let Some((file, partitions, Some(probed))) = readable.first()
            && !probed.sheets.is_empty()
        {
            return self.add_sheets(&candidate, file, partitions, &probed.sheets, all);
        }
        let table = table_of(&candidate, &readable, self.learned, self.batch_rows);
        let may_fall_apart = candidate.origin == CandidateOrigin::Folder && candidate.files.len() > 1;
        if let (Err(reason), true, true) = (&table, !readable.is_empty(), may_fall_apart) {
            notes.push(apart(&candidate, reason));
            return candidate.each_alone().for_each(|alone| self.add(alone, all, missing, notes));
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
                let wish = Wish { name, suffix: extension(&file.location), location: file.location };
                all.push(Named { wish, table: Err(reason), files: Vec::new() });
            }
        }
        let table = table.map(|table| with_comment(table, left_out, is_folder, &readable));
        notes.extend(table.as_ref().ok().filter(|table| table.files.len() > 1).map(|table| merged(&candidate, table)));
        let first = &candidate.files[0].0.location;
        let (suffix, location) =
            if is_folder { ("folder".to_owned(), candidate.name.clone()) } else { (extension(first), first.clone()) };
        let wish = Wish { name: candidate.name.clone(), suffix, location };
        all.push(Named { wish, table, files: readable.into_iter().map(|(file, _, probed)| (file, probed)).collect() });
    }

    /// The sheets of a workbook, a table each: called like the file if there is one, else `file_sheet`.
    fn add_sheets(
        &self,
        candidate: &Candidate,
        file: &FoundFile,
        partitions: &Partitions,
        sheets: &[(String, ProbeResult)],
        all: &mut Vec<Named>,
    ) {
        for (sheet, probed) in sheets {
            let name = match sheets.len() {
                1 => candidate.name.clone(),
                _ => format!("{}_{sheet}", candidate.name),
            };
            let wish = Wish { name: name.clone(), suffix: extension(&file.location), location: file.location.clone() };
            let (table, files) = match probed {
                Ok(probed) => {
                    let files = [(file.clone(), partitions.clone(), Some(probed.clone()))];
                    let table =
                        table_of(&Candidate { name, ..candidate.clone() }, &files, self.learned, self.batch_rows);
                    (table.map(|table| with_comment(table, 0, false, &[])), vec![(file.clone(), Some(probed.clone()))])
                }
                Err(reason) => (Err(reason.clone()), Vec::new()),
            };
            all.push(Named { wish, table, files });
        }
    }

    /// `candidate` with what the owner declares of its files: one table in any case, or never.
    fn as_declared(&self, mut candidate: Candidate) -> Candidate {
        if candidate.origin == CandidateOrigin::Folder {
            match self.told.about(&candidate.files[0].0.location).one_table {
                Some(true) => candidate.origin = CandidateOrigin::Partitioned,
                Some(false) => candidate.origin = CandidateOrigin::Apart,
                // Workbooks may hold anything.
                None if candidate.kind.format.workbook().is_some() => candidate.origin = CandidateOrigin::Apart,
                None => {}
            }
        }
        candidate
    }

    /// The files that can be read, or that nobody looked into, and those that cannot.
    fn probed_files(&self, candidate: &Candidate) -> (Vec<ProbedFile>, Vec<(FoundFile, String)>) {
        let mut readable = Vec::new();
        let mut unreadable = Vec::new();
        for (file, partitions) in &candidate.files {
            match (self.probes.get(&file.location), &file.fingerprint) {
                // In a folder an empty text file has no rows; in a table of its own it has no columns either.
                (Some(Err(_)), Ok(fingerprint))
                    if fingerprint.bytes == 0 && candidate.origin != CandidateOrigin::File && is_text(file) => {}
                (Some(Err(reason)), _) | (None, Err(reason)) => unreadable.push((file.clone(), reason.clone())),
                (Some(Ok(probed)), Ok(_)) => readable.push((file.clone(), partitions.clone(), Some(probed.clone()))),
                (None, Ok(_)) => readable.push((file.clone(), partitions.clone(), None)),
                (Some(Ok(_)), Err(reason)) => unreadable.push((file.clone(), reason.clone())),
            }
        }
        (readable, unreadable)
    }
}

fn is_text(file: &FoundFile) -> bool {
    file.kind.format.may_grow()
}

/// At most `max` of the candidate's files, evenly spread, the first and the last among them.
fn picked(candidate: &Candidate, max: usize) -> impl Iterator<Item = &FoundFile> {
    let (count, max) = (candidate.files.len(), max.max(2));
    // Parquet's footers are short and tell the rows, which the order of joins depends on.
    let all = count <= max || matches!(candidate.kind.format, super::kind::NamedFormat::Parquet) && count <= max * 16;
    let pick = move |index: usize| all || index * (max - 1) % (count - 1) < max - 1;
    candidate.files.iter().enumerate().filter(move |(index, _)| pick(*index)).map(|(_, (file, _))| file)
}

fn with_comment(mut table: FileTable, left_out: usize, is_folder: bool, read: &[ProbedFile]) -> FileTable {
    let format = match &table.shape {
        Shape::Csv(dialect) if dialect.delimiter == b'\t' => "TSV",
        Shape::Csv(_) => "CSV",
        Shape::Json => "JSON",
        Shape::Parquet => "Parquet",
        Shape::ArrowFile | Shape::ArrowStream => "Arrow",
        Shape::Sheet(..) => "workbook",
    };
    let files = table.files.len();
    table.comment = Some(match (is_folder, left_out) {
        (false, _) if matches!(table.shape, Shape::Sheet(..)) => sheet_comment(&table.shape),
        (false, _) => format!("{format} file"),
        (true, 0) => format!("folder of {files} {format} files"),
        (true, _) => format!("folder of {files} {format} files; {left_out} more cannot be read and are left out"),
    });
    let columns = table.schema.file_schema().fields().len();
    let lacks = |probed: &&Arc<Probed>| probed.schema.fields().len() < columns;
    let lacking = read.iter().filter_map(|(_, _, probed)| probed.as_ref()).filter(lacks).count();
    let mut more = Vec::new();
    if lacking > 0 {
        more.push(format!("; {lacking} of them lack columns, which are null there"));
    }
    if let Shape::Csv(dialect) = &table.shape {
        more.extend((!dialect.has_header).then(|| "; without a header line".to_owned()));
        let encoding = dialect.form.encoding;
        more.extend(encoding.is_recognised().then(|| format!("; taken for {}", encoding.name())));
    }
    if let Some(comment) = &mut table.comment {
        comment.push_str(&more.concat());
    }
    table
}

fn sheet_comment(shape: &Shape) -> String {
    match shape {
        Shape::Sheet(_, name) => format!("sheet {name:?} of a workbook"),
        _ => String::new(),
    }
}

fn extension(location: &str) -> String {
    let file_name = location.rsplit('/').next().unwrap_or(location);
    let stem = super::kind::kind_of(file_name).map_or(file_name, |(stem, _)| stem);
    file_name[stem.len()..].trim_start_matches('.').to_lowercase().replace('.', "_")
}

fn stored(file: FoundFile, probed: Option<&Probed>, exact: bool) -> Option<(Location, StoredFile)> {
    let fingerprint = file.fingerprint.ok()?;
    let looked_into = probed.and_then(|probed| probed.identity);
    let identity = looked_into.or_else(|| exact.then(|| FileIdentity::exact(fingerprint)));
    Some((location_of(&file.location), StoredFile { path: file.path, identity }))
}

fn catalog_of(tables: &HashMap<String, Result<Arc<FileTable>, String>>, notes: Vec<String>) -> Catalog {
    let mut entries: Vec<TableEntry> = tables
        .iter()
        .map(|(name, table)| match table {
            Ok(table) => TableEntry {
                name: name.clone(),
                rows: table.rows,
                comment: table.comment.clone(),
                status: TableStatus::Readable,
            },
            Err(reason) => TableEntry {
                name: name.clone(),
                rows: None,
                comment: None,
                status: TableStatus::Unreadable(reason.clone()),
            },
        })
        .collect();
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Catalog { tables: entries, notes }
}
