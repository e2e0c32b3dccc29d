//! `inet` and `cidr` as PostgreSQL writes them.

use std::io::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::raw::{ValueReader, exactly};
use super::value_error::ValueError;

const IPV4: u8 = 2;
const IPV6: u8 = 3;

/// Writes the address, with the length of its network where that says something.
pub(super) fn write_inet(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), ValueError> {
    let mut reader = ValueReader(bytes);
    let (family, bits, is_network, length) = (reader.byte()?, reader.byte()?, reader.byte()? != 0, reader.byte()?);
    if reader.0.len() != usize::from(length) {
        return Err(ValueError::Malformed);
    }
    // Writing to a Vec cannot fail; below too.
    let bits_max = match family {
        IPV4 => {
            let _ = write!(out, "{}", Ipv4Addr::from(exactly(reader.0)?));
            32
        }
        IPV6 => {
            write_ipv6(exactly(reader.0)?, out);
            128
        }
        _ => return Err(ValueError::Malformed),
    };
    if is_network || bits != bits_max {
        let _ = write!(out, "/{bits}");
    }
    Ok(())
}

/// The standard library writes addresses as PostgreSQL does, except those that end in one of IPv4 after six groups of
/// zeros.
fn write_ipv6(bytes: [u8; 16], out: &mut Vec<u8>) {
    let _ = match bytes {
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, a, b, c, d] if (a, b) != (0, 0) => {
            write!(out, "::{}", Ipv4Addr::new(a, b, c, d))
        }
        bytes => write!(out, "{}", Ipv6Addr::from(bytes)),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(family: u8, bits: u8, is_network: u8, address: &[u8]) -> Result<String, ValueError> {
        let mut out = Vec::new();
        let head = [family, bits, is_network, address.len() as u8];
        write_inet(&[&head, address].concat(), &mut out)?;
        Ok(String::from_utf8(out).unwrap())
    }

    fn ipv6(groups: [u16; 8]) -> String {
        text(IPV6, 128, 0, &groups.map(u16::to_be_bytes).concat()).unwrap()
    }

    #[test]
    fn prefix_length_is_written_for_networks() {
        assert_eq!(text(IPV4, 32, 0, &[10, 0, 0, 1]).unwrap(), "10.0.0.1");
        assert_eq!(text(IPV4, 24, 0, &[10, 0, 0, 1]).unwrap(), "10.0.0.1/24");
        assert_eq!(text(IPV4, 32, 1, &[10, 0, 0, 1]).unwrap(), "10.0.0.1/32");
        assert_eq!(text(IPV4, 32, 0, &[10, 0, 0]), Err(ValueError::Malformed));
        assert_eq!(text(9, 32, 0, &[10, 0, 0, 1]), Err(ValueError::Malformed));
    }

    #[test]
    fn first_longest_zero_run_is_compressed() {
        assert_eq!(ipv6([0; 8]), "::");
        assert_eq!(ipv6([0, 0, 0, 0, 0, 0, 0, 1]), "::1");
        assert_eq!(ipv6([1, 0, 0, 0, 0, 0, 0, 0]), "1::");
        assert_eq!(ipv6([1, 0, 0, 2, 0, 0, 3, 0]), "1::2:0:0:3:0");
        assert_eq!(ipv6([1, 0, 2, 3, 4, 5, 6, 7]), "1:0:2:3:4:5:6:7");
        assert_eq!(ipv6([0, 0, 0, 0, 0, 0xffff, 0x102, 0x304]), "::ffff:1.2.3.4");
        assert_eq!(ipv6([0, 0, 0, 0, 0, 0, 0x102, 0x304]), "::1.2.3.4");
    }
}
