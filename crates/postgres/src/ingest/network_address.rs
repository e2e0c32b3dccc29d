//! `inet` and `cidr` from their text.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::encode::Misfit;

const IPV4: u8 = 2;
const IPV6: u8 = 3;

/// Appends the address `text`, such as `10.0.0.1` or `fe80::/10`.
pub(super) fn write(text: &str, is_network: bool, out: &mut Vec<u8>) -> Result<(), Misfit> {
    let misfit = || Misfit::new("the text is no address of IPv4 or IPv6");
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) if bits.bytes().all(|byte| byte.is_ascii_digit()) => (address, Some(bits)),
        Some(_) => return Err(misfit()),
        None => (text, None),
    };
    let address: IpAddr = address.parse().map_err(|_| misfit())?;
    let (family, bits_max) = match address {
        IpAddr::V4(_) => (IPV4, Ipv4Addr::BITS),
        IpAddr::V6(_) => (IPV6, Ipv6Addr::BITS),
    };
    let bits = bits.map_or(Ok(bits_max), |bits| bits.parse().map_err(|_| misfit()))?;
    if bits > bits_max {
        return Err(misfit());
    }
    // The bounds keep them within 8 bits.
    let mut append = |bytes: &[u8]| {
        out.extend_from_slice(&[family, bits as u8, u8::from(is_network), bytes.len() as u8]);
        out.extend_from_slice(bytes);
    };
    match address {
        IpAddr::V4(address) => append(&address.octets()),
        IpAddr::V6(address) => append(&address.octets()),
    }
    Ok(())
}
