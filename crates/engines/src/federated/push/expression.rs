//! Translates conditions to the SQL of a member: comparisons of a column only if they have the same result in its
//! database as here.

use datafusion::arrow::datatypes::{DataType, Field, TimeUnit};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::{Column, ScalarValue};
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{Between, BinaryExpr, Expr, Operator};
use tidegate_query::{ExtensionType, field_type_name};
use tidegate_sql::{Parameter, SqlDialect};

use super::{SqlColumn, Translator};

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

/// Types of PostgreSQL with the order of their texts, beside those with a length.
const ORDERED_AS_TEXTS: &[&str] = &["text", "bpchar", "name", "\"char\"", "uuid", "macaddr", "macaddr8"];

/// How far comparisons of a column agree with the member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ComparisonSemantics {
    /// They may differ.
    None,
    /// Values that are equal here are equal in the member, but not vice versa.
    EqualInMember,
    /// Equality agrees, order does not.
    Equal,
    /// Equality and order agree.
    Ordered,
}

impl ComparisonSemantics {
    pub(crate) fn for_field(field: &Field, dialect: SqlDialect) -> Self {
        match dialect {
            SqlDialect::DataFusion => embedded_semantics(field.data_type()),
            SqlDialect::Postgres => postgres_semantics(field),
            SqlDialect::Sqlite => sqlite_semantics(field.data_type()),
            SqlDialect::MySql => mysql_semantics(field),
        }
    }
}

/// The type as which a query of the member selects `field`, if that is another than the column's own: PostgreSQL's
/// cast to text. It removes the padding of `char(n)`, and then texts that are equal here are equal there too, whatever
/// the rules of the column's own type.
pub(crate) fn selected_type(field: &Field, dialect: SqlDialect) -> Option<&'static str> {
    match (dialect, field.data_type()) {
        (SqlDialect::Postgres, DataType::Utf8) => is_cast_to_text(field).then_some("text"),
        (SqlDialect::Postgres, DataType::List(item)) if *item.data_type() == DataType::Utf8 => {
            is_cast_to_text(item).then_some("text[]")
        }
        _ => None,
    }
}

/// Whether the member orders the values of `field`, which are texts here, by the rules of another type. PostgreSQL
/// describes a column of a domain by its base type.
pub(crate) fn has_own_order(field: &Field, dialect: SqlDialect) -> bool {
    let name = field_type_name(field);
    dialect.is_postgres()
        && *field.data_type() == DataType::Utf8
        && ExtensionType::from_field(field).is_none()
        && !["character", "bit"].iter().any(|start| name.starts_with(start))
        && !ORDERED_AS_TEXTS.contains(&name.as_str())
}

/// Whether `field` has a type that becomes text here and is not a text type of PostgreSQL. JSON and numbers keep their
/// extension types; a cast of `inet` would add the length of the prefix, and one of `"char"` depends on the version.
fn is_cast_to_text(field: &Field) -> bool {
    let name = field_type_name(field);
    ExtensionType::from_field(field).is_none() && !is_text_name(&name) && !matches!(&*name, "inet" | "\"char\"")
}

fn is_text_name(name: &str) -> bool {
    name == "text" || name.starts_with("character varying")
}

/// The same engine, but it compares floats by their bits in some places and by their values in others.
fn embedded_semantics(data_type: &DataType) -> ComparisonSemantics {
    if data_type.is_floating() || data_type.is_nested() {
        ComparisonSemantics::None
    } else {
        ComparisonSemantics::Ordered
    }
}

fn postgres_semantics(field: &Field) -> ComparisonSemantics {
    if ExtensionType::from_field(field).is_some() {
        return ComparisonSemantics::None;
    }
    match field.data_type() {
        DataType::Int16 | DataType::Int32 | DataType::Int64 | DataType::Date32 => ComparisonSemantics::Ordered,
        DataType::Timestamp(..) | DataType::Decimal128(..) => ComparisonSemantics::Ordered,
        DataType::Boolean => ComparisonSemantics::Equal,
        // The order depends on a collation. Padded, case-insensitive and other types have their own rules for equality,
        // and are cast to text first.
        DataType::Utf8 if is_text_name(&field_type_name(field)) || is_cast_to_text(field) => ComparisonSemantics::Equal,
        _ => ComparisonSemantics::None,
    }
}

fn mysql_semantics(field: &Field) -> ComparisonSemantics {
    if ExtensionType::from_field(field).is_some() {
        return ComparisonSemantics::None;
    }
    match field.data_type() {
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => ComparisonSemantics::Ordered,
        DataType::Date32 | DataType::Timestamp(_, None) | DataType::Decimal128(..) => ComparisonSemantics::Ordered,
        // A collation may treat texts that differ in case, accents or blanks at the end as equal.
        DataType::Utf8 => ComparisonSemantics::EqualInMember,
        _ => ComparisonSemantics::None,
    }
}

fn sqlite_semantics(data_type: &DataType) -> ComparisonSemantics {
    match data_type {
        DataType::Int64 => ComparisonSemantics::Ordered,
        // A collation may treat texts that differ in case as equal.
        DataType::Utf8 => ComparisonSemantics::EqualInMember,
        _ => ComparisonSemantics::None,
    }
}
