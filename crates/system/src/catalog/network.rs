//! The descriptions of `connections`, `listening_ports` and `interfaces`.

use super::{boolean, bytes, count, integer, text};
use crate::description::{SystemColumn, SystemColumnType, SystemParameter, SystemTableDescription};

pub(super) fn connections() -> SystemTableDescription {
    let mut columns = local_columns();
    columns.extend([
        text("remote_address", "The IP address of the other end.").good_filter(),
        count("remote_port", "The port of the other end.").good_filter(),
        text(
            "state",
            "established, syn_sent, syn_received, fin_wait_1, fin_wait_2, time_wait, close_wait, last_ack, closing or \
             closed. UDP sockets with a fixed other end are established.",
        )
        .good_filter(),
    ]);
    columns.extend(owner_columns());
    columns.extend([
        bytes("receive_queue_bytes", "Received bytes that the process has not read yet."),
        bytes("send_queue_bytes", "Sent bytes that the other end has not confirmed yet."),
    ]);
    SystemTableDescription {
        name: "connections".into(),
        description: "Open TCP connections and connected UDP sockets (IPv4 and IPv6) of the network namespace of this \
                      server, with their process; use it to find who is connected to what."
            .into(),
        columns,
        parameters: vec![protocol_parameter()],
    }
}

pub(super) fn listening_ports() -> SystemTableDescription {
    let mut columns = local_columns();
    columns.push(boolean(
        "is_loopback_only",
        "Whether only programs on this machine can connect, because the address is a loopback address.",
    ));
    columns.extend(owner_columns());
    columns.push(bytes(
        "receive_queue_bytes",
        "UDP: received bytes that the process has not read yet. TCP: null, as the kernel counts connections there.",
    ));
    columns.push(count("pending_connections", "TCP: connections that the process has not accepted yet. UDP: null."));
    SystemTableDescription {
        name: "listening_ports".into(),
        description:
            "TCP ports that accept connections and UDP ports that receive datagrams, in the network namespace \
                      of this server, with their process; use it to find which program serves a port."
                .into(),
        columns,
        parameters: vec![protocol_parameter()],
    }
}

pub(super) fn interfaces() -> SystemTableDescription {
    SystemTableDescription {
        name: "interfaces".into(),
        description:
            "Network interfaces with addresses, state, speed and counters since they were created; use it for \
                      traffic, errors and lost packets."
                .into(),
        columns: vec![
            text("name", "The name of the interface, such as eth0.").good_filter(),
            text("state", "up, down, dormant, testing, lower_layer_down, not_present or unknown (often loopback).")
                .good_filter(),
            text("mac_address", "The hardware address. Null if the interface has none."),
            text("addresses", "The IP addresses with the length of their prefix, separated by spaces."),
            count("mtu_bytes", "The size of the largest packet.").with_unit("bytes"),
            count("speed_bits_per_second", "The speed of the link. Null if unknown, as for virtual interfaces.")
                .with_unit("bits per second"),
            bytes("received_bytes", "Bytes received."),
            bytes("sent_bytes", "Bytes sent."),
            count("received_packets", "Packets received."),
            count("sent_packets", "Packets sent."),
            count("received_errors", "Received packets with errors."),
            count("sent_errors", "Packets that could not be sent because of errors."),
            count("received_drops", "Received packets that were dropped, such as for lack of memory."),
            count("sent_drops", "Packets that were dropped before they were sent."),
            count("collisions", "Collisions on the link."),
        ],
        parameters: Vec::new(),
    }
}

fn local_columns() -> Vec<SystemColumn> {
    vec![
        text("protocol", "tcp or udp.").good_filter(),
        text("network_type", "ipv4 or ipv6. IPv4 addresses within IPv6 sockets count as ipv4."),
        text("local_address", "The IP address on this machine. 0.0.0.0 and :: mean all addresses."),
        count("local_port", "The port on this machine.").good_filter(),
    ]
}

fn owner_columns() -> [SystemColumn; 3] {
    [
        integer(
            "pid",
            "The process that has the socket open, the lowest id if several have. Null if it has none (any more) or may \
             not be inspected: sockets of other users need root.",
        )
        .good_filter(),
        text("process_name", "The name of that process.").good_filter(),
        text("user_name", "The user who created the socket."),
    ]
}

fn protocol_parameter() -> SystemParameter {
    SystemParameter::new("protocol", SystemColumnType::Text, "Only this protocol. Default: both.")
        .with_options(["tcp", "udp"])
}
