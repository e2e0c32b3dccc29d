-- Existing functions as tools.

CREATE SCHEMA tidegate_test;
CREATE TYPE tidegate_test.mood AS ENUM ('calm', 'wild');
CREATE TYPE tidegate_test.pair AS (x integer, y text);
CREATE DOMAIN tidegate_test.positive AS integer CHECK (VALUE > 0);
CREATE FUNCTION tidegate_test.add(a integer,
    b integer DEFAULT 10) RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT a + b';
COMMENT ON FUNCTION tidegate_test.add IS 'Adds.';
CREATE FUNCTION tidegate_test.every_type("the Text" text, list integer[], how tidegate_test.mood,
    two tidegate_test.pair, p tidegate_test.positive, j jsonb, d date, n numeric)
RETURNS jsonb LANGUAGE sql AS $$ SELECT jsonb_build_array("the Text", list, how, two, p, j, d, n) $$;
CREATE FUNCTION tidegate_test.several(a integer, OUT twice integer,
    OUT thrice integer) LANGUAGE sql IMMUTABLE AS 'SELECT 2 * a, 3 * a';
CREATE FUNCTION tidegate_test.list(up_to integer DEFAULT 2) RETURNS TABLE (n integer,
    square integer) LANGUAGE sql STABLE AS 'SELECT g, g * g FROM generate_series(1, up_to) AS g';
CREATE FUNCTION tidegate_test.quiet() RETURNS void LANGUAGE sql AS '';
CREATE FUNCTION tidegate_test.answer() RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT 42';
SELECT api.register_function(f::regprocedure, '{"requiresAuth": false}')
FROM unnest(ARRAY['tidegate_test.add(integer, integer)', 'tidegate_test.several(integer)',
    'tidegate_test.list(integer)', 'tidegate_test.quiet()', 'tidegate_test.answer()']) AS f;
SELECT api.register_function('tidegate_test.every_type'::regproc::regprocedure,
    '{"requiresAuth": false, "name": "all"}');
SELECT pg_temp.same(jsonb_path_query_first(pg_temp.ask('tools/list'), '$.result.tools[*] ? (@.name == "add")'),
    '{"name": "add", "description": "Adds.", "annotations": {"readOnlyHint": true},
    "inputSchema": {"type": "object", "additionalProperties": false, "required": ["a"],
        "properties": {"a": {"type": "integer", "minimum": -2147483648, "maximum": 2147483647},
    "b": {"type": "integer", "minimum": -2147483648, "maximum": 2147483647}}}}',
        'the schema comes from the types, the description from the comment');
SELECT pg_temp.same(jsonb_path_query_first(pg_temp.ask('tools/list'),
    '$.result.tools[*] ? (@.name == "all").inputSchema.properties'), '{"the Text": {"type": "string"},
    "list": {"type": "array", "items": {"type": "integer", "minimum": -2147483648, "maximum": 2147483647}},
        "how": {"type": "string", "enum": ["calm", "wild"]},
    "two": {"type": "object", "properties": {"x": {"type": "integer", "minimum": -2147483648, "maximum": 2147483647},
        "y": {"type": "string"}}},
    "p": {"type": "integer", "minimum": -2147483648, "maximum": 2147483647}, "j": {}, "d": {"type": "string",
        "description": "YYYY-MM-DD"}, "n": {"type": "number"}}', 'of all sorts of types');
SELECT pg_temp.same(pg_temp.call('add', '{"a": 1}') #> '{result,structuredContent}', '{"result": 11}',
    'what is not given keeps its default');
SELECT pg_temp.same(pg_temp.call('add', '{"a": 1, "b": 2}') #> '{result,structuredContent}', '{"result": 3}',
    'what is given goes in');
SELECT pg_temp.same(pg_temp.call('add', '{"b": 2}') #> '{result,isError}', 'true', 'what is missing is refused');
SELECT pg_temp.same(pg_temp.call('all', '{"the Text": "it''s", "list": [1, 2], "how": "wild", "two": {"x": 1,
    "y": "z"}, "p": 5, "j": {"k": null}, "d": "2026-01-02", "n": 1.10}')
    #> '{result,structuredContent}', '{"result": ["it''s", [1, 2], "wild", {"x": 1, "y": "z"}, 5, {"k": null},
        "2026-01-02", 1.10]}', 'values of all sorts arrive');
SELECT pg_temp.same(pg_temp.call('several', '{"a": 2}') #> '{result,structuredContent}', '{"twice": 4, "thrice": 6}',
    'several results');
SELECT pg_temp.same(pg_temp.call('list') #> '{result,structuredContent}',
    '{"rows": [{"n": 1, "square": 1}, {"n": 2, "square": 4}], "truncated": false}', 'rows');
