-- The schema and the history of what was applied to it.
--
-- Every file here may be run again: it makes what is missing and replaces what is ours. A step that cannot be written so
-- asks the table `migration` whether it was done. The files are run in the order of their numbers, in one transaction;
-- the name of the schema stands in them as a placeholder that whoever applies them fills in.

-- For this transaction: names mean what the server brings along.
SET LOCAL search_path = pg_catalog, pg_temp;

DO $guard$
DECLARE
    v_schema oid := to_regnamespace('@schema@');
    v_stranger text;
BEGIN
    IF current_setting('server_version_num')::integer < 150000 THEN
        RAISE EXCEPTION 'the handlers need PostgreSQL 15 or newer; this server is %', current_setting('server_version');
    END IF;
    IF current_setting('server_encoding') <> 'UTF8' THEN
        RAISE EXCEPTION 'the handlers need a database whose encoding is UTF8; this one has %', current_setting('server_encoding');
    END IF;
    IF to_regclass('@schema@.migration') IS NOT NULL THEN
        RETURN;
    END IF;

    -- A schema of somebody else's is left alone: later nobody could tell what in it is ours.
    SELECT stranger.name INTO v_stranger
    FROM (
        SELECT relname::text AS name FROM pg_catalog.pg_class WHERE relnamespace = v_schema
        UNION ALL
        SELECT proname::text FROM pg_catalog.pg_proc WHERE pronamespace = v_schema
        UNION ALL
        SELECT typname::text FROM pg_catalog.pg_type WHERE typnamespace = v_schema
    ) AS stranger
    ORDER BY stranger.name
    LIMIT 1;
    IF v_stranger IS NOT NULL THEN
        RAISE EXCEPTION 'the schema "@schema@" holds objects of others, "%" among them', v_stranger
            USING HINT = 'Choose a schema that is empty or does not exist.';
    END IF;

    CREATE SCHEMA IF NOT EXISTS @schema@;
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
-- What a handler is given and what it gives back.

DO $types$
BEGIN
    IF to_regtype('@schema@.mcp_request') IS NULL THEN
        CREATE TYPE @schema@.mcp_request AS (
            arguments jsonb,
            uri text,
            context jsonb,
            -- As JSON, so that the id 7 stays a number and "7" a string.
            request_id jsonb,
            variables jsonb,
            meta jsonb
        );
        COMMENT ON TYPE @schema@.mcp_request IS 'What a handler is asked.';
        COMMENT ON COLUMN @schema@.mcp_request.arguments IS 'The arguments of a tool or a prompt, always an object there.';
        COMMENT ON COLUMN @schema@.mcp_request.uri IS 'The URI of a resource, as it came.';
        COMMENT ON COLUMN @schema@.mcp_request.context IS 'Who asks: user_id and tenant_id.';
        COMMENT ON COLUMN @schema@.mcp_request.request_id IS 'The id that the answer must carry.';
        COMMENT ON COLUMN @schema@.mcp_request.variables IS 'The variables of a URI template, percent-decoded.';
        COMMENT ON COLUMN @schema@.mcp_request.meta IS 'The member _meta of the request.';
    END IF;
    IF to_regtype('@schema@.mcp_response') IS NULL THEN
        CREATE TYPE @schema@.mcp_response AS (envelope jsonb);
        COMMENT ON TYPE @schema@.mcp_response IS 'What a handler answers: a JSON-RPC 2.0 response.';
    END IF;
END
$types$;

INSERT INTO @schema@.migration (version, name) VALUES (2, 'envelope') ON CONFLICT (version) DO NOTHING;
-- The registry: one row a handler, and a number that grows with each change.

CREATE TABLE IF NOT EXISTS @schema@.handler (
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
    PRIMARY KEY (type, id),
    UNIQUE (type, name)
);
COMMENT ON TABLE @schema@.handler IS 'The handlers. Change them with create_or_replace_mcp_handler and drop_mcp_handler.';
COMMENT ON COLUMN @schema@.handler.metadata IS 'As it was registered.';
COMMENT ON COLUMN @schema@.handler.definition IS 'As it is listed.';
COMMENT ON COLUMN @schema@.handler.function_signature IS
    'As text: a column of type regprocedure would keep pg_upgrade from running.';

CREATE INDEX IF NOT EXISTS handler_uri_template ON @schema@.handler (uri_template) WHERE uri_template IS NOT NULL;

-- What a role may not execute does not exist for it: neither in lists nor in calls, which read this table with the rights
-- of whoever calls.
ALTER TABLE @schema@.handler ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS handler_of_caller ON @schema@.handler;
CREATE POLICY handler_of_caller ON @schema@.handler FOR SELECT
    USING (pg_catalog.has_function_privilege(pg_catalog.to_regprocedure(function_signature), 'EXECUTE'));

CREATE TABLE IF NOT EXISTS @schema@.registry (
    is_only_row boolean PRIMARY KEY DEFAULT true CHECK (is_only_row),
    revision bigint NOT NULL DEFAULT 0,
    identity_check text,
    logs_exchanges boolean NOT NULL DEFAULT false
);
COMMENT ON TABLE @schema@.registry IS 'One row: the revision of the handlers, the function that knows who exists, and whether calls are logged.';
INSERT INTO @schema@.registry DEFAULT VALUES ON CONFLICT (is_only_row) DO NOTHING;

-- Whoever listens is told the revision; whoever lost the connection compares it. The row also makes those who change
-- handlers wait for each other, so that what one checked still holds when it writes.
CREATE OR REPLACE FUNCTION @schema@.handlers_changed() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $body$
BEGIN
    UPDATE @schema@.registry SET revision = revision + 1;
    RETURN NULL;
END
$body$;

CREATE OR REPLACE FUNCTION @schema@.registry_changed() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $body$
BEGIN
    PERFORM pg_notify('@schema@_mcp_handlers', NEW.revision::text);
    RETURN NULL;
END
$body$;

DROP TRIGGER IF EXISTS handlers_changed ON @schema@.handler;
CREATE TRIGGER handlers_changed AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON @schema@.handler
    FOR EACH STATEMENT EXECUTE FUNCTION @schema@.handlers_changed();
DROP TRIGGER IF EXISTS registry_changed ON @schema@.registry;
CREATE TRIGGER registry_changed AFTER UPDATE ON @schema@.registry
    FOR EACH ROW EXECUTE FUNCTION @schema@.registry_changed();

INSERT INTO @schema@.migration (version, name) VALUES (3, 'handler') ON CONFLICT (version) DO NOTHING;
-- Builders of answers. Each takes the id as JSON, which is what a handler is given, or as text.
--
-- The bodies after RETURN are bound when they are made: no search_path can lead them astray, and without a clause of their
-- own they are put into the statement that calls them, which costs nothing.

CREATE OR REPLACE FUNCTION @schema@.mcp_text(p_text text) RETURNS jsonb
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN jsonb_build_object('type', 'text', 'text', coalesce(p_text, ''));

CREATE OR REPLACE FUNCTION @schema@.mcp_success(result jsonb, request_id jsonb) RETURNS @schema@.mcp_response
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN ROW(jsonb_build_object('jsonrpc', '2.0', 'id', request_id, 'result', result))::@schema@.mcp_response;

CREATE OR REPLACE FUNCTION @schema@.mcp_success(result jsonb, request_id text) RETURNS @schema@.mcp_response
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN @schema@.mcp_success(result, to_jsonb(request_id));

CREATE OR REPLACE FUNCTION @schema@.mcp_error(code integer, message text, request_id jsonb, data jsonb DEFAULT NULL)
RETURNS @schema@.mcp_response
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN ROW(jsonb_build_object(
    'jsonrpc', '2.0',
    'id', request_id,
    'error', jsonb_build_object('code', code, 'message', coalesce(message, ''))
        || CASE WHEN data IS NULL THEN '{}'::jsonb ELSE jsonb_build_object('data', data) END
))::@schema@.mcp_response;

CREATE OR REPLACE FUNCTION @schema@.mcp_error(code integer, message text, request_id text, data jsonb DEFAULT NULL)
RETURNS @schema@.mcp_response
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN @schema@.mcp_error(code, message, to_jsonb(request_id), data);

-- Of structured_content, SQL's NULL means that there is none; JSON's null is a value.
CREATE OR REPLACE FUNCTION @schema@.mcp_tool_result(content jsonb, request_id jsonb,
    structured_content jsonb DEFAULT NULL)
RETURNS @schema@.mcp_response
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN @schema@.mcp_success(
    jsonb_build_object('content', content)
        || CASE WHEN structured_content IS NULL THEN '{}'::jsonb
                ELSE jsonb_build_object('structuredContent', structured_content) END,
    request_id
);

CREATE OR REPLACE FUNCTION @schema@.mcp_tool_result(content jsonb, request_id text,
    structured_content jsonb DEFAULT NULL)
RETURNS @schema@.mcp_response
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN @schema@.mcp_tool_result(content, to_jsonb(request_id), structured_content);

-- The value, and the same as text for clients that know no structured answers.
CREATE OR REPLACE FUNCTION @schema@.mcp_structured_result(structured_content jsonb, request_id jsonb)
RETURNS @schema@.mcp_response
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN @schema@.mcp_tool_result(
    jsonb_build_array(@schema@.mcp_text(coalesce(structured_content, 'null')::text)),
    request_id,
    coalesce(structured_content, 'null')
);

CREATE OR REPLACE FUNCTION @schema@.mcp_structured_result(structured_content jsonb, request_id text)
RETURNS @schema@.mcp_response
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN @schema@.mcp_structured_result(structured_content, to_jsonb(request_id));

-- A tool that fails says so in its result: the model reads results and can mend its call, protocol errors it may never see.
CREATE OR REPLACE FUNCTION @schema@.mcp_tool_error(message text, request_id jsonb) RETURNS @schema@.mcp_response
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN @schema@.mcp_success(
    jsonb_build_object('content', jsonb_build_array(@schema@.mcp_text(message)), 'isError', true),
    request_id
);

CREATE OR REPLACE FUNCTION @schema@.mcp_tool_error(message text, request_id text) RETURNS @schema@.mcp_response
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN @schema@.mcp_tool_error(message, to_jsonb(request_id));

CREATE OR REPLACE FUNCTION @schema@.mcp_resource_result(contents jsonb, request_id jsonb) RETURNS @schema@.mcp_response
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN @schema@.mcp_success(jsonb_build_object('contents', contents), request_id);

CREATE OR REPLACE FUNCTION @schema@.mcp_resource_result(contents jsonb, request_id text) RETURNS @schema@.mcp_response
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN @schema@.mcp_resource_result(contents, to_jsonb(request_id));

CREATE OR REPLACE FUNCTION @schema@.mcp_resource_error(message text, request_id jsonb) RETURNS @schema@.mcp_response
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN @schema@.mcp_error(-32603, message, request_id);

CREATE OR REPLACE FUNCTION @schema@.mcp_resource_error(message text, request_id text) RETURNS @schema@.mcp_response
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN @schema@.mcp_error(-32603, message, to_jsonb(request_id));

CREATE OR REPLACE FUNCTION @schema@.mcp_prompt_result(messages jsonb, request_id jsonb) RETURNS @schema@.mcp_response
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN @schema@.mcp_success(jsonb_build_object('messages', messages), request_id);

CREATE OR REPLACE FUNCTION @schema@.mcp_prompt_result(messages jsonb, request_id text) RETURNS @schema@.mcp_response
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN @schema@.mcp_prompt_result(messages, to_jsonb(request_id));

CREATE OR REPLACE FUNCTION @schema@.mcp_prompt_error(message text, request_id jsonb) RETURNS @schema@.mcp_response
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN @schema@.mcp_error(-32603, message, request_id);

CREATE OR REPLACE FUNCTION @schema@.mcp_prompt_error(message text, request_id text) RETURNS @schema@.mcp_response
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN @schema@.mcp_error(-32603, message, to_jsonb(request_id));

