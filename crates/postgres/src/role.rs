//! The SQL that makes a suitable login role: one that owns nothing, inherits nothing and reads.

/// What a role is to be made for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleRequest {
    /// The role that the node logs in as.
    pub login: String,
    /// Schemas whose tables may be read, at least one.
    pub schemas: Vec<String>,
    /// Roles that calls run as. Without any the login itself reads.
    pub run_as: Vec<String>,
    /// Further SQL for the roles of [`Self::readers`], such as grants to call handlers.
    pub further_sql: String,
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
        if !self.run_as.is_empty() {
            sql.push_str("\n-- The roles that calls run as.\n");
        }
        let readers = self.readers();
        for role in readers.iter().filter(|_| !self.run_as.is_empty()) {
            sql.push_str(&format!("CREATE ROLE {role} NOLOGIN NOINHERIT NOBYPASSRLS;\nGRANT {role} TO {login};\n"));
        }
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
        sql.push_str(&self.further_sql);
        sql.push_str(&format!("\n-- Now set its password, in psql: \\password {login}\n"));
        sql
    }

    /// The roles that calls run as, as SQL identifiers: the login role if there are no others.
    pub fn readers(&self) -> Vec<String> {
        let login = std::slice::from_ref(&self.login);
        let readers = if self.run_as.is_empty() { login } else { &self.run_as };
        readers.iter().map(|role| quote_identifier(role)).collect()
    }
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
