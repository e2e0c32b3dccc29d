-- Arrays: literals, subscripts, functions and unnest.

-- literals
SELECT ARRAY[1, 2, 3] AS a, ARRAY['x', 'y'] AS t, ARRAY[1.5, 2] AS n, ARRAY[true, NULL] AS b,
  ARRAY[NULL]::int[] AS only_null;
SELECT '{1,2,3}'::int[] AS a, '{}'::text[] AS empty, '{"a b",c,NULL,"NULL"}'::text[] AS quoted, ARRAY[]::int[] AS none;
SELECT ARRAY[[1, 2], [3, 4]] AS nested, '{{a,b},{c,d}}'::text[] AS nested_text;
SELECT ARRAY[1, 2]::text[] AS to_text, ARRAY['1', '2']::int[] AS to_int, ARRAY[1, 2.5, 3] AS mixed,
  ARRAY[date '2013-01-31', '2013-02-28'] AS dates;
SELECT ARRAY[1, 2, NULL]::text AS as_text, ARRAY['a,b', 'c"d', '', 'null']::text AS quoted,
  ARRAY[1.50, 2.00]::text AS numbers;
SELECT ARRAY[1.50, 2]::text AS numbers;
SELECT int4s, '{10,20}'::bigint[] AS big
FROM (SELECT ARRAY(SELECT g * g FROM generate_series(1, 5) AS g ORDER BY g)) AS v (int4s);
SELECT ARRAY(SELECT carrier FROM airlines ORDER BY carrier LIMIT 4) AS carriers,
  ARRAY(SELECT carrier FROM airlines WHERE false) AS none;
-- fails
SELECT ARRAY[1, 'x'];
-- fails
SELECT ARRAY[[1, 2], [3]];
-- fails
SELECT ARRAY[];

-- subscripts and slices
SELECT (ARRAY[10, 20, 30])[1] AS first, (ARRAY[10, 20, 30])[0] AS zero, (ARRAY[10, 20, 30])[4] AS outside,
  (ARRAY[10, 20, 30])[-1] AS negative,
       (ARRAY[10, 20, 30])[NULL] AS nothing;
SELECT (ARRAY[10, 20, 30, 40])[2:3] AS middle, (ARRAY[10, 20, 30, 40])[:2] AS start,
  (ARRAY[10, 20, 30, 40])[3:] AS rest,
       (ARRAY[10, 20, 30, 40])[:] AS whole, (ARRAY[10, 20, 30, 40])[3:2] AS backwards,
         (ARRAY[10, 20, 30, 40])[0:9] AS wide;
SELECT (ARRAY[[1, 2], [3, 4]])[2][1] AS cell, (ARRAY[[1, 2], [3, 4]])[1] AS one_subscript,
  (ARRAY[[1, 2], [3, 4]])[1:2][2:2] AS column_two;
SELECT a[1], a[2] AS second, a[array_length(a, 1)] AS last
FROM (VALUES (ARRAY[5, 6, 7]), (ARRAY[8]), ('{}'::int[])) AS v (a) ORDER BY a;
SELECT (string_to_array(name, ' '))[1:2] AS words FROM airlines WHERE carrier IN ('AA', 'WN', 'YV') ORDER BY carrier;
SELECT ('{5,6}'::int[])[1] + ('{5,6}'::int[])[2] AS total;

-- ANY, ALL, IN
SELECT 2 = ANY (ARRAY[1, 2, 3]) AS a, 9 = ANY (ARRAY[1, NULL]) AS b, 1 = ANY (ARRAY[1, NULL]) AS c,
  1 = ANY ('{}'::int[]) AS d, 1 = ANY (NULL::int[]) AS e;
SELECT 5 > ALL (ARRAY[1, 2, 3]) AS a, 2 <> ALL (ARRAY[1, 3]) AS b, 2 <> ALL (ARRAY[1, NULL]) AS c,
  1 = ALL ('{}'::int[]) AS d, 2 >= SOME (ARRAY[2, 9]) AS e;
