"""
A client of the Twinpost protocol, written from docs/PROTOCOL.md alone (names in capitals are its), with
nothing but Python's standard library. story.py talks to stores with it.

    client.py FILE...    decodes golden frames: a JSON object of [type, sequence, control, entries if any]
"""
import hashlib, hmac, json, os, socket, struct, sys
from zlib import crc32

HELLO, CHALLENGE, PROOF, WELCOME, CLOSE, HEARTBEAT, BEAT = 0x01, 0x02, 0x03, 0x04, 0x05, 0x10, 0x11
FENCE, FENCED, DECLINED, RELEASE, CHANGES, ACK, REFUSAL, TEXTS = 0x20, 0x21, 0x22, 0x23, 0x30, 0x31, 0x32, 0x33
ASK, ASKED, TELL, TOLD, PULL, BLOCK, TAIL, TAILED, REFILL, REFILL_END = 0x40, 0x41, 0x42, 0x43, 0x50, 0x51, 0x52, 0x53, 0x60, 0x61
STORE, DELETE, ANNOTATE, WITHDRAW = range(1, 5)
JOIN, FOUND, FILL = range(1, 4)
BODY_ABSENT, SHARED, SKIPPED = 1, 2, 4
CHANGE_ROW, ENTRY_ROW, TEXT_ROW = struct.Struct('<BBHIIId'), struct.Struct('<BxHIIIIIdd'), struct.Struct('<dH')
ROOM = 64  # what entries keep for their notes, 4 bytes of checksum included


def pack(value):
    """MessagePack in its shortest form, as far as the protocol uses it."""
    def sized(length, short, codes):
        if short is not None and length < short[1]: return bytes([short[0] | length])
        for code, kind, bound in zip(codes, ('>B', '>H', '>I'), (1 << 8, 1 << 16, 1 << 32)):
            if code and length < bound: return bytes([code]) + struct.pack(kind, length)
    if value is None: return b'\xc0'
    if isinstance(value, bool): return b'\xc3' if value else b'\xc2'
    if isinstance(value, int): return sized(value, (0, 128), (0xcc, 0xcd, 0xce)) or b'\xcb' + struct.pack('>d', value)
    if isinstance(value, str): return sized(len(value.encode()), (0xa0, 32), (0xd9, 0xda, 0xdb)) + value.encode()
    if isinstance(value, bytes): return sized(len(value), None, (0xc4, 0xc5, 0xc6)) + value
    return sized(len(value), (0x90, 16), (0, 0xdc, 0xdd)) + b''.join(map(pack, value))


def unpack(data, at=0):
    """One value and where it ends."""
    def number(kind, size): return struct.unpack_from(kind, data, at + 1)[0], at + 1 + size
    def raw(length, start): return bytes(data[start:start + length]), start + length
    def array(length, start):
        items = []
        for _ in range(length):
            item, start = unpack(data, start)
            items.append(item)
        return items, start
    code = data[at]
    if code < 0x80: return code, at + 1
    if 0x90 <= code < 0xa0: return array(code & 15, at + 1)
    if 0xa0 <= code < 0xc0: text, end = raw(code & 31, at + 1)
    elif code in (0xc0, 0xc2, 0xc3): return (None if code == 0xc0 else code == 0xc3), at + 1
    elif code in (0xcc, 0xcd, 0xce): return number('>' + 'BHI'[code - 0xcc], 1 << code - 0xcc)
    elif code == 0xcb:
        value, end = number('>d', 8)
        return int(value), end
    elif code in (0xc4, 0xc5, 0xc6): return raw(*number('>' + 'BHI'[code - 0xc4], 1 << code - 0xc4))
    elif code in (0xdc, 0xdd): return array(*number('>' + 'HI'[code - 0xdc], 2 << code - 0xdc))
    elif code in (0xd9, 0xda, 0xdb): text, end = raw(*number('>' + 'BHI'[code - 0xd9], 1 << code - 0xd9))
    else: raise ValueError(f'no MessagePack of this protocol: {code:#x}')
    return text.decode(), end


