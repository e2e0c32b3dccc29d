//! Subqueries in the expressions of one node become columns of its input: each is planned as a plan of exactly one row,
//! unless DataFusion plans it correctly.
//!
//! `IN (SELECT …)` has three values: NULL if the value is unknown, or if it is not found and a NULL is among the rows.
//! DataFusion's own joins for `IN` return false for NULL. They stay where both mean the same: in the conditions of a
//! filter, which keeps only rows for which it is true.
//!
//! Scalar subqueries that may return no row are nullable, even if their column is not ([`make_subqueries_nullable`]):
//! DataFusion's issue 24513; `docs/decisions/upstream` says when that can go.

use arrow::array::AsArray;
use arrow::datatypes::{Field, Int64Type};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, JoinType, Result, ScalarValue, exec_err, internal_err, plan_err};
use datafusion::functions_aggregate::expr_fn::{bool_and, bool_or, count, first_value};
use datafusion::logical_expr::expr::{InSubquery, SetComparison, SetQuantifier};
use datafusion::logical_expr::logical_plan::Subquery;
use datafusion::logical_expr::{
    Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Operator, Projection, ScalarUDF, Signature, Volatility,
    binary_expr, lit, utils, when,
};

use super::outer_columns::{outer_columns, subquery_of};
use super::{SubqueryRewriter, is_volatile, key_conditions};
use crate::function::{ColumnarFunction, FieldFunction, first_type, keep_types};
use crate::plan_walk::{any_node, any_part};

/// Replaces the subqueries in the expressions of one node.
pub(super) struct ValueRewriter<'a> {
    rewriter: &'a SubqueryRewriter,
    input: &'a LogicalPlan,
    /// The input, joined with the values of the subqueries.
    pub(super) joined: LogicalPlan,
    /// The number of replaced subqueries.
    pub(super) count: usize,
    /// Whether the columns of a subquery have other names now.
    pub(super) has_named: bool,
}

impl<'a> ValueRewriter<'a> {
    pub(super) fn new(rewriter: &'a SubqueryRewriter, input: &'a LogicalPlan) -> Self {
        Self { rewriter, input, joined: input.clone(), count: 0, has_named: false }
    }

    /// Replaces the subqueries in `expression`, which is at `position`. With `refuses_scalars`, DataFusion plans no
    /// correlated scalar subquery there.
    pub(super) fn replace(&mut self, expression: Expr, position: Position, refuses_scalars: bool) -> Result<Expr> {
        match expression {
            Expr::BinaryExpr(mut binary) if is_connective(binary.op) => {
                let inner = match (binary.op, position) {
                    (Operator::Or, Position::Condition) => Position::Alternative,
                    _ => position,
                };
                binary.left = self.replace(*binary.left, inner, refuses_scalars)?.into();
                binary.right = self.replace(*binary.right, inner, refuses_scalars)?.into();
                Ok(Expr::BinaryExpr(binary))
            }
            Expr::Not(negated) if matches!(*negated, Expr::InSubquery(_)) => {
                let Expr::InSubquery(mut contained) = *negated else { return Ok(Expr::Not(negated)) };
                contained.negated = !contained.negated;
                self.replace_within(Expr::InSubquery(contained), position, refuses_scalars)
            }
            other => self.replace_within(other, position, refuses_scalars),
        }
    }

    fn replace_within(&mut self, expression: Expr, position: Position, refuses_scalars: bool) -> Result<Expr> {
        let mut position = position;
        let replaced = expression.transform_down(|expression| {
            let at = position;
            position = position.of_operands();
            let must_rewrite = refuses_scalars && is_correlated(&expression)?;
            if !must_rewrite && !needs_rewrite(&expression, at, self.input.schema())? {
                return self.keep(expression);
            }
            Ok(Transformed::new(self.value_of(&expression)?, true, TreeNodeRecursion::Jump))
        });
        replaced.data()
    }

    /// `expression`, whose subquery, if it is one, becomes DataFusion's join.
    fn keep(&mut self, mut expression: Expr) -> Result<Transformed<Expr>> {
        let subquery = match &mut expression {
            Expr::InSubquery(contained) => &mut contained.subquery,
            Expr::Exists(exists) => &mut exists.subquery,
            _ => return Ok(Transformed::no(expression)),
        };
        if outer_columns(&subquery.subquery)?.is_empty() {
            return Ok(Transformed::no(expression));
        }
        let plan = subquery.subquery.as_ref().clone();
        subquery.subquery = name_outputs(plan, self.rewriter.next_number())?.into();
        self.has_named = true;
        Ok(Transformed::yes(expression))
    }

