-- The functions `sysbench.report_*`, which print a report. They have the same argument as report hooks.
local sysbench, emit, open_array, percentile = ...
local format = string.format

-- Returns rates per second and the latency in milliseconds.
local function rates(stat)
   local seconds = stat.time_interval
   local all = stat.reads + stat.writes + stat.other
   return stat.events / seconds, all / seconds, stat.reads / seconds, stat.writes / seconds, stat.other / seconds,
      stat.latency_pct * 1000, stat.errors / seconds, stat.reconnects / seconds
end

-- The percentile to print. Scripts see the option as an integer and may change it; otherwise the exact value is printed.
local function percent()
   local option = sysbench.opt.percentile
   return option == math.max(math.floor(percentile), 1) and percentile or option
end

function sysbench.report_default(stat)
   local tps, qps, reads, writes, other, latency, errors, reconnects = rates(stat)
   emit(format("[ %.0fs ] thds: %u tps: %4.2f qps: %4.2f (r/w/o: %4.2f/%4.2f/%4.2f) lat (ms,%.14g%%): %4.2f "
      .. "err/s %4.2f reconn/s: %4.2f\n", stat.time_total, stat.threads_running, tps, qps, reads, writes, other,
      percent(), latency, errors, reconnects))
end

function sysbench.report_csv(stat)
   emit(format("%.0f,%u,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f\n", stat.time_total, stat.threads_running,
      rates(stat)))
end

-- All JSON reports of one Lua state form one array, which ends when the state closes.
local array
function sysbench.report_json(stat)
   local object = format([[
  {
    "time": %4.0f,
    "threads": %u,
    "tps": %4.2f,
    "qps": {
      "total": %4.2f,
      "reads": %4.2f,
      "writes": %4.2f,
      "other": %4.2f
    },
    "latency": %4.2f,
    "errors": %4.2f,
    "reconnects": %4.2f
  }]], stat.time_total, stat.threads_running, rates(stat))
   emit((array and ",\n" or "[\n") .. object)
   array = array or open_array()
end
