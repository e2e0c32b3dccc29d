//! Reads `interfaces`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::read_dir;
use std::net::IpAddr;
use std::path::PathBuf;

use nix::ifaddrs::getifaddrs;
use nix::sys::socket::SockaddrStorage;

use super::{ColumnReader, RowCallback, SystemPaths, SystemRowWriter, read_small, read_value, unreadable};
use crate::catalog::SystemTable;
use crate::description::SystemValue;
use crate::read::{ReadOptions, ReadSummary, SystemError};

/// Interfaces at most.
const INTERFACES_MAX: usize = 16_384;
/// Addresses of one interface at most.
const ADDRESSES_MAX: usize = 256;
/// The kernel reports megabits.
const BITS_PER_MEGABIT: u64 = 1_000_000;

struct InterfaceRow {
    name: String,
    folder: PathBuf,
    addresses: BTreeSet<String>,
}

const COLUMNS: &[ColumnReader<InterfaceRow>] = &[
    ("name", |row| row.name.as_str().into()),
    ("state", |row| read_small(&row.folder.join("operstate")).map(|state| state_name(&state)).into()),
    ("mac_address", |row| read_small(&row.folder.join("address")).filter(|address| !is_empty_mac(address)).into()),
    ("addresses", addresses),
    ("mtu_bytes", |row| read_value::<u64>(&row.folder.join("mtu")).into()),
    ("speed_bits_per_second", |row| speed(row).into()),
    ("received_bytes", |row| counter(row, "rx_bytes")),
    ("sent_bytes", |row| counter(row, "tx_bytes")),
    ("received_packets", |row| counter(row, "rx_packets")),
    ("sent_packets", |row| counter(row, "tx_packets")),
    ("received_errors", |row| counter(row, "rx_errors")),
    ("sent_errors", |row| counter(row, "tx_errors")),
    ("received_drops", |row| counter(row, "rx_dropped")),
    ("sent_drops", |row| counter(row, "tx_dropped")),
    ("collisions", |row| counter(row, "collisions")),
];

pub(super) fn read(
    paths: &SystemPaths,
    options: &ReadOptions,
    on_row: RowCallback<'_>,
) -> Result<ReadSummary, SystemError> {
    let folder = paths.sys.join("class/net");
    let entries = read_dir(&folder).map_err(|error| unreadable(SystemTable::Interfaces, &folder, error))?;
    let interfaces: BTreeMap<String, PathBuf> = entries
        .flatten()
        .take(INTERFACES_MAX)
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path()))
        // The folder also has files, such as that of bonded interfaces.
        .filter(|(_, path)| path.is_dir())
        .collect();
    let mut addresses = read_addresses();
    let mut writer = SystemRowWriter::new(SystemTable::Interfaces, COLUMNS, options, on_row);
    for (name, folder) in interfaces {
        let addresses = addresses.remove(&name).unwrap_or_default();
        if writer.write(&InterfaceRow { name, folder, addresses }).is_break() {
            break;
        }
    }
    Ok(writer.finish())
}

/// The IP addresses of each interface, as `address/prefix length`.
fn read_addresses() -> HashMap<String, BTreeSet<String>> {
    let mut addresses: HashMap<String, BTreeSet<String>> = HashMap::new();
    let Ok(interfaces) = getifaddrs() else { return addresses };
    for interface in interfaces {
        let Some(ip) = interface.address.as_ref().and_then(ip_address) else { continue };
        // A label of an interface, such as eth0:1, belongs to the interface.
        let name = interface.interface_name.split(':').next().unwrap_or_default().to_owned();
        let prefix = interface.netmask.as_ref().and_then(ip_address).map(prefix_length);
        let text = prefix.map_or_else(|| ip.to_string(), |prefix| format!("{ip}/{prefix}"));
        let of_interface = addresses.entry(name).or_default();
        if of_interface.len() < ADDRESSES_MAX {
            of_interface.insert(text);
        }
    }
    addresses
}

fn ip_address(address: &SockaddrStorage) -> Option<IpAddr> {
    let v4 = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
    v4.or_else(|| address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))
}

fn prefix_length(mask: IpAddr) -> u32 {
    match mask {
        IpAddr::V4(mask) => mask.to_bits().leading_ones(),
        IpAddr::V6(mask) => mask.to_bits().leading_ones(),
    }
}

fn addresses(row: &InterfaceRow) -> SystemValue {
    let addresses: Vec<&str> = row.addresses.iter().map(String::as_str).collect();
    (!addresses.is_empty()).then(|| addresses.join(" ")).into()
}

/// The kernel writes `lowerlayerdown` and `notpresent` in one word.
fn state_name(state: &str) -> String {
    match state {
        "lowerlayerdown" => "lower_layer_down".to_owned(),
        "notpresent" => "not_present".to_owned(),
        state => state.to_owned(),
    }
}

fn is_empty_mac(address: &str) -> bool {
    address.chars().all(|character| matches!(character, '0' | ':'))
}

/// An unknown speed is -1 or cannot be read.
fn speed(row: &InterfaceRow) -> Option<u64> {
    let megabits = read_value::<i64>(&row.folder.join("speed"))?;
    u64::try_from(megabits).ok()?.checked_mul(BITS_PER_MEGABIT).filter(|speed| *speed > 0)
}

fn counter(row: &InterfaceRow, name: &str) -> SystemValue {
    read_value::<u64>(&row.folder.join("statistics").join(name)).into()
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::*;
    use crate::linux::row_text;

    #[test]
    fn interfaces_of_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let net = folder.path().join("class/net");
        let write = |path: &str, text: &str| {
            let path = net.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("test0/operstate", "lowerlayerdown\n");
        write("test0/address", "02:42:ac:11:00:02\n");
        write("test0/mtu", "1500\n");
        write("test0/speed", "10000\n");
        write("test0/statistics/rx_bytes", "18446744073709551615\n");
        write("test0/statistics/tx_dropped", "4\n");
        write("test1/operstate", "unknown\n");
        write("test1/address", "00:00:00:00:00:00\n");
        write("test1/speed", "-1\n");
        write("bonding_masters", "\n");
        let paths = SystemPaths { sys: folder.path().to_owned(), ..SystemPaths::default() };
        let mut rows = Vec::new();
        read(&paths, &ReadOptions::default(), &mut |row| {
            rows.push(row_text(&row));
            ControlFlow::Continue(())
        })
        .unwrap();
        insta::assert_snapshot!(rows.join("\n"), @r#"
        "test0" "lower_layer_down" "02:42:ac:11:00:02" null 1500 10000000000 18446744073709551615 null null null null null null 4 null
        "test1" "unknown" null null null null null null null null null null null null null
        "#);
    }

    #[test]
    fn prefixes_of_masks() {
        let prefix = |mask: &str| prefix_length(mask.parse().unwrap());
        assert_eq!((prefix("255.255.240.0"), prefix("0.0.0.0"), prefix("ffff:ffff:ffff:ffff::")), (20, 0, 64));
    }
}
