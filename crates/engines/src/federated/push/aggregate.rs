//! Translates aggregates to the SQL of a member.

use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::expr::{AggregateFunction, AggregateFunctionParams, Cast};
use datafusion::logical_expr::{Aggregate, Expr};
use tidegate_pgsql::PART_DIGEST;

use super::comparison::ComparisonSemantics;
use super::expression::ColumnLookup;
use super::query_builder::{MemberQueryBuilder, SqlColumn};
use super::translator::Translator;

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

    /// Casts `sql` to the type that it has here. Values of SQLite have their own types already.
    fn write_cast(&self, sql: &str, name: &str) -> String {
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
