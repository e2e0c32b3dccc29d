//! Pushdown: parts of a plan become one statement for the database that contains all their tables.
//!
//! Only parts with the same result in the member are pushed down: comparisons that do not depend on a collation, joins
//! on equal keys, common aggregates. Everything else is computed here. So a result never depends on how much was
//! pushed down.

mod aggregate;
mod expression;
mod own_expression;

use std::fmt::Write as _;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{Field, FieldRef, Schema, SchemaRef};
use datafusion::catalog::default_table_source::{provider_as_source, source_as_provider};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, DataFusionError, NullEquality, Result, TableReference, internal_err};
use datafusion::datasource::TableType;
use datafusion::logical_expr::{
    Expr, FetchType, Filter, Join, JoinType, LogicalPlan, Projection, SkipType, SortExpr, TableScan, TableScanBuilder,
};
use datafusion::physical_plan::ExecutionPlan;
use tidegate_core::Error;
use tidegate_sql::{Parameter, SqlDialect, Statement};

use super::member::{Member, MemberExec, MemberQuery, MemberQueryContext, MemberTable};

pub(crate) use aggregate::{LOW_BITS, LOW_MASK};

pub(super) use expression::{ComparisonSemantics, has_own_order, selected_type};

pub(crate) fn push_down(plan: LogicalPlan, context: &MemberQueryContext) -> Result<LogicalPlan> {
    let pushed = plan.transform_down(|node| {
        let replaced = match push_limit(&node, context)? {
            Some(limited) => Some(limited),
            None => Translator::push_node(&node, context)?,
        };
        Ok(match replaced {
            // Its inputs are part of the member query already.
            Some(replaced) => Transformed::new(replaced, true, TreeNodeRecursion::Jump),
            None => Transformed::no(node),
        })
    })?;
    Ok(pushed.data)
}

/// Pushes down a limit, or a sort with a limit. The member returns no more rows than needed, and the node remains in
/// the plan.
fn push_limit(node: &LogicalPlan, context: &MemberQueryContext) -> Result<Option<LogicalPlan>> {
    let (input, order, rows) = match node {
        LogicalPlan::Limit(limit) => {
            let (SkipType::Literal(skip), FetchType::Literal(Some(fetch))) =
                (limit.get_skip_type()?, limit.get_fetch_type()?)
            else {
                return Ok(None);
            };
            (&limit.input, &[][..], skip.saturating_add(fetch))
        }
        LogicalPlan::Sort(sort) => match sort.fetch {
            Some(rows) => (&sort.input, &sort.expr[..], rows),
            None => return Ok(None),
        },
        _ => return Ok(None),
    };
    let Some(input) = Translator::push_limited(input, order, rows, context)? else { return Ok(None) };
    node.with_new_exprs(node.expressions(), vec![input]).map(Some)
}

/// Maximum number of values of a filter that is pushed down with a scan. A statement may have 1,000. A filter with more
/// stays in the plan, and is part of a query only if the whole query has few enough.
const VALUES_MAX: usize = 100;

pub(crate) struct Translator {
    member: Member,
    parameters: Vec<Parameter>,
    aliases: usize,
    /// Whether an expression may fail. A condition that fails must not be sent without those that exclude its row.
    allows_failures: bool,
}

impl Translator {
    fn new(member: Member) -> Self {
        Self { member, parameters: Vec::new(), aliases: 0, allows_failures: true }
    }

    /// Replaces `node` by one member query. `None` if that is impossible, or if it would only be a scan.
    fn push_node(node: &LogicalPlan, context: &MemberQueryContext) -> Result<Option<LogicalPlan>> {
        let Some(mut translator) = Self::for_plan(node) else { return Ok(None) };
        let Some(part) = translator.translate_node(node).filter(|part| part.is_worth_pushing) else { return Ok(None) };
        translator.build_plan(node, &part, context)
    }

