//! Forms that DataFusion would plan with another meaning than PostgreSQL's.

use datafusion::common::{Result, not_impl_err};
use datafusion::sql::sqlparser::ast::{
    Join, JoinConstraint, JoinOperator, Select, SetExpr, SetOperator, SetQuantifier,
};

/// Refuses joins whose merged columns would not be merged.
pub(super) fn check_joins(select: &Select) -> Result<()> {
    let joins = select.from.iter().flat_map(|from| &from.joins);
    for Join { join_operator, .. } in joins {
        let (word, constraint) = match join_operator {
            JoinOperator::Right(constraint) | JoinOperator::RightOuter(constraint) => ("RIGHT", constraint),
            JoinOperator::FullOuter(constraint) => ("FULL", constraint),
            _ => continue,
        };
        if matches!(constraint, JoinConstraint::Using(_) | JoinConstraint::Natural) {
            return not_impl_err!(
                "{word} JOIN with USING or NATURAL; write {word} JOIN b ON a.id = b.id, and coalesce(a.id, b.id) AS id"
            );
        }
    }
    Ok(())
}

/// Refuses operations on sets that count equal rows.
pub(super) fn check_set_operation(body: &SetExpr) -> Result<()> {
    // As deep as the chain is long, so it is walked without recursion.
    let mut left_to_see = vec![body];
    while let Some(body) = left_to_see.pop() {
        let SetExpr::SetOperation { op, set_quantifier, left, right } = body else { continue };
        if *set_quantifier == SetQuantifier::All && *op != SetOperator::Union {
            return not_impl_err!(
                "{op} ALL; number equal rows on both sides with row_number() OVER (PARTITION BY every column), and \
                 write {op}"
            );
        }
        left_to_see.extend([left.as_ref(), right.as_ref()]);
    }
    Ok(())
}
