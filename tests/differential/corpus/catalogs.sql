-- What clients ask of the catalogs, with the rows and columns that both sides can have alike.

-- information_schema
SELECT table_name FROM information_schema.tables
WHERE table_schema = 'public' AND table_name IN ('airlines', 'flights', 'orders') ORDER BY table_name;
SELECT table_schema, table_name, table_type FROM information_schema.tables
WHERE table_schema = 'public' AND table_type = 'BASE TABLE'
  AND table_name IN ('airlines', 'airports', 'flights', 'planes', 'weather') ORDER BY 1, 2;
SELECT column_name FROM information_schema.columns WHERE table_schema = 'public' AND table_name = 'flights'
ORDER BY ordinal_position;
SELECT column_name, data_type, udt_name FROM information_schema.columns
WHERE table_schema = 'public' AND table_name = 'airports' ORDER BY ordinal_position;
SELECT table_name, column_name, ordinal_position, data_type FROM information_schema.columns
WHERE table_schema = 'public' AND table_name IN ('airlines', 'planes') ORDER BY table_name, ordinal_position;
SELECT column_name, data_type, numeric_precision, numeric_scale, datetime_precision FROM information_schema.columns
WHERE table_schema = 'public' AND table_name = 'employees' ORDER BY ordinal_position;
SELECT data_type, count(*) AS n FROM information_schema.columns
WHERE table_schema = 'public' AND table_name = 'weather' GROUP BY data_type ORDER BY n DESC, data_type;
SELECT t.table_name, count(c.column_name) AS columns FROM information_schema.tables t
JOIN information_schema.columns c ON c.table_schema = t.table_schema AND c.table_name = t.table_name
WHERE t.table_schema = 'public' AND t.table_name IN ('flights', 'weather', 'planes') GROUP BY t.table_name
ORDER BY t.table_name;
SELECT table_name FROM information_schema.columns
WHERE table_schema = 'public' AND column_name = 'carrier' AND table_name IN ('airlines', 'flights', 'planes')
ORDER BY 1;
SELECT schema_name FROM information_schema.schemata WHERE schema_name IN ('public', 'information_schema', 'pg_catalog')
ORDER BY schema_name;
SELECT count(*) AS keys FROM information_schema.table_constraints
WHERE table_schema = 'public' AND table_name = 'airlines' AND constraint_type = 'PRIMARY KEY';
SELECT count(*) FROM information_schema.tables WHERE table_schema = 'public' AND table_name = 'no_such_table';
SELECT EXISTS (SELECT FROM information_schema.tables
  WHERE table_schema = 'public' AND table_name = 'flights') AS "exists";

-- pg_tables and pg_views
SELECT tablename FROM pg_catalog.pg_tables WHERE schemaname = 'public' AND tablename LIKE 'air%s' ORDER BY tablename;
SELECT schemaname, tablename FROM pg_tables
WHERE schemaname NOT IN ('pg_catalog', 'information_schema') AND tablename IN ('flights', 'events') ORDER BY 2;
SELECT count(*) FROM pg_views WHERE schemaname = 'public' AND viewname = 'no_such_view';

-- settings and the session
SELECT current_schema() AS schema, current_setting('TimeZone') AS zone,
  current_setting('server_version_num')::int >= 150000 AS at_least_15;
SELECT version() LIKE 'PostgreSQL%' AS is_postgres, pg_catalog.current_schema() AS schema;
SELECT current_setting('nothing', true), current_setting('datestyle');
SELECT current_setting('nothing');
SELECT 'public' = ANY (current_schemas(true)) AS visible, current_schemas(false)::text[] AS schemas;
SHOW server_encoding;

-- types
SELECT pg_typeof(1) AS i, pg_typeof(1.5) AS n, pg_typeof('x'::text) AS t, pg_typeof(now()) AS tz,
  pg_typeof(ARRAY[1]) AS a, pg_typeof(NULL) AS unknown;
SELECT pg_typeof(length('a')) AS a, pg_typeof(coalesce(1, 2.5)) AS b, pg_typeof(CASE WHEN true THEN 1 END) AS c,
  pg_typeof(1::real + 1) AS d, pg_typeof(5 % 2) AS e, pg_typeof((SELECT 1)) AS f, pg_typeof(-3) AS g,
  pg_typeof(ARRAY[1.5, 2]) AS h, pg_typeof(2 ^ 3) AS i, pg_typeof('a'::varchar(3)) AS j;
SELECT pg_typeof(1) = 'int4' AS a, 'int[]' = pg_typeof(ARRAY[1]) AS b, pg_typeof('a'::text) IN ('text', 'int8') AS c;
SELECT pg_size_pretty(10239::bigint) AS a, pg_size_pretty(10240::bigint) AS b, pg_size_pretty(20971519::bigint) AS c,
  pg_size_pretty(123456789012::bigint) AS d, pg_size_pretty(-5000000::bigint) AS e;
SELECT pg_typeof(ARRAY['a']::varchar[]), pg_typeof('{a}'::varchar(3)[]), pg_typeof('{{a}}'::varchar[][]), pg_typeof(ARRAY['a']::text[]::varchar[]),
  pg_typeof(pg_typeof(0)), pg_typeof(pg_typeof('a'::varchar)), pg_typeof('{1,2}'::int[]);
