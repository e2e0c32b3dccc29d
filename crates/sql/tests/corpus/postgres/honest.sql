-- Statements that must pass, and mean in our writing what they mean as they stand: one an entry, entries apart by an
-- empty line. Comment lines before a statement say what it shows. A comment that begins with "not understood:" marks
-- what the parser cannot read yet; a test holds that this is still so.
-- All run against schema.sql beside this file. Add yours anywhere.

-- the smallest
SELECT 1

SELECT 1;

-- comments and blank space around
  -- what is sold?
/* nested /* comments */ end */ SELECT count(*) FROM items -- the end

-- not understood: not even a column
SELECT

-- no columns
SELECT FROM customers

VALUES (1, 'one'), (2, 'two'), (3, NULL)

SELECT * FROM (VALUES (1, 'one'), (2, 'two')) AS v (n, name) WHERE n > 1

TABLE customers

TABLE archive.orders ORDER BY id LIMIT 1

TABLE "Odd Names"

SELECT id FROM orders WHERE id < 12 UNION TABLE "2013.csv" ORDER BY 1

(SELECT id FROM customers) UNION ALL (SELECT id FROM orders) ORDER BY 1 DESC LIMIT 3 OFFSET 1

SELECT customer_id FROM orders INTERSECT SELECT id FROM customers EXCEPT SELECT 2 ORDER BY 1

SELECT id FROM customers EXCEPT ALL SELECT customer_id FROM orders ORDER BY 1

-- names as they may be
SELECT "the.dot", "a/b", "say ""hi""", "select", "Ünï" FROM "Odd Names"

SELECT n FROM "2013.csv" ORDER BY n

SELECT o."the.dot" AS "a.b" FROM public."Odd Names" AS o

SELECT Customers.NAME AS "Name" FROM CUSTOMERS ORDER BY ID

SELECT c.* FROM customers c WHERE c.id = 1

SELECT c FROM customers c ORDER BY c.id LIMIT 1

SELECT (c).name, (c).tags[1] FROM customers c ORDER BY id

-- a column named like a function
SELECT t.count, t.sum FROM (SELECT 1 AS count, 2 AS sum) t

SELECT 1 AS "from", 2 AS value, 3 AS type, 4 AS user_name

SELECT DISTINCT city FROM customers ORDER BY city NULLS FIRST

SELECT DISTINCT ON (customer_id) customer_id, id, total FROM orders ORDER BY customer_id, total DESC

SELECT ALL name FROM customers ORDER BY name COLLATE "C"

-- common table expressions
WITH big AS (SELECT * FROM orders WHERE total > 50), of AS (SELECT customer_id, sum(total) AS total FROM big GROUP BY 1)
SELECT c.name, of.total FROM of JOIN customers c ON c.id = of.customer_id ORDER BY 2 DESC

WITH RECURSIVE t (n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM t WHERE n < 10) SELECT sum(n) FROM t

WITH RECURSIVE t (n) AS (VALUES (1) UNION SELECT n * 2 FROM t WHERE n < 100) SELECT array_agg(n ORDER BY n) FROM t

WITH o AS MATERIALIZED (SELECT * FROM orders) SELECT count(*) FROM o

WITH o AS NOT MATERIALIZED (SELECT * FROM orders) SELECT count(*) FROM o WHERE id = 10

WITH a AS (WITH b AS (SELECT 1 AS n) SELECT n + 1 AS n FROM b) SELECT * FROM a

-- the order of a search, and cycles
WITH RECURSIVE t (n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM t WHERE n < 3) SEARCH DEPTH FIRST BY n SET place SELECT n FROM t ORDER BY place

-- joins
SELECT c.name, o.id FROM customers c LEFT JOIN orders o ON o.customer_id = c.id ORDER BY 1, 2

SELECT c.name, o.id FROM customers c LEFT OUTER JOIN orders o ON o.customer_id = c.id AND o.total > 100 ORDER BY 1, 2

