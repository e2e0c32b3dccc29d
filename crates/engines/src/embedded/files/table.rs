//! A table of files: its columns and files at one moment, built from the files of a candidate, whose columns are
//! merged.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, FieldRef, Fields, Schema, SchemaRef};
use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, ScalarValue, Statistics};
use datafusion::datasource::table_schema::TableSchema;
use object_store::ObjectMeta;
use object_store::path::Path as Location;
use parking_lot::Mutex;
use percent_encoding::percent_decode_str;
use tidegate_query::{ExtensionType, type_name};

use super::column_type::{CoercionMode, merge_fields, replace_null_types, wider};
use super::file_kind::Compression;
use super::json_records::{ABSENT_NOTE, merge_json_fields};
use super::layout::{CandidateOrigin, Partitions, TableCandidate, partition_column, partition_value};
use super::number_format::{NumberEvidence, NumberFormat, ReviewedColumn, review_separators};
use super::path_sandbox::{FileVersion, PathVersion};
use super::probe::{ContentFormat, FileProfile};
use super::recorded_tables::DeltaFiles;
use super::table_options::{CsvDialect, suggest_for_table, suggest_yaml};
use super::walk::DataFile;

#[derive(Debug)]
pub(crate) struct FileTable {
    pub(crate) name: String,
    pub(crate) format: ContentFormat,
    pub(crate) compression: Compression,
    /// The columns in the files, then the partition columns.
    pub(crate) schema: TableSchema,
    /// The columns in JSON files, with the type `Null` at any depth where no value is known. Empty for other formats.
    pub(crate) known_types: Fields,
    /// In row order.
    pub(crate) files: Arc<Vec<TableFile>>,
    /// The files and folders that the table was made from.
    pub(crate) paths: Vec<PathVersion>,
    /// Rows of the table that are in no file.
    pub(crate) recent: RecentRows,
    /// Number of rows, if it is exact in all files.
    pub(crate) rows: Option<u64>,
    pub(crate) estimated_rows: Option<u64>,
    /// Average number of bytes of a row with all columns.
    pub(crate) row_bytes: Option<u64>,
    pub(crate) batch_rows_max: usize,
    /// Typed columns in which a text such as `N/A` means null.
    pub(crate) null_marker_columns: BTreeSet<String>,
    /// Why columns do not have the type of their first values, by name. It quotes a value.
    pub(crate) type_notes: BTreeMap<String, String>,
    /// What the writers of the files say about columns, by name.
    pub(crate) descriptions: BTreeMap<String, String>,
    pub(crate) comment: Option<String>,
    /// What the log of a Delta table declares. `None` for all other tables.
    pub(crate) delta: Option<Arc<DeltaFiles>>,
}

/// Rows that are in no file yet, with all columns of their table.
#[derive(Debug, Clone, Default)]
pub(crate) struct RecentRows {
    pub(crate) batches: Arc<[RecordBatch]>,
    /// Differs when the rows of the table differ.
    pub(crate) version: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct TableFile {
    pub(crate) meta: ObjectMeta,
    /// The version of the file that was scanned, if it could be read.
    pub(crate) version: Option<FileVersion>,
    pub(crate) partition_values: Vec<ScalarValue>,
    /// For the columns in the file, if the format has statistics.
    pub(crate) statistics: Option<Arc<Statistics>>,
}

/// Target size of a batch.
const BATCH_BYTES: u64 = 2 << 20;
/// Minimum number of rows in a batch, however wide they are.
const BATCH_ROWS_MIN: u64 = 16;

impl FileTable {
    /// Number of rows in a batch of `columns_read` columns that keeps it near the target size.
    pub(crate) fn batch_rows(&self, columns_read: usize) -> usize {
        let Some(row_bytes) = self.row_bytes else { return self.batch_rows_max };
        let columns = self.columns().fields().len().max(1) as u64;
        let read_bytes = (row_bytes * columns_read as u64 / columns).max(1);
        let rows = (BATCH_BYTES / read_bytes).max(BATCH_ROWS_MIN);
        usize::try_from(rows).map_or(self.batch_rows_max, |rows| rows.min(self.batch_rows_max))
    }

