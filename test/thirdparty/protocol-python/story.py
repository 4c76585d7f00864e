"""
A gateway written in another language lives through a story with two fresh stores of 64 MiB and tells as JSON
what it saw; protocol-python.test.ts judges.

    story.py SECRET PORT_OF_STORE_A PORT_OF_STORE_B
"""
import sys
sys.dont_write_bytecode = True
from client import *

SECRET, (PORT_A, PORT_B) = sys.argv[1].encode(), map(int, sys.argv[2:4])
told = {}

# A stranger gets nothing but DENIED, whether it is the name or the secret that is wrong.
told['strangers'] = [[stranger.answer, stranger.welcome[0]] for stranger in (
    Connection(PORT_A, SECRET, 1000, b'stranger', 'gateway-9'), Connection(PORT_A, b'x' * 32, 1000, b'stranger'))]

first = Connection(PORT_A, SECRET, 1000, b'nonce..1')
second = Connection(PORT_A, SECRET, 1000, b'nonce..1', active=0)
told['connections'] = [[each.challenge[1], each.proved, each.welcome[1], each.welcome[6]] for each in (first, second)]
told['beats'] = [each.ask(HEARTBEAT, [77, 0])[0][0] for each in (first, second)]
told['standby'] = second.ask(LIST, ['', 0])[0][0]
second = Connection(PORT_A, SECRET, 1000, b'nonce..1', active=0)
spoilt = bytearray(frame_of(HEARTBEAT, 3, pack([1, 0])))
spoilt[-1] ^= 1
second.socket.sendall(spoilt)
told['spoilt'] = second.receive()[2][0]
second = Connection(PORT_A, SECRET, 1000, b'nonce..1', active=0)
second.sequence += 1
told['skipped request'] = second.ask(HEARTBEAT, [77, 0])[0][0]

# Two queues; the body of a message to both is sent once.
one, two = Queue(1, 1, 'one.example'), Queue(2, 2, 'two.example')
told['open'] = [first.open(queue, 1, ['store-a']) for queue in (one, two)]
shared = b'Subject: both\r\n\r\n' + b'x' * 5000
stores = [change(STORE, 9000, b'to one', shared, SHARED)] + [change(STORE, 9000 + n, b'head %d' % n, b'body %d' % n) for n in range(1, 7)]
told['stored'] = first.changes((one, stores), (two, [change(STORE, 9000, b'to two', shared, SHARED | BODY_ABSENT)]))
told['annotated, deleted'] = first.changes((one, [change(ANNOTATE, 2, b'tried twice'), change(DELETE, 3, count=2)]))
told['replaced, withdrawn'] = first.changes((one, [change(REPLACE, 5, b'new head', b'new body'), change(WITHDRAW, 6)]))

# A repeat is acknowledged again. What is refused changes nothing; so is everything after it, until OPEN.
last = [change(ANNOTATE, 5, b'tried once')]
section = one.section(last)
told['sent, repeated'] = [first.do(CHANGES, section, last[0][1]) for _ in range(2)]
told['stands'] = stands = [one.number, one.a, one.b]
told['repeated otherwise'] = first.do(CHANGES, [*section[:2], 1, 2, section[4]], last[0][1])
told['after a refusal'] = first.do(CHANGES, section, last[0][1])
told['opened again'] = first.open(one, 1, ['store-a'])


def refused(number, row, sent, digest=None):
    answer = first.do(CHANGES, [one.handle, number, *(digest or stands[1:]), row], sent)
    first.open(one, 1, ['store-a'])
    return answer


row, sent, _ = change(STORE, 9100, b'head', b'body')
told['gap'] = refused(one.number + 2, row, sent)
told['digest'] = refused(one.number + 1, row, sent)
told['checksum'] = refused(one.number + 1, row, b'haed' + sent[4:])
told['missing'] = refused(one.number + 1, *change(ANNOTATE, 3, b'gone')[:2])
told['body'] = refused(one.number + 1, *change(STORE, 9999, b'head', b'nowhere', SHARED | BODY_ABSENT)[:2])
told['epoch'] = refused(one.number + 1, *change(SET_MEMBERS, 1, pack(['store-a']))[:2])
told['unknown'] = first.do(CHANGES, [99, 1, 0, 0, row], sent)

