//! The size of a statement after its names are expanded.
//!
//! A common table expression that is used twice occurs twice in the plan, and so on for the expressions that use it. A
//! column computed from another column twice contains its expression twice when a filter is moved below it. So a short
//! statement can expand to a plan of any size, and planning cannot be interrupted. The parsed plan shares repeated
//! parts, so its expanded size can be computed in linear time. The number of tables is checked before planning,
//! because planning expands each use of a name again.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::rc::Rc;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, DataFusionError, Result};
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::sql::sqlparser::ast::{Ident, ObjectName, Query, Statement, Visit, Visitor};
use tidegate_core::{Error, ErrorKind};

const STEPS_MAX: u64 = 10_000;
const PARTS_MAX: u64 = 100_000;

/// The expanded size of a part of a plan.
#[derive(Default)]
struct PlanSize {
    steps: u64,
    /// For each column, the number of parts of its expression; one for columns of tables.
    columns: Vec<u64>,
    parts: u64,
}

pub(super) fn check_plan_size(plan: &LogicalPlan) -> Result<()> {
    let PlanSize { steps, parts, .. } = &*PlanMeasurer::default().measure_plan(plan)?;
    if *steps > STEPS_MAX {
        return too_large_error(format!("the plan has {steps} steps; the limit is {STEPS_MAX}"));
    }
    if *parts > PARTS_MAX {
        return too_large_error(format!(
            "an expression of the statement has {parts} parts after expanding the columns it names; the limit is \
             {PARTS_MAX}"
        ));
    }
    Ok(())
}

fn too_large_error(message: String) -> Result<()> {
    let error = Error::new(ErrorKind::TooLarge, message).with_hint(
        "Each use of a name counts again, with everything that it reads. Use the name once, or run several statements.",
    );
    Err(DataFusionError::External(Box::new(error)))
}

/// The sizes so far, by address. Repeated parts are shared.
#[derive(Default)]
struct PlanMeasurer(HashMap<*const LogicalPlan, Rc<PlanSize>>);

impl PlanMeasurer {
    fn measure_plan(&mut self, plan: &LogicalPlan) -> Result<Rc<PlanSize>> {
        if let Some(size) = self.0.get(&std::ptr::from_ref(plan)) {
            return Ok(size.clone());
        }
        let mut inputs = Vec::new();
        for input in plan.inputs() {
            inputs.push(self.measure_plan(input)?);
        }
        let below = InputColumns::new(plan, &inputs);
        let mut size = PlanSize { steps: 1, columns: Vec::new(), parts: 1 };
        let mut computed = Vec::new();
        for expr in plan.expressions() {
            let parts = self.measure_expression(&expr, &below, &mut size.steps)?;
            computed.push(parts);
            size.parts = size.parts.max(parts);
        }
        for input in &inputs {
            size.steps = size.steps.saturating_add(input.steps);
            size.parts = size.parts.max(input.parts);
        }
        size.columns = column_sizes(plan, &inputs, &computed);
        let size = Rc::new(size);
        self.0.insert(std::ptr::from_ref(plan), size.clone());
        Ok(size)
    }

    /// The number of parts of `expr` over the columns `below`. Adds the steps of its subqueries to `steps`.
    fn measure_expression(&mut self, expr: &Expr, below: &InputColumns<'_>, steps: &mut u64) -> Result<u64> {
        let mut parts: u64 = 0;
        expr.apply(|part| {
            let own = match part {
                Expr::Column(column) => below.size(column),
                Expr::ScalarSubquery(subquery) => self.measure_subquery(&subquery.subquery, steps)?,
                Expr::Exists(exists) => self.measure_subquery(&exists.subquery.subquery, steps)?,
                Expr::InSubquery(in_subquery) => self.measure_subquery(&in_subquery.subquery.subquery, steps)?,
                _ => 1,
            };
            parts = parts.saturating_add(own);
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(parts)
    }

    fn measure_subquery(&mut self, plan: &LogicalPlan, steps: &mut u64) -> Result<u64> {
        let size = self.measure_plan(plan)?;
        *steps = steps.saturating_add(size.steps);
        Ok(size.parts)
    }
}

/// The columns that expressions of a step may use.
struct InputColumns<'a>(Vec<(&'a DFSchema, Rc<PlanSize>)>);

