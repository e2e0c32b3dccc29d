//! The advice for files that are not read, or not to their end: it mends its case and changes nothing else.

use serde_json::{Map, Value, json};

use super::ConfiguredFolder;

const ORDERS: &str = "SELECT * FROM orders";

/// A folder with one more file, and the options of its tables.
fn folder(file: &str, bytes: &[u8], tables: &str) -> ConfiguredFolder {
    let configured = ConfiguredFolder::new(&configuration(tables));
    std::fs::write(configured.folder().join("shop").join(file), bytes).unwrap();
    configured
}

fn configuration(tables: &str) -> String {
    format!("databases:\n  - name: shop\n    files: shop\n    {tables}\n")
}

fn rows(configured: &ConfiguredFolder, sql: &str) -> Value {
    let ran = configured.run(&["query", sql, "--format", "mcp"]);
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}

/// What `doctor` says of tables that cannot be read.
fn unreadable(configured: &ConfiguredFolder) -> Vec<String> {
    let found = configured.run(&["doctor"]).stdout;
    found.lines().filter(|line| line.contains(" cannot be read: ")).map(str::to_owned).collect()
}

/// The first declaration in `text`: `tables: {t: {skip: 1}}`.
fn declaration(text: &str) -> &str {
    let (_, advice) = text.split_once("under its database, ").unwrap_or_else(|| panic!("no advice in {text}"));
    let mut depth = 0;
    let is_end = |character: char| {
        depth += i32::from(character == '{') - i32::from(character == '}');
        character == '}' && depth == 0
    };
    let end = advice.find(is_end).unwrap_or_else(|| panic!("no declaration in {text}"));
    &advice[..=end]
}

/// Applies the advice of `doctor` for the only table that cannot be read, and checks that nothing else changes.
fn apply_advice(configured: &ConfiguredFolder, unchanged: &[&str]) -> String {
    let before: Vec<Value> = unchanged.iter().map(|sql| rows(configured, sql)).collect();
    let problems = unreadable(configured);
    let [problem] = problems.as_slice() else { panic!("{problems:?}") };
    let advice = declaration(problem);
    configured.write(&configuration(advice));
    assert_eq!(unreadable(configured), [""; 0], "{advice}");
    let checked = configured.run(&["config", "check"]);
    assert!(checked.stdout.ends_with("nothing wrong\n"), "{advice}: {checked:?}");
    let after: Vec<Value> = unchanged.iter().map(|sql| rows(configured, sql)).collect();
    assert_eq!(after, before, "{advice}");
    advice.to_owned()
}

/// Rows with the columns a and b.
fn pairs<A: Into<Value>, B: Into<Value>>(rows: impl IntoIterator<Item = (A, B)>) -> Value {
    let row = |(a, b): (A, B)| {
        let members = [("a", a.into()), ("b", b.into())];
        Value::Object(members.map(|(name, value)| (name.to_owned(), value)).into_iter().collect::<Map<_, _>>())
    };
    rows.into_iter().map(row).collect()
}

