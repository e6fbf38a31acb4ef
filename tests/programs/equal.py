"""Twelve equal lines, again and again, for as many seconds as the command line says."""

import sys
import time

ROW = list(range(16))
one = 1


def lines(count):
    a = b = c = d = e = f = g = h = i = j = k = l = 0
    for _ in range(count):
        a = sum(ROW, one)
        b = sum(ROW, one)
        c = sum(ROW, one)
        d = sum(ROW, one)
        e = sum(ROW, one)
        f = sum(ROW, one)
        g = sum(ROW, one)
        h = sum(ROW, one)
        i = sum(ROW, one)
        j = sum(ROW, one)
        k = sum(ROW, one)
        l = sum(ROW, one)
    return a + b + c + d + e + f + g + h + i + j + k + l


end = time.perf_counter() + float(sys.argv[1])
while time.perf_counter() < end:
    lines(10000)
