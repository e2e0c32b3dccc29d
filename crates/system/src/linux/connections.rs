//! Reads `connections` and `listening_ports` from the socket tables of the kernel.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, Read as _};
use std::net::{IpAddr, SocketAddr};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use procfs::net::{TcpNetEntries, TcpState, UdpNetEntries, UdpState};
use procfs::process::FDTarget;
use procfs::{FromBufReadSI, current_system_info};

use super::users::UserNames;
use super::{ColumnReader, RowCallback, SystemPaths, SystemRowWriter, is_needed, unreadable};
use crate::catalog::SystemTable;
use crate::description::SystemValue;
use crate::read::{ReadOptions, ReadSummary, SystemError};

/// Sockets whose process is stored at most; further sockets have no process.
const SOCKET_OWNERS_MAX: usize = 262_144;
/// Bytes of one line of a socket table at most.
const LINE_BYTES_MAX: u64 = 1_024;
/// The parameter that selects a protocol.
const PROTOCOL_PARAMETER: &str = "protocol";

/// The socket tables, with their protocol.
const SOURCES: [(&str, Protocol); 4] = [
    ("/proc/net/tcp", Protocol::Tcp),
    ("/proc/net/tcp6", Protocol::Tcp),
    ("/proc/net/udp", Protocol::Udp),
    ("/proc/net/udp6", Protocol::Udp),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Tcp,
    Udp,
}

impl Protocol {
    fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
        }
    }
}

/// The process that has a socket open.
#[derive(Debug, Clone)]
struct SocketOwner {
    pid: i32,
    process_name: Arc<str>,
}

struct SocketRow {
    protocol: Protocol,
    local: SocketAddr,
    remote: SocketAddr,
    state: &'static str,
    is_listening: bool,
    receive_queue: u32,
    send_queue: u32,
    uid: u32,
    inode: u64,
    owner: Option<SocketOwner>,
    user_name: String,
}

const CONNECTION_COLUMNS: &[ColumnReader<SocketRow>] = &[
    ("protocol", |row| row.protocol.name().into()),
    ("network_type", network_type),
    ("local_address", |row| address(row.local)),
    ("local_port", |row| u32::from(row.local.port()).into()),
    ("remote_address", |row| address(row.remote)),
    ("remote_port", |row| u32::from(row.remote.port()).into()),
    ("state", |row| row.state.into()),
    ("pid", pid),
    ("process_name", process_name),
    ("user_name", |row| row.user_name.as_str().into()),
    ("receive_queue_bytes", |row| row.receive_queue.into()),
    ("send_queue_bytes", |row| row.send_queue.into()),
];

const LISTENING_COLUMNS: &[ColumnReader<SocketRow>] = &[
    ("protocol", |row| row.protocol.name().into()),
    ("network_type", network_type),
    ("local_address", |row| address(row.local)),
    ("local_port", |row| u32::from(row.local.port()).into()),
    ("is_loopback_only", |row| canonical(row.local).is_loopback().into()),
    ("pid", pid),
    ("process_name", process_name),
    ("user_name", |row| row.user_name.as_str().into()),
    // The kernel prints the number of waiting connections of a TCP socket in place of the bytes.
    ("receive_queue_bytes", |row| (row.protocol == Protocol::Udp).then_some(row.receive_queue).into()),
    ("pending_connections", |row| (row.protocol == Protocol::Tcp).then_some(row.receive_queue).into()),
];

pub(super) fn read(
    paths: &SystemPaths,
    table: SystemTable,
    options: &ReadOptions,
    on_row: RowCallback<'_>,
) -> Result<ReadSummary, SystemError> {
    let is_for_listening = table == SystemTable::ListeningPorts;
    let columns = if is_for_listening { LISTENING_COLUMNS } else { CONNECTION_COLUMNS };
    let needs_owners = is_needed(options, "pid") || is_needed(options, "process_name");
    let owners = if needs_owners { read_socket_owners() } else { HashMap::new() };
    let users = UserNames::read(paths);
    let protocol = options.parameters.get(PROTOCOL_PARAMETER).and_then(SystemValue::as_text);
    let mut writer = SystemRowWriter::new(table, columns, options, on_row);
    let mut failure = None;
    let mut has_source = false;
    for (source, of_source) in SOURCES {
        if protocol.is_some_and(|name| name != of_source.name()) {
            continue;
        }
        let path = Path::new(source);
        let flow = read_sockets(path, of_source, &mut |mut row| {
            if row.is_listening != is_for_listening {
                return ControlFlow::Continue(());
            }
            // The kernel lists sockets in parts, and may list one twice when others are closed in the meantime.
            row.owner = owners.get(&row.inode).cloned();
            row.user_name = users.name(row.uid);
            writer.write(&row)
        });
        match flow {
            Ok(ControlFlow::Break(())) => return Ok(writer.finish()),
            Ok(ControlFlow::Continue(())) => has_source = true,
            // A kernel without IPv6 has no tables for it.
            Err(error) => failure = Some(unreadable(table, path, error)),
        }
    }
    match failure {
        Some(error) if !has_source => Err(error),
        _ => Ok(writer.finish()),
    }
}

