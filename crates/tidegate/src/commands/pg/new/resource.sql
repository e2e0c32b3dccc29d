-- The resource @name@. Apply this file as often as you like: registering a name again replaces its handler.
--
--     psql "$DSN" -v ON_ERROR_STOP=1 -f @handler@
--
-- Its test is @test@.

SELECT @schema@.create_or_replace_mcp_handler(
    jsonb_build_object(
        'type', 'resource',
        'name', '@name@',
        -- What a person or a model reads when it chooses.
        'description', 'One thing, by its id.',
        -- With a variable it is a template; without one, a plain resource, which stands in the list of resources.
        'uriTemplate', 'app:///@name@/{id}',
        'mimeType', 'application/json',
        'readOnly', true,
        -- false lets in callers who did not say who they are.
        'requiresAuth', true
    ),
    $body$
DECLARE
    -- Variables come percent-decoded.
    v_id text := (request).variables ->> 'id';
BEGIN
    -- This runs with the rights of its caller: grants and row-level security bind.
    -- Who asks stands in the settings auth.user_id and auth.tenant_id.
    IF v_id !~ '^[0-9]{1,9}$' THEN
        -- The caller reads this text. Of any other error it reads a reference, and the server's log has the rest.
        PERFORM @schema@.mcp_refuse('id: must be a number');
    END IF;
    RETURN @schema@.mcp_resource_result(
        jsonb_build_array(jsonb_build_object(
            'uri', (request).uri,
            'mimeType', 'application/json',
            'text', jsonb_build_object('id', v_id::integer)::text
        )),
        (request).request_id
    );
END
    $body$
);