    /// As [`Translator::push_node`], limited to the first `rows_max` rows in `order`.
    fn push_limited(
        node: &LogicalPlan,
        order: &[SortExpr],
        rows_max: usize,
        context: &MemberQueryContext,
    ) -> Result<Option<LogicalPlan>> {
        let Some(mut translator) = Self::for_plan(node) else { return Ok(None) };
        let Some(mut part) = translator.translate_node(node) else { return Ok(None) };
        if !part.is_worth_pushing && order.is_empty() {
            return Ok(None);
        }
        if part.rows_max.is_some() || (part.groups.is_some() && !order.is_empty()) {
            part = translator.wrap(part);
        }
        let schema = node.schema();
        for key in order {
            let terms = |column: &Column| part.columns.get(schema.maybe_index_of_column(column)?).cloned();
            let Some(written) = translator.translate_sort_key(key, &terms) else { return Ok(None) };
            part.order.push(written);
        }
        part.rows_max = Some(rows_max);
        translator.build_plan(node, &part, context)
    }

    /// The plan that runs `part` in place of `node`. `None` if the member would refuse the statement for its length or
    /// depth; then the plan stays as it is.
    fn build_plan(
        self,
        node: &LogicalPlan,
        part: &MemberQueryBuilder,
        context: &MemberQueryContext,
    ) -> Result<Option<LogicalPlan>> {
        let (part, positions) = part.without_repeats();
        match self.build_query(&part, None) {
            Ok(query) => query.into_plan(node.schema(), &positions, context).map(Some),
            Err(_) => Ok(None),
        }
    }

    /// The query for some columns of `table`, with those of its rows that may pass `filters`.
    pub(crate) fn build_scan(
        table: &MemberTable,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        rows_max: Option<usize>,
    ) -> Result<(MemberQuery, Arc<Schema>)> {
        let mut translator = Self::new(table.member.clone());
        let Some(part) = translator.translate_table(table, projection, filters, rows_max) else {
            return internal_err!("a filter was accepted for pushdown but cannot be translated");
        };
        let columns: Vec<Field> = part.columns.iter().map(|term| term.field.as_ref().clone()).collect();
        let query = translator.build_query(&part, table.rows);
        Ok((query.map_err(|error| DataFusionError::External(Box::new(error)))?, Arc::new(Schema::new(columns))))
    }

    /// Whether the member can apply `filter` to `table`. `Some(true)`: exactly; `None`: not at all.
    pub(crate) fn can_filter(table: &MemberTable, filter: &Expr) -> Option<bool> {
        // The plan is simplified instead.
        if filter.column_refs().is_empty() {
            return None;
        }
        let mut translator = Self { allows_failures: false, ..Self::new(table.member.clone()) };
        let mut part = translator.translate_table(table, None, &[], None)?;
        let terms = |column: &Column| part.columns.iter().find(|term| term.field.name() == column.name()).cloned();
        let condition = translator.translate_condition(filter, &terms)?;
        // A statement can have several filters, and must stay below the limit.
        if translator.parameters.len() > VALUES_MAX {
            return None;
        }
        part.conditions.push(condition.sql);
        translator.build_query(&part, None).ok().map(|_| condition.is_exact)
    }

    pub(super) fn dialect(&self) -> SqlDialect {
        self.member.dialect()
    }

    pub(super) fn is_own_engine(&self) -> bool {
        self.member.is_own_engine()
    }

    pub(super) fn allows_failures(&self) -> bool {
        self.allows_failures
    }

    pub(super) fn placeholder(&mut self, value: Parameter) -> String {
        self.parameters.push(value);
        format!("${}", self.parameters.len())
    }

    fn for_plan(node: &LogicalPlan) -> Option<Self> {
        match node {
            LogicalPlan::TableScan(scan) => Some(Self::new(member_table(scan)?.member)),
            node => node.inputs().first().and_then(|input| Self::for_plan(input)),
        }
    }

