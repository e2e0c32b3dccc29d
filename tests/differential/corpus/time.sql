-- Dates, times and intervals. Nothing here depends on the current moment.

-- extract and date_part
SELECT extract(year FROM time_hour), extract(month FROM time_hour), count(*)
FROM flights GROUP BY 1, 2 ORDER BY 1, 2;
SELECT extract(dow FROM time_hour) AS weekday, count(*) AS flights FROM flights GROUP BY 1 ORDER BY 1;
SELECT extract(isodow FROM time_hour) AS isodow, round(avg(dep_delay), 3) AS delay FROM flights GROUP BY 1 ORDER BY 1;
SELECT extract(hour FROM time_hour), count(*) FROM flights WHERE origin = 'LGA' GROUP BY 1 ORDER BY 1;
SELECT extract(week FROM time_hour) AS week, count(*) AS n FROM flights WHERE carrier = 'HA' AND month < 3 GROUP BY 1 ORDER BY 1;
SELECT extract(quarter FROM time_hour) AS q, max(distance) AS longest FROM flights GROUP BY 1 ORDER BY 1;
SELECT extract(doy FROM time_hour) AS doy, count(*) AS n FROM flights WHERE carrier = 'YV' GROUP BY 1 ORDER BY 1;
SELECT extract(epoch FROM timestamptz '2013-01-01 05:00:00Z') AS epoch;
SELECT extract(epoch FROM timestamp '2013-01-01 05:00:00.123456');
SELECT extract(epoch FROM interval '1 year 2 months 3 days 4 hours') AS seconds;
SELECT extract(epoch FROM interval '1 day'), extract(epoch FROM interval '-1.5 seconds'), extract(epoch FROM date '2013-07-04');
SELECT extract(century FROM date '2000-12-31') AS c20, extract(century FROM date '2001-01-01') AS c21;
SELECT extract(millennium FROM date '2013-01-01') AS millennium, extract(decade FROM date '2013-01-01') AS decade;
SELECT extract(millisecond FROM timestamp '2013-01-01 10:20:30.456789') AS ms,
       extract(microsecond FROM timestamp '2013-01-01 10:20:30.456789') AS us;
SELECT extract(second FROM timestamp '2013-01-01 10:20:30.5') AS s, extract(second FROM time '10:20:30') AS t;
SELECT extract(isoyear FROM date '2012-12-31') AS isoyear, extract(week FROM date '2012-12-31') AS isoweek;
SELECT d::text AS day, extract(isoyear FROM d) AS isoyear, extract(week FROM d) AS week, extract(isodow FROM d) AS dow
FROM (VALUES (date '2005-01-01'), (date '2006-01-01'), (date '2009-12-31'), (date '2010-01-03')) v(d) ORDER BY d;
SELECT extract(julian FROM date '2013-01-01') AS julian, extract(julian FROM timestamp '2013-01-01 12:00');
SELECT extract(timezone FROM timestamptz '2013-01-01 10:00+02');
SELECT extract(timezone_hour FROM timestamptz '2013-01-01 10:00+02'), extract(timezone_minute FROM timestamptz '2013-01-01 10:00+02');
SELECT extract(day FROM interval '40 days 3 hours') AS d, extract(hour FROM interval '40 days 30 hours') AS h;
SELECT extract(month FROM interval '14 months') AS m, extract(year FROM interval '14 months') AS y;
SELECT extract(quarter FROM interval '7 months') AS q, extract(decade FROM interval '123 years') AS decade;
SELECT extract(minute FROM interval '-90 minutes') AS m, extract(hour FROM interval '-90 minutes') AS h;
SELECT extract(year FROM date '0044-03-15 BC') AS year, extract(century FROM date '0044-03-15 BC') AS century;
SELECT extract(year FROM 'infinity'::timestamp), extract(day FROM 'infinity'::timestamp);
SELECT extract(hour FROM null::timestamp) AS h, date_part('year', null::date) AS y;
SELECT extract('day' FROM date '2013-02-28') AS quoted, EXTRACT(DAY FROM date '2013-02-28') AS upper;
SELECT date_part('hour', time_hour) AS h, count(*) FROM flights WHERE month = 1 AND day = 1 GROUP BY h ORDER BY h;
SELECT date_part('year', timestamp '2013-05-06'), date_part('month', date '2013-05-06'), date_part('dow', date '2013-05-05');
SELECT date_part('epoch', timestamptz '2013-01-01 00:00:00+00') AS epoch, date_part('epoch', interval '90 minutes') AS s;
SELECT date_part('second', timestamp '2013-01-01 00:00:59.75'), date_part('seconds', time '00:00:01.25');
SELECT date_part('milliseconds', interval '1.234 s'), date_part('days', interval '1 month 5 days'), date_part('mons', interval '13 mons');
SELECT date_part('week', date '2013-12-30') AS w, date_part('isoyear', date '2013-12-30') AS y, date_part('doy', date '2012-12-31') AS doy;
SELECT date_part('hour', time '23:59:59.999'), date_part('minute', time '23:59:59.999');
-- fails
SELECT extract(hour FROM date '2013-01-01');
-- fails
SELECT date_part('fortnight', timestamp '2013-01-01');

-- date_trunc
SELECT date_trunc('month', time_hour) AS month, count(*) AS n FROM flights GROUP BY 1 ORDER BY 1;
SELECT date_trunc('quarter', time_hour) AS quarter, round(avg(arr_delay), 2) AS delay FROM flights GROUP BY 1 ORDER BY 1;
SELECT date_trunc('week', time_hour)::date AS week, count(*) AS n FROM flights
WHERE carrier = 'FL' AND month IN (1, 2) GROUP BY 1 ORDER BY 1;
SELECT date_trunc('day', time_hour) AS day, count(*) FROM flights WHERE month = 2 AND day <= 7 GROUP BY 1 ORDER BY 1;
SELECT date_trunc('month', time_hour, 'America/New_York') AS month, count(*) AS n FROM flights GROUP BY 1 ORDER BY 1;
SELECT date_trunc('day', timestamptz '2013-07-01 03:00Z', 'America/New_York'), date_trunc('day', timestamptz '2013-07-01 03:00Z');
SELECT date_trunc('day', timestamptz '2013-03-10 12:00Z', 'America/New_York'),
       date_trunc('day', timestamptz '2013-03-11 12:00Z', 'America/New_York');
SELECT date_trunc('hour', timestamp '2013-02-16 20:38:40'), date_trunc('minute', timestamp '2013-02-16 20:38:40.9');
SELECT date_trunc('second', timestamp '2013-02-16 20:38:40.999999') AS s,
  date_trunc('milliseconds', timestamp '2013-02-16 20:38:40.999999') AS ms;
