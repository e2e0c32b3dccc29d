-- Text functions, literals and byte strings.

-- substring
SELECT substring('Tidegate' FROM 2 FOR 3) AS part;
SELECT substring('Tidegate' FROM 5) AS part;
SELECT substring('Tidegate' FOR 4) AS part;
SELECT substring('Tidegate' FROM -1 FOR 4) AS part;
SELECT substring('Tidegate' FROM 0 FOR 1) AS part;
SELECT substring('Tidegate', 3), substr('Tidegate', 3, 2);
SELECT substr('Tidegate', -2, 5) AS a, substr('Tidegate', 7, 100) AS b, substr('Tidegate', 20) AS c;
-- fails
SELECT substring('Tidegate' FROM 2 FOR -1) AS part;
SELECT substring('flight 1545 to MIA' FROM '[0-9]+') AS flight;
SELECT substring('flight 1545 to MIA' FROM '([0-9]+) to ([A-Z]+)') AS first_group;
SELECT substring('no digits here' FROM '[0-9]+') AS nothing;
SELECT substring('abc-123-def' SIMILAR '%-#"[0-9]+#"-%' ESCAPE '#') AS middle;
SELECT substring('abc-123-def' FROM '%-#"[0-9]+#"-%' FOR '#') AS middle;
SELECT substring('Thomas' FROM '...$');
SELECT substring(name FROM '^[A-Za-z]+') AS first_word, count(*) AS n
FROM airlines GROUP BY 1 ORDER BY min(carrier);
SELECT tailnum, substring(tailnum FROM '[A-Z]+$') AS suffix FROM planes WHERE tailnum IS NOT NULL
ORDER BY tailnum LIMIT 12;
SELECT left(carrier, 1) AS initial, count(*) FROM airlines GROUP BY left(carrier, 1) ORDER BY initial;
SELECT substring('Zürich Łódź' FROM 2 FOR 7) AS part, substring('日本語テキスト' FROM 3 FOR 2) AS kanji;

-- position
SELECT position('gate' IN 'Tidegate') AS found, position('x' IN 'Tidegate') AS missing,
  position('' IN 'Tidegate') AS blank;
SELECT strpos('Tidegate', 'e') AS first_e, strpos('Tidegate', ''), strpos('', 'a'), strpos(NULL, 'a');
SELECT position('ü' IN 'Grüße'), strpos('日本語', '語');
SELECT name, position(' ' IN name) AS first_space FROM airlines ORDER BY carrier;

-- overlay
SELECT overlay('Txxxxgate' PLACING 'ide' FROM 2 FOR 4) AS fixed;
SELECT overlay('2013-01-01' PLACING '2014' FROM 1) AS next_year;
SELECT overlay('abcdef' PLACING 'XYZ' FROM 3 FOR 0) AS inserted, overlay('abcdef' PLACING '' FROM 3 FOR 2) AS removed;
SELECT overlay('abcdef' PLACING 'XYZ' FROM 6 FOR 10);
-- fails
SELECT overlay('abcdef' PLACING 'XYZ' FROM 0 FOR 2);

-- trim
SELECT '[' || trim('  a b  ') || ']' AS both_sides, '[' || ltrim('  a b  ') || ']' AS l,
  '[' || rtrim('  a b  ') || ']' AS r;
SELECT trim(both 'xy' FROM 'xyyTidegatexyx') AS a, trim(leading 'x' FROM 'xxTidex') AS b,
  trim(trailing 'x' FROM 'xTidexx') AS c;
SELECT trim('xy' FROM 'yxTidexy') AS a, trim(FROM '  tide ') AS b, trim(both FROM '  tide  ') AS c;
SELECT btrim('--abc--', '-'), ltrim('zzzytest', 'xyz'), rtrim('testxxzx', 'xyz'), btrim('  x  ');
SELECT trim(E'\t\n tab \n') = E'\t\n tab \n' AS "only spaces are trimmed", length(trim(E' \t ')) AS left_over;
SELECT btrim('ÄÖtextÖÄ', 'ÖÄ') AS umlauts, btrim('aaa', 'a') AS nothing, btrim('abc', '') AS same;
SELECT trim(leading '0' FROM '000120') AS number_text, ltrim('00', '0') = '' AS empty;

