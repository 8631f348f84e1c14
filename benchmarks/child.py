"""Run a command and print what it used as JSON: a small parent, as Linux counts its peak in.

On Linux what the command leaves running becomes a child too: the process that workers are copies of
ends after the command, and the CPU of the workers counts with its own.
"""

import ctypes
import json
import os
import resource
import subprocess
import sys
import time

limit, *command = sys.argv[1:]
resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit)))
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(36, 1)  # PR_SET_CHILD_SUBREAPER
began = time.monotonic()
process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
_, status = os.waitpid(process.pid, 0)
wall = time.monotonic() - began
try:
    while True:
        os.wait()
except ChildProcessError:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
megabytes = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6
seconds, code = usage.ru_utime + usage.ru_stime, os.waitstatus_to_exitcode(status)
print(json.dumps({"cpu": seconds, "wall": wall, "megabytes": megabytes, "code": code}))
