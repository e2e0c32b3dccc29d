-- The schema and the history of what was applied to it.
--
-- Every file here may be run again: it makes what is missing and replaces what is ours. A step that cannot be written
-- so asks the table `migration` whether it was done. The files are run in the order of their numbers, in one
-- transaction; the name of the schema stands in them as a placeholder that whoever applies them fills in.

-- For this transaction: names mean what the server brings along.
SET LOCAL search_path = pg_catalog, pg_temp;

DO $guard$
DECLARE
    v_schema oid := to_regnamespace('@schema@');
    v_owner name := (
        SELECT pg_get_userbyid(relowner) FROM pg_class WHERE relnamespace = v_schema AND relname = 'handler'
    );
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
        WHERE relnamespace = v_schema AND relname IN ('migration', 'handler', 'mcp_request')
    ) THEN
        -- What is new in this version belongs to whom the rest belongs to, whoever applies it.
        IF v_owner <> current_user THEN
            EXECUTE format('SET LOCAL ROLE %I', v_owner);
        END IF;
        RETURN;
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
    CREATE TABLE @schema@.migration (
        version integer PRIMARY KEY,
        name text NOT NULL,
        applied_at timestamptz NOT NULL DEFAULT now()
    );
    COMMENT ON TABLE @schema@.migration IS
        'The steps that were applied. Step 0 says whether the schema was there before them.';
    INSERT INTO @schema@.migration (version, name)
    VALUES (0, CASE WHEN v_schema IS NULL THEN 'schema created' ELSE 'schema found' END);
END
$guard$;

INSERT INTO @schema@.migration (version, name) VALUES (1, 'schema') ON CONFLICT (version) DO NOTHING;

-- The version of the whole: it grows with each release whose SQL is not the last one's, since most of it is replaced in
-- place and leaves no step of its own. It stands among the steps, beyond their numbers.
DO $version$
DECLARE
    c_version CONSTANT integer := 3;
BEGIN
    IF EXISTS (SELECT FROM @schema@.migration WHERE version > 1000 + c_version) THEN
        RAISE EXCEPTION 'the schema "@schema@" was created by a newer Tidegate: its version is %, and this one has version %',
            (SELECT max(version) - 1000 FROM @schema@.migration), c_version
            USING HINT = 'Use that version of Tidegate or a newer one.';
    END IF;
    INSERT INTO @schema@.migration (version, name) VALUES (1000 + c_version, 'version ' || c_version)
    ON CONFLICT (version) DO NOTHING;
END
$version$;