-- Ends a handler with a message that its caller may read. Of every other error the caller reads nothing.
CREATE OR REPLACE FUNCTION @schema@.mcp_refuse(message text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $body$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'MCP01', MESSAGE = coalesce(message, '');
END
$body$;

INSERT INTO @schema@.migration (version, name) VALUES (10, 'response') ON CONFLICT (version) DO NOTHING;
-- Who asks. The context of a request is the only source: what an earlier call left behind on the connection counts for
-- nothing.

-- A person's or program's name in the context: text or a number, not blank. Anything else is nobody.
CREATE OR REPLACE FUNCTION @schema@.context_member(p_context jsonb, p_member text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN jsonb_typeof(p_context) = 'object' AND jsonb_typeof(p_context -> p_member) IN ('string', 'number')
    THEN nullif(btrim(p_context ->> p_member), '')
END;

-- Whether an identity is one that the database knows. Without a check of the owner's any name will do: then whoever calls
-- the dispatcher answers for the names that it passes on.
CREATE OR REPLACE FUNCTION @schema@.identity_is_known(p_context jsonb) RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_check text := (SELECT identity_check FROM @schema@.registry);
    v_known boolean;
BEGIN
    IF @schema@.context_member(p_context, 'user_id') IS NULL THEN
        RETURN false;
    END IF;
    IF v_check IS NULL THEN
        RETURN true;
    END IF;
    IF to_regprocedure(v_check) IS NULL THEN
        RAISE LOG 'the identity check % is gone: nobody is known', v_check;
        RETURN false;
    END IF;
    -- regprocedure prints names quoted and in full.
    EXECUTE format('SELECT %s($1)', to_regprocedure(v_check)::oid::regproc) INTO v_known USING p_context;
    RETURN coalesce(v_known, false);
END
$body$;

-- Says who asks from here to the end of the transaction, or until somebody else is named. Answers whether it is somebody.
CREATE OR REPLACE FUNCTION @schema@.enter_identity(p_context jsonb) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_known boolean := @schema@.identity_is_known(p_context);
BEGIN
    PERFORM set_config('auth.user_id', CASE WHEN v_known THEN @schema@.context_member(p_context, 'user_id') ELSE '' END, true),
            set_config('auth.tenant_id',
                coalesce(CASE WHEN v_known THEN @schema@.context_member(p_context, 'tenant_id') END, ''), true);
    RETURN v_known;
END
$body$;

-- What leave_identity needs to put back.
CREATE OR REPLACE FUNCTION @schema@.current_identity() RETURNS text[]
LANGUAGE sql STABLE
RETURN ARRAY[
    coalesce(current_setting('auth.user_id', true), ''),
    coalesce(current_setting('auth.tenant_id', true), '')
];

CREATE OR REPLACE FUNCTION @schema@.leave_identity(p_before text[]) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $body$
BEGIN
    PERFORM set_config('auth.user_id', p_before[1], true), set_config('auth.tenant_id', p_before[2], true);
END
$body$;

-- Lets a function of the owner's, which takes the context and says true or false, decide who is known; NULL ends that.
CREATE OR REPLACE FUNCTION @schema@.set_mcp_identity_check(p_check regprocedure) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $body$
BEGIN
    IF p_check IS NOT NULL AND NOT EXISTS (
        SELECT FROM pg_proc
        WHERE oid = p_check AND prorettype = 'boolean'::regtype AND pronargs = 1 AND proargtypes[0] = 'jsonb'::regtype
            AND prokind = 'f' AND NOT proretset
    ) THEN
        RAISE EXCEPTION '% is no identity check: it must be a function of one jsonb that returns boolean', p_check
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    UPDATE @schema@.registry SET identity_check = p_check::text, revision = revision + 1;
END
$body$;

INSERT INTO @schema@.migration (version, name) VALUES (11, 'identity') ON CONFLICT (version) DO NOTHING;
-- Whether a JSON Schema is one (2020-12), at any depth, told with the path of what is wrong.

CREATE OR REPLACE FUNCTION @schema@.pattern_is_valid(p_pattern text) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $body$
BEGIN
    PERFORM '' ~ p_pattern;
    RETURN true;
EXCEPTION WHEN invalid_regular_expression THEN
    RETURN false;
END
$body$;

-- What is wrong with the value of a keyword whose value is plain: a number, a string, true or false.
CREATE OR REPLACE FUNCTION @schema@.plain_keyword_problem(p_keyword text, p_value jsonb) RETURNS text
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_type text := jsonb_typeof(p_value);
BEGIN
    CASE
        WHEN p_keyword IN ('minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum') THEN
            IF v_type <> 'number' THEN
                RETURN 'must be a number';
            END IF;
        WHEN p_keyword = 'multipleOf' THEN
            IF v_type <> 'number' OR p_value::numeric <= 0 THEN
                RETURN 'must be a number above 0';
            END IF;
        WHEN p_keyword IN ('minLength', 'maxLength', 'minItems', 'maxItems', 'minProperties', 'maxProperties',
                           'minContains', 'maxContains') THEN
            IF v_type <> 'number' OR p_value::numeric < 0 OR p_value::numeric <> trunc(p_value::numeric) THEN
                RETURN 'must be a whole number of 0 or more';
            END IF;
        WHEN p_keyword IN ('uniqueItems', 'readOnly', 'writeOnly', 'deprecated') THEN
            IF v_type <> 'boolean' THEN
                RETURN 'must be true or false';
            END IF;
        WHEN p_keyword = 'pattern' THEN
            IF v_type <> 'string' OR NOT @schema@.pattern_is_valid(p_value #>> '{}') THEN
                RETURN 'must be a regular expression';
            END IF;
        WHEN p_keyword = '$ref' THEN
            IF v_type <> 'string' OR left(p_value #>> '{}', 1) <> '#' THEN
                RETURN 'must stay within this schema, as in "#/$defs/name"';
            END IF;
        WHEN p_keyword IN ('title', 'description', 'format', '$schema', '$id', '$anchor', '$comment', 'contentEncoding',
                           'contentMediaType', 'x-mcp-header') THEN
            IF v_type <> 'string' THEN
                RETURN 'must be a string';
            END IF;
        ELSE
            NULL;
    END CASE;
    RETURN NULL;
END
$body$;

-- Everything that is wrong with one keyword's value, but for the schemas in it.
CREATE OR REPLACE FUNCTION @schema@.keyword_problem(p_keyword text, p_value jsonb) RETURNS text
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    c_types CONSTANT text[] := '{"null",boolean,object,array,number,string,integer}';
    v_type text := jsonb_typeof(p_value);
BEGIN
    CASE
        WHEN p_keyword = 'type' THEN
            IF v_type = 'string' AND p_value #>> '{}' = ANY (c_types) THEN
                RETURN NULL;
            ELSIF v_type = 'array' AND jsonb_array_length(p_value) > 0 AND NOT EXISTS (
                SELECT FROM jsonb_array_elements(p_value) AS one
                WHERE jsonb_typeof(one) <> 'string' OR one #>> '{}' <> ALL (c_types)
            ) THEN
                RETURN NULL;
            END IF;
            RETURN format('%s is no type; types are %s', p_value, array_to_string(c_types, ', '));
        WHEN p_keyword IN ('properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas') THEN
            IF v_type <> 'object' THEN
                RETURN 'must be an object whose members are schemas';
            ELSIF p_keyword = 'patternProperties' AND EXISTS (
                SELECT FROM jsonb_object_keys(p_value) AS pattern WHERE NOT @schema@.pattern_is_valid(pattern)
            ) THEN
                RETURN 'has a name that is no regular expression';
            END IF;
        WHEN p_keyword = 'required' THEN
            IF v_type <> 'array' OR EXISTS (
                SELECT FROM jsonb_array_elements(p_value) AS one WHERE jsonb_typeof(one) <> 'string'
            ) OR (SELECT count(*) <> count(DISTINCT one) FROM jsonb_array_elements(p_value) AS one) THEN
                RETURN 'must be an array of different names';
            END IF;
        WHEN p_keyword = 'dependentRequired' THEN
            IF v_type <> 'object' OR EXISTS (
                SELECT FROM jsonb_each(p_value) AS one WHERE @schema@.keyword_problem('required', one.value) IS NOT NULL
            ) THEN
                RETURN 'must be an object whose members are arrays of different names';
            END IF;
        WHEN p_keyword = 'enum' THEN
            IF v_type <> 'array' OR p_value = '[]' THEN
                RETURN 'must be an array of at least one value';
            END IF;
        WHEN p_keyword IN ('allOf', 'anyOf', 'oneOf', 'prefixItems') THEN
            IF v_type <> 'array' OR p_value = '[]' THEN
                RETURN 'must be an array of at least one schema';
            END IF;
        ELSE
            RETURN @schema@.plain_keyword_problem(p_keyword, p_value);
    END CASE;
    RETURN NULL;
END
$body$;

-- Every problem of a schema, each with its path. A schema deeper than 64 is refused, since who validates goes as deep.
CREATE OR REPLACE FUNCTION @schema@.json_schema_problems(p_schema jsonb, p_path text, p_root jsonb DEFAULT NULL,
    p_depth integer DEFAULT 0)
RETURNS text[]
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_root jsonb := coalesce(p_root, p_schema);
    v_problems text[] := '{}';
    v_problem text;
    v_keyword text;
    v_value jsonb;
    v_part record;
BEGIN
    IF jsonb_typeof(p_schema) = 'boolean' AND p_depth > 0 THEN
        RETURN v_problems;
    ELSIF jsonb_typeof(p_schema) IS DISTINCT FROM 'object' THEN
        RETURN ARRAY[format('%s: %s is no schema; a schema is an object', p_path, coalesce(left(p_schema::text, 60), 'nothing'))];
    ELSIF p_depth > 64 THEN
        RETURN ARRAY[p_path || ': the schema is deeper than 64'];
    END IF;

    FOR v_keyword, v_value IN SELECT key, value FROM jsonb_each(p_schema) LOOP
        v_problem := @schema@.keyword_problem(v_keyword, v_value);
        IF v_problem IS NOT NULL THEN
            v_problems := v_problems || format('%s.%s: %s', p_path, v_keyword, v_problem);
        ELSIF v_keyword = '$ref' AND v_value #>> '{}' <> '#' AND (v_value #>> '{}') LIKE '#/%'
            AND @schema@.schema_at(v_root, v_value #>> '{}') IS NULL THEN
            v_problems := v_problems || format('%s.$ref: there is nothing at %s', p_path, v_value);
        ELSIF v_keyword IN ('properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas') THEN
            FOR v_part IN SELECT key, value FROM jsonb_each(v_value) LOOP
                v_problems := v_problems || @schema@.json_schema_problems(
                    v_part.value, format('%s.%s.%s', p_path, v_keyword, v_part.key), v_root, p_depth + 1);
            END LOOP;
        ELSIF v_keyword IN ('allOf', 'anyOf', 'oneOf', 'prefixItems') THEN
            FOR v_part IN SELECT ordinality - 1 AS key, value FROM jsonb_array_elements(v_value) WITH ORDINALITY LOOP
                v_problems := v_problems || @schema@.json_schema_problems(
                    v_part.value, format('%s.%s[%s]', p_path, v_keyword, v_part.key), v_root, p_depth + 1);
            END LOOP;
        ELSIF v_keyword IN ('items', 'contains', 'additionalProperties', 'propertyNames', 'not', 'if', 'then', 'else',
                            'unevaluatedItems', 'unevaluatedProperties', 'contentSchema') THEN
            v_problems := v_problems || @schema@.json_schema_problems(
                v_value, format('%s.%s', p_path, v_keyword), v_root, p_depth + 1);
        END IF;
        EXIT WHEN cardinality(v_problems) >= 20;
    END LOOP;
    RETURN v_problems;
END
$body$;

-- What a reference of the form "#" or "#/a/b" points at (RFC 6901); NULL when there is nothing.
CREATE OR REPLACE FUNCTION @schema@.schema_at(p_root jsonb, p_reference text) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_steps text[];
BEGIN
    IF p_reference = '#' THEN
        RETURN p_root;
    ELSIF p_reference NOT LIKE '#/%' THEN
        RETURN NULL;
    END IF;
    SELECT array_agg(replace(replace(@schema@.percent_decoded(step), '~1', '/'), '~0', '~') ORDER BY ordinality)
    INTO v_steps
    FROM string_to_table(substr(p_reference, 3), '/') WITH ORDINALITY AS steps (step, ordinality);
    RETURN p_root #> v_steps;
END
$body$;

INSERT INTO @schema@.migration (version, name) VALUES (12, 'json schema') ON CONFLICT (version) DO NOTHING;
-- Whether a value is what a JSON Schema asks for, all that is wrong at once.
--
-- Covered: type, enum, const, references within the schema, the keywords of objects, arrays, strings and numbers, and
-- allOf, anyOf, oneOf, not, if. Not covered, and so let through: format, unevaluatedItems, unevaluatedProperties, $anchor,
-- $dynamicRef, content*. Patterns are read as PostgreSQL reads regular expressions. Whoever needs the whole language
-- validates before the call.

-- A place in a value, for a reader.
CREATE OR REPLACE FUNCTION @schema@.place(p_path text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN coalesce(nullif(p_path, ''), 'the whole');

CREATE OR REPLACE FUNCTION @schema@.is_of_type(p_value jsonb, p_type text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN jsonb_typeof(p_value) = p_type
    OR (p_type = 'integer' AND CASE jsonb_typeof(p_value) WHEN 'number' THEN p_value::numeric = trunc(p_value::numeric) ELSE false END);

CREATE OR REPLACE FUNCTION @schema@.number_violations(p_schema jsonb, p_number numeric) RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN array_remove(ARRAY[
    CASE WHEN p_number < (p_schema -> 'minimum')::numeric THEN format('must be at least %s', p_schema -> 'minimum') END,
    CASE WHEN p_number > (p_schema -> 'maximum')::numeric THEN format('must be at most %s', p_schema -> 'maximum') END,
    CASE WHEN p_number <= (p_schema -> 'exclusiveMinimum')::numeric THEN format('must be above %s', p_schema -> 'exclusiveMinimum') END,
    CASE WHEN p_number >= (p_schema -> 'exclusiveMaximum')::numeric THEN format('must be below %s', p_schema -> 'exclusiveMaximum') END,
    CASE WHEN mod(p_number, (p_schema -> 'multipleOf')::numeric) <> 0 THEN format('must be a multiple of %s', p_schema -> 'multipleOf') END
], NULL);

CREATE OR REPLACE FUNCTION @schema@.string_violations(p_schema jsonb, p_string text) RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN array_remove(ARRAY[
    CASE WHEN length(p_string) < (p_schema -> 'minLength')::numeric THEN format('must have at least %s characters', p_schema -> 'minLength') END,
    CASE WHEN length(p_string) > (p_schema -> 'maxLength')::numeric THEN format('must have at most %s characters', p_schema -> 'maxLength') END,
    CASE WHEN p_string !~ (p_schema ->> 'pattern') THEN format('must match %s', p_schema -> 'pattern') END
], NULL);

CREATE OR REPLACE FUNCTION @schema@.array_violations(p_schema jsonb, p_array jsonb, p_path text, p_root jsonb,
    p_depth integer)
RETURNS text[]
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_length integer := jsonb_array_length(p_array);
    v_prefix_length integer := CASE WHEN p_schema ? 'prefixItems' THEN jsonb_array_length(p_schema -> 'prefixItems') ELSE 0 END;
    v_found text[] := '{}';
    v_matching integer;
    v_item jsonb;
    v_index integer;
BEGIN
    IF v_length < (p_schema -> 'minItems')::numeric THEN
        v_found := v_found || format('%s: must have at least %s items', @schema@.place(p_path), p_schema -> 'minItems');
    END IF;
    IF v_length > (p_schema -> 'maxItems')::numeric THEN
        v_found := v_found || format('%s: must have at most %s items', @schema@.place(p_path), p_schema -> 'maxItems');
    END IF;
    IF p_schema -> 'uniqueItems' = 'true'
        AND (SELECT count(*) <> count(DISTINCT item) FROM jsonb_array_elements(p_array) AS item) THEN
        v_found := v_found || format('%s: its items must differ', @schema@.place(p_path));
    END IF;
    IF p_schema ?| '{items,prefixItems}' THEN
        FOR v_item, v_index IN SELECT item, ordinality - 1 FROM jsonb_array_elements(p_array) WITH ORDINALITY AS items (item, ordinality) LOOP
            IF v_index < v_prefix_length OR p_schema ? 'items' THEN
                v_found := v_found || @schema@.json_violations(
                    CASE WHEN v_index < v_prefix_length THEN p_schema -> 'prefixItems' -> v_index ELSE p_schema -> 'items' END,
                    v_item, format('%s[%s]', p_path, v_index), p_root, p_depth + 1);
            END IF;
            EXIT WHEN cardinality(v_found) >= 20;
        END LOOP;
    END IF;
    IF p_schema ? 'contains' THEN
        SELECT count(*) INTO v_matching FROM jsonb_array_elements(p_array) AS item
        WHERE @schema@.json_violations(p_schema -> 'contains', item, p_path, p_root, p_depth + 1) = '{}';
        IF v_matching < coalesce((p_schema -> 'minContains')::numeric, 1)
            OR v_matching > (p_schema -> 'maxContains')::numeric THEN
            v_found := v_found || format('%s: has %s items of the kind that "contains" counts', @schema@.place(p_path), v_matching);
        END IF;
    END IF;
    RETURN v_found;
END
$body$;

CREATE OR REPLACE FUNCTION @schema@.object_violations(p_schema jsonb, p_object jsonb, p_path text, p_root jsonb,
    p_depth integer)
RETURNS text[]
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_dot text := CASE WHEN p_path = '' THEN '' ELSE p_path || '.' END;
    v_count integer;
    v_found text[];
    v_member record;
    v_pattern record;
    v_is_known boolean;
BEGIN
    SELECT coalesce(array_agg(format('%s%s: is missing', v_dot, name) ORDER BY ordinality), '{}') INTO v_found
    FROM jsonb_array_elements_text(coalesce(p_schema -> 'required', '[]')) WITH ORDINALITY AS names (name, ordinality)
    WHERE NOT p_object ? name;

    FOR v_member IN SELECT key, value FROM jsonb_each(p_object) LOOP
        v_is_known := coalesce(p_schema -> 'properties' ? v_member.key, false);
        IF v_is_known THEN
            v_found := v_found || @schema@.json_violations(
                p_schema -> 'properties' -> v_member.key, v_member.value, v_dot || v_member.key, p_root, p_depth + 1);
        END IF;
        IF p_schema ? 'patternProperties' THEN
            FOR v_pattern IN SELECT key, value FROM jsonb_each(p_schema -> 'patternProperties') WHERE v_member.key ~ key LOOP
                v_is_known := true;
                v_found := v_found || @schema@.json_violations(
                    v_pattern.value, v_member.value, v_dot || v_member.key, p_root, p_depth + 1);
            END LOOP;
        END IF;
        IF NOT v_is_known AND p_schema -> 'additionalProperties' = 'false' THEN
            v_found := v_found || format('%s%s: is not among the known names (%s)', v_dot, left(v_member.key, 60), coalesce(
                (SELECT string_agg(name, ', ' ORDER BY name) FROM jsonb_object_keys(p_schema -> 'properties') AS name), 'none'));
        ELSIF NOT v_is_known AND p_schema ? 'additionalProperties' THEN
            v_found := v_found || @schema@.json_violations(
                p_schema -> 'additionalProperties', v_member.value, v_dot || v_member.key, p_root, p_depth + 1);
        END IF;
        IF p_schema ? 'propertyNames' THEN
            v_found := v_found || @schema@.json_violations(
                p_schema -> 'propertyNames', to_jsonb(v_member.key), v_dot || v_member.key, p_root, p_depth + 1);
        END IF;
        IF p_schema -> 'dependentRequired' ? v_member.key THEN
            v_found := v_found || ARRAY(
                SELECT format('%s%s: is missing beside %s', v_dot, name, v_member.key)
                FROM jsonb_array_elements_text(p_schema -> 'dependentRequired' -> v_member.key) AS name
                WHERE NOT p_object ? name);
        END IF;
        IF p_schema -> 'dependentSchemas' ? v_member.key THEN
            v_found := v_found || @schema@.json_violations(
                p_schema -> 'dependentSchemas' -> v_member.key, p_object, p_path, p_root, p_depth + 1);
        END IF;
        EXIT WHEN cardinality(v_found) >= 20;
    END LOOP;

    IF p_schema ?| '{minProperties,maxProperties}' THEN
        SELECT count(*) INTO v_count FROM jsonb_object_keys(p_object);
        IF v_count < (p_schema -> 'minProperties')::numeric OR v_count > (p_schema -> 'maxProperties')::numeric THEN
            v_found := v_found || format('%s: has %s members, which are too few or too many', @schema@.place(p_path), v_count);
        END IF;
    END IF;
    RETURN v_found;
END
$body$;

-- What the keywords say that combine schemas.
CREATE OR REPLACE FUNCTION @schema@.combination_violations(p_schema jsonb, p_value jsonb, p_path text,
    p_root jsonb, p_depth integer)
RETURNS text[]
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_found text[] := '{}';
    v_part jsonb;
    v_matching integer;
BEGIN
    FOR v_part IN SELECT jsonb_array_elements(p_schema -> 'allOf') LOOP
        v_found := v_found || @schema@.json_violations(v_part, p_value, p_path, p_root, p_depth + 1);
    END LOOP;
    IF p_schema ?| '{anyOf,oneOf}' THEN
        SELECT count(*) INTO v_matching FROM jsonb_array_elements(coalesce(p_schema -> 'anyOf', '[]')) AS part
        WHERE @schema@.json_violations(part, p_value, p_path, p_root, p_depth + 1) = '{}';
        IF p_schema ? 'anyOf' AND v_matching = 0 THEN
            v_found := v_found || format('%s: is of none of the kinds allowed', @schema@.place(p_path));
        END IF;
        SELECT count(*) INTO v_matching FROM jsonb_array_elements(coalesce(p_schema -> 'oneOf', '[]')) AS part
        WHERE @schema@.json_violations(part, p_value, p_path, p_root, p_depth + 1) = '{}';
        IF p_schema ? 'oneOf' AND v_matching <> 1 THEN
            v_found := v_found || format('%s: must be of exactly one of the kinds allowed, and is of %s', @schema@.place(p_path), v_matching);
        END IF;
    END IF;
    IF p_schema ? 'not' AND @schema@.json_violations(p_schema -> 'not', p_value, p_path, p_root, p_depth + 1) = '{}' THEN
        v_found := v_found || format('%s: is of a kind that is not allowed', @schema@.place(p_path));
    END IF;
    IF p_schema ? 'if' THEN
        v_part := CASE WHEN @schema@.json_violations(p_schema -> 'if', p_value, p_path, p_root, p_depth + 1) = '{}'
            THEN p_schema -> 'then' ELSE p_schema -> 'else' END;
        IF v_part IS NOT NULL THEN
            v_found := v_found || @schema@.json_violations(v_part, p_value, p_path, p_root, p_depth + 1);
        END IF;
    END IF;
    RETURN v_found;
END
$body$;

CREATE OR REPLACE FUNCTION @schema@.json_violations(p_schema jsonb, p_value jsonb, p_path text DEFAULT '',
    p_root jsonb DEFAULT NULL, p_depth integer DEFAULT 0)
RETURNS text[]
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_root jsonb := coalesce(p_root, p_schema);
    v_type text := jsonb_typeof(p_value);
    v_found text[] := '{}';
BEGIN
    IF p_schema = 'true' OR p_schema = '{}' THEN
        RETURN v_found;
    ELSIF p_schema = 'false' THEN
        RETURN ARRAY[format('%s: is not allowed', @schema@.place(p_path))];
    ELSIF p_depth > 64 THEN
        RETURN ARRAY[format('%s: is nested too deep to be checked', @schema@.place(p_path))];
    END IF;

    IF p_schema ? 'type' AND NOT (CASE jsonb_typeof(p_schema -> 'type')
        WHEN 'string' THEN @schema@.is_of_type(p_value, p_schema ->> 'type')
        ELSE EXISTS (SELECT FROM jsonb_array_elements_text(p_schema -> 'type') AS one WHERE @schema@.is_of_type(p_value, one))
    END) THEN
        RETURN ARRAY[format('%s: must be %s, and is %s', @schema@.place(p_path),
            translate((p_schema -> 'type')::text, '"[]', ''), v_type)];
    END IF;
    IF p_schema ? 'enum' AND NOT EXISTS (SELECT FROM jsonb_array_elements(p_schema -> 'enum') AS one WHERE one = p_value) THEN
        v_found := v_found || format('%s: must be one of %s', @schema@.place(p_path), left((p_schema -> 'enum')::text, 200));
    END IF;
    IF p_schema ? 'const' AND p_schema -> 'const' <> p_value THEN
        v_found := v_found || format('%s: must be %s', @schema@.place(p_path), left((p_schema -> 'const')::text, 200));
    END IF;
    IF p_schema ? '$ref' THEN
        v_found := v_found || @schema@.json_violations(
            coalesce(@schema@.schema_at(v_root, p_schema ->> '$ref'), 'true'), p_value, p_path, v_root, p_depth + 1);
    END IF;
    IF p_schema ?| '{allOf,anyOf,oneOf,not,if}' THEN
        v_found := v_found || @schema@.combination_violations(p_schema, p_value, p_path, v_root, p_depth);
    END IF;
    CASE v_type
        WHEN 'object' THEN
            v_found := v_found || @schema@.object_violations(p_schema, p_value, p_path, v_root, p_depth);
        WHEN 'array' THEN
            v_found := v_found || @schema@.array_violations(p_schema, p_value, p_path, v_root, p_depth);
        WHEN 'string' THEN
            v_found := v_found || ARRAY(
                SELECT format('%s: %s', @schema@.place(p_path), one) FROM unnest(@schema@.string_violations(p_schema, p_value #>> '{}')) AS one);
        WHEN 'number' THEN
            v_found := v_found || ARRAY(
                SELECT format('%s: %s', @schema@.place(p_path), one) FROM unnest(@schema@.number_violations(p_schema, p_value::numeric)) AS one);
        ELSE
            NULL;
    END CASE;
    RETURN v_found[:20];
END
$body$;

INSERT INTO @schema@.migration (version, name) VALUES (13, 'arguments') ON CONFLICT (version) DO NOTHING;
-- URI templates: literal text and {variable}s (RFC 6570, level 1). A variable stands for one or more characters but "/".

-- The text that a percent-encoded one stands for; NULL when it is none.
CREATE OR REPLACE FUNCTION @schema@.percent_decoded(p_text text) RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp AS $body$
BEGIN
    IF strpos(p_text, '%') = 0 THEN
        RETURN p_text;
    ELSIF p_text ~ '%(?![0-9A-Fa-f]{2})' THEN
        RETURN NULL;
    END IF;
    RETURN convert_from(string_agg(
        CASE WHEN piece[1] LIKE '\%%' THEN decode(substr(piece[1], 2), 'hex') ELSE convert_to(piece[1], 'UTF8') END,
        '' ORDER BY ordinality), 'UTF8')
    FROM regexp_matches(p_text, '%[0-9A-Fa-f]{2}|[^%]+', 'g') WITH ORDINALITY AS pieces (piece, ordinality);
EXCEPTION WHEN character_not_in_repertoire OR untranslatable_character THEN
    RETURN NULL;
END
$body$;

CREATE OR REPLACE FUNCTION @schema@.uri_template_variables(p_template text) RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN ARRAY(
    SELECT match[1] FROM regexp_matches(p_template, '\{([^{}]*)\}', 'g') WITH ORDINALITY AS matches (match, ordinality)
    ORDER BY ordinality
);

-- What is wrong with a template; NULL when nothing is.
CREATE OR REPLACE FUNCTION @schema@.uri_template_problem(p_template text) RETURNS text
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_variables text[] := @schema@.uri_template_variables(p_template);
BEGIN
    IF p_template !~ '^[A-Za-z][A-Za-z0-9+.-]*:' THEN
        RETURN 'must begin with a scheme, as in "app:///{name}"';
    ELSIF length(p_template) > 2000 THEN
        RETURN 'is longer than 2000 characters';
    ELSIF p_template ~ '[[:space:][:cntrl:]]' THEN
        RETURN 'must not hold blanks; a blank in a URI is %20';
    ELSIF regexp_replace(p_template, '\{[^{}]*\}', '', 'g') ~ '[{}]' THEN
        RETURN 'has a brace without its other half';
    ELSIF EXISTS (SELECT FROM unnest(v_variables) AS name WHERE name !~ '^[A-Za-z0-9_]+$') THEN
        RETURN 'may hold {variable}s of letters, digits and _, and no other expressions';
    ELSIF p_template LIKE '%}{%' THEN
        RETURN 'has two variables side by side, which cannot be told apart';
    ELSIF (SELECT count(*) <> count(DISTINCT name) FROM unnest(v_variables) AS name) THEN
        RETURN 'has the same variable twice';
    END IF;
    RETURN NULL;
END
$body$;

-- The regular expression that the URIs of a template match, with a group for each variable.
CREATE OR REPLACE FUNCTION @schema@.uri_template_pattern(p_template text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN '^' || regexp_replace(
    regexp_replace(p_template, '([][().*+?^$|\\])', '\\\1', 'g'),
    '\{[^{}]*\}', '([^/]+?)', 'g') || '$';

-- The symbols of a template: a literal character, "{1}" for any one but "/", "{*}" for none or more of these.
CREATE OR REPLACE FUNCTION @schema@.uri_template_symbols(p_template text) RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN ARRAY(
    SELECT symbol
    FROM regexp_matches(p_template, '\{[^{}]*\}|[^{}]', 'g') WITH ORDINALITY AS pieces (piece, place),
        unnest(CASE WHEN length(piece[1]) > 1 THEN ARRAY['{1}', '{*}'] ELSE piece END) WITH ORDINALITY AS symbols (symbol, step)
    ORDER BY place, step
);

-- Whether there is a URI that both templates match: the two are walked side by side, each over its symbols, and every pair
-- of places that they can reach with the same text is visited once.
CREATE OR REPLACE FUNCTION @schema@.uri_templates_overlap(p_one text, p_other text) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_one text[] := @schema@.uri_template_symbols(p_one);
    v_other text[] := @schema@.uri_template_symbols(p_other);
BEGIN
    RETURN EXISTS (
        WITH RECURSIVE place (i, j) AS (
            SELECT 1, 1
            UNION
            SELECT next.i, next.j
            FROM place,
                LATERAL (SELECT v_one[place.i] AS a, v_other[place.j] AS b) AS symbol,
                LATERAL (
                    SELECT place.i + 1, place.j WHERE a = '{*}'
                    UNION ALL
                    SELECT place.i, place.j + 1 WHERE b = '{*}'
                    UNION ALL
                    SELECT place.i + (a <> '{*}')::integer, place.j + (b <> '{*}')::integer
                    WHERE a = b OR (a IN ('{1}', '{*}') AND b <> '/') OR (b IN ('{1}', '{*}') AND a <> '/')
                ) AS next (i, j)
        )
        SELECT FROM place WHERE i > cardinality(v_one) AND j > cardinality(v_other)
    );
END
$body$;

-- The values of the variables in a URI that matches the pattern, decoded; NULL when one of them cannot be decoded.
CREATE OR REPLACE FUNCTION @schema@.uri_variables(p_uri text, p_pattern text, p_variables text[]) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_encoded text[] := regexp_match(p_uri, p_pattern);
    v_decoded text[];
BEGIN
    IF cardinality(p_variables) = 0 THEN
        RETURN '{}';
    END IF;
    v_decoded := ARRAY(SELECT @schema@.percent_decoded(value) FROM unnest(v_encoded) AS value);
    IF v_encoded IS NULL OR array_position(v_decoded, NULL) IS NOT NULL THEN
        RETURN NULL;
    END IF;
    RETURN jsonb_object(p_variables, v_decoded);
END
$body$;

INSERT INTO @schema@.migration (version, name) VALUES (14, 'uri template') ON CONFLICT (version) DO NOTHING;
-- Whether the metadata of a handler is right, everything that is wrong at once, each with the name of its field.

-- The value of a member that must be of one JSON type; reports it when it is not.
CREATE OR REPLACE FUNCTION @schema@.member_problem(p_metadata jsonb, p_member text, p_type text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN p_metadata ? p_member AND jsonb_typeof(p_metadata -> p_member) <> p_type
    THEN format('%s: must be of type %s, and is %s', p_member, p_type, left((p_metadata -> p_member)::text, 60))
END;

CREATE OR REPLACE FUNCTION @schema@.strings_problem(p_metadata jsonb, p_member text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN NOT p_metadata ? p_member THEN NULL
    WHEN jsonb_typeof(p_metadata -> p_member) <> 'array'
        OR jsonb_path_exists(p_metadata -> p_member, '$[*] ? (@.type() != "string")')
    THEN format('%s: must be an array of strings', p_member)
END;

CREATE OR REPLACE FUNCTION @schema@.arguments_problems(p_arguments jsonb) RETURNS text[]
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_found text[] := '{}';
    v_one jsonb;
    v_index integer;
    v_names text[] := '{}';
BEGIN
    IF jsonb_typeof(p_arguments) <> 'array' THEN
        RETURN ARRAY['arguments: must be an array of objects with a name'];
    END IF;
    FOR v_one, v_index IN SELECT one, ordinality - 1 FROM jsonb_array_elements(p_arguments) WITH ORDINALITY AS list (one, ordinality) LOOP
        IF jsonb_typeof(v_one) <> 'object' OR coalesce(jsonb_typeof(v_one -> 'name'), '') <> 'string' OR v_one ->> 'name' = '' THEN
            v_found := v_found || format('arguments[%s]: must be an object with a name', v_index);
            CONTINUE;
        END IF;
        IF v_one ->> 'name' = ANY (v_names) THEN
            v_found := v_found || format('arguments[%s].name: %s is there twice', v_index, v_one -> 'name');
        END IF;
        v_names := v_names || (v_one ->> 'name');
        v_found := v_found || array_remove(ARRAY[
            @schema@.member_problem(v_one, 'title', 'string'),
            @schema@.member_problem(v_one, 'description', 'string'),
            @schema@.member_problem(v_one, 'required', 'boolean')
        ], NULL);
    END LOOP;
    RETURN v_found;
END
$body$;

CREATE OR REPLACE FUNCTION @schema@.annotations_problems(p_type text, p_annotations jsonb) RETURNS text[]
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    c_hints CONSTANT text[] := '{readOnlyHint,destructiveHint,idempotentHint,openWorldHint}';
BEGIN
    IF jsonb_typeof(p_annotations) <> 'object' THEN
        RETURN ARRAY['annotations: must be an object'];
    ELSIF p_type = 'tool' THEN
        RETURN ARRAY(
            SELECT format('annotations.%s: must be %s', key, CASE key WHEN 'title' THEN 'a string' ELSE 'true or false' END)
            FROM jsonb_each(p_annotations)
            WHERE (key = ANY (c_hints) AND jsonb_typeof(value) <> 'boolean') OR (key = 'title' AND jsonb_typeof(value) <> 'string')
        );
    END IF;
    RETURN array_remove(ARRAY[
        CASE WHEN p_annotations ? 'priority' AND NOT coalesce(CASE jsonb_typeof(p_annotations -> 'priority')
            WHEN 'number' THEN (p_annotations -> 'priority')::numeric BETWEEN 0 AND 1 END, false)
        THEN 'annotations.priority: must be a number from 0 to 1' END,
        CASE WHEN p_annotations ? 'audience' AND NOT p_annotations -> 'audience' <@ '["user", "assistant"]'
        THEN 'annotations.audience: must be an array of "user", "assistant"' END
    ], NULL);
END
$body$;

CREATE OR REPLACE FUNCTION @schema@.icons_problems(p_icons jsonb) RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN jsonb_typeof(p_icons) <> 'array' OR jsonb_path_exists(p_icons, 'strict $[*] ? (@.type() != "object")')
    THEN ARRAY['icons: must be an array of objects with a src']
    ELSE ARRAY(
        SELECT format('icons[%s].src: must be an https: or data: URI', ordinality - 1)
        FROM jsonb_array_elements(p_icons) WITH ORDINALITY AS icons (icon, ordinality)
        WHERE coalesce(icon ->> 'src', '') !~ '^(https|data):'
    )
END;

-- What only some types of handler have.
CREATE OR REPLACE FUNCTION @schema@.typed_metadata_problems(p_metadata jsonb) RETURNS text[]
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
        END IF;
    ELSIF v_type = 'resource' THEN
        IF coalesce(jsonb_typeof(p_metadata -> 'uriTemplate'), '') <> 'string' THEN
            v_found := v_found || 'uriTemplate: is missing; a resource needs one, as in "app:///{name}", or a plain URI'::text;
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

CREATE OR REPLACE FUNCTION @schema@.metadata_problems(p_metadata jsonb) RETURNS text[]
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    c_common CONSTANT text[] := '{id,type,name,title,description,requiresAuth,readOnly,minTransactionIsolation,retry,commitOnError,statementTimeout,tags,icons,roles,searchPath,redact,_meta}';
    v_type text := p_metadata ->> 'type';
    v_name text := p_metadata ->> 'name';
    v_allowed text[];
    v_found text[];
BEGIN
    IF jsonb_typeof(p_metadata) IS DISTINCT FROM 'object' THEN
        RETURN ARRAY['metadata: must be an object'];
    ELSIF v_type IS NULL OR v_type NOT IN ('tool', 'resource', 'prompt') THEN
        RETURN ARRAY[format('type: must be tool, resource or prompt, and is %s', coalesce((p_metadata -> 'type')::text, 'missing'))];
    END IF;

    v_allowed := c_common || CASE v_type
        WHEN 'tool' THEN '{inputSchema,outputSchema,annotations,rows}'::text[]
        WHEN 'resource' THEN '{uriTemplate,mimeType,annotations,size}'
        ELSE '{arguments}' END;
    v_found := ARRAY(
        SELECT format('%s: is no member of the metadata of a %s; members are %s', key, v_type, array_to_string(v_allowed, ', '))
        FROM jsonb_object_keys(p_metadata) AS key WHERE key <> ALL (v_allowed) ORDER BY key);
    v_found := v_found || array_remove(ARRAY[
        @schema@.member_problem(p_metadata, 'id', 'string'),
        CASE WHEN p_metadata ->> 'id' = '' THEN 'id: must not be empty' END,
        CASE WHEN coalesce(jsonb_typeof(p_metadata -> 'name'), '') <> 'string' THEN 'name: is missing'
             WHEN v_type <> 'resource' AND v_name !~ '^[A-Za-z0-9_.-]{1,128}$'
             THEN format('name: %s must be 1 to 128 letters, digits, "_", "-" and "."', to_jsonb(left(v_name, 130)))
             WHEN v_name !~ '^[^[:cntrl:]]{1,128}$' THEN 'name: must be 1 to 128 characters without control characters' END,
        @schema@.member_problem(p_metadata, 'title', 'string'),
        @schema@.member_problem(p_metadata, 'description', 'string'),
        @schema@.member_problem(p_metadata, 'mimeType', 'string'),
        @schema@.member_problem(p_metadata, 'size', 'number'),
        @schema@.member_problem(p_metadata, 'requiresAuth', 'boolean'),
        @schema@.member_problem(p_metadata, 'readOnly', 'boolean'),
        @schema@.member_problem(p_metadata, 'commitOnError', 'boolean'),
        @schema@.member_problem(p_metadata, 'rows', 'boolean'),
        @schema@.member_problem(p_metadata, '_meta', 'object'),
        @schema@.strings_problem(p_metadata, 'tags'),
        @schema@.strings_problem(p_metadata, 'roles'),
        @schema@.strings_problem(p_metadata, 'redact'),
        @schema@.strings_problem(p_metadata, 'searchPath'),
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
CREATE OR REPLACE FUNCTION @schema@.duration_ms(p_duration jsonb) RETURNS integer
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_parts text[] := regexp_match(p_duration #>> '{}', '^([0-9]{1,8}) ?(ms|s|min|h)?$');
    v_time bigint;
BEGIN
    IF v_parts IS NULL OR jsonb_typeof(p_duration) NOT IN ('string', 'number') THEN
        RETURN NULL;
    END IF;
    v_time := v_parts[1]::bigint * CASE coalesce(v_parts[2], 'ms') WHEN 'ms' THEN 1 WHEN 's' THEN 1000 WHEN 'min' THEN 60000 ELSE 3600000 END;
    RETURN CASE WHEN v_time BETWEEN 1 AND 86400000 THEN v_time END;
END
$body$;

INSERT INTO @schema@.migration (version, name) VALUES (15, 'metadata') ON CONFLICT (version) DO NOTHING;
-- In which transaction a handler runs. A function cannot begin one: whoever begins it asks here; the dispatcher only
-- refuses what is too weak.

CREATE OR REPLACE FUNCTION @schema@.isolation_rank(p_isolation text) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE lower(replace(p_isolation, '_', ' '))
    WHEN 'read uncommitted' THEN 1
    WHEN 'read committed' THEN 1
    WHEN 'repeatable read' THEN 2
    WHEN 'serializable' THEN 3
END;

-- The stronger of what the handler demands and what the caller asks for (isolation, readOnly), or NULL when there is no
-- such handler. A serializable transaction that only reads waits for a moment without conflicts and then meets none.
CREATE OR REPLACE FUNCTION @schema@.mcp_transaction_policy(p_type text, p_name text, p_requested jsonb DEFAULT '{}')
RETURNS jsonb
LANGUAGE sql STABLE
RETURN (
    SELECT jsonb_build_object(
        'isolation', isolation,
        'readOnly', is_read_only,
        'deferrable', is_deferrable,
        'begin', format('BEGIN ISOLATION LEVEL %s %s%s', upper(isolation),
            CASE WHEN is_read_only THEN 'READ ONLY' ELSE 'READ WRITE' END, CASE WHEN is_deferrable THEN ' DEFERRABLE' ELSE '' END),
        'retries', CASE metadata -> 'retry' WHEN 'false' THEN 0 WHEN 'true' THEN 3 ELSE coalesce((metadata ->> 'retry')::integer, 3) END,
        'commitOnError', commits_on_error,
        'statementTimeoutMs', @schema@.duration_ms(metadata -> 'statementTimeout')
    )
    FROM @schema@.handler,
        LATERAL (SELECT greatest(coalesce(@schema@.isolation_rank(isolation_min), 1),
            coalesce(@schema@.isolation_rank(p_requested ->> 'isolation'), 1)) AS rank) AS floor,
        LATERAL (SELECT (ARRAY['read committed', 'repeatable read', 'serializable'])[rank] AS isolation,
            read_only OR coalesce(p_requested -> 'readOnly' = 'true', false) AS is_read_only) AS stronger,
        LATERAL (SELECT isolation = 'serializable' AND is_read_only AS is_deferrable) AS waiting
    WHERE handler.type = p_type AND handler.name = p_name
);

-- Why the transaction that is open will not do for a handler; NULL when it will.
CREATE OR REPLACE FUNCTION @schema@.transaction_problem(p_isolation_min text) RETURNS jsonb
LANGUAGE sql STABLE
RETURN CASE WHEN @schema@.isolation_rank(current_setting('transaction_isolation')) < @schema@.isolation_rank(p_isolation_min)
    THEN jsonb_build_object('code', 'isolation_too_weak', 'required', p_isolation_min,
        'actual', current_setting('transaction_isolation')) END;

INSERT INTO @schema@.migration (version, name) VALUES (16, 'transaction policy') ON CONFLICT (version) DO NOTHING;
-- The exchange log: who called what, how long it took, what became of it. It is off unless switched on.
--
-- It is written by whoever calls, after the handler has ended and what a failing one wrote was undone, so failures are in it.
-- Only a transaction that is rolled back as a whole takes its lines along.

CREATE TABLE IF NOT EXISTS @schema@.exchange (
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    role_name name NOT NULL DEFAULT current_user,
    type text NOT NULL,
    name text NOT NULL,
    user_id text,
    tenant_id text,
    request_id jsonb,
    duration_ms double precision NOT NULL,
    outcome text NOT NULL CHECK (outcome IN ('done', 'failed', 'refused')),
    code text,
    reference text,
    detail text,
    arguments jsonb
);
COMMENT ON TABLE @schema@.exchange IS 'The exchange log. Switch it with set_mcp_exchange_log, shorten it with purge_mcp_exchanges.';
COMMENT ON COLUMN @schema@.exchange.reference IS 'What the caller was told instead of the detail.';
CREATE INDEX IF NOT EXISTS exchange_at ON @schema@.exchange USING brin (at);

CREATE OR REPLACE FUNCTION @schema@.set_mcp_exchange_log(p_is_on boolean) RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    UPDATE @schema@.registry SET logs_exchanges = p_is_on;
END;

-- Forgets what is older; how many lines that were.
CREATE OR REPLACE FUNCTION @schema@.purge_mcp_exchanges(p_kept interval) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_count bigint;
BEGIN
    DELETE FROM @schema@.exchange WHERE at < now() - p_kept;
    GET DIAGNOSTICS v_count = ROW_COUNT;
    RETURN v_count;
END
$body$;

-- The arguments without what the handler's metadata keeps out of the log: paths as in "card.number".
CREATE OR REPLACE FUNCTION @schema@.redacted(p_arguments jsonb, p_paths jsonb) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_arguments jsonb := p_arguments;
    v_path text[];
BEGIN
    IF jsonb_typeof(p_arguments) IS DISTINCT FROM 'object' OR p_paths IS NULL THEN
        RETURN p_arguments;
    END IF;
    FOR v_path IN SELECT string_to_array(path, '.') FROM jsonb_array_elements_text(p_paths) AS path LOOP
        IF v_arguments #> v_path IS NOT NULL THEN
            v_arguments := jsonb_set(v_arguments, v_path, '"(redacted)"', false);
        END IF;
    END LOOP;
    RETURN v_arguments;
END
$body$;

-- Writes one line, if the log is on and the transaction may write. That it cannot be written never hurts the call.
CREATE OR REPLACE FUNCTION @schema@.log_exchange(p_handler @schema@.handler, p_request @schema@.mcp_request, p_envelope jsonb,
    p_failure jsonb, p_began_at timestamptz, p_outcome text)
RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $body$
BEGIN
    IF NOT (SELECT logs_exchanges FROM @schema@.registry) OR current_setting('transaction_read_only') = 'on' THEN
        RETURN;
    END IF;
    BEGIN
        INSERT INTO @schema@.exchange (type, name, user_id, tenant_id, request_id, duration_ms, outcome, code, reference, detail, arguments)
        VALUES (
            p_handler.type, p_handler.name, nullif(current_setting('auth.user_id', true), ''),
            nullif(current_setting('auth.tenant_id', true), ''), p_request.request_id,
            extract(epoch FROM clock_timestamp() - p_began_at) * 1000, p_outcome,
            coalesce(p_failure ->> 'code', p_envelope #>> '{error,code}'), p_failure ->> 'reference', p_failure ->> 'detail',
            CASE WHEN p_handler.type = 'resource' THEN jsonb_build_object('uri', p_request.uri)
                ELSE @schema@.redacted(p_request.arguments, p_handler.metadata -> 'redact') END
        );
    EXCEPTION WHEN OTHERS THEN
        RAISE LOG 'the exchange log was not written: %', SQLERRM;
    END;
END
$body$;

INSERT INTO @schema@.migration (version, name) VALUES (17, 'exchange') ON CONFLICT (version) DO NOTHING;
-- How a handler comes and goes: a function of its own, and a row in the registry.

-- Names as a function's: told apart by the hash of the whole, since "a.b" and "a-b" must not meet and names may be longer
-- than the server's. The readable part is for whoever reads a log.
CREATE OR REPLACE FUNCTION @schema@.handler_function_name(p_type text, p_name text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN format('mcp_%s_%s_%s', p_type, left(lower(regexp_replace(p_name, '[^A-Za-z0-9]+', '_', 'g')), 30),
    left(encode(sha256(convert_to(p_type || ':' || p_name, 'UTF8')), 'hex'), 12));

-- As a list shows it.
CREATE OR REPLACE FUNCTION @schema@.handler_definition(p_metadata jsonb) RETURNS jsonb
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN jsonb_strip_nulls(jsonb_build_object(
        'name', p_metadata -> 'name',
        'title', p_metadata -> 'title',
        'description', p_metadata -> 'description',
        'mimeType', p_metadata -> 'mimeType',
        'size', p_metadata -> 'size'
    ))
    || CASE WHEN p_metadata ? 'icons' THEN jsonb_build_object('icons', p_metadata -> 'icons') ELSE '{}' END
    || CASE WHEN p_metadata ? 'annotations' THEN jsonb_build_object('annotations', p_metadata -> 'annotations') ELSE '{}' END
    || CASE WHEN p_metadata ? 'arguments' THEN jsonb_build_object('arguments', p_metadata -> 'arguments') ELSE '{}' END
    || CASE WHEN p_metadata ? 'outputSchema' THEN jsonb_build_object('outputSchema', p_metadata -> 'outputSchema') ELSE '{}' END
    || CASE WHEN p_metadata ->> 'type' = 'tool'
        THEN jsonb_build_object('inputSchema', '{"type": "object"}'::jsonb || coalesce(p_metadata -> 'inputSchema', '{}')) ELSE '{}' END
    || CASE WHEN p_metadata ->> 'type' <> 'resource' THEN '{}'
            WHEN p_metadata ->> 'uriTemplate' LIKE '%{%' THEN jsonb_build_object('uriTemplate', p_metadata -> 'uriTemplate')
            ELSE jsonb_build_object('uri', p_metadata -> 'uriTemplate') END
    || CASE WHEN p_metadata ?| '{tags,_meta}'
        THEN jsonb_build_object('_meta', coalesce(p_metadata -> '_meta', '{}')
            || CASE WHEN p_metadata ? 'tags' THEN jsonb_build_object('tags', p_metadata -> 'tags') ELSE '{}' END) ELSE '{}' END;

-- Refuses a handler that another one stands in the way of, and names that one.
CREATE OR REPLACE FUNCTION @schema@.check_collisions(p_type text, p_id text, p_name text, p_template text) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_other @schema@.handler;
BEGIN
    SELECT * INTO v_other FROM @schema@.handler WHERE type = p_type AND name = p_name AND id <> p_id;
    IF FOUND THEN
        RAISE EXCEPTION 'name: % is the name of the % with the id %', to_jsonb(p_name), p_type, to_jsonb(v_other.id)
            USING ERRCODE = 'unique_violation', HINT = 'Choose another name, register under that id, or drop that handler first.';
    END IF;
    -- Of two templates that match a URI the one with more literal text answers, then the longer one. Only where neither
    -- is ahead would chance decide.
    SELECT * INTO v_other FROM @schema@.handler
    WHERE type = p_type AND id <> p_id
        AND uri_literals_length = @schema@.uri_literals_length(p_template) AND length(uri_template) = length(p_template)
        AND @schema@.uri_templates_overlap(uri_template, p_template)
    ORDER BY id LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'uriTemplate: % matches the same URIs as % of the resource with the id %',
            to_jsonb(p_template), to_jsonb(v_other.uri_template), to_jsonb(v_other.id)
            USING ERRCODE = 'unique_violation', HINT = 'Give one of them more literal text, so that it is plain which one answers.';
    END IF;
END
$body$;

CREATE OR REPLACE FUNCTION @schema@.uri_literals_length(p_template text) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN length(regexp_replace(p_template, '\{[^{}]*\}', '', 'g'));

-- Makes the function. Its rights are those of whoever calls, so that row-level security and grants bind.
CREATE OR REPLACE FUNCTION @schema@.create_handler_function(p_metadata jsonb, p_function text, p_body text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET check_function_bodies = on AS $body$
DECLARE
    v_returns_rows boolean := coalesce((p_metadata -> 'rows')::boolean, false);
    v_path text;
    v_detail text;
BEGIN
    IF nullif(btrim(p_body), '') IS NULL THEN
        RAISE EXCEPTION 'body: is missing' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT string_agg(quote_ident(schema), ', ' ORDER BY ordinality) INTO v_path
    FROM jsonb_array_elements_text(coalesce(p_metadata -> 'searchPath', '["@schema@", "public"]')) WITH ORDINALITY AS list (schema, ordinality);
    BEGIN
        EXECUTE format(
            'CREATE OR REPLACE FUNCTION @schema@.%I(request @schema@.mcp_request) RETURNS %s LANGUAGE %s SECURITY INVOKER SET search_path = %s AS %L',
            p_function,
            CASE WHEN v_returns_rows THEN 'SETOF jsonb' ELSE '@schema@.mcp_response' END,
            CASE WHEN v_returns_rows THEN 'sql' ELSE 'plpgsql' END,
            concat_ws(', ', v_path, 'pg_temp'),
            CASE WHEN v_returns_rows THEN format(E'SELECT to_jsonb(one) FROM (\n%s\n) AS one', rtrim(btrim(p_body, E' \t\r\n'), ';')) ELSE p_body END);
    EXCEPTION
        WHEN insufficient_privilege THEN
            RAISE;
        WHEN OTHERS THEN
            GET STACKED DIAGNOSTICS v_detail = PG_EXCEPTION_CONTEXT;
            RAISE EXCEPTION 'body: %', SQLERRM USING ERRCODE = SQLSTATE, DETAIL = left(v_detail, 1000);
    END;
END
$body$;

CREATE OR REPLACE FUNCTION @schema@.create_or_replace_mcp_handler(metadata jsonb, body text) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $body$
#variable_conflict use_column
DECLARE
    p_metadata CONSTANT jsonb := $1;
    p_body CONSTANT text := $2;
    v_problems text[] := @schema@.metadata_problems(p_metadata);
    v_type text := p_metadata ->> 'type';
    v_name text := p_metadata ->> 'name';
    v_id text := coalesce(p_metadata ->> 'id', p_metadata ->> 'name');
    v_template text := p_metadata ->> 'uriTemplate';
    v_function text := @schema@.handler_function_name(v_type, v_name);
    v_before @schema@.handler;
BEGIN
    IF v_problems <> '{}' THEN
        RAISE EXCEPTION '%', array_to_string(v_problems, E'\n')
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Nothing was changed.';
    END IF;
    -- From here to the end of the transaction nobody else changes handlers.
    PERFORM FROM @schema@.registry FOR UPDATE;
    PERFORM @schema@.check_collisions(v_type, v_id, v_name, v_template);

    SELECT * INTO v_before FROM @schema@.handler WHERE type = v_type AND id = v_id;
    IF FOUND AND (v_before.name <> v_name OR v_before.returns_rows <> coalesce((p_metadata -> 'rows')::boolean, false)) THEN
        EXECUTE format('DROP FUNCTION IF EXISTS %s', v_before.function_signature);
    END IF;
    PERFORM @schema@.create_handler_function(p_metadata, v_function, p_body);

    INSERT INTO @schema@.handler AS old (type, id, name, metadata, definition, input_schema, output_schema, uri_template,
        uri_pattern, uri_variables, uri_literals_length, requires_auth, read_only, returns_rows, commits_on_error,
        isolation_min, function_signature)
    SELECT v_type, v_id, v_name, p_metadata, definition, definition -> 'inputSchema', definition -> 'outputSchema', v_template,
        @schema@.uri_template_pattern(v_template), @schema@.uri_template_variables(coalesce(v_template, '')),
        coalesce(@schema@.uri_literals_length(v_template), 0),
        coalesce((p_metadata -> 'requiresAuth')::boolean, true), coalesce((p_metadata -> 'readOnly')::boolean, false),
        coalesce((p_metadata -> 'rows')::boolean, false), coalesce((p_metadata -> 'commitOnError')::boolean, false),
        lower(replace(p_metadata ->> 'minTransactionIsolation', '_', ' ')),
        format('@schema@.%I(@schema@.mcp_request)', v_function)
    FROM @schema@.handler_definition(p_metadata) AS definition
    ON CONFLICT (type, id) DO UPDATE SET
        name = excluded.name, metadata = excluded.metadata, definition = excluded.definition,
        input_schema = excluded.input_schema, output_schema = excluded.output_schema, uri_template = excluded.uri_template,
        uri_pattern = excluded.uri_pattern, uri_variables = excluded.uri_variables,
        uri_literals_length = excluded.uri_literals_length, requires_auth = excluded.requires_auth,
        read_only = excluded.read_only, returns_rows = excluded.returns_rows, commits_on_error = excluded.commits_on_error,
        isolation_min = excluded.isolation_min, function_signature = excluded.function_signature, registered_at = now();
    PERFORM @schema@.grant_handler(v_type, v_id);
    RETURN v_id;
END
$body$;

-- Ends the handlers with this id, of one type or of all; true when there was one.
CREATE OR REPLACE FUNCTION @schema@.drop_mcp_handler(p_id text, p_type text DEFAULT NULL) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_signature text;
    v_dropped boolean := false;
BEGIN
    PERFORM FROM @schema@.registry FOR UPDATE;
    FOR v_signature IN
        DELETE FROM @schema@.handler WHERE id = p_id AND (p_type IS NULL OR type = p_type) RETURNING function_signature
    LOOP
        EXECUTE format('DROP FUNCTION IF EXISTS %s', v_signature);
        v_dropped := true;
    END LOOP;
    RETURN v_dropped;
END
$body$;

INSERT INTO @schema@.migration (version, name) VALUES (20, 'registration') ON CONFLICT (version) DO NOTHING;
-- Who may dispatch: whoever may execute mcp_handle_request. A handler may be executed by all of them, unless its metadata
-- names roles. The grants themselves are the record; there is no other.

-- What registers and grants, and so is for owners.
CREATE OR REPLACE FUNCTION @schema@.is_for_owners(p_function name) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN p_function IN ('create_or_replace_mcp_handler', 'drop_mcp_handler', 'register_function', 'create_handler_function',
    'check_collisions', 'grant_handler', 'grant_mcp_access', 'revoke_mcp_access', 'set_mcp_exchange_log', 'purge_mcp_exchanges', 'set_mcp_identity_check', 'registry_changed',
    'handlers_changed');

CREATE OR REPLACE FUNCTION @schema@.dispatching_roles() RETURNS SETOF name
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT DISTINCT pg_roles.rolname
    FROM pg_proc, aclexplode(pg_proc.proacl) AS entry JOIN pg_roles ON pg_roles.oid = entry.grantee
    WHERE pg_proc.pronamespace = '@schema@'::regnamespace AND pg_proc.proname = 'mcp_handle_request'
        AND entry.grantee <> pg_proc.proowner;
END;

CREATE OR REPLACE FUNCTION @schema@.grant_handler(p_type text, p_id text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_handler @schema@.handler;
    v_role text;
BEGIN
    SELECT * INTO v_handler FROM @schema@.handler WHERE type = p_type AND id = p_id;
    -- What the handler's last registration granted ends here; a new function is open to PUBLIC until this line.
    EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', v_handler.function_signature);
    FOR v_role IN
        SELECT DISTINCT pg_roles.rolname
        FROM pg_proc, aclexplode(pg_proc.proacl) AS entry JOIN pg_roles ON pg_roles.oid = entry.grantee
        WHERE pg_proc.oid = to_regprocedure(v_handler.function_signature) AND entry.grantee <> pg_proc.proowner
    LOOP
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM %I', v_handler.function_signature, v_role);
    END LOOP;
    FOR v_role IN
        SELECT jsonb_array_elements_text(v_handler.metadata -> 'roles')
        UNION
        SELECT rolname FROM @schema@.dispatching_roles() AS rolname WHERE NOT v_handler.metadata ? 'roles'
    LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = v_role) THEN
            RAISE EXCEPTION 'roles: there is no role %', to_jsonb(v_role) USING ERRCODE = 'undefined_object';
        END IF;
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %I', v_handler.function_signature, v_role);
    END LOOP;
END
$body$;

-- Lets a role dispatch requests and execute every handler that names no roles.
CREATE OR REPLACE FUNCTION @schema@.grant_mcp_access(p_role regrole) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_function regprocedure;
BEGIN
    EXECUTE format('GRANT USAGE ON SCHEMA @schema@ TO %s', p_role);
    EXECUTE format('GRANT SELECT ON @schema@.handler, @schema@.registry TO %s', p_role);
    -- Time and role of a line are the server's to say.
    EXECUTE format('GRANT INSERT (type, name, user_id, tenant_id, request_id, duration_ms, outcome, code, reference, detail, arguments)'
        ' ON @schema@.exchange TO %s', p_role);
    FOR v_function IN
        SELECT oid FROM pg_proc
        WHERE pronamespace = '@schema@'::regnamespace AND NOT @schema@.is_for_owners(proname)
            AND NOT EXISTS (
                SELECT FROM @schema@.handler WHERE to_regprocedure(function_signature) = pg_proc.oid AND metadata ? 'roles')
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %s', v_function, p_role);
    END LOOP;
    UPDATE @schema@.registry SET revision = revision + 1;
END
$body$;

-- Takes everything in the schema from a role.
CREATE OR REPLACE FUNCTION @schema@.revoke_mcp_access(p_role regrole) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $body$
BEGIN
    EXECUTE format('REVOKE ALL ON ALL FUNCTIONS IN SCHEMA @schema@ FROM %s', p_role);
    EXECUTE format('REVOKE ALL ON ALL TABLES IN SCHEMA @schema@ FROM %s', p_role);
    EXECUTE format('REVOKE ALL ON SCHEMA @schema@ FROM %s', p_role);
    UPDATE @schema@.registry SET revision = revision + 1;
END
$body$;

INSERT INTO @schema@.migration (version, name) VALUES (21, 'access') ON CONFLICT (version) DO NOTHING;
-- Existing functions as tools: the schema of the arguments comes from their types.

-- What values of a type look like in JSON.
CREATE OR REPLACE FUNCTION @schema@.json_schema_of_type(p_type oid, p_depth integer DEFAULT 0) RETURNS jsonb
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_type pg_type;
BEGIN
    SELECT * INTO v_type FROM pg_type WHERE oid = p_type;
    IF p_depth > 8 OR p_type IN ('json'::regtype, 'jsonb'::regtype) THEN
        RETURN '{}';
    ELSIF v_type.typtype = 'd' THEN
        RETURN @schema@.json_schema_of_type(v_type.typbasetype, p_depth + 1);
    ELSIF v_type.typtype = 'e' THEN
        RETURN jsonb_build_object('type', 'string', 'enum',
            (SELECT jsonb_agg(enumlabel ORDER BY enumsortorder) FROM pg_enum WHERE enumtypid = p_type));
    ELSIF v_type.typcategory = 'A' AND v_type.typelem <> 0 THEN
        RETURN jsonb_build_object('type', 'array', 'items', @schema@.json_schema_of_type(v_type.typelem, p_depth + 1));
    ELSIF v_type.typtype = 'c' THEN
        RETURN jsonb_build_object('type', 'object', 'properties', (
            SELECT coalesce(jsonb_object_agg(attname, @schema@.json_schema_of_type(atttypid, p_depth + 1)), '{}')
            FROM pg_attribute WHERE attrelid = v_type.typrelid AND attnum > 0 AND NOT attisdropped));
    END IF;
    RETURN CASE p_type
        WHEN 'boolean'::regtype THEN '{"type": "boolean"}'
        WHEN 'smallint'::regtype THEN '{"type": "integer", "minimum": -32768, "maximum": 32767}'
        WHEN 'integer'::regtype THEN '{"type": "integer", "minimum": -2147483648, "maximum": 2147483647}'
        WHEN 'bigint'::regtype THEN '{"type": "integer"}'
        WHEN 'real'::regtype THEN '{"type": "number"}'
        WHEN 'double precision'::regtype THEN '{"type": "number"}'
        WHEN 'numeric'::regtype THEN '{"type": "number"}'
        WHEN 'uuid'::regtype THEN '{"type": "string", "format": "uuid"}'
        WHEN 'date'::regtype THEN '{"type": "string", "format": "date"}'
        WHEN 'timestamptz'::regtype THEN '{"type": "string", "format": "date-time"}'
        ELSE '{"type": "string"}'
    END::jsonb;
END
$body$;

-- The arguments that go in, in their order.
CREATE OR REPLACE FUNCTION @schema@.function_arguments(p_function regprocedure)
RETURNS TABLE (place integer, name text, type oid, has_default boolean)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT taken.place, taken.name, taken.type, taken.place > pg_proc.pronargs - pg_proc.pronargdefaults
    FROM pg_proc, LATERAL (
        SELECT (row_number() OVER (ORDER BY every.ordinality))::integer AS place, pg_proc.proargnames[every.ordinality] AS name, every.type
        FROM unnest(coalesce(pg_proc.proallargtypes, pg_proc.proargtypes::oid[])) WITH ORDINALITY AS every (type, ordinality)
        WHERE coalesce(pg_proc.proargmodes[every.ordinality], 'i') IN ('i', 'b')
    ) AS taken
    WHERE pg_proc.oid = p_function
    ORDER BY taken.place;
END;

CREATE OR REPLACE FUNCTION @schema@.check_function(p_function regprocedure) RETURNS pg_catalog.pg_proc
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_proc pg_proc;
    v_problem text;
BEGIN
    SELECT * INTO v_proc FROM pg_proc WHERE oid = p_function;
    v_problem := CASE
        WHEN v_proc.oid IS NULL THEN 'there is no such function'
        WHEN v_proc.prokind <> 'f' THEN 'it is a procedure, an aggregate or a window function; only plain functions can be tools'
        WHEN v_proc.provariadic <> 0 THEN 'it takes a variable number of arguments'
        WHEN EXISTS (SELECT FROM @schema@.function_arguments(p_function) WHERE coalesce(name, '') = '')
        THEN 'an argument has no name, and callers name what they pass'
        WHEN EXISTS (SELECT FROM @schema@.function_arguments(p_function) AS one JOIN pg_type ON pg_type.oid = one.type WHERE typtype = 'p')
        THEN 'an argument has a type that is settled only with each call'
        WHEN v_proc.prorettype IN ('trigger'::regtype, 'event_trigger'::regtype) THEN 'it is a trigger''s'
    END;
    IF v_problem IS NOT NULL THEN
        RAISE EXCEPTION 'function: % cannot be a tool: %', p_function, v_problem USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN v_proc;
END
$body$;

-- The body of the handler that calls a function with the arguments that are there; the others keep their defaults.
CREATE OR REPLACE FUNCTION @schema@.function_tool_body(p_function regprocedure, p_proc pg_catalog.pg_proc) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_call text := (SELECT format('%I.%I', nspname, p_proc.proname) FROM pg_namespace WHERE oid = p_proc.pronamespace);
    v_names text[];
    v_columns text;
    v_from text;
    v_begin text;
    v_end text;
BEGIN
    SELECT coalesce(array_agg(name ORDER BY place), '{}'), string_agg(format('%I %s', name, format_type(type, NULL)), ', ' ORDER BY place)
    INTO v_names, v_columns FROM @schema@.function_arguments(p_function);
    v_from := CASE WHEN v_columns IS NULL THEN '' ELSE format(' FROM jsonb_to_record($1) AS given (%s)', v_columns) END;
    IF p_proc.proretset THEN
        v_begin := 'SELECT jsonb_build_object(''rows'', coalesce(jsonb_agg(one), ''[]'')) FROM (SELECT to_jsonb(one) AS one'
            || CASE WHEN v_columns IS NULL THEN ' FROM ' ELSE v_from || ', LATERAL ' END || v_call || '(';
        v_end := ') AS one LIMIT 1000) AS rows';
    ELSIF p_proc.prorettype = 'void'::regtype THEN
        v_begin := 'SELECT to_jsonb((' || v_call || '(';
        v_end := '))::text)' || v_from;
    ELSE
        v_begin := 'SELECT to_jsonb(' || v_call || '(';
        v_end := '))' || v_from;
    END IF;
    RETURN format($handler$
DECLARE
    v_given text := coalesce((
        SELECT string_agg(format('%%1$I => given.%%1$I', name), ', ')
        FROM unnest(%1$L::text[]) AS name WHERE (request).arguments ? name), '');
    v_value jsonb;
BEGIN
    EXECUTE %2$L || v_given || %3$L INTO v_value USING (request).arguments;
    RETURN @schema@.mcp_structured_result(
        CASE WHEN jsonb_typeof(v_value) = 'object' THEN v_value ELSE jsonb_build_object('result', v_value) END,
        (request).request_id);
END
$handler$, v_names, v_begin, v_end);
END
$body$;

-- Offers a function as a tool; members of metadata go before what is inferred.
CREATE OR REPLACE FUNCTION @schema@.register_function(p_function regprocedure, p_metadata jsonb DEFAULT '{}')
RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_proc pg_proc := @schema@.check_function(p_function);
    v_reads boolean := v_proc.provolatile <> 'v';
    v_metadata jsonb;
BEGIN
    SELECT jsonb_build_object(
        'id', 'function:' || p_function::text,
        'type', 'tool',
        'name', v_proc.proname,
        'inputSchema', jsonb_build_object('type', 'object', 'additionalProperties', false,
            'properties', coalesce(jsonb_object_agg(name, @schema@.json_schema_of_type(type)) FILTER (WHERE name IS NOT NULL), '{}'),
            'required', coalesce(jsonb_agg(name ORDER BY place) FILTER (WHERE NOT has_default), '[]')),
        'readOnly', v_reads)
    INTO v_metadata FROM @schema@.function_arguments(p_function);
    IF v_reads THEN
        v_metadata := v_metadata || '{"annotations": {"readOnlyHint": true}}';
    END IF;
    IF obj_description(p_function, 'pg_proc') IS NOT NULL THEN
        v_metadata := v_metadata || jsonb_build_object('description', obj_description(p_function, 'pg_proc'));
    END IF;
    RETURN @schema@.create_or_replace_mcp_handler(
        v_metadata || coalesce(p_metadata, '{}'), @schema@.function_tool_body(p_function, v_proc));
END
$body$;

INSERT INTO @schema@.migration (version, name) VALUES (22, 'function tool') ON CONFLICT (version) DO NOTHING;
-- Whether what a handler answered is an answer.

CREATE OR REPLACE FUNCTION @schema@.contents_problem(p_contents jsonb) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN jsonb_typeof(p_contents) IS DISTINCT FROM 'object' THEN 'contents of a resource are no object'
    WHEN jsonb_typeof(p_contents -> 'uri') IS DISTINCT FROM 'string' THEN 'contents of a resource have no uri'
    WHEN jsonb_typeof(p_contents -> 'text') IS DISTINCT FROM 'string' AND jsonb_typeof(p_contents -> 'blob') IS DISTINCT FROM 'string'
    THEN 'contents of a resource have neither text nor blob'
END;

CREATE OR REPLACE FUNCTION @schema@.content_problem(p_block jsonb) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN jsonb_typeof(p_block) IS DISTINCT FROM 'object' THEN 'a block of content is no object'
    WHEN p_block ->> 'type' = 'text' AND jsonb_typeof(p_block -> 'text') = 'string' THEN NULL
    WHEN p_block ->> 'type' IN ('image', 'audio') AND jsonb_typeof(p_block -> 'data') = 'string'
        AND jsonb_typeof(p_block -> 'mimeType') = 'string' THEN NULL
    WHEN p_block ->> 'type' = 'resource_link' AND jsonb_typeof(p_block -> 'uri') = 'string'
        AND jsonb_typeof(p_block -> 'name') = 'string' THEN NULL
    WHEN p_block ->> 'type' = 'resource' AND @schema@.contents_problem(p_block -> 'resource') IS NULL THEN NULL
    ELSE format('a block of content of the type %s lacks what belongs to it', coalesce((p_block -> 'type')::text, 'nothing'))
END;

CREATE OR REPLACE FUNCTION @schema@.message_problem(p_message jsonb) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN jsonb_typeof(p_message) IS DISTINCT FROM 'object' THEN 'a message is no object'
    WHEN coalesce(p_message ->> 'role', '') NOT IN ('user', 'assistant') THEN 'a message has neither the role user nor assistant'
    ELSE @schema@.content_problem(p_message -> 'content')
END;

CREATE OR REPLACE FUNCTION @schema@.result_problem(p_type text, p_result jsonb, p_output_schema jsonb) RETURNS text
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_list jsonb := p_result -> CASE p_type WHEN 'tool' THEN 'content' WHEN 'resource' THEN 'contents' ELSE 'messages' END;
    v_problem text;
BEGIN
    IF jsonb_typeof(p_result) IS DISTINCT FROM 'object' THEN
        RETURN 'the result is no object';
    ELSIF jsonb_typeof(v_list) IS DISTINCT FROM 'array' THEN
        RETURN 'the result lacks its array';
    END IF;
    SELECT problem INTO v_problem
    FROM jsonb_array_elements(v_list) AS one,
        LATERAL (SELECT CASE p_type WHEN 'tool' THEN @schema@.content_problem(one)
            WHEN 'resource' THEN @schema@.contents_problem(one) ELSE @schema@.message_problem(one) END AS problem) AS found
    WHERE problem IS NOT NULL LIMIT 1;
    IF v_problem IS NOT NULL OR p_type <> 'tool' THEN
        RETURN v_problem;
    ELSIF p_result ? 'isError' AND jsonb_typeof(p_result -> 'isError') <> 'boolean' THEN
        RETURN 'isError is neither true nor false';
    ELSIF p_output_schema IS NULL OR p_result -> 'isError' = 'true' THEN
        RETURN NULL;
    ELSIF NOT p_result ? 'structuredContent' THEN
        RETURN 'the tool has an outputSchema and its result no structuredContent';
    END IF;
    RETURN 'structuredContent: ' || nullif(array_to_string(
        @schema@.json_violations(p_output_schema, p_result -> 'structuredContent'), '; '), '');
END
$body$;

-- What is wrong with the envelope that a handler gave back; NULL when nothing is. Of the codes that the protocol keeps for
-- itself only those of JSON-RPC, -32001 and the old -32002 may come from a handler.
CREATE OR REPLACE FUNCTION @schema@.envelope_problem(p_envelope jsonb, p_type text, p_request_id jsonb,
    p_output_schema jsonb)
RETURNS text
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_error jsonb := p_envelope -> 'error';
    v_code numeric;
BEGIN
    IF p_envelope IS NULL THEN
        RETURN 'the handler returned NULL';
    ELSIF jsonb_typeof(p_envelope) <> 'object' OR p_envelope -> 'jsonrpc' IS DISTINCT FROM '"2.0"' THEN
        RETURN 'the envelope is no JSON-RPC 2.0 response';
    ELSIF p_envelope -> 'id' IS DISTINCT FROM coalesce(p_request_id, 'null') THEN
        RETURN 'the envelope has another id than the request';
    ELSIF (p_envelope ? 'result') = (p_envelope ? 'error') THEN
        RETURN 'the envelope must have either a result or an error';
    ELSIF p_envelope ? 'result' THEN
        RETURN @schema@.result_problem(p_type, p_envelope -> 'result', p_output_schema);
    ELSIF NOT coalesce(jsonb_typeof(v_error -> 'code') = 'number' AND jsonb_typeof(v_error -> 'message') = 'string', false) THEN
        RETURN 'the error lacks its code or its message';
    END IF;
    v_code := (v_error ->> 'code')::numeric;
    IF v_code <> trunc(v_code) OR (v_code BETWEEN -32768 AND -32000
        AND v_code NOT IN (-32700, -32600, -32601, -32602, -32603, -32001, -32002)) THEN
        RETURN format('the error code %s is not a handler''s to use', v_code);
    END IF;
    RETURN NULL;
END
$body$;

INSERT INTO @schema@.migration (version, name) VALUES (30, 'answer') ON CONFLICT (version) DO NOTHING;
-- Runs a handler, and turns whatever becomes of it into an answer.

-- An answer for a failure of the handler's. The reader gets a reference, the logs have the detail beside it.
CREATE OR REPLACE FUNCTION @schema@.failure_envelope(p_handler @schema@.handler, p_request_id jsonb, p_failure jsonb)
RETURNS jsonb
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_code text := p_failure ->> 'code';
    v_reference text := p_failure ->> 'reference';
BEGIN
    RAISE LOG 'handler failed: type=% name=% code=% reference=% detail=%',
        p_handler.type, p_handler.name, v_code, v_reference, p_failure ->> 'detail';
    IF p_handler.type = 'tool' AND v_code NOT IN ('broken_answer', 'write_in_read_only_handler') THEN
        RETURN (@schema@.mcp_tool_error(CASE v_code
            WHEN 'cancelled' THEN 'The tool was stopped: it took too long, or somebody cancelled it.'
            ELSE format('The tool failed. The server''s log has the detail under %s.', v_reference) END, p_request_id)).envelope;
    END IF;
    RETURN (@schema@.mcp_error(-32603, format('Internal error. The server''s log has the detail under %s.', v_reference),
        p_request_id, jsonb_build_object('code', v_code, 'reference', v_reference))).envelope;
END
$body$;

-- The rows of a handler that returns rows, as many as fit; a caller of the function itself gets them one by one.
CREATE OR REPLACE FUNCTION @schema@.rows_envelope(p_handler @schema@.handler, p_request @schema@.mcp_request)
RETURNS jsonb
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    c_rows_max CONSTANT integer := 1000;
    v_rows jsonb;
    v_answer jsonb;
BEGIN
    -- In the list of columns the function gives row after row and stops with the limit; after FROM it would run to its end.
    EXECUTE format('SELECT coalesce(jsonb_agg(one), ''[]'') FROM (SELECT %s($1) AS one LIMIT %s) AS rows',
        @schema@.function_of(p_handler), c_rows_max + 1) INTO v_rows USING p_request;
    v_answer := jsonb_build_object('rows', CASE WHEN jsonb_array_length(v_rows) > c_rows_max THEN v_rows - c_rows_max ELSE v_rows END,
        'truncated', jsonb_array_length(v_rows) > c_rows_max);
    RETURN (@schema@.mcp_structured_result(v_answer, p_request.request_id)).envelope;
END
$body$;

-- The name to call, without the types of its arguments.
CREATE OR REPLACE FUNCTION @schema@.function_of(p_handler @schema@.handler) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN left((p_handler).function_signature, strpos((p_handler).function_signature, '(') - 1);

-- Runs in the rights of whoever calls. What a failing handler wrote is undone, whether it raises or says that it failed,
-- unless it was registered with commitOnError. Serialization failures and deadlocks are handed on: only who began the
-- transaction can run it again. A failure is told apart from what the caller reads of it.
CREATE OR REPLACE FUNCTION @schema@.invoke_handler(p_handler @schema@.handler, p_request @schema@.mcp_request,
    OUT envelope jsonb, OUT failure jsonb)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_policy jsonb := @schema@.transaction_problem(p_handler.isolation_min);
    v_problem text;
    v_failed boolean;
BEGIN
    IF v_policy IS NOT NULL THEN
        envelope := (@schema@.mcp_error(-32603, format('The handler needs a transaction that is at least %s.', p_handler.isolation_min),
            p_request.request_id, v_policy)).envelope;
        RETURN;
    END IF;
    BEGIN
        IF p_handler.read_only AND current_setting('transaction_read_only') = 'off' THEN
            -- Until the end of this block, which is a subtransaction.
            PERFORM set_config('transaction_read_only', 'on', true);
        END IF;
        IF p_handler.returns_rows THEN
            envelope := @schema@.rows_envelope(p_handler, p_request);
        ELSE
            EXECUTE format('SELECT answer.envelope FROM %s($1) AS answer', @schema@.function_of(p_handler))
                INTO envelope USING p_request;
        END IF;
        v_problem := @schema@.envelope_problem(envelope, p_handler.type, p_request.request_id, p_handler.output_schema);
        v_failed := envelope ? 'error' OR coalesce(envelope #> '{result,isError}' = 'true', false);
        IF v_problem IS NOT NULL OR (v_failed AND NOT p_handler.commits_on_error) THEN
            RAISE EXCEPTION USING ERRCODE = 'MCP00', MESSAGE = coalesce(v_problem, 'the handler says that it failed');
        END IF;
    EXCEPTION
        WHEN serialization_failure OR deadlock_detected THEN
            RAISE EXCEPTION USING ERRCODE = SQLSTATE, MESSAGE = 'the transaction met another one; run it again';
        WHEN SQLSTATE 'MCP00' THEN
            IF v_problem IS NOT NULL OR envelope IS NULL THEN
                failure := jsonb_build_object('code', 'broken_answer', 'detail', SQLERRM);
            END IF;
        WHEN SQLSTATE 'MCP01' THEN
            envelope := (CASE p_handler.type WHEN 'tool' THEN @schema@.mcp_tool_error(SQLERRM, p_request.request_id)
                ELSE @schema@.mcp_error(-32603, SQLERRM, p_request.request_id) END).envelope;
        WHEN query_canceled THEN
            failure := jsonb_build_object('code', 'cancelled', 'detail', SQLERRM);
        WHEN read_only_sql_transaction THEN
            failure := jsonb_build_object('detail', SQLERRM,
                'code', CASE WHEN p_handler.read_only THEN 'write_in_read_only_handler' ELSE 'failed' END);
        -- A failing ASSERT is not among "others".
        WHEN assert_failure OR OTHERS THEN
            failure := jsonb_build_object('code', 'failed', 'detail', SQLSTATE || ': ' || SQLERRM);
    END;
    IF failure IS NOT NULL THEN
        failure := failure || jsonb_build_object('reference', gen_random_uuid());
        envelope := @schema@.failure_envelope(p_handler, p_request.request_id, failure);
    END IF;
END
$body$;

INSERT INTO @schema@.migration (version, name) VALUES (31, 'invocation') ON CONFLICT (version) DO NOTHING;
-- One call of a tool, a resource or a prompt: who asks, which handler, may it, with what, and its answer. What a role may
-- not execute is not there for it, and it reads the same as for a name that nobody ever gave.

-- Why a call stops before its handler runs, as an answer; NULL when nothing stops it.
CREATE OR REPLACE FUNCTION @schema@.refusal(p_handler @schema@.handler, p_is_known boolean, p_arguments jsonb,
    p_request_id jsonb)
RETURNS @schema@.mcp_response
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_violations text[];
BEGIN
    IF p_handler.requires_auth AND NOT p_is_known THEN
        RETURN @schema@.mcp_error(-32001, 'Authentication required: user_id missing from context', p_request_id);
    ELSIF p_handler.type = 'resource' THEN
        RETURN NULL;
    ELSIF jsonb_typeof(p_arguments) <> 'object' THEN
        RETURN @schema@.mcp_error(-32602, format('arguments: must be an object, and is %s', jsonb_typeof(p_arguments)), p_request_id);
    ELSIF p_handler.type = 'prompt' THEN
        v_violations := @schema@.prompt_violations(coalesce(p_handler.metadata -> 'arguments', '[]'), p_arguments);
        IF v_violations <> '{}' THEN
            RETURN @schema@.mcp_error(-32602, array_to_string(v_violations, '; '), p_request_id,
                jsonb_build_object('violations', to_jsonb(v_violations)));
        END IF;
        RETURN NULL;
    END IF;
    v_violations := @schema@.json_violations(p_handler.input_schema, p_arguments);
    IF v_violations <> '{}' THEN
        -- A result and no protocol error: the model reads it and mends its call.
        RETURN @schema@.mcp_tool_error(format(E'The arguments of %s are wrong:\n- %s', p_handler.name,
            array_to_string(v_violations, E'\n- ')), p_request_id);
    END IF;
    RETURN NULL;
END
$body$;

-- Arguments of prompts are strings, each of them known by name.
CREATE OR REPLACE FUNCTION @schema@.prompt_violations(p_declared jsonb, p_arguments jsonb) RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN ARRAY(
    SELECT format('%s: is missing', one ->> 'name')
    FROM jsonb_array_elements(p_declared) WITH ORDINALITY AS declared (one, place)
    WHERE one -> 'required' = 'true' AND NOT p_arguments ? (one ->> 'name')
    ORDER BY place
) || ARRAY(
    SELECT CASE WHEN EXISTS (SELECT FROM jsonb_array_elements(p_declared) AS one WHERE one ->> 'name' = key)
        THEN format('%s: must be a string, and is %s', key, jsonb_typeof(value))
        ELSE format('%s: is no argument of this prompt; arguments are %s', left(key, 60), coalesce(
            (SELECT string_agg(one ->> 'name', ', ' ORDER BY place)
             FROM jsonb_array_elements(p_declared) WITH ORDINALITY AS declared (one, place)), 'none')) END
    FROM jsonb_each(p_arguments)
    WHERE jsonb_typeof(value) <> 'string'
        OR NOT EXISTS (SELECT FROM jsonb_array_elements(p_declared) AS one WHERE one ->> 'name' = key)
    ORDER BY key
);

-- The whole way of a call once its handler is known, or known to be missing.
CREATE OR REPLACE FUNCTION @schema@.answer_call(p_handler @schema@.handler, p_request @schema@.mcp_request,
    p_missing @schema@.mcp_response)
RETURNS @schema@.mcp_response
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_before text[] := @schema@.current_identity();
    v_is_known boolean := @schema@.enter_identity(p_request.context);
    v_answer @schema@.mcp_response;
    v_failure jsonb;
    v_began_at timestamptz := clock_timestamp();
    v_outcome text := 'refused';
BEGIN
    IF NOT v_is_known AND jsonb_typeof(p_request.context) = 'object' THEN
        -- A handler that reads the context itself must not find a name there that counts for nothing.
        p_request.context := p_request.context - '{user_id,tenant_id}'::text[];
    END IF;
    IF p_handler.name IS NULL THEN
        v_answer := p_missing;
    ELSE
        v_answer := @schema@.refusal(p_handler, v_is_known, p_request.arguments, p_request.request_id);
        IF v_answer.envelope IS NULL THEN
            SELECT * INTO v_answer.envelope, v_failure FROM @schema@.invoke_handler(p_handler, p_request);
            v_outcome := CASE WHEN v_answer.envelope ? 'error' OR v_answer.envelope #> '{result,isError}' = 'true' THEN 'failed' ELSE 'done' END;
        END IF;
        PERFORM @schema@.log_exchange(p_handler, p_request, v_answer.envelope, v_failure, v_began_at, v_outcome);
    END IF;
    PERFORM @schema@.leave_identity(v_before);
    RETURN v_answer;
END
$body$;

CREATE OR REPLACE FUNCTION @schema@.call_by_name(p_type text, p_name text, p_arguments jsonb, p_context jsonb,
    p_request_id jsonb, p_meta jsonb)
RETURNS @schema@.mcp_response
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_handler @schema@.handler;
    v_request @schema@.mcp_request;
BEGIN
    SELECT * INTO v_handler FROM @schema@.handler WHERE type = p_type AND name = p_name;
    v_request.arguments := coalesce(p_arguments, '{}');
    v_request.context := p_context;
    v_request.request_id := p_request_id;
    v_request.variables := '{}';
    v_request.meta := p_meta;
    RETURN @schema@.answer_call(v_handler, v_request,
        @schema@.mcp_error(-32602, format('Unknown %s: %s', p_type, left(coalesce(p_name, ''), 128)), p_request_id));
END
$body$;

-- Of several templates that match, the one with most literal text answers, then the longer one; a plain URI before all.
CREATE OR REPLACE FUNCTION @schema@.call_by_uri(p_uri text, p_context jsonb, p_request_id jsonb, p_meta jsonb,
    p_missing_code integer)
RETURNS @schema@.mcp_response
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    c_uri_length_max CONSTANT integer := 8192;
    v_handler @schema@.handler;
    v_request @schema@.mcp_request;
BEGIN
    IF length(p_uri) <= c_uri_length_max THEN
        SELECT * INTO v_handler FROM @schema@.handler
        WHERE type = 'resource' AND p_uri ~ uri_pattern
            AND @schema@.uri_variables(p_uri, uri_pattern, uri_variables) IS NOT NULL
        ORDER BY cardinality(uri_variables) = 0 DESC, uri_literals_length DESC, length(uri_template) DESC
        LIMIT 1;
    END IF;
    v_request.arguments := '{}';
    v_request.uri := p_uri;
    v_request.context := p_context;
    v_request.request_id := p_request_id;
    v_request.variables := @schema@.uri_variables(p_uri, v_handler.uri_pattern, v_handler.uri_variables);
    v_request.meta := p_meta;
    RETURN @schema@.answer_call(v_handler, v_request, @schema@.mcp_error(
        p_missing_code, 'Resource not found', p_request_id, jsonb_build_object('uri', left(p_uri, c_uri_length_max))));
END
$body$;

CREATE OR REPLACE FUNCTION @schema@.mcp_call_tool(p_name text, p_arguments jsonb, p_context jsonb, p_request_id jsonb)
RETURNS @schema@.mcp_response
LANGUAGE sql
RETURN @schema@.call_by_name('tool', p_name, p_arguments, p_context, p_request_id, NULL);

CREATE OR REPLACE FUNCTION @schema@.mcp_call_tool(p_name text, p_arguments jsonb, p_context jsonb, p_request_id text)
RETURNS @schema@.mcp_response
LANGUAGE sql
RETURN @schema@.call_by_name('tool', p_name, p_arguments, p_context, to_jsonb(p_request_id), NULL);

CREATE OR REPLACE FUNCTION @schema@.mcp_read_resource(p_uri text, p_context jsonb, p_request_id jsonb)
RETURNS @schema@.mcp_response
LANGUAGE sql
RETURN @schema@.call_by_uri(p_uri, p_context, p_request_id, NULL, -32602);

CREATE OR REPLACE FUNCTION @schema@.mcp_read_resource(p_uri text, p_context jsonb, p_request_id text)
RETURNS @schema@.mcp_response
LANGUAGE sql
RETURN @schema@.call_by_uri(p_uri, p_context, to_jsonb(p_request_id), NULL, -32602);

CREATE OR REPLACE FUNCTION @schema@.mcp_get_prompt(p_name text, p_arguments jsonb, p_context jsonb, p_request_id jsonb)
RETURNS @schema@.mcp_response
LANGUAGE sql
RETURN @schema@.call_by_name('prompt', p_name, p_arguments, p_context, p_request_id, NULL);

CREATE OR REPLACE FUNCTION @schema@.mcp_get_prompt(p_name text, p_arguments jsonb, p_context jsonb, p_request_id text)
RETURNS @schema@.mcp_response
LANGUAGE sql
RETURN @schema@.call_by_name('prompt', p_name, p_arguments, p_context, to_jsonb(p_request_id), NULL);

INSERT INTO @schema@.migration (version, name) VALUES (32, 'gateway') ON CONFLICT (version) DO NOTHING;
-- What there is, in pages, in the order of names. Lists show what calls let through: neither handlers that the role may not
-- execute, nor, to nobody in particular, those that ask who calls.

-- Entries of a page; the setting mcp.page_size changes it.
CREATE OR REPLACE FUNCTION @schema@.page_size() RETURNS integer
LANGUAGE sql STABLE
RETURN CASE WHEN current_setting('mcp.page_size', true) ~ '^[1-9][0-9]{0,3}$'
    THEN current_setting('mcp.page_size', true)::integer ELSE 250 END;

-- A cursor is the list and the last name that was shown: a list that has changed since goes on in the right place.
CREATE OR REPLACE FUNCTION @schema@.cursor_after(p_list text, p_name text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN translate(encode(convert_to(p_list || E'\n' || p_name, 'UTF8'), 'base64'), E'+/=\n', '-_');

-- The name in a cursor, '' where there is no cursor; NULL when it is none of this list.
CREATE OR REPLACE FUNCTION @schema@.cursor_name(p_list text, p_cursor text) RETURNS text
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_text text;
BEGIN
    IF p_cursor IS NULL THEN
        RETURN '';
    ELSIF length(p_cursor) > 2000 THEN
        RETURN NULL;
    END IF;
    v_text := convert_from(decode(rpad(translate(p_cursor, '-_', '+/'), (length(p_cursor) + 3) / 4 * 4, '='), 'base64'), 'UTF8');
    RETURN CASE WHEN starts_with(v_text, p_list || E'\n') THEN substr(v_text, length(p_list) + 2) END;
EXCEPTION WHEN invalid_parameter_value OR character_not_in_repertoire OR untranslatable_character THEN
    RETURN NULL;
END
$body$;

CREATE OR REPLACE FUNCTION @schema@.list_page(p_list text, p_cursor text) RETURNS jsonb
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
        SELECT name, definition FROM @schema@.handler
        WHERE type = CASE p_list WHEN 'tools' THEN 'tool' WHEN 'prompts' THEN 'prompt' ELSE 'resource' END
            AND (v_is_known OR NOT requires_auth)
            AND CASE p_list WHEN 'resources' THEN cardinality(uri_variables) = 0
                WHEN 'resourceTemplates' THEN cardinality(uri_variables) > 0 ELSE true END
            AND name COLLATE "C" > v_after
        ORDER BY name COLLATE "C" LIMIT v_size + 1
    ) AS page;
    IF cardinality(v_names) > v_size THEN
        RETURN jsonb_build_object(p_list, v_entries - v_size, 'nextCursor', @schema@.cursor_after(p_list, v_names[v_size]));
    END IF;
    RETURN jsonb_build_object(p_list, coalesce(v_entries, '[]'));
END
$body$;

CREATE OR REPLACE FUNCTION @schema@.mcp_list_tools(p_cursor text DEFAULT NULL) RETURNS jsonb
LANGUAGE sql STABLE
RETURN @schema@.list_page('tools', p_cursor);

CREATE OR REPLACE FUNCTION @schema@.mcp_list_resources(p_cursor text DEFAULT NULL) RETURNS jsonb
LANGUAGE sql STABLE
RETURN @schema@.list_page('resources', p_cursor);

CREATE OR REPLACE FUNCTION @schema@.mcp_list_resource_templates(p_cursor text DEFAULT NULL) RETURNS jsonb
LANGUAGE sql STABLE
RETURN @schema@.list_page('resourceTemplates', p_cursor);

CREATE OR REPLACE FUNCTION @schema@.mcp_list_prompts(p_cursor text DEFAULT NULL) RETURNS jsonb
LANGUAGE sql STABLE
RETURN @schema@.list_page('prompts', p_cursor);

INSERT INTO @schema@.migration (version, name) VALUES (33, 'listing') ON CONFLICT (version) DO NOTHING;
-- Who answers, and what it speaks.

CREATE OR REPLACE FUNCTION @schema@.legacy_versions() RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN ARRAY['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'];

CREATE OR REPLACE FUNCTION @schema@.modern_version() RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN '2026-07-28';

CREATE OR REPLACE FUNCTION @schema@.mcp_server_info() RETURNS jsonb
LANGUAGE sql STABLE
RETURN jsonb_build_object(
    'name', coalesce(nullif(current_setting('mcp.server_name', true), ''), current_database()),
    'version', coalesce(nullif(current_setting('mcp.server_version', true), ''), '1.0.0')
);

CREATE OR REPLACE FUNCTION @schema@.mcp_server_capabilities() RETURNS jsonb
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN '{"tools": {}, "resources": {}, "prompts": {}}'::jsonb;

-- A revision that we do not speak gets our newest one with a handshake; the client decides whether that will do.
CREATE OR REPLACE FUNCTION @schema@.mcp_initialize(p_params jsonb, p_request_id jsonb) RETURNS @schema@.mcp_response
LANGUAGE sql STABLE
RETURN CASE
    WHEN jsonb_typeof(p_params -> 'protocolVersion') IS DISTINCT FROM 'string'
    THEN @schema@.mcp_error(-32602, 'protocolVersion: is missing, or is no string', p_request_id)
    ELSE @schema@.mcp_success(jsonb_build_object(
        'protocolVersion', CASE WHEN p_params ->> 'protocolVersion' = ANY (@schema@.legacy_versions())
            THEN p_params ->> 'protocolVersion' ELSE (@schema@.legacy_versions())[1] END,
        'serverInfo', @schema@.mcp_server_info(),
        'capabilities', @schema@.mcp_server_capabilities()
    ), p_request_id)
END;

CREATE OR REPLACE FUNCTION @schema@.mcp_initialize(p_params jsonb, p_request_id text) RETURNS @schema@.mcp_response
LANGUAGE sql STABLE
RETURN @schema@.mcp_initialize(p_params, to_jsonb(p_request_id));

CREATE OR REPLACE FUNCTION @schema@.mcp_ping(p_request_id jsonb) RETURNS @schema@.mcp_response
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN @schema@.mcp_success('{}', p_request_id);

CREATE OR REPLACE FUNCTION @schema@.mcp_ping(p_request_id text) RETURNS @schema@.mcp_response
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN @schema@.mcp_success('{}', to_jsonb(p_request_id));

CREATE OR REPLACE FUNCTION @schema@.mcp_discover(p_request_id jsonb) RETURNS @schema@.mcp_response
LANGUAGE sql STABLE
RETURN @schema@.mcp_success(jsonb_build_object(
    'supportedVersions', to_jsonb(@schema@.modern_version() || @schema@.legacy_versions()),
    'capabilities', @schema@.mcp_server_capabilities()
), p_request_id);

INSERT INTO @schema@.migration (version, name) VALUES (34, 'session') ON CONFLICT (version) DO NOTHING;
-- The dispatcher: one JSON-RPC message in, its answer out. A request whose _meta names a revision is of today's protocol;
-- every other one is of the revisions with a handshake, which nothing here remembers.

-- Why a message is no request; NULL when it is one, or a notification.
CREATE OR REPLACE FUNCTION @schema@.message_refusal(p_message jsonb) RETURNS @schema@.mcp_response
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_id jsonb := p_message -> 'id';
BEGIN
    IF jsonb_typeof(p_message) IS DISTINCT FROM 'object' THEN
        RETURN @schema@.mcp_error(-32600, 'Invalid request: a message is one JSON object', 'null'::jsonb);
    ELSIF jsonb_typeof(v_id) NOT IN ('string', 'number') THEN
        RETURN @schema@.mcp_error(-32600, 'Invalid request: an id is a string or a number', 'null'::jsonb);
    ELSIF p_message -> 'jsonrpc' IS DISTINCT FROM '"2.0"' THEN
        RETURN @schema@.mcp_error(-32600, 'Invalid request: jsonrpc must be "2.0"', coalesce(v_id, 'null'));
    ELSIF jsonb_typeof(p_message -> 'method') IS DISTINCT FROM 'string' THEN
        RETURN @schema@.mcp_error(-32600, 'Invalid request: method must be a string', coalesce(v_id, 'null'));
    END IF;
    RETURN NULL;
END
$body$;

-- Why the params of a request will not do; NULL when they will.
CREATE OR REPLACE FUNCTION @schema@.params_refusal(p_params jsonb, p_request_id jsonb) RETURNS @schema@.mcp_response
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    c_version CONSTANT text := 'io.modelcontextprotocol/protocolVersion';
    c_capabilities CONSTANT text := 'io.modelcontextprotocol/clientCapabilities';
    v_meta jsonb := p_params -> '_meta';
BEGIN
    IF jsonb_typeof(p_params) <> 'object' THEN
        RETURN @schema@.mcp_error(-32602, 'params must be an object', p_request_id);
    ELSIF jsonb_typeof(v_meta) <> 'object' THEN
        RETURN @schema@.mcp_error(-32602, 'params._meta must be an object', p_request_id);
    ELSIF NOT coalesce(v_meta ? c_version, false) THEN
        RETURN NULL;
    ELSIF jsonb_typeof(v_meta -> c_version) <> 'string' THEN
        RETURN @schema@.mcp_error(-32602, format('params._meta: %s must be a string', to_jsonb(c_version)), p_request_id);
    ELSIF v_meta ->> c_version <> @schema@.modern_version() THEN
        RETURN @schema@.mcp_error(-32022, 'Unsupported protocol version', p_request_id, jsonb_build_object(
            'supported', @schema@.modern_version() || @schema@.legacy_versions(), 'requested', v_meta -> c_version));
    ELSIF jsonb_typeof(v_meta -> c_capabilities) IS DISTINCT FROM 'object' THEN
        RETURN @schema@.mcp_error(-32602, format('params._meta lacks the object %s', to_jsonb(c_capabilities)), p_request_id);
    END IF;
    RETURN NULL;
END
$body$;

-- A list as one caller sees it.
CREATE OR REPLACE FUNCTION @schema@.list_for(p_list text, p_params jsonb, p_context jsonb, p_request_id jsonb)
RETURNS @schema@.mcp_response
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_before text[] := @schema@.current_identity();
    v_page jsonb;
BEGIN
    IF jsonb_typeof(p_params -> 'cursor') NOT IN ('string', 'null') OR @schema@.cursor_name(p_list, p_params ->> 'cursor') IS NULL THEN
        RETURN @schema@.mcp_error(-32602, 'cursor: is none of this list; begin again without one', p_request_id);
    END IF;
    PERFORM @schema@.enter_identity(p_context);
    v_page := @schema@.list_page(p_list, p_params ->> 'cursor');
    PERFORM @schema@.leave_identity(v_before);
    RETURN @schema@.mcp_success(v_page, p_request_id);
END
$body$;

-- A member of params that must be a string; NULL when it is none.
CREATE OR REPLACE FUNCTION @schema@.string_param(p_params jsonb, p_name text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN jsonb_typeof(p_params -> p_name) = 'string' THEN p_params ->> p_name END;

CREATE OR REPLACE FUNCTION @schema@.route(p_method text, p_params jsonb, p_context jsonb, p_request_id jsonb,
    p_is_modern boolean)
RETURNS @schema@.mcp_response
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_name text := @schema@.string_param(p_params, CASE p_method WHEN 'resources/read' THEN 'uri' ELSE 'name' END);
BEGIN
    IF p_method IN ('tools/call', 'resources/read', 'prompts/get') AND v_name IS NULL THEN
        RETURN @schema@.mcp_error(-32602, format('params.%s: is missing, or is no string',
            CASE p_method WHEN 'resources/read' THEN 'uri' ELSE 'name' END), p_request_id);
    END IF;
    CASE p_method
        WHEN 'tools/call' THEN
            RETURN @schema@.call_by_name('tool', v_name, p_params -> 'arguments', p_context, p_request_id, p_params -> '_meta');
        WHEN 'tools/list' THEN
            RETURN @schema@.list_for('tools', p_params, p_context, p_request_id);
        WHEN 'resources/read' THEN
            RETURN @schema@.call_by_uri(v_name, p_context, p_request_id, p_params -> '_meta',
                CASE WHEN p_is_modern THEN -32602 ELSE -32002 END);
        WHEN 'resources/list' THEN
            RETURN @schema@.list_for('resources', p_params, p_context, p_request_id);
        WHEN 'resources/templates/list' THEN
            RETURN @schema@.list_for('resourceTemplates', p_params, p_context, p_request_id);
        WHEN 'prompts/get' THEN
            RETURN @schema@.call_by_name('prompt', v_name, p_params -> 'arguments', p_context, p_request_id, p_params -> '_meta');
        WHEN 'prompts/list' THEN
            RETURN @schema@.list_for('prompts', p_params, p_context, p_request_id);
        ELSE
            IF p_method = 'server/discover' AND p_is_modern THEN
                RETURN @schema@.mcp_discover(p_request_id);
            ELSIF p_method = 'server/discover' THEN
                RETURN @schema@.mcp_error(-32602, 'params._meta lacks "io.modelcontextprotocol/protocolVersion"', p_request_id);
            ELSIF p_method = 'initialize' AND NOT p_is_modern THEN
                RETURN @schema@.mcp_initialize(p_params, p_request_id);
            ELSIF p_method = 'ping' AND NOT p_is_modern THEN
                RETURN @schema@.mcp_ping(p_request_id);
            END IF;
            RETURN @schema@.mcp_error(-32601, format('Method not found: %s', left(p_method, 100)), p_request_id);
    END CASE;
END
$body$;

-- An answer as a modern client expects it: how it ended, how long it may be kept and by whom, and who answered. Lists and
-- resources depend on who asks, so no shared cache may keep them.
CREATE OR REPLACE FUNCTION @schema@.modern_envelope(p_envelope jsonb, p_method text) RETURNS jsonb
LANGUAGE sql STABLE
RETURN CASE
    WHEN p_envelope #> '{error,code}' = '-32002' THEN jsonb_set(p_envelope, '{error,code}', '-32602')
    WHEN NOT p_envelope ? 'result' THEN p_envelope
    ELSE jsonb_set(p_envelope, '{result}',
        CASE WHEN p_method LIKE '%/list' THEN '{"ttlMs": 60000, "cacheScope": "private"}'::jsonb
             WHEN p_method = 'server/discover' THEN '{"ttlMs": 60000, "cacheScope": "public"}'
             WHEN p_method = 'resources/read' THEN '{"ttlMs": 0, "cacheScope": "private"}' ELSE '{}' END
        || (p_envelope -> 'result')
        || jsonb_build_object('resultType', 'complete', '_meta', jsonb_build_object(
            'io.modelcontextprotocol/serverInfo', @schema@.mcp_server_info())
            || coalesce(p_envelope #> '{result,_meta}', '{}')))
END;

-- An answer as older clients know it: without the members that came later, and structured answers only if they are objects.
CREATE OR REPLACE FUNCTION @schema@.legacy_envelope(p_envelope jsonb, p_method text) RETURNS jsonb
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN NOT p_envelope ? 'result' THEN p_envelope
    WHEN p_method = 'tools/list' THEN jsonb_set(p_envelope, '{result,tools}', (
        SELECT coalesce(jsonb_agg(CASE WHEN tool #> '{outputSchema,type}' IS DISTINCT FROM '"object"'
            THEN tool - 'outputSchema' ELSE tool END ORDER BY place), '[]')
        FROM jsonb_array_elements(p_envelope #> '{result,tools}') WITH ORDINALITY AS tools (tool, place)))
    ELSE jsonb_set(p_envelope, '{result}', (p_envelope -> 'result') - '{resultType,ttlMs,cacheScope}'::text[]
        - CASE WHEN jsonb_typeof(p_envelope #> '{result,structuredContent}') <> 'object' THEN 'structuredContent' ELSE '' END)
END;

CREATE OR REPLACE FUNCTION @schema@.mcp_handle_request(p_request jsonb, p_context jsonb DEFAULT NULL)
RETURNS @schema@.mcp_response
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_answer @schema@.mcp_response := @schema@.message_refusal(p_request);
    v_id jsonb := p_request -> 'id';
    v_method text;
    v_params jsonb;
    v_is_modern boolean;
BEGIN
    IF v_answer.envelope IS NOT NULL THEN
        RETURN v_answer;
    END IF;
    v_method := p_request ->> 'method';
    IF v_id IS NULL OR v_method LIKE 'notifications/%' THEN
        -- Notifications are never answered, and nothing that comes as one is carried out.
        RETURN ROW(NULL)::@schema@.mcp_response;
    END IF;
    v_params := coalesce(p_request -> 'params', '{}');
    v_answer := @schema@.params_refusal(v_params, v_id);
    IF v_answer.envelope IS NOT NULL THEN
        RETURN v_answer;
    END IF;
    v_is_modern := coalesce(v_params -> '_meta' ? 'io.modelcontextprotocol/protocolVersion', false);
    v_answer := @schema@.route(v_method, v_params, p_context, v_id, v_is_modern);
    v_answer.envelope := CASE WHEN v_is_modern THEN @schema@.modern_envelope(v_answer.envelope, v_method)
        ELSE @schema@.legacy_envelope(v_answer.envelope, v_method) END;
    RETURN v_answer;
END
$body$;

INSERT INTO @schema@.migration (version, name) VALUES (35, 'dispatcher') ON CONFLICT (version) DO NOTHING;
-- The last step: nothing in the schema is anybody's but its owner's, and of those who were let in before.

REVOKE ALL ON SCHEMA @schema@ FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA @schema@ FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA @schema@ FROM PUBLIC;
REVOKE ALL ON TYPE @schema@.mcp_request, @schema@.mcp_response FROM PUBLIC;

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
