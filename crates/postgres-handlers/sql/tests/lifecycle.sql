-- Handlers come, change and go.

CREATE FUNCTION pg_temp.says(p_metadata jsonb, p_text text) RETURNS text LANGUAGE sql AS $$
    SELECT api.create_or_replace_mcp_handler('{"type": "tool", "requiresAuth": false}' || p_metadata, format(
        'BEGIN RETURN api.mcp_tool_result(jsonb_build_array(api.mcp_text(%L)), (request).request_id); END', p_text))
$$;
CREATE FUNCTION pg_temp.heard(p_name text) RETURNS text LANGUAGE sql AS $$
    SELECT pg_temp.call(p_name) #>> '{result,content,0,text}'
$$;
CREATE FUNCTION pg_temp.functions() RETURNS bigint LANGUAGE sql AS $$
    SELECT count(*) FROM pg_proc WHERE pronamespace = 'api'::regnamespace
        AND proname LIKE 'mcp\_tool\_%\_____________' $$;

SELECT pg_temp.ok(pg_temp.says('{"id": "any text, really", "name": "one"}', 'first') = 'any text, really',
    'any text is an id');
SELECT pg_temp.says('{"id": "any text, really", "name": "one"}', 'second');
SELECT pg_temp.ok(pg_temp.heard('one') = 'second' AND (SELECT count(*) = 1 FROM api.handler),
    'the same id again replaces');
SELECT pg_temp.says('{"id": "any text, really", "name": "two"}', 'third');
SELECT pg_temp.ok(pg_temp.heard('two') = 'third' AND pg_temp.heard('one') IS NULL, 'a new name renames');
SELECT pg_temp.ok((SELECT count(*) = 1 FROM pg_proc WHERE pronamespace = 'api'::regnamespace
    AND oid = (SELECT to_regprocedure(function_signature) FROM api.handler))
    AND pg_temp.functions() = 1, 'and drops the old function');
SELECT pg_temp.refused($$SELECT pg_temp.says('{"id": "other", "name": "two"}', 'x')$$,
    'name: "two" is the name of the tool with the id "any text, really"', 'a taken name is refused, its owner named');
SELECT pg_temp.ok(pg_temp.heard('two') = 'third', 'and nothing has changed');
SELECT pg_temp.says('{"name": "a.b"}', 'dot') || pg_temp.says('{"name": "a-b"}', 'dash')
    || pg_temp.says('{"name": "a_b"}', 'line') || pg_temp.says('{"name": "A_B"}', 'capital');
SELECT pg_temp.ok(pg_temp.heard('a.b') = 'dot' AND pg_temp.heard('a-b') = 'dash' AND pg_temp.heard('a_b') = 'line'
    AND pg_temp.heard('A_B') = 'capital', 'names that look alike stay apart');
SELECT pg_temp.ok(pg_temp.says(jsonb_build_object('name', repeat('x', 128)), 'long') IS NOT NULL
    AND pg_temp.heard(repeat('x', 128)) = 'long', 'a name of 128 characters');
SELECT pg_temp.refused(format('SELECT pg_temp.says(%L, %L)', jsonb_build_object('name', name), 'x'), 'name: ',
    format('no name: %s', left(name, 20)))
FROM unnest(ARRAY['', 'a b', 'a/b', 'ä', repeat('x', 129), 'a''b', E'a\nb']) AS name;
SELECT api.create_or_replace_mcp_handler('{"id": "any text, really", "type": "prompt", "name": "two"}',
    'BEGIN RETURN NULL; END');
SELECT pg_temp.ok((SELECT count(*) = 2 FROM api.handler WHERE id = 'any text, really'),
    'ids and names belong to their type');

-- Going
SELECT pg_temp.ok(api.drop_mcp_handler('any text, really'), 'a handler is dropped');
SELECT pg_temp.ok(NOT EXISTS (SELECT FROM api.handler WHERE id = 'any text, really') AND pg_temp.heard('two') IS NULL,
    'and gone');
SELECT pg_temp.ok(NOT api.drop_mcp_handler('any text, really'), 'once');
SELECT pg_temp.says('{"id": "any text, really", "name": "two"}', 'again');
SELECT pg_temp.ok(pg_temp.heard('two') = 'again' AND jsonb_path_exists(pg_temp.ask('tools/list'),
    '$.result.tools[*] ? (@.name == "two")'), 'registered again, it is back');

-- With the transaction
CREATE TEMPORARY TABLE before AS SELECT revision FROM api.registry;
SAVEPOINT change;
SELECT pg_temp.says('{"name": "fleeting"}', 'x');
SELECT pg_temp.ok(pg_temp.heard('fleeting') = 'x' AND (SELECT registry.revision > before.revision FROM api.registry,
    before), 'a change counts at once, and the revision grows');
ROLLBACK TO SAVEPOINT change;
SELECT pg_temp.ok(pg_temp.heard('fleeting') IS NULL AND (SELECT registry.revision = before.revision FROM api.registry,
    before), 'and goes with its transaction');

-- What is wrong is named, all at once
SELECT pg_temp.refused($$SELECT api.create_or_replace_mcp_handler('{"type": "toll", "name": "x"}', '')$$,
    'type: must be tool, resource or prompt, and is "toll"', 'a wrong type');
SELECT pg_temp.refused($$SELECT api.create_or_replace_mcp_handler('[]', '')$$, 'metadata: must be an object',
    'no object');
SELECT pg_temp.refused($$SELECT api.create_or_replace_mcp_handler(NULL, '')$$, 'metadata: must be an object',
    'nothing at all');