    /// The query for `part`, which is expected to return `rows` rows.
    fn build_query(self, part: &MemberQueryBuilder, rows: Option<u64>) -> std::result::Result<MemberQuery, Error> {
        let statement = Statement::parse(&part.sql(), self.member.dialect())?.with_parameters(self.parameters)?;
        Ok(MemberQuery { member: self.member, statement, rows })
    }

    fn translate_node(&mut self, node: &LogicalPlan) -> Option<MemberQueryBuilder> {
        match node {
            LogicalPlan::TableScan(scan) => {
                let table = member_table(scan).filter(|table| table.member.is_same(&self.member))?;
                self.translate_table(&table, scan.projection.as_ref(), &scan.filters, scan.fetch)
            }
            LogicalPlan::SubqueryAlias(alias) => self.translate_node(&alias.input),
            LogicalPlan::Projection(projection) => self.translate_projection(projection),
            LogicalPlan::Filter(filter) => self.translate_filter(filter),
            LogicalPlan::Join(join) => self.translate_join(join),
            LogicalPlan::Aggregate(aggregate) => {
                let input = self.open_builder(&aggregate.input)?;
                self.translate_aggregate(aggregate, input)
            }
            _ => None,
        }
    }

    /// The query of `node`, ready for further clauses.
    fn open_builder(&mut self, node: &LogicalPlan) -> Option<MemberQueryBuilder> {
        let part = self.translate_node(node)?;
        Some(if part.is_closed() { self.wrap(part) } else { part })
    }

    fn wrap(&mut self, part: MemberQueryBuilder) -> MemberQueryBuilder {
        let alias = self.next_alias();
        part.wrapped(&alias)
    }

    fn next_alias(&mut self) -> String {
        self.aliases += 1;
        format!("t{}", self.aliases)
    }

    /// The rows of `table` that pass `filters`. `None` if the member cannot apply one of them.
    fn translate_table(
        &mut self,
        table: &MemberTable,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        rows_max: Option<usize>,
    ) -> Option<MemberQueryBuilder> {
        let (alias, dialect) = (self.next_alias(), self.dialect());
        // The types are those of the federated database; the names are those of the member.
        let term = |field: &Arc<Field>| {
            let column = format!("{alias}.{}", dialect.quote_identifier(field.name()));
            let sql = match selected_type(field, dialect) {
                Some(selected) => format!("CAST({column} AS {selected})"),
                None => column,
            };
            SqlColumn { sql, field: field.clone() }
        };
        let all: Vec<SqlColumn> = table.schema.fields().iter().map(term).collect();
        let terms = |column: &Column| all.iter().find(|term| term.field.name() == column.name()).cloned();
        let conditions =
            filters.iter().map(|filter| self.translate_condition(filter, &terms).map(|condition| condition.sql));
        let conditions = conditions.collect::<Option<Vec<String>>>()?;
        let columns = match projection {
            Some(positions) => positions.iter().filter_map(|position| all.get(*position).cloned()).collect(),
            None => all.clone(),
        };
        Some(MemberQueryBuilder {
            from: format!("{} AS {alias}", dialect.quote_table(&table.name)),
            conditions,
            groups: None,
            order: Vec::new(),
            rows_max,
            columns,
            is_joined: false,
            is_worth_pushing: false,
        })
    }

    fn translate_projection(&mut self, projection: &Projection) -> Option<MemberQueryBuilder> {
        let input = self.translate_node(&projection.input)?;
        let schema = projection.input.schema();
        let columns = projection.expr.iter().zip(projection.schema.fields()).map(|(expr, field)| {
            let expr = if let Expr::Alias(alias) = expr { &*alias.expr } else { expr };
            let Expr::Column(column) = expr else { return None };
            let term = input.columns.get(schema.maybe_index_of_column(column)?)?;
            Some(SqlColumn { sql: term.sql.clone(), field: field.clone() })
        });
        let columns = columns.collect::<Option<Vec<SqlColumn>>>()?;
        Some(MemberQueryBuilder { columns, ..input })
    }

