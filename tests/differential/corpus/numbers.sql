-- Numbers: arithmetic, rounding, overflow, bits, formatting.

-- Division and remainder
SELECT 7 / 2, -7 / 2, 7 / -2, 7 % 2, -7 % 2, 7 % -2;
SELECT 7 / 2.0 AS numeric, 7 / 2::float8 AS float, 7::numeric / 3 AS third;
SELECT 1 / 3.0, 10.0 / 3, 1.000 / 3, 100000000000 / 3.0;
SELECT mod(7, 3), mod(-7, 3), mod(7.5, 2), mod(-7.5, 2.2);
SELECT div(7, 2) AS a, div(-7.5, 2) AS b, div(9, -4) AS c;
SELECT carrier, sum(distance) / count(*), sum(distance) % count(*) FROM flights GROUP BY 1 ORDER BY 1;
SELECT sched_dep_time / 100 AS h, sched_dep_time % 100 AS m, count(*) FROM flights WHERE carrier = 'YV' GROUP BY 1, 2 ORDER BY 1, 2;
SELECT flight, distance / air_time AS whole, distance / air_time::numeric AS exact FROM flights
WHERE carrier = 'YV' AND air_time IS NOT NULL ORDER BY flight, time_hour LIMIT 5;
SELECT round(100.0 * count(*) FILTER (WHERE dep_delay > 15) / count(dep_delay), 2) FROM flights;
SELECT carrier, count(*) * 100 / sum(count(*)) OVER () AS share FROM flights GROUP BY carrier ORDER BY carrier;
SELECT 5 / 2 * 2.0 AS left_first, 5 / (2 * 2.0) AS grouped, 2 + 3 * 4 - 6 / 4;
SELECT 1.5 % 0.4, 9223372036854775807 % 10, (-2147483648) % (-1);
-- fails
SELECT 1 / 0;
-- fails
SELECT 1::float8 / 0 AS f;

-- round, trunc, ceil, floor
SELECT round(2.5) AS a, round(3.5) AS b, round(-2.5) AS c, round(2.4999) AS d;
SELECT round(2.5::float8), round(3.5::float8), round(-2.5::float8), round(0.5::float8);
SELECT round(1234.5678, 2) AS two, round(1234.5678, 0) AS zero, round(1234.5678, -2) AS hundreds, round(1250, -2) AS up;
SELECT round(2.675, 2), round(-2.675, 2), round(1.005, 2), round(0.125, 2);
SELECT trunc(2.9) AS a, trunc(-2.9) AS b, trunc(1234.5678, 2) AS c, trunc(1234.5678, -2) AS d, trunc(2.9::float8) AS e;
SELECT ceil(2.1), ceiling(-2.1), floor(2.9), floor(-2.1);
SELECT ceil(2.1::float8), floor(-0.5::float8), round(7), trunc(7), ceil(7);
SELECT origin, round(avg(distance), 2) AS mean, trunc(avg(distance), 1) AS cut, floor(avg(distance)) AS floor
FROM flights GROUP BY 1 ORDER BY 1;
SELECT round(lat::numeric, 2) AS lat, round(lon::numeric, 2) AS lon, faa FROM airports WHERE faa IN ('EWR', 'JFK', 'LGA') ORDER BY faa;
SELECT round(dep_delay / 60.0, 1), count(*) FROM flights WHERE dep_delay > 600 GROUP BY 1 ORDER BY 1;
SELECT round(dep_delay, -2) AS hundred, count(*) AS n FROM flights WHERE dep_delay > 400 GROUP BY 1 ORDER BY 1;
SELECT round(null::numeric, 2) AS nothing, round(1.5, null) AS no_digits, round(1e20) AS large,
  round(123456789012345678901.55, 1) AS precise;
SELECT floor(dep_delay / 10.0) * 10, count(*) FROM flights WHERE carrier = 'HA' GROUP BY 1 ORDER BY 1;
SELECT seats / 50 * 50 AS seats, count(*) AS planes FROM planes GROUP BY 1 ORDER BY 1;
-- fails
SELECT round(2.675::float8, 2) AS no_such_function;

-- Powers, roots, logarithms, trigonometry
SELECT power(2, 10), power(2.0, 10), power(2, 0.5), 2 ^ 10, 2 ^ -1;
SELECT power(2::numeric, 0.5) AS numeric_root, 2.0 ^ 3.0 AS exact, 0 ^ 0 AS zero, (-2) ^ 3 AS negative, -2 ^ 2 AS sign_binds_first;
SELECT 2 ^ 3 ^ 2 AS from_left, 10 ^ 20 AS large;
SELECT sqrt(2) AS float, sqrt(2.0) AS numeric, sqrt(16), |/ 25.0 AS operator, ||/ 27.0 AS cube, cbrt(27.0) AS cbrt;
SELECT exp(1) AS e, exp(1.0) AS numeric_e, ln(10) AS ln, ln(2.0) AS numeric_ln;
SELECT log(100) AS ten, log(2, 8) AS two, log(2.0, 64.0) AS numeric, log10(1000), log(10.0, 0.001);
SELECT round(pi()::numeric, 10) AS pi, round(degrees(pi())::numeric, 5) AS half_turn, round(radians(180)::numeric, 10) AS rad;
SELECT round(sin(1)::numeric, 12) AS sin, round(cos(1)::numeric, 12) AS cos, round(tan(1)::numeric, 12) AS tan,
  round(cot(1)::numeric, 12) AS cot;
