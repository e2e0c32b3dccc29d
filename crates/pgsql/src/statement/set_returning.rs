//! Set-returning functions in FROM and in SELECT.
//!
//! Each has a **list function**: a scalar function of its family that takes the same arguments and returns all rows of
//! one call as a list. Its name is the function's name with `*` at the end ([`list_function`]), which no caller can
//! write. `regexp_split_to_table(text, text)` thus has the list function `regexp_split_to_table*`, which returns
//! `List(Utf8)`; `jsonb_each*` returns `List(Struct(key, value))`, as a function of several columns does. A list that
//! is NULL or empty has no rows. Here the list becomes rows: `unnest(f*(…))`.
//!
//! A family adds its functions to [`SET_RETURNING`] and registers the list functions with its scalar functions.

/// What is known of a set-returning function.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SetReturningFunction {
    pub(crate) name: &'static str,
    /// The names of its columns; none where the one column is named like the function or its alias.
    pub(crate) columns: &'static [&'static str],
}

const fn single_column_function(name: &'static str) -> SetReturningFunction {
    SetReturningFunction { name, columns: &[] }
}

/// The functions that return rows.
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

/// The function of that name, in lower case, if it returns rows.
pub(crate) fn find_set_returning(name: &str) -> Option<&'static SetReturningFunction> {
    SET_RETURNING.iter().find(|function| function.name == name)
}

/// The name of the scalar function that returns the rows of `name` as one list.
pub(crate) fn list_function(name: &str) -> String {
    format!("{name}*")
}