-- lpad, rpad
SELECT lpad('7', 3, '0') AS a, lpad('12345', 3, '0') AS b, lpad('abc', 8, 'xy') AS c, lpad('abc', 5) AS d;
SELECT '[' || rpad('7', 3) || ']', rpad('12345', 3, '0'), rpad('abc', 8, 'xy');
SELECT lpad('abc', 0, 'x') AS zero, lpad('abc', -5, 'x') AS negative, lpad('abc', 6, '') AS no_fill,
  rpad('', 3, 'ab') AS fill;
SELECT lpad('日本', 5, '語') AS wide, rpad('é', 3, 'ü');
SELECT lpad(dep_time::text, 4, '0') AS clock, count(*) AS n
FROM flights WHERE dep_time < 30 AND origin = 'JFK' GROUP BY dep_time ORDER BY clock LIMIT 10;
SELECT lpad(NULL, 3, 'x') AS a, lpad('a', NULL, 'x') AS b, rpad('a', 3, NULL) AS c;

-- left, right
SELECT left('Tidegate', 4), left('Tidegate', -2), left('Tidegate', 0), left('Tidegate', 100), left('Tidegate', -100);
SELECT right('Tidegate', 4) AS a, right('Tidegate', -2) AS b, right('Tidegate', 0) AS c, right('Tidegate', 100) AS d,
       right('Tidegate', -100) AS e;
SELECT left('Łódź', 2) AS l, right('Łódź', 1) AS r, left(NULL, 2) AS n;
SELECT DISTINCT left(tailnum, 2) AS prefix FROM planes WHERE left(tailnum, 1) = 'N' ORDER BY prefix;

-- split_part
SELECT split_part('a,b,c', ',', 1) AS one, split_part('a,b,c', ',', 3) AS three, split_part('a,b,c', ',', 4) AS four;
SELECT split_part('a,b,c', ',', -1) AS last, split_part('a,b,c', ',', -3) AS first,
  split_part('a,b,c', ',', -4) AS none;
SELECT split_part('a::b::c', '::', 2), split_part('abc', '', 1), split_part('abc', '', 2), split_part('', ',', 1);
SELECT split_part('America/New_York', '/', 2) AS city, split_part(NULL, '/', 1) AS nothing;
-- fails
SELECT split_part('a,b', ',', 0);
SELECT split_part(tzone, '/', 1) AS region, count(*) AS n FROM airports
WHERE tzone IS NOT NULL GROUP BY 1 ORDER BY n DESC, region;
SELECT split_part(name, ' ', -1) AS last_word, count(*) FROM airlines GROUP BY 1 ORDER BY 2 DESC, 1;

-- replace, translate, initcap, reverse, repeat
SELECT replace('banana', 'an', 'AN') AS a, replace('banana', '', 'x') AS b, replace('banana', 'a', '') AS c,
       replace('banana', 'A', 'x') AS d;
SELECT replace(NULL, 'a', 'b'), replace('a', NULL, 'b'), replace('a', 'a', NULL);
SELECT translate('12345', '143', 'ax') AS a, translate('banana', 'abn', 'oBN') AS b, translate('a.b,c', '.,', '') AS c;
SELECT translate('(212) 555-0100', '() -', '') AS digits, translate('äöü', 'äöü', 'aou') AS plain;
SELECT initcap('hello WORLD of sQL') AS a, initcap('smith-jones 2nd') AS b, initcap('') AS c,
  initcap('élan vital') AS d;
SELECT reverse('Tidegate') AS a, reverse('') AS b, reverse('aé日') AS c, reverse(NULL) AS d;
SELECT repeat('ab', 3) AS a, repeat('ab', 0) AS b, repeat('ab', -1) AS c, repeat('', 5) AS d;
SELECT repeat('*', (count(*) / 500)::int) AS bar, origin FROM flights GROUP BY origin ORDER BY origin;
SELECT initcap(lower(name)) AS name FROM airlines WHERE carrier IN ('EV', 'UA', 'US') ORDER BY carrier;