SELECT date_trunc('decade', timestamp '2013-02-16 20:38:40') AS decade, date_trunc('century', timestamp '2013-02-16 20:38:40') AS century;
SELECT date_trunc('millennium', timestamp '2013-02-16'), date_trunc('year', date '2013-02-16');
SELECT date_trunc('week', date '2013-01-01'), date_trunc('week', timestamp '2013-01-06 23:59');
SELECT date_trunc('hour', interval '2 days 10:47:59') AS h, date_trunc('day', interval '2 days 10:47:59') AS d;
SELECT date_trunc('month', interval '1 year 5 months 20 days') AS m, date_trunc('year', interval '17 months') AS y;
SELECT date_trunc('quarter', date '2013-11-30')::date, date_trunc('MONTH', timestamp '2013-11-30 01:02:03');
SELECT date_trunc('month', null::timestamp) AS nothing;
SELECT (date_trunc('month', date '2012-02-10') + interval '1 month - 1 day')::date AS last_day;

-- AT TIME ZONE
SELECT timestamptz '2013-01-01 05:00Z' AT TIME ZONE 'America/New_York';
SELECT timestamp '2013-01-01 00:00' AT TIME ZONE 'America/New_York' AS instant;
SELECT timestamp '2013-07-01 00:00' AT TIME ZONE 'Europe/Berlin', timestamp '2013-12-01 00:00' AT TIME ZONE 'Europe/Berlin';
SELECT timestamptz '2013-07-01 12:00+02' AT TIME ZONE 'UTC' AS utc,
  timestamptz '2013-07-01 12:00+02' AT TIME ZONE 'Asia/Kolkata' AS kolkata;
SELECT timestamptz '2013-07-01 12:00Z' AT TIME ZONE 'EST', timestamptz '2013-07-01 12:00Z' AT TIME ZONE 'PST8PDT';
SELECT timestamptz '2013-07-01 12:00Z' AT TIME ZONE INTERVAL '-08:00' AS by_interval;
SELECT timestamptz '2013-07-01 12:00Z' AT TIME ZONE '+03' AS posix_east_is_negative, timestamptz '2013-07-01 12:00Z' AT TIME ZONE 'UTC+5';
SELECT timezone('America/New_York', timestamptz '2013-01-01 05:00Z'), timezone('UTC', timestamp '2013-01-01 05:00');
SELECT timestamp '2013-03-10 02:30' AT TIME ZONE 'America/New_York' AS in_the_gap;
SELECT timestamp '2013-11-03 01:30' AT TIME ZONE 'America/New_York' AS twice;
SELECT timestamp '2013-01-01 12:00' AT TIME ZONE 'America/Los_Angeles' AT TIME ZONE 'Europe/London';
SELECT extract(hour FROM time_hour AT TIME ZONE 'America/New_York') AS local_hour, count(*) AS n
FROM flights WHERE month = 7 AND day = 4 GROUP BY 1 ORDER BY 1;
SELECT (time_hour AT TIME ZONE 'America/New_York')::date AS day, count(*) AS flights
FROM flights WHERE month = 12 AND day >= 25 GROUP BY 1 ORDER BY 1;
SELECT date_trunc('month', time_hour AT TIME ZONE 'America/New_York') AS month, sum(distance) AS miles FROM flights GROUP BY 1 ORDER BY 1;
SELECT bool_and(extract(hour FROM time_hour AT TIME ZONE 'America/New_York') = hour) AS same FROM flights;
SELECT a.tzone, count(*) AS n, min(f.time_hour AT TIME ZONE a.tzone) AS first_local
FROM flights f JOIN airports a ON a.faa = f.dest WHERE a.tzone IS NOT NULL AND f.month = 1 AND f.day = 1 GROUP BY 1 ORDER BY 1;
SELECT null::timestamptz AT TIME ZONE 'UTC', timestamp '2013-01-01' AT TIME ZONE null;
SELECT time '10:00' + interval '15 hours' AS wraps, time '00:30' - interval '1 hour' AS back;
-- fails
SELECT timestamptz '2013-01-01 05:00Z' AT TIME ZONE 'Mars/Olympus' AS nowhere;

-- to_char of times
SELECT to_char(time_hour, 'YYYY-MM'), count(*) FROM flights GROUP BY 1 ORDER BY 1;
SELECT to_char(time_hour, 'Day') AS weekday, count(*) AS n FROM flights GROUP BY 1 ORDER BY min(extract(isodow FROM time_hour));
SELECT to_char(time_hour, 'IYYY-"W"IW') AS week, count(*) AS n FROM flights WHERE month = 12 AND carrier = 'AS' GROUP BY 1 ORDER BY 1;
SELECT to_char(time_hour, 'YYYY"Q"Q'), count(*) FROM flights GROUP BY 1 ORDER BY 1;
SELECT to_char(timestamp '2013-01-05 07:08:09.012345', 'YYYY-MM-DD HH24:MI:SS.US') AS full_time;
SELECT to_char(timestamp '2013-01-05 19:08:09.012345', 'HH12:MI:SS.MS AM'), to_char(timestamp '2013-01-05 00:08:09', 'HH:MI pm');
SELECT to_char(timestamp '2013-01-05 19:08:09', 'HH a.m.') AS dotted, to_char(timestamp '2013-01-05 09:08:09', 'HH24 P.M.') AS upper;
SELECT to_char(date '2013-01-05', 'Month|MONTH|month|Mon|MON|mon');
SELECT to_char(date '2013-01-05', 'FMMonth FMDD, YYYY') AS american, to_char(date '2013-01-05', 'DD.MM.YY') AS german;
SELECT to_char(date '2013-01-05', 'Dy DY dy Day DAY day') AS days, to_char(date '2013-01-05', 'FMDay, DD') AS trimmed;
SELECT to_char(date '2013-01-01', 'DDth'), to_char(date '2013-01-22', 'DDTH'), to_char(date '2013-01-13', 'FMDDth');
SELECT to_char(date '2013-12-31', 'D') AS d, to_char(date '2013-12-31', 'ID') AS id, to_char(date '2013-12-31', 'DDD') AS ddd;
SELECT to_char(date '2013-12-31', 'IDDD IW WW W Q') AS numbers, to_char(date '2013-12-31', 'IYYY IYY IY I') AS iso_years;
SELECT to_char(date '2013-06-15', 'YYYY YYY YY Y'), to_char(date '2013-06-15', 'Y,YYY');
SELECT to_char(date '2013-06-15', 'CC') AS century, to_char(date '2013-06-15', 'J') AS julian, to_char(date '2013-06-15', 'RM rm') AS roman;
SELECT to_char(date '0044-03-15 BC', 'YYYY-MM-DD BC') AS bc, to_char(date '2013-03-15', 'YYYY AD') AS ad,
  to_char(date '2013-03-15', 'YYYY b.c.');
SELECT to_char(timestamp '2013-01-05 19:08:09', 'SSSS'), to_char(timestamp '2013-01-05 19:08:09', 'SSSSS');
SELECT to_char(timestamp '2013-01-05 07:08:09.123456', 'FF1 FF2 FF3 FF4 FF5 FF6') AS fractions;
SELECT to_char(timestamp '2013-01-05 07:08:09', '"at" HH24"h"MI') AS quoted,
  to_char(timestamp '2013-01-05 07:08:09', 'HH24\hMI') AS escaped;
