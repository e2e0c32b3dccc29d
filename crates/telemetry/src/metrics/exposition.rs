//! The text format in which services expose their metrics: that of Prometheus, and OpenMetrics as far as they agree.
//!
//! [Prometheus text format](https://prometheus.io/docs/instrumenting/exposition_formats/),
//! [OpenMetrics](https://prometheus.io/docs/specs/om/open_metrics_spec/)

use std::collections::BTreeMap;

use thiserror::Error;

use super::model::{Labels, MetricKind};

/// The maximum number of samples of one text.
const SAMPLES_MAX: usize = 200_000;
/// The maximum number of declared families.
const FAMILIES_MAX: usize = 50_000;
/// The maximum number of labels of one sample.
const LABELS_MAX: usize = 128;
/// The maximum length of a line, in bytes.
const LINE_BYTES_MAX: usize = 64 << 10;
/// The suffixes that samples have beside the name of their family.
const FAMILY_SUFFIXES: [&str; 6] = ["_bucket", "_sum", "_count", "_total", "_created", "_info"];

/// A parsed text.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Exposition {
    /// The declared families.
    pub families: MetricFamilies,
    /// The samples, in the order of the text.
    pub samples: Vec<ExposedSample>,
}

/// What the text declares for the samples of a name and its suffixes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MetricFamily {
    /// The name.
    pub name: String,
    /// The kind.
    pub kind: MetricKind,
    /// The unit, from a line `# UNIT` or else from the end of the name.
    pub unit: Option<String>,
    /// The description.
    pub help: Option<String>,
}

/// Families by their names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MetricFamilies(BTreeMap<String, MetricFamily>);

impl MetricFamilies {
    /// The family that declares the samples named `name`: the one of the same name, or of the name without a suffix.
    pub fn family_of(&self, name: &str) -> Option<&MetricFamily> {
        let stems = FAMILY_SUFFIXES.into_iter().filter_map(|suffix| name.strip_suffix(suffix));
        std::iter::once(name).chain(stems).find_map(|name| self.0.get(name))
    }

    /// The kind of the samples named `name`.
    pub fn kind_of(&self, name: &str) -> MetricKind {
        self.family_of(name).map_or(MetricKind::Unknown, |family| family.kind.of_samples(&family.name, name))
    }

    /// The families, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = &MetricFamily> {
        self.0.values()
    }

    /// The family named `name`, which is added if it does not exist.
    pub(super) fn family_mut(&mut self, name: &str) -> &mut MetricFamily {
        self.0.entry(name.to_owned()).or_insert_with(|| {
            let unit = unit_in_name(name).map(str::to_owned);
            MetricFamily { name: name.to_owned(), unit, ..MetricFamily::default() }
        })
    }
}

/// One sample of the text.
#[derive(Debug, Clone, PartialEq)]
pub struct ExposedSample {
    /// The name with its suffix.
    pub name: String,
    /// The labels.
    pub labels: Labels,
    /// The value, which may be `NaN` or infinite.
    pub value: f64,
    /// The time that the text declares, in nanoseconds since 1970.
    pub time_ns: Option<i64>,
}

/// Why a text cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line} of the metrics: {reason}")]
pub struct ExpositionError {
    /// The number of the line, from 1.
    pub line: usize,
    /// What is wrong in it, and what is expected.
    pub reason: String,
}

impl Exposition {
    /// Parses a text.
    ///
    /// # Errors
    /// The first line that is not of the format, or that exceeds a bound.
    pub fn parse(text: &str) -> Result<Self, ExpositionError> {
        // Only OpenMetrics has this line, and writes times in seconds.
        let is_open_metrics = text.split('\n').any(|line| line.trim_end() == "# EOF");
        let mut exposition = Self::default();
        for (number, line) in (1..).zip(text.split('\n')) {
            let line = line.trim_end_matches('\r');
            let failed = |reason| ExpositionError { line: number, reason };
            if line.len() > LINE_BYTES_MAX {
                return Err(failed(format!("it has {} bytes; the maximum is {LINE_BYTES_MAX}", line.len())));
            }
            match line.trim_start().strip_prefix('#') {
                Some(comment) if comment.trim_end() == " EOF" => break,
                Some(comment) => exposition.declare(comment).map_err(failed)?,
                None if line.trim().is_empty() => {}
                None if exposition.samples.len() >= SAMPLES_MAX => {
                    return Err(failed(format!("there are more than {SAMPLES_MAX} samples")));
                }
                None => exposition.samples.push(parse_sample(line, is_open_metrics).map_err(failed)?),
            }
        }
        Ok(exposition)
    }

