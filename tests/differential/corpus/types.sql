-- Types: literals that have none, character(n), numerics far apart, rows that a condition excludes.

-- Literals without a type
SELECT coalesce(NULL::date, '2013-01-05') AS a, coalesce(date '2013-01-01', '2013-01-05') + 1 AS b;
SELECT coalesce(1, '2') AS a, greatest(1, '2') AS b, least('3', 2.5) AS c, nullif(1, '1') AS d;
SELECT coalesce(1, 'x') AS a;
SELECT coalesce(i1, 'none') AS a FROM nums WHERE id < 3 ORDER BY id;
SELECT coalesce(i1::text, 'none') AS a, coalesce(NULL, 'x') AS b, coalesce(NULL, NULL, 2) AS c, greatest('a', 'b') AS d
FROM nums WHERE id < 3 ORDER BY id;
SELECT coalesce(d, '2013-01-05') - 1 AS a FROM (VALUES (NULL::date), ('2013-02-01')) v(d) ORDER BY 1;
SELECT CASE 1 WHEN '1' THEN 'yes' ELSE 'no' END AS a, CASE WHEN false THEN '1' ELSE 2 END AS b;
SELECT CASE WHEN id > 2 THEN i1 ELSE '0' END AS a FROM nums WHERE id < 5 ORDER BY id;
SELECT CASE WHEN id > 2 THEN 'x' ELSE i1 END AS a FROM nums WHERE id < 5 ORDER BY id;
SELECT CASE WHEN id > 2 THEN carrier ELSE id END AS a FROM nums, airlines;
SELECT CASE id WHEN '1' THEN 'one' WHEN 'x' THEN 'ex' END AS a FROM nums WHERE id < 3 ORDER BY id;
SELECT 1 UNION SELECT '2' ORDER BY 1;
SELECT '1' UNION SELECT 2 ORDER BY 1;
SELECT 1 UNION SELECT 2::text;
SELECT i1 FROM nums WHERE id < 4 UNION SELECT '7' ORDER BY 1;
SELECT i1 FROM nums UNION SELECT 'x';
SELECT 'a' AS x UNION ALL SELECT 'b' UNION ALL SELECT NULL ORDER BY x;
VALUES (1, 'a'), ('2', 'b') ORDER BY 1;
VALUES ('1'), (2.5), (NULL) ORDER BY 1;
VALUES (1), ('x');
VALUES (true), ('f'), ('yes') ORDER BY 1;
SELECT x + 1 AS y FROM (VALUES ('1'), (2)) v(x) ORDER BY 1;
SELECT * FROM (VALUES (interval '1 day'), ('2 hours'), (NULL)) v(i) ORDER BY i;
SELECT * FROM (VALUES (1, ARRAY[1, 2]), (2, '{3}'), (3, NULL)) v(a, b) ORDER BY a;
SELECT ARRAY[1, NULL, '3'] AS a, ARRAY['2013-01-05', date '2013-01-01'] AS b, ARRAY[ARRAY[1], '{2}'] AS c;
SELECT ARRAY[1, 'x'] AS a;
SELECT ARRAY[1, 'x'::text] AS a;
SELECT unnest(ARRAY[1, '2']) + 1 AS a ORDER BY 1;

-- Arrays
SELECT ARRAY[]::text[] AS a, (ARRAY[])::int[] AS b, '{{1,2},{3,4}}'::int[] AS c, '{1,2}'::int[][] AS d;
SELECT ('{{a,b}}'::text[])[1][2] AS a, array_ndims('{{1,2},{3,4}}'::int[]) AS b, cardinality('{{1,2},{3,4}}'::int[]) AS c;
SELECT (ARRAY[[1, 2, 3], [4, 5, 6]])[1:2][2:3] AS a, (ARRAY[[1, 2], [3, 4]])[2:][:1] AS b,
  (ARRAY[[1, 2], [3, 4]])[1:1][5:6] AS c, (ARRAY[[1, 2], [3, 4]])[1:1][2] AS d, (ARRAY[1, 2])[1:1][1:1] AS e;
