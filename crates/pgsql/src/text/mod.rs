//! Text, bytes and patterns.

mod arrays;
mod bytea;
mod case;
mod change;
mod encode;
mod format;
mod function;
mod ident;
mod like;
mod listed;
mod normalize;
mod operators;
mod pieces;
mod quote;
mod regex;
mod regexp;
mod syntax;
mod value;

use datafusion::logical_expr::ScalarUDF;

pub(crate) use operators::plan_operator;
pub(crate) use regex::{Options as RegexOptions, Regex};
pub(crate) use syntax::rewrite_syntax;

/// The scalar functions of this family. One with the name of a function of DataFusion takes its place.
pub(crate) fn functions() -> Vec<ScalarUDF> {
    let families = [
        arrays::functions(),
        bytea::functions(),
        case::functions(),
        change::functions(),
        encode::functions(),
        format::functions(),
        ident::functions(),
        like::functions(),
        listed::functions(),
        normalize::functions(),
        pieces::functions(),
        quote::functions(),
        regexp::functions(),
    ];
    families.into_iter().flatten().map(ScalarUDF::new_from_impl).collect()
}
