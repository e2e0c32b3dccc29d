//! Helpers for nodes of the syntax tree.

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident, ObjectName,
};

/// Builds the call of the function `name` with `args`.
pub(crate) fn call(name: &str, args: Vec<Expr>) -> Expr {
    let args = args.into_iter().map(|arg| FunctionArg::Unnamed(FunctionArgExpr::Expr(arg))).collect();
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList { duplicate_treatment: None, args, clauses: Vec::new() }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

/// Whether `name` is the unqualified name `expected`, ignoring case.
pub(crate) fn is_named(name: &ObjectName, expected: &str) -> bool {
    matches!(name.0.as_slice(), [part] if part.as_ident().is_some_and(|ident| ident.value.eq_ignore_ascii_case(expected)))
}
