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

-- pg_tables, pg_class and pg_namespace
SELECT tablename FROM pg_catalog.pg_tables WHERE schemaname = 'public' AND tablename LIKE 'air%s' ORDER BY tablename;
SELECT schemaname, tablename FROM pg_tables
WHERE schemaname NOT IN ('pg_catalog', 'information_schema') AND tablename IN ('flights', 'events') ORDER BY 2;
SELECT n.nspname AS "Schema", c.relname AS "Name",
  CASE c.relkind WHEN 'r' THEN 'table' WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' WHEN 'i' THEN 'index'
    WHEN 'S' THEN 'sequence'
    WHEN 't' THEN 'TOAST table' WHEN 'f' THEN 'foreign table' WHEN 'p' THEN 'partitioned table'
    WHEN 'I' THEN 'partitioned index' END AS "Type"
FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', '') AND n.nspname <> 'pg_catalog' AND n.nspname !~ '^pg_toast'
  AND n.nspname <> 'information_schema'
  AND pg_catalog.pg_table_is_visible(c.oid) AND c.relname IN ('airlines', 'flights') ORDER BY 1, 2;
SELECT n.nspname, c.relname FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relname OPERATOR(pg_catalog.~) '^(airlines)$' AND pg_catalog.pg_table_is_visible(c.oid) ORDER BY 1, 2;
SELECT pg_catalog.pg_class.relname FROM pg_catalog.pg_class
JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace
WHERE pg_catalog.pg_class.relkind = ANY (ARRAY['r', 'p']) AND pg_catalog.pg_table_is_visible(pg_catalog.pg_class.oid)
  AND pg_catalog.pg_namespace.nspname != 'pg_catalog' AND pg_catalog.pg_class.relname LIKE 'air%s' ORDER BY 1;
SELECT nspname FROM pg_catalog.pg_namespace
WHERE nspname NOT LIKE 'pg\_%' AND nspname IN ('public', 'information_schema') ORDER BY nspname;
SELECT n.nspname = ANY (current_schemas(true)) AS visible, n.nspname FROM pg_catalog.pg_namespace n
WHERE n.nspname IN ('public', 'pg_catalog') ORDER BY 2;

-- pg_attribute and pg_type
SELECT a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod) AS type FROM pg_catalog.pg_attribute a
WHERE a.attrelid = 'public.planes'::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum;
SELECT a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod),
  (SELECT pg_catalog.pg_get_expr(d.adbin, d.adrelid, true) FROM pg_catalog.pg_attrdef d
   WHERE d.adrelid = a.attrelid AND d.adnum = a.attnum AND a.atthasdef), a.attidentity, a.attgenerated
FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
WHERE c.relname = 'airlines' AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum;
SELECT c.relname, a.attname, t.typname, a.attnum FROM pg_catalog.pg_attribute a
JOIN pg_catalog.pg_class c ON c.oid = a.attrelid JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'public' AND c.relname IN ('airlines', 'airports') AND a.attnum > 0 ORDER BY c.relname, a.attnum;
SELECT oid, typname, typlen, typtype, typcategory FROM pg_catalog.pg_type
WHERE typname IN ('bool', 'int2', 'int4', 'int8', 'float4', 'float8', 'numeric', 'text', 'varchar', 'date',
  'timestamp', 'timestamptz', 'bytea') ORDER BY oid;
SELECT t.typname, e.typname AS element FROM pg_catalog.pg_type t JOIN pg_catalog.pg_type e ON e.oid = t.typelem
WHERE t.typname IN ('_int4', '_text', '_float8') ORDER BY t.typname;
SELECT format_type(23, NULL), format_type(1043, 44), format_type(1700, 786438) AS n, format_type(1184, -1) AS tz,
  format_type(1009, NULL) AS a, format_type(25, NULL);
SELECT nspname AS "TABLE_SCHEM", NULL AS "TABLE_CATALOG" FROM pg_catalog.pg_namespace WHERE nspname = 'public'
ORDER BY "TABLE_SCHEM";
SELECT n.nspname AS "TABLE_SCHEM", c.relname AS "TABLE_NAME", a.attname AS "COLUMN_NAME", t.typname AS "TYPE_NAME",
  row_number() OVER (PARTITION BY a.attrelid ORDER BY a.attnum) AS "ORDINAL_POSITION"
FROM pg_catalog.pg_namespace n JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid
JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid
JOIN pg_catalog.pg_type t ON a.atttypid = t.oid
WHERE c.relkind IN ('r', 'p', 'v', 'f', 'm') AND a.attnum > 0 AND NOT a.attisdropped AND n.nspname LIKE 'public'
  AND c.relname LIKE 'planes'
ORDER BY "TABLE_SCHEM", "TABLE_NAME", "ORDINAL_POSITION";

-- settings and the session
SELECT current_schema() AS schema, current_setting('TimeZone') AS zone,
  current_setting('server_version_num')::int >= 150000 AS at_least_15;
SELECT pg_typeof(1) AS i, pg_typeof(1.5) AS n, pg_typeof('x'::text) AS t, pg_typeof(now()) AS tz,
  pg_typeof(ARRAY[1]) AS a, pg_typeof(NULL) AS unknown;
