//! The SQL that makes a suitable login role: one that owns nothing, inherits nothing and reads.

use crate::handlers::SchemaName;

/// What a role is to be made for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleRequest {
    /// The role that the node logs in as.
    pub login: String,
    /// Schemas whose tables may be read, at least one.
    pub schemas: Vec<String>,
    /// Roles that calls run as. Without any the login itself reads.
    pub run_as: Vec<String>,
    /// The schema whose handlers it is to call, if it is to call any.
    pub handlers: Option<SchemaName>,
}

impl RoleRequest {
    /// The SQL, for somebody who may make roles. It holds no password: `\password` of psql sets one that no log sees.
    pub fn sql(&self) -> String {
        let login = quote_identifier(&self.login);
        let mut sql = format!(
            "-- The role that Tidegate logs in as. It owns nothing, inherits nothing and reads.\n\
             CREATE ROLE {login} LOGIN NOINHERIT NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS;\n\
             ALTER ROLE {login} SET default_transaction_read_only = on;\n\
             ALTER ROLE {login} SET idle_in_transaction_session_timeout = '60s';\n"
        );
        let readers = if self.run_as.is_empty() {
            vec![login.clone()]
        } else {
            sql.push_str("\n-- The roles that calls run as.\n");
            let roles: Vec<String> = self.run_as.iter().map(|role| quote_identifier(role)).collect();
            for role in &roles {
                sql.push_str(&format!("CREATE ROLE {role} NOLOGIN NOINHERIT NOBYPASSRLS;\nGRANT {role} TO {login};\n"));
            }
            roles
        };
        sql.push_str("\n-- What may be read; grant less where less will do.\n");
        for schema in self.schemas.iter().map(|schema| quote_identifier(schema)) {
            for reader in &readers {
                sql.push_str(&format!(
                    "GRANT USAGE ON SCHEMA {schema} TO {reader};\n\
                     GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {reader};\n\
                     ALTER DEFAULT PRIVILEGES IN SCHEMA {schema} GRANT SELECT ON TABLES TO {reader};\n"
                ));
            }
        }
        if let Some(schema) = &self.handlers {
            sql.push_str(&handler_grants_sql(schema, &readers));
        }
        sql.push_str(&format!("\n-- Now set its password, in psql: \\password {login}\n"));
        sql
    }
}

/// What calling the handlers of `schema` takes, for each of `readers`, which are identifiers.
fn handler_grants_sql(schema: &SchemaName, readers: &[String]) -> String {
    let mut sql = format!("\n-- Calling the handlers of the schema {schema}.\n");
    for reader in readers {
        // The literal of a role's name holds an identifier.
        sql.push_str(&format!("SELECT {schema}.grant_mcp_access('{}');\n", reader.replace('\'', "''")));
    }
    sql.push_str(
        "-- A handler that writes runs in a transaction that says so, whatever the default is. It has the rights of its caller:\n\
         -- grant what it writes, as in GRANT INSERT, UPDATE ON some_table TO ",
    );
    sql.push_str(&format!("{};\n", readers.first().map_or("", String::as_str)));
    sql
}

/// `name` as an identifier of SQL, in quotes where it needs them.
fn quote_identifier(name: &str) -> String {
    let is_plain = name.starts_with(|first: char| first.is_ascii_lowercase() || first == '_')
        && name.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_');
    // A plain word may be a keyword still; quotes are never wrong.
    if is_plain && name.contains('_') { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted() {
        assert_eq!(quote_identifier("app_reader"), "app_reader");
        assert_eq!(quote_identifier("user"), "\"user\"");
        assert_eq!(quote_identifier("a\"; DROP ROLE x; --"), "\"a\"\"; DROP ROLE x; --\"");
    }
}
