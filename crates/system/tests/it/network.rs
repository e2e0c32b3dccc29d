//! Sockets of this process; interfaces against `ip`.

use std::collections::BTreeSet;
use std::net::{TcpListener, TcpStream, UdpSocket};

use tidegate_system::{ReadOptions, SystemReader, SystemTable, SystemValue};

use crate::fixture::{NamedRow, number, output, read, read_with, text, texts, with_parameter};

fn with_port<'a>(rows: &'a [NamedRow], protocol: &str, column: &str, port: u16) -> Vec<&'a NamedRow> {
    let has_port = |row: &&NamedRow| row[column].as_unsigned() == Some(port.into());
    rows.iter().filter(has_port).filter(|row| row["protocol"].as_text() == Some(protocol)).collect()
}

fn assert_is_own(row: &NamedRow) {
    assert_eq!(number(row, "pid"), u64::from(std::process::id()), "{row:?}");
    let name = std::fs::read_to_string("/proc/self/comm").unwrap();
    assert_eq!(text(row, "process_name"), name.trim_end());
}

#[test]
fn listening_socket_has_its_port_and_process() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let everywhere = UdpSocket::bind("0.0.0.0:0").unwrap();
    let rows = read(SystemTable::ListeningPorts);
    let port = listener.local_addr().unwrap().port();
    let [row] = with_port(&rows, "tcp", "local_port", port)[..] else { panic!("one row for port {port}: {rows:#?}") };
    assert_is_own(row);
    assert_eq!((text(row, "local_address"), text(row, "network_type")), ("127.0.0.1".into(), "ipv4".into()));
    assert_eq!(row["is_loopback_only"], SystemValue::Boolean(true));
    assert_eq!(
        (&row["pending_connections"], &row["receive_queue_bytes"]),
        (&SystemValue::Unsigned(0), &SystemValue::Null)
    );
    let port = everywhere.local_addr().unwrap().port();
    let [row] = with_port(&rows, "udp", "local_port", port)[..] else { panic!("one row for port {port}: {rows:#?}") };
    assert_is_own(row);
    assert_eq!(row["is_loopback_only"], SystemValue::Boolean(false));
    // Not a connection.
    let connections = read(SystemTable::Connections);
    assert!(with_port(&connections, "tcp", "local_port", listener.local_addr().unwrap().port()).is_empty());
}

#[test]
fn both_ends_of_a_connection_are_rows() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (server, _) = listener.accept().unwrap();
    let rows = read(SystemTable::Connections);
    for stream in [&client, &server] {
        let (local, remote) = (stream.local_addr().unwrap(), stream.peer_addr().unwrap());
        let found = with_port(&rows, "tcp", "local_port", local.port());
        let [row] = found[..] else { panic!("one row for {local}: {found:#?}") };
        assert_is_own(row);
        assert_eq!(number(row, "remote_port"), u64::from(remote.port()));
        assert_eq!(text(row, "remote_address"), remote.ip().to_string());
        assert_eq!(text(row, "state"), "established");
    }
}

#[test]
fn ipv6_sockets_and_ipv4_within_them() {
    // A machine without IPv6 cannot open one.
    let Ok(listener) = TcpListener::bind("[::]:0") else { return };
    let port = listener.local_addr().unwrap().port();
    let rows = read(SystemTable::ListeningPorts);
    let [row] = with_port(&rows, "tcp", "local_port", port)[..] else { panic!("one row for port {port}") };
    assert_eq!((text(row, "local_address"), text(row, "network_type")), ("::".into(), "ipv6".into()));
    let Ok(client) = TcpStream::connect(("127.0.0.1", port)) else { return };
    let (_server, _) = listener.accept().unwrap();
    let rows = read(SystemTable::Connections);
    let [row] = with_port(&rows, "tcp", "remote_port", client.local_addr().unwrap().port())[..] else {
        panic!("one row for the end of the server")
    };
    assert_eq!((text(row, "local_address"), text(row, "network_type")), ("127.0.0.1".into(), "ipv4".into()));
}