SELECT to_char(timestamp '2013-01-05 07:08:09', 'FMHH24:FMMI:FMSS'), to_char(timestamp '2013-01-05', 'YYYYMMDD');
SELECT to_char(timestamptz '2013-01-05 07:08:09Z', 'YYYY-MM-DD"T"HH24:MI:SSOF') AS iso,
  to_char(timestamptz '2013-01-05 07:08Z', 'TZH:TZM') AS hours;
SELECT to_char(timestamptz '2013-01-05 07:08:09+05:30', 'HH24:MI TZ') AS utc, to_char(timestamptz '2013-01-05 07:08Z', 'tz') AS lower;
SELECT to_char(interval '1 day 02:03:04.5', 'DD HH24:MI:SS.MS'), to_char(interval '27 hours', 'HH24:MI');
SELECT to_char(interval '15h 2m 12s', 'HH24:MI:SS'), to_char(interval '15h 2m 12s', 'HH12:MI AM');
SELECT to_char(interval '2 years 3 months', 'YY "years" MM "months"') AS y, to_char(interval '-3 days', 'DD') AS negative;
SELECT to_char(time '13:45:10', 'HH12:MI AM') AS t, to_char(make_interval(mins => dep_delay), 'HH24:MI') AS delay, dep_delay
FROM flights WHERE carrier = 'AS' AND dep_delay > 0 ORDER BY dep_delay, time_hour, flight;
SELECT to_char(null::timestamp, 'YYYY'), to_char(timestamp '2013-01-01', null), to_char(timestamp '2013-01-01', '');
SELECT to_char(timestamp '2013-10-05', 'no patterns at all?') AS text_with_patterns_inside;
SELECT to_char(d, 'FMDay') || ' ' || to_char(d, 'FMDD.FMMM.') AS short
FROM generate_series(date '2013-02-26', date '2013-03-02', '1 day') d ORDER BY d;
SELECT to_char(timestamp 'infinity', 'YYYY'), to_char(timestamp '2013-01-05', 'TMMonth TMDay');

-- to_date, to_timestamp
SELECT to_date('05 Dec 2013', 'DD Mon YYYY') AS d, to_date('20131205', 'YYYYMMDD') AS compact;
SELECT to_date('2013-339', 'YYYY-DDD') AS by_day_of_year, to_date('2013-W23-4', 'IYYY-"W"IW-ID') AS by_iso_week;
SELECT to_date('1/2/13', 'MM/DD/YY'), to_date('1/2/70', 'MM/DD/YY'), to_date('1/2/69', 'MM/DD/YY');
SELECT to_date('December 25, 2013', 'Month DD, YYYY') AS long, to_date('  2013   1  5', 'YYYY MM DD') AS spaces;
SELECT to_date('2456294', 'J') AS julian, to_date('xv 3 2013', '"xv" MM YYYY') AS skipped;
SELECT to_date(f.year || '-' || f.month || '-' || f.day, 'YYYY-MM-DD'), count(*)
FROM flights f WHERE month = 5 AND day BETWEEN 3 AND 9 GROUP BY 1 ORDER BY 1;
SELECT to_timestamp('2013-01-05 07:08:09', 'YYYY-MM-DD HH24:MI:SS') AS t;
SELECT to_timestamp('05/01/2013 07:08 PM', 'DD/MM/YYYY HH12:MI PM'), to_timestamp('2013-01-05 07:08:09.123456', 'YYYY-MM-DD HH24:MI:SS.US');
SELECT to_timestamp('2013-01-05 12.5', 'YYYY-MM-DD SS.MS') AS ms, to_timestamp('2013-01-05 70', 'YYYY-MM-DD SSSS') AS ssss;
SELECT to_timestamp('2013-01-05 07:00 -05:00', 'YYYY-MM-DD HH24:MI TZH:TZM');
SELECT to_timestamp(0) AS epoch, to_timestamp(1357362489) AS seconds, to_timestamp(1357362489.25) AS fraction, to_timestamp(-1) AS before;
SELECT to_timestamp('2013/01/05', 'YYYY-MM-DD') AS other_separator, to_timestamp('20130105T0708', 'YYYYMMDD"T"HH24MI') AS iso_basic;
SELECT to_timestamp(null), to_date(null, 'YYYY'), to_date('2013', 'YYYY'), to_date('2013-07', 'YYYY-MM');
SELECT to_timestamp(extract(epoch FROM time_hour)) = time_hour AS same, count(*) FROM flights WHERE month = 3 GROUP BY 1;
SELECT to_timestamp(lpad(sched_dep_time::text, 4, '0'), 'HH24MI')::time AS departs, count(*) AS n
FROM flights WHERE carrier = 'YV' GROUP BY 1 ORDER BY 1;
-- fails
SELECT to_date('2013-13-01', 'YYYY-MM-DD');

-- make_*
SELECT make_date(year, month, day) AS d, count(*) AS n FROM flights WHERE month = 2 AND day > 20 GROUP BY 1 ORDER BY 1;
SELECT make_date(2012, 2, 29), make_date(-44, 3, 15), make_date(2013, 1, null);
SELECT make_time(7, 8, 9.5) AS t, make_time(24, 0, 0) AS midnight;
SELECT make_timestamp(2013, 1, 5, 7, 8, 9.25) AS ts, make_timestamptz(2013, 1, 5, 7, 8, 9) AS tstz;
SELECT make_timestamptz(2013, 7, 5, 7, 8, 9, 'America/New_York'), make_timestamptz(2013, 1, 5, 7, 8, 9, 'America/New_York');
SELECT make_interval(1, 2, 3, 4, 5, 6, 7.5) AS i, make_interval(days => 10), make_interval(hours => 30, secs => -1) AS mixed;
SELECT make_interval(weeks => 2) AS two_weeks, make_interval(months => 14), make_interval() AS zero;
SELECT make_timestamp(year, month, day, hour, minute, 0), carrier, flight FROM flights
WHERE dest = 'SJC' ORDER BY 1, 2, 3;
SELECT carrier, max(make_interval(mins => arr_delay)) AS worst FROM flights WHERE carrier IN ('HA', 'F9', 'YV') GROUP BY 1 ORDER BY 1;
-- fails
SELECT make_date(2013, 2, 29) AS d;

