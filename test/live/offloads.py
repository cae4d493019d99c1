"""Traffic of ordinary sockets between two network namespaces, with all that a sender may leave to its interface.

    offloads.py SENDER RECEIVER [--nothing-beside]   paths of network namespaces; the interface is weir0 in both

The interface's addresses end in 1 and 2. With --nothing-beside it is given segments only, with tags inside.

Prints what arrived as JSON. Ends in the sender's namespace with weir0 in a bridge: call it once.
"""
import ctypes
import fcntl
import hashlib
import json
import os
import socket
import struct
import subprocess
import sys
import threading
import time

SOL_UDP, UDP_SEGMENT = 17, 103
SOL_PACKET, PACKET_AUXDATA, TP_STATUS_VLAN_VALID = 263, 8, 0x10
ETH_P_ALL, PACKET_OTHERHOST = 3, 3
SIOCETHTOOL, ETHTOOL_GFLAGS, ETHTOOL_SFLAGS, ETH_FLAG_TXVLAN = 0x8946, 0x25, 0x26, 1 << 7
PATIENCE = 5.0  # seconds

libc = ctypes.CDLL(None, use_errno=True)


def enter(path):
    fd = os.open(path, os.O_RDONLY)
    if libc.setns(fd, 0x40000000) != 0:
        raise OSError(ctypes.get_errno(), "setns")
    os.close(fd)


def content(size, seed):
    return hashlib.shake_128(bytes([seed])).digest(size)


def udp(sender, receiver, family, addresses, port=4791):
    """Returns how many of 20 datagrams arrive whole, sent one after the other."""
    enter(receiver)
    into = socket.socket(family, socket.SOCK_DGRAM)
    into.bind((addresses[1], port))
    into.settimeout(PATIENCE)
    enter(sender)
    out = socket.socket(family, socket.SOCK_DGRAM)
    whole = 0
    for i in range(20):
        out.sendto(content(900 + i, i), (addresses[1], port))
        try:
            whole += into.recv(2000) == content(900 + i, i)
        except TimeoutError:
            break
    return whole, into, out


def udp_segments(sender, receiver, family, addresses):
    """Returns how many of five datagrams arrive whole that are sent in one piece (UDP_SEGMENT)."""
    _, into, out = udp(sender, receiver, family, addresses, 4792)
    out.setsockopt(SOL_UDP, UDP_SEGMENT, 1000)
    data = content(4700, 99)
    out.sendto(data, (addresses[1], 4792))
    whole = 0
    try:
        for at in range(0, len(data), 1000):
            whole += into.recv(2000) == data[at : at + 1000]
    except TimeoutError:
        pass
    return whole


def tcp(sender, receiver, family, addresses, size=8_000_000):
    """Tells whether a stream arrives as it was sent."""
    enter(receiver)
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.bind((addresses[1], 5001))
    listener.listen()
    listener.settimeout(PATIENCE)
    received = hashlib.sha256()

    def serve():
        try:
            peer, _ = listener.accept()
            peer.settimeout(PATIENCE)
            while data := peer.recv(1 << 18):
                received.update(data)
        except OSError:
            pass

    thread = threading.Thread(target=serve)
    thread.start()
    enter(sender)
    data = content(size, 7)
    try:
        out = socket.socket(family, socket.SOCK_STREAM)
        out.settimeout(PATIENCE)
        out.connect((addresses[1], 5001))
        out.sendall(data)
        out.close()
    except OSError:
        pass
    thread.join()
    return received.digest() == hashlib.sha256(data).digest()


def packet_socket(namespace, interface):
    enter(namespace)
    made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    made.bind((interface, ETH_P_ALL))
    made.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
    made.settimeout(PATIENCE)
    return made


