//! Options that the configuration declares for tables of CSV, JSON, sheets and logs, in place of detection.
//!
//! One rule for the options of all formats says which files a key under `tables` of a database means. A key is the
//! path of a file with its extension, the name of its table, or a folder that the file is in. If several keys mean a
//! file, the most exact one applies. Only a path makes a table of a file that is none by its name.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tidegate_core::misspelled_name;
use tidegate_ingest_formats::{CsvCharacters, CsvQuotes};
use tidegate_log_formats::{
    DeclaredGroup, LinePattern, LogFormat, LogTimeZone, OtherTime, PatternGroupType, SuggestedLogFormat,
};

use super::column_type::ColumnType;
use super::csv_records::RaggedRows;
use super::file_kind::{
    Compression, FileKind, NamedFormat, declared_log_kind, log_base_name, log_table_name, parse_file_name,
};
use super::names::{NameRequest, to_sql_name};
use super::number_format::NumberFormat;
use super::probe::SuggestedOptions;
use super::snapshot::extension;
use super::table::COMPRESSION_RATIO;
use super::text_reader::{TextDecoding, TextEncoding};
use super::walk::FileLimits;

/// The declared options of a table of CSV files or sheets. Everything that is not declared is detected.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextTableOptions {
    /// Separates values.
    pub delimiter: Option<u8>,
    /// Encloses values; default `"`.
    pub quote: Option<u8>,
    /// Within quotes, takes the meaning from a quote behind it. Default: none; a quote within quotes is doubled.
    pub escape: Option<u8>,
    /// Where quotes may be. Default: [`CsvQuotes::WithinFields`].
    pub quotes: Option<CsvQuotes>,
    /// Whether blanks at the beginning of a value, and behind its closing quote, are no part of it. Default: they are.
    pub skips_blanks: bool,
    /// Whether the first line names the columns. If not, their names are `column_1`, `column_2`, …
    pub has_header: Option<bool>,
    /// The texts that mean null in columns of every type, in addition to the empty one. Default: common markers such as
    /// `N/A`, in columns whose other values have a type.
    pub null: Option<Vec<String>>,
    /// The format of numbers, if it is not that of `1234.5`.
    pub numbers: Option<NumberFormat>,
    /// The character encoding.
    pub encoding: Option<TextEncoding>,
    /// Number of lines before the header (rows of a sheet) to skip.
    pub skip: Option<usize>,
    /// How to handle rows with fewer or more values than there are columns.
    pub ragged: Option<RaggedRows>,
    /// Whether the files of the folder form one table, whatever their columns are.
    pub one_table: Option<bool>,
    /// Lines that begin with this character are skipped.
    pub comment: Option<u8>,
    /// How many rows decide the types of the columns. Default: all of small files, and the first ones of others.
    pub infer: Option<Inference>,
    /// Column types by column name. A value that does not fit is an error; it does not change the type.
    pub columns: BTreeMap<String, ColumnType>,
    /// How a log file is read. A declared format makes any text file a log.
    pub log: LogTableOptions,
}

impl TextTableOptions {
    pub(crate) fn check_columns(&self, names: &[String]) -> Result<(), String> {
        let Some(unknown) = self.columns.keys().find(|column| !names.contains(column)) else { return Ok(()) };
        let names = names.join(", ");
        Err(format!("the configuration declares a type for {unknown:?}, but the columns are {names}"))
    }
}

/// How many rows decide the types of the columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inference {
    /// All: a file is read once before the first answer.
    Full,
    /// Those of a sample. A later value that does not fit corrects the type.
    Sample,
}

