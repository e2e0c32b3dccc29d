//! What a dialect has in place of well-known functions of other databases.

use crate::dialect::SqlDialect;

/// Names of functions that a dialect lacks, with the equivalent.
type Equivalents = &'static [(&'static [&'static str], &'static str)];

/// PostgreSQL's SQL; the embedded engine has some of these functions itself.
#[rustfmt::skip]
const POSTGRES: Equivalents = &[
    (&["year"], "extract(year FROM x) or date_part('year', x)"),
    (&["quarter"], "extract(quarter FROM x) or date_part('quarter', x)"),
    (&["month"], "extract(month FROM x) or date_part('month', x)"),
    (&["week", "weekofyear"], "extract(week FROM x) or date_part('week', x)"),
    (&["day", "dayofmonth"], "extract(day FROM x) or date_part('day', x)"),
    (&["dayofweek", "day_of_week"], "extract(dow FROM x), in which 0 is Sunday"),
    (&["weekday"], "extract(isodow FROM x), in which 1 is Monday"),
    (&["dayofyear", "day_of_year"], "extract(doy FROM x)"),
    (&["hour"], "extract(hour FROM x) or date_part('hour', x)"),
    (&["minute"], "extract(minute FROM x) or date_part('minute', x)"),
    (&["second"], "extract(second FROM x) or date_part('second', x)"),
    (&["monthname"], "to_char(x, 'Month')"),
    (&["dayname"], "to_char(x, 'Day')"),
    (&["unix_timestamp", "unixepoch", "to_unix_timestamp"], "extract(epoch FROM x)"),
    (&["from_unixtime"], "to_timestamp(x)"),
    (&["julianday"], "extract(julian FROM x)"),
    (&["strftime", "date_format", "format_date", "format_datetime", "formatdatetime"], "to_char(x, 'YYYY-MM-DD')"),
    (&["str_to_date", "parse_date", "strptime"], "to_date(x, 'YYYY-MM-DD') or to_timestamp(x, 'YYYY-MM-DD HH24:MI:SS')"),
    (&["datediff", "date_diff"], "x::date - y::date, the number of days"),
    (&["dateadd", "date_add", "adddate"], "x + interval '1 day'"),
    (&["date_sub", "subdate"], "x - interval '1 day'"),
    (&["curdate", "today"], "current_date"),
    (&["getdate", "sysdate", "sysdatetime", "utc_timestamp"], "now()"),
    (&["ifnull", "nvl", "isnull"], "coalesce(x, y)"),
    (&["if", "iif", "iff"], "CASE WHEN condition THEN x ELSE y END"),
    (&["len", "strlen"], "length(x)"),
    (&["ucase", "toupper"], "upper(x)"),
    (&["lcase", "tolower"], "lower(x)"),
    (&["instr", "charindex", "locate"], "strpos(text, part)"),
    (&["group_concat", "listagg"], "string_agg(x, ',')"),
    (&["collect_list", "json_group_array"], "array_agg(x)"),
    (&["substring_index"], "split_part(x, ',', 1)"),
    (&["regexp_extract"], "substring(x FROM 'pattern')"),
    (&["regexp_contains", "rlike"], "x ~ 'pattern'"),
    (&["json_extract"], "x -> 'key', or x ->> 'key' for text"),
    (&["json_value", "json_extract_scalar", "json_unquote"], "x ->> 'key'"),
    (&["rand"], "random()"),
    (&["truncate"], "trunc(x, n)"),
    (&["log2"], "log(2, x)"),
    (&["mean"], "avg(x)"),
    (&["median"], "percentile_cont(0.5) WITHIN GROUP (ORDER BY x)"),
    (&["stdev", "std"], "stddev(x)"),
    (&["approx_count_distinct", "uniq", "countdistinct"], "count(DISTINCT x)"),
    (&["countif", "count_if"], "count(*) FILTER (WHERE condition)"),
    (&["sumif", "sum_if"], "sum(x) FILTER (WHERE condition)"),
    (&["safe_divide"], "x / NULLIF(y, 0)"),
    (&["typeof"], "pg_typeof(x)"),
];

