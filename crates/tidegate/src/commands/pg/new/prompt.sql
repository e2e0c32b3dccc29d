-- The prompt @name@. Apply this file as often as you like: registering a name again replaces its handler.
--
--     psql "$DSN" -v ON_ERROR_STOP=1 -f @handler@
--
-- Its test is @test@.

SELECT @schema@.create_or_replace_mcp_handler(
    jsonb_build_object(
        'type', 'prompt',
        'name', '@name@',
        -- What a person reads when choosing.
        'description', 'Asks for a summary of something.',
        -- Arguments of prompts are text.
        'arguments', jsonb_build_array(
            jsonb_build_object('name', 'subject', 'description', 'What to sum up.', 'required', true)
        ),
        'readOnly', true,
        -- false lets in callers who did not say who they are.
        'requiresAuth', true
    ),
    $body$
BEGIN
    -- This runs with the rights of its caller: grants and row-level security bind.
    RETURN @schema@.mcp_prompt_result(
        jsonb_build_array(jsonb_build_object(
            'role', 'user',
            'content', @schema@.mcp_text('Sum up in three sentences: ' || ((request).arguments ->> 'subject'))
        )),
        (request).request_id
    );
END
    $body$
);
