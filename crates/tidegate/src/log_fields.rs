//! The fields of log lines without colours. The text is that of `tracing-subscriber`, with less work: a server writes a line
//! with a dozen fields for each call.

use std::fmt::{self, Debug};

use tracing::field::{Field, Visit};
use tracing_subscriber::field::{RecordFields, VisitOutput as _};
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::{DefaultVisitor, Writer};

/// Formats fields as `name=value`, separated by spaces.
pub(crate) struct PlainFields;

impl<'writer> FormatFields<'writer> for PlainFields {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'writer>, fields: R) -> fmt::Result {
        let mut visitor = PlainVisitor { writer, is_empty: true, result: Ok(()) };
        fields.record(&mut visitor);
        visitor.result
    }
}

struct PlainVisitor<'writer> {
    writer: Writer<'writer>,
    is_empty: bool,
    result: fmt::Result,
}

impl PlainVisitor<'_> {
    fn write(&mut self, field: &Field, value: impl FnOnce(&mut Writer<'_>) -> fmt::Result) {
        let write = || {
            if !std::mem::replace(&mut self.is_empty, false) {
                self.writer.write_char(' ')?;
            }
            self.writer.write_str(field.name())?;
            self.writer.write_char('=')?;
            value(&mut self.writer)
        };
        if self.result.is_ok() {
            self.result = write();
        }
    }

    /// For what has rules of its own, such as messages, whose escape sequences are made harmless.
    fn write_by_library(&mut self, visit: impl FnOnce(&mut DefaultVisitor<'_>)) {
        if self.result.is_ok() {
            let mut visitor = DefaultVisitor::new(self.writer.by_ref(), std::mem::replace(&mut self.is_empty, false));
            visit(&mut visitor);
            self.result = visitor.finish();
        }
    }
}

impl Visit for PlainVisitor<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => self.write_by_library(|visitor| visitor.record_str(field, value)),
            name if !name.starts_with("r#") && needs_no_escapes(value) => self.write(field, |writer| {
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
            name if name.starts_with("r#") => self.write_by_library(|visitor| visitor.record_debug(field, value)),
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

    fn logged(fields: impl for<'writer> FormatFields<'writer> + Send + Sync + 'static) -> String {
        let log = CapturedLog::default();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(log.clone())
            .with_ansi(false)
            .with_max_level(tracing::Level::TRACE)
            .without_time()
            .fmt_fields(fields)
            .finish();
        tracing::subscriber::with_default(subscriber, || {
            let _span = tracing::info_span!("call", trace = true, parent = "a b").entered();
            let error = std::io::Error::other(std::fmt::Error);
            let error: &dyn std::error::Error = &error;
            tracing::info!(text = "plain", empty = "", quoted = "a \"b\" \\ \n ä \u{1b}[31m", "call ended");
            tracing::info!(
                number = 7_u64,
                negative = -7,
                float = 1.5,
                flag = true,
                none = None::<u64>,
                "\u{1b}[31mred"
            );
            tracing::warn!(display = %"a\"b", debug = ?Some("x"), error, r#type = 1, r#in = "x", "{} of {}", 1, 2);
            tracing::debug!(only = 1);
            tracing::trace!("only a message");
        });
        String::from_utf8(log.0.lock().clone()).unwrap()
    }

    #[test]
    fn lines_are_those_of_the_library() {
        let plain = logged(PlainFields);
        assert_eq!(plain, logged(DefaultFields::new()));
        assert_eq!(plain.lines().count(), 5);
        assert!(plain.contains(r#"call ended text="plain" empty="""#), "{plain}");
    }
}
