-- With SET mcp.compatibility = 'pgmi', codes, errors and ids are those of pgmi. Without it they are not.

SELECT pg_temp.tool('tells', 'BEGIN RETURN api.mcp_error(-32603, ''Error: told'', (request).request_id, ''{"a": 1}''); END');
SELECT pg_temp.tool('tool_error', 'BEGIN RETURN api.mcp_tool_error(''it failed'', (request).request_id); END');
SELECT pg_temp.tool('raises', 'BEGIN RAISE EXCEPTION ''stock is empty''; END');
SELECT pg_temp.tool('refuses', 'BEGIN PERFORM api.mcp_refuse(''not for you''); END');
SELECT pg_temp.tool('takes', 'BEGIN RETURN api.mcp_tool_result(''[]'', (request).request_id); END',
    '{"inputSchema": {"properties": {"n": {"type": "integer"}}, "required": ["n"]}}');
SELECT pg_temp.tool('shows_id', 'BEGIN RETURN api.mcp_structured_result(
    jsonb_build_object(''id'', (request).request_id, ''text'', (request).request_id #>> ''{}''), (request).request_id); END');

SELECT pg_temp.same(pg_temp.call('tool_error') #> '{result,isError}', 'true', 'a tool error is a result');
SELECT pg_temp.ok(pg_temp.call('raises')::text NOT LIKE '%stock is empty%', 'what is raised stays in the log');
SELECT pg_temp.same(pg_temp.call('nothing') #> '{error,code}', '-32602', 'an unknown tool');
SELECT pg_temp.same(pg_temp.call('shows_id') #> '{result,structuredContent,id}', '1', 'an id as it came');
SELECT pg_temp.ok((api.mcp_handle_request('{"jsonrpc": "2.0", "method": "notifications/initialized"}')).envelope IS NULL,
    'a notification has no answer');

SET mcp.compatibility = 'pgmi';
SELECT pg_temp.same(pg_temp.call('tells') -> 'error', '{"code": -32603, "message": "Error: told", "data": {"a": 1}}',
    'an error of a handler is that error, with its data');
SELECT pg_temp.same(pg_temp.call('tool_error') -> 'error', '{"code": -32603, "message": "it failed"}', 'a tool error');
SELECT pg_temp.same(pg_temp.call('raises') -> 'error', '{"code": -32603, "message": "stock is empty"}',
    'what is raised is the message');
SELECT pg_temp.same(pg_temp.call('refuses') -> 'error', '{"code": -32603, "message": "not for you"}', 'a refusal');
SELECT pg_temp.same(pg_temp.call('takes') #> '{error,code}', '-32602', 'wrong arguments');
SELECT pg_temp.same(pg_temp.call('nothing') -> 'error', '{"code": -32601, "message": "Tool not found: nothing"}',
    'an unknown tool');
SELECT pg_temp.same(pg_temp.get_prompt('nothing') #> '{error,code}', '-32601', 'an unknown prompt');
SELECT pg_temp.same(pg_temp.read_resource('shop:///nothing') #> '{error,code}', '-32601', 'an unknown resource');
SELECT pg_temp.same(pg_temp.call('shows_id', p_id := '7') -> 'id', '7', 'the client gets its id back');
SELECT pg_temp.same(pg_temp.call('shows_id', p_id := '7') #> '{result,structuredContent}', '{"id": "7", "text": "7"}',
    'a handler gets a string');
SELECT pg_temp.same(
    (api.mcp_handle_request('{"jsonrpc": "2.0", "method": "notifications/initialized"}')).envelope -> 'result', '{}',
    'an empty success');
SELECT pg_temp.ok(
    (api.mcp_handle_request('{"jsonrpc": "2.0", "method": "notifications/cancelled"}')).envelope IS NULL,
    'other notifications have no answer');

SET mcp.compatibility = 'PGMI';
SELECT pg_temp.refused('SELECT api.mcp_handle_request(''{"jsonrpc": "2.0", "id": 1, "method": "ping"}'')',
    'mcp.compatibility: "PGMI" is not known; it can be pgmi, or empty', 'another value is refused');
RESET mcp.compatibility;