SELECT id, (ARRAY[[i1, i2], [i2, i1]])[1:id][2:2] AS a FROM nums WHERE id < 4 ORDER BY id;
SELECT array_fill(0, ARRAY[2, 3]) AS a, array_fill(1.5, ARRAY[0, 2]) AS b, array_fill('x'::text, ARRAY[1]) AS c;

-- character(n)
SELECT 'abc'::char(5) AS a, char(3) 'x' AS b, 'abcdef'::char(3) AS c, ''::char AS d, NULL::char(4) AS e;
SELECT 'abc'::char(5) LIKE 'abc' AS a, 'abc'::char(5) LIKE 'abc  ' AS b, 'abc'::char(5) ~ 'c$' AS c;
SELECT concat('a'::char(3), '|') AS a, upper('a'::char(3)) || '|' AS b, ('a'::char(3))::text || '|' AS c,
  octet_length('é'::char(3)) AS d;
SELECT 'a'::char(3) = 'a '::text AS a, 'a'::char(3) = 'a  ' AS b, 'a ' = 'a'::char(2) AS c, 'a'::char(3) IN ('b', 'a ') AS d;
SELECT carrier::char(4) AS c, count(*) FROM airlines GROUP BY carrier::char(4) ORDER BY carrier::char(4) LIMIT 3;
SELECT DISTINCT left(carrier, 1)::char(3) AS c FROM airlines ORDER BY c;
SELECT '5'::char(3)::int + 1 AS a, 'ab'::char(4)::char(3) || '|' AS b, 'ab'::char(4)::varchar(3) || '|' AS c;
SELECT carrier FROM airlines WHERE carrier::char(5) = 'AA' ORDER BY 1;
-- refused: the type of a column of a subquery is not kept
SELECT c FROM (SELECT carrier::char(4) AS c FROM airlines) s ORDER BY c LIMIT 2;

-- Bits and digits
SELECT ~5 AS a, ~i1 AS b, ~i1::smallint AS c, to_hex(~i1) AS d, ~ -5 AS e, ~NULL::int AS f FROM nums WHERE id < 3 ORDER BY id;
SELECT x'ff'::int AS a, x'ffffffff'::int AS b, x'ffffffffffffffff'::bigint AS c, B'101'::int AS d, x''::bigint AS e;
SELECT x'1ffffffff'::int;
SELECT scale(1.50) AS a, scale(5) AS b, scale(NULL) AS c, min_scale(1.50) AS d, min_scale(0.00) AS e, trim_scale(1.500) AS f;
SELECT min_scale(n1) AS a, trim_scale(n1) AS b FROM nums WHERE id < 6 ORDER BY id;
SELECT gcd(1.5, 0.9) AS a, lcm(1.5, 0.9) AS b, gcd(n1, 3) AS c, lcm(n1, n2) AS d, gcd(0.0, 0.0) AS e FROM nums
WHERE id < 4 ORDER BY id;
SELECT 1234567::numeric(3, -5) AS a, 0.00123::numeric(2, 4) AS b, '-55'::numeric(1, -1) AS c, 12::numeric(1, -2) AS d;
SELECT 99999999::numeric(3, -5);
SELECT 0.1::numeric(2, 4);
SELECT sum(distance) AS a, sum(distance::bigint) AS b, sum(distance::numeric) AS c, avg(distance::float8) AS d, avg(distance)
FROM flights WHERE month = 1;
SELECT origin, count(dest) AS a, count(dest::text) AS b FROM flights GROUP BY origin ORDER BY origin;

-- round and trunc to digits are of numerics
SELECT round(lat, 2) FROM airports;
SELECT round(avg(lat), 2) FROM airports;
SELECT trunc(x, 1) FROM (SELECT sum(lat) AS x FROM airports) s;
SELECT round(sqrt(2::float8), 2);
SELECT round(stddev(distance), 2) AS a, round(ln(2.0), 4) AS b, round(avg(distance), 1) AS c FROM flights;
SELECT round(lat::numeric, 1) AS a, round(avg(lat)::numeric, 2) AS b FROM airports WHERE faa < '06' GROUP BY lat ORDER BY 1;

