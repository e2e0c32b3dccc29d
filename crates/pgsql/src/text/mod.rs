//! Text, bytes and patterns.

pub(crate) mod byte_format;
mod bytea;
mod case;
mod encode;
mod format;
mod function;
mod like;
mod operators;
mod quantified_patterns;
mod quote;
mod regex;
mod regexp_functions;
mod row_values;
mod substrings;
mod syntax;
mod text_type;
mod transform;

use datafusion::logical_expr::ScalarUDF;

pub(crate) use operators::plan_operator;
pub(crate) use regex::{PgRegex, RegexOptions};
pub(crate) use syntax::rewrite_syntax;

/// Returns the scalar functions of this module. A function with the name of a DataFusion function replaces it.
pub(crate) fn functions() -> Vec<ScalarUDF> {
    let families = [
        bytea::functions(),
        transform::case_functions(),
        transform::functions(),
        encode::functions(),
        format::functions(),
        like::functions(),
        quantified_patterns::functions(),
        substrings::functions(),
        quote::functions(),
        regexp_functions::functions(),
    ];
    families.into_iter().flatten().map(ScalarUDF::new_from_impl).collect()
}