#[test]
fn listening_ports_are_those_of_the_kernel() {
    let _listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let before = kernel_listening_ports();
    let rows = read(SystemTable::ListeningPorts);
    let after = kernel_listening_ports();
    let tcp = rows.iter().filter(|row| row["protocol"].as_text() == Some("tcp"));
    let listed: BTreeSet<u64> = tcp.map(|row| number(row, "local_port")).collect();
    // Other tests open and close sockets in the meantime.
    assert!(
        !before.is_empty() && before.intersection(&after).all(|port| listed.contains(port)),
        "{before:?} {listed:?}"
    );
    if let Some(sockets) = output("ss", &["-H", "-t", "-l", "-n"]) {
        let local = |line: &str| line.split_whitespace().nth(3).unwrap().to_owned();
        let ports = sockets.lines().filter_map(|line| local(line).rsplit(':').next().unwrap().parse().ok());
        let ports: BTreeSet<u64> = ports.collect();
        assert!(ports.intersection(&before).all(|port| listed.contains(port)), "{ports:?} {listed:?}");
    }
}

/// The ports of listening TCP sockets in `/proc/net/tcp`.
fn kernel_listening_ports() -> BTreeSet<u64> {
    let text = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let lines = text.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    let listening = lines.filter(|fields| fields[3] == "0A");
    listening.map(|fields| u64::from_str_radix(fields[1].rsplit(':').next().unwrap(), 16).unwrap()).collect()
}

#[test]
fn protocol_can_be_selected() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let rows = |protocol: &str| {
        read_with(&SystemReader::new(), SystemTable::ListeningPorts, &with_parameter("protocol", protocol)).0
    };
    assert_eq!(with_port(&rows("tcp"), "tcp", "local_port", port).len(), 1);
    assert!(rows("udp").iter().all(|row| text(row, "protocol") == "udp"));
}

#[test]
fn processes_of_sockets_are_not_searched_without_need() {
    let _listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let options = ReadOptions { columns: Some(vec!["local_port".to_owned()]), ..ReadOptions::default() };
    let (rows, _) = read_with(&SystemReader::new(), SystemTable::ListeningPorts, &options);
    assert!(!rows.is_empty() && rows.iter().all(|row| row["pid"].is_null() && row["process_name"].is_null()));
}

#[test]
fn interfaces_agree_with_ip() {
    let rows = read(SystemTable::Interfaces);
    let loopback = rows.iter().find(|row| row["name"].as_text() == Some("lo")).expect("there is a loopback interface");
    assert!(loopback["mac_address"].is_null() && number(loopback, "mtu_bytes") > 0, "{loopback:?}");
    let Some(links) = output("ip", &["-o", "link"]) else { return };
    // `eth0@if12` is interface eth0.
    let name = |line: &str| line.split(": ").nth(1).unwrap().split('@').next().unwrap().to_owned();
    assert_eq!(texts(&rows, "name"), links.lines().map(name).collect());
    for line in output("ip", &["-o", "addr"]).unwrap_or_default().lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, interface, "inet" | "inet6", address, ..] = fields[..] else { continue };
        // The other end of a point-to-point link has its own word.
        if fields.contains(&"peer") {
            continue;
        }
        let row = rows.iter().find(|row| row["name"].as_text() == Some(interface)).unwrap();
        assert!(text(row, "addresses").split(' ').any(|other| other == address), "{address}: {row:?}");
    }
}

#[test]
fn interface_counters_agree_with_proc() {
    let before = device_counters();
    let rows = read(SystemTable::Interfaces);
    let after = device_counters();
    for (name, (received, sent)) in before {
        let Some(row) = rows.iter().find(|row| row["name"].as_text() == Some(&name)) else { continue };
        let Some((received_after, sent_after)) = after.iter().find(|(other, _)| *other == name).map(|(_, of)| *of)
        else {
            continue;
        };
        // The counters grow between the readings.
        assert!((received..=received_after).contains(&number(row, "received_bytes")), "{row:?}");
        assert!((sent..=sent_after).contains(&number(row, "sent_bytes")), "{row:?}");
    }
}

/// The received and sent bytes of each interface in `/proc/net/dev`.
fn device_counters() -> Vec<(String, (u64, u64))> {
    let text = std::fs::read_to_string("/proc/net/dev").unwrap();
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    let counters = |fields: &str| {
        let fields: Vec<u64> = fields.split_whitespace().map(|field| field.parse().unwrap()).collect();
        (fields[0], fields[8])
    };
    lines.map(|(name, fields)| (name.trim().to_owned(), counters(fields))).collect()
}
