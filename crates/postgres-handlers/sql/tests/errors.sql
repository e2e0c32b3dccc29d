-- Whatever a handler does, there is an answer, and it gives nothing away.

CREATE TABLE public.tidegate_test_write (n integer);
CREATE FUNCTION pg_temp.registers(p_name text, p_statement text,
    p_more jsonb DEFAULT '{}') RETURNS void LANGUAGE sql AS $$
    SELECT pg_temp.tool(p_name, format('BEGIN INSERT INTO tidegate_test_write VALUES (1); %s END', p_statement), p_more)
$$;

-- Raising
SELECT pg_temp.registers('raises', 'RAISE EXCEPTION ''secret %'', 1/1;');
SELECT pg_temp.registers('divides', 'PERFORM 1 / 0;');
SELECT pg_temp.registers('asserts', 'ASSERT false, ''secret'';');
SELECT pg_temp.registers('misses', 'PERFORM * FROM no_such_table;');
SELECT pg_temp.registers('falls_off', 'NULL;');
SELECT pg_temp.registers('ends_transaction', 'COMMIT;');
SELECT pg_temp.registers('cancels', 'RAISE EXCEPTION ''secret'' USING ERRCODE = ''query_canceled'';');
SELECT pg_temp.ok(answer #> '{result,isError}' = 'true' AND answer -> 'id' = '"i"' AND NOT answer ? 'error',
    format('%s: a result that says that it failed', name))
    || E'\n' || pg_temp.ok(answer::text !~* 'secret|zero|no_such_table|assert|control reached|invalid trans',
        format('%s: nothing of the error is in it', name))
FROM (SELECT name, pg_temp.call(name, '{}', NULL, '"i"') AS answer
    FROM unnest(ARRAY['raises', 'divides', 'asserts', 'misses', 'falls_off', 'ends_transaction',
        'cancels']) AS name) AS answers;
