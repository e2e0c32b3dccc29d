//! Random values of each type: the server prints them itself, and sends them through Arrow to what callers read.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::value::RawValue;

use crate::rendering::render_rows;
use crate::shared_server::{batches, connect};

/// How a type is checked.
struct RoundTripCheck<'a> {
    /// Makes a value from the literal `x`.
    value: &'a str,
    /// The server's own print of the value `v`.
    print: &'a str,
    /// The JSON for that printed form.
    json: fn(&str) -> String,
}

/// As the server's output function prints a value.
const OUTPUT: &str = "format('%s', v)";
const TO_JSON: &str = "to_json(v)::text";

/// Types as users make them.
const TYPES: &str = r#"
    CREATE TYPE pg_temp.mood AS ENUM ('sad', 'so "so"', '{,}');
    CREATE DOMAIN pg_temp.short AS text CHECK (length(VALUE) < 1000);
    CREATE TYPE pg_temp.part AS (label text, "a ""size""" numeric, moods pg_temp.mood[], note pg_temp.short);
    CREATE TYPE pg_temp.whole AS (part pg_temp.part, parts pg_temp.part[], labels pg_temp.short[], document json);
"#;

fn quoted(print: &str) -> String {
    serde_json::Value::from(print).to_string()
}

fn plain_json(print: &str) -> String {
    print.to_owned()
}

/// A number where every reader of JSON has room for it, else text.
fn number(print: &str) -> String {
    let whole = print.trim_start_matches('-').split('.').next().unwrap_or_default();
    let has_room = whole.len() <= 308 && !matches!(print, "NaN" | "Infinity" | "-Infinity");
    if has_room { print.to_owned() } else { quoted(print) }
}

impl RoundTripCheck<'_> {
    /// Checks the literals of `edges` and NULL, then random ones.
    fn run(&self, edges: &[&str], literals: impl Strategy<Value = String>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let client = runtime.block_on(connect());
        runtime.block_on(client.batch_execute(TYPES)).unwrap();
        let check = |literals: &[String]| runtime.block_on(self.check_literals(&client, literals));
        check(&edges.iter().map(|edge| (*edge).to_owned()).collect::<Vec<_>>());
        let mut runner = TestRunner::new(Config {
            cases: Config::default().cases.div_ceil(32),
            failure_persistence: None,
            ..Config::default()
        });
        runner
            .run(&prop::collection::vec(literals, 1..50), |literals| {
                check(&literals);
                Ok(())
            })
            .unwrap();
    }

    async fn check_literals(&self, client: &tokio_postgres::Client, literals: &[String]) {
        let quoted: String = literals.iter().map(|literal| format!("'{}',", literal.replace('\'', "''"))).collect();
        let sql = format!(
            "SELECT v, {} AS print FROM (SELECT {} AS v FROM unnest(ARRAY[{}NULL]::text[]) AS x) AS s",
            self.print, self.value, quoted
        );
        // Batches of a few rows, so that a builder is used more than once.
        let rows = render_rows(batches(client, &sql, 7).await.unwrap()).await;
        assert_eq!(rows.len(), literals.len() + 1);
        for (row, literal) in rows.iter().zip(literals) {
            let print: String = serde_json::from_str(row["print"].get()).unwrap();
            assert_eq!(row["v"].get(), (self.json)(&print), "{literal:?} as {}", self.value);
        }
        assert_eq!(rows.last().map(|row| row["v"].get()), Some(RawValue::NULL.get()));
    }
}

#[test]
fn booleans_and_integers_round_trip() {
    RoundTripCheck { value: "x::bool", print: "v::text", json: plain_json }.run(&[], "true|false");
    let check = |value, edges: &[&str], literals: BoxedStrategy<String>| {
        RoundTripCheck { value, print: OUTPUT, json: plain_json }.run(edges, literals);
    };
    check("x::int2", &["-32768", "32767"], any::<i16>().prop_map(|value| value.to_string()).boxed());
    check("x::int4", &["-2147483648", "2147483647"], any::<i32>().prop_map(|value| value.to_string()).boxed());
    let beyond_floats = ["-9223372036854775808", "9223372036854775807", "9007199254740993"];
    check("x::int8", &beyond_floats, any::<i64>().prop_map(|value| value.to_string()).boxed());
    check("x::oid", &["0", "4294967295"], any::<u32>().prop_map(|value| value.to_string()).boxed());
    check("x::xid", &["4294967295"], any::<u32>().prop_map(|value| value.to_string()).boxed());
    check("x::xid8", &["18446744073709551615"], any::<u64>().prop_map(|value| value.to_string()).boxed());
}

