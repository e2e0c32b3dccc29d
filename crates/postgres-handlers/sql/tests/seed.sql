-- The examples of the design that this layer follows, each as it is written there. Fragments of bodies stand in a body.

-- Server and its settings
SET mcp.server_name = 'my-server';
SET mcp.server_version = '2.0.0';
SELECT pg_temp.same(api.mcp_server_info(), '{"name": "my-server", "version": "2.0.0"}', 'the settings say who answers');
RESET mcp.server_name;
RESET mcp.server_version;
SELECT pg_temp.same(api.mcp_server_info(), jsonb_build_object('name', current_database(), 'version', '1.0.0'),
    'without them it is the database');
SELECT pg_temp.same(api.mcp_server_capabilities(), '{"tools": {}, "resources": {}, "prompts": {}}', 'what it can do');
SELECT pg_temp.same((api.mcp_initialize('{"protocolVersion": "2025-03-26"}',
    'i')).envelope #> '{result,protocolVersion}', '"2025-03-26"', 'initialize by itself');
SELECT pg_temp.same((api.mcp_ping('i')).envelope, '{"jsonrpc": "2.0", "id": "i", "result": {}}', 'ping by itself');
SELECT pg_temp.ok((SELECT array_agg(attname::text ORDER BY attnum) FROM pg_attribute
    WHERE attrelid = 'api.mcp_request'::regclass)
    @> '{arguments,uri,context,request_id}', 'mcp_request has its members');
SELECT pg_temp.ok((SELECT array_agg(attname::text) FROM pg_attribute WHERE attrelid = 'api.mcp_response'::regclass
    AND attnum > 0) = '{envelope}', 'mcp_response has its one');

-- The dispatcher from psql
SELECT (api.mcp_handle_request(
    '{"jsonrpc":"2.0","id":"1","method":"initialize","params":{"protocolVersion":"2024-11-05"}}'::jsonb
)).envelope;

-- Registration
SELECT api.create_or_replace_mcp_handler(
    jsonb_build_object(
        'id', 'uuid-here',
        'type', 'tool',
        'name', 'my_tool',
        'description', 'What this tool does',
        'inputSchema', jsonb_build_object(
            'type', 'object',
            'properties', jsonb_build_object(
                'param1', jsonb_build_object('type', 'string', 'description', '...')
            ),
            'required', jsonb_build_array('param1')
        ),
        'requiresAuth', true  -- Default: true
    ),
    $body$
DECLARE
    v_param1 text;
BEGIN
    v_param1 := (request).arguments->>'param1';

    RETURN api.mcp_tool_result(
        jsonb_build_array(api.mcp_text('Result: ' || v_param1)),
        (request).request_id
    );
END;
    $body$
);

SELECT api.create_or_replace_mcp_handler(
    jsonb_build_object(
        'id', 'uuid-here',
        'type', 'resource',
        'name', 'my_resource',
        'description', 'Resource description',
        'uriTemplate', 'postgres:///{schema}/{table}',
        'mimeType', 'application/json',
        'requiresAuth', true
    ),
    $body$
DECLARE
    v_data jsonb;
BEGIN
    -- Parse URI and fetch data
    -- ...

    RETURN api.mcp_resource_result(
        jsonb_build_array(jsonb_build_object(
            'uri', (request).uri,
            'mimeType', 'application/json',
            'text', v_data::text
        )),
        (request).request_id
    );
END;
    $body$
);

SELECT api.create_or_replace_mcp_handler(
    jsonb_build_object(
        'id', 'uuid-here',
        'type', 'prompt',
        'name', 'my_prompt',
        'description', 'Prompt description',
        'arguments', jsonb_build_array(
            jsonb_build_object('name', 'task', 'description', 'Task description', 'required', true)
        ),
        'requiresAuth', true
    ),
    $body$
DECLARE
    v_task text;
BEGIN
    v_task := (request).arguments->>'task';

    RETURN api.mcp_prompt_result(
        jsonb_build_array(
            jsonb_build_object(
                'role', 'user',
                'content', jsonb_build_object(
                    'type', 'text',
                    'text', 'Help me with: ' || v_task
                )
            )
        ),
        (request).request_id
    );
END;
    $body$
);

SELECT pg_temp.same(jsonb_agg(type || ' ' || id ORDER BY type),
    '["prompt uuid-here", "resource uuid-here", "tool uuid-here"]', 'three handlers with one id') FROM api.handler;
SELECT pg_temp.same((api.mcp_call_tool('my_tool', '{"param1": "p"}', '{"user_id": "u"}', 'i')).envelope,
    '{"jsonrpc": "2.0", "id": "i", "result": {"content": [{"type": "text", "text": "Result: p"}]}}', 'the tool');
SELECT pg_temp.same((api.mcp_get_prompt('my_prompt', '{"task": "t"}', '{"user_id": "u"}',
    'i')).envelope #> '{result,messages,0,content,text}', '"Help me with: t"', 'the prompt');
SELECT pg_temp.same((api.mcp_read_resource('postgres:///public/orders', '{"user_id": "u"}',
    'i')).envelope #> '{result,contents,0,text}', '""',
    'the resource, whose body leaves its text NULL, which is an empty text');
SELECT pg_temp.same((api.mcp_read_resource('postgres:///public/orders', NULL, 'i')).envelope #> '{error,code}',
    '-32001', 'requiresAuth is true unless told otherwise');

-- Fragments of bodies
SELECT pg_temp.tool('identity', $body$
DECLARE
    v_user_id text;
BEGIN
    v_user_id := current_setting('auth.user_id', true);

    -- Use for RLS, audit logging, etc.
    RETURN api.mcp_tool_result(jsonb_build_array(api.mcp_text(v_user_id)), (request).request_id);
END;
$body$);
SELECT pg_temp.same(pg_temp.call('identity', '{}', '{"user_id": "u"}') #> '{result,content,0,text}', '"u"',
    'a handler reads who asks');

SELECT pg_temp.tool('well', $body$
BEGIN
RETURN api.mcp_tool_result(
    jsonb_build_array(
        api.mcp_text('Operation completed'),
        api.mcp_text('Processed 42 records')
    ),
    (request).request_id
);
END;
$body$);
SELECT pg_temp.same(pg_temp.call('well') #> '{result,content}',
    '[{"type": "text", "text": "Operation completed"}, {"type": "text", "text": "Processed 42 records"}]',
    'two blocks of text');

SELECT pg_temp.tool('badly', $body$
BEGIN
    PERFORM 1 / 0;
EXCEPTION WHEN OTHERS THEN
RETURN api.mcp_tool_error('Error: ' || SQLERRM, (request).request_id);
-- Or with specific error code:
RETURN api.mcp_error(-32603, 'Error: ' || SQLERRM, (request).request_id);
END;
$body$);
SELECT pg_temp.same(pg_temp.call('badly') -> 'result', '{"content": [{"type": "text",
    "text": "Error: division by zero"}], "isError": true}', 'a handler that tells its error');