SELECT round(asin(0.5)::numeric, 12), round(acos(0.5)::numeric, 12), round(atan(0.5)::numeric, 12), round(atan2(1, -1)::numeric, 12);
SELECT sind(30), cosd(60), tand(45), asind(1), acosd(0), atand(1);
SELECT round(sinh(1)::numeric, 10) AS sinh, round(cosh(1)::numeric, 10) AS cosh, round(tanh(1)::numeric, 10) AS tanh;
SELECT dest, round((3959 * acos(least(1, sin(radians(o.lat)) * sin(radians(d.lat)) +
  cos(radians(o.lat)) * cos(radians(d.lat)) * cos(radians(d.lon - o.lon)))))::numeric, 0), max(distance)
FROM flights f JOIN airports o ON o.faa = f.origin JOIN airports d ON d.faa = f.dest
WHERE f.origin = 'JFK' AND f.dest IN ('LAX', 'SFO', 'BOS', 'MIA') GROUP BY 1, 2 ORDER BY 1;
SELECT round(exp(avg(ln(distance)))::numeric, 4) AS geometric_mean FROM flights;
SELECT width_bucket(distance, 0, 5000, 5) AS bucket, count(*) AS n, min(distance) AS shortest FROM flights GROUP BY 1 ORDER BY 1;
SELECT width_bucket(5.35, 0.024, 10.06, 5), width_bucket(-1, 0, 10, 5), width_bucket(10, 0, 10, 5);
SELECT width_bucket(3, 10, 0, 5) AS descending, width_bucket(5::float8, 0, 10, 4) AS float,
  width_bucket(15, ARRAY[0, 10, 20, 30]) AS bounds;
SELECT sign(-2.5) AS a, sign(0) AS b, sign(7::float8) AS c, abs(-17) AS d, abs(-2.50) AS e, @ -5 AS operator;
SELECT gcd(1071, 462), lcm(1071, 462), gcd(0, 5), gcd(-12, 18), lcm(0, 3);
SELECT gcd(1.5, 0.9), lcm(1.5, 0.9), factorial(5), factorial(25);
SELECT scale(1.2300) AS scale, min_scale(1.2300) AS needed, trim_scale(1.2300) AS trimmed;
-- fails
SELECT sqrt(-1) AS root;

-- Overflow is an error, and wider types hold what does not fit.
SELECT 2147483647::bigint + 1, 2147483647 + 1::bigint, 9223372036854775807 + 1.0;
SELECT 2147483648 AS bigint_literal, 9223372036854775808 AS numeric_literal, -9223372036854775808 AS lowest;
SELECT sum(distance::bigint * distance * distance) AS cubes FROM flights WHERE dest = 'HNL';
SELECT max(distance::numeric * distance * distance) FROM flights;
SELECT sum(x) AS s FROM (VALUES (2147483647), (2147483647), (1)) v(x);
SELECT sum(x) AS s FROM (VALUES (9223372036854775807), (9223372036854775807)) v(x);
SELECT avg(x) FROM (VALUES (9223372036854775807), (9223372036854775805)) v(x);
SELECT sum(x::smallint) AS s FROM generate_series(32000, 32767, 100) x;
SELECT 32767::smallint + 1 AS promoted, 32767::smallint + 0::smallint AS fits;
SELECT sum(distance), sum(distance::bigint) FROM flights;
-- fails
SELECT 2147483647 + 1 AS overflow;
-- fails
SELECT x + 1 FROM (VALUES (2147483647)) v(x);
-- fails
SELECT i * 2 AS twice FROM t_types WHERE id = 4;
-- fails
SELECT 50000 * 50000 AS overflow;
-- fails
SELECT max(distance * distance * distance) AS cube FROM flights;
-- fails
SELECT 9223372036854775807 + 1;
-- fails
SELECT -(-2147483648)::int AS overflow;
-- fails
SELECT 32767::smallint + 1::smallint AS overflow;

-- A literal is an integer, a bigint or a numeric, the first that holds it, and so is what is computed from it.
SELECT sum(CASE WHEN distance > 1000 THEN 1 ELSE 0 END) / count(*) AS share FROM flights;
SELECT origin, sum(CASE WHEN arr_delay > 0 THEN 1 ELSE 0 END) / 7 AS weeks, sum(1) / 7 AS together FROM flights GROUP BY origin ORDER BY origin;
SELECT sum(x) / 2 AS half, avg(x) AS mean, sum(x) * 1.5 AS more FROM (VALUES (1), (2), (4)) v(x);
SELECT sum(x) / 2 AS half FROM (VALUES (1), (2), (3000000000)) v(x);
SELECT sum(n) / 2 AS half FROM (SELECT 1 AS n UNION ALL SELECT 2 UNION ALL SELECT 4) u;
SELECT sum(n) / 2 AS half FROM (SELECT 1 AS n UNION ALL SELECT 2::bigint UNION ALL SELECT 4) u;
SELECT sum(coalesce(dep_delay, 0)) / 7 AS a, sum(greatest(dep_delay, 0)) / 7 AS b, sum(nullif(distance, 0)) / 7 AS c FROM flights;
SELECT sum(g) / 2 AS a, sum(g::bigint) / 2 AS b FROM generate_series(1, 4) g;
SELECT sum(g) / 4 AS half FROM generate_series(1, 3000000000, 1000000000) g;
SELECT sum(distance * 2) / 7 AS a, sum(distance + 1::bigint) / 7 AS b, sum(-1) / 7 AS c, sum(dep_delay - '1') / 7 AS d FROM flights;
SELECT sum(sum(1)) OVER (ORDER BY origin) / 7 AS running FROM flights GROUP BY origin ORDER BY 1;
SELECT sum(1) FILTER (WHERE dest = 'LAX') / 7 AS a, sum(DISTINCT 3) / 2 AS b, sum((SELECT 3)) / 2 AS c FROM flights;
WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 6) SELECT sum(n) / 2 AS half FROM t;
SELECT pg_typeof(1) AS a, pg_typeof(-2147483648) AS b, pg_typeof(2147483647) AS c, pg_typeof(9223372036854775807) AS d,
  pg_typeof(9223372036854775808) AS e, pg_typeof(sum(1)) AS f, pg_typeof(sum(3000000000)) AS g;
