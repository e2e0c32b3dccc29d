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
pub(crate) struct SetReturning {
    pub(crate) name: &'static str,
    /// The names of its columns; none where the one column is named like the function or its alias.
    pub(crate) columns: &'static [&'static str],
}

const fn one(name: &'static str) -> SetReturning {
    SetReturning { name, columns: &[] }
}

/// The functions that return rows.
pub(crate) const SET_RETURNING: &[SetReturning] = &[
    one("generate_series"),
    one("generate_subscripts"),
    one("json_object_keys"),
    one("jsonb_object_keys"),
    one("jsonb_path_query"),
    one("jsonb_path_query_tz"),
    one("regexp_matches"),
    one("regexp_split_to_table"),
    one("string_to_table"),
    one("json_to_record"),
    one("json_to_recordset"),
    one("jsonb_to_record"),
    one("jsonb_to_recordset"),
    SetReturning { name: "json_array_elements", columns: &["value"] },
    SetReturning { name: "json_array_elements_text", columns: &["value"] },
    SetReturning { name: "json_each", columns: &["key", "value"] },
    SetReturning { name: "json_each_text", columns: &["key", "value"] },
    SetReturning { name: "jsonb_array_elements", columns: &["value"] },
    SetReturning { name: "jsonb_array_elements_text", columns: &["value"] },
    SetReturning { name: "jsonb_each", columns: &["key", "value"] },
    SetReturning { name: "jsonb_each_text", columns: &["key", "value"] },
];

/// The function of that name, in lower case, if it returns rows.
pub(crate) fn set_returning(name: &str) -> Option<&'static SetReturning> {
    SET_RETURNING.iter().find(|function| function.name == name)
}

/// The name of the scalar function that returns the rows of `name` as one list.
pub(crate) fn list_function(name: &str) -> String {
    format!("{name}*")
}
