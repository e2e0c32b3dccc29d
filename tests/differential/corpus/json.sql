-- json and jsonb: operators, constructors, aggregates and paths.

-- casts
SELECT '{"a": 1, "b": [true, null]}'::json AS j, '{"b": [true, null], "a": 1}'::jsonb AS jb;
SELECT '{"a":1,  "a":2}'::json AS kept, '{"a":1,  "a":2}'::jsonb AS last_wins,
  '{"bb": 1, "c": 2, "a": 3}'::jsonb AS by_length;
SELECT '1.50'::jsonb AS scale, '1e3'::jsonb AS exponent, '"text"'::jsonb AS text, 'null'::jsonb AS json_null,
  NULL::jsonb AS sql_null;
SELECT json '[1, 2]' AS typed, jsonb '{}' AS empty, cast('[]' AS jsonb) AS casted,
  '  {"a" :1 } '::json::text AS as_written;
SELECT '"\u00e9\n\"q\""'::jsonb AS escapes, ('"\u00e9\n\"q\""'::jsonb) #>> '{}' AS decoded;
SELECT '12'::jsonb::int AS i, '1.5'::jsonb::numeric AS n, 'true'::jsonb::boolean AS b, '1.5'::jsonb::float8 AS f,
  '1.5'::jsonb::int AS rounded;
-- fails
SELECT '{a: 1}'::jsonb;
-- fails
SELECT '"12"'::jsonb::int;
SELECT '{"a": 1}'::jsonb::text AS spaced, '[1,2,{"x":"y"}]'::jsonb::text AS nested, '{"a":1}'::json::jsonb AS converted;

-- -> and ->>
SELECT '{"a": {"b": 2}}'::json -> 'a' AS object, '{"a": {"b": 2}}'::json -> 'a' ->> 'b' AS text,
  '{"a": 1}'::jsonb -> 'x' AS missing;
SELECT '[10, 20, 30]'::jsonb -> 0 AS first, '[10, 20, 30]'::jsonb -> -1 AS last, '[10, 20, 30]'::jsonb ->> 5 AS outside,
       '[10, 20, 30]'::json ->> 1 AS second;
SELECT '{"a": null}'::jsonb -> 'a' AS json_null, '{"a": null}'::jsonb ->> 'a' AS sql_null,
  ('{"a": null}'::jsonb -> 'a') IS NULL AS is_null,
       ('{"a": null}'::jsonb ->> 'a') IS NULL AS text_is_null;
SELECT '{"1": "one"}'::jsonb -> '1' AS key, '["zero", "one"]'::jsonb -> '1' AS not_an_index,
  '"text"'::jsonb -> 'a' AS of_scalar;
SELECT '{"price": 12.50}'::jsonb ->> 'price', ('{"price": 12.50}'::jsonb ->> 'price')::numeric * 2,
  '{"ok": true}'::jsonb ->> 'ok';
SELECT (d ->> 'n')::int AS n, d -> 'tags' ->> 0 AS tag
FROM (VALUES ('{"n": 2, "tags": ["b"]}'::jsonb), ('{"n": 1, "tags": []}'), ('{"tags": ["c"]}')) AS v (d)
ORDER BY n NULLS LAST;
SELECT d ->> 'kind' AS kind, count(*) AS n, sum((d ->> 'amount')::numeric) AS amount
FROM (VALUES ('{"kind": "a", "amount": 1.5}'::jsonb), ('{"kind": "b", "amount": 2}'),
  ('{"kind": "a", "amount": 3}')) AS v (d)
GROUP BY d ->> 'kind' ORDER BY kind;
SELECT ('{"a": [1, {"b": "deep"}]}'::jsonb)['a'][1]['b'] AS subscripts, ('[1, 2]'::jsonb)[0] AS first,
  ('{"a": 1}'::jsonb)['x'] AS none;

-- #> and #>>
SELECT '{"a": {"b": [1, 2, {"c": "deep"}]}}'::jsonb #> '{a,b,2}' AS object,
  '{"a": {"b": [1, 2, {"c": "deep"}]}}'::jsonb #>> '{a,b,2,c}' AS text;
SELECT '{"a": [1, 2]}'::json #> '{a,-1}' AS last, '{"a": [1, 2]}'::json #>> '{a,0}' AS first,
  '{"a": 1}'::jsonb #> '{x,y}' AS missing,
       '{"a": 1}'::jsonb #> '{}' AS whole;
SELECT '{"a": {"b": "c"}}'::jsonb #>> ARRAY['a', 'b'] AS with_array, '{"a": "x"}'::json #>> '{a}';

-- containment and existence
SELECT '{"a": 1, "b": 2}'::jsonb @> '{"b": 2}' AS a, '{"a": 1}'::jsonb @> '{"a": 2}' AS b,
  '[1, 2, 3]'::jsonb @> '[3, 1]' AS c,
       '[1, [2]]'::jsonb @> '[2]' AS d, '["a"]'::jsonb @> '"a"' AS e;
SELECT '{"b": 2}'::jsonb <@ '{"a": 1, "b": 2}' AS a, '{"a": {"b": 1, "c": 2}}'::jsonb @> '{"a": {"c": 2}}' AS nested,
  '{"a": 1}'::jsonb @> '{}' AS empty,
       '[1, 1]'::jsonb <@ '[1]' AS repeated;
SELECT '{"a": 1}'::jsonb ? 'a' AS key, '["a", "b"]'::jsonb ? 'b' AS element, '{"a": "b"}'::jsonb ? 'b' AS value,
  '"a"'::jsonb ? 'a' AS scalar;
SELECT '{"a": 1, "b": 2}'::jsonb ?| ARRAY['b', 'c'] AS some, '{"a": 1, "b": 2}'::jsonb ?& ARRAY['a', 'b'] AS every_one,
       '["a"]'::jsonb ?& ARRAY['a', 'x'] AS missing, '{}'::jsonb ?| '{}' AS none;
