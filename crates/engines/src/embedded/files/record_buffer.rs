//! The bytes of a text from the beginning of a record on.

use std::io::{self, Read};

use super::text_reader::ReadBudget;

const BUFFER_BYTES: usize = 128 << 10;

/// Gives one byte at a time.
#[cfg(test)]
pub(crate) struct SingleBytes<'t>(pub(crate) &'t [u8]);

#[cfg(test)]
impl Read for SingleBytes<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(&mut buffer[..1])
    }
}

/// Reads a text in pieces, and keeps what belongs to the record that is read.
pub(crate) struct RecordBuffer<R> {
    text: R,
    /// Makes a record that never ends an error.
    budget: ReadBudget,
    bytes: Vec<u8>,
    /// Where the record begins.
    start: usize,
    /// The end of the bytes that were read.
    filled: usize,
    is_at_end: bool,
}

impl<R: Read> RecordBuffer<R> {
    pub(crate) fn new(text: R, budget: ReadBudget) -> Self {
        Self { text, budget, bytes: vec![0; BUFFER_BYTES], start: 0, filled: 0, is_at_end: false }
    }

    /// The bytes from the beginning of the record on, as far as they were read.
    #[inline]
    pub(crate) fn rest(&self) -> &[u8] {
        self.bytes.get(self.start..self.filled).unwrap_or_default()
    }

    /// Whether all bytes of the text were read.
    pub(crate) fn is_at_end(&self) -> bool {
        self.is_at_end
    }

    /// Begins the next record so many bytes behind the beginning of this one.
    #[inline]
    pub(crate) fn advance(&mut self, length: usize) {
        self.start = (self.start + length).min(self.filled);
    }

    /// Ends the text here.
    pub(crate) fn close(&mut self) {
        (self.is_at_end, self.start, self.filled) = (true, 0, 0);
    }

    /// Reads further bytes behind those of the record.
    pub(crate) fn fill(&mut self) -> io::Result<()> {
        if self.start > 0 {
            self.bytes.copy_within(self.start..self.filled, 0);
            self.filled -= self.start;
            self.start = 0;
        }
        if self.filled < BUFFER_BYTES / 2 {
            self.budget.reset();
        } else if self.filled == self.bytes.len() {
            self.bytes.resize(self.filled * 2, 0);
        }
        loop {
            match self.text.read(&mut self.bytes[self.filled..]) {
                Ok(0) => self.is_at_end = true,
                Ok(read) => self.filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            return Ok(());
        }
    }
}