SELECT pg_temp.ok(NOT EXISTS (SELECT FROM public.tidegate_test_write), 'what they wrote is undone');
SELECT pg_temp.registers('sleeps', 'PERFORM pg_sleep(30);');
SET LOCAL statement_timeout = '200ms';
SELECT pg_temp.same(pg_temp.call('sleeps') #> '{result,isError}', 'true', 'a statement timeout is caught');
SET LOCAL statement_timeout = 0;
SELECT pg_temp.registers('refuses', 'PERFORM api.mcp_refuse(''choose a number below 5'');');
SELECT pg_temp.same(pg_temp.call('refuses') #> '{result,content,0,text}', '"choose a number below 5"',
    'what is meant for the caller reaches it');

-- Broken answers
SELECT pg_temp.registers(name, 'RETURN ' || answer || ';')
FROM (VALUES
    ('null', 'NULL'),
    ('null_envelope', 'ROW(NULL)::api.mcp_response'),
    ('no_jsonrpc', 'ROW(''{"id": "i", "result": {"content": []}}'')::api.mcp_response'),
    ('array', 'ROW(''[]'')::api.mcp_response'),
    ('both', 'ROW(''{"jsonrpc": "2.0", "id": "i", "result": {"content": []},
        "error": {"code": 1, "message": ""}}'')::api.mcp_response'),
    ('neither', 'ROW(''{"jsonrpc": "2.0", "id": "i"}'')::api.mcp_response'),
    ('no_content', 'api.mcp_success(''{}'', (request).request_id)'),
    ('wrong_content', 'api.mcp_tool_result(''[{"type": "text"}]'', (request).request_id)'),
    ('text_null', 'api.mcp_tool_result(''[{"type": "text", "text": null}]'', (request).request_id)'),
    ('wrong_id', 'api.mcp_tool_result(''[]'', ''some-id'')'),
    ('null_id', 'api.mcp_tool_result(''[]'', NULL)'),
    ('reserved_code', 'api.mcp_error(-32050, ''x'', (request).request_id)'),
    ('text_code', 'ROW(''{"jsonrpc": "2.0", "id": "i", "error": {"code": "x", "message": ""}}'')::api.mcp_response')
) AS list (name, answer);
SELECT pg_temp.ok(answer #> '{error,code}' = '-32603' AND answer -> 'id' = '"i"'
    AND answer #> '{error,data,code}' = '"broken_answer"', format('a broken answer: %s', name))
FROM (SELECT name, pg_temp.call(name, '{}', NULL, '"i"') AS answer
    FROM unnest(ARRAY['null', 'null_envelope', 'no_jsonrpc', 'array', 'both', 'neither',
    'no_content', 'wrong_content', 'text_null', 'wrong_id', 'null_id', 'reserved_code',
        'text_code']) AS name) AS answers;
SELECT pg_temp.ok(NOT EXISTS (SELECT FROM public.tidegate_test_write), 'what they wrote is undone too');

-- Saying that it failed
SELECT pg_temp.registers('says', 'RETURN api.mcp_tool_error(''no'', (request).request_id);');
SELECT pg_temp.registers('says_error', 'RETURN api.mcp_error(-32602, ''no'', (request).request_id);');
SELECT pg_temp.same(pg_temp.call('says') -> 'result', '{"content": [{"type": "text", "text": "no"}], "isError": true}',
    'a tool error is a result');
SELECT pg_temp.same(pg_temp.call('says_error') -> 'error', '{"code": -32602, "message": "no"}',
    'an error of the protocol goes through');
SELECT pg_temp.ok(NOT EXISTS (SELECT FROM public.tidegate_test_write), 'a returned error undoes what was written');
SELECT pg_temp.registers('keeps', 'RETURN api.mcp_tool_error(''no'', (request).request_id);',
    '{"commitOnError": true}');
SELECT pg_temp.same(pg_temp.call('keeps') #> '{result,isError}', 'true', 'unless the handler opted out');
SELECT pg_temp.ok((SELECT count(*) = 1 FROM public.tidegate_test_write), 'then it stays');
SELECT pg_temp.registers('well', 'RETURN api.mcp_tool_result(''[]'', (request).request_id);');
SELECT pg_temp.same(pg_temp.call('well') -> 'result', '{"content": []}', 'what went well');
SELECT pg_temp.ok((SELECT count(*) = 2 FROM public.tidegate_test_write), 'stays');

-- Resources and prompts have no isError
SELECT api.create_or_replace_mcp_handler('{"type": "prompt", "name": "fails", "requiresAuth": false}',
    'BEGIN RAISE EXCEPTION ''secret''; END');
SELECT api.create_or_replace_mcp_handler('{"type": "resource", "name": "fails", "uriTemplate": "app:///fails",
    "requiresAuth": false}', 'BEGIN RAISE EXCEPTION ''secret''; END');
SELECT pg_temp.ok(answer #> '{error,code}' = '-32603' AND answer::text !~ 'secret',
    'an internal error without the detail')
FROM (VALUES (pg_temp.ask('prompts/get', '{"name": "fails"}')),
    (pg_temp.ask('resources/read', '{"uri": "app:///fails"}'))) AS answers (answer);

-- What only the owner of the transaction can do again
SELECT pg_temp.registers('conflicts', 'RAISE EXCEPTION ''secret'' USING ERRCODE = ''serialization_failure'';');
SELECT pg_temp.registers('locks', 'RAISE EXCEPTION ''secret'' USING ERRCODE = ''deadlock_detected'';');
SELECT pg_temp.refused($$SELECT pg_temp.call('conflicts')$$, '', 'a serialization failure is handed on')
    || E'\n' || pg_temp.matches(pg_temp.outcome($$SELECT pg_temp.call('conflicts')$$),
        '^ERROR 40001: the transaction met another one', 'with its code and without its text');
SELECT pg_temp.matches(pg_temp.outcome($$SELECT pg_temp.call('locks')$$), '^ERROR 40P01: the transaction met',
    'so is a deadlock');

-- What is not there
SELECT pg_temp.same(pg_temp.call('none') -> 'error', '{"code": -32602, "message": "Unknown tool: none"}',
    'an unknown tool');
SELECT pg_temp.same(pg_temp.ask('prompts/get', '{"name": "none"}') #> '{error,code}', '-32602', 'an unknown prompt');

-- A client that asks for the lines of the log gets none of these. A line that was sent would be one more message of
-- this session, which SQL cannot see; so it is the setting that is looked at.
SELECT pg_temp.ok(bool_and(proconfig @> '{client_min_messages=error}'),
    format('%s keeps its lines for the log', string_agg(proname, ', ' ORDER BY proname)))
FROM pg_proc WHERE pronamespace = 'api'::regnamespace AND prosrc ~ 'RAISE LOG';

-- A schema that leads the check astray
SELECT pg_temp.registers('astray', 'RETURN api.mcp_tool_result(''[]'', (request).request_id);',
    '{"inputSchema": {"properties": {"a": {"$ref": "#/x-parts/a"}}, "x-parts": {"a": {"minimum": "abc"}}}}');
SELECT pg_temp.ok(pg_temp.call('astray', '{"a": 5}') #> '{result,isError}' = 'true',
    'arguments that cannot be checked: an answer all the same');
SELECT pg_temp.registers('endless', 'RETURN api.mcp_tool_result(''[]'', (request).request_id);',
    '{"inputSchema": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}');
SET LOCAL statement_timeout = '200ms';
SELECT pg_temp.ok(pg_temp.call('endless') #>> '{result,content,0,text}' ~ 'took too long', 'or not in time');
SET LOCAL statement_timeout = 0;

-- Members that clients would refuse
SELECT pg_temp.registers(name,
    format('RETURN ROW(jsonb_build_object(''jsonrpc'', ''2.0'', ''id'', (request).request_id,
        %L, %L::jsonb))::api.mcp_response;', part, value))
FROM (VALUES
    ('meta', 'result', '{"content": [], "_meta": "x"}'),
    ('block_meta', 'result', '{"content": [{"type": "text", "text": "", "_meta": null}]}'),
    ('annotations', 'result', '{"content": [{"type": "text", "text": "", "annotations": null}]}'),
    ('mime_type', 'result', '{"content": [{"type": "resource", "resource": {"uri": "a:b", "text": "",
        "mimeType": null}}]}'),
    ('text_and_null', 'result', '{"content": [{"type": "resource", "resource": {"uri": "a:b", "text": "",
        "blob": null}}]}'),
    ('great_code', 'error', '{"code": 1e20, "message": ""}'),
    ('part_code', 'error', '{"code": 1.5, "message": ""}')
) AS list (name, part, value);
SELECT pg_temp.same(pg_temp.call(name) #> '{error,data,code}', '"broken_answer"', format('a broken answer: %s', name))
FROM unnest(ARRAY['meta', 'block_meta', 'annotations', 'mime_type', 'text_and_null', 'great_code',
    'part_code']) AS name;
SELECT pg_temp.registers('embedded',
    $$RETURN api.mcp_tool_result('[{"type": "resource", "resource": {"uri": "a:b", "blob": "AA==",
    "mimeType": "a/b"}}]', (request).request_id);$$);
SELECT pg_temp.ok(pg_temp.call('embedded') ? 'result', 'an embedded resource');
SELECT api.create_or_replace_mcp_handler('{"type": "resource", "name": "forever", "uriTemplate": "app:///forever",
    "requiresAuth": false}',
    $$BEGIN RETURN api.mcp_success('{"contents": [], "ttlMs": "long"}', (request).request_id); END$$);
SELECT pg_temp.same(pg_temp.ask('resources/read', '{"uri": "app:///forever"}') #> '{error,data,code}',
    '"broken_answer"', 'a broken answer: how long it holds');