SELECT pg_typeof(-(2147483648)) AS a, pg_typeof(-9223372036854775808) AS b, pg_typeof(-(-2147483648)) AS c, -(-2147483648) AS d, pg_typeof(-9223372036854775809) AS e,
  -2147483648 + 0 AS f, pg_typeof(-2147483648 + 0) AS g, -9223372036854775808 + 1 AS h, pg_typeof(-(-9223372036854775808)) AS i, -0002147483648 AS j;
SELECT pg_typeof(a) AS a, pg_typeof(b) AS b, pg_typeof(c) AS c FROM (VALUES (1, 1, 1), (2, 3000000000, 1.5)) v(a, b, c);
SELECT -(-2) AS a, - (- (-3)) AS b, 5 - (-1) AS c, sum(-(-1)) / 7 AS d FROM flights;
SELECT - -1 AS a, - - -2 AS b, 5 - -1 AS c, + - + - dep_delay AS d, sum(- -1) OVER () / 7 AS e, @ - - -dep_delay AS f
FROM flights WHERE dep_delay = - -3 OR - - dep_delay < - - -12 OR dep_delay IN (- -1, - 2) ORDER BY d, f;
SELECT pg_typeof(1 + 1) AS a, pg_typeof(1 + 3000000000) AS b, pg_typeof(~1) AS c, pg_typeof(1 << 2) AS d, pg_typeof(2 ^ 2) AS e,
  pg_typeof(ARRAY[1, 2]) AS f, pg_typeof(ARRAY[1, 3000000000]) AS g, pg_typeof(coalesce(NULL, 1)) AS h;
SELECT 1 << 33 AS a, 1::bigint << 33 AS b, 2147483647 >> 1 AS c, -8 >> 1 AS d, ~7 AS e, 6 & 3 AS f, 6 | 3 AS g, 6 # 3 AS h;
SELECT round(12345.678, 1) AS a, round(12345.678, -2) AS b, trunc(12345.678, 2) AS c, round(5, 1) AS d, round(sum(1.25), 1) AS e FROM flights;
SELECT array_agg(x ORDER BY x) AS a, json_agg(x ORDER BY x) AS b FROM (VALUES (1), (2)) v(x);
SELECT count(1) AS a, count(DISTINCT 1) AS b, count(NULL) AS c FROM flights;
SELECT bi, bi IN (1, 5, 100) AS a, bi BETWEEN 1 AND 100 AS b, bi = 10 AS c, si = 7 AS d, si < 40000 AS e FROM t_types ORDER BY id;
SELECT id, lag(bi, 1, 0) OVER (ORDER BY id) AS a, lag(i, 1, 0) OVER (ORDER BY id) AS b FROM t_types ORDER BY id LIMIT 5;
SELECT id, sum(1) OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING) AS n FROM t_types ORDER BY 1 LIMIT 4 OFFSET 2;

-- numeric
SELECT 0.1 + 0.2 AS exact, 0.1::float8 + 0.2::float8 AS float, 0.1::real + 0.2::real AS real;
SELECT 1.10 + 2.2 AS add, 1.10 * 2.20 AS multiply, 1.10 - 1.1 AS zero, 1.10 = 1.1 AS equal;
SELECT 12345678901234567890.123456789 * 98765.4321 AS product, 12345678901234567890 - 0.1 AS difference;
SELECT 1::numeric(5, 2), 123.456::numeric(5, 2), 123.455::numeric(6, 2), 0.5::numeric(3, 0);
SELECT 1 / 7::numeric AS a, (1 / 7::numeric)::numeric(10, 3) AS b, 22 / 7.00 AS c, 1000000 / 7.0 AS d;
SELECT avg(x) AS mean, sum(x) AS total FROM (VALUES (1.5), (2.25), (3.125)) v(x);
SELECT avg(x), round(avg(x), 3) FROM (VALUES (1), (2), (2)) v(x);
SELECT 'NaN'::numeric AS nan, 'NaN'::numeric = 'NaN'::numeric AS same, 'NaN'::numeric > 1e100 AS largest, 'Infinity'::numeric AS inf;
SELECT 1e-10 AS small, 1e10 AS large, 1.5e3 AS e, .5 AS half, 5. AS five, 0.000000000000000001 AS tiny;
SELECT 99999.99::numeric(7, 2) * 99999.99::numeric(7, 2), 1.23::numeric(10, 4);
SELECT x FROM (VALUES (1.0), (1.00), (0.9), (1.000)) v(x) GROUP BY x HAVING count(*) > 2;
SELECT sum(precip::numeric(10, 2)) AS rain, origin FROM weather GROUP BY origin ORDER BY origin;
-- fails
SELECT 1000::numeric(5, 2) AS overflow;

