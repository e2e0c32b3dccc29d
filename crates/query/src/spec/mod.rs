//! A question as data: what the `query` tool takes.

mod condition;
mod read;
mod read_condition;
mod schema;

use serde_json::{Map, Value};
use tidegate_core::{Error, Principal};

pub use condition::{Comparison, ComparisonOperator, Operand, QueryCondition};

use crate::database::Database;
use crate::executor::{AnswerMode, Delivery};
use crate::format::OutputFormat;
use crate::render;
use crate::statement::Statement;

/// Rows answered when the caller names no limit.
pub const LIMIT_DEFAULT: u64 = 100;

/// A question as data, read from the arguments of the `query` tool.
#[derive(Debug, Clone, PartialEq)]
pub struct QuerySpec {
    /// The database; none when there is only one.
    pub database: Option<String>,
    /// The table.
    pub table: String,
    /// What to answer; empty for all columns, or for those of `group_by`.
    pub select: Vec<Selection>,
    /// Which rows.
    pub filter: Option<QueryCondition>,
    /// Further tables.
    pub joins: Vec<QueryJoin>,
    /// The columns whose values make the groups.
    pub group_by: Vec<String>,
    /// Which groups.
    pub having: Option<QueryCondition>,
    /// The order, most significant first.
    pub order_by: Vec<SortKey>,
    /// Rows at most. The statement asks for one more, so that whether there are more is known.
    pub limit: u64,
    /// Whether the caller named the limit.
    pub has_explicit_limit: bool,
    /// The form of the answer.
    pub format: OutputFormat,
    /// The column whose unique values are wanted instead of rows.
    pub extract: Option<String>,
    /// When rows leave.
    pub mode: AnswerMode,
    /// Where they go.
    pub delivery: Delivery,
    /// The page of an earlier answer that is wanted instead.
    pub cursor: Option<String>,
    /// Whether the question is asked anew, whatever is remembered.
    pub no_cache: bool,
}

/// One column of the answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Selection {
    /// All columns: `"*"`.
    All,
    /// A column of a table, perhaps under another name.
    Column {
        /// Which.
        column: String,
        /// Its name in the answer.
        alias: Option<String>,
    },
    /// A function over the rows of a group.
    Aggregate {
        /// Which function.
        function: AggregateFunction,
        /// Over which column; none counts rows.
        column: Option<String>,
        /// Whether each value counts once.
        distinct: bool,
        /// Its name in the answer.
        alias: Option<String>,
    },
}

/// A function over the rows of a group: the closed list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names of SQL say it")]
pub enum AggregateFunction {
    Count,
    CountDistinct,
    Sum,
    Avg,
    Min,
    Max,
    Median,
    Stddev,
    Variance,
}

impl AggregateFunction {
    /// Every function.
    pub const ALL: [Self; 9] = [
        Self::Count,
        Self::CountDistinct,
        Self::Sum,
        Self::Avg,
        Self::Min,
        Self::Max,
        Self::Median,
        Self::Stddev,
        Self::Variance,
    ];

    /// The name that callers give.
    pub fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::CountDistinct => "count_distinct",
            Self::Sum => "sum",
            Self::Avg => "avg",
            Self::Min => "min",
            Self::Max => "max",
            Self::Median => "median",
            Self::Stddev => "stddev",
            Self::Variance => "variance",
        }
    }
}

/// A further table.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryJoin {
    /// Which.
    pub table: String,
    /// Its name in this question, where a table is joined more than once.
    pub alias: Option<String>,
    /// Which rows stay without a partner.
    pub kind: JoinKind,
    /// How its rows find their partners.
    pub on: JoinOn,
}

impl QueryJoin {
    /// The name that columns are qualified with.
    pub fn reference(&self) -> &str {
        self.alias.as_deref().unwrap_or(&self.table)
    }
}

/// Which rows of a join stay without a partner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JoinKind {
    /// None.
    Inner,
    /// Those of the tables before.
    Left,
    /// Those of the joined table.
    Right,
    /// All.
    Full,
}

impl JoinKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Inner, Self::Left, Self::Right, Self::Full];

    /// The name that callers give.
    pub fn name(self) -> &'static str {
        match self {
            Self::Inner => "inner",
            Self::Left => "left",
            Self::Right => "right",
            Self::Full => "full",
        }
    }
}

/// How the rows of a joined table find their partners.
#[derive(Debug, Clone, PartialEq)]
pub enum JoinOn {
    /// Pairs of columns that are equal: one of the tables before, one of the joined table.
    Columns(Vec<(String, String)>),
    /// One SQL expression.
    Expression(String),
}

/// One column of the order.
#[derive(Debug, Clone, PartialEq)]
pub struct SortKey {
    /// A column of a table, or a name of `select`. As text it may be `-column` or `column desc`.
    pub column: String,
    /// Whether largest first; none when `column` is text that may say so itself.
    pub descending: Option<bool>,
}

impl QuerySpec {
    /// As a `limit`: all rows.
    pub const UNLIMITED: u64 = u64::MAX;

    /// The JSON Schema of the arguments: short, because every model reads it. What it leaves
    /// open, [`QuerySpec::from_json`] checks with better words.
    pub fn schema() -> Value {
        schema::arguments_schema()
    }

    /// Reads the arguments.
    ///
    /// # Errors
    /// `InvalidArguments` with every violation.
    pub fn from_json(arguments: &Map<String, Value>) -> Result<Self, Error> {
        read::read_spec(arguments)
    }

    /// The statement that asks this of `database`: every name checked against the tables that
    /// `principal` may see, every value bound.
    ///
    /// # Errors
    /// `NotFound` for tables, `InvalidArguments` with the table's columns for columns.
    pub async fn render(&self, database: &dyn Database, principal: &Principal) -> Result<Statement, Error> {
        render::render_statement(self, database, principal).await
    }
}
