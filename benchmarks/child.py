"""Run a command and print what it used as JSON: a small parent, as Linux counts its peak in."""

import json
import os
import resource
import subprocess
import sys

limit, *command = sys.argv[1:]
resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit)))
process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(process.pid, 0)
megabytes = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6
seconds, code = usage.ru_utime + usage.ru_stime, os.waitstatus_to_exitcode(status)
print(json.dumps({"cpu": seconds, "megabytes": megabytes, "code": code}))
