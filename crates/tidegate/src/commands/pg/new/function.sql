-- The tool @name@, which calls a function that is there already. Apply this file as often as you like, and again when the
-- function's arguments change: the schema of the arguments comes from their types.
--
--     psql "$DSN" -v ON_ERROR_STOP=1 -f @handler@
--
-- Its test is @test@.

SELECT @schema@.register_function(
    @function@,
    -- What stands here goes before what the function says of itself: its comment is the description, its arguments are the
    -- inputSchema, and one that is not VOLATILE only reads.
    jsonb_build_object(
        'name', '@name@',
        -- false lets in callers who did not say who they are.
        'requiresAuth', true
    )
);
