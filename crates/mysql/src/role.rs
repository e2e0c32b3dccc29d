//! The inspection of the account: what it may do beyond reading; and the SQL of an account that only reads.
//!
//! The account is the first defence layer. A suitable one has SELECT on the databases that callers may read, and nothing else.

use std::collections::BTreeSet;

use mysql_async::prelude::Queryable;
use mysql_async::{Error, Row};
use tidegate_query::RoleFinding;
use tidegate_sql::SqlDialect;

use crate::session::{MySqlSession, role_sql, value_text};

/// Privileges that change nothing and show no more than what the account may read.
const READING_PRIVILEGES: &[&str] = &["SELECT", "SHOW VIEW", "USAGE"];

/// The purpose of a new account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountRequest {
    /// The name of the account that the node logs in as.
    pub login: String,
    /// The hosts from which it may log in, as the server writes them: `%` is any.
    pub host: String,
    /// The databases of the server whose tables it may read.
    pub databases: Vec<String>,
    /// The roles that calls run as. Without any, calls run as the account itself.
    pub run_as: Vec<String>,
}

impl AccountRequest {
    /// The SQL, which requires the privileges to create accounts and to give `SELECT`. It contains no password, and the
    /// account is locked until it has one.
    pub fn sql(&self) -> String {
        let quote = |name: &str| SqlDialect::MySql.quote_identifier(name);
        let account = format!("{}@{}", quote(&self.login), quote(&self.host));
        let mut sql = format!(
            "-- The account that Tidegate logs in as. It has no password yet, so it is locked.\n\
             CREATE USER {account} REQUIRE SSL ACCOUNT LOCK;\n"
        );
        if !self.run_as.is_empty() {
            sql.push_str("\n-- The roles that calls run as.\n");
        }
        for role in self.run_as.iter().map(|role| quote(role)) {
            sql.push_str(&format!("CREATE ROLE {role};\nGRANT {role} TO {account};\n"));
        }
        sql.push_str("\n-- What may be read; grant less where less will do.\n");
        // In the name of a database, GRANT reads an underscore and a percent sign as patterns.
        let pattern = |name: &String| quote(&name.replace('\\', "\\\\").replace('_', "\\_").replace('%', "\\%"));
        for database in self.databases.iter().map(pattern) {
            // The account itself needs a privilege in the database that it connects to.
            if !self.run_as.is_empty() {
                sql.push_str(&format!("GRANT SHOW VIEW ON {database}.* TO {account};\n"));
            }
            let roles: Vec<String> = self.run_as.iter().map(|role| quote(role)).collect();
            for reader in if roles.is_empty() { vec![account.clone()] } else { roles } {
                sql.push_str(&format!("GRANT SELECT, SHOW VIEW ON {database}.* TO {reader};\n"));
            }
        }
        sql.push_str(&format!(
            "\n-- Now set its password, and unlock it:\n-- ALTER USER {account} IDENTIFIED BY '…' ACCOUNT UNLOCK;\n"
        ));
        sql
    }
}

/// What is granted on purpose.
pub(crate) struct ExpectedGrants<'a> {
    /// The roles of callers.
    pub(crate) roles: Vec<&'a str>,
    /// The tables that take rows, as the server writes them.
    pub(crate) written: Vec<String>,
}

/// Privileges that a table needs which takes rows.
const WRITING_PRIVILEGES: &[&str] = &["INSERT", "DELETE"];
/// The table of the keys of writes.
const KEYS_TABLE: &str = "tidegate_ingest_keys";
/// The privileges for it.
const KEYS_PRIVILEGES: &[&str] = &["INSERT", "UPDATE", "DELETE"];