-- age and justify
SELECT age(timestamp '2013-12-31', timestamp '2013-01-01'), age(date '2013-03-31', date '2013-02-28');
SELECT age(timestamp '2012-02-29', timestamp '2013-02-28') AS negative, age(timestamp '2013-03-01', timestamp '2012-02-29');
SELECT age(timestamptz '2013-01-02 03:04:05Z', timestamptz '2012-11-20 10:00Z') AS a, age(null, date '2013-01-01') AS nothing;
SELECT age(max(time_hour), min(time_hour)) FROM flights;
SELECT extract(year FROM age(date '2013-06-15', date '1969-07-20')) AS years;
SELECT p.manufacturer, max(2013 - p.year) AS age FROM planes p WHERE p.year IS NOT NULL AND p.engines = 4 GROUP BY 1 ORDER BY 1;
SELECT justify_days(interval '65 days'), justify_hours(interval '50 hours'), justify_interval(interval '1 mon -1 hour');
SELECT justify_interval(interval '400 days 30 hours'), justify_days(interval '-35 days'), justify_hours(interval '-25 hours');
SELECT carrier, justify_hours(sum(air_time) * interval '1 minute') AS in_the_air FROM flights
WHERE carrier IN ('AS', 'F9', 'HA') GROUP BY 1 ORDER BY 1;

-- date_bin
SELECT date_bin('15 minutes', timestamp '2013-01-05 07:08:09', timestamp '2001-01-01') AS bin;
SELECT date_bin('1 hour', timestamptz '2013-01-05 07:08:09Z', timestamptz '2001-01-01 00:30Z');
SELECT date_bin('7 days', timestamp '2013-01-05', timestamp '2013-01-01') AS week,
  date_bin('2 days', timestamp '1999-12-31 12:00', timestamp '2013-01-01');
SELECT date_bin('6 hours', time_hour, timestamptz '2013-01-01 00:00Z') AS bin, count(*) AS n
FROM flights WHERE month = 1 AND day <= 2 GROUP BY 1 ORDER BY 1;
SELECT date_bin('3 hours', time_hour, timestamptz '2013-01-01Z') AS bin, round(avg(temp)::numeric, 2) AS temp
FROM weather WHERE origin = 'JFK' AND day = 6 AND month = 2 GROUP BY 1 ORDER BY 1;
SELECT date_bin('1.5 seconds', timestamp '2013-01-05 07:08:09', timestamp '2013-01-05') AS fraction,
  date_bin(null, timestamp '2013-01-05', timestamp '2001-01-01');
-- fails
SELECT date_bin('1 month', timestamp '2013-01-05', timestamp '2001-01-01') AS months_have_no_length;

-- Arithmetic
SELECT date '2013-01-31' + 1, date '2013-03-01' - 1, date '2013-03-01' - date '2013-02-01';
SELECT date '2013-01-31' + interval '1 month' AS clipped, date '2012-02-29' + interval '1 year', date '2013-03-31' - interval '1 month';
SELECT timestamp '2013-01-31 10:00' + interval '1 month 1 day' AS t, interval '1 month' + timestamp '2013-01-31 10:00' AS other_side;
SELECT timestamp '2013-03-01' - timestamp '2013-02-28 12:00', timestamptz '2013-03-02Z' - timestamptz '2013-02-28 12:00Z';
SELECT date '2013-01-05' + time '07:08' AS ts, time '10:00' - time '07:30' AS between_times, date '2013-01-05' - timestamp '2013-01-01';
SELECT interval '1 hour' * 3.5 AS a, 2 * interval '1 day', interval '1 day' / 4 AS quarter, interval '1 month' / 2 AS half_month;
SELECT -interval '1 day 2 hours', interval '1 day' - interval '1 hour', interval '1 year' * 0.1;
SELECT interval '1 day' = interval '24 hours' AS eq, interval '1 month' = interval '30 days', interval '1 month' > interval '29 days';
SELECT sum(x) AS total, avg(x) AS mean, min(x), max(x) FROM (VALUES (interval '1 day'), (interval '12 hours'), (interval '-1 hour')) v(x);
SELECT interval '1 year 2 months 3 days 04:05:06.789', interval 'P1Y2M3DT4H5M6S', interval '1-2';
SELECT interval '3 4:05' AS d, interval '90' AS seconds, interval '1.5 days' AS half, interval '2 weeks ago' AS ago;
SELECT interval '100' minute AS m, interval '5' day, interval '1-2' year to month AS ym, interval '3.25' second(1) AS s;
SELECT interval '1 day -2 hours', interval '-1 day +02:00', interval '0';
SELECT time_hour + dep_delay * interval '1 minute' AS about, dep_delay FROM flights
WHERE carrier = 'YV' AND dep_delay > 0 ORDER BY time_hour, flight;
SELECT time_hour::date - date '2013-01-01' AS day_number, count(*) FROM flights WHERE month = 1 AND day < 8 GROUP BY 1 ORDER BY 1;
SELECT date '2013-01-01' + make_interval(days => n), (date '2013-01-01' + n)::text FROM generate_series(0, 60, 20) n ORDER BY 1;
SELECT count(*) AS n FROM flights WHERE time_hour >= timestamptz '2013-12-31 00:00Z' - interval '7 days';
SELECT count(*) FROM flights WHERE time_hour::date BETWEEN date '2013-12-24' - 7 AND date '2013-12-24';
SELECT timestamp 'infinity' > timestamp '9999-12-31' AS later, date '-infinity' < date '0001-01-01',
  timestamp 'infinity' + interval '1 day';
SELECT date 'infinity' AS d, timestamptz '-infinity' AS t, isfinite(date 'infinity') AS fin,
  isfinite(timestamp '2013-01-01'), isfinite(interval '1 d');
SELECT date 'epoch' AS d, timestamp 'epoch' AS t, timestamptz 'epoch' AS tz, time 'allballs' AS midnight;
SELECT timestamp '2013-01-01 24:00' AS next_day, time '23:59:60' AS leap, timestamp '2013-01-01 00:00:00.9999999' AS rounded;
SELECT timestamptz '2013-03-10 00:00 America/New_York' + interval '1 day';
SELECT d + 7 AS d FROM (VALUES (date '2013-12-28'), (null)) v(d) ORDER BY d NULLS LAST;
-- fails
SELECT date '2013-01-01' + date '2013-01-02' AS d;
-- fails
SELECT date '5874897-12-31' + 1;

