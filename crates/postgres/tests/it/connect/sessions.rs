//! Open connections: versions, settings, several hosts, cancelling, the end.

use std::sync::Arc;

use tidegate_postgres::connect::OpenConnection;
use tidegate_postgres::{PostgresDatabase, PostgresOptions};
use tokio::net::{TcpListener, TcpSocket};

use crate::cluster::Cluster;
use crate::test_database::{OpenedDatabase, wait_until};

use super::environment_fixture::{
    EnvironmentFixture, authority_file, connect, connect_error_text, is_encrypted, make_role, network_port,
    network_string, query_value, superuser_string,
};

/// The folder and the port of the superuser's socket.
fn socket_connection() -> (String, String) {
    let text = superuser_string("");
    let value = |name: &str| {
        let pair = text.split_whitespace().find_map(|pair| pair.strip_prefix(name));
        pair.unwrap_or_else(|| panic!("no {name} in {text}")).to_owned()
    };
    (value("host="), value("port="))
}

#[tokio::test]
async fn connects_over_a_socket() {
    let connected = connect(&superuser_string("")).await;
    let number: u32 = query_value(&connected, "SHOW server_version_num").await.parse().unwrap();
    assert_eq!(connected.server_version(), number);
    assert!(!is_encrypted(&connected).await);
    assert!(!connected.is_closed());

    let (folder, port) = socket_connection();
    let encoded = folder.replace('/', "%2F");
    for uri in [
        format!("postgres://postgres@{encoded}:{port}/postgres"),
        format!("postgres:///postgres?host={folder}&port={port}&user=postgres"),
        // A socket never uses TLS, whatever sslmode is set.
        format!("postgres://postgres@{encoded}:{port}/postgres?sslmode=verify-full"),
    ] {
        assert_eq!(query_value(&connect(&uri).await, "SELECT current_user").await, "postgres");
    }
}

#[tokio::test]
async fn startup_sets_application_name_and_options() {
    let target = EnvironmentFixture::new().parse_target(&superuser_string("options='-c geqo=off'"));
    let connected = target.connect("tidegate shop").await.unwrap();
    assert_eq!(query_value(&connected, "SHOW application_name").await, "tidegate shop");
    assert_eq!(query_value(&connected, "SHOW geqo").await, "off");

    let named = EnvironmentFixture::new().parse_target(&superuser_string("application_name=night"));
    let connected = named.connect("tidegate shop").await.unwrap();
    assert_eq!(query_value(&connected, "SHOW application_name").await, "night");
}

#[tokio::test]
async fn first_reachable_host_is_used() {
    let (folder, port) = socket_connection();
    // A bound socket that does not listen keeps its port closed.
    let dead = TcpSocket::new_v4().unwrap();
    dead.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let dead_port = dead.local_addr().unwrap().port();
    for order in ["disable", "random"] {
        let text = format!(
            "host=127.0.0.1,/nowhere,{folder} port={dead_port},1,{port} user=postgres dbname=postgres \
             load_balance_hosts={order}"
        );
        assert_eq!(query_value(&connect(&text).await, "SELECT current_user").await, "postgres");
    }
}

#[tokio::test]
async fn database_rejection_stops_trying_hosts() {
    let (folder, port) = socket_connection();
    let text = format!("host={folder},/nowhere port={port} user=postgres dbname=nowhere");
    let message = connect_error_text(&text).await;
    assert!(
        message.contains("caller: the database shop cannot be reached: the server has no such database"),
        "{message}"
    );
    assert!(!message.contains("socket is not there"), "{message}");
}

#[tokio::test]
async fn target_session_attrs_is_checked() {
    for expected in ["any", "read-write", "primary", "prefer-standby"] {
        connect(&superuser_string(&format!("target_session_attrs={expected}"))).await;
    }
    let (folder, port) = socket_connection();
    for expected in ["read-only", "standby"] {
        let text = format!("host={folder} port={port} user=postgres dbname=postgres target_session_attrs={expected}");
        let message = connect_error_text(&text).await;
        assert!(
            message.contains(&format!("the server is not suitable for target_session_attrs={expected}")),
            "{message}"
        );
    }
    let reading = "options='-c default_transaction_read_only=on'";
    connect(&superuser_string(&format!("{reading} target_session_attrs=read-only"))).await;
    connect(&superuser_string(&format!("{reading} target_session_attrs=primary"))).await;
}

/// A server and its standby, in either order: each kind of session is opened on the server that offers it.
#[tokio::test]
async fn standby_and_primary_are_distinguished() {
    let cluster = Cluster::start();
    let script = cluster.start_standby();
    let (primary, standby) =
        (cluster.superuser_connection_string("postgres"), script.variable("TIDEGATE_TEST_STANDBY").to_owned());
    let value = |text: &str, name: &str| {
        text.split_whitespace().find_map(|pair| pair.strip_prefix(name)).expect("it is named").to_owned()
    };
    for hosts in [[&primary, &standby], [&standby, &primary]] {
        let list = |name: &str| hosts.map(|host| value(host, name)).join(",");
        let both = format!("host={} port={} user=postgres dbname=postgres", list("host="), list("port="));
        for (expected, is_standby) in [
            ("primary", "f"),
            ("read-write", "f"),
            ("standby", "t"),
            ("prefer-standby", "t"),
            ("read-only", "t"),
            // The first host in the list.
            ("any", if hosts[0] == &standby { "t" } else { "f" }),
        ] {
            let connected = connect(&format!("{both} target_session_attrs={expected}")).await;
            assert_eq!(query_value(&connected, "SELECT pg_is_in_recovery()").await, is_standby, "{expected}");
        }
    }
    let message = connect_error_text(&format!("{standby} target_session_attrs=primary")).await;
    assert!(message.contains("the server is not suitable for target_session_attrs=primary"), "{message}");
    let alone = format!("{primary} target_session_attrs=prefer-standby");
    assert_eq!(query_value(&connect(&alone).await, "SELECT pg_is_in_recovery()").await, "f");
    // The engine also works on a standby.
    let target = EnvironmentFixture::new().parse_target(&standby);
    let database = PostgresDatabase::open("shop", target, PostgresOptions::default()).unwrap();
    let node = OpenedDatabase { database: Arc::new(database) };
    assert_eq!(node.run_to_text("SELECT sum(i) FROM generate_series(1, 10) i").await, "55");
}