-- format
SELECT format('Hello %s, %s', 'World', 42) AS a, format('100%%') AS b;
SELECT format('%I', 'plain'), format('%I', 'Two Words'), format('%I', 'select'), format('%L', 'O''Neill'),
  format('%L', NULL);
SELECT format('%2$s before %1$s', 'one', 'two') AS swapped, format('%1$s %1$s %s', 'a', 'b') AS mixed;
SELECT format('|%10s|', 'right') AS r, format('|%-10s|', 'left') AS l, format('|%*s|', 7, 'star') AS star,
       format('|%-*s|', 7, 'star') AS minus;
SELECT format('|%*2$s|', 'ignored', 8, 'x') AS from_position, format('|%2$*1$s|', 6, 'y') AS both_positions;
SELECT format('%s', NULL) AS nothing, format('%s|%s', 'a', NULL) AS half, format(NULL) AS whole;
SELECT format('%s %s', 1.50, true), format('%s', ARRAY[1, 2]), format('%s', date '2013-01-31');
SELECT format('INSERT INTO %I VALUES (%L, %L)', 'airlines', carrier, name) AS statement
FROM airlines WHERE carrier IN ('9E', 'AA') ORDER BY carrier;
-- fails
SELECT format('%s %s', 'one');
-- fails
SELECT format('%I', NULL);

-- concatenation
SELECT 'a' || 'b' AS a, 'a' || NULL AS b, 'n=' || 42 AS c, 1 || 'x' AS d, 'd: ' || date '2013-01-31' AS e;
SELECT 'v' || 1.50 || true AS mixed, 'v' || 1::numeric(5, 2), 'f' || 0.5::float8;
SELECT concat('a', NULL, 1, true, 2.50) AS a, concat(NULL) AS b, concat('', '') AS c, concat(NULL, NULL) = '' AS d;
SELECT concat_ws(', ', 'a', NULL, 'b', '', 3) AS a, concat_ws(NULL, 'a', 'b') AS b, concat_ws('-', NULL, NULL) AS c,
       concat_ws('', 'x', 'y') AS d;
SELECT concat_ws('/', year, month, day) AS d, count(*) FROM flights
WHERE month = 1 AND day <= 3 GROUP BY year, month, day ORDER BY day;
SELECT concat(false, 1.0, date '2013-01-01', ARRAY['x', 'y'], interval '1 day') AS everything;
SELECT faa || ' (' || coalesce(name, '?') || ')' AS label FROM airports WHERE faa IN ('JFK', 'LGA', 'EWR')
ORDER BY label;

-- quote_*
SELECT quote_ident('plain') AS a, quote_ident('With Space') AS b, quote_ident('a"b') AS c, quote_ident('table') AS d;
SELECT quote_literal('it''s') AS a, quote_literal(42) AS b, quote_literal(E'back\\slash') AS c,
  quote_literal(NULL) AS d;
SELECT quote_nullable(NULL) AS a, quote_nullable('x') AS b, quote_nullable(1.5) AS c;

-- hashes and encodings
SELECT md5('') AS empty, md5('abc') AS abc, md5('Grüße') AS umlaut, md5(NULL) AS nothing;
SELECT md5('abc'::bytea) AS of_bytes;
SELECT sha256('abc'::bytea), sha224('abc'::bytea), encode(sha256(''::bytea), 'hex') AS empty_hex;
SELECT encode(sha512('abc'), 'hex') AS s512, encode(sha384('abc'), 'base64') AS s384;
SELECT encode('Tidegate'::bytea, 'hex') AS hex, encode('Tidegate'::bytea, 'base64') AS b64,
       encode('\x00ff41'::bytea, 'escape') AS esc;
SELECT decode('546964656761746540', 'hex') AS hex, decode('VGlkZWdhdGU=', 'base64') AS b64,
  decode('a\\b\000', 'escape') AS esc;