#[test]
fn the_advice_of_doctor_reads_a_broken_file() {
    let titled = [("Ann", 3), ("Bob", 4), ("Cyd", 5)];
    let ragged = json!([{"a": 1, "b": 2, "c": 3}, {"a": 4, "b": 5, "c": null}]);
    let of_years = json!([{"site": "Ulm", "2023": 1, "2024": null}, {"site": "Rome", "2023": 2, "2024": 3}]);
    let booked = json!([{"day": "01.02.2025", "sum": "-1,50"}, {"day": "02.02.2025", "sum": "-2,84"},
                        {"day": "03.02.2025", "sum": "-2,84"}]);
    let cases: [(&[u8], &str, Value); 16] = [
        (b"a,b\n1,\"x\" y\n2,\"p, q\"\n", "quotes: lenient", pairs([(1, "x y"), (2, "p, q")])),
        (b"a,b\n1,\"x \\\"y\\\" z\"\n2,\"p, q\"\n", "escape: '\\'", pairs([(1, "x \"y\" z"), (2, "p, q")])),
        (b"a,b\n1,5\" pipe\n2,\"open\n3,c\n", "quotes: none", pairs([(1, "5\" pipe"), (2, "\"open"), (3, "c")])),
        (b"a,b\n1,\"x\n2,\"y\n3,z\n", "quotes: none", pairs([(1, "\"x"), (2, "\"y"), (3, "z")])),
        (b"a, b\n1, \"x, y\"\n2, z\n", "skip_blanks: true", pairs([(1, "x, y"), (2, "z")])),
        (b"a,b,c\n1,2,3\n4,5\n", "ragged: fill", ragged.clone()),
        (b"site,2023,2024\nUlm,1\nRome,2,3\n", "ragged: fill", of_years),
        (b"a,b\n1,2\n3,4,\n", "ragged: trim", pairs([(1, 2), (3, 4)])),
        (b"Export of 2026\na;b\nAnn;3\nBob;4\nCyd;5\n", "skip: 1", pairs(titled)),
        (b"Export of 2026;\na;b\nAnn;3\nBob;4\nCyd;5\n", "skip: 1", pairs(titled)),
        (b"Export\nCreated;15.06.\n\na;b\nAnn;3\nBob;4\nCyd;5\n", "skip: 3", pairs(titled)),
        (b"Export;\nCreated;15.06.\n;\na;b\nAnn;3\nBob;4\nCyd;5\n", "skip: 3", pairs(titled)),
        (b"sep=;\nExport of 2026;\n;\na;b\nAnn;3\nBob;4\nCyd;5\n", "skip: 3", pairs(titled)),
        (b"Export\n\nday;sum\n01.02.2025;-1,50\n02.02.2025;-2,84\n03.02.2025;-2,84\n", "skip: 2", booked.clone()),
        (b"Export, x\nday;sum\n01.02.2025;-1,50\n02.02.2025;-2,84\n03.02.2025;-2,84\n", "skip: 1", booked),
        (b"Export;x\na;b;c\n1;2;3\n4;5;\n", "skip: 1", ragged),
    ];
    for (file, option, expected) in cases {
        let configured = folder("broken.csv", file, "");
        let advice = apply_advice(&configured, &[ORDERS]);
        assert_eq!(advice, format!("tables: {{broken: {{{option}}}}}"));
        assert_eq!(rows(&configured, "SELECT * FROM broken"), expected, "{advice}");
    }
}

/// The beginning of the file is in ASCII.
#[test]
fn the_advice_for_a_late_character_names_its_encoding() {
    let mut text: Vec<u8> = b"a,b\n".to_vec();
    (0..60_000).for_each(|number| text.extend(format!("{number},ok\n").into_bytes()));
    text.extend(b"60000,caf\xE9\n");
    let configured = folder("broken.csv", &text, "");
    let advice = apply_advice(&configured, &[ORDERS]);
    assert_eq!(advice, "tables: {broken: {encoding: windows-1252}}");
    assert_eq!(rows(&configured, "SELECT a, b FROM broken WHERE a > 59999"), pairs([(60_000, "café")]));
}

#[test]
fn the_advice_for_a_sheet_is_for_this_sheet_alone() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/workbooks/Personal.xlsx");
    let configured = folder("Personal.xlsx", &std::fs::read(path).unwrap(), "");
    let advice = apply_advice(&configured, &[ORDERS, "SELECT * FROM \"Personal_Orte\""]);
    assert_eq!(advice, "tables: {Personal_Liste: {skip: 2}}");
    let expected = json!([{"name": "Ann", "city": "Rome", "hours": 3}, {"name": "Bob", "city": "Ulm", "hours": 4}]);
    assert_eq!(rows(&configured, "SELECT * FROM \"Personal_Liste\""), expected);
}