SELECT pg_temp.same(pg_temp.call('quiet') #> '{result,isError}', NULL, 'nothing to say is no error');
SELECT pg_temp.same(pg_temp.call('answer') #> '{result,structuredContent}', '{"result": 42}', 'no arguments');
SELECT pg_temp.same(pg_temp.call('answer', '{"x": 1}') #> '{result,isError}', 'true', 'then none is known');

CREATE PROCEDURE tidegate_test.proc() LANGUAGE sql AS '';
CREATE FUNCTION tidegate_test.nameless(integer) RETURNS integer LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION tidegate_test.variadic(VARIADIC list integer[]) RETURNS integer LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION tidegate_test.polymorphic(a anyelement) RETURNS integer LANGUAGE sql AS 'SELECT 1';
SELECT pg_temp.refused(format('SELECT api.register_function(%L::regprocedure)', f), problem, format('no tool: %s', f))
FROM (VALUES ('tidegate_test.proc()', 'it is a procedure'),
    ('tidegate_test.nameless(integer)', 'an argument has no name'),
    ('tidegate_test.variadic(integer[])', 'variable number'),
    ('tidegate_test.polymorphic(anyelement)', 'settled only with each call'),
        ('pg_catalog.count("any")', 'it is a procedure, an aggregate')) AS list (f, problem);

-- Who may not execute the function does not see the tool, wherever the function lies.
CREATE ROLE tidegate_test_caller;
SELECT api.grant_mcp_access('tidegate_test_caller');
CREATE FUNCTION pg_temp.called(p_tool text) RETURNS jsonb LANGUAGE sql AS $$
    SELECT pg_temp.as_role('tidegate_test_caller',
        format('SELECT (api.mcp_call_tool(%L, ''{}'', NULL, ''i'')).envelope', p_tool))::jsonb
$$;
SELECT pg_temp.same(pg_temp.called('answer') -> 'error', '{"code": -32602, "message": "Unknown tool: answer"}',
    'a function in a schema that is closed to the caller');
GRANT USAGE ON SCHEMA tidegate_test TO tidegate_test_caller;
SELECT pg_temp.ok(pg_temp.called('answer') ? 'result', 'and in one that is open');
REVOKE EXECUTE ON FUNCTION tidegate_test.answer() FROM PUBLIC;
SELECT pg_temp.same(pg_temp.called('answer') #> '{error,code}', '-32602', 'a function without the grant');
SELECT pg_temp.ok(pg_temp.as_role('tidegate_test_caller', 'SELECT api.mcp_list_tools()') !~ '"answer"',
    'is not in the list');
GRANT EXECUTE ON FUNCTION tidegate_test.answer() TO tidegate_test_caller;
SELECT pg_temp.ok(pg_temp.called('answer') ? 'result', 'with the grant');
ALTER FUNCTION tidegate_test.answer() RENAME TO answered;
SELECT pg_temp.same(pg_temp.called('answer') #> '{error,code}', '-32602',
    'a function that is gone takes its tool along');
SELECT pg_temp.tool('answer', 'BEGIN RETURN api.mcp_tool_result(''[]'', (request).request_id); END',
    '{"id": "function:tidegate_test.answer()"}');
SELECT pg_temp.ok(pg_temp.called('answer') ? 'result',
    'a handler of its own under the same id does not ask for the function');

-- Types that need care
CREATE FUNCTION tidegate_test.texts(c char(5), b bit(4), v varchar(3), x bytea, i interval, r int4range, t timestamptz)
RETURNS text LANGUAGE sql STABLE AS $$ SELECT concat_ws('|', c, b, v, encode(x, 'hex'), i, r, t AT TIME ZONE 'UTC') $$;
SELECT api.register_function('tidegate_test.texts(char, bit, varchar, bytea, interval, int4range, timestamptz)',
    '{"requiresAuth": false}');
SELECT pg_temp.same(pg_temp.call('texts', '{"c": "abc", "b": "1010", "v": "xyz", "x": "\\xff", "i": "1 day",
    "r": "[1,3)",
    "t": "2026-01-02T03:04:05Z"}') #> '{result,structuredContent,result}',
    '"abc|1010|xyz|ff|1 day|[1,3)|2026-01-02 03:04:05"', 'types with a length keep all of it, others read their text');
CREATE FUNCTION tidegate_test.convert(d date, u uuid DEFAULT NULL, p tidegate_test.positive DEFAULT 1) RETURNS date
LANGUAGE sql STABLE AS $$ SELECT d $$;
SELECT api.register_function('tidegate_test.convert(date, uuid, tidegate_test.positive)',
    '{"requiresAuth": false, "name": "dates"}');
SELECT pg_temp.same(pg_temp.call('dates', '{"d": "soon", "u": "x", "p": -1}') -> 'result',
    jsonb_build_object('isError', true,
    'content', jsonb_build_array(api.mcp_text(E'The arguments of dates are wrong:\n'
    '- d: must be a value of the type date\n'
    '- u: must be a value of the type uuid\n- p: must be a value of the type tidegate_test.positive'))),
    'values that are none of their type, all at once');
SELECT pg_temp.same(pg_temp.call('dates', '{"d": "2026-01-02"}') #> '{result,structuredContent}',
    '{"result": "2026-01-02"}', 'and one that is');
CREATE FUNCTION tidegate_test.many(one integer DEFAULT 1500) RETURNS SETOF integer
LANGUAGE sql STABLE AS 'SELECT generate_series(1, one)';
SELECT api.register_function('tidegate_test.many(integer)', '{"requiresAuth": false}');
SELECT pg_temp.ok(jsonb_array_length(a.result -> 'rows') = 1000 AND a.result -> 'truncated' = 'true',
    'more rows than fit, which is said')
FROM (SELECT pg_temp.call('many') #> '{result,structuredContent}' AS result) AS a;
CREATE FUNCTION tidegate_test.columns() RETURNS TABLE (one integer, rows text) LANGUAGE sql STABLE AS $$ SELECT 1,
    'x' $$;
SELECT api.register_function('tidegate_test.columns()', '{"requiresAuth": false}');
SELECT pg_temp.same(pg_temp.call('columns') #> '{result,structuredContent,rows}', '[{"one": 1, "rows": "x"}]',
    'columns may have any name');
CREATE FUNCTION tidegate_test.loose() RETURNS SETOF record LANGUAGE sql AS 'SELECT 1, 2';
SELECT pg_temp.refused($$SELECT api.register_function('tidegate_test.loose()')$$,
    'columns are settled only with each call', 'rows of any shape');
SELECT pg_temp.refused($$SELECT api.register_function('tidegate_test.columns()', '{"rows": true}')$$, 'rows: ',
    'a function whose rows should stream');