SELECT carrier, name FROM airlines WHERE carrier = ANY (ARRAY['AA', 'DL', 'XX']) ORDER BY carrier;
SELECT count(*) FROM flights WHERE dest <> ALL (ARRAY['LAX', 'SFO', 'ATL']) AND month = 1;
SELECT carrier FROM airlines WHERE carrier = ANY (string_to_array('UA,US,VX', ',')) ORDER BY carrier DESC;
SELECT origin, count(*) FROM flights WHERE carrier = ANY ('{AA,B6}') AND day = 1 GROUP BY origin ORDER BY origin;
SELECT 3 < ANY (ARRAY[1, 2]), 1 < ANY (ARRAY[1, 2]), NULL = ANY (ARRAY[1]), 'b' = ANY (ARRAY['a', 'b']::text[]);
SELECT carrier FROM airlines WHERE carrier = ANY (ARRAY(SELECT DISTINCT carrier FROM flights WHERE dest = 'HNL'))
ORDER BY carrier;
SELECT carrier FROM airlines WHERE carrier = ANY (SELECT carrier FROM flights WHERE dest = 'EGE') ORDER BY carrier;

-- unnest
SELECT unnest(ARRAY[3, 1, 2]) AS n;
SELECT u FROM unnest(ARRAY['b', NULL, 'a']) AS u ORDER BY u NULLS FIRST;
SELECT n, u FROM unnest(ARRAY['x', 'y', 'z']) WITH ORDINALITY AS t (u, n) ORDER BY n DESC;
SELECT * FROM unnest(ARRAY[1, 2, 3], ARRAY['a', 'b']) AS t (number, letter) ORDER BY number;
SELECT * FROM unnest(ARRAY[1, 2]) WITH ORDINALITY;
SELECT unnest(ARRAY[[1, 2], [3, 4]]) AS flat;
SELECT unnest('{}'::int[]) AS none;
SELECT id, tag FROM (VALUES (1, ARRAY['x', 'y']), (2, '{}'), (3, NULL), (4, ARRAY['z'])) AS v (id, tags),
  unnest(tags) AS tag ORDER BY id, tag;
SELECT id, tag FROM (VALUES (1, ARRAY['x', 'y']), (2, '{}'), (3, NULL)) AS v (id, tags) LEFT JOIN
LATERAL unnest(tags) AS tag ON true ORDER BY id, tag;
SELECT id, unnest(tags) AS tag FROM (VALUES (1, ARRAY['x', 'y']), (2, ARRAY['z'])) AS v (id, tags) ORDER BY id, tag;
SELECT unnest(ARRAY[1, 2, 3]) AS a, unnest(ARRAY['x', 'y']) AS b;
SELECT sum(u) AS total, count(*) AS n, count(u) AS not_null FROM unnest(ARRAY[1, NULL, 5]) AS u;
SELECT w.word, w.n FROM airlines CROSS JOIN LATERAL unnest(string_to_array(name, ' ')) WITH ORDINALITY AS w (word, n)
WHERE carrier = 'DL' ORDER BY w.n;
SELECT u, count(*) FROM unnest(ARRAY[1, 2, 2, 3, 3, 3]) AS u GROUP BY u HAVING count(*) > 1 ORDER BY u;
SELECT a.u AS left_side, b.u AS right_side FROM unnest(ARRAY[1, 2, 3]) AS a (u)
LEFT JOIN unnest(ARRAY[2, 3, 4]) AS b (u) ON a.u = b.u ORDER BY a.u;

-- lengths and bounds
SELECT array_length(ARRAY[1, 2, 3], 1) AS n, array_length('{}'::int[], 1) AS empty,
  array_length(ARRAY[[1, 2, 3], [4, 5, 6]], 2) AS inner_length,
       array_length(ARRAY[1], 2) AS none;
SELECT cardinality(ARRAY[[1, 2], [3, 4]]) AS n, cardinality('{}'::int[]) AS zero, cardinality(NULL::int[]) AS nothing;
SELECT array_ndims(ARRAY[[1], [2]]), array_dims(ARRAY[[1, 2, 3], [4, 5, 6]]), array_lower(ARRAY[1, 2], 1),
  array_upper(ARRAY[1, 2], 1);
