-- Whether the metadata of a handler is right, everything that is wrong at once, each with the name of its field.

-- The value of a member that must be of one JSON type; reports it when it is not.
CREATE FUNCTION @schema@.member_problem(p_metadata jsonb, p_member text, p_type text) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE
RETURN CASE
    WHEN p_metadata ? p_member AND jsonb_typeof(p_metadata -> p_member) <> p_type
    THEN format('%s: must be of type %s, and is %s', p_member, p_type, left((p_metadata -> p_member)::text, 60))
END;

CREATE FUNCTION @schema@.strings_problem(p_metadata jsonb, p_member text) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE
RETURN CASE
    WHEN NOT p_metadata ? p_member THEN NULL
    WHEN jsonb_typeof(p_metadata -> p_member) <> 'array'
        OR jsonb_path_exists(p_metadata -> p_member, '$[*] ? (@.type() != "string")')
    THEN format('%s: must be an array of strings', p_member)
END;

CREATE FUNCTION @schema@.arguments_problems(p_arguments jsonb) RETURNS text[]
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    c_members CONSTANT text[] := '{name,title,description,required}';
    v_found text[] := '{}';
    v_one jsonb;
    v_index integer;
    v_names text[] := '{}';
BEGIN
    IF jsonb_typeof(p_arguments) <> 'array' THEN
        RETURN ARRAY['arguments: must be an array of objects with a name'];
    END IF;
    FOR v_one, v_index IN
        SELECT one, ordinality - 1 FROM jsonb_array_elements(p_arguments) WITH ORDINALITY AS list (one, ordinality)
    LOOP
        IF jsonb_typeof(v_one) <> 'object' OR coalesce(jsonb_typeof(v_one -> 'name'), '') <> 'string'
            OR v_one ->> 'name' = '' THEN
            v_found := v_found || format('arguments[%s]: must be an object with a name', v_index);
            CONTINUE;
        END IF;
        IF v_one ->> 'name' = ANY (v_names) THEN
            v_found := v_found || format('arguments[%s].name: %s is there twice', v_index, v_one -> 'name');
        END IF;
        v_names := v_names || (v_one ->> 'name');
        v_found := v_found || ARRAY(
            SELECT format('arguments[%s].%s', v_index, problem)
            FROM unnest(ARRAY[
                @schema@.member_problem(v_one, 'title', 'string'),
                @schema@.member_problem(v_one, 'description', 'string'),
                @schema@.member_problem(v_one, 'required', 'boolean')
            ]) AS problem
            WHERE problem IS NOT NULL
            UNION ALL
            SELECT format('arguments[%s].%s: is no member of an argument; members are %s', v_index, key,
                array_to_string(c_members, ', '))
            FROM jsonb_object_keys(v_one) AS key WHERE key <> ALL (c_members)
        );
    END LOOP;
    RETURN v_found;
END
$body$;

CREATE FUNCTION @schema@.annotations_problems(p_type text, p_annotations jsonb) RETURNS text[]
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    c_hints CONSTANT text[] := '{readOnlyHint,destructiveHint,idempotentHint,openWorldHint}';
BEGIN
    IF jsonb_typeof(p_annotations) <> 'object' THEN
        RETURN ARRAY['annotations: must be an object'];
    ELSIF p_type = 'tool' THEN
        RETURN ARRAY(
            SELECT format('annotations.%s: must be %s', key,
                CASE key WHEN 'title' THEN 'a string' ELSE 'true or false' END)
            FROM jsonb_each(p_annotations)
            WHERE (key = ANY (c_hints) AND jsonb_typeof(value) <> 'boolean')
                OR (key = 'title' AND jsonb_typeof(value) <> 'string')
        );
    END IF;
    RETURN array_remove(ARRAY[
        CASE WHEN p_annotations ? 'priority' AND NOT coalesce(CASE jsonb_typeof(p_annotations -> 'priority')
            WHEN 'number' THEN (p_annotations -> 'priority')::numeric BETWEEN 0 AND 1 END, false)
        THEN 'annotations.priority: must be a number from 0 to 1' END,
        CASE WHEN p_annotations ? 'audience' AND (jsonb_typeof(p_annotations -> 'audience') <> 'array'
            OR NOT p_annotations -> 'audience' <@ '["user", "assistant"]')
        THEN 'annotations.audience: must be an array of "user", "assistant"' END,
        CASE WHEN p_annotations ? 'lastModified' AND jsonb_typeof(p_annotations -> 'lastModified') <> 'string'
        THEN 'annotations.lastModified: must be a time, as in "2026-07-28T12:00:00Z"' END
    ], NULL);