SELECT * FROM orders RIGHT JOIN customers ON customers.id = orders.customer_id ORDER BY customers.id, orders.id

SELECT * FROM (SELECT 1 AS a) x FULL JOIN (SELECT 2 AS a) y USING (a) ORDER BY a

SELECT * FROM (SELECT 1 AS a) x NATURAL JOIN (SELECT 1 AS a, 2 AS b) y

SELECT * FROM customers CROSS JOIN (SELECT max(total) AS most FROM orders) m ORDER BY id

SELECT a.id, b.id FROM customers a, customers b WHERE a.id < b.id ORDER BY 1, 2

SELECT * FROM ((customers c JOIN orders o ON o.customer_id = c.id) JOIN items i ON i.order_id = o.id) ORDER BY o.id, i.line

SELECT count(*) FROM customers c JOIN orders o JOIN items i ON i.order_id = o.id ON o.customer_id = c.id

-- lateral
SELECT c.name, last.total FROM customers c LEFT JOIN LATERAL (SELECT total FROM orders o WHERE o.customer_id = c.id ORDER BY placed_at DESC LIMIT 1) last ON true ORDER BY 1

SELECT c.name, t.tag FROM customers c, LATERAL unnest(c.tags) AS t (tag) ORDER BY 1, 2

SELECT c.name, t.tag, t.n FROM customers c CROSS JOIN LATERAL unnest(c.tags) WITH ORDINALITY AS t (tag, n) ORDER BY 1, 3

-- rows from functions that only compute
SELECT * FROM generate_series(1, 10, 3) AS g (n)

SELECT * FROM pg_catalog.generate_series(1, 3)

SELECT day::date FROM generate_series('2024-01-01'::timestamp, '2024-01-03', interval '1 day') AS day

SELECT * FROM unnest(ARRAY[1, 2], ARRAY['a', 'b', 'c']) AS t (n, s)

SELECT * FROM unnest('{x,y}'::text[]) WITH ORDINALITY

SELECT * FROM json_array_elements('[1, 2, 3]') AS j (value)

SELECT e.id, i ->> 'sku' AS sku FROM events e, jsonb_array_elements(e.body -> 'items') AS i ORDER BY 1, 2

SELECT e.id, p.key, p.value FROM events e, jsonb_each_text(e.body) p ORDER BY 1, 2

SELECT * FROM jsonb_object_keys('{"a": 1, "b": 2}') AS k

SELECT * FROM jsonb_to_record('{"a": 1, "b": "x"}') AS r (a int, b text)

SELECT * FROM json_to_recordset('[{"a": 1, "b": "x"}, {"a": 2}]') AS r (a int, b text)

SELECT * FROM jsonb_populate_record(NULL::customers, '{"id": 9, "name": "Eve"}')

SELECT * FROM jsonb_path_query('{"a": [1, 2, 3]}', '$.a[*] ? (@ > 1)') AS v

SELECT * FROM regexp_split_to_table('a, b,c', ',\s*') AS part

SELECT * FROM string_to_table('a,b', ',') AS part

SELECT * FROM regexp_matches('foobarbequebaz', 'ba.', 'g') AS m

SELECT generate_series(1, 3) AS n, unnest(ARRAY['a', 'b', 'c']) AS s

-- several functions side by side
SELECT * FROM ROWS FROM (generate_series(1, 3), unnest(ARRAY['a', 'b'])) AS t (n, s)

-- window functions
SELECT id, total, rank() OVER (ORDER BY total DESC), sum(total) OVER (PARTITION BY customer_id ORDER BY placed_at) FROM orders ORDER BY id

SELECT id, avg(total) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM orders ORDER BY id

-- a frame that leaves rows out
SELECT id, sum(total) OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW EXCLUDE CURRENT ROW) FROM orders ORDER BY id

SELECT id, count(*) OVER (ORDER BY placed_at RANGE BETWEEN '30 days' PRECEDING AND CURRENT ROW) FROM orders ORDER BY id