SELECT convert_from(decode('VGlkZWdhdGU=', 'base64'), 'UTF8') AS plain, convert_to('é', 'UTF8') AS bytes;
SELECT length(encode(decode(repeat('ab', 60), 'hex'), 'base64')) AS with_line_break;
-- fails
SELECT decode('xyz', 'hex');
-- fails
SELECT decode('abcd', 'base32');
SELECT carrier, left(md5(name), 8) AS digest FROM airlines ORDER BY carrier;
SELECT '\xDEADBEEF'::bytea AS bytes, length('\xdeadbeef'::bytea) AS n, '\x'::bytea AS empty;
SELECT 'abc\000\377'::bytea, E'\\x4142'::bytea AS ab;
SELECT '\x0102'::bytea || '\x03'::bytea AS joined, substring('\x01020304'::bytea FROM 2 FOR 2) AS part,
       get_byte('\x0a0b'::bytea, 1) AS byte, set_byte('\x0a0b'::bytea, 0, 255) AS changed;
SELECT octet_length('\x010203'::bytea), bit_length('\x010203'::bytea), position('\x03'::bytea IN '\x010203'::bytea);
SELECT b, length(b) AS n FROM (VALUES ('\x02'::bytea), ('\x0101'), ('\x01'), (NULL)) AS v (b) ORDER BY b NULLS FIRST;
SELECT trim('\x00'::bytea FROM '\x00aabb00'::bytea) AS trimmed,
  overlay('\x01020304'::bytea PLACING '\xff'::bytea FROM 2 FOR 1);

-- chr, ascii, starts_with
SELECT chr(65) AS a, chr(233) AS e, chr(8364) AS euro, chr(128512) AS face;
SELECT ascii('A'), ascii(''), ascii('é'), ascii('€'), ascii('abc');
-- fails
SELECT chr(0);
SELECT starts_with('Tidegate', 'Tide') AS yes, starts_with('Tidegate', 'tide') AS no,
  starts_with('Tidegate', '') AS blank,
       'Tidegate' ^@ 'Ti' AS operator, starts_with(NULL, 'a') AS nothing;
SELECT string_agg(chr(64 + n), '' ORDER BY n) AS alphabet FROM generate_series(1, 26) AS g (n);

-- arrays of text
SELECT string_to_array('a,b,,c', ',') AS a, string_to_array('a,b,,c', ',', '') AS b, string_to_array('', ',') AS c,
       string_to_array(NULL, ',') AS d;
SELECT string_to_array('abc', NULL) AS letters, string_to_array('abc', '') AS whole,
  string_to_array('a,-,c', ',', '-') AS nulls;
SELECT part, ordinality FROM string_to_table('x/y//z', '/') WITH ORDINALITY AS t (part, ordinality) ORDER BY ordinality;
SELECT string_to_table('a,N/A,c', ',', 'N/A') AS part;
SELECT * FROM string_to_table('red green blue', ' ') AS colour ORDER BY colour;
SELECT array_to_string(ARRAY[1, NULL, 3], ','), array_to_string(ARRAY[1, NULL, 3], ',', '*'),
  array_to_string('{}'::int[], ',');
SELECT array_to_string(ARRAY['a', 'b'], NULL) AS a, array_to_string(NULL::text[], ',') AS b,
       array_to_string(ARRAY[[1, 2], [3, 4]], '-') AS c, array_to_string(ARRAY[true, false], '|') AS d;
SELECT (string_to_array('2013-01-31', '-'))[2] AS month;
SELECT word, count(*) AS n FROM airlines, string_to_table(name, ' ') AS word
GROUP BY word HAVING count(*) > 1 ORDER BY n DESC, word;

-- lengths
SELECT length('Grüße') AS chars, char_length('日本語') AS wide, octet_length('Grüße') AS octets, bit_length('é') AS bits;
SELECT character_length('abc'), length(''), length(NULL), length('  a  '), length(E'a\nb');
SELECT length('abc  '::char(10)) AS padded, octet_length('abc'::char(5)) AS bytes, 'abc'::char(5) || '|' AS joined;
SELECT length(name) AS letters, count(*) FROM airlines GROUP BY length(name) ORDER BY 1 DESC LIMIT 5;
SELECT max(length(name)) AS longest, min(length(name)) AS shortest, round(avg(length(name)), 2) AS average
FROM airports;

