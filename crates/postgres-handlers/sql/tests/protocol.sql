-- What goes over the wire, whatever the handlers are.

-- initialize
SELECT pg_temp.same(pg_temp.ask('initialize', '{"protocolVersion": "2024-11-05"}', NULL, '"a"') - 'result',
    '{"jsonrpc": "2.0", "id": "a"}', 'initialize keeps the id');
SELECT pg_temp.same(pg_temp.ask('initialize', '{"protocolVersion": "2024-11-05"}') #> '{result,protocolVersion}',
    '"2024-11-05"', 'the revision that was asked for');
SELECT pg_temp.same(pg_temp.ask('initialize', '{"protocolVersion": "2025-06-18"}') #> '{result,protocolVersion}',
    '"2025-06-18"', 'a later one too');
SELECT pg_temp.same(pg_temp.ask('initialize', '{"protocolVersion": "1999-01-01"}') #> '{result,protocolVersion}',
    '"2025-11-25"', 'the newest legacy one for an unknown one');
SELECT pg_temp.same(pg_temp.ask('initialize', '{"protocolVersion": "2026-07-28"}') #> '{result,protocolVersion}',
    '"2025-11-25"', 'never the modern one');
SELECT pg_temp.ok(pg_temp.ask('initialize',
    '{"protocolVersion": "2024-11-05"}') -> 'result' ?& '{serverInfo,capabilities}', 'serverInfo and capabilities');
