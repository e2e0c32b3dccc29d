-- Casts: text to each type, each type to text, widths and precisions.

-- Text to integers
SELECT ' 12 '::int, '+7'::int, '-0'::int, '007'::bigint, E'\t5\n'::smallint;
SELECT '2147483647'::int AS max, '-2147483648'::int AS min, '9223372036854775807'::bigint AS max8, '-32768'::smallint AS min2;
SELECT CAST('42' AS integer), int '42', '42'::int4, '42'::int8, '42'::int2;
SELECT s, s::int + 1 AS next FROM (VALUES (' 1'), ('2 '), ('-3'), (null)) v(s) ORDER BY 2;
SELECT id, trim(s)::int FROM texts WHERE s ~ '^\s*\d+\s*$' ORDER BY id;
-- fails
SELECT '12a'::int AS n;
-- fails
SELECT '1.5'::int AS n;
-- fails
SELECT '2147483648'::int;

-- Text to numeric and floats
SELECT '1e3'::numeric AS e, ' 12.50 '::numeric AS spaces, '.5'::numeric AS half, '5.'::numeric AS five, '-1.5E-3'::numeric AS small;
SELECT '12.345'::numeric(5, 2) AS cut, '0.005'::numeric(5, 2) AS up, '-0.005'::numeric(5, 2) AS down, '1e2'::numeric(5, 1) AS hundred;
SELECT 'NaN'::numeric, 'nan'::float8, 'Infinity'::float8, '-inf'::float8, 'infinity'::real;
SELECT '1e3'::float8 AS e, ' 12.5 '::float8 AS spaces, '1E-5'::real AS small, '.5e1'::double precision AS five;
SELECT '123456789.123456789'::float8 AS d, '123456789.123456789'::real AS r, '0.1'::real = 0.1::real AS same;
SELECT '00012.3400'::numeric, '1234567890123456789012345678901234567890'::numeric, '1e-20'::numeric;
SELECT id, replace(s, ',', '')::numeric AS amount FROM texts WHERE s ~ '^-?[\d,]+\.\d+$' ORDER BY id;
SELECT replace(s, '$', '')::numeric(8, 1) AS price, s::text FROM texts WHERE s LIKE '$%';
SELECT decimal '1.10', numeric '1.10' = 1.1, double precision '1.10', real '1.1';
-- fails
SELECT '1234.5'::numeric(5, 2);
-- fails
SELECT '1e400'::float8 AS f;

-- Text to boolean and back
SELECT 'yes'::boolean AS a, 'no'::boolean AS b, 't'::boolean AS c, 'f'::boolean AS d, 'on'::boolean AS e, 'off'::boolean AS f;
SELECT '1'::boolean AS one, '0'::boolean AS zero, ' TRUE '::boolean AS upper, 'y'::bool AS y, 'fal'::boolean AS prefix, 'tr'::boolean;
SELECT true::text AS t, false::text AS f, null::boolean::text AS n, (1 = 1)::text AS expression, true || '' AS joined;
SELECT s, s::boolean AS b FROM texts WHERE s IN ('yes', 'no', 't') ORDER BY id;
SELECT bool 'f', boolean 'y', 'n'::bool::int, 1::bool, 0::bool::text;
SELECT active::text AS active, active::int AS flag, count(*) AS n FROM customers GROUP BY active ORDER BY 1;
SELECT true::varchar(3) AS cut, false::char(2) AS two, true::char(6) || '|' AS padded;
-- fails
SELECT 'maybe'::boolean AS b;

-- Text to dates and times
SELECT '2013-1-5'::date, 'Jan 5, 2013'::date, '5 Jan 2013'::date, '20130105'::date, '2013.005'::date;
SELECT 'January 5 2013'::date AS a, '2013-Jan-05'::date AS b, '1/5/2013'::date AS month_first,
  '130105'::date AS short, 'J2456298'::date AS julian;
SELECT '5-Jan-2013'::date AS a, ' 2013-01-05 '::date AS spaces, 'Sat Jan 05 2013'::date AS weekday, '2013/01/05'::date AS slashes;
SELECT '2013-01-05 23:59:59'::date AS time_dropped, '2013-01-05T10:00'::date AS t, '0044-03-15 BC'::date AS bc, 'epoch'::date AS epoch;
SELECT '07:08'::time AS a, '07:08:09.5'::time AS b, '070809'::time AS c, '7:8 PM'::time AS d,
  '12:00 AM'::time AS midnight, '24:00'::time AS end;
