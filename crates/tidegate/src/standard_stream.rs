//! Standard output and standard error. Everything that commands print goes through [`StandardStream`], so that no
//! control character of data reaches a terminal. MCP over stdio writes past it, because a program reads it.

use std::fmt::Display;
use std::io::{self, IsTerminal as _, LineWriter, Stderr, Stdout, Write};

use anstream::{AutoStream, ColorChoice};
use anstyle::Style;
use tidegate_core::ControlEscaper;

/// A standard stream. On a terminal, it escapes the control characters of a text; elsewhere, it keeps each byte.
pub(crate) struct StandardStream<W> {
    stream: W,
    /// `None` if the stream is not a terminal.
    escaper: Option<ControlEscaper>,
    has_styles: bool,
}

/// Writes to standard output.
pub(crate) fn standard_output() -> StandardStream<Stdout> {
    let stream = io::stdout();
    let (is_terminal, has_styles) = (stream.is_terminal(), AutoStream::choice(&stream) != ColorChoice::Never);
    StandardStream::new(stream, is_terminal, has_styles)
}

/// Writes to standard error. An incomplete line is written when the stream is flushed or dropped.
pub(crate) fn standard_error() -> StandardStream<LineWriter<Stderr>> {
    let stream = io::stderr();
    let (is_terminal, has_styles) = (stream.is_terminal(), AutoStream::choice(&stream) != ColorChoice::Never);
    StandardStream::new(LineWriter::new(stream), is_terminal, has_styles)
}

/// Writes log lines to standard error. Those with colours arrive with escaped values.
pub(crate) fn log_stream(has_colours: bool) -> StandardStream<LineWriter<Stderr>> {
    let stream = io::stderr();
    let is_escaped = stream.is_terminal() && !has_colours;
    StandardStream::new(LineWriter::new(stream), is_escaped, has_colours)
}

impl<W: Write> StandardStream<W> {
    pub(crate) fn new(stream: W, is_terminal: bool, has_styles: bool) -> Self {
        Self { stream, escaper: is_terminal.then(ControlEscaper::default), has_styles }
    }

    pub(crate) fn is_terminal(&self) -> bool {
        self.escaper.is_some()
    }

    /// Writes `text` in a style of the program, if the stream has styles.
    pub(crate) fn write_styled(&mut self, style: Style, text: impl Display) -> io::Result<()> {
        if !self.has_styles {
            return write!(self, "{text}");
        }
        write!(self.stream, "{style}")?;
        write!(self, "{text}")?;
        write!(self.stream, "{style:#}")
    }
}

impl<W: Write> Write for StandardStream<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(escaper) = &mut self.escaper else { return self.stream.write(bytes) };
        let text = String::from_utf8_lossy(bytes);
        self.stream.write_all(escaper.escape(&text).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

#[cfg(test)]
mod tests {
    use anstyle::AnsiColor;

    use super::*;

    fn written(is_terminal: bool, has_styles: bool) -> String {
        let mut bytes = Vec::new();
        let mut stream = StandardStream::new(&mut bytes, is_terminal, has_styles);
        stream.write_styled(AnsiColor::Red.on_default(), "\u{1b}[8m").unwrap();
        stream.write_all("\u{9b}2J\n".as_bytes()).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn only_a_terminal_receives_escapes() {
        assert_eq!(written(true, true), "\u{1b}[31m\\u{1b}[8m\u{1b}[0m\\u{9b}2J\n");
        assert_eq!(written(true, false), "\\u{1b}[8m\\u{9b}2J\n");
        assert_eq!(written(false, true), "\u{1b}[31m\u{1b}[8m\u{1b}[0m\u{9b}2J\n");
        assert_eq!(written(false, false), "\u{1b}[8m\u{9b}2J\n");
    }
}
