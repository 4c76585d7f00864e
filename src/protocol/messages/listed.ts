/**
 * LISTED: one page of the queues that a store holds, answering LIST.
 *
 *   element  wire   field     meaning
 *   0        u53    next      cursor for the next LIST
 *   1        bool   complete  nothing is left
 *   2 …      row    rows      one array a queue, at most 1,024:
 *
 *   0   str    gatewayId    identity of the queue: gateway,
 *   1   u53    birth        incarnation that created it,
 *   2   u32    serial       which of its queues
 *   3   str    name
 *   4   str    queueClass
 *   5   u8     ordering     0 fifo, 1 strict
 *   6   u8     role         ROLE_… of reasons.ts
 *   7   u53    epoch
 *   8   [str]  members      of that epoch
 *   9   u53    number       transaction number
 *   10  u32    digestA      at that number
 *   11  u32    digestB
 *   12  u53    count        entries
 *   13  u53    bytes        of bodies and heads
 *   14  str    holder       gateway that holds the queue now: its owner, or whoever claimed it last
 *   15  u53    holderToken  token of its claim; the incarnation of the OPEN that made the queue until the first one
 */
import type { Packer } from '../../platform/ports.js';
import {
  MEMBERS_MAX, isBetween, isBoolean, isIdentifier, isIdentifierOrNone, isIdentifiers, isUint32, isWhole, unpackControl,
} from '../fields.js';
import { InvalidMessage } from '../invalid.js';
import { ORDERING_FIFO, ORDERING_STRICT, ROLE_NONE, ROLE_SPILLED } from '../reasons.js';

/** Queues in one page: with the longest names still far inside a control part. */
export const LISTED_ROWS_MAX = 1024;
const ROW_ELEMENTS = 16;

export interface ListedRow {
  readonly gatewayId: string;
  readonly birth: number;
  readonly serial: number;
  readonly name: string;
  readonly queueClass: string;
  readonly ordering: number;
  readonly role: number;
  readonly epoch: number;
  readonly members: readonly string[];
  readonly number: number;
  readonly digestA: number;
  readonly digestB: number;
  readonly count: number;
  readonly bytes: number;
  readonly holder: string;
  readonly holderToken: number;
}

export interface Listed {
  readonly next: number;
  readonly complete: boolean;
  readonly rows: readonly ListedRow[];
}

export function encodeListed(packer: Packer, message: Listed): Uint8Array {
  const values: unknown[] = [message.next, message.complete];
  for (const row of message.rows) {
    values.push([
      row.gatewayId, row.birth, row.serial, row.name, row.queueClass, row.ordering, row.role, row.epoch,
      row.members, row.number, row.digestA, row.digestB, row.count, row.bytes, row.holder, row.holderToken,
    ]);
  }
  return packer.pack(values);
}

export function decodeListed(packer: Packer, control: Uint8Array): Listed | InvalidMessage {
  const values = unpackControl(packer, control, 2, true);
  if (values instanceof InvalidMessage) return values;
  const [next, complete] = values;
  if (!isWhole(next)) return new InvalidMessage('next');
  if (!isBoolean(complete)) return new InvalidMessage('complete');
  if (values.length - 2 > LISTED_ROWS_MAX) return new InvalidMessage('row count');
  const rows: ListedRow[] = [];
  for (let i = 2; i < values.length; i++) {
    const row = decodeRow(values[i]);
    if (row instanceof InvalidMessage) return row;
    rows.push(row);
  }
  return { next, complete, rows };
}

function decodeRow(row: unknown): ListedRow | InvalidMessage {
  if (!Array.isArray(row) || row.length !== ROW_ELEMENTS) return new InvalidMessage('row element count');
  const [
    gatewayId, birth, serial, name, queueClass, ordering, role, epoch,
    members, number, digestA, digestB, count, bytes, holder, holderToken,
  ] = row as readonly unknown[];
  if (!isIdentifier(gatewayId)) return new InvalidMessage('row gatewayId');
  if (!isWhole(birth)) return new InvalidMessage('row birth');
  if (!isUint32(serial)) return new InvalidMessage('row serial');
  if (!isIdentifier(name)) return new InvalidMessage('row name');
  if (!isIdentifier(queueClass)) return new InvalidMessage('row queueClass');
  if (!isBetween(ordering, ORDERING_FIFO, ORDERING_STRICT)) return new InvalidMessage('row ordering');
  if (!isBetween(role, ROLE_NONE, ROLE_SPILLED)) return new InvalidMessage('row role');
  if (!isWhole(epoch)) return new InvalidMessage('row epoch');
  if (!isIdentifiers(members, MEMBERS_MAX)) return new InvalidMessage('row members');
  if (!isWhole(number)) return new InvalidMessage('row number');
  if (!isUint32(digestA)) return new InvalidMessage('row digestA');
  if (!isUint32(digestB)) return new InvalidMessage('row digestB');
  if (!isWhole(count)) return new InvalidMessage('row count');
  if (!isWhole(bytes)) return new InvalidMessage('row bytes');
  if (!isIdentifierOrNone(holder)) return new InvalidMessage('row holder');
  if (!isWhole(holderToken)) return new InvalidMessage('row holderToken');
  return {
    gatewayId, birth, serial, name, queueClass, ordering, role, epoch,
    members, number, digestA, digestB, count, bytes, holder, holderToken,
  };
}