    /// Whether it is still as it was scanned. Reads only metadata.
    pub(crate) fn is_current(&self) -> bool {
        self.paths.iter().all(PathVersion::is_unchanged)
            && self.delta.as_ref().is_none_or(|delta| !delta.has_next_version())
    }

    pub(crate) fn numbers(&self) -> Option<NumberFormat> {
        match &self.format {
            ContentFormat::Csv(dialect) => dialect.numbers,
            _ => None,
        }
    }

    pub(crate) fn version_of(&self, location: &str) -> Option<FileVersion> {
        let location = to_location(location);
        self.files.iter().find(|file| file.meta.location == location)?.version
    }

    /// The columns of the table, including those of the partitions.
    pub(crate) fn columns(&self) -> &SchemaRef {
        self.schema.table_schema()
    }

    /// For each of the first columns, the positions of the others whose values can be read from it.
    pub(crate) fn revealed_columns(&self) -> &[Vec<usize>] {
        match &self.format {
            ContentFormat::Log(dialect) => dialect.schema.revealed_columns(),
            _ => &[],
        }
    }

    pub(crate) fn partition_columns(&self) -> impl Iterator<Item = &FieldRef> {
        self.schema.table_partition_cols().iter()
    }
}

/// A correction of a column, or a new one, from rows beyond the sample.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ColumnCorrection {
    /// The column with the type that holds the values.
    pub(crate) wider: Option<FieldRef>,
    /// Whether the column contains null markers such as `N/A`.
    pub(crate) has_markers: bool,
    /// Why the column does not have the type of its first values.
    pub(crate) note: Option<String>,
    /// The separators in the values that did not fit.
    pub(crate) evidence: NumberEvidence,
}

/// The version of a file that was read last, and its corrections by column name.
type FileCorrections = (FileVersion, BTreeMap<String, ColumnCorrection>);

/// Corrections of column types from rows beyond the sample, by file location and column name. They apply to the version
/// of the file that was read, and to that file with appended rows.
#[derive(Debug, Default)]
pub(crate) struct ColumnCorrections {
    files: Mutex<HashMap<String, FileCorrections>>,
    revision: std::sync::atomic::AtomicU64,
}

impl ColumnCorrections {
    pub(crate) fn record_column(&self, location: &str, file: FileVersion, column: FieldRef, note: Option<String>) {
        let name = column.name().clone();
        self.record(location, file, &name, |correction| {
            correction.wider = Some(column);
            correction.note = note;
        });
    }

    pub(crate) fn record_separators(&self, location: &str, file: FileVersion, column: &str, evidence: &NumberEvidence) {
        self.record(location, file, column, |correction| correction.evidence.merge(evidence));
    }

    pub(crate) fn record_null_marker(&self, location: &str, file: FileVersion, column: &str) {
        self.record(location, file, column, |correction| correction.has_markers = true);
    }

    fn record(&self, location: &str, file: FileVersion, column: &str, add: impl FnOnce(&mut ColumnCorrection)) {
        let mut files = self.files.lock();
        let (read, columns) = files.entry(location.to_owned()).or_insert_with(|| (file, BTreeMap::new()));
        if !read.may_have_grown_to(&file) {
            columns.clear();
        }
        *read = file;
        add(columns.entry(column.to_owned()).or_default());
        self.revision.fetch_add(1, std::sync::atomic::Ordering::Release);
    }

    pub(crate) fn corrections_for(
        &self,
        location: &str,
        file: &FileVersion,
    ) -> Option<BTreeMap<String, ColumnCorrection>> {
        let files = self.files.lock();
        files.get(location).filter(|(read, _)| read.may_have_grown_to(file)).map(|(_, columns)| columns.clone())
    }

    /// The number of corrections so far. If it changes, tables must be rebuilt.
    pub(crate) fn revision(&self) -> u64 {
        self.revision.load(std::sync::atomic::Ordering::Acquire)
    }

    pub(crate) fn retain(&self, is_there: impl Fn(&str) -> bool) {
        self.files.lock().retain(|location, _| is_there(location));
    }
}

