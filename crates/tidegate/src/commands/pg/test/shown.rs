//! Results on standard output: a line for each file, failures in full, and the counts at the end.

use std::io::Write as _;

use anstyle::{AnsiColor, Style};

use super::Tested;
use crate::failure::Failure;

const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default().bold();
const FAINT: Style = Style::new().dimmed();

/// One file, with what failed in it.
pub(super) fn file(file: &Tested) -> Result<(), Failure> {
    let mut output = anstream::stdout().lock();
    let Tested { name, report, took } = file;
    let (passed, failed) = (report.passed(), report.failed());
    let took = format!("{FAINT}{} ms{FAINT:#}", took.as_millis());
    if failed == 0 {
        writeln!(output, "{GOOD}ok{GOOD:#}    {name}  {passed} passed  {took}")?;
    } else {
        writeln!(output, "{BAD}FAIL{BAD:#}  {name}  {passed} passed, {failed} failed  {took}")?;
    }
    for result in report.results.iter().filter(|result| !result.is_ok) {
        let line = result.line.map(|line| format!(":{line}")).unwrap_or_default();
        writeln!(output, "      {name}{line}: {BAD}{}{BAD:#}", result.name)?;
        for note in &result.notes {
            writeln!(output, "          {note}")?;
        }
    }
    Ok(output.flush()?)
}

/// The counts of all files.
pub(super) fn summary(tested: &[Tested]) -> Result<(), Failure> {
    let mut output = anstream::stdout().lock();
    let sum = |count: fn(&Tested) -> usize| tested.iter().map(count).sum::<usize>();
    let (passed, failed) = (sum(|file| file.report.passed()), sum(|file| file.report.failed()));
    let style = if failed == 0 { GOOD } else { BAD };
    writeln!(output, "\n{style}{passed} passed, {failed} failed{style:#}")?;
    Ok(output.flush()?)
}
