//! Translates expressions to the SQL of our own engine, which plans them as the same expressions.

use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::{AggregateFunctionParams, Cast, InList, ScalarFunction};
use datafusion::logical_expr::{Between, BinaryExpr, Case, Expr, Like, Operator};
use tidegate_sql::Parameter;

use super::Translator;
use super::expression::{ColumnLookup, cast_to, scalar_text};

/// Functions that are called in SQL as in a plan, and that fail for no row.
#[rustfmt::skip]
const FUNCTIONS: &[&str] = &[
    "btrim", "left", "length", "lower", "ltrim", "nullif", "octet_length", "reverse", "right", "rtrim", "starts_with", "strpos",
    "upper",
];

/// The same, but they fail for some values.
#[rustfmt::skip]
const FALLIBLE_FUNCTIONS: &[&str] = &[
    "abs", "ceil", "date_bin", "date_part", "date_trunc", "exp", "floor", "ln", "power", "round", "sign", "sqrt", "substring",
];

/// Aggregates that are called in SQL as in a plan.
const AGGREGATES: &[&str] = &["bit_and", "bit_or", "bit_xor", "bool_and", "bool_or", "count", "max", "min", "sum"];

impl Translator {
    /// Translates `expr` for a member that runs our engine. `None` if its SQL could be planned as another expression.
    pub(super) fn translate_own(&mut self, expr: &Expr, terms: ColumnLookup<'_>) -> Option<String> {
        let mut test = |inner: &Expr, words: &str| Some(format!("({} {words})", self.translate_tested(inner, terms)?));
        match expr {
            Expr::IsNull(inner) => test(inner, "IS NULL"),
            Expr::IsNotNull(inner) => test(inner, "IS NOT NULL"),
            Expr::IsTrue(inner) => test(inner, "IS TRUE"),
            Expr::IsNotTrue(inner) => test(inner, "IS NOT TRUE"),
            Expr::IsFalse(inner) => test(inner, "IS FALSE"),
            Expr::IsNotFalse(inner) => test(inner, "IS NOT FALSE"),
            Expr::IsUnknown(inner) => test(inner, "IS UNKNOWN"),
            Expr::IsNotUnknown(inner) => test(inner, "IS NOT UNKNOWN"),
            Expr::Alias(alias) => self.translate_own(&alias.expr, terms),
            Expr::Column(column) => {
                terms(column).filter(|term| !term.field.data_type().is_nested()).map(|term| term.sql)
            }
            Expr::Literal(value, _) => self.translate_literal(value),
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                let op = own_operator(*op)?;
                let (left, right) = (self.translate_own(left, terms)?, self.translate_own(right, terms)?);
                Some(format!("({left} {op} {right})"))
            }
            Expr::Not(inner) => Some(format!("(NOT {})", self.translate_own(inner, terms)?)),
            Expr::Like(like) => self.translate_like(like, terms),
            Expr::InList(list) => self.translate_own_list(list, terms),
            Expr::Between(between) => self.translate_own_between(between, terms),
            Expr::Case(case) => self.translate_case(case, terms),
            Expr::Cast(Cast { expr, field }) => {
                let of_column = match &**expr {
                    Expr::Column(column) => Some(terms(column)?.field.data_type().clone()),
                    _ => None,
                };
                let is_same = of_column.is_some_and(|from| match field.data_type() {
                    DataType::Timestamp(TimeUnit::Microsecond, None) => {
                        from == DataType::Date32 && self.allows_failures()
                    }
                    to => is_widening(&from, to),
                });
                is_same.then(|| self.translate_cast(expr, field.data_type(), terms))?
            }
            Expr::ScalarFunction(call) => self.translate_call(call, terms),
            _ => None,
        }
    }

    /// Translates a call of an aggregate.
    pub(super) fn translate_own_aggregate(
        &mut self,
        name: &str,
        params: &AggregateFunctionParams,
        terms: ColumnLookup<'_>,
    ) -> Option<String> {
        if !self.is_own_engine() || params.distinct || !AGGREGATES.contains(&name) {
            return None;
        }
        let args = params.args.iter().map(|arg| self.translate_operand(arg, terms)).collect::<Option<Vec<String>>>()?;
        Some(format!("{name}({})", args.join(", ")))
    }

    /// Every column can be tested for NULL.
    fn translate_tested(&mut self, inner: &Expr, terms: ColumnLookup<'_>) -> Option<String> {
        match inner {
            Expr::Column(column) => terms(column).map(|term| term.sql),
            other => self.translate_own(other, terms),
        }
    }

    fn translate_like(&mut self, like: &Like, terms: ColumnLookup<'_>) -> Option<String> {
        if like.escape_char.is_some() || like.case_insensitive {
            return None;
        }
        let (value, pattern) = (self.translate_own(&like.expr, terms)?, self.translate_own(&like.pattern, terms)?);
        let word = if like.negated { "NOT LIKE" } else { "LIKE" };
        Some(format!("({value} {word} {pattern})"))
    }

    fn translate_own_list(&mut self, list: &InList, terms: ColumnLookup<'_>) -> Option<String> {
        let value = self.translate_own(&list.expr, terms)?;
        let values = list.list.iter().map(|value| match value {
            Expr::Literal(value, _) => self.translate_literal(value),
            _ => None,
        });
        let values = values.collect::<Option<Vec<String>>>()?;
        let word = if list.negated { "NOT IN" } else { "IN" };
        Some(format!("({value} {word} ({}))", values.join(", ")))
    }

    fn translate_own_between(&mut self, between: &Between, terms: ColumnLookup<'_>) -> Option<String> {
        let value = self.translate_own(&between.expr, terms)?;
        let (low, high) = (self.translate_own(&between.low, terms)?, self.translate_own(&between.high, terms)?);
        let word = if between.negated { "NOT BETWEEN" } else { "BETWEEN" };
        Some(format!("({value} {word} {low} AND {high})"))
    }

    fn translate_case(&mut self, case: &Case, terms: ColumnLookup<'_>) -> Option<String> {
        if case.expr.is_some() {
            return None;
        }
        let mut sql = "CASE".to_owned();
        for (condition, value) in &case.when_then_expr {
            let (condition, value) = (self.translate_own(condition, terms)?, self.translate_operand(value, terms)?);
            sql.push_str(&format!(" WHEN {condition} THEN {value}"));
        }
        if let Some(otherwise) = &case.else_expr {
            sql.push_str(&format!(" ELSE {}", self.translate_operand(otherwise, terms)?));
        }
        Some(format!("{sql} END"))
    }

    fn translate_call(&mut self, call: &ScalarFunction, terms: ColumnLookup<'_>) -> Option<String> {
        let ScalarFunction { func, args } = call;
        match (func.name(), args.as_slice()) {
            ("extract", [Expr::Literal(ScalarValue::Utf8(Some(field)), _), value])
                if is_word(field) && (self.allows_failures() || is_temporal(value, terms)) =>
            {
                Some(format!("extract({field} FROM {})", self.translate_own(value, terms)?))
            }
            (name, [left, right])
                if let Some(op) = checked_operator(name)
                    && self.allows_failures() =>
            {
                let (left, right) = (self.translate_operand(left, terms)?, self.translate_operand(right, terms)?);
                Some(format!("({left} {op} {right})"))
            }
            ("checked_negate", [value]) if self.allows_failures() => {
                Some(format!("(- {})", self.translate_operand(value, terms)?))
            }
            ("cast*", [value]) => {
                let to = func.inner().return_type(&[DataType::Null]).ok()?;
                let never_fails = to.is_floating() && is_integer(value, terms);
                (never_fails || self.allows_failures()).then(|| self.translate_cast(value, &to, terms))?
            }
            // The type of its result depends on a constant number of digits.
            ("round", [_, _]) => None,
            (name, args) if FUNCTIONS.contains(&name) || self.may_send_fallible(name, args, terms) => {
                let args: Option<Vec<String>> = args.iter().map(|arg| self.translate_argument(arg, terms)).collect();
                Some(format!("{name}({})", args?.join(", ")))
            }
            _ => None,
        }
    }

    /// Whether a call of `name`, which fails for some values, may be sent.
    fn may_send_fallible(&self, name: &str, args: &[Expr], terms: ColumnLookup<'_>) -> bool {
        // With a constant field, these fail for no time.
        let is_of_time = match (name, args) {
            ("date_part" | "date_trunc", [Expr::Literal(..), value]) => is_temporal(value, terms),
            _ => false,
        };
        FALLIBLE_FUNCTIONS.contains(&name) && (self.allows_failures() || is_of_time)
    }

    fn translate_cast(&mut self, value: &Expr, to: &DataType, terms: ColumnLookup<'_>) -> Option<String> {
        Some(format!("CAST({} AS {})", self.translate_operand(value, terms)?, sql_type(to)?))
    }

    /// A text as an argument is a placeholder, since it may be the name of a field.
    fn translate_argument(&mut self, argument: &Expr, terms: ColumnLookup<'_>) -> Option<String> {
        match argument {
            Expr::Literal(value, _) if value.data_type().is_string() => self.translate_literal(value),
            other => self.translate_operand(other, terms),
        }
    }

    /// As [`Translator::translate_own`], with the type of a literal: that of a placeholder is not known when it is planned.
    fn translate_operand(&mut self, expr: &Expr, terms: ColumnLookup<'_>) -> Option<String> {
        let sql = self.translate_own(expr, terms)?;
        Some(match expr {
            Expr::Literal(value, _) => match value.data_type() {
                DataType::Int64 => format!("CAST({sql} AS BIGINT)"),
                DataType::Float64 => format!("CAST({sql} AS DOUBLE PRECISION)"),
                DataType::Boolean => format!("CAST({sql} AS BOOLEAN)"),
                text if text.is_string() => format!("CAST({sql} AS TEXT)"),
                _ => sql,
            },
            _ => sql,
        })
    }

    fn translate_literal(&mut self, value: &ScalarValue) -> Option<String> {
        let parameter = match value {
            _ if value.is_null() => return None,
            ScalarValue::Utf8(Some(text)) | ScalarValue::LargeUtf8(Some(text)) | ScalarValue::Utf8View(Some(text)) => {
                return Some(self.placeholder(Parameter::Text(text.clone())));
            }
            ScalarValue::Float64(Some(value)) if value.is_finite() => {
                return Some(self.placeholder(Parameter::Float(*value)));
            }
            ScalarValue::IntervalMonthDayNano(Some(_)) => {
                let text = self.placeholder(Parameter::Text(scalar_text(value)?));
                return Some(format!("CAST({text} AS INTERVAL)"));
            }
            ScalarValue::Boolean(Some(value)) => Parameter::Boolean(*value),
            ScalarValue::Int16(Some(value)) => Parameter::Integer(i64::from(*value)),
            ScalarValue::Int32(Some(value)) => Parameter::Integer(i64::from(*value)),
            ScalarValue::Int64(Some(value)) => Parameter::Integer(*value),
            ScalarValue::Date32(_)
            | ScalarValue::Decimal128(..)
            | ScalarValue::TimestampSecond(..)
            | ScalarValue::TimestampMillisecond(..)
            | ScalarValue::TimestampMicrosecond(..)
            | ScalarValue::TimestampNanosecond(..) => Parameter::Text(scalar_text(value)?),
            _ => return None,
        };
        let placeholder = self.placeholder(parameter);
        cast_to(placeholder, &value.data_type(), true)
    }
}

