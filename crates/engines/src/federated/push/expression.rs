//! Translates conditions to the SQL of a member.

use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::{Column, ScalarValue};
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{Between, BinaryExpr, Expr, Operator};
use tidegate_sql::Parameter;

use super::comparison::ComparisonSemantics;
use super::query_builder::SqlColumn;
use super::translator::Translator;

pub(super) struct MemberCondition {
    pub(super) sql: String,
    /// Whether it accepts exactly the same rows as here. If not, it accepts more.
    pub(super) is_exact: bool,
}

impl MemberCondition {
    fn exact(sql: String) -> Self {
        Self { sql, is_exact: true }
    }
}

pub(super) type ColumnLookup<'a> = &'a dyn Fn(&Column) -> Option<SqlColumn>;

impl Translator {
    /// Translates `expr` to a condition. `None` if its meaning would differ.
    pub(super) fn translate_condition(&mut self, expr: &Expr, terms: ColumnLookup<'_>) -> Option<MemberCondition> {
        if self.is_own_engine() {
            return self.translate_own(expr, terms).map(MemberCondition::exact);
        }
        match expr {
            Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right }) => {
                let (left, right) = (self.translate_condition(left, terms)?, self.translate_condition(right, terms)?);
                let sql = format!("({} {op} {})", left.sql, right.sql);
                Some(MemberCondition { sql, is_exact: left.is_exact && right.is_exact })
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => self.translate_comparison(left, *op, right, terms),
            Expr::Not(inner) => {
                let inner = self.translate_condition(inner, terms).filter(|inner| inner.is_exact)?;
                Some(MemberCondition::exact(format!("(NOT {})", inner.sql)))
            }
            Expr::IsNull(inner) | Expr::IsNotNull(inner) => {
                let test = if matches!(expr, Expr::IsNull(_)) { "IS NULL" } else { "IS NOT NULL" };
                Some(MemberCondition::exact(format!("({} {test})", find_column(inner, terms)?.sql)))
            }
            Expr::Column(_) => {
                let term = find_column(expr, terms)?;
                let is_same = self.comparison_semantics(&term) >= ComparisonSemantics::Equal
                    && *term.field.data_type() == DataType::Boolean;
                is_same.then(|| MemberCondition::exact(term.sql))
            }
            Expr::InList(list) => self.translate_in_list(list, terms),
            Expr::Between(between) => self.translate_between(between, terms),
            _ => None,
        }
    }

    fn translate_comparison(
        &mut self,
        left: &Expr,
        op: Operator,
        right: &Expr,
        terms: ColumnLookup<'_>,
    ) -> Option<MemberCondition> {
        if let (Some(left), Some(right)) = (find_column(left, terms), find_column(right, terms)) {
            let is_same_type = left.field.data_type() == right.field.data_type();
            let comparison_semantics = self.comparison_semantics(&left).min(self.comparison_semantics(&right));
            let (op, is_exact) = comparison_operator(op, comparison_semantics)?;
            return is_same_type
                .then(|| MemberCondition { sql: format!("({} {op} {})", left.sql, right.sql), is_exact });
        }
        let (column, op, literal) = match (left, right) {
            (Expr::Literal(value, _), column) => (column, op.swap()?, value),
            (column, Expr::Literal(value, _)) => (column, op, value),
            _ => return None,
        };
        let term = find_column(column, terms)?;
        let (op, is_exact) = comparison_operator(op, self.comparison_semantics(&term))?;
        let value = self.bind_value(literal, &term)?;
        Some(MemberCondition { sql: format!("({} {op} {value})", term.sql), is_exact })
    }

    fn translate_in_list(&mut self, list: &InList, terms: ColumnLookup<'_>) -> Option<MemberCondition> {
        let term = find_column(&list.expr, terms)?;
        let (_, is_exact) = comparison_operator(Operator::Eq, self.comparison_semantics(&term))?;
        if list.negated && !is_exact {
            return None;
        }
        let values = list.list.iter().map(|value| match value {
            Expr::Literal(value, _) => self.bind_value(value, &term),
            _ => None,
        });
        let values: Vec<String> = values.collect::<Option<_>>()?;
        let word = if list.negated { "NOT IN" } else { "IN" };
        Some(MemberCondition { sql: format!("({} {word} ({}))", term.sql, values.join(", ")), is_exact })
    }

    fn translate_between(&mut self, between: &Between, terms: ColumnLookup<'_>) -> Option<MemberCondition> {
        let term = find_column(&between.expr, terms)
            .filter(|term| self.comparison_semantics(term) == ComparisonSemantics::Ordered)?;
        let (Expr::Literal(low, _), Expr::Literal(high, _)) = (&*between.low, &*between.high) else { return None };
        let (low, high) = (self.bind_value(low, &term)?, self.bind_value(high, &term)?);
        let word = if between.negated { "NOT BETWEEN" } else { "BETWEEN" };
        Some(MemberCondition::exact(format!("({} {word} {low} AND {high})", term.sql)))
    }

    pub(super) fn comparison_semantics(&self, term: &SqlColumn) -> ComparisonSemantics {
        ComparisonSemantics::for_field(&term.field, self.dialect())
    }

    fn bind_value(&mut self, value: &ScalarValue, term: &SqlColumn) -> Option<String> {
        let data_type = term.field.data_type();
        let parameter = match value {
            _ if value.is_null() => return None,
            ScalarValue::Utf8(Some(text)) | ScalarValue::LargeUtf8(Some(text)) | ScalarValue::Utf8View(Some(text)) => {
                return data_type.is_string().then(|| self.placeholder(Parameter::Text(text.clone())));
            }
            _ if value.data_type() != *data_type => return None,
            ScalarValue::Boolean(Some(value)) => Parameter::Boolean(*value),
            ScalarValue::Int8(Some(value)) => Parameter::Integer(i64::from(*value)),
            ScalarValue::Int16(Some(value)) => Parameter::Integer(i64::from(*value)),
            ScalarValue::Int32(Some(value)) => Parameter::Integer(i64::from(*value)),
            ScalarValue::Int64(Some(value)) => Parameter::Integer(*value),
            ScalarValue::Date32(Some(_))
            | ScalarValue::TimestampMicrosecond(Some(_), _)
            | ScalarValue::Decimal128(Some(_), ..) => Parameter::Text(scalar_text(value)?),
            _ => return None,
        };
        let placeholder = self.placeholder(parameter);
        if self.dialect().is_embedded() { cast_to(placeholder, data_type, false) } else { Some(placeholder) }
    }
}

