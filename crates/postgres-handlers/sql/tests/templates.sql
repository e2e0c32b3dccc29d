-- URI templates: what they are, what they match, which of them stand in each other's way.

SELECT pg_temp.ok((api.uri_template_problem(template) IS NULL) = is_valid,
    format('%s template: %s', CASE WHEN is_valid THEN 'a' ELSE 'no' END, template))
FROM (VALUES ('postgres:///{schema}/{table}', true), ('app:///plain', true), ('app:///{a}.csv', true),
    ('https://x.y/{a_1}?q={q}', true), ('test://static-text', true),
    ('', false), ('plain', false), ('{a}', false), ('app:///{a', false), ('app:///a}', false), ('app:///{}', false),
        ('app:///{a b}', false), ('app:///{+a}', false), ('app:///{a*}', false),
    ('app:///{a,b}', false), ('app:///{a}{b}', false), ('app:///{a}/{a}', false), ('app:/// a', false),
        ('app:///{{a}}', false)) AS list (template, is_valid);

SELECT pg_temp.same(api.uri_variables(uri, api.uri_template_pattern(template), api.uri_template_variables(template)),
    wanted::jsonb, format('%s in %s', uri, template))
FROM (VALUES
    ('postgres:///{schema}/{table}', 'postgres:///public/orders', '{"schema": "public", "table": "orders"}'),
    ('postgres:///{schema}/{table}', 'postgres:///public', NULL),
        ('postgres:///{schema}/{table}', 'postgres:///public/', NULL),
    ('postgres:///{schema}/{table}', 'postgres:///public/a/b', NULL),
        ('postgres:///{schema}/{table}', 'Postgres:///public/a', NULL),
    ('app:///{a}.csv', 'app:///x.csv.csv', '{"a": "x.csv"}'), ('app:///{a}.csv', 'app:///xycsv', NULL),
    ('app:///{a}-{b}', 'app:///1-2-3', '{"a": "1", "b": "2-3"}'),
    ('app:///{a}', 'app:///%41%2f%E2%82%AC', '{"a": "A/€"}'), ('app:///{a}', 'app:///%4', NULL),
        ('app:///{a}', 'app:///%zz', NULL),
    ('app:///{a}', 'app:///%ff', NULL), ('app:///{a}', 'app:///%00', NULL),
        ('app:///{a}', 'app:///a+b', '{"a": "a+b"}'), ('app:///{a}', 'app:///a\b', '{"a": "a\\b"}'),
    ('app:///[x](y)*.?{a}', 'app:///[x](y)*.?1', '{"a": "1"}'), ('app:///{a}', E'app:///x\n', '{"a": "x\n"}')
) AS list (template, uri, wanted);

SELECT pg_temp.ok(api.uri_templates_overlap(one, other) = overlap AND api.uri_templates_overlap(other, one) = overlap,
    format('%s and %s %s', one, other, CASE WHEN overlap THEN 'overlap' ELSE 'do not overlap' END))
FROM (VALUES ('a:{x}', 'a:{y}', true), ('a:{x}', 'a:b', true), ('a:b', 'a:c', false), ('a:{x}/b', 'a:c/{y}', true),
    ('a:{x}/b', 'a:{y}/c', false), ('a:{x}', 'a:{x}/b', false),
    ('a:p{x}', 'a:{y}s', true), ('a:p{x}q', 'a:r{y}', false), ('a:{x}.csv', 'a:{x}.txt', false),
        ('a:{x}-{y}', 'a:{z}', true), ('a:', 'a:{x}', false)) AS list (one, other, overlap);

CREATE FUNCTION pg_temp.resource(p_name text, p_template text) RETURNS text LANGUAGE sql AS $$
    SELECT api.create_or_replace_mcp_handler(jsonb_build_object('type', 'resource', 'name', p_name, 'uriTemplate',
        p_template, 'requiresAuth', false), format(
        'BEGIN RETURN api.mcp_resource_result(jsonb_build_array(
            jsonb_build_object(''uri'', (request).uri, ''text'', %L)), (request).request_id); END', p_name))
$$;
CREATE FUNCTION pg_temp.read(p_uri text) RETURNS text LANGUAGE sql AS $$ SELECT pg_temp.ask('resources/read',
    jsonb_build_object('uri', p_uri)) #>> '{result,contents,0,text}' $$;
SELECT pg_temp.resource('first', 'app:///{a}');
SELECT pg_temp.refused($$SELECT pg_temp.resource('second', 'app:///{b}')$$,
    'uriTemplate: "app:///{b}" matches the same URIs as "app:///{a}" of the resource with the id "first"',
    'templates of equal rank that overlap');
SELECT pg_temp.refused($$SELECT pg_temp.resource('second', 'app:///{a}')$$, 'matches the same URIs',
    'the same template twice');
SELECT pg_temp.ok(pg_temp.resource('longer', 'app:///{aa}') IS NOT NULL AND pg_temp.read('app:///x') = 'longer',
    'the longer one of two answers');
SELECT pg_temp.ok(pg_temp.resource('special', 'app:///s-{a}') IS NOT NULL AND pg_temp.read('app:///s-1') = 'special',
    'and the one with more literal text before it');
SELECT pg_temp.ok(pg_temp.resource('plain', 'app:///s-1') IS NOT NULL AND pg_temp.read('app:///s-1') = 'plain',
    'and a plain URI before all');
SELECT pg_temp.ok(pg_temp.resource('first', 'app:///{a}') IS NOT NULL, 'a template does not stand in its own way');
SELECT pg_temp.ok(pg_temp.resource('A name for people (1)', 'app:///named/{a}') IS NOT NULL
    AND pg_temp.read('app:///named/x') = 'A name for people (1)', 'a resource may have any name');
SELECT pg_temp.ok(pg_temp.read('app:///' || repeat('x', 9000)) IS NULL, 'an endless URI is not there');
SELECT pg_temp.ok(pg_temp.resource('dotted', 'app:///dot.s/{a}.{b}') IS NOT NULL
    AND pg_temp.read('app:///dot.s/x.y') = 'dotted' AND pg_temp.read('app:///dotxs/x.y') IS NULL,
    'literal text is literal');
SELECT pg_temp.refused(format($$SELECT pg_temp.resource('many', %L)$$, 'app:///' || string_agg('{a' || n || '}-', '')),
    'uriTemplate: has more than 20 variables', 'too many variables')
FROM generate_series(1, 21) AS n;
SELECT pg_temp.refused(format($$SELECT pg_temp.resource('long', %L)$$, 'app:///' || repeat('ä', 1000)),
    'uriTemplate: is longer than 2000 bytes', 'too long a template');
-- Were all pairs of templates walked through, this would take a minute.
SET LOCAL statement_timeout = '20s';
SELECT count(pg_temp.resource('of many ' || n, 'app:///many/' || n || '/{a}/end')) FROM generate_series(100, 699) AS n;
SET LOCAL statement_timeout = 0;
SELECT pg_temp.ok(pg_temp.read('app:///many/345/x/end') = 'of many 345', 'one of six hundred templates');

-- SQL's NULL as the text of a resource
SELECT api.create_or_replace_mcp_handler('{"type": "resource", "name": "empty", "uriTemplate": "app:///empty",
    "requiresAuth": false}', $$BEGIN RETURN api.mcp_resource_result(jsonb_build_array(
    jsonb_build_object('uri', (request).uri, 'text', NULL)), (request).request_id); END$$);
SELECT pg_temp.same(pg_temp.read_resource('app:///empty') #> '{result,contents}', '[{"uri": "app:///empty", "text": ""}]',
    'a text that is NULL is empty');