impl TextTableOptions {
    /// The number of rows that decide the types of a file of so many bytes.
    pub(crate) fn inferred_rows(&self, bytes: u64, compression: Compression, limits: &FileLimits) -> usize {
        let text_bytes = match compression {
            Compression::UNCOMPRESSED => bytes,
            _ => bytes.saturating_mul(COMPRESSION_RATIO),
        };
        let is_small = text_bytes <= limits.fully_inferred_bytes;
        match self.infer {
            Some(Inference::Full) => usize::MAX,
            None if is_small => usize::MAX,
            None | Some(Inference::Sample) => limits.inferred_rows,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct CsvDialect {
    pub(crate) characters: CsvCharacters,
    pub(crate) has_header: bool,
    pub(crate) comment: Option<u8>,
    /// The declared null texts. If `None`, common markers mean null in typed columns.
    pub(crate) nulls: Option<Arc<[String]>>,
    pub(crate) numbers: Option<NumberFormat>,
    pub(crate) decoding: TextDecoding,
    pub(crate) ragged: Option<RaggedRows>,
}

impl CsvDialect {
    /// The dialect that the options describe, with `delimiter` if they do not declare one.
    pub(crate) fn new(delimiter: u8, options: &TextTableOptions) -> Self {
        let characters = CsvCharacters {
            escape: options.escape,
            quotes: options.quotes.unwrap_or(CsvQuotes::WithinFields),
            skips_blanks: options.skips_blanks,
            ..CsvCharacters::new(options.delimiter.unwrap_or(delimiter), options.quote.unwrap_or(b'"'))
        };
        Self {
            characters,
            has_header: options.has_header.unwrap_or(true),
            comment: options.comment,
            nulls: options.null.as_deref().map(Into::into),
            numbers: options.numbers,
            decoding: TextDecoding {
                encoding: options.encoding.unwrap_or_default(),
                skip_lines: options.skip.unwrap_or_default(),
            },
            ragged: options.ragged,
        }
    }

    /// Whether a row of so many fields is a row of a table with so many columns.
    pub(crate) fn takes_fields(&self, fields: usize, columns: usize) -> bool {
        match self.ragged {
            None => fields == columns,
            Some(RaggedRows::Fill) => fields <= columns,
            Some(RaggedRows::Trim) => true,
        }
    }
}

/// A key with the way in which it names a file, and its options.
type Declaration<'a> = (KeyKind, &'a String, &'a Arc<TextTableOptions>);

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TableDeclarations(Arc<BTreeMap<String, Arc<TextTableOptions>>>);

impl TableDeclarations {
    pub(crate) fn new(tables: BTreeMap<String, TextTableOptions>) -> Self {
        Self(Arc::new(tables.into_iter().map(|(name, table)| (name, Arc::new(table))).collect()))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What is wrong with the keys for these files, each with its location and format.
    pub(crate) fn problems(&self, files: &[(&str, NamedFormat)]) -> Vec<String> {
        let problems = self.unused(files).into_iter().chain(self.contested(files));
        problems.chain(self.ineffective_columns(files)).collect()
    }

    /// The keys that mean none of the files, each with a similar name if there is one.
    fn unused(&self, files: &[(&str, NamedFormat)]) -> Vec<String> {
        let mut used: BTreeSet<&String> = BTreeSet::new();
        for (location, format) in files {
            let keys = keys_of_file(location, *format == NamedFormat::Log);
            used.extend(keys.filter_map(|(kind, name)| Some(self.entry(kind, &name)?.0)));
            if format.is_workbook() {
                let prefix = sheet_key(location, "");
                used.extend(self.0.keys().filter(|key| key.starts_with(&prefix)));
            }
        }
        let names: Vec<String> =
            files.iter().flat_map(|(location, _)| [suggested_key(location), log_name(location)]).collect();
        let unused = self.0.iter().filter(|(name, _)| !used.contains(name));
        let reason = |(name, options): (&String, &Arc<TextTableOptions>)| {
            let longer = longer_keys(name, files);
            if !longer.is_empty() {
                let keys = list_keys(&longer);
                return format!(
                    "there is no table {name:?} yet, so its options have no effect; to mean files below a folder, write \
                     {keys}"
                );
            }
            if let Some(near) = misspelled_name(name, names.iter().map(String::as_str)) {
                return format!("there is no table {name:?}; did you mean {near:?}?");
            }
            let mut reason = format!("there is no table {name:?} yet, so its options have no effect");
            if options.log.format().is_some() {
                reason += &format!(
                    "; if its file does not have the name of a log, write the path of the file with its extension, such as \
                     \"{name}.txt\""
                );
            }
            reason
        };
        unused.map(reason).collect()
    }

    /// The keys that are the name of several files, with the keys that mean one of them.
    fn contested(&self, files: &[(&str, NamedFormat)]) -> Vec<String> {
        let mut by_name = BTreeMap::<&String, BTreeSet<String>>::new();
        let (mut folders, mut workbooks) = (BTreeSet::new(), BTreeSet::new());
        for (location, format) in files {
            let is_log = *format == NamedFormat::Log;
            match self.find(location, is_log) {
                Some((KeyKind::Table, name, _)) => {
                    by_name.entry(name).or_default().insert(exact_key(location, is_log));
                    if format.is_workbook() {
                        workbooks.insert(name);
                    }
                }
                Some((KeyKind::Folder, name, _)) => {
                    folders.insert(name);
                }
                Some((KeyKind::Path, ..)) | None => {}
            }
        }
        let problem = |(name, mut keys): (&String, BTreeSet<String>)| {
            if folders.contains(name) {
                keys.insert(format!("{name}_folder"));
            }
            let except = match workbooks.contains(name) {
                true => ", but to a workbook only if it has one sheet with cells",
                false => "",
            };
            let reason = || {
                let keys = list_keys(&keys);
                format!(
                    "several files have the name {name:?}, and its options apply to each of them{except}; to mean one of \
                     them, write its key: {keys}"
                )
            };
            (keys.len() > 1).then(reason)
        };
        by_name.into_iter().filter_map(problem).collect()
    }

    /// The declared columns that have no effect, because files of their format have types of their own.
    fn ineffective_columns(&self, files: &[(&str, NamedFormat)]) -> BTreeSet<String> {
        let problem = |(location, named): &(&str, NamedFormat)| {
            let format = match named {
                NamedFormat::Parquet => "Parquet",
                NamedFormat::Arrow => "Arrow",
                NamedFormat::Log => "log",
                NamedFormat::Csv | NamedFormat::Tsv | NamedFormat::Json | NamedFormat::JsonLines => return None,
                NamedFormat::Xlsx | NamedFormat::Ods => return None,
            };
            let (_, name, options) = self.find(location, *named == NamedFormat::Log)?;
            let names = || options.columns.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
            let problem = || format!("{name}: columns ({}) has no effect on {format} files, which have types", names());
            (!options.columns.is_empty()).then(problem)
        };
        files.iter().filter_map(problem).collect()
    }

    /// Whether a format of a log is declared.
    pub(crate) fn has_log_formats(&self) -> bool {
        self.0.values().any(|table| table.log.format().is_some())
    }

    /// The options of the table that contains the file at `location`.
    pub(crate) fn options_for_file(&self, location: &str) -> Arc<TextTableOptions> {
        self.find(location, false).map(|(.., options)| options.clone()).unwrap_or_default()
    }

    /// The options of the log that the file at `location` belongs to.
    pub(crate) fn options_for_log(&self, location: &str) -> Arc<TextTableOptions> {
        self.find(location, true).map(|(.., options)| options.clone()).unwrap_or_default()
    }

    /// The kind of the file at `location`, if the configuration declares its format as that of a log. `is_named`: a path of
    /// the database names the file with its extension.
    pub(crate) fn declared_log_kind(&self, location: &str, is_named: bool) -> Option<FileKind> {
        let (kind, _, options) = self.find(location, true)?;
        options.log.format()?;
        // Else the key of a log would make tables of the keys and passwords that are in files beside it.
        let is_meant = is_named || kind == KeyKind::Path || parse_file_name(location).is_some();
        if is_meant { declared_log_kind(location) } else { None }
    }

    /// The options of a sheet of the workbook at `location`: those of the table of the sheet, or else of the workbook. The
    /// name of the workbook is that of a table only if the sheet `is_alone`.
    pub(crate) fn options_for_sheet(&self, location: &str, sheet: &str, is_alone: bool) -> Arc<TextTableOptions> {
        let of_workbook = || {
            let keys = keys_of_file(location, false).filter(|(kind, _)| is_alone || *kind != KeyKind::Table);
            self.find_first(keys).map(|(.., options)| options)
        };
        let of_sheet = self.entry(KeyKind::Table, &sheet_key(location, sheet)).map(|(_, options)| options);
        of_sheet.or_else(of_workbook).cloned().unwrap_or_default()
    }

    /// Where the configuration declares `option` for this sheet of the workbook at `location`. The only sheet has the options
    /// of the workbook, unless it has its own, which replace those.
    pub(crate) fn suggest_for_sheet(&self, location: &str, sheet: &str, is_alone: bool, option: &str) -> String {
        let name = sheet_key(location, sheet);
        match self.entry(KeyKind::Table, &name) {
            Some((declared, _)) => suggest_table_yaml(declared, option),
            None if is_alone => suggest_yaml(location, option),
            None => suggest_table_yaml(&name, option),
        }
    }

    fn find(&self, location: &str, is_log: bool) -> Option<Declaration<'_>> {
        if self.is_empty() { None } else { self.find_first(keys_of_file(location, is_log)) }
    }

    fn find_first(&self, mut keys: impl Iterator<Item = (KeyKind, String)>) -> Option<Declaration<'_>> {
        keys.find_map(|(kind, name)| self.entry(kind, &name).map(|(key, options)| (kind, key, options)))
    }

    /// The declaration whose key is `name`, or what statements have for this name of a table.
    fn entry(&self, kind: KeyKind, name: &str) -> Option<(&String, &Arc<TextTableOptions>)> {
        let as_in_sql = || self.0.iter().find(|(key, _)| kind != KeyKind::Path && is_sql_name(key, name));
        self.0.get_key_value(name).or_else(as_in_sql)
    }
}

/// The keys that end with `name` below a folder: of files, or of folders.
fn longer_keys(name: &str, files: &[(&str, NamedFormat)]) -> BTreeSet<String> {
    let is_longer = |(kind, key): &(KeyKind, String)| {
        let separator = if *kind == KeyKind::Path { '/' } else { '.' };
        key.strip_suffix(name).is_some_and(|folder| folder.ends_with(separator))
    };
    let of_file = |(location, format): &(&str, NamedFormat)| {
        let is_log = *format == NamedFormat::Log;
        let (kind, key) = keys_of_file(location, is_log).find(is_longer)?;
        Some(if kind == KeyKind::Folder { key } else { exact_key(location, is_log) })
    };
    files.iter().filter_map(of_file).collect()
}

/// The number of keys that a message lists.
const LISTED_KEYS_MAX: usize = 10;

fn list_keys(keys: &BTreeSet<String>) -> String {
    let listed: Vec<String> = keys.iter().take(LISTED_KEYS_MAX).map(|key| format!("{key:?}")).collect();
    let more = keys.len() - listed.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", listed.join(", "))
}

/// Where the configuration declares `option` for the table of the file at `location`.
pub(crate) fn suggest_yaml(location: &str, option: &str) -> String {
    suggest_table_yaml(&suggested_key(location), option)
}

/// `text` with its suggestions for the file at `location` made for its `table`, which has further files. If one of them had
/// options of its own, they would be separate tables.
pub(super) fn suggest_for_table(text: &str, location: &str, table: &str) -> String {
    let file = suggested_key(location);
    match file.strip_prefix(table).is_some_and(|rest| rest.starts_with('.')) {
        true => text.replace(&declaration_of(&file), &declaration_of(table)),
        false => text.to_owned(),
    }
}

/// `text` with its suggestions for the table of `request` made with a key that means no other table. Several request its name.
pub(super) fn suggest_for_request(text: &str, request: &NameRequest) -> String {
    let NameRequest { name, suffix, location, .. } = request;
    let (key, exact) = match suffix.as_str() {
        "folder" => (name.clone(), format!("{name}_folder")),
        suffix => (suggested_key(location), exact_key(location, suffix == "log")),
    };
    text.replace(&declaration_of(&key), &declaration_of(&exact))
}

fn suggest_table_yaml(name: &str, option: &str) -> String {
    format!("{}{option}}}}}", declaration_of(name))
}

/// Where the options of a table are declared.
fn declaration_of(name: &str) -> String {
    let is_word = |character: char| character.is_alphanumeric() || character == '_';
    // In YAML, `2024` is a number.
    let is_plain = name.chars().all(is_word) && !name.starts_with(|first: char| first.is_numeric());
    let name = if is_plain { name.to_owned() } else { format!("{name:?}") };
    format!("in tidegate.yaml, under its database, tables: {{{name}: {{")
}

/// What the advice for a log says beside options that give no column of times.
const NO_KNOWN_TIME: &str = "its lines have no known time, so it becomes a table for SQL, but no log source";

/// The options that declare a suggested format of a log.
pub(super) fn suggested_log_options(suggested: &SuggestedLogFormat) -> SuggestedOptions {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
    let (options, other_time, has_time) = match suggested {
        SuggestedLogFormat::Json { has_time } => ("format: json".to_owned(), None, *has_time),
        SuggestedLogFormat::Pattern { expression, time, other_time } => {
            let groups = time.as_ref().map(|time| format!(", groups: {{time: {}}}", quoted(time))).unwrap_or_default();
            let options = format!("pattern: {}{groups}", quoted(expression));
            (options, other_time.as_ref(), expression.contains("(?<time>"))
        }
    };
    let doubt = other_time.map(|OtherTime { example, declarations }| {
        let others = declarations.iter().map(|declaration| quoted(declaration)).collect::<Vec<_>>().join(" or ");
        format!("the time {example:?} has other readings: if this one is wrong, declare {others}")
    });
    SuggestedOptions { options, doubt: doubt.or_else(|| (!has_time).then(|| NO_KNOWN_TIME.to_owned())) }
}

/// How a key names a file, from the most exact way to the least.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeyKind {
    /// Its path with its extension: `sales/report.csv`, `./console`. The rotated files of a log have that of the file that is
    /// written.
    Path,
    /// The name of its table, or the one that the table has if another file has this name: `sales.report`,
    /// `sales.report_csv`.
    Table,
    /// A folder that it is in, or the name of its table if a file has this name: `sales`, `sales_folder`.
    Folder,
}

/// The keys that mean the file at `location`, the most exact one first. With `is_log`, the file is read as a log.
fn keys_of_file(location: &str, is_log: bool) -> impl Iterator<Item = (KeyKind, String)> {
    let short = without_folder_number(location);
    let forms = std::iter::once(location).chain((short != location).then_some(short));
    let paths = forms.clone().flat_map(move |form| [Some(path_key(form)), is_log.then(|| log_path_key(form))]);
    let tables = forms.clone().flat_map(move |form| table_names(form, is_log));
    let folders = forms.flat_map(folder_names);
    let paths = paths.flatten().map(|path| (KeyKind::Path, path));
    paths.chain(tables.map(|table| (KeyKind::Table, table))).chain(folders.map(|folder| (KeyKind::Folder, folder)))
}

/// The key of the file at `location` in advice: the name of its table, or its path if it is no table by its name.
fn suggested_key(location: &str) -> String {
    let location = without_folder_number(location);
    match parse_file_name(location) {
        Some((_, kind)) if kind.format == NamedFormat::Log => log_name(location),
        Some((stem, _)) => stem.replace('/', "."),
        None => path_key(location),
    }
}

/// The key that means only the file at `location`, or the log that it belongs to.
fn exact_key(location: &str, is_log: bool) -> String {
    if is_log { log_path_key(location) } else { path_key(location) }
}

/// The path as a key. It is no name of a table: one without `/` and without an extension begins with `./`.
fn path_key(location: &str) -> String {
    if location.contains(['/', '.']) { location.to_owned() } else { format!("./{location}") }
}

/// The key of a sheet of the workbook at `location`.
fn sheet_key(location: &str, sheet: &str) -> String {
    format!("{}_{sheet}", suggested_key(location))
}

/// The name of the table of the file at `location`, if it is a log.
fn log_name(location: &str) -> String {
    let (folder, file_name) = split_folder(without_folder_number(location));
    format!("{}{}", folder.replace('/', "."), log_table_name(file_name))
}

/// The path of the file that is written, of the log that the file at `location` belongs to, as a key.
fn log_path_key(location: &str) -> String {
    let (folder, file_name) = split_folder(location);
    path_key(&format!("{folder}{}", log_base_name(file_name)))
}

/// Whether statements have `key` for the table that is called `name`.
fn is_sql_name(key: &str, name: &str) -> bool {
    let plain = |character: char| if character.is_alphanumeric() { character } else { '_' };
    // The comparison of letters spares most names the parser of SQL.
    key.chars().map(plain).eq(name.chars().map(plain)) && key == to_sql_name(name)
}

/// The folder with its last `/`, and the name of the file.
fn split_folder(location: &str) -> (&str, &str) {
    location.split_at(location.rfind('/').map_or(0, |end| end + 1))
}

fn table_names(location: &str, is_log: bool) -> Vec<String> {
    let named = parse_file_name(location);
    let is_named_log = named.is_some_and(|(_, kind)| kind.format == NamedFormat::Log);
    let of_log = (is_log || is_named_log).then(|| (log_name(location), "log".to_owned()));
    let of_file = named.filter(|_| !is_named_log).map(|(stem, _)| (stem.replace('/', "."), extension(location)));
    let with_suffix = |(name, suffix): (String, String)| {
        let suffixed = format!("{name}_{suffix}");
        [name, suffixed]
    };
    of_log.into_iter().chain(of_file).flat_map(with_suffix).collect()
}

fn folder_names(location: &str) -> impl Iterator<Item = String> {
    location.rmatch_indices('/').flat_map(move |(end, _)| {
        let name = location[..end].replace('/', ".");
        let suffixed = format!("{name}_folder");
        [name, suffixed]
    })
}

/// `location` without the folder of the database that it begins with if there are several: `2~sales/`.
fn without_folder_number(location: &str) -> &str {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match location.split_once('/') {
        Some((folder, rest)) if folder.split_once('~').is_some_and(|(number, _)| is_number(number)) => rest,
        _ => location,
    }
}

/// The declared options of a log file. Everything that is not declared is detected.
#[derive(Debug, Clone, Default)]
pub struct LogTableOptions {
    format: Option<LogFormat>,
    groups: Vec<DeclaredGroup>,
    time_zone: Option<LogTimeZone>,
}

/// An option of a log file that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogOptionProblem {
    /// The key of the option, such as `format` or `groups.status`.
    pub key: String,
    /// What is wrong, and what would be right.
    pub message: String,
}