-- Literals and casts with zones
SELECT timestamptz '2013-01-05 07:08:09+02' AS a, timestamptz '2013-01-05T07:08:09Z', timestamptz '2013-01-05 07:08:09-0330' AS c;
SELECT timestamptz '2013-01-05 07:08:09 Europe/Berlin' AS named, timestamptz '2013-07-05 07:08:09 EST' AS abbreviated;
SELECT timestamp '2013-01-05 07:08:09+02', '2013-01-05 07:08:09+02'::timestamptz::timestamp;
SELECT '2013-01-05 23:30-05'::timestamptz::date AS d, '2013-01-05 23:30-05'::timestamptz::time AS t, timestamp '2013-01-05 23:30'::date;
SELECT date '2013-01-05'::timestamp AS ts, date '2013-01-05'::timestamptz AS tstz, cast('2013-01-05 07:08' AS timestamp) AS c;
SELECT timestamp(0) '2013-01-05 07:08:09.6', '2013-01-05 07:08:09.123456'::timestamp(3), time(1) '07:08:09.96';
SELECT interval '1 day 2 hours'::time AS t, time '10:20'::interval AS i, timestamp '2013-01-05 07:08'::time;
SELECT timetz '07:08:09+02' AS t, timetz '07:08:09+02' AT TIME ZONE 'UTC' AS utc, time '07:08' < time '07:08:00.1' AS less;
SELECT date(time_hour) AS d, count(*) AS n FROM flights WHERE month = 6 AND day < 5 GROUP BY date(time_hour) ORDER BY d;
SELECT time_hour::time AS t, count(*) AS n FROM weather WHERE month = 1 AND origin = 'EWR' AND hour < 6 GROUP BY 1 ORDER BY 1;
SELECT CAST(time_hour AS date) AS d, CAST(time_hour AS timestamp) AS ts FROM weather
WHERE origin = 'LGA' AND month = 3 AND day = 11 AND hour < 5 ORDER BY time_hour;
SELECT count(*) FROM flights WHERE time_hour = '2013-07-04 12:00:00+00';
SELECT count(*) AS n FROM flights WHERE time_hour >= '2013-07-04' AND time_hour < date '2013-07-04' + 1;
SELECT min(time_hour)::text AS a, max(time_hour)::text AS z FROM weather;
SELECT timestamptz '2013-01-05 12:00Z' = timestamp '2013-01-05 12:00', date '2013-01-05' = timestamp '2013-01-05',
  date '2013-01-05' < timestamptz '2013-01-05 00:01Z';

-- generate_series
SELECT d::date AS d FROM generate_series(timestamp '2013-02-26', timestamp '2013-03-02', interval '1 day') d ORDER BY 1;
SELECT * FROM generate_series(timestamptz '2013-01-01 00:00Z', timestamptz '2013-01-02 00:00Z', '6 hours') ORDER BY 1;
SELECT m FROM generate_series(date '2013-01-31', date '2013-06-30', interval '1 month') AS g(m) ORDER BY m;
SELECT generate_series(date '2013-01-05', date '2013-01-01', interval '-2 days') AS back;
SELECT generate_series(timestamp '2013-01-01', timestamp '2013-01-02', interval '12 hours');
SELECT count(*) FROM generate_series(timestamp '2013-01-01', timestamp '2012-01-01', interval '1 day') t;
SELECT d::date AS d, count(f.flight) AS n FROM generate_series(date '2013-01-01', date '2013-01-10', interval '1 day') d
LEFT JOIN flights f ON f.time_hour::date = d::date AND f.carrier = 'YV' GROUP BY 1 ORDER BY 1;
SELECT to_char(m, 'Mon') AS month, count(f.*) AS n FROM generate_series(timestamp '2013-01-01', '2013-12-01', '1 month') m
LEFT JOIN flights f ON date_trunc('month', f.time_hour) = m AND f.carrier = 'YV' GROUP BY m ORDER BY m;
SELECT t::time AS t FROM generate_series(timestamp '2013-01-01 08:00', timestamp '2013-01-01 09:00', '15 min') s(t) ORDER BY 1;
SELECT ord, d FROM generate_series(timestamp '2013-01-01', timestamp '2013-01-03', '1 day') WITH ORDINALITY AS s(d, ord) ORDER BY ord;

-- OVERLAPS
SELECT (date '2013-02-16', date '2013-12-21') OVERLAPS (date '2013-10-30', date '2014-10-30') AS yes;
SELECT (date '2013-02-16', interval '100 days') OVERLAPS (date '2013-10-30', date '2014-10-30') AS no;
SELECT (timestamp '2013-10-29', timestamp '2013-10-30') OVERLAPS (timestamp '2013-10-30', timestamp '2013-10-31');
SELECT (date '2013-10-30', date '2013-10-30') OVERLAPS (date '2013-10-30', date '2013-10-31') AS instant;
SELECT (time '09:00', time '10:00') OVERLAPS (time '09:30', interval '2 hours'),
  (date '2013-01-01', null) OVERLAPS (date '2012-01-01', date '2014-01-01');
SELECT a.n AS a, b.n AS b FROM (VALUES (1, date '2013-01-01', date '2013-01-10'), (2, '2013-01-09', '2013-01-20'),
  (3, '2013-02-01', '2013-02-02')) a(n, f, t)
JOIN (VALUES (1, date '2013-01-01', date '2013-01-10'), (2, '2013-01-09', '2013-01-20'), (3, '2013-02-01', '2013-02-02')) b(n, f, t)
  ON a.n < b.n AND (a.f, a.t) OVERLAPS (b.f, b.t) ORDER BY 1, 2;

-- Questions
SELECT time_hour::date AS d, count(*) FILTER (WHERE dep_delay IS NULL) AS cancelled FROM flights
WHERE time_hour::date BETWEEN '2013-02-06' AND '2013-02-12' GROUP BY d ORDER BY d;
-- A name in GROUP BY is the table's column before it is the answer's.
-- fails
SELECT time_hour::date AS day, count(*) AS n FROM flights GROUP BY day ORDER BY day;
WITH days AS (SELECT DISTINCT time_hour::date AS d FROM flights WHERE carrier = 'YV')
SELECT d, d - lag(d) OVER (ORDER BY d) AS gap FROM days ORDER BY d;
WITH days AS (SELECT DISTINCT time_hour::date AS d FROM flights WHERE carrier = 'HA'),
     islands AS (SELECT d, d - (row_number() OVER (ORDER BY d))::int AS island FROM days)
SELECT min(d) AS first, max(d) AS last, count(*) AS days FROM islands GROUP BY island ORDER BY first;
SELECT CASE WHEN extract(isodow FROM time_hour) >= 6 THEN 'weekend' ELSE 'workday' END AS kind, count(*) AS n,
       round(avg(distance), 1) AS distance FROM flights GROUP BY 1 ORDER BY 1;