SELECT id FROM (VALUES (1, '{"tags": ["x", "y"]}'::jsonb), (2, '{"tags": ["y"]}'), (3, '{}')) AS v (id, d)
WHERE d -> 'tags' ? 'y' ORDER BY id;
SELECT '{"a": 1}'::jsonb = '{"a": 1.0}'::jsonb AS numbers,
  '{"a": 1, "b": 2}'::jsonb = '{"b": 2, "a": 1}'::jsonb AS order_of_keys,
       '[1, 2]'::jsonb = '[2, 1]'::jsonb AS order_of_elements, '1'::jsonb < '2'::jsonb AS less;

-- || - #-
SELECT '{"a": 1}'::jsonb || '{"b": 2}' AS merged, '{"a": 1}'::jsonb || '{"a": 2}' AS replaced,
  '[1]'::jsonb || '[2, 3]' AS arrays,
       '[1]'::jsonb || '2' AS appended, '1'::jsonb || '2'::jsonb AS scalars, '[]'::jsonb || '{"a": 1}' AS mixed;
SELECT '{"a": 1, "b": 2}'::jsonb - 'a' AS key, '["a", "b", "a"]'::jsonb - 'a' AS elements,
  '[1, 2, 3]'::jsonb - 1 AS index, '[1, 2, 3]'::jsonb - -1 AS last,
       '{"a": 1, "b": 2, "c": 3}'::jsonb - ARRAY['a', 'c'] AS keys;
SELECT '{"a": {"b": 1, "c": 2}}'::jsonb #- '{a,b}' AS nested, '[1, [2, 3]]'::jsonb #- '{1,0}' AS in_array,
  '{"a": 1}'::jsonb #- '{x}' AS missing;
SELECT '{"a": {"x": 1}}'::jsonb || '{"a": {"y": 2}}' AS shallow, NULL || '{"a": 1}'::jsonb AS nothing;

-- extract_path
SELECT json_extract_path('{"a": {"b": [5, 6]}}', 'a', 'b') AS j,
  jsonb_extract_path('{"a": {"b": [5, 6]}}', 'a', 'b', '1') AS jb,
       json_extract_path_text('{"a": {"b": "x"}}', 'a', 'b') AS t, jsonb_extract_path_text('{"a": 1}', 'x') AS missing;

-- elements, pairs and keys
SELECT value FROM jsonb_array_elements('[1, "two", null, [3], {"a": 4}]') WITH ORDINALITY AS t (value, n) ORDER BY n;
SELECT jsonb_array_elements_text('["a", null, 1, {"b": 2}]') AS element;
SELECT json_array_elements('[1, [2, 3]]') AS j;
SELECT sum(e::int) AS total FROM json_array_elements_text('["1", "2", "39"]') AS e;
SELECT key, value FROM jsonb_each('{"a": 1, "b": "x", "c": null}') ORDER BY key;
SELECT key, value, value IS NULL AS is_null FROM jsonb_each_text('{"a": 1, "b": "x", "c": null}') ORDER BY key;
SELECT * FROM json_each('{"z": 1, "y": [2]}') ORDER BY key;
SELECT k FROM jsonb_object_keys('{"b": 1, "a": 2, "long": 3}') AS k ORDER BY k;
SELECT json_object_keys('{"z": 1, "a": 2}') AS key_in_text_order;
SELECT id, e ->> 'sku' AS sku, (e ->> 'qty')::int AS qty
FROM (VALUES (1, '{"items": [{"sku": "A", "qty": 2}, {"sku": "B", "qty": 1}]}'::jsonb), (2, '{"items": []}'),
  (3, '{"items": [{"sku": "A"}]}')) AS o (id, d)
CROSS JOIN LATERAL jsonb_array_elements(d -> 'items') AS e ORDER BY id, sku;
SELECT id, e FROM (VALUES (1, '[1, 2]'::jsonb), (2, '[]')) AS o (id, d) LEFT JOIN
LATERAL jsonb_array_elements(d) AS e ON true ORDER BY id, e::text;
SELECT tag, count(*) AS n FROM (VALUES ('["x", "y"]'::jsonb), ('["y"]'), ('["y", "z"]')) AS v (tags),
  jsonb_array_elements_text(tags) AS tag
GROUP BY tag ORDER BY n DESC, tag;
-- fails
SELECT jsonb_array_elements('{"a": 1}');

-- constructors
SELECT jsonb_build_object('a', 1, 'b', 'x', 'c', NULL, 'd', ARRAY[1, 2]) AS jb,
  json_build_object('k', 1.50, 't', true) AS j;
SELECT jsonb_build_array(1, 'two', NULL, true, 1.5) AS jb, json_build_array(1, 'two', NULL) AS j,
  jsonb_build_array() AS empty, json_build_object() AS none;
SELECT jsonb_build_object('d', date '2013-01-31', 'ts', timestamp '2013-01-31 10:00', 'i', interval '1 day', 'n',
  jsonb_build_object('x', 1)) AS times;
SELECT to_json('text with "quotes"'::text) AS t, to_jsonb(42) AS i, to_jsonb(ARRAY['a', NULL]) AS a,
  to_json(true) AS b, to_jsonb(1.500) AS n;
SELECT to_json(timestamp '2013-01-31 10:00:00') AS ts, to_jsonb(timestamptz '2013-01-31 10:00:00+00') AS tz,
  to_jsonb(date '2013-01-31') AS d,
       to_jsonb(NULL::int) AS nothing;
SELECT row_to_json(a) AS line FROM airlines AS a WHERE carrier < 'B' ORDER BY carrier;
SELECT row_to_json(r) FROM (SELECT carrier, name FROM airlines WHERE carrier = 'UA') AS r;
SELECT row_to_json(row(1, 'x', NULL)) AS unnamed, to_jsonb(row(1, true)) AS unnamed_b;
SELECT to_jsonb(a) ->> 'name' AS name FROM airlines AS a WHERE carrier IN ('AA', 'DL') ORDER BY carrier;
SELECT to_jsonb(a) - 'name' || '{"seen": true}' AS changed FROM airlines AS a WHERE carrier = 'HA';
SELECT json_object('{a,1,b,2}') AS pairs, jsonb_object(ARRAY['a', 'b'], ARRAY['1', NULL]) AS keys_and_values,
  json_object('{{a,1},{b,2}}') AS nested;
