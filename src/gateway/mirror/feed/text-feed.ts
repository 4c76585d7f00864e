/**
 * What next hops said of entries in this turn, on its way to the stores that mirror them: best effort, behind
 * the changes of the turn, and only where nothing waits. Texts never hold a change up, and are not repeated.
 *
 *   add … ─► send: one TEXTS a store, or nothing
 */
import type { Packer } from '../../../platform/ports.js';
import { TEXTS } from '../../../protocol/message-types.js';
import type { TextsOfPartition } from '../../../protocol/messages/texts.js';
import { TEXTS_PARTITIONS_MAX, encodeTexts } from '../../../protocol/messages/texts.js';
import { TextRows } from '../../../protocol/text-rows.js';
import type { Outbox } from '../link/outbox.js';
import type { Partition } from '../set/partition.js';

/** Of one turn: less than the changes that it stands beside. What comes on top is not told. */
const BYTES_PER_TURN = 64 * 1024;

export class TextFeed {
  readonly #packer: Packer;
  readonly #rows = new Map<Partition, TextRows>();
  #bytes = 0;

  constructor(packer: Packer) {
    this.#packer = packer;
  }

  /** The bytes are copied. */
  add(partition: Partition, position: number, text: Uint8Array): void {
    if (this.#bytes + text.length > BYTES_PER_TURN) return;
    let rows = this.#rows.get(partition);
    if (rows === undefined) {
      if (this.#rows.size >= TEXTS_PARTITIONS_MAX) return;
      rows = new TextRows();
      this.#rows.set(partition, rows);
    }
    rows.add(position, text);
    this.#bytes += text.length;
  }

  /** At the end of a turn, behind all changes of it. */
  send(outboxes: Iterable<Outbox>): void {
    if (this.#bytes === 0) return;
    const taken = [...this.#rows].map(([partition, rows]) => ({ partition, rows: rows.take() }));
    this.#rows.clear();
    this.#bytes = 0;
    for (const outbox of outboxes) {
      if (outbox.isBacklogged || !outbox.store.canSend) continue;
      const texts: TextsOfPartition[] = [];
      for (const { partition, rows } of taken) {
        const row = partition.rowAt(outbox.store);
        if (row === undefined || !partition.feedOf(row).getsChanges) continue;
        texts.push({ handle: partition.handle, rows });
      }
      if (texts.length > 0) outbox.request(TEXTS, encodeTexts(this.#packer, texts));
    }
  }
}
