//! Translates aggregates, their arguments, and the keys of groups and of orders to the SQL of a member.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::logical_expr::expr::{AggregateFunction, AggregateFunctionParams, Cast};
use datafusion::logical_expr::{Aggregate, BinaryExpr, Expr, ExprSchemable, Operator, SortExpr};
use datafusion::scalar::ScalarValue;
use tidegate_pgsql::PART_DIGEST;

use super::expression::{ColumnLookup, ComparisonSemantics};
use super::{MemberQueryBuilder, SqlColumn, Translator};

impl Translator {
    pub(super) fn translate_aggregate(
        &mut self,
        aggregate: &Aggregate,
        input: MemberQueryBuilder,
    ) -> Option<MemberQueryBuilder> {
        let schema = aggregate.input.schema();
        let columns = input.columns.clone();
        let terms = |column: &datafusion::common::Column| columns.get(schema.maybe_index_of_column(column)?).cloned();
        let mut written = Vec::new();
        for group in &aggregate.group_expr {
            written.push(self.translate_key(group, &terms, schema)?);
        }
        let groups = written.clone();
        for function in &aggregate.aggr_expr {
            written.push(self.translate_function(function, &terms, aggregate, written.len())?);
        }
        let fields = aggregate.schema.fields().iter();
        let columns = written.into_iter().zip(fields).map(|(sql, field)| SqlColumn { sql, field: field.clone() });
        Some(MemberQueryBuilder { groups: Some(groups), columns: columns.collect(), is_worth_pushing: true, ..input })
    }

    fn translate_function(
        &mut self,
        expr: &Expr,
        terms: ColumnLookup<'_>,
        aggregate: &Aggregate,
        position: usize,
    ) -> Option<String> {
        let function = match expr {
            Expr::Alias(alias) => return self.translate_function(&alias.expr, terms, aggregate, position),
            Expr::AggregateFunction(function) => function,
            _ => return None,
        };
        let AggregateFunction { func, params } = function;
        if !params.order_by.is_empty() || params.null_treatment.is_some() {
            return None;
        }
        let filter = match &params.filter {
            // MySQL has no such clause.
            Some(_) if self.dialect().is_mysql() => return None,
            Some(filter) => {
                let condition = self.translate_condition(filter, terms).filter(|condition| condition.is_exact)?;
                format!(" FILTER (WHERE {})", condition.sql)
            }
            None => String::new(),
        };
        if is_statistic(func.name()) {
            return Some(format!("{}{filter}", self.translate_statistic(func.name(), params, terms)?));
        }
        if func.name() == PART_DIGEST {
            return Some(format!("{}{filter}", self.translate_digest(params, terms)?));
        }
        let result = aggregate.schema.field(position).data_type();
        // Sums of parts would be rounded before they are added.
        if func.name() == "sum" && *result == DataType::Float32 {
            return None;
        }
        match self.translate_plain_function(function, &filter, result, terms) {
            Some(sql) => Some(sql),
            None => Some(format!("{}{filter}", self.translate_own_aggregate(func.name(), params, terms)?)),
        }
    }

    /// Translates a function over columns, with the same result in members of its dialect.
    fn translate_plain_function(
        &self,
        function: &AggregateFunction,
        filter: &str,
        result: &DataType,
        terms: ColumnLookup<'_>,
    ) -> Option<String> {
        let AggregateFunction { func, params } = function;
        let [argument] = params.args.as_slice() else { return None };
        if let ("sum", false, Some(product)) = (func.name(), params.distinct, self.translate_product(argument, terms)) {
            let sum = format!("SUM({product}){filter}");
            return Some(if self.dialect().is_postgres() { self.write_cast(&sum, "NUMERIC") } else { sum });
        }
        if func.name() == "count" {
            return Some(format!("{}{filter}", self.translate_count(argument, params.distinct, terms)?));
        }
        let (term, is_widened) = aggregated_column(argument, terms)?;
        let comparison_semantics = self.comparison_semantics(&term);
        let is_whole = matches!(term.field.data_type(), DataType::Int16 | DataType::Int32 | DataType::Int64);
        match func.name() {
            "min" | "max" if comparison_semantics == ComparisonSemantics::Ordered && !is_widened => {
                Some(format!("{}({}){filter}", func.name().to_uppercase(), term.sql))
            }
            "sum" if is_whole && !params.distinct && *result == DataType::Int64 => {
                Some(self.write_cast(&format!("SUM({}){filter}", term.sql), "BIGINT"))
            }
            // For 64-bit integers. An average is computed here, from a sum and a count.
            "sum" if is_whole && !params.distinct && matches!(result, DataType::Decimal128(_, 0)) => {
                Some(self.write_cast(&format!("SUM({}){filter}", term.sql), "NUMERIC"))
            }
            _ => None,
        }
    }