SELECT array_ndims('{}'::int[]) AS n, array_dims('{}'::int[]) AS d, array_upper('{}'::int[], 1) AS u;

-- building and changing
SELECT array_append(ARRAY[1, 2], 3) AS a, array_prepend(0, ARRAY[1, 2]) AS b, array_cat(ARRAY[1], ARRAY[2, 3]) AS c,
  array_append(NULL::int[], 1) AS d,
       array_append(ARRAY[1], NULL) AS e;
SELECT ARRAY[1, 2] || 3 AS a, 0 || ARRAY[1, 2] AS b, ARRAY[1] || ARRAY[2, 3] AS c, ARRAY[1, 2] || NULL AS d,
  ARRAY[1] || '{2,3}' AS e,
       ARRAY[[1, 2]] || ARRAY[3, 4] AS nested;
SELECT array_remove(ARRAY[1, 2, 1, NULL], 1) AS a, array_remove(ARRAY[1, NULL], NULL) AS b,
  array_replace(ARRAY[1, 2, 1], 1, 9) AS c,
       array_replace(ARRAY[1, NULL], NULL, 0) AS d;
SELECT array_fill(7, ARRAY[3]) AS a, array_fill('x'::text, ARRAY[2, 2]) AS b, trim_array(ARRAY[1, 2, 3, 4], 2) AS c,
  array_fill(0, ARRAY[0]) AS none;
SELECT array_position(ARRAY['a', 'b', 'c', 'b'], 'b') AS first,
  array_position(ARRAY['a', 'b', 'c', 'b'], 'b', 3) AS later,
       array_position(ARRAY['a'], 'x') AS missing, array_position(ARRAY[1, NULL], NULL) AS of_null;
SELECT array_positions(ARRAY[1, 2, 1, NULL], 1) AS a, array_positions(ARRAY[1], 5) AS none,
  array_positions(ARRAY[NULL, 1, NULL]::int[], NULL) AS nulls;
SELECT array_to_string(array_agg(n ORDER BY n DESC), '>') AS chain FROM generate_series(1, 5) AS n;
SELECT array_agg(DISTINCT n % 3) AS remainders, array_agg(n ORDER BY -n) FILTER (WHERE n > 3) AS big
FROM generate_series(1, 6) AS n;
SELECT array_agg(x ORDER BY x NULLS FIRST) AS nulls_first, array_agg(x ORDER BY x) AS nulls_last
FROM (VALUES (2), (NULL), (1)) AS v (x);
SELECT array_agg(x) AS nothing FROM (SELECT 1 WHERE false) AS v (x);
SELECT array_agg(ARRAY[n, n * 2] ORDER BY n) AS nested FROM generate_series(1, 3) AS n;
SELECT origin, (array_agg(DISTINCT dest ORDER BY dest))[1:3] AS first_destinations FROM flights GROUP BY origin
ORDER BY origin;
SELECT origin, array_agg(DISTINCT month ORDER BY month) AS months FROM flights WHERE dest = 'EGE' OR dest = 'SAN'
GROUP BY origin ORDER BY origin;
SELECT (array_agg(carrier ORDER BY n DESC, carrier))[1] AS busiest
FROM (SELECT carrier, count(*) AS n FROM flights GROUP BY carrier) AS c;

-- containment, overlap, comparison
SELECT ARRAY[1, 2, 3] @> ARRAY[3, 1] AS a, ARRAY[1] <@ ARRAY[1, 2] AS b, ARRAY[1, 2] && ARRAY[2, 3] AS c,
  ARRAY[1] && ARRAY[9] AS d,
       ARRAY[1, 2] @> '{}' AS e, ARRAY[1, NULL] @> ARRAY[NULL]::int[] AS f;