SELECT '0708'::time AS four, '7:08:09 am'::time AS am, '2013-01-05 07:08'::time AS from_stamp, '07:08:09.1234567'::time AS rounded;
SELECT '2013-01-05 07:08'::timestamp, '2013-01-05T07:08:09.5'::timestamp, '20130105 070809'::timestamp, '2013-01-05'::timestamp;
SELECT 'Jan 5 07:08:09 2013'::timestamp AS a, 'Sat Jan 5 07:08:09 2013'::timestamp AS b, '2013-01-05 07:08 PM'::timestamp AS pm;
SELECT '2013-01-05 07:08:09+02:30'::timestamptz AS a, '2013-01-05T07:08:09Z'::timestamptz AS b, '2013-01-05 07:08 PST'::timestamptz AS c;
SELECT '2013-01-05'::timestamptz, '2013-07-05 07:08 America/New_York'::timestamptz, 'infinity'::timestamptz;
SELECT '20130105T070809Z'::timestamptz AS basic, '2013-01-05 07:08:09 GMT'::timestamptz AS gmt,
  '2013-01-05 07:08:09 UTC'::timestamptz AS utc;
SELECT id, s, s::date AS d FROM texts WHERE id IN (43, 44, 45, 46, 47) ORDER BY id;
SELECT id, s::timestamp, s::timestamptz FROM texts WHERE id BETWEEN 43 AND 47 ORDER BY id;
SELECT s::time AS t, s::interval AS i FROM texts WHERE id = 48;
SELECT (regexp_match(s, '\d{4}-\d{2}-\d{2}'))[1]::date AS d FROM texts WHERE id = 16;
SELECT '1 day'::interval, '1 day 02:03'::interval, '1y 2mon'::interval, 'P1DT2H'::interval, '@ 1 hour ago'::interval;
SELECT '1.5 hours'::interval AS a, '90 min'::interval AS b, '1 week 2 days'::interval AS c,
  '2 decades'::interval AS d, '500 ms'::interval AS e;
SELECT id, iv, iv::interval AS i FROM t_types WHERE id BETWEEN 1 AND 14 ORDER BY id;
SELECT date '2013-01-05', time '07:08', timestamp '2013-01-05 07:08', timestamptz '2013-01-05 07:08Z', interval '1 day';
SELECT (year || '-' || month || '-' || day)::date, count(*) FROM flights WHERE month = 3 AND day < 6 GROUP BY 1 ORDER BY 1;
-- fails
SELECT '2013-02-29'::date AS d;
-- fails
SELECT '25:00'::time AS t;

-- Times to text and to each other
SELECT date '2013-01-05'::text, time '07:08'::text, timestamp '2013-01-05 07:08:09.50'::text, timestamptz '2013-01-05 07:08+02'::text;
SELECT (date '2013-01-05')::varchar, (timestamp '2013-01-05 00:00:00.000001')::text,
  (interval '1 day 2 hours')::text, (time '07:08:09.100')::text;
SELECT 'on ' || date '2013-01-05' AS joined, timestamp '2013-01-05 10:00' || '' AS t, interval '90 minutes' || '!' AS i;
SELECT interval '1 year -1 month'::text AS a, interval '-1 day -02:00'::text AS b,
  interval '1 mon -1 day 00:00:01'::text AS c, interval '0'::text AS z;
SELECT date '0044-03-15 BC'::text, timestamp 'infinity'::text, date '-infinity'::text;
SELECT id, da::text, ti::text, ts::text, tz::text FROM t_types WHERE id <= 12 ORDER BY id;
SELECT id, ts::date AS d, tz::date AS utc_day, ts::time AS t, da::timestamp AS midnight FROM t_types WHERE id > 5 AND id < 15 ORDER BY id;
SELECT id, da::timestamptz = da::timestamp AS same, ts::timestamptz AS tz, tz::timestamp AS ts, tz::time AS t
FROM t_types WHERE id > 12 ORDER BY id;
SELECT substr(order_date::text, 1, 7), count(*) FROM orders WHERE status = 'returned' GROUP BY 1 ORDER BY 1 LIMIT 12;
SELECT left(ordered_at::text, 10) = order_date::text AS same_day, count(*) FROM orders GROUP BY 1 ORDER BY 1;
SELECT order_id, ordered_at::date - order_date AS days, shipped_at::date - order_date AS shipped FROM orders ORDER BY order_id LIMIT 8;
SELECT min(hired)::text || ' to ' || max(hired)::text, count(*)::text || ' people' FROM employees;