SELECT array_to_json(ARRAY[[1, 2], [3, 4]]) AS nested, array_to_json(ARRAY['a', NULL]) AS with_null;
-- fails
SELECT jsonb_build_object('a', 1, 'b');
-- fails
SELECT jsonb_build_object(NULL, 1);

-- aggregates
SELECT json_agg(carrier ORDER BY carrier) AS carriers FROM airlines WHERE carrier < 'E';
SELECT jsonb_agg(name ORDER BY carrier DESC) FROM airlines WHERE carrier LIKE 'U%';
SELECT json_object_agg(carrier, name ORDER BY carrier) AS names FROM airlines WHERE carrier < 'B';
SELECT jsonb_object_agg(origin, n) AS flights_by_origin
FROM (SELECT origin, count(*) AS n FROM flights GROUP BY origin) AS f;
SELECT jsonb_agg(jsonb_build_object('carrier', carrier, 'n', n) ORDER BY n DESC) AS top
FROM (SELECT carrier, count(*) AS n FROM flights GROUP BY carrier ORDER BY n DESC, carrier LIMIT 3) AS t;
SELECT json_agg(a ORDER BY carrier) AS whole_rows FROM airlines AS a WHERE carrier IN ('VX', 'WN');
SELECT jsonb_agg(x ORDER BY x NULLS FIRST) AS with_nulls,
  jsonb_agg(x ORDER BY x) FILTER (WHERE x IS NOT NULL) AS without FROM (VALUES (2), (NULL), (1)) AS v (x);
SELECT json_agg(x) AS nothing, jsonb_object_agg(x::text, x) AS none FROM generate_series(1, 0) AS x;
SELECT jsonb_agg(DISTINCT origin ORDER BY origin) AS origins FROM flights;
SELECT origin, jsonb_agg(DISTINCT carrier) AS carriers FROM flights WHERE month = 2 GROUP BY origin ORDER BY origin;
SELECT jsonb_object_agg(k, v ORDER BY v) AS last_wins FROM (VALUES ('a', 1), ('b', 2), ('a', 3)) AS t (k, v);
SELECT region, jsonb_object_agg(city, n) AS cities
FROM (VALUES ('e', 'x', 1), ('e', 'y', 2), ('w', 'z', 3)) AS t (region, city, n) GROUP BY region ORDER BY region;

-- changes
SELECT jsonb_set('{"a": 1, "b": [1, 2]}', '{b,1}', '9') AS a, jsonb_set('{"a": 1}', '{b}', '2') AS created,
  jsonb_set('{"a": 1}', '{b}', '2', false) AS not_created,
       jsonb_set('{"a": {"b": 1}}', '{a,c,d}', '1') AS no_parent, jsonb_set('[1, 2]', '{-1}', '5') AS last;
SELECT jsonb_set('{"a": 1}', '{a}', NULL) AS whole_null, jsonb_set_lax('{"a": 1}', '{a}', NULL) AS json_null,
       jsonb_set_lax('{"a": 1}', '{a}', NULL, true, 'delete_key') AS deleted;
SELECT jsonb_insert('{"a": [0, 1, 2]}', '{a,1}', '"new"') AS before,
  jsonb_insert('{"a": [0, 1, 2]}', '{a,1}', '"new"', true) AS after,
       jsonb_insert('{"a": 1}', '{b}', '2') AS key;
SELECT jsonb_strip_nulls('{"a": null, "b": {"c": null, "d": 1}, "e": [null, 1]}') AS jb,
  json_strip_nulls('{"a": null, "b": 2}') AS j;

-- inspection
SELECT jsonb_typeof('{}') AS o, jsonb_typeof('[]') AS a, jsonb_typeof('"s"') AS s, jsonb_typeof('1.5') AS n,
  jsonb_typeof('true') AS b, jsonb_typeof('null') AS z,
       json_typeof('[1]') AS j, jsonb_typeof(NULL) AS nothing;
SELECT jsonb_array_length('[1, [2, 3], {}]') AS n, json_array_length('[]') AS zero;
-- fails
SELECT jsonb_array_length('{"a": 1}');
SELECT jsonb_pretty('{"b": [1, {"c": null}], "a": "x", "e": {}, "f": []}') AS pretty;
SELECT jsonb_typeof(value) AS kind, count(*) AS n FROM jsonb_array_elements('[1, 2, "x", null, [1], {"a": 1}, true]')
GROUP BY kind ORDER BY kind;

-- paths
SELECT jsonb_path_query('{"a": [1, 2, 3, 4]}', '$.a[*] ? (@ > 2)') AS big;
SELECT jsonb_path_query_array('{"a": [1, 2, 3, 4]}', '$.a[*] ? (@ >= $min && @ <= $max)',
  '{"min": 2, "max": 3}') AS between;
SELECT jsonb_path_query_first('{"a": [{"b": 1}, {"b": 2}]}', '$.a[*].b') AS first,
  jsonb_path_query_first('{"a": 1}', '$.x') AS missing;
SELECT jsonb_path_exists('{"a": [1, 2, 3]}', '$.a[*] ? (@ > 2)') AS yes, jsonb_path_exists('{"a": 1}', '$.b') AS no,
       '{"a": 1}'::jsonb @? '$.a' AS operator, '{"a": 1}'::jsonb @@ '$.a == 1' AS predicate;
SELECT jsonb_path_match('{"a": [1, 2]}', 'exists($.a[*] ? (@ == 2))') AS matches,
  jsonb_path_query_array('[1, 2, 3]', '$[last]') AS last,
       jsonb_path_query_array('[1, 2, 3]', '$[0 to 1]') AS slice;
