//! Spatial values: the id of their reference system and their well-known binary form, as well-known text.
//!
//! Coordinates are written as they are stored. MySQL itself writes those of geographic systems in the order of the system.

use std::fmt::Write as _;

/// The bytes of the id before the binary form.
const SYSTEM_ID_BYTES: usize = 4;
/// The maximum depth of collections.
const DEPTH_MAX: usize = 16;

/// The text of a spatial value; `None` if the bytes are none.
pub(super) fn geometry_text(bytes: &[u8]) -> Option<String> {
    let mut reader = GeometryReader { bytes: bytes.get(SYSTEM_ID_BYTES..)?, is_little_endian: true };
    let mut text = String::new();
    reader.write_geometry(DEPTH_MAX, &mut text)?;
    reader.bytes.is_empty().then_some(text)
}

struct GeometryReader<'a> {
    bytes: &'a [u8],
    is_little_endian: bool,
}

impl GeometryReader<'_> {
    fn write_geometry(&mut self, depth_left: usize, out: &mut String) -> Option<()> {
        match self.read_type()? {
            1 => {
                out.push_str("POINT");
                self.write_parts(1, Self::write_point, out)
            }
            2 => {
                out.push_str("LINESTRING");
                self.write_points(out)
            }
            3 => {
                out.push_str("POLYGON");
                self.write_rings(out)
            }
            4 => {
                out.push_str("MULTIPOINT");
                self.write_list(|reader, out| reader.write_member(1, Self::write_point, out), out)
            }
            5 => {
                out.push_str("MULTILINESTRING");
                self.write_list(|reader, out| reader.write_member(2, Self::write_points, out), out)
            }
            6 => {
                out.push_str("MULTIPOLYGON");
                self.write_list(|reader, out| reader.write_member(3, Self::write_rings, out), out)
            }
            7 => {
                out.push_str("GEOMETRYCOLLECTION");
                let depth_left = depth_left.checked_sub(1)?;
                self.write_list(|reader, out| reader.write_geometry(depth_left, out), out)
            }
            _ => None,
        }
    }

    fn write_rings(&mut self, out: &mut String) -> Option<()> {
        self.write_list(Self::write_points, out)
    }

    fn write_points(&mut self, out: &mut String) -> Option<()> {
        self.write_list(Self::write_point, out)
    }

    fn write_point(&mut self, out: &mut String) -> Option<()> {
        let (x, y) = (self.read_f64()?, self.read_f64()?);
        // Writing to a string does not fail.
        let _ = write!(out, "{x} {y}");
        Some(())
    }

    /// The parts of a list, whose number comes first.
    fn write_list(&mut self, write: impl Fn(&mut Self, &mut String) -> Option<()>, out: &mut String) -> Option<()> {
        let count = self.read_u32()?;
        self.write_parts(count, write, out)
    }

    fn write_parts(
        &mut self,
        count: u32,
        write: impl Fn(&mut Self, &mut String) -> Option<()>,
        out: &mut String,
    ) -> Option<()> {
        if count == 0 {
            out.push_str(" EMPTY");
            return Some(());
        }
        out.push('(');
        for index in 0..count {
            if index > 0 {
                out.push(',');
            }
            write(self, out)?;
        }
        out.push(')');
        Some(())
    }

    /// A member of a multiple geometry, with a header of its own.
    fn write_member(
        &mut self,
        kind: u32,
        write: impl Fn(&mut Self, &mut String) -> Option<()>,
        out: &mut String,
    ) -> Option<()> {
        if self.read_type()? != kind {
            return None;
        }
        write(self, out)
    }

    /// The byte order and the type.
    fn read_type(&mut self) -> Option<u32> {
        let (order, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        self.is_little_endian = *order == 1;
        self.read_u32()
    }

    fn read_u32(&mut self) -> Option<u32> {
        let bytes = self.read()?;
        Some(if self.is_little_endian { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) })
    }

    fn read_f64(&mut self) -> Option<f64> {
        let bytes = self.read()?;
        Some(if self.is_little_endian { f64::from_le_bytes(bytes) } else { f64::from_be_bytes(bytes) })
    }

    fn read<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (value, rest) = self.bytes.split_first_chunk::<N>()?;
        self.bytes = rest;
        Some(*value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header in little endian.
    fn header(kind: u32) -> Vec<u8> {
        [&[1_u8][..], &kind.to_le_bytes()[..]].concat()
    }

    fn point(x: f64, y: f64) -> Vec<u8> {
        [x.to_le_bytes(), y.to_le_bytes()].concat()
    }

    fn count(count: u32) -> Vec<u8> {
        count.to_le_bytes().to_vec()
    }

    fn text(parts: &[Vec<u8>]) -> Option<String> {
        geometry_text(&[vec![0; SYSTEM_ID_BYTES], parts.concat()].concat())
    }

    #[test]
    fn geometries_become_text() {
        assert_eq!(text(&[header(1), point(1.0, -2.5)]).as_deref(), Some("POINT(1 -2.5)"));
        let line = [header(2), count(2), point(0.0, 0.0), point(1.0, 1.0)];
        assert_eq!(text(&line).as_deref(), Some("LINESTRING(0 0,1 1)"));
        let polygon = [header(3), count(1), count(2), point(0.0, 0.0), point(1.0, 0.0)];
        assert_eq!(text(&polygon).as_deref(), Some("POLYGON((0 0,1 0))"));
        let points = [header(4), count(1), header(1), point(1.0, 2.0)];
        assert_eq!(text(&points).as_deref(), Some("MULTIPOINT(1 2)"));
        let polygons = [header(6), count(1), header(3), count(1), count(1), point(1.0, 2.0)];
        assert_eq!(text(&polygons).as_deref(), Some("MULTIPOLYGON(((1 2)))"));
        let collection = [header(7), count(2), header(1), point(1.0, 2.0), header(7), count(0)];
        let expected = "GEOMETRYCOLLECTION(POINT(1 2),GEOMETRYCOLLECTION EMPTY)";
        assert_eq!(text(&collection).as_deref(), Some(expected));
    }

    #[test]
    fn other_bytes_are_no_geometry() {
        assert_eq!(text(&[]), None);
        assert_eq!(text(&[header(9)]), None);
        assert_eq!(text(&[header(1), point(1.0, 2.0), vec![0]]), None);
        assert_eq!(text(&[header(2), count(u32::MAX), point(1.0, 2.0)]), None);
        let nested: Vec<Vec<u8>> = (0..100).flat_map(|_| [header(7), count(1)]).collect();
        assert_eq!(text(&nested), None);
    }
}