/// Typical ratio of the size of text to its compressed size.
pub(super) const COMPRESSION_RATIO: u64 = 5;

/// A file of a candidate with its profile. `None` if it was not probed.
pub(crate) type ProbedFile = (DataFile, Partitions, Option<Arc<FileProfile>>);

/// Builds the table of `candidate` from `files`, at least one of which was probed. The error is the reason why they do
/// not form one table.
pub(crate) fn build_table(
    candidate: &TableCandidate,
    files: &[ProbedFile],
    corrections: &ColumnCorrections,
    batch_rows_max: usize,
) -> Result<FileTable, String> {
    let probed: Vec<&Arc<FileProfile>> = files.iter().filter_map(|(_, _, probed)| probed.as_ref()).collect();
    let format = probed.first().ok_or("none of its files can be read")?.format.clone();
    if probed.iter().any(|other| other.format != format) {
        return Err("its files have different formats".to_owned());
    }
    let merged = merge_columns(&candidate.name, &format, files, corrections)?;
    if candidate.origin == CandidateOrigin::Folder && !has_all_columns(merged.probed.len(), &probed) {
        return Err("its files have different columns, and no file has the columns of all others".to_owned());
    }
    let fields = if format.is_text() { replace_null_types(&merged.corrected) } else { merged.corrected.clone() };
    let file_schema: SchemaRef = Arc::new(Schema::new(fields));
    let (partition_columns, mut partition_values) = build_partitions(&file_schema, files)?;
    let schema = TableSchema::builder(file_schema.clone()).with_table_partition_cols(partition_columns).build();
    let row_bytes = average(probed.iter().filter_map(|probed| probed.row_bytes));
    let rows = files.iter().map(|(_, _, probed)| probed.as_ref()?.rows).sum::<Option<u64>>();
    let table_files: Vec<TableFile> = files
        .iter()
        .map(|(file, _, probed)| TableFile {
            meta: object_meta(file, probed.as_deref()),
            version: version_of(file, probed.as_deref()),
            partition_values: partition_values.next().unwrap_or_default(),
            statistics: probed.as_ref().and_then(|probed| file_statistics(probed, &file_schema)),
        })
        .collect();
    let text_bytes = table_files.iter().map(|file| file.meta.size).sum::<u64>()
        * if candidate.kind.compression == Compression::UNCOMPRESSED { 1 } else { COMPRESSION_RATIO };
    Ok(FileTable {
        name: candidate.name.clone(),
        known_types: if format == ContentFormat::Json { merged.corrected } else { Fields::empty() },
        format,
        compression: candidate.kind.compression,
        rows,
        estimated_rows: rows.or_else(|| row_bytes.map(|row_bytes| text_bytes / row_bytes.max(1))),
        row_bytes,
        batch_rows_max: batch_rows_max.max(1),
        comment: None,
        null_marker_columns: merged.null_marker_columns,
        type_notes: merged.type_notes,
        descriptions: first_descriptions(&probed),
        files: Arc::new(table_files),
        paths: path_versions(candidate, files),
        recent: RecentRows::default(),
        delta: None,
        schema,
    })
}

/// What the first file that describes a column says about it.
fn first_descriptions(probed: &[&Arc<FileProfile>]) -> BTreeMap<String, String> {
    let mut descriptions = BTreeMap::new();
    for (name, text) in probed.iter().flat_map(|profile| &profile.descriptions) {
        descriptions.entry(name.clone()).or_insert_with(|| text.clone());
    }
    descriptions
}

/// Whether one of the files has so many columns, so that the other files only lack some. Files that merely share some columns
/// are not parts of one table.
fn has_all_columns(columns: usize, probed: &[&Arc<FileProfile>]) -> bool {
    probed.iter().any(|file| file.schema.fields().len() == columns)
}

