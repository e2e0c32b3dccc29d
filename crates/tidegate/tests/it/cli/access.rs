//! `tidegate access explain`: the authorization of a whole configuration, role by role, as a table to review.

use super::ConfiguredFolder;

const CONFIGURATION: &str = r"
databases: [{name: shop, files: shop}, {name: other, files: shop}]
tools:
  - {name: orders_all, description: O, database: shop, sql: SELECT * FROM orders}
  - {name: orders_secret, description: O, database: shop, sql: SELECT * FROM orders, access: [orders.read, orders.secret]}
  - {name: orders_local, description: O, database: shop, sql: SELECT * FROM orders, from: {transports: [stdio, cli]}}
toolsets: {orders: [orders_*, explore], one: [orders_all]}
roles:
  - {name: nothing}
  - {name: clerk, toolsets: [orders], access: [orders.read]}
  - {name: chief, toolsets: [orders, discover], access: [orders.*], databases: [shop]}
  - {name: admin, toolsets: ['*'], access: ['*'], databases: ['*']}
auth: {keys: keys.json}
";

#[test]
fn access_explain_snapshot() {
    let configured = ConfiguredFolder::new(CONFIGURATION);
    let mut matrix = String::new();
    for role in ["nothing", "clerk", "chief", "nothing,clerk", "admin", "local"] {
        for via in ["http", "stdio"] {
            let ran = configured.run(&["access", "explain", "--role", role, "--transport", via]);
            assert_eq!(ran.code, Some(0), "{ran:?}");
            let reached = ran.lines().into_iter().filter_map(|line| line.strip_prefix("yes  "));
            matrix.push_str(&format!("{role} via {via}: {}\n", reached.collect::<Vec<_>>().join(", ")));
        }
    }
    insta::assert_snapshot!(matrix, @r"
    nothing via http: 
    nothing via stdio: 
    clerk via http: tool orders_all (uses the database shop), prompt explore
    clerk via stdio: tool orders_all (uses the database shop), tool orders_local (uses the database shop), prompt explore
    chief via http: tool orders_all, tool orders_secret, prompt explore, database shop
    chief via stdio: tool orders_all, tool orders_secret, tool orders_local, prompt explore, database shop
    nothing,clerk via http: tool orders_all (uses the database shop), prompt explore
    nothing,clerk via stdio: tool orders_all (uses the database shop), tool orders_local (uses the database shop), prompt explore
    admin via http: tool list_databases, tool list_tables, tool get_schema, tool query, tool sql, tool explain, tool list_jobs, tool cancel_job, tool node_status, tool server_info, tool orders_all, tool orders_secret, resource table, resource database_notes, resource database, resource job, prompt ask, prompt explain_slow_query, prompt explore, prompt summarise_table, database other, database shop
    admin via stdio: tool list_databases, tool list_tables, tool get_schema, tool query, tool sql, tool explain, tool list_jobs, tool cancel_job, tool node_status, tool server_info, tool orders_all, tool orders_secret, tool orders_local, resource table, resource database_notes, resource database, resource job, prompt ask, prompt explain_slow_query, prompt explore, prompt summarise_table, database other, database shop
    local via http: tool list_databases, tool list_tables, tool get_schema, tool query, tool sql, tool explain, tool list_jobs, tool cancel_job, tool node_status, tool server_info, tool orders_all, tool orders_secret, resource table, resource database_notes, resource database, resource job, prompt ask, prompt explain_slow_query, prompt explore, prompt summarise_table, database other, database shop
    local via stdio: tool list_databases, tool list_tables, tool get_schema, tool query, tool sql, tool explain, tool list_jobs, tool cancel_job, tool node_status, tool server_info, tool orders_all, tool orders_secret, tool orders_local, resource table, resource database_notes, resource database, resource job, prompt ask, prompt explain_slow_query, prompt explore, prompt summarise_table, database other, database shop
    ");
}

#[test]
fn access_explain_gives_the_reason() {
    let configured = ConfiguredFolder::new(CONFIGURATION);
    let explain = |arguments: &[&str]| {
        let ran = configured.run(&[&["access", "explain"], arguments].concat());
        format!("{}{}", ran.stdout, ran.stderr)
    };
    insta::assert_snapshot!(explain(&["--role", "clerk", "orders_secret"]), @r#"no   tool orders_secret: none of the caller's roles grants the access "orders.secret""#);
    insta::assert_snapshot!(explain(&["--role", "clerk", "sql"]), @"no   tool sql: no toolset of the caller's roles contains it");
    insta::assert_snapshot!(explain(&["--role", "clerk", "orders_local"]), @"no   tool orders_local: it cannot be called over this transport or from this network");
    insta::assert_snapshot!(explain(&["--role", "admin", "--toolset", "one", "sql"]), @"no   tool sql: it is not in the toolset of this endpoint");
    insta::assert_snapshot!(explain(&["--role", "chief", "other"]), @"no   database other: no role of the caller names it under databases");
    insta::assert_snapshot!(explain(&["--role", "clerk", "shop"]), @"no   database shop: no role of the caller names it under databases; used for the caller by orders_all");
    insta::assert_snapshot!(explain(&["--role", "nobody"]), @r#"error: there is no role "nobody"; the roles are nothing, clerk, chief, admin"#);
    insta::assert_snapshot!(explain(&["--role", "anonymous"]), @"error: authentication is required: send Authorization: Bearer with an API key or a token");
    insta::assert_snapshot!(explain(&["--role", "admin", "nothing_of_that_name"]), @r#"error: there is no tool, resource, prompt or database "nothing_of_that_name""#);
}

#[test]
fn config_check_names_the_databases_that_a_role_uses_by_declared_tools_only() {
    let ran = ConfiguredFolder::new(CONFIGURATION).run(&["config", "check"]);
    let note = "role clerk: uses the database shop only by orders_all, orders_local; its databases do not name it";
    let notes: Vec<&str> = ran.lines().into_iter().filter(|line| line.starts_with("role ")).collect();
    assert_eq!((ran.code, notes.as_slice()), (Some(0), [note].as_slice()), "{ran:?}");
}

/// Only tokens have claims of their own: a key has a subject, roles and perhaps a tenant.
#[test]
fn settings_from_claims_that_no_caller_has_are_reported() {
    let check = |auth: &str, key: &[&str]| {
        let configured = ConfiguredFolder::new(&format!(
            "databases:
  - name: shop
    postgres: 'host=127.0.0.1 port=1 user=nobody dbname=shop sslmode=disable'
    role: {{claim: db_role, allow: [reader]}}
    settings: {{app.region: region, app.tenant: tenant, app.user: sub}}
roles: [{{name: clerk, toolsets: ['*'], databases: [shop]}}]
{auth}"
        ));
        if !key.is_empty() {
            let added = configured.run(&[&["key", "add", "ann", "--role", "clerk"], key].concat());
            assert_eq!(added.code, Some(0), "{added:?}");
        }
        let ran = configured.run(&["config", "check", "--log", "error"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let doctor = configured.run(&["doctor"]).stdout;
        let explained = configured.run(&["access", "explain", "--role", "clerk", "shop"]).stdout;
        assert_eq!(
            explained,
            "yes  database shop; empty for callers without the claim: app.region (region), app.tenant (tenant)\n"
        );
        let warnings: Vec<String> = ran
            .lines()
            .into_iter()
            .filter_map(|line| line.strip_prefix("warning: databases[0]."))
            .map(str::to_owned)
            .collect();
        assert!(warnings.iter().all(|warning| doctor.contains(&format!("mind   databases[0].{warning}"))), "{doctor}");
        warnings.join("\n")
    };
    let without_tokens = check("", &[]);
    insta::assert_snapshot!(without_tokens, @r#"
    settings.app.region: the setting is empty for all callers: no caller has the claim "region"; without auth.tokens, callers have only sub, roles and tenant
    settings.app.tenant: the setting is empty for all callers: no caller has a tenant; tidegate key add with --tenant makes a key that has one
    role: all callers are refused: no caller has the claim "db_role"; without auth.tokens, callers have only sub, roles and tenant
    "#);
    let keys = "auth: {keys: keys.json}\n";
    assert_eq!(check(keys, &["--expires", "30"]), without_tokens);
    let with_tenant = check(keys, &["--tenant", "north"]);
    assert!(with_tenant.lines().count() == 2 && !with_tenant.contains("app.tenant"), "{with_tenant}");
    let secret = "a secret of at least thirty-two bytes";
    let tokens =
        format!("auth: {{tokens: {{issuer: shop, audience: tidegate, algorithms: [HS256], secret: '{secret}'}}}}\n");
    assert_eq!(check(&tokens, &[]), "");
}
