//! Where a record of CSV ends.

/// Follows quotes in two ways: by where they may open and close a field, and by their number. A record ends only where
/// both agree, so that a quote in the wrong position never leads to a cut within a field.
#[derive(Debug)]
pub(super) struct CsvScan {
    delimiter: u8,
    state: ScanState,
    has_odd_quotes: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScanState {
    FieldStart,
    Plain,
    Quoted,
    /// After a quote within quotes: the closing one, or the first of two.
    Quote,
}

const QUOTE: u8 = b'"';

impl CsvScan {
    /// A scan that begins where a record begins.
    pub(super) fn new(delimiter: u8) -> Self {
        Self { delimiter, state: ScanState::FieldStart, has_odd_quotes: false }
    }

    /// Whether a record ends with `byte`, the next one.
    pub(super) fn ends_record(&mut self, byte: u8) -> bool {
        if byte == QUOTE {
            self.has_odd_quotes = !self.has_odd_quotes;
            self.state = match self.state {
                ScanState::FieldStart | ScanState::Quote => ScanState::Quoted,
                ScanState::Quoted => ScanState::Quote,
                ScanState::Plain => ScanState::Plain,
            };
            return false;
        }
        if self.state == ScanState::Quoted {
            return false;
        }
        self.state = match byte == self.delimiter || byte == b'\n' {
            true => ScanState::FieldStart,
            false => ScanState::Plain,
        };
        byte == b'\n' && !self.has_odd_quotes
    }
}

#[cfg(test)]
mod tests {
    use super::CsvScan;

    fn ends(text: &str) -> Vec<usize> {
        let mut scan = CsvScan::new(b',');
        text.bytes().enumerate().filter(|(_, byte)| scan.ends_record(*byte)).map(|(index, _)| index).collect()
    }

    #[test]
    fn records_end_outside_of_quotes() {
        assert_eq!(ends("a,b\n1,2\n"), [3, 7]);
        assert_eq!(ends("\"a\nb\",2\n3\n"), [7, 9]);
        assert_eq!(ends("\"a\"\"\n\"\"b\"\r\n3\n"), [10, 12]);
        // A quote within a field without quotes: no end is certain until the next such one.
        assert_eq!(ends("5\" pipe\n\"a\nb\"\n6\"\n7\n"), [16, 18]);
    }
}
