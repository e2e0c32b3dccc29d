//! Functions whose value does not change from call to call.

/// Functions of PostgreSQL and SQLite whose value depends only on their arguments and input rows. Any other function
/// may be volatile.
#[rustfmt::skip]
const DETERMINISTIC_FUNCTIONS: &[&str] = &[
    "abs", "array_agg", "array_length", "avg", "btrim", "cardinality", "ceil", "ceiling", "char_length", "coalesce",
    "concat", "concat_ws", "corr", "count", "cume_dist", "date_part", "date_trunc", "dense_rank", "exp", "first_value",
    "floor", "format", "greatest", "group_concat", "ifnull", "iif", "initcap", "instr", "json_agg", "json_array_length",
    "json_extract", "json_extract_path_text", "jsonb_agg", "jsonb_array_length", "lag", "last_value", "lead", "least",
    "left", "length", "ln", "log", "lower", "lpad", "ltrim", "max", "md5", "min", "mod", "mode", "nth_value", "ntile",
    "nullif", "octet_length", "percent_rank", "percentile_cont", "percentile_disc", "position", "power", "printf",
    "rank", "regexp_replace", "repeat", "replace", "reverse", "right", "round", "row_number", "rpad", "rtrim", "sign",
    "split_part", "sqrt", "stddev", "stddev_pop", "stddev_samp", "string_agg", "strpos", "substr", "substring", "sum",
    "total", "translate", "trim", "trunc", "unnest", "upper", "var_pop", "var_samp", "variance",
];

/// Whether the value of the function `name` depends only on its arguments and input rows. Any unlisted function may be
/// volatile.
pub fn is_deterministic_function(name: &str) -> bool {
    DETERMINISTIC_FUNCTIONS.binary_search(&name.to_lowercase().as_str()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_sorted_for_the_search() {
        assert!(DETERMINISTIC_FUNCTIONS.is_sorted());
    }
}
