-- What there is, in pages, in the order of names. Lists show what calls let through: no handlers that the role may not
-- execute. Over the protocol, callers without an identity do not see those that require one; the functions mcp_list_…,
-- called directly, show and mark them. Called directly, mcp_list_resources also shows templates: all that was registered
-- as a resource. The protocol has a list of its own for them.

-- Entries of a page; the setting mcp.page_size changes it.
CREATE FUNCTION @schema@.page_size() RETURNS integer
LANGUAGE sql STABLE
RETURN CASE WHEN current_setting('mcp.page_size', true) ~ '^[1-9][0-9]{0,3}$'
    THEN current_setting('mcp.page_size', true)::integer ELSE 250 END;

-- A cursor is the list and the last name that was shown: a list that has changed since goes on in the right place.
CREATE FUNCTION @schema@.cursor_after(p_list text, p_name text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN translate(encode(convert_to(p_list || E'\n' || p_name, 'UTF8'), 'base64'), E'+/=\n', '-_');

-- The name in a cursor, '' where there is no cursor; NULL when it is none of this list.
CREATE FUNCTION @schema@.cursor_name(p_list text, p_cursor text) RETURNS text
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_text text;
BEGIN
    IF p_cursor IS NULL THEN
        RETURN '';
    ELSIF length(p_cursor) > 2000 THEN
        RETURN NULL;
    END IF;
    v_text := rpad(translate(p_cursor, '-_', '+/'), (length(p_cursor) + 3) / 4 * 4, '=');
    v_text := convert_from(decode(v_text, 'base64'), 'UTF8');
    RETURN CASE WHEN starts_with(v_text, p_list || E'\n') THEN substr(v_text, length(p_list) + 2) END;
EXCEPTION WHEN invalid_parameter_value OR character_not_in_repertoire OR untranslatable_character THEN
    RETURN NULL;
END
$body$;

CREATE FUNCTION @schema@.list_entries(p_list text, p_cursor text, p_marks_closed boolean) RETURNS jsonb
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_after text := @schema@.cursor_name(p_list, p_cursor);
    v_size integer := @schema@.page_size();
    v_is_known boolean := coalesce(current_setting('auth.user_id', true), '') <> '';
    v_entries jsonb;
    v_names text[];
BEGIN
    IF v_after IS NULL THEN
        RAISE EXCEPTION 'the cursor is none of this list; begin again without one' USING ERRCODE = 'MCP02';
    END IF;
    SELECT jsonb_agg(definition ORDER BY name COLLATE "C"), array_agg(name ORDER BY name COLLATE "C")
    INTO v_entries, v_names
    FROM (
        SELECT name, CASE WHEN v_is_known OR NOT requires_auth THEN definition
            ELSE definition || jsonb_build_object('_meta',
                coalesce(definition -> '_meta', '{}') || '{"requiresAuth": true}') END AS definition
        FROM @schema@.handler
        WHERE type = CASE p_list WHEN 'tools' THEN 'tool' WHEN 'prompts' THEN 'prompt' ELSE 'resource' END
            AND (v_is_known OR p_marks_closed OR NOT requires_auth)
            AND CASE p_list WHEN 'resources' THEN p_marks_closed OR cardinality(uri_variables) = 0
                WHEN 'resourceTemplates' THEN cardinality(uri_variables) > 0 ELSE true END
            AND name COLLATE "C" > v_after
        ORDER BY name COLLATE "C" LIMIT v_size + 1
    ) AS page;
    IF cardinality(v_names) > v_size THEN
        RETURN jsonb_build_object(p_list, v_entries - v_size,
            'nextCursor', @schema@.cursor_after(p_list, v_names[v_size]));
    END IF;
    RETURN jsonb_build_object(p_list, coalesce(v_entries, '[]'));
END
$body$;

-- A list as the protocol shows it.
CREATE FUNCTION @schema@.list_page(p_list text, p_cursor text) RETURNS jsonb
LANGUAGE sql STABLE
RETURN @schema@.list_entries(p_list, p_cursor, false);

CREATE FUNCTION @schema@.mcp_list_tools(p_cursor text DEFAULT NULL) RETURNS jsonb
LANGUAGE sql STABLE
RETURN @schema@.list_entries('tools', p_cursor, true);

CREATE FUNCTION @schema@.mcp_list_resources(p_cursor text DEFAULT NULL) RETURNS jsonb
LANGUAGE sql STABLE
RETURN @schema@.list_entries('resources', p_cursor, true);

CREATE FUNCTION @schema@.mcp_list_resource_templates(p_cursor text DEFAULT NULL) RETURNS jsonb
LANGUAGE sql STABLE
RETURN @schema@.list_entries('resourceTemplates', p_cursor, true);

CREATE FUNCTION @schema@.mcp_list_prompts(p_cursor text DEFAULT NULL) RETURNS jsonb
LANGUAGE sql STABLE
RETURN @schema@.list_entries('prompts', p_cursor, true);