CREATE FUNCTION pg_temp.not_found(p_name text, p_request_id text) RETURNS api.mcp_response LANGUAGE plpgsql AS $body$
BEGIN
-- ✅ CORRECT: MCP error response (JSON-RPC 2.0 error object)
RETURN api.mcp_error(-32601, 'Tool not found: ' || p_name, p_request_id);
-- Returns: {jsonrpc: "2.0", id: "...", error: {code: -32601, message: "..."}}

-- ✅ ALSO CORRECT: Convenience wrapper
RETURN api.mcp_tool_error('Tool not found: ' || p_name, p_request_id);
END;
$body$;
SELECT pg_temp.same((pg_temp.not_found('x', 'i')).envelope, '{"jsonrpc": "2.0", "id": "i", "error": {"code": -32601,
    "message": "Tool not found: x"}}', 'an error with a code');

SELECT pg_temp.tool('keeps_id', $body$
DECLARE
    content jsonb := '[]';
BEGIN
-- ✅ CORRECT: Preserve request_id
RETURN api.mcp_tool_result(content, (request).request_id);
END;
$body$);
SELECT pg_temp.same(pg_temp.call('keeps_id', '{}', NULL, '"i"') -> 'id', '"i"', 'the id of the request');

-- Testing
DO $$
DECLARE
    v_response api.mcp_response;
    v_envelope jsonb;