impl LogTableOptions {
    /// Parses the options as the configuration writes them: the name of a format; a regular expression with named
    /// groups, which is the format `pattern`; types of its groups (`integer`, `time`, `time %Y-%m-%d %T`); and the zone
    /// of times that name none.
    ///
    /// # Errors
    /// One problem for each wrong option.
    pub fn parse(
        format: Option<&str>,
        pattern: Option<&str>,
        groups: &BTreeMap<String, String>,
        time_zone: Option<&str>,
    ) -> Result<Self, Vec<LogOptionProblem>> {
        let mut problems = Vec::new();
        let mut report = |key: String, message: String| problems.push(LogOptionProblem { key, message });
        let mut declared = Vec::new();
        for (name, text) in groups {
            let (type_name, time_format) =
                text.split_once(' ').map_or((text.as_str(), None), |(a, b)| (a, Some(b.trim())));
            match PatternGroupType::from_name(type_name, time_format) {
                Ok(group_type) => declared.push(DeclaredGroup { name: name.clone(), group_type }),
                Err(error) => report(format!("groups.{name}"), error.to_string()),
            }
        }
        let time_zone = time_zone.and_then(|name| {
            LogTimeZone::from_name(name).map_err(|error| report("time_zone".to_owned(), error.to_string())).ok()
        });
        let is_pattern = format.is_none_or(|name| name.trim().eq_ignore_ascii_case("pattern"));
        let format = match (format, pattern) {
            (_, Some(pattern)) if is_pattern => match LinePattern::new(pattern, &declared) {
                Ok(pattern) => Some(LogFormat::Pattern(Arc::new(pattern))),
                Err(error) => {
                    report("pattern".to_owned(), error.to_string());
                    None
                }
            },
            (Some(name), Some(_)) => {
                report("pattern".to_owned(), format!("has no effect with format: {name}; write format: pattern"));
                None
            }
            (Some(name), None) => {
                LogFormat::from_name(name).map_err(|error| report("format".to_owned(), error.to_string())).ok()
            }
            (None, _) => None,
        };
        if pattern.is_none() && !groups.is_empty() {
            report(
                "groups".to_owned(),
                "declares types of the groups of a pattern, but there is no pattern".to_owned(),
            );
        }
        if problems.is_empty() { Ok(Self { format, groups: declared, time_zone }) } else { Err(problems) }
    }

