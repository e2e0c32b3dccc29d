//! The expected texts are PostgreSQL's answers.

use super::*;
use crate::time::input;

fn number(value: i128, scale: i8, pattern: &str) -> String {
    let array = ScalarValue::Decimal128(Some(value), 38, scale);
    let args = [array, ScalarValue::from(pattern)].map(datafusion::logical_expr::ColumnarValue::from);
    let args = FunctionCall { args: &args, fields: &[], rows: 1, returns: &DataType::Utf8 };
    let written = to_char(&args).unwrap();
    arrow::array::AsArray::as_string::<i32>(&written).value(0).to_owned()
}

#[test]
fn numbers_are_written() {
    for (value, scale, pattern, expected) in [
        (123_456, 3, "999.9", " 123.5"),
        (-12, 0, "S99", "-12"),
        (1_234_567_891, 3, "9,999,999.99", " 1,234,567.89"),
        (12, 0, "FM999", "12"),
        (5, 1, "0.00", " 0.50"),
        (12_345, 0, "999", " ###"),
        (485, 0, "RN", "        CDLXXXV"),
        (12, 0, "99th", " 12th"),
        (-55, 1, "99.9PR", " <5.5>"),
        (-55, 1, "99.9MI", " 5.5-"),
        (5, 0, "L9", "  5"),
        (4_859, 7, "9.99EEEE", " 4.86e-04"),
        (1_245, 2, "99V9", " 125"),
        (1_485, 1, "FM999.990", "148.500"),
        (1_485, 1, "FM999.999", "148.5"),
        (1, 1, "9.99", "  .10"),
        (0, 0, "999", "   0"),
        (-1, 1, "99.99", "  -.10"),
        (1_485, 0, "9G999D99", " 1,485.00"),
        (12, 0, "SG99", "+12"),
        (12, 0, "\"a\"99\"b\"", "a 12b"),
        (-7, 0, "PL9", " -7"),
        (7, 0, "9PL", " 7+"),
        (-7, 0, "9S", "7-"),
        (1, 0, "0009", " 0001"),
        (7, 1, "99", "  1"),
        (1, 1, "FM9.99", ".1"),
        (0, 0, "FM9.99", "0."),
        (0, 0, "FM99.90", ".00"),
        (10, 0, "FM999.", "10"),
    ] {
        assert_eq!(number(value, scale, pattern), expected, "{value} {pattern}");
    }
}

#[test]
fn times_are_read() {
    for (text, pattern, expected) in [
        ("05 Dec 2013", "DD Mon YYYY", "2013-12-05"),
        ("20131205", "YYYYMMDD", "2013-12-05"),
        ("2013-339", "YYYY-DDD", "2013-12-05"),
        ("2013-W23-4", "IYYY-\"W\"IW-ID", "2013-06-06"),
        ("1/2/70", "MM/DD/YY", "1970-01-02"),
        ("1/2/69", "MM/DD/YY", "2069-01-02"),
        ("  2013   1  5", "YYYY MM DD", "2013-01-05"),
        ("2456294", "J", "2013-01-01"),
        ("xv 3 2013", "\"xv\" MM YYYY", "2013-03-01"),
        ("05/01/2013 07:08 PM", "DD/MM/YYYY HH12:MI PM", "2013-01-05 19:08"),
        ("2013-01-05 07:08:09.123456", "YYYY-MM-DD HH24:MI:SS.US", "2013-01-05 07:08:09.123456"),
        ("2013-01-05 12.5", "YYYY-MM-DD SS.MS", "2013-01-05 00:00:12.5"),
        ("2013-01-05 70", "YYYY-MM-DD SSSS", "2013-01-05 00:01:10"),
        ("2013-01-05 07:00 -05:00", "YYYY-MM-DD HH24:MI TZH:TZM", "2013-01-05 12:00"),
        ("2013/01/05", "YYYY-MM-DD", "2013-01-05"),
        ("20130105T0708", "YYYYMMDD\"T\"HH24MI", "2013-01-05 07:08"),
        ("1,582nd VIII 21", "Y,YYYth FMRM DD", "1582-08-21"),
        ("1,58212", "Y,YYYMM", "1582-12-01"),
    ] {
        let (read, _) = read_time::read_time(text, &pattern::parse_time_pattern(pattern)).unwrap();
        assert_eq!(read, input::parse_timestamp(expected).unwrap(), "{text} {pattern}");
    }
    for (text, pattern) in
        [("2013-13-01", "YYYY-MM-DD"), ("x", "YYYY"), ("13 PM", "HH PM"), ("UTC", "TZ"), ("1582", "Y,YYY")]
    {
        assert!(read_time::read_time(text, &pattern::parse_time_pattern(pattern)).is_err(), "{text} {pattern}");
    }
}