/// The number of probed files that lack columns of others.
pub(super) fn count_narrow_files(table: &FileTable, files: &[ProbedFile]) -> usize {
    let probed = || files.iter().filter_map(|(_, _, probed)| probed.as_ref());
    let columns = match &table.format {
        // Keys that were found later are in no probed file.
        ContentFormat::Json => {
            let names = probed().flat_map(|probed| probed.schema.fields()).map(|field| field.name());
            names.collect::<BTreeSet<_>>().len()
        }
        _ => table.schema.file_schema().fields().len(),
    };
    probed().filter(|probed| probed.schema.fields().len() < columns).count()
}

/// The merged columns of all files.
struct MergedFiles {
    /// Those that were probed, with the type `Null` where no value is known.
    probed: Fields,
    /// With those that readers found later.
    corrected: Fields,
    null_marker_columns: BTreeSet<String>,
    type_notes: BTreeMap<String, String>,
}

fn merge_columns(
    table: &str,
    format: &ContentFormat,
    files: &[ProbedFile],
    corrections: &ColumnCorrections,
) -> Result<MergedFiles, String> {
    let mut united: Option<Fields> = None;
    let (mut null_marker_columns, mut type_notes, mut evidence) = (BTreeSet::new(), BTreeMap::new(), Vec::new());
    let profiles = || files.iter().filter_map(|(file, _, probed)| Some((file, probed.as_ref()?)));
    for (file, probed) in profiles() {
        null_marker_columns.extend(probed.null_marker_columns.iter().cloned());
        let of_table = |note: &String| suggest_for_table(note, &file.location, table);
        type_notes.extend(probed.type_notes.iter().map(|(name, note)| (name.clone(), of_table(note))));
        let fields = probed.schema.fields();
        evidence.resize_with(probed.evidence.len(), NumberEvidence::default);
        evidence.iter_mut().zip(&probed.evidence).for_each(|(all, of_file)| all.merge(of_file));
        united = Some(match &united {
            None => fields.clone(),
            Some(before) => {
                let merged = merge_file_fields(format, before, fields)?;
                if format.is_text() {
                    note_other_types(before, fields, &merged, &file.location, &mut type_notes);
                }
                merged
            }
        });
    }
    let probed = united.ok_or("none of its files can be read")?;
    let is_absent_in =
        |probed: &FileProfile, name: &str| probed.type_notes.get(name).is_some_and(|note| note == ABSENT_NOTE);
    type_notes.retain(|name, note| note != ABSENT_NOTE || profiles().all(|(_, probed)| is_absent_in(probed, name)));
    let mut corrected = probed.clone();
    // Without corrections, files that were not probed need not be looked up.
    let files = if corrections.revision() > 0 { files } else { &[] };
    for (file, _, probed) in files {
        let Some(version) = version_of(file, probed.as_deref()) else { continue };
        let Some(of_file) = corrections.corrections_for(&file.location, &version) else { continue };
        let mut columns = Vec::new();
        for (name, ColumnCorrection { wider, has_markers, note, evidence: late }) in of_file {
            if let Some(all) = corrected.find(&name).and_then(|(position, _)| evidence.get_mut(position)) {
                all.merge(&late);
            }
            type_notes.extend(note.map(|note| (name.clone(), suggest_for_table(&note, &file.location, table))));
            columns.extend(wider);
            if has_markers {
                null_marker_columns.insert(name);
            }
        }
        corrected = apply_corrections(format, &corrected, &columns);
    }
    let is_document = |column: &&FieldRef| ExtensionType::from_field(column) == Some(ExtensionType::Json);
    for column in corrected.iter().filter(|_| *format == ContentFormat::Json).filter(is_document) {
        let reason = "JSON, because its values are objects or arrays in some files and something else in others";
        type_notes.entry(column.name().clone()).or_insert_with(|| reason.to_owned());
    }
    if let (ContentFormat::Csv(dialect), Some((first, _))) = (format, profiles().next()) {
        let suggest = |option: &str| suggest_for_table(&suggest_yaml(&first.location, option), &first.location, table);
        corrected = review_numbers(dialect, &corrected, evidence, suggest, &mut type_notes);
    }
    Ok(MergedFiles { probed, corrected, null_marker_columns, type_notes })
}

