//! What the login role can do beyond reading: the first layer of defence.

use std::fmt;

use tidegate_core::Error;

use crate::error;
use crate::lease::Lease;

/// Something that the login role could do beyond reading, or that the server is known to get wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleFinding {
    /// What is so.
    pub problem: String,
    /// What would mend it.
    pub remedy: String,
}

impl fmt::Display for RoleFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.problem, self.remedy)
    }
}

/// What a role is and holds. `$1`: the roles that calls run as, beside the login's own.
const ROLE_PRIVILEGES_SQL: &str = "
SELECT r.rolname::text, r.rolsuper, r.rolbypassrls, r.rolcreaterole, r.rolcreatedb, r.rolreplication,
       r.rolname = session_user AND r.rolinherit AND EXISTS (
         SELECT 1 FROM pg_catalog.pg_auth_members m WHERE m.member = r.oid),
       (SELECT pg_catalog.count(*) FROM pg_catalog.pg_class c WHERE c.relowner = r.oid AND c.relkind IN ('r','p','v','m','f')),
       (SELECT pg_catalog.count(*) FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
        WHERE c.relkind IN ('r','p','f') AND n.nspname NOT IN ('pg_catalog','information_schema')
          AND (pg_catalog.has_table_privilege(r.oid, c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE'))),
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
          AND pg_catalog.has_function_privilege(r.oid, p.oid, 'EXECUTE'))
FROM pg_catalog.pg_roles r WHERE r.rolname = session_user OR r.rolname = ANY ($1::text[])
ORDER BY r.rolname = session_user DESC, r.rolname";

/// A bug of row-level security.
struct RowSecurityBug {
    name: &'static str,
    /// Major versions, and the minor one of each that mended it.
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

/// Looks at the login role and at `roles`, which calls run as, in the transaction of `lease`.
pub(crate) async fn inspect(lease: &Lease, roles: &[&str], database: &str) -> Result<Vec<RoleFinding>, Error> {
    let session = lease.session()?;
    let failed = |error: tokio_postgres::Error| error::internal_statement_error(&error, database);
    let rows = session.client().query(ROLE_PRIVILEGES_SQL, &[&roles]).await.map_err(failed)?;
    let mut findings = check_version(session.connection().server_version());
    for role in &rows {
        check_role(role, &mut findings).map_err(failed)?;
    }
    Ok(findings)
}

fn check_role(row: &tokio_postgres::Row, findings: &mut Vec<RoleFinding>) -> Result<(), tokio_postgres::Error> {
    let role: String = row.try_get(0)?;
    let mut find = |subject: String, mend: String| {
        findings.push(RoleFinding { problem: format!("the role {role} {subject}"), remedy: mend })
    };
    let attributes = [(1, "is a superuser", "NOSUPERUSER"), (2, "bypasses row-level security", "NOBYPASSRLS")];
    let further = [(3, "can create roles", "NOCREATEROLE"), (4, "can create databases", "NOCREATEDB")];
    for (index, subject, word) in attributes.into_iter().chain(further).chain([(5, "may replicate", "NOREPLICATION")]) {
        if row.try_get(index)? {
            find(subject.to_owned(), format!("ALTER ROLE {role} {word}, or use another role (tidegate pg role)"));
        }
    }
    // Nothing holds a superuser back, so the rest says nothing more.
    if row.try_get(1)? {
        return Ok(());
    }
    if row.try_get(6)? {
        find("inherits what its roles may".to_owned(), format!("ALTER ROLE {role} NOINHERIT"));
    }
    let (owned, written): (i64, i64) = (row.try_get(7)?, row.try_get(8)?);
    if owned > 0 {
        find(
            format!("owns {owned} tables or views, whose policies do not bind it"),
            "let another role own them".to_owned(),
        );
    }
    if written > 0 {
        find(
            format!("may write to {written} tables"),
            format!("REVOKE INSERT, UPDATE, DELETE, TRUNCATE on them FROM {role}"),
        );
    }
    if let Some(schemas) = row.try_get::<_, Option<String>>(9)? {
        find(
            format!("may create in the schemas {schemas}"),
            format!("REVOKE CREATE ON SCHEMA … FROM {role} or PUBLIC"),
        );
    }
    if row.try_get(10)? {
        find("may create schemas".to_owned(), format!("REVOKE CREATE ON DATABASE … FROM {role}"));
    }
    if let Some(groups) = row.try_get::<_, Option<String>>(11)? {
        find(format!("is a member of {groups}"), format!("REVOKE {groups} FROM {role}"));
    }
    if let Some(functions) = row.try_get::<_, Option<String>>(12)? {
        find(format!("may call {functions}"), "REVOKE EXECUTE on them FROM PUBLIC".to_owned());
    }
    let definers: i64 = row.try_get(13)?;
    if definers > 0 {
        let subject = format!("may call {definers} functions that run with their owner's rights (SECURITY DEFINER)");
        find(subject, "make sure that none of them writes for its caller".to_owned());
    }
    Ok(())
}

fn check_version(version: u32) -> Vec<RoleFinding> {
    let (major, minor) = (version / 10_000, version % 10_000);
    let known = ROW_SECURITY_BUGS.iter().filter_map(|RowSecurityBug { name, fixed_in: mended, effect: subject }| {
        let (_, mended) = mended.iter().find(|(of, _)| *of == major)?;
        (minor < *mended).then(|| RoleFinding {
            problem: format!("PostgreSQL {major}.{minor} has {name}: {subject}"),
            remedy: format!("update it to {major}.{mended} or later"),
        })
    });
    known.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_server_versions_are_reported() {
        let names = |version| check_version(version).iter().map(|finding| finding.problem.clone()).collect::<Vec<_>>();
        assert_eq!(names(150_002).len(), 3);
        assert_eq!(names(170_001), ["PostgreSQL 17.1 has CVE-2025-8713: the planner's statistics show hidden rows"]);
        assert!(names(150_014).is_empty() && names(180_000).is_empty());
    }
}
