//! A checked request.

use std::collections::BTreeMap;

use super::pattern::SimplePattern;
use crate::description::SystemTableDescription;
use crate::read::ReadOptions;
use crate::value::SystemValue;

/// The number of rows when a request has no limit.
pub const LIMIT_DEFAULT: usize = 100;
/// The largest limit, so that the memory of sorted rows is bounded.
pub const LIMIT_MAX: usize = 5_000;

/// A request that fits its table. Columns are positions in the description.
#[derive(Debug, Clone, PartialEq)]
pub struct FunctionRequest {
    /// The columns of the answer, in its order.
    pub columns: Vec<usize>,
    /// The order of the rows, most significant first. Without it, rows have the order of the table.
    pub sort: Vec<FunctionSort>,
    /// Rows at most.
    pub limit: usize,
    /// The conditions; a row must meet all of them.
    pub conditions: Vec<FunctionCondition>,
    /// The parameters of the table.
    pub parameters: BTreeMap<String, SystemValue>,
}

/// One part of the order of rows. Null is last in both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FunctionSort {
    /// The position of the column.
    pub column: usize,
    /// Whether the largest value is first.
    pub is_descending: bool,
}

/// A comparison of a column with a value. A null value meets no condition except `= null`.
#[derive(Debug, Clone, PartialEq)]
pub struct FunctionCondition {
    /// The position of the column.
    pub column: usize,
    pub(super) operator: ConditionOperator,
    pub(super) operand: ConditionOperand,
}

/// The operator of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConditionOperator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Match,
    NotMatch,
}

impl ConditionOperator {
    /// All forms of all operators.
    pub(super) const NAMES: [(&'static str, Self); 10] = [
        ("=", Self::Equal),
        ("==", Self::Equal),
        ("!=", Self::NotEqual),
        ("<>", Self::NotEqual),
        ("<", Self::Less),
        ("<=", Self::LessOrEqual),
        (">", Self::Greater),
        (">=", Self::GreaterOrEqual),
        ("match", Self::Match),
        ("not match", Self::NotMatch),
    ];

    pub(super) fn parse(name: &str) -> Option<Self> {
        let words: Vec<&str> = name.split_whitespace().collect();
        let name = words.join(" ").to_lowercase();
        Self::NAMES.into_iter().find(|(known, _)| *known == name).map(|(_, operator)| operator)
    }

    pub(super) fn has_pattern(self) -> bool {
        matches!(self, Self::Match | Self::NotMatch)
    }

    /// The first form.
    pub(super) fn name(self) -> &'static str {
        Self::NAMES.into_iter().find(|(_, operator)| *operator == self).map_or("=", |(name, _)| name)
    }
}

/// What a column is compared with.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ConditionOperand {
    Null,
    Value(SystemValue),
    Pattern(SimplePattern),
}

impl FunctionCondition {
    /// Whether `value` meets the condition.
    pub fn is_met_by(&self, value: &SystemValue) -> bool {
        match &self.operand {
            ConditionOperand::Null => value.is_null() == (self.operator == ConditionOperator::Equal),
            ConditionOperand::Value(operand) => {
                let order = value.compare(operand);
                order.is_some_and(|order| match self.operator {
                    ConditionOperator::Equal => order.is_eq(),
                    ConditionOperator::NotEqual => order.is_ne(),
                    ConditionOperator::Less => order.is_lt(),
                    ConditionOperator::LessOrEqual => order.is_le(),
                    ConditionOperator::Greater => order.is_gt(),
                    ConditionOperator::GreaterOrEqual => order.is_ge(),
                    ConditionOperator::Match | ConditionOperator::NotMatch => false,
                })
            }
            ConditionOperand::Pattern(pattern) => {
                let is_negated = self.operator == ConditionOperator::NotMatch;
                value.as_text().is_some_and(|text| pattern.matches(text) != is_negated)
            }
        }
    }
}

impl FunctionRequest {
    /// The options to read what this request needs of `table`.
    pub fn read_options(&self, table: &SystemTableDescription, grants_sensitive: bool) -> ReadOptions {
        let sorted = self.sort.iter().map(|sort| sort.column);
        let compared = self.conditions.iter().map(|condition| condition.column);
        let mut positions: Vec<usize> = self.columns.iter().copied().chain(sorted).chain(compared).collect();
        positions.sort_unstable();
        positions.dedup();
        let names = positions.into_iter().filter_map(|position| table.columns.get(position));
        ReadOptions {
            columns: Some(names.map(|column| column.name.clone().into_owned()).collect()),
            grants_sensitive,
            parameters: self.parameters.clone(),
            ..ReadOptions::default()
        }
    }

    /// The names of the columns of the answer.
    pub fn column_names<'a>(&'a self, table: &'a SystemTableDescription) -> impl Iterator<Item = &'a str> {
        self.columns.iter().filter_map(|position| table.columns.get(*position)).map(|column| column.name.as_ref())
    }
}