def frame_of(kind, sequence, control, bodies=b''):
    rest = struct.pack('<IBBHIQ', 24 + len(control) + len(bodies), kind, 1, 0, len(control), sequence) + control
    return struct.pack('<I', crc32(rest)) + rest + bodies


def parse(frame):
    """(type, sequence, control, bodies, control as bytes) of a whole frame."""
    crc, size, kind, version, flags, control_bytes, sequence = struct.unpack_from('<IIBBHIQ', frame)
    raw = frame[24:24 + control_bytes]
    assert (size, version, flags, crc) == (len(frame), 1, 0, crc32(frame[4:24 + control_bytes])), 'malformed frame'
    control, end = unpack(raw)
    assert end == control_bytes and pack(control) == raw, 'the control part is not one array in its shortest form'
    return kind, sequence, control, frame[24 + control_bytes:], raw


def entries_of(rows, bodies):
    """Entry rows with their payload; checks what they carry a checksum of."""
    found, at = [], 0
    for flags, room, body_bytes, head_bytes, crc, note_bytes, note_crc, message, position in ENTRY_ROW.iter_unpack(rows):
        absent = bool(flags & BODY_ABSENT)
        body, at = bodies[at:at + (0 if absent else body_bytes)], at + (0 if absent else body_bytes)
        head, at = bodies[at:at + head_bytes], at + head_bytes
        note, at = bodies[at:at + note_bytes], at + note_bytes
        intact = crc32(note) == note_crc and (not note or note_bytes + 4 <= room) and (absent or crc32(body + head) == crc)
        found.append({'position': int(position), 'id': int(message), 'flags': flags, 'bodyBytes': body_bytes, 'intact': intact,
                      'body': body.decode(), 'head': head.decode(), 'note': note.decode()})
    assert at == len(bodies), 'the rows do not describe the payload'
    return found


def entry(item, flags=0):
    """An entry's row and payload for REFILL."""
    body, head, note = (item[name].encode() for name in ('body', 'head', 'note'))
    row = ENTRY_ROW.pack(flags, ROOM, len(body), len(head), crc32(body + head), len(note), crc32(note), item['id'], item['position'])
    return row, (b'' if flags & BODY_ABSENT else body) + head + note


def texts_of(rows):
    """Text rows: [position, text] each."""
    found, at = [], 0
    while at < len(rows):
        position, length = TEXT_ROW.unpack_from(rows, at)
        at += TEXT_ROW.size + length
        found.append([int(position), rows[at - length:at].decode()])
    return found


def text(position, words):
    return TEXT_ROW.pack(position, len(words)) + words


def change(kind, ref, head=b'', body=b'', flags=0, count=0):
    """A change's row, payload and what it costs; a left out body still counts in sizes, checksum and digest."""
    crc = 0 if kind in (DELETE, WITHDRAW) else crc32(body + head)
    sent = b'' if flags & SKIPPED else (b'' if flags & BODY_ABSENT else body) + head
    room = ROOM if kind == STORE else 0
    cost = len(sent) + room + 128 if room and not flags & SKIPPED else 0
    return CHANGE_ROW.pack(kind, flags, room, len(body), count or len(head), crc, ref), sent, cost