-- Numerics far apart
SELECT n1 / 3.2 > n2 AS a, n1 / 3 BETWEEN n2 AND n2 * 2 AS b FROM nums WHERE id < 5 ORDER BY id;
SELECT id FROM nums WHERE n1 / 3 IN (n2, n1) ORDER BY id;
SELECT count(*) FROM nums a JOIN nums b ON a.n1 / 2 = b.n2;
SELECT coalesce(n1 / 3, n2), greatest(n1 / 3, n2) FROM nums WHERE id < 5 ORDER BY id;
SELECT ARRAY[n1 / 3, n2] FROM nums WHERE id < 3 ORDER BY id;
SELECT 1 / 3.0 = 0.33333333333333333333 AS a, 1e20 > 1.00000000000000000001 AS b,
  12345678901234567890123456789.5 > 0.0000000000000000000001 AS c;
SELECT count(*) > 2 / 3.0 AS a, count(*) BETWEEN 1 / 3.0 AND 10000000000 / 3.0 AS b FROM nums;
SELECT n1 / 3 > 0.5::float8, n1 / 3 > d1, n1 / 3 = i1 FROM nums WHERE id < 5 ORDER BY id;
SELECT max(n1 / 3), sum(n1 / 3) > 5 AS a, avg(n1) > 2.2222222 AS b FROM nums WHERE id < 8;
SELECT n1 / 3 * 3 AS a, n1 / 3 + 1 AS b, (n1 / 3)::int AS c, (n1 / 3)::float8 AS d, -(n1 / 3) AS e, abs(n1 / 3) AS f
FROM nums WHERE id < 4 ORDER BY id;
SELECT count(*) FROM nums WHERE n1 IN (SELECT n2 / 3 FROM nums);

-- Rows that a condition excludes
SELECT 10 / x AS q FROM (VALUES (0), (5)) v(x) WHERE x <> 0;
SELECT id, 10 / i1 AS q FROM nums WHERE i1 <> 0 AND id < 5 ORDER BY id;
SELECT id, i1 FROM nums WHERE i1 <> 0 AND 10 / i1 > 1 ORDER BY id;
SELECT id, i1 FROM nums WHERE 10 / i1 > 1 AND i1 <> 0 ORDER BY id;
SELECT sum(10 / i1) FILTER (WHERE i1 <> 0) AS s FROM nums;
SELECT dept, sum(100 / (id - 5)) FILTER (WHERE id <> 5) AS s FROM employees GROUP BY dept ORDER BY dept;
SELECT id, CASE WHEN i1 <> 0 THEN 10 / i1 END AS q FROM nums ORDER BY id;
SELECT s.q FROM (SELECT id, i1, 10 / i1 AS q FROM nums) s WHERE s.i1 <> 0 ORDER BY q;
SELECT * FROM (SELECT id, 10 / (id - 5) AS q FROM employees) s WHERE id > 5 AND q > 1 ORDER BY id;
SELECT count(*) FROM nums a JOIN nums b ON a.id = b.id WHERE b.i1 <> 0 AND a.i1 / b.i1 > 0;
SELECT id, name::int FROM employees WHERE name ~ '^[0-9]+$';
SELECT id FROM employees WHERE name ~ '^[0-9]+$' AND name::int > 3;
SELECT id, 10 / (id - 5) AS q FROM employees WHERE id <> 5 ORDER BY q DESC, id LIMIT 3;
SELECT id, 10 / (id - 5) AS q FROM employees WHERE id <> 5 OR id IS NULL ORDER BY id LIMIT 3;
SELECT id, 10 / (id - 5) AS q FROM employees ORDER BY id;

