-- wrk: POST the body of a file with the headers of another, and print what came of it as JSON.

function init(arguments)
  local body = assert(io.open(arguments[1], "rb"))
  wrk.method = "POST"
  wrk.body = body:read("*a")
  body:close()
  for line in io.lines(arguments[2]) do
    local name, value = line:match("^([^:]+): (.*)$")
    wrk.headers[name] = value
  end
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '{"requests":%d,"seconds":%.6f,"p50_ms":%.3f,"p99_ms":%.3f,"failed":%d}\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
    errors.connect + errors.read + errors.write + errors.status + errors.timeout))
end
