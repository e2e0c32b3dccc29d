//! Expressions are not computed for rows that a condition excludes, so they cannot fail the statement for these rows.
//! PostgreSQL behaves the same way.
//!
//! DataFusion computes output columns before a filter where that makes rows narrower, and evaluates all parts of a
//! condition for all rows. [`KeepProjectionAboveFilter`] keeps computed columns above the filter. [`OrderConditions`]
//! evaluates fallible parts only for rows that pass the other parts, and the right side of AND and OR only for rows
//! that the left side does not decide.
//!
//! DataFusion's issue 8927; `docs/decisions/upstream` says when the module can go.

use std::fmt;
use std::sync::Arc;

use arrow::array::{Array, AsArray, BooleanArray, RecordBatch};
use arrow::compute::{and, and_kleene, or_kleene, prep_null_mask_filter};
use arrow::datatypes::{DataType, Schema};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{ColumnarValue, Operator};
use datafusion::physical_expr::expressions::{BinaryExpr, Column, Literal};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr, conjunction, split_conjunction};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::{ExecutionPlan, PlanProperties};

use crate::outer_join::GuardOuterJoins;

/// Functions that never fail, so that their order in a condition does not matter.
const INFALLIBLE: &str = "\
    btrim coalesce date_part date_trunc ends_with get_field length lower ltrim rtrim starts_with text_like* upper";

/// Returns DataFusion's physical rules, changed so that excluded rows are not computed and columns filled by outer
/// joins are not treated as constant.
pub fn physical_optimizer_rules() -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    let mut rules: Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> = Vec::new();
    for rule in PhysicalOptimizer::new().rules {
        // Before conditions are moved, and before required sorts are determined.
        if rule.name() == "FilterPushdown" {
            rules.push(Arc::new(GuardOuterJoins));
        }
        rules.push(match rule.name() {
            "ProjectionPushdown" => Arc::new(KeepProjectionAboveFilter::new(rule)),
            _ => rule,
        });
    }
    rules.push(Arc::new(OrderConditions));
    rules
}

