"""Run a command and print its resources as JSON.

Linux counts the peak memory of the parent for a child, so this parent is small. On Linux it also
adopts processes that the command leaves running, such as the fork server of the workers: their CPU
time counts too.
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