SELECT id, count(*) OVER (ORDER BY customer_id GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM orders ORDER BY id

SELECT id, lag(total, 1, 0) OVER w, lead(total) OVER w, first_value(id) OVER w, ntile(2) OVER w FROM orders WINDOW w AS (ORDER BY id) ORDER BY id

SELECT id, row_number() OVER (w ORDER BY id DESC) FROM orders WINDOW w AS (PARTITION BY status) ORDER BY id

SELECT sum(count(*)) OVER (), status FROM orders GROUP BY status ORDER BY status

SELECT id, count(*) FILTER (WHERE total > 50) OVER (ORDER BY id) FROM orders ORDER BY id

-- aggregates
SELECT count(*) FILTER (WHERE status = 'open'), count(DISTINCT customer_id), sum(total) FILTER (WHERE total < 100) FROM orders

SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY total) FROM orders

SELECT PERCENTILE_CONT(ARRAY[0.25, 0.5, 0.75]) WITHIN GROUP (ORDER BY price), mode() WITHIN GROUP (ORDER BY product) FROM items

SELECT percentile_disc(0.9) WITHIN GROUP (ORDER BY total DESC) FILTER (WHERE total > 0) FROM orders

SELECT rank(50) WITHIN GROUP (ORDER BY total) FROM orders

SELECT string_agg(name, ', ' ORDER BY name DESC), array_agg(DISTINCT city ORDER BY city), json_agg(id), jsonb_object_agg(id, name) FROM customers

SELECT stddev_samp(total), var_pop(total), corr(total, id), regr_slope(total, id), bool_and(total > 0), every(total > 1) FROM orders

SELECT status, customer_id, sum(total), grouping(status, customer_id) FROM orders GROUP BY ROLLUP (status, customer_id) ORDER BY 1, 2, 3

SELECT status, customer_id, sum(total) FROM orders GROUP BY CUBE (status, customer_id) ORDER BY 1, 2, 3

SELECT status, customer_id, sum(total) FROM orders GROUP BY GROUPING SETS ((status), (customer_id), ()) ORDER BY 1, 2, 3

SELECT date_trunc('month', placed_at AT TIME ZONE 'UTC') AS month, sum(total) FROM orders GROUP BY month HAVING sum(total) > 50 ORDER BY month

SELECT count(*), status FROM orders GROUP BY 2 ORDER BY count(*) DESC, 2

-- not understood: GROUP BY DISTINCT
SELECT city, count(*) FROM customers GROUP BY DISTINCT city ORDER BY 1 NULLS LAST

-- json
SELECT body -> 'user' ->> 'name', body #> '{user,id}', body #>> '{user,name}', body['user']['id'] FROM events ORDER BY id

SELECT id FROM events WHERE body @> '{"ok": true}' AND body ? 'tries' ORDER BY id

SELECT id, body ?| ARRAY['ok', 'items'], body ?& ARRAY['user', 'ok'], '{"ok": true}' <@ body FROM events ORDER BY id

SELECT id, body @? '$.items[*] ? (@.n > 1)', body @@ '$.tries > 2' FROM events ORDER BY id

SELECT body - 'user', body - ARRAY['ok', 'tries'], body #- '{user,name}', body || '{"more": 1}' FROM events ORDER BY id

SELECT jsonb_path_query_array(body, '$.items[*].sku'), jsonb_pretty(body), jsonb_typeof(body -> 'ok'), jsonb_set(body, '{user,id}', '7') FROM events ORDER BY id

SELECT json_build_object('id', id, 'tags', tags), to_jsonb(c), row_to_json(c, true) FROM customers c ORDER BY id

SELECT jsonb_build_array(1, 'a', NULL, true), json_strip_nulls('{"a": null}'), raw -> 'a' -> 0 FROM events ORDER BY id

SELECT (body -> 'user' ->> 'id')::int + 1, CAST(body ->> 'tries' AS integer) FROM events ORDER BY id