/// Whether a part of `expression` satisfies `is`.
fn any_part(expression: &Arc<dyn PhysicalExpr>, is: impl Fn(&Arc<dyn PhysicalExpr>) -> bool) -> Result<bool> {
    let mut found = false;
    expression.apply(|part| {
        found = is(part);
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// Whether `expression` is more than a column or a constant.
fn is_computed(expression: &Arc<dyn PhysicalExpr>) -> Result<bool> {
    any_part(expression, |part| !part.is::<Column>() && !part.is::<Literal>())
}

/// Whether the evaluation of `expression` can fail for some values.
fn can_fail(expression: &Arc<dyn PhysicalExpr>) -> Result<bool> {
    any_part(expression, |part| {
        part.downcast_ref::<ScalarFunctionExpr>()
            .is_some_and(|call| !INFALLIBLE.split(' ').any(|name| name == call.name()))
    })
}

/// Pushes projections towards the tables, but keeps those that compute values above filters.
#[derive(Debug)]
struct KeepProjectionAboveFilter {
    pushdown: Arc<dyn PhysicalOptimizerRule + Send + Sync>,
}

impl KeepProjectionAboveFilter {
    fn new(pushdown: Arc<dyn PhysicalOptimizerRule + Send + Sync>) -> Self {
        Self { pushdown }
    }
}

impl PhysicalOptimizerRule for KeepProjectionAboveFilter {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let with_boundaries = plan.transform_up(|node| {
            // Runs before the projection can become part of a scan.
            if let Some(projection) = node.downcast_ref::<ProjectionExec>() {
                return short_circuit_projection(projection, &node);
            }
            Ok(if node.is::<FilterExec>() {
                Transformed::yes(Arc::new(ProjectionBoundary { input: node }) as Arc<dyn ExecutionPlan>)
            } else {
                Transformed::no(node)
            })
        });
        let pushed = self.pushdown.optimize(with_boundaries.data()?, config)?;
        let without_boundaries = pushed.transform_up(|node| {
            Ok(match node.downcast_ref::<ProjectionBoundary>() {
                Some(boundary) => Transformed::yes(boundary.input.clone()),
                None => Transformed::no(node),
            })
        });
        without_boundaries.data()
    }

    fn name(&self) -> &str {
        self.pushdown.name()
    }

    fn schema_check(&self) -> bool {
        self.pushdown.schema_check()
    }
}

/// A filter that computing projections cannot pass. It is never executed.
#[derive(Debug)]
struct ProjectionBoundary {
    input: Arc<dyn ExecutionPlan>,
}

crate::display_as_name!(ProjectionBoundary);

impl ExecutionPlan for ProjectionBoundary {
    fn name(&self) -> &str {
        "FilterBarrier"
    }

    crate::operator_methods!(input, |_, input| Self { input });

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn execute(&self, _: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        internal_err!("a projection boundary of the optimizer is still in the plan")
    }

    fn try_swapping_with_projection(&self, projection: &ProjectionExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        for column in projection.expr() {
            if is_computed(&column.expr)? {
                return Ok(None);
            }
        }
        let swapped = self.input.try_swapping_with_projection(projection)?;
        Ok(swapped.map(|plan| if plan.is::<FilterExec>() { Arc::new(Self { input: plan }) as _ } else { plan }))
    }
}

/// Evaluates fallible parts of conditions last, and only for rows that pass the other parts.
#[derive(Debug)]
struct OrderConditions;

impl PhysicalOptimizerRule for OrderConditions {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let ordered = plan.transform_up(|node| {
            if let Some(projection) = node.downcast_ref::<ProjectionExec>() {
                return short_circuit_projection(projection, &node);
            }
            let Some(filter) = node.downcast_ref::<FilterExec>() else { return Ok(Transformed::no(node)) };
            Ok(match order_conjuncts(filter.predicate())? {
                Some(predicate) => {
                    let filter = FilterExecBuilder::from(filter).with_predicate(predicate).build()?;
                    Transformed::yes(Arc::new(filter) as Arc<dyn ExecutionPlan>)
                }
                None => Transformed::no(node),
            })
        });
        ordered.data()
    }

    fn name(&self) -> &str {
        "OrderConditions"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Makes the expressions of `node`, a projection, stop where one side of AND or OR decides.
fn short_circuit_projection(
    projection: &ProjectionExec,
    node: &Arc<dyn ExecutionPlan>,
) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let columns = projection.expr();
    let Some(changed) = add_all_short_circuits(columns.iter().map(|column| column.expr.clone()))? else {
        return Ok(Transformed::no(node.clone()));
    };
    let changed =
        columns.iter().zip(changed).map(|(column, expr)| ProjectionExpr { expr, alias: column.alias.clone() });
    let projection = ProjectionExec::try_new(changed.collect::<Vec<_>>(), projection.input().clone())?;
    Ok(Transformed::yes(Arc::new(projection)))
}

/// Orders the parts of `predicate`; `None` if their order does not matter.
fn order_conjuncts(predicate: &Arc<dyn PhysicalExpr>) -> Result<Option<Arc<dyn PhysicalExpr>>> {
    let (mut safe, mut fallible) = (Vec::new(), Vec::new());
    for part in split_conjunction(predicate) {
        if can_fail(part)? { fallible.push(part.clone()) } else { safe.push(part.clone()) }
    }
    if fallible.is_empty() {
        return Ok(None);
    }
    if safe.len() + fallible.len() < 2 {
        let changed = add_all_short_circuits(fallible.into_iter())?;
        return Ok(changed.and_then(|mut changed| changed.pop()));
    }
    let mut parts = Vec::new();
    if !safe.is_empty() {
        parts.push(conjunction(safe));
    }
    for part in fallible {
        parts.push(add_short_circuits(part)?.data);
    }
    Ok(Some(Arc::new(OrderedConjunction { parts })))
}

/// A conjunction whose later parts are evaluated only where the earlier ones are true.
#[derive(Debug, PartialEq, Eq, Hash)]
struct OrderedConjunction {
    parts: Vec<Arc<dyn PhysicalExpr>>,
}

impl fmt::Display for OrderedConjunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, part) in self.parts.iter().enumerate() {
            write!(f, "{}{part}", if position == 0 { "" } else { " AND " })?;
        }
        Ok(())
    }
}