SELECT jsonb_path_query_array('{"a": "x", "b": "y"}', '$.*') AS every_value,
  jsonb_path_query_array('[[1], [2, 3]]', '$[*][*]') AS flat,
       jsonb_path_query_array('[1, 2]', '$[0] * 10') AS product,
         jsonb_path_query('{"a": [1, 2]}', '$.a.size()') AS size;
SELECT jsonb_path_query('{"n": [{"name": "ann", "age": 30}, {"name": "bob", "age": 20}]}',
  '$.n[*] ? (@.age > 25 && @.name starts with "a").name') AS name;
SELECT jsonb_path_query_array('{"a": 1.7}', '$.a.floor()') AS floor,
  jsonb_path_query_array('["ab", "b"]', '$[*] ? (@ like_regex "^a")') AS matching,
       jsonb_path_query_array('[1, "x", null]', '$[*].type()') AS types;
-- fails
SELECT jsonb_path_query('{"a": 1}', 'strict $.b');
SELECT jsonb_path_query_array('{"a": 1}', 'strict $.b', '{}', true) AS silent,
  jsonb_path_query_array('{"a": {"b": 1}}', '$.**.b') AS anywhere;

-- paths: accessors, modes and subscripts
SELECT jsonb_path_query('{"a": {"x": 1, "y": [1, {"z": 2.50}]}, "c": {"d": 1}}', '$.**') AS anything;
SELECT jsonb_path_query('{"a": {"b": [1, []]}}', '$.**{2 to last}') AS deep, jsonb_path_query('[[1], [2]]', '$.**{last}') AS leaf;
SELECT jsonb_path_query_array('[[1, 2], [3]]', '$[*][last]') AS last,
  jsonb_path_query_array('[1, 2, 3, 4]', '$[1 to last - 1, 0]') AS some,
  jsonb_path_query_array('[1, 2]', '$[-1]') AS before, jsonb_path_query_array('5', '$[0]') AS wrapped;
SELECT jsonb_path_query_array('[{"a": [1, 2]}, {"a": [3]}]', '$.a') AS unwrapped, jsonb_path_query_array('[[1], 2]', 'strict $[*]') AS strict,
  jsonb_path_query_array('[{"a": [1, 2]}, {"a": [3]}]', '$[*].a.size()') AS sizes;
SELECT jsonb_path_query_array('{"a b": 1, "A": 2, "a.b": {"c": 3}}', '$."a b"') AS a, jsonb_path_query_array('{"A": 2}', '$.a') AS b;
-- fails
SELECT jsonb_path_query_array('[1, 2]', 'strict $[1 to 2]');
SELECT jsonb_path_exists('{"a": 1}', '$.a ? (@ > $x)');
SELECT jsonb_path_query('{"a": 1}', '$.a ? (@ > 1');

-- paths: filters
SELECT jsonb_path_query_array('[1, "1", true, null]', '$[*] ? (@ != 1)') AS other,
  jsonb_path_query_array('[1, "a", "b"]', '$[*] ? (@ > "a")') AS more;
SELECT jsonb_path_query_array('{"a": [{"b": 1}, {"b": null}, {"c": 1}]}', '$.a[*] ? (!exists(@.b))') AS without,
  jsonb_path_query_array('[1, "2", null]', '$[*] ? ((@ > 1) is unknown)') AS unknown;
SELECT jsonb_path_query_array('["abc", "ABC", "a\nb", "b"]', '$[*] ? (@ like_regex "^a.*" flag "i")') AS caseless,
  jsonb_path_query_array('["abc", "x\nab"]', '$[*] ? (@ like_regex "^a" flag "m")') AS lines,
  jsonb_path_query_array('["a.b", "axb"]', '$[*] ? (@ like_regex "a.b" flag "q")') AS quoted;
SELECT jsonb_path_match('{"a": 1}', '$.b == 1') AS missing, jsonb_path_match('{"a": "x"}', '$.a > 1') AS unknown,
  jsonb_path_match('{"a": 1}', '$.a', silent => true) AS silent, '[1]'::jsonb @@ '$[*]' AS operator;
SELECT count(*) AS n FROM events WHERE payload::jsonb @? '$.ms ? (@ > 500)';
SELECT count(*) AS n FROM events WHERE payload::jsonb @@ '$.ms > 500 && $.page starts with "/p/1"';

-- paths: numbers and methods
SELECT jsonb_path_query_array('[10, 3]', '$[0] / $[1]') AS a, jsonb_path_query_array('[-10.5, 3]', '$[0] % $[1]') AS b,
  jsonb_path_query_array('[1.5, 2.25]', '-($[0] * $[1]) + 1') AS c, jsonb_path_query_array('[0.5, -0.5]', '$[*].ceiling()') AS d;
SELECT jsonb_path_query('["1.50", 2.5, "1e3", " 4 "]', '$[*].double()') AS n;
SELECT jsonb_path_query('{"a": 1, "b": {"c": [1]}}', '$.keyvalue()') AS pair,
  jsonb_path_query('{"a": 1, "b": {"c": 2}}', '$.b.keyvalue().id') AS id;
-- fails
SELECT jsonb_path_query('[0]', '1 / $[0]');
SELECT jsonb_path_query('"x"', '$.double()');
SELECT v FROM jsonb_path_query('[1, 2, 3]', '$[*] ? (@ > $m)', vars => '{"m": 1}') AS v ORDER BY v;

-- recordsets
SELECT * FROM jsonb_to_recordset('[{"a": 1, "b": "x"}, {"a": 2}, {"b": "z", "c": true}]') AS t (a int, b text)
ORDER BY a NULLS LAST;
SELECT a * 2 AS doubled, d FROM json_to_recordset('[{"a": 1.5, "d": "2013-01-31"}]') AS t (a numeric, d date);
SELECT * FROM jsonb_to_record('{"id": 7, "tags": ["x", "y"], "extra": null}') AS t (id int, tags text[], extra text);
SELECT e.* FROM jsonb_array_elements('[{"n": "a", "v": 1}, {"n": "b", "v": 2}]') AS d,
       LATERAL jsonb_to_record(d) AS e (n text, v int) ORDER BY n;
