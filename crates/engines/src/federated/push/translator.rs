//! From a part of a plan to one query of a member.

use std::sync::Arc;

use datafusion::arrow::datatypes::{Field, Schema};
use datafusion::catalog::default_table_source::source_as_provider;
use datafusion::common::{Column, DFSchema, DataFusionError, NullEquality, Result, internal_err};
use datafusion::logical_expr::{Expr, Filter, Join, JoinType, LogicalPlan, Projection, SortExpr, TableScan};
use tidegate_core::Error;
use tidegate_query::{Database, Parameter, SqlDialect, Statement};

use super::likeness::Likeness;
use super::part::{Part, Term};
use super::pushed::{Asking, Question};
use crate::federated::member::MemberTable;
use crate::federated::provider::MemberTableProvider;

/// Values of one filter that is pushed down at most; a statement takes 1,000.
const VALUES_MAX: usize = 100;

/// Writes one query of one member.
pub(crate) struct Translator {
    member: Arc<dyn Database>,
    parameters: Vec<Parameter>,
    aliases: usize,
}

impl Translator {
    fn new(member: Arc<dyn Database>) -> Self {
        Self { member, parameters: Vec::new(), aliases: 0 }
    }

    /// `node` as what asks one member for all of it; none where that is not possible, or no more than a scan.
    pub(super) fn pushed(node: &LogicalPlan, asking: &Asking) -> Result<Option<LogicalPlan>> {
        let Some(mut translator) = Self::of(node) else { return Ok(None) };
        match translator.node(node).filter(|part| part.is_worth_it) {
            Some(part) => translator.asked(node, &part, asking),
            None => Ok(None),
        }
    }

    /// As [`Translator::pushed`], no more than the first `rows_max` rows in `order`.
    pub(super) fn limited(
        node: &LogicalPlan,
        order: &[SortExpr],
        rows_max: usize,
        asking: &Asking,
    ) -> Result<Option<LogicalPlan>> {
        let Some(mut translator) = Self::of(node) else { return Ok(None) };
        let Some(mut part) = translator.node(node) else { return Ok(None) };
        if !part.is_worth_it && order.is_empty() {
            return Ok(None);
        }
        if part.rows_max.is_some() || (part.groups.is_some() && !order.is_empty()) {
            part = translator.wrapped(part);
        }
        for key in order {
            let Some(written) = translator.sort_key(key, node.schema(), &part) else { return Ok(None) };
            part.order.push(written);
        }
        part.rows_max = Some(rows_max);
        translator.asked(node, &part, asking)
    }

    /// What asks for `part` in the place of `node`; none where the member would refuse a statement as long or as deep, and
    /// the plan is as good as it was.
    fn asked(self, node: &LogicalPlan, part: &Part, asking: &Asking) -> Result<Option<LogicalPlan>> {
        match self.question(part) {
            Ok(question) => question.plan(node.schema(), part, asking).map(Some),
            Err(_) => Ok(None),
        }
    }

    /// The question for some columns of `table`, for those of its rows that may pass `filters`.
    pub(crate) fn scan(
        table: &MemberTable,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        rows_max: Option<usize>,
    ) -> Result<(Question, Arc<Schema>)> {
        let mut translator = Self::new(table.member.clone());
        let Some(part) = translator.table(table, projection, filters, rows_max) else {
            return internal_err!("a filter was promised to be pushed down and cannot be");
        };
        let columns: Vec<Field> = part.columns.iter().map(|term| term.field.as_ref().clone()).collect();
        let question = translator.question(&part).map_err(|error| DataFusionError::External(Box::new(error)))?;
        Ok((question.with_rows(table.rows), Arc::new(Schema::new(columns))))
    }

    /// How far the member can apply `filter` to `table`: none if not at all, else whether exactly.
    pub(crate) fn can_filter(table: &MemberTable, filter: &Expr) -> Option<bool> {
        let mut translator = Self::new(table.member.clone());
        let mut part = translator.table(table, None, &[], None)?;
        let terms = |column: &Column| part.columns.iter().find(|term| term.field.name() == column.name()).cloned();
        let condition = translator.condition(filter, &terms)?;
        // Several filters come together, and must not be too much together.
        if translator.parameters.len() > VALUES_MAX {
            return None;
        }
        part.conditions.push(condition.sql);
        translator.question(&part).ok().map(|_| condition.is_exact)
    }

    pub(super) fn dialect(&self) -> SqlDialect {
        self.member.dialect()
    }

    pub(super) fn placeholder(&mut self, value: Parameter) -> String {
        self.parameters.push(value);
        format!("${}", self.parameters.len())
    }

    /// A translator for the member whose tables `node` reads first.
    fn of(node: &LogicalPlan) -> Option<Self> {
        match node {
            LogicalPlan::TableScan(scan) => Some(Self::new(member_table(scan)?.member)),
            node => node.inputs().first().and_then(|input| Self::of(input)),
        }
    }

    /// The statement for `part`.
    ///
    /// # Errors
    /// What the member's policy refuses: a statement that is too long, too deep or has too many values.
    fn question(self, part: &Part) -> std::result::Result<Question, Error> {
        let statement = Statement::parse(&part.sql(), self.member.dialect())?.with_parameters(self.parameters)?;
        Ok(Question::new(self.member, statement))
    }

    fn node(&mut self, node: &LogicalPlan) -> Option<Part> {
        match node {
            LogicalPlan::TableScan(scan) => {
                let table = member_table(scan).filter(|table| Arc::ptr_eq(&table.member, &self.member))?;
                self.table(&table, scan.projection.as_ref(), &scan.filters, scan.fetch)
            }
            LogicalPlan::SubqueryAlias(alias) => self.node(&alias.input),
            LogicalPlan::Projection(projection) => self.projection(projection),
            LogicalPlan::Filter(filter) => self.filter(filter),
            LogicalPlan::Join(join) => self.join(join),
            LogicalPlan::Aggregate(aggregate) => {
                let input = self.open(&aggregate.input)?;
                self.aggregate(aggregate, input)
            }
            _ => None,
        }
    }

