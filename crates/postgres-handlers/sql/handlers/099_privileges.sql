-- The last step: nothing in the schema is anybody's but its owner's. Who may enter a schema that was there before is not
-- ours to say.

DO $schema$
BEGIN
    IF NOT (SELECT schema_was_found FROM @schema@.installation) THEN
        REVOKE ALL ON SCHEMA @schema@ FROM PUBLIC;
    END IF;
END
$schema$;

REVOKE ALL ON ALL TABLES IN SCHEMA @schema@ FROM PUBLIC;
REVOKE ALL ON ALL ROUTINES IN SCHEMA @schema@ FROM PUBLIC;
REVOKE ALL ON TYPE @schema@.mcp_request, @schema@.mcp_response FROM PUBLIC;