def tag(sender, receiver, interface, tpid, tci, mark):
    """The tag, as [TPID, TCI], with which a frame arrives that was sent with this one in it; its payload must be the same."""
    into = packet_socket(receiver, "weir0")
    out = packet_socket(sender, interface)
    payload = mark.encode() + content(300, 3)
    head = bytes.fromhex("0257000000f2" "0257000000f1")
    out.send(head + tpid.to_bytes(2, "big") + tci.to_bytes(2, "big") + bytes.fromhex("88b5") + payload)
    try:
        while True:
            frame, ancillary, _, _ = into.recvmsg(2000, 256)
            if mark.encode() not in frame:
                continue
            if frame[12:14] == tpid.to_bytes(2, "big"):
                found, rest = [tpid, int.from_bytes(frame[14:16], "big")], frame[16:]
            else:
                found, rest = [], frame[12:]
            for level, kind, data in ancillary:
                status = int.from_bytes(data[0:4], sys.byteorder)
                if (level, kind) == (SOL_PACKET, PACKET_AUXDATA) and status & TP_STATUS_VLAN_VALID:
                    found = [int.from_bytes(data[at : at + 2], sys.byteorder) for at in (18, 16)]
            return found if frame[:12] == head and rest == bytes.fromhex("88b5") + payload else ["damaged"]
    except TimeoutError:
        return ["lost"]


def ip(namespace, *lines):
    enter(namespace)
    subprocess.run(["ip", "-batch", "-"], input="\n".join(lines), text=True, check=True)


def forwards(namespace, bridge):
    """Waits until all ports of a bridge forward: the kernel tells the bridge of a port's carrier when it gets round to it."""
    enter(namespace)
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        shown = subprocess.run(["ip", "-d", "-j", "link", "show", "master", bridge], capture_output=True, text=True, check=True)
        if all(port["linkinfo"]["info_slave_data"]["state"] == "forwarding" for port in json.loads(shown.stdout)):
            return
        time.sleep(0.02)
    raise TimeoutError(f"a port of {bridge} does not forward")


def leave_nothing_beside(namespace):
    """Does the same as `ethtool -K weir0 txvlan off` and `ip link set weir0 gso_max_segs 1`."""
    ip(namespace, "link set dev weir0 gso_max_segs 1")
    out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    value = ctypes.create_string_buffer(struct.pack("II", ETHTOOL_GFLAGS, 0))
    request = struct.pack("16sP16x", b"weir0", ctypes.addressof(value))
    fcntl.ioctl(out, SIOCETHTOOL, request)
    flags = struct.unpack("II", value.raw[:8])[1]
    value.raw = struct.pack("II", ETHTOOL_SFLAGS, flags & ~ETH_FLAG_TXVLAN)
    fcntl.ioctl(out, SIOCETHTOOL, request)


def main(sender, receiver, *options):
    if options == ("--nothing-beside",):
        leave_nothing_beside(sender)
    result = {}
    families = {"ipv4": (socket.AF_INET, ["10.66.0.1", "10.66.0.2"]), "ipv6": (socket.AF_INET6, ["fd66::1", "fd66::2"])}
    for name, (family, addresses) in families.items():
        result[name] = {
            "udp": udp(sender, receiver, family, addresses)[0],
            "udp_segments": udp_segments(sender, receiver, family, addresses),
            "tcp": tcp(sender, receiver, family, addresses),
        }
    result["tag_inside"] = tag(sender, receiver, "weir0", 0x8100, 0x6005, "inside")
    result["service_tag_inside"] = tag(sender, receiver, "weir0", 0x88A8, 0x0006, "service")
    # The stack takes a tag out of the frame that a bridge gets, and the bridge hands it to weir0 beside the frame.
    ip(
        sender,
        "link add name bridge0 type bridge",
        "link add name outer type veth peer name inner",
        "link set weir0 master bridge0",
        "link set inner master bridge0",
        *(f"link set {name} up" for name in ("bridge0", "inner", "outer")),
    )
    forwards(sender, "bridge0")
    result["tag_beside"] = tag(sender, receiver, "outer", 0x8100, 0x6005, "beside")
    result["service_tag_beside"] = tag(sender, receiver, "outer", 0x88A8, 0x0006, "aside")
    print(json.dumps(result))


main(*sys.argv[1:])
