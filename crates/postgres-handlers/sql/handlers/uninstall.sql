-- Takes the schema away with everything in it, and nothing else: where an object outside needs one inside, or somebody
-- else keeps data in it, it names that object and stops. A schema that was there before the installation stays, empty.

SET LOCAL search_path = pg_catalog, pg_temp;

DO $uninstall$
DECLARE
    v_schema oid := to_regnamespace('@schema@');
    v_was_there boolean;
    v_dependent text;
    v_drop text;
BEGIN
    IF v_schema IS NULL THEN
        RETURN;
    ELSIF (
        SELECT count(*) < 3 FROM pg_class
        WHERE relnamespace = v_schema AND relname IN ('installation', 'handler', 'mcp_request')
    ) THEN
        RAISE EXCEPTION 'the schema "@schema@" holds no handlers'' registry: it is somebody else''s';
    END IF;

    -- Data that somebody else keeps here would be lost.
    SELECT relname INTO v_dependent FROM pg_class
    WHERE relnamespace = v_schema AND relkind IN ('r', 'p', 'v', 'm', 'f', 'S', 'c')
        AND relname NOT IN ('installation', 'handler', 'registry', 'exchange', 'mcp_request', 'mcp_response')
    ORDER BY relname LIMIT 1;
    IF v_dependent IS NOT NULL THEN
        RAISE EXCEPTION 'the schema "@schema@" holds "%", which is somebody else''s', v_dependent
            USING HINT = 'Move it to another schema first (ALTER … SET SCHEMA).';
    END IF;

    WITH ours (class, id) AS (
        SELECT 'pg_proc'::regclass::oid, oid FROM pg_proc WHERE pronamespace = v_schema
        UNION ALL SELECT 'pg_class'::regclass::oid, oid FROM pg_class WHERE relnamespace = v_schema
        UNION ALL SELECT 'pg_type'::regclass::oid, oid FROM pg_type WHERE typnamespace = v_schema
    ), dependents AS (
        SELECT DISTINCT classid, objid
        FROM pg_depend JOIN ours ON ours.class = refclassid AND ours.id = refobjid WHERE deptype = 'n'
    )
    -- Rules, triggers, defaults and constraints belong to a table and have no schema of their own.
    SELECT CASE WHEN ev_class IS NULL THEN pg_describe_object(classid, objid, 0)
        -- Of a view its rule depends; nobody knows that by name.
        ELSE pg_describe_object('pg_class'::regclass, ev_class, 0) END INTO v_dependent
    FROM dependents
        LEFT JOIN pg_rewrite ON classid = 'pg_rewrite'::regclass AND pg_rewrite.oid = objid
        LEFT JOIN pg_trigger ON classid = 'pg_trigger'::regclass AND pg_trigger.oid = objid
        LEFT JOIN pg_attrdef ON classid = 'pg_attrdef'::regclass AND pg_attrdef.oid = objid
        LEFT JOIN pg_constraint ON classid = 'pg_constraint'::regclass AND pg_constraint.oid = objid
        LEFT JOIN pg_policy ON classid = 'pg_policy'::regclass AND pg_policy.oid = objid
        LEFT JOIN pg_class AS owning ON owning.oid = coalesce(ev_class, tgrelid, adrelid, nullif(conrelid, 0), polrelid,
            CASE WHEN classid = 'pg_class'::regclass THEN objid END)
        LEFT JOIN pg_proc ON classid = 'pg_proc'::regclass AND pg_proc.oid = objid
        LEFT JOIN pg_type ON classid = 'pg_type'::regclass AND pg_type.oid = objid
    WHERE coalesce(owning.relnamespace, pronamespace, typnamespace, 0) <> v_schema
    LIMIT 1;
    IF v_dependent IS NOT NULL THEN
        RAISE EXCEPTION '% needs the schema "@schema@"', v_dependent
            USING HINT = 'Drop it first, or let it do without.';
    END IF;

    EXECUTE 'SELECT schema_was_found FROM @schema@.installation' INTO v_was_there;
    IF NOT v_was_there THEN
        DROP SCHEMA @schema@ CASCADE;
        RETURN;
    END IF;
    -- All the words first: what they name is looked up while it is still there.
    FOREACH v_drop IN ARRAY
        ARRAY(
            SELECT format('REVOKE ALL ON SCHEMA @schema@ FROM %I', rolname)
            FROM @schema@.dispatching_roles() AS rolname)
        || ARRAY(
            SELECT format('DROP ROUTINE IF EXISTS %s CASCADE', oid::regprocedure) FROM pg_proc
            WHERE pronamespace = v_schema)
        || ARRAY(
            SELECT format('DROP TABLE IF EXISTS %s CASCADE', oid::regclass) FROM pg_class
            WHERE relnamespace = v_schema AND relkind IN ('r', 'p'))
        || ARRAY(
            SELECT format('DROP TYPE IF EXISTS %s CASCADE', reltype::regtype) FROM pg_class
            WHERE relnamespace = v_schema AND relkind = 'c')
    LOOP
        EXECUTE v_drop;
    END LOOP;
END
$uninstall$;
