//! Functions of PostgreSQL that are refused, with what to write instead.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, not_impl_err};
use datafusion::logical_expr::ScalarUDF;

use super::function::Function;

pub(super) fn functions() -> Vec<ScalarUDF> {
    let path = |name| {
        Function::new(
            name,
            refuse_path,
            |_| Ok(DataType::Utf8),
            |_| not_impl_err!("SQL/JSON path expressions are not supported"),
        )
    };
    [
        "jsonb_path_query*",
        "jsonb_path_query",
        "jsonb_path_query_first",
        "jsonb_path_query_array",
        "jsonb_path_exists",
        "jsonb_path_match",
    ]
    .map(path)
    .into()
}

fn refuse_path(_: &[DataType]) -> Result<Vec<DataType>> {
    not_impl_err!(
        "SQL/JSON path expressions are not supported; \
         write value #> '{{a,b}}' for a path, @> for a condition, and jsonb_array_elements(value) for each element"
    )
}