/// `placeholder` as a value of `data_type`. Programs other than ours (`is_own`) have the types and the casts of standard SQL
/// only.
pub(super) fn cast_to(placeholder: String, data_type: &DataType, is_own: bool) -> Option<String> {
    Some(match data_type {
        // A value is bound with this type.
        DataType::Int64 | DataType::Boolean => placeholder,
        DataType::Int16 => format!("CAST({placeholder} AS SMALLINT)"),
        DataType::Int32 => format!("CAST({placeholder} AS INTEGER)"),
        DataType::Date32 => format!("CAST({placeholder} AS DATE)"),
        other if is_own => format!("arrow_cast({placeholder}, '{other}')"),
        DataType::Timestamp(TimeUnit::Microsecond, None) => format!("CAST({placeholder} AS TIMESTAMP)"),
        DataType::Timestamp(TimeUnit::Microsecond, Some(zone)) if **zone == *"UTC" => {
            format!("CAST({placeholder} AS TIMESTAMP WITH TIME ZONE)")
        }
        DataType::Decimal128(precision, scale) if *scale >= 0 => {
            format!("CAST({placeholder} AS DECIMAL({precision}, {scale}))")
        }
        _ => return None,
    })
}

/// The SQL of `op`, if values with these comparison semantics can be compared by it, and whether the result is exact.
fn comparison_operator(op: Operator, comparison_semantics: ComparisonSemantics) -> Option<(&'static str, bool)> {
    let (written, needed) = match op {
        Operator::Eq => ("=", ComparisonSemantics::EqualInMember),
        Operator::NotEq => ("<>", ComparisonSemantics::Equal),
        Operator::Lt => ("<", ComparisonSemantics::Ordered),
        Operator::LtEq => ("<=", ComparisonSemantics::Ordered),
        Operator::Gt => (">", ComparisonSemantics::Ordered),
        Operator::GtEq => (">=", ComparisonSemantics::Ordered),
        _ => return None,
    };
    (comparison_semantics >= needed).then_some((written, comparison_semantics > ComparisonSemantics::EqualInMember))
}

fn find_column(expr: &Expr, terms: ColumnLookup<'_>) -> Option<SqlColumn> {
    match expr {
        Expr::Column(column) => terms(column),
        _ => None,
    }
}

pub(super) fn scalar_text(value: &ScalarValue) -> Option<String> {
    let array = value.to_array().ok()?;
    let formatter = ArrayFormatter::try_new(&array, &FormatOptions::default()).ok()?;
    formatter.value(0).try_to_string().ok()
}
