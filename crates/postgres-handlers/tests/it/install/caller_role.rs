//! The role that is proposed for calling handlers, and what it can and cannot do.

use insta::assert_snapshot;
use tidegate_postgres::connect::{ConnectEnvironment, ConnectTarget};
use tidegate_postgres::{PostgresDatabase, PostgresOptions, RoleRequest, RunAs};
use tidegate_postgres_handlers::SchemaName;
use tokio_postgres::Client;

use super::installed_database::InstalledDatabase;
use tidegate_testkit::test_database;

/// A tool that writes into a table of another owner.
const WRITING_HANDLER_SQL: &str = r#"
    SELECT api.create_or_replace_mcp_handler('{"type": "tool", "name": "note", "requiresAuth": false}',
        'BEGIN INSERT INTO public.note VALUES (current_user); RETURN api.mcp_tool_result(jsonb_build_array(), (request).request_id); END')"#;

async fn run_as_role(client: &Client, begin: &str, role: &str) -> String {
    client.batch_execute(&format!("{begin}; SET LOCAL ROLE {role}")).await.unwrap();
    let call = "SELECT (api.mcp_call_tool('note', '{}', NULL, '1')).envelope #>> '{result,isError}'";
    let row = client.query_one(call, &[]).await;
    client.batch_execute("COMMIT").await.unwrap();
    match row.unwrap().get::<_, Option<String>>(0) {
        Some(_) => "failed".to_owned(),
        None => "done".to_owned(),
    }
}

#[tokio::test]
async fn handler_writes_with_the_callers_privileges() {
    let ground = InstalledDatabase::installed().await;
    ground.scene.run("CREATE TABLE note (by text)").await;
    let database = &ground.scene.name;
    let (login, reader) = (format!("{database}_proposed"), format!("{database}_reader"));
    let without = RoleRequest {
        login: login.clone(),
        schemas: vec!["public".into()],
        run_as: vec![reader.clone()],
        further_sql: String::new(),
    };
    let further_sql = SchemaName::parse("api").unwrap().grants_sql(&without.readers());
    let request = RoleRequest { further_sql, ..without.clone() };
    ground.scene.run(&request.sql()).await;
    ground.scene.run(&format!("ALTER ROLE {login} PASSWORD 'right'")).await;
    ground.scene.run(WRITING_HANDLER_SQL).await;
    let host = test_database::variable("TIDEGATE_TEST_POSTGRES_TCP");
    let connection_string = format!("{host} dbname={database} user={login} password=right sslmode=disable");
    let client = test_database::connect(&connection_string).await;

    // It may add lines to the table of calls, which is no excess; but not change them.
    let findings = async || {
        let target = ConnectTarget::parse(&connection_string, &ConnectEnvironment::from_process()).unwrap();
        let options = PostgresOptions { run_as: RunAs::Fixed(reader.clone()), ..PostgresOptions::default() };
        PostgresDatabase::open("shop", target, options).unwrap().inspect().await.unwrap()
    };
    assert_eq!(findings().await, []);
    ground.scene.run(&format!("GRANT UPDATE ON api.exchange TO {reader}")).await;
    assert_eq!(findings().await.len(), 1);

    assert_eq!(run_as_role(&client, "BEGIN READ WRITE", &reader).await, "failed");
    ground.scene.run(&format!("GRANT INSERT ON note TO {reader}")).await;
    assert_eq!(run_as_role(&client, "BEGIN", &reader).await, "failed");
    assert_eq!(run_as_role(&client, "BEGIN READ WRITE", &reader).await, "done");
    assert_eq!(ground.scene.value("SELECT string_agg(by, ' ') FROM note").await, reader);

    let without = without.sql().replace(database, "shop");
    let sql = request.sql().replace(database, "shop");
    let added: Vec<&str> = sql.lines().filter(|line| !without.lines().any(|other| other == *line)).collect();
    assert_snapshot!(added.join("\n"), @r#"
    -- Calling the handlers of the schema api.
    SELECT api.grant_mcp_access('shop_reader');
    -- A handler that writes runs in a READ WRITE transaction, whatever the default is. It has the rights of its caller:
    -- grant what it writes, as in GRANT INSERT, UPDATE ON some_table TO shop_reader;
    "#);
}