-- Numbers to text
SELECT 12::text AS i, 12.50::text AS n, 1.50::numeric(10, 3)::text AS padded, 12.5::float8::text AS f, 1e20::numeric::text AS large;
SELECT (-5)::text AS minus, -5::text::int AS after, 0.1::real::text AS r, 1e-7::numeric::text AS small, 'NaN'::float8::text AS nan;
SELECT 'n = ' || 5, 5 || ' apples', 1.0 || '', 1.0::float8 || '';
SELECT id, si::text, i::text, bi::text, n::text FROM t_types WHERE id < 12 ORDER BY id;
SELECT id, r::text AS r, d::text AS d, big::text AS big FROM t_types ORDER BY id;
SELECT flight::text AS flight, length(flight::text) AS digits, carrier || flight AS code FROM flights
WHERE carrier = 'HA' ORDER BY time_hour, flight LIMIT 4;
SELECT length(flight::text), count(*) FROM flights GROUP BY 1 ORDER BY 1;
SELECT concat(1, ' ', 2.50, ' ', true, ' ', null, date '2013-01-05') AS all_of, 1 || '' || 2 AS joined;
SELECT unit_price::text, quantity::varchar, discount::text FROM orders ORDER BY order_id LIMIT 6;
SELECT 1234567.0::float8::text AS a, 0.1 + 0.2::float8 AS b, 1e22::float8::text AS c, 1.0e-5::float8::text AS d, 12345678::real::text AS e;

-- varchar(n), char(n), text
SELECT 'abcdef'::varchar(3), 'ab'::varchar(3), 'äöü'::varchar(2), ''::varchar(3);
SELECT 'ab'::char(4) || '|' AS padded, length('ab'::char(4)) AS len, octet_length('ab'::char(4)) AS bytes,
  'ab  '::char(4) = 'ab'::char(2) AS equal;
SELECT 'abc'::char AS one, 'abc'::character(2) AS two, 'abc'::character varying AS whole, 'abc'::bpchar AS bp;
SELECT 12345::varchar(3), 12345::char(8) || '|', true::varchar(1), 12.5::text::varchar(3);
SELECT CAST(name AS varchar(8)) AS short, CAST(carrier AS char(4)) || '|' AS padded FROM airlines ORDER BY carrier;
SELECT v::varchar(4) AS v, length(v::varchar(4)) AS n, t::char(3) || '.' AS c FROM t_types WHERE id BETWEEN 7 AND 14 ORDER BY id;
SELECT sku::text AS sku, sku::varchar(5) AS prefix, right(sku, 5)::int AS n FROM products ORDER BY product_id LIMIT 5;
SELECT 'abc   '::text = 'abc' AS text_keeps, 'abc   '::char(6) = 'abc' AS char_ignores, 'abc '::varchar(6) = 'abc' AS varchar_keeps;
SELECT 'x'::name AS name, 'x'::"char" AS byte, 'abc'::text::varchar(2)::text AS chain;

-- numeric(p, s)
SELECT 1.005::numeric(10, 2), 2.675::numeric(10, 2), -1.005::numeric(10, 2), 99.995::numeric(5, 2);
SELECT 5::numeric(10, 2) AS i, 5::numeric(3) AS whole, 5.5::numeric(3) AS rounded, 1e3::numeric(6, 1) AS e, 0::numeric(2, 2) AS zero;
SELECT 1234567::numeric(3, -5) AS coarse, 0.00123::numeric(2, 4) AS fine, 1.5::decimal(4, 1), 7::dec(5, 2);
SELECT avg(distance)::numeric(8, 2), origin FROM flights GROUP BY origin ORDER BY origin;
SELECT n::numeric(12, 1) AS one, n::int AS whole, n::float8 AS f, id FROM t_types WHERE id BETWEEN 7 AND 19 ORDER BY id;
SELECT unit_price::numeric(10, 1) AS one, unit_price::int AS whole, discount::numeric(3, 1) AS d FROM orders ORDER BY order_id LIMIT 10;
SELECT d::numeric(10, 3) AS n, r::numeric AS r, id FROM t_types WHERE id BETWEEN 7 AND 14 ORDER BY id;
SELECT 0.1::float8::numeric AS a, 123456789.123456789::float8::numeric AS b, 1e-10::float8::numeric AS c, 0.3::real::numeric AS d;
-- fails
SELECT n::numeric(5, 2) AS n FROM t_types ORDER BY id;

