//! The inspection of the account: what it may do beyond reading.
//!
//! The account is the first defence layer. A suitable one has SELECT on the databases that callers may read, and nothing else.

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error, Row};
use tidegate_query::RoleFinding;

use crate::session::value_text;

/// Privileges that change nothing and show no more than what the account may read.
const READING_PRIVILEGES: &[&str] = &["SELECT", "SHOW VIEW", "USAGE"];

/// Inspects the account of `connection`.
pub(crate) async fn inspect(connection: &mut Conn) -> Result<Vec<RoleFinding>, Error> {
    let account: Option<Row> = connection.query_first("SELECT CURRENT_USER()").await?;
    let account = account.and_then(|row| value_text(&row, 0)).unwrap_or_default();
    let grants: Vec<Row> = connection.query("SHOW GRANTS").await?;
    let grants = grants.iter().filter_map(|row| value_text(row, 0));
    Ok(grants.flat_map(|grant| check_grant(&account, &grant)).collect())
}

/// What the statement `grant` gives to `account` beyond reading.
fn check_grant(account: &str, grant: &str) -> Vec<RoleFinding> {
    let Some(rest) = grant.strip_prefix("GRANT ") else { return Vec::new() };
    let finding = |problem: String, remedy: String| RoleFinding {
        problem: format!("the account {account} {problem}"),
        remedy: format!("{remedy}, or use another account"),
    };
    let Some((privileges, target)) = rest.split_once(" ON ") else {
        // A role, whose own grants SHOW GRANTS has only if it is active.
        let role = rest.split_once(" TO ").map_or(rest, |(role, _)| role);
        let problem = format!("has the role {role}, whose privileges count while it is active");
        return vec![finding(problem, format!("REVOKE {role} FROM {account}"))];
    };
    let object = target.split_once(" TO ").map_or(target, |(object, _)| object);
    let mut findings = Vec::new();
    let privileges = split_privileges(privileges);
    let further: Vec<&str> =
        privileges.iter().map(String::as_str).filter(|name| !READING_PRIVILEGES.contains(name)).collect();
    if !further.is_empty() {
        let further = further.join(", ");
        let remedy = format!("REVOKE {further} ON {object} FROM {account}");
        findings.push(finding(format!("may do more than read on {object}: {further}"), remedy));
    }
    if object == "*.*" && privileges.iter().any(|name| name == "SELECT") {
        let problem = "may read all databases of the server, also the hashes of passwords".to_owned();
        findings.push(finding(
            problem,
            format!("grant SELECT on single databases, and REVOKE SELECT ON *.* FROM {account}"),
        ));
    }
    if target.ends_with(" WITH GRANT OPTION") {
        let remedy = format!("REVOKE GRANT OPTION ON {object} FROM {account}");
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
        let findings = check_grant("reader@%", grant);
        findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn an_account_that_reads_has_no_findings() {
        for grant in [
            "GRANT USAGE ON *.* TO `reader`@`%` IDENTIFIED BY PASSWORD '*D8'",
            "GRANT SELECT ON `shop`.* TO `reader`@`%`",
            "GRANT SELECT (`a`, `b`), SHOW VIEW ON `shop`.`t` TO `reader`@`%`",
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
        assert!(findings("GRANT ALL PRIVILEGES ON *.* TO `root`@`localhost`").contains("ALL PRIVILEGES"));
        assert!(findings("GRANT `writer` TO `reader`@`%`").contains("has the role `writer`"));
    }
}
