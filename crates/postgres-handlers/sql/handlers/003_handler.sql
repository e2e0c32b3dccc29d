-- The registry: one row a handler, and a number that grows with each change.

CREATE TABLE @schema@.handler (
    type text NOT NULL CHECK (type IN ('tool', 'resource', 'prompt')),
    id text NOT NULL CHECK (id <> ''),
    name text NOT NULL,
    metadata jsonb NOT NULL,
    definition jsonb NOT NULL,
    input_schema jsonb,
    output_schema jsonb,
    uri_template text,
    uri_pattern text,
    uri_variables text[] NOT NULL DEFAULT '{}',
    uri_literals_length integer NOT NULL DEFAULT 0,
    requires_auth boolean NOT NULL,
    read_only boolean NOT NULL,
    returns_rows boolean NOT NULL,
    commits_on_error boolean NOT NULL,
    isolation_min text,
    function_signature text NOT NULL,
    registered_at timestamptz NOT NULL DEFAULT now(),
    calls_function text,
    columns text,
    PRIMARY KEY (type, id),
    UNIQUE (type, name)
);
COMMENT ON TABLE @schema@.handler IS
    'The handlers. Change them with create_or_replace_mcp_handler and drop_mcp_handler.';
COMMENT ON COLUMN @schema@.handler.metadata IS 'As it was registered.';
COMMENT ON COLUMN @schema@.handler.definition IS 'As it is listed.';
COMMENT ON COLUMN @schema@.handler.function_signature IS
    'As text: a column of type regprocedure would keep pg_upgrade from running.';
COMMENT ON COLUMN @schema@.handler.calls_function IS
    'The function that register_function made the handler of: whoever may not execute it has no use for the handler.';
COMMENT ON COLUMN @schema@.handler.columns IS
    'Names and types of its rows'' columns, as they stand behind AS. NULL where rows are JSON and no more, and of'
    ' handlers without rows.';

CREATE INDEX handler_uri_template ON @schema@.handler (uri_template) WHERE uri_template IS NOT NULL;

-- Whether whoever asks may execute a function that lies anywhere.
CREATE FUNCTION @schema@.may_execute(p_signature text) RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $body$
BEGIN
    RETURN coalesce(has_function_privilege(to_regprocedure(p_signature), 'EXECUTE'), false);
EXCEPTION WHEN insufficient_privilege THEN
    -- Looking into a schema that is closed to one is an error, and no answer.
    RETURN false;
END
$body$;

-- What a role may not execute does not exist for it: neither in lists nor in calls, which read this table with the
-- rights of whoever calls.
ALTER TABLE @schema@.handler ENABLE ROW LEVEL SECURITY;
CREATE POLICY handler_of_caller ON @schema@.handler FOR SELECT
    USING (
        pg_catalog.has_function_privilege(pg_catalog.to_regprocedure(function_signature), 'EXECUTE')
        AND (calls_function IS NULL OR @schema@.may_execute(calls_function))
    );

CREATE TABLE @schema@.registry (
    is_only_row boolean PRIMARY KEY DEFAULT true CHECK (is_only_row),
    revision bigint NOT NULL DEFAULT 0,
    identity_check text,
    logs_exchanges boolean NOT NULL DEFAULT false,
    server_name text,
    server_version text
);
COMMENT ON TABLE @schema@.registry IS
    'One row: the revision of the handlers, the function that knows who exists, whether calls are logged, and the name of'
    ' the server.';
INSERT INTO @schema@.registry DEFAULT VALUES;

-- Whoever listens is told the revision; whoever lost the connection compares it. The row also makes those who change
-- handlers wait for each other, so that what one checked still holds when it writes.
CREATE FUNCTION @schema@.handlers_changed() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $body$
BEGIN
    UPDATE @schema@.registry SET revision = revision + 1 WHERE is_only_row;
    RETURN NULL;
END
$body$;

CREATE FUNCTION @schema@.registry_changed() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $body$
BEGIN
    PERFORM pg_notify('@schema@_mcp_handlers', NEW.revision::text);
    RETURN NULL;
END
$body$;

CREATE TRIGGER handlers_changed AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON @schema@.handler
    FOR EACH STATEMENT EXECUTE FUNCTION @schema@.handlers_changed();
CREATE TRIGGER registry_changed AFTER UPDATE ON @schema@.registry
    FOR EACH ROW EXECUTE FUNCTION @schema@.registry_changed();