-- Intervals are equal by their length
SELECT interval(3) '1.23456789 seconds' AS a, '1.23456789 s'::interval(2) AS b, interval '1.5555' second(1) AS c;
SELECT count(DISTINCT i) AS n FROM (VALUES (interval '1 day'), (interval '24 hours'), (interval '2 days')) v(i);
SELECT a.n FROM (VALUES (1, interval '1 day')) a(n, i) JOIN (VALUES (1, interval '24 hours')) b(n, i) ON a.i = b.i;
SELECT a.n FROM (VALUES (1, interval '1 day')) a(n, i) JOIN (VALUES (1, interval '24 hours')) b(n, i) USING (i);
SELECT row_number() OVER (PARTITION BY i) AS r FROM (VALUES (interval '1 day'), (interval '24 hours')) v(i) ORDER BY 1;
SELECT CASE interval '1 day' WHEN interval '24 hours' THEN 'same' ELSE 'no' END AS a,
  nullif(interval '1 day', interval '24 hours') AS b, coalesce(NULL, interval '1 day') AS c;

-- AND and OR stop where one side decides
SELECT id FROM employees WHERE id = 5 OR 10 / (id - 5) > 1 ORDER BY id;
SELECT id FROM employees WHERE (id <> 5 AND 10 / (id - 5) > 1) OR id = 7 ORDER BY id;
SELECT id, id <> 5 AND 10 / (id - 5) > 1 AS a FROM employees ORDER BY id LIMIT 7;
SELECT id, id = 5 OR 10 / (id - 5) > 1 AS a FROM employees ORDER BY id LIMIT 7;
SELECT id FROM employees WHERE NOT (id = 5 OR 10 / (id - 5) < 1) ORDER BY id;
SELECT id, bonus > 0 AND 10 / (id + 1) > 1 AS a, bonus > 0 OR 10 / (id + 1) > 1 AS b FROM employees ORDER BY id LIMIT 12;
SELECT id FROM employees_csv WHERE id <> 5 AND 10 / (id - 5) > 1 ORDER BY id LIMIT 6;
SELECT e.id FROM employees e WHERE e.id <> 5 AND 10 / (e.id - 5) IN (SELECT id FROM employees) ORDER BY 1;
SELECT a.id, b.id FROM employees a LEFT JOIN employees b ON a.id <> 5 AND 10 / (a.id - 5) = b.id WHERE a.id < 5 ORDER BY 1, 2;
SELECT t::int FROM (VALUES ('12'), ('x')) v(t) WHERE t ~ '^\d+$';
SELECT x FROM (SELECT t::int AS x, t FROM (VALUES ('12'), ('x')) v(t)) s WHERE t ~ '^\d+$' ORDER BY x;

-- A branch of CASE without a type, before others
SELECT (CASE WHEN true THEN '5' ELSE 3 END) + 1 AS a;
SELECT sum(CASE WHEN id > 3 THEN '1' ELSE 0 END) AS s FROM employees;
SELECT CASE WHEN id = 1 THEN NULL WHEN id = 2 THEN '2013-01-05' ELSE date '2013-01-01' + id END - 1 AS d FROM nums
WHERE id < 4 ORDER BY id;
SELECT CASE WHEN id = 2 THEN 'x' ELSE id END FROM nums;

-- Arrays of columns
SELECT ARRAY[a, b] FROM (VALUES (ARRAY[1], ARRAY[2, 3])) v(a, b);
SELECT ARRAY[a, b] AS c, (ARRAY[a, a])[2][1] AS d FROM (VALUES (ARRAY[1], ARRAY[2])) v(a, b);

-- What lag and lead give where there is no such row
SELECT id, lag(id, 1, id * 10) OVER (ORDER BY id) AS a, lead(id, 2, -id) OVER (ORDER BY id DESC) AS b FROM nums
WHERE id < 6 ORDER BY id;
SELECT id, lag(i1, 1, i2) OVER (ORDER BY id) AS a, lag(NULL::int, 1, i2) OVER (ORDER BY id) AS b FROM nums WHERE id < 12
ORDER BY id;
SELECT d * 2 AS a, d > 1.25 AS b FROM (VALUES ('1.25'), (2.5), (100)) v(d) ORDER BY 1;

