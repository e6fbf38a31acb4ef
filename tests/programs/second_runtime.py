"""Loads a second copy of libpython, which stays uninitialised: `second_runtime.py LIBRARY`."""

import ctypes
import os
import sys

import target

ctypes.CDLL(sys.argv[1], mode=os.RTLD_LOCAL | os.RTLD_NOW)
target.say(result=target.park())