-- upper, lower
SELECT upper('straße') AS a, lower('ÀÉÎÕÜ') AS b, upper('çñø') AS c, lower('ΑΒΓ') AS d, upper('привет') AS e;
SELECT upper(NULL), lower(''), upper('123abc!'), lower('MiXeD');
SELECT upper(carrier) AS code FROM airlines WHERE lower(name) LIKE '%air%' ORDER BY code;

-- literals
SELECT E'tab\there' AS a, E'line\nbreak' AS b, E'quote\'s' AS c, E'\x41\u00e9\U0001F600' AS d, E'\101' AS e,
  'no\nescape' AS f;
SELECT U&'d\0061t\+000061' AS data, U&'d!0061t!+000061' UESCAPE '!' AS bang, U&'\00e9t\00e9';
SELECT $$it's dollar quoted$$ AS a, $tag$with $$ inside$tag$ AS b, 'it''s' AS c;
SELECT 'two'
' parts' AS joined;
SELECT 'abc' AS "a ""quoted"" name", 'x' AS "Mixed Case", 'y' AS lower_case;
SELECT 'a'::varchar(1), 'abcdef'::varchar(3) AS cut, 'abc'::char(2) AS cut_char, cast('abc' AS text) AS t,
  text 'typed' AS typed;
SELECT 'a'::"char" AS one_byte, 'name'::name AS identifier;
SELECT '' IS NULL AS empty_is_null, '' = ' ' AS empty_is_space, 'a ' = 'a' AS trailing,
  'a '::char(2) = 'a'::char(2) AS padded;

-- comparison, sorting, aggregates
SELECT 'a' < 'b' AS lt, 'abc' > 'ab' AS longer, 'B' < 'a' COLLATE "C" AS bytes, greatest('b', 'a', 'c') AS g,
  least('b', NULL, 'a') AS l;
SELECT w FROM (VALUES ('b'), ('B'), ('a'), ('A'), ('é'), ('_'), ('1'), (NULL)) AS v (w)
ORDER BY w COLLATE "C" DESC NULLS LAST;
SELECT string_agg(carrier, ', ' ORDER BY carrier COLLATE "C") AS all_carriers FROM airlines;
SELECT string_agg(name, ' | ' ORDER BY carrier COLLATE "C" DESC) FILTER (WHERE name LIKE '%Air%') FROM airlines;
SELECT origin, string_agg(DISTINCT carrier, ',' ORDER BY carrier) AS carriers FROM flights GROUP BY origin
ORDER BY origin;
SELECT string_agg(x, NULL ORDER BY x) AS no_separator, string_agg(NULL::text, ',') AS nothing
FROM (VALUES ('a'), ('b')) AS v (x);
SELECT min(name) AS first, max(name) AS last FROM airlines WHERE name LIKE 'S%';
SELECT count(DISTINCT manufacturer) AS exact, count(DISTINCT upper(left(manufacturer, 4))) AS rough FROM planes;

-- casts of and to text
SELECT 42::text AS i, 1.50::text AS n, 1e20::float8::text AS f, true::text AS b, date '2013-01-31'::text AS d,
  NULL::text AS nothing;
SELECT 0.1::float8::text, 100000::float8::text, 1e15::float8::text, 1e-5::float8::text, 'NaN'::float8::text,
  '-Infinity'::float8::text;
SELECT timestamp '2013-01-31 10:00:00.120'::text AS ts, time '10:00'::text AS t, interval '1 day 02:00'::text AS i,
       timestamptz '2013-01-31 10:00:00+02'::text AS tz;
SELECT '42'::int + 1 AS a, ' 42 '::int AS spaces, '-7'::bigint AS b, '1.5'::numeric AS c, '1e3'::float8 AS d,
  'yes'::boolean AS e;