class Partition:
    """What the gateway knows of a partition: where its copies must stand."""

    def __init__(self, handle, name):
        self.handle, self.name = handle, name
        self.number, self.a, self.b = 0, 0, 0

    def section(self, changes):
        """Five elements of CHANGES; the partition goes on."""
        first = self.number + 1
        for row, _, _ in changes:
            kind, _, room, body_bytes, head_bytes, crc, ref = CHANGE_ROW.unpack(row)
            for word in (kind + room * 2**16, body_bytes, head_bytes, crc, int(ref) % 2**32, int(ref) // 2**32):
                self.a, self.b = self.a ^ word, (self.b + word) % 2**32
                self.a = (self.a << 13 | self.a >> 19) % 2**32 * 0x9E3779B1 % 2**32
                self.b = (self.b << 17 | self.b >> 15) % 2**32 * 0x85EBCA77 % 2**32
            self.number += 1
        return [self.handle, first, self.a, self.b, b''.join(row for row, _, _ in changes)]


class Connection:
    def __init__(self, port, secret, incarnation, nonce, gateway='gateway-1', active=1):
        self.socket = socket.create_connection(('127.0.0.1', port), 20)
        self.sequence, self.acked, self.numbers, self.refusals = 0, 0, {}, []
        self.send(HELLO, [3, 3, gateway, incarnation, nonce, 'A', 1, os.urandom(16), active])
        hello = self.last_control
        _, _, self.challenge, _, raw = self.receive()
        transcript = hello + b'\x94' + raw[1:-34]
        proof = lambda who: hmac.new(secret, b'twinpost ' + who + b' 1' + transcript, hashlib.sha256).digest()
        self.proved = hmac.compare_digest(proof(b'store'), self.challenge[4])
        self.send(PROOF, [proof(b'gateway')])
        self.answer, _, self.welcome, _, _ = self.receive()
        self.credit = self.welcome[0]

    def send(self, kind, control, bodies=b''):
        self.sequence, self.last_control = self.sequence + 1, pack(control)
        self.socket.sendall(frame_of(kind, self.sequence, self.last_control, bodies))
        return self.sequence

    def read(self, count):
        data = b''
        while len(data) < count:
            piece = self.socket.recv(count - len(data))
            if not piece: raise EOFError('the store closed the connection')
            data += piece
        return data

    def receive(self):
        """The next frame; ACK and REFUSAL are noted on the way."""
        header = self.read(24)
        frame = parse(header + self.read(struct.unpack_from('<I', header, 4)[0] - 24))
        kind, _, control = frame[:3]
        if kind == ACK:
            self.acked, self.credit = control[:2]
            self.numbers.update(zip(control[2::2], control[3::2]))
        elif kind == REFUSAL:
            self.refusals.append(control)
        return frame

    def ask(self, kind, control):
        """A request that is answered by a message of its own: (control, bodies)."""
        sequence = self.send(kind, control)
        while True:
            answer, answered, control, bodies, _ = self.receive()
            if answer not in (ACK, REFUSAL) or answered == sequence and answer == REFUSAL: return control, bodies

    def do(self, kind, control, bodies=b''):
        """A request that is acknowledged: its refusal (without the text), or the numbers that ACK told."""
        self.numbers, self.refusals = {}, []
        sequence = self.send(kind, control, bodies)
        while self.acked < sequence: self.receive()
        return [['refused', *refusal[1:6]] for refusal in self.refusals] or [[*told] for told in self.numbers.items()]

    def fence(self, partition, term, how, dead=0, at=(0, 0, 0)):
        """FENCED or DECLINED without the handle."""
        control, _ = self.ask(FENCE, [partition.handle, partition.name, term, how, dead, *at])
        return control[1:]

    def changes(self, *pairs):
        """One CHANGES frame of (partition, its changes) pairs."""
        control = [value for partition, changes in pairs for value in partition.section(changes)]
        return self.do(CHANGES, control, b''.join(sent for _, changes in pairs for _, sent, _ in changes))

    def pull(self, partition, entries_max):
        """All entries of a copy, in blocks."""
        blocks, after, end = [], 0, False
        while not end:
            (_, _, after, end, rows, _), bodies = self.ask(PULL, [partition.handle, after, partition.number, entries_max, 1 << 20, True])
            blocks.append(entries_of(rows, bodies))
        return blocks


if __name__ == '__main__':
    decoded = {}
    for path in sys.argv[1:]:
        with open(path) as file: frame = bytes.fromhex(''.join(line for line in file if line[0] != '#'))
        kind, sequence, control, bodies, _ = parse(frame)
        decoded[os.path.basename(path)] = [kind, sequence, control, entries_of(control[4 if kind == BLOCK else 1], bodies) if kind in (BLOCK, REFILL) else []]
    print(json.dumps(decoded, default=bytes.hex))
