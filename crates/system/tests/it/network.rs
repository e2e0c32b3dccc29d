//! Sockets of this process; interfaces against `ip`.

use std::collections::BTreeSet;
use std::net::{TcpListener, TcpStream, UdpSocket};

use tidegate_system::{ReadOptions, SystemReader, SystemTable, SystemValue};

use crate::fixture::{NamedRow, number, output, read, read_with, text, texts, with_parameter};

/// The rows of sockets with this port on this machine, and where it is known with the port of the other end.
fn with_ports<'a>(rows: &'a [NamedRow], protocol: &str, local: u16, remote: Option<u16>) -> Vec<&'a NamedRow> {
    let is_port = |value: &SystemValue, port: u16| value.as_unsigned() == Some(port.into());
    rows.iter()
        .filter(|row| row["protocol"].as_text() == Some(protocol) && is_port(&row["local_port"], local))
        .filter(|row| remote.is_none_or(|port| is_port(&row["remote_port"], port)))
        .collect()
}

/// Readings of a socket table at most. The kernel lists sockets in parts, so that one may be missing from a reading, or
/// in it twice, when other tests open and close sockets in the meantime.
const READINGS_MAX: usize = 50;

/// The only row with these ports.
fn socket(table: SystemTable, protocol: &str, local: u16, remote: Option<u16>) -> NamedRow {
    let mut found = None;
    for _ in 0..READINGS_MAX {
        let rows = read(table);
        match with_ports(&rows, protocol, local, remote)[..] {
            [row] => return row.clone(),
            _ => found = Some(rows),
        }
    }
    panic!("one row for {protocol} port {local}: {found:#?}")
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
    let port = listener.local_addr().unwrap().port();
    let row = &socket(SystemTable::ListeningPorts, "tcp", port, None);
    assert_is_own(row);
    assert_eq!((text(row, "local_address"), text(row, "network_type")), ("127.0.0.1".into(), "ipv4".into()));
    assert_eq!(row["is_loopback_only"], SystemValue::Boolean(true));
    let (pending, queue) = (&row["pending_connections"], &row["receive_queue_bytes"]);
    assert_eq!((pending, queue), (&SystemValue::Unsigned(0), &SystemValue::Null));
    // Not a connection.
    assert!(with_ports(&read(SystemTable::Connections), "tcp", port, Some(0)).is_empty());
    let row = &socket(SystemTable::ListeningPorts, "udp", everywhere.local_addr().unwrap().port(), None);
    assert_is_own(row);
    assert_eq!(row["is_loopback_only"], SystemValue::Boolean(false));
}

#[test]
fn both_ends_of_a_connection_are_rows() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (server, _) = listener.accept().unwrap();
    for stream in [&client, &server] {
        let (local, remote) = (stream.local_addr().unwrap(), stream.peer_addr().unwrap());
        let row = &socket(SystemTable::Connections, "tcp", local.port(), Some(remote.port()));
        assert_is_own(row);
        assert_eq!(text(row, "remote_address"), remote.ip().to_string());
        assert_eq!(text(row, "state"), "established");
    }
}

#[test]
fn connected_udp_socket_is_a_connection() {
    let (client, server) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
    client.connect(server.local_addr().unwrap()).unwrap();
    let (local, remote) = (client.local_addr().unwrap(), server.local_addr().unwrap());
    let row = &socket(SystemTable::Connections, "udp", local.port(), Some(remote.port()));
    assert_is_own(row);
    assert_eq!(text(row, "state"), "established");
}

#[test]
fn ipv6_sockets_and_ipv4_within_them() {
    // A machine without IPv6 cannot open one.
    let Ok(listener) = TcpListener::bind("[::]:0") else { return };
    let port = listener.local_addr().unwrap().port();
    let row = &socket(SystemTable::ListeningPorts, "tcp", port, None);
    assert_eq!((text(row, "local_address"), text(row, "network_type")), ("::".into(), "ipv6".into()));
    let Ok(client) = TcpStream::connect(("127.0.0.1", port)) else { return };
    let (_server, _) = listener.accept().unwrap();
    let row = &socket(SystemTable::Connections, "tcp", port, Some(client.local_addr().unwrap().port()));
    assert_eq!((text(row, "local_address"), text(row, "network_type")), ("127.0.0.1".into(), "ipv4".into()));
}

#[test]
fn listening_ports_are_those_of_the_kernel() {
    let _listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut missing = BTreeSet::new();
    for _ in 0..READINGS_MAX {
        let before = kernel_listening_ports();
        let rows = read(SystemTable::ListeningPorts);
        let after = kernel_listening_ports();
        let tcp = rows.iter().filter(|row| row["protocol"].as_text() == Some("tcp"));
        let listed: BTreeSet<u64> = tcp.map(|row| number(row, "local_port")).collect();
        // Other tests open and close sockets in the meantime.
        missing = before.intersection(&after).copied().filter(|port| !listed.contains(port)).collect();
        if missing.is_empty() && !before.is_empty() {
            return;
        }
    }
    panic!("{missing:?} are not listed");
}

#[test]
fn listening_ports_are_those_of_ss() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let Some(sockets) = output("ss", &["-H", "-t", "-l", "-n", "-p"]) else { return };
    let address = listener.local_addr().unwrap();
    let Some(line) = sockets.lines().find(|line| line.contains(&address.to_string())) else { return };
    let row = &socket(SystemTable::ListeningPorts, "tcp", address.port(), None);
    // `users:(("it",pid=1,fd=4))`
    let owner = format!("((\"{}\",pid={},", text(row, "process_name"), number(row, "pid"));
    assert!(line.contains(&owner), "{line} {row:?}");
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
    let _listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let _receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
    for protocol in ["tcp", "udp"] {
        let options = with_parameter("protocol", protocol);
        let (rows, _) = read_with(&SystemReader::new(), SystemTable::ListeningPorts, &options);
        assert_eq!(texts(&rows, "protocol").into_iter().collect::<Vec<_>>(), [protocol]);
    }
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
