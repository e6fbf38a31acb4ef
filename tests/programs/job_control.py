"""A shell's part on a terminal: runs the command as the foreground job, says on the pipe when the
terminal has stopped it, puts it to the foreground again, and says how it ended."""

import json
import os
import signal
import sys

terminal, pipe = 0, int(sys.argv[1])


def say(**facts):
    os.write(pipe, (json.dumps(facts) + "\n").encode())


def put_in_front(group):
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    os.tcsetpgrp(terminal, group)


def start(words):
    job = os.fork()
    if not job:
        os.setpgid(0, 0)
        put_in_front(os.getpid())
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        os.close(pipe)
        os.execvp(words[0], words)
    return job


def main():
    job = start(sys.argv[2:])
    status = os.waitpid(job, os.WUNTRACED)[1]
    while os.WIFSTOPPED(status):
        say(stopped=os.WSTOPSIG(status))
        put_in_front(job)
        os.killpg(job, signal.SIGCONT)
        status = os.waitpid(job, os.WUNTRACED)[1]
    say(status=os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status))


main()
