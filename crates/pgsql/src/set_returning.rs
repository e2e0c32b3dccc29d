//! Set-returning functions in FROM and in SELECT.
//!
//! Each has a **list function**: a scalar function that takes the same arguments and returns all rows of one call as a
//! list. Its name is the function's name with the suffix `*` ([`list_function`]), which callers cannot write. For
//! example, `regexp_split_to_table*` returns `List(Utf8)`, and `jsonb_each*`, which has several columns, returns
//! `List(Struct(key, value))`. A list that is NULL or empty has no rows. The statement expands the list into rows:
//! `unnest(f*(…))`.
//!
//! To add a function, extend [`SET_RETURNING`] and register the list function with the scalar functions of its module.

/// A set-returning function.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SetReturningFunction {
    pub(crate) name: &'static str,
    /// The names of its columns; empty if its only column has the name of the function or of its alias.
    pub(crate) columns: &'static [&'static str],
}

const fn single_column_function(name: &'static str) -> SetReturningFunction {
    SetReturningFunction { name, columns: &[] }
}

/// All set-returning functions.
pub(crate) const SET_RETURNING: &[SetReturningFunction] = &[
    single_column_function("generate_series"),
    single_column_function("generate_subscripts"),
    single_column_function("json_object_keys"),
    single_column_function("jsonb_object_keys"),
    single_column_function("jsonb_path_query"),
    single_column_function("jsonb_path_query_tz"),
    single_column_function("regexp_matches"),
    single_column_function("regexp_split_to_table"),
    single_column_function("string_to_table"),
    single_column_function("json_to_record"),
    single_column_function("json_to_recordset"),
    single_column_function("jsonb_to_record"),
    single_column_function("jsonb_to_recordset"),
    SetReturningFunction { name: "json_array_elements", columns: &["value"] },
    SetReturningFunction { name: "json_array_elements_text", columns: &["value"] },
    SetReturningFunction { name: "json_each", columns: &["key", "value"] },
    SetReturningFunction { name: "json_each_text", columns: &["key", "value"] },
    SetReturningFunction { name: "jsonb_array_elements", columns: &["value"] },
    SetReturningFunction { name: "jsonb_array_elements_text", columns: &["value"] },
    SetReturningFunction { name: "jsonb_each", columns: &["key", "value"] },
    SetReturningFunction { name: "jsonb_each_text", columns: &["key", "value"] },
];

/// Finds a set-returning function by its name in lower case.
pub(crate) fn find_set_returning(name: &str) -> Option<&'static SetReturningFunction> {
    SET_RETURNING.iter().find(|function| function.name == name)
}

/// Returns the name of the list function of `name`.
pub(crate) fn list_function(name: &str) -> String {
    format!("{name}*")
}

/// Whether the function, whose name is in lower case, returns rows of which the alias defines the columns.
pub(crate) fn is_record_function(name: &str) -> bool {
    matches!(name, "json_to_record" | "jsonb_to_record" | "json_to_recordset" | "jsonb_to_recordset")
}