/// The columns of CSV files, after what their numbers mean in one column was compared with the numbers of the others. Adds why
/// columns are text.
fn review_numbers(
    dialect: &CsvDialect,
    fields: &Fields,
    mut evidence: Vec<NumberEvidence>,
    suggest: impl Fn(&str) -> String,
    type_notes: &mut BTreeMap<String, String>,
) -> Fields {
    evidence.resize_with(fields.len(), NumberEvidence::default);
    let mut columns = Vec::with_capacity(fields.len());
    for (field, evidence) in fields.iter().zip(evidence) {
        columns.push(ReviewedColumn { name: field.name(), evidence, data_type: field.data_type().clone() });
    }
    let notes = review_separators(&mut columns, dialect.numbers, dialect.characters.delimiter == b',', suggest);
    let name = |position: usize| fields.get(position).map(|field| field.name().clone());
    type_notes.extend(notes.into_iter().filter_map(|(position, note)| Some((name(position)?, note))));
    let as_reviewed = |(field, column): (&FieldRef, ReviewedColumn<'_>)| {
        Arc::new(field.as_ref().clone().with_data_type(column.data_type))
    };
    fields.iter().zip(columns).map(as_reviewed).collect()
}

/// Adds why columns of text files are text that are something else in the files before the one at `location`.
fn note_other_types(
    before: &Fields,
    fields: &Fields,
    merged: &Fields,
    location: &str,
    type_notes: &mut BTreeMap<String, String>,
) {
    for ((before, field), merged) in before.iter().zip(fields).zip(merged) {
        let types = [before.data_type(), field.data_type()];
        if *merged.data_type() != DataType::Utf8
            || ExtensionType::from_field(merged).is_some()
            || before.name() != field.name()
            || types[0] == types[1]
            || types.contains(&&DataType::Null)
        {
            continue;
        }
        let [before, found] = types.map(type_name);
        // The note of a file may be about another type, which only its own values have.
        if !type_notes.get(field.name()).is_some_and(|note| note.starts_with("text,")) {
            let note = format!("text, because it is {found} in {location} and {before} in files before it");
            type_notes.insert(field.name().clone(), note);
        }
    }
}

fn merge_file_fields(format: &ContentFormat, a: &Fields, b: &Fields) -> Result<Fields, String> {
    let differ = |name: String| format!("column {name:?} has incompatible types");
    match format {
        ContentFormat::Json => Ok(merge_json_fields(a, b)),
        ContentFormat::Parquet => merge_fields(a, b, CoercionMode::NumbersOnly).map_err(differ),
        // Rows of these formats are read by position.
        ContentFormat::Csv(_)
        | ContentFormat::ArrowFile
        | ContentFormat::ArrowStream
        | ContentFormat::Sheet(..)
        | ContentFormat::Log(_)
        | ContentFormat::UnrecognizedLog(_) => {
            let same_names = a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.name() == b.name());
            let same = same_names && (format.is_text() || a == b);
            if same {
                merge_fields(a, b, CoercionMode::ToText).map_err(differ)
            } else {
                Err("its files have different columns".to_owned())
            }
        }
    }
}

fn apply_corrections(format: &ContentFormat, fields: &Fields, columns: &[FieldRef]) -> Fields {
    if *format == ContentFormat::Json {
        return merge_json_fields(fields, columns);
    }
    let apply = |field: &FieldRef| match columns.iter().find(|column| column.name() == field.name()) {
        Some(column) => {
            let wide = wider(field.data_type(), column.data_type(), CoercionMode::ToText).unwrap_or(DataType::Utf8);
            Arc::new(field.as_ref().clone().with_data_type(wide))
        }
        None => field.clone(),
    };
    fields.iter().map(apply).collect()
}

pub(super) type PartitionColumns = Vec<FieldRef>;

