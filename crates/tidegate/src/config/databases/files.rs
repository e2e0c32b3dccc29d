//! Folders, files and globs.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use tidegate_engines::{
    ColumnType, EmbeddedDatabase, FileLimits, Inference, LogOptionProblem, LogTableOptions, NumberFormat, RaggedRows,
    TextEncoding, TextTableOptions,
};
use tidegate_ingest_formats::CsvQuotes;

use super::{ConfiguredDatabase, KindParts, Opening, OpeningResult, UsedKeys, key_problem};
use crate::config::problem::ConfigProblem;
use crate::config::problems::Problems;
use crate::config::quantities::OneOrMany;
use crate::config::types::{AboutConfig, FileTableConfig, InferConfig, PolicyConfig, QuotesConfig, RaggedConfig};

/// Files of CSV, Parquet, JSON and other formats, sheets and logs.
#[derive(Deserialize, JsonSchema)]
pub(super) struct FilesConfig {
    /// Folders, files or globs: data/2024-*.csv.
    files: OneOrMany,
    /// Options by table name, folder or path. Options that are not set are detected. Default: detected.
    #[serde(default)]
    tables: BTreeMap<String, FileTableConfig>,
    /// Row and column policies. Default: none.
    #[serde(default)]
    policies: Vec<PolicyConfig>,
    /// Whether log files become log sources. Default: true.
    log_sources: Option<bool>,
    /// What a file _about.yaml in a folder says about its tables: data, trusted as the words of the owner of the
    /// server, or ignored. Default: data.
    #[serde(default)]
    about: AboutConfig,
}

impl ConfiguredDatabase for FilesConfig {
    fn used_keys(&self) -> UsedKeys<'_> {
        UsedKeys {
            policies: &self.policies,
            log_sources: self.log_sources,
            has_column_types: true,
            about: Some((self.about, self.files.clone().into_vec())),
            ..UsedKeys::default()
        }
    }

    fn open(&self, name: &str, path: &str, opening: &mut Opening<'_>) -> OpeningResult {
        let tables = build_text_tables(&self.tables, path)?;
        let (files, engine) = (opening.resolve(&self.files), opening.engine());
        let opened = EmbeddedDatabase::open_with(name, files, engine, FileLimits::default(), tables);
        let policies = opening.row_policies(&self.policies, path)?;
        let opened = opened.map_err(|error| key_problem(path, "files", error))?;
        let files = Arc::new(opened.with_row_policies(policies));
        Ok((files.clone(), KindParts { files: Some(files), ..KindParts::default() }))
    }
}

/// Globs without files, and options of tables that do not fit.
pub(super) async fn warnings(files: &EmbeddedDatabase) -> Vec<String> {
    let unmatched = files.unmatched_globs().into_iter();
    let mut warnings: Vec<String> = unmatched.map(|glob| format!("no file matches {glob} yet")).collect();
    // An unreadable folder is reported by the database itself.
    let found = files.table_option_problems().await.unwrap_or_default();
    warnings.extend(found.into_iter().map(|reason| format!("tables: {reason}")));
    warnings
}

fn build_text_tables(
    entries: &BTreeMap<String, FileTableConfig>,
    path: &str,
) -> Result<BTreeMap<String, TextTableOptions>, Vec<ConfigProblem>> {
    let problems = Problems::at_path(path);
    let mut tables = BTreeMap::new();
    // Tables that are only described have no options.
    for (name, entry) in entries.iter().filter(|(_, entry)| **entry != FileTableConfig::default()) {
        let problems = problems.at(format_args!("tables.{name}"));
        tables.insert(name.clone(), text_table(entry, &problems));
    }
    problems.checked(tables)
}

