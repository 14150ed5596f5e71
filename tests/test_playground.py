#!/usr/bin/env python3
"""muc playground: a page on 127.0.0.1 for browsers, and refusals for everything else. Prints TAP.

    tests/test_playground.py MUC
"""
import http.client
import os
import random
import signal
import socket
import subprocess
import sys
import threading

from cli import WORK, has, muc
from files import FROM_SANITIZER, IO, MALFORMED, MUC, USAGE, run_tests

PAGE = WORK / "page.html"
PAGE.write_bytes(b"<!DOCTYPE html>\n<title>\xce\xbc</title>\n" + bytes(range(256)) * 8192)  # 2 MB, more than a socket holds


def listen_to_interrupts():
    """What a shell starts in the background ignores them, and so do its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Playground:
    """muc playground at a free port, ended by SIGINT as Ctrl-C does."""
    def __init__(self, port=0):
        self.child = subprocess.Popen([MUC, "playground", "--port", str(port), "--page", PAGE], stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, text=True, preexec_fn=listen_to_interrupts)
        self.address = self.child.stdout.readline().strip()

    def __enter__(self):
        assert self.address.startswith("http://127.0.0.1:"), self.address + self.child.stderr.read()
        self.port = int(self.address.rstrip("/").rsplit(":", 1)[1])
        return self

    def __exit__(self, *_):
        assert self.child.poll() is None, f"it ended by itself: {self.child.returncode} {self.child.stderr.read()[-2000:]}"
        self.child.send_signal(signal.SIGINT)
        _, errors = self.child.communicate(timeout=60)
        assert self.child.returncode == -signal.SIGINT and not FROM_SANITIZER.search(errors), errors[-2000:]

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=60)

    def ask(self, request, close=False):
        """All that comes back for these bytes; close: nothing more is sent."""
        with self.connect() as connection:
            connection.sendall(request)
            if close:
                connection.shutdown(socket.SHUT_WR)
            return read_all(connection)

    def get(self, path="/", method="GET"):
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        client.request(method, path)
        answer = client.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()


def read_all(connection):
    parts = []
    while part := connection.recv(1 << 16):
        parts.append(part)
    return b"".join(parts)


def status_of(answer):
    head, _, body = answer.partition(b"\r\n\r\n")
    version, number, _ = head.split(b"\r\n")[0].split(b" ", 2)
    fields = dict(line.split(b": ", 1) for line in head.split(b"\r\n")[1:])
    assert version == b"HTTP/1.1" and fields[b"Connection"] == b"close", head
    return int(number), fields, body


def test_a_browser_gets_the_page():
    with Playground() as server:
        status, fields, body = server.get()
        assert status == 200 and body == PAGE.read_bytes() and fields["Content-Type"] == "text/html; charset=utf-8", fields
        assert fields["Content-Length"] == str(len(body)) and fields["X-Content-Type-Options"] == "nosniff", fields
        status, fields, body = server.get(method="HEAD")
        assert status == 200 and body == b"" and fields["Content-Length"] == str(PAGE.stat().st_size), fields
        PAGE.write_bytes(PAGE.read_bytes()[:-1] + b"!")  # what is served was read at the start
        assert server.get()[2] != PAGE.read_bytes()


def test_what_is_not_the_page_is_refused():
    with Playground() as server:
        for path in "/favicon.ico", "/muc.html", "/..", "/%2e%2e/etc/passwd", "//", "/?", "/etc/passwd", "/" * 5000:
            assert server.get(path)[0] == 404, path
        assert server.get("/x", "HEAD")[::2] == (404, b"")
        for method in "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "get":
            status, fields, _ = server.get(method=method)
            assert status == 405 and fields["Allow"] == "GET, HEAD", method


def test_requests_are_read_as_http_has_them():
    host = b"Host: 127.0.0.1\r\n"
    with Playground() as server:
        for expected, request in [
            (200, b"GET / HTTP/1.1\r\n" + host + b"\r\n"),
            (200, b"GET / HTTP/1.1\r\nhOST:localhost\r\nAccept: */*\r\nX: \xc3\xa4\t \r\n\r\n"),
            (200, b"GET / HTTP/1.0\r\n\r\n"),
            (200, b"GET / HTTP/1.9\r\n" + host + b"\r\n"),
            (200, b"GET / HTTP/1.1\r\n" + host + b"Content-Length: 5\r\n\r\nhello"),
            (200, b"GET / HTTP/1.1\r\n" + host + b"\r\nGET / HTTP/1.1\r\n" + host + b"\r\n"),
            (400, b"GET / HTTP/1.1\r\n\r\n"),
            (400, b"GET / HTTP/1.1\r\n" + host + host + b"\r\n"),
            (400, b"GET / HTTP/1.1\r\n" + host + b"no colon\r\n\r\n"),
            (400, b"GET / HTTP/1.1\r\n" + host + b" folded: x\r\n\r\n"),
            (400, b"GET / HTTP/1.1\r\n" + host + b"Name : x\r\n\r\n"),
            (400, b"GET / HTTP/1.1\r\n" + host + b": x\r\n\r\n"),
            (400, b"GET / HTTP/1.1\r\n" + host + b"a: b\nc: d\r\n\r\n"),
            (400, b"GET / HTTP/1.1\r\n" + host + b"a: \0\r\n\r\n"),
            (400, b"GET /\r\n\r\n"),
            (400, b"GET  / HTTP/1.1\r\n" + host + b"\r\n"),
            (400, b"GET /a b HTTP/1.1\r\n" + host + b"\r\n"),
            (400, b"GET /\x01 HTTP/1.1\r\n" + host + b"\r\n"),
            (400, b"GET /\xff HTTP/1.1\r\n" + host + b"\r\n"),
            (400, b"G(T / HTTP/1.1\r\n" + host + b"\r\n"),
            (400, b"GET / http/1.1\r\n" + host + b"\r\n"),
            (400, b"GET / HTTP/1.11\r\n" + host + b"\r\n"),
            (400, b"GET / HTTP/1.1 \r\n" + host + b"\r\n"),
            (400, b"\r\n\r\n"),
            (400, b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n"),  # as TLS begins
            (405, b"PRI / HTTP/1.1\r\n" + host + b"\r\n"),
            (404, b"GET http://127.0.0.1/ HTTP/1.1\r\n" + host + b"\r\n"),
            (505, b"PRI * HTTP/2.0\r\n\r\n"),
            (505, b"GET / HTTP/0.9\r\n\r\n"),
        ]:
            status, _, body = status_of(server.ask(request))
            assert status == expected, (request, status)
            assert status != 200 or len(body) == PAGE.stat().st_size


def test_a_head_is_bounded():
    with Playground() as server:
        fields = b"GET / HTTP/1.1\r\nHost: x\r\n" + b"a: " + b"b" * 16000 + b"\r\n\r\n"
        assert status_of(server.ask(fields))[0] == 200
        assert status_of(server.ask(fields.replace(b"b\r", b"b" * 400 + b"\r")))[0] == 431
        assert status_of(server.ask(b"A" * (1 << 16)))[0] == 431


def test_a_request_that_is_cut_off_is_answered_or_dropped():
    whole = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
    with Playground() as server:
        assert server.ask(b"", close=True) == b""
        for size in 1, 5, len(whole) - 1:
            assert status_of(server.ask(whole[:size], close=True))[0] == 408, size
        assert status_of(server.ask(whole, close=True))[0] == 200
        with server.connect() as connection:  # byte by byte
            for byte in whole:
                connection.send(bytes([byte]))
            assert status_of(read_all(connection))[0] == 200


def test_those_who_say_nothing_do_not_hinder_others():
    with Playground() as server:
        silent = [server.connect() for _ in range(4)]
        assert server.get()[0] == 200
        silent += [server.connect() for _ in range(12)]  # more than there are threads: they are dropped after a while
        assert server.get()[0] == 200
        gone = server.connect()  # asks, and does not wait for the answer
        gone.sendall(b"GET / HTTP/1.0\r\n\r\n")
        gone.close()
        assert server.get()[0] == 200
        for connection in silent:
            connection.close()


def test_many_at_once_and_chance_do_not_end_it():
    draw = random.Random(7)
    words = [b"GET", b" ", b"/", b"HTTP/1.1", b"\r\n", b"\r", b"\n", b":", b"Host", b"\0", b"\xff", b"a" * 300]
    with Playground() as server:
        def bother(seed):
            chance = random.Random(seed)
            for _ in range(40):
                try:
                    server.ask(b"".join(chance.choice(words) for _ in range(chance.randrange(30))), close=True)
                except ConnectionError:
                    pass
        threads = [threading.Thread(target=bother, args=(draw.random(),)) for _ in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert server.get()[2] == PAGE.read_bytes()


def test_other_computers_do_not_reach_it():
    with Playground() as server:
        listening = [line.split() for line in open("/proc/net/tcp") if line.split()[3] == "0A"]
        mine = [words[1] for words in listening if words[1].endswith(f":{server.port:04X}")]
        assert mine == [f"0100007F:{server.port:04X}"], mine


def test_failures_are_told():
    with Playground() as server:
        done = subprocess.run([MUC, "playground", "--page", PAGE, "--port", str(server.port)], capture_output=True, text=True, timeout=60)
        assert done.returncode == IO, done
        has(done.stderr, "127.0.0.1: another program has port", "choose another")
    has(muc("playground", "--page", "/nowhere.html", status=IO)[1], "/nowhere.html: cannot open")
    (WORK / "no_page").write_text("#!/bin/sh\n")
    has(muc("playground", "--page", WORK / "no_page", status=MALFORMED)[1], "is not a page")
    (WORK / "empty").write_text("")
    has(muc("playground", "--page", WORK / "empty", status=MALFORMED)[1], "is not a page")
    has(muc("playground", "--port", "65536", status=USAGE)[1], "--port")
    has(muc("playground", "--port", "-1", status=USAGE)[1], "--port")


def test_where_the_page_is_missing_is_said_how_to_get_it():
    (WORK / "bin").mkdir()
    alone = WORK / "bin/muc"
    os.link(MUC, alone) if MUC.stat().st_dev == WORK.stat().st_dev else alone.write_bytes(MUC.read_bytes())
    alone.chmod(0o755)
    (WORK / "share/muc").mkdir(parents=True)
    done = subprocess.run([alone, "playground", "--port", "0"], capture_output=True, text=True, timeout=60)
    assert done.returncode == IO, done
    has(done.stderr, "scripts/web", "--page FILE")
    for place in "muc.html", "build-web/muc.html":
        (WORK / "share/muc" / place).parent.mkdir(exist_ok=True)
        (WORK / "share/muc" / place).write_bytes(PAGE.read_bytes())
        child = subprocess.Popen([alone, "playground", "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        address = child.stdout.readline()
        child.send_signal(signal.SIGTERM)
        child.communicate(timeout=60)
        assert address.startswith("http://127.0.0.1:"), place
        (WORK / "share/muc" / place).unlink()


def test_a_port_is_free_again_at_once():
    with Playground() as server:
        assert server.get()[0] == 200
        port = server.port
    with Playground(port) as server:
        assert server.port == port and server.get()[0] == 200


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
