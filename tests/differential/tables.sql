-- The tables of the differential test: PostgreSQL runs this file, and the rows that it then has become the Parquet files.
-- So there is one definition of each value. Columns have types that Parquet has too: `numeric` with precision and scale,
-- arrays of one dimension, JSON and intervals as text. Everything is deterministic.

-- The demo's tables: data/demo/README.md. They have fewer rows of `flights`, where (flight * 7 + month * 31 + day) % 40 = 0, and of `weather`, where day % 5 = 1.

CREATE TABLE airlines (carrier text NOT NULL, name text NOT NULL);

CREATE TABLE airports (
    faa text NOT NULL, name text NOT NULL, lat double precision NOT NULL, lon double precision NOT NULL,
    alt integer NOT NULL, tz integer, dst text, tzone text
);

CREATE TABLE flights (
    year integer NOT NULL, month integer NOT NULL, day integer NOT NULL, dep_time integer, sched_dep_time integer NOT NULL,
    dep_delay integer, arr_time integer, sched_arr_time integer NOT NULL, arr_delay integer, carrier text NOT NULL,
    flight integer NOT NULL, tailnum text, origin text NOT NULL, dest text NOT NULL, air_time integer,
    distance integer NOT NULL, hour integer NOT NULL, minute integer NOT NULL, time_hour timestamptz NOT NULL
);

CREATE TABLE planes (
    tailnum text NOT NULL, year integer, type text NOT NULL, manufacturer text NOT NULL, model text NOT NULL,
    engines integer NOT NULL, seats integer NOT NULL, speed integer, engine text NOT NULL
);

CREATE TABLE weather (
    origin text NOT NULL, year integer NOT NULL, month integer NOT NULL, day integer NOT NULL, hour integer NOT NULL,
    temp double precision, dewp double precision, humid double precision, wind_dir integer, wind_speed double precision,
    wind_gust double precision, precip double precision, pressure double precision, visib double precision,
    time_hour timestamptz NOT NULL
);

-- Each column type, with NULLs, zero, extremes, Unicode, leap days, instants before 1970.

CREATE TABLE t_types (
    id integer NOT NULL, si smallint, i integer, bi bigint, r real, d double precision, n numeric(12,3), big numeric(38,10),
    t text, v varchar(40), b boolean, da date, ti time, ts timestamp, tz timestamptz, by bytea, iv text
);

