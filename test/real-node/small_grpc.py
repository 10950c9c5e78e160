# SPDX-License-Identifier: Apache-2.0
#
# Just enough HTTP/2, gRPC and protobuf for one call over a Unix socket, so that the tests need no
# packages. Headers of the answer are not read: a call that failed has no message.

import socket
import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 4, 6, 7, 8
END_STREAM, ACK, END_HEADERS = 1, 1, 4
SECONDS_MAX = 10

def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes((kind, flags)) + struct.pack(
        ">I", stream) + payload


def header(name, value):
    """Literal, not indexed, not compressed (RFC 7541, 6.2.2)."""
    return b"".join([b"\0", bytes((len(name),)), name.encode(), bytes((len(value),)),
                     value.encode()])


def read_exactly(client, count):
    data = b""
    while len(data) < count:
        more = client.recv(count - len(data))
        if not more:
            raise OSError("the server closed the connection")
        data += more
    return data


def call(path, method, request=b""):
    """The message that answers `request`."""
    headers = b"".join(header(*pair) for pair in (
        (":method", "POST"), (":scheme", "http"), (":path", method), (":authority", "localhost"),
        ("content-type", "application/grpc"), ("te", "trailers")))
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(SECONDS_MAX)
        client.connect(path)
        client.sendall(PREFACE + frame(SETTINGS, 0, 0)
                       + frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1 << 24))
                       + frame(HEADERS, END_HEADERS, 1, headers)
                       + frame(DATA, END_STREAM, 1, struct.pack(">BI", 0, len(request)) + request))
        answer = b""
        while True:
            head = read_exactly(client, 9)
            kind, flags = head[3], head[4]
            payload = read_exactly(client, int.from_bytes(head[:3], "big"))
            if kind == SETTINGS and not flags & ACK:
                client.sendall(frame(SETTINGS, ACK, 0))
            elif kind == PING and not flags & ACK:
                client.sendall(frame(PING, ACK, 0, payload))
            elif kind == DATA:
                answer += payload
                if payload:
                    client.sendall(frame(WINDOW_UPDATE, 0, 1, struct.pack(">I", len(payload))))
            elif kind == GOAWAY:
                raise OSError("the server ended the connection")
            if kind in (DATA, HEADERS) and flags & END_STREAM:
                break
    if len(answer) < 5:
        raise OSError(f"{method}: the call was refused")
    return answer[5:]


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def fields(data):
    """(number, value) of each field; lengths give bytes."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        elif key & 7 == 2:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
        else:
            raise ValueError(f"field of wire type {key & 7}")
        yield key >> 3, value


def message(*pairs):
    """The bytes of a message of (number, value): texts, bytes (messages, too) and numbers."""
    result = b""
    for number, value in pairs:
        if isinstance(value, int):
            result += to_varint(number << 3) + to_varint(value)
        else:
            data = value.encode() if isinstance(value, str) else value
            result += to_varint(number << 3 | 2) + to_varint(len(data)) + data
    return result


def to_varint(value):
    result = b""
    while value >= 0x80:
        result += bytes((value & 0x7F | 0x80,))
        value >>= 7
    return result + bytes((value,))


def texts(data, number):
    return [value.decode() for field, value in fields(data) if field == number]