-- Floats
SELECT 1::float8 / 3, 1::real / 3, 0.1::real::float8, 1e300::float8 * 10;
SELECT 100::float8::text AS a, 1e15::float8::text AS b, 1e16::float8::text AS c, 123456789.125::float8::text AS d,
  0.0001::float8::text AS e;
SELECT 0.00001::float8::text AS a, 1e-7::float8::text AS b, (-0.0)::float8::text AS c, '-0'::float8::text AS minus_zero, 1e21::float8::text;
SELECT 1.1::real::text, 16777217::real::text, 1e10::real::text, 3.14159274::real::text;
SELECT 'NaN'::float8 AS nan, 'Infinity'::float8 AS inf, '-Infinity'::float8 AS minus, 'inf'::float8 = 'Infinity'::float8 AS same;
SELECT 'NaN'::float8 = 'NaN'::float8 AS same, 'NaN'::float8 > 'Infinity'::float8 AS larger, 0::float8 = '-0'::float8 AS zeros;
SELECT x FROM (VALUES ('NaN'::float8), ('Infinity'), (1), (null), ('-Infinity')) v(x) ORDER BY x;
SELECT max(temp), min(temp), max(wind_speed)::text FROM weather;
SELECT temp::text AS f, round(((temp - 32) * 5 / 9)::numeric, 2) AS c, origin FROM weather
WHERE month = 1 AND day = 1 AND hour = 6 ORDER BY origin;
SELECT lat::text || ',' || lon::text AS place FROM airports WHERE faa IN ('ANC', 'HNL', 'JFK') ORDER BY faa;
-- fails
SELECT 1e308::float8 * 10;

-- Casts between numeric types
SELECT 2.5::int AS a, 3.5::int AS b, -2.5::int AS c, 2.5::float8::int AS d, 3.5::float8::int AS e, (-2.5)::float8::int AS f;
SELECT 0.5::float8::bigint AS a, 1.5::float8::bigint AS b, 0.5::numeric::bigint AS c, 32767.4::smallint AS d;
SELECT 1e9::int, 1e18::bigint, 12345.678::real, 16777217::real::int, 9007199254740993::float8::bigint;
SELECT 7::numeric AS a, 7::float8 AS b, 0.1::float8::numeric AS c, 0.1::real::numeric AS d, (1 / 3::float8)::numeric AS e;
SELECT true::int AS one, 0::boolean AS no, 5::boolean AS yes, (3 > 2)::int + (2 > 3)::int AS sum;
SELECT CAST(avg(dep_delay) AS int), CAST(avg(dep_delay) AS real), origin FROM flights GROUP BY origin ORDER BY origin;
SELECT '12'::int + 1 AS a, '12.5'::numeric * 2 AS b, 3 || '4' AS c, '5' + 6 AS unknown;
-- fails
SELECT 2147483648::int AS overflow;
-- fails
SELECT 1e10::float8::int;

-- Bits
SELECT 91 & 15 AS a, 32 | 3 AS b, 17 # 5 AS c, ~1 AS d, 1 << 4 AS e, 8 >> 2 AS f, -8 >> 1 AS g;
SELECT 1::bigint << 40 AS wide, 5000000000 & 4294967295 AS low, 1 << 31 AS sign_bit, 1 << 32 AS around;
SELECT month, bit_and(flight), bit_or(hour), bit_xor(day) FROM flights WHERE carrier = 'YV' GROUP BY 1 ORDER BY 1;
SELECT B'1011' AS bits, B'1011' & B'0110' AS both, 5::bit(4) AS cast, B'101'::int AS back, bit_count(B'1011') AS ones;
SELECT to_hex(255) AS hex, to_hex(2147483647), to_hex(-1) AS minus, x'ff'::int AS from_hex;

-- greatest, least, nullif, coalesce
SELECT greatest(1, 2.5, 2), least(3, 1.5::float8), greatest(null, 1), least(null::int, null);
SELECT carrier, flight, greatest(dep_delay, arr_delay) AS worse, least(dep_delay, arr_delay) AS better FROM flights
WHERE carrier = 'YV' ORDER BY time_hour, flight;
SELECT nullif(5, 5) AS n, nullif(5, 6) AS five, coalesce(null, 1.5, 2) AS c, coalesce(dep_delay, -999) AS delay, count(*)
FROM flights WHERE carrier = 'YV' AND dep_delay IS NULL GROUP BY dep_delay;
SELECT sum(distance) / nullif(sum(air_time) FILTER (WHERE carrier = 'XX'), 0) FROM flights;
SELECT 5 BETWEEN 1 AND 10 AS b, 5 NOT BETWEEN SYMMETRIC 10 AND 1 AS s, 5 IN (1, 2.0, 5.00) AS i, 1 IS DISTINCT FROM null AS d;
SELECT 1 <> 2 AS ne, 1 != 1 AS also, (1, 2) < (1, 3) AS rows, 3 = ANY (ARRAY[1, 2, 3]) AS any_of, 3 > ALL (ARRAY[1, 2]) AS all_of;

-- random() where the answer does not depend on it
SELECT random() BETWEEN 0 AND 1, random() IS NULL, floor(random())::int;
SELECT count(*) AS n, count(DISTINCT r) > 990 AS differ, min(r) >= 0 AS low, max(r) < 1 AS high
FROM (SELECT random() AS r FROM generate_series(1, 1000)) s;
SELECT abs(avg(r) - 0.5) < 0.05 AS centred FROM (SELECT random() r FROM generate_series(1, 10000)) s;