/// The partition columns and the values of each file. If a key is also a column in the files, the column in the files
/// has precedence.
pub(super) fn build_partitions(
    file_schema: &Schema,
    files: &[ProbedFile],
) -> Result<(PartitionColumns, impl Iterator<Item = Vec<ScalarValue>> + use<>), String> {
    let keys = files.first().map(|(_, partitions, _)| partitions.as_slice()).unwrap_or_default();
    let mut columns = PartitionColumns::new();
    let mut positions = Vec::new();
    for (position, (key, _)) in keys.iter().enumerate() {
        if file_schema.field_with_name(key).is_ok() || columns.iter().any(|column| column.name() == key) {
            continue;
        }
        columns.push(partition_column(key, files.iter().map(|(_, partitions, _)| &partitions[position].1)));
        positions.push(position);
    }
    let mut values = Vec::with_capacity(files.len());
    for (_, partitions, _) in files {
        let row: Result<Vec<ScalarValue>, String> = positions
            .iter()
            .zip(&columns)
            .map(|(&position, column)| partition_value(partitions[position].1.as_deref(), column.data_type()))
            .collect();
        values.push(row?);
    }
    Ok((columns, values.into_iter()))
}

/// The version that was probed, or else the version that was found.
pub(crate) fn version_of(file: &DataFile, probed: Option<&FileProfile>) -> Option<FileVersion> {
    let looked_into = probed.and_then(|probed| probed.identity.as_ref()).map(|identity| identity.version);
    looked_into.or_else(|| file.version.as_ref().ok().copied())
}

/// What the table of `candidate` is made from: `files`, those that are left out, and the folders of further files.
pub(super) fn path_versions(candidate: &TableCandidate, files: &[ProbedFile]) -> Vec<PathVersion> {
    let profiles: HashMap<&str, &FileProfile> =
        files.iter().filter_map(|(file, _, probed)| Some((file.location.as_str(), probed.as_deref()?))).collect();
    let of_file = |(file, _): &(DataFile, Partitions)| {
        let version = version_of(file, profiles.get(file.location.as_str()).copied())?;
        Some(PathVersion { path: file.path.clone(), version, is_local: file.is_local })
    };
    candidate.files.iter().filter_map(of_file).chain(candidate.folders.iter().cloned()).collect()
}

/// The metadata that DataFusion reads the file by. It contains the location in the database, not the path.
pub(super) fn object_meta(file: &DataFile, probed: Option<&FileProfile>) -> ObjectMeta {
    let version = version_of(file, probed);
    let (size, modified) = match version {
        Some(version) => (version.bytes, version.modified),
        None => (0, std::time::SystemTime::UNIX_EPOCH),
    };
    ObjectMeta {
        location: to_location(&file.location),
        last_modified: modified.into(),
        size,
        e_tag: version.map(|version| version.tag()),
        version: None,
    }
}

/// The location in the store of a snapshot, in which some characters of names are encoded.
pub(crate) fn to_location(location: &str) -> Location {
    Location::from_iter(location.split('/'))
}

/// The location in the database that [`to_location`] has encoded.
pub(crate) fn from_location(location: &Location) -> String {
    percent_decode_str(location.as_ref()).decode_utf8_lossy().into_owned()
}

pub(super) fn file_statistics(probed: &FileProfile, table_columns: &Schema) -> Option<Arc<Statistics>> {
    let statistics = probed.statistics.as_ref();
    if let Some(statistics) = statistics
        && probed.schema.fields() == table_columns.fields()
    {
        return Some(statistics.clone());
    }
    let column_of_file = |field: &Arc<datafusion::arrow::datatypes::Field>| {
        let (position, mine) = probed.schema.column_with_name(field.name())?;
        let of_column = statistics?.column_statistics.get(position)?;
        (mine.data_type() == field.data_type()).then(|| of_column.clone())
    };
    Some(Arc::new(Statistics {
        num_rows: Precision::Exact(usize::try_from(probed.rows?).ok()?),
        total_byte_size: statistics.map_or(Precision::Absent, |statistics| statistics.total_byte_size),
        column_statistics: table_columns
            .fields()
            .iter()
            .map(|field| column_of_file(field).unwrap_or_else(ColumnStatistics::new_unknown))
            .collect(),
    }))
}

pub(super) fn average(values: impl Iterator<Item = u64>) -> Option<u64> {
    let (sum, count) = values.fold((0_u64, 0_u64), |(sum, count), value| (sum + value, count + 1));
    sum.checked_div(count)
}
