"""Hostile clients, on raw sockets: any process of the machine can connect to a loopback port, before a signature is
checked. The kernel closes such connections, logs it, and continues."""

import contextlib
import os
import pathlib
import re
import resource
import socket
import stat
import struct
import threading
import time

import pytest
import zmq
from zmq.utils.monitor import recv_monitor_message

from kernel_client import Kernel

MIB = 1 << 20
GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)
# The types of socket that a front end connects with.
CHANNELS = {"shell": b"DEALER", "control": b"DEALER", "stdin": b"DEALER", "iopub": b"SUB", "hb": b"REQ"}
SUBSCRIBE_TO_ALL = b"\x00\x01\x01"


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return tmp_path_factory.mktemp("log") / "stderr"


@pytest.fixture(scope="module")
def kernel(tmp_path_factory, log):
    with log.open("wb") as stderr, Kernel(cwd=tmp_path_factory.mktemp("notebook"), stderr=stderr) as running:
        running.run("1")
        yield running


@pytest.fixture(autouse=True)
def the_kernel_goes_on(kernel):
    """After each of these tests the kernel answers."""
    yield
    kernel.client.kernel_info(reply=True, timeout=20)
    assert kernel.run("6 * 7", timeout=60).shown() == "42"
    assert beats(kernel)


def ready(kind):
    body = b"\x05READY\x0bSocket-Type" + struct.pack(">I", len(kind)) + kind
    return bytes([4, len(body)]) + body


def frame(length, more=False):
    """The header of a frame."""
    return bytes([2 | more]) + struct.pack(">Q", length)


def connect(kernel, channel, handshake=True, receive_buffer=None):
    """A raw connection, with the handshake behind it."""
    client = socket.socket()
    if receive_buffer:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    client.settimeout(20)
    client.connect(("127.0.0.1", getattr(kernel.client, f"{channel}_port")))
    if handshake:
        client.sendall(GREETING + ready(CHANNELS[channel]))
        # The kernel's own greeting and READY.
        got = b""
        while len(got) < 66 or len(got) < 66 + got[65]:
            piece = client.recv(66 - len(got) if len(got) < 66 else 66 + got[65] - len(got))
            assert piece, "closed during the handshake"
            got += piece
    return client


def closed_after(client, limit):
    """Waits until the other side has closed the connection."""
    until = time.monotonic() + limit
    while (left := until - time.monotonic()) > 0:
        client.settimeout(left)
        try:
            if not client.recv(1 << 16):
                return
        except ConnectionError:
            return
        except TimeoutError:
            break
    raise AssertionError(f"still open after {limit} s")


def is_open(client):
    client.setblocking(False)
    try:
        while client.recv(1 << 16):
            pass
        return False
    except BlockingIOError:
        return True
    except ConnectionError:
        return False


def send_until_closed(client, piece, most):
    """Sends the bytes repeatedly; returns how many until the connection was closed."""
    sent = 0
    with contextlib.suppress(ConnectionError):
        while sent < most:
            client.sendall(piece)
            sent += len(piece)
    return sent


def beats(kernel):
    with zmq.Context.instance().socket(zmq.REQ) as heart:
        heart.linger = 0
        heart.connect(kernel.client._make_url("hb"))
        heart.send(b"ping")
        return heart.poll(5000) and heart.recv() == b"ping"


def resident(kernel):
    """Bytes of the kernel's process in memory."""
    status = pathlib.Path(f"/proc/{kernel.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s*(\d+)", status)[1]) * 1024


def wait_for_log(log, words, seconds=5):
    deadline = time.monotonic() + seconds
    while words not in (text := log.read_text(errors="replace")):
        assert time.monotonic() < deadline, text[-2000:]
        time.sleep(0.05)
    return text


@contextlib.contextmanager
def subscriber(kernel, **options):
    """A well-behaved subscriber, and the events of its connection."""
    context = zmq.Context.instance()
    with context.socket(zmq.SUB) as client:
        client.linger = 0
        for name, value in options.items():
            setattr(client, name, value)
        monitor = client.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        client.subscribe(b"")
        client.connect(kernel.client._make_url("iopub"))
        assert client.poll(10_000), "no welcome"
        client.recv_multipart()
        try:
            yield client, monitor
        finally:
            client.disable_monitor()


# ---------------------------------------------------------------- malformed input

@pytest.mark.parametrize("channel", CHANNELS)
def test_a_frame_of_two_to_the_sixtieth_is_refused(kernel, log, channel):
    with connect(kernel, channel) as client:
        client.sendall(frame(1 << 60))
        closed_after(client, 9)
    name = {"hb": "heartbeat"}.get(channel, channel)
    limit = 64 * MIB if channel in ("shell", "control", "stdin") else 1024
    wait_for_log(log, f"{name}: a connection was closed: it announced a message of {1 << 60} bytes; {limit} are accepted")


def test_the_length_may_come_byte_by_byte(kernel):
    with connect(kernel, "shell") as client:
        for byte in frame(1 << 60):
            client.sendall(bytes([byte]))
            time.sleep(0.02)
        closed_after(client, 5)