SELECT v ->> 'a' AS a FROM (VALUES ('{"a": 10}'::jsonb), ('{"a": 9}')) AS t (v) ORDER BY (v ->> 'a')::int;
SELECT d FROM (VALUES ('3'::jsonb), ('"a"'), ('null'), ('true'), ('[1]'), ('{"a": 1}'), ('false'), ('2')) AS v (d)
ORDER BY d;
SELECT DISTINCT d FROM (VALUES ('{"a": 1, "b": 2}'::jsonb), ('{"b": 2, "a": 1.0}'), ('{}')) AS v (d) ORDER BY d;
SELECT month, jsonb_build_object('n', count(*), 'late', count(*) FILTER (WHERE dep_delay > 60)) AS numbers
FROM flights WHERE origin = 'LGA' AND month <= 3 GROUP BY month ORDER BY month;
SELECT coalesce(d ->> 'nick', d ->> 'name', 'nobody') AS shown
FROM (VALUES (1, '{"name": "Ann", "nick": "A"}'::jsonb), (2, '{"name": "Bob"}'), (3, '{}')) AS v (id, d) ORDER BY id;
SELECT (SELECT string_agg(value, ',' ORDER BY value) FROM jsonb_array_elements_text(d)) AS joined
FROM (VALUES (1, '["b", "a"]'::jsonb), (2, '[]')) AS v (id, d) ORDER BY id;

-- over tables
SELECT id, j::jsonb AS jb FROM jsons ORDER BY id;
SELECT id, jsonb_typeof(j::jsonb) AS kind, json_typeof(j::json) AS same FROM jsons ORDER BY id;
SELECT id, j::json AS as_written FROM jsons WHERE id IN (8, 9, 11, 12, 17) ORDER BY id;
SELECT id, j::jsonb -> 'a' AS a, j::jsonb ->> 'a' AS a_text, j::json -> 'a' AS ja FROM jsons WHERE id >= 8 ORDER BY id;
SELECT id, j::jsonb -> 0 AS first, j::jsonb ->> -1 AS last FROM jsons ORDER BY id;
SELECT id, j::jsonb #> '{a,b,2}' AS p, j::jsonb #>> '{f,g,h}' AS deep, j::jsonb #>> '{}' AS whole FROM jsons
WHERE id IN (3, 4, 5, 6, 7, 8, 16, 18) ORDER BY id;
SELECT id FROM jsons WHERE j::jsonb @> '{"a": 1}' OR j::jsonb @> '[1]' ORDER BY id;
SELECT id, j::jsonb ? 'a' AS has_a, j::jsonb ?| ARRAY['b', 'items'] AS b_or_items,
  j::jsonb ?& ARRAY['a', 'b'] AS both_keys FROM jsons ORDER BY id;
SELECT id, k FROM jsons, jsonb_object_keys(j::jsonb) AS k WHERE jsonb_typeof(j::jsonb) = 'object' AND id < 13
ORDER BY id, k;
SELECT id, key, value FROM jsons, jsonb_each(j::jsonb) WHERE id IN (8, 12, 14, 19, 23) ORDER BY id, key;
SELECT id, key, value FROM jsons, json_each_text(j::json) WHERE id IN (8, 11, 19, 23) ORDER BY id, key;
SELECT id, n, e FROM jsons, jsonb_array_elements(j::jsonb) WITH ORDINALITY AS t (e, n) WHERE id IN (10, 15, 20, 24)
ORDER BY id, n;
SELECT id, e ->> 'id' AS item, (e ->> 'price')::numeric AS price
FROM jsons, jsonb_array_elements(j::jsonb -> 'items') AS e WHERE id = 13 ORDER BY 2;
SELECT id, jsonb_array_length(j::jsonb) AS n FROM jsons WHERE jsonb_typeof(j::jsonb) = 'array' ORDER BY id;
SELECT id, jsonb_strip_nulls(j::jsonb) AS stripped FROM jsons WHERE id IN (3, 8, 10, 23) ORDER BY id;
SELECT id, j::jsonb - 'a' AS without FROM jsons WHERE id IN (8, 9, 16, 24) ORDER BY id;
SELECT id, j::jsonb || '{"z": 0}' AS merged FROM jsons WHERE id IN (1, 2, 8, 9, 20) ORDER BY id;
SELECT id, jsonb_set(j::jsonb, '{a}', '"new"') AS changed FROM jsons WHERE id IN (1, 8, 9, 16) ORDER BY id;
SELECT id, jsonb_pretty(j::jsonb) AS pretty FROM jsons WHERE id IN (1, 2, 9, 15) ORDER BY id;
SELECT id, jsonb_path_query_array(j::jsonb, '$.items[*].price') AS prices,
  jsonb_path_exists(j::jsonb, '$.items[*] ? (@.price > 10)') AS dear FROM jsons WHERE id IN (8, 13) ORDER BY id;
SELECT id, jsonb_path_query_first(j::jsonb, '$.**.c') AS c FROM jsons WHERE id IN (8, 16) ORDER BY id;
SELECT a.id, b.id AS contained FROM jsons AS a JOIN jsons AS b ON a.j::jsonb @> b.j::jsonb AND a.id <> b.id
ORDER BY 1, 2;
SELECT id, j FROM jsons WHERE j IS NOT NULL AND jsonb_typeof(j::jsonb) = 'number' ORDER BY (j::jsonb)::numeric;
SELECT product_id, attributes::jsonb -> 'dims' ->> 0 AS x, (attributes::jsonb -> 'dims' ->> 1)::int * 2 AS y
FROM products WHERE product_id BETWEEN 10 AND 16 ORDER BY product_id;
SELECT product_id, attributes::jsonb #>> '{maker,name}' AS maker, attributes::jsonb #> '{maker,since}' AS since
FROM products WHERE product_id <= 5 ORDER BY product_id;
SELECT attributes::jsonb #>> '{maker,name}' AS maker,
  avg((attributes::jsonb ->> 'rating')::numeric)::numeric(6, 3) AS rating FROM products GROUP BY 1