    /// Whether no option is declared.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.format.is_none() && self.time_zone.is_none()
    }

    pub(crate) fn format(&self) -> Option<&LogFormat> {
        self.format.as_ref()
    }

    pub(crate) fn time_zone(&self) -> LogTimeZone {
        self.time_zone.unwrap_or_else(LogTimeZone::utc)
    }
}

impl PartialEq for LogTableOptions {
    fn eq(&self, other: &Self) -> bool {
        let name = |options: &Self| options.format.as_ref().map(LogFormat::name);
        let same_pattern = match (&self.format, &other.format) {
            (Some(LogFormat::Pattern(a)), Some(LogFormat::Pattern(b))) => a.as_str() == b.as_str(),
            _ => true,
        };
        name(self) == name(other) && same_pattern && self.groups == other.groups && self.time_zone == other.time_zone
    }
}

impl Eq for LogTableOptions {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_options_by_file_or_folder_name() {
        let named = |null: &str| TextTableOptions { null: Some(vec![null.to_owned()]), ..TextTableOptions::default() };
        let declarations =
            TableDeclarations::new([("a", named("1")), ("a.b", named("2"))].map(|(n, t)| (n.to_owned(), t)).into());
        let null_texts =
            |location: &str| declarations.options_for_file(location).null.clone().map(|nulls| nulls.concat());
        assert_eq!(null_texts("a.csv"), Some("1".to_owned()));
        assert_eq!(null_texts("a/x.csv.gz"), Some("1".to_owned()));
        assert_eq!(null_texts("a/b/x.csv"), Some("2".to_owned()));
        assert_eq!(null_texts("ab.csv"), None);
        assert_eq!(null_texts("a.c.csv"), None);
        let declarations = TableDeclarations::new([("b_Q1_2024".to_owned(), named("3"))].into());
        assert_eq!(declarations.options_for_sheet("b.xlsx", "Q1/2024", false), Arc::new(named("3")));
        assert_eq!(declarations.options_for_sheet("b.xlsx", "Q2", false), Arc::default());
        let suggested = |location, sheet, is_alone| {
            let text = declarations.suggest_for_sheet(location, sheet, is_alone, "skip: 2");
            text.rsplit("tables: ").next().unwrap().to_owned()
        };
        assert_eq!(suggested("2024.xlsx", "Q1", false), "{\"2024_Q1\": {skip: 2}}");
        assert_eq!(suggested("2024.xlsx", "Q1", true), "{\"2024\": {skip: 2}}");
        assert_eq!(suggested("b.xlsx", "Q1/2024", true), "{b_Q1_2024: {skip: 2}}");
    }