/// Runs a statement that would take an hour, cancels it, and sees that the server stopped it.
async fn assert_cancel_stops_statement(connected: OpenConnection) {
    let admin = connect(&superuser_string("")).await;
    let pid = query_value(&connected, "SELECT pg_backend_pid()").await;
    let running = format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {pid} AND state = 'active'");
    let canceller = connected.canceller();
    let sleeping = tokio::spawn(async move { connected.client().batch_execute("SELECT pg_sleep(3600)").await });
    wait_until("the start of the statement", || async { query_value(&admin, &running).await == "1" }).await;
    canceller.cancel().await.unwrap();
    let error = sleeping.await.unwrap().unwrap_err();
    assert_eq!(error.code().map(|code| code.code()), Some("57014"), "{error}");
    wait_until("the end of the statement", || async { query_value(&admin, &running).await == "0" }).await;
}

#[tokio::test]
async fn cancelling_stops_the_statement_over_a_socket() {
    assert_cancel_stops_statement(connect(&superuser_string("")).await).await;
}

#[tokio::test]
async fn cancelling_stops_the_statement_over_tls_and_without() {
    let role = make_role("cancel").await;
    let authority = authority_file().await;
    let mut modes = vec![("sslmode=disable".to_owned(), false), ("sslmode=prefer".to_owned(), authority.is_some())];
    if let Some(authority) = authority {
        modes.push(("sslmode=require".to_owned(), true));
        modes.push((format!("sslmode=verify-full sslrootcert={authority}"), true));
    }
    for (mode, encrypted) in modes {
        let connected =
            connect(&network_string(&format!("user={role} password=right-password dbname=postgres {mode}"))).await;
        assert_eq!(is_encrypted(&connected).await, encrypted, "{mode}");
        assert_cancel_stops_statement(connected).await;
    }
}

#[tokio::test]
async fn cancel_times_out() {
    // The address of the connection now leads to a server that never answers.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let role = make_role("bound").await;
    let text =
        format!("host=127.0.0.1 port={port} user={role} password=right-password dbname=postgres sslmode=disable");
    let forward = async {
        let (mut ours, _) = listener.accept().await.unwrap();
        let mut theirs = tokio::net::TcpStream::connect(("127.0.0.1", network_port())).await.unwrap();
        let _ = tokio::io::copy_bidirectional(&mut ours, &mut theirs).await;
    };
    let cancel = async {
        let connected = connect(&text).await;
        let canceller = connected.canceller();
        let error = canceller.cancel().await.unwrap_err();
        assert_eq!(error.to_string(), "no answer within 2 s");
        connected.close().await;
    };
    tokio::join!(forward, cancel);
}

async fn wait_for_backend_end(admin: &OpenConnection, pid: &str) {
    let count = format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {pid}");
    wait_until("the end of the backend", || async { query_value(admin, &count).await == "0" }).await;
}

#[tokio::test]
async fn dropped_or_closed_connection_terminates() {
    let admin = connect(&superuser_string("")).await;
    for closes in [true, false] {
        let connected = connect(&superuser_string("")).await;
        let pid = query_value(&connected, "SELECT pg_backend_pid()").await;
        if closes {
            connected.close().await;
        } else {
            drop(connected);
        }
        wait_for_backend_end(&admin, &pid).await;
    }
}

/// The driver would read up to the last row, and a server that computes does not notice that its client is gone.
#[tokio::test]
async fn dropped_connection_cancels_its_statement() {
    let admin = connect(&superuser_string("")).await;
    for query in ["SELECT pg_sleep(3600)", "SELECT generate_series(1, 1000000000)"] {
        let connected = connect(&superuser_string("")).await;
        let pid = query_value(&connected, "SELECT pg_backend_pid()").await;
        let active = format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {pid} AND state = 'active'");
        {
            // The rows stay unread, and the statement is not dropped before it runs.
            let requested = async {
                let _rows = connected.client().query_raw(query, Vec::<i32>::new()).await.unwrap();
                std::future::pending::<()>().await;
            };
            let started =
                wait_until("the start of the statement", || async { query_value(&admin, &active).await == "1" });
            tokio::select! {
                () = requested => unreachable!(),
                () = started => {}
            }
        }
        drop(connected);
        wait_for_backend_end(&admin, &pid).await;
    }
}

#[tokio::test]
async fn terminated_backend_closes_the_connection() {
    let admin = connect(&superuser_string("")).await;
    let connected = connect(&superuser_string("")).await;
    let pid = query_value(&connected, "SELECT pg_backend_pid()").await;
    query_value(&admin, &format!("SELECT pg_terminate_backend({pid})")).await;
    wait_until("the end of the connection", || async { connected.is_closed() }).await;
    connected.close().await;
}