BEGIN
    -- Register test handler
    PERFORM api.create_or_replace_mcp_handler(
        jsonb_build_object(
            'id', 'ffffffff-test-4000-8000-000000000001',
            'type', 'tool',
            'name', 'test_tool',
            'description', 'Test',
            'inputSchema', '{}'::jsonb,
            'requiresAuth', false  -- For framework tests
        ),
        $body$
BEGIN
    RETURN api.mcp_tool_result(
        jsonb_build_array(api.mcp_text('success')),
        (request).request_id
    );
END;
        $body$
    );

    -- Test invocation
    v_response := api.mcp_call_tool('test_tool', '{}'::jsonb, NULL, 'test-req-1');
    v_envelope := (v_response).envelope;

    -- Verify JSON-RPC 2.0 structure
    IF v_envelope->>'jsonrpc' != '2.0' THEN
        RAISE EXCEPTION 'Missing jsonrpc 2.0';
    END IF;

    IF v_envelope->>'id' != 'test-req-1' THEN
        RAISE EXCEPTION 'request_id not preserved';
    END IF;

    IF v_envelope->'error' IS NOT NULL THEN
        RAISE EXCEPTION 'Unexpected error: %', v_envelope->'error'->>'message';
    END IF;

    RAISE NOTICE '✓ Test passed';
END $$;

SELECT pg_temp.ok(EXISTS (SELECT FROM api.handler WHERE id = 'ffffffff-test-4000-8000-000000000001'),
    'the self-contained test passes');

SELECT api.register_database_info();
-- Full round-trip test
SELECT (api.mcp_handle_request(
    '{"jsonrpc":"2.0","id":"1","method":"initialize","params":{"protocolVersion":"2024-11-05"}}'::jsonb
)).envelope;

SELECT (api.mcp_handle_request(
    '{"jsonrpc":"2.0","id":"2","method":"tools/list"}'::jsonb
)).envelope;

SELECT (api.mcp_handle_request(
    '{"jsonrpc":"2.0","id":"3","method":"tools/call","params":{"name":"database_info","arguments":{}}}'::jsonb
)).envelope;
SELECT pg_temp.same(pg_temp.call('database_info') #> '{result,structuredContent,database}', to_jsonb(current_database()),
    'the optional handler says which database it is');
SELECT pg_temp.ok(jsonb_path_exists(api.mcp_list_resources(), '$.resources[*] ? (@.name == "my_resource")'),
    'a resource that was registered with a template is among the resources');
SELECT pg_temp.ok(NOT jsonb_path_exists(pg_temp.ask('resources/list', p_context := '{"user_id": "u"}'),
    '$.result.resources[*] ? (@.name == "my_resource")'), 'and over the protocol among the templates');

SELECT pg_temp.tool('protected_tool', 'BEGIN RETURN api.mcp_tool_result(''[]'', (request).request_id); END',
    '{"requiresAuth": true}');
DO $test$
DECLARE
    v_response api.mcp_response;
BEGIN
    -- Test auth enforcement (missing context)
    v_response := api.mcp_call_tool('protected_tool', '{}'::jsonb, NULL, 'req-1');
    IF (v_response).envelope->'error' IS NULL THEN
        RAISE EXCEPTION 'Should require auth (missing error)';
    END IF;

    -- Test with context
    v_response := api.mcp_call_tool(
        'protected_tool',
        '{}'::jsonb,
        '{"user_id": "test-user"}'::jsonb,
        'req-2'
    );
    IF (v_response).envelope->'error' IS NOT NULL THEN
        RAISE EXCEPTION 'Should succeed with auth, got: %', (v_response).envelope->'error'->>'message';
    END IF;
END
$test$;
SELECT pg_temp.ok(true, 'the test of authentication passes');
