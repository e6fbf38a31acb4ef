"""Makes threads and ends them all the time, each for one request, as some servers do. Argument: for
how long."""

import sys
import threading
import time


def request(number):
    answer = [str(number + step) for step in range(2000)]
    time.sleep(0.005)
    return len("".join(answer))


end = time.perf_counter() + float(sys.argv[1])
count = 0
while time.perf_counter() < end:
    threads = [threading.Thread(target=request, args=(count + i,)) for i in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    count += len(threads)