-- fails
SELECT 'forty-two'::int;
-- fails
SELECT ''::numeric;
SELECT 't'::bool, 'off'::bool, '1'::bool, 'FALSE'::bool;
SELECT to_hex(255) AS a, to_hex(-1) AS b, to_hex(4294967296) AS c;
SELECT to_char(1234567.891, 'FM9,999,999.00') AS a, to_char(0.5, '990.99') AS b, to_char(-7, '000') AS c,
  to_char(12, 'RN') AS d;
SELECT parse_ident('"Some Schema".table_name') AS parts, normalize(U&'\0061\0301', NFC) = 'á' AS same,
       'abc' IS NORMALIZED AS normal;
SELECT regexp_replace(initcap(translate(name, '.', '')), '\s+(Inc|Co|Corporation)$', '') AS short_name
FROM airlines ORDER BY short_name;
SELECT CASE WHEN char_length(tailnum) = 6 THEN 'six' ELSE 'other' END AS kind, count(*) AS n FROM planes GROUP BY 1
ORDER BY 1;
SELECT faa, name FROM airports WHERE length(name) > 24 AND name LIKE '%Intl%' ORDER BY faa LIMIT 10;
SELECT nullif(trim('   '), '') AS blank_to_null, coalesce(nullif('', ''), 'default') AS with_default;
SELECT unistr('\00e9\+01F600') AS from_escapes, casefold FROM (VALUES (lower('ẞ'))) AS v (casefold);
SELECT string_agg(substr('stressed', n, 1), '' ORDER BY n DESC) AS backwards
FROM generate_series(1, length('stressed')) AS n;
SELECT length('a' || repeat('é', 1000)) AS n, right(repeat('ab', 500) || 'end', 5);

