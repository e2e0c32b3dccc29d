//! JSON: the types `json` and `jsonb` with their functions and operators.

mod build;
mod document;
mod elements;
mod get;
mod input;
mod jsonpath;
mod modify;
mod number;
mod operator;
mod operator_functions;
mod plan;
mod reader;
mod record;
mod render;
mod scalar;
mod sort_key;
mod syntax;
mod text;
mod text_path;
mod value;
mod whole_row;

use datafusion::logical_expr::ScalarUDF;

pub(crate) use get::{elements_at, subscript_types};
pub(crate) use input::{numbers, parse_json_texts};
pub(crate) use operator::{plan_field_access, plan_operator};
pub(crate) use plan::{convert_expression, group_by_document_keys, order_documents, show_json_as_text};
pub(crate) use record::column_value;
pub(crate) use render::key_text;
pub(crate) use syntax::rewrite_syntax;
pub(crate) use whole_row::{ROW_VALUE, WHOLE_ROW, row, whole_row};

/// Returns the scalar functions of this module. A function with the name of a DataFusion function replaces it.
pub(crate) fn functions() -> Vec<ScalarUDF> {
    let mut functions = input::functions();
    functions.extend(get::functions());
    functions.extend(build::functions());
    functions.extend(elements::functions());
    functions.extend(modify::functions());
    functions.extend(operator_functions::functions());
    functions.extend(record::functions());
    functions.extend([whole_row::row_value(), row()]);
    functions.extend(jsonpath::functions());
    functions.extend(build::collect_functions());
    functions
}