#[rustfmt::skip]
const SQLITE: Equivalents = &[
    (&["year"], "CAST(strftime('%Y', x) AS INTEGER)"),
    (&["month"], "CAST(strftime('%m', x) AS INTEGER)"),
    (&["day", "dayofmonth"], "CAST(strftime('%d', x) AS INTEGER)"),
    (&["dayofweek", "day_of_week"], "CAST(strftime('%w', x) AS INTEGER), in which 0 is Sunday"),
    (&["dayofyear", "day_of_year"], "CAST(strftime('%j', x) AS INTEGER)"),
    (&["hour"], "CAST(strftime('%H', x) AS INTEGER)"),
    (&["minute"], "CAST(strftime('%M', x) AS INTEGER)"),
    (&["second"], "CAST(strftime('%S', x) AS INTEGER)"),
    (&["extract", "date_part"], "CAST(strftime('%Y', x) AS INTEGER)"),
    (&["date_trunc"], "date(x, 'start of month')"),
    (&["to_char", "date_format", "format_date"], "strftime('%Y-%m-%d', x)"),
    (&["to_date"], "date(x)"),
    (&["to_timestamp", "from_unixtime"], "datetime(x, 'unixepoch')"),
    (&["unix_timestamp"], "unixepoch(x)"),
    (&["datediff", "date_diff"], "julianday(x) - julianday(y), the number of days"),
    (&["dateadd", "date_add", "adddate"], "date(x, '+1 day')"),
    (&["date_sub", "subdate"], "date(x, '-1 day')"),
    (&["now", "getdate", "sysdate", "utc_timestamp"], "datetime('now')"),
    (&["curdate", "today"], "date('now')"),
    (&["nvl", "isnull"], "ifnull(x, y)"),
    (&["iff"], "iif(condition, x, y)"),
    (&["len", "strlen", "char_length", "character_length"], "length(x)"),
    (&["ucase", "toupper"], "upper(x)"),
    (&["lcase", "tolower"], "lower(x)"),
    (&["left"], "substr(x, 1, n)"),
    (&["right"], "substr(x, -n)"),
    (&["strpos", "position", "charindex", "locate"], "instr(text, part)"),
    (&["listagg"], "group_concat(x, ',')"),
    (&["array_agg", "json_agg", "collect_list"], "json_group_array(x)"),
    (&["json_object_agg"], "json_group_object(key, x)"),
    (&["unnest"], "json_each(x), in FROM"),
    (&["json_value", "json_extract_scalar", "json_extract_path_text"], "x ->> '$.key'"),
    (&["greatest"], "max(x, y)"),
    (&["least"], "min(x, y)"),
    (&["rand"], "random()"),
    (&["truncate"], "trunc(x)"),
    (&["mean"], "avg(x)"),
    (&["approx_count_distinct", "uniq", "countdistinct"], "count(DISTINCT x)"),
    (&["countif", "count_if"], "count(*) FILTER (WHERE condition)"),
    (&["sumif", "sum_if"], "sum(x) FILTER (WHERE condition)"),
    (&["safe_divide"], "x / NULLIF(y, 0)"),
    (&["pg_typeof"], "typeof(x)"),
];

/// What `dialect` has in place of the function `name`, which it lacks. `None` if nothing does the same.
pub fn equivalent_function(name: &str, dialect: SqlDialect) -> Option<&'static str> {
    let equivalents = dialect.choose(POSTGRES, POSTGRES, SQLITE);
    let has_name = |names: &[&str]| names.iter().any(|other| other.eq_ignore_ascii_case(name));
    equivalents.iter().find(|(names, _)| has_name(names)).map(|(_, equivalent)| *equivalent)
}