#[test]
fn floats_round_trip() {
    // Ours keep a `.0`, the server's have none: the same number in its shortest form.
    fn json64(print: &str) -> String {
        match print {
            "NaN" | "Infinity" | "-Infinity" => quoted(print),
            print => format!("{:?}", print.parse::<f64>().unwrap()),
        }
    }
    fn json32(print: &str) -> String {
        match print {
            "NaN" | "Infinity" | "-Infinity" => quoted(print),
            print => format!("{:?}", print.parse::<f32>().unwrap()),
        }
    }
    let edges = ["NaN", "Infinity", "-Infinity", "-0", "0", "1e15", "1e16", "1e-7", "0.1"];
    let literal64 = any::<f64>().prop_map(|value| format!("{value:?}").replace("inf", "Infinity"));
    RoundTripCheck { value: "x::float8", print: OUTPUT, json: json64 }.run(&edges, literal64);
    let literal32 = any::<f32>().prop_map(|value| format!("{value:?}").replace("inf", "Infinity"));
    RoundTripCheck { value: "x::float4", print: OUTPUT, json: json32 }.run(&edges, literal32);
}

#[test]
fn numerics_keep_every_digit() {
    let check = |value, edges: &[&str], literals: &'static str| {
        RoundTripCheck { value, print: OUTPUT, json: number }.run(edges, literals);
    };
    let (nines, tiny, widest) = ("9".repeat(1_000), format!("0.{}1", "0".repeat(999)), "9".repeat(308));
    let edges =
        ["NaN", "Infinity", "-Infinity", "0", "-0.00", "10000", "0.0001", "1e20", "1e-20", &nines, &tiny, &widest];
    check("x::numeric", &edges, "-?[0-9]{1,40}(\\.[0-9]{0,40})?");
    check("x::numeric", &[], "-?[0-9]{290,1000}(\\.[0-9]{0,900})?");
    check("x::numeric(12,3)", &["0", "-0.001", "999999999.999"], "-?[0-9]{1,8}(\\.[0-9]{1,6})?");
    check("x::numeric(9,0)", &["0", "-999999999"], "-?[0-9]{1,9}");
    check("x::numeric(38,38)", &["0", "1e-38"], "-?0\\.[0-9]{1,38}");
    check("x::numeric(38,37)", &["9.9999999999999999999999999999999999999"], "-?[0-9]\\.[0-9]{1,37}");
    check("x::numeric(38,0)", &[&"9".repeat(38)], "-?[0-9]{1,38}");
    check("x::numeric(39,1)", &["-0.1"], "-?[0-9]{1,38}(\\.[0-9])?");
    check("x::numeric(76,38)", &["1e37", "1e-38"], "-?[0-9]{1,38}(\\.[0-9]{1,38})?");
    check("x::numeric(76,76)", &["1e-76"], "-?0\\.[0-9]{1,76}");
    check("x::numeric(77,2)", &["NaN", &"9".repeat(75)], "-?[0-9]{1,75}(\\.[0-9]{1,2})?");
    check("x::numeric(5,-2)", &["NaN"], "-?[0-9]{1,6}");
    check("x::numeric(3,5)", &["0.00001"], "-?0\\.00[0-9]{1,3}");
}

#[test]
fn texts_round_trip() {
    let check = |value, literals: &'static str| {
        RoundTripCheck { value, print: OUTPUT, json: quoted }.run(&["", " ", "'", "\"\\", "日本 \u{1F30A}"], literals);
    };
    let text = any::<String>().prop_map(|text| text.replace('\0', ""));
    RoundTripCheck { value: "x::text", print: OUTPUT, json: quoted }.run(&["", "NULL", "\u{1}\u{7f}\r\n\t"], text);
    check("x::varchar(20)", "[^\0]{0,20}");
    check("x::bpchar(10)", "[^\0]{0,10}");
    check("x::bpchar", "[^\0]{0,10}");
    check("x::name", "[a-zé ]{0,30}");
    RoundTripCheck { value: "x::\"char\"", print: OUTPUT, json: quoted }.run(&["", " "], "[ -~]");
    RoundTripCheck { value: "x::uuid", print: OUTPUT, json: quoted }
        .run(&[], "[0-9a-fA-F]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}");
    let base64 = "translate(encode(v, 'base64'), E'\\n', '')";
    RoundTripCheck { value: "convert_to(x, 'UTF8')", print: base64, json: quoted }.run(&[""], "[^\0]{0,99}");
    RoundTripCheck { value: "decode(x, 'hex')", print: base64, json: quoted }.run(&["00ff"], "([0-9a-f]{2}){0,40}");
}

