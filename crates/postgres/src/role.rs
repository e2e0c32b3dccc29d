//! Login roles: the SQL that creates a suitable one, and the inspection of an existing one.
//!
//! The role is the first defence layer. A suitable one owns nothing, inherits nothing, and only reads.

use tidegate_query::RoleFinding;
use tidegate_sql::SqlDialect;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Error, Row};

use crate::catalog::schema_and_name;
use crate::options::PostgresOptions;
use crate::session::PostgresSession;

/// The purpose of a new login role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleRequest {
    /// The login role of the node.
    pub login: String,
    /// The schemas with the readable tables, at least one.
    pub schemas: Vec<String>,
    /// The roles that calls run as. Without any, calls run as the login role.
    pub run_as: Vec<String>,
    /// Further SQL for the roles of [`Self::readers`], such as grants to call handlers.
    pub further_sql: String,
}

impl RoleRequest {
    /// The SQL, which requires the privilege to create roles. It contains no password: `\password` of psql sets one
    /// without writing it to a log.
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

/// `name` as an SQL identifier, in quotes if needed.
fn quote_identifier(name: &str) -> String {
    let is_plain = name.starts_with(|first: char| first.is_ascii_lowercase() || first == '_')
        && name.chars().all(|other| other.is_ascii_lowercase() || other.is_ascii_digit() || other == '_');
    // A plain word may be a keyword; quotes are always valid.
    if is_plain && name.contains('_') { name.to_owned() } else { SqlDialect::Postgres.quote_identifier(name) }
}

/// The attributes and privileges of the login role and of the roles `$1`. `$2` and `$3` are the schemas and names of the
/// tables that take rows: the login role writes to them and to the keys of writes. Roles that may call handlers add lines
/// to `exchange` in the schema of the handlers, which its tables identify, also where no handlers are configured.
const ROLE_PRIVILEGES_SQL: &str = "
WITH target AS (
  SELECT DISTINCT c.oid
  FROM ROWS FROM (pg_catalog.unnest($2::text[]), pg_catalog.unnest($3::text[])) AS declared (nspname, relname)
  JOIN pg_catalog.pg_class c ON c.relname = declared.relname
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  WHERE CASE WHEN declared.nspname IS NULL THEN pg_catalog.pg_table_is_visible(c.oid) ELSE n.nspname = declared.nspname END)
SELECT r.rolname::text, r.rolsuper, r.rolbypassrls, r.rolcreaterole, r.rolcreatedb, r.rolreplication,
       r.rolname = session_user AND r.rolinherit AND EXISTS (
         SELECT 1 FROM pg_catalog.pg_auth_members m WHERE m.member = r.oid),
       (SELECT pg_catalog.count(*) FROM pg_catalog.pg_class c WHERE c.relowner = r.oid AND c.relkind IN ('r','p','v','m','f')),
       (SELECT pg_catalog.count(*) FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
        WHERE c.relkind IN ('r','p','f','v') AND n.nspname NOT IN ('pg_catalog','information_schema')
          AND NOT (c.relname = 'exchange'
                   AND NOT pg_catalog.has_table_privilege(r.oid, c.oid, 'UPDATE, DELETE, TRUNCATE')
                   AND (SELECT pg_catalog.count(*) = 3 FROM pg_catalog.pg_class o WHERE o.relnamespace = n.oid
                          AND o.relname IN ('installation', 'handler', 'mcp_request')))
          AND NOT (r.rolname = session_user
                   AND (c.oid IN (SELECT oid FROM target)
                        OR n.nspname = 'tidegate' AND c.relname = 'ingest_keys' AND EXISTS (SELECT FROM target)))
          AND (pg_catalog.has_table_privilege(r.oid, c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE')
               OR pg_catalog.has_any_column_privilege(r.oid, c.oid, 'INSERT, UPDATE'))),
       (SELECT pg_catalog.string_agg(n.nspname, ', ') FROM pg_catalog.pg_namespace n
        WHERE n.nspname NOT LIKE 'pg\\_%' AND pg_catalog.has_schema_privilege(r.oid, n.oid, 'CREATE')),
       pg_catalog.has_database_privilege(r.oid, pg_catalog.current_database(), 'CREATE'),
       (SELECT pg_catalog.string_agg(g.rolname, ', ') FROM pg_catalog.pg_roles g
        WHERE g.rolname IN ('pg_read_server_files', 'pg_write_server_files', 'pg_execute_server_program',
                            'pg_signal_backend', 'pg_write_all_data', 'pg_maintain', 'pg_checkpoint')
          AND pg_catalog.pg_has_role(r.oid, g.oid, 'MEMBER')),
       (SELECT pg_catalog.string_agg(DISTINCT p.proname, ', ') FROM pg_catalog.pg_proc p
        WHERE (p.proname IN ('pg_read_file', 'pg_read_binary_file', 'pg_ls_dir', 'lo_import', 'lo_export',
                             'pg_terminate_backend', 'pg_reload_conf')
               AND p.pronamespace = 'pg_catalog'::regnamespace AND p.proname <> 'pg_terminate_backend'
               OR p.proname LIKE 'dblink%' OR p.proname = 'http_get')
          AND pg_catalog.has_function_privilege(r.oid, p.oid, 'EXECUTE')),
       (SELECT pg_catalog.count(*) FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
        WHERE p.prosecdef AND n.nspname NOT IN ('pg_catalog','information_schema')
          AND pg_catalog.has_function_privilege(r.oid, p.oid, 'EXECUTE')),
       (SELECT pg_catalog.count(*) FROM target
        WHERE r.rolname = session_user
          AND (pg_catalog.has_table_privilege(r.oid, target.oid, 'UPDATE, TRUNCATE')
               OR pg_catalog.has_any_column_privilege(r.oid, target.oid, 'UPDATE')))
FROM pg_catalog.pg_roles r WHERE r.rolname = session_user OR r.rolname = ANY ($1::text[])
ORDER BY r.rolname = session_user DESC, r.rolname";

struct RowSecurityBug {
    name: &'static str,
    /// Major versions, each with the minor version that fixed the bug.
    fixed_in: &'static [(u32, u32)],
    effect: &'static str,
}

/// [PostgreSQL, Security Information](https://www.postgresql.org/support/security/)
const ROW_SECURITY_BUGS: &[RowSecurityBug] = &[
    RowSecurityBug {
        name: "CVE-2023-2455",
        fixed_in: &[(11, 20), (12, 15), (13, 11), (14, 8), (15, 3)],
        effect: "policies miss a change of role after inlining",
    },
    RowSecurityBug {
        name: "CVE-2024-10976",
        fixed_in: &[(12, 21), (13, 17), (14, 14), (15, 9), (16, 5), (17, 1)],
        effect: "policies below subqueries miss a change of role",
    },
    RowSecurityBug {
        name: "CVE-2025-8713",
        fixed_in: &[(13, 22), (14, 19), (15, 14), (16, 10), (17, 6)],
        effect: "the planner's statistics show hidden rows",
    },
];

/// Inspects the login role and the roles that calls run as.
pub(crate) async fn inspect(session: &PostgresSession, options: &PostgresOptions) -> Result<Vec<RoleFinding>, Error> {
    let mut findings = check_version(session.connection().server_version());
    let roles = options.run_as.roles();
    let targets: Vec<Vec<String>> =
        options.ingest_tables.iter().map(|table| SqlDialect::Postgres.table_parts(table)).collect();
    let (schemas, names): (Vec<Option<&String>>, Vec<&str>) =
        targets.iter().map(|parts| schema_and_name(parts)).unzip();
    let parameters: [(&(dyn ToSql + Sync), Type); 3] =
        [(&roles, Type::TEXT_ARRAY), (&schemas, Type::TEXT_ARRAY), (&names, Type::TEXT_ARRAY)];
    for role in session.client().query_typed(ROLE_PRIVILEGES_SQL, &parameters).await? {
        check_role(&role, &mut findings)?;
    }
    Ok(findings)
}

fn check_role(row: &Row, findings: &mut Vec<RoleFinding>) -> Result<(), Error> {
    let role: String = row.try_get(0)?;
    let mut add = |subject: String, remedy: String| {
        findings.push(RoleFinding { problem: format!("the role {role} {subject}"), remedy })
    };
    let attributes = [
        (1, "is a superuser", "NOSUPERUSER"),
        (2, "bypasses row-level security", "NOBYPASSRLS"),
        (3, "can create roles", "NOCREATEROLE"),
        (4, "can create databases", "NOCREATEDB"),
        (5, "may replicate", "NOREPLICATION"),
    ];
    for (index, subject, option) in attributes {
        if row.try_get(index)? {
            add(subject.to_owned(), format!("ALTER ROLE {role} {option}, or use another role (tidegate pg role)"));
        }
    }
    // Nothing restricts a superuser, so the other privileges do not matter.
    if row.try_get(1)? {
        return Ok(());
    }
    if row.try_get(6)? {
        add("inherits what its roles may".to_owned(), format!("ALTER ROLE {role} NOINHERIT"));
    }
    let (owned, written): (i64, i64) = (row.try_get(7)?, row.try_get(8)?);
    if owned > 0 {
        let subject = format!("owns {owned} tables or views, whose policies do not bind it");
        add(subject, "let another role own them".to_owned());
    }
    if written > 0 {
        let remedy = format!("REVOKE INSERT, UPDATE, DELETE, TRUNCATE on them FROM {role}");
        add(format!("may write to {written} tables or views"), remedy);
    }
    let updated: i64 = row.try_get(14)?;
    if updated > 0 {
        let subject = format!("may change rows of {updated} tables that take rows, which needs only INSERT and DELETE");
        add(subject, format!("REVOKE UPDATE, TRUNCATE on them FROM {role}"));
    }
    if let Some(schemas) = row.try_get::<_, Option<String>>(9)? {
        let remedy = format!("REVOKE CREATE ON SCHEMA … FROM {role} or PUBLIC");
        add(format!("may create in the schemas {schemas}"), remedy);
    }
    if row.try_get(10)? {
        add("may create schemas".to_owned(), format!("REVOKE CREATE ON DATABASE … FROM {role}"));
    }
    if let Some(groups) = row.try_get::<_, Option<String>>(11)? {
        add(format!("is a member of {groups}"), format!("REVOKE {groups} FROM {role}"));
    }
    if let Some(functions) = row.try_get::<_, Option<String>>(12)? {
        add(format!("may call {functions}"), "REVOKE EXECUTE on them FROM PUBLIC".to_owned());
    }
    let definers: i64 = row.try_get(13)?;
    if definers > 0 {
        let subject = format!("may call {definers} functions that run with their owner's rights (SECURITY DEFINER)");
        add(subject, "make sure that none of them writes for its caller".to_owned());
    }
    Ok(())
}

fn check_version(version: u32) -> Vec<RoleFinding> {
    let (major, minor) = (version / 10_000, version % 10_000);
    let present = ROW_SECURITY_BUGS.iter().filter_map(|RowSecurityBug { name, fixed_in, effect }| {
        let (_, fixed) = fixed_in.iter().find(|(fixed_major, _)| *fixed_major == major)?;
        (minor < *fixed).then(|| RoleFinding {
            problem: format!("PostgreSQL {major}.{minor} has {name}: {effect}"),
            remedy: format!("update it to {major}.{fixed} or later"),
        })
    });
    present.collect()
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

    #[test]
    fn old_server_versions_are_reported() {
        let names = |version| check_version(version).iter().map(|finding| finding.problem.clone()).collect::<Vec<_>>();
        assert_eq!(names(150_002).len(), 3);
        assert_eq!(names(170_001), ["PostgreSQL 17.1 has CVE-2025-8713: the planner's statistics show hidden rows"]);
        assert!(names(150_014).is_empty() && names(180_000).is_empty());
    }
}
