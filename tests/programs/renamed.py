"""A thread that sleeps all the time gets another name while it does, for as many seconds as the
command line says."""

import sys
import threading
import time

seconds = float(sys.argv[1])
sleeper = threading.Thread(target=time.sleep, args=(2 * seconds,), name="before", daemon=True)
sleeper.start()
time.sleep(seconds / 8)
sleeper.name = "after"
end = time.perf_counter() + 7 * seconds / 8
while time.perf_counter() < end:
    pass
