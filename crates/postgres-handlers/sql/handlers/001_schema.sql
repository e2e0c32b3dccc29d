-- The schema, and which version is installed in it.
--
-- The files are run once, in the order of their numbers and in one transaction. The name of the schema stands in them as
-- a placeholder that whoever applies them fills in.

-- For this transaction: names mean what the server brings along.
SET LOCAL search_path = pg_catalog, pg_temp;

DO $guard$
DECLARE
    v_schema oid := to_regnamespace('@schema@');
    v_stranger text;
BEGIN
    IF current_setting('standard_conforming_strings') = 'off' THEN
        RAISE EXCEPTION 'the handlers are written for standard_conforming_strings = on'
            USING HINT = 'SET standard_conforming_strings = on first.';
    END IF;
    IF current_setting('server_version_num')::integer < 150000 THEN
        RAISE EXCEPTION 'the handlers need PostgreSQL 15 or newer; this server is %', current_setting('server_version');
    END IF;
    IF current_setting('server_encoding') <> 'UTF8' THEN
        RAISE EXCEPTION 'the handlers need a database whose encoding is UTF8; this one has %',
            current_setting('server_encoding');
    END IF;
    -- By names in the catalog, which may be read whoever owns the schema. One of them alone could be anybody's.
    IF (
        SELECT count(*) = 3 FROM pg_class
        WHERE relnamespace = v_schema AND relname IN ('installation', 'handler', 'mcp_request')
    ) THEN
        RAISE EXCEPTION 'the schema "@schema@" has handlers already'
            USING HINT = 'Uninstall them first, or choose another schema.';
    END IF;

    -- A schema of somebody else's is left alone: later nobody could tell what in it is ours.
    SELECT stranger.name INTO v_stranger
    FROM (
        SELECT relname::text AS name FROM pg_catalog.pg_class WHERE relnamespace = v_schema
        UNION ALL
        SELECT proname::text FROM pg_catalog.pg_proc WHERE pronamespace = v_schema
        UNION ALL
        SELECT typname::text FROM pg_catalog.pg_type WHERE typnamespace = v_schema AND typcategory <> 'A'
    ) AS stranger
    ORDER BY stranger.name
    LIMIT 1;
    IF v_stranger IS NOT NULL THEN
        RAISE EXCEPTION 'the schema "@schema@" holds objects of others, "%" among them', v_stranger
            USING HINT = 'Choose a schema that is empty or does not exist.';
    END IF;

    -- Only where there is none: the words IF NOT EXISTS ask for rights in the database that then are not needed.
    IF v_schema IS NULL THEN
        CREATE SCHEMA @schema@;
    END IF;
    CREATE TABLE @schema@.installation (
        version integer NOT NULL,
        schema_was_found boolean NOT NULL,
        installed_at timestamptz NOT NULL DEFAULT now()
    );
    COMMENT ON TABLE @schema@.installation IS
        'One row: the version of the handlers, and whether the schema was there before them.';
    INSERT INTO @schema@.installation (version, schema_was_found) VALUES (1, v_schema IS NOT NULL);
END
$guard$;
