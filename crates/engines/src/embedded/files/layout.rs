//! Which files form which table.
//!
//! - A file at the top of a path is a table.
//! - A folder whose data files have one format is one table if probing shows that they have the same columns, or that
//!   one file has the columns of all others. Otherwise, and if the formats differ, each file is a separate table
//!   `folder.file`. So is the only file of a folder, unless it is called `part-…`; statements may also use the name
//!   of the folder, because another file can make it that of the table. The option `one_table` overrides this rule.
//! - A folder with subfolders named `key=value` (Hive partitions) is one table with all files below it, and the keys
//!   are columns. The same applies to the top of a path with such folders, or with only files named `part-…`, as
//!   Spark and others write them.
//! - The log files of a folder are tables as their rotation says: `access.log`, `access.log.1` and `access.log.2.gz`
//!   are one table, from the oldest to the newest.
//! - A folder with a Delta log is one table with the files of its newest version, whatever else is in it. Folders of
//!   other formats with bookkeeping of their own cannot be read.
//! - Other subfolders follow the same rules, with names such as `folder.inner`.
//! - Names that begin with a dot, and folders whose names begin with an underscore, are skipped.

use std::borrow::Cow;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::ScalarValue;
use percent_encoding::percent_decode_str;

use super::file_kind::{FileKind, NamedFormat, take_logs};
use super::path_sandbox::{FolderLink, PathVersion};
use super::recorded_tables::DeltaCandidate;
use super::skipped_files::SkippedFiles;
use super::walk::{DataFile, DataFolder};

/// The partitions of a file: keys and values, the outermost first.
pub(crate) type Partitions = Vec<(String, Option<String>)>;

/// Files that may form one table.
#[derive(Debug, Clone)]
pub(crate) struct TableCandidate {
    pub(crate) name: String,
    pub(crate) kind: FileKind,
    /// In row order; never empty.
    pub(crate) files: Vec<(DataFile, Partitions)>,
    pub(crate) origin: CandidateOrigin,
    /// The folders in which further files of the table may be.
    pub(crate) folders: Vec<PathVersion>,
    /// The name of the folder that the table has alone.
    pub(crate) folder_name: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CandidateOrigin {
    File,
    /// The files of a folder, which may become separate tables.
    Folder,
    /// The files of a folder with partitions, or with the option `one_table`. They always form one table.
    Partitioned,
    /// The files of a folder with `one_table: false`. Each is a table.
    SeparateFiles,
    /// The rotated files of a log in a folder. They always form one table, if they are a log.
    RotatedLog,
}

/// Something that cannot be a table, with the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LayoutProblem {
    pub(crate) name: String,
    pub(crate) reason: String,
}

/// The candidates for tables of a database, before their files are probed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Layout {
    pub(crate) candidates: Vec<TableCandidate>,
    pub(crate) delta: Vec<DeltaCandidate>,
    pub(crate) problems: Vec<LayoutProblem>,
    /// Files in the folders that are not part of any table.
    pub(crate) skipped: SkippedFiles,
    /// The links through which the folders were reached.
    pub(crate) links: Vec<FolderLink>,
}

impl Layout {
    pub(crate) fn add_root(&mut self, mut root: DataFolder) {
        if let Some(folder) = root.delta.take() {
            return self.delta.push(DeltaCandidate { name: root.name, files: root.files, folder });
        }
        let is_one_output = root.files.len() > 1
            && root.folders.is_empty()
            && root.files.iter().all(is_part)
            && common_kind(&root.files).is_some();
        if is_one_output {
            return self.add_folder(root, "");
        }
        root.problem.iter().for_each(|problem| self.add_problem(&root.name, problem));
        let partitions = take_partitions(&mut root);
        self.add_partitioned(&root.name, partitions, root.version.clone());
        self.add_logs(&mut root.files, "", root.version.as_ref());
        root.files.into_iter().for_each(|file| self.add_file(file, ""));
        root.folders.into_iter().for_each(|folder| self.add_folder(folder, ""));
    }

    pub(crate) fn add_problem(&mut self, name: &str, reason: &str) {
        self.problems.push(LayoutProblem { name: name.to_owned(), reason: reason.to_owned() });
    }

    pub(crate) fn files(&self) -> impl Iterator<Item = &DataFile> {
        let of_delta = self.delta.iter().flat_map(|candidate| &candidate.files);
        self.candidates.iter().flat_map(|candidate| candidate.files.iter().map(|(file, _)| file)).chain(of_delta)
    }

