"""Works in Python and in C, in a module beside it and in the standard library, and sleeps."""

import hashlib
import json
import time

import choices_helper

end = time.perf_counter() + 0.5
while time.perf_counter() < end:
    choices_helper.loop()
    hashlib.sha256(bytes(200000)).digest()  # native
    json.dumps([list(range(50))] * 20, indent=1)  # library
time.sleep(0.3)