fn own_operator(op: Operator) -> Option<&'static str> {
    Some(match op {
        Operator::And => "AND",
        Operator::Or => "OR",
        Operator::Eq => "=",
        Operator::NotEq => "<>",
        Operator::Lt => "<",
        Operator::LtEq => "<=",
        Operator::Gt => ">",
        Operator::GtEq => ">=",
        Operator::IsDistinctFrom => "IS DISTINCT FROM",
        Operator::IsNotDistinctFrom => "IS NOT DISTINCT FROM",
        // Arithmetic is a call of a function that checks its result.
        _ => return None,
    })
}

fn checked_operator(name: &str) -> Option<&'static str> {
    Some(match name {
        "checked_add" => "+",
        "checked_subtract" => "-",
        "checked_multiply" => "*",
        "checked_divide" => "/",
        "checked_modulo" => "%",
        _ => return None,
    })
}

/// Whether every value of `from` is one of `to`, or the nearest float.
fn is_widening(from: &DataType, to: &DataType) -> bool {
    use DataType::{Decimal128, Float32, Float64, Int16, Int32, Int64};
    match (from, to) {
        (Int16, Int32 | Int64 | Float64) | (Int32, Int64 | Float64) | (Int64 | Float32, Float64) => true,
        (Int16 | Int32 | Int64, Decimal128(precision, 0)) => *precision >= 19,
        _ => false,
    }
}