SELECT ARRAY[1, 2] = ARRAY[1, 2] AS a, ARRAY[1, 2] <> ARRAY[2, 1] AS b, ARRAY[1, 2] < ARRAY[1, 3] AS c,
  ARRAY[1] < ARRAY[1, 0] AS d,
       ARRAY[1, NULL] = ARRAY[1, NULL] AS e, ARRAY[2] > ARRAY[1, 9, 9] AS f;
SELECT id FROM (VALUES (1, ARRAY['x', 'y']), (2, ARRAY['y']), (3, '{}'), (4, NULL)) AS v (id, tags)
WHERE tags @> ARRAY['y'] ORDER BY id;
SELECT id FROM (VALUES (1, ARRAY['x', 'y']), (2, ARRAY['y']), (3, '{}'), (4, NULL)) AS v (id, tags)
WHERE NOT tags && ARRAY['x'] ORDER BY id;
SELECT a FROM (VALUES (ARRAY[2]), (ARRAY[1, 2]), (ARRAY[1]), ('{}'::int[]), (NULL), (ARRAY[1, NULL])) AS v (a)
ORDER BY a NULLS FIRST;
SELECT DISTINCT a FROM (VALUES (ARRAY[1, 2]), (ARRAY[1, 2]), (ARRAY[2, 1])) AS v (a) ORDER BY a;
SELECT a, count(*) AS n FROM (VALUES (ARRAY['x']), (ARRAY['x']), (ARRAY['y'])) AS v (a) GROUP BY a ORDER BY a;
SELECT ARRAY[1, 2] IS DISTINCT FROM ARRAY[1, 2] AS a, NULL::int[] IS NULL AS b, '{}'::int[] IS NULL AS c,
  ARRAY[1] IN (ARRAY[1], ARRAY[2]) AS d;

-- subscripts by series
SELECT i, (ARRAY['a', 'b', 'c'])[i] AS element FROM generate_subscripts(ARRAY['a', 'b', 'c'], 1) AS i ORDER BY i;
SELECT generate_subscripts(ARRAY[[1, 2, 3], [4, 5, 6]], 2) AS i;
SELECT generate_subscripts(ARRAY['x', 'y'], 1, true) AS backwards;
SELECT i, (ARRAY[5, 6, 7])[i:] AS rest FROM generate_series(1, 3) AS i ORDER BY i;
SELECT id, (SELECT max(u) FROM unnest(scores) AS u) AS best,
  (SELECT avg(u) FROM unnest(scores) AS u)::numeric(5, 2) AS average
FROM (VALUES (1, ARRAY[3, 9, 4]), (2, ARRAY[7]), (3, '{}'::int[])) AS v (id, scores) ORDER BY id;
SELECT id, ARRAY(SELECT u * 10 FROM unnest(scores) AS u ORDER BY u DESC) AS scaled
FROM (VALUES (1, ARRAY[3, 9, 4]), (2, '{}')) AS v (id, scores) ORDER BY id;
SELECT width_bucket(x, ARRAY[0, 10, 20]) AS bucket, x FROM (VALUES (-1), (0), (9), (10), (25)) AS v (x) ORDER BY x;
SELECT percentile_cont(ARRAY[0.25, 0.5, 0.75]) WITHIN GROUP (ORDER BY distance) AS quartiles FROM flights;
SELECT carrier FROM airlines ORDER BY array_position(ARRAY['UA', 'DL', 'AA'], carrier), carrier LIMIT 6;
SELECT coalesce(array_length(string_to_array('', ','), 1), 0) AS n, array_length(string_to_array('a', ','), 1) AS one;
SELECT array_agg(x ORDER BY n) AS set_without_order_change FROM (
  SELECT x, min(n) AS n FROM unnest(ARRAY['b', 'a', 'b', 'c', 'a']) WITH ORDINALITY AS t (x, n) GROUP BY x) AS d;
WITH RECURSIVE p (n, path) AS (
  SELECT 1, ARRAY[1]
  UNION ALL
  SELECT n + 1, path || (n + 1) FROM p WHERE n < 4)
SELECT n, path, cardinality(path) AS depth FROM p ORDER BY n;

