//! Options that the configuration declares for tables of CSV, JSON, sheets and logs, in place of detection.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tidegate_core::misspelled_name;
use tidegate_ingest_formats::{CsvCharacters, CsvQuotes};
use tidegate_log_formats::{OtherTime, SuggestedLogFormat};

use super::column_type::ColumnType;
use super::encoding::TextEncoding;
use super::file_kind::{Compression, FileKind, NamedFormat, declared_log_kind, parse_file_name};
use super::limits::FileLimits;
use super::log_options::LogTableOptions;
use super::names::NameRequest;
use super::number_format::NumberFormat;
use super::probe::SuggestedOptions;
use super::ragged_rows::RaggedRows;
use super::table_builder::COMPRESSION_RATIO;
use super::table_keys::{KeyKind, exact_key, is_sql_name, keys_of_file, log_name, sheet_key, suggested_key};
use super::text_reader::TextDecoding;

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
}
