//! Why an entry does not fit its format, and what was changed in its text.

use std::fmt::{self, Write};

use crate::column::EntryColumn;

/// Why an entry does not have the form of its format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Misfit {
    /// Something else was expected at this byte of the entry's text, counted from 1.
    Expected { what: &'static str, at: usize },
    /// The entry is blank.
    Blank,
    /// The lines before it already fill an entry.
    Continuation,
    /// The text does not match the pattern.
    NoMatch,
    /// The value of a column does not have the type that the pattern declares.
    ValueType { column: usize, expected: &'static str },
}

impl Misfit {
    /// `what` is missing after `before` bytes.
    pub(crate) fn expected(what: &'static str, before: usize) -> Self {
        Self::Expected { what, at: before + 1 }
    }
}

/// All defects of one entry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Defects {
    pub(crate) misfit: Option<Misfit>,
    pub(crate) has_invalid_utf8: bool,
    pub(crate) nul_bytes: usize,
    /// The bytes of the line that are not in the text.
    pub(crate) cut_bytes: u64,
    /// Members beyond the limit that are only in the text of the entry.
    pub(crate) dropped_members: usize,
    /// The column with the name of a time whose text is none.
    pub(crate) unread_time: Option<usize>,
}

impl Defects {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Defects {
    /// Appends the reasons to `out`.
    pub(crate) fn describe(&self, columns: &[EntryColumn], out: &mut String) {
        // Writing into memory cannot fail.
        let _ = self.write(columns, out);
    }

    fn write(&self, columns: &[EntryColumn], out: &mut String) -> fmt::Result {
        let name_of = |column: usize| columns.get(column).map_or("", |column| column.name.as_str());
        match self.misfit {
            None => {}
            Some(Misfit::Expected { what, at }) => write!(out, "expected {what} at byte {at}")?,
            Some(Misfit::Blank) => out.push_str("the line is blank"),
            Some(Misfit::Continuation) => {
                out.push_str("continues the entry before it, which has as many lines or bytes as an entry may have");
            }
            Some(Misfit::NoMatch) => out.push_str("the line does not match the pattern"),
            Some(Misfit::ValueType { column, expected }) => {
                write!(out, "the value of \"{}\" is not {expected}", name_of(column))?;
            }
        }
        let mut separator = if self.misfit.is_some() { "; " } else { "" };
        if self.has_invalid_utf8 {
            write!(out, "{separator}bytes that are not UTF-8 were replaced")?;
            separator = "; ";
        }
        if self.nul_bytes > 0 {
            write!(out, "{separator}{} NUL bytes were removed", self.nul_bytes)?;
            separator = "; ";
        }
        if self.cut_bytes > 0 {
            write!(out, "{separator}the line is too long, its last {} bytes were cut", self.cut_bytes)?;
            separator = "; ";
        }
        if self.dropped_members > 0 {
            write!(out, "{separator}{} fields are only in the text of the entry", self.dropped_members)?;
            separator = "; ";
        }
        if let Some(column) = self.unread_time {
            write!(out, "{separator}the value of \"{}\" is not a time in a known form", name_of(column))?;
        }
        Ok(())
    }
}
