"""A process that has imported Chainer and the package, and forks scripts: none imports them again.

Tests of imports, interpreter flags, standard streams, or variables that Python, OpenMP or BLAS read
as they start need a new interpreter.
"""

import atexit
import contextlib
import functools
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import threading


class Forked(subprocess.Popen):
    """`subprocess.Popen` of a script that the server forks; the first word is the script's path."""

    def _execute_child(self, args, executable, preexec, close, fds, cwd, env, *rest):
        pipes, new_session = rest[3:9], rest[14]
        streams = [i if end == -1 else end for i, end in enumerate(pipes[:1] + pipes[3::2])]
        self._status, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(_server(), [b"+"], [theirs.fileno(), *streams])
        request = args, os.fspath(cwd or os.getcwd()), dict(env or os.environ), new_session
        self._status.sendall(json.dumps(request).encode() + b"\n")
        self.pid, self._child_created = int(self._status.recv(10, socket.MSG_WAITALL)), True
        self._close_pipe_fds(*pipes)

    def _try_wait(self, flags):
        try:
            return self.pid, int(self._status.recv(10, socket.MSG_DONTWAIT if flags else 0))
        except BlockingIOError:
            return 0, 0

    def _internal_poll(self, _deadstate=None):
        if self.returncode is None and (ended := self._try_wait(os.WNOHANG))[0]:
            self._handle_exitstatus(ended[1])
        return self.returncode


@functools.cache
def _server() -> socket.socket:
    """The connection to this process's server, which ends when the connection is closed."""
    ours, theirs = socket.socketpair()
    with theirs:
        command = [sys.executable, __file__, str(theirs.fileno())]
        server = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdout=subprocess.PIPE)
    atexit.register(lambda: (ours.close(), server.wait(10)))
    return ours


def _serve(control: socket.socket) -> list:
    """Returns a request in the process that is forked for it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while (received := socket.recv_fds(control, 1, 4))[0]:
        status, *streams = received[1]
        if os.fork() == 0:
            return _fork(socket.socket(fileno=status), streams)
        for number in received[1]:
            os.close(number)
    with contextlib.suppress(ChildProcessError):
        while os.wait():  # their processor time is this process's then
            pass
    os._exit(0)


def _fork(status: socket.socket, streams: list[int]) -> list:
    """Waits for the process of a script, and kills it when nobody else waits any more."""
    request = json.loads(status.makefile().readline())
    if script := os.fork():

        def follow():
            status.recv(1)
            os.kill(script, signal.SIGKILL)

        for number in streams:
            os.close(number)
        threading.Thread(target=follow, daemon=True).start()
        ended = os.waitpid(script, 0)[1]
        with contextlib.suppress(BrokenPipeError):
            status.sendall(b"%10d" % ended)
        os._exit(0)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if request[3]:
        os.setsid()
    status.sendall(b"%10d" % os.getpid())
    status.close()
    return request


if __name__ == "__main__":
    import scipy.special  # noqa: F401
    import sklearn.datasets  # noqa: F401

    import chainer_jo.reproduction.commands  # noqa: F401
    from chainer_jo.reproduction.running import provenance, worker  # noqa: F401  (loads Chainer)

    download = sys.modules["chainer.dataset.download"]
    provenance._package()  # reads all of the package's code
    words, folder, environment, _ = _serve(socket.socket(fileno=int(sys.argv[1])))
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    download.set_dataset_root(os.environ.get("CHAINER_DATASET_ROOT", download.get_dataset_root()))
    sys.argv = [os.path.abspath(words[0]), *words[1:]]
    path = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:1] = [os.path.dirname(sys.argv[0]), *filter(None, path)]
    runpy.run_path(sys.argv[0], run_name="__main__")
