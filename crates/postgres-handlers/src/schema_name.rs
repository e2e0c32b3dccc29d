//! The name of the schema of handlers. It becomes part of SQL unquoted, so only few characters are allowed.

use std::fmt;

/// The maximum length of a name, in bytes: the channel `<name>_mcp_handlers` must be a valid identifier.
const BYTES_MAX: usize = 41;

/// The name of a schema of handlers: lower-case letters, digits and `_`, and not an SQL keyword.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SchemaName(String);

/// Why a text is not a [`SchemaName`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} cannot be the schema of handlers; {right}")]
pub struct SchemaNameError {
    name: String,
    right: &'static str,
}

impl SchemaName {
    /// Parses a name.
    ///
    /// # Errors
    /// Fails if the name needs quotes in SQL, or if it is one of the server's own schemas.
    pub fn parse(name: &str) -> Result<Self, SchemaNameError> {
        let refused = |right| Err(SchemaNameError { name: name.chars().take(60).collect(), right });
        let begins_well = name.starts_with(|first: char| first.is_ascii_lowercase() || first == '_');
        let is_word = name.chars().all(|one| one.is_ascii_lowercase() || one.is_ascii_digit() || one == '_');
        if !begins_well || !is_word || name.len() > BYTES_MAX {
            return refused("it must be 1 to 41 lower-case letters, digits and _, and must not begin with a digit");
        }
        if name.starts_with("pg_") || name == "information_schema" {
            return refused("it is reserved by the server");
        }
        if KEY_WORDS.contains(&name) {
            return refused("it is an SQL keyword");
        }
        Ok(Self(name.to_owned()))
    }

    /// The name as a string slice.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The SQL that lets each of `roles`, which are SQL identifiers, call the handlers of the schema.
    pub fn grants_sql(&self, roles: &[String]) -> String {
        let mut sql = format!("\n-- Calling the handlers of the schema {self}.\n");
        for role in roles {
            // The literal of a role's name contains an identifier.
            sql.push_str(&format!("SELECT {self}.grant_mcp_access('{}');\n", role.replace('\'', "''")));
        }
        sql.push_str(&format!(
            "-- A handler that writes runs in a READ WRITE transaction, whatever the default is. It has the rights of its caller:\n\
             -- grant what it writes, as in GRANT INSERT, UPDATE ON some_table TO {};\n",
            roles.first().map_or("", String::as_str)
        ));
        sql
    }

    /// The channel of notifications about changed handlers.
    pub(crate) fn channel(&self) -> String {
        format!("{}_mcp_handlers", self.0)
    }
}

impl fmt::Display for SchemaName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Words that PostgreSQL does not accept as an unquoted name, in any version since 15.
///
/// [PostgreSQL, SQL Key Words](https://www.postgresql.org/docs/current/sql-keywords-appendix.html)
const KEY_WORDS: &[&str] = &[
    "all",
    "analyse",
    "analyze",
    "and",
    "any",
    "array",
    "as",
    "asc",
    "asymmetric",
    "authorization",
    "between",
    "bigint",
    "binary",
    "bit",
    "boolean",
    "both",
    "case",
    "cast",
    "char",
    "character",
    "check",
    "coalesce",
    "collate",
    "collation",
    "column",
    "concurrently",
    "constraint",
    "create",
    "cross",
    "current_catalog",
    "current_date",
    "current_role",
    "current_schema",
    "current_time",
    "current_timestamp",
    "current_user",
    "dec",
    "decimal",
    "default",
    "deferrable",
    "desc",
    "distinct",
    "do",
    "else",
    "end",
    "except",
    "exists",
    "extract",
    "false",
    "fetch",
    "float",
    "for",
    "foreign",
    "freeze",
    "from",
    "full",
    "grant",
    "greatest",
    "group",
    "grouping",
    "having",
    "ilike",
    "in",
    "initially",
    "inner",
    "inout",
    "int",
    "integer",
    "intersect",
    "interval",
    "into",
    "is",
    "isnull",
    "join",
    "json",
    "json_array",
    "json_arrayagg",
    "json_exists",
    "json_object",
    "json_objectagg",
    "json_query",
    "json_scalar",
    "json_serialize",
    "json_table",
    "json_value",
    "lateral",
    "leading",
    "least",
    "left",
    "like",
    "limit",
    "localtime",
    "localtimestamp",
    "merge_action",
    "national",
    "natural",
    "nchar",
    "none",
    "normalize",
    "not",
    "notnull",
    "null",
    "nullif",
    "numeric",
    "offset",
    "on",
    "only",
    "or",
    "order",
    "out",
    "outer",
    "overlaps",
    "overlay",
    "placing",
    "position",
    "precision",
    "primary",
    "real",
    "references",
    "returning",
    "right",
    "row",
    "select",
    "session_user",
    "setof",
    "similar",
    "smallint",
    "some",
    "substring",
    "symmetric",
    "system_user",
    "table",
    "tablesample",
    "then",
    "time",
    "timestamp",
    "to",
    "trailing",
    "treat",
    "trim",
    "true",
    "union",
    "unique",
    "user",
    "using",
    "values",
    "varchar",
    "variadic",
    "verbose",
    "when",
    "where",
    "window",
    "with",
    "xmlattributes",
    "xmlconcat",
    "xmlelement",
    "xmlexists",
    "xmlforest",
    "xmlnamespaces",
    "xmlparse",
    "xmlpi",
    "xmlroot",
    "xmlserialize",
    "xmltable",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_only_unquoted_identifiers() {
        for name in ["api", "_", "handlers_2", &"a".repeat(41)] {
            assert_eq!(SchemaName::parse(name).unwrap().as_str(), name);
        }
        let long = "a".repeat(42);
        for name in
            ["", "Api", "2api", "a b", "a\"b", "a;drop", "pg_api", "user", "information_schema", "\u{fc}", &long]
        {
            assert!(SchemaName::parse(name).is_err(), "{name}");
        }
    }

    #[test]
    fn error_states_the_valid_form() {
        insta::assert_snapshot!(SchemaName::parse("Api").unwrap_err(), @r#""Api" cannot be the schema of handlers; it must be 1 to 41 lower-case letters, digits and _, and must not begin with a digit"#);
    }
}
