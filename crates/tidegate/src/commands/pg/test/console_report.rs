//! Results on standard output: a line for each file, failures in full, and the counts at the end.

use std::io::Write as _;

use anstyle::{AnsiColor, Style};

use super::TestFileRun;
use crate::command_error::CommandError;

const PASSED_STYLE: Style = AnsiColor::Green.on_default();
const FAILED_STYLE: Style = AnsiColor::Red.on_default().bold();
const DIMMED_STYLE: Style = Style::new().dimmed();

/// One file, with what failed in it.
pub(super) fn print_file(file: &TestFileRun) -> Result<(), CommandError> {
    let mut output = anstream::stdout().lock();
    let TestFileRun { name, report, took } = file;
    let (passed, failed) = (report.passed(), report.failed());
    let took = format!("{DIMMED_STYLE}{} ms{DIMMED_STYLE:#}", took.as_millis());
    if failed == 0 {
        writeln!(output, "{PASSED_STYLE}ok{PASSED_STYLE:#}    {name}  {passed} passed  {took}")?;
    } else {
        writeln!(output, "{FAILED_STYLE}FAIL{FAILED_STYLE:#}  {name}  {passed} passed, {failed} failed  {took}")?;
    }
    for result in report.results.iter().filter(|result| !result.is_ok) {
        let line = result.line.map(|line| format!(":{line}")).unwrap_or_default();
        writeln!(output, "      {name}{line}: {FAILED_STYLE}{}{FAILED_STYLE:#}", result.name)?;
        for note in &result.notes {
            writeln!(output, "          {note}")?;
        }
    }
    Ok(output.flush()?)
}

/// The counts of all files.
pub(super) fn print_summary(tested: &[TestFileRun]) -> Result<(), CommandError> {
    let mut output = anstream::stdout().lock();
    let sum = |count: fn(&TestFileRun) -> usize| tested.iter().map(count).sum::<usize>();
    let (passed, failed) = (sum(|file| file.report.passed()), sum(|file| file.report.failed()));
    let style = if failed == 0 { PASSED_STYLE } else { FAILED_STYLE };
    writeln!(output, "\n{style}{passed} passed, {failed} failed{style:#}")?;
    Ok(output.flush()?)
}
