-- wrk: POST the body of a file with the headers of another, and print the counts as JSON.
--
-- "@random@" in the body, quotes included, becomes a number of six digits, different in each request, so that no length
-- changes. With a third argument, answers are read too, and tool errors are counted as failed.

local RANDOM = '"@random@"'
local threads = {}
refused = 0

function setup(thread)
  table.insert(threads, thread)
end

function init(arguments)
  local body = assert(io.open(arguments[1], "rb"))
  wrk.method = "POST"
  wrk.body = body:read("*a")
  body:close()
  for line in io.lines(arguments[2]) do
    local name, value = line:match("^([^:]+): (.*)$")
    wrk.headers[name] = value
  end
  if wrk.body:find(RANDOM, 1, true) then
    randomize()
  end
  if arguments[3] then
    response = check_answer
  end
end

function randomize()
  local mark = "@@@@@@"
  local from, to = wrk.body:find(RANDOM, 1, true)
  wrk.body = wrk.body:sub(1, from - 1) .. mark .. wrk.body:sub(to + 1)
  -- Formatted at the first request, because wrk sets the Host header after init.
  local opening, ending
  request = function()
    if not opening then
      local whole = wrk.format()
      from, to = whole:find(mark, 1, true)
      opening, ending = whole:sub(1, from - 1), whole:sub(to + 1)
    end
    return opening .. math.random(100000, 999999) .. ending
  end
end

function check_answer(status, headers, body)
  if not body:find('"isError":false', 1, true) then
    refused = refused + 1
  end
end

function done(summary, latency)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  for _, thread in ipairs(threads) do
    failed = failed + thread:get("refused")
  end
  io.write(string.format(
    '{"requests":%d,"seconds":%.6f,"p50_ms":%.3f,"p99_ms":%.3f,"failed":%d}\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3, failed))
end
