/**
 * What a register file of another machine or folder is opened as: of what came after it, here or there,
 * nothing is known.
 *
 *   partitions/…               stay, with their revisions, below that of the key `moved`: whoever reads one
 *                              asks all stores what they were told, and believes the newest (rule 15
 *                              of docs/model)
 *   incarnations/…, ordinal    pass over the numbers that processes may have drawn since
 *   moved                      why, for a person
 */
import { BrokenRule } from '../../base/json-shape.js';
import { RegisterMap } from '../core/register-map.js';
import { INCARNATIONS, MOVED_KEY, ORDINAL_KEY } from '../keys.js';
import { UNKNOWN_STARTS } from '../ordinal-draw.js';
import type { Entry } from '../port.js';
import {
  ORDINAL_MAX, decodeIncarnation, decodeOrdinal, encodeIncarnation, encodeOrdinal,
} from '../records.js';

export function movedMap(map: RegisterMap, why: string): RegisterMap {
  let revision = map.revision;
  const raised = (entry: Entry): Entry => {
    const value = raisedValue(entry);
    if (value === entry.value) return entry;
    revision += 1;
    return { ...entry, value, revision };
  };
  const entries = map.list([{ prefix: '' }]).filter(({ key }) => key !== MOVED_KEY).map(raised);
  revision += 1;
  const moved = { key: MOVED_KEY, value: JSON.stringify({ version: 1, why }), revision, session: '' };
  return new RegisterMap(revision, [...entries, moved], map.sessions);
}

/** A record that can't be read stays: who draws by it says so. */
function raisedValue({ key, value }: Entry): string {
  if (key === ORDINAL_KEY) {
    const record = decodeOrdinal(value);
    if (record instanceof BrokenRule) return value;
    return encodeOrdinal({ next: Math.min(record.next + 2 * UNKNOWN_STARTS, ORDINAL_MAX + 1) });
  }
  if (!key.startsWith(INCARNATIONS)) return value;
  const record = decodeIncarnation(value);
  if (record instanceof BrokenRule) return value;
  return encodeIncarnation({ ...record, incarnation: record.incarnation + UNKNOWN_STARTS });
}