END
$body$;

CREATE FUNCTION @schema@.icons_problems(p_icons jsonb) RETURNS text[]
LANGUAGE sql STABLE PARALLEL SAFE
RETURN CASE
    WHEN jsonb_typeof(p_icons) <> 'array' OR jsonb_path_exists(p_icons, 'strict $[*] ? (@.type() != "object")')
    THEN ARRAY['icons: must be an array of objects with a src']
    ELSE ARRAY(
        SELECT format('icons[%s].%s', ordinality - 1, problem)
        FROM jsonb_array_elements(p_icons) WITH ORDINALITY AS icons (icon, ordinality), unnest(ARRAY[
            CASE WHEN coalesce(icon ->> 'src', '') !~ '^(https|data):' THEN 'src: must be an https: or data: URI' END,
            @schema@.member_problem(icon, 'mimeType', 'string'),
            @schema@.strings_problem(icon, 'sizes'),
            CASE WHEN icon ? 'theme' AND icon -> 'theme' NOT IN ('"light"', '"dark"')
            THEN 'theme: must be "light" or "dark"' END
        ]) AS problem
        WHERE problem IS NOT NULL
    )
END;

-- What only some types of handler have.
CREATE FUNCTION @schema@.typed_metadata_problems(p_metadata jsonb) RETURNS text[]
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_type text := p_metadata ->> 'type';
    v_found text[] := '{}';
    v_problem text;
BEGIN
    IF v_type = 'tool' THEN
        IF p_metadata ? 'inputSchema' THEN
            v_found := v_found || @schema@.json_schema_problems(p_metadata -> 'inputSchema', 'inputSchema');
            IF v_found = '{}' AND coalesce(p_metadata #> '{inputSchema,type}', '"object"') <> '"object"' THEN
                v_found := v_found || 'inputSchema.type: must be "object", since arguments are an object'::text;
            END IF;
        END IF;
        IF p_metadata ? 'outputSchema' THEN
            v_found := v_found || @schema@.json_schema_problems(p_metadata -> 'outputSchema', 'outputSchema');
            IF p_metadata -> 'rows' = 'true' THEN
                v_found := v_found || 'outputSchema: rows have none; they come one by one'::text;
            END IF;
        END IF;
    ELSIF v_type = 'resource' THEN
        IF coalesce(jsonb_typeof(p_metadata -> 'uriTemplate'), '') <> 'string' THEN
            v_found := v_found
                || 'uriTemplate: is missing; a resource needs one, as in "app:///{name}", or a plain URI'::text;
        ELSE
            v_problem := @schema@.uri_template_problem(p_metadata ->> 'uriTemplate');
            v_found := v_found || CASE WHEN v_problem IS NULL THEN '{}' ELSE ARRAY['uriTemplate: ' || v_problem] END;
        END IF;
    ELSIF p_metadata ? 'arguments' THEN
        v_found := v_found || @schema@.arguments_problems(p_metadata -> 'arguments');
    END IF;
    IF p_metadata ? 'annotations' THEN
        v_found := v_found || @schema@.annotations_problems(v_type, p_metadata -> 'annotations');
    END IF;
    IF p_metadata ? 'icons' THEN
        v_found := v_found || @schema@.icons_problems(p_metadata -> 'icons');
    END IF;
    RETURN v_found;
END
$body$;

CREATE FUNCTION @schema@.metadata_problems(p_metadata jsonb) RETURNS text[]
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    c_common CONSTANT text[] := '{id,type,name,title,description,requiresAuth,readOnly,minTransactionIsolation,retry,
        commitOnError,statementTimeout,tags,icons,roles,searchPath,redact,_meta}';
    v_type text := p_metadata ->> 'type';
    v_name text := p_metadata ->> 'name';
    v_allowed text[];
    v_found text[];