fn text_table(entry: &FileTableConfig, problems: &Problems) -> TextTableOptions {
    // Without `..`, so that the compiler reports a key that is missing here.
    #[rustfmt::skip]
    let FileTableConfig {
        delimiter, quote, escape, quotes: _, skip_blanks, header, null, decimal: _, thousands: _, encoding, skip, ragged,
        one_table, comment, infer, columns: column_types, format: _, pattern: _, groups: _, time_zone: _,
    } = entry;
    let character = |member: &str, text: &Option<String>| {
        let text = text.as_ref()?;
        let byte = match text.as_str() {
            "tab" => Some(b'\t'),
            text => <[u8; 1]>::try_from(text.as_bytes()).ok().map(|[byte]| byte).filter(u8::is_ascii),
        };
        if byte.is_none() {
            let purpose = if member == "comment" {
                "; lines that begin with it are skipped, and it is no description"
            } else {
                ""
            };
            let message = format!("{text:?} is not one ASCII character; write one, or tab{purpose}");
            problems.add(member, message);
        }
        byte
    };
    let delimiter = character("delimiter", delimiter);
    let quote = character("quote", quote);
    let escape = character("escape", escape);
    let comment = character("comment", comment);
    let encoding = encoding.as_ref().and_then(|name| parse_encoding(name, problems));
    let numbers = number_format(entry, problems);
    let mut columns = BTreeMap::new();
    for (name, text) in &column_types.0 {
        match ColumnType::parse(text) {
            Ok(kind) => {
                columns.insert(name.clone(), kind);
            }
            Err(message) => problems.add(format_args!("columns.{name}"), message),
        }
    }
    let log = log_options(entry, problems);
    TextTableOptions {
        delimiter,
        quote,
        escape,
        quotes: csv_quotes(entry, problems),
        skips_blanks: skip_blanks.unwrap_or_default(),
        has_header: *header,
        null: null.clone().map(OneOrMany::into_vec),
        numbers,
        encoding,
        skip: *skip,
        ragged: ragged.map(|ragged| match ragged {
            RaggedConfig::Fill => RaggedRows::Fill,
            RaggedConfig::Trim => RaggedRows::Trim,
        }),
        one_table: *one_table,
        infer: infer.map(|infer| match infer {
            InferConfig::Full => Inference::Full,
            InferConfig::Sample => Inference::Sample,
        }),
        comment,
        columns,
        log,
    }
}

fn parse_encoding(name: &str, problems: &Problems) -> Option<TextEncoding> {
    let encoding = TextEncoding::parse(name);
    if encoding.is_none() {
        let message = format!(
            "there is no encoding {name:?}; there are utf-8, latin-1, windows-1252, utf-16, …; convert files of other \
             encodings, such as those of DOS, to UTF-8"
        );
        problems.add("encoding", message);
    }
    encoding
}

fn csv_quotes(entry: &FileTableConfig, problems: &Problems) -> Option<CsvQuotes> {
    let quotes = entry.quotes?;
    if quotes == QuotesConfig::None && (entry.quote.is_some() || entry.escape.is_some()) {
        let message = "is none, so that quote and escape have no effect; remove them, or quotes";
        problems.add("quotes", message);
    }
    Some(match quotes {
        QuotesConfig::Strict => CsvQuotes::WithinFields,
        QuotesConfig::Lenient => CsvQuotes::Anywhere,
        QuotesConfig::None => CsvQuotes::Characters,
    })
}

fn log_options(entry: &FileTableConfig, problems: &Problems) -> LogTableOptions {
    let FileTableConfig { format, pattern, groups, time_zone, .. } = entry;
    let parsed = LogTableOptions::parse(format.as_deref(), pattern.as_deref(), groups, time_zone.as_deref());
    let log = parsed.unwrap_or_else(|wrong| {
        wrong.into_iter().for_each(|LogOptionProblem { key, message }| problems.add(key, message));
        LogTableOptions::default()
    });
    let of_other_tables = FileTableConfig {
        format: format.clone(),
        pattern: pattern.clone(),
        groups: groups.clone(),
        time_zone: time_zone.clone(),
        ..FileTableConfig::default()
    };
    if !log.is_empty() && *entry != of_other_tables {
        let message = "has options of a log (format, pattern, groups, time_zone) and options of CSV files or sheets; write \
                       only those of one kind";
        problems.add("", message);
    }
    log
}

fn number_format(entry: &FileTableConfig, problems: &Problems) -> Option<NumberFormat> {
    if entry.decimal.is_none() && entry.thousands.is_none() {
        return None;
    }
    let character = |member: &str, text: &Option<String>| {
        let text = text.as_ref()?;
        let mut characters = text.chars();
        match (characters.next(), characters.next()) {
            (Some(one), None) if !one.is_alphanumeric() && !matches!(one, '-' | '+') => Some(one),
            _ => {
                let message = format!("{text:?} is not one character that may stand in a number, such as , or .");
                problems.add(member, message);
                None
            }
        }
    };
    let decimal = character("decimal", &entry.decimal);
    let thousands = character("thousands", &entry.thousands);
    // If a point groups digits, it cannot be the decimal separator.
    let decimal = decimal.unwrap_or(if thousands == Some('.') { ',' } else { '.' });
    if thousands == Some(decimal) {
        let message = format!("is {decimal:?}, as decimal is; they must differ");
        problems.add("thousands", message);
        return None;
    }
    Some(NumberFormat { decimal, thousands })
}