SELECT w.origin, w.time_hour, w.precip, count(f.flight) AS flights FROM weather w
JOIN flights f ON f.origin = w.origin AND f.time_hour = w.time_hour WHERE w.precip > 0.1 GROUP BY 1, 2, 3 ORDER BY 2, 1;
SELECT h AS missing_hour FROM generate_series(timestamptz '2013-11-21 00:00Z', '2013-11-22 12:00Z', '1 hour') h
WHERE NOT EXISTS (SELECT 1 FROM weather w WHERE w.origin = 'JFK' AND w.time_hour = h) ORDER BY h;
SELECT date_part('month', time_hour)::int % 12 / 3 AS season, count(*) AS n FROM flights GROUP BY 1 ORDER BY 1;
SELECT to_char(date_trunc('hour', time_hour AT TIME ZONE 'America/New_York'), 'HH24:00') AS hour, max(dep_delay) AS worst
FROM flights WHERE origin = 'JFK' AND month = 8 GROUP BY 1 ORDER BY 2 DESC NULLS LAST, 1 LIMIT 5;
SELECT carrier, min(time_hour) AS first, max(time_hour) AS last, max(time_hour) - min(time_hour) AS span
FROM flights GROUP BY carrier HAVING count(*) < 1000 ORDER BY carrier;
SELECT greatest(date '2013-01-05', timestamp '2013-01-05 01:00') AS g, least(date '2013-01-05', null, date '2012-01-01') AS l;
SELECT count(DISTINCT time_hour::date), count(DISTINCT date_trunc('week', time_hour)) FROM flights;
SELECT time_hour FROM flights WHERE time_hour > '2013-12-31T20:00:00-05:00' GROUP BY time_hour ORDER BY time_hour;
SELECT EXTRACT(EPOCH FROM (timestamp '2013-01-05 10:00' - timestamp '2013-01-05 07:30')) / 3600 AS hours;
SELECT (extract(epoch FROM max(time_hour) - min(time_hour)) / 86400)::int AS days FROM weather;
SELECT carrier, to_char(avg(dep_delay) * interval '1 minute', 'MI:SS') FROM flights GROUP BY 1 ORDER BY 1 LIMIT 6;
SELECT x, x::date AS d, x::time AS t FROM (VALUES (timestamp '1969-12-31 23:59:59.999999'), ('0001-01-01 00:00'),
  ('262142-12-31 23:59')) v(x) ORDER BY x;

-- Orders, events, employees
SELECT date_trunc('month', order_date)::date AS month, count(*) AS orders, sum(quantity * unit_price) AS revenue FROM orders
WHERE order_date >= date '2023-01-01' GROUP BY 1 ORDER BY 1;
SELECT to_char(order_date, 'YYYY-MM') AS month, status, count(*) FROM orders
WHERE order_date BETWEEN '2022-03-01' AND '2022-05-31' GROUP BY 1, 2 ORDER BY 1, 2;
SELECT order_id, order_date FROM orders WHERE order_date > date '2023-12-31' - 14
  AND order_date <= date '2023-12-31' ORDER BY order_date, order_id;
SELECT count(*) FROM orders WHERE ordered_at >= timestamptz '2023-12-31 00:00Z' - interval '30 days';
SELECT status, avg(shipped_at - ordered_at::timestamp) AS waited, max(shipped_at - ordered_at::timestamp) AS longest
FROM orders GROUP BY status ORDER BY status;
SELECT order_id, shipped_at - ordered_at::timestamp AS waited, extract(day FROM shipped_at - ordered_at::timestamp) AS days
FROM orders WHERE shipped_at IS NOT NULL ORDER BY order_id LIMIT 10;
SELECT extract(isodow FROM order_date) AS dow, to_char(min(order_date), 'FMDy') AS name, count(*) FROM orders GROUP BY 1 ORDER BY 1;
SELECT extract(hour FROM ordered_at) / 6 AS part, count(*) FROM orders GROUP BY 1 ORDER BY 1 LIMIT 6;
SELECT extract(hour FROM ordered_at)::int / 6 AS part_of_day, count(*) AS n FROM orders GROUP BY 1 ORDER BY 1;
SELECT customer_id, birth_date, age(date '2023-12-31', birth_date) AS age FROM customers
WHERE birth_date IS NOT NULL ORDER BY birth_date LIMIT 8;
SELECT extract(decade FROM birth_date) * 10 AS decade, count(*) FROM customers GROUP BY 1 ORDER BY 1 NULLS LAST;
SELECT country, min(signup_date) AS first, max(signup_date) AS last, max(signup_date) - min(signup_date) AS days
FROM customers GROUP BY country ORDER BY 1;
SELECT name, hired, (hired + interval '10 years')::date AS jubilee,
  date_part('year', age(date '2023-06-01', hired)) AS years FROM employees WHERE id <= 10 ORDER BY hired;
SELECT extract(year FROM hired) AS year, count(*) FILTER (WHERE extract(quarter FROM hired) = 1) AS q1,
  count(*) AS n FROM employees GROUP BY 1 ORDER BY 1;
SELECT date_bin('1 day', occurred_at, timestamptz '2023-01-01Z')::date, kind, count(*) FROM events
WHERE kind IN ('view', 'cart') GROUP BY 1, 2 ORDER BY 1, 2;
SELECT session_id, min(occurred_at), max(occurred_at) - min(occurred_at) FROM events WHERE session_id < 5000000008
GROUP BY session_id ORDER BY session_id;
SELECT event_id, occurred_at AT TIME ZONE 'Europe/Berlin' AS berlin, received_at FROM events
WHERE occurred_at BETWEEN '2023-03-26 00:00+00' AND '2023-03-26 02:00+00' ORDER BY event_id;
SELECT date_trunc('hour', occurred_at, 'Europe/Berlin') AS hour, count(*) FROM events
WHERE occurred_at < '2023-03-26 04:00Z' GROUP BY 1 ORDER BY 1;
SELECT to_char(occurred_at, 'HH24:MI:SS.MS') AS at, to_char(received_at, 'FF3') AS ms FROM events ORDER BY event_id LIMIT 6;
SELECT count(*) FROM events WHERE occurred_at::time BETWEEN '08:00' AND '17:00';
SELECT max(occurred_at) FILTER (WHERE kind = 'purchase') AS last_purchase,
  min(received_at - (occurred_at AT TIME ZONE 'UTC')) AS quickest FROM events;
SELECT event_id, occurred_at + duration_ms * interval '1 ms' AS ended FROM events WHERE duration_ms > 9500 ORDER BY event_id LIMIT 10;
SELECT sum(duration_ms) * interval '1 millisecond' AS total,
  justify_interval(sum(duration_ms) * interval '1 second') AS if_seconds FROM events;
SELECT launched, launched + 90 AS reviewed, date_trunc('year', launched)::date AS year FROM products
WHERE launched > '2021-06-01' ORDER BY launched LIMIT 8;
SELECT coalesce(to_char(launched, 'YYYY'), 'never') AS year, count(*) AS n FROM products GROUP BY 1 ORDER BY 1;
SELECT m::date AS month, coalesce(sum(o.quantity), 0) AS pieces
FROM generate_series(date '2022-01-01', date '2022-06-01', interval '1 month') m
LEFT JOIN orders o ON o.order_date >= m AND o.order_date < m + interval '1 month' AND o.status = 'returned' GROUP BY m ORDER BY m;
SELECT d::date AS without_orders FROM generate_series(date '2022-01-01', date '2022-01-31', '1 day') d
WHERE d::date NOT IN (SELECT order_date FROM orders) ORDER BY 1;
SELECT id, extract(epoch FROM tz) AS tz, extract(epoch FROM da) AS da, extract(epoch FROM ti) AS ti FROM t_types WHERE id <= 12 ORDER BY id;
SELECT id, date_trunc('month', ts), date_trunc('hour', tz), date_trunc('week', da) FROM t_types WHERE id <= 12 ORDER BY id;
SELECT id, iv::interval * 2 AS twice, iv::interval + interval '1 hour' AS later, -(iv::interval) AS negative
FROM t_types WHERE id <= 14 ORDER BY id;
SELECT id, ts + iv::interval AS moved, da + iv::interval AS from_day FROM t_types WHERE id BETWEEN 7 AND 14 ORDER BY id;
SELECT id, to_char(ts, 'FMDay, FMDDth FMMonth YYYY, HH24:MI:SS.US'), to_char(da, 'IYYY-IW-ID'),
  to_char(ti, 'HH12:MI:SS AM') FROM t_types WHERE id <= 12 ORDER BY id;
