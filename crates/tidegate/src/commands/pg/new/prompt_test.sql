-- Tests of the prompt @name@:
--
--     tidegate pg test "$DSN" @test@
--
-- All of this is rolled back. A row that begins with "not ok", and a statement that fails, is a failure.

SELECT pg_temp.same(
    pg_temp.get_prompt('@name@', '{"subject": "the orders of May"}', '{"user_id": "ann"}') #> '{result,messages}',
    '[{"role": "user", "content": {"type": "text", "text": "Sum up in three sentences: the orders of May"}}]',
    'it asks about what was named');

SELECT pg_temp.same(
    pg_temp.get_prompt('@name@', '{}', '{"user_id": "ann"}') #> '{error,code}',
    '-32602',
    'the subject must be named');

SELECT pg_temp.same(
    pg_temp.get_prompt('@name@', '{"subject": "x"}') #> '{error,code}',
    '-32001',
    'nobody in particular is not let in');
