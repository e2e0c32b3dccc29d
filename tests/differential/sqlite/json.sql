-- JSON: https://www.sqlite.org/json1.html.

SELECT json('{"a" : 1 , "b":[1,2]}') AS a, json_valid('{x') AS b, json_type('[1]') AS c;
SELECT id, json_extract(doc, '$.a') AS a, doc ->> '$.c.d' AS d, doc -> '$.b' AS b FROM item WHERE json_valid(doc) ORDER BY id;
SELECT json_array(1, 'a', NULL, 2.5) AS a, json_object('k', 1, 'l', json('[1]')) AS b, json_quote('x"y') AS c;
SELECT json_array_length('[1, 2, 3]') AS a, json_array_length('{"a": [1]}', '$.a') AS b, json_array_length('{}') AS c;
SELECT json_insert('{"a": 1}', '$.b', 2) AS a, json_replace('{"a": 1}', '$.a', 3) AS b, json_set('{"a": 1}', '$.a', 4, '$.c', 5) AS c, json_remove('{"a": 1, "b": 2}', '$.a') AS d;
SELECT json_patch('{"a": 1, "b": 2}', '{"b": null, "c": 3}') AS a;
SELECT key, value, type FROM json_each('[10, "x", null, {"a": 1}]') ORDER BY key;
SELECT item.id, e.value AS v FROM item, json_each(item.doc, '$.b') AS e WHERE item.id = 1 ORDER BY e.key;
SELECT fullkey, atom FROM json_tree('{"a": [1, {"b": 2}]}') WHERE atom IS NOT NULL ORDER BY fullkey;
SELECT json_group_array(label) AS a, json_group_object(label, id) AS b FROM (SELECT * FROM node ORDER BY id);
SELECT '{"a": {"b": 7}}' ->> '$.a.b' AS a, '[1, 2]' ->> 1 AS b, '{"x": "y"}' ->> 'x' AS c;
