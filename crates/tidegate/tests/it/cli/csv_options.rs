//! Tables of CSV files and of logs as a configuration says that they are read.

use super::ConfiguredFolder;

fn configured(tables: &str) -> ConfiguredFolder {
    let configured =
        ConfiguredFolder::new(&format!("databases:\n  - name: shop\n    files: shop\n    tables: {tables}\n"));
    let shop = configured.folder().join("shop");
    std::fs::write(shop.join("odd.csv"), "# made by hand\n007|'a|b'|1.50|n/a\n008|c|2|3\n").unwrap();
    configured
}

fn query(configured: &ConfiguredFolder, sql: &str) -> String {
    let ran = configured.run(&["query", sql, "--format", "mcp"]);
    format!("{}{}", ran.stdout, ran.stderr)
}

#[test]
fn csv_options_are_applied() {
    let message = "{odd: {delimiter: '|', quote: \"'\", header: false, null: n/a, comment: '#', \
                columns: {column_3: 'decimal(8,2)', column_4: string}}}";
    let odd = configured(message);
    insta::assert_snapshot!(query(&odd, "SELECT * FROM odd"), @r#"[{"column_1":"007","column_2":"a|b","column_3":1.50,"column_4":null},{"column_1":"008","column_2":"c","column_3":2.00,"column_4":"3"}]"#);
    insta::assert_snapshot!(query(&odd, "SELECT sum(column_3) AS total, count(column_4) AS known FROM odd"), @r#"[{"total":3.50,"known":1}]"#);
}

#[test]
fn reports_invalid_csv_options() {
    let orders = configured("{orders: {columns: {customer: integer}}}");
    insta::assert_snapshot!(query(&orders, "SELECT * FROM orders"), @r#"error: line 2 of the file orders.csv has 'Ann' in column "customer", which the configuration declares as bigint"#);
    insta::assert_snapshot!(query(&orders, "SELECT * FROM orders"), @r#"error: line 2 of the file orders.csv has 'Ann' in column "customer", which the configuration declares as bigint"#);
    let orders = configured("{orders: {columns: {custmer: integer}}}");
    insta::assert_snapshot!(query(&orders, "SELECT * FROM orders"), @r#"error: the table "orders" cannot be read: the configuration declares a type for "custmer", but the columns are id, customer, amount"#);
    let wrong =
        configured("{orders: {delimiter: '||', comment: A note, columns: {id: whole}, null: a text that is too long}}");
    insta::assert_snapshot!(wrong.usage_error(&["config", "check"]), @r#"
    error: the configuration cannot be used
    tidegate.yaml:4:23: databases[0].tables.orders.delimiter: "||" is not one ASCII character; write one, or tab
    tidegate.yaml:4:40: databases[0].tables.orders.comment: "A note" is not one ASCII character; write one, or tab; lines that begin with it are skipped, and it is no description
    tidegate.yaml:4:67: databases[0].tables.orders.columns.id: there is no type "whole"; there are string (text), integer (bigint), number (double precision), decimal(P,S) (numeric), boolean, date, timestamp and timestamptz; times may have a form, date DD.MM.YYYY, and so may numbers: number 1.234,5
    "#);
}

#[test]
fn log_options_are_applied() {
    let tables = r"{app.txt: {pattern: '^(?<time>\S+ \S+) (?<level>\w+) (?<took>\d+) (?<message>.*)$', groups: {took: integer}, time_zone: '+02:00'}}";
    let app = configured(tables);
    std::fs::write(app.folder().join("shop/app.txt"), "2024-03-01 12:00:00 WARN 7 slow\nmore\n").unwrap();
    insta::assert_snapshot!(query(&app, "SELECT time, took * 2 AS twice, message FROM app"), @r#"[{"time":"2024-03-01T10:00:00Z","twice":14,"message":"slow\nmore"}]"#);
}

#[test]
fn reports_invalid_log_options() {
    let wrong = configured("{orders: {format: combned, time_zone: Europe/Berln}, odd: {format: json, delimiter: ','}}");
    insta::assert_snapshot!(wrong.usage_error(&["config", "check"]), @r#"
    error: the configuration cannot be used
    tidegate.yaml:4:23: databases[0].tables.orders.format: unknown log format "combned"; did you mean "combined"?; the formats are common, combined, nginx_error, apache_error, haproxy, cri, klog, syslog, logfmt, json, csvlog, jsonlog, postgresql, pattern
    tidegate.yaml:4:40: databases[0].tables.orders.time_zone: unknown time zone "Europe/Berln"; did you mean "Europe/Berlin"?; write a name of the IANA database such as Europe/Berlin, or an offset such as +02:00
    tidegate.yaml:4:66: databases[0].tables.odd: has options of a log (format, pattern, groups, time_zone) and options of CSV files or sheets; write only those of one kind
    "#);
}