    fn translate_filter(&mut self, filter: &Filter) -> Option<MemberQueryBuilder> {
        let mut part = self.open_builder(&filter.input)?;
        let condition = self.translate_exact(&filter.predicate, filter.input.schema(), &part.columns)?;
        part.conditions.push(condition);
        part.is_worth_pushing = true;
        Some(part)
    }

    fn translate_join(&mut self, join: &Join) -> Option<MemberQueryBuilder> {
        let is_plain = join.null_equality == NullEquality::NullEqualsNothing && !join.on.is_empty();
        if !is_plain || !matches!(join.join_type, JoinType::Inner | JoinType::Left) {
            return None;
        }
        let left = self.open_builder(&join.left)?;
        let mut right = self.open_builder(&join.right)?;
        if right.is_joined || (join.join_type == JoinType::Left && !right.conditions.is_empty()) {
            right = self.wrap(right);
        }
        let columns: Vec<SqlColumn> = left.columns.iter().chain(&right.columns).cloned().collect();
        let schema = join.left.schema().join(join.right.schema()).ok()?;
        let keys = join.on.iter().map(|(left, right)| left.clone().eq(right.clone()));
        let conditions =
            keys.chain(join.filter.clone()).map(|condition| self.translate_exact(&condition, &schema, &columns));
        let on = conditions.collect::<Option<Vec<String>>>()?.join(" AND ");
        let word = if join.join_type == JoinType::Left { "LEFT JOIN" } else { "JOIN" };
        let fields = join.schema.fields().iter();
        let with_field = |(term, field): (SqlColumn, &Arc<Field>)| SqlColumn { field: field.clone(), ..term };
        Some(MemberQueryBuilder {
            from: format!("{} {word} {} ON {on}", left.from, right.from),
            conditions: left.conditions.into_iter().chain(right.conditions).collect(),
            columns: columns.into_iter().zip(fields).map(with_field).collect(),
            is_joined: true,
            is_worth_pushing: true,
            ..left
        })
    }

    /// Translates `expr` to a condition that accepts the same rows. `columns` are those of `schema`.
    fn translate_exact(&mut self, expr: &Expr, schema: &DFSchema, columns: &[SqlColumn]) -> Option<String> {
        let terms = |column: &Column| columns.get(schema.maybe_index_of_column(column)?).cloned();
        self.translate_condition(expr, &terms).filter(|condition| condition.is_exact).map(|condition| condition.sql)
    }
}

fn member_table(scan: &TableScan) -> Option<MemberTable> {
    let provider = source_as_provider(&scan.source).ok()?;
    provider.downcast_ref::<MemberTable>().cloned()
}

#[derive(Debug, Clone)]
pub(crate) struct SqlColumn {
    pub(crate) sql: String,
    pub(crate) field: FieldRef,
}

/// `SELECT columns FROM from WHERE conditions …`. Each piece is SQL of the member: quoted names, keywords and
/// placeholders, but never a value.
#[derive(Debug, Clone)]
pub(crate) struct MemberQueryBuilder {
    pub(super) from: String,
    pub(super) conditions: Vec<String>,
    /// The grouping expressions of an aggregate. Empty: one group of all rows.
    pub(super) groups: Option<Vec<String>>,
    pub(super) order: Vec<String>,
    pub(super) rows_max: Option<usize>,
    pub(super) columns: Vec<SqlColumn>,
    is_joined: bool,
    /// Whether it is more than a scan of one table.
    pub(super) is_worth_pushing: bool,
}

impl MemberQueryBuilder {
    pub(crate) fn column_name(position: usize) -> String {
        format!("c{position}")
    }

