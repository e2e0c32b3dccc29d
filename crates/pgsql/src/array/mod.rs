//! Arrays: lists whose first element has the subscript 1.

mod compare;
mod edit;
mod element;
mod flat;
mod function;
mod literal;
mod matching;
mod operator;
mod order;
mod quantified;
mod search;
mod shape;
mod subquery;
mod syntax;
mod text;

use datafusion::logical_expr::ScalarUDF;

pub(crate) use flat::with_one_dimension;
pub(crate) use literal::rewrite_literals;
pub(crate) use matching::of_arrays;
pub(crate) use operator::plan_operator;
pub(crate) use order::{order_within, ordered};
pub(crate) use syntax::{rewrite_syntax, sort_distinct};
pub(crate) use text::{TextPairs, input, output, text_lists, text_pairs, write_element};

/// The scalar functions of this family. One with the name of a function of DataFusion takes its place.
pub(crate) fn functions() -> Vec<ScalarUDF> {
    let mut functions = edit::functions();
    functions.extend(element::functions());
    functions.push(flat::function());
    functions.push(matching::matching());
    functions.extend(quantified::functions());
    functions.extend(search::functions());
    functions.extend(shape::functions());
    functions.extend(text::functions());
    functions
}