def test_an_endless_message_is_closed_at_its_limit(kernel, log):
    before = resident(kernel)
    with connect(kernel, "shell") as client:
        sent = send_until_closed(client, frame(MIB, more=True) + bytes(MIB), 1000 * MIB)
    # Bytes in flight are lost, and counted as sent.
    assert 60 * MIB < sent < 90 * MIB, sent / MIB
    with connect(kernel, "control") as client:
        sent = send_until_closed(client, b"\x01\x00" * 1000, 1000 * MIB)
    assert sent < 20 * MIB, sent / MIB
    wait_for_log(log, "shell: a connection was closed: it announced a message of")
    wait_for_log(log, "control: a connection was closed: a message has more than 4096 frames")
    assert resident(kernel) - before < 300 * MIB


def test_incomplete_messages_of_many_clients_do_not_fill_the_memory(kernel, log):
    before = resident(kernel)
    clients = [connect(kernel, "shell") for _ in range(10)]
    for client in clients:
        client.settimeout(20)
        with contextlib.suppress(ConnectionError):
            client.sendall(frame(60 * MIB))
            for _ in range(50):
                client.sendall(bytes(MIB))
    time.sleep(0.5)
    assert sum(is_open(client) for client in clients) <= 5
    assert resident(kernel) - before < 500 * MIB
    for client in clients:
        client.close()
    wait_for_log(log, "bytes of unfinished messages")


def test_endless_subscriptions(kernel, log):
    with connect(kernel, "iopub") as client:
        send_until_closed(client, b"\x00\x05\x01none" * 10, MIB)
        closed_after(client, 5)
    wait_for_log(log, "iopub: a connection was closed: it sent more than 1024 messages")


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "does not speak ZeroMQ's protocol"),
        (GREETING[:10] + b"\x01" + GREETING[11:], "version 1"),
        (GREETING.replace(b"NULL", b"PLAI"), "authenticate"),
        (GREETING + b"\x00\x05hello", "out of place"),
        (GREETING + ready(b"DEALER") + b"\x04\x05\x04PING", "out of place"),
        (GREETING + ready(b"DEALER") + b"\xf8\x00", "flags 0xf8"),
        (GREETING + ready(b"DEALER") * 2, "out of place"),
    ],
    ids=["http", "old version", "another mechanism", "no READY", "ping", "flags", "READY twice"],
)
def test_another_protocol_is_closed_at_once(kernel, log, sent, message):
    with connect(kernel, "control", handshake=False) as client:
        client.sendall(sent)
        closed_after(client, 9)
    wait_for_log(log, message)


def test_an_incompatible_socket_and_an_invalid_ready_close_only_their_connection(kernel):
    for command in [ready(b"PUB"), b"\x04\x06\x05READX", b"\x04\x02\x09R", b"\x04\x00", b"\x04\x0a\x05READY\xff\xff\xff\xff"]:
        with connect(kernel, "shell", handshake=False) as client:
            client.sendall(GREETING + command)
            closed_after(client, 5)


# ---------------------------------------------------------------- slow and numerous clients

def test_an_unfinished_handshake_is_closed(kernel, log):
    silent = [connect(kernel, channel, handshake=False) for channel in CHANNELS]
    slow = connect(kernel, "shell", handshake=False)

    def drip():
        with contextlib.suppress(OSError):
            for byte in GREETING:
                slow.sendall(bytes([byte]))
                time.sleep(0.4)

    dripping = threading.Thread(target=drip)
    dripping.start()
    for client in [*silent, slow]:
        closed_after(client, 30)
        client.close()
    dripping.join()
    # An honest one has that long.
    for name in ("shell", "control", "stdin", "iopub", "heartbeat"):
        wait_for_log(log, f"{name}: a connection was closed: the handshake was not over after 10 s")


def test_a_thousand_connections(kernel, log):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096) if hard != resource.RLIM_INFINITY else 4096, hard))
    crowd = []
    try:
        for number in range(1000):
            crowd.append(connect(kernel, "shell", handshake=False))
            if number % 100 == 50:
                # Meanwhile, a well-behaved client connects.
                with connect(kernel, "shell"):
                    pass
        # Older clients are served, and new ones are accepted.
        kernel.client.kernel_info(reply=True, timeout=5)
        with zmq.Context.instance().socket(zmq.DEALER) as client:
            client.linger = 0
            client.connect(kernel.client._make_url("shell"))
            session = kernel.client.session
            client.send_multipart(session.serialize(session.msg("kernel_info_request", {})))
            assert client.poll(5000)
        assert sum(is_open(client) for client in crowd) <= 50
        assert len(list(pathlib.Path(f"/proc/{kernel.pid}/fd").iterdir())) < 400
        wait_for_log(log, "too many connections; one without handshake was closed")
        # A client that finished its handshake is not closed in favor of a new one.
        staying = [connect(kernel, "control") for _ in range(40)]
        with contextlib.ExitStack() as pushing:
            for _ in range(60):
                pushing.enter_context(connect(kernel, "control", handshake=False))
        assert all(is_open(client) for client in staying)
        for client in staying:
            client.close()
    finally:
        for client in crowd:
            client.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