/// `tables` that take rows, and that of the keys of writes, as the server writes their names.
pub(crate) fn written_tables(tables: &[String], default_schema: Option<&str>) -> Vec<String> {
    let keys = (!tables.is_empty()).then(|| KEYS_TABLE.to_owned());
    let names = tables.iter().cloned().chain(keys).map(|name| SqlDialect::MySql.table_parts(&name));
    let full_name = |parts: Vec<String>| {
        let schema = default_schema.filter(|_| parts.len() == 1);
        let parts = schema.into_iter().chain(parts.iter().map(String::as_str));
        parts.map(|part| SqlDialect::MySql.quote_identifier(part)).collect::<Vec<_>>().join(".")
    };
    names.map(full_name).collect()
}

/// Inspects the account of `session`, and the roles of callers.
pub(crate) async fn inspect(
    session: &mut MySqlSession,
    expected: &ExpectedGrants<'_>,
) -> Result<Vec<RoleFinding>, Error> {
    let mut grants = BTreeSet::new();
    // The account may have a role from its login on.
    for role in [None].into_iter().chain(expected.roles.iter().copied().map(Some)) {
        let mut sql = "SHOW GRANTS".to_owned();
        if let Some(role) = role {
            session.connection.query_drop(role_sql(role)).await?;
            // MariaDB shows the grants of the role that is active.
            if !session.is_mariadb {
                sql = format!("SHOW GRANTS FOR CURRENT_USER() USING {}", SqlDialect::MySql.quote_identifier(role));
            }
        }
        let rows: Vec<Row> = session.connection.query(sql).await?;
        grants.extend(rows.iter().filter_map(|row| value_text(row, 0)));
    }
    Ok(grants.iter().flat_map(|grant| check_grant(grant, expected)).collect())
}

/// What the statement `grant` gives beyond reading and what is expected.
fn check_grant(grant: &str, expected: &ExpectedGrants<'_>) -> Vec<RoleFinding> {
    let Some((rest, grantee)) = grant.strip_prefix("GRANT ").and_then(|rest| rest.rsplit_once(" TO ")) else {
        return Vec::new();
    };
    let grantee = [" IDENTIFIED ", " REQUIRE ", " WITH "]
        .iter()
        .fold(grantee, |grantee, clause| grantee.split_once(clause).map_or(grantee, |(grantee, _)| grantee));
    let kind = if grantee.contains('@') { "account" } else { "role" };
    let finding = |problem: String, remedy: String| RoleFinding {
        problem: format!("the {kind} {grantee} {problem}"),
        remedy: format!("{remedy}, or use another {kind}"),
    };
    let Some((privileges, object)) = rest.split_once(" ON ") else {
        // A role, whose own grants SHOW GRANTS has only if it is active.
        let name = rest.trim_end_matches("@`%`").trim_matches('`');
        if expected.roles.contains(&name) {
            return Vec::new();
        }
        let problem = format!("has the role {rest}, whose privileges count while it is active");
        return vec![finding(problem, format!("REVOKE {rest} FROM {grantee}"))];
    };
    let mut findings = Vec::new();
    let privileges = split_privileges(privileges);
    let writing = match expected.written.iter().any(|table| table == object) {
        true if object.contains(KEYS_TABLE) => KEYS_PRIVILEGES,
        true => WRITING_PRIVILEGES,
        false => &[],
    };
    let is_further = |name: &&str| !READING_PRIVILEGES.contains(name) && !writing.contains(name);
    let further: Vec<&str> = privileges.iter().map(String::as_str).filter(is_further).collect();
    if !further.is_empty() {
        let further = further.join(", ");
        let remedy = format!("REVOKE {further} ON {object} FROM {grantee}");
        findings.push(finding(format!("may do more than read on {object}: {further}"), remedy));
    }
    if object == "*.*" && privileges.iter().any(|name| name == "SELECT") {
        let problem = "may read all databases of the server, also the hashes of passwords".to_owned();
        findings.push(finding(
            problem,
            format!("grant SELECT on single databases, and REVOKE SELECT ON *.* FROM {grantee}"),
        ));
    }
    if grant.ends_with(" WITH GRANT OPTION") {
        let remedy = format!("REVOKE GRANT OPTION ON {object} FROM {grantee}");
        findings.push(finding(format!("may give its privileges on {object} to others"), remedy));
    }
    findings
}

