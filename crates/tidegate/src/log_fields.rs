//! The fields of log lines. The text is that of `tracing-subscriber`, with less work: a server writes a line with a
//! dozen fields for each call. Lines with colours are for a terminal, so the control characters of values are escaped.

use std::fmt::{self, Debug};

use anstyle::Style;
use tidegate_core::escape_control_characters;
use tracing::field::{Field, Visit};
use tracing_subscriber::field::{RecordFields, VisitOutput as _};
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::{DefaultVisitor, Writer};

const NAME: Style = Style::new().italic();
const SEPARATOR: Style = Style::new().dimmed();

/// Formats fields as `name=value`, separated by spaces.
pub(crate) struct LogFields;

impl<'writer> FormatFields<'writer> for LogFields {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'writer>, fields: R) -> fmt::Result {
        let mut visitor = LogFieldVisitor { writer, is_empty: true, result: Ok(()) };
        fields.record(&mut visitor);
        visitor.result
    }
}

struct LogFieldVisitor<'writer> {
    writer: Writer<'writer>,
    is_empty: bool,
    result: fmt::Result,
}

impl LogFieldVisitor<'_> {
    fn write(&mut self, field: &Field, value: impl FnOnce(&mut dyn fmt::Write) -> fmt::Result) {
        let write = || {
            if !std::mem::replace(&mut self.is_empty, false) {
                self.writer.write_char(' ')?;
            }
            let name = field.name().trim_start_matches("r#");
            if self.writer.has_ansi_escapes() {
                write!(self.writer, "{NAME}{name}{NAME:#}{SEPARATOR}={SEPARATOR:#}")?;
                return value(&mut EscapingWriter(&mut self.writer));
            }
            self.writer.write_str(name)?;
            self.writer.write_char('=')?;
            value(&mut self.writer)
        };
        if self.result.is_ok() {
            self.result = write();
        }
    }

    /// For what has rules of its own, such as messages, whose escape sequences are made harmless.
    fn write_by_library(&mut self, visit: impl FnOnce(&mut DefaultVisitor<'_>)) {
        if self.result.is_err() {
            return;
        }
        let is_first = std::mem::replace(&mut self.is_empty, false);
        if !self.writer.has_ansi_escapes() {
            self.result = format_by_library(self.writer.by_ref(), is_first, visit);
            return;
        }
        // The library leaves some control characters as they are.
        let mut text = String::new();
        self.result = format_by_library(Writer::new(&mut text), is_first, visit)
            .and_then(|()| self.writer.write_str(&escape_control_characters(&text)));
    }
}

fn format_by_library(writer: Writer<'_>, is_first: bool, visit: impl FnOnce(&mut DefaultVisitor<'_>)) -> fmt::Result {
    let mut visitor = DefaultVisitor::new(writer, is_first);
    visit(&mut visitor);
    visitor.finish()
}

/// Escapes the control characters of a value.
struct EscapingWriter<'a, 'writer>(&'a mut Writer<'writer>);

impl fmt::Write for EscapingWriter<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write_str(&escape_control_characters(text))
    }
}

impl Visit for LogFieldVisitor<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => self.write_by_library(|visitor| visitor.record_str(field, value)),
            _ if needs_no_escapes(value) => self.write(field, |writer| {
                writer.write_char('"')?;
                writer.write_str(value)?;
                writer.write_char('"')
            }),
            _ => self.record_debug(field, &value),
        }
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.write_by_library(|visitor| visitor.record_error(field, value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        match field.name() {
            "message" => self.write_by_library(|visitor| visitor.record_debug(field, value)),
            _ => self.write(field, |writer| write!(writer, "{value:?}")),
        }
    }
}

/// Whether `{:?}` adds only the quotes.
fn needs_no_escapes(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\'))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;
    use tracing_subscriber::fmt::MakeWriter;
    use tracing_subscriber::fmt::format::DefaultFields;

    use super::*;

    #[derive(Clone, Default)]
    struct CapturedLog(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for CapturedLog {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl MakeWriter<'_> for CapturedLog {
        type Writer = Self;

        fn make_writer(&self) -> Self {
            self.clone()
        }
    }

    fn logged(
        fields: impl for<'writer> FormatFields<'writer> + Send + Sync + 'static,
        has_colours: bool,
        write: impl FnOnce(),
    ) -> String {
        let log = CapturedLog::default();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(log.clone())
            .with_ansi(has_colours)
            .with_max_level(tracing::Level::TRACE)
            .without_time()
            .fmt_fields(fields)
            .finish();
        tracing::subscriber::with_default(subscriber, write);
        String::from_utf8(log.0.lock().clone()).unwrap()
    }

    fn log_fields_of_each_kind() {
        let _span = tracing::info_span!("call", trace = true, parent = "a b").entered();
        tracing::info!(text = "plain", empty = "", quoted = "a \"b\" \\ \n ä \u{1b}[31m", "call ended");
        tracing::info!(number = 7_u64, negative = -7, float = 1.5, flag = true, none = None::<u64>, "numbers");
        tracing::warn!(display = %"a\"b", debug = ?Some("x"), r#type = 1, r#in = "x", "{} of {}", 1, 2);
        tracing::debug!(only = 1);
        tracing::trace!("only a message");
    }

    #[test]
    fn lines_are_those_of_the_library() {
        for has_colours in [false, true] {
            let lines = logged(LogFields, has_colours, log_fields_of_each_kind);
            assert_eq!(lines, logged(DefaultFields::new(), has_colours, log_fields_of_each_kind));
            assert_eq!(lines.lines().count(), 5);
        }
        let plain = logged(LogFields, false, log_fields_of_each_kind);
        assert!(plain.contains(r#"call ended text="plain" empty="""#), "{plain}");
        let write = || {
            let error = std::io::Error::other(std::fmt::Error);
            let error: &dyn std::error::Error = &error;
            tracing::info!(error, "\u{1b}[31mred");
        };
        assert_eq!(logged(LogFields, false, write), logged(DefaultFields::new(), false, write));
    }

    #[test]
    fn a_terminal_receives_no_control_characters_of_values() {
        let lines = logged(LogFields, true, || {
            tracing::warn!(display = %"\u{1b}]0;a\u{7}", text = "\u{9b}2J", "b\rc\u{1b}[8m");
        });
        for escaped in [r"\u{1b}]0;a\u{7}", r#""\u{9b}2J""#, r"b\rc\x1b[8m"] {
            assert!(lines.contains(escaped), "{escaped} is missing in {lines}");
        }
        let is_style = |sequence: &str| sequence.starts_with('[') && !sequence.starts_with("[8m");
        assert!(lines.split('\u{1b}').skip(1).all(is_style), "{lines:?}");
    }
}