BEGIN
    IF jsonb_typeof(p_metadata) IS DISTINCT FROM 'object' THEN
        RETURN ARRAY['metadata: must be an object'];
    ELSIF v_type IS NULL OR v_type NOT IN ('tool', 'resource', 'prompt') THEN
        RETURN ARRAY[format('type: must be tool, resource or prompt, and is %s',
            coalesce(left((p_metadata -> 'type')::text, 60), 'missing'))];
    END IF;

    v_allowed := c_common || CASE v_type
        WHEN 'tool' THEN '{inputSchema,outputSchema,annotations,rows}'::text[]
        WHEN 'resource' THEN '{uriTemplate,mimeType,annotations,size}'
        ELSE '{arguments}' END;
    v_found := ARRAY(
        SELECT format('%s: is no member of the metadata of a %s; members are %s',
            left(key, 60), v_type, array_to_string(v_allowed, ', '))
        FROM jsonb_object_keys(p_metadata) AS key WHERE key <> ALL (v_allowed) ORDER BY key);
    v_found := v_found || array_remove(ARRAY[
        @schema@.member_problem(p_metadata, 'id', 'string'),
        CASE WHEN length(p_metadata ->> 'id') NOT BETWEEN 1 AND 500 THEN 'id: must be 1 to 500 characters' END,
        CASE WHEN coalesce(jsonb_typeof(p_metadata -> 'name'), '') <> 'string' THEN 'name: is missing, or is no string'
             WHEN v_type <> 'resource' AND v_name !~ '^[A-Za-z0-9_.-]{1,128}$'
             THEN format('name: %s must be 1 to 128 letters, digits, "_", "-" and "."', to_jsonb(left(v_name, 130)))
             WHEN v_name !~ '^[^[:cntrl:]]{1,128}$'
             THEN 'name: must be 1 to 128 characters without control characters' END,
        @schema@.member_problem(p_metadata, 'title', 'string'),
        @schema@.member_problem(p_metadata, 'description', 'string'),
        @schema@.member_problem(p_metadata, 'mimeType', 'string'),
        CASE WHEN p_metadata ? 'size' AND (p_metadata -> 'size')::text !~ '^[0-9]{1,15}$'
        THEN 'size: must be a whole number of bytes' END,
        @schema@.member_problem(p_metadata, 'requiresAuth', 'boolean'),
        @schema@.member_problem(p_metadata, 'readOnly', 'boolean'),
        @schema@.member_problem(p_metadata, 'commitOnError', 'boolean'),
        @schema@.member_problem(p_metadata, 'rows', 'boolean'),
        @schema@.member_problem(p_metadata, '_meta', 'object'),
        @schema@.strings_problem(p_metadata, 'tags'),
        @schema@.strings_problem(p_metadata, 'roles'),
        @schema@.strings_problem(p_metadata, 'redact'),
        @schema@.strings_problem(p_metadata, 'searchPath'),
        CASE WHEN p_metadata -> 'searchPath' @> '[""]' THEN 'searchPath: names schemas, which are not empty' END,
        CASE WHEN p_metadata ? 'minTransactionIsolation'
            AND @schema@.isolation_rank(p_metadata ->> 'minTransactionIsolation') IS NULL
        THEN 'minTransactionIsolation: must be "read committed", "repeatable read" or "serializable"' END,
        CASE WHEN p_metadata ? 'retry' AND NOT coalesce(CASE jsonb_typeof(p_metadata -> 'retry')
            WHEN 'boolean' THEN true WHEN 'number' THEN p_metadata ->> 'retry' ~ '^([0-9]|10)$' END, false)
        THEN 'retry: must be true, false, or how many times, 0 to 10' END,
        CASE WHEN p_metadata ? 'statementTimeout' AND @schema@.duration_ms(p_metadata -> 'statementTimeout') IS NULL
        THEN 'statementTimeout: must be a time as in "500ms", "5s", "2min", or a number of milliseconds' END
    ], NULL);
    RETURN v_found || @schema@.typed_metadata_problems(p_metadata);
END
$body$;

-- Milliseconds; NULL for what is no time. At most a day.
CREATE FUNCTION @schema@.duration_ms(p_duration jsonb) RETURNS integer
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_parts text[] := regexp_match(p_duration #>> '{}', '^([0-9]{1,8}) ?(ms|s|min|h)?$');
    v_time bigint;
BEGIN
    IF v_parts IS NULL OR jsonb_typeof(p_duration) NOT IN ('string', 'number') THEN
        RETURN NULL;
    END IF;
    v_time := v_parts[1]::bigint * CASE coalesce(v_parts[2], 'ms')
        WHEN 'ms' THEN 1 WHEN 's' THEN 1000 WHEN 'min' THEN 60000 ELSE 3600000 END;
    RETURN CASE WHEN v_time BETWEEN 1 AND 86400000 THEN v_time END;
END
$body$;