-- arrays
SELECT (ARRAY[1, 2, 3])[2], (ARRAY[1, 2, 3])[1:2], (ARRAY[[1, 2], [3, 4]])[2][1], '{1,2}'::int[] || 3, array_length(tags, 1) FROM customers ORDER BY id

SELECT readings[1:2], readings[:2], readings[2:], readings[1] FROM events ORDER BY id

SELECT name FROM customers WHERE 'vip' = ANY (tags) AND id <> ALL ('{7,8}'::int[]) ORDER BY id

SELECT name FROM customers WHERE tags && ARRAY['vip', 'late'] AND tags @> '{vip}' ORDER BY id

SELECT ARRAY(SELECT id FROM orders o WHERE o.customer_id = c.id ORDER BY id) FROM customers c ORDER BY id

SELECT id = ANY (SELECT customer_id FROM orders), id = SOME (ARRAY[1, 2]), id > ALL (SELECT 0) FROM customers ORDER BY id

SELECT array_position(tags, 'vip'), cardinality(tags), array_to_string(tags, '|'), array_remove(tags, 'vip') FROM customers ORDER BY id

-- ranges
SELECT id, delivery @> date '2024-01-07', delivery && daterange('2024-01-01', '2024-02-29', '[]'), lower(delivery), upper_inf(delivery) FROM orders ORDER BY id

SELECT int4range(1, 5) + int4range(3, 9), int4range(1, 5) * int4range(3, 9), int4range(1, 3) -|- int4range(3, 9), int4range(1, 3) << int4range(5, 9), int4range(1, 3) &< int4range(2, 9)

SELECT '[2024-01-01,2024-02-01)'::daterange, range_agg(delivery) FROM orders

-- time
SELECT now() > placed_at, placed_at AT TIME ZONE 'Europe/Berlin', placed_at::date, extract(epoch FROM placed_at), date_part('dow', placed_at) FROM orders ORDER BY id

SELECT EXTRACT(year FROM placed_at), EXTRACT('month' FROM placed_at), EXTRACT(isodow FROM placed_at) FROM orders ORDER BY id

SELECT interval '1 day 02:03:04', INTERVAL '3' MONTH, interval '1-2' YEAR TO MONTH, INTERVAL '2 days' * 3, '1 week'::interval, interval(3) '1.23456 s'

SELECT DATE '2024-02-29' + 1, date '2024-01-31' - date '2024-01-01', TIMESTAMP '2024-01-01 00:00:00' - interval '1 second', time '12:30', TIMESTAMP WITH TIME ZONE '2024-01-01 00:00+02' AT TIME ZONE 'UTC', timestamptz '2024-01-01 00:00+00' AT TIME ZONE 'UTC'

SELECT (DATE '2024-01-01', DATE '2024-02-01') OVERLAPS (DATE '2024-01-15', DATE '2024-03-01'), ('09:00'::time, '2 hours'::interval) OVERLAPS ('10:00'::time, '11:30'::time)