-- to_char
SELECT to_char(1234567.891, '9,999,999.99'), to_char(1234567.891, 'FM9,999,999.00'), to_char(0.5, '0.99'), to_char(0.5, '9.99');
SELECT to_char(-485, '999') AS a, to_char(485, '999') AS b, to_char(-485, 'S999') AS c, to_char(485, '999S') AS d,
  to_char(-485, '999MI') AS e;
SELECT to_char(-485, '999PR') AS angle, to_char(485, '999PR') AS plain, to_char(485, 'PL999') AS plus, to_char(-485, 'SG999') AS sign;
SELECT to_char(485, '00000'), to_char(485, '0999'), to_char(12345, '999'), to_char(5, 'FM000');
SELECT to_char(485, 'RN') AS roman, to_char(485, 'FMRN') AS trimmed, to_char(12, '99th') AS th, to_char(22, 'FM99TH') AS upper;
SELECT to_char(0.1, 'FM9.99') AS a, to_char(0.1, 'FM0.99') AS b, to_char(1, 'FM9.99') AS c, to_char(12.454, '99V9') AS shifted;
SELECT to_char(0.0004859, '9.99EEEE'), to_char(1234.5, '9.9EEEE'), to_char(12.4, '"Amount:" 99.9');
SELECT to_char(1234.5::float8, '9999.9') AS float, to_char(1234::int, '9999'), to_char(123456789012, '999,999,999,999') AS big;
SELECT to_char(12, 'FM99%') AS percent, to_char(null::int, '99') AS nothing, to_char(3.14159, 'FM990.0000') AS pi,
  to_char(1e10::float8, '9.99EEEE');
SELECT to_char(1234.56, 'L9999.99'), to_char(1234.56, 'FM9G999D99'), to_char(1234.56, 'FM9999D9');
SELECT carrier, to_char(sum(distance), 'FM999,999,999') AS miles FROM flights GROUP BY carrier ORDER BY sum(distance) DESC LIMIT 5;
SELECT origin, to_char(100.0 * count(*) / sum(count(*)) OVER (), 'FM990.0') || ' %' AS share FROM flights GROUP BY 1 ORDER BY 1;
SELECT to_char(flight, 'FM0000') AS flight, to_char(dep_delay, 'SG999') AS delay FROM flights WHERE carrier = 'YV' ORDER BY time_hour, 1;

-- to_number
SELECT to_number('12,454.8-', '99G999D9S') AS a, to_number('1,234.56', '9,999.99') AS b, to_number('-12', 'S99') AS c;
SELECT to_number('$1,234', 'L9,999') AS money, to_number('  42 ', '999') AS spaces,
  to_number('0012', '9999') AS zeros, to_number('<12>', '99PR');
SELECT to_number('12.34', '99'), to_number('1234', '99'), to_number(null, '99');

-- Series and questions
SELECT n, n * n AS square, n % 3 = 0 AS third FROM generate_series(1, 10) n ORDER BY n;
SELECT generate_series(10, 1, -3) AS down;
SELECT generate_series(0.5, 2.0, 0.5);
SELECT sum(n) AS s, avg(n) AS a FROM generate_series(1, 100) AS n;
SELECT count(*) FROM generate_series(5, 1);
SELECT b * 500 AS from_miles, count(f.flight) AS n FROM generate_series(0, 9) b LEFT
JOIN flights f ON f.distance / 500 = b GROUP BY b ORDER BY b;
SELECT carrier, corr(distance, air_time) > 0.9 FROM flights WHERE carrier IN ('UA', 'DL') GROUP BY 1 ORDER BY 1;
SELECT dest, count(*) AS n, round(avg(distance::numeric / nullif(air_time, 0) * 60), 1) AS mph FROM flights
GROUP BY dest HAVING count(*) BETWEEN 1 AND 20 ORDER BY dest;
SELECT engines, avg(seats)::numeric(10, 1) AS seats, sum(seats * engines) AS product FROM planes GROUP BY engines ORDER BY engines;
SELECT p.seats * count(*), p.tailnum FROM planes p JOIN flights f USING (tailnum)
WHERE p.seats > 370 GROUP BY p.tailnum, p.seats ORDER BY 1 DESC, 2 LIMIT 5;
SELECT alt, round(alt * 0.3048) AS metres, alt / 1000 AS thousands FROM airports ORDER BY alt DESC, faa LIMIT 5;
SELECT tz, abs(tz) AS hours, sign(tz) AS side, count(*) FROM airports GROUP BY tz ORDER BY tz;