SELECT version() LIKE 'PostgreSQL%' AS is_postgres, pg_is_in_recovery() AS standby;
SELECT 'flights'::regclass::text AS name, to_regclass('public.no_such_table') IS NULL AS missing,
  to_regclass('public.airlines') IS NOT NULL AS there;
SELECT count(*) FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indrelid
WHERE c.relname = 'airlines' AND i.indisprimary;
SELECT count(*) FROM pg_catalog.pg_constraint r JOIN pg_catalog.pg_class c ON c.oid = r.conrelid
WHERE c.relname = 'flights' AND r.contype = 'f';
SELECT obj_description(c.oid, 'pg_class') AS comment FROM pg_catalog.pg_class c
WHERE c.relname = 'flights' AND c.relkind = 'r';
SELECT col_description(c.oid, 1) FROM pg_catalog.pg_class c WHERE c.relname = 'airlines' AND c.relkind = 'r';
SHOW server_encoding;
SELECT name FROM pg_catalog.pg_settings WHERE name IN ('TimeZone', 'DateStyle') ORDER BY name;

-- as psql, JDBC and SQLAlchemy write it
SELECT n.nspname, c.relname FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relname OPERATOR(pg_catalog.~) '^(planes)$' COLLATE pg_catalog.default
  AND pg_catalog.pg_table_is_visible(c.oid) ORDER BY 2, 1;
SELECT c.relchecks, c.relkind, c.relhasindex, c.relrowsecurity, false AS relhasoids, c.relispartition,
  pg_catalog.array_to_string(c.reloptions || array(SELECT 'toast.' || x FROM pg_catalog.unnest(tc.reloptions) x), ', '),
  CASE WHEN c.reloftype = 0 THEN '' ELSE c.reloftype::pg_catalog.regtype::pg_catalog.text END, c.relpersistence, am.amname
FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_class tc ON (c.reltoastrelid = tc.oid)
LEFT JOIN pg_catalog.pg_am am ON (c.relam = am.oid) WHERE c.oid = 'planes'::regclass;
SELECT c.oid::pg_catalog.regclass, c.relkind, inhdetachpending, pg_catalog.pg_get_expr(c.relpartbound, c.oid)
FROM pg_catalog.pg_class c, pg_catalog.pg_inherits i WHERE c.oid = i.inhrelid AND i.inhparent = '16388'
ORDER BY pg_catalog.pg_get_expr(c.relpartbound, c.oid) = 'DEFAULT', c.oid::pg_catalog.regclass::pg_catalog.text;
SELECT typname, typinput = 'pg_catalog.array_in'::regproc AS is_array, typtype, pg_type.oid
FROM pg_catalog.pg_type LEFT JOIN (SELECT ns.oid AS nspoid, ns.nspname, r.r FROM pg_namespace AS ns
  JOIN (SELECT s.r, (current_schemas(false))[s.r] AS nspname
    FROM generate_series(1, array_upper(current_schemas(false), 1)) AS s(r)) AS r USING (nspname)) AS sp
  ON sp.nspoid = typnamespace WHERE pg_type.oid = 1009 ORDER BY sp.r, pg_type.oid DESC;
SELECT i.relname, a.attname, ix.indisunique FROM pg_class t, pg_class i, pg_index ix, pg_attribute a
WHERE t.oid = ix.indrelid AND i.oid = ix.indexrelid AND a.attrelid = t.oid AND a.attnum = ANY (ix.indkey)
  AND t.relname = 'flights' ORDER BY 1;

-- oids as names
SELECT 'flights'::regclass, to_regclass('flights'), to_regtype('int4'), 23::regtype, 'int4'::regtype::oid;
SELECT a.atttypid::regtype, pg_typeof(a.attnum) FROM pg_attribute a
WHERE a.attrelid = 'planes'::regclass AND attnum BETWEEN 1 AND 2 ORDER BY attnum;
SELECT relname, relnamespace::regnamespace, relnamespace::regnamespace::text = 'public' AS is_public FROM pg_class
WHERE relname IN ('planes', 'flights') ORDER BY relname;
SELECT oid::regclass::text FROM pg_class WHERE relname = 'planes' ORDER BY oid::regclass::text;
SELECT 'nothing'::regclass;
SELECT has_table_privilege('flights', 'SELECT'), has_schema_privilege('public', 'usage'),
  has_table_privilege(current_user, 'flights', 'select');
SELECT current_setting('nothing', true), current_setting('datestyle');
SELECT pg_typeof(length('a')) AS a, pg_typeof(coalesce(1, 2.5)) AS b, pg_typeof(CASE WHEN true THEN 1 END) AS c,
  pg_typeof(1::real + 1) AS d, pg_typeof(5 % 2) AS e, pg_typeof((SELECT 1)) AS f, pg_typeof(-3) AS g,
  pg_typeof(ARRAY[1.5, 2]) AS h, pg_typeof(2 ^ 3) AS i, pg_typeof('a'::varchar(3)) AS j;
SELECT pg_size_pretty(10239::bigint) AS a, pg_size_pretty(10240::bigint) AS b, pg_size_pretty(20971519::bigint) AS c,
  pg_size_pretty(123456789012::bigint) AS d, pg_size_pretty(-5000000::bigint) AS e;
