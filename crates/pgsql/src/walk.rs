//! Walks over syntax trees.
//!
//! sqlparser compiles its walk over all types of nodes again for each type of visitor: 200,000 lines of LLVM code and several
//! seconds of the build each time. So all walks of this crate have one of two types, which call their visitor through a pointer.

use std::ops::ControlFlow;

use datafusion::common::DataFusionError;
use datafusion::sql::sqlparser::ast::{
    Expr, ObjectName, Query, Select, TableFactor, Visit, VisitMut, Visitor, VisitorMut,
};

/// What stops a walk that changes nodes. It is boxed, because most walks never stop.
pub(crate) type Stop = Box<DataFusionError>;

/// Calls `visitor` for each part of `node`, until it breaks.
pub(crate) fn walk(node: &impl Visit, visitor: &mut dyn Visitor<Break = ()>) -> ControlFlow<()> {
    node.visit(&mut DynamicVisitor(visitor))
}

/// Calls `visitor` for each part of `node`, which it may change, until it breaks.
pub(crate) fn walk_mut(node: &mut impl VisitMut, visitor: &mut dyn VisitorMut<Break = Stop>) -> ControlFlow<Stop> {
    node.visit(&mut DynamicVisitorMut(visitor))
}

/// Whether `predicate` holds for an expression in `node`. Outer expressions come first.
pub(crate) fn any_expression(node: &impl Visit, mut predicate: impl FnMut(&Expr) -> bool) -> bool {
    walk(node, &mut ExpressionSearch(&mut predicate)).is_break()
}

/// Calls `visit` for each expression in `node` before its parts, with the number of queries in `node` around it.
pub(crate) fn for_each_expression(node: &mut impl VisitMut, mut visit: impl FnMut(&mut Expr, usize)) {
    // The visitor never breaks.
    let _ = walk_mut(node, &mut ExpressionVisitor { depth: 0, is_inner_first: false, visit: &mut visit });
}

/// Calls `visit` like [`for_each_expression`], but after the parts of the expression.
pub(crate) fn for_each_expression_inner_first(node: &mut impl VisitMut, mut visit: impl FnMut(&mut Expr, usize)) {
    // The visitor never breaks.
    let _ = walk_mut(node, &mut ExpressionVisitor { depth: 0, is_inner_first: true, visit: &mut visit });
}

struct DynamicVisitor<'a>(&'a mut dyn Visitor<Break = ()>);

struct DynamicVisitorMut<'a>(&'a mut dyn VisitorMut<Break = Stop>);

/// Passes the nodes that visitors of this crate use.
macro_rules! delegate {
    ($break:ty, $($name:ident($node:ty)),+) => {
        type Break = $break;

        $(fn $name(&mut self, node: $node) -> ControlFlow<$break> {
            self.0.$name(node)
        })+
    };
}

impl Visitor for DynamicVisitor<'_> {
    delegate!(
        (),
        pre_visit_query(&Query),
        post_visit_query(&Query),
        pre_visit_select(&Select),
        post_visit_select(&Select),
        pre_visit_relation(&ObjectName),
        pre_visit_table_factor(&TableFactor),
        pre_visit_expr(&Expr),
        post_visit_expr(&Expr)
    );
}

impl VisitorMut for DynamicVisitorMut<'_> {
    delegate!(
        Stop,
        pre_visit_query(&mut Query),
        post_visit_query(&mut Query),
        pre_visit_select(&mut Select),
        post_visit_select(&mut Select),
        pre_visit_relation(&mut ObjectName),
        pre_visit_table_factor(&mut TableFactor),
        post_visit_table_factor(&mut TableFactor),
        pre_visit_expr(&mut Expr),
        post_visit_expr(&mut Expr)
    );
}

struct ExpressionSearch<'a>(&'a mut dyn FnMut(&Expr) -> bool);

impl Visitor for ExpressionSearch<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
        if (self.0)(expression) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Counts the queries around an expression.
struct ExpressionVisitor<'a> {
    depth: usize,
    is_inner_first: bool,
    visit: &'a mut dyn FnMut(&mut Expr, usize),
}

impl VisitorMut for ExpressionVisitor<'_> {
    type Break = Stop;

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<Stop> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Stop> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<Stop> {
        if !self.is_inner_first {
            (self.visit)(expression, self.depth);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<Stop> {
        if self.is_inner_first {
            (self.visit)(expression, self.depth);
        }
        ControlFlow::Continue(())
    }
}