SELECT pg_temp.same(pg_temp.ask('initialize') #> '{error,code}', '-32602', 'without protocolVersion -32602');
SELECT pg_temp.same(pg_temp.ask('initialize', '{"protocolVersion": 5}') #> '{error,code}', '-32602',
    'a number is no revision');

-- ping and methods
SELECT pg_temp.same(pg_temp.ask('ping', '{}', NULL, '7'), '{"jsonrpc": "2.0", "id": 7, "result": {}}', 'ping');
SELECT pg_temp.same(pg_temp.ask('tools/fly') #> '{error,code}', '-32601', 'an unknown method');
SELECT pg_temp.same((api.mcp_handle_request('{"jsonrpc": "2.0", "id": 3, "method": "ping",
    "params": [1]}')).envelope #> '{error,code}', '-32602', 'params are an object');

-- notifications
SELECT pg_temp.ok((api.mcp_handle_request('{"jsonrpc": "2.0",
    "method": "notifications/initialized"}')).envelope IS NULL, 'a notification has no answer');
SELECT pg_temp.ok((api.mcp_handle_request('{"jsonrpc": "2.0", "id": 1,
    "method": "notifications/initialized"}')).envelope IS NULL, 'even with an id');
SELECT pg_temp.ok((api.mcp_handle_request('{"jsonrpc": "2.0", "method": "tools/call",
    "params": {"name": "x"}}')).envelope IS NULL, 'nor any request without one');

-- lists
SELECT pg_temp.ok(jsonb_typeof(pg_temp.ask('tools/list') #> '{result,tools}') = 'array', 'tools/list');
SELECT pg_temp.ok(jsonb_typeof(pg_temp.ask('resources/list') #> '{result,resources}') = 'array', 'resources/list');
SELECT pg_temp.ok(jsonb_typeof(pg_temp.ask('resources/templates/list') #> '{result,resourceTemplates}') = 'array',
    'resources/templates/list');
SELECT pg_temp.ok(jsonb_typeof(pg_temp.ask('prompts/list') #> '{result,prompts}') = 'array', 'prompts/list');

-- what is no request
SELECT pg_temp.same((api.mcp_handle_request(request)).envelope #> '{error,code}', '-32600',
    format('no request: %s', coalesce(request::text, 'NULL')))
FROM unnest(ARRAY['{"id": 1, "method": "ping"}', '{"jsonrpc": "1.0", "id": 1, "method": "ping"}',
    '{"jsonrpc": "2.0", "id": 1}',
    '{"jsonrpc": "2.0", "id": 1, "method": 5}', NULL, '[]', '"text"', '5', 'null', 'true']::jsonb[]) AS request;
SELECT pg_temp.same((api.mcp_handle_request(jsonb_build_object('jsonrpc', '2.0', 'id', id, 'method',
    'ping'))).envelope - 'error',
    '{"jsonrpc": "2.0", "id": null}', format('the id %s is answered with null and no result', id))
FROM unnest(ARRAY['null', 'true', '{}', '[]', '[1]']::jsonb[]) AS id;
SELECT pg_temp.same((api.mcp_handle_request('{"jsonrpc": "2.0", "id": null,
    "method": "ping"}')).envelope #> '{error,code}', '-32600', 'and the code -32600');

-- ids
SELECT pg_temp.ok(pg_temp.ask('ping', '{}', NULL, id) ->> 'id' = id #>> '{}'
    AND jsonb_typeof(pg_temp.ask('ping', '{}', NULL, id) -> 'id') = jsonb_typeof(id),
    format('the id %s comes back', id))
FROM unnest(ARRAY['"ok1"', '7', '1.5', '42', '12345678901234567890123', '"7"', '""']::jsonb[]) AS id;

-- the modern era
SELECT pg_temp.ok(pg_temp.ask_now('server/discover') -> 'result'
    ?& '{supportedVersions,capabilities,resultType,ttlMs,cacheScope}', 'server/discover');
SELECT pg_temp.same(pg_temp.ask_now('server/discover') #> '{result,supportedVersions,0}', '"2026-07-28"',
    'speaks the modern revision');
SELECT pg_temp.same(pg_temp.ask('server/discover') #> '{error,code}', '-32602', 'server/discover without _meta');
SELECT pg_temp.same(pg_temp.ask_now('ping') #> '{error,code}', '-32601', 'ping is gone in the modern era');
SELECT pg_temp.same(pg_temp.ask_now('initialize', '{"protocolVersion": "2025-06-18"}') #> '{error,code}', '-32601',
    'so is initialize');
SELECT pg_temp.ok(pg_temp.ask_now('tools/list') -> 'result' ?& '{resultType,ttlMs,cacheScope,_meta}',
    'modern lists say how long they hold');
SELECT pg_temp.ok(NOT pg_temp.ask('tools/list') -> 'result' ?| '{resultType,ttlMs,cacheScope}', 'legacy lists do not');
SELECT pg_temp.same(pg_temp.ask('tools/list',
    '{"_meta": {"io.modelcontextprotocol/protocolVersion": "2025-11-25"}}') #> '{error,code}', '-32022',
    'a legacy revision in _meta');
SELECT pg_temp.same(pg_temp.ask('tools/list',
    '{"_meta": {"io.modelcontextprotocol/protocolVersion": "1900-01-01"}}') #> '{error,data,requested}',
    '"1900-01-01"', 'and an unknown one, with what was asked for');
SELECT pg_temp.same(pg_temp.ask('tools/list',
    '{"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}') #> '{error,code}', '-32602',
    'without clientCapabilities');
SELECT pg_temp.same(pg_temp.ask_now('resources/read', '{"uri": "app:///none"}') #> '{error,code}', '-32602',
    'a missing resource is -32602 today');
SELECT pg_temp.same(pg_temp.ask('resources/read', '{"uri": "app:///none"}') #> '{error,code}', '-32002',
    'and was -32002');
SELECT pg_temp.same(pg_temp.ask('resources/read') #> '{error,code}', '-32602', 'a read without a uri');
SELECT pg_temp.same(pg_temp.ask('tools/call', '{"name": 5}') #> '{error,code}', '-32602', 'a call without a name');

-- pages
SELECT pg_temp.tool('page_' || n, 'BEGIN RETURN api.mcp_tool_result(''[]'', (request).request_id); END')
    FROM unnest(ARRAY['c', 'a', 'B', 'b', 'd']) AS n;
SET LOCAL mcp.page_size = 2;
SELECT pg_temp.same(jsonb_path_query_array(pg_temp.ask('tools/list'), '$.result.tools[*].name'),
    '["page_B", "page_a"]', 'the first page, in the order of bytes');
WITH RECURSIVE page (n, result) AS (
    SELECT 1, pg_temp.ask('tools/list') -> 'result'
    UNION ALL
    SELECT n + 1, pg_temp.ask('tools/list', jsonb_build_object('cursor', result -> 'nextCursor')) -> 'result' FROM page
        WHERE result ? 'nextCursor' AND n < 10
)
SELECT pg_temp.same(jsonb_agg(tool -> 'name' ORDER BY n, place), '["page_B", "page_a", "page_b", "page_c", "page_d"]',
    'all pages, nothing twice')
FROM page, jsonb_array_elements(result -> 'tools') WITH ORDINALITY AS tools (tool, place);
SELECT pg_temp.same(pg_temp.ask('tools/list', '{"cursor": "no"}') #> '{error,code}', '-32602', 'a bad cursor');
SELECT pg_temp.same(pg_temp.ask('tools/list', '{"cursor": 5}') #> '{error,code}', '-32602',
    'a cursor that is no string');
SELECT pg_temp.same(pg_temp.ask('prompts/list',
    jsonb_build_object('cursor', pg_temp.ask('tools/list') #> '{result,nextCursor}')) #> '{error,code}', '-32602',
    'the cursor of another list');

-- a modern client that forgot which revision it speaks
SELECT pg_temp.same(pg_temp.ask('tools/list',
    '{"_meta": {"io.modelcontextprotocol/clientCapabilities": {}}}') #> '{error,code}', '-32602',
    'capabilities without a revision');
