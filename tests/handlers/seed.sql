-- The handlers of the design that the SQL layer follows, each as it is written there, and committed: a client calls them.
-- Fragments of bodies stand in a body.

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

-- Testing: the handler of the self-contained test stays
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

-- Fragments of bodies
CREATE FUNCTION pg_temp.tool(p_name text, p_body text) RETURNS void LANGUAGE sql AS $$
    SELECT api.create_or_replace_mcp_handler(jsonb_build_object('type', 'tool', 'name', p_name, 'requiresAuth', false), p_body)
$$;
SELECT pg_temp.tool('identity', $body$
DECLARE
    v_user_id text;
BEGIN
    v_user_id := current_setting('auth.user_id', true);

    -- Use for RLS, audit logging, etc.
    RETURN api.mcp_tool_result(jsonb_build_array(api.mcp_text(v_user_id)), (request).request_id);
END;
$body$);

SELECT pg_temp.tool('two_blocks', $body$
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

SELECT pg_temp.tool('badly', $body$
BEGIN
    PERFORM 1 / 0;
EXCEPTION WHEN OTHERS THEN
RETURN api.mcp_tool_error('Error: ' || SQLERRM, (request).request_id);
-- Or with specific error code:
RETURN api.mcp_error(-32603, 'Error: ' || SQLERRM, (request).request_id);
END;
$body$);

SELECT pg_temp.tool('keeps_id', $body$
DECLARE
    content jsonb := '[]';
BEGIN
-- ✅ CORRECT: Preserve request_id
RETURN api.mcp_tool_result(content, (request).request_id);
END;
$body$);

-- An error with a code: a name that callers give, and it is not there
SELECT pg_temp.tool('not_found', $body$
DECLARE
    p_name text := (request).arguments ->> 'name';
    p_request_id jsonb := (request).request_id;
BEGIN
-- ✅ CORRECT: MCP error response (JSON-RPC 2.0 error object)
RETURN api.mcp_error(-32601, 'Tool not found: ' || p_name, p_request_id);
-- Returns: {jsonrpc: "2.0", id: "...", error: {code: -32601, message: "..."}}

-- ✅ ALSO CORRECT: Convenience wrapper
RETURN api.mcp_tool_error('Tool not found: ' || p_name, p_request_id);
END;
$body$);

-- What the design's round trip calls
SELECT pg_temp.tool('database_info', 'BEGIN RETURN api.mcp_tool_result(jsonb_build_array(api.mcp_text(current_database())), (request).request_id); END');
SELECT api.create_or_replace_mcp_handler('{"type": "tool", "name": "protected_tool"}', 'BEGIN RETURN api.mcp_tool_result(''[]'', (request).request_id); END');