-- over tables
SELECT id, ia, ta, da FROM arrays ORDER BY id;
SELECT id, ia[1] AS first, ia[array_length(ia, 1)] AS last, ia[2:3] AS part, ta[1] AS t FROM arrays ORDER BY id;
SELECT id, array_length(ia, 1) AS n, cardinality(ta) AS c, array_ndims(ia) AS dims, array_dims(ta) AS d,
  array_upper(da, 1) AS u FROM arrays ORDER BY id;
SELECT id, 1 = ANY (ia) AS any_one, 1 <> ALL (ia) AS no_one, 'b' = ANY (ta) AS any_b, 2 < ALL (ia) AS all_over_two
FROM arrays ORDER BY id;
SELECT id, ia @> ARRAY[1] AS has_one, ia <@ ARRAY[1, 2, 3, 5] AS within, ia && ARRAY[5, 50] AS overlaps,
  ta @> ARRAY['b'] AS has_b FROM arrays ORDER BY id;
SELECT id, ia || 99 AS appended, 0 || ia AS prepended, ia || ia AS doubled, array_append(ta, 'end') AS t FROM arrays
ORDER BY id;
SELECT id, array_remove(ia, 1) AS removed, array_replace(ia, 3, 33) AS replaced, array_remove(ta, NULL) AS no_nulls
FROM arrays ORDER BY id;
SELECT id, array_position(ia, 1) AS at, array_positions(ia, 1) AS all_positions, array_position(ta, 'b') AS b
FROM arrays ORDER BY id;
SELECT id, array_to_string(ia, ',') AS joined, array_to_string(ta, '|', '?') AS t, ia::text AS as_text,
  ta::text AS t_text, da::text AS d_text FROM arrays ORDER BY id;
SELECT id, u FROM arrays, unnest(ia) AS u ORDER BY id, u NULLS LAST;
SELECT id, u, n FROM arrays LEFT JOIN LATERAL unnest(ta) WITH ORDINALITY AS t (u, n) ON true ORDER BY id, n NULLS LAST;
SELECT id, a, b FROM arrays, unnest(ia, ta) AS t (a, b) WHERE id IN (1, 5, 8)
ORDER BY id, a NULLS LAST, b COLLATE "C" NULLS LAST;
SELECT id, (SELECT sum(u) FROM unnest(ia) AS u) AS total, (SELECT max(u) FROM unnest(da) AS u) AS biggest FROM arrays
ORDER BY id;
SELECT id, ARRAY(SELECT DISTINCT u FROM unnest(ia) AS u WHERE u IS NOT NULL ORDER BY u) AS sorted FROM arrays
ORDER BY id;
SELECT a.id, b.id AS other FROM arrays AS a JOIN arrays AS b ON a.ia && b.ia AND a.id < b.id ORDER BY 1, 2;
SELECT id FROM arrays ORDER BY ia NULLS FIRST, id;
SELECT ia IS NULL AS missing, ia = '{}' AS empty, count(*) AS n FROM arrays GROUP BY 1, 2 ORDER BY 1, 2;
SELECT id, i, ia[i] AS element FROM arrays, generate_subscripts(ia, 1) AS i WHERE id IN (1, 5, 7) ORDER BY id, i;
SELECT id, ia::text[] AS texts, ia::bigint[] AS bigs, da::numeric[] AS numbers FROM arrays WHERE id IN (1, 2, 3, 5, 7)
ORDER BY id;
SELECT product_id, tags[1] AS first_tag, sizes[1:2] AS sizes, tags || sizes::text[] AS both_lists FROM products
WHERE product_id < 12 ORDER BY product_id;
SELECT product_id FROM products WHERE tags @> ARRAY['eco'] AND NOT 'bulk' = ANY (tags) ORDER BY product_id;
SELECT product_id FROM products WHERE sizes && ARRAY[6] OR tags = '{}' ORDER BY product_id;
SELECT tags, count(*) AS n FROM products GROUP BY tags ORDER BY n DESC, tags NULLS LAST;
SELECT cardinality(tags) AS tags, count(*) AS n, array_agg(product_id ORDER BY product_id) AS ids FROM products
GROUP BY 1 ORDER BY 1 NULLS LAST;
SELECT s AS size, count(*) AS n FROM products CROSS JOIN LATERAL unnest(sizes) AS s GROUP BY s ORDER BY s;
SELECT product_id, (SELECT string_agg(t, '/' ORDER BY t) FROM unnest(tags) AS t) AS tags FROM products
WHERE product_id BETWEEN 1 AND 10 ORDER BY product_id;
SELECT country, array_agg(DISTINCT segment ORDER BY segment) AS segments,
  (array_agg(name ORDER BY customer_id))[1] AS first FROM customers GROUP BY country ORDER BY country;
