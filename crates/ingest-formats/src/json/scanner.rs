//! Where a value of JSON ends.

/// Finds the end of one object, array or string at a time. It continues where the bytes ended, and checks nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct JsonScanner {
    /// The next byte of the value.
    position: usize,
    depth: usize,
    is_in_string: bool,
}

impl JsonScanner {
    /// Begins the next value.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// The length of the value that `text` begins with. Nothing if it does not end in `text`, which then must be longer in
    /// the next call.
    pub fn scan(&mut self, text: &[u8]) -> Option<usize> {
        let Self { mut position, mut depth, mut is_in_string } = *self;
        let mut has_ended = false;
        while let (false, Some(byte)) = (has_ended, text.get(position)) {
            if is_in_string {
                let rest = text.get(position..).unwrap_or_default();
                let length = memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
                match rest.get(length..) {
                    // The next byte belongs to the backslash.
                    Some([b'\\', _, ..]) => position += length + 2,
                    Some([b'"', ..]) => {
                        position += length + 1;
                        is_in_string = false;
                        has_ended = depth == 0;
                    }
                    _ => {
                        position += length;
                        break;
                    }
                }
                continue;
            }
            position += 1;
            match byte {
                b'"' => is_in_string = true,
                b'{' | b'[' => depth += 1,
                b'}' | b']' => {
                    depth = depth.saturating_sub(1);
                    has_ended = depth == 0;
                }
                _ => {}
            }
        }
        *self = Self { position, depth, is_in_string };
        has_ended.then_some(position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_end_where_their_brackets_are_closed() {
        let table = [
            (r#"{"a":[1,{"b":"}"}]} {"#, Some(19)),
            (r#"["\"]",2],3"#, Some(9)),
            (r#""a\\",1"#, Some(5)),
            (r#"{"a":1"#, None),
            (r#"{"a":"\"#, None),
            ("", None),
        ];
        for (text, length) in table {
            assert_eq!(JsonScanner::default().scan(text.as_bytes()), length, "{text}");
            // Byte by byte.
            let mut scanner = JsonScanner::default();
            let found = (0..=text.len()).find_map(|end| scanner.scan(&text.as_bytes()[..end]));
            assert_eq!(found, length, "{text}");
        }
    }
}
