"""Machine code that this program has written into anonymous memory, as compilers of Python do, and
that nothing describes: neither a table nor a frame pointer leads from it to its caller."""

import ctypes
import mmap
import os
import platform
import threading
import time

import target

# Calls its argument; and waits until the word that its argument points to is no longer 0.
CALLS, SPINS = {
    # push rbp; xor ebp, ebp; call rdi; pop rbp; ret
    # the same with 1: cmp dword [rdi], 0; je 1b in place of the call
    "x86_64": ("5531edffd75dc3", "5531ed833f0074fb5dc3"),
    # stp x29, x30, [sp, -16]!; mov x29, xzr; blr x0; ldp x29, x30, [sp], 16; ret
    # the same with 1: ldr w1, [x0]; cbz w1, 1b in place of the call
    "aarch64": ("fd7bbfa9fd031faa00003fd6fd7bc1a8c0035fd6",
                "fd7bbfa9fd031faa010040b9e1ffff34fd7bc1a8c0035fd6"),
}[platform.machine()]
pages = []


def made(code):
    page = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS,
                     prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(bytes.fromhex(code))
    pages.append(page)
    return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(
        ctypes.addressof(ctypes.c_char.from_buffer(page)))


def calling():
    """Python, made code, Python."""
    results = []

    def called():
        results.append(target.park())

    function = ctypes.CFUNCTYPE(None)(called)
    made(CALLS)(ctypes.cast(function, ctypes.c_void_p))
    return results[0]


def spin(begun, word):
    begun.append((threading.get_native_id(), time.pthread_getcpuclockid(threading.get_ident())))
    made(SPINS)(ctypes.addressof(word))


def spinning():
    """A thread in made code; the main thread tells when it has got there."""
    begun, word = [], ctypes.c_int(0)
    thread = threading.Thread(target=spin, args=(begun, word), daemon=True)
    thread.start()
    while not begun or time.clock_gettime(begun[0][1]) < 0.05:
        os.sched_yield()
    result = target.park(frames=False, tids={"spinner": begun[0][0]})
    word.value = 1
    thread.join()
    return result


if __name__ == "__main__":
    target.run(globals())