    /// The value of the subquery `expression` over the joined rows.
    pub(super) fn value_of(&mut self, expression: &Expr) -> Result<Expr> {
        let number = self.rewriter.next_number();
        if let Expr::InSubquery(contained) = expression {
            if let Some((joined, value)) = join_membership(&self.joined, contained, number)? {
                self.joined = joined;
                self.count += 1;
                return Ok(value);
            }
            if is_volatile(&self.joined)? {
                return plan_err!(
                    "IN and NOT IN with a subquery are not supported here for rows with random values; \
                     write EXISTS or NOT EXISTS in WHERE"
                );
            }
        }
        let value = plan_subquery(expression, self.input.schema(), number)?;
        let (rows, keys) = self.rewriter.push_domain(&self.joined, &value.plan)?;
        let left = LogicalPlanBuilder::from(self.joined.clone());
        self.joined = left.join_on(rows, JoinType::Left, key_conditions(keys))?.build()?;
        self.count += 1;
        Ok(value.expression)
    }
}

/// Gives the columns of `plan`, a subquery that uses outer columns, names of their own: DataFusion adds the columns that
/// it compares with outer ones, and the same column with another type may be among them.
fn name_outputs(plan: LogicalPlan, number: usize) -> Result<LogicalPlan> {
    let name = |(index, expression): (usize, Expr)| expression.unalias().alias(format!("output\u{1}{number} {index}"));
    match plan {
        LogicalPlan::Projection(projection) => {
            let named = projection.expr.into_iter().enumerate().map(name).collect();
            Projection::try_new(named, projection.input).map(LogicalPlan::Projection)
        }
        other => {
            let columns = other.schema().columns().into_iter().map(Expr::Column);
            let named: Vec<Expr> = columns.enumerate().map(name).collect();
            LogicalPlanBuilder::from(other).project(named)?.build()
        }
    }
}

fn is_connective(op: Operator) -> bool {
    matches!(op, Operator::And | Operator::Or)
}

/// A plan of one row, and the expression over its columns that replaces the subquery.
struct SubqueryValue {
    plan: LogicalPlan,
    expression: Expr,
}

/// Whether `expression`, at `position` of a node over rows of `schema`, is a subquery that DataFusion does not plan or
/// plans incorrectly.
fn needs_rewrite(expression: &Expr, position: Position, schema: &DFSchema) -> Result<bool> {
    Ok(match expression {
        Expr::ScalarSubquery(subquery) => {
            let plan = subquery.subquery.as_ref();
            let is_correlated = !outer_columns(plan)?.is_empty();
            is_correlated && !(is_simple(plan, schema, RowOfNone::Kept)? && is_aggregate(plan))
        }
        Expr::Exists(exists) => {
            position == Position::Output || !is_simple(&exists.subquery.subquery, schema, RowOfNone::Lost)?
        }
        Expr::InSubquery(contained) => {
            !position.allows_join(contained, schema)?
                || !is_simple(&contained.subquery.subquery, schema, RowOfNone::Lost)?
        }
        Expr::SetComparison(_) => true,
        _ => false,
    })
}

/// Whether `expression` is a scalar subquery that uses columns of an outer query.
fn is_correlated(expression: &Expr) -> Result<bool> {
    match expression {
        Expr::ScalarSubquery(subquery) => Ok(!outer_columns(&subquery.subquery)?.is_empty()),
        _ => Ok(false),
    }
}

/// Whether `plan` is an aggregate without GROUP BY, which has one row.
fn is_aggregate(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(projection) => is_aggregate(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => is_aggregate(&alias.input),
        LogicalPlan::Subquery(subquery) => is_aggregate(&subquery.subquery),
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
        _ => false,
    }
}