    /// The part of `node`, of whose rows more can be said.
    fn open(&mut self, node: &LogicalPlan) -> Option<Part> {
        let part = self.node(node)?;
        Some(if part.is_closed() { self.wrapped(part) } else { part })
    }

    fn wrapped(&mut self, part: Part) -> Part {
        let alias = self.alias();
        part.wrapped(&alias)
    }

    fn alias(&mut self) -> String {
        self.aliases += 1;
        format!("t{}", self.aliases)
    }

    /// The rows of `table` that pass `filters`; none where one of them cannot be asked of the member.
    fn table(
        &mut self,
        table: &MemberTable,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        rows_max: Option<usize>,
    ) -> Option<Part> {
        let (alias, dialect) = (self.alias(), self.dialect());
        // The types are those that it is asked as; what they are called is as the member says.
        let term =
            |field: &Arc<Field>| Term { sql: format!("{alias}.{}", dialect.quote(field.name())), field: field.clone() };
        let all: Vec<Term> = table.schema.fields().iter().map(term).collect();
        let terms = |column: &Column| all.iter().find(|term| term.field.name() == column.name()).cloned();
        let conditions = filters.iter().map(|filter| self.condition(filter, &terms).map(|condition| condition.sql));
        let conditions = conditions.collect::<Option<Vec<String>>>()?;
        let columns = match projection {
            Some(positions) => positions.iter().filter_map(|position| all.get(*position).cloned()).collect(),
            None => all.clone(),
        };
        Some(Part {
            from: format!("{} AS {alias}", dialect.quote_table(&table.name)),
            conditions,
            groups: None,
            order: Vec::new(),
            rows_max,
            columns,
            is_joined: false,
            is_worth_it: false,
        })
    }

    fn projection(&mut self, projection: &Projection) -> Option<Part> {
        let input = self.node(&projection.input)?;
        let schema = projection.input.schema();
        let columns = projection.expr.iter().zip(projection.schema.fields()).map(|(expr, field)| {
            let expr = if let Expr::Alias(alias) = expr { &*alias.expr } else { expr };
            let Expr::Column(column) = expr else { return None };
            let term = input.columns.get(schema.maybe_index_of_column(column)?)?;
            Some(Term { sql: term.sql.clone(), field: field.clone() })
        });
        let columns = columns.collect::<Option<Vec<Term>>>()?;
        Some(Part { columns, ..input })
    }

    fn filter(&mut self, filter: &Filter) -> Option<Part> {
        let mut part = self.open(&filter.input)?;
        let condition = self.exact(&filter.predicate, filter.input.schema(), &part.columns)?;
        part.conditions.push(condition);
        Some(part)
    }

    fn join(&mut self, join: &Join) -> Option<Part> {
        let is_plain = join.null_equality == NullEquality::NullEqualsNothing && !join.on.is_empty();
        if !is_plain || !matches!(join.join_type, JoinType::Inner | JoinType::Left) {
            return None;
        }
        let left = self.open(&join.left)?;
        let mut right = self.open(&join.right)?;
        if right.is_joined || (join.join_type == JoinType::Left && !right.conditions.is_empty()) {
            right = self.wrapped(right);
        }
        let columns: Vec<Term> = left.columns.iter().chain(&right.columns).cloned().collect();
        let schema = join.left.schema().join(join.right.schema()).ok()?;
        let keys = join.on.iter().map(|(left, right)| left.clone().eq(right.clone()));
        let conditions = keys.chain(join.filter.clone()).map(|condition| self.exact(&condition, &schema, &columns));
        let on = conditions.collect::<Option<Vec<String>>>()?.join(" AND ");
        let word = if join.join_type == JoinType::Left { "LEFT JOIN" } else { "JOIN" };
        let fields = join.schema.fields().iter();
        Some(Part {
            from: format!("{} {word} {} ON {on}", left.from, right.from),
            conditions: left.conditions.into_iter().chain(right.conditions).collect(),
            columns: columns
                .into_iter()
                .zip(fields)
                .map(|(term, field)| Term { field: field.clone(), ..term })
                .collect(),
            is_joined: true,
            is_worth_it: true,
            ..left
        })
    }

    fn sort_key(&self, key: &SortExpr, schema: &DFSchema, part: &Part) -> Option<String> {
        let Expr::Column(column) = &key.expr else { return None };
        let term = part.columns.get(schema.maybe_index_of_column(column)?)?;
        let direction = if key.asc { "ASC" } else { "DESC" };
        let nulls = if key.nulls_first { "FIRST" } else { "LAST" };
        let is_same = self.likeness(term) == Likeness::Ordered;
        is_same.then(|| format!("{} {direction} NULLS {nulls}", term.sql))
    }

    /// `expr` as a condition that holds for the same rows; `columns` are those of `schema`.
    fn exact(&mut self, expr: &Expr, schema: &DFSchema, columns: &[Term]) -> Option<String> {
        let terms = |column: &Column| columns.get(schema.maybe_index_of_column(column)?).cloned();
        self.condition(expr, &terms).filter(|condition| condition.is_exact).map(|condition| condition.sql)
    }
}

/// The table that `scan` reads.
fn member_table(scan: &TableScan) -> Option<MemberTable> {
    let provider = source_as_provider(&scan.source).ok()?;
    provider.downcast_ref::<MemberTableProvider>().map(|provider| provider.table().clone())
}