-- Between types
SELECT id, i::bigint, i::numeric, i::float8, i::text FROM t_types WHERE id < 9 ORDER BY id;
SELECT id, b::int AS i, b::text AS t, NOT b AS n, i::boolean AS from_int FROM t_types WHERE id < 7 ORDER BY id;
SELECT id, d::real AS r, r::float8::numeric(20, 4) AS n, d::int AS i FROM t_types WHERE id BETWEEN 7 AND 14 ORDER BY id;
SELECT si::int + i::bigint AS s, si + n AS sn, i * d AS id, bi / 2 AS half FROM t_types WHERE id BETWEEN 7 AND 12 ORDER BY t_types.id;
SELECT extract(epoch FROM ts)::bigint AS seconds, to_timestamp(extract(epoch FROM ts)::float8)::timestamp = ts AS same FROM t_types
WHERE id IN (1, 2, 7, 9, 11) ORDER BY id;
SELECT distance::real / 3 AS r, distance::numeric / 3 AS n, distance::float8 / 3 AS d FROM flights WHERE carrier = 'HA' GROUP BY distance;
SELECT 1, 1.0, 1e0, '1', true, null, 1::float4;
SELECT pg_typeof(1) AS i, pg_typeof(1.0) AS n, pg_typeof('x') AS u, pg_typeof(2147483648) AS b,
  pg_typeof(date '2013-01-05') AS d, pg_typeof(1 / 2.0) AS q;
SELECT pg_typeof(sum(distance)) AS s, pg_typeof(avg(distance)) AS a, pg_typeof(count(*)) AS c,
  pg_typeof(sum(distance::bigint)) AS b FROM flights;
SELECT pg_typeof(date '2013-01-05' + 1) AS d, pg_typeof(date '2013-01-05' - date '2013-01-01') AS i,
  pg_typeof(date '2013-01-05' + interval '1 d') AS ts;
SELECT CASE WHEN true THEN 1 ELSE 2.5 END AS n, coalesce(null, 1, 2.50) AS c, nullif(1, 1.0) AS none,
  CASE WHEN false THEN 1::float8 ELSE 2 END AS f;
SELECT 1 UNION SELECT 2.5 ORDER BY 1;
SELECT x FROM (SELECT 1 AS x UNION ALL SELECT 1.5::float8 UNION ALL SELECT null) s ORDER BY x;
SELECT date '2013-01-05' AS t UNION SELECT timestamp '2013-01-06 10:00' ORDER BY 1;

-- Arrays, bytes, JSON, UUID
SELECT '{1,2,3}'::int[] AS a, '{a,"b c",NULL}'::text[] AS t, ARRAY[1, 2]::text[] AS texts,
  ARRAY['1', '2']::int[] AS ints, '{}'::int[] AS empty;
SELECT id, ia::text AS i, ta::text AS t, ia::numeric[] AS n FROM arrays ORDER BY id;
SELECT s::int[] AS a, cardinality(s::int[]) AS n FROM texts WHERE id = 50;
SELECT 'abc'::bytea, '\x616263'::bytea = 'abc'::bytea, '\x00ff'::bytea::text, E'\\001'::bytea;
SELECT id, by::text AS t, length(by) AS n FROM t_types WHERE id < 8 ORDER BY id;
SELECT '{"a": 1}'::json AS j, '{"b":2, "a":1}'::jsonb AS b, '1.0'::jsonb AS n, '"x"'::jsonb AS s, 'null'::jsonb AS nothing;
SELECT id, (j::jsonb)::text FROM jsons WHERE id IN (8, 9, 12, 17, 21) ORDER BY id;
SELECT (s::jsonb ->> 'a')::int + 1 AS n, (s::jsonb -> 'a')::int AS direct FROM texts WHERE id = 49;
SELECT 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'::uuid AS u, '{a0eebc999c0b4ef8bb6d6bb9bd380a11}'::uuid::text AS braces;
SELECT ascii('A')::text, chr(65), 65::"char" IS NOT NULL, 'a'::text < 'b'::varchar;
SELECT x::text, x::text::date = x AS same FROM (VALUES (date '2013-01-05'), ('1900-02-28'), ('9999-12-31')) v(x) ORDER BY 1;
-- fails
SELECT '{"a": 1'::json AS j;
SELECT customer_id::text || ':' || name AS label, credit::text AS credit, signup_date::text AS signup FROM customers
ORDER BY customer_id LIMIT 5;
SELECT order_id::int - 100000 AS n, quantity::numeric(5, 1), unit_price::float8, order_date::timestamp FROM orders
ORDER BY order_id LIMIT 5;
SELECT (occurred_at::date)::text, duration_ms::text::numeric / 1000, kind::varchar(4), event_id::numeric % 1000
FROM events ORDER BY event_id LIMIT 6;
SELECT sched_dep_time::text, lpad(sched_dep_time::text, 4, '0')::time AS t, (sched_dep_time / 100)::text || 'h'
FROM flights WHERE carrier = 'F9' ORDER BY time_hour, flight LIMIT 6;
SELECT launched::timestamp, launched::text::timestamp = launched AS same, stock::text, weight_kg::numeric(6, 2)
FROM products ORDER BY product_id LIMIT 6;
SELECT count(*) FROM orders WHERE order_id::text LIKE '%7' AND order_date::text LIKE '2022-%';
SELECT tags::text, sizes::text, sizes::text[] FROM products WHERE product_id BETWEEN 8 AND 14 ORDER BY product_id;
SELECT attributes::jsonb ->> 'color' AS color, (attributes::jsonb ->> 'rating')::numeric AS rating,
  (attributes::jsonb ->> 'stocked')::boolean AS stocked
