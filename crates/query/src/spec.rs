//! Query specs: the arguments of the `query` tool, with conditions as data.

use tidegate_sql::Parameter;

use crate::named_enum::named_enum;
use crate::request::AnswerMode;

/// The default limit of rows.
pub const LIMIT_DEFAULT: u64 = 100;

/// A query spec, parsed from the arguments of the `query` tool.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct QuerySpec {
    /// The database; `None` when only one exists.
    pub database: Option<String>,
    /// The table.
    pub table: String,
    /// The selected columns; empty for all columns, or for those of `group_by`.
    pub select: Vec<Selection>,
    /// Whether equal rows are returned once.
    pub distinct: bool,
    /// The filter of rows.
    pub filter: Option<QueryCondition>,
    /// The joined tables.
    pub joins: Vec<QueryJoin>,
    /// The grouping keys.
    pub group_by: Vec<GroupKey>,
    /// The filter of groups.
    pub having: Option<QueryCondition>,
    /// The order, most significant first.
    pub order_by: Vec<SortKey>,
    /// The maximum number of rows. The statement requests one more row, to detect whether more exist.
    pub limit: u64,
    /// The number of rows that are skipped first.
    pub offset: u64,
    /// Whether the caller named the limit.
    pub has_explicit_limit: bool,
    /// The column whose distinct values are returned instead of rows.
    pub extract: Option<String>,
    /// When rows are sent.
    pub mode: AnswerMode,
}

/// One column of the answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Selection {
    /// All columns: `"*"`.
    All,
    /// A column of a table, optionally with an alias.
    Column {
        /// The name.
        column: String,
        /// The alias.
        alias: Option<String>,
    },
    /// One SQL expression.
    Expression(NamedExpression),
    /// An aggregate over the rows of a group.
    Aggregate {
        /// The function.
        function: AggregateFunction,
        /// The column; `None` counts rows.
        column: Option<String>,
        /// Whether only distinct values count.
        distinct: bool,
        /// The alias.
        alias: Option<String>,
    },
}

impl Selection {
    /// The column `name`, or the grouping key with this alias.
    pub fn column(name: impl Into<String>) -> Self {
        Self::Column { column: name.into(), alias: None }
    }

    /// An aggregate of the values of `column`.
    pub fn aggregate(function: AggregateFunction, column: impl Into<String>, alias: impl Into<String>) -> Self {
        Self::Aggregate { function, column: Some(column.into()), distinct: false, alias: Some(alias.into()) }
    }
}

/// One SQL expression without a subquery.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedExpression {
    /// The text.
    pub text: String,
    /// The name of its column.
    pub alias: Option<String>,
}

/// One grouping key.
#[derive(Debug, Clone, PartialEq)]
pub enum GroupKey {
    /// A column of a table, or the alias of an expression of `select`.
    Column(String),
    /// One SQL expression; `select` may use its alias as a column.
    Expression(NamedExpression),
}

named_enum! {
    /// An aggregate function.
    #[allow(missing_docs, reason = "the names of SQL say it")]
    pub enum AggregateFunction {
        Count = "count",
        CountDistinct = "count_distinct",
        Sum = "sum",
        Avg = "avg",
        Min = "min",
        Max = "max",
        Median = "median",
        Stddev = "stddev",
        Variance = "variance",
    }
}

/// A joined table.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryJoin {
    /// The name.
    pub table: String,
    /// The alias, where a table is joined more than once.
    pub alias: Option<String>,
    /// The kind of join.
    pub kind: JoinKind,
    /// The join condition.
    pub on: JoinOn,
}

impl QueryJoin {
    /// The name that qualifies columns.
    pub fn reference(&self) -> &str {
        self.alias.as_deref().unwrap_or(&self.table)
    }
}

named_enum! {
    /// The kind of join: which rows without a match are kept.
    pub enum JoinKind {
        /// No rows.
        Inner = "inner",
        /// Rows of the tables before.
        Left = "left",
        /// Rows of the joined table.
        Right = "right",
        /// All rows.
        Full = "full",
    }
}

/// The condition of a join.
#[derive(Debug, Clone, PartialEq)]
pub enum JoinOn {
    /// Pairs of equal columns: one of the tables before, one of the joined table.
    Columns(Vec<(String, String)>),
    /// One SQL expression.
    Expression(String),
}

/// One sort key.
#[derive(Debug, Clone, PartialEq)]
pub struct SortKey {
    /// A column of a table, or an alias of `select`. As text it may be `-column` or `column desc`.
    pub column: String,
    /// Whether the order is descending; `None` when `column` may state the direction.
    pub descending: Option<bool>,
}

impl QuerySpec {
    /// The `limit` for all rows.
    pub const UNLIMITED: u64 = u64::MAX;

    /// All columns of `table`, up to the default limit of rows.
    pub fn new(table: impl Into<String>) -> Self {
        Self { table: table.into(), limit: LIMIT_DEFAULT, ..Self::default() }
    }

    /// The names of its tables.
    pub fn tables_mut(&mut self) -> impl Iterator<Item = &mut String> {
        std::iter::once(&mut self.table).chain(self.joins.iter_mut().map(|join| &mut join.table))
    }
}

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
