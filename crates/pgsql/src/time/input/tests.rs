//! What each text is read as, and written back as; the expected texts are PostgreSQL's answers.

use super::*;
use crate::time::output;

fn written<T>(value: Result<T>, write: impl Fn(T, &mut String)) -> String {
    let mut out = String::new();
    match value {
        Ok(value) => write(value, &mut out),
        Err(error) => out = format!("error: {error}"),
    }
    out
}

#[test]
fn dates() {
    for (text, expected) in [
        ("2013-01-05", "2013-01-05"),
        ("2013-1-5", "2013-01-05"),
        ("20130105", "2013-01-05"),
        ("130105", "2013-01-05"),
        ("Jan 5, 2013", "2013-01-05"),
        ("5 January 2013", "2013-01-05"),
        ("5-Jan-2013", "2013-01-05"),
        ("Jan-05-2013", "2013-01-05"),
        ("2013-Jan-05", "2013-01-05"),
        ("1/5/2013", "2013-01-05"),
        ("1/5/99", "1999-01-05"),
        ("2013.005", "2013-01-05"),
        ("J2456298", "2013-01-05"),
        ("Saturday, 5 Jan 2013", "2013-01-05"),
        ("0044-03-15 BC", "0044-03-15 BC"),
        ("January 5, 99 BC", "0099-01-05 BC"),
        ("2013-01-05 23:59:59+14", "2013-01-05"),
        ("epoch", "1970-01-01"),
    ] {
        assert_eq!(written(parse_date(text), output::write_date), expected, "{text}");
    }
    for text in ["", "2013-13-01", "2013-02-29", "13/13/2013", "hello", "2013", "2013-01", "12:00", "infinity", "now"] {
        assert!(parse_date(text).is_err(), "{text}");
    }
}

#[test]
fn times() {
    for (text, expected) in [
        ("07:08", "07:08:00"),
        ("07:08:09.96", "07:08:09.96"),
        ("10:30 PM", "22:30:00"),
        ("12:05 am", "00:05:00"),
        (
            "23:59:60",
            "error: Execution error: time out of range: \"23:59:60\"; the last time of a day is 23:59:59.999999, \
             write that instead",
        ),
        ("070809", "07:08:09"),
        ("0708", "07:08:00"),
        ("2013-01-05 07:08", "07:08:00"),
        ("allballs", "00:00:00"),
        ("07:08+02", "07:08:00"),
    ] {
        assert_eq!(written(parse_time(text), output::write_time), expected, "{text}");
    }
    for text in ["25:00", "10:60", "13:00 pm", "2013-01-05", "07:08 Europe/Berlin"] {
        assert!(parse_time(text).is_err(), "{text}");
    }
}

#[test]
fn timestamps() {
    for (text, expected) in [
        ("2013-01-05", "2013-01-05 00:00:00"),
        ("2013-01-05 10:30 PM", "2013-01-05 22:30:00"),
        ("2013-01-05T07:08:09Z", "2013-01-05 07:08:09"),
        ("20130105T070809", "2013-01-05 07:08:09"),
        ("2013-01-05 24:00", "2013-01-06 00:00:00"),
        ("2013-01-05 07:08:60", "2013-01-05 07:09:00"),
        ("2013-01-05 07:08:09.9999999", "2013-01-05 07:08:10"),
        ("2013-01-05 07:08:09+02", "2013-01-05 07:08:09"),
        ("Sat Jan 5 07:08:09 2013 PST", "2013-01-05 07:08:09"),
        ("0044-03-15 10:00 BC", "0044-03-15 10:00:00 BC"),
        ("epoch", "1970-01-01 00:00:00"),
    ] {
        assert_eq!(written(parse_timestamp(text), output::write_timestamp), expected, "{text}");
    }
}

#[test]
fn instants() {
    for (text, expected) in [
        ("2013-01-05 07:08:09", "2013-01-05 07:08:09+00"),
        ("2013-01-05 07:08:09+02", "2013-01-05 05:08:09+00"),
        ("2013-01-05 07:08:09-0330", "2013-01-05 10:38:09+00"),
        ("2013-01-05 07:08:09 Europe/Berlin", "2013-01-05 06:08:09+00"),
        ("2013-07-05 07:08:09 EST", "2013-07-05 12:08:09+00"),
        ("2013-01-05 07:08:09 pst8pdt", "2013-01-05 15:08:09+00"),
        ("2013-01-05Z", "2013-01-05 00:00:00+00"),
        ("2013-01-05 12:00 +02:30:10", "2013-01-05 09:29:50+00"),
    ] {
        assert_eq!(written(parse_timestamptz(text), output::write_timestamptz), expected, "{text}");
    }
    for text in ["2013-01-05 10:00 Mars/Olympus", "2013-01-05 10:00+16", "10:00", "tomorrow", "-infinity"] {
        assert!(parse_timestamptz(text).is_err(), "{text}");
    }
}

#[test]
fn intervals() {
    for (text, expected) in [
        ("1 year 2 months 3 days 04:05:06.789", "1 year 2 mons 3 days 04:05:06.789"),
        ("P1Y2M3DT4H5M6S", "1 year 2 mons 3 days 04:05:06"),
        ("P0001-02-03T04:05:06", "1 year 2 mons 3 days 04:05:06"),
        ("PT-1.5S", "-00:00:01.5"),
        ("1-2", "1 year 2 mons"),
        ("-1-2", "-1 years -2 mons"),
        ("1 02:03:04", "1 day 02:03:04"),
        ("3 4:05", "3 days 04:05:00"),
        ("90", "00:01:30"),
        ("1.5 days", "1 day 12:00:00"),
        ("1.5 months", "1 mon 15 days"),
        ("1.5 years", "1 year 6 mons"),
        ("2 weeks ago", "-14 days"),
        ("@ 1 minute", "00:01:00"),
        ("1 month - 1 day", "1 mon -1 days"),
        ("-1 day +02:00", "-1 days +02:00:00"),
        ("1 day -2 hours", "1 day -02:00:00"),
        ("1day2h", "1 day 02:00:00"),
        ("0", "00:00:00"),
        ("-1.5 seconds", "-00:00:01.5"),
        ("1 century 1 decade", "110 years"),
        ("-3 days -04:05:06", "-3 days -04:05:06"),
        ("1.234 s", "00:00:01.234"),
    ] {
        assert_eq!(written(parse_interval(text), output::write_interval), expected, "{text}");
    }
    for text in ["", "day", "1 fortnight", "1 day 2 days", "P", "PT", "1-13", "10:99", "9999999999 years"] {
        assert!(parse_interval(text).is_err(), "{text}");
    }
}
