#!/usr/bin/python3
"""icrc_check.py PCAP... - checks the ICRC of every RoCEv2 packet in the captures, in two ways that know nothing of Weir:
from the text of the InfiniBand specification (volume 1, annex A17.3.3) with zlib's CRC, for IPv4 and IPv6, and with
scapy.contrib.roce, which knows IPv4 only.

Prints one JSON object: packets by IP version, how many of them each way disagrees with, bytes of the longest IP packet, and of the data
packets to each queue pair but the one of connection management, as scapy reads them: how many there are, and how many do not follow the
one before by PSN, and by IPv4 identification. Exit status 1 if an ICRC was wrong.
"""
import json
import logging
import struct
import sys
import zlib

logging.getLogger("scapy").setLevel(logging.ERROR)
from scapy.contrib.roce import BTH
from scapy.layers.inet import IP
from scapy.layers.inet6 import IPv6

ROCE_PORT = 4791
RC_ACKNOWLEDGE = 0x11
CONNECTION_MANAGEMENT = 1


def frames(path):
    """Yields the bytes of every frame of a pcap file of either byte order and resolution."""
    with open(path, "rb") as file:
        header = file.read(24)
        order = "<" if header[:1] in (b"\xd4", b"\x4d") else ">"
        while record := file.read(16):
            yield file.read(struct.unpack(order + "4I", record)[2])


def roce(frame):
    """The packet from its IP header to its ICRC, and the length of that header; None if it is not RoCEv2."""
    at = 14
    ethertype = struct.unpack_from("!H", frame, 12)[0]
    while ethertype == 0x8100:
        ethertype = struct.unpack_from("!H", frame, at + 2)[0]
        at += 4
    if ethertype == 0x0800 and frame[at + 9] == 17:
        header, length = (frame[at] & 15) * 4, struct.unpack_from("!H", frame, at + 2)[0]
    elif ethertype == 0x86DD and frame[at + 6] == 17:
        header, length = 40, 40 + struct.unpack_from("!H", frame, at + 4)[0]
    else:
        return None
    packet = frame[at:at + length]
    return (packet, header) if struct.unpack_from("!H", packet, header + 2)[0] == ROCE_PORT else None


def icrc(packet, header):
    """CRC over eight bytes of ones for the absent LRH, then the packet, with all that changes on the way as ones."""
    masked = bytearray(packet[:-4])
    if masked[0] >> 4 == 4:
        masked[1] = masked[8] = 0xFF  # type of service, time to live
        masked[10:12] = b"\xff\xff"  # header checksum
    else:
        masked[0] |= 0x0F
        masked[1:4] = b"\xff\xff\xff"  # traffic class, flow label
        masked[7] = 0xFF  # hop limit
    masked[header + 6:header + 8] = b"\xff\xff"  # UDP checksum
    masked[header + 12] = 0xFF  # BTH: FECN, BECN, reserved
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + bytes(masked)))


def scapy_icrc(packet):
    dissected = IP(packet)
    dissected[BTH].icrc = None
    return bytes(dissected)[-4:]


class Stream:
    """Data packets to one queue pair."""

    def __init__(self):
        self.packets = 0
        self.gaps = {"psn": 0, "id": 0}
        self.last = None

    def add(self, dissected):
        own = (dissected[BTH].psn, dissected[IP].id if IP in dissected else None)
        if self.last is not None:
            psn, identification = self.last
            self.gaps["psn"] += own[0] != (psn + 1) % 2 ** 24
            self.gaps["id"] += own[1] is not None and own[1] != (identification + 1) % 2 ** 16
        self.last = own
        self.packets += 1


def main(paths):
    packets = {"4": 0, "6": 0}
    wrong = {"own": 0, "scapy": 0}
    longest = 0
    streams = {}
    for path in paths:
        for packet, header in filter(None, map(roce, frames(path))):
            version = packet[0] >> 4
            packets[str(version)] += 1
            longest = max(longest, len(packet))
            wrong["own"] += icrc(packet, header) != packet[-4:]
            if version == 4:
                wrong["scapy"] += scapy_icrc(packet) != packet[-4:]
            dissected = (IP if version == 4 else IPv6)(packet)
            if dissected[BTH].opcode != RC_ACKNOWLEDGE and dissected[BTH].dqpn != CONNECTION_MANAGEMENT:
                streams.setdefault(dissected[BTH].dqpn, Stream()).add(dissected)
    data = [{"packets": stream.packets, "gaps": stream.gaps} for stream in streams.values()]
    print(json.dumps({"packets": packets, "wrong": wrong, "longest": longest, "streams": data}))
    return 1 if wrong["own"] or wrong["scapy"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