-- over tables: every form with NULLs, blanks and Unicode
SELECT id, length(s) AS chars, octet_length(s) AS octets, bit_length(s) AS bits FROM texts WHERE id > 50 ORDER BY id;
SELECT id, upper(s) AS up, lower(s) AS low, initcap(s) AS cap FROM texts
WHERE id IN (8, 15, 18, 28, 29, 51, 52, 53, 59) ORDER BY id;
SELECT id, reverse(s) AS backwards FROM texts WHERE id IN (6, 8, 9, 10, 27, 40, 60) ORDER BY id;
SELECT id, left(s, 3) AS l, right(s, 3) AS r, left(s, -3) AS all_but_l, right(s, -3) AS all_but_r FROM texts
WHERE id BETWEEN 40 AND 54 ORDER BY id;
SELECT id, substr(s, 2, 3) AS part, substring(s FROM 5) AS rest FROM texts WHERE id BETWEEN 8 AND 17 ORDER BY id;
SELECT id, '<' || trim(s) || '>' AS trimmed, btrim(s, ' d') AS cut, ltrim(s, '-0') AS no_zero FROM texts
WHERE id BETWEEN 27 AND 36 ORDER BY id;
SELECT id, replace(s, p, '<>') AS replaced FROM texts WHERE kind = 'plain' AND id BETWEEN 26 AND 39 ORDER BY id;
SELECT id, position(p IN s) AS at, strpos(s, p) = position(p IN s) AS same FROM texts WHERE kind = 'plain' ORDER BY id;
SELECT id, split_part(s, p, 1) AS first, split_part(s, p, 2) AS second, split_part(s, p, -1) AS last FROM texts
WHERE kind = 'plain' AND id < 50 ORDER BY id;
SELECT id, string_to_array(s, p) AS parts, cardinality(string_to_array(s, p)) AS n FROM texts
WHERE kind = 'plain' AND id BETWEEN 40 AND 60 AND id <> 55 ORDER BY id;
SELECT id, md5(s) AS digest FROM texts WHERE id IN (6, 8, 10, 40, 55, 60) ORDER BY id;
SELECT id, encode(convert_to(s, 'UTF8'), 'hex') AS hex FROM texts WHERE id IN (6, 8, 9, 10, 40, 52) ORDER BY id;
SELECT id, encode(sha256(convert_to(s, 'UTF8')), 'hex') AS digest FROM texts WHERE id IN (1, 7, 8, 40) ORDER BY id;
SELECT id, quote_literal(s) AS lit, quote_ident(s) AS ident, quote_nullable(s) AS nullable FROM texts
WHERE id IN (1, 5, 6, 11, 40, 51, 56) ORDER BY id;
SELECT id, lpad(s, 8, '*') AS l, rpad(s, 8, '.-') AS r FROM texts WHERE id BETWEEN 1 AND 12 ORDER BY id;
SELECT id, translate(s, 'abcäé', 'ABC') AS t FROM texts WHERE id IN (1, 5, 8, 12, 40, 52, 58) ORDER BY id;
SELECT id, overlay(s PLACING '##' FROM 2 FOR 1) AS o FROM texts WHERE id IN (1, 6, 8, 9, 40) ORDER BY id;
SELECT id, ascii(s) AS code, chr(ascii(s)) AS char FROM texts WHERE s <> '' AND id > 50 ORDER BY id;
SELECT id, starts_with(s, p) AS starts, s LIKE p || '%' AS likewise FROM texts
WHERE id IN (27, 31, 32, 36, 38, 40, 41, 54) ORDER BY id;
SELECT id, format('%s|%L|%10s|%-6s|', s, p, id, kind) AS line FROM texts WHERE id IN (1, 6, 26, 40, 41, 42, 56)
ORDER BY id;
SELECT id, concat(s, '-', p) AS c, s || '-' || p AS piped, concat_ws('-', s, p) AS ws FROM texts
WHERE id BETWEEN 38 AND 43 ORDER BY id;
SELECT kind, count(*) AS n, count(s), max(length(s)) AS longest, string_agg(left(s, 1), '' ORDER BY id) AS initials
FROM texts GROUP BY kind ORDER BY kind;
SELECT id, t FROM t_types WHERE t IS NOT NULL ORDER BY t COLLATE "C" LIMIT 15;
SELECT id, upper(t) AS up, lower(t) AS low FROM t_types WHERE id IN (7, 8, 9, 10, 11, 12, 30, 32, 35) ORDER BY id;
SELECT id, t = v AS same, t || v AS joined, length(v) AS n FROM t_types WHERE id IN (1, 2, 6, 28, 29, 36) ORDER BY id;
SELECT id, "by" AS bytes, length("by") AS n, encode("by", 'base64') AS b64, encode("by", 'escape') AS esc FROM t_types
WHERE id <= 16 ORDER BY id;
SELECT id, md5("by") AS m, "by" || '\x01'::bytea AS longer, substring("by" FROM 2 FOR 2) AS part FROM t_types
WHERE id IN (1, 4, 5, 6, 13) ORDER BY id;
SELECT id, t::varchar(4) AS cut, t::char(6) || '|' AS padded, left(t, 4) = t::varchar(4) AS same FROM t_types
WHERE id IN (1, 4, 6, 8, 10, 13) ORDER BY id;
SELECT id, i::text, bi::text AS big, n::text AS fixed, b::text AS flag, da::text AS day, ti::text AS clock,
  ts::text AS stamp FROM t_types WHERE id IN (1, 3, 4, 6, 8, 11) ORDER BY id;
