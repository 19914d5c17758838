"""The download against a local server that breaks off, refuses, and sends the wrong thing."""

import hashlib
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from chainer_jo.datasets import downloading
from chainer_jo.datasets.downloading import download
from chainer_jo.errors import UserError

CONTENT = np.random.default_rng(0).bytes(3_000_000)
MD5 = hashlib.md5(CONTENT).hexdigest()


@dataclass
class Behaviour:
    """What the server does; `ranges` is what it was asked for, one entry per request."""

    content: bytes = CONTENT
    break_after: list[int] = field(default_factory=list)  # bytes sent before each break, in turn
    status: list[int] = field(default_factory=list)  # errors answered first, in turn
    knows_ranges: bool = True
    ranges: list[str | None] = field(default_factory=list)


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        behaviour = self.server.behaviour
        asked = self.headers["Range"]
        behaviour.ranges.append(asked)
        if behaviour.status:
            return self.send_error(behaviour.status.pop(0))
        start = 0
        if asked and behaviour.knows_ranges:
            start = int(asked.removeprefix("bytes=").removesuffix("-"))
            if start >= len(behaviour.content):
                return self.send_error(416)
        body = behaviour.content[start:]
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if behaviour.break_after:
            body = body[: behaviour.break_after.pop(0)]
        self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.fixture
def server(monkeypatch, tmp_path):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(download, "_dataset_root", str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        http.behaviour = Behaviour()
        http.url = f"http://127.0.0.1:{http.server_port}/archive.tar.gz"
        thread = threading.Thread(target=http.serve_forever, args=(0.01,))
        thread.start()
        yield http
        http.shutdown()
        thread.join()


def fetch(server, md5=MD5):
    return downloading.fetch(server.url, md5, pause=0)


def leftovers(path):
    return sorted(p.suffix for p in path.iterdir() if p.suffix != ".lock")


def test_whole_file_where_chainer_looks_for_it(server):
    path = fetch(server)

    assert path.read_bytes() == CONTENT
    assert download.cached_download(server.url) == str(path)
    assert leftovers(path.parent) == ["", ""]  # the file, and the lock that Chainer made
    assert server.behaviour.ranges == [None]


def test_second_call_downloads_nothing(server):
    assert fetch(server) == fetch(server)
    assert len(server.behaviour.ranges) == 1


def test_continues_by_itself_after_breaks(server):
    server.behaviour.break_after = [1_000_000, 700_000]

    assert fetch(server).read_bytes() == CONTENT
    assert server.behaviour.ranges == [None, "bytes=1000000-", "bytes=1700000-"]


def test_continues_what_an_earlier_process_left(server, tmp_path):
    part = tmp_path / "_dl_cache" / f"{hashlib.md5(server.url.encode()).hexdigest()}.part"
    part.parent.mkdir()
    part.write_bytes(CONTENT[:123_456])

    assert fetch(server).read_bytes() == CONTENT
    assert server.behaviour.ranges == ["bytes=123456-"]
    assert not part.exists()


def test_complete_part_is_taken_as_it_is(server, tmp_path):
    part = tmp_path / "_dl_cache" / f"{hashlib.md5(server.url.encode()).hexdigest()}.part"
    part.parent.mkdir()
    part.write_bytes(CONTENT)

    assert fetch(server).read_bytes() == CONTENT


def test_server_without_ranges_starts_over(server):
    server.behaviour.knows_ranges = False
    server.behaviour.break_after = [1_000_000]

    assert fetch(server).read_bytes() == CONTENT
    assert server.behaviour.ranges == [None, "bytes=1000000-"]


def test_server_that_recovers(server):
    server.behaviour.status = [503, 500]
    assert fetch(server).read_bytes() == CONTENT


def test_gives_up_without_progress_and_keeps_what_came(server, tmp_path):
    server.behaviour.break_after = [1_000_000] + [0] * 20

    with pytest.raises(
        UserError, match="closed early after 1,000,000 bytes.*run again to continue"
    ):
        fetch(server)

    assert leftovers(tmp_path / "_dl_cache") == [".part"]
    server.behaviour.break_after = []
    assert fetch(server).read_bytes() == CONTENT
    assert server.behaviour.ranges[-1] == "bytes=1000000-"


def test_wrong_md5_leaves_nothing(server, tmp_path):
    server.behaviour.content = CONTENT[:-1] + b"?"

    with pytest.raises(UserError, match=f"md5 [0-9a-f]{{32}}, expected {MD5}"):
        fetch(server)

    assert leftovers(tmp_path / "_dl_cache") == []
    server.behaviour.content = CONTENT
    assert fetch(server).read_bytes() == CONTENT


def test_damaged_file_in_the_cache_is_replaced(server):
    fetch(server).write_bytes(CONTENT[:1000])
    assert fetch(server).read_bytes() == CONTENT


def test_missing_on_the_server(server):
    server.behaviour.status = [404]
    with pytest.raises(UserError, match=r"archive\.tar\.gz: HTTP 404, expected 200"):
        fetch(server)
    assert len(server.behaviour.ranges) == 1


def test_no_server(server):
    with pytest.raises(UserError, match="refused.* after 0 bytes, expected a connection"):
        downloading.fetch("http://127.0.0.1:9/archive", MD5, pause=0)


def test_unwritable_cache(server, tmp_path):
    (tmp_path / "_dl_cache").write_text("a file where the folder should be")
    with pytest.raises(UserError, match="_dl_cache.*CHAINER_DATASET_ROOT"):
        fetch(server)


def test_two_at_once_download_once(server):
    threads = [threading.Thread(target=fetch, args=(server,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert fetch(server).read_bytes() == CONTENT
    assert len(server.behaviour.ranges) == 1


def test_progress_is_shown(server, capsys):
    fetch(server)
    assert "Downloading archive.tar.gz: 3 of 3 MB [" in capsys.readouterr().err