    #[test]
    fn keys_that_mean_no_file_or_several_are_reported() {
        let declarations = |names: &[&str]| {
            TableDeclarations::new(names.iter().map(|name| ((*name).to_owned(), TextTableOptions::default())).collect())
        };
        let problems = |names: &[&str], files: &[&str]| {
            let with_format = files.iter().map(|location| (*location, parse_file_name(location).unwrap().1.format));
            declarations(names).problems(&with_format.collect::<Vec<_>>())
        };
        assert_eq!(problems(&["a", "a.b"], &["a/x.csv", "a/b.csv"]), [""; 0]);
        let unused = ["there is no table \"a.b\" yet, so its options have no effect"];
        assert_eq!(problems(&["a", "a.b"], &["a.xlsx"]), unused);
        assert_eq!(problems(&["a_b", "c_csv"], &["a.xlsx", "c.csv", "c.json", "2~d/c.csv"]).len(), 1);
        let contested = [
            "several files have the name \"a\", and its options apply to each of them; to mean one of them, write its \
             key: \"1~d/a.csv\", \"2~e/a.csv.gz\", \"a_folder\"",
        ];
        assert_eq!(problems(&["a"], &["1~d/a.csv", "2~e/a.csv.gz", "2~e/a/x.csv"]), contested);
        let of_workbook = problems(&["a"], &["a.csv", "a.xlsx"]);
        let except =
            "apply to each of them, but to a workbook only if it has one sheet with cells; to mean one of them";
        assert!(matches!(of_workbook.as_slice(), [problem] if problem.contains(except)), "{of_workbook:?}");
        for (key, end) in [
            ("a", "write \"n/a.csv\", \"s/2024/a.log\""),
            ("a.csv", "write \"n/a.csv\""),
            ("2024", "write \"s.2024\""),
            ("csv", "so its options have no effect"),
        ] {
            let found = problems(&[key], &["n/a.csv", "s/2024/a.log", "s/2024/a.log.1", "s/2024/b.csv"]);
            assert!(matches!(found.as_slice(), [problem] if problem.ends_with(end)), "{key}: {found:?}");
        }
        assert_eq!(problems(&["app"], &["app.log", "app.log.1", "app-20240101.log"]), [""; 0]);
        assert_eq!(problems(&["1~d/a.csv", "a_folder"], &["1~d/a.csv", "2~e/a.csv.gz", "2~e/a/x.csv"]), [""; 0]);
    }

