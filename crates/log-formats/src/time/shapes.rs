//! How times look in the lines of unknown logs, and how their forms are declared.

use super::{EntryTimeFormat, TimeContext, TimeResolver};

const NANOSECONDS_PER_SECOND: i64 = 1_000_000_000;
/// A log ends about when its file was last written, so that another reading of its last time is less probable.
const NEAR_SECONDS: i64 = 2 * 86_400;

/// Times that look alike.
pub(crate) struct TimeShape {
    /// A regular expression, in which `<clock>` is [`CLOCK`].
    expression: &'static str,
    /// The forms that such times may have, the most usual first.
    pub(crate) forms: &'static [&'static str],
}

/// The time of day.
const CLOCK: &str = r"\d\d:\d\d:\d\d(?:[.,]\d+)?";
/// The form of all times that [`TimeResolver::any_time`] reads.
const ANY: &[&str] = &["any"];

/// Shapes that begin alike are in the order from the longest to the shortest.
pub(crate) const TIME_SHAPES: &[TimeShape] = &[
    TimeShape {
        expression: r"(?:[A-Z][a-z]{2},? )?[A-Z][a-z]{2} {1,2}\d{1,2} (?:(?:19|20)\d\d )?<clock>(?: (?:19|20)\d\d)?",
        forms: ANY,
    },
    // Milliseconds may follow a colon, with or without their zeros.
    TimeShape { expression: r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{1,3}", forms: &["%Y-%m-%d %H:%M:%S:%3f"] },
    TimeShape { expression: r"\d{8}-\d{1,2}:\d{1,2}:\d{1,2}:\d{1,3}", forms: &["%Y%m%d-%H:%M:%S:%3f"] },
    TimeShape { expression: r"\d{8}-<clock>", forms: &["%Y%m%d-%H:%M:%S%.f"] },
    TimeShape {
        expression: r"\d{4}[-/.]\d\d[-/.]\d\d[T _]<clock>(?:Z| ?[+-]\d\d:?\d\d| (?:UTC|GMT|CEST|CET|[ECMP][SD]T))?",
        forms: ANY,
    },
    TimeShape {
        expression: r"(?:[A-Z][a-z]{2}, )?\d{1,2}[-/ ][A-Z][a-z]{2}[-/ ]\d{4}[: ]<clock>(?: [+-]\d{4})?",
        forms: ANY,
    },
    TimeShape { expression: r"(?:\d{6}|\d{8}) (?:<clock>|\d{6})", forms: ANY },
    TimeShape { expression: r"\d{8}T\d{6}(?:Z|[+-]\d{4})", forms: &["%Y%m%dT%H%M%S%z"] },
    TimeShape { expression: r"\d{8}T\d{6}", forms: &["%Y%m%dT%H%M%S"] },
    TimeShape { expression: r"\d{4}-\d\d-\d\d-\d\d\.\d\d\.\d\d\.\d+", forms: &["%Y-%m-%d-%H.%M.%S.%f"] },
    TimeShape {
        expression: r"\d\d/\d\d/\d\d <clock>",
        forms: &["%y/%m/%d %H:%M:%S%.f", "%m/%d/%y %H:%M:%S%.f", "%d/%m/%y %H:%M:%S%.f"],
    },
    TimeShape {
        expression: r"\d{1,2}/\d{1,2}/\d{4} \d{1,2}:\d\d:\d\d [AP]M",
        forms: &["%m/%d/%Y %I:%M:%S %p", "%d/%m/%Y %I:%M:%S %p"],
    },
    TimeShape { expression: r"\d\d/\d\d/\d{4} <clock>", forms: &["%m/%d/%Y %H:%M:%S%.f", "%d/%m/%Y %H:%M:%S%.f"] },
    TimeShape { expression: r"\d\d/\d\d <clock>", forms: &["%m/%d %H:%M:%S%.f", "%d/%m %H:%M:%S%.f"] },
    TimeShape { expression: r"\d\d\.\d\d\.\d{4} <clock>", forms: &["%d.%m.%Y %H:%M:%S%.f", "%m.%d.%Y %H:%M:%S%.f"] },
    TimeShape { expression: r"\d\d\.\d\d\.\d\d <clock>", forms: &["%d.%m.%y %H:%M:%S%.f", "%y.%m.%d %H:%M:%S%.f"] },
    TimeShape { expression: r"\d\d\.\d\d <clock>", forms: &["%m.%d %H:%M:%S%.f", "%d.%m %H:%M:%S%.f"] },
    TimeShape { expression: r"\d\d-\d\d-\d{4} <clock>", forms: &["%d-%m-%Y %H:%M:%S%.f", "%m-%d-%Y %H:%M:%S%.f"] },
    TimeShape { expression: r"\d\d-\d\d <clock>", forms: &["%m-%d %H:%M:%S%.f", "%d-%m %H:%M:%S%.f"] },
    TimeShape { expression: r"(?:1\d{12}|1\d{9}(?:\.\d+)?)", forms: ANY },
];

/// Dates without a time of day, which only a declared group has.
const DATE_FORMS: &[&str] =
    &["%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%y/%m/%d", "%Y%m%d", "%y%m%d"];

/// The last time of a log beside the time at which its file was last written, the most probable first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum EndOfTimes {
    Near,
    /// The file was copied, or it is rarely written.
    Earlier,
    Later,
}

