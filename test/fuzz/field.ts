/**
 * A desk that many sessions use one after the other, and what must hold at the end of each, whatever it was fed. Counts
 * what came of the inputs: those that only err would show nothing.
 */
import assert from 'node:assert/strict';

import type { Prng } from '../../src/base/prng.js';
import { formatMessageId } from '../../src/base/text-id.js';
import { VirtualDesk } from '../attacks/virtual-desk.js';
import type { VirtualClient, VirtualOptions } from '../attacks/virtual-desk.js';

const quiet = (): void => undefined;

/** How often what has come about, by its name, in all fields. */
export const TALLIES = new Map<string, number>();

export function tally(what: string, count = 1): void {
  TALLIES.set(what, (TALLIES.get(what) ?? 0) + count);
}

export class Field {
  readonly world: VirtualDesk;

  constructor(options: VirtualOptions) {
    const mailLog = { wantsMessageId: true, received: quiet, rejected: quiet };
    this.world = new VirtualDesk({ offersTls: false, messageBytesMax: 4096, mailLog, ...options });
  }

  /** A session from its first byte to its last, in pieces: whose it was, and all that it said. */
  play(input: Uint8Array, random: Prng): { readonly address: string; readonly said: string } {
    const client = this.world.connect();
    for (const piece of piecesOf(input, random)) client.send(piece);
    const address = client.session.remoteAddress;
    return { address, said: this.end(client, client.heard()) };
  }

  /** The client ends its side, and is gone. `said`: what it heard until now; returns all of it. */
  end(client: VirtualClient, said: string): string {
    const { reception, desk } = this.world;
    if (!client.connection.isOver) client.session.onEnd();
    this.world.turn();
    client.leave();
    const all = said + client.heard();
    for (const line of all.split('\r\n')) assert.ok(line === '' || /^\d{3}[ -]/.test(line), `a reply line: ${JSON.stringify(line)}`);
    for (const { submission, content } of reception.kept) {
      const text = content.toString('latin1');
      assert.ok(!/\0|\r(?!\n)|(?<!\r)\n/.test(text), 'NUL, or CR or LF alone, in what was kept');
      assert.ok(all.includes(`queued as ${formatMessageId(submission.messageId)}`), 'kept, and not told');
    }
    tally('messages kept', reception.kept.length);
    reception.kept.length = 0;
    assert.equal(reception.reservedBytes, 0, 'memory in transit');
    assert.equal(desk.live.size, 0, 'sessions');
    return all;
  }
}

/** Of 400 octets at most, in a third of the places of 3 at most. */
export function* piecesOf(input: Uint8Array, random: Prng): Generator<Uint8Array> {
  for (let at = 0; at < input.length;) {
    const to = Math.min(input.length, at + 1 + random.below(random.below(3) === 0 ? 3 : 400));
    yield input.subarray(at, to);
    at = to;
  }
}