SELECT id, extract(century FROM da), extract(isoyear FROM da), extract(doy FROM ts), extract(microseconds FROM ti)
FROM t_types WHERE id <= 12 ORDER BY id;
SELECT id, tz AT TIME ZONE 'America/New_York' AS ny, ts AT TIME ZONE 'Europe/Berlin' AS from_berlin FROM t_types
WHERE id BETWEEN 7 AND 13 ORDER BY id;
SELECT a.id, b.id, b.ts - a.ts AS apart, age(b.ts, a.ts) AS age FROM t_types a JOIN t_types b ON b.id = a.id + 1
WHERE a.id BETWEEN 7 AND 12 ORDER BY a.id;
SELECT w.origin, date_trunc('month', w.time_hour)::date AS month, count(*) FILTER (WHERE precip > 0) AS wet_hours FROM weather w
WHERE w.time_hour < '2013-04-01' GROUP BY 1, 2 ORDER BY 1, 2;
SELECT f.time_hour, f.carrier, f.flight, w.visib FROM flights f JOIN weather w ON w.origin = f.origin AND w.time_hour = f.time_hour
WHERE w.visib < 0.5 AND f.dep_delay > 60 ORDER BY 1, 2, 3 LIMIT 10;
SELECT make_time(dep_time / 100 % 24, dep_time % 100, 0) AS left_at, sched_dep_time, dep_delay FROM flights
WHERE carrier = 'HA' ORDER BY time_hour, flight;
SELECT EXTRACT(MONTH FROM time_hour) IN (12, 1, 2) AS winter, ROUND(AVG(dep_delay), 2) AS delay FROM flights GROUP BY 1 ORDER BY 1;
SELECT dest, max(time_hour)::date AS last_seen FROM flights GROUP BY dest HAVING max(time_hour) < timestamptz '2013-10-01Z' ORDER BY dest;

-- Offsets: an argument of make_timestamptz counts to the east, a zone after AT TIME ZONE to the west
SELECT make_timestamptz(2020, 1, 1, 0, 0, 0, z) FROM unnest(ARRAY['+02:00', '+2', '-2:30:15', '+15:59:59', '+0230', '-0230', '+2:3',
  '+ 2', '+123', 'EST5EDT', 'msk', 'EST5', '<+02>-2', 'UTC', 'Europe/Berlin']) z;
SELECT timestamp '2020-01-01' AT TIME ZONE z FROM unnest(ARRAY['+02:00', '-02:30:15', '+16', '24', '+25', '+167:59:59', 'ABC5', 'ABC-5:30',
  '<+05>5', 'EST5EDT', 'UTC+3', 'GMT-3', 'z', 'zulu', '+167', '+0001:005:60']) z;
SELECT timestamptz '2020-01-01 00:00 +15:59:59', timestamptz '2020-01-01 00:00 +230', timestamptz '2020-01-01 00:00 -02:30:15';
-- fails
SELECT make_timestamptz(2020, 1, 1, 0, 0, 0, '+16');
-- fails
SELECT make_timestamptz(2020, 1, 1, 0, 0, 0, '+02:60');
-- fails
SELECT make_timestamptz(2020, 1, 1, 0, 0, 0, '0230');
-- fails
SELECT timestamp '2020-01-01' AT TIME ZONE '+168';

-- An abbreviation whose offset has changed means the offset of the time
SELECT t, t AT TIME ZONE 'MSK' AS msk, t AT TIME ZONE 'MSD' AS msd, t AT TIME ZONE 'VET' AS vet, t AT TIME ZONE 'NOVST' AS novst
FROM unnest(ARRAY['1925-08-01', '1980-07-01', '2005-07-01', '2010-07-01', '2011-03-27 02:30', '2011-03-27 03:00', '2012-07-01',
  '2014-10-26 01:30', '2014-10-26 02:00', '2020-01-01']::timestamp[]) t;
SELECT t, t AT TIME ZONE 'MSK' AS msk, t AT TIME ZONE 'MSD' AS msd, t AT TIME ZONE 'ULAT' AS ulat
FROM unnest(ARRAY['1925-08-01 00:00+00', '1980-07-01 00:00+00', '2011-03-26 22:59+00', '2011-03-26 23:00+00', '2012-07-01 00:00+00',
  '2014-10-25 21:59+00', '2014-10-25 22:00+00', '2020-01-01 00:00+00']::timestamptz[]) t;
SELECT timestamptz '2012-01-01 00:00 MSK', timestamptz '2020-01-01 00:00 MSK', timestamptz '1980-07-01 00:00 MSK';

-- Local times before standard time, which differ from UTC by seconds
SELECT z, timestamptz '1850-01-01 00:00+00' AT TIME ZONE z AS local, timestamp '1850-01-01' AT TIME ZONE z AS instant
FROM unnest(ARRAY['Europe/Berlin', 'Europe/London', 'America/New_York', 'Asia/Tokyo', 'Europe/Moscow', 'Asia/Kolkata', 'Australia/Sydney',
  'America/Sao_Paulo', 'UTC', 'Africa/Monrovia']) z;
-- A timestamp and a timestamptz of the same microseconds
SELECT to_char(timestamptz '2020-01-01', f), to_char(timestamp '2020-01-01', f) FROM unnest(ARRAY['TZ', 'YYYY TZ']) f;
SELECT z, timestamp '2020-01-01' AT TIME ZONE z = timestamptz '2020-01-01' AT TIME ZONE z AS same, timestamp '2020-01-01' AT TIME ZONE z AS instant
  FROM unnest(ARRAY['Asia/Tokyo', 'UTC']) z;
SELECT count(*) FROM unnest(ARRAY['TZ', 'YYYY']) f WHERE to_char(timestamptz '2020-01-01', f) = 'UTC' AND to_char(timestamp '2020-01-01', f) = 'UTC';
SELECT count(*) FROM unnest(ARRAY['TZ', 'YYYY']) f WHERE to_char(timestamptz '2020-01-01', f) <> to_char(timestamp '2020-01-02' - interval '1 day', f);
SELECT id, CASE WHEN id > 1 THEN timestamp '2020-01-01' END AS local, CASE WHEN id > 1 THEN timestamptz '2020-01-01' END AS instant FROM nums WHERE id < 4 ORDER BY id;
SELECT count(*) FROM flights WHERE time_hour >= timestamptz '2013-06-01' AND time_hour AT TIME ZONE 'UTC' >= timestamp '2013-06-01';
SELECT t AT TIME ZONE 'Europe/Berlin' AS berlin FROM unnest(ARRAY['0001-01-01', '1893-03-31 23:59:59', '1893-04-01 00:00',
  '1893-04-01 00:06:31', '1893-04-01 00:06:32']::timestamp[]) t;