/// There is no option for them.
#[test]
fn files_that_no_option_reads_are_refused_with_what_to_do() {
    let encrypted =
        [&b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1"[..], &[0; 1_000], b"E\0n\0c\0r\0y\0p\0t\0e\0d\0P\0a\0c\0k\0a\0g\0e\0"];
    for (file, bytes, advice) in [
        (
            "secret.xlsx",
            encrypted.concat(),
            "it is encrypted with a password; open it in a spreadsheet program, and save it",
        ),
        ("old.xlsx", encrypted[..2].concat(), "before Excel 2007 (.xls), whatever its name is; save it as .xlsx"),
        ("dos.csv", b"a,b\n1,M\x84rz\n".to_vec(), "convert it to UTF-8 (iconv -f CP850 -t UTF-8)"),
        (
            "byte.csv",
            [&b"a,b\n1,"[..], "café Zürich Köln Süß\n2,café".as_bytes(), b" \xFF\n"].concat(),
            "it is not UTF-8 text: line 3",
        ),
        (
            "comma.csv",
            b"name,price\nAnn,1,50\nBob,2,75\n".to_vec(),
            "got 3; if commas in numbers are decimal, enclose these",
        ),
        ("alone.csv", b"price\n1,50\n2,75\n3,25\n".to_vec(), "got 2; if commas in numbers are decimal, enclose these"),
        ("names.csv", b"Ann,1,50\nBob,2\nCyd,3\n".to_vec(), "got 2; if commas in numbers are decimal, enclose these"),
        ("text.csv", b"a,b\nAnn,x, y\n".to_vec(), "enclose values that contain the delimiter in quotes; or, to drop"),
    ] {
        let problems = unreadable(&folder(file, &bytes, ""));
        assert!(matches!(problems.as_slice(), [problem] if problem.contains(advice)), "{problems:?}");
    }
    // Where an uncertain guess is wrong, the option in its note replaces it.
    let configured = folder("guessed.csv", b"a,b\n1,\x93\x8C\x8B\x9E\n", "");
    let listed = configured.run(&["call", "list_tables"]).stdout;
    assert!(listed.contains("which is uncertain; if characters are wrong, declare encoding"), "{listed}");
    configured.write(&configuration("tables: {guessed: {encoding: shift_jis}}"));
    assert_eq!(rows(&configured, "SELECT * FROM guessed"), pairs([(1, "東京")]));
}

#[test]
fn quotes_that_no_option_takes_across_lines() {
    let configured = folder("t.csv", b"a,b\n1,\"x\n2,\"y\n", "tables: {t: {quotes: lenient}}");
    let problems = unreadable(&configured);
    assert!(
        matches!(problems.as_slice(), [problem] if problem.contains("tables: {t: {quotes: none}}")),
        "{problems:?}"
    );
    configured.write(&configuration("tables: {t: {quotes: none, quote: \"'\"}}"));
    assert!(
        configured.usage_error(&["config", "check"]).contains("tables.t.quotes: is none, so that quote and escape")
    );
}

/// A value in the last row changes the type of its column after rows were printed.
#[test]
fn the_advice_for_a_late_value_works_in_one_command() {
    for (late, declared, expected) in [("unknown", "string", json!("unknown")), ("0.5", "number", json!(0.5))] {
        let mut text = "a,b\n".to_owned();
        (0..60_000).for_each(|number| text.push_str(&format!("{number},ok\n")));
        text.push_str(&format!("{late},last\n"));
        let configured = folder("late.csv", text.as_bytes(), "tables: {late: {infer: sample}}");
        let ran = configured.run(&["query", "SELECT a, b FROM late"]);
        assert_eq!(ran.code, Some(1), "{late}");
        assert_eq!(declaration(&ran.stderr), format!("tables: {{late: {{columns: {{\"a\": {declared}}}}}}}"), "{late}");
        // `export` has no need of it.
        let exported = configured.run(&["export", "SELECT a, b FROM late", "-o", "out.csv"]);
        assert_eq!(exported.code, Some(0), "{exported:?}");
        let written = std::fs::read_to_string(configured.folder().join("out.csv")).unwrap();
        assert_eq!((written.lines().count(), written.lines().last()), (60_002, Some(format!("{late},last").as_str())));
        let advice = declaration(&ran.stderr).replace("{late: {", "{late: {infer: sample, ");
        configured.write(&configuration(&advice));
        assert_eq!(configured.run(&["query", "SELECT a, b FROM late"]).lines().len(), 60_002, "{advice}");
        let last = rows(&configured, "SELECT a FROM late WHERE b = 'last'");
        assert_eq!(last, json!([{"a": expected}]), "{advice}");
    }
}

/// The format of the table would make the latitude a whole number.
#[test]
fn the_advice_for_numbers_changes_no_other_column() {
    let configured = folder("t.csv", b"place;lat;price\nBerlin;52.520;1.234,50\nRom;41.902;7,5\n", "");
    let found = configured.run(&["doctor"]).stdout;
    let note =
        |column: &str| found.lines().find(|line| line.contains(&format!("t.{column} is text"))).unwrap().to_owned();
    let advice = declaration(&note("price")).to_owned();
    assert_eq!(advice, "tables: {t: {columns: {\"price\": 'number 1.234,5'}}}");
    configured.write(&configuration(&advice));
    let expected = json!([{"lat": "52.520", "price": 1234.5}, {"lat": "41.902", "price": 7.5}]);
    assert_eq!(rows(&configured, "SELECT lat, price FROM t"), expected);
    assert!(note("lat").ends_with("if they are decimal, columns: {\"lat\": 'number 1234.5'}"), "{found}");
    configured.write(&configuration("tables: {t: {columns: {price: 'number 1.234,5', lat: 'number 1234.5'}}}"));
    let expected = json!([{"lat": 52.52, "price": 1234.5}, {"lat": 41.902, "price": 7.5}]);
    assert_eq!(rows(&configured, "SELECT lat, price FROM t"), expected);
}