SELECT id, r::text AS r, d::text AS d FROM t_types WHERE id IN (2, 4, 7, 13, 15, 16, 22, 23, 24, 25) ORDER BY id;
SELECT id, s::numeric AS n FROM texts WHERE id IN (32, 33, 35) ORDER BY id;
SELECT id, regexp_replace(s, '[^0-9.]', '', 'g')::numeric AS n FROM texts WHERE id IN (30, 31, 57) ORDER BY id;
SELECT id, to_number(s, '9G999D99') AS n FROM texts WHERE id IN (30, 31) ORDER BY id;
SELECT name, split_part(name, ' ', 1) AS first, substr(name, strpos(name, ' ') + 1) AS last FROM customers
WHERE customer_id <= 12 ORDER BY customer_id;
SELECT upper(left(name, 1)) AS initial, count(*) AS n, min(customer_id) AS first FROM customers GROUP BY 1 ORDER BY 1;
SELECT lower(split_part(name, ' ', 2)) AS family, count(*) AS n FROM customers GROUP BY 1 ORDER BY min(customer_id);
SELECT sku, right(sku, 5)::int AS number, lpad(right(sku, 2), 4, '0') AS code FROM products WHERE product_id < 6
ORDER BY sku;
SELECT customer_id, coalesce(email, lower(replace(name, ' ', '.')) || '@unknown') AS address FROM customers
WHERE customer_id IN (8, 9, 27, 36) ORDER BY customer_id;
SELECT city, length(city), octet_length(city), ascii(right(city, 1)) FROM customers WHERE city IS NOT NULL
GROUP BY city ORDER BY city COLLATE "C";
SELECT country || '-' || lpad(customer_id::text, 4, '0') AS key FROM customers WHERE country = 'GB' ORDER BY key
LIMIT 5;
SELECT note, substring(note FROM '[0-9]+$')::int AS number FROM orders WHERE note IS NOT NULL ORDER BY order_id LIMIT 5;
SELECT count(*) FROM orders WHERE note ILIKE 'GIFT%' OR position('gift' IN coalesce(note, '')) > 0;

-- Arrays in place of arguments.
SELECT concat(VARIADIC ARRAY[1, NULL, 3]) AS a, concat_ws('-', VARIADIC ARRAY['x', NULL, 'y']) AS b, concat(VARIADIC ARRAY[true, false]) AS c,
  concat_ws(',', VARIADIC NULL::int[]) AS d, concat(VARIADIC '{}'::int[]) = '' AS e, concat_ws(NULL, VARIADIC ARRAY[1]) AS f,
  concat(VARIADIC ARRAY[[1, 2], [3, 4]]) AS g;
SELECT format('%s and %s', VARIADIC ARRAY['a', 'b']) AS a, format('%2$s %1$L', VARIADIC ARRAY[1, 2]) AS b, format('%s %s', VARIADIC ARRAY[true, NULL]) AS c,
  format('none', VARIADIC NULL::text[]) AS d, format('%s %I', VARIADIC ARRAY[1.50, 2.25]) AS e, format('%s %s %s', VARIADIC ARRAY[[1], [2], [3]]) AS f;
SELECT id, format('%s;%s', VARIADIC ta || ARRAY['x', 'y']) AS t, concat_ws('/', VARIADIC ia) AS i, num_nulls(VARIADIC ia) AS n,
  num_nonnulls(VARIADIC ta) AS m FROM arrays WHERE ta IS NOT NULL ORDER BY id;
-- fails
SELECT format('%s %s', VARIADIC ARRAY['a']);
SELECT upper(VARIADIC ARRAY['a']);
SELECT concat('a', VARIADIC ARRAY['b']);

-- How many values are NULL.
SELECT id, num_nulls(s, p, kind) AS nulls, num_nonnulls(s, p, kind, id, NULL) AS others FROM texts ORDER BY id;
SELECT num_nulls(NULL) AS a, num_nulls(1, 'a', NULL, true) AS b, num_nonnulls(NULL, NULL) AS c, num_nulls(VARIADIC '{1,NULL,3}'::int[]) AS d,
  num_nonnulls(VARIADIC '{}'::int[]) AS e, num_nulls(VARIADIC NULL::text[]) AS f, num_nulls(VARIADIC ARRAY[[1, NULL], [NULL, 2]]) AS g;
SELECT customer_id FROM customers WHERE num_nulls(email, city) = 1 ORDER BY customer_id LIMIT 5;
-- fails
SELECT num_nulls();

SELECT parse_ident('foo.boo[]', strict => false) AS a, parse_ident(str := 'A."b"') AS b;

-- Comparisons of bytes
SELECT id, s ~<~ 'abc' AS lt, s ~<=~ 'abc' AS le, s ~>=~ 'abc' AS ge, s ~>~ 'abc' AS gt FROM texts ORDER BY id;
-- fails
SELECT 1 ~<~ 2;
