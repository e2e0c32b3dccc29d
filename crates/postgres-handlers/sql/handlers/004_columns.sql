-- The columns of the rows that a handler gives. Its function gives each row as JSON; whoever knows the columns can make
-- a table of them again.

-- The columns of a query that may name the request; NULL where they cannot be told.
CREATE FUNCTION @schema@.query_columns(p_query text, p_search_path text) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_columns text;
BEGIN
    PERFORM set_config('search_path', p_search_path, true);
    -- A view is the one thing that settles types and can be asked for them. It never outlives this block.
    EXECUTE format(E'CREATE VIEW @schema@.mcp_query_columns AS SELECT one.*'
        ' FROM (SELECT (NULL::@schema@.mcp_request).*) AS request, LATERAL (\n%s\n) AS one', p_query);
    PERFORM set_config('search_path', 'pg_catalog, pg_temp', true);
    SELECT string_agg(format('%I %s', attname, format_type(atttypid, atttypmod)), ', ' ORDER BY attnum) INTO v_columns
    FROM pg_attribute WHERE attrelid = '@schema@.mcp_query_columns'::regclass AND attnum > 0;
    EXECUTE 'DROP VIEW @schema@.mcp_query_columns';
    RETURN v_columns;
EXCEPTION
    -- A query that a function takes and a view does not, as one with two columns of a name.
    WHEN syntax_error_or_access_rule_violation OR feature_not_supported THEN
        RETURN NULL;
END
$body$;
