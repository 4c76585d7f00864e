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
told['connections'] = [[each.challenge[1], each.proved, each.welcome[1], each.welcome[5]] for each in (first, second)]
told['beats'] = [each.ask(HEARTBEAT, [77, 0, 0])[0][2:] for each in (first, second)]
told['standby'] = second.ask(ASK, ['gateway-1/1', 'gateway-1', 1000])[0][0]
second = Connection(PORT_A, SECRET, 1000, b'nonce..1', active=0)
spoilt = bytearray(frame_of(HEARTBEAT, 3, pack([1, 0, 0])))
spoilt[-1] ^= 1
second.socket.sendall(spoilt)
told['spoilt'] = second.receive()[2][0]
second = Connection(PORT_A, SECRET, 1000, b'nonce..1', active=0)
second.sequence += 1
told['skipped request'] = second.ask(HEARTBEAT, [77, 0, 0])[0][0]

# Two partitions, founded by the first term; the body of a message to both is sent once.
one, two = Partition(1, 'gateway-1/1'), Partition(2, 'gateway-1/2')
boot_a = first.challenge[2].hex()
shared = b'Subject: both\r\n\r\n' + b'x' * 5000
told['nothing there'] = first.fence(one, [1, 11], JOIN)
told['founded'] = [first.fence(partition, [1, 11], FOUND) for partition in (one, two)]
stores = [change(STORE, 9000, b'to one', shared, SHARED)] + [change(STORE, 9000 + n, b'head %d' % n, b'body %d' % n) for n in range(1, 7)]
told['stored'] = first.changes((one, stores), (two, [change(STORE, 9000, b'to two', shared, SHARED | BODY_ABSENT)]))
told['annotated, deleted'] = first.changes((one, [change(ANNOTATE, 2, b'tried twice'), change(DELETE, 3, count=2)]))
told['withdrawn'] = first.changes((one, [change(WITHDRAW, 6)]))

# A repeat is acknowledged again. What is refused changes nothing; so is everything after it, until FENCE.
last = [change(ANNOTATE, 5, b'tried once')]
section = one.section(last)
told['sent, repeated'] = [first.do(CHANGES, section, last[0][1]) for _ in range(2)]
told['stands'] = stands = [one.number, one.a, one.b]
told['repeated otherwise'] = first.do(CHANGES, [*section[:2], 1, 2, section[4]], last[0][1])
told['after a refusal'] = first.do(CHANGES, section, last[0][1])
told['bound again'] = first.fence(one, [1, 11], JOIN)[2:6]


def refused(number, row, sent, digest=None):
    answer = first.do(CHANGES, [one.handle, number, *(digest or stands[1:]), row], sent)
    first.fence(one, [1, 11], JOIN)
    return answer


row, sent, _ = change(STORE, 9100, b'head', b'body')
told['gap'] = refused(one.number + 2, row, sent)
told['digest'] = refused(one.number + 1, row, sent)
told['checksum'] = refused(one.number + 1, row, b'haed' + sent[4:])
told['missing'] = refused(one.number + 1, *change(ANNOTATE, 3, b'gone')[:2])
told['body'] = refused(one.number + 1, *change(STORE, 9999, b'head', b'nowhere', SHARED | BODY_ABSENT)[:2])
told['unknown'] = first.do(CHANGES, [99, 1, 0, 0, row], sent)

# The record is told and kept; who asks hears it, and how long the lease runs.
record = lambda epoch, term, holder, members: [epoch, term, ['gateway-1', holder], members, [], [], []]
in_a = [['store-a', boot_a]]
told['told'] = [first.ask(TELL, ['gateway-1/1', record(epoch, [1, 11], 1000, in_a), False])[0] for epoch in (2, 1)]

# A younger process of the same gateway: the elder is told so; its term ends that of the elder, which is not waited for.
young = Connection(PORT_A, SECRET, 2000, b'nonce..2')
last = first.receive()
while last[0] == ACK: last = first.receive()
told['fenced'] = [last[2][::2], Connection(PORT_A, SECRET, 1000, b'nonce..1').welcome[::2]]
*asked, lease_left, term_number, told['record'] = young.ask(ASK, ['gateway-1/1', 'gateway-1', 1000])[0]
told['asked'] = [*asked, term_number]
told['lease runs'] = 0 < lease_left <= young.welcome[2]
told['not bound'] = young.ask(PULL, [one.handle, 0, 100, 100, 1 << 20, True])[0][1:3]
told['declined'] = [young.fence(one, term, JOIN) for term in ([1, 12], [2, 21])]
taken = [young.fence(partition, [3, 31], JOIN, dead) for partition, dead in ((one, 0), (two, 1000))]
told['taken'] = [answer[:7] + answer[8:] for answer in taken]
told['older leases'] = [0 < taken[0][7] <= young.welcome[2], taken[1][7]]
told['low term'] = young.fence(Partition(9, one.name), [1, 11], FILL)
told['blocks'] = young.pull(one, 2)
told['other queue'] = young.pull(two, 2)
told['tails'] = [young.ask(TAIL, [one.handle, *at])[0][1:] for at in (stands, [stands[0], 1, 2])]

