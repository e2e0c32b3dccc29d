//! Conditions in the SQL of a member.

use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::{Column, ScalarValue};
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{Between, BinaryExpr, Expr, Operator};
use tidegate_query::{Parameter, SqlDialect};

use super::likeness::Likeness;
use super::part::Term;
use super::translator::Translator;

/// A condition of a member.
pub(super) struct Condition {
    pub(super) sql: String,
    /// Whether it holds for exactly the rows that it holds for here; else for those and others.
    pub(super) is_exact: bool,
}

impl Condition {
    fn exact(sql: String) -> Self {
        Self { sql, is_exact: true }
    }
}

/// Finds the term of a column.
pub(super) type Terms<'a> = &'a dyn Fn(&Column) -> Option<Term>;

impl Translator {
    /// `expr` as a condition; none where it would not mean the same.
    pub(super) fn condition(&mut self, expr: &Expr, terms: Terms<'_>) -> Option<Condition> {
        match expr {
            Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right }) => {
                let (left, right) = (self.condition(left, terms)?, self.condition(right, terms)?);
                let sql = format!("({} {op} {})", left.sql, right.sql);
                Some(Condition { sql, is_exact: left.is_exact && right.is_exact })
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => self.comparison(left, *op, right, terms),
            Expr::Not(inner) => {
                let inner = self.condition(inner, terms).filter(|inner| inner.is_exact)?;
                Some(Condition::exact(format!("(NOT {})", inner.sql)))
            }
            Expr::IsNull(inner) => Some(Condition::exact(format!("({} IS NULL)", term(inner, terms)?.sql))),
            Expr::IsNotNull(inner) => Some(Condition::exact(format!("({} IS NOT NULL)", term(inner, terms)?.sql))),
            Expr::Column(_) => {
                let term = term(expr, terms)?;
                let is_same = self.likeness(&term) >= Likeness::Equal && *term.field.data_type() == DataType::Boolean;
                is_same.then(|| Condition::exact(term.sql))
            }
            Expr::InList(list) => self.in_list(list, terms),
            Expr::Between(between) => self.between(between, terms),
            _ => None,
        }
    }

    fn comparison(&mut self, left: &Expr, op: Operator, right: &Expr, terms: Terms<'_>) -> Option<Condition> {
        if let (Some(left), Some(right)) = (term(left, terms), term(right, terms)) {
            let is_same_type = left.field.data_type() == right.field.data_type();
            let likeness = self.likeness(&left).min(self.likeness(&right));
            let (op, is_exact) = operator(op, likeness)?;
            return is_same_type.then(|| Condition { sql: format!("({} {op} {})", left.sql, right.sql), is_exact });
        }
        let (column, op, literal) = match (left, right) {
            (Expr::Literal(value, _), column) => (column, op.swap()?, value),
            (column, Expr::Literal(value, _)) => (column, op, value),
            _ => return None,
        };
        let term = term(column, terms)?;
        let (op, is_exact) = operator(op, self.likeness(&term))?;
        let value = self.value(literal, &term)?;
        Some(Condition { sql: format!("({} {op} {value})", term.sql), is_exact })
    }

    fn in_list(&mut self, list: &InList, terms: Terms<'_>) -> Option<Condition> {
        let term = term(&list.expr, terms)?;
        let (_, is_exact) = operator(Operator::Eq, self.likeness(&term))?;
        if list.negated && !is_exact {
            return None;
        }
        let values = list.list.iter().map(|value| match value {
            Expr::Literal(value, _) => self.value(value, &term),
            _ => None,
        });
        let values: Vec<String> = values.collect::<Option<_>>()?;
        let word = if list.negated { "NOT IN" } else { "IN" };
        Some(Condition { sql: format!("({} {word} ({}))", term.sql, values.join(", ")), is_exact })
    }

    fn between(&mut self, between: &Between, terms: Terms<'_>) -> Option<Condition> {
        let term = term(&between.expr, terms).filter(|term| self.likeness(term) == Likeness::Ordered)?;
        let (Expr::Literal(low, _), Expr::Literal(high, _)) = (&*between.low, &*between.high) else { return None };
        let (low, high) = (self.value(low, &term)?, self.value(high, &term)?);
        let word = if between.negated { "NOT BETWEEN" } else { "BETWEEN" };
        Some(Condition::exact(format!("({} {word} {low} AND {high})", term.sql)))
    }

    pub(super) fn likeness(&self, term: &Term) -> Likeness {
        Likeness::of(&term.field, self.dialect())
    }

    /// A placeholder for `value`, which is compared with `term`.
    fn value(&mut self, value: &ScalarValue, term: &Term) -> Option<String> {
        let wanted = term.field.data_type();
        let parameter = match value {
            _ if value.is_null() => return None,
            ScalarValue::Utf8(Some(text)) | ScalarValue::LargeUtf8(Some(text)) | ScalarValue::Utf8View(Some(text)) => {
                return wanted.is_string().then(|| self.placeholder(Parameter::Text(text.clone())));
            }
            _ if value.data_type() != *wanted => return None,
            ScalarValue::Boolean(Some(value)) => Parameter::Boolean(*value),
            ScalarValue::Int8(Some(value)) => Parameter::Integer(i64::from(*value)),
            ScalarValue::Int16(Some(value)) => Parameter::Integer(i64::from(*value)),
            ScalarValue::Int32(Some(value)) => Parameter::Integer(i64::from(*value)),
            ScalarValue::Int64(Some(value)) => Parameter::Integer(*value),
            ScalarValue::Date32(Some(_))
            | ScalarValue::TimestampMicrosecond(Some(_), _)
            | ScalarValue::Decimal128(Some(_), ..) => Parameter::Text(text_of(value)?),
            _ => return None,
        };
        let placeholder = self.placeholder(parameter);
        Some(match self.dialect() {
            SqlDialect::DataFusion => format!("arrow_cast({placeholder}, '{wanted}')"),
            SqlDialect::Postgres | SqlDialect::Sqlite => placeholder,
        })
    }
}

/// `op` as it is written, where values that are alike so far may be compared by it, and whether it is exact.
fn operator(op: Operator, likeness: Likeness) -> Option<(&'static str, bool)> {
    let (written, needed) = match op {
        Operator::Eq => ("=", Likeness::EqualThere),
        Operator::NotEq => ("<>", Likeness::Equal),
        Operator::Lt => ("<", Likeness::Ordered),
        Operator::LtEq => ("<=", Likeness::Ordered),
        Operator::Gt => (">", Likeness::Ordered),
        Operator::GtEq => (">=", Likeness::Ordered),
        _ => return None,
    };
    (likeness >= needed).then_some((written, likeness > Likeness::EqualThere))
}

fn term(expr: &Expr, terms: Terms<'_>) -> Option<Term> {
    match expr {
        Expr::Column(column) => terms(column),
        _ => None,
    }
}

/// `value` as databases read it.
fn text_of(value: &ScalarValue) -> Option<String> {
    let array = value.to_array().ok()?;
    let formatter = ArrayFormatter::try_new(&array, &FormatOptions::default()).ok()?;
    formatter.value(0).try_to_string().ok()
}
