//! SQL dialects: how SQL is parsed, how identifiers are quoted and folded, and what a dialect has in place of well-known
//! functions of other databases.

use sqlparser::ast::Ident;
use sqlparser::dialect::{Dialect, PostgreSqlDialect, SQLiteDialect};

use crate::mysql_grammar::MySqlGrammar;

/// The SQL dialect of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SqlDialect {
    /// The embedded engine's: PostgreSQL's, with `QUALIFY`, `* EXCLUDE`, array and struct literals of DataFusion's.
    DataFusion,
    /// PostgreSQL's.
    Postgres,
    /// SQLite's.
    Sqlite,
    /// MySQL's and MariaDB's.
    MySql,
}

impl SqlDialect {
    pub(crate) const ALL: [Self; 4] = [Self::DataFusion, Self::Postgres, Self::Sqlite, Self::MySql];

    /// The value of this dialect. A new dialect is a parameter, so that the compiler reports each question that it has to
    /// answer.
    pub(crate) fn choose<T>(self, data_fusion: T, postgres: T, sqlite: T, mysql: T) -> T {
        match self {
            Self::DataFusion => data_fusion,
            Self::Postgres => postgres,
            Self::Sqlite => sqlite,
            Self::MySql => mysql,
        }
    }

    /// The dialect of the parser.
    pub fn parser_dialect(self) -> &'static dyn Dialect {
        let postgres = &PostgreSqlDialect {};
        self.choose::<&'static dyn Dialect>(postgres, postgres, &SQLiteDialect {}, &MySqlGrammar)
    }

    /// The name in texts for callers.
    pub fn name(self) -> &'static str {
        self.choose("PostgreSQL (embedded engine)", "PostgreSQL", "SQLite", "MySQL")
    }

    /// The name for programs: in the configuration and between nodes.
    pub fn key(self) -> &'static str {
        self.choose("datafusion", "postgres", "sqlite", "mysql")
    }

    /// The dialect with this [key](Self::key).
    pub fn from_key(key: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dialect| dialect.key() == key)
    }

    /// Whether the embedded engine runs the statement by its AST, and no server reads its text.
    pub fn is_embedded(self) -> bool {
        self.choose(true, false, false, false)
    }

    /// Whether a server of PostgreSQL reads the text, with all of its syntax.
    pub fn is_postgres(self) -> bool {
        self.choose(false, true, false, false)
    }

    /// Whether a server of MySQL or MariaDB reads the text.
    pub fn is_mysql(self) -> bool {
        self.choose(false, false, false, true)
    }

    /// Whether the grammar of the parser is PostgreSQL's.
    pub fn has_postgres_grammar(self) -> bool {
        self.choose(true, true, false, false)
    }

    /// Whether the AST has all clauses of the text. Of PostgreSQL's SQL, the parser drops some.
    pub fn has_complete_ast(self) -> bool {
        self.choose(true, false, true, true)
    }

    /// Whether values have the type of their column. In SQLite, each value has its own.
    pub fn has_typed_columns(self) -> bool {
        self.choose(true, true, false, true)
    }

    /// Whether GLOB distinguishes upper and lower case, and LIKE does not.
    pub fn has_glob(self) -> bool {
        self.choose(false, false, true, false)
    }

    /// Whether OFFSET stands behind LIMIT only.
    pub fn offset_needs_limit(self) -> bool {
        self.choose(false, false, true, true)
    }

    /// Whether a column that is not grouped may stand beside aggregates; its value is that of any row.
    pub fn has_bare_columns(self) -> bool {
        self.choose(false, false, true, true)
    }

    /// Whether ORDER BY has NULLS FIRST and NULLS LAST. Otherwise, NULL is the smallest value.
    pub fn has_nulls_order(self) -> bool {
        self.choose(true, true, true, false)
    }

    /// Whether `min` and `max` with several arguments are scalar functions.
    pub fn has_scalar_min_max(self) -> bool {
        self.choose(false, false, true, false)
    }

    /// Whether names that differ in the case of ASCII letters only are the same.
    pub fn ignores_case(self) -> bool {
        self.choose(false, false, true, true)
    }

    /// Whether the statement of a declared tool may write.
    pub fn can_write(self) -> bool {
        self.choose(false, true, false, false)
    }

    /// What stands before the number of a placeholder.
    pub fn placeholder_mark(self) -> char {
        self.choose('$', '$', '?', '?')
    }

    /// The quotation mark of identifiers.
    ///
    /// SQLite reads an unknown name between double quotes as a string, so that a misspelled or dropped name would
    /// return its own letters. Backquotes have no such fallback. In MySQL, double quotes are for text.
    pub fn identifier_quote(self) -> char {
        self.choose('"', '"', '`', '`')
    }

    /// Whether `quote` is a quotation mark of identifiers. SQLite reads both.
    pub fn reads_quote(self, quote: char) -> bool {
        quote == self.identifier_quote() || self.choose(false, false, true, false)
    }

    /// Quotes `identifier`, whatever it contains.
    pub fn quote_identifier(self, identifier: &str) -> String {
        // Not by printing an `Ident`: sqlparser leaves a quote after a backslash as it is.
        match self.identifier_quote() {
            '`' => format!("`{}`", identifier.replace('`', "``")),
            _ => format!("\"{}\"", identifier.replace('"', "\"\"")),
        }
    }

    /// `name` as a quoted node of the AST.
    pub fn identifier(self, name: &str) -> Ident {
        Ident::with_quote(self.identifier_quote(), name)
    }

    /// Splits the name of a table as a catalog lists it: in PostgreSQL a schema may come first, in SQLite a database
    /// file, in MySQL another database of the server.
    ///
    /// `archive.orders` is a table of the schema `archive`. A part with a dot or a quotation mark is in double quotes:
    /// `"2013.csv"`, `archive."the.dot"`. In other dialects each name is one part.
    pub fn table_parts(self, name: &str) -> Vec<String> {
        if self.is_embedded() {
            return vec![name.to_owned()];
        }
        let mut parts = Vec::new();
        let mut part = String::new();
        let mut characters = name.chars().peekable();
        let mut is_quoted = false;
        let mut is_at_start = true;
        while let Some(character) = characters.next() {
            let starts = std::mem::replace(&mut is_at_start, false);
            match character {
                '"' if starts => is_quoted = true,
                '"' if is_quoted && characters.next_if_eq(&'"').is_none() => is_quoted = false,
                '.' if !is_quoted => {
                    parts.push(std::mem::take(&mut part));
                    is_at_start = true;
                }
                other => part.push(other),
            }
        }
        parts.push(part);
        parts
    }

    /// Joins the parts of a table name: the inverse of [`SqlDialect::table_parts`].
    pub fn table_name(self, parts: &[&str]) -> String {
        let listed = |part: &&str| {
            let is_plain = self.is_embedded() || !(part.is_empty() || part.contains(['.', '"']));
            if is_plain { (*part).to_owned() } else { format!("\"{}\"", part.replace('"', "\"\"")) }
        };
        parts.iter().map(listed).collect::<Vec<_>>().join(".")
    }

    /// Quotes a table name of a catalog for a statement.
    pub fn quote_table(self, name: &str) -> String {
        self.table_parts(name).iter().map(|part| self.quote_identifier(part)).collect::<Vec<_>>().join(".")
    }

    /// The name that `identifier` refers to. Unquoted identifiers fold to lower case; in PostgreSQL only ASCII letters
    /// fold, and in SQLite quoted ones fold too. In MySQL none do: whether the case of a table's name matters depends on
    /// the server.
    pub fn fold_identifier(self, identifier: &Ident) -> String {
        match (self, identifier.quote_style) {
            (Self::Sqlite, _) | (Self::Postgres, None) => identifier.value.to_ascii_lowercase(),
            (Self::MySql, _) | (Self::DataFusion | Self::Postgres, Some(_)) => identifier.value.clone(),
            (Self::DataFusion, None) => identifier.value.to_lowercase(),
        }
    }
}

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

