"""What a profiler's cost is measured on: sleeping threads, and a busy one at a depth."""

import sys
import threading
import time

def busy(depth):
    if depth > 1:
        return busy(depth - 1)
    number = 0
    while True:
        number = (number * 5 + 1) & 0xFFFF


def main():
    sleepers, depth = int(sys.argv[1]), int(sys.argv[2])
    threading.stack_size(1 << 18)
    for _ in range(sleepers):
        threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()
    print("ready", flush=True)
    if depth:
        busy(depth - 1)
    time.sleep(3600)


if __name__ == "__main__":
    main()