-- Pairs of numbers of each type
SELECT id, i1 / i2 AS quotient, i1 % i2 AS rest, div(n1, n2) AS div, mod(n1, n2) AS mod FROM nums WHERE id <= 11 ORDER BY id;
SELECT id, b1 / b2 AS b, n1 / n2 AS n, d1 / d2 AS d FROM nums WHERE id <= 15 ORDER BY id;
SELECT id, i1 + b1, i1 * n2, s1 - i2, s1 + s2 FROM nums WHERE id < 10 ORDER BY id;
SELECT id, n1 * n2 AS product, n1 - n2 AS difference, round(n1 / n2, 3) AS rounded FROM nums WHERE id >= 12 ORDER BY id;
SELECT id, gcd(i1, i2) AS gcd, lcm(b1, b2) AS lcm, sign(n1) AS sign, abs(d1) AS abs FROM nums
WHERE id IN (1, 2, 7, 9, 13, 19, 20) ORDER BY id;
SELECT id, i1 & i2 AS b_and, i1 | i2 AS b_or, i1 # i2 AS b_xor, ~i1 AS b_not, i1 << 2 AS l, i1 >> 1 AS r FROM nums
WHERE id <= 13 ORDER BY id;
SELECT id, power(d1, 2) AS square, d1 ^ 2 = d1 * d1 AS same, round(n1 ^ 2, 2) AS exact FROM nums WHERE id BETWEEN 12 AND 15 ORDER BY id;
SELECT id, round(n1), trunc(n1, 1), ceil(n1), floor(n1), n1::int FROM nums WHERE id IN (8, 13, 14, 18, 19, 20) ORDER BY id;
SELECT id, round(d1) AS r, trunc(d1) AS t, ceil(d1) AS c, d1::int AS i, d1::numeric AS n FROM nums
WHERE id IN (8, 13, 14, 18, 19, 20) ORDER BY id;
SELECT sum(s1) AS s, sum(i1) AS i, sum(b1) AS b, sum(n1) AS n, count(d1) AS d FROM nums;
SELECT avg(s1), avg(i1), avg(b1), avg(n1) FROM nums;
SELECT id, i1::text || '/' || i2 AS shown, b1::numeric * b2 AS wide FROM nums WHERE id IN (15, 16, 17) ORDER BY id;
SELECT id, to_char(n1, 'FM999G999G999D00') AS n, to_char(i1, 'SG9999999999') AS i FROM nums WHERE id BETWEEN 8 AND 14 ORDER BY id;
SELECT id, width_bucket(i1, 0, 100, 4) FROM nums WHERE i1 IS NOT NULL ORDER BY id;
SELECT order_id, quantity * unit_price AS gross, round(quantity * unit_price * (1 - coalesce(discount, 0)), 2) AS net FROM orders
WHERE customer_id = 32 ORDER BY order_id;
SELECT sku, price, cost, round((price - cost) / price * 100, 1) AS margin FROM products WHERE category = 'office' AND cost IS NOT NULL
ORDER BY margin DESC, sku LIMIT 8;
SELECT product_id, weight_kg, round(weight_kg::numeric, 1), weight_kg::int FROM products WHERE product_id <= 12 ORDER BY 1;
SELECT category, sum(stock * price) AS worth, sum(stock) / count(stock) AS mean_stock FROM products GROUP BY 1 ORDER BY 1 NULLS FIRST;
SELECT id, d, r, d > r AS larger, d = r AS equal FROM floats WHERE id < 20 ORDER BY id;
SELECT id, d::text, r::text FROM floats ORDER BY d DESC NULLS LAST, id;
SELECT id, -d AS neg, abs(d) AS abs, sign(d) AS sign, d + 1 AS plus FROM floats WHERE id NOT IN (7, 8, 9) ORDER BY id;
SELECT id, round(d) AS round, trunc(d) AS trunc, ceil(d) AS ceil, floor(d) AS floor FROM floats WHERE id > 9 ORDER BY id;
SELECT max(d), min(d), max(r), min(r) FROM floats;
SELECT d, count(*) FROM floats WHERE id IN (1, 4, 16, 17) GROUP BY d ORDER BY d;
-- fails
SELECT id, s1 * s2 * s2 * s1 AS small, i1 + i2 AS overflow FROM nums ORDER BY id;
SELECT tailnum, count(*) AS flights, sum(distance) AS miles, sum(distance) / sum(air_time) * 60 AS whole_mph,
  round(sum(distance) * 60.0 / sum(air_time), 2) AS mph
FROM flights WHERE tailnum IS NOT NULL GROUP BY tailnum HAVING count(air_time) >= 12 ORDER BY flights DESC, tailnum LIMIT 8;
SELECT user_id, round(sum(amount)::numeric, 2) AS spent, round(avg(amount)::numeric, 3) AS mean FROM events
WHERE amount IS NOT NULL AND user_id < 12
GROUP BY user_id ORDER BY user_id;
SELECT duration_ms / 1000 AS s, duration_ms % 1000 AS ms, round(duration_ms / 1000.0, 1) AS rounded FROM events
WHERE duration_ms IS NOT NULL ORDER BY event_id LIMIT 8;
SELECT width_bucket(duration_ms, 0, 10000, 10) AS bucket, count(*) FROM events GROUP BY 1 ORDER BY 1;
SELECT salary * 1.03, round(salary * 1.03, -2), salary / 12, round(salary / 12.0, 2), salary + coalesce(bonus, 0)
FROM employees WHERE id < 8 ORDER BY id;
SELECT credit, trunc(credit), round(credit), abs(credit), sign(credit), -credit FROM customers WHERE customer_id <= 9 ORDER BY customer_id;
SELECT sum(credit) FILTER (WHERE credit < 0) AS owed, sum(credit) FILTER (WHERE credit >= 0) AS held,
  round(avg(credit), 4) AS mean FROM customers;
SELECT o.order_id, o.unit_price - p.price AS gap, round(o.unit_price / p.price, 3) AS ratio,
  round((o.unit_price / p.price - 1) * 100) || '%' AS percent
