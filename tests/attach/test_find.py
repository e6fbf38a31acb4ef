"""Where is the runtime? Every way in which a CPython can be built, packed, hidden or carried
about, and each way of finding it by itself. What runs is the target's; its files are only ever
read."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest

import harness
import installed
from harness import OWN_FAILURE, Target, run_attach

CONTAINER = """
mount --rbind "$0" "$0" && cd "$0" && pivot_root . . && umount -l . &&
mount -t proc proc /proc && cd / && exec "$@"
"""
UNSHARE = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
needs_root = unittest.skipUnless(os.geteuid() == 0, "needs root to mount and chroot")


class FindTest(harness.AttachTest):
    def setUp(self):
        """A folder that the target sees too, and what a copied interpreter needs to find the
        rest."""
        self.interpreter = harness.CURRENT
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = holder.name
        home = self.interpreter.ask("sys.base_prefix")
        self.home = {
            "PYTHONHOME": home,
            "LD_LIBRARY_PATH": self.interpreter.inner(self.folder),
        }

    def copy(self):
        """[executable, libpython if there is one], copied into the folder under their own names."""
        sources = [self.interpreter.executable, self.interpreter.shared_library]
        return [self.copy_file(source) for source in sources if source]

    def copy_file(self, source, name=None):
        copied = os.path.join(self.folder, name or os.path.basename(source))
        shutil.copy(source, copied)
        os.chmod(copied, 0o755)
        return copied

    def command(self, executable):
        chroot = ["chroot", self.interpreter.root] if self.interpreter.root else []
        return [*chroot, self.interpreter.inner(executable)]

    def target(self, executable=None, case="nested", **options):
        if executable:
            options["command"] = self.command(executable)
            options["env"] = dict(self.home, **options.pop("env", {}))
        return Target("stacks.py", case, **options)

    def check_found(self, target, *options):
        self.check_truth(target, self.dump(target, *options))
        self.check_truth(target, self.dump(target, "--native", *options))


class Builds(FindTest):
    def test_as_installed(self):
        with self.target() as target:
            self.check_found(target)

    def test_copied(self):
        executable, *_ = self.copy()
        with self.target(executable) as target:
            self.check_found(target)

    @unittest.skipUnless(shutil.which("strip"), "needs strip of binutils")
    def test_stripped(self):
        copies = self.copy()
        for path in copies:
            subprocess.run(["strip", "-s", path], check=True)
            self.assertFalse(installed.has_symbols(path))
        with self.target(copies[0]) as target:
            self.check_found(target)

    def test_no_section_headers(self):
        copies = self.copy()
        for path in copies:
            installed.drop_section_headers(path)
        with self.target(copies[0]) as target:
            self.check_found(target)

    @unittest.skipUnless(shutil.which("strip"), "needs strip of binutils")
    def test_stripped_and_no_section_headers(self):
        copies = self.copy()
        for path in copies:
            subprocess.run(["strip", "-s", path], check=True)
            installed.drop_section_headers(path)
        with self.target(copies[0]) as target:
            self.check_found(target)

    def test_renamed(self):
        """Nothing in any name tells that this is a Python."""
        executable, *library = self.copy()
        renamed = self.copy_file(executable, "server")
        with self.target(renamed) as target:
            for path in library:
                os.rename(path, os.path.join(self.folder, "engine.so"))
            self.check_found(target)

    def test_deleted(self):
        copies = self.copy()
        with self.target(copies[0]) as target:
            for path in copies:
                os.unlink(path)
            self.check_found(target)

    def test_replaced_while_it_runs(self):
        """As by an upgrade: another file stands at the path now, and it is never run nor
        believed."""
        copies = self.copy()
        ran = os.path.join(self.folder, "ran")
        with self.target(copies[0]) as target:
            for path in copies:
                os.unlink(path)
                with open(path, "w") as file:
                    file.write("#!/bin/sh\ntouch %s\n" % ran)
                os.chmod(path, 0o755)
            self.check_found(target)
            self.assertFalse(os.path.exists(ran))

    def test_at_its_end(self):
        """A finalizer that hangs is looked for when there is nothing in sys any more."""
        with Target("ending.py") as target:
            answer = run_attach("dump", "--pid", target.pid, "--json")
            self.assertEqual(answer.returncode, 0, answer.stderr)
            dump = json.loads(answer.stdout.decode())
            # the third number, too, where anything but sys tells it
            self.assertTrue(dump["python"].startswith(self.interpreter.release.rstrip("t")))
            (thread,) = dump["threads"]
            self.assertEqual([frame["name"].split(".")[-1] for frame in thread["frames"]],
                             ["__del__"])

    def test_never_run(self):
        """Nothing but our own program is executed by a dump."""
        strace = shutil.which("strace")
        if not strace:
            self.skipTest("needs strace")
        log = os.path.join(self.folder, "log")
        with self.target() as target:
            traced = [strace, "-f", "-o", log, "-e", "trace=execve,execveat,fork,vfork"]
            answer = run_attach("dump", "--pid", target.pid, "--native", prefix=traced)
            self.assertEqual(answer.returncode, 0, answer.stderr)
        with open(log) as file:
            calls = [line for line in file if "exec" in line or "fork" in line]
        self.assertEqual(len(calls), 1, calls)

    def test_never_written_to(self):
        """The target's memory and registers are only ever read."""
        strace = shutil.which("strace")
        if not strace:
            self.skipTest("needs strace")
        log = os.path.join(self.folder, "log")
        with Target("threads.py", "spinning") as target:
            calls = "trace=process_vm_writev,ptrace,pwrite64,tgkill,kill,tkill,openat"
            answer = run_attach("dump", "--pid", target.pid, "--native",
                                prefix=[strace, "-f", "-o", log, "-e", calls])
            self.assertEqual(answer.returncode, 0, answer.stderr)
        with open(log) as file:
            text = file.read()
        self.assertIn("PTRACE_SEIZE", text)
        self.assertNotRegex(text, r"process_vm_writev|pwrite|kill\(")
        self.assertNotRegex(text, r"PTRACE_(POKE|SET(?!OPT)|ATTACH)")
        self.assertNotRegex(text, r"openat\([^)]*mem\"[^)]*O_(RDWR|WRONLY)")


