//! Wraps the arguments of a table function.

use std::ops::ControlFlow;

use sqlparser::ast::{Expr, FunctionArg, FunctionArgExpr, FunctionArguments, TableFactor, VisitMut, VisitorMut};
use tidegate_core::Error;

use crate::parse;
use crate::statement::Statement;

impl Statement {
    /// Passes the arguments of the table function `name` through the function `wrapper`, which is called once for each
    /// of `count` new arguments: `name(a, b)` becomes `name(wrapper(0, a, b), wrapper(1, a, b), …)`. `None` when nothing
    /// changes or the statement was not parsed.
    ///
    /// # Errors
    /// `InvalidArguments` when the changed statement cannot be printed so that it means the same.
    pub fn with_wrapped_arguments(&self, name: &str, wrapper: &str, count: usize) -> Result<Option<Self>, Error> {
        let Some(mut ast) = self.ast().cloned() else { return Ok(None) };
        let calls = (0..count).map(|index| parse::parse_expression(&format!("{wrapper}({index})"), self.dialect()));
        let mut visitor = ArgumentWrapper { name, calls: calls.collect::<Result<_, _>>()?, has_changed: false };
        // The visitor never breaks.
        let _: ControlFlow<()> = ast.visit(&mut visitor);
        if !visitor.has_changed {
            return Ok(None);
        }
        let text = parse::print_checked(&ast, self.dialect())?;
        Ok(Some(self.with_ast(ast, text)))
    }
}

struct ArgumentWrapper<'a> {
    name: &'a str,
    /// The calls of the wrapper, each with its number as the only argument so far.
    calls: Vec<Expr>,
    has_changed: bool,
}

impl VisitorMut for ArgumentWrapper<'_> {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        let TableFactor::Table { name, args: Some(arguments), .. } = factor else { return ControlFlow::Continue(()) };
        let is_meant = |part: &sqlparser::ast::Ident| part.value.eq_ignore_ascii_case(self.name);
        if !name.0.last().and_then(|part| part.as_ident()).is_some_and(is_meant) {
            return ControlFlow::Continue(());
        }
        let wrapped = self.calls.iter().cloned().map(|mut call| {
            if let Expr::Function(function) = &mut call
                && let FunctionArguments::List(list) = &mut function.args
            {
                list.args.extend(arguments.args.iter().cloned());
            }
            FunctionArg::Unnamed(FunctionArgExpr::Expr(call))
        });
        arguments.args = wrapped.collect();
        self.has_changed = true;
        ControlFlow::Continue(())
    }
}
