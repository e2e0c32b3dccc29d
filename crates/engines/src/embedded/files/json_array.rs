//! Converts a JSON array of objects to a sequence of objects while it is read.
//!
//! Only the bytes between top-level values change, each into one other byte: brackets and commas become white space. So
//! nothing is buffered, and byte positions stay the same.

use std::io::{self, BufRead, BufReader, Read};

/// A reader that converts `[{…}, {…}]` to `{…}
/// {…}`.
pub(crate) struct ArrayElements<R> {
    inner: R,
    state: ArrayState,
    depth: usize,
    in_text: bool,
    escaped: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum ArrayState {
    Before,
    Within,
    After,
}

const BUFFER_BYTES: usize = 64 * 1_024;

impl<R: Read> ArrayElements<R> {
    pub(crate) fn open(inner: R) -> impl BufRead {
        let elements = Self { inner, state: ArrayState::Before, depth: 0, in_text: false, escaped: false };
        BufReader::with_capacity(BUFFER_BYTES, elements)
    }

    fn convert_byte(&mut self, byte: u8) -> io::Result<u8> {
        match self.state {
            ArrayState::Within => return Ok(self.convert_byte_in_array(byte)),
            ArrayState::Before if byte == b'[' => self.state = ArrayState::Within,
            ArrayState::Before | ArrayState::After if byte.is_ascii_whitespace() => {}
            ArrayState::Before => return Err(malformed("there is text before the array")),
            ArrayState::After => return Err(malformed("there is text after the array")),
        }
        Ok(b' ')
    }

    fn convert_byte_in_array(&mut self, byte: u8) -> u8 {
        if self.in_text {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_text = false,
                _ => {}
            }
            return byte;
        }
        match byte {
            b'"' => self.in_text = true,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' if self.depth > 0 => self.depth -= 1,
            b']' => {
                self.state = ArrayState::After;
                return b'\n';
            }
            b',' if self.depth == 0 => return b'\n',
            _ => {}
        }
        byte
    }
}

impl<R: Read> Read for ArrayElements<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        if read == 0 && !buffer.is_empty() && self.state == ArrayState::Within {
            return Err(malformed("the array is not closed; the file is cut off"));
        }
        for byte in &mut buffer[..read] {
            *byte = self.convert_byte(*byte)?;
        }
        Ok(read)
    }
}

fn malformed(subject: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, subject)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elements(text: &str) -> Result<String, String> {
        let mut all = String::new();
        ArrayElements::open(text.as_bytes()).read_to_string(&mut all).map_err(|error| error.to_string())?;
        Ok(all.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn reads_array_elements_one_by_one() {
        assert_eq!(elements(r#" [{"a":[1,2],"b":"],\""},{"a":[]}] "#), Ok(r#"{"a":[1,2],"b":"],\""} {"a":[]}"#.into()));
        assert_eq!(elements("[]"), Ok(String::new()));
        assert_eq!(elements(""), Ok(String::new()));
    }

    #[test]
    fn rejects_text_that_is_not_one_array() {
        assert!(elements(r#"[{"a":1}"#).unwrap_err().contains("cut off"));
        assert!(elements(r#"[{"a":1}] [2]"#).unwrap_err().contains("after the array"));
        assert!(elements(r#"{"a":1}"#).unwrap_err().contains("before the array"));
    }
}