/// Plans the subquery `expression`, over rows of `outer`. `number` makes names unique.
fn plan_subquery(expression: &Expr, outer: &DFSchema, number: usize) -> Result<SubqueryValue> {
    match expression {
        Expr::ScalarSubquery(subquery) => plan_scalar(subquery, number),
        Expr::Exists(exists) => {
            let name = format!("rows\u{1}{number}");
            let none: Vec<Expr> = Vec::new();
            let plan = LogicalPlanBuilder::from(exists.subquery.subquery.clone());
            let plan = plan.aggregate(none, vec![count(lit(1_i64)).alias(&name)])?.build()?;
            let rows = Expr::Column(Column::new_unqualified(name));
            let expression = if exists.negated { rows.eq(lit(0_i64)) } else { rows.gt(lit(0_i64)) };
            Ok(SubqueryValue { plan, expression })
        }
        Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
            let operand = to_outer_references(expr, outer)?;
            let value = plan_quantified(&operand, Operator::Eq, subquery, SetQuantifier::Any, number)?;
            let expression = if *negated { Expr::Not(Box::new(value.expression)) } else { value.expression };
            Ok(SubqueryValue { expression, ..value })
        }
        Expr::SetComparison(SetComparison { expr, subquery, op, quantifier }) => {
            plan_quantified(&to_outer_references(expr, outer)?, *op, subquery, *quantifier, number)
        }
        other => internal_err!("{other} is not a subquery"),
    }
}

fn plan_scalar(subquery: &Subquery, number: usize) -> Result<SubqueryValue> {
    let plan = subquery.subquery.as_ref();
    let name = format!("value\u{1}{number}");
    let value = Expr::Column(plan.schema().columns().swap_remove(0));
    if is_aggregate(plan) {
        let plan = LogicalPlanBuilder::from(plan.clone()).project(vec![value.alias(&name)])?.build()?;
        return Ok(SubqueryValue { plan, expression: Expr::Column(Column::new_unqualified(name)) });
    }
    let rows = format!("rows\u{1}{number}");
    let none: Vec<Expr> = Vec::new();
    let plan = LogicalPlanBuilder::from(plan.clone())
        .aggregate(none, vec![first_value(value, vec![]).alias(&name), count(lit(1_i64)).alias(&rows)])?
        .build()?;
    let column = |name: String| Expr::Column(Column::new_unqualified(name));
    let expression = single_row_function().call(vec![column(name), column(rows)]);
    Ok(SubqueryValue { plan, expression })
}

/// Returns the function that returns its first argument, and fails if the second, the number of rows, is more than one.
fn single_row_function() -> ScalarUDF {
    ColumnarFunction::new("single*", keep_types, first_type, |call| {
        if call.array(1)?.as_primitive::<Int64Type>().iter().flatten().any(|rows| rows > 1) {
            return exec_err!(
                "more than one row returned by a subquery used as an expression; aggregate, or add ORDER BY … LIMIT 1"
            );
        }
        call.array(0)
    })
}

/// Plans `value op ANY (subquery)` or ALL: true, false, or NULL if a comparison with NULL decides.
fn plan_quantified(
    value: &Expr,
    op: Operator,
    subquery: &Subquery,
    quantifier: SetQuantifier,
    number: usize,
) -> Result<SubqueryValue> {
    let plan = subquery.subquery.as_ref();
    let element = Expr::Column(plan.schema().columns().swap_remove(0));
    let [name, decided, rows, compared_rows] =
        ["compared", "decided", "rows", "compared_rows"].map(|name| format!("{name}\u{1}{number}"));
    let column = |name: &str| Expr::Column(Column::new_unqualified(name));
    let comparison = binary_expr(value.clone(), op, element);
    let aggregate = match quantifier {
        SetQuantifier::Any => bool_or(column(&name)),
        SetQuantifier::All => bool_and(column(&name)),
    };
    let none: Vec<Expr> = Vec::new();
    let plan = LogicalPlanBuilder::from(plan.clone())
        .project(vec![comparison.alias(&name)])?
        .aggregate(
            none,
            vec![aggregate.alias(&decided), count(lit(1_i64)).alias(&rows), count(column(&name)).alias(&compared_rows)],
        )?
        .build()?;
    let unknown = column(&rows).gt(column(&compared_rows));
    let nothing = lit(datafusion::common::ScalarValue::Boolean(None));
    let expression = match quantifier {
        SetQuantifier::Any => when(column(&decided).is_true(), lit(true)).when(unknown, nothing).otherwise(lit(false)),
        SetQuantifier::All => when(column(&decided).is_false(), lit(false)).when(unknown, nothing).otherwise(lit(true)),
    }?;
    Ok(SubqueryValue { plan, expression })
}

/// Turns the columns of `value` into outer references, for use in the subquery.
fn to_outer_references(value: &Expr, outer: &DFSchema) -> Result<Expr> {
    let inside = value.clone().transform_up(|expression| {
        Ok(match expression {
            Expr::Column(column) => {
                let field = outer.qualified_field_from_column(&column)?.1.clone();
                Transformed::yes(Expr::OuterReferenceColumn(field, column))
            }
            other => Transformed::no(other),
        })
    });
    inside.data()
}

