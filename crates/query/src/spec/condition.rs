//! Conditions as data: comparisons, and how they are combined.

use crate::parameter::Parameter;

/// Which rows, or which groups.
#[derive(Debug, Clone, PartialEq)]
pub enum QueryCondition {
    /// One SQL expression as text.
    Expression(String),
    /// All of them.
    And(Vec<QueryCondition>),
    /// At least one of them.
    Or(Vec<QueryCondition>),
    /// The opposite.
    Not(Box<QueryCondition>),
    /// A column against values.
    Comparison(Comparison),
}

/// A column against values.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// The column, or in `having` a name of `select`.
    pub column: String,
    /// How it is compared.
    pub operator: ComparisonOperator,
    /// With what.
    pub operand: Operand,
}

/// What a column is compared with.
#[derive(Debug, Clone, PartialEq)]
pub enum Operand {
    /// Nothing: `is_null` and `is_not_null`.
    None,
    /// One value.
    One(Parameter),
    /// A list: `in` and `not_in`.
    List(Vec<Parameter>),
    /// From and to, both included: `between`.
    Range(Parameter, Parameter),
}

/// How a column is compared: the closed list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names of SQL say it")]
pub enum ComparisonOperator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    NotIn,
    Like,
    NotLike,
    Ilike,
    Between,
    IsNull,
    IsNotNull,
    Contains,
    StartsWith,
}

/// What an operator is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arity {
    None,
    One,
    Text,
    List,
    Range,
}

impl ComparisonOperator {
    /// Every operator.
    pub const ALL: [Self; 16] = [
        Self::Equal,
        Self::NotEqual,
        Self::Less,
        Self::LessOrEqual,
        Self::Greater,
        Self::GreaterOrEqual,
        Self::In,
        Self::NotIn,
        Self::Like,
        Self::NotLike,
        Self::Ilike,
        Self::Between,
        Self::IsNull,
        Self::IsNotNull,
        Self::Contains,
        Self::StartsWith,
    ];

    /// The name that callers give.
    pub fn name(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::In => "in",
            Self::NotIn => "not_in",
            Self::Like => "like",
            Self::NotLike => "not_like",
            Self::Ilike => "ilike",
            Self::Between => "between",
            Self::IsNull => "is_null",
            Self::IsNotNull => "is_not_null",
            Self::Contains => "contains",
            Self::StartsWith => "starts_with",
        }
    }

    /// The operator of that name; SQL's own spellings (`<>`, `NOT IN`, `IS NOT NULL`) are understood too.
    pub fn parse(name: &str) -> Option<Self> {
        let name = name.trim().to_lowercase().replace(' ', "_");
        let name = match name.as_str() {
            "==" => "=",
            "<>" => "!=",
            "not_null" => "is_not_null",
            name => name,
        };
        Self::ALL.into_iter().find(|operator| operator.name() == name)
    }

    pub(crate) fn arity(self) -> Arity {
        match self {
            Self::IsNull | Self::IsNotNull => Arity::None,
            Self::In | Self::NotIn => Arity::List,
            Self::Between => Arity::Range,
            Self::Like | Self::NotLike | Self::Ilike | Self::Contains | Self::StartsWith => Arity::Text,
            Self::Equal | Self::NotEqual | Self::Less | Self::LessOrEqual | Self::Greater | Self::GreaterOrEqual => {
                Arity::One
            }
        }
    }
}
