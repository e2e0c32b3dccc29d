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
use super::names::to_sql_name;
use super::number_format::NumberFormat;
use super::probe::SuggestedOptions;
use super::ragged_rows::RaggedRows;
use super::rotated_logs::log_table_name;
use super::table_builder::COMPRESSION_RATIO;
use super::text_reader::TextDecoding;
use super::walk::DataFile;

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

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TableDeclarations(Arc<BTreeMap<String, Arc<TextTableOptions>>>);

impl TableDeclarations {
    pub(crate) fn new(tables: BTreeMap<String, TextTableOptions>) -> Self {
        Self(Arc::new(tables.into_iter().map(|(name, table)| (name, Arc::new(table))).collect()))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The names that are those of no table of the files at `locations`, each with a similar name if there is one.
    pub(crate) fn unused<'a>(&self, locations: impl Iterator<Item = &'a str>) -> Vec<String> {
        let stems: Vec<String> =
            locations.flat_map(|location| [table_name_for_file(location), log_name_for_file(location)]).collect();
        let is_used = |name: &str| {
            let is_sheet = |stem: &String| name.strip_prefix(stem.as_str()).is_some_and(|sheet| sheet.starts_with('_'));
            stems.iter().any(|stem| is_table_or_folder(name, stem) || is_sheet(stem))
        };
        let unused = self.0.keys().filter(|name| !is_used(name));
        let reason = |name: &String| match misspelled_name(name, stems.iter().map(String::as_str)) {
            Some(near) => format!("there is no table {name:?}; did you mean {near:?}?"),
            None => format!("there is no table {name:?} yet, so its options have no effect"),
        };
        unused.map(reason).collect()
    }

    /// The declared columns that have no effect, because files of their format have types of their own.
    pub(crate) fn ineffective_columns<'a>(&self, files: impl Iterator<Item = &'a DataFile>) -> BTreeSet<String> {
        let problem = |file: &DataFile| {
            let format = match file.kind.format {
                NamedFormat::Parquet => "Parquet",
                NamedFormat::Arrow => "Arrow",
                NamedFormat::Log => "log",
                NamedFormat::Csv | NamedFormat::Tsv | NamedFormat::Json | NamedFormat::JsonLines => return None,
                NamedFormat::Xlsx | NamedFormat::Ods => return None,
            };
            let (name, options) = self.declaration(&table_name_for_file(&file.location))?;
            let names = || options.columns.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
            let problem = || format!("{name}: columns ({}) has no effect on {format} files, which have types", names());
            (!options.columns.is_empty()).then(problem)
        };
        files.filter_map(problem).collect()
    }

    /// Whether a format of a log is declared.
    pub(crate) fn has_log_formats(&self) -> bool {
        self.0.values().any(|table| table.log.format().is_some())
    }

    /// The options of the table that contains the file at `location`. A table has the name of its file or of the folder
    /// of the file, with dots between folder names.
    pub(crate) fn options_for_file(&self, location: &str) -> Arc<TextTableOptions> {
        self.options_for_table(&table_name_for_file(location))
    }

    /// The options of the log that the file at `location` belongs to.
    pub(crate) fn options_for_log(&self, location: &str) -> Arc<TextTableOptions> {
        let of_log = self.options_for_table(&log_name_for_file(location));
        if *of_log == TextTableOptions::default() { self.options_for_file(location) } else { of_log }
    }

    /// The kind of the file at `location`, if the configuration declares its format as that of a log.
    pub(crate) fn declared_log_kind(&self, location: &str) -> Option<FileKind> {
        if self.is_empty() || self.options_for_log(location).log.format().is_none() {
            return None;
        }
        declared_log_kind(location)
    }

    /// The options of a sheet of the workbook at `location`: those of the table of the sheet, or else of the workbook.
    pub(crate) fn options_for_sheet(&self, location: &str, sheet: &str) -> Arc<TextTableOptions> {
        match self.declaration_of_sheet(&table_name_for_sheet(location, sheet)) {
            Some((_, declared)) => declared.clone(),
            None => self.options_for_file(location),
        }
    }

    fn declaration_of_sheet(&self, name: &str) -> Option<(&String, &Arc<TextTableOptions>)> {
        self.0.get_key_value(name).or_else(|| self.0.get_key_value(&to_sql_name(name)))
    }

    /// Where the configuration declares `option` for this sheet of the workbook at `location`. The only sheet has the options
    /// of the workbook, unless it has its own, which replace those.
    pub(crate) fn suggest_for_sheet(&self, location: &str, sheet: &str, is_alone: bool, option: &str) -> String {
        let name = table_name_for_sheet(location, sheet);
        match self.declaration_of_sheet(&name) {
            Some((declared, _)) => suggest_table_yaml(declared, option),
            None if is_alone => suggest_yaml(location, option),
            None => suggest_table_yaml(&name, option),
        }
    }

    /// The options of the table called `stem`, or of a folder that contains it.
    pub(crate) fn options_for_table(&self, stem: &str) -> Arc<TextTableOptions> {
        self.declaration(stem).map(|(_, table)| table.clone()).unwrap_or_default()
    }

    fn declaration(&self, stem: &str) -> Option<(&String, &Arc<TextTableOptions>)> {
        self.0.iter().rev().find(|(name, _)| is_table_or_folder(name, stem))
    }
}