FROM orders o JOIN products p USING (product_id) WHERE o.order_id <= 100008 ORDER BY o.order_id;
SELECT discount, count(*) AS n, sum(quantity * unit_price * discount) AS given, round(sum(quantity * unit_price * discount), 1) AS rounded
FROM orders GROUP BY discount ORDER BY discount NULLS FIRST;
SELECT round(sqrt(avg(power(arr_delay - dep_delay, 2)))::numeric, 6) AS rms FROM flights WHERE arr_delay IS NOT NULL;
SELECT power(quantity, 2), quantity ^ 2, sqrt(quantity * 1.0), round(ln(quantity::numeric), 8), quantity % 5
FROM orders ORDER BY order_id LIMIT 6;
SELECT to_char(unit_price, 'FM99990.00') AS price, to_char(discount * 100, 'FM990.0"%"') AS discount,
  to_char(order_id, 'FM000000000') AS id FROM orders ORDER BY order_id LIMIT 8;
SELECT to_char(credit, '99,999.99S') AS s, to_char(credit, '99999.99PR') AS pr,
  to_char(credit, '$99999.9') AS dollars FROM customers WHERE customer_id < 8 ORDER BY customer_id;

-- NaN is the greatest value.
SELECT id % 3 AS part, max(d), min(d), max(r), min(r) FROM floats GROUP BY 1 ORDER BY 1;
SELECT max(d), min(d) FROM floats WHERE id = 1;
SELECT max(d), min(d) FROM floats WHERE d = '-Infinity';
SELECT id, max(d) OVER (ORDER BY id ROWS 2 PRECEDING), min(d) OVER (ORDER BY id ROWS 2 PRECEDING) FROM floats ORDER BY id;
SELECT 1 >> 32 AS around, -1 << 3 AS negative, 256 >> 33 AS right_shift;

-- Bigints beyond 2^53, beside doubles of another column.

SELECT id FROM t_types WHERE bi > d ORDER BY id;
SELECT id FROM t_types WHERE d <> bi AND id > 2 ORDER BY id;
SELECT id FROM t_types WHERE bi BETWEEN d AND r ORDER BY id;
SELECT a.id, b.id AS other FROM t_types a JOIN t_types b ON a.bi = b.d ORDER BY 1, 2;

-- A key of a join is a converted column that is also returned.
SELECT a.id, a.bi, b.id AS other, b.d FROM t_types a JOIN t_types b ON a.bi = b.d ORDER BY 1, 3;
SELECT a.id, a.bi, b.id AS other, b.d FROM t_types a LEFT JOIN t_types b ON a.i = b.d::int ORDER BY 1, 3;
SELECT a.id, a.d, b.id AS other FROM t_types a, t_types b WHERE a.d::int = b.i AND a.bi = b.d ORDER BY 1, 3;

-- Trigonometry in degrees
SELECT a, sind(a), cosd(a), tand(a), cotd(a) FROM unnest(ARRAY[0, 30, 45, 60, 90, 120, 135, 150, 180, 210, 225, 240, 270, 300, 315, 330, 360, 450,
  720, -30, -45, -60, -90, -180, -270, 29.99999, 75, 89.9999, 0.00001]::float8[]) a;
SELECT a, asind(a), acosd(a), atand(a), atan2d(a, 1), atan2d(1, a) FROM unnest(ARRAY[0, 0.3, 0.5, 0.7, 0.9, 1, -0.3, -0.5, -0.7, -1]::float8[]) a;
SELECT id, atand(d), atan2d(d, 1), atan2d(d, -1) FROM floats ORDER BY id;
SELECT id, sind(d), cosd(d), tand(d), cotd(d) FROM floats WHERE id NOT IN (2, 3, 8, 9) ORDER BY id;
-- fails
SELECT sind('Infinity'::float8);
-- fails
SELECT cotd('-Infinity'::float8);
-- fails
SELECT asind(1.1::float8);

-- A text beside a real is a real; several values of IN are an array of one type
SELECT id, r = '0.1' AS eq, r < '0.1' AS lt, r <> '0.3' AS ne, '0.3' >= r AS ge, r IS DISTINCT FROM '0.1' AS other FROM floats ORDER BY id;
SELECT id, r IN ('0.1') AS one, r IN ('0.1', '0.3') AS texts, r IN (0.1) AS numeric, r IN (0.1, 0.3) AS numerics, r IN ('0.1', 0.3) AS both,
  r IN ('0.1', 0.3::float8) AS doubles, r NOT IN (0.1, 0.3) AS none, r BETWEEN '0.1' AND '0.3' AS texts_between, r BETWEEN 0.1 AND 0.3 AS between
FROM floats ORDER BY id;
SELECT id, r + '0.1' AS sum, r * '0.1' AS product, nullif(r, '0.1') AS other, CASE r WHEN '0.1' THEN 'tenth' END AS named FROM floats
WHERE id IN (4, 10, 11, 20, 24) ORDER BY id;
SELECT '0.0e5'::float8, '0e5'::real, '16777217'::real::float8, '7.038531e-26'::real;
-- fails
SELECT '1e-46'::real;

-- width_bucket of numerics is exact, and of doubles compares with the bounds
SELECT width_bucket(0.29, 0, 1, 100), width_bucket(0.29::float8, 0, 1, 100), width_bucket(0.57, 0, 1, 100), width_bucket(0.71, 1, 0, 100),
  width_bucket(9007199254740992.5, 0, 18014398509481985, 2), width_bucket(5.35, 0.024, 10.06, 5), width_bucket(0::float8, -1e10, 1, 10),
  width_bucket(1::float8, 1e10, 0, 10), width_bucket(0.5::float8, 0, 1, 2147483647), width_bucket('Infinity'::float8, 0, 1, 5);
