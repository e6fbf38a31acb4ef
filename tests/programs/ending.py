"""Stands in a finalizer that the interpreter runs last of all, when sys and all modules are empty
already: what it needs lies in its own arguments."""

import os
import sys

import target


class Last:
    def __init__(self):
        self.itself = self

    def __del__(self, write=os.write, read=os.read, ready=target.READY, go=target.GO):
        write(ready, b'{"threads": []}\n')
        while read(go, 1):
            pass
        write(ready, b'{"result": 42}\n')


sys.last = Last()