SELECT t AT TIME ZONE 'America/New_York' AS new_york FROM unnest(ARRAY['1883-11-18 11:59:59', '1883-11-18 12:00', '1883-11-18 12:01',
  '1883-11-18 12:03:57', '1883-11-18 12:03:58']::timestamp[]) t;

-- FF1 to FF6 round the instant, whose microseconds PostgreSQL counts from 2000
SELECT t, to_timestamp(t, 'YYYY-MM-DD HH24:MI:SS.FF1') AS ff1, to_timestamp(t, 'YYYY-MM-DD HH24:MI:SS.FF2') AS ff2, to_timestamp(t, 'YYYY-MM-DD HH24:MI:SS.FF3') AS ff3,
  to_timestamp(t, 'YYYY-MM-DD HH24:MI:SS.FF4') AS ff4, to_timestamp(t, 'YYYY-MM-DD HH24:MI:SS.FF5') AS ff5, to_timestamp(t, 'YYYY-MM-DD HH24:MI:SS.FF6') AS ff6
FROM unnest(ARRAY['2018-11-02 12:34:56', '2018-11-02 12:34:56.1', '2018-11-02 12:34:56.12', '2018-11-02 12:34:56.123', '2018-11-02 12:34:56.1234',
  '2018-11-02 12:34:56.123456', '2005-12-31 23:59:59.95', '1985-01-01 00:00:00.15', '1985-01-01 00:00:00.25', '1965-01-01 00:00:00.15']) t;
SELECT t, t::timestamp(1) AS one, t::timestamp(3) AS three, t::timestamptz(2) AS two FROM unnest(ARRAY['2018-11-02 12:34:56.123456',
  '2005-12-31 23:59:59.95', '1985-01-01 00:00:00.15', '1985-01-01 00:00:00.0005', '1965-01-01 00:00:00.15']::timestamp[]) t;
SELECT to_date('2005-12-31 23:59:59.99', 'YYYY-MM-DD HH24:MI:SS.FF1'), to_timestamp('12:34:56.15678', 'HH24:MI:SS.FF2 MI');
-- fails
SELECT to_timestamp('12:34:56.1234567', 'HH24:MI:SS.US');

-- Years with a comma, and Roman months
SELECT to_timestamp('1,582nd VIII 21', 'Y,YYYth FMRM DD'), to_date('1,582', 'Y,YYY'), to_date('1,58', 'Y,YYY'), to_date('12,582 3', 'Y,YYY MM'),
  to_date('1,5821', 'Y,YYY'), to_date('1,58212', 'Y,YYYMM'), to_date('1,582nd12', 'Y,YYYthMM'), to_date('2nd 2020', 'DDth YYYY');
SELECT m, to_date(m || ' 2020', 'RM YYYY'), to_date('2020' || lower(m) || '21', 'YYYYRMDD'), to_date('2020 ' || m, 'YYYY rm')
FROM unnest(ARRAY['I', 'II', 'III', 'IV', 'V', 'VI', 'VII', 'VIII', 'IX', 'X', 'XI', 'XII']) m ORDER BY m;
SELECT to_date('2020 IIII', 'YYYY RM'), to_date('2020 IIX', 'YYYY RM');
-- fails
SELECT to_date('1582', 'Y,YYY');
-- fails
SELECT to_date('2020 abc', 'YYYY RM');

-- The rules of a zone go on
SELECT z, timestamptz '2150-07-01 00:00+00' AT TIME ZONE z AS july, timestamptz '2150-01-01 00:00+00' AT TIME ZONE z AS january,
  timestamp '2500-07-01' AT TIME ZONE z AS instant FROM unnest(ARRAY['Africa/Casablanca', 'Africa/Cairo', 'Australia/Sydney', 'America/Santiago',
  'Europe/Dublin', 'America/New_York', 'Asia/Jerusalem', 'Europe/London', 'America/Sao_Paulo', 'Asia/Tehran', 'Europe/Berlin']) z;
SELECT t AT TIME ZONE 'America/New_York' AS new_york FROM unnest(ARRAY['2100-03-14 06:59+00', '2100-03-14 07:00+00', '2100-11-07 05:59+00',
  '2100-11-07 06:00+00', '2400-03-12 06:59+00', '2400-03-12 07:00+00', '9999-12-31 23:00+00']::timestamptz[]) t;

-- Intervals of many days, at the ends of the calendar
SELECT (timestamp '4713-01-01 BC' + interval '97000000 days')::text AS late, (timestamp '2000-01-01' + interval '1000 years -365242 days')::text AS back,
  (timestamp '260000-01-01' - interval '96000000 days')::text AS early, (date '2000-01-01' + interval '90000000 days')::text AS from_date,
  (timestamptz '4713-01-01 BC' + interval '97000000 days 23 hours')::text AS instant;
SELECT date_bin('106751990 days', timestamp '4700-01-01 00:00:01 BC', timestamp '4700-01-01 BC')::text AS same,
  date_bin('90000000 days', timestamp '2001-01-01', timestamp '2000-01-01') AS large;
SELECT n, (timestamp '2000-01-01' + n * interval '10000000 days')::text AS t FROM generate_series(1, 9) n ORDER BY n;
-- fails
SELECT timestamp '2000-01-01' + interval '2147483647 days';
-- fails
SELECT timestamp '2000-01-01' - interval '2147483647 days';
-- fails
SELECT date_bin('106751990 days', timestamp '4700-01-01 BC', timestamp '4700-01-01 00:00:01 BC');
-- fails
SELECT timestamp '4713-01-01 BC' + interval '-10000 days 240000 hours';
-- fails
SELECT '922337203685477580-001'::date;
-- fails
SELECT (date '2000-01-01', interval '2147483647 days') OVERLAPS (date '2000-01-01', interval '1 day');

-- Arguments by name.
SELECT make_interval(years := 2) AS a, make_interval(1, days => 3, secs := 1.5) AS b, make_date(day => 3, month => 2, year => 2024) AS c,
  make_time(hour => 1, min => 2, sec => 3.5) AS d, make_timestamp(2024, 2, mday => 29, hour => 1, min => 2, sec => 3) AS e,
  make_interval(years := 1, months := -1, weeks := 5, days := -7, hours := 25, mins := -180) AS f;
-- fails
SELECT make_interval(year => 2);
SELECT make_interval(1, years => 2);
SELECT make_date(year => 2024, month => 2);
