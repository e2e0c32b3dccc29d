//! Results as JUnit XML.
//!
//! [The common JUnit format](https://github.com/testmoapp/junitxml)

use std::fmt::Write as _;
use std::time::Duration;

use super::TestFileRun;

pub(super) fn render_junit(tested: &[TestFileRun]) -> String {
    let tests: usize = tested.iter().map(|file| file.report.results.len()).sum();
    let failures: usize = tested.iter().map(|file| file.report.failed()).sum();
    let took = seconds(tested.iter().map(|file| file.took).sum());
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <testsuites name=\"tidegate pg test\" tests=\"{tests}\" failures=\"{failures}\" errors=\"0\" time=\"{took}\">\n"
    );
    for file in tested {
        write_suite(&mut text, file);
    }
    text.push_str("</testsuites>\n");
    text
}

fn write_suite(text: &mut String, file: &TestFileRun) {
    let (tests, failures) = (file.report.results.len(), file.report.failed());
    let (name, took) = (escape_xml(&file.name), seconds(file.took));
    // Writing into text cannot fail.
    let _ = writeln!(
        text,
        "  <testsuite name=\"{name}\" tests=\"{tests}\" failures=\"{failures}\" errors=\"0\" time=\"{took}\">"
    );
    for result in &file.report.results {
        let line = result.line.map(|line| format!(" line=\"{line}\"")).unwrap_or_default();
        let output = escape_xml(&result.name);
        let _ = write!(text, "    <testcase classname=\"{name}\" name=\"{output}\" file=\"{name}\"{line}");
        if result.is_ok {
            text.push_str("/>\n");
        } else {
            let notes = escape_xml(&result.notes.join("\n"));
            let _ = writeln!(text, ">\n      <failure message=\"{output}\">{notes}</failure>\n    </testcase>");
        }
    }
    text.push_str("  </testsuite>\n");
}

fn seconds(time: Duration) -> String {
    format!("{:.3}", time.as_secs_f64())
}

/// Escapes text for elements and attributes. Characters that XML cannot contain become `\u{fffd}`.
fn escape_xml(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push_str("&#10;"),
            '\t' => escaped.push_str("&#9;"),
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            control if control.is_control() => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use tidegate_postgres_handlers::{TestReport, TestResult};

    use super::*;

    #[test]
    fn renders_results_as_test_cases() {
        let result = |line, name: &str, is_ok, notes: &[&str]| TestResult {
            line,
            name: name.to_owned(),
            is_ok,
            notes: notes.iter().map(|note| (*note).to_owned()).collect(),
        };
        let results = vec![
            result(Some(3), "a < b", true, &[]),
            result(Some(5), "\"quoted\" & \u{1}", false, &["got    1", "wanted ]]>"]),
            result(None, "there is no result", false, &[]),
        ];
        let file = TestFileRun {
            name: "tests/a&b.sql".to_owned(),
            report: TestReport { results },
            took: Duration::from_millis(1234),
        };
        insta::assert_snapshot!(render_junit(&[file]), @r#"
        <?xml version="1.0" encoding="UTF-8"?>
        <testsuites name="tidegate pg test" tests="3" failures="2" errors="0" time="1.234">
          <testsuite name="tests/a&amp;b.sql" tests="3" failures="2" errors="0" time="1.234">
            <testcase classname="tests/a&amp;b.sql" name="a &lt; b" file="tests/a&amp;b.sql" line="3"/>
            <testcase classname="tests/a&amp;b.sql" name="&quot;quoted&quot; &amp; �" file="tests/a&amp;b.sql" line="5">
              <failure message="&quot;quoted&quot; &amp; �">got    1&#10;wanted ]]&gt;</failure>
            </testcase>
            <testcase classname="tests/a&amp;b.sql" name="there is no result" file="tests/a&amp;b.sql">
              <failure message="there is no result"></failure>
            </testcase>
          </testsuite>
        </testsuites>
        "#);
    }
}
