//! How long an answer stays valid, and which statements are deterministic.

use std::time::Duration;

use tidegate_sql::{Statement, is_deterministic_function};

/// How long an answer stays valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// The answer is never valid for a second call, or this is unknown.
    Never,
    /// Valid as long as the data has the version that this number identifies.
    UntilChanged(u64),
    /// Valid for this duration, even if the data changes, as configured.
    MaxAge(Duration),
}

/// Words that mean the current time when they are cast to a date or a time.
const CURRENT_TIME_WORDS: &[&str] = &["now", "today", "tomorrow", "yesterday"];

impl Freshness {
    /// The freshness in a database of which answers may be `age` old: only for deterministic statements.
    pub fn from_max_age(age: Option<Duration>, statement: &Statement) -> Self {
        match age {
            Some(age) if is_deterministic(statement) => Self::MaxAge(age),
            _ => Self::Never,
        }
    }
}

fn is_deterministic(statement: &Statement) -> bool {
    if statement.transaction().writes {
        return false;
    }
    let parsed = match statement.ast() {
        Some(_) => Some(statement.clone()),
        // Statements of the configuration were not parsed yet.
        None => Statement::parse(statement.text(), statement.dialect()).ok(),
    };
    let Some(parsed) = parsed else { return false };
    parsed.functions().iter().all(|name| is_deterministic_function(name)) && !mentions_current_time(&parsed)
}

/// Whether `statement` contains a word that means the current time when it is cast, as in `'today'::date`.
pub fn mentions_current_time(statement: &Statement) -> bool {
    let text = statement.text().to_lowercase();
    let mut words = text.split(|character: char| !character.is_alphanumeric() && character != '_');
    words.any(|word| CURRENT_TIME_WORDS.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_sql::SqlDialect;

    #[test]
    fn does_not_cache_volatile_functions() {
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