-- A numeric beside a double is a double
SELECT id, coalesce(n1, d1) AS first, greatest(n1, d2) AS largest, least(d1, n2) AS least, nullif(n1, d1) AS other,
  CASE WHEN id < 10 THEN n1 ELSE d1 END AS chosen, ARRAY[n1, d1] AS both FROM nums ORDER BY id;
SELECT coalesce(0.1234567890123456789, 1::float8) AS digits, coalesce(NULL, 1.5, 1e-20::float8) AS second, greatest(1.5, 1e30::float8) AS large,
  CASE WHEN false THEN 1.5 ELSE 1e-20::float8 END AS small, ARRAY[1.5, 1e-20::float8] AS list;
SELECT n1 AS x FROM nums WHERE id < 5 UNION ALL SELECT d FROM floats WHERE id > 6 ORDER BY 1;
SELECT 1.5 AS x UNION SELECT 1e-20::float8 UNION SELECT 1.5::float8 UNION SELECT 2::real ORDER BY x;
SELECT x FROM (SELECT 1.5 AS x UNION ALL SELECT 1e-20::float8 UNION ALL SELECT 2::real) s UNION ALL SELECT 2.5 ORDER BY x;
SELECT x FROM (VALUES (1.5), (1e-20::float8)) v(x) ORDER BY x;
SELECT x FROM (VALUES (1e-20::float8, 1.5), ('2', '3'), (1.5, NULL), (-0.25, 4), (NULL, 1e-200::float8)) v(x, y) ORDER BY x;
SELECT x, x = 1.1::real AS same FROM (VALUES (2::real), (1.1)) v(x) ORDER BY x;
SELECT x FROM (VALUES (1.5 * 2), (sqrt(2)), (2::real), (1e-200::float8)) v(x) ORDER BY x;
SELECT x FROM (VALUES (1.5::numeric), (power(10.0::float8, -20)), (3)) v(x) ORDER BY x;
SELECT id, x FROM nums, LATERAL (VALUES (n1), (d1), (1e-20::float8)) v(x) WHERE id < 6 ORDER BY id, x;
SELECT 1e-20::float8 IN (VALUES (1.5), (1e-20::float8)) AS found, 0 IN (VALUES (1.5), (1e-20::float8)) AS zero;
SELECT array_append(ARRAY[1.5], 1e-20::float8) AS last, array_prepend(1e-20::float8, ARRAY[1.5]) AS first, array_cat(ARRAY[1.5], ARRAY[1e-20::float8]) AS both,
  array_replace(ARRAY[1.5], 1.5, 1e-20::float8) AS replaced, ARRAY[1.5] || 1e-20::float8 AS appended, ARRAY[1.5] || ARRAY[1e-20::float8] AS joined;
SELECT ARRAY[ARRAY[1.5], ARRAY[1e-20::float8]] AS nested, CASE WHEN false THEN ARRAY[1.5] ELSE ARRAY[1e-20::float8] END AS chosen,
  coalesce(NULL::numeric[], ARRAY[1e-20::float8]) AS first;
SELECT x[1] AS x FROM (SELECT ARRAY[1.5] AS x UNION ALL SELECT ARRAY[1e-20::float8]) s ORDER BY 1;
SELECT x[1] AS x FROM (VALUES (ARRAY[1.5]), (ARRAY[1e-20::float8])) v(x) ORDER BY 1;
SELECT x[1] AS x FROM (VALUES (ARRAY[1.5]), ('{1e-20}'::float8[]), ('{2.5}'::numeric[])) v(x) ORDER BY 1;
SELECT 0.1 = ANY (ARRAY[0.1::real]) AS real, 0.1 = ANY (ARRAY[0.1::float8]) AS double, 0.1::real = ANY (ARRAY[0.1, 0.2]) AS numerics,
  16777216::real = ANY (ARRAY[16777216 + 1]) AS integers, 0.1::real <> ALL (ARRAY[0.1]) AS none;