ORDER BY 1 NULLS LAST;
SELECT count(*) FROM products WHERE (attributes::jsonb ->> 'stocked')::boolean
  AND attributes::jsonb @> '{"color": "red"}';
SELECT product_id, sum(d::int) AS volume FROM products, jsonb_array_elements_text(attributes::jsonb -> 'dims') AS d
WHERE product_id < 8 GROUP BY product_id ORDER BY product_id;
SELECT product_id, to_jsonb(tags) AS tags, array_to_json(sizes) AS sizes FROM products WHERE product_id < 13
ORDER BY product_id;
SELECT jsonb_build_object('id', product_id, 'price', price, 'tags', tags, 'launched', launched, 'weight',
  weight_kg) AS doc FROM products WHERE product_id IN (1, 8, 9) ORDER BY product_id;
SELECT row_to_json(t) AS line FROM (SELECT order_id, order_date, ordered_at, shipped_at, unit_price, discount, note
  FROM orders ORDER BY order_id LIMIT 3) AS t;
SELECT jsonb_agg(to_jsonb(t) ORDER BY t.order_id) AS lines
FROM (SELECT order_id, quantity, status FROM orders WHERE customer_id = 32) AS t;
SELECT to_jsonb(n) AS n, to_jsonb(d) AS d, to_jsonb(b) AS b, to_jsonb(ts) AS ts, to_jsonb(tz) AS tz, to_jsonb(t) AS t
FROM t_types WHERE id IN (3, 6, 7, 10, 17, 18) ORDER BY id;
SELECT country, json_agg(json_build_object('id', customer_id, 'name', name) ORDER BY customer_id) AS people
FROM customers WHERE customer_id <= 12 GROUP BY country ORDER BY country;
SELECT dept, jsonb_object_agg(name, salary) AS salaries FROM employees WHERE dept = 'Finance' GROUP BY dept;
SELECT payload::jsonb -> 'user' ->> 'id' AS user_id, count(*) AS n FROM events WHERE payload::jsonb -> 'tags' ? 'a'
GROUP BY 1 ORDER BY n DESC, user_id LIMIT 8;
SELECT event_id, json_extract_path_text(payload::json, 'user', 'plan') AS plan,
  json_array_length(payload::json -> 'tags') AS tags FROM events WHERE payload IS NOT NULL ORDER BY event_id LIMIT 6;
SELECT x.page, sum(x.ms) AS ms FROM events, jsonb_to_record(payload::jsonb) AS x (page text, ms int)
WHERE payload IS NOT NULL GROUP BY x.page ORDER BY x.page;
SELECT j.key, count(*) AS n FROM events, jsonb_each(payload::jsonb) AS j GROUP BY j.key ORDER BY j.key;

-- Equal documents that are written otherwise.
SELECT count(*) AS n FROM (VALUES ('1'::jsonb), ('1.0'), ('2')) AS v (d) GROUP BY d ORDER BY n;
SELECT count(DISTINCT d) AS n FROM (VALUES ('1'::jsonb), ('1.0'), ('2')) AS v (d);
SELECT count(*) OVER (PARTITION BY d) AS n FROM (VALUES ('1'::jsonb), ('1.0'), ('2')) AS v (d) ORDER BY d;
SELECT '1'::jsonb AS d INTERSECT SELECT '1.0'::jsonb;
SELECT x FROM (VALUES ('1'::jsonb, 5)) AS l (d, x) JOIN (VALUES ('1.0'::jsonb)) AS r (d) USING (d);

-- Rows of tables as values.
SELECT a.carrier, to_json(p) AS p, count(p) OVER () AS n FROM airlines a LEFT JOIN (SELECT 'AA' AS code, 1 AS x) p ON p.code = a.carrier
ORDER BY a.carrier LIMIT 3;
SELECT a.carrier, count(f) AS n, count(f.*) AS m, count(*) AS c FROM airlines a LEFT JOIN flights f ON f.carrier = a.carrier AND f.month = 1
GROUP BY a.carrier ORDER BY a.carrier;
SELECT count(a), count(a.*), count(DISTINCT a) FROM airlines a;
SELECT t.*, row_to_json(t) AS j FROM airlines t WHERE carrier < 'B' ORDER BY carrier;
SELECT *, to_json(t) AS value, to_json(t.*) AS row FROM (SELECT 1 AS t, 2 AS b) t;
SELECT to_json(t) AS value, to_json(t.*) AS row FROM (SELECT 1 AS t, 2 AS b) t;
SELECT to_json(g) AS a, to_json(g.*) AS b FROM generate_series(1, 2) g ORDER BY g;
SELECT to_json(e) AS e FROM jsonb_array_elements('[1, "a"]') e;
SELECT json_agg(e) AS e FROM jsonb_each('{"a": 1}') e;
SELECT row_to_json(t) AS t FROM (SELECT 1, 2, 1 AS a, 2 AS a) t;
SELECT row_to_json(t, true) AS t, array_to_json(ARRAY[1, 2], true) AS a FROM (SELECT 1 AS a, 'x' AS b) t;
WITH t AS (SELECT carrier, name FROM airlines WHERE carrier IN ('AA', 'UA')) SELECT json_agg(t ORDER BY carrier) AS j FROM t;
SELECT jsonb_object_agg(a.carrier, to_jsonb(a) - 'carrier') AS j, jsonb_object_agg(a.carrier, a) AS k FROM airlines a WHERE carrier < 'B';
SELECT carrier, (SELECT json_agg(t ORDER BY t.n DESC, t.dest) FROM (SELECT dest, count(*) AS n FROM flights f
  WHERE f.carrier = a.carrier AND month = 1 GROUP BY dest ORDER BY n DESC, dest LIMIT 2) AS t) AS top
