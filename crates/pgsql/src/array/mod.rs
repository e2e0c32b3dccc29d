//! Arrays: lists whose first element has the subscript 1.

mod edit;
mod element;
mod equal_lengths;
mod flatten;
mod literal;
mod nulls;
mod operator;
mod order;
mod quantified;
mod search;
mod shape;
mod subquery;
mod syntax;
mod text;

use datafusion::logical_expr::ScalarUDF;

pub(crate) use equal_lengths::plan_nested_array;
pub(crate) use flatten::with_one_dimension;
pub(crate) use literal::rewrite_literals;
pub(crate) use operator::plan_operator;
pub(crate) use order::{order_arrays, order_within};
pub(crate) use syntax::rewrite_syntax;
pub(crate) use text::{element_text, format_arrays};

/// Returns the scalar functions of this module. A function with the name of a DataFusion function replaces it.
pub(crate) fn functions() -> Vec<ScalarUDF> {
    let mut functions = edit::functions();
    functions.extend(element::functions());
    functions.push(flatten::function());
    functions.push(equal_lengths::equal_lengths_function());
    functions.extend(nulls::functions());
    functions.extend(quantified::functions());
    functions.extend(search::functions());
    functions.extend(shape::functions());
    functions.extend(text::functions());
    functions
}