    #[test]
    fn only_a_path_makes_a_log_of_a_file_that_is_no_table_by_its_name() {
        let log = LogTableOptions::parse(Some("json"), None, &BTreeMap::new(), None).unwrap();
        let options = TextTableOptions { log, ..TextTableOptions::default() };
        let is_log = |key: &str, location: &str, is_named: bool| {
            let declarations = TableDeclarations::new([(key.to_owned(), options.clone())].into());
            declarations.declared_log_kind(location, is_named).is_some()
        };
        for location in ["app.env", "app.key", "app.conf", "app.txt", "app", "app/.env.txt", "app.env.1"] {
            assert!(!is_log("app", location, false), "{location}");
        }
        for (key, location) in [
            ("app", "app.log"),
            ("app", "app.log.1"),
            ("app", "app.json"),
            ("app", "app/events.ndjson"),
            ("app.txt", "app.txt"),
            ("app.txt", "app.txt.1"),
            ("./app", "app"),
            ("d/app.txt", "d/app.txt"),
        ] {
            assert!(is_log(key, location, false), "{key} {location}");
        }
        assert!(is_log("app", "app.txt", true) && !is_log("app", "other.txt", true));
        assert!(!is_log("app_env", "app.env", false) && !is_log("d.app.txt", "d/app.txt", false));
        assert!(!is_log("app", "app.parquet", false), "it is no text");
    }

    fn keys(location: &str, is_log: bool) -> String {
        let keys = keys_of_file(location, is_log).map(|(kind, key)| format!("{kind:?} {key}"));
        keys.collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn a_file_has_its_path_its_table_and_its_folders() {
        assert_eq!(keys("report.csv", false), "Path report.csv, Table report, Table report_csv");
        assert_eq!(
            keys("a/b.c/x.CSV.gz", false),
            "Path a/b.c/x.CSV.gz, Table a.b.c.x, Table a.b.c.x_csv_gz, Folder a.b.c, Folder a.b.c_folder, Folder a, \
             Folder a_folder"
        );
        assert_eq!(keys("app.log.2.gz", true), "Path app.log.2.gz, Path app.log, Table app, Table app_log");
        // They are no tables by their names.
        assert_eq!(keys("app.env", false), "Path app.env");
        assert_eq!(keys("app", false), "Path ./app");
        assert_eq!(
            keys("2~d/x.csv", false),
            "Path 2~d/x.csv, Path x.csv, Table 2~d.x, Table 2~d.x_csv, Table x, Table x_csv, Folder 2~d, \
             Folder 2~d_folder"
        );
    }
}