FROM airlines a WHERE carrier IN ('AA', 'UA') ORDER BY carrier;
SELECT (SELECT row_to_json(t) FROM (SELECT a.carrier, a.name) AS t) AS j, row_to_json((SELECT r FROM (SELECT a.carrier) r)) AS k
FROM airlines a WHERE carrier = 'AA';
SELECT a.carrier, x.j FROM airlines a, LATERAL (SELECT to_jsonb(a) AS j) x WHERE carrier = 'AA';
SELECT a.carrier, to_jsonb(x) AS j FROM airlines a LEFT JOIN LATERAL (SELECT f.dest, f.month FROM flights f WHERE f.carrier = a.carrier
  ORDER BY f.dest, f.month, f.day LIMIT 1) x ON true WHERE a.carrier IN ('AA', 'ZZ', '9E') ORDER BY a.carrier;
-- fails
SELECT to_json(a), count(*) FROM airlines a GROUP BY carrier;

-- What json_to_record makes of values.
SELECT * FROM jsonb_to_record('{"a": "7", "b": true, "c": {"x" :1}, "d": "q", "e": null}') AS t (a int, b bool, c text, d jsonb, e jsonb);
SELECT * FROM json_to_record('{"a": ["x", {"b" : 1}, [1]], "b": "{1,2}", "c": []}') AS t (a text[], b int[], c date[]);
SELECT * FROM jsonb_to_record(NULL) AS t (a int, b text);
SELECT o.id, t.* FROM (VALUES (1, '[{"a": 1, "b": "x"}, {"a": 2}]'::jsonb), (2, NULL), (3, '[]'::jsonb)) AS o (id, d)
LEFT JOIN LATERAL jsonb_to_recordset(o.d) AS t (a int, b text) ON true ORDER BY id, a;
-- fails
SELECT * FROM jsonb_to_record('{"a": 1.5}') AS t (a int);
SELECT * FROM jsonb_to_recordset('[1]') AS t (a int);
SELECT * FROM jsonb_to_record('{"a": 5}') AS t (a int[]);

-- Members of a column without a table before it.
SELECT d -> 'a' AS a, d -> 'b' ->> 0 AS b, d ->> 'a' = '1' AND d -> 'b' @> '[2]' AS c FROM (VALUES ('{"a": 1, "b": [2]}'::jsonb)) AS v (d);
SELECT p -> 'user' ->> 'plan' AS plan, count(*) AS n FROM (SELECT payload::jsonb AS p FROM events) AS x WHERE p -> 'user' IS NOT NULL
GROUP BY p -> 'user' ->> 'plan' ORDER BY plan;

-- Arrays of pairs, and NULL that is set.
SELECT json_object('{}') AS a, json_object('{a,1,b,null}') AS b, jsonb_object(ARRAY[['a', 'b'], ['c', 'd']]) AS c;
SELECT jsonb_set_lax('{"a": 1}', '{a}', NULL, true, 'return_target') AS a, jsonb_set_lax('{"a": 1}', '{b}', NULL, false) AS b;
-- fails
SELECT json_object('{{a,b,c}}');
SELECT jsonb_set_lax('{"a": 1}', '{a}', NULL, true, 'raise_exception');

-- Subscripts are integers or texts, and mean what they mean in a path
SELECT (jsonb '[1,"2",null]')['1'] AS text, (jsonb '[1,"2",null]')[1] AS number, (jsonb '[1,"2",null]')['1.5'] AS fraction, (jsonb '{"a":1,"1":2}')['a'] AS key,
  (jsonb '{"a":1,"1":2}')['1'] AS text_key, (jsonb '{"a":1,"1":2}')[1] AS number_key, (jsonb '[1,"2",null]')['a'] AS name, (jsonb '[1,"2",null]')['-1'] AS last,
  (jsonb '[1]')[NULL] AS none, (jsonb '[1,2]')[' 1'] AS blank, (jsonb '[1,2]')['+1'] AS plus, (jsonb '[1,2]')['01'] AS zero, (jsonb '[1,2]')['1 '] AS behind;
SELECT (jsonb '[1,"2",[3,{"x":5}]]')['2']['1']['x'] AS texts, (jsonb '[1,"2",[3,{"x":5}]]')[2][1]['x'] AS mixed, (jsonb '[1,"2",[3,{"x":5}]]')['2'][1]['x'] AS both,
  (jsonb '5')[0] AS scalar, (jsonb '5')['0'] AS scalar_text, jsonb '5' -> 0 AS member, (jsonb '{"a":{"b":[10,20]}}')['a']['b']['1'] AS deep;
SELECT id, (j::jsonb)['a'] AS a, (j::jsonb)[1] AS one, (j::jsonb)['1'] AS text_one, (j::jsonb)[0][1] AS nested, (j::jsonb)['a']['b'][2]['c'] AS deep FROM jsons ORDER BY id;
SELECT id, (j::jsonb)[id - 20] AS by_number, (j::jsonb)[(id - 20)::text] AS by_text FROM jsons WHERE id >= 20 ORDER BY id;
-- fails
SELECT (jsonb '[1,2]')[1.5];

-- The row of a table has the names of its columns, whatever its alias calls them
SELECT row_to_json(a) FROM airlines AS a(x, y) ORDER BY x;
SELECT to_jsonb(a) AS row, a.x FROM airlines AS a(x) ORDER BY a.x;
SELECT row_to_json(a) FROM (SELECT carrier, name FROM airlines) AS a(x, y) ORDER BY x;
SELECT row_to_json(a.*) FROM airlines AS a(x, y) ORDER BY a.y DESC;
WITH a(x, y) AS (SELECT * FROM airlines) SELECT row_to_json(b) FROM a AS b(z) ORDER BY z;
SELECT row_to_json(i) FROM generate_series(1, 2) WITH ORDINALITY AS i(a, b) ORDER BY a;