    fn add_folder(&mut self, mut folder: DataFolder, prefix: &str) {
        let name = format!("{prefix}{}", folder.name);
        if let Some(delta) = folder.delta.take() {
            return self.delta.push(DeltaCandidate { name, files: folder.files, folder: delta });
        }
        let inner_prefix = format!("{name}.");
        let partitions = take_partitions(&mut folder);
        if folder.problem.is_none() {
            self.add_logs(&mut folder.files, &inner_prefix, folder.version.as_ref());
        }
        if let Some(problem) = &folder.problem {
            // A table without some of its files would give wrong results.
            self.add_problem(&name, problem);
        } else if partitions.is_empty()
            && let Some(kind) = common_kind(&folder.files)
        {
            let files = folder.files.into_iter().map(|file| (file, Partitions::new())).collect();
            let (origin, folders) = (CandidateOrigin::Folder, folder.version.into_iter().collect());
            self.candidates.push(TableCandidate { name, kind, files, origin, folders, folder_name: None });
        } else {
            self.add_partitioned(&name, partitions, folder.version);
            folder.files.into_iter().for_each(|file| self.add_file(file, &inner_prefix));
        }
        folder.folders.into_iter().for_each(|inner| self.add_folder(inner, &inner_prefix));
    }

    /// Adds the table of the partitions `inner` of the folder with the version `outer`.
    fn add_partitioned(&mut self, name: &str, inner: Vec<DataFolder>, outer: Option<PathVersion>) {
        let (mut files, mut folders) = (Vec::new(), Vec::new());
        let mut unread = None;
        let all = DataFolder { folders: inner, version: outer, ..DataFolder::default() };
        collect_files(all, &Partitions::new(), &mut files, &mut folders, &mut unread);
        if let Some(problem) = unread {
            return self.add_problem(name, &problem);
        }
        let Some(((file, partitions), rest)) = files.split_first() else { return };
        let kind = file.kind;
        if rest.iter().any(|(file, _)| !is_same_kind(file.kind, kind)) {
            return self.add_problem(name, "its partitions contain files of different formats");
        }
        let has_same_keys =
            |others: &Partitions| others.iter().map(|(key, _)| key).eq(partitions.iter().map(|(key, _)| key));
        if !rest.iter().all(|(_, others)| has_same_keys(others)) {
            return self.add_problem(name, "its files do not all have the same partition keys");
        }
        let origin = CandidateOrigin::Partitioned;
        let name = name.to_owned();
        self.candidates.push(TableCandidate { name, kind, files, origin, folders, folder_name: None });
    }

    /// Adds the log files among `files` and removes them from `files`.
    fn add_logs(&mut self, files: &mut Vec<DataFile>, prefix: &str, folder: Option<&PathVersion>) {
        for log in take_logs(files) {
            let Some(newest) = log.files.last() else { continue };
            let (name, kind) = (format!("{prefix}{}", log.table), newest.kind);
            let files = log.files.into_iter().map(|file| (file, Partitions::new())).collect();
            let (origin, folders) = (CandidateOrigin::RotatedLog, folder.into_iter().cloned().collect());
            self.candidates.push(TableCandidate { name, kind, files, origin, folders, folder_name: None });
        }
    }

    /// Adds a table with this file only.
    pub(crate) fn add_file(&mut self, file: DataFile, prefix: &str) {
        let (name, kind) = (format!("{prefix}{}", file.stem), file.kind);
        let (files, origin) = (vec![(file, Partitions::new())], CandidateOrigin::File);
        self.candidates.push(TableCandidate { name, kind, files, origin, folders: Vec::new(), folder_name: None });
    }
}

impl TableCandidate {
    /// Whether there is one file, whose name says more than that of its folder.
    pub(crate) fn is_named_file(&self) -> bool {
        matches!(self.files.as_slice(), [(file, _)] if !is_part(file))
    }

    /// Splits into one candidate for each file, with names `folder.file`.
    pub(crate) fn into_single_files(self) -> impl Iterator<Item = Self> {
        let Self { name, kind, files, folders, .. } = self;
        let is_alone = files.len() == 1;
        files.into_iter().map(move |(file, partitions)| Self {
            name: format!("{name}.{}", file.stem),
            kind,
            files: vec![(file, partitions)],
            origin: CandidateOrigin::File,
            // With a second file, the table may get the name of the folder.
            folders: if is_alone { folders.clone() } else { Vec::new() },
            folder_name: is_alone.then(|| name.clone()),
        })
    }
}

/// Whether it has a name that programs give to the parts of one table.
fn is_part(file: &DataFile) -> bool {
    file.stem.starts_with("part-")
}

fn take_partitions(folder: &mut DataFolder) -> Vec<DataFolder> {
    let is_partition = |inner: &DataFolder| parse_partition(&inner.name).is_some();
    let (partitions, plain) = std::mem::take(&mut folder.folders).into_iter().partition(is_partition);
    folder.folders = plain;
    partitions
}