/// The names of privileges in a list, without the columns behind them.
fn split_privileges(list: &str) -> Vec<String> {
    let (mut names, mut name, mut depth) = (Vec::new(), String::new(), 0_usize);
    for character in list.chars() {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => names.push(std::mem::take(&mut name)),
            _ if depth == 0 => name.push(character),
            _ => {}
        }
    }
    names.push(name);
    names.iter().map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(grant: &str) -> String {
        let written = written_tables(&["orders".to_owned()], Some("shop"));
        let findings = check_grant(grant, &ExpectedGrants { roles: vec!["analyst"], written });
        findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn names_in_the_sql_of_an_account_are_quoted() {
        let request = AccountRequest {
            login: "tidegate_reader".to_owned(),
            host: "%".to_owned(),
            databases: vec!["web_shop".to_owned()],
            run_as: vec!["a`b".to_owned()],
        };
        let sql = request.sql();
        for part in [
            "CREATE USER `tidegate_reader`@`%` REQUIRE SSL ACCOUNT LOCK;",
            "GRANT `a``b` TO `tidegate_reader`@`%`;",
            "GRANT SHOW VIEW ON `web\\_shop`.* TO `tidegate_reader`@`%`;",
            "GRANT SELECT, SHOW VIEW ON `web\\_shop`.* TO `a``b`;",
        ] {
            assert!(sql.contains(part), "{sql}");
        }
    }

    #[test]
    fn an_account_that_reads_has_no_findings() {
        for grant in [
            "GRANT USAGE ON *.* TO `reader`@`%` IDENTIFIED BY PASSWORD '*D8'",
            "GRANT SELECT ON `shop`.* TO `reader`@`%`",
            "GRANT SELECT (`a`, `b`), SHOW VIEW ON `shop`.`t` TO `reader`@`%`",
            "GRANT `analyst` TO `reader`@`%`",
            "GRANT `analyst`@`%` TO `reader`@`%`",
            "GRANT SELECT, INSERT, DELETE ON `shop`.`orders` TO `reader`@`%`",
            "GRANT SELECT, INSERT, UPDATE, DELETE ON `shop`.`tidegate_ingest_keys` TO `reader`@`%`",
        ] {
            assert_eq!(findings(grant), "", "{grant}");
        }
    }

    #[test]
    fn further_privileges_are_found() {
        let writes = findings("GRANT SELECT, INSERT (`a`, `b`), UPDATE ON `shop`.* TO `reader`@`%`");
        assert!(writes.contains("on `shop`.*: INSERT, UPDATE; REVOKE INSERT, UPDATE ON `shop`.* FROM"), "{writes}");
        let server = findings("GRANT SELECT, PROCESS, FILE, SUPER ON *.* TO `reader`@`%` WITH GRANT OPTION");
        for part in ["PROCESS, FILE, SUPER", "hashes of passwords", "to others"] {
            assert!(server.contains(part), "{server}");
        }
        assert!(findings("GRANT UPDATE ON `shop`.`orders` TO `reader`@`%`").contains("`orders`: UPDATE"));
        assert!(findings("GRANT INSERT ON `other`.`orders` TO `reader`@`%`").contains("`orders`: INSERT"));
        assert!(findings("GRANT ALL PRIVILEGES ON *.* TO `root`@`localhost`").contains("ALL PRIVILEGES"));
        assert!(findings("GRANT `writer` TO `reader`@`%`").contains("has the role `writer`"));
        let role = findings("GRANT SELECT, INSERT ON `shop`.`t` TO `analyst`");
        assert!(role.contains("the role `analyst` may do more") && role.contains("FROM `analyst`, or"), "{role}");
    }
}