impl PhysicalExpr for OrderedConjunction {
    fn data_type(&self, _: &Schema) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn nullable(&self, _: &Schema) -> Result<bool> {
        Ok(false)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let mut selected = BooleanArray::from(vec![true; batch.num_rows()]);
        for part in &self.parts {
            if !selected.has_true() {
                break;
            }
            let values = part.evaluate_selection(batch, &selected)?.into_array(batch.num_rows())?;
            let values = values.as_boolean();
            // Neither a NULL nor a value that was not evaluated passes the filter.
            let is_true = if values.null_count() > 0 { prep_null_mask_filter(values) } else { values.clone() };
            selected = and(&selected, &is_true)?;
        }
        Ok(ColumnarValue::Array(Arc::new(selected)))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        self.parts.iter().collect()
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn PhysicalExpr>>) -> Result<Arc<dyn PhysicalExpr>> {
        Ok(Arc::new(Self { parts: children }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, part) in self.parts.iter().enumerate() {
            f.write_str(if position == 0 { "" } else { " AND " })?;
            part.fmt_sql(f)?;
        }
        Ok(())
    }
}

/// Makes fallible parts of `expression` be evaluated only where no other part decides.
fn add_short_circuits(expression: Arc<dyn PhysicalExpr>) -> Result<Transformed<Arc<dyn PhysicalExpr>>> {
    expression.transform_up(|part| {
        let Some(binary) = part.downcast_ref::<BinaryExpr>() else { return Ok(Transformed::no(part)) };
        let is_and = match binary.op() {
            Operator::And => true,
            Operator::Or => false,
            _ => return Ok(Transformed::no(part)),
        };
        if !can_fail(binary.right())? {
            return Ok(Transformed::no(part));
        }
        let (left, right) = (binary.left().clone(), binary.right().clone());
        Ok(Transformed::yes(Arc::new(ShortCircuit { is_and, sides: [left, right] }) as Arc<dyn PhysicalExpr>))
    })
}

/// `left AND right`, or `left OR right`.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ShortCircuit {
    is_and: bool,
    /// The left side and the right side.
    sides: [Arc<dyn PhysicalExpr>; 2],
}

impl ShortCircuit {
    fn keyword(&self) -> &'static str {
        if self.is_and { "AND" } else { "OR" }
    }
}

impl fmt::Display for ShortCircuit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [left, right] = &self.sides;
        write!(f, "({left} {} {right})", self.keyword())
    }
}

impl PhysicalExpr for ShortCircuit {
    fn data_type(&self, _: &Schema) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn nullable(&self, schema: &Schema) -> Result<bool> {
        let [left, right] = &self.sides;
        Ok(left.nullable(schema)? || right.nullable(schema)?)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let [left, right] = &self.sides;
        let left = left.evaluate(batch)?.into_array(batch.num_rows())?;
        let left = left.as_boolean();
        let is_open = |value: Option<bool>| Some(value != Some(!self.is_and));
        let open: BooleanArray = left.iter().map(is_open).collect();
        if !open.has_true() {
            return Ok(ColumnarValue::Array(Arc::new(left.clone())));
        }
        let right = right.evaluate_selection(batch, &open)?.into_array(batch.num_rows())?;
        let right = right.as_boolean();
        // The right side has no effect where it was not evaluated.
        let combined = if self.is_and { and_kleene(left, right)? } else { or_kleene(left, right)? };
        Ok(ColumnarValue::Array(Arc::new(combined)))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        self.sides.iter().collect()
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn PhysicalExpr>>) -> Result<Arc<dyn PhysicalExpr>> {
        let sides = <[_; 2]>::try_from(children).unwrap_or_else(|_| self.sides.clone());
        Ok(Arc::new(Self { is_and: self.is_and, sides }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        self.sides[0].fmt_sql(f)?;
        write!(f, " {} ", self.keyword())?;
        self.sides[1].fmt_sql(f)?;
        f.write_str(")")
    }
}

/// Returns the projection's expressions with short circuits, if any of them changes.
fn add_all_short_circuits(
    expressions: impl Iterator<Item = Arc<dyn PhysicalExpr>>,
) -> Result<Option<Vec<Arc<dyn PhysicalExpr>>>> {
    let mut is_changed = false;
    let changed = expressions.map(|expression| {
        let changed = add_short_circuits(expression)?;
        is_changed |= changed.transformed;
        Ok(changed.data)
    });
    let changed = changed.collect::<Result<Vec<_>>>()?;
    Ok(is_changed.then_some(changed))
}
