"""Far more than 100 threads a second, several at a time; each has one of four chains of calls
and ends soon. The CPU time of each chain's threads is added up."""

import _thread
import collections
import os
import sys
import time

import oracle_target
import target

AT_ONCE = 3
CALLS = 20000
CHAINS = ("chain_a", "chain_b", "chain_c", "chain_d")
LIVED = {name: [] for name in CHAINS}  # CPU seconds of each thread


def leaf_a():
    pass


def link_a():
    leaf_a()  # -> leaf_a


def chain_a(lock):  # root
    for _ in range(CALLS):
        link_a()  # -> link_a
    LIVED["chain_a"].append(time.thread_time())
    lock.release()


def leaf_b():
    pass


def link_b():
    leaf_b()  # -> leaf_b


def chain_b(lock):  # root
    for _ in range(CALLS):
        link_b()  # -> link_b
    LIVED["chain_b"].append(time.thread_time())
    lock.release()


def leaf_c():
    pass


def link_c():
    leaf_c()  # -> leaf_c


def chain_c(lock):  # root
    for _ in range(CALLS):
        link_c()  # -> link_c
    LIVED["chain_c"].append(time.thread_time())
    lock.release()


def leaf_d():
    pass


def link_d():
    leaf_d()  # -> leaf_d


def chain_d(lock):  # root
    for _ in range(CALLS):
        link_d()  # -> link_d
    LIVED["chain_d"].append(time.thread_time())
    lock.release()


def begin(chain):
    lock = _thread.allocate_lock()
    lock.acquire()
    _thread.start_new_thread(chain, (lock,))
    return lock


def rounds():
    alive = collections.deque()
    while not oracle_target.is_over():  # -> is_over
        for chain in (chain_a, chain_b, chain_c, chain_d):
            alive.append(begin(chain))  # -> begin
            if len(alive) == AT_ONCE:
                alive.popleft().acquire()
    while alive:
        alive.popleft().acquire()


def main():
    sys.setswitchinterval(0.0005)
    os.set_blocking(target.GO, False)
    target.say(twins=[], copies=None)  # -> say
    start = time.perf_counter()
    rounds()  # -> rounds
    rate = sum(map(len, LIVED.values())) / (time.perf_counter() - start)
    times = {name: sum(LIVED[name]) for name in CHAINS}
    target.say(result=42, times=times, uneven=[], threads_a_second=rate)  # -> say


if __name__ == "__main__":
    main()  # -> main