    /// The query with each column once, and the position there of each column of this one.
    fn without_repeats(&self) -> (Self, Vec<usize>) {
        let mut columns: Vec<SqlColumn> = Vec::with_capacity(self.columns.len());
        let positions = self.columns.iter().map(|column| {
            let field = |column: &SqlColumn| column.field.as_ref().clone().with_name("");
            let is_same = |known: &SqlColumn| known.sql == column.sql && field(known) == field(column);
            columns.iter().position(is_same).unwrap_or_else(|| {
                columns.push(column.clone());
                columns.len() - 1
            })
        });
        let positions = positions.collect();
        (Self { columns, ..self.clone() }, positions)
    }

    /// Whether further clauses require a subquery.
    fn is_closed(&self) -> bool {
        self.groups.is_some() || self.rows_max.is_some()
    }

    pub(crate) fn sql(&self) -> String {
        let named = |(position, term): (usize, &SqlColumn)| format!("{} AS {}", term.sql, Self::column_name(position));
        let columns: Vec<String> = self.columns.iter().enumerate().map(named).collect();
        // If a query has no columns, only the number of rows matters.
        let columns = if columns.is_empty() { "1 AS c0".to_owned() } else { columns.join(", ") };
        let mut sql = format!("SELECT {columns} FROM {}", self.from);
        let mut clause = |keyword: &str, items: &[String], separator: &str| {
            if !items.is_empty() {
                // Writing to a string does not fail.
                let _ = write!(sql, " {keyword} {}", items.join(separator));
            }
        };
        clause("WHERE", &self.conditions, " AND ");
        clause("GROUP BY", self.groups.as_deref().unwrap_or_default(), ", ");
        clause("ORDER BY", &self.order, ", ");
        if let Some(rows) = self.rows_max {
            clause("LIMIT", &[rows.to_string()], "");
        }
        sql
    }

    fn wrapped(self, alias: &str) -> Self {
        let from = format!("({}) AS {alias}", self.sql());
        let named = |(position, term): (usize, SqlColumn)| SqlColumn {
            sql: format!("{alias}.{}", Self::column_name(position)),
            field: term.field,
        };
        Self {
            from,
            conditions: Vec::new(),
            groups: None,
            order: Vec::new(),
            rows_max: None,
            columns: self.columns.into_iter().enumerate().map(named).collect(),
            is_joined: false,
            is_worth_pushing: self.is_worth_pushing,
        }
    }
}

impl MemberQuery {
    /// The plan that runs the query, in place of one with the columns of `schema`, which are at `positions` of the query.
    pub(super) fn into_plan(
        self,
        schema: &DFSchema,
        positions: &[usize],
        context: &MemberQueryContext,
    ) -> Result<LogicalPlan> {
        let name = TableReference::bare(self.member.name());
        debug_assert_eq!(schema.fields().len(), positions.len());
        let mut fields: Vec<Field> = Vec::new();
        for (field, position) in schema.fields().iter().zip(positions) {
            // A repeated column is at the position of the first.
            if *position == fields.len() {
                fields.push(field.as_ref().clone().with_name(MemberQueryBuilder::column_name(*position)));
            }
        }
        let table = MemberQueryTable { query: self, schema: Arc::new(Schema::new(fields)), context: context.clone() };
        let scan = TableScanBuilder::new(name.clone(), provider_as_source(Arc::new(table))).build()?;
        let named = schema.iter().zip(positions).map(|((qualifier, field), position)| {
            let column = Expr::Column(Column::new(Some(name.clone()), MemberQueryBuilder::column_name(*position)));
            column.alias_qualified(qualifier.cloned(), field.name())
        });
        Projection::try_new(named.collect(), Arc::new(LogicalPlan::TableScan(scan))).map(LogicalPlan::Projection)
    }
}

#[derive(Debug)]
struct MemberQueryTable {
    query: MemberQuery,
    schema: SchemaRef,
    context: MemberQueryContext,
}

#[async_trait]
impl TableProvider for MemberQueryTable {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let exec = MemberExec::new(self.query.clone(), self.schema.clone(), self.context.clone());
        exec.projected(projection)
    }
}