/// What DataFusion's join for a subquery makes of an aggregate without GROUP BY, which has a row even if it has no rows
/// to aggregate.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RowOfNone {
    Kept,
    Lost,
}

/// Whether DataFusion plans the subquery `plan`: its outer columns are all in `schema` and occur only in filters, below
/// projections and, if its row is kept, at most one aggregate. Below an aggregate they must be in equalities.
fn is_simple(plan: &LogicalPlan, schema: &DFSchema, row_of_none: RowOfNone) -> Result<bool> {
    let columns = outer_columns(plan)?;
    if columns.is_empty() {
        return Ok(true);
    }
    if columns.iter().any(|column| !schema.has_column(column)) {
        return Ok(false);
    }
    let mut above = NodesAbove::default();
    let mut node = plan;
    loop {
        for expression in node.expressions() {
            if has_correlated_subquery(&expression)? {
                return Ok(false);
            }
            if expression.contains_outer() && !above.allows(node) {
                return Ok(false);
            }
        }
        match node {
            LogicalPlan::Projection(_) | LogicalPlan::Filter(_) | LogicalPlan::Subquery(_) => {}
            LogicalPlan::Aggregate(aggregate) => {
                above.has_other |= !aggregate.group_expr.is_empty() || above.has_aggregate;
                above.has_other |= row_of_none == RowOfNone::Lost;
                above.has_aggregate = true;
            }
            // Also an alias: above it, DataFusion would look for the columns below by their own names.
            _ => above.has_other = true,
        }
        match node.inputs()[..] {
            [input] => node = input,
            _ => break,
        }
    }
    // If a node has several inputs, none of them may use outer columns.
    for input in node.inputs() {
        if !outer_columns(input)?.is_empty() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The nodes between a subquery and one of its nodes.
#[derive(Default)]
struct NodesAbove {
    has_aggregate: bool,
    has_other: bool,
}

impl NodesAbove {
    /// Whether `node`, below these, may use outer columns.
    fn allows(&self, node: &LogicalPlan) -> bool {
        let LogicalPlan::Filter(filter) = node else { return false };
        let mut conditions = utils::split_conjunction(&filter.predicate).into_iter();
        !self.has_other && conditions.all(|part| !part.contains_outer() || !self.has_aggregate || is_equality(part))
    }
}

/// Whether `expression` has a subquery that uses columns of its outer queries, or a comparison with ANY or ALL.
fn has_correlated_subquery(expression: &Expr) -> Result<bool> {
    expression.exists(|part| match (part, subquery_of(part)) {
        (Expr::SetComparison(_), _) => Ok(true),
        (_, Some(subquery)) => Ok(!outer_columns(&subquery.subquery)?.is_empty()),
        _ => Ok(false),
    })
}

/// Whether `expression` compares an outer column with a value of the subquery's rows.
fn is_equality(expression: &Expr) -> bool {
    let Expr::BinaryExpr(binary) = expression else { return false };
    let is_outer = |side: &Expr| matches!(side, Expr::OuterReferenceColumn(..));
    let is_own = |side: &Expr| !side.contains_outer() && side.any_column_refs();
    binary.op == Operator::Eq
        && ((is_outer(&binary.left) && is_own(&binary.right)) || (is_outer(&binary.right) && is_own(&binary.left)))
}

/// Where in a node an expression is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Position {
    /// A condition of a filter, all of which must be true.
    Condition,
    /// A part of an OR of a filter, where NULL still means the same as false.
    Alternative,
    /// Another part of a filter: NULL is a value of its own.
    Operand,
    /// A part of another node, in which DataFusion plans neither `IN` nor EXISTS.
    Output,
}

impl Position {
    /// The position of what is inside of an expression here that is neither AND nor OR.
    fn of_operands(self) -> Self {
        if self == Self::Output { self } else { Self::Operand }
    }

    /// Whether DataFusion's join for `contained` is right here, if it plans the subquery at all.
    fn allows_join(self, contained: &InSubquery, outer: &DFSchema) -> Result<bool> {
        let is_right = match self {
            // It sees that a column may be NULL, and not that another expression is.
            Self::Condition if contained.negated => {
                matches!(*contained.expr, Expr::Column(_)) && outer_columns(&contained.subquery.subquery)?.is_empty()
            }
            Self::Condition => true,
            Self::Alternative => !contained.negated,
            Self::Operand | Self::Output => false,
        };
        // A join on arrays would lose rows.
        Ok(is_right && !contained.expr.get_type(outer).is_ok_and(|kind| kind.is_nested()))
    }
}

/// The value of `contained` over `rows`, if its subquery uses no outer columns: `rows` joined with what decides, and the
/// expression over it. `number` makes names unique.
fn join_membership(rows: &LogicalPlan, contained: &InSubquery, number: usize) -> Result<Option<(LogicalPlan, Expr)>> {
    let subquery = contained.subquery.subquery.as_ref();
    let is_nested = contained.expr.get_type(rows.schema())?.is_nested();
    // The rows of the subquery are computed twice.
    if is_nested || is_volatile(subquery)? || !outer_columns(subquery)?.is_empty() || has_subquery(&contained.expr)? {
        return Ok(None);
    }
    let table = format!("in\u{1}{number}");
    let [value, element, all, known] = ["value", "element", "all", "known"].map(|name| format!("{name}\u{1}{number}"));
    let column = |name: &str| Expr::Column(Column::new_unqualified(name));
    // As a column: a join whose condition is a constant NULL would find every row.
    let mut output: Vec<Expr> = rows.schema().columns().into_iter().map(Expr::Column).collect();
    output.push(contained.expr.as_ref().clone().alias(&value));
    let first = Expr::Column(subquery.schema().columns().swap_remove(0));
    let elements = LogicalPlanBuilder::from(subquery.clone()).project(vec![first.alias(&element)])?.build()?;
    let none: Vec<Expr> = Vec::new();
    let counts = LogicalPlanBuilder::from(elements.clone())
        .aggregate(none, vec![count(lit(1_i64)).alias(&all), count(column(&element)).alias(&known)])?
        .build()?;
    let elements = LogicalPlanBuilder::from(elements).alias(&table)?.build()?;
    let is_equal = column(&value).eq(Expr::Column(Column::new(Some(table.as_str()), element)));
    let joined = LogicalPlanBuilder::from(rows.clone())
        .project(output)?
        .join_on(elements, JoinType::LeftMark, [is_equal])?
        .cross_join(counts)?
        .build()?;
    let is_found = Expr::Column(Column::new(Some(table), "mark"));
    let is_unknown = column(&value).is_null().or(column(&all).gt(column(&known)));
    let result = when(is_found, lit(!contained.negated))
        .when(column(&all).eq(lit(0_i64)), lit(contained.negated))
        .when(is_unknown, lit(ScalarValue::Boolean(None)))
        .otherwise(lit(contained.negated))?;
    Ok(Some((joined, result)))
}

/// Whether `expression` has a subquery.
pub(super) fn has_subquery(expression: &Expr) -> Result<bool> {
    expression.exists(|part| Ok(subquery_of(part).is_some()))
}

/// Makes such subqueries of `plan` nullable.
pub(super) fn make_subqueries_nullable(plan: LogicalPlan) -> Result<LogicalPlan> {
    if !any_node(&plan, |node| any_part(node, may_be_null))? {
        return Ok(plan);
    }
    let rewritten = plan.transform_up_with_subqueries(|node| {
        let node = node.map_expressions(|expression| expression.transform_up(rewrite_expression))?.data;
        node.recompute_schema().map(Transformed::yes)
    });
    rewritten.data()
}

fn may_be_null(expression: &Expr) -> bool {
    match expression {
        Expr::ScalarSubquery(subquery) => {
            let plan = subquery.subquery.as_ref();
            !is_aggregate(plan) && plan.schema().fields().first().is_some_and(|field| !field.is_nullable())
        }
        _ => false,
    }
}

fn rewrite_expression(expression: Expr) -> Result<Transformed<Expr>> {
    if !may_be_null(&expression) {
        return Ok(Transformed::no(expression));
    }
    let Expr::ScalarSubquery(mut subquery) = expression else { return Ok(Transformed::no(expression)) };
    let plan = subquery.subquery.as_ref().clone();
    let column = plan.schema().columns().swap_remove(0);
    let value = nullable().call(vec![Expr::Column(column.clone())]).alias_qualified(column.relation, column.name);
    subquery.subquery = LogicalPlanBuilder::from(plan).project(vec![value])?.build()?.into();
    Ok(Transformed::yes(Expr::ScalarSubquery(subquery)))
}

/// Returns the function of its argument, declared as nullable.
fn nullable() -> ScalarUDF {
    FieldFunction::new(
        "nullable*",
        Signature::any(1, Volatility::Immutable),
        |args| Ok(Field::clone(&args.arg_fields[0]).with_nullable(true).into()),
        |args| Ok(args.args[0].clone()),
    )
}