/// The name of the table if the file at `location` is a log.
fn log_name_for_file(location: &str) -> String {
    let (folder, file_name) = location.rsplit_once('/').map_or(("", location), |(folder, name)| (folder, name));
    let table = log_table_name(file_name);
    if folder.is_empty() { table } else { format!("{}.{table}", folder.replace('/', ".")) }
}

/// Whether `name` is the table called `stem`, or a folder that contains it.
fn is_table_or_folder(name: &str, stem: &str) -> bool {
    stem.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn table_name_for_file(location: &str) -> String {
    match parse_file_name(location) {
        Some((_, kind)) if kind.format == NamedFormat::Log => log_name_for_file(location),
        Some((stem, _)) => stem.replace('/', "."),
        None => location.replace('/', "."),
    }
}

/// The name of the table of a sheet, if the workbook at `location` has several.
fn table_name_for_sheet(location: &str, sheet: &str) -> String {
    format!("{}_{sheet}", table_name_for_file(location))
}

/// Where the configuration declares `option` for the table of the file at `location`.
pub(crate) fn suggest_yaml(location: &str, option: &str) -> String {
    suggest_table_yaml(&table_name_for_file(location), option)
}

/// `text` with its suggestions for the file at `location` made for its `table`, which has further files. If one of them had
/// options of its own, they would be separate tables.
pub(super) fn suggest_for_table(text: &str, location: &str, table: &str) -> String {
    let file = table_name_for_file(location);
    match file != table && is_table_or_folder(table, &file) {
        true => text.replace(&declaration_of(&file), &declaration_of(table)),
        false => text.to_owned(),
    }
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

/// The options that declare a suggested format of a log.
pub(super) fn suggested_log_options(suggested: &SuggestedLogFormat) -> SuggestedOptions {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
    let (options, other_time) = match suggested {
        SuggestedLogFormat::Json => ("format: json".to_owned(), None),
        SuggestedLogFormat::Pattern { expression, time: None, other_time } => {
            (format!("pattern: {}", quoted(expression)), other_time.as_ref())
        }
        SuggestedLogFormat::Pattern { expression, time: Some(time), other_time } => {
            let groups = format!("groups: {{time: {}}}", quoted(time));
            (format!("pattern: {}, {groups}", quoted(expression)), other_time.as_ref())
        }
    };
    let doubt = other_time.map(|OtherTime { example, declarations }| {
        let others = declarations.iter().map(|declaration| quoted(declaration)).collect::<Vec<_>>().join(" or ");
        format!("the time {example:?} has other readings: if this one is wrong, declare {others}")
    });
    SuggestedOptions { options, doubt }
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
        let declarations = TableDeclarations::new([("b_Q1_2024".to_owned(), named("3"))].into());
        assert_eq!(declarations.options_for_sheet("b.xlsx", "Q1/2024"), Arc::new(named("3")));
        assert_eq!(declarations.options_for_sheet("b.xlsx", "Q2"), Arc::default());
        let suggested = |location, sheet, is_alone| {
            let text = declarations.suggest_for_sheet(location, sheet, is_alone, "skip: 2");
            text.rsplit("tables: ").next().unwrap().to_owned()
        };
        assert_eq!(suggested("2024.xlsx", "Q1", false), "{\"2024_Q1\": {skip: 2}}");
        assert_eq!(suggested("2024.xlsx", "Q1", true), "{\"2024\": {skip: 2}}");
        assert_eq!(suggested("b.xlsx", "Q1/2024", true), "{b_Q1_2024: {skip: 2}}");
    }

    #[test]
    fn declarations_without_a_table_are_reported() {
        let declared = TextTableOptions::default;
        let declarations =
            TableDeclarations::new([("a", declared()), ("a.b", declared())].map(|(n, t)| (n.to_owned(), t)).into());
        let unused = |locations: &[&str]| declarations.unused(locations.iter().copied());
        assert_eq!(unused(&["a/x.csv", "a/b.csv"]), [""; 0]);
        assert_eq!(unused(&["a.xlsx"]), ["there is no table \"a.b\" yet, so its options have no effect"]);
    }
}