fn common_kind(files: &[DataFile]) -> Option<FileKind> {
    let (first, rest) = files.split_first()?;
    rest.iter().all(|file| is_same_kind(file.kind, first.kind)).then_some(first.kind)
}

/// Rotated logs are compressed when they are old.
fn is_same_kind(a: FileKind, b: FileKind) -> bool {
    a == b || (a.format == b.format && a.format == NamedFormat::Log)
}

fn collect_files(
    folder: DataFolder,
    within: &Partitions,
    files: &mut Vec<(DataFile, Partitions)>,
    folders: &mut Vec<PathVersion>,
    unread: &mut Option<String>,
) {
    folders.extend(folder.version);
    if let (None, Some(problem)) = (&unread, folder.problem) {
        *unread = Some(problem);
    }
    if folder.delta.is_some() {
        *unread = Some("one of its folders is a Delta table".to_owned());
        return;
    }
    let mut others = folder.files;
    let logs = take_logs(&mut others).into_iter().flat_map(|log| log.files);
    files.extend(logs.chain(others).map(|file| (file, within.clone())));
    for inner in folder.folders {
        let mut partitions = within.clone();
        partitions.extend(parse_partition(&inner.name));
        collect_files(inner, &partitions, files, folders, unread);
    }
}

const NULL_VALUE: &str = "__HIVE_DEFAULT_PARTITION__";

/// Splits a folder name into key and value. `None` if the folder is not a partition.
fn parse_partition(folder_name: &str) -> Option<(String, Option<String>)> {
    let (key, value) = folder_name.split_once('=')?;
    if key.is_empty() {
        return None;
    }
    let value = (value != NULL_VALUE).then(|| unescape(value));
    Some((unescape(key), value))
}

/// Decodes Hive's escapes: `%` and two hexadecimal digits.
fn unescape(text: &str) -> String {
    percent_decode_str(text).decode_utf8().map_or_else(|_| text.to_owned(), Cow::into_owned)
}

/// The column for the `values` of one key: whole numbers, dates, or else text.
pub(crate) fn partition_column<'a>(key: &str, values: impl Iterator<Item = &'a Option<String>> + Clone) -> FieldRef {
    let present = || values.clone().flatten();
    let data_type = if present().next().is_none() {
        DataType::Utf8
    } else if present().all(|value| is_whole_number(value)) {
        DataType::Int64
    } else if present().all(|value| is_date(value)) {
        DataType::Date32
    } else {
        DataType::Utf8
    };
    Arc::new(Field::new(key, data_type, values.clone().any(Option::is_none)))
}

/// Digits with leading zeros are codes, not numbers.
fn is_whole_number(value: &str) -> bool {
    value.parse::<i64>().is_ok_and(|number| number.to_string() == value)
}

fn is_date(value: &str) -> bool {
    let shape = value.len() == 10
        && value.bytes().enumerate().all(|(index, byte)| match index {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    shape && matches!(ScalarValue::try_from_string(value.to_owned(), &DataType::Date32), Ok(date) if !date.is_null())
}

pub(crate) fn partition_value(value: Option<&str>, data_type: &DataType) -> Result<ScalarValue, String> {
    let scalar = match value {
        Some(text) => ScalarValue::try_from_string(text.to_owned(), data_type),
        None => ScalarValue::try_new_null(data_type),
    };
    scalar.map_err(|error| error.strip_backtrace())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_called_key_value_are_partitions() {
        let partition = |name| parse_partition(name);
        assert_eq!(partition("year=2024"), Some(("year".to_owned(), Some("2024".to_owned()))));
        assert_eq!(partition("city=S%C3%A3o%2FPaulo"), Some(("city".to_owned(), Some("São/Paulo".to_owned()))));
        assert_eq!(partition("k=100%"), Some(("k".to_owned(), Some("100%".to_owned()))));
        assert_eq!(partition("k=__HIVE_DEFAULT_PARTITION__"), Some(("k".to_owned(), None)));
        assert_eq!(partition("plain"), None);
        assert_eq!(partition("=x"), None);
    }

    #[test]
    fn infers_partition_column_types() {
        let type_of = |values: &[&str]| {
            let values: Vec<Option<String>> = values.iter().map(|value| Some((*value).to_owned())).collect();
            partition_column("k", values.iter()).data_type().clone()
        };
        assert_eq!(type_of(&["1", "20", "-3"]), DataType::Int64);
        assert_eq!(type_of(&["01", "02"]), DataType::Utf8);
        assert_eq!(type_of(&["2024-01-31", "2024-02-29"]), DataType::Date32);
        assert_eq!(type_of(&["2024-02-30"]), DataType::Utf8);
        assert_eq!(type_of(&["a", "1"]), DataType::Utf8);
    }
}