/// Parses line by line, so that memory does not grow with the table and a line of an unknown form loses only its row.
fn read_sockets(
    path: &Path,
    protocol: Protocol,
    on_socket: &mut dyn FnMut(SocketRow) -> ControlFlow<()>,
) -> std::io::Result<ControlFlow<()>> {
    let mut lines = BufReader::new(File::open(path)?);
    let mut line = Vec::new();
    // The heading.
    lines.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
    loop {
        // The library skips the first line.
        line.clear();
        line.push(b'\n');
        if lines.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)? == 0 {
            return Ok(ControlFlow::Continue(()));
        }
        let Some(row) = parse_socket(&line, protocol) else { continue };
        if on_socket(row).is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
}

fn parse_socket(line: &[u8], protocol: Protocol) -> Option<SocketRow> {
    match protocol {
        Protocol::Tcp => {
            let entry = parse_line::<TcpNetEntries>(line)?.0.pop()?;
            Some(SocketRow {
                protocol,
                local: entry.local_address,
                remote: entry.remote_address,
                state: tcp_state_name(&entry.state),
                is_listening: entry.state == TcpState::Listen,
                receive_queue: entry.rx_queue,
                send_queue: entry.tx_queue,
                uid: entry.uid,
                inode: entry.inode,
                owner: None,
                user_name: String::new(),
            })
        }
        Protocol::Udp => {
            let entry = parse_line::<UdpNetEntries>(line)?.0.pop()?;
            let is_connected = entry.state == UdpState::Established;
            Some(SocketRow {
                protocol,
                local: entry.local_address,
                remote: entry.remote_address,
                state: if is_connected { "established" } else { "closed" },
                is_listening: !is_connected,
                receive_queue: entry.rx_queue,
                send_queue: entry.tx_queue,
                uid: entry.uid,
                inode: entry.inode,
                owner: None,
                user_name: String::new(),
            })
        }
    }
}

fn parse_line<T: FromBufReadSI>(line: &[u8]) -> Option<T> {
    T::from_buf_read(Cursor::new(line), current_system_info()).ok()
}

/// The processes of all sockets by inode. Processes that may not be inspected are left out.
fn read_socket_owners() -> HashMap<u64, SocketOwner> {
    let mut owners = HashMap::new();
    let Ok(processes) = procfs::process::all_processes() else { return owners };
    for process in processes.flatten() {
        let Ok(descriptors) = process.fd() else { continue };
        let mut process_name: Option<Arc<str>> = None;
        for descriptor in descriptors.flatten() {
            let FDTarget::Socket(inode) = descriptor.target else { continue };
            if owners.len() >= SOCKET_OWNERS_MAX {
                return owners;
            }
            // The folder lists processes in the order of their ids.
            if let Entry::Vacant(entry) = owners.entry(inode) {
                let name = || process.stat().map(|stat| stat.comm.into()).unwrap_or_default();
                let process_name = process_name.get_or_insert_with(name).clone();
                entry.insert(SocketOwner { pid: process.pid, process_name });
            }
        }
    }
    owners
}

fn canonical(address: SocketAddr) -> IpAddr {
    address.ip().to_canonical()
}

fn address(address: SocketAddr) -> SystemValue {
    canonical(address).to_string().into()
}

fn network_type(row: &SocketRow) -> SystemValue {
    // The address `::` receives both, and is ipv6 like the socket.
    if canonical(row.local).is_ipv4() { "ipv4".into() } else { "ipv6".into() }
}

fn pid(row: &SocketRow) -> SystemValue {
    row.owner.as_ref().map(|owner| i64::from(owner.pid)).into()
}

fn process_name(row: &SocketRow) -> SystemValue {
    row.owner.as_ref().map(|owner| &*owner.process_name).filter(|name| !name.is_empty()).into()
}

fn tcp_state_name(state: &TcpState) -> &'static str {
    match state {
        TcpState::Established => "established",
        TcpState::SynSent => "syn_sent",
        TcpState::SynRecv | TcpState::NewSynRecv => "syn_received",
        TcpState::FinWait1 => "fin_wait_1",
        TcpState::FinWait2 => "fin_wait_2",
        TcpState::TimeWait => "time_wait",
        TcpState::Close => "closed",
        TcpState::CloseWait => "close_wait",
        TcpState::LastAck => "last_ack",
        TcpState::Listen => "listening",
        TcpState::Closing => "closing",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_other_forms_lose_only_their_row() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tcp6");
        let line = |number: u32, state: &str| {
            let mapped = "0000000000000000FFFF00000100007F";
            format!(
                "   {number}: {mapped}:1538 {mapped}:CF9C {state} 00000002:00000001 00:00000000 00000000  1000        0 77\n"
            )
        };
        let text = format!("  sl  local_address\n{}{}broken\n{}", line(0, "01"), line(1, "7F"), line(2, "06"));
        std::fs::write(&path, text).unwrap();
        let mut rows = Vec::new();
        let flow = read_sockets(&path, Protocol::Tcp, &mut |row| {
            rows.push(row);
            ControlFlow::Continue(())
        });
        assert!(flow.unwrap().is_continue());
        let states: Vec<_> = rows.iter().map(|row| row.state).collect();
        assert_eq!(states, ["established", "time_wait"]);
        let row = &rows[0];
        assert_eq!((address(row.local), row.local.port(), row.remote.port()), ("127.0.0.1".into(), 5432, 53148));
        assert_eq!((network_type(row), row.receive_queue, row.send_queue), ("ipv4".into(), 1, 2));
        assert_eq!((row.uid, row.inode), (1000, 77));
    }
}
