//! What to answer when the rows are too large: one example row, and how to get fewer.

use std::collections::HashMap;
use std::fmt;

use super::request::FunctionRequest;
use super::selector::SelectedRows;
use super::validation::operators;
use crate::description::{SystemColumnType, SystemTableDescription};
use crate::value::SystemValue;

/// Filters that are named at most.
const FILTERS_MAX: usize = 5;
/// Frequent values of a filter that are named at most.
const FREQUENT_VALUES_MAX: usize = 3;
/// Distinct values of a column that are counted at most.
const DISTINCT_VALUES_MAX: usize = 1_000;
/// Characters of a text in the example row at most.
const EXAMPLE_CHARACTERS_MAX: usize = 120;

/// An answer that was not sent because it is too large, described for the agent.
#[derive(Debug, Clone, PartialEq)]
pub struct OversizedAnswer {
    /// The number of rows that the answer has.
    pub rows: usize,
    /// The number of rows that meet the conditions.
    pub matched: u64,
    /// The estimated size of the answer in bytes.
    pub estimated_bytes: usize,
    /// The largest size in bytes.
    pub bytes_max: usize,
    /// The first row, by the names of its columns. Long texts are cut.
    pub example: Vec<(String, SystemValue)>,
    /// Columns that are good filters, the best first.
    pub filters: Vec<FilterAdvice>,
    /// A limit with which the answer probably fits; at least 1.
    pub suggested_limit: usize,
}

/// A column that is a good filter.
#[derive(Debug, Clone, PartialEq)]
pub struct FilterAdvice {
    /// The name of the column.
    pub column: String,
    /// The operators for its type.
    pub operators: Vec<&'static str>,
    /// Its most frequent values in the answer with their number of rows; empty if most rows have different values.
    pub frequent_values: Vec<(String, u64)>,
}

impl OversizedAnswer {
    /// The description if `estimated_bytes` is more than `bytes_max`; `None` if the answer fits or has no rows.
    pub fn check(
        table: &SystemTableDescription,
        request: &FunctionRequest,
        selected: &SelectedRows,
        estimated_bytes: usize,
        bytes_max: usize,
    ) -> Option<Self> {
        let first = selected.rows.first().filter(|_| estimated_bytes > bytes_max)?;
        let names = request.column_names(table).map(str::to_owned);
        let rows = selected.rows.len();
        let bytes_per_row = (estimated_bytes / rows).max(1);
        Some(Self {
            rows,
            matched: selected.matched,
            estimated_bytes,
            bytes_max,
            example: names.zip(first.iter().map(shortened)).collect(),
            filters: filters(table, request, selected),
            suggested_limit: (bytes_max / bytes_per_row).clamp(1, rows),
        })
    }
}

/// The good filters that the request does not use yet. Values of sensitive columns are not counted.
fn filters(table: &SystemTableDescription, request: &FunctionRequest, selected: &SelectedRows) -> Vec<FilterAdvice> {
    let is_used = |position: usize| request.conditions.iter().any(|condition| condition.column == position);
    let columns = table.columns.iter().enumerate();
    let good =
        columns.filter(|(position, column)| column.is_good_filter && !column.is_sensitive && !is_used(*position));
    let advice = good.map(|(position, column)| {
        let in_answer = request.columns.iter().position(|other| *other == position);
        let has_few_values = matches!(column.column_type, SystemColumnType::Text | SystemColumnType::Boolean);
        FilterAdvice {
            column: column.name.clone().into_owned(),
            operators: operators(column.column_type),
            frequent_values: in_answer
                .filter(|_| has_few_values)
                .map(|index| frequent_values(selected, index))
                .unwrap_or_default(),
        }
    });
    let mut advice: Vec<FilterAdvice> = advice.collect();
    // Columns whose values divide the rows are the best ones. The sort is stable.
    advice.sort_by_key(|filter| filter.frequent_values.is_empty());
    advice.truncate(FILTERS_MAX);
    advice
}

fn frequent_values(selected: &SelectedRows, index: usize) -> Vec<(String, u64)> {
    let mut counts: HashMap<String, u64> = HashMap::new();
    for value in selected.rows.iter().filter_map(|row| row.get(index)).filter(|value| !value.is_null()) {
        let text = shortened(value).to_json().to_string();
        if counts.len() < DISTINCT_VALUES_MAX || counts.contains_key(&text) {
            *counts.entry(text).or_default() += 1;
        }
    }
    // One value for all rows filters nothing; a value for each row names nothing.
    if counts.len() < 2 || counts.len() > selected.rows.len() / 2 {
        return Vec::new();
    }
    let mut counts: Vec<(String, u64)> = counts.into_iter().collect();
    counts.sort_by(|(a, of_a), (b, of_b)| of_b.cmp(of_a).then_with(|| a.cmp(b)));
    counts.truncate(FREQUENT_VALUES_MAX);
    counts
}

fn shortened(value: &SystemValue) -> SystemValue {
    let SystemValue::Text(text) = value else { return value.clone() };
    match text.char_indices().nth(EXAMPLE_CHARACTERS_MAX) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()).into(),
        None => value.clone(),
    }
}

impl fmt::Display for OversizedAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rows, matched, estimated_bytes, bytes_max, example, filters, suggested_limit } = self;
        writeln!(
            f,
            "The answer has {rows} rows ({matched} match) and about {estimated_bytes} bytes; at most {bytes_max} fit."
        )?;
        f.write_str("One row as an example:\n{")?;
        for (index, (name, value)) in example.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{name:?}: {}", value.to_json())?;
        }
        f.write_str("}\nAdd conditions, select fewer columns")?;
        write!(f, ", or use a limit of {suggested_limit}. ")?;
        if filters.is_empty() {
            return f.write_str("The conditions already use all columns that are good filters.");
        }
        f.write_str("Good filters:")?;
        for filter in filters {
            write!(f, "\n- {} ({})", filter.column, filter.operators.join(", "))?;
            for (index, (value, count)) in filter.frequent_values.iter().enumerate() {
                let separator = if index == 0 { ": frequent values " } else { ", " };
                write!(f, "{separator}{value} ({count} rows)")?;
            }
        }
        Ok(())
    }
}