# ---------------------------------------------------------------- clients that do not read

def numbered(count):
    return (f"let mut text = String::new();\nfor n in 0..{count} {{ use std::fmt::Write; write!(text, \"{{n:0127}}\\n\")?; "
            f"if text.len() > 60000 {{ print!(\"{{text}}\"); text.clear(); }} }}\nprint!(\"{{text}}\");")


def test_only_a_stalled_subscriber_is_closed_and_no_message_is_repeated(kernel, log):
    with connect(kernel, "iopub", receive_buffer=4096) as stalled, subscriber(kernel) as (other, monitor):
        stalled.sendall(SUBSCRIBE_TO_ALL)
        seen = []

        def read():
            session = kernel.client.session
            while other.poll(15_000):
                frames = other.recv_multipart()
                # The client's own replay check must not interfere.
                at = frames.index(b"<IDS|MSG>")
                seen.append((session.unpack(frames[at + 2]), session.unpack(frames[at + 3]), session.unpack(frames[at + 5])))
                if seen[-1][2].get("execution_state") == "idle":
                    return

        reader = threading.Thread(target=read)
        reader.start()
        count = 200_000
        cell = kernel.run(numbered(count), timeout=90)
        reader.join()
        expected = "".join(f"{n:0127}\n" for n in range(count))
        assert cell.stream() == expected, "the client that asked lost something, or saw it twice"
        text = "".join(content["text"] for header, _, content in seen if header["msg_type"] == "stream")
        assert text == expected, "the other one too"
        ids = [header["msg_id"] for header, _, _ in seen]
        assert len(ids) == len(set(ids))
        assert not monitor.poll(0), recv_monitor_message(monitor)
        closed_after(stalled, 5)
    wait_for_log(log, "iopub: a connection was closed: it has not read for")


def test_a_slow_subscriber_gets_everything_and_the_memory_stays_bounded(kernel):
    """50 MB for one that reads 10 MB/s; the cell that prints waits for it."""
    count = 400_000
    before, most = resident(kernel), 0
    with subscriber(kernel, rcvhwm=2) as (slow, monitor):
        request = kernel.request(numbered(count))
        text = []
        while slow.poll(30_000):
            frames = slow.recv_multipart()
            content = kernel.client.session.unpack(frames[frames.index(b"<IDS|MSG>") + 5])
            if "text" in content:
                text.append(content["text"])
                time.sleep(len(content["text"]) / (10 * MIB))
                most = max(most, resident(kernel))
            if content.get("execution_state") == "idle":
                break
        kernel.collect(request, timeout=60).ok()
        assert "".join(text) == "".join(f"{n:0127}\n" for n in range(count))
        assert not monitor.poll(0), "it was disconnected"
    assert most - before < 200 * MIB, (most - before) / MIB


def test_requests_of_a_client_that_does_not_read_replies_wait(kernel):
    before = resident(kernel)
    with connect(kernel, "hb", receive_buffer=4096) as client:
        client.settimeout(1)
        beat = b"\x01\x00\x02" + struct.pack(">Q", 1000) + bytes(1000)
        with pytest.raises(TimeoutError):
            while True:
                client.sendall(beat * 1000)
        assert beats(kernel), "others are heard"
        assert resident(kernel) - before < 50 * MIB


# ---------------------------------------------------------------- sockets in the file system

def test_unix_sockets_are_private_and_nothing_stays(tmp_path):
    temporary = tmp_path / "t"
    temporary.mkdir()
    environment = dict(os.environ, TMPDIR=str(temporary))
    with Kernel(cwd=tmp_path, env=environment, transport="ipc", ip=str(tmp_path / "k")) as kernel:
        assert kernel.run("1 + 1").shown() == "2"
        sockets = list(tmp_path.glob("k-*"))
        assert len(sockets) == 5
        folders = list(temporary.glob("stratoscope-*"))
        for path in sockets:
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
        for path in folders:
            assert stat.S_IMODE(path.stat().st_mode) == 0o700
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(next(path for path in sockets if path.name == f"k-{kernel.client.shell_port}")))
            client.sendall(GREETING + ready(b"DEALER") + frame(1 << 60))
            closed_after(client, 5)
        # The last message reaches the clients that read, although one does not.
        with socket.socket(socket.AF_UNIX) as stalled:
            stalled.connect(str(next(path for path in sockets if path.name == f"k-{kernel.client.iopub_port}")))
            stalled.sendall(GREETING + ready(b"SUB") + SUBSCRIBE_TO_ALL)
            kernel.run(numbered(30_000))
            reply = kernel.client.shutdown(reply=True, timeout=30)
            assert reply["content"] == {"status": "ok", "restart": False}
            while kernel.client.get_iopub_msg(timeout=20)["msg_type"] != "shutdown_reply":
                pass
            kernel.manager.provisioner.process.wait(30)
    assert not list(tmp_path.glob("k-*")) and not list(temporary.glob("stratoscope-*"))