SELECT x, width_bucket(x::float8, 10, 100, 9) AS up, width_bucket(x::float8, 100, 10, 9) AS down, width_bucket(x::numeric, 10, 100, 9) AS exact_up,
  width_bucket(x::numeric, 100, 10, 9) AS exact_down FROM generate_series(0, 110, 10) x ORDER BY x;
SELECT id, width_bucket(n1, -10.5, 10.5, 7) AS exact, width_bucket(d1, -10.5, 10.5, 7) AS double, width_bucket(i1, -10, 10, 7) AS whole FROM nums ORDER BY id;
SELECT id, width_bucket(d, '{-1,0,0.3,1e10,NaN}'::float8[]) AS bucket FROM floats ORDER BY id;
-- fails
SELECT width_bucket(1::float8, 0, 1, 2147483647);
-- fails
SELECT width_bucket(0.5, 0, 1, 0);

-- to_char of doubles has the digits that they have for certain, and ends where the pattern has more
SELECT to_char(1e15::float8, '9999999999999999.9999'), to_char(1234567890123456.78::float8, '99999999999999999.9999'),
  to_char(123.456::float8, 'FM999.000000000000000000'), to_char(123.456::float8, '999.000000000000000000'),
  to_char(-123.456::float8, '999.99999999999999999999MI'), to_char(-123.456::float8, '999.99999999999999999999PR'),
  to_char(-123.456::float8, '999.99999999999999999999S'), to_char(1e14::float8, '999999999999999.99S'),
  to_char(-1e16::float8, '99999999999999999MI'), to_char(0.1234567890123456789::float8, '0.99999999999999999999'),
  to_char(1234567.891::real, '9999999.999'), to_char(12345678::real, '999999999999.99MI'), to_char(0.12345678::real, '0.99999999999S'),
  to_char(123456789.12345678::float8, 'FM999999999.99999999999'), to_char(12.5::float8, '99V99999999999999999');
SELECT to_char('Infinity'::float8, '999'), to_char('Infinity'::float8, '999999999'), to_char('-Infinity'::float8, '9999999999.99'),
  to_char('NaN'::float8, '9999D9'), to_char('NaN'::float8, '99'), to_char('-Infinity'::float8, 'FM9999999999'),
  to_char('Infinity'::float8, 'S9999999999'), to_char('Infinity'::real, '9.99EEEE'), to_char('NaN'::real, '9.99EEEE');
SELECT id, to_char(d, '9999999999999999D9999') AS one, to_char(d, 'FM999999999999999990.099999S') AS two, to_char(r, 'SG9999999D999999') AS three,
  to_char(d, '9.999EEEE') AS four FROM floats WHERE id NOT IN (8, 9) ORDER BY id;
SELECT to_char(123, '999."x"'), to_char(-123, '999.S'), to_char(123.5, '999.MI'), to_char(-5.5::float8, '9.PR'), to_char(-123, 'FM999.S'), to_char(-5, 'FM9990.PR'),
  to_char(0, 'FM9."x"'), to_char(12.5::float8, 'FM99D00000000000000000000"x"'), to_char(-12.5::float8, 'FM99D99999999999999999999"x"MI'),
  to_char(12.5::float8, '99V9999999999999999"x"S'), to_char(-12, '99V9S'), to_char(-12, 'S99V9'), to_char(-1234567.5::real, '9999999.99PR'), to_char('-0'::real, '9EEEE');

-- to_number: a sign behind the digits, where the pattern has more of them
SELECT t, to_number(t, '9.999MI') AS mi, to_number(t, '9.999PL') AS pl, to_number(t, '9.999SG') AS sg, to_number(t, '9.999S') AS s, to_number(t, '9.999') AS none
FROM unnest(ARRAY['5.01-', '5.01+', '-5.01', '5.01', '5-', '.5-']) t ORDER BY t;
SELECT to_number('5.01-', 'FM9.999999MI'), to_number('5 -', '999MI'), to_number('5x-', '999MI'), to_number('5,5-', '9,99MI'), to_number('$5-', 'L99MI'),
  to_number('12th-', '99thMI'), to_number('12-', '999thMI'), to_number('1-2', '9-9'), to_number('-1-2', '999'), to_number('5-5', '999MI'), to_number('<5.01>', '99.999PR');
-- fails
SELECT to_number('501', '9.99');

-- All digits of a numeric count in its powers
SELECT 1.000000000123 ^ (-2147483648) AS tiny, power(1.000000000123, 2147483647) AS large, 1.1 ^ 2 AS square, power(0.1, 3) AS cube, (-2.5) ^ 3 AS negative,
  12345678901234.567 ^ 2 AS long, power(1.00000000000000000001, 1000000000) AS fine, 0.0 ^ 2 AS zero, power(2.25::numeric(30, 2), 0.5) AS root;
SELECT id, power(n1, 2) AS squares, power(n2, 3::float8) AS cubes, 1.0000001 ^ i2 AS grown FROM nums ORDER BY id;
-- fails
SELECT power(0.0, -1);
-- fails
SELECT (-1.5) ^ 0.5;

-- A real beside an integer is a double.
SELECT 0.1::real + 16777217 AS s, 3 * 0.1::real AS p, 1::real / 3 AS q, 16777216::real = 16777217 AS e, 16777217 > 16777216::real AS g, 0.5::real < 1 AS l;
SELECT id, r + 1 AS a, r > 16777217 AS b, i = r AS c FROM t_types ORDER BY id;