class Methods(FindTest):
    """Each by itself; where one cannot work on this release, it says that it did not find it."""

    def check_method(self, method, works):
        with self.target() as target:
            if works:
                self.check_truth(target, self.dump(target, "--find", method))
            else:
                answer = run_attach("dump", "--pid", target.pid, "--find", method)
                self.refuse(answer, OWN_FAILURE, target.pid)

    def test_symbol(self):
        self.check_method("symbol", True)

    def test_section(self):
        """In releases before 3.10 the runtime stands in .bss or .data with all else."""
        self.check_method("section", harness.CURRENT.version >= (3, 10))

    def test_cookie(self):
        self.check_method("cookie", harness.CURRENT.version >= (3, 13))

    def test_scan(self):
        """From 3.13 on the cookie does what the scan did."""
        self.check_method("scan", harness.CURRENT.version < (3, 13))


class Places(FindTest):
    @needs_root
    def test_chroot_in_the_same_mount_namespace(self):
        root, inner = self.root_folder()
        with Target("stacks.py", "nested", interpreter=inner) as target:
            self.assertEqual(os.readlink("/proc/%d/root" % target.pid), root)
            self.assertEqual(os.readlink("/proc/%d/ns/mnt" % target.pid),
                             os.readlink("/proc/self/ns/mnt"))
            self.check_found(target)

    @needs_root
    def test_container(self):
        """Another mount and PID namespace, whose paths are not ours and whose pids are not
        either."""
        root, inner = self.root_folder()
        enter = [*UNSHARE, "sh", "-c", CONTAINER, root]
        with Target("stacks.py", "nested", interpreter=inner,
                    command=[*enter, inner.python], env=inner.home) as target:
            target.descend()
            for space in ("mnt", "pid"):
                self.assertNotEqual(os.readlink("/proc/%d/ns/%s" % (target.pid, space)),
                                    os.readlink("/proc/self/ns/%s" % space))
            self.assertLess(min(target.tids()), 20, "ids of its own")
            self.check_found(target)

    @needs_root
    def test_threads_in_a_container(self):
        root, inner = self.root_folder()
        enter = [*UNSHARE, "sh", "-c", CONTAINER, root]
        with Target("threads.py", "many", "10", interpreter=inner,
                    command=[*enter, inner.python], env=inner.home) as target:
            target.descend()
            self.check_found(target)

    def root_folder(self):
        """A root folder and an interpreter in it: its own, or one made of this system's folders in
        which the interpreter has a path that does not exist out here."""
        interpreter = self.interpreter
        if interpreter.root:
            interpreter.home = {}
            return interpreter.root, interpreter
        root = os.path.join(self.folder, "root")
        for name in ("proc", "dev", "mnt", "tmp", "opt/interpreter"):
            os.makedirs(os.path.join(root, name))
        self.addCleanup(subprocess.run, ["umount", "-R", "-l", root], check=True)
        subprocess.run(["mount", "--bind", root, root], check=True)
        for name in ("/usr", "/lib", "/lib64", "/bin", "/etc"):
            if os.path.islink(name):
                os.symlink(os.readlink(name), root + name)
            elif os.path.isdir(name):
                os.makedirs(root + name)
                subprocess.run(["mount", "--rbind", name, root + name], check=True)
        prefix = interpreter.ask("sys.base_prefix")
        python = os.path.realpath(interpreter.executable)
        inner = installed.Interpreter(interpreter.release, python, root)
        inner.home = {}
        if not prefix.startswith("/usr"):
            subprocess.run(["mount", "--bind", prefix, root + "/opt/interpreter"], check=True)
            inner.python = "/opt/interpreter" + python[len(os.path.realpath(prefix)):]
            inner.home = {"LD_LIBRARY_PATH": "/opt/interpreter/lib"}
        harness.mount_into(root)
        inner.command = lambda *words: [
            "env", *("%s=%s" % pair for pair in inner.home.items()),
            "chroot", root, inner.python, *words,
        ]
        return root, inner

    def embed(self):
        """The host program, linked with this interpreter's libpython, in the folder."""
        compiler = shutil.which(os.environ.get("CC", "cc")) or shutil.which("gcc")
        if not compiler:
            self.skipTest("needs a C compiler")
        library = self.interpreter.outer(os.path.join(
            self.interpreter.config("LIBDIR"), self.interpreter.config("INSTSONAME")
            or self.interpreter.config("LDLIBRARY"),
        ))
        if not os.path.exists(library) or ".so" not in library:
            self.skipTest("%s comes without a libpython to link with" % self.interpreter)
        host = os.path.join(self.folder, "host")
        subprocess.run(
            [compiler, "-O1", "-o", host, os.path.join(harness.PROGRAMS, "embedding_host.c"),
             library, "-Wl,--allow-shlib-undefined", "-pthread"],
            check=True,
        )
        return host, os.path.dirname(self.interpreter.inner_of(library))

    def test_embedded_in_a_c_host(self):
        host, folder = self.embed()
        script = self.interpreter.inner(os.path.join(harness.PROGRAMS, "stacks.py"))
        with Target("unused", command=[*self.command(host), script + " nested"],
                    env=dict(self.home, LD_LIBRARY_PATH=folder)) as target:
            dump = self.dump(target, "--native")
            self.check_truth(target, dump)
            symbols = [f["name"] for f in dump["threads"][0]["frames"] if f["kind"] == "native"]
            self.assertIn("host_main", symbols)
            self.assertLess(symbols.index("host_main"), symbols.index("main"))

    def test_thread_states_that_another_thread_made(self):
        """They bear their maker's ids. Where the C stack tells who runs them (3.11, 3.12), the
        threads have their numbers and native frames, too."""
        host, folder = self.embed()
        script = self.interpreter.inner(os.path.join(harness.PROGRAMS, "stacks.py"))
        with Target("unused", command=[*self.command(host), script + " nested"],
                    env=dict(self.home, LD_LIBRARY_PATH=folder, HOST_STATES="1")) as target:
            threads = self.dump(target, "--native")["threads"]
            workers = [thread for thread in threads
                       if "host_worker" in [frame["name"] for frame in thread["frames"]]]
            self.assertEqual((len(threads), len(workers)), (4, 3), threads)
            self.assertEqual(threads[0]["tid"], target.pid)
            numbers = {thread["tid"] for thread in workers}
            if (3, 11) <= harness.CURRENT.version[:2] <= (3, 12):
                self.assertEqual(len(numbers - {0, target.pid}), 3)
                for worker in workers:
                    self.assertIn("worker_main", [frame["name"] for frame in worker["frames"]])
            else:
                self.assertEqual(numbers, {0})

    def test_embedded_in_another_thread_of_a_c_host(self):
        """The process's main thread is none of Python's, so no thread bears the process's id."""
        host, folder = self.embed()
        script = self.interpreter.inner(os.path.join(harness.PROGRAMS, "threads.py"))
        with Target("unused", command=[*self.command(host), script + " many 3"],
                    env=dict(self.home, LD_LIBRARY_PATH=folder, HOST_THREAD="1")) as target:
            self.assertEqual(len(target.facts["threads"]), 4)
            self.assertNotIn(target.pid, [thread["tid"] for thread in target.facts["threads"]])
            self.check_found(target)

    @needs_root
    def test_embedded_in_another_thread_in_a_container(self):
        """The process's id is 1 there, as is many a word that is none."""
        host, folder = self.embed()
        script = self.interpreter.inner(os.path.join(harness.PROGRAMS, "stacks.py"))
        with Target("unused", command=[*UNSHARE, *self.command(host), script + " nested"],
                    env=dict(self.home, LD_LIBRARY_PATH=folder, HOST_THREAD="1")) as target:
            target.descend()
            self.assertNotEqual(target.facts["threads"][0]["tid"], 1)
            self.check_found(target)

    def test_two_runtimes(self):
        """A second libpython that nobody initialised: the one whose content validates is taken."""
        library = self.interpreter.shared_library or self.library_beside()
        copied = self.copy_file(library, "libsecond.so")
        with Target("second_runtime.py", self.interpreter.inner(copied)) as target:
            with open("/proc/%d/maps" % target.pid) as file:
                self.assertIn("libsecond.so", file.read())
            self.check_found(target)
            other = "cookie" if harness.CURRENT.version >= (3, 13) else "scan"
            for method in ("symbol", other):
                self.check_truth(target, self.dump(target, "--find", method))

    def library_beside(self):
        folder = self.interpreter.outer(self.interpreter.config("LIBDIR"))
        for name in os.listdir(folder):
            multiarch = self.interpreter.config("MULTIARCH")
            if name == multiarch:
                folder = os.path.join(folder, name)
        name = "libpython%s.so.1.0" % self.interpreter.release
        library = os.path.join(folder, name)
        if not os.path.exists(library):
            self.skipTest("%s comes without a libpython" % self.interpreter)
        return library

    def test_launcher_names_the_python(self):
        """A parent that is no Python, as uv, a shell or a one-file bundle are."""
        with Target("stacks.py", "plain", prefix=["sh", "-c", '"$@"; true', "sh"]) as target:
            launcher = target.pid
            target.descend()
            answer = run_attach("dump", "--pid", launcher)
            self.refuse(answer, OWN_FAILURE, launcher, r"--pid %d\b" % target.pid)
            self.check_found(target)


if __name__ == "__main__":
    harness.main()