SELECT order_id, string_to_array(note, ' ') AS words, (string_to_array(note, ' '))[3]::int AS number FROM orders
WHERE note IS NOT NULL ORDER BY order_id LIMIT 4;
SELECT id, name FROM employees WHERE id = ANY (ARRAY(SELECT manager_id FROM employees WHERE dept = 'Sales'))
ORDER BY id;
SELECT array_agg(ARRAY[a, b] ORDER BY b DESC) AS pairs FROM (VALUES (1, 2), (3, 4)) AS v (a, b);

-- Order, joins and groups of arrays.
SELECT id FROM arrays ORDER BY ta DESC, id;
SELECT id, row_number() OVER (ORDER BY ia, id) AS place FROM arrays ORDER BY id;
SELECT a.id, b.id AS other FROM arrays AS a JOIN arrays AS b ON a.ia IS NOT DISTINCT FROM b.ia ORDER BY a.id, b.id;
SELECT a.id, b.id AS other FROM arrays AS a JOIN arrays AS b USING (ia) ORDER BY a.id, b.id;
SELECT ia FROM arrays INTERSECT SELECT ia FROM arrays ORDER BY ia;
SELECT x, n FROM unnest(ARRAY[[1, 2], [3, 4]]) WITH ORDINALITY AS t (x, n) ORDER BY n;
SELECT id, ARRAY(SELECT u FROM unnest(ia) AS u ORDER BY u DESC NULLS LAST LIMIT 2) AS largest FROM arrays ORDER BY id;
SELECT id, ARRAY(SELECT u FROM unnest(ia) AS u GROUP BY u ORDER BY count(*) DESC, u) AS common FROM arrays ORDER BY id;
SELECT ARRAY(SELECT unnest(ia) AS x ORDER BY x DESC) FROM arrays ORDER BY id;

-- Casts convert the elements, and keep the dimensions
SELECT ARRAY[[1, 2], [3, 4]]::text[] AS texts, ARRAY[[1.5, 2], [3, 4.25]]::text[][] AS numerics, '{{1,2},{3,4}}'::int[]::text[] AS literal,
  ARRAY[[true, NULL]]::text[] AS booleans, ARRAY[[date '2020-01-01']]::text[] AS dates, ARRAY[interval '1 day', NULL]::text[] AS intervals,
  ARRAY[1.5::float8, 'NaN']::text[] AS doubles, ARRAY[[1, 2]]::varchar[] AS varchars, (ARRAY[[1, 2], [3, 4]]::text[])[2][1] AS element;
SELECT ARRAY[1.6, 2.5, -2.5]::int[] AS numerics, ARRAY[1.6::float8, 2.5, -2.5]::int[] AS doubles, ARRAY[[1.6, 2.5]]::int[] AS nested,
  ARRAY[['1', '2'], ['3', '4']]::int[] AS texts, ARRAY[['t', 'f']]::bool[] AS booleans, ARRAY[timestamp '2020-01-01 01:00']::date[] AS days,
  ARRAY['2020-01-01']::date[] AS dates, ARRAY[[1, 2]]::float8[]::text[] AS twice, ARRAY[1, 2]::text[][] AS more;