SELECT pg_temp.matches(pg_temp.outcome($$SELECT api.create_or_replace_mcp_handler('{"type": "tool", "name": "x y",
    "requiresAuth": "no", "titel": "t", "tags": "a", "retry": 11,
    "statementTimeout": "soon", "minTransactionIsolation": "chaos", "annotations": {"readOnlyHint": 1}, "icons": [{}],
        "inputSchema": {"type": "array"}}', 'BEGIN END')$$),
    '(?=.*titel: is no member)(?=.*name: )(?=.*requiresAuth: )(?=.*tags: )(?=.*retry: )(?=.*statementTimeout: )'
        '(?=.*minTransactionIsolation: )(?=.*annotations.readOnlyHint: )(?=.*icons\[0\].src: )(?=.*inputSchema.type: )',
    'every mistake at once');
SELECT pg_temp.refused($$SELECT pg_temp.tool('bad_body', 'BEGIN RETRN 1; END')$$, 'body: syntax error',
    'a body that does not compile');
SELECT pg_temp.refused($$SELECT pg_temp.tool('bad_body', 'SELECT FROM WHERE', '{"rows": true}')$$,
    'body: syntax error', 'nor a query');
SELECT pg_temp.refused($$SELECT pg_temp.tool('bad_body', 'SELECT 1; DROP TABLE api.handler', '{"rows": true}')$$,
    'body: ', 'a query is one query');
SELECT pg_temp.refused($$SELECT pg_temp.tool('bad_body', '  ')$$, 'body: is missing', 'an empty body');
SELECT pg_temp.ok(NOT EXISTS (SELECT FROM api.handler WHERE name = 'bad_body'), 'none of them is there');
SELECT pg_temp.refused($$SELECT api.create_or_replace_mcp_handler('{"type": "prompt", "name": "p",
    "arguments": [{"name": "a"}, {"name": "a"}]}', 'BEGIN END')$$, 'arguments\[1\]\.name: "a" is there twice',
    'an argument twice');
SELECT pg_temp.refused($$SELECT api.create_or_replace_mcp_handler('{"type": "prompt", "name": "p", "inputSchema": {}}',
    'BEGIN END')$$, 'inputSchema: is no member', 'what a prompt has not');
SELECT pg_temp.refused(format('SELECT api.create_or_replace_mcp_handler(%L, %L)',
    '{"requiresAuth": false}' || metadata, 'BEGIN END'), problem, format('refused: %s', left(metadata::text, 70)))
FROM (VALUES
    (jsonb_build_object('type', 'tool', 'name', 'x', 'id', repeat('x', 501)), 'id: must be 1 to 500'),
    ('{"type": "tool", "name": "x", "searchPath": [""]}', 'searchPath: '),
    ('{"type": "tool", "name": "x", "rows": true, "outputSchema": {}}', 'outputSchema: rows have none'),
    ('{"type": "tool", "name": "x", "icons": [{"src": "https://e.x/i", "sizes": "1x1", "theme": "red",
        "mimeType": 5}]}',
        'icons\[0\]\.mimeType: .*icons\[0\]\.sizes: .*icons\[0\]\.theme: '),
    ('{"type": "resource", "name": "x", "uriTemplate": "a:b", "size": 1.5}', 'size: '),
    ('{"type": "resource", "name": "x", "uriTemplate": "a:b", "annotations": {"audience": "user", "lastModified": 5}}',
        'annotations.audience: .*annotations.lastModified: '),
    ('{"type": "prompt", "name": "x", "arguments": [{"name": "a", "requird": true, "title": 5}]}',
        'arguments\[0\]\.title: .*arguments\[0\]\.requird: is no member')
) AS list (metadata, problem);
SELECT pg_temp.refused($$SELECT pg_temp.tool('bad_body', 'SELECT 1 AS a) AS one; DROP TABLE api.handler;
    SELECT to_jsonb(one) FROM (SELECT 1 AS a', '{"rows": true}')$$,
    'body: syntax error', 'a query that ends what is around it');

-- Whose a handler is, and what its names mean
CREATE ROLE tidegate_test_author;
ALTER TABLE api.handler OWNER TO tidegate_test_author;
GRANT USAGE, CREATE ON SCHEMA api TO tidegate_test_author;
SELECT pg_temp.says('{"name": "of.the.author"}', 'x');
SELECT pg_temp.ok(EXISTS (SELECT FROM api.handler WHERE name = 'of.the.author')
    AND NOT EXISTS (SELECT FROM api.handler JOIN pg_proc ON pg_proc.oid = to_regprocedure(function_signature)
    WHERE name = 'of.the.author' AND proowner <> 'tidegate_test_author'::regrole),
        'a handler belongs to whom the registry belongs to, whoever registers it');
CREATE TABLE public.exchange (note text);
INSERT INTO public.exchange VALUES ('the author''s');
SELECT pg_temp.tool('reads',
    'BEGIN RETURN api.mcp_structured_result((SELECT to_jsonb(e) FROM exchange AS e), (request).request_id); END');
SELECT pg_temp.same(pg_temp.call('reads') #> '{result,structuredContent}', '{"note": "the author''s"}',
    'a table of the author''s goes before one of ours');
SELECT pg_temp.tool('one', 'SELECT 1 AS one, 2 AS two', '{"rows": true}');
SELECT pg_temp.same(pg_temp.call('one') #> '{result,structuredContent,rows}', '[{"one": 1, "two": 2}]',
    'columns may have any name');