    /// A variance, a correlation or the like, which only the same engine computes in the same way.
    fn translate_statistic(
        &self,
        name: &str,
        params: &AggregateFunctionParams,
        terms: ColumnLookup<'_>,
    ) -> Option<String> {
        if !self.is_own_engine() || params.distinct {
            return None;
        }
        let name = if name == "var" { "var_samp" } else { name };
        let args: Option<Vec<String>> = params.args.iter().map(|arg| self.translate_number(arg, terms)).collect();
        Some(format!("{name}({})", args?.join(", ")))
    }

    /// A digest for an approximate percentile, which only our engine has.
    fn translate_digest(&self, params: &AggregateFunctionParams, terms: ColumnLookup<'_>) -> Option<String> {
        let (value, centroids) = params.args.split_first()?;
        let value = self.translate_number(value, terms).filter(|_| self.is_own_engine())?;
        match centroids {
            [] => Some(format!("tdigest({value})")),
            [Expr::Literal(centroids, _)] => Some(format!("tdigest({value}, {centroids})")),
            _ => None,
        }
    }

    fn translate_count(&self, argument: &Expr, distinct: bool, terms: ColumnLookup<'_>) -> Option<String> {
        match argument {
            // A whole number is no other with more bits.
            Expr::Cast(Cast { expr, field }) if *field.data_type() == DataType::Int64 => match &**expr {
                Expr::Column(column) if terms(column)?.field.data_type().is_integer() => {
                    self.translate_count(expr, distinct, terms)
                }
                _ => None,
            },
            Expr::Literal(value, _) if !value.is_null() && !distinct => Some("COUNT(*)".to_owned()),
            Expr::Column(column) if distinct => {
                let term =
                    terms(column).filter(|term| self.comparison_semantics(term) >= ComparisonSemantics::Equal)?;
                Some(format!("COUNT(DISTINCT {})", term.sql))
            }
            Expr::Column(column) => Some(format!("COUNT({})", terms(column)?.sql)),
            _ => None,
        }
    }

    /// Casts `sql` to the type that it has here. Values of SQLite have their own types already, and sums of MySQL are
    /// exact decimals.
    fn write_cast(&self, sql: &str, name: &str) -> String {
        if self.dialect().is_mysql() {
            return format!("CAST({sql} AS {})", if name == "BIGINT" { "SIGNED" } else { "DECIMAL(38, 0)" });
        }
        if self.dialect().has_typed_columns() { format!("CAST({sql} AS {name})") } else { sql.to_owned() }
    }
}

fn is_statistic(name: &str) -> bool {
    matches!(name, "var" | "var_pop" | "stddev" | "stddev_pop" | "covar_samp" | "covar_pop" | "corr")
        || name.starts_with("regr_")
}

/// The aggregated column, and whether the plan widens it, which the member does implicitly.
fn aggregated_column(argument: &Expr, terms: ColumnLookup<'_>) -> Option<(SqlColumn, bool)> {
    match argument {
        Expr::Column(column) => Some((terms(column)?, false)),
        Expr::Cast(Cast { expr, field }) => match (&**expr, field.data_type()) {
            (Expr::Column(column), DataType::Int64 | DataType::Float64) => Some((terms(column)?, true)),
            _ => None,
        },
        _ => None,
    }
}

/// The number of bits of the low part of a `bigint`.
pub(crate) const LOW_BITS: i64 = 32;
/// The bits of the low part.
pub(crate) const LOW_MASK: i64 = 0xFFFF_FFFF;

impl Translator {
    /// Translates an argument of a function of the same engine: a column, or a cast of one. `None` if the cast is not
    /// the same in SQL.
    fn translate_number(&self, argument: &Expr, terms: ColumnLookup<'_>) -> Option<String> {
        match argument {
            Expr::Column(column) => terms(column).filter(|term| is_number(term.field.data_type())).map(|term| term.sql),
            Expr::Cast(Cast { expr, field }) => {
                let Expr::Column(column) = &**expr else { return None };
                self.write_number_cast(&terms(column)?, field.data_type())
            }
            _ => None,
        }
    }