SELECT ARRAY[1.6::float8, -2.5]::int[] AS one, ARRAY[ARRAY[1.5::float8, 1.6::float8], ARRAY[2.5, 4.5]]::int[] AS two, ARRAY[NULL, 2.5]::int[] AS three, ARRAY[true, 1]::bool[] AS four;
SELECT id, ia::text[] AS texts, da::int[] AS whole, da::text[] AS doubles, ta::varchar[] AS varchars FROM arrays
WHERE NOT coalesce('NaN' = ANY (da) OR 'Infinity' = ANY (da) OR '-Infinity' = ANY (da), false) ORDER BY id;
-- fails
SELECT ARRAY['1.5', 'x']::float8[];
-- fails
SELECT ARRAY[99999]::smallint[];

-- Arrays of columns of outer queries.
SELECT id, f.name, f.value FROM nums, unnest(ARRAY['i1', 'i2'], ARRAY[i1, i2]) AS f (name, value) WHERE id < 5 ORDER BY id, name;
SELECT id, u FROM nums CROSS JOIN LATERAL unnest(ARRAY[s1, s2 * 10, 7]) AS u WHERE id IN (1, 9, 10) ORDER BY id, u;
SELECT id, (SELECT max(x) FROM unnest(ARRAY[i1, i2]) AS x) AS m, (SELECT string_agg(y, '-' ORDER BY y) FROM unnest(ARRAY[n.id::text, 'b', 'a']) AS y) AS t
FROM nums n WHERE id < 6 ORDER BY id;
SELECT id FROM nums n WHERE EXISTS (SELECT 1 FROM flights f WHERE f.month = ANY (ARRAY[n.i1, n.i2]) AND f.carrier = 'HA') ORDER BY id;
SELECT id, a, o FROM nums, unnest(ARRAY[i1, NULL, i2]) WITH ORDINALITY AS u (a, o) WHERE id < 3 ORDER BY id, o;
SELECT id, x FROM nums, unnest(ARRAY[[i1, i2], [id, 0]]) AS x WHERE id IN (1, 2) ORDER BY id, x;
SELECT id, (SELECT ARRAY[d1, o.d2, 0.5]) AS a, (SELECT ARRAY['2013-01-01', da] FROM t_types t WHERE t.id = o.id) AS d FROM nums o WHERE id < 4
ORDER BY id;
SELECT o.id, r.a, r.b FROM nums o, ROWS FROM (unnest(ARRAY[o.i1, o.i2]), generate_series(1, 3)) AS r (a, b) WHERE id = 1 ORDER BY b;
-- fails
SELECT id FROM nums, unnest(ARRAY[i1, 'x']) AS u;
SELECT id FROM nums, unnest(ARRAY[[i1], [i1, i2]]) AS u;

-- Rows in arrays are compared as values: NULLs in them are equal
SELECT ROW(1, 2) = ANY (ARRAY[ROW(1, 2), ROW(3, 4)]) AS found, ROW(1, 2) <> ALL (ARRAY[ROW(1, 2), ROW(3, 4)]) AS missing,
  (1, 2) = ANY (ARRAY[ROW(3, 4)]) AS other, (3, 4) = SOME (ARRAY[(1, 2), (3, 4)]) AS written;
SELECT ROW(1, NULL::int) = ANY (ARRAY[ROW(1, NULL::int)]) AS nulls, ROW(1, 2) = ANY (ARRAY[NULL, ROW(3, 4)]) AS no_row,
  ROW(1, 2) < ANY (ARRAY[ROW(1, 2), ROW(1, NULL::int)]) AS last, ROW(2, 1) >= ALL (ARRAY[ROW(1, 2), ROW(2, 0)]) AS all;
SELECT id FROM nums WHERE (id, n1) = ANY (ARRAY[(id, 7.0), (id, -7.0)]) ORDER BY id;
SELECT ROW(a, b) = ANY (x) AS found FROM (VALUES (1, 'a'), (5, 'b')) v(a, b),
  (SELECT array_agg(ROW(c, d)) AS x FROM (VALUES (1, 'a'), (3, 'b')) w(c, d)) s ORDER BY a;