    /// Reads the lines `# HELP`, `# TYPE` and `# UNIT`; other comments have no meaning.
    fn declare(&mut self, comment: &str) -> Result<(), String> {
        let mut words = comment.trim_start().splitn(2, [' ', '\t']);
        let (keyword, rest) = (words.next().unwrap_or_default(), words.next().unwrap_or_default().trim_start());
        if !matches!(keyword, "HELP" | "TYPE" | "UNIT") {
            return Ok(());
        }
        let (name, text) = parse_declared_name(rest)?;
        if self.families.0.len() >= FAMILIES_MAX && !self.families.0.contains_key(&name) {
            return Err(format!("there are more than {FAMILIES_MAX} names"));
        }
        let family = self.families.family_mut(&name);
        match keyword {
            "TYPE" => {
                let kind = MetricKind::from_name(text.trim());
                family.kind = kind.ok_or_else(|| {
                    let expected = "counter, gauge, histogram, summary or untyped";
                    format!("the type {:?} of {name} is unknown; expected {expected}", text.trim())
                })?;
            }
            "UNIT" => family.unit = Some(text.trim().to_owned()).filter(|unit| !unit.is_empty()),
            _ => family.help = Some(unescape(text)),
        }
        Ok(())
    }
}

/// The base units that the conventions of Prometheus put at the end of names.
const UNITS: [&str; 9] = ["seconds", "bytes", "ratio", "celsius", "meters", "grams", "joules", "volts", "amperes"];

/// The unit at the end of a name, before `_total`.
fn unit_in_name(name: &str) -> Option<&'static str> {
    let stem = name.strip_suffix("_total").unwrap_or(name);
    UNITS.into_iter().find(|unit| stem.strip_suffix(*unit).is_some_and(|rest| rest.ends_with('_')))
}

/// Parses a line with a sample.
fn parse_sample(line: &str, is_open_metrics: bool) -> Result<ExposedSample, String> {
    let mut cursor = Cursor { text: line, position: 0 };
    cursor.skip_blanks();
    let mut name = if cursor.rest().starts_with('{') { None } else { Some(cursor.name()?) };
    cursor.skip_blanks();
    let mut pairs = Vec::new();
    if cursor.take('{') {
        cursor.labels(&mut name, &mut pairs)?;
    }
    let name = name.ok_or("the sample has no name")?;
    // An exemplar follows the value and the time.
    let numbers = cursor.rest().split(" # ").next().unwrap_or_default();
    let mut words = numbers.split_whitespace();
    let value = words.next().ok_or_else(|| format!("there is no value after {name:?}"))?;
    let value = parse_value(value).ok_or_else(|| format!("the value {value:?} is not a number"))?;
    let time_ns = words.next().map(|time| parse_time(time, is_open_metrics)).transpose()?;
    if let Some(word) = words.next() {
        return Err(format!("unexpected text {word:?} at the end"));
    }
    Ok(ExposedSample { name, labels: Labels::new(pairs), value, time_ns })
}

/// The name in a `# HELP`, `# TYPE` or `# UNIT` line, which may be in quotes, and the text behind it.
fn parse_declared_name(text: &str) -> Result<(String, &str), String> {
    let mut cursor = Cursor { text, position: 0 };
    let name = if text.starts_with('"') { cursor.quoted()? } else { cursor.name()? };
    cursor.skip_blanks();
    Ok((name, cursor.rest()))
}

/// Replaces `\\`, `\"` and `\n`. Other characters behind a backslash remain as they are.
fn unescape(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match (character, characters.as_str().chars().next()) {
            ('\\', Some(escaped @ ('\\' | '"' | 'n'))) => {
                result.push(if escaped == 'n' { '\n' } else { escaped });
                characters.next();
            }
            _ => result.push(character),
        }
    }
    result
}

/// A number, `NaN` or an infinity. Rust's own names of them are accepted in any case, as in Go.
fn parse_value(text: &str) -> Option<f64> {
    text.parse().ok()
}