#[test]
fn addresses_and_bits_round_trip() {
    let check = |value, edges: &[&str], literals: BoxedStrategy<String>| {
        RoundTripCheck { value, print: OUTPUT, json: quoted }.run(edges, literals);
    };
    let ipv4 = (any::<[u8; 4]>(), 0..=32_u8).prop_map(|([a, b, c, d], bits)| format!("{a}.{b}.{c}.{d}/{bits}"));
    // Zeros are as frequent as other groups, so that runs of them are too.
    let group = prop_oneof![3 => Just(0_u16), 1 => Just(0xffff), 2 => any::<u16>()];
    let ipv6 = (prop::array::uniform8(group), 0..=128_u8)
        .prop_map(|(groups, bits)| format!("{}/{bits}", groups.map(|group| format!("{group:x}")).join(":")));
    let edges = ["::", "::1", "::/0", "::1.2.3.4", "::ffff:1.2.3.4", "0:0:1::", "1::", "1:0:0:2:0:0:0:3", "10.1.2.3"];
    check("x::inet", &edges, prop_oneof![ipv4.clone(), ipv6.clone()].boxed());
    check("network(x::inet)", &edges, prop_oneof![ipv4, ipv6].boxed());
    let mac = |bytes| proptest::string::string_regex(&format!("[0-9a-f]{{2}}(:[0-9a-f]{{2}}){{{bytes}}}")).unwrap();
    check("x::macaddr", &[], mac(5).boxed());
    check("x::macaddr8", &[], mac(7).boxed());
    check("x::varbit", &["", "1"], "[01]{0,40}".boxed());
    check("x::bit(11)", &["00000000000"], "[01]{11}".boxed());
}

/// The stated form of a date that the server printed: years before 1 and after 9999 are those of ISO 8601, with a sign.
fn iso_date(print: &str, is_before_christ: bool) -> String {
    let [year, month, day] = print.split('-').collect::<Vec<_>>()[..] else { panic!("{print}") };
    let year: i64 = year.parse().unwrap();
    match (is_before_christ, year) {
        (true, 1) => format!("0000-{month}-{day}"),
        (true, _) => format!("-{:06}-{month}-{day}", year - 1),
        (false, 10_000..) => format!("+{year:06}-{month}-{day}"),
        (false, _) => format!("{year:04}-{month}-{day}"),
    }
}

/// The stated form of a time: no fraction of a second, or three or six digits of it.
fn iso_time(print: &str) -> String {
    match print.split_once('.') {
        None => print.to_owned(),
        Some((whole, fraction)) if fraction.len() <= 3 => format!("{whole}.{fraction:0<3}"),
        Some((whole, fraction)) => format!("{whole}.{fraction:0<6}"),
    }
}

fn iso(print: &str) -> String {
    if print.ends_with("infinity") {
        return quoted(print);
    }
    let (print, is_before_christ) = match print.strip_suffix(" BC") {
        Some(rest) => (rest, true),
        None => (print, false),
    };
    let stated = match print.split_once(' ') {
        None => iso_date(print, is_before_christ),
        Some((date, time)) => {
            let (time, zone) = time.strip_suffix("+00").map_or((time, ""), |time| (time, "Z"));
            format!("{}T{}{zone}", iso_date(date, is_before_christ), iso_time(time))
        }
    };
    quoted(&stated)
}

fn dates(last_year: i32) -> impl Strategy<Value = (String, &'static str)> + Clone {
    let years = prop_oneof![4 => 1..=9_999_i32, 2 => 10_000..=last_year, 2 => -4_712..0];
    (years, 1..=12, 1..=28).prop_map(|(year, month, day)| {
        (format!("{:04}-{month:02}-{day:02}", year.abs()), if year < 0 { " BC" } else { "" })
    })
}

#[test]
fn dates_and_times_round_trip() {
    let edges = ["infinity", "-infinity", "4714-11-24 BC", "0001-01-01", "0001-12-31 BC", "9999-12-31", "10000-01-01"];
    let date = dates(5_874_897).prop_map(|(date, era)| date + era);
    RoundTripCheck { value: "x::date", print: OUTPUT, json: iso }.run(&[&edges[..], &["5874897-12-31"]].concat(), date);
    let times = "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,6})?";
    let timestamp = (dates(294_246), times).prop_map(|((date, era), time)| format!("{date} {time}{era}"));
    let edges = [&edges[..], &["294247-01-10 04:00:54.775806"]].concat();
    RoundTripCheck { value: "x::timestamp", print: OUTPUT, json: iso }.run(&edges, timestamp.clone());
    RoundTripCheck { value: "x::timestamptz", print: OUTPUT, json: iso }.run(&edges, timestamp.clone());
    RoundTripCheck { value: "x::timestamp(3)", print: OUTPUT, json: iso }.run(&edges[..7], timestamp);
    RoundTripCheck { value: "x::time", print: OUTPUT, json: |print| quoted(&iso_time(print)) }
        .run(&["24:00:00", "00:00:00"], times);
    let microseconds = i64::MIN / 1_000..=i64::MAX / 1_000;
    let interval = (any::<i32>(), any::<i32>(), microseconds)
        .prop_map(|(months, days, micros)| format!("{months} months {days} days {micros} microseconds"));
    let small = "-?[0-9]{1,2} months -?[0-9]{1,2} days -?[0-9]{1,8}(\\.[0-9]{1,6})? seconds";
    RoundTripCheck { value: "x::interval", print: OUTPUT, json: quoted }.run(&["0"], prop_oneof![interval, small]);
}

