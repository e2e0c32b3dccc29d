//! What to answer when the rows are too large: one example row, and how to get fewer.

use std::collections::HashMap;
use std::fmt::Write;

use arrow::array::RecordBatch;
use arrow::datatypes::DataType;
use serde_json::Value;
use tidegate_core::shorten;
use tidegate_query::ColumnFormatter;
use tidegate_system::{SystemColumn, SystemColumnType, SystemTableDescription};

use super::request::FunctionRequest;

/// Filters that are named at most.
const FILTERS_MAX: usize = 5;
/// Frequent values of a filter that are named at most.
const FREQUENT_VALUES_MAX: usize = 3;
/// Distinct values of a column that are counted at most.
const DISTINCT_VALUES_MAX: usize = 1_000;
/// Characters of a text in the example row at most.
const EXAMPLE_CHARACTERS_MAX: usize = 120;

/// The text in place of the rows `batch`, if they have more than `bytes_max` bytes as lists in JSON. `matched` rows meet
/// the conditions.
pub(super) fn describe_oversized(
    function: &SystemTableDescription,
    request: &FunctionRequest,
    batch: &RecordBatch,
    matched: usize,
    bytes_max: usize,
) -> Option<String> {
    let columns: Vec<AnswerColumn<'_>> =
        (0..batch.num_columns()).map(|index| AnswerColumn::new(batch, index)).collect();
    let rows = batch.num_rows();
    // A comma after each value, brackets and a comma for each row.
    let row_bytes = |row: usize| 3 + columns.iter().map(|column| column.json_bytes(row) + 1).sum::<usize>();
    let bytes: usize = (0..rows).map(row_bytes).sum();
    if rows == 0 || bytes <= bytes_max {
        return None;
    }
    let example: Vec<String> = columns.iter().map(|column| format!("{:?}: {}", column.name, column.json(0))).collect();
    let suggested_limit = (bytes_max / (bytes / rows).max(1)).clamp(1, rows);
    let mut text = format!(
        "The answer has {rows} rows ({matched} match) and about {bytes} bytes; at most {bytes_max} fit.\n\
         One row as an example:\n{{{}}}\n\
         Add conditions, select fewer columns, or use a limit of {suggested_limit}. ",
        example.join(", ")
    );
    let filters = filters(function, request, &columns, rows);
    if filters.is_empty() {
        text.push_str("The conditions already use all columns that are good filters.");
    } else {
        text.push_str("Good filters:");
        text.extend(filters);
    }
    Some(text)
}

/// A column of the answer.
struct AnswerColumn<'a> {
    name: &'a str,
    has_quotes: bool,
    values: ColumnFormatter<'a>,
}

impl<'a> AnswerColumn<'a> {
    fn new(batch: &'a RecordBatch, index: usize) -> Self {
        let field = batch.schema_ref().field(index);
        let has_quotes = !field.data_type().is_numeric() && *field.data_type() != DataType::Boolean;
        let values = ColumnFormatter::new(field, batch.column(index).as_ref());
        Self { name: field.name(), has_quotes, values }
    }

    fn json_bytes(&self, row: usize) -> usize {
        let quotes = if self.has_quotes { 2 } else { 0 };
        self.values.format_value(row).map_or("null".len(), |text| text.len() + quotes)
    }

    /// The value in JSON. Long texts are cut.
    fn json(&self, row: usize) -> String {
        match self.values.format_value(row) {
            None => Value::Null.to_string(),
            Some(number) if !self.has_quotes => number,
            Some(text) => Value::from(shorten(text, EXAMPLE_CHARACTERS_MAX)).to_string(),
        }
    }

    /// The most frequent values with their number of rows; none if most rows have different values.
    fn frequent_values(&self, rows: usize) -> Vec<(String, usize)> {
        let mut counts: HashMap<String, usize> = HashMap::new();
        for value in (0..rows).filter(|row| self.values.format_value(*row).is_some()).map(|row| self.json(row)) {
            if counts.len() < DISTINCT_VALUES_MAX || counts.contains_key(&value) {
                *counts.entry(value).or_default() += 1;
            }
        }
        // One value for all rows filters nothing; a value for each row names nothing.
        if counts.len() < 2 || counts.len() > rows / 2 {
            return Vec::new();
        }
        let mut counts: Vec<(String, usize)> = counts.into_iter().collect();
        counts.sort_by(|(a, of_a), (b, of_b)| of_b.cmp(of_a).then_with(|| a.cmp(b)));
        counts.truncate(FREQUENT_VALUES_MAX);
        counts
    }
}

/// The good filters that the request does not use yet, the best first: a line each. Values of sensitive columns are not
/// counted.
fn filters(
    function: &SystemTableDescription,
    request: &FunctionRequest,
    columns: &[AnswerColumn<'_>],
    rows: usize,
) -> Vec<String> {
    let is_offered = |column: &&SystemColumn| {
        column.is_good_filter && !column.is_sensitive && !request.compared.contains(column.name.as_ref())
    };
    let advice = function.columns.iter().filter(is_offered).map(|column| {
        let has_few_values = matches!(column.column_type, SystemColumnType::Text | SystemColumnType::Boolean);
        let answered = columns.iter().find(|answered| answered.name == column.name).filter(|_| has_few_values);
        let frequent = answered.map(|answered| answered.frequent_values(rows)).unwrap_or_default();
        let mut line = format!("\n- {} ({})", column.name, operators(column.column_type));
        for (index, (value, count)) in frequent.iter().enumerate() {
            let separator = if index == 0 { ": frequent values " } else { ", " };
            // Writing to a text never fails.
            let _ = write!(line, "{separator}{value} ({count} rows)");
        }
        (frequent.is_empty(), line)
    });
    let mut advice: Vec<(bool, String)> = advice.collect();
    // Columns whose values divide the rows are the best ones. The sort is stable.
    advice.sort_by_key(|(has_no_values, _)| *has_no_values);
    advice.truncate(FILTERS_MAX);
    advice.into_iter().map(|(_, line)| line).collect()
}

/// The operators for a column of this type.
fn operators(column_type: SystemColumnType) -> &'static str {
    match column_type {
        SystemColumnType::Text => "=, !=, match, not match",
        SystemColumnType::Boolean => "=, !=",
        _ => "=, !=, <, <=, >, >=",
    }
}