/// Milliseconds; in OpenMetrics seconds, possibly with a fraction.
fn parse_time(text: &str, is_open_metrics: bool) -> Result<i64, String> {
    let failed = || format!("the time {text:?} is not a number");
    if !is_open_metrics && let Ok(time_ms) = text.parse::<i64>() {
        return Ok(time_ms.saturating_mul(1_000_000));
    }
    let seconds: f64 = text.parse().map_err(|_| failed())?;
    if !seconds.is_finite() {
        return Err(failed());
    }
    let unit_ns = if is_open_metrics { 1e9 } else { 1e6 };
    // Rounded to microseconds, because a double has no more digits at the present time.
    Ok(((seconds * unit_ns / 1e3).round() as i64).saturating_mul(1_000))
}

struct Cursor<'a> {
    text: &'a str,
    position: usize,
}

impl<'a> Cursor<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.position..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn advance(&mut self, bytes: usize) {
        self.position += bytes;
    }

    fn take(&mut self, expected: char) -> bool {
        let is_next = self.rest().starts_with(expected);
        if is_next {
            self.advance(expected.len_utf8());
        }
        is_next
    }

    fn skip_blanks(&mut self) {
        let rest = self.rest();
        self.advance(rest.len() - rest.trim_start_matches([' ', '\t']).len());
    }

    /// `expected WHAT at character N, found …`
    fn unexpected(&self, expected: &str) -> String {
        let character = self.text.get(..self.position).unwrap_or_default().chars().count() + 1;
        match self.peek() {
            Some(found) => format!("expected {expected} at character {character}, found {found:?}"),
            None => format!("expected {expected} at character {character}, found the end of the line"),
        }
    }

    fn name(&mut self) -> Result<String, String> {
        let rest = self.rest();
        let is_part = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | ':' | '.');
        let end = rest.find(|character| !is_part(character)).unwrap_or(rest.len());
        let name = rest.get(..end).unwrap_or_default();
        if name.is_empty() || name.starts_with(|first: char| first.is_ascii_digit()) {
            return Err(self.unexpected("a name"));
        }
        self.advance(end);
        Ok(name.to_owned())
    }

    /// The labels behind `{`. A text without a value is the name of the metric.
    fn labels(&mut self, name: &mut Option<String>, pairs: &mut Vec<(String, String)>) -> Result<(), String> {
        loop {
            self.skip_blanks();
            if self.take('}') {
                return Ok(());
            }
            if pairs.len() >= LABELS_MAX {
                return Err(format!("the sample has more than {LABELS_MAX} labels"));
            }
            let is_quoted = self.rest().starts_with('"');
            let label = if is_quoted { self.quoted()? } else { self.name()? };
            self.skip_blanks();
            if self.take('=') {
                self.skip_blanks();
                pairs.push((label, self.quoted()?));
            } else if is_quoted && name.is_none() {
                *name = Some(label);
            } else {
                return Err(self.unexpected("'='"));
            }
            self.skip_blanks();
            if !self.take(',') && !self.rest().starts_with('}') {
                return Err(self.unexpected("',' or '}'"));
            }
        }
    }

    fn quoted(&mut self) -> Result<String, String> {
        let start = self.text.get(..self.position).unwrap_or_default().chars().count() + 1;
        if !self.take('"') {
            return Err(self.unexpected("'\"'"));
        }
        let rest = self.rest();
        let mut is_escaped = false;
        let end = rest.find(|character| {
            let is_end = character == '"' && !is_escaped;
            is_escaped = character == '\\' && !is_escaped;
            is_end
        });
        let end = end.ok_or_else(|| format!("the text that begins at character {start} has no end"))?;
        self.advance(end + 1);
        Ok(unescape(rest.get(..end).unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = "\
# HELP http_requests_total The number of requests.\\nSecond line.
# TYPE http_requests_total counter
http_requests_total{method=\"post\",code=\"200\"} 1027 1395066363000
http_requests_total{method=\"a\\\"b\\\\c\\nd\", code=\"400\",} 3

# a comment
# TYPE latency_seconds histogram
latency_seconds_bucket{le=\"+Inf\"} 144320
latency_seconds_sum 5.3423e+04
# TYPE temperature_celsius gauge
temperature_celsius NaN
untyped -Inf
";

    #[test]
    fn every_part_of_the_format() {
        let exposition = Exposition::parse(TEXT).unwrap();
        assert_eq!(exposition.samples.len(), 6);
        let first = &exposition.samples[0];
        assert_eq!(first.labels, Labels::new([("code", "200"), ("method", "post")]));
        assert_eq!((first.value, first.time_ns), (1_027.0, Some(1_395_066_363_000_000_000)));
        assert_eq!(exposition.samples[1].labels.get("method"), Some("a\"b\\c\nd"));
        assert_eq!(exposition.samples[2].labels.get("le"), Some("+Inf"));
        assert_eq!(exposition.samples[3].value, 53_423.0);
        assert!(exposition.samples[4].value.is_nan());
        assert_eq!(exposition.samples[5].value, f64::NEG_INFINITY);
        let family = exposition.families.family_of("latency_seconds_bucket").unwrap();
        assert_eq!((family.kind, family.unit.as_deref()), (MetricKind::Histogram, Some("seconds")));
        let help = exposition.families.family_of("http_requests_total").unwrap().help.as_deref();
        assert_eq!(help, Some("The number of requests.\nSecond line."));
        assert_eq!(exposition.families.family_of("untyped"), None);
    }

    #[test]
    fn open_metrics_has_seconds_exemplars_and_an_end() {
        let text =
            "# TYPE a counter\n# UNIT a bytes\na_total 17.0 1520879607.789 # {trace_id=\"x\"} 0.67 1.5\n# EOF\nrest";
        assert_eq!(Exposition::parse(text).unwrap().samples[0].time_ns, Some(1_520_879_607_789_000_000));
        let ended = Exposition::parse(text.strip_suffix("\nrest").unwrap()).unwrap();
        assert_eq!(ended.samples[0].time_ns, Some(1_520_879_607_789_000_000));
        assert_eq!(ended.families.family_of("a_total").unwrap().unit.as_deref(), Some("bytes"));
        let quoted = Exposition::parse("{\"my.metric\",\"my.label\"=\"x\"} 1").unwrap();
        assert_eq!(
            (quoted.samples[0].name.as_str(), quoted.samples[0].labels.get("my.label")),
            ("my.metric", Some("x"))
        );
    }

    #[test]
    fn errors_name_the_line_and_what_is_expected() {
        for (text, expected) in [
            ("a 1\nb", "line 2 of the metrics: there is no value after \"b\""),
            ("a x", "line 1 of the metrics: the value \"x\" is not a number"),
            ("a{b=c} 1", "line 1 of the metrics: expected '\"' at character 5, found 'c'"),
            ("a{b=\"c} 1", "line 1 of the metrics: the text that begins at character 5 has no end"),
            ("1a 1", "line 1 of the metrics: expected a name at character 1, found '1'"),
            ("a{b=\"c\" 1", "line 1 of the metrics: expected ',' or '}' at character 9, found '1'"),
            ("a 1 z", "line 1 of the metrics: the time \"z\" is not a number"),
            ("a 1 1 1", "line 1 of the metrics: unexpected text \"1\" at the end"),
            (
                "# TYPE a integer",
                "line 1 of the metrics: the type \"integer\" of a is unknown; expected counter, gauge, histogram, summary or untyped",
            ),
        ] {
            assert_eq!(Exposition::parse(text).unwrap_err().to_string(), expected);
        }
    }

    proptest! {
        #[test]
        fn arbitrary_text_never_panics(text in "(#|[a-z{}=\",\\\\ 0-9.\n+-]|TYPE|HELP|NaN|é){0,60}") {
            let _ = Exposition::parse(&text);
        }

        #[test]
        fn any_text_never_panics(text in any::<String>()) {
            let _ = (Exposition::parse(&text), Exposition::parse(&format!("a{{b=\"{text}")), Exposition::parse(&format!("# TYPE {text}")));
        }

        #[test]
        fn written_samples_are_read(pairs in prop::collection::vec(("[a-z]{1,4}", "[^\r]{1,6}"), 0..4), value in any::<f64>(), time_ms in any::<i32>()) {
            let labels = Labels::new(pairs);
            let text = format!("m{labels} {} {time_ms}\n", value.to_string().replace("inf", "Inf"));
            let exposition = Exposition::parse(&text).unwrap();
            prop_assert_eq!(&exposition.samples[0].labels, &labels);
            prop_assert!(exposition.samples[0].value == value || value.is_nan());
            prop_assert_eq!(exposition.samples[0].time_ns, Some(i64::from(time_ms) * 1_000_000));
        }
    }
}