    /// Translates the product of exact numbers: columns, or the parts of a `bigint`.
    fn translate_product(&self, argument: &Expr, terms: ColumnLookup<'_>) -> Option<String> {
        let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Multiply, right }) = argument else { return None };
        let (left, right) = (self.translate_factor(left, terms)?, self.translate_factor(right, terms)?);
        Some(format!("{left} * {right}"))
    }

    fn translate_factor(&self, factor: &Expr, terms: ColumnLookup<'_>) -> Option<String> {
        match factor {
            // Numerics of PostgreSQL may be NaN.
            Expr::Column(column) if self.dialect().is_embedded() => terms(column)
                .filter(|term| matches!(term.field.data_type(), DataType::Decimal128(..)))
                .map(|term| term.sql),
            Expr::Cast(Cast { expr, field }) => {
                let DataType::Decimal128(precision, 0) = field.data_type() else { return None };
                let (sql, is_whole) = match &**expr {
                    Expr::Column(column) => {
                        let term = terms(column)?;
                        let is_whole = is_whole(term.field.data_type());
                        (term.sql, is_whole)
                    }
                    part => (self.translate_part(part, terms)?, true),
                };
                let has_numerics = self.dialect().has_postgres_grammar();
                (is_whole && has_numerics).then(|| format!("CAST({sql} AS NUMERIC({precision}, 0))"))
            }
            _ => None,
        }
    }

    /// Translates the high or the low part of a whole number. The constants are those of this engine.
    fn translate_part(&self, part: &Expr, terms: ColumnLookup<'_>) -> Option<String> {
        let Expr::BinaryExpr(BinaryExpr { left, op, right }) = part else { return None };
        let Expr::Literal(ScalarValue::Int64(Some(constant)), _) = &**right else { return None };
        let (op, constant) = match op {
            Operator::BitwiseShiftRight if *constant == LOW_BITS => (">>", LOW_BITS),
            Operator::BitwiseAnd if *constant == LOW_MASK => ("&", LOW_MASK),
            _ => return None,
        };
        let column = match &**left {
            Expr::Cast(Cast { expr, field }) if *field.data_type() == DataType::Int64 => expr,
            column => column,
        };
        let Expr::Column(column) = column else { return None };
        let term = terms(column).filter(|term| is_whole(term.field.data_type()))?;
        // A shift of a smaller type drops other bits.
        Some(format!("CAST({} AS BIGINT) {op} {constant}", term.sql))
    }

    fn write_number_cast(&self, term: &SqlColumn, to: &DataType) -> Option<String> {
        if !self.dialect().is_embedded() {
            return None;
        }
        let from = term.field.data_type();
        match to {
            DataType::Float64 if is_whole(from) || from.is_floating() => {
                Some(format!("CAST({} AS DOUBLE PRECISION)", term.sql))
            }
            DataType::Decimal128(precision, 0) if is_whole(from) => {
                Some(format!("CAST({} AS NUMERIC({precision}, 0))", term.sql))
            }
            _ => None,
        }
    }
}

fn is_whole(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Int16 | DataType::Int32 | DataType::Int64)
}

fn is_number(data_type: &DataType) -> bool {
    is_whole(data_type) || matches!(data_type, DataType::Float32 | DataType::Float64 | DataType::Decimal128(..))
}

impl Translator {
    /// Translates the key of a group. `None` if other rows could be in a group.
    fn translate_key(&mut self, key: &Expr, terms: ColumnLookup<'_>, schema: &DFSchema) -> Option<String> {
        if let Expr::Column(column) = key {
            let term = terms(column).filter(|term| self.comparison_semantics(term) >= ComparisonSemantics::Equal)?;
            return Some(term.sql);
        }
        // Only the same engine has the same functions; floats may be equal in one step and different in another.
        let data_type = key.get_type(schema).ok()?;
        if !self.is_own_engine() || data_type.is_floating() || data_type.is_nested() {
            return None;
        }
        self.translate_own(key, terms)
    }

    /// Translates the key of an order. `None` if the member could order other rows first.
    pub(super) fn translate_sort_key(&mut self, key: &SortExpr, terms: ColumnLookup<'_>) -> Option<String> {
        let written = match &key.expr {
            // The same engine orders all values as here, floats too.
            expr if self.is_own_engine() => self.translate_own(expr, terms)?,
            Expr::Column(column) => {
                let term = terms(column)?;
                (self.comparison_semantics(&term) == ComparisonSemantics::Ordered).then_some(term.sql)?
            }
            _ => return None,
        };
        let direction = if key.asc { "ASC" } else { "DESC" };
        if !self.dialect().has_nulls_order() {
            let nulls = if key.nulls_first { "DESC" } else { "ASC" };
            return Some(format!("({written} IS NULL) {nulls}, {written} {direction}"));
        }
        let nulls = if key.nulls_first { "FIRST" } else { "LAST" };
        Some(format!("{written} {direction} NULLS {nulls}"))
    }
}
