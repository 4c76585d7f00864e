/**
 * Queues of a gateway with their content, page by page, for `queue export`, and single messages, for
 * `queue cat`. Reads what is there now and
 * changes nothing; an entry that is not committed yet is not shown. One whose body is still at the stores is
 * waited for, and goes back there when it was read, if memory is short.
 */
import type { ExportPart } from '../../admin-api/look.js';
import { headerEnd } from '../../base/header-end.js';
import type { Crc32 } from '../../platform/ports.js';
import { ENTRY_ROW_BYTES, writeEntryRow } from '../../protocol/entry-rows.js';
import type { ExportSource } from './export-page.js';
import type { DueBodies } from '../queue/due-bodies.js';
import type { MailQueue } from '../queue/mail-queue.js';
import type { Entries } from '../queue/entries.js';
import { EntryState } from '../queue/entry-table.js';
import type { Place } from '../queue/queue-walk.js';
import { cursorAt, placesBehind, queuesOfClass } from '../queue/queue-walk.js';

/** About two milliseconds of copying; one entry more than the bytes if it is larger itself. */
const PAGE_ENTRIES = 500;
const PAGE_BYTES = 2 * 1024 * 1024;
const HEADER_BYTES_MAX = 64 * 1024;

/** The body that comes next is not here yet: to be asked for again. */
export const AT_STORES = 'at stores';

export interface ExportPage {
  readonly rows: Uint8Array;
  readonly payload: Uint8Array;
  /** Undefined at the end. */
  readonly nextCursor: string | undefined;
}

export interface ExportPorts {
  readonly crc32: Crc32;
  readonly entries: Entries;
  readonly bodies: DueBodies;
  queuesOf(name: string): readonly MailQueue[];
  placesOf(messageId: number): Iterable<Place>;
}

export class ExportView implements ExportSource {
  readonly #ports: ExportPorts;

  constructor(ports: ExportPorts) {
    this.#ports = ports;
  }

  exportPage(name: string, queueClass: string, cursor: string): ExportPage | typeof AT_STORES | undefined {
    const { entries } = this.#ports;
    const queues = queuesOfClass(this.#ports.queuesOf(name), queueClass);
    if (queues.length === 0) return undefined;
    const chosen: Place[] = [];
    let bytes = 0;
    let nextCursor = '';
    for (const place of placesBehind(cursor, queues, entries.table)) {
      const { queue, row } = place;
      if (entries.table.state(row) === EntryState.STORING) continue;
      if (entries.isAbsent(row)) {
        this.#want(queue, row);
        return chosen.length === 0 ? AT_STORES : { ...this.#build(chosen, bytes), nextCursor };
      }
      const size = entries.bytes(row) + entries.note(row).length;
      const isFull = chosen.length === PAGE_ENTRIES || bytes + size > PAGE_BYTES;
      if (isFull && chosen.length > 0) return { ...this.#build(chosen, bytes), nextCursor };
      chosen.push(place);
      bytes += size;
      nextCursor = cursorAt(place, entries.table);
    }
    return { ...this.#build(chosen, bytes), nextCursor: undefined };
  }

  exportMessage(messageId: number, part: ExportPart): ExportPage | typeof AT_STORES | undefined {
    const { entries } = this.#ports;
    const places = [...this.#ports.placesOf(messageId)].filter(({ row }) =>
      entries.table.state(row) !== EntryState.STORING);
    // Its content is the same in each queue.
    const place = places.find(({ row }) => !entries.isAbsent(row));
    if (place !== undefined && part === 'header') return this.#headerOf(place);
    if (place !== undefined) {
      const bytes = entries.bytes(place.row) + entries.note(place.row).length;
      return { ...this.#build([place], bytes), nextCursor: undefined };
    }
    const [absent] = places;
    if (absent === undefined) return undefined;
    entries.absent.wantLater(absent.queue.partition, absent.row);
    return AT_STORES;
  }

  /** As an entry that has nothing else. */
  #headerOf({ queue: { partition }, row }: Place): ExportPage {
    const { entries, bodies, crc32 } = this.#ports;
    const { table } = entries;
    const start = new Uint8Array(Math.min(table.bodyBytes.get(row), HEADER_BYTES_MAX));
    entries.copyBody(row, start, 0, start.length);
    bodies.onUsed(partition, row);
    const header = start.subarray(0, headerEnd(start, start.length));
    const head = entries.head(row);
    const rows = new Uint8Array(ENTRY_ROW_BYTES);
    writeEntryRow(
      new DataView(rows.buffer), 0, 0, header.length, head.length, crc32(head, crc32(header, 0)), 0, 0,
      table.messageId(row), table.position.get(row), entries.room(row),
    );
    const payload = new Uint8Array(header.length + head.length);
    payload.set(header);
    payload.set(head, header.length);
    return { rows, payload, nextCursor: undefined };
  }

  /** The bodies of a page, from this row on. */
  #want(queue: MailQueue, row: number): void {
    const { entries } = this.#ports;
    let next = row;
    for (let left = PAGE_ENTRIES; left > 0 && next !== 0; left -= 1, next = queue.following(next)) {
      if (entries.isAbsent(next)) entries.absent.wantLater(queue.partition, next);
    }
  }

  #build(
    chosen: readonly Place[], bytes: number,
  ): { readonly rows: Uint8Array; readonly payload: Uint8Array } {
    const { entries, bodies, crc32 } = this.#ports;
    const rows = new Uint8Array(chosen.length * ENTRY_ROW_BYTES);
    const view = new DataView(rows.buffer);
    const payload = new Uint8Array(bytes);
    let at = 0;
    chosen.forEach(({ queue: { partition }, row }, i) => {
      const bodyBytes = entries.table.bodyBytes.get(row);
      const head = entries.head(row);
      const note = entries.note(row);
      entries.copyBody(row, payload, at);
      payload.set(head, at + bodyBytes);
      payload.set(note, at + bodyBytes + head.length);
      at += bodyBytes + head.length + note.length;
      const noteCrc = note.length === 0 ? 0 : crc32(note, 0);
      writeEntryRow(
        view, i * ENTRY_ROW_BYTES, 0, bodyBytes, head.length, entries.table.checksum.get(row),
        note.length, noteCrc, entries.table.messageId(row), entries.table.position.get(row),
        entries.room(row),
      );
      bodies.onUsed(partition, row);
    });
    return { rows, payload };
  }
}