impl<'a> InputColumns<'a> {
    fn new(plan: &'a LogicalPlan, inputs: &[Rc<PlanSize>]) -> Self {
        Self(plan.inputs().into_iter().map(|input| &**input.schema()).zip(inputs.iter().cloned()).collect())
    }

    /// One for columns that are not below, such as a column of the statement around a subquery.
    fn size(&self, column: &Column) -> u64 {
        let of_input = |(schema, size): &(&DFSchema, Rc<PlanSize>)| {
            schema.maybe_index_of_column(column).and_then(|index| size.columns.get(index).copied())
        };
        self.0.iter().find_map(of_input).unwrap_or(1)
    }
}

fn column_sizes(plan: &LogicalPlan, inputs: &[Rc<PlanSize>], computed: &[u64]) -> Vec<u64> {
    let count = plan.schema().fields().len();
    let sizes = match plan {
        LogicalPlan::Projection(_) | LogicalPlan::Aggregate(_) => computed.to_vec(),
        LogicalPlan::Window(_) => inputs.iter().flat_map(|input| &input.columns).chain(computed).copied().collect(),
        LogicalPlan::Union(_) => {
            let largest = |index| inputs.iter().filter_map(|input| input.columns.get(index)).max().copied();
            (0..count).map(|index| largest(index).unwrap_or(1)).collect()
        }
        _ => inputs.iter().flat_map(|input| input.columns.iter().copied()).collect::<Vec<_>>(),
    };
    if sizes.len() == count {
        return sizes;
    }
    // Some steps have fewer or more columns than their inputs. Then each column counts as the largest one.
    let largest = inputs.iter().flat_map(|input| &input.columns).chain(computed).max().copied().unwrap_or(1);
    vec![largest; count]
}

const TABLES_MAX: u64 = 1_000;

pub(super) fn check_table_count(statement: &Statement) -> Result<(), Error> {
    let tables = TableCounter::default().count(statement);
    if tables <= TABLES_MAX {
        return Ok(());
    }
    let message = format!("the statement reads {tables} tables after expanding WITH; the limit is {TABLES_MAX}");
    let hint = "Each use of a WITH name counts again, with every table that it reads.";
    Err(Error::new(ErrorKind::TooLarge, message).with_hint(hint))
}

#[derive(Default)]
struct TableCounter {
    /// The number of tables of each WITH name in scope, the innermost scope last.
    scopes: Vec<HashMap<String, u64>>,
    /// The counts of common table expressions, which the visitor reaches again within their query.
    counted: HashMap<*const Query, u64>,
    tables: u64,
}

impl TableCounter {
    fn count(&mut self, part: &impl Visit) -> u64 {
        let before = std::mem::take(&mut self.tables);
        // The visitor never stops early.
        let _ = part.visit(self);
        std::mem::replace(&mut self.tables, before)
    }

    fn count_cte(&mut self, query: &Query) -> u64 {
        if let Some(tables) = self.counted.get(&std::ptr::from_ref(query)) {
            return *tables;
        }
        let tables = self.count(query);
        self.counted.insert(std::ptr::from_ref(query), tables);
        tables
    }

    /// The number of tables of `name`. WITH names have only one part.
    fn count_of_name(&self, name: &ObjectName) -> u64 {
        let [part] = name.0.as_slice() else { return 1 };
        let Some(name) = part.as_ident().map(cte_key) else { return 1 };
        self.scopes.iter().rev().find_map(|scope| scope.get(&name).copied()).unwrap_or(1)
    }
}

impl Visitor for TableCounter {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        self.scopes.push(HashMap::new());
        for expression in query.with.iter().flat_map(|with| &with.cte_tables) {
            // A recursive expression is not in scope yet. It counts as one table there.
            let tables = self.count_cte(&expression.query);
            if let Some(scope) = self.scopes.last_mut() {
                scope.insert(cte_key(&expression.alias.name), tables);
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.scopes.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, name: &ObjectName) -> ControlFlow<()> {
        self.tables = self.tables.saturating_add(self.count_of_name(name));
        ControlFlow::Continue(())
    }
}

/// Lower case, so that a table whose name differs from an expression only in case may count as one.
fn cte_key(name: &Ident) -> String {
    name.value.to_lowercase()
}