FROM products WHERE product_id < 8 ORDER BY product_id;
SELECT avg((attributes::jsonb ->> 'rating')::numeric), count(*) FILTER (WHERE (attributes::jsonb ->> 'stocked')::boolean) FROM products;
SELECT sum((payload::jsonb ->> 'ms')::int) AS ms, payload::jsonb -> 'user' ->> 'plan' AS plan FROM events GROUP BY 2 ORDER BY 2 NULLS LAST;
SELECT humid::numeric(5, 1), temp::int, wind_dir::text, precip::real FROM weather
WHERE origin = 'EWR' AND month = 7 AND day = 1 AND hour < 4 ORDER BY time_hour;
SELECT count(*) FROM flights WHERE flight = '1545' OR dest = 'LAX'::varchar OR distance > '4000';
SELECT * FROM (VALUES (1, 'a'), (2.5, NULL)) v ORDER BY 1;
SELECT cast(NULL AS int), NULL::text, NULL::date + 1, cast(NULL AS numeric(5, 2)) * 2, NULL::boolean AND false;

-- A floating-point number becomes a numeric by the digits that its type has for certain, rounded half away from zero
SELECT 0.285::float8::numeric(10, 2) AS a, 1.005::float8::numeric(10, 2) AS b, 2.675::float8::numeric(10, 2) AS c, (-0.285)::float8::numeric(5, 2) AS d,
  1e25::float8::numeric(30, 2) AS e, 1e-40::float8::numeric(10, 2) AS f, 123456789::real::numeric(12, 0) AS g, 1e15::real::numeric(38, 2) AS h,
  0.1::real::numeric(10, 8) AS i, 123456.789::real::numeric AS j, 7.8::real::numeric AS k, 0.5::float8::numeric(1, 0) AS l, 2.5::real::numeric(2, 0) AS m;
SELECT id, r::numeric(38, 6) AS r, d::numeric(38, 6) AS d FROM floats WHERE id NOT IN (1, 2, 3, 8, 9) ORDER BY id;
SELECT id, r::numeric AS r, d::numeric AS d FROM floats WHERE id IN (4, 5) OR id BETWEEN 10 AND 23 ORDER BY id;
SELECT id, round(d1::numeric, 3) AS rounded, d1::numeric(20, 1) AS one, d1::real::numeric(20, 3) AS r FROM nums ORDER BY id;
SELECT sum(r::numeric) AS exact, sum(r::numeric(10, 1)) AS rounded, max(r::numeric(10, 2)) AS largest FROM floats WHERE id BETWEEN 10 AND 18;
SELECT id, r::numeric(10, 1) = 0.1 AS r, d::numeric(10, 1) IN (0.1, 0.5, 2.5) AS d FROM floats WHERE id BETWEEN 10 AND 20 ORDER BY id;
-- fails
SELECT 1234.5::float8::numeric(5, 2);
SELECT '\101'::"char" AS letter, '\377'::"char" AS byte, '\000'::"char" AS none, '\777'::"char" AS modulo, '\10'::"char" AS short, '\1011'::"char" AS long,
  '\177'::"char" = chr(127) AS last, '\101'::"char"::text AS text, ''::"char" AS empty, "char" 'abc' AS typed;

-- Names of types as functions.
SELECT id, float8(bi) AS float8, int4(d) AS int4, text(n) AS text, int2(si::text) AS int2, bool(i) AS bool, float4(n) AS float4
FROM t_types WHERE id IN (2, 7, 9, 20) ORDER BY id;
SELECT int8('12') AS a, float8('1.5'::text) AS b, text(true) AS c, text(date '2024-02-29') AS d, int4(1.5) + int4(2.5) AS e, bytea('\x61') AS f,
  name(repeat('x', 70)) AS g, pg_catalog.float8(1) AS h, sum(float8(id)) OVER () AS i, int4('7') / 2 AS j FROM nums WHERE id = 1;
-- fails
SELECT int4('x');
SELECT int2(70000);
SELECT float8(1, 2);
