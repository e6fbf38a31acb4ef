"""Makes a recording for test_objects, or, with a number of threads, only checks a live process.

    record.py TEST_PROGRAM RELEASE OUTPUT PYTHON [ARGUMENT…]      as in: 3.12 3.12.txt python3.12
    record.py TEST_PROGRAM RELEASE --threads=2000 PYTHON [ARGUMENT…]

PYTHON may be several words (a chroot and its folder); the program of the process comes to it through -c.
"""

import pathlib
import subprocess
import sys


def main():
    test, release, output, *python = sys.argv[1:]
    threads = output.partition("--threads=")[2]
    program = pathlib.Path(__file__).with_name("target.py").read_text(encoding="utf-8")
    target = subprocess.Popen([*python, "-c", program, *([threads] if threads else [])],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        questions = ""
        for line in target.stdout:
            if line == "ready\n":
                break
            questions += line
        done = subprocess.run([test, str(target.pid), release], input=questions, text=True,
                              stdout=subprocess.PIPE, check=True)
        if threads:
            print(release, threads, "threads:", questions.count("\n"), "questions answered")
        else:
            pathlib.Path(output).write_text(done.stdout)
    finally:
        target.stdin.close()
        target.wait()


main()