#[rustfmt::skip]
const MYSQL: Equivalents = &[
    (&["date_part"], "EXTRACT(YEAR FROM x)"),
    (&["date_trunc"], "DATE_FORMAT(x, '%Y-%m-01')"),
    (&["to_char", "strftime", "format_date", "format_datetime"], "DATE_FORMAT(x, '%Y-%m-%d')"),
    (&["to_date", "to_timestamp", "parse_date", "strptime"], "STR_TO_DATE(x, '%Y-%m-%d')"),
    (&["date_diff"], "DATEDIFF(x, y), the number of days"),
    (&["dateadd"], "x + INTERVAL 1 DAY"),
    (&["unixepoch", "to_unix_timestamp"], "UNIX_TIMESTAMP(x)"),
    (&["today"], "CURDATE()"),
    (&["getdate", "sysdatetime"], "NOW()"),
    (&["nvl", "isnull"], "IFNULL(x, y)"),
    (&["iif", "iff"], "IF(condition, x, y)"),
    (&["len", "strlen"], "CHAR_LENGTH(x)"),
    (&["strpos", "charindex"], "LOCATE(part, text)"),
    (&["split_part"], "SUBSTRING_INDEX(x, ',', 1)"),
    (&["string_agg", "listagg", "array_agg"], "GROUP_CONCAT(x SEPARATOR ',')"),
    (&["json_agg", "json_group_array", "collect_list"], "JSON_ARRAYAGG(x)"),
    (&["json_object_agg", "json_group_object"], "JSON_OBJECTAGG(key, x)"),
    (&["json_extract_path_text", "json_extract_scalar"], "JSON_UNQUOTE(JSON_EXTRACT(x, '$.key'))"),
    (&["regexp_match", "regexp_matches", "regexp_contains"], "x REGEXP 'pattern'"),
    (&["regexp_extract"], "REGEXP_SUBSTR(x, 'pattern')"),
    (&["random"], "RAND()"),
    (&["trunc"], "TRUNCATE(x, n)"),
    (&["mean"], "AVG(x)"),
    (&["approx_count_distinct", "uniq", "countdistinct"], "COUNT(DISTINCT x)"),
    (&["countif", "count_if"], "SUM(condition)"),
    (&["sumif", "sum_if"], "SUM(IF(condition, x, 0))"),
    (&["safe_divide"], "x / NULLIF(y, 0)"),
];

/// What `dialect` has in place of the function `name`, which it lacks. `None` if nothing does the same.
pub fn equivalent_function(name: &str, dialect: SqlDialect) -> Option<&'static str> {
    let equivalents = dialect.choose(POSTGRES, POSTGRES, SQLITE, MYSQL);
    let has_name = |names: &[&str]| names.iter().any(|other| other.eq_ignore_ascii_case(name));
    equivalents.iter().find(|(names, _)| has_name(names)).map(|(_, equivalent)| *equivalent)
}