#[test]
fn json_documents_round_trip() {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<bool>().prop_map(|value| value.to_string()),
        any::<f64>()
            .prop_filter("JSON has no others", |value| value.is_finite())
            .prop_map(|value| format!("{value:?}")),
        "[0-9]{20,50}\\.[0-9]{20}".prop_map(|digits| format!("1{digits}")),
        any::<String>().prop_map(|text| quoted(&text.replace('\0', ""))),
    ];
    let document = leaf.prop_recursive(4, 30, 5, |inner| {
        let key = any::<String>().prop_map(|text| quoted(&text.replace('\0', "")));
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(|items| format!("[{}]", items.join(",\n  "))),
            prop::collection::vec((key, inner), 0..5).prop_map(|members| {
                let members: Vec<String> =
                    members.into_iter().map(|(key, value)| format!("{key} :\t{value}")).collect();
                format!("{{{}}}", members.join(","))
            }),
        ]
    });
    let on_one_line: fn(&str) -> String = |print| print.trim().replace(['\n', '\r', '\t'], " ");
    let edges = ["\"a\\nb\"", " {\n} ", "1e400", "\"\\ud83c\\udf0a\"", "{\"a\":1,\"a\":2}", "1.00"];
    RoundTripCheck { value: "x::json", print: OUTPUT, json: on_one_line }.run(&edges, document.clone());
    RoundTripCheck { value: "x::jsonb", print: OUTPUT, json: on_one_line }.run(&edges, document);
}

#[test]
fn arrays_round_trip() {
    let check = |value, edges: &[&str], literals: BoxedStrategy<String>| {
        RoundTripCheck { value, print: TO_JSON, json: plain_json }.run(edges, literals);
    };
    fn array(item: impl Strategy<Value = String> + 'static) -> BoxedStrategy<String> {
        let item = prop_oneof![1 => Just("NULL".to_owned()), 4 => item];
        prop::collection::vec(item, 0..6).prop_map(|items| format!("{{{}}}", items.join(","))).boxed()
    }
    let edges = ["{}", "{NULL}", "[5:6]={1,2}"];
    check("x::int4[]", &edges, array(any::<i32>().prop_map(|item| item.to_string())));
    check("x::numeric[]", &["{NaN,Infinity}"], array("-?[0-9]{1,50}(\\.[0-9]{1,50})?"));
    check("x::numeric(9,2)[]", &edges, array("-?[0-9]{1,6}(\\.[0-9]{1,3})?"));
    check("x::bool[]", &["{t,f,NULL}"], array("true|false"));
    check("x::uuid[]", &["{}"], array("[0-9a-f]{32}"));
    let text = "[^\0\"\\\\]{0,9}".prop_map(|text| format!("\"{text}\""));
    check("x::text[]", &["{\"\",\"NULL\",NULL,\"a\\\"b\\\\c\"}"], array(text));
    check("x::jsonb[]", &["{\"{\\\"a\\\": [null]}\"}"], array("[1-9]{1,5}"));
    check("x::int2vector", &["1 2 3", ""], "[0-9]( [0-9]{1,4}){0,5}".boxed());
}

#[test]
fn user_defined_types_round_trip() {
    let moods = prop::sample::select(vec!["sad".to_owned(), "so \"so\"".to_owned(), "{,}".to_owned()]);
    RoundTripCheck { value: "x::pg_temp.mood", print: OUTPUT, json: quoted }.run(&[], moods);
    let text = || any::<String>().prop_map(|text| text.replace('\0', ""));
    RoundTripCheck { value: "x::pg_temp.short", print: OUTPUT, json: quoted }.run(&["", "\"("], text());
    // Parts and wholes of them, with the literal as each of their texts.
    let part = "ROW(x, length(x) / 3.0, ARRAY['{,}', NULL]::pg_temp.mood[], NULL)::pg_temp.part";
    let whole = format!(
        "ROW({part}, ARRAY[{part}, NULL, ROW(NULL, NULL, '{{}}', x)::pg_temp.part], ARRAY[x, NULL]::pg_temp.short[], \
         to_json(x))::pg_temp.whole"
    );
    for value in [part.to_owned(), whole.clone(), format!("ARRAY[{whole}, NULL, {whole}]")] {
        let value = format!("CASE WHEN x IS NOT NULL THEN {value} END");
        RoundTripCheck { value: &value, print: TO_JSON, json: plain_json }
            .run(&["", "\"", "\\", "(,)", "{NULL}"], text());
    }
}