-- `iv` is an interval as text: write `iv::interval`.
INSERT INTO t_types VALUES
(1, 0, 0, 0, 0, 0, 0, 0, '', '', false, '1970-01-01', '00:00', '1970-01-01 00:00', '1970-01-01 00:00+00', '\x', '0'),
(2, 1, 1, 1, 1, 1, 1, 1, 'a', 'a', true, '2000-01-01', '12:00', '2000-01-01 12:00', '2000-01-01 12:00+00', '\x00', '1 day'),
(3, -1, -1, -1, -1, -1, -1, -1, 'A', 'A', false, '1999-12-31', '23:59:59.999999', '1999-12-31 23:59:59.999999', '1999-12-31 23:59:59.999999+00', '\xff', '-1 day'),
(4, 32767, 2147483647, 9223372036854775807, 3.4e38, 1.7e308, 999999999.999, 9999999999999999999999999999.9999999999, 'zebra', 'zebra', true, '9999-12-31', '23:59:59', '9999-12-31 23:59:59', '9999-12-31 23:59:59+00', '\xdeadbeef', '100 years'),
(5, -32768, -2147483648, -9223372036854775808, -3.4e38, -1.7e308, -999999999.999, -9999999999999999999999999999.9999999999, 'Zebra', 'Zebra', false, '0001-01-01', '00:00:01', '0001-01-01 00:00', '0001-01-01 00:00+00', '\x00ff00ff', '-100 years'),
(6, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
(7, 2, 3, 5, 0.5, 0.5, 0.5, 0.5, 'ä', 'ä', true, '2024-02-29', '06:30', '2024-02-29 06:30', '2024-02-29 06:30+00', '\x0102', '1 month'),
(8, -2, -3, -5, -0.5, -0.5, -0.5, -0.5, 'Ä', 'Ä', false, '2023-02-28', '18:45:30.5', '2023-02-28 18:45:30.5', '2023-02-28 18:45:30.5+00', '\x61626364', '1 year 2 months'),
(9, 7, 10, 100, 1.5, 1.5, 1.5, 1.5, 'straße', 'straße', true, '2023-03-26', '01:59:59', '2023-03-26 01:59:59', '2023-03-26 00:59:59+00', '\x20', '3 days 04:05:06'),
(10, -7, -10, -100, -1.5, -1.5, -1.5, -1.5, '😀 smile', '😀 smile', false, '2023-10-29', '02:30', '2023-10-29 02:30', '2023-10-29 01:30+00', '\xe2889e', '-3 days -04:05:06'),
(11, 100, 1000, 10000, 2.5, 2.5, 2.5, 2.5, E'e\u0301 combining', E'e\u0301 combining', true, '2013-01-01', '08:15:00', '2013-01-01 08:15', '2013-01-01 13:15+00', '\x0a0d', '90 minutes'),
(12, -100, -1000, -10000, -2.5, -2.5, -2.5, -2.5, 'é composed', 'é composed', false, '2012-12-31', '17:00:00.123', '2012-12-31 17:00:00.123', '2012-12-31 22:00:00.123+00', '\x5c', '1.5 hours'),
(13, 12, 123456, 1234567890123, 3.14159, 3.141592653589793, 1234.567, 1234567.8912345678, 'hello world', 'hello world', true, '2023-07-04', '14:30:15', '2023-07-04 14:30:15', '2023-07-04 18:30:15+00', '\x68656c6c6f', '2 weeks'),
(14, -12, -123456, -1234567890123, -3.14159, -3.141592653589793, -1234.567, -1234567.8912345678, 'Hello World', 'Hello World', false, '1969-12-31', '23:00', '1969-12-31 23:00', '1969-12-31 23:00+00', '\x48656c6c6f', '-2 weeks'),
(15, 10, 10, 10, 1e10, 1e100, 0.001, 0.0000000001, ' leading', ' leading', true, '1900-02-28', '00:00:00.000001', '1900-02-28 00:00:00.000001', '1900-02-28 00:00:00.000001+00', '\x00000000', '1 microsecond'),
(16, -10, -10, -10, 1e-10, 1e-100, -0.001, -0.0000000001, 'trailing ', 'trailing ', false, '1900-03-01', '12:34:56.789', '1900-03-01 12:34:56.789', '1900-03-01 12:34:56.789+00', '\x7f80', '-1 microsecond'),
(17, 42, 42, 42, 42, 42, 42, 42, E'tab\there', E'tab\there', true, '2016-12-31', '23:59:00', '2016-12-31 23:59', '2016-12-31 23:59+00', '\x2a', '42 seconds'),
(18, 5, 5, 5, 0.1, 0.1, 0.1, 0.1, E'line\nbreak', E'line\nbreak', false, '2020-02-29', '05:05:05', '2020-02-29 05:05:05', '2020-02-29 05:05:05+00', '\x05', '5 years 5 months 5 days 05:05:05.5'),
(19, 3, 3, 3, 0.3, 0.3, 0.3, 0.3, '100%', '100%', true, '2021-01-31', '03:03:03.33', '2021-01-31 03:03:03.33', '2021-01-31 03:03:03.33+00', '\x03', '1 month -1 day'),
(20, 4, 4, 4, 0.25, 0.25, 0.25, 0.25, 'under_score', 'under_score', false, '2021-12-27', '04:04:04', '2021-12-27 04:04:04', '2021-12-27 04:04:04+00', '\x04', '25 hours'),
(21, 6, 6, 6, 1e-5, 1e-5, 0.005, 0.005, 'back\slash', 'back\slash', true, '2022-01-01', '06:06', '2022-01-01 06:06', '2022-01-01 06:06+00', '\x06', '40 days'),
(22, 8, 8, 8, 123456.79, 123456.789, 123456.789, 123456.789, '''quoted''', '''quoted''', false, '2018-12-31', '08:08', '2018-12-31 08:08', '2018-12-31 08:08+00', '\x08', '13 months'),
(23, 9, 9, 9, 1e15, 1e15, 1.005, 1.005, '12345', '12345', true, '2019-01-01', '09:09', '2019-01-01 09:09', '2019-01-01 09:09+00', '\x09', '366 days'),
(24, 11, 11, 11, 16777216, 9007199254740993, 2.675, 2.675, '-3.14', '-3.14', false, '2015-06-30', '23:59:59.5', '2015-06-30 23:59:59.5', '2015-06-30 23:59:59.5+00', '\x0b', '00:00:00.5'),
(25, 13, 13, 13, 0.1, 1e16, 10.25, 10.25, '2023-05-06', '2023-05-06', true, '2023-05-06', '10:10', '2023-05-06 10:10', '2023-05-06 10:10+00', '\x0d', '1 week 1 day'),
(26, 14, 14, 14, 1e6, 1e15, 10.75, 10.75, 'true', 'true', false, '1582-10-15', '14:14', '1582-10-15 14:14', '1582-10-15 14:14+00', '\x0e', '23:59:59.999999'),
(27, 15, 15, 15, 1.25, 1.25, 1.25, 1.25, 'ZEBRA', 'ZEBRA', true, '1752-09-14', '15:15', '1752-09-14 15:15', '1752-09-14 15:15+00', '\x0f', '-1 month 1 day'),
(28, NULL, 16, NULL, NULL, 16, NULL, 16, NULL, 'x', NULL, '2023-01-16', NULL, '2023-01-16 16:16', NULL, '\x10', NULL),
(29, 17, NULL, 17, 17, NULL, 17, NULL, 'y', NULL, true, NULL, '17:17', NULL, '2023-01-17 17:17+00', NULL, '17 hours'),
(30, 18, 18, 18, 18, 18, 18, 18, '中文字符', '中文字符', false, '2023-12-31', '18:18', '2023-12-31 18:18', '2023-12-31 18:18+00', '\x12', '18 days'),
(31, 19, 19, 19, 19.5, 19.5, 19.5, 19.5, 'İstanbul', 'İstanbul', true, '2024-12-30', '19:19', '2024-12-30 19:19', '2024-12-30 19:19+00', '\x13', '19 months'),
(32, 20, 20, 20, 20.5, 20.5, 20.5, 20.5, 'ﬁ ligature', 'ﬁ ligature', false, '2025-01-05', '20:20', '2025-01-05 20:20', '2025-01-05 20:20+00', '\x14', '20 years'),
(33, 21, 21, 21, -21.5, -21.5, -21.5, -21.5, 'a,b,,c', 'a,b,,c', true, '2021-06-15', '21:21', '2021-06-15 21:21', '2021-06-15 21:21+00', '\x15', '-21 days'),
(34, 22, 22, 22, -22.25, -22.25, -22.25, -22.25, 'key=value;k2=v2', 'key=value;k2=v2', false, '2022-11-06', '22:22', '2022-11-06 01:30', '2022-11-06 05:30+00', '\x16', '22 minutes'),
(35, 23, 23, 23, 1e20, 1e20, 100, 1e20, 'α β γ', 'α β γ', true, '2022-03-13', '02:30', '2022-03-13 02:30', '2022-03-13 06:30+00', '\x17', '23 seconds'),
(36, 24, 24, 24, 1e-20, 1e-20, 0, 0, '<tag attr="1">&amp;</tag>', '<tag attr="1">', false, '2011-11-11', '11:11:11.111111', '2011-11-11 11:11:11.111111', '2011-11-11 11:11:11.111111+00', '\x18', '11:11:11.111111'),
(37, 25, 25, 25, 7, 7, 7, 7, 'foo bar  baz', 'foo bar  baz', true, '2010-10-10', '10:10:10', '2010-10-10 10:10:10', '2010-10-10 10:10:10+00', '\x19', '1 hour'),
(38, 26, 26, 26, 9.99, 9.99, 9.99, 9.99, 'o''clock', 'o''clock', false, '2008-08-08', '08:08:08', '2008-08-08 08:08:08', '2008-08-08 08:08:08+00', '\x1a', '1 minute'),
(39, 27, 27, 27, 99.995, 99.995, 99.995, 99.995, '🇩🇪 flag', '🇩🇪 flag', true, '2001-09-09', '01:46:40', '2001-09-09 01:46:40', '2001-09-09 01:46:40+00', '\x1b', '10000 days'),
(40, 28, 28, 28, 1e7, 1e7, 1000000, 1000000, 'the quick brown fox jumps over the lazy dog', 'the quick brown fox', false, '2038-01-19', '03:14:07', '2038-01-19 03:14:07', '2038-01-19 03:14:07+00', '\x1c', '1000 hours');

-- Floating point: NaN, infinities, both zeros, the smallest and the largest.

CREATE TABLE floats (id integer NOT NULL, r real, d double precision);
INSERT INTO floats VALUES
(1, 'NaN', 'NaN'), (2, 'Infinity', 'Infinity'), (3, '-Infinity', '-Infinity'), (4, 0, 0), (5, '-0', '-0'),
(6, 1.17549435e-38, 2.2250738585072014e-308), (7, 1e-45, 5e-324), (8, 3.4028235e38, 1.7976931348623157e308),
(9, -3.4028235e38, -1.7976931348623157e308), (10, 0.1, 0.1), (11, 0.5, 0.5), (12, 1.5, 1.5), (13, 2.5, 2.5), (14, -0.5, -0.5),
(15, -1.5, -1.5), (16, 1, 1), (17, -1, -1), (18, 2, 2), (19, 10, 10), (20, NULL, NULL), (21, 1e10, 1e15), (22, 123456.79, 123456789.123456789),
(23, 9007199254740992, 9007199254740992), (24, 0.3, 0.30000000000000004);

-- Numbers in pairs: for operators and functions of two arguments. `f` is never extreme.

CREATE TABLE nums (
    id integer NOT NULL, s1 smallint, s2 smallint, i1 integer, i2 integer, b1 bigint, b2 bigint,
    n1 numeric(18,6), n2 numeric(10,2), d1 double precision, d2 double precision
);
INSERT INTO nums VALUES
(1, 7, 2, 7, 2, 7, 2, 7, 2, 7, 2),
(2, -7, 2, -7, 2, -7, 2, -7, 2, -7, 2),
(3, 7, -2, 7, -2, 7, -2, 7, -2, 7, -2),
(4, -7, -2, -7, -2, -7, -2, -7, -2, -7, -2),
(5, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1),
(6, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3),
(7, 10, 3, 10, 3, 10, 3, 10, 3, 10, 3),
(8, 100, 7, 100000, 7, 10000000000, 7, 100000.123456, 7.77, 1e5, 7.7),
(9, NULL, 1, NULL, 1, NULL, 1, NULL, 1, NULL, 1),
(10, 1, NULL, 1, NULL, 1, NULL, 1, NULL, 1, NULL),
(11, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
(12, 12, 8, 123456789, 1000, 123456789012345, 1000, 123456789.123456, 1000.5, 123456789.125, 1000.5),
(13, 25, 4, 25, 4, 25, 4, 2.5, 0.5, 2.5, 0.5),
(14, -25, 4, -25, 4, -25, 4, -2.5, 0.5, -2.5, 0.5),
(15, 5, 5, 46341, 46341, 3037000500, 3037000500, 0.000001, 0.01, 0.000001, 0.01),
(16, 32767, 1, 2147483647, 1, 9223372036854775807, 1, 999999999999.999999, 99999999.99, 1e15, 1),
(17, -32768, 1, -2147483648, 1, -9223372036854775808, 1, -999999999999.999999, -99999999.99, -1e15, -1),
(18, 64, 3, 64, 3, 64, 3, 1.005, 1.01, 1.005, 1.01),
(19, 9, 6, 9, 6, 9, 6, 3.75, 1.25, 3.75, 1.25),
(20, -9, 6, -9, 6, -9, 6, -3.75, 1.25, -3.75, 1.25);

-- Strings for patterns, formats and conversions.

CREATE TABLE texts (id integer NOT NULL, s text, p text, kind text NOT NULL);
-- `p` is a pattern that suits `s`, of the kind that `kind` says: like, regex, plain.
INSERT INTO texts VALUES
(1, 'abc', 'a%', 'like'), (2, 'abc', '_b_', 'like'), (3, 'a%c', 'a\%c', 'like'), (4, 'a_c', 'a\_c', 'like'),
(5, 'ABC', 'a%', 'like'), (6, '', '%', 'like'), (7, '', '', 'like'), (8, 'äöü', '__ü', 'like'), (9, '😀😁', '_😁', 'like'),
(10, E'two\nlines', 'two%lines', 'like'), (11, 'back\slash', 'back\\slash', 'like'), (12, 'abcabc', '%bca%', 'like'),
(13, 'foobarbequebaz', 'b..', 'regex'), (14, 'foobarbequebaz', '(bar)(beque)', 'regex'), (15, 'The Quick Brown Fox', '[A-Z]\w+', 'regex'),
(16, 'order 12345 of 2023-05-06', '\d{4}-\d{2}-\d{2}', 'regex'), (17, 'order 12345 of 2023-05-06', '(\d+)', 'regex'),
(18, 'john.doe@example.com', '^[\w.]+@[\w.]+\.[a-z]+$', 'regex'), (19, 'not an address', '^[\w.]+@[\w.]+\.[a-z]+$', 'regex'),
(20, 'aaa', 'a*', 'regex'), (21, 'aaa', 'a+?', 'regex'), (22, 'a.b.c', '\.', 'regex'), (23, 'STRASSE', 'strasse', 'regex'),
(24, E'line one\nline two', '^line', 'regex'), (25, 'x=1;y=2;z=3', '(\w)=(\d)', 'regex'), (26, 'one,two,,four', ',', 'plain'),
(27, '  padded  ', ' ', 'plain'), (28, 'camelCaseString', '[A-Z]', 'regex'), (29, 'snake_case_string', '_', 'plain'),
(30, '1,234.56', ',', 'plain'), (31, '-1,234.56', '-', 'plain'), (32, '0042', '0', 'plain'), (33, '1e5', 'e', 'plain'),
(34, '0x1F', 'x', 'plain'), (35, ' 12 ', ' ', 'plain'), (36, 'yes', 'y', 'plain'), (37, 'no', 'n', 'plain'), (38, 't', 't', 'plain'),
(39, 'NULL', 'NULL', 'plain'), (40, NULL, NULL, 'plain'), (41, 'only s', NULL, 'plain'), (42, NULL, 'only p', 'plain'),
(43, '2023-05-06', '-', 'plain'), (44, '2023-05-06 07:08:09.123456', ' ', 'plain'), (45, '2023-05-06T07:08:09Z', 'T', 'plain'),
(46, '06/05/2023', '/', 'plain'), (47, 'May 6, 2023', ',', 'plain'), (48, '12:34:56', ':', 'plain'), (49, '{"a": 1}', '"', 'plain'),
(50, '{1,2,3}', ',', 'plain'), (51, 'MiXeD cAsE', ' ', 'plain'), (52, 'naïve café', 'é', 'plain'), (53, 'ÀÉÎÕÜ', 'É', 'plain'),
(54, 'x', 'x', 'plain'), (55, repeat('ab', 50), 'ab', 'plain'), (56, '''; DROP TABLE t; --', '''', 'plain'), (57, '$100.00', '$', 'plain'),
(58, 'a b c d e', ' ', 'plain'), (59, 'Москва', 'с', 'plain'), (60, '日本語テキスト', '語', 'plain');

-- An analyst's schema.

CREATE TABLE customers (
    customer_id integer NOT NULL, name text NOT NULL, email text, country text NOT NULL, city text, segment text,
    signup_date date NOT NULL, birth_date date, credit numeric(10,2), active boolean NOT NULL
);
INSERT INTO customers
SELECT n,
    (ARRAY['Ada','Bjørn','Chloé','Dieter','Eva','Fatima','Grzegorz','Hana','İlker','José'])[1 + n % 10] || ' '
        || (ARRAY['Lovelace','Ångström','Müller','O''Neil','van der Berg','Smith','Žižek'])[1 + n % 7],
    CASE WHEN n % 9 = 0 THEN NULL ELSE 'user' || n || '@' || (ARRAY['example.com','example.org','mail.example.net'])[1 + n % 3] END,
    (ARRAY['DE','FR','US','GB','PL','JP'])[1 + n % 6],
    CASE WHEN n % 11 = 0 THEN NULL ELSE (ARRAY['Berlin','Paris','New York','London','Kraków','Tōkyō'])[1 + n % 6] END,
    (ARRAY['consumer','corporate','home office',NULL])[1 + n % 4],
    date '2020-01-15' + n * 11, CASE WHEN n % 7 = 0 THEN NULL ELSE date '1950-02-28' + n * 211 END,
    CASE WHEN n % 8 = 0 THEN NULL ELSE ((n * 7919) % 500000 - 50000) / 100.0 END, n % 5 <> 0
FROM generate_series(1, 100) AS n;

CREATE TABLE products (
    product_id integer NOT NULL, sku varchar(20) NOT NULL, name text NOT NULL, category text, price numeric(10,2) NOT NULL,
    cost numeric(10,4), weight_kg double precision, stock integer, tags text[], sizes integer[], attributes text, launched date
);
-- `attributes` is a JSON object as text: write `attributes::jsonb`.
INSERT INTO products
SELECT n, 'SKU-' || lpad(n::text, 5, '0'),
    (ARRAY['Chair','Desk','Lamp','Pen','Paper','Phone','Screen','Cable'])[1 + n % 8] || ' ' || chr(65 + n % 26),
    (ARRAY['furniture','office','technology',NULL])[1 + n % 4], ((n * 7919) % 100000 + 99) / 100.0,
    CASE WHEN n % 6 = 0 THEN NULL ELSE ((n * 7919) % 70000 + 12) / 133.0 END, CASE WHEN n % 10 = 0 THEN NULL ELSE n * 0.37 END,
    CASE WHEN n % 13 = 0 THEN NULL ELSE (n * 37) % 200 END,
    CASE WHEN n % 9 = 0 THEN NULL WHEN n % 9 = 1 THEN ARRAY[]::text[]
        WHEN n % 9 = 2 THEN ARRAY['new', NULL, 'sale'] ELSE (ARRAY['new','sale','eco','bulk'])[1:1 + n % 4] END,
    CASE WHEN n % 5 = 0 THEN NULL ELSE ARRAY[n % 3, n % 7, n % 11] END,
    CASE WHEN n % 12 = 0 THEN NULL ELSE json_build_object('color', (ARRAY['red','green','blue'])[1 + n % 3], 'rating', round(n % 50 / 10.0, 1),
        'dims', json_build_array(n % 10, n % 20, n % 30), 'stocked', n % 2 = 0, 'maker', json_build_object('name', 'M' || n % 5, 'since', NULL))::text END,
    CASE WHEN n % 4 = 0 THEN NULL ELSE date '2019-12-31' + n * 13 END
FROM generate_series(1, 60) AS n;

CREATE TABLE orders (
    order_id bigint NOT NULL, customer_id integer, product_id integer NOT NULL, order_date date NOT NULL, ordered_at timestamptz NOT NULL,
    shipped_at timestamp, quantity integer NOT NULL, unit_price numeric(10,2) NOT NULL, discount numeric(4,3), status text NOT NULL,
    note text
);
INSERT INTO orders
SELECT 100000 + n, CASE WHEN n % 17 = 0 THEN NULL ELSE 1 + (n * 31) % 110 END, 1 + (n * 17) % 60, date '2022-01-01' + (n * 7) % 730,
    timestamptz '2022-01-01 00:00+00' + ((n * 7) % 730) * interval '1 day' + ((n * 4999) % 86400) * interval '1 second',
    CASE WHEN n % 6 = 0 THEN NULL ELSE timestamp '2022-01-03 09:00' + ((n * 7) % 730) * interval '1 day' + (n % 48) * interval '1 hour' END,
    1 + n % 12, ((n * 6007) % 90000 + 100) / 100.0, CASE WHEN n % 3 = 0 THEN NULL ELSE (n % 8) / 20.0 END,
    (ARRAY['new','paid','shipped','delivered','returned'])[1 + n % 5],
    CASE WHEN n % 10 = 0 THEN 'gift for ' || n ELSE NULL END
FROM generate_series(1, 500) AS n;

-- A tree with salaries: 1 is the root, 39 and 40 have no department, equal salaries occur.

CREATE TABLE employees (
    id integer NOT NULL, name text NOT NULL, manager_id integer, dept text, salary integer, bonus numeric(8,2), hired date NOT NULL
);
INSERT INTO employees
SELECT n, 'Employee ' || n, CASE WHEN n = 1 THEN NULL ELSE n / 3 + (n < 3)::integer END,
    CASE WHEN n > 38 THEN NULL ELSE (ARRAY['Sales','Engineering','Support','Finance'])[1 + n % 4] END,
    CASE WHEN n % 15 = 0 THEN NULL ELSE 30000 + (n * 7) % 10 * 5000 END, CASE WHEN n % 4 = 0 THEN NULL ELSE n * 33.33 END,
    date '2010-03-31' + n * 97
FROM generate_series(1, 40) AS n;

-- Events with instants and payloads (JSON as text); `session_id` groups them.

CREATE TABLE events (
    event_id bigint NOT NULL, session_id bigint, user_id integer, kind text NOT NULL, occurred_at timestamptz NOT NULL, received_at timestamp,
    duration_ms integer, amount double precision, payload text
);
INSERT INTO events
SELECT 9000000000 + n, CASE WHEN n % 23 = 0 THEN NULL ELSE 5000000000 + n / 8 END, CASE WHEN n % 19 = 0 THEN NULL ELSE n % 37 END,
    (ARRAY['view','click','cart','purchase','refund'])[1 + (n * n) % 5],
    timestamptz '2023-03-25 20:00+00' + n * interval '17 minutes 3.25 seconds',
    timestamp '2023-03-25 20:00' + n * interval '17 minutes 3.5 seconds',
    CASE WHEN n % 7 = 0 THEN NULL ELSE (n * 7919) % 10000 END, CASE WHEN n % 5 = 3 THEN ((n * 131) % 10000) / 100.0 ELSE NULL END,
    CASE WHEN n % 14 = 0 THEN NULL ELSE json_build_object('page', '/p/' || n % 9, 'ms', n % 100, 'tags', CASE WHEN n % 3 = 0 THEN json_build_array('a', 'b')
        ELSE '[]'::json END, 'user', json_build_object('id', n % 37, 'plan', CASE WHEN n % 2 = 0 THEN 'pro' END))::text END
FROM generate_series(1, 400) AS n;

-- JSON documents as text, each valid for json and jsonb.

CREATE TABLE jsons (id integer NOT NULL, j text);
INSERT INTO jsons VALUES
(1, '{}'), (2, '[]'), (3, 'null'), (4, 'true'), (5, '42'), (6, '"text"'), (7, NULL),
(8, '{"a": 1, "b": "two", "c": null, "d": true, "e": [1, 2, 3], "f": {"g": {"h": "deep"}}}'),
(9, '{"b": 1, "aa": 2, "a": 3, "b": 4}'), (10, '[1, "two", null, true, {"a": 1}, [5, 6]]'),
(11, '{"unicode": "äöü 😀", "escaped": "line\nbreak \"quoted\" \\ \u00e9"}'), (12, '{"num": 1.50, "exp": 1e3, "neg": -0.5, "big": 12345678901234567890}'),
(13, '{"items": [{"id": 1, "price": 9.99}, {"id": 2, "price": 20}, {"id": 3}]}'), (14, '{"": "empty key", " ": "blank key"}'),
(15, '[[1, 2], [3, 4], []]'), (16, '{"a": {"b": [10, 20, {"c": "x"}]}}'), (17, '  { "spaced" :  [ 1 ,2 ] }  '), (18, '"2023-05-06"'),
(19, '{"a": "1", "b": 1}'), (20, '[3, 1, 2]'), (21, '-1.5e-3'), (22, 'false'), (23, '{"a": false, "n": null}'), (24, '["a", "b", "a"]');

-- Arrays of one dimension.

CREATE TABLE arrays (id integer NOT NULL, ia integer[], ta text[], da double precision[]);
INSERT INTO arrays VALUES
(1, '{1,2,3}', '{a,b,c}', '{1.5,2.5}'), (2, '{}', '{}', '{}'), (3, NULL, NULL, NULL), (4, '{NULL}', '{NULL}', '{NULL}'),
(5, '{3,1,2,1}', '{b,a,NULL,b}', '{0.1,0.2}'), (6, '{5}', '{"",x}', '{NaN,1}'), (7, '{1,NULL,3}', '{"with,comma","with \"quote\""}', '{-1,0,1}'),
(8, '{10,20,30,40,50}', '{z,ä,Z}', '{100}');

-- For correlated subqueries: keys without a match, duplicates and NULL on both sides, and a table without rows.

CREATE TABLE outers (k integer, v integer, s text);
INSERT INTO outers VALUES (1, 10, 'a'), (2, 20, 'b'), (3, NULL, 'c'), (NULL, 40, NULL), (5, 50, 'e'), (5, 51, 'a');
CREATE TABLE inners (k integer, v integer, s text);
INSERT INTO inners VALUES (1, 10, 'a'), (1, 11, 'x'), (2, NULL, 'b'), (NULL, 40, 'c'), (5, 0, NULL), (7, -1, 'e');
CREATE TABLE fews (k integer, v integer);
INSERT INTO fews VALUES (2, 20), (3, 30), (3, NULL), (NULL, 1);
CREATE TABLE nones (k integer, v integer, s text);

-- Views called `…_csv` become CSV files, whose types the engine finds by itself.

CREATE VIEW airports_csv AS SELECT * FROM airports;
CREATE VIEW employees_csv AS SELECT * FROM employees;