impl TimeShape {
    /// The regular expression of such times.
    pub(crate) fn expression(&self) -> String {
        self.expression.replace("<clock>", CLOCK)
    }
}

/// A form that reads all values of a sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundTimeForm {
    pub(crate) form: &'static str,
    /// Forms that may be meant too, and by which the values are other times.
    pub(crate) others: Vec<&'static str>,
    /// Whether there are none, and the values have a time of day.
    pub(crate) is_certain: bool,
}

/// A form that reads all `values`, which are in the order of their log.
pub(crate) fn find_time_form<T: AsRef<str>>(values: &[T], context: &TimeContext) -> Option<FoundTimeForm> {
    let of_shapes = TIME_SHAPES.iter().flat_map(|shape| shape.forms);
    let of_dates =
        || best_time_form(DATE_FORMS, values, context).map(|found| FoundTimeForm { is_certain: false, ..found });
    best_time_form(of_shapes, values, context).or_else(of_dates)
}

/// Of the forms that read all `values`, the one by which the log ends when its file was last written, by which times grow, and
/// by which the least time passes; else the first.
pub(crate) fn best_time_form<T: AsRef<str>>(
    forms: impl IntoIterator<Item = &'static &'static str>,
    values: &[T],
    context: &TimeContext,
) -> Option<FoundTimeForm> {
    let rated = forms.into_iter().filter_map(|form| Some((*form, TimeFormRating::of(form, values, context)?)));
    let rated: Vec<(&'static str, TimeFormRating)> = rated.collect();
    let (form, best) = rated.iter().min_by_key(|(_, rating)| (rating.end, rating.steps_back, rating.span))?;
    // Other times: one day of a file may be the same in both readings.
    let differs = |rating: &TimeFormRating| (rating.last, rating.span) != (best.last, best.span);
    let others = rated.iter().filter(|(_, rating)| rating.end == best.end && differs(rating));
    let others: Vec<&'static str> = others.map(|(form, _)| *form).collect();
    Some(FoundTimeForm { form, is_certain: others.is_empty(), others })
}

/// How probable it is that times have a form.
struct TimeFormRating {
    end: EndOfTimes,
    /// How many times are before the one before them.
    steps_back: usize,
    /// The last time.
    last: i64,
    /// From the first to the last time.
    span: u64,
}

impl TimeFormRating {
    /// `None` if the form does not read a value.
    fn of<T: AsRef<str>>(form: &str, values: &[T], context: &TimeContext) -> Option<Self> {
        let format = EntryTimeFormat::parse(form).ok()?;
        let mut times = TimeResolver::new(context.clone());
        let (mut first, mut last, mut steps_back): (Option<i64>, Option<i64>, usize) = (None, None, 0);
        for value in values {
            let time = times.formatted_time(value.as_ref().trim(), &format)?;
            steps_back += usize::from(last.is_some_and(|last| time < last));
            first = first.or(Some(time));
            last = Some(time);
        }
        let last = last?;
        let after_end = last.div_euclid(NANOSECONDS_PER_SECOND).saturating_sub(context.reference_seconds);
        let end = if after_end > NEAR_SECONDS {
            EndOfTimes::Later
        } else if after_end < -NEAR_SECONDS {
            EndOfTimes::Earlier
        } else {
            EndOfTimes::Near
        };
        Some(Self { end, steps_back, last, span: last.abs_diff(first?) })
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::super::LogTimeZone;
    use super::*;

    fn form(values: &[&str]) -> Option<(&'static str, bool)> {
        // 2024-03-10.
        let reference = SystemTime::UNIX_EPOCH + Duration::from_secs(1_710_028_800);
        let found = find_time_form(values, &TimeContext::new(LogTimeZone::utc(), reference))?;
        Some((found.form, found.is_certain))
    }

    #[test]
    fn a_form_reads_all_values() {
        assert_eq!(form(&["2024-03-01 12:00:00"]), Some(("any", true)));
        assert_eq!(form(&["03-17 16:13:38.811"]), Some(("%m-%d %H:%M:%S%.f", true)));
        assert_eq!(form(&["17/06/09 20:10:40", "17/06/09 20:10:41"]), Some(("%y/%m/%d %H:%M:%S%.f", false)));
        assert_eq!(form(&["31/12/23 20:10:40"]), Some(("%d/%m/%y %H:%M:%S%.f", true)));
        assert_eq!(form(&["2024-03-01"]), Some(("%Y-%m-%d", false)));
        assert_eq!(form(&["17/06/09 20:10:40", "soon"]), None);
        assert_eq!(form(&[]), None);
    }

    #[test]
    fn of_two_readings_the_last_change_of_the_file_decides() {
        assert_eq!(form(&["03/10/2024 12:00:00"]), Some(("%m/%d/%Y %H:%M:%S%.f", true)));
        assert_eq!(form(&["10/03/2024 12:00:00"]), Some(("%d/%m/%Y %H:%M:%S%.f", true)));
        let growing_by_one_reading = ["04/05/2023 12:00:00", "05/04/2023 12:00:00"];
        assert_eq!(form(&growing_by_one_reading), Some(("%m/%d/%Y %H:%M:%S%.f", false)));
    }
}
