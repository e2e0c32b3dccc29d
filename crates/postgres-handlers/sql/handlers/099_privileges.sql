-- The last step: nothing in the schema is anybody's but its owner's, and of those who were let in before. Who may enter
-- a schema that was there before is not ours to say.

DO $schema$
BEGIN
    IF EXISTS (SELECT FROM @schema@.migration WHERE version = 0 AND name = 'schema created') THEN
        REVOKE ALL ON SCHEMA @schema@ FROM PUBLIC;
    END IF;
END
$schema$;

REVOKE ALL ON @schema@.migration, @schema@.handler, @schema@.registry, @schema@.exchange FROM PUBLIC;
REVOKE ALL ON TYPE @schema@.mcp_request, @schema@.mcp_response FROM PUBLIC;

DO $revokes$
DECLARE
    v_function regprocedure;
BEGIN
    -- What a stranger put here is not ours to change, and must not keep an upgrade from being done.
    FOR v_function IN
        SELECT oid FROM pg_proc WHERE pronamespace = '@schema@'::regnamespace AND pg_has_role(proowner, 'USAGE')
    LOOP
        EXECUTE format('REVOKE ALL ON ROUTINE %s FROM PUBLIC', v_function);
    END LOOP;
END
$revokes$;

-- Functions that are new in this version have to be granted to them too.
DO $grants$
DECLARE
    v_role name;
BEGIN
    FOR v_role IN SELECT rolname FROM @schema@.dispatching_roles() AS rolname LOOP
        PERFORM @schema@.grant_mcp_access(quote_ident(v_role)::regrole);
    END LOOP;
END
$grants$;