SELECT r IN (16777217) AS one, r IN (16777217, 3) AS two, r IN (16777216) AS exact, r NOT IN (i) AS none, r IN (i, 3) AS both, r BETWEEN 16777217 AND 16777218 AS more,
  r BETWEEN i AND i AS same, i BETWEEN r AND r AS reversed, r IN (SELECT 16777217) AS found, r = ANY (SELECT i) AS any, r BETWEEN 3 AND 5 AS small
FROM (VALUES (16777216::real, 16777217)) v(r, i);
SELECT id, coalesce(n, r) AS real FROM t_types WHERE id NOT IN (4, 5) ORDER BY id;
SELECT id, CASE r WHEN 0.1 THEN 'numeric' WHEN '0.1' THEN 'text' ELSE 'none' END AS of_real, CASE d WHEN 0.1 THEN 'tenth' WHEN 1.5 THEN 'more' END AS of_double
FROM floats ORDER BY id;
SELECT nullif(0.1::numeric, 0.1::real) AS real, nullif(1.5, 1.5::float8) AS double, nullif(0.5::real, 0.5) AS equal;

-- A literal beside a uuid is a uuid
SELECT u::uuid = 'A0EEBC999C0B4EF8BB6D6BB9BD380A11' AS eq, u::uuid <> '{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}' AS ne, u::uuid IN ('A0EEBC999C0B4EF8BB6D6BB9BD380A11') AS one,
  u::uuid NOT IN ('A0EEBC999C0B4EF8BB6D6BB9BD380A11', '11111111111111111111111111111111') AS none, 'A0EEBC999C0B4EF8BB6D6BB9BD380A12' > (u::uuid) AS gt,
  u::uuid BETWEEN 'A0EEBC999C0B4EF8BB6D6BB9BD380A11' AND 'A0EEBC999C0B4EF8BB6D6BB9BD380A12' AS between, u::uuid IS DISTINCT FROM 'A0EEBC999C0B4EF8BB6D6BB9BD380A11' AS other
FROM (VALUES ('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'), ('A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A12'), (NULL)) AS t(u) ORDER BY 1, 2, 3;
-- fails
SELECT uuid '11111111111111111111111111111111' = '1';