/// The name of a type in SQL.
fn sql_type(data_type: &DataType) -> Option<String> {
    Some(match data_type {
        DataType::Boolean => "BOOLEAN".to_owned(),
        DataType::Int16 => "SMALLINT".to_owned(),
        DataType::Int32 => "INTEGER".to_owned(),
        DataType::Int64 => "BIGINT".to_owned(),
        DataType::Float64 => "DOUBLE PRECISION".to_owned(),
        DataType::Decimal128(precision, scale) if *scale >= 0 => format!("NUMERIC({precision}, {scale})"),
        DataType::Utf8 => "TEXT".to_owned(),
        DataType::Date32 => "DATE".to_owned(),
        DataType::Timestamp(TimeUnit::Microsecond, None) => "TIMESTAMP".to_owned(),
        _ => return None,
    })
}

/// Whether `expr` is a column with dates or times.
fn is_temporal(expr: &Expr, terms: ColumnLookup<'_>) -> bool {
    is_column_of(expr, terms, DataType::is_temporal)
}

/// Whether `expr` is a column with whole numbers.
fn is_integer(expr: &Expr, terms: ColumnLookup<'_>) -> bool {
    is_column_of(expr, terms, DataType::is_integer)
}

fn is_column_of(expr: &Expr, terms: ColumnLookup<'_>, has_type: fn(&DataType) -> bool) -> bool {
    match expr {
        Expr::Column(column) => terms(column).is_some_and(|term| has_type(term.field.data_type())),
        _ => false,
    }
}

fn is_word(field: &str) -> bool {
    !field.is_empty() && field.chars().all(|letter| letter.is_ascii_lowercase() || letter == '_')
}