-- Rows have the members f1, f2, …, and t.* in a row is each column of t
SELECT to_json(ROW(1, ROW(2, 3))) AS nested, to_json(ARRAY[ROW(1, 'a'::text)]) AS array, json_build_object('r', ROW(1, 2 + 3)) AS built, to_jsonb((1, 'x'::text)) AS tuple;
SELECT row_to_json(q) FROM (SELECT ARRAY[ROW(1, 2), ROW(3, 4)] AS z, 5 AS y) AS q;
SELECT json_agg(x) FROM (SELECT ROW(1, 2) AS x) AS t;
SELECT to_json(array_agg(ROW(carrier, name) ORDER BY carrier)) FROM airlines WHERE carrier < 'B';
SELECT to_json(ROW(a.*, 1)) AS first, to_json(ROW(0, a.*)) AS last FROM airlines a ORDER BY a.carrier LIMIT 3;
SELECT row_to_json(q) FROM (SELECT ARRAY[ROW(x.*, ARRAY[1, 2]), ROW(y.*, ARRAY[3])] AS z FROM generate_series(1, 2) x, generate_series(4, 5) y) AS q;
SELECT count(*) FROM airlines a JOIN airlines b ON ROW(a.*) = ROW(b.*);
SELECT ROW(a.*) = ('AA', 'American Airlines Inc.') AS is_american FROM airlines a ORDER BY carrier LIMIT 4;
SELECT count(*) FROM airlines a WHERE ROW(a.*) IN (SELECT b.carrier, b.name FROM airlines b WHERE b.carrier < 'B');
SELECT a.carrier FROM airlines a ORDER BY ROW(a.*) < ('B', ''), a.carrier LIMIT 3;
SELECT to_json(ARRAY(SELECT ROW(v.a, s.*) FROM (VALUES (3, 4)) AS s(b, c))) AS rows FROM (VALUES (1), (2)) AS v(a) ORDER BY v.a;

-- Paths as values: PostgreSQL's text of them.
SELECT '$.a.b ? (@.c > 1 && @."d e" == "x")'::jsonpath AS a, 'strict $[0, 1 to last].**{2 to last}'::jsonpath AS b,
  CAST('$.a + 1 * - (2)' AS jsonpath)::text AS c, ('$.' || j)::jsonpath AS d, NULL::jsonpath AS e
FROM (VALUES ('x'), ('y.z'), (NULL)) AS v (j) ORDER BY j;
SELECT '$ ? (@.a like_regex "^x" flag "qi" || exists(@.b ? (!(@ == 1))))'::jsonpath AS a, '($.a == 1).type()'::jsonpath AS b,
  '-$"v" * (1.50e1 + .5).floor()'::jsonpath AS c, '(($.a < 2) is unknown) && $.b starts with "q\u00e4"'::jsonpath AS d;
SELECT id, jsonb_path_query_array(j::jsonb, 'lax $.** ? (@.type() == "number" && @ > 1)'::jsonpath) AS found,
  j::jsonb @? '$.a ? (@ == 1)'::jsonpath AS has, j::jsonb @@ '$.a == 1'::jsonpath AS is FROM jsons ORDER BY id;
-- fails
SELECT '$.a ? (@ >'::jsonpath;
SELECT '@.a'::jsonpath;
SELECT 1::jsonpath;

-- The functions of operators.
SELECT id, jsonb_contains(j::jsonb, '{"a": 1}') AS a, jsonb_contained('[1]', j::jsonb) AS b, jsonb_exists(j::jsonb, 'a') AS c,
  jsonb_exists_any(j::jsonb, '{a,b}') AS d, jsonb_exists_all(j::jsonb, ARRAY['a', 'b']) AS e FROM jsons ORDER BY id;
SELECT jsonb_delete('{"a": 1, "b": 2}'::jsonb, 'a') AS a, jsonb_delete('["a", "b"]'::jsonb, 0) AS b,
  jsonb_delete('{"a": 1, "b": 2, "c": 3}'::jsonb, 'a', 'c') AS c, jsonb_delete_path('{"a": {"b": 1, "c": 2}}', '{a,b}') AS d,
  jsonb_concat('{"a": 1}', '{"b": 2}') AS e, jsonb_exists(NULL, 'a') AS f, jsonb_contains('[1]', NULL) AS g;
-- fails
SELECT jsonb_contains('{"a": 1}');
SELECT jsonb_exists('{"a": 1}'::jsonb, 1);
SELECT jsonb_delete('1'::jsonb, 'a');

-- Arguments by name, and arrays in place of arguments.
SELECT jsonb_set('{"a": 1}', '{b}', '2', create_if_missing => false) AS a, jsonb_insert('[1, 2]', '{0}', '3', insert_after := true) AS b,
  jsonb_set_lax('{"a": 1, "b": 2}', '{b}', NULL, null_value_treatment => 'delete_key') AS c,
  jsonb_set(replacement => '5', jsonb_in => '{"a": 1}', path => '{a}') AS d,
  jsonb_path_query_first(target => '[1, 2]', path => '$[*] ? (@ > $x)', vars => '{"x": 1}') AS e;
SELECT json_build_array(VARIADIC '{a,b,NULL}'::text[]) AS a, jsonb_build_array(VARIADIC ARRAY[[1, 4], [2, 5]]) AS b,
  json_build_array(VARIADIC '{}'::text[]) AS c, jsonb_build_array(VARIADIC NULL::int[]) AS d,
  json_extract_path('{"a": [1, 2]}'::json, VARIADIC ARRAY['a', '1']) AS e,
  jsonb_extract_path_text('{"a": {"b": "x"}}'::jsonb, VARIADIC '{a,b}') AS f,
  jsonb_delete('{"a": 1, "b": 2}'::jsonb, VARIADIC ARRAY['a']) AS g;
-- refused: the values of an array of text are text
SELECT jsonb_build_object(VARIADIC ARRAY['a', 'b']);

-- Records whose alias has columns only.
SELECT * FROM json_to_record('{"a": 1, "b": "x", "c": [1, 2]}') AS (a int, b text, c int[]);
SELECT b, a FROM jsonb_to_recordset('[{"a": 1, "b": "x"}, {"a": 2}]') AS (a int, b text) ORDER BY a DESC;
