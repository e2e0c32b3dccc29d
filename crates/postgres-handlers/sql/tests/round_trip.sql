-- A handler is registered, listed, called.

SELECT pg_temp.tool('echo', $body$
BEGIN
    RETURN api.mcp_tool_result(jsonb_build_array(api.mcp_text('Echo: ' || ((request).arguments ->> 'message'))),
        (request).request_id);
END
$body$, '{"title": "Echo", "description": "Says it again.", "tags": ["a", "b"],
    "icons": [{"src": "https://example.com/i.png"}],
    "annotations": {"readOnlyHint": true}, "inputSchema": {"type": "object",
        "properties": {"message": {"type": "string"}}, "required": ["message"]}}');
SELECT pg_temp.same(pg_temp.ask('tools/list') #> '{result,tools,0}',
    '{"name": "echo", "title": "Echo", "description": "Says it again.",
    "_meta": {"tags": ["a", "b"]}, "icons": [{"src": "https://example.com/i.png"}],
        "annotations": {"readOnlyHint": true},
    "inputSchema": {"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]}}',
        'a tool as it is listed, its tags under _meta');
SELECT pg_temp.same(pg_temp.call('echo', '{"message": "hello"}', NULL, '"x"'),
    '{"jsonrpc": "2.0", "id": "x", "result": {"content": [{"type": "text", "text": "Echo: hello"}]}}',
        'a tool that is called');
SELECT pg_temp.same(pg_temp.ask_now('tools/call', '{"name": "echo",
    "arguments": {"message": "hello"}}') #> '{result,resultType}', '"complete"', 'and by a modern client');
SELECT pg_temp.ok(pg_temp.ask_now('tools/call', '{"name": "echo",
    "arguments": {"message": "hello"}}') #> '{result,_meta}' ? 'io.modelcontextprotocol/serverInfo',
    'who hears who answered');

-- schemas
SELECT pg_temp.tool('bare', 'BEGIN RETURN api.mcp_tool_result(''[]'', (request).request_id); END');
SELECT pg_temp.same(jsonb_path_query_first(pg_temp.ask('tools/list'),
    '$.result.tools[*] ? (@.name == "bare").inputSchema'), '{"type": "object"}',
    'an absent inputSchema is that of any object');
SELECT pg_temp.tool('empty', 'BEGIN RETURN api.mcp_tool_result(''[]'', (request).request_id); END',
    '{"inputSchema": {}}');
SELECT pg_temp.same(jsonb_path_query_first(pg_temp.ask('tools/list'),
    '$.result.tools[*] ? (@.name == "empty").inputSchema'), '{"type": "object"}', 'so is an empty one');
SELECT pg_temp.tool('untyped', 'BEGIN RETURN api.mcp_tool_result(''[]'', (request).request_id); END',
    '{"inputSchema": {"required": ["a"]}}');
SELECT pg_temp.same(jsonb_path_query_first(pg_temp.ask('tools/list'),
    '$.result.tools[*] ? (@.name == "untyped").inputSchema'), '{"type": "object", "required": ["a"]}',
    'one without a type gets it');
SELECT pg_temp.refused(format('SELECT pg_temp.tool(%L, %L, %L)', 'wrong', 'BEGIN END',
    jsonb_build_object('inputSchema', schema)), 'inputSchema', format('refused as inputSchema: %s', schema))
FROM unnest(ARRAY['"nonsense"', 'true', '{"type": "string"}', '[]', 'null',
    '{"type": "object", "properties": {"a": {"type": "strin"}}}',
    '{"type": "object", "properties": {"a": {"type": "array",
        "items": {"anyOf": [{"type": "nope"}]}}}}']::jsonb[]) AS schema;
SELECT pg_temp.refused($$SELECT pg_temp.tool('wrong', 'BEGIN END',
    '{"inputSchema": {"type": "object", "properties": {"a": {"items": {"type": "strin"}}}}}')$$,
    'inputSchema\.properties\.a\.items\.type: "strin"', 'a wrong type is named with its path');

SELECT pg_temp.tool('whatever', 'BEGIN RETURN api.mcp_tool_result(''[]'', (request).request_id); END',
    '{"inputSchema": {"properties": {"a": true, "b": false, "c": {"type": "string"}}}}');
SELECT pg_temp.same(jsonb_path_query_first(answer, '$.result.tools[*] ? (@.name == "whatever").inputSchema.properties'),
    wanted, 'schemas that are true or false: ' || era)
FROM (VALUES
    ('today', pg_temp.ask_now('tools/list'), '{"a": true, "b": false, "c": {"type": "string"}}'::jsonb),
    ('before', pg_temp.ask('tools/list'), '{"a": {}, "b": {"not": {}}, "c": {"type": "string"}}')
) AS list (era, answer, wanted);

-- structured answers
SELECT pg_temp.tool('typed', $body$
BEGIN
    RETURN api.mcp_structured_result((request).arguments, (request).request_id);
END
$body$, '{"outputSchema": {"type": "object", "properties": {"a": {"type": ["integer", "null"]}}, "required": ["a"]}}');
SELECT pg_temp.ok(jsonb_path_exists(pg_temp.ask('tools/list'), '$.result.tools[*] ? (@.name == "typed").outputSchema'),
    'outputSchema is listed');
SELECT pg_temp.same(pg_temp.call('typed', '{"a": null, "b": [null]}') #> '{result,structuredContent}',
    '{"a": null, "b": [null]}', 'nulls stay');
SELECT pg_temp.same(pg_temp.call('typed', '{"a": "x"}') #> '{error,code}', '-32603', 'outputSchema is enforced');
SELECT pg_temp.same(pg_temp.call('typed', '{"b": 1}') #> '{error,data,code}', '"broken_answer"', 'and says what it is');
SELECT pg_temp.tool('any', $$BEGIN RETURN api.mcp_structured_result('5', (request).request_id); END$$,
    '{"outputSchema": {"type": "integer"}}');
SELECT pg_temp.same(pg_temp.ask_now('tools/call', '{"name": "any"}') #> '{result,structuredContent}', '5',
    'any value today');
SELECT pg_temp.ok(NOT pg_temp.call('any') -> 'result' ? 'structuredContent', 'objects alone before');
SELECT pg_temp.ok(NOT jsonb_path_exists(pg_temp.ask('tools/list'),
    '$.result.tools[*] ? (@.name == "any").outputSchema'), 'and no schema of anything else');

-- resources
SELECT api.create_or_replace_mcp_handler(jsonb_build_object('type', 'resource', 'name', name, 'uriTemplate', uri,
    'mimeType', 'text/plain', 'requiresAuth', false),
    format($body$BEGIN RETURN api.mcp_resource_result(jsonb_build_array(jsonb_build_object(
        'uri', (request).uri, 'text', %L || (request).variables::text)), (request).request_id); END$body$, name || ' '))
FROM (VALUES ('plain', 'app:///plain'), ('one', 'app:///{a}'), ('other', 'app:///{aa}'),
    ('deep', 'app:///{a}/x/{b}')) AS list (name, uri);
SELECT pg_temp.same(jsonb_path_query_array(pg_temp.ask('resources/list'), '$.result.resources[*].uri'),
    '["app:///plain"]', 'resources/list has concrete URIs');
SELECT pg_temp.ok(NOT jsonb_path_exists(pg_temp.ask('resources/list'), '$.result.resources[*].uriTemplate'),
    'and no templates');
SELECT pg_temp.same(pg_temp.ask('resources/templates/list') #> '{result,resourceTemplates,0}',
    '{"name": "deep", "uriTemplate": "app:///{a}/x/{b}", "mimeType": "text/plain"}', 'templates have their own list');
SELECT pg_temp.same(pg_temp.ask('resources/read', '{"uri": "app:///plain"}') #> '{result,contents,0,text}',
    '"plain {}"', 'a plain URI goes before a template');
SELECT pg_temp.same(pg_temp.ask('resources/read', '{"uri": "app:///other%20one"}') #> '{result,contents,0,text}',
    '"other {\"aa\": \"other one\"}"', 'of {a} and {aa} the longer one answers');
SELECT pg_temp.same(pg_temp.ask('resources/read', '{"uri": "app:///q%2Fr/x/%C3%A4"}') #> '{result,contents,0,text}',
    '"deep {\"a\": \"q/r\", \"b\": \"ä\"}"', 'variables come percent-decoded');
SELECT pg_temp.same(pg_temp.ask_now('resources/read', '{"uri": "app:///%ff"}') #> '{error,code}', '-32602',
    'what cannot be decoded is not there');
SELECT pg_temp.ok(pg_temp.ask_now('resources/read', '{"uri": "app:///plain"}') -> 'result' ?& '{ttlMs,cacheScope}',
    'modern reads say how long they hold');
SELECT pg_temp.refused($$SELECT api.create_or_replace_mcp_handler('{"type": "resource", "name": "none"}',
    'BEGIN END')$$, 'uriTemplate: is missing', 'a resource without uriTemplate');

-- prompts
SELECT api.create_or_replace_mcp_handler('{"type": "prompt", "name": "help", "requiresAuth": false,
    "arguments": [{"name": "task", "required": true}, {"name": "tone"}]}', $body$
BEGIN
    RETURN api.mcp_prompt_result(jsonb_build_array(jsonb_build_object('role', 'user', 'content',
        api.mcp_text((request).arguments ->> 'task'))), (request).request_id);
END
$body$);
SELECT pg_temp.same(pg_temp.ask('prompts/list') #> '{result,prompts}',
    '[{"name": "help", "arguments": [{"name": "task", "required": true}, {"name": "tone"}]}]',
    'a prompt as it is listed');
SELECT pg_temp.same(pg_temp.ask('prompts/get', '{"name": "help", "arguments": {"task": "t"}}') -> 'result',
    '{"messages": [{"role": "user", "content": {"type": "text", "text": "t"}}]}', 'and as it is got');

-- rows
SELECT pg_temp.tool('rows',
    'SELECT generate_series(1, ((request).arguments ->> ''count'')::integer) AS n, NULL AS nothing;', '{"rows": true}');
SELECT pg_temp.same(pg_temp.call('rows', '{"count": 2}') #> '{result,structuredContent}',
    '{"rows": [{"n": 1, "nothing": null}, {"n": 2, "nothing": null}], "truncated": false}', 'a handler of rows');
SELECT pg_temp.same(pg_temp.call('rows', '{"count": 0}') #> '{result,structuredContent,rows}', '[]', 'no rows');
-- Were the rows not taken one by one, this would take minutes.
SET LOCAL statement_timeout = '20s';
SELECT pg_temp.ok(jsonb_array_length(a.result -> 'rows') = 1000 AND a.result -> 'truncated' = 'true',
    'as many as fit, and that there are more')
FROM (SELECT pg_temp.call('rows', '{"count": 100000000}') #> '{result,structuredContent}' AS result) AS a;

SET LOCAL statement_timeout = 0;

-- builders take ids of both kinds
SELECT pg_temp.same((api.mcp_tool_result('[]', 'a')).envelope -> 'id', '"a"', 'an id as text');
SELECT pg_temp.same((api.mcp_tool_result('[]', '7'::jsonb)).envelope -> 'id', '7', 'an id as JSON');
SELECT pg_temp.same((api.mcp_error(-1, 'm', 'a'::text, '{"x": 1}')).envelope,
    '{"jsonrpc": "2.0", "id": "a", "error": {"code": -1, "message": "m", "data": {"x": 1}}}', 'an error with data');

-- Columns of rows
SELECT pg_temp.tool('columns',
    'SELECT 1 AS "Id", now() AS at, ''x''::varchar(3) AS "the name"
        WHERE request.arguments ? ''a'' OR (request).arguments ? ''b'';', '{"rows": true}');
SELECT pg_temp.same((SELECT to_jsonb(columns) FROM api.handler WHERE name = 'columns'),
    to_jsonb('"Id" integer, at timestamp with time zone, "the name" character varying(3)'::text),
        'the columns of rows are known');
SELECT pg_temp.tool('columns', 'SELECT 1 AS a, 2 AS a', '{"rows": true}');
SELECT pg_temp.ok((SELECT columns IS NULL FROM api.handler WHERE name = 'columns'), 'or not, where two have one name');
SELECT pg_temp.ok(to_regclass('api.mcp_query_columns') IS NULL, 'and nothing is left of finding out');