# A younger process of the same gateway: the elder is told so; claims tell where the queues stand.
young = Connection(PORT_A, SECRET, 2000, b'nonce..2')
told['fenced'] = [first.receive()[2][::2], Connection(PORT_A, SECRET, 1000, b'nonce..1').welcome[::2]]
told['listed'] = young.list()
told['unclaimed'] = young.ask(PULL, [one.handle, 0, 100, 100, 1 << 20, True])[0][1:3]
told['claimed'] = [young.ask(CLAIM, [queue.handle, 'gateway-1', 1000, queue.serial, 2000])[0] for queue in (one, two)]
told['not claimed'] = [young.ask(CLAIM, [9, 'gateway-1', 1000, serial, 1999])[0][1:3] for serial in (1, 3)]
told['blocks'] = young.pull(one, 2)
told['other queue'] = young.pull(two, 2)
(*_, rows, texts), bodies = young.ask(PULL, [one.handle, 0, one.number, 100, 1 << 20, False])
told['without bodies'] = entries_of(rows, bodies)
wanted = [item['position'] for item in reversed(told['without bodies'])] + [3]
(*_, rows, texts), bodies = young.ask(PULL_BODIES, [one.handle, struct.pack('<%dd' % len(wanted), *wanted)])
told['bodies'] = entries_of(rows, bodies)
told['tails'] = [young.ask(TAIL, [one.handle, *at])[0][1:] for at in (stands, [stands[0], 1, 2])]

# What a next hop said is soft: of entries that were tried it is kept, no number moves, and who holds the queue no more is not heard.
told['texts'] = [young.do(TEXTS, [one.handle, text(2, b'first') + text(2, b'450 busy') + text(7, b'never tried') + text(99, b'gone'), 98, text(1, b'x')])]
told['texts'] += [texts_of(young.ask(PULL, [one.handle, 0, one.number, 100, 1 << 20, False])[0][5])]
told['beyond the room'] = young.do(CHANGES, [one.handle, one.number + 1, 1, 2, change(ANNOTATE, 2, b'n' * (ROOM - 3))[0]], b'n' * (ROOM - 3))
young.open(one, 1, ['store-a'])

# The second store is filled while the queue goes on; a change to an entry that is not there yet is SKIPPED.
mirror, copy = Connection(PORT_B, SECRET, 2000, b'nonce..2'), Queue(one.handle, one.serial, one.name)
copy.number, copy.a, copy.b = stands
pulled = [item for block in told['blocks'] for item in block]
told['filling'] = [mirror.open(one, 0, []), mirror.do(REFILL_BEGIN, [one.handle, *stands])]
row, sent = entry(pulled[0], SHARED)
told['filling'].append(mirror.do(REFILL, [one.handle, row], sent))
note, mail = (ANNOTATE, 5, b'tried in between'), (STORE, 9200, b'live head', b'live body')
told['live'] = [young.changes((one, [change(*note), change(*mail)])), mirror.changes((copy, [change(*note, flags=SKIPPED), change(*mail)]))]
fresh = [item for block in young.pull(one, 100) for item in block]
rest = [entry(item) for item in fresh if pulled[0]['position'] < item['position'] <= stands[0]]
told['filling'].append(mirror.do(REFILL, [one.handle, b''.join(row for row, _ in rest)], b''.join(sent for _, sent in rest)))
members = change(SET_MEMBERS, 2, pack(['store-a', 'store-b']))
told['joined'] = [young.changes((one, [members]))]
told['filled'] = [mirror.list()[0][6], mirror.do(REFILL_END, [one.handle, 1 + len(rest)])]
told['joined'].append(mirror.changes((copy, [members])))
told['mirrors'] = [side.list()[0] for side in (young, mirror)]
told['copies'] = [[item for block in side.pull(one, 100) for item in block] for side in (young, mirror)]
told['dropped'] = [side.do(DROP, [queue.handle]) for side, queue in ((young, one), (young, two), (mirror, one))]
told['left'] = [side.list() for side in (young, mirror)]

# Within the credit nothing is refused. A refill goes on beyond it: there is a reserve, until that is used up too.
full, late, body = Queue(3, 3, 'full.example'), Queue(4, 4, 'late.example'), b'x' * (256 << 10)
mirror.open(full, 1, ['store-b'])
mail = change(STORE, 9300, b'head', body)
told['credit'] = {'cost': mail[2], 'at first': mirror.credit, 'most taken': 0, 'answers': 0}
while mirror.credit >= mail[2]:
    had = mirror.credit
    told['credit']['answers'] += mirror.changes((full, [mail])) == [[full.handle, full.number]]
    told['credit']['most taken'] = max(told['credit']['most taken'], had - mirror.credit)
told['credit'].update({'stored': full.number, 'at last': mirror.credit})
mirror.open(late, 0, [])
mirror.do(REFILL_BEGIN, [late.handle, 1000, 1, 2])
answers, item = [], {'body': body.decode(), 'head': 'head', 'note': '', 'id': 9400, 'position': 0}
while not answers or answers[-1] == [[late.handle, 1000]]:
    item['position'] += 1
    answers.append(mirror.do(REFILL, [late.handle, entry(item)[0]], entry(item)[1]))
told['reserve'] = [len(answers) - 1, answers[-1]]
told['at the brim'] = mirror.changes((full, [change(ANNOTATE, 1, b'tried'), change(DELETE, 1, count=full.number)]))
mirror.do(DROP, [late.handle])
told['credit']['afterwards'] = mirror.credit
print(json.dumps(told, default=bytes.hex))