-- Dates and times beside numbers
-- fails
SELECT id FROM t_types WHERE da > 2023;
-- fails
SELECT id FROM t_types WHERE bi = da;
-- fails
SELECT id FROM t_types WHERE da > n;
-- fails
SELECT id FROM t_types WHERE d < da;
-- fails
SELECT id FROM t_types WHERE da <> si;
-- fails
SELECT id FROM t_types WHERE da IN ('2024-02-29', 19782);
-- fails
SELECT id FROM t_types WHERE da NOT IN (19782);
-- fails
SELECT id FROM t_types WHERE da BETWEEN '2024-02-29' AND 19782;
-- fails
SELECT id FROM t_types WHERE da = ANY (ARRAY[19782, 19783]);
-- fails
SELECT id FROM t_types WHERE da IN (SELECT i FROM t_types);
-- fails
SELECT id FROM t_types WHERE da = ANY (SELECT bi FROM t_types);
-- fails
SELECT id FROM t_types WHERE da > ALL (SELECT i FROM t_types);
-- fails
SELECT id FROM t_types WHERE da IS DISTINCT FROM 19782;
-- fails
SELECT id FROM t_types WHERE (da, i) = (19782, 3);
-- fails
SELECT id FROM t_types WHERE (da, i) IN ((19782, 3));
-- fails
SELECT a.id FROM t_types a JOIN t_types b ON a.da = b.bi;
-- fails
SELECT a.id FROM t_types a LEFT JOIN t_types b ON a.da < b.i;
-- fails
SELECT 1 FROM (SELECT da AS x FROM t_types) a JOIN (SELECT bi AS x FROM t_types) b USING (x);
-- fails
SELECT 1 FROM (SELECT da AS x FROM t_types) a NATURAL JOIN (SELECT i AS x FROM t_types) b;
-- fails
SELECT da FROM t_types UNION ALL SELECT 5;
-- fails
SELECT i FROM t_types UNION SELECT da FROM t_types;
-- fails
SELECT da FROM t_types INTERSECT SELECT i FROM t_types;
-- fails
SELECT da FROM t_types EXCEPT SELECT 5;
-- fails
SELECT x FROM (VALUES (date '2024-02-29'), (5)) v(x);
-- fails
SELECT CASE WHEN i = 3 THEN da ELSE 5 END FROM t_types;
-- fails
SELECT CASE da WHEN 19782 THEN 1 END FROM t_types;
-- fails
SELECT coalesce(da, i) FROM t_types;
-- fails
SELECT greatest(i, da) FROM t_types;
-- fails
SELECT nullif(da, 19782) FROM t_types;
-- fails
SELECT ARRAY[da, 5] FROM t_types;
-- fails
SELECT id FROM t_types WHERE ARRAY[da] = ARRAY[19782];
-- fails
SELECT coalesce(ARRAY[da], ARRAY[5]) FROM t_types;
-- fails
SELECT lag(da, 1, 5) OVER (ORDER BY id) FROM t_types;
-- fails
WITH RECURSIVE r AS (SELECT date '2024-02-29' AS x, 1 AS n UNION ALL SELECT 5, n + 1 FROM r WHERE n < 3) SELECT x FROM r;
-- fails
SELECT id FROM t_types WHERE ts > 5;
-- fails
SELECT id FROM t_types WHERE tz = bi;
-- fails
SELECT id FROM t_types WHERE ti IN (5);
-- fails
SELECT id FROM t_types WHERE iv::interval BETWEEN 1 AND 2;
-- fails
SELECT ts FROM t_types UNION ALL SELECT i FROM t_types;
-- fails
SELECT coalesce(ti, d) FROM t_types;
-- fails
SELECT lead(ts, 1, 5) OVER (ORDER BY id) FROM t_types;
SELECT id, da + 1 AS next, 1 + da AS same, da - 1 AS last, da - date '2000-01-01' AS days, da + i - i AS back FROM t_types WHERE id IN (1, 2, 7, 28, 30) ORDER BY id;
SELECT id, da > NULL AS compared, coalesce(da, NULL) AS first, da = ts AS same, da IN (NULL, '2024-02-29') AS found FROM t_types WHERE id IN (6, 7, 28) ORDER BY id;

-- Constants of another type than their column, also between its values and beyond them.
SELECT id FROM t_types WHERE da < date '1994-01-01' + interval '1 year' ORDER BY id;
SELECT id FROM t_types WHERE da > timestamp '2012-12-31 12:00' AND da <= timestamp '2023-03-26' ORDER BY id;
SELECT id FROM t_types WHERE da NOT BETWEEN timestamp '1999-12-31 00:00:01' AND timestamp '2023-05-06 23:59:59' ORDER BY id;
SELECT id, da = timestamp '2000-01-01' AS same, da <> timestamp '2000-01-01 00:00:01' AS other,
  da IS DISTINCT FROM timestamp '2000-01-01 12:00' AS differs, NOT da = timestamp '2000-01-01 12:00' AS never
FROM t_types ORDER BY id;
SELECT id FROM t_types WHERE da IN (timestamp '2000-01-01', timestamp '2023-01-16 00:00:01') ORDER BY id;
SELECT id FROM t_types WHERE ts < date '2500-01-01' AND ts >= date '1900-03-01' ORDER BY id;
SELECT id FROM t_types WHERE i < 24.5 AND i >= -3.5 ORDER BY id;
SELECT id, i > 3000000000 AS beyond, si <= 2.5 AS less, si = 2.5 AS same, n >= 1.0005 AS more, n <> 1.0005 AS other
FROM t_types ORDER BY id;
SELECT id, i < 2.5::float8 AS less, i = 3.0::float8 AS same, bi > 5.5::float8 AS more,
  i > 'Infinity'::float8 AS beyond, i < 'NaN'::float8 AS before
FROM t_types ORDER BY id;
