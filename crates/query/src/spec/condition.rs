//! Conditions as data: comparisons, and how they are combined.

use tidegate_sql::Parameter;

use crate::named_enum::named_enum;

/// A condition on rows or groups.
#[derive(Debug, Clone, PartialEq)]
pub enum QueryCondition {
    /// One SQL expression as text.
    Expression(String),
    /// One SQL expression of a tool, with the values of its placeholders `$1`, `$2`, …
    Bound(BoundExpression),
    /// All conditions hold.
    And(Vec<QueryCondition>),
    /// At least one condition holds.
    Or(Vec<QueryCondition>),
    /// The negation.
    Not(Box<QueryCondition>),
    /// A comparison of a column with values.
    Comparison(Comparison),
}

impl QueryCondition {
    /// Compares `column` with `operand`.
    pub fn compare(column: impl Into<String>, operator: ComparisonOperator, operand: Operand) -> Self {
        Self::Comparison(Comparison { column: column.into(), operator, operand })
    }

    /// All of `conditions`; `None` if there are none.
    pub fn all(mut conditions: Vec<Self>) -> Option<Self> {
        if conditions.len() > 1 { Some(Self::And(conditions)) } else { conditions.pop() }
    }
}

/// One SQL expression with values for its placeholders `$1`, `$2`, …
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BoundExpression {
    /// The text.
    pub text: String,
    /// The value of each placeholder; one that occurs several times has the same value.
    pub values: Vec<Parameter>,
}

impl BoundExpression {
    /// The placeholder of a further value.
    pub fn bind(&mut self, text: impl Into<String>) -> String {
        self.values.push(Parameter::Text(text.into()));
        format!("${}", self.values.len())
    }
}

/// A comparison of a column with values.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// The column, or in `having` an alias of `select`.
    pub column: String,
    /// The operator.
    pub operator: ComparisonOperator,
    /// The operand.
    pub operand: Operand,
}

/// The operand of a comparison.
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

named_enum! {
    /// A comparison operator.
    #[allow(missing_docs, reason = "the names of SQL say it")]
    pub enum ComparisonOperator {
        Equal = "=",
        NotEqual = "!=",
        Less = "<",
        LessOrEqual = "<=",
        Greater = ">",
        GreaterOrEqual = ">=",
        In = "in",
        NotIn = "not_in",
        Like = "like",
        NotLike = "not_like",
        Ilike = "ilike",
        Between = "between",
        IsNull = "is_null",
        IsNotNull = "is_not_null",
        Contains = "contains",
        StartsWith = "starts_with",
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arity {
    None,
    One,
    Text,
    List,
    Range,
}

impl ComparisonOperator {
    /// Parses an operator; SQL forms (`<>`, `NOT IN`, `IS NOT NULL`) are accepted too.
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
