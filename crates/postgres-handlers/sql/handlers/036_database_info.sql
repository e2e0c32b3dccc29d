-- A handler to begin with: what database this is. It is registered when the owner calls for it.

CREATE FUNCTION @schema@.register_database_info() RETURNS text
LANGUAGE sql SET search_path = pg_catalog, pg_temp
RETURN @schema@.create_or_replace_mcp_handler(
    jsonb_build_object(
        'id', 'database_info',
        'type', 'tool',
        'name', 'database_info',
        'title', 'Database info',
        'description', 'Name, version, encoding and time zone of the database, and how many tables you may read',
        'inputSchema', '{"type": "object", "additionalProperties": false}'::jsonb,
        'requiresAuth', false,
        'readOnly', true,
        'annotations', '{"readOnlyHint": true, "openWorldHint": false}'::jsonb
    ),
    $handler$
BEGIN
    RETURN @schema@.mcp_structured_result(
        pg_catalog.jsonb_build_object(
            'database', pg_catalog.current_database(),
            'version', pg_catalog.current_setting('server_version'),
            'encoding', pg_catalog.current_setting('server_encoding'),
            'time_zone', pg_catalog.current_setting('TimeZone'),
            'tables', (
                SELECT pg_catalog.count(*) FROM pg_catalog.pg_class
                WHERE relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT relispartition
                    AND relnamespace::pg_catalog.regnamespace::pg_catalog.text
                        NOT IN ('pg_catalog', 'information_schema', '@schema@', 'pg_toast')
                    AND pg_catalog.has_schema_privilege(relnamespace, 'USAGE')
                    AND pg_catalog.has_table_privilege(pg_class.oid, 'SELECT'))
        ),
        (request).request_id);
END
    $handler$
);
