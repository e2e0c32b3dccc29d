-- The tool @name@. Apply this file as often as you like: registering a name again replaces its handler.
--
--     psql "$DSN" -v ON_ERROR_STOP=1 -f @handler@
--
-- Its test is @test@.

SELECT @schema@.create_or_replace_mcp_handler(
    jsonb_build_object(
        'type', 'tool',
        'name', '@name@',
        -- What a model reads when it chooses among tools.
        'description', 'Says what it was given, and who asked.',
        -- Arguments are checked against this before the body runs; all that is wrong with them is told at once.
        'inputSchema', jsonb_build_object(
            'type', 'object',
            'properties', jsonb_build_object(
                'message', jsonb_build_object('type', 'string', 'description', 'What to say.', 'maxLength', 1000)
            ),
            'required', jsonb_build_array('message'),
            'additionalProperties', false
        ),
        -- A tool that writes says false, or leaves both out.
        'readOnly', true,
        'annotations', jsonb_build_object('readOnlyHint', true),
        -- false lets in callers who did not say who they are.
        'requiresAuth', true
    ),
    $body$
DECLARE
    v_message text := (request).arguments ->> 'message';
BEGIN
    -- This runs with the rights of its caller: grants and row-level security bind.
    -- Who asks stands in the settings auth.user_id and auth.tenant_id.
    IF btrim(v_message) = '' THEN
        -- The caller reads this text. Of any other error it reads a reference, and the server's log has the rest.
        PERFORM @schema@.mcp_refuse('message: is blank; say something');
    END IF;
    RETURN @schema@.mcp_tool_result(
        jsonb_build_array(@schema@.mcp_text(current_setting('auth.user_id') || ' says: ' || v_message)),
        (request).request_id
    );
END
    $body$
);