# What a next hop said is soft: of entries that were tried it is kept, no number moves, and who is refused is not heard.
words = text(2, b'first') + text(2, b'450 busy') + text(7, b'never tried') + text(99, b'gone')
shown = lambda: texts_of(young.ask(PULL, [one.handle, 0, one.number, 100, 1 << 20, True])[0][5])
told['texts'] = [young.do(TEXTS, [one.handle, words, 98, text(1, b'x')]), shown()]
long_note = b'n' * (ROOM - 3)
told['beyond the room'] = young.do(CHANGES, [one.handle, one.number + 1, 1, 2, change(ANNOTATE, 2, long_note)[0]], long_note)
told['texts of who is refused'] = [young.do(TEXTS, [one.handle, text(2, b'other words')]), shown()]
young.fence(one, [3, 31], JOIN)

# The second store is filled while the partition goes on; a change to an entry that is not there yet is SKIPPED.
mirror, copy = Connection(PORT_B, SECRET, 2000, b'nonce..2'), Partition(one.handle, one.name)
copy.number, copy.a, copy.b = stands
pulled = [item for block in told['blocks'] for item in block]
told['filling'] = [mirror.fence(one, [3, 31], FILL, 0, stands)[2:6]]
row, sent = entry(pulled[0], SHARED)
told['filling'].append(mirror.do(REFILL, [one.handle, row], sent))
note, mail = (ANNOTATE, 5, b'tried in between'), (STORE, 9200, b'live head', b'live body')
told['live'] = [young.changes((one, [change(*note), change(*mail)])), mirror.changes((copy, [change(*note, flags=SKIPPED), change(*mail)]))]
fresh = [item for block in young.pull(one, 100) for item in block]
rest = [entry(item) for item in fresh if pulled[0]['position'] < item['position'] <= stands[0]]
told['filling'].append(mirror.do(REFILL, [one.handle, b''.join(row for row, _ in rest)], b''.join(sent for _, sent in rest)))
told['not read'] = mirror.ask(PULL, [one.handle, 0, 100, 100, 1 << 20, True])[0][2]
told['filled'] = [mirror.do(REFILL_END, [one.handle, count + len(rest)]) for count in (2, 1)]
mirror.fence(one, [3, 31], JOIN)
told['filled'].append(mirror.do(REFILL_END, [one.handle, 1 + len(rest)]))
told['mirrors'] = [side.fence(one, [3, 31], JOIN)[2:7] for side in (mirror, young)]
told['copies'] = [[item for block in side.pull(one, 100) for item in block] for side in (young, mirror)]

# A neighbour takes over: the process that is displaced hears of it with its next heartbeat, and from its requests.
beat = young.ask(HEARTBEAT, [78, 0, 0])[0]
neighbour = Connection(PORT_A, SECRET, 7, b'nonce..3', 'gateway-2')
told['rescued'] = neighbour.fence(one, [5, 51], JOIN)[3]
told['displaced'] = [beat[3:], young.ask(HEARTBEAT, [79, 0, 0])[0][3:], young.ask(HEARTBEAT, [80, 0, beat[3] + 1])[0][3:],
                     young.changes((one, [change(ANNOTATE, 1, b'late')]))[0][:3]]
told['released'] = [neighbour.do(RELEASE, [one.handle]), neighbour.ask(ASK, ['gateway-1/1', 'gateway-2', 7])[0][2]]

# Out of the record: the copy goes, its handle names nothing, and the record stays.
out = ['gateway-1/2', [4, [3, 31], ['gateway-1', 2000], [['store-c', 'ff' * 16]], [], [], []], True]
told['dropped'] = [young.ask(TELL, out)[0], young.do(CHANGES, [two.handle, 2, 0, 0, change(DELETE, 1, count=1)[0]]),
                   young.ask(ASK, ['gateway-1/2', 'gateway-1', 2000])[0][1], young.ask(ASK, ['gateway-1/2', 'gateway-1', 2000])[0][4] == out[1]]

# Within the credit nothing is refused. A refill goes on beyond it: there is a reserve, until that is used up too.
full, late, body = Partition(3, 'gateway-1/3'), Partition(4, 'gateway-1/4'), b'x' * (256 << 10)
mirror.fence(full, [1, 11], FOUND)
mail = change(STORE, 9300, b'head', body)
told['credit'] = {'cost': mail[2], 'at first': mirror.credit, 'most taken': 0, 'answers': 0}
while mirror.credit >= mail[2]:
    had = mirror.credit
    told['credit']['answers'] += mirror.changes((full, [mail])) == [[full.handle, full.number]]
    told['credit']['most taken'] = max(told['credit']['most taken'], had - mirror.credit)
told['credit'].update({'stored': full.number, 'at last': mirror.credit})
mirror.fence(late, [1, 11], FILL, 0, (1000, 1, 2))
answers, item = [], {'body': body.decode(), 'head': 'head', 'note': '', 'id': 9400, 'position': 0}
while not answers or answers[-1] == [[late.handle, 1000]]:
    item['position'] += 1
    answers.append(mirror.do(REFILL, [late.handle, entry(item)[0]], entry(item)[1]))
told['reserve'] = [len(answers) - 1, answers[-1]]
told['at the brim'] = mirror.changes((full, [change(ANNOTATE, 1, b'tried'), change(DELETE, 1, count=full.number)]))
mirror.ask(TELL, [late.name, [2, [1, 11], ['gateway-1', 2000], [], []], True])
told['credit']['afterwards'] = mirror.credit
print(json.dumps(told, default=bytes.hex))