SELECT to_char(placed_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI'), age(timestamp '2024-03-01', timestamp '2024-01-01'), make_date(2024, 2, 29), date_bin('15 minutes', timestamp '2024-01-01 00:20', timestamp '2001-01-01') FROM orders ORDER BY id LIMIT 1

SELECT current_date IS NOT NULL, CURRENT_TIMESTAMP(0) IS NOT NULL, localtime IS NOT NULL, current_user IS NOT NULL, session_user IS NOT NULL

-- text
SELECT name LIKE 'A%', name NOT LIKE '%\_%', name ILIKE 'ada', name LIKE '10!%%' ESCAPE '!', name SIMILAR TO '(Ada|Boris)', name NOT SIMILAR TO 'x%' FROM customers ORDER BY id

SELECT name ~ '^A', name ~* '^a', name !~ 'x$', name !~* 'X', name ~~ 'A%', name ~~* 'a%', name !~~ 'B%' FROM customers ORDER BY id

SELECT name LIKE ANY (ARRAY['A%', 'B%']), name ILIKE ALL ('{%a%,%d%}') FROM customers ORDER BY id

SELECT substring(name FROM 2 FOR 2), substring(name, 1, 1), substring(name FROM '^.'), overlay(name PLACING 'X' FROM 1 FOR 1), position('a' IN name), trim(BOTH 'A' FROM name), trim(name), btrim(name, 'A') FROM customers ORDER BY id

SELECT name || ' of ' || coalesce(city, 'nowhere'), concat_ws('-', id, name), format('%s is %L', name, city), upper(left(name, 1)), repeat('-', 3), lpad(id::text, 3, '0') FROM customers ORDER BY id

SELECT 'it''s', 'C:\dir\', E'tab\there\n\'quoted\' \\ \x41 \101 \u00e9', $$dollar 'quoted' \n$$, $q$with $$ in it$q$, U&'\0441\043B\+01F600', N'national', B'1010', X'1FF', e'\\'

-- strings go on after a line break
SELECT 'one '
  'and two' AS text

SELECT note FROM orders WHERE note = 'back\slash' OR note = '100% "sure"' OR note = '' ORDER BY id

SELECT to_tsvector('english', 'The quick brown fox') @@ to_tsquery('english', 'fox & quick'), ts_rank(to_tsvector('a b'), plainto_tsquery('a')), websearch_to_tsquery('"a b" or c'), ts_headline('english', 'the fox', to_tsquery('fox'))

SELECT to_tsquery('a') && to_tsquery('b'), !! to_tsquery('a'), to_tsvector('a b') @@@ to_tsquery('a'), to_tsquery('a') <-> to_tsquery('b')

SELECT regexp_replace(name, '(.)a', '\1*', 'g'), regexp_match(name, '(\w)$'), split_part(email, '@', 2), translate(name, 'ab', 'xy'), starts_with(name, 'A'), name ^@ 'A' FROM customers ORDER BY id

-- not understood: a side of trim without its characters
SELECT trim(LEADING FROM name) FROM customers ORDER BY id

-- casts and literals
SELECT '1'::int, CAST('1' AS bigint), int '1', 1::numeric(10, 2)::text, '{1,2}'::int[], 'x'::varchar(3), 'y'::"char", 'z'::character varying, 1.5::float8, 1::double precision, '1'::pg_catalog.int4, bpchar 'q'

SELECT 'open'::status, status::text, total::money::text, id::oid, 'orders'::regclass::text, '00:00'::time(0), '2024-01-01'::timestamp without time zone FROM orders ORDER BY orders.id

SELECT 1e3, .5, 5., 1.5e-3, 0.1 + 0.2, 7 / 2, 7 % 3, 2 ^ 10, |/ 25.0, ||/ 27.0, @ -5, ~ 5, 5 & 3, 5 | 3, 5 # 3, 1 << 4, 256 >> 2

SELECT - -1, -(-1), 1 - -1, 1--1
, + 2, - (2 ^ 2), -2 ^ 2, 2 ^ -1, NOT true, NOT NOT true, not (1 = 2) is true

SELECT 1+2*3-4/2, (1+2)*3, 2*(3+4)^2, 10-4-3, 2^3^2, 8/4/2, (1 < 2) = true, 'a' || 1 + 2 || 'b'

SELECT true AND NOT false OR false, 1 = 1 IS TRUE, NULL IS NULL, 1 IS DISTINCT FROM NULL, 1 IS NOT DISTINCT FROM 1, (1 > 2) IS NOT TRUE, NULL::boolean IS UNKNOWN, 1 NOTNULL, NULL ISNULL

SELECT 5 BETWEEN 1 AND 10, 5 NOT BETWEEN 6 AND 10 AND true, 3 BETWEEN SYMMETRIC 10 AND 1, 1 IN (1, 2), 3 NOT IN (1, 2), (1, 2) IN ((1, 2), (3, 4))

SELECT (1, 2) < (1, 3), ROW(1, 'a') = ROW(1, 'a'), ROW(1, NULL) IS NULL, (1, 2) IS NOT DISTINCT FROM (1, 2), ROW(1, 2) <= (1, 2)

SELECT CASE WHEN total > 100 THEN 'big' WHEN total > 50 THEN 'middle' ELSE 'small' END, CASE status WHEN 'open' THEN 1 ELSE 0 END, coalesce(note, '-'), nullif(note, ''), greatest(1, 2), least(total, 50) FROM orders ORDER BY id

SELECT id FROM orders WHERE (customer_id, status) = (1, 'paid') OR EXISTS (SELECT 1 FROM items i WHERE i.order_id = orders.id AND i.quantity > 4) ORDER BY id

SELECT (SELECT max(total) FROM orders), (SELECT name FROM customers WHERE id = 1), EXISTS (SELECT FROM events)

SELECT 1 OPERATOR(pg_catalog.+) 2, 'a' OPERATOR(pg_catalog.||) 'b'

SELECT name COLLATE "C" < 'B' COLLATE "C" FROM customers ORDER BY name COLLATE "POSIX" DESC

SELECT make_interval(days => 3, hours => 4), make_interval(0, 1, hours => 2)

-- the old spelling of named arguments
SELECT make_interval(days := 3)

SELECT format('%s %s', VARIADIC ARRAY['a', 'b']), jsonb_extract_path_text(body, VARIADIC ARRAY['user', 'name']) FROM events ORDER BY id

SELECT inet '192.168.1.5' << inet '192.168.1.0/24', host(address), masklen(address), address & '255.0.0.0' FROM events WHERE family(address) = 4 ORDER BY id

SELECT token, payload, encode(payload, 'hex'), get_byte(payload, 0), md5('x'), sha256('x'), gen_random_uuid() IS NOT NULL FROM events ORDER BY id

SELECT point '(1,2)' <-> point '(4,6)', box '((0,0),(1,1))' && box '((1,1),(2,2))', circle '((0,0),1)' @> point '(0.5,0)', lseg '((0,0),(1,1))' ?# lseg '((0,1),(1,0))', @@ circle '((1,2),1)', # path '((1,0),(0,1))', point '(1,1)' <@ box '((0,0),(2,2))', @-@ path '((0,0),(1,0))'

-- limits
SELECT id FROM orders ORDER BY id LIMIT 2 OFFSET 1

SELECT id FROM orders ORDER BY id OFFSET 1 ROW FETCH NEXT 2 ROWS ONLY

SELECT id, total FROM orders ORDER BY status FETCH FIRST 2 ROWS WITH TIES

SELECT id FROM orders ORDER BY id OFFSET 1 LIMIT 2

SELECT id FROM orders ORDER BY total DESC NULLS LAST, id ASC LIMIT ALL

-- an order by an operator
SELECT id FROM orders ORDER BY total USING > LIMIT (SELECT 2)

SELECT count(*) <= 5 FROM orders TABLESAMPLE BERNOULLI (50) REPEATABLE (1)

SELECT count(*) FROM orders TABLESAMPLE SYSTEM (100)

SELECT * FROM ONLY customers ORDER BY id

SELECT ceil(total), floor(total), substr(note, 1), substr(note, 2, 3), substring(note, 2), substring(note FOR 2) FROM orders ORDER BY id

SELECT convert('abc'::bytea, 'UTF8', 'LATIN1'), substring(note FROM 2), trim(note), extract(year FROM placed_at) FROM orders ORDER BY id

SELECT count(*) FROM ONLY (customers) c JOIN ONLY public.orders AS o ON o.customer_id = c.id, ONLY items

-- the catalog itself
SELECT relname, pg_get_expr(d.adbin, d.adrelid) FROM pg_class c JOIN pg_attrdef d ON d.adrelid = c.oid WHERE relnamespace = 'public'::regnamespace ORDER BY 1, 2

SELECT table_name, obj_description(format('%I.%I', table_schema, table_name)::regclass) FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1

SELECT pg_get_viewdef('evil_view'::regclass), pg_get_constraintdef(oid), pg_typeof(1), has_table_privilege('orders', 'SELECT') FROM pg_constraint WHERE conrelid = 'orders'::regclass ORDER BY conname

SELECT pg_size_pretty(pg_total_relation_size('orders')) IS NOT NULL, pg_relation_size('items') > 0, pg_database_size(current_database()) > 0, pg_column_size(1), current_setting('server_version_num')::int >= 150000

SELECT pg_catalog.format_type(atttypid, atttypmod), col_description(attrelid, attnum) FROM pg_catalog.pg_attribute WHERE attrelid = 'public.customers'::pg_catalog.regclass AND attnum > 0 ORDER BY attnum

SELECT datname = current_database() FROM pg_stat_database WHERE datname = current_database()

SELECT last_value, is_called FROM ticket

-- words of refused statements where they only name or say something
SELECT 'DROP TABLE customers; COPY x TO PROGRAM ''y''' AS "delete", 1 AS "insert", 2 AS update_count, 'for update' AS copy

SELECT "set_config" FROM (SELECT 1 AS "set_config") AS nextval

-- the attributes of XML elements
SELECT xmlelement(name a, xmlattributes('x' AS b), 'text'), xmlforest(1 AS one), xpath('/a/text()', '<a>1</a>'::xml)

SELECT * FROM xmltable('/r/i' PASSING xml '<r><i n="1">a</i><i n="2">b</i></r>' COLUMNS n int PATH '@n', v text PATH '.')

SELECT GREATEST(1, 2), "left"('abc', 2), pg_catalog.lower('A'), "pg_catalog"."upper"('a')

SELECT id, txid FROM (SELECT id, xmin::text::bigint > 0 AS txid, ctid IS NOT NULL, tableoid::regclass::text FROM orders) x ORDER BY id

SELECT count(*) FROM orders WHERE placed_at >= date_trunc('day', timestamptz '2024-02-10 12:00+00') AND placed_at < '2024-03-01'::timestamptz AND status NOT IN ('cancelled') AND (note IS NULL OR length(note) > 3)

WITH monthly AS (SELECT date_trunc('month', placed_at AT TIME ZONE 'UTC') AS month, sum(total) AS total FROM orders GROUP BY 1)
SELECT month, total, total - lag(total) OVER (ORDER BY month) AS change, round(100.0 * total / sum(total) OVER (), 1) AS share FROM monthly ORDER BY month

SELECT i.product, sum(i.quantity * i.price)::numeric(10, 2) AS revenue, rank() OVER (ORDER BY sum(i.quantity * i.price) DESC) FROM items i GROUP BY i.product HAVING sum(i.quantity) > 0 ORDER BY revenue DESC, 1 FETCH FIRST ROW ONLY

SELECT * FROM customers WHERE name = 'Robert''); DROP TABLE customers;--'

-- odd but plain: signs and operators without spaces
SELECT 5% -2, 3<>-1, 2*-3, 7-+-1, 1!= -1, 4>=-4, 10/-5, 2^ -1, 1<-1, 1=-1

SELECT body->'items'->-1->>'sku', body->'user'->>'name'||'!' FROM events ORDER BY id

SELECT 1/* between */+/* words */2 AS n--end

-- a name that is also a type, a function and a word
SELECT date, text, value, name, position FROM (VALUES (1, 2, 3, 4, 5)) AS v (date, text, value, name, position)

SELECT q.left, "left" FROM (SELECT 2 AS "left") AS q ("left")

-- needs: PostGIS
SELECT name, ST_Distance(geom::geography, ST_SetSRID(ST_MakePoint($1, $2), 4326)::geography) AS metres FROM places WHERE ST_DWithin(geom, ST_GeomFromText('POINT(0 0)', 4326), 0.1) AND geom && ST_MakeEnvelope(0, 0, 1, 1, 4326) ORDER BY geom <-> ST_Point(0, 0) LIMIT 5

-- needs: PostGIS
SELECT (d).path, ST_AsGeoJSON((d).geom) FROM (SELECT ST_Dump(geom) AS d FROM places) AS x

-- needs: PostGIS
SELECT p.id, d.geom FROM places p, LATERAL ST_DumpPoints(p.geom) AS d

-- needs: PostGIS
SELECT count(*) FROM places a JOIN areas b ON ST_Contains(b.geom, a.geom) WHERE a.geom ~ b.geom OR a.geom @ b.geom OR a.geom |>> b.geom OR a.geom &<| b.geom OR a.geom ~= b.geom

-- needs: pgvector
SELECT id, embedding <-> '[1,2,3]' AS l2, embedding <=> '[1,2,3]'::vector AS cosine, embedding <#> $1::vector AS inner_product, embedding <+> '[1,2,3]' FROM documents ORDER BY embedding <-> '[1,2,3]' LIMIT 5

-- needs: pg_trgm
SELECT name, similarity(name, 'word'), name <-> 'word', 'word' <% name FROM customers WHERE name % 'word' ORDER BY 2 DESC

-- needs: hstore
SELECT attributes -> 'colour', attributes ? 'size', (each(attributes)).key FROM products, each(attributes) AS e (k, v) WHERE attributes @> 'a=>1'

-- needs: PostgreSQL 17
SELECT * FROM JSON_TABLE('[{"a": 1}]'::jsonb, '$[*]' COLUMNS (a INT PATH '$.a')) AS t

-- needs: PostgreSQL 16
SELECT 1_000_000, 0x1F, any_value(id) FROM orders

-- needs: parameters
SELECT * FROM orders WHERE customer_id = $1 AND status = ANY ($2) LIMIT $3

-- functions of the database
SELECT month, revenue FROM report(2024) ORDER BY month

SELECT r.month, c.name FROM customers c CROSS JOIN LATERAL public.report(2020 + c.id) AS r ORDER BY 1, 2

SELECT c.label, label(c) FROM customers c ORDER BY id

-- scalar functions in FROM
SELECT o.id, q FROM orders o, plainto_tsquery('sofa') q WHERE to_tsvector(o.note) @@ q

SELECT day, half, name FROM date_trunc('day', timestamp '2024-02-29 12:00') AS day, round(2.5) AS half, upper('ada') name

-- all fields of a row
SELECT (c).* FROM customers c ORDER BY id

SELECT (jsonb_populate_record(NULL::customers, '{"id": 9, "name": "Eve"}')).*

SELECT (x.c).*, 2 * id FROM (SELECT c, id FROM customers c) x ORDER BY id

WITH RECURSIVE t (n) AS (VALUES (1) UNION ALL SELECT n % 3 + 1 FROM t) CYCLE n SET is_cycle USING path SELECT n, is_cycle FROM t ORDER BY path

WITH RECURSIVE t (n) AS (VALUES (1) UNION ALL SELECT n % 3 + 1 FROM t) SEARCH BREADTH FIRST BY n SET place CYCLE n SET again TO 'y' DEFAULT 'n' USING path SELECT n, again FROM t ORDER BY place

SELECT name FROM customers ORDER BY name USING OPERATOR(pg_catalog.~<~), id

SELECT id, count(*) OVER (w ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE GROUP) FROM orders WINDOW w AS (PARTITION BY status ORDER BY id) ORDER BY id

SELECT xmlelement(name customer, xmlattributes(c.id, c.name AS "full name"), xmlforest(c.city AS place, c.tags)) FROM customers c ORDER BY id

-- a column named rows
SELECT rows FROM (SELECT count(*) AS rows FROM orders) x
