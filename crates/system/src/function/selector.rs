//! Filters, sorts and limits rows in memory that grows with the limit, not with the number of rows.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::request::{FunctionRequest, FunctionSort};
use crate::value::SystemValue;

/// The rows of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct SelectedRows {
    /// The rows with the requested columns, in the requested order.
    pub rows: Vec<Vec<SystemValue>>,
    /// The number of rows that meet the conditions, which may be more than the limit.
    pub matched: u64,
    /// The number of rows that were checked.
    pub evaluated: u64,
}

impl SelectedRows {
    /// Whether rows were left out because of the limit.
    pub fn is_limited(&self) -> bool {
        self.matched > self.rows.len() as u64
    }

    /// The size of the rows as lists in JSON, in bytes.
    pub fn estimated_bytes(&self) -> usize {
        let value_bytes = |value: &SystemValue| match value {
            SystemValue::Null => 4,
            SystemValue::Text(text) => text.len() + 2,
            SystemValue::Boolean(_) => 5,
            SystemValue::Timestamp(_) => 27,
            SystemValue::Integer(_) | SystemValue::Unsigned(_) | SystemValue::Float(_) => {
                value.to_json().to_string().len()
            }
        };
        // A comma after each value, brackets and a comma for each row.
        let row_bytes = |row: &Vec<SystemValue>| 3 + row.iter().map(|value| value_bytes(value) + 1).sum::<usize>();
        self.rows.iter().map(row_bytes).sum()
    }
}

/// Applies a request to rows.
#[derive(Debug)]
pub struct RowSelector<'a> {
    request: &'a FunctionRequest,
    /// The first rows of the order so far; the last of them on top.
    first_rows: BinaryHeap<RankedRow<'a>>,
    matched: u64,
    evaluated: u64,
}

impl<'a> RowSelector<'a> {
    /// A selector without rows.
    pub fn new(request: &'a FunctionRequest) -> Self {
        Self { request, first_rows: BinaryHeap::new(), matched: 0, evaluated: 0 }
    }

    /// Adds a row with a value for each column of the table.
    pub fn push(&mut self, row: &[SystemValue]) {
        let request = self.request;
        let sequence = self.evaluated;
        self.evaluated += 1;
        let value = |position: usize| row.get(position).cloned().unwrap_or(SystemValue::Null);
        let is_met = |position: usize| row.get(position).unwrap_or(&SystemValue::Null);
        if !request.conditions.iter().all(|condition| condition.is_met_by(is_met(condition.column))) {
            return;
        }
        self.matched += 1;
        let keys = request.sort.iter().map(|sort| value(sort.column)).collect();
        let mut ranked = RankedRow { sort: &request.sort, keys, sequence, values: Vec::new() };
        if self.first_rows.len() >= request.limit {
            match self.first_rows.peek() {
                Some(last) if ranked < *last => self.first_rows.pop(),
                _ => return,
            };
        }
        // Only now: most rows of a large table do not get here.
        ranked.values = request.columns.iter().map(|position| value(*position)).collect();
        self.first_rows.push(ranked);
    }

    /// The rows of the answer.
    pub fn finish(self) -> SelectedRows {
        let rows = self.first_rows.into_sorted_vec().into_iter().map(|ranked| ranked.values).collect();
        SelectedRows { rows, matched: self.matched, evaluated: self.evaluated }
    }
}

/// A row with its place in the order. Equal rows have the order of the table.
#[derive(Debug)]
struct RankedRow<'a> {
    sort: &'a [FunctionSort],
    keys: Vec<SystemValue>,
    sequence: u64,
    values: Vec<SystemValue>,
}

impl Ord for RankedRow<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let keys = self.sort.iter().zip(self.keys.iter().zip(&other.keys));
        let order = keys.map(|(sort, (a, b))| a.sort_order(b, sort.is_descending)).find(|order| order.is_ne());
        order.unwrap_or_else(|| self.sequence.cmp(&other.sequence))
    }
}

impl PartialOrd for RankedRow<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for RankedRow<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for RankedRow<'_> {}
