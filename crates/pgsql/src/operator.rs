//! Resolves operators by the types of their operands.

use std::sync::Arc;

use datafusion::common::{DFSchema, Result};
use datafusion::execution::SessionStateDefaults;
use datafusion::logical_expr::planner::{
    ExprPlanner, PlannerResult, RawBinaryExpr, RawFieldAccessExpr, RelationPlanner,
};
use datafusion::logical_expr::{Expr, ExprSchemable};

use crate::operands::Operands;
use crate::{aggregate, array, json, number, statement, text, time, untyped_literals};

/// Returns the expression planners: PostgreSQL's operators first, then DataFusion's own.
pub fn expression_planners() -> Vec<Arc<dyn ExprPlanner>> {
    let mut planners: Vec<Arc<dyn ExprPlanner>> =
        vec![Arc::new(OperatorPlanner), Arc::new(aggregate::AggregatePlanner)];
    planners.extend(SessionStateDefaults::default_expr_planners());
    planners
}

/// Returns the planners of relations in FROM.
pub fn relation_planners() -> Vec<Arc<dyn RelationPlanner>> {
    statement::relation_planners()
}

type PlanOperator = fn(&Operands<'_>) -> Result<Option<Expr>>;

/// The families in order; the first that returns an expression wins.
const OPERATOR_FAMILIES: [PlanOperator; 5] =
    [json::plan_operator, time::plan_operator, array::plan_operator, text::plan_operator, number::plan_operator];

#[derive(Debug)]
struct OperatorPlanner;

impl ExprPlanner for OperatorPlanner {
    fn plan_field_access(
        &self,
        expr: RawFieldAccessExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawFieldAccessExpr>> {
        Ok(match json::plan_field_access(&expr, schema)? {
            Some(planned) => PlannerResult::Planned(planned),
            None => PlannerResult::Original(expr),
        })
    }

    fn plan_array_literal(&self, exprs: Vec<Expr>, schema: &DFSchema) -> Result<PlannerResult<Vec<Expr>>> {
        let elements = untyped_literals::plan_array(exprs, schema)?;
        Ok(match array::plan_nested_array(&elements, schema) {
            Some(array) => PlannerResult::Planned(array),
            None => PlannerResult::Original(elements),
        })
    }

    fn plan_struct_literal(&self, args: Vec<Expr>, is_named_struct: bool) -> Result<PlannerResult<Vec<Expr>>> {
        Ok(if is_named_struct { PlannerResult::Original(args) } else { PlannerResult::Planned(json::row().call(args)) })
    }

    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        if let Some(literal) = number::plan_literal(&expr) {
            return Ok(PlannerResult::Planned(literal));
        }
        let (Ok(left_type), Ok(right_type)) = (expr.left.get_type(schema), expr.right.get_type(schema)) else {
            return Ok(PlannerResult::Original(expr));
        };
        let operands = Operands { op: &expr.op, left: &expr.left, right: &expr.right, left_type, right_type, schema };
        for plan_operator in OPERATOR_FAMILIES {
            if let Some(planned) = plan_operator(&operands)? {
                return Ok(PlannerResult::Planned(planned));
            }
        }
        Ok(PlannerResult::Original(expr))
    }
}
