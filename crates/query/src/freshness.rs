//! How long an answer stays right, and which statements answer the same when they are asked again.

use std::time::Duration;

use crate::dialect::SqlDialect;
use crate::statement::Statement;

/// How long an answer stays right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// Not even until the same is asked again, or nobody can tell.
    Never,
    /// As long as the data is the same that this number names.
    UntilChanged(u64),
    /// So long, whatever becomes of the data: somebody said that this is good enough.
    MaxAge(Duration),
}

/// Functions of PostgreSQL and SQLite whose value depends on nothing but their arguments and the rows they are given.
/// Any other may be one that changes from call to call.
const DETERMINISTIC_FUNCTIONS: &[&str] = &[
    "abs",
    "array_agg",
    "array_length",
    "avg",
    "btrim",
    "cardinality",
    "ceil",
    "ceiling",
    "char_length",
    "coalesce",
    "concat",
    "concat_ws",
    "corr",
    "count",
    "cume_dist",
    "date_part",
    "date_trunc",
    "dense_rank",
    "exp",
    "first_value",
    "floor",
    "format",
    "greatest",
    "group_concat",
    "ifnull",
    "iif",
    "initcap",
    "instr",
    "json_agg",
    "json_array_length",
    "json_extract",
    "json_extract_path_text",
    "jsonb_agg",
    "jsonb_array_length",
    "lag",
    "last_value",
    "lead",
    "least",
    "left",
    "length",
    "ln",
    "log",
    "lower",
    "lpad",
    "ltrim",
    "max",
    "md5",
    "min",
    "mod",
    "mode",
    "nth_value",
    "ntile",
    "nullif",
    "octet_length",
    "percent_rank",
    "percentile_cont",
    "percentile_disc",
    "position",
    "power",
    "printf",
    "rank",
    "regexp_replace",
    "repeat",
    "replace",
    "reverse",
    "right",
    "round",
    "row_number",
    "rpad",
    "rtrim",
    "sign",
    "split_part",
    "sqrt",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "string_agg",
    "strpos",
    "substr",
    "substring",
    "sum",
    "total",
    "translate",
    "trim",
    "trunc",
    "unnest",
    "upper",
    "var_pop",
    "var_samp",
    "variance",
];

/// Words that stand for a moment when they are cast to a date or a time.
const CURRENT_TIME_WORDS: &[&str] = &["now", "today", "tomorrow", "yesterday"];

impl Freshness {
    /// That of a database of `dialect` whose owner says that answers may be `age` old: only for statements that answer
    /// the same on the same data.
    pub fn from_max_age(age: Option<Duration>, statement: &Statement) -> Self {
        match age {
            Some(age) if is_deterministic(statement) => Self::MaxAge(age),
            _ => Self::Never,
        }
    }
}

/// Whether `statement` answers the same when it is asked again and the data is the same.
fn is_deterministic(statement: &Statement) -> bool {
    if statement.transaction().writes {
        return false;
    }
    let parsed = match (statement.ast(), statement.dialect()) {
        (Some(_), _) => Some(statement.clone()),
        // What the owner wrote was never looked into.
        (None, dialect @ (SqlDialect::Postgres | SqlDialect::Sqlite | SqlDialect::DataFusion)) => {
            Statement::parse(statement.text(), dialect).ok()
        }
    };
    let Some(parsed) = parsed else { return false };
    let is_known = |name: &String| DETERMINISTIC_FUNCTIONS.binary_search(&name.to_lowercase().as_str()).is_ok();
    parsed.functions().iter().all(is_known) && !mentions_current_time(&parsed)
}

/// Whether `statement` has a word that stands for a moment when it is cast to a date or a time, as in `'today'::date`.
pub fn mentions_current_time(statement: &Statement) -> bool {
    let text = statement.text().to_lowercase();
    let mut words = text.split(|character: char| !character.is_alphanumeric() && character != '_');
    words.any(|word| CURRENT_TIME_WORDS.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn does_not_cache_volatile_functions() {
        assert!(DETERMINISTIC_FUNCTIONS.is_sorted(), "it is searched");
        let freshness = |sql: &str| {
            let statement = Statement::parse(sql, SqlDialect::Postgres).unwrap();
            Freshness::from_max_age(Some(Duration::from_secs(1)), &statement)
        };
        for sql in [
            "SELECT now()",
            "SELECT CURRENT_DATE",
            "SELECT CURRENT_TIMESTAMP",
            "SELECT random()",
            "SELECT * FROM t WHERE at > 'today'::date",
            "SELECT * FROM t WHERE at > DATE ' TODAY'",
            "SELECT mine(a) FROM t",
            "SELECT count(*) FILTER (WHERE a > random()) FROM t",
        ] {
            assert_eq!(freshness(sql), Freshness::Never, "{sql}");
        }
        assert_eq!(freshness("SELECT a, count(*) FROM t GROUP BY a"), Freshness::MaxAge(Duration::from_secs(1)));
        let owners = Statement::from_owner("SELECT now()", Vec::new(), SqlDialect::Postgres);
        assert_eq!(Freshness::from_max_age(Some(Duration::from_secs(1)), &owners), Freshness::Never);
    }
}
